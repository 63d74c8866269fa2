//! Availability for everybody: a document for each product (schema.org JSON-LD), and a stream of their changes
//! (Server-Sent Events). Reads only; any page may read both.
//!
//! | address | answers |
//! |---|---|
//! | `GET /availability/{product}` | the document; 304 for its tag; 404; 503 when the shop cannot be asked |
//! | `GET /availability/stream?products=a,b` | an event for each product now, and one for each change; `product=` names one id that has a comma |
//!
//! A product that is called `stream` is found at `/availability/%73tream`.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::get,
};
use futures::stream;
use serde_json::json;
use tokio::time::Instant;
use url::form_urlencoded;

use crate::availability::{Board, Document, Following, LONGEST_ID, MOST_PRODUCTS, News, escaped};

/// How long a page may keep a document.
const MAX_AGE: &str = "public, max-age=10";
/// After how long a client whose stream has ended comes back.
const RETRY: Duration = Duration::from_secs(3);
/// After how many seconds it is worth asking again when there are too many streams.
const FULL_SECS: u64 = 30;
/// Pages of any origin may read this.
const ANYBODY: (HeaderName, HeaderValue) =
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
const NOSNIFF: (HeaderName, HeaderValue) =
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

pub(super) fn router(board: Arc<Board>) -> Router {
    Router::new()
        .route("/availability/stream", get(changes))
        .route("/availability/{product}", get(product))
        .with_state(board)
}

async fn product(
    State(board): State<Arc<Board>>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    // What is no text is no product either.
    let id = id.map(|Path(id)| id).unwrap_or_default();
    match board.document(&id).await {
        Ok(Some(document)) => found(&document, &headers),
        Ok(None) => problem(StatusCode::NOT_FOUND, "No such product is sold here.", None),
        Err(error) => {
            tracing::warn!(%error, "a product's availability could not be told");
            let wait = error.retry_after_secs();
            problem(StatusCode::SERVICE_UNAVAILABLE, "The shop cannot be asked now.", Some(wait))
        }
    }
}

fn found(document: &Document, headers: &HeaderMap) -> Response {
    let kept = HeaderValue::from_str(&document.tag).map(|tag| [(header::ETAG, tag)]);
    let cache = [(header::CACHE_CONTROL, HeaderValue::from_static(MAX_AGE)), ANYBODY, NOSNIFF];
    if is_known(headers, &document.tag) {
        return (StatusCode::NOT_MODIFIED, kept.ok(), cache).into_response();
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/ld+json"))];
    (kept.ok(), cache, kind, document.text.clone()).into_response()
}

/// Whether the caller has what this tag stands for (RFC 9110, 13.1.2: compared weakly).
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    let mut tags = lines.flat_map(|line| line.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// A refusal (RFC 9457).
fn problem(status: StatusCode, detail: &str, retry_secs: Option<u64>) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    let body = escaped(&json!({"title": title, "status": status.as_u16(), "detail": detail}));
    let kind = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ANYBODY,
        NOSNIFF,
    ];
    let retry = retry_secs.map(|secs| [(header::RETRY_AFTER, HeaderValue::from(secs))]);
    (status, kind, retry, body).into_response()
}

async fn changes(
    State(board): State<Arc<Board>>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let ids = asked(&query.unwrap_or_default());
    if ids.is_empty() || ids.len() > MOST_PRODUCTS {
        let detail = format!("Name 1 to {MOST_PRODUCTS} products: ?products=a,b (product= for one id).");
        return problem(StatusCode::BAD_REQUEST, &detail, None);
    }
    if method == Method::HEAD {
        return streamed(Sse::new(stream::empty::<Result<Event, Infallible>>()).into_response());
    }
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Ok(mut following) = board.follow(ids, last) else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "Too many streams are open.", Some(FULL_SECS));
    };
    let first = match following.first().await {
        Ok(first) => first,
        Err(error) => {
            tracing::warn!(%error, "a stream could not begin");
            let wait = error.retry_after_secs();
            return problem(StatusCode::SERVICE_UNAVAILABLE, "The shop cannot be asked now.", Some(wait));
        }
    };
    let mut ready = VecDeque::from([Event::default().retry(RETRY)]);
    ready.extend(first.into_iter().map(event));
    let until = Instant::now() + board.streams().life;
    let events = stream::unfold(Live { board: Arc::clone(&board), following, ready, until }, Live::event);
    let beats = KeepAlive::new().interval(board.streams().heartbeat);
    streamed(Sse::new(events).keep_alive(beats).into_response())
}

fn streamed(response: Response) -> Response {
    // Some proxies hold a stream back to send it in one piece, unless they are told.
    let direct = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let cache = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    ([ANYBODY, NOSNIFF, direct, cache], response).into_response()
}

/// The products that a query names, each once, in order. No product has an empty id or so long a one.
fn asked(query: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut add = |id: &str| {
        if !id.is_empty() && id.len() <= LONGEST_ID && !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "products" => value.split(',').for_each(&mut add),
            "product" => add(&value),
            _ => {}
        }
    }
    ids
}

fn event((id, news): (String, News)) -> Event {
    let event = Event::default().id(id);
    match news {
        News::Changed(document) => event.event("availability").data(&document.text),
        News::Gone(text) => event.event("gone").data(text),
    }
}

/// A stream that somebody reads. It ends with its time, with the process, or when its reader is gone.
struct Live {
    board: Arc<Board>,
    following: Following,
    ready: VecDeque<Event>,
    until: Instant,
}

impl Live {
    async fn event(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if self.board.streams().ending.is_cancelled() {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            let news = tokio::select! {
                () = self.board.streams().ending.cancelled() => return None,
                () = tokio::time::sleep_until(self.until) => return None,
                news = self.following.next() => news,
            };
            self.ready.extend(news.into_iter().map(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_products_in_a_list_or_one_by_one() {
        for (query, ids) in [
            ("products=a,b,a", vec!["a", "b"]),
            ("products=a%2Cb&product=x%2Cy&other=z", vec!["a", "b", "x,y"]),
            ("products=a+b&products=c", vec!["a b", "c"]),
            ("products=,,&product=", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(asked(query), ids, "{query}");
        }
        assert!(asked(&format!("product={}", "a".repeat(LONGEST_ID + 1))).is_empty());
    }

    #[test]
    fn a_tag_is_known_in_a_list_weakly_or_as_anything() {
        let known = |lines: &[&'static str]| {
            let line = |line: &&'static str| (header::IF_NONE_MATCH, HeaderValue::from_static(line));
            let headers: Vec<_> = lines.iter().map(line).collect();
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name, value);
            }
            is_known(&map, "\"1\"")
        };
        assert!(known(&["\"1\""]) && known(&["W/\"1\""]) && known(&["*"]));
        assert!(known(&["\"0\", \"1\""]) && known(&["\"0\"", "\"1\""]));
        assert!(!known(&[]) && !known(&["1"]) && !known(&["\"11\""]));
    }
}
