//! The port to the shop's catalogue.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Branch, Product, Query, Wish};
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
    /// Whether an id takes a call of its own, beside those for all others.
    fn takes_its_own_call(&self, id: &str) -> bool;

    /// All categories (1 call).
    async fn categories(&self) -> Result<Vec<Branch>, Error>;

    /// One page of products (2 calls once the shop is known; 3 where ids have to be proved). `categories`: the keys
    /// of those that the query's filter names; empty when it names none.
    async fn search(&self, query: &Query, categories: &[String]) -> Result<Page, Error>;

    /// What ids stand for, in the order asked; each at most once, and at most one of those that take their own
    /// call. Products bring all their variants when they are asked for alone.
    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, Error>;

    /// What one id stands for. Of a product with more variants than are ever looked at, those that fit the wish
    /// best are brought.
    async fn closely(&self, id: &str, wish: &Wish) -> Result<Option<Found>, Error>;
}
