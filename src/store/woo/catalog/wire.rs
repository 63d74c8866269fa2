//! A product or variation as the Store API lists it, as far as the catalogue shows it.

use serde::Deserialize;
use serde_json::Value;

use super::super::wire::{Unit, text, text_or_empty, text_or_null};

/// The members that are asked for; a shop sends many more.
pub(super) const FIELDS: &str = "id,name,slug,parent,type,permalink,sku,short_description,description,prices,\
average_rating,review_count,images,categories,tags,attributes,variations,is_purchasable,is_in_stock,\
is_on_backorder,low_stock_remaining,add_to_cart";

/// A product, or a variation of one.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) slug: String,
    /// The product that a variation belongs to; `0`: none.
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) parent: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) permalink: String,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) sku: Option<String>,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) short_description: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) description: String,
    pub(super) prices: Prices,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) average_rating: String,
    #[serde(default)]
    pub(super) review_count: Value,
    #[serde(default)]
    pub(super) images: Vec<Image>,
    #[serde(default)]
    pub(super) categories: Vec<Term>,
    #[serde(default)]
    pub(super) tags: Vec<Term>,
    #[serde(default)]
    pub(super) attributes: Vec<Attribute>,
    #[serde(default)]
    pub(super) variations: Vec<VariationRef>,
    pub(super) is_purchasable: bool,
    pub(super) is_in_stock: bool,
    #[serde(default)]
    pub(super) is_on_backorder: bool,
    #[serde(default)]
    pub(super) low_stock_remaining: Value,
    #[serde(default)]
    pub(super) add_to_cart: Value,
}

/// A category as the shop lists it.
#[derive(Debug, Deserialize)]
pub(super) struct ListedCategory {
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    pub(super) slug: String,
    /// The category above it; `0`: none.
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) parent: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Prices {
    #[serde(deserialize_with = "text")]
    pub(super) price: String,
    #[serde(deserialize_with = "text")]
    pub(super) regular_price: String,
    #[serde(default)]
    pub(super) price_range: Option<Range>,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

#[derive(Debug, Deserialize)]
pub(super) struct Range {
    #[serde(deserialize_with = "text")]
    pub(super) min_amount: String,
    #[serde(deserialize_with = "text")]
    pub(super) max_amount: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Image {
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) src: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) alt: String,
}

/// A category, a tag, or the value of an attribute.
#[derive(Debug, Deserialize)]
pub(super) struct Term {
    #[serde(deserialize_with = "text_or_empty")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) slug: String,
    /// Whether the merchant has it chosen beforehand.
    #[serde(default)]
    pub(super) default: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    #[serde(deserialize_with = "text_or_empty")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) has_variations: bool,
    #[serde(default)]
    pub(super) terms: Vec<Term>,
}

/// A variation as its product lists it.
#[derive(Debug, Deserialize)]
pub(super) struct VariationRef {
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) attributes: Vec<Chosen>,
}

/// An attribute of a variation; without a value the buyer must choose.
#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    #[serde(deserialize_with = "text_or_empty")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) value: Option<String>,
}

impl Item {
    /// Whether something of this kind, in this state, can be bought through a checkout at all.
    ///
    /// Groups are bought by their members, external products elsewhere, and kinds that plugins add need data that
    /// nobody here knows of. Drafts and products without a price are not purchasable.
    pub(super) fn is_offered(&self) -> bool {
        self.is_purchasable && matches!(self.kind.as_str(), "simple" | "variable" | "variation")
    }

    pub(super) fn is_variable(&self) -> bool {
        self.kind == "variable"
    }

    pub(super) fn is_variation(&self) -> bool {
        self.kind == "variation"
    }
}
