//! Scrubbing of plain text: addresses, headers, pages, and every text in JSON whose name says nothing.

use super::{Edge, Kind, Needle, Scrubber, fold, folded, forms, kinds};

/// How far a text is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// For everything that is known.
    All,
    /// For secrets and e-mail addresses: the rest of it is the shop's own word.
    Strong,
}

/// Something found: how many characters, and what is put in their place.
type Found = (usize, String);

/// The longest name that is looked for before a `=`.
const LONGEST_NAME: usize = 64;

impl Scrubber {
    /// Scrubs a text.
    pub(super) fn text(&mut self, text: &str, reach: Reach) -> String {
        if reach == Reach::All
            && let Some(index) = self.whole.get(&folded(&html_escape::decode_html_entities(text))).copied()
        {
            self.used.insert(index);
            return self.stand_ins.get(index).map(|stand_in| stand_in.text.clone()).unwrap_or_default();
        }
        let letters: Vec<char> = text.chars().collect();
        let prose = letters.iter().any(|c| c.is_alphabetic() || c.is_whitespace());
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(&letter) = letters.get(at) {
            let Some((length, put)) = self.found(&letters, at, reach, prose) else {
                out.push(letter);
                at += 1;
                continue;
            };
            out.push_str(&put);
            at += length.max(1);
        }
        out
    }

    /// The longest thing that begins here.
    fn found(&mut self, letters: &[char], at: usize, reach: Reach, prose: bool) -> Option<Found> {
        let rest = letters.get(at..)?;
        let before = at.checked_sub(1).and_then(|before| letters.get(before)).copied();
        let by_needle = self.needle(rest, before, reach, prose);
        let longest = by_needle.as_ref().map_or(0, |(length, _)| *length);
        let by_form = forms::formed(letters, at);
        let named = named(rest, before, reach);
        // A value under a name that says what it is comes before what its form says.
        let (kind, head, value, tail) = match (named, by_form) {
            (Some(named), _) => named,
            (None, Some((kind, length))) if length > longest => {
                (kind, String::new(), rest.get(..length)?.iter().collect(), Coding::Plain)
            }
            (None, _) => {
                let (length, needle) = by_needle?;
                self.used.extend(&needle.uses);
                return Some((length, needle.text));
            }
        };
        let length = head.chars().count() + value.chars().count();
        let plain = tail.decode(&value);
        let put = self.put(kind, &plain);
        let put = if put == plain { value } else { tail.encode(&put) };
        Some((length, format!("{head}{put}")))
    }

    fn needle(
        &self,
        rest: &[char],
        before: Option<char>,
        reach: Reach,
        prose: bool,
    ) -> Option<(usize, Needle)> {
        let &[one, two, three] = rest.first_chunk::<3>()?;
        let mut best: Option<&Needle> = None;
        for needle in self.needles.get(&[fold(one), fold(two), fold(three)])? {
            let length = needle.letters.len();
            if (reach == Reach::Strong && !needle.strong)
                || best.is_some_and(|best| best.letters.len() >= length)
            {
                continue;
            }
            let same = rest.get(..length).is_some_and(|here| {
                here.iter().zip(&needle.letters).all(|(here, wanted)| fold(*here) == *wanted)
            });
            if same && needle.edge.allows(before, rest.get(length).copied(), prose) {
                best = Some(needle);
            }
        }
        best.map(|needle| (needle.letters.len(), needle.clone()))
    }
}

impl Edge {
    fn allows(self, before: Option<char>, after: Option<char>, prose: bool) -> bool {
        let alone = || [before, after].into_iter().flatten().all(|c| !c.is_alphanumeric());
        match self {
            Self::Any => true,
            Self::Number => alone(),
            Self::NumberInProse => prose && alone(),
            Self::Origin => after.is_none_or(|c| !(c.is_alphanumeric() || ".-:@".contains(c))),
        }
    }
}

/// How a value is written where it stands.
#[derive(Debug, Clone, Copy)]
enum Coding {
    Plain,
    Query,
    Json,
}

impl Coding {
    fn decode(self, value: &str) -> String {
        match self {
            Self::Plain => value.replace("%40", "@").replace("&#64;", "@"),
            Self::Query => url::form_urlencoded::parse(format!("v={value}").as_bytes())
                .next()
                .map(|(_, value)| value.into_owned())
                .unwrap_or_default(),
            Self::Json => serde_json::from_str(&format!("\"{value}\"")).unwrap_or_else(|_| value.to_owned()),
        }
    }

    fn encode(self, value: &str) -> String {
        match self {
            Self::Plain | Self::Json => value.to_owned(),
            Self::Query => url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        }
    }
}

/// `name=value` in a query, or `"name":"value"` in text that holds JSON: kind, all before the value, the value.
fn named(rest: &[char], before: Option<char>, reach: Reach) -> Option<(Kind, String, String, Coding)> {
    let quoted = rest.first() == Some(&'"');
    if !quoted && !matches!(before, None | Some('?' | '&' | ';' | '#')) {
        return None;
    }
    let inner = rest.get(usize::from(quoted)..)?;
    let name: String = inner
        .iter()
        .take(LONGEST_NAME)
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '[' | ']'))
        .collect();
    let mut after = inner.get(name.len()..)?.iter().copied().peekable();
    let mut head = name.clone();
    if quoted {
        head.insert(0, '"');
        for wanted in ['"', ':', '"'] {
            while let Some(space) = after.next_if(|c| wanted != '"' && c.is_whitespace()) {
                head.push(space);
            }
            head.push(after.next_if(|c| *c == wanted)?);
            while let Some(space) = after.next_if(|c| wanted == ':' && c.is_whitespace()) {
                head.push(space);
            }
        }
    } else {
        head.push(after.next_if(|c| *c == '=')?);
    }
    let kind = kinds::of_name(&name).filter(|kind| reach == Reach::All || kind.is_strong())?;
    let mut escaped = false;
    let value: String = after
        .take_while(|c| {
            if quoted {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                !ends
            } else {
                !matches!(*c, '&' | '#' | '"' | '\'' | '<' | '>' | '\\' | ';') && !c.is_whitespace()
            }
        })
        .collect();
    let coding = if quoted { Coding::Json } else { Coding::Query };
    (!value.is_empty()).then_some((kind, head, value, coding))
}
