//! The languages that agents speak, and what they share: strict JSON, the shop as it is shown to the outside.

mod cards;
pub mod json;
pub mod shop;
pub mod ucp;

pub use shop::ShopFace;
