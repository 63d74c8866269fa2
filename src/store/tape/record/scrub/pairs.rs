//! Scrubbing of queries and forms, by the names in them.

use std::collections::HashMap;

use super::{Kind, Scrubber, Side, kinds, open, scan::Reach};

/// What the names of a form say together.
struct Form {
    /// `key` is an order's.
    order: bool,
    /// People are searched for.
    people: bool,
    /// Something is paid: what is not known is payment data.
    pays: bool,
    /// `a[0][key]=b`: from `a[0]` to `b`.
    keys: HashMap<String, String>,
}

impl Form {
    fn new(path: &str, pairs: &[(String, String)]) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
        let lists = has(&["/wc/v", "/wp/v", "/wc-analytics"]);
        let pays = |name: &str| kinds::plain(name) == "payment_method" || root(name) == "payment_data";
        let keys = pairs
            .iter()
            .filter_map(|(name, value)| Some((name.strip_suffix("[key]")?.to_owned(), value.clone())));
        Self {
            order: has(&["/order/", "order-received", "order-pay"]),
            people: has(&[
                "/wc/v3/orders",
                "/customers",
                "/wp/v2/users",
                "/wp/v2/comments",
                "/products/reviews",
            ]),
            pays: !lists && pairs.iter().any(|(name, _)| pays(name)),
            keys: keys.collect(),
        }
    }

    /// The key beside a value: `a[0][key]` for `a[0][value]`.
    fn key_of(&self, name: &str) -> Option<&str> {
        let base = name.strip_suffix("[value]").or_else(|| name.strip_suffix("[display_value]"))?;
        self.keys.get(base).map(String::as_str)
    }
}

fn root(name: &str) -> &str {
    name.split(['[', '.']).next().unwrap_or(name)
}

impl Scrubber {
    /// Scrubs a query or a form, by the names in it; `path` is where it was sent.
    pub(in super::super) fn pairs(&mut self, path: &str, query: &str) -> Vec<(String, String)> {
        self.pairs_within(path, query, 0)
    }

    fn pairs_within(&mut self, path: &str, query: &str, depth: usize) -> Vec<(String, String)> {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let pairs: Vec<(String, String)> =
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let form = Form::new(path, &pairs);
        for (_, value) in pairs.iter().filter(|(name, _)| name == "payment_method") {
            self.learn_method(value);
        }
        pairs
            .into_iter()
            .map(|(name, value)| {
                // The classic checkout posts its form as a value of another.
                let put = if kinds::plain(&name) == "post_data" && depth < 3 {
                    let inner = self.pairs_within(path, &value, depth + 1);
                    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(inner).finish()
                } else {
                    self.pair(&form, &name, &value)
                };
                // A token may stand without a name of its own.
                (self.text(&name, Reach::Strong), put)
            })
            .collect()
    }

    fn pair(&mut self, form: &Form, name: &str, value: &str) -> String {
        let kind = match (root(name), form.key_of(name)) {
            ("payment_data", _) if name.ends_with("[key]") => None,
            ("payment_data", _) => Some(Kind::Payment),
            ("meta_data", Some(key)) if open::is_harmless_meta(key) => None,
            ("meta_data", Some(key)) => Some(kinds::of_name(key).unwrap_or(Kind::Value)),
            ("extensions", _) if open::is_attribution(name) => None,
            ("additional_fields" | "extensions", _) => Some(kinds::of_name(name).unwrap_or(Kind::Field)),
            (_, Some(key)) if kinds::of_name(key).is_some() => kinds::of_name(key),
            _ => match name {
                "key" if form.order => Some(Kind::OrderKey),
                "search" if form.people && value.contains('@') => Some(Kind::Email),
                "search" if form.people => Some(Kind::Person),
                "payment_method" if !open::is_method(value) => Some(Kind::Payment),
                name => kinds::of_name(name).or_else(|| unknown(form, name)),
            },
        };
        match kind {
            Some(kind) => self.put(kind, value),
            None if open::is_link(name) => self.link(value),
            // A form may hold JSON.
            None if value.starts_with(['{', '[']) => self.json_text(value, Side::Request),
            None if name == "rest_route" => self.text(value, Reach::Strong),
            None => self.text(value, super::json::reach_of(name)),
        }
    }
}

/// What stands under a name that nobody knows, where people and payments are told of.
fn unknown(form: &Form, name: &str) -> Option<Kind> {
    let plain = kinds::plain(name);
    let address = ["billing", "shipping"].iter().any(|start| root(name) == *start && name.contains('['))
        || root(name).ends_with("_address") && name.contains('[')
        || form.pays && (plain.starts_with("billing_") || plain.starts_with("shipping_"));
    if open::is_open_in_form(name) || open::is_link(name) {
        None
    } else if address {
        Some(Kind::Field)
    } else if form.pays || open::names_a_provider(name) {
        Some(Kind::Payment)
    } else {
        None
    }
}
