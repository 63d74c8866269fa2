//! Orders: made from a cart, read through the Store API, moved through their states, and what that does to
//! the stock.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::catalog;
use super::http::{ApiError, Call, Reply};
use super::model::{FeeLine, Order, OrderLine, Refund, Session, ShippingLine, Status};
use super::money::with_currency;
use super::state::State;
use super::totals::Priced;
use super::view;

/// A new order key: `wc_order_` and 13 letters or digits.
fn new_key() -> String {
    let text = crate::clock::Ids.public("k");
    format!("wc_order_{}", text.chars().skip(2).take(13).collect::<String>())
}

/// The order of a session that can be used again: a draft always, a pending or failed order only while the
/// cart is the one it was made from.
pub(super) fn reusable<'a>(state: &'a State, session: &Session, priced: &Priced) -> Option<&'a Order> {
    session.order.and_then(|id| state.order(id)).filter(|order| match order.status {
        Status::CheckoutDraft => true,
        Status::Pending | Status::Failed => order.cart_hash == priced.hash(),
        _ => false,
    })
}

/// Makes the session's order, or brings the open one in line with the cart.
pub(super) fn from_cart(
    state: &mut State,
    session: &mut Session,
    priced: &Priced,
    now: DateTime<Utc>,
) -> u64 {
    let hash = priced.hash();
    let mut order = match reusable(state, session, priced) {
        Some(order) => order.clone(),
        None => {
            Order { id: state.next_order_id(), key: new_key(), meta_id: state.next_meta_id(), ..blank(now) }
        }
    };
    order.modified = now;
    order.billing.clone_from(&session.billing);
    order.shipping.clone_from(&session.shipping);
    order.cart_hash = hash;
    order.needs_shipping = priced.needs_shipping;
    order.discount = priced.discount;
    order.discount_tax = priced.discount_tax;
    order.total = priced.total;
    order.total_tax = priced.tax;
    order.lines = {
        let country = session.shipping.country.as_str();
        priced.lines.iter().filter_map(|line| line_of(state, country, line)).collect()
    };
    for line in &mut order.lines {
        line.id = state.next_item_id();
    }
    order.shipping_lines = priced
        .packages
        .iter()
        .filter_map(|package| {
            let rate = package.rate()?.clone();
            Some(ShippingLine {
                id: 0,
                rate_id: rate.rate_id,
                title: rate.title,
                total: rate.price,
                tax: rate.tax,
                items: view::contents(state, priced, package),
            })
        })
        .collect();
    for line in &mut order.shipping_lines {
        line.id = state.next_item_id();
    }
    // The shop makes a coupon's line again only when other coupons are on the cart: the line of an earlier
    // draft stands, with the tax it had then.
    let codes = |lines: &[super::model::CouponLine]| -> Vec<String> {
        lines.iter().map(|line| line.code.clone()).collect()
    };
    if codes(&order.coupons) != codes(&priced.coupons) {
        order.coupons.clone_from(&priced.coupons);
        for line in &mut order.coupons {
            line.id = state.next_item_id();
        }
    }
    order.taxes.clone_from(&priced.taxes);
    for line in &mut order.taxes {
        line.id = state.next_item_id();
    }
    let id = order.id;
    state.put_order(order);
    session.order = Some(id);
    id
}

/// An order of nothing, without a number.
pub(super) fn blank(now: DateTime<Utc>) -> Order {
    Order {
        id: 0,
        key: String::new(),
        status: Status::CheckoutDraft,
        created: now,
        modified: now,
        paid: None,
        completed: None,
        billing: super::model::Address::default(),
        shipping: super::model::Address::default(),
        payment_method: String::new(),
        transaction_id: String::new(),
        note: String::new(),
        lines: Vec::new(),
        shipping_lines: Vec::new(),
        fields: std::collections::BTreeMap::new(),
        coupons: Vec::new(),
        taxes: Vec::new(),
        needs_shipping: false,
        discount: 0,
        discount_tax: 0,
        total: 0,
        total_tax: 0,
        refunded: 0,
        refunds: Vec::new(),
        fees: Vec::new(),
        created_via: "store-api".to_owned(),
        meta: Vec::new(),
        counted: false,
        ended: false,
        cart_hash: String::new(),
        attribution: None,
        meta_id: 0,
    }
}

/// An order placed on the shop's own page by the buyer of the newest order: units of a product and a fee
/// (hundredths), nothing to be sent. Tells its id.
pub(super) fn own_checkout(
    state: &mut State,
    (product, quantity): (u64, i64),
    (fee, cents): (&str, i64),
    now: DateTime<Utc>,
) -> Option<u64> {
    let newest = state.orders().next_back()?;
    let (billing, shipping) = (newest.billing.clone(), newest.shipping.clone());
    let line = super::model::CartLine { key: String::new(), product, quantity };
    let mut session = Session { lines: vec![line], billing, shipping, ..Session::default() };
    let mut priced = super::totals::price(state, &mut session, now);
    priced.packages.clear();
    priced.needs_shipping = false;
    let id = from_cart(state, &mut session, &priced, now);
    let country = session.shipping.country;
    let percent = state.seed.tax(&country, super::model::TaxClass::Standard).map_or(0, |rate| rate.percent);
    let total = super::money::from_cents(state.settings(), cents);
    let tax = super::money::half_up(i128::from(total) * i128::from(percent), 100);
    let fee = FeeLine { id: state.next_item_id(), name: fee.to_owned(), total, tax };
    let order = state.order_mut(id)?;
    let goods: i64 = order.lines.iter().map(|line| line.total + line.total_tax).sum();
    let goods_tax: i64 = order.lines.iter().map(|line| line.total_tax).sum();
    order.total = goods + total + tax;
    order.total_tax = goods_tax + tax;
    for line in &mut order.taxes {
        line.shipping = 0;
        line.items += tax;
    }
    order.fees.push(fee);
    "checkout".clone_into(&mut order.created_via);
    set_status(state, id, Status::Processing, now);
    Some(id)
}

/// Pays money back. Units of the named lines (line id and quantity) go back into stock; an order that is paid
/// back in full counts as refunded. `None` if it is more than is left.
pub(super) fn refund(
    state: &mut State,
    id: u64,
    (amount, reason): (Option<i64>, &str),
    units: &[(u64, i64)],
    now: DateTime<Utc>,
) -> Option<Refund> {
    let order = state.order(id)?;
    if amount.unwrap_or_default() > order.total - order.refunded {
        return None;
    }
    let back: Vec<(u64, u64, i64)> = units
        .iter()
        .filter_map(|(line, units)| {
            let found = order.lines.iter().find(|found| found.id == *line)?;
            Some((*line, found.product, (*units).min(found.reduced)))
        })
        .filter(|(.., units)| *units > 0)
        .collect();
    let refund = Refund { id: state.next_order_id(), reason: reason.to_owned(), amount };
    let order = state.order_mut(id)?;
    order.modified = now;
    order.refunded += amount.unwrap_or_default();
    order.refunds.push(refund.clone());
    let full = order.refunded >= order.total && amount.is_some();
    for (line, _, units) in &back {
        for found in order.lines.iter_mut().filter(|found| found.id == *line) {
            found.reduced -= units;
            found.restocked += units;
        }
    }
    for (_, product, units) in back {
        move_stock(state, product, units, now);
    }
    if full {
        set_status(state, id, Status::Refunded, now);
    }
    Some(refund)
}

/// Takes a refund back; the order's status stays.
pub(super) fn delete_refund(state: &mut State, id: u64, refund: u64) -> Option<Refund> {
    let order = state.order_mut(id)?;
    let position = order.refunds.iter().position(|found| found.id == refund)?;
    let removed = order.refunds.remove(position);
    order.refunded -= removed.amount.unwrap_or_default();
    Some(removed)
}

fn line_of(state: &State, country: &str, line: &super::totals::Line) -> Option<OrderLine> {
    let product = state.product(line.product)?;
    let price = product.price().unwrap_or_default();
    let shown = |micros: i64| catalog::shown(state, product.tax_class, country, micros);
    Some(OrderLine {
        id: 0,
        product: product.id,
        name: catalog::full_name(state, product),
        sku: product.sku.clone(),
        quantity: line.quantity,
        price: shown(price),
        regular: shown(product.regular.unwrap_or(price)),
        subtotal: line.subtotal,
        subtotal_tax: line.subtotal_tax,
        total: line.total,
        total_tax: line.total_tax,
        tax_class: line.tax_class,
        reduced: 0,
        restocked: 0,
    })
}

/// Moves an order to a status, and its stock and coupons with it.
pub(super) fn set_status(state: &mut State, id: u64, status: Status, now: DateTime<Utc>) {
    turn_status(state, id, status, now);
    if status.takes_stock() {
        take_stock(state, id, now);
    } else if matches!(status, Status::Cancelled | Status::Pending) {
        put_back(state, id, now);
    }
}

/// Moves an order to a status, and only its coupons with it. Before its stock follows, units of a paid order
/// are neither held nor taken off: another checkout can have them.
pub(super) fn turn_status(state: &mut State, id: u64, status: Status, now: DateTime<Utc>) {
    let Some(order) = state.order_mut(id) else { return };
    order.status = status;
    order.modified = now;
    if status == Status::Completed && order.completed.is_none() {
        order.completed = Some(now);
    }
    if matches!(status, Status::Processing | Status::Completed) && order.paid.is_none() {
        order.paid = Some(now);
    }
    if status == Status::Refunded && order.refunded < order.total {
        let rest = order.total - order.refunded;
        order.refunded = order.total;
        let refund = Refund { id: 0, reason: "Order fully refunded.".to_owned(), amount: Some(rest) };
        let refund = Refund { id: state.next_order_id(), ..refund };
        if let Some(order) = state.order_mut(id) {
            order.refunds.push(refund);
        }
    }
    if !status.holds() {
        state.release(id);
    }
    // Pending counts already: a declined order keeps the last use of a coupon even from its own buyer.
    if status == Status::Pending || status.takes_stock() {
        count_coupons(state, id, true);
    } else if status == Status::Cancelled {
        count_coupons(state, id, false);
    }
}

/// Counts the uses of an order's coupons, or takes them back; each once.
fn count_coupons(state: &mut State, id: u64, counted: bool) {
    let Some(order) = state.order_mut(id).filter(|order| order.counted != counted) else { return };
    order.counted = counted;
    let by = if counted { -1 } else { 1 };
    let codes: Vec<String> = order.coupons.iter().map(|line| line.code.clone()).collect();
    for code in codes {
        if state.coupon(&code).is_some_and(|coupon| coupon.uses_left.is_some())
            && let Some(coupon) = state.coupon_mut(&code)
        {
            coupon.uses_left = coupon.uses_left.map(|left| left + by);
        }
    }
}

/// Takes an order's units off the stock, once.
pub(super) fn take_stock(state: &mut State, id: u64, now: DateTime<Utc>) {
    let Some(order) = state.order(id) else { return };
    let due: Vec<(u64, u64, i64)> = order
        .lines
        .iter()
        .filter(|line| line.reduced == 0)
        .filter(|line| state.product(line.product).is_some_and(|product| product.manage_stock))
        .map(|line| (line.id, line.product, line.quantity))
        .collect();
    for (line, product, quantity) in due {
        move_stock(state, product, -quantity, now);
        set_reduced(state, id, line, quantity);
    }
}

/// Puts an order's units back, once.
fn put_back(state: &mut State, id: u64, now: DateTime<Utc>) {
    let Some(order) = state.order(id) else { return };
    let due: Vec<(u64, u64, i64)> = order
        .lines
        .iter()
        .filter(|line| line.reduced != 0)
        .map(|line| (line.id, line.product, line.reduced))
        .collect();
    for (line, product, quantity) in due {
        move_stock(state, product, quantity, now);
        set_reduced(state, id, line, 0);
    }
}

pub(super) fn move_stock(state: &mut State, id: u64, by: i64, now: DateTime<Utc>) {
    if let Some(product) = state.product_mut(id) {
        product.total_sales -= by;
        let stock = product.stock + by;
        state.write_stock(id, stock, now);
    }
}

fn set_reduced(state: &mut State, order: u64, line: u64, reduced: i64) {
    let lines = state.order_mut(order).map(|order| order.lines.iter_mut());
    for found in lines.into_iter().flatten().filter(|found| found.id == line) {
        found.reduced = reduced;
    }
}

fn refuse(status: u16, code: &'static str, message: &str) -> ApiError {
    ApiError::new(status, code, message)
}

/// The order with this id, if key and e-mail are its own.
pub(super) fn authorized<'a>(state: &'a State, id: &str, call: &Call) -> Result<&'a Order, ApiError> {
    let order = id
        .parse()
        .ok()
        .and_then(|id| state.order(id))
        .ok_or_else(|| refuse(404, "woocommerce_rest_invalid_order", "Invalid order ID."))?;
    if call.text("key") != order.key {
        return Err(refuse(401, "woocommerce_rest_invalid_order", "Invalid order ID or key provided."));
    }
    let email = call.text("billing_email");
    if email.is_empty() {
        return Err(refuse(401, "woocommerce_rest_invalid_billing_email", "No billing email provided."));
    }
    if !email.eq_ignore_ascii_case(&order.billing.email) {
        return Err(refuse(401, "woocommerce_rest_invalid_billing_email", "Invalid billing email provided."));
    }
    Ok(order)
}

/// `GET order/{id}`.
pub(super) fn read(state: &State, id: &str, call: &Call) -> Result<Reply, ApiError> {
    Ok(Reply::new(200, order_json(state, authorized(state, id, call)?)))
}

/// A line of an order; note that its `id` is the line's and its `key` the order's.
fn line_json(state: &State, order: &Order, line: &OrderLine) -> Option<Value> {
    let product = state.product(line.product)?;
    let options = catalog::options(state, product);
    let variation: Vec<Value> = options
        .iter()
        .map(|(name, taxonomy, term)| json!({"raw_attribute": taxonomy, "attribute": name, "value": term.slug}))
        .collect();
    let mut data: Vec<(&str, &str, &super::model::Term)> = options;
    data.sort_by_key(|(_, taxonomy, _)| *taxonomy);
    let data: Map<String, Value> = data
        .into_iter()
        .enumerate()
        .map(|(index, (name, taxonomy, term))| {
            let value = json!({
                "key": taxonomy,
                "value": term.slug,
                "display_key": name,
                "display_value": format!("<p>{}</p>\n", term.name),
            });
            (format!("{}{index}", line.id), value)
        })
        .collect();
    let data = if data.is_empty() { json!([]) } else { Value::Object(data) };
    let own = json!({
        "key": order.key,
        "id": line.id,
        "quantity": line.quantity,
        "quantity_limits": {
            "minimum": line.quantity,
            "maximum": line.quantity,
            "multiple_of": 1,
            "editable": false,
        },
        "name": line.name,
        "low_stock_remaining": null,
        "show_backorder_badge": product.manage_stock && product.backorders && product.stock < 0,
        "variation": variation,
        "item_data": data,
        "prices": view::line_prices(state, line.price, line.regular, catalog::prices_json(state, product)),
        "totals": view::line_totals(state, [line.subtotal, line.subtotal_tax, line.total, line.total_tax]),
    });
    Some(view::merged(view::goods(state, product), own))
}

/// An order as the Store API shows it.
fn order_json(state: &State, order: &Order) -> Value {
    let items: Vec<Value> = order.lines.iter().filter_map(|line| line_json(state, order, line)).collect();
    let coupons: Vec<Value> = order.coupons.iter().map(|line| view::coupon(state, line)).collect();
    let taxes: Vec<Value> = view::by_name(&order.taxes)
        .into_iter()
        .map(|tax| json!({"name": tax.name, "price": tax.items.to_string(), "rate": tax.percent.to_string()}))
        .collect();
    let sum = |pick: fn(&OrderLine) -> i64| order.lines.iter().map(pick).sum::<i64>().to_string();
    let (shipping, shipping_tax) = order.shipping_sums();
    let totals = with_currency(
        state.settings(),
        json!({
            "subtotal": sum(|line| line.subtotal),
            "total_discount": order.discount.to_string(),
            "total_shipping": shipping.to_string(),
            "total_fees": "0",
            "total_tax": order.total_tax.to_string(),
            "total_refund": order.refunded.to_string(),
            "total_price": order.total.to_string(),
            "total_items": sum(|line| line.total),
            "total_items_tax": sum(|line| line.total_tax),
            "total_fees_tax": "0",
            "total_discount_tax": order.discount_tax.to_string(),
            "total_shipping_tax": shipping_tax.to_string(),
            "tax_lines": taxes,
        }),
    );
    json!({
        "id": order.id,
        "status": order.status.name(),
        "items": items,
        "coupons": coupons,
        "fees": [],
        "totals": totals,
        "shipping_address": order.shipping.shipping_json(),
        "billing_address": order.billing.billing_json(),
        "needs_payment": order.status.payable() && order.total > 0,
        "needs_shipping": order.needs_shipping,
        "payment_requirements": ["products"],
        "errors": [],
    })
}
