//! The model of a WooCommerce shop: what makes exactly-once hard (`exactly-once.md` §2), and nothing else.
//!
//! A call is work of the shop's own: it goes on when the caller is gone (E1). Every call that writes loads the
//! whole cart row at its start and writes it back at its end (E4, E5). A `POST` takes up the order that the row
//! remembers (E6), whose unpaid predecessors hold stock and coupons (E7, E8) and may be paid later (E9).
//!
//! It watches its callers, too: [`Shop::violations`] lists what none of them may ever do.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::Timelike as _;
use tillgate::{
    checkout::store::{
        Error, FoundOrder, FoundState, OrderSighting, PlaceOrder, PlacedOrder, Placement, RefusedOrder,
    },
    clock::Clock as _,
};
use tokio::time::Instant;

use super::{
    clock::SimClock,
    schedule::{SHOP, Scheduler, Who},
    state::Memory,
};

/// What becomes of one `POST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Paid, answered.
    Paid,
    /// Declined with an error: 400, no order id in it.
    DeclinedNoisily,
    /// Declined without one: the order stays unpaid, its id is in the answer.
    DeclinedSilently,
    /// The buyer has to go on at a page of the bank.
    Challenge,
    /// Paid, then the shop dies: 500, cart full.
    FatalAfterPayment,
    /// Somebody else has bought the last units meanwhile.
    StockGone,
    /// The one-use coupon has been used up meanwhile.
    CouponGone,
    /// Paid, but the answer is lost.
    AnswerLost,
    /// The request never arrives, and the caller cannot know.
    RequestLost,
    /// The shop's limiter: surely not executed.
    Limited,
    /// The payment takes longer than anybody waits.
    Slow,
    /// It waits for a free worker longer than anybody waits.
    Queued,
    /// It waits for a free worker, and is served just before its caller gives up.
    QueuedShortly,
    /// Paid, but fewer units than asked for are in the order, without a word.
    Shrunk,
    /// Declined with an error, and late: after the caller has given up.
    DeclinedLate,
    /// The shop dies before the payment begins: 500, the order stays a draft.
    FatalBeforePayment,
}

impl Fate {
    pub const ALL: [Self; 16] = [
        Self::Paid,
        Self::DeclinedNoisily,
        Self::DeclinedSilently,
        Self::Challenge,
        Self::FatalAfterPayment,
        Self::StockGone,
        Self::CouponGone,
        Self::AnswerLost,
        Self::RequestLost,
        Self::Limited,
        Self::Slow,
        Self::Queued,
        Self::QueuedShortly,
        Self::Shrunk,
        Self::DeclinedLate,
        Self::FatalBeforePayment,
    ];

    fn queue(self) -> Duration {
        match self {
            Self::Queued => Duration::from_secs(95),
            Self::QueuedShortly => Duration::from_secs(88),
            _ => Duration::from_millis(20),
        }
    }

    fn payment(self) -> Duration {
        match self {
            Self::Slow | Self::DeclinedLate => Duration::from_secs(100),
            Self::QueuedShortly => Duration::from_secs(4),
            _ => Duration::from_millis(700),
        }
    }

    const fn declines(self) -> bool {
        matches!(self, Self::DeclinedNoisily | Self::DeclinedSilently | Self::Challenge | Self::DeclinedLate)
    }
}

/// A cart row.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub lines: Vec<(String, u32)>,
    pub codes: Vec<String>,
    pub ships: bool,
    pub rate: Option<String>,
    /// The unpaid order that the next `POST` takes up.
    pub awaiting: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Cart {
    pub row: Row,
    /// Calls that run on it.
    running: Vec<Kind>,
    /// When it was last emptied.
    pub emptied: Option<Instant>,
    pub answers: u32,
}

/// An order.
#[derive(Debug, Clone)]
pub struct Order {
    pub id: u64,
    pub corr: String,
    pub email: String,
    pub state: FoundState,
    pub lines: Vec<(String, u32)>,
    pub codes: Vec<String>,
    pub total: i64,
    pub made: Instant,
    pub modified: Instant,
    pub traces: bool,
    pub reduced: bool,
}

impl Order {
    pub fn units(&self) -> u32 {
        self.lines.iter().map(|(_, quantity)| quantity).sum()
    }
}

/// Which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Open,
    Change,
    Check,
    Read,
    Place,
    Empty,
}

pub struct Books {
    pub carts: BTreeMap<String, Cart>,
    pub orders: BTreeMap<u64, Order>,
    pub stock: BTreeMap<String, i64>,
    pub coupons_used: BTreeSet<String>,
    fates: VecDeque<Fate>,
    violations: Vec<String>,
    /// Whether somebody else has bought here: what is left is not ours alone to keep above nothing.
    pub sold_elsewhere: bool,
    pub posts: usize,
    made: u64,
}

/// The shop. Calls of the port stand in `port`.
pub struct Shop {
    books: Mutex<Books>,
    pub memory: Arc<Memory>,
    pub scheduler: Arc<Scheduler>,
    pub clock: SimClock,
    start: Instant,
    /// How long a status change is not seen by those who look for orders.
    pub lag: Duration,
    /// How long after the payment stock is taken.
    pub gap: Duration,
    /// A mutation: the shop is told to empty a cart, says so, and leaves it as it is.
    pub swallows_fences: bool,
}

/// How long an unpaid order keeps its units.
const HOLD: Duration = Duration::from_hours(1);

pub const PRICES: [(&str, &str, i64); 3] = [("rose", "11", 1000), ("vase", "12", 2500), ("sample", "13", 0)];
/// Takes off 3.00, once.
pub const ONCE: &str = "once";
pub const RATES: [(&str, i64); 2] = [("flat", 500), ("express", 1200)];

impl Shop {
    pub fn new(memory: Arc<Memory>, scheduler: Arc<Scheduler>, start: Instant) -> Self {
        let stock = PRICES.iter().map(|(_, product, _)| ((*product).to_owned(), 100)).collect();
        let books = Books {
            carts: BTreeMap::new(),
            orders: BTreeMap::new(),
            stock,
            coupons_used: BTreeSet::new(),
            fates: VecDeque::new(),
            violations: Vec::new(),
            sold_elsewhere: false,
            posts: 0,
            made: 100,
        };
        Self {
            books: Mutex::new(books),
            memory,
            scheduler,
            clock: SimClock::new(start),
            start,
            lag: Duration::from_millis(200),
            gap: Duration::from_millis(80),
            swallows_fences: false,
        }
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of the next `POST`s; those after them are paid.
    pub fn fates(&self, fates: &[Fate]) {
        self.books().fates = fates.iter().copied().collect();
    }

    pub fn orders(&self) -> Vec<Order> {
        self.books().orders.values().cloned().collect()
    }

    pub fn violations(&self) -> Vec<String> {
        self.books().violations.clone()
    }

    /// The buyer pays an order that is unpaid, at the shop.
    pub fn buyer_pays(&self) -> bool {
        let mut books = self.books();
        let unpaid = books.orders.values_mut().find(|order| order.state == FoundState::Pending);
        let Some(order) = unpaid else { return false };
        order.state = FoundState::Placed;
        order.modified = Instant::now();
        let lines = order.lines.clone();
        order.reduced = true;
        books.reduce(&lines);
        true
    }

    /// The merchant cancels what is unpaid; a payment that runs revives it (E9).
    pub fn merchant_cancels(&self) {
        for order in self.books().orders.values_mut().filter(|order| order.state == FoundState::Pending) {
            order.state = FoundState::Gone;
            order.modified = Instant::now();
        }
    }

    fn at(&self, at: Instant) -> chrono::DateTime<chrono::Utc> {
        self.clock.now() - chrono::Duration::from_std(self.start.elapsed()).unwrap()
            + chrono::Duration::from_std(at - self.start).unwrap()
    }

    /// The shop's own time, in whole seconds as its `Date` header tells it.
    pub fn time(&self) -> chrono::DateTime<chrono::Utc> {
        self.clock.now().with_nanosecond(0).unwrap()
    }

    /// A call begins. Two at a time on one cart lose what the other wrote: only the fence may do that, and who
    /// looks at a fenced cart.
    pub fn begin(&self, cart: &str, kind: Kind, process: usize) {
        let placing = self.memory.placing_on(cart);
        let mut books = self.books();
        let Some(known) = books.carts.get_mut(cart) else { return };
        let harmless = kind == Kind::Empty || (kind == Kind::Read && known.emptied.is_some());
        let overlaps = known.running.iter().any(|running| *running != Kind::Empty);
        known.running.push(kind);
        let mut wrong = None;
        if overlaps && !harmless {
            wrong = Some(format!("{kind:?} of process {process} overlaps another call on cart {cart}"));
        }
        // From *placing* until its end no cart call but the one POST, what its owner reads after a refusal, and
        // the settler's.
        let owns = placing == u64::try_from(process).ok();
        if let Some(owner) = placing
            && !harmless
            && !(owns && matches!(kind, Kind::Place | Kind::Read))
            && kind != Kind::Place
        {
            wrong = Some(format!("{kind:?} of process {process} on cart {cart} while {owner} places"));
        }
        books.violations.extend(wrong);
    }

    pub fn end(&self, cart: &str, kind: Kind) {
        let mut books = self.books();
        let Some(known) = books.carts.get_mut(cart) else { return };
        if let Some(at) = known.running.iter().position(|running| *running == kind) {
            known.running.remove(at);
        }
    }

    /// The one `POST`, inside the shop. `None`: it never arrived.
    pub async fn place(
        self: Arc<Self>,
        cart: String,
        email: String,
        order: PlaceOrder,
        process: usize,
    ) -> Result<Placement, Error> {
        let placing = self.memory.send(&order.correlation_id, process);
        let fate = {
            let mut books = self.books();
            books.posts += 1;
            if placing.is_none() {
                let text =
                    format!("process {process} sends a POST on cart {cart} without a placing of its own");
                books.violations.push(text);
            }
            books.fates.pop_front().unwrap_or(Fate::Paid)
        };
        self.scheduler.note(format!("s: POST of {process} on {cart}: {fate:?}"));
        match fate {
            Fate::Limited => return Err(Error::Limited { retry_after_secs: Some(1) }),
            Fate::RequestLost => return Err(Error::Broken("the connection broke".into())),
            _ => {}
        }
        self.begin(&cart, Kind::Place, process);
        let placed_at = placing.map(|placing| placing.at);
        let done = self.post(&cart, email, &order, fate, placed_at).await;
        self.end(&cart, Kind::Place);
        match fate {
            Fate::AnswerLost => Err(Error::Broken("the connection broke".into())),
            Fate::FatalAfterPayment | Fate::FatalBeforePayment if matches!(done, Placement::Placed(_)) => {
                Err(Error::Failed { status: 500, code: None })
            }
            _ => Ok(done),
        }
    }

    async fn post(
        &self,
        cart: &str,
        email: String,
        post: &PlaceOrder,
        fate: Fate,
        placed_at: Option<Instant>,
    ) -> Placement {
        let [queued, loaded, paid, done] = SHOP;
        self.scheduler.at(Who::Shop, queued).await;
        tokio::time::sleep(fate.queue()).await;
        let (row, emptied) = {
            let books = self.books();
            books.carts.get(cart).map(|cart| (cart.row.clone(), cart.emptied)).unwrap_or_default()
        };
        self.scheduler.at(Who::Shop, loaded).await;
        if row.lines.is_empty() {
            return Placement::Refused(RefusedOrder::EmptyCart);
        }
        let taken = self.books().take_up(row.clone(), email, post, fate);
        let id = match taken {
            Ok(id) => id,
            Err((reason, row)) => {
                self.write(cart, row);
                return Placement::Refused(reason);
            }
        };
        if fate == Fate::FatalBeforePayment {
            self.write(cart, Row { awaiting: Some(id), ..row });
            return Placement::Placed(placed(id, false));
        }
        if emptied.is_some() && emptied > placed_at {
            let text = format!("a POST placed before the fence of cart {cart} was let through after it");
            self.books().violations.push(text);
        }
        tokio::time::sleep(fate.payment()).await;
        self.scheduler.at(Who::Shop, paid).await;
        if fate.declines() {
            let placement = self.books().decline(id, fate);
            self.scheduler.at(Who::Shop, done).await;
            self.write(cart, Row { awaiting: Some(id), ..row });
            return placement;
        }
        let lines = self.books().pay(id);
        tokio::time::sleep(self.gap).await;
        {
            let mut books = self.books();
            // Once, even where the buyer has paid it, too.
            let known = books.orders.get_mut(&id);
            if known.is_some_and(|order| !std::mem::replace(&mut order.reduced, true)) {
                books.reduce(&lines);
            }
        }
        self.scheduler.at(Who::Shop, done).await;
        let free = post.method.is_none();
        let fatal = fate == Fate::FatalAfterPayment;
        let filled = free || fatal;
        let left = if filled { Row { awaiting: None, ..row } } else { Row::default() };
        self.write(cart, left);
        Placement::Placed(PlacedOrder { cart_filled: filled, ..placed(id, true) })
    }

    /// The end of a call: the whole row is written, whatever happened to it meanwhile.
    pub fn write(&self, cart: &str, row: Row) {
        if let Some(known) = self.books().carts.get_mut(cart) {
            known.row = row;
        }
    }

    /// Orders with a correlation id, as they were a moment ago.
    pub fn find(&self, corr: &str, email: &str, thorough: bool) -> Vec<FoundOrder> {
        let (books, now) = (self.books(), Instant::now());
        let seen = |order: &&Order| {
            // Lists leave drafts out unless they are named.
            let listed = thorough || order.state != FoundState::Draft;
            order.corr == corr && order.email == email && now - order.made >= self.lag && listed
        };
        let found = books.orders.values().filter(seen).map(|order| {
            let late = order.state == FoundState::Placed && now - order.modified < self.lag;
            FoundOrder {
                order: placed(order.id, order.state == FoundState::Placed),
                state: if late { FoundState::Pending } else { order.state },
                total: order.total,
                traces: order.traces,
                modified_at: Some(self.at(order.modified)),
                stock_taken: false,
            }
        });
        found.collect()
    }

    /// Every order made since then.
    pub fn sightings(&self, since: chrono::DateTime<chrono::Utc>) -> Vec<OrderSighting> {
        let books = self.books();
        let made = books.orders.values().filter(|order| self.at(order.made) >= since);
        made.map(|order| OrderSighting {
            shop_order: order.id.to_string(),
            correlation_id: order.corr.clone(),
            state: order.state,
            created_at: self.at(order.made),
        })
        .collect()
    }
}

/// How the shop names an order.
pub fn placed(id: u64, paid: bool) -> PlacedOrder {
    PlacedOrder {
        shop_order: id.to_string(),
        number: id.to_string(),
        key: format!("wc_order_{id}"),
        paid,
        cart_filled: !paid,
        permalink_url: None,
    }
}

pub fn total(lines: &[(String, u32)], codes: &[String], rate: Option<&str>) -> i64 {
    let items: i64 = lines.iter().map(|(product, quantity)| price(product) * i64::from(*quantity)).sum();
    if items == 0 {
        return 0;
    }
    let rate = rate.unwrap_or(RATES[0].0);
    let shipping = RATES.iter().find(|(id, _)| *id == rate).map_or(0, |(_, price)| *price);
    let off = if codes.iter().any(|code| code == ONCE) { 300 } else { 0 };
    items - off + shipping
}

pub fn price(product: &str) -> i64 {
    PRICES.iter().find(|(_, id, _)| *id == product).map_or(0, |(_, _, price)| *price)
}

impl Books {
    /// Units that can be had: others' unpaid orders keep theirs.
    pub fn free(&self, product: &str, but: Option<u64>) -> i64 {
        let held: u32 = self
            .orders
            .values()
            .filter(|order| order.state == FoundState::Pending && Some(order.id) != but)
            .filter(|order| order.modified.elapsed() < HOLD)
            .flat_map(|order| &order.lines)
            .filter(|(of, _)| of == product)
            .map(|(_, quantity)| quantity)
            .sum();
        self.stock.get(product).copied().unwrap_or_default() - i64::from(held)
    }

    fn reduce(&mut self, lines: &[(String, u32)]) {
        for (product, quantity) in lines {
            *self.stock.entry(product.clone()).or_default() -= i64::from(*quantity);
        }
    }

    /// The order that a `POST` is about: the one that the row remembers, or a new one.
    fn take_up(
        &mut self,
        row: Row,
        email: String,
        post: &PlaceOrder,
        fate: Fate,
    ) -> Result<u64, (RefusedOrder, Row)> {
        let now = Instant::now();
        if fate == Fate::StockGone {
            self.sold_elsewhere = true;
            for (product, _) in &row.lines {
                self.stock.insert(product.clone(), 0);
            }
        }
        if fate == Fate::CouponGone {
            self.coupons_used.insert(ONCE.into());
        }
        // Its own unpaid order keeps a one-use coupon from it, too (E8).
        let keeps =
            |order: &Order| order.state == FoundState::Pending && order.codes.iter().any(|c| c == ONCE);
        let taken = self.coupons_used.contains(ONCE) || self.orders.values().any(keeps);
        if taken && row.codes.iter().any(|code| code == ONCE) {
            return Err((RefusedOrder::Coupon, Row { codes: Vec::new(), ..row }));
        }
        let again = row.awaiting.filter(|id| {
            self.orders.get(id).is_some_and(|order| {
                matches!(order.state, FoundState::Pending | FoundState::Failed | FoundState::Draft)
            })
        });
        let same_second = again.and_then(|id| self.orders.get(&id));
        if same_second.is_some_and(|order| now - order.modified < Duration::from_secs(1)) {
            return Err((RefusedOrder::Stock, row));
        }
        if row.lines.iter().any(|(product, wanted)| self.free(product, again) < i64::from(*wanted)) {
            return Err((RefusedOrder::Stock, row));
        }
        let total = self::total(&row.lines, &row.codes, row.rate.as_deref());
        if total > post.expected_total {
            return Err((RefusedOrder::Total, row));
        }
        let mut lines = row.lines.clone();
        if fate == Fate::Shrunk {
            for (_, quantity) in &mut lines {
                *quantity = (*quantity).saturating_sub(1).max(1);
            }
        }
        let total = self::total(&lines, &row.codes, row.rate.as_deref());
        if let Some(order) = again.and_then(|id| self.orders.get_mut(&id)) {
            // The first correlation id stays (E6).
            order.state = FoundState::Pending;
            order.modified = now;
            order.lines = lines;
            order.codes = row.codes;
            order.total = total;
            return Ok(order.id);
        }
        self.made += 1;
        let order = Order {
            id: self.made,
            corr: post.correlation_id.clone(),
            email,
            state: if fate == Fate::FatalBeforePayment { FoundState::Draft } else { FoundState::Pending },
            lines,
            codes: row.codes,
            total,
            made: now,
            modified: now,
            traces: false,
            reduced: false,
        };
        self.orders.insert(self.made, order);
        Ok(self.made)
    }

    fn decline(&mut self, id: u64, fate: Fate) -> Placement {
        if let Some(order) = self.orders.get_mut(&id) {
            order.modified = Instant::now();
            // One that the buyer has paid meanwhile stays paid.
            if order.state == FoundState::Pending
                && matches!(fate, Fate::DeclinedNoisily | Fate::DeclinedLate)
            {
                order.state = FoundState::Failed;
            }
        }
        match fate {
            Fate::Challenge => Placement::Redirect {
                order: placed(id, false),
                url: Some("https://bank.example/challenge".into()),
            },
            Fate::DeclinedSilently => Placement::Declined { shop_order: Some(id.to_string()) },
            _ => Placement::Declined { shop_order: None },
        }
    }

    /// The payment is through: whatever happened to the order meanwhile, it counts now (E9).
    fn pay(&mut self, id: u64) -> Vec<(String, u32)> {
        let Some(order) = self.orders.get_mut(&id) else { return Vec::new() };
        order.state = FoundState::Placed;
        order.modified = Instant::now();
        let (lines, codes) = (order.lines.clone(), order.codes.clone());
        self.coupons_used.extend(codes);
        lines
    }

    /// A new cart; its identity.
    pub fn new_cart(&mut self) -> String {
        self.made += 1;
        let identity = format!("t_{}", self.made);
        self.carts.insert(identity.clone(), Cart::default());
        identity
    }
}
