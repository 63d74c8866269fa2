//! The edge: listeners, the way from a host name to a shop, limits of form, and what no protocol owns.
//!
//! The path of a request: [`router`] (host → shop) → `edge` (body limit, panic guard) →
//! `protocol::{ucp,acp}::routes`. Health is on a listener of its own ([`ops`]).

mod availability;
mod edge;
mod pages;
mod patience;

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, Version, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

pub use self::patience::Patient;
use crate::{
    availability::Board,
    checkout::{service::Service, state},
    protocol::{ShopFace, acp, ucp},
};

/// What the edge serves of one shop.
pub struct ShopRoutes {
    /// Names by which agents reach it; `*` is every other name.
    pub hosts: Vec<String>,
    /// The shop as it is shown.
    pub face: Arc<ShopFace>,
    /// Its checkouts.
    pub service: Arc<Service>,
    /// Its UCP side.
    pub ucp: Arc<ucp::Ucp>,
    /// Its ACP side.
    pub acp: Arc<acp::Acp>,
    /// What is published of its availability; `None`: nothing.
    pub availability: Option<Arc<Board>>,
    /// Where the shop itself delivers what happens to it; empty where it does not.
    pub deliveries: Router,
}

/// The routers of all shops, by host name.
#[derive(Clone, Default)]
struct Hosts {
    named: Arc<HashMap<String, Router>>,
    rest: Option<Router>,
}

/// The public router: the `Host` decides which shop answers.
pub fn router(shops: impl IntoIterator<Item = ShopRoutes>, body_bytes: usize, tasks: &TaskTracker) -> Router {
    let mut named = HashMap::new();
    let mut rest = None;
    for shop in shops {
        let router = shop_router(&shop, body_bytes, tasks);
        for host in &shop.hosts {
            if host == "*" {
                rest = Some(router.clone());
            } else {
                named.insert(host.to_ascii_lowercase(), router.clone());
            }
        }
    }
    Router::new().fallback(by_host).with_state(Hosts { named: Arc::new(named), rest })
}

async fn by_host(State(hosts): State<Hosts>, request: Request) -> Response {
    let Ok(name) = host_of(&request) else { return StatusCode::BAD_REQUEST.into_response() };
    let shop = name.as_deref().and_then(|name| hosts.named.get(name)).or(hosts.rest.as_ref());
    match shop {
        Some(router) => match router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Nobody can tell which host is meant.
#[derive(Debug, PartialEq, Eq)]
struct Ambiguous;

/// The host name that was asked for, without port, in lower case. An absolute target says it, whatever `Host` says
/// (RFC 9112, 3.2.2); two `Host` lines say nothing, nor does HTTP/1.1 without any.
fn host_of(request: &Request) -> Result<Option<String>, Ambiguous> {
    let mut lines = request.headers().get_all(header::HOST).iter();
    let (line, second) = (lines.next(), lines.next());
    let absolute = request.uri().host();
    if second.is_some() || (line.is_none() && absolute.is_none() && request.version() == Version::HTTP_11) {
        return Err(Ambiguous);
    }
    let name = match absolute {
        Some(host) => Some(host.trim_start_matches('[').trim_end_matches(']')),
        None => line.and_then(|value| value.to_str().ok()).and_then(without_port),
    };
    Ok(name.map(str::to_ascii_lowercase))
}

/// The name in a `Host` line.
fn without_port(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => Some(host.rsplit_once(':').map_or(host, |(name, _)| name)),
    }
}

fn shop_router(shop: &ShopRoutes, body_bytes: usize, tasks: &TaskTracker) -> Router {
    let edge = edge::Edge { face: Arc::clone(&shop.face), body_bytes, tasks: tasks.clone() };
    let published =
        shop.availability.as_ref().map_or_else(Router::new, |board| availability::router(Arc::clone(board)));
    Router::new()
        .merge(published)
        .merge(shop.deliveries.clone())
        .merge(acp::router(Arc::clone(&shop.acp)))
        .merge(ucp::router(Arc::clone(&shop.ucp)))
        .merge(pages::router(Arc::clone(&shop.face), Arc::clone(&shop.service)))
        .fallback(nothing_here)
        .layer(axum::middleware::from_fn_with_state(edge, edge::guard))
}

async fn nothing_here() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "Nothing is here. UCP starts at /.well-known/ucp, ACP at /.well-known/acp.json.\n",
    )
}

/// The operators' router: `/healthz` (the process runs) and `/readyz` (the state can be used).
pub fn ops(state: Arc<dyn state::State>) -> Router {
    async fn ready(State(state): State<Arc<dyn state::State>>) -> Response {
        match state.ping().await {
            Ok(()) => (StatusCode::OK, "ready\n").into_response(),
            Err(error) => {
                tracing::error!(%error, "not ready");
                (StatusCode::SERVICE_UNAVAILABLE, "the state cannot be used\n").into_response()
            }
        }
    }
    Router::new()
        .route("/healthz", get(|| async { (StatusCode::OK, Body::from("alive\n")) }))
        .route("/readyz", get(ready))
        .with_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(target: &str, hosts: &[&str]) -> Result<Option<String>, Ambiguous> {
        let mut request = Request::builder().uri(target);
        for host in hosts {
            request = request.header("host", *host);
        }
        host_of(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn the_host_is_a_name_without_port() {
        for (host, name) in [
            ("Shop.Example:8443", "shop.example"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:80", "::1"),
            ("shop.example", "shop.example"),
        ] {
            assert_eq!(asked("/", &[host]), Ok(Some(name.to_owned())), "{host}");
        }
    }

    #[test]
    fn an_absolute_target_says_the_host_and_two_lines_say_nothing() {
        let told = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(asked("http://a.example:80/x", &["b.example"]), told("a.example"));
        assert_eq!(asked("http://me@A.example/x", &[]), told("a.example"));
        assert_eq!(asked("http://[::1]:80/x", &[]), told("::1"));
        assert_eq!(asked("/x", &["me@a.example"]), told("me@a.example"), "a name that no shop has");
        assert_eq!(asked("/x", &["a.example", "a.example"]), Err(Ambiguous));
        assert_eq!(asked("http://a.example/x", &["a.example", "b.example"]), Err(Ambiguous));
        assert_eq!(asked("/x", &[]), Err(Ambiguous));
    }
}
