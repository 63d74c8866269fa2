//! Batches: up to 25 calls in one request, one after another on one session.
//!
//! The Cart-Token must be in the outer headers and in each item's: outer only refuses each item, inner only is
//! a fatal error. A failed item stops nothing.

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::cart;
use super::checkout;
use super::http::{ApiError, Call, Reply};
use super::routes;
use super::shop::{Client, DemoShop, broken, missing_nonce, pause};
use super::state::State;
use super::token;
use super::weather::Weather;

/// One item of a batch.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) call: Call,
    /// The Cart-Token of its own headers.
    pub(super) token: Option<String>,
}

/// Reads the items, or says what is wrong with the request as a whole.
pub(super) fn items(body: &Map<String, Value>) -> Result<Vec<Item>, ApiError> {
    let Some(requests) = body.get("requests") else { return Err(ApiError::missing("requests")) };
    let Some(requests) = requests.as_array() else {
        return Err(ApiError::invalid("requests", "rest_invalid_type", "requests is not of type array."));
    };
    if requests.len() > 25 {
        let text = "requests must contain at most 25 items.";
        return Err(ApiError::invalid("requests", "rest_too_many_items", text));
    }
    let mut items = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let text = |name: &str| request.get(name).and_then(Value::as_str);
        let method = text("method").unwrap_or("POST");
        if !matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") {
            let text = format!("requests[{index}][method] is not one of POST, PUT, PATCH, and DELETE.");
            return Err(ApiError::invalid("requests", "rest_not_in_enum", text));
        }
        let path = text("path").unwrap_or_default().trim_start_matches('/');
        if !path.starts_with("wc/store") {
            return Err(ApiError::new(400, "woocommerce_rest_invalid_path", "Invalid path provided."));
        }
        let body = request.get("body").and_then(Value::as_object).cloned().unwrap_or_default();
        let token = request.get("headers").and_then(Value::as_object).and_then(|headers| {
            let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("cart-token"));
            found.and_then(|(_, value)| value.as_str()).map(str::to_owned)
        });
        items.push(Item { call: Call::new(method, path, body), token });
    }
    Ok(items)
}

/// With `require-all-validate`: the answer if a parameter of any item has the wrong type.
pub(super) fn invalid(items: &[Item]) -> Option<Value> {
    let errors: Vec<Option<ApiError>> =
        items.iter().map(|item| cart::check_params(&item.call).err()).collect();
    if errors.iter().all(Option::is_none) {
        return None;
    }
    let responses: Vec<Value> = errors
        .into_iter()
        .map(|error| match error {
            Some(error) => json!({"body": error.body(None), "status": error.status, "headers": []}),
            None => Value::Null,
        })
        .collect();
    Some(json!({"failed": "validation", "responses": responses}))
}

/// Whether an item carries a token that is good.
pub(super) fn is_authorized(state: &State, item: &Item, now: DateTime<Utc>) -> bool {
    item.token.as_deref().and_then(|given| token::verify(&state.settings().secret, given, now)).is_some()
}

impl DemoShop {
    /// Answers a batch: its calls one after the other, on one session that is written back at the end.
    pub(super) async fn batch(
        &self,
        body: &Map<String, Value>,
        headers: &HeaderMap,
        weather: &Weather,
    ) -> Reply {
        let items = match items(body) {
            Ok(items) => items,
            Err(error) => return Reply::new(error.status, error.body(None)).header("allow", "POST"),
        };
        if body.get("validation").and_then(Value::as_str) == Some("require-all-validate")
            && let Some(answer) = invalid(&items)
        {
            return self.outer(answer);
        }
        let client = self.client(headers, false);
        let authorized: Vec<bool> = {
            let state = self.lock();
            let now = self.now(&state);
            items.iter().map(|item| !weather.dead_token && is_authorized(&state, item, now)).collect()
        };
        if !client.known && authorized.contains(&true) {
            let error = checkout::fatal();
            return Reply::new(error.status, error.body(None));
        }
        let mut session = self.lock().session(&client.identity);
        let before = session.clone();
        let mut responses = Vec::with_capacity(items.len());
        let mut lost = false;
        for (item, authorized) in items.iter().zip(authorized) {
            let path = routes::below(&item.call.path).unwrap_or_default();
            let guarded = routes::guarded(&item.call, &path) && !authorized;
            let client = Client {
                identity: if authorized { client.identity.clone() } else { token::identity() },
                known: authorized,
                objection: guarded.then(missing_nonce),
            };
            let route = routes::find(&path);
            let cart = route.is_some_and(|route| route.cart);
            let (reply, mut extra) = self.one(&item.call, &path, &mut session, &client, cart).await;
            if let Some(route) = route {
                extra.insert("Allow".to_owned(), json!(route.methods));
            }
            lost |= reply.lost;
            responses.push(json!({"body": reply.body, "status": reply.status, "headers": extra}));
        }
        pause(weather.slow).await;
        if !self.save(&client, session, &before) {
            return broken();
        }
        let mut reply = self.outer(json!({"responses": responses}));
        reply.lost = lost;
        reply
    }

    fn outer(&self, body: Value) -> Reply {
        let state = self.lock();
        let now = self.now(&state);
        Reply::new(207, body)
            .header("nonce", token::nonce(&state.settings().secret, now))
            .header("nonce-timestamp", now.timestamp().to_string())
            .header("user-id", "0")
            .header("allow", "POST")
    }
}
