//! The recorder: a proxy in front of a shop that writes what passes as HAR 1.2, scrubbed while recording.
//!
//! In: a shop's address and a file to make. Out: a router that passes every call on, and a file that the tape
//! plays and every HAR viewer opens, also after `kill -9` (`file.rs`).
//!
//! - `proxy.rs` passes calls on and copies them, `entry.rs` writes an exchange as an entry, `scrub` puts
//!   stand-ins in the place of secrets and personal data.
//! - An entry's `_tillgate.stand_ins` lists the stand-ins in it, `personal` those of them that the buyer
//!   gave: these an answer does not bind when the tape is played. The shop lies at `https://shop.example.com`.
//! - Entries are written as exchanges end, each with the moment at which it began; no two begin at the same.
//!   Readers sort by it.
//! - Left out, with a comment: bodies above 8 MiB, compressed ones, documents that are neither text nor a
//!   picture, forms with files, and the text of pages for people (HTML outside the API).
//! - A call that could not be sent (no connection) is answered with 502 and not recorded. One whose answer did
//!   not come or broke off has status 0: played, it breaks off as well.
//!
//! Not scrubbed: country and state, order numbers and customer numbers, what is bought and when, and what a plugin
//! puts under names of its own outside of addresses, customers, payments, checkout forms and order meta.

mod entry;
mod file;
mod proxy;
mod scrub;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use chrono::{DateTime, TimeDelta, Utc};
use tokio_util::task::TaskTracker;
use url::Url;

use self::{
    entry::{Answered, Asked},
    file::HarFile,
    scrub::Scrubber,
};
use crate::{clock::Clock, net};

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The shop's address cannot be used.
    #[error("the shop's address {0}")]
    Store(&'static str),
    /// The file exists.
    #[error("{} exists: choose another name, or write over it with --force", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{} cannot be written", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No HTTP client.
    #[error(transparent)]
    Net(#[from] net::Error),
}

/// A running recording.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: reqwest::Client,
    /// Without a slash at the end.
    shop: String,
    out: PathBuf,
    clock: Arc<dyn Clock>,
    last: Mutex<Option<DateTime<Utc>>>,
    recording: Mutex<Recording>,
    tracker: TaskTracker,
}

#[derive(Debug)]
struct Recording {
    scrubber: Scrubber,
    file: HarFile,
    lost: u64,
}

impl Recorder {
    /// Makes the file and gets ready to record the shop at `store`. The work of calls runs in `tracker`.
    ///
    /// # Errors
    /// If the address is no plain http(s) address, or the file exists (without `force`) or cannot be written.
    pub fn start(
        store: &Url,
        out: &Path,
        force: bool,
        clock: Arc<dyn Clock>,
        tracker: TaskTracker,
    ) -> Result<Self, Error> {
        if !matches!(store.scheme(), "http" | "https") || !store.has_host() {
            return Err(Error::Store("must begin with http:// or https:// and name a host"));
        }
        if !store.username().is_empty() || store.password().is_some() {
            return Err(Error::Store("must not hold a user and a password"));
        }
        if store.query().is_some() || store.fragment().is_some() {
            return Err(Error::Store("must not hold a query or a fragment"));
        }
        let client = net::client(net::Purpose::Record)?;
        let file = HarFile::create(out, force).map_err(|source| {
            if source.kind() == std::io::ErrorKind::AlreadyExists {
                Error::Exists(out.to_owned())
            } else {
                Error::Write { file: out.to_owned(), source }
            }
        })?;
        Ok(Self(Arc::new(Inner {
            client,
            shop: store.as_str().trim_end_matches('/').to_owned(),
            out: out.to_owned(),
            clock,
            last: Mutex::default(),
            recording: Mutex::new(Recording { scrubber: Scrubber::new(store), file, lost: 0 }),
            tracker,
        })))
    }

    /// The proxy: takes every path.
    pub fn router(&self) -> Router {
        Router::new().fallback(proxy::forward).with_state(Arc::clone(&self.0))
    }

    /// How many exchanges stand in the file.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.0.lock().file.entries()
    }

    /// Flushes the file to the disk, once no call runs any more. Says how many exchanges it has.
    ///
    /// # Errors
    /// If that fails, or exchanges could not be written while recording.
    pub fn finish(&self) -> Result<u64, Error> {
        let mut recording = self.0.lock();
        let failed = |source| Error::Write { file: self.0.out.clone(), source };
        recording.file.finish().map_err(failed)?;
        match recording.lost {
            0 => Ok(recording.file.entries()),
            lost => Err(failed(std::io::Error::other(format!("{lost} exchanges are missing in it")))),
        }
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present moment, later than any given before.
    fn moment(&self) -> DateTime<Utc> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let next = last.map_or(now, |last| now.max(last + TimeDelta::microseconds(1)));
        *last = Some(next);
        next
    }

    /// Learns what a call gives away; calls that run at the same time may show it too.
    async fn learn(self: &Arc<Self>, asked: Asked) -> Option<Asked> {
        let inner = Arc::clone(self);
        let work = move || {
            entry::learn(&mut inner.lock().scrubber, &asked);
            asked
        };
        self.tracker.spawn_blocking(work).await.ok()
    }

    /// Writes an exchange to the file.
    async fn record(self: &Arc<Self>, asked: Asked, answered: Answered) {
        let inner = Arc::clone(self);
        let work = move || {
            let mut recording = inner.lock();
            let entry = entry::entry(&mut recording.scrubber, &asked, &answered);
            if let Err(error) = recording.file.add(&entry) {
                recording.lost += 1;
                tracing::error!(%error, file = %inner.out.display(), "an exchange could not be written");
            }
        };
        if self.tracker.spawn_blocking(work).await.is_err() {
            self.lock().lost += 1;
            tracing::error!("an exchange could not be written");
        }
    }
}
