//! UCP over REST: what platforms ask and are told (UCP `overview`, `checkout`, `checkout-rest`, `fulfillment`,
//! `discount`, `buyer-consent`, `catalog`).
//!
//! The path of a request is `routes`: version and negotiation (`negotiation`), headers (`headers`), JSON,
//! claim, parse, the domain's use case, render. What the versions say differently stands in one module each
//! (`v2026_04_08`) behind `version::Version`; everything else is shared. Amounts on the wire are signed
//! integers in ISO 4217 minor units.
//!
//! Two layers of failure: a refusal of the protocol is a flat body with a 4xx or 5xx (`errors`), an outcome
//! of the business is HTTP 200 with messages (`messages`).

#![deny(clippy::wildcard_enum_match_arm)]

mod amounts;
mod catalog;
mod errors;
mod headers;
mod messages;
mod negotiation;
mod profile;
mod reader;
mod routes;
#[cfg(test)]
mod samples;
mod v2026_04_08;
mod version;

use std::sync::Arc;

use super::ShopFace;
use crate::{
    catalog::Catalog,
    checkout::{
        outcome::{Outcome, RenderContext},
        service::Service,
    },
    idempotency::Answer,
    platform::Platforms,
};

pub use errors::{internal_response, too_large_response, unread_response};
pub use routes::router;

/// The name of this protocol in [`RenderContext::protocol`], in echoes and before caller ids.
pub const PROTOCOL: &str = "ucp";

/// The newest version that is spoken.
pub const CURRENT_VERSION: &str = v2026_04_08::VERSION;

/// What the UCP side of one shop needs.
pub struct Ucp {
    /// The shop as it is shown.
    pub face: Arc<ShopFace>,
    /// Its checkouts.
    pub service: Arc<Service>,
    /// Its catalogue.
    pub catalog: Arc<Catalog>,
    /// The platforms that call.
    pub platforms: Arc<Platforms>,
    /// How deep a body may be nested.
    pub json_depth: usize,
}

/// The answer to an outcome; all that is needed beside it stands in the context, so that an attempt can be
/// answered when its request is long gone.
#[must_use]
pub fn render(face: &ShopFace, context: &RenderContext, outcome: &Outcome) -> Answer {
    let version = version::Version::parse(&context.version).unwrap_or(version::Version::CURRENT);
    version.render(face, context, outcome)
}
