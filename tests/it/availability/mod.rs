//! What is published of a shop's availability, over real sockets: documents and streams.

mod documents;
mod streams;

use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::support::{TestApp, Tune, listen};

/// Everything is looked at every second.
const QUICK: Tune = |settings| {
    settings.catalog.cache_secs = 1;
    settings.availability.poll_secs = 1;
    settings.availability.reading_secs = 1;
    settings.availability.heartbeat_secs = 1;
};

/// A gateway over the demo shops that listens, and who asks it.
struct Place {
    app: TestApp,
    address: String,
    client: Client,
}

impl Place {
    async fn new(tune: Tune) -> Self {
        let app = TestApp::with(tune).await;
        let address = listen(app.app.router()).await;
        let client = Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
        Self { app, address, client }
    }

    /// Asks the general shop.
    async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        self.ask_at("general.localhost", method, path, headers).await
    }

    async fn ask_at(&self, host: &str, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        let url = format!("{}/availability/{path}", self.address);
        let request = self.client.request(method, url).header("host", host);
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .send()
            .await
            .unwrap()
    }

    /// A document of the general shop.
    async fn document(&self, id: &str) -> Value {
        let response = self.ask(Method::GET, id, &[]).await;
        assert_eq!(response.status(), 200, "{id}");
        response.json().await.unwrap()
    }

    /// What a merchant does at the general shop.
    fn stock(&self, product: u64, quantity: i64) {
        let event = json!({"op": "stock", "product": product, "quantity": quantity});
        self.app.general().act(&event).unwrap();
    }
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// What a document says: the level, and the number if there is one.
fn level(document: &Value) -> (&str, Option<i64>) {
    let level = document["availability"].as_str().unwrap();
    (level.strip_prefix("https://schema.org/").unwrap(), document["inventoryLevel"]["value"].as_i64())
}
