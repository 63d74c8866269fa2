//! The two languages that agents speak. [`ucp`] and [`acp`] never mention each other; what they share is
//! here: strict JSON, the shop as it is shown to the outside, the way from a claim to an answer.

pub mod acp;
mod cards;
pub mod json;
pub mod shop;
pub mod ucp;

pub use shop::ShopFace;
