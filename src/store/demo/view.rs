//! A cart as JSON.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::catalog;
use super::model::{CouponLine, Kind, Product, Session, TaxLine};
use super::money::{ten_thousandths, with_currency};
use super::shipping::Package;
use super::state::State;
use super::totals::{Line, Notice, Priced};

/// Ids of the payment methods the shop takes.
pub(super) const PAYMENT_METHODS: [&str; 4] = ["bacs", "cheque", "cod", "agent_token"];

/// The whole cart.
pub(super) fn cart(state: &State, session: &Session, priced: &Priced, now: DateTime<Utc>) -> Value {
    let items: Vec<Value> = priced.lines.iter().filter_map(|line| item(state, session, line, now)).collect();
    let coupons: Vec<Value> = priced.coupons.iter().map(|line| coupon(state, line)).collect();
    let weight: i64 = priced
        .lines
        .iter()
        .filter_map(|line| Some(state.product(line.product)?.weight * line.quantity))
        .sum();
    json!({
        "items": items,
        "coupons": coupons,
        "fees": [],
        "totals": totals(state, priced),
        "shipping_address": session.shipping.shipping_json(),
        "billing_address": session.billing.billing_json(),
        "needs_payment": priced.total > 0,
        "needs_shipping": priced.needs_shipping,
        "payment_requirements": ["products"],
        "has_calculated_shipping": priced.needs_shipping,
        "shipping_rates": packages(state, session, priced),
        "items_count": priced.lines.iter().map(|line| line.quantity).sum::<i64>(),
        "items_weight": ten_thousandths(weight),
        "cross_sells": [],
        "errors": errors(state, session, priced, now),
        "payment_methods": PAYMENT_METHODS,
        "extensions": {},
    })
}

/// A coupon of a cart or order.
pub(super) fn coupon(state: &State, line: &CouponLine) -> Value {
    json!({
        "code": line.code,
        "discount_type": line.kind.name(),
        "totals": with_currency(state.settings(), json!({
            "total_discount": line.discount.to_string(),
            "total_discount_tax": line.tax.to_string(),
        })),
    })
}

/// Members that a product's lines share in cart and order.
pub(super) fn goods(state: &State, product: &Product) -> Value {
    let described =
        if product.kind == Kind::Variation { state.product(product.parent) } else { Some(product) };
    json!({
        "short_description": described.map(|product| product.short_description.as_str()).unwrap_or_default(),
        "description": product.description,
        "sku": product.sku,
        "backorders_allowed": product.backorders,
        "sold_individually": product.sold_individually,
        "permalink": catalog::permalink(state, product),
        "images": catalog::images(state, product),
        "catalog_visibility": "visible",
    })
}

/// `prices` of a line, with the exact ones beside the rounded.
pub(super) fn line_prices(state: &State, price: i64, regular: i64, mut prices: Value) -> Value {
    let unit = super::money::minor;
    let settings = state.settings();
    if let Some(members) = prices.as_object_mut() {
        members.insert("price".to_owned(), json!(unit(settings, price).to_string()));
        members.insert("regular_price".to_owned(), json!(unit(settings, regular).to_string()));
        members.insert("sale_price".to_owned(), json!(unit(settings, price).to_string()));
        members.insert(
            "raw_prices".to_owned(),
            json!({
                "precision": 6,
                "price": price.to_string(),
                "regular_price": regular.to_string(),
                "sale_price": price.to_string(),
            }),
        );
    }
    prices
}

/// Puts the members of the second object into the first.
pub(super) fn merged(mut first: Value, second: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (first.as_object_mut(), second) {
        members.extend(more);
    }
    first
}

/// One line of a cart.
pub(super) fn item(state: &State, session: &Session, line: &Line, now: DateTime<Utc>) -> Option<Value> {
    let product = state.product(line.product)?;
    let limits = catalog::limits(state, product, session.order, now);
    let mut variation: Vec<(String, Value)> = catalog::options(state, product)
        .into_iter()
        .map(|(name, taxonomy, term)| {
            let raw = format!("attribute_{taxonomy}");
            (raw.clone(), json!({"raw_attribute": raw, "attribute": name, "value": term.name}))
        })
        .collect();
    variation.sort_by(|a, b| a.0.cmp(&b.0));
    let variation: Vec<Value> = variation.into_iter().map(|(_, value)| value).collect();
    let price = product.price().unwrap_or_default();
    let regular = product.regular.unwrap_or(price);
    let country = session.shipping.country.as_str();
    let shown = |micros: i64| catalog::shown(state, product.tax_class, country, micros);
    let (price, regular) = (shown(price), shown(regular));
    let own = json!({
        "key": line.key,
        "id": product.id,
        "type": product.kind.name(),
        "quantity": line.quantity,
        "quantity_limits": limits.json(),
        "name": product.name,
        "low_stock_remaining": catalog::low_stock(product),
        "show_backorder_badge": product.manage_stock && product.backorders && product.stock < line.quantity,
        "variation": variation,
        "item_data": [],
        "prices": line_prices(state, price, regular, catalog::prices_json(state, product)),
        "totals": line_totals(state, [line.subtotal, line.subtotal_tax, line.total, line.total_tax]),
        "extensions": {},
    });
    Some(merged(goods(state, product), own))
}

/// `totals` of a line: before and after discounts, each net and its tax.
pub(super) fn line_totals(state: &State, [subtotal, subtotal_tax, total, total_tax]: [i64; 4]) -> Value {
    with_currency(
        state.settings(),
        json!({
            "line_subtotal": subtotal.to_string(),
            "line_subtotal_tax": subtotal_tax.to_string(),
            "line_total": total.to_string(),
            "line_total_tax": total_tax.to_string(),
        }),
    )
}

/// Taxes as they are listed: those of one name are added up and show the last one's rate.
pub(super) fn by_name(taxes: &[TaxLine]) -> Vec<TaxLine> {
    let mut listed: Vec<TaxLine> = Vec::new();
    for tax in taxes {
        match listed.iter_mut().find(|known| known.name == tax.name) {
            Some(known) => {
                known.items += tax.items;
                known.shipping += tax.shipping;
                known.percent = tax.percent;
            }
            None => listed.push(tax.clone()),
        }
    }
    listed
}

fn totals(state: &State, priced: &Priced) -> Value {
    let taxes: Vec<Value> = by_name(&priced.taxes)
        .into_iter()
        .map(|tax| {
            json!({
                "name": tax.name,
                "price": (tax.items + tax.shipping).to_string(),
                "rate": format!("{}%", tax.percent),
            })
        })
        .collect();
    let shipping = |amount: i64| priced.needs_shipping.then(|| amount.to_string());
    with_currency(
        state.settings(),
        json!({
            "total_items": priced.items.to_string(),
            "total_items_tax": priced.items_tax.to_string(),
            "total_fees": "0",
            "total_fees_tax": "0",
            "total_discount": priced.discount.to_string(),
            "total_discount_tax": priced.discount_tax.to_string(),
            "total_shipping": shipping(priced.shipping),
            "total_shipping_tax": shipping(priced.shipping_tax),
            "total_price": priced.total.to_string(),
            "total_tax": priced.tax.to_string(),
            "tax_lines": taxes,
        }),
    )
}

/// What is in a package, as the shop writes it for the parcel.
pub(super) fn contents(state: &State, priced: &Priced, package: &Package) -> String {
    let items: Vec<String> = inside(state, priced, package)
        .map(|(line, product)| format!("{} &times; {}", catalog::full_name(state, product), line.quantity))
        .collect();
    items.join(", ")
}

fn inside<'a>(
    state: &'a State,
    priced: &'a Priced,
    package: &'a Package,
) -> impl Iterator<Item = (&'a Line, &'a Product)> {
    let lines = priced.lines.iter().filter(|line| package.lines.contains(&line.key));
    lines.filter_map(|line| Some((line, state.product(line.product)?)))
}

fn packages(state: &State, session: &Session, priced: &Priced) -> Value {
    priced.packages.iter().map(|one| package(state, session, priced, one)).collect()
}

fn package(state: &State, session: &Session, priced: &Priced, package: &Package) -> Value {
    let items: Vec<Value> = inside(state, priced, package)
        .map(|(line, product)| {
            let name = catalog::full_name(state, product);
            json!({"key": line.key, "name": name, "quantity": line.quantity})
        })
        .collect();
    let contents = contents(state, priced, package);
    let rates: Vec<Value> = package
        .rates
        .iter()
        .enumerate()
        .map(|(index, rate)| {
            let (method, instance) = rate.method();
            let meta: Vec<Value> = rate
                .meta
                .iter()
                .map(|(key, value)| json!({"key": key, "value": value}))
                .chain(std::iter::once(json!({"key": "Items", "value": contents})))
                .collect();
            with_currency(
                state.settings(),
                json!({
                    "rate_id": rate.rate_id,
                    "name": rate.title,
                    "description": "",
                    "delivery_time": "",
                    "price": rate.price.to_string(),
                    "taxes": rate.tax.to_string(),
                    "instance_id": instance,
                    "method_id": method,
                    "meta_data": meta,
                    "selected": Some(index) == package.chosen,
                }),
            )
        })
        .collect();
    // A package's id is the key of a PHP list: a number where it looks like one.
    let id = package.id.parse::<u64>().map_or_else(|_| json!(package.id), |number| json!(number));
    json!({
        "package_id": id,
        "name": package.name,
        "destination": session.shipping.destination_json(),
        "items": items,
        "shipping_rates": rates,
    })
}

/// What a checkout of this cart would be refused for; names in plain quotes.
pub(super) fn violations(
    state: &State,
    session: &Session,
    priced: &Priced,
    now: DateTime<Utc>,
) -> Vec<Notice> {
    let mut found = Vec::new();
    // Lines that share a stock are one wish.
    let wished = |line: &Line| -> i64 {
        let manager = state.manager(line.product);
        let same = priced.lines.iter().filter(|other| state.manager(other.product) == manager);
        same.map(|other| other.quantity).sum()
    };
    for line in &priced.lines {
        let Some(product) = state.product(line.product) else { continue };
        let name = catalog::full_name(state, product);
        if !product.in_stock() {
            found.push(Notice {
                code: "woocommerce_rest_product_out_of_stock",
                message: format!(
                    "\"{name}\" is out of stock and cannot be purchased. Please remove it from your cart."
                ),
            });
        } else if product.limited() && catalog::remaining(state, product, session.order, now) < wished(line) {
            found.push(Notice {
                code: "woocommerce_rest_product_partially_out_of_stock",
                message: format!(
                    "There is not enough \"{name}\" in stock. Please reduce the quantity in your cart."
                ),
            });
        }
    }
    found.extend(priced.notices.iter().cloned());
    found
}

/// `errors` of a cart: the same with typographic quotes.
fn errors(state: &State, session: &Session, priced: &Priced, now: DateTime<Utc>) -> Value {
    violations(state, session, priced, now)
        .into_iter()
        .map(|notice| {
            let message = notice.message.replacen('"', "&#8220;", 1).replacen('"', "&#8221;", 1);
            json!({"code": notice.code, "message": message})
        })
        .collect()
}
