//! Faults that can be switched on, at start or while the shop runs.
//!
//! A fault has a value (milliseconds, a number, or nothing), may be limited to the next N calls and to one kind
//! of call. As text: `NAME[=VALUE][,count=N][,only=KIND]`; as JSON for `PUT /_demo/faults`:
//! `{"NAME": true | false | VALUE | {"value": …, "count": …, "only": …}}`. `false` and `null` switch it off.
//!
//! A value is a number, or a text `MIN-MAX` or `MIN-MAX~MEAN`: each call then draws its own, on average in the
//! middle or at `MEAN`. `ALONE/CROWD`, each side such a value, goes from the first to the second as the requests that
//! run go from two to eight. What is drawn repeats itself in every fresh shop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Error;
use super::pace::{Chance, MEASURED, Pace, number};

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
    row(
        "measured",
        "",
        "set workers, delay_ms, prepare_ms, payment_ms, gap_ms and timeout_ms as they were measured at a real shop, alone \
         and crowded: it oversells as that one does",
    ),
    row("shrink", "units", "cut every line of a checkout to so many units without a word"),
    row("late_draft", "", "make an order only at POST checkout, as WooCommerce does from 10.9 on"),
];

/// Kinds of call a fault can be limited to.
pub const KINDS: &[&str] = &["checkout", "cart", "batch", "wcv3"];

#[derive(Debug, Clone, Default, Serialize)]
struct Fault {
    value: Pace,
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
    /// How many requests run at this moment.
    pub(super) running: Arc<AtomicU64>,
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
        let mut fault = Fault { value: Pace::read(value)?, ..Fault::default() };
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
                    self.remove(known.name);
                    continue;
                }
                Value::Bool(true) => Fault::default(),
                Value::Number(_) | Value::String(_) => {
                    Fault { value: Pace::read_json(value)?, ..Fault::default() }
                }
                Value::Object(members) => Fault {
                    value: members.get("value").map(Pace::read_json).transpose()?.unwrap_or_default(),
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
        if row.name == "measured" {
            return MEASURED.iter().try_for_each(|text| self.set_text(text));
        }
        self.on.insert(row.name, fault);
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.on.remove(name);
        if name == "measured" {
            self.on.retain(|name, _| !MEASURED.iter().any(|text| text.split('=').next() == Some(name)));
        }
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
        let value = fault.value.draw(self.running.load(Ordering::Relaxed), &mut self.chance);
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
    fn the_measured_times_are_set_and_taken_back_together() {
        let mut faults = Faults::default();
        faults.set_text("shrink=2").unwrap();
        faults.set_text("measured").unwrap();
        let on = faults.json();
        assert_eq!(on["workers"], json!({"value": 8}));
        assert_eq!(on["gap_ms"], json!({"value": "10-42~15/16-88~53"}));
        assert_eq!(on["delay_ms"]["only"], "checkout", "other calls are as quick as ever");
        assert_eq!(on.as_object().unwrap().len(), MEASURED.len() + 1);
        faults.running.store(8, Ordering::Relaxed);
        assert!((0..500).map(|_| faults.take("gap_ms").unwrap()).any(|gap| gap > 42), "slower in a crowd");
        faults.set_json(&json!({"measured": false})).unwrap();
        assert_eq!(faults.json(), json!({"shrink": {"value": 2}}));
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
