//! Why a call could not be answered.

use super::{state, store};

/// A shop may ask for any wait; more than this is not passed on.
const LONGEST_WAIT_SECS: u64 = 3_600;

/// Why a call could not be answered now. Nothing final was said: the key is free again, or still running.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too many wait for this session, or the wait took too long; nothing ran.
    #[error("too many requests wait for this session")]
    Busy,
    /// The shop could not be asked.
    #[error("the shop could not be asked")]
    Store(#[from] store::Error),
    /// The state could not be used.
    #[error("the state could not be used")]
    State(#[from] state::Error),
    /// The work broke off: a fault of ours. The session is as it was stored.
    #[error("the work broke off")]
    BrokeOff,
}

impl Error {
    /// Seconds after which the caller may try again.
    #[must_use]
    pub fn retry_after_secs(&self) -> u64 {
        match self {
            Self::Busy => 1,
            Self::Store(error) => shop_wait_secs(error),
            Self::State(state::Error::Quarantine { retry_after_secs }) => *retry_after_secs,
            Self::State(_) | Self::BrokeOff => 2,
        }
    }
}

/// Seconds after which a shop that could not be asked may be asked again.
#[must_use]
pub fn shop_wait_secs(error: &store::Error) -> u64 {
    error.retry_after_secs().unwrap_or(5).clamp(1, LONGEST_WAIT_SECS)
}
