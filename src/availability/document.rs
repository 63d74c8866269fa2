//! The JSON-LD (schema.org `Offer`, `AggregateOffer`), and how it is made harmless.
//!
//! What has one price is an `Offer`. A product to choose a variant of is an `AggregateOffer`, which is an `Offer` to
//! schema.org too: lowest and highest price, the best level of its variants, and an `Offer` for each that is at hand.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Level, Seller};
use crate::{
    catalog::{Product, Variant, VariantsShown},
    money::Money,
};

/// A document as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// JSON-LD, one line, escaped.
    pub text: String,
    /// A strong entity tag of the text, in its quotes.
    pub tag: String,
}

impl Document {
    fn of(value: &Value) -> Self {
        let text = escaped(value);
        let digest = Sha256::digest(text.as_bytes());
        let tag = format!("\"{}\"", HEXLOWER.encode(digest.get(..16).unwrap_or(&digest)));
        Self { text, tag }
    }
}

/// What an id stands for.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// Something that can be bought.
    One(Arc<Variant>),
    /// A product whose variants differ.
    Choice(Arc<Product>),
}

impl Subject {
    /// All that can be bought of it, as far as it is at hand.
    pub(super) fn variants(&self) -> &[Arc<Variant>] {
        match self {
            Self::One(variant) => std::slice::from_ref(variant),
            Self::Choice(product) => &product.variants,
        }
    }
}

/// JSON in which nothing can end a `<script>` or a line of a script, whatever its texts hold.
#[must_use]
pub fn escaped(value: &Value) -> String {
    let plain = value.to_string();
    let mut text = String::with_capacity(plain.len());
    for c in plain.chars() {
        // These stand in JSON's texts only, never in its grammar.
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            c => text.push(c),
        }
    }
    text
}

/// The document of a subject; `level` tells how much is left of each of its variants.
pub(super) fn render(subject: &Subject, seller: &Seller, level: impl Fn(&Variant) -> Level) -> Document {
    let mut whole = match subject {
        Subject::One(variant) => offer(variant, level(variant)),
        Subject::Choice(product) => aggregate(product, level),
    };
    whole.insert("@context".to_owned(), json!("https://schema.org"));
    whole.insert(
        "seller".to_owned(),
        json!({"@type": "Organization", "name": seller.name, "url": seller.url}),
    );
    Document::of(&Value::Object(whole))
}

fn offer(variant: &Variant, level: Level) -> Map<String, Value> {
    let left = match level {
        Level::Limited(left) => Some(json!({"@type": "QuantitativeValue", "value": left})),
        Level::OutOfStock | Level::BackOrder | Level::InStock => None,
    };
    told(json!({
        "@type": "Offer",
        "availability": level.schema(),
        "inventoryLevel": left,
        "itemOffered": told(json!({
            "@type": "Product",
            "name": variant.title,
            "productID": variant.id,
            "sku": variant.sku,
            "url": variant.url,
        })),
        "price": decimal(variant.price),
        "priceCurrency": variant.price.currency(),
        "sku": variant.sku,
        "url": variant.url,
    }))
}

fn aggregate(product: &Product, level: impl Fn(&Variant) -> Level) -> Map<String, Value> {
    let (all, count) = match product.shown {
        VariantsShown::All => (true, product.variants.len()),
        VariantsShown::Most { of } | VariantsShown::Some { of } => (false, of),
    };
    let levels = product.variants.iter().map(|variant| level(variant));
    let best = levels.max().filter(|best| all || *best > Level::OutOfStock);
    told(json!({
        "@type": "AggregateOffer",
        // Nobody has looked at the rest: they may be there.
        "availability": best.unwrap_or(Level::InStock).schema(),
        "highPrice": decimal(product.prices.max),
        "itemOffered": told(json!({
            "@type": "Product",
            "name": product.title,
            "productID": product.id,
            "url": product.url,
        })),
        "lowPrice": decimal(product.prices.min),
        "offerCount": count,
        "offers": product.variants.iter().map(|it| offer(it, level(it))).collect::<Vec<_>>(),
        "priceCurrency": product.prices.min.currency(),
        "url": product.url,
    }))
}

/// The members of an object that have a value.
fn told(value: Value) -> Map<String, Value> {
    let Value::Object(mut members) = value else { return Map::new() };
    members.retain(|_, member| !member.is_null());
    members
}

/// An amount as schema.org takes it: a point, no grouping, as many decimals as the currency has.
fn decimal(amount: Money) -> String {
    let sign = if amount.minor() < 0 { "-" } else { "" };
    let digits = amount.minor().unsigned_abs().to_string();
    let exponent = usize::try_from(amount.currency().exponent()).unwrap_or_default();
    if exponent == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = exponent + 1);
    let (whole, rest) = digits.split_at(digits.len() - exponent);
    format!("{sign}{whole}.{rest}")
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
