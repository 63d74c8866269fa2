//! Additional checkout fields, as a plugin registers them: a merchant switches them on with the event
//! `checkout_fields {value}`.
//!
//! Fields of a contact or an order go in `additional_fields`, those of an address in both addresses. As soon
//! as one of the first kind is required, so is `additional_fields` itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::http::{ApiError, Call};
use super::listing::and_list;
use super::model::Order;

/// What a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number that names a company for tax.
    Vat,
    Choice(&'static [&'static str]),
    /// A box that has to be ticked.
    Tick,
}

/// A field of a contact or an order.
#[derive(Debug, Clone, Copy)]
struct Field {
    id: &'static str,
    label: &'static str,
    location: &'static str,
    kind: Kind,
}

const OTHER: &[Field] = &[
    Field { id: "demo/vat-id", label: "VAT number", location: "contact", kind: Kind::Vat },
    Field { id: "demo/slot", label: "Delivery slot", location: "order", kind: Kind::Choice(&["am", "pm"]) },
    Field { id: "demo/terms", label: "I have read the terms", location: "order", kind: Kind::Tick },
];

/// Fields of an address: id, label, whether it is required.
pub(super) const ADDRESS: &[(&str, &str, bool)] =
    &[("demo/door", "Door code", true), ("demo/floor", "Floor", false)];

impl Field {
    const fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Tick => "boolean",
            Kind::Vat | Kind::Choice(_) => "string",
        }
    }

    /// The value as it is kept.
    fn clean(&self, value: &Value) -> Value {
        match (self.kind, value) {
            (Kind::Vat, Value::String(text)) => json!(text.to_uppercase().replace(' ', "")),
            (Kind::Tick, Value::String(text)) => json!(!matches!(text.as_str(), "" | "0" | "false")),
            (_, value) => value.clone(),
        }
    }

    /// What speaks against a value: code and text.
    fn objection(&self, value: Option<&Value>) -> Option<(&'static str, String)> {
        let id = self.id;
        let fits = match self.kind {
            Kind::Tick => value.is_some_and(Value::is_boolean),
            Kind::Vat | Kind::Choice(_) => value.is_some_and(Value::is_string),
        };
        if !fits {
            return Some(("rest_invalid_type", format!("{id} is not of type {}.", self.type_name())));
        }
        match (self.kind, value) {
            (Kind::Tick, Some(Value::Bool(false))) => Some(("rest_not_in_enum", format!("{id} is not 1."))),
            (Kind::Choice(values), Some(Value::String(text))) if !values.contains(&text.as_str()) => {
                Some(("rest_not_in_enum", format!("{id} is not one of {}.", and_list(values))))
            }
            _ => None,
        }
    }

    fn schema(&self) -> Value {
        let mut schema = json!({
            "description": self.label,
            "type": self.type_name(),
            "context": ["view", "edit"],
            "required": true,
        });
        let values = match self.kind {
            Kind::Choice(values) => json!(values),
            Kind::Tick => json!([true]),
            Kind::Vat => return schema,
        };
        if let Some(members) = schema.as_object_mut() {
            members.insert("enum".to_owned(), values);
        }
        schema
    }
}

fn is_vat(text: &str) -> bool {
    let (country, rest) = text.split_at_checked(2).unwrap_or(("", ""));
    country.chars().all(|c| c.is_ascii_uppercase())
        && (8..=12).contains(&rest.len())
        && rest.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The schema of `additional_fields`, as `OPTIONS checkout` tells it.
pub(super) fn schema(on: bool) -> Value {
    let properties: Map<String, Value> =
        OTHER.iter().filter(|_| on).map(|field| (field.id.to_owned(), field.schema())).collect();
    json!({
        "description": "Additional fields to be persisted on the order.",
        "type": "object",
        "properties": properties,
        "required": on,
    })
}

/// Refuses an address of a checkout without what the plugin wants in it.
pub(super) fn check_addresses(call: &Call, wanted: &[&'static str]) -> Result<(), ApiError> {
    let mut texts = Map::new();
    let mut details = Map::new();
    for name in wanted {
        let given = call.params.get(*name);
        let side = name.trim_end_matches("_address");
        for (id, label, _) in ADDRESS.iter().filter(|(.., required)| *required) {
            let there = given.and_then(|given| given.get(id)?.as_str()).is_some_and(|text| !text.is_empty());
            if !there {
                let text =
                    format!("There was a problem with the provided {side} address: {label} is required");
                let detail = json!({"code": "woocommerce_required_checkout_field", "message": text, "data": {"key": id}});
                texts.insert((*name).to_owned(), json!(text));
                details.insert((*name).to_owned(), detail);
            }
        }
    }
    if texts.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = texts.keys().map(String::as_str).collect();
    let names =
        if names.len() == 2 { "shipping_address, billing_address".to_owned() } else { names.concat() };
    Err(ApiError::new(400, "rest_invalid_param", format!("Invalid parameter(s): {names}"))
        .with("params", Value::Object(texts))
        .with("details", Value::Object(details)))
}

/// Reads `additional_fields`: all of them for a purchase (`whole`), else those that are there.
pub(super) fn read(call: &Call, whole: bool) -> Result<BTreeMap<String, Value>, ApiError> {
    let given = match call.params.get("additional_fields") {
        Some(Value::Object(given)) => given.clone(),
        None if whole => return Err(ApiError::missing("additional_fields")),
        _ => Map::new(),
    };
    let mut values = BTreeMap::new();
    let mut faults = Faults::default();
    for field in OTHER {
        let value = given.get(field.id).map(|value| field.clean(value));
        if value.is_none() && !whole {
            continue;
        }
        if let Some((code, text)) = field.objection(value.as_ref()) {
            faults.add(code, text, (code == "rest_invalid_type").then(|| json!({"param": field.id})));
            faults.data(code, json!({"location": field.location, "key": field.id}));
        }
        if let Some(value) = value {
            values.insert(field.id.to_owned(), value);
        }
    }
    if faults.texts.is_empty() {
        for field in OTHER {
            match (field.kind, values.get(field.id).and_then(Value::as_str)) {
                (_, Some("")) => {
                    let code = "woocommerce_required_checkout_field";
                    faults.add(code, format!("{} is required", field.label), Some(json!({"key": field.id})));
                }
                (Kind::Vat, Some(text)) if !is_vat(text) => {
                    let data = json!({"location": field.location, "key": field.id});
                    faults.add("invalid_vat", "This is not a VAT number.".to_owned(), Some(data));
                }
                _ => {}
            }
        }
    }
    faults.end().map(|()| values)
}

/// Errors as `WordPress` gathers them: facts belong to a code, not to one error, and the last one added stands
/// in front.
#[derive(Debug, Default)]
struct Faults {
    texts: Vec<(&'static str, String)>,
    facts: BTreeMap<&'static str, Vec<Value>>,
}

impl Faults {
    fn add(&mut self, code: &'static str, text: String, data: Option<Value>) {
        self.texts.push((code, text));
        if let Some(data) = data {
            self.data(code, data);
        }
    }

    fn data(&mut self, code: &'static str, data: Value) {
        self.facts.entry(code).or_default().push(data);
    }

    fn one(&self, code: &'static str, text: &str) -> Value {
        let (last, before) = self.facts.get(code).and_then(|facts| facts.split_last()).unzip();
        let mut error = json!({"code": code, "message": text, "data": last});
        if let Some(before) = before.filter(|before| !before.is_empty())
            && let Some(members) = error.as_object_mut()
        {
            members.insert("additional_data".to_owned(), json!(before));
        }
        error
    }

    fn end(&self) -> Result<(), ApiError> {
        let mut all = self.texts.iter().map(|(code, text)| self.one(code, text));
        let Some(mut first) = all.next() else { return Ok(()) };
        let more: Vec<Value> = all.collect();
        if let Some(members) = first.as_object_mut().filter(|_| !more.is_empty()) {
            members.insert("additional_errors".to_owned(), json!(more));
        }
        let text = self.texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ");
        Err(ApiError::new(400, "rest_invalid_param", "Invalid parameter(s): additional_fields")
            .with("params", json!({"additional_fields": text}))
            .with("details", json!({"additional_fields": first})))
    }
}

/// The rows of meta that keep an order's fields: key and value.
pub(super) fn meta(order: &Order) -> Vec<(String, String)> {
    let of = |side: &str, fields: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let filled = fields.iter().filter(|(_, text)| !text.is_empty());
        filled.map(|(id, text)| (format!("_wc_{side}/{id}"), text.clone())).collect()
    };
    let mut rows = of("billing", &order.billing.extra);
    rows.extend(of("shipping", &order.shipping.extra));
    rows.extend(order.fields.iter().map(|(id, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(true) => "1".to_owned(),
            _ => String::new(),
        };
        (format!("_wc_other/{id}"), text)
    }));
    rows
}
