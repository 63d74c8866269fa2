//! Reconciliation: what is known of a shop's stock is held against the shop, every so often (`exactly-once.md` §7).
//!
//! It reads what changed, notes it, gives back what sessions that are over still hold, closes pins without an attempt,
//! and reports what nobody here has done. It never writes to the shop, decides about no order, and touches no pin of
//! an open attempt.
//!
//! Each process does so for itself: every step is harmless when it is taken twice (readings carry their own numbers of
//! the sequence, what is given back is gone, a pin is closed against the session's version), so there is no lease that
//! could be lost. Several processes cost the shop as many times two calls.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::{DateTime, Utc};

use super::{Service, settle::SKEW, stock::Asked};
use crate::{
    checkout::{
        Error,
        audit::unpinned,
        ids::{ProductId, SessionId},
        session::{Session, Status},
        state::{self, Commit, Expect, StockStep, StockTurn},
    },
    stock::{Close, Shelf, Shelves, Stage, StockId, Units, Upper},
};

/// As many products as are read in one go.
const AT_ONCE: usize = 100;

/// Most products that are read in one round where the shop does not tell what changed; the others come next.
const MOST_READ: usize = 200;

/// How far reconciliation has come, in this process.
#[derive(Debug, Default)]
pub(super) struct Poll {
    /// Where the next look for changes begins, by the shop's clock.
    since: Option<DateTime<Utc>>,
    /// Products of which a reading could not be taken, because an order ran: read again at the next pause.
    again: BTreeSet<ProductId>,
}

/// The shop has more or less than what we have sold explains: somebody has bought in the shop, or changed its stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Of what.
    pub stock: StockId,
    /// The least that was expected.
    pub least: i64,
    /// The most that was expected.
    pub most: i64,
    /// What the shop says.
    pub found: i64,
}

/// What a reconciliation came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reconciled {
    /// Products whose stock was read.
    pub read: usize,
    /// Where the shop was not as expected; it is as the shop says now.
    pub drift: Vec<Drift>,
    /// Holds of sessions that are over: given back.
    pub given_back: Vec<(SessionId, Units)>,
    /// Pins of sessions without an open attempt: closed. There should never be any.
    pub closed_pins: Vec<(SessionId, StockId)>,
    /// Open attempts whose units are not pinned. There should never be any.
    pub unpinned: Vec<(SessionId, StockId)>,
}

impl Service {
    /// One reconciliation with the shop; see `exactly-once.md` §7 for what it may and may not do.
    ///
    /// # Errors
    /// When the state or the shop cannot be used. What was done until then holds, and the next one does the rest.
    pub async fn reconcile(&self) -> Result<Reconciled, Error> {
        let mut poll = self.counting.poll.lock().await;
        let mut told = Reconciled::default();
        // Our own house first: it needs no shop.
        Box::pin(self.tidy(&mut told)).await?;
        Box::pin(self.read_changes(&mut poll, &mut told)).await?;
        Ok(told)
    }

    /// Reads what may have changed and notes it.
    async fn read_changes(&self, poll: &mut Poll, told: &mut Reconciled) -> Result<(), Error> {
        let shelves = self.shelves_of_shop().await?;
        let mut wanted = std::mem::take(&mut poll.again);
        let mut until = None;
        if self.parts.store.abilities().opens_books {
            let since = poll.since.unwrap_or_else(|| self.parts.clock.now() - SKEW);
            let changes = match self.parts.store.stock_changes(since).await {
                Ok(changes) => changes,
                Err(error) => {
                    poll.again = wanted;
                    return Err(error.into());
                }
            };
            let known = self.counting.remembered();
            let concerns = |product: &ProductId| {
                known.contains(product) || shelves.contains_key(&StockId::new(product.as_str()))
            };
            if poll.since.is_none() {
                // Whatever happened before this process began is not in the list for sure.
                wanted.extend(shelves.keys().map(|stock| ProductId::new(stock.as_str())));
            }
            wanted.extend(changes.products.into_iter().filter(concerns));
            until = Some(changes.until);
        } else {
            wanted.extend(longest_unread(&shelves));
        }
        let wanted: Vec<ProductId> = wanted.into_iter().collect();
        for (at, products) in wanted.chunks(AT_ONCE).enumerate() {
            if let Err(error) = Box::pin(self.read_again(products, poll, told)).await {
                // The list of changes is asked for again from where it began.
                poll.again.extend(wanted.iter().skip(at * AT_ONCE).cloned());
                return Err(error);
            }
        }
        poll.since = until.or(poll.since);
        Ok(())
    }

    pub(super) async fn read_again(
        &self,
        products: &[ProductId],
        poll: &mut Poll,
        told: &mut Reconciled,
    ) -> Result<(), Error> {
        let (state, shop) = (&self.parts.state, &self.settings.shop);
        let Asked { from, found, readings } = self.ask_stock(products).await?;
        let ids: Vec<StockId> = readings.iter().map(|reading| reading.stock.clone()).collect();
        // After the reading: every order of ours that the shop may have counted is on the shelves by now.
        let before = state.shelves(shop, Some(&ids)).await?;
        state.observe(shop, readings).await?;
        let after = state.shelves(shop, Some(&ids)).await?;
        told.read += found.len();
        let mut drift = BTreeMap::new();
        for one in &found {
            for reading in &one.counted {
                let Upper::Number(number) = reading.upper else { continue };
                if after.get(&reading.stock).and_then(|shelf| shelf.upper).map(|count| count.number)
                    != Some(number)
                {
                    poll.again.insert(one.product.clone());
                }
                let explained =
                    before.get(&reading.stock).and_then(|shelf| shelf.explained(reading.source, from));
                if let Some((least, most)) =
                    explained.filter(|(least, most)| !(*least..=*most).contains(&number))
                {
                    let stock = reading.stock.clone();
                    drift.insert(stock.clone(), Drift { stock, least, most, found: number });
                }
            }
        }
        for one in drift.values() {
            tracing::warn!(shop = %shop, product = %one.stock, expected_least = one.least, expected_most = one.most,
                found = one.found, "the shop's stock is not what our sales explain: it is as the shop says now");
        }
        told.drift.extend(drift.into_values());
        self.counting.remember(found, self.parts.clock.elapsed());
        self.stock_moved_on();
        Ok(())
    }

    /// The shelves of the shop's stock; those of callers are our own.
    async fn shelves_of_shop(&self) -> Result<Shelves, Error> {
        let mut shelves = self.parts.state.shelves(&self.settings.shop, None).await?;
        shelves.retain(|stock, _| !stock.is_of_caller());
        Ok(shelves)
    }

    /// Gives back what nobody holds any more, and holds pins and attempts against each other.
    async fn tidy(&self, told: &mut Reconciled) -> Result<(), Error> {
        let (state, shop) = (&self.parts.state, &self.settings.shop);
        let open = state.open_attempts(shop).await?;
        let shelves = state.shelves(shop, None).await?;
        let mut members: BTreeMap<SessionId, Vec<(StockId, Stage, u32)>> = BTreeMap::new();
        for (stock, shelf) in &shelves {
            for (session, member) in &shelf.members {
                let member_of = members.entry(SessionId::new(session)).or_default();
                // Whoever waits at the gate, or is through it, is at work.
                if member.ticket.is_none() && member.owner.is_none() {
                    member_of.push((stock.clone(), member.stage, member.quantity));
                }
            }
        }
        for (id, held) in members {
            let is = |stages: &[Stage]| held.iter().any(|(_, stage, _)| stages.contains(stage));
            if !is(&[Stage::Soft, Stage::Kept, Stage::Open]) {
                continue;
            }
            let session = state.session(shop, &id).await?;
            let attempt_open = session.as_ref().is_some_and(|session| session.attempt.is_some());
            let is_over = session.as_ref().is_none_or(|session| session.status.is_final());
            if attempt_open {
                continue;
            }
            if is(&[Stage::Open]) {
                Box::pin(self.close_pins(&id, told)).await?;
            }
            let units: Vec<Units> = held
                .into_iter()
                .filter(|(_, stage, _)| is_over && matches!(stage, Stage::Soft | Stage::Kept))
                .map(|(stock, _, quantity)| Units { stock, quantity })
                .collect();
            if !units.is_empty() {
                state.give_back(shop, &id, units.clone()).await?;
                tracing::info!(session = %id, "units of a session that is over were given back");
                told.given_back.extend(units.into_iter().map(|units| (id.clone(), units)));
            }
        }
        for one in open {
            self.miss_pins(&one.session, told).await?;
        }
        Ok(())
    }

    /// Closes the pins of a session that has no open attempt, against its version: one that opens meanwhile keeps its.
    async fn close_pins(&self, id: &SessionId, told: &mut Reconciled) -> Result<(), Error> {
        let (state, shop) = (&self.parts.state, &self.settings.shop);
        let _turn = self.turn(id).await?;
        let session = state.session(shop, id).await?;
        if session.as_ref().is_some_and(|session| session.attempt.is_some()) {
            return Ok(());
        }
        let pinned: Vec<Units> = state
            .shelves(shop, None)
            .await?
            .into_iter()
            .filter_map(|(stock, shelf)| {
                let member = shelf.members.get(id.as_str())?;
                (member.stage == Stage::Open).then_some(Units { stock, quantity: member.quantity })
            })
            .collect();
        if pinned.is_empty() {
            return Ok(());
        }
        let bought = session.as_ref().is_some_and(|session| session.status == Status::Completed);
        let how = if bought { Close::Sold } else { Close::Released };
        let stocks: Vec<StockId> = pinned.iter().map(|units| units.stock.clone()).collect();
        let step = StockStep { session: id.clone(), units: pinned, turn: StockTurn::Close(how) };
        let write = session.map(|mut session| {
            session.tell(self.parts.clock.now(), "units were pinned without an attempt: closed");
            let version = session.version;
            (session, Expect::Version(version))
        });
        let commit = Commit { session: write, stock: Some(step), ..self.blank_commit() };
        match Box::pin(self.write_down(commit)).await {
            Ok(_) => {
                tracing::error!(session = %id, ?stocks, "units were pinned without an open attempt: closed");
                told.closed_pins.extend(stocks.into_iter().map(|stock| (id.clone(), stock)));
                Ok(())
            }
            // Somebody works on it: the next round sees.
            Err(Error::State(state::Error::Moved)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reports an open attempt whose units are not pinned.
    async fn miss_pins(&self, id: &SessionId, told: &mut Reconciled) -> Result<(), Error> {
        let (state, shop) = (&self.parts.state, &self.settings.shop);
        let number = |session: &Session| session.attempt.as_ref().map(|attempt| attempt.number);
        let Some(before) = state.session(shop, id).await? else { return Ok(()) };
        let shelves = state.shelves(shop, None).await?;
        let found = unpinned(&before, &shelves);
        if found.is_empty() {
            return Ok(());
        }
        // The same attempt before and after: it was open while the shelves were read.
        let after = state.session(shop, id).await?;
        if after.as_ref().and_then(number) == number(&before) {
            tracing::error!(session = %id, stocks = ?found, "the units of an open attempt are not pinned");
            told.unpinned.extend(found);
        }
        Ok(())
    }
}

/// What is read where nobody tells what changed: what is in use first, then what was read the longest time ago.
fn longest_unread(shelves: &Shelves) -> HashSet<ProductId> {
    let read_at = |shelf: &Shelf| shelf.upper.or(shelf.lower).map_or(0, |count| count.at);
    let mut all: Vec<(bool, i64, &StockId)> =
        shelves.iter().map(|(stock, shelf)| (shelf.members.is_empty(), read_at(shelf), stock)).collect();
    all.sort_unstable();
    all.into_iter().take(MOST_READ).map(|(_, _, stock)| ProductId::new(stock.as_str())).collect()
}
