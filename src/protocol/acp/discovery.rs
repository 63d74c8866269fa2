//! `/.well-known/acp.json`: what an agent may know before it has a token (`acp.md` §8). No handler, no merchant
//! id and no key shows here.

use serde::Serialize;

use super::{EXTENSION_DISCOUNT, INTERVENTIONS, Version};
use crate::{idempotency::Answer, protocol::ShopFace};

/// How long it may be cached.
pub(super) const CACHE_CONTROL: &str = "public, max-age=3600";

#[derive(Debug, Serialize)]
struct Discovery<'a> {
    protocol: Protocol,
    api_base_url: String,
    transports: [&'static str; 1],
    capabilities: Capabilities<'a>,
}

#[derive(Debug, Serialize)]
struct Protocol {
    name: &'static str,
    version: &'static str,
    supported_versions: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Capabilities<'a> {
    services: [&'static str; 1],
    extensions: [Extension; 1],
    intervention_types: &'static [&'static str],
    supported_currencies: [String; 1],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    supported_locales: &'a [String],
}

#[derive(Debug, Serialize)]
struct Extension {
    name: &'static str,
}

/// The document of a shop.
pub(super) fn document(face: &ShopFace) -> Answer {
    let document = Discovery {
        protocol: Protocol {
            name: "acp",
            version: Version::NEWEST.date(),
            supported_versions: Version::ALL.iter().map(|version| version.date()).collect(),
        },
        api_base_url: format!("{}/acp", face.public_url),
        transports: ["rest"],
        capabilities: Capabilities {
            services: ["checkout"],
            extensions: [Extension { name: EXTENSION_DISCOUNT }],
            intervention_types: INTERVENTIONS,
            supported_currencies: [face.currency.code().to_ascii_lowercase()],
            supported_locales: &face.locales,
        },
    };
    Answer::json(200, &document)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::acp::samples;

    /// Requirements.
    #[test]
    fn it_says_what_is_built_and_nothing_secret() {
        let answer = document(&samples::face());
        let text = String::from_utf8(answer.body.clone()).unwrap();
        for secret in ["mock_payment_handler", "merchant", "acct_1", "demo"] {
            assert!(!text.contains(secret), "{secret}");
        }
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "protocol": {"name": "acp", "version": "2026-04-17", "supported_versions": ["2026-04-17"]},
                "api_base_url": "https://gate.example/acp",
                "transports": ["rest"],
                "capabilities": {
                    "services": ["checkout"],
                    "extensions": [{"name": "discount"}],
                    "intervention_types": ["3ds"],
                    "supported_currencies": ["eur"],
                    "supported_locales": ["de-DE"]
                }
            })
        );
    }
}
