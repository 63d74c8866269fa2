//! What the writer does in one step. Every function runs inside a savepoint: an error leaves nothing behind.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use super::{super::Retention, OpenError, load, stock, unavailable};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{ClaimEnd, Commit, Error, Expect, NewClaim, Sighting},
    },
    idempotency::{Answer, Claim, Decision, Scope},
};

/// Frees what an earlier start of the program left running: claims without an attempt, and the carts of their
/// sessions, which may hold half a change. Claims with an attempt wait for its end.
pub(super) fn free_earlier_claims(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection.transaction()?;
    let touched: Vec<(String, String)> = transaction
        .prepare("SELECT shop, session FROM claims WHERE answer IS NULL AND attempt IS NULL AND session IS NOT NULL")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (shop, id) in touched {
        let unreadable = |error: Error| OpenError::Unreadable(error.to_string());
        let Some(mut session) =
            load(&transaction, &ShopId::new(shop), &SessionId::new(id)).map_err(unreadable)?
        else {
            continue;
        };
        if session.attempt.is_none() && !session.status.is_final() {
            let version = session.version;
            session.leave_cart();
            put(&transaction, &mut session, version + 1).map_err(unreadable)?;
        }
    }
    transaction.execute("DELETE FROM claims WHERE answer IS NULL AND attempt IS NULL", [])?;
    transaction.commit()?;
    Ok(())
}

/// Claims a key, or says what is known of it.
pub(super) fn claim(connection: &Connection, new: &NewClaim, now: DateTime<Utc>) -> Result<Decision, Error> {
    type Known = (String, Option<i64>, Option<String>, Option<i64>);
    let known: Option<Known> = connection
        .prepare_cached("SELECT fingerprint, attempt, answer, keep_until FROM claims WHERE scope = ?1")
        .and_then(|mut statement| {
            statement
                .query_row(params![new.scope.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })
                .optional()
        })
        .map_err(unavailable)?;
    if let Some((fingerprint, attempt, answer, keep_until)) = known {
        let swept = answer.is_some() && keep_until.is_some_and(|until| until <= now.timestamp_millis());
        if !swept {
            if fingerprint != new.fingerprint.as_str() {
                return Ok(Decision::Conflict);
            }
            return match answer {
                Some(answer) => serde_json::from_str(&answer)
                    .map(Decision::Replay)
                    .map_err(|error| Error::Unreadable(format!("an answer: {error}"))),
                None => Ok(Decision::InFlight { placing: attempt.is_some() }),
            };
        }
    }
    connection
        .prepare_cached(
            "INSERT INTO claims (scope, shop, session, fingerprint, fence) VALUES (?1, ?2, ?3, ?4, 1)
             ON CONFLICT (scope) DO UPDATE SET session = excluded.session, fingerprint = excluded.fingerprint,
                 fence = fence + 1, attempt = NULL, answer = NULL, keep_until = NULL",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                new.scope.as_str(),
                new.shop.as_str(),
                new.session.as_ref().map(SessionId::as_str),
                new.fingerprint.as_str()
            ])
        })
        .map_err(unavailable)?;
    let fence: i64 = connection
        .query_row("SELECT fence FROM claims WHERE scope = ?1", params![new.scope.as_str()], |row| row.get(0))
        .map_err(unavailable)?;
    Ok(Decision::Run(Claim {
        scope: new.scope.clone(),
        fence: u64::try_from(fence).unwrap_or_default(),
        keyed: new.keyed,
    }))
}

/// Takes one atomic step: session, claim and operation together.
pub(super) fn commit(
    connection: &Connection,
    commit: Commit,
    retention: Retention,
    (now, boot): (DateTime<Utc>, &str),
) -> Result<u64, Error> {
    let taken: Option<i64> = connection
        .prepare_cached("SELECT version FROM operations WHERE id = ?1")
        .and_then(|mut statement| statement.query_row(params![commit.operation], |row| row.get(0)).optional())
        .map_err(unavailable)?;
    if let Some(version) = taken {
        return Ok(u64::try_from(version).unwrap_or_default());
    }
    let mut version = 0;
    let mut lives_until = None;
    if let Some((mut session, expect)) = commit.session {
        version = next_version(connection, &session, expect)?;
        lives_until = Some(session.expires_at);
        put(connection, &mut session, version)?;
    }
    for sighting in &commit.sightings {
        see(connection, &commit.shop, sighting)?;
    }
    let keep_until = (now + retention.answers).max(lives_until.unwrap_or(now));
    end_claim(connection, commit.claim, keep_until)?;
    if let Some(step) = &commit.stock {
        stock::step(connection, stock::Desk { shop: &commit.shop, now, boot }, step)?;
    }
    connection
        .prepare_cached("INSERT INTO operations (id, version, at) VALUES (?1, ?2, ?3)")
        .and_then(|mut statement| {
            statement.execute(params![
                commit.operation,
                i64::try_from(version).unwrap_or_default(),
                now.timestamp_millis()
            ])
        })
        .map_err(unavailable)?;
    Ok(version)
}

/// Keeps an order that was seen. One that another session has seen before stays that one's; adopting it then fails,
/// and so does a second order of one session.
fn see(connection: &Connection, shop: &ShopId, sighting: &Sighting) -> Result<(), Error> {
    let body =
        serde_json::to_string(sighting).map_err(|error| Error::Unreadable(format!("a sighting: {error}")))?;
    let order = sighting.shop_order.as_str();
    let taken = || Error::OrderTaken { shop_order: order.to_owned() };
    let written = connection
        .prepare_cached(
            "INSERT INTO sightings (shop, shop_order, session, adopted, first, last) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
             ON CONFLICT (shop, shop_order) DO UPDATE SET last = excluded.last,
                 adopted = max(adopted, excluded.adopted) WHERE session = excluded.session",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                shop.as_str(),
                order,
                sighting.session.as_str(),
                sighting.adopted,
                body
            ])
        });
    match written {
        Ok(0) if sighting.adopted => Err(taken()),
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Err(taken()),
        Err(error) => Err(unavailable(error)),
    }
}

/// The version that the session gets, if what the writer expects is so.
fn next_version(connection: &Connection, session: &Session, expect: Expect) -> Result<u64, Error> {
    let stored: Option<(i64, Option<i64>)> = connection
        .prepare_cached("SELECT version, attempt FROM sessions WHERE shop = ?1 AND id = ?2")
        .and_then(|mut statement| {
            statement
                .query_row(params![session.shop.as_str(), session.id.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()
        })
        .map_err(unavailable)?;
    match (expect, stored) {
        (Expect::New, None) => Ok(1),
        (Expect::Version(expected), Some((version, _)))
            if i64::try_from(expected).is_ok_and(|expected| expected == version) =>
        {
            Ok(expected + 1)
        }
        (Expect::Attempt(number), Some((version, Some(open)))) if open == i64::from(number) => {
            Ok(u64::try_from(version).unwrap_or_default() + 1)
        }
        (Expect::Attempt(_), Some(_)) => Err(Error::AttemptClosed),
        (Expect::New | Expect::Version(_), _) | (Expect::Attempt(_), None) => Err(Error::Moved),
    }
}

fn put(connection: &Connection, session: &mut Session, version: u64) -> Result<(), Error> {
    session.version = version;
    let body =
        serde_json::to_string(session).map_err(|error| Error::Unreadable(format!("a session: {error}")))?;
    connection
        .prepare_cached(
            "INSERT INTO sessions (shop, id, version, ended, attempt, expires_at, updated_at, continue_token,
                 body, review, epoch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
                 (SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM installation WHERE name = 'epoch'))
             ON CONFLICT (shop, id) DO UPDATE SET version = excluded.version, ended = excluded.ended,
                 attempt = excluded.attempt, expires_at = excluded.expires_at,
                 updated_at = excluded.updated_at, body = excluded.body, review = excluded.review,
                 epoch = excluded.epoch",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                session.shop.as_str(),
                session.id.as_str(),
                i64::try_from(version).unwrap_or(i64::MAX),
                session.due_at().is_none(),
                session.attempt.as_ref().map(|attempt| attempt.number),
                session.due_at().unwrap_or(session.expires_at).timestamp_millis(),
                session.updated_at.timestamp_millis(),
                session.continue_token,
                body,
                session.wants_review()
            ])
        })
        .map_err(unavailable)?;
    Ok(())
}

/// Ends a claim. Whoever holds it must still hold it: a step of an old owner fails as a whole.
fn end_claim(connection: &Connection, end: ClaimEnd, keep_until: DateTime<Utc>) -> Result<(), Error> {
    let changed = match end {
        ClaimEnd::Keep => return Ok(()),
        ClaimEnd::Finish(claim, answer) => {
            finish(connection, &claim.scope, Some(claim.fence), &answer, keep_until)?
        }
        ClaimEnd::Release(claim) => release(connection, &claim.scope, Some(claim.fence))?,
        ClaimEnd::Attach(claim, attempt) => connection
            .prepare_cached(
                "UPDATE claims SET attempt = ?3 WHERE scope = ?1 AND fence = ?2 AND answer IS NULL",
            )
            .and_then(|mut statement| {
                statement.execute(params![claim.scope.as_str(), fence(claim.fence), attempt])
            })
            .map_err(unavailable)?,
        // The claim of a settled attempt may have been swept by hand; the session guards the order.
        ClaimEnd::FinishScope(scope, answer) => finish(connection, &scope, None, &answer, keep_until)?.max(1),
        ClaimEnd::ReleaseScope(scope) => release(connection, &scope, None)?.max(1),
    };
    if changed == 0 { Err(Error::ClaimLost) } else { Ok(()) }
}

fn finish(
    connection: &Connection,
    scope: &Scope,
    held: Option<u64>,
    answer: &Answer,
    keep_until: DateTime<Utc>,
) -> Result<usize, Error> {
    let body =
        serde_json::to_string(answer).map_err(|error| Error::Unreadable(format!("an answer: {error}")))?;
    connection
        .prepare_cached(
            "UPDATE claims SET answer = ?3, keep_until = ?4
             WHERE scope = ?1 AND (?2 IS NULL OR fence = ?2) AND answer IS NULL",
        )
        .and_then(|mut statement| {
            statement.execute(params![scope.as_str(), held.map(fence), body, keep_until.timestamp_millis()])
        })
        .map_err(unavailable)
}

/// Frees a claim. One that belongs to an attempt is freed only with the attempt, by scope.
fn release(connection: &Connection, scope: &Scope, held: Option<u64>) -> Result<usize, Error> {
    connection
        .prepare_cached(
            "DELETE FROM claims
             WHERE scope = ?1 AND (?2 IS NULL OR (fence = ?2 AND attempt IS NULL)) AND answer IS NULL",
        )
        .and_then(|mut statement| statement.execute(params![scope.as_str(), held.map(fence)]))
        .map_err(unavailable)
}

fn fence(fence: u64) -> i64 {
    i64::try_from(fence).unwrap_or(i64::MAX)
}

/// Removes answers that nobody may ask for any more, and sessions past their retention, with the orders that were
/// seen of them. A session that a person has to look at stays. Notes the time, which never goes back.
pub(super) fn sweep(connection: &Connection, retention: Retention, now: DateTime<Utc>) -> Result<(), Error> {
    let old = (now - retention.sessions).timestamp_millis();
    for (sql, before) in [
        ("DELETE FROM claims WHERE answer IS NOT NULL AND keep_until <= ?1", now.timestamp_millis()),
        (
            "DELETE FROM sightings WHERE (shop, session) IN (SELECT shop, id FROM sessions
                 WHERE ended = 1 AND attempt IS NULL AND review = 0 AND updated_at <= ?1)",
            old,
        ),
        ("DELETE FROM sessions WHERE ended = 1 AND attempt IS NULL AND review = 0 AND updated_at <= ?1", old),
        ("DELETE FROM operations WHERE at <= ?1", (now - chrono::Duration::hours(1)).timestamp_millis()),
        (
            "INSERT INTO installation (name, value) VALUES ('time', CAST(CAST(?1 AS TEXT) AS BLOB))
             ON CONFLICT DO UPDATE SET value = excluded.value",
            now.timestamp_millis(),
        ),
    ] {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params![before]))
            .map_err(unavailable)?;
    }
    Ok(())
}

/// Writes something that changes nothing: shows that the file takes writes.
pub(super) fn touch(connection: &Connection) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE installation SET value = value WHERE name = 'fingerprint_secret'")
        .and_then(|mut statement| statement.execute([]))
        .map(drop)
        .map_err(unavailable)
}
