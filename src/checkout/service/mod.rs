//! The five use cases. One [`Service`] serves one shop.
//!
//! A write goes: [`Service::admit`] (claim, replay, conflict or in flight) → the use case, in a task of its
//! own that no client can cancel: turn → session read again → shop → one commit with the answer in it.

mod change;
mod closing;
mod complete;
mod drafts;
mod hints;
mod outcomes;
mod pace;
mod pause;
mod payment;
mod read;
mod reconcile;
mod resolve;
mod settle;
mod stock;
mod turns;
mod unpaid;
mod watch;
mod withdraw;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;

use self::{hints::Hints, pace::Pace, pause::Pause, stock::Counting};
pub use self::{
    reconcile::{Drift, Reconciled},
    resolve::{Finding, Resolution},
};
use super::{
    Error,
    command::{Change, Completion},
    ids::{CallerId, SessionId, ShopId},
    outcome::{Operation, Outcome, RenderContext, Renderer},
    points::{Point, Probe},
    session::{Address, Session, Status},
    state::{self, ClaimEnd, Commit, Expect, NewClaim, Sighting, State, StockStep, StockTurn},
    store::Store,
};
use crate::{
    clock::{Clock, Ids},
    idempotency::{Answer, Claim, Decision, Fingerprint, Key, Scope},
    lane::Lanes,
    money::Currency,
    stock::Reading,
};

/// How long between two tries to free a key, at first and at most.
const FREE_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How a shop's checkouts behave. Times are as configured; see `config/default.toml`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The shop.
    pub shop: ShopId,
    /// The one currency it sells in.
    pub currency: Currency,
    /// Ways to pay.
    pub handlers: Vec<PaymentHandler>,
    /// An https address of the gateway, without a trailing slash.
    pub https_base: String,
    /// How long an open session lives after its last change.
    pub session_life: Duration,
    /// How long a caller waits for its completion before it is told that the order is in the making.
    pub complete_wait: Duration,
    /// How old the last look at the cart may be when a session is read.
    pub snapshot_life: Duration,
    /// How long the outcome of a lost `POST` is waited for (`exactly-once.md` §5, G).
    pub settle_wait: Duration,
    /// How long the units of a declined order are held for its buyer.
    pub retry_hold: Duration,
    /// How old what this process has read of the shop's stock may be when it refuses an order.
    pub stock_doubt: Duration,
    /// A *placing* that is older than this may have been taken for lost: its `POST` is not sent any more
    /// (`exactly-once.md` §4, step 8).
    pub self_fence: Duration,
    /// What stands in for missing buyer data; only under development rules.
    pub stand_ins: Option<StandIns>,
    /// Whether the cheapest option is taken until the caller chooses; only under development rules.
    pub cheapest_first: bool,
}

/// A way to pay: from a protocol's instrument to a payment method of the shop.
#[derive(Debug, Clone)]
pub struct PaymentHandler {
    /// Our id of it.
    pub id: String,
    /// The payment method at the shop.
    pub method: String,
    /// What the method needs: key and template (`{credential.token}`, `{instrument.type}`).
    pub data: Vec<(String, String)>,
    /// Whether it is offered although the shop does not list the method for the cart.
    pub always: bool,
}

/// Data that stand in for what an agent left out.
#[derive(Debug, Clone)]
pub struct StandIns {
    /// E-mail address.
    pub email: String,
    /// Address; its region and postcode are used only in its own country.
    pub address: Address,
}

/// Who calls, with what right, and how to answer.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who calls.
    pub caller: CallerId,
    /// The claimed key.
    pub claim: Claim,
    /// How to answer.
    pub render: RenderContext,
}

/// What a service works with; made by the composition root.
pub struct Parts {
    /// The shop.
    pub store: Arc<dyn Store>,
    /// Our memory.
    pub state: Arc<dyn State>,
    /// Turns of the shop's sessions.
    pub lanes: Lanes<SessionId>,
    /// The secret under which fingerprints are made.
    pub secret: Vec<u8>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Makes answers.
    pub renderer: Arc<dyn Renderer>,
    /// Runs the work of writes: a client that hangs up cancels nothing, a stop waits for them.
    pub tasks: TaskTracker,
    /// Who listens at the named points; nobody in production.
    pub probe: Option<Arc<dyn Probe>>,
}

/// The checkouts of one shop.
pub struct Service {
    settings: Settings,
    parts: Parts,
    /// Sessions whose completion runs in this process now: the settler keeps off them.
    completing: Mutex<HashMap<SessionId, usize>>,
    /// When attempts are looked for again.
    pace: Pace,
    /// What is known of the shop's stock.
    counting: Counting,
    /// Products that may have changed.
    hints: Hints,
}

/// What one use case comes to: what to answer, and the right to store it.
struct Verdict {
    outcome: Outcome,
    /// The session to write with it.
    write: Option<(Session, Expect)>,
}

impl Verdict {
    const fn only(outcome: Outcome) -> Self {
        Self { outcome, write: None }
    }

    fn write(session: Session, expect: Expect) -> Self {
        let outcome = match expect {
            Expect::New => Outcome::Created(Box::new(session.clone())),
            Expect::Version(_) | Expect::Attempt(_) => Outcome::Session(Box::new(session.clone())),
        };
        Self { outcome, write: Some((session, expect)) }
    }
}

impl Service {
    /// The checkouts of a shop.
    #[must_use]
    pub fn new(settings: Settings, parts: Parts) -> Self {
        let pace = Pace::new(Arc::clone(&parts.clock));
        Self {
            settings,
            parts,
            completing: Mutex::default(),
            pace,
            counting: Counting::default(),
            hints: Hints::default(),
        }
    }

    /// The shop that it serves.
    #[must_use]
    pub const fn shop(&self) -> &ShopId {
        &self.settings.shop
    }

    /// Claims the key of a write, or says what is known of it. Call it after the checks that need no
    /// session, with what its protocol compares of the body ([`crate::idempotency::Policy::compared`]). Without a key the
    /// claim protects only against a crash.
    ///
    /// # Errors
    /// [`Error::State`]: nothing may run.
    pub async fn admit(
        &self,
        caller: &CallerId,
        operation: Operation,
        path_id: Option<&SessionId>,
        key: Option<&Key>,
        compared: &[u8],
    ) -> Result<Decision, Error> {
        let path = path_id.map_or("", SessionId::as_str);
        let once = Ids.uuid();
        // A call without a key still claims: if we die in its middle, the next start knows which cart to leave.
        let (prefix, key) = key.map_or(("once:", once.as_str()), |key| ("", key.as_str()));
        let operation_name = format!("{prefix}{}", operation.name());
        let claim = NewClaim {
            shop: self.settings.shop.clone(),
            scope: Scope::of(self.settings.shop.as_str(), caller.as_str(), &operation_name, path, key),
            fingerprint: Fingerprint::of(&self.parts.secret, compared),
            session: path_id.cloned(),
            keyed: prefix.is_empty(),
        };
        let decision = self.parts.state.claim(claim).await?;
        match (&decision, path_id) {
            (Decision::Run(_), _) => self.at(Point::Claimed, path_id).await,
            (Decision::InFlight { placing: true }, Some(id)) => self.pace.hurry(id),
            _ => {}
        }
        Ok(decision)
    }

    /// Work has come to a named point.
    async fn at(&self, point: Point, session: Option<&SessionId>) {
        if let Some(probe) = &self.parts.probe {
            probe.at(point, session).await;
        }
    }

    /// Ends a claim with an answer that needed no session: a refusal for the body's form. Returns it.
    ///
    /// # Errors
    /// [`Error::State`].
    pub async fn finish(&self, claim: Claim, answer: Answer) -> Result<Answer, Error> {
        let end =
            if claim.keyed { ClaimEnd::Finish(claim, answer.clone()) } else { ClaimEnd::Release(claim) };
        self.commit(None, end).await?;
        Ok(answer)
    }

    /// Makes a session.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create(self: &Arc<Self>, call: Call, change: Change) -> Result<Answer, Error> {
        let (service, claim) = (Arc::clone(self), call.claim.clone());
        self.write(
            claim,
            Box::pin(async move {
                let verdict = service.create_session(&call, change).await;
                service.conclude(call, verdict).await
            }),
        )
        .await
    }

    /// Changes a session.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn update(
        self: &Arc<Self>,
        call: Call,
        id: SessionId,
        change: Change,
    ) -> Result<Answer, Error> {
        let service = Arc::clone(self);
        let run = move |session| -> BoxFuture<'static, _> {
            Box::pin(async move { Box::pin(service.update_session(session, change)).await })
        };
        self.in_turn(call, id, run).await
    }

    /// Places the session's order. Answers within the configured wait: then the order may still be in the
    /// making ([`Outcome::InProgress`]), and the work goes on.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn complete(
        self: &Arc<Self>,
        call: Call,
        id: SessionId,
        completion: Completion,
    ) -> Result<Answer, Error> {
        let service = Arc::clone(self);
        let (waiting, session_id) = (call.clone(), id.clone());
        let work = self.write(
            waiting.claim.clone(),
            Box::pin(async move { service.complete_session(call, id, completion).await }),
        );
        tokio::pin!(work);
        loop {
            tokio::select! {
                answer = &mut work => return answer,
                () = tokio::time::sleep(self.settings.complete_wait) => {
                    let session = self.load(&waiting.caller, &session_id).await?;
                    if let Some(session) = session.filter(|session| session.status == Status::Placing) {
                        let outcome = Outcome::InProgress(Box::new(session));
                        return Ok(self.parts.renderer.render(&waiting.render, &outcome));
                    }
                }
            }
        }
    }

    /// Gives a session up.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn cancel(self: &Arc<Self>, call: Call, id: SessionId) -> Result<Answer, Error> {
        let service = Arc::clone(self);
        let run = move |session| -> BoxFuture<'static, _> {
            Box::pin(async move { service.cancel_session(session).await })
        };
        self.in_turn(call, id, run).await
    }

    /// Reads a session: [`Outcome::Session`] or [`Outcome::NotFound`].
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn get(self: &Arc<Self>, caller: &CallerId, id: &SessionId) -> Result<Outcome, Error> {
        let service = Arc::clone(self);
        let (caller, id) = (caller.clone(), id.clone());
        self.work(Box::pin(async move { Box::pin(service.read_session(&caller, &id)).await })).await
    }

    /// What a buyer who opens a `continue_url` is shown: the session, without any side effect.
    ///
    /// # Errors
    /// [`Error::State`].
    pub async fn by_continue_token(&self, token: &str) -> Result<Option<Session>, Error> {
        Ok(self.parts.state.session_by_token(&self.settings.shop, token).await?)
    }

    /// Runs work as a task of its own and waits for it.
    async fn work<T: Send + 'static>(&self, work: BoxFuture<'static, Result<T, Error>>) -> Result<T, Error> {
        self.parts.tasks.spawn(work).await.map_err(|_| Error::BrokeOff)?
    }

    /// The same for a write: if the work breaks off, its key is free again, unless an order may be in the
    /// making.
    async fn write(
        &self,
        claim: Claim,
        work: BoxFuture<'static, Result<Answer, Error>>,
    ) -> Result<Answer, Error> {
        let answer = self.work(work).await;
        if matches!(answer, Err(Error::BrokeOff)) {
            self.free(claim).await;
        }
        answer
    }

    /// A write that needs the session's turn, from its start to its commit.
    async fn in_turn(
        self: &Arc<Self>,
        call: Call,
        id: SessionId,
        run: impl FnOnce(Session) -> BoxFuture<'static, Result<Verdict, Error>> + Send + 'static,
    ) -> Result<Answer, Error> {
        let (service, claim) = (Arc::clone(self), call.claim.clone());
        let work = async move {
            let (turn, verdict) = match Box::pin(service.enter(&call.caller, &id)).await {
                Ok(Entry::Turn(entered)) => (Some(entered.turn), run(entered.session).await),
                Ok(Entry::Answer(outcome)) => (None, Ok(Verdict::only(outcome))),
                Err(error) => (None, Err(error)),
            };
            let answer = service.conclude(call, verdict).await;
            // The turn ends after the commit.
            drop(turn);
            answer
        };
        self.write(claim, Box::pin(work)).await
    }

    /// Marks a session as being completed, until the mark is dropped.
    fn in_hand(&self, id: &SessionId) -> InHand<'_> {
        *self.completing().entry(id.clone()).or_default() += 1;
        InHand { service: self, id: id.clone() }
    }

    fn completing(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.completing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session, if it belongs to the caller.
    async fn load(&self, caller: &CallerId, id: &SessionId) -> Result<Option<Session>, Error> {
        let session = self.parts.state.session(&self.settings.shop, id).await?;
        Ok(session.filter(|session| session.caller == *caller))
    }

    /// Takes the session's turn for a write, or answers at once: no session, one that has ended, an order in
    /// the making. The session is read again once the turn is won.
    async fn enter(&self, caller: &CallerId, id: &SessionId) -> Result<Entry, Error> {
        if let Some(answer) = self.at_once(self.load(caller, id).await?) {
            return Ok(Entry::Answer(answer));
        }
        let turn = self.turn(id).await?;
        self.at(Point::Turn, Some(id)).await;
        let Some(session) = self.load(caller, id).await? else { return Ok(Entry::Answer(Outcome::NotFound)) };
        self.at(Point::Reread, Some(id)).await;
        if let Some(answer) = self.at_once(Some(session.clone())) {
            return Ok(Entry::Answer(answer));
        }
        if session.expires_at <= self.parts.clock.now() {
            let ended = Box::pin(self.end_by_time(session)).await?;
            return Ok(Entry::Answer(Outcome::Finished(Box::new(ended))));
        }
        Ok(Entry::Turn(Box::new(Entered { turn, session })))
    }

    /// What a write is told without a turn.
    fn at_once(&self, session: Option<Session>) -> Option<Outcome> {
        let Some(session) = session else { return Some(Outcome::NotFound) };
        match session.status {
            Status::Completed | Status::Canceled | Status::Expired => {
                Some(Outcome::Finished(Box::new(session)))
            }
            Status::Placing => {
                self.pace.hurry(&session.id);
                Some(Outcome::InProgress(Box::new(session)))
            }
            Status::Incomplete | Status::Ready | Status::Escalated => None,
        }
    }

    /// Renders what a use case came to and stores it, session and answer in one step. An answer that is not
    /// final frees the key.
    async fn conclude(&self, call: Call, verdict: Result<Verdict, Error>) -> Result<Answer, Error> {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                self.free(call.claim).await;
                return Err(error);
            }
        };
        let mut answer = self.parts.renderer.render(&call.render, &verdict.outcome);
        if let Some(secs) = verdict.outcome.retry_after_secs() {
            answer.headers.push(("retry-after".to_owned(), secs.to_string()));
        }
        let final_answer =
            call.claim.keyed && !matches!(verdict.outcome, Outcome::InProgress(_)) && answer.is_kept();
        let claim = call.claim.clone();
        let end =
            if final_answer { ClaimEnd::Finish(claim, answer.clone()) } else { ClaimEnd::Release(claim) };
        match self.commit(verdict.write, end).await {
            Ok(_) => Ok(answer),
            Err(error) => {
                self.free(call.claim).await;
                Err(error)
            }
        }
    }

    /// Frees a key after a failure. While the state cannot be used that is tried again in the background: the caller
    /// is told to repeat, and should find the key free.
    async fn free(&self, claim: Claim) {
        let first = self.commit(None, ClaimEnd::Release(claim.clone())).await;
        let Err(Error::State(state::Error::Unavailable(error))) = first else { return };
        tracing::warn!(%error, "a key could not be freed yet");
        let (state, blank) = (Arc::clone(&self.parts.state), self.blank_commit());
        let tasks = self.parts.tasks.clone();
        self.parts.tasks.spawn(async move {
            let mut pause = Pause::new(FREE_AGAIN.0, FREE_AGAIN.1);
            while !tasks.is_closed() {
                pause.pass().await;
                let claim = ClaimEnd::Release(claim.clone());
                let commit = Commit { operation: Ids.uuid(), claim, ..blank.clone() };
                if !matches!(state.commit(commit).await, Err(state::Error::Unavailable(_))) {
                    return;
                }
            }
        });
    }

    async fn commit(&self, session: Option<(Session, Expect)>, claim: ClaimEnd) -> Result<u64, Error> {
        self.commit_with(session, claim, Vec::new()).await
    }

    /// Writes *placing*, and pins the units that it wants.
    async fn commit_placing(
        &self,
        session: (Session, Expect),
        claim: ClaimEnd,
        readings: Vec<Reading>,
    ) -> Result<u64, Error> {
        let attempt = session.0.attempt.as_ref();
        let units = attempt.map(|attempt| attempt.units.clone()).unwrap_or_default();
        let pin = StockStep { session: session.0.id.clone(), units, turn: StockTurn::Pin(readings) };
        let stock = Some(pin).filter(|pin| !pin.units.is_empty());
        let commit = Commit { session: Some(session), claim, stock, ..self.blank_commit() };
        Box::pin(self.write_down(commit)).await
    }

    async fn commit_with(
        &self,
        session: Option<(Session, Expect)>,
        claim: ClaimEnd,
        sightings: Vec<Sighting>,
    ) -> Result<u64, Error> {
        let session = session.map(|(session, expect)| (self.watched(session), expect));
        let (session, stock) = self.leaving(session);
        let commit = Commit { session, claim, sightings, stock, ..self.blank_commit() };
        Box::pin(self.write_down(commit)).await
    }

    fn blank_commit(&self) -> Commit {
        Commit {
            shop: self.settings.shop.clone(),
            operation: Ids.uuid(),
            session: None,
            claim: ClaimEnd::Keep,
            sightings: Vec::new(),
            stock: None,
        }
    }

    async fn write_down(&self, commit: Commit) -> Result<u64, Error> {
        let leaves = commit.stock.is_some();
        let taken = match self.parts.state.commit(commit.clone()).await {
            // The reply may have been lost: the same operation is read back, not taken twice.
            Err(state::Error::Unavailable(_)) => self.parts.state.commit(commit).await?,
            other => other?,
        };
        if leaves {
            self.stock_moved_on();
        }
        Ok(taken)
    }

    /// Writes a session on its own (expiry, a cart that must not be used again).
    async fn store(&self, session: Session) -> Result<Session, Error> {
        self.store_with(session, Vec::new()).await
    }

    /// The same, with orders that were seen.
    async fn store_with(&self, session: Session, seen: Vec<Sighting>) -> Result<Session, Error> {
        let expect = Expect::Version(session.version);
        let version = self.commit_with(Some((session.clone(), expect)), ClaimEnd::Keep, seen).await?;
        Ok(Session { version, ..session })
    }
}

/// What [`Service::enter`] finds.
enum Entry {
    Turn(Box<Entered>),
    Answer(Outcome),
}

/// A turn that was won, and the session as it was then.
struct Entered {
    turn: turns::Turn,
    session: Session,
}

/// The mark of a session that is being completed. Dropping it, also by a panic, leaves an attempt that is still
/// open to the settler.
struct InHand<'a> {
    service: &'a Service,
    id: SessionId,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        let mut completing = self.service.completing();
        if let Some(count) = completing.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                completing.remove(&self.id);
            }
        }
    }
}
