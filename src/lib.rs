//! Tillgate: a gateway that lets AI shopping agents buy from an ordinary WooCommerce shop.
//!
//! Agents speak UCP or ACP ([`protocol`]); the shop speaks the WooCommerce Store API ([`store`]). Between
//! them stand [`checkout`] and [`catalog`], which know neither. The path of a request, in three files:
//! [`http`] (layers, addresses) → `protocol::{ucp,acp}::routes` (parse, claim, render) →
//! [`checkout`] `service` (turn, shop, commit).

pub mod app;
#[cfg(test)]
#[path = "arbitrary_tests.rs"]
mod arbitrary;
pub mod availability;
pub mod catalog;
pub mod checkout;
pub mod clock;
pub mod config;
pub mod http;
pub mod idempotency;
pub mod lane;
pub mod money;
pub mod net;
pub mod platform;
pub mod protocol;
pub mod state;
pub mod stock;
pub mod store;
pub mod telemetry;
