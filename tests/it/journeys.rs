//! Purchases from beginning to end, one body for both protocols where they agree.

use serde_json::{Value, json};

use crate::support::{
    TestApp,
    clients::{acp_address, acp_buyer, acp_lines, full, lines, us_address},
};

fn orders(shop: &tillgate::store::demo::DemoShop) -> Vec<Value> {
    shop.orders().as_array().cloned().unwrap_or_default()
}

/// Requirements: U-045, U-072.
#[tokio::test]
async fn an_agent_buys_over_ucp() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let created = ucp.create(lines("bouquet_roses", 2)).await.expect(201);
    assert_eq!(created.text("/status"), "incomplete");
    let updated = ucp.update(&created.id(), full("bouquet_roses", 2)).await.expect(200);
    assert_eq!(updated.text("/status"), "ready_for_complete");
    assert_eq!(updated.text("/line_items/0/id"), created.text("/line_items/0/id"), "line ids are stable");
    assert_eq!(updated.total("subtotal"), 7000);
    let completed = ucp.complete(&created.id(), "success_token").await.expect(200);
    assert_eq!(completed.text("/status"), "completed");
    assert!(completed.text("/order/permalink_url").starts_with("https://"));
    assert!(!String::from_utf8_lossy(&completed.bytes).contains("success_token"));
    let orders = orders(app.flower());
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0]["status"], "processing");
    let read = ucp.get(&created.id()).await.expect(200);
    assert_eq!(read.json["order"], completed.json["order"]);
}

/// Requirements.
#[tokio::test]
async fn an_agent_buys_over_acp() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let created = acp.create(acp_lines("bouquet_tulips", 1, "usd")).await.expect(201);
    let body = json!({"buyer": acp_buyer(), "fulfillment_details": {"address": acp_address()}});
    let updated = acp.update(&created.id(), body).await.expect(200);
    assert_eq!(updated.text("/status"), "ready_for_payment");
    assert!(!updated.json["fulfillment_options"].as_array().unwrap().is_empty());
    let completed = acp.complete(&created.id(), "spt_test_ok").await.expect(200);
    assert_eq!(completed.text("/status"), "completed");
    assert_eq!(completed.text("/order/checkout_session_id"), created.id());
    assert_eq!(orders(app.flower()).len(), 1);
}

/// Requirements: U-111, U-112, A-042.
#[tokio::test]
async fn taxed_goods_add_up_in_both_protocols() {
    let app = TestApp::new().await;
    let german = json!({"id": "d", "first_name": "Anna", "last_name": "Muster", "street_address": "Musterweg 5",
        "address_locality": "Berlin", "address_region": "DE-BE", "postal_code": "10115", "address_country": "DE"});
    let body = json!({
        "line_items": [{"item": {"id": "19"}, "quantity": 2}, {"item": {"id": "36"}, "quantity": 1}],
        "buyer": {"email": "anna@example.com"},
        "discounts": {"codes": ["PERCENT10", "nonsense"]},
        "fulfillment": {"methods": [{"type": "shipping", "destinations": [german]}]}
    });
    let ucp = app.general_ucp().create(body).await.expect(201);
    assert_eq!(ucp.text("/status"), "ready_for_complete", "{}", ucp.json);
    assert!(ucp.codes().iter().any(|code| code == "discount_code_invalid"));
    let mut body = acp_lines("19", 2, "eur");
    body["line_items"] = json!([{"id": "19", "quantity": 2}, {"id": "36", "quantity": 1}]);
    body["buyer"] = acp_buyer();
    body["discounts"] = json!({"codes": ["PERCENT10"]});
    body["fulfillment_details"] = json!({"address": {"name": "Anna Muster", "line_one": "Musterweg 5",
        "city": "Berlin", "state": "DE-BE", "country": "DE", "postal_code": "10115"}});
    let acp = app.general_acp().create(body).await.expect(201);
    assert_eq!(acp.total("total"), ucp.total("total"));
    assert_eq!(acp.total("items_discount"), 330);
    assert_eq!(ucp.total("discount"), -330);
}

/// Requirements: U-067.
#[tokio::test]
async fn a_declined_card_leaves_the_session_open_and_the_next_try_pays_the_same_order() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 1).await;
    let declined = ucp.complete(&id, "fail_token").await.expect(200);
    assert_eq!(declined.text("/status"), "ready_for_complete");
    assert_eq!(declined.codes(), ["payment_failed"]);
    app.pass(3);
    let paid = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(paid.text("/status"), "completed");
    assert_eq!(orders(app.flower()).len(), 1, "the order of the decline is the one that was paid");
}

/// Requirements: U-059, U-060, U-062.
#[tokio::test]
async fn the_banks_challenge_sends_the_buyer_to_the_shop() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 1).await;
    let escalated = ucp.complete(&id, "challenge_token").await.expect(200);
    assert_eq!(escalated.text("/status"), "requires_escalation");
    assert_eq!(escalated.codes(), ["requires_3ds"]);
    let page = escalated.text("/continue_url").split_once("/go/").unwrap().1.to_owned();
    let page = app.get(&format!("/go/{page}")).await.expect(200);
    assert!(String::from_utf8_lossy(&page.bytes).contains("Pay at the shop"));
    app.flower().act(&json!([{"op": "order_status", "order": "last", "status": "processing"}])).unwrap();
    let read = ucp.get(&id).await.expect(200);
    assert_eq!(read.text("/status"), "completed", "the payment at the shop is seen by the next read");
    assert_eq!(orders(app.flower()).len(), 1);
}

/// Requirements: U-069.
#[tokio::test]
async fn a_put_replaces_everything() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 2).await;
    let bare = ucp.update(&id, lines("pot_ceramic", 1)).await.expect(200);
    assert!(bare.json.get("buyer").is_none());
    assert_eq!(bare.text("/status"), "incomplete");
    assert_eq!(bare.json["line_items"].as_array().unwrap().len(), 1);
    assert_eq!(bare.total("subtotal"), 1500);
}

/// Requirements: D-18.
#[tokio::test]
async fn an_acp_update_keeps_what_it_does_not_name() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let id = acp.ready("bouquet_roses", 1, "usd").await;
    let more =
        acp.update(&id, json!({"line_items": [{"id": "bouquet_roses", "quantity": 3}]})).await.expect(200);
    assert_eq!(more.text("/status"), "ready_for_payment");
    assert_eq!(more.json["line_items"][0]["quantity"], 3);
    let cleared = acp.update(&id, json!({"fulfillment_details": null})).await.expect(200);
    assert_eq!(cleared.text("/status"), "not_ready_for_payment");
}

#[tokio::test]
async fn a_sold_out_item_is_left_out_and_told() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let body = json!({"line_items": [{"item": {"id": "gardenias"}, "quantity": 1},
        {"item": {"id": "bouquet_roses"}, "quantity": 1}]});
    let mixed = ucp.create(body).await.expect(201);
    assert_eq!(mixed.json["line_items"].as_array().unwrap().len(), 1);
    assert!(mixed.codes().contains(&"out_of_stock".to_owned()), "{}", mixed.json);
    let alone = ucp.create(lines("gardenias", 1)).await.expect(200);
    assert_eq!(alone.text("/ucp/status"), "error");
    assert!(alone.json.get("id").is_none());
    let unknown = app.acp().create(acp_lines("pink_wumpus", 1, "usd")).await.expect(400);
    assert_eq!(unknown.text("/code"), "invalid_item_id");
}

#[tokio::test]
async fn more_than_the_shop_has_is_told_and_nothing_is_lost() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 1).await;
    let too_many = ucp.update(&id, full("bouquet_roses", 9000)).await.expect(200);
    assert!(too_many.codes().contains(&"out_of_stock".to_owned()), "{}", too_many.json);
}

#[tokio::test]
async fn a_price_that_moves_before_the_order_is_shown_first() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("pot_ceramic", 1).await;
    let product = json!("pot_ceramic");
    app.flower().act(&json!([{"op": "price", "product": product, "price": "17.00"}])).unwrap();
    let shown = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(shown.text("/status"), "ready_for_complete", "{}", shown.json);
    assert_eq!(orders(app.flower()).len(), 0);
    assert_eq!(shown.total("subtotal"), 1700);
    let bought = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(bought.text("/status"), "completed");
}

/// Requirements: U-065, U-071, A-011, D-3.
#[tokio::test]
async fn a_session_ends_once() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 1).await;
    ucp.cancel(&id).await.expect(200);
    for reply in [
        ucp.cancel(&id).await,
        ucp.update(&id, lines("bouquet_roses", 1)).await,
        ucp.complete(&id, "x").await,
    ] {
        assert_eq!(reply.expect(409).text("/code"), "invalid_state");
    }
    let acp = app.acp();
    let id = acp.ready("bouquet_roses", 1, "usd").await;
    acp.complete(&id, "spt_test_ok").await.expect(200);
    let refused = acp.cancel(&id).await.expect(405);
    assert_eq!(refused.header("allow"), Some("GET"));
    acp.complete(&id, "spt_test_ok").await.expect(405);
}

/// Requirements: D-30.
#[tokio::test]
async fn a_session_expires_by_time() {
    let app = TestApp::new().await;
    let ucp_id = app.ucp().ready("bouquet_roses", 1).await;
    let acp_id = app.acp().ready("bouquet_roses", 1, "usd").await;
    app.pass(25 * 3600);
    let ucp = app.ucp().get(&ucp_id).await.expect(200);
    assert_eq!((ucp.text("/status"), ucp.codes()), ("canceled", vec!["expired".to_owned()]));
    let acp = app.acp().get(&acp_id).await.expect(200);
    assert_eq!(acp.text("/status"), "expired");
    app.acp().complete(&acp_id, "spt_test_ok").await.expect(405);
}

/// Requirements: U-055, A-010, D-2.
#[tokio::test]
async fn nobody_sees_what_belongs_to_another() {
    let app = TestApp::new().await;
    let id = app.ucp().ready("bouquet_roses", 1).await;
    let other = app.ucp().profile("https://strands.dev/profile").get(&id).await.expect(200);
    assert_eq!(other.codes(), ["not_found"]);
    app.acp().get(&id).await.expect(404);
    let other_shop = app.general_ucp().get(&id).await.expect(200);
    assert_eq!(other_shop.codes(), ["not_found"]);
}

#[tokio::test]
async fn two_lines_of_one_item_share_the_shops_line() {
    let app = TestApp::new().await;
    let line = json!({"item": {"id": "bouquet_roses"}, "quantity": 1});
    let body = json!({"line_items": [line, {"item": {"id": "bouquet_roses"}, "quantity": 2}],
        "discounts": {"codes": ["10off"]},
        "fulfillment": {"methods": [{"type": "shipping", "destinations": [us_address()]}]}});
    let created = app.ucp().create(body).await.expect(201);
    let ids: Vec<_> =
        created.json["line_items"].as_array().unwrap().iter().map(|l| l["id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(created.total("subtotal"), 10500);
    assert_eq!(created.total("discount"), -1050);
    assert_eq!(created.text("/discounts/codes/0"), "10off", "codes are echoed as they were sent");
}

/// Requirements: U-106.
#[tokio::test]
async fn a_digital_item_ships_nowhere() {
    let app = TestApp::new().await;
    let mut body = full("31", 1);
    body["fulfillment"] = Value::Null;
    body.as_object_mut().unwrap().remove("fulfillment");
    let ucp = app.general_ucp();
    let created = ucp.create(body).await.expect(201);
    assert_eq!(created.text("/status"), "ready_for_complete", "{}", created.json);
    assert!(created.json.get("fulfillment").is_none());
    let bought = ucp.complete(&created.id(), "tok_ok").await.expect(200);
    // The stand-in address moves the tax of the estimate: the new total is shown before anything is bought.
    let bought = if bought.text("/status") == "completed" {
        bought
    } else {
        ucp.complete(&created.id(), "tok_ok").await
    };
    assert_eq!(bought.text("/status"), "completed", "{}", bought.json);
    assert_eq!(orders(app.general()).len(), 1);
}

#[tokio::test]
async fn the_same_session_and_key_are_meant_at_every_root() {
    let app = TestApp::new().await;
    let ucp = app.ucp().key("k");
    let first = ucp.create(lines("bouquet_roses", 1)).await.expect(201);
    for root in ["/2026-04-08", ""] {
        let there = ucp.at(root);
        assert_eq!(there.create(lines("bouquet_roses", 1)).await.expect(201).bytes, first.bytes, "{root}");
        assert_eq!(there.get(&first.id()).await.expect(200).id(), first.id(), "{root}");
    }
}

#[tokio::test]
async fn discovery_names_the_configured_address_and_what_is_built() {
    let app = TestApp::new().await;
    let current = app.get("/.well-known/ucp").await.expect(200);
    assert_eq!(current.text("/ucp/services/dev.ucp.shopping/0/endpoint"), "http://127.0.0.1:8787/ucp");
    assert!(current.json["ucp"].get("supported_versions").is_none(), "there is one version");
    let leaf = app.get("/2026-04-08/.well-known/ucp").await.expect(200);
    assert_eq!(leaf.text("/ucp/services/dev.ucp.shopping/0/endpoint"), "http://127.0.0.1:8787/2026-04-08");
    let acp = app.get("/.well-known/acp.json").await.expect(200);
    assert_eq!(acp.text("/api_base_url"), "http://127.0.0.1:8787/acp");
    for reply in [&current, &leaf, &acp] {
        assert!(reply.header("cache-control").unwrap().contains("public"));
    }
}
