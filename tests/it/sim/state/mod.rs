//! The model of our memory: what the port promises, in one map, shared by the processes of a run.
//!
//! It passes the same contract as the real back ends (`state_contract`). Time is the server's own: `tokio`'s clock.
//! A [`Guards`] field that is off takes one rule away: then some run must go wrong (`mutations`).

mod handle;
mod stock;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{Error, LEASE, SeenOrder, Sighting},
    },
    idempotency::Answer,
};
use tokio::time::Instant;

use super::clock::SimClock;

pub use self::handle::{Handle, Reader};

/// How long a finished answer is kept, and an ended session.
pub const ANSWERS: Duration = Duration::from_hours(25);
const SESSIONS: chrono::Duration = chrono::Duration::days(30);

/// The rules that the state keeps. All on, but for a mutation.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, switched on its own")]
pub struct Guards {
    /// A key that runs is not given out again.
    pub claims: bool,
    /// The claim of a living process is not taken over.
    pub owners: bool,
    /// A takeover moves the session's version on and leaves its cart.
    pub takeover: bool,
    /// A session is written only over what was read.
    pub versions: bool,
    /// An outcome is written only while its attempt is open.
    pub attempts: bool,
    /// A claim is ended only by its owner.
    pub fences: bool,
    /// A claim of an attempt is not freed on its own, nor taken over.
    pub attached: bool,
    /// A turn of a living process is not given to another.
    pub turns: bool,
    /// *placing* pins the units that it wants.
    pub pins: bool,
}

impl Guards {
    pub const ALL: Self = Self {
        claims: true,
        owners: true,
        takeover: true,
        versions: true,
        attempts: true,
        fences: true,
        attached: true,
        turns: true,
        pins: true,
    };
}

#[derive(Debug, Clone)]
struct Row {
    version: u64,
    body: String,
    attempt: Option<u32>,
    owner: u64,
    ended: bool,
    left: bool,
    review: bool,
    expires_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    token: String,
    corr: String,
    cart: Option<String>,
    /// Order of making: lists come in it.
    made: usize,
    epoch: u64,
}

#[derive(Debug, Clone)]
struct Claimed {
    fingerprint: String,
    owner: u64,
    fence: u64,
    attempt: Option<u32>,
    answer: Option<Answer>,
    gone_at: Option<Instant>,
}

/// A *placing* that was stored.
#[derive(Debug, Clone)]
pub struct Placing {
    pub corr: String,
    pub process: usize,
    pub at: Instant,
    /// Whether its one `POST` was sent.
    pub sent: bool,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: BTreeMap<(String, String), Row>,
    claims: BTreeMap<String, Claimed>,
    operations: HashMap<String, u64>,
    turns: BTreeMap<String, (u64, u64)>,
    owners: BTreeMap<u64, Option<Instant>>,
    placings: Vec<Placing>,
    stock: BTreeMap<String, stock::Stock>,
    /// Orders that were seen, by shop and order.
    seen: BTreeMap<(String, String), SeenOrder>,
    next: u64,
    epoch: u64,
    quarantine: Option<Instant>,
    /// How many more replies of commits are lost.
    lose_replies: usize,
}

/// The memory itself.
#[derive(Debug)]
pub struct Memory {
    inner: Mutex<Inner>,
    guards: Guards,
    /// The clock of its machine.
    pub clock: SimClock,
}

impl Memory {
    pub fn new(guards: Guards) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), guards, clock: SimClock::new(Instant::now()) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All processes are gone, as time would have it.
    pub fn bury(&self) {
        for seen in self.inner().owners.values_mut() {
            *seen = None;
        }
    }

    /// The replies to the next commits are lost, though they are taken.
    pub fn lose_replies(&self, commits: usize) {
        self.inner().lose_replies = commits;
    }

    /// A failover: nothing is lost here, but for a while nobody can know.
    pub fn change_master(&self, quarantine: Duration) {
        let mut inner = self.inner();
        inner.epoch += 1;
        inner.quarantine = Some(Instant::now() + quarantine);
    }

    /// Takes the `POST` of a *placing* of that process: `None` when there is none that was not sent yet.
    pub fn send(&self, corr: &str, process: usize) -> Option<Placing> {
        let mut inner = self.inner();
        let placing = inner
            .placings
            .iter_mut()
            .find(|placing| placing.corr == corr && placing.process == process && !placing.sent)?;
        placing.sent = true;
        Some(placing.clone())
    }

    /// The process that has an attempt open on this cart.
    pub fn placing_on(&self, cart: &str) -> Option<u64> {
        let inner = self.inner();
        let on = |row: &&Row| row.attempt.is_some() && row.cart.as_deref() == Some(cart);
        inner.sessions.values().find(on).map(|row| row.owner)
    }

    /// Whether nobody has to look after anything: every open attempt is its living owner's.
    pub fn is_quiet(&self) -> bool {
        let inner = self.inner();
        let open = |row: &&Row| row.attempt.is_some();
        inner
            .sessions
            .values()
            .filter(open)
            .all(|row| inner.lives(row.owner) && !row.body.contains("\"settling\":true"))
    }

    /// Every session.
    pub fn sessions(&self) -> Vec<Session> {
        let inner = self.inner();
        let mut rows: Vec<&Row> = inner.sessions.values().collect();
        rows.sort_by_key(|row| row.made);
        rows.into_iter().map(|row| read(row, inner.epoch).unwrap()).collect()
    }

    /// Claims that run: the scope, the attempt it belongs to, whether its process lives.
    pub fn running_claims(&self) -> Vec<(String, Option<u32>, bool)> {
        let inner = self.inner();
        let running = inner.claims.iter().filter(|(_, claim)| claim.answer.is_none());
        running.map(|(scope, claim)| (scope.clone(), claim.attempt, inner.lives(claim.owner))).collect()
    }

    /// Answers that are kept.
    pub fn answers(&self) -> Vec<Answer> {
        self.inner().claims.values().filter_map(|claim| claim.answer.clone()).collect()
    }

    /// Turns that living processes hold.
    pub fn turns_held(&self) -> usize {
        let inner = self.inner();
        inner.turns.values().filter(|(owner, _)| inner.lives(*owner)).count()
    }
}

impl Inner {
    fn lives(&self, owner: u64) -> bool {
        self.owners.get(&owner).copied().flatten().is_some_and(|seen| seen.elapsed() < LEASE)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether an order is another session's, or the session has another order.
    fn is_taken(&self, shop: &ShopId, one: &Sighting) -> bool {
        self.seen.iter().any(|((of, order), known)| {
            let same_order = *order == one.shop_order;
            of == shop.as_str()
                && if known.last.session == one.session {
                    known.last.adopted && !same_order
                } else {
                    same_order
                }
        })
    }

    /// Keeps an order that was seen: it stays with the session that saw it first.
    fn see(&mut self, shop: &ShopId, one: &Sighting) {
        let name = (shop.as_str().to_owned(), one.shop_order.clone());
        let first = Sighting { adopted: false, ..one.clone() };
        let known = self.seen.entry(name).or_insert_with(|| SeenOrder { first, last: one.clone() });
        if known.last.session == one.session {
            let adopted = known.last.adopted || one.adopted;
            known.last = Sighting { adopted, ..one.clone() };
        }
    }

    /// A new owner never shares a cart with an old one, and the old one's writes must fail.
    fn leave_cart(&mut self, shop: &ShopId, id: &SessionId) {
        let Some(row) = self.sessions.get_mut(&key(shop, id)) else { return };
        if row.attempt.is_none() && !row.ended {
            row.version += 1;
            row.left = true;
        }
    }
}

fn key(shop: &ShopId, id: &SessionId) -> (String, String) {
    (shop.as_str().to_owned(), id.as_str().to_owned())
}

fn read(row: &Row, epoch: u64) -> Result<Session, Error> {
    let mut session: Session =
        serde_json::from_str(&row.body).map_err(|error| Error::Unreadable(error.to_string()))?;
    session.version = row.version;
    session.of_older_epoch |= row.epoch < epoch;
    if row.left {
        session.leave_cart();
    }
    Ok(session)
}
