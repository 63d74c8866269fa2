//! The rules of safe retries that differ by protocol version, in one table; the engine is one.
//!
//! | | key on a write | compared | key with another request | a repeat is marked | meets an order in the making |
//! |---|---|---|---|---|---|
//! | UCP 2026-04-08 | may be left out | meaning of the JSON | 409 | no | the session as it is |
//! | UCP 2026-08-25 | may be left out | raw bytes | 409 | no | the session as it is |
//! | ACP before 2026-04-17 | may be left out | meaning of the JSON | 409 | no | 409 |
//! | ACP 2026-04-17 | is needed | meaning of the JSON | 422 | yes | 409 |
//!
//! Over MCP every version compares the tool and its arguments without `meta`: the JSON-RPC id and the key itself
//! differ from try to try.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::canonical_json;

/// What a protocol version asks of keys and repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether a write without a key is refused.
    pub key_required: bool,
    /// What two bodies have to have in common to be the same request.
    pub compares: Compares,
    /// The status of a key used for another request.
    pub conflict_status: u16,
    /// Whether a repeat is marked `Idempotent-Replayed: true`.
    pub marks_replays: bool,
    /// Whether a repeat that meets an order in the making is told the session rather than 409.
    pub tells_progress: bool,
}

/// What two bodies have to have in common to be the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compares {
    /// What they mean as JSON.
    Meaning,
    /// Every byte.
    Bytes,
}

/// A request, as far as a fingerprint covers it. Operation and path id are in the key's scope.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// Over REST.
    Rest {
        /// The body as it came.
        raw: &'a [u8],
        /// The body as it was read; `None` when it was empty.
        json: Option<&'a Value>,
    },
    /// A tool call over MCP.
    Tool {
        /// The tool's name.
        name: &'a str,
        /// Its arguments.
        arguments: &'a Value,
    },
}

impl Policy {
    /// What is compared of a request: fingerprints are made of it.
    #[must_use]
    pub fn compared(&self, body: Body<'_>) -> Vec<u8> {
        match (body, self.compares) {
            (Body::Rest { json, .. }, Compares::Meaning) => canonical_json(json),
            (Body::Rest { raw, .. }, Compares::Bytes) => Sha256::digest(raw).to_vec(),
            (Body::Tool { name, arguments }, _) => {
                let mut arguments = arguments.clone();
                if let Value::Object(members) = &mut arguments {
                    members.remove("meta");
                }
                canonical_json(Some(&Value::Array(vec![name.into(), arguments])))
            }
        }
    }
}

/// UCP 2026-04-08 (`ucp.md` (c)).
pub const UCP_2026_04_08: Policy = Policy {
    key_required: false,
    compares: Compares::Meaning,
    conflict_status: 409,
    marks_replays: false,
    tells_progress: true,
};

/// UCP 2026-08-25 (`ucp-2026-08-25.md` §16).
pub const UCP_2026_08_25: Policy = Policy { compares: Compares::Bytes, ..UCP_2026_04_08 };

/// ACP before 2026-04-17 (`acp.md` §3, the old text).
pub const ACP_BEFORE_2026_04_17: Policy = Policy {
    key_required: false,
    compares: Compares::Meaning,
    conflict_status: 409,
    marks_replays: false,
    tells_progress: false,
};

/// ACP 2026-04-17 (`acp.md` §3).
pub const ACP_2026_04_17: Policy =
    Policy { key_required: true, conflict_status: 422, marks_replays: true, ..ACP_BEFORE_2026_04_17 };

/// Seconds after which a repeat of a running request may come again.
pub const IN_FLIGHT_RETRY_SECS: u64 = 2;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: [Policy; 4] = [UCP_2026_04_08, UCP_2026_08_25, ACP_BEFORE_2026_04_17, ACP_2026_04_17];

    fn rest(policy: Policy, raw: &str) -> Vec<u8> {
        let json: Option<Value> = serde_json::from_str(raw).ok();
        policy.compared(Body::Rest { raw: raw.as_bytes(), json: json.as_ref() })
    }

    #[test]
    fn versions_differ_in_what_they_compare_and_answer() {
        for (policy, spelling_counts, required, conflict, marks, tells) in [
            (UCP_2026_04_08, false, false, 409, false, true),
            (UCP_2026_08_25, true, false, 409, false, true),
            (ACP_BEFORE_2026_04_17, false, false, 409, false, false),
            (ACP_2026_04_17, false, true, 422, true, false),
        ] {
            assert_eq!(rest(policy, r#"{"a":1,"b":2}"#), rest(policy, r#"{"a":1,"b":2}"#));
            let respelled = rest(policy, r#"{"b": 2.0, "a": 1}"#);
            assert_eq!(rest(policy, r#"{"a":1,"b":2}"#) != respelled, spelling_counts, "{policy:?}");
            assert_ne!(rest(policy, r#"{"a":1}"#), rest(policy, r#"{"a":2}"#), "{policy:?}");
            assert_ne!(rest(policy, r#"{"a":null}"#), rest(policy, "{}"), "{policy:?}");
            assert_eq!(rest(policy, "") == rest(policy, "{}"), !spelling_counts, "{policy:?}");
            assert_eq!(
                (policy.key_required, policy.conflict_status, policy.marks_replays, policy.tells_progress),
                (required, conflict, marks, tells)
            );
        }
    }

    /// A1 of the known faults: a retry has another JSON-RPC id, and that is no other request.
    #[test]
    fn a_tool_call_is_the_same_whatever_its_meta() {
        let call = |policy: Policy, name: &str, arguments: Value| {
            policy.compared(Body::Tool { name, arguments: &arguments })
        };
        for policy in ALL {
            let first = call(
                policy,
                "complete_checkout",
                json!({"meta": {"idempotency-key": "k"}, "id": "c", "x": 1}),
            );
            let again =
                call(policy, "complete_checkout", json!({"x": 1.0, "id": "c", "meta": {"request-id": "2"}}));
            assert_eq!(first, again, "{policy:?}");
            for other in [
                call(policy, "cancel_checkout", json!({"id": "c", "x": 1})),
                call(policy, "complete_checkout", json!({"id": "d", "x": 1})),
                call(policy, "complete_checkout", json!({"id": "c", "x": 1, "checkout": {"meta": 1}})),
            ] {
                assert_ne!(first, other, "{policy:?}");
            }
        }
    }
}
