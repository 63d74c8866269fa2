//! What item ids on the wire stand for.
//!
//! Accepted is a product or variation id, or an article number (SKU), each whole: never a beginning, never a
//! number cut out of a text (`42-blue` is not 42). The configured kind is looked at first; the other counts
//! only where it cannot be meant otherwise: where article numbers are the ids, a number is a product's id only if
//! the shop has no article number like it. Two products with one article number are none.
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
/// As many products as one call brings.
const MOST_PRODUCTS: usize = 100;

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

/// What an article number stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sku {
    /// One product or variation.
    Names(ProductId),
    /// The shop has no such number.
    Nothing,
    /// More than one thing has it.
    Several,
}

/// Resolves ids and remembers article numbers.
#[derive(Debug)]
pub(super) struct Resolver {
    kind: ItemIds,
    known: Cache<String, ProductId>,
    /// Numbers that name nothing, or more than one thing.
    unknown: Cache<String, Sku>,
    /// Product ids that are no article numbers.
    free: Cache<String, ()>,
}

impl Resolver {
    pub(super) fn new(kind: ItemIds, known_for: Duration, unknown_for: Duration) -> Self {
        Self {
            kind,
            known: Cache::builder().max_capacity(KEPT).time_to_live(known_for).build(),
            unknown: Cache::builder().max_capacity(KEPT).time_to_live(unknown_for).build(),
            free: Cache::builder().max_capacity(KEPT).time_to_live(known_for).build(),
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
                self.meant(item, found.get(item.as_str())).map_or(Resolved::Unknown, Resolved::Product)
            })
            .collect())
    }

    /// What an id stands for, with what the shop said of it as an article number.
    pub(super) fn meant(&self, item: &str, sku: Option<&Sku>) -> Option<ProductId> {
        match (self.kind, sku) {
            (ItemIds::Id, Some(Sku::Names(product))) => number(item).or_else(|| Some(product.clone())),
            (ItemIds::Sku, Some(Sku::Names(product))) => Some(product.clone()),
            // Nobody can tell which is meant; a product whose own number looks like it is none of them.
            (_, Some(Sku::Several)) => None,
            (_, Some(Sku::Nothing) | None) => number(item),
        }
    }

    /// Which kind of id agents use.
    pub(super) const fn kind(&self) -> ItemIds {
        self.kind
    }

    /// What is known of an article number.
    pub(super) async fn recall(&self, sku: &str) -> Option<Sku> {
        if let Some(product) = self.known.get(sku).await {
            return Some(Sku::Names(product));
        }
        self.unknown.get(sku).await
    }

    /// Keeps what the shop said of an article number.
    pub(super) async fn learn(&self, sku: &str, named: Sku) {
        match named {
            Sku::Names(product) => self.known.insert(sku.to_owned(), product).await,
            named => self.unknown.insert(sku.to_owned(), named).await,
        }
    }

    /// Those of the shop's product ids that are no article numbers: where article numbers are the ids, only these
    /// lead back to their products. One call for those that nothing is known of.
    pub(super) async fn no_skus(
        &self,
        api: &StoreApi,
        call: Call,
        ids: BTreeSet<&str>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut free = BTreeSet::new();
        let mut open = Vec::new();
        for id in ids {
            if self.free.contains_key(id) {
                free.insert(id.to_owned());
                continue;
            }
            match self.recall(id).await {
                Some(Sku::Nothing) => {
                    free.insert(id.to_owned());
                }
                Some(Sku::Names(_) | Sku::Several) => {}
                None => open.push(id),
            }
        }
        if open.is_empty() {
            return Ok(free);
        }
        let products = self.ask(api, call, &open).await?;
        if products.len() >= MOST_PRODUCTS {
            // There may be more that are not told.
            return Ok(free);
        }
        for id in open.into_iter().filter(|id| !products.iter().any(|product| has(product, id))) {
            self.free.insert(id.to_owned(), ()).await;
            free.insert(id.to_owned());
        }
        Ok(free)
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
    ) -> Result<BTreeMap<String, Sku>, Error> {
        let mut found = BTreeMap::new();
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for item in items.iter().filter(|item| self.may_be_sku(item)) {
            match self.recall(item).await {
                Some(named) => {
                    found.insert(item.clone(), named);
                }
                None => {
                    open.insert(item);
                }
            }
        }
        // A comma parts two numbers, except where the whole text is tried as one: such a number goes alone.
        let (alone, together): (Vec<&str>, Vec<&str>) = open.into_iter().partition(|sku| goes_alone(sku));
        for asked in together.chunks(AT_ONCE).chain(alone.chunks(1)) {
            let products = self.ask(api, call, asked).await?;
            for sku in asked {
                let hits = products.iter().filter(|product| has(product, sku));
                let named = named(hits.map(|product| product.id.as_str()));
                self.learn(sku, named.clone()).await;
                found.insert((*sku).to_owned(), named);
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

/// Whether an article number takes a call of its own: a comma parts two numbers.
pub(super) fn goes_alone(sku: &str) -> bool {
    sku.contains(',')
}

/// What an article number stands for that these have.
pub(super) fn named<'a>(mut ids: impl Iterator<Item = &'a str>) -> Sku {
    match (ids.next(), ids.next()) {
        (Some(id), None) => Sku::Names(ProductId::new(id)),
        (None, _) => Sku::Nothing,
        (Some(_), Some(_)) => Sku::Several,
    }
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
