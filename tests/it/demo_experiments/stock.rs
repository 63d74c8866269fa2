//! Which of the own units are counted out of what is read, by source and moment: the table of a real shop.

use serde_json::{Value, json};

use super::stage::{Shop, pass};
use super::{FIVE, TEE_S};

/// A variation that does not manage its own stock, and its product.
const TEE_L_BLUE: u64 = 30;
const TEE: u64 = 26;

/// What the books and a visitor are told.
async fn told(shop: &Shop, product: u64) -> (i64, i64) {
    (shop.stock(product).await, shop.maximum(product).await)
}

/// Units that the shop has surely taken off, over all lines of the last order.
async fn reduced(shop: &Shop) -> i64 {
    let orders = shop.wcv3("GET", "orders", None).await;
    let lines = orders[0]["line_items"].as_array().unwrap().iter();
    let meta = lines.flat_map(|line| line["meta_data"].as_array().unwrap());
    let rows = meta.filter(|row| row["key"] == "_reduced_stock");
    rows.map(|row| row["value"].to_string().trim_matches('"').parse::<i64>().unwrap()).sum()
}

#[tokio::test(start_paused = true)]
async fn sources_count_the_own_units_at_different_moments() {
    // With the shop's hold and without: five are there, two are ours.
    for (minutes, held) in [(60, 3), (0, 5)] {
        let open = || {
            let shop = Shop::open();
            shop.event(&json!({"op": "hold_minutes", "value": minutes}));
            shop
        };
        // In the cart only.
        let shop = open();
        let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
        assert_eq!(told(&shop, FIVE).await, (5, 5));
        // The payment runs.
        shop.fault("payment_ms=1000");
        let sent = buyer.pay_aside("tok_ok", "corr-1").await;
        pass(500).await;
        assert_eq!((shop.statuses(), told(&shop, FIVE).await), (vec!["pending".to_owned()], (5, held)));
        // Placed.
        assert_eq!(sent.await.unwrap().status, 200);
        assert_eq!((told(&shop, FIVE).await, reduced(&shop).await), ((3, 3), 2));
        // The status has turned, the stock has not followed.
        let shop = open();
        let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
        shop.fault("gap_ms=10-88~40");
        let sent = buyer.pay_aside("tok_ok", "corr-1").await;
        assert_eq!(shop.statuses(), ["processing"]);
        assert_eq!((told(&shop, FIVE).await, reduced(&shop).await), ((5, 5), 0));
        assert_eq!(sent.await.unwrap().status, 200);
        assert_eq!((told(&shop, FIVE).await, reduced(&shop).await), ((3, 3), 2));
        // Declined.
        for (token, kept) in [("tok_declined_silent", held), ("tok_declined", 5)] {
            let shop = open();
            let buyer = shop.buyer_of(&[(FIVE, 2)]).await;
            assert_eq!(buyer.pay(token, "corr-1").await.status, 400);
            assert_eq!((shop.statuses(), told(&shop, FIVE).await), (vec!["pending".to_owned()], (5, kept)));
            // An hour later it is free.
            shop.event(&json!({"op": "wait", "seconds": 3601}));
            assert_eq!(told(&shop, FIVE).await, (5, 5), "{token}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stock_that_others_hold_to_the_last_unit_looks_full() {
    let shop = Shop::open();
    let other = shop.buyer_of(&[(FIVE, 4)]).await;
    assert_eq!(other.pay("tok_declined_silent", "corr-1").await.status, 400);
    assert_eq!(told(&shop, FIVE).await, (5, 1));
    let last = shop.buyer_of(&[(FIVE, 1)]).await;
    assert_eq!(last.pay("tok_declined_silent", "corr-2").await.status, 400);
    assert_eq!(told(&shop, FIVE).await, (5, 5), "nothing left counts as no limit");
    let refused = shop.buyer().await.add(FIVE, 1).await;
    assert_eq!((refused.status, refused.code()), (400, "woocommerce_rest_product_partially_out_of_stock"));
}

#[tokio::test(start_paused = true)]
async fn variations_can_share_their_products_stock() {
    let shop = Shop::open();
    shop.event(&json!({"op": "stock", "product": TEE, "quantity": 4}));
    let read = async |id: u64| shop.wcv3("GET", &format!("products/{id}"), None).await;
    let facts = |product: &Value| {
        ["manage_stock", "stock_quantity", "stock_status"].map(|name| product[name].clone())
    };
    assert_eq!(facts(&read(TEE_L_BLUE).await), [json!("parent"), json!(4), json!("instock")]);
    assert_eq!(facts(&read(TEE_S).await), [json!(true), json!(10), json!("instock")], "manages its own");
    // A sale of the variation is taken off its product.
    let buyer = shop.buyer_of(&[(TEE_L_BLUE, 3)]).await;
    shop.fault("payment_ms=1000,count=1");
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    pass(500).await;
    assert_eq!((told(&shop, TEE_L_BLUE).await, shop.stock(TEE).await), ((4, 1), 4));
    let refused = shop.buyer().await.add(TEE_L_BLUE, 2).await;
    assert_eq!(refused.code(), "woocommerce_rest_product_partially_out_of_stock");
    assert_eq!(sent.await.unwrap().status, 200);
    assert_eq!((told(&shop, TEE_L_BLUE).await, shop.stock(TEE).await, reduced(&shop).await), ((1, 1), 1, 3));
    assert_eq!(shop.stock(TEE_S).await, 10);
    // Two that share it, in one cart: their units are one wish.
    shop.event(&json!({"op": "stock", "product": TEE, "quantity": 4}));
    let own = json!({"manage_stock": false});
    shop.wcv3("PUT", &format!("products/{TEE}/variations/{TEE_S}"), Some(own)).await;
    assert_eq!(facts(&read(TEE_S).await), [json!("parent"), json!(4), json!("instock")]);
    let buyer = shop.buyer_of(&[(TEE_L_BLUE, 3), (TEE_S, 1)]).await;
    let refused = buyer.add(TEE_S, 1).await;
    assert_eq!(refused.code(), "woocommerce_rest_product_partially_out_of_stock");
    assert_eq!(buyer.pay("tok_ok", "corr-2").await.status, 200);
    assert_eq!((shop.stock(TEE).await, shop.stock(TEE_S).await), (0, 0));
    assert_eq!(facts(&read(TEE_L_BLUE).await)[2], json!("outofstock"));
}
