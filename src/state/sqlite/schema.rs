//! Tables and their migrations. `PRAGMA user_version` counts the migrations that have run.

use std::path::Path;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::OpenError;
use crate::clock::Ids;

/// One step each; never changed once released, only added to.
const MIGRATIONS: [&str; 3] = [
    "
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
",
    "
    ALTER TABLE sessions ADD COLUMN review INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET review = 1 WHERE json_extract(body, '$.attempt.review') = 1;
    CREATE INDEX sessions_review ON sessions (shop, updated_at) WHERE review = 1;
    CREATE INDEX sessions_updated ON sessions (shop, updated_at);
    CREATE TABLE sightings (
        shop TEXT NOT NULL,
        shop_order TEXT NOT NULL,
        session TEXT NOT NULL,
        adopted INTEGER NOT NULL,
        first TEXT NOT NULL,
        last TEXT NOT NULL,
        PRIMARY KEY (shop, shop_order)
    ) STRICT;
    CREATE INDEX sightings_session ON sightings (shop, session);
    CREATE UNIQUE INDEX sightings_adopted ON sightings (shop, session) WHERE adopted = 1;
    INSERT INTO installation (name, value) VALUES ('epoch', CAST('0' AS BLOB));
",
    "
    CREATE TABLE shelves (
        shop TEXT NOT NULL,
        stock TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (shop, stock)
    ) STRICT;
    CREATE TABLE sequences (shop TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
",
];

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

/// Opens a connection that can only read, also beside a running gateway.
pub(super) fn connect_to_read(path: &Path) -> Result<Connection, OpenError> {
    // Not SQLITE_OPEN_READ_ONLY: reading a file in WAL mode may have to make its index anew.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "query_only", "ON")?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found.cmp(&known) {
        std::cmp::Ordering::Greater => Err(OpenError::Newer { path: path.to_owned(), found, known }),
        std::cmp::Ordering::Less => Err(OpenError::Older { path: path.to_owned(), found, known }),
        std::cmp::Ordering::Equal => Ok(connection),
    }
}

/// The state was put back from a copy: sessions of before may have orders that are unknown here.
pub(super) fn raise_epoch(connection: &Connection) -> Result<(), OpenError> {
    connection.execute(
        "UPDATE installation SET value = CAST(CAST(CAST(value AS TEXT) AS INTEGER) + 1 AS BLOB) WHERE name = 'epoch'",
        [],
    )?;
    Ok(())
}

/// The latest time that a start before has noted.
pub(super) fn last_time(connection: &Connection) -> Result<DateTime<Utc>, OpenError> {
    let noted = connection
        .query_row(
            "SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM installation WHERE name = 'time'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    Ok(noted.and_then(DateTime::from_timestamp_millis).unwrap_or_default())
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
