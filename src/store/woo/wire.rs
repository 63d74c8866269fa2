//! The shapes of `wc/store/v1` and `wc/v3` as far as we read or send them.
//!
//! Strict about what is used, blind to the rest: unknown members are ignored, and members that PHP writes in
//! two ways (number or text, list or object) are taken in both.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::checkout::{cart::Customer, session::Address};

/// An address as the shop takes it. `email` only on the bill.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WireAddress {
    first_name: String,
    last_name: String,
    company: String,
    address_1: String,
    address_2: String,
    city: String,
    state: String,
    postcode: String,
    country: String,
    phone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
}

impl WireAddress {
    fn new(address: &Address, email: Option<String>) -> Self {
        // Every key is sent, empty ones too: the shop merges, and would keep an old state or postcode.
        Self {
            first_name: address.first_name.clone(),
            last_name: address.last_name.clone(),
            company: address.company.clone(),
            address_1: address.line_one.clone(),
            address_2: address.line_two.clone(),
            city: address.city.clone(),
            state: address.region.clone(),
            postcode: address.postal_code.clone(),
            country: address.country.clone(),
            phone: address.phone.clone(),
            email,
        }
    }
}

/// Both addresses: the body of `update-customer`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WireCustomer {
    pub(super) billing_address: WireAddress,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shipping_address: Option<WireAddress>,
}

impl From<&Customer> for WireCustomer {
    fn from(customer: &Customer) -> Self {
        let email = customer.email.clone().unwrap_or_default();
        Self {
            billing_address: WireAddress::new(&customer.billing, Some(email)),
            shipping_address: customer.shipping.as_ref().map(|address| WireAddress::new(address, None)),
        }
    }
}

/// An error body. `data` is an object, a number or null.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ApiError {
    #[serde(deserialize_with = "text")]
    pub(super) code: String,
    #[serde(default)]
    pub(super) data: Value,
}

/// One answer inside a batch.
#[derive(Debug, Deserialize)]
pub(super) struct Inner {
    pub(super) status: u16,
    #[serde(default)]
    headers: Value,
    #[serde(default)]
    pub(super) body: Value,
}

impl Inner {
    /// The token that this answer brings. `headers` is a list when there are none.
    pub(super) fn token(&self) -> Option<&str> {
        let headers = self.headers.as_object()?;
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(super::token::HEADER));
        found.and_then(|(_, value)| value.as_str())
    }
}

/// The answer of `POST /batch`.
#[derive(Debug, Deserialize)]
pub(super) struct BatchAnswer {
    pub(super) responses: Vec<Inner>,
}

/// A cart.
#[derive(Debug, Deserialize)]
pub(super) struct Cart {
    pub(super) items: Vec<Item>,
    #[serde(default)]
    pub(super) coupons: Vec<Coupon>,
    #[serde(default)]
    pub(super) fees: Vec<Fee>,
    pub(super) totals: Totals,
    #[serde(default)]
    pub(super) shipping_rates: Vec<Package>,
    #[serde(default)]
    pub(super) billing_address: Value,
    pub(super) needs_payment: bool,
    pub(super) needs_shipping: bool,
    #[serde(default)]
    pub(super) payment_methods: Vec<String>,
    #[serde(default)]
    pub(super) errors: Vec<ApiError>,
}

/// A line of a cart or an order.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    #[serde(deserialize_with = "text")]
    pub(super) key: String,
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    #[serde(deserialize_with = "whole")]
    pub(super) quantity: u32,
    pub(super) quantity_limits: QuantityLimits,
    pub(super) name: String,
    #[serde(default)]
    pub(super) sku: Option<String>,
    #[serde(default)]
    pub(super) low_stock_remaining: Value,
    #[serde(default)]
    pub(super) images: Value,
    #[serde(default)]
    pub(super) variation: Value,
    pub(super) prices: Prices,
    pub(super) totals: LineTotals,
}

#[derive(Debug, Deserialize)]
pub(super) struct QuantityLimits {
    #[serde(deserialize_with = "whole")]
    pub(super) minimum: u32,
    #[serde(deserialize_with = "whole")]
    pub(super) maximum: u32,
    #[serde(deserialize_with = "whole")]
    pub(super) multiple_of: u32,
}

/// Which currency an amount is in, and with how many decimals it is counted.
#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    pub(super) currency_code: String,
    pub(super) currency_minor_unit: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Prices {
    #[serde(deserialize_with = "text")]
    pub(super) price: String,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

#[derive(Debug, Deserialize)]
pub(super) struct LineTotals {
    #[serde(deserialize_with = "text")]
    pub(super) line_subtotal: String,
    #[serde(deserialize_with = "text")]
    pub(super) line_subtotal_tax: String,
    #[serde(deserialize_with = "text")]
    pub(super) line_total: String,
    #[serde(deserialize_with = "text")]
    pub(super) line_total_tax: String,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

#[derive(Debug, Deserialize)]
pub(super) struct Coupon {
    #[serde(deserialize_with = "text")]
    pub(super) code: String,
    /// `percent`, `fixed_cart`, `fixed_product`, or a plugin's own.
    #[serde(default)]
    pub(super) discount_type: String,
    pub(super) totals: CouponTotals,
}

#[derive(Debug, Deserialize)]
pub(super) struct CouponTotals {
    #[serde(deserialize_with = "text")]
    pub(super) total_discount: String,
    #[serde(deserialize_with = "text")]
    pub(super) total_discount_tax: String,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

#[derive(Debug, Deserialize)]
pub(super) struct Fee {
    pub(super) name: String,
    pub(super) totals: FeeTotals,
}

#[derive(Debug, Deserialize)]
pub(super) struct FeeTotals {
    #[serde(deserialize_with = "text")]
    pub(super) total: String,
    #[serde(deserialize_with = "text")]
    pub(super) total_tax: String,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

/// The sums of a cart.
#[derive(Debug, Deserialize)]
pub(super) struct Totals {
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) total_shipping: Option<String>,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) total_shipping_tax: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) total_tax: String,
    #[serde(deserialize_with = "text")]
    pub(super) total_price: String,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

#[derive(Debug, Deserialize)]
pub(super) struct Package {
    #[serde(rename = "package_id", deserialize_with = "text")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) items: Vec<PackageItem>,
    #[serde(default)]
    pub(super) shipping_rates: Vec<Rate>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PackageItem {
    #[serde(deserialize_with = "text")]
    pub(super) key: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rate {
    #[serde(rename = "rate_id")]
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) description: String,
    #[serde(deserialize_with = "text")]
    pub(super) price: String,
    #[serde(deserialize_with = "text")]
    pub(super) taxes: String,
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) method_id: String,
    pub(super) selected: bool,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

/// The answer of `POST /checkout`.
#[derive(Debug, Deserialize)]
pub(super) struct Checkout {
    #[serde(deserialize_with = "text")]
    pub(super) order_id: String,
    pub(super) status: String,
    pub(super) order_key: String,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) order_number: Option<String>,
    #[serde(default)]
    pub(super) payment_result: Option<PaymentResult>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PaymentResult {
    #[serde(default, deserialize_with = "text_or_empty")]
    pub(super) payment_status: String,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) redirect_url: Option<String>,
}

/// The answer of `GET /order/{id}`.
#[derive(Debug, Deserialize)]
pub(super) struct Order {
    #[serde(default)]
    pub(super) status: String,
    pub(super) items: Vec<OrderItem>,
    pub(super) totals: OrderTotals,
}

/// A line of an order: no product id here, and more shapes than in a cart.
#[derive(Debug, Deserialize)]
pub(super) struct OrderItem {
    #[serde(deserialize_with = "whole")]
    pub(super) quantity: u32,
    pub(super) totals: LineTotals,
}

#[derive(Debug, Deserialize)]
pub(super) struct OrderTotals {
    #[serde(deserialize_with = "text")]
    pub(super) total_price: String,
    #[serde(deserialize_with = "text")]
    pub(super) total_items: String,
    #[serde(deserialize_with = "text")]
    pub(super) total_items_tax: String,
    #[serde(flatten)]
    pub(super) unit: Unit,
}

/// A product, as far as a look-up by article number needs it.
#[derive(Debug, Deserialize)]
pub(super) struct Product {
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) sku: Option<String>,
}

/// An order of `wc/v3`; its meta is looked at before this shape is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct V3Order {
    #[serde(deserialize_with = "text")]
    pub(super) id: String,
    pub(super) status: String,
    #[serde(deserialize_with = "text")]
    pub(super) total: String,
    pub(super) date_modified_gmt: String,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) order_key: Option<String>,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) number: Option<String>,
    #[serde(default, deserialize_with = "text_or_null")]
    pub(super) transaction_id: Option<String>,
    #[serde(default)]
    pub(super) line_items: Vec<V3Line>,
}

/// A line of an order in `wc/v3`: only what tells whether its stock is taken.
#[derive(Debug, Deserialize)]
pub(super) struct V3Line {
    #[serde(default)]
    pub(super) meta_data: Vec<V3Meta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct V3Meta {
    #[serde(default)]
    pub(super) key: Value,
}

/// A text, or a number written as one.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_or_null(deserializer)?.ok_or_else(|| D::Error::custom("a text or a number is missing"))
}

pub(super) fn text_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_or_null(deserializer).map(Option::unwrap_or_default)
}

pub(super) fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(D::Error::custom("neither a text nor a number")),
    }
}

/// A whole number of things; `2`, `2.0` and `"2"` are one.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    as_whole(&value).ok_or_else(|| D::Error::custom("not a whole number"))
}

/// See [`whole`]. A number beyond `u32` is the largest `u32`: it is a limit that nobody reaches.
pub(super) fn as_whole(value: &Value) -> Option<u32> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let (digits, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
    if !fraction.chars().all(|c| c == '0') {
        return None;
    }
    digits.parse::<u64>().ok().map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}
