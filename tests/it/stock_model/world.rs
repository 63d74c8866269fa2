//! Sessions of several processes that buy at the model shop, one atomic step at a time.

use std::collections::{BTreeMap, BTreeSet};

use tillgate::stock::{self, Close, Count, Moment, Reading, Reserve, Reserved, Shelves, Stage, Units};

use super::{
    checks::{self, Checked},
    shop::{Look, Order, Shop, stock_id},
};

/// How long a completion holds its units, and how long they stay after a decline.
const HOLD: i64 = 60_000;
const RETRY: i64 = 600_000;

/// A reading that takes longer is given up.
const PATIENCE: i64 = 30_000;

/// Rules that can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, switched on its own")]
pub(super) struct Mutation {
    pub(super) no_pin: bool,
    pub(super) no_gate: bool,
    pub(super) counted_release: bool,
    pub(super) maximum_as_upper: bool,
}

/// How far a session has got.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// It wants its units; whether it was told to wait.
    Wanting,
    Admitted {
        mark: u64,
    },
    /// The shop was looked at; what it said goes into the next step.
    Checked {
        mark: u64,
    },
    /// Its attempt is open, its `POST` not sent.
    Open {
        from: u64,
    },
    /// The shop refused it for a product.
    Refused {
        product: usize,
    },
    /// Its process died before the `POST` was sent.
    Lost,
    /// The payment runs.
    Paying,
    /// Paid; waits for the answer, which comes when the units are counted down.
    Paid,
    /// Declined, and whether in silence.
    Declined {
        silent: bool,
    },
    /// The order waits to be paid.
    Kept,
    Done,
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) basket: Vec<(usize, i64)>,
    pub(super) phase: Phase,
    pub(super) process: usize,
    pub(super) until: i64,
    /// Its hold is over, but the shop keeps the units for its unpaid order: until that ends nobody here knows of it.
    pub(super) forgotten: bool,
    looks: Vec<Look>,
    tries: u8,
}

/// One step of a case: who takes it, its chance, and how much time passes before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) who: u8,
    pub(super) coin: u8,
    pub(super) wait: u16,
}

/// What a case is made of.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) hold: bool,
    pub(super) people: bool,
    pub(super) physical: Vec<i64>,
    pub(super) baskets: Vec<Vec<(usize, i64)>>,
    pub(super) steps: Vec<Step>,
}

type Off = (BTreeSet<usize>, i64);

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now: i64,
    pub(super) shelves: Shelves,
    pub(super) shop: Shop,
    pub(super) sessions: Vec<Session>,
    pub(super) people: bool,
    sequence: u64,
    alive: [usize; 2],
    started: usize,
    polls: [Option<(u64, Vec<Look>)>; 2],
    polled: [i64; 2],
    /// Whose units are off a number in truth, and when it was read: by product, the end of the reading, and which.
    truths: BTreeMap<(usize, i64, bool), Off>,
    mutation: Mutation,
}

pub(super) fn name(session: usize) -> String {
    format!("s{session}")
}

impl World {
    pub(super) fn new(case: &Case, mutation: Mutation) -> Self {
        let session = |(at, basket): (usize, &Vec<(usize, i64)>)| Session {
            basket: basket.clone(),
            phase: Phase::Wanting,
            process: at % 2,
            until: 0,
            forgotten: false,
            looks: Vec::new(),
            tries: 0,
        };
        Self {
            now: 1_000_000,
            shelves: Shelves::new(),
            shop: Shop {
                physical: case.physical.clone(),
                hold: case.hold,
                orders: vec![None; case.baskets.len()],
                raised_at: vec![0; case.physical.len()],
                maximum_as_upper: mutation.maximum_as_upper,
            },
            sessions: case.baskets.iter().enumerate().map(session).collect(),
            people: case.people,
            sequence: 0,
            alive: [0, 1],
            started: 2,
            polls: [None, None],
            polled: [0; 2],
            truths: BTreeMap::new(),
            mutation,
        }
    }

    pub(super) fn lives(&self, owner: &str) -> bool {
        self.alive.iter().any(|alive| owner == alive.to_string())
    }

    pub(super) fn wants(&self, session: usize, product: usize) -> i64 {
        self.sessions[session].basket.iter().filter(|(of, _)| *of == product).map(|(_, units)| units).sum()
    }

    /// Whether a `POST` of a session may run, as far as anybody knows.
    pub(super) fn is_open(&self, session: usize) -> bool {
        !matches!(
            self.sessions[session].phase,
            Phase::Wanting | Phase::Admitted { .. } | Phase::Checked { .. } | Phase::Kept | Phase::Done
        )
    }

    /// Whose units a count is without in truth, and when it was read.
    pub(super) fn off(&self, product: usize, count: &Count, upper: bool) -> Option<Off> {
        self.truths.get(&(product, count.at, upper)).cloned()
    }

    fn stock<T>(&mut self, process: usize, step: impl FnOnce(&mut Shelves, &mut Moment<'_>) -> T) -> T {
        let alive = self.alive;
        let lives = |owner: &str| alive.iter().any(|alive| owner == alive.to_string());
        let owner = process.to_string();
        let mut moment = Moment { now: self.now, owner: &owner, lives: &lives, sequence: &mut self.sequence };
        step(&mut self.shelves, &mut moment)
    }

    fn units(&self, session: usize) -> Vec<Units> {
        let basket = &self.sessions[session].basket;
        let units = |(product, units): &(usize, i64)| Units {
            stock: stock_id(*product),
            quantity: u32::try_from(*units).unwrap(),
        };
        basket.iter().map(units).collect()
    }

    fn note(&mut self, looks: &[Look]) -> Vec<Reading> {
        for look in looks {
            let upper = (look.product, self.now, true);
            self.truths.insert(upper, (look.off_upper.clone(), look.taken_at));
            self.truths.insert((look.product, self.now, false), (look.off_lower.clone(), look.taken_at));
        }
        looks.iter().map(|look| look.reading.clone()).collect()
    }

    /// Time passes, somebody takes a step, and all is looked at.
    pub(super) fn step(&mut self, step: Step) -> Checked {
        self.now += i64::from(step.wait) + 1;
        self.shop.tick(self.now);
        self.forget();
        let sessions = self.sessions.len();
        match step.who {
            0..=159 => self.session_steps(usize::from(step.who) % sessions, step.coin)?,
            160..=199 => self.poll(usize::from(step.who) % 2, step.coin),
            200..=209 => self.die(usize::from(step.who) % 2),
            210..=215 => {
                let product = usize::from(step.coin) % self.shop.physical.len();
                self.shop.physical[product] += 1;
                self.raised(product);
            }
            216..=229 if self.people => {
                let product = usize::from(step.coin) % self.shop.physical.len();
                if self.shop.physical[product] > self.shop.kept(product) {
                    self.shop.physical[product] -= 1;
                }
            }
            230..=244 => self.pay_or_cancel(usize::from(step.who) % sessions, step.coin < 128),
            245 => self.now += RETRY,
            _ => self.now += 1_000 * i64::from(step.coin % 16),
        }
        self.shop.tick(self.now);
        self.forget();
        checks::after_every_step(self)
    }

    fn forget(&mut self) {
        for session in 0..self.sessions.len() {
            let holds = self.units(session).iter().all(|units| {
                let member = self.shelves.get(&units.stock).and_then(|it| it.members.get(&name(session)));
                member
                    .is_some_and(|it| it.stage == Stage::Open || it.stage == Stage::Kept || it.at > self.now)
            });
            let (order, known) = (self.shop.order(session), self.sessions[session].forgotten);
            self.sessions[session].forgotten =
                order == Some(Order::Pending) && !holds || known && order != Some(Order::Failed);
        }
    }

    fn raised(&mut self, product: usize) {
        self.shop.raised_at[product] = self.now;
    }

    /// An order that waits is paid by its buyer, or its link is dead.
    fn pay_or_cancel(&mut self, session: usize, paid: bool) {
        if self.sessions[session].phase != Phase::Kept || self.shop.order(session) != Some(Order::Pending) {
            return;
        }
        // Turned and counted down in one: the gap of such a payment is out of reach.
        let to = if paid { Order::Turned { counted_at: self.now } } else { Order::Failed };
        self.shop.turn(session, to);
        for (product, _) in self.sessions[session].basket.clone() {
            if !paid {
                self.raised(product);
            }
        }
        self.shop.tick(self.now);
    }

    /// A poller begins a reading, has its numbers, or hands them over.
    fn poll(&mut self, poller: usize, coin: u8) {
        let process = self.alive[0];
        match self.polls[poller].take() {
            None => {
                let mark = self.stock(process, |_, moment| *moment.sequence);
                self.polls[poller] = Some((mark, Vec::new()));
                self.polled[poller] = self.now;
            }
            Some((_, looks)) if looks.is_empty() && self.now - self.polled[poller] > PATIENCE => {}
            Some((mark, looks)) if looks.is_empty() => {
                let looks = (0..self.shop.physical.len()).map(|product| {
                    let books = self.shop.books(product, mark, self.now);
                    if coin < 128 { books } else { self.shop.window(product, mark, self.now) }
                });
                self.polls[poller] = Some((mark, looks.collect()));
            }
            Some((_, looks)) if self.is_slow(&looks) => {}
            Some((_, looks)) => self.observed(process, &looks),
        }
    }

    fn is_slow(&self, looks: &[Look]) -> bool {
        looks.iter().any(|look| self.now - look.taken_at > PATIENCE)
    }

    fn observed(&mut self, process: usize, looks: &[Look]) {
        let readings = self.note(looks);
        self.stock(process, |shelves, moment| stock::observe(shelves, &readings, moment));
    }

    /// A process dies; its sessions go on in another one, what it had open is closed by somebody else.
    fn die(&mut self, place: usize) {
        let dead = std::mem::replace(&mut self.alive[place], self.started);
        self.started += 1;
        let heir = self.alive[1 - place];
        for session in self.sessions.iter_mut().filter(|session| session.process == dead) {
            session.process = heir;
            session.phase = match session.phase.clone() {
                Phase::Admitted { .. } | Phase::Checked { .. } => Phase::Wanting,
                Phase::Open { .. } => Phase::Lost,
                other => other,
            };
        }
    }

    fn session_steps(&mut self, session: usize, coin: u8) -> Checked {
        let process = self.sessions[session].process;
        let next = match self.sessions[session].phase.clone() {
            Phase::Wanting => return self.wish(session),
            Phase::Admitted { .. } if self.now - self.sessions[session].until + HOLD > PATIENCE => {
                Phase::Wanting
            }
            Phase::Admitted { mark } => {
                let basket = self.sessions[session].basket.clone();
                let looks = basket.iter().map(|(product, _)| self.shop.window(*product, mark, self.now));
                self.sessions[session].looks = looks.collect();
                Phase::Checked { mark }
            }
            Phase::Checked { .. } if self.is_slow(&self.sessions[session].looks) => Phase::Wanting,
            Phase::Checked { .. } => {
                self.pins(session);
                return Ok(());
            }
            Phase::Open { from } => {
                let basket = self.sessions[session].basket.clone();
                match self.shop.post(session, &basket) {
                    Ok(()) => Phase::Paying,
                    Err(product) => {
                        let asked = self.wants(session, product);
                        self.sessions[session].looks =
                            vec![self.shop.refusal(product, asked, from, self.now)];
                        Phase::Refused { product }
                    }
                }
            }
            Phase::Refused { product } => {
                self.refused(session, product);
                self.again_or_done(session, coin)
            }
            Phase::Lost => {
                self.closes(session, Close::Released);
                self.again_or_done(session, coin)
            }
            Phase::Paying => self.pays(session, coin),
            Phase::Paid if self.shop.order(session) == Some(Order::Placed) => {
                self.closes(session, Close::Sold);
                Phase::Done
            }
            Phase::Declined { silent } => {
                let shop_keeps = silent && self.shop.hold;
                self.closes(session, Close::Declined { hold_ms: RETRY, shop_keeps });
                self.again_or_done(session, coin)
            }
            Phase::Kept => match self.shop.order(session) {
                Some(Order::Placed) => {
                    self.closes(session, Close::Sold);
                    Phase::Done
                }
                Some(Order::Failed) => {
                    self.closes(session, Close::Released);
                    Phase::Done
                }
                _ => Phase::Kept,
            },
            same @ (Phase::Paid | Phase::Done) => same,
        };
        self.sessions[session].phase = next;
        // A reply may be lost, and a step taken again.
        if coin.is_multiple_of(4) && self.sessions[session].phase == Phase::Done {
            self.gives_back_twice(session, process);
        }
        Ok(())
    }

    fn again_or_done(&mut self, session: usize, coin: u8) -> Phase {
        let one = &mut self.sessions[session];
        one.tries += 1;
        if one.tries < 3 && !coin.is_multiple_of(3) { Phase::Wanting } else { Phase::Done }
    }

    fn wish(&mut self, session: usize) -> Checked {
        let before = self.clone();
        let process = self.sessions[session].process;
        let units = self.units(session);
        let wish = Reserve { session: name(session), units, hold_ms: HOLD, enter: true };
        let mut told = self.stock(process, |shelves, moment| stock::reserve(shelves, &wish, moment));
        checks::k6_a_refusal_is_true(self, &before, session, &told)?;
        if self.mutation.no_gate && matches!(told, Reserved::Waiting { .. }) {
            told = Reserved::Admitted { mark: self.sequence };
            self.force(session, Stage::Admitted);
        } else if matches!(told, Reserved::Admitted { .. }) {
            checks::k2_at_an_admission(self, &before, session)?;
        }
        match told {
            Reserved::Admitted { mark } => {
                self.sessions[session].phase = Phase::Admitted { mark };
                self.sessions[session].until = self.now + HOLD;
            }
            Reserved::Waiting { .. } => {}
            Reserved::Refused { .. } | Reserved::Full => self.sessions[session].phase = Phase::Done,
        }
        Ok(())
    }

    /// A mutation: sets the stage, whatever the gate says.
    fn force(&mut self, session: usize, stage: Stage) {
        for units in self.units(session) {
            let of_stock = self.shelves.get_mut(&units.stock).unwrap();
            let member = of_stock.members.get_mut(&name(session)).unwrap();
            (member.stage, member.ticket) = (stage, None);
            if stage == Stage::Open {
                (member.opened, member.owner) = (Some(self.sequence), None);
            }
        }
    }

    fn pins(&mut self, session: usize) {
        let process = self.sessions[session].process;
        let (units, looks) = (self.units(session), std::mem::take(&mut self.sessions[session].looks));
        let readings = self.note(&looks);
        let mut shelves = self.shelves.clone();
        let pinned = self
            .stock(process, |_, moment| stock::pin(&mut shelves, &name(session), &units, &readings, moment));
        let next = if pinned.is_ok() {
            self.shelves = shelves;
            Phase::Open { from: self.sequence }
        } else if self.mutation.no_gate && self.sessions[session].until > self.now {
            self.sequence += 1;
            self.force(session, Stage::Open);
            Phase::Open { from: self.sequence }
        } else {
            Phase::Wanting
        };
        self.sessions[session].phase = next;
        if self.mutation.no_pin && pinned.is_ok() {
            self.closes(session, Close::Released);
        }
    }

    fn pays(&mut self, session: usize, coin: u8) -> Phase {
        match coin % 16 {
            0..=9 => {
                let counted_at = self.now + 10 + i64::from(coin) * 78 / 255;
                self.shop.turn(session, Order::Turned { counted_at });
                Phase::Paid
            }
            10 | 11 => Phase::Declined { silent: true },
            12 | 13 => {
                self.shop.turn(session, Order::Failed);
                Phase::Declined { silent: false }
            }
            14 if self.shop.hold => {
                self.closes(session, Close::Kept);
                Phase::Kept
            }
            _ => Phase::Paying,
        }
    }

    /// The shop has said no: that counts unless another order ran, then it proves nothing.
    fn refused(&mut self, session: usize, product: usize) {
        let process = self.sessions[session].process;
        self.closes(session, Close::Released);
        let others = self.shelves.get(&stock_id(product)).is_some_and(|shelf| shelf.has_open(&name(session)));
        let looks = std::mem::take(&mut self.sessions[session].looks);
        if !others && !self.is_slow(&looks) {
            self.observed(process, &looks);
        }
    }

    fn closes(&mut self, session: usize, how: Close) {
        let (units, process) = (self.units(session), self.sessions[session].process);
        self.stock(process, |shelves, moment| stock::close(shelves, &name(session), &units, how, moment));
    }

    /// Given back, and once more; a mutation counts the second time against another.
    fn gives_back_twice(&mut self, session: usize, process: usize) {
        let units = self.units(session);
        for _ in 0..2 {
            self.stock(process, |shelves, _| stock::release(shelves, &name(session), &units));
        }
        if self.mutation.counted_release {
            for units in units {
                let of_stock = self.shelves.get_mut(&units.stock).unwrap();
                let held = of_stock
                    .members
                    .values_mut()
                    .find(|it| matches!(it.stage, Stage::Soft | Stage::Admitted));
                if let Some(other) = held {
                    other.quantity = other.quantity.saturating_sub(units.quantity);
                }
            }
        }
    }

    /// Everybody goes on until all is over; then nothing that is free is refused.
    pub(super) fn drain(&mut self) -> Checked {
        for round in 0..60_u8 {
            for session in 0..self.sessions.len() {
                if self.sessions[session].phase == Phase::Kept {
                    self.pay_or_cancel(session, round % 2 == 0);
                }
                let who = u8::try_from(session).unwrap();
                self.step(Step { who, coin: round.wrapping_mul(37), wait: 50 })?;
            }
        }
        for (at, session) in self.sessions.iter().enumerate() {
            if session.phase != Phase::Done {
                return Err(format!(
                    "liveness: session {at} never ends: {:?}: {:?}",
                    session.phase, self.shelves
                ));
            }
        }
        self.now += RETRY;
        self.polls = [None, None];
        (0..3).for_each(|_| self.poll(0, 0));
        for product in 0..self.shop.physical.len() {
            checks::k4_at_rest_both_bounds_agree(self, product)?;
        }
        self.nothing_is_undersold()
    }

    /// A unit that nobody has is to be had.
    fn nothing_is_undersold(&mut self) -> Checked {
        for product in 0..self.shop.physical.len() {
            let free = self.shop.physical[product] - self.shop.kept(product);
            if free <= 0 {
                continue;
            }
            self.shop.orders.push(None);
            let (basket, process) = (vec![(product, free)], self.alive[0]);
            let session = Session {
                basket,
                phase: Phase::Wanting,
                process,
                until: 0,
                forgotten: false,
                looks: Vec::new(),
                tries: 0,
            };
            self.sessions.push(session);
            let last = self.sessions.len() - 1;
            for _ in 0..6 {
                self.now += 100;
                self.shop.tick(self.now);
                self.session_steps(last, 1)?;
                checks::after_every_step(self)?;
            }
            if self.shop.order(last) != Some(Order::Placed) {
                return Err(format!("undersold: {free} of product {product}: {:?}", self.sessions[last]));
            }
        }
        Ok(())
    }
}
