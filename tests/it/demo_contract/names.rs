//! What the recording calls something, and what the run calls it: tokens, nonces, orders, keys.

use std::collections::BTreeMap;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};

/// What the recording says and what the run says instead.
#[derive(Default)]
pub struct Names {
    /// Identity in the recording to the newest token of the run.
    pub tokens: BTreeMap<String, String>,
    orders: BTreeMap<String, String>,
    keys: BTreeMap<String, String>,
    /// Lines of orders.
    lines: BTreeMap<String, String>,
    /// The nonce of the recording and of the run.
    pub nonces: BTreeMap<String, String>,
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The identity inside a token; empty for garbage.
pub fn identity(token: &str) -> String {
    let claims = token.split('.').nth(1).unwrap_or_default();
    let claims = BASE64URL_NOPAD.decode(claims.as_bytes()).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
    claims["user_id"].as_str().unwrap_or_default().to_owned()
}

/// The recorded shop's keys of wc/v3 as the demo shop's.
fn keys(text: &str) -> String {
    let mut text = text.to_owned();
    for (recorded, run) in
        [("_readwrite", "_demo"), ("_readonly", "_demo_read"), ("_writeonly", "_demo_write")]
    {
        for lead in ["ck", "cs"] {
            text = text.replace(&format!("{lead}{recorded}"), &format!("{lead}{run}"));
        }
    }
    text
}

impl Names {
    pub fn token(&self, recorded: &str) -> String {
        self.tokens.get(&identity(recorded)).cloned().unwrap_or_else(|| recorded.to_owned())
    }

    /// The request as this run has to send it.
    pub fn request(&self, text: &str) -> String {
        let mut text = keys(text);
        for (recorded, run) in &self.keys {
            text = text.replace(recorded, run);
        }
        for (recorded, run) in &self.orders {
            for lead in
                ["/order/", "/checkout/", "/orders/", "include=", "search=", "search=txn_", "/refunds/"]
            {
                text = text.replace(&format!("{lead}{recorded}"), &format!("{lead}{run}"));
            }
        }
        text
    }

    /// A header of the request as this run has to send it.
    pub fn header(&self, name: &str, value: &str) -> String {
        match name.to_ascii_lowercase().as_str() {
            "cart-token" => self.token(value),
            "nonce" => self.nonces.get(value).cloned().unwrap_or_else(|| value.to_owned()),
            "authorization" => {
                let pair = value.strip_prefix("Basic ").unwrap();
                let pair = String::from_utf8(BASE64.decode(pair.as_bytes()).unwrap()).unwrap();
                format!("Basic {}", BASE64.encode(keys(&pair).as_bytes()))
            }
            _ => value.to_owned(),
        }
    }

    /// Replaces the ids of lines in a refund.
    pub fn refund(&self, body: &str) -> String {
        let mut body: Value = serde_json::from_str(body).unwrap();
        for line in body["line_items"].as_array_mut().into_iter().flatten() {
            if let Some(run) = self.lines.get(&line["id"].to_string()) {
                line["id"] = run.parse().unwrap();
            }
        }
        body.to_string()
    }

    /// Whether the run's name of an order is known.
    pub fn knows_order(&self, recorded: &str) -> bool {
        self.orders.contains_key(recorded)
    }

    /// Gives an order its name.
    pub fn name_order(&mut self, recorded: &str, run: &Value) {
        self.orders.insert(recorded.to_owned(), text(run));
    }

    /// Replaces the tokens inside a batch.
    pub fn batch(&self, body: &str) -> String {
        let Ok(mut body) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
        let Some(requests) = body.get_mut("requests").and_then(Value::as_array_mut) else {
            return body.to_string();
        };
        for request in requests {
            if let Some(Value::String(token)) = request.pointer_mut("/headers/Cart-Token") {
                *token = self.token(token);
            }
        }
        body.to_string()
    }

    /// The recorded answer in this run's words; `orders` says that it is an order of wc/v3, or a list of them.
    pub fn answer(&self, value: &mut Value, orders: bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.answer(item, orders)),
            Value::Object(members) => {
                let is_order = orders || members.contains_key("order_id");
                let is_order =
                    is_order || (members.contains_key("status") && members.contains_key("needs_payment"));
                for (name, value) in members.iter_mut() {
                    if matches!(name.as_str(), "order_id" | "order_number")
                        || (is_order && matches!(name.as_str(), "id" | "number"))
                    {
                        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        if let Some(run) = self.orders.get(&plain) {
                            *value = if value.is_string() { json!(run) } else { run.parse().unwrap() };
                        }
                    } else {
                        self.answer(value, false);
                    }
                }
            }
            Value::String(text) => {
                for (recorded, run) in &self.keys {
                    *text = text.replace(recorded, run);
                }
                for (recorded, run) in &self.orders {
                    for (lead, tail) in [
                        ("/order-received/", "/"),
                        ("/order-pay/", "/"),
                        ("/wc/v3/orders/", ""),
                        ("?order=", ""),
                        ("txn_", ""),
                    ] {
                        let recorded = format!("{lead}{recorded}{tail}");
                        *text = text.replace(&recorded, &format!("{lead}{run}{tail}"));
                    }
                }
            }
            _ => {}
        }
    }

    /// Learns which order of the run stands for which of the recording.
    pub fn learn(&mut self, recorded: &Value, run: &Value) {
        for (names, member) in [(&mut self.orders, "order_id"), (&mut self.keys, "order_key")] {
            if let (Some(recorded), Some(run)) = (recorded.get(member), run.get(member)) {
                names.insert(text(recorded), text(run));
            }
        }
    }

    /// Learns from orders of wc/v3: an order whose `POST` was never answered is first met here.
    pub fn learn_orders(&mut self, recorded: &Value, run: &Value) {
        if let (Some(recorded), Some(run)) = (recorded.as_array(), run.as_array()) {
            if recorded.len() == run.len() {
                recorded.iter().zip(run).for_each(|(recorded, run)| self.learn_orders(recorded, run));
            }
            return;
        }
        let lines = |order: &Value| order["line_items"].as_array().cloned().unwrap_or_default();
        for (recorded, run) in lines(recorded).iter().zip(&lines(run)) {
            self.lines.entry(recorded["id"].to_string()).or_insert_with(|| run["id"].to_string());
        }
        for (names, member) in [(&mut self.orders, "id"), (&mut self.keys, "order_key")] {
            if let (Some(recorded), Some(run)) = (recorded.get(member), run.get(member)) {
                // Both may know it already, under other names: then it stays, and the comparison tells.
                let (recorded, run) = (text(recorded), text(run));
                if !names.values().any(|known| *known == run) {
                    names.entry(recorded).or_insert(run);
                }
            }
        }
    }
}
