//! ACP for the seller over REST: sessions that an agent makes, changes, pays and gives up.
//!
//! In: HTTP requests of an agent with a bearer token. Out: the whole session, or a flat error. Amounts are
//! integers in ISO 4217 minor units, net with the tax apart; discounts are positive and subtract.
//!
//! [`router`] holds the addresses, `headers` reads who calls and in which version, a module per version parses
//! bodies into domain commands and renders sessions, `errors` is the one place that makes errors.
//! [`render`] also serves attempts that are settled when no request waits any more: what it needs beside the
//! session is in [`RenderContext::details`] and in the session's echo.
//!
//! Versions built: 2026-04-17. A business problem that leaves a valid session is no HTTP error: 200 with
//! `messages`. A 5xx is never kept: the same request may come again with the same key.

#![deny(clippy::wildcard_enum_match_arm)]

mod discovery;
mod errors;
mod headers;
mod read;
mod routes;
#[cfg(test)]
mod samples;
mod v2026_04_17;

use std::sync::Arc;

use crate::{
    checkout::{
        outcome::{Outcome, RenderContext},
        service::Service,
    },
    idempotency::{Answer, Policy, policy},
    protocol::ShopFace,
};
use errors::Failure;

pub use routes::{respond, router};

/// The name of this protocol in render contexts and session echoes.
pub const PROTOCOL: &str = "acp";

/// The extension that is served: coupon codes.
const EXTENSION_DISCOUNT: &str = "discount";

/// What the buyer may be asked for on the way. A challenge is met at the shop, by `continue_url`.
const INTERVENTIONS: &[&str] = &["3ds"];

/// ACP for one shop.
pub struct Acp {
    /// The shop as it is shown.
    pub face: Arc<ShopFace>,
    /// Its checkouts.
    pub service: Arc<Service>,
    /// How deep a body may be nested.
    pub json_depth: usize,
}

/// A version of ACP that is spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// 2026-04-17.
    V2026_04_17,
}

impl Version {
    /// All of them, oldest first.
    const ALL: &[Self] = &[Self::V2026_04_17];
    /// The newest.
    const NEWEST: Self = Self::V2026_04_17;

    /// As headers and bodies write it.
    const fn date(self) -> &'static str {
        match self {
            Self::V2026_04_17 => v2026_04_17::DATE,
        }
    }

    fn parse(date: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.date() == date)
    }

    /// Its rules of safe retries.
    const fn policy(self) -> Policy {
        match self {
            Self::V2026_04_17 => policy::ACP_2026_04_17,
        }
    }
}

/// Renders what came of a call, with or without a request that waits for it.
#[must_use]
pub fn render(face: &ShopFace, context: &RenderContext, outcome: &Outcome) -> Answer {
    let Some(version) = Version::parse(&context.version) else {
        tracing::error!(version = context.version, "a stored render context names an unknown version");
        return Failure::Internal.answer();
    };
    let session = |status, session| match version {
        Version::V2026_04_17 => Answer::json(status, &v2026_04_17::session(face, session)),
    };
    match outcome {
        Outcome::Created(made) => session(201, made),
        Outcome::Session(now) | Outcome::InProgress(now) => session(200, now),
        Outcome::Finished(ended) => Failure::Ended(ended.status).answer(),
        Outcome::NotFound => Failure::SessionNotFound.answer(),
        Outcome::NothingAvailable(_) => Failure::NothingAvailable.answer(),
        Outcome::UnknownItem { index, item: _ } => {
            let param = match version {
                Version::V2026_04_17 => v2026_04_17::item_path(&context.details, *index),
            };
            Failure::UnknownItem { param }.answer()
        }
        Outcome::UnknownOption { option: _ } => Failure::UnknownOption.answer(),
        Outcome::UnknownHandler { handler: _ } => Failure::UnknownHandler.answer(),
    }
}

/// The answer to a body that is larger than the gateway takes.
#[must_use]
pub fn too_large() -> Answer {
    Failure::TooLarge.answer()
}

/// The answer to a body that broke off or is wrongly framed.
#[must_use]
pub fn body_broken() -> Answer {
    Failure::BodyBroken.answer()
}

/// The answer to a request that broke the service.
#[must_use]
pub fn internal_error() -> Answer {
    Failure::Internal.answer()
}

/// The answer to a caller that sends too many requests.
#[must_use]
pub fn rate_limited(retry_after_secs: u64) -> Answer {
    Failure::RateLimited { retry_after_secs }.answer()
}

/// The answer for an address where no ACP is.
#[must_use]
pub fn not_found() -> Answer {
    Failure::UnknownRoute.answer()
}
