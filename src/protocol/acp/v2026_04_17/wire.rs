//! The session as it goes out. Closed: what the version does not list cannot be said, and nothing is null.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::protocol::acp) struct Session {
    pub(super) id: String,
    pub(super) protocol: Protocol,
    pub(super) status: &'static str,
    pub(super) currency: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timezone: Option<String>,
    pub(super) capabilities: Capabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) buyer: Option<Buyer>,
    pub(super) line_items: Vec<LineItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fulfillment_details: Option<FulfillmentDetails>,
    pub(super) fulfillment_options: Vec<FulfillmentOption>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) selected_fulfillment_options: Vec<SelectedOption>,
    pub(super) totals: Vec<Total>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) discounts: Option<Discounts>,
    pub(super) messages: Vec<Message>,
    pub(super) links: Vec<Link>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continue_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quote_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<Order>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Protocol {
    pub(super) version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Capabilities {
    pub(super) payment: Payment,
    pub(super) interventions: Interventions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) extensions: Vec<Extension>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Payment {
    pub(super) handlers: Vec<Handler>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Handler {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<String>,
    pub(super) version: String,
    pub(super) spec: String,
    pub(super) requires_delegate_payment: bool,
    pub(super) requires_pci_compliance: bool,
    pub(super) psp: String,
    pub(super) config_schema: String,
    pub(super) instrument_schemas: Vec<String>,
    pub(super) config: Map<String, Value>,
    pub(super) display_order: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Interventions {
    pub(super) supported: Vec<String>,
    pub(super) required: Vec<String>,
    pub(super) enforcement: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Extension {
    pub(super) name: &'static str,
    pub(super) extends: &'static [&'static str],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Buyer {
    pub(super) email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) phone_number: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LineItem {
    pub(super) id: String,
    pub(super) item: Item,
    pub(super) quantity: u32,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) images: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unit_amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) available_quantity: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_quantity_per_order: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_id: Option<String>,
    pub(super) totals: Vec<Total>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Item {
    pub(super) id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Total {
    pub(super) r#type: TotalType,
    pub(super) display_text: String,
    pub(super) amount: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<&'static str>,
}

impl Total {
    pub(super) fn new(r#type: TotalType, display_text: impl Into<String>, amount: i64) -> Self {
        Self { r#type, display_text: display_text.into(), amount, description: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TotalType {
    ItemsBaseAmount,
    ItemsDiscount,
    Subtotal,
    Discount,
    Fulfillment,
    Tax,
    Fee,
    Total,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FulfillmentDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) phone_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<Address>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Address {
    pub(super) name: String,
    pub(super) line_one: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) line_two: String,
    pub(super) city: String,
    pub(super) state: String,
    pub(super) country: String,
    pub(super) postal_code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) company: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FulfillmentType {
    Shipping,
    Digital,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FulfillmentOption {
    pub(super) r#type: FulfillmentType,
    pub(super) id: String,
    pub(super) title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    pub(super) totals: Vec<Total>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SelectedOption {
    pub(super) r#type: FulfillmentType,
    pub(super) option_id: String,
    pub(super) item_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Discounts {
    pub(super) codes: Vec<String>,
    pub(super) applied: Vec<AppliedDiscount>,
    pub(super) rejected: Vec<RejectedDiscount>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AppliedDiscount {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
    pub(super) coupon: Coupon,
    pub(super) amount: i64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) automatic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) allocations: Vec<Allocation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Coupon {
    pub(super) id: String,
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Allocation {
    pub(super) path: String,
    pub(super) amount: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RejectedDiscount {
    pub(super) code: String,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Message {
    pub(super) r#type: MessageType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<&'static str>,
    pub(super) severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resolution: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) param: Option<String>,
    pub(super) content_type: &'static str,
    pub(super) content: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageType {
    Info,
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Link {
    pub(super) r#type: &'static str,
    pub(super) url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the version's own names")]
pub(super) struct Order {
    pub(super) r#type: &'static str,
    pub(super) id: String,
    pub(super) checkout_session_id: String,
    pub(super) order_number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_reference_id: Option<String>,
    pub(super) permalink_url: String,
    pub(super) status: &'static str,
    pub(super) confirmation: Confirmation,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Confirmation {
    pub(super) confirmation_number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order_notes: Option<String>,
}
