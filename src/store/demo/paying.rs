//! Checkout from the hold on stock to the answer, and paying for an order that waits for it.
//!
//! The caller may wait without the lock after each part. [`hold`] keeps back stock and coupons and makes the order
//! `pending`, for others to see; [`turn`] gives it the status of its payment when its stock is to follow later;
//! [`finish`] ends payment, stock and cart, and answers.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::cart;
use super::checkout::{Step, body, check_payment, fatal, no_order, result};
use super::http::{ApiError, Call, Reply};
use super::model::{Product, Session, Status};
use super::orders;
use super::payment::{self, Outcome};
use super::state::State;

/// An order that passed all checks and holds nothing yet.
#[derive(Debug)]
pub(super) struct Placing {
    pub(super) order: u64,
    pub(super) method: String,
    pub(super) note: Option<String>,
    pub(super) given: BTreeMap<String, Value>,
    pub(super) attribution: Option<BTreeMap<String, String>>,
    /// The payment's outcome, and how long it takes.
    pub(super) outcome: (Outcome, Duration),
    pub(super) wait: Duration,
}

/// A payment on its way.
#[derive(Debug)]
pub(super) struct Payment {
    order: u64,
    outcome: Outcome,
    pub(super) wait: Duration,
    /// Whether the order has its status already, and only its stock is to follow.
    turned: bool,
}

/// What a payment comes to, and how long it takes.
pub(super) fn payment(state: &mut State, method: &str, call: &Call) -> (Outcome, Duration) {
    let (outcome, wait) = payment::outcome(method, call.params.get("payment_data"));
    (outcome, wait + state.faults.take_time("payment_ms"))
}

/// `POST checkout` from there up to the payment.
pub(super) fn hold(state: &mut State, placing: Placing, now: DateTime<Utc>) -> Result<Payment, ApiError> {
    let id = placing.order;
    hold_coupons(state, id)?;
    reserve(state, id, now)?;
    if let Some(order) = state.order_mut(id) {
        order.payment_method = placing.method;
        order.note = placing.note.unwrap_or_else(|| std::mem::take(&mut order.note));
        order.fields.extend(placing.given);
        order.attribution = order.attribution.take().or(placing.attribution);
        order.ended = false;
    }
    orders::set_status(state, id, Status::Pending, now);
    let (outcome, wait) = placing.outcome;
    Ok(Payment { order: id, outcome, wait, turned: false })
}

/// Refuses an order whose coupon lost its last use to another order since the checks.
fn hold_coupons(state: &State, id: u64) -> Result<(), ApiError> {
    let Some(order) = state.order(id).filter(|order| !order.counted) else { return Ok(()) };
    let spent =
        |code: &str| state.coupon(code).and_then(|coupon| coupon.uses_left).is_some_and(|left| left <= 0);
    match order.coupons.iter().find(|line| spent(&line.code)) {
        Some(line) => {
            let code = html_escape::encode_text(&line.code);
            let message = format!("Another order holds the last use of coupon &quot;{code}&quot;.");
            Err(ApiError::new(400, "woocommerce_rest_coupon_reserve_failed", message))
        }
        None => Ok(()),
    }
}

/// Keeps back the stock of every limited line.
fn reserve(state: &mut State, id: u64, now: DateTime<Utc>) -> Result<(), ApiError> {
    let lines: Vec<(u64, i64, String)> = state
        .order(id)
        .into_iter()
        .flat_map(|order| &order.lines)
        .filter(|line| state.product(line.product).is_some_and(Product::limited))
        .map(|line| (line.product, line.quantity, line.name.clone()))
        .collect();
    // Lines that share a stock are one wish.
    let mut wishes: BTreeMap<u64, (i64, String)> = BTreeMap::new();
    for (product, quantity, name) in lines {
        wishes.entry(state.manager(product)).or_insert((0, name)).0 += quantity;
    }
    for (product, (quantity, name)) in wishes {
        if !state.hold(id, product, quantity, now) {
            state.release(id);
            let message = format!("Not enough units of {name} are available in stock to fulfil this order.");
            return Err(ApiError::new(403, "woocommerce_product_not_enough_stock", message));
        }
    }
    Ok(())
}

/// The end of a payment: the order has its status, but its stock is not taken off yet. Tells how long that lasts.
pub(super) fn turn(state: &mut State, payment: &mut Payment, now: DateTime<Utc>) -> Duration {
    if !matches!(payment.outcome, Outcome::Done | Outcome::Lost)
        || state.faults.is_on("500_while_paying", "checkout")
    {
        return Duration::ZERO;
    }
    let gap = state.faults.take_time("gap_ms");
    if !gap.is_zero() {
        let status = accept(state, payment.order);
        orders::turn_status(state, payment.order, status, now);
        payment.turned = true;
    }
    gap
}

/// The end of a checkout: order, stock and cart, and the answer.
pub(super) fn finish(
    state: &mut State,
    session: &mut Session,
    payment: &Payment,
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    let id = payment.order;
    let broken = matches!(payment.outcome, Outcome::Done | Outcome::Lost)
        && state.faults.is_on("500_after_payment", "checkout");
    if let Some(order) = state.order_mut(id) {
        order.ended = !broken;
    }
    let order = state.order(id).ok_or_else(no_order)?;
    let method = order.payment_method.clone();
    let free = order.total == 0;
    let base = state.public_base.clone();
    let received = format!("{base}/checkout/order-received/{id}/?key={}", order.key);
    let challenge = format!("{base}/3ds-challenge/?order={id}");
    let (status, result) = match payment.outcome {
        Outcome::Declined(message) => {
            state.release(id);
            return Err(ApiError::new(400, "woocommerce_rest_checkout_process_payment_error", message));
        }
        Outcome::Silent => (400, result("failure", "", &[("result", "failure")])),
        Outcome::Challenge => {
            (200, result("success", &challenge, &[("result", "success"), ("redirect", &challenge)]))
        }
        Outcome::Done | Outcome::Lost
            if !payment.turned && state.faults.take("500_while_paying").is_some() =>
        {
            if let Some(order) = state.order_mut(id) {
                order.transaction_id = format!("txn_{id}");
                order.ended = false;
            }
            return Err(fatal());
        }
        Outcome::Done | Outcome::Lost => {
            if payment.turned {
                orders::take_stock(state, id, now);
            } else {
                pay(state, id, now);
            }
            if state.faults.take("500_after_payment").is_some() {
                return Err(fatal());
            }
            if free {
                (200, result("success", &received, &[]))
            } else {
                // A free order leaves the cart alone; a paid one empties it.
                cart::empty(session);
                (200, result("success", &received, &[("result", "success"), ("redirect", &received)]))
            }
        }
    };
    let order = state.order(id).ok_or_else(no_order)?;
    let mut reply = Reply::new(status, body(order, &method, &result, &Value::Null));
    reply.lost = payment.outcome == Outcome::Lost;
    Ok(reply)
}

/// Marks an order as paid, or as accepted when the money comes later.
pub(super) fn pay(state: &mut State, id: u64, now: DateTime<Utc>) {
    let status = accept(state, id);
    orders::set_status(state, id, status, now);
}

/// Notes the transaction of a payment, and tells the status that the order is to have.
fn accept(state: &mut State, id: u64) -> Status {
    let Some(order) = state.order_mut(id) else { return Status::Processing };
    let free = order.total == 0;
    let method = order.payment_method.clone();
    if method == "agent_token" && !free {
        order.transaction_id = format!("txn_{id}");
    }
    let products: Vec<u64> = order.lines.iter().map(|line| line.product).collect();
    let instant = products
        .iter()
        .all(|id| state.product(*id).is_some_and(|product| product.is_virtual && product.downloadable));
    match method.as_str() {
        "bacs" | "cheque" if !free => Status::OnHold,
        _ if instant => Status::Completed,
        _ => Status::Processing,
    }
}

/// `POST checkout/{id}`: pays an order that waits for it.
pub(super) fn pay_for_order(
    state: &mut State,
    id: &str,
    call: &Call,
    now: DateTime<Utc>,
) -> Result<Step, ApiError> {
    let (order, payable) = {
        let order = orders::authorized(state, id, call)?;
        (order.id, order.status.payable() && order.total > 0)
    };
    if !payable {
        let message = "This order cannot be paid for.";
        return Err(ApiError::new(500, "invalid_order_update_status", message).without_data());
    }
    if !call.has("billing_address") {
        return Err(ApiError::missing("billing_address"));
    }
    check_payment(call)?;
    let method = call.text("payment_method");
    if method.is_empty() {
        let message = "No payment method provided.";
        return Err(ApiError::new(400, "woocommerce_rest_checkout_missing_payment_method", message));
    }
    if let Some(found) = state.order_mut(order) {
        for (name, address) in
            [("billing_address", &mut found.billing), ("shipping_address", &mut found.shipping)]
        {
            if let Some(given) = call.params.get(name).and_then(Value::as_object) {
                *address = address.merged(given);
            }
        }
        found.payment_method.clone_from(&method);
        found.modified = now;
    }
    let (outcome, wait) = payment(state, &method, call);
    Ok(Step::Pay(Payment { order, outcome, wait, turned: false }))
}
