//! Configurations for gateways that are processes of their own.

use std::path::{Path, PathBuf};

use super::clients::PROFILE;

/// Which of the demo shops is behind the gateway.
#[derive(Debug, Clone, Copy)]
pub enum Seller {
    /// Dollars, article numbers.
    Flower,
    /// Euros, product ids.
    General,
}

/// A configuration in a folder of its own.
#[derive(Clone)]
pub struct Config<'a> {
    /// The shop, or a proxy before it.
    pub shop: &'a str,
    pub seller: Seller,
    /// A `[redis]` table without its head; `None`: embedded, in the folder.
    pub redis: Option<&'a str>,
    /// Lines for `[server]`.
    pub server: &'a str,
    /// Lines for `[checkout]`; unless told otherwise a lost order is waited for no longer than it must be.
    pub checkout: &'a str,
    /// Ways to pay beside the mock one: inline tables, each with a comma before it.
    pub handlers: &'a str,
    /// Lines for the shop.
    pub more: &'a str,
    /// Whether orders can be read.
    pub wc_v3: bool,
}

impl Default for Config<'_> {
    fn default() -> Self {
        Self {
            shop: "",
            seller: Seller::Flower,
            redis: None,
            server: "",
            checkout: "settle_wait_secs = 1",
            handlers: "",
            more: "",
            wc_v3: true,
        }
    }
}

impl Config<'_> {
    /// Writes it into the folder, and the state beside it.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let Self { shop, seller, redis, server, checkout, handlers, more, wc_v3 } = self;
        let redis = redis.map_or_else(String::new, |table| format!("[redis]\n{table}\n"));
        let key = if *wc_v3 { "wc_v3 = { key = \"ck_demo\", secret = \"cs_demo\" }" } else { "" };
        let (name, currency, item_ids) = match seller {
            Seller::Flower => ("flower", "USD", "sku"),
            Seller::General => ("general", "EUR", "id"),
        };
        let text = format!(
            r#"
[server]
listen = "127.0.0.1:0"
ops_listen = "127.0.0.1:0"
data = "{data}"
{server}
[log]
filter = "warn"
[checkout]
{checkout}
{redis}
[development]
email = "buyer@example.com"
first_name = "Test"
last_name = "Buyer"
line_one = "12 Main Street"
city = "Springfield"
region = "CA"
postal_code = "90210"
country = "US"
[[profiles]]
url = "{PROFILE}"
version = "2026-04-08"
file = "{profile}"
[shops.{name}]
hosts = ["*"]
public_url = "http://127.0.0.1:8787"
https_base = "https://shop.example.com"
store_url = "{shop}"
currency = "{currency}"
item_ids = "{item_ids}"
{key}
agents = [{{ id = "demo", token = "test-token" }}]
handlers = [{{ id = "mock_payment_handler", preset = "mock", method = "agent_token" }}{handlers}]
{more}
"#,
            data = folder.join("state").display(),
            profile = folder.join("profile.json").display(),
        );
        let profile = tillgate::platform::full_profile("2026-04-08", None);
        std::fs::write(folder.join("profile.json"), profile.to_string()).unwrap();
        let config = folder.join("tillgate.toml");
        std::fs::write(&config, text).unwrap();
        config
    }
}
