//! What the shop says of its stock, kept for a moment, beside the shelves of the state.
//!
//! A reading is taken for all ids that are not known well enough, by one at a time: equal questions cost one call. It
//! is laid over the shelves here, in memory: looking writes nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use moka::future::Cache;
use tokio::sync::Mutex;

use crate::{
    checkout::{
        ids::{ProductId, ShopId},
        state::{self, State},
        store::{self, Resolved, Store},
    },
    clock::Clock,
    stock::{self, Moment, Reading, Shelves, StockId},
};

/// Most ids that are kept.
const MOST_KEPT: u64 = 20_000;
/// Most products of one question to the shop.
const MOST_ASKED: usize = 100;
/// How long a question waits for those before it.
const WAIT: Duration = Duration::from_secs(5);

/// Why the stock could not be read.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Shop(#[from] store::Error),
    #[error(transparent)]
    State(#[from] state::Error),
}

/// What a product is counted under, and what was read of it.
#[derive(Debug, Default)]
struct Known {
    counted: Vec<Reading>,
    /// The shop's stock sequence when the reading had ended.
    to: u64,
}

/// The stock of one shop.
pub(super) struct Readings {
    shop: ShopId,
    store: Arc<dyn Store>,
    state: Arc<dyn State>,
    clock: Arc<dyn Clock>,
    kept: Cache<String, Arc<Known>>,
    turn: Mutex<()>,
}

impl Readings {
    pub(super) fn new(
        shop: ShopId,
        store: Arc<dyn Store>,
        state: Arc<dyn State>,
        clock: Arc<dyn Clock>,
        life: Duration,
    ) -> Self {
        let kept = Cache::builder().max_capacity(MOST_KEPT).time_to_live(life).build();
        Self { shop, store, state, clock, kept, turn: Mutex::new(()) }
    }

    /// The most that can be had of each: by what was read, less what is held here. Ids of which nobody knows are not
    /// among them.
    pub(super) async fn most(&self, ids: &[String]) -> BTreeMap<String, i64> {
        let known = self.known(ids).await;
        let mut stocks: Vec<StockId> =
            known.iter().flat_map(|(_, known)| &known.counted).map(|reading| reading.stock.clone()).collect();
        stocks.sort_unstable();
        stocks.dedup();
        if stocks.is_empty() {
            return BTreeMap::new();
        }
        let shelves = self.state.shelves(&self.shop, Some(&stocks)).await.unwrap_or_else(|error| {
            tracing::warn!(shop = %self.shop, %error, "what is held is not taken off what is published");
            Shelves::new()
        });
        let now = self.clock.now().timestamp_millis();
        known.into_iter().filter_map(|(id, known)| Some((id, most(&known, &shelves, now)?))).collect()
    }

    async fn known(&self, ids: &[String]) -> Vec<(String, Arc<Known>)> {
        let (mut known, missing) = self.kept_of(ids).await;
        if missing.is_empty() {
            return known;
        }
        let Ok(_turn) = tokio::time::timeout(WAIT, self.turn.lock()).await else {
            return known;
        };
        // The one before may have read the same.
        let (read, missing) = self.kept_of(&missing).await;
        known.extend(read);
        if missing.is_empty() {
            return known;
        }
        let mut read = self.read(&missing).await.unwrap_or_else(|error| {
            tracing::warn!(shop = %self.shop, %error, "the stock could not be read");
            BTreeMap::new()
        });
        for id in missing {
            // What told nothing is not asked again at once either.
            let one = Arc::new(read.remove(&id).unwrap_or_default());
            self.kept.insert(id.clone(), Arc::clone(&one)).await;
            known.push((id, one));
        }
        known
    }

    async fn kept_of(&self, ids: &[String]) -> (Vec<(String, Arc<Known>)>, Vec<String>) {
        let (mut known, mut missing) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            match self.kept.get(id).await {
                Some(kept) => known.push((id.clone(), kept)),
                None => missing.push(id.clone()),
            }
        }
        (known, missing)
    }

    async fn read(&self, ids: &[String]) -> Result<BTreeMap<String, Known>, Error> {
        let from = self.state.observe(&self.shop, Vec::new()).await?;
        let resolved = self.store.resolve(ids).await?;
        let products: Vec<(ProductId, &String)> = resolved
            .into_iter()
            .zip(ids)
            .filter_map(|(resolved, id)| match resolved {
                Resolved::Product(product) => Some((product, id)),
                Resolved::Unknown => None,
            })
            .collect();
        let mut read = BTreeMap::new();
        for part in products.chunks(MOST_ASKED) {
            let asked: Vec<ProductId> = part.iter().map(|(product, _)| product.clone()).collect();
            for told in self.store.stock(&asked, from).await? {
                for (_, id) in part.iter().filter(|(product, _)| *product == told.product) {
                    read.insert((*id).clone(), Known { counted: told.counted.clone(), to: from });
                }
            }
        }
        if read.values().any(|known| !known.counted.is_empty()) {
            let to = self.state.observe(&self.shop, Vec::new()).await?;
            for known in read.values_mut() {
                known.to = to;
            }
        }
        Ok(read)
    }
}

/// The most that anybody can have of all that a product is counted under.
fn most(known: &Known, shelves: &Shelves, now: i64) -> Option<i64> {
    let shelf =
        |reading: &Reading| (reading.stock.clone(), shelves.get(&reading.stock).cloned().unwrap_or_default());
    let mut own: Shelves = known.counted.iter().map(shelf).collect();
    let mut sequence = known.to;
    stock::observe(
        &mut own,
        &known.counted,
        &Moment { now, owner: "", lives: &|_| true, sequence: &mut sequence },
    );
    own.values().filter_map(|shelf| shelf.upper_bound("")).min()
}

#[cfg(test)]
#[path = "readings_tests.rs"]
mod tests;
