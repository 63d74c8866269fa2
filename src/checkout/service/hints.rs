//! Hints that something has changed at the shop: named products are read again, lost orders are looked for sooner.
//!
//! A hint is worth a look and nothing more: it may be late, old, or come in thousands. So hints are put together while
//! a look runs, bounded, and what does not fit is left to the next reconciliation.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::Service;
use crate::{
    checkout::{Error, ids::ProductId},
    stock::StockId,
};

/// Most products that wait to be read again.
const MOST: usize = 1_000;

/// As many as are read in one go.
const AT_ONCE: usize = 100;

/// Products to be read again.
#[derive(Debug, Default)]
pub(super) struct Hints(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    products: BTreeSet<ProductId>,
    /// Whether somebody reads.
    at_work: bool,
}

impl Hints {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds products, as far as there is room; whether somebody has to begin reading.
    fn add(&self, products: Vec<ProductId>) -> bool {
        let mut waiting = self.waiting();
        let room = MOST.saturating_sub(waiting.products.len());
        let new: Vec<ProductId> =
            products.into_iter().filter(|product| !waiting.products.contains(product)).take(room).collect();
        waiting.products.extend(new);
        let begins = !waiting.at_work && !waiting.products.is_empty();
        waiting.at_work |= begins;
        begins
    }

    /// The next ones; none: whoever asked is no longer at work.
    fn next(&self) -> Option<Vec<ProductId>> {
        let mut waiting = self.waiting();
        let next: Vec<ProductId> = waiting.products.iter().take(AT_ONCE).cloned().collect();
        for product in &next {
            waiting.products.remove(product);
        }
        waiting.at_work = !next.is_empty();
        waiting.at_work.then_some(next)
    }
}

impl Service {
    /// The stock of these products may be another one: those that anything is known of are read again, soon and in the
    /// background.
    pub fn products_changed(self: &Arc<Self>, products: Vec<ProductId>) {
        if !self.hints.add(products) {
            return;
        }
        let service = Arc::clone(self);
        self.parts.tasks.spawn(async move {
            while let Some(products) = service.hints.next() {
                if let Err(error) = Box::pin(service.read_hinted(products)).await {
                    tracing::warn!(%error, "products that may have changed could not be read: the next reconciliation does it");
                }
            }
        });
    }

    /// Some order of the shop may be another: lost ones are looked for as soon as they may be. Which session it is of,
    /// only the shop can tell, and the look asks it.
    pub fn order_changed(&self) {
        self.pace.hurry_all();
    }

    async fn read_hinted(&self, mut products: Vec<ProductId>) -> Result<(), Error> {
        let shelves = self.parts.state.shelves(&self.settings.shop, None).await?;
        let known = self.counting.remembered();
        products.retain(|product| {
            known.contains(product) || shelves.contains_key(&StockId::new(product.as_str()))
        });
        if products.is_empty() {
            return Ok(());
        }
        let mut poll = self.counting.poll.lock().await;
        Box::pin(self.read_again(&products, &mut poll, &mut super::Reconciled::default())).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn products(ids: impl Iterator<Item = usize>) -> Vec<ProductId> {
        ids.map(|id| ProductId::new(id.to_string())).collect()
    }

    #[test]
    fn hints_are_put_together_and_bounded() {
        let hints = Hints::default();
        assert!(!hints.add(vec![]), "nothing to do");
        assert!(hints.add(products(0..2)), "somebody begins");
        assert!(!hints.add(products(0..3)), "and goes on");
        assert_eq!(hints.next(), Some(products(0..3)), "each once");
        assert!(!hints.add(products(0..2 * MOST)), "one reads already");
        let mut read = 0;
        while let Some(next) = hints.next() {
            assert!(next.len() <= AT_ONCE);
            read += next.len();
        }
        assert_eq!(read, MOST);
        assert!(hints.add(products(0..1)), "nobody is at work any more");
    }
}
