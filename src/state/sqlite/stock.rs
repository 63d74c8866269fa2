//! Shelves in SQLite: the steps of [`crate::stock`] on the rows that they are about, inside the transaction.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::unavailable;
use crate::{
    checkout::{
        ids::ShopId,
        state::{Error, StockStep},
    },
    stock::{self, Moment, Reading, Reserve, Reserved, Shelves, StockId, Units},
};

/// Which shop, when, and which start of the program: what an earlier one was about to do counts no more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) shop: &'a ShopId,
    pub(super) now: DateTime<Utc>,
    pub(super) boot: &'a str,
}

pub(super) fn reserve(connection: &Connection, desk: Desk<'_>, wish: &Reserve) -> Result<Reserved, Error> {
    let ids = wish.units.iter().map(|units| &units.stock);
    changed(connection, desk, ids, |shelves, moment| Ok(stock::reserve(shelves, wish, moment)))
}

pub(super) fn observe(connection: &Connection, desk: Desk<'_>, readings: &[Reading]) -> Result<u64, Error> {
    changed(connection, desk, readings.iter().map(|reading| &reading.stock), |shelves, moment| {
        stock::observe(shelves, readings, moment);
        Ok(*moment.sequence)
    })
}

pub(super) fn give_back(
    connection: &Connection,
    desk: Desk<'_>,
    session: &str,
    units: &[Units],
) -> Result<(), Error> {
    changed(connection, desk, units.iter().map(|units| &units.stock), |shelves, _| {
        stock::release(shelves, session, units);
        Ok(())
    })
}

/// The part of a commit that is about the stock.
pub(super) fn step(connection: &Connection, desk: Desk<'_>, step: &StockStep) -> Result<(), Error> {
    changed(connection, desk, step.shelves(), |shelves, moment| step.take(shelves, moment))
}

/// Reads shelves: of these ids, or all.
pub(super) fn read(connection: &Connection, shop: &ShopId, of: Option<&[StockId]>) -> Result<Shelves, Error> {
    if let Some(ids) = of {
        return ids
            .iter()
            .filter_map(|id| Some((id.clone(), load(connection, shop, id).transpose()?)))
            .map(|(id, found)| Ok((id, found?)))
            .collect();
    }
    let mut statement =
        connection.prepare_cached("SELECT stock, body FROM shelves WHERE shop = ?1").map_err(unavailable)?;
    let rows = statement
        .query_map(params![shop.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(unavailable)?;
    rows.map(|row| {
        let (id, body): (String, String) = row.map_err(unavailable)?;
        Ok((StockId::new(id), decoded(&body)?))
    })
    .collect()
}

fn load(connection: &Connection, shop: &ShopId, id: &StockId) -> Result<Option<stock::Shelf>, Error> {
    let body: Option<String> = connection
        .prepare_cached("SELECT body FROM shelves WHERE shop = ?1 AND stock = ?2")
        .and_then(|mut statement| {
            statement.query_row(params![shop.as_str(), id.as_str()], |row| row.get(0)).optional()
        })
        .map_err(unavailable)?;
    body.map(|body| decoded(&body)).transpose()
}

fn decoded(body: &str) -> Result<stock::Shelf, Error> {
    serde_json::from_str(body).map_err(|error| Error::Unreadable(format!("a shelf: {error}")))
}

/// Takes a step on the shelves that it is about, and stores what it changed.
fn changed<'a, T>(
    connection: &Connection,
    desk: Desk<'_>,
    ids: impl Iterator<Item = &'a StockId>,
    step: impl FnOnce(&mut Shelves, &mut Moment<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut shelves: Shelves = BTreeMap::new();
    for id in ids {
        if !shelves.contains_key(id) {
            shelves.insert(id.clone(), load(connection, desk.shop, id)?.unwrap_or_default());
        }
    }
    let before = shelves.clone();
    let found: Option<i64> = connection
        .prepare_cached("SELECT number FROM sequences WHERE shop = ?1")
        .and_then(|mut statement| {
            statement.query_row(params![desk.shop.as_str()], |row| row.get(0)).optional()
        })
        .map_err(unavailable)?;
    let was = found.and_then(|number| u64::try_from(number).ok()).unwrap_or_default();
    let mut sequence = was;
    let mut moment = Moment {
        now: desk.now.timestamp_millis(),
        owner: desk.boot,
        lives: &|owner| owner == desk.boot,
        sequence: &mut sequence,
    };
    let outcome = step(&mut shelves, &mut moment)?;
    for (id, shelf) in shelves.iter().filter(|(id, shelf)| before.get(*id) != Some(*shelf)) {
        store(connection, desk.shop, id, shelf)?;
    }
    if sequence != was {
        connection
            .prepare_cached(
                "INSERT INTO sequences (shop, number) VALUES (?1, ?2)
                 ON CONFLICT (shop) DO UPDATE SET number = excluded.number",
            )
            .and_then(|mut statement| {
                statement.execute(params![desk.shop.as_str(), i64::try_from(sequence).unwrap_or(i64::MAX)])
            })
            .map_err(unavailable)?;
    }
    Ok(outcome)
}

fn store(connection: &Connection, shop: &ShopId, id: &StockId, shelf: &stock::Shelf) -> Result<(), Error> {
    let written = if shelf.is_empty() {
        connection
            .prepare_cached("DELETE FROM shelves WHERE shop = ?1 AND stock = ?2")
            .and_then(|mut statement| statement.execute(params![shop.as_str(), id.as_str()]))
    } else {
        let body =
            serde_json::to_string(shelf).map_err(|error| Error::Unreadable(format!("a shelf: {error}")))?;
        connection
            .prepare_cached(
                "INSERT INTO shelves (shop, stock, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (shop, stock) DO UPDATE SET body = excluded.body",
            )
            .and_then(|mut statement| statement.execute(params![shop.as_str(), id.as_str(), body]))
    };
    written.map(drop).map_err(unavailable)
}
