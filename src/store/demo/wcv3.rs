//! The few calls of wc/v3 that a gateway needs: reading orders and stock, cancelling an order.
//!
//! Basic authentication with `ck_demo`/`cs_demo` (or the same as `consumer_key` and `consumer_secret`);
//! `ck_demo_read`/`cs_demo_read` may only read, `ck_demo_write`/`cs_demo_write` only write. A real shop ignores
//! keys that come over plain http; this one, being on loopback, does so only if a proxy says
//! `X-Forwarded-Proto: http`. Amounts are decimal texts in major units. Times without a zone are shop time, which is UTC.

use axum::http::HeaderMap;
use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Value, json};

use super::catalog;
use super::http::{ApiError, Call, Reply, trim};
use super::model::{Kind, Order, Product, Status};
use super::money::price_text;
use super::orders;
use super::paging::{page_of, paging};
use super::state::State;
use super::view::merged;
use super::wcv3_order::order_json;

/// The keys: consumer key, secret, whether it may read, whether it may write.
const KEYS: [(&str, &str, bool, bool); 3] = [
    ("ck_demo", "cs_demo", true, true),
    ("ck_demo_read", "cs_demo_read", true, false),
    ("ck_demo_write", "cs_demo_write", false, true),
];

/// The methods that a path below `wc/v3` takes, or `None` if there is no such path.
pub(super) fn methods(path: &[&str]) -> Option<&'static str> {
    match path {
        [] | ["variations"] => Some("GET"),
        ["orders" | "products"] | ["products", _, "variations"] | ["orders", _, "refunds"] => {
            Some("GET, POST")
        }
        ["products", "batch"] => Some("POST, PUT, PATCH"),
        ["orders" | "products", _] | ["products", _, "variations", _] => {
            Some("GET, POST, PUT, PATCH, DELETE")
        }
        ["orders", _, "refunds", _] => Some("GET, DELETE"),
        _ => None,
    }
}

/// Refuses a call without a good key.
pub(super) fn authorize(call: &Call, headers: &HeaderMap) -> Result<(), ApiError> {
    let basic = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok()?.strip_prefix("Basic "))
        .and_then(|text| data_encoding::BASE64.decode(text.trim().as_bytes()).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let (key, secret) = match &basic {
        Some(pair) => {
            pair.split_once(':').map(|(key, secret)| (key.to_owned(), secret.to_owned())).unwrap_or_default()
        }
        None => (call.text("consumer_key"), call.text("consumer_secret")),
    };
    let asks = call.method == "OPTIONS";
    let reads = call.method == "GET" || asks;
    let plain = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "http");
    if plain && call.has("oauth_consumer_key") {
        let missing: Vec<&str> = ["oauth_timestamp", "oauth_nonce", "oauth_signature"]
            .into_iter()
            .filter(|name| !call.has(name))
            .collect();
        if !missing.is_empty() {
            let message = format!("Missing OAuth parameters {}", missing.join(", "));
            return Err(ApiError::new(401, "woocommerce_rest_authentication_missing_parameter", message));
        }
    }
    let known = KEYS.iter().find(|(known, ..)| *known == key).filter(|_| !plain);
    let Some((_, right, may_read, may_write)) = known else {
        return Err(if reads {
            ApiError::new(401, "woocommerce_rest_cannot_view", "Sorry, you cannot view this resource.")
        } else {
            ApiError::new(
                401,
                "woocommerce_rest_cannot_edit",
                "Sorry, you are not allowed to edit this resource.",
            )
        });
    };
    let refuse = |message: &str| Err(ApiError::new(401, "woocommerce_rest_authentication_error", message));
    if *right != secret {
        return refuse("Consumer secret is invalid.");
    }
    if reads && !asks && !may_read {
        return refuse("The API key provided does not have read permissions.");
    }
    if !reads && !may_write {
        return refuse("The API key provided does not have write permissions.");
    }
    Ok(())
}

/// Answers a wc/v3 call; `path` is the part below `wc/v3`.
pub(super) fn route(
    state: &mut State,
    call: &Call,
    path: &[&str],
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    if methods(path).is_none() {
        return Err(ApiError::no_route());
    }
    match (call.method.as_str(), path) {
        ("OPTIONS", path) => {
            let methods: Vec<&str> = methods(path).unwrap_or_default().split(", ").collect();
            let body = json!({"namespace": "wc/v3", "methods": methods});
            Ok(Reply::new(200, trim(body, Some(&call.text("_fields")))))
        }
        ("DELETE", ["orders", id]) => delete_order(state, call, id, now),
        ("GET", []) => Ok(Reply::new(200, json!({"namespace": "wc/v3", "routes": {}}))),
        ("GET", ["orders"]) => list_orders(state, call),
        ("GET", ["orders", id]) => {
            let order = find_order(state, id)?;
            Ok(Reply::new(
                200,
                trimmed(state, call, order_json(state, order), &format!("orders/{}", order.id)),
            ))
        }
        ("PUT" | "POST" | "PATCH", ["orders", id]) => write_order(state, call, id, now),
        ("GET", ["products"]) => list_products(state, call, |product| product.kind != Kind::Variation),
        ("GET", ["variations"]) => list_products(state, call, |product| product.kind == Kind::Variation),
        ("GET", ["products", id]) => {
            let product = find_product(state, id)?;
            let body = product_json(state, product);
            Ok(Reply::new(200, trimmed(state, call, body, &format!("products/{}", product.id))))
        }
        ("GET", ["products", id, "variations"]) => {
            let parent = find_product(state, id)?.id;
            list_products(state, call, |product| product.parent == parent)
        }
        ("PUT" | "POST" | "PATCH", ["products", id]) => {
            let product = find_product(state, id)?;
            if product.kind == Kind::Variation {
                let message = "To manipulate product variations you should use the /products/&lt;product_id&gt;/\
                               variations/&lt;id&gt; endpoint.";
                return Err(ApiError::new(404, "woocommerce_rest_invalid_product_id", message));
            }
            write_stock(state, call, id, now)
        }
        ("PUT" | "POST" | "PATCH", ["products", _, "variations", id]) => write_stock(state, call, id, now),
        _ => Err(ApiError::no_route()),
    }
}

/// A single object: trimmed, then with the links that `_fields` does not touch.
fn trimmed(state: &State, call: &Call, body: Value, path: &str) -> Value {
    let body = trim(body, Some(&call.text("_fields")));
    merged(body, json!({"_links": links(state, path)}))
}

fn links(state: &State, path: &str) -> Value {
    let base = format!("{}/wp-json/wc/v3", state.public_base);
    let collection = path.rsplit_once('/').map_or(path, |(collection, _)| collection);
    let mut links = json!({
        "self": [{
            "href": format!("{base}/{path}"),
            "targetHints": {"allow": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
        }],
        "collection": [{"href": format!("{base}/{collection}")}],
    });
    if collection == "orders" {
        let href = format!("{base}/{path}/actions/email_templates");
        links = merged(links, json!({"email_templates": [{"embeddable": true, "href": href}]}));
    }
    links
}

fn find_order<'a>(state: &'a State, id: &str) -> Result<&'a Order, ApiError> {
    id.parse()
        .ok()
        .and_then(|id| state.order(id))
        .ok_or_else(|| ApiError::new(404, "woocommerce_rest_shop_order_invalid_id", "Invalid ID."))
}

fn find_product<'a>(state: &'a State, id: &str) -> Result<&'a Product, ApiError> {
    id.parse()
        .ok()
        .and_then(|id| state.product(id))
        .ok_or_else(|| ApiError::new(404, "woocommerce_rest_product_invalid_id", "Invalid ID."))
}

/// A time filter; with or without zone, both mean UTC here.
fn time(call: &Call, name: &'static str) -> Result<Option<DateTime<Utc>>, ApiError> {
    let text = call.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(&text) {
        return Ok(Some(time.with_timezone(&Utc)));
    }
    match text.parse::<NaiveDateTime>() {
        Ok(time) => Ok(Some(time.and_utc())),
        Err(_) => Err(ApiError::invalid(name, "rest_invalid_date", "Invalid date.")),
    }
}

/// Whether a search text finds an order: start of the e-mail, names, address, products, id, transaction.
fn finds(order: &Order, search: &str) -> bool {
    let search = search.to_lowercase();
    let both = [&order.billing, &order.shipping];
    let texts = both.iter().flat_map(|address| {
        [
            &address.first_name,
            &address.last_name,
            &address.company,
            &address.address_1,
            &address.city,
            &address.postcode,
        ]
    });
    let full = format!("{} {}", order.billing.first_name, order.billing.last_name);
    order.billing.email.to_lowercase().starts_with(&search)
        || order.id.to_string() == search
        || (!order.transaction_id.is_empty() && order.transaction_id.to_lowercase() == search)
        || full.to_lowercase().contains(&search)
        || texts.into_iter().any(|text| !text.is_empty() && text.to_lowercase().contains(&search))
        || order.lines.iter().any(|line| line.name.to_lowercase().contains(&search))
}

fn list_orders(state: &State, call: &Call) -> Result<Reply, ApiError> {
    let (per_page, page) = paging(call, 1)?;
    let mut wanted = Vec::new();
    for name in call.list("status").unwrap_or_default() {
        if name == "any" {
            wanted.extend(Status::ALL.into_iter().filter(|status| *status != Status::Trash));
        } else if let Some(status) = Status::parse(name.trim_start_matches("wc-")) {
            wanted.push(status);
        } else {
            let text = format!("status[0] is not one of any, trash, pending, processing, on-hold ({name}).");
            return Err(ApiError::invalid("status", "rest_not_in_enum", text));
        }
    }
    // `any` beats the rest: trash stays out even if it is named beside it.
    if call.list("status").is_some_and(|names| names.iter().any(|name| name == "any")) {
        wanted.retain(|status| *status != Status::Trash);
    }
    let (after, before) = (time(call, "after")?, time(call, "before")?);
    let (modified_after, modified_before) = (time(call, "modified_after")?, time(call, "modified_before")?);
    let search = call.text("search");
    let include = call.list("include");
    let via = call.text("created_via");
    let mut found: Vec<&Order> = state
        .orders()
        .filter(|order| {
            (if wanted.is_empty() { order.status != Status::Trash } else { wanted.contains(&order.status) })
                && (via.is_empty() || via == "store-api")
                && after.is_none_or(|after| order.created > after)
                && before.is_none_or(|before| order.created < before)
                && modified_after.is_none_or(|after| order.modified > after)
                && modified_before.is_none_or(|before| order.modified < before)
                && include.as_ref().is_none_or(|ids| ids.contains(&order.id.to_string()))
                && (search.is_empty() || finds(order, &search))
        })
        .collect();
    if call.text("orderby") == "modified" {
        found.sort_by_key(|order| order.modified);
    }
    if call.text("order") != "asc" {
        found.reverse();
    }
    let fields = call.text("_fields");
    Ok(page_of(found, per_page, page, |order| {
        let body = merged(
            order_json(state, order),
            json!({"_links": links(state, &format!("orders/{}", order.id))}),
        );
        trim(body, Some(&fields))
    }))
}

fn write_order(state: &mut State, call: &Call, id: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let id = find_order(state, id)?.id;
    let status = call.text("status");
    if !status.is_empty() {
        let Some(status) = Status::parse(&status) else {
            let text = "status is not one of auto-draft, pending, processing, on-hold, completed, cancelled, refunded, \
                        failed, and checkout-draft.";
            return Err(ApiError::invalid("status", "rest_not_in_enum", text));
        };
        orders::set_status(state, id, status, now);
    }
    let order = find_order(state, &id.to_string())?;
    Ok(Reply::new(200, trimmed(state, call, order_json(state, order), &format!("orders/{id}"))))
}

/// Moves an order to the trash, or with `force` out of the shop; tells what it was before.
fn delete_order(state: &mut State, call: &Call, id: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let order = find_order(state, id)?;
    let (id, body) = (order.id, order_json(state, order));
    let body = trimmed(state, call, body, &format!("orders/{id}"));
    if call.text("force") == "true" {
        state.remove_order(id);
    } else {
        orders::set_status(state, id, Status::Trash, now);
    }
    Ok(Reply::new(200, body))
}

fn write_stock(state: &mut State, call: &Call, id: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let id = find_product(state, id)?.id;
    let quantity = match call.params.get("stock_quantity") {
        None => None,
        Some(value) => {
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            if number.is_none() {
                let text = "stock_quantity is not of type integer.";
                return Err(ApiError::invalid("stock_quantity", "rest_invalid_type", text));
            }
            number
        }
    };
    let manage = call.params.get("manage_stock").and_then(Value::as_bool);
    if let Some(product) = state.product_mut(id) {
        product.manage_stock = manage.unwrap_or(product.manage_stock);
        match quantity {
            Some(quantity) if product.manage_stock => product.stock = quantity,
            _ => {}
        }
        if !product.manage_stock && call.has("stock_status") {
            product.out_of_stock = call.text("stock_status") == "outofstock";
        }
        product.modified = now;
        let parent = product.parent;
        if parent != 0
            && let Some(parent) = state.product_mut(parent)
        {
            parent.modified = now;
        }
    }
    let product = find_product(state, &id.to_string())?;
    Ok(Reply::new(200, trimmed(state, call, product_json(state, product), &format!("products/{id}"))))
}

fn list_products(state: &State, call: &Call, among: impl Fn(&Product) -> bool) -> Result<Reply, ApiError> {
    let (per_page, page) = paging(call, 1)?;
    let kind = call.text("type");
    if !["", "simple", "grouped", "external", "variable"].contains(&kind.as_str()) {
        let text = "type is not one of simple, grouped, external, and variable.";
        return Err(ApiError::invalid("type", "rest_not_in_enum", text));
    }
    let skus = call.list("sku");
    let include = call.list("include");
    let status = call.text("status");
    let stock = call.text("stock_status");
    let search = call.text("search").to_lowercase();
    let (after, before) = (time(call, "modified_after")?, time(call, "modified_before")?);
    let mut found: Vec<&Product> = state
        .products()
        .filter(|product| {
            let listed = match &skus {
                Some(skus) => skus.contains(&product.sku),
                None => among(product),
            };
            listed
                && (kind.is_empty() || kind == product.kind.name())
                && include.as_ref().is_none_or(|ids| ids.contains(&product.id.to_string()))
                && (status.is_empty() || status == "any" || status == status_of(product))
                && (stock.is_empty() || stock == stock_status(product))
                && (search.is_empty() || product.name.to_lowercase().contains(&search))
                && after.is_none_or(|after| product.modified > after)
                && before.is_none_or(|before| product.modified < before)
        })
        .collect();
    if call.text("order") != "asc" {
        found.reverse();
    }
    let fields = call.text("_fields");
    Ok(page_of(found, per_page, page, |product| {
        let path = format!("products/{}", product.id);
        trim(merged(product_json(state, product), json!({"_links": links(state, &path)})), Some(&fields))
    }))
}

const fn status_of(product: &Product) -> &'static str {
    if product.draft { "draft" } else { "publish" }
}

const fn stock_status(product: &Product) -> &'static str {
    match (product.in_stock(), product.manage_stock && product.stock <= 0) {
        (false, _) => "outofstock",
        (true, true) => "onbackorder",
        (true, false) => "instock",
    }
}

pub(super) fn stamp(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S").to_string()
}

fn product_json(state: &State, product: &Product) -> Value {
    let settings = state.settings();
    let text = |price: Option<i64>| price.map(|price| price_text(settings, price)).unwrap_or_default();
    let variations: Vec<u64> = if product.kind == Kind::Variable {
        catalog::children(state, product).iter().map(|child| child.id).collect()
    } else {
        Vec::new()
    };
    let attributes: Vec<Value> = catalog::options(state, product)
        .into_iter()
        .map(|(name, taxonomy, term)| json!({"name": name, "slug": taxonomy, "option": term.name}))
        .collect();
    json!({
        "id": product.id,
        "name": catalog::full_name(state, product),
        "slug": product.slug,
        "permalink": catalog::permalink(state, product),
        "date_created": stamp(product.created),
        "date_created_gmt": stamp(product.created),
        "date_modified": stamp(product.modified),
        "date_modified_gmt": stamp(product.modified),
        "type": product.kind.name(),
        "status": status_of(product),
        "catalog_visibility": "visible",
        "description": product.description,
        "short_description": product.short_description,
        "sku": product.sku,
        "price": text(product.price()),
        "regular_price": text(product.regular),
        "sale_price": text(product.sale),
        "on_sale": product.sale.is_some(),
        "purchasable": product.purchasable(),
        "total_sales": product.total_sales,
        "virtual": product.is_virtual,
        "downloadable": product.downloadable,
        "tax_status": "taxable",
        "manage_stock": product.manage_stock,
        "stock_quantity": product.manage_stock.then_some(product.stock),
        "stock_status": stock_status(product),
        "backorders": if product.backorders { "notify" } else { "no" },
        "backorders_allowed": product.backorders,
        "backordered": product.backorders && product.stock < 0,
        "low_stock_amount": product.low_stock,
        "sold_individually": product.sold_individually,
        "parent_id": product.parent,
        "attributes": attributes,
        "variations": variations,
        "grouped_products": product.grouped,
        "meta_data": [],
    })
}
