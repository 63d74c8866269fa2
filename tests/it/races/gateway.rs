//! Agents that buy through the gateway: UCP and ACP in turn, at one of two processes that share a Redis.

use std::{path::PathBuf, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tillgate::stock::{Shelf, Stage};

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
    processes: [Option<Process>; 2],
    /// Where the second one listens; it does so again after a new start.
    configs: [PathBuf; 2],
    redis: Server,
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
        // Between two rounds the merchant fills the shelves.
        Self::open_with(shop, "stock_doubt_secs = 0").await
    }

    /// The same, with lines for `[checkout]`.
    pub async fn open_with(shop: &Shop, more: &str) -> Option<Self> {
        let checkout = format!("settle_wait_secs = 1\n{more}");
        let redis = Server::start(&[]).await?;
        let table = format!("url = \"{}\"", redis.url());
        let config = Config {
            shop: &shop.base,
            seller: Seller::General,
            redis: Some(&table),
            handlers: HANDLER,
            checkout: &checkout,
            ..Config::default()
        };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let configs = [config.write(folders[0].path()), config.write(folders[1].path())];
        let processes =
            [Some(Process::serve(&configs[0], &[]).await), Some(Process::serve(&configs[1], &[]).await)];
        Some(Self { agent: Agent::new(), processes, configs, redis, _folders: folders })
    }

    async fn call(&self, to: &Ready, path: &str, key: &str, body: &Value) -> Reply {
        self.try_call(to, path, key, body).await.unwrap()
    }

    /// At a process that is gone, the other one is asked.
    async fn try_call(
        &self,
        to: &Ready,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<Reply, reqwest::Error> {
        let process = self.processes[to.at].as_ref().or(self.processes[1 - to.at].as_ref()).unwrap();
        self.agent.call(to.side, &process.address, Method::POST, path, key, Some(body)).await
    }

    /// One try to complete; whatever comes of it.
    pub async fn try_complete(&self, ready: &Ready, key: &str) -> Option<Reply> {
        let (path, body) = (format!("/{}/complete", ready.id), credential(ready.side, Payment::Card));
        self.try_call(ready, &path, &format!("{}-{key}", ready.id), &body).await.ok()
    }

    /// Completes under that key until it is answered for good.
    pub async fn insist(&self, ready: &Ready, key: &str) -> Reply {
        for _ in 0..600 {
            if let Some(reply) = self.try_complete(ready, key).await.filter(is_final) {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never answered for good: {}", ready.id)
    }

    /// Completes with a token of the demo shop's, under one key, until that is answered for good.
    pub async fn complete_with(&self, ready: &Ready, token: &str) -> Reply {
        let key = tillgate::clock::Ids.uuid();
        let (path, body) = (format!("/{}/complete", ready.id), with_token(ready.side, token));
        for _ in 0..600 {
            let reply = self.call(ready, &path, &key, &body).await;
            if is_final(&reply) {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never answered for good: {}", ready.id)
    }

    /// Kills one of the two as by `kill -9`.
    pub fn kill_second(&mut self) {
        self.processes[1].take().unwrap().kill();
    }

    pub async fn start_second_again(&mut self) {
        self.processes[1] = Some(Process::serve(&self.configs[1], &[]).await);
    }

    /// Pins on the shelves of the stock whose session has no attempt open.
    pub async fn pinned(&self) -> Vec<String> {
        let keys: Vec<String> = self.redis.ask(&["KEYS", "*:k:*"]).await.unwrap();
        let mut pinned = Vec::new();
        for key in keys {
            let body: String = self.redis.ask(&["GET", &key]).await.unwrap();
            let found: Shelf = serde_json::from_str(&body).unwrap();
            for (session, member) in found.members {
                if member.stage != Stage::Open {
                    continue;
                }
                let name =
                    key.replace(&format!("k:{}", key.rsplit(':').next().unwrap()), &format!("s:{session}"));
                let attempt: Option<String> = self.redis.ask(&["HGET", &name, "attempt"]).await.unwrap();
                if attempt.is_none() {
                    pinned.push(session);
                }
            }
        }
        pinned
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

    /// As long as others hold what it wants, an agent asks again with a new key.
    async fn buy(&self, ready: Ready, pay: Payment) -> Told {
        for _ in 0..150 {
            let reply = self.complete(&ready, pay).await;
            if reply.header("retry-after").is_none() {
                return told(&reply);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("held by others for ever: {}", ready.id)
    }
}

impl Gateways {
    /// Completes under one key, until that is answered for good.
    pub async fn complete(&self, ready: &Ready, pay: Payment) -> Reply {
        let key = tillgate::clock::Ids.uuid();
        let body = credential(ready.side, pay);
        let path = format!("/{}/complete", ready.id);
        let mut last = self.call(ready, &path, &key, &body).await;
        let mut pause = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..900 {
            if is_final(&last) {
                return last;
            }
            pause.tick().await;
            last = self.call(ready, &path, &key, &body).await;
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

fn with_token(side: Side, token: &str) -> Value {
    match side {
        Side::Ucp => payment(token),
        Side::Acp => acp_payment(token),
    }
}

fn credential(side: Side, pay: Payment) -> Value {
    let mut body = with_token(side, if pay == Payment::SlowCard { "tok_slow" } else { "tok_ok" });
    let handler = match side {
        Side::Ucp => "/payment/instruments/0/handler_id",
        Side::Acp => "/payment_data/handler_id",
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
