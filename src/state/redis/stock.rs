//! Shelves in Redis: what the scripts in `lua/` are told, and what they say.
//!
//! A step is one JSON text; the shelves that it is about are keys, in the order of its `ids`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Redis, keys::Keys, number, said, script, strange};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::{Error, LEASE, StockStep, StockTurn},
    },
    stock::{
        Close, FRESH_MS, MOST_WAITING, OF_CALLER, REMEMBERED_MS, Reading, Reserve, Reserved, Shelf, Shelves,
        Shortage, Source, StockId, Units, Upper,
    },
};

/// The figures that the scripts share with [`crate::stock`], in front of their text.
pub(super) fn figures() -> String {
    format!(
        "local FRESH, MOST_WAITING, REMEMBERED = {FRESH_MS}, {MOST_WAITING}, {REMEMBERED_MS}\n\
         local OF_CALLER = '{OF_CALLER}'\n"
    )
}

/// What a script is told.
#[derive(Serialize, Default)]
struct Told<'a> {
    /// The shelves, in the order of their keys.
    ids: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    owner: &'a str,
    lease: u128,
    units: &'a [Units],
    readings: Vec<ReadingTold<'a>>,
    /// `pin`, `close` or `release`; in a commit.
    #[serde(skip_serializing_if = "str::is_empty")]
    turn: &'a str,
    /// How an attempt is closed.
    #[serde(skip_serializing_if = "str::is_empty")]
    how: &'a str,
    hold_ms: i64,
    shop_keeps: bool,
    enter: bool,
}

#[derive(Serialize)]
struct ReadingTold<'a> {
    stock: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<i64>,
    upper_is_free: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<i64>,
    takes_off_pending: bool,
    source: Source,
    from: u64,
}

impl<'a> ReadingTold<'a> {
    fn of(reading: &'a Reading) -> Self {
        Self {
            stock: reading.stock.as_str(),
            upper: match reading.upper {
                Upper::Number(number) | Upper::Free(number) => Some(number),
                Upper::Untold => None,
            },
            upper_is_free: matches!(reading.upper, Upper::Free(_)),
            lower: reading.lower,
            takes_off_pending: reading.takes_off_pending,
            source: reading.source,
            from: reading.from,
        }
    }
}

impl<'a> Told<'a> {
    fn about(units: &'a [Units], readings: &'a [Reading], owner: &'a str) -> Self {
        let mut ids: Vec<&str> = units.iter().map(|units| units.stock.as_str()).collect();
        ids.extend(readings.iter().map(|reading| reading.stock.as_str()));
        ids.sort_unstable();
        ids.dedup();
        let readings = readings.iter().map(ReadingTold::of).collect();
        Self { ids, owner, lease: LEASE.as_millis(), units, readings, ..Self::default() }
    }

    fn keys(&self, keys: &Keys) -> Vec<String> {
        self.ids.iter().map(|id| keys.shelf(id)).collect()
    }

    fn text(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Unreadable(format!("a step: {error}")))
    }
}

/// The part of a commit that is about the stock: its keys, and what the script is told.
pub(super) fn in_commit(step: &StockStep, keys: &Keys, owner: &str) -> Result<(Vec<String>, Vec<u8>), Error> {
    let readings: &[Reading] = match &step.turn {
        StockTurn::Pin(readings) => readings,
        StockTurn::Close(_) | StockTurn::Release => &[],
    };
    let mut told = Told::about(&step.units, readings, owner);
    told.session = Some(step.session.as_str());
    told.turn = match &step.turn {
        StockTurn::Pin(_) => "pin",
        StockTurn::Close(_) => "close",
        StockTurn::Release => "release",
    };
    if let StockTurn::Close(how) = &step.turn {
        told.how = match how {
            Close::Sold => "sold",
            Close::Kept => "kept",
            Close::Declined { .. } => "declined",
            Close::Released => "released",
        };
        if let Close::Declined { hold_ms, shop_keeps } = how {
            (told.hold_ms, told.shop_keeps) = (*hold_ms, *shop_keeps);
        }
    }
    Ok((told.keys(keys), told.text()?))
}

impl Redis {
    pub(super) async fn reserve_units(&self, shop: &ShopId, wish: &Reserve) -> Result<Reserved, Error> {
        let mut told = Told::about(&wish.units, &[], &self.owner);
        told.session = Some(&wish.session);
        (told.hold_ms, told.enter) = (wish.hold_ms, wish.enter);
        let value = self.run(&script::RESERVE, &self.stock_keys(shop, &told), &[told.text()?]).await?;
        let mut list: Vec<String> = redis::from_redis_value(value)
            .map_err(|error| Error::Unreadable(format!("a script's answer: {error}")))?;
        let answer = list.pop().unwrap_or_default();
        let Some(word) = list.first() else {
            return if answer == "full" { Ok(Reserved::Full) } else { Err(strange(&answer)) };
        };
        let stock = || StockId::new(list.get(1).map(String::as_str).unwrap_or_default());
        let told = number(answer.as_bytes())?;
        let refused = |reason| Reserved::Refused { stock: stock(), reason };
        Ok(match word.as_str() {
            "admitted" => Reserved::Admitted { mark: told },
            "waiting" => Reserved::Waiting { ahead: usize::try_from(told).unwrap_or(usize::MAX) },
            "sold_out" => refused(Shortage::SoldOut),
            "left" => refused(Shortage::Left(u32::try_from(told).unwrap_or(u32::MAX))),
            "held" => refused(Shortage::Held { retry_secs: told }),
            other => return Err(strange(other)),
        })
    }

    /// Takes readings, and what a session gives back; returns the sequence.
    pub(super) async fn shelve(
        &self,
        shop: &ShopId,
        readings: &[Reading],
        given: Option<(&SessionId, &[Units])>,
    ) -> Result<u64, Error> {
        let units = given.map(|(_, units)| units).unwrap_or_default();
        let mut told = Told::about(units, readings, &self.owner);
        told.session = given.map(|(session, _)| session.as_str());
        let value = self.run(&script::SHELVE, &self.stock_keys(shop, &told), &[told.text()?]).await?;
        let (text, _) = said(redis::Value::Array(vec![value]))?;
        number(text.as_bytes())
    }

    pub(super) async fn read_shelves(&self, shop: &ShopId, of: Option<&[StockId]>) -> Result<Shelves, Error> {
        let keys = self.keys(shop);
        let ids: Vec<StockId> = if let Some(ids) = of {
            ids.to_vec()
        } else {
            let all: Vec<String> = self.query(redis::cmd("SMEMBERS").arg(keys.shelves())).await?;
            all.into_iter().map(StockId::new).collect()
        };
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.query(&asking_for(&keys, &ids)).await?;
        shelves_of(ids, found)
    }

    fn stock_keys(&self, shop: &ShopId, told: &Told<'_>) -> Vec<String> {
        let keys = self.keys(shop);
        let mut names = vec![keys.owners(), keys.stock_sequence(), keys.shelves()];
        names.extend(told.keys(&keys));
        names
    }
}

/// The question for shelves.
pub(super) fn asking_for(keys: &Keys, ids: &[StockId]) -> redis::Cmd {
    let mut get = redis::cmd("MGET");
    for id in ids {
        get.arg(keys.shelf(id.as_str()));
    }
    get
}

/// Its answer; a shelf that is not there is left out.
pub(super) fn shelves_of(ids: Vec<StockId>, found: Vec<Option<String>>) -> Result<Shelves, Error> {
    ids.into_iter()
        .zip(found)
        .filter_map(|(id, body)| Some((id, body?)))
        .map(|(id, body)| {
            let found: Shelf = serde_json::from_str(&body)
                .map_err(|error| Error::Unreadable(format!("a shelf: {error}")))?;
            Ok((id, found))
        })
        .collect()
}
