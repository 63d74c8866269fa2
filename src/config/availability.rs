//! How availability is published.

use serde::{Deserialize, Serialize};

use super::Problems;

/// How availability is published.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Availability {
    /// Whether it is.
    pub enabled: bool,
    /// Fewer units than this are told as a number.
    pub threshold: u32,
    /// Seconds between two looks for changes; a document is that old at most.
    pub poll_secs: u64,
    /// Seconds a reading of the shop's stock is kept.
    pub reading_secs: u64,
    /// Streams of this process at one time.
    pub max_clients: usize,
    /// Seconds of silence after which a stream sends a comment.
    pub heartbeat_secs: u64,
    /// Seconds a stream lives.
    pub stream_secs: u64,
}

impl Availability {
    pub(super) fn check(&self, problems: &mut Problems) {
        let clients = u64::try_from(self.max_clients).unwrap_or(u64::MAX);
        for (key, value, low, high) in [
            ("threshold", u64::from(self.threshold), 0, 1000),
            ("poll_secs", self.poll_secs, 1, 60),
            ("reading_secs", self.reading_secs, 1, 300),
            ("max_clients", clients, 1, 10_000),
            ("heartbeat_secs", self.heartbeat_secs, 1, 60),
            ("stream_secs", self.stream_secs, 1, 24 * 3600),
        ] {
            if !(low..=high).contains(&value) {
                problems
                    .add(format!("availability.{key}"), format!("{value} is not between {low} and {high}"));
            }
        }
        if self.heartbeat_secs > self.stream_secs {
            problems.add("availability.heartbeat_secs", "a stream would end before its first heartbeat");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    fn wrong(table: &str) -> Vec<String> {
        let settings = Settings::from_toml(&format!("[availability]\n{table}")).unwrap();
        let keys = settings.problems().into_iter().map(|problem| problem.key);
        keys.filter(|key| key.starts_with("availability")).collect()
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(wrong(""), Vec::<String>::new());
        assert_eq!(wrong("enabled = false\nthreshold = 0"), Vec::<String>::new());
        for (key, value) in [
            ("threshold", 1001),
            ("poll_secs", 0),
            ("reading_secs", 0),
            ("max_clients", 0),
            ("heartbeat_secs", 0),
            ("stream_secs", 0),
        ] {
            let found = wrong(&format!("{key} = {value}"));
            assert!(found.contains(&format!("availability.{key}")), "{key}: {found:?}");
        }
        assert_eq!(wrong("stream_secs = 10\nheartbeat_secs = 11"), ["availability.heartbeat_secs"]);
        assert!(Settings::from_toml("[availability]\npoll = 1").is_err());
    }
}
