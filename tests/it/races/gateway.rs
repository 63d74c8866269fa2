//! Agents that buy through the gateway: UCP and ACP in turn, at one of two processes that share a Redis.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    lines::{Goods, Payment},
    rounds::{Buyers, Told},
    shop::Shop,
};
use crate::support::{
    Reply,
    clients::{acp_buyer, acp_payment, payment},
    config::{Config, Seller},
    process::{Agent, Process, Side, is_final},
    redis::Server,
};

/// The id of the handler that charges nothing now, and what it is.
const TRANSFER: &str = "bank_transfer";
const HANDLER: &str = r#", { id = "bank_transfer", preset = "offline", method = "bacs" }"#;

/// Two gateways in front of one shop.
pub struct Gateways {
    agent: Agent,
    processes: [Process; 2],
    _redis: Server,
    _folders: [TempDir; 2],
}

/// A checkout that can be completed.
pub struct Ready {
    side: Side,
    at: usize,
    id: String,
}

impl Gateways {
    /// Starts them; `None`, with a printed reason, where there is no `redis-server`.
    pub async fn open(shop: &Shop) -> Option<Self> {
        let redis = Server::start(&[]).await?;
        let table = format!("url = \"{}\"", redis.url());
        let config = Config {
            shop: &shop.base,
            seller: Seller::General,
            redis: Some(&table),
            handlers: HANDLER,
            ..Config::default()
        };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let processes = [
            Process::serve(&config.write(folders[0].path()), &[]).await,
            Process::serve(&config.write(folders[1].path()), &[]).await,
        ];
        Some(Self { agent: Agent::new(), processes, _redis: redis, _folders: folders })
    }

    async fn call(&self, to: &Ready, path: &str, key: &str, body: &Value) -> Reply {
        let base = &self.processes[to.at].address;
        self.agent.call(to.side, base, Method::POST, path, key, Some(body)).await.unwrap()
    }
}

impl Buyers for Gateways {
    type Cart = Ready;

    async fn fill(&self, number: usize, goods: &Goods) -> Ready {
        let side = if number.is_multiple_of(2) { Side::Ucp } else { Side::Acp };
        let ready = Ready { side, at: number / 2 % 2, id: String::new() };
        let key = tillgate::clock::Ids.uuid();
        let made = self.call(&ready, "", &key, &wish(side, goods)).await.expect(201);
        let wanted = if side == Side::Ucp { "ready_for_complete" } else { "ready_for_payment" };
        assert_eq!(made.text("/status"), wanted, "{}", made.json);
        Ready { id: made.id(), ..ready }
    }

    async fn buy(&self, ready: Ready, pay: Payment) -> Told {
        let key = tillgate::clock::Ids.uuid();
        let body = credential(ready.side, pay);
        let path = format!("/{}/complete", ready.id);
        let mut last = self.call(&ready, &path, &key, &body).await;
        let mut pause = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..900 {
            if is_final(&last) {
                return told(&last);
            }
            pause.tick().await;
            last = self.call(&ready, &path, &key, &body).await;
        }
        panic!("never answered for good: {} {}", last.status, last.json)
    }
}

/// Goods for a buyer in Berlin.
fn wish(side: Side, goods: &Goods) -> Value {
    match side {
        Side::Ucp => {
            let lines: Vec<Value> = goods
                .iter()
                .map(|(id, quantity)| json!({"item": {"id": id.to_string()}, "quantity": quantity}))
                .collect();
            let home = json!({"id": "home", "first_name": "Ada", "last_name": "Byron",
                "street_address": "Musterweg 5", "address_locality": "Berlin", "address_region": "DE-BE",
                "postal_code": "10115", "address_country": "DE"});
            json!({
                "line_items": lines,
                "buyer": {"email": "ada@example.org"},
                "fulfillment": {"methods": [{"type": "shipping", "destinations": [home]}]}
            })
        }
        Side::Acp => {
            let lines: Vec<Value> = goods
                .iter()
                .map(|(id, quantity)| json!({"id": id.to_string(), "quantity": quantity}))
                .collect();
            json!({
                "line_items": lines,
                "currency": "eur",
                "capabilities": {"interventions": {"supported": ["3ds"]}},
                "buyer": acp_buyer(),
                "fulfillment_details": {"address": {"name": "Ada Byron", "line_one": "Musterweg 5",
                    "city": "Berlin", "state": "DE-BE", "country": "DE", "postal_code": "10115"}}
            })
        }
    }
}

fn credential(side: Side, pay: Payment) -> Value {
    let token = if pay == Payment::SlowCard { "tok_slow" } else { "tok_ok" };
    let (mut body, handler) = match side {
        Side::Ucp => (payment(token), "/payment/instruments/0/handler_id"),
        Side::Acp => (acp_payment(token), "/payment_data/handler_id"),
    };
    if pay == Payment::BankTransfer {
        *body.pointer_mut(handler).unwrap() = json!(TRANSFER);
    }
    body
}

fn told(reply: &Reply) -> Told {
    let order = &reply.json["order"];
    let order = order["label"].as_str().or_else(|| order["order_number"].as_str());
    if let Some(order) = order.and_then(|order| order.parse().ok()) {
        return Told::Bought(order);
    }
    let stock = reply.codes().iter().any(|code| code == "out_of_stock");
    assert!(stock, "neither bought nor sold out: {} {}", reply.status, reply.json);
    Told::SoldOut
}
