//! The life of a session.

use serde_json::json;

use crate::support::{
    TestApp,
    clients::{full, lines},
};

/// Requirements: U-070.
#[tokio::test]
async fn whatever_is_not_at_its_end_can_be_canceled() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let bare = ucp.create(lines("bouquet_roses", 1)).await.expect(201).id();
    let ready = ucp.ready("bouquet_roses", 1).await;
    let declined = ucp.ready("bouquet_roses", 1).await;
    ucp.complete(&declined, "fail_token").await.expect(200);
    let escalated = ucp.ready("bouquet_roses", 1).await;
    let told = ucp.complete(&escalated, "challenge_token").await.expect(200);
    assert_eq!(told.text("/status"), "requires_escalation");
    for id in [bare, ready, declined, escalated] {
        let reply = ucp.cancel(&id).await.expect(200);
        assert_eq!(reply.text("/status"), "canceled", "{}", reply.json);
        assert!(reply.json.get("continue_url").is_none());
        assert_eq!(ucp.cancel(&id).await.expect(409).text("/code"), "invalid_state");
    }
}

/// A completion before its time changes nothing and charges nothing.
/// Requirements: U-046.
#[tokio::test]
async fn a_completion_too_early_shows_what_is_missing() {
    let app = TestApp::with(|settings| settings.development = None).await;
    let created = app.ucp().create(lines("bouquet_roses", 1)).await.expect(201);
    assert_eq!(created.text("/status"), "incomplete");
    app.shop_calls().await;
    let early = app.ucp().complete(&created.id(), "success_token").await.expect(200);
    assert_eq!(early.json["messages"], created.json["messages"]);
    assert_eq!((early.text("/status"), early.json.get("order")), ("incomplete", None));
    assert!(!app.shop_calls().await.iter().any(|call| call.ends_with("/checkout")));
    assert_eq!(app.flower().orders(), json!([]));
}

/// Requirements: U-059, U-060, U-061, U-062.
#[tokio::test]
async fn the_way_on_is_https_and_there_while_there_is_one() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let created = ucp.create(lines("bouquet_roses", 1)).await.expect(201);
    let id = created.id();
    let ready = ucp.update(&id, full("bouquet_roses", 1)).await.expect(200);
    let escalated = ucp.complete(&id, "challenge_token").await.expect(200);
    for reply in [&created, &ready, &escalated] {
        let address = url::Url::parse(reply.text("/continue_url")).unwrap();
        assert_eq!(address.scheme(), "https");
        let page = app.get(address.path()).await.expect(200);
        assert!(String::from_utf8_lossy(&page.bytes).contains("Flower shop"));
    }
    assert_eq!(escalated.text("/status"), "requires_escalation");
    let severities: Vec<_> =
        escalated.json["messages"].as_array().unwrap().iter().map(|m| m["severity"].clone()).collect();
    assert!(severities.contains(&json!("requires_buyer_input")), "{severities:?}");
    let other = ucp.ready("bouquet_roses", 1).await;
    let done = ucp.complete(&other, "success_token").await.expect(200);
    assert!(done.json.get("continue_url").is_none() && done.json["order"]["id"].is_string());
}

/// An order that costs nothing needs no instrument.
/// Requirements: U-046, U-072.
#[tokio::test]
async fn what_costs_nothing_is_completed_without_an_instrument() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp();
    let mut body = super::order_to(&["38"], &super::berlin());
    body["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "local_pickup:4"}]);
    for payment in [json!({"payment": {}}), json!({"payment": {"instruments": []}})] {
        let created = ucp.create(body.clone()).await.expect(201);
        let seen = (created.text("/status"), created.total("total"));
        assert_eq!(seen, ("ready_for_complete", 0), "{}", created.json);
        let path = format!("/checkout-sessions/{}/complete", created.id());
        let done = ucp.call(axum::http::Method::POST, &path, Some(&payment)).await.expect(200);
        assert_eq!(done.text("/status"), "completed", "{}", done.json);
        assert!(done.text("/order/permalink_url").starts_with("https://"));
    }
    assert_eq!(app.general().orders().as_array().unwrap().len(), 2);
}
