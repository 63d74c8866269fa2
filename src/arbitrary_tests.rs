//! What property tests are made of: any JSON, a good body bent in one place, any header line; and how they run.

use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, RngSeed},
};
use serde_json::{Map, Number, Value};

/// The same cases every time: a gate must not depend on chance. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for
/// others.
pub(crate) fn config(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// Any text: plain, odd, empty, with control characters.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[ -~]{0,12}", 2 => any::<String>(), 1 => "\\PC{0,300}", 1 => Just(String::new())]
}

/// A number that every reader takes exactly.
fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        3 => (-1_000_i64..1_000).prop_map(Number::from),
        1 => (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Number::from),
        // Eighths have a short and exact spelling.
        2 => (-10_000_i32..10_000, "0|125|25|375|5|625|75|875").prop_map(|(whole, eighths)| {
            Number::from_f64(format!("{whole}.{eighths}").parse().unwrap()).unwrap()
        }),
    ]
}

/// Any JSON that is read as it is written.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number().prop_map(Value::Number),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A good body of which one part is another value, is missing, is there twice, or has something beside it.
pub(crate) fn bent(good: Value) -> impl Strategy<Value = Value> {
    let mut places = vec![String::new()];
    pointers(&good, "", &mut places);
    (any::<Index>(), 0..4, json(), text()).prop_map(move |(place, how, other, name)| {
        let mut body = good.clone();
        let place = place.get(&places);
        let Some(part) = body.pointer_mut(place) else { return other };
        match (how, part) {
            (0, Value::Object(members)) => {
                members.insert(name, other);
            }
            (1, Value::Object(members)) => {
                let first = members.keys().next().cloned();
                first.and_then(|first| members.remove(&first));
            }
            (0 | 1, Value::Array(items)) => items.push(other),
            (2, Value::Array(items)) => items.extend(items.clone()),
            (_, part) => *part = other,
        }
        body
    })
}

/// The pointers to all parts of a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in parts {
        let at = format!("{at}/{name}");
        found.push(at.clone());
        pointers(value, &at, found);
    }
}

/// The bytes of a header line: whatever the wire lets through.
pub(crate) fn header_line() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![8 => 0x20_u8..0x7f, 1 => Just(b'\t'), 1 => 0x80_u8..=0xff];
    let structured = r#"[a-z*]{0,3}[=;,()":?]{0,3}["a-z0-9 =:/.\\-]{0,12}"{0,2}[,;]?[a-z=" ]{0,8}"#;
    prop_oneof![
        2 => proptest::collection::vec(byte, 0..60),
        2 => structured.prop_map(String::into_bytes),
        1 => "[!-~]{240,270}".prop_map(String::into_bytes),
        1 => "[!-~]{1,40}".prop_map(String::into_bytes),
    ]
}

/// No control character, and no longer than that: what an answer may say of a request.
pub(crate) fn is_short_and_plain(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.chars().any(char::is_control)
}
