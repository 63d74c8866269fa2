//! A demo shop on paused time, and people who buy there.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tillgate::clock::Clock;
use tillgate::store::demo::{DemoShop, Seed, router};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt as _;

/// The runtime's own time, which runs ahead to the next thing that happens.
#[derive(Debug)]
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> DateTime<Utc> {
        let passed = chrono::Duration::from_std(self.0.elapsed()).unwrap();
        DateTime::from_timestamp(1_800_000_000, 0).unwrap() + passed
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Lets the shop's time pass.
pub async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// The general shop.
#[derive(Clone)]
pub struct Shop {
    pub shop: DemoShop,
    pub router: Router,
}

/// One answer: status, headers, body (null if it is no JSON).
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub fn hash(&self) -> &str {
        self.headers["cart-hash"].to_str().unwrap()
    }

    /// The order of a checkout.
    pub fn order(&self) -> u64 {
        self.body["order_id"].as_u64().unwrap_or_else(|| panic!("{} {}", self.status, self.body))
    }
}

impl Shop {
    pub fn open() -> Self {
        let clock = Arc::new(Paused(Instant::now()));
        let shop = DemoShop::open(Seed::General, None, clock.clone()).unwrap();
        let flower = DemoShop::open(Seed::Flower, None, clock).unwrap();
        Self { router: router(flower, shop.clone()), shop }
    }

    pub fn fault(&self, text: &str) {
        self.shop.set_fault(text).unwrap();
    }

    pub fn event(&self, event: &Value) {
        self.shop.act(event).unwrap();
    }

    pub fn orders(&self) -> Vec<Value> {
        self.shop.orders().as_array().unwrap().clone()
    }

    /// Status of every order, oldest first.
    pub fn statuses(&self) -> Vec<String> {
        self.orders().iter().map(|order| order["status"].as_str().unwrap().to_owned()).collect()
    }

    /// Rules of what a client did wrong, in order.
    pub fn violations(&self) -> Vec<String> {
        let found = self.shop.violations();
        let found = found["violations"].as_array().unwrap();
        found.iter().map(|found| found["rule"].as_str().unwrap().to_owned()).collect()
    }

    /// The same of what did no harm.
    pub fn harmless(&self) -> Vec<String> {
        let found = self.shop.violations();
        let found = found["harmless"].as_array().unwrap();
        found.iter().map(|found| found["rule"].as_str().unwrap().to_owned()).collect()
    }

    async fn send(&self, method: &str, path: &str, token: Option<&str>, body: Option<Value>) -> Answer {
        self.ask(method, &format!("wp-json/{path}"), token, body).await
    }

    /// A call of `/_demo/…`: what it answers.
    pub async fn demo(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let answer = self.ask(method, &format!("_demo/{path}"), None, body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    async fn ask(&self, method: &str, path: &str, token: Option<&str>, body: Option<Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/general/{path}"));
        if let Some(token) = token {
            request = request.header("Cart-Token", token);
        }
        if path.starts_with("wp-json/wc/v3") {
            request = request.header("Authorization", "Basic Y2tfZGVtbzpjc19kZW1v");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.header("Content-Type", "application/json").body(body).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
        Answer { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() }
    }

    /// A call of wc/v3 that succeeds.
    pub async fn wcv3(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let answer = self.send(method, &format!("wc/v3/{path}"), None, body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// The physical stock that wc/v3 tells.
    pub async fn stock(&self, product: u64) -> i64 {
        self.wcv3("GET", &format!("products/{product}"), None).await["stock_quantity"].as_i64().unwrap()
    }

    /// What the Store API says one can buy at most.
    pub async fn maximum(&self, product: u64) -> i64 {
        let product = self.send("GET", &format!("wc/store/v1/products/{product}"), None, None).await;
        product.body["add_to_cart"]["maximum"].as_i64().unwrap()
    }

    /// A person with an empty cart.
    pub async fn buyer(&self) -> Buyer {
        let answer = self.send("GET", "wc/store/v1/cart", None, None).await;
        Buyer { shop: self.clone(), token: answer.headers["cart-token"].to_str().unwrap().to_owned() }
    }

    /// A person with an address and units of products in the cart.
    pub async fn buyer_of(&self, goods: &[(u64, i64)]) -> Buyer {
        let buyer = self.buyer().await;
        for (product, quantity) in goods {
            let answer = buyer.add(*product, *quantity).await;
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
        assert_eq!(buyer.update_customer().await.status, 200);
        buyer
    }
}

pub fn address() -> Value {
    json!({
        "first_name": "Anna", "last_name": "Example", "company": "", "address_1": "Hauptstr. 1", "address_2": "",
        "city": "Berlin", "state": "", "postcode": "10115", "country": "DE", "phone": "",
        "email": "anna@example.com",
    })
}

/// Who has a cart.
#[derive(Clone)]
pub struct Buyer {
    pub shop: Shop,
    pub token: String,
}

impl Buyer {
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.shop.send(method, &format!("wc/store/v1/{path}"), Some(&self.token), body).await
    }

    pub async fn add(&self, product: u64, quantity: i64) -> Answer {
        self.call("POST", "cart/add-item", Some(json!({"id": product, "quantity": quantity}))).await
    }

    pub async fn update_customer(&self) -> Answer {
        let body = json!({"billing_address": address(), "shipping_address": address()});
        self.call("POST", "cart/update-customer", Some(body)).await
    }

    pub async fn coupon(&self, code: &str) -> Answer {
        self.call("POST", "cart/apply-coupon", Some(json!({"code": code}))).await
    }

    pub async fn cart(&self) -> Answer {
        self.call("GET", "cart", None).await
    }

    /// Units in the cart.
    pub async fn units(&self) -> u64 {
        self.cart().await.body["items_count"].as_u64().unwrap()
    }

    /// The fence.
    pub async fn empty(&self) {
        assert_eq!(self.call("DELETE", "cart/items", None).await.status, 200);
    }

    pub async fn pay(&self, token: &str, utm_id: &str) -> Answer {
        let body = json!({
            "billing_address": address(),
            "shipping_address": address(),
            "payment_method": "agent_token",
            "payment_data": [{"key": "token", "value": token}],
            "extensions": {"woocommerce/order-attribution": {"utm_id": utm_id}},
        });
        self.call("POST", "checkout", Some(body)).await
    }

    /// Pays beside what follows: sent when this returns.
    pub async fn pay_aside(&self, token: &'static str, utm_id: &'static str) -> JoinHandle<Answer> {
        let buyer = self.clone();
        let sent = tokio::spawn(async move { buyer.pay(token, utm_id).await });
        pass(1).await;
        sent
    }
}
