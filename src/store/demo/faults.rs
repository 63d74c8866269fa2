//! Faults that can be switched on, at start or while the shop runs.
//!
//! A fault has a value (milliseconds, a number, or nothing), may be limited to the next N calls and to one kind
//! of call. As text: `NAME[=VALUE][,count=N][,only=KIND]`; as JSON for `PUT /_demo/faults`:
//! `{"NAME": true | false | VALUE | {"value": …, "count": …, "only": …}}`. `false` and `null` switch it off.
//!
//! A value is a number, or a text `MIN-MAX` or `MIN-MAX~MEAN`: each call then draws its own, on average in the
//! middle or at `MEAN`. What is drawn repeats itself in every fresh shop.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Error;

/// A row of [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What to write.
    pub name: &'static str,
    /// What its value means; empty for a fault without one.
    pub value: &'static str,
    /// What it does.
    pub what: &'static str,
}

const fn row(name: &'static str, value: &'static str, what: &'static str) -> Row {
    Row { name, value, what }
}

/// Every fault there is.
pub const TABLE: &[Row] = &[
    row("delay_ms", "milliseconds", "wait before doing what was asked"),
    row("timeout_ms", "milliseconds", "do what was asked, then wait before answering"),
    row(
        "slow_ms",
        "milliseconds",
        "do what was asked, but write the cart back only then: calls of one cart overlap",
    ),
    row("http_500", "", "answer 500 internal_server_error and do nothing"),
    row("html", "", "do what was asked, answer 200 with an HTML page"),
    row("maintenance", "", "answer 503 with an HTML page and do nothing"),
    row("limiter", "", "answer 400 rate_limit_exceeded and do nothing"),
    row("dead_token", "", "treat every Cart-Token as expired"),
    row("noise", "", "put a PHP notice before the JSON"),
    row("lost_answer", "", "do what was asked, then close the connection without an answer"),
    row("500_after_payment", "", "take the payment of a checkout, then answer 500 and keep the cart"),
    row(
        "500_while_paying",
        "",
        "note the transaction of a checkout's payment, then answer 500: the order stays pending, the cart full",
    ),
    row(
        "workers",
        "how many",
        "so many requests run at one time; the others wait in line and run even if their client has gone",
    ),
    row(
        "prepare_ms",
        "milliseconds",
        "wait in a checkout between its checks and its hold on stock and coupon",
    ),
    row("payment_ms", "milliseconds", "make every payment take that much longer"),
    row("gap_ms", "milliseconds", "wait between the status of a paid order and the cut in stock"),
    row("shrink", "units", "cut every line of a checkout to so many units without a word"),
    row("late_draft", "", "make an order only at POST checkout, as WooCommerce does from 10.9 on"),
];

/// Kinds of call a fault can be limited to.
pub const KINDS: &[&str] = &["checkout", "cart", "batch", "wcv3"];

/// What a fault's value is drawn from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Range {
    least: u64,
    most: u64,
    mean: Option<u64>,
}

impl Range {
    /// Reads `5`, `10-88` or `10-88~40`.
    fn read(text: &str) -> Result<Self, Error> {
        let number =
            |text: &str| text.trim().parse::<u64>().map_err(|_| wrong(format!("`{text}` is no number")));
        let (range, mean) = match text.split_once('~') {
            Some((range, mean)) => (range, Some(number(mean)?)),
            None => (text, None),
        };
        let (least, most) = match range.split_once('-') {
            Some((least, most)) => (number(least)?, number(most)?),
            None => (number(range)?, number(range)?),
        };
        if least > most || mean.is_some_and(|mean| mean < least || mean > most) {
            return Err(wrong(format!("`{text}` is no range: MIN-MAX~MEAN with MIN ≤ MEAN ≤ MAX is wanted")));
        }
        Ok(Self { least, most, mean })
    }

    fn read_json(value: &Value) -> Result<Self, Error> {
        match value {
            Value::Number(number) => Self::read(&number.to_string()),
            Value::String(text) => Self::read(text),
            _ => Err(wrong("a value is a number or a text like 10-88~40")),
        }
    }

    /// Evenly from both sides of the mean, so often from each that the average is the mean.
    fn draw(self, chance: &mut Chance) -> u64 {
        if self.least == self.most {
            return self.least;
        }
        let Some(mean) = self.mean else { return chance.between(self.least, self.most) };
        let low = chance.below(self.most - self.least) < self.most - mean;
        if low { chance.between(self.least, mean) } else { chance.between(mean, self.most) }
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.least == self.most, self.mean) {
            (true, _) => serializer.serialize_u64(self.least),
            (false, None) => serializer.collect_str(&format_args!("{}-{}", self.least, self.most)),
            (false, Some(mean)) => {
                serializer.collect_str(&format_args!("{}-{}~{mean}", self.least, self.most))
            }
        }
    }
}

/// Numbers that look like chance and are the same in every run (`SplitMix64`).
#[derive(Debug, Default)]
struct Chance(u64);

impl Chance {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, but not including, `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or_default()
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below((most - least).saturating_add(1)))
    }
}

#[derive(Debug, Clone, Default, Serialize)]
struct Fault {
    value: Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<String>,
}

/// The faults that are on.
#[derive(Debug, Default)]
pub(super) struct Faults {
    on: BTreeMap<&'static str, Fault>,
    chance: Chance,
}

fn wrong(text: impl Into<String>) -> Error {
    Error::Fault(text.into())
}

impl Faults {
    /// Switches a fault on from its text form.
    pub(super) fn set_text(&mut self, text: &str) -> Result<(), Error> {
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let (name, value) = first.split_once('=').unwrap_or((first, "0"));
        let number =
            |text: &str| text.trim().parse::<u64>().map_err(|_| wrong(format!("`{text}` is no number")));
        let mut fault = Fault { value: Range::read(value)?, ..Fault::default() };
        for part in parts {
            match part.trim().split_once('=') {
                Some(("count", count)) => fault.count = Some(number(count)?),
                Some(("only", only)) => fault.only = Some(only.to_owned()),
                _ => return Err(wrong(format!("`{part}` is neither count=N nor only=KIND"))),
            }
        }
        self.insert(name.trim(), fault)
    }

    /// Switches faults on and off from their JSON form.
    pub(super) fn set_json(&mut self, settings: &Value) -> Result<(), Error> {
        let settings = settings.as_object().ok_or_else(|| wrong("an object {name: value} is wanted"))?;
        for (name, value) in settings {
            let fault = match value {
                Value::Null | Value::Bool(false) => {
                    let known = TABLE.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))?;
                    self.on.remove(known.name);
                    continue;
                }
                Value::Bool(true) => Fault::default(),
                Value::Number(_) | Value::String(_) => {
                    Fault { value: Range::read_json(value)?, ..Fault::default() }
                }
                Value::Object(members) => Fault {
                    value: members.get("value").map(Range::read_json).transpose()?.unwrap_or_default(),
                    count: members.get("count").and_then(Value::as_u64),
                    only: members.get("only").and_then(Value::as_str).map(str::to_owned),
                },
                _ => {
                    return Err(wrong(format!("`{name}` takes true, false, a number, a range or an object")));
                }
            };
            self.insert(name, fault)?;
        }
        Ok(())
    }

    fn insert(&mut self, name: &str, fault: Fault) -> Result<(), Error> {
        let row = TABLE.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))?;
        if let Some(only) = &fault.only
            && !KINDS.contains(&only.as_str())
        {
            return Err(wrong(format!("`{only}` is not one of {}", KINDS.join(", "))));
        }
        self.on.insert(row.name, fault);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.on.clear();
    }

    pub(super) fn json(&self) -> Value {
        json!(self.on)
    }

    /// Uses a fault up for one call of this kind; tells its value if it is on.
    pub(super) fn take_for(&mut self, name: &str, kind: &str) -> Option<u64> {
        let fault = self.on.get_mut(name)?;
        if fault.only.as_ref().is_some_and(|only| only != kind) {
            return None;
        }
        match &mut fault.count {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None => {}
        }
        let value = fault.value.draw(&mut self.chance);
        if fault.count == Some(0) {
            self.on.remove(name);
        }
        Some(value)
    }

    /// Whether a fault would hit a call of this kind; uses nothing up.
    pub(super) fn is_on(&self, name: &str, kind: &str) -> bool {
        self.on.get(name).is_some_and(|fault| {
            fault.only.as_ref().is_none_or(|only| only == kind) && fault.count != Some(0)
        })
    }

    /// The same for a checkout.
    pub(super) fn take(&mut self, name: &str) -> Option<u64> {
        self.take_for(name, "checkout")
    }

    /// The same for a checkout's fault that is a time.
    pub(super) fn take_time(&mut self, name: &str) -> Duration {
        Duration::from_millis(self.take(name).unwrap_or_default())
    }
}

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    wrong(format!("there is no fault `{name}`; there are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str, count: usize) -> Vec<u64> {
        let mut faults = Faults::default();
        faults.set_text(text).unwrap();
        (0..count).map(|_| faults.take("gap_ms").unwrap()).collect()
    }

    #[test]
    fn a_range_is_drawn_from_end_to_end_around_its_mean_and_alike_each_time() {
        for (text, mean) in [("gap_ms=10-88", 49.0), ("gap_ms=10-88~20", 20.0), ("gap_ms=10-88~80", 80.0)] {
            let drawn = draws(text, 20_000);
            assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&10), Some(&88)), "{text}");
            let sum: u64 = drawn.iter().sum();
            let average = f64::from(u32::try_from(sum).unwrap()) / 20_000.0;
            assert!((average - mean).abs() < 1.0, "{text}: {average}");
            assert_eq!(drawn, draws(text, 20_000));
        }
        assert_eq!(draws("gap_ms=7", 2), [7, 7]);
        assert_eq!(draws("gap_ms=0-18446744073709551615", 2).len(), 2);
    }

    #[test]
    fn a_range_is_told_as_it_was_set_and_nonsense_is_refused() {
        let mut faults = Faults::default();
        faults
            .set_json(&json!({"gap_ms": "10-88~40", "workers": 8, "payment_ms": {"value": "5-9"}}))
            .unwrap();
        let told = json!({
            "gap_ms": {"value": "10-88~40"}, "workers": {"value": 8}, "payment_ms": {"value": "5-9"},
        });
        assert_eq!(faults.json(), told);
        for text in ["gap_ms=9-5", "gap_ms=1-5~6", "gap_ms=1-5~0", "gap_ms=-3", "gap_ms=1-", "gap_ms=x"] {
            assert!(faults.set_text(text).is_err(), "{text}");
        }
        for value in [json!("a"), json!(-1), json!(1.5), json!([1]), json!({"value": null})] {
            assert!(faults.set_json(&json!({"gap_ms": value})).is_err(), "{value}");
        }
        assert_eq!(faults.json(), told);
    }
}
