//! What came of a call, in the words of the domain; protocols turn it into an answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    problem::{Kind, Problem},
    session::Session,
};
use crate::{idempotency::Answer, stock::Shortage};

/// What came of a call.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A session was made.
    Created(Box<Session>),
    /// The session as it is now, after a read or a write that ran.
    Session(Box<Session>),
    /// An order may be in the making: the session unchanged. Never a first answer (`exactly-once.md` W16).
    InProgress(Box<Session>),
    /// A write on a session that has ended; nothing changed.
    Finished(Box<Session>),
    /// No such session, or another caller's.
    NotFound,
    /// Nothing that was asked for can be bought; no session was made.
    NothingAvailable(Vec<Problem>),
    /// An item that the shop does not know; nothing changed ([`super::command::UnknownItems::Refuse`]).
    UnknownItem {
        /// Its number in the request.
        index: usize,
        /// The item id as sent.
        item: String,
    },
    /// An option that is not on offer; nothing changed ([`super::command::UnknownOption::Refuse`]).
    UnknownOption {
        /// The option as sent.
        option: String,
    },
    /// A payment handler that is not offered; nothing changed.
    UnknownHandler {
        /// The handler as sent.
        handler: String,
    },
}

impl Outcome {
    /// Seconds after which the same may go better: others hold what was wanted.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        let (Self::Created(session) | Self::Session(session)) = self else { return None };
        session.problems.iter().find_map(|problem| match problem.kind {
            Kind::Short { reason: Shortage::Held { retry_secs }, .. } => Some(retry_secs),
            _ => None,
        })
    }
}

/// The operation that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Make a session.
    Create,
    /// Read it.
    Get,
    /// Change it.
    Update,
    /// Place its order.
    Complete,
    /// Give it up.
    Cancel,
}

impl Operation {
    /// The name used in keys and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::Update => "update",
            Self::Complete => "complete",
            Self::Cancel => "cancel",
        }
    }
}

/// How to render an answer, also when no request waits for it any more (a settled attempt).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderContext {
    /// `ucp` or `acp`.
    pub protocol: String,
    /// The version spoken.
    pub version: String,
    /// The operation.
    pub operation: Operation,
    /// What else the protocol needs (negotiated capabilities and the like); opaque here.
    pub details: Value,
}

/// Turns outcomes into answers; made by the composition root from the protocols.
pub trait Renderer: Send + Sync {
    /// The answer, complete: status, headers that matter, body.
    fn render(&self, context: &RenderContext, outcome: &Outcome) -> Answer;
}
