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
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

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

    fn lines(name: &HeaderName, values: &[Vec<u8>]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for value in values {
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        map
    }

    fn any_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(arbitrary::header_line(), 0..3)
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn any_agent_is_read_or_refused(values in any_lines()) {
            if let Ok(url) = agent(&lines(&UCP_AGENT, &values)) {
                prop_assert!(url.is_ascii() && !url.contains(char::is_control));
            }
        }

        #[test]
        fn a_quoted_profile_comes_back_whatever_stands_around_it(
            url in "[ -~]{0,40}", before in "[a-o][a-z0-9_]{0,5}(=(1|-2\\.5|\"x,y\"|\\?1|:aGk=:|\\(a b\\);q))?",
            after in "[q-z]{1,3}(=tok)?", blanks in "[ \t]{0,3}", parameter in "(;v=\"1\")?",
        ) {
            let quoted = url.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("{before}{blanks},{blanks}profile=\"{quoted}\"{parameter}{blanks},{blanks}{after}");
            prop_assert_eq!(agent(&lines(&UCP_AGENT, &[line.into_bytes()])).unwrap(), url);
        }

        #[test]
        fn a_key_is_one_line_of_printable_ascii(values in any_lines()) {
            let fits = |value: &[u8]| {
                (1..=255).contains(&value.len()) && value.iter().all(|byte| (b'!'..=b'~').contains(byte))
            };
            match (idempotency_key(&lines(&IDEMPOTENCY_KEY, &values)), values.as_slice()) {
                (Ok(None), []) | (Err(_), [_, _, ..]) => {}
                (Ok(Some(key)), [one]) => prop_assert!(fits(one) && key.as_str().as_bytes() == one.as_slice()),
                (Err(_), [one]) => prop_assert!(!fits(one)),
                (other, _) => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn a_request_id_can_always_be_sent_back(values in any_lines()) {
            let id = request_id(&lines(&REQUEST_ID, &values));
            prop_assert!((1..=MAX_REQUEST_ID).contains(&id.len()));
            prop_assert!(HeaderValue::try_from(id.as_str()).is_ok_and(|value| value.to_str().is_ok()));
        }

        #[test]
        fn json_is_json_in_any_case_and_with_any_parameter(
            values in any_lines(), upper in any::<u16>(), parameter in "( ?; ?[a-z]{1,6}=[a-z0-9-]{1,8}){0,2}",
        ) {
            let name = "application/json".chars().enumerate();
            let name: String = name
                .map(|(at, c)| if upper >> at & 1 == 1 { c.to_ascii_uppercase() } else { c })
                .collect();
            let json = format!("{name}{parameter}").into_bytes();
            prop_assert!(content_type(&lines(&header::CONTENT_TYPE, &[json])).is_ok());
            if content_type(&lines(&header::CONTENT_TYPE, &values)).is_ok() {
                let said = values.first().map_or(Vec::new(), |line| line.to_ascii_lowercase());
                prop_assert!(values.is_empty() || said.trim_ascii().starts_with(b"application/json"));
            }
        }
    }
}
