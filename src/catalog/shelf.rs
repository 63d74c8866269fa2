//! The port to the shop's catalogue.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Product, Query};
use crate::checkout::store::Error;

/// One page of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// What is offered of it, in the shop's order.
    pub products: Vec<Arc<Product>>,
    /// How many the shop counts on all pages; what is not offered here counts too.
    pub total: Option<u64>,
    /// Whether there is another page.
    pub more: bool,
}

/// What an id stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The product.
    pub product: Arc<Product>,
    /// The variant, by its id on the wire, if the id names one.
    pub variant: Option<String>,
}

/// The catalogue of one shop. Shows only what can be bought through a checkout, sold out or not.
#[async_trait]
pub trait Shelf: Send + Sync {
    /// One page of products (2 calls at most once the shop is known).
    async fn search(&self, query: &Query) -> Result<Page, Error>;

    /// What ids stand for, in the order asked; each at most once. Products bring all their variants when they
    /// are asked for alone.
    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, Error>;
}
