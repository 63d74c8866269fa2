//! What is left of products: in the shop's books and as a visitor sees it, how many calls that takes, and what else
//! the books tell.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::Response,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tillgate::{
    checkout::{
        cart::CartPlan,
        ids::ProductId,
        store::{Effect, Error, FoundState, Placement, Store as _},
    },
    clock::{Clock as _, SystemClock},
    stock::{Reading, Source, Upper},
    store::{
        demo::{self, DemoShop, Seed},
        woo::{Settings, WcV3, WooStore},
    },
};
use tower::ServiceExt as _;
use url::Url;

use super::{
    buyer, kept, order, plan, settings,
    stub::{Say, Stub, recorded},
};
use crate::support::listen;

/// The general demo shop behind a door that counts.
struct House {
    shop: DemoShop,
    base: Url,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Door {
    router: Router,
    asked: Arc<Mutex<Vec<String>>>,
    /// Whether the shop is too old to list all variations.
    old: bool,
}

async fn pass(State(door): State<Door>, request: Request) -> Response<Body> {
    let path = request.uri().path().rsplit_once("/wp-json/").unwrap().1.to_owned();
    door.asked.lock().unwrap().push(path.clone());
    if door.old && path == "wc/v3/variations" {
        let body = json!({"code": "rest_no_route", "message": "-", "data": {"status": 404}}).to_string();
        return Response::builder().status(404).body(Body::from(body)).unwrap();
    }
    door.router.oneshot(request).await.unwrap()
}

impl House {
    async fn open(old: bool) -> Self {
        let open = |seed| DemoShop::open(seed, None, Arc::new(SystemClock)).unwrap();
        let (shop, asked) = (open(Seed::General), Arc::default());
        let router = demo::router(open(Seed::Flower), shop.clone());
        let door = Door { router, asked: Arc::clone(&asked), old };
        let url = listen(Router::new().fallback(pass).with_state(door)).await;
        Self { shop, base: Url::parse(&format!("{url}/general")).unwrap(), asked }
    }

    fn visitor(&self) -> WooStore {
        WooStore::new(settings(&self.base)).unwrap()
    }

    fn bookkeeper(&self) -> WooStore {
        with_key(&self.base)
    }

    fn stock(&self, product: u64, quantity: i64) {
        self.shop.act(&json!({"op": "stock", "product": product, "quantity": quantity})).unwrap();
    }

    /// What was asked since the last time, in order of the paths.
    fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.sort();
        asked
    }
}

fn with_key(base: &Url) -> WooStore {
    let wc_v3 = Some(WcV3 {
        key: "ck_demo_read".to_owned(),
        secret: "cs_demo_read".to_owned().into(),
        writes: false,
    });
    WooStore::new(Settings { wc_v3, ..settings(base) }).unwrap()
}

fn ids(ids: &[&str]) -> Vec<ProductId> {
    ids.iter().map(|id| ProductId::new(*id)).collect()
}

fn told(reading: &Reading) -> String {
    let upper = match reading.upper {
        Upper::Number(number) => number.to_string(),
        Upper::Free(number) => format!("{number} free"),
        Upper::Untold => "?".to_owned(),
    };
    let lower = reading.lower.map_or("?".to_owned(), |number| number.to_string());
    format!("{}: {lower} to {upper}", reading.stock)
}

/// What is counted of each product.
async fn read(store: &WooStore, asked: &[&str], source: Source) -> Vec<(String, Vec<String>)> {
    let found = store.stock(&ids(asked), 7).await.unwrap();
    let all = found.iter().flat_map(|product| &product.counted);
    for reading in all {
        let pending = reading.takes_off_pending;
        assert_eq!((reading.source, reading.from, pending), (source, 7, source == Source::Shop));
    }
    let told = |counted: &[Reading]| counted.iter().map(told).collect();
    found.iter().map(|product| (product.product.to_string(), told(&product.counted))).collect()
}

fn rows(rows: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    rows.iter().map(|(id, counted)| ((*id).to_owned(), texts(counted))).collect()
}

/// Simple products, variations of their own and of their product's stock, and one that nobody knows.
const MIXED: [&str; 12] = ["19", "20", "21", "22", "24", "27", "28", "30", "32", "33", "25", "999"];

#[tokio::test]
async fn the_books_tell_the_number_of_what_manages_the_stock() {
    let house = House::open(false).await;
    house.stock(26, 8);
    let store = house.bookkeeper();
    let mixed = rows(&[
        ("19", &[]),
        ("20", &["20: 1 to 1"]),
        ("21", &[]),
        ("22", &["22: 0 to 0"]),
        ("24", &["24: 5 to 5"]),
        ("27", &["27: 10 to 10"]),
        ("28", &["28: 0 to 0"]),
        ("30", &["26: 8 to 8"]),
        ("32", &[]),
        ("33", &[]),
        ("25", &["25: 100000 to 100000"]),
    ]);
    assert_eq!(read(&store, &MIXED, Source::WcV3).await, mixed);
    let cold = house.asked();
    assert_eq!(cold, ["wc/v3/products", "wc/v3/variations"]);
    assert_eq!(read(&store, &MIXED[..11], Source::WcV3).await, mixed);
    let warm = house.asked();
    assert_eq!(warm, ["wc/v3/products", "wc/v3/variations"]);
    read(&store, &["24", "20"], Source::WcV3).await;
    let products = house.asked();
    assert_eq!(products, ["wc/v3/products"]);
    read(&store, &["30", "27"], Source::WcV3).await;
    let variations = house.asked();
    assert_eq!(variations, ["wc/v3/variations"]);
    println!(
        "books: {} calls for a mixed list not seen before, {} later, {} for products, {} for variations",
        cold.len(),
        warm.len(),
        products.len(),
        variations.len()
    );
    // More than a hundred: a list for each hundred.
    let many: Vec<String> = (5000..5150).map(|id: u32| id.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(read(&store, &many, Source::WcV3).await, []);
    assert_eq!(house.asked().len(), 4);
    // Nothing that would become another address.
    assert_eq!(read(&store, &["24/../orders", "", "024"], Source::WcV3).await, []);
    assert!(house.asked().is_empty());
}

#[tokio::test]
async fn a_visitor_sees_the_largest_quantity_and_what_is_nearly_gone() {
    let house = House::open(false).await;
    let store = house.visitor();
    let mixed = rows(&[
        ("19", &[]),
        ("20", &["20: 1 to 1"]),
        ("21", &[]),
        ("22", &["22: 0 to 0"]),
        ("24", &["24: 5 to ?"]),
        ("27", &["27: 10 to ?", "26: 10 to ?"]),
        ("28", &["28: 0 to 0"]),
        ("30", &[]),
        // Rules of the merchant's, which look like a stock.
        ("32", &["32: 1 to ?"]),
        ("33", &["33: 6 to ?"]),
        ("25", &[]),
    ]);
    assert_eq!(read(&store, &MIXED, Source::Shop).await, mixed);
    let cold = house.asked();
    assert_eq!(cold, ["wc/store/v1/products", "wc/store/v1/products"]);
    read(&store, &["24", "20"], Source::Shop).await;
    assert_eq!(house.asked().len(), 1);
    read(&store, &["30", "27"], Source::Shop).await;
    assert_eq!(house.asked().len(), 1);
    println!("visitor: {} calls for a mixed list not seen before, 1 for one kind later", cold.len());
    // Its product manages the stock: the visitor sees the same of both.
    house.stock(26, 8);
    let shared = rows(&[("30", &["30: 8 to ?", "26: 8 to ?"])]);
    assert_eq!(read(&store, &["30"], Source::Shop).await, shared);
    house.stock(26, 2);
    assert_eq!(read(&store, &["30"], Source::Shop).await, rows(&[("30", &["30: 2 to 2", "26: 2 to ?"])]));
}

#[tokio::test]
async fn an_older_shop_is_asked_for_variations_below_their_products() {
    let house = House::open(true).await;
    house.stock(26, 8);
    let store = house.bookkeeper();
    let mixed = rows(&[("24", &["24: 5 to 5"]), ("27", &["27: 10 to 10"]), ("30", &["26: 8 to 8"])]);
    assert_eq!(read(&store, &["24", "27", "30", "999"], Source::WcV3).await, mixed);
    let [one, two, three, four] = ["24", "27", "30", "999"].map(|id| format!("wc/v3/products/{id}"));
    let cold = [&"wc/v3/products".to_owned(), &one, &two, &three, &four, &"wc/v3/variations".to_owned()];
    assert_eq!(house.asked().iter().collect::<Vec<_>>(), cold);
    assert_eq!(read(&store, &["24", "27", "30"], Source::WcV3).await, mixed);
    assert_eq!(house.asked(), ["wc/v3/products", "wc/v3/products/26/variations"]);
    let since = SystemClock.now() - TimeDelta::minutes(1);
    assert_eq!(store.stock_changes(since).await.unwrap().products, ids(&["26"]));
    assert_eq!(store.booked_stock().await.unwrap().len(), 8);
}

#[tokio::test]
async fn a_recorded_catalogue_is_read_as_it_was() {
    let tape = recorded("29-wcv3-products-stock");
    let body = |part: &str| {
        let found = tape.iter().find(|entry| {
            let url = entry["request"]["url"].as_str().unwrap();
            url.contains(part) && url.contains("backorders")
        });
        Say::new(200, found.unwrap()["response"]["content"]["text"].as_str().unwrap())
    };
    let read = async |asked: &[&str], part: &str| {
        // Nothing is known of the ids: both lists are asked for, and the other one has nothing of them.
        let says = [body(part), body(part)];
        let (_stub, base) = Stub::start(says).await;
        read(&with_key(&base), asked, Source::WcV3).await
    };
    let variations =
        rows(&[("27", &["27: 10 to 10"]), ("28", &["28: 0 to 0"]), ("29", &["29: 3 to 3"]), ("30", &[])]);
    assert_eq!(read(&["27", "28", "29", "30"], "/v3/variations?").await, variations);
    // A list that brings what was not asked for knows no ids: each is asked for alone, and nobody answers that here.
    let (_stub, base) = Stub::start([body("/v3/products?per_page"), body("/v3/products?per_page")]).await;
    let error = with_key(&base).stock(&ids(&["20"]), 7).await.unwrap_err();
    assert!(matches!(error, Error::Refused { status: 418, .. }), "{error:?}");
}

#[tokio::test]
async fn a_shop_that_fails_tells_nothing() {
    type Check = fn(&Error) -> bool;
    let table: [(Say, Check); 3] = [
        (Say::code(401, "woocommerce_rest_cannot_view"), |e| matches!(e, Error::Refused { status: 401, .. })),
        (Say::new(500, ""), |e| matches!(e, Error::Failed { status: 500, .. })),
        (Say::new(200, r#"[{"id": 24}]"#), |e| e.effect() == Effect::Definite),
    ];
    for (say, check) in table {
        for key in [true, false] {
            let (_stub, base) = Stub::start([say.clone(), say.clone()]).await;
            let store = if key { with_key(&base) } else { WooStore::new(settings(&base)).unwrap() };
            let error = store.stock(&ids(&["24"]), 7).await.unwrap_err();
            assert!(check(&error), "{error:?}");
        }
    }
    // Without a key the books are closed.
    let (stub, base) = Stub::start([]).await;
    let store = WooStore::new(settings(&base)).unwrap();
    assert!(!store.abilities().opens_books);
    let epoch = DateTime::UNIX_EPOCH;
    assert!(store.stock_changes(epoch).await.is_err());
    assert!(store.booked_stock().await.is_err());
    assert!(store.orders_since(epoch).await.is_err());
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn changes_are_seen_once_the_shop_has_written_them() {
    let house = House::open(false).await;
    let store = house.bookkeeper();
    assert!(store.abilities().opens_books);
    let before: DateTime<Utc> = SystemClock.now();
    let first = store.stock_changes(before).await.unwrap();
    assert_eq!(first.products, []);
    assert!((first.until - before).num_seconds().abs() <= 2, "{:?}", first.until);
    house.stock(24, 4);
    house.stock(29, 2);
    // A change of a variation shows its product as well.
    let changed = store.stock_changes(first.until).await.unwrap();
    assert_eq!(changed.products, ids(&["24", "26", "29"]));
    // Whole seconds are looked at twice, and no more.
    let written = SystemClock.now();
    let again = store.stock_changes(written + TimeDelta::seconds(1)).await.unwrap();
    assert_eq!(again.products, changed.products);
    let later = store.stock_changes(written + TimeDelta::seconds(10)).await.unwrap();
    assert_eq!(later.products, []);
    assert_eq!(house.asked().len(), 8);
    // Everything since the shop opened.
    let all = store.stock_changes(before - TimeDelta::days(60)).await.unwrap();
    assert_eq!(all.products.len(), 23);
}

#[tokio::test]
async fn the_books_list_every_stock_that_is_managed() {
    let house = House::open(false).await;
    house.stock(26, 8);
    house.stock(24, -2);
    house.stock(21, -1);
    let booked = house.bookkeeper().booked_stock().await.unwrap();
    let told: Vec<(&str, Option<i64>, bool)> =
        booked.iter().map(|stock| (stock.stock.as_str(), stock.number, stock.ordered_back)).collect();
    let own = |id, number| (id, Some(number), false);
    let expected = [
        own("20", 1),
        ("21", Some(-1), true),
        own("24", -2),
        own("25", 100_000),
        own("26", 8),
        own("27", 10),
        own("28", 0),
        own("29", 3),
    ];
    assert_eq!(told, expected);
    assert_eq!(house.asked(), ["wc/v3/products", "wc/v3/variations"]);
}

#[tokio::test]
async fn orders_of_a_time_are_told_by_what_they_carry() {
    let house = House::open(false).await;
    let store = house.bookkeeper();
    let before = SystemClock.now();
    for (token, correlation_id) in
        [("tok_ok", "corr_1"), ("tok_ok", "corr_1"), ("tok_declined", "corr_2"), ("tok_ok", "")]
    {
        let wish = CartPlan { customer: Some(buyer("DE", false)), ..plan(&[("31", 1)]) };
        let view = store.open(&wish).await.unwrap();
        let cart = kept(&wish, &view);
        let placed = store.place(&cart, &order(token, correlation_id, view.totals.total)).await.unwrap();
        assert_eq!(matches!(placed, Placement::Placed(_)), token == "tok_ok", "{placed:?}");
    }
    // Somebody buys at the shop's own page.
    let own = json!({"op": "shop_order", "product": 31, "quantity": 1, "fee": "-", "cents": 0});
    house.shop.act(&own).unwrap();
    house.asked();
    let found = store.orders_since(before).await.unwrap();
    assert_eq!(house.asked().len(), 2);
    let told: Vec<(&str, FoundState)> =
        found.iter().map(|order| (order.correlation_id.as_str(), order.state)).collect();
    let expected =
        [("corr_1", FoundState::Placed), ("corr_1", FoundState::Placed), ("corr_2", FoundState::Pending)];
    assert_eq!(told, expected);
    assert!(found.iter().all(|order| (order.created_at - before).num_seconds().abs() <= 5));
    assert_ne!(found[0].shop_order, found[1].shop_order);
    assert_eq!(store.orders_since(before + TimeDelta::minutes(1)).await.unwrap(), []);
}
