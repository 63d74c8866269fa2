//! What UCP 2026-04-08 asks of a business, by number, where no other test shows it.

mod delivery;
mod envelope;
mod memory;
mod profile;
mod sessions;

use axum::{Json, Router, routing::get};
use serde_json::{Value, json};
use tillgate::platform::full_profile;

use crate::support::{Reply, listen};

/// A platform that understands all but these capabilities; its profile is served on loopback.
async fn platform_without(names: &[&str]) -> String {
    let mut document = full_profile("2026-04-08", None);
    for name in names {
        document["ucp"]["capabilities"].as_object_mut().unwrap().remove(*name).unwrap();
    }
    let base = listen(Router::new().route("/profile", get(move || async move { Json(document) }))).await;
    format!("{base}/profile")
}

/// What two answers have in common although ids and times differ.
fn without_ids(reply: &Reply) -> Value {
    let mut body = reply.json.clone();
    let members = body.as_object_mut().unwrap();
    for name in ["id", "continue_url", "expires_at"] {
        members.remove(name);
    }
    body
}

/// An address in Berlin.
fn berlin() -> Value {
    json!({"id": "d", "first_name": "Anna", "last_name": "Muster", "street_address": "Musterweg 5",
        "address_locality": "Berlin", "address_region": "DE-BE", "postal_code": "10115", "address_country": "DE"})
}

/// Items to an address, for a buyer who can be reached.
fn order_to(items: &[&str], address: &Value) -> Value {
    let lines: Vec<_> = items.iter().map(|item| json!({"item": {"id": item}, "quantity": 1})).collect();
    json!({"line_items": lines, "buyer": {"email": "anna@example.com"},
        "fulfillment": {"methods": [{"type": "shipping", "destinations": [address]}]}})
}
