//! The port to the shop: what the domain asks of it, and how its failures are told apart.
//!
//! Implemented by `store::woo`. Failures are classified by moment, not by status code: see
//! [`Error::effect`]. What a shop *decides* (sold out, declined) is a result, never an [`Error`].

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    cart::{CartHandle, CartPlan, CartView, Minor},
    ids::ProductId,
    session::Cart,
};
use crate::{
    money::Currency,
    stock::{Reading, StockId},
};

/// What a call that failed may have done at the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it never left, or the shop said that it did not run. Safe to send again.
    NotSent,
    /// The shop answered, and the answer says what happened: nothing that lasts.
    Definite,
    /// Nobody knows: look before anything else.
    Unknown,
}

/// Why the shop could not be asked. The source is kept for the log; callers act on [`Error::effect`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be made.
    #[error("the shop cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The deadline passed after the request was sent.
    #[error("the shop did not answer in time")]
    TimedOut,
    /// The connection broke after the request was sent.
    #[error("the connection to the shop broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The shop's own limiter refused the call; nothing ran.
    #[error("the shop limits our calls")]
    Limited {
        /// Seconds until it takes calls again, when it says so.
        retry_after_secs: Option<u64>,
    },
    /// The shop is closed for maintenance.
    #[error("the shop is in maintenance (HTTP {status})")]
    Maintenance {
        /// HTTP status.
        status: u16,
        /// Seconds, when it says so.
        retry_after_secs: Option<u64>,
    },
    /// A server error of the shop.
    #[error("the shop failed (HTTP {status}, code {code:?})")]
    Failed {
        /// HTTP status.
        status: u16,
        /// The shop's own code, if it gave one.
        code: Option<String>,
    },
    /// The answer is not what this call answers (HTML, other shape, lost digits).
    #[error("the shop's answer cannot be understood: {what}")]
    Unintelligible {
        /// What was wrong; no values.
        what: String,
        /// Whether the call may have changed something.
        wrote: bool,
    },
    /// The cart is gone: its token is refused or opens another cart.
    #[error("the shop no longer knows the cart")]
    CartGone,
    /// The shop's address or keys are wrong.
    #[error("the shop refuses the gateway (HTTP {status}, code {code:?}): check its address and keys")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The shop's own code, if it gave one.
        code: Option<String>,
    },
}

impl Error {
    /// What the call may have done.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Self::Unreachable(_) | Self::Limited { .. } => Effect::NotSent,
            Self::CartGone | Self::Refused { .. } | Self::Unintelligible { wrote: false, .. } => {
                Effect::Definite
            }
            Self::TimedOut
            | Self::Broken(_)
            | Self::Maintenance { .. }
            | Self::Failed { .. }
            | Self::Unintelligible { wrote: true, .. } => Effect::Unknown,
        }
    }

    /// Seconds after which a caller may try again, when the shop said so.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Self::Limited { retry_after_secs } | Self::Maintenance { retry_after_secs, .. } => {
                *retry_after_secs
            }
            Self::Unreachable(_)
            | Self::TimedOut
            | Self::Broken(_)
            | Self::Failed { .. }
            | Self::Unintelligible { .. }
            | Self::CartGone
            | Self::Refused { .. } => None,
        }
    }
}

/// What an item id on the wire stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// A product or variation of the shop.
    Product(ProductId),
    /// Nothing that the shop sells.
    Unknown,
}

/// An order to place. Holds the credential: passes through memory only.
#[derive(Clone)]
pub struct PlaceOrder {
    /// The payment method at the shop; `None` when nothing has to be paid.
    pub method: Option<String>,
    /// What the payment method needs, as key and value.
    pub payment_data: Vec<(String, String)>,
    /// The caller's note.
    pub note: Option<String>,
    /// Finds the order again.
    pub correlation_id: String,
    /// Who sold it, for the merchant's statistics (the agent's host or id).
    pub source: String,
    /// What the buyer agreed to pay.
    pub expected_total: Minor,
}

impl std::fmt::Debug for PlaceOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlaceOrder").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What came of the one `POST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// The order exists: paid, or accepted and to be paid.
    Placed(PlacedOrder),
    /// The order waits for the buyer (3-D Secure, a bank's page).
    Redirect {
        /// The order, unpaid.
        order: PlacedOrder,
        /// Where the buyer goes.
        url: Option<String>,
    },
    /// The payment was declined; the cart is as it was.
    Declined {
        /// The unpaid order it left behind, when the shop names it.
        shop_order: Option<String>,
    },
    /// Refused before any payment.
    Refused(RefusedOrder),
}

/// Why an order was refused before any payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedOrder {
    /// Something is sold out or too few are left.
    Stock,
    /// The cart is empty: evidence of an order, or an emptied cart.
    EmptyCart,
    /// A coupon lapsed and is gone from the cart.
    Coupon,
    /// The address, e-mail or a required field.
    Address,
    /// The shipping rate.
    Rate,
    /// The payment method.
    Method,
    /// The total rose above what was agreed.
    Total,
    /// A rule of the shop's own.
    Other,
}

/// An order of the shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedOrder {
    /// The shop's id of it.
    pub shop_order: String,
    /// The number people know it by.
    pub number: String,
    /// The shop's key to it.
    pub key: String,
    /// Whether it is paid.
    pub paid: bool,
    /// Whether the cart still holds something afterwards.
    pub cart_filled: bool,
    /// The order-received page, when the shop names it.
    pub permalink_url: Option<String>,
}

/// An order read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderView {
    /// Its currency.
    pub currency: Currency,
    /// What was charged.
    pub total: Minor,
    /// Units in it, over all lines.
    pub units: u32,
}

/// An order found by its correlation id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundOrder {
    /// The order.
    pub order: PlacedOrder,
    /// How far it got.
    pub state: FoundState,
    /// What it costs.
    pub total: Minor,
    /// Whether a payment has left traces (a transaction id), or nobody can tell.
    pub traces: bool,
    /// Last change, by the shop's clock; `None` where that is not told.
    pub modified_at: Option<DateTime<Utc>>,
    /// Whether its units are surely taken off the shop's stock: for a moment after its status has turned a shop
    /// counts them neither as kept back nor as sold.
    pub stock_taken: bool,
}

/// An order that the shop made of the cart before the `POST`: it can be read by its key, also where nothing can look
/// for orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The shop's id of it.
    pub shop_order: String,
    /// The shop's key to it; a secret.
    pub key: String,
    /// Whether it was made for this attempt. Else it is an unpaid order of an earlier one, and being unpaid says
    /// nothing about this one.
    pub fresh: bool,
}

/// A cart that was looked at right before an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What it is now.
    pub view: CartView,
    /// When, by the shop's own clock: what happens to its orders from then on is told apart from what happened
    /// before. `None` where the shop does not tell its time.
    pub shop_time: Option<DateTime<Utc>>,
}

/// Which orders to look for.
#[derive(Debug, Clone, Copy)]
pub struct OrderSearch<'a> {
    /// What they carry.
    pub correlation_id: &'a str,
    /// Where their mails go.
    pub email: &'a str,
    /// Made since then, by the shop's clock.
    pub since: DateTime<Utc>,
    /// Whether drafts and thrown away orders are asked for by name as well (one more call): some shops leave them
    /// out of every list that does not name them.
    pub thorough: bool,
}

/// How far a found order got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FoundState {
    /// Paid, or accepted and to be paid: it counts.
    Placed,
    /// Unpaid; proves nothing while a `POST` may run.
    Pending,
    /// Not even that: made before the payment begins.
    Draft,
    /// The payment failed.
    Failed,
    /// Cancelled, refunded or in the trash: it may have been paid before.
    Gone,
    /// A status of a plugin's own: nobody here knows what it means.
    Unclear,
}

/// What the shop says of a product's stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductStock {
    /// The product or variation.
    pub product: ProductId,
    /// What it is counted under, with what is there of it; mostly one. Empty: its stock is not managed, or it may be
    /// ordered back, so nothing limits it.
    pub counted: Vec<Reading>,
}

/// What has changed at a shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockChanges {
    /// Products and variations whose stock may be another one; each is worth a [`Store::stock`]. Some only look
    /// changed: a list in seconds overlaps the one before, and a variation's change shows its product as well.
    pub products: Vec<ProductId>,
    /// When this was read, by the shop's clock: where the next look begins.
    pub until: DateTime<Utc>,
}

/// A stock that the shop manages, as its books have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookedStock {
    /// The product or variation that manages it.
    pub stock: StockId,
    /// How many are there; below zero: more were sold than there were, or ordered back. `None`: the books have no
    /// number.
    pub number: Option<i64>,
    /// Whether it is sold without being there, so that a number below zero is meant.
    pub ordered_back: bool,
}

/// An order that was placed with a correlation id, whoever's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderSighting {
    /// The shop's id of it.
    pub shop_order: String,
    /// What it carries.
    pub correlation_id: String,
    /// How far it got.
    pub state: FoundState,
    /// When it was made, by the shop's clock.
    pub created_at: DateTime<Utc>,
}

/// What a shop can do beyond the necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Orders can be looked for by correlation id: unknown outcomes settle by themselves.
    pub finds_orders: bool,
    /// Unpaid orders can be cancelled.
    pub cancels_orders: bool,
    /// Its books are open: exact stock, what has changed of it, and the orders of a time.
    pub opens_books: bool,
}

/// A shop. One value serves one shop; the calls on one cart are made one after another by the caller.
#[async_trait]
pub trait Store: Send + Sync {
    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Tells what item ids stand for, in the order asked. Calls the shop only for ids it cannot know
    /// (SKUs outside its cache).
    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, Error>;

    /// Makes a new cart that holds the plan (2 calls).
    async fn open(&self, plan: &CartPlan) -> Result<CartView, Error>;

    /// Brings a cart to the plan (1 call). [`Error::CartGone`] when the cart is not the one we left.
    async fn change(&self, cart: &Cart, plan: &CartPlan) -> Result<CartView, Error>;

    /// Sends customer and rates again, whatever is known of them, and reads the cart: the last look before
    /// an order (1 call).
    async fn check(&self, cart: &Cart, plan: &CartPlan) -> Result<Checked, Error>;

    /// Reads a cart (1 call).
    async fn read(&self, cart: &Cart) -> Result<CartView, Error>;

    /// Places the order: exactly one `POST`, never repeated by any layer below.
    async fn place(&self, cart: &Cart, order: &PlaceOrder) -> Result<Placement, Error>;

    /// Reads an order back.
    async fn read_order(&self, order: &PlacedOrder, email: &str) -> Result<OrderView, Error>;

    /// Looks for orders with a correlation id. Only with [`Abilities::finds_orders`].
    async fn find_orders(&self, search: &OrderSearch<'_>) -> Result<Vec<FoundOrder>, Error>;

    /// Has the shop make the order of a cart that was just checked, before it is placed (1 call; none at a shop that
    /// is known to make none so early). `None` where it makes none. For shops without [`Abilities::finds_orders`].
    async fn draft(&self, cart: &Cart, method: Option<&str>) -> Result<Option<Draft>, Error>;

    /// Reads an order by its key (1 call). `None`: the shop does not know it any more.
    async fn find_draft(&self, draft: &Draft, email: &str) -> Result<Option<FoundOrder>, Error>;

    /// Cancels an unpaid order, and tells what it is then (1 call). The shop does so whatever the order is by then:
    /// look right before. Only with [`Abilities::cancels_orders`].
    async fn cancel_order(&self, shop_order: &str) -> Result<FoundOrder, Error>;

    /// Reads the stock of products, in the order asked; one that the shop does not know is left out. `from` is noted on
    /// the readings: the shop's stock sequence when this was called (for up to 100 products 1 call where all of them
    /// are products or all variations, else 2).
    async fn stock(&self, products: &[ProductId], from: u64) -> Result<Vec<ProductStock>, Error>;

    /// What has changed since then, by the shop's clock; deletions are not seen. Only with
    /// [`Abilities::opens_books`] (2 calls).
    async fn stock_changes(&self, since: DateTime<Utc>) -> Result<StockChanges, Error>;

    /// All stocks that the shop manages. Only with [`Abilities::opens_books`] (a call for each 100 products and each
    /// 100 variations).
    async fn booked_stock(&self) -> Result<Vec<BookedStock>, Error>;

    /// All orders made since then, by the shop's clock, that carry a correlation id, drafts and thrown away ones
    /// among them. Only with [`Abilities::opens_books`] (2 calls, and one for each further 100 orders).
    async fn orders_since(&self, since: DateTime<Utc>) -> Result<Vec<OrderSighting>, Error>;

    /// Empties a cart: nothing can be bought with it any more.
    async fn empty(&self, cart: &CartHandle) -> Result<(), Error>;
}
