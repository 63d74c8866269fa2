//! The embedded back end: one SQLite file in a data folder that one process owns.
//!
//! WAL and `synchronous = FULL`: a reply goes out after its commit is on disk. One writer thread takes all
//! steps that wait and pays one `fsync` for them; readers have a connection of their own. The folder is
//! locked: a second process is refused. A new start frees the claims of the one before it: a claim without
//! an attempt is dropped and its session gets a new cart, a claim with one stays until the attempt is settled.
//! The process is alone: turns among processes and signs of life cost nothing here.
//!
//! | table | key | value | written by |
//! |---|---|---|---|
//! | `claims` | scope | fingerprint, fence, state, session, attempt, answer, `keep_until` | `claim`, `commit`, `sweep` |
//! | `sessions` | shop, id | version, whether it rests, when it is due (`expires_at`), open attempt, review, epoch, JSON | `commit`, `sweep` |
//! | `sightings` | shop, shop order | session, whether it is its order, first and last sight as JSON | `commit`, `sweep` |
//! | `shelves` | shop, stock id | who holds and buys, counts, as JSON | `reserve`, `observe`, `give_back`, `commit` |
//! | `sequences` | shop | the last number of its stock sequence | the same |
//! | `operations` | id | session version: finds out whether a step was taken | `commit`, `sweep` |
//! | `installation` | name | the fingerprint secret; the epoch; the latest time | the first start; a start after a restore; `sweep` |

mod records;
mod schema;
mod steps;
mod stock;
mod writer;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rusqlite::{Connection, params};

pub use self::records::Archive;
use self::writer::Writer;
use super::{Retention, decoded};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{Commit, Error, NewClaim, OpenAttempt, SharedTurn, State},
    },
    clock::Clock,
    idempotency::Decision,
    stock::{Reading, Reserve, Reserved, Shelves, StockId, Units},
};

/// Why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process works in it.
    #[error("another process uses the data folder {0}: stop it, or give this one a folder of its own")]
    Locked(PathBuf),
    /// It was written by a newer program.
    #[error(
        "{path} has state format {found}, this program knows up to {known}: start the newer program again"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// It was written by an older program, and this one may only read.
    #[error(
        "{path} has state format {found}, this program reads {known}: start the gateway once with this program"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// There is no state in it.
    #[error("the data folder {0} holds no state: has the gateway ever run with it?")]
    Missing(PathBuf),
    /// The folder or a file in it cannot be used.
    #[error("the data folder {path} cannot be used")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// SQLite refuses.
    #[error("the state file cannot be used")]
    Sqlite(#[from] rusqlite::Error),
    /// What it holds cannot be read.
    #[error("the state file holds what cannot be read: {0}")]
    Unreadable(String),
}

/// The embedded back end.
pub struct Sqlite {
    writer: Writer,
    reader: Arc<Mutex<Connection>>,
    secret: Vec<u8>,
    clock: Arc<dyn Clock>,
    /// The latest time of the starts before.
    not_before: DateTime<Utc>,
    /// Held for the life of the process.
    _lock: File,
}

impl Sqlite {
    /// Opens the state in a folder, makes it if there is none, and frees what an earlier start left running.
    ///
    /// # Errors
    /// [`OpenError`]: the program should stop with its text.
    pub fn open(folder: &Path, retention: Retention, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let (lock, mut connection) = own(folder)?;
        let io = |source| OpenError::Io { path: folder.to_owned(), source };
        let path = folder.join("state.sqlite");
        let secret = schema::secret(&connection)?;
        steps::free_earlier_claims(&mut connection)?;
        // The time never goes back over a restart, whatever the machine's clock says.
        let not_before = schema::last_time(&connection)?;
        clock.align(clock.wall().max(not_before));
        let reader = schema::connect(&path)?;
        let writer = Writer::start(connection, retention, Arc::clone(&clock)).map_err(io)?;
        let reader = Arc::new(Mutex::new(reader));
        Ok(Self { writer, reader, secret, clock, not_before, _lock: lock })
    }

    /// Notes that the state was put back from a copy: sessions of before are looked up at the shop before their next
    /// order. Call it once, before [`Sqlite::open`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn note_restore(folder: &Path) -> Result<(), OpenError> {
        let (_lock, connection) = own(folder)?;
        schema::raise_epoch(&connection)
    }

    /// The secret under which fingerprints are made: this installation's own.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let reader = Arc::clone(&self.reader);
        tokio::task::spawn_blocking(move || query(&reader.lock().unwrap_or_else(PoisonError::into_inner)))
            .await
            .map_err(|error| Error::Unavailable(Box::new(error)))?
    }
}

#[async_trait]
impl State for Sqlite {
    async fn claim(&self, new: NewClaim) -> Result<Decision, Error> {
        self.writer.claim(new).await
    }

    async fn session(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        let (shop, id) = (shop.clone(), id.clone());
        self.read(move |connection| load(connection, &shop, &id)).await
    }

    async fn session_by_token(&self, shop: &ShopId, token: &str) -> Result<Option<Session>, Error> {
        let (shop, token) = (shop.clone(), token.to_owned());
        self.read(move |connection| {
            let sql = "SELECT id FROM sessions WHERE shop = ?1 AND continue_token = ?2";
            let found = ids(connection, sql, params![shop.as_str(), token])?;
            found.first().map_or(Ok(None), |id| load(connection, &shop, id))
        })
        .await
    }

    async fn commit(&self, commit: Commit) -> Result<u64, Error> {
        self.writer.commit(commit).await
    }

    async fn take_turn(&self, _: &ShopId, _: &SessionId) -> Result<Option<SharedTurn>, Error> {
        Ok(Some(SharedTurn(0)))
    }

    async fn end_turn(&self, _: &ShopId, _: &SessionId, _: SharedTurn) -> Result<(), Error> {
        Ok(())
    }

    async fn beat(&self) -> Result<(), Error> {
        self.clock.align(self.clock.wall().max(self.not_before));
        Ok(())
    }

    fn lease(&self) -> Option<Duration> {
        None
    }

    async fn reserve(&self, shop: &ShopId, wish: Reserve) -> Result<Reserved, Error> {
        self.writer.reserve(shop.clone(), wish).await
    }

    async fn observe(&self, shop: &ShopId, readings: Vec<Reading>) -> Result<u64, Error> {
        self.writer.observe(shop.clone(), readings).await
    }

    async fn give_back(&self, shop: &ShopId, session: &SessionId, units: Vec<Units>) -> Result<(), Error> {
        self.writer.give_back(shop.clone(), session.clone(), units).await
    }

    async fn shelves(&self, shop: &ShopId, of: Option<&[StockId]>) -> Result<Shelves, Error> {
        let (shop, of) = (shop.clone(), of.map(<[StockId]>::to_vec));
        self.read(move |connection| stock::read(connection, &shop, of.as_deref())).await
    }

    async fn open_attempts(&self, shop: &ShopId) -> Result<Vec<OpenAttempt>, Error> {
        let shop = shop.clone();
        self.read(move |connection| {
            let sql = "SELECT id FROM sessions WHERE shop = ?1 AND attempt IS NOT NULL";
            let open = ids(connection, sql, params![shop.as_str()])?;
            Ok(open.into_iter().map(|session| OpenAttempt { session, elsewhere: false }).collect())
        })
        .await
    }

    async fn overdue(&self, shop: &ShopId, now: DateTime<Utc>) -> Result<Vec<SessionId>, Error> {
        let shop = shop.clone();
        self.read(move |connection| {
            ids(
                connection,
                "SELECT id FROM sessions WHERE shop = ?1 AND ended = 0 AND attempt IS NULL AND review = 0
                     AND expires_at <= ?2",
                params![shop.as_str(), now.timestamp_millis()],
            )
        })
        .await
    }

    async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error> {
        self.writer.sweep(now).await
    }

    async fn ping(&self) -> Result<(), Error> {
        self.writer.ping().await
    }
}

/// Takes a folder for this process and opens the state in it, in the newest format.
fn own(folder: &Path) -> Result<(File, Connection), OpenError> {
    let io = |source| OpenError::Io { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(io)?;
    let lock = File::create(folder.join("lock")).map_err(io)?;
    lock.try_lock().map_err(|_| OpenError::Locked(folder.to_owned()))?;
    let path = folder.join("state.sqlite");
    let mut connection = schema::connect(&path)?;
    schema::migrate(&mut connection, &path)?;
    Ok((lock, connection))
}

fn ids(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<SessionId>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(unavailable)?;
    let rows = statement.query_map(values, |row| row.get::<_, String>(0)).map_err(unavailable)?;
    rows.map(|row| row.map(SessionId::new).map_err(unavailable)).collect()
}

/// What is read of a session, in front of a condition.
const SESSION: &str = "SELECT version, body, epoch < (SELECT CAST(CAST(value AS TEXT) AS INTEGER)
    FROM installation WHERE name = 'epoch') FROM sessions";

fn sessions(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Session>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(unavailable)?;
    let rows = statement
        .query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(unavailable)?;
    rows.map(|row| {
        let (version, body, older): (i64, String, bool) = row.map_err(unavailable)?;
        let mut session = decoded(u64::try_from(version).unwrap_or_default(), &body)?;
        session.of_older_epoch |= older;
        Ok(session)
    })
    .collect()
}

/// Reads a session.
fn load(connection: &Connection, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
    let sql = format!("{SESSION} WHERE shop = ?1 AND id = ?2");
    Ok(sessions(connection, &sql, params![shop.as_str(), id.as_str()])?.into_iter().next())
}

fn unavailable(error: rusqlite::Error) -> Error {
    Error::Unavailable(Box::new(error))
}
