//! The only sources of time and chance.
//!
//! [`Clock`] tells wall-clock time (UTC, for what people and protocols see) and waits; [`Ids`] makes public
//! ids (unguessable) and internal ones. Everything else asks these two, so that a test can move time and
//! repeat chance. Neither can fail.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rand::RngCore as _;

/// Wall-clock time. Shared by reference counting; see [`SystemClock`] and [`ManualClock`].
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment, UTC.
    fn now(&self) -> DateTime<Utc>;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock(std::sync::Mutex<DateTime<Utc>>);

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub const fn new(start: DateTime<Utc>) -> Self {
        Self(std::sync::Mutex::new(start))
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *now += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
