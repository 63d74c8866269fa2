//! What is left to sell: who holds how many units, two bounds on what the shop still has, and who may order at the
//! same time (`exactly-once.md` §7).
//!
//! Pure arithmetic on [`Shelf`]s, one for each stock id of a shop: no time, no I/O, no randomness of its own. The
//! embedded state runs it inside a transaction; the shared one runs the same steps as Lua (`state::redis`), held
//! against this by tests.
//!
//! A shelf knows its members (who holds, pays, has bought: sums are derived, so giving back twice changes nothing)
//! and two counts that were read from the shop:
//!
//! - *upper*: from sources that never lie low. What is refused early is refused by it: a no is right.
//! - *lower*: the most careful figure, at most five seconds old. Orders run in parallel only as long as it covers
//!   all of them: on their own, the shop's check and its counting down do not race.
//!
//! Members and counts carry numbers of one sequence of the shop, so that a unit is counted once: it is *in* a count
//! (over before the reading began), *out* of it (begun after the reading ended), or *maybe*.

mod shelf;
mod steps;

use serde::{Deserialize, Serialize};

pub use self::{
    shelf::{Count, Member, Shelf, Stage},
    steps::{Moment, Shelves, close, observe, pin, release, reserve},
};

/// How old a lower count may be.
pub const FRESH_MS: i64 = 5_000;

/// Most completions that wait for one stock id; the next one is told to come back.
pub const MOST_WAITING: usize = 64;

/// How long a sale is remembered at least: longer than any reading of the shop takes.
pub const REMEMBERED_MS: i64 = 60_000;

/// In front of what stands for a caller; the shop's own ids are numbers.
pub(crate) const OF_CALLER: &str = "caller:";

/// What a product's units are counted under: the shop's id of the product or variation that manages them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StockId(String);

impl StockId {
    /// From the shop's id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// What a caller holds over all products, where that is limited: a shelf whose upper count is the limit. It has
    /// no gate: a caller's orders do not wait for each other.
    #[must_use]
    pub fn of_caller(caller: &str) -> Self {
        Self(format!("{OF_CALLER}{caller}"))
    }

    /// Whether it stands for what a caller holds, not for goods.
    #[must_use]
    pub fn is_of_caller(&self) -> bool {
        self.0.starts_with(OF_CALLER)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for StockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Units of one stock id; all lines that share it are summed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Units {
    /// What they are counted under.
    pub stock: StockId,
    /// How many.
    pub quantity: u32,
}

/// Where a count comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// wc/v3: the number in the shop's books.
    WcV3,
    /// The Store API, as any visitor sees it, or a refusal by the shop.
    Shop,
}

/// What a reading says of the upper count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upper {
    /// So many are there at most; what unpaid orders keep is still among them (wc/v3, `low_stock_remaining`).
    Number(i64),
    /// So many are free at most: what unpaid orders keep is taken off already (a refusal by the shop).
    Free(i64),
    /// The source tells no number now: what it told before holds no more.
    Untold,
}

/// What the shop said of one stock id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Of what.
    pub stock: StockId,
    /// The most that can be there.
    pub upper: Upper,
    /// The least that can be there; `None` when the source does not tell.
    pub lower: Option<i64>,
    /// Whether units of unpaid orders are taken off the lower one already (the Store API's `maximum`, while the shop
    /// holds stock for them): holds for those are then not counted twice.
    pub takes_off_pending: bool,
    /// Where it comes from.
    pub source: Source,
    /// The shop's sequence when the reading began, or any earlier number of it.
    pub from: u64,
}

/// A wish for units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// Who wants them: a session's id. What it holds already counts for it, never against it.
    pub session: String,
    /// What it wants: all of it or nothing.
    pub units: Vec<Units>,
    /// How long it holds them, unless it gives them back or an order is placed, in milliseconds.
    pub hold_ms: i64,
    /// Whether it wants to place its order now, and so has to pass the gate.
    pub enter: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// It holds its units and may go on; readings from now on begin at this number.
    Admitted {
        /// The shop's sequence.
        mark: u64,
    },
    /// It holds its units; others come first. Ask again soon.
    Waiting {
        /// How many come first, on its longest queue.
        ahead: usize,
    },
    /// It holds nothing: this stock id has too little.
    Refused {
        /// Which.
        stock: StockId,
        /// Why.
        reason: Shortage,
    },
    /// It holds nothing: too many wait already.
    Full,
}

/// Why units are not to be had. Each is true when it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// None is left.
    SoldOut,
    /// Fewer are left than wanted.
    Left(u32),
    /// Enough are there, but others hold them or pay for them right now.
    Held {
        /// Seconds after which it is worth asking again.
        retry_secs: u64,
    },
}

/// How a session's open attempt leaves a shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The order is placed: the units are sold.
    Sold,
    /// Declined: the same buyer may pay at once, others wait so long (milliseconds).
    Declined {
        /// How long.
        hold_ms: i64,
        /// Whether the shop keeps the units for the unpaid order too.
        shop_keeps: bool,
    },
    /// No `POST` runs any more, but the order may still be paid: the units stay taken and block nobody's turn.
    Kept,
    /// Nothing came of it.
    Released,
}

/// The order cannot be placed in parallel after all: the attempt has to pass the gate again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAdmitted;
