//! Typed reading of a request body, with the place of every refusal as a `JSONPath` (RFC 9535).
//!
//! Members that nobody asks for are never looked at: unknown members are tolerated, wrong types of known ones
//! are not (`acp.md` D-19).

use serde_json::{Map, Value};

use crate::checkout::command::Patch;

/// The longest text that is taken where nothing shorter is said.
pub(super) const MAX_TEXT: usize = 1_000;

/// A refusal for the body's form. Holds no value of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The code of the error.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: &'static str,
    /// Where in the request.
    pub(super) param: String,
}

impl Form {
    /// The same refusal under another code.
    pub(super) fn coded(self, code: &'static str) -> Self {
        Self { code, ..self }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    /// The body itself.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: "$".to_owned() }
    }

    /// The value as it was sent.
    pub(super) const fn value(&self) -> &'a Value {
        self.value
    }

    /// Where it stands.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A refusal of this value.
    pub(super) fn refuse(&self, code: &'static str, message: &'static str) -> Form {
        Form { code, message, param: self.path.clone() }
    }

    /// A refusal of this value for its form.
    pub(super) fn invalid(&self, message: &'static str) -> Form {
        self.refuse("invalid", message)
    }

    /// An object.
    pub(super) fn object(&self) -> Result<Object<'a>, Form> {
        let members = self.value.as_object().ok_or_else(|| self.invalid("This must be an object."))?;
        Ok(Object { members, path: self.path.clone() })
    }

    /// A list.
    pub(super) fn list(&self) -> Result<Vec<Self>, Form> {
        let items = self.value.as_array().ok_or_else(|| self.invalid("This must be an array."))?;
        let node = |(index, value)| Node { value, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// A text of one line and of bounded length: without control characters.
    pub(super) fn text_up_to(&self, most: usize) -> Result<&'a str, Form> {
        let text = self.lines_up_to(most)?;
        if text.contains(char::is_control) {
            return Err(self.invalid("This text must not hold control characters."));
        }
        Ok(text)
    }

    /// A text of lines and of bounded length: without control characters but tab and the ends of lines.
    pub(super) fn lines_up_to(&self, most: usize) -> Result<&'a str, Form> {
        let text = self.value.as_str().ok_or_else(|| self.invalid("This must be a string."))?;
        if text.chars().count() > most {
            return Err(self.invalid("This text is too long."));
        }
        if text.contains(|symbol: char| symbol.is_control() && !matches!(symbol, '\n' | '\r' | '\t')) {
            return Err(self.invalid("This text must not hold control characters."));
        }
        Ok(text)
    }

    /// A text.
    pub(super) fn text(&self) -> Result<&'a str, Form> {
        self.text_up_to(MAX_TEXT)
    }

    /// A text that says something.
    pub(super) fn filled(&self) -> Result<&'a str, Form> {
        let text = self.text()?;
        if text.trim().is_empty() { Err(self.invalid("This must not be empty.")) } else { Ok(text) }
    }

    /// An e-mail address, by its outer form.
    pub(super) fn email(&self) -> Result<&'a str, Form> {
        let text = self.text()?.trim();
        if looks_like_email(text) { Ok(text) } else { Err(self.invalid("This must be an e-mail address.")) }
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self) -> Result<bool, Form> {
        self.value.as_bool().ok_or_else(|| self.invalid("This must be true or false."))
    }

    /// A whole number from 1 to `most`; `2.0` is 2.
    pub(super) fn count(&self, most: u32) -> Result<u32, Form> {
        let refusal = || self.invalid("This must be a whole number that is at least 1 and not too large.");
        let number = self.value.as_number().ok_or_else(refusal)?.to_string();
        let whole = number.strip_suffix(".0").unwrap_or(&number);
        let count: u32 = whole.parse().map_err(|_| refusal())?;
        if (1..=most).contains(&count) { Ok(count) } else { Err(refusal()) }
    }
}

/// Whether a text has the outer form of an e-mail address.
pub(super) fn looks_like_email(text: &str) -> bool {
    text.split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.contains(char::is_whitespace)
}

/// An object and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    members: &'a Map<String, Value>,
    path: String,
}

impl<'a> Object<'a> {
    /// How many members it has.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The values of all members. Their names are the caller's, so their place is the object's.
    pub(super) fn values(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.members.values()
    }

    /// Whether a member is there at all, `null` included.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// A member; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        Some(Node { value, path: format!("{}.{name}", self.path) })
    }

    /// A member that must be there.
    pub(super) fn need(&self, name: &str) -> Result<Node<'a>, Form> {
        self.get(name).ok_or_else(|| Form {
            code: "missing_required_field",
            message: "This member is required.",
            param: format!("{}.{name}", self.path),
        })
    }

    /// A member of a partial change: absent keeps, `null` clears.
    pub(super) fn patch<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Node<'a>) -> Result<T, Form>,
    ) -> Result<Patch<T>, Form> {
        match (self.get(name), self.has(name)) {
            (Some(node), _) => read(&node).map(Patch::Set),
            (None, true) => Ok(Patch::Clear),
            (None, false) => Ok(Patch::Keep),
        }
    }

    /// A text of a partial change; an empty one clears.
    pub(super) fn patch_text(&self, name: &str) -> Result<Patch<String>, Form> {
        Ok(match self.patch(name, |node| Ok(node.text()?.trim().to_owned()))? {
            Patch::Set(text) if text.is_empty() => Patch::Clear,
            Patch::Set(text) => Patch::Set(text),
            Patch::Clear => Patch::Clear,
            Patch::Keep => Patch::Keep,
        })
    }

    /// A text that may be absent.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&'a str>, Form> {
        self.get(name).map(|node| node.text()).transpose()
    }

    /// Checks the type of objects that are taken and not used.
    pub(super) fn accept_objects(&self, names: &[&str]) -> Result<(), Form> {
        names.iter().filter_map(|name| self.get(name)).try_for_each(|node| node.object().map(drop))
    }

    /// Checks the type of texts that are taken and not used.
    pub(super) fn accept_texts(&self, names: &[&str]) -> Result<(), Form> {
        names.iter().filter_map(|name| self.get(name)).try_for_each(|node| node.text().map(drop))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_is_whole_and_bounded() {
        for (value, want) in [(json!(1), Some(1)), (json!(2.0), Some(2)), (json!(9), Some(9))] {
            assert_eq!(Node::root(&value).count(9).ok(), want, "{value}");
        }
        for value in
            [json!(0), json!(-1), json!(1.5), json!(10), json!("1"), json!(true), json!(null), json!(1e300)]
        {
            assert_eq!(Node::root(&value).count(9).unwrap_err().param, "$", "{value}");
        }
    }

    #[test]
    fn absent_keeps_null_clears_and_empty_text_clears() {
        let value = json!({"a": null, "b": "", "c": " x "});
        let object = Node::root(&value).object().unwrap();
        assert_eq!(object.patch_text("z").unwrap(), Patch::Keep);
        assert_eq!(object.patch_text("a").unwrap(), Patch::Clear);
        assert_eq!(object.patch_text("b").unwrap(), Patch::Clear);
        assert_eq!(object.patch_text("c").unwrap(), Patch::Set("x".into()));
    }

    #[test]
    fn email_addresses_have_one_at_sign_and_no_blanks() {
        assert!(looks_like_email("a@b"));
        for bad in ["", "a", "@b", "a@", "a@b@c", "a b@c"] {
            assert!(!looks_like_email(bad), "{bad}");
        }
    }
}
