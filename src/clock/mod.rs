//! The only sources of time and chance.
//!
//! [`Clock`] tells wall-clock time (UTC, for what people and protocols see) and waits; [`Ids`] makes public
//! ids (unguessable) and internal ones. Everything else asks these two, so that a test can move time and
//! repeat chance. Neither can fail. A gateway works by a [`SteadyClock`]: it goes on evenly while somebody sets the
//! machine's clock, and agrees with those of other processes on one state.

mod steady;

use std::sync::{LazyLock, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rand::RngCore as _;
use tokio::time::{Duration, Instant};

pub use self::steady::SteadyClock;

/// Wall-clock time. Shared by reference counting; see [`SteadyClock`], [`SystemClock`] and [`ManualClock`].
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment, UTC.
    fn now(&self) -> DateTime<Utc>;

    /// How long it has run: goes on evenly, whatever is set. Waits are measured by it.
    fn elapsed(&self) -> Duration;

    /// What the machine's own clock says, however often it is set.
    fn wall(&self) -> DateTime<Utc> {
        self.now()
    }

    /// Tells the clock what time it is by the state, again and again.
    fn align(&self, _time: DateTime<Utc>) {}

    /// Whether its time can be believed: nothing is removed for its age while it cannot.
    fn is_settled(&self) -> bool {
        true
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> DateTime<Utc> {
        (**self).now()
    }

    fn elapsed(&self) -> Duration {
        (**self).elapsed()
    }

    fn wall(&self) -> DateTime<Utc> {
        (**self).wall()
    }

    fn align(&self, time: DateTime<Utc>) {
        (**self).align(time);
    }

    fn is_settled(&self) -> bool {
        (**self).is_settled()
    }
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn elapsed(&self) -> Duration {
        START.elapsed()
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    start: DateTime<Utc>,
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub const fn new(start: DateTime<Utc>) -> Self {
        Self { start, elapsed: Mutex::new(Duration::ZERO) }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        self.start + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes identifiers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ids;

impl Ids {
    /// A public id: prefix, underscore and 20 random bytes in lower-case base32 (160 bits, unguessable).
    #[must_use]
    pub fn public(self, prefix: &str) -> String {
        let mut bytes = [0_u8; 20];
        rand::rng().fill_bytes(&mut bytes);
        format!("{prefix}_{}", data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
    }

    /// 32 random bytes, for secrets.
    #[must_use]
    pub fn secret(self) -> [u8; 32] {
        let mut bytes = [0_u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        bytes
    }

    /// An id for rows, requests and events: a version-7 UUID, in order of time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that makes UUIDs")]
    pub fn uuid(self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}
