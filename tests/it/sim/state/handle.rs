//! The model as one process sees it: claims, turns and commits by the rules of the port.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
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
            SharedTurn, State, StockStep, StockTurn, Which,
        },
    },
    clock::Clock,
    idempotency::{Claim, Decision, Scope},
    stock::{Reading, Reserve, Reserved, Shelves, StockId, Units},
};
use tokio::time::Instant;

use super::{
    super::schedule::{Life, OUTCOME_WRITTEN, P_WRITTEN, Scheduler, Who},
    ANSWERS, Claimed, Inner, Memory, Placing, Row, SESSIONS, key, read,
};

/// The memory as one process sees it.
pub struct Handle {
    memory: Arc<Memory>,
    owner: u64,
    seen: Mutex<Instant>,
    process: Option<(usize, Arc<Life>, Arc<Scheduler>)>,
    /// A mutation: the second reading of a session by one task gives what the first one gave, as if it were left out.
    pub stale_reads: bool,
    /// A mutation: the process believes that others take it for alive.
    pub endless_lease: bool,
    read_before: Mutex<HashMap<(tokio::task::Id, String), Session>>,
    clock: Arc<dyn Clock>,
}

static OWNERS: AtomicU64 = AtomicU64::new(1);

impl Handle {
    /// A process of its own; `process` where its life is played with.
    pub fn open(
        memory: &Arc<Memory>,
        process: Option<(usize, Arc<Life>, Arc<Scheduler>)>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        clock.align(memory.clock.now());
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
            endless_lease: false,
            read_before: Mutex::default(),
            clock,
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
        let is_taken = |step: &&StockStep| guards.pins || !matches!(step.turn, StockTurn::Pin(_));
        if let Some(step) = commit.stock.as_ref().filter(is_taken) {
            self.memory.stock_step(&mut inner, (&commit.shop, self.owner), |shelves, moment| {
                step.take(shelves, moment)
            })?;
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
            ended: session.due_at().is_none(),
            left: false,
            review: session.wants_review(),
            expires_at: session.due_at().unwrap_or(session.expires_at),
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

    async fn reserve(&self, shop: &ShopId, wish: Reserve) -> Result<Reserved, Error> {
        self.pass().await;
        let of = (shop, self.owner);
        self.memory.stock_step(&mut self.memory.inner(), of, |shelves, moment| {
            Ok(tillgate::stock::reserve(shelves, &wish, moment))
        })
    }

    async fn observe(&self, shop: &ShopId, readings: Vec<Reading>) -> Result<u64, Error> {
        self.pass().await;
        let of = (shop, self.owner);
        self.memory.stock_step(&mut self.memory.inner(), of, |shelves, moment| {
            tillgate::stock::observe(shelves, &readings, moment);
            Ok(*moment.sequence)
        })
    }

    async fn give_back(&self, shop: &ShopId, session: &SessionId, units: Vec<Units>) -> Result<(), Error> {
        self.pass().await;
        let of = (shop, self.owner);
        self.memory.stock_step(&mut self.memory.inner(), of, |shelves, _| {
            tillgate::stock::release(shelves, session.as_str(), &units);
            Ok(())
        })
    }

    async fn shelves(&self, shop: &ShopId, of: Option<&[StockId]>) -> Result<Shelves, Error> {
        self.pass().await;
        let mut shelves = self.memory.stock(shop.as_str()).shelves;
        shelves.retain(|id, _| of.is_none_or(|of| of.contains(id)));
        Ok(shelves)
    }

    async fn beat(&self) -> Result<(), Error> {
        let started = Instant::now();
        self.pass().await;
        self.memory.inner().owners.insert(self.owner, Some(Instant::now()));
        self.clock.align(self.memory.clock.now());
        self.pass().await;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = started;
        Ok(())
    }

    fn lease(&self) -> Option<Duration> {
        if self.endless_lease {
            return Some(LEASE);
        }
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

    async fn shelves(&self, shop: &ShopId) -> Result<Shelves, Error> {
        Ok(self.0.stock(shop.as_str()).shelves)
    }

    async fn claim_state(&self, _: &ShopId, scope: &Scope) -> Result<Option<ClaimState>, Error> {
        let inner = self.0.inner();
        let state = |claim: &Claimed| {
            if claim.answer.is_some() { ClaimState::Answered } else { ClaimState::Open }
        };
        Ok(inner.claims.get(scope.as_str()).map(state))
    }
}
