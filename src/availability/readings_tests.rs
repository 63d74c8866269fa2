use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tempfile::TempDir;

use super::*;
use crate::{
    checkout::{
        cart::{CartHandle, CartPlan, CartView},
        session::Cart,
        store::{
            Abilities, BookedStock, Checked, Draft, FoundOrder, OrderSearch, OrderSighting, OrderView,
            PlaceOrder, PlacedOrder, Placement, ProductStock, StockChanges,
        },
    },
    clock::ManualClock,
    state::{Retention, Sqlite},
    stock::{Reserve, Source, Units, Upper},
};

/// A shop that only tells its stock: of `mug` and `cup`, counted together, seven; of `book` none is counted.
#[derive(Default)]
struct Shop {
    asked: AtomicUsize,
    fails: AtomicBool,
}

#[async_trait]
impl Store for Shop {
    fn abilities(&self) -> Abilities {
        Abilities { finds_orders: false, cancels_orders: false, opens_books: false }
    }
    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, store::Error> {
        let known = |item: &String| match item.as_str() {
            "unknown" => Resolved::Unknown,
            known => Resolved::Product(ProductId::new(known)),
        };
        Ok(items.iter().map(known).collect())
    }
    async fn stock(&self, products: &[ProductId], from: u64) -> Result<Vec<ProductStock>, store::Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        // Others that ask meanwhile get their chance to.
        tokio::task::yield_now().await;
        if self.fails.load(Ordering::SeqCst) {
            return Err(store::Error::TimedOut);
        }
        let reading = Reading {
            stock: StockId::new("shelf"),
            upper: Upper::Number(7),
            lower: None,
            takes_off_pending: false,
            source: Source::Shop,
            from,
        };
        let counted = |product: &ProductId| match product.as_str() {
            "book" => Vec::new(),
            _ => vec![reading.clone()],
        };
        Ok(products
            .iter()
            .map(|product| ProductStock { product: product.clone(), counted: counted(product) })
            .collect())
    }
    async fn open(&self, _: &CartPlan) -> Result<CartView, store::Error> {
        unreachable!("looking at the stock makes no cart")
    }
    async fn change(&self, _: &Cart, _: &CartPlan) -> Result<CartView, store::Error> {
        unreachable!("looking at the stock changes no cart")
    }
    async fn check(&self, _: &Cart, _: &CartPlan) -> Result<Checked, store::Error> {
        unreachable!("looking at the stock checks no cart")
    }
    async fn read(&self, _: &Cart) -> Result<CartView, store::Error> {
        unreachable!("looking at the stock reads no cart")
    }
    async fn place(&self, _: &Cart, _: &PlaceOrder) -> Result<Placement, store::Error> {
        unreachable!("looking at the stock places no order")
    }
    async fn read_order(&self, _: &PlacedOrder, _: &str) -> Result<OrderView, store::Error> {
        unreachable!("looking at the stock reads no order")
    }
    async fn find_orders(&self, _: &OrderSearch<'_>) -> Result<Vec<FoundOrder>, store::Error> {
        unreachable!("looking at the stock finds no order")
    }
    async fn draft(&self, _: &Cart, _: Option<&str>) -> Result<Option<Draft>, store::Error> {
        unreachable!("looking at the stock names no order")
    }
    async fn find_draft(&self, _: &Draft, _: &str) -> Result<Option<FoundOrder>, store::Error> {
        unreachable!("looking at the stock finds no order")
    }
    async fn cancel_order(&self, _: &str) -> Result<FoundOrder, store::Error> {
        unreachable!("looking at the stock cancels no order")
    }
    async fn stock_changes(&self, _: DateTime<Utc>) -> Result<StockChanges, store::Error> {
        unreachable!("products are looked at one by one")
    }
    async fn booked_stock(&self) -> Result<Vec<BookedStock>, store::Error> {
        unreachable!("products are looked at one by one")
    }
    async fn orders_since(&self, _: DateTime<Utc>) -> Result<Vec<OrderSighting>, store::Error> {
        unreachable!("looking at the stock lists no orders")
    }
    async fn empty(&self, _: &CartHandle) -> Result<(), store::Error> {
        unreachable!("looking at the stock empties no cart")
    }
}

struct Place {
    shop: Arc<Shop>,
    state: Arc<Sqlite>,
    readings: Arc<Readings>,
    _folder: TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let start = chrono::DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(start));
    let retention = Retention { answers: chrono::Duration::hours(25), sessions: chrono::Duration::days(30) };
    let state = Arc::new(Sqlite::open(folder.path(), retention, Arc::clone(&clock)).unwrap());
    let shop = Arc::new(Shop::default());
    let (store, memory): (Arc<dyn Store>, Arc<dyn State>) = (shop.clone(), state.clone());
    let readings = Readings::new(ShopId::new("main"), store, memory, clock, Duration::from_mins(1));
    Place { shop, state, readings: Arc::new(readings), _folder: folder }
}

impl Place {
    async fn most(&self, ids: &[&str]) -> Vec<(String, i64)> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        self.readings.most(&ids).await.into_iter().collect()
    }

    fn asked(&self) -> usize {
        self.shop.asked.load(Ordering::SeqCst)
    }

    async fn hold(&self, session: &str, quantity: u32) {
        let wish = Reserve {
            session: session.to_owned(),
            units: vec![Units { stock: StockId::new("shelf"), quantity }],
            hold_ms: 60_000,
            enter: false,
        };
        self.state.reserve(&ShopId::new("main"), wish).await.unwrap();
    }
}

fn told(told: &[(&str, i64)]) -> Vec<(String, i64)> {
    told.iter().map(|(id, most)| ((*id).to_owned(), *most)).collect()
}

#[tokio::test]
async fn what_nobody_counts_has_no_number() {
    let place = place();
    assert_eq!(place.most(&["mug", "book", "unknown"]).await, told(&[("mug", 7)]));
    assert_eq!(place.asked(), 1);
}

#[tokio::test]
async fn what_others_hold_is_taken_off_at_once_and_without_a_call() {
    let place = place();
    assert_eq!(place.most(&["mug", "cup"]).await, told(&[("cup", 7), ("mug", 7)]));
    place.hold("chk_a", 3).await;
    assert_eq!(place.most(&["mug", "cup"]).await, told(&[("cup", 4), ("mug", 4)]));
    place.hold("chk_b", 4).await;
    assert_eq!(place.most(&["cup"]).await, told(&[("cup", 0)]));
    assert_eq!(place.asked(), 1);
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_call() {
    let place = place();
    let ask = |_| {
        let readings = Arc::clone(&place.readings);
        tokio::spawn(async move { readings.most(&["mug".to_owned()]).await })
    };
    for asked in (0..50).map(ask).collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap().get("mug"), Some(&7));
    }
    assert_eq!(place.asked(), 1);
}

#[tokio::test]
async fn a_shop_that_fails_tells_nothing_and_is_left_alone_for_a_while() {
    let place = place();
    place.shop.fails.store(true, Ordering::SeqCst);
    assert_eq!(place.most(&["mug"]).await, []);
    assert_eq!(place.most(&["mug"]).await, []);
    assert_eq!(place.asked(), 1);
}

#[tokio::test]
async fn looking_writes_nothing() {
    let place = place();
    place.most(&["mug", "cup"]).await;
    assert_eq!(place.state.shelves(&ShopId::new("main"), None).await.unwrap(), Shelves::new());
}
