//! The catalogue's three operations: body → use case → answer. What versions say differently stands in their modules.

use serde_json::Value;

use super::{
    errors::Failure,
    negotiation::{CATALOG_LOOKUP, CATALOG_SEARCH, Greeting},
};
use crate::{
    catalog::{Catalog, Filter, Query, Wish},
    idempotency::Answer,
    protocol::ShopFace,
};

/// Which operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Browse {
    /// Products by words and filters.
    Search,
    /// Products and variants by ids.
    Lookup,
    /// One product closely.
    Product,
}

impl Browse {
    /// The capability that it belongs to.
    pub(crate) const fn capability(self) -> &'static str {
        match self {
            Self::Search => CATALOG_SEARCH,
            Self::Lookup | Self::Product => CATALOG_LOOKUP,
        }
    }
}

/// A body that was understood, and whether its price filter counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked<T> {
    /// What is asked for.
    pub what: T,
    /// The price filter is in no currency, or in another than the shop's: it was left out.
    pub price_ignored: bool,
}

/// Ids and what they are narrowed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByIds {
    /// As sent, with repetitions.
    pub ids: Vec<String>,
    /// What products must fit.
    pub filter: Filter,
}

/// One id, and what is wished of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closely {
    /// Of a product or a variant.
    pub id: String,
    /// Options.
    pub wish: Wish,
    /// What variants must fit.
    pub filter: Filter,
}

/// Answers one call.
pub(crate) async fn answer(
    browse: Browse,
    face: &ShopFace,
    catalog: &Catalog,
    greeting: &Greeting,
    body: &Value,
) -> Result<Answer, Failure> {
    let (version, negotiated) = (greeting.version, &greeting.negotiated);
    match browse {
        Browse::Search => {
            let asked: Asked<Query> = version.parse_search(face, catalog.settings(), body)?;
            let found = catalog.search(&asked.what).await?;
            Ok(version.render_search(face, negotiated, &asked, &found))
        }
        Browse::Lookup => {
            let asked = version.parse_lookup(face, catalog.settings(), body)?;
            let found = catalog.lookup(&asked.what.ids, &asked.what.filter).await?;
            Ok(version.render_lookup(face, negotiated, &asked, &found))
        }
        Browse::Product => {
            let asked = version.parse_product(face, body)?;
            let Closely { id, wish, filter } = &asked.what;
            let found = catalog.product(id, wish, filter).await?;
            Ok(version.render_product(face, negotiated, &asked, found.as_ref()))
        }
    }
}
