//! One stock id: its members, its counts, and the two bounds that follow from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FRESH_MS, REMEMBERED_MS, Reading, Shortage, Source, Upper};

/// A number that was read from the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number.
    pub number: i64,
    /// Where it comes from.
    pub source: Source,
    /// The sequence when the reading began.
    pub from: u64,
    /// The sequence when it had ended.
    pub to: u64,
    /// When it had ended, by the state's clock, in milliseconds.
    pub at: i64,
    /// Whether units of unpaid orders are taken off already.
    #[serde(default)]
    pub takes_off_pending: bool,
}

/// How far a member has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It holds units for a while.
    Soft,
    /// It is through the gate and about to place its order.
    Admitted,
    /// Its attempt is open: a `POST` may run.
    Open,
    /// Its order waits to be paid; no `POST` runs.
    Kept,
    /// It has bought.
    Sold,
}

/// A session on a shelf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// How many units.
    pub quantity: u32,
    /// How far it has got.
    pub stage: Stage,
    /// What it holds or was admitted to ends then, by the state's clock; a sale was made then. Milliseconds.
    pub at: i64,
    /// The process that is at work on it: what one that is gone was about to do counts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its place in the shop's one queue, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
    /// The sequence when its attempt was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<u64>,
    /// The sequence when it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<u64>,
    /// Since this number of the sequence the shop keeps the units for its unpaid order too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shop_keeps: Option<u64>,
    /// From this number on the shop may have had an unpaid order for the units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpaid_from: Option<u64>,
    /// By this number the shop had let go of them; `None`: it may have that order still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpaid_to: Option<u64>,
}

impl Member {
    /// One that only holds.
    pub(super) const fn soft(quantity: u32, until: i64) -> Self {
        Self {
            quantity,
            stage: Stage::Soft,
            at: until,
            owner: None,
            ticket: None,
            opened: None,
            closed: None,
            shop_keeps: None,
            unpaid_from: None,
            unpaid_to: None,
        }
    }

    fn units(&self) -> i64 {
        i64::from(self.quantity)
    }

    /// Whether it began after a reading had ended: the count does not know of it.
    fn is_out_of(&self, count: &Count) -> bool {
        self.opened.is_some_and(|opened| opened > count.to)
    }

    /// Whether a count may be without its units already, because the shop took off those of its unpaid order.
    fn may_be_off(&self, count: &Count) -> bool {
        count.takes_off_pending
            && self.unpaid_from.is_some_and(|from| from <= count.to)
            && self.unpaid_to.is_none_or(|to| to > count.from)
    }

    /// Whether it was over before a reading began: the count knows of it.
    fn is_in(&self, count: &Count) -> bool {
        self.closed.is_some_and(|closed| closed <= count.from)
    }
}

/// All that is known of one stock id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shelf {
    /// The most that can be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<Count>,
    /// The least that can be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<Count>,
    /// Its members by session.
    #[serde(default)]
    pub members: BTreeMap<String, Member>,
}

impl Shelf {
    /// The most that a session can get: the count without what others hold, and what it does not know of. `None`:
    /// nobody knows; that refuses nothing.
    #[must_use]
    pub fn upper_bound(&self, session: &str) -> Option<i64> {
        self.upper.map(|count| self.most(&count, session))
    }

    fn most(&self, count: &Count, session: &str) -> i64 {
        let taken = self.others(session).filter(|(_, member)| match member.stage {
            Stage::Soft | Stage::Admitted | Stage::Kept => !member.may_be_off(count),
            Stage::Open | Stage::Sold => member.is_out_of(count) && !member.may_be_off(count),
        });
        count.number + self.own_off(count, session) - taken.map(|(_, member)| member.units()).sum::<i64>()
    }

    /// What a count is without because the shop keeps it for the session itself: that is its own to have.
    fn own_off(&self, count: &Count, session: &str) -> i64 {
        self.members.get(session).filter(|own| own.may_be_off(count)).map_or(0, Member::units)
    }

    /// The least that a session can get, whatever runs. `None`: nobody knows, or the count is too old.
    #[must_use]
    pub fn lower_bound(&self, session: &str, now: i64) -> Option<i64> {
        self.lower.filter(|count| now - count.at <= FRESH_MS).map(|count| self.least(&count, session))
    }

    fn least(&self, count: &Count, session: &str) -> i64 {
        let taken = self.others(session).filter(|(_, member)| match member.stage {
            Stage::Soft => {
                let known = member.shop_keeps.is_some_and(|since| since <= count.from);
                !(count.takes_off_pending && known)
            }
            Stage::Admitted | Stage::Kept | Stage::Open => true,
            Stage::Sold => !member.is_in(count),
        });
        count.number - taken.map(|(_, member)| member.units()).sum::<i64>()
    }

    /// Why a session cannot have so many, by the upper count.
    #[must_use]
    pub fn shortage(&self, session: &str, quantity: u32, now: i64) -> Option<Shortage> {
        let count = self.upper?;
        if self.most(&count, session) >= i64::from(quantity) {
            return None;
        }
        let mut left = count.number + self.own_off(&count, session);
        for (_, other) in self.others(session) {
            if other.may_be_off(&count) {
                // Off the count, but perhaps only held: what is not sold may come back.
                left += if other.stage == Stage::Sold { 0 } else { other.units() };
            } else if other.stage == Stage::Sold && other.is_out_of(&count) {
                left -= other.units();
            }
        }
        Some(match u32::try_from(left) {
            Err(_) | Ok(0) => Shortage::SoldOut,
            Ok(left) if left < quantity => Shortage::Left(left),
            Ok(_) => Shortage::Held { retry_secs: self.held_for(session, now) },
        })
    }

    /// The least and the most that a new reading, begun at this number of the sequence, says of the upper count if
    /// nobody but us has taken units or brought any. `None`: the count before is unknown, or of another source.
    #[must_use]
    pub fn explained(&self, source: Source, from: u64) -> Option<(i64, i64)> {
        let old = self.upper.filter(|old| old.source == source)?;
        let sum = |counts: &dyn Fn(&Member) -> bool| -> i64 {
            self.members.values().filter(|member| counts(member)).map(Member::units).sum()
        };
        let perhaps = sum(&|member| match member.stage {
            Stage::Open | Stage::Kept => true,
            Stage::Sold => !member.is_in(&old),
            Stage::Soft | Stage::Admitted => false,
        });
        let surely = sum(&|member| {
            let is_over = member.closed.is_some_and(|closed| closed <= from);
            member.stage == Stage::Sold && member.is_out_of(&old) && is_over
        });
        Some((old.number - perhaps, old.number - surely))
    }

    /// Seconds until one of the others may be over.
    fn held_for(&self, session: &str, now: i64) -> u64 {
        let waits = self.others(session).filter_map(|(_, member)| match member.stage {
            Stage::Soft if member.ticket.is_none() => Some((member.at - now + 999) / 1_000),
            Stage::Soft | Stage::Admitted | Stage::Open => Some(5),
            Stage::Kept => Some(60),
            Stage::Sold => None,
        });
        waits.min().map_or(1, |secs| u64::try_from(secs).unwrap_or(1).max(1))
    }

    /// Whether another session's order runs, or is about to.
    #[must_use]
    pub fn is_busy(&self, session: &str) -> bool {
        self.others(session).any(|(_, member)| matches!(member.stage, Stage::Admitted | Stage::Open))
    }

    /// Whether another session's `POST` may run.
    #[must_use]
    pub fn has_open(&self, session: &str) -> bool {
        self.others(session).any(|(_, member)| member.stage == Stage::Open)
    }

    /// How many others that wait come before a ticket; all of them when there is none.
    #[must_use]
    pub fn ahead(&self, session: &str, ticket: Option<u64>) -> usize {
        let before = |other: u64| ticket.is_none_or(|ticket| other < ticket);
        let waits = |member: &Member| member.stage == Stage::Soft && member.ticket.is_some_and(before);
        self.others(session).filter(|(_, member)| waits(member)).count()
    }

    /// Whether nothing is told by it any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.upper.is_none() && self.lower.is_none()
    }

    fn others(&self, session: &str) -> impl Iterator<Item = (&String, &Member)> {
        self.members.iter().filter(move |(of, _)| of.as_str() != session)
    }

    /// Forgets what is over: holds past their time, what processes that are gone were about to do, sales that every
    /// count knows of.
    pub(super) fn prune(&mut self, now: i64, lives: &dyn Fn(&str) -> bool) {
        let (upper, lower) = (self.upper, self.lower.filter(|count| now - count.at <= FRESH_MS));
        self.members.retain(|_, member| {
            let gone = member.owner.as_deref().is_some_and(|owner| !lives(owner));
            if gone && matches!(member.stage, Stage::Soft | Stage::Admitted) {
                // What it was about to do is void; the session still holds its units, and may come back.
                (member.stage, member.ticket, member.owner) = (Stage::Soft, None, None);
            }
            match member.stage {
                Stage::Soft | Stage::Admitted => member.at > now,
                Stage::Open | Stage::Kept => true,
                Stage::Sold => {
                    now - member.at <= REMEMBERED_MS
                        || upper.is_some_and(|count| member.is_out_of(&count))
                        || lower.is_some_and(|count| !member.is_in(&count))
                }
            }
        });
    }

    /// Takes a reading that ends now.
    pub(super) fn observe(&mut self, reading: &Reading, to: u64, now: i64) {
        let count = |number, takes_off_pending| Count {
            number,
            source: reading.source,
            from: reading.from,
            to,
            at: now,
            takes_off_pending,
        };
        match reading.upper {
            Upper::Number(number) | Upper::Free(number) => {
                let new = count(number, matches!(reading.upper, Upper::Free(_)));
                if self.upper.is_none_or(|old| self.raises_rightly(&old, &new)) {
                    self.upper = Some(new);
                }
            }
            Upper::Untold => self.upper = self.upper.filter(|old| old.source != reading.source),
        }
        if let Some(number) = reading.lower {
            let new = count(number, reading.takes_off_pending);
            let old = self.lower.filter(|old| now - old.at <= FRESH_MS && self.explains(old, number));
            // Both are right: the one that knows more of what runs allows more.
            if old.is_none_or(|old| self.least(&old, "") < self.least(&new, "")) {
                self.lower = Some(new);
            }
        }
    }

    /// A clean reading replaces an upper count. One during which an order ran may only lower it: it could say too
    /// much, as if the order were not. An old one is replaced by anything.
    fn raises_rightly(&self, old: &Count, new: &Count) -> bool {
        let unsure = self.members.values().any(|member| match member.stage {
            Stage::Open => true,
            Stage::Sold => !member.is_in(new),
            Stage::Soft | Stage::Admitted | Stage::Kept => false,
        });
        new.from >= old.from
            && (!unsure || self.most(new, "") < self.most(old, "") || new.at - old.at > 10 * REMEMBERED_MS)
    }

    /// Whether what has happened here since an older count explains a smaller number: then nobody else has bought.
    fn explains(&self, old: &Count, number: i64) -> bool {
        let ours = self.members.values().filter(|member| match member.stage {
            Stage::Open | Stage::Kept => true,
            Stage::Sold => !member.is_in(old),
            Stage::Soft => member.shop_keeps.is_some(),
            Stage::Admitted => false,
        });
        number >= old.number - ours.map(Member::units).sum::<i64>()
    }
}
