//! Addresses, and the visible path of a request: size → route → version and negotiation → headers → JSON →
//! claim → form → use case → answer (`product.md` §2, §3).

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State, rejection::BytesRejection, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
    routing::{any, get, post},
};
use serde_json::Value;

use super::{
    PROTOCOL, Ucp,
    catalog::{self, Browse},
    errors::{self, Failure},
    headers,
    negotiation::{self, CHECKOUT, Greeting},
    profile, render,
    version::Version,
};
use crate::{
    checkout::{
        ids::SessionId,
        outcome::{Operation, Outcome, RenderContext},
        service::Call,
        session::Status,
    },
    idempotency::{Answer, Decision, policy::Body},
    protocol::json,
};

/// What a handler knows beside the request.
#[derive(Clone)]
struct At {
    ucp: Arc<Ucp>,
    /// The version that the address is fixed to; `None` lets the platform's profile decide.
    fixed: Option<Version>,
}

type Sent = Result<Bytes, BytesRejection>;
type Id = Result<Path<String>, PathRejection>;

/// All addresses of UCP: the profiles, and the checkout routes below `/ucp`, below each version and at the
/// root. Below `/ucp` and the versions everything else is refused in UCP's own body.
pub fn router(ucp: Arc<Ucp>) -> Router {
    let shared = At { ucp, fixed: None };
    let mut all = Router::new()
        .route("/.well-known/ucp", get(own_profile))
        .merge(checkouts())
        .route("/checkout-sessions/", any(no_route))
        .route("/checkout-sessions/{id}/", any(no_route))
        .route("/checkout-sessions/{id}/{*rest}", any(no_route))
        .method_not_allowed_fallback(no_method)
        .with_state(shared.clone())
        .route("/ucp/", any(no_route).with_state(shared.clone()))
        .nest("/ucp", below(checkouts().merge(catalogs()), shared.clone()));
    for version in Version::ALL {
        let at = At { fixed: Some(version), ..shared.clone() };
        let routes = checkouts().merge(catalogs()).route("/.well-known/ucp", get(own_profile));
        let root = format!("/{}", version.text());
        all = all.route(&format!("{root}/"), any(no_route).with_state(at.clone()));
        all = all.nest(&root, below(routes, at));
    }
    all
}

fn checkouts() -> Router<At> {
    Router::new()
        .route("/checkout-sessions", post(create))
        .route("/checkout-sessions/{id}", get(read).put(update))
        .route("/checkout-sessions/{id}/complete", post(complete))
        .route("/checkout-sessions/{id}/cancel", post(cancel))
}

fn catalogs() -> Router<At> {
    Router::new()
        .route("/catalog/search", post(search))
        .route("/catalog/lookup", post(lookup))
        .route("/catalog/product", post(product))
}

fn below(routes: Router<At>, at: At) -> Router {
    routes.fallback(no_route).method_not_allowed_fallback(no_method).with_state(at)
}

async fn own_profile(State(at): State<At>, headers: HeaderMap) -> Response {
    let version = at.fixed.unwrap_or(Version::CURRENT);
    let document = profile::document(&at.ucp.face, version, at.fixed.is_some());
    let mut response = errors::respond(Answer::json(200, &document), &headers::request_id(&headers));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(profile::CACHE_CONTROL));
    response
}

async fn no_route(State(at): State<At>, headers: HeaderMap) -> Response {
    reply(&at, &headers, Err(Failure::NoRoute))
}

async fn no_method(State(at): State<At>, headers: HeaderMap) -> Response {
    reply(&at, &headers, Err(Failure::NoMethod))
}

async fn create(State(at): State<At>, headers: HeaderMap, body: Sent) -> Response {
    let result = write(&at, Operation::Create, None, &headers, body).await;
    reply(&at, &headers, result)
}

async fn read(State(at): State<At>, id: Id, headers: HeaderMap) -> Response {
    let result = look(&at, id, &headers).await;
    reply(&at, &headers, result)
}

async fn update(State(at): State<At>, id: Id, headers: HeaderMap, body: Sent) -> Response {
    let result = write(&at, Operation::Update, Some(id), &headers, body).await;
    reply(&at, &headers, result)
}

async fn complete(State(at): State<At>, id: Id, headers: HeaderMap, body: Sent) -> Response {
    let result = write(&at, Operation::Complete, Some(id), &headers, body).await;
    reply(&at, &headers, result)
}

async fn cancel(State(at): State<At>, id: Id, headers: HeaderMap, body: Sent) -> Response {
    let result = write(&at, Operation::Cancel, Some(id), &headers, body).await;
    reply(&at, &headers, result)
}

async fn search(State(at): State<At>, headers: HeaderMap, body: Sent) -> Response {
    let result = browse(&at, Browse::Search, &headers, body).await;
    reply(&at, &headers, result)
}

async fn lookup(State(at): State<At>, headers: HeaderMap, body: Sent) -> Response {
    let result = browse(&at, Browse::Lookup, &headers, body).await;
    reply(&at, &headers, result)
}

async fn product(State(at): State<At>, headers: HeaderMap, body: Sent) -> Response {
    let result = browse(&at, Browse::Product, &headers, body).await;
    reply(&at, &headers, result)
}

/// The one place where an answer goes out, and where a failure is logged.
fn reply(at: &At, headers: &HeaderMap, result: Result<Answer, Failure>) -> Response {
    let request_id = headers::request_id(headers);
    let answer = result.unwrap_or_else(|failure| {
        errors::log(&failure, &request_id);
        errors::answer(&at.ucp.face, &failure)
    });
    errors::respond(answer, &request_id)
}

async fn greet(at: &At, headers: &HeaderMap, capability: &'static str) -> Result<Greeting, Failure> {
    negotiation::greet(&at.ucp.face, &at.ucp.platforms, at.fixed, headers, capability).await
}

fn session_id(id: Id) -> Result<SessionId, Failure> {
    id.map(|Path(id)| SessionId::new(id)).map_err(|_| Failure::NoRoute)
}

fn context(greeting: &Greeting, operation: Operation) -> RenderContext {
    RenderContext {
        protocol: PROTOCOL.to_owned(),
        version: greeting.version.text().to_owned(),
        operation,
        details: serde_json::to_value(&greeting.negotiated).unwrap_or(Value::Null),
    }
}

/// A read: no key, no body.
async fn look(at: &At, id: Id, headers: &HeaderMap) -> Result<Answer, Failure> {
    let id = session_id(id)?;
    let greeting = greet(at, headers, CHECKOUT).await?;
    let outcome = Box::pin(at.ucp.service.get(&greeting.caller, &id)).await?;
    Ok(render(&at.ucp.face, &context(&greeting, Operation::Get), &outcome))
}

/// A look into the catalogue: no key, no state.
async fn browse(at: &At, what: Browse, headers: &HeaderMap, body: Sent) -> Result<Answer, Failure> {
    let Ucp { face, catalog, json_depth, .. } = &*at.ucp;
    let raw = body?;
    let greeting = greet(at, headers, what.capability()).await?;
    let body =
        read_body(&raw, headers, *json_depth)?.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    catalog::answer(what, face, catalog, &greeting, &body).await
}

/// Whether an order may still come of the session.
fn in_the_making(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Session(session) if session.status == Status::Placing)
}

/// A write. From the use case on the work is the service's own: a caller that hangs up ends nothing.
async fn write(
    at: &At,
    operation: Operation,
    id: Option<Id>,
    headers: &HeaderMap,
    body: Sent,
) -> Result<Answer, Failure> {
    let Ucp { face, service, json_depth, .. } = &*at.ucp;
    let raw = body?;
    let id = id.map(session_id).transpose()?;
    let greeting = greet(at, headers, CHECKOUT).await?;
    let key = headers::idempotency_key(headers)?;
    let body = read_body(&raw, headers, *json_depth)?;
    let compared = greeting.version.policy().compared(Body::Rest { raw: &raw, json: body.as_ref() });
    let render_context = context(&greeting, operation);
    let mut asked_again = false;
    let claim = loop {
        match service.admit(&greeting.caller, operation, id.as_ref(), key.as_ref(), &compared).await? {
            Decision::Run(claim) => break claim,
            Decision::Replay(answer) => return Ok(answer),
            Decision::Conflict => return Err(Failure::Conflict),
            Decision::InFlight { placing } => {
                let Some(id) = id.as_ref().filter(|_| placing && !asked_again) else {
                    return Err(Failure::InFlight);
                };
                let outcome = Box::pin(service.get(&greeting.caller, id)).await?;
                if in_the_making(&outcome) {
                    return Ok(render(face, &render_context, &outcome));
                }
                // It has ended since: the key, not the session, tells what its answer is.
                asked_again = true;
            }
        }
    };
    let call = Call { caller: greeting.caller, claim, render: render_context };
    let body = body.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let version = greeting.version;
    let answer = match (operation, id) {
        (Operation::Create, _) => match version.parse_change(face, &greeting.negotiated, operation, &body) {
            Ok(change) => Box::pin(service.create(call, change)).await,
            Err(refusal) => service.finish(call.claim, errors::answer(face, &refusal.into())).await,
        },
        (Operation::Update, Some(id)) => {
            match version.parse_change(face, &greeting.negotiated, operation, &body) {
                Ok(change) => Box::pin(service.update(call, id, change)).await,
                Err(refusal) => service.finish(call.claim, errors::answer(face, &refusal.into())).await,
            }
        }
        (Operation::Complete, Some(id)) => match version.parse_completion(face, &body) {
            Ok(completion) => Box::pin(service.complete(call, id, completion)).await,
            Err(refusal) => service.finish(call.claim, errors::answer(face, &refusal.into())).await,
        },
        (Operation::Cancel, Some(id)) => Box::pin(service.cancel(call, id)).await,
        (Operation::Get | Operation::Update | Operation::Complete | Operation::Cancel, _) => {
            return Err(Failure::Internal);
        }
    };
    Ok(answer?)
}

/// The body as JSON; an empty one is none.
fn read_body(raw: &Bytes, headers: &HeaderMap, depth: usize) -> Result<Option<Value>, Failure> {
    if raw.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    headers::content_type(headers)?;
    json::parse(raw, depth).map(Some).map_err(Failure::Json)
}
