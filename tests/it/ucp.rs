//! UCP from outside: the order of checks, repeats, and the addresses.

use std::sync::{Arc, atomic::Ordering};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use serde_json::{Value, json};
use tillgate::{
    clock::SystemClock,
    state::{Retention, Sqlite},
};
use tower::ServiceExt as _;

use crate::support::roses::{Roses, gateway};

struct App {
    router: Router,
    shop: Arc<Roses>,
    _data: Arc<tempfile::TempDir>,
}

fn app() -> App {
    let shop = Arc::new(Roses::default());
    let data = Arc::new(tempfile::tempdir().unwrap());
    let kept = chrono::Duration::days(2);
    let retention = Retention { answers: kept, sessions: kept };
    let state = Arc::new(Sqlite::open(data.path(), retention, Arc::new(SystemClock)).unwrap());
    let secret = state.secret().to_vec();
    let gateway = gateway(shop.clone(), state, secret, data, Arc::new(SystemClock), None);
    App { router: gateway.router, shop, _data: gateway.data }
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
