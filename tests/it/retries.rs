//! Retries: the same key is answered once and for all, also across a restart.

use axum::http::Method;
use serde_json::json;

use crate::support::{
    TestApp,
    clients::{acp_lines, full, lines, payment},
};

/// Requirements: U-048, U-050, A-018, A-021, A-022, A-026.
#[tokio::test]
async fn a_repeat_gets_the_same_bytes_and_the_shop_hears_nothing() {
    let app = TestApp::new().await;
    let ucp = app.ucp().key("k-create");
    let first = ucp.create(lines("bouquet_roses", 1)).await.expect(201);
    app.shop_calls().await;
    let again = ucp.create(json!({"line_items": [{"quantity": 1.0, "item": {"id": "bouquet_roses"}}]})).await;
    assert_eq!((again.status, &again.bytes), (201, &first.bytes));
    let updated = app.ucp().update(&first.id(), full("bouquet_roses", 1)).await.expect(200);
    assert_ne!(updated.bytes, first.bytes);
    let still = ucp.create(lines("bouquet_roses", 1)).await;
    assert_eq!(still.bytes, first.bytes, "the first answer, although the session has moved on");
    let acp = app.acp().key("k-create");
    let first = acp.create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
    assert_eq!(first.header("idempotent-replayed"), None);
    let again = acp.create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
    assert_eq!(again.bytes, first.bytes);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("idempotency-key"), Some("k-create"));
}

/// Requirements: U-051, A-023.
#[tokio::test]
async fn another_request_under_the_same_key_is_refused() {
    let app = TestApp::new().await;
    app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201);
    let ucp = app.ucp().key("k").create(lines("bouquet_roses", 2)).await.expect(409);
    assert_eq!(ucp.text("/code"), "idempotency_conflict");
    app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
    let acp = app.acp().key("k").create(acp_lines("bouquet_roses", 2, "usd")).await.expect(422);
    assert_eq!(acp.text("/code"), "idempotency_conflict");
}

/// Requirements: U-053.
#[tokio::test]
async fn a_key_covers_one_session_and_one_operation() {
    let app = TestApp::new().await;
    let (one, two) = (app.ucp().ready("bouquet_roses", 1).await, app.ucp().ready("pot_ceramic", 1).await);
    let ucp = app.ucp().key("k");
    let first = ucp.complete(&one, "success_token").await.expect(200);
    let second = ucp.complete(&two, "success_token").await.expect(200);
    assert_ne!(first.id(), second.id());
}

/// Requirements: U-049.
#[tokio::test]
async fn keys_and_sessions_survive_a_restart() {
    let app = TestApp::new().await;
    let id = app.ucp().ready("bouquet_roses", 1).await;
    let first = app.ucp().key("k-done").complete(&id, "success_token").await.expect(200);
    let open = app.acp().ready("bouquet_roses", 1, "usd").await;
    app.app.rest().await;
    let app = app.restarted().await;
    let again = app.ucp().key("k-done").complete(&id, "success_token").await.expect(200);
    assert_eq!(again.bytes, first.bytes);
    let done = app.acp().complete(&open, "spt_test_ok").await.expect(200);
    assert_eq!(done.text("/status"), "completed");
    assert_eq!(app.flower().orders().as_array().unwrap().len(), 2);
}

/// Requirements.
#[tokio::test]
async fn a_refusal_is_repeated_too_and_a_failure_is_not() {
    let app = TestApp::new().await;
    let ucp = app.ucp().key("k");
    let bad = json!({"line_items": [{"item": {"id": "bouquet_roses"}, "quantity": 0}]});
    let first = ucp.create(bad.clone()).await.expect(400);
    assert_eq!(ucp.create(bad).await.expect(400).bytes, first.bytes);
    let id = app.ucp().ready("bouquet_roses", 1).await;
    app.flower().set_fault("http_500,count=1").unwrap();
    let acp = app.acp().key("k2");
    acp.create(acp_lines("19", 1, "usd")).await.expect(503);
    acp.create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
    let _ = id;
}

#[tokio::test]
async fn a_slow_shop_makes_progress_visible_before_it_answers() {
    let app = TestApp::new().await;
    let id = app.ucp().ready("bouquet_roses", 1).await;
    app.flower().set_fault("delay_ms=6000,only=checkout").unwrap();
    let path = format!("/checkout-sessions/{id}/complete");
    let waiting =
        app.ucp().key("k").call(Method::POST, &path, Some(&payment("success_token"))).await.expect(200);
    assert_eq!(waiting.text("/status"), "complete_in_progress");
    let meanwhile = app.ucp().update(&id, lines("pot_ceramic", 1)).await.expect(200);
    assert_eq!(
        meanwhile.text("/status"),
        "complete_in_progress",
        "nothing changes while an order is in the making"
    );
    assert_eq!(app.ucp().cancel(&id).await.expect(200).text("/status"), "complete_in_progress");
    app.app.rest().await;
    let done =
        app.ucp().key("k").call(Method::POST, &path, Some(&payment("success_token"))).await.expect(200);
    assert_eq!(done.text("/status"), "completed");
    assert_eq!(app.ucp().get(&id).await.text("/status"), "completed");
}
