//! The rules of safe retries that differ by protocol version, in one table.

/// What a protocol version asks of keys and repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether a write without a key is refused (ACP 2026-04-17, RC §6.4).
    pub key_required: bool,
    /// The status of a key used for another request.
    pub conflict_status: u16,
    /// Whether a repeat is marked `Idempotent-Replayed: true`.
    pub marks_replays: bool,
    /// Whether a repeat that meets an order in the making is told the session (UCP) or 409 (ACP).
    pub tells_progress: bool,
}

/// UCP 2026-04-08 (`ucp.md` (c)).
pub const UCP_2026_04_08: Policy =
    Policy { key_required: false, conflict_status: 409, marks_replays: false, tells_progress: true };

/// ACP 2026-04-17 (`acp.md` §3).
pub const ACP_2026_04_17: Policy =
    Policy { key_required: true, conflict_status: 422, marks_replays: true, tells_progress: false };

/// Seconds after which a repeat of a running request may come again.
pub const IN_FLIGHT_RETRY_SECS: u64 = 2;
