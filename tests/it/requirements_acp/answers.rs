//! What every answer holds, whatever the operation.

use axum::http::Method;
use serde_json::{Value, json};

use super::{applied, ready_with};
use crate::support::{
    Reply, TestApp,
    clients::{acp_address, acp_buyer, acp_lines, acp_payment},
};

/// Calls on every number that is an amount, and on every currency.
fn look(body: &Value, name: &str, found: &mut Vec<(String, Value)>) {
    match body {
        Value::Object(members) => members.iter().for_each(|(name, value)| look(value, name, found)),
        Value::Array(items) => items.iter().for_each(|value| look(value, name, found)),
        leaf => found.push((name.to_owned(), leaf.clone())),
    }
}

/// Requirements, D-7, D-31.
#[tokio::test]
async fn every_answer_is_the_whole_session() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let created = acp.create(acp_lines("bouquet_roses", 2, "USD")).await.expect(201);
    let id = created.id();
    let buyer = json!({"buyer": acp_buyer(), "fulfillment_details": {"address": acp_address()}});
    let other = acp.ready("bouquet_tulips", 1, "usd").await;
    let answers = [
        created,
        acp.update(&id, buyer).await.expect(200),
        acp.get(&id).await.expect(200),
        acp.complete(&id, "spt_test_declined").await.expect(200),
        acp.cancel(&other).await.expect(200),
        {
            app.pass(3);
            acp.complete(&id, "spt_test_ok").await.expect(200)
        },
    ];
    for reply in &answers {
        for name in [
            "id",
            "status",
            "currency",
            "line_items",
            "totals",
            "fulfillment_options",
            "messages",
            "links",
            "capabilities",
        ] {
            assert!(reply.json.get(name).is_some(), "no {name} in {}", reply.json);
        }
        assert_eq!(reply.text("/protocol/version"), "2026-04-17");
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(
            reply.total("total"),
            reply.total("subtotal") + reply.total("fulfillment") + reply.total("tax")
        );
        assert_eq!(reply.json.get("order").is_some(), reply.text("/status") == "completed");
        let handler = &reply.json["capabilities"]["payment"]["handlers"][0];
        assert_eq!(handler["requires_delegate_payment"], true);
        assert_eq!(handler["requires_pci_compliance"], false);
        let mut found = Vec::new();
        look(&reply.json, "", &mut found);
        for (name, value) in found {
            assert!(!value.is_f64(), "{name} is {value}");
            assert!(name != "currency" || value == "usd", "{value}");
            assert!(!name.ends_with("amount") || value.is_i64() || value.is_u64(), "{name} is {value}");
        }
    }
    let [.., done] = answers;
    let order = done.json["order"].as_object().unwrap();
    assert_eq!(order["checkout_session_id"], json!(id));
    assert!(order["id"].is_string() && order["permalink_url"].is_string());
}

/// Requirements, D-23, D-25.
#[tokio::test]
async fn options_and_tax_come_with_the_address_and_totals_follow() {
    let app = TestApp::new().await;
    let acp = app.general_acp();
    let mut body = acp_lines("19", 1, "eur");
    body["line_items"] = json!([{"id": "19", "quantity": 2}, {"id": "36", "quantity": 1}]);
    let created = acp.create(body).await.expect(201);
    assert_eq!(created.json["fulfillment_options"], json!([]));
    assert_eq!(created.text("/status"), "not_ready_for_payment");
    let berlin = json!({"name": "Anna Muster", "line_one": "Musterweg 5", "city": "Berlin", "state": "DE-BE",
        "country": "DE", "postal_code": "10115"});
    let id = created.id();
    let addressed = json!({"buyer": acp_buyer(), "fulfillment_details": {"address": berlin}});
    let addressed = acp.update(&id, addressed).await.expect(200);
    assert_eq!(addressed.text("/status"), "ready_for_payment");
    let options = addressed.json["fulfillment_options"].as_array().unwrap().clone();
    assert!(options.len() > 1 && addressed.total("tax") > 0);
    for option in &options {
        let entry = |kind: &str| {
            let totals = option["totals"].as_array().unwrap();
            totals.iter().find(|t| t["type"] == kind).and_then(|t| t["amount"].as_i64()).unwrap()
        };
        assert_eq!(entry("total"), entry("subtotal") + entry("tax"));
        let choice =
            json!([{"type": option["type"], "option_id": option["id"], "item_ids": ["li_1", "li_2"]}]);
        let reply = acp.update(&id, json!({"selected_fulfillment_options": choice})).await.expect(200);
        assert_eq!(reply.total("fulfillment"), entry("subtotal"), "net; its tax is in the tax");
        assert_eq!(
            reply.total("total"),
            reply.total("subtotal") + reply.total("fulfillment") + reply.total("tax"),
            "{}",
            reply.json
        );
        let lines = |reply: &Reply| -> Vec<_> {
            reply.json["line_items"].as_array().unwrap().iter().map(|line| line["id"].clone()).collect()
        };
        assert_eq!(lines(&reply), lines(&created), "ids of lines are stable");
        assert_ne!(lines(&reply)[0], lines(&reply)[1]);
    }
    for line in addressed.json["line_items"].as_array().unwrap() {
        let amount = |kind: &str| {
            let totals = line["totals"].as_array().unwrap();
            totals.iter().find(|t| t["type"] == kind).and_then(|t| t["amount"].as_i64()).unwrap_or_default()
        };
        assert_eq!(amount("subtotal"), amount("items_base_amount") - amount("items_discount"));
        assert_eq!(amount("total"), amount("subtotal") + amount("tax"));
        assert!(amount("tax") > 0);
    }
}

/// Requirements, D-19.
#[tokio::test]
async fn capabilities_are_what_both_sides_know() {
    let app = TestApp::new().await;
    for (sent, supported, extensions) in [
        (json!({}), json!([]), None),
        (json!({"interventions": {"supported": []}, "extensions": []}), json!([]), None),
        (
            json!({"interventions": {"supported": ["biometric", "foo", "3ds"], "display_context": "hologram"},
                "extensions": ["foo@2026-01-01", "discount@2026-01-27"], "surprise": 1}),
            json!(["3ds"]),
            Some("discount"),
        ),
    ] {
        let mut body = acp_lines("bouquet_roses", 1, "usd");
        body["capabilities"] = sent;
        let created = app.acp().create(body).await.expect(201);
        let read = app.acp().get(&created.id()).await.expect(200);
        for reply in [created, read] {
            let told = &reply.json["capabilities"];
            assert_eq!(told["interventions"]["supported"], supported);
            assert_eq!(told["extensions"][0]["name"].as_str(), extensions);
        }
    }
}

/// Requirements, D-21.
#[tokio::test]
async fn codes_replace_codes() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let body = ready_with("bouquet_roses", "usd", &json!({"discounts": {"codes": ["10Off", "NoSuch"]}}));
    let created = acp.create(body).await.expect(201);
    assert_eq!(applied(&created), ["10Off"]);
    assert_eq!(created.json["discounts"]["codes"], json!(["10Off", "NoSuch"]));
    let discount = &created.json["discounts"]["applied"][0];
    assert!(
        discount["id"].is_string()
            && discount["coupon"]["id"].is_string()
            && discount["coupon"]["name"].is_string()
    );
    assert_eq!((&discount["amount"], created.total("items_discount")), (&json!(350), 350));
    assert_eq!(discount["allocations"], json!([{"path": "$.line_items[0]", "amount": 350}]));
    let rejected = &created.json["discounts"]["rejected"][0];
    assert_eq!((&rejected["code"], &rejected["reason"]), (&json!("NoSuch"), &json!("discount_code_invalid")));
    let warning = &created.json["messages"][0];
    assert_eq!((&warning["type"], &warning["code"]), (&json!("warning"), &json!("discount_code_invalid")));
    assert_eq!(warning["param"], "$.discounts.codes[1]");
    for (change, codes) in [
        (json!({"coupons": ["welcome20"]}), &["welcome20"][..]),
        (json!({"coupons": ["welcome20"], "discounts": {"codes": ["FIXED500"]}}), &["FIXED500"]),
        (json!({"order_notes": "x"}), &["FIXED500"]),
        (json!({"discounts": {"codes": []}}), &[]),
    ] {
        let reply = acp.update(&created.id(), change.clone()).await.expect(200);
        assert_eq!(applied(&reply), codes, "{change}");
    }
}

/// Requirements: A-063, D-17.
#[tokio::test]
async fn extensions_and_claims_leave_the_core_alone() {
    let app = TestApp::new().await;
    let core = |reply: &Reply| {
        let mut body = reply.json.clone();
        let members = body.as_object_mut().unwrap();
        for name in
            ["id", "continue_url", "created_at", "updated_at", "expires_at", "discounts", "capabilities"]
        {
            members.remove(name);
        }
        body
    };
    let plain = json!({"capabilities": {}});
    let plain = app.acp().create(ready_with("bouquet_roses", "usd", &plain)).await.expect(201);
    let extended = json!({"capabilities": {"extensions": ["discount"]}, "discounts": {"codes": []}});
    let extended = app.acp().create(ready_with("bouquet_roses", "usd", &extended)).await.expect(201);
    assert_eq!(core(&plain), core(&extended));
    let mut claims = acp_buyer();
    for (name, value) in [
        ("customer_id", json!("7")),
        ("authentication_status", json!("authenticated")),
        ("tax_exemption", json!({"certificate_id": "c", "certificate_type": "resale"})),
        ("loyalty", json!({"tier": "gold"})),
    ] {
        claims[name] = value;
    }
    let mut body = ready_with("bouquet_roses", "usd", &json!({"capabilities": {}, "buyer": claims}));
    // Prices that an agent names count as little.
    body["line_items"] = json!([{"id": "bouquet_roses", "quantity": 1, "unit_amount": 1, "name": "Cheap"}]);
    let claimed = app.acp().create(body).await.expect(201);
    assert_eq!(core(&plain), core(&claimed));
}

/// Requirements.
#[tokio::test]
async fn attribution_is_taken_and_never_seen_again() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let with = |attribution: Value| {
        ready_with("bouquet_roses", "usd", &json!({"affiliate_attribution": attribution}))
    };
    let plain = acp.create(with(json!({"provider": "one", "token": "t1"}))).await.expect(201);
    assert!(!String::from_utf8_lossy(&plain.bytes).contains("affiliate"));
    acp.create(with(json!({"provider": "one", "publisher_id": "p", "surprise": 1}))).await.expect(201);
    let mut pay = acp_payment("spt_test_ok");
    pay["affiliate_attribution"] = json!({"provider": "another", "token": "t2", "touchpoint": "last"});
    let path = format!("/checkout_sessions/{}/complete", plain.id());
    let done = acp.call(Method::POST, &path, Some(&pay)).await.expect(200);
    assert_eq!(done.text("/status"), "completed", "a second provider is no conflict");
    assert!(!String::from_utf8_lossy(&done.bytes).contains("affiliate"));
    for (attribution, code) in [
        (json!({"token": "t"}), "missing_required_field"),
        (json!({"provider": "p"}), "missing_required_field"),
        (json!({"provider": "p", "token": "t", "metadata": {"a": {"b": 1}}}), "invalid_type"),
        (json!({"provider": "p", "token": "t", "metadata": {"a": "ada@example.org"}}), "pii_not_allowed"),
    ] {
        let refused = acp.create(with(attribution)).await.expect(400);
        assert_eq!(refused.text("/code"), code);
        assert!(refused.text("/param").starts_with("$.affiliate_attribution"));
    }
}
