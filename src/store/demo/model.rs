//! The shop's records: products, coupons, sessions, orders, settings.
//!
//! Amounts are `i64`: *micros* (millionths of the major unit) for prices, so that 10.005 fits, and *minor*
//! units everywhere else. Times are UTC. Everything here is plain data and survives a restart.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// What kind of thing a product is; decides how it can be bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) enum Kind {
    #[default]
    Simple,
    Variable,
    Variation,
    Grouped,
    External,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Variable => "variable",
            Self::Variation => "variation",
            Self::Grouped => "grouped",
            Self::External => "external",
        }
    }
}

/// Which of a country's two tax rates applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) enum TaxClass {
    #[default]
    Standard,
    Reduced,
}

/// An id with its name and slug: a category, or a term of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Term {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) slug: String,
}

/// An attribute of a variable product, say size, with the values it can take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attribute {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) taxonomy: String,
    pub(super) terms: Vec<Term>,
}

/// One product or variation.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a WooCommerce product are independent")]
pub(super) struct Product {
    pub(super) id: u64,
    /// The variable parent of a variation, 0 otherwise.
    pub(super) parent: u64,
    pub(super) name: String,
    pub(super) slug: String,
    pub(super) kind: Kind,
    pub(super) sku: String,
    pub(super) short_description: String,
    pub(super) description: String,
    /// Micros; `None` for a product without a price.
    pub(super) regular: Option<i64>,
    /// Micros; `None` when not on sale.
    pub(super) sale: Option<i64>,
    pub(super) manage_stock: bool,
    /// Physical stock; of meaning only with `manage_stock`.
    pub(super) stock: i64,
    /// Whether its product manages its stock: what it shows of it is the product's.
    #[serde(default)]
    pub(super) by_parent: bool,
    /// Whether the last write of its stock left no more than counts as none.
    #[serde(default)]
    pub(super) below: bool,
    /// The merchant's flag for a product whose stock is not managed.
    pub(super) out_of_stock: bool,
    pub(super) backorders: bool,
    /// From which stock on the shop says how many are left.
    pub(super) low_stock: Option<i64>,
    pub(super) sold_individually: bool,
    pub(super) is_virtual: bool,
    pub(super) downloadable: bool,
    pub(super) minimum: Option<i64>,
    pub(super) maximum: Option<i64>,
    pub(super) multiple_of: Option<i64>,
    pub(super) tax_class: TaxClass,
    /// Ten-thousandths of a gram.
    pub(super) weight: i64,
    pub(super) categories: Vec<Term>,
    /// Of a variable product.
    pub(super) attributes: Vec<Attribute>,
    /// Of a variation: taxonomy to slug, in the parent's order.
    pub(super) options: Vec<(String, String)>,
    /// Of a grouped product.
    pub(super) grouped: Vec<u64>,
    /// Of an external product: where it is sold, and the button's text.
    pub(super) external: Option<(String, String)>,
    pub(super) draft: bool,
    /// File name of the picture below `wp-content/uploads`.
    pub(super) image: String,
    pub(super) modified: DateTime<Utc>,
    pub(super) created: DateTime<Utc>,
    pub(super) total_sales: i64,
    /// Name and SKU in lower case, where a search looks; follows from the rest.
    #[serde(skip)]
    pub(super) search: String,
}

impl Product {
    /// What a unit costs now, in micros.
    pub(super) fn price(&self) -> Option<i64> {
        self.sale.or(self.regular)
    }

    pub(super) const fn in_stock(&self) -> bool {
        if self.manage_stock {
            (self.stock > 0 && !self.below) || self.backorders
        } else {
            !self.out_of_stock
        }
    }

    /// Whether its stock limits what can be sold.
    pub(super) const fn limited(&self) -> bool {
        self.manage_stock && !self.backorders
    }

    pub(super) fn purchasable(&self) -> bool {
        !self.draft
            && match self.kind {
                Kind::Simple | Kind::Variation => self.price().is_some(),
                Kind::Variable => true,
                Kind::Grouped | Kind::External => false,
            }
    }
}

/// How a coupon's amount is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DiscountType {
    Percent,
    FixedCart,
    FixedProduct,
}

impl DiscountType {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Percent => "percent",
            Self::FixedCart => "fixed_cart",
            Self::FixedProduct => "fixed_product",
        }
    }

    /// In which order the shop takes them off: single products first, the whole cart last.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Self::FixedProduct => 1,
            Self::Percent => 2,
            Self::FixedCart => 3,
        }
    }
}

/// A coupon. Its code is kept in lower case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Coupon {
    pub(super) id: u64,
    pub(super) code: String,
    pub(super) kind: DiscountType,
    /// Per cent, or hundredths of the major unit.
    pub(super) amount: i64,
    pub(super) free_shipping: bool,
    pub(super) individual_use: bool,
    pub(super) expired: bool,
    /// Least subtotal, hundredths of the major unit.
    pub(super) minimum: Option<i64>,
    /// How many orders may still use it.
    pub(super) uses_left: Option<i64>,
    /// How many units of a cart it touches at most.
    pub(super) item_limit: Option<i64>,
    /// The products it is for; empty for all.
    pub(super) products: Vec<u64>,
}

/// A postal address; `email` is used by billing only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[expect(clippy::struct_field_names, reason = "the members have the names they have on the wire")]
pub(super) struct Address {
    pub(super) first_name: String,
    pub(super) last_name: String,
    pub(super) company: String,
    pub(super) address_1: String,
    pub(super) address_2: String,
    pub(super) city: String,
    pub(super) state: String,
    pub(super) postcode: String,
    pub(super) country: String,
    pub(super) phone: String,
    pub(super) email: String,
    /// Fields that a plugin adds, by id.
    #[serde(default)]
    pub(super) extra: BTreeMap<String, String>,
}

/// One line of a cart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CartLine {
    /// 32 hex digits, made from product and variation.
    pub(super) key: String,
    pub(super) product: u64,
    pub(super) quantity: i64,
}

/// What the shop remembers behind a Cart-Token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Session {
    pub(super) lines: Vec<CartLine>,
    pub(super) coupons: Vec<String>,
    pub(super) billing: Address,
    pub(super) shipping: Address,
    /// The rate asked for last, by package.
    #[serde(default)]
    pub(super) choices: BTreeMap<String, String>,
    /// The packages and the rates that were on offer last; a change resets the choices.
    #[serde(default)]
    pub(super) packages: Vec<(String, Vec<String>)>,
    pub(super) payment_method: Option<String>,
    /// The draft, pending or failed order of this cart.
    pub(super) order: Option<u64>,
}

/// An order's status, by its `WooCommerce` name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    CheckoutDraft,
    Pending,
    OnHold,
    Processing,
    Completed,
    Cancelled,
    Refunded,
    Failed,
    Trash,
}

impl Status {
    pub(super) const ALL: [Self; 9] = [
        Self::CheckoutDraft,
        Self::Pending,
        Self::OnHold,
        Self::Processing,
        Self::Completed,
        Self::Cancelled,
        Self::Refunded,
        Self::Failed,
        Self::Trash,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::CheckoutDraft => "checkout-draft",
            Self::Pending => "pending",
            Self::OnHold => "on-hold",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Refunded => "refunded",
            Self::Failed => "failed",
            Self::Trash => "trash",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the order's stock has been taken off.
    pub(super) const fn takes_stock(self) -> bool {
        matches!(self, Self::OnHold | Self::Processing | Self::Completed)
    }

    /// Whether a hold of this order counts.
    pub(super) const fn holds(self) -> bool {
        matches!(self, Self::CheckoutDraft | Self::Pending)
    }

    pub(super) const fn payable(self) -> bool {
        matches!(self, Self::Pending | Self::Failed)
    }
}

/// Stock kept back for an order that is not paid yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hold {
    pub(super) product: u64,
    pub(super) quantity: i64,
    pub(super) since: DateTime<Utc>,
    pub(super) expires: DateTime<Utc>,
}

/// One line of an order; amounts in minor units, net.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OrderLine {
    pub(super) id: u64,
    pub(super) product: u64,
    pub(super) name: String,
    pub(super) sku: String,
    pub(super) quantity: i64,
    /// Micros for one unit at the time of the order: price and regular price.
    pub(super) price: i64,
    pub(super) regular: i64,
    pub(super) subtotal: i64,
    pub(super) subtotal_tax: i64,
    pub(super) total: i64,
    pub(super) total_tax: i64,
    pub(super) tax_class: TaxClass,
    /// Units taken off the stock, 0 while none are.
    pub(super) reduced: i64,
    /// Units put back with a refund.
    #[serde(default)]
    pub(super) restocked: i64,
}

/// A fee of an order; amounts in minor units, net.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FeeLine {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) total: i64,
    pub(super) tax: i64,
}

/// Money paid back; `amount` in minor units, `None` for a refund of nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Refund {
    pub(super) id: u64,
    pub(super) reason: String,
    pub(super) amount: Option<i64>,
}

fn store_api() -> String {
    "store-api".to_owned()
}

/// The chosen shipping rate of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ShippingLine {
    pub(super) id: u64,
    pub(super) rate_id: String,
    pub(super) title: String,
    pub(super) total: i64,
    pub(super) tax: i64,
    pub(super) items: String,
}

/// A coupon as an order keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CouponLine {
    pub(super) id: u64,
    pub(super) code: String,
    pub(super) kind: DiscountType,
    pub(super) amount: i64,
    pub(super) free_shipping: bool,
    pub(super) discount: i64,
    pub(super) tax: i64,
}

/// One tax of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaxLine {
    pub(super) id: u64,
    pub(super) rate_id: u64,
    pub(super) country: String,
    pub(super) name: String,
    pub(super) percent: i64,
    pub(super) items: i64,
    pub(super) shipping: i64,
}

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) id: u64,
    pub(super) key: String,
    pub(super) status: Status,
    pub(super) created: DateTime<Utc>,
    pub(super) modified: DateTime<Utc>,
    pub(super) paid: Option<DateTime<Utc>>,
    pub(super) completed: Option<DateTime<Utc>>,
    pub(super) billing: Address,
    pub(super) shipping: Address,
    pub(super) payment_method: String,
    pub(super) transaction_id: String,
    pub(super) note: String,
    pub(super) lines: Vec<OrderLine>,
    /// One for each package.
    #[serde(default)]
    pub(super) shipping_lines: Vec<ShippingLine>,
    /// Additional fields of the contact and the order.
    #[serde(default)]
    pub(super) fields: BTreeMap<String, serde_json::Value>,
    pub(super) coupons: Vec<CouponLine>,
    pub(super) taxes: Vec<TaxLine>,
    pub(super) needs_shipping: bool,
    pub(super) discount: i64,
    pub(super) discount_tax: i64,
    pub(super) total: i64,
    pub(super) total_tax: i64,
    pub(super) refunded: i64,
    #[serde(default)]
    pub(super) refunds: Vec<Refund>,
    #[serde(default)]
    pub(super) fees: Vec<FeeLine>,
    /// Where it was placed: `store-api`, or `checkout` for the shop's own page.
    #[serde(default = "store_api")]
    pub(super) created_via: String,
    /// Rows of meta that a client wrote: id, key, value.
    #[serde(default)]
    pub(super) meta: Vec<(u64, String, String)>,
    /// Whether the uses of its coupons are counted.
    #[serde(default)]
    pub(super) counted: bool,
    /// Whether the request that placed it came to its end.
    #[serde(default)]
    pub(super) ended: bool,
    /// The cart it was made from; decides whether a later try may use it again.
    pub(super) cart_hash: String,
    /// The order attribution of the first POST; later ones do not change it.
    pub(super) attribution: Option<BTreeMap<String, String>>,
    /// First of the ids that its meta rows use.
    pub(super) meta_id: u64,
}

impl Order {
    /// What shipping costs and its tax, over all packages.
    pub(super) fn shipping_sums(&self) -> (i64, i64) {
        let sum = |pick: fn(&ShippingLine) -> i64| self.shipping_lines.iter().map(pick).sum();
        (sum(|line| line.total), sum(|line| line.tax))
    }

    /// The correlation id an agent sent along, if any.
    pub(super) fn utm_id(&self) -> &str {
        self.attribution.as_ref().and_then(|fields| fields.get("utm_id")).map_or("", String::as_str)
    }
}

/// A limit on calls, as the shop's own limiter has it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct RateLimit {
    pub(super) limit: i64,
    pub(super) seconds: i64,
    pub(super) window: i64,
    pub(super) used: i64,
}

/// How a plugin parts a cart with food and other goods into two packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) enum Parcels {
    #[default]
    One,
    Numbered,
    Named,
}

/// What a merchant can switch while the shop runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the shop are independent")]
pub(super) struct Settings {
    pub(super) currency: String,
    pub(super) decimals: u32,
    pub(super) guest_checkout: bool,
    pub(super) maintenance: bool,
    pub(super) plugin_off: bool,
    pub(super) session_seconds: i64,
    pub(super) hold_minutes: i64,
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) pickup_location: Option<String>,
    /// Whether prices are entered with the tax of the shop's own town in them.
    #[serde(default)]
    pub(super) entered_with_tax: bool,
    /// Whether prices are shown with tax.
    #[serde(default)]
    pub(super) shown_with_tax: bool,
    /// Whether a plugin adds fields to the checkout.
    #[serde(default)]
    pub(super) extra_fields: bool,
    #[serde(default)]
    pub(super) parcels: Parcels,
    /// Down to which stock a product counts as out of stock; takes effect when its stock is written.
    #[serde(default)]
    pub(super) no_stock_amount: i64,
    /// How far shop time is ahead of UTC.
    #[serde(default)]
    pub(super) utc_offset_hours: i64,
    /// How far `wait` has moved the shop's clock.
    pub(super) clock_offset_seconds: i64,
    /// 32 bytes in hex: signs Cart-Tokens.
    pub(super) secret: String,
    pub(super) next_order: u64,
    pub(super) next_item: u64,
    pub(super) next_meta: u64,
    /// Whether coupons come off what the ones before left.
    pub(super) sequential: bool,
}
