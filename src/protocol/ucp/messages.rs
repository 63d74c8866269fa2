//! Problems of the domain as messages (`checkout`, "Error Handling"; `message_*.json`). Texts are constant:
//! two equal requests give equal answers.

use serde::Serialize;

use super::negotiation::{DISCOUNT, FULFILLMENT, Negotiated};
use crate::{
    checkout::{
        cart::{AddressField, CodeReason, ItemReason},
        problem::{Kind, Place, Problem, Weight},
        session::Session,
    },
    stock::Shortage,
};

/// A message of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Message {
    #[serde(rename = "type")]
    kind: &'static str,
    code: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

impl Message {
    /// An error.
    pub(crate) fn error(
        code: &'static str,
        content: impl Into<String>,
        severity: &'static str,
        path: Option<String>,
    ) -> Self {
        Self { kind: "error", code, content: content.into(), severity: Some(severity), path }
    }

    /// Something worth knowing.
    pub(crate) fn info(code: &'static str, content: impl Into<String>) -> Self {
        Self { kind: "info", code, content: content.into(), severity: None, path: None }
    }

    /// Whether it is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.kind == "error"
    }

    /// The same as said when there is no resource to act on.
    pub(crate) fn without_resource(self) -> Self {
        Self { severity: self.severity.map(|_| "unrecoverable"), path: None, ..self }
    }
}

/// A problem of a session.
pub(crate) fn of_session(problem: &Problem, session: &Session, negotiated: &Negotiated) -> Message {
    message(problem, weight(problem, negotiated), path(problem, session, negotiated))
}

/// Who has to act. Without the fulfillment extension a platform has no words for an address or an option:
/// what is wrong with them is the buyer's to settle at the shop.
pub(crate) fn weight(problem: &Problem, negotiated: &Negotiated) -> Weight {
    let about_delivery = matches!(problem.place, Place::Destination | Place::Option);
    if about_delivery && problem.weight() == Weight::Caller && !negotiated.has(FULFILLMENT) {
        Weight::Buyer
    } else {
        problem.weight()
    }
}

/// A problem without a session.
pub(crate) fn of_nothing(problem: &Problem) -> Message {
    message(problem, problem.weight(), None).without_resource()
}

fn message(problem: &Problem, weight: Weight, path: Option<String>) -> Message {
    let (code, content) = match (&problem.kind, &problem.place) {
        (Kind::MissingAddress, Place::Billing) => {
            ("missing", "The address of the bill is missing.".to_owned())
        }
        (kind, _) => words(kind),
    };
    let (kind, severity) = match weight {
        Weight::Caller => ("error", Some("recoverable")),
        Weight::Buyer => ("error", Some("requires_buyer_input")),
        Weight::Warning => ("warning", None),
        Weight::Info => ("info", None),
    };
    Message { kind, code, content, severity, path }
}

/// Code and text.
fn words(kind: &Kind) -> (&'static str, String) {
    let text = str::to_owned;
    match kind {
        Kind::NoLines => {
            ("item_unavailable", text("Nothing in this checkout can be bought. Send other line items."))
        }
        Kind::Item { item, reason } => of_item(item, *reason),
        Kind::Short { item, reason } => of_shortage(item, *reason),
        Kind::QuantityAdjusted { item } => (
            "quantity_adjusted",
            format!("The shop changed the quantity of item {item} by its own rules. See the line item."),
        ),
        Kind::MissingEmail => ("missing", text("The buyer's e-mail address is missing.")),
        Kind::MissingAddress => ("missing", text("The shipping address is missing.")),
        Kind::MissingAddressPart(field) => ("missing", format!("The address has no {}.", field_name(*field))),
        Kind::AddressInvalid(field) => match field {
            Some(AddressField::Phone) => ("invalid_phone", text("The shop does not take the phone number.")),
            Some(AddressField::Email) => {
                ("invalid_email", text("The shop does not take the e-mail address."))
            }
            Some(field @ (AddressField::Country | AddressField::Region | AddressField::PostalCode)) => (
                "invalid_address",
                format!("The shop does not take the {} of the address.", field_name(*field)),
            ),
            None => ("invalid_address", text("The shop does not take the address.")),
        },
        Kind::Undeliverable => ("address_undeliverable", text("The shop does not deliver to this address.")),
        Kind::OptionUnavailable { .. } => (
            "fulfillment_option_unavailable",
            text("The chosen fulfillment option is not on offer. Choose one of the options listed."),
        ),
        Kind::CodeRefused { code, reason } => of_code(code, *reason),
        Kind::CodeDropped { code } => {
            ("discount_code_invalid", format!("Code {code} does not apply any more."))
        }
        Kind::PriceChanged => {
            ("price_changed", text("A price changed. Nothing was ordered. Check the new total."))
        }
        Kind::OptionChanged => (
            "fulfillment_changed",
            text("The fulfillment option in effect is another than before. Check it and the total."),
        ),
        Kind::Estimate => ("estimate", text("Totals are estimates until the buyer's address is known.")),
        Kind::PaymentDeclined => (
            "payment_failed",
            text("The payment was declined. Send another instrument with a new idempotency key."),
        ),
        Kind::InstrumentUnusable => (
            "invalid_payment_instrument",
            text(
                "The payment instrument is missing or cannot be used here. Send one instrument of a handler listed, with its credential.",
            ),
        ),
        Kind::NoPaymentMethod => (
            "payment_required",
            text("This checkout cannot be paid through the API. The buyer can go on at the shop."),
        ),
        Kind::ChallengeNeeded => (
            "requires_3ds",
            text("The buyer's bank wants to see the buyer. The buyer has to go on at the shop."),
        ),
        Kind::PaymentAtShop => {
            ("payment_required", text("The order stands in the shop and waits for its payment there."))
        }
        Kind::InProgress => (
            "complete_in_progress",
            text("The order is being placed. Nothing was changed. Read the checkout again."),
        ),
        Kind::OrderUnconfirmed => (
            "order_unconfirmed",
            text(
                "The order could not be confirmed. The merchant is checking it and decides. Do not order again.",
            ),
        ),
        Kind::OwnOrderHolds => (
            "unpaid_order_holds_items",
            text(
                "An order of this checkout that was left unpaid may keep items or codes back, until the shop gives it up.",
            ),
        ),
        Kind::OrderDiffers => (
            "order_differs",
            text("The shop's order differs from what was agreed. Check the order at the shop."),
        ),
        Kind::Expired => ("expired", text("This checkout has run out of time.")),
        Kind::ClaimNotAccepted { .. } => (
            "eligibility_not_accepted",
            text("This eligibility claim is not accepted here. It has no effect."),
        ),
        Kind::CartRefused => {
            ("cart_refused", text("The shop would refuse this cart by a rule of its own. Change the items."))
        }
        Kind::ShopRefused => {
            ("order_refused", text("The shop refused the order by a rule of its own. Nothing was charged."))
        }
    }
}

fn of_shortage(item: &str, reason: Shortage) -> (&'static str, String) {
    match reason {
        Shortage::SoldOut => of_item(item, ItemReason::SoldOut),
        Shortage::Left(left) => ("out_of_stock", format!("Only {left} of item {item} are left.")),
        Shortage::Held { retry_secs } => (
            "out_of_stock",
            format!(
                "Item {item} is held by other buyers at the moment. Try again in {retry_secs} seconds with a new key."
            ),
        ),
    }
}

fn of_item(item: &str, reason: ItemReason) -> (&'static str, String) {
    match reason {
        ItemReason::Unknown => ("not_found", format!("Item {item} was not found in this shop.")),
        ItemReason::SoldOut => ("out_of_stock", format!("Item {item} is out of stock.")),
        ItemReason::FewerLeft(Some(left)) => {
            ("out_of_stock", format!("Item {item} is not available in this quantity: {left} at most."))
        }
        ItemReason::FewerLeft(None) => {
            ("out_of_stock", format!("Item {item} is not available in this quantity."))
        }
        ItemReason::NotForSale => ("item_unavailable", format!("Item {item} cannot be bought here.")),
        ItemReason::ChooseVariant => {
            ("item_unavailable", format!("Item {item} comes in variants. Send the id of one of them."))
        }
        ItemReason::Quantity => {
            ("invalid_quantity", format!("The shop does not sell item {item} in this quantity."))
        }
    }
}

fn of_code(code: &str, reason: CodeReason) -> (&'static str, String) {
    match reason {
        CodeReason::Invalid => ("discount_code_invalid", format!("Code {code} is not valid here.")),
        CodeReason::Expired => ("discount_code_expired", format!("Code {code} has expired.")),
        CodeReason::AlreadyApplied => {
            ("discount_code_already_applied", format!("Code {code} is applied already."))
        }
        CodeReason::Combination => (
            "discount_code_combination_disallowed",
            format!("Code {code} cannot be combined with another code."),
        ),
        CodeReason::MinimumNotMet => {
            ("discount_code_invalid", format!("Code {code} asks for a larger purchase."))
        }
        CodeReason::UsageLimit => {
            ("discount_code_invalid", format!("Code {code} has been used as often as it may."))
        }
        CodeReason::Buyer => ("discount_code_user_ineligible", format!("Code {code} is not for this buyer.")),
    }
}

const fn field_name(field: AddressField) -> &'static str {
    match field {
        AddressField::Country => "country",
        AddressField::Region => "region",
        AddressField::PostalCode => "postcode",
        AddressField::Phone => "phone number",
        AddressField::Email => "e-mail address",
    }
}

/// Where in the answer it is; nowhere when that part of the answer is not negotiated.
fn path(problem: &Problem, session: &Session, negotiated: &Negotiated) -> Option<String> {
    let fulfillment = negotiated.has(FULFILLMENT);
    match problem.place {
        Place::Session => None,
        Place::Lines | Place::RequestLine(_) => Some("$.line_items".to_owned()),
        Place::Line(ref id) => {
            let at = session.lines.iter().position(|line| line.id == *id);
            Some(at.map_or_else(|| "$.line_items".to_owned(), |at| format!("$.line_items[{at}]")))
        }
        Place::Billing => Some("$.payment.instruments[0].billing_address".to_owned()),
        Place::Email => Some("$.buyer.email".to_owned()),
        Place::Destination => fulfillment.then(|| destination_path(&problem.kind, session)),
        Place::Option => {
            fulfillment.then(|| "$.fulfillment.methods[0].groups[0].selected_option_id".to_owned())
        }
        Place::Code(at) => negotiated.has(DISCOUNT).then(|| format!("$.discounts.codes[{at}]")),
        Place::Payment => Some("$.payment.instruments".to_owned()),
        Place::Claims => Some(if let Kind::ClaimNotAccepted { index } = problem.kind {
            format!("$.context.eligibility[{index}]")
        } else {
            "$.context.eligibility".to_owned()
        }),
    }
}

fn destination_path(kind: &Kind, session: &Session) -> String {
    let method = "$.fulfillment.methods[0]";
    let chosen = session.fulfillment.selected_destination.as_deref();
    let at = session.fulfillment.destinations.iter().position(|to| Some(to.id.as_str()) == chosen);
    let Some(at) = at else { return format!("{method}.selected_destination_id") };
    let (Kind::MissingAddressPart(field) | Kind::AddressInvalid(Some(field))) = kind else {
        return format!("{method}.destinations[{at}]");
    };
    match field {
        AddressField::Country => format!("{method}.destinations[{at}].address_country"),
        AddressField::Region => format!("{method}.destinations[{at}].address_region"),
        AddressField::PostalCode => format!("{method}.destinations[{at}].postal_code"),
        AddressField::Phone if session.phone_is_the_buyers() => "$.buyer.phone_number".to_owned(),
        AddressField::Phone => format!("{method}.destinations[{at}].phone_number"),
        AddressField::Email => "$.buyer.email".to_owned(),
    }
}
