//! When an attempt is looked for again: soon after it was lost, every few seconds while something can come of it,
//! more and more slowly while the shop cannot be asked, for ever.
//!
//! Each process keeps this for itself and in memory: two that look do no harm, and a new start looks at once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};

use crate::checkout::ids::SessionId;

/// Between two looks that somebody is waiting for.
const HURRY: TimeDelta = TimeDelta::seconds(2);

/// The longest time between two looks while the shop cannot be asked: an order is told soon after it answers again.
const SLOWEST: TimeDelta = TimeDelta::seconds(8);

/// An attempt that is open for longer than this is told to people once.
const ALARM: TimeDelta = TimeDelta::minutes(15);

/// The times of all open attempts that this process has looked for.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<HashMap<SessionId, Due>>);

#[derive(Debug, Clone, Copy)]
struct Due {
    last: DateTime<Utc>,
    next: DateTime<Utc>,
    /// Looks in a row that failed.
    failed: u32,
    alarmed: bool,
}

impl Pace {
    fn dues(&self) -> MutexGuard<'_, HashMap<SessionId, Due>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a look is due. A clock that was set back makes it due.
    pub(super) fn is_due(&self, id: &SessionId, now: DateTime<Utc>) -> bool {
        self.dues().get(id).is_none_or(|due| now >= due.next || now < due.last)
    }

    /// A look has been taken; the next one is due after `wait`.
    pub(super) fn looked(&self, id: &SessionId, now: DateTime<Utc>, wait: TimeDelta) {
        self.set(id, now, wait, 0);
    }

    /// A look has failed: the next one comes later each time. Nothing is decided by how often that happens.
    pub(super) fn failed(&self, id: &SessionId, now: DateTime<Utc>) {
        let failed = self.dues().get(id).map_or(0, |due| due.failed).saturating_add(1);
        let wait = (HURRY * 2_i32.pow(failed.min(3) - 1)).min(SLOWEST);
        self.set(id, now, wait, failed);
    }

    fn set(&self, id: &SessionId, now: DateTime<Utc>, wait: TimeDelta, failed: u32) {
        let mut dues = self.dues();
        let alarmed = dues.get(id).is_some_and(|due| due.alarmed);
        dues.insert(id.clone(), Due { last: now, next: now + wait, failed, alarmed });
    }

    /// Somebody asks for it: the next look comes as soon as it may.
    pub(super) fn hurry(&self, id: &SessionId) {
        if let Some(due) = self.dues().get_mut(id) {
            due.next = due.next.min(due.last + HURRY);
        }
    }

    /// Whether an attempt that is open since then is to be told to people now: once, when it is open for too long.
    pub(super) fn is_alarming(&self, id: &SessionId, now: DateTime<Utc>, since: DateTime<Utc>) -> bool {
        let mut dues = self.dues();
        let Some(due) = dues.get_mut(id).filter(|due| now - since >= ALARM && !due.alarmed) else {
            return false;
        };
        due.alarmed = true;
        true
    }

    /// Forgets all that are not open any more.
    pub(super) fn keep_only(&self, open: &HashSet<&SessionId>) {
        self.dues().retain(|id, _| open.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_000 + second, 0).unwrap()
    }

    #[test]
    fn looks_that_fail_come_more_and_more_slowly_and_for_ever() {
        let (pace, id) = (Pace::default(), SessionId::new("chk_1"));
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..6 {
            assert!(pace.is_due(&id, at(now)));
            pace.failed(&id, at(now));
            let wait = (1..100).find(|wait| pace.is_due(&id, at(now + wait))).unwrap();
            waits.push(wait);
            now += wait;
        }
        assert_eq!(waits, [2, 4, 8, 8, 8, 8]);
        pace.looked(&id, at(now), TimeDelta::seconds(5));
        assert!(!pace.is_due(&id, at(now + 4)) && pace.is_due(&id, at(now + 5)));
        assert!(pace.is_due(&id, at(now - 1)), "the clock was set back");
    }

    #[test]
    fn who_asks_brings_the_next_look_forward_and_no_further() {
        let (pace, id) = (Pace::default(), SessionId::new("chk_1"));
        pace.hurry(&id);
        assert!(pace.is_due(&id, at(0)), "never looked for: at once");
        pace.looked(&id, at(0), TimeDelta::seconds(600));
        pace.hurry(&id);
        pace.hurry(&id);
        assert!(!pace.is_due(&id, at(1)) && pace.is_due(&id, at(2)));
    }

    #[test]
    fn an_attempt_that_stays_open_is_told_once() {
        let (pace, id) = (Pace::default(), SessionId::new("chk_1"));
        pace.failed(&id, at(0));
        assert!(!pace.is_alarming(&id, at(899), at(0)));
        assert!(pace.is_alarming(&id, at(900), at(0)));
        pace.failed(&id, at(902));
        assert!(!pace.is_alarming(&id, at(5000), at(0)), "once");
        pace.keep_only(&HashSet::new());
        assert!(pace.is_due(&id, at(5000)));
    }
}
