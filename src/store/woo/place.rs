//! `POST /checkout`: the one call that buys, and what came of it.
//!
//! | answer | meaning |
//! |---|---|
//! | a checkout object with 200, 202 or 400 | the order's status decides; `payment_status` only parts a redirect from a decline |
//! | 400 `…process_payment_error` | declined |
//! | 400, 403, 409 with a code that is raised before any payment | refused |
//! | 401 or 403 about the nonce | the cart is gone |
//! | the limiter's 400 or 429 | nothing ran |
//! | 5xx, HTML, another code, another shape | nobody knows |
//!
//! `success` is not "paid": 3-D Secure answers it with a pending order. A PHP notice before the JSON is passed
//! over when the JSON is a checkout object: it names an order, and an order that is known is never worse than
//! one that has to be looked for. A noisy refusal is not believed: with output before it, a shop that had begun
//! to pay could have sent it.

use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::{
    client::{Answer, json},
    wire::{ApiError, Checkout, WireAddress, WireCustomer},
};
use crate::{
    checkout::{
        cart::Customer,
        store::{Error, PlaceOrder, PlacedOrder, Placement, RefusedOrder},
    },
    money::{Currency, Money},
};

/// The body. Members as recorded; those without content are left out.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    billing_address: WireAddress,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_data: Option<Vec<Pair<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_note: Option<&'a str>,
    extensions: Extensions<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipping_address: Option<WireAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_total: Option<String>,
}

#[derive(Serialize)]
struct Pair<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct Extensions<'a> {
    #[serde(rename = "woocommerce/order-attribution")]
    attribution: Attribution<'a>,
}

#[derive(Serialize)]
struct Attribution<'a> {
    utm_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    utm_source: Option<&'a str>,
}

/// Makes the body. `decimals` is how the shop counts; a total that cannot be told that way is left out.
pub(super) fn body<'a>(
    order: &'a PlaceOrder,
    customer: &Customer,
    currency: Currency,
    decimals: u32,
    with_source: bool,
) -> Body<'a> {
    let WireCustomer { billing_address, shipping_address } = WireCustomer::from(customer);
    let pairs = order.payment_data.iter().map(|(key, value)| Pair { key, value });
    Body {
        billing_address,
        payment_method: order.method.as_deref(),
        payment_data: order.method.is_some().then(|| pairs.collect()),
        customer_note: order.note.as_deref().filter(|note| !note.is_empty()),
        extensions: Extensions {
            attribution: Attribution {
                utm_id: &order.correlation_id,
                utm_source: with_source.then_some(order.source.as_str()),
            },
        },
        shipping_address,
        expected_total: Money::new(order.expected_total, currency)
            .to_shown(decimals)
            .map(|total| total.to_string()),
    }
}

/// Reads the answer. See the table above.
///
/// # Errors
/// [`Error::Limited`] (nothing ran), [`Error::CartGone`] and [`Error::Refused`] (nothing lasting), or one with
/// an unknown effect.
pub(super) fn outcome(answer: &Answer) -> Result<Placement, Error> {
    let status = answer.status.as_u16();
    if status == 503 {
        return Err(Error::Maintenance { status, retry_after_secs: answer.retry_after_secs() });
    }
    if status >= 500 {
        return Err(Error::Failed { status, code: answer.api_error().map(|error| error.code) });
    }
    if matches!(status, 200 | 202 | 400)
        && let Some(checkout) = json(&answer.body).and_then(|body| serde_json::from_value(body).ok())
    {
        return placement(answer, &checkout);
    }
    if answer.is_limiter() {
        return Err(answer.limited());
    }
    let unclear = |what: &str| Err(Error::Unintelligible { what: what.to_owned(), wrote: true });
    let Ok(error) = serde_json::from_slice::<ApiError>(&answer.body) else {
        return unclear("neither an order nor a refusal");
    };
    match (status, error.code.as_str()) {
        (401, "woocommerce_rest_missing_nonce") | (403, "woocommerce_rest_invalid_nonce") => {
            Err(Error::CartGone)
        }
        (404, "rest_no_route") => Err(Error::Refused { status, code: Some(error.code) }),
        (400 | 402, "woocommerce_rest_checkout_process_payment_error") => {
            Ok(Placement::Declined { shop_order: None })
        }
        (400 | 403 | 409, _) => match refused(status, &error) {
            Some(why) => Ok(Placement::Refused(why)),
            None => unclear("a refusal with a code that could come from a payment"),
        },
        _ => unclear("an answer that placing an order does not give"),
    }
}

fn placement(answer: &Answer, checkout: &Checkout) -> Result<Placement, Error> {
    let payment = checkout.payment_result.as_ref();
    let payment_status = payment.map_or("", |result| result.payment_status.as_str());
    let redirect = payment.and_then(|result| result.redirect_url.as_deref()).and_then(absolute);
    // Without the header nobody knows: a cart that is emptied once too often does no harm.
    let cart_filled = answer.header("Cart-Hash").is_none_or(|hash| !hash.is_empty());
    let order = PlacedOrder {
        shop_order: checkout.order_id.clone(),
        number: checkout.order_number.clone().unwrap_or_else(|| checkout.order_id.clone()),
        key: checkout.order_key.clone(),
        paid: matches!(checkout.status.as_str(), "processing" | "completed"),
        cart_filled,
        permalink_url: None,
    };
    match (checkout.status.as_str(), payment_status) {
        ("processing" | "completed" | "on-hold", _) => {
            let permalink_url = redirect.filter(|url| received_page(url, &order.key)).map(String::from);
            Ok(Placement::Placed(PlacedOrder { permalink_url, ..order }))
        }
        ("failed", _) | ("pending", "failure" | "error") => {
            Ok(Placement::Declined { shop_order: Some(order.shop_order) })
        }
        ("pending", _) => Ok(Placement::Redirect { order, url: redirect.map(String::from) }),
        // A draft, a cancelled order, a plugin's own status: never taken for success or failure.
        _ => Err(Error::Unintelligible {
            what: "the order has a status that placing does not give".to_owned(),
            wrote: true,
        }),
    }
}

/// A page that a browser can go to; some methods answer a fragment for their own script.
fn absolute(url: &str) -> Option<Url> {
    Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether the page is the order's own: it carries the order's key. (Its path is a setting of the shop.)
fn received_page(url: &Url, key: &str) -> bool {
    url.query_pairs().any(|(name, value)| name == "key" && value == key)
}

/// Why the shop refused before any payment; `None` when the code does not prove that.
fn refused(status: u16, error: &ApiError) -> Option<RefusedOrder> {
    Some(match error.code.as_str() {
        "woocommerce_rest_product_out_of_stock"
        | "woocommerce_rest_product_partially_out_of_stock"
        | "woocommerce_rest_product_too_many_in_cart"
        | "woocommerce_rest_product_not_purchasable"
        | "woocommerce_product_out_of_stock"
        | "woocommerce_product_not_enough_stock" => RefusedOrder::Stock,
        "woocommerce_rest_cart_empty" => RefusedOrder::EmptyCart,
        "woocommerce_rest_cart_coupon_error"
        | "woocommerce_rest_cart_coupon_errors"
        | "woocommerce_rest_order_coupon_errors"
        | "woocommerce_rest_coupon_reserve_failed" => RefusedOrder::Coupon,
        "woocommerce_rest_invalid_address"
        | "woocommerce_rest_invalid_address_country"
        | "woocommerce_rest_missing_email_address"
        | "woocommerce_rest_invalid_email_address"
        | "woocommerce_required_checkout_field" => RefusedOrder::Address,
        "woocommerce_rest_invalid_shipping_option" => RefusedOrder::Rate,
        "woocommerce_rest_checkout_missing_payment_method"
        | "woocommerce_rest_checkout_payment_method_disabled" => RefusedOrder::Method,
        "woocommerce_rest_checkout_total_mismatch" => RefusedOrder::Total,
        "rest_invalid_param" | "rest_missing_callback_param" => parameter(&error.data),
        "woocommerce_rest_guest_checkout_disabled"
        | "woocommerce_rest_checkout_custom_validation_error"
        | "woocommerce_rest_checkout_error" => RefusedOrder::Other,
        code if code.starts_with("registration-error-") => RefusedOrder::Address,
        // WordPress' own codes come before the route runs at all, and 409 only from checking the cart.
        code if code.starts_with("rest_") => RefusedOrder::Other,
        _ if status == 409 => RefusedOrder::Other,
        _ => return None,
    })
}

/// Which parameter was refused: `data.params` is an object by name, or a list of names.
fn parameter(data: &Value) -> RefusedOrder {
    let names: Vec<&str> = match data.get("params") {
        Some(Value::Object(params)) => params.keys().map(String::as_str).collect(),
        Some(Value::Array(params)) => params.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if names.iter().any(|name| matches!(*name, "payment_method" | "payment_data")) {
        RefusedOrder::Method
    } else if names
        .iter()
        .any(|name| matches!(*name, "billing_address" | "shipping_address" | "additional_fields"))
    {
        RefusedOrder::Address
    } else {
        RefusedOrder::Other
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
