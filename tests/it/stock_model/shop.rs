//! The model of a shop: physical stock, unpaid orders that may keep units, its own check, and the gap between an
//! order's status and its stock.

use std::collections::BTreeSet;

use tillgate::stock::{Reading, Source, StockId, Upper};

/// Most that one order may take of a product; `maximum` shows it.
const PER_ORDER: i64 = 4;

/// How far an order has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Unpaid.
    Pending,
    /// Paid; its units are counted down then.
    Turned { counted_at: i64 },
    /// Paid and counted down.
    Placed,
    /// Failed or cancelled.
    Failed,
}

/// What a reading says, and whose units are off its numbers in truth.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) product: usize,
    pub(super) reading: Reading,
    pub(super) off_upper: BTreeSet<usize>,
    pub(super) off_lower: BTreeSet<usize>,
    pub(super) taken_at: i64,
}

pub(super) fn stock_id(product: usize) -> StockId {
    StockId::new(product.to_string())
}

/// Units by product.
pub(super) type Basket = Vec<(usize, i64)>;

/// The shop.
#[derive(Debug, Clone)]
pub(super) struct Shop {
    /// In its books.
    pub(super) physical: Vec<i64>,
    /// Whether it keeps units for unpaid orders.
    pub(super) hold: bool,
    /// One order for each session, in the order of the sessions.
    pub(super) orders: Vec<Option<(Order, Basket)>>,
    /// When there last came more than before, by product: what was read earlier may say too little.
    pub(super) raised_at: Vec<i64>,
    /// A mutation: `maximum` is told as the most that can be there.
    pub(super) maximum_as_upper: bool,
}

impl Shop {
    pub(super) fn order(&self, session: usize) -> Option<Order> {
        self.orders[session].as_ref().map(|(order, _)| *order)
    }

    pub(super) fn turn(&mut self, session: usize, to: Order) {
        if let Some((order, _)) = &mut self.orders[session] {
            *order = to;
        }
    }

    /// Units of a product in orders that are like this.
    pub(super) fn units(&self, product: usize, is: impl Fn(usize, Order) -> bool) -> i64 {
        let of =
            self.orders.iter().enumerate().filter_map(|(session, order)| Some((session, order.as_ref()?)));
        let like = of.filter(|(session, (order, _))| is(*session, *order));
        like.flat_map(|(_, (_, units))| units).filter(|(of, _)| *of == product).map(|(_, units)| units).sum()
    }

    /// Units that are paid for and not counted down yet.
    pub(super) fn in_gap(&self, product: usize) -> i64 {
        self.units(product, |_, order| matches!(order, Order::Turned { .. }))
    }

    /// Units that the shop keeps for unpaid orders.
    pub(super) fn kept(&self, product: usize) -> i64 {
        if self.hold { self.units(product, |_, order| order == Order::Pending) } else { 0 }
    }

    /// Counts down what is due.
    pub(super) fn tick(&mut self, now: i64) {
        let Self { orders, physical, .. } = self;
        for (order, units) in orders.iter_mut().flatten() {
            if matches!(order, Order::Turned { counted_at } if *counted_at <= now) {
                *order = Order::Placed;
                for (product, units) in units.iter() {
                    physical[*product] -= units;
                }
            }
        }
    }

    /// Its own check: takes an order, or refuses it for a product.
    pub(super) fn post(&mut self, session: usize, units: &[(usize, i64)]) -> Result<(), usize> {
        for (product, asked) in units {
            let others = self.units(*product, |of, order| of != session && order == Order::Pending);
            let kept = if self.hold { others } else { 0 };
            if self.physical[*product] - kept < *asked {
                return Err(*product);
            }
        }
        self.orders[session] = Some((Order::Pending, units.to_vec()));
        Ok(())
    }

    fn off(&self, product: usize, pending: bool) -> BTreeSet<usize> {
        let is_off = |order: Order| order == Order::Placed || pending && self.hold && order == Order::Pending;
        let of = self.orders.iter().enumerate();
        of.filter(|(_, order)| {
            order
                .as_ref()
                .is_some_and(|(order, units)| is_off(*order) && units.iter().any(|(of, _)| *of == product))
        })
        .map(|(session, _)| session)
        .collect()
    }

    /// The number in its books, by wc/v3.
    pub(super) fn books(&self, product: usize, from: u64, now: i64) -> Look {
        let number = self.physical[product];
        let reading = Reading {
            stock: stock_id(product),
            upper: Upper::Number(number),
            lower: Some(number),
            takes_off_pending: false,
            source: Source::WcV3,
            from,
        };
        let off = self.off(product, false);
        Look { product, reading, off_upper: off.clone(), off_lower: off, taken_at: now }
    }

    /// What any visitor sees: a number when little is left, and `maximum`.
    pub(super) fn window(&self, product: usize, from: u64, now: i64) -> Look {
        let physical = self.physical[product];
        let rest = physical - self.kept(product);
        // The trap: when unpaid orders take the rest, it shows all.
        let (maximum, pending) = if rest > 0 { (rest, true) } else { (physical, false) };
        let maximum = maximum.min(PER_ORDER);
        // What is left is told when it is little, and knows nothing of unpaid orders.
        let upper = match physical {
            _ if self.maximum_as_upper => Upper::Number(maximum),
            physical if physical <= 2 => Upper::Number(physical),
            _ => Upper::Untold,
        };
        let (off_upper, off_lower) = (self.off(product, false), self.off(product, pending));
        let reading = Reading {
            stock: stock_id(product),
            upper,
            lower: Some(maximum),
            takes_off_pending: self.hold,
            source: Source::Shop,
            from,
        };
        Look { product, reading, off_upper, off_lower, taken_at: now }
    }

    /// What its refusal says: fewer than asked are left.
    pub(super) fn refusal(&self, product: usize, asked: i64, from: u64, now: i64) -> Look {
        let mut look = self.window(product, from, now);
        (look.reading.upper, look.reading.lower) = (Upper::Free(asked - 1), None);
        look.off_upper = self.off(product, true);
        look
    }
}
