//! Tests of the demo shop beyond the recorded traffic: the flower shop, faults, memory, races.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use chrono::DateTime;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{DemoShop, Seed, router};
use crate::clock::ManualClock;

/// A client of both shops; it keeps the newest Cart-Token.
struct Client {
    shop: Router,
    base: &'static str,
    token: Option<String>,
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(DateTime::from_timestamp(1_800_000_000, 0).unwrap()))
}

fn shops(data: Option<&Path>) -> (DemoShop, DemoShop) {
    let flower = DemoShop::open(Seed::Flower, data, clock()).unwrap();
    (flower, DemoShop::open(Seed::General, None, clock()).unwrap())
}

impl Client {
    fn flower() -> Self {
        let (flower, general) = shops(None);
        Self { shop: router(flower, general), base: "", token: None }
    }

    fn general() -> Self {
        Self { base: "/general", ..Self::flower() }
    }

    fn sibling(&self) -> Self {
        Self { shop: self.shop.clone(), base: self.base, token: self.token.clone() }
    }

    async fn raw(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Option<String>, Vec<u8>), ()> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("Cart-Token", token);
        }
        if path.contains("wc/v3") {
            request = request.header("Authorization", "Basic Y2tfZGVtbzpjc19kZW1v");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let answer =
            self.shop.clone().oneshot(request.header("Content-Type", "application/json").body(body).unwrap());
        let answer = answer.await.unwrap();
        let status = answer.status().as_u16();
        let token = answer.headers().get("cart-token").map(|token| token.to_str().unwrap().to_owned());
        let body = to_bytes(answer.into_body(), usize::MAX).await.map_err(|_| ())?;
        Ok((status, token, body.to_vec()))
    }

    async fn call(&mut self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = (!body.is_null()).then_some(body);
        let (status, token, body) = self.raw(method, path, body).await.unwrap();
        self.token = token.or(self.token.take());
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn store(&mut self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(method, &format!("/wp-json/wc/store/v1/{path}"), body).await;
        assert!(status < 400, "{path}: {status} {answer}");
        answer
    }

    async fn refused(&mut self, method: &str, path: &str, body: Value) -> (u16, String) {
        let (status, answer) = self.call(method, &format!("/wp-json/wc/store/v1/{path}"), body).await;
        assert!(status >= 400, "{path}: {status} {answer}");
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    }

    async fn id_of(&mut self, sku: &str) -> u64 {
        let found = self.store("GET", &format!("products?sku={sku}&_fields=id"), Value::Null).await;
        found[0]["id"].as_u64().unwrap()
    }

    /// A cart with some units of a product.
    async fn fill(&mut self, sku: &str, quantity: u64) -> Value {
        self.store("GET", "cart", Value::Null).await;
        let id = self.id_of(sku).await;
        self.store("POST", "cart/add-item", json!({"id": id, "quantity": quantity})).await
    }

    async fn pay(&mut self, token: &str, utm_id: &str) -> (u16, Value) {
        self.call("POST", "/wp-json/wc/store/v1/checkout", checkout(token, utm_id)).await
    }
}

fn address() -> Value {
    json!({
        "first_name": "Jo", "last_name": "Doe", "company": "", "address_1": "1 Main St", "address_2": "",
        "city": "Springfield", "state": "IL", "postcode": "62704", "country": "US", "phone": "",
        "email": "jo@example.com",
    })
}

fn checkout(token: &str, utm_id: &str) -> Value {
    json!({
        "billing_address": address(),
        "shipping_address": address(),
        "payment_method": "agent_token",
        "payment_data": [{"key": "token", "value": token}],
        "extensions": {"woocommerce/order-attribution": {"utm_id": utm_id}},
    })
}

fn price(cart: &Value) -> &str {
    cart["totals"]["total_price"].as_str().unwrap()
}

fn rates(cart: &Value) -> Vec<(String, String, bool)> {
    let text = |rate: &Value, name: &str| rate[name].as_str().unwrap().to_owned();
    let rates = cart["shipping_rates"][0]["shipping_rates"].as_array().unwrap();
    rates
        .iter()
        .map(|rate| (text(rate, "rate_id"), text(rate, "price"), rate["selected"].as_bool().unwrap()))
        .collect()
}

#[tokio::test]
async fn flower_coupons_come_off_one_after_the_other() {
    let mut client = Client::flower();
    // Roses ship for nothing, so the total is the goods alone.
    let cart = client.fill("bouquet_roses", 1).await;
    assert_eq!(price(&cart), "3500");
    let cart = client.store("POST", "cart/apply-coupon", json!({"code": "10OFF"})).await;
    assert_eq!(price(&cart), "3150");
    let cart = client.store("POST", "cart/apply-coupon", json!({"code": "welcome20"})).await;
    assert_eq!(price(&cart), "2520");
    assert_eq!(cart["coupons"][1]["totals"]["total_discount"], "630");
    let cart = client.store("POST", "cart/apply-coupon", json!({"code": "FIXED500"})).await;
    assert_eq!(price(&cart), "2020");
}

#[tokio::test]
async fn pot200_takes_two_dollars_off_one_pot() {
    let mut client = Client::flower();
    let cart = client.fill("bouquet_tulips", 1).await;
    assert_eq!(price(&cart), "3500");
    let (status, code) = client.refused("POST", "cart/apply-coupon", json!({"code": "POT200"})).await;
    assert_eq!((status, code.as_str()), (400, "woocommerce_rest_cart_coupon_error"));
    let id = client.id_of("pot_ceramic").await;
    client.store("POST", "cart/add-item", json!({"id": id, "quantity": 2})).await;
    let cart = client.store("POST", "cart/apply-coupon", json!({"code": "POT200"})).await;
    assert_eq!(cart["totals"]["total_discount"], "200");
    assert_eq!(cart["items"][0]["totals"]["line_total"], "3000");
    assert_eq!(cart["items"][1]["totals"]["line_total"], "2800");
}

#[tokio::test]
async fn flower_rates_follow_a_bare_country() {
    let mut client = Client::flower();
    client.fill("bouquet_tulips", 1).await;
    for (country, express, cost) in [("US", "exp-ship-us", "1500"), ("CA", "exp-ship-intl", "2500")] {
        let address = json!({"country": country, "state": ""});
        let body = json!({"shipping_address": address, "billing_address": address});
        let cart = client.store("POST", "cart/update-customer", body).await;
        let wanted = [("std-ship", "500", true), (express, cost, false)];
        let wanted = wanted.map(|(id, price, selected)| (id.to_owned(), price.to_owned(), selected));
        assert_eq!(rates(&cart), wanted);
    }
}

#[tokio::test]
async fn standard_shipping_is_free_from_a_hundred_dollars_and_for_roses() {
    let mut client = Client::flower();
    let cart = client.fill("bouquet_tulips", 3).await;
    assert_eq!(rates(&cart)[0].1, "500");
    let id = client.id_of("bouquet_tulips").await;
    let cart = client.store("POST", "cart/add-item", json!({"id": id, "quantity": 1})).await;
    assert_eq!(rates(&cart)[0].1, "0");
    let name = cart["shipping_rates"][0]["shipping_rates"][0]["name"].as_str().unwrap();
    assert!(name.contains("Free"), "{name}");
    let cart = Client::flower().fill("bouquet_roses", 1).await;
    assert_eq!(rates(&cart)[0].1, "0");
}

#[tokio::test]
async fn twelve_products_are_found_by_bouquet_and_gardenias_are_sold_out() {
    let mut client = Client::flower();
    let found = client.store("GET", "products?search=bouquet&per_page=100", Value::Null).await;
    assert_eq!(found.as_array().unwrap().len(), 12);
    let mixed = client.store("GET", "products?sku=bouquet_mixed", Value::Null).await;
    assert_eq!(mixed[0]["variations"].as_array().unwrap().len(), 3);
    client.store("GET", "cart", Value::Null).await;
    let id = client.id_of("gardenias").await;
    let (status, code) = client.refused("POST", "cart/add-item", json!({"id": id, "quantity": 1})).await;
    assert_eq!((status, code.as_str()), (400, "woocommerce_rest_product_out_of_stock"));
    let none = client.store("GET", "products?sku=pink_wumpus", Value::Null).await;
    assert_eq!(none, json!([]));
}

#[tokio::test]
async fn a_paid_order_takes_stock_and_is_found_by_its_correlation_id() {
    let mut client = Client::flower();
    client.fill("bouquet_roses", 2).await;
    let (status, answer) = client.pay("success_token", "corr-1").await;
    assert_eq!((status, answer["status"].as_str()), (200, Some("processing")));
    let (_, orders) = client
        .call("GET", "/wp-json/wc/v3/orders?created_via=store-api&search=jo%40example.com", Value::Null)
        .await;
    let meta = orders[0]["meta_data"].as_array().unwrap();
    let row = meta.iter().find(|row| row["key"] == "_wc_order_attribution_utm_id").unwrap();
    assert_eq!(row["value"], "corr-1");
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    assert_eq!(orders[0]["utm_id"], "corr-1");
    assert_eq!(orders[0]["lines"][0], json!({"sku": "bouquet_roses", "quantity": 2}));
    let (_, stock) = client.call("GET", "/_demo/stock", Value::Null).await;
    assert_eq!(stock["bouquet_roses"]["stock"], 998);
    let id = orders[0]["id"].to_string();
    client.call("PUT", &format!("/wp-json/wc/v3/orders/{id}"), json!({"status": "cancelled"})).await;
    let (_, stock) = client.call("GET", "/_demo/stock", Value::Null).await;
    assert_eq!(stock["bouquet_roses"]["stock"], 1000);
}

#[tokio::test]
async fn a_lost_answer_ends_the_connection_but_not_the_order() {
    let mut client = Client::flower();
    client.fill("bouquet_roses", 1).await;
    let body = checkout("lost_answer_token", "corr-2");
    let lost = client.raw("POST", "/wp-json/wc/store/v1/checkout", Some(body)).await;
    assert!(lost.is_err());
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    assert_eq!(
        (orders[0]["status"].as_str(), orders[0]["utm_id"].as_str()),
        (Some("processing"), Some("corr-2"))
    );
    let cart = client.store("GET", "cart", Value::Null).await;
    assert_eq!(cart["items_count"], 0);
}

#[tokio::test]
async fn a_lost_answer_sends_no_byte_over_a_real_connection() {
    use std::io::{Read as _, Write as _};
    let (flower, general) = shops(None);
    flower.set_fault("lost_answer,count=1").unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router(flower, general)).await });
    let answers = tokio::task::spawn_blocking(move || {
        [(), ()].map(|()| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let request = "GET /wp-json/wc/store/v1/cart HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            answer.len()
        })
    });
    let [lost, whole] = answers.await.unwrap();
    assert_eq!(lost, 0);
    assert!(whole > 500);
}

#[tokio::test]
async fn a_fatal_after_the_payment_leaves_a_paid_order_and_a_full_cart() {
    let mut client = Client::flower();
    client.fill("bouquet_roses", 1).await;
    client.call("PUT", "/_demo/faults", json!({"500_after_payment": {"count": 1}})).await;
    let (status, answer) = client.pay("tok_ok", "corr-3").await;
    assert_eq!((status, answer["code"].as_str()), (500, Some("internal_server_error")));
    let cart = client.store("GET", "cart", Value::Null).await;
    assert_eq!(cart["items_count"], 1);
    let (status, _) = client.pay("tok_ok", "corr-3").await;
    assert_eq!(status, 200);
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    assert_eq!(orders.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn faults_hit_the_calls_they_are_meant_for() {
    let mut client = Client::flower();
    let (status, known) =
        client.call("PUT", "/_demo/faults", json!({"http_500": {"count": 1, "only": "checkout"}})).await;
    assert_eq!((status, known["http_500"]["count"].as_u64()), (200, Some(1)));
    client.fill("bouquet_roses", 1).await;
    assert_eq!(client.pay("tok_ok", "").await.0, 500);
    assert_eq!(client.pay("tok_ok", "").await.0, 200);
    client.call("PUT", "/_demo/faults", json!({"limiter": {"count": 1}})).await;
    let (status, code) = client.refused("GET", "cart", Value::Null).await;
    assert_eq!((status, code.as_str()), (400, "rate_limit_exceeded"));
    client.call("PUT", "/_demo/faults", json!({"maintenance": {"count": 1}})).await;
    assert_eq!(client.refused("GET", "cart", Value::Null).await.0, 503);
    client.call("PUT", "/_demo/faults", json!({"noise": {"count": 1}})).await;
    let (status, _, body) = client.raw("GET", "/wp-json/wc/store/v1/cart", None).await.unwrap();
    assert_eq!((status, body[0]), (200, b'<'));
    let (status, answer) = client.call("PUT", "/_demo/faults", json!({"no_such": true})).await;
    assert_eq!(status, 400, "{answer}");
    let (_, calls) = client.call("GET", "/_demo/calls", Value::Null).await;
    assert!(calls["count"].as_u64().unwrap() > 5);
}

#[tokio::test]
async fn the_same_second_refuses_a_retry_and_the_next_one_takes_it() {
    let mut client = Client::flower();
    client.fill("bouquet_roses", 1).await;
    let (_, first) = client.pay("challenge_token", "corr-4").await;
    assert_eq!(
        (first["status"].as_str(), first["payment_result"]["payment_status"].as_str()),
        (Some("pending"), Some("success"))
    );
    let (status, answer) = client.pay("tok_ok", "corr-4").await;
    assert_eq!((status, answer["code"].as_str()), (403, Some("woocommerce_product_not_enough_stock")));
    client.call("POST", "/_demo/events", json!({"op": "wait", "seconds": 2})).await;
    let (status, second) = client.pay("tok_ok", "other").await;
    assert_eq!((status, &second["order_id"]), (200, &first["order_id"]));
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    assert_eq!(orders[0]["utm_id"], "corr-4");
}

#[tokio::test(start_paused = true)]
async fn two_posts_of_one_cart_at_once_make_two_orders() {
    let mut client = Client::general();
    client.store("GET", "cart", Value::Null).await;
    client.store("POST", "cart/add-item", json!({"id": 19})).await;
    client.store("POST", "cart/update-customer", json!({"shipping_address": address()})).await;
    let (mut one, mut two) = (client.sibling(), client.sibling());
    let (one, two) = tokio::join!(one.pay("tok_slow", "twice"), two.pay("tok_slow", "twice"));
    assert_eq!((one.0, two.0), (200, 200));
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    let paid: Vec<&str> =
        orders.as_array().unwrap().iter().map(|order| order["status"].as_str().unwrap()).collect();
    assert_eq!(paid, ["processing", "processing"]);
}

#[tokio::test(start_paused = true)]
async fn emptying_a_cart_while_it_is_paid_holds_only_if_the_payment_succeeds() {
    for (token, left) in [("tok_slow", 0), ("tok_slow_declined", 1)] {
        let mut client = Client::general();
        client.store("GET", "cart", Value::Null).await;
        client.store("POST", "cart/add-item", json!({"id": 19})).await;
        let (mut paying, mut emptying) = (client.sibling(), client.sibling());
        tokio::join!(paying.pay(token, ""), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            emptying.store("DELETE", "cart/items", Value::Null).await;
            let (_, orders) = emptying.call("GET", "/_demo/orders", Value::Null).await;
            assert_eq!(orders[0]["status"], "pending");
        });
        let cart = client.store("GET", "cart", Value::Null).await;
        assert_eq!(cart["items_count"], left, "{token}");
    }
}

#[tokio::test]
async fn a_shop_with_a_file_remembers_carts_orders_stock_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let token = {
        let (flower, general) = shops(Some(&path));
        let mut client = Client { shop: router(flower, general), base: "", token: None };
        client.fill("bouquet_roses", 3).await;
        client.pay("tok_ok", "kept").await;
        client.fill("bouquet_tulips", 2).await;
        client.token
    };
    let (flower, general) = shops(Some(&path));
    let mut client = Client { shop: router(flower, general), base: "", token };
    let cart = client.store("GET", "cart", Value::Null).await;
    assert_eq!(cart["items"][0]["sku"], "bouquet_tulips");
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    assert_eq!(orders[0]["utm_id"], "kept");
    let (_, stock) = client.call("GET", "/_demo/stock", Value::Null).await;
    assert_eq!(stock["bouquet_roses"]["stock"], 997);
    client.pay("tok_ok", "next").await;
    let (_, orders) = client.call("GET", "/_demo/orders", Value::Null).await;
    assert_ne!(orders[0]["id"], orders[1]["id"]);
}

#[tokio::test]
async fn wc_v3_wants_its_key() {
    let client = Client::general();
    for (authorization, status, code) in [
        ("", 401, "woocommerce_rest_cannot_view"),
        ("Basic Y2tfbm9uZTpjc19ub25l", 401, "woocommerce_rest_cannot_view"),
        ("Basic Y2tfZGVtbzpjc193cm9uZw==", 401, "woocommerce_rest_authentication_error"),
        ("Basic Y2tfZGVtbzpjc19kZW1v", 404, "woocommerce_rest_shop_order_invalid_id"),
    ] {
        let request =
            Request::builder().uri("/general/wp-json/wc/v3/orders/9").header("Authorization", authorization);
        let answer = client.shop.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), status);
        let body: Value =
            serde_json::from_slice(&to_bytes(answer.into_body(), 10_000).await.unwrap()).unwrap();
        assert_eq!(body["code"], code);
    }
}

#[tokio::test]
async fn permalinks_are_built_on_the_public_base() {
    let (flower, general) = shops(None);
    flower.set_public_base("https://flowers.example/");
    let mut client = Client { shop: router(flower, general), base: "", token: None };
    let product = client.store("GET", "products/101", Value::Null).await;
    assert_eq!(product["permalink"], "https://flowers.example/product/bouquet-of-red-roses/");
}

#[tokio::test]
async fn a_dead_token_refuses_writes_and_reads_as_an_empty_cart() {
    let mut client = Client::flower();
    client.fill("bouquet_roses", 1).await;
    let token = client.token.clone().unwrap();
    client.call("PUT", "/_demo/faults", json!({"dead_token": true})).await;
    let (status, code) = client.refused("POST", "cart/add-item", json!({"id": 101})).await;
    assert_eq!((status, code.as_str()), (401, "woocommerce_rest_missing_nonce"));
    let request = json!({
        "method": "POST", "path": "/wc/store/v1/cart/add-item", "body": {"id": 101}, "headers": {"Cart-Token": token},
    });
    let answer = client.store("POST", "batch", json!({"requests": [request]})).await;
    assert_eq!(answer["responses"][0]["status"], 401);
    let cart = client.store("GET", "cart", Value::Null).await;
    assert_eq!(cart["items_count"], 0);
    client.call("DELETE", "/_demo/faults", Value::Null).await;
    client.token = Some(token);
    let cart = client.store("GET", "cart", Value::Null).await;
    assert_eq!(cart["items_count"], 1);
}

#[tokio::test]
async fn the_methods_of_checkout_can_be_asked_for_without_a_token() {
    let mut client = Client::flower();
    let answer = client.store("OPTIONS", "checkout", Value::Null).await;
    assert_eq!(answer["methods"], json!(["GET", "POST", "PUT", "PATCH"]));
}

#[tokio::test]
async fn a_variant_is_bought_by_its_own_id_and_by_its_size() {
    let mut client = Client::flower();
    let cart = client.fill("bouquet_mixed_small", 1).await;
    assert_eq!(cart["items"][0]["variation"][0]["value"], "Small");
    let parent = client.id_of("bouquet_mixed").await;
    let body = json!({"id": parent, "variation": [{"attribute": "Size", "value": "Large"}]});
    let cart = client.store("POST", "cart/add-item", body).await;
    assert_eq!(cart["items"][1]["sku"], "bouquet_mixed_large");
}
