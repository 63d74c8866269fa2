//! Pages of a list: parameters, the page itself, its headers.

use serde_json::Value;

use super::http::{ApiError, Call, Reply};

/// `per_page` and `page` of a list; `least` is the smallest page size allowed.
pub(super) fn paging(call: &Call, least: usize) -> Result<(usize, usize), ApiError> {
    let mut sizes = [10, 1];
    for (slot, name) in sizes.iter_mut().zip(["per_page", "page"]) {
        if call.has(name) {
            let Ok(number) = call.text(name).parse::<i64>() else {
                return Err(ApiError::invalid(
                    name,
                    "rest_invalid_type",
                    format!("{name} is not of type integer."),
                ));
            };
            *slot = usize::try_from(number).unwrap_or(usize::MAX);
        }
    }
    let [per_page, page] = sizes;
    if per_page > 100 || per_page < least {
        let text = format!("per_page must be between {least} (inclusive) and 100 (inclusive)");
        return Err(ApiError::invalid("per_page", "rest_out_of_bounds", text));
    }
    if page == 0 || page == usize::MAX {
        return Err(ApiError::invalid(
            "page",
            "rest_out_of_bounds",
            "page must be greater than or equal to 1",
        ));
    }
    Ok((per_page, page))
}

/// The page of a list, with its total headers.
pub(super) fn page_of<T>(all: Vec<T>, per_page: usize, page: usize, json: impl Fn(T) -> Value) -> Reply {
    let total = all.len();
    let size = if per_page == 0 { total.max(1) } else { per_page };
    let pages = total.div_ceil(size);
    let body: Vec<Value> = all.into_iter().skip(size.saturating_mul(page - 1)).take(size).map(json).collect();
    Reply::new(200, Value::Array(body))
        .header("x-wp-total", total.to_string())
        .header("x-wp-totalpages", pages.to_string())
}

/// `Link` to the pages before and after, spelled as the shop spells them: the query is escaped first and the
/// page number set afterwards, so that all but the first parameter end up behind a `#`.
pub(super) fn with_links(reply: Reply, base: &str, call: &Call, page: usize) -> Reply {
    let Some(pages) = reply.headers.iter().find(|(name, _)| name == "x-wp-totalpages") else { return reply };
    let pages: usize = pages.1.parse().unwrap_or_default();
    let (path, query) = call.target.split_once('?').unwrap_or((call.target.as_str(), ""));
    let mut parts = query.split('&').filter(|part| !part.is_empty());
    let first = parts.next().filter(|part| !part.starts_with("page="));
    let rest: Vec<&str> = parts.collect();
    let link = |number: usize, rel: &str| {
        let first = first.map(|part| format!("{part}&")).unwrap_or_default();
        let tail = if rest.is_empty() { String::new() } else { format!("#038;{}", rest.join("&#038;")) };
        format!("<{base}/wp-json/{path}?{first}page={number}{tail}>; rel=\"{rel}\"")
    };
    let mut links = Vec::new();
    if page > 1 {
        links.push(link((page - 1).min(pages), "prev"));
    }
    if page < pages {
        links.push(link(page + 1, "next"));
    }
    if links.is_empty() { reply } else { reply.header("link", links.join(", ")) }
}
