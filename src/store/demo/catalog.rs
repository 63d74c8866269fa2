//! The catalogue: a product's facts and its JSON; lists of products stand in `listing`.
//!
//! The JSON is the Store API's; amounts are minor-unit texts.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::http::{ApiError, Call, Reply};
use super::model::{Kind, Product, TaxClass, Term};
use super::money::{half_up, html, markup, minor, unit, with_currency};
use super::state::State;

/// How much of a product a cart may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) minimum: i64,
    pub(super) maximum: i64,
    pub(super) multiple_of: i64,
    pub(super) editable: bool,
}

impl Limits {
    /// The nearest quantity that is allowed.
    pub(super) fn clamp(&self, quantity: i64) -> i64 {
        let steps = (quantity + self.multiple_of / 2).div_euclid(self.multiple_of);
        (steps * self.multiple_of).min(self.maximum).max(self.minimum)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "minimum": self.minimum,
            "maximum": self.maximum,
            "multiple_of": self.multiple_of,
            "editable": self.editable,
        })
    }
}

/// What other orders leave of a product's stock.
pub(super) fn remaining(state: &State, product: &Product, order: Option<u64>, now: DateTime<Utc>) -> i64 {
    product.stock - state.held(product.id, order, now)
}

/// The quantity limits of a product; nothing left counts as no limit, as in `WooCommerce`.
pub(super) fn limits(state: &State, product: &Product, order: Option<u64>, now: DateTime<Utc>) -> Limits {
    let mut bounds: Vec<i64> = product.maximum.into_iter().collect();
    if product.sold_individually {
        bounds.push(1);
    }
    if product.limited() {
        bounds.push(product.stock);
        bounds.push(remaining(state, product, order, now));
    }
    let minimum = product.minimum.unwrap_or(1);
    let maximum = bounds.into_iter().filter(|bound| *bound != 0).min().unwrap_or(9999).max(minimum);
    Limits {
        minimum,
        maximum,
        multiple_of: product.multiple_of.unwrap_or(1),
        editable: !product.sold_individually,
    }
}

/// Whether a variation's parent can be seen too.
pub(super) fn parent_public(state: &State, product: &Product) -> bool {
    product.parent == 0 || state.product(product.parent).is_some_and(|parent| !parent.draft)
}

/// A variation's attribute terms in the parent's order: attribute name, taxonomy, term.
pub(super) fn options<'a>(state: &'a State, product: &'a Product) -> Vec<(&'a str, &'a str, &'a Term)> {
    let Some(parent) = state.product(product.parent) else { return Vec::new() };
    product
        .options
        .iter()
        .filter_map(|(taxonomy, slug)| {
            let attribute = parent.attributes.iter().find(|attribute| attribute.taxonomy == *taxonomy)?;
            let term = attribute.terms.iter().find(|term| term.slug == *slug)?;
            Some((attribute.name.as_str(), attribute.taxonomy.as_str(), term))
        })
        .collect()
}

/// The name with a variation's options: `T-shirt - Small, Red`.
pub(super) fn full_name(state: &State, product: &Product) -> String {
    named(state, product, "-").replace("&#038;", "&")
}

fn named(state: &State, product: &Product, dash: &str) -> String {
    if product.kind != Kind::Variation {
        return product.name.clone();
    }
    let options: Vec<&str> =
        options(state, product).into_iter().map(|(_, _, term)| term.name.as_str()).collect();
    format!("{} {dash} {}", product.name, options.join(", "))
}

/// The variations of a variable product, or the members of a group.
pub(super) fn children<'a>(state: &'a State, product: &'a Product) -> Vec<&'a Product> {
    match product.kind {
        Kind::Variable => state.variations(product.id).collect(),
        Kind::Grouped => product.grouped.iter().filter_map(|id| state.product(*id)).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn permalink(state: &State, product: &Product) -> String {
    let base = &state.public_base;
    if product.draft {
        return format!("{base}/?post_type=product&p={}", product.id);
    }
    let Some(parent) = state.product(product.parent) else {
        return format!("{base}/product/{}/", product.slug);
    };
    let query: Vec<String> =
        product.options.iter().map(|(taxonomy, slug)| format!("attribute_{taxonomy}={slug}")).collect();
    format!("{base}/product/{}/?{}", parent.slug, query.join("&"))
}

/// The one picture every product of the shop has.
pub(super) fn images(state: &State, product: &Product) -> Value {
    let (stem, ending) = product.image.rsplit_once('.').unwrap_or((product.image.as_str(), "png"));
    let file = format!("{}/wp-content/uploads/2026/11/{stem}", state.public_base);
    let srcset: Vec<String> = std::iter::once(format!("{file}.{ending} 800w"))
        .chain([300, 150, 768, 600, 100].map(|size| format!("{file}-{size}x{size}.{ending} {size}w")))
        .collect();
    json!([{
        "id": 18,
        "src": format!("{file}.{ending}"),
        "thumbnail": format!("{file}-300x300.{ending}"),
        "srcset": srcset.join(", "),
        "sizes": "(max-width: 800px) 100vw, 800px",
        "name": "Demo product",
        "alt": "A yellow disc on blue",
    }])
}

/// What a price as it was entered is without tax, and whether tax is still in it.
///
/// A price that was entered with tax holds the tax of the shop's own town. A buyer from there pays just that
/// price; for anyone else the tax is taken out first.
pub(super) fn taxable(state: &State, class: TaxClass, country: &str, micros: i64) -> (i64, bool) {
    if !state.settings().entered_with_tax {
        return (micros, false);
    }
    let percent = |country: &str| state.seed.tax(country, class).map_or(0, |rate| rate.percent);
    let own = percent(&state.seed.base_address().country);
    if own == percent(country) {
        return (micros, true);
    }
    (half_up(i128::from(micros) * 100, i128::from(100 + own)), false)
}

/// A price as it is shown to a buyer from a country, in micros.
pub(super) fn shown(state: &State, class: TaxClass, country: &str, micros: i64) -> i64 {
    let settings = state.settings();
    let percent = state.seed.tax(country, class).map_or(0, |rate| rate.percent);
    let whole = |micros: i64| minor(settings, micros) * unit(settings);
    match (taxable(state, class, country, micros), settings.shown_with_tax) {
        ((_, true), true) => micros,
        ((_, true), false) => half_up(i128::from(micros) * 100, i128::from(100 + percent)),
        ((net, false), true) => whole(half_up(i128::from(net) * i128::from(100 + percent), 100)),
        ((net, false), false) => net,
    }
}

/// A price as the catalogue shows it: to a buyer from the shop's own town.
fn listed(state: &State, product: &Product, micros: i64) -> i64 {
    shown(state, product.tax_class, &state.seed.base_address().country, micros)
}

/// Price, regular price, sale price and range of a product, in micros.
pub(super) struct Prices {
    pub(super) price: i64,
    pub(super) regular: i64,
    pub(super) range: Option<(i64, i64)>,
    pub(super) on_sale: bool,
    pub(super) priced: bool,
}

impl Prices {
    /// The cheapest and the dearest way to buy it, in micros.
    pub(super) fn bounds(&self) -> (i64, i64) {
        self.range.unwrap_or((self.price, self.price))
    }
}

pub(super) fn prices(state: &State, product: &Product) -> Prices {
    if !matches!(product.kind, Kind::Variable | Kind::Grouped) {
        let price = product.price();
        return Prices {
            price: price.unwrap_or_default(),
            regular: product.regular.or(price).unwrap_or_default(),
            range: None,
            on_sale: product.sale.is_some(),
            priced: price.is_some(),
        };
    }
    let children = children(state, product);
    let all: Vec<i64> = children.iter().filter_map(|child| child.price()).collect();
    let low = all.iter().min().copied().unwrap_or_default();
    let high = all.iter().max().copied().unwrap_or_default();
    let regular = children.iter().filter_map(|child| child.regular).min().unwrap_or_default();
    Prices {
        price: low,
        regular: if product.kind == Kind::Grouped { low } else { regular },
        range: (low != high).then_some((low, high)),
        on_sale: children.iter().any(|child| child.sale.is_some()),
        priced: !all.is_empty(),
    }
}

/// `prices` of a product or cart line.
pub(super) fn prices_json(state: &State, product: &Product) -> Value {
    let settings = state.settings();
    let prices = prices(state, product);
    let text = |micros: i64| minor(settings, listed(state, product, micros)).to_string();
    let range = prices.range.map(|(low, high)| json!({"min_amount": text(low), "max_amount": text(high)}));
    with_currency(
        settings,
        json!({
            "price": text(prices.price),
            "regular_price": text(prices.regular),
            "sale_price": text(prices.price),
            "price_range": range,
        }),
    )
}

/// The price of a product as markup.
pub(super) fn price_markup(state: &State, product: &Product) -> String {
    price_html(state, product, &prices(state, product))
}

/// What it costs at least, in micros; `None` for a product without a price.
pub(super) fn lowest(state: &State, product: &Product) -> Option<i64> {
    let prices = prices(state, product);
    prices.priced.then_some(prices.price)
}

fn price_html(state: &State, product: &Product, prices: &Prices) -> String {
    let settings = state.settings();
    let amount = |micros: i64| minor(settings, listed(state, product, micros));
    let tag = |micros: i64| markup(settings, amount(micros));
    let text = |micros: i64| html(settings, amount(micros));
    let note = |text: String| format!("<span class=\"screen-reader-text\">{text}</span>");
    let hidden = |micros: i64| tag(micros).replacen("amount\">", "amount\" aria-hidden=\"true\">", 1);
    match prices.range {
        _ if !prices.priced => String::new(),
        Some((low, high)) => format!(
            "{} <span aria-hidden=\"true\">&ndash;</span> {}{}",
            hidden(low),
            hidden(high),
            note(format!("Price range: {} through {}", text(low), text(high))),
        ),
        None if prices.on_sale => format!(
            "<del aria-hidden=\"true\">{}</del> {}<ins aria-hidden=\"true\">{}</ins>{}",
            tag(prices.regular),
            note(format!("Original price was: {}.", text(prices.regular))),
            tag(prices.price),
            note(format!("Current price is: {}.", text(prices.price))),
        ),
        None => tag(prices.price),
    }
}

pub(super) fn in_stock(state: &State, product: &Product) -> bool {
    match product.kind {
        Kind::Variable => children(state, product).iter().any(|child| child.in_stock()),
        _ => product.in_stock(),
    }
}

/// How many are left, once there are so few that the shop says so.
pub(super) fn low_stock(product: &Product) -> Option<i64> {
    (product.manage_stock && product.stock <= product.low_stock.unwrap_or(2)).then_some(product.stock)
}

fn availability(state: &State, product: &Product) -> Value {
    if !in_stock(state, product) {
        return json!({"text": "Out of stock", "class": "out-of-stock"});
    }
    if product.manage_stock && product.stock <= 0 {
        return json!({"text": "Available on backorder", "class": "available-on-backorder"});
    }
    let text = match (product.manage_stock, product.backorders) {
        (true, true) => format!("{} in stock (can be backordered)", product.stock),
        (true, false) => format!("{} in stock", product.stock),
        _ => String::new(),
    };
    json!({"text": text, "class": "in-stock"})
}

fn add_to_cart(state: &State, product: &Product, target: &str, now: DateTime<Utc>) -> Value {
    let name = named(state, product, "&#8211;");
    let link = html_escape::encode_text(&permalink(state, product)).replace("&amp;", "&#038;");
    let buyable = product.purchasable() && in_stock(state, product);
    let (text, description, url, single) = match product.kind {
        Kind::External => {
            let (url, text) = product.external.clone().unwrap_or_default();
            (text.clone(), text.clone(), url, text)
        }
        Kind::Grouped => (
            "View products".to_owned(),
            format!("View products in the &ldquo;{name}&rdquo; group"),
            link,
            "Add to cart".to_owned(),
        ),
        Kind::Variable if buyable => (
            "Select options".to_owned(),
            format!("Select options for &ldquo;{name}&rdquo;"),
            link,
            "Add to cart".to_owned(),
        ),
        _ => {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let query: Vec<String> = query
                .split('&')
                .filter(|part| !part.is_empty())
                .map(|part| format!("{part}&#038;"))
                .collect();
            let url = match product.kind {
                Kind::Variation => {
                    format!("{link}&#038;variation_id={}&#038;add-to-cart={}", product.id, product.parent)
                }
                _ if buyable => format!("/wp-json/{path}?{}add-to-cart={}", query.concat(), product.id),
                _ => link,
            };
            let (text, description) = if buyable {
                ("Add to cart", format!("Add to cart: &ldquo;{name}&rdquo;"))
            } else {
                ("Read more", format!("Read more about &ldquo;{name}&rdquo;"))
            };
            (text.to_owned(), description, url, "Add to cart".to_owned())
        }
    };
    let limits = limits(state, product, None, now);
    json!({
        "text": text,
        "description": description,
        "url": url,
        "single_text": single,
        "minimum": limits.minimum,
        "maximum": limits.maximum,
        "multiple_of": limits.multiple_of,
    })
}

/// A product as the Store API shows it.
pub(super) fn product_json(state: &State, product: &Product, target: &str, now: DateTime<Utc>) -> Value {
    let prices = prices(state, product);
    let variation: Vec<String> =
        options(state, product).into_iter().map(|(name, _, term)| format!("{name}: {}", term.name)).collect();
    let categories: Vec<Value> = product
        .categories
        .iter()
        .map(|term| {
            json!({
                "id": term.id,
                "name": term.name,
                "slug": term.slug,
                "link": format!("{}/product-category/{}/", state.public_base, term.slug),
            })
        })
        .collect();
    let attributes: Vec<Value> = product
        .attributes
        .iter()
        .map(|attribute| {
            let terms: Vec<Value> = attribute
                .terms
                .iter()
                .map(|term| json!({"id": term.id, "name": term.name, "slug": term.slug}))
                .collect();
            json!({
                "id": attribute.id,
                "name": attribute.name,
                "taxonomy": attribute.taxonomy,
                "has_variations": true,
                "terms": terms,
            })
        })
        .collect();
    let variations: Vec<Value> = children(state, product)
        .into_iter()
        .filter(|child| child.kind == Kind::Variation)
        .map(|child| {
            let attributes: Vec<Value> = options(state, child)
                .into_iter()
                .map(|(name, _, term)| json!({"name": name, "value": term.slug}))
                .collect();
            json!({"id": child.id, "attributes": attributes})
        })
        .collect();
    json!({
        "id": product.id,
        "name": product.name,
        "slug": product.slug,
        "parent": product.parent,
        "type": product.kind.name(),
        "variation": variation.join(", "),
        "permalink": permalink(state, product),
        "sku": product.sku,
        "short_description": product.short_description,
        "description": product.description,
        "on_sale": prices.on_sale,
        "prices": prices_json(state, product),
        "price_html": price_html(state, product, &prices),
        "average_rating": "0",
        "review_count": 0,
        "images": images(state, product),
        "categories": categories,
        "tags": [],
        "brands": [],
        "attributes": attributes,
        "variations": variations,
        "grouped_products": product.grouped,
        "has_options": product.kind == Kind::Variable,
        "is_purchasable": product.purchasable(),
        "is_in_stock": in_stock(state, product),
        "is_on_backorder": product.manage_stock && product.backorders && product.stock <= 0,
        "low_stock_remaining": low_stock(product),
        "stock_availability": availability(state, product),
        "sold_individually": product.sold_individually,
        "add_to_cart": add_to_cart(state, product, target, now),
        "extensions": {},
    })
}

/// Slugs are kept percent-encoded; a client may send either case.
fn slug_is(product: &Product, name: &str) -> bool {
    !product.draft && product.slug.eq_ignore_ascii_case(name)
}

/// `GET products/{id or slug}`.
pub(super) fn one(state: &State, call: &Call, name: &str, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let product = match name.parse::<u64>() {
        Ok(id) => state.product(id).ok_or_else(|| {
            ApiError::new(404, "woocommerce_rest_product_invalid_id", "Invalid product ID.")
        })?,
        Err(_) => state.products().find(|product| slug_is(product, name)).ok_or_else(|| {
            ApiError::new(404, "woocommerce_rest_product_invalid_slug", "Invalid product slug.")
        })?,
    };
    Ok(Reply::new(200, product_json(state, product, &call.target, now)))
}
