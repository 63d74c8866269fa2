//! The domain: what a checkout is and how it becomes an order.
//!
//! In: a [`command::Change`] or [`command::Completion`] from a protocol. Out: an [`outcome::Outcome`].
//! Between them [`service::Service`] takes the session's turn, asks the shop through [`store::Store`],
//! and writes through [`state::State`]. Amounts are ISO 4217 minor units. No I/O of its own, no protocol word,
//! no WooCommerce word.
//!
//! What can fail is [`Error`]: the caller of the gateway gets 503 and may repeat the request with the same
//! key. Everything else is an outcome.

pub mod audit;
pub mod cart;
pub mod command;
mod error;
pub mod ids;
pub mod outcome;
mod planning;
pub mod points;
pub mod problem;
pub mod service;
pub mod session;
mod showing;
pub mod state;
pub mod store;

pub use error::{Error, Fault, shop_wait_secs};
