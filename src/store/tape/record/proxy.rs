//! The way through: a call goes to the shop as it came, its answer comes back as it was given, and both are
//! copied.
//!
//! - From the moment that the call is sent, the work is a task of its own: a client that hangs up cancels
//!   nothing, and the exchange is recorded if the shop answers.
//! - Chunks are passed on as they come. Only the end of an answer waits until its entry stands in the file: an
//!   answer that a client has in full is recorded.
//! - Nothing is repeated, no redirect is followed, and every call has a connection of its own, so that no
//!   idle one can swallow it.

use std::io;
use std::sync::{Arc, atomic::Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header, request::Parts};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::{
    Inner,
    entry::{Answered, Asked, Kept, Lines},
};
use crate::net;

/// How long a call may take in all: longer than any shop and any client waits.
const DEADLINE: Duration = Duration::from_mins(10);
/// How many chunks may wait for a slow client.
const WAITING: usize = 16;

/// Headers of one connection, not of the message.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

type Chunk = Result<Bytes, io::Error>;

/// Passes one call on.
pub(super) async fn forward(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let started = inner.moment();
    let (parts, body) = request.into_parts();
    if parts.method == Method::CONNECT {
        return refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "record_no_tunnel",
            "This is no proxy for other hosts.",
        );
    }
    let mut kept = Kept::default();
    let mut chunks = body.into_data_stream();
    let mut front: Vec<Bytes> = Vec::new();
    while !kept.is_cut() {
        match chunks.next().await {
            None => break,
            Some(Ok(chunk)) => {
                kept.push(&chunk);
                front.push(chunk);
            }
            Some(Err(_)) => {
                return refuse(StatusCode::BAD_REQUEST, "record_request_broke", "The request broke off.");
            }
        }
    }
    let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().unwrap_or_default().to_owned());
    let mut headers = passed_on(&parts.headers);
    headers.remove(header::HOST);
    // A compressed answer could not be scrubbed.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let mut call = inner.client.request(parts.method.clone(), inner.address(&parts)).timeout(DEADLINE);
    if kept.is_cut() {
        let passed = kept.counter();
        let chunks = chunks.inspect(move |chunk| {
            passed.fetch_add(chunk.as_ref().map_or(0, Bytes::len), Ordering::Relaxed);
        });
        let front = futures::stream::iter(front.into_iter().map(Ok));
        call = call.body(reqwest::Body::wrap_stream(front.chain(chunks)));
    } else {
        headers.remove(header::CONTENT_LENGTH);
        if kept.size() > 0 {
            call = call.body(front.concat());
        } else if parts.method != Method::GET && parts.method != Method::HEAD {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }
    let asked = Asked {
        started,
        method: parts.method.to_string(),
        path,
        query,
        version: version(parts.version),
        headers: lines(&parts.headers),
        body: kept,
    };
    let (reply, answer) = oneshot::channel();
    let work = exchange(Arc::clone(&inner), call.headers(headers), parts.method, asked, reply);
    inner.tracker.spawn(work);
    answer.await.unwrap_or_else(|_| broken())
}

fn broken() -> Response {
    refuse(StatusCode::BAD_GATEWAY, "record_shop_broke_off", "The shop did not answer, or not to the end.")
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    (status, axum::Json(json!({ "code": code, "message": message }))).into_response()
}

/// Sends, passes the answer on, and records.
async fn exchange(
    inner: Arc<Inner>,
    call: reqwest::RequestBuilder,
    method: Method,
    asked: Asked,
    reply: oneshot::Sender<Response>,
) {
    let asked = inner.learn(asked).await;
    let Some(asked) = asked else { return };
    let begun = Instant::now();
    let mut response = match call.send().await.map_err(|error| net::Error::from(error.without_url())) {
        Ok(response) => response,
        Err(error @ (net::Error::Connect(_) | net::Error::Build(_))) => {
            // Nothing was sent: there is no exchange to record.
            tracing::warn!(%error, "the shop cannot be reached");
            let text = "The shop cannot be reached; nothing was sent to it.";
            drop(reply.send(refuse(StatusCode::BAD_GATEWAY, "record_shop_unreachable", text)));
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "the shop did not answer");
            inner.record(asked, lost(ms(begun))).await;
            drop(reply.send(broken()));
            return;
        }
    };
    let wait_ms = ms(begun);
    let receiving = Instant::now();
    let status = response.status();
    let headers = lines(response.headers());
    let bodiless = method == Method::HEAD
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        || response.content_length() == Some(0);
    let wanted = response.content_length().and_then(|length| usize::try_from(length).ok());
    let (sender, receiver) = mpsc::channel::<Chunk>(WAITING);
    let passed = answer(&response, receiver);
    let mut reply = Some(reply);
    let mut passed = Some(passed);
    if !bodiless {
        give(&mut reply, &mut passed);
    }
    let mut kept = Kept::default();
    let mut last = None;
    let mut heard = true;
    let whole = loop {
        match response.chunk().await {
            Ok(None) => break true,
            Ok(Some(chunk)) => {
                kept.push(&chunk);
                if wanted.is_some_and(|wanted| kept.size() >= wanted) {
                    last = Some(chunk);
                } else if heard {
                    heard = sender.send(Ok(chunk)).await.is_ok();
                }
                // Nobody listens any more, and nothing more would be kept.
                if !heard && kept.is_cut() {
                    break true;
                }
            }
            Err(error) => {
                tracing::warn!(error = %error.without_url(), "the shop's answer broke off");
                break false;
            }
        }
    };
    let answered = if whole {
        Answered {
            status: status.as_u16(),
            reason: status.canonical_reason().unwrap_or_default().to_owned(),
            version: version(response.version()),
            headers,
            body: kept,
            wait_ms,
            receive_ms: ms(receiving),
        }
    } else {
        lost(wait_ms)
    };
    inner.record(asked, answered).await;
    let end = match (whole, last) {
        (true, None) => None,
        (true, Some(chunk)) => Some(Ok(chunk)),
        (false, _) => Some(Err(io::Error::from(io::ErrorKind::ConnectionAborted))),
    };
    if let Some(end) = end {
        drop(sender.send(end).await);
    }
    give(&mut reply, &mut passed);
}

/// Gives the answer to the client, once.
fn give(reply: &mut Option<oneshot::Sender<Response>>, response: &mut Option<Response>) {
    if let Some((reply, response)) = reply.take().zip(response.take()) {
        drop(reply.send(response));
    }
}

fn lost(wait_ms: u64) -> Answered {
    Answered {
        status: 0,
        reason: String::new(),
        version: String::new(),
        headers: Lines::new(),
        body: Kept::default(),
        wait_ms,
        receive_ms: 0,
    }
}

fn answer(response: &reqwest::Response, chunks: mpsc::Receiver<Chunk>) -> Response {
    let body = futures::stream::unfold(chunks, |mut chunks| async move {
        let chunk = chunks.recv().await?;
        Some((chunk, chunks))
    });
    let mut passed = Response::new(Body::from_stream(body));
    *passed.status_mut() = response.status();
    *passed.headers_mut() = passed_on(response.headers());
    passed
}

/// The headers without those of the connection.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|list| list.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    let mut passed = HeaderMap::new();
    for (name, value) in headers {
        if !HOP_BY_HOP.contains(&name.as_str()) && !named.iter().any(|hop| hop == name.as_str()) {
            passed.append(name, value.clone());
        }
    }
    passed
}

/// Header lines as they are recorded: those of the message.
fn lines(headers: &HeaderMap) -> Lines {
    let passed = passed_on(headers);
    let lines = passed.iter().filter(|(name, _)| *name != header::HOST);
    lines
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn version(version: Version) -> String {
    format!("{version:?}")
}

fn ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Inner {
    /// Where a call goes at the shop.
    fn address(&self, parts: &Parts) -> String {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        format!("{}{path}", self.shop)
    }
}
