//! The shop's products as a catalogue ([`Shelf`]).
//!
//! A page costs one list of products and, if there are variable ones, one list of their variations: no more than
//! [`MOST_VARIATIONS`], dealt out among the products in turns. Ids cost, at most, one call each for: article numbers,
//! products, variations, and products that only a variation has led to. The last is not needed for variations
//! whose product has been seen lately.
//!
//! `GET /products/{id}` is asked only for one id that nothing is known of: on older shops it shows drafts, too, which
//! are not purchasable and so are not offered. Lists hold published products only.

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
use reqwest::Method;
use serde_json::Value;

use self::{
    translate::{Context, shared_skus},
    wire::{FIELDS, Item},
};
use super::{
    UNSEEN, WooStore,
    client::{Answer, Call, NO_BODY},
    resolve::{self, ItemIds},
};
use crate::{
    catalog::{Bounds, Found, Page, Product, Query, Shelf},
    checkout::{ids::ProductId, store::Error},
};

/// As many variations as one list brings.
const MOST_VARIATIONS: usize = 100;
/// As many ids as one list is asked for.
const AT_ONCE: usize = 50;
/// How many variations are remembered with their product, and for how long: that never changes.
const PARENTS_KEPT: u64 = 50_000;
const PARENTS_KEPT_FOR: Duration = Duration::from_hours(12);

/// What is remembered of a shop's catalogue.
#[derive(Debug)]
pub(super) struct Memory {
    /// Variations and their products; made at the first.
    parents: OnceLock<Cache<String, String>>,
    /// With how many decimals prices are counted; [`UNSEEN`] before the first.
    decimals: AtomicU32,
}

impl Memory {
    pub(super) const fn new() -> Self {
        Self { parents: OnceLock::new(), decimals: AtomicU32::new(UNSEEN) }
    }

    fn parents(&self) -> &Cache<String, String> {
        self.parents.get_or_init(|| {
            Cache::builder().max_capacity(PARENTS_KEPT).time_to_live(PARENTS_KEPT_FOR).build()
        })
    }
}

/// What has come from the shop.
#[derive(Default)]
struct Hand {
    products: BTreeMap<String, Item>,
    variations: BTreeMap<String, Item>,
    /// Ids that the shop was asked for as products.
    asked: BTreeSet<String>,
}

impl Hand {
    fn take(&mut self, items: Vec<Item>) {
        for item in items {
            let kind = if item.is_variation() { &mut self.variations } else { &mut self.products };
            kind.insert(item.id.clone(), item);
        }
    }

    fn holds(&self, id: &str) -> bool {
        self.products.contains_key(id) || self.variations.contains_key(id)
    }

    /// The products that are meant by their own ids; with `families` those of variations, too.
    fn named<'a>(&'a self, meant: &'a [Option<String>], families: bool) -> Vec<&'a str> {
        let product = |id: &'a String| match self.variations.get(id) {
            Some(variation) => families.then_some(variation.parent.as_str()),
            None => Some(id.as_str()),
        };
        let mut seen = BTreeSet::new();
        meant.iter().flatten().filter_map(product).filter(|id| seen.insert(*id)).collect()
    }

    /// Variations to ask for, in turns: the first of every product, the second of every product, …
    fn deal(&self, products: &[&str], room: usize) -> Vec<String> {
        let lists: Vec<&Item> = products
            .iter()
            .filter_map(|id| self.products.get(*id))
            .filter(|product| product.is_variable() && product.is_offered())
            .collect();
        let longest = lists.iter().map(|product| product.variations.len()).max().unwrap_or(0);
        (0..longest)
            .flat_map(|turn| lists.iter().filter_map(move |product| product.variations.get(turn)))
            .filter(|listed| !self.variations.contains_key(&listed.id))
            .take(room)
            .map(|listed| listed.id.clone())
            .collect()
    }
}

impl WooStore {
    /// One list of products or variations, with what the headers count.
    async fn list(&self, query: &[(&str, &str)]) -> Result<(Vec<Item>, Answer), Error> {
        let call = self.reads();
        let mut query = query.to_vec();
        query.push(("_fields", FIELDS));
        let answer = self.api.call(call, Method::GET, "/products", &query, None, NO_BODY).await?;
        let items = self.read(&answer, call).await?;
        Ok((items, answer))
    }

    /// Reads a list. What cannot be understood is left out, unless that is everything.
    async fn read(&self, answer: &Answer, call: Call) -> Result<Vec<Item>, Error> {
        let listed: Vec<Value> = answer.read(call)?;
        let all = listed.len();
        let mut items = Vec::with_capacity(all);
        for value in listed {
            match serde_path_to_error::deserialize::<_, Item>(value) {
                Ok(item) => items.push(item),
                Err(error) => tracing::warn!(path = %error.path(), "a product cannot be understood"),
            }
        }
        if items.is_empty() && all > 0 {
            return Err(Error::Unintelligible { what: "no product is as expected".to_owned(), wrote: false });
        }
        for item in &items {
            self.catalog.decimals.store(item.prices.unit.currency_minor_unit, Ordering::Relaxed);
            if item.is_variation() {
                self.catalog.parents().insert(item.id.clone(), item.parent.clone()).await;
            }
            for listed in &item.variations {
                self.catalog.parents().insert(listed.id.clone(), item.id.clone()).await;
            }
        }
        Ok(items)
    }

    async fn products(&self, hand: &mut Hand, ids: BTreeSet<String>) -> Result<(), Error> {
        let ids: Vec<String> = ids.into_iter().filter(|id| !hand.asked.contains(id)).collect();
        // More than one list is asked for more ids than a look-up takes: never by default.
        for ids in ids.chunks(2 * AT_ONCE) {
            let (items, _) = self.list(&[("include", &ids.join(",")), ("per_page", "100")]).await?;
            hand.take(items);
        }
        hand.asked.extend(ids);
        Ok(())
    }

    async fn variations(&self, hand: &mut Hand, ids: &[String]) -> Result<(), Error> {
        for ids in ids.chunks(MOST_VARIATIONS) {
            let query = [("type", "variation"), ("include", &*ids.join(",")), ("per_page", "100")];
            hand.take(self.list(&query).await?.0);
        }
        Ok(())
    }

    /// What the shop has under article numbers: product and variation ids, whole or to be asked for.
    async fn by_sku(&self, hand: &mut Hand, ids: &[String]) -> Result<BTreeMap<String, String>, Error> {
        let mut found = BTreeMap::new();
        let mut open = Vec::new();
        for id in ids.iter().filter(|id| self.resolver.may_be_sku(id)) {
            match self.resolver.recall(id).await {
                Some(Some(product)) => {
                    found.insert(id.clone(), product.as_str().to_owned());
                }
                Some(None) => {}
                None => open.push(id.as_str()),
            }
        }
        // As for checkouts: a number with a comma goes alone.
        let (alone, together): (Vec<&str>, Vec<&str>) = open.into_iter().partition(|sku| sku.contains(','));
        for asked in together.chunks(AT_ONCE).chain(alone.chunks(1)) {
            let (items, _) = self.list(&[("sku", &asked.join(",")), ("per_page", "100")]).await?;
            for sku in asked {
                let has = |item: &&Item| item.sku.as_deref().is_some_and(|own| resolve::is_sku(own, sku));
                let mut hits = items.iter().filter(has);
                let hit = match (hits.next(), hits.next()) {
                    (Some(item), None) => Some(item.id.clone()),
                    _ => None,
                };
                self.resolver.learn(sku, hit.clone().map(ProductId::new)).await;
                found.extend(hit.map(|id| ((*sku).to_owned(), id)));
            }
            hand.asked.extend(items.iter().filter(|item| !item.is_variation()).map(|item| item.id.clone()));
            hand.take(items);
        }
        Ok(found)
    }

    /// The one thing with an id that nothing is known of.
    async fn one(&self, hand: &mut Hand, id: &str) -> Result<(), Error> {
        let call = self.reads();
        let path = format!("/products/{id}");
        let query = [("_fields", FIELDS)];
        let answer = self.api.call(call, Method::GET, &path, &query, None, NO_BODY).await?;
        hand.asked.insert(id.to_owned());
        if answer.status.as_u16() == 404
            && answer.api_error().is_some_and(|error| error.code == "woocommerce_rest_product_invalid_id")
        {
            return Ok(());
        }
        let item: Value = answer.read(call)?;
        let listed = Answer { body: Value::Array(vec![item]).to_string().into_bytes(), ..answer };
        hand.take(self.read(&listed, call).await?);
        Ok(())
    }

    /// The shop's ids that are meant, in the order asked.
    async fn meant(&self, hand: &mut Hand, ids: &[String]) -> Result<Vec<Option<String>>, Error> {
        let skus = self.by_sku(hand, ids).await?;
        let meant = |id: &String| {
            let number = resolve::number(id).map(|id| id.as_str().to_owned());
            let sku = skus.get(id).cloned();
            match self.resolver.kind() {
                ItemIds::Id => number.or(sku),
                ItemIds::Sku => sku.or(number),
            }
        };
        Ok(ids.iter().map(meant).collect())
    }

    fn context(&self, hand: &Hand) -> Context<'_> {
        Context {
            shop: &self.shop,
            ids: self.resolver.kind(),
            currency: self.currency,
            shared: shared_skus(hand.products.values().chain(hand.variations.values())),
            most: MOST_VARIATIONS,
        }
    }

    /// The shop's products for a query, with bounds counted in so many decimals.
    async fn page(&self, query: &Query, decimals: u32) -> Result<(Vec<Item>, Answer), Error> {
        let (page, limit) = (query.page.to_string(), query.limit.to_string());
        let categories = query.filter.categories.join(",");
        let Bounds { min, max } = query.filter.price;
        let min = min.map(|min| self.counted(min, decimals, false).to_string());
        let max = max.map(|max| self.counted(max, decimals, true).to_string());
        let mut list = vec![("page", page.as_str()), ("per_page", limit.as_str())];
        match &query.text {
            Some(text) => list.extend([("search", text.as_str()), ("catalog_visibility", "search")]),
            None => list.push(("catalog_visibility", "catalog")),
        }
        if !categories.is_empty() {
            list.push(("category", &categories));
        }
        list.extend(min.as_deref().map(|min| ("min_price", min)));
        list.extend(max.as_deref().map(|max| ("max_price", max)));
        self.list(&list).await
    }

    /// A bound in the shop's own decimals; where it counts coarser, the wider one.
    fn counted(&self, minor: i64, decimals: u32, up: bool) -> i64 {
        let iso = self.currency.exponent();
        if decimals >= iso {
            return minor.saturating_mul(10_i64.saturating_pow(decimals - iso));
        }
        let factor = 10_i64.saturating_pow(iso - decimals);
        let rest = i64::from(up && minor.rem_euclid(factor) != 0);
        minor.div_euclid(factor) + rest
    }

    /// [`WooStore::page`] in the decimals that the shop really counts in.
    async fn counted_page(&self, query: &Query) -> Result<(Vec<Item>, Answer), Error> {
        let known = || match self.catalog.decimals.load(Ordering::Relaxed) {
            UNSEEN => None,
            decimals => Some(decimals),
        };
        let assumed = known().unwrap_or_else(|| self.currency.exponent());
        let first = self.page(query, assumed).await?;
        if !query.filter.price.is_set() {
            return Ok(first);
        }
        if known().is_none() {
            // Nothing fits, and no price was ever seen: any product tells.
            self.list(&[("per_page", "1")]).await?;
        }
        match known() {
            Some(counted) if counted != assumed => self.page(query, counted).await,
            Some(_) | None => Ok(first),
        }
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
    async fn search(&self, query: &Query) -> Result<Page, Error> {
        let (items, answer) = self.counted_page(query).await?;
        let brought = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let more = header(&answer, "x-wp-totalpages")
            .map_or(brought >= query.limit, |pages| u64::from(query.page) < pages);
        let order: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
        let mut hand = Hand::default();
        hand.take(items);
        let ids: Vec<&str> = order.iter().map(String::as_str).collect();
        let wanted = hand.deal(&ids, MOST_VARIATIONS);
        self.variations(&mut hand, &wanted).await?;
        let shown = self.context(&hand).all(&hand)?;
        Ok(Page {
            products: order.iter().filter_map(|id| shown.get(id).cloned()).collect(),
            total: header(&answer, "x-wp-total"),
            more,
        })
    }

    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, Error> {
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
        let more = hand.deal(&hand.named(&meant, alone), room);
        wanted.extend(more.into_iter().filter(|id| !wanted.contains(id)).collect::<Vec<_>>());
        self.variations(&mut hand, &wanted).await?;
        // Products that only a variation has led to.
        let parents = hand.variations.values().map(|variation| variation.parent.clone());
        let parents: BTreeSet<String> = parents.filter(|parent| !hand.asked.contains(parent)).collect();
        if !parents.is_empty() {
            self.products(&mut hand, parents).await?;
            if alone {
                let wanted = hand.deal(&hand.named(&meant, alone), MOST_VARIATIONS);
                self.variations(&mut hand, &wanted).await?;
            }
        }
        let context = self.context(&hand);
        let shown = context.all(&hand)?;
        let found = |id: &str| {
            let item = hand.products.get(id).or_else(|| hand.variations.get(id))?;
            let product = shown.get(if item.is_variation() { item.parent.as_str() } else { id })?;
            let variant = (!item.is_variable()).then(|| context.id(item));
            let offered = variant.as_ref().is_none_or(|variant| product.variant(variant).is_some());
            offered.then(|| Found { product: Arc::clone(product), variant })
        };
        Ok(meant.iter().map(|id| found(id.as_deref()?)).collect())
    }
}
