//! Orders that a shop names before they are placed, and unpaid ones that are cancelled, against what was recorded.

use serde_json::json;
use tillgate::{
    checkout::{
        cart::CartHandle,
        session::Cart,
        store::{Draft, Effect, FoundState, Store as _},
    },
    store::woo::{Settings, WcV3, WooStore},
};

use super::{
    cart, settings, store,
    stub::{Say, Stub, recorded},
    token,
};

/// The cart of the recording.
fn recorded_cart() -> Cart {
    let tape = recorded("38b-journey-early-draft");
    let headers = tape[0]["response"]["headers"].as_array().unwrap();
    let token = headers.iter().find(|header| header["name"] == "Cart-Token").unwrap();
    let mut cart = cart();
    cart.view.handle = CartHandle {
        token: token["value"].as_str().unwrap().to_owned(),
        identity: "t_236b81be339832fef893611b1886ad".to_owned(),
    };
    cart
}

#[tokio::test]
async fn an_order_is_named_before_it_is_placed_and_read_by_its_key_as_recorded() {
    let tape = recorded("38b-journey-early-draft");
    let lost = recorded("37-lost-answers");
    let read = |entry: &&serde_json::Value| entry["request"]["url"].as_str().unwrap().contains("/order/5130");
    let mut says = vec![Say::entry(&tape[5]), Say::entry(&tape[7])];
    // While its payment runs, and after it.
    says.extend(lost.iter().filter(read).map(Say::entry));
    says.push(Say::code(404, "woocommerce_rest_invalid_order"));
    let (stub, base) = Stub::start(says).await;
    let store = store(&base);
    let draft = store.draft(&recorded_cart(), Some("agent_token")).await.unwrap().unwrap();
    assert_eq!(
        (draft.shop_order.as_str(), draft.key.starts_with("wc_order_"), draft.fresh),
        ("5449", true, true)
    );
    let mut states = Vec::new();
    for _ in 0..3 {
        let found = store.find_draft(&draft, "anna@example.com").await.unwrap().unwrap();
        // That read tells neither a time nor a transaction.
        assert_eq!((found.modified_at, found.traces, found.stock_taken), (None, true, false));
        states.push((found.state, found.order.paid));
    }
    let (placed, pending) = ((FoundState::Placed, true), (FoundState::Pending, false));
    assert_eq!(states, [placed, pending, placed]);
    assert_eq!(store.find_draft(&draft, "anna@example.com").await.unwrap(), None);
    let asked = stub.asked();
    assert_eq!(asked[0].body, json!({"payment_method": "agent_token"}));
    asked[1].same(&tape[7]);
    assert!(!asked[1].headers.contains_key("Cart-Token"));
}

#[tokio::test]
async fn a_shop_that_names_no_order_is_asked_once() {
    let none = json!({"order_id": 0, "status": "checkout-draft", "order_key": ""}).to_string();
    for say in [Say::new(200, none).header("Cart-Token", &token()), Say::code(404, "rest_no_route")] {
        let (stub, base) = Stub::start([say]).await;
        let store = store(&base);
        for _ in 0..2 {
            assert_eq!(store.draft(&cart(), Some("agent_token")).await.unwrap(), None);
        }
        assert_eq!(stub.asked().len(), 1);
    }
    // What is wrong with the order itself comes again with it; a failure says nothing.
    let (_stub, base) =
        Stub::start([Say::code(400, "rest_invalid_param"), Say::code(500, "internal_server_error")]).await;
    let store = store(&base);
    assert_eq!(store.draft(&cart(), Some("nosuch")).await.unwrap(), None);
    let failed = store.draft(&cart(), Some("agent_token")).await.unwrap_err();
    assert_eq!(failed.effect(), Effect::Unknown);
}

#[tokio::test]
async fn an_order_that_was_left_unpaid_is_still_open_when_it_is_named_again() {
    let pending = json!({"order_id": 7, "status": "pending", "order_key": "wc_order_7"}).to_string();
    let (_stub, base) = Stub::start([Say::new(200, pending).header("Cart-Token", &token())]).await;
    let named = store(&base).draft(&cart(), None).await.unwrap();
    assert_eq!(named, Some(Draft { shop_order: "7".into(), key: "wc_order_7".into(), fresh: false }));
}

#[tokio::test]
async fn an_order_is_cancelled_only_with_a_key_that_writes() {
    let cancelled = json!({"id": 7, "status": "cancelled", "total": "50.00", "transaction_id": "txn_1",
        "date_modified_gmt": "2026-11-30T17:37:44"});
    let key = |writes| WcV3 { key: "ck".into(), secret: "cs".to_owned().into(), writes };
    let (stub, base) = Stub::start([Say::new(200, cancelled.to_string())]).await;
    let store = WooStore::new(Settings { wc_v3: Some(key(true)), ..settings(&base) }).unwrap();
    assert!(store.abilities().cancels_orders);
    let now = store.cancel_order("7").await.unwrap();
    assert_eq!((now.state, now.traces), (FoundState::Gone, true), "a payment shows");
    assert!(store.cancel_order("7/../8").await.is_err());
    let asked = stub.asked();
    assert_eq!((asked.len(), asked[0].method.as_str()), (1, "PUT"));
    assert_eq!(
        (asked[0].path.as_str(), &asked[0].body),
        ("/wp-json/wc/v3/orders/7", &json!({"status": "cancelled"}))
    );
    let reads = WooStore::new(Settings { wc_v3: Some(key(false)), ..settings(&base) }).unwrap();
    assert!(!reads.abilities().cancels_orders && reads.cancel_order("7").await.is_err());
}
