//! Scrubbing of the addresses that a payment method or the shop sends a buyer to.
//!
//! What they carry (client secrets, nonces, sessions) has no names that could be listed, so that only what is
//! known to say nothing stays: words and short numbers in the path, and values under [`open::is_open_in_query`].

use super::{Kind, Scrubber, kinds, open, scan::Reach};

/// The most digits that may stay in a part of an address: an order number.
const DIGITS: usize = 8;
/// The longest word that may stay.
const WORD: usize = 16;

impl Scrubber {
    /// Scrubs the address of a page to go to.
    pub(super) fn link(&mut self, link: &str) -> String {
        let (page, fragment) = link.split_once('#').map_or((link, None), |(page, rest)| (page, Some(rest)));
        let (path, query) = page.split_once('?').map_or((page, None), |(path, rest)| (path, Some(rest)));
        let mut out = self.link_path(path);
        if let Some(query) = query {
            out.push('?');
            out.push_str(&self.link_pairs(query, &['&']));
        }
        if let Some(fragment) = fragment {
            out.push('#');
            let scrubbed = if fragment.contains('=') {
                self.link_pairs(fragment, &['&', ';', '?', ':'])
            } else {
                self.link_parts(fragment, &[':', '/', '?', '&', ',', ';', '|', '!'])
            };
            out.push_str(&scrubbed);
        }
        out
    }

    fn link_path(&mut self, path: &str) -> String {
        // The shop's own address, with whatever path it lies under, has a stand-in.
        let path = self.text(path, Reach::Strong);
        let host = path.find("//").map_or(0, |at| at + 2);
        let end = path.get(host..).and_then(|rest| rest.find('/')).map_or(path.len(), |at| host + at);
        let (head, tail) =
            if host == 0 { ("", path.as_str()) } else { path.split_at_checked(end).unwrap_or(("", &path)) };
        let head = match head.rsplit_once('@') {
            Some((user, host)) => {
                let (scheme, user) = user.split_once("//").unwrap_or(("", user));
                format!("{scheme}//{}@{host}", self.handed(user))
            }
            None => head.to_owned(),
        };
        format!("{head}{}", self.link_parts(tail, &['/']))
    }

    /// Parts without names: those stay that are ordinary words or short numbers.
    fn link_parts(&mut self, text: &str, separators: &[char]) -> String {
        let mut out = String::with_capacity(text.len());
        for part in text.split_inclusive(separators) {
            let value = part.trim_end_matches(separators);
            let separator = part.get(value.len()..).unwrap_or_default();
            out.push_str(&if is_ordinary(value) { value.to_owned() } else { self.coded(value, None) });
            out.push_str(separator);
        }
        out
    }

    fn link_pairs(&mut self, text: &str, separators: &[char]) -> String {
        let mut out = String::with_capacity(text.len());
        for pair in text.split_inclusive(separators) {
            let bare = pair.trim_end_matches(separators);
            let separator = pair.get(bare.len()..).unwrap_or_default();
            match bare.split_once('=') {
                Some((name, value)) => {
                    out.push_str(name);
                    out.push('=');
                    out.push_str(&self.coded(value, Some(name.trim_start_matches("amp;"))));
                }
                None if is_ordinary(bare) => out.push_str(bare),
                None => out.push_str(&self.coded(bare, None)),
            }
            out.push_str(separator);
        }
        out
    }

    /// A value as it is written in an address.
    fn coded(&mut self, value: &str, name: Option<&str>) -> String {
        let plain = url::form_urlencoded::parse(format!("v={}", value.replace('&', "%26")).as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default();
        let put = match name.and_then(kinds::of_name) {
            Some(kind) => self.put(kind, &plain),
            None if name.is_some_and(open::is_open_in_query) && plain.split(['/', ',']).all(is_ordinary) => {
                self.text(&plain, Reach::Strong)
            }
            None => self.handed(&plain),
        };
        if put == plain {
            value.to_owned()
        } else {
            url::form_urlencoded::byte_serialize(put.as_bytes()).collect()
        }
    }

    /// The stand-in of a value that was handed out, whatever it is; one that is known keeps the one it has.
    pub(super) fn handed(&mut self, value: &str) -> String {
        let known = self.text(value, Reach::All);
        if known != value && self.texts.contains(&known) {
            return known;
        }
        let word = value.chars().count() < super::DISTINCTIVE || value.chars().all(char::is_alphabetic);
        self.put(if word { Kind::Told } else { Kind::Secret }, value)
    }
}

/// Whether a part of an address is made of words and a short number.
fn is_ordinary(part: &str) -> bool {
    let (mut mixed, mut digits) = (0, 0);
    for word in part.split(['-', '_', '.']) {
        if word.chars().all(|c| c.is_ascii_digit()) {
            digits += word.len();
        } else if word.len() > WORD || !word.chars().all(|c| c.is_ascii_lowercase()) {
            let short = word.len() <= 4 && word.chars().all(|c| c.is_ascii_alphanumeric());
            mixed += if short { 1 } else { 2 };
        }
    }
    part.len() <= 48 && digits <= DIGITS && mixed <= 1
}
