//! The catalogue: what a shop offers, found by words, by id, by options. Reads only.
//!
//! In: a [`Query`], ids, options somebody has chosen. Out: [`Listing`]s of products with their variants, amounts as
//! [`Money`](crate::money::Money) in ISO 4217 minor units, texts plain. The id of a variant is what a checkout takes.
//!
//! | file | owns |
//! |---|---|
//! | `product` | products, variants, prices, options |
//! | `query` | what is asked for, and the filters |
//! | `shelf` | the port to the shop: [`Shelf`] |
//! | `service` | the use cases and the cache: [`Catalog`] |
//! | `memory` | what is kept, and how much |
//! | `tree` | categories, and which lie below which |
//! | `choice` | options: which variant is meant, what else could be chosen |
//!
//! Answers are kept for a short time, so they can be that old; equal questions asked at once become one. The shop
//! has the last word at the checkout. What can fail is [`Error`]: the shop could not be asked. It is never kept.

mod choice;
mod memory;
mod product;
mod query;
mod service;
mod shelf;
mod tree;

pub use self::{
    choice::{AxisSignals, Choice, Detail, Signals, Wish},
    product::{
        Availability, Axis, AxisValue, Category, Limits, Media, OptionValue, PriceRange, Product, Rating,
        Stock, Variant, VariantsShown,
    },
    query::{Bounds, Filter, Query},
    service::{Catalog, Error, Input, Listing, Looked, LookedProduct, LookedVariant, Results, Settings},
    shelf::{Found, Page, Shelf},
    tree::{Branch, Tree},
};
