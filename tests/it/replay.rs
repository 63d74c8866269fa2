//! Purchases from recordings alone: the gateway over the tape, no shop behind it.

use std::path::PathBuf;

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{
    Reply, TestApp,
    clients::{acp_lines, lines, payment},
    program::Program,
};

const PLAIN: &str = "38a-journey-plain.har";
const DECLINE: &str = "39a-journey-decline-and-retry.har";
const VIRTUAL: &str = "39c-journey-virtual.har";
const VARIATION: &str = "39e-journey-variation.har";

pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/store").join(name)
}

/// What was recorded of the order: number and total.
fn recorded_order(name: &str) -> (String, i64) {
    let har: Value = serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    let entry = entries.iter().find(|entry| {
        entry["request"]["url"].as_str().is_some_and(|url| url.contains("/wc/store/v1/order/"))
    });
    let text = entry.unwrap()["response"]["content"]["text"].as_str().unwrap();
    let order: Value = serde_json::from_str(text).unwrap();
    let total = order["totals"]["total_price"].as_str().unwrap().parse().unwrap();
    (order["id"].to_string(), total)
}

/// The order that was recorded is the one that the session has, over UCP.
#[track_caller]
fn assert_ucp_order(reply: &Reply, name: &str) {
    let (number, total) = recorded_order(name);
    assert_eq!(reply.text("/status"), "completed", "{}", reply.json);
    assert_eq!((reply.text("/order/label"), reply.total("total")), (number.as_str(), total));
    assert!(reply.codes().is_empty(), "{}", reply.json);
}

/// As [`assert_ucp_order`], over ACP.
#[track_caller]
fn assert_acp_order(reply: &Reply, name: &str) {
    let (number, total) = recorded_order(name);
    assert_eq!(reply.text("/status"), "completed", "{}", reply.json);
    assert_eq!((reply.text("/order/order_number"), reply.total("total")), (number.as_str(), total));
    assert!(reply.codes().is_empty(), "{}", reply.json);
}

/// The orders that a merchant's key finds at the recorded shop.
async fn orders(app: &TestApp, email: &str) -> Vec<Value> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let query = [("created_via", "store-api"), ("search", email), ("after", "2026-11-30T00:00:00Z")];
    let url = format!("{}/wp-json/wc/v3/orders", app.shop_url);
    let answer = client.get(url).query(&query).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

fn anna() -> Value {
    json!({"first_name": "Anna", "last_name": "Muster", "email": "anna@example.com", "phone_number": "+49301234567"})
}

fn berlin() -> Value {
    json!({"id": "berlin", "first_name": "Anna", "last_name": "Muster", "street_address": "Musterweg 5",
        "address_locality": "Berlin", "address_region": "DE-BE", "postal_code": "10115", "address_country": "DE"})
}

fn sam() -> Value {
    json!({"first_name": "Sam", "last_name": "Sample", "email": "sam@example.com", "phone_number": "3105550100"})
}

fn beverly_hills() -> Value {
    json!({"id": "home", "first_name": "Sam", "last_name": "Sample", "street_address": "1 Main St",
        "extended_address": "Apt 2", "address_locality": "Beverly Hills", "address_region": "CA",
        "postal_code": "90210", "address_country": "US"})
}

/// A UCP body with a buyer, where it goes, and the option chosen.
fn ucp_body(lines: &Value, buyer: Value, to: &Value, option: Option<&str>) -> Value {
    let mut method = json!({"type": "shipping", "destinations": [to]});
    if let Some(option) = option {
        method["groups"] = json!([{"selected_option_id": option}]);
    }
    let mut body = lines.clone();
    body["buyer"] = buyer;
    body["fulfillment"] = json!({"methods": [method]});
    body
}

fn mugs_and_more() -> Value {
    json!({"line_items": [{"item": {"id": "19"}, "quantity": 2}, {"item": {"id": "36"}, "quantity": 1}]})
}

fn with_code(mut body: Value) -> Value {
    body["discounts"] = json!({"codes": ["PERCENT10"]});
    body
}

fn acp_berlin() -> Value {
    json!({"name": "Anna Muster", "line_one": "Musterweg 5", "city": "Berlin", "state": "DE-BE",
        "country": "DE", "postal_code": "10115"})
}

fn acp_choice(option: &str, item: &str) -> Value {
    json!([{"type": "shipping", "option_id": option, "item_ids": [item]}])
}

#[tokio::test]
async fn a_purchase_over_ucp_runs_from_its_recording() {
    plain_purchase(&TestApp::replay(PLAIN).await).await;
}

/// The purchase of `38a-journey-plain.har`.
pub async fn plain_purchase(app: &TestApp) {
    let ucp = app.ucp();
    let created = ucp.create(ucp_body(&mugs_and_more(), anna(), &berlin(), None)).await.expect(201);
    assert_eq!(created.total("total"), 4426);
    let id = created.id();
    let body = with_code(ucp_body(&mugs_and_more(), anna(), &berlin(), Some("flat_rate:2")));
    let updated = ucp.update(&id, body).await.expect(200);
    assert_eq!((updated.text("/status"), updated.total("total")), ("ready_for_complete", 5233));
    app.pass(31);
    let read = ucp.get(&id).await.expect(200);
    assert_eq!(read.total("total"), 5233);
    let completed = ucp.complete(&id, "tok_ok").await.expect(200);
    assert_ucp_order(&completed, PLAIN);
    assert_eq!(completed.total("total"), 5233);
    assert_eq!(ucp.get(&id).await.expect(200).json["order"], completed.json["order"]);
}

#[tokio::test]
async fn a_purchase_over_acp_runs_from_its_recording() {
    let app = TestApp::replay(VARIATION).await;
    let acp = app.acp();
    let created = acp.create(acp_lines("27", 1, "eur")).await.expect(201);
    assert_eq!(created.total("total"), 2975);
    let body = json!({"buyer": anna(), "fulfillment_details": {"address": acp_berlin()},
        "selected_fulfillment_options": acp_choice("flat_rate:1", "27"), "order_notes": "Please ring twice."});
    let updated = acp.update(&created.id(), body).await.expect(200);
    assert_eq!(updated.text("/status"), "ready_for_payment");
    let completed = acp.complete(&created.id(), "tok_ok").await.expect(200);
    assert_acp_order(&completed, VARIATION);
}

#[tokio::test]
async fn a_note_that_was_not_recorded_does_not_match() {
    let app = TestApp::replay(VARIATION).await;
    let acp = app.acp();
    let id = acp.create(acp_lines("27", 1, "eur")).await.expect(201).id();
    let body = json!({"buyer": anna(), "fulfillment_details": {"address": acp_berlin()},
        "selected_fulfillment_options": acp_choice("flat_rate:1", "27"), "order_notes": "Leave it at the door."});
    acp.update(&id, body).await.expect(200);
    let answered = acp.complete(&id, "tok_ok").await.expect(200);
    assert_ne!(answered.text("/status"), "completed", "{}", answered.json);
}

#[tokio::test]
async fn a_declined_purchase_over_ucp_is_paid_at_the_second_attempt() {
    let app = TestApp::replay(DECLINE).await;
    let ucp = app.ucp();
    let created = ucp.create(lines("24", 1)).await.expect(201);
    assert_eq!((created.text("/status"), created.total("total")), ("incomplete", 4165));
    let id = created.id();
    let addressed =
        ucp.update(&id, ucp_body(&lines("24", 1), sam(), &beverly_hills(), None)).await.expect(200);
    assert_eq!(addressed.total("total"), 5000);
    ucp.update(&id, ucp_body(&lines("24", 1), sam(), &beverly_hills(), Some("flat_rate:5")))
        .await
        .expect(200);
    let declined = ucp.complete(&id, "tok_declined").await.expect(200);
    assert_eq!(declined.text("/status"), "ready_for_complete");
    assert_eq!(declined.codes(), ["payment_failed"]);
    assert_eq!(orders(&app, "sam@example.com").await, Vec::<Value>::new());
    app.pass(3);
    let paid = ucp.complete(&id, "tok_ok").await.expect(200);
    assert_ucp_order(&paid, DECLINE);
    assert_eq!(orders(&app, "sam@example.com").await.len(), 1);
}

#[tokio::test]
async fn a_declined_purchase_over_acp_is_paid_at_the_second_attempt() {
    declined_purchase(&TestApp::replay(DECLINE).await).await;
}

/// The purchase of `39a-journey-decline-and-retry.har`.
pub async fn declined_purchase(app: &TestApp) {
    let acp = app.acp();
    let id = acp.create(acp_lines("24", 1, "eur")).await.expect(201).id();
    let address = json!({"name": "Sam Sample", "line_one": "1 Main St", "line_two": "Apt 2",
        "city": "Beverly Hills", "state": "CA", "country": "US", "postal_code": "90210"});
    let body = json!({"buyer": sam(), "fulfillment_details": {"address": address},
        "order_notes": "Please ring twice."});
    let addressed = acp.update(&id, body).await.expect(200);
    assert_eq!(addressed.total("total"), 5000);
    let body = json!({"selected_fulfillment_options": acp_choice("flat_rate:5", "24")});
    acp.update(&id, body).await.expect(200);
    let declined = acp.complete(&id, "tok_declined").await.expect(200);
    assert_eq!(declined.text("/status"), "ready_for_payment");
    assert_eq!(declined.codes(), ["payment_declined"]);
    app.pass(3);
    let paid = acp.complete(&id, "tok_ok").await.expect(200);
    assert_acp_order(&paid, DECLINE);
    assert_eq!(orders(app, "sam@example.com").await.len(), 1);
}

#[tokio::test]
async fn a_download_runs_from_its_recording() {
    let app = TestApp::replay(VIRTUAL).await;
    let ucp = app.ucp();
    let id = ucp.create(lines("31", 1)).await.expect(201).id();
    ucp.update(&id, ucp_body(&lines("31", 1), anna(), &berlin(), None)).await.expect(200);
    assert_ucp_order(&ucp.complete(&id, "tok_ok").await.expect(200), VIRTUAL);
}

#[tokio::test]
async fn an_agent_that_does_something_else_is_told_that_the_shop_cannot_be_asked() {
    let app = TestApp::replay(PLAIN).await;
    let ucp = app.ucp().create(lines("19", 3)).await.expect(503);
    assert!(ucp.header("retry-after").is_some());
    let acp = app.acp().create(acp_lines("19", 3, "eur")).await.expect(503);
    assert_eq!(acp.text("/type"), "service_unavailable");
    // What the tape says of the call that the gateway made.
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let token_call = format!("{}/wp-json/wc/store/v1/cart?_fields=items_count", app.shop_url);
    let token = client.get(token_call).send().await.unwrap().headers()["cart-token"].clone();
    let add = json!({"method": "POST", "path": "/wc/store/v1/cart/add-item", "body": {"id": 19, "quantity": 3},
        "headers": {"Cart-Token": token.to_str().unwrap()}});
    let batch =
        client.post(format!("{}/wp-json/wc/store/v1/batch", app.shop_url)).header("cart-token", token);
    let answer = batch.json(&json!({"requests": [add]})).send().await.unwrap();
    assert_eq!(answer.status(), 501);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["code"], "tape_no_match");
    assert_eq!((&answer["nearest"]["file"], &answer["nearest"]["entry"]), (&json!(PLAIN), &json!(1)));
    assert_eq!(answer["nearest"]["comment"], "create 2: lines and customer");
    assert_eq!(answer["nearest"]["difference"]["path"], "$.requests.length");
    // Nothing was used up by it: the recorded purchase can still be made.
    app.ucp().create(ucp_body(&mugs_and_more(), anna(), &berlin(), None)).await.expect(201);
}

#[tokio::test]
async fn the_program_replays_a_purchase() {
    let recording = fixture(PLAIN);
    let program =
        Program::start(&["replay", "--listen", "127.0.0.1:0", "--fixtures", recording.to_str().unwrap()])
            .await;
    let call = async |method: Method, path: &str, key: &str, body: Value| -> Value {
        let (status, body) = program.ucp(method, path, key, &body).await;
        assert!((200..300).contains(&status), "{status} {body}");
        body
    };
    let body = ucp_body(&mugs_and_more(), anna(), &berlin(), None);
    let created = call(Method::POST, "", "create", body).await;
    let path = format!("/{}", created["id"].as_str().unwrap());
    let body = with_code(ucp_body(&mugs_and_more(), anna(), &berlin(), Some("flat_rate:2")));
    call(Method::PUT, &path, "update", body).await;
    let completed = call(Method::POST, &format!("{path}/complete"), "complete", payment("tok_ok")).await;
    assert_eq!(completed["status"], "completed", "{completed}");
    assert_eq!(completed["order"]["label"], recorded_order(PLAIN).0);
    let again = call(Method::POST, &format!("{path}/complete"), "complete", payment("tok_ok")).await;
    assert_eq!(again, completed, "the same key is answered with the stored answer");
}
