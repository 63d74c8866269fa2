//! The shapes of answers (`checkout.json` with fulfillment, discount and buyer consent). Absent members are
//! left out, never null, except where the schema has null for "nothing chosen".

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::messages::Message;
use crate::checkout::{cart::Minor, session};

#[derive(Debug, Serialize)]
pub(super) struct Checkout<'a> {
    pub ucp: Envelope,
    pub id: &'a str,
    pub status: &'static str,
    pub currency: &'static str,
    pub line_items: Vec<LineItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buyer: Option<Buyer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discounts: Option<Discounts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fulfillment: Option<Fulfillment<'a>>,
    pub totals: Vec<Total>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    pub links: Vec<Link<'a>>,
    pub payment: Payment<'a>,
    pub expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continue_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order<'a>>,
}

/// The error shape: no other member is allowed.
#[derive(Debug, Serialize)]
pub(super) struct Nothing {
    pub ucp: Envelope,
    pub messages: Vec<Message>,
    pub continue_url: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Envelope {
    pub version: &'static str,
    pub status: &'static str,
    pub capabilities: BTreeMap<String, [Versioned; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_handlers: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Versioned {
    pub version: String,
}

#[derive(Debug, Serialize)]
pub(super) struct LineItem<'a> {
    pub id: &'a str,
    pub item: Item<'a>,
    pub quantity: u32,
    pub totals: Vec<Total>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Item<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub price: Minor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Total {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_text: Option<String>,
    pub amount: Minor,
}

#[derive(Debug, Serialize)]
pub(super) struct Buyer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<&'a BTreeMap<String, bool>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Discounts<'a> {
    pub codes: &'a [String],
    pub applied: Vec<AppliedDiscount>,
}

#[derive(Debug, Serialize)]
pub(super) struct AppliedDiscount {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub title: String,
    pub amount: Minor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<Allocation>,
}

#[derive(Debug, Serialize)]
pub(super) struct Allocation {
    pub path: String,
    pub amount: Minor,
}

#[derive(Debug, Serialize)]
pub(super) struct Fulfillment<'a> {
    pub methods: [Method<'a>; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct Method<'a> {
    pub id: &'static str,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub line_item_ids: Vec<&'a str>,
    pub destinations: Vec<Destination<'a>>,
    pub selected_destination_id: Option<&'a str>,
    pub groups: Vec<Group<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Destination<'a> {
    pub id: &'a str,
    #[serde(flatten)]
    pub address: Address<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct Group<'a> {
    pub id: &'static str,
    pub line_item_ids: Vec<&'a str>,
    pub options: Vec<FulfillmentOption<'a>>,
    pub selected_option_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct FulfillmentOption<'a> {
    pub id: &'a str,
    pub title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    pub totals: [Total; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct Link<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub url: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Payment<'a> {
    pub instruments: &'a [Value],
}

#[derive(Debug, Serialize)]
pub(super) struct Order<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub label: &'a str,
    pub permalink_url: &'a str,
}

/// A postal address; empty parts are left out.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the schema")]
pub(super) struct Address<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub first_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub last_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub street_address: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub extended_address: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub address_locality: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub address_region: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub postal_code: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub address_country: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub phone_number: &'a str,
}

impl<'a> Address<'a> {
    pub(super) fn of(address: &'a session::Address) -> Self {
        Self {
            first_name: &address.first_name,
            last_name: &address.last_name,
            street_address: &address.line_one,
            extended_address: &address.line_two,
            address_locality: &address.city,
            address_region: &address.region,
            postal_code: &address.postal_code,
            address_country: &address.country,
            phone_number: &address.phone,
        }
    }
}
