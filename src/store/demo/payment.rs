//! The mock payment method `agent_token`: one list of tokens and what they come to.
//!
//! The token is the `payment_data` entry with the key `token`. Waiting happens without the shop's lock.

use std::time::Duration;

use serde_json::Value;

/// How a payment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Paid, or accepted (bank transfer, cash).
    Done,
    /// Refused, with the gateway's words.
    Declined(&'static str),
    /// Refused without a word.
    Silent,
    /// The buyer has to act on another page first.
    Challenge,
    /// Paid, but the answer never arrives.
    Lost,
}

const DECLINED: Outcome = Outcome::Declined("Your card was declined.");

/// Every token with its outcome and the time it takes; any other token is declined.
const TOKENS: &[(&[&str], Outcome, u64)] = &[
    (&["success_token", "tok_ok", "spt_test_ok"], Outcome::Done, 0),
    (&["fail_token", "tok_declined", "spt_test_declined"], DECLINED, 0),
    (&["challenge_token", "tok_3ds"], Outcome::Challenge, 0),
    (&["tok_slow"], Outcome::Done, 1000),
    (&["tok_slow_declined"], DECLINED, 2000),
    (&["tok_declined_silent"], Outcome::Silent, 0),
    (&["tok_throw"], Outcome::Declined("Processor is unreachable."), 0),
    (&["lost_answer_token"], Outcome::Lost, 0),
];

/// What a payment method and its data come to, and after which time.
pub(super) fn outcome(method: &str, data: Option<&Value>) -> (Outcome, Duration) {
    if method != "agent_token" {
        return (Outcome::Done, Duration::ZERO);
    }
    let token = data
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|entry| entry.get("key").and_then(Value::as_str) == Some("token"))
        .and_then(|entry| entry.get("value")?.as_str())
        .unwrap_or_default();
    TOKENS
        .iter()
        .find(|(names, ..)| names.contains(&token))
        .map_or((DECLINED, Duration::ZERO), |(_, outcome, millis)| (*outcome, Duration::from_millis(*millis)))
}

/// The method's name on orders.
pub(super) fn title(method: &str) -> &'static str {
    match method {
        "bacs" => "Direct bank transfer",
        "cheque" => "Check payments",
        "cod" => "Cash on delivery",
        "agent_token" => "Agent token",
        _ => "",
    }
}
