//! What the demo shop holds against a client: overlapping calls of a cart, a purchase posted again.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use super::stage::{Shop, pass};
use super::{FIVE, MUG};

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_each_answer_breaks_no_rule() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    assert_eq!(buyer.pay("tok_declined", "corr-1").await.status, 400);
    pass(2000).await;
    assert_eq!(buyer.pay("tok_ok", "corr-1").await.status, 200);
    assert_eq!(shop.shop.violations(), json!({"count": 0, "violations": [], "harmless": [], "running": []}));
}

#[tokio::test(start_paused = true)]
async fn overlapping_calls_of_one_cart_are_told() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    let other = shop.buyer_of(&[(FIVE, 1)]).await;
    shop.fault("payment_ms=1000");
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    other.cart().await;
    assert!(shop.violations().is_empty(), "another cart is free");
    buyer.cart().await;
    assert_eq!(shop.violations(), ["overlap"]);
    let found = &shop.shop.violations()["violations"][0];
    assert_eq!(found["first"]["path"], "wp-json/wc/store/v1/checkout");
    assert_eq!(found["first"]["client_gone"], false);
    assert_eq!(found["second"]["method"], "GET");
    sent.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fence_and_a_probe_after_it_do_no_harm() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    shop.fault("payment_ms=1000");
    let sent = buyer.pay_aside("tok_declined", "corr-1").await;
    buyer.empty().await;
    buyer.cart().await;
    assert!(shop.violations().is_empty());
    assert_eq!(shop.harmless(), ["overlap", "overlap"]);
    sent.await.unwrap();

    // A write is none of the settler's, even when the client has gone.
    pass(2000).await;
    let sent = buyer.pay_aside("tok_ok", "corr-1").await;
    sent.abort();
    assert!(sent.await.is_err());
    buyer.cart().await;
    assert_eq!(shop.harmless().len(), 3);
    buyer.update_customer().await;
    assert_eq!(shop.violations(), ["overlap"]);
    assert_eq!(shop.shop.violations()["violations"][0]["first"]["client_gone"], true);
}

#[tokio::test(start_paused = true)]
async fn a_second_post_of_one_purchase_is_told() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(FIVE, 1)]).await;
    shop.fault("payment_ms=1000,count=2");
    let first = buyer.pay_aside("tok_ok", "corr-1").await;
    let second = buyer.pay_aside("tok_ok", "corr-1").await;
    let ids = [first.await.unwrap().order(), second.await.unwrap().order()];
    assert_ne!(ids[0], ids[1], "two orders of one cart");
    assert_eq!(shop.violations(), ["overlap", "repeat"]);

    // After the order is placed: refused on the emptied cart, bought again on another.
    buyer.pay("tok_ok", "corr-1").await;
    assert_eq!((shop.violations().len(), shop.harmless()), (2, vec!["repeat".to_owned()]));
    let other = shop.buyer_of(&[(FIVE, 1)]).await;
    assert_eq!(other.pay("tok_ok", "corr-1").await.status, 200);
    assert_eq!(shop.violations(), ["overlap", "repeat", "repeat"]);
    assert_eq!(shop.shop.violations()["violations"][2]["first"], "a placed order");
}

/// The same over TCP, as a program sees it: a queued POST whose sender has gone, and what the shop tells of it.
#[tokio::test]
async fn over_tcp_a_sender_that_hangs_up_is_gone_and_its_post_is_carried_out() {
    let shop = Shop::open();
    let buyer = shop.buyer_of(&[(MUG, 1)]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, shop.router.clone()).into_future());
    let faults = json!({"workers": 1, "payment_ms": "100-200~150"});
    let on = shop.demo("PUT", "faults", Some(faults)).await;
    assert_eq!(on["payment_ms"]["value"], "100-200~150");
    shop.demo("DELETE", "calls", None).await;

    // Somebody else's payment keeps the one worker busy.
    let busy = shop.buyer_of(&[(MUG, 1)]).await.pay_aside("tok_slow", "corr-0").await;
    let arrived = async |wanted: usize| {
        let calls = shop.demo("GET", "calls", None).await;
        calls["calls"].as_array().unwrap().iter().filter(|call| call["path"] == PATH).count() >= wanted
    };
    while !arrived(1).await {}
    let (head, body) = checkout(&buyer.token);
    let mut stream = TcpStream::connect(place).await.unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    while !arrived(2).await {}
    drop(stream);
    while !shop.shop.violations()["running"][1]["client_gone"].as_bool().unwrap() {
        shop.demo("GET", "calls", None).await;
    }
    assert!(!busy.is_finished(), "the worker is busy still");

    // Whoever comes next stands behind the POST.
    buyer.empty().await;
    let orders = shop.orders();
    assert_eq!(orders.len(), 2);
    assert_eq!((&orders[1]["utm_id"], &orders[1]["status"]), (&json!("corr-1"), &json!("processing")));
    let told = shop.demo("GET", "violations", None).await;
    assert_eq!(told["count"], 0);
    assert_eq!(told["harmless"][0]["first"]["client_gone"], true, "{told}");
    assert_eq!(busy.await.unwrap().status, 200);
    shop.demo("DELETE", "violations", None).await;
    assert_eq!(shop.shop.violations()["harmless"], json!([]));
}

const PATH: &str = "wp-json/wc/store/v1/checkout";

/// A checkout as it goes over the wire.
fn checkout(token: &str) -> (String, String) {
    let body = json!({
        "billing_address": super::stage::address(),
        "shipping_address": super::stage::address(),
        "payment_method": "agent_token",
        "payment_data": [{"key": "token", "value": "tok_ok"}],
        "extensions": {"woocommerce/order-attribution": {"utm_id": "corr-1"}},
    })
    .to_string();
    let head = format!(
        "POST /general/{PATH} HTTP/1.1\r\nHost: shop\r\nCart-Token: {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    (head, body)
}
