//! Orders left unpaid at the shop (declined, or waiting for the buyer there), and orders that are looked for:
//! whatever becomes of them, one purchase is one order.

use serde_json::{Value, json};

use crate::support::{TestApp, clients::full};

fn orders(app: &TestApp) -> Vec<Value> {
    app.flower().orders().as_array().cloned().unwrap_or_default()
}

/// What happens at the shop to the last order.
fn turn_last_order(app: &TestApp, status: &str) {
    app.flower().act(&json!([{"op": "order_status", "order": "last", "status": status}])).unwrap();
}

#[tokio::test]
async fn nothing_is_bought_or_changed_while_the_buyer_pays_at_the_shop() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("pot_ceramic", 1).await;
    ucp.complete(&id, "challenge_token").await.expect(200);
    let again = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(again.text("/status"), "requires_escalation");
    let changed = ucp.update(&id, full("pot_ceramic", 2)).await.expect(200);
    assert_eq!(changed.text("/status"), "requires_escalation");
    assert_eq!(changed.json["line_items"][0]["quantity"], 1);
    turn_last_order(&app, "processing");
    let done = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!((done.text("/status"), done.total("subtotal")), ("completed", 1500));
    assert_eq!(orders(&app).len(), 1);
}

#[tokio::test]
async fn an_order_that_the_shop_gave_up_frees_its_session() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("pot_ceramic", 1).await;
    ucp.complete(&id, "challenge_token").await.expect(200);
    turn_last_order(&app, "cancelled");
    assert_eq!(ucp.get(&id).await.expect(200).text("/status"), "ready_for_complete");
    app.pass(3);
    assert_eq!(ucp.complete(&id, "success_token").await.expect(200).text("/status"), "completed");
    let paid = orders(&app).iter().filter(|order| order["status"] == "processing").count();
    assert_eq!(paid, 1);
}

#[tokio::test]
async fn a_declined_payment_that_came_through_late_is_the_order_whatever_happened_between() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 1).await;
    ucp.complete(&id, "fail_token").await.expect(200);
    app.pass(3);
    app.flower().set_fault("limiter,count=1,only=checkout").unwrap();
    ucp.complete(&id, "success_token").await.expect(503);
    app.flower().clear_faults();
    turn_last_order(&app, "processing");
    let done = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed");
    assert_eq!(orders(&app).len(), 1, "the late payment was looked for, although the last try was not sent");
}

#[tokio::test]
async fn a_session_whose_order_was_paid_does_not_expire() {
    let app = TestApp::new().await;
    for token in ["challenge_token", "fail_token"] {
        let id = app.ucp().ready("bouquet_roses", 1).await;
        app.ucp().complete(&id, token).await.expect(200);
        turn_last_order(&app, "processing");
        app.pass(25 * 3600);
        assert_eq!(app.ucp().get(&id).await.expect(200).text("/status"), "completed", "{token}");
    }
}

#[tokio::test]
async fn a_coupon_that_is_refused_does_not_keep_an_order_from_being_placed() {
    let app = TestApp::new().await;
    let mut body = full("bouquet_roses", 1);
    body["discounts"] = json!({"codes": ["NO-SUCH-CODE"]});
    let created = app.ucp().create(body).await.expect(201);
    assert_eq!(created.text("/status"), "ready_for_complete");
    let done = app.ucp().complete(&created.id(), "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
}

/// Loses the answer to the one POST, turns the order it made, and lets the settler finish.
async fn settled(token: &str, status: &str) -> (TestApp, String) {
    let app = TestApp::new().await;
    let id = app.ucp().ready("bouquet_roses", 1).await;
    app.flower().set_fault("lost_answer,count=1,only=checkout").unwrap();
    let lost = app.ucp().key("k").complete(&id, token).await.expect(200);
    assert_eq!(lost.text("/status"), "complete_in_progress");
    app.flower().clear_faults();
    turn_last_order(&app, status);
    for _ in 0..4 {
        app.app.tend().await;
        app.pass(60);
    }
    (app, id)
}

#[tokio::test]
async fn a_lost_order_that_failed_is_told_as_declined_and_found_when_it_is_paid_after_all() {
    let (app, id) = settled("fail_token", "failed").await;
    let told = app.ucp().key("k").complete(&id, "fail_token").await.expect(200);
    assert_eq!(
        (told.text("/status"), told.codes()),
        ("ready_for_complete", vec!["payment_failed".to_owned()])
    );
    turn_last_order(&app, "processing");
    let done = app.ucp().complete(&id, "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed");
    assert_eq!(orders(&app).len(), 1);
}

#[tokio::test]
async fn a_lost_order_in_a_state_that_proves_nothing_waits_for_a_person() {
    // The last one failed after traces of a payment.
    for status in ["cancelled", "refunded", "failed"] {
        let (app, id) = settled("success_token", status).await;
        let told = app.ucp().key("k").complete(&id, "success_token").await.expect(200);
        assert_eq!(told.text("/status"), "complete_in_progress", "{status}");
        assert_eq!(orders(&app).len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_cart_that_the_shop_has_forgotten_counts_as_emptied() {
    let app = TestApp::new().await;
    let id = app.ucp().ready("bouquet_roses", 1).await;
    app.flower().set_fault("http_500,count=1,only=checkout").unwrap();
    app.ucp().key("k").complete(&id, "success_token").await.expect(200);
    app.flower().set_fault("dead_token").unwrap();
    for _ in 0..3 {
        app.app.tend().await;
        app.pass(60);
    }
    app.flower().clear_faults();
    let done = app.ucp().key("k").complete(&id, "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed", "the key is free and a new cart is used");
    assert_eq!(orders(&app).len(), 1);
}
