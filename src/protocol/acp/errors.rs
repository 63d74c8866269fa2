//! The one place where a failure becomes an ACP error: flat, closed, with a code that programs can read.
//!
//! `acp.md` §6 (statuses, types and codes), D-1, D-3, D-4, D-5, D-33. Texts are constant: the caller's values and
//! the causes inside never show.

use serde::Serialize;

use super::{Version, read::Form};
use crate::{
    checkout::{self, session::Status},
    idempotency::{Answer, policy::IN_FLIGHT_RETRY_SECS},
    protocol::json,
};

/// Seconds after which a caller may ask again about an order that a person has to find out about.
const IN_REVIEW_RETRY_SECS: u64 = 60;

/// Why a request is not answered with a session.
#[derive(Debug)]
pub(super) enum Failure {
    /// No such address.
    UnknownRoute,
    /// The address is there, the method is not.
    WrongMethod {
        /// The methods that are.
        allow: &'static str,
    },
    /// The body is larger than the gateway takes.
    TooLarge,
    /// The body could not be read to its end.
    BodyBroken,
    /// No bearer token, or one that is not valid now.
    Unauthorized,
    /// No `API-Version`.
    VersionMissing,
    /// An `API-Version` that is not spoken here.
    VersionUnsupported,
    /// The body is not announced as JSON.
    MediaType,
    /// A write without `Idempotency-Key`.
    KeyMissing,
    /// An `Idempotency-Key` that cannot be one.
    KeyInvalid,
    /// The body is not JSON that everybody reads alike.
    Json(json::Error),
    /// The key was used for another request.
    KeyConflict {
        /// The status that the version gives it.
        status: u16,
    },
    /// The first request with this key is still running.
    KeyInFlight,
    /// The order of the first request with the key waits for a person.
    KeyInReview,
    /// The body has not the form that the version asks for.
    Form(Form),
    /// No such session, or another agent's.
    SessionNotFound,
    /// A write on a session that has ended.
    Ended(Status),
    /// An item that the shop does not know.
    UnknownItem {
        /// Where the request names it.
        param: String,
    },
    /// An option that is not on offer.
    UnknownOption,
    /// A payment handler that is not on offer.
    UnknownHandler,
    /// Nothing that was asked for can be bought.
    NothingAvailable,
    /// Too many requests.
    RateLimited {
        /// Seconds until the next one may come.
        retry_after_secs: u64,
    },
    /// The service could not answer now.
    Service(checkout::Error),
    /// A fault of ours.
    Internal,
}

impl From<Form> for Failure {
    fn from(form: Form) -> Self {
        Self::Form(form)
    }
}

impl From<checkout::Error> for Failure {
    fn from(error: checkout::Error) -> Self {
        Self::Service(error)
    }
}

const INVALID_REQUEST: &str = "invalid_request";
const PROCESSING_ERROR: &str = "processing_error";
const SERVICE_UNAVAILABLE: &str = "service_unavailable";

#[derive(Debug, Serialize)]
struct Body<'a> {
    r#type: &'static str,
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supported_versions: Option<Vec<&'static str>>,
}

/// An error while it is put together.
struct Draft<'a> {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body<'a>,
}

impl<'a> Draft<'a> {
    const fn new(status: u16, r#type: &'static str, code: &'static str, message: &'a str) -> Self {
        let body = Body { r#type, code, message, param: None, supported_versions: None };
        Self { status, headers: Vec::new(), body }
    }

    const fn refusal(status: u16, code: &'static str, message: &'a str) -> Self {
        Self::new(status, INVALID_REQUEST, code, message)
    }

    fn at(mut self, param: &'a str) -> Self {
        self.body.param = Some(param);
        self
    }

    fn with(mut self, name: &str, value: &impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    fn with_versions(mut self) -> Self {
        self.body.supported_versions =
            Some(Version::ALL.iter().rev().map(|version| version.date()).collect());
        self
    }
}

impl Failure {
    /// The answer: status, headers that matter, body.
    pub(super) fn answer(&self) -> Answer {
        let draft = self.draft();
        Answer { headers: draft.headers, ..Answer::json(draft.status, &draft.body) }
    }

    fn draft(&self) -> Draft<'_> {
        match self {
            Self::UnknownRoute => Draft::refusal(404, "not_found", "There is nothing at this address."),
            Self::WrongMethod { allow } => {
                Draft::refusal(405, "method_not_allowed", "This address does not take this method.")
                    .with("allow", allow)
            }
            Self::TooLarge => Draft::refusal(413, "body_too_large", "The body is too large."),
            Self::BodyBroken => Draft::refusal(400, "invalid", "The body could not be read."),
            Self::Unauthorized => Draft::refusal(401, "unauthorized", "A valid bearer token is required.")
                .with("www-authenticate", &"Bearer"),
            Self::VersionMissing => {
                Draft::refusal(400, "missing_api_version", "The API-Version header is required.")
                    .with_versions()
            }
            Self::VersionUnsupported => {
                Draft::refusal(400, "unsupported_api_version", "This API-Version is not supported.")
                    .with_versions()
            }
            Self::MediaType => {
                Draft::refusal(415, "unsupported_media_type", "The body must be sent as application/json.")
            }
            Self::KeyMissing => {
                Draft::refusal(400, "idempotency_key_required", "The Idempotency-Key header is required.")
            }
            Self::KeyInvalid => Draft::refusal(
                400,
                "invalid_idempotency_key",
                "The Idempotency-Key must be sent once, with 1 to 255 printable ASCII characters and no blanks.",
            ),
            Self::Json(error) => Draft::refusal(400, "invalid_json", &error.message),
            Self::KeyConflict { status } => Draft::refusal(
                *status,
                "idempotency_conflict",
                "This Idempotency-Key was used with another request.",
            ),
            Self::KeyInFlight => Draft::refusal(
                409,
                "idempotency_in_flight",
                "The first request with this Idempotency-Key is still running.",
            )
            .with("retry-after", &IN_FLIGHT_RETRY_SECS),
            Self::KeyInReview => Draft::refusal(
                409,
                "idempotency_in_flight",
                "The order could not be confirmed. The merchant is checking it and decides. Do not order again.",
            )
            .with("retry-after", &IN_REVIEW_RETRY_SECS),
            Self::Form(form) => Draft::refusal(400, form.code, form.message).at(&form.param),
            Self::SessionNotFound => {
                Draft::refusal(404, "session_not_found", "There is no such checkout session.")
            }
            Self::Ended(status) => ended(*status).with("allow", &"GET"),
            Self::UnknownItem { param } => {
                Draft::refusal(400, "invalid_item_id", "The shop does not sell this item.").at(param)
            }
            Self::UnknownOption => Draft::refusal(
                400,
                "invalid_fulfillment_option",
                "This fulfillment option is not offered in this session.",
            )
            .at("$.selected_fulfillment_options[0].option_id"),
            Self::UnknownHandler => {
                Draft::refusal(400, "invalid_handler", "This payment handler is not offered in this session.")
                    .at("$.payment_data.handler_id")
            }
            Self::NothingAvailable => {
                Draft::refusal(422, "out_of_stock", "None of these items can be bought now.")
            }
            Self::RateLimited { retry_after_secs } => {
                Draft::refusal(429, "rate_limited", "Too many requests.")
                    .with("retry-after", retry_after_secs)
            }
            Self::Service(error) => unavailable(error),
            Self::Internal => internal(),
        }
    }
}

const fn ended<'a>(status: Status) -> Draft<'a> {
    match status {
        Status::Completed => {
            Draft::refusal(405, "session_completed", "The session is completed: it can only be read.")
        }
        Status::Canceled => {
            Draft::refusal(405, "session_canceled", "The session is canceled: it can only be read.")
        }
        Status::Expired => {
            Draft::refusal(405, "session_expired", "The session is expired: it can only be read.")
        }
        // A session that goes on is never refused for its end; the answer stays true if it ever is.
        Status::Incomplete | Status::Ready | Status::Escalated | Status::Placing => {
            Draft::refusal(405, "conflict", "The session cannot be changed now.")
        }
    }
}

fn unavailable<'a>(error: &checkout::Error) -> Draft<'a> {
    let draft = match error {
        checkout::Error::Busy => Draft::new(
            503,
            SERVICE_UNAVAILABLE,
            "session_busy",
            "Too many requests wait for this session. Nothing was done.",
        ),
        checkout::Error::Store(_) => Draft::new(
            503,
            SERVICE_UNAVAILABLE,
            "upstream_unavailable",
            "The shop cannot be asked now. Send the same request again.",
        ),
        checkout::Error::State(_) => Draft::new(
            503,
            SERVICE_UNAVAILABLE,
            "state_unavailable",
            "The service cannot answer now. Send the same request again.",
        ),
        checkout::Error::BrokeOff => internal(),
    };
    draft.with("retry-after", &error.retry_after_secs())
}

const fn internal<'a>() -> Draft<'a> {
    Draft::new(500, PROCESSING_ERROR, "internal_error", "The service failed. Send the same request again.")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(answer: &Answer) -> Value {
        serde_json::from_slice(&answer.body).unwrap()
    }

    fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
        answer.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Requirements: A-015.
    #[test]
    fn errors_are_flat_and_closed() {
        let form = Form { code: "invalid", message: "No.", param: "$.buyer.email".into() };
        let answer = Failure::Form(form).answer();
        assert_eq!(answer.status, 400);
        assert_eq!(
            body(&answer),
            json!({"type": "invalid_request", "code": "invalid", "message": "No.", "param": "$.buyer.email"})
        );
    }

    /// Requirements.
    #[test]
    fn version_errors_list_the_newest_first() {
        for failure in [Failure::VersionMissing, Failure::VersionUnsupported] {
            let answer = failure.answer();
            let versions = body(&answer)["supported_versions"].clone();
            assert_eq!(versions[0], Version::NEWEST.date());
            assert_eq!(versions.as_array().unwrap().len(), Version::ALL.len());
        }
    }

    /// Requirements: A-025, D-1, D-3, D-4, D-5, D-33.
    #[test]
    fn statuses_and_headers() {
        for (failure, status, code, head) in [
            (Failure::UnknownRoute, 404, "not_found", None),
            (Failure::WrongMethod { allow: "POST" }, 405, "method_not_allowed", Some(("allow", "POST"))),
            (Failure::TooLarge, 413, "body_too_large", None),
            (Failure::Unauthorized, 401, "unauthorized", Some(("www-authenticate", "Bearer"))),
            (Failure::MediaType, 415, "unsupported_media_type", None),
            (Failure::KeyMissing, 400, "idempotency_key_required", None),
            (Failure::KeyInvalid, 400, "invalid_idempotency_key", None),
            (Failure::KeyConflict { status: 422 }, 422, "idempotency_conflict", None),
            (Failure::KeyInFlight, 409, "idempotency_in_flight", Some(("retry-after", "2"))),
            (Failure::KeyInReview, 409, "idempotency_in_flight", Some(("retry-after", "60"))),
            (Failure::SessionNotFound, 404, "session_not_found", None),
            (Failure::Ended(Status::Completed), 405, "session_completed", Some(("allow", "GET"))),
            (Failure::Ended(Status::Canceled), 405, "session_canceled", Some(("allow", "GET"))),
            (Failure::Ended(Status::Expired), 405, "session_expired", Some(("allow", "GET"))),
            (Failure::UnknownHandler, 400, "invalid_handler", None),
            (Failure::NothingAvailable, 422, "out_of_stock", None),
            (Failure::RateLimited { retry_after_secs: 7 }, 429, "rate_limited", Some(("retry-after", "7"))),
            (Failure::Service(checkout::Error::Busy), 503, "session_busy", Some(("retry-after", "1"))),
            (Failure::Service(checkout::Error::BrokeOff), 500, "internal_error", Some(("retry-after", "2"))),
            (Failure::Internal, 500, "internal_error", None),
        ] {
            let answer = failure.answer();
            assert_eq!((answer.status, body(&answer)["code"].as_str()), (status, Some(code)), "{failure:?}");
            if let Some((name, value)) = head {
                assert_eq!(header(&answer, name), Some(value), "{failure:?}");
            }
        }
    }
}
