//! One exchange as an entry of HAR 1.2, scrubbed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::scrub::{SHOP, Scrubber, Side};

/// The longest body that is kept, in bytes; longer ones are passed on and left out.
const LONGEST: usize = 8 << 20;

/// A body as far as it is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    size: usize,
    /// What passed after it was cut.
    more: Arc<AtomicUsize>,
}

impl Kept {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.size = self.size.saturating_add(chunk.len());
        if self.size <= LONGEST {
            self.bytes.extend_from_slice(chunk);
        } else {
            self.bytes = Vec::new();
        }
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.size > LONGEST
    }

    /// In all, so far.
    pub(super) fn size(&self) -> usize {
        self.size.saturating_add(self.more.load(Ordering::Relaxed))
    }

    /// Counts what passes without being pushed.
    pub(super) fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.more)
    }
}

/// Header lines.
pub(super) type Lines = Vec<(String, String)>;

/// What was asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) started: DateTime<Utc>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) version: String,
    pub(super) headers: Lines,
    pub(super) body: Kept,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answered {
    /// 0: the answer did not come, or not to its end.
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) version: String,
    pub(super) headers: Lines,
    pub(super) body: Kept,
    /// Until the first byte, in milliseconds.
    pub(super) wait_ms: u64,
    /// From there to the end, in milliseconds.
    pub(super) receive_ms: u64,
}

fn header<'h>(lines: &'h Lines, name: &str) -> &'h str {
    lines.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value.as_str())
}

/// Learns what a call gives away, before anything else of it is known.
pub(super) fn learn(scrubber: &mut Scrubber, asked: &Asked) {
    request(scrubber, asked);
}

/// The entry, scrubbed.
pub(super) fn entry(scrubber: &mut Scrubber, asked: &Asked, answered: &Answered) -> String {
    // Once to learn, once to write.
    request(scrubber, asked);
    response(scrubber, asked, answered);
    scrubber.begin();
    let (request, mut comments) = request(scrubber, asked);
    let (response, comment) = response(scrubber, asked, answered);
    comments.extend(comment);
    let used = scrubber.used();
    let mut entry = json!({
        "startedDateTime": asked.started.to_rfc3339_opts(SecondsFormat::Micros, true),
        "time": answered.wait_ms.saturating_add(answered.receive_ms),
        "request": request,
        "response": response,
        "cache": {},
        "timings": { "send": 0, "wait": answered.wait_ms, "receive": answered.receive_ms },
        "_tillgate": { "stand_ins": used.all, "personal": used.personal },
    });
    if let (false, Some(members)) = (comments.is_empty(), entry.as_object_mut()) {
        members.insert("comment".to_owned(), comments.join("; ").into());
    }
    entry.to_string()
}

type Comments = Vec<&'static str>;

fn lines(scrubber: &mut Scrubber, lines: &Lines) -> Vec<Value> {
    let shown =
        lines.iter().map(|(name, value)| json!({ "name": name, "value": scrubber.header(name, value) }));
    shown.collect()
}

fn request(scrubber: &mut Scrubber, asked: &Asked) -> (Value, Comments) {
    let path = scrubber.path(&asked.path);
    let pairs = scrubber.pairs(&asked.path, &asked.query);
    let query = encoded(&pairs);
    let mark = if query.is_empty() { "" } else { "?" };
    let named = pairs.iter().map(|(name, value)| json!({ "name": name, "value": value }));
    let mut request = json!({
        "method": asked.method,
        "url": format!("{SHOP}{path}{mark}{query}"),
        "httpVersion": asked.version,
        "cookies": [],
        "headers": lines(scrubber, &asked.headers),
        "queryString": named.collect::<Vec<_>>(),
        "headersSize": -1,
        "bodySize": asked.body.size(),
    });
    let mut comments = Comments::new();
    if asked.body.size() > 0 {
        let mime = header(&asked.headers, "content-type");
        let text = match body(scrubber, Side::Request, asked, mime, "", &asked.body) {
            Shown::Text(text) => text,
            Shown::Base64(_) => {
                comments.push("the request's body is not text and was left out");
                String::new()
            }
            Shown::LeftOut(why) => {
                comments.push(why);
                String::new()
            }
        };
        if let Some(members) = request.as_object_mut() {
            members.insert("postData".to_owned(), json!({ "mimeType": mime, "text": text }));
        }
    }
    (request, comments)
}

fn response(scrubber: &mut Scrubber, asked: &Asked, answered: &Answered) -> (Value, Option<&'static str>) {
    let mime = header(&answered.headers, "content-type");
    let coding = header(&answered.headers, "content-encoding");
    let mut content = json!({ "size": answered.body.size(), "mimeType": mime });
    let mut comment = (answered.status == 0).then_some("the answer did not come, or broke off");
    if answered.status != 0
        && let Some(members) = content.as_object_mut()
    {
        match body(scrubber, Side::Answer, asked, mime, coding, &answered.body) {
            Shown::Text(text) => {
                members.insert("text".to_owned(), text.into());
            }
            Shown::Base64(text) => {
                members.insert("text".to_owned(), text.into());
                members.insert("encoding".to_owned(), "base64".into());
            }
            Shown::LeftOut(why) => comment = Some(why),
        }
        members.extend(comment.map(|why| ("comment".to_owned(), why.into())));
    }
    let location = header(&answered.headers, "location");
    let response = json!({
        "status": answered.status,
        "statusText": answered.reason,
        "httpVersion": answered.version,
        "cookies": [],
        "headers": lines(scrubber, &answered.headers),
        "content": content,
        "redirectURL": scrubber.header("location", location),
        "headersSize": -1,
        "bodySize": answered.body.size(),
    });
    (response, comment)
}

/// A body as it is written.
enum Shown {
    Text(String),
    Base64(String),
    LeftOut(&'static str),
}

fn body(scrubber: &mut Scrubber, side: Side, asked: &Asked, mime: &str, coding: &str, kept: &Kept) -> Shown {
    let mime = mime.to_ascii_lowercase();
    let mime = mime.split(';').next().unwrap_or_default().trim();
    if kept.is_cut() {
        return Shown::LeftOut("the body is longer than 8 MiB and was left out");
    }
    if !matches!(coding.to_ascii_lowercase().as_str(), "" | "identity") {
        return Shown::LeftOut("the body is compressed, although that was not asked for, and was left out");
    }
    // A shop's page for people shows what it knows of them, in ways that no rule can follow.
    let api = asked.path.contains("/wp-json") || asked.query.contains("rest_route=");
    if side == Side::Answer && mime == "text/html" && !api && kept.size > 0 {
        return Shown::LeftOut("a page for people: its text was left out");
    }
    if mime == "multipart/form-data" {
        return Shown::LeftOut("the body is a form with files and was left out");
    }
    match std::str::from_utf8(&kept.bytes) {
        Ok(text) if mime == "application/x-www-form-urlencoded" => {
            Shown::Text(encoded(&scrubber.pairs(&asked.path, text)))
        }
        Ok(text) if !text.contains('\0') => Shown::Text(scrubber.json_text(text, side)),
        _ if ["image/", "font/", "audio/", "video/"].iter().any(|start| mime.starts_with(start)) => {
            Shown::Base64(data_encoding::BASE64.encode(&kept.bytes))
        }
        // A document may say anything of anybody.
        _ => Shown::LeftOut("the body is neither text nor a picture and was left out"),
    }
}

fn encoded(pairs: &[(String, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
