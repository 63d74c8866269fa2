//! Faults that can be switched on, at start or while the shop runs.
//!
//! A fault has a value (milliseconds, or nothing), may be limited to the next N calls and to one kind of call.
//! As text: `NAME[=VALUE][,count=N][,only=KIND]`; as JSON for `PUT /_demo/faults`:
//! `{"NAME": true | false | VALUE | {"value": …, "count": …, "only": …}}`. `false` and `null` switch it off.

use std::collections::BTreeMap;

use serde::Serialize;
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
];

/// Kinds of call a fault can be limited to.
pub const KINDS: &[&str] = &["checkout", "cart", "batch", "wcv3"];

#[derive(Debug, Clone, Default, Serialize)]
struct Fault {
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<String>,
}

/// The faults that are on.
#[derive(Debug, Default)]
pub(super) struct Faults(BTreeMap<&'static str, Fault>);

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
        let mut fault = Fault { value: number(value)?, ..Fault::default() };
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
                    self.0.remove(known.name);
                    continue;
                }
                Value::Bool(true) => Fault::default(),
                Value::Number(number) => {
                    Fault { value: number.as_u64().unwrap_or_default(), ..Fault::default() }
                }
                Value::Object(members) => Fault {
                    value: members.get("value").and_then(Value::as_u64).unwrap_or_default(),
                    count: members.get("count").and_then(Value::as_u64),
                    only: members.get("only").and_then(Value::as_str).map(str::to_owned),
                },
                _ => return Err(wrong(format!("`{name}` takes true, false, a number or an object"))),
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
        self.0.insert(row.name, fault);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn json(&self) -> Value {
        json!(self.0)
    }

    /// Uses a fault up for one call of this kind; tells its value if it is on.
    pub(super) fn take_for(&mut self, name: &str, kind: &str) -> Option<u64> {
        let fault = self.0.get_mut(name)?;
        if fault.only.as_ref().is_some_and(|only| only != kind) {
            return None;
        }
        match &mut fault.count {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None => {}
        }
        let value = fault.value;
        if fault.count == Some(0) {
            self.0.remove(name);
        }
        Some(value)
    }

    /// Whether a fault would hit a call of this kind; uses nothing up.
    pub(super) fn is_on(&self, name: &str, kind: &str) -> bool {
        self.0.get(name).is_some_and(|fault| {
            fault.only.as_ref().is_none_or(|only| only == kind) && fault.count != Some(0)
        })
    }

    /// The same for a checkout, or for any call.
    pub(super) fn take(&mut self, name: &str, checkout: bool) -> Option<u64> {
        self.take_for(name, if checkout { "checkout" } else { "" })
    }
}

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    wrong(format!("there is no fault `{name}`; there are {}", names.join(", ")))
}
