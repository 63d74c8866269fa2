//! Safe retries: keys, what they cover, what a repeat is told (`product.md` §3).
//!
//! A key covers one caller, one operation and one path id ([`Scope`]); a request is the same when its
//! [`Fingerprint`] is. The first final [`Answer`] is kept and repeated byte for byte. The rules that differ
//! by protocol version stand in one table ([`policy`]); the engine is one. Nothing here does I/O.

pub mod policy;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use policy::Policy;

/// What a key covers, as a digest of the tuple (shop, caller, operation, path id, key).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scope(String);

impl Scope {
    /// The digest of the tuple. Each part is preceded by its length, so that no text in one part can pass
    /// for the start of the next.
    #[must_use]
    pub fn of(shop: &str, caller: &str, operation: &str, path_id: &str, key: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [shop, caller, operation, path_id, key] {
            hash.update(part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        Self(data_encoding::HEXLOWER.encode(&hash.finalize()))
    }

    /// A scope read back from where it was stored.
    #[must_use]
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// The digest as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a request says: an HMAC of its body under a secret of this installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of a body. `canonical` is what the policy compares: canonical JSON (RFC 8785), or
    /// the raw bytes.
    #[must_use]
    pub fn of(secret: &[u8], canonical: &[u8]) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(secret).map(|mut mac| {
            mac.update(canonical);
            mac.finalize().into_bytes()
        });
        // HMAC takes keys of any length: the error cannot happen, and an empty digest would never match.
        Self(mac.map(|bytes| data_encoding::HEXLOWER.encode(&bytes)).unwrap_or_default())
    }

    /// A fingerprint read back from where it was stored.
    #[must_use]
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An answer as it went out: kept and repeated byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers that matter, beyond those of every answer (`Allow` and the like).
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer with a JSON body and no headers of its own.
    #[must_use]
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        // Wire types hold strings, integers and lists: they always serialize.
        Self { status, headers: Vec::new(), body: serde_json::to_vec(body).unwrap_or_default() }
    }

    /// Whether it is kept: every final answer except 5xx.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.status < 500 && self.status != 429
    }
}

/// A claimed key: the right to do the work, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What it covers.
    pub scope: Scope,
    /// Grows with every takeover: an old owner's writes fail.
    pub fence: u64,
    /// Whether the caller named a key: only then is the answer kept for repeats.
    pub keyed: bool,
}

/// What to do with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Do the work.
    Run(Claim),
    /// Repeat the first answer.
    Replay(Answer),
    /// The key was used for another request.
    Conflict,
    /// The first request is still running. `placing`: its order may be in the making.
    InFlight {
        /// Whether an order may be in the making.
        placing: bool,
    },
}

/// A key as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Reads a key: 1 to 255 printable ASCII characters, `!` to `~`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }

    /// As sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What two JSON bodies have in common when they mean the same: canonical JSON (RFC 8785). Member order and
/// white space do not count, `1` equals `1.0`, array order counts, `null` differs from absent. An empty
/// body equals `{}`.
#[must_use]
pub fn canonical_json(body: Option<&serde_json::Value>) -> Vec<u8> {
    let empty = serde_json::Value::Object(serde_json::Map::new());
    let value = body.unwrap_or(&empty);
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::arbitrary;

    fn same(left: &serde_json::Value, right: &serde_json::Value) -> bool {
        Fingerprint::of(b"s", &canonical_json(Some(left)))
            == Fingerprint::of(b"s", &canonical_json(Some(right)))
    }

    /// Requirements: A-026, D-12.
    #[test]
    fn meaning_counts_and_spelling_does_not() {
        assert!(same(&json!({"a": 1, "b": 2}), &json!({"b": 2.0, "a": 1})));
        assert!(!same(&json!([1, 2]), &json!([2, 1])));
        assert!(!same(&json!({"a": null}), &json!({})));
        assert_eq!(canonical_json(None), canonical_json(Some(&json!({}))));
    }

    #[test]
    fn no_text_in_one_part_passes_for_the_next() {
        assert_ne!(Scope::of("s", "c", "update", "ab", "c"), Scope::of("s", "c", "update", "a", "bc"));
        assert_ne!(Scope::of("s", "ca", "b", "", "k"), Scope::of("s", "c", "ab", "", "k"));
    }

    #[test]
    fn keys_are_printable_and_bounded() {
        assert!(Key::parse("\"quoted\"").is_some());
        for bad in ["", "with space", "tab\t", "ü", &"k".repeat(256)] {
            assert_eq!(Key::parse(bad), None, "{bad:?}");
        }
        assert!(Key::parse(&"k".repeat(255)).is_some());
    }

    fn good() -> Value {
        json!({"a": [1, {"b": null}], "c": "d"})
    }

    /// The same meaning: numbers by their value, members in any order.
    fn meaning(value: &Value) -> Value {
        match value {
            Value::Number(number) => json!(number.as_f64()),
            Value::Array(items) => items.iter().map(meaning).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), meaning(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// The same value written otherwise: members the other way round, more blanks, whole numbers with a fraction.
    fn respelled(value: &Value, out: &mut String) {
        match value {
            Value::Number(number) if number.is_i64() || number.is_u64() => {
                write!(out, "{number}.0e0").unwrap();
            }
            Value::Array(items) => {
                out.push_str("[ ");
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { " ,\n" });
                    respelled(item, out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (at, (name, item)) in members.iter().rev().enumerate() {
                    out.push_str(if at == 0 { "\t" } else { "," });
                    write!(out, "{} :", Value::from(name.as_str())).unwrap();
                    respelled(item, out);
                }
                out.push('}');
            }
            other => out.push_str(&other.to_string()),
        }
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn bodies_are_the_same_when_they_mean_the_same(left in arbitrary::json(), right in arbitrary::json()) {
            prop_assert_eq!(same(&left, &right), meaning(&left) == meaning(&right));
        }

        #[test]
        fn one_change_makes_another_body(value in arbitrary::json(), bent in arbitrary::bent(good())) {
            let good = good();
            prop_assert_eq!(same(&good, &bent), meaning(&good) == meaning(&bent));
            for (one, other) in [
                (json!([value]), json!([value, value])),
                (json!({"a": value}), json!({"b": value})),
                (json!({"a": value, "b": null}), json!({"a": value})),
            ] {
                prop_assert!(!same(&one, &other), "{} {}", one, other);
            }
        }

        #[test]
        fn spelling_never_counts(value in arbitrary::json()) {
            let mut text = String::new();
            respelled(&value, &mut text);
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(same(&value, &read), "{}", text);
            // The canonical form is its own.
            let canonical = canonical_json(Some(&value));
            let again: Value = serde_json::from_slice(&canonical).unwrap();
            prop_assert_eq!(canonical_json(Some(&again)), canonical);
        }

        /// Requirements: U-053, A-027.
        #[test]
        fn scopes_differ_when_any_part_does(parts in proptest::array::uniform5("[a-c:/]{0,4}"), at in 0_usize..5, other in "[a-c:/]{0,4}") {
            let mut changed = parts.clone();
            changed[at] = other;
            let scope = |p: &[String; 5]| Scope::of(&p[0], &p[1], &p[2], &p[3], &p[4]);
            prop_assert_eq!(parts == changed, scope(&parts) == scope(&changed));
        }
    }
}
