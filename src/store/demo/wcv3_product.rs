//! Products and variations as wc/v3 shows them, and what may be written: their stock.
//!
//! A variation has two shapes: the product's, found by its id or SKU, and a smaller one below its parent.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::catalog;
use super::http::{ApiError, Call, Reply, trim};
use super::listing::categories;
use super::model::{Kind, Product, TaxClass};
use super::money::{half_up, price_text, ten_thousandths};
use super::paging::{page_of, paging};
use super::state::State;
use super::view::merged;
use super::wcv3::{links, shop_time, stamp, time};

fn find_product<'a>(state: &'a State, id: &str) -> Result<&'a Product, ApiError> {
    id.parse()
        .ok()
        .and_then(|id| state.product(id))
        .ok_or_else(|| ApiError::new(404, "woocommerce_rest_product_invalid_id", "Invalid ID."))
}

/// `GET products/{id}`.
pub(super) fn read(state: &State, call: &Call, id: &str) -> Result<Reply, ApiError> {
    let id = find_product(state, id)?.id;
    one(state, call, id, false)
}

/// `GET products/{id}/variations`.
pub(super) fn variations(state: &State, call: &Call, id: &str) -> Result<Reply, ApiError> {
    let parent = find_product(state, id)?.id;
    list(state, call, true, |product| product.parent == parent)
}

/// One product, trimmed, then with the links that `_fields` does not touch.
fn one(state: &State, call: &Call, id: u64, below: bool) -> Result<Reply, ApiError> {
    let product = find_product(state, &id.to_string())?;
    let body = trim(json(state, product, below), Some(&call.text("_fields")));
    Ok(Reply::new(200, merged(body, json!({"_links": product_links(state, product, below)}))))
}

fn product_links(state: &State, product: &Product, below: bool) -> Value {
    let parent = format!("products/{}", product.parent);
    let path = if below {
        format!("{parent}/variations/{}", product.id)
    } else {
        format!("products/{}", product.id)
    };
    let links = links(state, &path);
    if product.parent == 0 {
        return links;
    }
    merged(links, json!({"up": [{"href": format!("{}/wp-json/wc/v3/{parent}", state.public_base)}]}))
}

/// Writes stock: of a product, or of a variation named below its parent.
pub(super) fn write_stock(
    state: &mut State,
    call: &Call,
    (parent, id): (Option<&str>, &str),
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    let found = find_product(state, id)?;
    let id = found.id;
    if parent.is_none() && found.kind == Kind::Variation {
        let message = "To manipulate product variations you should use the /products/&lt;product_id&gt;/\
                       variations/&lt;id&gt; endpoint.";
        return Err(ApiError::new(404, "woocommerce_rest_invalid_product_id", message));
    }
    let parent = parent.is_some();
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
    let mut managed = false;
    if let Some(product) = state.product_mut(id) {
        if let Some(manage) = manage {
            product.manage_stock = manage;
            product.by_parent = false;
        }
        if call.has("backorders") && !product.by_parent {
            product.backorders = call.text("backorders") != "no";
        }
        managed = product.manage_stock && !product.by_parent;
        if !product.manage_stock && call.has("stock_status") {
            product.out_of_stock = call.text("stock_status") == "outofstock";
        }
    }
    let above = state.product(id).map_or(0, |product| product.parent);
    state.share(if above == 0 { id } else { above });
    match quantity.filter(|_| managed) {
        Some(quantity) => state.write_stock(id, quantity, now),
        None => state.touch(id, now),
    }
    one(state, call, id, parent)
}

/// A list of those products that belong to it; `below` shows them as variations below their parent.
pub(super) fn list(
    state: &State,
    call: &Call,
    below: bool,
    among: impl Fn(&Product) -> bool,
) -> Result<Reply, ApiError> {
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
    let (after, before) = (time(state, call, "modified_after")?, time(state, call, "modified_before")?);
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
        let body =
            merged(json(state, product, below), json!({"_links": product_links(state, product, below)}));
        trim(body, Some(&fields))
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

fn text(state: &State, price: Option<i64>) -> String {
    price.map(|price| price_text(state.settings(), price)).unwrap_or_default()
}

/// The picture; below its parent a variation names just one, with fewer members.
fn picture(state: &State, product: &Product, short: bool) -> Value {
    let mut all = catalog::images(state, product);
    let made = stamp(product.created);
    let Some(members) = all.get_mut(0).and_then(Value::as_object_mut) else { return Value::Null };
    for name in ["date_created", "date_created_gmt", "date_modified", "date_modified_gmt"] {
        members.insert(name.to_owned(), json!(made));
    }
    if !short {
        return all;
    }
    for name in ["srcset", "sizes", "thumbnail"] {
        members.remove(name);
    }
    all.get(0).cloned().unwrap_or_default()
}

fn attributes(state: &State, product: &Product) -> Vec<Value> {
    let parent = state.product(product.parent);
    let id = |taxonomy: &str| {
        let attributes = parent.into_iter().flat_map(|parent| &parent.attributes);
        attributes.filter(|attribute| attribute.taxonomy == taxonomy).map(|attribute| attribute.id).next()
    };
    let own = catalog::options(state, product).into_iter().map(|(name, taxonomy, term)| {
        json!({"id": id(taxonomy), "name": name, "slug": taxonomy, "option": term.name})
    });
    let all = product.attributes.iter().map(|attribute| {
        let options: Vec<&str> = attribute.terms.iter().map(|term| term.name.as_str()).collect();
        json!({
            "id": attribute.id,
            "name": attribute.name,
            "slug": attribute.taxonomy,
            "position": 0,
            "visible": true,
            "variation": true,
            "options": options,
        })
    });
    own.chain(all).collect()
}

/// Products that share a category.
fn related(state: &State, product: &Product) -> Vec<u64> {
    let own = categories(product);
    state
        .products()
        .filter(|other| !other.draft && other.id != product.id)
        .filter(|other| categories(other).iter().any(|term| own.contains(term)))
        .map(|other| other.id)
        .take(5)
        .collect()
}

/// What both shapes show.
fn facts(state: &State, product: &Product) -> Value {
    let weight = half_up(i128::from(product.weight) * 100_000, 45_359_237);
    let weight = if weight == 0 { String::new() } else { ten_thousandths(weight).to_string() };
    let mut facts = json!({
        "id": product.id,
        "type": product.kind.name(),
        "permalink": catalog::permalink(state, product),
        "status": status_of(product),
        "description": html(&product.description),
        "sku": product.sku,
        "global_unique_id": "",
        "price": text(state, catalog::lowest(state, product)),
        "regular_price": text(state, product.regular),
        "sale_price": text(state, product.sale),
        "on_sale": catalog::prices(state, product).on_sale,
        "purchasable": product.purchasable() || product.draft,
        "virtual": product.is_virtual,
        "downloadable": product.downloadable,
        "downloads": [],
        "download_limit": -1,
        "download_expiry": -1,
        "tax_status": "taxable",
        "tax_class": if product.tax_class == TaxClass::Reduced { "reduced-rate" } else { "" },
        "manage_stock": if product.by_parent { json!("parent") } else { json!(product.manage_stock) },
        "stock_quantity": product.manage_stock.then_some(product.stock),
        "stock_status": stock_status(product),
        "backorders": if product.backorders { "notify" } else { "no" },
        "backorders_allowed": product.backorders,
        "backordered": product.backorders && product.stock < 0,
        "low_stock_amount": product.low_stock,
        "weight": weight,
        "dimensions": {"length": "", "width": "", "height": ""},
        "shipping_class": "",
        "shipping_class_id": 0,
        "attributes": attributes(state, product),
        "menu_order": 0,
        "meta_data": [],
        "parent_id": product.parent,
    });
    for (name, time) in [
        ("date_created", Some(product.created)),
        ("date_modified", Some(product.modified)),
        ("date_on_sale_from", None),
        ("date_on_sale_to", None),
    ] {
        let own = time.map(|time| stamp(shop_time(state, time)));
        facts = merged(facts, json!({name: own, format!("{name}_gmt"): time.map(stamp)}));
    }
    facts
}

/// A text as an editor's field shows it.
fn html(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

/// The markup of a price with its amounts isolated from the text around, as wc/v3 has them.
fn bdi(markup: &str) -> String {
    const SYMBOL: &str = "<span class=\"woocommerce-Price-currencySymbol\">";
    const END: &str = "</span>";
    let mut pieces = markup.split(SYMBOL);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // The sign's end, then the amount's.
        let (sign, rest) = piece.split_once(END).unwrap_or((piece, ""));
        let (amount, rest) = rest.split_once(END).unwrap_or((rest, ""));
        text.extend(["<bdi>", SYMBOL, sign, END, amount, "</bdi>", END, rest]);
    }
    text
}

fn json(state: &State, product: &Product, below: bool) -> Value {
    let facts = facts(state, product);
    if below {
        let options: Vec<&str> =
            catalog::options(state, product).into_iter().map(|(_, _, term)| term.name.as_str()).collect();
        let more = json!({"name": options.join(", "), "image": picture(state, product, true)});
        return merged(facts, more);
    }
    let variation = product.kind == Kind::Variation;
    let (url, button) = product.external.clone().unwrap_or_default();
    let categories: Vec<Value> = categories(product)
        .iter()
        .map(|term| json!({"id": term.id, "name": term.name, "slug": term.slug}))
        .collect();
    let variations: Vec<u64> = state.variations(product.id).map(|child| child.id).collect();
    merged(
        facts,
        json!({
            "name": catalog::full_name(state, product),
            "slug": product.slug,
            "featured": false,
            "catalog_visibility": "visible",
            "short_description": html(&product.short_description),
            "total_sales": if variation { json!(product.total_sales.to_string()) } else { json!(product.total_sales) },
            "external_url": url,
            "button_text": button,
            "sold_individually": product.sold_individually,
            "shipping_required": !product.is_virtual,
            "shipping_taxable": !product.is_virtual,
            "reviews_allowed": !variation,
            "average_rating": "0.00",
            "rating_count": 0,
            "upsell_ids": [],
            "cross_sell_ids": [],
            "purchase_note": "",
            "categories": categories,
            "brands": [],
            "tags": [],
            "images": picture(state, product, false),
            "default_attributes": [],
            "variations": variations,
            "grouped_products": product.grouped,
            "price_html": bdi(&catalog::price_markup(state, product)),
            "related_ids": related(state, product),
            "has_options": product.kind == Kind::Variable,
            "post_password": "",
        }),
    )
}
