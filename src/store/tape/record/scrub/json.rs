//! Scrubbing of messages: JSON by its members, headers by their names.

use serde_json::{Map, Value};

use super::{Kind, Scrubber, Side, kinds, open, scan::Reach};

/// What is known of a place in a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing: names tell.
    Open,
    /// Every text is of one kind.
    All(Kind),
    /// In an address: names tell, and an unknown one is a field of the shop's own.
    Address,
    /// In a customer or user: as in an address.
    Person,
    /// In `payment_data`: names stay, every value goes.
    Payment,
    /// In `payment_result` and `payment_details`: what the payment method told.
    Details,
    /// A text that the payment method gave out.
    Handed,
    /// In `meta_data`.
    Meta,
    /// Messages by the names of fields: a name says nothing of the text under it.
    Messages,
    /// In a description of fields: as in messages.
    Schema,
}

/// Headers whose values say nothing of a person and give nothing away.
const OPEN_HEADERS: [&str; 37] = [
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
    "content-type",
    "date",
    "expires",
    "keep-alive",
    "last-modified",
    "link",
    "nonce-timestamp",
    "pragma",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "ratelimit-retry-after",
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

/// Authors of notes who are nobody.
const OWN_AUTHORS: [&str; 3] = ["system", "WooCommerce", ""];

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
            "location" | "content-location" | "refresh" => self.link(value),
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
                let number = number.to_string();
                let named = || kinds::of_name(name).filter(|kind| *kind != Kind::Nonce && !is_author(name));
                match place {
                    Place::All(kind) => *value = self.put(kind, &number).into(),
                    Place::Payment => *value = self.put(Kind::Payment, &number).into(),
                    Place::Handed | Place::Details => *value = self.handed(&number).into(),
                    Place::Address => *value = self.put(named().unwrap_or(Kind::Field), &number).into(),
                    Place::Open | Place::Person => {
                        if let Some(kind) = named() {
                            *value = self.put(kind, &number).into();
                        }
                    }
                    Place::Meta | Place::Messages | Place::Schema => {}
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn leaf(&mut self, text: &str, name: &str, place: Place, side: Side) -> String {
        let unknown = match place {
            Place::All(kind) => return self.put(kind, text),
            Place::Payment => return self.put(Kind::Payment, text),
            Place::Handed | Place::Details => return self.handed(text),
            Place::Meta => return self.put(kinds::of_name(name).unwrap_or(Kind::Value), text),
            Place::Messages => return self.text(text, Reach::All),
            Place::Schema => return self.text(text, reach_of(name)),
            Place::Address => (!open::is_open_in_address(name)).then_some(Kind::Field),
            Place::Person => (!open::is_open_in_person(name)).then_some(Kind::Field),
            Place::Open => None,
        };
        match kinds::of_name(name).or(unknown) {
            Some(_) if is_author(name) && OWN_AUTHORS.contains(&text) => text.to_owned(),
            Some(kind) => self.put(kind, text),
            None if open::is_link(name) => self.link(text),
            None if name == "payment_method" && !text.is_empty() && !open::is_method(text) => {
                self.put(Kind::Payment, text)
            }
            // "Visa ending in 4242"
            None if name == "payment_method_title" && has_digits(text, 4) => self.put(Kind::Payment, text),
            // A field may hold JSON of its own.
            None if text.starts_with(['{', '[']) && text.len() > 2 => self.json_text(text, side),
            None => self.text(text, reach_of(name)),
        }
    }

    fn object(&mut self, members: &mut Map<String, Value>, place: Place, side: Side) {
        let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
        for prefix in ["", "billing_", "shipping_"] {
            let names = (text(&format!("{prefix}first_name")), text(&format!("{prefix}last_name")));
            if let (Some(first), Some(last)) = names {
                self.learn_full_name(first, last);
            }
        }
        let methods = members.get("payment_methods").and_then(Value::as_array).into_iter().flatten();
        for method in methods.filter_map(Value::as_str).chain(text("payment_method")) {
            self.learn_method(method);
        }
        let refusal = has(&["status"]);
        let review = has(&["reviewer", "author_name"]);
        let refund = has(&["amount", "total", "refunded_by"]);
        let person = has(&["email", "phone", "username"]);
        let customer =
            has(&["avatar_url", "avatar_urls", "username", "user_login", "user_nicename", "nickname"])
                || has(&["email"]) && has(&["billing", "shipping"]);
        let checkout = side == Side::Request
            && has(&["payment_method"])
            && has(&["payment_data", "billing_address", "extensions"]);
        let password = text("type") == Some("password");
        let place = if place == Place::Open && customer { Place::Person } else { place };
        let key = text("key").map(str::to_owned);
        let pair = has(&["value"]);
        // Settings name themselves by their id.
        let label = key.clone().or_else(|| text("id").filter(|_| pair).map(str::to_owned));
        for (name, member) in members.iter_mut() {
            let place = match (place, name.as_str()) {
                (Place::Open | Place::Person, name) if is_schema(name, member) => Place::Schema,
                (place, _) => place,
            };
            match (place, name.as_str(), &key) {
                (Place::Schema | Place::All(_) | Place::Handed | Place::Messages, ..) => {
                    self.value(member, name, place, side);
                }
                (Place::Payment, "key", _) if pair => self.value(member, name, Place::Open, side),
                (Place::Payment, ..) => self.value(member, name, place, side),
                (Place::Meta, "value" | "display_value", Some(key)) => self.meta(member, key, side),
                (Place::Meta, "key" | "display_key", Some(_)) | (Place::Meta, "id", _) => {
                    self.value(member, "key", Place::Open, side);
                }
                (Place::Meta, name, _) => self.meta(member, name, side),
                (Place::Details, "key", _) if pair => self.value(member, "key", Place::Open, side),
                (Place::Details, "value", Some(key)) => self.detail(member, key, side),
                (Place::Details, name, _) => self.detail(member, name, side),
                (_, "value" | "default", _) if password => {
                    self.value(member, name, Place::All(Kind::Secret), side);
                }
                (_, "value", _) if label.as_deref().and_then(kinds::of_name).is_some() => {
                    self.value(member, label.as_deref().unwrap_or_default(), place, side);
                }
                (_, "payment_data", _) => self.value(member, name, Place::Payment, side),
                (_, "payment_details" | "payment_result", _) => {
                    self.value(member, name, Place::Details, side);
                }
                (_, "meta_data", _) | (Place::Person, "meta", _) => {
                    self.value(member, name, Place::Meta, side);
                }
                (_, "additional_fields", _) => self.value(member, name, Place::All(Kind::Field), side),
                (_, "params" | "details", _) if refusal => self.value(member, name, Place::Messages, side),
                (_, "extensions", _) if side == Side::Request => self.extensions(member, side),
                (_, "_links", _) => self.value(member, name, Place::Open, side),
                (_, name, _) if is_address(name, member) => self.value(member, name, Place::Address, side),
                (_, "avatar_urls" | "reviewer_avatar_urls" | "author_avatar_urls", _) => {
                    self.value(member, name, Place::All(Kind::Field), side);
                }
                (_, "review" | "content", _) if review => {
                    self.value(member, name, Place::All(Kind::Note), side);
                }
                (_, "reason", _) if refund => self.value(member, name, Place::All(Kind::Note), side),
                (_, "name", _) if person || place == Place::Person => {
                    self.value(member, "full_name", place, side);
                }
                (Place::Open, name, _)
                    if checkout && kinds::of_name(name).is_none() && !open::is_open_in_form(name) =>
                {
                    self.value(member, name, Place::All(Kind::Payment), side);
                }
                _ => self.value(member, name, place, side),
            }
        }
    }

    fn meta(&mut self, value: &mut Value, key: &str, side: Side) {
        if open::is_harmless_meta(key) {
            self.value(value, "utm_", Place::Open, side);
        } else {
            let kind = kinds::of_name(key).unwrap_or(Kind::Value);
            self.value(value, key, Place::All(kind), side);
        }
    }

    /// The shop's result and a message stay, of the page to go to what is known to say nothing; what else a
    /// payment method tells its script does not.
    fn detail(&mut self, value: &mut Value, key: &str, side: Side) {
        let name = kinds::plain(key);
        let outcome = value.as_str().is_some_and(open::is_outcome);
        match (name.as_str(), value) {
            ("payment_details", value) => self.value(value, key, Place::Details, side),
            (name, _) if outcome && (name == "result" || name.ends_with("status")) => {}
            ("order_id" | "order_number" | "order", value) => self.value(value, key, Place::Open, side),
            (name, Value::String(text)) if open::is_link(name) || name.ends_with("url") => {
                *text = self.link(text);
            }
            (name, value) if name.ends_with("message") || name.ends_with("messages") => {
                self.value(value, key, Place::Messages, side);
            }
            (_, value) => self.value(value, key, Place::Handed, side),
        }
    }

    /// What plugins are told with a request. Where a buyer came from stays but for addresses of pages.
    fn extensions(&mut self, value: &mut Value, side: Side) {
        let Value::Object(plugins) = value else { return };
        for (plugin, told) in plugins {
            match told {
                Value::Object(members) if plugin == "woocommerce/order-attribution" => {
                    for (name, member) in members {
                        let open = open::is_harmless_meta(&format!("_wc_order_attribution_{name}"));
                        let place = if open { Place::Open } else { Place::All(Kind::Value) };
                        self.value(member, name, place, side);
                    }
                }
                told => self.value(told, plugin, Place::All(Kind::Field), side),
            }
        }
    }
}

/// Whether a member is a description of fields, as `OPTIONS` and the API's index answer them.
fn is_schema(name: &str, member: &Value) -> bool {
    match (name, member) {
        ("schema", Value::Object(schema)) => schema.contains_key("properties"),
        ("endpoints", Value::Array(endpoints)) => {
            !endpoints.is_empty() && endpoints.iter().all(|endpoint| endpoint.get("methods").is_some())
        }
        _ => false,
    }
}

/// Whether a member is an address.
fn is_address(name: &str, member: &Value) -> bool {
    let Value::Object(address) = member else { return false };
    let parts =
        ["first_name", "last_name", "address_1", "line_one", "street", "city", "postcode", "postal_code"];
    match name {
        "billing_address" | "shipping_address" => true,
        "billing" | "shipping" | "destination" | "address" => {
            parts.iter().any(|part| address.contains_key(*part))
                || address.keys().any(|name| name.contains('/'))
                || address.contains_key("country") && address.contains_key("state")
        }
        name => name.ends_with("_address") && parts.iter().any(|part| address.contains_key(*part)),
    }
}

/// Who wrote a note to an order, or a comment: a name, or a number that stays.
fn is_author(name: &str) -> bool {
    name == "author"
}

fn has_digits(text: &str, count: usize) -> bool {
    text.chars().filter(char::is_ascii_digit).count() >= count
}

pub(super) fn reach_of(name: &str) -> Reach {
    if kinds::is_the_shops(name) { Reach::Strong } else { Reach::All }
}
