//! `tillgate sessions`: what our memory holds, for people. Only read, also while the gateway runs; only a person's
//! decision is written.
//!
//! No address, no credential, no order key and no page to pay at is shown; an e-mail address is shortened.

use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{App, Environment, state};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        service::{Finding, Resolution},
        session::{CaseReason, Sent, Session, Status},
        state::{ClaimState, Records, SeenBy, SeenOrder, Which},
        store::FoundState,
    },
    config::Settings,
    idempotency::Scope,
    money::Currency,
    state::sqlite::Archive,
};

/// Where the sessions are.
#[derive(Debug)]
pub enum Place {
    /// Where a configuration says.
    Configured(Box<Settings>),
    /// In the folder that a demo was told to keep everything in.
    Demo(PathBuf),
}

/// What `tillgate sessions list` lists.
#[derive(Debug, Clone)]
pub struct ListOptions {
    /// Only this shop.
    pub shop: Option<String>,
    /// Which of them.
    pub which: Which,
    /// At most so many of each shop.
    pub most: usize,
    /// As JSON.
    pub json: bool,
}

/// `tillgate sessions list`.
///
/// # Errors
/// When the state cannot be read, or there is no such shop.
pub async fn list_sessions(place: &Place, options: &ListOptions) -> anyhow::Result<()> {
    let (records, shops) = open(place)?;
    let shops: Vec<ShopId> = match &options.shop {
        None => shops,
        Some(name) => {
            let found = shops.into_iter().find(|shop| shop.as_str() == name);
            vec![found.with_context(|| format!("there is no shop `{name}`"))?]
        }
    };
    let mut found = Vec::new();
    for shop in &shops {
        found.extend(records.list(shop, options.which, options.most).await?);
    }
    if options.json {
        print(&Value::Array(found.iter().map(summary).collect()))?;
        return Ok(());
    }
    for session in &found {
        println!(
            "{}  {}  {:<10}  {}  {:>12}  {}",
            session.id,
            session.updated_at.format("%Y-%m-%d %H:%M:%S"),
            status(session.status),
            session.shop,
            total(session).unwrap_or_else(|| "-".into()),
            reasons(session).join("; "),
        );
    }
    if found.is_empty() {
        eprintln!("no such sessions");
    }
    Ok(())
}

/// `tillgate sessions show`.
///
/// # Errors
/// When the state cannot be read, or there is no such session.
pub async fn show_session(place: &Place, id: &str, as_json: bool) -> anyhow::Result<()> {
    let (records, shops) = open(place)?;
    let id = SessionId::new(id);
    for shop in &shops {
        let Some(session) = records.find(shop, &id).await? else { continue };
        let seen = records.sightings(shop, &id).await?;
        let claim = match session.attempt.as_ref().and_then(|attempt| attempt.claim.clone()) {
            Some(scope) => records.claim_state(shop, &Scope::stored(scope)).await?,
            None => None,
        };
        let story = whole(&session, &seen, claim);
        if as_json {
            print(&story)?;
        } else {
            tell(&story, 0);
        }
        return Ok(());
    }
    anyhow::bail!("there is no session `{id}`")
}

/// `tillgate sessions resolve`: a person's decision. Embedded state only while the gateway is stopped.
///
/// # Errors
/// When the state or the shop cannot be used, or there is nothing of that kind to decide.
pub async fn resolve_session(settings: &Settings, id: &str, finding: Finding) -> anyhow::Result<()> {
    if settings.redis.is_none() {
        // Looks first: a decision about nothing makes no state.
        Archive::open(&settings.server.data)?;
    }
    let app = App::build(settings, Environment::default())
        .await
        .context("a decision needs the state for itself: with embedded state, stop the gateway first")?;
    let id = SessionId::new(id);
    let resolution = app.resolve(&id, finding).await?;
    app.rest().await;
    match resolution {
        Resolution::Done(session) => {
            println!("{id}: {}", status(session.status));
            for reason in reasons(&session) {
                println!("still open: {reason}");
            }
            Ok(())
        }
        Resolution::NoSession => anyhow::bail!("there is no session `{id}`"),
        Resolution::NothingToDecide => anyhow::bail!("no attempt of `{id}` waits for a decision"),
        Resolution::NoCase => anyhow::bail!("no case of `{id}` is open about that order"),
        Resolution::NotItsOrder => {
            anyhow::bail!(
                "the shop knows no such order of `{id}`: it does not carry the session's correlation id"
            )
        }
    }
}

fn open(place: &Place) -> anyhow::Result<(Box<dyn Records>, Vec<ShopId>)> {
    Ok(match place {
        Place::Configured(settings) => {
            (state::records(settings)?, settings.shops.keys().map(ShopId::new).collect())
        }
        Place::Demo(folder) => {
            let shops = ["flower", "general"].map(ShopId::new).to_vec();
            (Box::new(Archive::open(&folder.join("gateway"))?), shops)
        }
    })
}

pub(super) fn print(value: &Value) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// One line's worth.
fn summary(session: &Session) -> Value {
    json!({
        "id": session.id,
        "shop": session.shop,
        "status": status(session.status),
        "updated_at": session.updated_at,
        "total": total(session),
        "attempt_open": session.attempt.is_some(),
        "review": reasons(session),
    })
}

/// All that there is to tell, without what nobody needs to see.
fn whole(session: &Session, seen: &[SeenOrder], claim: Option<ClaimState>) -> Value {
    let currency = session.currency;
    let lines: Vec<Value> = session
        .lines
        .iter()
        .map(|line| {
            json!({
                "item": line.item,
                "quantity": line.quantity,
                "total": amount(line.shown.total + line.shown.total_tax, currency),
            })
        })
        .collect();
    let attempt = session.attempt.as_ref().map(|attempt| {
        json!({
            "number": attempt.number,
            "placing_at": attempt.placing_at,
            "sent": sent(attempt.sent),
            "settling": attempt.settling,
            "fenced_at": attempt.fenced_at,
            "review": attempt.review,
            "total": amount(attempt.total, currency),
            "payment_method": attempt.method,
            "pays_again": attempt.baseline,
            "order_named_before": attempt.draft.as_ref().map(|draft| &draft.shop_order),
            "key": match claim {
                None => "free",
                Some(ClaimState::Open) => "waits for the outcome",
                Some(ClaimState::Answered) => "answered",
            },
        })
    });
    let closed: Vec<Value> = session
        .closed_attempts
        .iter()
        .map(|closed| {
            json!({
                "number": closed.number,
                "end": closed.end.name(),
                "shop_order": closed.shop_order,
                "closed_at": closed.closed_at,
            })
        })
        .collect();
    let order = session.order.as_ref().map(|order| {
        json!({
            "id": order.id,
            "shop_order": order.shop_order,
            "number": order.number,
            "paid": order.paid,
            "total": amount(order.total, currency),
        })
    });
    let orders: Vec<Value> = seen
        .iter()
        .map(|SeenOrder { first, last }| {
            json!({
                "shop_order": last.shop_order,
                "adopted": last.adopted,
                "state": found_state(last.state),
                "total": last.total.map(|total| amount(total, currency)),
                "attempt": last.attempt,
                "first_seen": { "at": first.at, "by": seen_by(first.seen_by) },
                "last_seen": { "at": last.at, "by": seen_by(last.seen_by) },
            })
        })
        .collect();
    let withdrawals: Vec<Value> = session
        .withdrawals
        .iter()
        .map(|wanted| {
            json!({ "shop_order": wanted.shop_order, "cancelled": wanted.cancelled, "due_at": wanted.due_at })
        })
        .collect();
    let story: Vec<Value> =
        session.story.iter().map(|step| json!({ "at": step.at, "what": step.what })).collect();
    json!({
        "id": session.id,
        "shop": session.shop,
        "caller": session.caller,
        "status": status(session.status),
        "review": reasons(session),
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "expires_at": session.expires_at,
        "email": session.email().map(shortened),
        "lines": lines,
        "codes": session.codes,
        "total": total(session),
        "attempt": attempt,
        "closed_attempts": closed,
        "order": order,
        "orders_seen": orders,
        "orders_to_cancel": withdrawals,
        "correlation_id": session.correlation_id,
        "cart": { "generation": session.generation, "usable": session.cart.as_ref().map(|cart| cart.usable) },
        "looked_for_after_loss": !session.of_older_epoch,
        "version": session.version,
        "story": story,
    })
}

/// The same as indented text.
fn tell(value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        let name = name.replace('_', " ");
        match value {
            Value::Null => {}
            Value::Object(_) => {
                println!("{indent}{name}:");
                tell(value, depth + 1);
            }
            Value::Array(list) => {
                for (at, entry) in list.iter().enumerate() {
                    let head = if at == 0 { format!("{name}:") } else { " ".repeat(name.len() + 1) };
                    println!("{indent}{head} {}", in_one_line(entry));
                }
            }
            other => println!("{indent}{name}: {}", in_one_line(other)),
        }
    }
}

fn in_one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let told = members.iter().filter(|(_, value)| !value.is_null());
            let told: Vec<String> = told
                .map(|(name, value)| format!("{} {}", name.replace('_', " "), in_one_line(value)))
                .collect();
            told.join(", ")
        }
        other => other.to_string(),
    }
}

/// Why a person has to look.
fn reasons(session: &Session) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(attempt) = session.attempt.as_ref().filter(|attempt| attempt.review) {
        reasons.push(format!("attempt {}: nobody but you can tell what came of it", attempt.number));
    }
    reasons.extend(session.cases.iter().map(|case| match case.reason {
        CaseReason::SecondOrder => {
            format!("order {} is a second one for this purchase: refund it", case.shop_order)
        }
        CaseReason::LateOrder => {
            format!(
                "order {} came after its attempt was given up: refund it, or tell the buyer",
                case.shop_order
            )
        }
        CaseReason::PaidWhileCancelled => {
            format!(
                "order {} was paid while it was being cancelled: refund it, or take it up",
                case.shop_order
            )
        }
    }));
    reasons
}

const fn status(status: Status) -> &'static str {
    match status {
        Status::Incomplete => "incomplete",
        Status::Ready => "ready",
        Status::Escalated => "escalated",
        Status::Placing => "placing",
        Status::Completed => "completed",
        Status::Canceled => "canceled",
        Status::Expired => "expired",
    }
}

const fn sent(sent: Sent) -> &'static str {
    match sent {
        Sent::Unknown => "unknown",
        Sent::Yes => "yes",
        Sent::No => "no",
    }
}

const fn seen_by(seen_by: SeenBy) -> &'static str {
    match seen_by {
        SeenBy::Answer => "the answer to our own request",
        SeenBy::Look => "a look at the shop's orders",
        SeenBy::Person => "a person",
    }
}

pub(super) const fn found_state(state: FoundState) -> &'static str {
    match state {
        FoundState::Placed => "placed",
        FoundState::Pending => "pending",
        FoundState::Draft => "draft",
        FoundState::Failed => "failed",
        FoundState::Gone => "cancelled, refunded or thrown away",
        FoundState::Unclear => "a status of the shop's own",
    }
}

fn total(session: &Session) -> Option<String> {
    let total = session.order.as_ref().map(|order| order.total);
    let total = total.or_else(|| session.cart.as_ref().map(|cart| cart.view.totals.total))?;
    Some(amount(total, session.currency))
}

/// An amount as people write it: `35.00 USD`.
fn amount(minor: i64, currency: Currency) -> String {
    let places = usize::try_from(currency.exponent()).unwrap_or_default();
    let digits = format!("{:0>width$}", minor.unsigned_abs(), width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let sign = if minor < 0 { "-" } else { "" };
    let point = if places == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{part} {currency}")
}

/// Enough of an e-mail address to know it again: `a…@example.com`.
fn shortened(email: &str) -> String {
    let (name, host) = email.split_once('@').unwrap_or((email, ""));
    let first: String = name.chars().take(1).collect();
    format!("{first}…@{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_addresses_are_told_as_people_know_them() {
        let of = |code, minor| amount(minor, Currency::parse(code).unwrap());
        assert_eq!(of("USD", 3505), "35.05 USD");
        assert_eq!(of("USD", -7), "-0.07 USD");
        assert_eq!(of("JPY", 1200), "1200 JPY");
        assert_eq!(of("KWD", 5), "0.005 KWD");
        assert_eq!(shortened("anna@example.com"), "a…@example.com");
        assert_eq!(shortened("nobody"), "n…@");
    }
}
