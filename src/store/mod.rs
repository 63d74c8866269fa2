//! The shop's side: everything that speaks to, imitates or records a WooCommerce shop.
//!
//! - [`woo`]: a real shop, through its Store API.

pub mod woo;

pub use crate::checkout::store::{Effect, Error};
