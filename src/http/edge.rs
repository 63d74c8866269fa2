//! The outermost layer of a shop: a body is read once, within its limit; then the request is a task of its own,
//! so that a client that hangs up cancels nothing and a panic becomes an answer. Refusals have the form of the
//! protocol whose address was called.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, header},
    middleware::Next,
    response::Response,
};
use http_body_util::LengthLimitError;
use tokio_util::task::TaskTracker;

use crate::{
    clock::Ids,
    protocol::{ShopFace, acp, ucp},
};

#[derive(Clone)]
pub(super) struct Edge {
    pub(super) face: Arc<ShopFace>,
    pub(super) body_bytes: usize,
    pub(super) tasks: TaskTracker,
}

/// Whose form a refusal has.
struct Form {
    is_acp: bool,
    method: Method,
    headers: HeaderMap,
}

impl Form {
    fn of(request: &Request) -> Self {
        let path = request.uri().path();
        let is_acp = path == "/acp" || path.starts_with("/acp/") || path.starts_with("/checkout_sessions");
        Self { is_acp, method: request.method().clone(), headers: request.headers().clone() }
    }

    fn request_id(&self) -> String {
        let sent = self.headers.get("request-id").and_then(|value| value.to_str().ok());
        sent.filter(|id| (1..=1024).contains(&id.len())).map_or_else(|| Ids.uuid(), str::to_owned)
    }

    fn too_large(&self) -> Response {
        if self.is_acp {
            acp::respond(acp::too_large(), &self.method, &self.headers)
        } else {
            ucp::too_large_response(&self.request_id())
        }
    }

    fn unread(&self) -> Response {
        if self.is_acp {
            acp::respond(acp::body_broken(), &self.method, &self.headers)
        } else {
            ucp::unread_response(&self.request_id())
        }
    }

    fn broken(&self) -> Response {
        if self.is_acp {
            acp::respond(acp::internal_error(), &self.method, &self.headers)
        } else {
            ucp::internal_response(&self.request_id())
        }
    }
}

pub(super) async fn guard(State(edge): State<Edge>, request: Request, next: Next) -> Response {
    let form = Form::of(&request);
    let announced =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > u64::try_from(edge.body_bytes).unwrap_or(u64::MAX)) {
        return form.too_large();
    }
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, edge.body_bytes).await {
        Ok(body) => body,
        Err(error) if is_limit(&error) => return form.too_large(),
        // It breaks off, or its chunks are none.
        Err(_) => return form.unread(),
    };
    let request = Request::from_parts(parts, Body::from(body));
    let Ok(response) = edge.tasks.spawn(next.run(request)).await else {
        tracing::error!(shop = %edge.face.id, "a request panicked");
        return form.broken();
    };
    response
}

/// Whether a body is larger than allowed, rather than broken.
fn is_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
