//! What the headers of a request say: who calls, in which version, under which key (`acp.md` §2, D-1, D-4, D-6,
//! D-9, D-10).

use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use super::{Version, errors::Failure};
use crate::{
    checkout::ids::CallerId,
    idempotency::{Key, Policy},
    protocol::ShopFace,
};

/// The version that the client speaks.
pub(super) const API_VERSION: HeaderName = HeaderName::from_static("api-version");
/// The key that makes a write safe to repeat.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks an answer that was given before.
pub(super) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Names a request for both sides.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// The one value of a header: `None` when it is absent, an error when it is there twice or not ASCII.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(());
    }
    first.to_str().map(|text| Some(text.trim())).map_err(|_| ())
}

/// Tells which agent calls. All digests are compared, each in constant time.
pub(super) fn caller(face: &ShopFace, headers: &HeaderMap) -> Result<CallerId, Failure> {
    let value = single(headers, &header::AUTHORIZATION).ok().flatten().ok_or(Failure::Unauthorized)?;
    let (scheme, token) = value.split_once(' ').ok_or(Failure::Unauthorized)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Failure::Unauthorized);
    }
    let digest: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
    let mut known = None;
    for agent in &face.agents {
        let fits = agent.token_digests.iter().fold(Choice::from(0), |fits, one| fits | one.ct_eq(&digest));
        if bool::from(fits) {
            known = Some(agent);
        }
    }
    known.map(|agent| CallerId::new(format!("acp:{}", agent.id))).ok_or(Failure::Unauthorized)
}

/// Tells which version the client speaks.
pub(super) fn version(headers: &HeaderMap) -> Result<Version, Failure> {
    match single(headers, &API_VERSION) {
        Ok(None) => Err(Failure::VersionMissing),
        Ok(Some(date)) => Version::parse(date).ok_or(Failure::VersionUnsupported),
        Err(()) => Err(Failure::VersionUnsupported),
    }
}

/// Checks that a body is announced as JSON, with whatever parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Result<(), Failure> {
    let value = single(headers, &header::CONTENT_TYPE).ok().flatten().ok_or(Failure::MediaType)?;
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Failure::MediaType) }
}

/// Reads the key of a write.
pub(super) fn key(headers: &HeaderMap, policy: Policy) -> Result<Option<Key>, Failure> {
    match single(headers, &IDEMPOTENCY_KEY) {
        Ok(None) if policy.key_required => Err(Failure::KeyMissing),
        Ok(None) => Ok(None),
        Ok(Some(text)) => Key::parse(text).map(Some).ok_or(Failure::KeyInvalid),
        Err(()) => Err(Failure::KeyInvalid),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use axum::http::HeaderValue;

    use super::*;
    use crate::{arbitrary, idempotency::policy::ACP_2026_04_17, protocol::acp::samples};

    fn with(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    /// Requirements: A-003.
    #[test]
    fn an_agent_is_known_by_any_of_its_tokens() {
        let face = samples::face();
        for (values, want) in [
            (&["Bearer test-token"][..], Some("acp:demo")),
            (&["bearer  test-token "], Some("acp:demo")),
            (&["Bearer older-token"], Some("acp:demo")),
            (&["Bearer other-token"], Some("acp:other")),
            (&["Bearer wrong"], None),
            (&["Bearer "], None),
            (&["Bearer"], None),
            (&["Basic test-token"], None),
            (&["test-token"], None),
            (&["Bearer test-token", "Bearer test-token"], None),
            (&["Bearer t\u{e9}st"], None),
            (&[], None),
        ] {
            let found = caller(&face, &with(&header::AUTHORIZATION, values)).ok();
            assert_eq!(found.as_ref().map(CallerId::as_str), want, "{values:?}");
        }
    }

    /// Requirements: A-004.
    #[test]
    fn the_version_is_one_that_is_spoken() {
        assert!(matches!(version(&with(&API_VERSION, &["2026-04-17"])), Ok(Version::V2026_04_17)));
        assert!(matches!(version(&HeaderMap::new()), Err(Failure::VersionMissing)));
        for values in [&["1999-01-01"][..], &[""], &["2026-04-17", "2026-04-17"], &["newest"]] {
            assert!(
                matches!(version(&with(&API_VERSION, values)), Err(Failure::VersionUnsupported)),
                "{values:?}"
            );
        }
    }

    /// Requirements: D-4.
    #[test]
    fn the_body_is_announced_as_json() {
        for value in ["application/json", "Application/JSON; charset=utf-8", "application/json;v=1"] {
            assert!(media_type(&with(&header::CONTENT_TYPE, &[value])).is_ok(), "{value}");
        }
        for values in
            [&["text/plain"][..], &[""], &[], &["application/jsonx"], &["application/json", "text/plain"]]
        {
            assert!(media_type(&with(&header::CONTENT_TYPE, values)).is_err(), "{values:?}");
        }
    }

    /// Requirements, D-10.
    #[test]
    fn a_write_has_one_key_of_bounded_length() {
        let policy = ACP_2026_04_17;
        let long = "k".repeat(255);
        assert!(key(&with(&IDEMPOTENCY_KEY, &[&long]), policy).is_ok());
        assert!(matches!(key(&HeaderMap::new(), policy), Err(Failure::KeyMissing)));
        let longer = "k".repeat(256);
        for values in [&[""][..], &[longer.as_str()], &["a", "a"], &["a b"], &["\u{e9}"]] {
            let found = key(&with(&IDEMPOTENCY_KEY, values), policy);
            assert!(matches!(found, Err(Failure::KeyInvalid)), "{values:?}");
        }
        let free = Policy { key_required: false, ..policy };
        assert!(matches!(key(&HeaderMap::new(), free), Ok(None)));
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn any_headers_are_read_or_refused(values in proptest::collection::vec(arbitrary::header_line(), 0..3)) {
            let lines = |name: &HeaderName| {
                let mut headers = HeaderMap::new();
                for value in &values {
                    headers.append(name.clone(), HeaderValue::from_bytes(value).unwrap());
                }
                headers
            };
            let only = match values.as_slice() {
                [one] => std::str::from_utf8(one).ok().filter(|text| text.is_ascii()).map(str::trim),
                _ => None,
            };
            prop_assert!(caller(&samples::face(), &lines(&header::AUTHORIZATION)).is_err());
            let said = version(&lines(&API_VERSION));
            prop_assert_eq!(said.is_ok(), only.and_then(Version::parse).is_some());
            let essence = only.and_then(|text| text.split(';').next()).map(str::trim);
            let json = essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
            prop_assert_eq!(media_type(&lines(&header::CONTENT_TYPE)).is_ok(), json);
            match key(&lines(&IDEMPOTENCY_KEY), ACP_2026_04_17) {
                Ok(key) => prop_assert_eq!(key.as_ref().map(Key::as_str), only),
                Err(Failure::KeyMissing) => prop_assert!(values.is_empty()),
                Err(_) => prop_assert!(only.and_then(Key::parse).is_none()),
            }
        }
    }
}
