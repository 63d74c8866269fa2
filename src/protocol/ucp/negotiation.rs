//! Version and capability negotiation (`overview`, "Negotiation Protocol"): who calls, in which version, and
//! what both sides understand. The first failure ends it.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    PROTOCOL,
    errors::Failure,
    headers,
    version::{Offer, Version},
};
use crate::{
    checkout::ids::CallerId,
    platform::{Platforms, Profile},
    protocol::ShopFace,
};

pub(crate) const CHECKOUT: &str = "dev.ucp.shopping.checkout";
pub(crate) const CATALOG_SEARCH: &str = "dev.ucp.shopping.catalog.search";
pub(crate) const CATALOG_LOOKUP: &str = "dev.ucp.shopping.catalog.lookup";
pub(crate) const FULFILLMENT: &str = "dev.ucp.shopping.fulfillment";
pub(crate) const DISCOUNT: &str = "dev.ucp.shopping.discount";
pub(crate) const BUYER_CONSENT: &str = "dev.ucp.shopping.buyer_consent";

/// What both sides understand; stored with an attempt, so that it can be answered later.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Negotiated {
    /// Active capabilities that belong to the operation, and their versions.
    pub capabilities: BTreeMap<String, String>,
    /// The instruments that the platform restricts itself to, by handler name.
    pub instruments: BTreeMap<String, Vec<Value>>,
}

impl Negotiated {
    /// Whether the capability is active.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.capabilities.contains_key(name)
    }
}

/// A caller that was understood.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// Who calls.
    pub caller: CallerId,
    /// The version spoken.
    pub version: Version,
    /// What both sides understand.
    pub negotiated: Negotiated,
}

/// Runs the pipeline for an operation of `capability`. `fixed` is the version that the address called is
/// fixed to.
pub(crate) async fn greet(
    face: &ShopFace,
    platforms: &Platforms,
    fixed: Option<Version>,
    headers: &HeaderMap,
    capability: &'static str,
) -> Result<Greeting, Failure> {
    let url = headers::agent(headers)?;
    let profile = platforms.profile(&url, fixed.map(Version::text)).await.map_err(Failure::Profile)?;
    let version = spoken(&profile, fixed)?;
    let common = intersect(&profile, version.offers(), version.text());
    let listed = of_operation(&common, version.offers(), capability);
    if !listed.contains_key(capability) {
        return Err(Failure::Incompatible { version, capability });
    }
    let advertised = face.handlers.iter().filter_map(|handler| handler.ucp.as_ref());
    let instruments = advertised
        .filter_map(|ucp| profile.instruments.get(&ucp.name).map(|list| (ucp.name.clone(), list.clone())))
        .collect();
    Ok(Greeting {
        caller: CallerId::new(format!("{PROTOCOL}:{url}")),
        version,
        negotiated: Negotiated { capabilities: listed, instruments },
    })
}

/// The version that the platform's profile says, if it is served at this address.
fn spoken(profile: &Profile, fixed: Option<Version>) -> Result<Version, Failure> {
    let version = Version::parse(&profile.version).ok_or(Failure::VersionUnsupported)?;
    match fixed {
        Some(fixed) if fixed != version => Err(Failure::VersionUnsupported),
        Some(_) | None => Ok(version),
    }
}

/// What both sides list: the highest version of each name that both have, without extensions whose parents
/// are gone.
fn intersect(profile: &Profile, offers: &[Offer], version: &str) -> BTreeMap<&'static str, String> {
    let mut common: BTreeMap<&'static str, String> = BTreeMap::new();
    for offer in offers {
        let theirs = profile.capabilities.get(offer.name).into_iter().flatten();
        let mutual = theirs.map(|entry| entry.version.as_str()).filter(|theirs| *theirs == version).max();
        if let Some(mutual) = mutual {
            common.insert(offer.name, mutual.to_owned());
        }
    }
    loop {
        let orphan = offers.iter().find(|offer| {
            common.contains_key(offer.name)
                && !offer.extends.is_empty()
                && !offer.extends.iter().any(|parent| common.contains_key(parent))
        });
        let Some(orphan) = orphan else { return common };
        common.remove(orphan.name);
    }
}

/// What an answer may list: the operation's own capability and what extends it.
fn of_operation(
    common: &BTreeMap<&'static str, String>,
    offers: &[Offer],
    capability: &str,
) -> BTreeMap<String, String> {
    common
        .iter()
        .filter(|(name, _)| {
            **name == capability
                || offers.iter().any(|offer| offer.name == **name && offer.extends.contains(&capability))
        })
        .map(|(name, version)| ((*name).to_owned(), version.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{errors, samples},
        *,
    };
    use crate::platform::{Document, Pin, full_profile};

    const URL: &str = "https://agent.example/p";

    fn profile(names: &[(&str, &str)]) -> Profile {
        let mut capabilities = serde_json::Map::new();
        for (name, version) in names {
            let entry = json!({"version": version, "spec": "s", "schema": "s"});
            capabilities.entry(*name).or_insert_with(|| json!([])).as_array_mut().unwrap().push(entry);
        }
        let document = json!({"ucp": {"version": "2026-04-08", "services": {}, "payment_handlers": {},
            "capabilities": capabilities}});
        Profile::read(&document).unwrap()
    }

    /// Requirements: U-029, U-030, U-031.
    #[test]
    fn the_intersection_is_strict_and_drops_orphans() {
        let now = "2026-04-08";
        let offer = |name, extends: &'static [&'static str]| Offer {
            name,
            extends,
            page: "",
            schema: "",
            config: None,
        };
        let offers = [
            offer(CHECKOUT, &[]),
            offer("a.cart", &[]),
            offer(DISCOUNT, &[CHECKOUT, "a.cart"]),
            offer("a.child", &[DISCOUNT]),
        ];
        for (theirs, common, listed) in [
            (&[(CHECKOUT, now), ("x.other", now)][..], &[CHECKOUT][..], &[CHECKOUT][..]),
            (&[(CHECKOUT, "2026-01-23"), (CHECKOUT, now)], &[CHECKOUT], &[CHECKOUT]),
            (&[(CHECKOUT, "2026-01-23")], &[], &[]),
            (&[(DISCOUNT, now), ("a.child", now)], &[], &[]),
            (&[(DISCOUNT, now), ("a.cart", now)], &["a.cart", DISCOUNT], &[DISCOUNT]),
            (
                &[(CHECKOUT, now), (DISCOUNT, now), ("a.child", now)],
                &["a.child", CHECKOUT, DISCOUNT],
                &[CHECKOUT, DISCOUNT],
            ),
            (&[], &[], &[]),
        ] {
            let found = intersect(&profile(theirs), &offers, now);
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), common, "{theirs:?}");
            let found = of_operation(&found, &offers, CHECKOUT);
            assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), listed, "{theirs:?}");
        }
    }

    async fn outcome(document: Value, header: &str, fixed: Option<Version>) -> Result<Greeting, Failure> {
        let version = document["ucp"]["version"].as_str().unwrap_or("2026-04-08").to_owned();
        let pins = [Pin { url: URL.into(), version, document: Document::Value(document) }];
        let platforms = Platforms::new(&pins, true).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(headers::UCP_AGENT, header.parse().unwrap());
        greet(&samples::face(), &platforms, fixed, &headers, CHECKOUT).await
    }

    /// Requirements: U-017, U-023, U-024, U-027, U-033, U-038.
    #[tokio::test]
    async fn every_failure_has_its_code_and_status() {
        let full = full_profile("2026-04-08", None);
        let old = full_profile("2025-12-01", None);
        let mut narrow = full.clone();
        narrow["ucp"]["capabilities"].as_object_mut().unwrap().remove(CHECKOUT);
        let agent = format!("profile=\"{URL}\"");
        for (document, header, status, code) in [
            (&full, "profile=x", 400, "invalid_profile_url"),
            (&full, "profile=\"http://agent.example/p\"", 400, "invalid_profile_url"),
            (&full, "profile=\"http://127.0.0.1:1/p\"", 424, "profile_unreachable"),
            (&old, &agent, 422, "version_unsupported"),
            (&narrow, &agent, 200, "capabilities_incompatible"),
        ] {
            let failure = outcome(document.clone(), header, None).await.unwrap_err();
            let answer = errors::answer(&samples::face(), &failure);
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!((answer.status, &body["messages"][0]["code"]), (status, &json!(code)), "{header}");
            assert_eq!(body["continue_url"], "https://shop.example/", "{header}");
            if status == 200 {
                assert_eq!(
                    body["ucp"],
                    json!({"version": "2026-04-08", "status": "error", "capabilities": {}})
                );
                assert_eq!(body.as_object().unwrap().len(), 3);
            } else {
                assert_eq!(body["code"], code);
                assert_eq!(body["content"], body["messages"][0]["content"]);
            }
        }
        let failure = Failure::Profile(crate::platform::Error::Malformed("x".into()));
        assert_eq!(errors::answer(&samples::face(), &failure).status, 422);
    }

    #[tokio::test]
    async fn the_caller_is_its_exact_profile_url_and_instruments_travel() {
        let mut document = full_profile("2026-04-08", None);
        let visa = json!([{"type": "card", "constraints": {"brands": ["visa"]}}]);
        document["ucp"]["payment_handlers"] = json!({
            "dev.tillgate.mock": [{"id": "x", "version": "2026-04-08", "spec": "s", "schema": "s",
                "available_instruments": visa}],
            "x.unknown": [{"id": "y", "version": "2026-04-08", "spec": "s", "schema": "s",
                "available_instruments": visa}],
        });
        let greeting =
            outcome(document, &format!("profile=\"{URL}\""), Some(Version::CURRENT)).await.unwrap();
        assert_eq!(greeting.caller.as_str(), "ucp:https://agent.example/p");
        assert_eq!(greeting.version, Version::V2026_04_08);
        let names: Vec<_> = greeting.negotiated.capabilities.keys().map(String::as_str).collect();
        assert_eq!(names, [BUYER_CONSENT, CHECKOUT, DISCOUNT, FULFILLMENT]);
        assert_eq!(greeting.negotiated.instruments.len(), 1);
    }
}
