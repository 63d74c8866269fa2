//! Orders read back: by id and key through the Store API, by correlation id through `wc/v3`.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    client::{AdminApi, Call, NO_BODY, StoreApi},
    translate::{Reader, major},
    wire::{LineTotals, Order, OrderTotals, Unit, V3Line, V3Order},
};
use crate::{
    checkout::store::{Draft, Error, FoundOrder, FoundState, OrderSearch, OrderView, PlacedOrder},
    money::Currency,
};

/// The order's meta that carries our correlation id.
pub(super) const CORRELATION: &str = "_wc_order_attribution_utm_id";
/// The mark of a line whose units are taken off the stock.
const REDUCED: &str = "_reduced_stock";
/// What is read of an order.
const FIELDS: &str = "id,status,total,meta_data,date_modified_gmt,line_items,order_key,number,transaction_id";
/// How many orders a page has when none is asked for.
const PAGE: usize = 10;
/// Pages after which a search for one buyer's last orders has gone astray.
const MOST_PAGES: usize = 50;

/// Reads an order with its key; no cart token opens it.
pub(super) async fn read(
    api: &StoreApi,
    call: Call,
    order: &PlacedOrder,
    email: &str,
) -> Result<OrderView, Error> {
    view(&by_key(api, call, &order.shop_order, &order.key, email).await?)
}

async fn by_key(
    api: &StoreApi,
    call: Call,
    shop_order: &str,
    key: &str,
    email: &str,
) -> Result<Order, Error> {
    let path = format!("/order/{}", number(shop_order)?);
    let query = [("key", key), ("billing_email", email)];
    api.call(call, Method::GET, &path, &query, None, NO_BODY).await?.read(call)
}

fn view(order: &Order) -> Result<OrderView, Error> {
    let money = Reader::new(&order.totals.unit, false)?;
    let unit = scale(&order.totals, order.items.iter().map(|item| &item.totals))?;
    let total = money.amount(&order.totals.total_price, &unit)?;
    let units = order.items.iter().try_fold(0_u32, |sum, item| sum.checked_add(item.quantity));
    let units = units.ok_or_else(|| unclear("more units than can be counted"))?;
    Ok(OrderView { currency: money.currency(), total, units })
}

/// The decimals in which an order's sums are counted.
///
/// Lines follow the shop's setting, but 10.5 counts the sums of an order with two decimals whatever the
/// setting says (later releases may not). The sum of the items tells which: it is taken in both scales and
/// compared with the lines.
fn scale<'a>(totals: &OrderTotals, lines: impl Iterator<Item = &'a LineTotals>) -> Result<Unit, Error> {
    let shown = totals.unit.currency_minor_unit;
    let with =
        |decimals| Unit { currency_code: totals.unit.currency_code.clone(), currency_minor_unit: decimals };
    if shown == 2 {
        return Ok(with(2));
    }
    let number = |text: &str| text.trim().parse::<i128>().map_err(|_| unclear("an amount is not an integer"));
    let mut by_line = 0_i128;
    for line in lines {
        by_line += number(&line.line_total)? + number(&line.line_total_tax)?;
    }
    let items = number(&totals.total_items)? + number(&totals.total_items_tax)?;
    let power = |decimals: u32| 10_i128.checked_pow(decimals).ok_or_else(|| unclear("too many decimals"));
    let as_shown = (items - by_line).abs() * power(2)?;
    let as_two = (items * power(shown)? - by_line * power(2)?).abs();
    match as_shown.cmp(&as_two) {
        std::cmp::Ordering::Less => Ok(with(shown)),
        std::cmp::Ordering::Greater if shown < 2 => Ok(with(2)),
        std::cmp::Ordering::Greater => Err(unclear("the shop rounds the sums of an order to two decimals")),
        std::cmp::Ordering::Equal => Err(unclear("the decimals of an order's sums cannot be told")),
    }
}

/// Looks for orders that carry the correlation id.
///
/// Without a status the shop lists every status, a plugin's own ones too, but the trash and (from 10.8 on) drafts.
/// Both are only shown when they are named, so that a thorough search is two. Pages are asked for as long as the shop counts more of them, or,
/// where it does not count, as long as they are full.
pub(super) async fn find(
    api: &AdminApi,
    call: Call,
    currency: Currency,
    search: &OrderSearch<'_>,
) -> Result<Vec<FoundOrder>, Error> {
    let OrderSearch { correlation_id, email, since, thorough } = *search;
    let mut found: Vec<FoundOrder> = Vec::new();
    let searches: &[Option<&str>] = if thorough { &[None, Some("checkout-draft,trash")] } else { &[None] };
    // With a zone: without one the shop takes it for its own time.
    let after = since.to_rfc3339_opts(SecondsFormat::Secs, true);
    'searches: for status in searches {
        for page in 1..=MOST_PAGES {
            let page_text = page.to_string();
            let mut query = vec![
                ("created_via", "store-api"),
                ("search", email),
                ("after", after.as_str()),
                ("_fields", FIELDS),
            ];
            query.extend(status.map(|status| ("status", status)));
            if page > 1 {
                query.push(("page", &page_text));
            }
            let answer = api.get(call.deadline, "/orders", &query).await?;
            let orders: Vec<Value> = answer.read(call)?;
            let pages = answer.header("X-WP-TotalPages").and_then(|pages| pages.trim().parse::<usize>().ok());
            let more = pages.map_or(orders.len() >= PAGE, |pages| page < pages);
            for order in orders.into_iter().filter(|order| carries(order, correlation_id)) {
                let order = translate(order, currency)?;
                // Read last, known best: a draft may be in both lists.
                found.retain(|known| known.order.shop_order != order.order.shop_order);
                found.push(order);
            }
            if !more {
                continue 'searches;
            }
        }
        // A list that was not read to its end proves nothing about what is not in it.
        return Err(unclear("too many orders to look through"));
    }
    Ok(found)
}

/// Whether an order carries the id. Others are not read any further: they may be of any shape.
fn carries(order: &Value, correlation_id: &str) -> bool {
    let meta = order.get("meta_data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    meta.iter().any(|entry| {
        entry.get("key").and_then(Value::as_str) == Some(CORRELATION)
            && entry.get("value").and_then(Value::as_str) == Some(correlation_id)
    })
}

fn translate(order: Value, currency: Currency) -> Result<FoundOrder, Error> {
    let order: V3Order = serde_path_to_error::deserialize(order)
        .map_err(|error| unclear(&format!("`{}` of an order is not as expected", error.path())))?;
    let modified = time(&order.date_modified_gmt)
        .ok_or_else(|| unclear("`date_modified_gmt` of an order is no time"))?;
    // Only lines that manage their stock get the mark, and nothing tells which do: certain is only that all have it.
    let reduced = |line: &V3Line| line.meta_data.iter().any(|meta| meta.key == REDUCED);
    let state = state_of(&order.status);
    Ok(FoundOrder {
        state,
        stock_taken: !order.line_items.is_empty() && order.line_items.iter().all(reduced),
        total: major(&order.total, currency)?,
        traces: order.transaction_id.is_some_and(|id| !id.is_empty()),
        modified_at: Some(modified),
        order: PlacedOrder {
            number: order.number.unwrap_or_else(|| order.id.clone()),
            key: order.order_key.unwrap_or_default(),
            paid: is_paid(&order.status),
            // Not told here. A cart that is emptied once too often does no harm.
            cart_filled: true,
            permalink_url: None,
            shop_order: order.id,
        },
    })
}

/// A time as `wc/v3` writes those that are UTC.
pub(super) fn time(text: &str) -> Option<DateTime<Utc>> {
    let time = NaiveDateTime::parse_from_str(text.trim_end_matches('Z'), "%Y-%m-%dT%H:%M:%S").ok()?;
    Some(time.and_utc())
}

/// How far an order of this status got.
pub(super) fn state_of(status: &str) -> FoundState {
    match status {
        "processing" | "completed" | "on-hold" => FoundState::Placed,
        "failed" => FoundState::Failed,
        "cancelled" | "refunded" | "trash" => FoundState::Gone,
        "pending" => FoundState::Pending,
        "checkout-draft" => FoundState::Draft,
        _ => FoundState::Unclear,
    }
}

fn is_paid(status: &str) -> bool {
    matches!(status, "processing" | "completed")
}

/// Reads an order by its key, as a look-up.
///
/// The Store API tells its status and total. It tells neither the time of its last change nor its transaction, so
/// that an unpaid order may always have traces of a payment.
pub(super) async fn find_draft(
    api: &StoreApi,
    call: Call,
    draft: &Draft,
    email: &str,
) -> Result<Option<FoundOrder>, Error> {
    let Draft { shop_order, key, fresh: _ } = draft;
    let found = match by_key(api, call, shop_order, key, email).await {
        Ok(found) => found,
        Err(Error::Refused { status: 404, code: Some(_) }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let paid = is_paid(&found.status);
    Ok(Some(FoundOrder {
        state: state_of(&found.status),
        total: view(&found)?.total,
        traces: true,
        modified_at: None,
        stock_taken: false,
        order: PlacedOrder {
            shop_order: shop_order.clone(),
            number: shop_order.clone(),
            key: key.clone(),
            paid,
            cart_filled: true,
            permalink_url: None,
        },
    }))
}

/// Cancels an order and tells what it is then.
pub(super) async fn cancel(
    api: &AdminApi,
    call: Call,
    currency: Currency,
    shop_order: &str,
) -> Result<FoundOrder, Error> {
    let path = format!("/orders/{}", number(shop_order)?);
    let body = json!({ "status": "cancelled" });
    let answer = api.put(call.deadline, &path, &[("_fields", FIELDS)], &body).await?;
    translate(answer.read(call)?, currency)
}

/// The id becomes part of an address: only a number may.
fn number(shop_order: &str) -> Result<&str, Error> {
    if shop_order.is_empty() || !shop_order.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unclear("the order's id is no number"));
    }
    Ok(shop_order)
}

fn unclear(what: &str) -> Error {
    Error::Unintelligible { what: what.to_owned(), wrote: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(code: &str, shown: u32, line: (&str, &str), items: (&str, &str), price: &str) -> Order {
        serde_json::from_value(json!({
            "items": [{ "quantity": 3, "totals": {
                "line_subtotal": line.0, "line_subtotal_tax": line.1, "line_total": line.0, "line_total_tax": line.1,
                "currency_code": code, "currency_minor_unit": shown,
            }}],
            "totals": {
                "total_items": items.0, "total_items_tax": items.1, "total_price": price,
                "currency_code": code, "currency_minor_unit": shown,
            },
        }))
        .unwrap()
    }

    #[test]
    fn sums_of_an_order_may_be_counted_otherwise_than_its_lines() {
        // Shop with 2 decimals: one scale only.
        let euro = view(&order("EUR", 2, ("2000", "380"), ("2000", "380"), "2975")).unwrap();
        assert_eq!((euro.total, euro.units), (2975, 3));
        // JPY without decimals, sums times 100 (10.5) and as set.
        assert_eq!(view(&order("JPY", 0, ("1200", "0"), ("120000", "0"), "170000")).unwrap().total, 1700);
        assert_eq!(view(&order("JPY", 0, ("1200", "0"), ("1200", "0"), "1700")).unwrap().total, 1700);
        // EUR shown without decimals.
        assert_eq!(view(&order("EUR", 0, ("25", "5"), ("2500", "500"), "3500")).unwrap().total, 3500);
        // KWD with three decimals: as set it is exact, rounded to two it is not believed.
        assert_eq!(view(&order("KWD", 3, ("12345", "0"), ("12345", "0"), "13345")).unwrap().total, 13345);
        assert!(view(&order("KWD", 3, ("12345", "0"), ("1235", "0"), "1335")).is_err());
        // Nothing to compare.
        assert!(view(&order("JPY", 0, ("0", "0"), ("0", "0"), "500")).is_err());
    }

    #[test]
    fn found_orders_are_told_by_status() {
        let row = |status: &str| {
            json!({
                "id": 5433, "status": status, "total": "50.00", "date_modified_gmt": "2026-11-30T17:37:44",
                "transaction_id": "", "meta_data": [{ "id": 1, "key": CORRELATION, "value": "corr_1" }],
            })
        };
        let euro = Currency::parse("EUR").unwrap();
        assert!(carries(&row("pending"), "corr_1"));
        assert!(!carries(&row("pending"), "corr_11"));
        assert!(!carries(&json!({ "meta_data": "-" }), "corr_1"));
        for (status, state) in [
            ("processing", FoundState::Placed),
            ("on-hold", FoundState::Placed),
            ("pending", FoundState::Pending),
            ("checkout-draft", FoundState::Draft),
            ("wc-shipped", FoundState::Unclear),
            ("failed", FoundState::Failed),
            ("trash", FoundState::Gone),
        ] {
            assert_eq!(translate(row(status), euro).unwrap().state, state, "{status}");
        }
        let found = translate(row("processing"), euro).unwrap();
        assert_eq!((found.total, found.traces, found.order.paid), (5000, false, true));
        assert_eq!(found.modified_at.unwrap().to_rfc3339(), "2026-11-30T17:37:44+00:00");
        assert!(!found.stock_taken, "nothing is known of its lines");
    }

    /// E13: for a moment after its status has turned an order's units are neither kept back nor sold.
    #[test]
    fn stock_is_surely_taken_only_where_every_line_says_so() {
        let taken = |lines: Value| {
            let order = json!({
                "id": 1, "status": "processing", "total": "1.00", "date_modified_gmt": "2026-11-30T17:37:44",
                "line_items": lines,
            });
            translate(order, Currency::parse("EUR").unwrap()).unwrap().stock_taken
        };
        let (marked, bare) =
            (json!({"meta_data": [{"id": 9, "key": REDUCED, "value": "1"}]}), json!({"id": 2}));
        assert!(taken(json!([marked])));
        assert!(!taken(json!([marked, bare])), "it may be on its way");
        assert!(!taken(json!([{"meta_data": [{"key": "pa_colour", "value": "red"}]}])));
        assert!(!taken(json!([])));
    }
}
