//! The demo shop: a fake `WooCommerce` that speaks the Store API and the few wc/v3 calls a gateway needs.
//!
//! It serves two shops on one listener: flowers at the root, a general shop below `/general`. Requests are
//! answered from memory ([`DemoShop::open`] without a path) or from a small file that survives a killed
//! process. It behaves as `WooCommerce` 10.5 was seen to behave, quirks included: a test plays recorded traffic
//! of a real shop against it. Amounts on the wire are texts in minor units; times are UTC.
//!
//! For tests and readers there is `/_demo/…` below each shop: `faults` (GET, PUT, DELETE; see [`faults`]),
//! `events` (POST: what a merchant does, and `wait`, which moves the shop's clock), `orders`, `stock`,
//! `calls` and `violations` (GET; DELETE `calls` or `violations` resets). `violations` tells what a client did that
//! buys twice or loses a cart in a real shop: calls of one cart that overlap, a purchase posted again.
//!
//! Payment method `agent_token` takes mock tokens: `success_token`, `fail_token`, `challenge_token`,
//! `tok_slow` and more. wc/v3 takes the key `ck_demo`/`cs_demo`, over plain http too. A catalogue of any size:
//! [`DemoShop::add_made_products`].
//!
//! What can fail: opening ([`Error`]); a record that can't be written answers 500.

mod address;
mod batch;
mod cart;
mod catalog;
#[cfg(test)]
mod catalog_tests;
mod checkout;
mod control;
mod coupons;
mod events;
pub mod faults;
mod fields;
mod http;
mod listing;
mod made;
mod model;
mod money;
mod orders;
mod pace;
mod paging;
mod paying;
mod payment;
mod places;
mod routes;
mod seed;
mod shipping;
mod shop;
mod state;
mod terms;
#[cfg(test)]
mod tests;
mod token;
mod totals;
mod view;
mod watch;
mod wcv3;
mod wcv3_order;
mod wcv3_product;
mod weather;
mod workers;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::Response;

pub use seed::Seed;
pub use shop::DemoShop;

/// The most a request body may hold.
const BODY_LIMIT: usize = 4 << 20;

/// Why a shop could not be opened or told something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read or written.
    #[error("the shop's file could not be read or written")]
    Disk(#[from] rusqlite::Error),
    /// A record in the file is not what it should be.
    #[error("a record of the shop's file could not be read")]
    Json(#[from] serde_json::Error),
    /// The file holds a record of an unknown kind.
    #[error("the shop's file holds an unknown record `{0}`")]
    Record(String),
    /// There is no such fault, or its value is wrong.
    #[error("{0}")]
    Fault(String),
    /// The shop does not know the event, or a member is missing.
    #[error("event {0}")]
    Event(String),
}

/// Serves the flower shop at the root and the general shop below `/general`.
pub fn router(flower: DemoShop, general: DemoShop) -> Router {
    Router::new().fallback(move |request: Request| serve(flower.clone(), general.clone(), request))
}

async fn serve(flower: DemoShop, general: DemoShop, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let (shop, target) = match target.strip_prefix("/general") {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?']) => (general, rest),
        _ => (flower, target),
    };
    let target = target.trim_start_matches('/').to_owned();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return http::respond(413, "text/plain", "too large", &[]);
    };
    let (call, client) = shop.meet(&parts.method, &target, &parts.headers, &body);
    // A shop goes on when its client hangs up: the work is a task of its own.
    let work = tokio::spawn(async move {
        let response = shop.answer(parts.method, target, parts.headers, body).await;
        call.end(response.status().as_u16());
        response
    });
    let answer = work.await;
    drop(client);
    answer.unwrap_or_else(|_| http::respond(500, "text/plain", "the shop broke down", &[]))
}
