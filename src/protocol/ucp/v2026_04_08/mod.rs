//! UCP 2026-04-08: its capabilities, its request bodies ([`parse`]) and its answers ([`wire`], [`render`]); those of the
//! catalogue in [`catalog`].

mod catalog;
mod parse;
mod render;
mod wire;

use super::{
    negotiation::{BUYER_CONSENT, CATALOG_LOOKUP, CATALOG_SEARCH, CHECKOUT, DISCOUNT, FULFILLMENT},
    version::Offer,
};

pub(crate) use catalog::{
    parse_lookup, parse_product, parse_search, render_lookup, render_product, render_search,
};
pub(crate) use parse::{parse_change, parse_completion};
pub(crate) use render::render;

/// The version as on the wire: the only place where it is written.
pub(crate) const VERSION: &str = "2026-04-08";

/// What is built, and nothing else.
pub(crate) const OFFERS: &[Offer] = &[
    Offer { name: CHECKOUT, extends: &[], page: "checkout", schema: "checkout", config: None },
    Offer {
        name: FULFILLMENT,
        extends: &[CHECKOUT],
        page: "fulfillment",
        schema: "fulfillment",
        config: Some(r#"{"allows_multi_destination":{"shipping":false,"pickup":false}}"#),
    },
    Offer { name: DISCOUNT, extends: &[CHECKOUT], page: "discount", schema: "discount", config: None },
    Offer {
        name: BUYER_CONSENT,
        extends: &[CHECKOUT],
        page: "buyer-consent",
        schema: "buyer_consent",
        config: None,
    },
    Offer {
        name: CATALOG_SEARCH,
        extends: &[],
        page: "catalog/search",
        schema: "catalog_search",
        config: None,
    },
    Offer {
        name: CATALOG_LOOKUP,
        extends: &[],
        page: "catalog/lookup",
        schema: "catalog_lookup",
        config: None,
    },
];
