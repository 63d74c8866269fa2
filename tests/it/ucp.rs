//! UCP from outside: the order of checks, repeats, and the addresses.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tillgate::{
    catalog::{Branch, Catalog, Found, Page, Query, Shelf, Wish},
    checkout::{
        cart::{CartHandle, CartLine, CartPlan, CartTotals, CartView, Limits, Package, Rate},
        ids::{ProductId, ShopId},
        outcome::{Outcome, RenderContext, Renderer},
        service::{Parts, PaymentHandler, Service, Settings},
        session::Cart,
        store::{
            Abilities, Error, FoundOrder, OrderView, PlaceOrder, PlacedOrder, Placement, Resolved, Store,
        },
    },
    clock::SystemClock,
    idempotency::Answer,
    lane::Lanes,
    money::Currency,
    platform::{Document, Pin, Platforms, full_profile},
    protocol::{
        ShopFace,
        shop::{HandlerFace, Links, UcpHandler},
        ucp::{self, Ucp},
    },
    state::sqlite::{Retention, Sqlite},
};
use tower::ServiceExt as _;

/// A shop that sells roses at 35.00 and ships them for 5.00 or 15.00; other items are unknown to it.
#[derive(Debug, Default)]
struct Roses {
    calls: AtomicUsize,
}

impl Roses {
    fn view(&self, plan: &CartPlan) -> CartView {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let currency = Currency::parse("USD").unwrap();
        let known = plan.customer.as_ref().is_some_and(|customer| customer.shipping.is_some());
        let fast = plan.rates.iter().any(|choice| choice.rate == "exp");
        let rate = |id: &str, price, selected| Rate {
            id: id.into(),
            title: format!("Rate {id}"),
            description: String::new(),
            price,
            tax: 0,
            pickup: false,
            selected,
        };
        let lines: Vec<CartLine> = plan
            .lines
            .iter()
            .map(|line| {
                let amount = 3500 * i64::from(line.quantity);
                CartLine {
                    key: line.product.as_str().into(),
                    product: line.product.clone(),
                    sku: None,
                    title: "Roses".into(),
                    image_url: None,
                    quantity: line.quantity,
                    limits: Limits { minimum: 1, maximum: 99, step: 1 },
                    left: None,
                    unit_price: 3500,
                    unit_price_with_tax: false,
                    subtotal: amount,
                    subtotal_tax: 0,
                    total: amount,
                    total_tax: 0,
                }
            })
            .collect();
        let shipping = if fast { 1500 } else { 500 };
        let goods: i64 = lines.iter().map(|line| line.total).sum();
        CartView {
            handle: CartHandle { token: "t".into(), identity: "i".into() },
            currency,
            packages: vec![Package {
                id: "0".into(),
                name: String::new(),
                line_keys: lines.iter().map(|line| line.key.clone()).collect(),
                rates: if known { vec![rate("std", 500, !fast), rate("exp", 1500, fast)] } else { vec![] },
            }],
            lines,
            coupons: vec![],
            fees: vec![],
            totals: CartTotals {
                shipping: known.then_some(shipping),
                shipping_tax: 0,
                tax: 0,
                total: goods + if known { shipping } else { 0 },
            },
            needs_shipping: true,
            needs_payment: true,
            payment_methods: vec!["agent_token".into()],
            warnings: vec![],
            refusals: vec![],
        }
    }
}

#[async_trait]
impl Store for Roses {
    fn abilities(&self) -> Abilities {
        Abilities { finds_orders: false }
    }
    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, Error> {
        let known = |item: &String| match item.as_str() {
            "roses" => Resolved::Product(ProductId::new("roses")),
            _ => Resolved::Unknown,
        };
        Ok(items.iter().map(known).collect())
    }
    async fn open(&self, plan: &CartPlan) -> Result<CartView, Error> {
        Ok(self.view(plan))
    }
    async fn change(&self, _: &Cart, plan: &CartPlan) -> Result<CartView, Error> {
        Ok(self.view(plan))
    }
    async fn check(&self, _: &Cart, plan: &CartPlan) -> Result<CartView, Error> {
        Ok(self.view(plan))
    }
    async fn read(&self, cart: &Cart) -> Result<CartView, Error> {
        Ok(self.view(&cart.plan))
    }
    async fn place(&self, _: &Cart, order: &PlaceOrder) -> Result<Placement, Error> {
        if order.payment_data.iter().any(|(_, value)| value == "tok_declined") {
            return Ok(Placement::Declined { shop_order: None });
        }
        Ok(Placement::Placed(PlacedOrder {
            shop_order: "17".into(),
            number: "1207".into(),
            key: "secret".into(),
            paid: true,
            cart_filled: false,
            permalink_url: Some("https://shop.example/order/17".into()),
        }))
    }
    async fn read_order(&self, _: &PlacedOrder, _: &str) -> Result<OrderView, Error> {
        Ok(OrderView { currency: Currency::parse("USD").unwrap(), total: 8500, units: 2 })
    }
    async fn find_orders(&self, _: &str, _: &str, _: DateTime<Utc>) -> Result<Vec<FoundOrder>, Error> {
        Ok(vec![])
    }
    async fn empty(&self, _: &CartHandle) -> Result<(), Error> {
        Ok(())
    }
}

/// Nothing is on the shelves.
struct Empty;

#[async_trait]
impl Shelf for Empty {
    fn takes_its_own_call(&self, _: &str) -> bool {
        false
    }

    async fn categories(&self) -> Result<Vec<Branch>, Error> {
        Ok(Vec::new())
    }

    async fn closely(&self, _: &str, _: &Wish) -> Result<Option<Found>, Error> {
        Ok(None)
    }

    async fn search(&self, _: &Query, _: &[String]) -> Result<Page, Error> {
        Ok(Page { products: vec![], total: Some(0), more: false })
    }
    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, Error> {
        Ok(vec![None; ids.len()])
    }
}

fn empty_catalog() -> Arc<Catalog> {
    let ttl = Duration::from_mins(1);
    let settings = tillgate::catalog::Settings {
        ttl,
        cache_bytes: 1 << 20,
        page_size: 50,
        ids: 50,
        calls: 3,
        wait: ttl,
    };
    Arc::new(Catalog::new(Arc::new(Empty), settings))
}

struct Render(Arc<ShopFace>);

impl Renderer for Render {
    fn render(&self, context: &RenderContext, outcome: &Outcome) -> Answer {
        ucp::render(&self.0, context, outcome)
    }
}

struct App {
    router: Router,
    shop: Arc<Roses>,
    _data: tempfile::TempDir,
}

fn app() -> App {
    let face = Arc::new(ShopFace {
        id: ShopId::new("flower"),
        title: "Flowers".into(),
        public_url: "https://shop.example".into(),
        https_base: "https://shop.example".into(),
        home_url: "https://shop.example/".parse().unwrap(),
        currency: Currency::parse("USD").unwrap(),
        prices_with_tax: false,
        links: Links::default(),
        handlers: vec![HandlerFace {
            always: false,
            id: "mock_payment_handler".into(),
            method: "agent_token".into(),
            ucp: Some(UcpHandler {
                name: "dev.tillgate.mock".into(),
                version: "2026-04-08".into(),
                spec: None,
                schema: None,
                instrument_types: vec![],
                config: serde_json::Map::new(),
            }),
            acp: None,
        }],
        agents: vec![],
        locales: vec![],
        development: false,
        max_lines: 100,
        max_quantity: 9_999,
    });
    let data = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let kept = chrono::Duration::days(2);
    let retention = Retention { answers: kept, sessions: kept };
    let state = Sqlite::open(data.path(), retention, clock.clone()).unwrap();
    let shop = Arc::new(Roses::default());
    let settings = Settings {
        shop: face.id.clone(),
        currency: face.currency,
        handlers: vec![PaymentHandler {
            id: "mock_payment_handler".into(),
            method: "agent_token".into(),
            data: vec![("token".into(), "{credential.token}".into())],
            always: false,
        }],
        https_base: face.https_base.clone(),
        session_life: Duration::from_hours(1),
        complete_wait: Duration::from_secs(4),
        snapshot_life: Duration::from_secs(30),
        settle_wait: Duration::from_secs(5),
        stand_ins: None,
        cheapest_first: false,
    };
    let parts = Parts {
        store: shop.clone(),
        secret: state.secret().to_vec(),
        state: Arc::new(state),
        lanes: Lanes::new(4, Duration::from_secs(10)),
        clock,
        renderer: Arc::new(Render(face.clone())),
        tasks: tokio_util::task::TaskTracker::new(),
    };
    let pins = ["https://agent.example/p", "https://other.example/p"].map(|url| Pin {
        url: url.into(),
        version: "2026-04-08".into(),
        document: Document::Value(full_profile("2026-04-08", None)),
    });
    let platforms = Arc::new(Platforms::new(&pins, false).unwrap());
    let service = Arc::new(Service::new(settings, parts));
    let router =
        ucp::router(Arc::new(Ucp { face, service, catalog: empty_catalog(), platforms, json_depth: 32 }));
    App { router, shop, _data: data }
}

const AGENT: (&str, &str) = ("ucp-agent", "profile=\"https://agent.example/p\"");

impl App {
    async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
    }

    async fn call(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let headers = [AGENT, ("idempotency-key", key), ("content-type", "application/json")];
        let (status, _, body) = self.raw(method, path, &headers, &body.to_string()).await;
        (status.as_u16(), serde_json::from_slice(&body).unwrap())
    }
}

fn roses() -> Value {
    json!({"line_items": [{"item": {"id": "roses"}, "quantity": 2}]})
}

fn payment(token: &str) -> Value {
    json!({"payment": {"instruments": [{"id": "p", "handler_id": "mock_payment_handler", "type": "card",
        "credential": {"type": "token", "token": token}}]}})
}

/// Requirements: U-065, U-089.
#[tokio::test]
async fn a_journey_ends_with_an_order_that_cannot_be_changed() {
    let app = app();
    let (status, created) = app.call("POST", "/ucp/checkout-sessions", "k1", &roses()).await;
    assert_eq!((status, &created["status"]), (201, &json!("incomplete")), "{created}");
    let path = format!("/2026-04-08/checkout-sessions/{}", created["id"].as_str().unwrap());
    let destination = json!({"id": "home", "street_address": "12 Main Street", "address_locality": "Springfield",
        "address_region": "CA", "postal_code": "90210", "address_country": "us"});
    let with = |method: Value| {
        let mut body = roses();
        body["buyer"] = json!({"email": "ada@example.org"});
        body["fulfillment"] = json!({"methods": [method]});
        body
    };
    let address = with(json!({"type": "shipping", "destinations": [destination]}));
    let (_, addressed) = app.call("PUT", &path, "k2", &address).await;
    let method = &addressed["fulfillment"]["methods"][0];
    assert_eq!(method["selected_destination_id"], "home", "{addressed}");
    assert_eq!(method["groups"][0]["options"].as_array().unwrap().len(), 2);
    // A choice by id finds the address that was sent before.
    let choice = with(json!({"selected_destination_id": "home", "groups": [{"selected_option_id": "exp"}]}));
    let (status, chosen) = app.call("PUT", &path, "k3", &choice).await;
    assert_eq!((status, &chosen["status"]), (200, &json!("ready_for_complete")), "{chosen}");
    assert_eq!(chosen["line_items"][0]["id"], created["line_items"][0]["id"]);
    assert_eq!(chosen["totals"].as_array().unwrap().last().unwrap()["amount"], 8500);

    let (status, declined) =
        app.call("POST", &format!("{path}/complete"), "k4", &payment("tok_declined")).await;
    assert_eq!((status, &declined["messages"][0]["code"]), (200, &json!("payment_failed")), "{declined}");
    let mut foreign = payment("tok_ok");
    foreign["payment"]["instruments"][0]["handler_id"] = json!("unheard_of");
    let (status, refused) = app.call("POST", &format!("{path}/complete"), "k5", &foreign).await;
    assert_eq!((status, &refused["messages"][0]["severity"]), (200, &json!("recoverable")), "{refused}");
    let (status, done) = app.call("POST", &format!("{path}/complete"), "k6", &payment("tok_ok")).await;
    assert_eq!((status, &done["status"]), (200, &json!("completed")), "{done}");
    assert_eq!(done["order"]["permalink_url"], "https://shop.example/order/17");
    assert!(done.get("continue_url").is_none() && !done.to_string().contains("tok_ok"));
    let (_, read) = app.call("GET", &path, "", &json!({})).await;
    assert_eq!(read, done);
    for (method, path) in [("PUT", path.clone()), ("POST", format!("{path}/cancel"))] {
        let (status, refused) = app.call(method, &path, "k7", &roses()).await;
        assert_eq!((status, &refused["code"]), (409, &json!("invalid_state")));
    }
}

/// Requirements: U-048, U-050, U-051, U-053.
#[tokio::test]
async fn a_key_repeats_its_answer_at_every_address_and_takes_no_other_body() {
    let app = app();
    let headers = [AGENT, ("idempotency-key", "k"), ("request-id", "r-7")];
    let body = roses().to_string();
    let (status, seen, first) = app.raw("POST", "/ucp/checkout-sessions", &headers, &body).await;
    assert_eq!((status, &seen["request-id"]), (StatusCode::CREATED, &"r-7".parse().unwrap()));
    assert_eq!(seen["cache-control"], "no-store");
    let calls = app.shop.calls.load(Ordering::SeqCst);
    for path in ["/ucp/checkout-sessions", "/checkout-sessions", "/2026-04-08/checkout-sessions"] {
        let (status, _, again) = app.raw("POST", path, &headers, &format!(" {body}")).await;
        assert_eq!((status, &again), (StatusCode::CREATED, &first), "{path}");
    }
    assert_eq!(app.shop.calls.load(Ordering::SeqCst), calls);
    let (status, refused) = app.call("POST", "/ucp/checkout-sessions", "k", &json!({"line_items": []})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("idempotency_conflict")));
    // Another platform has keys and sessions of its own.
    let other = [("ucp-agent", "profile=\"https://other.example/p\""), ("idempotency-key", "k")];
    let (status, _, theirs) = app.raw("POST", "/ucp/checkout-sessions", &other, &body).await;
    assert_eq!(status, StatusCode::CREATED);
    let theirs: Value = serde_json::from_slice(&theirs).unwrap();
    let path = format!("/ucp/checkout-sessions/{}", theirs["id"].as_str().unwrap());
    let (status, foreign) = app.call("GET", &path, "", &json!({})).await;
    assert_eq!((status, &foreign["messages"][0]["code"]), (200, &json!("not_found")));
}

/// Requirements: U-018, U-042, U-043, U-047.
#[tokio::test]
async fn a_refusal_of_form_is_kept_and_earlier_ones_are_not() {
    let app = app();
    let path = "/ucp/checkout-sessions";
    let empty = json!({"line_items": []});
    for _ in 0..2 {
        let (status, refused) = app.call("POST", path, "k", &empty).await;
        assert_eq!((status, &refused["messages"][0]["path"]), (400, &json!("$.line_items")));
    }
    assert_eq!(app.call("POST", path, "k", &roses()).await.0, 409);
    let key = ("idempotency-key", "fresh");
    for (headers, body, status, code) in [
        (vec![key], roses().to_string(), 400, "invalid_profile_url"),
        (
            vec![("ucp-agent", "profile=\"http://x.example\""), key],
            roses().to_string(),
            400,
            "invalid_profile_url",
        ),
        (vec![AGENT, key, key], roses().to_string(), 400, "invalid_request"),
        (vec![AGENT, ("idempotency-key", "a b")], roses().to_string(), 400, "invalid_request"),
        (vec![AGENT, key, ("content-type", "text/plain")], roses().to_string(), 415, "invalid_request"),
        (vec![AGENT, key], "{\"a\":1,\"a\":2}".into(), 400, "invalid_request"),
        (vec![AGENT, key], "{".into(), 400, "invalid_request"),
    ] {
        let (found, seen, body) = app.raw("POST", path, &headers, &body).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((found.as_u16(), &body["code"]), (status, &json!(code)), "{headers:?}");
        assert_eq!(body["content"], body["messages"][0]["content"]);
        assert!(seen.contains_key("request-id"));
    }
    let large = " ".repeat(3 * 1024 * 1024);
    let (found, _, body) = app.raw("POST", path, &[AGENT, key], &large).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((found.as_u16(), &body["code"]), (413, &json!("request_too_large")));
    assert_eq!(app.call("POST", path, "fresh", &roses()).await.0, 201);
}

/// Requirements: U-046, U-084, U-085.
#[tokio::test]
async fn nothing_to_buy_makes_no_session_and_part_of_it_makes_one_with_a_message() {
    let app = app();
    let unknown = json!({"line_items": [{"item": {"id": "pink_wumpus"}, "quantity": 1}]});
    let (status, nothing) = app.call("POST", "/checkout-sessions", "a", &unknown).await;
    assert_eq!((status, &nothing["ucp"]["status"]), (200, &json!("error")));
    assert!(nothing.get("id").is_none());
    let mut mixed = roses();
    mixed["line_items"].as_array_mut().unwrap().push(unknown["line_items"][0].clone());
    mixed["context"] = json!({"eligibility": ["org.example.gold"]});
    let (status, some) = app.call("POST", "/checkout-sessions", "b", &mixed).await;
    assert_eq!((status, some["line_items"].as_array().unwrap().len()), (201, 1));
    let codes: Vec<_> =
        some["messages"].as_array().unwrap().iter().map(|m| m["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"not_found") && codes.contains(&"eligibility_not_accepted"), "{codes:?}");
}

/// Requirements: U-001, U-045, U-047.
#[tokio::test]
async fn profiles_are_public_and_wrong_addresses_answer_in_the_flat_body() {
    let app = app();
    for (path, endpoint) in [
        ("/.well-known/ucp", "https://shop.example/ucp"),
        ("/2026-04-08/.well-known/ucp", "https://shop.example/2026-04-08"),
    ] {
        let (status, headers, body) = app.raw("GET", path, &[], "").await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["cache-control"], "public, max-age=3600");
        assert_eq!(body["ucp"]["services"]["dev.ucp.shopping"][0]["endpoint"], endpoint);
    }
    for (method, path, status, allow) in [
        ("GET", "/ucp/nothing", 404, None),
        ("GET", "/2026-04-08/nothing", 404, None),
        ("DELETE", "/ucp/checkout-sessions", 405, Some("POST")),
        ("PATCH", "/checkout-sessions/chk_1", 405, Some("GET,HEAD,PUT")),
        ("GET", "/2026-04-08/checkout-sessions/chk_1/complete", 405, Some("POST")),
        ("POST", "/.well-known/ucp", 405, Some("GET,HEAD")),
    ] {
        let (found, headers, body) = app.raw(method, path, &[], "").await;
        assert_eq!(found.as_u16(), status, "{method} {path}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["code"].is_string() && body["messages"][0]["code"] == body["code"]);
        assert_eq!(headers.get("allow").map(|value| value.to_str().unwrap()), allow, "{method} {path}");
    }
}
