//! Tables and their migrations. `PRAGMA user_version` counts the migrations that have run.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::OpenError;
use crate::clock::Ids;

/// One step each; never changed once released, only added to.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE installation (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
    CREATE TABLE claims (
        scope TEXT PRIMARY KEY,
        shop TEXT NOT NULL,
        session TEXT,
        fingerprint TEXT NOT NULL,
        fence INTEGER NOT NULL,
        attempt INTEGER,
        answer TEXT,
        keep_until INTEGER
    ) STRICT;
    CREATE INDEX claims_done ON claims (keep_until) WHERE answer IS NOT NULL;
    CREATE TABLE sessions (
        shop TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        attempt INTEGER,
        expires_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        continue_token TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (shop, id)
    ) STRICT;
    CREATE INDEX sessions_open_attempts ON sessions (shop) WHERE attempt IS NOT NULL;
    CREATE UNIQUE INDEX sessions_continue ON sessions (continue_token);
    CREATE INDEX sessions_open ON sessions (shop, expires_at) WHERE ended = 0;
    CREATE TABLE operations (id TEXT PRIMARY KEY, version INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;
    CREATE INDEX operations_at ON operations (at);
"];

/// Opens a connection with the settings that the promises rest on.
pub(super) fn connect(path: &Path) -> Result<Connection, OpenError> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// Brings the file to the newest format.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    for (step, number) in MIGRATIONS.iter().zip(1..).skip(usize::try_from(found).unwrap_or_default()) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

/// The installation's secret, made at the first start.
pub(super) fn secret(connection: &Connection) -> Result<Vec<u8>, OpenError> {
    let name = "fingerprint_secret";
    connection.execute(
        "INSERT OR IGNORE INTO installation (name, value) VALUES (?1, ?2)",
        params![name, Ids.secret().as_slice()],
    )?;
    let value = connection
        .query_row("SELECT value FROM installation WHERE name = ?1", params![name], |row| row.get(0))
        .optional()?;
    value.ok_or_else(|| OpenError::Unreadable("the fingerprint secret is missing".into()))
}
