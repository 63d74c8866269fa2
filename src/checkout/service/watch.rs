//! Sessions that have ended and left orders behind that may be paid all the same: the buyer pays an old one in the
//! moment in which the agent buys again, or days later; a late `POST` makes one (`exactly-once.md` E9, W8).
//!
//! Their orders are looked at again, at first after the time that a settler waits, then after ever longer times,
//! for a day. An order that counts and is not the session's own goes to a person: it wants a refund.

use chrono::TimeDelta;

use super::{Service, settle::wait_of};
use crate::checkout::{
    Error,
    session::{Session, Watch},
    state::{self, ClaimEnd, Expect},
};

/// How long orders are looked at after their session has ended.
const WATCH: TimeDelta = TimeDelta::hours(24);

/// The longest time between two looks.
const SELDOM: TimeDelta = TimeDelta::hours(6);

impl Service {
    /// The session, with a watch begun if it has just ended and may have an order that nobody knows of.
    pub(super) fn watched(&self, mut session: Session) -> Session {
        let begins = session.status.is_final()
            && session.watch.is_none()
            && session.may_have_an_order()
            && self.parts.store.abilities().finds_orders;
        if begins {
            let since = self.parts.clock.now();
            let told = session.cases.iter().map(|case| case.shop_order.clone()).collect();
            session.watch = Some(Watch { since, next: Some(since + self.first_look()), told });
        }
        session
    }

    fn first_look(&self) -> TimeDelta {
        wait_of(&self.settings).clamp(TimeDelta::seconds(1), SELDOM)
    }

    /// One look at the orders of a session that has ended, when it is due. While the shop cannot be asked the watch
    /// does not end.
    pub(super) async fn look_again(&self, mut session: Session) -> Result<(), Error> {
        let now = self.parts.clock.now();
        let Some(mut watch) = session.watch.clone() else { return Ok(()) };
        if session.attempt.is_some() || watch.next.is_none_or(|next| next > now) {
            return Ok(());
        }
        let expect = Expect::Version(session.version);
        let looked = self.find(&session).await;
        let over = looked.is_ok() && now - watch.since >= WATCH;
        let pause = (now - watch.since).clamp(self.first_look(), SELDOM);
        watch.next = (!over).then_some(now + pause);
        session.watch = Some(watch);
        let mut seen = Vec::new();
        if let Ok(found) = &looked {
            self.note_paid(&mut session, found);
            seen = self.all_seen(&session, found);
        }
        match self.commit_with(Some((session, expect)), ClaimEnd::Keep, seen).await {
            // Somebody else has written it: the next round sees.
            Ok(_) | Err(Error::State(state::Error::Moved)) => looked.map(drop).map_err(Error::from),
            Err(error) => Err(error),
        }
    }
}
