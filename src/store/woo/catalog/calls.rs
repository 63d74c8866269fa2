//! The calls that the catalogue makes, and what they bring.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
};

use reqwest::Method;
use serde_json::Value;

use super::{
    super::{
        WooStore,
        client::{Answer, Call, NO_BODY},
        resolve::{self, ItemIds, Sku},
    },
    MOST_VARIATIONS,
    hand::Hand,
    translate::{Context, shared_skus},
    wire::{FIELDS, Item, ListedCategory},
};
use crate::{
    catalog::{Bounds, Branch, Query},
    checkout::store::Error,
};

/// As many ids as one list is asked for.
const AT_ONCE: usize = 50;
/// Asks for variations instead of products.
const VARIATIONS: (&str, &str) = ("type", "variation");

impl WooStore {
    /// One list of products or variations, with what the headers count.
    async fn list(&self, query: &[(&str, &str)]) -> Result<(Vec<Item>, Answer), Error> {
        let call = self.reads();
        let mut query = query.to_vec();
        query.push(("_fields", FIELDS));
        let answer = self.api.call(call, Method::GET, "/products", &query, None, NO_BODY).await?;
        let (items, left_out) = self.read(&answer, call).await?;
        if items.is_empty() && left_out > 0 && !query.contains(&VARIATIONS) {
            return Err(Error::Unintelligible { what: "no product is as expected".to_owned(), wrote: false });
        }
        Ok((items, answer))
    }

    /// Reads a list. What cannot be understood is left out, and counted.
    async fn read(&self, answer: &Answer, call: Call) -> Result<(Vec<Item>, usize), Error> {
        let listed: Vec<Value> = answer.read(call)?;
        let all = listed.len();
        let mut items = Vec::with_capacity(all);
        for value in listed {
            match serde_path_to_error::deserialize::<_, Item>(value) {
                Ok(item) => items.push(item),
                Err(error) => tracing::warn!(path = %error.path(), "a product cannot be understood"),
            }
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
        let left_out = all - items.len();
        Ok((items, left_out))
    }

    pub(super) async fn products(&self, hand: &mut Hand, ids: BTreeSet<String>) -> Result<(), Error> {
        let ids: Vec<String> = ids.into_iter().filter(|id| !hand.asked.contains(id)).collect();
        // More than one list is asked for more ids than a look-up takes: never by default.
        for ids in ids.chunks(2 * AT_ONCE) {
            let (items, _) = self.list(&[("include", &ids.join(",")), ("per_page", "100")]).await?;
            hand.take(items);
        }
        hand.asked.extend(ids);
        Ok(())
    }

    pub(super) async fn variations(&self, hand: &mut Hand, ids: &[String]) -> Result<(), Error> {
        for ids in ids.chunks(MOST_VARIATIONS) {
            let query = [VARIATIONS, ("include", &*ids.join(",")), ("per_page", "100")];
            hand.asked_variations.extend(ids.iter().cloned());
            hand.take(self.list(&query).await?.0);
        }
        Ok(())
    }

    /// Variations of these products within bounds, as many as one list holds.
    pub(super) async fn fitting(
        &self,
        hand: &mut Hand,
        products: &[String],
        price: Bounds,
    ) -> Result<(), Error> {
        let (min, max) = self.bounds(price, self.catalog.decimals().unwrap_or(self.currency.exponent()));
        let products = products.join(",");
        let mut query = vec![VARIATIONS, ("parent", products.as_str()), ("per_page", "100")];
        query.extend(min.as_deref().map(|min| ("min_price", min)));
        query.extend(max.as_deref().map(|max| ("max_price", max)));
        hand.take(self.list(&query).await?.0);
        Ok(())
    }

    /// What the shop has under article numbers.
    async fn by_sku(&self, hand: &mut Hand, ids: &[String]) -> Result<BTreeMap<String, Sku>, Error> {
        let mut found = BTreeMap::new();
        let mut open = Vec::new();
        for id in ids.iter().filter(|id| self.resolver.may_be_sku(id)) {
            match self.resolver.recall(id).await {
                Some(named) => {
                    found.insert(id.clone(), named);
                }
                None => open.push(id.as_str()),
            }
        }
        // A comma parts two numbers, except where the whole text is tried as one: such a number goes alone.
        let (alone, together): (Vec<&str>, Vec<&str>) =
            open.into_iter().partition(|sku| resolve::goes_alone(sku));
        for asked in together.chunks(AT_ONCE).chain(alone.chunks(1)) {
            let (items, _) = self.list(&[("sku", &asked.join(",")), ("per_page", "100")]).await?;
            for sku in asked {
                let has = |item: &&Item| item.sku.as_deref().is_some_and(|own| resolve::is_sku(own, sku));
                let named = resolve::named(items.iter().filter(has).map(|item| item.id.as_str()));
                self.resolver.learn(sku, named.clone()).await;
                found.insert((*sku).to_owned(), named);
            }
            // What shares its number with another is not what was asked for.
            let named: BTreeSet<&str> = found
                .values()
                .filter_map(|named| match named {
                    Sku::Names(product) => Some(product.as_str()),
                    Sku::Nothing | Sku::Several => None,
                })
                .collect();
            let items: Vec<Item> =
                items.into_iter().filter(|item| named.contains(item.id.as_str())).collect();
            hand.asked.extend(items.iter().filter(|item| !item.is_variation()).map(|item| item.id.clone()));
            hand.take(items);
        }
        Ok(found)
    }

    /// The one thing with an id that nothing is known of.
    pub(super) async fn one(&self, hand: &mut Hand, id: &str) -> Result<(), Error> {
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
        let (items, left_out) = self.read(&listed, call).await?;
        if left_out > 0 {
            return Err(Error::Unintelligible {
                what: "the product is not as expected".to_owned(),
                wrote: false,
            });
        }
        hand.take(items);
        Ok(())
    }

    /// The shop's ids that are meant, in the order asked.
    pub(super) async fn meant(&self, hand: &mut Hand, ids: &[String]) -> Result<Vec<Option<String>>, Error> {
        let skus = self.by_sku(hand, ids).await?;
        let meant = |id: &String| Some(self.resolver.meant(id, skus.get(id))?.as_str().to_owned());
        Ok(ids.iter().map(meant).collect())
    }

    /// What translating needs; where article numbers are the ids, at most one call more ([`Context::free`]).
    pub(super) async fn context<'a>(&'a self, hand: &'a Hand) -> Result<Context<'a>, Error> {
        let all = || hand.products.values().chain(hand.variations.values());
        let mut context = Context {
            shop: &self.shop,
            ids: self.resolver.kind(),
            currency: self.currency,
            shared: shared_skus(all()),
            free: BTreeSet::new(),
            asked: &hand.asked_variations,
            most: MOST_VARIATIONS,
        };
        if self.resolver.kind() == ItemIds::Sku {
            for item in all() {
                if let Some(sku) = context.sku(item)
                    && self.catalog.is_shared(&sku, &item.id).await
                {
                    context.shared.extend(item.sku.clone());
                }
            }
            let bare = all().filter(|item| item.is_offered() && context.sku(item).is_none());
            let bare = bare.map(|item| item.id.as_str()).collect();
            context.free = self.resolver.no_skus(&self.api, self.reads(), bare).await?;
        }
        Ok(context)
    }

    /// The shop's products for a query, with bounds counted in so many decimals.
    async fn page(
        &self,
        query: &Query,
        categories: &str,
        decimals: u32,
    ) -> Result<(Vec<Item>, Answer), Error> {
        let (page, limit) = (query.page.to_string(), query.limit.to_string());
        let (min, max) = self.bounds(query.filter.price, decimals);
        let mut list = vec![("page", page.as_str()), ("per_page", limit.as_str())];
        match &query.text {
            Some(text) => list.extend([("search", text.as_str()), ("catalog_visibility", "search")]),
            None => list.push(("catalog_visibility", "catalog")),
        }
        if !categories.is_empty() {
            list.push(("category", categories));
        }
        list.extend(min.as_deref().map(|min| ("min_price", min)));
        list.extend(max.as_deref().map(|max| ("max_price", max)));
        self.list(&list).await
    }

    fn bounds(&self, Bounds { min, max }: Bounds, decimals: u32) -> (Option<String>, Option<String>) {
        let bound = |bound: Option<i64>, up| Some(self.counted(bound?, decimals, up).to_string());
        (bound(min, false), bound(max, true))
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
    pub(super) async fn counted_page(
        &self,
        query: &Query,
        categories: &str,
    ) -> Result<(Vec<Item>, Answer), Error> {
        let known = || self.catalog.decimals();
        let assumed = known().unwrap_or_else(|| self.currency.exponent());
        let first = self.page(query, categories, assumed).await?;
        if !query.filter.price.is_set() {
            return Ok(first);
        }
        if known().is_none() {
            // Nothing fits, and no price was ever seen: any product tells.
            self.list(&[("per_page", "1")]).await?;
        }
        match known() {
            Some(counted) if counted != assumed => self.page(query, categories, counted).await,
            Some(_) | None => Ok(first),
        }
    }

    /// All categories; what cannot be understood is left out.
    pub(super) async fn all_categories(&self) -> Result<Vec<Branch>, Error> {
        let call = self.reads();
        let query = [("_fields", "id,slug,parent")];
        let answer = self.api.call(call, Method::GET, "/products/categories", &query, None, NO_BODY).await?;
        let listed: Vec<Value> = answer.read(call)?;
        let branch = |value| {
            let ListedCategory { id, slug, parent } = serde_json::from_value(value).ok()?;
            Some(Branch { key: id, value: slug, parent: Some(parent).filter(|parent| parent != "0") })
        };
        Ok(listed.into_iter().filter_map(branch).collect())
    }
}
