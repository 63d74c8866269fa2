//! One shop: how agents reach it, where it is, what it sells in, how one pays.

use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use super::{Handler, Problems};
use crate::money::Currency;

/// A table `[shops.NAME]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shop {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Names by which agents reach it; `*` is every other name.
    pub hosts: Vec<String>,
    /// How agents reach the gateway for this shop.
    pub public_url: Url,
    /// For `continue_url`; the public address if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_base: Option<Url>,
    /// The WooCommerce shop.
    pub store_url: Url,
    /// The shop's home page; its address if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home_url: Option<Url>,
    /// ISO 4217.
    pub currency: String,
    /// What item ids on the wire are.
    #[serde(default)]
    pub item_ids: ItemIds,
    /// Whether the shop displays prices with tax.
    #[serde(default)]
    pub prices_with_tax: bool,
    /// BCP 47.
    #[serde(default)]
    pub locales: Vec<String>,
    /// Policy pages.
    #[serde(default)]
    pub links: Links,
    /// A key to the shop's order list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wc_v3: Option<WcV3>,
    /// The secret that the shop signs its webhooks with; without it none are taken.
    #[serde(default, serialize_with = "redacted", skip_serializing_if = "Option::is_none")]
    pub webhook_secret: Option<SecretString>,
    /// A file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_secret_file: Option<PathBuf>,
    /// How long calls may take.
    #[serde(default)]
    pub deadlines: Deadlines,
    /// ACP agents.
    #[serde(default)]
    pub agents: Vec<AgentToken>,
    /// Ways to pay, in order.
    #[serde(default)]
    pub handlers: Vec<Handler>,
}

/// What item ids on the wire are; the other kind is taken when it is unambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemIds {
    /// Product and variation ids.
    #[default]
    Id,
    /// Article numbers.
    Sku,
}

/// Policy pages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// Terms of service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Url>,
    /// Privacy policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Url>,
    /// Refunds and returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refunds: Option<Url>,
    /// Shipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping: Option<Url>,
    /// Contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<Url>,
}

/// A key to wc/v3; read permission is enough to find lost orders.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WcV3 {
    /// `ck_…`
    pub key: String,
    /// `cs_…`
    #[serde(default, serialize_with = "redacted", skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretString>,
    /// A file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    /// Whether it may write, and unpaid orders of checkouts that are over are cancelled with it.
    #[serde(default)]
    pub writes: bool,
}

/// Seconds for one call to the shop.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deadlines {
    /// Reads.
    pub read_secs: u64,
    /// Cart writes.
    pub write_secs: u64,
    /// The one that places an order.
    pub place_secs: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { read_secs: 15, write_secs: 30, place_secs: 90 }
    }
}

/// An ACP agent and one of its tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentToken {
    /// The agent.
    pub id: String,
    /// Its bearer token.
    #[serde(default, serialize_with = "redacted", skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretString>,
    /// A file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
}

impl WcV3 {
    /// The secret, from the setting or its file.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn secret(&self) -> Result<SecretString, String> {
        secret(self.secret.as_ref(), self.secret_file.as_ref())
    }
}

impl AgentToken {
    /// The token, from the setting or its file.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn token(&self) -> Result<SecretString, String> {
        secret(self.token.as_ref(), self.token_file.as_ref())
    }
}

pub(super) fn secret(inline: Option<&SecretString>, file: Option<&PathBuf>) -> Result<SecretString, String> {
    let text = match (inline, file) {
        (Some(secret), None) => secret.expose_secret().to_owned(),
        (None, Some(file)) => std::fs::read_to_string(file)
            .map_err(|error| format!("{} cannot be read: {error}", file.display()))?
            .trim()
            .to_owned(),
        (None, None) => return Err("is missing: set it, or the file that holds it".into()),
        (Some(_), Some(_)) => return Err("is set twice: keep the value or the file".into()),
    };
    if text.is_empty() { Err("is empty".into()) } else { Ok(SecretString::from(text)) }
}

// The signature is serde's.
#[expect(clippy::ref_option, reason = "serde's serialize_with passes a reference to the field")]
pub(super) fn redacted<S: Serializer>(_: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("[redacted]")
}

impl Shop {
    /// The secret of its webhooks, from the setting or its file; `None`: it sends none.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn webhook_secret(&self) -> Result<Option<SecretString>, String> {
        if self.webhook_secret.is_none() && self.webhook_secret_file.is_none() {
            return Ok(None);
        }
        secret(self.webhook_secret.as_ref(), self.webhook_secret_file.as_ref()).map(Some)
    }

    /// What is wrong with it.
    pub(super) fn check(&self, name: &str, development: bool, problems: &mut Problems) {
        let key = |part: &str| format!("shops.{name}.{part}");
        if self.hosts.is_empty() {
            problems.add(key("hosts"), "is empty: no request could ever reach this shop");
        }
        if Currency::parse(&self.currency).is_err() {
            problems.add(key("currency"), format!("`{}` is not an ISO 4217 currency", self.currency));
        }
        let public_on_loopback = is_loopback(&self.public_url);
        if development && !public_on_loopback {
            problems.add(
                "development",
                format!("development rules need a public_url on loopback; shop `{name}` has another"),
            );
        }
        for (part, url) in [("public_url", Some(&self.public_url)), ("store_url", Some(&self.store_url))] {
            let Some(url) = url else { continue };
            if url.scheme() != "https" && !is_loopback(url) {
                problems.add(key(part), "must be https (plain http is for loopback only)");
            }
            if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
                problems.add(key(part), "must hold nothing but scheme, host, port and path");
            }
        }
        if self.https_base.as_ref().unwrap_or(&self.public_url).scheme() != "https" {
            problems.add(key("https_base"), "must be an https address: continue_url is made from it");
        }
        for (part, seconds) in [
            ("deadlines.read_secs", self.deadlines.read_secs),
            ("deadlines.write_secs", self.deadlines.write_secs),
            ("deadlines.place_secs", self.deadlines.place_secs),
        ] {
            if !(1..=300).contains(&seconds) {
                problems.add(key(part), format!("{seconds} is not between 1 and 300"));
            }
        }
        if let Some(Err(message)) = self.wc_v3.as_ref().map(WcV3::secret) {
            problems.add(key("wc_v3.secret"), message);
        }
        if let Err(message) = self.webhook_secret() {
            problems.add(key("webhook_secret"), message);
        }
        for (index, agent) in self.agents.iter().enumerate() {
            if let Err(message) = agent.token() {
                problems.add(key(&format!("agents.{index}.token")), message);
            }
        }
        for (index, handler) in self.handlers.iter().enumerate() {
            if self.handlers.iter().take(index).any(|other| other.id == handler.id) {
                problems.add(key(&format!("handlers.{index}.id")), format!("`{}` is used twice", handler.id));
            }
            handler.check(&key(&format!("handlers.{index}")), development, problems);
        }
    }
}

/// Whether an address is on this machine.
#[must_use]
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
