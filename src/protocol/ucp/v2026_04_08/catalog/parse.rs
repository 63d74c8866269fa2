//! Bodies of search, lookup and product.
//!
//! Known members have the type of the schema; unknown ones, unknown filters among them, are not looked at.

use serde_json::Value;

use super::{
    super::{
        super::{
            catalog::{Asked, ByIds, Closely},
            errors::Failure,
            reader::{Node, Refusal},
        },
        parse::observations,
    },
    cursor,
};
use crate::{
    catalog::{Bounds, Choice, Filter, Query, Settings, Wish},
    protocol::ShopFace,
};

const MAX_QUERY: usize = 500;
const MAX_TEXT: usize = 255;
const MAX_CATEGORIES: usize = 50;
const MAX_OPTIONS: usize = 50;
/// Products on a page when nothing is said.
const DEFAULT_LIMIT: u32 = 10;
/// The query that finds everything.
const EVERYTHING: &str = "*";

/// Reads a search.
pub(crate) fn parse_search(
    face: &ShopFace,
    settings: &Settings,
    body: &Value,
) -> Result<Asked<Query>, Failure> {
    let body = Node::root(body);
    let text = body.text_member("query", MAX_QUERY)?.map(|text| text.trim().to_owned());
    let text = text.filter(|text| !text.is_empty());
    let (filter, price_ignored) = filter(&body, face)?;
    if text.is_none() && filter == Filter::default() && !price_ignored {
        return Err(body.refuse("must hold a query, or a filter by categories or price").into());
    }
    observations(&body)?;
    let text = text.filter(|text| text != EVERYTHING);
    let mut query = Query { text, filter, page: 1, limit: DEFAULT_LIMIT.min(settings.page_size) };
    if let Some(pagination) = body.member("pagination")? {
        turn(&pagination, settings, &mut query)?;
    } else {
        // Beside the query it is read as well: a public test client has it there.
        turn(&body, settings, &mut query)?;
    }
    Ok(Asked { what: query, price_ignored })
}

/// Which page. The size of a cursor's pages is fixed by the first of them.
fn turn(pagination: &Node<'_>, settings: &Settings, query: &mut Query) -> Result<(), Refusal> {
    if let Some(limit) = pagination.member("limit")? {
        let limit = u32::try_from(limit.integer(1)?).unwrap_or(u32::MAX);
        query.limit = limit.min(settings.page_size);
    }
    if let Some(node) = pagination.member("cursor")? {
        let read = node.text(MAX_TEXT).ok().and_then(|text| cursor::read(&text, query, settings.page_size));
        (query.page, query.limit) =
            read.ok_or_else(|| node.refuse("is not the cursor of an earlier answer to the same question"))?;
    }
    Ok(())
}

/// Reads a look-up.
pub(crate) fn parse_lookup(
    face: &ShopFace,
    settings: &Settings,
    body: &Value,
) -> Result<Asked<ByIds>, Failure> {
    let body = Node::root(body);
    let ids = body.required("ids")?;
    let listed = ids.items(usize::MAX)?;
    if listed.is_empty() {
        return Err(ids.refuse("must hold at least one id").into());
    }
    if listed.len() > settings.ids {
        return Err(Failure::TooManyIds);
    }
    let ids = listed.iter().map(Node::id).collect::<Result<_, _>>()?;
    let (filter, price_ignored) = filter(&body, face)?;
    observations(&body)?;
    Ok(Asked { what: ByIds { ids, filter }, price_ignored })
}

/// Reads a close look at one product.
pub(crate) fn parse_product(face: &ShopFace, body: &Value) -> Result<Asked<Closely>, Failure> {
    let body = Node::root(body);
    let id = body.required("id")?.id()?;
    let mut wish = Wish::default();
    if let Some(selected) = body.member("selected")? {
        for option in selected.items(MAX_OPTIONS)? {
            wish.selected.push(Choice {
                name: option.required("name")?.text(MAX_TEXT)?,
                id: option.text_member("id", MAX_TEXT)?,
                label: option.required("label")?.text(MAX_TEXT)?,
            });
        }
    }
    if let Some(preferences) = body.member("preferences")? {
        let names = preferences.items(MAX_OPTIONS)?;
        wish.preferences = names.iter().map(|name| name.text(MAX_TEXT)).collect::<Result<_, _>>()?;
    }
    let (filter, price_ignored) = filter(&body, face)?;
    observations(&body)?;
    Ok(Asked { what: Closely { id, wish, filter }, price_ignored })
}

/// The filter that counts, and whether a price filter was left out: prices are in the shop's currency, nothing is
/// converted here.
fn filter(body: &Node<'_>, face: &ShopFace) -> Result<(Filter, bool), Refusal> {
    let currency = match body.member("context")? {
        Some(context) => context.text_member("currency", MAX_TEXT)?,
        None => None,
    };
    let Some(filters) = body.member("filters")? else { return Ok((Filter::default(), false)) };
    filters.is_object()?;
    let mut filter = Filter::default();
    if let Some(categories) = filters.member("categories")? {
        let values = categories.items(MAX_CATEGORIES)?;
        let value = |node: &Node<'_>| node.text(MAX_TEXT).map(|text| Filter::category(&text));
        filter.categories = values.iter().map(value).collect::<Result<_, _>>()?;
        filter.categories.retain(|value| !value.is_empty());
        // Their order does not count: equal questions share an answer.
        filter.categories.sort_unstable();
        filter.categories.dedup();
    }
    let mut price = Bounds::default();
    if let Some(node) = filters.member("price")? {
        node.is_object()?;
        price.min = node.member("min")?.map(|bound| bound.integer(0)).transpose()?;
        price.max = node.member("max")?.map(|bound| bound.integer(0)).transpose()?;
    }
    let counts = currency.is_some_and(|code| code.eq_ignore_ascii_case(face.currency.code()));
    if counts {
        filter.price = price;
    }
    Ok((filter, price.is_set() && !counts))
}
