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

/// Whose matter a failure is: how loud the log is about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It belongs to busy days: others were there before. The repeated request finds its way.
    Passing,
    /// Something around the gateway: the shop, a state that changed its master, a process that stood still for long.
    Around,
    /// Ours, or our memory's.
    Ours,
}

impl Error {
    /// Whose matter it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Busy | Self::State(state::Error::Moved | state::Error::NotAdmitted) => Fault::Passing,
            Self::Store(_) | Self::State(state::Error::Quarantine { .. } | state::Error::ClaimLost) => {
                Fault::Around
            }
            Self::State(
                state::Error::AttemptClosed
                | state::Error::OrderTaken { .. }
                | state::Error::Unavailable(_)
                | state::Error::Unreadable(_),
            )
            | Self::BrokeOff => Fault::Ours,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repeated_request_heals_is_no_fault_of_ours() {
        let fault = |error: state::Error| Error::State(error).fault();
        assert_eq!(Error::Busy.fault(), Fault::Passing);
        assert_eq!(fault(state::Error::Moved), Fault::Passing);
        assert_eq!(fault(state::Error::Quarantine { retry_after_secs: 3 }), Fault::Around);
        assert_eq!(fault(state::Error::ClaimLost), Fault::Around);
        assert_eq!(fault(state::Error::Unreadable("a row".into())), Fault::Ours);
        assert_eq!(Error::BrokeOff.fault(), Fault::Ours);
    }
}
