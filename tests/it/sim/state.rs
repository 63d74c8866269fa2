//! The model of our memory: what the port promises, in one map, shared by the processes of a run.
//!
//! It passes the same contract as the real back ends (`state_contract`). Time is the server's own: `tokio`'s clock.
//! A [`Guards`] field that is off takes one rule away: then some run must go wrong (`mutations`).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{
            ClaimEnd, ClaimState, Commit, Error, Expect, LEASE, NewClaim, OpenAttempt, Records, SeenOrder,
            SharedTurn, Sighting, State, Which,
        },
    },
    idempotency::{Answer, Claim, Decision, Scope},
};
use tokio::time::Instant;

use super::schedule::{Life, OUTCOME_WRITTEN, P_WRITTEN, Scheduler, Who};

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
}

impl Memory {
    pub fn new(guards: Guards) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), guards })
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

/// The memory as one process sees it.
pub struct Handle {
    memory: Arc<Memory>,
    owner: u64,
    seen: Mutex<Instant>,
    process: Option<(usize, Arc<Life>, Arc<Scheduler>)>,
    /// A mutation: the second reading of a session by one task gives what the first one gave, as if it were left out.
    pub stale_reads: bool,
    read_before: Mutex<HashMap<(tokio::task::Id, String), Session>>,
}

static OWNERS: AtomicU64 = AtomicU64::new(1);

impl Handle {
    /// A process of its own; `process` where its life is played with.
    pub fn open(memory: &Arc<Memory>, process: Option<(usize, Arc<Life>, Arc<Scheduler>)>) -> Self {
        let owner = process.as_ref().map_or_else(
            || 1000 + OWNERS.fetch_add(1, Ordering::SeqCst),
            |known| u64::try_from(known.0).unwrap(),
        );
        memory.inner().owners.insert(owner, Some(Instant::now()));
        let seen = Mutex::new(Instant::now());
        Self {
            memory: Arc::clone(memory),
            owner,
            seen,
            process,
            stale_reads: false,
            read_before: Mutex::default(),
        }
    }

    /// Before and after every call: a frozen process waits, a dead one for ever.
    async fn pass(&self) {
        if let Some((_, life, _)) = &self.process {
            life.pass().await;
        }
    }

    async fn at(&self, place: &'static str) {
        if let Some((number, _, scheduler)) = &self.process {
            scheduler.at(Who::Process(*number), place).await;
        }
    }

    fn claim_now(&self, new: &NewClaim) -> Decision {
        let mut inner = self.memory.inner();
        let guards = self.memory.guards;
        let scope = new.scope.as_str().to_owned();
        let known = inner.claims.get(&scope).cloned();
        let known = known.filter(|claim| claim.gone_at.is_none_or(|gone| Instant::now() < gone));
        if let Some(claim) = known {
            if claim.fingerprint != new.fingerprint.as_str() {
                return Decision::Conflict;
            }
            if let Some(answer) = claim.answer {
                return Decision::Replay(answer);
            }
            if claim.attempt.is_some() && guards.attached {
                return Decision::InFlight { placing: true };
            }
            let kept = claim.owner == self.owner || inner.lives(claim.owner) && guards.owners;
            if kept && guards.claims {
                return Decision::InFlight { placing: false };
            }
            if let Some(session) = new.session.as_ref().filter(|_| guards.takeover) {
                inner.leave_cart(&new.shop, session);
            }
        }
        let fence = inner.number();
        let claim = Claimed {
            fingerprint: new.fingerprint.as_str().to_owned(),
            owner: self.owner,
            fence,
            attempt: None,
            answer: None,
            gone_at: None,
        };
        inner.claims.insert(scope, claim);
        Decision::Run(Claim { scope: new.scope.clone(), fence, keyed: new.keyed })
    }

    fn commit_now(&self, commit: &Commit) -> Result<u64, Error> {
        let mut inner = self.memory.inner();
        if let Some(version) = inner.operations.get(&commit.operation) {
            return Ok(*version);
        }
        let guards = self.memory.guards;
        if let (ClaimEnd::Attach(..), Some(till)) = (&commit.claim, inner.quarantine)
            && till > Instant::now()
        {
            let rest = till - Instant::now();
            return Err(Error::Quarantine { retry_after_secs: rest.as_secs().max(1) });
        }
        let mut version = 0;
        if let Some((session, expect)) = &commit.session {
            let known =
                inner.sessions.get(&key(&session.shop, &session.id)).map(|row| (row.version, row.attempt));
            match (expect, known) {
                (Expect::New, None) => {}
                (Expect::Version(wanted), Some((found, _))) if found == *wanted || !guards.versions => {}
                (Expect::Attempt(wanted), Some((_, open))) if open == Some(*wanted) || !guards.attempts => {}
                (Expect::Attempt(_), Some(_)) => return Err(Error::AttemptClosed),
                _ => return Err(Error::Moved),
            }
            version = known.map_or(0, |(version, _)| version) + 1;
        }
        if let Some(order) =
            commit.sightings.iter().find(|one| one.adopted && inner.is_taken(&commit.shop, one))
        {
            return Err(Error::OrderTaken { shop_order: order.shop_order.clone() });
        }
        let held = |inner: &Inner, scope: &Scope, fence: Option<u64>, free: bool| {
            inner.claims.get(scope.as_str()).is_some_and(|claim| {
                let attached = free && claim.attempt.is_some() && guards.attached;
                claim.answer.is_none()
                    && fence.is_none_or(|fence| claim.fence == fence || !guards.fences && !attached && free)
                    && !(fence.is_some() && attached)
            })
        };
        let (scope, fence, free) = match &commit.claim {
            ClaimEnd::Keep => (None, None, false),
            ClaimEnd::Finish(claim, _) | ClaimEnd::Attach(claim, _) => {
                (Some(&claim.scope), Some(claim.fence), false)
            }
            ClaimEnd::Release(claim) => (Some(&claim.scope), Some(claim.fence), true),
            ClaimEnd::FinishScope(scope, _) | ClaimEnd::ReleaseScope(scope) => (Some(scope), None, false),
        };
        let is_held = scope.is_some_and(|scope| held(&inner, scope, fence, free));
        if fence.is_some() && !is_held {
            return Err(Error::ClaimLost);
        }
        let lives_until = commit.session.as_ref().map(|(session, _)| session.expires_at);
        if let Some(scope) = scope.filter(|_| is_held) {
            end(&mut inner, scope, &commit.claim, lives_until);
        }
        if let Some((session, _)) = &commit.session {
            self.put(&mut inner, session, version, matches!(commit.claim, ClaimEnd::Attach(..)))?;
        }
        for sighting in &commit.sightings {
            inner.see(&commit.shop, sighting);
        }
        inner.operations.insert(commit.operation.clone(), version);
        Ok(version)
    }

    fn put(&self, inner: &mut Inner, session: &Session, version: u64, placing: bool) -> Result<(), Error> {
        let body = serde_json::to_string(session).map_err(|error| Error::Unreadable(error.to_string()))?;
        let made = inner.sessions.len();
        let cart = session.cart.as_ref().map(|cart| cart.view.handle.identity.clone());
        let known = inner.sessions.get(&key(&session.shop, &session.id));
        let row = Row {
            version,
            body,
            attempt: session.attempt.as_ref().map(|attempt| attempt.number),
            owner: if placing { self.owner } else { known.map_or(self.owner, |row| row.owner) },
            ended: session.status.is_final(),
            left: false,
            review: session.wants_review(),
            expires_at: session.expires_at,
            updated_at: session.updated_at,
            token: session.continue_token.clone(),
            corr: session.correlation_id.clone(),
            cart,
            made: known.map_or(made, |row| row.made),
            epoch: inner.epoch,
        };
        if placing {
            inner.placings.push(Placing {
                corr: row.corr.clone(),
                process: usize::try_from(self.owner).unwrap_or_default(),
                at: Instant::now(),
                sent: false,
            });
        }
        inner.sessions.insert(key(&session.shop, &session.id), row);
        Ok(())
    }
}

/// Ends a claim that is held.
fn end(inner: &mut Inner, scope: &Scope, how: &ClaimEnd, lives_until: Option<DateTime<Utc>>) {
    // Kept at least as long as its session lives; in a run that life begins with it.
    let session_life = lives_until.map_or(Duration::ZERO, |_| Duration::from_hours(24));
    match how {
        ClaimEnd::Keep => {}
        ClaimEnd::Finish(_, answer) | ClaimEnd::FinishScope(_, answer) => {
            if let Some(claim) = inner.claims.get_mut(scope.as_str()) {
                claim.answer = Some(answer.clone());
                claim.gone_at = Some(Instant::now() + ANSWERS.max(session_life));
            }
        }
        ClaimEnd::Release(_) | ClaimEnd::ReleaseScope(_) => {
            inner.claims.remove(scope.as_str());
        }
        ClaimEnd::Attach(_, attempt) => {
            if let Some(claim) = inner.claims.get_mut(scope.as_str()) {
                claim.attempt = Some(*attempt);
            }
        }
    }
}

#[async_trait]
impl State for Handle {
    async fn claim(&self, new: NewClaim) -> Result<Decision, Error> {
        self.pass().await;
        let decision = self.claim_now(&new);
        self.pass().await;
        Ok(decision)
    }

    async fn session(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        self.pass().await;
        let found = {
            let inner = self.memory.inner();
            inner.sessions.get(&key(shop, id)).map(|row| read(row, inner.epoch)).transpose()?
        };
        let task = tokio::task::try_id().filter(|_| self.stale_reads);
        let (Some(task), Some(found)) = (task, found.clone()) else { return Ok(found) };
        let mut before = self.read_before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stale) = before.remove(&(task, id.to_string())) {
            return Ok(Some(stale));
        }
        before.insert((task, id.to_string()), found.clone());
        Ok(Some(found))
    }

    async fn session_by_token(&self, shop: &ShopId, token: &str) -> Result<Option<Session>, Error> {
        self.pass().await;
        let inner = self.memory.inner();
        let found = inner.sessions.iter().find(|((of, _), row)| of == shop.as_str() && row.token == token);
        found.map(|(_, row)| read(row, inner.epoch)).transpose()
    }

    async fn commit(&self, commit: Commit) -> Result<u64, Error> {
        self.pass().await;
        let written = self.commit_now(&commit);
        match (&commit.claim, &commit.session) {
            (ClaimEnd::Attach(..), _) if written.is_ok() => self.at(P_WRITTEN).await,
            (_, Some((_, Expect::Attempt(_)))) if written.is_ok() => self.at(OUTCOME_WRITTEN).await,
            _ => self.pass().await,
        }
        let lost = {
            let mut inner = self.memory.inner();
            let lost = inner.lose_replies > 0;
            inner.lose_replies = inner.lose_replies.saturating_sub(1);
            lost
        };
        if lost { Err(Error::Unavailable("the reply was lost".into())) } else { written }
    }

    async fn take_turn(&self, shop: &ShopId, id: &SessionId) -> Result<Option<SharedTurn>, Error> {
        self.pass().await;
        let mut inner = self.memory.inner();
        let name = format!("{shop}/{id}");
        if let Some((owner, _)) = inner.turns.get(&name).copied().filter(|(owner, _)| *owner != self.owner) {
            if inner.lives(owner) && self.memory.guards.turns {
                return Ok(None);
            }
            if self.memory.guards.takeover {
                inner.leave_cart(shop, id);
            }
        }
        let number = inner.number();
        inner.turns.insert(name, (self.owner, number));
        Ok(Some(SharedTurn(number)))
    }

    async fn end_turn(&self, shop: &ShopId, id: &SessionId, turn: SharedTurn) -> Result<(), Error> {
        self.pass().await;
        let mut inner = self.memory.inner();
        let name = format!("{shop}/{id}");
        if inner.turns.get(&name).is_some_and(|(_, number)| *number == turn.0) {
            inner.turns.remove(&name);
        }
        Ok(())
    }

    async fn beat(&self) -> Result<(), Error> {
        let started = Instant::now();
        self.pass().await;
        self.memory.inner().owners.insert(self.owner, Some(Instant::now()));
        self.pass().await;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = started;
        Ok(())
    }

    fn lease(&self) -> Option<Duration> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Some(LEASE.saturating_sub(seen.elapsed()))
    }

    async fn open_attempts(&self, shop: &ShopId) -> Result<Vec<OpenAttempt>, Error> {
        self.pass().await;
        let inner = self.memory.inner();
        let mut open: Vec<(usize, OpenAttempt)> = inner
            .sessions
            .iter()
            .filter(|((of, _), row)| of == shop.as_str() && row.attempt.is_some())
            .map(|((_, id), row)| {
                let elsewhere = row.owner != self.owner && inner.lives(row.owner);
                (row.made, OpenAttempt { session: SessionId::new(id.clone()), elsewhere })
            })
            .collect();
        open.sort_by_key(|(made, _)| *made);
        Ok(open.into_iter().map(|(_, open)| open).collect())
    }

    async fn overdue(&self, shop: &ShopId, now: DateTime<Utc>) -> Result<Vec<SessionId>, Error> {
        self.pass().await;
        let inner = self.memory.inner();
        let due = inner.sessions.iter().filter(|((of, _), row)| {
            of == shop.as_str()
                && !(row.ended || row.review)
                && row.attempt.is_none()
                && row.expires_at <= now
        });
        Ok(due.map(|((_, id), _)| SessionId::new(id.clone())).collect())
    }

    async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error> {
        self.pass().await;
        let mut inner = self.memory.inner();
        inner.claims.retain(|_, claim| claim.gone_at.is_none_or(|gone| Instant::now() < gone));
        let goes =
            |row: &Row| row.ended && !row.review && row.attempt.is_none() && row.updated_at <= now - SESSIONS;
        inner.sessions.retain(|_, row| !goes(row));
        let Inner { sessions, seen, .. } = &mut *inner;
        seen.retain(|(shop, _), one| sessions.contains_key(&(shop.clone(), one.last.session.to_string())));
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        self.pass().await;
        Ok(())
    }
}

/// What people read a memory with.
pub struct Reader(pub Arc<Memory>);

#[async_trait]
impl Records for Reader {
    async fn list(&self, shop: &ShopId, which: Which, most: usize) -> Result<Vec<Session>, Error> {
        let inner = self.0.inner();
        let wanted = |row: &Row| match which {
            Which::All => true,
            Which::Review => row.review,
            Which::Open => row.attempt.is_some(),
        };
        let of_shop = inner.sessions.iter().filter(|((of, _), row)| of == shop.as_str() && wanted(row));
        let mut rows: Vec<&Row> = of_shop.map(|(_, row)| row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
        rows.into_iter().take(most).map(|row| read(row, inner.epoch)).collect()
    }

    async fn find(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        let inner = self.0.inner();
        inner.sessions.get(&key(shop, id)).map(|row| read(row, inner.epoch)).transpose()
    }

    async fn sightings(&self, shop: &ShopId, id: &SessionId) -> Result<Vec<SeenOrder>, Error> {
        let inner = self.0.inner();
        let of = inner.seen.iter().filter(|((of, _), one)| of == shop.as_str() && one.last.session == *id);
        let mut seen: Vec<SeenOrder> = of.map(|(_, one)| one.clone()).collect();
        seen.sort_by_key(|one| (one.last.shop_order.len(), one.last.shop_order.clone()));
        Ok(seen)
    }

    async fn session_of_order(&self, shop: &ShopId, shop_order: &str) -> Result<Option<SessionId>, Error> {
        let inner = self.0.inner();
        let name = (shop.as_str().to_owned(), shop_order.to_owned());
        Ok(inner.seen.get(&name).map(|one| one.last.session.clone()))
    }

    async fn claim_state(&self, _: &ShopId, scope: &Scope) -> Result<Option<ClaimState>, Error> {
        let inner = self.0.inner();
        let state = |claim: &Claimed| {
            if claim.answer.is_some() { ClaimState::Answered } else { ClaimState::Open }
        };
        Ok(inner.claims.get(scope.as_str()).map(state))
    }
}
