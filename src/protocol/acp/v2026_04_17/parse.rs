//! From a body to a domain command (`acp.md` §4.1, D-16, D-18, D-19, D-20).

use serde_json::{Value, json};

use super::{DIGITAL_OPTION, Echo, payment};
use crate::{
    checkout::{
        command::{
            BuyerPatch, Change, Completion, DeliveryPatch, Patch, UnknownItems, UnknownOption, WantedLine,
        },
        ids::LineId,
        session::{Address, Buyer},
    },
    protocol::{
        ShopFace,
        acp::{
            EXTENSION_DISCOUNT, INTERVENTIONS, PROTOCOL,
            read::{Form, Node, Object, looks_like_email},
            routes::{Command, Write},
        },
    },
};

const MAX_NOTE: usize = 5_000;
const MAX_SUMMARY: usize = 500;
const MAX_METADATA: usize = 20;
/// Metadata are kept with the session and go out with every answer.
const MAX_METADATA_BYTES: usize = 16 * 1024;
const MAX_CODES: usize = 20;
const MAX_CODE: usize = 100;

/// Reads the body of a write. The second part is what rendering needs to know of the request.
///
/// # Errors
/// [`Form`]: 400.
pub(in crate::protocol::acp) fn parse(
    face: &ShopFace,
    write: Write,
    body: Option<&Value>,
) -> Result<(Command, Value), Form> {
    let empty = Value::Object(serde_json::Map::new());
    let root = Node::root(body.unwrap_or(&empty)).object()?;
    match write {
        Write::Create => {
            let (change, details) = create(face, &root)?;
            Ok((Command::Create(Box::new(change)), details))
        }
        Write::Update(id) => {
            let (change, details) = update(face, &root)?;
            Ok((Command::Update(id, Box::new(change)), details))
        }
        Write::Complete(id) => Ok((Command::Complete(id, Box::new(complete(face, &root)?)), Value::Null)),
        Write::Cancel(id) => {
            intent_trace(&root)?;
            Ok((Command::Cancel(id), Value::Null))
        }
    }
}

/// Where the request named the item with this number.
pub(in crate::protocol::acp) fn item_path(details: &Value, index: usize) -> String {
    let sent = details.get("item_paths").and_then(|paths| paths.get(index)).and_then(Value::as_str);
    sent.map_or_else(|| format!("$.line_items[{index}].id"), str::to_owned)
}

fn create(face: &ShopFace, root: &Object<'_>) -> Result<(Change, Value), Form> {
    let name = if root.has("line_items") || !root.has("items") { "line_items" } else { "items" };
    let lines = root.need(name)?;
    let (wanted, paths) = line_items(face, &lines)?;
    if wanted.is_empty() {
        return Err(lines.invalid("At least one line item is required."));
    }
    currency(face, &root.need("currency")?)?;
    let echo = Echo {
        locale: root.optional_text("locale")?.map(str::to_owned),
        timezone: root.optional_text("timezone")?.map(str::to_owned),
        quote_id: root.optional_text("quote_id")?.map(str::to_owned),
        metadata: metadata(root)?,
        ..capabilities(&root.need("capabilities")?)?
    };
    attribution(root)?;
    let change = Change {
        lines: Patch::Set(wanted),
        echo: Some((PROTOCOL.to_owned(), json!(echo))),
        may_be_empty: true,
        ..common(root)?
    };
    Ok((change, json!({ "item_paths": paths })))
}

fn update(face: &ShopFace, root: &Object<'_>) -> Result<(Change, Value), Form> {
    let name = if root.has("line_items") { "line_items" } else { "items" };
    let mut paths = Vec::new();
    let lines = root.patch(name, |node| {
        let (wanted, places) = line_items(face, node)?;
        paths = places;
        Ok(wanted)
    })?;
    let (option, item_ids) = selection(root)?;
    let echo = match &option {
        Patch::Keep => None,
        Patch::Clear | Patch::Set(_) => Some((PROTOCOL.to_owned(), json!({ "item_ids": item_ids }))),
    };
    let change = Change { lines, option, echo, echo_merges: true, ..common(root)? };
    Ok((change, json!({ "item_paths": paths })))
}

/// What a create and an update have in common.
fn common(root: &Object<'_>) -> Result<Change, Form> {
    if let Some(groups) = root.get("fulfillment_groups") {
        groups.list()?.iter().try_for_each(|group| group.object().map(drop))?;
    }
    let (buyer, buyer_parts) = buyer(root)?;
    Ok(Change {
        buyer,
        buyer_parts,
        delivery: fulfillment_details(root)?,
        codes: codes(root)?,
        note: note(root)?,
        unknown_items: UnknownItems::Refuse,
        unknown_option: UnknownOption::Refuse,
        nothing_ships_option: Some(DIGITAL_OPTION.to_owned()),
        ..Change::default()
    })
}

fn complete(face: &ShopFace, root: &Object<'_>) -> Result<Completion, Form> {
    let instrument = payment::instrument(face, &root.need("payment_data")?)?;
    root.accept_objects(&["authentication_result", "risk_signals"])?;
    attribution(root)?;
    consents(root)?;
    // A completion adds to what the session has; nothing is cleared by a null at this point.
    let (_, buyer_parts) = buyer(root)?;
    let note = match note(root)? {
        Patch::Set(note) => Patch::Set(note),
        Patch::Keep | Patch::Clear => Patch::Keep,
    };
    Ok(Completion {
        instrument: Some(instrument),
        buyer: Patch::Keep,
        buyer_parts,
        note,
        unknown_handler: UnknownOption::Refuse,
    })
}

fn line_items(face: &ShopFace, node: &Node<'_>) -> Result<(Vec<WantedLine>, Vec<String>), Form> {
    let items = node.list()?;
    if items.len() > face.max_lines {
        return Err(node.invalid("There are too many line items."));
    }
    let mut wanted = Vec::with_capacity(items.len());
    let mut paths = Vec::with_capacity(items.len());
    for item in &items {
        let line = item.object()?;
        // As the session shows it, the line's id stands beside the item; as a request, the id is the item's.
        let (id, named) = match line.get("item") {
            Some(inner) => {
                let id = line.optional_text("id")?.map(LineId::new);
                (id, inner.object()?.need("id")?)
            }
            None => (None, line.need("id")?),
        };
        let quantity =
            line.get("quantity").map(|node| node.count(face.max_quantity)).transpose()?.unwrap_or(1);
        wanted.push(WantedLine { id, item: named.filled()?.to_owned(), quantity, parent: None });
        paths.push(named.path().to_owned());
    }
    Ok((wanted, paths))
}

fn currency(face: &ShopFace, node: &Node<'_>) -> Result<(), Form> {
    if node.text()?.eq_ignore_ascii_case(face.currency.code()) {
        Ok(())
    } else {
        Err(node.refuse("unsupported_currency", "The shop does not sell in this currency."))
    }
}

/// What is active of what the agent can do: unknown names are left out.
fn capabilities(node: &Node<'_>) -> Result<Echo, Form> {
    let object = node.object()?;
    object.accept_objects(&["payment"])?;
    let mut echo = Echo::default();
    if let Some(interventions) = object.get("interventions") {
        for name in
            interventions.object()?.get("supported").map(|node| node.list()).transpose()?.unwrap_or_default()
        {
            let name = name.text()?;
            if INTERVENTIONS.contains(&name) && !echo.interventions.iter().any(|one| one == name) {
                echo.interventions.push(name.to_owned());
            }
        }
    }
    for name in object.get("extensions").map(|node| node.list()).transpose()?.unwrap_or_default() {
        let name = name.text()?;
        let asked = name.split('@').next() == Some(EXTENSION_DISCOUNT);
        if asked && echo.extensions.is_empty() {
            echo.extensions.push(EXTENSION_DISCOUNT.to_owned());
        }
    }
    Ok(echo)
}

fn metadata(root: &Object<'_>) -> Result<Option<serde_json::Map<String, Value>>, Form> {
    let Some(node) = root.get("metadata") else { return Ok(None) };
    if node.object()?.len() > MAX_METADATA {
        return Err(node.invalid("There are too many metadata members."));
    }
    if node.value().to_string().len() > MAX_METADATA_BYTES {
        return Err(node.invalid("The metadata are too large."));
    }
    Ok(node.value().as_object().cloned())
}

fn buyer(root: &Object<'_>) -> Result<(Patch<Buyer>, BuyerPatch), Form> {
    let Some(node) = root.get("buyer") else {
        let whole = if root.has("buyer") { Patch::Clear } else { Patch::Keep };
        return Ok((whole, BuyerPatch::default()));
    };
    let buyer = node.object()?;
    buyer.accept_texts(&["customer_id", "account_type", "authentication_status"])?;
    buyer.accept_objects(&["company", "loyalty", "tax_exemption"])?;
    let mut parts = BuyerPatch {
        first_name: buyer.patch_text("first_name")?,
        last_name: buyer.patch_text("last_name")?,
        email: buyer.patch("email", |node| Ok(node.email()?.to_owned()))?,
        phone: buyer.patch_text("phone_number")?,
    };
    if let Patch::Set(full) = buyer.patch_text("full_name")?
        && (&parts.first_name, &parts.last_name) == (&Patch::Keep, &Patch::Keep)
    {
        let (first, last) = split_name(&full);
        (parts.first_name, parts.last_name) = (Patch::Set(first), Patch::Set(last));
    }
    Ok((Patch::Keep, parts))
}

/// The shop keeps two names: the last word is the family name. A name of one word stands for both, because the
/// shop wants both; it is shown once.
pub(super) fn split_name(full: &str) -> (String, String) {
    let words: Vec<&str> = full.split_whitespace().collect();
    match words.as_slice() {
        [] => (String::new(), String::new()),
        [only] => ((*only).to_owned(), (*only).to_owned()),
        [first @ .., last] => (first.join(" "), (*last).to_owned()),
    }
}

fn fulfillment_details(root: &Object<'_>) -> Result<DeliveryPatch, Form> {
    let Some(node) = root.get("fulfillment_details") else {
        return Ok(if root.has("fulfillment_details") {
            DeliveryPatch {
                name: Patch::Clear,
                phone: Patch::Clear,
                email: Patch::Clear,
                address: Patch::Clear,
            }
        } else {
            DeliveryPatch::default()
        });
    };
    let details = node.object()?;
    let name = details.patch_text("name")?;
    let address = details.patch("address", |node| {
        let mut address = address(node)?;
        if let (Patch::Set(name), true) = (&name, address.first_name.is_empty()) {
            (address.first_name, address.last_name) = split_name(name);
        }
        Ok(address)
    })?;
    let email = details.patch("email", |node| Ok(node.email()?.to_owned()))?;
    Ok(DeliveryPatch { phone: details.patch_text("phone_number")?, name, email, address })
}

/// An address. Its six members must be there; where a country has no states or postcodes they are empty.
pub(super) fn address(node: &Node<'_>) -> Result<Address, Form> {
    let object = node.object()?;
    let (first_name, last_name) = split_name(object.need("name")?.text()?);
    let code = object.need("country")?;
    let country = code.text()?.trim().to_ascii_uppercase();
    if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(code.invalid("This must be a country code of two letters (ISO 3166-1)."));
    }
    let text = |name: &str| Ok::<_, Form>(object.need(name)?.text()?.trim().to_owned());
    let extra = |name: &str| Ok::<_, Form>(object.optional_text(name)?.unwrap_or_default().trim().to_owned());
    Ok(Address {
        first_name,
        last_name,
        company: extra("company")?,
        line_one: text("line_one")?,
        line_two: extra("line_two")?,
        city: text("city")?,
        region: text("state")?,
        postal_code: text("postal_code")?,
        country,
        phone: String::new(),
    })
}

fn codes(root: &Object<'_>) -> Result<Patch<Vec<String>>, Form> {
    let read = |node: &Node<'_>| {
        let codes = node.list()?;
        if codes.len() > MAX_CODES {
            return Err(node.invalid("There are too many codes."));
        }
        codes.iter().map(|code| code.text_up_to(MAX_CODE).map(str::to_owned)).collect()
    };
    if let Some(discounts) = root.get("discounts") {
        let discounts = discounts.object()?;
        if discounts.has("codes") {
            return discounts.patch("codes", read);
        }
    } else if root.has("discounts") {
        return Ok(Patch::Clear);
    }
    root.patch("coupons", read)
}

fn note(root: &Object<'_>) -> Result<Patch<String>, Form> {
    root.patch("order_notes", |node| Ok(node.lines_up_to(MAX_NOTE)?.to_owned()))
}

/// The one option chosen, and the items named with it. An empty list chooses none.
fn selection(root: &Object<'_>) -> Result<(Patch<String>, Option<Vec<String>>), Form> {
    let mut item_ids = None;
    let chosen = root.patch("selected_fulfillment_options", |node| {
        let picks = node.list()?;
        let mut chosen: Option<String> = None;
        for pick in &picks {
            let object = pick.object()?;
            let kind = object.need("type")?.text()?;
            let option = object.need("option_id")?;
            let id = option.text()?;
            let ids: Vec<String> = object
                .need("item_ids")?
                .list()?
                .iter()
                .map(|item| item.text().map(str::to_owned))
                .collect::<Result<_, Form>>()?;
            let of_kind = match kind {
                "shipping" => id != DIGITAL_OPTION,
                "digital" => id == DIGITAL_OPTION,
                _ => false,
            };
            if !of_kind || chosen.as_deref().is_some_and(|other| other != id) {
                return Err(option.refuse(
                    "invalid_fulfillment_option",
                    "One offered option can be chosen for the whole session, by its type and id.",
                ));
            }
            chosen = Some(id.to_owned());
            item_ids.get_or_insert_with(Vec::new).extend(ids);
        }
        Ok(chosen)
    })?;
    let option = match chosen {
        Patch::Keep => Patch::Keep,
        Patch::Clear | Patch::Set(None) => Patch::Clear,
        Patch::Set(Some(id)) => Patch::Set(id),
    };
    Ok((option, item_ids))
}

/// Checks the form of an attribution. It is never kept and never shown.
fn attribution(root: &Object<'_>) -> Result<(), Form> {
    let Some(node) = root.get("affiliate_attribution") else { return Ok(()) };
    let typed = |form: Form| if form.code == "invalid" { form.coded("invalid_type") } else { form };
    let object = node.object().map_err(typed)?;
    object.need("provider")?.filled().map_err(typed)?;
    object
        .accept_texts(&[
            "token",
            "publisher_id",
            "campaign_id",
            "creative_id",
            "sub_id",
            "issued_at",
            "expires_at",
            "touchpoint",
        ])
        .map_err(typed)?;
    object.accept_objects(&["source"]).map_err(typed)?;
    if object.get("token").is_none() && object.get("publisher_id").is_none() {
        return Err(node.refuse("missing_required_field", "A token or a publisher_id is required."));
    }
    flat(&object)?;
    if let Some(metadata) = object.get("metadata")
        && metadata.object()?.values().filter_map(Value::as_str).any(looks_like_email)
    {
        return Err(metadata.refuse("pii_not_allowed", "Personal data are not allowed here."));
    }
    Ok(())
}

/// Checks that metadata hold no objects and no lists.
fn flat(object: &Object<'_>) -> Result<(), Form> {
    let Some(node) = object.get("metadata") else { return Ok(()) };
    let metadata = node.object().map_err(|form| form.coded("invalid_type"))?;
    if metadata.values().any(|value| value.is_object() || value.is_array() || value.is_null()) {
        return Err(node.refuse("invalid_type", "Metadata must be strings, numbers or booleans."));
    }
    Ok(())
}

/// Checks the form of consents. None is asked for, so every channel is one that was not offered.
fn consents(root: &Object<'_>) -> Result<(), Form> {
    let Some(node) = root.get("marketing_consents") else { return Ok(()) };
    for consent in node.list()? {
        let consent = consent.object()?;
        consent.need("channel")?.text()?;
        consent.need("opted_in")?.boolean()?;
    }
    Ok(())
}

/// Checks the form of an intent trace. Whatever it says, the session is given up.
fn intent_trace(root: &Object<'_>) -> Result<(), Form> {
    let Some(node) = root.get("intent_trace") else { return Ok(()) };
    let typed = |form: Form| form.coded("invalid_type");
    let trace = node.object().map_err(typed)?;
    trace.need("reason_code").and_then(|node| node.text()).map_err(typed)?;
    if let Some(summary) = trace.get("trace_summary") {
        summary.lines_up_to(MAX_SUMMARY).map_err(typed)?;
    }
    flat(&trace)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
