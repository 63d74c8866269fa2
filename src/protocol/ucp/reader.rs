//! Reads a body member by member and remembers where it is: a refusal names the field and its `JSONPath`.
//!
//! Known members have their type; `null` counts as absent; unknown members are never looked at.

use serde_json::{Map, Value};

/// Why a body is refused for its form (400). Texts hold no values of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `JSONPath` of the field.
    pub path: String,
    /// What is wrong with it; begins with its name.
    pub message: String,
}

/// A value of a body and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    value: &'a Value,
    path: String,
}

/// Longest id of any kind.
const MAX_ID: usize = 255;
/// Longest name of a member that a refusal repeats.
const MAX_NAME: usize = 64;

impl<'a> Node<'a> {
    /// The whole body.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: "$".to_owned() }
    }

    /// A refusal of this value.
    pub(crate) fn refuse(&self, what: &str) -> Refusal {
        let name = self.path.strip_prefix("$.").unwrap_or("the body");
        Refusal { path: self.path.clone(), message: format!("{name} {what}") }
    }

    fn object(&self) -> Result<&'a Map<String, Value>, Refusal> {
        self.value.as_object().ok_or_else(|| self.refuse("must be an object"))
    }

    /// The value, which must be an object.
    pub(crate) fn is_object(&self) -> Result<(), Refusal> {
        self.object().map(|_| ())
    }

    /// The path of a member whose name is the caller's own. A name that is long or cannot be printed is not
    /// repeated: the object is the place then.
    fn below(&self, name: &str) -> String {
        if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            return self.path.clone();
        }
        format!("{}['{}']", self.path, name.replace('\\', "\\\\").replace('\'', "\\'"))
    }

    /// The members of an object, by name.
    pub(crate) fn members(&self) -> Result<Vec<(&'a str, Self)>, Refusal> {
        let object = self.object()?;
        Ok(object
            .iter()
            .map(|(name, value)| (name.as_str(), Self { value, path: self.below(name) }))
            .collect())
    }

    /// A member of an object, when it is there.
    pub(crate) fn member(&self, name: &str) -> Result<Option<Self>, Refusal> {
        let value = self.object()?.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| Self { value, path: format!("{}.{name}", self.path) }))
    }

    /// A member that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<Self, Refusal> {
        self.member(name)?.ok_or_else(|| {
            Self { value: &Value::Null, path: format!("{}.{name}", self.path) }.refuse("is missing")
        })
    }

    /// The items of a list of at most `max`.
    pub(crate) fn items(&self, max: usize) -> Result<Vec<Self>, Refusal> {
        let list = self.value.as_array().ok_or_else(|| self.refuse("must be a list"))?;
        if list.len() > max {
            return Err(self.refuse(&format!("must not hold more than {max} items")));
        }
        let items = list.iter().enumerate();
        Ok(items.map(|(at, value)| Self { value, path: format!("{}[{at}]", self.path) }).collect())
    }

    /// A text of at most `max` characters without control characters.
    pub(crate) fn text(&self, max: usize) -> Result<String, Refusal> {
        let text = self.value.as_str().ok_or_else(|| self.refuse("must be a string"))?;
        if text.chars().count() > max {
            return Err(self.refuse(&format!("must not be longer than {max} characters")));
        }
        if text.chars().any(char::is_control) {
            return Err(self.refuse("must not hold control characters"));
        }
        Ok(text.to_owned())
    }

    /// A text that is not empty.
    pub(crate) fn id(&self) -> Result<String, Refusal> {
        let text = self.text(MAX_ID)?;
        if text.trim().is_empty() { Err(self.refuse("must not be empty")) } else { Ok(text) }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self) -> Result<bool, Refusal> {
        self.value.as_bool().ok_or_else(|| self.refuse("must be true or false"))
    }

    /// An integer from 1 to `max`; `2.0` is one.
    pub(crate) fn count(&self, max: u32) -> Result<u32, Refusal> {
        let count = match self.value {
            Value::Number(number) => {
                let text = number.to_string();
                text.strip_suffix(".0").unwrap_or(&text).parse().ok()
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        };
        count
            .filter(|count| (1..=max).contains(count))
            .ok_or_else(|| self.refuse(&format!("must be an integer from 1 to {max}")))
    }

    /// An integer of at least `least`; `2.0` is one.
    pub(crate) fn integer(&self, least: i64) -> Result<i64, Refusal> {
        let integer = match self.value {
            Value::Number(number) => {
                let text = number.to_string();
                text.strip_suffix(".0").unwrap_or(&text).parse().ok()
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        };
        integer
            .filter(|integer| *integer >= least)
            .ok_or_else(|| self.refuse(&format!("must be an integer of at least {least}")))
    }

    /// An optional text.
    pub(crate) fn text_member(&self, name: &str, max: usize) -> Result<Option<String>, Refusal> {
        self.member(name)?.map(|node| node.text(max)).transpose()
    }

    /// The value itself.
    pub(crate) const fn value(&self) -> &'a Value {
        self.value
    }
}
