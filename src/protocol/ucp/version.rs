//! The versions built, and the way from one to its module.

use serde_json::Value;

use super::{
    catalog::{Asked, ByIds, Closely},
    errors::Failure,
    negotiation::Negotiated,
    reader::Refusal,
    v2026_04_08,
};
use crate::{
    catalog::{Detail, Looked, Query, Results, Settings},
    checkout::{
        command::{Change, Completion},
        outcome::{Operation, Outcome, RenderContext},
    },
    idempotency::{Answer, Policy, policy},
    protocol::ShopFace,
};

/// A protocol version that is served here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// 2026-04-08.
    V2026_04_08,
}

/// A capability that is offered in a version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// Reverse-domain name.
    pub name: &'static str,
    /// What it extends; empty for a root.
    pub extends: &'static [&'static str],
    /// Its page below `specification/`.
    pub page: &'static str,
    /// Its schema below `schemas/shopping/`.
    pub schema: &'static str,
    /// Its configuration as JSON text.
    pub config: Option<&'static str>,
}

impl Version {
    /// All that are served, newest first.
    pub(crate) const ALL: [Self; 1] = [Self::V2026_04_08];
    /// The newest.
    pub(crate) const CURRENT: Self = Self::V2026_04_08;

    /// As on the wire.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::V2026_04_08 => v2026_04_08::VERSION,
        }
    }

    /// Its rules of safe retries.
    pub(crate) const fn policy(self) -> Policy {
        match self {
            Self::V2026_04_08 => policy::UCP_2026_04_08,
        }
    }

    /// Reads the text of a version that is served.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.text() == text)
    }

    /// The capabilities offered in it.
    pub(crate) const fn offers(self) -> &'static [Offer] {
        match self {
            Self::V2026_04_08 => v2026_04_08::OFFERS,
        }
    }

    /// Reads the body of a create or an update.
    pub(crate) fn parse_change(
        self,
        face: &ShopFace,
        negotiated: &Negotiated,
        operation: Operation,
        body: &Value,
    ) -> Result<Change, Refusal> {
        match self {
            Self::V2026_04_08 => v2026_04_08::parse_change(face, negotiated, operation, body),
        }
    }

    /// Reads the body of a completion.
    pub(crate) fn parse_completion(self, face: &ShopFace, body: &Value) -> Result<Completion, Refusal> {
        match self {
            Self::V2026_04_08 => v2026_04_08::parse_completion(face, body),
        }
    }

    /// Reads the body of a search.
    pub(crate) fn parse_search(
        self,
        face: &ShopFace,
        settings: &Settings,
        body: &Value,
    ) -> Result<Asked<Query>, Failure> {
        match self {
            Self::V2026_04_08 => v2026_04_08::parse_search(face, settings, body),
        }
    }

    /// Reads the body of a look-up.
    pub(crate) fn parse_lookup(
        self,
        face: &ShopFace,
        settings: &Settings,
        body: &Value,
    ) -> Result<Asked<ByIds>, Failure> {
        match self {
            Self::V2026_04_08 => v2026_04_08::parse_lookup(face, settings, body),
        }
    }

    /// Reads the body of a close look at one product.
    pub(crate) fn parse_product(self, face: &ShopFace, body: &Value) -> Result<Asked<Closely>, Failure> {
        match self {
            Self::V2026_04_08 => v2026_04_08::parse_product(face, body),
        }
    }

    /// Renders what a search found.
    pub(crate) fn render_search(
        self,
        face: &ShopFace,
        negotiated: &Negotiated,
        asked: &Asked<Query>,
        found: &Results,
    ) -> Answer {
        match self {
            Self::V2026_04_08 => v2026_04_08::render_search(face, negotiated, asked, found),
        }
    }

    /// Renders what a look-up found.
    pub(crate) fn render_lookup(
        self,
        face: &ShopFace,
        negotiated: &Negotiated,
        asked: &Asked<ByIds>,
        found: &Looked,
    ) -> Answer {
        match self {
            Self::V2026_04_08 => v2026_04_08::render_lookup(face, negotiated, asked, found),
        }
    }

    /// Renders one product closely.
    pub(crate) fn render_product(
        self,
        face: &ShopFace,
        negotiated: &Negotiated,
        asked: &Asked<Closely>,
        found: Option<&Detail>,
    ) -> Answer {
        match self {
            Self::V2026_04_08 => v2026_04_08::render_product(face, negotiated, asked, found),
        }
    }

    /// Renders an outcome.
    pub(crate) fn render(self, face: &ShopFace, context: &RenderContext, outcome: &Outcome) -> Answer {
        match self {
            Self::V2026_04_08 => v2026_04_08::render(face, context, outcome),
        }
    }
}
