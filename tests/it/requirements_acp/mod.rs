//! What ACP asks of a seller, by number, where no other test shows it.

mod answers;
mod form;
mod payment;
mod purchase;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Method, Request},
};
use serde_json::{Value, json};

use crate::support::{
    Reply, TestApp,
    clients::{acp_address, acp_buyer, acp_lines},
};

/// The headers of a write with this key.
fn headers(key: &str) -> Vec<(&'static str, String)> {
    [
        ("authorization", "Bearer test-token"),
        ("api-version", "2026-04-17"),
        ("content-type", "application/json"),
        ("idempotency-key", key),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

/// The same with one header changed, or without it.
fn changed(key: &str, name: &'static str, value: Option<&str>) -> Vec<(&'static str, String)> {
    let mut all = headers(key);
    all.retain(|(known, _)| *known != name);
    all.extend(value.map(|value| (name, value.to_owned())));
    all
}

/// A request as it stands.
async fn raw(
    app: &TestApp,
    method: Method,
    path: &str,
    headers: &[(&'static str, String)],
    body: &str,
) -> Reply {
    let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1");
    for (name, value) in headers {
        request = request.header(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    app.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

/// A create of what can be bought at once, with other members beside.
fn ready_with(item: &str, currency: &str, members: &Value) -> Value {
    let mut body = acp_lines(item, 1, currency);
    body["buyer"] = acp_buyer();
    body["fulfillment_details"] = json!({"address": acp_address()});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// The codes of the discounts in effect.
fn applied(reply: &Reply) -> Vec<&str> {
    let list = reply.json["discounts"]["applied"].as_array().unwrap();
    list.iter().map(|discount| discount["code"].as_str().unwrap()).collect()
}
