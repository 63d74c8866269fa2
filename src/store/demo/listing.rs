//! Lists of products: which of them a call asks for, and in which order.
//!
//! The parameters are the Store API's. A wrong one is refused as `WordPress` does, by its schema: the type
//! first, then the list of values. Unknown parameters are ignored.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::Value;

use super::catalog::{self, in_stock, prices};
use super::http::{ApiError, Call, Reply, trim};
use super::model::{Kind, Product, Term};
use super::money::minor;
use super::paging::{page_of, paging, with_links};
use super::state::State;

const ORDER_BY: &[&str] = &[
    "date",
    "modified",
    "id",
    "include",
    "title",
    "slug",
    "price",
    "popularity",
    "rating",
    "menu_order",
    "comment_count",
];
const KINDS: &[&str] = &["simple", "grouped", "external", "variable", "variation"];
const STOCK: &[&str] = &["instock", "outofstock", "onbackorder"];
const VISIBILITY: &[&str] = &["any", "visible", "catalog", "search", "hidden"];
const OPERATORS: &[&str] = &["in", "not_in", "and"];

/// `a, b, and c`.
pub(super) fn and_list(values: &[&str]) -> String {
    match values {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [first @ .., last] => format!("{}, and {last}", first.join(", ")),
    }
}

/// Refuses a text that is not one of the values; an absent one is fine.
pub(super) fn one_of(call: &Call, name: &'static str, values: &[&str]) -> Result<String, ApiError> {
    let text = call.text(name);
    if call.has(name) && !values.contains(&text.as_str()) {
        let text = format!("{name} is not one of {}.", and_list(values));
        return Err(ApiError::invalid(name, "rest_not_in_enum", text));
    }
    Ok(text)
}

/// The same for a parameter that is a list.
fn some_of(call: &Call, name: &'static str, values: &[&str]) -> Result<Option<Vec<String>>, ApiError> {
    let list = call.list(name);
    for (index, text) in list.iter().flatten().enumerate() {
        if !values.contains(&text.as_str()) {
            let text = format!("{name}[{index}] is not one of {}.", and_list(values));
            return Err(ApiError::invalid(name, "rest_not_in_enum", text));
        }
    }
    Ok(list)
}

fn ids(call: &Call, name: &'static str) -> Result<Option<Vec<u64>>, ApiError> {
    let Some(list) = call.list(name) else { return Ok(None) };
    let mut ids = Vec::with_capacity(list.len());
    for (index, text) in list.iter().enumerate() {
        ids.push(text.parse().map_err(|_| {
            let text = format!("{name}[{index}] is not of type integer.");
            ApiError::invalid(name, "rest_invalid_type", text)
        })?);
    }
    // An empty list asks for nothing in particular.
    Ok(Some(ids).filter(|ids| !ids.is_empty()))
}

/// `true`, `false`, `1`, `0`; `None` if absent.
pub(super) fn flag(call: &Call, name: &'static str) -> Result<Option<bool>, ApiError> {
    match call.text(name).to_lowercase().as_str() {
        _ if !call.has(name) => Ok(None),
        "true" | "1" => Ok(Some(true)),
        "false" | "0" | "" => Ok(Some(false)),
        _ => Err(ApiError::invalid(name, "rest_invalid_type", format!("{name} is not of type boolean."))),
    }
}

/// A time; without a zone it is UTC, as the shop is.
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

/// How several terms combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    And,
}

impl Operator {
    fn parse(text: &str) -> Self {
        match text {
            "not_in" => Self::NotIn,
            "and" => Self::And,
            _ => Self::In,
        }
    }

    fn holds(self, wanted: &[String], has: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::In => wanted.iter().any(|term| has(term)),
            Self::NotIn => !wanted.iter().any(|term| has(term)),
            Self::And => wanted.iter().all(|term| has(term)),
        }
    }
}

/// One entry of `attributes`.
#[derive(Debug, Clone)]
struct AttributeFilter {
    taxonomy: String,
    /// Slugs or ids.
    terms: Vec<String>,
    operator: Operator,
}

/// What a call asks for.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    search: String,
    skus: Option<Vec<String>>,
    slugs: Option<Vec<String>>,
    kind: String,
    include: Option<Vec<u64>>,
    exclude: Option<Vec<u64>>,
    parent: Option<Vec<u64>>,
    parent_exclude: Option<Vec<u64>>,
    stock: Option<Vec<String>>,
    category: Option<(Vec<String>, Operator)>,
    /// Whether it asks for what the shop has none of: tags, brands, ratings, featured or hidden products.
    nothing: bool,
    attributes: Vec<AttributeFilter>,
    any_attribute: bool,
    least: Option<i64>,
    most: Option<i64>,
    on_sale: Option<bool>,
    after: Option<DateTime<Utc>>,
    before: Option<DateTime<Utc>>,
    by_modified: bool,
}

impl Filter {
    pub(super) fn parse(call: &Call) -> Result<Self, ApiError> {
        for name in ["tag_operator", "brand_operator"] {
            one_of(call, name, OPERATORS)?;
        }
        let category_operator = Operator::parse(&one_of(call, "category_operator", OPERATORS)?);
        let terms = |name: &str| call.list(name).filter(|terms| !terms.is_empty());
        let price = |name: &str| call.text(name).parse::<i64>().ok();
        let hidden = one_of(call, "catalog_visibility", VISIBILITY)? == "hidden";
        let relation = one_of(call, "attribute_relation", &["in", "and"])?;
        Ok(Self {
            search: call.text("search").trim().to_lowercase(),
            skus: call.list("sku").filter(|skus| !skus.is_empty()),
            slugs: call.list("slug").filter(|slugs| !slugs.is_empty()),
            kind: one_of(call, "type", KINDS)?,
            include: ids(call, "include")?,
            exclude: ids(call, "exclude")?,
            parent: ids(call, "parent")?,
            parent_exclude: ids(call, "parent_exclude")?,
            stock: some_of(call, "stock_status", STOCK)?,
            category: terms("category").map(|terms| (terms, category_operator)),
            nothing: hidden
                || flag(call, "featured")? == Some(true)
                || call.list("rating").is_some_and(|ratings| !ratings.is_empty())
                || ["tag", "brand"]
                    .iter()
                    .any(|name| terms(name).is_some() && call.text(&format!("{name}_operator")) != "not_in"),
            attributes: attribute_filters(call),
            any_attribute: relation == "in",
            least: price("min_price"),
            most: price("max_price"),
            on_sale: flag(call, "on_sale")?,
            after: time(call, "after")?,
            before: time(call, "before")?,
            by_modified: call.text("date_column").starts_with("modified"),
        })
    }

    /// The products a look-up by SKU, id or parent leaves to be judged, else all; by id.
    fn candidates<'a>(&self, state: &'a State) -> Box<dyn Iterator<Item = &'a Product> + 'a> {
        let by_ids = |ids: Vec<u64>| {
            let ids: std::collections::BTreeSet<u64> = ids.into_iter().collect();
            Box::new(ids.into_iter().filter_map(|id| state.product(id)))
        };
        if let Some(ids) = &self.include {
            return by_ids(ids.clone());
        }
        if let Some(skus) = &self.skus {
            return by_ids(skus.iter().flat_map(|sku| state.ids_of_sku(sku)).copied().collect());
        }
        match &self.parent {
            Some(parents) if !parents.contains(&0) => {
                let variations = parents.iter().flat_map(|parent| state.variations(*parent));
                by_ids(variations.map(|product| product.id).collect())
            }
            _ => Box::new(state.products()),
        }
    }

    /// The products asked for, by id.
    pub(super) fn find<'a>(&self, state: &'a State) -> Vec<&'a Product> {
        self.candidates(state).filter(|product| self.matches(state, product)).collect()
    }

    fn matches(&self, state: &State, product: &Product) -> bool {
        let kind_fits = if self.kind.is_empty() {
            product.kind != Kind::Variation || self.skus.is_some() || self.slugs.is_some()
        } else {
            product.kind.name() == self.kind
        };
        let within = |ids: &Option<Vec<u64>>, id: u64| ids.as_ref().is_none_or(|ids| ids.contains(&id));
        let without = |ids: &Option<Vec<u64>>, id: u64| ids.as_ref().is_none_or(|ids| !ids.contains(&id));
        !product.draft
            && kind_fits
            && (self.search.is_empty() || product.search.contains(&self.search))
            && self.skus.as_ref().is_none_or(|skus| skus.contains(&product.sku))
            && self.slugs.as_ref().is_none_or(|slugs| slugs.contains(&product.slug))
            && within(&self.include, product.id)
            && without(&self.exclude, product.id)
            && within(&self.parent, product.parent)
            && without(&self.parent_exclude, product.parent)
            && !self.nothing
            && self.dated(product)
            && self.stocked(state, product)
            && self.of_category(product)
            && self.of_attributes(state, product)
            && self.priced(state, product)
    }

    fn dated(&self, product: &Product) -> bool {
        let date = if self.by_modified { product.modified } else { product.created };
        self.after.is_none_or(|after| date > after) && self.before.is_none_or(|before| date < before)
    }

    fn stocked(&self, state: &State, product: &Product) -> bool {
        let Some(wanted) = &self.stock else { return true };
        let status = stock_status(state, product);
        wanted.iter().any(|name| name == status)
    }

    fn of_category(&self, product: &Product) -> bool {
        let Some((wanted, operator)) = &self.category else { return true };
        let own = categories(product);
        operator.holds(wanted, |name| own.iter().any(|term| is_term(term, name)))
    }

    fn of_attributes(&self, state: &State, product: &Product) -> bool {
        if self.attributes.is_empty() {
            return true;
        }
        let fits = |filter: &AttributeFilter| {
            let own = attribute_terms(state, product, &filter.taxonomy);
            filter.operator.holds(&filter.terms, |name| own.iter().any(|term| is_term(term, name)))
        };
        if self.any_attribute { self.attributes.iter().any(fits) } else { self.attributes.iter().all(fits) }
    }

    fn priced(&self, state: &State, product: &Product) -> bool {
        if self.least.is_none() && self.most.is_none() && self.on_sale.is_none() {
            return true;
        }
        let shown = prices(state, product);
        let (low, high) = shown.bounds();
        let (low, high) = (minor(state.settings(), low), minor(state.settings(), high));
        self.least.is_none_or(|least| high >= least)
            && self.most.is_none_or(|most| low <= most)
            && self.on_sale.is_none_or(|wanted| wanted == shown.on_sale)
    }
}

/// `attributes[0][attribute]=pa_size&attributes[0][slug]=small`, and the like.
fn attribute_filters(call: &Call) -> Vec<AttributeFilter> {
    let mut found: Vec<(&str, AttributeFilter)> = Vec::new();
    for (name, value) in &call.query {
        let Some((index, member)) = name.strip_prefix("attributes[").and_then(|rest| rest.split_once("]["))
        else {
            continue;
        };
        let member = member.split(']').next().unwrap_or_default();
        let position = found.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
            let empty =
                AttributeFilter { taxonomy: String::new(), terms: Vec::new(), operator: Operator::In };
            found.push((index, empty));
            found.len() - 1
        });
        let Some((_, filter)) = found.get_mut(position) else { continue };
        match member {
            "attribute" => filter.taxonomy.clone_from(value),
            "operator" => filter.operator = Operator::parse(value),
            "slug" | "term_id" => {
                filter.terms.extend(value.split(',').map(|term| term.trim().to_owned()));
            }
            _ => {}
        }
    }
    found
        .into_iter()
        .map(|(_, filter)| filter)
        .filter(|filter| !filter.taxonomy.is_empty() && !filter.terms.is_empty())
        .collect()
}

fn is_term(term: &Term, name: &str) -> bool {
    term.slug == name || term.id.to_string() == name
}

/// A product without categories is in the shop's default one.
pub(super) fn categories(product: &Product) -> Vec<Term> {
    if product.categories.is_empty() && product.parent == 0 {
        return vec![super::terms::uncategorized()];
    }
    product.categories.clone()
}

/// The terms of an attribute that a product, or a variation, has.
pub(super) fn attribute_terms(state: &State, product: &Product, taxonomy: &str) -> Vec<Term> {
    if product.kind == Kind::Variation {
        let options = catalog::options(state, product).into_iter();
        return options.filter(|(_, name, _)| *name == taxonomy).map(|(.., term)| term.clone()).collect();
    }
    let attributes = product.attributes.iter().filter(|attribute| attribute.taxonomy == taxonomy);
    attributes.flat_map(|attribute| attribute.terms.iter().cloned()).collect()
}

pub(super) fn stock_status(state: &State, product: &Product) -> &'static str {
    if !in_stock(state, product) {
        "outofstock"
    } else if product.manage_stock && product.stock <= 0 {
        "onbackorder"
    } else {
        "instock"
    }
}

/// `GET products`.
pub(super) fn list(state: &State, call: &Call, now: DateTime<Utc>) -> Result<Reply, ApiError> {
    let (per_page, page) = paging(call, 0)?;
    let by = one_of(call, "orderby", ORDER_BY)?;
    let order = one_of(call, "order", &["asc", "desc"])?;
    let mut found = Filter::parse(call)?.find(state);
    sort(state, &mut found, &by, order == "asc", call);
    if let Ok(offset) = call.text("offset").parse::<usize>() {
        found.drain(..offset.min(found.len()));
    }
    let fields = call.text("_fields");
    let reply = page_of(found, per_page, page, |product| -> Value {
        trim(catalog::product_json(state, product, &call.target, now), Some(&fields))
    });
    let newest = state.newest.timestamp().to_string();
    Ok(with_links(reply, &state.public_base, call, page).header("last-modified", newest))
}

/// Sorts what is sorted by id; without a wish the newest come first.
fn sort(state: &State, found: &mut [&Product], by: &str, ascending: bool, call: &Call) {
    match by {
        "title" => found.sort_by_cached_key(|product| product.name.to_lowercase()),
        "slug" => found.sort_by(|a, b| a.slug.cmp(&b.slug)),
        "price" => found.sort_by_cached_key(|product| {
            let (low, high) = prices(state, product).bounds();
            if ascending { low } else { high }
        }),
        "popularity" => found.sort_by_key(|product| product.total_sales),
        "modified" => found.sort_by_key(|product| product.modified),
        "" | "date" => found.sort_by_key(|product| product.created),
        "include" => {
            let wanted = call.list("include").unwrap_or_default();
            found.sort_by_cached_key(|product| wanted.iter().position(|id| *id == product.id.to_string()));
            return;
        }
        _ => {}
    }
    if !ascending {
        found.reverse();
    }
}
