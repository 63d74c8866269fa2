//! What a merchant does while the shop runs, for tests: `POST /_demo/events` with one `{op, …}` or a list.
//!
//! `stock {product, quantity}`, `price {product, price}`, `publish {product, value}`, `wait {seconds}`,
//! `guest_checkout {value}`, `pickup_location {name}`, `order_status {order, status}`,
//! `session_lifetime {seconds}`, `clear_sessions`, `rate_limit {limit, seconds}`, `maintenance {value}`,
//! `plugin {value}`, `currency {code, decimals}`, `tax {entered_including, shown_including}`, `coupon_uses_left {code, value}`,
//! `coupon_expired {code, value}`, `out_of_stock_threshold {value}`,
//! `stock_hold {minutes}` (0: checkouts hold nothing), `packages {by}` (`number`, `name`, or none: food in its own),
//! `checkout_fields {value}`, `utc_offset {hours}`,
//! `shop_order {product, quantity, fee, cents}` (the newest order's buyer on the shop's own page), `note`. Products go by id or SKU.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Error;
use super::model::{Parcels, RateLimit, Status};
use super::money::parse_micros;
use super::orders;
use super::state::State;

fn wrong(op: &str, what: &str) -> Error {
    Error::Event(format!("{op}: {what}"))
}

/// Acts on one event or a list of them.
pub(super) fn act(state: &mut State, events: &Value, now: DateTime<Utc>) -> Result<(), Error> {
    match events {
        Value::Array(events) => events.iter().try_for_each(|event| act(state, event, now)),
        event => one(state, event, now),
    }
}

fn one(state: &mut State, event: &Value, now: DateTime<Utc>) -> Result<(), Error> {
    let op = event.get("op").and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| event.get(name).and_then(Value::as_i64).ok_or_else(|| wrong(op, name));
    let flag = || event.get("value").and_then(Value::as_bool).ok_or_else(|| wrong(op, "value"));
    let text = |name: &str| event.get(name).and_then(Value::as_str).ok_or_else(|| wrong(op, name));
    match op {
        "note" => {}
        "stock" | "price" | "publish" => return product(state, op, event, now),
        "coupon_uses_left" | "coupon_expired" => {
            let code = text("code")?.to_lowercase();
            if state.coupon(&code).is_none() {
                return Err(wrong(op, "there is no such coupon"));
            }
            let expired = if op == "coupon_expired" { Some(flag()?) } else { None };
            let left = if op == "coupon_uses_left" { Some(number("value")?) } else { None };
            if let Some(coupon) = state.coupon_mut(&code) {
                coupon.expired = expired.unwrap_or(coupon.expired);
                coupon.uses_left = left.or(coupon.uses_left);
            }
        }
        "wait" => state.settings_mut().clock_offset_seconds += number("seconds")?,
        "guest_checkout" => state.settings_mut().guest_checkout = flag()?,
        "hold_minutes" => state.settings_mut().hold_minutes = number("value")?,
        "maintenance" => state.settings_mut().maintenance = flag()?,
        "plugin" => state.settings_mut().plugin_off = !flag()?,
        "pickup_location" => {
            let name = event.get("name").and_then(Value::as_str).map(str::to_owned);
            state.settings_mut().pickup_location = name;
        }
        "session_lifetime" => state.settings_mut().session_seconds = number("seconds")?,
        "clear_sessions" => state.clear_sessions(),
        "rate_limit" => {
            let limit = event.get("limit").and_then(Value::as_i64);
            let seconds = event.get("seconds").and_then(Value::as_i64).unwrap_or(10);
            state.settings_mut().rate_limit =
                limit.map(|limit| RateLimit { limit, seconds, window: 0, used: 0 });
        }
        "currency" => {
            let code = text("code")?.to_owned();
            let decimals = u32::try_from(number("decimals")?).ok().filter(|decimals| *decimals <= 4);
            let decimals = decimals.ok_or_else(|| wrong(op, "decimals"))?;
            let settings = state.settings_mut();
            settings.currency = code;
            settings.decimals = decimals;
        }
        "out_of_stock_threshold" => state.settings_mut().no_stock_amount = number("value")?,
        "stock_hold" => state.settings_mut().hold_minutes = number("minutes")?,
        "utc_offset" => state.settings_mut().utc_offset_hours = number("hours")?,
        "shop_order" => {
            let product = u64::try_from(number("product")?).map_err(|_| wrong(op, "product"))?;
            let goods = (product, number("quantity")?);
            let done = orders::own_checkout(state, goods, (text("fee")?, number("cents")?), now);
            done.ok_or_else(|| wrong(op, "there is no buyer yet"))?;
        }
        "checkout_fields" => state.settings_mut().extra_fields = flag()?,
        "packages" => {
            state.settings_mut().parcels = match event.get("by").and_then(Value::as_str) {
                Some("number") => Parcels::Numbered,
                Some("name") => Parcels::Named,
                _ => Parcels::One,
            };
        }
        "tax" => {
            let flag = |name: &str| event.get(name).and_then(Value::as_bool).ok_or_else(|| wrong(op, name));
            let (entered, shown) = (flag("entered_including")?, flag("shown_including")?);
            let settings = state.settings_mut();
            settings.entered_with_tax = entered;
            settings.shown_with_tax = shown;
        }
        "order_status" => {
            let status =
                Status::parse(text("status")?).ok_or_else(|| wrong(op, "there is no such status"))?;
            let id = match event.get("order") {
                Some(Value::Number(id)) => id.as_u64(),
                _ => state.orders().next_back().map(|order| order.id),
            };
            let id = id.ok_or_else(|| wrong(op, "there is no such order"))?;
            orders::set_status(state, id, status, now);
        }
        _ => return Err(wrong(op, "the shop does not know this event")),
    }
    Ok(())
}

fn product(state: &mut State, op: &str, event: &Value, now: DateTime<Utc>) -> Result<(), Error> {
    let id = match event.get("product") {
        Some(Value::String(sku)) => {
            state.products().find(|product| product.sku == *sku).map(|product| product.id)
        }
        Some(id) => id.as_u64(),
        None => None,
    };
    let product =
        id.and_then(|id| state.product_mut(id)).ok_or_else(|| wrong(op, "there is no such product"))?;
    match op {
        "stock" => {
            product.manage_stock = true;
            product.by_parent = false;
            let stock = event.get("quantity").and_then(Value::as_i64).ok_or_else(|| wrong(op, "quantity"))?;
            let id = product.id;
            state.write_stock(id, stock, now);
            return Ok(());
        }
        "price" => {
            let price = event.get("price").and_then(Value::as_str).and_then(parse_micros);
            product.regular = Some(price.ok_or_else(|| wrong(op, "price"))?);
            product.sale = None;
        }
        _ => {
            let public = event.get("value").and_then(Value::as_bool).ok_or_else(|| wrong(op, "value"))?;
            product.draft = !public;
        }
    }
    let id = product.id;
    state.touch(id, now);
    Ok(())
}
