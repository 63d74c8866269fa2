//! People who buy at the shop itself, over its Store API: one empty cart, goods into it, one `POST /checkout`.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{
    lines::{Goods, Payment},
    rounds::{Buyers, Told},
    shop::Shop,
};

/// What the shop says when it is the stock that does not suffice.
const STOCK: [(u16, &str); 3] = [
    (403, "woocommerce_product_not_enough_stock"),
    (409, "woocommerce_rest_product_out_of_stock"),
    (409, "woocommerce_rest_product_partially_out_of_stock"),
];

/// Buyers without a gateway.
pub struct Direct<'a>(pub &'a Shop);

fn address() -> Value {
    json!({
        "first_name": "Anna", "last_name": "Example", "address_1": "Hauptstr. 1", "city": "Berlin", "postcode": "10115",
        "country": "DE", "email": "anna@example.com",
    })
}

impl Direct<'_> {
    async fn call(&self, method: Method, path: &str, token: &str, body: &Value) -> Response {
        let url = format!("{}/wp-json/wc/store/v1/{path}", self.0.base);
        let request = self.0.client.request(method, url).header("cart-token", token);
        let request = if body.is_null() { request } else { request.json(body) };
        request.send().await.unwrap()
    }
}

impl Buyers for Direct<'_> {
    /// The Cart-Token.
    type Cart = String;

    async fn fill(&self, _number: usize, goods: &Goods) -> String {
        let cart = self.call(Method::GET, "cart", "", &Value::Null).await;
        let token = cart.headers()["cart-token"].to_str().unwrap().to_owned();
        for (product, quantity) in goods {
            let body = json!({"id": product, "quantity": quantity});
            let added = self.call(Method::POST, "cart/add-item", &token, &body).await;
            assert_eq!(added.status(), 201, "{}", added.text().await.unwrap());
        }
        token
    }

    async fn buy(&self, token: String, payment: Payment) -> Told {
        let (method, data) = match payment {
            Payment::Card => ("agent_token", json!([{"key": "token", "value": "tok_ok"}])),
            Payment::SlowCard => ("agent_token", json!([{"key": "token", "value": "tok_slow"}])),
            Payment::BankTransfer => ("bacs", json!([])),
        };
        let body = json!({
            "billing_address": address(), "shipping_address": address(),
            "payment_method": method, "payment_data": data,
        });
        let answer = self.call(Method::POST, "checkout", &token, &body).await;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        if status == 200 {
            return Told::Bought(body["order_id"].as_u64().unwrap());
        }
        let refused = STOCK.iter().any(|(known, code)| status == *known && body["code"] == *code);
        assert!(refused, "neither bought nor sold out: {status} {body}");
        Told::SoldOut
    }
}
