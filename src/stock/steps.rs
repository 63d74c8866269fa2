//! The steps on shelves. Each is taken as a whole, or not at all, by the state that keeps them.

use std::collections::BTreeMap;

use super::{
    Close, MOST_WAITING, Member, NotAdmitted, Reading, Reserve, Reserved, Shelf, Stage, StockId, Units,
};

/// The shelves that a step is about, by stock id; one that is new is empty.
pub type Shelves = BTreeMap<StockId, Shelf>;

/// Who takes a step, and when.
pub struct Moment<'a> {
    /// The state's clock, in milliseconds.
    pub now: i64,
    /// The process that asks.
    pub owner: &'a str,
    /// Whether a process still shows that it lives.
    pub lives: &'a dyn Fn(&str) -> bool,
    /// The shop's sequence: grows with every attempt that opens or closes and every ticket.
    pub sequence: &'a mut u64,
}

impl Moment<'_> {
    fn next(&mut self) -> u64 {
        *self.sequence += 1;
        *self.sequence
    }
}

/// Holds units for a session, all or none, and lets it through the gate if it wants: in parallel with others while
/// the lower bound covers it, else alone; those that wait go in the order of their tickets, a basket when it is
/// first in all its queues. One that was admitted and asks again (its reply was lost, or it was told [`NotAdmitted`])
/// keeps its place. While an attempt of its own is open or its order waits to be paid, it waits and nothing changes;
/// what it holds of other stock ids than these stays held, so a basket that changes is given back first.
pub fn reserve(shelves: &mut Shelves, wish: &Reserve, moment: &mut Moment<'_>) -> Reserved {
    let (session, now) = (wish.session.as_str(), moment.now);
    let is_past = |units: &Units| {
        let known = shelves.get(&units.stock).and_then(|shelf| shelf.members.get(session));
        known.is_some_and(|known| matches!(known.stage, Stage::Open | Stage::Kept | Stage::Sold))
    };
    if wish.units.iter().any(is_past) {
        return Reserved::Waiting { ahead: 0 };
    }
    for units in &wish.units {
        let shelf = shelves.entry(units.stock.clone()).or_default();
        shelf.prune(now, moment.lives);
        if let Some(reason) = shelf.shortage(session, units.quantity, now) {
            release(shelves, session, &wish.units);
            return Reserved::Refused { stock: units.stock.clone(), reason };
        }
    }
    let ticket = own_ticket(shelves, wish);
    let may_enter = |units: &Units| {
        shelves.get(&units.stock).is_none_or(|shelf| {
            let covered =
                shelf.lower_bound(session, now).is_some_and(|least| least >= i64::from(units.quantity));
            // What a caller may hold is a limit, not goods that orders race for.
            units.stock.is_of_caller()
                || shelf.ahead(session, ticket) == 0 && (covered || !shelf.is_busy(session))
        })
    };
    let enters = wish.enter && wish.units.iter().all(may_enter);
    let gated = wish.units.iter().filter(|units| !units.stock.is_of_caller());
    let ahead = gated.filter_map(|units| Some(shelves.get(&units.stock)?.ahead(session, ticket)));
    let ahead = ahead.max().unwrap_or_default();
    if wish.enter && !enters && ticket.is_none() && ahead >= MOST_WAITING {
        release(shelves, session, &wish.units);
        return Reserved::Full;
    }
    let ticket = match (wish.enter, enters) {
        (true, false) => Some(ticket.filter(|ticket| *ticket != FIRST).unwrap_or_else(|| moment.next())),
        (true, true) => ticket.filter(|ticket| *ticket != FIRST),
        (false, _) => None,
    };
    for units in &wish.units {
        let shelf = shelves.entry(units.stock.clone()).or_default();
        let known = shelf.members.get(session);
        let past = known.cloned().unwrap_or_else(|| Member::soft(0, 0));
        // What is held for longer already stays held for longer.
        let until = known.filter(|known| known.stage == Stage::Soft).map_or(0, |known| known.at);
        let member = Member {
            stage: if enters { Stage::Admitted } else { Stage::Soft },
            owner: wish.enter.then(|| moment.owner.to_owned()),
            ticket,
            shop_keeps: past.shop_keeps,
            unpaid_from: past.unpaid_from,
            unpaid_to: past.unpaid_to,
            ..Member::soft(units.quantity, until.max(now + wish.hold_ms))
        };
        shelf.members.insert(session.to_owned(), member);
    }
    if enters || !wish.enter {
        Reserved::Admitted { mark: *moment.sequence }
    } else {
        Reserved::Waiting { ahead }
    }
}

/// Before all that wait: who is through the gate already.
const FIRST: u64 = 0;

fn own_ticket(shelves: &Shelves, wish: &Reserve) -> Option<u64> {
    let of = |units: &Units| shelves.get(&units.stock)?.members.get(&wish.session);
    let is_through = |units: &Units| of(units).is_some_and(|member| member.stage == Stage::Admitted);
    let through = !wish.units.is_empty() && wish.units.iter().all(is_through);
    wish.units.iter().find_map(|units| of(units)?.ticket).or_else(|| through.then_some(FIRST))
}

/// An attempt opens (*placing*): its units are pinned until it is closed. What the last look at the shop said is
/// taken first; if that does not cover it beside what runs, it has to pass the gate again.
///
/// # Errors
/// [`NotAdmitted`]: throw the changed shelves away. It passes the gate anew by [`reserve`].
pub fn pin(
    shelves: &mut Shelves,
    session: &str,
    units: &[Units],
    readings: &[Reading],
    moment: &mut Moment<'_>,
) -> Result<(), NotAdmitted> {
    observe(shelves, readings, moment);
    for units in units {
        shelves.entry(units.stock.clone()).or_default().prune(moment.now, moment.lives);
    }
    let admitted = |units: &Units| {
        let shelf = shelves.get(&units.stock)?;
        let member = shelf.members.get(session)?;
        let own = member.stage == Stage::Admitted
            && member.owner.as_deref() == Some(moment.owner)
            && member.quantity == units.quantity;
        let covered =
            shelf.lower_bound(session, moment.now).is_some_and(|least| least >= i64::from(units.quantity));
        let free = units.stock.is_of_caller() || covered || !shelf.has_open(session);
        (own && free).then_some(())
    };
    if !units.iter().all(|units| admitted(units).is_some()) {
        return Err(NotAdmitted);
    }
    let opened = moment.next();
    for member in members(shelves, session, units) {
        member.stage = Stage::Open;
        (member.opened, member.closed) = (Some(opened), None);
        (member.owner, member.ticket) = (None, None);
        (member.unpaid_from, member.unpaid_to) = (member.unpaid_from.or(Some(opened)), None);
    }
    Ok(())
}

/// An open attempt is closed. Taken again, it changes nothing. A sale that is told of a session without an open
/// attempt (its order was found late) counts all the same.
///
/// Tell [`Close::Sold`] when the shop has counted the units down, not when the order's status has turned: a reading
/// that begins afterwards is taken to know of the sale.
pub fn close(shelves: &mut Shelves, session: &str, units: &[Units], how: Close, moment: &mut Moment<'_>) {
    let concerned = |stage| match how {
        Close::Sold => stage != Stage::Sold,
        Close::Kept => stage == Stage::Open,
        Close::Declined { .. } | Close::Released => matches!(stage, Stage::Open | Stage::Kept),
    };
    let (mut closed, now) = (None, moment.now);
    for units in units {
        let shelf = shelves.entry(units.stock.clone()).or_default();
        let known = shelf.members.get(session);
        let is_concerned = known.map_or(how == Close::Sold, |known| concerned(known.stage));
        if is_concerned {
            let closed = *closed.get_or_insert_with(|| moment.next());
            let opened = known.and_then(|known| known.opened);
            let quantity = known.map_or(units.quantity, |known| known.quantity);
            let unpaid_from = known.and_then(|known| known.unpaid_from);
            let mut member = Member { opened, unpaid_from, ..Member::soft(quantity, now) };
            match how {
                Close::Sold => (member.stage, member.closed) = (Stage::Sold, Some(closed)),
                Close::Kept => member.stage = Stage::Kept,
                Close::Declined { hold_ms, shop_keeps } => {
                    member.at = now + hold_ms;
                    (member.opened, member.shop_keeps) = (None, shop_keeps.then_some(closed));
                    member.unpaid_to = (!shop_keeps).then_some(closed);
                }
                // Its time is over at once.
                Close::Released => member.opened = None,
            }
            shelf.members.insert(session.to_owned(), member);
        }
        shelf.prune(now, moment.lives);
    }
}

/// A session gives back what it holds, unless its `POST` may run or it has bought.
pub fn release(shelves: &mut Shelves, session: &str, units: &[Units]) {
    for units in units {
        if let Some(shelf) = shelves.get_mut(&units.stock) {
            let is_held =
                |member: &Member| matches!(member.stage, Stage::Soft | Stage::Admitted | Stage::Kept);
            if shelf.members.get(session).is_some_and(is_held) {
                shelf.members.remove(session);
            }
        }
    }
}

/// Takes what the shop said.
pub fn observe(shelves: &mut Shelves, readings: &[Reading], moment: &Moment<'_>) {
    for reading in readings {
        let shelf = shelves.entry(reading.stock.clone()).or_default();
        shelf.prune(moment.now, moment.lives);
        shelf.observe(reading, *moment.sequence, moment.now);
    }
}

fn members<'a>(
    shelves: &'a mut Shelves,
    session: &str,
    units: &[Units],
) -> impl Iterator<Item = &'a mut Member> {
    shelves
        .iter_mut()
        .filter(|(stock, _)| units.iter().any(|units| units.stock == **stock))
        .filter_map(move |(_, shelf)| shelf.members.get_mut(session))
}
