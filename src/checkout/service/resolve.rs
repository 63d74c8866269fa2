//! What a person decides about a session that no machine can judge. Through the same commits as a settler's decisions.

use super::{
    Service,
    closing::{answer_of, attempt_number},
};
use crate::checkout::{
    Error,
    ids::SessionId,
    session::Session,
    state::{SeenBy, Sighting},
    store::{FoundOrder, FoundState, PlacedOrder},
};

/// What a person has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The attempt in review has made this order of the shop, and it counts.
    Placed(String),
    /// The attempt in review has made no order.
    NotPlaced,
    /// The case of this order of the shop is dealt with (refunded, or the buyer knows).
    Dealt(String),
}

/// What came of it.
#[derive(Debug)]
pub enum Resolution {
    /// It is written; the session as it is now.
    Done(Box<Session>),
    /// There is no such session.
    NoSession,
    /// No attempt of it waits for a person.
    NothingToDecide,
    /// No case is open about that order.
    NoCase,
    /// The shop was asked, and knows no such order of this session.
    NotItsOrder,
}

impl Service {
    /// Takes a person's decision. An order that is named is looked for where that can be done; before an attempt is
    /// given up its cart is emptied, so that nothing buys with it later.
    ///
    /// # Errors
    /// See [`Error`]: nothing is written then.
    pub async fn resolve(&self, id: &SessionId, finding: Finding) -> Result<Resolution, Error> {
        let _turn = self.turn(id).await?;
        let Some(mut session) = self.parts.state.session(&self.settings.shop, id).await? else {
            return Ok(Resolution::NoSession);
        };
        if let Finding::Dealt(shop_order) = finding {
            let known = session.cases.len();
            session.cases.retain(|case| case.shop_order != shop_order);
            if session.cases.len() == known {
                return Ok(Resolution::NoCase);
            }
            session.tell(self.parts.clock.now(), format!("a person: order {shop_order} is dealt with"));
            return Ok(Resolution::Done(Box::new(Box::pin(self.store(session)).await?)));
        }
        if !session.attempt.as_ref().is_some_and(|attempt| attempt.review) {
            return Ok(Resolution::NothingToDecide);
        }
        match finding {
            Finding::Placed(shop_order) => {
                session.tell(self.parts.clock.now(), format!("a person: order {shop_order} is its order"));
                if !Box::pin(self.resolved_as_placed(session, &shop_order)).await? {
                    return Ok(Resolution::NotItsOrder);
                }
            }
            Finding::NotPlaced | Finding::Dealt(_) => {
                self.fence(&session).await?;
                session.tell(self.parts.clock.now(), "a person: there is no order");
                Box::pin(self.settled_as_fenced(session)).await?;
            }
        }
        Ok(Resolution::Done(Box::new(self.stored(id).await?)))
    }

    async fn resolved_as_placed(&self, session: Session, shop_order: &str) -> Result<bool, Error> {
        let order = if self.parts.store.abilities().finds_orders {
            let found = self.find(&session).await?;
            let found = found.all().iter().find(|found| found.order.shop_order == shop_order);
            let Some(found) = found else { return Ok(false) };
            found.clone()
        } else {
            Self::named_order(&session, shop_order)
        };
        let number = attempt_number(&session);
        let (answer, cart) = (answer_of(&session), session.cart.clone());
        let completed = self.adopt(session, &order.order, order.total);
        let seen = self.seen(&completed, shop_order, order.state, Some(order.total), SeenBy::Person);
        let end = self.ending(answer, &completed);
        Box::pin(self.commit_closed(completed, number, end, vec![Sighting { adopted: true, ..seen }]))
            .await?;
        if let Some(cart) = cart {
            self.empty_later(&cart);
        }
        Ok(true)
    }

    /// An order of which only the person knows: it is taken to cost what was agreed.
    fn named_order(session: &Session, shop_order: &str) -> FoundOrder {
        FoundOrder {
            order: PlacedOrder {
                shop_order: shop_order.to_owned(),
                number: shop_order.to_owned(),
                key: String::new(),
                paid: true,
                cart_filled: true,
                permalink_url: None,
            },
            state: FoundState::Placed,
            total: session.attempt.as_ref().map(|attempt| attempt.total).unwrap_or_default(),
            traces: false,
            modified_at: None,
            stock_taken: false,
        }
    }
}
