//! The use cases, and the short memory in front of the shop.
//!
//! Kept are pages by query, and what ids stand for by id; both for [`Settings::ttl`], within a share of
//! [`Settings::cache_bytes`] each. Equal questions at one time are asked once; a failure is told to all who wait
//! and is not kept. What a page brings answers later questions for its ids too.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use moka::future::Cache;

use super::{Detail, Filter, Found, Page, Product, Query, Shelf, Variant, VariantsShown, Wish, choice};
use crate::checkout::{self, store};

/// How a shop's catalogue behaves.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How old an answer may be; zero keeps nothing.
    pub ttl: Duration,
    /// About how many bytes are kept.
    pub cache_bytes: u64,
    /// Most products on a page.
    pub page_size: u32,
    /// Most ids of one look-up.
    pub ids: usize,
}

/// The shop could not be asked. Shared by all who asked the same.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the shop could not be asked for its catalogue")]
pub struct Error(#[source] Arc<store::Error>);

impl Error {
    /// Seconds after which the caller may try again.
    #[must_use]
    pub fn retry_after_secs(&self) -> u64 {
        checkout::shop_wait_secs(&self.0)
    }
}

impl From<Arc<store::Error>> for Error {
    fn from(error: Arc<store::Error>) -> Self {
        Self(error)
    }
}

/// A product with the variants to show.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// The product.
    pub product: Arc<Product>,
    /// Its variants, the featured one first; at least one.
    pub variants: Vec<Arc<Variant>>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The products of this page.
    pub listings: Vec<Listing>,
    /// How many the shop counts on all pages.
    pub total: Option<u64>,
    /// Whether there is another page.
    pub more: bool,
}

/// What a look-up found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looked {
    /// Products, each once, in the order in which they were first named.
    pub products: Vec<LookedProduct>,
    /// Ids that stand for nothing.
    pub unknown: Vec<String>,
}

/// A product that was named, by its own id or that of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct LookedProduct {
    /// The product.
    pub product: Arc<Product>,
    /// The variants that were named, and the featured one if the product was.
    pub variants: Vec<LookedVariant>,
}

/// A variant, and the ids that led to it.
#[derive(Debug, Clone, PartialEq)]
pub struct LookedVariant {
    /// The variant.
    pub variant: Arc<Variant>,
    /// At least one.
    pub inputs: Vec<Input>,
}

/// An id that led to a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// As it was sent.
    pub id: String,
    /// Whether it names this variant; else it names the product, and this is its featured variant.
    pub exact: bool,
}

impl Looked {
    /// Takes in what an id stands for, as far as the filter takes it.
    fn add(&mut self, id: String, found: &Found, filter: &Filter) {
        let product = &found.product;
        let known = self.products.iter_mut().find(|looked| looked.product.id == product.id);
        let mut new = LookedProduct { product: Arc::clone(product), variants: Vec::new() };
        let is_new = known.is_none();
        let looked = known.unwrap_or(&mut new);
        let (variant, exact) = match &found.variant {
            // Two looks at one product may have brought different variants of it.
            Some(named) => (product.variant(named), true),
            None => (looked.product.variants.iter().find(|variant| filter.takes_variant(variant)), false),
        };
        if let Some(variant) = variant.filter(|variant| filter.takes_variant(variant)).cloned() {
            let input = Input { id, exact };
            match looked.variants.iter_mut().find(|looked| looked.variant.id == variant.id) {
                Some(looked) => looked.inputs.push(input),
                None => looked.variants.push(LookedVariant { variant, inputs: vec![input] }),
            }
        }
        if is_new {
            self.products.push(new);
        }
    }
}

/// What an id is known to stand for.
type Known = Option<Found>;

/// The catalogue of one shop.
pub struct Catalog {
    shelf: Arc<dyn Shelf>,
    settings: Settings,
    /// Made at the first question: a shop that nobody asks takes no room.
    kept: OnceLock<Kept>,
}

/// What is kept.
struct Kept {
    pages: Cache<Query, Arc<Page>>,
    known: Cache<String, Known>,
    /// Look-ups on their way: they end here and are not kept.
    asked: Cache<Vec<String>, Arc<Vec<Known>>>,
}

impl Kept {
    fn new(settings: &Settings) -> Self {
        let half = settings.cache_bytes / 2;
        let page_weight = |query: &Query, page: &Arc<Page>| {
            let text = query.text.as_ref().map_or(0, String::len);
            weight(256 + text + page.products.iter().map(|product| product.weight()).sum::<usize>())
        };
        let known_weight = |id: &String, known: &Known| {
            // A product is kept once for all of its ids: each weighs its share.
            let share = |found: &Found| found.product.weight() / (found.product.variants.len() + 1);
            weight(128 + id.len() + known.as_ref().map_or(0, share))
        };
        let ttl = settings.ttl;
        Self {
            pages: Cache::builder().max_capacity(half).weigher(page_weight).time_to_live(ttl).build(),
            known: Cache::builder().max_capacity(half).weigher(known_weight).time_to_live(ttl).build(),
            asked: Cache::builder().max_capacity(0).time_to_live(Duration::ZERO).build(),
        }
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Catalog {
    /// An empty memory in front of a shelf.
    #[must_use]
    pub fn new(shelf: Arc<dyn Shelf>, settings: Settings) -> Self {
        Self { shelf, settings, kept: OnceLock::new() }
    }

    fn kept(&self) -> &Kept {
        self.kept.get_or_init(|| Kept::new(&self.settings))
    }

    /// How it behaves.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// One page of products that fit.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn search(&self, query: &Query) -> Result<Results, Error> {
        let ask = async {
            let page = Arc::new(self.shelf.search(query).await?);
            self.remember(&page).await;
            Ok::<_, store::Error>(page)
        };
        let page = Box::pin(self.kept().pages.try_get_with(query.clone(), ask)).await?;
        let listings = page.products.iter().filter_map(|product| listing(product, &query.filter)).collect();
        Ok(Results { listings, total: page.total, more: page.more })
    }

    /// What a page brings is known by its ids, too.
    async fn remember(&self, page: &Page) {
        for product in &page.products {
            for variant in &product.variants {
                let found = Found { product: Arc::clone(product), variant: Some(variant.id.clone()) };
                self.kept().known.insert(variant.id.clone(), Some(found)).await;
            }
            if product.variant(&product.id).is_none() {
                let found = Found { product: Arc::clone(product), variant: None };
                self.kept().known.insert(product.id.clone(), Some(found)).await;
            }
        }
    }

    /// Products and variants by their ids. Filters take away what was found.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn lookup(&self, ids: &[String], filter: &Filter) -> Result<Looked, Error> {
        let mut seen = BTreeSet::new();
        let ids: Vec<String> = ids.iter().filter(|id| seen.insert(id.as_str())).cloned().collect();
        let found = self.find(&ids, |_| true).await?;
        let mut looked = Looked::default();
        for (id, found) in ids.into_iter().zip(found) {
            let Some(found) = found else {
                looked.unknown.push(id);
                continue;
            };
            looked.add(id, &found, filter);
        }
        looked.products.retain(|looked| filter.takes(&looked.product) && !looked.variants.is_empty());
        Ok(looked)
    }

    /// One product closely; `None` when the id stands for nothing, or the filter leaves nothing of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn product(&self, id: &str, wish: &Wish, filter: &Filter) -> Result<Option<Detail>, Error> {
        let whole = |found: &Found| !matches!(found.product.shown, VariantsShown::Some { .. });
        let found = self.find(&[id.to_owned()], whole).await?;
        Ok(found.first().and_then(Option::as_ref).and_then(|found| choice::detail(found, wish, filter)))
    }

    /// What ids stand for; asks the shop once for those that are not known well enough.
    async fn find(&self, ids: &[String], enough: impl Fn(&Found) -> bool) -> Result<Vec<Known>, Error> {
        let mut known = Vec::with_capacity(ids.len());
        for id in ids {
            let kept = self.kept().known.get(id).await;
            known.push(kept.filter(|kept| kept.as_ref().is_none_or(&enough)));
        }
        let open = ids.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(id, _)| id.clone());
        let mut open: Vec<String> = open.collect();
        open.sort_unstable();
        let mut brought = Vec::new();
        if !open.is_empty() {
            let ask = async {
                let found = Arc::new(self.shelf.find(&open).await?);
                for (id, found) in open.iter().zip(found.iter()) {
                    self.kept().known.insert(id.clone(), found.clone()).await;
                }
                Ok::<_, store::Error>(found)
            };
            let found = Box::pin(self.kept().asked.try_get_with(open.clone(), ask)).await?;
            brought = open.into_iter().zip(found.iter().cloned()).collect();
        }
        let answer = |(id, known): (&String, Option<Known>)| match known {
            Some(known) => known,
            None => brought.iter().find(|(open, _)| open == id).and_then(|(_, found)| found.clone()),
        };
        Ok(ids.iter().zip(known).map(answer).collect())
    }
}

/// A product of a page, as the filter leaves it.
fn listing(product: &Arc<Product>, filter: &Filter) -> Option<Listing> {
    let fitting = product.variants.iter().filter(|variant| filter.takes_variant(variant)).cloned();
    let variants: Vec<_> = fitting.collect();
    (!variants.is_empty()).then(|| Listing { product: Arc::clone(product), variants })
}
