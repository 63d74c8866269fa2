//! The Store API client against a little shop on loopback that answers what a real one was recorded to answer,
//! or fails in one of the ways in which shops fail.

mod catalog;
mod drafts;
mod faults;
mod stock;
mod stub;

use std::time::Duration;

use axum::http::Method;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tillgate::{
    checkout::{
        cart::{
            CartHandle, CartPlan, CartView, CodeReason, Customer, ItemReason, PlannedLine, RateChoice,
            Refusal,
        },
        ids::ProductId,
        session::{Address, Cart},
        store::{
            Effect, Error, FoundState, OrderSearch, PlaceOrder, PlacedOrder, Placement, RefusedOrder,
            Resolved, Store as _,
        },
    },
    money::Currency,
    store::woo::{ItemIds, Settings, WcV3, WooStore},
};
use url::Url;

use self::stub::{Say, Stub, hangs_up, recorded, url_of};

fn settings(base: &Url) -> Settings {
    Settings::new(base.clone(), Currency::parse("EUR").unwrap())
}

fn store(base: &Url) -> WooStore {
    WooStore::new(settings(base)).unwrap()
}

fn plan(lines: &[(&str, u32)]) -> CartPlan {
    let line = |(product, quantity): &(&str, u32)| PlannedLine {
        product: ProductId::new(*product),
        quantity: *quantity,
    };
    CartPlan { lines: lines.iter().map(line).collect(), ..CartPlan::default() }
}

fn buyer(country: &str, shipped: bool) -> Customer {
    let texts = match country {
        "DE" => ["Anna", "Muster", "Musterweg 5", "", "Berlin", "DE-BE", "10115", "DE", "+49301234567"],
        _ => ["Sam", "Sample", "1 Main St", "Apt 2", "Beverly Hills", "CA", "90210", "US", "3105550100"],
    };
    let [first, last, one, two, city, region, code, country, phone] = texts.map(str::to_owned);
    let email = format!("{}@example.com", first.to_lowercase());
    let address = Address {
        first_name: first,
        last_name: last,
        line_one: one,
        line_two: two,
        city,
        region,
        postal_code: code,
        country,
        phone,
        ..Address::default()
    };
    Customer { shipping: shipped.then(|| address.clone()), billing: address, email: Some(email) }
}

fn rate(id: &str) -> Vec<RateChoice> {
    vec![RateChoice { package: "0".to_owned(), rate: id.to_owned() }]
}

fn order(token: &str, correlation_id: &str, total: i64) -> PlaceOrder {
    PlaceOrder {
        method: Some("agent_token".to_owned()),
        payment_data: vec![("token".to_owned(), token.to_owned())],
        note: Some("Please ring twice.".to_owned()),
        correlation_id: correlation_id.to_owned(),
        source: "agent.example".to_owned(),
        expected_total: total,
    }
}

fn kept(plan: &CartPlan, view: &CartView) -> Cart {
    Cart { plan: plan.clone(), view: view.clone(), read_at: DateTime::UNIX_EPOCH, usable: true }
}

#[tokio::test]
async fn a_plain_journey_runs_as_recorded() {
    let tape = recorded("38a-journey-plain");
    let (stub, base) = Stub::start(tape.iter().map(Say::entry)).await;
    let store = store(&base);

    let first = CartPlan { customer: Some(buyer("DE", true)), ..plan(&[("19", 2), ("36", 1)]) };
    let opened = store.open(&first).await.unwrap();
    assert_eq!((opened.totals.total, opened.refusals.len()), (4426, 0));
    let second =
        CartPlan { codes: vec!["PERCENT10".to_owned()], rates: rate("flat_rate:2"), ..first.clone() };
    let changed = store.change(&kept(&first, &opened), &second).await.unwrap();
    assert_eq!((changed.totals.total, changed.refusals.len()), (5233, 0));
    let read = store.read(&kept(&second, &changed)).await.unwrap();
    let checked = store.check(&kept(&second, &read), &second).await.unwrap().view;
    assert_eq!((checked.totals, &checked.lines), (read.totals, &changed.lines));
    let cart = kept(&second, &checked);
    let order = order("tok_ok", "corr_0000000000000001", checked.totals.total);
    let Placement::Placed(placed) = store.place(&cart, &order).await.unwrap() else { panic!("not placed") };
    assert!(placed.paid && !placed.cart_filled);
    let order = store.read_order(&placed, "anna@example.com").await.unwrap();
    assert_eq!((order.total, order.units), (5233, 3));
    let after = store.read(&cart).await.unwrap();
    assert!(after.lines.is_empty() && after.handle.identity == opened.handle.identity);

    let asked = stub.asked();
    assert_eq!(asked.len(), tape.len());
    for (asked, entry) in asked.iter().zip(&tape) {
        asked.same(entry);
        let token = entry["request"]["headers"].as_array().unwrap().iter().any(|h| h["name"] == "Cart-Token");
        assert_eq!(asked.headers.contains_key("Cart-Token"), token, "{}", asked.path);
        assert!(!asked.headers.contains_key("Authorization") && !asked.headers.contains_key("Cookie"));
        assert_eq!(asked.headers["Accept"], "application/json");
    }
}

#[tokio::test]
async fn a_decline_and_its_retry_run_as_recorded() {
    let tape = recorded("39a-journey-decline-and-retry");
    let (stub, base) = Stub::start(tape.iter().take(10).map(Say::entry)).await;
    let secret = "cs_readonly".to_owned().into();
    let wc_v3 = Some(WcV3 { key: "ck_readonly".to_owned(), secret, writes: false });
    let store = WooStore::new(Settings { wc_v3, ..settings(&base) }).unwrap();
    assert!(store.abilities().finds_orders);

    let lines = plan(&[("24", 1)]);
    let opened = store.open(&lines).await.unwrap();
    let addressed = CartPlan { customer: Some(buyer("US", true)), ..lines.clone() };
    let view = store.change(&kept(&lines, &opened), &addressed).await.unwrap();
    let rated = CartPlan { rates: rate("flat_rate:5"), ..addressed.clone() };
    let view = store.change(&kept(&addressed, &view), &rated).await.unwrap();
    let view = store.check(&kept(&rated, &view), &rated).await.unwrap().view;
    let corr = "corr_0000000000000011";
    let declined = store.place(&kept(&rated, &view), &order("tok_declined", corr, 5000)).await.unwrap();
    assert_eq!(declined, Placement::Declined { shop_order: None });
    let view = store.check(&kept(&rated, &view), &rated).await.unwrap().view;
    let placed = store.place(&kept(&rated, &view), &order("tok_ok", corr, 5000)).await.unwrap();
    let Placement::Placed(placed) = placed else { panic!("not placed") };
    store.read_order(&placed, "sam@example.com").await.unwrap();
    let since: DateTime<Utc> = "2026-11-30T16:37:44Z".parse().unwrap();
    let search = OrderSearch { correlation_id: corr, email: "sam@example.com", since, thorough: false };
    let found = store.find_orders(&search).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].state, found[0].total), (FoundState::Placed, 5000));
    assert_eq!(found[0].order.shop_order, placed.shop_order);

    let asked = stub.asked();
    for (asked, entry) in asked.iter().zip(&tape) {
        asked.same(entry);
    }
    let look = asked.last().unwrap();
    assert_eq!(look.get("after"), Some("2026-11-30T16:37:44Z"));
    assert_eq!(look.headers["Authorization"], "Basic Y2tfcmVhZG9ubHk6Y3NfcmVhZG9ubHk=");
    assert!(!look.headers.contains_key("Cart-Token"));
    assert!(asked.iter().rev().skip(1).all(|asked| !asked.headers.contains_key("Authorization")));
}

#[tokio::test]
async fn virtual_goods_and_variations_run_as_recorded() {
    for (name, product, shipped, rates, total) in [
        ("39c-journey-virtual", "31", false, vec![], 1071),
        ("39e-journey-variation", "27", true, rate("flat_rate:1"), 2975),
    ] {
        let tape = recorded(name);
        let (stub, base) = Stub::start(tape.iter().take(6).map(Say::entry)).await;
        let store = store(&base);
        let lines = plan(&[(product, 1)]);
        let opened = store.open(&lines).await.unwrap();
        let full = CartPlan { customer: Some(buyer("DE", shipped)), rates, ..lines.clone() };
        let view = store.change(&kept(&lines, &opened), &full).await.unwrap();
        let view = store.check(&kept(&full, &view), &full).await.unwrap().view;
        assert_eq!(view.totals.total, total);
        let corr = if shipped { "corr_0000000000000031" } else { "corr_0000000000000021" };
        let placed = store.place(&kept(&full, &view), &order("tok_ok", corr, total)).await.unwrap();
        let Placement::Placed(placed) = placed else { panic!("not placed") };
        assert_eq!(store.read_order(&placed, "anna@example.com").await.unwrap().total, total);
        for (asked, entry) in stub.asked().iter().zip(&tape) {
            asked.same(entry);
        }
    }
}

/// A cart of the plain journey, as it stands before the order.
fn cart() -> Cart {
    let token = token();
    let view = json!({
        "handle": { "token": token, "identity": "t_2b0b08c21a8fb1e24a7e90e2ebe663" }, "currency": "EUR",
        "lines": [], "coupons": [], "fees": [], "packages": [], "payment_methods": [], "warnings": [], "refusals": [],
        "totals": { "shipping": null, "shipping_tax": 0, "tax": 0, "total": 0 },
        "needs_shipping": true, "needs_payment": true,
    });
    let plan = CartPlan { customer: Some(buyer("DE", true)), ..CartPlan::default() };
    kept(&plan, &serde_json::from_value(view).unwrap())
}

fn token() -> String {
    let tape = recorded("38a-journey-plain");
    let headers = tape[0]["response"]["headers"].as_array().unwrap();
    let found = headers.iter().find(|header| header["name"] == "Cart-Token").unwrap();
    found["value"].as_str().unwrap().to_owned()
}

/// The trimmed cart of the recorded read.
fn cart_body() -> String {
    recorded("38a-journey-plain")[3]["response"]["content"]["text"].as_str().unwrap().to_owned()
}

async fn read_error(say: Say) -> Error {
    let (_stub, base) = Stub::start([say]).await;
    store(&base).read(&cart()).await.unwrap_err()
}

#[tokio::test]
async fn failures_of_a_read_are_told_apart() {
    let broken = recorded("21-server-failures");
    assert!(matches!(read_error(Say::entry(&broken[0])).await, Error::Failed { status: 500, code: None }));
    assert!(matches!(read_error(Say::entry(&broken[3])).await, Error::Failed { status: 500, code: Some(_) }));
    let maintenance = Error::Maintenance { status: 503, retry_after_secs: Some(600) };
    assert_eq!(format!("{:?}", read_error(Say::entry(&broken[7])).await), format!("{maintenance:?}"));
    assert!(matches!(
        read_error(Say::entry(&broken[10])).await,
        Error::Refused { status: 404, code: Some(_) }
    ));
    let html = read_error(Say::new(200, "<html>hello</html>")).await;
    assert!(matches!(html, Error::Unintelligible { wrote: false, .. }));
    let limited = Say::code(400, "rate_limit_exceeded").header("RateLimit-Retry-After", "4");
    assert!(matches!(read_error(limited).await, Error::Limited { retry_after_secs: Some(4) }));
    // A dead token is no error to the shop: it shows another, empty cart.
    let other = "eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyX2lkIjoidF9vdGhlciJ9.c2ln";
    let stranger = read_error(Say::new(200, cart_body()).header("Cart-Token", other)).await;
    assert!(matches!(stranger, Error::CartGone));
    let nameless = read_error(Say::new(200, cart_body())).await;
    assert!(matches!(nameless, Error::Unintelligible { .. }), "a cart that nobody can name");
    let finer = cart_body().replace("\"currency_minor_unit\":2", "\"currency_minor_unit\":4");
    let finer = read_error(Say::new(200, finer).header("Cart-Token", &token())).await;
    assert!(matches!(finer, Error::Unintelligible { wrote: false, .. }));
}

#[tokio::test]
async fn a_notice_before_the_cart_is_passed_over() {
    let noisy =
        format!("<br />\n<b>Warning</b>:  Undefined variable $x in <b>y.php</b><br />\n{}", cart_body());
    let (_stub, base) = Stub::start([Say::new(200, noisy).header("Cart-Token", &token())]).await;
    assert_eq!(store(&base).read(&cart()).await.unwrap().totals.total, 5233);
}

fn inner(status: u16, body: &Value) -> Value {
    json!({ "status": status, "body": body, "headers": { "Cart-Token": token() } })
}

fn batch(responses: &[Value]) -> Say {
    Say::new(207, json!({ "responses": responses }).to_string())
}

fn refused(status: u16, code: &str) -> Value {
    inner(status, &json!({ "code": code, "message": "Prosa", "data": { "status": status } }))
}

#[tokio::test]
async fn a_refused_last_step_costs_one_more_read() {
    let first = Say::new(200, "{\"items_count\":0}").header("Cart-Token", &token());
    let says = [
        first,
        batch(&[
            inner(201, &json!({ "errors": [] })),
            refused(400, "woocommerce_rest_product_out_of_stock"),
            refused(400, "woocommerce_rest_cart_coupon_error"),
        ]),
        Say::new(200, cart_body()).header("Cart-Token", &token()),
    ];
    let (stub, base) = Stub::start(says).await;
    let plan = CartPlan { codes: vec!["NoSuch".to_owned()], ..plan(&[("19", 2), ("22", 1)]) };
    let view = store(&base).open(&plan).await.unwrap();
    assert_eq!(
        view.refusals,
        [
            Refusal::Item { product: ProductId::new("22"), reason: ItemReason::SoldOut },
            Refusal::Code { code: "NoSuch".to_owned(), reason: CodeReason::Invalid },
        ]
    );
    let asked = stub.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].method, Method::GET);
    assert!(asked[1].headers.contains_key("Cart-Token"));
}

#[tokio::test]
async fn a_conflict_brings_the_cart_along() {
    let cart_json: Value = serde_json::from_str(&cart_body()).unwrap();
    let conflict = json!({ "code": "a_plugins_own", "data": { "0": 409, "status": 409, "cart": cart_json } });
    let (stub, base) = Stub::start([batch(&[inner(409, &conflict)])]).await;
    let mut plan = cart().plan;
    plan.lines = vec![PlannedLine { product: ProductId::new("19"), quantity: 2 }];
    let view = store(&base).change(&cart(), &plan).await.unwrap();
    assert_eq!((view.totals.total, view.refusals.len()), (5233, 1));
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn a_dead_token_on_a_write_is_a_cart_that_is_gone() {
    let dead = json!({ "status": 401, "headers": [], "body": { "code": "woocommerce_rest_missing_nonce" } });
    let (_stub, base) = Stub::start([batch(&[dead])]).await;
    assert!(matches!(store(&base).check(&cart(), &cart().plan).await.unwrap_err(), Error::CartGone));
    let (_stub, base) = Stub::start([Say::code(401, "woocommerce_rest_missing_nonce")]).await;
    assert!(matches!(store(&base).empty(&cart().view.handle).await.unwrap_err(), Error::CartGone));
}

#[tokio::test]
async fn more_than_a_batch_holds_goes_in_several() {
    let lines: Vec<(String, u32)> = (1..=30).map(|id| (id.to_string(), 1)).collect();
    let lines: Vec<(&str, u32)> = lines.iter().map(|(id, n)| (id.as_str(), *n)).collect();
    let trimmed = inner(201, &json!({ "errors": [] }));
    let mut last = vec![trimmed.clone(); 4];
    last.push(inner(201, &serde_json::from_str(&cart_body()).unwrap()));
    let first = Say::new(200, "{\"items_count\":0}").header("Cart-Token", &token());
    let (stub, base) = Stub::start([first.clone(), batch(&vec![trimmed.clone(); 25]), batch(&last)]).await;
    store(&base).open(&plan(&lines)).await.unwrap();
    let asked = stub.asked();
    let sizes: Vec<_> = asked.iter().skip(1).map(|a| a.body["requests"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [25, 5]);
    let paths: Vec<_> =
        asked[1].body["requests"].as_array().unwrap().iter().map(|r| r["path"].clone()).collect();
    assert!(paths.iter().all(|path| path == "/wc/store/v1/cart/add-item?_fields=errors"));

    // Limited between the two: the cart was written, whatever a limiter's answer means alone.
    let limited = Say::code(400, "rate_limit_exceeded");
    let (_stub, base) = Stub::start([first, batch(&vec![trimmed; 25]), limited]).await;
    assert_eq!(store(&base).open(&plan(&lines)).await.unwrap_err().effect(), Effect::Unknown);
}

#[tokio::test]
async fn emptying_knows_whose_cart_it_was() {
    let (stub, base) = Stub::start([Say::new(200, "[]").header("Cart-Token", &token())]).await;
    store(&base).empty(&cart().view.handle).await.unwrap();
    let asked = stub.asked();
    assert_eq!(
        (asked[0].method.as_str(), asked[0].path.as_str()),
        ("DELETE", "/wp-json/wc/store/v1/cart/items")
    );
}

async fn place_error(say: Say) -> (Error, usize) {
    let (stub, base) = Stub::start([say]).await;
    let error = store(&base).place(&cart(), &order("tok_ok", "corr_1", 0)).await.unwrap_err();
    (error, stub.asked().len())
}

#[tokio::test]
async fn a_failed_order_is_sent_once_and_told_by_its_moment() {
    for (say, effect) in [
        (Say::new(200, "<html></html>"), Effect::Unknown),
        (Say::new(500, "<html></html>"), Effect::Unknown),
        (Say::new(503, "<html></html>").header("Retry-After", "600"), Effect::Unknown),
        (Say::code(500, "woocommerce_rest_unknown_server_error"), Effect::Unknown),
        (Say::code(400, "rate_limit_exceeded").header("RateLimit-Retry-After", "60"), Effect::NotSent),
        (Say::new(429, "").header("RateLimit-Limit", "3").header("Retry-After", "60"), Effect::NotSent),
        (Say::new(307, "").header("Location", "/elsewhere"), Effect::Unknown),
        (Say::code(401, "woocommerce_rest_missing_nonce"), Effect::Definite),
    ] {
        let status = say.status;
        let (error, calls) = place_error(say).await;
        assert_eq!((error.effect(), calls), (effect, 1), "{status}: {error}");
    }
    let (stub, base) = Stub::start([Say::code(409, "woocommerce_rest_cart_empty")]).await;
    let refused = store(&base).place(&cart(), &order("tok_ok", "corr_1", 0)).await.unwrap();
    assert_eq!(refused, Placement::Refused(RefusedOrder::EmptyCart));
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn an_order_for_nobody_is_not_sent() {
    let (stub, base) = Stub::start([]).await;
    let mut cart = cart();
    cart.plan.customer = None;
    let refused = store(&base).place(&cart, &order("tok_ok", "corr_1", 0)).await.unwrap();
    assert_eq!(refused, Placement::Refused(RefusedOrder::Address));
    assert_eq!(stub.asked().len(), 0);
}

#[tokio::test]
async fn a_slow_shop_times_out_after_its_deadline() {
    let mut says = [Say::new(200, cart_body()), Say::new(200, "{}")];
    for say in &mut says {
        say.delay = Duration::from_secs(30);
    }
    let (stub, base) = Stub::start(says).await;
    let mut settings = settings(&base);
    settings.deadlines.read = Duration::from_millis(50);
    settings.deadlines.place = Duration::from_millis(50);
    let store = WooStore::new(settings).unwrap();
    let read = store.read(&cart()).await.unwrap_err();
    assert!(matches!(read, Error::TimedOut));
    let placed = store.place(&cart(), &order("tok_ok", "corr_1", 0)).await.unwrap_err();
    assert!(matches!(placed, Error::TimedOut) && placed.effect() == Effect::Unknown);
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_by_its_moment() {
    // Nobody listens: the port was free a moment ago.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = url_of(listener.local_addr().unwrap());
    drop(listener);
    let error = store(&nobody).place(&cart(), &order("tok_ok", "corr_1", 0)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && error.effect() == Effect::NotSent);

    // Heard, never answered.
    let base = hangs_up(1, b"").await;
    let error = store(&base).place(&cart(), &order("tok_ok", "corr_1", 0)).await.unwrap_err();
    assert!(matches!(error, Error::Broken(_)) && error.effect() == Effect::Unknown, "{error:?}");

    // Answered in part.
    let base = hangs_up(1, b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"order_id\":1,").await;
    let error = store(&base).place(&cart(), &order("tok_ok", "corr_1", 0)).await.unwrap_err();
    assert!(matches!(error, Error::Broken(_)) && error.effect() == Effect::Unknown, "{error:?}");
}

/// Requirements: A-096.
#[tokio::test]
async fn secrets_stay_out_of_errors() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = url_of(listener.local_addr().unwrap());
    drop(listener);
    let placed = PlacedOrder {
        shop_order: "5448".to_owned(),
        number: "5448".to_owned(),
        key: "wc_order_secret".to_owned(),
        paid: true,
        cart_filled: false,
        permalink_url: None,
    };
    let error = store(&nobody).read_order(&placed, "anna@example.com").await.unwrap_err();
    let told = format!("{error:?}");
    assert!(!told.contains("wc_order_secret") && !told.contains("anna"), "{told}");
    let odd = CartHandle { token: "line\nbreak".to_owned(), identity: "t_x".to_owned() };
    assert!(matches!(store(&nobody).empty(&odd).await.unwrap_err(), Error::CartGone));
    let odd = PlacedOrder { shop_order: "1/../2".to_owned(), ..placed };
    assert!(matches!(store(&nobody).read_order(&odd, "x").await.unwrap_err(), Error::Unintelligible { .. }));
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn product(id: &str) -> Resolved {
    Resolved::Product(ProductId::new(id))
}

#[tokio::test]
async fn numbers_need_no_call_and_article_numbers_one() {
    let products = json!([
        { "id": 19, "sku": "MUG-01", "type": "simple" },
        { "id": 29, "sku": "TEE-L-RED", "type": "variation" },
        { "id": 50, "sku": "TWIN", "type": "simple" },
        { "id": 51, "sku": "TWIN", "type": "simple" },
        { "id": 60, "sku": "A&amp;B", "type": "simple" },
    ]);
    let (stub, base) = Stub::start([Say::new(200, products.to_string())]).await;
    let store = store(&base);
    assert_eq!(store.resolve(&texts(&["42", "7"])).await.unwrap(), [product("42"), product("7")]);
    let items = texts(&["42", "MUG-01", "TEE-L-RED", "42-blue", "mug-01", "MUG", "TWIN", "A&B", "", "042"]);
    let unknown = Resolved::Unknown;
    let expected = [
        product("42"),
        product("19"),
        product("29"),
        unknown.clone(),
        unknown.clone(),
        unknown.clone(),
        unknown.clone(),
        product("60"),
        unknown.clone(),
        unknown,
    ];
    assert_eq!(store.resolve(&items).await.unwrap(), expected);
    // All remembered, the unknown ones too.
    assert_eq!(store.resolve(&items).await.unwrap(), expected);
    let asked = stub.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, "/wp-json/wc/store/v1/products");
    assert_eq!(asked[0].get("_fields"), Some("id,sku,type"));
    assert_eq!(asked[0].get("per_page"), Some("100"));
    assert!(!asked[0].get("sku").unwrap().split(',').any(|sku| sku == "42" || sku.is_empty()));
}

#[tokio::test]
async fn where_article_numbers_come_first_a_number_may_be_one() {
    let products = json!([{ "id": 19, "sku": "42", "type": "simple" }]);
    let commas =
        json!([{ "id": 70, "sku": "A,B", "type": "simple" }, { "id": 71, "sku": "A", "type": "simple" }]);
    let (stub, base) =
        Stub::start([Say::new(200, products.to_string()), Say::new(200, commas.to_string())]).await;
    let store = WooStore::new(Settings { item_ids: ItemIds::Sku, ..settings(&base) }).unwrap();
    let items = texts(&["42", "43", "A,B"]);
    assert_eq!(store.resolve(&items).await.unwrap(), [product("19"), product("43"), product("70")]);
    let asked = stub.asked();
    assert_eq!(asked[0].get("sku"), Some("42,43"));
    assert_eq!(asked[1].get("sku"), Some("A,B"));
}

#[tokio::test]
async fn every_page_is_looked_through_and_what_lists_leave_out_when_told_to() {
    let row = |id: u32, corr: &str| {
        json!({
            "id": id, "status": "pending", "total": "1.00", "date_modified_gmt": "2026-11-30T17:37:44",
            "meta_data": [{ "key": "_wc_order_attribution_utm_id", "value": corr }],
        })
    };
    let full: Vec<Value> = (1..=10).map(|id| row(id, if id == 3 { "corr_1" } else { "corr_2" })).collect();
    let mut binned = row(12, "corr_1");
    binned["status"] = json!("trash");
    let says =
        [json!(full), json!([row(11, "corr_1")]), json!([binned])].map(|b| Say::new(200, b.to_string()));
    let (stub, base) = Stub::start(says).await;
    let secret = "cs".to_owned().into();
    let wc_v3 = Some(WcV3 { key: "ck".to_owned(), secret, writes: false });
    let store = WooStore::new(Settings { wc_v3, ..settings(&base) }).unwrap();
    let since = DateTime::UNIX_EPOCH;
    let search = OrderSearch { correlation_id: "corr_1", email: "a@b.example", since, thorough: true };
    let found = store.find_orders(&search).await.unwrap();
    let ids: Vec<_> = found.iter().map(|f| (f.order.shop_order.as_str(), f.state)).collect();
    assert_eq!(ids, [("3", FoundState::Pending), ("11", FoundState::Pending), ("12", FoundState::Gone)]);
    let asked = stub.asked();
    let pages: Vec<_> = asked.iter().map(|a| (a.get("page"), a.get("status"))).collect();
    assert_eq!(pages, [(None, None), (Some("2"), None), (None, Some("checkout-draft,trash"))]);
}
