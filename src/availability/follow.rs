//! Who follows which products, and what each has seen.
//!
//! While a shop has followers one task makes the documents of all that they follow anew, again and again; followers
//! only look at what it kept. So many followers cost the shop what one costs, and one that reads slowly finds the
//! newest documents when it comes back: nothing piles up.
//!
//! The id of an event says what its receiver has seen of each product, as a short digest. Whoever is sent it back
//! knows what is new, without having met that client: this process after a restart, or another one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use data_encoding::BASE32_NOPAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{Board, Document, Error, MOST_PRODUCTS, escaped};

/// Most products of a shop that are followed at one time.
const MOST_FOLLOWED: usize = 1_000;
/// In an event's id: nothing was seen of this product.
const UNSEEN: &str = "-";

/// There are too many streams, or too many products are followed: come back later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Something that a follower has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The product's document is this now.
    Changed(Arc<Document>),
    /// The product is not sold here, or no longer; a line of JSON with its id, escaped.
    Gone(String),
}

#[derive(Debug, Default)]
struct Followed {
    /// How many follow each product.
    products: BTreeMap<String, usize>,
    polls: bool,
}

/// The followers of one shop.
#[derive(Debug)]
pub(super) struct Followers {
    followed: Mutex<Followed>,
    /// Counts what the poller has made anew.
    rounds: watch::Sender<u64>,
}

impl Default for Followers {
    fn default() -> Self {
        Self { followed: Mutex::default(), rounds: watch::Sender::new(0) }
    }
}

impl Followers {
    fn with<T>(&self, act: impl FnOnce(&mut Followed) -> T) -> T {
        act(&mut self.followed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Board {
    /// Follows products, at most [`MOST_PRODUCTS`] of them. What the event id of an earlier stream says was seen is
    /// not news again.
    ///
    /// # Errors
    /// [`Full`].
    pub fn follow(self: &Arc<Self>, ids: Vec<String>, last: Option<&str>) -> Result<Following, Full> {
        let permit = Arc::clone(&self.streams.clients).try_acquire_owned().map_err(|_| Full)?;
        let starts = self.followers.with(|followed| {
            let new = ids.iter().filter(|id| !followed.products.contains_key(*id)).count();
            if ids.len() > MOST_PRODUCTS || followed.products.len() + new > MOST_FOLLOWED {
                return Err(Full);
            }
            for id in &ids {
                *followed.products.entry(id.clone()).or_default() += 1;
            }
            Ok(!std::mem::replace(&mut followed.polls, true))
        })?;
        if starts {
            self.tasks.spawn(Arc::clone(self).poll());
        }
        let seen = seen(last, ids.len());
        let rounds = self.followers.rounds.subscribe();
        Ok(Following { board: Arc::clone(self), ids, seen, rounds, _permit: permit })
    }

    /// Keeps the documents of what is followed new, until nobody follows or the process stops.
    async fn poll(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.streams.ending.cancelled() => return,
                () = tokio::time::sleep(self.settings.poll) => {}
            }
            let ids = self.followers.with(|followed| {
                followed.polls = !followed.products.is_empty();
                followed.products.keys().cloned().collect::<Vec<_>>()
            });
            if ids.is_empty() {
                return;
            }
            for part in ids.chunks(MOST_PRODUCTS) {
                match Box::pin(self.renew(part)).await {
                    // At once: what is kept is not kept for long.
                    Ok(_) => self.followers.rounds.send_modify(|rounds| *rounds += 1),
                    Err(error) => {
                        tracing::warn!(shop = %self.shop, %error, "availability could not be looked at");
                    }
                }
            }
        }
    }
}

/// Somebody who follows products; no longer once it is dropped.
pub struct Following {
    board: Arc<Board>,
    ids: Vec<String>,
    /// What was seen of each, as digests.
    seen: Vec<Option<String>>,
    rounds: watch::Receiver<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Following {
    /// What is new at the beginning: makes documents that are not kept.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn first(&mut self) -> Result<Vec<(String, News)>, Error> {
        let documents = self.board.documents(&self.ids).await?;
        Ok(documents.into_iter().enumerate().filter_map(|(at, document)| self.see(at, document)).collect())
    }

    /// Waits for news, each with the id of its event. Cancelled, it has lost nothing.
    pub async fn next(&mut self) -> Vec<(String, News)> {
        loop {
            if self.rounds.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let mut documents = Vec::with_capacity(self.ids.len());
            for id in &self.ids {
                documents.push(self.board.kept(id).await);
            }
            let news: Vec<_> = documents
                .into_iter()
                .enumerate()
                .filter_map(|(at, document)| self.see(at, document?))
                .collect();
            if !news.is_empty() {
                return news;
            }
        }
    }

    /// Takes a document for seen, if it is new.
    fn see(&mut self, at: usize, document: Option<Arc<Document>>) -> Option<(String, News)> {
        let id = self.ids.get(at)?;
        let digest = digest(id, document.as_deref());
        let seen = self.seen.get_mut(at)?;
        if seen.as_ref() == Some(&digest) {
            return None;
        }
        *seen = Some(digest);
        let news = match document {
            Some(document) => News::Changed(document),
            None => News::Gone(escaped(&json!({ "productID": id }))),
        };
        Some((self.event_id(), news))
    }

    fn event_id(&self) -> String {
        let parts: Vec<&str> = self.seen.iter().map(|seen| seen.as_deref().unwrap_or(UNSEEN)).collect();
        parts.join(".")
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.board.followers.with(|followed| {
            for id in &self.ids {
                if let Some(count) = followed.products.get_mut(id) {
                    *count -= 1;
                    if *count == 0 {
                        followed.products.remove(id);
                    }
                }
            }
        });
    }
}

/// What the id of an event says was seen; nothing, if it is of a stream of other products.
fn seen(last: Option<&str>, products: usize) -> Vec<Option<String>> {
    let parts: Vec<&str> = last.unwrap_or_default().split('.').collect();
    if parts.len() != products {
        return vec![None; products];
    }
    parts.into_iter().map(|part| (part != UNSEEN).then(|| part.to_owned())).collect()
}

/// Stands for a product's document: eight letters, forty bits.
fn digest(id: &str, document: Option<&Document>) -> String {
    let mut hash = Sha256::new();
    hash.update(id.as_bytes());
    hash.update([0]);
    hash.update(document.map_or("gone", |document| &document.tag).as_bytes());
    let digest = hash.finalize();
    BASE32_NOPAD.encode(digest.get(..5).unwrap_or(&digest)).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_says_what_was_seen_of_as_many_products() {
        assert_eq!(seen(Some("ab.-"), 2), [Some("ab".to_owned()), None]);
        for other in [None, Some(""), Some("ab"), Some("ab.cd.ef"), Some("…")] {
            assert_eq!(seen(other, 2), [None, None], "{other:?}");
        }
    }

    #[test]
    fn a_digest_is_of_one_product_and_one_document() {
        let document = |tag: &str| Document { text: String::new(), tag: tag.to_owned() };
        let (one, two) = (document("\"1\""), document("\"2\""));
        assert_eq!(digest("a", Some(&one)), digest("a", Some(&one)));
        assert_ne!(digest("a", Some(&one)), digest("a", Some(&two)));
        assert_ne!(digest("a", Some(&one)), digest("b", Some(&one)));
        assert_ne!(digest("a", Some(&one)), digest("a", None));
        assert_eq!(digest("a", None).len(), 8);
    }
}
