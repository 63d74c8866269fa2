//! Unpaid orders of checkouts that are over, or whose cart has to change, are cancelled at the shop: they keep units and
//! coupons back, also from their own buyer (E7, E8), and could still be paid.
//!
//! The wish is stored with the session first ([`Withdrawal`]), so that a crash loses none, and taken up by
//! [`Service::tend`]. Only while no attempt is open, as cancelling is no fence (E9): an order that is cancelled while its
//! payment runs comes back as paid. So it is read once more after the time that a settler waits.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Service,
    settle::{Found, wait_of},
};
use crate::checkout::{
    Error,
    cart::ItemReason,
    ids::SessionId,
    problem::{Kind, Place, Problem},
    session::{AttemptEnd, Case, CaseReason, ClosedAttempt, Session, Withdrawal},
    store::{Error as StoreError, FoundOrder, FoundState},
};

/// How long until a shop that could not be asked is asked again.
const AGAIN: TimeDelta = TimeDelta::seconds(30);

impl Session {
    /// Notes that the orders that its attempts left unpaid are to be cancelled.
    fn want_withdrawn(&mut self, now: DateTime<Utc>) {
        let left = |closed: &&ClosedAttempt| match closed.end {
            AttemptEnd::Declined | AttemptEnd::Escalated | AttemptEnd::Refused => true,
            AttemptEnd::Placed | AttemptEnd::Fenced => false,
        };
        let own = self.order.as_ref().map(|order| order.shop_order.as_str());
        let orders: Vec<String> = self
            .closed_attempts
            .iter()
            .filter(left)
            .filter_map(|closed| closed.shop_order.clone())
            .filter(|order| Some(order.as_str()) != own)
            .collect();
        for shop_order in orders {
            if self.withdrawals.iter().all(|known| known.shop_order != shop_order) {
                self.withdrawals.push(Withdrawal { shop_order, due_at: now, cancelled: false });
            }
        }
    }

    /// Tells the caller that an unpaid order of this very session may be what keeps items or codes from it.
    pub(super) fn tell_own_order(&mut self) {
        let scarce = |problem: &Problem| match &problem.kind {
            Kind::Item { reason, .. } => matches!(reason, ItemReason::SoldOut | ItemReason::FewerLeft(_)),
            Kind::CodeRefused { .. } | Kind::CodeDropped { .. } => true,
            _ => false,
        };
        let told = self.problems.iter().any(|problem| problem.kind == Kind::OwnOrderHolds);
        if !told && self.unpaid_order().is_some() && self.problems.iter().any(scarce) {
            self.problems.push(Problem::new(Kind::OwnOrderHolds, Place::Session));
        }
    }
}

impl Service {
    /// Notes that the session's unpaid orders are to be cancelled, where that can be done. Stored with whatever ends
    /// the session's use of them.
    pub(super) fn withdraw_later(&self, session: &mut Session) {
        if self.can_withdraw() {
            session.want_withdrawn(self.parts.clock.now());
        }
    }

    fn can_withdraw(&self) -> bool {
        let abilities = self.parts.store.abilities();
        abilities.cancels_orders && abilities.finds_orders
    }

    /// Cancels the session's unpaid orders now, before its cart is changed. The wish is stored first. Returns the
    /// session as it is stored: completed, if an order has been paid meanwhile.
    pub(super) async fn withdraw_now(&self, mut session: Session) -> Result<Session, Error> {
        if !self.can_withdraw() || session.unpaid_order().is_none() {
            return Ok(session);
        }
        session.want_withdrawn(self.parts.clock.now());
        let stored = self.store(session).await?;
        Box::pin(self.withdraw(stored)).await
    }

    /// What a session that is due wants: orders cancelled, or its end by time.
    pub(super) async fn take_up(&self, id: SessionId) -> Result<(), Error> {
        let _turn = self.turn(&id).await?;
        let Some(mut session) = self.parts.state.session(&self.settings.shop, &id).await? else {
            return Ok(());
        };
        if session.attempt.is_some() || session.wants_review() {
            return Ok(());
        }
        let now = self.parts.clock.now();
        if session.withdrawals.iter().any(|wanted| wanted.due_at <= now) {
            session = Box::pin(self.withdraw(session)).await?;
        }
        if session.status.is_final() {
            return Box::pin(self.look_again(session)).await;
        }
        if session.expires_at <= now && !session.wants_review() {
            Box::pin(self.end_by_time(session)).await?;
        }
        Ok(())
    }

    /// One step on all orders that are to be cancelled and are due.
    async fn withdraw(&self, mut session: Session) -> Result<Session, Error> {
        let now = self.parts.clock.now();
        let found = match self.find(&session).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, session = %session.id, "unpaid orders could not be looked at; they are later");
                for wanted in session.withdrawals.iter_mut().filter(|wanted| wanted.due_at <= now) {
                    wanted.due_at = now + AGAIN;
                }
                return self.store(session).await;
            }
        };
        if found.placed().is_some() && session.order.is_none() && !session.status.is_final() {
            session.withdrawals.clear();
            let cart = session.cart.clone();
            let (completed, seen) = self.complete_with(session, &found);
            let completed = self.store_with(completed, seen).await?;
            if let Some(cart) = cart {
                self.empty_later(&cart);
            }
            return Ok(completed);
        }
        self.note_paid(&mut session, &found);
        for wanted in std::mem::take(&mut session.withdrawals) {
            if wanted.due_at > now {
                session.withdrawals.push(wanted);
                continue;
            }
            let order = found.all().iter().find(|found| found.order.shop_order == wanted.shop_order);
            if let Some(next) = self.withdraw_one(&mut session, wanted, order).await {
                session.withdrawals.push(next);
            }
        }
        let seen = self.all_seen(&session, &found);
        self.store_with(session, seen).await
    }

    /// Orders that count although the session has ended, or has another: for a person, who is told of each once.
    pub(super) fn note_paid(&self, session: &mut Session, found: &Found) {
        let now = self.parts.clock.now();
        let own = session.order.as_ref().map(|order| order.shop_order.clone());
        let reason = if own.is_some() { CaseReason::SecondOrder } else { CaseReason::LateOrder };
        for placed in found.all_placed() {
            let shop_order = placed.order.shop_order.clone();
            let is_told = session.watch.as_ref().is_some_and(|watch| watch.told.contains(&shop_order));
            if Some(&shop_order) == own.as_ref() || is_told {
                continue;
            }
            tracing::error!(session = %session.id, order = %shop_order, "an order was paid after its checkout had ended: \
                a person has to look");
            session.withdrawals.retain(|wanted| wanted.shop_order != shop_order);
            session.tell(now, format!("order {shop_order} was paid late: a person has to look"));
            session.open_case(Case { at: now, shop_order, reason });
        }
    }

    /// One step on one order; what is left to be done of it.
    async fn withdraw_one(
        &self,
        session: &mut Session,
        wanted: Withdrawal,
        order: Option<&FoundOrder>,
    ) -> Option<Withdrawal> {
        let now = self.parts.clock.now();
        let shop_order = wanted.shop_order.clone();
        let order = order?;
        match order.state {
            FoundState::Gone if wanted.cancelled && order.traces => {
                self.paid_while_cancelled(session, shop_order);
                None
            }
            FoundState::Gone | FoundState::Draft | FoundState::Placed => None,
            FoundState::Pending | FoundState::Failed if !order.traces => {
                match self.parts.store.cancel_order(&shop_order).await {
                    Ok(now_it_is) if now_it_is.traces => {
                        self.paid_while_cancelled(session, shop_order);
                        None
                    }
                    Ok(_) => {
                        session.tell(now, format!("unpaid order {shop_order} cancelled"));
                        let due_at = now + wait_of(&self.settings);
                        Some(Withdrawal { due_at, cancelled: true, ..wanted })
                    }
                    Err(error @ StoreError::Refused { .. }) => {
                        tracing::error!(%error, session = %session.id, order = %shop_order, "an unpaid order cannot be \
                            cancelled: the key to the shop's orders may not write");
                        session.tell(now, format!("unpaid order {shop_order} could not be cancelled"));
                        None
                    }
                    Err(error) => {
                        tracing::warn!(%error, session = %session.id, order = %shop_order, "an unpaid order could not be \
                            cancelled yet");
                        Some(Withdrawal { due_at: now + AGAIN, ..wanted })
                    }
                }
            }
            // A payment may be under way: the shop decides it.
            FoundState::Pending | FoundState::Failed | FoundState::Unclear => {
                session.tell(now, format!("unpaid order {shop_order} is left to the shop"));
                None
            }
        }
    }

    fn paid_while_cancelled(&self, session: &mut Session, shop_order: String) {
        let now = self.parts.clock.now();
        tracing::error!(session = %session.id, order = %shop_order, "an order was paid while it was being cancelled: a \
            person has to look");
        session.tell(now, format!("order {shop_order} was paid while it was being cancelled"));
        session.open_case(Case { at: now, shop_order, reason: CaseReason::PaidWhileCancelled });
    }
}
