//! The use cases, and the short memory in front of the shop.
//!
//! What is kept: see `memory`. Equal questions at one time are asked once; a failure is told to all who wait
//! and is not kept. What a page brings answers later questions for its ids too. Different questions go to the shop
//! a few at a time ([`Settings::calls`]): looking around must not take the room of those who buy.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    Detail, Filter, Found, Product, Query, Shelf, Tree, Variant, VariantsShown, Wish, choice,
    memory::{Known, Memory},
};
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
    /// How many questions are asked of the shop at one time.
    pub calls: usize,
    /// How long a question waits for its turn.
    pub wait: Duration,
}

/// The shop could not be asked. Shared by all who asked the same.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the shop could not be asked for its catalogue")]
pub struct Error(#[source] Arc<Failed>);

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Shop(#[from] store::Error),
    #[error("too many other questions are on their way to the shop")]
    Busy,
}

impl Error {
    /// Seconds after which the caller may try again.
    #[must_use]
    pub fn retry_after_secs(&self) -> u64 {
        match &*self.0 {
            Failed::Shop(error) => checkout::shop_wait_secs(error),
            Failed::Busy => 1,
        }
    }
}

impl From<Arc<Failed>> for Error {
    fn from(error: Arc<Failed>) -> Self {
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

/// The catalogue of one shop.
pub struct Catalog {
    shelf: Arc<dyn Shelf>,
    settings: Settings,
    turns: Semaphore,
    /// Made at the first question: a shop that nobody asks takes no room.
    memory: OnceLock<Memory>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Catalog {
    /// An empty memory in front of a shelf.
    #[must_use]
    pub fn new(shelf: Arc<dyn Shelf>, settings: Settings) -> Self {
        let turns = Semaphore::new(settings.calls.max(1));
        Self { shelf, settings, turns, memory: OnceLock::new() }
    }

    fn memory(&self) -> &Memory {
        self.memory.get_or_init(|| Memory::new(self.settings.cache_bytes, self.settings.ttl))
    }

    /// A turn to ask the shop; the calls of one question follow one another.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Failed> {
        match tokio::time::timeout(self.settings.wait, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Failed::Busy),
        }
    }

    /// How it behaves.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The shop's categories; asked for only when somebody names one.
    async fn tree(&self) -> Result<Arc<Tree>, Error> {
        let ask = async {
            let _turn = self.turn().await?;
            Ok::<_, Failed>(Arc::new(Tree::new(self.shelf.categories().await?)))
        };
        Ok(Box::pin(self.memory().tree.try_get_with((), ask)).await?)
    }

    /// The filter with all categories below those that it names.
    async fn widened(&self, filter: &Filter) -> Result<Filter, Error> {
        if filter.categories.is_empty() {
            return Ok(filter.clone());
        }
        let categories = self.tree().await?.with_those_below(&filter.categories);
        Ok(Filter { categories, ..filter.clone() })
    }

    /// One page of products that fit.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn search(&self, query: &Query) -> Result<Results, Error> {
        let mut categories = Vec::new();
        if !query.filter.categories.is_empty() {
            categories = self.tree().await?.keys(&query.filter.categories);
            if categories.is_empty() {
                return Ok(Results { listings: Vec::new(), total: Some(0), more: false });
            }
        }
        let ask = async {
            let _turn = self.turn().await?;
            let page = Arc::new(self.shelf.search(query, &categories).await?);
            self.memory().remember(query, &page).await;
            Ok::<_, Failed>(page)
        };
        let page = Box::pin(self.memory().pages.try_get_with(query.clone(), ask)).await?;
        let listings = page.products.iter().filter_map(|product| listing(product, &query.filter)).collect();
        Ok(Results { listings, total: page.total, more: page.more })
    }

    /// Products and variants by their ids. Filters take away what was found.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn lookup(&self, ids: &[String], filter: &Filter) -> Result<Looked, Error> {
        let filter = self.widened(filter).await?;
        let mut seen = BTreeSet::new();
        let ids: Vec<String> = ids.iter().filter(|id| seen.insert(id.as_str())).cloned().collect();
        let found = self.find(&ids, |_| true).await?;
        let mut looked = Looked::default();
        for (id, found) in ids.into_iter().zip(found) {
            let Some(found) = found else {
                looked.unknown.push(id);
                continue;
            };
            looked.add(id, &found, &filter);
        }
        looked.products.retain(|looked| filter.takes(&looked.product) && !looked.variants.is_empty());
        Ok(looked)
    }

    /// One product closely; `None` when the id stands for nothing, or the filter leaves nothing of it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn product(&self, id: &str, wish: &Wish, filter: &Filter) -> Result<Option<Detail>, Error> {
        let filter = self.widened(filter).await?;
        let whole = |found: &Found| !matches!(found.product.shown, VariantsShown::Some { .. });
        let found = self.find(&[id.to_owned()], whole).await?;
        let Some(mut found) = found.into_iter().next().flatten() else { return Ok(None) };
        if choice::may_be_further_on(&found, wish, &filter)
            && let Some(chosen) = self.closely(id, wish).await?
        {
            found = chosen;
        }
        Ok(choice::detail(&found, wish, &filter))
    }

    /// A product with so many variants that those wished for have to be asked for.
    async fn closely(&self, id: &str, wish: &Wish) -> Result<Known, Error> {
        let question = (id.to_owned(), wish.clone());
        if let Some(kept) = self.memory().chosen(&question).await {
            return Ok(kept);
        }
        let ask = async {
            let _turn = self.turn().await?;
            let found = self.shelf.closely(id, wish).await?;
            self.memory().choose(&question, &found).await;
            Ok::<_, Failed>(found)
        };
        Ok(Box::pin(self.memory().choosing.try_get_with(question.clone(), ask)).await?)
    }

    /// What ids stand for; asks the shop once for those that are not known well enough.
    async fn find(&self, ids: &[String], enough: impl Fn(&Found) -> bool) -> Result<Vec<Known>, Error> {
        let mut known = Vec::with_capacity(ids.len());
        for id in ids {
            let kept = self.memory().known(id).await;
            known.push(kept.filter(|kept| kept.as_ref().is_none_or(&enough)));
        }
        let open = ids.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(id, _)| id.clone());
        // One id that takes a call of its own; more of them are not looked for, and so are unknown and not kept.
        let mut alone = 0;
        let mut open: Vec<String> = open
            .filter(|id| {
                alone += usize::from(self.shelf.takes_its_own_call(id));
                alone < 2 || !self.shelf.takes_its_own_call(id)
            })
            .collect();
        open.sort_unstable();
        let mut brought = Vec::new();
        if !open.is_empty() {
            let ask = async {
                let _turn = self.turn().await?;
                let found = Arc::new(self.shelf.find(&open).await?);
                self.memory().keep(open.iter().cloned().zip(found.iter().cloned())).await;
                Ok::<_, Failed>(found)
            };
            let found = Box::pin(self.memory().asked.try_get_with(open.clone(), ask)).await?;
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

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
