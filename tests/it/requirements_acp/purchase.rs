//! Lines, buyers, addresses, texts.

use serde_json::{Value, json};

use super::ready_with;
use crate::support::{
    TestApp,
    clients::{acp_address, acp_lines},
};

/// Null clears, parts are merged, an address is one piece.
/// Requirements: D-18.
#[tokio::test]
async fn parts_are_merged_and_null_clears() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let id = acp
        .create(ready_with("bouquet_roses", "usd", &json!({"order_notes": "ring"})))
        .await
        .expect(201)
        .id();
    let named = acp.update(&id, json!({"buyer": {"first_name": "Grace"}})).await.expect(200);
    assert_eq!(named.json["buyer"]["first_name"], "Grace");
    assert_eq!(
        (&named.json["buyer"]["last_name"], &named.json["buyer"]["email"]),
        (&json!("Byron"), &json!("ada@example.org"))
    );
    let phone =
        acp.update(&id, json!({"fulfillment_details": {"phone_number": "+12025550199"}})).await.expect(200);
    assert_eq!(phone.text("/fulfillment_details/phone_number"), "+12025550199");
    assert_eq!(phone.text("/fulfillment_details/address/line_one"), "12 Main Street");
    let mut address = acp_address();
    address["line_two"] = json!("2nd floor");
    acp.update(&id, json!({"fulfillment_details": {"address": address}})).await.expect(200);
    let replaced =
        acp.update(&id, json!({"fulfillment_details": {"address": acp_address()}})).await.expect(200);
    assert!(replaced.json["fulfillment_details"]["address"].get("line_two").is_none(), "one piece");
    let part = json!({"fulfillment_details": {"address": {"city": "Shelbyville"}}});
    acp.update(&id, part).await.expect(400);
    let cleared =
        acp.update(&id, json!({"buyer": {"first_name": null}, "order_notes": null})).await.expect(200);
    assert!(cleared.json["buyer"].get("first_name").is_none());
    let nobody = acp.update(&id, json!({"buyer": null})).await.expect(200);
    assert!(nobody.json.get("buyer").is_none());
    let empty = acp.update(&id, json!({"line_items": []})).await.expect(200);
    assert_eq!(empty.text("/status"), "incomplete");
}

/// Requirements: A-044, D-16, D-20.
#[tokio::test]
async fn a_create_needs_three_members_and_reads_items_generously() {
    let app = TestApp::new().await;
    let good = acp_lines("bouquet_roses", 1, "usd");
    for name in ["line_items", "currency", "capabilities"] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(name);
        let refused = app.acp().create(body).await.expect(400);
        assert_eq!(refused.text("/code"), "missing_required_field");
        assert_eq!(refused.text("/param"), format!("$.{name}"));
    }
    let mut foreign = good.clone();
    foreign["currency"] = json!("eur");
    let refused = app.acp().create(foreign).await.expect(400);
    assert_eq!((refused.text("/code"), refused.text("/param")), ("unsupported_currency", "$.currency"));
    for (name, lines, quantity) in [
        ("line_items", json!([{"id": "bouquet_roses"}]), 1),
        ("line_items", json!([{"id": "bouquet_roses", "quantity": 3}]), 3),
        ("line_items", json!([{"item": {"id": "bouquet_roses"}, "quantity": 2}]), 2),
        ("items", json!([{"id": "bouquet_roses", "quantity": 2}]), 2),
    ] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove("line_items");
        body[name] = lines.clone();
        let reply = app.acp().create(body).await.expect(201);
        assert_eq!(reply.json["line_items"][0]["quantity"], quantity, "{lines}");
    }
}

/// Requirements.
#[tokio::test]
async fn texts_are_plain_and_links_are_there() {
    let app = TestApp::new().await;
    let mut body = acp_lines("37", 1, "eur");
    body["line_items"] = json!([{"id": "37"}, {"id": "22"}, {"id": "32", "quantity": 2}]);
    body["discounts"] = json!({"codes": ["<b>NO</b>"]});
    let reply = app.general_acp().create(body).await.expect(201);
    let messages = reply.json["messages"].as_array().unwrap();
    assert!(messages.len() > 2);
    for message in messages {
        assert_eq!(message["content_type"], "plain");
        assert!(!message["content"].as_str().unwrap().contains('<'), "{message}");
    }
    let name = reply.text("/line_items/0/name");
    assert!(name.contains("“mug” & Tee") && !name.contains("&#"), "{name}");
    let links: Vec<&Value> = reply.json["links"].as_array().unwrap().iter().collect();
    for kind in ["terms_of_use", "privacy_policy"] {
        let link = links.iter().find(|link| link["type"] == kind).unwrap();
        assert!(link["url"].as_str().unwrap().starts_with("https://"));
    }
    let id = app.acp().ready("bouquet_roses", 1, "usd").await;
    let done = app.acp().complete(&id, "spt_test_ok").await.expect(200);
    let permalink = url::Url::parse(done.text("/order/permalink_url")).unwrap();
    assert_eq!(permalink.scheme(), "https");
    assert!(permalink.query_pairs().any(|(name, value)| name == "key" && !value.is_empty()), "{permalink}");
}

/// Requirements: D-1, D-4, D-6.
#[tokio::test]
async fn refusals_of_http_have_their_headers() {
    let app = TestApp::new().await;
    let body = acp_lines("bouquet_roses", 1, "usd").to_string();
    let path = "/acp/checkout_sessions";
    let post = axum::http::Method::POST;
    let nobody = super::changed("k", "authorization", Some("Bearer wrong"));
    let refused = super::raw(&app, post.clone(), path, &nobody, &body).await.expect(401);
    assert_eq!((refused.text("/code"), refused.header("www-authenticate")), ("unauthorized", Some("Bearer")));
    let text = super::changed("k", "content-type", Some("text/plain"));
    let refused = super::raw(&app, post.clone(), path, &text, &body).await.expect(415);
    assert!(refused.header("request-id").is_some_and(|id| id.len() >= 16), "one is made where none came");
    let charset = super::changed("k", "content-type", Some("application/json; charset=utf-8"));
    super::raw(&app, post, path, &charset, &body).await.expect(201);
}

/// What the shop does not take is told where the agent said it.
/// Requirements.
#[tokio::test]
async fn a_refused_part_is_pointed_at() {
    let app = TestApp::new().await;
    let id = app.general_acp().create(ready_with("19", "eur", &json!({}))).await.expect(201).id();
    let mut zip = acp_address();
    zip["postal_code"] = json!("9");
    for (change, param) in [
        (json!({"buyer": {"phone_number": "call me"}}), "$.buyer.phone_number"),
        (
            json!({"buyer": {"phone_number": "+12025550143"}, "fulfillment_details": {"phone_number": "call me"}}),
            "$.fulfillment_details.phone_number",
        ),
        (
            json!({"fulfillment_details": {"phone_number": null, "address": zip}}),
            "$.fulfillment_details.address.postal_code",
        ),
    ] {
        let reply = app.general_acp().update(&id, change.clone()).await.expect(200);
        let told = reply.json["messages"].as_array().unwrap().iter().find(|m| m["code"] == "invalid");
        let told = told.unwrap_or_else(|| panic!("{change}: {}", reply.json));
        assert_eq!((&told["param"], &told["type"]), (&json!(param), &json!("error")), "{change}");
        assert_eq!(reply.text("/status"), "not_ready_for_payment", "{change}");
    }
    let mended = json!({"fulfillment_details": {"address": acp_address()}});
    let mended = app.general_acp().update(&id, mended).await.expect(200);
    assert_eq!(mended.text("/status"), "ready_for_payment", "{}", mended.json);
}
