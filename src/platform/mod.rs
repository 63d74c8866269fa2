//! Platform profiles: who an agent is and what it understands (UCP, "Profile Requirements").
//!
//! In: a profile URL. Out: a checked [`Profile`]. A *pin* answers without a fetch. Everything else is
//! fetched over https, without redirects, within 3 s and 256 KiB, once at a time for each URL, and kept as
//! long as its `max-age` says (60 s to 1 h). A failure is kept for a moment too, so that nobody can use the
//! gateway to hammer a third party. What can fail is [`Error`]: always the caller's side of the call.

mod fetch;
mod profile;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use moka::future::Cache;
use reqwest::Client;
use serde_json::Value;

use crate::net::{self, Purpose};
use fetch::{Entry, Lifetime};

pub use profile::{Capability, Profile, full_profile};

/// Memory for fetched profiles, by the size of their bodies.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// How long a failure is remembered.
const FAILURE_LIFE: Duration = Duration::from_secs(5);
/// The same under development rules, where profiles are edited and tried again.
const FAILURE_LIFE_DEVELOPMENT: Duration = Duration::from_secs(1);

/// Why a profile could not be used. Texts are safe to show: they hold nothing of what was fetched.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address is none that may be fetched.
    #[error("the profile URL {0}")]
    InvalidUrl(&'static str),
    /// It could not be fetched. One text for every reason: it must not tell what our network looks like.
    #[error("the platform profile could not be fetched")]
    Unreachable(#[source] Option<Arc<net::Error>>),
    /// What was fetched is no platform profile.
    #[error("the platform profile is malformed: {0}")]
    Malformed(String),
}

/// Why the table of pins, or the client, could not be made; found at start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A pinned file cannot be read.
    #[error("the pinned profile {path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A pinned document is no JSON.
    #[error("the pinned profile for {url} is not JSON")]
    NotJson {
        /// The URL it is pinned to.
        url: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A pinned document is no platform profile.
    #[error("the pinned profile for {url} cannot be used")]
    Profile {
        /// The URL it is pinned to.
        url: String,
        /// Why.
        #[source]
        source: Error,
    },
    /// A pin says one version and holds another.
    #[error("the pinned profile for {url} is of version {found}, not {expected}")]
    Version {
        /// The URL it is pinned to.
        url: String,
        /// What the pin says.
        expected: String,
        /// What the document says.
        found: String,
    },
    /// No HTTP client.
    #[error(transparent)]
    Client(#[from] net::Error),
}

/// A profile that is answered without a fetch.
#[derive(Debug, Clone)]
pub struct Pin {
    /// The URL as the platform sends it, compared letter by letter.
    pub url: String,
    /// The protocol version it is for.
    pub version: String,
    /// The document.
    pub document: Document,
}

/// Where a pinned document comes from.
#[derive(Debug, Clone)]
pub enum Document {
    /// A JSON file.
    File(PathBuf),
    /// The document itself.
    Value(Value),
}

impl Document {
    fn read(&self, url: &str) -> Result<Value, SetupError> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::File(path) => {
                let bytes = std::fs::read(path)
                    .map_err(|source| SetupError::Unreadable { path: path.clone(), source })?;
                serde_json::from_slice(&bytes)
                    .map_err(|source| SetupError::NotJson { url: url.to_owned(), source })
            }
        }
    }
}

/// The platforms that call: pinned ones and fetched ones.
#[derive(Debug)]
pub struct Platforms {
    pins: BTreeMap<String, BTreeMap<String, Arc<Profile>>>,
    cache: Cache<String, Entry>,
    client: Client,
    development: bool,
}

impl Platforms {
    /// Reads the pins. `development` admits plain http from loopback addresses.
    ///
    /// # Errors
    /// [`SetupError`]; the program must not start.
    pub fn new(pins: &[Pin], development: bool) -> Result<Self, SetupError> {
        let mut table: BTreeMap<String, BTreeMap<String, Arc<Profile>>> = BTreeMap::new();
        for Pin { url, version, document } in pins {
            let profile = Profile::read(&document.read(url)?)
                .map_err(|source| SetupError::Profile { url: url.clone(), source })?;
            if profile.version != *version {
                return Err(SetupError::Version {
                    url: url.clone(),
                    expected: version.clone(),
                    found: profile.version,
                });
            }
            table.entry(url.clone()).or_default().insert(version.clone(), Arc::new(profile));
        }
        let cache = Cache::builder()
            .weigher(|url: &String, entry: &Entry| {
                u32::try_from(url.len() + entry.size()).unwrap_or(u32::MAX)
            })
            .max_capacity(CACHE_BYTES)
            .expire_after(Lifetime)
            .build();
        Ok(Self { pins: table, cache, client: net::client(Purpose::Profile)?, development })
    }

    /// The profile at a URL. `version` is the one that the address called is fixed to: a pin of that
    /// version goes before others of the same URL; without it the newest pin counts.
    ///
    /// # Errors
    /// [`Error`]; a fetched profile may also come with any version, which the caller has to check.
    pub async fn profile(&self, url: &str, version: Option<&str>) -> Result<Arc<Profile>, Error> {
        if let Some(pinned) = self.pinned(url, version) {
            return Ok(pinned);
        }
        let target = fetch::target(url, self.development)?;
        let failure_life = if self.development { FAILURE_LIFE_DEVELOPMENT } else { FAILURE_LIFE };
        let entry =
            self.cache.get_with(url.to_owned(), fetch::fetch(&self.client, target, failure_life)).await;
        entry.profile()
    }

    fn pinned(&self, url: &str, version: Option<&str>) -> Option<Arc<Profile>> {
        let of_url = self.pins.get(url)?;
        let exact = version.and_then(|version| of_url.get(version));
        exact.or_else(|| of_url.values().next_back()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(version: &str) -> Pin {
        Pin {
            url: "https://agent.example/p".into(),
            version: version.into(),
            document: Document::Value(full_profile(version, None)),
        }
    }

    #[tokio::test]
    async fn the_pin_of_the_version_called_goes_first_and_the_newest_otherwise() {
        let platforms = Platforms::new(&[pin("2026-04-08"), pin("2026-08-25")], false).unwrap();
        for (asked, found) in
            [(Some("2026-04-08"), "2026-04-08"), (None, "2026-08-25"), (Some("2026-01-23"), "2026-08-25")]
        {
            let profile = platforms.profile("https://agent.example/p", asked).await.unwrap();
            assert_eq!(profile.version, found, "{asked:?}");
        }
    }

    #[test]
    fn a_pin_that_lies_about_its_version_stops_the_start() {
        let mut lying = pin("2026-04-08");
        lying.version = "2026-08-25".into();
        assert!(matches!(Platforms::new(&[lying], false), Err(SetupError::Version { .. })));
        let broken = Pin { document: Document::Value(serde_json::json!([])), ..pin("2026-04-08") };
        assert!(matches!(Platforms::new(&[broken], false), Err(SetupError::Profile { .. })));
    }
}
