//! The demo shop's other switches: what a shop may do beside the experiments.

use serde_json::json;

use super::stage::{Shop, pass};
use super::{FIVE, LAST, MUG};

#[tokio::test(start_paused = true)]
async fn in_the_gap_between_status_and_stock_a_unit_is_sold_twice() {
    let shop = Shop::open();
    let first = shop.buyer_of(&[(LAST, 1)]).await;
    let second = shop.buyer_of(&[(LAST, 1)]).await;
    shop.fault("gap_ms=10-88~40");
    let sent = first.pay_aside("tok_ok", "corr-1").await;
    assert_eq!(shop.statuses(), ["processing"]);
    assert_eq!((shop.stock(LAST).await, shop.maximum(LAST).await), (1, 1), "neither held nor taken off");
    let order = shop.wcv3("GET", "orders", None).await;
    assert!(!order[0]["line_items"][0]["meta_data"].to_string().contains("_reduced_stock"));
    assert_eq!(second.pay("tok_ok", "corr-2").await.status, 200);
    assert_eq!(sent.await.unwrap().status, 200);
    assert_eq!(shop.statuses(), ["processing", "processing"]);
    assert_eq!(shop.stock(LAST).await, -1);
}

#[tokio::test(start_paused = true)]
async fn without_the_stock_hold_only_the_cart_is_checked() {
    for (hold, second_status) in [(60, 409), (0, 200)] {
        let shop = Shop::open();
        shop.event(&json!({"op": "stock_hold", "minutes": hold}));
        let mut buyers = Vec::new();
        for _ in 0..3 {
            buyers.push(shop.buyer_of(&[(LAST, 1)]).await);
        }
        shop.fault("payment_ms=100");
        let sent = buyers[0].pay_aside("tok_ok", "corr-1").await;
        assert_eq!(shop.statuses(), ["pending"]);
        let second = buyers[1].pay("tok_ok", "corr-2").await;
        assert_eq!(second.status, second_status, "hold of {hold}: {}", second.body);
        assert_eq!(sent.await.unwrap().status, 200);
        let third = buyers[2].pay("tok_ok", "corr-3").await;
        assert_eq!((third.status, third.code()), (409, "woocommerce_rest_product_out_of_stock"));
        assert_eq!(shop.stock(LAST).await, if hold == 0 { -1 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowded_shop_takes_longer_and_only_while_it_is_crowded() {
    let shop = Shop::open();
    let mut buyers = Vec::new();
    for _ in 0..9 {
        buyers.push(shop.buyer_of(&[(MUG, 1)]).await);
    }
    shop.fault("payment_ms=10/100");
    let begun = tokio::time::Instant::now();
    assert_eq!(buyers[0].pay("tok_ok", "corr-1").await.status, 200);
    assert_eq!(begun.elapsed().as_millis(), 10, "alone");
    shop.fault("prepare_ms=1");
    let all = buyers[1..].iter().map(|buyer| buyer.pay("tok_ok", "corr-2"));
    let begun = tokio::time::Instant::now();
    assert!(futures::future::join_all(all).await.iter().all(|answer| answer.status == 200));
    assert_eq!(begun.elapsed().as_millis(), 101, "eight at once");
}

#[tokio::test(start_paused = true)]
async fn a_checkout_can_shrink_without_a_word() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 4)]).await;
    shop.fault("shrink=2,count=1");
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.status, 200);
    assert_eq!(shop.orders()[0]["lines"], json!([{"sku": "STOCK-05", "quantity": 2}]));
    assert_eq!(shop.stock(FIVE).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_shop_can_make_its_order_only_at_the_post() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    shop.fault("late_draft");
    for method in ["GET", "PUT", "PATCH"] {
        let draft = buyer.call(method, "checkout", Some(json!({"payment_method": "agent_token"}))).await;
        assert_eq!((draft.status, draft.order()), (200, 0), "{method}");
    }
    assert!(shop.orders().is_empty());
    assert_eq!(buyer.pay("tok_declined", "corr-1").await.status, 400);
    let open = shop.orders()[0]["id"].as_u64().unwrap();
    assert_eq!(buyer.call("GET", "checkout", None).await.order(), open, "the open order is shown");
    pass(2000).await;
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.order(), open);
    assert_eq!(shop.statuses(), ["processing"]);
}

#[tokio::test(start_paused = true)]
async fn an_early_draft_is_the_order_that_is_placed() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    let draft = buyer.call("PUT", "checkout", Some(json!({"payment_method": "agent_token"}))).await.order();
    assert_eq!(shop.statuses(), ["checkout-draft"]);
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.order(), draft);
    assert_eq!(shop.statuses(), ["processing"]);
}

#[tokio::test(start_paused = true)]
async fn a_shop_can_die_before_or_after_the_order_has_its_status() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    shop.fault("500_while_paying,count=1");
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.status, 500);
    assert_eq!((shop.statuses(), buyer.units().await), (vec!["pending".to_owned()], 1));
    let order = shop.wcv3("GET", "orders", None).await;
    assert!(order[0]["transaction_id"].as_str().unwrap().starts_with("txn_"), "a trace of the payment");
    pass(2000).await;

    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    shop.fault("500_after_payment,count=1");
    assert_eq!(buyer.pay("tok_ok", "corr-2").await.status, 500);
    assert_eq!(buyer.units().await, 1);
    pass(2000).await;
    assert_eq!(buyer.pay("tok_ok", "corr-2").await.status, 200);
    assert_eq!(shop.statuses(), ["pending", "processing", "processing"]);
    assert_eq!(shop.violations(), ["repeat"]);
}

#[tokio::test(start_paused = true)]
async fn a_free_order_keeps_its_cart_and_can_be_placed_again() {
    let shop = Shop::open();
    // The free product is sent, so the rate has to be free as well.
    let buyer = shop.buyer_of(&[(38, 1)]).await;
    assert_eq!(buyer.coupon("FREESHIP").await.status, 200);
    let first = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!(first.status, 200, "{}", first.body);
    assert_eq!(shop.orders()[0]["total_minor"], 0);
    assert!(!first.hash().is_empty());
    assert_eq!(buyer.units().await, 1);
    pass(2000).await;
    assert_ne!(buyer.pay("tok_ok", "corr-1").await.order(), first.order());
    assert_eq!(shop.statuses(), ["processing", "processing"]);
}

#[tokio::test(start_paused = true)]
async fn workers_serve_in_the_order_of_arrival() {
    let shop = Shop::open();
    let mut buyers = Vec::new();
    for _ in 0..4 {
        buyers.push(shop.buyer_of(&[(MUG, 1)]).await);
    }
    shop.fault("workers=1");
    shop.fault("payment_ms=100");
    let mut sent = Vec::new();
    for (buyer, utm_id) in buyers.iter().zip(["corr-1", "corr-2", "corr-3", "corr-4"]) {
        sent.push(buyer.pay_aside("tok_ok", utm_id).await);
    }
    assert_eq!(shop.statuses(), ["pending"], "one at a time");
    for sent in sent {
        assert_eq!(sent.await.unwrap().status, 200);
    }
    let ids: Vec<_> = shop.orders().iter().map(|order| order["utm_id"].clone()).collect();
    assert_eq!(ids, ["corr-1", "corr-2", "corr-3", "corr-4"]);
}
