//! Tillgate: a gateway that lets AI shopping agents buy from an ordinary WooCommerce shop.
//!
//! Agents speak UCP or ACP ([`protocol`]); the shop speaks the WooCommerce Store API ([`store`]). Between
//! them stands [`checkout`], which knows neither. The path of a request, in three files:
//! [`http`] (layers, addresses) → `protocol::{ucp,acp}::routes` (parse, claim, render) →
//! [`checkout`] `service` (turn, shop, commit).

pub mod checkout;
pub mod clock;
pub mod money;
pub mod store;
