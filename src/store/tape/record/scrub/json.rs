//! Scrubbing of messages: JSON by its members, forms and queries by their names, headers by theirs.

use serde_json::{Map, Value};

use super::{Kind, Scrubber, Side, kinds, scan::Reach};

/// What is known of a place in a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing: names tell.
    Open,
    /// Every text is of one kind.
    All(Kind),
    /// In `payment_data`: names stay, every value goes.
    Payment,
    /// In `payment_details`: what the payment method told its script.
    Details,
    /// In `meta_data`.
    Meta,
    /// Messages by the names of fields: a name says nothing of the text under it.
    Messages,
}

/// Headers whose values say nothing of a person and give nothing away.
const OPEN_HEADERS: [&str; 40] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "age",
    "allow",
    "cache-control",
    "cart-hash",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-type",
    "date",
    "expires",
    "keep-alive",
    "last-modified",
    "link",
    "location",
    "nonce-timestamp",
    "pragma",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "ratelimit-retry-after",
    "refresh",
    "retry-after",
    "server",
    "transfer-encoding",
    "vary",
    "x-content-type-options",
    "x-robots-tag",
    "x-wp-total",
    "x-wp-totalpages",
    "user-id",
];

/// What stands for the value of a header that is not open.
const SCRUBBED: &str = "scrubbed";

impl Scrubber {
    /// Scrubs a header's value.
    pub(in super::super) fn header(&mut self, name: &str, value: &str) -> String {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "cart-token" => self.put(Kind::Cart, value),
            "authorization" => self.authorization(value),
            "cookie" | "set-cookie" => {
                for pair in value.split(';') {
                    let value = pair.split_once('=').map_or("", |(_, value)| value.trim());
                    if value.len() >= 8 && value.chars().any(|c| c.is_ascii_digit()) && !value.contains(' ') {
                        self.learn(Kind::Secret, value);
                    }
                    if name == "set-cookie" {
                        break; // the rest of it are attributes
                    }
                }
                SCRUBBED.to_owned()
            }
            "x-forwarded-for" | "x-real-ip" => {
                for address in value.split(',') {
                    self.learn(Kind::Ip, address);
                }
                SCRUBBED.to_owned()
            }
            _ if OPEN_HEADERS.contains(&name.as_str()) => self.text(value, Reach::Strong),
            _ => match kinds::of_name(&name) {
                Some(Kind::Nonce) => self.put(Kind::Nonce, value),
                Some(kind) => {
                    self.learn(kind, value);
                    SCRUBBED.to_owned()
                }
                None => SCRUBBED.to_owned(),
            },
        }
    }

    /// The scheme stays; what it says is learned, so that it is found elsewhere too.
    fn authorization(&mut self, value: &str) -> String {
        let (scheme, credentials) = value.split_once(' ').unwrap_or(("", value));
        self.learn(Kind::Secret, credentials);
        let basic = data_encoding::BASE64.decode(credentials.trim().as_bytes()).ok();
        if let Some((user, password)) = basic
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .as_deref()
            .and_then(|text| text.split_once(':'))
        {
            self.learn(Kind::Secret, user);
            self.learn(Kind::Secret, password);
        }
        format!("{scheme} {SCRUBBED}").trim_start().to_owned()
    }

    /// Scrubs the path of an address.
    pub(in super::super) fn path(&mut self, path: &str) -> String {
        self.text(path, Reach::Strong)
    }

    /// Scrubs a query or a form, by the names in it; `path` is where it was sent.
    pub(in super::super) fn pairs(&mut self, path: &str, query: &str) -> Vec<(String, String)> {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let pairs: Vec<(String, String)> =
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let order = path.contains("/order/") || path.contains("order-received") || path.contains("order-pay");
        let people = path.contains("/wc/v3/orders") || path.contains("/wc/v3/customers");
        pairs
            .into_iter()
            .map(|(name, value)| {
                let kind = match name.as_str() {
                    "key" if order => Some(Kind::OrderKey),
                    "search" if people && value.contains('@') => Some(Kind::Email),
                    "search" if people => Some(Kind::Person),
                    name => kinds::of_name(name),
                };
                let put = match kind {
                    Some(kind) => self.put(kind, &value),
                    // A form may hold JSON.
                    None if value.starts_with(['{', '[']) => self.json_text(&value, Side::Request),
                    None if name == "rest_route" => self.text(&value, Reach::Strong),
                    None => self.text(&value, reach_of(&name)),
                };
                (name, put)
            })
            .collect()
    }

    /// Scrubs a text that may be JSON, or JSON behind noise.
    pub(in super::super) fn json_text(&mut self, text: &str, side: Side) -> String {
        let start = text.len() - text.trim_start_matches('\u{feff}').len();
        let brackets = text.match_indices(['{', '[']).map(|(at, _)| at).take(64);
        for at in std::iter::once(start).chain(brackets) {
            let Some((noise, json)) = text.split_at_checked(at) else { continue };
            let Ok(value) = serde_json::from_str::<Value>(json) else { continue };
            let scrubbed = self.json(value.clone(), side);
            let noise = self.text(noise, Reach::All);
            // What holds nothing stays as it was written.
            return if scrubbed == value { format!("{noise}{json}") } else { format!("{noise}{scrubbed}") };
        }
        self.text(text, Reach::All)
    }

    fn json(&mut self, mut value: Value, side: Side) -> Value {
        self.value(&mut value, "", Place::Open, side);
        value
    }

    fn value(&mut self, value: &mut Value, name: &str, place: Place, side: Side) {
        match value {
            Value::Object(members) => self.object(members, place, side),
            Value::Array(items) => {
                for item in items {
                    self.value(item, name, place, side);
                }
            }
            Value::String(text) => *text = self.leaf(text, name, place, side),
            Value::Number(number) => {
                let kind = match place {
                    Place::All(kind) => Some(kind),
                    Place::Payment => Some(Kind::Payment),
                    Place::Open => kinds::of_name(name).filter(|kind| *kind != Kind::Nonce),
                    Place::Details | Place::Meta | Place::Messages => None,
                };
                if let Some(kind) = kind {
                    *value = self.put(kind, &number.to_string()).into();
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn leaf(&mut self, text: &str, name: &str, place: Place, side: Side) -> String {
        match place {
            Place::All(kind) => self.put(kind, text),
            Place::Payment => self.put(Kind::Payment, text),
            Place::Messages => self.text(text, Reach::All),
            Place::Open | Place::Details | Place::Meta => match kinds::of_name(name) {
                Some(kind) => self.put(kind, text),
                // A field may hold JSON of its own.
                None if text.starts_with(['{', '[']) && text.len() > 2 => self.json_text(text, side),
                None => self.text(text, reach_of(name)),
            },
        }
    }

    fn object(&mut self, members: &mut Map<String, Value>, place: Place, side: Side) {
        let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        for prefix in ["", "billing_", "shipping_"] {
            let names = (text(&format!("{prefix}first_name")), text(&format!("{prefix}last_name")));
            if let (Some(first), Some(last)) = names {
                self.learn_full_name(first, last);
            }
        }
        self.methods.extend(text("payment_method").map(str::to_owned));
        let methods = members.get("payment_methods").and_then(Value::as_array).into_iter().flatten();
        self.methods.extend(methods.filter_map(Value::as_str).map(str::to_owned));
        let refusal = members.contains_key("status");
        let person = ["email", "phone", "username"].iter().any(|name| members.contains_key(*name));
        let key = text("key").map(str::to_owned);
        for (name, member) in members.iter_mut() {
            match (place, name.as_str(), &key) {
                (Place::Payment, "key", _) => self.value(member, name, Place::Open, side),
                (Place::Meta, "value" | "display_value", Some(key)) => self.meta(member, key, side),
                (Place::Details, "value", Some(key)) => self.detail(member, key, side),
                (Place::Open, "value", Some(key)) if kinds::of_name(key).is_some() => {
                    self.value(member, key, place, side);
                }
                (Place::All(_) | Place::Payment | Place::Messages, ..) => {
                    self.value(member, name, place, side);
                }
                (_, "payment_data", _) => self.value(member, name, Place::Payment, side),
                (_, "payment_details", _) => self.value(member, name, Place::Details, side),
                (_, "meta_data", _) => self.value(member, name, Place::Meta, side),
                (_, "additional_fields", _) => self.value(member, name, Place::All(Kind::Field), side),
                (_, "params" | "details", _) if refusal => self.value(member, name, Place::Messages, side),
                (_, "extensions", _) if side == Side::Request => self.extensions(member, side),
                (_, "name", _) if person => self.value(member, "full_name", place, side),
                _ => self.value(member, name, place, side),
            }
        }
    }

    fn meta(&mut self, value: &mut Value, key: &str, side: Side) {
        if kinds::is_harmless_meta(key) {
            self.value(value, "utm_", Place::Open, side);
        } else {
            let kind = kinds::of_name(key).unwrap_or(Kind::Value);
            self.value(value, key, Place::All(kind), side);
        }
    }

    /// The shop's result and the page to go to stay, what else a payment method tells its script does not.
    fn detail(&mut self, value: &mut Value, key: &str, side: Side) {
        let open = key == "result" || key.contains("redirect") || key.to_lowercase().contains("message");
        let place = if open { Place::Messages } else { Place::All(Kind::Secret) };
        self.value(value, key, place, side);
    }

    /// What plugins are told with a request. Where a buyer came from stays but for addresses of pages.
    fn extensions(&mut self, value: &mut Value, side: Side) {
        let Value::Object(plugins) = value else { return };
        for (plugin, told) in plugins {
            match told {
                Value::Object(members) if plugin == "woocommerce/order-attribution" => {
                    for (name, member) in members {
                        let open = kinds::is_harmless_meta(&format!("_wc_order_attribution_{name}"));
                        let place = if open { Place::Open } else { Place::All(Kind::Value) };
                        self.value(member, name, place, side);
                    }
                }
                told => self.value(told, plugin, Place::All(Kind::Field), side),
            }
        }
    }
}

fn reach_of(name: &str) -> Reach {
    if kinds::is_the_shops(name) { Reach::Strong } else { Reach::All }
}
