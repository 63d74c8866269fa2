//! An order as wc/v3 shows it, and the short lists under `/_demo`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::catalog;
use super::checkout::ATTRIBUTION;
use super::model::{Order, OrderLine, Status};
use super::money::{major, major_short, minor, ratio};
use super::payment;
use super::shipping::split;
use super::state::State;
use super::view::merged;
use super::wcv3::{shop_time, stamp};

/// A hash that stands for something of the order; its value means nothing to others.
fn hash(text: &str) -> String {
    use md5::Digest as _;
    data_encoding::HEXLOWER.encode(&md5::Md5::digest(text))
}

fn meta(id: u64, key: &str, value: &str) -> Value {
    json!({"id": id, "key": key, "value": value})
}

fn shown_meta(id: u64, key: &str, value: &str, display: (&str, &str)) -> Value {
    merged(meta(id, key, value), json!({"display_key": display.0, "display_value": display.1}))
}

fn order_meta(order: &Order) -> Vec<Value> {
    let first = order.meta_id;
    let coupons: Vec<&str> = order.coupons.iter().map(|line| line.code.as_str()).collect();
    let rates: Vec<&str> = order.shipping_lines.iter().map(|line| line.rate_id.as_str()).collect();
    let mut rows = vec![
        meta(first, "_shipping_hash", &hash(&rates.join(","))),
        meta(first + 1, "_coupons_hash", &hash(&coupons.join(","))),
        meta(first + 2, "_fees_hash", &hash("")),
        meta(first + 3, "_taxes_hash", &hash(&order.total_tax.to_string())),
        meta(first + 4, "is_vat_exempt", "no"),
    ];
    if let Some(fields) = &order.attribution {
        for (id, field) in (first + 10..).zip(ATTRIBUTION) {
            let value = fields.get(field).map(String::as_str).unwrap_or_default();
            rows.push(meta(id, &format!("_wc_order_attribution_{field}"), value));
        }
    }
    if order.status != Status::CheckoutDraft && order.created_via == "store-api" {
        let pending = if order.ended { "_pending_deletion" } else { "" };
        let source = format!("place-order-debug-{}", hash(&order.key).chars().take(8).collect::<String>());
        rows.push(meta(first + 39, &format!("_debug_log_source{pending}"), &source));
    }
    let more = super::fields::meta(order);
    rows.extend((first + 26..).zip(more).map(|(id, (key, value))| meta(id, &key, &value)));
    rows.extend(order.meta.iter().map(|(id, key, value)| meta(*id, key, value)));
    rows
}

/// Tax on an amount, to a ten-thousandth if so many places are asked for, else as it was charged.
fn tax_text(state: &State, (amount, percent): (i64, i64), charged: i64, places: usize) -> String {
    if places > 2 && state.settings().decimals == 2 && !state.settings().entered_with_tax {
        super::money::decimal(amount * percent, 4)
    } else {
        major(state.settings(), charged)
    }
}

/// Gives amounts as many places as were asked for.
fn lengthen(value: &mut Value, places: usize) {
    const AMOUNTS: &[&str] =
        &["total", "subtotal", "total_tax", "subtotal_tax", "tax_total", "shipping_tax_total"];
    const SUMS: &[&str] = &["discount_total", "discount_tax", "shipping_total", "shipping_tax", "cart_tax"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| lengthen(item, places)),
        Value::Object(members) => {
            // A coupon's amounts are written short.
            let coupon = members.contains_key("nominal_amount");
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(text)
                        if !coupon && (AMOUNTS.contains(&name.as_str()) || SUMS.contains(&name.as_str())) =>
                    {
                        if let Some((_, part)) = text.split_once('.') {
                            let zeros = "0".repeat(places.saturating_sub(part.len()));
                            text.push_str(&zeros);
                        }
                    }
                    other => lengthen(other, places),
                }
            }
        }
        _ => {}
    }
}

fn line_json(state: &State, order: &Order, line: &OrderLine, places: usize) -> Value {
    let settings = state.settings();
    let product = state.product(line.product);
    let parent = product.map_or(0, |product| product.parent);
    let (product_id, variation_id) = if parent == 0 { (line.product, 0) } else { (parent, line.product) };
    let rate = state.seed.tax(&order.shipping.country, line.tax_class);
    let taxes: Vec<Value> = rate
        .into_iter()
        .map(|rate| {
            json!({
                "id": rate.id,
                "total": tax_text(state, (line.total, rate.percent), line.total_tax, places),
                "subtotal": tax_text(state, (line.subtotal, rate.percent), line.subtotal_tax, places),
            })
        })
        .collect();
    let mut options = product.map(|product| catalog::options(state, product)).unwrap_or_default();
    options.sort_by_key(|(_, taxonomy, _)| *taxonomy);
    let mut rows: Vec<Value> = options
        .into_iter()
        .map(|(name, taxonomy, term)| shown_meta(line.id * 10, taxonomy, &term.slug, (name, &term.name)))
        .collect();
    if line.reduced != 0 {
        let reduced = line.reduced.to_string();
        rows.push(shown_meta(line.id * 10 + 9, "_reduced_stock", &reduced, ("_reduced_stock", &reduced)));
    }
    if line.restocked != 0 {
        let back = line.restocked.to_string();
        let shown = ("_restock_refunded_items", back.as_str());
        rows.push(shown_meta(line.id * 10 + 8, "_restock_refunded_items", &back, shown));
    }
    let image = product.map(|product| product.image.as_str()).unwrap_or_default();
    let image_id = if parent == 0 { json!("18") } else { json!(18) };
    json!({
        "id": line.id,
        "name": line.name,
        "product_id": product_id,
        "variation_id": variation_id,
        "quantity": line.quantity,
        "tax_class": match line.tax_class {
            super::model::TaxClass::Standard => "",
            super::model::TaxClass::Reduced => "reduced-rate",
        },
        "subtotal": major(settings, line.subtotal),
        "subtotal_tax": major(settings, line.subtotal_tax),
        "total": major(settings, line.total),
        "total_tax": major(settings, line.total_tax),
        "taxes": taxes,
        "meta_data": rows,
        "sku": line.sku,
        "global_unique_id": "",
        "price": ratio(line.total, line.quantity, settings.decimals),
        "image": {"id": image_id, "src": format!("{}/wp-content/uploads/2026/11/{image}", state.public_base)},
        "parent_name": state.product(parent).map(|parent| parent.name.as_str()),
    })
}

fn shipping_lines(state: &State, order: &Order) -> Vec<Value> {
    let settings = state.settings();
    order
        .shipping_lines
        .iter()
        .map(|line| {
            let (method, instance) = split(&line.rate_id);
            let taxes: Vec<Value> = order
                .taxes
                .iter()
                .filter(|tax| tax.shipping != 0)
                .map(|tax| json!({"id": tax.rate_id, "total": major(settings, line.tax), "subtotal": ""}))
                .collect();
            json!({
                "id": line.id,
                "method_title": line.title,
                "method_id": method,
                "instance_id": instance.to_string(),
                "total": major(settings, line.total),
                "total_tax": major(settings, line.tax),
                "taxes": taxes,
                "tax_status": "taxable",
                "meta_data": [shown_meta(line.id * 10, "Items", &line.items, ("Items", &line.items))],
            })
        })
        .collect()
}

fn tax_lines(state: &State, order: &Order) -> Vec<Value> {
    let settings = state.settings();
    order
        .taxes
        .iter()
        .map(|tax| {
            json!({
                "id": tax.id,
                "rate_code": format!("{}-{}-1", tax.country, tax.name.to_uppercase()),
                "rate_id": tax.rate_id,
                "label": tax.name,
                "compound": false,
                "tax_total": major(settings, tax.items),
                "shipping_tax_total": major(settings, tax.shipping),
                "rate_percent": tax.percent,
                "meta_data": [],
            })
        })
        .collect()
}

fn coupon_lines(state: &State, order: &Order) -> Vec<Value> {
    let settings = state.settings();
    order
        .coupons
        .iter()
        .map(|line| {
            let amount = match line.kind {
                super::model::DiscountType::Percent => json!(line.amount),
                _ => ratio(line.amount, 1, 2),
            };
            let id = state.coupon(&line.code).map_or(0, |coupon| coupon.id);
            let info = json!([id, line.code, line.kind.name(), amount]).to_string();
            json!({
                "id": line.id,
                "code": line.code,
                "discount": major_short(settings, line.discount),
                "discount_tax": major_short(settings, line.tax),
                "meta_data": [shown_meta(line.id * 10, "coupon_info", &info, ("coupon_info", &info))],
                "discount_type": line.kind.name(),
                "nominal_amount": amount,
                "free_shipping": line.free_shipping,
            })
        })
        .collect()
}

fn fee_lines(state: &State, order: &Order) -> Vec<Value> {
    let settings = state.settings();
    let rate = state.seed.tax(&order.shipping.country, super::model::TaxClass::Standard);
    order
        .fees
        .iter()
        .map(|fee| {
            let taxes: Vec<Value> = rate
                .iter()
                .map(|rate| json!({"id": rate.id, "total": major(settings, fee.tax), "subtotal": ""}))
                .collect();
            json!({
                "id": fee.id,
                "name": fee.name,
                "tax_class": "",
                "tax_status": "taxable",
                "amount": major(settings, fee.total),
                "total": major(settings, fee.total),
                "total_tax": major(settings, fee.tax),
                "taxes": taxes,
                "meta_data": [],
            })
        })
        .collect()
}

/// An order as wc/v3 shows it, with amounts to so many places.
pub(super) fn order_json(state: &State, order: &Order, places: usize) -> Value {
    let settings = state.settings();
    let lines: Vec<Value> = order.lines.iter().map(|line| line_json(state, order, line, places)).collect();
    let (shipping, shipping_tax) = order.shipping_sums();
    let refunds: Vec<Value> = order
        .refunds
        .iter()
        .map(|refund| {
            let amount = refund.amount.map(|amount| major(settings, amount)).unwrap_or_default();
            json!({"id": refund.id, "reason": refund.reason, "total": format!("-{amount}")})
        })
        .collect();
    let base = &state.public_base;
    let pay = format!("{base}/checkout/order-pay/{}/?pay_for_order=true&key={}", order.id, order.key);
    let facts = json!({
        "id": order.id,
        "parent_id": 0,
        "number": order.id.to_string(),
        "status": order.status.name(),
        "currency": settings.currency,
        "currency_symbol": super::money::sign(settings),
        "version": "10.5.0",
        "prices_include_tax": false,
        "customer_id": 0,
        "order_key": order.key,
        "billing": order.billing.plain().billing_json(),
        "shipping": order.shipping.plain().shipping_json(),
        "payment_method": order.payment_method,
        "payment_method_title": payment::title(&order.payment_method),
        "transaction_id": order.transaction_id,
        "customer_ip_address": "127.0.0.1",
        "customer_user_agent": "",
        "created_via": order.created_via,
        "customer_note": order.note,
        "cart_hash": order.cart_hash,
        "payment_url": pay,
        "is_editable": order.status.holds() || order.status == Status::OnHold,
        "needs_payment": order.status.payable() && order.total > 0,
        "needs_processing": order.needs_shipping,
    });
    let amounts = json!({
        "discount_total": major(settings, order.discount),
        "discount_tax": major(settings, order.discount_tax),
        "shipping_total": major(settings, shipping),
        "shipping_tax": major(settings, shipping_tax),
        "cart_tax": major(settings, order.total_tax - shipping_tax),
        "total": major(settings, order.total),
        "total_tax": major(settings, order.total_tax),
        "meta_data": order_meta(order),
        "line_items": lines,
        "tax_lines": tax_lines(state, order),
        "shipping_lines": shipping_lines(state, order),
        "fee_lines": fee_lines(state, order),
        "coupon_lines": coupon_lines(state, order),
        "refunds": refunds,
    });
    let mut body = merged(facts, amounts);
    for (name, time) in [
        ("date_created", Some(order.created)),
        ("date_modified", Some(order.modified)),
        ("date_completed", order.completed),
        ("date_paid", order.paid),
    ] {
        let own = time.map(|time| stamp(shop_time(state, time)));
        body = merged(body, json!({name: own, format!("{name}_gmt"): time.map(stamp)}));
    }
    if places > 2 {
        lengthen(&mut body, places);
    }
    body
}

/// A short list of the shop's orders for tests and readers: id, status, total, correlation id, lines.
pub(super) fn summary(state: &State) -> Value {
    let settings = state.settings();
    state
        .orders()
        .map(|order| {
            let lines: Vec<Value> =
                order.lines.iter().map(|line| json!({"sku": line.sku, "quantity": line.quantity})).collect();
            json!({
                "id": order.id,
                "status": order.status.name(),
                "total": major(settings, order.total),
                "total_minor": order.total,
                "utm_id": order.utm_id(),
                "email": order.billing.email,
                "payment_method": order.payment_method,
                "created_at": stamp(order.created),
                "lines": lines,
            })
        })
        .collect()
}

/// Stock by SKU, with what is held.
pub(super) fn stock_summary(state: &State, now: DateTime<Utc>) -> Value {
    state
        .products()
        .filter(|product| product.manage_stock && !product.by_parent)
        .map(|product| {
            let facts = json!({
                "stock": product.stock,
                "held": state.held(product.id, None, now),
                "price_minor": minor(state.settings(), product.price().unwrap_or_default()),
            });
            (product.sku.clone(), facts)
        })
        .collect::<serde_json::Map<String, Value>>()
        .into()
}
