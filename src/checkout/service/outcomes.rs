//! What came of the one `POST`: each outcome closes the attempt, or leaves it to the settler.

use super::{
    Call, Service,
    closing::attempt_number,
    complete::{add_new, moved_since},
};
use crate::{
    checkout::{
        Error,
        cart::ItemReason,
        outcome::Outcome,
        points::Point,
        problem::{Kind, Place, Problem},
        session::{AttemptEnd, Cart, Sent, Session, Status},
        showing::{Basis, settle_status},
        state::{self, ClaimEnd, Expect, SeenBy},
        store::{Error as StoreError, FoundState, PlacedOrder, RefusedOrder},
    },
    idempotency::Answer,
};

impl Service {
    /// Q: the order is adopted, the claim answered, in one step.
    pub(super) async fn placed(
        &self,
        call: Call,
        session: Session,
        cart: &Cart,
        order: PlacedOrder,
    ) -> Result<Answer, Error> {
        let email = session.attempt.as_ref().map(|attempt| attempt.email.clone()).unwrap_or_default();
        let agreed = (cart.view.totals.total, cart.view.lines.iter().map(|line| line.quantity).sum::<u32>());
        let mut completed = self.adopt(session, &order, cart.view.totals.total);
        match self.parts.store.read_order(&order, &email).await {
            Ok(read) if (read.total, read.units) != agreed => {
                tracing::error!(session = %completed.id, order = %order.shop_order, "the order differs from what was agreed");
                completed.tell(self.parts.clock.now(), "the order differs from what was agreed");
                completed.problems.push(Problem::new(Kind::OrderDiffers, Place::Session));
                if let Some(adopted) = &mut completed.order {
                    adopted.total = read.total;
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, order = %order.shop_order, "an order could not be read back");
            }
        }
        self.at(Point::Verified, Some(&completed.id)).await;
        let total = completed.order.as_ref().map(|order| order.total);
        let seen = self.seen(&completed, &order.shop_order, FoundState::Placed, total, SeenBy::Answer);
        let answer = Box::pin(self.close(call, completed, vec![seen])).await?;
        if order.cart_filled {
            self.empty_later(cart);
        }
        Ok(answer)
    }

    pub(super) async fn escalated(
        &self,
        call: Call,
        mut session: Session,
        order: PlacedOrder,
        url: Option<String>,
    ) -> Result<Answer, Error> {
        let seen = self.seen(&session, &order.shop_order, FoundState::Pending, None, SeenBy::Answer);
        self.end_attempt(&mut session, AttemptEnd::Escalated, Some(order.shop_order));
        session.status = Status::Escalated;
        session.pay_url = url.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
        let kind = if session.pay_url.is_some() { Kind::ChallengeNeeded } else { Kind::PaymentAtShop };
        session.problems.push(Problem::new(kind, Place::Payment));
        Box::pin(self.close(call, session, vec![seen])).await
    }

    /// A decline. With a way to look, one look decides whether the payment came through all the same (W18).
    pub(super) async fn declined(
        &self,
        call: Call,
        mut session: Session,
        mut shop_order: Option<String>,
    ) -> Result<Answer, Error> {
        let mut seen = Vec::new();
        // One that is told with its order was silent: the shop keeps the units for the order (E7).
        let shop_keeps_units = shop_order.is_some();
        if let Some(order) = &shop_order {
            seen.push(self.seen(&session, order, FoundState::Pending, None, SeenBy::Answer));
        } else if self.can_look(&session) {
            match self.find(&session).await {
                Ok(found) => {
                    if found.placed().is_some() {
                        let cart = session.cart.clone();
                        let (completed, seen) = self.complete_with(session, &found);
                        let answer = Box::pin(self.close(call, completed, seen)).await?;
                        if let Some(cart) = cart {
                            self.empty_later(&cart);
                        }
                        return Ok(answer);
                    }
                    if found.is_unclear() {
                        return Box::pin(self.unknown(call, session, Sent::Yes, &StoreError::TimedOut)).await;
                    }
                    shop_order = found.unpaid().map(|order| order.order.shop_order.clone());
                    seen = self.all_seen(&session, &found);
                }
                Err(error) => return Box::pin(self.unknown(call, session, Sent::Yes, &error)).await,
            }
        }
        self.end_attempt(&mut session, AttemptEnd::Declined, shop_order);
        if let Some(closed) = session.closed_attempts.last_mut() {
            closed.shop_keeps_units = shop_keeps_units;
        }
        session.status = Status::Ready;
        session.problems.push(Problem::new(Kind::PaymentDeclined, Place::Payment));
        Box::pin(self.close(call, session, seen)).await
    }

    /// Refused before any payment: the cart is read again, so that the caller sees why.
    pub(super) async fn refused(
        &self,
        call: Call,
        mut session: Session,
        cart: &Cart,
        reason: RefusedOrder,
    ) -> Result<Answer, Error> {
        if reason == RefusedOrder::EmptyCart {
            // Evidence of an order (R6): the settler looks.
            return Box::pin(self.unknown(call, session, Sent::Yes, &StoreError::CartGone)).await;
        }
        let before = cart.view.clone();
        self.end_attempt(&mut session, AttemptEnd::Refused, None);
        session.status = Status::Ready;
        session.problems.clear();
        match self.parts.store.read(cart).await {
            Ok(view) if !view.lines.is_empty() => {
                self.hold(&mut session, cart.plan.clone(), view, Basis::Read);
            }
            Ok(_) | Err(_) => session.leave_cart(),
        }
        settle_status(&mut session, &self.settings);
        let moved = moved_since(&session, &before);
        add_new(&mut session, moved);
        let kind = match reason {
            RefusedOrder::Stock => Some(Kind::Item {
                item: session.lines.first().map(|line| line.item.clone()).unwrap_or_default(),
                reason: ItemReason::SoldOut,
            })
            .filter(|_| !session.problems.iter().any(|problem| matches!(problem.kind, Kind::Item { .. }))),
            RefusedOrder::Address => Some(Kind::AddressInvalid(None)),
            RefusedOrder::Rate => Some(Kind::Undeliverable),
            RefusedOrder::Method => Some(Kind::InstrumentUnusable),
            RefusedOrder::Total => Some(Kind::PriceChanged),
            RefusedOrder::Coupon | RefusedOrder::Other | RefusedOrder::EmptyCart => {
                session.problems.is_empty().then_some(Kind::ShopRefused)
            }
        };
        if let Some(kind) = kind {
            let place = match kind {
                Kind::AddressInvalid(_) => Place::Destination,
                Kind::Undeliverable => Place::Option,
                Kind::InstrumentUnusable => Place::Payment,
                Kind::Item { .. } => Place::Lines,
                _ => Place::Session,
            };
            add_new(&mut session, vec![Problem::new(kind, place)]);
        }
        session.tell_own_order();
        let (refused, stock) = (session.clone(), reason == RefusedOrder::Stock);
        let answer = Box::pin(self.close(call, session, Vec::new())).await?;
        if stock {
            self.stock_was_refused(&refused, &before).await;
        }
        Ok(answer)
    }

    /// The `POST` surely did not run: the attempt is closed, the key is free.
    pub(super) async fn not_sent(
        &self,
        call: Call,
        mut session: Session,
        error: StoreError,
    ) -> Result<Answer, Error> {
        let number = attempt_number(&session);
        self.end_attempt(&mut session, AttemptEnd::Fenced, None);
        session.status = Status::Ready;
        if matches!(error, StoreError::CartGone) {
            session.leave_cart();
        }
        let freed = ClaimEnd::ReleaseScope(call.claim.scope);
        match self.commit(Some((session, Expect::Attempt(number))), freed).await {
            // A settler that was faster found the same: there is no order.
            Ok(_) | Err(Error::State(state::Error::AttemptClosed)) => Err(error.into()),
            Err(failed) => Err(failed),
        }
    }

    /// Nobody knows whether there is an order. The claim stays open, the settler finds out, the caller is
    /// told that it is in the making.
    pub(super) async fn unknown(
        &self,
        call: Call,
        mut session: Session,
        sent: Sent,
        error: &StoreError,
    ) -> Result<Answer, Error> {
        tracing::warn!(session = %session.id, %error, ?sent, "the outcome of an order is unknown; it is looked for");
        let number = attempt_number(&session);
        session.tell(
            self.parts.clock.now(),
            if sent == Sent::No { "not sent" } else { "sent, no clear answer" },
        );
        if let Some(attempt) = &mut session.attempt {
            (attempt.settling, attempt.sent) = (true, sent);
        }
        let outcome =
            match self.commit(Some((session.clone(), Expect::Attempt(number))), ClaimEnd::Keep).await {
                Ok(_) => Outcome::InProgress(Box::new(session)),
                // A settler was faster.
                Err(Error::State(state::Error::AttemptClosed)) => {
                    let stored = self.stored(&session.id).await?;
                    return self.told_by_another(&call, number, stored);
                }
                // The attempt is settled all the same, once this call is over.
                Err(error) => {
                    tracing::error!(%error, session = %session.id, "an unknown outcome could not be stored");
                    Outcome::InProgress(Box::new(session))
                }
            };
        Ok(self.parts.renderer.render(&call.render, &outcome))
    }
}
