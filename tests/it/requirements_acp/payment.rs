//! Handlers, instruments, challenges, declines.

use axum::http::Method;
use serde_json::{Value, json};

use super::ready_with;
use crate::support::{
    Reply, TestApp,
    clients::{acp_address, acp_lines, acp_payment},
};

async fn complete(app: &TestApp, id: &str, body: &Value) -> Reply {
    app.acp().call(Method::POST, &format!("/checkout_sessions/{id}/complete"), Some(body)).await
}

/// Requirements, D-36.
#[tokio::test]
async fn a_handler_is_one_of_the_session() {
    let app = TestApp::new().await;
    let general = app.general_acp().create(acp_lines("19", 1, "eur")).await.expect(201);
    let handlers = general.json["capabilities"]["payment"]["handlers"].as_array().unwrap();
    let ids: Vec<&str> = handlers.iter().map(|handler| handler["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"bank_transfer"), "{ids:?}");
    for handler in handlers {
        for name in ["id", "name", "version", "spec", "psp", "config_schema"] {
            assert!(handler[name].as_str().is_some_and(|text| !text.is_empty()), "{name} in {handler}");
        }
        assert!(handler["config"]["merchant_id"].is_string());
        assert_eq!(handler["config"]["psp"], handler["psp"]);
        assert!(handler["instrument_schemas"].as_array().is_some_and(|list| !list.is_empty()));
    }
    let id = app.acp().ready("bouquet_roses", 1, "usd").await;
    for (handler, code) in [("bank_transfer", "invalid_handler"), ("nobody", "invalid_handler")] {
        let mut body = acp_payment("spt_test_ok");
        body["payment_data"]["handler_id"] = json!(handler);
        let refused = complete(&app, &id, &body).await.expect(400);
        assert_eq!((refused.text("/code"), refused.text("/param")), (code, "$.payment_data.handler_id"));
    }
    let mut body = acp_payment("spt_test_ok");
    body["payment_data"]["instrument"]["handler_id"] = json!("another");
    assert_eq!(complete(&app, &id, &body).await.expect(400).text("/code"), "invalid_handler");
    let order = json!({"payment_data": {"purchase_order_number": "PO-1"}});
    assert_eq!(complete(&app, &id, &order).await.expect(400).text("/code"), "unsupported");
    assert_eq!(app.flower().orders(), json!([]));
    assert_eq!(app.acp().get(&id).await.text("/status"), "ready_for_payment");
}

/// Requirements, D-32.
#[tokio::test]
async fn what_stops_a_purchase_says_who_can_help() {
    let app = TestApp::with(|settings| settings.development = None).await;
    let acp = app.acp();
    let sold_out = app.general_acp().create(acp_lines("22", 1, "eur")).await.expect(201);
    let declined = acp.ready("bouquet_roses", 1, "usd").await;
    let declined = acp.complete(&declined, "spt_test_declined").await.expect(200);
    let early = acp.create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201).id();
    let early = acp.complete(&early, "spt_test_ok").await.expect(200);
    for (reply, code, resolution, status) in [
        (&sold_out, "out_of_stock", "recoverable", "incomplete"),
        (&declined, "payment_declined", "recoverable", "ready_for_payment"),
        (&early, "missing", "requires_buyer_input", "not_ready_for_payment"),
    ] {
        let told = reply.json["messages"].as_array().unwrap().iter().find(|m| m["code"] == code);
        let told = told.unwrap_or_else(|| panic!("no {code} in {}", reply.json));
        assert_eq!((&told["type"], &told["resolution"]), (&json!("error"), &json!(resolution)), "{told}");
        assert!(told["severity"].is_string());
        assert_eq!(reply.text("/status"), status);
        assert!(reply.json.get("order").is_none());
    }
    assert_eq!(
        app.flower().orders().as_array().unwrap().iter().filter(|o| o["status"] == "processing").count(),
        0
    );
}

/// What an agent says it can do does not spare the buyer a challenge.
/// Requirements: A-049, D-30, D-38.
#[tokio::test]
async fn claims_of_the_agent_relax_nothing() {
    let app = TestApp::new().await;
    for capabilities in [json!({}), json!({"interventions": {"supported": ["3ds"]}})] {
        let body = ready_with("bouquet_roses", "usd", &json!({"capabilities": capabilities}));
        let id = app.acp().create(body).await.expect(201).id();
        let mut pay = acp_payment("challenge_token");
        pay["authentication_result"] = json!({"outcome": "authenticated"});
        let reply = complete(&app, &id, &pay).await.expect(200);
        assert_eq!(reply.text("/status"), "requires_escalation");
        assert_eq!(reply.codes(), ["requires_3ds"]);
        assert!(reply.json.get("order").is_none() && reply.json.get("authentication_metadata").is_none());
        assert!(reply.text("/continue_url").starts_with("https://"));
    }
    let paid =
        app.flower().orders().as_array().unwrap().iter().filter(|o| o["status"] == "processing").count();
    assert_eq!(paid, 0);
}

/// Requirements.
#[tokio::test]
async fn consents_that_nobody_asked_for_count_for_nothing() {
    let app = TestApp::new().await;
    let id = app.acp().ready("bouquet_roses", 1, "usd").await;
    let mut pay = acp_payment("spt_test_ok");
    pay["marketing_consents"] =
        json!([{"channel": "email", "opted_in": true}, {"channel": "pigeon", "opted_in": false}]);
    let path = format!("/checkout_sessions/{id}/complete");
    let done = app.acp().key("k").call(Method::POST, &path, Some(&pay)).await.expect(200);
    assert_eq!(done.text("/status"), "completed");
    assert!(done.json.get("marketing_consent_options").is_none());
    let again = app.acp().key("k").call(Method::POST, &path, Some(&pay)).await.expect(200);
    assert_eq!((&again.bytes, again.header("idempotent-replayed")), (&done.bytes, Some("true")));
    assert_eq!(app.flower().orders().as_array().unwrap().len(), 1);
}

/// What the shop changed since the last answer is shown first; nothing is charged.
/// Requirements: A-105, D-32.
#[tokio::test]
async fn what_moved_is_shown_before_anything_is_charged() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let dearer = acp.ready("pot_ceramic", 1, "usd").await;
    let gone = acp.ready("orchid_white", 1, "usd").await;
    app.flower()
        .act(&json!([{"op": "price", "product": "pot_ceramic", "price": "17.00"},
            {"op": "stock", "product": "orchid_white", "quantity": 0}]))
        .unwrap();
    let shown = acp.complete(&dearer, "spt_test_ok").await.expect(200);
    assert_eq!(
        (shown.text("/status"), shown.codes()),
        ("ready_for_payment", vec!["price_change".to_owned()])
    );
    assert_eq!((shown.total("subtotal"), &shown.json["messages"][0]["type"]), (1700, &json!("warning")));
    let shown = acp.complete(&gone, "spt_test_ok").await.expect(200);
    assert!(shown.codes().contains(&"out_of_stock".to_owned()), "{}", shown.json);
    assert!(["incomplete", "not_ready_for_payment"].contains(&shown.text("/status")), "{}", shown.json);
    assert_eq!(app.flower().orders(), json!([]));
    let bought = acp.complete(&dearer, "spt_test_ok").await.expect(200);
    assert_eq!(bought.text("/status"), "completed");
}

/// The bill's address comes with a completion: a wrong one is told and the next completion mends it.
/// Requirements: A-105, D-32.
#[tokio::test]
async fn a_wrong_bill_is_told_and_mended_by_the_next_completion() {
    let app = TestApp::new().await;
    let id = app.acp().ready("bouquet_roses", 1, "usd").await;
    let mut pay = acp_payment("spt_test_ok");
    pay["payment_data"]["billing_address"] = acp_address();
    pay["payment_data"]["billing_address"]["postal_code"] = json!("9");
    let refused = complete(&app, &id, &pay).await.expect(200);
    assert_eq!(
        (refused.text("/status"), refused.codes()),
        ("not_ready_for_payment", vec!["invalid".to_owned()])
    );
    assert!(refused.text("/messages/0/content").contains("bill"), "{}", refused.json);
    assert_eq!(app.flower().orders(), json!([]));
    pay["payment_data"]["billing_address"] = acp_address();
    let done = complete(&app, &id, &pay).await.expect(200);
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
}

/// An address with empty parts is accepted in form; what the shop then asks for is told and nothing is charged.
/// Requirements: D-30, D-32.
#[tokio::test]
async fn an_order_that_is_refused_leaves_the_session_not_ready() {
    let app = TestApp::with(|settings| settings.development = None).await;
    let empty =
        json!({"name": "", "line_one": "", "city": "", "state": "", "country": "US", "postal_code": ""});
    let body = ready_with("bouquet_roses", "usd", &json!({"fulfillment_details": {"address": empty}}));
    let id = app.acp().create(body).await.expect(201).id();
    let refused = app.acp().complete(&id, "spt_test_ok").await.expect(200);
    assert_eq!(
        (refused.text("/status"), refused.codes()),
        ("not_ready_for_payment", vec!["invalid".to_owned()])
    );
    // All that may be left behind is the shop's own draft.
    let orders = app.flower().orders();
    assert!(orders.as_array().unwrap().iter().all(|order| order["status"] == "checkout-draft"), "{orders}");
    let mended = json!({"fulfillment_details": {"address": acp_address()}});
    assert_eq!(app.acp().update(&id, mended).await.expect(200).text("/status"), "ready_for_payment");
    assert_eq!(app.acp().complete(&id, "spt_test_ok").await.expect(200).text("/status"), "completed");
}
