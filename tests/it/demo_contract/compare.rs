//! Differences between a recorded and a run's answer.

use axum::http::HeaderMap;
use serde_json::Value;

/// Members whose values differ from run to run; only their types are compared.
const VOLATILE: &[&str] =
    &["Cart-Token", "Nonce", "Nonce-Timestamp", "cart_hash", "customer_ip_address", "related_ids"];

/// Lists whose items have ids of rows.
const ROWS: &[&str] = &[
    "meta_data(sorted)[]",
    "line_items[]",
    "shipping_lines[]",
    "tax_lines[]",
    "coupon_lines[]",
    "fee_lines[]",
    "refunds(sorted)[]",
];

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Whether the value at this path is one nobody can foresee.
fn volatile(path: &str, name: &str, siblings: &serde_json::Map<String, Value>) -> bool {
    let key = siblings.get("key").and_then(Value::as_str).unwrap_or_default();
    VOLATILE.contains(&name)
        || name.starts_with("date_")
        || (name == "id" && ROWS.iter().any(|rows| path.ends_with(rows)))
        || (name == "id" && key.starts_with("wc_order_"))
        || (name == "value"
            && (key.ends_with("_hash") || key == "_wp_trash_meta_time" || key.starts_with("_debug")))
}

/// Notes every difference between a recorded and a run's value.
pub fn compare(path: &str, recorded: &Value, run: &Value, differences: &mut Vec<String>) {
    match (recorded, run) {
        // Rows that have no order of their own.
        (Value::Array(recorded), Value::Array(run))
            if path.ends_with(".meta_data") || path.ends_with(".refunds") =>
        {
            let sorted = |rows: &[Value]| {
                let mut rows = rows.to_vec();
                rows.sort_by_key(|row| (row["key"].to_string(), row["total"].to_string()));
                Value::Array(rows)
            };
            let path = format!("{path}(sorted)");
            compare(&path, &sorted(recorded), &sorted(run), differences);
        }
        (Value::Array(recorded), Value::Array(run)) => {
            if recorded.len() != run.len() {
                differences.push(format!("{path}: {} items, not {}", run.len(), recorded.len()));
            }
            for (recorded, run) in recorded.iter().zip(run) {
                compare(&format!("{path}[]"), recorded, run, differences);
            }
        }
        // Made from the ids of rows.
        (Value::Object(recorded), Value::Object(run)) if path.ends_with(".item_data") => {
            let values = |members: &serde_json::Map<String, Value>| members.values().cloned().collect();
            compare(
                &format!("{path}[]"),
                &Value::Array(values(recorded)),
                &Value::Array(values(run)),
                differences,
            );
        }
        (Value::Object(recorded), Value::Object(run)) => {
            for name in run.keys().filter(|name| !recorded.contains_key(*name)) {
                differences.push(format!("{path}.{name}: not in the recording"));
            }
            for (name, value) in recorded {
                let path_here = format!("{path}.{name}");
                match run.get(name) {
                    None => differences.push(format!("{path_here}: missing")),
                    Some(other) if name == "Cart-Hash" => {
                        if (value == "") != (other == "") {
                            differences.push(format!("{path_here}: {other}, not {value}"));
                        }
                    }
                    Some(other) if volatile(path, name, recorded) => {
                        if kind(value) != kind(other) {
                            differences.push(format!("{path_here}: {}, not {}", kind(other), kind(value)));
                        }
                    }
                    Some(other) => compare(&path_here, value, other, differences),
                }
            }
        }
        (recorded, run) if recorded == run => {}
        // The recorded shop adds weights in floats.
        (Value::Number(recorded), Value::Number(run)) if path.ends_with("items_weight") => {
            let text = |number: &serde_json::Number| format!("{:.4}", number.as_f64().unwrap_or_default());
            if text(recorded) != text(run) {
                differences.push(format!("{path}: {run}, not {recorded}"));
            }
        }
        (recorded, run) => {
            let (mut recorded, mut run) = (recorded.to_string(), run.to_string());
            recorded.truncate(recorded.char_indices().nth(160).map_or(recorded.len(), |(index, _)| index));
            run.truncate(run.char_indices().nth(160).map_or(run.len(), |(index, _)| index));
            differences.push(format!("{path}: {run}, not {recorded}"));
        }
    }
}

/// A header of an entry's request or response.
pub fn header<'a>(entry: &'a Value, side: &str, name: &str) -> Option<&'a str> {
    entry[side]["headers"]
        .as_array()?
        .iter()
        .find(|header| header["name"].as_str().is_some_and(|found| found.eq_ignore_ascii_case(name)))?["value"]
        .as_str()
}

/// Notes differences between the headers that a client reads.
pub fn headers(entry: &Value, run: &HeaderMap, differences: &mut Vec<String>) {
    for name in ["X-WP-Total", "X-WP-TotalPages", "Allow", "Retry-After", "Content-Type"] {
        let recorded = header(entry, "response", name);
        let run = run.get(name).map(|value| value.to_str().unwrap());
        // An OPTIONS answer and an error name their methods in other ways.
        if recorded != run && !(name == "Allow" && recorded.is_none()) {
            differences.push(format!("{name}: {run:?}, not {recorded:?}"));
        }
    }
    // Links to other pages; wc/v3 spells the parameters it made up as well.
    let store = entry["request"]["url"].as_str().is_some_and(|url| url.contains("wc/store"));
    let recorded = header(entry, "response", "Link").filter(|link| store && !link.contains("api.w.org"));
    let run = run.get("Link").map(|value| value.to_str().unwrap());
    if recorded != run {
        differences.push(format!("Link: {run:?}, not {recorded:?}"));
    }
}
