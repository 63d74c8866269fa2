//! Shelves in the model: the steps of `tillgate::stock` on a map.

use std::sync::MutexGuard;

use tillgate::{
    checkout::{ids::ShopId, state::Error},
    clock::Clock as _,
    stock::{Moment, Shelves},
};

use super::{Inner, Memory};

/// A shop's shelves and their sequence.
#[derive(Debug, Clone, Default)]
pub struct Stock {
    pub shelves: Shelves,
    pub sequence: u64,
}

impl Memory {
    /// What is known of a shop's stock.
    pub fn stock(&self, shop: &str) -> Stock {
        self.inner().stock.get(shop).cloned().unwrap_or_default()
    }

    /// Takes a step of one process; one that fails changes nothing.
    pub(super) fn stock_step<T>(
        &self,
        inner: &mut MutexGuard<'_, Inner>,
        (shop, owner): (&ShopId, u64),
        step: impl FnOnce(&mut Shelves, &mut Moment<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut stock = inner.stock.get(shop.as_str()).cloned().unwrap_or_default();
        let name = owner.to_string();
        let lives = |owner: &str| owner.parse().is_ok_and(|owner| inner.lives(owner));
        let mut moment = Moment {
            now: self.clock.now().timestamp_millis(),
            owner: &name,
            lives: &lives,
            sequence: &mut stock.sequence,
        };
        let done = step(&mut stock.shelves, &mut moment)?;
        stock.shelves.retain(|_, shelf| !shelf.is_empty());
        inner.stock.insert(shop.as_str().to_owned(), stock);
        Ok(done)
    }
}
