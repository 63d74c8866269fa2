//! What is published of a shop's availability: one schema.org document for each product, and word of its changes.
//!
//! In: item ids as a checkout takes them. Out: [`Document`]s (JSON-LD, escaped so that a page may put one into a
//! `<script>`), each with a strong tag of its content. Amounts are decimal texts, as the shop displays prices.
//!
//! | file | owns |
//! |---|---|
//! | `level` | what is said of how much is left: [`Level`] |
//! | `document` | the JSON-LD and its escapes |
//! | `readings` | what the shop says of its stock, kept for a moment, beside the shelves of the state |
//! | `board` | the documents of one shop: [`Board`] |
//! | `follow` | who follows which products, the one poller, and what they have seen: [`Following`] |
//!
//! Nothing here is written to the shop or to the state. What can fail is [`Error`]: the shop could not be asked what
//! a product is. Where only its stock cannot be read, the catalogue's word is published. No number is published from
//! the threshold on, and *sold out* only where the shop says so or no unit is left.

mod board;
mod document;
mod follow;
mod level;
mod readings;

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::{
    board::{Board, Parts},
    document::{Document, escaped},
    follow::{Following, Full, News},
    level::Level,
};
/// The shop could not be asked what a product is.
pub use crate::catalog::Error;

/// Most products of one stream.
pub const MOST_PRODUCTS: usize = 50;

/// Longest item id that is looked for, in bytes.
pub const LONGEST_ID: usize = 255;

/// How availability is published.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Fewer units than this are told as a number.
    pub threshold: u32,
    /// How old a document may be, and how often changes are looked for while somebody follows.
    pub poll: Duration,
    /// How old a reading of the shop's stock may be.
    pub reading: Duration,
}

/// Who sells, as documents name it.
#[derive(Debug, Clone)]
pub struct Seller {
    /// The shop's name.
    pub name: String,
    /// Its home page.
    pub url: String,
}

/// What all streams of the process share.
#[derive(Debug, Clone)]
pub struct Streams {
    /// A permit for each stream.
    pub clients: Arc<Semaphore>,
    /// Cancelled when the process stops: every stream ends.
    pub ending: CancellationToken,
    /// After so much silence a comment is sent.
    pub heartbeat: Duration,
    /// How long a stream lives; its client comes back, perhaps to another process.
    pub life: Duration,
}
