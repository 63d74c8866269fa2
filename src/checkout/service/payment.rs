//! From an instrument of an agent to a payment method of the shop. Credentials pass through memory only.

use serde_json::Value;

use super::{PaymentHandler, Service};
use crate::checkout::{command::Instrument, session::Cart, showing::offered};

impl Service {
    /// From an instrument to what the shop's payment method wants.
    pub(super) fn payment(&self, cart: &Cart, instrument: Option<&Instrument>) -> Result<Payment, Unpayable> {
        if !cart.view.needs_payment {
            return Ok(Payment { method: None, data: Vec::new() });
        }
        let instrument = instrument.ok_or(Unpayable::Missing)?;
        let handler = self
            .settings
            .handlers
            .iter()
            .find(|handler| handler.id == instrument.handler && offered(handler, &cart.view))
            .ok_or_else(|| Unpayable::UnknownHandler(instrument.handler.clone()))?;
        let data = filled(handler, instrument).ok_or(Unpayable::Missing)?;
        Ok(Payment { method: Some(handler.method.clone()), data })
    }
}

/// What goes to the shop's payment method. Holds the credential: no `Debug`.
pub(super) struct Payment {
    pub(super) method: Option<String>,
    pub(super) data: Vec<(String, String)>,
}

/// Why an instrument cannot be charged.
pub(super) enum Unpayable {
    /// It is missing, or lacks what the handler needs.
    Missing,
    /// Its handler is not offered for this cart.
    UnknownHandler(String),
}

/// Fills a handler's templates; `None` when the instrument lacks a part.
fn filled(handler: &PaymentHandler, instrument: &Instrument) -> Option<Vec<(String, String)>> {
    handler.data.iter().map(|(key, template)| Some((key.clone(), fill(template, instrument)?))).collect()
}

/// Fills the `{…}` of one template: `{instrument.type}`, `{credential.NAME}` with dots for depth.
fn fill(template: &str, instrument: &Instrument) -> Option<String> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        if name == "instrument.type" {
            filled.push_str(&instrument.kind);
        } else {
            let path = name.strip_prefix("credential.")?;
            let value = path.split('.').try_fold(&instrument.credential, |value, part| value.get(part))?;
            match value {
                Value::String(text) => filled.push_str(text),
                Value::Number(number) => filled.push_str(&number.to_string()),
                Value::Bool(flag) => filled.push_str(if *flag { "true" } else { "false" }),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}
