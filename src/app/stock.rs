//! `tillgate stock`: what is known of the stock, whether it is as the shop has it, and whether orders and sessions match.
//!
//! `show` and `audit` only read, also while the gateway runs; `sync` does what the gateway does by itself every so
//! often. Nothing is ever written to the shop.

use anyhow::Context as _;
use chrono::TimeDelta;
use serde_json::{Map, Value, json};

use super::{
    App, Environment,
    sessions::{found_state, print},
    state, store,
};
use crate::{
    checkout::{
        audit::{self, Audit},
        ids::{SessionId, ShopId},
        service::Reconciled,
    },
    clock::{Clock as _, SystemClock},
    config::Settings,
    state::sqlite::Archive,
    stock::{Count, Shelf, Source, Stage, StockId},
};

/// What the commands are told.
#[derive(Debug, Clone)]
pub struct StockOptions {
    /// Only this shop.
    pub shop: Option<String>,
    /// As JSON.
    pub json: bool,
}

/// `tillgate stock show`.
///
/// # Errors
/// When the state cannot be read, or there is no such shop.
pub async fn show_stock(settings: &Settings, options: &StockOptions) -> anyhow::Result<()> {
    let records = state::records(settings)?;
    let now = SystemClock.now().timestamp_millis();
    let mut shops = Map::new();
    for shop in shops_of(settings, options)? {
        let shelves = records.shelves(&shop).await?;
        let told = shelves.iter().map(|(stock, shelf)| (stock.to_string(), whole(shelf, now))).collect();
        shops.insert(shop.to_string(), Value::Object(told));
    }
    if options.json {
        return print(&Value::Object(shops));
    }
    for (shop, shelves) in &shops {
        for (stock, shelf) in shelves.as_object().into_iter().flatten() {
            println!("{shop}  {stock}: {}", bounds(shelf));
            for held in shelf["held"].as_array().into_iter().flatten() {
                let until = held.get("for_secs").and_then(Value::as_i64);
                let until = until.map_or_else(String::new, |secs| format!(", {secs} s left"));
                let ticket = held.get("ticket").and_then(Value::as_u64);
                let ticket =
                    ticket.map_or_else(String::new, |ticket| format!(", waits with ticket {ticket}"));
                println!(
                    "    {:>5}  {:<8}  {}{until}{ticket}",
                    held["quantity"],
                    held["stage"].as_str().unwrap_or_default(),
                    held["session"].as_str().unwrap_or_default(),
                );
            }
        }
        if shelves.as_object().is_some_and(Map::is_empty) {
            println!("{shop}: nothing is known");
        }
    }
    Ok(())
}

/// `tillgate stock sync`. Embedded state only while the gateway is stopped.
///
/// # Errors
/// When the state or a shop cannot be used.
pub async fn sync_stock(settings: &Settings, options: &StockOptions) -> anyhow::Result<()> {
    let shops = shops_of(settings, options)?;
    if settings.redis.is_none() {
        // Looks first: a look at nothing makes no state.
        Archive::open(&settings.server.data)?;
    }
    let app = App::build(settings, Environment::default()).await.with_context(|| {
        format!(
            "a sync needs the state for itself: the gateway that runs does it by itself every {} s ([stock] poll_secs); \
             with embedded state, stop it first",
            settings.stock.poll_secs
        )
    })?;
    let mut told = Map::new();
    for shop in &shops {
        for (shop, reconciled) in Box::pin(app.reconcile(Some(shop))).await {
            let reconciled = reconciled.with_context(|| format!("{shop} could not be reconciled"))?;
            told.insert(shop.to_string(), result(&reconciled));
        }
    }
    app.rest().await;
    if options.json {
        return print(&Value::Object(told));
    }
    for (shop, result) in &told {
        println!("{shop}: {} products read", result["read"]);
        tell_lists(result);
    }
    Ok(())
}

/// `tillgate stock audit`; `true` when everything matches.
///
/// # Errors
/// When the state or a shop cannot be read.
pub async fn audit_stock(settings: &Settings, options: &StockOptions, hours: u32) -> anyhow::Result<bool> {
    let records = state::records(settings)?;
    let since = SystemClock.now() - TimeDelta::hours(i64::from(hours));
    let (mut told, mut clean) = (Map::new(), true);
    for shop in shops_of(settings, options)? {
        let table = settings.shops.get(shop.as_str()).context("there is no such shop")?;
        let store = store(table)?;
        let audit = Box::pin(audit::audit(records.as_ref(), &store, &shop, since)).await;
        let audit = audit.with_context(|| format!("{shop} could not be audited"))?;
        clean &= audit.is_clean();
        told.insert(shop.to_string(), findings(&audit));
    }
    if options.json {
        print(&Value::Object(told))?;
        return Ok(clean);
    }
    for (shop, audit) in &told {
        println!(
            "{shop}: {} orders of the last {hours} h, {} sessions and {} stocks looked at",
            audit["orders"], audit["sessions"], audit["stocks"]
        );
        tell_lists(audit);
    }
    if clean {
        println!("everything matches");
    }
    Ok(clean)
}

fn shops_of(settings: &Settings, options: &StockOptions) -> anyhow::Result<Vec<ShopId>> {
    match &options.shop {
        None => Ok(settings.shops.keys().map(ShopId::new).collect()),
        Some(name) if settings.shops.contains_key(name) => Ok(vec![ShopId::new(name)]),
        Some(name) => anyhow::bail!("there is no shop `{name}`"),
    }
}

/// A shelf; times are told from now.
fn whole(shelf: &Shelf, now: i64) -> Value {
    // Nobody's own point of view: what everybody holds is taken off.
    let upper = shelf.upper.map(|count| told_count(&count, shelf.upper_bound(""), now));
    let lower = shelf.lower.map(|count| told_count(&count, shelf.lower_bound("", now), now));
    let held: Vec<Value> = shelf
        .members
        .iter()
        .map(|(session, member)| {
            let ends = matches!(member.stage, Stage::Soft | Stage::Admitted);
            json!({
                "session": session,
                "stage": member.stage,
                "quantity": member.quantity,
                "for_secs": ends.then(|| (member.at - now) / 1000),
                "ticket": member.ticket,
            })
        })
        .collect();
    let waiting = shelf.members.values().filter(|member| member.ticket.is_some()).count();
    json!({ "upper": upper, "lower": lower, "held": held, "waiting": waiting })
}

fn told_count(count: &Count, left: Option<i64>, now: i64) -> Value {
    let source = match count.source {
        Source::WcV3 => "the shop's books",
        Source::Shop => "the shop as visitors see it",
    };
    json!({ "left": left, "number": count.number, "source": source, "age_secs": (now - count.at) / 1000 })
}

/// Both bounds in words.
fn bounds(shelf: &Value) -> String {
    let one = |name: &str, word: &str| {
        let count = shelf.get(name).filter(|count| !count.is_null())?;
        let left =
            count["left"].as_i64().map_or_else(|| "too old to count".to_owned(), |left| left.to_string());
        Some(format!(
            "{word} {left} ({} {} s ago: {})",
            count["source"].as_str().unwrap_or_default(),
            count["age_secs"],
            count["number"]
        ))
    };
    let told: Vec<String> =
        [one("upper", "at most"), one("lower", "at least")].into_iter().flatten().collect();
    if told.is_empty() { "not known".to_owned() } else { told.join(", ") }
}

fn of_session(pairs: &[(SessionId, StockId)]) -> Vec<Value> {
    pairs.iter().map(|(session, stock)| json!({ "session": session, "stock": stock })).collect()
}

fn result(told: &Reconciled) -> Value {
    let drift: Vec<Value> = told
        .drift
        .iter()
        .map(|one| {
            let expected = json!([one.least, one.most]);
            json!({ "stock": one.stock, "expected": expected, "found": one.found })
        })
        .collect();
    let given_back: Vec<Value> = told
        .given_back
        .iter()
        .map(|(session, units)| json!({ "session": session, "stock": units.stock, "quantity": units.quantity }))
        .collect();
    json!({
        "read": told.read,
        "drift": drift,
        "given_back": given_back,
        "pins_without_attempt": of_session(&told.closed_pins),
        "attempts_without_pin": of_session(&told.unpinned),
    })
}

fn findings(audit: &Audit) -> Value {
    let without_session: Vec<Value> = audit
        .orders_without_session
        .iter()
        .map(|order| {
            json!({
                "shop_order": order.shop_order,
                "correlation_id": order.correlation_id,
                "state": found_state(order.state),
                "created_at": order.created_at,
            })
        })
        .collect();
    let several: Vec<Value> = audit
        .several_orders
        .iter()
        .map(|one| {
            json!({
                "session": one.session,
                "correlation_id": one.correlation_id,
                "shop_orders": one.shop_orders,
            })
        })
        .collect();
    let without_order: Vec<Value> = audit
        .sessions_without_order
        .iter()
        .map(|one| {
            let state = one.state.map_or("unknown to the shop", found_state);
            json!({ "session": one.session, "shop_order": one.shop_order, "state": state })
        })
        .collect();
    let negative: Vec<Value> =
        audit.negative_stock.iter().map(|one| json!({ "stock": one.stock, "number": one.number })).collect();
    json!({
        "orders": audit.orders,
        "sessions": audit.sessions,
        "stocks": audit.stocks,
        "clean": audit.is_clean(),
        "orders_without_session": without_session,
        "several_orders": several,
        "sessions_without_order": without_order,
        "negative_stock": negative,
        "pins_without_attempt": of_session(&audit.pins_without_attempt),
        "attempts_without_pin": of_session(&audit.attempts_without_pin),
    })
}

/// Each entry of each list on a line of its own.
fn tell_lists(value: &Value) {
    for (name, list) in value.as_object().into_iter().flatten() {
        for entry in list.as_array().into_iter().flatten() {
            let told: Vec<String> = entry
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    format!("{} {text}", name.replace('_', " "))
                })
                .collect();
            println!("  {}: {}", name.replace('_', " "), told.join(", "));
        }
    }
}
