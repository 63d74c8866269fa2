//! Our memory: back ends of [`crate::checkout::state::State`].
//!
//! - [`sqlite`]: embedded and durable, one process per data folder.
//! - [`redis`]: shared by several processes.

pub mod redis;
pub mod sqlite;

pub use self::{redis::Redis, sqlite::Sqlite};

use crate::checkout::{
    session::{FORMAT, Session},
    state::Error,
};

/// How long answers and sessions are kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// An answer, after it was given; never shorter than its session.
    pub answers: chrono::Duration,
    /// A session, after it ended.
    pub sessions: chrono::Duration,
}

/// A stored session, with the version that stands beside it.
fn decoded(version: u64, body: &str) -> Result<Session, Error> {
    let mut session: Session =
        serde_json::from_str(body).map_err(|error| Error::Unreadable(format!("a session: {error}")))?;
    if session.format > FORMAT {
        return Err(Error::Unreadable(format!("session format {} is newer than {FORMAT}", session.format)));
    }
    session.version = version;
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_a_newer_format_is_refused() {
        let error = decoded(1, "{\"format\": 99}").unwrap_err();
        assert!(matches!(error, Error::Unreadable(_)));
    }
}
