//! Our memory: back ends of [`crate::checkout::state::State`].
//!
//! - [`sqlite`]: embedded and durable, one process per data folder.

pub mod sqlite;

pub use sqlite::Sqlite;
