//! `/_demo/…`: what tests and readers ask of a shop beside its API.

use axum::http::Method;
use axum::response::Response;
use serde_json::{Value, json};

use super::Error;
use super::http::{JSON, respond};
use super::shop::DemoShop;
use super::state::Calls;
use super::wcv3_order;

impl DemoShop {
    /// `/_demo/…`: faults, events, orders, stock, calls and violations.
    pub(super) fn control(&self, method: &Method, path: &str, body: &[u8]) -> Response {
        let body = || serde_json::from_slice::<Value>(body).unwrap_or_default();
        let done: Result<Value, Error> = match (method.as_str(), path) {
            ("GET", "faults") => Ok(self.lock().faults.json()),
            ("PUT" | "POST", "faults") => {
                let mut state = self.lock();
                state.faults.set_json(&body()).map(|()| state.faults.json())
            }
            ("DELETE", "faults") => {
                self.lock().faults.clear();
                Ok(json!({}))
            }
            ("POST", "events") => self.act(&body()).map(|()| json!({})),
            ("GET", "orders") => Ok(self.orders()),
            ("GET", "stock") => {
                let state = self.lock();
                let now = self.now(&state);
                Ok(wcv3_order::stock_summary(&state, now))
            }
            ("GET", "calls") => {
                let state = self.lock();
                let calls: Vec<Value> = state
                    .calls
                    .newest
                    .iter()
                    .map(|(method, path)| json!({"method": method, "path": path}))
                    .collect();
                Ok(json!({"count": state.calls.count, "calls": calls}))
            }
            ("DELETE", "calls") => {
                self.lock().calls = Calls::default();
                Ok(json!({}))
            }
            ("GET", "violations") => Ok(self.violations()),
            ("DELETE", "violations") => {
                self.watch().forget();
                Ok(json!({}))
            }
            _ => return respond(404, JSON, json!({"error": "not found"}).to_string(), &[]),
        };
        match done {
            Ok(body) => respond(200, JSON, body.to_string(), &[]),
            Err(error) => respond(400, JSON, json!({"error": error.to_string()}).to_string(), &[]),
        }
    }
}
