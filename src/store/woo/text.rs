//! Shop texts are HTML: names, rates and fees come with entities and now and then with tags.
//!
//! [`plain`] takes the tags out first and decodes entities afterwards, once. In this order `&lt;b&gt;`, which
//! a merchant typed as text, stays text, and `&amp;amp;` becomes `&amp;` and no more.

use std::borrow::Cow;

use serde_json::Value;

/// The text without tags, entities decoded once, runs of white space made one space.
pub(super) fn plain(html: &str) -> String {
    let stripped = strip_tags(html);
    let decoded = html_escape::decode_html_entities(&stripped);
    decoded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text with entities decoded once and nothing else changed: for codes and article numbers.
pub(super) fn decoded(html: &str) -> Cow<'_, str> {
    html_escape::decode_html_entities(html)
}

/// Takes out what is a tag to a browser: `<`, then a letter, `/`, `!` or `?`, up to the next `>`. A tag
/// leaves a space, so that `a<br>b` does not grow together. Everything else, `a < b` first of all, stays.
fn strip_tags(html: &str) -> Cow<'_, str> {
    if !html.contains('<') {
        return Cow::Borrowed(html);
    }
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let tag = after
            .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
            .then(|| after.split_once('>'))
            .flatten();
        if let Some((name, behind)) = tag {
            if breaks(name) {
                out.push(' ');
            }
            rest = behind;
        } else {
            out.push('<');
            rest = after;
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a tag parts words (`<br>`, `</p>`), unlike `<b>`.
fn breaks(tag: &str) -> bool {
    let name = tag.trim_start_matches('/');
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    name.get(..end).is_some_and(|name| {
        ["br", "p", "div", "li", "ul", "ol", "td", "tr", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd"]
            .iter()
            .any(|b| b.eq_ignore_ascii_case(name))
    })
}

/// The chosen values of a variation by the names of their attributes: carts and products list them in different
/// orders, and one thing has one title.
pub(super) fn in_order(chosen: &[Value]) -> Vec<&str> {
    let text = |value: &'_ Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_lowercase);
    let mut sorted: Vec<&Value> = chosen.iter().collect();
    sorted.sort_by_cached_key(|value| text(value, "attribute"));
    sorted.into_iter().filter_map(|value| value.get("value").and_then(Value::as_str)).collect()
}

/// The title of a line: its name, and for a variation the chosen values behind it unless the name has them
/// already (`T-shirt - Red, Small`).
pub(super) fn title(name: &str, values: &[&str]) -> String {
    let values: Vec<String> = values.iter().map(|v| plain(v)).collect();
    title_of(&plain(name), &values)
}

/// [`title`] of texts that are plain already.
pub(super) fn title_of(name: &str, values: &[impl AsRef<str>]) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).filter(|v| !v.is_empty()).collect();
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let carried = values.iter().all(|value| {
        let value = value.to_lowercase();
        if value.chars().all(char::is_alphanumeric) {
            words.contains(&value.as_str())
        } else {
            lower.contains(&value)
        }
    });
    if carried { name.to_owned() } else { format!("{name} - {}", values.join(", ")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    #[test]
    fn entities_are_decoded_once() {
        assert_eq!(plain("Tom &amp; Jerry &#8211; 2 &euro;"), "Tom & Jerry – 2 €");
        assert_eq!(plain("&amp;amp;"), "&amp;");
        assert_eq!(plain("Mug &#038; plate &#8220;x&#8221;"), "Mug & plate “x”");
    }

    #[test]
    fn tags_go_and_comparisons_stay() {
        assert_eq!(plain("a < b"), "a < b");
        assert_eq!(plain("1 <2 and 3> 2"), "1 <2 and 3> 2");
        assert_eq!(plain("a &lt; b"), "a < b");
        assert_eq!(plain("<p>A <b>plain</b> mug.</p>"), "A plain mug.");
        assert_eq!(plain("one<br />two"), "one two");
        assert_eq!(plain("un<b>do</b>ne"), "undone");
        assert_eq!(plain("<!-- x -->left <unclosed"), "left <unclosed");
        assert_eq!(plain("&lt;b&gt; typed by hand"), "<b> typed by hand");
    }

    #[test]
    fn a_variation_carries_its_values_once() {
        assert_eq!(title("T-shirt", &["Red", "Small"]), "T-shirt - Red, Small");
        assert_eq!(title("T-shirt - Small, Red", &["Red", "Small"]), "T-shirt - Small, Red");
        assert_eq!(title("Tee", &[]), "Tee");
        assert_eq!(title("Tee", &[""]), "Tee");
        assert_eq!(title("Shirt XL", &["L"]), "Shirt XL - L");
    }

    fn collapsed(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn html() -> impl Strategy<Value = String> {
        let part = prop_oneof!["<[a-z/!?]{0,3}[ -~]{0,6}>?", "&[#a-zA-Z0-9]{0,8};?", arbitrary::text()];
        proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn what_was_encoded_once_is_read_as_it_was(text in arbitrary::text()) {
            let once = html_escape::encode_text(&text);
            prop_assert_eq!(plain(&once), collapsed(&text));
            prop_assert_eq!(decoded(&once), text.as_str());
            // Encoded twice it is decoded once.
            prop_assert_eq!(plain(&html_escape::encode_text(&once)), collapsed(&once));
        }

        #[test]
        fn any_html_becomes_one_trimmed_line(text in html()) {
            let line = plain(&text);
            prop_assert_eq!(&collapsed(&line), &line);
            prop_assert!(title(&text, &[&text]).starts_with(&line));
        }

        #[test]
        fn tags_leave_nothing_of_themselves(
            before in "[a-z ]{0,6}", name in "[a-z]{1,5}", inside in "[ a-z=\"']{0,12}", after in "[a-z ]{0,6}",
        ) {
            let line = plain(&format!("{before}<{name} {inside}>{after}</{name}>"));
            let (split, joined) = (collapsed(&format!("{before} {after}")), collapsed(&format!("{before}{after}")));
            prop_assert!(line == split || line == joined, "{}", line);
        }
    }
}
