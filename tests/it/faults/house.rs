//! Gateways inside the test over real back ends: the demo shop over TCP behind a proxy, SQLite, or Redis with two
//! processes' worth of state.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{Method, Request},
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tillgate::{
    app::{self, App, Environment},
    checkout::points::Probe,
    clock::Clock,
    config::Settings,
    store::demo::{self, DemoShop, Seed},
};
use tokio::task::JoinSet;

use crate::support::{
    Reply,
    chaos::Proxy,
    clients::{PROFILE, acp_payment, payment},
    listen,
    process::{Side, purchase},
    record,
    redis::Server,
};

/// The gateways.
pub struct House {
    pub apps: Vec<Arc<App>>,
    routers: Vec<Router>,
    pub shop: DemoShop,
    pub proxy: Proxy,
    /// Whether answers are kept for the check against the official schemas.
    pub recording: bool,
    _folder: TempDir,
    /// Signs of life; end with the house.
    _alive: JoinSet<()>,
}

impl House {
    /// One gateway with embedded state, or two on one Redis.
    pub async fn open(
        clock: Arc<dyn Clock>,
        probe: Option<Arc<dyn Probe>>,
        redis: Option<&Server>,
        tune: impl Fn(&mut Settings),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = |seed| DemoShop::open(seed, None, Arc::clone(&clock)).unwrap();
        let (flower, general) = (open(Seed::Flower), open(Seed::General));
        let shop_url = listen(demo::router(flower.clone(), general)).await;
        let proxy = Proxy::before_url(&shop_url).await;
        let mut settings = app::demo_settings(&proxy.http(), &folder.path().join("gateway")).unwrap();
        settings.redis = redis.map(|server| {
            let prefix = tillgate::clock::Ids.uuid();
            serde_json::from_value(json!({"url": server.url(), "prefix": prefix})).unwrap()
        });
        tune(&mut settings);
        let mut apps = Vec::new();
        let mut alive = JoinSet::new();
        for _ in 0..if redis.is_some() { 2 } else { 1 } {
            let environment =
                Environment { clock: Arc::clone(&clock), pins: app::demo_pins(), probe: probe.clone() };
            let app = Arc::new(App::build(&settings, environment).await.unwrap());
            let state = app.state();
            alive.spawn(async move {
                let mut beats = tokio::time::interval(tillgate::checkout::state::BEAT);
                loop {
                    beats.tick().await;
                    let _ = state.beat().await;
                }
            });
            apps.push(app);
        }
        let routers = apps.iter().map(|app| app.router()).collect();
        Self { apps, routers, shop: flower, proxy, recording: true, _folder: folder, _alive: alive }
    }

    /// A call to one of the gateways.
    pub async fn call(
        &self,
        at: usize,
        side: Side,
        method: Method,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Reply {
        let path = match side {
            Side::Ucp => format!("/ucp/checkout-sessions{path}"),
            Side::Acp => format!("/acp/checkout_sessions{path}"),
        };
        let request = Request::builder().method(method.clone()).uri(&path).header("host", "127.0.0.1");
        let request = match side {
            Side::Ucp => request.header("ucp-agent", format!("profile=\"{PROFILE}\"")),
            Side::Acp => {
                request.header("authorization", "Bearer test-token").header("api-version", "2026-04-17")
            }
        };
        let request = if method == Method::GET { request } else { request.header("idempotency-key", key) };
        let request = match body {
            Some(body) => {
                request.header("content-type", "application/json").body(Body::from(body.to_string()))
            }
            None => request.body(Body::empty()),
        };
        let router = self.routers[at % self.routers.len()].clone();
        let response = tower::ServiceExt::oneshot(router, request.unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let reply = Reply { status: parts.status.as_u16(), headers: parts.headers, bytes, json };
        if self.recording {
            record::record(&method, &path, &reply);
        }
        reply
    }

    /// Makes a checkout of one rose that can be completed.
    pub async fn ready(&self, at: usize, side: Side, email: &str) -> String {
        let key = tillgate::clock::Ids.uuid();
        self.call(at, side, Method::POST, "", &key, Some(&purchase(side, email))).await.expect(201).id()
    }

    pub async fn complete(&self, at: usize, side: Side, id: &str, key: &str, token: &str) -> Reply {
        let body = if side == Side::Ucp { payment(token) } else { acp_payment(token) };
        self.call(at, side, Method::POST, &format!("/{id}/complete"), key, Some(&body)).await
    }

    pub async fn get(&self, at: usize, side: Side, id: &str) -> Reply {
        self.call(at, side, Method::GET, &format!("/{id}"), "", None).await
    }

    /// Orders at the shop of a buyer.
    pub fn orders(&self, email: &str) -> Vec<Value> {
        let orders = self.shop.orders().as_array().cloned().unwrap_or_default();
        orders.into_iter().filter(|order| order["email"] == email).collect()
    }
}
