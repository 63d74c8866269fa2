//! The port to our memory: sessions and claims, written together or not at all.
//!
//! One [`Commit`] writes the next session version (only if the one that was read is still there, or the
//! attempt is still open), and the end of a claim, in one atomic step. Implemented by `state::sqlite`; every
//! back end passes the same contract tests.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    ids::{SessionId, ShopId},
    session::Session,
};
use crate::idempotency::{Answer, Claim, Decision, Fingerprint, Scope};

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
    /// Finds out, after a lost reply, whether this step was taken.
    pub operation: String,
    /// The session to write, and what it expects; its `version` field is set by the back end.
    pub session: Option<(Session, Expect)>,
    /// The end of the claim.
    pub claim: ClaimEnd,
}

/// Our memory.
#[async_trait]
pub trait State: Send + Sync {
    /// Claims a key, or says what is known of it. Unconditional when the scope is new.
    async fn claim(&self, new: NewClaim) -> Result<Decision, Error>;

    /// A session.
    async fn session(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error>;

    /// The session that a `continue_url` leads to.
    async fn session_by_token(&self, shop: &ShopId, token: &str) -> Result<Option<Session>, Error>;

    /// Takes one atomic step; returns the session's new version (0 when no session was written).
    async fn commit(&self, commit: Commit) -> Result<u64, Error>;

    /// Sessions of the shop with an open attempt.
    async fn open_attempts(&self, shop: &ShopId) -> Result<Vec<SessionId>, Error>;

    /// Open sessions of the shop that are past their time.
    async fn overdue(&self, shop: &ShopId, now: DateTime<Utc>) -> Result<Vec<SessionId>, Error>;

    /// Removes answers that nobody may ask for any more, and sessions past their retention.
    async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error>;

    /// Whether it can be used at all.
    async fn ping(&self) -> Result<(), Error>;
}
