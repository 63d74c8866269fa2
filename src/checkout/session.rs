//! The checkout session: what the agent asked for, what the shop said, where the order stands.
//!
//! Stored as JSON with [`FORMAT`]; holds personal data (buyer, addresses) but never credentials, payment
//! data or wire bodies. Amounts are minor units of [`Session::currency`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    cart::{CartPlan, CartView, Minor, RateChoice},
    ids::{CallerId, LineId, ProductId, SessionId, ShopId},
    problem::{Kind, Place, Problem},
    store::Draft,
};
use crate::{money::Currency, stock::Units};

/// The number of the stored shape; a newer one than this is refused, an older one is upgraded on reading.
pub const FORMAT: u32 = 1;

/// Where a session stands. Protocols map it with an exhaustive `match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Something is missing that the caller can supply.
    Incomplete,
    /// An order can be placed.
    Ready,
    /// Only the buyer can go on, at the shop (3-D Secure, a redirect).
    Escalated,
    /// An order may be in the making: nothing changes until that is known.
    Placing,
    /// The order exists. Final.
    Completed,
    /// Given up. Final.
    Canceled,
    /// Given up by time. Final.
    Expired,
}

impl Status {
    /// Whether the session has ended: every write is refused, reads go on.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Expired)
    }
}

/// A checkout session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// [`FORMAT`] at the time of writing.
    pub format: u32,
    /// Public id.
    pub id: SessionId,
    /// The shop it belongs to.
    pub shop: ShopId,
    /// Who made it; nobody else ever sees it.
    pub caller: CallerId,
    /// Counts writes: every commit is made against the version that was read.
    pub version: u64,
    /// Where it stands.
    pub status: Status,
    /// The shop's currency.
    pub currency: Currency,
    /// What is bought. A line that the shop refused is not here; a problem tells of it.
    pub lines: Vec<Line>,
    /// How many lines the session ever had: makes the next [`LineId`].
    pub lines_made: u32,
    /// Who buys.
    pub buyer: Option<Buyer>,
    /// Where it goes.
    pub fulfillment: Fulfillment,
    /// Coupon codes as the caller spelled them, refused ones too.
    pub codes: Vec<String>,
    /// The caller's note to the merchant.
    pub note: Option<String>,
    /// What stands in the way, and what the caller should know. Recomputed at every change.
    pub problems: Vec<Problem>,
    /// The shop's cart; `None` while nothing is to be bought.
    pub cart: Option<Cart>,
    /// How many carts the session has used: a new owner never shares one with an old one.
    pub generation: u32,
    /// Finds the order at the shop, whatever happens: random, for life.
    pub correlation_id: String,
    /// The one attempt that may have an order in the making.
    pub attempt: Option<Attempt>,
    /// Attempts that are over.
    pub closed_attempts: Vec<ClosedAttempt>,
    /// Units that may still be held for it at the shelves of the shop's stock; given back when it ends.
    #[serde(default)]
    pub held: Vec<Units>,
    /// The order. Written once.
    pub order: Option<Order>,
    /// Where only the buyer can go on ([`Status::Escalated`]): the shop's pay or redirect page.
    pub pay_url: Option<String>,
    /// The secret part of `continue_url`.
    pub continue_token: String,
    /// What a protocol must echo and the domain does not read, by protocol name.
    pub echoes: BTreeMap<String, Value>,
    /// Made at.
    pub created_at: DateTime<Utc>,
    /// Last successful create or update.
    pub updated_at: DateTime<Utc>,
    /// Ends by itself at.
    pub expires_at: DateTime<Utc>,
    /// Whether it was made before the state lost its newest writes, and its orders were not looked for since: one may
    /// be unknown here. Set by the state at each reading; writing it changes nothing, only a look ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_older_epoch: bool,
    /// When its first attempt was checked, by the shop's clock: no order of it is older.
    #[serde(default)]
    pub first_checked_at: Option<DateTime<Utc>>,
    /// What a person has to look at, beside an attempt in review.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// Unpaid orders that are to be cancelled at the shop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawals: Vec<Withdrawal>,
    /// What happened to it, for people: oldest first, bounded.
    #[serde(default)]
    pub story: Vec<Step>,
    /// Begun when it has ended and left orders behind that may be paid all the same.
    #[serde(default)]
    pub watch: Option<Watch>,
}

/// How the orders of a session are looked at after it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Begun at, by the gateway's clock.
    pub since: DateTime<Utc>,
    /// The next look; `None` once it is over.
    pub next: Option<DateTime<Utc>>,
    /// Orders of the shop that a person was told of: told once, even when they were dealt with since.
    pub told: Vec<String>,
}

/// Steps of a story that are kept at its beginning and in all.
const STORY: (usize, usize) = (10, 60);

/// Something that a person has to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Noticed at.
    pub at: DateTime<Utc>,
    /// The shop's order that it is about.
    pub shop_order: String,
    /// Why.
    pub reason: CaseReason,
}

/// Why a person has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CaseReason {
    /// A second paid order for one purchase: it wants a refund.
    SecondOrder,
    /// An order of a session that has ended without one, or whose next attempt is open: it wants a refund, or the
    /// buyer wants to be told.
    LateOrder,
    /// An unpaid order that was paid in the moment in which it was cancelled: it wants a refund, or to be taken up.
    PaidWhileCancelled,
}

/// An order that was left unpaid and is to be cancelled at the shop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// The shop's order.
    pub shop_order: String,
    /// When it is looked at next.
    pub due_at: DateTime<Utc>,
    /// Whether it was cancelled already: then it is read once more, as one whose payment ran comes back as paid.
    pub cancelled: bool,
}

/// What a session in review tells.
static UNCONFIRMED: Problem = Problem::new(Kind::OrderUnconfirmed, Place::Session);

/// A step of a session's story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub at: DateTime<Utc>,
    /// What happened, in a few words; no personal data, no secrets.
    pub what: String,
}

impl Session {
    /// Adds a step to the story. The beginning and the newest steps are kept.
    pub fn tell(&mut self, at: DateTime<Utc>, what: impl Into<String>) {
        self.story.push(Step { at, what: what.into() });
        while self.story.len() > STORY.1 {
            self.story.remove(STORY.0);
        }
    }

    /// When something is to be done without being asked: its end by time, an order to cancel, the next look at the
    /// orders of one that has ended. `None`: it rests, and may be swept one day.
    #[must_use]
    pub fn due_at(&self) -> Option<DateTime<Utc>> {
        let next = if self.status.is_final() {
            self.watch.as_ref().and_then(|watch| watch.next)
        } else {
            Some(self.expires_at)
        };
        self.withdrawals.iter().map(|wanted| wanted.due_at).chain(next).min()
    }

    /// All that is told to the caller: the problems, and that a person has to find out about its order.
    pub fn told(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(self.is_unconfirmed().then_some(&UNCONFIRMED))
    }

    /// Whether a person has to find out what came of its open attempt.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.review)
    }

    /// Whether a person has to look: such a session is neither swept nor ended by time.
    #[must_use]
    pub fn wants_review(&self) -> bool {
        !self.cases.is_empty() || self.is_unconfirmed()
    }

    /// The unpaid order that the last attempt with one has left behind.
    #[must_use]
    pub fn unpaid_order(&self) -> Option<String> {
        let unpaid = |closed: &&ClosedAttempt| {
            matches!(closed.end, AttemptEnd::Declined | AttemptEnd::Escalated) && closed.shop_order.is_some()
        };
        self.closed_attempts.iter().rev().find(unpaid).and_then(|closed| closed.shop_order.clone())
    }

    /// Adds a case, once for each order.
    pub fn open_case(&mut self, case: Case) {
        if let Some(watch) = &mut self.watch
            && !watch.told.contains(&case.shop_order)
        {
            watch.told.push(case.shop_order.clone());
        }
        if !self.cases.iter().any(|known| known.shop_order == case.shop_order) {
            self.cases.push(case);
        }
    }

    /// Leaves the cart behind: it is shown, but not written to again.
    pub fn leave_cart(&mut self) {
        if let Some(cart) = &mut self.cart {
            cart.usable = false;
        }
    }

    /// The lines that are shipped; all of them where the shop does not tell.
    #[must_use]
    pub fn shipped_lines(&self) -> Vec<&Line> {
        let Some(view) = self.cart.as_ref().map(|cart| &cart.view) else {
            return self.lines.iter().collect();
        };
        let keys: Vec<&String> = view.packages.iter().flat_map(|package| &package.line_keys).collect();
        let packed = |line: &&Line| {
            view.lines.iter().any(|shown| shown.product == line.product && keys.contains(&&shown.key))
        };
        let found: Vec<&Line> = self.lines.iter().filter(packed).collect();
        if found.is_empty() { self.lines.iter().collect() } else { found }
    }

    /// Where the shop's mails go: the buyer's address, or the one named with the delivery.
    #[must_use]
    pub fn email(&self) -> Option<&str> {
        let buyer = self.buyer.as_ref().and_then(|buyer| buyer.email.as_deref());
        buyer.or(self.fulfillment.contact.email.as_deref())
    }

    /// Whether the phone number that the shop is told is the buyer's, because the address names none.
    #[must_use]
    pub fn phone_is_the_buyers(&self) -> bool {
        let at_address = self.fulfillment.destination().is_some_and(|to| !to.address.phone.is_empty());
        !at_address && self.buyer.as_ref().is_some_and(|buyer| buyer.phone.is_some())
    }
}

/// One line of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Ours, stable.
    pub id: LineId,
    /// The item id as the caller sent it.
    pub item: String,
    /// What the shop calls it.
    pub product: ProductId,
    /// How many.
    pub quantity: u32,
    /// The caller's own grouping: the line this one belongs to.
    pub parent: Option<LineId>,
    /// What the shop says of it.
    pub shown: ShownLine,
}

/// This line's part of the shop's line (several lines may share one): amounts split by quantity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ShownLine {
    /// Plain text.
    pub title: String,
    /// Article number.
    pub sku: Option<String>,
    /// Absolute address of an image.
    pub image_url: Option<String>,
    /// The shop's price of one, as it displays it.
    pub unit_price: Minor,
    /// Before discounts, net.
    pub subtotal: Minor,
    /// Its tax.
    pub subtotal_tax: Minor,
    /// After discounts, net.
    pub total: Minor,
    /// Its tax.
    pub total_tax: Minor,
    /// The most of it that the shop takes in one order.
    pub maximum: Option<u32>,
    /// Units left, when the shop tells it.
    pub left: Option<u32>,
}

/// Who buys. All parts are the caller's claims.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Buyer {
    /// Given name.
    pub first_name: Option<String>,
    /// Family name.
    pub last_name: Option<String>,
    /// E-mail address: the shop sends the confirmation there.
    pub email: Option<String>,
    /// Phone number.
    pub phone: Option<String>,
    /// Consents as given, by name.
    pub consent: BTreeMap<String, bool>,
}

/// A postal address in the words of the domain; absent parts are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Address {
    /// Given name.
    pub first_name: String,
    /// Family name.
    pub last_name: String,
    /// Company.
    pub company: String,
    /// Street and number.
    pub line_one: String,
    /// Flat, floor and the like.
    pub line_two: String,
    /// Town.
    pub city: String,
    /// State or province: a code or a name.
    pub region: String,
    /// Postcode.
    pub postal_code: String,
    /// ISO 3166-1 alpha-2, upper case.
    pub country: String,
    /// Phone number.
    pub phone: String,
}

/// Where it goes and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fulfillment {
    /// Addresses that the caller named or that are on file.
    pub destinations: Vec<Destination>,
    /// The chosen one.
    pub selected_destination: Option<String>,
    /// What can be chosen, made from the shop's rates; the only way from an option id back to rates.
    pub options: Vec<ShippingOption>,
    /// The option that the caller asked for. The one in effect is the `selected` one of `options`.
    pub chosen_option: Option<String>,
    /// Who is there to receive it, when the caller tells it apart from the address.
    #[serde(default)]
    pub contact: Contact,
}

/// A person at a destination.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contact {
    /// Full name.
    pub name: Option<String>,
    /// Phone number.
    pub phone: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
}

impl Fulfillment {
    /// The address in effect.
    #[must_use]
    pub fn destination(&self) -> Option<&Destination> {
        let id = self.selected_destination.as_deref()?;
        self.destinations.iter().find(|destination| destination.id == id)
    }

    /// The option in effect.
    #[must_use]
    pub fn selected_option(&self) -> Option<&ShippingOption> {
        self.options.iter().find(|option| option.selected)
    }
}

/// An address with a name to choose it by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The caller's id, or ours.
    pub id: String,
    /// The address.
    pub address: Address,
}

/// A way to ship everything: one rate for each package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShippingOption {
    /// The shop's rate id when there is one package, `package/rate` pieces joined by `+` otherwise.
    pub id: String,
    /// Plain text, unlike its siblings.
    pub title: String,
    /// Plain text, may be empty.
    pub description: String,
    /// Net.
    pub price: Minor,
    /// Its tax.
    pub tax: Minor,
    /// Whether the buyer fetches it.
    pub pickup: bool,
    /// Whether it is in effect.
    pub selected: bool,
    /// The rates it stands for.
    pub rates: Vec<RateChoice>,
}

/// The shop's cart of a session, as it was last shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cart {
    /// What it was asked to hold.
    pub plan: CartPlan,
    /// What the shop said.
    pub view: CartView,
    /// When.
    pub read_at: DateTime<Utc>,
    /// Whether it may be written to again. Not after a change whose outcome is unknown, nor after another
    /// owner: the next change makes a new cart.
    pub usable: bool,
}

/// One try to place the order: at most one `POST` of it is ever sent (`exactly-once.md` §3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, stored by its name")]
pub struct Attempt {
    /// 1, 2, …
    pub number: u32,
    /// The claim whose answer this attempt will be; `None` for a call without a key.
    pub claim: Option<String>,
    /// How the answer is to be rendered when no request waits for it any more.
    pub render: Value,
    /// The total that was agreed.
    pub total: Minor,
    /// Where the order's mails go: finds the order at the shop.
    pub email: String,
    /// The payment method asked for.
    pub method: String,
    /// When *placing* was stored.
    pub placing_at: DateTime<Utc>,
    /// Whether the outcome has to be looked for (the answer was lost, or the owner is gone).
    pub settling: bool,
    /// When the shop's cart was emptied as a fence.
    pub fenced_at: Option<DateTime<Utc>>,
    /// Whether a person has to decide.
    pub review: bool,
    /// Whether the caller named a key: only then is the answer kept.
    pub keyed: bool,
    /// The shop's own time of the last look before *placing*: orders that it touched since then are this attempt's.
    #[serde(default)]
    pub checked_at: Option<DateTime<Utc>>,
    /// Whether the process that placed it has let the `POST` go. Told with the outcome, never in between.
    #[serde(default)]
    pub sent: Sent,
    /// The unpaid order of an earlier attempt that this one pays again.
    #[serde(default)]
    pub baseline: Option<String>,
    /// Which of the session's carts it buys with.
    #[serde(default)]
    pub generation: u32,
    /// The units that are pinned for it.
    #[serde(default)]
    pub units: Vec<Units>,
    /// Whether no `POST` of it can run any more, whatever came of it: nobody has to wait for it at the gate.
    #[serde(default)]
    pub is_over: bool,
    /// Its order, where the shop named it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
}

/// Whether a `POST` has left its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Sent {
    /// The process has not said: it may still wake up and send.
    #[default]
    Unknown,
    /// It has, and sends nothing more.
    Yes,
    /// It has not, and never will.
    No,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedAttempt {
    /// Its number.
    pub number: u32,
    /// What came of it.
    pub end: AttemptEnd,
    /// The shop's order it left behind, if any.
    pub shop_order: Option<String>,
    /// When it was over; the next one keeps its distance.
    pub closed_at: DateTime<Utc>,
    /// The units that were pinned for it.
    #[serde(default)]
    pub units: Vec<Units>,
    /// Whether the shop goes on keeping them for the order that it left unpaid.
    #[serde(default)]
    pub shop_keeps_units: bool,
    /// The order that was named before, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptEnd {
    /// The order exists.
    Placed,
    /// The payment was declined.
    Declined,
    /// The shop refused before the payment.
    Refused,
    /// Nothing was made, and nothing can be made any more.
    Fenced,
    /// The buyer has to go on at the shop.
    Escalated,
}

impl AttemptEnd {
    /// One word for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Declined => "declined",
            Self::Refused => "refused",
            Self::Fenced => "fenced",
            Self::Escalated => "escalated",
        }
    }
}

/// The order of a completed session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Public id: `ord_…`.
    pub id: String,
    /// The shop's order id.
    pub shop_order: String,
    /// The number people know it by.
    pub number: String,
    /// The shop's key to it; a secret.
    pub key: String,
    /// The order-received page, absolute https.
    pub permalink_url: String,
    /// Paid, or accepted and to be paid.
    pub paid: bool,
    /// What was charged.
    pub total: Minor,
}
