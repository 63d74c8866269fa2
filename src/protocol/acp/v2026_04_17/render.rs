//! From a domain session to the session of this version (`acp.md` §4 to §6).

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize as _;
use url::Url;

use super::{
    DATE, Echo, delivery, messages,
    sums::{self, LineSums},
    wire,
};
use crate::{
    checkout::{
        problem::Kind,
        session::{self, Session, Status},
    },
    protocol::{
        ShopFace,
        acp::{EXTENSION_DISCOUNT, PROTOCOL, read::looks_like_email},
        shop::HandlerFace,
    },
};

/// What the discount extension adds to the bodies.
const DISCOUNT_EXTENDS: &[&str] = &[
    "$.CheckoutSessionCreateRequest.discounts",
    "$.CheckoutSessionUpdateRequest.discounts",
    "$.CheckoutSession.discounts",
];

/// The session as this version shows it.
pub(in crate::protocol::acp) fn session(face: &ShopFace, session: &Session) -> wire::Session {
    let echo = session.echoes.get(PROTOCOL).and_then(|echo| Echo::deserialize(echo).ok()).unwrap_or_default();
    let delivery = delivery::of(session, &echo);
    let order = match session.status {
        Status::Completed => session.order.as_ref().map(|order| shown_order(session, order, &echo)),
        Status::Incomplete
        | Status::Ready
        | Status::Escalated
        | Status::Placing
        | Status::Canceled
        | Status::Expired => None,
    };
    wire::Session {
        id: session.id.as_str().to_owned(),
        protocol: wire::Protocol { version: DATE },
        status: status(session),
        currency: session.currency.code().to_ascii_lowercase(),
        totals: sums::totals(session, &delivery, face.prices_with_tax),
        capabilities: capabilities(face, session, &echo),
        buyer: session.buyer.as_ref().and_then(buyer),
        line_items: session.lines.iter().map(line_item).collect(),
        fulfillment_details: details(&session.fulfillment),
        fulfillment_options: delivery.options,
        selected_fulfillment_options: delivery.selected,
        discounts: discounts(session, &echo),
        messages: session.told().map(|problem| messages::message(problem, session)).collect(),
        links: links(face),
        created_at: time(session.created_at),
        updated_at: time(session.updated_at),
        expires_at: time(session.expires_at),
        continue_url: (!session.status.is_final())
            .then(|| format!("{}/go/{}", face.https_base, session.continue_token)),
        locale: echo.locale,
        timezone: echo.timezone,
        quote_id: echo.quote_id,
        metadata: echo.metadata,
        order,
    }
}

/// `acp.md` §5. A refused item has to be acknowledged by an update before the session counts as ready: the
/// buyer may not want the rest alone.
fn status(session: &Session) -> &'static str {
    let refused_item = || session.problems.iter().any(|problem| matches!(problem.kind, Kind::Item { .. }));
    match session.status {
        Status::Incomplete if session.lines.is_empty() => "incomplete",
        Status::Incomplete => "not_ready_for_payment",
        Status::Ready if refused_item() => "not_ready_for_payment",
        Status::Ready => "ready_for_payment",
        Status::Escalated => "requires_escalation",
        Status::Placing => "complete_in_progress",
        Status::Completed => "completed",
        Status::Canceled => "canceled",
        Status::Expired => "expired",
    }
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn capabilities(face: &ShopFace, session: &Session, echo: &Echo) -> wire::Capabilities {
    // An order without a price needs no method of the shop's, but this version completes through a handler.
    let priced = session.cart.as_ref().map(|cart| &cart.view).filter(|view| view.needs_payment);
    let methods = priced.map(|view| view.payment_methods.as_slice());
    let taken = |handler: &&HandlerFace| {
        handler.always || methods.is_none_or(|methods| methods.contains(&handler.method))
    };
    let asked = |name: &str| echo.extensions.iter().any(|one| one == name);
    wire::Capabilities {
        payment: wire::Payment {
            handlers: face.handlers.iter().filter(taken).enumerate().filter_map(handler).collect(),
        },
        interventions: wire::Interventions {
            supported: echo.interventions.clone(),
            required: Vec::new(),
            enforcement: "conditional",
        },
        extensions: asked(EXTENSION_DISCOUNT)
            .then_some(wire::Extension { name: EXTENSION_DISCOUNT, extends: DISCOUNT_EXTENDS })
            .into_iter()
            .collect(),
    }
}

fn handler((display_order, handler): (usize, &HandlerFace)) -> Option<wire::Handler> {
    let shown = handler.acp.as_ref()?;
    Some(wire::Handler {
        id: handler.id.clone(),
        name: shown.name.clone(),
        display_name: shown.display_name.clone(),
        version: shown.version.clone(),
        spec: shown.spec.clone(),
        requires_delegate_payment: shown.requires_delegate_payment,
        requires_pci_compliance: shown.requires_pci_compliance,
        psp: shown.psp.clone(),
        config_schema: shown.config_schema.clone(),
        instrument_schemas: shown.instrument_schemas.clone(),
        config: shown.config.clone(),
        display_order,
    })
}

/// The version wants an e-mail address of every buyer: without one the buyer is left out.
fn buyer(buyer: &session::Buyer) -> Option<wire::Buyer> {
    let email = buyer.email.clone().filter(|email| looks_like_email(email))?;
    Some(wire::Buyer {
        email,
        first_name: buyer.first_name.clone(),
        last_name: buyer.last_name.clone(),
        phone_number: buyer.phone.clone(),
    })
}

fn line_item(line: &session::Line) -> wire::LineItem {
    let sums = LineSums::of(&line.shown);
    let image = line.shown.image_url.as_deref().and_then(|url| Url::parse(url).ok());
    wire::LineItem {
        id: line.id.as_str().to_owned(),
        item: wire::Item { id: line.item.clone() },
        quantity: line.quantity,
        name: line.shown.title.clone(),
        images: image.map(String::from).into_iter().collect(),
        unit_amount: sums.unit(line.quantity),
        sku: line.shown.sku.clone(),
        available_quantity: line.shown.left,
        max_quantity_per_order: line.shown.maximum.filter(|maximum| *maximum > 0),
        parent_id: line.parent.as_ref().map(|parent| parent.as_str().to_owned()),
        totals: sums.totals(),
    }
}

fn details(fulfillment: &session::Fulfillment) -> Option<wire::FulfillmentDetails> {
    let contact = &fulfillment.contact;
    let address = fulfillment.destination().map(|destination| &destination.address);
    let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let recipient = address.and_then(|address| filled(&full_name(address)));
    let details = wire::FulfillmentDetails {
        name: contact.name.clone().or(recipient),
        phone_number: contact.phone.clone().or_else(|| address.and_then(|address| filled(&address.phone))),
        email: contact.email.clone(),
        address: address.map(shown_address),
    };
    let nothing = details.name.is_none()
        && details.phone_number.is_none()
        && details.email.is_none()
        && details.address.is_none();
    (!nothing).then_some(details)
}

/// The name as it was sent: one word stands for both names and shows once.
fn full_name(address: &session::Address) -> String {
    let (first, last) = (address.first_name.as_str(), address.last_name.as_str());
    if first == last { first.to_owned() } else { format!("{first} {last}").trim().to_owned() }
}

fn shown_address(address: &session::Address) -> wire::Address {
    wire::Address {
        name: full_name(address),
        line_one: address.line_one.clone(),
        line_two: address.line_two.clone(),
        city: address.city.clone(),
        state: address.region.clone(),
        country: address.country.clone(),
        postal_code: address.postal_code.clone(),
        company: address.company.clone(),
    }
}

/// Codes and what came of them; left out when nobody asked for them and there are none.
fn discounts(session: &Session, echo: &Echo) -> Option<wire::Discounts> {
    if session.codes.is_empty() && !echo.extensions.iter().any(|name| name == EXTENSION_DISCOUNT) {
        return None;
    }
    let coupons = session.cart.as_ref().map(|cart| cart.view.coupons.as_slice()).unwrap_or_default();
    let only = coupons.len() == 1;
    let applied = coupons.iter().map(|coupon| {
        let code =
            session.codes.iter().find(|code| code.to_lowercase() == coupon.code.to_lowercase()).cloned();
        let amount = coupon.discount.max(0);
        let allocations = if only { allocations(session, amount) } else { Vec::new() };
        wire::AppliedDiscount {
            id: format!("discount_{}", coupon.code),
            automatic: code.is_none(),
            coupon: wire::Coupon {
                id: coupon.code.clone(),
                name: code.clone().unwrap_or_else(|| coupon.code.clone()),
            },
            code,
            amount,
            method: (!allocations.is_empty()).then_some("across"),
            allocations,
        }
    });
    let rejected = session.problems.iter().filter_map(|problem| rejected(&problem.kind));
    Some(wire::Discounts {
        codes: session.codes.clone(),
        applied: applied.collect(),
        rejected: rejected.collect(),
    })
}

fn rejected(kind: &Kind) -> Option<wire::RejectedDiscount> {
    if let Kind::CodeRefused { code, reason } = kind {
        let (reason, message) = messages::refused_code(*reason);
        Some(wire::RejectedDiscount { code: code.clone(), reason, message })
    } else if let Kind::CodeDropped { code } = kind {
        let message = "This code is not in effect any more.";
        Some(wire::RejectedDiscount { code: code.clone(), reason: "discount_code_invalid", message })
    } else {
        None
    }
}

/// How a single coupon falls on the lines, when the lines' discounts are just its amount.
fn allocations(session: &Session, amount: i64) -> Vec<wire::Allocation> {
    let parts: Vec<i64> = session.lines.iter().map(|line| LineSums::of(&line.shown).discount).collect();
    if parts.iter().sum::<i64>() != amount {
        return Vec::new();
    }
    let allocation = |(index, amount)| wire::Allocation { path: format!("$.line_items[{index}]"), amount };
    parts.into_iter().enumerate().filter(|(_, amount)| *amount > 0).map(allocation).collect()
}

fn links(face: &ShopFace) -> Vec<wire::Link> {
    let links = &face.links;
    [
        ("terms_of_use", &links.terms),
        ("privacy_policy", &links.privacy),
        ("return_policy", &links.refunds),
        ("shipping_policy", &links.shipping),
        ("contact_us", &links.contact),
    ]
    .into_iter()
    .filter_map(|(r#type, url)| Some(wire::Link { r#type, url: url.as_ref()?.to_string() }))
    .collect()
}

fn shown_order(session: &Session, order: &session::Order, echo: &Echo) -> wire::Order {
    let reference = echo.metadata.as_ref().and_then(|metadata| metadata.get("client_reference_id"));
    wire::Order {
        r#type: "order",
        id: order.id.clone(),
        checkout_session_id: session.id.as_str().to_owned(),
        order_number: order.number.clone(),
        client_reference_id: reference.and_then(|text| text.as_str()).map(str::to_owned),
        permalink_url: order.permalink_url.clone(),
        status: "confirmed",
        confirmation: wire::Confirmation {
            confirmation_number: order.number.clone(),
            order_notes: session.note.clone(),
        },
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
