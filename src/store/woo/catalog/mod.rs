//! The shop's products as a catalogue ([`Shelf`]).
//!
//! A page costs one list of products and, if there are variable ones, one list of their variations: no more than
//! [`MOST_VARIATIONS`], dealt out among the products in turns. With a price filter and more of them than that, those
//! are asked for that fit. Ids cost, at most, one call each for: article numbers, one article number with a comma,
//! products, variations, and products that only a variation has led to. The last is not needed for variations whose
//! product has been seen lately.
//!
//! Where article numbers are the ids, a thing without one goes by its number, which has to be no article number of
//! another thing: one more call, whose answer is kept. Article numbers that two things have shown are not ids.
//!
//! `GET /products/{id}` is asked only for one id that nothing is known of: on older shops it shows drafts, too, which
//! are not purchasable and so are not offered. Lists hold published products only.
//!
//! | file | owns |
//! |---|---|
//! | `calls` | the calls |
//! | `hand` | what has come, and which variations to ask for |
//! | `translate` | products as the catalogue has them |
//! | `wire` | products as the Store API lists them |

mod calls;
mod hand;
mod translate;
#[cfg(test)]
mod translate_tests;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use moka::future::Cache;

use self::{hand::Hand, translate::Context};
use super::{UNSEEN, WooStore, client::Answer, resolve};
use crate::{
    catalog::{Branch, Found, Page, Product, Query, Shelf, Wish},
    checkout::store::Error,
};

/// As many variations as one list brings.
const MOST_VARIATIONS: usize = 100;
/// How many variations are remembered with their product, and for how long: that never changes.
const PARENTS_KEPT: u64 = 50_000;
const PARENTS_KEPT_FOR: Duration = Duration::from_hours(12);
/// How long it is remembered who showed an article number: a merchant may give it to another.
const OWNERS_KEPT_FOR: Duration = Duration::from_mins(5);

/// What is remembered of a shop's catalogue.
#[derive(Debug)]
pub(super) struct Memory {
    /// Variations and their products; made at the first.
    parents: OnceLock<Cache<String, String>>,
    /// Article numbers, and the one thing that has shown them; `None`: more than one has.
    owners: OnceLock<Cache<String, Option<String>>>,
    /// With how many decimals prices are counted; [`UNSEEN`] before the first.
    decimals: AtomicU32,
}

impl Memory {
    pub(super) const fn new() -> Self {
        Self { parents: OnceLock::new(), owners: OnceLock::new(), decimals: AtomicU32::new(UNSEEN) }
    }

    fn parents(&self) -> &Cache<String, String> {
        self.parents.get_or_init(|| {
            Cache::builder().max_capacity(PARENTS_KEPT).time_to_live(PARENTS_KEPT_FOR).build()
        })
    }

    fn decimals(&self) -> Option<u32> {
        Some(self.decimals.load(Ordering::Relaxed)).filter(|decimals| *decimals != UNSEEN)
    }

    /// Whether another thing has shown this article number, too.
    async fn is_shared(&self, sku: &str, id: &str) -> bool {
        let owners = self.owners.get_or_init(|| {
            Cache::builder().max_capacity(PARENTS_KEPT).time_to_live(OWNERS_KEPT_FOR).build()
        });
        let shared = match owners.get(sku).await {
            Some(Some(owner)) => owner != id,
            Some(None) => true,
            None => false,
        };
        owners.insert(sku.to_owned(), (!shared).then(|| id.to_owned())).await;
        shared
    }
}

impl Context<'_> {
    /// All that is at hand and offered, by the shop's ids. What cannot be understood is left out, unless that is
    /// everything.
    fn all(&self, hand: &Hand) -> Result<BTreeMap<String, Arc<Product>>, Error> {
        let mut shown = BTreeMap::new();
        let mut failed = None;
        for (id, item) in &hand.products {
            match self.product(item, &hand.variations) {
                Ok(Some(product)) => {
                    shown.insert(id.clone(), Arc::new(product));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(product = %id, %error, "a product cannot be shown");
                    failed = Some(error);
                }
            }
        }
        match failed {
            Some(error) if shown.is_empty() => Err(error),
            Some(_) | None => Ok(shown),
        }
    }
}

fn header(answer: &Answer, name: &str) -> Option<u64> {
    answer.header(name)?.parse().ok()
}

#[async_trait]
impl Shelf for WooStore {
    fn takes_its_own_call(&self, id: &str) -> bool {
        resolve::goes_alone(id) && self.resolver.may_be_sku(id)
    }

    async fn categories(&self) -> Result<Vec<Branch>, Error> {
        self.all_categories().await
    }

    async fn search(&self, query: &Query, categories: &[String]) -> Result<Page, Error> {
        let (items, answer) = self.counted_page(query, &categories.join(",")).await?;
        let brought = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let more = header(&answer, "x-wp-totalpages")
            .map_or(brought >= query.limit, |pages| u64::from(query.page) < pages);
        let order: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
        let mut hand = Hand::default();
        hand.take(items);
        let ids: Vec<&str> = order.iter().map(String::as_str).collect();
        let mut wanted = hand.deal(&ids, MOST_VARIATIONS + 1, None);
        if query.filter.price.is_set() && wanted.len() > MOST_VARIATIONS {
            let variable = hand.variable(&ids);
            self.fitting(&mut hand, &variable, query.filter.price).await?;
        } else {
            wanted.truncate(MOST_VARIATIONS);
            self.variations(&mut hand, &wanted).await?;
        }
        let shown = self.context(&hand).await?.all(&hand)?;
        Ok(Page {
            products: order.iter().filter_map(|id| shown.get(id).cloned()).collect(),
            total: header(&answer, "x-wp-total"),
            more,
        })
    }

    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, Error> {
        self.find_wished(ids, None).await
    }

    async fn closely(&self, id: &str, wish: &Wish) -> Result<Option<Found>, Error> {
        Ok(self.find_wished(&[id.to_owned()], Some(wish)).await?.into_iter().next().flatten())
    }
}

impl WooStore {
    async fn find_wished(&self, ids: &[String], wish: Option<&Wish>) -> Result<Vec<Option<Found>>, Error> {
        let alone = ids.len() == 1;
        let mut hand = Hand::default();
        let meant = self.meant(&mut hand, ids).await?;
        // Products to ask for, and numbers of variations; a number that nothing is known of can be either.
        let mut products: BTreeSet<String> = hand.variations.values().map(|v| v.parent.clone()).collect();
        let (mut open, mut unclear) = (BTreeSet::new(), BTreeSet::new());
        for id in meant.iter().flatten().filter(|id| !hand.holds(id)) {
            if let Some(parent) = self.catalog.parents().get(id).await {
                products.insert(parent);
                open.insert(id.clone());
            } else {
                unclear.insert(id.clone());
            }
        }
        if let Some(id) = unclear.first().filter(|_| alone).cloned() {
            unclear.clear();
            self.one(&mut hand, &id).await?;
        } else {
            products.extend(unclear.iter().cloned());
            self.products(&mut hand, products).await?;
        }
        open.extend(unclear.into_iter().filter(|id| !hand.holds(id)));
        let mut wanted: Vec<String> = open.into_iter().collect();
        let room = MOST_VARIATIONS.saturating_sub(wanted.len());
        let more = hand.deal(&hand.named(&meant, alone), room, wish);
        wanted.extend(more.into_iter().filter(|id| !wanted.contains(id)).collect::<Vec<_>>());
        self.variations(&mut hand, &wanted).await?;
        // Products that only a variation has led to.
        let parents = hand.variations.values().map(|variation| variation.parent.clone());
        let parents: BTreeSet<String> = parents.filter(|parent| !hand.asked.contains(parent)).collect();
        if !parents.is_empty() {
            self.products(&mut hand, parents).await?;
            if alone {
                let wanted = hand.deal(&hand.named(&meant, alone), MOST_VARIATIONS, wish);
                self.variations(&mut hand, &wanted).await?;
            }
        }
        let context = self.context(&hand).await?;
        let shown = context.all(&hand)?;
        let found = |id: &str| {
            let item = hand.products.get(id).or_else(|| hand.variations.get(id))?;
            let product = shown.get(if item.is_variation() { item.parent.as_str() } else { id })?;
            let variant = if item.is_variable() { None } else { Some(context.id(item)?) };
            let offered = variant.as_ref().is_none_or(|variant| product.variant(variant).is_some());
            offered.then(|| Found { product: Arc::clone(product), variant })
        };
        Ok(meant.iter().map(|id| found(id.as_deref()?)).collect())
    }
}
