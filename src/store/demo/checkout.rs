//! Checkout up to the payment: drafts, and the checks of an order that is to be placed.
//!
//! [`place`] ends with [`Step::Hold`]; [`paying`](super::paying) goes on from there.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::address::clean;
use super::cart;
use super::fields;
use super::http::{ApiError, Call, Reply};
use super::model::{Order, Session};
use super::orders;
use super::paying::{self, Payment, Placing};
use super::payment::Outcome;
use super::state::State;
use super::totals::{self, Priced};
use super::view::{self, PAYMENT_METHODS};

/// Fields of an order's attribution, in the order in which they are stored.
pub(super) const ATTRIBUTION: [&str; 16] = [
    "source_type",
    "referrer",
    "utm_campaign",
    "utm_source",
    "utm_medium",
    "utm_content",
    "utm_id",
    "utm_term",
    "utm_source_platform",
    "utm_creative_format",
    "utm_marketing_tactic",
    "session_entry",
    "session_start_time",
    "session_pages",
    "session_count",
    "user_agent",
];

/// What a call came to, or what has to be done first.
#[derive(Debug)]
pub(super) enum Step {
    Done(Reply),
    Hold(Placing),
    Pay(Payment),
}

/// Refuses unknown payment methods and malformed payment data.
pub(super) fn check_payment(call: &Call) -> Result<(), ApiError> {
    let method = call.text("payment_method");
    if !method.is_empty() && !PAYMENT_METHODS.contains(&method.as_str()) {
        let text = "payment_method is not one of , bacs, cheque, cod, and agent_token.";
        return Err(ApiError::invalid("payment_method", "rest_not_in_enum", text));
    }
    if call.params.get("payment_data").is_some_and(|data| !data.is_array()) {
        let text = "payment_data is not of type array.";
        return Err(ApiError::invalid("payment_data", "rest_invalid_type", text));
    }
    Ok(())
}

/// Renders an order as a checkout.
pub(super) fn body(order: &Order, method: &str, result: &Value, cart: &Value) -> Value {
    json!({
        "order_id": order.id,
        "status": order.status.name(),
        "order_key": order.key,
        "order_number": order.id.to_string(),
        "customer_note": order.note,
        "customer_id": 0,
        "billing_address": order.billing.billing_json(),
        "shipping_address": order.shipping.shipping_json(),
        "payment_method": method,
        "payment_result": result,
        "additional_fields": order.fields,
        "__experimentalCart": cart,
        "extensions": {},
    })
}

pub(super) fn result(status: &str, redirect: &str, details: &[(&str, &str)]) -> Value {
    let details: Vec<Value> =
        details.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
    json!({"payment_status": status, "payment_details": details, "redirect_url": redirect})
}

pub(super) fn no_order() -> ApiError {
    ApiError::new(500, "woocommerce_rest_checkout_missing_order", "Unable to create order")
}

/// `GET`, `PUT` and `PATCH checkout`: makes or refreshes the draft order.
pub(super) fn draft(
    state: &mut State,
    session: &mut Session,
    call: &Call,
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    let read = call.method == "GET";
    let mut given = BTreeMap::new();
    if !read {
        if state.settings().extra_fields {
            given = fields::read(call, false)?;
        }
        check_payment(call)?;
    }
    let priced = totals::price(state, session, now);
    if priced.lines.is_empty() {
        return Err(ApiError::new(
            400,
            "woocommerce_rest_cart_empty",
            "Cannot create order from empty cart.",
        ));
    }
    let method = call.text("payment_method");
    if !read && !method.is_empty() {
        session.payment_method = Some(method);
    }
    if state.faults.is_on("late_draft", "") {
        return Ok(Reply::new(200, undrafted(state, session, call, (&priced, given), now)));
    }
    let id = orders::from_cart(state, session, &priced, now);
    if !read
        && call.has("customer_note")
        && let Some(order) = state.order_mut(id)
    {
        order.note = clean(&call.text("customer_note"));
    }
    let method = session.payment_method.clone().unwrap_or_else(|| "bacs".to_owned());
    if let Some(order) = state.order_mut(id) {
        order.payment_method.clone_from(&method);
        order.fields.extend(given);
    }
    let order = state.order(id).ok_or_else(no_order)?;
    let (result, cart) = if read {
        (result("", "", &[]), Value::Null)
    } else {
        (Value::Null, view::cart(state, session, &priced, now))
    };
    Ok(Reply::new(200, body(order, &method, &result, &cart)))
}

/// `GET`, `PUT` and `PATCH checkout` of a shop that makes no order before the POST: the session's open order
/// if there is one, else what the order would be, without a number.
fn undrafted(
    state: &State,
    session: &Session,
    call: &Call,
    (priced, given): (&Priced, BTreeMap<String, Value>),
    now: DateTime<Utc>,
) -> Value {
    let mut order = orders::reusable(state, session, priced).cloned().unwrap_or_else(|| Order {
        billing: session.billing.clone(),
        shipping: session.shipping.clone(),
        note: clean(&call.text("customer_note")),
        ..orders::blank(now)
    });
    order.fields.extend(given);
    let method = session.payment_method.clone().unwrap_or_else(|| "bacs".to_owned());
    if call.method == "GET" {
        return body(&order, &method, &result("", "", &[]), &Value::Null);
    }
    body(&order, &method, &Value::Null, &view::cart(state, session, priced, now))
}

/// Refuses a cart that can't be bought as it stands.
fn check_cart(state: &State, session: &Session, priced: &Priced, now: DateTime<Utc>) -> Result<(), ApiError> {
    if priced.lines.is_empty() && priced.notices.is_empty() {
        let message = "Cannot place an order, your cart is empty.";
        return Err(ApiError::new(409, "woocommerce_rest_cart_empty", message).with("0", json!(400)));
    }
    let mut violations = view::violations(state, session, priced, now).into_iter();
    if let Some(first) = violations.next() {
        let mut error = ApiError::new(409, first.code, first.message).with("0", json!(409));
        // The cart that goes along repeats what it says about lines, not about coupons.
        let about_lines =
            priced.notices.iter().filter(|notice| notice.code == "woocommerce_rest_cart_item_error");
        error.notices = about_lines.cloned().collect();
        error.additional = violations.collect();
        return Err(error);
    }
    Ok(())
}

fn not_served(country: &str, served: Option<&[&str]>) -> Option<ApiError> {
    let served = served?;
    if served.contains(&country) {
        return None;
    }
    let message = format!("Sorry, we do not allow orders from the provided country ({country})");
    Some(
        ApiError::new(400, "woocommerce_rest_invalid_address_country", message)
            .with("allowed_countries", json!(served)),
    )
}

/// Refuses an order with missing or wrong facts.
fn check_order(state: &State, session: &Session, priced: &Priced) -> Result<(), ApiError> {
    if session.billing.email.is_empty() {
        let message = "A valid email address is required";
        return Err(ApiError::new(400, "woocommerce_rest_missing_email_address", message));
    }
    if priced.needs_shipping && priced.packages.iter().any(|package| package.chosen.is_none()) {
        let message = "Sorry, this order requires a shipping option.";
        return Err(ApiError::new(400, "woocommerce_rest_invalid_shipping_option", message));
    }
    let pickup = priced.chosen_rates().any(|rate| rate.method().0.contains("pickup"));
    let shipped = priced.needs_shipping && !pickup;
    let country = not_served(&session.billing.country, state.seed.sells_to())
        .or_else(|| shipped.then(|| not_served(&session.shipping.country, state.seed.ships_to())).flatten());
    if let Some(error) = country {
        return Err(error);
    }
    let both = [("shipping", &session.shipping, priced.needs_shipping), ("billing", &session.billing, true)];
    for (name, address, wanted) in both {
        let missing = address.missing();
        if wanted && !missing.is_empty() {
            let message =
                format!("There was a problem with the provided {name} address: {}", missing.join(", "));
            return Err(ApiError::new(400, "woocommerce_rest_invalid_address", message)
                .with("errors", json!({name: missing})));
        }
    }
    Ok(())
}

/// The attribution fields of a request, all sixteen of them.
fn attribution(call: &Call) -> Option<BTreeMap<String, String>> {
    let given = call.params.get("extensions").and_then(|all| all.get("woocommerce/order-attribution"))?;
    let fields = ATTRIBUTION.iter().map(|field| {
        let value = given.get(field).and_then(Value::as_str).unwrap_or_default();
        ((*field).to_owned(), value.to_owned())
    });
    Some(fields.collect())
}

/// `POST checkout` up to the point where it holds stock.
pub(super) fn place(
    state: &mut State,
    session: &mut Session,
    call: &Call,
    now: DateTime<Utc>,
) -> Result<Step, ApiError> {
    let mut given = BTreeMap::new();
    if state.settings().extra_fields {
        given = fields::read(call, true)?;
        let sent = cart::needs_shipping(state, session);
        let both: &[&str] =
            if sent { &["shipping_address", "billing_address"] } else { &["billing_address"] };
        fields::check_addresses(call, both)?;
    }
    let mut addressed = session.clone();
    cart::checkout_addresses(state, &mut addressed, call)?;
    check_payment(call)?;
    if !state.settings().guest_checkout {
        let message = "You must be logged in to checkout.";
        return Err(ApiError::new(403, "woocommerce_rest_guest_checkout_disabled", message));
    }
    if let Some(most) = state.faults.take("shrink").and_then(|most| i64::try_from(most).ok()) {
        for line in &mut session.lines {
            line.quantity = line.quantity.min(most);
        }
    }
    let priced = totals::price(state, session, now);
    check_cart(state, session, &priced, now)?;
    session.billing = addressed.billing;
    session.shipping = addressed.shipping;
    let priced = totals::price(state, session, now);
    let id = orders::from_cart(state, session, &priced, now);
    let method = call.text("payment_method");
    if priced.total > 0 && method.is_empty() {
        let message = "No payment method provided.";
        return Err(ApiError::new(400, "woocommerce_rest_checkout_missing_payment_method", message));
    }
    check_order(state, session, &priced)?;
    if !method.is_empty() {
        session.payment_method = Some(method.clone());
    }
    let outcome = if priced.total == 0 {
        (Outcome::Done, Duration::ZERO)
    } else {
        paying::payment(state, &method, call)
    };
    Ok(Step::Hold(Placing {
        order: id,
        method,
        note: call.has("customer_note").then(|| clean(&call.text("customer_note"))),
        given,
        attribution: attribution(call),
        outcome,
        wait: state.faults.take_time("prepare_ms"),
    }))
}

/// What a PHP fatal looks like to a client that asked for JSON.
pub(super) fn fatal() -> ApiError {
    ApiError::new(
        500,
        "internal_server_error",
        "<p>There has been a critical error on this website.</p><p><a href=\"https://wordpress.org/documentation/\
         article/faq-troubleshooting/\">Learn more about troubleshooting WordPress.</a></p>",
    )
}
