//! Orders that an attempt left unpaid at the shop: declined ones, ones that wait for the buyer there, and ones that
//! may still come of an attempt that was given up.
//!
//! Each may be paid any moment. A session that has one never buys again before it has looked, and while
//! the buyer is meant to pay at the shop nothing is changed at all.

use super::{Service, settle::Found};
use crate::checkout::{
    Error,
    problem::Kind,
    session::{AttemptEnd, ClosedAttempt, Session, Status},
    showing::settle_status,
};

/// What became of an order that was left unpaid.
pub(super) enum Unpaid {
    /// It has been paid: the session is completed with it.
    Paid(Box<Session>),
    /// It may be paid any moment: nothing may be bought or changed meanwhile.
    Waiting(Box<Session>),
    /// There is none, or it is not paid and the buyer is not asked to.
    Clear(Box<Session>),
}

impl Session {
    /// Whether an attempt left an order behind that may be paid by now.
    pub(super) fn left_an_unpaid_order(&self) -> bool {
        let left = |attempt: &ClosedAttempt| match attempt.end {
            AttemptEnd::Declined | AttemptEnd::Escalated => true,
            AttemptEnd::Refused => attempt.shop_order.is_some(),
            AttemptEnd::Placed | AttemptEnd::Fenced => false,
        };
        self.closed_attempts.iter().any(left)
    }

    /// Whether an order may be there by now of which nothing is known yet: one that was left unpaid, or one of an
    /// attempt that was given up as never made and took longer at the shop than anybody waited (W8).
    pub(super) fn may_have_an_order(&self) -> bool {
        let given_up = |attempt: &ClosedAttempt| attempt.end == AttemptEnd::Fenced;
        self.left_an_unpaid_order() || self.closed_attempts.iter().any(given_up)
    }

    /// Whether the buyer is meant to pay an order at the shop right now.
    pub(super) fn waits_at_the_shop(&self) -> bool {
        let escalated = self.closed_attempts.iter().any(|attempt| attempt.end == AttemptEnd::Escalated);
        self.status == Status::Escalated && escalated
    }
}

impl Service {
    /// Looks what became of an order that was left unpaid. Without a way to look, one that waits for the
    /// buyer goes on waiting.
    pub(super) async fn unpaid(&self, session: Session) -> Result<Unpaid, Error> {
        if !session.may_have_an_order() {
            return Ok(Unpaid::Clear(Box::new(session)));
        }
        if !self.can_look(&session) {
            let waits = session.waits_at_the_shop();
            let session = Box::new(session);
            return Ok(if waits { Unpaid::Waiting(session) } else { Unpaid::Clear(session) });
        }
        let found = self.find(&session).await?;
        if found.placed().is_some() {
            let cart = session.cart.clone();
            let (completed, seen) = self.complete_with(session, &found);
            let completed = self.store_with(completed, seen).await?;
            if let Some(cart) = cart {
                self.empty_later(&cart);
            }
            return Ok(Unpaid::Paid(Box::new(completed)));
        }
        let waited = session.waits_at_the_shop();
        let unpaid = self.still_unpaid(session, &found);
        // The shop has given up the order that kept its units.
        if let Unpaid::Clear(session) = &unpaid
            && waited
            && !session.held.is_empty()
        {
            self.parts.state.give_back(&self.settings.shop, &session.id, session.held.clone()).await?;
        }
        Ok(unpaid)
    }

    fn still_unpaid(&self, mut session: Session, found: &Found) -> Unpaid {
        if found.is_unclear() || (session.waits_at_the_shop() && found.unpaid().is_some()) {
            return Unpaid::Waiting(Box::new(session));
        }
        if session.waits_at_the_shop() {
            // The shop has given the order up: the session can go on, and still looks before it buys.
            for attempt in session.closed_attempts.iter_mut().filter(|a| a.end == AttemptEnd::Escalated) {
                attempt.end = AttemptEnd::Declined;
            }
            session.pay_url = None;
            session
                .problems
                .retain(|problem| !matches!(problem.kind, Kind::ChallengeNeeded | Kind::PaymentAtShop));
            session.status = Status::Incomplete;
            settle_status(&mut session, &self.settings);
        }
        Unpaid::Clear(Box::new(session))
    }
}
