//! The end of an attempt: what it left behind is written in one step, and an order is never dropped (R5).

use std::time::Duration;

use super::{Call, Service, pause::Pause, settle::Found};
use crate::{
    checkout::{
        Error,
        cart::Minor,
        ids::SessionId,
        outcome::{Outcome, RenderContext},
        points::Point,
        problem::{Kind, Place, Problem, Weight},
        session::{Attempt, AttemptEnd, Cart, Case, CaseReason, ClosedAttempt, Order, Session, Status},
        state::{self, ClaimEnd, Expect, SeenBy, Sighting},
        store::{FoundState, PlacedOrder},
    },
    clock::Ids,
    idempotency::{Answer, Scope},
    stock::Units,
};

/// How long between two tries to write an outcome, at first and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

impl Service {
    /// The session with its order, which costs `total`. One that costs something else than what was shown last
    /// is told.
    pub(super) fn adopt(&self, mut session: Session, order: &PlacedOrder, total: Minor) -> Session {
        if session.attempt.is_none() {
            session.held = session.last_units();
        }
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
        let now = self.parts.clock.now();
        session.tell(now, format!("adopted order {}", order.shop_order));
        session.updated_at = now;
        session
    }

    /// The session with the oldest of the orders that count, and all that was seen. Others that count want a refund:
    /// a person has to look.
    pub(super) fn complete_with(&self, session: Session, found: &Found) -> (Session, Vec<Sighting>) {
        let seen = self.all_seen(&session, found);
        let Some(oldest) = found.placed() else { return (session, seen) };
        let mut completed = self.adopt(session, &oldest.order, oldest.total);
        let now = self.parts.clock.now();
        for other in found.others_placed() {
            let shop_order = other.order.shop_order.clone();
            tracing::error!(session = %completed.id, order = %shop_order, "a second order for one purchase: it wants a refund");
            completed.tell(now, format!("order {shop_order} is one too many: a person has to look"));
            completed.open_case(Case { at: now, shop_order, reason: CaseReason::SecondOrder });
        }
        let adopted = |mut sighting: Sighting| {
            sighting.adopted = sighting.shop_order == oldest.order.shop_order;
            sighting
        };
        (completed, seen.into_iter().map(adopted).collect())
    }

    /// An order that was seen. It is the session's own if the session says so.
    pub(super) fn seen(
        &self,
        session: &Session,
        shop_order: &str,
        state: FoundState,
        total: Option<Minor>,
        seen_by: SeenBy,
    ) -> Sighting {
        let last = session.closed_attempts.last().map(|closed| closed.number);
        Sighting {
            shop_order: shop_order.to_owned(),
            session: session.id.clone(),
            attempt: session.attempt.as_ref().map(|attempt| attempt.number).or(last),
            seen_by,
            state,
            total,
            stock_taken: false,
            adopted: session.order.as_ref().is_some_and(|order| order.shop_order == shop_order),
            at: self.parts.clock.now(),
        }
    }

    /// All orders that a look found.
    pub(super) fn all_seen(&self, session: &Session, found: &Found) -> Vec<Sighting> {
        let one = |order: &crate::checkout::store::FoundOrder| {
            let seen =
                self.seen(session, &order.order.shop_order, order.state, Some(order.total), SeenBy::Look);
            Sighting { stock_taken: order.stock_taken, ..seen }
        };
        found.all().iter().map(one).collect()
    }

    /// The outcome commit: matches the attempt, not the version. Repeated until it is written: what the shop
    /// told us is never dropped (R5).
    pub(super) async fn close(
        &self,
        call: Call,
        mut session: Session,
        seen: Vec<Sighting>,
    ) -> Result<Answer, Error> {
        let number =
            attempt_number(&session).max(session.closed_attempts.last().map_or(0, |last| last.number));
        // What others have noted on the session meanwhile stays.
        if let Ok(Some(stored)) = self.parts.state.session(&self.settings.shop, &session.id).await
            && stored.version != session.version
        {
            session.take_notes(&stored);
        }
        let outcome = Outcome::Session(Box::new(session.clone()));
        let answer = self.parts.renderer.render(&call.render, &outcome);
        let mut end = if call.claim.keyed {
            ClaimEnd::Finish(call.claim.clone(), answer.clone())
        } else {
            ClaimEnd::ReleaseScope(call.claim.scope.clone())
        };
        let mut pause = Pause::new(TRY_AGAIN.0, TRY_AGAIN.1);
        self.at(Point::BeforeQ, Some(&session.id)).await;
        loop {
            let write = Some((session.clone(), Expect::Attempt(number)));
            match self.commit_with(write, end.clone(), seen.clone()).await {
                Ok(_) => {
                    self.at(Point::AfterQ, Some(&session.id)).await;
                    return Ok(answer);
                }
                Err(Error::State(state::Error::AttemptClosed)) => {
                    let stored = Box::pin(self.late(&session, seen)).await?;
                    return self.told_by_another(&call, number, stored);
                }
                // The key is not ours any more; the outcome is kept all the same.
                Err(Error::State(state::Error::ClaimLost)) => end = ClaimEnd::Keep,
                Err(Error::State(state::Error::OrderTaken { shop_order })) => {
                    let stored = Box::pin(self.not_its_order(&session.id, number, &shop_order)).await?;
                    let outcome = Outcome::InProgress(Box::new(stored));
                    return Ok(self.parts.renderer.render(&call.render, &outcome));
                }
                Err(error @ Error::State(state::Error::Unavailable(_))) if !self.parts.tasks.is_closed() => {
                    tracing::error!(%error, session = %session.id, "an outcome could not be stored; trying again");
                    pause.pass().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The answer when somebody else has closed the attempt. An order that was found is told as it was stored. Of
    /// anything else the session as it is now says too much: the settler may have freed the key, or the session may
    /// have moved on since its answer was stored. Who named a key asks again and is told that.
    pub(super) fn told_by_another(&self, call: &Call, number: u32, stored: Session) -> Result<Answer, Error> {
        let placed = |closed: &ClosedAttempt| closed.number == number && closed.end == AttemptEnd::Placed;
        if call.claim.keyed && !stored.closed_attempts.iter().any(placed) {
            return Err(state::Error::AttemptClosed.into());
        }
        Ok(self.parts.renderer.render(&call.render, &Outcome::Session(Box::new(stored))))
    }

    /// An outcome that comes when its attempt is closed already. An order that it brings is kept: it becomes the
    /// session's, if that is open and has none and no attempt runs, else a person has to look. Returns the session as
    /// it stands then.
    pub(super) async fn late(&self, ours: &Session, seen: Vec<Sighting>) -> Result<Session, Error> {
        let mut pause = Pause::new(TRY_AGAIN.0, TRY_AGAIN.1);
        loop {
            match Box::pin(self.late_once(ours, &seen)).await {
                Err(Error::State(state::Error::Moved)) => {}
                Err(error @ Error::State(state::Error::Unavailable(_))) if !self.parts.tasks.is_closed() => {
                    tracing::error!(%error, session = %ours.id, "a late outcome could not be stored; trying again");
                    pause.pass().await;
                }
                result => return result,
            }
        }
    }

    async fn late_once(&self, ours: &Session, seen: &[Sighting]) -> Result<Session, Error> {
        let stored = self.stored(&ours.id).await?;
        let foreign = |seen: &Sighting| Sighting { adopted: false, ..seen.clone() };
        let Some(order) = &ours.order else {
            if !seen.is_empty() {
                self.commit_with(None, ClaimEnd::Keep, seen.iter().map(foreign).collect()).await?;
            }
            return Ok(stored);
        };
        let known = stored.order.as_ref().is_some_and(|known| known.shop_order == order.shop_order);
        if known || stored.cases.iter().any(|case| case.shop_order == order.shop_order) {
            return Ok(stored);
        }
        let expect = Expect::Version(stored.version);
        let now = self.parts.clock.now();
        let mut next = stored;
        let is_free = next.order.is_none() && next.attempt.is_none() && !next.status.is_final();
        let seen = if is_free {
            next.tell(now, format!("order {} came late: adopted", order.shop_order));
            next.status = Status::Completed;
            next.problems.clone_from(&ours.problems);
            next.pay_url = None;
            next.order = Some(order.clone());
            next.held = next.last_units();
            next.updated_at = now;
            seen.to_vec()
        } else {
            tracing::error!(session = %next.id, order = %order.shop_order, "an order came late: a person has to look");
            next.tell(now, format!("order {} came late: a person has to look", order.shop_order));
            let reason = if next.order.is_some() { CaseReason::SecondOrder } else { CaseReason::LateOrder };
            next.open_case(Case { at: now, shop_order: order.shop_order.clone(), reason });
            seen.iter().map(foreign).collect()
        };
        let version = self.commit_with(Some((next.clone(), expect)), ClaimEnd::Keep, seen).await?;
        Ok(Session { version, ..next })
    }

    /// An order that is another session's cannot end an attempt: a person has to look. Returns the session.
    pub(super) async fn not_its_order(
        &self,
        id: &SessionId,
        number: u32,
        shop_order: &str,
    ) -> Result<Session, Error> {
        tracing::error!(session = %id, order = %shop_order, "an order cannot be this session's: a person has to look");
        let mut session = self.stored(id).await?;
        session.tell(
            self.parts.clock.now(),
            format!("order {shop_order} is another session's: a person has to look"),
        );
        if let Some(attempt) = session.attempt.as_mut().filter(|attempt| attempt.number == number) {
            (attempt.review, attempt.settling) = (true, true);
        }
        match self.commit(Some((session.clone(), Expect::Attempt(number))), ClaimEnd::Keep).await {
            Ok(version) => Ok(Session { version, ..session }),
            Err(Error::State(state::Error::AttemptClosed)) => self.stored(id).await,
            Err(error) => Err(error),
        }
    }

    /// The final answer of a settled attempt, rendered without a request. Where nobody may ask for it, or it
    /// cannot be kept, the key is free again.
    pub(super) fn ending(&self, ending: Option<Ending>, session: &Session) -> ClaimEnd {
        let Some(Ending { scope, context }) = ending else { return ClaimEnd::Keep };
        let outcome = Outcome::Session(Box::new(session.clone()));
        let answer = context.map(|context| self.parts.renderer.render(&context, &outcome));
        match answer.filter(Answer::is_kept) {
            Some(answer) => ClaimEnd::FinishScope(scope, answer),
            None => ClaimEnd::ReleaseScope(scope),
        }
    }

    pub(super) async fn commit_closed(
        &self,
        session: Session,
        number: u32,
        end: ClaimEnd,
        seen: Vec<Sighting>,
    ) -> Result<(), Error> {
        self.at(Point::SettleDecided, Some(&session.id)).await;
        let write = Some((session.clone(), Expect::Attempt(number)));
        match self.commit_with(write, end, seen.clone()).await {
            Ok(_) => Ok(()),
            // Somebody else closed it: what they found stands, and an order that only we found is kept.
            Err(Error::State(state::Error::AttemptClosed)) => {
                Box::pin(self.late(&session, seen)).await.map(drop)
            }
            Err(Error::State(state::Error::OrderTaken { shop_order })) => {
                Box::pin(self.not_its_order(&session.id, number, &shop_order)).await.map(drop)
            }
            Err(error) => Err(error),
        }
    }

    /// A session that must be there.
    pub(super) async fn stored(&self, id: &SessionId) -> Result<Session, Error> {
        self.parts.state.session(&self.settings.shop, id).await?.ok_or(Error::BrokeOff)
    }

    /// Closes the open attempt.
    pub(super) fn end_attempt(&self, session: &mut Session, end: AttemptEnd, shop_order: Option<String>) {
        let closed_at = self.parts.clock.now();
        if let Some(Attempt { number, units, draft, .. }) = session.attempt.take() {
            session.tell(closed_at, format!("attempt {number}: {}", end.name()));
            let stays = matches!(end, AttemptEnd::Declined | AttemptEnd::Escalated);
            session.held = if stays { units.clone() } else { Vec::new() };
            session.closed_attempts.push(ClosedAttempt {
                number,
                end,
                shop_order,
                closed_at,
                units,
                shop_keeps_units: false,
                draft,
            });
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
    /// The units of the last attempt: an order that is found late has sold them.
    fn last_units(&self) -> Vec<Units> {
        self.closed_attempts.last().map(|closed| closed.units.clone()).unwrap_or_default()
    }

    /// Takes over what was noted on the stored session since this one was read: cases and steps.
    fn take_notes(&mut self, stored: &Self) {
        for case in &stored.cases {
            self.open_case(case.clone());
        }
        let missed: Vec<_> = stored.story.iter().filter(|step| !self.story.contains(step)).cloned().collect();
        self.story.extend(missed);
        self.story.sort_by_key(|step| step.at);
    }
}

/// The number of the open attempt; 0 without one.
pub(super) fn attempt_number(session: &Session) -> u32 {
    session.attempt.as_ref().map_or(0, |attempt| attempt.number)
}

/// How the claim of an attempt ends: with an answer for the caller that named a key.
pub(super) struct Ending {
    scope: Scope,
    context: Option<RenderContext>,
}

pub(super) fn answer_of(session: &Session) -> Option<Ending> {
    let attempt = session.attempt.as_ref()?;
    let scope = Scope::stored(attempt.claim.clone()?);
    let context = if attempt.keyed { serde_json::from_value(attempt.render.clone()).ok() } else { None };
    Some(Ending { scope, context })
}
