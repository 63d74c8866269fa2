//! When an attempt is looked for again: soon after it was lost, every few seconds while something can come of it,
//! more and more slowly while the shop cannot be asked, for ever.
//!
//! Each process keeps this for itself and in memory: two that look do no harm, and a new start looks at once. How long
//! something has been waited for, this process has seen itself, by its own monotonic clock: no clock that is set, and
//! none of another process, ends a wait too early (`exactly-once.md` R8).

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{checkout::ids::SessionId, clock::Clock};

/// Between two looks that somebody is waiting for.
const HURRY: Duration = Duration::from_secs(2);

/// The longest time between two looks while the shop cannot be asked: an order is told soon after it answers again.
const SLOWEST: Duration = Duration::from_secs(8);

/// An attempt that is open for longer than this is told to people once.
const ALARM: Duration = Duration::from_mins(15);

/// The times of all open attempts that this process has placed or looked for.
#[derive(Debug)]
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    dues: Mutex<HashMap<SessionId, Due>>,
}

/// One attempt; moments by what the clock has run.
#[derive(Debug, Clone, Copy)]
struct Due {
    /// Which attempt of the session.
    number: u32,
    opened: Duration,
    fenced: Option<Duration>,
    /// The last look, and when the next one is due; none before the first.
    looks: Option<(Duration, Duration)>,
    /// Looks in a row that failed.
    failed: u32,
    alarmed: bool,
}

/// How long this process has known something of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waited {
    /// That it is open: since it placed it, or first saw it.
    pub(super) open: Duration,
    /// That its cart is emptied as a fence; `None` when it is not.
    pub(super) fenced: Option<Duration>,
}

impl Pace {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, dues: Mutex::default() }
    }

    fn dues(&self) -> MutexGuard<'_, HashMap<SessionId, Due>> {
        self.dues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a look is due.
    pub(super) fn is_due(&self, id: &SessionId) -> bool {
        self.dues().get(id).and_then(|due| due.looks).is_none_or(|(_, next)| self.clock.elapsed() >= next)
    }

    /// This process has an attempt in hand or looks for it; how long it has known of it.
    pub(super) fn seen(&self, id: &SessionId, number: u32, is_fenced: bool) -> Waited {
        let now = self.clock.elapsed();
        let mut dues = self.dues();
        let new = Due { number, opened: now, fenced: None, looks: None, failed: 0, alarmed: false };
        let due = dues.entry(id.clone()).or_insert(new);
        if due.number != number {
            *due = new;
        }
        if is_fenced {
            due.fenced.get_or_insert(now);
        }
        Waited {
            open: now.saturating_sub(due.opened),
            fenced: due.fenced.map(|fenced| now.saturating_sub(fenced)),
        }
    }

    /// A look has been taken; the next one is due after `wait`.
    pub(super) fn looked(&self, id: &SessionId, wait: Duration) {
        self.set(id, wait, 0);
    }

    /// A look has failed: the next one comes later each time. Nothing is decided by how often that happens.
    pub(super) fn failed(&self, id: &SessionId) {
        let failed = self.dues().get(id).map_or(0, |due| due.failed).saturating_add(1);
        self.set(id, (HURRY * 2_u32.pow(failed.min(3) - 1)).min(SLOWEST), failed);
    }

    fn set(&self, id: &SessionId, wait: Duration, failed: u32) {
        if let Some(due) = self.dues().get_mut(id) {
            let now = self.clock.elapsed();
            (due.looks, due.failed) = (Some((now, now + wait)), failed);
        }
    }

    /// Somebody asks for it: the next look comes as soon as it may.
    pub(super) fn hurry(&self, id: &SessionId) {
        if let Some((last, next)) = self.dues().get_mut(id).and_then(|due| due.looks.as_mut()) {
            *next = (*next).min(*last + HURRY);
        }
    }

    /// Something has happened at the shop: the next look for each comes as soon as it may.
    pub(super) fn hurry_all(&self) {
        for (last, next) in self.dues().values_mut().filter_map(|due| due.looks.as_mut()) {
            *next = (*next).min(*last + HURRY);
        }
    }

    /// Whether an attempt is to be told to people now: once, when it is open for too long.
    pub(super) fn is_alarming(&self, id: &SessionId) -> bool {
        let now = self.clock.elapsed();
        let mut dues = self.dues();
        let Some(due) =
            dues.get_mut(id).filter(|due| now.saturating_sub(due.opened) >= ALARM && !due.alarmed)
        else {
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
    use chrono::DateTime;

    use super::*;
    use crate::clock::ManualClock;

    fn pace() -> (Pace, Arc<ManualClock>, SessionId) {
        let clock = Arc::new(ManualClock::new(DateTime::default()));
        (Pace::new(clock.clone()), clock, SessionId::new("chk_1"))
    }

    #[test]
    fn a_change_at_the_shop_brings_every_look_forward_but_none_too_soon() {
        let (pace, clock, id) = pace();
        pace.seen(&id, 1, false);
        pace.looked(&id, Duration::from_secs(30));
        pace.hurry_all();
        assert!(!pace.is_due(&id), "a storm of hints is no storm of looks");
        assert_eq!(until_due((&pace, &clock), &id), HURRY.as_secs());
    }

    fn until_due((pace, clock): (&Pace, &ManualClock), id: &SessionId) -> u64 {
        for second in 0.. {
            if pace.is_due(id) {
                return second;
            }
            clock.advance(Duration::from_secs(1));
        }
        unreachable!()
    }

    #[test]
    fn looks_that_fail_come_more_and_more_slowly_and_for_ever() {
        let (pace, clock, id) = pace();
        pace.seen(&id, 1, false);
        let mut waits = Vec::new();
        for _ in 0..7 {
            waits.push(until_due((&pace, &clock), &id));
            pace.failed(&id);
        }
        assert_eq!(waits, [0, 2, 4, 8, 8, 8, 8]);
        pace.looked(&id, Duration::from_secs(5));
        assert_eq!(until_due((&pace, &clock), &id), 5);
    }

    #[test]
    fn who_asks_brings_the_next_look_forward_and_no_further() {
        let (pace, clock, id) = pace();
        pace.hurry(&id);
        assert!(pace.is_due(&id), "never looked for: at once");
        pace.seen(&id, 1, false);
        pace.looked(&id, Duration::from_mins(10));
        pace.hurry(&id);
        pace.hurry(&id);
        assert_eq!(until_due((&pace, &clock), &id), 2);
    }

    #[test]
    fn an_attempt_that_stays_open_is_told_once() {
        let (pace, clock, id) = pace();
        pace.seen(&id, 1, false);
        clock.advance(Duration::from_secs(899));
        assert!(!pace.is_alarming(&id));
        clock.advance(Duration::from_secs(1));
        assert!(pace.is_alarming(&id));
        clock.advance(Duration::from_secs(5000));
        assert!(!pace.is_alarming(&id), "once");
        pace.keep_only(&HashSet::new());
        assert!(pace.is_due(&id));
    }

    #[test]
    fn a_wait_is_what_this_process_has_seen_of_this_attempt() {
        let (pace, clock, id) = pace();
        let secs = Duration::from_secs;
        pace.seen(&id, 1, false);
        clock.advance(secs(10));
        assert_eq!(pace.seen(&id, 1, true), Waited { open: secs(10), fenced: Some(secs(0)) });
        clock.advance(secs(7));
        assert_eq!(pace.seen(&id, 1, true), Waited { open: secs(17), fenced: Some(secs(7)) });
        assert_eq!(pace.seen(&id, 2, false), Waited { open: secs(0), fenced: None }, "another attempt");
    }
}
