//! The experiments E1 to E14 that were made with a real `WooCommerce` 10.5, made with the demo shop: same outcome.
//!
//! Product 19 has no managed stock, of 20 there is one, of 24 five, of 27 ten, of 29 three. Time is the runtime's
//! paused one: waiting costs nothing, and every overlap happens as it is written.

mod stage;
mod stock;
mod switches;
mod watched;

use futures::future::join_all;
use serde_json::{Value, json};

use self::stage::{Answer, Shop, pass};

const MUG: u64 = 19;
const LAST: u64 = 20;
const FIVE: u64 = 24;
const TEE_S: u64 = 27;
const TEE_L: u64 = 29;

fn total(order: &Value) -> i64 {
    order["total_minor"].as_i64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn e1_a_queued_post_is_carried_out_after_its_sender_has_gone() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    shop.fault("workers=2");
    shop.fault("delay_ms=5400,count=2,only=cart");
    let others = [shop.clone(), shop.clone()].map(|shop| tokio::spawn(async move { shop.buyer().await }));
    pass(1).await;
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    pass(500).await;
    sent.abort();
    assert!(sent.await.is_err(), "the sender has gone");
    pass(4800).await;
    assert!(shop.orders().is_empty(), "no worker is free yet");
    pass(200).await;
    assert_eq!(shop.statuses(), ["processing"]);
    for other in others {
        other.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn e2_an_emptied_cart_refuses_the_post() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    buyer.empty().await;
    let late = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!((late.status, late.code()), (409, "woocommerce_rest_cart_empty"));
    assert!(shop.orders().is_empty());
}

#[tokio::test(start_paused = true)]
async fn e3_emptying_a_cart_does_not_harm_the_order_that_is_being_placed() {
    // During the payment, and right after the POST has loaded the cart.
    for slow in ["payment_ms=1000,count=1", "prepare_ms=1000,count=1"] {
        let shop = Shop::open();
        let buyer = shop.buyer_of(&[(MUG, 2), (FIVE, 1)]).await;
        shop.fault(slow);
        let sent = buyer.pay_aside("tok_ok", "corr-1").await;
        pass(499).await;
        buyer.empty().await;
        let answer = sent.await.unwrap();
        assert_eq!(answer.status, 200, "{slow}");
        let orders = shop.orders();
        assert_eq!(orders.len(), 1);
        assert_eq!(orders[0]["status"], "processing");
        let lines = json!([{"sku": "MUG-01", "quantity": 2}, {"sku": "STOCK-05", "quantity": 1}]);
        assert_eq!(orders[0]["lines"], lines);
        assert_eq!(buyer.units().await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn e4_a_write_that_overlaps_the_post_refills_the_cart_of_a_paid_order() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    shop.fault("payment_ms=300");
    shop.fault("slow_ms=1000,count=1,only=cart");
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    let writes = json!({"billing_address": {"city": "Potsdam"}, "shipping_address": {"city": "Potsdam"}});
    assert_eq!(buyer.call("POST", "cart/update-customer", Some(writes)).await.status, 200);
    let first = sent.await.unwrap();
    assert_eq!(first.status, 200);
    assert_eq!(buyer.units().await, 1, "full again");
    let second = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!(second.status, 200);
    assert_ne!(first.order(), second.order());
    assert_eq!(shop.statuses(), ["processing", "processing"]);
    assert_eq!(shop.violations(), ["overlap", "repeat"]);
}

#[tokio::test(start_paused = true)]
async fn e4_a_plain_read_that_overlaps_the_post_does_not() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    shop.fault("payment_ms=300");
    shop.fault("slow_ms=1000,count=1,only=cart");
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    buyer.cart().await;
    assert_eq!(sent.await.unwrap().status, 200);
    assert_eq!(buyer.units().await, 0);
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.code(), "woocommerce_rest_cart_empty");
    assert_eq!(shop.statuses(), ["processing"]);
}

#[tokio::test(start_paused = true)]
async fn e5_a_post_that_is_declined_brings_an_emptied_cart_back() {
    for token in ["tok_declined", "tok_declined_silent"] {
        let shop = Shop::open();
        let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
        shop.fault("payment_ms=1000");
        let sent = buyer.pay_aside(token, "corr-1").await;
        pass(500).await;
        buyer.empty().await;
        assert_eq!(buyer.units().await, 0, "empty at once");
        assert_eq!(sent.await.unwrap().status, 400);
        assert_eq!(buyer.units().await, 2, "{token}: filled again");
        assert_eq!(shop.statuses(), ["pending"]);
    }
}

#[tokio::test(start_paused = true)]
async fn e6_a_second_try_pays_the_same_order_which_keeps_its_first_utm_id() {
    for token in ["tok_declined", "tok_declined_silent"] {
        let shop = Shop::open();
        let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
        assert_eq!(buyer.pay(token, "corr-1").await.status, 400);
        let id = shop.orders()[0]["id"].as_u64().unwrap();
        let modified = |order: &Value| order["date_modified_gmt"].as_str().unwrap().to_owned();
        let before = modified(&shop.wcv3("GET", &format!("orders/{id}"), None).await);
        pass(2000).await;
        let again = buyer.pay(token, "corr-2").await;
        assert_eq!(again.status, 400);
        let after = modified(&shop.wcv3("GET", &format!("orders/{id}"), None).await);
        assert!(before < after, "{before} {after}");
        pass(2000).await;
        assert_eq!(buyer.pay("tok_ok", "corr-3").await.order(), id);
        let orders = shop.orders();
        assert_eq!(orders.len(), 1);
        assert_eq!((&orders[0]["utm_id"], &orders[0]["status"]), (&json!("corr-1"), &json!("processing")));
    }
}

#[tokio::test(start_paused = true)]
async fn e6_a_try_within_the_same_second_is_falsely_refused() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    assert_eq!(buyer.pay("tok_declined_silent", "corr-1").await.status, 400);
    let again = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!((again.status, again.code()), (403, "woocommerce_product_not_enough_stock"));
    pass(1100).await;
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.status, 200);
    assert_eq!(shop.statuses(), ["processing"]);
}

#[tokio::test(start_paused = true)]
async fn e7_the_pending_order_of_a_silent_decline_blocks_its_own_buyer() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(LAST, 1)]).await;
    let declined = buyer.pay("tok_declined_silent", "corr-1").await;
    assert_eq!(
        (declined.status, &declined.body["payment_result"]["payment_status"]),
        (400, &json!("failure"))
    );
    pass(2000).await;
    let rate = json!({"package_id": 0, "rate_id": "flat_rate:2"});
    assert_eq!(buyer.call("POST", "cart/select-shipping-rate", Some(rate)).await.status, 200);
    let again = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!((again.status, again.code()), (403, "woocommerce_product_not_enough_stock"));

    let none = |answer: Answer| {
        assert_eq!((answer.status, answer.code()), (400, "woocommerce_rest_product_partially_out_of_stock"));
    };
    let key = buyer.cart().await.body["items"][0]["key"].clone();
    assert_eq!(buyer.call("POST", "cart/remove-item", Some(json!({"key": key}))).await.status, 200);
    none(buyer.add(LAST, 1).await);
    buyer.empty().await;
    none(buyer.add(LAST, 1).await);
    none(shop.buyer().await.add(LAST, 1).await);
    pass(60 * 60 * 1000).await;
    assert_eq!(buyer.add(LAST, 1).await.status, 201, "the hold is over");
}

#[tokio::test(start_paused = true)]
async fn e8_a_declined_order_keeps_a_one_use_coupon_from_its_own_buyer() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    assert_eq!(buyer.coupon("ONCE").await.status, 200);
    assert_eq!(buyer.pay("tok_declined", "corr-1").await.status, 400);
    let discounted = total(&shop.orders()[0]);
    pass(2000).await;
    let again = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!((again.status, again.code()), (409, "woocommerce_rest_cart_coupon_error"));
    assert_eq!(buyer.cart().await.body["coupons"], json!([]));
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.status, 200);
    let orders = shop.orders();
    assert_eq!(shop.statuses(), ["pending", "processing"]);
    assert!(total(&orders[1]) > discounted, "the full price");
}

#[tokio::test(start_paused = true)]
async fn e8_cancelling_the_declined_order_first_frees_the_coupon() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    assert_eq!(buyer.coupon("ONCE").await.status, 200);
    assert_eq!(buyer.pay("tok_declined", "corr-1").await.status, 400);
    let id = shop.orders()[0]["id"].clone();
    shop.wcv3("PUT", &format!("orders/{id}"), Some(json!({"status": "cancelled"}))).await;
    pass(2000).await;
    assert_eq!(buyer.cart().await.body["coupons"][0]["code"], "once");
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.status, 200);
    let orders = shop.orders();
    assert_eq!(shop.statuses(), ["cancelled", "processing"]);
    assert_eq!(total(&orders[1]), total(&orders[0]));
}

#[tokio::test(start_paused = true)]
async fn e9_an_order_cancelled_during_its_payment_comes_back() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
    shop.fault("payment_ms=1000");
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    let id = shop.orders()[0]["id"].clone();
    let cancelled = shop.wcv3("PUT", &format!("orders/{id}"), Some(json!({"status": "cancelled"}))).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(sent.await.unwrap().status, 200);
    assert_eq!(shop.statuses(), ["processing"]);
    assert_eq!(shop.stock(FIVE).await, 3, "taken once");
}

#[tokio::test(start_paused = true)]
async fn e10_of_two_carts_with_one_use_of_a_coupon_one_is_refused() {
    let shop = Shop::open();
    let buyers = [shop.buyer_of(&[(MUG, 1)]).await, shop.buyer_of(&[(MUG, 1)]).await];
    for buyer in &buyers {
        assert_eq!(buyer.coupon("ONCE").await.status, 200);
    }
    shop.fault("prepare_ms=50");
    let answers = join_all(buyers.iter().map(|buyer| buyer.pay("tok_ok", ""))).await;
    let mut outcomes: Vec<_> = answers.iter().map(|answer| (answer.status, answer.code())).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [(200, ""), (400, "woocommerce_rest_coupon_reserve_failed")]);
    let mut statuses = shop.statuses();
    statuses.sort_unstable();
    assert_eq!(statuses, ["checkout-draft", "processing"]);
}

/// Lets carts pay at once, at a shop that takes its time everywhere, and counts who got an order.
async fn accepted(shop: &Shop, baskets: &[Vec<(u64, i64)>]) -> usize {
    shop.fault("prepare_ms=0-60");
    shop.fault("payment_ms=0-200");
    shop.fault("gap_ms=10-88~40");
    let mut buyers = Vec::new();
    for basket in baskets {
        buyers.push(shop.buyer_of(basket).await);
    }
    let answers = join_all(buyers.iter().map(|buyer| buyer.pay("tok_ok", ""))).await;
    answers.iter().filter(|answer| answer.status == 200).count()
}

#[tokio::test(start_paused = true)]
async fn e11_carts_in_parallel_get_every_unit_and_no_false_refusal() {
    let shop = Shop::open();
    for round in 0..12 {
        shop.event(&json!({"op": "stock", "product": FIVE, "quantity": 8}));
        assert_eq!(accepted(&shop, &vec![vec![(FIVE, 1)]; 8]).await, 8, "round {round}");
        assert_eq!(shop.stock(FIVE).await, 0);
    }
    assert_eq!(shop.orders().len(), 96);
    let stock_of = async |variation: u64| {
        let path = format!("products/26/variations?include={variation}");
        shop.wcv3("GET", &path, None).await[0]["stock_quantity"].as_i64().unwrap()
    };
    for round in 0..15 {
        for product in [FIVE, TEE_S, TEE_L] {
            shop.event(&json!({"op": "stock", "product": product, "quantity": 8}));
        }
        let goods = [(FIVE, 1), (TEE_S, 1), (TEE_L, 1)];
        let baskets: Vec<_> = (0..8)
            .map(|cart| {
                let mut basket = goods.to_vec();
                basket.rotate_left((cart + round) % 3);
                if cart % 2 == 1 {
                    basket.reverse();
                }
                basket
            })
            .collect();
        assert_eq!(accepted(&shop, &baskets).await, 8, "round {round}");
        assert_eq!((shop.stock(FIVE).await, stock_of(TEE_S).await, stock_of(TEE_L).await), (0, 0, 0));
    }
    assert_eq!(shop.orders().len(), 96 + 120);
}

#[tokio::test(start_paused = true)]
async fn e12_the_two_apis_count_a_running_payment_differently() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
    shop.fault("payment_ms=1000");
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    assert_eq!((shop.stock(FIVE).await, shop.maximum(FIVE).await), (5, 3));
    assert_eq!(sent.await.unwrap().status, 200);
    assert_eq!((shop.stock(FIVE).await, shop.maximum(FIVE).await), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn e13_headers_and_bodies_tell_a_success_from_a_decline() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
    let noisy = buyer.pay("tok_declined", "corr-1").await;
    assert_eq!((noisy.status, noisy.code()), (400, "woocommerce_rest_checkout_process_payment_error"));
    assert!(!noisy.hash().is_empty());
    let id = shop.orders()[0]["id"].as_u64().unwrap();
    assert!(!noisy.body.to_string().contains(&id.to_string()), "no order id: {}", noisy.body);
    pass(2000).await;
    let silent = buyer.pay("tok_declined_silent", "corr-1").await;
    assert_eq!((silent.status, silent.order()), (400, id));
    assert!(!silent.hash().is_empty());
    let reduced = async || {
        let order = shop.wcv3("GET", &format!("orders/{id}"), None).await;
        let meta = order["line_items"][0]["meta_data"].as_array().unwrap().clone();
        meta.iter().find(|row| row["key"] == "_reduced_stock").map(|row| row["value"].clone())
    };
    assert_eq!(reduced().await, None);
    pass(2000).await;
    let paid = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!((paid.status, paid.hash()), (200, ""));
    assert_eq!(reduced().await, Some(json!("2")));
}

#[tokio::test(start_paused = true)]
async fn e14_a_fence_after_a_decline_costs_the_use_of_the_pending_order() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(LAST, 1)]).await;
    assert_eq!(buyer.pay("tok_declined", "corr-1").await.status, 400);
    buyer.empty().await;
    assert_eq!(buyer.add(LAST, 1).await.status, 201);
    pass(2000).await;
    let paid = buyer.pay("tok_ok", "corr-1").await;
    assert_eq!(paid.status, 200);
    assert_eq!(shop.statuses(), ["pending", "processing"], "noisy: a new order");

    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(LAST, 1)]).await;
    assert_eq!(buyer.pay("tok_declined_silent", "corr-1").await.status, 400);
    buyer.empty().await;
    let again = buyer.add(LAST, 1).await;
    assert_eq!((again.status, again.code()), (400, "woocommerce_rest_product_partially_out_of_stock"));
}
