//! Two small clients: what an agent sends, in each protocol.

use axum::{
    body::Body,
    http::{Method, Request, request::Builder},
};
use serde_json::{Value, json};

use super::{Reply, TestApp};

pub const PROFILE: &str = "https://agent.example/profile";

/// A fresh idempotency key.
fn fresh_key() -> String {
    tillgate::clock::Ids.uuid()
}

/// An agent that speaks UCP.
#[derive(Clone)]
pub struct Ucp<'a> {
    app: &'a TestApp,
    host: &'static str,
    root: &'static str,
    profile: String,
    key: Option<String>,
}

impl<'a> Ucp<'a> {
    pub fn new(app: &'a TestApp, host: &'static str, root: &'static str) -> Self {
        Self { app, host, root, profile: PROFILE.to_owned(), key: None }
    }

    /// The same agent with this key on its next calls.
    pub fn key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    /// Another agent.
    pub fn profile(&self, url: &str) -> Self {
        Self { profile: url.to_owned(), ..self.clone() }
    }

    /// The same agent at another root.
    pub fn at(&self, root: &'static str) -> Self {
        Self { root, ..self.clone() }
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.root))
            .header("host", self.host)
            .header("ucp-agent", format!("profile=\"{}\"", self.profile))
            .header("content-type", "application/json")
    }

    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let key = self.key.clone().unwrap_or_else(fresh_key);
        let mut request = self.request(method.clone(), path);
        if method != Method::GET {
            request = request.header("idempotency-key", key);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.app.send(request.body(body).unwrap()).await
    }

    pub async fn create(&self, body: Value) -> Reply {
        self.call(Method::POST, "/checkout-sessions", Some(&body)).await
    }

    pub async fn get(&self, id: &str) -> Reply {
        self.call(Method::GET, &format!("/checkout-sessions/{id}"), None).await
    }

    pub async fn update(&self, id: &str, body: Value) -> Reply {
        self.call(Method::PUT, &format!("/checkout-sessions/{id}"), Some(&body)).await
    }

    pub async fn complete(&self, id: &str, token: &str) -> Reply {
        self.call(Method::POST, &format!("/checkout-sessions/{id}/complete"), Some(&payment(token))).await
    }

    pub async fn cancel(&self, id: &str) -> Reply {
        self.call(Method::POST, &format!("/checkout-sessions/{id}/cancel"), None).await
    }

    pub async fn search(&self, body: Value) -> Reply {
        self.call(Method::POST, "/catalog/search", Some(&body)).await
    }

    pub async fn lookup(&self, ids: &[&str]) -> Reply {
        self.call(Method::POST, "/catalog/lookup", Some(&json!({ "ids": ids }))).await
    }

    pub async fn product(&self, body: Value) -> Reply {
        self.call(Method::POST, "/catalog/product", Some(&body)).await
    }

    /// A checkout of one item that can be completed.
    pub async fn ready(&self, item: &str, quantity: u32) -> String {
        let id = self.create(lines(item, quantity)).await.expect(201).id();
        let reply = self.update(&id, full(item, quantity)).await.expect(200);
        assert_eq!(reply.text("/status"), "ready_for_complete", "{}", reply.json);
        id
    }
}

/// A UCP body with one line.
pub fn lines(item: &str, quantity: u32) -> Value {
    json!({"line_items": [{"item": {"id": item}, "quantity": quantity}]})
}

/// A UCP body with one line, a buyer and a US address.
pub fn full(item: &str, quantity: u32) -> Value {
    json!({
        "line_items": [{"item": {"id": item}, "quantity": quantity}],
        "buyer": {"first_name": "Ada", "last_name": "Byron", "email": "ada@example.org", "phone_number": "+12025550143"},
        "fulfillment": {"methods": [{"type": "shipping", "destinations": [us_address()]}]}
    })
}

pub fn us_address() -> Value {
    json!({"id": "home", "first_name": "Ada", "last_name": "Byron", "street_address": "12 Main Street",
        "address_locality": "Springfield", "address_region": "CA", "postal_code": "90210", "address_country": "US"})
}

/// A UCP completion with the mock handler.
pub fn payment(token: &str) -> Value {
    json!({"payment": {"instruments": [{"id": "pi_1", "handler_id": "mock_payment_handler", "type": "card",
        "selected": true, "credential": {"type": "token", "token": token}}]}})
}

/// An agent that speaks ACP.
#[derive(Clone)]
pub struct Acp<'a> {
    app: &'a TestApp,
    host: &'static str,
    key: Option<String>,
}

impl<'a> Acp<'a> {
    pub fn new(app: &'a TestApp, host: &'static str) -> Self {
        Self { app, host, key: None }
    }

    /// The same agent with this key on its next calls.
    pub fn key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let key = self.key.clone().unwrap_or_else(fresh_key);
        let mut request = Request::builder()
            .method(method.clone())
            .uri(format!("/acp{path}"))
            .header("host", self.host)
            .header("authorization", "Bearer test-token")
            .header("api-version", "2026-04-17");
        if method != Method::GET {
            request = request.header("idempotency-key", key);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.app.send(request.body(body).unwrap()).await
    }

    pub async fn create(&self, body: Value) -> Reply {
        self.call(Method::POST, "/checkout_sessions", Some(&body)).await
    }

    pub async fn get(&self, id: &str) -> Reply {
        self.call(Method::GET, &format!("/checkout_sessions/{id}"), None).await
    }

    pub async fn update(&self, id: &str, body: Value) -> Reply {
        self.call(Method::POST, &format!("/checkout_sessions/{id}"), Some(&body)).await
    }

    pub async fn complete(&self, id: &str, token: &str) -> Reply {
        self.call(Method::POST, &format!("/checkout_sessions/{id}/complete"), Some(&acp_payment(token))).await
    }

    pub async fn cancel(&self, id: &str) -> Reply {
        self.call(Method::POST, &format!("/checkout_sessions/{id}/cancel"), None).await
    }

    /// A checkout of one item that can be completed.
    pub async fn ready(&self, item: &str, quantity: u32, currency: &str) -> String {
        let mut body = acp_lines(item, quantity, currency);
        body["buyer"] = acp_buyer();
        body["fulfillment_details"] = json!({"address": acp_address()});
        let reply = self.create(body).await.expect(201);
        assert_eq!(reply.text("/status"), "ready_for_payment", "{}", reply.json);
        reply.id()
    }
}

/// An ACP create with one line.
pub fn acp_lines(item: &str, quantity: u32, currency: &str) -> Value {
    json!({"line_items": [{"id": item, "quantity": quantity}], "currency": currency,
        "capabilities": {"interventions": {"supported": ["3ds"]}, "extensions": ["discount"]}})
}

pub fn acp_buyer() -> Value {
    json!({"email": "ada@example.org", "first_name": "Ada", "last_name": "Byron", "phone_number": "+12025550143"})
}

pub fn acp_address() -> Value {
    json!({"name": "Ada Byron", "line_one": "12 Main Street", "city": "Springfield", "state": "CA",
        "country": "US", "postal_code": "90210"})
}

/// An ACP completion with the mock handler.
pub fn acp_payment(token: &str) -> Value {
    json!({"payment_data": {"handler_id": "mock_payment_handler",
        "instrument": {"type": "card", "credential": {"type": "spt", "token": token}}}})
}
