//! Virtual time: `tokio`'s paused clock, seen as wall-clock time. It moves only when every task waits.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, TimeZone as _, Utc};
use tillgate::clock::{Clock, SteadyClock};
use tokio::time::{Duration, Instant};

/// The clock of a process: the real one over the clock of its machine, aligned to the state's.
#[derive(Debug)]
pub struct ProcessClock {
    /// The clock of the machine.
    pub machine: Arc<SimClock>,
    steady: SteadyClock,
    aged_ms: AtomicI64,
}

impl ProcessClock {
    pub fn new(start: Instant) -> Self {
        let machine = Arc::new(SimClock::new(start));
        let steady = SteadyClock::new(Box::new(Arc::clone(&machine)));
        Self { machine, steady, aged_ms: AtomicI64::new(0) }
    }

    /// Much time passes, though nothing happens in it.
    pub fn age(&self, by: chrono::Duration) {
        self.aged_ms.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> DateTime<Utc> {
        self.steady.now() + chrono::Duration::milliseconds(self.aged_ms.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        self.steady.elapsed()
    }

    fn wall(&self) -> DateTime<Utc> {
        self.steady.wall()
    }

    fn align(&self, time: DateTime<Utc>) {
        self.steady.align(time);
    }

    fn is_settled(&self) -> bool {
        self.steady.is_settled()
    }
}

/// The clock of a machine: a process's, the state's, the shop's. The common time, and how far it is off.
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

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
