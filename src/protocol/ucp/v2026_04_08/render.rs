//! Outcomes as answers of this version.

use serde_json::Value;

use super::{
    super::{
        PROTOCOL,
        amounts::{Amounts, EntryKind, with_tax},
        errors::{self, Failure},
        messages::{self, Message},
        negotiation::{BUYER_CONSENT, DISCOUNT, FULFILLMENT, Negotiated},
        profile,
    },
    VERSION, wire,
};
use crate::{
    checkout::{
        outcome::{Outcome, RenderContext},
        problem::{Kind, Place, Problem, Weight},
        session::{Session, ShippingOption, Status},
    },
    idempotency::Answer,
    money::Currency,
    protocol::{ShopFace, shop::UcpHandler},
};

/// Renders an outcome.
pub(crate) fn render(face: &ShopFace, context: &RenderContext, outcome: &Outcome) -> Answer {
    let negotiated: Negotiated = serde_json::from_value(context.details.clone()).unwrap_or_default();
    let session =
        |status: u16, session: &Session| Answer::json(status, &checkout(face, &negotiated, session, None));
    match outcome {
        Outcome::Created(created) => session(201, created),
        Outcome::Session(unchanged_or_changed) => session(200, unchanged_or_changed),
        Outcome::InProgress(unchanged) => {
            let told = Problem::new(Kind::InProgress, Place::Session);
            Answer::json(200, &checkout(face, &negotiated, unchanged, Some(&told)))
        }
        Outcome::Finished(_) => errors::answer(face, &Failure::Finished),
        Outcome::NotFound => {
            let text = "This checkout does not exist or has expired.";
            nothing(face, &negotiated, vec![Message::error("not_found", text, "unrecoverable", None)])
        }
        Outcome::NothingAvailable(problems) => {
            nothing(face, &negotiated, problems.iter().map(messages::of_nothing).collect())
        }
        Outcome::UnknownItem { item, .. } => {
            let text = format!("Item {item} was not found in this shop.");
            nothing(face, &negotiated, vec![Message::error("not_found", text, "unrecoverable", None)])
        }
        Outcome::UnknownOption { .. } => {
            let text = "This fulfillment option is not on offer.";
            nothing(face, &negotiated, vec![Message::error("not_found", text, "unrecoverable", None)])
        }
        Outcome::UnknownHandler { .. } => {
            let text = "This payment handler is not offered.";
            nothing(face, &negotiated, vec![Message::error("not_found", text, "unrecoverable", None)])
        }
    }
}

/// The error shape: there is no resource to act on.
pub(super) fn nothing(face: &ShopFace, negotiated: &Negotiated, mut messages: Vec<Message>) -> Answer {
    if !messages.iter().any(Message::is_error) {
        let text = "Nothing that was asked for can be bought here.";
        messages.push(Message::error("item_unavailable", text, "unrecoverable", None));
    }
    let ucp = envelope(negotiated, "error", None);
    Answer::json(200, &wire::Nothing { ucp, messages, continue_url: errors::home(face) })
}

pub(super) fn envelope(
    negotiated: &Negotiated,
    status: &'static str,
    payment_handlers: Option<serde_json::Map<String, Value>>,
) -> wire::Envelope {
    let capabilities = negotiated.capabilities.iter();
    let capabilities = capabilities
        .map(|(name, version)| (name.clone(), [wire::Versioned { version: version.clone() }]))
        .collect();
    wire::Envelope { version: VERSION, status, capabilities, payment_handlers }
}

fn checkout<'a>(
    face: &'a ShopFace,
    negotiated: &Negotiated,
    session: &'a Session,
    told: Option<&Problem>,
) -> wire::Checkout<'a> {
    let gross = face.prices_with_tax;
    let amounts = Amounts::of(session, gross);
    let (status, messages) = status_and_messages(session, negotiated, told);
    let echo = session.echoes.get(PROTOCOL);
    let continue_url = format!("{}/go/{}", face.https_base, session.continue_token);
    let order = session.order.as_ref().filter(|_| session.status == Status::Completed);
    wire::Checkout {
        ucp: envelope(negotiated, "success", Some(handlers(face, negotiated, session))),
        id: session.id.as_str(),
        status,
        currency: session.currency.code(),
        line_items: line_items(session, &amounts),
        buyer: buyer(session, negotiated),
        context: echo.and_then(|echo| echo.get("context")),
        totals: totals(&amounts),
        fulfillment: negotiated.has(FULFILLMENT).then(|| fulfillment(session, gross)).flatten(),
        discounts: negotiated.has(DISCOUNT).then(|| discounts(session, amounts)),
        messages,
        links: links(face),
        payment: wire::Payment {
            instruments: echo
                .and_then(|echo| echo.get("instruments"))
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default(),
        },
        expires_at: session.expires_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        continue_url: (!session.status.is_final()).then_some(continue_url),
        order: order.map(|order| wire::Order {
            id: &order.id,
            label: &order.number,
            permalink_url: &order.permalink_url,
        }),
    }
}

/// The status and what is said about it. A session that only the buyer can bring on is escalated, and says
/// what the buyer has to do; while the caller still has something to do, the buyer's part is not mentioned.
fn status_and_messages(
    session: &Session,
    negotiated: &Negotiated,
    told: Option<&Problem>,
) -> (&'static str, Vec<Message>) {
    let weight = |problem: &Problem| messages::weight(problem, negotiated);
    let blocked_by =
        |who: Weight| session.problems.iter().any(|problem| weight(problem) == who && problem.kind.blocks());
    let waits_for_caller = session.status == Status::Incomplete && blocked_by(Weight::Caller);
    let waits_for_buyer = !waits_for_caller && blocked_by(Weight::Buyer);
    let status = match session.status {
        Status::Incomplete if waits_for_buyer => "requires_escalation",
        Status::Incomplete => "incomplete",
        Status::Ready => "ready_for_complete",
        Status::Escalated => "requires_escalation",
        Status::Placing => "complete_in_progress",
        Status::Completed => "completed",
        Status::Canceled | Status::Expired => "canceled",
    };
    let mut problems: Vec<&Problem> = session
        .told()
        .filter(|problem| !(waits_for_caller && weight(problem) == Weight::Buyer))
        .chain(told)
        .collect();
    let at_shop = Problem::new(Kind::PaymentAtShop, Place::Session);
    if session.status == Status::Escalated && !problems.iter().any(|p| weight(p) == Weight::Buyer) {
        problems.push(&at_shop);
    }
    let expired = Problem::new(Kind::Expired, Place::Session);
    if session.status == Status::Expired && !problems.iter().any(|p| p.kind == Kind::Expired) {
        problems.push(&expired);
    }
    let mut messages: Vec<Message> = Vec::new();
    for problem in problems {
        let message = messages::of_session(problem, session, negotiated);
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    (status, messages)
}

/// The handlers that can be used for this cart, with the instruments that both sides take.
fn handlers(face: &ShopFace, negotiated: &Negotiated, session: &Session) -> serde_json::Map<String, Value> {
    let accepted = session.cart.as_ref().map(|cart| &cart.view.payment_methods);
    let offered = face
        .handlers
        .iter()
        .filter(|handler| handler.always || accepted.is_none_or(|methods| methods.contains(&handler.method)));
    profile::handlers(offered, |handler, ucp| {
        let common = common_instruments(ucp, negotiated.instruments.get(&ucp.name).map(Vec::as_slice));
        // One that is always there is there also for platforms that have never heard of it.
        common.or_else(|| handler.always.then(|| profile::plain_instruments(ucp)))
    })
}

/// What both sides take of a handler; `None` when that is nothing, empty when neither restricts it.
fn common_instruments(ucp: &UcpHandler, theirs: Option<&[Value]>) -> Option<Vec<Value>> {
    let Some(theirs) = theirs else { return Some(profile::plain_instruments(ucp)) };
    let known =
        |kind: &str| ucp.instrument_types.is_empty() || ucp.instrument_types.iter().any(|k| k == kind);
    let common: Vec<Value> = theirs
        .iter()
        .filter(|entry| entry.get("type").and_then(Value::as_str).is_some_and(known))
        .cloned()
        .collect();
    (!common.is_empty()).then_some(common)
}

fn line_items<'a>(session: &'a Session, amounts: &Amounts) -> Vec<wire::LineItem<'a>> {
    let lines = session.lines.iter().zip(&amounts.lines);
    lines
        .map(|(line, amounts)| {
            let mut totals = vec![total("subtotal", amounts.subtotal)];
            if amounts.discount > 0 {
                totals.push(total("items_discount", -amounts.discount));
            }
            totals.push(total("total", amounts.total()));
            wire::LineItem {
                id: line.id.as_str(),
                item: wire::Item {
                    id: &line.item,
                    title: &line.shown.title,
                    price: amounts.price,
                    image_url: line.shown.image_url.as_deref(),
                },
                quantity: line.quantity,
                totals,
                parent_id: line.parent.as_ref().map(crate::checkout::ids::LineId::as_str),
            }
        })
        .collect()
}

const fn total(kind: &'static str, amount: i64) -> wire::Total {
    wire::Total { kind, display_text: None, amount }
}

fn totals(amounts: &Amounts) -> Vec<wire::Total> {
    let entries = amounts.entries.iter();
    entries
        .map(|entry| wire::Total {
            kind: match entry.kind {
                EntryKind::Subtotal => "subtotal",
                EntryKind::ItemsDiscount => "items_discount",
                EntryKind::Discount => "discount",
                EntryKind::Fulfillment => "fulfillment",
                EntryKind::Fee => "fee",
                EntryKind::Tax => "tax",
                EntryKind::Total => "total",
            },
            display_text: entry.text.clone(),
            amount: entry.amount,
        })
        .collect()
}

fn buyer<'a>(session: &'a Session, negotiated: &Negotiated) -> Option<wire::Buyer<'a>> {
    let buyer = session.buyer.as_ref()?;
    let consent = Some(&buyer.consent).filter(|given| negotiated.has(BUYER_CONSENT) && !given.is_empty());
    Some(wire::Buyer {
        first_name: buyer.first_name.as_deref(),
        last_name: buyer.last_name.as_deref(),
        email: buyer.email.as_deref(),
        phone_number: buyer.phone.as_deref(),
        consent,
    })
}

fn discounts(session: &Session, amounts: Amounts) -> wire::Discounts<'_> {
    let applied = amounts.applied.into_iter();
    let applied = applied
        .map(|applied| wire::AppliedDiscount {
            automatic: applied.code.is_none().then_some(true),
            // How the shop came to a discount of its own is not known.
            method: (applied.code.is_some() && !applied.allocations.is_empty()).then_some("each"),
            code: applied.code,
            title: applied.title,
            amount: applied.amount,
            allocations: applied
                .allocations
                .into_iter()
                .map(|(at, amount)| wire::Allocation { path: format!("$.line_items[{at}]"), amount })
                .collect(),
        })
        .collect();
    wire::Discounts { codes: &session.codes, applied }
}

/// One shipping method with one group, when something ships.
fn fulfillment(session: &Session, gross: bool) -> Option<wire::Fulfillment<'_>> {
    let chosen = &session.fulfillment;
    let ships = session
        .cart
        .as_ref()
        .map_or_else(|| !chosen.destinations.is_empty(), |cart| cart.view.needs_shipping);
    if !ships {
        return None;
    }
    let line_item_ids = session.shipped_lines().into_iter().map(|line| line.id.as_str()).collect::<Vec<_>>();
    let groups = if chosen.options.is_empty() {
        Vec::new()
    } else {
        vec![wire::Group {
            id: "group_1",
            line_item_ids: line_item_ids.clone(),
            options: chosen
                .options
                .iter()
                .map(|option| fulfillment_option(option, session.currency, gross))
                .collect(),
            selected_option_id: chosen.selected_option().map(|option| option.id.as_str()),
        }]
    };
    let destinations = chosen.destinations.iter();
    Some(wire::Fulfillment {
        methods: [wire::Method {
            id: "shipping",
            kind: "shipping",
            line_item_ids,
            destinations: destinations
                .map(|to| wire::Destination { id: &to.id, address: wire::Address::of(&to.address) })
                .collect(),
            selected_destination_id: chosen.destination().map(|to| to.id.as_str()),
            groups,
        }],
    })
}

fn fulfillment_option(
    option: &ShippingOption,
    currency: Currency,
    gross: bool,
) -> wire::FulfillmentOption<'_> {
    let description = option.description.as_str();
    let price = with_tax(option.price, option.tax, gross);
    let repeats = description.to_lowercase().contains(&option.title.to_lowercase())
        || mentions_price(description, price, currency);
    wire::FulfillmentOption {
        id: &option.id,
        title: &option.title,
        description: Some(description).filter(|text| !text.is_empty() && !repeats),
        totals: [total("total", price)],
    }
}

/// Whether a text holds this price as a number of its own, written with a point or a comma.
fn mentions_price(text: &str, price: i64, currency: Currency) -> bool {
    let width = usize::try_from(currency.exponent()).unwrap_or_default();
    let digits = format!("{price:0>least$}", least = width + 1);
    let (whole, part) = digits.split_at(digits.len() - width);
    let price = if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") };
    text.replace(',', ".")
        .split(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')
        .any(|number| number.trim_matches('.') == price)
}

fn links(face: &ShopFace) -> Vec<wire::Link<'_>> {
    let links = &face.links;
    [
        ("terms_of_service", &links.terms),
        ("privacy_policy", &links.privacy),
        ("refund_policy", &links.refunds),
        ("shipping_policy", &links.shipping),
        ("contact", &links.contact),
    ]
    .into_iter()
    .filter_map(|(kind, url)| url.as_ref().map(|url| wire::Link { kind, url: url.as_str() }))
    .collect()
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
