//! Problems in the words of this version: type, code, place and who can help (`acp.md` §6, D-27, D-32).
//!
//! Texts are constant, so that two equal requests get equal answers; `param` says where.

use std::borrow::Cow;

use super::wire::{Message, MessageType};
use crate::{
    checkout::{
        cart::{AddressField, CodeReason, ItemReason},
        problem::{Kind, Place, Problem},
        session::Session,
    },
    stock::Shortage,
};

/// The agent can mend it by another request.
const RECOVERABLE: &str = "recoverable";
/// The buyer has to give something.
const BUYER_INPUT: &str = "requires_buyer_input";
/// The buyer has to look at it.
const BUYER_REVIEW: &str = "requires_buyer_review";

/// A problem as a message.
pub(super) fn message(problem: &Problem, session: &Session) -> Message {
    let mut draft = draft(&problem.kind);
    if let Kind::Item { item, .. } | Kind::Short { item, .. } | Kind::QuantityAdjusted { item } =
        &problem.kind
    {
        // The line may be gone: the text says which item it was.
        draft.content = Cow::Owned(format!("{} (item {item})", draft.content));
    }
    if problem.place == Place::Billing && matches!(problem.kind, Kind::AddressInvalid(_)) {
        // The session does not show it.
        return Message {
            content: Cow::Borrowed("The shop does not accept the address of the bill."),
            ..draft
        };
    }
    Message {
        param: part(&problem.kind, session).map(str::to_owned).or_else(|| place(&problem.place, session)),
        ..draft
    }
}

/// Why a code is refused, as `discounts.rejected` says it: code and text.
pub(super) const fn refused_code(reason: CodeReason) -> (&'static str, &'static str) {
    match reason {
        CodeReason::Invalid => ("discount_code_invalid", "This code is not valid here."),
        CodeReason::Expired => ("discount_code_expired", "This code has expired."),
        CodeReason::AlreadyApplied => ("discount_code_already_applied", "This code is applied already."),
        CodeReason::Combination => {
            ("discount_code_combination_disallowed", "This code cannot be combined with another one.")
        }
        CodeReason::MinimumNotMet => {
            ("discount_code_minimum_not_met", "The cart is below the minimum of this code.")
        }
        CodeReason::UsageLimit => {
            ("discount_code_usage_limit_reached", "This code has been used as often as it may be.")
        }
        CodeReason::Buyer => ("discount_code_user_ineligible", "This code is not for this buyer."),
    }
}

const fn error(code: &'static str, resolution: &'static str, content: &'static str) -> Message {
    Message {
        r#type: MessageType::Error,
        code: Some(code),
        severity: "high",
        resolution: Some(resolution),
        param: None,
        content_type: "plain",
        content: Cow::Borrowed(content),
    }
}

const fn warning(code: &'static str, content: &'static str) -> Message {
    Message {
        r#type: MessageType::Warning,
        code: Some(code),
        severity: "medium",
        resolution: None,
        param: None,
        content_type: "plain",
        content: Cow::Borrowed(content),
    }
}

/// A warning that the buyer should see before going on.
fn review(code: &'static str, content: &'static str) -> Message {
    Message { resolution: Some(BUYER_REVIEW), ..warning(code, content) }
}

fn info(content: &'static str) -> Message {
    Message { r#type: MessageType::Info, code: None, severity: "info", ..warning("", content) }
}

fn draft(kind: &Kind) -> Message {
    match kind {
        Kind::NoLines => error("missing", RECOVERABLE, "The session holds no item that can be bought."),
        Kind::Item { item: _, reason } => item(*reason),
        Kind::Short { item: _, reason } => short(*reason),
        Kind::QuantityAdjusted { item: _ } => {
            review("limited_availability", "The shop changed the quantity of this item by its own rules.")
        }
        Kind::MissingEmail => error("missing", BUYER_INPUT, "The buyer's e-mail address is required."),
        Kind::MissingAddress => error("missing", BUYER_INPUT, "An address is required."),
        Kind::MissingAddressPart(_) => error("missing", BUYER_INPUT, "This part of the address is required."),
        Kind::AddressInvalid(_) => error("invalid", BUYER_INPUT, "The shop does not accept this address."),
        Kind::Undeliverable => {
            error("region_restricted", BUYER_INPUT, "The shop does not deliver to this address.")
        }
        Kind::OptionUnavailable { option: _ } => {
            error("invalid", RECOVERABLE, "The chosen option is no longer offered: choose another one.")
        }
        Kind::CodeRefused { code: _, reason } => {
            let (code, content) = refused_code(*reason);
            warning(code, content)
        }
        Kind::CodeDropped { code: _ } => {
            warning("discount_code_invalid", "This code is not in effect any more.")
        }
        Kind::PriceChanged => {
            review("price_change", "A price has changed. Nothing was ordered: look at the new totals.")
        }
        Kind::OptionChanged => {
            review("price_change", "Another option than before is in effect: look at it and at the total.")
        }
        Kind::Estimate => info("The totals are an estimate until the buyer's address is known."),
        Kind::PaymentDeclined => {
            error("payment_declined", RECOVERABLE, "The payment was declined. Try another way to pay.")
        }
        Kind::InstrumentUnusable => {
            error("invalid", RECOVERABLE, "This payment instrument cannot be used here.")
        }
        Kind::NoPaymentMethod => {
            error("unsupported", BUYER_REVIEW, "The buyer has to pay at the shop: see continue_url.")
        }
        Kind::ChallengeNeeded => error(
            "requires_3ds",
            BUYER_INPUT,
            "The buyer has to confirm the payment at the shop: see continue_url.",
        ),
        Kind::PaymentAtShop => error(
            "intervention_required",
            BUYER_INPUT,
            "The order waits in the shop for the buyer's payment: see continue_url.",
        ),
        Kind::InProgress => error(
            "conflict",
            RECOVERABLE,
            "An order may be in the making. Nothing was changed: read it again.",
        ),
        // Neither the agent nor the buyer can resolve it: the merchant does.
        Kind::OrderUnconfirmed => Message {
            resolution: None,
            ..error(
                "intervention_required",
                RECOVERABLE,
                "The order could not be confirmed. The merchant is checking it and decides. Do not order again.",
            )
        },
        Kind::OwnOrderHolds => warning(
            "limited_availability",
            "An order of this session that was left unpaid may keep items or codes back until the shop gives it up.",
        ),
        Kind::OrderDiffers => review("price_change", "The shop's order differs from what was shown before."),
        Kind::Expired => info("The session has expired."),
        Kind::ClaimNotAccepted { index: _ } => info("A claim of the buyer is not accepted here."),
        Kind::CartRefused => error(
            "unsupported",
            RECOVERABLE,
            "The shop would refuse this cart by a rule of its own: change the items.",
        ),
        Kind::ShopRefused => {
            error("unsupported", BUYER_REVIEW, "The shop refused the order by a rule of its own.")
        }
    }
}

fn short(reason: Shortage) -> Message {
    match reason {
        Shortage::SoldOut => item(ItemReason::SoldOut),
        Shortage::Left(left) => Message {
            content: Cow::Owned(format!("Only {left} of this item are left.")),
            ..item(ItemReason::FewerLeft(Some(left)))
        },
        Shortage::Held { retry_secs } => Message {
            content: Cow::Owned(format!(
                "Other buyers hold this item at the moment. Try again in {retry_secs} seconds with a new key."
            )),
            ..item(ItemReason::SoldOut)
        },
    }
}

const fn item(reason: ItemReason) -> Message {
    match reason {
        ItemReason::Unknown => error("not_found", RECOVERABLE, "The shop does not sell this item."),
        ItemReason::SoldOut => error("out_of_stock", RECOVERABLE, "This item is sold out."),
        ItemReason::FewerLeft(_) => {
            error("quantity_exceeded", RECOVERABLE, "Fewer of this item can be bought than were asked for.")
        }
        ItemReason::NotForSale => error("unsupported", RECOVERABLE, "This item cannot be bought here."),
        ItemReason::ChooseVariant => {
            error("invalid", RECOVERABLE, "This item comes in variants: choose one of them.")
        }
        ItemReason::Quantity => {
            error("invalid", RECOVERABLE, "The shop does not sell this item in this quantity.")
        }
    }
}

/// The part of the session that a problem is about, where its kind says more than its place.
fn part(kind: &Kind, session: &Session) -> Option<&'static str> {
    match kind {
        Kind::MissingEmail => Some("$.buyer.email"),
        Kind::MissingAddress | Kind::Undeliverable | Kind::AddressInvalid(None) => {
            Some("$.fulfillment_details.address")
        }
        Kind::MissingAddressPart(field) | Kind::AddressInvalid(Some(field)) => Some(match field {
            AddressField::Country => "$.fulfillment_details.address.country",
            AddressField::Region => "$.fulfillment_details.address.state",
            AddressField::PostalCode => "$.fulfillment_details.address.postal_code",
            AddressField::Phone if session.phone_is_the_buyers() => "$.buyer.phone_number",
            AddressField::Phone => "$.fulfillment_details.phone_number",
            AddressField::Email if email_is_the_recipients(session) => "$.fulfillment_details.email",
            AddressField::Email => "$.buyer.email",
        }),
        Kind::NoLines
        | Kind::Item { .. }
        | Kind::Short { .. }
        | Kind::QuantityAdjusted { .. }
        | Kind::OptionUnavailable { .. }
        | Kind::CodeRefused { .. }
        | Kind::CodeDropped { .. }
        | Kind::PriceChanged
        | Kind::OptionChanged
        | Kind::Estimate
        | Kind::PaymentDeclined
        | Kind::InstrumentUnusable
        | Kind::NoPaymentMethod
        | Kind::ChallengeNeeded
        | Kind::PaymentAtShop
        | Kind::InProgress
        | Kind::OrderUnconfirmed
        | Kind::OwnOrderHolds
        | Kind::OrderDiffers
        | Kind::Expired
        | Kind::ClaimNotAccepted { .. }
        | Kind::ShopRefused
        | Kind::CartRefused => None,
    }
}

fn email_is_the_recipients(session: &Session) -> bool {
    let buyers = session.buyer.as_ref().is_some_and(|buyer| buyer.email.is_some());
    !buyers && session.fulfillment.contact.email.is_some()
}

fn place(place: &Place, session: &Session) -> Option<String> {
    match place {
        Place::Session | Place::Claims => None,
        // A line that is not in the session has no place of its own there.
        Place::Lines | Place::RequestLine(_) => Some("$.line_items".to_owned()),
        Place::Line(id) => {
            let at = session.lines.iter().position(|line| line.id == *id);
            Some(at.map_or_else(|| "$.line_items".to_owned(), |at| format!("$.line_items[{at}]")))
        }
        Place::Email => Some("$.buyer.email".to_owned()),
        Place::Destination | Place::Billing => Some("$.fulfillment_details.address".to_owned()),
        Place::Option => Some("$.selected_fulfillment_options".to_owned()),
        Place::Code(index) => Some(format!("$.discounts.codes[{index}]")),
        Place::Payment => Some("$.capabilities.payment".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::samples, *};

    /// Requirements.
    #[test]
    fn problems_have_codes_and_places() {
        let session = samples::session();
        let second = session.lines[1].id.clone();
        let item = |reason| Kind::Item { item: "x".into(), reason };
        let code = |reason| Kind::CodeRefused { code: "x".into(), reason };
        for (kind, place, code, param) in [
            (Kind::NoLines, Place::Lines, Some("missing"), Some("$.line_items")),
            (item(ItemReason::SoldOut), Place::Line(second), Some("out_of_stock"), Some("$.line_items[1]")),
            (item(ItemReason::Unknown), Place::RequestLine(1), Some("not_found"), Some("$.line_items")),
            (Kind::MissingEmail, Place::Session, Some("missing"), Some("$.buyer.email")),
            (
                Kind::MissingAddressPart(AddressField::Region),
                Place::Destination,
                Some("missing"),
                Some("$.fulfillment_details.address.state"),
            ),
            (
                Kind::AddressInvalid(Some(AddressField::Phone)),
                Place::Destination,
                Some("invalid"),
                Some("$.fulfillment_details.phone_number"),
            ),
            (
                Kind::OptionUnavailable { option: "x".into() },
                Place::Option,
                Some("invalid"),
                Some("$.selected_fulfillment_options"),
            ),
            (
                code(CodeReason::Expired),
                Place::Code(1),
                Some("discount_code_expired"),
                Some("$.discounts.codes[1]"),
            ),
            (Kind::PriceChanged, Place::Session, Some("price_change"), None),
            (Kind::Estimate, Place::Session, None, None),
            (Kind::ChallengeNeeded, Place::Session, Some("requires_3ds"), None),
        ] {
            let told = message(&Problem::new(kind.clone(), place), &session);
            assert_eq!((told.code, told.param.as_deref()), (code, param), "{kind:?}");
            let typed = match told.r#type {
                MessageType::Info => told.code.is_none() && told.resolution.is_none(),
                MessageType::Warning => told.code.is_some(),
                MessageType::Error => told.code.is_some() && told.resolution.is_some(),
            };
            assert!(typed, "{kind:?}");
        }
    }
}
