//! What the catalogue is sorted by: attributes and their terms, categories, and counts over a list.
//!
//! Everything is read off the products, so that it is never out of step with them. The shop has no tags, no
//! brands and no reviews.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::catalog::prices;
use super::http::{ApiError, Call, Reply};
use super::listing::{Filter, attribute_terms, categories, flag, one_of, stock_status};
use super::model::{Attribute, Kind, Product, Term};
use super::money::{minor, with_currency};
use super::paging::{page_of, paging};
use super::state::State;

/// The category of products that have none.
pub(super) fn uncategorized() -> Term {
    Term { id: 15, name: "Uncategorized".to_owned(), slug: "uncategorized".to_owned() }
}

/// The products a visitor can come across; variations belong to their parent.
fn public(state: &State) -> impl Iterator<Item = &Product> {
    state.products().filter(|product| !product.draft && product.kind != Kind::Variation)
}

/// The shop's attributes with the terms in use, by name.
fn attributes(state: &State) -> Vec<Attribute> {
    let mut all: BTreeMap<u64, Attribute> = BTreeMap::new();
    for attribute in state.products().flat_map(|product| &product.attributes) {
        let known =
            all.entry(attribute.id).or_insert_with(|| Attribute { terms: Vec::new(), ..attribute.clone() });
        for term in &attribute.terms {
            if !known.terms.contains(term) {
                known.terms.push(term.clone());
            }
        }
    }
    let mut all: Vec<Attribute> = all.into_values().collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn attribute_json(attribute: &Attribute) -> Value {
    json!({
        "id": attribute.id,
        "name": attribute.name,
        "taxonomy": attribute.taxonomy,
        "type": "select",
        "order": "menu_order",
        "has_archives": false,
        "count": attribute.terms.len(),
    })
}

/// Categories with the number of their products, by name.
fn counted_categories(state: &State) -> Vec<(Term, usize)> {
    let mut all: BTreeMap<String, (Term, usize)> = BTreeMap::new();
    for term in public(state).flat_map(categories) {
        all.entry(term.name.clone()).or_insert((term, 0)).1 += 1;
    }
    all.into_values().collect()
}

fn category_json(state: &State, term: &Term, count: usize) -> Value {
    json!({
        "id": term.id,
        "name": term.name,
        "slug": term.slug,
        "description": "",
        "parent": 0,
        "count": count,
        "image": null,
        "review_count": 0,
        "permalink": format!("{}/product-category/{}/", state.public_base, term.slug),
    })
}

/// A list of terms: searched, sorted by name, paged only when a page size is asked for.
fn term_list(call: &Call, all: Vec<(Term, Value)>) -> Result<Reply, ApiError> {
    let (per_page, page) = if call.has("per_page") { paging(call, 0)? } else { (0, 1) };
    let order = one_of(call, "order", &["asc", "desc"])?;
    one_of(call, "orderby", &["name", "slug", "count"])?;
    let search = call.text("search").to_lowercase();
    let named =
        |name: &str, term: &Term| call.list(name).is_some_and(|ids| ids.contains(&term.id.to_string()));
    let mut found: Vec<Value> = all
        .into_iter()
        .filter(|(term, _)| search.is_empty() || term.name.to_lowercase().contains(&search))
        .filter(|(term, _)| call.list("include").is_none_or(|ids| ids.is_empty() || named("include", term)))
        .filter(|(term, _)| !named("exclude", term))
        .map(|(_, value)| value)
        .collect();
    if order == "desc" {
        found.reverse();
    }
    let reply = page_of(found, per_page, page, |value| value);
    Ok(if per_page == 0 { Reply::new(200, reply.body) } else { reply })
}

fn not_found(code: &'static str, message: &str) -> ApiError {
    ApiError::new(404, code, message)
}

/// `GET products/…` beside products themselves; `path` is what follows `products`.
pub(super) fn route(state: &State, call: &Call, path: &[&str]) -> Result<Reply, ApiError> {
    match path {
        ["collection-data"] => collection_data(state, call),
        ["attributes"] => {
            Ok(Reply::new(200, attributes(state).iter().map(attribute_json).collect::<Vec<_>>().into()))
        }
        ["attributes", id] => {
            let attribute = attribute(state, id)?;
            Ok(Reply::new(200, attribute_json(&attribute)))
        }
        ["attributes", id, "terms"] => {
            let mut attribute = attribute(state, id)?;
            attribute.terms.sort_by(|a, b| a.name.cmp(&b.name));
            let counts = term_counts(state, public(state), &attribute.taxonomy);
            let all = attribute.terms.into_iter().map(|term| {
                let count = counts.get(&term.id).copied().unwrap_or_default();
                let value = json!({
                    "id": term.id,
                    "name": term.name,
                    "slug": term.slug,
                    "description": "",
                    "parent": 0,
                    "count": count,
                });
                (term, value)
            });
            term_list(call, all.collect())
        }
        ["categories"] => {
            let all = counted_categories(state).into_iter().map(|(term, count)| {
                let value = category_json(state, &term, count);
                (term, value)
            });
            term_list(call, all.collect())
        }
        ["categories", id] => {
            let all = counted_categories(state);
            let found = all.iter().find(|(term, _)| term.id.to_string() == *id);
            let (term, count) = found
                .ok_or_else(|| not_found("woocommerce_rest_category_invalid_id", "Invalid category ID."))?;
            Ok(Reply::new(200, category_json(state, term, *count)))
        }
        ["tags" | "brands"] => term_list(call, Vec::new()),
        ["brands", _] => Err(not_found("woocommerce_rest_brand_invalid_id", "Invalid brand ID.")),
        ["reviews"] => {
            let (per_page, page) = paging(call, 0)?;
            Ok(page_of(Vec::<Value>::new(), per_page, page, |value| value))
        }
        _ => Err(ApiError::no_route()),
    }
}

fn attribute(state: &State, id: &str) -> Result<Attribute, ApiError> {
    attributes(state)
        .into_iter()
        .find(|attribute| attribute.id.to_string() == id)
        .ok_or_else(|| not_found("woocommerce_rest_attribute_invalid_id", "Invalid attribute ID."))
}

/// How many of the products have each term of an attribute, by the term's id.
fn term_counts<'a>(
    state: &State,
    products: impl Iterator<Item = &'a Product>,
    taxonomy: &str,
) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for term in products.flat_map(|product| attribute_terms(state, product, taxonomy)) {
        *counts.entry(term.id).or_default() += 1;
    }
    counts
}

fn pairs(counts: BTreeMap<u64, usize>) -> Value {
    counts.into_iter().map(|(term, count)| json!({"term": term, "count": count})).collect()
}

/// `GET products/collection-data`: figures over the products a filter finds; what is not asked for is `null`.
fn collection_data(state: &State, call: &Call) -> Result<Reply, ApiError> {
    let found = Filter::parse(call)?.find(state);
    let mut answer = Map::new();
    for name in ["price_range", "attribute_counts", "rating_counts", "stock_status_counts", "taxonomy_counts"]
    {
        answer.insert(name.to_owned(), Value::Null);
    }
    if flag(call, "calculate_price_range")? == Some(true) {
        let bounds: Vec<(i64, i64)> = found.iter().map(|product| prices(state, product).bounds()).collect();
        let text = |micros: Option<i64>| minor(state.settings(), micros.unwrap_or_default()).to_string();
        let range = with_currency(
            state.settings(),
            json!({
                "min_price": text(bounds.iter().map(|(low, _)| *low).min()),
                "max_price": text(bounds.iter().map(|(_, high)| *high).max()),
            }),
        );
        answer.insert("price_range".to_owned(), range);
    }
    if flag(call, "calculate_stock_status_counts")? == Some(true) {
        let counts: Vec<Value> = ["instock", "outofstock", "onbackorder"]
            .iter()
            .map(|status| {
                let count = found.iter().filter(|product| stock_status(state, product) == *status).count();
                json!({"status": status, "count": count.to_string()})
            })
            .collect();
        answer.insert("stock_status_counts".to_owned(), counts.into());
    }
    if flag(call, "calculate_rating_counts")? == Some(true) {
        answer.insert("rating_counts".to_owned(), json!([]));
    }
    let taxonomies: Vec<&str> = call
        .query
        .iter()
        .filter(|(name, _)| name.starts_with("calculate_attribute_counts[") && name.ends_with("[taxonomy]"))
        .map(|(_, taxonomy)| taxonomy.as_str())
        .collect();
    if !taxonomies.is_empty() {
        let mut counts = BTreeMap::new();
        for taxonomy in taxonomies {
            counts.extend(term_counts(state, found.iter().copied(), taxonomy));
        }
        answer.insert("attribute_counts".to_owned(), pairs(counts));
    }
    if let Some(taxonomies) = call.list("calculate_taxonomy_counts").filter(|list| !list.is_empty()) {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        if taxonomies.iter().any(|taxonomy| taxonomy == "product_cat") {
            for term in found.iter().copied().flat_map(categories) {
                *counts.entry(term.id).or_default() += 1;
            }
        }
        answer.insert("taxonomy_counts".to_owned(), pairs(counts));
    }
    Ok(Reply::new(200, Value::Object(answer)))
}
