//! What was recorded at a real shop: how often it sold more than it had.

use std::time::Duration;

use super::shop::SCARCE;

/// Rounds that every line was recorded with.
pub const RECORDED_ROUNDS: u32 = 50;

/// How a buyer pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payment {
    Card,
    /// Accepted at once, paid later.
    BankTransfer,
    /// A card whose processor takes a second.
    SlowCard,
}

impl Payment {
    const fn name(self) -> &'static str {
        match self {
            Self::Card => "card, at once",
            Self::BankTransfer => "bank transfer",
            Self::SlowCard => "card, takes 1 s",
        }
    }
}

/// When the buyers' checkouts arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    Together,
    /// Each at some moment within so long.
    Within(Duration),
    InTurn,
}

impl Arrival {
    fn name(self) -> String {
        match self {
            Self::Together => "same moment".to_owned(),
            Self::Within(time) => format!("spread over {} ms", time.as_millis()),
            Self::InTurn => "one after another".to_owned(),
        }
    }
}

/// What one cart holds: units of products.
pub type Goods = Vec<(u64, i64)>;

/// A race that is run in every round anew.
#[derive(Debug, Clone)]
pub struct Race {
    pub carts: Vec<Goods>,
    /// What there is of each product when a round begins.
    pub stock: Goods,
    pub payment: Payment,
    pub arrival: Arrival,
}

/// A line of the table: each cart holds one unit of one product.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub carts: u32,
    pub stock: u32,
    /// Whether a checkout keeps its stock back until it is paid.
    pub hold: bool,
    pub payment: Payment,
    pub arrival: Arrival,
    /// Of [`RECORDED_ROUNDS`], those in which more was sold than there was.
    pub oversold: u32,
    /// Orders accepted in all rounds.
    pub accepted: u32,
    /// The most orders accepted in one round.
    pub most: u32,
}

impl Line {
    pub fn race(&self) -> Race {
        Race {
            carts: (0..self.carts).map(|_| vec![(SCARCE, 1)]).collect(),
            stock: vec![(SCARCE, i64::from(self.stock))],
            payment: self.payment,
            arrival: self.arrival,
        }
    }

    /// The line's first columns.
    pub fn name(&self) -> String {
        let Self { carts, stock, .. } = self;
        let hold = if self.hold { "60 min" } else { "off" };
        let (carts, stock) = (carts.to_string(), stock.to_string());
        columns([&carts, &stock, hold, self.payment.name(), &self.arrival.name()])
    }
}

/// What stands above [`Line::name`].
pub fn heading() -> String {
    columns(["carts", "stock", "hold", "payment", "arrival"])
}

fn columns([carts, stock, hold, payment, arrival]: [&str; 5]) -> String {
    format!("{carts:>5} {stock:>5} {hold:>6}  {payment:<15} {arrival:<19}")
}

const fn within(millis: u64) -> Arrival {
    Arrival::Within(Duration::from_millis(millis))
}

const fn line(
    (carts, stock): (u32, u32),
    hold: bool,
    payment: Payment,
    arrival: Arrival,
    (oversold, accepted, most): (u32, u32, u32),
) -> Line {
    Line { carts, stock, hold, payment, arrival, oversold, accepted, most }
}

use Arrival::{InTurn, Together};
use Payment::{BankTransfer, Card, SlowCard};

/// The table as it was recorded.
pub const TABLE: [Line; 15] = [
    line((10, 1), true, Card, Together, (24, 76, 3)),
    line((10, 5), true, Card, Together, (39, 317, 8)),
    line((10, 1), false, Card, Together, (50, 399, 8)),
    line((10, 5), false, Card, Together, (50, 405, 10)),
    line((10, 1), true, BankTransfer, Together, (19, 69, 2)),
    line((10, 1), false, BankTransfer, Together, (50, 400, 8)),
    line((2, 1), true, Card, Together, (2, 52, 2)),
    line((2, 1), true, Card, within(150), (5, 55, 2)),
    line((2, 1), false, Card, Together, (50, 100, 2)),
    line((10, 1), true, Card, within(300), (19, 69, 2)),
    line((10, 1), true, SlowCard, Together, (0, 50, 1)),
    line((10, 1), true, SlowCard, within(1300), (0, 50, 1)),
    line((10, 1), false, SlowCard, Together, (50, 400, 8)),
    line((10, 5), true, Card, InTurn, (0, 250, 5)),
    line((10, 5), false, Card, InTurn, (0, 250, 5)),
];
