//! What does not match between a shop's books and our memory; only read, nothing is decided (`exactly-once.md` §7 and §8,
//! W8).
//!
//! A moving shop is read in an order that makes no false alarm: a session exists before its order does, so sessions are
//! read after the orders for "an order without a session", and before them for "a session without its order".

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    ids::{SessionId, ShopId},
    session::{AttemptEnd, Session, Status},
    state::{self, Records, Which},
    store::{self, BookedStock, FoundState, OrderSearch, OrderSighting, Store},
};
use crate::stock::{Shelves, Stage, StockId};

/// What our correlation ids begin with: other programs may mark their orders at the same place.
pub(super) const CORRELATION: &str = "tg";

/// Most sessions that are held against the orders: the ones changed last.
const MOST_SESSIONS: usize = 100_000;

/// How far the shop's clock may be behind ours.
const SKEW: TimeDelta = TimeDelta::hours(1);

/// How far in front of a session's first look at the shop its order may have been made.
const MARGIN: TimeDelta = TimeDelta::days(3);

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The shop's books are closed to us.
    #[error("without a wc_v3 key the shop's books cannot be read")]
    ClosedBooks,
    /// The shop could not be asked.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Our memory could not be read.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// A session with more than one order that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeveralOrders {
    /// What all of them carry.
    pub correlation_id: String,
    /// The session, if there is one.
    pub session: Option<SessionId>,
    /// The shop's ids of them.
    pub shop_orders: Vec<String>,
}

/// A completed session whose order does not count at the shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOrder {
    /// The session.
    pub session: SessionId,
    /// The shop's id of its order.
    pub shop_order: String,
    /// What it is there now; `None`: the shop does not know it.
    pub state: Option<FoundState>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Orders that were looked at.
    pub orders: usize,
    /// Sessions that were looked at.
    pub sessions: usize,
    /// Stocks that were looked at.
    pub stocks: usize,
    /// Orders with a correlation id of ours that no session has.
    pub orders_without_session: Vec<OrderSighting>,
    /// More than one order for one session.
    pub several_orders: Vec<SeveralOrders>,
    /// Completed sessions whose order is gone.
    pub sessions_without_order: Vec<MissingOrder>,
    /// More were sold than there were, and that is not meant.
    pub negative_stock: Vec<BookedStock>,
    /// Units pinned for a session without an open attempt.
    pub pins_without_attempt: Vec<(SessionId, StockId)>,
    /// Units of an open attempt that are not pinned.
    pub attempts_without_pin: Vec<(SessionId, StockId)>,
}

impl Audit {
    /// Whether everything matches.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.orders_without_session.is_empty()
            && self.several_orders.is_empty()
            && self.sessions_without_order.is_empty()
            && self.negative_stock.is_empty()
            && self.pins_without_attempt.is_empty()
            && self.attempts_without_pin.is_empty()
    }
}

/// Holds the orders since then, the stock and our memory against each other.
///
/// # Errors
/// [`Error`]: nothing is known then.
pub async fn audit(
    records: &dyn Records,
    store: &dyn Store,
    shop: &ShopId,
    since: DateTime<Utc>,
) -> Result<Audit, Error> {
    if !store.abilities().opens_books {
        return Err(Error::ClosedBooks);
    }
    let before = records.list(shop, Which::All, MOST_SESSIONS).await?;
    let mut orders = store.orders_since(since - SKEW).await?;
    orders.retain(|order| {
        order.correlation_id.strip_prefix(CORRELATION).is_some_and(|rest| rest.starts_with('_'))
    });
    let after = records.list(shop, Which::All, MOST_SESSIONS).await?;
    let of_ids: BTreeMap<&str, &SessionId> =
        after.iter().map(|session| (session.correlation_id.as_str(), &session.id)).collect();
    let mut found = Audit { orders: orders.len(), sessions: after.len(), ..Audit::default() };
    found.several_orders = several(&orders, &of_ids);
    for session in &before {
        found.sessions_without_order.extend(missing_order(store, session, &orders, since).await?);
    }
    let has_none = |order: &&OrderSighting| !of_ids.contains_key(order.correlation_id.as_str());
    found.orders_without_session = orders.iter().filter(has_none).cloned().collect();
    let booked = store.booked_stock().await?;
    found.stocks = booked.len();
    let is_negative = |one: &BookedStock| !one.ordered_back && one.number.is_some_and(|number| number < 0);
    found.negative_stock = booked.into_iter().filter(is_negative).collect();
    pins(records, shop, &mut found).await?;
    Ok(found)
}

/// Sessions with more than one order that counts.
fn several(orders: &[OrderSighting], of_ids: &BTreeMap<&str, &SessionId>) -> Vec<SeveralOrders> {
    let mut by_id: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for order in orders.iter().filter(|order| order.state == FoundState::Placed) {
        by_id.entry(&order.correlation_id).or_default().push(order.shop_order.clone());
    }
    by_id
        .into_iter()
        .filter(|(_, shop_orders)| shop_orders.len() > 1)
        .map(|(id, shop_orders)| SeveralOrders {
            correlation_id: id.to_owned(),
            session: of_ids.get(id).map(|session| (*session).clone()),
            shop_orders,
        })
        .collect()
}

/// Whether a session that was completed since then has lost its order. One that the list does not show may have been
/// made before the list begins: it is asked for by its correlation id.
async fn missing_order(
    store: &dyn Store,
    session: &Session,
    orders: &[OrderSighting],
    since: DateTime<Utc>,
) -> Result<Option<MissingOrder>, Error> {
    let placed = session.closed_attempts.iter().rev().find(|closed| closed.end == AttemptEnd::Placed);
    let placed_at = placed.map_or(session.updated_at, |closed| closed.closed_at);
    let Some(order) = session.order.as_ref().filter(|_| session.status == Status::Completed) else {
        return Ok(None);
    };
    if placed_at < since {
        return Ok(None);
    }
    let listed = orders.iter().find(|one| one.shop_order == order.shop_order);
    let state = if let Some(listed) = listed {
        Some(listed.state)
    } else {
        let search = OrderSearch {
            correlation_id: &session.correlation_id,
            email: session.email().unwrap_or_default(),
            since: session.first_checked_at.unwrap_or(session.created_at) - MARGIN,
            thorough: true,
        };
        let found = store.find_orders(&search).await?;
        let own = found.into_iter().find(|found| found.order.shop_order == order.shop_order);
        own.map(|found| found.state)
    };
    // A status of a plugin's own (shipped, say) proves nothing against it.
    let counts = matches!(state, Some(FoundState::Placed | FoundState::Unclear));
    let missing =
        || MissingOrder { session: session.id.clone(), shop_order: order.shop_order.clone(), state };
    Ok((!counts).then(missing))
}

/// Holds pins and open attempts against each other (K3). What is found is looked at once more: both move.
async fn pins(records: &dyn Records, shop: &ShopId, found: &mut Audit) -> Result<(), Error> {
    let first = unmatched(records, shop).await?;
    if first.0.is_empty() && first.1.is_empty() {
        return Ok(());
    }
    let second = unmatched(records, shop).await?;
    let both = |first: Vec<(SessionId, StockId)>, second: &[(SessionId, StockId)]| {
        first.into_iter().filter(|one| second.contains(one)).collect()
    };
    found.pins_without_attempt = both(first.0, &second.0);
    found.attempts_without_pin = both(first.1, &second.1);
    Ok(())
}

type Pins = Vec<(SessionId, StockId)>;

/// Pins without an attempt, and units of attempts without a pin.
async fn unmatched(records: &dyn Records, shop: &ShopId) -> Result<(Pins, Pins), Error> {
    let open = records.list(shop, Which::Open, MOST_SESSIONS).await?;
    let shelves = records.shelves(shop).await?;
    let mut pins = Vec::new();
    for (stock, shelf) in &shelves {
        for id in shelf.members.iter().filter(|(_, it)| it.stage == Stage::Open).map(|(id, _)| id) {
            let id = SessionId::new(id);
            let session = records.find(shop, &id).await?;
            if session.is_none_or(|session| session.attempt.is_none()) {
                pins.push((id, stock.clone()));
            }
        }
    }
    let attempts = open.iter().flat_map(|session| unpinned(session, &shelves)).collect();
    Ok((pins, attempts))
}

/// Units of a session's open attempt that are not pinned on these shelves.
pub(super) fn unpinned(session: &Session, shelves: &Shelves) -> Pins {
    let units = session.attempt.iter().flat_map(|attempt| &attempt.units);
    let is_pinned = |stock: &StockId| {
        let member = shelves.get(stock).and_then(|shelf| shelf.members.get(session.id.as_str()));
        member.is_some_and(|member| matches!(member.stage, Stage::Open | Stage::Kept))
    };
    units
        .filter(|units| !is_pinned(&units.stock))
        .map(|units| (session.id.clone(), units.stock.clone()))
        .collect()
}
