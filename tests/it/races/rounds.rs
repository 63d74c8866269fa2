//! Rounds of a race: shelves filled, carts filled, all buy, everything counted.

use std::{collections::BTreeSet, time::Duration};

use futures::future::join_all;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{
    lines::{Arrival, Goods, Payment, Race},
    shop::Shop,
};

/// What a buyer was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The shop's order.
    Bought(u64),
    SoldOut,
}

/// A kind of buyer: who fills carts, and where.
pub trait Buyers {
    type Cart;

    /// Buyer `number` of a round gets ready; all that is left to do is to buy.
    async fn fill(&self, number: usize, goods: &Goods) -> Self::Cart;

    /// Buys; anything but an order or a lack of stock fails the test.
    async fn buy(&self, cart: Self::Cart, payment: Payment) -> Told;
}

/// How one round ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Orders that were accepted.
    pub accepted: u32,
    /// What was left of each product; below zero if it was sold too often.
    pub left: Goods,
}

/// Runs a race as often as told. Equal seeds spread the arrivals alike.
pub async fn run<B: Buyers>(shop: &Shop, buyers: &B, race: &Race, rounds: u32, seed: u64) -> Vec<Round> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut ended = Vec::new();
    for _ in 0..rounds {
        ended.push(round(shop, buyers, race, &mut chance).await);
    }
    ended
}

async fn round<B: Buyers>(shop: &Shop, buyers: &B, race: &Race, chance: &mut StdRng) -> Round {
    shop.restock(&race.stock).await;
    let before = shop.placed().await;
    let fill = race.carts.iter().enumerate().map(|(number, goods)| buyers.fill(number, goods));
    let carts = join_all(fill).await;
    let mut told = Vec::new();
    match race.arrival {
        Arrival::InTurn => {
            for cart in carts {
                told.push(buyers.buy(cart, race.payment).await);
            }
        }
        Arrival::Together | Arrival::Within(_) => {
            let within = if let Arrival::Within(time) = race.arrival { time } else { Duration::ZERO };
            let buys = carts.into_iter().map(|cart| {
                let wait = chance.random_range(Duration::ZERO..=within);
                async move {
                    tokio::time::sleep(wait).await;
                    buyers.buy(cart, race.payment).await
                }
            });
            told = join_all(buys).await;
        }
    }
    let bought: Vec<u64> = told
        .iter()
        .filter_map(|told| if let Told::Bought(order) = told { Some(*order) } else { None })
        .collect();
    let placed: BTreeSet<u64> = shop.placed().await.difference(&before).copied().collect();
    assert_eq!(
        bought.iter().copied().collect::<BTreeSet<_>>(),
        placed,
        "orders told, and orders of the shop"
    );
    assert_eq!(bought.len(), placed.len(), "no order was told twice: {bought:?}");
    Round { accepted: u32::try_from(bought.len()).unwrap(), left: shop.left(&race.stock).await }
}
