//! What one request meets with: the faults that are on, as delays, refusals and damaged answers.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use chrono::{DateTime, Utc};

use super::checkout;
use super::http::{ApiError, JSON, Reply, hang_up, respond};

/// The faults that hit one request.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "faults are independent")]
pub(super) struct Weather {
    pub(super) delay: Duration,
    pub(super) timeout: Duration,
    pub(super) slow: Duration,
    pub(super) http_500: bool,
    pub(super) html: bool,
    pub(super) maintenance: bool,
    pub(super) limiter: bool,
    pub(super) dead_token: bool,
    pub(super) noise: bool,
    pub(super) lost: bool,
}

impl Weather {
    /// The answer of a shop that does nothing today.
    pub(super) fn refusal(&self, now: DateTime<Utc>, json: bool) -> Option<Response> {
        if self.maintenance {
            let text = "Briefly unavailable for scheduled maintenance. Check back in a minute.";
            let headers = [("retry-after".to_owned(), "600".to_owned())];
            if json {
                let body = ApiError::new(503, "wp_die", text).body(None);
                return Some(respond(503, JSON, body.to_string(), &headers));
            }
            return Some(respond(503, HTML, page(text), &headers));
        }
        if self.http_500 && !json {
            return Some(respond(500, HTML, page("There has been a critical error on this website."), &[]));
        }
        if self.http_500 {
            let error = checkout::fatal();
            return Some(respond(500, JSON, error.body(None).to_string(), &[]));
        }
        if self.limiter {
            let reset = now.timestamp() + 10;
            let reply = exceeded(25, reset, 10);
            return Some(respond(reply.status, JSON, reply.body.to_string(), &reply.headers));
        }
        None
    }

    /// Sends an answer through what is left of the weather.
    pub(super) async fn finish(self, reply: Reply) -> Response {
        if !self.timeout.is_zero() {
            tokio::time::sleep(self.timeout).await;
        }
        if self.lost || reply.lost {
            return hang_up();
        }
        if self.html {
            return respond(200, HTML, page("Just a moment"), &reply.headers);
        }
        if reply.status == 204 {
            return respond(204, JSON, String::new(), &reply.headers);
        }
        let noise = if self.noise {
            "<br />\n<b>Warning</b>:  Undefined array key &quot;x&quot; in <b>plugin.php</b> on line <b>7</b><br />\n"
        } else {
            ""
        };
        let body = if reply.body.is_null() { String::new() } else { reply.body.to_string() };
        respond(reply.status, JSON, format!("{noise}{body}"), &reply.headers)
    }
}

/// Whether a fatal error is told as JSON: to a client that says so, or that sends JSON.
pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    let says = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains("application/json"))
    };
    says("accept") || says("content-type")
}

pub(super) const HTML: &str = "text/html; charset=UTF-8";

/// A page of the shop.
pub(super) fn page(text: &str) -> String {
    format!("<!DOCTYPE html>\n<html><head><title>{text}</title></head><body><h1>{text}</h1></body></html>\n")
}

/// The limiter's refusal.
pub(super) fn exceeded(limit: i64, reset: i64, after: i64) -> Reply {
    let message = format!("Too many requests. Please wait {after} seconds before trying again.");
    let error = ApiError::new(400, "rate_limit_exceeded", message);
    Reply::new(400, error.body(None))
        .header("ratelimit-limit", limit.to_string())
        .header("ratelimit-remaining", "0")
        .header("ratelimit-reset", reset.to_string())
        .header("ratelimit-retry-after", after.to_string())
}
