//! Completion: the last look, *placing*, the one `POST`, what came of it (`exactly-once.md` §4).

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Call, Entered, Entry, Service, Verdict,
    closing::attempt_number,
    payment::{Payment, Unpayable},
    settle::SKEW,
    stock::{Gate, Wanted},
    unpaid::Unpaid,
};
use crate::{
    checkout::{
        Error,
        cart::{AddressField, CartView, Refusal},
        command::{Completion, UnknownOption},
        ids::{CallerId, SessionId},
        outcome::Outcome,
        planning::{Purpose, plan},
        points::Point,
        problem::{Kind, Place, Problem, Weight},
        session::{Address, Attempt, AttemptEnd, Cart, Sent, Session, Status},
        showing::{Basis, differences, settle_status},
        state::{self, ClaimEnd, Expect},
        store::{Checked, Draft, Effect, Error as StoreError, PlaceOrder, Placement},
    },
    idempotency::Answer,
};

/// The shop refuses a second `POST` for the same order within the same second (E6).
const BETWEEN_ATTEMPTS: chrono::Duration = chrono::Duration::seconds(2);

/// Nothing is sent by a process whose lease is shorter than this.
const LEASE_MARGIN: Duration = Duration::from_secs(4);

/// How often an order that cannot go beside another passes the gate anew.
const MOST_TRIES: u32 = 5;

/// What a completion brings through the gate.
struct Behind<'a> {
    wanted: &'a Wanted,
    /// Where readings of the stock begin.
    mark: u64,
    billing: Option<&'a Address>,
}

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
        if session.of_older_epoch
            && let Some(completed) = self.look_after_loss(&mut session, &cart).await?
        {
            return answered(Verdict::only(Outcome::Session(completed)));
        }
        let cart = session.cart.clone().unwrap_or(cart);
        self.keep_distance(&session).await;
        let wanted = self.wanted(&cart.view).await?;
        let billing = completion.instrument.as_ref().and_then(|instrument| instrument.billing.clone());
        let order = order_of(&session, payment, &call.caller);
        let mut tries = 0;
        loop {
            let mark = match self.pass_gate(&session, &wanted).await? {
                Gate::Open(mark) => mark,
                Gate::Short(problem) => {
                    session.status = Status::Incomplete;
                    session.tell(self.parts.clock.now(), "too little is left: the shop was not asked");
                    session.problems.push(problem);
                    return answered(Verdict::write(session, expect));
                }
            };
            self.at(Point::Gate, Some(&session.id)).await;
            let behind = Behind { wanted: &wanted, mark, billing: billing.as_ref() };
            let ready = Box::pin(self.behind_gate(call, session.clone(), &cart, order.clone(), behind)).await;
            if matches!(ready, Ok(Ready::Placing(_))) {
                return ready;
            }
            let alone = matches!(ready, Err(Error::State(state::Error::NotAdmitted)));
            if alone && tries < MOST_TRIES {
                tries += 1;
                continue;
            }
            self.give_back(&session, &wanted).await;
            return if alone { Err(Error::Busy) } else { ready };
        }
    }

    /// From the gate to *placing*: the last look, and the attempt with its units pinned.
    async fn behind_gate(
        &self,
        call: &Call,
        mut session: Session,
        cart: &Cart,
        mut order: PlaceOrder,
        behind: Behind<'_>,
    ) -> Result<Ready, Error> {
        let answered = |verdict| Ok(Ready::Answered(Box::new(verdict)));
        let expect = Expect::Version(session.version);
        let checked_at = match self.last_look(&mut session, cart, behind.billing).await? {
            Look::Same(shop_time) => shop_time,
            Look::Completed => return answered(Verdict::only(Outcome::Session(Box::new(session)))),
            Look::Moved => {
                session.tell(self.parts.clock.now(), "checked: it has changed, no order");
                return answered(Verdict::write(session, expect));
            }
        };
        self.at(Point::Checked, Some(&session.id)).await;
        if session.fulfillment_address_missing(&self.settings) {
            session.problems.push(Problem::new(Kind::MissingAddress, Place::Billing));
            session.status = Status::Incomplete;
            return answered(Verdict::write(session, expect));
        }
        order.expected_total = session.cart.as_ref().map(|cart| cart.view.totals.total).unwrap_or_default();
        let cart = session.cart.as_ref().unwrap_or(cart);
        let draft = match self.name_order(cart, order.method.as_deref()).await {
            Ok(draft) => draft,
            Err(error) => {
                if error.effect() != Effect::NotSent {
                    self.leave_cart(&session).await?;
                }
                return Err(error.into());
            }
        };
        let stored_at = Instant::now();
        let asked = Asked { checked_at, draft };
        let session = self.store_placing(call, session, &order, asked, &behind).await?;
        Ok(Ready::Placing(Box::new(Placing { session, order, stored_at })))
    }

    /// The state has lost its newest writes since the session was written: an order of it may be unknown here. Its
    /// cart is emptied and left behind, so that nothing of before can buy any more, and its orders are looked for.
    async fn look_after_loss(
        &self,
        session: &mut Session,
        cart: &Cart,
    ) -> Result<Option<Box<Session>>, Error> {
        match self.parts.store.empty(&cart.view.handle).await {
            Ok(()) | Err(StoreError::CartGone) => {}
            Err(error) => return Err(error.into()),
        }
        session.leave_cart();
        // An attempt of before may be unknown: its order is older than any look from now on.
        session.first_checked_at = Some(session.created_at - SKEW);
        if !self.parts.store.abilities().finds_orders {
            session.of_older_epoch = false;
            return Ok(None);
        }
        let found = self.find(session).await?;
        session.of_older_epoch = false;
        if found.placed().is_none() {
            return Ok(None);
        }
        let (completed, seen) = self.complete_with(session.clone(), &found);
        Ok(Some(Box::new(self.store_with(completed, seen).await?)))
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
        let (view, shop_time) = match looked {
            Ok(Checked { view, shop_time }) => (view, shop_time),
            // Another cart than the one that was shown: make a new one and let the caller look at it.
            Err(StoreError::CartGone) => {
                self.bring(session, wanted).await?;
                settle_status(session, &self.settings);
                let moved = moved_since(session, &cart.view);
                if moved.is_empty() && session.status == Status::Ready {
                    return Ok(Look::Same(None));
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
            if self.can_look(session) {
                let found = self.find(session).await?;
                if found.placed().is_some() {
                    let (completed, seen) = self.complete_with(session.clone(), &found);
                    *session = self.store_with(completed, seen).await?;
                    return Ok(Look::Completed);
                }
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
            return Ok(Look::Same(shop_time));
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
        Asked { checked_at, draft }: Asked,
        behind: &Behind<'_>,
    ) -> Result<Session, Error> {
        let number = u32::try_from(session.closed_attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let email = session.cart.as_ref().and_then(|cart| cart.plan.customer.as_ref()?.email.clone());
        let expect = Expect::Version(session.version);
        let now = self.parts.clock.now();
        if session.closed_attempts.is_empty() && session.first_checked_at.is_none() {
            session.first_checked_at = checked_at;
        }
        session.tell(now, format!("placing {number}"));
        session.status = Status::Placing;
        session.problems.retain(|problem| problem.weight() == Weight::Warning);
        session.attempt = Some(Attempt {
            number,
            claim: Some(call.claim.scope.as_str().to_owned()),
            render: serde_json::to_value(&call.render).unwrap_or(Value::Null),
            total: order.expected_total,
            email: email.unwrap_or_default(),
            method: order.method.clone().unwrap_or_default(),
            placing_at: now,
            settling: false,
            fenced_at: None,
            review: false,
            keyed: call.claim.keyed,
            checked_at,
            sent: Sent::Unknown,
            baseline: session.unpaid_order(),
            generation: session.generation,
            units: behind.wanted.units.clone(),
            is_over: false,
            draft,
        });
        let attach = ClaimEnd::Attach(call.claim.clone(), number);
        let view = session.cart.as_ref().map(|cart| &cart.view);
        let readings = view.map(|view| behind.wanted.readings(view, behind.mark)).unwrap_or_default();
        self.at(Point::BeforeP, Some(&session.id)).await;
        let version = match self.commit_placing((session.clone(), expect), attach, readings.clone()).await {
            Ok(version) => version,
            Err(error @ Error::State(state::Error::NotAdmitted)) => {
                // What the shop said is known from now on; then it goes alone.
                self.parts.state.observe(&self.settings.shop, readings).await?;
                return Err(error);
            }
            Err(error) => {
                self.take_back(session, call).await;
                return Err(error);
            }
        };
        self.pace.seen(&session.id, number, false);
        self.at(Point::AfterP, Some(&session.id)).await;
        Ok(Session { version, ..session })
    }

    /// *placing* could not be stored, or not well enough, and nothing was sent: if it stands all the same, the
    /// attempt is closed and the key is free. Where that fails too, the settler finds out.
    async fn take_back(&self, mut session: Session, call: &Call) {
        let stands = match self.parts.state.session(&self.settings.shop, &session.id).await {
            // Another process may have an attempt of the same number open by now: only our own is taken back.
            Ok(stored) => stored.is_some_and(|stored| stored.attempt == session.attempt),
            Err(error) => {
                tracing::warn!(%error, "an attempt that was never sent could not be looked for");
                return;
            }
        };
        if !stands {
            return;
        }
        let number = attempt_number(&session);
        self.end_attempt(&mut session, AttemptEnd::Fenced, None);
        session.status = Status::Ready;
        let freed = ClaimEnd::ReleaseScope(call.claim.scope.clone());
        match self.commit(Some((session, Expect::Attempt(number))), freed).await {
            Ok(_) | Err(Error::State(state::Error::AttemptClosed)) => {}
            Err(error) => tracing::warn!(%error, "an attempt that was never sent could not be closed"),
        }
    }

    /// The one `POST` and what came of it.
    async fn place(&self, call: Call, placing: Placing) -> Result<Answer, Error> {
        let Placing { session, order, stored_at } = placing;
        let Some(cart) = session.cart.clone() else { return Err(Error::BrokeOff) };
        let placed = if stored_at.elapsed() < self.settings.self_fence && self.is_taken_for_alive() {
            self.at(Point::BeforeSend, Some(&session.id)).await;
            self.parts.store.place(&cart, &order).await
        } else {
            // Stored too long ago, or taken for dead: a settler may be at work. Nothing is sent; the settler decides.
            return Box::pin(self.unknown(call, session, Sent::No, &StoreError::TimedOut)).await;
        };
        drop(order);
        self.at(Point::Answered, Some(&session.id)).await;
        match placed {
            Ok(Placement::Placed(order)) => Box::pin(self.placed(call, session, &cart, order)).await,
            Ok(Placement::Redirect { order, url }) => {
                Box::pin(self.escalated(call, session, order, url)).await
            }
            Ok(Placement::Declined { shop_order }) => {
                Box::pin(self.declined(call, session, shop_order)).await
            }
            Ok(Placement::Refused(reason)) => Box::pin(self.refused(call, session, &cart, reason)).await,
            Err(error) if error.effect() == Effect::NotSent => {
                Box::pin(self.not_sent(call, session, error)).await
            }
            Err(StoreError::CartGone) => Box::pin(self.not_sent(call, session, StoreError::CartGone)).await,
            Err(error) => Box::pin(self.unknown(call, session, Sent::Yes, &error)).await,
        }
    }

    /// Whether others still take this process for alive, with something to spare.
    fn is_taken_for_alive(&self) -> bool {
        self.parts.state.lease().is_none_or(|lease| lease > LEASE_MARGIN)
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

/// What the shop has said right before *placing*.
struct Asked {
    /// Its own time of the last look.
    checked_at: Option<DateTime<Utc>>,
    /// The order that it named.
    draft: Option<Draft>,
}

/// What the last look came to.
enum Look {
    /// All is as it was shown; with the shop's own time of the look.
    Same(Option<DateTime<Utc>>),
    /// Something has changed: the caller decides again.
    Moved,
    /// There is an order already: the session is completed with it.
    Completed,
}

/// What moved between what was shown and the cart as it is now.
pub(super) fn moved_since(session: &Session, shown: &CartView) -> Vec<Problem> {
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
            | Kind::Short { .. }
            | Kind::OwnOrderHolds
    )
}

/// Adds what is not told yet. What the caller has to mend first keeps the session from being ready.
pub(super) fn add_new(session: &mut Session, problems: Vec<Problem>) {
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
