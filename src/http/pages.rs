//! Pages for people: where a gateway is at home, and where a `continue_url` leads. No side effects: link
//! previews may open them.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State, rejection::PathRejection},
    http::{StatusCode, header},
    response::{Html, IntoResponse as _, Response},
    routing::get,
};
use html_escape::{encode_double_quoted_attribute, encode_text};

use crate::{
    checkout::{
        service::Service,
        session::{Session, Status},
    },
    protocol::ShopFace,
};

type Shop = (Arc<ShopFace>, Arc<Service>);

pub(super) fn router(face: Arc<ShopFace>, service: Arc<Service>) -> Router {
    Router::new().route("/", get(home)).route("/go/{token}", get(go)).with_state((face, service))
}

async fn home(State((face, _)): State<Shop>) -> Response {
    let body = format!(
        "<p>AI agents buy from this shop here. People buy at <a href=\"{home}\">{home}</a>.</p>\
         <ul><li>UCP: <a href=\"/.well-known/ucp\">/.well-known/ucp</a></li>\
         <li>ACP: <a href=\"/.well-known/acp.json\">/.well-known/acp.json</a></li></ul>",
        home = encode_double_quoted_attribute(face.home_url.as_str()),
    );
    page(StatusCode::OK, &face.title, &body)
}

/// Where a buyer goes on: the shop's own pay page while an order waits for its payment there.
async fn go(State((face, service)): State<Shop>, token: Result<Path<String>, PathRejection>) -> Response {
    // What is no text is no token either.
    let token = token.map(|Path(token)| token).unwrap_or_default();
    let session = match service.by_continue_token(&token).await {
        Ok(session) => session,
        Err(error) => {
            tracing::error!(%error, "a continue page could not be shown");
            return page(
                StatusCode::SERVICE_UNAVAILABLE,
                &face.title,
                "<p>Please try again in a moment.</p>",
            );
        }
    };
    let status = if session.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    page(status, &face.title, &state_of(session.as_ref(), &face))
}

fn state_of(session: Option<&Session>, face: &ShopFace) -> String {
    let shop = format!(
        "<p><a href=\"{}\">Go to the shop</a></p>",
        encode_double_quoted_attribute(face.home_url.as_str())
    );
    let Some(session) = session else { return format!("<p>This link is not known here.</p>{shop}") };
    match session.status {
        Status::Escalated => match &session.pay_url {
            Some(url) => format!(
                "<p>Your order waits for its payment.</p><p><a href=\"{}\" rel=\"noreferrer\">Pay at the shop</a></p>",
                encode_double_quoted_attribute(url)
            ),
            None => format!("<p>Your order waits for its payment at the shop.</p>{shop}"),
        },
        Status::Placing => "<p>Your order is being placed. Please look again in a moment.</p>".to_owned(),
        Status::Completed => match &session.order {
            Some(order) => format!("<p>Your order {} has been placed.</p>{shop}", encode_text(&order.number)),
            None => format!("<p>Your order has been placed.</p>{shop}"),
        },
        Status::Canceled | Status::Expired => format!("<p>This checkout has ended.</p>{shop}"),
        Status::Incomplete | Status::Ready => {
            format!("<p>Your assistant has prepared a checkout here. It is not ordered yet.</p>{shop}")
        }
    }
}

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let title = encode_text(title);
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"robots\" content=\"noindex\">\
         <title>{title}</title><style>body{{font:1.1rem/1.5 system-ui;max-width:36rem;margin:4rem auto;\
         padding:0 1rem}}</style></head><body><h1>{title}</h1>{body}</body></html>"
    );
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ];
    (status, headers, Html(html)).into_response()
}
