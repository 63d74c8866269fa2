//! What item ids on the wire stand for.
//!
//! Accepted is a product or variation id, or an article number (SKU), each whole: never a beginning, never a
//! number cut out of a text (`42-blue` is not 42). The configured kind is looked at first; the other counts
//! only where it cannot be meant otherwise. Two products with one article number are none.
//!
//! What the shop said of an article number is kept for a while; nothing rests on it, since the shop has the
//! last word when the product is put into a cart.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use moka::future::Cache;
use reqwest::Method;
use serde::Deserialize;

use super::{
    client::{Call, NO_BODY, StoreApi},
    text, wire,
};
use crate::checkout::{
    ids::ProductId,
    store::{Error, Resolved},
};

/// The longest article number that WooCommerce keeps.
pub(super) const LONGEST: usize = 100;
/// How many article numbers one call asks for: far from any limit on addresses or answers.
const AT_ONCE: usize = 40;
/// How many answers are kept.
const KEPT: u64 = 20_000;

/// Which kind of id agents use with a shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemIds {
    /// Product and variation ids.
    #[default]
    Id,
    /// Article numbers (SKUs).
    Sku,
}

/// Resolves ids and remembers article numbers.
#[derive(Debug)]
pub(super) struct Resolver {
    kind: ItemIds,
    known: Cache<String, ProductId>,
    unknown: Cache<String, ()>,
}

impl Resolver {
    pub(super) fn new(kind: ItemIds, known_for: Duration, unknown_for: Duration) -> Self {
        Self {
            kind,
            known: Cache::builder().max_capacity(KEPT).time_to_live(known_for).build(),
            unknown: Cache::builder().max_capacity(KEPT).time_to_live(unknown_for).build(),
        }
    }

    /// One answer for each id, in order; one call for all article numbers that are not known.
    pub(super) async fn resolve(
        &self,
        api: &StoreApi,
        call: Call,
        items: &[String],
    ) -> Result<Vec<Resolved>, Error> {
        let found = self.skus(api, call, items).await?;
        Ok(items
            .iter()
            .map(|item| {
                let by_sku = found.get(item.as_str()).cloned();
                let product = match self.kind {
                    ItemIds::Id => number(item).or(by_sku),
                    ItemIds::Sku => by_sku.or_else(|| number(item)),
                };
                product.map_or(Resolved::Unknown, Resolved::Product)
            })
            .collect())
    }

    /// Which kind of id agents use.
    pub(super) const fn kind(&self) -> ItemIds {
        self.kind
    }

    /// What is known of an article number; `Some(None)`: that there is none.
    pub(super) async fn recall(&self, sku: &str) -> Option<Option<ProductId>> {
        if let Some(product) = self.known.get(sku).await {
            return Some(Some(product));
        }
        self.unknown.get(sku).await.map(|()| None)
    }

    /// Keeps what the shop said of an article number.
    pub(super) async fn learn(&self, sku: &str, product: Option<ProductId>) {
        match product {
            Some(product) => self.known.insert(sku.to_owned(), product).await,
            None => self.unknown.insert(sku.to_owned(), ()).await,
        }
    }

    /// Whether an id may be an article number: in `id` mode a number never is.
    pub(super) fn may_be_sku(&self, item: &str) -> bool {
        let usable = !item.trim().is_empty() && item.len() <= LONGEST;
        usable && (self.kind == ItemIds::Sku || number(item).is_none())
    }

    async fn skus(
        &self,
        api: &StoreApi,
        call: Call,
        items: &[String],
    ) -> Result<BTreeMap<String, ProductId>, Error> {
        let mut found = BTreeMap::new();
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for item in items.iter().filter(|item| self.may_be_sku(item)) {
            match self.recall(item).await {
                Some(Some(product)) => {
                    found.insert(item.clone(), product);
                }
                Some(None) => {}
                None => {
                    open.insert(item);
                }
            }
        }
        // A comma parts two numbers, except where the whole text is tried as one: such a number goes alone.
        let (alone, together): (Vec<&str>, Vec<&str>) = open.into_iter().partition(|sku| sku.contains(','));
        for asked in together.chunks(AT_ONCE).chain(alone.chunks(1)) {
            let products = self.ask(api, call, asked).await?;
            for sku in asked {
                let mut hits = products.iter().filter(|product| has(product, sku));
                match (hits.next(), hits.next()) {
                    (Some(product), None) => {
                        let id = ProductId::new(product.id.clone());
                        self.learn(sku, Some(id.clone())).await;
                        found.insert((*sku).to_owned(), id);
                    }
                    _ => self.learn(sku, None).await,
                }
            }
        }
        Ok(found)
    }

    async fn ask(&self, api: &StoreApi, call: Call, skus: &[&str]) -> Result<Vec<wire::Product>, Error> {
        let list = skus.join(",");
        let query = [("sku", list.as_str()), ("_fields", "id,sku,type"), ("per_page", "100")];
        api.call(call, Method::GET, "/products", &query, None, NO_BODY).await?.read(call)
    }
}

/// Whether a product has exactly this article number; the shop may write it with entities.
fn has(product: &wire::Product, sku: &str) -> bool {
    product.sku.as_deref().is_some_and(|found| is_sku(found, sku))
}

/// Whether what the shop wrote is this article number.
pub(super) fn is_sku(written: &str, sku: &str) -> bool {
    written == sku || text::decoded(written) == sku
}

/// The text as an id: decimal digits from end to end, as a shop would write them. Longer ones (an EAN) are
/// article numbers: no shop has counted that far.
pub(super) fn number(item: &str) -> Option<ProductId> {
    let id: u32 = item.parse().ok().filter(|id| *id > 0)?;
    (id.to_string() == item).then(|| ProductId::new(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_number_is_an_id() {
        assert_eq!(number("42").unwrap().as_str(), "42");
        for not in ["42-blue", "042", "+42", " 42", "42 ", "0", "-1", "4.2", "", "99999999999999999999"] {
            assert_eq!(number(not), None, "{not}");
        }
    }

    #[test]
    fn article_numbers_match_exactly() {
        let product = |sku: &str| wire::Product { id: "1".to_owned(), sku: Some(sku.to_owned()) };
        assert!(has(&product("A&amp;B"), "A&B"));
        assert!(has(&product("MUG-01"), "MUG-01"));
        assert!(!has(&product("MUG-01"), "mug-01"));
        assert!(!has(&product("MUG-01"), "MUG"));
    }
}
