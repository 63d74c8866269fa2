//! Bodies of create, update and complete.
//!
//! Known members have the type of the schema. Members that the schema omits for the operation (`id`,
//! `status`, `totals`, `ucp`, …) and unknown ones are not looked at; neither are codes and consent when
//! their extension was not negotiated. An update replaces everything that it may say.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::super::{
    PROTOCOL,
    negotiation::{BUYER_CONSENT, DISCOUNT, Negotiated},
    reader::{Node, Refusal},
};
use crate::{
    checkout::{
        command::{
            Change, Completion, Destinations, Instrument, Patch, UnknownItems, UnknownOption, WantedLine,
        },
        ids::LineId,
        outcome::Operation,
        session::{Address, Buyer, Destination},
    },
    protocol::{
        ShopFace,
        cards::{holds_card_number, is_card_number, mentions_card_number},
    },
};

const MAX_NAME: usize = 200;
const MAX_EMAIL: usize = 254;
const MAX_PHONE: usize = 40;
const MAX_ADDRESS_PART: usize = 255;
const MAX_HINT: usize = 255;
const MAX_INTENT: usize = 2_000;
const MAX_CODE: usize = 100;
const MAX_CODES: usize = 20;
const MAX_CLAIMS: usize = 50;
const MAX_METHODS: usize = 10;
const MAX_DESTINATIONS: usize = 20;
const MAX_GROUPS: usize = 100;
const MAX_INSTRUMENTS: usize = 20;

/// The consents that have a name here.
const CONSENTS: [&str; 4] = ["analytics", "preferences", "marketing", "sale_of_data"];
/// Members of an instrument's `display` that are repeated; the rest might hold anything.
const DISPLAY: [&str; 6] = ["brand", "last_digits", "expiry_month", "expiry_year", "description", "card_art"];
/// The credential type of a card number in clear, which must not be sent to a checkout.
const RAW_CARD: &str = "card";

/// Reads a create or an update.
pub(crate) fn parse_change(
    face: &ShopFace,
    negotiated: &Negotiated,
    operation: Operation,
    body: &Value,
) -> Result<Change, Refusal> {
    let body = Node::root(body);
    let creates = operation == Operation::Create;
    let lines = lines(&body.required("line_items")?, face, creates)?;
    let with_consent = negotiated.has(BUYER_CONSENT);
    let buyer = body.member("buyer")?.map(|node| buyer(&node, with_consent)).transpose()?;
    // An address is taken from everybody: it is the only way to deliver.
    let (destinations, option) =
        body.member("fulfillment")?.map(|node| fulfillment(&node)).transpose()?.unwrap_or_default();
    let codes = if negotiated.has(DISCOUNT) {
        body.member("discounts")?.map(|node| codes(&node)).transpose()?.flatten()
    } else {
        None
    };
    let (context, claims) = body.member("context")?.map(|node| context(&node, face)).transpose()?.unzip();
    let instruments = body.member("payment")?.map(|node| echoed_instruments(&node)).transpose()?;
    observations(&body)?;
    let mut echo = Map::new();
    if let Some(context) = context.filter(|context| !context.is_empty()) {
        echo.insert("context".into(), Value::Object(context));
    }
    if let Some(instruments) = instruments.filter(|list| !list.is_empty()) {
        echo.insert("instruments".into(), Value::Array(instruments));
    }
    Ok(Change {
        lines: Patch::Set(lines),
        buyer: Patch::replace(buyer),
        destinations: Patch::replace(destinations),
        option: Patch::replace(option),
        codes: Patch::replace(codes),
        claims: claims.unwrap_or_default(),
        echo: Some((PROTOCOL.to_owned(), Value::Object(echo))),
        unknown_items: UnknownItems::LeaveOut,
        unknown_option: UnknownOption::Report,
        ..Change::default()
    })
}

fn lines(list: &Node<'_>, face: &ShopFace, creates: bool) -> Result<Vec<WantedLine>, Refusal> {
    let items = list.items(face.max_lines)?;
    if creates && items.is_empty() {
        return Err(list.refuse("must hold at least one item"));
    }
    let line = |node: &Node<'_>| {
        let named = |name: &str| -> Result<Option<LineId>, Refusal> {
            // A create has no line ids of ours yet.
            let node = if creates { None } else { node.member(name)? };
            node.map(|node| node.id().map(LineId::new)).transpose()
        };
        Ok(WantedLine {
            id: named("id")?,
            item: node.required("item")?.required("id")?.id()?,
            quantity: node.required("quantity")?.count(face.max_quantity)?,
            parent: named("parent_id")?,
        })
    };
    items.iter().map(line).collect()
}

fn buyer(node: &Node<'_>, with_consent: bool) -> Result<Buyer, Refusal> {
    let mut buyer = Buyer {
        first_name: filled(node.text_member("first_name", MAX_NAME)?),
        last_name: filled(node.text_member("last_name", MAX_NAME)?),
        email: filled(node.text_member("email", MAX_EMAIL)?),
        phone: filled(node.text_member("phone_number", MAX_PHONE)?),
        ..Buyer::default()
    };
    if let Some(consent) = node.member("consent")?.filter(|_| with_consent) {
        for name in CONSENTS {
            if let Some(given) = consent.member(name)? {
                buyer.consent.insert(name.to_owned(), given.boolean()?);
            }
        }
    }
    Ok(buyer)
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Addresses with the chosen one, and the chosen option: those of the one shipping method. Ids of methods
/// and groups, and line ids, are ours and may be absent.
fn fulfillment(node: &Node<'_>) -> Result<(Option<Destinations>, Option<String>), Refusal> {
    let Some(methods) = node.member("methods")? else { return Ok((None, None)) };
    let mut shipping = None;
    for method in methods.items(MAX_METHODS)? {
        let kind = method.text_member("type", MAX_HINT)?;
        match kind.as_deref() {
            None | Some("shipping") if shipping.is_some() => {
                return Err(method.refuse("is a second shipping method; one is supported"));
            }
            None | Some("shipping") => shipping = Some(method),
            // Nothing can be fetched here; the lines are shipped or wait for an address.
            Some("pickup") => method.is_object()?,
            Some(_) => return Err(method.required("type")?.refuse("must be shipping or pickup")),
        }
    }
    let Some(method) = shipping else { return Ok((None, None)) };
    if let Some(ids) = method.member("line_item_ids")? {
        for id in ids.items(usize::MAX)? {
            id.id()?;
        }
    }
    let selected = method.member("selected_destination_id")?.map(|node| node.id()).transpose()?;
    let mut list: Vec<Destination> = Vec::new();
    if let Some(destinations) = method.member("destinations")? {
        for node in destinations.items(MAX_DESTINATIONS)? {
            let destination = destination(&node)?;
            match list.iter().find(|known| known.id == destination.id) {
                None => list.push(destination),
                Some(known) if known.address == destination.address => {}
                Some(_) => return Err(node.refuse("has the id of another destination")),
            }
        }
    }
    let mut option = None;
    if let Some(groups) = method.member("groups")? {
        for group in groups.items(MAX_GROUPS)? {
            let chosen = group.member("selected_option_id")?.map(|node| node.id()).transpose()?;
            option = option.or(chosen);
        }
    }
    let given = !list.is_empty() || selected.is_some();
    Ok((given.then_some(Destinations { list, selected }), option))
}

fn destination(node: &Node<'_>) -> Result<Destination, Refusal> {
    let address = address(node)?;
    let id = match node.member("id")? {
        Some(id) => id.id()?,
        None => destination_id(&address),
    };
    Ok(Destination { id, address })
}

/// An id made of the address, so that an address that comes again keeps it.
fn destination_id(address: &Address) -> String {
    let mut hash = Sha256::new();
    for part in [
        &address.first_name,
        &address.last_name,
        &address.line_one,
        &address.line_two,
        &address.city,
        &address.region,
        &address.postal_code,
        &address.country,
        &address.phone,
    ] {
        hash.update(part.len().to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    let short = digest.get(..10).unwrap_or_default();
    format!("dest_{}", data_encoding::BASE32_NOPAD.encode(short).to_ascii_lowercase())
}

fn address(node: &Node<'_>) -> Result<Address, Refusal> {
    let part = |name: &str, max: usize| Ok(node.text_member(name, max)?.unwrap_or_default());
    let country: String = part("address_country", MAX_ADDRESS_PART)?;
    Ok(Address {
        first_name: part("first_name", MAX_NAME)?,
        last_name: part("last_name", MAX_NAME)?,
        company: String::new(),
        line_one: part("street_address", MAX_ADDRESS_PART)?,
        line_two: part("extended_address", MAX_ADDRESS_PART)?,
        city: part("address_locality", MAX_ADDRESS_PART)?,
        region: part("address_region", MAX_ADDRESS_PART)?,
        postal_code: part("postal_code", MAX_ADDRESS_PART)?,
        country: if country.len() == 2 { country.to_ascii_uppercase() } else { country },
        phone: part("phone_number", MAX_PHONE)?,
    })
}

fn codes(node: &Node<'_>) -> Result<Option<Vec<String>>, Refusal> {
    let Some(codes) = node.member("codes")? else { return Ok(None) };
    let code = |node: Node<'_>| {
        let code = node.text(MAX_CODE)?;
        if code.trim().is_empty() { Err(node.refuse("must not be empty")) } else { Ok(code) }
    };
    codes.items(MAX_CODES)?.into_iter().map(code).collect::<Result<Vec<_>, _>>().map(Some)
}

/// What is repeated of the context, and the numbers of the claims in it: none is accepted here.
fn context(node: &Node<'_>, face: &ShopFace) -> Result<(Map<String, Value>, Vec<usize>), Refusal> {
    let mut echo = Map::new();
    for (name, max) in [
        ("address_country", MAX_HINT),
        ("address_region", MAX_HINT),
        ("postal_code", MAX_HINT),
        ("intent", MAX_INTENT),
        ("language", MAX_HINT),
        ("currency", MAX_HINT),
    ] {
        if let Some(text) = node.text_member(name, max)? {
            // Only the currency that the shop sells in is ever shown.
            if name != "currency" || text.eq_ignore_ascii_case(face.currency.code()) {
                echo.insert(name.to_owned(), Value::String(text));
            }
        }
    }
    let mut claims = Vec::new();
    if let Some(list) = node.member("eligibility")? {
        let values = list.items(MAX_CLAIMS)?;
        let values = values.iter().map(|value| value.text(MAX_HINT)).collect::<Result<Vec<_>, _>>()?;
        // What is no reverse-domain name names no claim at all, and may not be repeated. A claim counts once.
        let mut known = std::collections::BTreeSet::new();
        let values: Vec<String> = values
            .into_iter()
            .filter(|value| is_reverse_domain(value) && known.insert(value.clone()))
            .collect();
        claims = (0..values.len()).collect();
        echo.insert("eligibility".into(), json!(values));
    }
    Ok((echo, claims))
}

/// Signals and attribution are looked at for their type only; they are never kept and change nothing.
pub(super) fn observations(body: &Node<'_>) -> Result<(), Refusal> {
    if let Some(signals) = body.member("signals")? {
        signals.is_object()?;
    }
    if let Some(attribution) = body.member("attribution")? {
        for (_, value) in attribution.members()? {
            value.text(MAX_INTENT)?;
        }
    }
    Ok(())
}

/// Instruments as they are repeated: without credentials.
fn echoed_instruments(payment: &Node<'_>) -> Result<Vec<Value>, Refusal> {
    let Some(list) = payment.member("instruments")? else { return Ok(Vec::new()) };
    list.items(MAX_INSTRUMENTS)?.iter().map(echoed_instrument).collect()
}

fn echoed_instrument(node: &Node<'_>) -> Result<Value, Refusal> {
    let mut echo = Map::new();
    for name in ["id", "handler_id", "type"] {
        echo.insert(name.to_owned(), Value::String(no_card(&node.required(name)?)?));
    }
    if let Some(selected) = node.member("selected")? {
        echo.insert("selected".into(), Value::Bool(selected.boolean()?));
    }
    if let Some(display) = node.member("display")? {
        let mut shown = Map::new();
        for name in DISPLAY {
            let Some(part) = display.member(name)? else { continue };
            if part.value().is_string() {
                part.text(MAX_INTENT)?;
            }
            if part.value().as_str().is_some_and(mentions_card_number) || holds_card_number(part.value()) {
                continue;
            }
            if can_be_shown(name, part.value()) {
                shown.insert(name.to_owned(), part.value().clone());
            }
        }
        echo.insert("display".into(), Value::Object(shown));
    }
    if let Some(billing) = node.member("billing_address")? {
        let billing = address(&billing)?;
        echo.insert("billing_address".into(), json!(super::wire::Address::of(&billing)));
    }
    Ok(Value::Object(echo))
}

/// Whether a part of `display` has the form that an answer may show it in (`card_payment_instrument.json`).
fn can_be_shown(name: &str, value: &Value) -> bool {
    match name {
        "expiry_month" | "expiry_year" => value.is_u64(),
        "card_art" => value.as_str().is_some_and(|text| url::Url::parse(text).is_ok()),
        _ => value.is_string(),
    }
}

/// Lower-case labels joined by dots, at least two (`reverse_domain_name.json`).
fn is_reverse_domain(text: &str) -> bool {
    let small = |symbol: char| symbol.is_ascii_lowercase();
    let label = |label: &str, inner: fn(char) -> bool| label.starts_with(small) && label.chars().all(inner);
    let mut labels = text.split('.');
    let first =
        labels.next().is_some_and(|first| label(first, |c| c.is_ascii_lowercase() || c.is_ascii_digit()));
    let rest: Vec<bool> = labels
        .map(|other| label(other, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
        .collect();
    first && !rest.is_empty() && rest.into_iter().all(|fits| fits)
}

/// Reads a completion.
pub(crate) fn parse_completion(face: &ShopFace, body: &Value) -> Result<Completion, Refusal> {
    let body = Node::root(body);
    let payment = body.required("payment")?;
    let mut offered = Vec::new();
    if let Some(list) = payment.member("instruments")? {
        for node in list.items(MAX_INSTRUMENTS)? {
            offered.push(charged(face, &node)?);
        }
    }
    observations(&body)?;
    Ok(Completion {
        instrument: chosen(offered).filter(|instrument| is_usable(face, instrument)),
        unknown_handler: UnknownOption::Report,
        ..Completion::default()
    })
}

/// An id of an instrument; shown again, and therefore no card number.
fn no_card(node: &Node<'_>) -> Result<String, Refusal> {
    let id = node.id()?;
    if is_card_number(&id) { Err(node.refuse("must not be a card number")) } else { Ok(id) }
}

/// An instrument of a completion, and whether it is the selected one.
fn charged(face: &ShopFace, node: &Node<'_>) -> Result<(bool, Instrument), Refusal> {
    no_card(&node.required("id")?)?;
    let credential = node.member("credential")?;
    if let Some(credential) = &credential {
        credential.required("type")?.id()?;
    }
    let selected = node.member("selected")?.map(|node| node.boolean()).transpose()?;
    let instrument = Instrument {
        handler: match (node.member("handler_id")?, the_only_handler(face)) {
            (None, Some(only)) => only,
            (_, _) => node.required("handler_id")?.id()?,
        },
        kind: node.required("type")?.id()?,
        credential: credential.map_or(Value::Null, |node| node.value().clone()),
        billing: node.member("billing_address")?.map(|node| address(&node)).transpose()?,
    };
    Ok((selected.unwrap_or(false), instrument))
}

/// Under development rules an instrument without a handler is meant for the only one there is: some test
/// clients leave the member out.
fn the_only_handler(face: &ShopFace) -> Option<String> {
    let mut offered = face.handlers.iter().filter(|handler| handler.ucp.is_some());
    let only = offered.next().filter(|_| face.development && offered.next().is_none());
    only.map(|handler| handler.id.clone())
}

/// The one that is selected, else the only one. Where that is not clear nothing may be charged.
fn chosen(offered: Vec<(bool, Instrument)>) -> Option<Instrument> {
    let only = offered.len() == 1;
    let mut found = offered.into_iter().filter(|(selected, _)| *selected || only);
    match (found.next(), found.next()) {
        (Some((_, instrument)), None) => Some(instrument),
        _ => None,
    }
}

/// Whether it can be charged at all: it has a credential, which is no card number (except in development),
/// and its handler, if it is one of ours, takes its type.
fn is_usable(face: &ShopFace, instrument: &Instrument) -> bool {
    let kind = instrument.credential.get("type").and_then(Value::as_str);
    let handler = face.handlers.iter().find(|handler| handler.id == instrument.handler);
    let types = handler.and_then(|handler| handler.ucp.as_ref()).map(|ucp| ucp.instrument_types.as_slice());
    let types = types.unwrap_or_default();
    let in_clear = kind == Some(RAW_CARD) || holds_card_number(&instrument.credential);
    kind.is_some()
        && (!in_clear || (face.development && kind == Some(RAW_CARD)))
        && (types.is_empty() || types.contains(&instrument.kind))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
