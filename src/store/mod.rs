//! The shop's side: everything that speaks to, imitates or records a WooCommerce shop.
//!
//! - [`woo`]: a real shop, through its Store API.
//! - [`demo`]: a shop that speaks the Store API on loopback, for newcomers and tests.
//! - [`tape`]: plays recorded exchanges (HAR 1.2) as if the shop were there.

pub mod demo;
pub mod tape;
pub mod woo;

pub use crate::checkout::store::{Effect, Error};
