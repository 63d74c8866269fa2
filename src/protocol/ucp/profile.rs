//! The shop's own profile (`discovery/profile_schema.json`, `business_schema`): one for each version, the
//! newest at the address without a version.

use serde_json::{Map, Value, json};

use super::version::Version;
use crate::protocol::{
    ShopFace,
    shop::{HandlerFace, UcpHandler},
};

/// How long others may keep a profile.
pub(crate) const CACHE_CONTROL: &str = "public, max-age=3600";

/// The profile of a version. `fixed` makes the leaf document, whose endpoint speaks this version only.
pub(crate) fn document(face: &ShopFace, version: Version, fixed: bool) -> Value {
    let text = version.text();
    let root = if fixed { text } else { "ucp" };
    let mut capabilities = Map::new();
    for offer in version.offers() {
        let mut entry = json!({
            "version": text,
            "spec": format!("https://ucp.dev/{text}/specification/{}", offer.page),
            "schema": format!("https://ucp.dev/{text}/schemas/shopping/{}.json", offer.schema),
        });
        if let Value::Object(entry) = &mut entry {
            match offer.extends {
                [] => {}
                [parent] => {
                    entry.insert("extends".into(), json!(parent));
                }
                parents => {
                    entry.insert("extends".into(), json!(parents));
                }
            }
            if let Some(config) = offer.config.and_then(|config| serde_json::from_str(config).ok()) {
                entry.insert("config".into(), config);
            }
        }
        capabilities.insert(offer.name.to_owned(), json!([entry]));
    }
    json!({"ucp": {
        "version": text,
        "services": {"dev.ucp.shopping": [{
            "version": text,
            "transport": "rest",
            "endpoint": format!("{}/{root}", face.public_url),
            "spec": format!("https://ucp.dev/{text}/specification/overview"),
            "schema": format!("https://ucp.dev/{text}/services/shopping/rest.openapi.json"),
        }]},
        "capabilities": capabilities,
        "payment_handlers": handlers(face.handlers.iter(), |_, ucp| Some(plain_instruments(ucp))),
    }})
}

/// A registry of handlers: grouped by name. `instruments` tells what a handler takes: `None` leaves the
/// handler out, an empty list sets no restriction.
pub(crate) fn handlers<'a>(
    faces: impl Iterator<Item = &'a HandlerFace>,
    instruments: impl Fn(&HandlerFace, &UcpHandler) -> Option<Vec<Value>>,
) -> Map<String, Value> {
    let mut groups = Map::new();
    for face in faces {
        let Some(ucp) = &face.ucp else { continue };
        let Some(instruments) = instruments(face, ucp) else { continue };
        let mut entry = Map::new();
        entry.insert("id".into(), json!(face.id));
        entry.insert("version".into(), json!(ucp.version));
        for (name, value) in [("spec", &ucp.spec), ("schema", &ucp.schema)] {
            if let Some(value) = value {
                entry.insert(name.into(), json!(value));
            }
        }
        if !instruments.is_empty() {
            entry.insert("available_instruments".into(), Value::Array(instruments));
        }
        if !ucp.config.is_empty() {
            entry.insert("config".into(), Value::Object(ucp.config.clone()));
        }
        if let Value::Array(group) =
            groups.entry(ucp.name.clone()).or_insert_with(|| Value::Array(Vec::new()))
        {
            group.push(Value::Object(entry));
        }
    }
    groups
}

/// The instrument types that a handler takes, without restriction by the platform.
pub(crate) fn plain_instruments(ucp: &UcpHandler) -> Vec<Value> {
    ucp.instrument_types.iter().map(|kind| json!({ "type": kind })).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::samples, *};

    #[test]
    fn each_profile_advertises_its_own_root_and_only_what_is_built() {
        let face = samples::face();
        let current = document(&face, Version::CURRENT, false);
        let leaf = document(&face, Version::V2026_04_08, true);
        let endpoint = "/ucp/services/dev.ucp.shopping/0/endpoint";
        assert_eq!(current.pointer(endpoint).unwrap(), "https://shop.example/agents/ucp");
        assert_eq!(leaf.pointer(endpoint).unwrap(), "https://shop.example/agents/2026-04-08");
        assert!(current["ucp"].get("supported_versions").is_none());
        let names: Vec<_> = current["ucp"]["capabilities"].as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "dev.ucp.shopping.buyer_consent",
                "dev.ucp.shopping.catalog.lookup",
                "dev.ucp.shopping.catalog.search",
                "dev.ucp.shopping.checkout",
                "dev.ucp.shopping.discount",
                "dev.ucp.shopping.fulfillment"
            ]
        );
        let mock = &current["ucp"]["payment_handlers"]["dev.tillgate.mock"][0];
        assert_eq!(mock["id"], "mock_payment_handler");
        samples::save("profile", &current);
        samples::save("profile", &leaf);
    }
}
