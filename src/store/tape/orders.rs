//! A look for orders that was not recorded at this point, answered from what was played.
//!
//! A gateway looks for orders whenever it is in doubt (after a decline, before the next attempt), more often
//! than a recording does. What such a look must find follows from the exchanges themselves: the orders whose
//! `POST /checkout` was answered 200 or 202 with an order id, as that answer told them; none before it.
//!
//! This holds only for the plain look of one buyer (`created_via`, `search`, `after`), and only where nothing
//! speaks against it: a recording with looks of its own must have one that equals this one but for its point
//! in time, and an answer that was lost proves nothing.

use serde_json::{Map, Value, json};

use super::{
    answer::{Reply, trim},
    har::header,
    matching::{Call, Sent},
    thread::{Body, Exchange, Thread},
};

/// The answer of a checkout, if it made an order that its caller has seen.
enum Outcome<'a> {
    Order(&'a Map<String, Value>, u64),
    None,
    /// Nobody saw the answer.
    Lost,
}

/// What the writes played so far make of a look by this e-mail address; `None` where that cannot be known.
pub(super) fn listed(thread: &Thread, history: &[Call], email: &str) -> Option<Vec<Value>> {
    let mut found: Vec<(u64, Value)> = Vec::new();
    for (turn, live) in history.iter().enumerate() {
        let Some(sent) = live.sent_checkout() else { continue };
        if !sent.email.eq_ignore_ascii_case(email) {
            continue;
        }
        match outcome(thread.write(turn)?) {
            Outcome::Lost => return None,
            Outcome::None => {}
            Outcome::Order(answer, id) => {
                found.retain(|(known, _)| *known != id);
                found.push((id, row(thread, turn, answer, id, &sent)));
            }
        }
    }
    Some(found.into_iter().map(|(_, row)| row).collect())
}

/// The answer to a look, cut to the members that it asks for.
pub(super) fn reply(live: &Call, orders: Vec<Value>) -> Reply {
    let mut body = Value::Array(orders);
    trim(&mut body, live.first().and_then(|request| request.fields.as_deref()));
    Reply::json(200, None, &body)
}

fn outcome(exchange: &Exchange) -> Outcome<'_> {
    let (status, Body::Json(Value::Object(answer))) = (exchange.answer.status, &exchange.answer.body) else {
        return if exchange.answer.status == 0 { Outcome::Lost } else { Outcome::None };
    };
    match (status, answer.get("order_id").and_then(Value::as_u64)) {
        (0, _) => Outcome::Lost,
        (200 | 202, Some(id)) if id > 0 => Outcome::Order(answer, id),
        _ => Outcome::None,
    }
}

/// An order as a list shows it, as far as its checkout told. What was not told is left out.
fn row(thread: &Thread, turn: usize, answer: &Map<String, Value>, id: u64, sent: &Sent<'_>) -> Value {
    let mut row = Map::new();
    row.insert("id".to_owned(), id.into());
    row.insert(
        "number".to_owned(),
        answer.get("order_number").cloned().unwrap_or_else(|| id.to_string().into()),
    );
    for member in ["status", "order_key"] {
        row.extend(answer.get(member).map(|value| (member.to_owned(), value.clone())));
    }
    row.extend(total(thread, turn).map(|total| ("total".to_owned(), total.into())));
    row.extend(moment(thread, turn).map(|at| ("date_modified_gmt".to_owned(), at.into())));
    row.insert("transaction_id".to_owned(), "".into());
    let correlation = sent.correlation.map(|id| json!({ "key": META, "value": id }));
    row.insert("meta_data".to_owned(), correlation.into_iter().collect());
    Value::Object(row)
}

/// The order's meta that carries the correlation id.
const META: &str = "_wc_order_attribution_utm_id";

/// What the cart came to when it was last answered before that write, in major units.
fn total(thread: &Thread, turn: usize) -> Option<String> {
    let before = *thread.writes.get(turn)?;
    let carts =
        thread.exchanges.get(..before)?.iter().rev().filter_map(|exchange| cart(&exchange.answer.body));
    let totals =
        carts.filter_map(|cart| cart.get("totals")).find(|totals| totals.get("total_price").is_some())?;
    let minor = totals.get("total_price")?.as_str()?;
    let decimals = usize::try_from(totals.get("currency_minor_unit")?.as_u64()?).ok()?;
    let digits = format!("{minor:0>width$}", width = decimals + 1);
    let (whole, part) = digits.split_at_checked(digits.len().checked_sub(decimals)?)?;
    Some(if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") })
}

/// A cart that was answered, alone or at the end of a batch.
fn cart(body: &Body) -> Option<&Value> {
    let Body::Json(value) = body else { return None };
    match value.get("responses").and_then(Value::as_array) {
        Some(responses) => responses.last()?.get("body"),
        None => Some(value),
    }
}

/// When the shop answered.
fn moment(thread: &Thread, turn: usize) -> Option<String> {
    let date = header(&thread.write(turn)?.answer.headers, "date")?;
    let date = chrono::DateTime::parse_from_rfc2822(date).ok()?;
    Some(date.to_utc().format("%Y-%m-%dT%H:%M:%S").to_string())
}
