//! The few calls of wc/v3 that a gateway needs: reading orders and stock, cancelling an order.
//!
//! Basic authentication with `ck_demo`/`cs_demo` (or the same as `consumer_key` and `consumer_secret`);
//! `ck_demo_read`/`cs_demo_read` may only read, `ck_demo_write`/`cs_demo_write` only write. A real shop ignores
//! keys that come over plain http; this one, being on loopback, does so only if a proxy says
//! `X-Forwarded-Proto: http`. Amounts are decimal texts in major units. Times without a zone are shop time, which is UTC.

use axum::http::HeaderMap;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::http::{ApiError, Call, Reply, trim};
use super::model::{Kind, Order, Refund, Status};
use super::money::{major, minor, parse_micros};
use super::orders;
use super::paging::{page_of, paging};
use super::paying;
use super::state::State;
use super::view::merged;
use super::wcv3_order::order_json;
use super::wcv3_product;

/// The keys: consumer key, secret, whether it may read, whether it may write.
const KEYS: [(&str, &str, bool, bool); 3] = [
    ("ck_demo", "cs_demo", true, true),
    ("ck_demo_read", "cs_demo_read", true, false),
    ("ck_demo_write", "cs_demo_write", false, true),
];

/// The methods that a path below `wc/v3` takes, or `None` if there is no such path.
pub(super) fn methods(path: &[&str]) -> Option<&'static str> {
    match path {
        [] | ["variations"] => Some("GET"),
        ["orders" | "products"] | ["products", _, "variations"] | ["orders", _, "refunds"] => {
            Some("GET, POST")
        }
        ["products", "batch"] => Some("POST, PUT, PATCH"),
        ["orders" | "products", _] | ["products", _, "variations", _] => {
            Some("GET, POST, PUT, PATCH, DELETE")
        }
        ["orders", _, "refunds", _] => Some("GET, DELETE"),
        _ => None,
    }
}

/// Refuses a call without a good key.
pub(super) fn authorize(call: &Call, headers: &HeaderMap) -> Result<(), ApiError> {
    let basic = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok()?.strip_prefix("Basic "))
        .and_then(|text| data_encoding::BASE64.decode(text.trim().as_bytes()).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let (key, secret) = match &basic {
        Some(pair) => {
            pair.split_once(':').map(|(key, secret)| (key.to_owned(), secret.to_owned())).unwrap_or_default()
        }
        None => (call.text("consumer_key"), call.text("consumer_secret")),
    };
    let asks = call.method == "OPTIONS";
    let reads = call.method == "GET" || asks;
    let plain = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "http");
    if plain && call.has("oauth_consumer_key") {
        let missing: Vec<&str> = ["oauth_timestamp", "oauth_nonce", "oauth_signature"]
            .into_iter()
            .filter(|name| !call.has(name))
            .collect();
        if !missing.is_empty() {
            let message = format!("Missing OAuth parameters {}", missing.join(", "));
            return Err(ApiError::new(401, "woocommerce_rest_authentication_missing_parameter", message));
        }
    }
    let known = KEYS.iter().find(|(known, ..)| *known == key).filter(|_| !plain);
    let Some((_, right, may_read, may_write)) = known else {
        return Err(if reads {
            ApiError::new(401, "woocommerce_rest_cannot_view", "Sorry, you cannot view this resource.")
        } else {
            ApiError::new(
                401,
                "woocommerce_rest_cannot_edit",
                "Sorry, you are not allowed to edit this resource.",
            )
        });
    };
    let refuse = |message: &str| Err(ApiError::new(401, "woocommerce_rest_authentication_error", message));
    if *right != secret {
        return refuse("Consumer secret is invalid.");
    }
    if reads && !asks && !may_read {
        return refuse("The API key provided does not have read permissions.");
    }
    if !reads && !may_write {
        return refuse("The API key provided does not have write permissions.");
    }
    Ok(())
}

/// Answers a wc/v3 call; `path` is the part below `wc/v3`.
pub(super) fn route(
    state: &mut State,
    call: &Call,
    path: &[&str],
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    if methods(path).is_none() {
        return Err(ApiError::no_route());
    }
    match (call.method.as_str(), path) {
        ("OPTIONS", path) => {
            let methods: Vec<&str> = methods(path).unwrap_or_default().split(", ").collect();
            let body = json!({"namespace": "wc/v3", "methods": methods});
            Ok(Reply::new(200, trim(body, Some(&call.text("_fields")))))
        }
        ("DELETE", ["orders", id]) => delete_order(state, call, id, now),
        ("GET", []) => Ok(Reply::new(200, json!({"namespace": "wc/v3", "routes": {}}))),
        ("GET", ["orders"]) => list_orders(state, call),
        ("GET", ["orders", id]) => {
            let order = find_order(state, id)?;
            Ok(Reply::new(
                200,
                trimmed(state, call, order_json(state, order, places(call)), &format!("orders/{}", order.id)),
            ))
        }
        ("PUT" | "POST" | "PATCH", ["orders", id]) => write_order(state, call, id, now),
        ("GET", ["products"]) => {
            wcv3_product::list(state, call, false, |product| product.kind != Kind::Variation)
        }
        ("GET", ["variations"]) => {
            wcv3_product::list(state, call, true, |product| product.kind == Kind::Variation)
        }
        ("GET", ["products", id]) => wcv3_product::read(state, call, id),
        ("GET", ["products", id, "variations"]) => wcv3_product::variations(state, call, id),
        ("PUT" | "POST" | "PATCH", ["products", id]) => {
            wcv3_product::write_stock(state, call, (None, id), now)
        }
        ("PUT" | "POST" | "PATCH", ["products", parent, "variations", id]) => {
            wcv3_product::write_stock(state, call, (Some(parent), id), now)
        }
        ("POST", ["orders", id, "refunds"]) => make_refund(state, call, id, now),
        ("GET", ["orders", id, "refunds"]) => {
            let order = find_order(state, id)?;
            Ok(Reply::new(200, order.refunds.iter().rev().map(|refund| refund_json(state, refund)).collect()))
        }
        ("DELETE", ["orders", id, "refunds", refund]) => {
            let id = find_order(state, id)?.id;
            let removed = refund.parse().ok().and_then(|refund| orders::delete_refund(state, id, refund));
            let removed = removed.ok_or_else(|| {
                ApiError::new(404, "woocommerce_rest_shop_order_refund_invalid_id", "Invalid ID.")
            })?;
            Ok(Reply::new(200, refund_json(state, &removed)))
        }
        _ => Err(ApiError::no_route()),
    }
}

/// A single object: trimmed, then with the links that `_fields` does not touch.
fn trimmed(state: &State, call: &Call, body: Value, path: &str) -> Value {
    let body = trim(body, Some(&call.text("_fields")));
    merged(body, json!({"_links": links(state, path)}))
}

pub(super) fn links(state: &State, path: &str) -> Value {
    let base = format!("{}/wp-json/wc/v3", state.public_base);
    let collection = path.rsplit_once('/').map_or(path, |(collection, _)| collection);
    let mut links = json!({
        "self": [{
            "href": format!("{base}/{path}"),
            "targetHints": {"allow": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
        }],
        "collection": [{"href": format!("{base}/{collection}")}],
    });
    if collection == "orders" {
        let href = format!("{base}/{path}/actions/email_templates");
        links = merged(links, json!({"email_templates": [{"embeddable": true, "href": href}]}));
    }
    links
}

fn find_order<'a>(state: &'a State, id: &str) -> Result<&'a Order, ApiError> {
    id.parse()
        .ok()
        .and_then(|id| state.order(id))
        .ok_or_else(|| ApiError::new(404, "woocommerce_rest_shop_order_invalid_id", "Invalid ID."))
}

/// Shop time.
pub(super) fn shop_time(state: &State, time: DateTime<Utc>) -> DateTime<Utc> {
    time + TimeDelta::hours(state.settings().utc_offset_hours)
}

/// A time filter. Without a zone it is shop time, unless the call says that its dates are UTC.
pub(super) fn time(
    state: &State,
    call: &Call,
    name: &'static str,
) -> Result<Option<DateTime<Utc>>, ApiError> {
    let text = call.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(&text) {
        return Ok(Some(time.with_timezone(&Utc)));
    }
    let ahead = if call.text("dates_are_gmt") == "true" { 0 } else { state.settings().utc_offset_hours };
    match text.parse::<NaiveDateTime>() {
        Ok(time) => Ok(Some(time.and_utc() - TimeDelta::hours(ahead))),
        Err(_) => Err(ApiError::invalid(name, "rest_invalid_date", "Invalid date.")),
    }
}

/// Whether a search text finds an order: start of the e-mail, names, address, products, id, transaction.
fn finds(order: &Order, search: &str) -> bool {
    let search = search.to_lowercase();
    let both = [&order.billing, &order.shipping];
    let texts = both.iter().flat_map(|address| {
        [
            &address.first_name,
            &address.last_name,
            &address.company,
            &address.address_1,
            &address.city,
            &address.postcode,
        ]
    });
    let full = format!("{} {}", order.billing.first_name, order.billing.last_name);
    order.billing.email.to_lowercase().starts_with(&search)
        || order.id.to_string() == search
        || (!order.transaction_id.is_empty() && order.transaction_id.to_lowercase() == search)
        || full.to_lowercase().contains(&search)
        || texts.into_iter().any(|text| !text.is_empty() && text.to_lowercase().contains(&search))
        || order.lines.iter().any(|line| line.name.to_lowercase().contains(&search))
}

/// Whether a product, or a variation of it, is in an order.
fn holds(state: &State, order: &Order, id: &str) -> bool {
    order.lines.iter().any(|line| {
        let parent = state.product(line.product).map_or(0, |product| product.parent);
        [line.product, parent].iter().any(|known| known.to_string() == id)
    })
}

/// How many decimals amounts are asked for with.
fn places(call: &Call) -> usize {
    call.text("dp").parse().unwrap_or(2)
}

fn list_orders(state: &State, call: &Call) -> Result<Reply, ApiError> {
    let (per_page, page) = paging(call, 1)?;
    let mut wanted = Vec::new();
    for name in call.list("status").unwrap_or_default() {
        if name == "any" {
            wanted.extend(Status::ALL.into_iter().filter(|status| *status != Status::Trash));
        } else if let Some(status) = Status::parse(name.trim_start_matches("wc-")) {
            wanted.push(status);
        } else {
            let text = "status[0] is not one of any, trash, auto-draft, pending, processing, on-hold, completed, \
                        cancelled, refunded, failed, and checkout-draft.";
            return Err(ApiError::invalid("status", "rest_not_in_enum", text));
        }
    }
    // `any` beats the rest: trash stays out even if it is named beside it.
    if call.list("status").is_some_and(|names| names.iter().any(|name| name == "any")) {
        wanted.retain(|status| *status != Status::Trash);
    }
    let (after, before) = (time(state, call, "after")?, time(state, call, "before")?);
    let (modified_after, modified_before) =
        (time(state, call, "modified_after")?, time(state, call, "modified_before")?);
    let search = call.text("search");
    let include = call.list("include");
    let via = call.text("created_via");
    let product = call.text("product");
    let mut found: Vec<&Order> = state
        .orders()
        .filter(|order| {
            (if wanted.is_empty() { order.status != Status::Trash } else { wanted.contains(&order.status) })
                && (via.is_empty() || via == order.created_via)
                && (product.is_empty() || holds(state, order, &product))
                && after.is_none_or(|after| order.created > after)
                && before.is_none_or(|before| order.created < before)
                && modified_after.is_none_or(|after| order.modified > after)
                && modified_before.is_none_or(|before| order.modified < before)
                && include.as_ref().is_none_or(|ids| ids.contains(&order.id.to_string()))
                && (search.is_empty() || finds(order, &search))
        })
        .collect();
    if call.text("orderby") == "modified" {
        found.sort_by_key(|order| order.modified);
    }
    if call.text("order") != "asc" {
        found.reverse();
    }
    let fields = call.text("_fields");
    // Past its end a list of orders does not even tell how many there are.
    if found.len() <= per_page.saturating_mul(page - 1) {
        found.clear();
    }
    let places = places(call);
    Ok(page_of(found, per_page, page, |order| {
        let body = merged(
            order_json(state, order, places),
            json!({"_links": links(state, &format!("orders/{}", order.id))}),
        );
        trim(body, Some(&fields))
    }))
}

fn write_order(state: &mut State, call: &Call, id: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let id = find_order(state, id)?.id;
    let status = call.text("status");
    if !status.is_empty() {
        let Some(status) = Status::parse(&status) else {
            let text = "status is not one of auto-draft, pending, processing, on-hold, completed, cancelled, refunded, \
                        failed, and checkout-draft.";
            return Err(ApiError::invalid("status", "rest_not_in_enum", text));
        };
        orders::set_status(state, id, status, now);
    }
    if call.has("transaction_id")
        && let Some(order) = state.order_mut(id)
    {
        order.transaction_id = call.text("transaction_id");
    }
    if call.params.get("set_paid") == Some(&Value::Bool(true)) {
        let paid = find_order(state, &id.to_string())?;
        let transaction = paid.transaction_id.clone();
        paying::pay(state, id, now);
        if let Some(order) = state.order_mut(id).filter(|_| !transaction.is_empty()) {
            order.transaction_id = transaction;
        }
    }
    write_meta(state, call, id);
    let order = find_order(state, &id.to_string())?;
    Ok(Reply::new(200, trimmed(state, call, order_json(state, order, places(call)), &format!("orders/{id}"))))
}

/// Rows of meta that a client adds or changes.
fn write_meta(state: &mut State, call: &Call, id: u64) {
    for row in call.params.get("meta_data").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (key, value) = (text("key"), text("value"));
        let fresh = state.next_meta_id();
        let Some(order) = state.order_mut(id) else { return };
        match order.meta.iter_mut().find(|(_, known, _)| *known == key) {
            Some((.., known)) => *known = value,
            None => order.meta.push((fresh, key, value)),
        }
    }
}

/// An amount like `35.70`, or 30.0 as a number, in minor units.
fn amount(state: &State, value: Option<&Value>) -> Option<i64> {
    let text = match value? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    parse_micros(&text).map(|micros| minor(state.settings(), micros))
}

fn refund_json(state: &State, refund: &Refund) -> Value {
    let amount = refund.amount.map(|amount| major(state.settings(), amount)).unwrap_or_default();
    json!({"id": refund.id, "amount": amount, "reason": refund.reason})
}

/// A refund: an amount, or the sum of its lines with their tax; units of lines go back into stock.
fn make_refund(state: &mut State, call: &Call, id: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let id = find_order(state, id)?.id;
    let lines = call.params.get("line_items").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut sum = None;
    let mut units = Vec::new();
    for line in &lines {
        let taxes = line.get("refund_tax").and_then(Value::as_array).into_iter().flatten();
        let all =
            std::iter::once(line).chain(taxes).filter_map(|part| amount(state, part.get("refund_total")));
        sum = Some(sum.unwrap_or_default() + all.sum::<i64>());
        let number = |name: &str| line.get(name).and_then(Value::as_i64).unwrap_or_default();
        units.push((u64::try_from(number("id")).unwrap_or_default(), number("quantity")));
    }
    let total = amount(state, call.params.get("amount")).or(sum);
    match orders::refund(state, id, (total, &call.text("reason")), &units, now) {
        Some(refund) => Ok(Reply::new(201, refund_json(state, &refund))),
        None => {
            Err(ApiError::new(500, "woocommerce_rest_cannot_create_order_refund", "Invalid refund amount."))
        }
    }
}

/// Moves an order to the trash, or with `force` out of the shop; tells what it was before.
fn delete_order(state: &mut State, call: &Call, id: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let order = find_order(state, id)?;
    let (id, body) = (order.id, order_json(state, order, places(call)));
    let body = trimmed(state, call, body, &format!("orders/{id}"));
    if call.text("force") == "true" {
        state.remove_order(id);
    } else {
        let before = find_order(state, &id.to_string())?.status.name();
        orders::set_status(state, id, Status::Trash, now);
        let first = state.next_meta_id();
        if let Some(order) = state.order_mut(id) {
            let time = now.timestamp().to_string();
            order.meta.push((first, "_wp_trash_meta_status".to_owned(), format!("wc-{before}")));
            order.meta.push((first + 1, "_wp_trash_meta_time".to_owned(), time));
        }
    }
    Ok(Reply::new(200, body))
}

pub(super) fn stamp(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S").to_string()
}
