//! How a recorded answer becomes the answer to a live call.
//!
//! - Form: a batch of one answered to a single call is unwrapped, and the other way round.
//! - `_fields`: a successful JSON answer is cut to the top-level members that the live call asks for, as the
//!   shop would do it. Where the recorded call asked for fewer, the answer has fewer: a recording cannot know
//!   more than it was told, and a client that needs the member notices its absence by itself.
//! - Text: recorded tokens become the caller's, stand-ins and correlation id become what they are bound to.
//! - Headers that speak of the transport, of the moment (`Date`) or of a browser's session (`Set-Cookie`)
//!   stay behind.

use serde_json::{Map, Value, json};

use super::har::Header;
use super::matching::Call;
use super::thread::{Answer, Body};

/// What the tape answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    /// An answer as the shop gave it.
    Answer {
        /// HTTP status.
        status: u16,
        /// Header lines.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// The recorded client never saw the answer: neither does this one.
    Lost,
}

impl Reply {
    /// A JSON answer of the tape itself.
    pub(super) fn json(status: u16, token: Option<&str>, body: &Value) -> Self {
        let mut headers = vec![("Content-Type".to_owned(), "application/json; charset=UTF-8".to_owned())];
        headers.extend(token.map(|token| ("Cart-Token".to_owned(), token.to_owned())));
        Self::Answer { status, headers, body: body.to_string().into_bytes() }
    }
}

const LEFT_OUT: [&str; 9] = [
    "connection",
    "content-encoding",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "set-cookie",
    "trailer",
    "transfer-encoding",
];

/// The headers that an answer inside a batch has.
const INNER: [&str; 6] = ["nonce", "nonce-timestamp", "user-id", "cart-token", "cart-hash", "allow"];

/// Renders the answer to `recorded` as one to `live`; `replace` are pairs of recorded and live text.
pub(super) fn render(recorded: &Call, answer: &Answer, live: &Call, replace: &[(String, String)]) -> Reply {
    let Answer { mut status, ref headers, ref body } = *answer;
    if status == 0 {
        return Reply::Lost;
    }
    let mut headers: Vec<Header> =
        headers.iter().filter(|header| !is_in(&LEFT_OUT, &header.name)).cloned().collect();
    let mut body = body.clone();
    match (recorded.batch, live.batch) {
        (true, false) => unwrap(&mut status, &mut headers, &mut body),
        (false, true) => wrap(&mut status, &mut headers, &mut body),
        (true, true) | (false, false) => {}
    }
    if let Body::Json(value) = &mut body {
        if live.batch {
            let responses = value.get_mut("responses").and_then(Value::as_array_mut);
            for (inner, request) in responses.into_iter().flatten().zip(&live.requests) {
                let inner_status = inner.get("status").and_then(Value::as_u64).unwrap_or_default();
                if let (200..=299, Some(body)) = (inner_status, inner.get_mut("body")) {
                    trim(body, request.fields.as_deref());
                }
            }
        } else if status < 300 {
            trim(value, live.first().and_then(|request| request.fields.as_deref()));
        }
        substitute_all(value, replace);
    }
    let body = match body {
        Body::Json(value) => value.to_string().into_bytes(),
        Body::Other(bytes) if replace.is_empty() => bytes,
        Body::Other(bytes) => String::from_utf8(bytes)
            .map_or_else(std::string::FromUtf8Error::into_bytes, |text| {
                substitute(&text, replace).into_bytes()
            }),
    };
    let headers =
        headers.into_iter().map(|Header { name, value }| (name, substitute(&value, replace))).collect();
    Reply::Answer { status, headers, body }
}

fn is_in(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The answer of a batch of one, as a single call gets it.
fn unwrap(status: &mut u16, headers: &mut Vec<Header>, body: &mut Body) {
    let Body::Json(value) = body else { return };
    // Where the batch itself was refused there is nothing to unwrap.
    let Some(inner) = value.get_mut("responses").and_then(|responses| responses.get_mut(0)) else { return };
    let inner = inner.take();
    *status = inner
        .get("status")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(*status);
    headers.retain(|header| !is_in(&INNER, &header.name));
    for (name, value) in inner.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        headers.push(Header { name: name.clone(), value });
    }
    *body = Body::Json(inner.get("body").cloned().unwrap_or_default());
}

/// The answer of a single call, as a batch of one gets it.
fn wrap(status: &mut u16, headers: &mut Vec<Header>, body: &mut Body) {
    let Body::Json(value) = body else { return };
    let mut inner = Map::new();
    for header in headers.iter().filter(|header| is_in(&INNER, &header.name)) {
        inner.insert(header.name.clone(), header.value.as_str().into());
    }
    headers.retain(|header| !header.name.eq_ignore_ascii_case("cart-token"));
    *value = json!({ "responses": [{ "body": value.take(), "status": *status, "headers": inner }] });
    *status = 207;
}

/// Cuts a body, or each item of a list, to the members that `_fields` names.
pub(super) fn trim(body: &mut Value, fields: Option<&[String]>) {
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return };
    match body {
        Value::Object(members) => members.retain(|name, _| fields.contains(name)),
        Value::Array(items) => items.iter_mut().for_each(|item| {
            if let Value::Object(members) = item {
                members.retain(|name, _| fields.contains(name));
            }
        }),
        _ => {}
    }
}

fn substitute_all(value: &mut Value, replace: &[(String, String)]) {
    match value {
        Value::String(text) => *text = substitute(text, replace),
        Value::Array(items) => items.iter_mut().for_each(|item| substitute_all(item, replace)),
        Value::Object(members) => members.values_mut().for_each(|member| substitute_all(member, replace)),
        _ => {}
    }
}

/// Below this length a recorded text is replaced only where it is the whole value: "1" is everywhere.
const SAFE_LENGTH: usize = 8;

/// Replaces every pair in one pass, so that what was put in is not replaced again.
fn substitute(text: &str, replace: &[(String, String)]) -> String {
    if let Some((_, live)) = replace.iter().find(|(recorded, _)| recorded == text) {
        return live.clone();
    }
    let mut rest = text;
    let mut out = String::new();
    loop {
        let places = replace.iter().filter(|(recorded, _)| recorded.len() >= SAFE_LENGTH);
        let places = places.filter_map(|pair| Some((rest.find(pair.0.as_str())?, pair)));
        let next = places.min_by_key(|(at, (recorded, _))| (*at, std::cmp::Reverse(recorded.len())));
        let Some((before, after, live)) = next.and_then(|(at, (recorded, live))| {
            let (before, found) = rest.split_at_checked(at)?;
            Some((before, found.strip_prefix(recorded.as_str())?, live))
        }) else {
            out.push_str(rest);
            return out;
        };
        out.push_str(before);
        out.push_str(live);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
    }

    fn body(reply: Reply) -> (u16, Value) {
        match reply {
            Reply::Answer { status, body, .. } => (status, serde_json::from_slice(&body).unwrap()),
            Reply::Lost => panic!("lost"),
        }
    }

    #[test]
    fn text_is_replaced_in_one_pass_and_short_text_only_as_a_whole() {
        let swapped =
            pairs(&[("anna@example.com", "sam@example.com"), ("sam@example.com", "anna@example.com")]);
        assert_eq!(
            substitute("anna@example.com, sam@example.com!", &swapped),
            "sam@example.com, anna@example.com!"
        );
        let short = pairs(&[("1", "2")]);
        assert_eq!((substitute("1", &short), substitute("21", &short)), ("2".to_owned(), "21".to_owned()));
    }

    #[test]
    fn an_answer_is_trimmed_to_the_fields_asked_for_but_an_error_is_not() {
        let recorded = Call::new("GET", "/wp-json/wc/store/v1/cart", "", None, b"");
        let live = Call::new("GET", "/wp-json/wc/store/v1/cart", "_fields=totals.total_price,x", None, b"");
        for (status, expected) in
            [(200, json!({"totals": {"a": 1}})), (404, json!({"totals": {"a": 1}, "items": []}))]
        {
            let answer = Answer {
                status,
                headers: vec![],
                body: Body::Json(json!({"totals": {"a": 1}, "items": []})),
            };
            assert_eq!(body(render(&recorded, &answer, &live, &[])), (status, expected));
        }
    }
}
