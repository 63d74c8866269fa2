//! What a completion does to the shop's stock: holds, the gate, and how an attempt leaves the shelves
//! (`exactly-once.md` §4 steps 4 and 5, §7). The arithmetic is [`crate::stock`]'s, the memory the state's.
//!
//! Which stock ids a product counts under is read from the shop when it is first bought, and kept for a while. What
//! is not known limits nothing but itself: it goes through the gate alone.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Service, reconcile::Poll};
use crate::{
    checkout::{
        Error,
        cart::CartView,
        ids::ProductId,
        problem::{Kind, Place, Problem},
        session::{AttemptEnd, ClosedAttempt, Session, Status},
        state::{Expect, StockStep, StockTurn},
        store::ProductStock,
    },
    stock::{Close, Reading, Reserve, Reserved, Shortage, Source, StockId, Units, Upper},
};

/// How long it is believed what a product counts under.
const BELIEVED: Duration = Duration::from_mins(10);

/// Most products whose stock ids are remembered.
const MOST_REMEMBERED: usize = 20_000;

/// A completion holds its units for so long before its attempt opens.
const RUNNING_HOLD_MS: i64 = 60_000;

/// Who waits at the gate has the stock read again when what was read is older: just before a lower count ends
/// ([`crate::stock::FRESH_MS`]).
const LOWER_LIFE: Duration = Duration::from_secs(4);

/// How long a completion waits at the gate.
const GATE_WAIT: Duration = Duration::from_secs(20);

/// How often a completion that waits asks again, at first and at most. One of this process is woken by the end of another.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(250));

/// From here on a quantity limit of the shop says nothing about its stock.
const NO_LIMIT: u32 = 9_999;

/// What this process knows of the shop's stock.
#[derive(Debug, Default)]
pub(super) struct Counting {
    known: Mutex<HashMap<ProductId, Known>>,
    /// One reading at a time: those that want the same wait for it.
    reading: tokio::sync::Mutex<()>,
    /// An attempt has left a shelf.
    moved_on: Notify,
    /// How far reconciliation has come; one at a time.
    pub(super) poll: tokio::sync::Mutex<Poll>,
}

#[derive(Debug, Clone)]
struct Known {
    counted: Vec<StockId>,
    /// By what the clock has run.
    read_at: Duration,
}

impl Counting {
    /// Products whose stock ids are remembered.
    pub(super) fn remembered(&self) -> HashSet<ProductId> {
        self.known().keys().cloned().collect()
    }

    /// Remembers what products count under, by what the clock had run when that was read.
    pub(super) fn remember(&self, found: Vec<ProductStock>, read_at: Duration) {
        let mut known = self.known();
        if known.len() > MOST_REMEMBERED {
            known.clear();
        }
        for one in found {
            let counted = one.counted.into_iter().map(|reading| reading.stock).collect();
            known.insert(one.product, Known { counted, read_at });
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ProductId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a cart takes from the shelves.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Units by stock id; all lines that share one are summed.
    pub(super) units: Vec<Units>,
    /// What each product counts under.
    counted: HashMap<ProductId, Vec<StockId>>,
}

/// What the shop said of its stock.
pub(super) struct Asked {
    /// Where the reading began.
    pub(super) from: u64,
    pub(super) found: Vec<ProductStock>,
    /// All of them in one list.
    pub(super) readings: Vec<Reading>,
}

/// What the gate says.
pub(super) enum Gate {
    /// The order may be placed; readings from now on begin at this number.
    Open(u64),
    /// The session cannot have what it wants: what to tell, by line.
    Short(Problem),
}

impl Service {
    /// What a cart takes from the shelves.
    pub(super) async fn wanted(&self, cart: &CartView) -> Result<Wanted, Error> {
        let products: Vec<ProductId> = cart.lines.iter().map(|line| line.product.clone()).collect();
        let counted = self.counted(&products).await?;
        let mut units: Vec<Units> = Vec::new();
        for line in &cart.lines {
            for stock in counted.get(&line.product).into_iter().flatten() {
                match units.iter_mut().find(|units| units.stock == *stock) {
                    Some(units) => units.quantity = units.quantity.saturating_add(line.quantity),
                    None => units.push(Units { stock: stock.clone(), quantity: line.quantity }),
                }
            }
        }
        Ok(Wanted { units, counted })
    }

    /// What products count under; read from the shop where that is not known, or not any more.
    async fn counted(&self, products: &[ProductId]) -> Result<HashMap<ProductId, Vec<StockId>>, Error> {
        if !self.unknown_of(products).is_empty() {
            let _one = self.counting.reading.lock().await;
            let unknown = self.unknown_of(products);
            if !unknown.is_empty()
                && let Err(error) = self.read_stock(&unknown).await
            {
                let Error::Store(error) = error else { return Err(error) };
                tracing::warn!(%error, "the shop's stock could not be read: its products are ordered one at a time");
            }
        }
        let known = self.counting.known();
        let of = |product: &ProductId| {
            let alone = || vec![StockId::new(product.as_str())];
            (product.clone(), known.get(product).map_or_else(alone, |known| known.counted.clone()))
        };
        Ok(products.iter().map(of).collect())
    }

    fn unknown_of(&self, products: &[ProductId]) -> Vec<ProductId> {
        let now = self.parts.clock.elapsed();
        let known = self.counting.known();
        let is_known = |product: &ProductId| {
            known.get(product).is_some_and(|known| now.saturating_sub(known.read_at) < BELIEVED)
        };
        products.iter().filter(|product| !is_known(product)).cloned().collect()
    }

    /// Reads the stock of products from the shop and notes it for all processes (1 call).
    pub(super) async fn read_stock(&self, products: &[ProductId]) -> Result<(), Error> {
        let Asked { found, readings, .. } = self.ask_stock(products).await?;
        if !readings.is_empty() {
            self.parts.state.observe(&self.settings.shop, readings).await?;
        }
        self.counting.remember(found, self.parts.clock.elapsed());
        Ok(())
    }

    /// Asks the shop for the stock of products (1 call); nothing is noted.
    pub(super) async fn ask_stock(&self, products: &[ProductId]) -> Result<Asked, Error> {
        // The mark is taken before the reading begins: what ends in between is not taken for known to the shop.
        let from = self.parts.state.observe(&self.settings.shop, Vec::new()).await?;
        let found = self.parts.store.stock(products, from).await?;
        let readings = found.iter().flat_map(|one| one.counted.iter().cloned()).collect();
        Ok(Asked { from, found, readings })
    }

    /// Holds what a session wants, all or nothing, and waits until its order may be placed beside what runs.
    pub(super) async fn pass_gate(&self, session: &Session, wanted: &Wanted) -> Result<Gate, Error> {
        if wanted.units.is_empty() {
            return Ok(Gate::Open(0));
        }
        let wish = Reserve {
            session: session.id.to_string(),
            units: wanted.units.clone(),
            hold_ms: RUNNING_HOLD_MS,
            enter: true,
        };
        let deadline = tokio::time::Instant::now() + GATE_WAIT;
        let mut pause = ASK_AGAIN.0;
        let mut doubted = false;
        let mut asked_at: Option<tokio::time::Instant> = None;
        // Not again at once, whatever the shop says.
        let may_read =
            |last: Option<tokio::time::Instant>| last.is_none_or(|last| last.elapsed() >= LOWER_LIFE);
        loop {
            // Asked for before the question: what ends in between is not missed.
            let moved_on = self.counting.moved_on.notified();
            match self.parts.state.reserve(&self.settings.shop, wish.clone()).await? {
                Reserved::Admitted { mark } => return Ok(Gate::Open(mark)),
                // What was read a while ago may be over: a no is right, or is asked for again.
                Reserved::Refused { .. }
                    if !doubted && self.read_if_older(wanted, self.settings.stock_doubt).await =>
                {
                    doubted = true;
                }
                Reserved::Refused { stock, reason } => {
                    return Ok(Gate::Short(short(session, wanted, &stock, reason)));
                }
                Reserved::Full => return Err(Error::Busy),
                // What is left may cover it beside those that run, if it were known: an order whose outcome is looked
                // for keeps nobody back who finds enough.
                Reserved::Waiting { .. }
                    if may_read(asked_at) && self.read_if_older(wanted, LOWER_LIFE).await =>
                {
                    asked_at = Some(tokio::time::Instant::now());
                }
                Reserved::Waiting { .. } if tokio::time::Instant::now() >= deadline => {
                    self.give_back(session, wanted).await;
                    return Err(Error::Busy);
                }
                Reserved::Waiting { ahead } => {
                    tokio::select! {
                        () = moved_on => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                    let patient = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
                    pause = (pause * 2).min(ASK_AGAIN.0.saturating_mul(patient)).min(ASK_AGAIN.1);
                }
            }
        }
    }

    /// Reads the stock of what is wanted again, if that was long ago; whether somebody has, since it was asked for.
    async fn read_if_older(&self, wanted: &Wanted, age: Duration) -> bool {
        let asked_at = self.parts.clock.elapsed();
        let products: Vec<ProductId> = wanted.counted.keys().cloned().collect();
        let read_since = |moment: Duration| {
            let known = self.counting.known();
            products.iter().all(|product| known.get(product).is_some_and(|known| known.read_at >= moment))
        };
        if read_since(asked_at.saturating_sub(age)) {
            return false;
        }
        let _one = self.counting.reading.lock().await;
        if read_since(asked_at) {
            return true;
        }
        match self.read_stock(&products).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "the shop's stock could not be read again");
                false
            }
        }
    }

    /// Gives back what a completion held that places no order. Where that fails, it lapses.
    pub(super) async fn give_back(&self, session: &Session, wanted: &Wanted) {
        if wanted.units.is_empty() {
            return;
        }
        let given = self.parts.state.give_back(&self.settings.shop, &session.id, wanted.units.clone()).await;
        if let Err(error) = given {
            tracing::warn!(%error, session = %session.id, "units that were held could not be given back: they lapse");
        }
        self.counting.moved_on.notify_waiters();
    }

    /// The shop refused an order for its stock: what it says now is read again, so that whoever comes next is told
    /// without a call. While another order of the same units runs, a refusal proves nothing more.
    pub(super) async fn stock_was_refused(&self, session: &Session, cart: &CartView) {
        let products: Vec<ProductId> = cart.lines.iter().map(|line| line.product.clone()).collect();
        if let Err(error) = self.note_refusal(session, cart).await {
            tracing::warn!(%error, session = %session.id, "a refusal could not be noted");
        }
        if let Err(error) = self.read_stock(&products).await {
            tracing::warn!(%error, session = %session.id, "the stock could not be read after a refusal");
        }
    }

    async fn note_refusal(&self, session: &Session, cart: &CartView) -> Result<(), Error> {
        let wanted = self.wanted(cart).await?;
        // Which of several is short, the shop does not say.
        let [line] = cart.lines.as_slice() else { return Ok(()) };
        let Some(stock) = wanted.counted.get(&line.product).and_then(|counted| counted.first()) else {
            return Ok(());
        };
        let (state, shop) = (&self.parts.state, &self.settings.shop);
        let shelves = state.shelves(shop, Some(std::slice::from_ref(stock))).await?;
        if shelves.get(stock).is_some_and(|shelf| shelf.has_open(session.id.as_str())) {
            return Ok(());
        }
        let from = state.observe(shop, Vec::new()).await?;
        let upper = Upper::Free(i64::from(line.quantity) - 1);
        let reading = Reading {
            stock: stock.clone(),
            upper,
            lower: None,
            takes_off_pending: true,
            source: Source::Shop,
            from,
        };
        state.observe(shop, vec![reading]).await?;
        Ok(())
    }

    /// What the end of an attempt, or of a session, means for its units; told with the commit that writes it.
    pub(super) fn leaving(
        &self,
        write: Option<(Session, Expect)>,
    ) -> (Option<(Session, Expect)>, Option<StockStep>) {
        let Some((mut session, expect)) = write else { return (None, None) };
        let closed = |number| session.closed_attempts.iter().find(move |closed| closed.number == number);
        let (units, turn) = match (expect, &session.attempt) {
            (Expect::Attempt(number), None) => match closed(number) {
                Some(closed) => {
                    (closed.units.clone(), StockTurn::Close(closed.leaves(self.settings.retry_hold)))
                }
                None => (Vec::new(), StockTurn::Release),
            },
            // Whatever it was, no POST of it runs any more.
            (Expect::Attempt(_), Some(attempt)) if attempt.is_over => {
                (attempt.units.clone(), StockTurn::Close(Close::Kept))
            }
            (Expect::Version(_), None) if session.status == Status::Completed => {
                (std::mem::take(&mut session.held), StockTurn::Close(Close::Sold))
            }
            (Expect::Version(_), None) if session.status.is_final() => {
                (std::mem::take(&mut session.held), StockTurn::Release)
            }
            (Expect::New | Expect::Version(_) | Expect::Attempt(_), _) => (Vec::new(), StockTurn::Release),
        };
        let step = StockStep { session: session.id.clone(), units, turn };
        (Some((session, expect)), Some(step).filter(|step| !step.units.is_empty()))
    }

    /// Somebody who waits at the gate may come next.
    pub(super) fn stock_moved_on(&self) {
        self.counting.moved_on.notify_waiters();
    }
}

impl ClosedAttempt {
    /// How it leaves the shelves.
    fn leaves(&self, retry_hold: Duration) -> Close {
        match self.end {
            AttemptEnd::Placed => Close::Sold,
            AttemptEnd::Escalated => Close::Kept,
            AttemptEnd::Declined => {
                let hold_ms = i64::try_from(retry_hold.as_millis()).unwrap_or(i64::MAX / 2);
                Close::Declined { hold_ms, shop_keeps: self.shop_keeps_units }
            }
            AttemptEnd::Refused | AttemptEnd::Fenced => Close::Released,
        }
    }
}

impl Wanted {
    /// What the last look at the cart says of the shelves.
    pub(super) fn readings(&self, cart: &CartView, from: u64) -> Vec<Reading> {
        let mut readings: Vec<Reading> = Vec::new();
        for line in &cart.lines {
            let counted = self.counted.get(&line.product).map(Vec::as_slice).unwrap_or_default();
            for (at, stock) in counted.iter().enumerate() {
                // What is left is told of the product; whether of its parent too, only where that is all it counts under.
                let upper = line
                    .left
                    .filter(|_| at == 0)
                    .map_or(Upper::Untold, |left| Upper::Number(i64::from(left)));
                let maximum = line.limits.maximum;
                let lower = (maximum < NO_LIMIT).then_some(i64::from(maximum));
                match readings.iter_mut().find(|reading| reading.stock == *stock) {
                    Some(known) => known.lower = [known.lower, lower].into_iter().flatten().min(),
                    None => readings.push(Reading {
                        stock: stock.clone(),
                        upper,
                        lower,
                        takes_off_pending: true,
                        source: Source::Shop,
                        from,
                    }),
                }
            }
        }
        readings
    }
}

/// What the caller is told of a line that is short.
fn short(session: &Session, wanted: &Wanted, stock: &StockId, reason: Shortage) -> Problem {
    let counts =
        |product: &ProductId| wanted.counted.get(product).is_some_and(|counted| counted.contains(stock));
    let line = session.lines.iter().find(|line| counts(&line.product));
    let minimum = session.cart.iter().flat_map(|cart| &cart.view.lines).find(|line| counts(&line.product));
    let reason = match reason {
        // What is left is less than anybody may buy.
        Shortage::Left(left) if minimum.is_some_and(|line| left < line.limits.minimum) => Shortage::SoldOut,
        other => other,
    };
    let item = line.map(|line| line.item.clone()).unwrap_or_default();
    let place = line.map_or(Place::Lines, |line| Place::Line(line.id.clone()));
    Problem::new(Kind::Short { item, reason }, place)
}
