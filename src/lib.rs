//! Tillgate: a gateway that lets AI shopping agents buy from an ordinary WooCommerce shop.

pub mod checkout;
pub mod clock;
pub mod idempotency;
pub mod lane;
pub mod money;
pub mod net;
pub mod platform;
pub mod protocol;
pub mod state;
pub mod store;
