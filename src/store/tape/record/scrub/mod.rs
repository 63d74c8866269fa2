//! Scrubbing: secrets and personal data become stand-ins before anything is written.
//!
//! A value is known as secret by the name it stands under ([`kinds`]) or by its form (an e-mail address, a JWT,
//! an order key, a payment provider's token; [`forms`]). Where people and payments are told of, names that nobody
//! knows hide what stands under them: in addresses and customers, payment data, results and details, order meta,
//! checkout forms, and the pages that a buyer is sent to ([`link`]); lists say what stays. The same value of one kind has the same stand-in from then on, so that flows still
//! join up; stand-ins are numbered in order of appearance and say nothing of the value. A value once known is
//! looked for in every other text too:
//!
//! | value | where it is looked for |
//! |---|---|
//! | secrets, e-mail addresses | everywhere, as a part of a text too |
//! | other text of 6 letters or more | as a part of every text that is not the shop's own word (a status, an amount, a product's name) |
//! | shorter text | where it is a whole text |
//! | fields and meta of plugins, payment data, words in redirects: a single word of letters alone | under their names only |
//! | numbers of 8 digits or more (5 in prose) | where they stand alone; shorter ones only under their names |
//!
//! Upper case, spaces around, HTML, percent and JSON escapes do not hide a value. Each exchange is gone through
//! twice, so that a value which its last line gives away is not left in its first.
//!
//! Country and state stay: tax and shipping depend on them. So do the correlation id (`utm_id`), order numbers
//! and what the shop sells.

mod forms;
mod json;
mod kinds;
mod link;
mod open;
mod pairs;
mod scan;

use std::collections::{BTreeSet, HashMap, HashSet};

use self::kinds::Kind;

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// To the shop.
    Request,
    /// From the shop.
    Answer,
}

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Scrubber {
    stand_ins: Vec<StandIn>,
    texts: HashSet<String>,
    /// Payment methods by name: they stand in `payment_data` too, and are the shop's own words.
    methods: HashSet<String>,
    counts: HashMap<Kind, usize>,
    by_value: HashMap<(Kind, String), usize>,
    spellings: HashSet<(usize, String)>,
    /// Texts to look for as parts of others, by their first letters in lower case.
    needles: HashMap<[char; 3], Vec<Needle>>,
    /// Short texts, in lower case.
    whole: HashMap<String, usize>,
    /// The stand-ins put in since the last [`Scrubber::begin`].
    used: BTreeSet<usize>,
}

#[derive(Debug)]
struct StandIn {
    kind: Kind,
    text: String,
}

/// A text that is looked for.
#[derive(Debug, Clone)]
struct Needle {
    /// In lower case.
    letters: Vec<char>,
    /// What is put in its place.
    text: String,
    /// The stand-ins in `text`.
    uses: Vec<usize>,
    edge: Edge,
    strong: bool,
}

/// What may stand beside a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Any,
    /// A number: no letter, no digit.
    Number,
    /// A number that is looked for in prose only.
    NumberInProse,
    /// An address: nothing that makes it another one.
    Origin,
}

/// The list of stand-ins in an exchange.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// All of them but those of cart tokens, which the player knows by their header.
    pub(super) all: Vec<String>,
    /// Those that the buyer gave.
    pub(super) personal: Vec<String>,
}

/// Where a shop lies in recordings.
pub(super) const SHOP: &str = "https://shop.example.com";

/// From this length on a text is looked for as a part of others.
const DISTINCTIVE: usize = 6;

impl Scrubber {
    /// A scrubber that also writes the shop's own address as [`SHOP`].
    pub(super) fn new(shop: &url::Url) -> Self {
        let mut scrubber = Self::default();
        let mut addresses = vec![shop.as_str().trim_end_matches('/').to_owned()];
        addresses.push(shop.origin().ascii_serialization());
        addresses.dedup();
        for address in addresses {
            for spelling in spellings(&address) {
                scrubber.look_for(&spelling, SHOP, &[], Edge::Origin, true);
            }
        }
        scrubber
    }

    /// Starts the list of stand-ins anew.
    pub(super) fn begin(&mut self) {
        self.used.clear();
    }

    /// The stand-ins put in since [`Scrubber::begin`].
    pub(super) fn used(&self) -> Used {
        let mut used = Used::default();
        for stand_in in self.used.iter().filter_map(|index| self.stand_ins.get(*index)) {
            if stand_in.kind == Kind::Cart {
                continue;
            }
            used.all.push(stand_in.text.clone());
            if stand_in.kind.is_personal() {
                used.personal.push(stand_in.text.clone());
            }
        }
        used
    }

    /// The stand-in of a value; an empty one stays empty.
    fn put(&mut self, kind: Kind, value: &str) -> String {
        let method = kind == Kind::Payment && self.methods.contains(value);
        let answer = kind.is_anything() && matches!(value.trim(), "yes" | "no" | "true" | "false");
        if value.trim().is_empty() || method || answer || self.texts.contains(value) {
            return value.to_owned();
        }
        let index = self.learn(kind, value);
        self.used.insert(index);
        self.stand_ins.get(index).map(|stand_in| stand_in.text.clone()).unwrap_or_default()
    }

    /// Remembers the name of a payment method.
    fn learn_method(&mut self, value: &str) {
        if open::is_method(value) {
            self.methods.insert(value.to_owned());
        }
    }

    fn learn(&mut self, kind: Kind, value: &str) -> usize {
        let canonical = kind.canonical(value);
        let known = self.by_value.get(&(kind, canonical.clone())).copied();
        let known = known.or_else(|| self.by_value.get(&(kind.twin()?, canonical.clone())).copied());
        let index = known.unwrap_or_else(|| self.number(kind, canonical));
        self.learn_spelling(kind, value, index);
        index
    }

    /// Gives a new value its stand-in.
    fn number(&mut self, kind: Kind, canonical: String) -> usize {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let text = kind.stand_in(*count);
        let index = self.stand_ins.len();
        self.texts.insert(text.clone());
        self.stand_ins.push(StandIn { kind, text });
        if kind == Kind::Cart || kind == Kind::Phone {
            self.learn_spelling(kind, &canonical, index);
        }
        self.by_value.insert((kind, canonical), index);
        index
    }

    fn learn_spelling(&mut self, kind: Kind, value: &str, index: usize) {
        let value = value.trim();
        if !self.spellings.insert((index, value.to_owned())) {
            return;
        }
        let Some(text) = self.stand_ins.get(index).map(|stand_in| stand_in.text.clone()) else { return };
        let strong = kind.is_strong();
        let plain = html_escape::decode_html_entities(value).into_owned();
        let digits = plain.chars().filter(char::is_ascii_digit).count();
        let edge = match (plain.chars().any(char::is_alphabetic), digits) {
            (true, _) => Edge::Any,
            (false, 8..) => Edge::Number,
            (false, 5..) => Edge::NumberInProse,
            (false, _) => return,
        };
        let short = plain.chars().count() < DISTINCTIVE;
        if edge == Edge::Any && kind.is_anything() && (short || plain.chars().all(char::is_alphabetic)) {
            return; // a word of everybody's: "completed", "evening"
        }
        if edge == Edge::Any && short {
            self.whole.entry(folded(&plain)).or_insert(index);
            return;
        }
        for spelling in spellings(&plain) {
            self.look_for(&spelling, &text, &[index], edge, strong);
        }
    }

    /// First and last name in one text.
    fn learn_full_name(&mut self, first: &str, last: &str) {
        let (one, other) = (self.learn(Kind::FirstName, first), self.learn(Kind::LastName, last));
        let text = |index: usize| self.stand_ins.get(index).map(|stand_in| stand_in.text.clone());
        let (Some(first_text), Some(last_text)) = (text(one), text(other)) else { return };
        let (first, last) = (first.trim(), last.trim());
        for (value, text) in [
            (format!("{first} {last}"), format!("{first_text} {last_text}")),
            (format!("{last} {first}"), format!("{last_text} {first_text}")),
            (format!("{last}, {first}"), format!("{last_text}, {first_text}")),
        ] {
            if self.spellings.insert((one, value.clone())) {
                for spelling in spellings(&value) {
                    self.look_for(&spelling, &text, &[one, other], Edge::Any, false);
                }
            }
        }
    }

    fn look_for(&mut self, value: &str, text: &str, uses: &[usize], edge: Edge, strong: bool) {
        let letters: Vec<char> = value.chars().map(fold).collect();
        let Some(&[one, two, three]) = letters.first_chunk::<3>() else { return };
        let needle = Needle { letters, text: text.to_owned(), uses: uses.to_vec(), edge, strong };
        self.needles.entry([one, two, three]).or_default().push(needle);
    }
}

/// A letter in lower case; of those that become several, the first.
fn fold(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

fn folded(text: &str) -> String {
    text.trim().chars().map(fold).collect()
}

/// A value as it may stand in HTML, addresses and JSON.
fn spellings(value: &str) -> BTreeSet<String> {
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let mut json = String::new();
    for c in value.chars() {
        match c {
            '/' => json.push_str("\\/"),
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c.is_ascii() => json.push(c),
            c => json.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    BTreeSet::from([
        value.to_owned(),
        html.replace('\'', "&#039;"),
        html.replace('\'', "&#8217;"),
        html.replace('\'', "&#39;"),
        html,
        form.replace('+', "%20"),
        form,
        json,
        value.replace('/', "\\/"),
    ])
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
