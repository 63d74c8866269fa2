//! Settling: an attempt whose outcome nobody knows is looked for until it is known (`exactly-once.md` §5).
//!
//! Look, fence, wait, probe, look, decide; under the session's turn; every decision commits against the attempt, so
//! that two settlers do no harm. The settler can never place an order: it has no credential.
//!
//! | step | here |
//! |---|---|
//! | S1 | [`Service::settle`]: shop or state that cannot be asked only put the next look off |
//! | S2 | [`Service::find`]: all orders with the session's correlation id; one that counts ends it |
//! | S3 | `fence`: unless the one `POST` is known to have been sent and has left something |
//! | S4, S5 | `step`: a cart that is filled again is a `POST` that has ended unpaid |
//! | S6 | `decide` |
//! | S7 | nothing can look: a person has to |

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;
use futures::StreamExt as _;

use super::{
    Service, Settings,
    closing::{answer_of, attempt_number},
    pace::Waited,
};
use crate::{
    checkout::{
        Error,
        points::Point,
        problem::{Kind, Place, Problem},
        session::{Attempt, AttemptEnd, Sent, Session, Status},
        showing::settle_status,
        state::{ClaimEnd, OpenAttempt},
        store::{Error as StoreError, FoundOrder, FoundState, OrderSearch},
    },
    idempotency::Scope,
};

/// How far the shop's clock may be behind ours where its own time is not known. Wide: a correlation id is never
/// used twice.
pub(super) const SKEW: TimeDelta = TimeDelta::days(3);

/// How far in front of the first look at the shop orders are looked for, by the shop's own clock.
const MARGIN: TimeDelta = TimeDelta::hours(1);

/// How many sessions are looked after at a time.
const AT_A_TIME: usize = 4;

/// Between two looks.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// Between two looks at an order with traces of a payment, and at one that a person has to decide about: the shop may
/// still decide it.
pub(super) const SLOW_LOOK: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(10));

/// An unpaid order is taken for declined after this long.
pub(super) const PENDING_LIFE: Duration = Duration::from_mins(2);

/// How long a shop takes at most from an order's status to its stock.
const GAP: Duration = Duration::from_secs(2);

/// How long a shop keeps an unpaid order, by default: then one with traces of a payment waits for a person.
const HOLD: Duration = Duration::from_hours(1);

/// What a look found.
pub(super) struct Found(Vec<FoundOrder>);

/// How long a `POST` whose outcome nobody knows is waited for (G).
pub(super) fn wait_of(settings: &Settings) -> TimeDelta {
    TimeDelta::from_std(settings.settle_wait).unwrap_or(TimeDelta::days(1))
}

impl Found {
    /// What was read by keys, not looked for.
    pub(super) const fn by_key(orders: Vec<FoundOrder>) -> Self {
        Self(orders)
    }

    /// The orders that count, the oldest first.
    pub(super) fn all_placed(&self) -> Vec<&FoundOrder> {
        let mut placed: Vec<_> = self.0.iter().filter(|found| found.state == FoundState::Placed).collect();
        placed.sort_by_key(|found| found.order.shop_order.parse::<u64>().unwrap_or(u64::MAX));
        placed
    }

    /// The oldest order that counts.
    pub(super) fn placed(&self) -> Option<&FoundOrder> {
        self.all_placed().first().copied()
    }

    /// The others that count: one purchase too many each.
    pub(super) fn others_placed(&self) -> Vec<&FoundOrder> {
        self.all_placed().into_iter().skip(1).collect()
    }

    /// Everything.
    pub(super) fn all(&self) -> &[FoundOrder] {
        &self.0
    }

    /// An order that may still be paid.
    pub(super) fn unpaid(&self) -> Option<&FoundOrder> {
        self.of(FoundState::Pending)
            .or_else(|| self.of(FoundState::Failed))
            .or_else(|| self.of(FoundState::Draft))
    }

    /// Whether a machine cannot tell: a plugin's own status, or an unpaid order with traces of a payment.
    pub(super) fn is_unclear(&self) -> bool {
        self.0.iter().any(is_unclear)
    }

    fn of(&self, state: FoundState) -> Option<&FoundOrder> {
        self.0.iter().find(|found| found.state == state)
    }

    /// Only what the session's open attempt has made or touched: orders that no earlier attempt has left behind, and
    /// those that have changed since its last look at the shop, by the shop's own clock (E6).
    fn fresh(self, session: &Session) -> Self {
        let checked_at = session.attempt.as_ref().and_then(|attempt| attempt.checked_at);
        let is_old = |found: &FoundOrder| {
            let id = Some(found.order.shop_order.as_str());
            session.closed_attempts.iter().any(|closed| closed.shop_order.as_deref() == id)
        };
        let is_fresh = |found: &FoundOrder| {
            !is_old(found) || checked_at.is_some_and(|checked_at| found.modified_at >= Some(checked_at))
        };
        Self(self.0.into_iter().filter(is_fresh).collect())
    }
}

/// Whether no machine can tell what an order is.
const fn is_unclear(found: &FoundOrder) -> bool {
    match found.state {
        FoundState::Unclear => true,
        FoundState::Pending | FoundState::Failed => found.traces,
        FoundState::Placed | FoundState::Gone | FoundState::Draft => false,
    }
}

/// When an attempt is looked for again.
pub(super) enum Next {
    /// At the next round: it is not this settler's, or it is over.
    Round,
    /// After so long.
    After(Duration),
}

/// How an attempt that made no order ends.
pub(super) struct Unpaid {
    pub(super) end: AttemptEnd,
    /// The order that it left behind.
    pub(super) shop_order: Option<String>,
    /// Whether the cart is still as the attempt found it: then the next one can pay that order.
    pub(super) cart_stands: bool,
}

impl Service {
    /// Looks for the session's orders at the shop.
    pub(super) async fn find(&self, session: &Session) -> Result<Found, StoreError> {
        self.search(session, false).await
    }

    async fn search(&self, session: &Session, thorough: bool) -> Result<Found, StoreError> {
        let attempt = session.attempt.as_ref();
        let email = attempt
            .map(|attempt| attempt.email.clone())
            .or_else(|| session.cart.as_ref().and_then(|cart| cart.plan.customer.as_ref()?.email.clone()));
        if !self.parts.store.abilities().finds_orders {
            return self.read_drafts(session, email.as_deref().unwrap_or_default()).await;
        }
        let search = OrderSearch {
            correlation_id: &session.correlation_id,
            email: email.as_deref().unwrap_or_default(),
            since: session.first_checked_at.map_or(session.created_at - SKEW, |checked| checked - MARGIN),
            thorough,
        };
        Ok(Found(self.parts.store.find_orders(&search).await?))
    }

    /// One round over what does not end by itself: attempts with an unknown outcome, sessions past their
    /// time. Call it every few seconds.
    pub async fn tend(&self) {
        match self.parts.state.open_attempts(&self.settings.shop).await {
            Ok(open) => {
                self.pace.keep_only(&open.iter().map(|open| &open.session).collect::<HashSet<_>>());
                self.each(open, |open| self.settle(open), "an attempt could not be settled yet").await;
            }
            Err(error) => tracing::warn!(%error, "open attempts could not be listed"),
        }
        if !self.parts.clock.is_settled() {
            return;
        }
        match self.parts.state.overdue(&self.settings.shop, self.parts.clock.now()).await {
            Ok(overdue) => {
                self.each(overdue, |id| self.take_up(id), "what a session wants could not be done yet").await;
            }
            Err(error) => tracing::warn!(%error, "overdue sessions could not be listed"),
        }
    }

    /// Does something for each session, a few at a time: one that hangs does not hold up the others.
    async fn each<'a, T, F>(&'a self, sessions: Vec<T>, what: impl Fn(T) -> F, failed: &str)
    where
        T: std::fmt::Debug + Clone,
        F: Future<Output = Result<(), Error>> + 'a,
    {
        let what = &what;
        futures::stream::iter(sessions)
            .for_each_concurrent(AT_A_TIME, |session| async move {
                if let Err(error) = Box::pin(what(session.clone())).await {
                    tracing::warn!(%error, ?session, "{failed}");
                }
            })
            .await;
    }

    /// One step towards the end of an attempt, when it is due.
    async fn settle(&self, open: OpenAttempt) -> Result<(), Error> {
        let id = open.session.clone();
        if !self.pace.is_due(&id) {
            return Ok(());
        }
        let mut told = false;
        let result = Box::pin(self.step(open, &mut told)).await;
        match &result {
            Ok(Next::Round) => return Ok(()),
            Ok(Next::After(wait)) => self.pace.looked(&id, *wait),
            Err(_) => self.pace.failed(&id),
        }
        if !told && self.pace.is_alarming(&id) {
            tracing::error!(session = %id, "an order's outcome is unknown for more than 15 minutes; it is still looked for");
        }
        result.map(drop)
    }

    /// Attempts that a living process is placing right now are left alone. `told`: a person knows of it already.
    async fn step(&self, open: OpenAttempt, told: &mut bool) -> Result<Next, Error> {
        let OpenAttempt { session: id, elsewhere } = open;
        let in_hand =
            |attempt: &Attempt| !attempt.settling && (elsewhere || self.completing().contains_key(&id));
        // Looked at before the turn is asked for: one that is in hand may keep its turn for long, and whoever waits
        // for it holds up the round.
        let seen = self.parts.state.session(&self.settings.shop, &id).await?.and_then(|seen| seen.attempt);
        if seen.as_ref().is_none_or(in_hand) {
            return Ok(Next::Round);
        }
        let _turn = self.turn(&id).await?;
        self.at(Point::SettleTurn, Some(&id)).await;
        let Some(session) = self.parts.state.session(&self.settings.shop, &id).await? else {
            return Ok(Next::Round);
        };
        let Some(attempt) = session.attempt.clone() else { return Ok(Next::Round) };
        if in_hand(&attempt) {
            return Ok(Next::Round);
        }
        *told = attempt.review;
        let waited = self.pace.seen(&id, attempt.number, attempt.fenced_at.is_some());
        if attempt.review && !attempt.is_over && waited.open >= self.settings.settle_wait {
            Box::pin(self.keep(session, "no call of it runs any more", |attempt| attempt.is_over = true))
                .await?;
            return Ok(Next::After(SLOW_LOOK.1));
        }
        if !self.parts.store.abilities().finds_orders && attempt.draft.is_none() {
            if !attempt.review {
                tracing::error!(session = %id, "an order's outcome is unknown and nothing can look for it: \
                    a person has to; a key that reads the shop's orders makes this exact");
                let why = "nothing can look for its order (no key that reads orders, and the shop named none before): \
                    a person has to";
                Box::pin(self.keep(session, why, |attempt| {
                    attempt.review = true;
                }))
                .await?;
                return Ok(Next::After(self.settings.settle_wait));
            }
            return Ok(Next::After(SLOW_LOOK.1));
        }
        let found = self.find(&session).await?;
        self.at(Point::SettleLooked, Some(&id)).await;
        if found.placed().is_some() {
            return Box::pin(self.settled_as_placed(session, &found)).await;
        }
        if let Some(draft) = attempt.draft.as_ref().filter(|_| !self.parts.store.abilities().finds_orders) {
            return Box::pin(self.step_by_key(session, (&attempt, waited), draft, found)).await;
        }
        if attempt.review {
            return Ok(Next::After(SLOW_LOOK.1));
        }
        let fresh = found.fresh(&session);
        let fenced = attempt.fenced_at.is_some();
        if !fenced && (fresh.0.is_empty() || attempt.sent != Sent::Yes) {
            return Box::pin(self.fenced(session, &attempt)).await;
        }
        if fenced && self.is_filled_again(&session).await? {
            return Box::pin(self.ended_unpaid(session, &attempt, waited)).await;
        }
        Box::pin(self.decide(session, &attempt, waited, fresh)).await
    }

    /// S3: the cart is emptied, and that is noted.
    pub(super) async fn fenced(&self, session: Session, attempt: &Attempt) -> Result<Next, Error> {
        self.fence(&session).await?;
        self.at(Point::SettleFenced, Some(&session.id)).await;
        let now = self.parts.clock.now();
        Box::pin(
            self.keep(session, "its cart is emptied as a fence", |attempt| attempt.fenced_at = Some(now)),
        )
        .await?;
        // One that was surely never sent has nothing to wait for.
        Ok(Next::After(if attempt.sent == Sent::No { Duration::ZERO } else { LOOK }))
    }

    /// What is to be made of it once the `POST` has had its time.
    async fn decide(
        &self,
        session: Session,
        attempt: &Attempt,
        waited: Waited,
        fresh: Found,
    ) -> Result<Next, Error> {
        let wait = self.settings.settle_wait;
        if attempt.sent != Sent::No && waited.fenced.unwrap_or(waited.open) < wait {
            return Ok(Next::After(LOOK));
        }
        if let Some(unclear) = fresh.0.iter().find(|found| is_unclear(found)) {
            // An unpaid order with traces of a payment: the shop decides it, as long as it keeps it.
            if unclear.state == FoundState::Pending && waited.open < HOLD {
                return Ok(Next::After(SLOW_LOOK.0));
            }
            return Box::pin(self.for_a_person(session)).await;
        }
        let cart_stands = attempt.fenced_at.is_none();
        let unpaid = |end, found: &FoundOrder| Unpaid {
            end,
            shop_order: Some(found.order.shop_order.clone()),
            cart_stands,
        };
        if let Some(pending) = fresh.of(FoundState::Pending) {
            if waited.open < PENDING_LIFE.max(wait) {
                return Ok(Next::After(LOOK));
            }
            return Box::pin(self.settled_as_unpaid(session, unpaid(AttemptEnd::Declined, pending), &fresh))
                .await;
        }
        if let Some(failed) = fresh.of(FoundState::Failed) {
            return Box::pin(self.settled_as_unpaid(session, unpaid(AttemptEnd::Declined, failed), &fresh))
                .await;
        }
        // Nothing that counts is in the usual list: before that is believed, what lists leave out is asked for.
        let thorough = self.search(&session, true).await?;
        if thorough.placed().is_some() {
            return Box::pin(self.settled_as_placed(session, &thorough)).await;
        }
        let thorough = thorough.fresh(&session);
        if thorough.is_unclear() || thorough.of(FoundState::Gone).is_some() {
            // Given up or thrown away: it may have been paid before.
            return Box::pin(self.for_a_person(session)).await;
        }
        if thorough.of(FoundState::Pending).is_some() {
            return Ok(Next::After(LOOK));
        }
        if let Some(draft) = thorough.of(FoundState::Draft) {
            // It ended before the payment began.
            return Box::pin(self.settled_as_unpaid(session, unpaid(AttemptEnd::Refused, draft), &thorough))
                .await;
        }
        Box::pin(self.settled_as_fenced(session)).await
    }

    /// S5: the cart has come back after the fence. Only a `POST` that ended without success does that (E5).
    async fn ended_unpaid(&self, session: Session, attempt: &Attempt, waited: Waited) -> Result<Next, Error> {
        // What it left behind is there now; the look before may have been too early.
        let found = self.find(&session).await?;
        if found.placed().is_some() {
            return Box::pin(self.settled_as_placed(session, &found)).await;
        }
        let fresh = found.fresh(&session);
        if fresh.is_unclear() {
            return Box::pin(self.decide(session, attempt, waited, fresh)).await;
        }
        let left = fresh.of(FoundState::Pending).or_else(|| fresh.of(FoundState::Failed));
        let end = if left.is_some() { AttemptEnd::Declined } else { AttemptEnd::Refused };
        let shop_order = left.map(|found| found.order.shop_order.clone());
        Box::pin(self.settled_as_unpaid(session, Unpaid { end, shop_order, cart_stands: true }, &fresh)).await
    }

    /// Whether the emptied cart holds something again. One that the shop does not know any more does not.
    async fn is_filled_again(&self, session: &Session) -> Result<bool, StoreError> {
        let Some(cart) = &session.cart else { return Ok(false) };
        match self.parts.store.read(cart).await {
            Ok(view) => Ok(!view.lines.is_empty()),
            Err(StoreError::CartGone) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Empties the cart: a `POST` that comes late finds nothing to buy. A cart that the shop does not know any
    /// more can order nothing either.
    pub(super) async fn fence(&self, session: &Session) -> Result<(), StoreError> {
        let Some(cart) = &session.cart else { return Ok(()) };
        match self.parts.store.empty(&cart.view.handle).await {
            Ok(()) | Err(StoreError::CartGone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn for_a_person(&self, session: Session) -> Result<Next, Error> {
        tracing::error!(session = %session.id, "the order of a lost attempt is in a state that no machine can judge: \
            a person has to look");
        Box::pin(self.keep(
            session,
            "its order is in a state that no machine can judge: a person has to look",
            |attempt| (attempt.review, attempt.is_over) = (true, true),
        ))
        .await?;
        Ok(Next::After(SLOW_LOOK.1))
    }

    /// Notes progress on the attempt.
    async fn keep(
        &self,
        mut session: Session,
        what: &str,
        change: impl FnOnce(&mut Attempt),
    ) -> Result<(), Error> {
        let number = attempt_number(&session);
        if let Some(attempt) = &mut session.attempt {
            attempt.settling = true;
            change(attempt);
        }
        session.tell(self.parts.clock.now(), what);
        Box::pin(self.commit_closed(session, number, ClaimEnd::Keep, Vec::new())).await
    }

    async fn settled_as_placed(&self, session: Session, found: &Found) -> Result<Next, Error> {
        let number = attempt_number(&session);
        let cart = session.cart.clone();
        let answer = answer_of(&session);
        let is_counted = session.attempt.as_ref().is_some_and(|attempt| !attempt.units.is_empty());
        let again = if is_counted && found.placed().is_some_and(|order| !order.stock_taken) {
            // Its status may have turned a moment before its units are counted down (E13): they count as sold then.
            tokio::time::sleep(GAP).await;
            self.find(&session).await.ok().filter(|again| again.placed().is_some())
        } else {
            None
        };
        let (completed, seen) = self.complete_with(session, again.as_ref().unwrap_or(found));
        let end = self.ending(answer, &completed);
        tracing::info!(session = %completed.id, "a lost order was found");
        Box::pin(self.commit_closed(completed, number, end, seen)).await?;
        if let Some(cart) = cart {
            self.empty_later(&cart);
        }
        Ok(Next::Round)
    }

    pub(super) async fn settled_as_unpaid(
        &self,
        mut session: Session,
        unpaid: Unpaid,
        found: &Found,
    ) -> Result<Next, Error> {
        let number = attempt_number(&session);
        let answer = answer_of(&session);
        let seen = self.all_seen(&session, found);
        tracing::info!(session = %session.id, "a lost attempt ended as {}", unpaid.end.name());
        let declined = unpaid.end == AttemptEnd::Declined;
        let shop_keeps_units = declined && found.of(FoundState::Pending).is_some();
        self.end_attempt(&mut session, unpaid.end, unpaid.shop_order);
        if let Some(closed) = session.closed_attempts.last_mut() {
            closed.shop_keeps_units = shop_keeps_units;
        }
        if !unpaid.cart_stands {
            session.leave_cart();
        }
        session.status = Status::Ready;
        if declined {
            session.problems.push(Problem::new(Kind::PaymentDeclined, Place::Payment));
        } else {
            settle_status(&mut session, &self.settings);
            session.problems.push(Problem::new(Kind::ShopRefused, Place::Session));
        }
        let end = self.ending(answer, &session);
        Box::pin(self.commit_closed(session, number, end, seen)).await?;
        Ok(Next::Round)
    }

    /// No order exists and the emptied cart can make none: the key is free, the next try gets a new cart.
    pub(super) async fn settled_as_fenced(&self, mut session: Session) -> Result<Next, Error> {
        let number = attempt_number(&session);
        let claim = session.attempt.as_ref().and_then(|attempt| attempt.claim.clone());
        self.end_attempt(&mut session, AttemptEnd::Fenced, None);
        session.status = Status::Ready;
        session.leave_cart();
        self.withdraw_later(&mut session);
        let end = claim.map_or(ClaimEnd::Keep, |scope| ClaimEnd::ReleaseScope(Scope::stored(scope)));
        tracing::info!(session = %session.id, "a lost attempt made no order");
        Box::pin(self.commit_closed(session, number, end, Vec::new())).await?;
        Ok(Next::Round)
    }
}
