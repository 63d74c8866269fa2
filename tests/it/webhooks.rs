//! A shop's webhooks at the gateway: signed ones are hints, nothing else is taken.

use axum::{body::Body, http::Request};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;
use tillgate::{checkout::ids::ShopId, stock::StockId};

use crate::support::{Reply, TestApp, clients::full};

const SECRET: &str = "whsec-of-a-test";

async fn with_secret() -> TestApp {
    TestApp::with(|settings| {
        let shop = settings.shops.get_mut("flower").unwrap();
        shop.webhook_secret = Some(SECRET.to_owned().into());
    })
    .await
}

fn signature(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    data_encoding::BASE64.encode(&mac.finalize().into_bytes())
}

async fn deliver(app: &TestApp, topic: &str, signed: Option<&str>, body: &str) -> Reply {
    let mut request = Request::builder()
        .method("POST")
        .uri("/webhooks/woocommerce")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("x-wc-webhook-topic", topic);
    if let Some(signature) = signed {
        request = request.header("x-wc-webhook-signature", signature);
    }
    app.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

async fn upper(app: &TestApp, stock: &StockId) -> i64 {
    let shelves = app.app.state().shelves(&ShopId::new("flower"), None).await.unwrap();
    shelves[stock].upper.unwrap().number
}

#[tokio::test]
async fn a_signed_delivery_has_its_product_read_again_whatever_it_says() {
    let app = with_secret().await;
    let ucp = app.ucp();
    let id = ucp.create(full("bouquet_roses", 1)).await.expect(201).id();
    ucp.complete(&id, "success_token").await.expect(200);
    let shelves = app.app.state().shelves(&ShopId::new("flower"), None).await.unwrap();
    let stock = shelves.into_keys().next().unwrap();
    let product: u64 = stock.as_str().parse().unwrap();
    app.app.rest().await;
    app.flower().act(&json!({"op": "stock", "product": product, "quantity": 9})).unwrap();
    app.pass(2);
    app.shop_calls().await;
    // It names a number of its own, which is not believed.
    let body = json!({"id": product, "stock_quantity": 4}).to_string();
    let right = signature(SECRET, &body);
    for wrong in [None, Some(signature("another", &body)), Some(signature(SECRET, "{}"))] {
        deliver(&app, "product.updated", wrong.as_deref(), &body).await.expect(401);
    }
    app.app.rest().await;
    assert_ne!(upper(&app, &stock).await, 9, "nothing was read for what is not signed");
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
    deliver(&app, "product.updated", Some(&right), &body).await.expect(200);
    app.app.rest().await;
    assert_eq!(upper(&app, &stock).await, 9);
    assert_eq!(app.shop_calls().await, ["GET wp-json/wc/v3/products"], "one call");
    // A product that nobody here has ever asked for costs nothing.
    let other = json!({"id": 105}).to_string();
    deliver(&app, "product.updated", Some(&signature(SECRET, &other)), &other).await.expect(200);
    app.app.rest().await;
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_signed_is_never_refused_and_the_rest_is() {
    let app = with_secret().await;
    for (topic, body) in [
        ("coupon.updated", r#"{"id":3}"#),
        ("product.updated", "no json"),
        ("product.updated", r#"{"code":"woocommerce_rest_cannot_view"}"#),
        ("order.updated", r#"{"id":12}"#),
    ] {
        deliver(&app, topic, Some(&signature(SECRET, body)), body).await.expect(200);
        deliver(&app, topic, Some("AAAA"), body).await.expect(401);
    }
    // Too much is not read, signed or not.
    let large = format!(r#"{{"id":1,"x":"{}"}}"#, "x".repeat(300_000));
    deliver(&app, "product.updated", Some(&signature(SECRET, &large)), &large).await.expect(413);
    // A shop without a secret has no such address.
    let plain = TestApp::new().await;
    let body = r#"{"id":12}"#;
    deliver(&plain, "order.updated", Some(&signature("", body)), body).await.expect(404);
}

#[tokio::test]
async fn an_order_that_changed_brings_the_look_for_a_lost_one_forward() {
    let app = with_secret().await;
    let ucp = app.ucp();
    let id = ucp.create(full("bouquet_roses", 1)).await.expect(201).id();
    app.flower().set_fault("lost_answer,count=1,only=checkout").unwrap();
    let told = ucp.complete(&id, "success_token").await;
    assert_eq!(told.json["status"], "complete_in_progress", "{}", told.json);
    // Looks that fail come more and more slowly.
    app.flower().set_fault("http_500,only=wcv3").unwrap();
    for _ in 0..5 {
        app.app.tend().await;
        app.pass(8);
    }
    app.app.tend().await;
    app.flower().clear_faults();
    app.shop_calls().await;
    app.pass(2);
    app.app.tend().await;
    assert_eq!(app.shop_calls().await, Vec::<String>::new(), "the next look is not due");
    let body = r#"{"id":1001,"status":"on-hold"}"#;
    deliver(&app, "order.updated", Some(&signature(SECRET, body)), body).await.expect(200);
    app.app.tend().await;
    assert!(!app.shop_calls().await.is_empty(), "now it is");
    let read = ucp.get(&id).await.expect(200);
    assert_eq!(read.text("/status"), "completed", "{}", read.json);
}
