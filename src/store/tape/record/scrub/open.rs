//! What stays: lists of names and words that say nothing of a person and give nothing away.

use super::{forms::is_formed, kinds::plain};

/// Meta of an order that says nothing of a person.
pub(super) fn is_harmless_meta(key: &str) -> bool {
    key.strip_prefix("_wc_order_attribution_").is_some_and(|name| {
        name.starts_with("utm_") || matches!(name, "source_type" | "device_type" | "session_pages")
    })
}

/// Whether a name in a form is one of an order's attribution that says nothing of a person.
pub(super) fn is_attribution(name: &str) -> bool {
    let plain = plain(name);
    is_harmless_meta(&format!("_{plain}")) || is_harmless_meta(&format!("_wc_order_attribution_{plain}"))
}

/// Whether a value can be a payment method's name, and is no token.
pub(super) fn is_method(value: &str) -> bool {
    let slug = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !value.is_empty() && value.len() <= 40 && value.chars().all(slug) && !is_formed(value)
}

/// Whether a page to go to stands under this name.
pub(super) fn is_link(name: &str) -> bool {
    let plain = plain(name);
    let goes =
        ["payment", "checkout", "return", "cancel", "success", "confirm", "download", "delivery", "continue"]
            .iter()
            .chain(&[
                "next",
                "action",
                "login",
                "reset",
                "approve",
                "hosted",
                "pay",
                "authenticate",
                "referer",
            ])
            .any(|part| plain.contains(part));
    plain.contains("redirect")
        || goes && ["_url", "_uri", "_link", "_href", "referer"].iter().any(|end| plain.ends_with(end))
}

/// Whether a word tells how a payment went.
pub(super) fn is_outcome(value: &str) -> bool {
    matches!(
        value,
        "success"
            | "succeeded"
            | "successful"
            | "failure"
            | "failed"
            | "fail"
            | "error"
            | "pending"
            | "processing"
            | "completed"
            | "on-hold"
            | "declined"
            | "canceled"
            | "cancelled"
            | "approved"
            | "authorized"
            | "redirect"
            | "requires_action"
            | "requires_confirmation"
            | "requires_payment_method"
            | "requires_capture"
            | ""
    )
}

/// Whether an address shows a text under this name: tax and shipping depend on it.
pub(super) fn is_open_in_address(name: &str) -> bool {
    matches!(plain(name).as_str(), "country" | "state" | "address_country" | "address_region" | "region")
}

/// Whether a customer's or user's text under this name says nothing of the person.
pub(super) fn is_open_in_person(name: &str) -> bool {
    let plain = plain(name);
    is_open_in_address(name)
        || matches!(plain.as_str(), "role" | "roles" | "locale" | "currency" | "total_spend" | "total_spent")
        || ["date", "registered", "modified"].iter().any(|start| plain.starts_with(start))
}

/// Whether a value in the query of a redirect says nothing, if it is a word or a short number.
pub(super) fn is_open_in_query(name: &str) -> bool {
    matches!(
        plain(name).as_str(),
        "order"
            | "order_id"
            | "order_received"
            | "order_pay"
            | "pay_for_order"
            | "page"
            | "page_id"
            | "per_page"
            | "p"
            | "lang"
            | "locale"
            | "currency"
            | "country"
            | "status"
            | "redirect_status"
            | "result"
            | "type"
            | "wc_api"
            | "wc_ajax"
            | "rest_route"
            | "fields"
            | "payment_method"
            | "utm_source"
            | "utm_medium"
            | "utm_id"
            | "add_to_cart"
            | "orderby"
    )
}

/// Whether a text in a checkout form says nothing of buyer and payment.
pub(super) fn is_open_in_form(name: &str) -> bool {
    let plain = plain(name);
    let bare =
        ["billing_", "shipping_", "calc_shipping_", "s_"].iter().find_map(|start| plain.strip_prefix(start));
    is_open_in_address(bare.unwrap_or(&plain))
        || is_attribution(name)
        || plain.starts_with("shipping_method")
        || name.starts_with("shipping_method[")
        || plain.starts_with("woocommerce_")
        || matches!(
            plain.as_str(),
            "payment_method"
                | "terms"
                | "terms_field"
                | "createaccount"
                | "create_account"
                | "has_full_address"
                | "ship_to_different_address"
                | "add_to_cart"
                | "quantity"
                | "product_id"
                | "variation_id"
                | "id"
                | "order_id"
                | "coupon_code"
                | "wc_ajax"
                | "rest_route"
                | "pay_for_order"
                | "wp_http_referer"
                | "action"
                | "lang"
                | "locale"
                | "key"
                | "fields"
        )
}

/// Whether a form's field belongs to a payment method, by its name alone.
pub(super) fn names_a_provider(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "stripe",
        "paypal",
        "ppcp",
        "klarna",
        "mollie",
        "adyen",
        "braintree",
        "square-",
        "razorpay",
        "wcpay",
        "payment-token",
    ]
    .iter()
    .any(|provider| name.contains(provider))
}
