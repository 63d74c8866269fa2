//! What both protocols ask for to the letter: choices, lines, messages and their places.

use serde_json::{Value, json};

use crate::support::{
    Reply, TestApp,
    clients::{acp_address, acp_buyer, acp_lines, full, lines},
};

fn german() -> Value {
    json!({"id": "d", "first_name": "Anna", "last_name": "Muster", "street_address": "Musterweg 5",
        "address_locality": "Berlin", "address_region": "DE-BE", "postal_code": "10115", "address_country": "DE"})
}

/// A mug to Berlin, with or without a choice of how it gets there.
fn mug(option: Option<&str>) -> Value {
    let mut method = json!({"type": "shipping", "destinations": [german()]});
    if let Some(option) = option {
        method["groups"] = json!([{"selected_option_id": option}]);
    }
    json!({"line_items": [{"item": {"id": "19"}, "quantity": 1}], "buyer": {"email": "anna@example.com"},
        "fulfillment": {"methods": [method]}})
}

fn selected(reply: &Reply) -> &str {
    reply.text("/fulfillment/methods/0/groups/0/selected_option_id")
}

#[tokio::test]
async fn a_choice_that_a_put_leaves_out_is_taken_back() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp();
    let chosen = ucp.create(mug(Some("local_pickup:4"))).await.expect(201);
    assert_eq!(selected(&chosen), "local_pickup:4");
    let replaced = ucp.update(&chosen.id(), mug(None)).await.expect(200);
    let fresh = ucp.create(mug(None)).await.expect(201);
    assert_eq!(selected(&replaced), selected(&fresh));
    assert_eq!(replaced.total("total"), fresh.total("total"));
}

/// Requirements: D-27.
#[tokio::test]
async fn an_acp_choice_can_be_taken_back_and_one_that_falls_away_is_told() {
    let app = TestApp::new().await;
    let acp = app.general_acp();
    let mut body = acp_lines("19", 1, "eur");
    body["buyer"] = acp_buyer();
    body["fulfillment_details"] = json!({"address": {"name": "Anna Muster", "line_one": "Musterweg 5", "city": "Berlin",
        "state": "DE-BE", "country": "DE", "postal_code": "10115"}});
    let created = acp.create(body).await.expect(201);
    let default = created.text("/selected_fulfillment_options/0/option_id").to_owned();
    let choose = |id: &str| json!({"selected_fulfillment_options": [{"type": "shipping", "option_id": id, "item_ids": ["li_1"]}]});
    let express = acp.update(&created.id(), choose("flat_rate:2")).await.expect(200);
    assert_eq!(express.text("/selected_fulfillment_options/0/option_id"), "flat_rate:2");
    let none = acp.update(&created.id(), json!({"selected_fulfillment_options": []})).await.expect(200);
    assert_eq!(none.text("/selected_fulfillment_options/0/option_id"), default);
    acp.update(&created.id(), choose("flat_rate:2")).await.expect(200);
    let moved = acp
        .update(&created.id(), json!({"fulfillment_details": {"address": acp_address()}}))
        .await
        .expect(200);
    assert_eq!(moved.text("/status"), "ready_for_payment", "{}", moved.json);
    assert_eq!(moved.text("/selected_fulfillment_options/0/option_id"), "flat_rate:5");
    let params: Vec<_> =
        moved.json["messages"].as_array().unwrap().iter().map(|m| m["param"].clone()).collect();
    assert_eq!(params, [json!("$.selected_fulfillment_options")]);
    acp.update(&created.id(), choose("flat_rate:2")).await.expect(400);
}

/// Requirements: U-068, A-016.
#[tokio::test]
async fn a_message_points_at_the_line_it_is_about() {
    let app = TestApp::new().await;
    // Item 32 is sold one at a time: the second line of it goes, the mug stays.
    let body = json!({"line_items": [{"item": {"id": "32"}, "quantity": 1}, {"item": {"id": "32"}, "quantity": 1},
        {"item": {"id": "19"}, "quantity": 1}]});
    let created = app.general_ucp().create(body).await.expect(201);
    let items: Vec<_> =
        created.json["line_items"].as_array().unwrap().iter().map(|l| l["item"]["id"].clone()).collect();
    assert_eq!(items, [json!("32"), json!("19")]);
    let about: Vec<_> = created.json["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["content"].as_str().unwrap().contains("32"))
        .collect();
    assert_eq!(about.len(), 1, "{}", created.json);
    assert_ne!(about[0]["path"], "$.line_items[1]");
    let mut body = acp_lines("19", 1, "eur");
    body["line_items"] = json!([{"id": "19"}, {"id": "22"}]);
    let created = app.general_acp().create(body).await.expect(201);
    let refused =
        created.json["messages"].as_array().unwrap().iter().find(|m| m["code"] == "out_of_stock").unwrap();
    assert!(refused["content"].as_str().unwrap().contains("22"), "the refused item is named: {refused}");
}

/// Requirements: A-110.
#[tokio::test]
async fn lines_keep_the_ids_that_are_named() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let line = |item: &str, quantity: u32| json!({"item": {"id": item}, "quantity": quantity});
    let body = json!({"line_items": [line("bouquet_roses", 1), line("bouquet_roses", 2)]});
    let id = ucp.create(body).await.expect(201).id();
    let mut named = line("bouquet_roses", 2);
    named["id"] = json!("li_1");
    let mut orphan = line("pot_ceramic", 1);
    orphan["parent_id"] = json!("nobody");
    let body = json!({"line_items": [line("bouquet_roses", 5), named, orphan]});
    let updated = ucp.update(&id, body).await.expect(200);
    let shown: Vec<_> = updated.json["line_items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l["id"].as_str().unwrap(), l["quantity"].as_u64().unwrap()))
        .collect();
    assert_eq!(shown, [("li_2", 5), ("li_1", 2), ("li_3", 1)]);
    assert!(updated.json["line_items"][2].get("parent_id").is_none());
    let mut other = line("pot_ceramic", 1);
    other["id"] = json!("li_1");
    let updated = ucp.update(&id, json!({"line_items": [other]})).await.expect(200);
    assert_ne!(updated.text("/line_items/0/id"), "li_1", "an id never passes to another item");
}

#[tokio::test]
async fn totals_are_called_an_estimate_until_an_address_is_known() {
    let app = TestApp::new().await;
    let mut body = lines("31", 1);
    body["buyer"] = json!({"email": "anna@example.com"});
    let ucp = app.general_ucp().create(body).await.expect(201);
    assert_eq!(ucp.codes(), ["estimate"]);
    assert_eq!(app.ucp().create(full("bouquet_roses", 1)).await.expect(201).codes(), Vec::<String>::new());
}

#[tokio::test]
async fn an_unknown_host_learns_nothing() {
    let app = TestApp::new().await;
    let request = axum::http::Request::builder().uri("/").header("host", "evil.example");
    let reply = app.send(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!((reply.status, reply.bytes.len()), (404, 0));
}
