//! The demo's settings: two shops on loopback, development rules, well-known agents.

use std::{fmt::Write as _, net::SocketAddr, path::Path};

use serde_json::Value;

use crate::{
    config::{Error, Settings},
    platform::{Document, Pin, full_profile},
    protocol::ucp,
};

/// Profiles that well-known test clients name and nobody can fetch here.
const PINNED: [&str; 4] = [
    "https://spck.dev/agent",
    "https://agent.example/profile",
    "https://ucp-mcp-server.example/profile",
    "https://strands.dev/profile",
];

/// Where the demo's links lead: a placeholder, since `continue_url` must be https.
pub(super) const HTTPS_BASE: &str = "https://shop.example.com";

const COMMON: &str = r#"
[development]
email = "buyer@example.com"
first_name = "Test"
last_name = "Buyer"
line_one = "12 Main Street"
city = "Springfield"
region = "CA"
postal_code = "90210"
country = "US"
"#;

/// Settings of a development gateway with the given shop tables.
pub(super) fn settings(
    listen: SocketAddr,
    ops: SocketAddr,
    data: &Path,
    shops: &[ShopTable],
) -> Result<Settings, Box<Error>> {
    let mut text = format!(
        "[server]\nlisten = \"{listen}\"\nops_listen = \"{ops}\"\ndata = {data}\n\
         [checkout]\ncomplete_wait_secs = 4\nsettle_wait_secs = 6\n{COMMON}",
        data = Value::from(data.to_string_lossy().as_ref()),
    );
    for shop in shops {
        text.push_str(&shop.toml(listen));
    }
    Settings::from_toml(&text).map_err(Box::new)
}

/// The settings of the demo over its shop at `shop`, with state in `data`: what `tillgate demo` runs on its
/// default addresses.
///
/// # Errors
/// When an address does not fit into the settings.
pub fn demo_settings(shop: &str, data: &Path) -> Result<Settings, Box<Error>> {
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    settings(loopback(8787), loopback(8788), data, &shops(shop))
}

/// The settings of a replay without a configuration, over a tape at `shop`.
///
/// # Errors
/// As [`demo_settings`].
pub fn replay_settings(shop: &str, data: &Path) -> Result<Settings, Box<Error>> {
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    settings(loopback(8787), loopback(0), data, &[tape(shop)])
}

/// What differs between the demo's shops.
pub(super) struct ShopTable {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) hosts: &'static str,
    /// The name agents reach it by.
    pub(super) host: &'static str,
    pub(super) store_url: String,
    pub(super) currency: &'static str,
    pub(super) item_ids: &'static str,
    /// More handlers beside the mock one.
    pub(super) offline: &'static [(&'static str, &'static str, &'static str)],
}

impl ShopTable {
    fn toml(&self, listen: SocketAddr) -> String {
        let Self { name, title, hosts, host, store_url, currency, item_ids, offline } = self;
        let public = if host.is_empty() { listen.to_string() } else { format!("{host}:{}", listen.port()) };
        let mut text = format!(
            r#"
[shops.{name}]
title = "{title}"
hosts = {hosts}
public_url = "http://{public}"
https_base = "{HTTPS_BASE}"
home_url = "{HTTPS_BASE}/"
store_url = "{store_url}"
currency = "{currency}"
item_ids = "{item_ids}"
locales = ["en-US"]
wc_v3 = {{ key = "ck_demo", secret = "cs_demo" }}
links = {{ terms = "{HTTPS_BASE}/terms", privacy = "{HTTPS_BASE}/privacy", refunds = "{HTTPS_BASE}/refunds" }}
agents = [{{ id = "demo", token = "test-token" }}]

[[shops.{name}.handlers]]
id = "mock_payment_handler"
preset = "mock"
method = "agent_token"
title = "Test payment"
merchant_id = "demo"
"#
        );
        for (id, method, title) in *offline {
            let _ = write!(
                text,
                "\n[[shops.{name}.handlers]]\nid = \"{id}\"\npreset = \"offline\"\nmethod = \"{method}\"\n\
                 title = \"{title}\"\nmerchant_id = \"demo\"\n"
            );
        }
        text
    }
}

/// The flower shop and the general shop of the demo.
pub(super) fn shops(shop: &str) -> [ShopTable; 2] {
    [
        ShopTable {
            name: "flower",
            title: "Flower shop",
            hosts: r#"["127.0.0.1", "localhost", "::1"]"#,
            host: "",
            store_url: shop.to_owned(),
            currency: "USD",
            item_ids: "sku",
            offline: &[],
        },
        ShopTable {
            name: "general",
            title: "General shop",
            hosts: r#"["general.localhost"]"#,
            host: "general.localhost",
            store_url: format!("{shop}/general"),
            currency: "EUR",
            item_ids: "id",
            offline: &[
                ("bank_transfer", "bacs", "Bank transfer"),
                ("cash_on_delivery", "cod", "Cash on delivery"),
            ],
        },
    ]
}

/// The one shop of a replay.
pub(super) fn tape(shop: &str) -> ShopTable {
    ShopTable {
        name: "tape",
        title: "Recorded shop",
        hosts: r#"["*"]"#,
        host: "",
        store_url: shop.to_owned(),
        currency: "EUR",
        item_ids: "id",
        offline: &[],
    }
}

/// Pins for the platforms of the demo that cannot be fetched from.
#[must_use]
pub fn demo_pins() -> Vec<Pin> {
    PINNED
        .iter()
        .map(|url| Pin {
            url: (*url).to_owned(),
            version: ucp::CURRENT_VERSION.to_owned(),
            document: Document::Value(full_profile(ucp::CURRENT_VERSION, None)),
        })
        .collect()
}
