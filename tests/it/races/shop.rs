//! The demo shop as a process of its own, with the times of the recorded shop.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::lines::Goods;
use crate::support::process::Process;

/// The product that the races of one product are about.
pub const SCARCE: u64 = 24;

/// Products whose stock the shop counts, and the names it counts them under.
const COUNTED: [(u64, &str); 3] = [(20, "LAST-01"), (SCARCE, "STOCK-05"), (27, "TEE-S-RED")];

/// Three products that can all be scarce.
pub const THREE: [u64; 3] = [COUNTED[0].0, COUNTED[1].0, COUNTED[2].0];

/// The general shop.
pub struct Shop {
    /// Where its API begins.
    pub base: String,
    pub client: reqwest::Client,
    _process: Process,
}

impl Shop {
    /// Opens one with the stock hold of a fresh shop (60 minutes), or without.
    pub async fn open(hold: bool) -> Self {
        let process = Process::shop(&["--fault", "measured"]).await;
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
        let shop = Self { base: format!("{}/general", process.address), client, _process: process };
        if !hold {
            shop.event(&json!({"op": "stock_hold", "minutes": 0})).await;
        }
        shop
    }

    async fn event(&self, event: &Value) {
        let url = format!("{}/_demo/events", self.base);
        let answer = self.client.post(url).json(event).send().await.unwrap();
        assert!(answer.status().is_success(), "{event}");
    }

    async fn look(&self, what: &str) -> Value {
        let url = format!("{}/_demo/{what}", self.base);
        self.client.get(url).send().await.unwrap().json().await.unwrap()
    }

    /// Forgets the calls that came so far.
    pub async fn forget_calls(&self) {
        self.client.delete(format!("{}/_demo/calls", self.base)).send().await.unwrap();
    }

    /// The addresses of the calls since then.
    pub async fn calls(&self) -> Vec<String> {
        let calls = self.look("calls").await;
        let path = |call: &Value| call["path"].as_str().unwrap_or_default().to_owned();
        calls["calls"].as_array().unwrap().iter().map(path).collect()
    }

    /// Fills the shelves.
    pub async fn restock(&self, stock: &Goods) {
        let events = stock
            .iter()
            .map(|(product, quantity)| json!({"op": "stock", "product": product, "quantity": quantity}));
        self.event(&events.collect()).await;
    }

    /// What is left of these products.
    pub async fn left(&self, of: &Goods) -> Goods {
        let stock = self.look("stock").await;
        let left = |product: u64| {
            let (_, name) = COUNTED.iter().find(|(counted, _)| *counted == product).unwrap();
            stock[*name]["stock"].as_i64().unwrap()
        };
        of.iter().map(|(product, _)| (*product, left(*product))).collect()
    }

    /// The orders that were accepted so far: paid, or with the money to come.
    pub async fn placed(&self) -> BTreeSet<u64> {
        let orders = self.look("orders").await;
        let placed =
            |order: &&Value| matches!(order["status"].as_str(), Some("processing" | "on-hold" | "completed"));
        let orders = orders.as_array().unwrap().iter().filter(placed);
        orders.map(|order| order["id"].as_u64().unwrap()).collect()
    }
}
