//! The addresses and the way of a request: who calls → version → body and its type → key → JSON → claim → form →
//! service → answer (`acp.md` D-9).

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{FromRequest as _, Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::Response,
    routing::{any, get, post},
};
use serde_json::Value;

use super::{
    Acp, PROTOCOL, Version, discovery,
    errors::Failure,
    headers::{self, IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, REQUEST_ID},
    read::Form,
    render, v2026_04_17,
};
use crate::{
    checkout::{
        Fault,
        command::{Change, Completion},
        ids::{CallerId, SessionId},
        outcome::{Operation, Outcome, RenderContext},
        service::{Call, Service},
    },
    clock::Ids,
    idempotency::{Answer, Decision, Key, policy},
    protocol::{ShopFace, json},
};

/// Longest request id that is repeated.
const MAX_REQUEST_ID: usize = 1024;

/// All addresses of ACP: discovery, the checkout under `/acp`, and the checkout at the root.
pub fn router(acp: Arc<Acp>) -> Router {
    Router::new()
        .route("/.well-known/acp.json", get(discover).fallback(only_get))
        .nest("/acp", checkout().fallback(unknown))
        .merge(checkout())
        .route("/acp/", any(unknown))
        .route("/checkout_sessions/", any(unknown))
        .route("/checkout_sessions/{id}/", any(unknown))
        .route("/checkout_sessions/{id}/{*rest}", any(unknown))
        .with_state(acp)
}

fn checkout() -> Router<Arc<Acp>> {
    Router::new()
        .route("/checkout_sessions", post(create).fallback(only_post))
        .route("/checkout_sessions/{id}", get(read).post(update).fallback(only_get_and_post))
        .route("/checkout_sessions/{id}/complete", post(complete).fallback(only_post))
        .route("/checkout_sessions/{id}/cancel", post(cancel).fallback(only_post))
}

/// Whether a person has to find out about the order of a session. One that cannot be read now is only in the making.
async fn is_unconfirmed(service: &Arc<Service>, caller: &CallerId, id: Option<&SessionId>) -> bool {
    let Some(id) = id else { return false };
    matches!(service.get(caller, id).await, Ok(Outcome::Session(session)) if session.is_unconfirmed())
}

/// A write, and the session that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    /// Makes a session.
    Create,
    /// Changes it.
    Update(SessionId),
    /// Places its order.
    Complete(SessionId),
    /// Gives it up.
    Cancel(SessionId),
}

impl Write {
    const fn operation(&self) -> Operation {
        match self {
            Self::Create => Operation::Create,
            Self::Update(_) => Operation::Update,
            Self::Complete(_) => Operation::Complete,
            Self::Cancel(_) => Operation::Cancel,
        }
    }

    const fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Create => None,
            Self::Update(id) | Self::Complete(id) | Self::Cancel(id) => Some(id),
        }
    }
}

/// What a write asks the service for.
#[derive(Debug)]
pub(super) enum Command {
    /// Makes a session.
    Create(Box<Change>),
    /// Changes it.
    Update(SessionId, Box<Change>),
    /// Places its order.
    Complete(SessionId, Box<Completion>),
    /// Gives it up.
    Cancel(SessionId),
}

/// An answer, and whether it was given before.
struct Given {
    answer: Answer,
    replayed: bool,
}

impl Given {
    const fn now(answer: Answer) -> Self {
        Self { answer, replayed: false }
    }
}

async fn create(State(acp): State<Arc<Acp>>, request: Request) -> Response {
    serve_write(&acp, Write::Create, request).await
}

async fn update(State(acp): State<Arc<Acp>>, id: Id, request: Request) -> Response {
    serve_write(&acp, Write::Update(session_id(id)), request).await
}

async fn complete(State(acp): State<Arc<Acp>>, id: Id, request: Request) -> Response {
    serve_write(&acp, Write::Complete(session_id(id)), request).await
}

async fn cancel(State(acp): State<Arc<Acp>>, id: Id, request: Request) -> Response {
    serve_write(&acp, Write::Cancel(session_id(id)), request).await
}

async fn serve_write(acp: &Acp, write: Write, request: Request) -> Response {
    let exchange = Exchange::of(request.method(), request.headers());
    let given =
        answer_write(acp, write, request).await.unwrap_or_else(|failure| Given::now(refuse(&failure)));
    exchange.respond(given.answer, given.replayed)
}

async fn answer_write(acp: &Acp, write: Write, request: Request) -> Result<Given, Failure> {
    let headers = request.headers().clone();
    let (caller, version) = who(&acp.face, &headers)?;
    let bytes = body(request).await?;
    let (key, body) = what(version, &headers, &write, &bytes, acp.json_depth)?;

    let operation = write.operation();
    let policy = version.policy();
    let compared = policy.compared(policy::Body::Rest { raw: &bytes, json: body.as_ref() });
    let service = &acp.service;
    let claim = match service.admit(&caller, operation, write.session(), key.as_ref(), &compared).await? {
        Decision::Run(claim) => claim,
        Decision::Replay(answer) => return Ok(Given { answer, replayed: policy.marks_replays }),
        Decision::Conflict => return Err(Failure::KeyConflict { status: policy.conflict_status }),
        Decision::InFlight { placing } => {
            let id = write.session().filter(|_| placing);
            let unconfirmed = Box::pin(is_unconfirmed(service, &caller, id)).await;
            return Err(if unconfirmed { Failure::KeyInReview } else { Failure::KeyInFlight });
        }
    };

    let (command, details) = match parse(acp, version, write, body.as_ref()) {
        Ok(parsed) => parsed,
        Err(form) => return Ok(Given::now(service.finish(claim, Failure::Form(form).answer()).await?)),
    };
    let render = RenderContext {
        protocol: PROTOCOL.to_owned(),
        version: version.date().to_owned(),
        operation,
        details,
    };
    let call = Call { caller, claim, render };
    let answer = match command {
        Command::Create(change) => service.create(call, *change).await?,
        Command::Update(id, change) => service.update(call, id, *change).await?,
        Command::Complete(id, completion) => service.complete(call, id, *completion).await?,
        Command::Cancel(id) => service.cancel(call, id).await?,
    };
    Ok(Given::now(answer))
}

/// Who calls, and in which version.
fn who(face: &ShopFace, headers: &HeaderMap) -> Result<(CallerId, Version), Failure> {
    Ok((headers::caller(face, headers)?, headers::version(headers)?))
}

/// The key of a write and its body; a cancellation may come without one.
fn what(
    version: Version,
    headers: &HeaderMap,
    write: &Write,
    bytes: &[u8],
    json_depth: usize,
) -> Result<(Option<Key>, Option<Value>), Failure> {
    let bodiless = bytes.is_empty() && matches!(write, Write::Cancel(_));
    if !bodiless {
        headers::media_type(headers)?;
    }
    let key = headers::key(headers, version.policy())?;
    let body = if bodiless { None } else { Some(json::parse(bytes, json_depth).map_err(Failure::Json)?) };
    Ok((key, body))
}

fn parse(acp: &Acp, version: Version, write: Write, body: Option<&Value>) -> Result<(Command, Value), Form> {
    match version {
        Version::V2026_04_17 => v2026_04_17::parse(&acp.face, write, body),
    }
}

async fn read(State(acp): State<Arc<Acp>>, id: Id, request: Request) -> Response {
    let exchange = Exchange::of(request.method(), request.headers());
    let headers = request.headers().clone();
    let answer =
        answer_read(&acp, &session_id(id), &headers).await.unwrap_or_else(|failure| refuse(&failure));
    exchange.respond(answer, false)
}

async fn answer_read(acp: &Acp, id: &SessionId, headers: &HeaderMap) -> Result<Answer, Failure> {
    let (caller, version) = who(&acp.face, headers)?;
    let outcome = acp.service.get(&caller, id).await?;
    let context = RenderContext {
        protocol: PROTOCOL.to_owned(),
        version: version.date().to_owned(),
        operation: Operation::Get,
        details: Value::Null,
    };
    Ok(render(&acp.face, &context, &outcome))
}

async fn discover(State(acp): State<Arc<Acp>>, method: Method, headers: HeaderMap) -> Response {
    let mut answer = discovery::document(&acp.face);
    answer.headers.push(("cache-control".to_owned(), discovery::CACHE_CONTROL.to_owned()));
    respond(answer, &method, &headers)
}

async fn unknown(method: Method, headers: HeaderMap) -> Response {
    respond(Failure::UnknownRoute.answer(), &method, &headers)
}

async fn only_get(method: Method, headers: HeaderMap) -> Response {
    respond(Failure::WrongMethod { allow: "GET" }.answer(), &method, &headers)
}

async fn only_post(method: Method, headers: HeaderMap) -> Response {
    respond(Failure::WrongMethod { allow: "POST" }.answer(), &method, &headers)
}

async fn only_get_and_post(method: Method, headers: HeaderMap) -> Response {
    respond(Failure::WrongMethod { allow: "GET, POST" }.answer(), &method, &headers)
}

type Id = Result<Path<String>, PathRejection>;

/// The id as it stands in the path. One that is no text is no session's id.
fn session_id(id: Id) -> SessionId {
    SessionId::new(id.map(|Path(text)| text).unwrap_or_default())
}

async fn body(request: Request) -> Result<Bytes, Failure> {
    Bytes::from_request(request, &()).await.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Failure::TooLarge
        } else {
            Failure::BodyBroken
        }
    })
}

/// Turns a failure into its answer; what the client is not told goes to the log, once.
fn refuse(failure: &Failure) -> Answer {
    if let Failure::Service(error) = failure {
        let cause: &dyn std::error::Error = error;
        match error.fault() {
            Fault::Passing => tracing::info!(cause, "a request has to come again"),
            Fault::Around => tracing::warn!(cause, "a request cannot be served now"),
            Fault::Ours => tracing::error!(cause, "a request could not be served"),
        }
    }
    failure.answer()
}

/// Sends an answer with the headers that every answer has, for the request with these headers.
#[must_use]
pub fn respond(answer: Answer, method: &Method, headers: &HeaderMap) -> Response {
    Exchange::of(method, headers).respond(answer, false)
}

/// What an answer repeats of its request.
struct Exchange {
    request_id: Option<HeaderValue>,
    key: Option<HeaderValue>,
}

impl Exchange {
    fn of(method: &Method, headers: &HeaderMap) -> Self {
        let usable = |text: &str| (1..=MAX_REQUEST_ID).contains(&text.len());
        let sent = headers.get(REQUEST_ID).filter(|value| value.to_str().is_ok_and(usable));
        let request_id = sent.cloned().or_else(|| HeaderValue::try_from(Ids.uuid()).ok());
        let key = headers.get(IDEMPOTENCY_KEY).filter(|_| method == Method::POST).cloned();
        Self { request_id, key }
    }

    fn respond(self, answer: Answer, replayed: bool) -> Response {
        let mut response = Response::new(Body::from(answer.body));
        *response.status_mut() =
            StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in &answer.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        if let Some(id) = self.request_id {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(key) = self.key {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        if replayed {
            headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::acp::samples;

    const AGENT: (&str, &str) = ("authorization", "Bearer test-token");
    const VERSION: (&str, &str) = ("api-version", "2026-04-17");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const KEY: (&str, &str) = ("idempotency-key", "k1");

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn refused(pairs: &[(&'static str, &str)], write: &Write, body: &[u8]) -> Option<u16> {
        let headers = headers(pairs);
        let result = who(&samples::face(), &headers)
            .and_then(|(_, version)| what(version, &headers, write, body, 32).map(drop));
        result.err().map(|failure| failure.answer().status)
    }

    /// Requirements: D-9.
    #[test]
    fn the_first_thing_that_is_wrong_is_told() {
        let cancel = || Write::Cancel(SessionId::new("chk_1"));
        for (pairs, write, body, status) in [
            (&[][..], Write::Create, &b"{"[..], Some(401)),
            (&[VERSION, JSON, KEY], Write::Create, b"{}", Some(401)),
            (&[AGENT], Write::Create, b"{", Some(400)),
            (&[AGENT, VERSION], Write::Create, b"{", Some(415)),
            (&[AGENT, VERSION, JSON], Write::Create, b"{", Some(400)),
            (&[AGENT, VERSION, JSON, KEY], Write::Create, b"{", Some(400)),
            (&[AGENT, VERSION, JSON, KEY], Write::Create, b"", Some(400)),
            (&[AGENT, VERSION, JSON, KEY], Write::Create, b"{}", None),
            (&[AGENT, VERSION, KEY], Write::Create, b"", Some(415)),
            (&[AGENT, VERSION, KEY], cancel(), b"", None),
            (&[AGENT, VERSION, KEY], cancel(), b"{}", Some(415)),
            (&[AGENT, VERSION], cancel(), b"", Some(400)),
        ] {
            assert_eq!(refused(pairs, &write, body), status, "{pairs:?} {write:?}");
        }
    }

    /// Requirements, D-6, D-7.
    #[test]
    fn every_answer_repeats_its_request() {
        let sent = headers(&[("request-id", "r1"), KEY]);
        let answer = Failure::WrongMethod { allow: "POST" }.answer();
        let response = respond(answer.clone(), &Method::POST, &sent);
        let get = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(response.status(), 405);
        assert_eq!((get("request-id"), get("idempotency-key")), (Some("r1"), Some("k1")));
        assert_eq!((get("content-type"), get("cache-control")), (Some("application/json"), Some("no-store")));
        assert_eq!((get("allow"), get("idempotent-replayed")), (Some("POST"), None));

        let response = respond(answer.clone(), &Method::GET, &headers(&[KEY]));
        assert!(!response.headers()["request-id"].is_empty());
        assert!(!response.headers().contains_key("idempotency-key"));

        let replay = Exchange::of(&Method::POST, &sent).respond(answer, true);
        assert_eq!(replay.headers()["idempotent-replayed"], "true");
    }
}
