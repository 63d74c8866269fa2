//! The documents of one shop.

use std::{collections::BTreeMap, sync::Arc};

use moka::future::Cache;
use tokio_util::task::TaskTracker;

use super::{
    Document, Error, LONGEST_ID, Level, Seller, Settings, Streams,
    document::{self, Subject},
    follow::Followers,
    readings::Readings,
};
use crate::{
    catalog::{Catalog, Filter, Input, LookedProduct, LookedVariant, VariantsShown, Wish},
    checkout::{ids::ShopId, state::State, store::Store},
    clock::Clock,
};

/// Bytes of documents that are kept for each shop, about.
const KEPT_BYTES: u64 = 4 << 20;

/// What a board is made of.
pub struct Parts {
    /// The shop's name in configuration.
    pub shop: ShopId,
    /// Who sells.
    pub seller: Seller,
    /// What the shop offers.
    pub catalog: Arc<Catalog>,
    /// The shop: asked for its stock.
    pub store: Arc<dyn Store>,
    /// Our memory: what is held of it.
    pub state: Arc<dyn State>,
    /// Time, as the state has it.
    pub clock: Arc<dyn Clock>,
    /// Runs the poller.
    pub tasks: TaskTracker,
    /// Shared by all streams of the process.
    pub streams: Streams,
}

/// What is published of one shop.
pub struct Board {
    pub(super) shop: ShopId,
    seller: Seller,
    catalog: Arc<Catalog>,
    readings: Readings,
    documents: Cache<String, Option<Arc<Document>>>,
    pub(super) settings: Settings,
    pub(super) streams: Streams,
    pub(super) tasks: TaskTracker,
    pub(super) followers: Followers,
}

impl Board {
    /// A board on which nothing stands yet. Calls nobody.
    #[must_use]
    pub fn new(settings: Settings, parts: Parts) -> Self {
        let Parts { shop, seller, catalog, store, state, clock, tasks, streams } = parts;
        let weight = |id: &String, document: &Option<Arc<Document>>| {
            let document = document.as_ref().map_or(0, |document| document.text.len() + document.tag.len());
            u32::try_from(128 + id.len() + document).unwrap_or(u32::MAX)
        };
        Self {
            readings: Readings::new(shop.clone(), store, state, clock, settings.reading),
            documents: Cache::builder()
                .max_capacity(KEPT_BYTES)
                .weigher(weight)
                .time_to_live(settings.poll)
                .build(),
            shop,
            seller,
            catalog,
            settings,
            streams,
            tasks,
            followers: Followers::default(),
        }
    }

    /// What all streams of the process share.
    #[must_use]
    pub const fn streams(&self) -> &Streams {
        &self.streams
    }

    /// The document of one product; `None` when the id stands for nothing that is sold here. Asked by many at once,
    /// it is made once, and kept for [`Settings::poll`].
    ///
    /// # Errors
    /// [`Error`]; it is not kept.
    pub async fn document(&self, id: &str) -> Result<Option<Arc<Document>>, Error> {
        if id.is_empty() || id.len() > LONGEST_ID {
            return Ok(None);
        }
        let id = id.to_owned();
        let make = async { Ok::<_, Error>(self.make(std::slice::from_ref(&id)).await?.pop().flatten()) };
        let document = Box::pin(self.documents.try_get_with(id.clone(), make)).await;
        document.map_err(|error| (*error).clone())
    }

    /// The documents of several products, in the order asked; made anew where none is kept.
    pub(super) async fn documents(&self, ids: &[String]) -> Result<Vec<Option<Arc<Document>>>, Error> {
        let mut missing = Vec::new();
        let mut known = BTreeMap::new();
        for id in ids {
            match self.documents.get(id).await {
                Some(document) => drop(known.insert(id.clone(), document)),
                None => missing.push(id.clone()),
            }
        }
        if !missing.is_empty() {
            let made = self.renew(&missing).await?;
            known.extend(missing.into_iter().zip(made));
        }
        Ok(ids.iter().map(|id| known.get(id).cloned().flatten()).collect())
    }

    /// What is kept of a product, without asking anybody; the outer `None`: nothing.
    pub(super) async fn kept(&self, id: &String) -> Option<Option<Arc<Document>>> {
        self.documents.get(id).await
    }

    /// Makes documents anew and keeps them.
    pub(super) async fn renew(&self, ids: &[String]) -> Result<Vec<Option<Arc<Document>>>, Error> {
        let made = Box::pin(self.make(ids)).await?;
        for (id, document) in ids.iter().zip(&made) {
            self.documents.insert(id.clone(), document.clone()).await;
        }
        Ok(made)
    }

    async fn make(&self, ids: &[String]) -> Result<Vec<Option<Arc<Document>>>, Error> {
        let subjects = self.subjects(ids).await?;
        let mut variants: Vec<String> =
            subjects.values().flat_map(Subject::variants).map(|variant| variant.id.clone()).collect();
        variants.sort_unstable();
        variants.dedup();
        let most = self.readings.most(&variants).await;
        let made = |id: &String| {
            let document = document::render(subjects.get(id)?, &self.seller, |variant| {
                Level::of(variant.availability, most.get(&variant.id).copied(), self.settings.threshold)
            });
            Some(Arc::new(document))
        };
        Ok(ids.iter().map(made).collect())
    }

    /// What ids stand for.
    async fn subjects(&self, ids: &[String]) -> Result<BTreeMap<String, Subject>, Error> {
        let mut subjects = BTreeMap::new();
        // A list of ids cannot hold one with a comma beside another: those are asked for alone.
        let (alone, listed): (Vec<String>, Vec<String>) =
            ids.iter().cloned().partition(|id| id.contains(','));
        let parts = listed.chunks(self.catalog.settings().ids.max(1)).chain(alone.chunks(1));
        for part in parts {
            let looked = self.catalog.lookup(part, &Filter::default()).await?;
            for LookedProduct { product, variants } in looked.products {
                for LookedVariant { variant, inputs } in variants {
                    for Input { id, exact } in inputs {
                        let single = product.axes.is_empty()
                            && product.variants.len() == 1
                            && product.shown == VariantsShown::All;
                        let subject = if exact || single {
                            Some(Subject::One(Arc::clone(&variant)))
                        } else if matches!(product.shown, VariantsShown::Some { .. }) {
                            // Looked at together with others, it brought a share of its variants.
                            let detail =
                                self.catalog.product(&id, &Wish::default(), &Filter::default()).await?;
                            detail.map(|detail| Subject::Choice(detail.product))
                        } else {
                            Some(Subject::Choice(Arc::clone(&product)))
                        };
                        subjects.extend(subject.map(|subject| (id, subject)));
                    }
                }
            }
        }
        Ok(subjects)
    }
}
