//! Virtual time: `tokio`'s paused clock, seen as wall-clock time. It moves only when every task waits.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeZone as _, Utc};
use tillgate::clock::Clock;
use tokio::time::Instant;

/// The wall clock of one process, or of the shop: the common time, and how far it is off.
#[derive(Debug)]
pub struct SimClock {
    start: Instant,
    off_ms: AtomicI64,
}

impl SimClock {
    /// A clock that is right. `start`: the beginning of the run.
    pub fn new(start: Instant) -> Self {
        Self { start, off_ms: AtomicI64::new(0) }
    }

    /// Somebody sets the clock: forward, or back.
    pub fn jump(&self, by: chrono::Duration) {
        self.off_ms.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now(&self) -> DateTime<Utc> {
        let begin = Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap();
        let passed = chrono::Duration::from_std(self.start.elapsed()).unwrap();
        begin + passed + chrono::Duration::milliseconds(self.off_ms.load(Ordering::SeqCst))
    }
}
