//! What is left of products: read in the shop's books (`wc/v3`) or, without a key, as any visitor sees it.
//!
//! Either way a list holds products or variations, never both. Which of the two an id is never changes and is
//! remembered: nothing known costs two calls for up to a hundred ids, at the same time; later one for each kind.
//!
//! | seen | in the books | by a visitor |
//! |---|---|---|
//! | stock managed by itself | its number | at most what the shop says is left; at least its largest quantity |
//! | – by its product | the product's number, under its id | its own, as above; at least the same of the product |
//! | back-orders, or not managed | nothing limits it | nothing limits it |
//! | marked as sold out | 0 | 0 |
//!
//! A visitor cannot tell a rule of the merchant's (one to a customer) from a stock: the largest quantity is no more
//! than "at least so many", and a product with such a rule is counted like a scarce one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use moka::future::Cache;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{
    WooStore,
    client::{AdminApi, NO_BODY},
    resolve,
    wire::{text, text_or_empty},
};
use crate::{
    checkout::{
        ids::ProductId,
        store::{Error, ProductStock},
    },
    stock::{Reading, Source, StockId, Upper},
};

/// As many ids as one list is asked for.
const AT_ONCE: usize = 100;
/// As many calls as run at the same time.
const ABREAST: usize = 4;
/// The largest quantity of a product that nothing limits.
const UNLIMITED: i64 = 9_999;
/// How many ids are remembered with their kind, and for how long.
const KINDS_KEPT: u64 = 50_000;
const KINDS_KEPT_FOR: Duration = Duration::from_hours(12);
/// What is asked for in the books.
const BOOK_FIELDS: &str = "id,type,parent_id,manage_stock,stock_quantity,stock_status,backorders";
/// What is asked for as a visitor.
const SHOWN_FIELDS: &str = "id,parent,type,is_in_stock,low_stock_remaining,add_to_cart";

/// What is remembered of a shop's stock: never a number.
#[derive(Debug, Default)]
pub(super) struct Memory {
    kinds: OnceLock<Cache<String, Kind>>,
    /// The shop is too old for a list of all variations.
    no_variations: AtomicBool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Product,
    /// A variation of this product.
    Of(String),
}

impl Memory {
    fn kinds(&self) -> &Cache<String, Kind> {
        self.kinds
            .get_or_init(|| Cache::builder().max_capacity(KINDS_KEPT).time_to_live(KINDS_KEPT_FOR).build())
    }
}

/// A product or variation in the books.
#[derive(Debug, Deserialize)]
pub(super) struct Booked {
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    /// The product of a variation; `0`: none.
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) parent_id: String,
    /// Whether its stock is managed: yes, no, or by its product.
    manage_stock: Value,
    #[serde(default)]
    stock_quantity: Value,
    #[serde(default)]
    stock_status: String,
    #[serde(default)]
    backorders: String,
}

/// A product or variation as a visitor sees it.
#[derive(Debug, Deserialize)]
struct Shown {
    #[serde(deserialize_with = "text")]
    id: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    parent: String,
    is_in_stock: bool,
    #[serde(default)]
    low_stock_remaining: Value,
    #[serde(default)]
    add_to_cart: Value,
}

impl Booked {
    /// The product that a variation belongs to.
    pub(super) fn parent(&self) -> Option<&str> {
        Some(self.parent_id.as_str()).filter(|parent| !matches!(*parent, "" | "0"))
    }

    /// Whose stock it is counted in; `None`: it is not managed.
    pub(super) fn managed_by(&self) -> Option<&str> {
        match &self.manage_stock {
            Value::Bool(true) => Some(&self.id),
            Value::String(by) if by == "parent" => Some(self.parent().unwrap_or(&self.id)),
            _ => None,
        }
    }

    /// Whether it is sold without being there.
    pub(super) fn may_be_ordered_back(&self) -> bool {
        matches!(self.backorders.as_str(), "yes" | "notify")
    }

    /// The number in the books.
    pub(super) fn number(&self) -> Option<i64> {
        whole(&self.stock_quantity)
    }

    fn counted(&self, from: u64) -> Vec<Reading> {
        let reading = |stock: &str, number: Option<i64>| Reading {
            stock: StockId::new(stock),
            upper: number.map_or(Upper::Untold, Upper::Number),
            lower: number,
            takes_off_pending: false,
            source: Source::WcV3,
            from,
        };
        let sold_out = self.stock_status == "outofstock";
        match self.managed_by() {
            Some(_) if self.may_be_ordered_back() => Vec::new(),
            // Below the merchant's threshold some are there, but none is sold. A product's mark says nothing of the
            // stock that it shares.
            Some(stock) if sold_out && stock == self.id => {
                vec![reading(stock, Some(self.number().unwrap_or(0).min(0)))]
            }
            Some(stock) => vec![reading(stock, self.number())],
            None if sold_out => vec![reading(&self.id, Some(0))],
            None => Vec::new(),
        }
    }
}

impl Shown {
    fn parent(&self) -> Option<&str> {
        Some(self.parent.as_str()).filter(|parent| !matches!(*parent, "" | "0"))
    }

    fn counted(&self, from: u64) -> Vec<Reading> {
        let reading = |stock: &str, upper: Upper, lower: Option<i64>| Reading {
            stock: StockId::new(stock),
            upper,
            lower,
            takes_off_pending: true,
            source: Source::Shop,
            from,
        };
        if !self.is_in_stock {
            return vec![reading(&self.id, Upper::Number(0), Some(0))];
        }
        let most = self.add_to_cart.get("maximum").and_then(whole);
        if most.is_some_and(|most| most >= UNLIMITED) {
            // Few may be there, but then the product may be ordered back.
            return Vec::new();
        }
        let upper = whole(&self.low_stock_remaining).map_or(Upper::Untold, Upper::Number);
        let mut counted = vec![reading(&self.id, upper, most)];
        // Nobody can tell whether its product manages the stock.
        counted.extend(self.parent().map(|parent| reading(parent, Upper::Untold, most)));
        counted
    }
}

/// A number of units: whole ones, where a shop counts parts as well.
fn whole(value: &Value) -> Option<i64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let number: i64 = whole.parse().ok()?;
    let less = text.starts_with('-') && part.bytes().any(|digit| digit != b'0');
    number.checked_sub(i64::from(less))
}

/// Anything that a list of stock holds.
trait Row {
    fn key(&self) -> &str;
    fn kind(&self) -> Kind;
}

fn kind_of(parent: Option<&str>) -> Kind {
    parent.map_or(Kind::Product, |parent| Kind::Of(parent.to_owned()))
}

impl Row for Booked {
    fn key(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> Kind {
        kind_of(self.parent())
    }
}

impl Row for Shown {
    fn key(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> Kind {
        kind_of(self.parent())
    }
}

/// The ids to ask for, by the list that may hold them.
#[derive(Debug, Default)]
struct Wanted {
    products: Vec<String>,
    variations: Vec<String>,
}

/// What was read, by product or variation.
type Counted = BTreeMap<String, Vec<Reading>>;

impl WooStore {
    /// See [`crate::checkout::store::Store::stock`].
    pub(super) async fn read_stock(
        &self,
        products: &[ProductId],
        from: u64,
    ) -> Result<Vec<ProductStock>, Error> {
        let wanted = self.wanted(products).await;
        let counted = match &self.admin {
            Some(admin) => self.counted_in_books(admin, &wanted, from).await?,
            None => self.counted_as_shown(&wanted, from).await?,
        };
        let of = |product: &ProductId| {
            let counted = counted.get(product.as_str())?.clone();
            Some(ProductStock { product: product.clone(), counted })
        };
        Ok(products.iter().filter_map(of).collect())
    }

    async fn counted_in_books(&self, admin: &AdminApi, wanted: &Wanted, from: u64) -> Result<Counted, Error> {
        let (listed, below) = future::try_join(
            lists(&wanted.products, |ids| self.booked(admin, "/products", ids)),
            self.booked_variations(admin, &wanted.variations),
        )
        .await?;
        let rows: Vec<Booked> = listed.into_iter().chain(below).collect();
        self.learn(&rows).await;
        Ok(rows.into_iter().map(|row| (row.id.clone(), row.counted(from))).collect())
    }

    async fn counted_as_shown(&self, wanted: &Wanted, from: u64) -> Result<Counted, Error> {
        let (listed, below) = future::try_join(
            lists(&wanted.products, |ids| self.shown(ids, false)),
            lists(&wanted.variations, |ids| self.shown(ids, true)),
        )
        .await?;
        let rows: Vec<Shown> = listed.into_iter().chain(below).collect();
        self.learn(&rows).await;
        Ok(rows.into_iter().map(|row| (row.id.clone(), row.counted(from))).collect())
    }

    /// What cannot be an id of the shop is not asked for: it would become part of an address.
    async fn wanted(&self, products: &[ProductId]) -> Wanted {
        let mut wanted = Wanted::default();
        let ids: BTreeSet<&str> = products.iter().map(ProductId::as_str).collect();
        for id in ids.into_iter().filter(|id| resolve::number(id).is_some()) {
            let kind = self.stock.kinds().get(id).await;
            if !matches!(kind, Some(Kind::Of(_))) {
                wanted.products.push(id.to_owned());
            }
            if kind != Some(Kind::Product) {
                wanted.variations.push(id.to_owned());
            }
        }
        wanted
    }

    async fn learn(&self, rows: &[impl Row]) {
        for row in rows {
            self.stock.kinds().insert(row.key().to_owned(), row.kind()).await;
        }
    }

    async fn shown(&self, ids: Vec<String>, variations: bool) -> Result<Vec<Shown>, Error> {
        let call = self.reads();
        let include = ids.join(",");
        let mut query = vec![("include", include.as_str()), ("per_page", "100"), ("_fields", SHOWN_FIELDS)];
        if variations {
            query.push(("type", "variation"));
        }
        self.api.call(call, Method::GET, "/products", &query, None, NO_BODY).await?.read(call)
    }

    async fn booked(&self, admin: &AdminApi, path: &str, ids: Vec<String>) -> Result<Vec<Booked>, Error> {
        let call = self.reads();
        let include = ids.join(",");
        let query = [("include", include.as_str()), ("per_page", "100"), ("_fields", BOOK_FIELDS)];
        admin.get(call.deadline, path, &query).await?.read(call)
    }

    async fn booked_variations(&self, admin: &AdminApi, ids: &[String]) -> Result<Vec<Booked>, Error> {
        if !self.lists_variations() {
            return self.below_products(admin, ids).await;
        }
        let listed = match lists(ids, |ids| self.booked(admin, "/variations", ids)).await {
            Err(Error::Refused { status: 404, .. }) => None,
            read => Some(read?),
        };
        match listed {
            // A list that was not asked for is one that knows no ids: what is missing in it proves nothing.
            Some(rows) if rows.iter().all(|row| ids.contains(&row.id)) => Ok(rows),
            Some(_) | None => {
                self.lists_no_variations();
                self.below_products(admin, ids).await
            }
        }
    }

    /// Whether the shop is taken to list all its variations.
    pub(super) fn lists_variations(&self) -> bool {
        !self.stock.no_variations.load(Ordering::Relaxed)
    }

    /// Notes that it does not.
    pub(super) fn lists_no_variations(&self) {
        self.stock.no_variations.store(true, Ordering::Relaxed);
    }

    /// Variations of an older shop: by their products where those are known, each alone the first time.
    async fn below_products(&self, admin: &AdminApi, ids: &[String]) -> Result<Vec<Booked>, Error> {
        let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for id in ids {
            match self.stock.kinds().get(id).await {
                Some(Kind::Of(parent)) => known.entry(parent).or_default().push(id.clone()),
                Some(Kind::Product) => {}
                None => unknown.push(id.clone()),
            }
        }
        let below = stream::iter(known).map(|(parent, ids)| async move {
            let path = format!("/products/{parent}/variations");
            lists(&ids, |ids| self.booked(admin, &path, ids)).await
        });
        let below: Vec<Vec<Booked>> = below.buffer_unordered(ABREAST).try_collect().await?;
        let alone = stream::iter(unknown).map(|id| async move {
            let call = self.reads();
            let query = [("_fields", BOOK_FIELDS)];
            let answer = admin.get(call.deadline, &format!("/products/{id}"), &query).await?;
            match answer.read(call) {
                Ok(row) => Ok(Some(row)),
                Err(Error::Refused { status: 404, .. }) => Ok(None),
                Err(error) => Err(error),
            }
        });
        let alone: Vec<Option<Booked>> = alone.buffer_unordered(ABREAST).try_collect().await?;
        Ok(below.into_iter().flatten().chain(alone.into_iter().flatten()).collect())
    }
}

/// As many lists as these ids take, a few at the same time.
async fn lists<T, F>(ids: &[String], read: impl Fn(Vec<String>) -> F) -> Result<Vec<T>, Error>
where
    F: Future<Output = Result<Vec<T>, Error>>,
{
    let parts: Vec<Vec<String>> = ids.chunks(AT_ONCE).map(<[String]>::to_vec).collect();
    let all: Vec<Vec<T>> = stream::iter(parts).map(read).buffer_unordered(ABREAST).try_collect().await?;
    Ok(all.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_units_are_not_counted() {
        let table = [
            (json!(5), Some(5)),
            (json!(2.5), Some(2)),
            (json!(-2.5), Some(-3)),
            (json!(-2.0), Some(-2)),
            (json!(-0.5), Some(-1)),
            (json!("7"), Some(7)),
            (json!(null), None),
            (json!("many"), None),
        ];
        for (value, number) in table {
            assert_eq!(whole(&value), number, "{value}");
        }
    }

    /// What is counted of a row of the books: id, upper, lower.
    fn booked(row: Value) -> Vec<(String, Upper, Option<i64>)> {
        let row: Booked = serde_json::from_value(row).unwrap();
        let counted = row.counted(3);
        assert!(counted.iter().all(|r| r.source == Source::WcV3 && !r.takes_off_pending && r.from == 3));
        counted.into_iter().map(|r| (r.stock.to_string(), r.upper, r.lower)).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "values of a case, made where it stands")]
    fn book(manage: Value, number: Value, status: &str, backorders: &str) -> Value {
        json!({"id": 29, "parent_id": 26, "manage_stock": manage, "stock_quantity": number,
            "stock_status": status, "backorders": backorders})
    }

    #[test]
    fn the_books_are_counted_under_what_manages_the_stock() {
        let number = |id: &str, number| vec![(id.to_owned(), Upper::Number(number), Some(number))];
        assert_eq!(booked(book(json!(true), json!(3), "instock", "no")), number("29", 3));
        assert_eq!(booked(book(json!(true), json!(-2), "outofstock", "no")), number("29", -2));
        // Below the threshold none is sold.
        assert_eq!(booked(book(json!(true), json!(5), "outofstock", "no")), number("29", 0));
        assert_eq!(booked(book(json!("parent"), json!(8), "instock", "no")), number("26", 8));
        assert_eq!(booked(book(json!(false), json!(null), "outofstock", "no")), number("29", 0));
        for (manage, status, backorders) in [
            (json!(false), "instock", "no"),
            (json!(true), "onbackorder", "notify"),
            (json!("parent"), "onbackorder", "yes"),
        ] {
            assert_eq!(booked(book(manage, json!(null), status, backorders)), []);
        }
        // Managed, but the number is missing: it goes alone and is not refused.
        let untold = vec![("29".to_owned(), Upper::Untold, None)];
        assert_eq!(booked(book(json!(true), json!(null), "instock", "no")), untold);
    }
}
