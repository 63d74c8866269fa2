//! What a client can do to a cart: lines, coupons, customer, shipping rate.
//!
//! Each function changes the session or refuses with the code `WooCommerce` uses; the caller prices and renders.

use chrono::{DateTime, Utc};
use md5::{Digest as _, Md5};
use serde_json::{Map, Value};

use super::address::{self, clean};
use super::catalog::{self, full_name};
use super::coupons;
use super::http::{ApiError, Call};
use super::model::{CartLine, Kind, Product, Session};
use super::places;
use super::state::State;
use super::totals::discountable;

/// `quantity` as the shop reads it: whole, a fraction is cut off; `None` if absent.
fn quantity(call: &Call) -> Result<Option<i64>, ApiError> {
    let refuse = || ApiError::invalid("quantity", "rest_invalid_type", "quantity is not of type number.");
    let text = match call.params.get("quantity") {
        None => return Ok(None),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(_) => return Err(refuse()),
    };
    let whole = text.split_once('.').map_or(text.as_str(), |(whole, _)| whole);
    if text.parse::<f64>().is_err() {
        return Err(refuse());
    }
    Ok(Some(whole.parse().unwrap_or_default()))
}

/// Checks the types of a call's parameters, as `WordPress` does before the route sees them.
pub(super) fn check_params(call: &Call) -> Result<(), ApiError> {
    match call.path.rsplit('/').next() {
        Some("add-item" | "update-item" | "items") => quantity(call).map(|_| ()),
        Some("select-shipping-rate") if !call.has("rate_id") => Err(ApiError::missing("rate_id")),
        _ => Ok(()),
    }
}

/// The cart's key for a product: a hash of ids and options.
fn line_key(product: &Product) -> String {
    let mut options: Vec<String> =
        product.options.iter().map(|(taxonomy, slug)| format!("attribute_{taxonomy}{slug}")).collect();
    options.sort();
    let text = match product.kind {
        Kind::Variation => format!("{}_{}_{}", product.parent, product.id, options.concat()),
        _ => product.id.to_string(),
    };
    data_encoding::HEXLOWER.encode(&Md5::digest(text))
}

fn not_found(id: &str) -> ApiError {
    let message = format!("Product with ID &quot;{id}&quot; was not found and cannot be added to the cart.");
    ApiError::new(400, "woocommerce_rest_cart_invalid_product", message)
}

/// The variation that the given attributes name.
fn variation<'a>(state: &'a State, parent: &'a Product, call: &Call) -> Result<&'a Product, ApiError> {
    let mut given: Vec<(String, String)> = Vec::new();
    if let Some(Value::Array(pairs)) = call.params.get("variation") {
        for pair in pairs {
            let text = |name: &str| pair.get(name).and_then(Value::as_str).unwrap_or_default().to_lowercase();
            given.push((text("attribute"), text("value")));
        }
    }
    let mut wanted = Vec::new();
    for attribute in &parent.attributes {
        let names = [
            attribute.name.to_lowercase(),
            attribute.taxonomy.clone(),
            format!("attribute_{}", attribute.taxonomy),
        ];
        let Some((_, value)) = given.iter().find(|(name, _)| names.contains(name)) else {
            let message = "Missing attributes for variable product.";
            return Err(ApiError::new(400, "woocommerce_rest_missing_attributes", message));
        };
        wanted.push((attribute.taxonomy.clone(), value.replace(' ', "-")));
    }
    catalog::children(state, parent).into_iter().find(|child| child.options == wanted).ok_or_else(|| {
        ApiError::new(
            400,
            "woocommerce_rest_variation_id_from_variation_data",
            "No matching variation found.",
        )
    })
}

fn wanted_product<'a>(state: &'a State, call: &Call) -> Result<&'a Product, ApiError> {
    if !call.has("id") {
        return Err(not_found(""));
    }
    let id: u64 = call.text("id").parse().unwrap_or_default();
    let product = state.product(id).ok_or_else(|| not_found(&id.to_string()))?;
    if product.draft {
        let message = "This item is not available for purchase.";
        return Err(ApiError::new(400, "woocommerce_rest_product_not_purchasable", message));
    }
    if !product.purchasable() {
        let message = format!("&quot;{}&quot; is not available for purchase.", product.name);
        return Err(ApiError::new(400, "woocommerce_rest_product_not_purchasable", message));
    }
    if product.kind == Kind::Variable { variation(state, product, call) } else { Ok(product) }
}

/// Refuses a quantity outside the product's limits.
fn check_limits(
    state: &State,
    product: &Product,
    quantity: i64,
    order: Option<u64>,
    now: DateTime<Utc>,
) -> Result<(), ApiError> {
    let limits = catalog::limits(state, product, order, now);
    let name = &product.name;
    let refuse = |message: String| Err(ApiError::new(400, "invalid_quantity", message));
    if !limits.editable {
        let message = format!("The quantity of &quot;{name}&quot; cannot be changed");
        return Err(ApiError::new(400, "readonly_quantity", message));
    }
    if quantity < limits.minimum {
        return refuse(format!(
            "The minimum quantity of &quot;{name}&quot; allowed in the cart is {}",
            limits.minimum
        ));
    }
    if quantity > limits.maximum {
        return refuse(format!(
            "The maximum quantity of &quot;{name}&quot; allowed in the cart is {}",
            limits.maximum
        ));
    }
    if quantity % limits.multiple_of != 0 {
        return refuse(format!(
            "The quantity of &quot;{name}&quot; must be a multiple of {}",
            limits.multiple_of
        ));
    }
    Ok(())
}

/// Units in the cart that come out of a product's stock.
fn sharing(state: &State, session: &Session, product: &Product) -> i64 {
    let manager = state.manager(product.id);
    let lines = session.lines.iter().filter(|line| state.manager(line.product) == manager);
    lines.map(|line| line.quantity).sum()
}

/// Adds a product; tells the key of its line.
pub(super) fn add(
    state: &State,
    session: &mut Session,
    call: &Call,
    now: DateTime<Utc>,
) -> Result<String, ApiError> {
    let asked = quantity(call)?;
    let product = wanted_product(state, call)?;
    let name = full_name(state, product);
    let asked = asked.unwrap_or_else(|| catalog::limits(state, product, session.order, now).minimum);
    if asked <= 0 {
        let message =
            format!("You cannot add &quot;{name}&quot; with a quantity less than or equal to 0 to the cart.");
        return Err(ApiError::new(400, "woocommerce_rest_product_invalid_quantity", message));
    }
    if !product.in_stock() {
        let message =
            format!("You cannot add &quot;{name}&quot; to the cart because the product is out of stock.");
        return Err(ApiError::new(400, "woocommerce_rest_product_out_of_stock", message));
    }
    let key = line_key(product);
    let there = session.lines.iter().find(|line| line.key == key).map(|line| line.quantity);
    let total = there.unwrap_or_default().saturating_add(asked);
    let left = catalog::remaining(state, product, session.order, now);
    if product.limited() && sharing(state, session, product).saturating_add(asked) > left {
        let message = format!(
            "You cannot add that amount of &quot;{name}&quot; to the cart because there is not enough stock ({left} remaining)."
        );
        return Err(ApiError::new(400, "woocommerce_rest_product_partially_out_of_stock", message));
    }
    if let Some(line) = session.lines.iter_mut().find(|line| line.key == key) {
        check_limits(state, product, total, session.order, now)?;
        line.quantity = total;
    } else {
        let quantity = catalog::limits(state, product, session.order, now).clamp(asked);
        session.lines.push(CartLine { key: key.clone(), product: product.id, quantity });
    }
    Ok(key)
}

fn no_line(message: &str) -> ApiError {
    ApiError::new(409, "woocommerce_rest_cart_invalid_key", message)
}

/// Sets a line's quantity.
pub(super) fn update(
    state: &State,
    session: &mut Session,
    key: &str,
    call: &Call,
    now: DateTime<Utc>,
) -> Result<(), ApiError> {
    let asked = quantity(call)?;
    let order = session.order;
    let line = session
        .lines
        .iter_mut()
        .find(|line| line.key == key)
        .ok_or_else(|| no_line("Cart item does not exist."))?;
    if let (Some(asked), Some(product)) = (asked, state.product(line.product)) {
        check_limits(state, product, asked, order, now)?;
        line.quantity = asked;
    }
    Ok(())
}

/// Takes a line out.
pub(super) fn remove(session: &mut Session, key: &str) -> Result<(), ApiError> {
    let before = session.lines.len();
    session.lines.retain(|line| line.key != key);
    if session.lines.len() == before {
        return Err(no_line("Cart item no longer exists or is invalid."));
    }
    Ok(())
}

/// Empties the cart: lines, coupons and choice go; addresses and identity stay.
pub(super) fn empty(session: &mut Session) {
    session.lines.clear();
    session.coupons.clear();
    session.choices.clear();
    session.packages.clear();
    session.order = None;
}

/// Puts a coupon on the cart.
pub(super) fn apply_coupon(state: &State, session: &mut Session, call: &Call) -> Result<(), ApiError> {
    let lines = discountable(state, session);
    coupons::apply(state, &mut session.coupons, &call.text("code"), &lines)
}

/// The posted address object, if it is one.
fn given<'a>(call: &'a Call, name: &str) -> Option<&'a Map<String, Value>> {
    call.params.get(name).and_then(Value::as_object)
}

/// Merges addresses into the stored ones and checks the result.
pub(super) fn update_customer(state: &State, session: &mut Session, call: &Call) -> Result<(), ApiError> {
    let billing = given(call, "billing_address");
    let shipping = given(call, "shipping_address");
    let mut merged_billing = billing.map(|given| session.billing.merged(given));
    let mut merged_shipping = shipping.map(|given| session.shipping.merged(given));
    if let Some(address) = &mut merged_billing
        && !places::is_email(&address.email)
    {
        // A wrong e-mail is dropped without a word.
        address.email.clear();
    }
    if let Some(address) = &mut merged_shipping {
        address.email.clear();
    }
    let mut both = Vec::new();
    if let Some(address) = &merged_billing {
        both.push(("billing_address", address));
    }
    if let Some(address) = &merged_shipping {
        both.push(("shipping_address", address));
    }
    address::check(&both, None)?;
    if let Some(address) = merged_billing {
        session.billing = address;
    }
    match merged_shipping {
        Some(address) => session.shipping = address,
        None if billing.is_some() && !needs_shipping(state, session) => {
            let billing = session.billing.clone();
            session.shipping.copy_from(&billing);
        }
        None => {}
    }
    Ok(())
}

/// Whether anything in the cart has to be sent.
pub(super) fn needs_shipping(state: &State, session: &Session) -> bool {
    session.lines.iter().any(|line| state.product(line.product).is_some_and(|product| !product.is_virtual))
}

/// Remembers the rate asked for; whether it exists is found out when the cart is priced.
pub(super) fn select_rate(session: &mut Session, call: &Call) -> Result<(), ApiError> {
    if !call.has("rate_id") {
        return Err(ApiError::missing("rate_id"));
    }
    let package = call.text("package_id");
    let rate = clean(&call.text("rate_id"));
    if package.is_empty() {
        let all = session.packages.iter().map(|(package, _)| (package.clone(), rate.clone()));
        session.choices.extend(all);
    } else {
        session.choices.insert(package, rate);
    }
    Ok(())
}

/// The billing and shipping addresses that a checkout posts, laid over the stored ones and checked.
pub(super) fn checkout_addresses(state: &State, session: &mut Session, call: &Call) -> Result<(), ApiError> {
    let Some(billing) = call.params.get("billing_address") else {
        return Err(ApiError::missing("billing_address"));
    };
    let billing = billing.as_object().cloned().unwrap_or_default();
    let shipping = given(call, "shipping_address");
    let new_billing = session.billing.merged(&billing);
    let new_shipping = shipping.map(|given| session.shipping.merged(given));
    let mut both = vec![("billing_address", &new_billing)];
    if let Some(address) = &new_shipping {
        both.push(("shipping_address", address));
    }
    let email = billing.get("email").and_then(Value::as_str).unwrap_or_default();
    let wrong = !email.is_empty() && !places::is_email(email);
    let more =
        wrong.then_some(("billing_address", "invalid_email", "The provided email address is not valid"));
    address::check(&both, more)?;
    session.billing = new_billing;
    if let Some(mut address) = new_shipping {
        address.email.clear();
        session.shipping = address;
    }
    if !needs_shipping(state, session) {
        let billing = session.billing.clone();
        session.shipping.copy_from(&billing);
    }
    Ok(())
}
