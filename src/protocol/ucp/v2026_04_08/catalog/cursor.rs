//! Cursors: where a search goes on.

use data_encoding::BASE64URL_NOPAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::catalog::Query;

/// The form of the bytes: a cursor of another form is refused.
const FORM: u8 = 1;
/// Bytes of the digest that are kept: a cursor is no secret, and guards against mistakes only.
const DIGEST: usize = 8;

/// The cursor of the page behind this one.
pub(super) fn next(query: &Query) -> String {
    let mut bytes = vec![FORM];
    bytes.extend(query.page.saturating_add(1).to_be_bytes());
    bytes.extend(query.limit.to_be_bytes());
    bytes.extend(digest(query));
    BASE64URL_NOPAD.encode(&bytes)
}

/// The page that a cursor leads to and its size, if it was made for this question and fits into `most`.
pub(super) fn read(cursor: &str, question: &Query, most: u32) -> Option<(u32, u32)> {
    let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?;
    let (form, bytes) = bytes.split_first()?;
    let (page, bytes) = bytes.split_first_chunk::<4>()?;
    let (limit, bytes) = bytes.split_first_chunk::<4>()?;
    let (page, limit) = (u32::from_be_bytes(*page), u32::from_be_bytes(*limit));
    let good = *form == FORM && bytes == digest(question) && page > 1 && (1..=most).contains(&limit);
    good.then_some((page, limit))
}

/// A digest of what is searched for, without page and size.
fn digest(query: &Query) -> Vec<u8> {
    let filter = &query.filter;
    let question = json!([query.text, filter.categories, filter.price.min, filter.price.max]);
    Sha256::digest(question.to_string().as_bytes()).iter().copied().take(DIGEST).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::{Bounds, Filter};

    fn query(text: &str, page: u32, limit: u32) -> Query {
        Query { text: Some(text.to_owned()), filter: Filter::default(), page, limit }
    }

    #[test]
    fn a_cursor_goes_on_with_its_own_question_only() {
        let cursor = next(&query("roses", 1, 10));
        assert_eq!(read(&cursor, &query("roses", 1, 25), 50), Some((2, 10)));
        assert_eq!(read(&cursor, &query("tulips", 1, 10), 50), None);
        let mut filtered = query("roses", 1, 10);
        filtered.filter.price = Bounds { min: None, max: Some(500) };
        assert_eq!(read(&cursor, &filtered, 50), None);
        assert_eq!(read(&next(&query("roses", 1, 60)), &query("roses", 1, 10), 50), None);
        for bad in ["", "x", "AQ", "!!!!", &cursor[1..], &format!("{cursor}AA")] {
            assert_eq!(read(bad, &query("roses", 1, 10), 50), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in ".{0,60}") {
            let _ = read(&text, &query("roses", 1, 10), 50);
        }
    }
}
