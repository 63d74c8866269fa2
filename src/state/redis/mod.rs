//! The shared back end: Redis 6.2 or newer, for several processes behind one balancer.
//!
//! Every step is one Lua script on one slot: whole or not at all, and in one order for all processes. Times are the
//! server's own: leases and quarantine are judged inside the scripts, durations go in. Each process is an *owner*
//! of its own making, which shows every 3 s that it lives; what one that is gone left behind changes hands
//! (`exactly-once.md` §3, R3, R8).
//!
//! The commits on which orders rest (*placing*, outcomes, decisions of a settler) go over connections of their own
//! and wait until replicas have them, where there are any. One that falls short is an error: nothing is sent to the
//! shop. After a change of the master, noticed by its replication id, no order is placed for a while, and sessions
//! of before are looked up at the shop before their next order (§6).
//!
//! `keys` names the keys and what they hold, `script` and `lua/` the steps, `commit` the one that writes, `link` the
//! connections, `checks` what a server has to be like. What can fail is [`crate::checkout::state::Error`]; a lost
//! reply is read back by the operation's id.

mod checks;
mod commit;
mod keys;
mod link;
mod records;
mod script;
mod stock;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use redis::{RedisError, Value};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;

use self::{
    keys::Keys,
    link::{Link, Wire},
    script::Script,
};
use super::{Retention, decoded};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{Commit, Error, LEASE, NewClaim, OpenAttempt, SharedTurn, State},
    },
    clock::{Clock, Ids},
    idempotency::{Answer, Claim, Decision},
    stock::{Reading, Reserve, Reserved, Shelves, StockId, Units},
};

pub use self::{checks::OpenError, records::Archive};

/// How long operations can be read back.
const OPERATIONS: Duration = Duration::from_hours(1);
/// How long traces of a process, or of a forgotten turn, are kept.
const TRACES: Duration = Duration::from_hours(24);
/// Connections for commits that wait for replicas: as many of them can wait at a time.
const DURABLE_LINKS: usize = 4;
/// Most sessions that a list of work holds.
const AT_ONCE: usize = 500;

/// An address with credentials in it.
#[derive(Debug, Clone)]
pub struct SecretUrl(pub SecretString);

impl SecretUrl {
    fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Where the state is kept.
#[derive(Debug, Clone)]
pub enum Place {
    /// One server.
    Server(SecretUrl),
    /// The master that sentinels name.
    Sentinels {
        /// The sentinels.
        urls: Vec<SecretUrl>,
        /// The name of the master.
        master: String,
        /// The user on the master, if it wants one.
        username: Option<String>,
        /// The password on the master, if it wants one.
        password: Option<SecretString>,
    },
    /// A cluster; any of its nodes.
    Cluster(Vec<SecretUrl>),
}

/// Settings of the back end.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where.
    pub place: Place,
    /// In front of every key.
    pub prefix: String,
    /// How many replicas must have a commit on which an order rests; `None` asks one where there is any.
    pub replicas: Option<u32>,
    /// How long no order is placed after a change of the master.
    pub quarantine: Duration,
    /// The shops that this process serves.
    pub shops: Vec<ShopId>,
    /// How long answers and sessions are kept.
    pub retention: Retention,
    /// Whether a server without append-only file, or one that may evict, is used all the same (for tests).
    pub admit_unsafe: bool,
}

/// The shared back end, as one process sees it.
pub struct Redis {
    settings: Settings,
    owner: String,
    link: Link,
    durable: Vec<Link>,
    /// Which of the durable connections are free.
    free: Mutex<Vec<usize>>,
    waiting: Semaphore,
    replicas: u32,
    secret: Vec<u8>,
    clock: Arc<dyn Clock>,
    /// When the sign of life was sent that arrived last.
    seen: Mutex<Instant>,
}

impl Redis {
    /// Connects, checks what the server is like, and shows that this process lives.
    ///
    /// # Errors
    /// [`OpenError`]: the program should stop with its text.
    pub async fn open(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let link = Link::new(&settings)?;
        let mut wire = link.wire().await?;
        let server = checks::server(&mut wire, settings.admit_unsafe).await?;
        let secret = installation_secret(&mut wire, &settings.prefix).await?;
        let replicas = settings.replicas.unwrap_or_else(|| server.replicas.min(1));
        let durable =
            (0..DURABLE_LINKS).map(|_| Link::new(&settings)).collect::<Result<Vec<_>, RedisError>>()?;
        let state = Self {
            owner: Ids.uuid(),
            link,
            free: Mutex::new((0..durable.len()).collect()),
            waiting: Semaphore::new(durable.len()),
            durable,
            replicas,
            secret,
            clock,
            seen: Mutex::new(Instant::now()),
            settings,
        };
        state.beat().await.map_err(|error| OpenError::Unusable(error.to_string()))?;
        Ok(state)
    }

    /// The secret under which fingerprints are made: the same for all processes of this installation.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    fn keys(&self, shop: &ShopId) -> Keys {
        Keys::new(&self.settings.prefix, shop)
    }

    /// Runs a script over the shared connection.
    async fn run(&self, script: &Script, keys: &[String], arguments: &[Vec<u8>]) -> Result<Value, Error> {
        let mut wire = self.link.wire().await.map_err(unavailable)?;
        let result = script.run(&mut wire, keys, arguments).await;
        judged(&self.link, result).await
    }

    async fn query<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, Error> {
        let mut wire = self.link.wire().await.map_err(unavailable)?;
        let result = command.query_async(&mut wire).await;
        judged(&self.link, result).await
    }

    fn quarantine_ms(&self) -> Vec<u8> {
        millis(self.settings.quarantine)
    }

    async fn load(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        load(&self.link, &self.keys(shop), id).await
    }

    async fn ids_by_score(&self, key: String, most: &str) -> Result<Vec<SessionId>, Error> {
        let mut command = redis::cmd("ZRANGEBYSCORE");
        command.arg(key).arg("-inf").arg(most).arg("LIMIT").arg(0).arg(AT_ONCE);
        let ids: Vec<String> = self.query(&command).await?;
        Ok(ids.into_iter().map(SessionId::new).collect())
    }
}

/// Reads a session.
async fn load(link: &Link, keys: &Keys, id: &SessionId) -> Result<Option<Session>, Error> {
    type Row = ((Option<u64>, Option<String>, Option<String>, Option<u64>), Option<u64>);
    let mut both = redis::pipe();
    both.cmd("HMGET").arg(keys.session(id)).arg(&["version", "body", "left", "epoch"]);
    both.cmd("GET").arg(keys.epoch());
    let mut wire = link.wire().await.map_err(unavailable)?;
    let result: Result<Row, RedisError> = both.query_async(&mut wire).await;
    let ((version, body, left, of_epoch), epoch) = judged(link, result).await?;
    let (Some(version), Some(body)) = (version, body) else { return Ok(None) };
    let mut session = decoded(version, &body)?;
    if left.is_some() {
        session.leave_cart();
    }
    session.of_older_epoch |= of_epoch.unwrap_or_default() < epoch.unwrap_or_default();
    Ok(Some(session))
}

async fn judged<T>(link: &Link, result: Result<T, RedisError>) -> Result<T, Error> {
    match result {
        Ok(value) => Ok(value),
        Err(error) => {
            link.judge(&error).await;
            Err(unavailable(error))
        }
    }
}

/// The installation's secret, made by whoever comes first.
async fn installation_secret(wire: &mut Wire, prefix: &str) -> Result<Vec<u8>, RedisError> {
    let key = format!("{prefix}:secret");
    let mut set = redis::cmd("SET");
    set.arg(&key).arg(Ids.secret().as_slice()).arg("NX");
    let _: Value = set.query_async(wire).await?;
    redis::cmd("GET").arg(&key).query_async(wire).await
}

fn millis(duration: Duration) -> Vec<u8> {
    duration.as_millis().to_string().into_bytes()
}

fn unavailable(error: RedisError) -> Error {
    Error::Unavailable(Box::new(error))
}

/// What a script says: a word, and mostly one more.
fn said(value: Value) -> Result<(String, Vec<u8>), Error> {
    let list: Vec<Vec<u8>> = redis::from_redis_value(value)
        .map_err(|error| Error::Unreadable(format!("a script's answer: {error}")))?;
    let mut list = list.into_iter();
    let word = list.next().and_then(|word| String::from_utf8(word).ok());
    let word = word.ok_or_else(|| Error::Unreadable("a script's answer is empty".into()))?;
    Ok((word, list.next().unwrap_or_default()))
}

fn number(text: &[u8]) -> Result<u64, Error> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::Unreadable("a script's answer is no number".into()))
}

fn strange(word: &str) -> Error {
    Error::Unreadable(format!("a script answers `{word}`"))
}

#[async_trait]
impl State for Redis {
    async fn claim(&self, new: NewClaim) -> Result<Decision, Error> {
        let keys = self.keys(&new.shop);
        let session = new.session.as_ref();
        let names = [
            keys.claim(&new.scope),
            keys.owners(),
            keys.fences(),
            session.map_or_else(|| keys.none(), |id| keys.session(id)),
            keys.epoch(),
        ];
        let arguments = [
            new.fingerprint.as_str().as_bytes().to_vec(),
            self.owner.clone().into_bytes(),
            millis(LEASE),
            Ids.uuid().into_bytes(),
            if session.is_some() { b"1".to_vec() } else { b"0".to_vec() },
        ];
        let value = match self.run(&script::CLAIM, &names, &arguments).await {
            // The reply may have been lost: the same call is told the same.
            Err(Error::Unavailable(_)) => self.run(&script::CLAIM, &names, &arguments).await?,
            result => result?,
        };
        let (word, rest) = said(value)?;
        Ok(match word.as_str() {
            "run" => Decision::Run(Claim { scope: new.scope, fence: number(&rest)?, keyed: new.keyed }),
            "conflict" => Decision::Conflict,
            "placing" => Decision::InFlight { placing: true },
            "in_flight" => Decision::InFlight { placing: false },
            "replay" => Decision::Replay(
                serde_json::from_slice::<Answer>(&rest)
                    .map_err(|error| Error::Unreadable(format!("an answer: {error}")))?,
            ),
            other => return Err(strange(other)),
        })
    }

    async fn session(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        self.load(shop, id).await
    }

    async fn session_by_token(&self, shop: &ShopId, token: &str) -> Result<Option<Session>, Error> {
        let mut get = redis::cmd("GET");
        get.arg(self.keys(shop).token(token));
        match self.query::<Option<String>>(&get).await? {
            Some(id) => self.load(shop, &SessionId::new(id)).await,
            None => Ok(None),
        }
    }

    async fn commit(&self, commit: Commit) -> Result<u64, Error> {
        self.write(commit).await
    }

    async fn take_turn(&self, shop: &ShopId, id: &SessionId) -> Result<Option<SharedTurn>, Error> {
        let keys = self.keys(shop);
        let names = [keys.turn(id), keys.owners(), keys.session(id), keys.turns(), keys.epoch()];
        let arguments = [self.owner.clone().into_bytes(), millis(LEASE), millis(TRACES)];
        let value = self.run(&script::TAKE_TURN, &names, &arguments).await?;
        let number: Option<u64> = redis::from_redis_value(value)
            .map_err(|error| Error::Unreadable(format!("a script's answer: {error}")))?;
        Ok(number.map(SharedTurn))
    }

    async fn end_turn(&self, shop: &ShopId, id: &SessionId, turn: SharedTurn) -> Result<(), Error> {
        let names = [self.keys(shop).turn(id)];
        self.run(&script::END_TURN, &names, &[turn.0.to_string().into_bytes()]).await.map(drop)
    }

    async fn reserve(&self, shop: &ShopId, wish: Reserve) -> Result<Reserved, Error> {
        self.reserve_units(shop, &wish).await
    }

    async fn observe(&self, shop: &ShopId, readings: Vec<Reading>) -> Result<u64, Error> {
        self.shelve(shop, &readings, None).await
    }

    async fn give_back(&self, shop: &ShopId, session: &SessionId, units: Vec<Units>) -> Result<(), Error> {
        self.shelve(shop, &[], Some((session, &units))).await.map(drop)
    }

    async fn shelves(&self, shop: &ShopId, of: Option<&[StockId]>) -> Result<Shelves, Error> {
        self.read_shelves(shop, of).await
    }

    async fn beat(&self) -> Result<(), Error> {
        let started = Instant::now();
        let arguments = [self.owner.clone().into_bytes(), millis(TRACES), self.quarantine_ms()];
        let mut time = None;
        for shop in &self.settings.shops {
            let keys = self.keys(shop);
            let names = [keys.owners(), keys.epoch(), keys.replid(), keys.quarantine()];
            let told = self.run(&script::BEAT, &names, &arguments).await?;
            // Nodes of a cluster may disagree: all processes go by the first shop's.
            if let (None, Value::Int(told)) = (time, told) {
                time = DateTime::from_timestamp_millis(told);
            }
        }
        if let Some(time) = time {
            self.clock.align(time);
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = started;
        Ok(())
    }

    fn lease(&self) -> Option<Duration> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Some(LEASE.saturating_sub(seen.elapsed()))
    }

    async fn open_attempts(&self, shop: &ShopId) -> Result<Vec<OpenAttempt>, Error> {
        let keys = self.keys(shop);
        let ids = self.ids_by_score(keys.open(), "+inf").await?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut wire = self.link.wire().await.map_err(unavailable)?;
        let mut pipe = redis::pipe();
        for id in &ids {
            pipe.cmd("HGET").arg(keys.session(id)).arg("owner");
        }
        let result: Result<Vec<Option<String>>, RedisError> = pipe.query_async(&mut wire).await;
        let owners = judged(&self.link, result).await?;
        let mut seen = redis::pipe();
        seen.cmd("TIME").cmd("HGETALL").arg(keys.owners());
        let result: Result<((u64, u64), std::collections::HashMap<String, u64>), RedisError> =
            seen.query_async(&mut wire).await;
        let ((secs, micros), seen) = judged(&self.link, result).await?;
        let now = secs * 1000 + micros / 1000;
        let lease = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
        let lives = |owner: &String| seen.get(owner).is_some_and(|at| now.saturating_sub(*at) < lease);
        Ok(ids
            .into_iter()
            .zip(owners)
            .map(|(session, owner)| {
                let elsewhere = owner.is_some_and(|owner| owner != self.owner && lives(&owner));
                OpenAttempt { session, elsewhere }
            })
            .collect())
    }

    async fn overdue(&self, shop: &ShopId, now: DateTime<Utc>) -> Result<Vec<SessionId>, Error> {
        self.ids_by_score(self.keys(shop).due(), &now.timestamp_millis().to_string()).await
    }

    async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error> {
        let before = (now - self.settings.retention.sessions).timestamp_millis().to_string();
        for shop in &self.settings.shops {
            let keys = self.keys(shop);
            for id in self.ids_by_score(keys.all(), &before).await? {
                let Some(session) = self.load(shop, &id).await? else { continue };
                if session.wants_review() {
                    continue;
                }
                let seen: std::collections::HashMap<String, String> =
                    self.query(redis::cmd("HGETALL").arg(keys.seen_of(&id))).await?;
                let orders = seen.keys().filter_map(|field| field.strip_prefix("last:"));
                let mut names = vec![
                    keys.session(&id),
                    keys.token(&session.continue_token),
                    keys.all(),
                    keys.seen_of(&id),
                ];
                names.extend(orders.map(|order| keys.seen(order)));
                let arguments = [id.as_str().as_bytes().to_vec(), before.clone().into_bytes()];
                self.run(&script::SWEEP, &names, &arguments).await?;
            }
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        let mut set = redis::cmd("SET");
        set.arg(format!("{}:ping", self.settings.prefix)).arg(1);
        self.query::<Value>(&set).await.map(drop)
    }
}
