//! Shops whose orders nobody can look for: where the shop makes the order of a cart before it is placed, that order is
//! named before *placing* and read by its key afterwards (`exactly-once.md` §2, §4, §5).
//!
//! A shop tells by that key how far the order got and what it costs, but neither when it changed nor whether a payment
//! has left traces. So it says surely what is placed, and what a `POST` never reached; whether an order that stays
//! unpaid was charged is for a person to find out.

use super::{
    Service,
    pace::Waited,
    settle::{Found, LOOK, Next, PENDING_LIFE, SLOW_LOOK, Unpaid},
};
use crate::checkout::{
    Error,
    session::{Attempt, AttemptEnd, Cart, Sent, Session},
    store::{Draft, Effect, Error as StoreError, FoundOrder, FoundState},
};

impl Session {
    /// The orders that were named before their attempts, the open one's first; each once.
    fn drafts(&self) -> Vec<&Draft> {
        let open = self.attempt.iter().filter_map(|attempt| attempt.draft.as_ref());
        let closed = self.closed_attempts.iter().rev().filter_map(|closed| closed.draft.as_ref());
        let mut drafts: Vec<&Draft> = Vec::new();
        for draft in open.chain(closed) {
            if drafts.iter().all(|known| known.shop_order != draft.shop_order) {
                drafts.push(draft);
            }
        }
        drafts
    }

    /// Whether every attempt has named its order.
    fn has_named_its_orders(&self) -> bool {
        let open = self.attempt.as_ref().is_none_or(|attempt| attempt.draft.is_some());
        open && self.closed_attempts.iter().all(|closed| closed.draft.is_some()) && !self.drafts().is_empty()
    }
}

impl Service {
    /// Whether an unknown order of the session can be found at all.
    pub(super) fn can_look(&self, session: &Session) -> bool {
        self.parts.store.abilities().finds_orders || session.has_named_its_orders()
    }

    /// Has the order named before *placing*, where nothing could look for it afterwards and the shop can.
    pub(super) async fn name_order(
        &self,
        cart: &Cart,
        method: Option<&str>,
    ) -> Result<Option<Draft>, StoreError> {
        if self.parts.store.abilities().finds_orders {
            return Ok(None);
        }
        match self.parts.store.draft(cart, method).await {
            // One that is still under way must not meet the next call on this cart.
            Err(error) if error.effect() == Effect::Definite => {
                tracing::warn!(%error, "an order could not be named before it is placed");
                Ok(None)
            }
            result => result,
        }
    }

    /// Reads the orders that were named. One that the shop has dropped is not among them.
    pub(super) async fn read_drafts(&self, session: &Session, email: &str) -> Result<Found, StoreError> {
        let mut found = Vec::new();
        for draft in session.drafts() {
            found.extend(self.parts.store.find_draft(draft, email).await?);
        }
        Ok(Found::by_key(found))
    }

    /// A step towards the end of an attempt whose order was named before: after the look, which found none that is
    /// placed.
    pub(super) async fn step_by_key(
        &self,
        session: Session,
        (attempt, waited): (&Attempt, Waited),
        draft: &Draft,
        found: Found,
    ) -> Result<Next, Error> {
        if attempt.review {
            return Ok(Next::After(SLOW_LOOK.1));
        }
        let is_it = |order: &&FoundOrder| order.order.shop_order == draft.shop_order;
        let state = found.all().iter().find(is_it).map(|order| order.state);
        // Our own naming touched it: it counts only once it is a draft no more.
        let untouched = draft.fresh && state == Some(FoundState::Draft);
        if attempt.fenced_at.is_none() && (untouched || !draft.fresh || attempt.sent != Sent::Yes) {
            return Box::pin(self.fenced(session, attempt)).await;
        }
        let wait = self.settings.settle_wait;
        if attempt.sent != Sent::No && waited.fenced.unwrap_or(waited.open) < wait {
            return Ok(Next::After(LOOK));
        }
        match state {
            Some(FoundState::Draft) if draft.fresh => Box::pin(self.settled_as_fenced(session)).await,
            // It was not sent: whatever the older order is, this attempt has not touched it.
            Some(_) if attempt.sent == Sent::No => Box::pin(self.settled_as_fenced(session)).await,
            Some(FoundState::Failed) if draft.fresh => {
                let unpaid = Unpaid {
                    end: AttemptEnd::Declined,
                    shop_order: Some(draft.shop_order.clone()),
                    cart_stands: attempt.fenced_at.is_none(),
                };
                Box::pin(self.settled_as_unpaid(session, unpaid, &found)).await
            }
            Some(FoundState::Pending) if waited.open < PENDING_LIFE.max(wait) => Ok(Next::After(LOOK)),
            _ => Box::pin(self.for_a_person(session)).await,
        }
    }
}
