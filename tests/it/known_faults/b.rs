//! B: the Store API.

use std::sync::Arc;

use serde_json::json;

use crate::support::{
    TestApp,
    clients::{acp_lines, full, lines},
    sides::{Acp, BOTH, Ucp, basket, orders},
};

/// The shop forgets the cart; it is made anew with the same lines.
#[tokio::test]
async fn b1_a_forgotten_cart_is_made_anew() {
    let app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        let id = side.ready(&app).await;
        app.flower().act(&json!([{"op": "clear_sessions"}])).unwrap();
        let reply = side.update(&app, "u", &id).await.expect(200);
        assert_eq!(basket(&reply), [("bouquet_roses".to_owned(), 2), ("pot_ceramic".to_owned(), 1)]);
        app.flower().act(&json!([{"op": "wait", "seconds": 49 * 3600}])).unwrap();
        let reply = side.complete(&app, "c", &id).await.expect(200);
        let reply =
            if reply.text("/status") == "completed" { reply } else { side.complete(&app, "c2", &id).await };
        assert_eq!(reply.text("/status"), "completed", "{side:?} {}", reply.json);
        assert_eq!(orders(&app).len(), bought + 1);
    }
}

/// Each answer of the shop may carry a new token for the cart; after 48 h the old ones are dead.
#[tokio::test]
async fn b2_a_session_outlives_its_tokens_or_ends_cleanly() {
    let app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        // Kept alive by updates, beyond the life of its first token.
        let id = side.ready(&app).await;
        for day in 0..3 {
            side.update(&app, &format!("{bought}-{day}"), &id).await.expect(200);
            app.pass(20 * 3600);
        }
        let last = side.update(&app, "last", &id).await.expect(200);
        assert_eq!(basket(&last), [("bouquet_roses".to_owned(), 2), ("pot_ceramic".to_owned(), 1)]);
        let done = side.complete(&app, "c", &id).await.expect(200);
        assert_eq!(done.text("/status"), "completed", "{side:?} {}", done.json);
        assert_eq!(orders(&app).len(), bought + 1);
        // Left alone for as long.
        let id = side.ready(&app).await;
        app.pass(49 * 3600);
        let refused = side.update(&app, "late", &id).await;
        let (status, shown) = match side {
            Ucp => (409, "canceled"),
            Acp => (405, "expired"),
        };
        assert_eq!(refused.status, status, "{}", refused.json);
        assert_eq!(side.get(&app, &id).await.expect(200).text("/status"), shown);
    }
}

/// A decline and the next try are one order, and the last unit blocks nobody's own retry.
#[tokio::test]
async fn b5_b9_a_buyers_own_retry_is_not_in_the_way() {
    let app = TestApp::new().await;
    let mut body = full("20", 1);
    body["fulfillment"]["methods"][0]["destinations"][0]["address_country"] = json!("US");
    let ucp = app.general_ucp();
    let id = ucp.create(body).await.expect(201).id();
    let declined = ucp.complete(&id, "fail_token").await.expect(200);
    assert!(declined.codes().contains(&"payment_failed".to_owned()), "{}", declined.json);
    app.pass(3);
    let paid = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(paid.text("/status"), "completed", "{}", paid.json);
    assert_eq!(app.general().orders().as_array().unwrap().len(), 1);
}

/// Requirements: D-15.
#[tokio::test]
async fn b6_parallel_completions_under_different_keys_place_one_order() {
    let app = Arc::new(TestApp::new().await);
    let id = app.ucp().ready("bouquet_roses", 1).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (app, id) = (Arc::clone(&app), id.clone());
        tasks.spawn(async move { app.ucp().complete(&id, "success_token").await });
    }
    let mut completed = 0;
    while let Some(reply) = tasks.join_next().await {
        let reply = reply.unwrap();
        match reply.status {
            200 if reply.text("/status") == "completed" => completed += 1,
            200 => assert_eq!(reply.text("/status"), "complete_in_progress"),
            409 => assert_eq!(reply.text("/code"), "invalid_state"),
            503 => assert_eq!(reply.header("retry-after"), Some("1")),
            other => panic!("{other}: {}", reply.json),
        }
    }
    assert_eq!(completed, 1);
    assert_eq!(app.flower().orders().as_array().unwrap().len(), 1);
}

/// Totals are the shop's own to the unit, names are decoded once.
#[tokio::test]
async fn b11_b15_sums_are_the_shops_and_names_are_read_once() {
    let app = TestApp::new().await;
    let german = json!({"id": "d", "first_name": "Anna", "last_name": "Muster", "street_address": "Musterweg 5",
        "address_locality": "Berlin", "address_region": "DE-BE", "postal_code": "10115", "address_country": "DE"});
    for codes in [json!([]), json!(["PERCENT10"])] {
        let body = json!({
            "line_items": [{"item": {"id": "39"}, "quantity": 3}, {"item": {"id": "25"}, "quantity": 7}, {"item": {"id": "37"}, "quantity": 1}],
            "buyer": {"email": "anna@example.com"}, "discounts": {"codes": codes},
            "fulfillment": {"methods": [{"type": "shipping", "destinations": [german]}]}
        });
        let reply = app.general_ucp().create(body).await.expect(201);
        let sum: i64 = reply.json["totals"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|total| total["type"] != "total")
            .map(|total| total["amount"].as_i64().unwrap())
            .sum();
        assert_eq!(sum, reply.total("total"), "{}", reply.json["totals"]);
        assert_eq!(reply.text("/line_items/2/item/title"), "Zażółć gęślą jaźń – “mug” & Tee 🎁");
        app.general_ucp().complete(&reply.id(), "success_token").await.expect(200);
        let order = app.general().orders().as_array().unwrap().last().cloned().unwrap();
        let total = order["total"].as_str().unwrap().replace('.', "");
        assert_eq!(total.parse::<i64>().unwrap(), reply.total("total"), "{order}");
    }
}

/// Attributes have no place in a checkout of either protocol: a variation's id says them all. Without one the
/// caller is told what to choose.
#[tokio::test]
async fn b12_a_product_with_variants_asks_for_one_of_them() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp().create(lines("26", 1)).await.expect(200);
    assert_eq!(ucp.text("/messages/0/code"), "item_unavailable");
    assert!(ucp.text("/messages/0/content").contains("variants"), "{}", ucp.json);
    let acp = app.general_acp().create(acp_lines("26", 1, "eur")).await.expect(201);
    let told = acp.json["messages"].to_string();
    assert!(told.contains("variants") && told.contains("$.line_items"), "{told}");
    let chosen = app.general_ucp().create(lines("27", 1)).await.expect(201);
    let title = chosen.text("/line_items/0/item/title");
    assert!(title.contains("Small") && title.contains("Red"), "{title}");
}

/// A rate that is not offered any more is not kept.
#[tokio::test]
async fn b18_a_rate_of_the_old_address_is_not_kept() {
    let app = TestApp::new().await;
    let mut body = full("bouquet_roses", 1);
    body["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "exp-ship-us"}]);
    let created = app.ucp().create(body.clone()).await.expect(201);
    assert_eq!(created.text("/fulfillment/methods/0/groups/0/selected_option_id"), "exp-ship-us");
    let address = &mut body["fulfillment"]["methods"][0]["destinations"][0];
    (address["address_country"], address["address_region"], address["postal_code"]) =
        (json!("DE"), json!("DE-BE"), json!("10115"));
    let moved = app.ucp().update(&created.id(), body).await.expect(200);
    assert_ne!(
        moved.json.pointer("/fulfillment/methods/0/groups/0/selected_option_id"),
        Some(&json!("exp-ship-us"))
    );
    assert!(!moved.codes().is_empty(), "the agent is told: {}", moved.json);
    let refused = app.ucp().complete(&created.id(), "success_token").await.expect(200);
    assert_ne!(refused.text("/status"), "completed");
    assert_eq!(orders(&app).len(), 0);
}

/// Quick changes are taken one after another.
#[tokio::test]
async fn b19_quick_changes_lose_nothing() {
    let app = TestApp::new().await;
    let id = Ucp.ready(&app).await;
    let (ucp, quantities) = (app.ucp(), [2_u32, 3, 4, 5, 6]);
    let replies = futures::future::join_all(
        quantities.map(|quantity| ucp.update(&id, full("bouquet_roses", quantity))),
    )
    .await;
    for (reply, quantity) in replies.into_iter().zip(quantities) {
        assert_eq!(basket(&reply.expect(200)), [("bouquet_roses".to_owned(), i64::from(quantity))]);
    }
    let last = basket(&ucp.get(&id).await);
    assert!(last.len() == 1 && last[0].1 >= 2, "{last:?}");
    ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(
        orders(&app)[0]["total"].as_str().unwrap().split('.').next(),
        Some((35 * last[0].1).to_string().as_str())
    );
}

/// The shop's limiter never counts as a decline, and nothing was made.
#[tokio::test]
async fn b22_a_limited_order_frees_the_key_at_once() {
    let app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        let id = side.ready(&app).await;
        app.flower().set_fault("limiter,count=1,only=checkout").unwrap();
        let refused = side.complete(&app, "k", &id).await;
        side.unavailable(&refused, "limiter");
        let read = side.get(&app, &id).await.expect(200);
        assert_eq!((read.text("/status"), read.codes()), (side.ready_status(), Vec::new()));
        app.pass(3);
        let done = side.complete(&app, "k", &id).await.expect(200);
        assert_eq!(done.text("/status"), "completed", "{}", done.json);
        assert_eq!(orders(&app).len(), bought + 1);
    }
}
