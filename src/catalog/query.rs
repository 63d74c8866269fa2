//! What is asked for.

use super::{Product, Variant};

/// A search. Equal ones share an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Query {
    /// Words; without them everything is listed.
    pub text: Option<String>,
    /// What the products must fit.
    pub filter: Filter,
    /// Which page, from 1.
    pub page: u32,
    /// Products on a page.
    pub limit: u32,
}

/// What products and variants must fit; all of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// One of these categories, by value ([`Filter::category`]); empty: any. A question names those that are meant,
    /// with all below them.
    pub categories: Vec<String>,
    /// The price.
    pub price: Bounds,
}

/// Bounds of a price, both included, in minor units of the shop's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bounds {
    /// The lowest.
    pub min: Option<i64>,
    /// The highest.
    pub max: Option<i64>,
}

impl Bounds {
    /// Whether there is any bound.
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// Whether an amount lies within.
    #[must_use]
    pub fn hold(self, minor: i64) -> bool {
        self.min.is_none_or(|min| minor >= min) && self.max.is_none_or(|max| minor <= max)
    }
}

impl Query {
    /// About how many bytes it takes to keep.
    #[must_use]
    pub fn weight(&self) -> usize {
        let text = self.text.as_ref().map_or(0, String::len);
        let categories = self.filter.categories.iter().map(|value| value.len() + size_of::<String>());
        size_of::<Self>() + text + categories.sum::<usize>()
    }
}

impl Filter {
    /// The value of a category as products show it, from how somebody wrote it: small letters, hyphens.
    #[must_use]
    pub fn category(written: &str) -> String {
        written.trim().to_lowercase().replace([' ', ','], "-")
    }

    /// Whether a product is in one of the categories. Case does not count.
    #[must_use]
    pub fn takes(&self, product: &Product) -> bool {
        let in_it = |wanted: &String| product.categories.iter().any(|c| c.value.eq_ignore_ascii_case(wanted));
        self.categories.is_empty() || self.categories.iter().any(in_it)
    }

    /// Whether a variant costs what it may.
    #[must_use]
    pub fn takes_variant(&self, variant: &Variant) -> bool {
        self.price.hold(variant.price.minor())
    }
}
