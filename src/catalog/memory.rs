//! The short memory in front of a shop.
//!
//! Pages by query take half of the bytes; the rest is for products, and what ids stand for. An id leads to a look at
//! a product, which many ids share and which is weighed once; when it is gone, its ids are not known any more.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use moka::future::Cache;

use super::{Found, Page, Product, Query, Tree, VariantsShown, Wish};

/// What an id is known to stand for.
pub(super) type Known = Option<Found>;

/// How long the shop's categories are kept.
const TREE_KEPT: Duration = Duration::from_mins(5);
/// What an entry of a cache takes beside its content, about.
const ENTRY: usize = 128;

/// An id and a wish about its variants.
pub(super) type Question = (String, Wish);

/// Where an id leads.
#[derive(Debug, Clone)]
enum Way {
    Nowhere,
    To { look: u64, variant: Option<String> },
}

impl Way {
    fn weight(&self) -> usize {
        match self {
            Self::To { variant: Some(variant), .. } => ENTRY + variant.len(),
            Self::To { .. } | Self::Nowhere => ENTRY,
        }
    }
}

/// What is kept.
pub(super) struct Memory {
    pub(super) pages: Cache<Query, Arc<Page>>,
    ways: Cache<String, Way>,
    choices: Cache<Question, Way>,
    /// Looks at products, numbered: two looks may have brought different variants.
    looks: Cache<u64, Arc<Product>>,
    next: AtomicU64,
    /// Questions on their way: they end here and are not kept.
    pub(super) asked: Cache<Vec<String>, Arc<Vec<Known>>>,
    pub(super) choosing: Cache<Question, Known>,
    pub(super) tree: Cache<(), Arc<Tree>>,
}

fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Memory {
    pub(super) fn new(bytes: u64, ttl: Duration) -> Self {
        let page = |query: &Query, page: &Arc<Page>| {
            weight(
                ENTRY + query.weight() + page.products.iter().map(|product| product.weight()).sum::<usize>(),
            )
        };
        let way = |id: &String, way: &Way| weight(id.len() + way.weight());
        let choice = |(id, wish): &Question, way: &Way| weight(id.len() + wish.weight() + way.weight());
        let look = |_: &u64, product: &Arc<Product>| weight(ENTRY + product.weight());
        Self {
            pages: Cache::builder().max_capacity(bytes / 2).weigher(page).time_to_live(ttl).build(),
            ways: Cache::builder().max_capacity(bytes / 16).weigher(way).time_to_live(ttl).build(),
            choices: Cache::builder().max_capacity(bytes / 16).weigher(choice).time_to_live(ttl).build(),
            looks: Cache::builder().max_capacity(bytes / 8 * 3).weigher(look).time_to_live(ttl).build(),
            next: AtomicU64::new(0),
            asked: Cache::builder().max_capacity(0).time_to_live(Duration::ZERO).build(),
            choosing: Cache::builder().max_capacity(0).time_to_live(Duration::ZERO).build(),
            tree: Cache::builder().max_capacity(1).time_to_live(TREE_KEPT).build(),
        }
    }

    /// What an id stands for, if that is known.
    pub(super) async fn known(&self, id: &str) -> Option<Known> {
        self.follow(self.ways.get(id).await?).await
    }

    /// What an id stands for as somebody wished it, if that is known.
    pub(super) async fn chosen(&self, question: &Question) -> Option<Known> {
        self.follow(self.choices.get(question).await?).await
    }

    async fn follow(&self, way: Way) -> Option<Known> {
        match way {
            Way::Nowhere => Some(None),
            Way::To { look, variant } => {
                let product = self.looks.get(&look).await?;
                Some(Some(Found { product, variant }))
            }
        }
    }

    async fn look(&self, product: &Arc<Product>) -> u64 {
        let look = self.next.fetch_add(1, Ordering::Relaxed);
        self.looks.insert(look, Arc::clone(product)).await;
        look
    }

    /// Keeps what ids stand for.
    pub(super) async fn keep(&self, found: impl Iterator<Item = (String, Known)> + Send) {
        let mut looks: BTreeMap<usize, u64> = BTreeMap::new();
        for (id, found) in found {
            let way = match found {
                None => Way::Nowhere,
                Some(Found { product, variant }) => {
                    let at = Arc::as_ptr(&product).addr();
                    let look = match looks.get(&at) {
                        Some(look) => *look,
                        None => self.look(&product).await,
                    };
                    looks.insert(at, look);
                    Way::To { look, variant }
                }
            };
            self.ways.insert(id, way).await;
        }
    }

    /// Keeps what an id stands for as somebody wished it.
    pub(super) async fn choose(&self, question: &Question, found: &Known) {
        let way = match found {
            None => Way::Nowhere,
            Some(Found { product, variant }) => {
                Way::To { look: self.look(product).await, variant: variant.clone() }
            }
        };
        self.choices.insert(question.clone(), way).await;
    }

    /// What a page brings is known by its ids, too.
    pub(super) async fn remember(&self, query: &Query, page: &Page) {
        for product in &page.products {
            // Chosen by price, its variants do not tell which one to feature.
            if query.filter.price.is_set() && matches!(product.shown, VariantsShown::Some { .. }) {
                continue;
            }
            let found = |variant| Some(Found { product: Arc::clone(product), variant });
            let variants = product.variants.iter().map(|v| (v.id.clone(), found(Some(v.id.clone()))));
            let own = product.variant(&product.id).is_none().then(|| (product.id.clone(), found(None)));
            self.keep(variants.chain(own).collect::<Vec<_>>().into_iter()).await;
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
