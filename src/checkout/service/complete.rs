//! Completion: the last look, *placing*, the one `POST`, what came of it (`exactly-once.md` §4).

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{
    Call, Entered, Entry, Service, Verdict,
    payment::{Payment, Unpayable},
    unpaid::Unpaid,
};
use crate::{
    checkout::{
        Error,
        cart::{AddressField, CartView, Minor, Refusal},
        command::{Completion, UnknownOption},
        ids::{CallerId, SessionId},
        outcome::Outcome,
        planning::{Purpose, plan},
        problem::{Kind, Place, Problem, Weight},
        session::{Address, Attempt, AttemptEnd, Cart, ClosedAttempt, Order, Session, Status},
        showing::{Basis, differences, settle_status},
        state::{self, ClaimEnd, Expect},
        store::{Effect, Error as StoreError, PlaceOrder, PlacedOrder, Placement, RefusedOrder},
    },
    clock::Ids,
    idempotency::Answer,
};

/// The shop refuses a second `POST` for the same order within the same second (E6).
const BETWEEN_ATTEMPTS: chrono::Duration = chrono::Duration::seconds(2);

/// A *placing* that is older than this may have been taken for lost: it is left to the settler.
const SELF_FENCE: Duration = Duration::from_secs(2);

/// What has to be done after the turn was given up: the one `POST` of an attempt.
struct Placing {
    session: Session,
    order: PlaceOrder,
    stored_at: Instant,
}

/// Where a completion stands when its turn ends.
enum Ready {
    /// It is over: answered without an order.
    Answered(Box<Verdict>),
    /// *placing* is stored.
    Placing(Box<Placing>),
}

impl Service {
    pub(super) async fn complete_session(
        &self,
        call: Call,
        id: SessionId,
        completion: Completion,
    ) -> Result<Answer, Error> {
        // From before *placing* is stored until this call is over, the settler keeps off.
        let _in_hand = self.in_hand(&id);
        let Entered { turn, session } = match Box::pin(self.enter(&call.caller, &id)).await {
            Ok(Entry::Turn(entered)) => *entered,
            Ok(Entry::Answer(outcome)) => return self.conclude(call, Ok(Verdict::only(outcome))).await,
            Err(error) => return self.conclude(call, Err(error)).await,
        };
        let verdict = match Box::pin(self.prepare(&call, session, completion)).await {
            Ok(Ready::Placing(placing)) => {
                // The turn ends here: from now on the status guards the session.
                drop(turn);
                return Box::pin(self.place(call, *placing)).await;
            }
            Ok(Ready::Answered(verdict)) => Ok(*verdict),
            Err(error) => Err(error),
        };
        let answer = self.conclude(call, verdict).await;
        drop(turn);
        answer
    }

    /// Everything up to and with *placing*, inside the turn.
    async fn prepare(&self, call: &Call, session: Session, completion: Completion) -> Result<Ready, Error> {
        let answered = |verdict| Ok(Ready::Answered(Box::new(verdict)));
        let mut session = match Box::pin(self.unpaid(session)).await? {
            Unpaid::Paid(session) | Unpaid::Waiting(session) => {
                return answered(Verdict::only(Outcome::Session(session)));
            }
            Unpaid::Clear(session) => *session,
        };
        let expect = Expect::Version(session.version);
        session.buyer = completion.buyer_parts.apply(completion.buyer.apply(session.buyer.take()));
        session.note = completion.note.apply(session.note.take());
        // The bill's address comes with each try: what was wrong with the last one is no matter any more.
        session.problems.retain(|told| !is_about_the_last_try(&told.kind) && told.place != Place::Billing);
        settle_status(&mut session, &self.settings);
        let Some(cart) = session.cart.clone().filter(|_| self.may_be_placed(&session)) else {
            return answered(Verdict::write(session, expect));
        };
        let payment = match self.payment(&cart, completion.instrument.as_ref()) {
            Ok(payment) => payment,
            Err(Unpayable::UnknownHandler(handler))
                if completion.unknown_handler == UnknownOption::Refuse =>
            {
                return answered(Verdict::only(Outcome::UnknownHandler { handler }));
            }
            Err(_) => {
                session.problems.push(Problem::new(Kind::InstrumentUnusable, Place::Payment));
                return answered(Verdict::write(session, expect));
            }
        };
        self.keep_distance(&session).await;
        let billing = completion.instrument.as_ref().and_then(|instrument| instrument.billing.as_ref());
        match self.last_look(&mut session, &cart, billing).await {
            Ok(Look::Same) => {}
            Ok(Look::Moved) => return answered(Verdict::write(session, expect)),
            Err(error) => return Err(error),
        }
        if session.fulfillment_address_missing(&self.settings) {
            session.problems.push(Problem::new(Kind::MissingAddress, Place::Billing));
            session.status = Status::Incomplete;
            return answered(Verdict::write(session, expect));
        }
        let order = order_of(&session, payment, &call.caller);
        let stored_at = Instant::now();
        let session = self.store_placing(call, session, &order).await?;
        Ok(Ready::Placing(Box::new(Placing { session, order, stored_at })))
    }

    /// Whether an order can be tried: the session is ready, or lacks nothing that stand-ins do not supply.
    fn may_be_placed(&self, session: &Session) -> bool {
        let stood_in = |kind: &Kind| *kind == Kind::MissingAddress && self.settings.stand_ins.is_some();
        session.status == Status::Ready
            || session.status == Status::Incomplete
                && session.problems.iter().all(|problem| !problem.kind.blocks() || stood_in(&problem.kind))
    }

    /// Waits out the rest of the distance that the shop needs between two attempts on one order.
    async fn keep_distance(&self, session: &Session) {
        let Some(last) = session.closed_attempts.last() else { return };
        let since = self.parts.clock.now() - last.closed_at;
        if let Ok(rest) = (BETWEEN_ATTEMPTS - since).to_std() {
            tokio::time::sleep(rest.min(Duration::from_secs(2))).await;
        }
    }

    /// The check call, right before *placing*: what the caller agreed to must still be so.
    async fn last_look(
        &self,
        session: &mut Session,
        cart: &Cart,
        billing: Option<&Address>,
    ) -> Result<Look, Error> {
        let wanted = plan(session, Purpose::Complete(billing), self.settings.stand_ins.as_ref());
        let looked =
            if cart.usable { self.parts.store.check(cart, &wanted).await } else { Err(StoreError::CartGone) };
        let view = match looked {
            Ok(view) => view,
            // Another cart than the one that was shown: make a new one and let the caller look at it.
            Err(StoreError::CartGone) => {
                self.bring(session, wanted).await?;
                settle_status(session, &self.settings);
                let moved = moved_since(session, &cart.view);
                if moved.is_empty() && session.status == Status::Ready {
                    return Ok(Look::Same);
                }
                add_new(session, moved);
                return Ok(Look::Moved);
            }
            Err(error) => {
                if error.effect() != Effect::NotSent {
                    self.leave_cart(session).await?;
                }
                return Err(error.into());
            }
        };
        self.in_our_currency(&view)?;
        if view.lines.is_empty() && !session.lines.is_empty() {
            // An empty cart where lines were expected is evidence of an order (R6): look, and never order on doubt.
            tracing::warn!(session = %session.id, "the cart is empty before an order");
            if self.parts.store.abilities().finds_orders
                && let Some(order) = self.find(session).await?.placed()
            {
                *session = self.adopt(session.clone(), &order.order, order.total);
                return Ok(Look::Moved);
            }
            self.bring(session, wanted).await?;
            settle_status(session, &self.settings);
            add_new(session, vec![Problem::new(Kind::PriceChanged, Place::Session)]);
            return Ok(Look::Moved);
        }
        let moved = differences(session, &cart.view, &view);
        // A coupon that the shop refuses again is known: what it takes off is compared above.
        let refused = view.refusals.iter().any(|refusal| !matches!(refusal, Refusal::Code { .. }));
        if moved.is_empty() && !refused {
            session.cart = Some(Cart { plan: wanted, view, read_at: self.parts.clock.now(), usable: true });
            return Ok(Look::Same);
        }
        self.hold(session, wanted, view, Basis::Changed);
        if billing.is_some() {
            blame_the_bill(session);
        }
        settle_status(session, &self.settings);
        add_new(session, moved);
        Ok(Look::Moved)
    }

    /// The cart may hold half a change: it is not written to again.
    async fn leave_cart(&self, session: &Session) -> Result<(), Error> {
        let Some(mut stored) = self.parts.state.session(&self.settings.shop, &session.id).await? else {
            return Ok(());
        };
        stored.leave_cart();
        self.store(stored).await.map(drop)
    }

    /// P: the attempt is durable before anything leaves.
    async fn store_placing(
        &self,
        call: &Call,
        mut session: Session,
        order: &PlaceOrder,
    ) -> Result<Session, Error> {
        let number = u32::try_from(session.closed_attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let email = session.cart.as_ref().and_then(|cart| cart.plan.customer.as_ref()?.email.clone());
        let expect = Expect::Version(session.version);
        session.status = Status::Placing;
        session.problems.retain(|problem| problem.weight() == Weight::Warning);
        session.attempt = Some(Attempt {
            number,
            claim: Some(call.claim.scope.as_str().to_owned()),
            render: serde_json::to_value(&call.render).unwrap_or(Value::Null),
            total: order.expected_total,
            email: email.unwrap_or_default(),
            method: order.method.clone().unwrap_or_default(),
            placing_at: self.parts.clock.now(),
            settling: false,
            fenced_at: None,
            review: false,
            keyed: call.claim.keyed,
        });
        let attach = ClaimEnd::Attach(call.claim.clone(), number);
        let version = self.commit(Some((session.clone(), expect)), attach).await?;
        Ok(Session { version, ..session })
    }

    /// The one `POST` and what came of it.
    async fn place(&self, call: Call, placing: Placing) -> Result<Answer, Error> {
        let Placing { session, order, stored_at } = placing;
        let Some(cart) = session.cart.clone() else { return Err(Error::BrokeOff) };
        let placed = if stored_at.elapsed() < SELF_FENCE {
            self.parts.store.place(&cart, &order).await
        } else {
            // Stored too long ago: a settler may be at work. Nothing is sent; the settler decides.
            Err(StoreError::TimedOut)
        };
        drop(order);
        match placed {
            Ok(Placement::Placed(order)) => self.placed(call, session, &cart, order).await,
            Ok(Placement::Redirect { order, url }) => self.escalated(call, session, order, url).await,
            Ok(Placement::Declined { shop_order }) => self.declined(call, session, shop_order).await,
            Ok(Placement::Refused(reason)) => self.refused(call, session, &cart, reason).await,
            Err(error) if error.effect() == Effect::NotSent => self.not_sent(call, session, error).await,
            Err(StoreError::CartGone) => self.not_sent(call, session, StoreError::CartGone).await,
            Err(error) => self.unknown(call, session, &error).await,
        }
    }

    /// Q: the order is adopted, the claim answered, in one step.
    async fn placed(
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
        let answer = self.close(call, completed).await?;
        if order.cart_filled {
            self.empty_later(cart);
        }
        Ok(answer)
    }

    /// The session with its order, which costs `total`. One that costs something else than what was shown last
    /// is told.
    pub(super) fn adopt(&self, mut session: Session, order: &PlacedOrder, total: Minor) -> Session {
        let shown = session.cart.as_ref().map(|cart| cart.view.totals.total);
        let permalink = order.permalink_url.clone().filter(|url| url.starts_with("https://"));
        self.end_attempt(&mut session, AttemptEnd::Placed, Some(order.shop_order.clone()));
        session.status = Status::Completed;
        session.problems.retain(|problem| problem.weight() == Weight::Warning);
        session.pay_url = None;
        session.order = Some(Order {
            id: Ids.public("ord"),
            shop_order: order.shop_order.clone(),
            number: order.number.clone(),
            key: order.key.clone(),
            permalink_url: permalink
                .unwrap_or_else(|| format!("{}/go/{}", self.settings.https_base, session.continue_token)),
            paid: order.paid,
            total,
        });
        if shown.is_some_and(|shown| shown != total) {
            tracing::error!(session = %session.id, order = %order.shop_order, "the order costs something else than was shown");
            session.problems.push(Problem::new(Kind::OrderDiffers, Place::Session));
        }
        session.updated_at = self.parts.clock.now();
        session
    }

    async fn escalated(
        &self,
        call: Call,
        mut session: Session,
        order: PlacedOrder,
        url: Option<String>,
    ) -> Result<Answer, Error> {
        self.end_attempt(&mut session, AttemptEnd::Escalated, Some(order.shop_order));
        session.status = Status::Escalated;
        session.pay_url = url.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
        let kind = if session.pay_url.is_some() { Kind::ChallengeNeeded } else { Kind::PaymentAtShop };
        session.problems.push(Problem::new(kind, Place::Payment));
        self.close(call, session).await
    }

    /// A decline. With a way to look, one look decides whether the payment came through all the same (W18).
    async fn declined(
        &self,
        call: Call,
        mut session: Session,
        shop_order: Option<String>,
    ) -> Result<Answer, Error> {
        if shop_order.is_none() && self.parts.store.abilities().finds_orders {
            match self.find(&session).await {
                Ok(found) => {
                    if let Some(order) = found.placed() {
                        let cart = session.cart.clone();
                        let completed = self.adopt(session, &order.order, order.total);
                        let answer = self.close(call, completed).await?;
                        if let Some(cart) = cart {
                            self.empty_later(&cart);
                        }
                        return Ok(answer);
                    }
                    if found.is_unclear() {
                        return self.unknown(call, session, &StoreError::TimedOut).await;
                    }
                }
                Err(error) => return self.unknown(call, session, &error).await,
            }
        }
        self.end_attempt(&mut session, AttemptEnd::Declined, shop_order);
        session.status = Status::Ready;
        session.problems.push(Problem::new(Kind::PaymentDeclined, Place::Payment));
        self.close(call, session).await
    }

    /// Refused before any payment: the cart is read again, so that the caller sees why.
    async fn refused(
        &self,
        call: Call,
        mut session: Session,
        cart: &Cart,
        reason: RefusedOrder,
    ) -> Result<Answer, Error> {
        if reason == RefusedOrder::EmptyCart {
            // Evidence of an order (R6): the settler looks.
            return self.unknown(call, session, &StoreError::CartGone).await;
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
                reason: crate::checkout::cart::ItemReason::SoldOut,
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
        self.close(call, session).await
    }

    /// The `POST` surely did not run: the attempt is closed, the key is free.
    async fn not_sent(&self, call: Call, mut session: Session, error: StoreError) -> Result<Answer, Error> {
        let number = attempt_number(&session);
        self.end_attempt(&mut session, AttemptEnd::Fenced, None);
        session.status = Status::Ready;
        if matches!(error, StoreError::CartGone) {
            session.leave_cart();
        }
        let freed = ClaimEnd::ReleaseScope(call.claim.scope);
        self.commit(Some((session, Expect::Attempt(number))), freed).await?;
        Err(error.into())
    }

    /// Nobody knows whether there is an order. The claim stays open, the settler finds out, the caller is
    /// told that it is in the making.
    async fn unknown(&self, call: Call, mut session: Session, error: &StoreError) -> Result<Answer, Error> {
        tracing::warn!(session = %session.id, %error, "the outcome of an order is unknown; it is looked for");
        let number = attempt_number(&session);
        if let Some(attempt) = &mut session.attempt {
            attempt.settling = true;
        }
        // If this step fails the attempt is settled all the same, once this call is over.
        let stored = self.commit(Some((session.clone(), Expect::Attempt(number))), ClaimEnd::Keep).await;
        if let Err(error) = stored {
            tracing::error!(%error, session = %session.id, "an unknown outcome could not be stored");
        }
        Ok(self.parts.renderer.render(&call.render, &Outcome::InProgress(Box::new(session))))
    }

    /// The outcome commit: matches the attempt, not the version. Repeated until it is written: what the shop
    /// told us is never dropped (R5).
    async fn close(&self, call: Call, session: Session) -> Result<Answer, Error> {
        let number =
            attempt_number(&session).max(session.closed_attempts.last().map_or(0, |last| last.number));
        let outcome = Outcome::Session(Box::new(session.clone()));
        let answer = self.parts.renderer.render(&call.render, &outcome);
        let mut end = if call.claim.keyed {
            ClaimEnd::Finish(call.claim.clone(), answer.clone())
        } else {
            ClaimEnd::ReleaseScope(call.claim.scope.clone())
        };
        let mut wait = Duration::from_millis(50);
        loop {
            match self.commit(Some((session.clone(), Expect::Attempt(number))), end.clone()).await {
                Ok(_) => return Ok(answer),
                Err(Error::State(state::Error::AttemptClosed)) => {
                    // A settler was faster: answer from what it found.
                    let settled = self.parts.state.session(&self.settings.shop, &session.id).await?;
                    let settled = Outcome::Session(Box::new(settled.ok_or(Error::BrokeOff)?));
                    return Ok(self.parts.renderer.render(&call.render, &settled));
                }
                // The key is not ours any more; the outcome is kept all the same.
                Err(Error::State(state::Error::ClaimLost)) => end = ClaimEnd::Keep,
                Err(error @ Error::State(state::Error::Unavailable(_))) if !self.parts.tasks.is_closed() => {
                    tracing::error!(%error, session = %session.id, "an outcome could not be stored; trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(5));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes the open attempt.
    pub(super) fn end_attempt(&self, session: &mut Session, end: AttemptEnd, shop_order: Option<String>) {
        let closed_at = self.parts.clock.now();
        if let Some(Attempt { number, .. }) = session.attempt.take() {
            session.closed_attempts.push(ClosedAttempt { number, end, shop_order, closed_at });
        }
    }

    /// Empties a cart that still holds what was just bought, so that nothing can buy it again (W42).
    pub(super) fn empty_later(&self, cart: &Cart) {
        let (store, handle) = (std::sync::Arc::clone(&self.parts.store), cart.view.handle.clone());
        self.parts.tasks.spawn(async move {
            for pause in [0_u64, 1, 5, 15] {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                match store.empty(&handle).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, "a used cart could not be emptied"),
                }
            }
        });
    }
}

impl Session {
    /// Whether nobody has said where the bill goes.
    fn fulfillment_address_missing(&self, settings: &super::Settings) -> bool {
        settings.stand_ins.is_none() && self.cart.as_ref().is_none_or(|cart| cart.plan.customer.is_none())
    }
}

/// The order to place.
fn order_of(session: &Session, payment: Payment, caller: &CallerId) -> PlaceOrder {
    PlaceOrder {
        method: payment.method,
        payment_data: payment.data,
        note: session.note.clone(),
        correlation_id: session.correlation_id.clone(),
        source: caller.as_str().to_owned(),
        expected_total: session.cart.as_ref().map(|cart| cart.view.totals.total).unwrap_or_default(),
    }
}

enum Look {
    Same,
    Moved,
}

/// What moved between what was shown and the cart as it is now.
fn moved_since(session: &Session, shown: &CartView) -> Vec<Problem> {
    session.cart.as_ref().map(|now| differences(session, shown, &now.view)).unwrap_or_default()
}

/// The shop took the destination before the session was ready: an address that it refuses now, other than the
/// e-mail's, is the bill's that came with the completion.
fn blame_the_bill(session: &mut Session) {
    for told in &mut session.problems {
        if let Kind::AddressInvalid(field) = told.kind
            && field != Some(AddressField::Email)
        {
            told.place = Place::Billing;
        }
    }
}

/// What only the next try can tell again.
fn is_about_the_last_try(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::PaymentDeclined
            | Kind::InstrumentUnusable
            | Kind::ChallengeNeeded
            | Kind::PaymentAtShop
            | Kind::PriceChanged
            | Kind::OptionChanged
            | Kind::ShopRefused
    )
}

/// Adds what is not told yet. What the caller has to mend first keeps the session from being ready.
fn add_new(session: &mut Session, problems: Vec<Problem>) {
    for problem in problems {
        if !session.problems.iter().any(|told| told.kind == problem.kind) {
            if session.status == Status::Ready && problem.kind.blocks() && problem.weight() == Weight::Caller
            {
                session.status = Status::Incomplete;
            }
            session.problems.push(problem);
        }
    }
}

pub(super) fn attempt_number(session: &Session) -> u32 {
    session.attempt.as_ref().map_or(0, |attempt| attempt.number)
}
