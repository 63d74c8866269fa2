//! One purchase in both protocols: what the agent of each sends, and how each says the same.

use axum::http::Method;
use serde_json::{Value, json};

use super::{
    Reply, TestApp,
    clients::{acp_address, acp_buyer, acp_lines, acp_payment, full, payment},
};

/// A protocol, and what its agent sends for the same purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ucp,
    Acp,
}

pub use Side::{Acp, Ucp};

pub const BOTH: [Side; 2] = [Ucp, Acp];

impl Side {
    pub async fn call(
        self,
        app: &TestApp,
        key: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        match self {
            Self::Ucp => app.ucp().key(key).call(method, &format!("/checkout-sessions{path}"), body).await,
            Self::Acp => app.acp().key(key).call(method, &format!("/checkout_sessions{path}"), body).await,
        }
    }

    /// A create of something that can be paid at once.
    pub async fn create(self, app: &TestApp, key: &str) -> Reply {
        let body = match self {
            Self::Ucp => full("bouquet_roses", 1),
            Self::Acp => {
                let mut body = acp_lines("bouquet_roses", 1, "usd");
                body["buyer"] = acp_buyer();
                body["fulfillment_details"] = json!({"address": acp_address()});
                body
            }
        };
        self.call(app, key, Method::POST, "", Some(&body)).await
    }

    /// Two roses and a pot instead.
    pub async fn update(self, app: &TestApp, key: &str, id: &str) -> Reply {
        let (method, body) = match self {
            Self::Ucp => {
                let mut body = full("bouquet_roses", 2);
                body["line_items"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"item": {"id": "pot_ceramic"}, "quantity": 1}));
                (Method::PUT, body)
            }
            Self::Acp => (
                Method::POST,
                json!({"line_items": [{"id": "bouquet_roses", "quantity": 2}, {"id": "pot_ceramic", "quantity": 1}]}),
            ),
        };
        self.call(app, key, method, &format!("/{id}"), Some(&body)).await
    }

    pub async fn complete(self, app: &TestApp, key: &str, id: &str) -> Reply {
        let body = match self {
            Self::Ucp => payment("success_token"),
            Self::Acp => acp_payment("spt_test_ok"),
        };
        self.call(app, key, Method::POST, &format!("/{id}/complete"), Some(&body)).await
    }

    pub async fn get(self, app: &TestApp, id: &str) -> Reply {
        self.call(app, "", Method::GET, &format!("/{id}"), None).await
    }

    pub async fn ready(self, app: &TestApp) -> String {
        let reply = self.create(app, &tillgate::clock::Ids.uuid()).await.expect(201);
        assert_eq!(reply.text("/status"), self.ready_status(), "{}", reply.json);
        reply.id()
    }

    pub const fn ready_status(self) -> &'static str {
        match self {
            Self::Ucp => "ready_for_complete",
            Self::Acp => "ready_for_payment",
        }
    }

    /// The answer says that the shop cannot be asked, and when to come again.
    #[track_caller]
    pub fn unavailable(self, reply: &Reply, what: &str) {
        assert_eq!(reply.status, 503, "{self:?} {what}: {}", reply.json);
        let after: u64 = reply.header("retry-after").unwrap_or_default().parse().unwrap();
        assert!((1..=3600).contains(&after), "{self:?} {what}: {after}");
        match self {
            Self::Ucp => assert_eq!(reply.text("/code"), "service_unavailable", "{what}"),
            Self::Acp => assert_eq!(
                (reply.text("/type"), reply.text("/code")),
                ("service_unavailable", "upstream_unavailable"),
                "{what}"
            ),
        }
    }
}

pub fn orders(app: &TestApp) -> Vec<Value> {
    app.flower().orders().as_array().cloned().unwrap_or_default()
}

/// Item and quantity of each line.
pub fn basket(reply: &Reply) -> Vec<(String, i64)> {
    let lines = reply.json["line_items"].as_array().cloned().unwrap_or_default();
    let line =
        |line: &Value| (line["item"]["id"].as_str().unwrap().to_owned(), line["quantity"].as_i64().unwrap());
    lines.iter().map(line).collect()
}

pub fn calm(app: &TestApp) {
    app.flower().clear_faults();
}

/// Rounds of the settler until the session has this status; time passes in between.
pub async fn settled(app: &TestApp, side: Side, id: &str, status: &str) {
    for _ in 0..30 {
        app.app.tend().await;
        if side.get(app, id).await.text("/status") == status {
            return;
        }
        app.pass(5);
    }
    panic!("{side:?}: not {status}: {}", side.get(app, id).await.json);
}
