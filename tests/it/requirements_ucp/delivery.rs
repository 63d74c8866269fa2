//! Addresses, ways to ship, coupons.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{berlin, order_to};
use crate::support::{
    Reply, TestApp,
    clients::{full, payment},
};

/// The message with this code.
#[track_caller]
fn message<'a>(reply: &'a Reply, code: &str) -> &'a Value {
    let all = reply.json["messages"].as_array().unwrap();
    all.iter().find(|m| m["code"] == code).unwrap_or_else(|| panic!("no {code} in {}", reply.json))
}

/// Requirements: U-067, U-068, U-046.
#[tokio::test]
async fn standard_problems_can_be_mended_and_point_at_their_place() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    let sold_out = general.create(order_to(&["22", "19"], &berlin())).await.expect(201);
    let not_for_sale = general.create(order_to(&["35", "19"], &berlin())).await.expect(201);
    let mut nowhere = berlin();
    (nowhere["address_country"], nowhere["address_region"], nowhere["postal_code"]) =
        (json!("BR"), json!("SP"), json!("01000-000"));
    let undeliverable = general.create(order_to(&["19"], &nowhere)).await.expect(201);
    let id = app.ucp().ready("bouquet_roses", 1).await;
    let declined = app.ucp().complete(&id, "fail_token").await.expect(200);
    for (reply, code, path, status) in [
        (&sold_out, "out_of_stock", "$.line_items", "incomplete"),
        (&not_for_sale, "item_unavailable", "$.line_items", "incomplete"),
        (&undeliverable, "address_undeliverable", "$.fulfillment.methods[0].destinations[0]", "incomplete"),
        (&declined, "payment_failed", "$.payment.instruments", "ready_for_complete"),
    ] {
        let told = message(reply, code);
        assert_eq!((&told["type"], &told["severity"]), (&json!("error"), &json!("recoverable")), "{told}");
        assert_eq!(told["path"], path);
        assert_eq!(reply.text("/status"), status, "{code}");
    }
}

/// An address that is wrong in the end is told and nothing is ordered, whatever was hinted before.
/// Requirements: U-083.
#[tokio::test]
async fn final_data_decide() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp();
    let mut body = order_to(&["19"], &berlin());
    body["context"] = json!({"address_country": "DE", "postal_code": "10115"});
    let id = ucp.create(body.clone()).await.expect(201).id();
    let destination = "/fulfillment/methods/0/destinations/0";
    for (change, code, path) in [
        (json!({"postal_code": "9"}), "invalid_address", "postal_code"),
        (json!({"address_country": "XX"}), "invalid_address", "address_country"),
        (json!({"phone_number": "call me"}), "invalid_phone", "phone_number"),
    ] {
        let mut wrong = body.clone();
        let address = wrong.pointer_mut(destination).unwrap().as_object_mut().unwrap();
        address.extend(change.as_object().unwrap().clone());
        let reply = ucp.update(&id, wrong.clone()).await.expect(200);
        let told = message(&reply, code);
        assert_eq!(told["path"], format!("$.fulfillment.methods[0].destinations[0].{path}"));
        assert_eq!(reply.text("/status"), "incomplete", "{change}");
        // Said again, it is refused again.
        let again = ucp.update(&id, wrong).await.expect(200);
        assert_eq!(again.json["messages"], reply.json["messages"], "{change}");
        let kept = ucp.complete(&id, "tok_ok").await.expect(200);
        assert_eq!(kept.text("/status"), "incomplete", "{change}");
        assert!(kept.codes().contains(&code.to_owned()), "{}", kept.json);
    }
    assert_eq!(app.general().orders(), json!([]));
    let mut wrong = body.clone();
    wrong["buyer"]["phone_number"] = json!("call me");
    let reply = ucp.update(&id, wrong).await.expect(200);
    assert_eq!(message(&reply, "invalid_phone")["path"], "$.buyer.phone_number");
    let mended = ucp.update(&id, body).await.expect(200);
    assert_eq!(mended.text("/status"), "ready_for_complete");
    let bought = ucp.complete(&id, "tok_ok").await.expect(200);
    assert_eq!(bought.text("/status"), "completed", "{}", bought.json);
}

/// Without stand-ins an address has to name its country, and the message says that this is what is missing.
/// Requirements: U-068.
#[tokio::test]
async fn a_missing_country_is_asked_for() {
    let app = TestApp::with(|settings| settings.development = None).await;
    let mut body = full("bouquet_roses", 1);
    body["fulfillment"]["methods"][0]["destinations"][0].as_object_mut().unwrap().remove("address_country");
    let reply = app.ucp().create(body).await.expect(201);
    assert_eq!(reply.text("/status"), "incomplete", "{}", reply.json);
    let told = message(&reply, "missing");
    assert_eq!(told["path"], "$.fulfillment.methods[0].destinations[0].address_country");
    let done = app.ucp().update(&reply.id(), full("bouquet_roses", 1)).await.expect(200);
    assert_eq!(done.text("/status"), "ready_for_complete", "{}", done.json);
}

/// Requirements: U-100, U-101, U-103, U-104, U-105, U-107.
#[tokio::test]
async fn options_are_told_apart_in_the_shops_order() {
    let app = TestApp::new().await;
    let reply = app.general_ucp().create(order_to(&["19"], &berlin())).await.expect(201);
    let methods = reply.json["fulfillment"]["methods"].as_array().unwrap();
    assert_eq!((methods.len(), &methods[0]["type"]), (1, &json!("shipping")));
    let groups = methods[0]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "the platform did not ask for more");
    assert_eq!(groups[0]["line_item_ids"], json!([reply.json["line_items"][0]["id"]]));
    let options = groups[0]["options"].as_array().unwrap();
    assert!(options.len() > 1);
    let titles: HashSet<_> = options.iter().map(|option| option["title"].as_str().unwrap()).collect();
    assert_eq!(titles.len(), options.len());
    assert!(titles.iter().all(|title| !title.trim().is_empty()));
    for option in options {
        let amount = option["totals"][0]["amount"].as_i64().unwrap();
        let price = format!("{}.{:02}", amount / 100, amount % 100);
        let description = option["description"].as_str().unwrap_or_default();
        for repeated in [option["title"].as_str().unwrap(), &price, &price.replace('.', ",")] {
            assert!(!description.contains(repeated), "{option}");
        }
    }
    // The order is the merchant's own, as the shop lists its rates.
    let ids: Vec<_> = options.iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["flat_rate:1", "flat_rate:2", "local_pickup:4"], "{}", reply.json["fulfillment"]);
}

/// An unknown destination or option is told, not refused.
/// Requirements: U-046, U-068.
#[tokio::test]
async fn an_unknown_choice_is_told() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp();
    let id = ucp.create(order_to(&["19"], &berlin())).await.expect(201).id();
    let mut body = order_to(&["19"], &berlin());
    body["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "by-pigeon"}]);
    let reply = ucp.update(&id, body).await.expect(200);
    let told = message(&reply, "fulfillment_option_unavailable");
    assert_eq!(told["path"], "$.fulfillment.methods[0].groups[0].selected_option_id");
    let mut body = order_to(&["19"], &berlin());
    body["fulfillment"]["methods"][0]["selected_destination_id"] = json!("the_moon");
    let reply = ucp.update(&id, body).await.expect(200);
    let told = message(&reply, "missing");
    assert_eq!(told["path"], "$.fulfillment.methods[0].selected_destination_id");
    assert_eq!(reply.text("/status"), "incomplete");
}

/// Requirements: U-110, U-111.
#[tokio::test]
async fn codes_replace_codes() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let id = ucp.ready("bouquet_roses", 1).await;
    let with = |codes: Option<Value>| {
        let mut body = full("bouquet_roses", 1);
        if let Some(codes) = codes {
            body["discounts"] = json!({"codes": codes});
        }
        body
    };
    for (codes, echoed, applied, total) in [
        (Some(json!(["10Off", "NoSuch"])), json!(["10Off", "NoSuch"]), json!(["10Off"]), -350),
        (Some(json!(["welcome20"])), json!(["welcome20"]), json!(["welcome20"]), -700),
        (Some(json!([])), json!([]), json!([]), 0),
        (Some(json!(["FIXED500"])), json!(["FIXED500"]), json!(["FIXED500"]), -500),
        (None, json!([]), json!([]), 0),
    ] {
        let reply = ucp.update(&id, with(codes)).await.expect(200);
        assert_eq!(reply.json["discounts"]["codes"], echoed);
        let found: Vec<_> = reply.json["discounts"]["applied"]
            .as_array()
            .unwrap()
            .iter()
            .map(|discount| discount["code"].clone())
            .collect();
        assert_eq!(json!(found), applied);
        let totals = reply.json["totals"].as_array().unwrap();
        let off = totals.iter().filter(|t| t["type"] == "items_discount" || t["type"] == "discount");
        assert_eq!(off.map(|t| t["amount"].as_i64().unwrap()).sum::<i64>(), total, "{echoed}");
    }
}

/// Requirements: U-092.
#[tokio::test]
async fn a_handler_of_another_shop_is_refused() {
    let app = TestApp::new().await;
    let id = app.ucp().ready("bouquet_roses", 1).await;
    for handler in ["bank_transfer", "nobody"] {
        let mut body = payment("success_token");
        body["payment"]["instruments"][0]["handler_id"] = json!(handler);
        let path = format!("/checkout-sessions/{id}/complete");
        let reply = app.ucp().call(axum::http::Method::POST, &path, Some(&body)).await.expect(200);
        assert_eq!(message(&reply, "invalid_payment_instrument")["severity"], "recoverable");
        assert_eq!(reply.text("/status"), "ready_for_complete");
    }
    assert_eq!(app.flower().orders(), json!([]));
}

/// The bill's address comes with a completion: a wrong one is told there and the next completion mends it.
/// Requirements: U-068, U-083.
#[tokio::test]
async fn a_wrong_bill_is_told_and_mended_by_the_next_completion() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp();
    let id = ucp.create(order_to(&["19"], &berlin())).await.expect(201).id();
    let path = format!("/checkout-sessions/{id}/complete");
    let pay = |billing: Value| {
        let mut body = payment("tok_ok");
        body["payment"]["instruments"][0]["billing_address"] = billing;
        body
    };
    let mut wrong = berlin();
    wrong["address_country"] = json!("XX");
    let refused = ucp.call(axum::http::Method::POST, &path, Some(&pay(wrong))).await.expect(200);
    let told = message(&refused, "invalid_address");
    assert_eq!((&told["severity"], refused.text("/status")), (&json!("recoverable"), "incomplete"));
    assert_eq!(told["path"], "$.payment.instruments[0].billing_address");
    app.pass(60);
    let read = ucp.get(&id).await.expect(200);
    assert_eq!(read.json["messages"], refused.json["messages"], "a look does not tell it twice");
    assert_eq!(app.general().orders(), json!([]));
    let done = ucp.call(axum::http::Method::POST, &path, Some(&pay(berlin()))).await.expect(200);
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
}

/// What the shop's own form asks of an address shows when the order is placed: the session is ready no more.
/// Requirements: U-083, U-046.
#[tokio::test]
async fn an_address_that_the_order_is_refused_for_has_to_be_mended() {
    let app = TestApp::with(|settings| settings.development = None).await;
    let ucp = app.ucp();
    let mut body = full("bouquet_roses", 1);
    body["fulfillment"]["methods"][0]["destinations"][0] = json!({"id": "home", "address_country": "US"});
    let created = ucp.create(body).await.expect(201);
    let refused = ucp.complete(&created.id(), "success_token").await.expect(200);
    assert_eq!(refused.text("/status"), "incomplete", "{}", refused.json);
    assert_eq!(message(&refused, "invalid_address")["severity"], "recoverable");
    let read = ucp.get(&created.id()).await.expect(200);
    assert_eq!((read.text("/status"), &read.json["messages"]), ("incomplete", &refused.json["messages"]));
    // All that may be left behind is the shop's own draft.
    let orders = app.flower().orders();
    assert!(orders.as_array().unwrap().iter().all(|order| order["status"] == "checkout-draft"), "{orders}");
    let mended = ucp.update(&created.id(), full("bouquet_roses", 1)).await.expect(200);
    assert_eq!(mended.text("/status"), "ready_for_complete");
    assert_eq!(ucp.complete(&created.id(), "success_token").await.expect(200).text("/status"), "completed");
}

/// Where nothing ships the completion has to bring the bill's address.
/// Requirements: U-068, U-106.
#[tokio::test]
async fn a_digital_order_asks_for_the_bills_address() {
    let app = TestApp::with(|settings| settings.development = None).await;
    let ucp = app.general_ucp();
    let mut body = json!({"line_items": [{"item": {"id": "31"}, "quantity": 1}]});
    body["buyer"] = json!({"email": "anna@example.com", "first_name": "Anna", "last_name": "Muster"});
    let created = ucp.create(body).await.expect(201);
    let asked = ucp.complete(&created.id(), "tok_ok").await.expect(200);
    let told = message(&asked, "missing");
    assert_eq!(told["path"], "$.payment.instruments[0].billing_address");
    assert!(told["content"].as_str().unwrap().contains("bill"), "{told}");
    let mut pay = payment("tok_ok");
    pay["payment"]["instruments"][0]["billing_address"] = berlin();
    let path = format!("/checkout-sessions/{}/complete", created.id());
    let first = ucp.call(axum::http::Method::POST, &path, Some(&pay)).await.expect(200);
    // The estimate was for another place: a new total is shown before anything is bought.
    let done = match first.text("/status") {
        "completed" => first,
        _ => ucp.call(axum::http::Method::POST, &path, Some(&pay)).await.expect(200),
    };
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
    assert_eq!(app.general().orders().as_array().unwrap().len(), 1);
}
