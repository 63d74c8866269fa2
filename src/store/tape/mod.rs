//! The tape: recorded exchanges with a shop (HAR 1.2), played as if the shop were there.
//!
//! In: HAR 1.2 files, one scenario each, as browsers, proxies and `tillgate record` write them. Out: a router
//! that answers Store API and wc/v3 calls.
//!
//! - Exchanges that share a cart form a *thread* (`thread.rs`). A call without token gets one of the tape's
//!   own, which its first write binds to a thread; a thread is played once, for one buyer.
//! - A live call must equal the recorded one, but for a short list of differences (`matching.rs`).
//! - Writes keep their order; reads may be skipped or repeated (`player.rs`). Waiting is not replayed.
//! - The tape counts as a shop whose orders can be looked for with a wc/v3 key. Such a look may come where
//!   none was recorded: it then finds the orders whose `POST /checkout` was answered 200 or 202 with an order id
//!   so far (`orders.rs`).
//! - No recorded token reaches a caller; correlation id and stand-ins come back as the caller's own
//!   (`answer.rs`).
//! - An answer that the recorded client never saw (status 0) breaks off here too.
//!
//! A call that matches nothing is answered with 501 and `tape_no_match` (see [`router`]), and logged as an
//! error: the recording or the gateway changed its behaviour.
//!
//! # Stand-ins
//!
//! A recorder that scrubs a value lists the text that it put there, so that the value may differ when played:
//!
//! ```json
//! {"log": {"version": "1.2", "_tillgate": {"stand_ins": ["buyer-1@scrubbed.invalid"]}, "entries": []}}
//! ```
//!
//! The first live value that meets a stand-in is bound to it for the thread; answers then carry the live one.
//! A stand-in that the caller saw in an answer first means itself, as an order's key does.
//!
//! An entry may list its own in the same way, and say which of them a buyer gives: seeing those in an answer
//! binds nothing, since another buyer gives another value.
//!
//! ```json
//! {"_tillgate": {"stand_ins": ["city-1.scrubbed", "order-key-1.scrubbed"], "personal": ["city-1.scrubbed"]}}
//! ```
//!
//! Entries are played in the order of `startedDateTime`, where all of a file have one. [`record`] writes such
//! files.

mod answer;
mod har;
mod matching;
mod orders;
mod player;
pub mod record;
mod thread;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use self::answer::Reply;
pub use self::har::{EntryError, Error};
use self::matching::Call;
pub use self::player::Tape;

/// The longest request that is read, in bytes.
const LONGEST: usize = 8 << 20;

/// A shop made of recordings: answers every path.
///
/// A call without a match gets 501 with `code` (`tape_no_match`), `message` and `nearest`: the candidate's
/// `file`, `entry` and `comment`, and the first `difference` (`path`, `wanted`, `got`).
pub fn router(tape: Arc<Tape>) -> Router {
    Router::new().fallback(play).with_state(tape)
}

async fn play(State(tape): State<Arc<Tape>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LONGEST).await else {
        return respond(Reply::json(413, None, &json!({ "code": "tape_request_too_long" })));
    };
    let token = parts.headers.get("cart-token").and_then(|token| token.to_str().ok());
    let query = parts.uri.query().unwrap_or_default();
    respond(tape.play(Call::new(parts.method.as_str(), parts.uri.path(), query, token, &body)))
}

fn respond(reply: Reply) -> Response {
    let Reply::Answer { status, headers, body } = reply else { return broken_off() };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_IMPLEMENTED);
    let mut response = (status, body).into_response();
    response.headers_mut().remove(axum::http::header::CONTENT_TYPE);
    for (name, value) in headers {
        // Lines that are no HTTP headers (":status" in browsers' files) are left out.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// An answer whose body never comes: the connection ends in the middle of it.
fn broken_off() -> Response {
    let end = std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
    let body = Body::from_stream(futures::stream::iter([Err::<Vec<u8>, _>(end)]));
    ([(CONTENT_LENGTH, "1")], body).into_response()
}
