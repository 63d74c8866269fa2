//! Requests whose headers are not what the small clients send, and platforms of any kind.

use axum::{
    Json, Router,
    body::Body,
    http::{Method, Request},
    routing::get,
};
use serde_json::{Value, json};

use crate::support::{
    Reply, TestApp,
    clients::{PROFILE, acp_lines, lines},
    listen,
    sides::{Acp, Side, Ucp},
};

/// A create that is fine but for the lines of one header.
pub(super) async fn create_with(app: &TestApp, side: Side, header: &str, values: &[&str]) -> Reply {
    let profile = format!("profile=\"{PROFILE}\"");
    let key = tillgate::clock::Ids.uuid();
    let (path, body, own) = match side {
        Ucp => ("/ucp/checkout-sessions", lines("bouquet_roses", 1), vec![("ucp-agent", profile.as_str())]),
        Acp => (
            "/acp/checkout_sessions",
            acp_lines("bouquet_roses", 1, "usd"),
            vec![("authorization", "Bearer test-token"), ("api-version", "2026-04-17")],
        ),
    };
    let common = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
    let mut request = Request::builder().method(Method::POST).uri(path).header("host", "127.0.0.1");
    for (name, value) in own.into_iter().chain(common).filter(|(name, _)| *name != header) {
        request = request.header(name, value);
    }
    for value in values {
        request = request.header(header, *value);
    }
    app.send(request.body(Body::from(body.to_string())).unwrap()).await
}

/// The address of a platform that says this of itself.
pub(super) async fn platform(profile: Value) -> String {
    let router = Router::new().route("/profile", get(move || std::future::ready(Json(profile.clone()))));
    format!("{}/profile", listen(router).await)
}

/// A profile that knows these capabilities, all in one version.
pub(super) fn knows(version: &str, names: &[&str]) -> Value {
    let entry = json!([{"version": version, "spec": "https://ucp.dev/", "schema": "https://ucp.dev/"}]);
    let capabilities: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), entry.clone())).collect();
    json!({"ucp": {"version": version, "services": {}, "payment_handlers": {}, "capabilities": capabilities}})
}
