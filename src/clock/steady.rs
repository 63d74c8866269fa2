//! A clock that goes on evenly, whatever happens to the machine's.
//!
//! It counts by the monotonic clock from the time that it was told first: the state server's where there is one, the
//! machine's otherwise. Small differences are followed. A large one is a clock that somebody set: it is believed only
//! when it lasts, so that a mistake that is mended soon ends no session and removes nothing (`exactly-once.md` §6).

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Duration, Instant};

use super::{Clock, SystemClock};

/// Up to here a difference is followed at once.
const SMALL: TimeDelta = TimeDelta::seconds(60);

/// How long a large difference has to last until it is believed.
const PATIENCE: Duration = Duration::from_mins(15);

/// A clock that goes on evenly. Made with the machine's clock; aligned by the state from then on.
#[derive(Debug)]
pub struct SteadyClock {
    wall: Box<dyn Clock>,
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The time at a moment of the monotonic clock.
    base: (DateTime<Utc>, Instant),
    /// Whether it was ever told the time.
    aligned: bool,
    /// Since when it is told a time that is far from its own.
    apart_since: Option<Instant>,
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new(Box::new(SystemClock))
    }
}

impl SteadyClock {
    /// A clock that begins with the time of `wall`.
    #[must_use]
    pub fn new(wall: Box<dyn Clock>) -> Self {
        let start = Instant::now();
        let base = (wall.now(), start);
        Self { wall, start, inner: Mutex::new(Inner { base, aligned: false, apart_since: None }) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn now(&self) -> DateTime<Utc> {
        self.base.0 + TimeDelta::from_std(self.base.1.elapsed()).unwrap_or_default()
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> DateTime<Utc> {
        self.inner().now()
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> DateTime<Utc> {
        self.wall.now()
    }

    fn align(&self, time: DateTime<Utc>) {
        let mut inner = self.inner();
        let apart = time - inner.now();
        if inner.aligned && apart.abs() > SMALL {
            let since = *inner.apart_since.get_or_insert_with(|| {
                tracing::error!(
                    apart_secs = apart.num_seconds(),
                    "a clock was set: nothing ends by time until it is set back, or has stayed so for 15 minutes"
                );
                Instant::now()
            });
            if since.elapsed() < PATIENCE {
                return;
            }
        }
        if inner.apart_since.take().is_some() {
            tracing::warn!(
                moved_secs = apart.num_seconds(),
                "the clock agrees again: sessions end by time again"
            );
        }
        inner.base = (time, Instant::now());
        inner.aligned = true;
    }

    fn is_settled(&self) -> bool {
        self.inner().apart_since.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;

    fn noon() -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_040_000, 0).unwrap()
    }

    fn clock() -> SteadyClock {
        SteadyClock::new(Box::new(ManualClock::new(noon())))
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_by_itself_and_begins_with_the_first_time_it_is_told() {
        let clock = Arc::new(clock());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), noon() + TimeDelta::seconds(5));
        clock.align(noon() + TimeDelta::days(2));
        assert_eq!(clock.now(), noon() + TimeDelta::days(2), "the first is believed at once");
        assert!(clock.is_settled());
    }

    #[tokio::test(start_paused = true)]
    async fn small_differences_are_followed_both_ways() {
        let clock = clock();
        for apart in [0, 40, -10, 59, -60] {
            let told = clock.now() + TimeDelta::seconds(apart);
            clock.align(told);
            assert_eq!(clock.now(), told);
        }
        assert!(clock.is_settled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_is_believed_only_when_it_lasts() {
        for (jump, lasts, believed) in
            [(86_400, 600, false), (-86_400, 600, false), (86_400, 960, true), (-600, 960, true)]
        {
            let clock = clock();
            clock.align(noon());
            let (start, jump) = (Instant::now(), TimeDelta::seconds(jump));
            let right = || noon() + TimeDelta::from_std(start.elapsed()).unwrap();
            for _ in 0..lasts / 3 {
                tokio::time::advance(Duration::from_secs(3)).await;
                clock.align(right() + jump);
                assert!(clock.now() == right() || clock.is_settled());
            }
            assert_eq!(clock.is_settled(), believed, "{jump} for {lasts} s");
            assert_eq!(clock.now(), if believed { right() + jump } else { right() });
            if !believed {
                clock.align(right());
                assert!(clock.is_settled(), "set right again");
            }
        }
    }
}
