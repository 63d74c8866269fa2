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
