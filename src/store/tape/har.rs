//! HAR 1.2 files: what is read of them, and where in a file something is wrong.
//!
//! Only what the player needs is typed; unknown members are ignored, as HAR 1.2 asks ("custom fields", names
//! that begin with an underscore). An entry is read on its own, so that an error names its number.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// Why a tape could not be loaded; every message names the file, and the entry where one is to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {}", .file.display())]
    Read {
        /// The file or folder.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file is not JSON, or has no `log.entries`.
    #[error("{} is not a HAR 1.2 file", .file.display())]
    NotHar {
        /// The file.
        file: PathBuf,
        /// The JSON path and what was expected there.
        #[source]
        source: serde_path_to_error::Error<serde_json::Error>,
    },
    /// One entry of a file cannot be used.
    #[error("{}, entry {entry}", .file.display())]
    Entry {
        /// The file.
        file: PathBuf,
        /// The entry's position in `log.entries`, from 0.
        entry: usize,
        /// What is wrong with it.
        #[source]
        source: EntryError,
    },
    /// There is nothing to play.
    #[error("no recorded exchange in {}", .path.display())]
    Empty {
        /// The file or folder that was asked for.
        path: PathBuf,
    },
}

/// What is wrong with one entry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// A member is missing or has another type.
    #[error(transparent)]
    Shape(#[from] serde_path_to_error::Error<serde_json::Error>),
    /// `request.url` is not an absolute address.
    #[error("request.url: {0}")]
    Url(#[from] url::ParseError),
    /// `response.content.encoding` says base64, and the text is not.
    #[error("response.content.text is not base64: {0}")]
    Base64(#[from] data_encoding::DecodeError),
    /// `response.content.encoding` is none that HAR files use.
    #[error("response.content.encoding {0:?} is unknown (only \"base64\" is)")]
    Encoding(String),
    /// `response.status` is no HTTP status (0, no answer, is legal).
    #[error("response.status {0} is no HTTP status")]
    Status(i64),
}

/// One file: a scenario.
#[derive(Debug)]
pub(super) struct Recording {
    /// The file's name, for messages.
    pub(super) name: String,
    /// Literal strings that the recorder put in the place of secrets and personal data.
    pub(super) stand_ins: Vec<String>,
    /// Those of them that a buyer gives.
    pub(super) personal: Vec<String>,
    /// The exchanges, in the order in which they began.
    pub(super) entries: Vec<Entry>,
}

/// One exchange as it stands in the file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) number: usize,
    pub(super) started: Option<chrono::DateTime<chrono::Utc>>,
    pub(super) comment: String,
    pub(super) method: String,
    pub(super) url: Url,
    pub(super) request_headers: Vec<Header>,
    pub(super) request_body: String,
    /// 0: the client went away before the answer.
    pub(super) status: u16,
    pub(super) headers: Vec<Header>,
    pub(super) body: Vec<u8>,
}

/// A header line.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

/// The value of a header, by its name in any case.
pub(super) fn header<'h>(headers: &'h [Header], name: &str) -> Option<&'h str> {
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value.as_str())
}

mod wire {
    //! The shapes of HAR 1.2.

    use super::{Deserialize, Header, Value};

    #[derive(Deserialize)]
    pub(super) struct Har {
        pub(super) log: Log,
    }

    #[derive(Deserialize)]
    pub(super) struct Log {
        pub(super) entries: Vec<Value>,
        #[serde(default, rename = "_tillgate")]
        pub(super) tillgate: Own,
    }

    /// Our own member of `log` and of entries.
    #[derive(Default, Deserialize)]
    pub(super) struct Own {
        #[serde(default)]
        pub(super) stand_ins: Vec<String>,
        #[serde(default)]
        pub(super) personal: Vec<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct Entry {
        #[serde(default, rename = "startedDateTime")]
        pub(super) started: Option<String>,
        #[serde(default)]
        pub(super) comment: Option<String>,
        #[serde(default, rename = "_tillgate")]
        pub(super) tillgate: Own,
        pub(super) request: Request,
        pub(super) response: Response,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Request {
        pub(super) method: String,
        pub(super) url: String,
        #[serde(default)]
        pub(super) headers: Vec<Header>,
        #[serde(default)]
        pub(super) post_data: Option<PostData>,
    }

    #[derive(Deserialize)]
    pub(super) struct PostData {
        #[serde(default)]
        pub(super) text: Option<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct Response {
        pub(super) status: i64,
        #[serde(default)]
        pub(super) headers: Vec<Header>,
        #[serde(default)]
        pub(super) content: Content,
    }

    #[derive(Default, Deserialize)]
    pub(super) struct Content {
        #[serde(default)]
        pub(super) text: Option<String>,
        #[serde(default)]
        pub(super) encoding: Option<String>,
    }
}

/// Reads one file, or every `*.har` of a folder in the order of their names.
pub(super) fn read(path: &Path) -> Result<Vec<Recording>, Error> {
    let failed = |source| Error::Read { file: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![read_file(path)?]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("har")) {
            files.push(file);
        }
    }
    files.sort();
    files.iter().map(|file| read_file(file)).collect()
}

fn read_file(file: &Path) -> Result<Recording, Error> {
    let bytes = std::fs::read(file).map_err(|source| Error::Read { file: file.to_owned(), source })?;
    parse(file, &bytes)
}

/// Reads a file's content.
pub(super) fn parse(file: &Path, bytes: &[u8]) -> Result<Recording, Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let har: wire::Har = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(bytes))
        .map_err(|source| Error::NotHar { file: file.to_owned(), source })?;
    let mut own = har.log.tillgate;
    let mut entries = Vec::new();
    for (number, value) in har.log.entries.into_iter().enumerate() {
        let (entry, listed) = entry(number, value).map_err(|source| Error::Entry {
            file: file.to_owned(),
            entry: number,
            source,
        })?;
        entries.push(entry);
        own.stand_ins.extend(listed.stand_ins);
        own.personal.extend(listed.personal);
    }
    // "Sorted, oldest first" is what HAR 1.2 prefers and does not demand.
    if entries.iter().all(|entry| entry.started.is_some()) {
        entries.sort_by_key(|entry| entry.started);
    }
    Ok(Recording {
        name: file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
        stand_ins: distinct(own.stand_ins),
        personal: distinct(own.personal),
        entries,
    })
}

fn distinct(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts.retain(|text| !text.is_empty());
    texts
}

fn entry(number: usize, value: Value) -> Result<(Entry, wire::Own), EntryError> {
    let wire::Entry { started, comment, tillgate, request, response } =
        serde_path_to_error::deserialize(value)?;
    let status = u16::try_from(response.status)
        .ok()
        .filter(|status| matches!(status, 0 | 200..=599))
        .ok_or(EntryError::Status(response.status))?;
    let text = response.content.text.unwrap_or_default();
    let body = match response.content.encoding.as_deref() {
        None | Some("") => text.into_bytes(),
        Some("base64") => data_encoding::BASE64.decode(text.as_bytes())?,
        Some(other) => return Err(EntryError::Encoding(other.to_owned())),
    };
    let started = started.and_then(|text| chrono::DateTime::parse_from_rfc3339(&text).ok());
    let entry = Entry {
        number,
        started: started.map(|moment| moment.to_utc()),
        comment: comment.unwrap_or_default(),
        method: request.method,
        url: Url::parse(&request.url)?,
        request_headers: request.headers,
        request_body: request.post_data.and_then(|data| data.text).unwrap_or_default(),
        status,
        headers: response.headers,
        body,
    };
    Ok((entry, tillgate))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    fn parsed(text: &str) -> Result<Recording, Error> {
        parse(Path::new("some/shop.har"), text.as_bytes())
    }

    fn with_response(response: &str) -> Result<Recording, Error> {
        parsed(&format!(
            r#"{{"log":{{"version":"1.2","creator":{{}},"entries":[{{"_own":1,"request":{{"method":"GET",
            "url":"https://shop.example.com/wp-json/"}},"response":{response}}}]}}}}"#
        ))
    }

    /// The message with its causes, as a log shows it.
    fn message(error: &Error) -> String {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    }

    #[test]
    fn unknown_members_are_ignored_and_base64_is_decoded() {
        let recording =
            with_response(r#"{"status":200,"content":{"text":"aGVsbG8=","encoding":"base64","_x":0}}"#)
                .unwrap();
        assert_eq!(recording.name, "shop.har");
        assert_eq!(recording.entries[0].body, b"hello");
    }

    #[test]
    fn an_error_names_file_and_entry() {
        for (response, expected) in [
            (r#"{"status":"200"}"#, "some/shop.har, entry 0: response.status: invalid type"),
            (r#"{"status":42}"#, "some/shop.har, entry 0: response.status 42 is no HTTP status"),
            (
                r#"{"status":200,"content":{"text":"%","encoding":"base64"}}"#,
                "entry 0: response.content.text is",
            ),
            (r#"{"status":200,"content":{"text":"","encoding":"zip"}}"#, "response.content.encoding \"zip\""),
        ] {
            let text = message(&with_response(response).unwrap_err());
            assert!(text.contains(expected), "{text}");
        }
        let text = message(&parsed(r#"{"log":{}}"#).unwrap_err());
        assert!(text.contains("some/shop.har is not a HAR 1.2 file: log: missing field `entries`"), "{text}");
    }

    fn good() -> Value {
        serde_json::json!({"log": {"version": "1.2", "creator": {}, "_tillgate": {"stand_ins": ["x@scrubbed.invalid"]},
        "entries": [
            {"comment": "one", "request": {"method": "GET", "url": "https://shop.example.com/wp-json/", "headers": []},
                "response": {"status": 200, "headers": [{"name": "A", "value": "b"}], "content": {"text": "{}"}}},
            {"request": {"method": "POST", "url": "https://shop.example.com/x", "postData": {"text": "{}"}},
                "response": {"status": 0, "content": {"text": "aGk=", "encoding": "base64"}}},
        ]}})
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn a_bent_file_is_read_whole_or_refused(har in arbitrary::bent(good())) {
            if let Ok(read) = parsed(&har.to_string()) {
                prop_assert_eq!(read.entries.len(), har["log"]["entries"].as_array().unwrap().len());
                for (at, entry) in read.entries.iter().enumerate() {
                    prop_assert!(entry.number == at && matches!(entry.status, 0 | 200..=599));
                }
                prop_assert!(read.stand_ins.iter().all(|text| !text.is_empty()));
            }
        }

        #[test]
        fn bodies_come_back_as_they_were(body in proptest::collection::vec(any::<u8>(), 0..60)) {
            let text = data_encoding::BASE64.encode(&body);
            let read = with_response(&format!(r#"{{"status":200,"content":{{"text":"{text}","encoding":"base64"}}}}"#));
            prop_assert_eq!(&read.unwrap().entries[0].body, &body);
        }

        #[test]
        fn reading_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(Path::new("x.har"), &bytes);
        }

        #[test]
        fn reading_a_damaged_file_never_panics(at in 0_usize..20_000, byte in any::<u8>()) {
            let mut bytes = include_bytes!("../../../fixtures/store/39c-journey-virtual.har").to_vec();
            bytes[at] = byte;
            let _ = parse(Path::new("x.har"), &bytes);
        }
    }
}
