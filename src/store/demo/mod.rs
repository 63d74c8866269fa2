//! The demo shop.
