//! What no agent should send: refused with 4xx in the protocol's own body, and the shop hears nothing.

mod any;
mod bodies;
mod headers;
mod payments;
mod wire;

use std::fmt::Write as _;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Method, Request},
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Map, Value, json};

use crate::support::{
    Reply, TestApp,
    clients::{PROFILE, acp_address, acp_buyer, acp_lines, acp_payment, full, lines, payment, us_address},
};

/// The number of a card, right in its check digit.
const PAN: &str = "4242424242424242";

/// A protocol: its addresses and the form of its refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ucp,
    Acp,
}

use Side::{Acp, Ucp};

const BOTH: [Side; 2] = [Ucp, Acp];

type Headers = Vec<(&'static str, Vec<u8>)>;

impl Side {
    const fn root(self) -> &'static str {
        match self {
            Self::Ucp => "/ucp/checkout-sessions",
            Self::Acp => "/acp/checkout_sessions",
        }
    }

    fn headers(self) -> Headers {
        let key = ("idempotency-key", tillgate::clock::Ids.uuid().into_bytes());
        let json = ("content-type", b"application/json".to_vec());
        match self {
            Self::Ucp => vec![("ucp-agent", format!("profile=\"{PROFILE}\"").into_bytes()), json, key],
            Self::Acp => vec![
                ("authorization", b"Bearer test-token".to_vec()),
                ("api-version", b"2026-04-17".to_vec()),
                json,
                key,
            ],
        }
    }

    const fn update(self) -> Method {
        match self {
            Self::Ucp => Method::PUT,
            Self::Acp => Method::POST,
        }
    }

    /// A body of a create that is fine.
    fn good(self) -> Value {
        match self {
            Self::Ucp => lines("bouquet_roses", 1),
            Self::Acp => acp_lines("bouquet_roses", 1, "usd"),
        }
    }

    /// The pointer to the item's id in it.
    const fn item_id(self) -> &'static str {
        match self {
            Self::Ucp => "/line_items/0/item/id",
            Self::Acp => "/line_items/0/id",
        }
    }

    fn pay(self) -> Value {
        match self {
            Self::Ucp => payment("success_token"),
            Self::Acp => acp_payment("spt_test_ok"),
        }
    }

    async fn ready(self, app: &TestApp) -> String {
        match self {
            Self::Ucp => app.ucp().ready("bouquet_roses", 1).await,
            Self::Acp => app.acp().ready("bouquet_roses", 1, "usd").await,
        }
    }

    /// The answer has the protocol's own form of a refusal. Returns where it says the fault is.
    #[track_caller]
    fn refusal(self, reply: &Reply, what: &str) -> Option<String> {
        let body = &reply.json;
        assert!((400..500).contains(&reply.status), "{self:?} {what}: {} {body}", reply.status);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{self:?} {what}");
        assert!(reply.header("request-id").is_some(), "{self:?} {what}");
        let code = body["code"].as_str().unwrap_or_default();
        assert!(!code.is_empty(), "{self:?} {what}: {} {body}", reply.status);
        match self {
            Self::Ucp => {
                assert!(body["content"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {body}");
                let message = &body["messages"][0];
                assert_eq!((&message["code"], &message["content"]), (&body["code"], &body["content"]));
                assert_eq!(message["type"], "error", "{what}: {body}");
                message["path"].as_str().map(str::to_owned)
            }
            Self::Acp => {
                assert!(body["message"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {body}");
                assert_eq!(body["type"], "invalid_request", "{what}: {body}");
                for name in body.as_object().unwrap().keys() {
                    let known = ["type", "code", "message", "param", "supported_versions"];
                    assert!(known.contains(&name.as_str()), "{what}: {body}");
                }
                body["param"].as_str().map(str::to_owned)
            }
        }
    }
}

/// Sends bytes as they are.
async fn send(app: &TestApp, method: Method, path: &str, headers: &Headers, body: impl Into<Body>) -> Reply {
    let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1");
    for (name, value) in headers {
        request = request.header(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
    }
    app.send(request.body(body.into()).unwrap()).await
}

/// Nothing has come of it: no call to the shop, no session beyond those known.
async fn nothing_ran(app: &TestApp, sessions: i64, what: &str) {
    assert_eq!(app.shop_calls().await, Vec::<String>::new(), "{what}");
    assert_eq!(app.sessions_made(), sessions, "{what}");
}

async fn create(app: &TestApp, side: Side, body: impl Into<Body>) -> Reply {
    send(app, Method::POST, side.root(), &side.headers(), body).await
}

/// A value somewhere in a body: its pointer and its JSONPath.
fn places(value: &Value, pointer: &str, path: &str, found: &mut Vec<(String, String)>) {
    let mut visit = |name: &str, path: String, value: &Value| {
        let pointer = format!("{pointer}/{name}");
        found.push((pointer.clone(), path.clone()));
        places(value, &pointer, &path, found);
    };
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                visit(name, format!("{path}.{name}"), value);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                visit(&at.to_string(), format!("{path}[{at}]"), value);
            }
        }
        _ => {}
    }
}

fn same_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

fn everything(side: Side) -> Value {
    match side {
        Ucp => {
            let mut body = full("bouquet_roses", 1);
            body["buyer"]["consent"] = json!({"marketing": true, "analytics": false});
            let mut address = us_address();
            address["extended_address"] = json!("2nd floor");
            address["phone_number"] = json!("+12025550143");
            body["fulfillment"]["methods"][0] = json!({"type": "shipping", "destinations": [address],
                "selected_destination_id": "home", "line_item_ids": ["li_1"],
                "groups": [{"selected_option_id": "std-ship"}]});
            body["discounts"] = json!({"codes": ["10OFF"]});
            body["context"] = json!({"address_country": "US", "address_region": "CA", "postal_code": "90210",
                "intent": "a gift", "language": "en", "currency": "USD", "eligibility": ["org.example.gold"]});
            body["attribution"] = json!({});
            body["signals"] = json!({});
            body["payment"] = json!({"instruments": [{"id": "pi_1", "handler_id": "mock_payment_handler",
                "type": "card", "selected": true, "display": {}, "billing_address": {"postal_code": "90210"}}]});
            body
        }
        Acp => {
            let mut body = acp_lines("bouquet_roses", 1, "usd");
            body["buyer"] = acp_buyer();
            body["buyer"]["customer_id"] = json!("c1");
            body["buyer"]["company"] = json!({});
            let mut address = acp_address();
            address["line_two"] = json!("2nd floor");
            address["company"] = json!("Byron Ltd");
            body["fulfillment_details"] = json!({"name": "Ada Byron", "phone_number": "+12025550143",
                "email": "ada@example.org", "address": address});
            body["fulfillment_groups"] = json!([{}]);
            body["discounts"] = json!({"codes": ["10OFF"]});
            body["order_notes"] = json!("ring twice");
            body["locale"] = json!("en-US");
            body["timezone"] = json!("UTC");
            body["quote_id"] = json!("q1");
            body["metadata"] = json!({});
            body["capabilities"]["payment"] = json!({});
            body["affiliate_attribution"] = json!({"provider": "p", "token": "t", "campaign_id": "c",
                "source": {}, "metadata": {}});
            body
        }
    }
}

fn without(side: Side, name: &str) -> Headers {
    side.headers().into_iter().filter(|(header, _)| *header != name).collect()
}

fn other(side: Side, name: &'static str, values: &[&[u8]]) -> Headers {
    let mut headers = without(side, name);
    headers.extend(values.iter().map(|value| (name, value.to_vec())));
    headers
}
