//! Request headers: who calls (`UCP-Agent`, RFC 8941), the key, the request id, the content type.

use axum::http::{HeaderMap, HeaderName, header};
use sfv::{Dictionary, ListEntry, Parser};

use super::errors::Failure;
use crate::{clock::Ids, idempotency::Key};

pub(crate) const UCP_AGENT: HeaderName = HeaderName::from_static("ucp-agent");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Longest request id that is repeated.
const MAX_REQUEST_ID: usize = 1024;

/// The profile URL that the caller names. Lines are joined as RFC 8941 says; other members and parameters
/// are ignored.
pub(crate) fn agent(headers: &HeaderMap) -> Result<String, Failure> {
    let mut joined = String::new();
    for line in headers.get_all(UCP_AGENT) {
        let line = line.to_str().map_err(|_| Failure::Agent("UCP-Agent must be ASCII"))?;
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(line);
    }
    if joined.is_empty() {
        return Err(Failure::Agent("the UCP-Agent header with the profile URL is missing"));
    }
    let members: Dictionary = Parser::new(&joined)
        .parse()
        .map_err(|_| Failure::Agent("UCP-Agent must be a structured dictionary: profile=\"https://…\""))?;
    let profile = match members.get("profile") {
        Some(ListEntry::Item(item)) => item.bare_item.as_string(),
        Some(ListEntry::InnerList(_)) | None => None,
    };
    profile
        .map(|url| url.as_str().to_owned())
        .ok_or(Failure::Agent("UCP-Agent must hold profile=\"https://…\", a quoted string"))
}

/// The idempotency key, if there is one; twice, empty or beyond its syntax is refused.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Key>, Failure> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Failure::Header("Idempotency-Key must be sent once"));
    }
    let key = first.to_str().ok().and_then(Key::parse);
    key.map(Some).ok_or(Failure::Header("Idempotency-Key must be 1 to 255 printable ASCII characters"))
}

/// The request id as sent, or a new one.
pub(crate) fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let usable = sent.filter(|id| {
        (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    });
    usable.map_or_else(|| Ids.uuid(), str::to_owned)
}

/// Refuses a body that says it is something else than JSON. A body that says nothing is read as JSON.
pub(crate) fn content_type(headers: &HeaderMap) -> Result<(), Failure> {
    let mut lines = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = lines.next() else { return Ok(()) };
    if lines.next().is_some() {
        return Err(Failure::MediaType);
    }
    let essence = value.to_str().ok().and_then(|text| text.split(';').next()).unwrap_or_default();
    if essence.trim().eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Failure::MediaType) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    /// Requirements: U-018.
    #[test]
    fn the_agent_is_a_structured_dictionary() {
        for (line, url) in [
            (r#"profile="https://a.example/p""#, Some("https://a.example/p")),
            (r#"  x=1 ,profile="https://a.example/p";version="2099-01-01", y"#, Some("https://a.example/p")),
            (r#"profile="https://old.example", profile="https://new.example""#, Some("https://new.example")),
            (r#"profile="a\"b""#, Some("a\"b")),
            (r"profile=https://a.example", None),
            (r"profile=token", None),
            (r"profile=:aGk=:", None),
            (r#"profile=("https://a.example")"#, None),
            (r#"foo="https://a.example""#, None),
            (r"profile", None),
            (r#"Profile="https://a.example""#, None),
            (r#"profile="https://a.example"#, None),
            ("", None),
        ] {
            let found = agent(&headers(&[(&UCP_AGENT, line)])).ok();
            assert_eq!(found.as_deref(), url, "{line}");
        }
        let split = headers(&[(&UCP_AGENT, "x=1"), (&UCP_AGENT, r#"profile="https://a.example""#)]);
        assert_eq!(agent(&split).unwrap(), "https://a.example");
        assert!(matches!(agent(&HeaderMap::new()), Err(Failure::Agent(_))));
    }

    #[test]
    fn a_key_comes_once_and_in_printable_ascii() {
        let long = "k".repeat(256);
        let name = IDEMPOTENCY_KEY;
        let key = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| (&name, *line)).collect();
            idempotency_key(&headers(&lines))
        };
        assert_eq!(key(&[]).unwrap(), None);
        assert_eq!(key(&["\"abc\""]).unwrap().unwrap().as_str(), "\"abc\"");
        for bad in [&["a", "a"][..], &[""], &["a b"], &[&long]] {
            assert!(matches!(key(bad), Err(Failure::Header(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_request_id_is_repeated_or_made() {
        assert_eq!(request_id(&headers(&[(&REQUEST_ID, "r-1")])), "r-1");
        let long = "r".repeat(1025);
        for odd in [HeaderMap::new(), headers(&[(&REQUEST_ID, &long)]), headers(&[(&REQUEST_ID, "")])] {
            assert_eq!(request_id(&odd).len(), 36);
        }
    }

    /// Requirements: U-042.
    #[test]
    fn only_json_is_read() {
        for (text, fits) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/jsonp", false),
            ("", false),
        ] {
            assert_eq!(content_type(&headers(&[(&header::CONTENT_TYPE, text)])).is_ok(), fits, "{text}");
        }
        assert!(content_type(&HeaderMap::new()).is_ok());
        let json = (&header::CONTENT_TYPE, "application/json");
        assert!(content_type(&headers(&[json, json])).is_err(), "two readers might read it differently");
    }
}
