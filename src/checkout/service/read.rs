//! Reading a session, giving it up, and its end by time.

use super::{Service, Verdict, unpaid::Unpaid};
use crate::checkout::{
    Error,
    ids::{CallerId, SessionId},
    outcome::Outcome,
    problem::{Kind, Place, Problem},
    session::{Session, Status},
    showing::{Basis, settle_status},
    state::Expect,
};

impl Service {
    /// Reads a session. An open one takes its turn, as reading may settle or expire it.
    pub(super) async fn read_session(&self, caller: &CallerId, id: &SessionId) -> Result<Outcome, Error> {
        let Some(session) = self.load(caller, id).await? else { return Ok(Outcome::NotFound) };
        if session.status == Status::Placing {
            self.pace.hurry(id);
        }
        if session.status.is_final() || session.status == Status::Placing {
            return Ok(Outcome::Session(Box::new(session)));
        }
        let _turn = self.turn(id).await?;
        let Some(session) = self.load(caller, id).await? else { return Ok(Outcome::NotFound) };
        if session.status.is_final() || session.status == Status::Placing {
            return Ok(Outcome::Session(Box::new(session)));
        }
        if session.expires_at <= self.parts.clock.now() {
            return Ok(Outcome::Session(Box::new(Box::pin(self.end_by_time(session)).await?)));
        }
        if !session.waits_at_the_shop() {
            return Ok(Outcome::Session(Box::new(self.refreshed(session).await?)));
        }
        let session = match Box::pin(self.unpaid(session.clone())).await {
            Ok(Unpaid::Paid(now) | Unpaid::Waiting(now)) => *now,
            Ok(Unpaid::Clear(now)) => self.store(*now).await?,
            Err(error) => {
                tracing::warn!(%error, "an order could not be looked for; the last state is shown");
                session
            }
        };
        Ok(Outcome::Session(Box::new(session)))
    }

    /// The session with a look at the cart that is not older than allowed. A look that fails changes
    /// nothing: the last one is shown.
    async fn refreshed(&self, session: Session) -> Result<Session, Error> {
        // While an unpaid order waits at the shop its cart is left alone: a mere look may drop a coupon (E8).
        let Some(cart) = session.cart.as_ref().filter(|_| !session.left_an_unpaid_order()) else {
            return Ok(session);
        };
        let age = self.parts.clock.now() - cart.read_at;
        if cart.usable && age.to_std().is_ok_and(|age| age < self.settings.snapshot_life) {
            return Ok(session);
        }
        let mut fresh = session.clone();
        let wanted = cart.plan.clone();
        if cart.usable {
            match self.parts.store.read(cart).await {
                Ok(view) if !view.lines.is_empty() && self.in_our_currency(&view).is_ok() => {
                    self.hold(&mut fresh, wanted, view, Basis::Read);
                }
                Ok(_) | Err(crate::checkout::store::Error::CartGone) => return Ok(session),
                Err(error) => {
                    tracing::warn!(%error, "a cart could not be read; its last state is shown");
                    return Ok(session);
                }
            }
        } else if let Err(error) = Box::pin(self.bring(&mut fresh, wanted)).await {
            tracing::warn!(%error, "a cart could not be made anew; its last state is shown");
            return Ok(session);
        }
        settle_status(&mut fresh, &self.settings);
        self.store(fresh).await
    }

    pub(super) async fn cancel_session(&self, session: Session) -> Result<Verdict, Error> {
        let mut session = match Box::pin(self.unpaid(session)).await? {
            Unpaid::Paid(session) => return Ok(Verdict::only(Outcome::Finished(session))),
            Unpaid::Waiting(session) | Unpaid::Clear(session) => *session,
        };
        let expect = Expect::Version(session.version);
        session.status = Status::Canceled;
        session.tell(self.parts.clock.now(), "canceled");
        session.problems.clear();
        self.withdraw_later(&mut session);
        session.updated_at = self.parts.clock.now();
        Ok(Verdict::write(session, expect))
    }

    /// Ends a session whose time is over: completed, if an order that it left unpaid has been paid since. An
    /// order that cannot be looked for now keeps nobody waiting: it is found by its correlation id later.
    pub(super) async fn end_by_time(&self, session: Session) -> Result<Session, Error> {
        let mut session = match Box::pin(self.unpaid(session.clone())).await {
            Ok(Unpaid::Paid(completed)) => return Ok(*completed),
            Ok(Unpaid::Waiting(session) | Unpaid::Clear(session)) => *session,
            Err(error) => {
                tracing::warn!(%error, session = %session.id, "an order could not be looked for at expiry");
                session
            }
        };
        session.status = Status::Expired;
        session.tell(self.parts.clock.now(), "expired");
        session.problems = vec![Problem::new(Kind::Expired, Place::Session)];
        self.withdraw_later(&mut session);
        self.store(session).await
    }
}
