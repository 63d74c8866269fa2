//! Settling: an attempt whose outcome nobody knows is looked for until it is known (`exactly-once.md` §5).
//!
//! Look, fence, wait, look, decide; under the session's turn; every decision commits against the attempt, so
//! that two settlers do no harm. The settler can never place an order: it has no credential.

use futures::StreamExt as _;

use super::{Service, complete::attempt_number};
use crate::{
    checkout::{
        Error,
        ids::SessionId,
        outcome::{Outcome, RenderContext},
        problem::{Kind, Place, Problem},
        session::{AttemptEnd, Session, Status},
        state::{self, ClaimEnd, Expect},
        store::{Error as StoreError, FoundOrder, FoundState},
    },
    idempotency::{Answer, Scope},
};

/// How far the shop's clock may be behind ours. Wide: a correlation id is never used twice.
const SKEW: chrono::Duration = chrono::Duration::days(3);

/// How many sessions are looked after at a time.
const AT_A_TIME: usize = 4;

/// An unpaid order is taken for declined after this long.
const PENDING_LIFE: chrono::Duration = chrono::Duration::seconds(120);

/// What a look found.
pub(super) struct Found(Vec<FoundOrder>);

impl Found {
    /// The oldest order that counts.
    pub(super) fn placed(&self) -> Option<&FoundOrder> {
        let placed = || self.0.iter().filter(|found| found.state == FoundState::Placed);
        if placed().count() > 1 {
            tracing::error!("several paid orders carry one correlation id: all but the oldest want a refund");
        }
        placed().min_by_key(|found| found.order.shop_order.parse::<u64>().unwrap_or(u64::MAX))
    }

    /// An order that may still be paid.
    pub(super) fn unpaid(&self) -> Option<&FoundOrder> {
        self.0.iter().find(|found| found.state == FoundState::Pending)
    }

    /// Whether a machine cannot tell: a plugin's own status, an order that was given up (it may have been paid
    /// before), or an unpaid one with traces of a payment.
    pub(super) fn is_unclear(&self) -> bool {
        self.0.iter().any(|found| match found.state {
            FoundState::Unclear => true,
            FoundState::Pending | FoundState::Failed => found.traces,
            FoundState::Placed | FoundState::Gone => false,
        })
    }

    fn of(&self, state: FoundState) -> Option<&FoundOrder> {
        self.0.iter().find(|found| found.state == state)
    }
}

impl Service {
    /// Looks for the session's orders at the shop.
    pub(super) async fn find(&self, session: &Session) -> Result<Found, StoreError> {
        let attempt = session.attempt.as_ref();
        let email = attempt
            .map(|attempt| attempt.email.clone())
            .or_else(|| session.cart.as_ref().and_then(|cart| cart.plan.customer.as_ref()?.email.clone()));
        let since = session.created_at - SKEW;
        let found =
            self.parts.store.find_orders(&session.correlation_id, &email.unwrap_or_default(), since).await?;
        Ok(Found(found))
    }

    /// One round over what does not end by itself: attempts with an unknown outcome, sessions past their
    /// time. Call it every few seconds.
    pub async fn tend(&self) {
        match self.parts.state.open_attempts(&self.settings.shop).await {
            Ok(open) => self.each(open, |id| self.settle(id), "an attempt could not be settled yet").await,
            Err(error) => tracing::warn!(%error, "open attempts could not be listed"),
        }
        match self.parts.state.overdue(&self.settings.shop, self.parts.clock.now()).await {
            Ok(overdue) => {
                self.each(overdue, |id| self.expire_overdue(id), "a session could not be expired yet").await;
            }
            Err(error) => tracing::warn!(%error, "overdue sessions could not be listed"),
        }
    }

    /// Does something for each session, a few at a time: one that hangs does not hold up the others.
    async fn each<'a, F>(&'a self, ids: Vec<SessionId>, what: impl Fn(SessionId) -> F, failed: &str)
    where
        F: Future<Output = Result<(), Error>> + 'a,
    {
        let what = &what;
        futures::stream::iter(ids)
            .for_each_concurrent(AT_A_TIME, |id| async move {
                if let Err(error) = Box::pin(what(id.clone())).await {
                    tracing::warn!(%error, session = %id, "{failed}");
                }
            })
            .await;
    }

    async fn expire_overdue(&self, id: SessionId) -> Result<(), Error> {
        let _turn = self.parts.lanes.enter(id.clone()).await.map_err(|_| Error::Busy)?;
        let Some(session) = self.parts.state.session(&self.settings.shop, &id).await? else { return Ok(()) };
        let over = session.expires_at <= self.parts.clock.now();
        if over && session.attempt.is_none() && !session.status.is_final() {
            Box::pin(self.end_by_time(session)).await?;
        }
        Ok(())
    }

    /// One step towards the end of an attempt. Attempts that this process is placing right now are left
    /// alone.
    async fn settle(&self, id: SessionId) -> Result<(), Error> {
        let _turn = self.parts.lanes.enter(id.clone()).await.map_err(|_| Error::Busy)?;
        let Some(session) = self.parts.state.session(&self.settings.shop, &id).await? else { return Ok(()) };
        let Some(attempt) = session.attempt.clone() else { return Ok(()) };
        let in_hand = self.completing().contains_key(&id);
        if attempt.review || (in_hand && !attempt.settling) {
            return Ok(());
        }
        if !self.parts.store.abilities().finds_orders {
            tracing::error!(session = %id, "an order's outcome is unknown and nothing can look for it: \
                a person has to; a key that reads the shop's orders makes this exact");
            return self.keep(session, |attempt| attempt.review = true).await;
        }
        let found = self.find(&session).await?;
        if let Some(order) = found.placed() {
            return self.settled_as_placed(session, order).await;
        }
        let now = self.parts.clock.now();
        let Some(fenced_at) = attempt.fenced_at else {
            self.fence(&session).await?;
            return self.keep(session, |attempt| attempt.fenced_at = Some(now)).await;
        };
        let wait = chrono::Duration::from_std(self.settings.settle_wait).unwrap_or(PENDING_LIFE);
        if now - fenced_at < wait {
            return Ok(());
        }
        if found.is_unclear() || found.of(FoundState::Gone).is_some() {
            tracing::error!(session = %id, "the order of a lost attempt is in a state that no machine can judge: \
                a person has to look");
            return self.keep(session, |attempt| attempt.review = true).await;
        }
        if let Some(unpaid) = found.unpaid() {
            if now - attempt.placing_at < PENDING_LIFE.max(wait) {
                return Ok(());
            }
            let shop_order = unpaid.order.shop_order.clone();
            return self.settled_as_declined(session, Some(shop_order)).await;
        }
        if let Some(failed) = found.of(FoundState::Failed) {
            let shop_order = failed.order.shop_order.clone();
            return self.settled_as_declined(session, Some(shop_order)).await;
        }
        self.settled_as_fenced(session).await
    }

    /// Empties the cart: a `POST` that comes late finds nothing to buy. A cart that the shop does not know any
    /// more can order nothing either.
    async fn fence(&self, session: &Session) -> Result<(), StoreError> {
        let Some(cart) = &session.cart else { return Ok(()) };
        match self.parts.store.empty(&cart.view.handle).await {
            Ok(()) | Err(StoreError::CartGone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Notes progress on the attempt.
    async fn keep(
        &self,
        mut session: Session,
        change: impl FnOnce(&mut crate::checkout::session::Attempt),
    ) -> Result<(), Error> {
        let number = attempt_number(&session);
        if let Some(attempt) = &mut session.attempt {
            attempt.settling = true;
            change(attempt);
        }
        self.commit_closed(session, number, ClaimEnd::Keep).await
    }

    async fn settled_as_placed(&self, session: Session, found: &FoundOrder) -> Result<(), Error> {
        let number = attempt_number(&session);
        let cart = session.cart.clone();
        let answer = answer_of(&session);
        let completed = self.adopt(session, &found.order, found.total);
        let end = self.ending(answer, &completed);
        tracing::info!(session = %completed.id, order = %found.order.shop_order, "a lost order was found");
        self.commit_closed(completed, number, end).await?;
        if let Some(cart) = cart {
            self.empty_later(&cart);
        }
        Ok(())
    }

    async fn settled_as_declined(
        &self,
        mut session: Session,
        shop_order: Option<String>,
    ) -> Result<(), Error> {
        let number = attempt_number(&session);
        let answer = answer_of(&session);
        self.end_attempt(&mut session, AttemptEnd::Declined, shop_order);
        session.status = Status::Ready;
        session.problems.push(Problem::new(Kind::PaymentDeclined, Place::Payment));
        session.leave_cart();
        let end = self.ending(answer, &session);
        self.commit_closed(session, number, end).await
    }

    /// No order exists and the emptied cart can make none: the key is free, the next try gets a new cart.
    async fn settled_as_fenced(&self, mut session: Session) -> Result<(), Error> {
        let number = attempt_number(&session);
        let claim = session.attempt.as_ref().and_then(|attempt| attempt.claim.clone());
        self.end_attempt(&mut session, AttemptEnd::Fenced, None);
        session.status = Status::Ready;
        session.leave_cart();
        let end = claim.map_or(ClaimEnd::Keep, |scope| ClaimEnd::ReleaseScope(Scope::stored(scope)));
        tracing::info!(session = %session.id, "a lost attempt made no order");
        self.commit_closed(session, number, end).await
    }

    /// The final answer of a settled attempt, rendered without a request. Where nobody may ask for it, or it
    /// cannot be kept, the key is free again.
    fn ending(&self, ending: Option<Ending>, session: &Session) -> ClaimEnd {
        let Some(Ending { scope, context }) = ending else { return ClaimEnd::Keep };
        let outcome = Outcome::Session(Box::new(session.clone()));
        let answer = context.map(|context| self.parts.renderer.render(&context, &outcome));
        match answer.filter(Answer::is_kept) {
            Some(answer) => ClaimEnd::FinishScope(scope, answer),
            None => ClaimEnd::ReleaseScope(scope),
        }
    }

    async fn commit_closed(&self, session: Session, number: u32, end: ClaimEnd) -> Result<(), Error> {
        match self.commit(Some((session, Expect::Attempt(number))), end).await {
            // Somebody else closed it: what they found stands.
            Ok(_) | Err(Error::State(state::Error::AttemptClosed)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// How the claim of an attempt ends: with an answer for the caller that named a key.
struct Ending {
    scope: Scope,
    context: Option<RenderContext>,
}

fn answer_of(session: &Session) -> Option<Ending> {
    let attempt = session.attempt.as_ref()?;
    let scope = Scope::stored(attempt.claim.clone()?);
    let context = if attempt.keyed { serde_json::from_value(attempt.render.clone()).ok() } else { None };
    Some(Ending { scope, context })
}
