//! Refusals of the protocol: the one place where they become status, code and text.
//!
//! The body is flat (`code`, `content`) and repeats the same text in `messages[]`, since some clients read
//! only that. Texts are constant: times go into headers.

use std::borrow::Cow;

use axum::{
    extract::rejection::{BytesRejection, FailedToBufferBody},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use serde_json::json;

use super::{messages::Message, reader::Refusal, version::Version};
use crate::{
    catalog, checkout,
    idempotency::{Answer, policy},
    platform,
    protocol::{ShopFace, json},
};

/// A call that was refused by the protocol, or that could not be answered now.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The header that names the caller is missing or wrong.
    Agent(&'static str),
    /// The platform's profile could not be used.
    Profile(platform::Error),
    /// The platform speaks another version.
    VersionUnsupported,
    /// Both sides have nothing in common that the operation needs: an outcome, not a refusal.
    Incompatible {
        /// The version spoken.
        version: Version,
        /// What is missing.
        capability: &'static str,
    },
    /// Another header is wrong.
    Header(&'static str),
    /// The body says it is no JSON.
    MediaType,
    /// The body is no JSON that is read here.
    Json(json::Error),
    /// The body has not the form of the operation.
    Body(Refusal),
    /// The body is too large.
    TooLarge,
    /// The body could not be read.
    Unread,
    /// No such address.
    NoRoute,
    /// The address takes other methods.
    NoMethod,
    /// The key was used for another request.
    Conflict,
    /// The first request with the key is still running.
    InFlight,
    /// A write on a session that has ended.
    Finished,
    /// The domain could not answer now.
    Checkout(checkout::Error),
    /// The shop could not be asked for its catalogue.
    Catalog(catalog::Error),
    /// More ids than one look-up takes.
    TooManyIds,
    /// A fault of ours.
    Internal,
}

impl From<checkout::Error> for Failure {
    fn from(error: checkout::Error) -> Self {
        Self::Checkout(error)
    }
}

impl From<catalog::Error> for Failure {
    fn from(error: catalog::Error) -> Self {
        Self::Catalog(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Body(refusal)
    }
}

impl From<BytesRejection> for Failure {
    fn from(rejection: BytesRejection) -> Self {
        if let BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) = rejection {
            Self::TooLarge
        } else {
            Self::Unread
        }
    }
}

/// What a failure tells the client.
struct Told {
    status: u16,
    code: &'static str,
    content: Cow<'static, str>,
    severity: &'static str,
    path: Option<String>,
    retry_after_secs: Option<u64>,
    continues: bool,
}

impl Told {
    const fn new(status: u16, code: &'static str, content: &'static str) -> Self {
        Self {
            status,
            code,
            content: Cow::Borrowed(content),
            severity: "recoverable",
            path: None,
            retry_after_secs: None,
            continues: false,
        }
    }

    fn ends(self) -> Self {
        Self { severity: "unrecoverable", ..self }
    }

    fn retry(self, secs: u64) -> Self {
        Self { retry_after_secs: Some(secs), ..self }
    }

    /// With the way to the shop's web site.
    fn continues(self) -> Self {
        Self { continues: true, ..self }
    }

    fn saying(self, content: impl Into<Cow<'static, str>>) -> Self {
        Self { content: content.into(), ..self }
    }
}

fn unavailable(secs: u64) -> Told {
    let text = "The request could not be answered now. Send the same request again.";
    Told::new(503, "service_unavailable", text).retry(secs)
}

fn told(failure: &Failure) -> Told {
    match failure {
        Failure::Agent(what) => Told::new(400, "invalid_profile_url", what).continues(),
        Failure::Profile(error) => match error {
            platform::Error::InvalidUrl(_) => {
                Told::new(400, "invalid_profile_url", "").saying(error.to_string()).continues()
            }
            platform::Error::Unreachable(_) => {
                Told::new(424, "profile_unreachable", "The platform profile could not be fetched.")
                    .continues()
            }
            platform::Error::Malformed(_) => {
                Told::new(422, "profile_malformed", "").saying(error.to_string()).continues()
            }
        },
        Failure::VersionUnsupported => {
            let served: Vec<_> = Version::ALL.iter().map(|version| version.text()).collect();
            let text = format!(
                "The protocol version of the platform profile is not served at this address. Served: {}.",
                served.join(", ")
            );
            Told::new(422, "version_unsupported", "").saying(text).continues()
        }
        Failure::Incompatible { capability, .. } => {
            let text = format!("The platform profile does not list {capability} in a version served here.");
            Told::new(200, "capabilities_incompatible", "").saying(text).ends().continues()
        }
        Failure::Header(what) => Told::new(400, "invalid_request", what),
        Failure::MediaType => Told::new(415, "invalid_request", "The body must be application/json."),
        Failure::Json(error) => {
            Told::new(400, "invalid_request", "").saying(format!("The body is refused: {error}."))
        }
        Failure::Body(refusal) => Told {
            path: Some(refusal.path.clone()),
            ..Told::new(400, "invalid_request", "").saying(format!("{}.", refusal.message))
        },
        Failure::TooLarge => Told::new(413, "request_too_large", "The body is too large."),
        Failure::Unread => Told::new(400, "invalid_request", "The body could not be read."),
        Failure::NoRoute => Told::new(404, "not_found", "There is nothing at this address.").ends(),
        Failure::NoMethod => {
            Told::new(405, "method_not_allowed", "This address does not take this method.").ends()
        }
        Failure::Conflict => Told::new(
            409,
            "idempotency_conflict",
            "This idempotency key was used for another request. Send a new key.",
        ),
        Failure::InFlight => Told::new(
            409,
            "idempotency_in_flight",
            "The first request with this idempotency key is still running. Send the same request again.",
        )
        .retry(policy::IN_FLIGHT_RETRY_SECS),
        Failure::Finished => {
            Told::new(409, "invalid_state", "This checkout has ended: it cannot be changed any more.").ends()
        }
        Failure::Checkout(error) => {
            let (checkout::Error::Busy
            | checkout::Error::Store(_)
            | checkout::Error::State(_)
            | checkout::Error::BrokeOff) = error;
            unavailable(error.retry_after_secs())
        }
        Failure::Catalog(error) => unavailable(error.retry_after_secs()),
        Failure::TooManyIds => {
            Told::new(400, "request_too_large", "There are more ids than one request may ask for.")
        }
        Failure::Internal => {
            Told::new(500, "internal_error", "Something went wrong here. Nothing is known to have changed.")
                .ends()
        }
    }
}

#[derive(Serialize)]
struct Flat<'a> {
    code: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    continue_url: Option<String>,
    messages: [Message; 1],
}

/// The page of the shop that a buyer can always go to.
pub(crate) fn home(face: &ShopFace) -> String {
    if face.home_url.scheme() == "https" {
        face.home_url.to_string()
    } else {
        format!("{}/", face.https_base)
    }
}

/// The answer to a failure.
pub(crate) fn answer(face: &ShopFace, failure: &Failure) -> Answer {
    let told = told(failure);
    let continue_url = told.continues.then(|| home(face));
    if let Failure::Incompatible { version, .. } = failure {
        let message = Message::error(told.code, told.content, told.severity, None);
        let body = json!({
            "ucp": {"version": version.text(), "status": "error", "capabilities": {}},
            "messages": [message],
            "continue_url": continue_url,
        });
        return Answer::json(told.status, &body);
    }
    flat(told, continue_url)
}

fn flat(told: Told, continue_url: Option<String>) -> Answer {
    let message = Message::error(told.code, told.content.clone(), told.severity, told.path);
    let body = Flat { code: told.code, content: &told.content, continue_url, messages: [message] };
    let mut answer = Answer::json(told.status, &body);
    if let Some(secs) = told.retry_after_secs {
        answer.headers.push(("retry-after".to_owned(), secs.to_string()));
    }
    answer
}

/// Says once in the log what the client is not told.
pub(crate) fn log(failure: &Failure, request_id: &str) {
    match failure {
        Failure::Checkout(error) => {
            let cause: &(dyn std::error::Error + 'static) = error;
            match error.fault() {
                checkout::Fault::Passing => tracing::info!(request_id, cause, "a request has to come again"),
                checkout::Fault::Around => {
                    tracing::warn!(request_id, cause, "a request cannot be served now");
                }
                checkout::Fault::Ours => tracing::error!(request_id, cause, "a request could not be served"),
            }
        }
        Failure::Catalog(error) => {
            let cause: &(dyn std::error::Error + 'static) = error;
            tracing::warn!(request_id, cause, "a request cannot be served now");
        }
        Failure::Internal => tracing::error!(request_id, "a call broke off"),
        Failure::Agent(_)
        | Failure::Profile(_)
        | Failure::VersionUnsupported
        | Failure::Incompatible { .. }
        | Failure::Header(_)
        | Failure::MediaType
        | Failure::Json(_)
        | Failure::Body(_)
        | Failure::TooLarge
        | Failure::TooManyIds
        | Failure::Unread
        | Failure::NoRoute
        | Failure::NoMethod
        | Failure::Conflict
        | Failure::InFlight
        | Failure::Finished => {}
    }
}

/// The HTTP answer, with the headers that every answer has.
pub(crate) fn respond(answer: Answer, request_id: &str) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let own = answer.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain([("request-id", request_id)]) {
        if let (Ok(name), Ok(value)) =
            (header::HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        {
            headers.insert(name, value);
        }
    }
    response
}

/// The answer to a body that the outer layer found too large (413).
#[must_use]
pub fn too_large_response(request_id: &str) -> Response {
    respond(flat(told(&Failure::TooLarge), None), request_id)
}

/// The answer to a body that broke off or is wrongly framed (400).
#[must_use]
pub fn unread_response(request_id: &str) -> Response {
    respond(flat(told(&Failure::Unread), None), request_id)
}

/// The answer after a panic (500).
#[must_use]
pub fn internal_response(request_id: &str) -> Response {
    respond(flat(told(&Failure::Internal), None), request_id)
}

#[cfg(test)]
mod tests {
    use super::{super::samples, *};

    /// Requirements: U-041, U-047.
    #[test]
    fn a_refusal_is_flat_and_repeats_itself_in_messages() {
        let refusal = Refusal { path: "$.line_items".into(), message: "line_items is missing".into() };
        let state = checkout::state::Error::Moved;
        for (failure, status, code, retry) in [
            (Failure::Header("x"), 400, "invalid_request", None),
            (Failure::MediaType, 415, "invalid_request", None),
            (Failure::Body(refusal), 400, "invalid_request", None),
            (Failure::TooLarge, 413, "request_too_large", None),
            (Failure::NoRoute, 404, "not_found", None),
            (Failure::NoMethod, 405, "method_not_allowed", None),
            (Failure::Conflict, 409, "idempotency_conflict", None),
            (Failure::InFlight, 409, "idempotency_in_flight", Some("2")),
            (Failure::Finished, 409, "invalid_state", None),
            (Failure::Checkout(checkout::Error::Busy), 503, "service_unavailable", Some("1")),
            (Failure::Checkout(state.into()), 503, "service_unavailable", Some("2")),
            (Failure::Internal, 500, "internal_error", None),
        ] {
            let answer = answer(&samples::face(), &failure);
            let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!((answer.status, body["code"].as_str()), (status, Some(code)));
            assert_eq!(body["messages"][0]["code"], code);
            assert_eq!(body["messages"][0]["content"], body["content"]);
            let found = answer.headers.iter().find(|(name, _)| name == "retry-after");
            assert_eq!(found.map(|(_, value)| value.as_str()), retry, "{code}");
        }
    }
}
