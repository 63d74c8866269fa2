//! The catalogue in UCP 2026-04-08 (`catalog/search`, `catalog/lookup`, `catalog/rest`).
//!
//! A cursor is ours to read: it holds the page, its size and a digest of the question, so that it goes on with this
//! question only.

mod cursor;
mod parse;
mod render;

pub(crate) use parse::{parse_lookup, parse_product, parse_search};
pub(crate) use render::{lookup as render_lookup, product as render_product, search as render_search};
