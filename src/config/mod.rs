//! Settings: `config/default.toml`, then the file, then the environment (`TILLGATE__SECTION__KEY`).
//!
//! The default file is compiled in and is the reference of all keys. Reading gives typed values or
//! [`Error`]; [`Settings::problems`] finds everything else that is wrong, all at once. Secrets print as
//! `[redacted]`.

mod availability;
mod handlers;
mod shop;
mod state;
mod stock;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use figment::{
    Figment,
    providers::{Env, Format as _, Toml},
};
use serde::{Deserialize, Serialize};
use url::Url;

pub use availability::Availability;
pub use handlers::{Handler, Preset};
pub use shop::{AgentToken, Deadlines, ItemIds, Links, Shop, WcV3};
pub use state::Redis;
pub use stock::Stock;

/// The reference of all keys, compiled in.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Why settings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key is unknown, missing, or of the wrong type. The text names it.
    #[error("{0}")]
    Form(#[from] Box<figment::Error>),
    /// The file is not there.
    #[error("there is no configuration file {0}")]
    NoFile(PathBuf),
}

/// Everything that can be set.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Listeners and the data folder.
    pub server: Server,
    /// Logging.
    pub log: Log,
    /// Limits of form.
    pub limits: Limits,
    /// How checkouts behave.
    pub checkout: Checkout,
    /// How catalogues behave.
    pub catalog: Catalog,
    /// How availability is published.
    pub availability: Availability,
    /// How the shops' stock is looked after.
    pub stock: Stock,
    /// How long things are kept.
    pub retention: Retention,
    /// A shared state; absent: the embedded one, in `server.data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<Redis>,
    /// Development rules; absent in production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub development: Option<Development>,
    /// Pinned platform profiles.
    #[serde(default)]
    pub profiles: Vec<PinnedProfile>,
    /// The shops, by name.
    #[serde(default)]
    pub shops: BTreeMap<String, Shop>,
}

/// Listeners and the data folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// For agents.
    pub listen: SocketAddr,
    /// For operators.
    pub ops_listen: SocketAddr,
    /// The embedded state.
    pub data: PathBuf,
    /// Seconds that running requests may take after SIGTERM.
    pub stop_wait_secs: u64,
}

/// Logging.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// For people or for machines.
    pub format: LogFormat,
    /// A tracing filter.
    pub filter: String,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Limits of form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Levels of nesting.
    pub json_depth: usize,
    /// Lines of a checkout.
    pub lines: usize,
    /// Units of a line.
    pub quantity: u32,
}

/// How checkouts behave.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkout {
    /// Hours an open session lives.
    pub session_hours: u32,
    /// Seconds a completion waits.
    pub complete_wait_secs: u64,
    /// Seconds a look at a cart stays fresh.
    pub snapshot_secs: u64,
    /// How many wait behind the running request.
    pub queue: usize,
    /// Seconds such a request waits.
    pub queue_wait_secs: u64,
    /// Seconds a lost order is waited for.
    pub settle_wait_secs: u64,
    /// How long the units of a declined order are held for its buyer, in seconds.
    pub retry_hold_secs: u64,
    /// How old, in seconds, what is known of the shop's stock may be when it refuses an order; older, it is read again.
    pub stock_doubt_secs: u64,
}

/// How catalogues behave; each shop has its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// Seconds an answer of the shop is kept.
    pub cache_secs: u64,
    /// Bytes kept of one shop's catalogue.
    pub cache_bytes: u64,
    /// Most products on a page.
    pub page_size: u32,
    /// Most ids of one look-up.
    pub ids: usize,
    /// Questions that are asked of one shop at one time.
    pub calls: usize,
    /// Seconds that another one waits for its turn.
    pub wait_secs: u64,
}

/// How long things are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// Hours an answer is kept.
    pub answer_hours: u32,
    /// Days a session is kept after its end.
    pub session_days: u32,
}

/// Development rules: what stands in for missing buyer data.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it; the file config/default.toml explains the table")]
pub struct Development {
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    pub line_one: String,
    pub city: String,
    pub region: String,
    pub postal_code: String,
    pub country: String,
}

/// A platform profile answered from a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedProfile {
    /// The profile's address, as agents send it.
    pub url: Url,
    /// The version at whose root it is used.
    pub version: String,
    /// The file; relative to the working folder.
    pub file: PathBuf,
}

/// Something that is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, dotted.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Collects what is wrong.
#[derive(Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { key: key.into(), message: message.into() });
    }
}

impl Settings {
    /// Reads the defaults, then the file, then the environment.
    ///
    /// # Errors
    /// [`Error`]: print it and stop with exit code 2.
    pub fn load(file: Option<&Path>) -> Result<Self, Error> {
        let mut figment = Figment::from(Toml::string(DEFAULTS));
        if let Some(file) = file {
            if !file.is_file() {
                return Err(Error::NoFile(file.to_owned()));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        figment
            .merge(Env::prefixed("TILLGATE__").split("__"))
            .extract()
            .map_err(|error| Error::Form(Box::new(error)))
    }

    /// The defaults with a table of one's own over them; for tests and the demo.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Figment::from(Toml::string(DEFAULTS))
            .merge(Toml::string(text))
            .extract()
            .map_err(|error| Error::Form(Box::new(error)))
    }

    /// Everything that is wrong with the values.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.check_numbers(&mut problems);
        self.availability.check(&mut problems);
        self.stock.check(&mut problems);
        if let Some(redis) = &self.redis {
            redis.check(&mut problems);
        }
        if self.shops.is_empty() {
            problems.add("shops", "no shop is configured: add a table [shops.NAME]");
        }
        let mut hosts: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, shop) in &self.shops {
            shop.check(name, self.development.is_some(), &mut problems);
            for host in &shop.hosts {
                if let Some(other) = hosts.insert(host, name) {
                    problems.add(
                        format!("shops.{name}.hosts"),
                        format!("`{host}` also leads to the shop `{other}`"),
                    );
                }
            }
        }
        for (index, profile) in self.profiles.iter().enumerate() {
            if !profile.file.is_file() {
                let file = profile.file.display();
                problems.add(format!("profiles.{index}.file"), format!("there is no file {file}"));
            }
        }
        problems.0
    }

    fn check_numbers(&self, problems: &mut Problems) {
        let mut within = |key: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                problems.add(key, format!("{value} is not between {low} and {high}"));
            }
        };
        let size = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        within("limits.body_bytes", size(self.limits.body_bytes), 1024, 16 * 1024 * 1024);
        within("limits.json_depth", size(self.limits.json_depth), 8, 100);
        within("limits.lines", size(self.limits.lines), 1, 1000);
        within("limits.quantity", u64::from(self.limits.quantity), 1, 9999);
        within("checkout.session_hours", u64::from(self.checkout.session_hours), 1, 168);
        within("checkout.complete_wait_secs", self.checkout.complete_wait_secs, 1, 120);
        within("checkout.snapshot_secs", self.checkout.snapshot_secs, 0, 600);
        within("checkout.queue", size(self.checkout.queue), 1, 64);
        within("checkout.queue_wait_secs", self.checkout.queue_wait_secs, 1, 60);
        within("checkout.settle_wait_secs", self.checkout.settle_wait_secs, 1, 600);
        within("checkout.retry_hold_secs", self.checkout.retry_hold_secs, 1, 3_600);
        within("checkout.stock_doubt_secs", self.checkout.stock_doubt_secs, 0, 300);
        within("catalog.cache_secs", self.catalog.cache_secs, 0, 3600);
        within("catalog.cache_bytes", self.catalog.cache_bytes, 0, 1024 * 1024 * 1024);
        within("catalog.page_size", u64::from(self.catalog.page_size), 10, 100);
        within("catalog.ids", size(self.catalog.ids), 10, 100);
        within("catalog.calls", size(self.catalog.calls), 1, 32);
        within("catalog.wait_secs", self.catalog.wait_secs, 1, 60);
        within("retention.answer_hours", u64::from(self.retention.answer_hours), 24, 24 * 365);
        within("retention.session_days", u64::from(self.retention.session_days), 1, 3650);
        within("server.stop_wait_secs", self.server.stop_wait_secs, 1, 300);
    }

    /// The settings in force as TOML, secrets redacted.
    #[must_use]
    pub fn effective(&self) -> String {
        toml_text(&serde_json::to_value(self).unwrap_or_default())
    }
}

/// Writes a value as TOML: scalars of a table first, then its tables.
fn toml_text(value: &serde_json::Value) -> String {
    fn table(path: &str, map: &serde_json::Map<String, serde_json::Value>, out: &mut String) {
        use serde_json::Value;
        let is_table = |value: &Value| {
            value.is_object()
                || value.as_array().is_some_and(|list| list.first().is_some_and(Value::is_object))
        };
        for (key, value) in map.iter().filter(|(_, value)| !is_table(value) && !value.is_null()) {
            let _ = writeln!(out, "{} = {}", name(key), scalar(value));
        }
        for (key, value) in map.iter().filter(|(_, value)| is_table(value)) {
            let key = name(key);
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            if let Some(map) = value.as_object() {
                let _ = writeln!(out, "\n[{path}]");
                table(&path, map, out);
            }
            for item in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
                let _ = writeln!(out, "\n[[{path}]]");
                table(&path, item, out);
            }
        }
    }
    /// JSON's spelling is TOML's, but for DEL, which JSON leaves as it is.
    fn scalar(value: &serde_json::Value) -> String {
        value.to_string().replace('\u{7f}', "\\u007F")
    }
    /// A key, in quotes where it is not bare.
    fn name(key: &str) -> String {
        let bare =
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if bare { key.to_owned() } else { scalar(&serde_json::Value::from(key)) }
    }
    let mut out = String::new();
    if let Some(map) = value.as_object() {
        table("", map, &mut out);
    }
    out.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    const SHOP: &str = r#"
        [shops.main]
        hosts = ["gw.example.com"]
        public_url = "https://gw.example.com"
        store_url = "https://shop.example.com"
        currency = "EUR"
        wc_v3 = { key = "ck_1", secret = "cs_very_secret" }
        agents = [{ id = "a", token = "bearer-very-secret" }]
        handlers = [{ id = "transfer", preset = "offline", method = "bacs" }]
        [redis]
        url = "redis://user:redis-very-secret@127.0.0.1:6379"
    "#;

    #[test]
    fn a_shop_of_few_lines_is_enough() {
        let settings = Settings::from_toml(SHOP).unwrap();
        assert_eq!(settings.problems(), []);
        assert_eq!(settings.retention.answer_hours, 25);
    }

    #[test]
    fn secrets_never_print() {
        let settings = Settings::from_toml(SHOP).unwrap();
        for text in [settings.effective(), format!("{settings:?}")] {
            assert!(!text.contains("very_secret") && !text.contains("very-secret"), "{text}");
        }
        assert!(settings.effective().contains("secret = \"[redacted]\""));
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = Settings::from_toml("[server]\nlistn = \"127.0.0.1:1\"").unwrap_err().to_string();
        assert!(error.contains("listn"), "{error}");
    }

    #[test]
    fn every_problem_is_listed_at_once() {
        let text = r#"
            [limits]
            json_depth = 1
            [catalog]
            page_size = 5
            [retention]
            answer_hours = 1
            [redis]
            url = "127.0.0.1:6379"
            cluster = ["redis://127.0.0.1:7000"]
            prefix = "a:b"
            [development]
            email = "a@example.com"
            first_name = "A"
            last_name = "B"
            line_one = "1"
            city = "C"
            region = "CA"
            postal_code = "90210"
            country = "US"
            [shops.main]
            hosts = []
            public_url = "http://gw.example.com"
            store_url = "http://shop.example.com"
            currency = "XXQ"
            handlers = [{ id = "a", method = "m" }, { id = "a", method = "m", preset = "mock" }]
        "#;
        let keys: Vec<String> =
            Settings::from_toml(text).unwrap().problems().into_iter().map(|p| p.key).collect();
        for key in [
            "limits.json_depth",
            "catalog.page_size",
            "retention.answer_hours",
            "redis",
            "redis.url",
            "redis.prefix",
            "shops.main.hosts",
            "shops.main.public_url",
            "shops.main.store_url",
            "shops.main.currency",
            "shops.main.handlers.1.id",
            "development",
        ] {
            assert!(keys.iter().any(|found| found == key), "{key} in {keys:?}");
        }
    }

    proptest! {
        #![proptest_config(arbitrary::config(96))]

        #[test]
        fn any_file_is_read_or_refused(
            text in arbitrary::text(), at in 0_usize..600, key in "[a-z_.]{1,12}", value in "[ -~]{0,12}",
        ) {
            let mut bent: Vec<char> = SHOP.chars().collect();
            bent.splice(at.min(bent.len()).., text.chars()).for_each(drop);
            for text in [text, bent.into_iter().collect(), format!("{SHOP}\n{key} = {value}")] {
                if let Ok(settings) = Settings::from_toml(&text) {
                    let _ = settings.problems();
                    prop_assert!(!settings.effective().contains("very_secret"));
                }
            }
        }

        #[test]
        fn what_is_printed_is_what_is_in_force(
            name in "\\PC{1,8}", title in arbitrary::text(), host in arbitrary::text(), quantity in any::<u32>(),
        ) {
            let mut settings = Settings::from_toml(SHOP).unwrap();
            let mut shop = settings.shops.remove("main").unwrap();
            shop.title = Some(title);
            shop.hosts = vec![host];
            settings.shops.insert(name, shop);
            settings.limits.quantity = quantity;
            let printed = settings.effective();
            let again = Settings::from_toml(&printed);
            let again = again.map_err(|error| TestCaseError::fail(format!("{error}: {printed}")))?;
            prop_assert_eq!(again.effective(), printed);
            prop_assert_eq!(format!("{:?}", again.shops.keys()), format!("{:?}", settings.shops.keys()));
        }
    }
}
