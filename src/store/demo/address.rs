//! Addresses as the API takes and gives them: merging, checking, and their JSON.

use serde_json::{Map, Value, json};

use super::http::ApiError;
use super::model::Address;
use super::places;

/// Members that both addresses have, in the shop's order.
const FIELDS: [&str; 10] = [
    "first_name",
    "last_name",
    "company",
    "address_1",
    "address_2",
    "city",
    "state",
    "postcode",
    "country",
    "phone",
];

impl Address {
    fn field(&self, name: &str) -> &str {
        match name {
            "first_name" => &self.first_name,
            "last_name" => &self.last_name,
            "company" => &self.company,
            "address_1" => &self.address_1,
            "address_2" => &self.address_2,
            "city" => &self.city,
            "state" => &self.state,
            "postcode" => &self.postcode,
            "country" => &self.country,
            "phone" => &self.phone,
            "email" => &self.email,
            _ => "",
        }
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut String> {
        Some(match name {
            "first_name" => &mut self.first_name,
            "last_name" => &mut self.last_name,
            "company" => &mut self.company,
            "address_1" => &mut self.address_1,
            "address_2" => &mut self.address_2,
            "city" => &mut self.city,
            "state" => &mut self.state,
            "postcode" => &mut self.postcode,
            "country" => &mut self.country,
            "phone" => &mut self.phone,
            "email" => &mut self.email,
            name => return self.extra.get_mut(name),
        })
    }

    /// The stored address with the given members laid over it, cleaned but not checked.
    pub(super) fn merged(&self, given: &Map<String, Value>) -> Self {
        let mut address = self.clone();
        for (name, value) in given {
            let text = match value {
                Value::String(text) => clean(text),
                Value::Number(number) => number.to_string(),
                _ => continue,
            };
            if let Some(field) = address.field_mut(name) {
                *field = text;
            }
        }
        address.country = address.country.to_uppercase();
        address.state = places::state_code(&address.country, &address.state);
        address
    }

    /// The first thing the shop objects to: its code and text.
    pub(super) fn objection(&self) -> Option<(&'static str, String)> {
        if !self.country.is_empty() && !places::is_country(&self.country) {
            return Some((
                "invalid_country",
                format!("Invalid country code provided. Must be one of: {}", places::countries_text()),
            ));
        }
        if let Some(states) = places::states(&self.country)
            && !self.state.is_empty()
            && !states.iter().any(|(code, _)| *code == self.state)
        {
            let codes = states.iter().map(|(code, _)| *code).collect::<Vec<_>>().join(", ");
            return Some((
                "invalid_state",
                format!("The provided state ({}) is not valid. Must be one of: {codes}", self.state),
            ));
        }
        if !self.postcode.is_empty() && !places::is_postcode(&self.country, &self.postcode) {
            return Some(("invalid_postcode", "The provided postcode / ZIP is not valid".to_owned()));
        }
        if !places::is_phone(&self.phone) {
            return Some(("invalid_phone", "The provided phone number is not valid".to_owned()));
        }
        None
    }

    /// What is missing for an order, in the words of the shop's form.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.country.is_empty() {
            missing.push("Country / Region is required");
        }
        if self.postcode.is_empty() {
            missing.push("Postcode / ZIP is required");
        }
        for (value, text) in [
            (&self.first_name, "First name is required"),
            (&self.last_name, "Last name is required"),
            (&self.address_1, "Street address is required"),
            (&self.city, "Town / City is required"),
        ] {
            if value.is_empty() {
                missing.push(text);
            }
        }
        if self.state.is_empty() && places::needs_state(&self.country) {
            missing.push("State is required");
        }
        missing
    }

    pub(super) fn shipping_json(&self) -> Value {
        self.with_extra(FIELDS.iter().map(|name| ((*name).to_owned(), json!(self.field(name)))).collect())
    }

    pub(super) fn billing_json(&self) -> Value {
        let names = FIELDS.iter().chain(std::iter::once(&"email"));
        self.with_extra(names.map(|name| ((*name).to_owned(), json!(self.field(name)))).collect())
    }

    fn with_extra(&self, mut members: Map<String, Value>) -> Value {
        members.extend(self.extra.iter().map(|(id, text)| (id.clone(), json!(text))));
        Value::Object(members)
    }

    /// The address without the fields that a plugin adds.
    pub(super) fn plain(&self) -> Self {
        Self { extra: std::collections::BTreeMap::new(), ..self.clone() }
    }

    /// Where a package goes: the part of the address that shipping looks at.
    pub(super) fn destination_json(&self) -> Value {
        ["address_1", "address_2", "city", "state", "postcode", "country"]
            .iter()
            .map(|name| ((*name).to_owned(), json!(self.field(name))))
            .collect()
    }

    /// Takes the other address's postal part, keeping nothing but the own e-mail.
    pub(super) fn copy_from(&mut self, other: &Self) {
        let email = std::mem::take(&mut self.email);
        *self = other.clone();
        self.email = email;
    }
}

/// The objections to `billing_address` and `shipping_address`, as one `rest_invalid_param`.
pub(super) fn check(
    addresses: &[(&'static str, &Address)],
    more: Option<(&'static str, &str, &str)>,
) -> Result<(), ApiError> {
    let mut params = Vec::new();
    for (name, address) in addresses {
        if let Some((code, message)) = address.objection() {
            params.push((*name, code.to_owned(), message));
        }
    }
    if let Some((name, code, message)) = more
        && !params.iter().any(|(known, ..)| *known == name)
    {
        params.push((name, code.to_owned(), message.to_owned()));
    }
    if params.is_empty() { Ok(()) } else { Err(ApiError::invalid_params(&params)) }
}

/// Strips tags and encodes a bare `&`, as the shop does with every text it is given.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '&' if depth == 0 => out.push_str("&amp;"),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.trim().to_owned()
}
