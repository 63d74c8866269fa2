//! What a shop delivers on its own: `POST /webhooks/woocommerce` on the shop's public address.
//!
//! Signed deliveries are hints and answered at once; a shop switches a webhook off that is answered otherwise.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use secrecy::SecretString;

use crate::{
    checkout::service::Service,
    store::woo::hook::{self, Delivery, Hook, Refused},
};

#[derive(Clone)]
struct Receiver {
    service: Arc<Service>,
    secret: SecretString,
}

/// The route of a shop whose webhooks are signed with this secret.
pub(super) fn router(service: Arc<Service>, secret: SecretString) -> Router {
    Router::new().route("/webhooks/woocommerce", post(receive)).with_state(Receiver { service, secret })
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let delivery = Delivery { topic: text(hook::TOPIC), signature: text(hook::SIGNATURE), body: &body };
    let shop = receiver.service.shop();
    match hook::read(&delivery, &receiver.secret) {
        Ok(Hook::Products(products)) => receiver.service.products_changed(products),
        Ok(Hook::Order(_)) => receiver.service.order_changed(),
        Ok(Hook::Blind) => {
            tracing::warn!(%shop, "a webhook tells nothing: whoever made it may not see what it is about");
        }
        Ok(Hook::Greeting | Hook::Other) => {}
        Err(Refused::Signature) => {
            tracing::warn!(%shop, "a webhook with another signature was refused");
            return StatusCode::UNAUTHORIZED;
        }
        // Signed, so it is the shop's: answered as received, lest the shop switches its webhook off.
        Err(Refused::Unintelligible) => tracing::warn!(%shop, "a webhook could not be understood"),
    }
    StatusCode::OK
}
