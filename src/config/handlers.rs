//! Ways to pay: from a protocol's instrument to a payment method of the shop. Presets know the usual ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Problems;
use crate::{
    checkout::service::PaymentHandler,
    protocol::shop::{AcpHandler, HandlerFace, UcpHandler},
};

/// A table `[[shops.NAME.handlers]]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handler {
    /// Our id of it: what `handler_id` must match.
    pub id: String,
    /// The payment method at the shop.
    pub method: String,
    /// A ready-made mapping; without one `data`, `ucp` and `acp` say it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The merchant's id at the payment service provider (ACP tells it to agents).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merchant_id: Option<String>,
    /// What the method needs: key to template (`{credential.token}`, `{instrument.type}`); over the preset's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// How UCP shows it, over the preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ucp: Option<UcpTable>,
    /// How ACP shows it, over the preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acp: Option<AcpTable>,
}

/// Mappings that are ready made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Bank transfer, cheque, cash on delivery: nothing is charged by API.
    Offline,
    /// The Stripe plugin: payment-method ids (`pm_…`).
    Stripe,
    /// WooPayments: payment-method ids (`pm_…`).
    WooPayments,
    /// The demo shop's method; only under development rules.
    Mock,
}

/// How UCP shows a handler (`payment_handler.json`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UcpTable {
    /// Reverse-domain name of its specification.
    pub name: String,
    /// Version of that specification.
    pub version: String,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Its schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Instrument types it takes; none: no restriction.
    #[serde(default)]
    pub instrument_types: Vec<String>,
    /// Its configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// How ACP shows a handler (`PaymentHandler`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpTable {
    /// Reverse-domain name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its page.
    pub spec: String,
    /// The payment service provider.
    pub psp: String,
    /// Schema of its configuration.
    pub config_schema: String,
    /// Schemas of its instruments.
    pub instrument_schemas: Vec<String>,
    /// Whether the agent must fetch a delegated token.
    #[serde(default = "yes")]
    pub requires_delegate_payment: bool,
    /// Its configuration, beyond `merchant_id` and `psp`.
    #[serde(default)]
    pub config: Map<String, Value>,
}

const fn yes() -> bool {
    true
}

impl Handler {
    /// The handler as the domain uses it.
    #[must_use]
    pub fn mapping(&self) -> PaymentHandler {
        let mut data: BTreeMap<String, String> = match self.preset {
            Some(Preset::Stripe) => [
                ("wc-stripe-payment-method", "{credential.token}"),
                ("wc-stripe-is-deferred-intent", "true"),
                ("payment_method", "stripe"),
            ]
            .map(owned)
            .into(),
            Some(Preset::WooPayments) => {
                [("wcpay-payment-method", "{credential.token}"), ("payment_method", "woocommerce_payments")]
                    .map(owned)
                    .into()
            }
            Some(Preset::Mock) => [("token", "{credential.token}")].map(owned).into(),
            Some(Preset::Offline) | None => BTreeMap::new(),
        };
        data.extend(self.data.clone());
        PaymentHandler {
            id: self.id.clone(),
            method: self.method.clone(),
            data: data.into_iter().collect(),
            always: self.preset == Some(Preset::Mock),
        }
    }

    /// The handler as protocols show it.
    #[must_use]
    pub fn face(&self) -> HandlerFace {
        HandlerFace {
            id: self.id.clone(),
            method: self.method.clone(),
            always: self.preset == Some(Preset::Mock),
            ucp: self.ucp.clone().or_else(|| self.preset.map(Preset::ucp)).map(UcpTable::face),
            acp: self
                .acp
                .clone()
                .or_else(|| self.preset.map(Preset::acp))
                .map(|table| table.face(self.title.clone(), self.merchant_id.as_deref())),
        }
    }

    pub(super) fn check(&self, key: &str, development: bool, problems: &mut Problems) {
        if self.preset == Some(Preset::Mock) && !development {
            problems.add(format!("{key}.preset"), "`mock` is for development only");
        }
        if self.preset.is_none() && self.ucp.is_none() && self.acp.is_none() {
            problems.add(key.to_owned(), "needs a preset, or a table ucp or acp: no protocol would offer it");
        }
        for template in self.data.values() {
            let names = template.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
            for name in names {
                if name != "instrument.type" && !name.starts_with("credential.") {
                    let message =
                        format!("`{{{name}}}` is not known; use {{credential.NAME}} or {{instrument.type}}");
                    problems.add(format!("{key}.data"), message);
                }
            }
        }
    }
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

impl Preset {
    fn ucp(self) -> UcpTable {
        let (name, types): (&str, &[&str]) = match self {
            Self::Offline => ("dev.tillgate.offline", &[]),
            Self::Stripe => ("dev.tillgate.stripe_payment_method", &["card"]),
            Self::WooPayments => ("dev.tillgate.woopayments_payment_method", &["card"]),
            Self::Mock => ("dev.tillgate.mock", &[]),
        };
        UcpTable {
            name: name.to_owned(),
            version: "2026-04-08".to_owned(),
            spec: None,
            schema: None,
            instrument_types: types.iter().map(|kind| (*kind).to_owned()).collect(),
            config: Map::new(),
        }
    }

    fn acp(self) -> AcpTable {
        let (name, psp, delegated) = match self {
            Self::Offline => ("dev.tillgate.offline", "seller_managed", false),
            Self::Stripe => ("dev.acp.tokenized.card", "stripe", true),
            Self::WooPayments => ("dev.acp.tokenized.card", "woopayments", true),
            Self::Mock => ("dev.tillgate.mock", "mock", true),
        };
        let mut config = Map::new();
        if matches!(self, Self::Stripe | Self::WooPayments) {
            config.insert("accepted_brands".to_owned(), json!(["visa", "mastercard", "amex"]));
        }
        AcpTable {
            name: name.to_owned(),
            version: "2026-01-22".to_owned(),
            spec: format!("https://tillgate.dev/handlers/{name}"),
            psp: psp.to_owned(),
            config_schema: format!("https://tillgate.dev/handlers/{name}/config.json"),
            instrument_schemas: vec![format!("https://tillgate.dev/handlers/{name}/instrument.json")],
            requires_delegate_payment: delegated,
            config,
        }
    }
}

impl UcpTable {
    fn face(self) -> UcpHandler {
        UcpHandler {
            name: self.name,
            version: self.version,
            spec: self.spec,
            schema: self.schema,
            instrument_types: self.instrument_types,
            config: self.config,
        }
    }
}

impl AcpTable {
    fn face(self, display_name: Option<String>, merchant_id: Option<&str>) -> AcpHandler {
        let mut config = self.config;
        config.entry("merchant_id").or_insert_with(|| json!(merchant_id.unwrap_or("merchant")));
        config.entry("psp").or_insert_with(|| json!(self.psp));
        AcpHandler {
            name: self.name,
            version: self.version,
            spec: self.spec,
            display_name,
            psp: self.psp,
            requires_delegate_payment: self.requires_delegate_payment,
            requires_pci_compliance: false,
            config_schema: self.config_schema,
            instrument_schemas: self.instrument_schemas,
            config,
        }
    }
}
