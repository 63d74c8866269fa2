//! What we want of the shop's cart ([`CartPlan`]) and what the shop says of it ([`CartView`]).
//!
//! Neutral shapes: no WooCommerce word and no protocol word. All amounts are minor units of
//! [`CartView::currency`], each within ±(2^53 − 1), checked where they enter (see [`crate::money`]).

use serde::{Deserialize, Serialize};

use super::{ids::ProductId, session::Address};
use crate::money::Currency;

/// An amount in ISO 4217 minor units of the currency that stands beside it.
pub type Minor = i64;

/// What the cart shall hold. The store brings the cart there in as few calls as it can.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CartPlan {
    /// One entry a product; quantities of equal items are already summed.
    pub lines: Vec<PlannedLine>,
    /// Coupon codes as the caller spelled them, in order.
    pub codes: Vec<String>,
    /// Who buys and where it goes; `None` until something is known.
    pub customer: Option<Customer>,
    /// The chosen rate of each package; empty leaves the choice to the shop.
    pub rates: Vec<RateChoice>,
}

/// A product and how many of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLine {
    /// What to buy.
    pub product: ProductId,
    /// How many, at least 1.
    pub quantity: u32,
}

/// Who buys and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// The bill's address.
    pub billing: Address,
    /// The parcel's address; `None` when nothing is shipped.
    pub shipping: Option<Address>,
    /// Where the shop sends its mails.
    pub email: Option<String>,
}

/// The rate taken for one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateChoice {
    /// The package, as the shop names it (a number or a text).
    pub package: String,
    /// The rate, as the shop names it.
    pub rate: String,
}

/// The key to a cart at the shop. Opaque to the domain; a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CartHandle {
    /// The newest bearer token of the cart.
    pub token: String,
    /// Which cart the token opens: stays the same while the cart lives.
    pub identity: String,
}

impl std::fmt::Debug for CartHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CartHandle").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// The cart as the shop told it last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CartView {
    /// The key to it, renewed by every answer.
    pub handle: CartHandle,
    /// The shop's currency.
    pub currency: Currency,
    /// The lines, in the shop's order.
    pub lines: Vec<CartLine>,
    /// Coupons in effect, in the shop's spelling.
    pub coupons: Vec<CartCoupon>,
    /// Fees; an amount may be negative.
    pub fees: Vec<Fee>,
    /// The sums.
    pub totals: CartTotals,
    /// What is shipped together, with the rates on offer.
    pub packages: Vec<Package>,
    /// Whether anything has to be shipped.
    pub needs_shipping: bool,
    /// Whether anything has to be paid.
    pub needs_payment: bool,
    /// Payment methods that the shop takes for this cart now.
    pub payment_methods: Vec<String>,
    /// What the shop would refuse at checkout, by its own code.
    pub warnings: Vec<String>,
    /// Steps of the plan that the shop refused; the others stand.
    pub refusals: Vec<Refusal>,
}

/// A line of the shop's cart. Net amounts and their taxes are apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CartLine {
    /// The shop's own name of the line.
    pub key: String,
    /// What is bought.
    pub product: ProductId,
    /// The merchant's article number, if there is one.
    pub sku: Option<String>,
    /// Plain text: entities decoded, tags stripped; a variation carries its attributes.
    pub title: String,
    /// The first image, absolute.
    pub image_url: Option<String>,
    /// How many.
    pub quantity: u32,
    /// The quantities that the shop takes.
    pub limits: Limits,
    /// Units left, when the shop tells it.
    pub left: Option<u32>,
    /// The price of one as the shop displays it (with or without tax by its own setting).
    pub unit_price: Minor,
    /// Whether [`CartLine::unit_price`] includes tax.
    pub unit_price_with_tax: bool,
    /// All units before discounts, net.
    pub subtotal: Minor,
    /// The tax on [`CartLine::subtotal`].
    pub subtotal_tax: Minor,
    /// All units after discounts, net.
    pub total: Minor,
    /// The tax on [`CartLine::total`].
    pub total_tax: Minor,
}

/// The quantities that the shop takes of one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Not fewer.
    pub minimum: u32,
    /// Not more.
    pub maximum: u32,
    /// A multiple of this.
    pub step: u32,
}

/// A coupon in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CartCoupon {
    /// In the shop's spelling (lower case).
    pub code: String,
    /// What it takes off, net, positive.
    pub discount: Minor,
    /// The tax that goes with it, positive.
    pub discount_tax: Minor,
    /// Whether it takes something off single items rather than off the cart as a whole. Sessions stored before
    /// this was kept do not say it.
    #[serde(default)]
    pub per_item: bool,
}

/// A fee of the shop; negative ones are discounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fee {
    /// Plain text.
    pub name: String,
    /// Net.
    pub amount: Minor,
    /// Its tax.
    pub tax: Minor,
}

/// The cart's sums. Net and tax apart; [`CartTotals::total`] is what is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CartTotals {
    /// Shipping, net; `None` while the shop has not worked it out.
    pub shipping: Option<Minor>,
    /// The tax on shipping.
    pub shipping_tax: Minor,
    /// All tax.
    pub tax: Minor,
    /// What the buyer pays.
    pub total: Minor,
}

/// Things shipped together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// As the shop names it (a number or a text).
    pub id: String,
    /// Plain text.
    pub name: String,
    /// The cart lines in it, by [`CartLine::key`].
    pub line_keys: Vec<String>,
    /// What can be chosen; empty when nothing ships there.
    pub rates: Vec<Rate>,
}

/// A way to ship one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// As the shop names it.
    pub id: String,
    /// Plain text.
    pub title: String,
    /// Plain text, may be empty.
    pub description: String,
    /// Net.
    pub price: Minor,
    /// Its tax.
    pub tax: Minor,
    /// Whether the buyer fetches it.
    pub pickup: bool,
    /// Whether the shop has it chosen.
    pub selected: bool,
}

/// A step of the plan that the shop refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// A product could not be put into the cart, or not in that number.
    Item {
        /// Which.
        product: ProductId,
        /// Why.
        reason: ItemReason,
    },
    /// A coupon was not taken.
    Code {
        /// As the caller spelled it.
        code: String,
        /// Why.
        reason: CodeReason,
    },
    /// The address was not taken.
    Address {
        /// Which part, when the shop says so.
        field: Option<AddressField>,
    },
    /// A rate was not taken, or is not on offer any more.
    Rate {
        /// Which.
        rate: String,
    },
}

/// Why a product was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ItemReason {
    /// The shop does not know it.
    Unknown,
    /// Nothing left.
    SoldOut,
    /// Fewer left than asked for; how many, when the shop tells.
    FewerLeft(Option<u32>),
    /// Known but not for sale this way (draft, no price, external, grouped).
    NotForSale,
    /// The product comes in variants, and none was named.
    ChooseVariant,
    /// The number breaks a rule of the shop (minimum, maximum, step).
    Quantity,
}

/// Why a coupon was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeReason {
    /// The shop knows no such code, or it does not apply here.
    Invalid,
    /// Its time is over.
    Expired,
    /// It is in the cart already.
    AlreadyApplied,
    /// It does not go with another code.
    Combination,
    /// The cart is below its minimum.
    MinimumNotMet,
    /// It has been used as often as it may.
    UsageLimit,
    /// Not for this buyer.
    Buyer,
}

/// A part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressField {
    /// Country code.
    Country,
    /// State, province.
    Region,
    /// Postcode.
    PostalCode,
    /// Phone number.
    Phone,
    /// E-mail address.
    Email,
}
