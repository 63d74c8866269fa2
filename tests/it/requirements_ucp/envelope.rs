//! The envelope of answers, and what is in them only after negotiation.

use serde_json::{Value, json};

use super::{berlin, order_to, platform_without};
use crate::support::{
    TestApp,
    clients::{full, lines},
};

const CHECKOUT: &str = "dev.ucp.shopping.checkout";
const DISCOUNT: &str = "dev.ucp.shopping.discount";
const FULFILLMENT: &str = "dev.ucp.shopping.fulfillment";
const CONSENT: &str = "dev.ucp.shopping.buyer_consent";

fn listed(body: &Value) -> Vec<&str> {
    body["ucp"]["capabilities"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// Requirements: U-028, U-034, U-035, U-045, U-046, U-057.
#[tokio::test]
async fn every_answer_has_its_version_and_what_belongs_to_it() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let created = ucp.create(lines("bouquet_roses", 1)).await.expect(201);
    let id = created.id();
    let given_up = ucp.ready("bouquet_roses", 1).await;
    let answers = [
        created,
        ucp.get(&id).await.expect(200),
        ucp.update(&id, full("bouquet_roses", 1)).await.expect(200),
        ucp.complete(&id, "fail_token").await.expect(200),
        ucp.cancel(&given_up).await.expect(200),
        ucp.create(lines("gardenias", 1)).await.expect(200),
        ucp.get("chk_none").await.expect(200),
    ];
    for reply in &answers {
        assert_eq!(reply.text("/ucp/version"), "2026-04-08");
        assert_eq!(listed(&reply.json), [CONSENT, CHECKOUT, DISCOUNT, FULFILLMENT]);
        let with_resource = reply.json.get("id").is_some();
        assert_eq!(reply.text("/ucp/status"), if with_resource { "success" } else { "error" });
        assert_eq!(reply.json["ucp"].get("payment_handlers").is_some(), with_resource);
        assert_eq!(reply.json["ucp"]["capabilities"][CHECKOUT], json!([{"version": "2026-04-08"}]));
    }
}

/// What a platform does not list is neither read nor shown.
/// Requirements: U-029, U-031, U-035.
#[tokio::test]
async fn what_was_not_negotiated_is_not_there() {
    let app = TestApp::new().await;
    let mut body = order_to(&["19"], &berlin());
    body["discounts"] = json!({"codes": ["PERCENT10"]});
    body["buyer"]["consent"] = json!({"marketing": true});
    for (missing, left) in [
        (&[][..], &[CONSENT, CHECKOUT, DISCOUNT, FULFILLMENT][..]),
        (&[DISCOUNT], &[CONSENT, CHECKOUT, FULFILLMENT]),
        (&[FULFILLMENT], &[CONSENT, CHECKOUT, DISCOUNT]),
        (&[CONSENT], &[CHECKOUT, DISCOUNT, FULFILLMENT]),
        // An extension of two parents lives on with one of them, but not in answers about the other.
        (&["dev.ucp.shopping.cart"], &[CONSENT, CHECKOUT, DISCOUNT, FULFILLMENT]),
    ] {
        let platform = platform_without(missing).await;
        let reply = app.general_ucp().profile(&platform).create(body.clone()).await.expect(201);
        assert_eq!(listed(&reply.json), left);
        assert_eq!(reply.json.get("discounts").is_some(), left.contains(&DISCOUNT), "{missing:?}");
        let taken = reply.json["totals"].as_array().unwrap().iter().any(|t| t["type"] == "discount");
        assert_eq!(taken, left.contains(&DISCOUNT), "a code that was not negotiated takes nothing off");
        assert_eq!(reply.json.get("fulfillment").is_some(), left.contains(&FULFILLMENT), "{missing:?}");
        assert_eq!(reply.json["buyer"].get("consent").is_some(), left.contains(&CONSENT), "{missing:?}");
    }
    let orphans = platform_without(&[CHECKOUT]).await;
    let reply = app.general_ucp().profile(&orphans).create(body).await.expect(200);
    assert_eq!(reply.codes(), ["capabilities_incompatible"]);
    assert_eq!(listed(&reply.json), Vec::<&str>::new());
}

/// Requirements: U-122.
#[tokio::test]
async fn a_cart_counts_only_where_carts_were_negotiated() {
    let app = TestApp::new().await;
    let platform = platform_without(&["dev.ucp.shopping.cart"]).await;
    let mut body = lines("bouquet_roses", 2);
    body["cart_id"] = json!("cart_of_nobody");
    let reply = app.ucp().profile(&platform).create(body).await.expect(201);
    assert_eq!(reply.total("subtotal"), 7000);
    assert!(reply.json.get("cart_id").is_none());
}

/// Requirements: U-058, U-095.
#[tokio::test]
async fn equal_input_gives_equal_sessions_and_attribution_changes_nothing() {
    let app = TestApp::new().await;
    let mut body = order_to(&["19", "36"], &berlin());
    body["discounts"] = json!({"codes": ["PERCENT10", "nonsense"]});
    let plain = app.general_ucp().create(body.clone()).await.expect(201);
    let again = app.general_ucp().create(body.clone()).await.expect(201);
    assert_ne!(plain.id(), again.id());
    assert_eq!(super::without_ids(&plain), super::without_ids(&again));
    // Titles and prices are the shop's.
    body["line_items"][0]["item"] = json!({"id": "19", "title": "Cheap mug", "price": 1});
    body["attribution"] = json!({"campaign": "summer", "ref": "newsletter"});
    body["signals"] = json!({"dev.ucp.buyer_ip": "203.0.113.7"});
    let attributed = app.general_ucp().create(body).await.expect(201);
    assert_eq!(super::without_ids(&plain), super::without_ids(&attributed));
    assert!(!String::from_utf8_lossy(&attributed.bytes).contains("summer"));
}

/// Requirements: U-118.
#[tokio::test]
async fn consent_is_taken_and_shown() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let mut body = full("bouquet_roses", 1);
    let consent = json!({"marketing": true, "analytics": false});
    body["buyer"]["consent"] = consent.clone();
    let created = ucp.create(body.clone()).await.expect(201);
    assert_eq!(created.json["buyer"]["consent"], consent);
    assert_eq!(ucp.get(&created.id()).await.json["buyer"]["consent"], consent);
    let less = json!({"preferences": true, "sale_of_data": false});
    body["buyer"]["consent"] = less.clone();
    let updated = ucp.update(&created.id(), body).await.expect(200);
    assert_eq!(updated.json["buyer"]["consent"], less, "a missing value is no consent");
    let bare = ucp.update(&created.id(), full("bouquet_roses", 1)).await.expect(200);
    assert!(bare.json["buyer"].get("consent").is_none());
}
