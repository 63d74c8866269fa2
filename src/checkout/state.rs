//! The port to our memory: sessions and claims, written together or not at all.
//!
//! One [`Commit`] writes the next session version (only if the one that was read is still there, or the
//! attempt is still open), and the end of a claim, in one atomic step. Implemented by `state::sqlite`; every
//! back end passes the same contract tests.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    cart::Minor,
    ids::{SessionId, ShopId},
    session::Session,
    store::FoundState,
};
use crate::{
    idempotency::{Answer, Claim, Decision, Fingerprint, Scope},
    stock::{self, Close, Moment, NotAdmitted, Reading, Reserve, Reserved, Shelves, StockId, Units},
};

/// How often a process shows that it lives.
pub const BEAT: Duration = Duration::from_secs(3);

/// How long a process is taken for alive after it last showed it.
pub const LEASE: Duration = Duration::from_secs(12);

/// Why our memory could not be used. After [`Error::Unavailable`] nothing is known of a commit: read back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session was written by somebody else since it was read: read again and decide again.
    #[error("the session moved on")]
    Moved,
    /// The claim is not ours any more: somebody took it over.
    #[error("the claim was taken over")]
    ClaimLost,
    /// The attempt is closed already: read the session and answer from it.
    #[error("the attempt is closed")]
    AttemptClosed,
    /// The state has lost its newest writes (a failover): for a while no order is placed, so that what still runs
    /// can be found. 503; nothing was written.
    #[error("no order is placed for {retry_after_secs} s after a change of the state's master")]
    Quarantine {
        /// Seconds until orders are placed again.
        retry_after_secs: u64,
    },
    /// What runs and what is left do not allow this attempt beside it: pass the gate anew. Nothing was written.
    #[error("the attempt is not admitted: units of it are scarce and another order runs")]
    NotAdmitted,
    /// The order belongs to another session, or the session has another order: nothing was written.
    #[error("the order {shop_order} cannot be this session's")]
    OrderTaken {
        /// The shop's id of the order.
        shop_order: String,
    },
    /// The store of state cannot be used now: 503, nothing may run.
    #[error("the state cannot be used")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be read (a newer format, a damaged row).
    #[error("the stored state cannot be read: {0}")]
    Unreadable(String),
}

/// A claim to be made.
#[derive(Debug, Clone)]
pub struct NewClaim {
    /// The shop.
    pub shop: ShopId,
    /// What the key covers.
    pub scope: Scope,
    /// What the request says.
    pub fingerprint: Fingerprint,
    /// The session it is about; `None` for a create.
    pub session: Option<SessionId>,
    /// Whether the caller named a key.
    pub keyed: bool,
}

/// What a session write expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The session does not exist.
    New,
    /// Its version is still this one; it is written as the next.
    Version(u64),
    /// This attempt is still open, whatever the version: an outcome is never dropped.
    Attempt(u32),
}

/// What happens to the claim in the same step.
#[derive(Debug, Clone)]
pub enum ClaimEnd {
    /// It stays as it is.
    Keep,
    /// The first final answer is stored.
    Finish(Claim, Answer),
    /// The key is free again: nothing final was said. Not for a claim that belongs to an attempt.
    Release(Claim),
    /// It belongs to this attempt from now on: only a closed attempt ends it.
    Attach(Claim, u32),
    /// An attempt that is settled answers its claim, by scope (its owner may be gone).
    FinishScope(Scope, Answer),
    /// As [`ClaimEnd::FinishScope`], but the key is free again.
    ReleaseScope(Scope),
}

/// One atomic step.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The shop that it is about.
    pub shop: ShopId,
    /// Finds out, after a lost reply, whether this step was taken.
    pub operation: String,
    /// The session to write, and what it expects; its `version` field is set by the back end.
    pub session: Option<(Session, Expect)>,
    /// The end of the claim.
    pub claim: ClaimEnd,
    /// Orders of the shop that were seen; all of one session.
    pub sightings: Vec<Sighting>,
    /// What it means for the stock.
    pub stock: Option<StockStep>,
}

/// What a step means for the units of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockStep {
    /// The session's id.
    pub session: SessionId,
    /// Its units.
    pub units: Vec<Units>,
    /// What happens to them.
    pub turn: StockTurn,
}

impl StockStep {
    /// The shelves that it is about; some may come twice.
    pub fn shelves(&self) -> impl Iterator<Item = &StockId> {
        let readings = match &self.turn {
            StockTurn::Pin(readings) => readings.as_slice(),
            StockTurn::Close(_) | StockTurn::Release => &[],
        };
        self.units.iter().map(|units| &units.stock).chain(readings.iter().map(|reading| &reading.stock))
    }

    /// Takes it.
    ///
    /// # Errors
    /// [`Error::NotAdmitted`]: throw the changed shelves away.
    pub fn take(&self, shelves: &mut Shelves, moment: &mut Moment<'_>) -> Result<(), Error> {
        let (session, units) = (self.session.as_str(), self.units.as_slice());
        match &self.turn {
            StockTurn::Pin(readings) => {
                return stock::pin(shelves, session, units, readings, moment)
                    .map_err(|NotAdmitted| Error::NotAdmitted);
            }
            StockTurn::Close(how) => stock::close(shelves, session, units, *how, moment),
            StockTurn::Release => stock::release(shelves, session, units),
        }
        Ok(())
    }
}

/// What happens to units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StockTurn {
    /// They are pinned with the attempt that opens; with what the last look at the shop said of them.
    Pin(Vec<Reading>),
    /// The attempt is closed.
    Close(Close),
    /// They were only held, and are given back.
    Release,
}

/// An order of the shop, as it was seen. Kept for every order that was ever seen, one record for each: its first
/// sight and its last. At most one of a session is adopted, and none by two sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The shop's id of the order.
    pub shop_order: String,
    /// The session whose correlation id it carries.
    pub session: SessionId,
    /// The attempt that was open or had just ended.
    pub attempt: Option<u32>,
    /// How it was seen.
    pub seen_by: SeenBy,
    /// How far it had got.
    pub state: FoundState,
    /// What it costs, where that was told.
    pub total: Option<Minor>,
    /// Whether its units were surely taken off the shop's stock by then ([`super::store::FoundOrder::stock_taken`]).
    #[serde(default)]
    pub stock_taken: bool,
    /// Whether it is the session's order.
    pub adopted: bool,
    /// When it was seen, by our clock.
    pub at: DateTime<Utc>,
}

/// How an order was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeenBy {
    /// The answer to our own `POST` named it.
    Answer,
    /// A look at the shop's orders found it.
    Look,
    /// A person named it.
    Person,
}

/// A session with an open attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// The session.
    pub session: SessionId,
    /// Whether another living process placed it: it is left to that one unless it says that it wants settling.
    pub elsewhere: bool,
}

/// Which sessions to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// Those that a person has to look at.
    Review,
    /// Those with an attempt whose outcome is not known yet.
    Open,
}

/// An order that was seen, at first and last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenOrder {
    /// The first time; never says that it is the session's order.
    pub first: Sighting,
    /// The last time; says whether it is the session's order.
    pub last: Sighting,
}

/// What is known of the key behind an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimState {
    /// Its request runs, or its attempt is open.
    Open,
    /// Its final answer is stored.
    Answered,
}

/// What our memory holds, for people: only read, while the gateway runs.
#[async_trait]
pub trait Records: Send + Sync {
    /// Sessions of a shop, the last changed first.
    async fn list(&self, shop: &ShopId, which: Which, most: usize) -> Result<Vec<Session>, Error>;

    /// A session.
    async fn find(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error>;

    /// The orders that were seen of a session, in the order of their ids.
    async fn sightings(&self, shop: &ShopId, id: &SessionId) -> Result<Vec<SeenOrder>, Error>;

    /// The session that an order of the shop was seen with.
    async fn session_of_order(&self, shop: &ShopId, shop_order: &str) -> Result<Option<SessionId>, Error>;

    /// What is known of a shop's stock, as it is stored: what has lapsed since the last step on a shelf is still there.
    async fn shelves(&self, shop: &ShopId) -> Result<Shelves, Error>;

    /// What is known of a key; `None` when it is free.
    async fn claim_state(&self, shop: &ShopId, scope: &Scope) -> Result<Option<ClaimState>, Error>;
}

/// The right to work on a session, among the processes that share a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedTurn(pub u64);

/// Our memory, as one process sees it: what it claims and takes is its own, and is free for others once it no
/// longer shows that it lives.
#[async_trait]
pub trait State: Send + Sync {
    /// Claims a key, or says what is known of it. Unconditional when the scope is new. A claim whose process is
    /// gone changes hands, unless it belongs to an attempt: the fence grows, the session's version moves on and
    /// its cart is left behind, since a new owner never shares a cart with an old one.
    async fn claim(&self, new: NewClaim) -> Result<Decision, Error>;

    /// A session.
    async fn session(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error>;

    /// The session that a `continue_url` leads to.
    async fn session_by_token(&self, shop: &ShopId, token: &str) -> Result<Option<Session>, Error>;

    /// Takes one atomic step; returns the session's new version (0 when no session was written).
    async fn commit(&self, commit: Commit) -> Result<u64, Error>;

    /// Takes the session's turn among processes; `None`: another living process has it, ask again soon. A turn
    /// whose process is gone changes hands as a claim does. Requests of one process queue before they ask
    /// ([`crate::lane`]); a process that asks again for a turn of its own gets it anew.
    async fn take_turn(&self, shop: &ShopId, id: &SessionId) -> Result<Option<SharedTurn>, Error>;

    /// Gives a turn back; one that changed hands meanwhile stays where it is.
    async fn end_turn(&self, shop: &ShopId, id: &SessionId, turn: SharedTurn) -> Result<(), Error>;

    /// Shows that this process lives. Call it every [`BEAT`].
    async fn beat(&self) -> Result<(), Error>;

    /// How long others still take this process for alive, by its own monotonic clock; `None` when it is alone.
    fn lease(&self) -> Option<Duration>;

    /// Holds units of a shop's stock for a session, and lets it through the gate if it wants ([`crate::stock`]).
    async fn reserve(&self, shop: &ShopId, wish: Reserve) -> Result<Reserved, Error>;

    /// Takes what the shop said of its stock; returns the sequence at which a reading that begins now begins.
    async fn observe(&self, shop: &ShopId, readings: Vec<Reading>) -> Result<u64, Error>;

    /// A session gives back what it only holds.
    async fn give_back(&self, shop: &ShopId, session: &SessionId, units: Vec<Units>) -> Result<(), Error>;

    /// What is known of a shop's stock: of these ids, or of all that anything is known of.
    async fn shelves(&self, shop: &ShopId, of: Option<&[StockId]>) -> Result<Shelves, Error>;

    /// Sessions of the shop with an open attempt.
    async fn open_attempts(&self, shop: &ShopId) -> Result<Vec<OpenAttempt>, Error>;

    /// Sessions of the shop that are due ([`Session::due_at`]): open ones past their time, ones with orders to cancel, and
    /// ended ones whose orders are to be looked at again; but for those with an open attempt or for a person.
    async fn overdue(&self, shop: &ShopId, now: DateTime<Utc>) -> Result<Vec<SessionId>, Error>;

    /// Removes answers that nobody may ask for any more, and sessions past their retention.
    async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error>;

    /// Whether it can be used at all.
    async fn ping(&self) -> Result<(), Error>;
}
