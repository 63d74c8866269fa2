//! ACP 2026-04-17: its request bodies and its session.

mod delivery;
mod messages;
mod parse;
mod payment;
mod render;
mod sums;
mod wire;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) use parse::{item_path, parse};
pub(super) use render::session;

/// The version.
pub(super) const DATE: &str = "2026-04-17";

/// The id of the one option of a session where nothing has to be shipped.
const DIGITAL_OPTION: &str = "digital";

/// What the session repeats of the requests and the domain does not read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Echo {
    /// Interventions that the agent can show, of those that may be needed.
    interventions: Vec<String>,
    /// Extensions that the agent asked for, of those that are served.
    extensions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quote_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    /// The items named with the last choice of an option.
    #[serde(skip_serializing_if = "Option::is_none")]
    item_ids: Option<Vec<String>>,
}
