//! Where the state is kept, when it is shared: a table `[redis]`.

use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    Problems,
    shop::{redacted, secret},
};

/// A table `[redis]`: exactly one of a server, sentinels and a cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    /// One server: `redis://[USER:PASSWORD@]HOST:PORT/[DB]`.
    #[serde(default, serialize_with = "redacted", skip_serializing_if = "Option::is_none")]
    pub url: Option<SecretString>,
    /// A file that holds the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_file: Option<PathBuf>,
    /// Addresses of sentinels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentinels: Vec<String>,
    /// The name of the master that they watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// Addresses of nodes of a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<String>,
    /// The user on the master that sentinels name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Its password.
    #[serde(default, serialize_with = "redacted", skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretString>,
    /// A file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// In front of every key.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// How many replicas must have what an order rests on; absent: one, where there is any at start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Seconds without new orders after a change of the master.
    #[serde(default = "quarantine_secs")]
    pub quarantine_secs: u64,
}

fn prefix() -> String {
    "tillgate".to_owned()
}

const fn quarantine_secs() -> u64 {
    30
}

impl Redis {
    /// The address of the one server.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn url(&self) -> Result<SecretString, String> {
        secret(self.url.as_ref(), self.url_file.as_ref())
    }

    /// The password on the master, if one is set.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn password(&self) -> Result<Option<SecretString>, String> {
        if self.password.is_none() && self.password_file.is_none() {
            return Ok(None);
        }
        secret(self.password.as_ref(), self.password_file.as_ref()).map(Some)
    }

    /// What is wrong with it.
    pub(super) fn check(&self, problems: &mut Problems) {
        let one = self.url.is_some() || self.url_file.is_some();
        let ways = [one, !self.sentinels.is_empty(), !self.cluster.is_empty()];
        if ways.iter().filter(|way| **way).count() != 1 {
            problems.add("redis", "needs exactly one of url (or url_file), sentinels and cluster");
        }
        if one {
            match self.url() {
                Err(message) => problems.add("redis.url", message),
                Ok(url) if !is_address(url.expose_secret()) => {
                    problems.add("redis.url", "must be redis://HOST:PORT or redis+unix:///PATH");
                }
                Ok(_) => {}
            }
        }
        for (key, addresses) in [("redis.sentinels", &self.sentinels), ("redis.cluster", &self.cluster)] {
            if addresses.iter().any(|address| !is_address(address)) {
                problems.add(key, "must be a list of redis://HOST:PORT");
            }
        }
        if self.sentinels.is_empty() != self.master.is_none() {
            problems
                .add("redis.master", "is the name of the master that the sentinels watch: set both or none");
        }
        if let Err(message) = self.password() {
            problems.add("redis.password", message);
        }
        if self.prefix.is_empty() || self.prefix.contains(['{', '}', ':', ' ']) {
            problems.add("redis.prefix", "must not be empty nor hold braces, colons or blanks");
        }
        if !(1..=600).contains(&self.quarantine_secs) {
            problems
                .add("redis.quarantine_secs", format!("{} is not between 1 and 600", self.quarantine_secs));
        }
    }
}

fn is_address(text: &str) -> bool {
    ["redis://", "redis+unix://", "unix://"].iter().any(|scheme| text.starts_with(scheme))
}
