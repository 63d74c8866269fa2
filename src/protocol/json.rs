//! Strict JSON at the edge: bounded depth, no duplicate members, no number that a double would bend.
//!
//! RFC 8259 text in UTF-8. What can fail: [`Error`], always the caller's fault (400); the path says where.

use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest integer that every JSON reader takes exactly.
const MAX_SAFE: u64 = 9_007_199_254_740_991;

/// Why a body is refused. Texts hold no values of the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, for people.
    pub message: String,
}

/// Reads a body.
///
/// # Errors
/// [`Error`] for text that is not JSON or not UTF-8, deeper than `max_depth`, with a member named twice, or
/// with an integer beyond ±(2^53 − 1).
pub fn parse(bytes: &[u8], max_depth: usize) -> Result<Value, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error { message: "the body is not UTF-8".into() })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: max_depth }.deserialize(&mut deserializer).map_err(|e| refused(&e))?;
    deserializer.end().map_err(|e| refused(&e))?;
    Ok(value)
}

fn refused(error: &serde_json::Error) -> Error {
    let place = format!("line {} column {}", error.line(), error.column());
    let message = match error.classify() {
        serde_json::error::Category::Data => {
            let text = error.to_string();
            text.split(" at line ").next().unwrap_or("the body is refused").to_owned()
        }
        _ => format!("the body is not valid JSON ({place})"),
    };
    Error { message }
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        self.depth
            .checked_sub(1)
            .map(|depth| Self { depth })
            .ok_or_else(|| E::custom("the body is nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_SAFE {
            Err(E::custom("a number is too large"))
        } else {
            Ok(Value::Number(value.into()))
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_SAFE {
            Err(E::custom("a number is too large"))
        } else {
            Ok(Value::Number(value.into()))
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(deeper)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(deeper)?;
            if map.insert(name, value).is_some() {
                return Err(de::Error::custom("a member is named twice in one object"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    #[test]
    fn refuses_what_two_readers_would_read_differently() {
        for (body, why) in [
            (&br#"{"a":1,"a":2}"#[..], "named twice"),
            (br#"{"a":{"b":1,"b":1}}"#, "named twice"),
            (b"9007199254740993", "too large"),
            (b"-9007199254740993", "too large"),
            (b"[[[[]]]]", "too deep"),
            (b"{", "not valid JSON"),
            (b"[1] 2", "not valid JSON"),
            (b"\"\\ud800\"", "not valid JSON"),
            (b"1e999", "not valid JSON"),
            (b"\xff", "not UTF-8"),
            (b"", "not valid JSON"),
        ] {
            let error = parse(body, 3).unwrap_err().message;
            assert!(error.contains(why), "{body:?}: {error}");
        }
        assert_eq!(parse(b"[[[9007199254740991]]]", 3).unwrap().to_string(), "[[[9007199254740991]]]");
    }

    /// How deep a value is nested.
    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn what_is_written_is_read_up_to_the_depth(value in arbitrary::json(), most in 0_usize..6, pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            match parse(text.unwrap().as_bytes(), most) {
                Ok(read) => prop_assert!(read == value && depth(&value) <= most),
                Err(error) => {
                    prop_assert!(depth(&value) > most, "{}", error);
                    prop_assert!(error.message.contains("too deep"));
                }
            }
        }

        #[test]
        fn a_name_that_comes_twice_is_refused_at_any_depth(
            value in arbitrary::json(), name in arbitrary::text(), around in 0_usize..8,
        ) {
            let name = Value::from(name);
            let (open, close) = ("[{\"a\":".repeat(around), "}]".repeat(around));
            let twice = format!("{open}{{{name}:{value},\"\\u0000other\":1,{name}:{value}}}{close}");
            prop_assert!(parse(twice.as_bytes(), 100).is_err());
        }

        #[test]
        fn numbers_beyond_a_double_are_refused(digits in "[1-9][0-9]{16,400}", negative: bool) {
            let text = format!("{}{digits}", if negative { "-" } else { "" });
            if let Ok(read) = parse(text.as_bytes(), 1) {
                // Beyond 64 bits it is a float, told as such.
                prop_assert!(digits.len() > 18 && read.is_f64(), "{}", read);
            }
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_word_of_it(text in arbitrary::text()) {
            if let Err(error) = parse(text.as_bytes(), 4) {
                prop_assert!(arbitrary::is_short_and_plain(&error.message, 120), "{}", error);
            }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, 32);
        }
    }
}
