//! What tells itself by its form: tokens, keys, e-mail addresses.

use super::Kind;
use crate::store::tape::thread::identity;

/// Before the `_` of what payment providers give out: intents, sources, cards, customers, keys.
const PROVIDERS: [&str; 32] = [
    "pi",
    "seti",
    "si",
    "src",
    "pm",
    "tok",
    "btok",
    "cus",
    "cuss",
    "kcuss",
    "sk",
    "rk",
    "pk",
    "ek",
    "whsec",
    "cs",
    "spt",
    "vt",
    "ctoken",
    "ephkey",
    "pst",
    "card",
    "ba",
    "acct",
    "ch",
    "py",
    "txn",
    "rzp",
    "tokencc",
    "sandbox",
    "production",
    "cnon",
];

/// Those that are common words too: what follows must look more like chance.
const COMMON_PROVIDERS: [&str; 14] = [
    "in", "re", "sub", "evt", "person", "mandate", "tr", "cst", "ord", "mdt", "pay", "order", "live", "test",
];

/// What begins at `letters[at]` and tells itself by its form: kind and length.
pub(super) fn formed(letters: &[char], at: usize) -> Option<(Kind, usize)> {
    let rest = letters.get(at..)?;
    let before = at.checked_sub(1).and_then(|before| letters.get(before)).copied();
    let by_token =
        || jwt(rest).or_else(|| order_key(rest)).or_else(|| api_key(rest)).or_else(|| provided(rest));
    let token =
        if before.is_none_or(|c| !in_name(c)) || after_escape(letters, at) { by_token() } else { None };
    token.or_else(|| if before.is_none_or(|c| !in_word(c)) { email(rest) } else { None })
}

/// Whether all of a text tells itself by its form.
pub(super) fn is_formed(text: &str) -> bool {
    let letters: Vec<char> = text.trim().chars().collect();
    formed(&letters, 0).is_some_and(|(_, length)| length == letters.len())
}

const fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

const fn in_word(c: char) -> bool {
    in_name(c) || matches!(c, '-' | '.' | '+' | '%')
}

/// Whether a percent escape ends here: `%3A`.
fn after_escape(letters: &[char], at: usize) -> bool {
    let escape = at.checked_sub(3).and_then(|start| letters.get(start..at));
    matches!(escape, Some(['%', one, two]) if one.is_ascii_hexdigit() && two.is_ascii_hexdigit())
}

fn starts(rest: &[char], text: &str) -> bool {
    let mut rest = rest.iter();
    text.chars().all(|c| rest.next() == Some(&c))
}

fn run(rest: &[char], part: impl Fn(char) -> bool) -> usize {
    rest.iter().take_while(|c| part(**c)).count()
}

/// Three parts in base64, the first of which begins as a JSON object does.
fn jwt(rest: &[char]) -> Option<(Kind, usize)> {
    if !starts(rest, "eyJ") {
        return None;
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut length = run(rest, part);
    for _ in 0..2 {
        if rest.get(length) != Some(&'.') {
            return None;
        }
        length += 1 + run(rest.get(length + 1..)?, part);
    }
    let token: String = rest.get(..length)?.iter().collect();
    let names_a_cart = identity(&token) != token;
    Some((if names_a_cart { Kind::Cart } else { Kind::Secret }, length))
}

fn order_key(rest: &[char]) -> Option<(Kind, usize)> {
    if !starts(rest, "wc_order_") {
        return None;
    }
    let tail = run(rest.get(9..)?, |c| c.is_ascii_alphanumeric());
    let ends = rest.get(9 + tail).is_none_or(|c| *c != '_');
    (tail >= 8 && ends).then_some((Kind::OrderKey, 9 + tail))
}

/// A key of the merchant's: `ck_…`, `cs_…`.
fn api_key(rest: &[char]) -> Option<(Kind, usize)> {
    if !starts(rest, "ck_") && !starts(rest, "cs_") {
        return None;
    }
    let tail = run(rest.get(3..)?, |c| c.is_ascii_hexdigit());
    (tail >= 32).then_some((Kind::Secret, 3 + tail))
}

/// What a payment provider gives out: `pi_…_secret_…`, `pm_…`, `sk_live_…`.
fn provided(rest: &[char]) -> Option<(Kind, usize)> {
    let token: String = rest.iter().take_while(|c| in_name(**c)).collect();
    let token = token.trim_end_matches('_');
    let (prefix, tail) = token.split_once('_')?;
    let classes = if PROVIDERS.contains(&prefix) {
        2
    } else if COMMON_PROVIDERS.contains(&prefix) {
        3
    } else {
        return None;
    };
    let words: Vec<&str> = tail.split('_').collect();
    let by_chance = words.iter().any(|word| looks_random(word, classes));
    let secret = words.windows(3).any(|words| {
        matches!(words, [before, "secret", after] if !after.is_empty()
            && (*before == "client" || before.contains(|c: char| c.is_ascii_digit())))
    });
    (by_chance || secret).then_some((Kind::Secret, token.len()))
}

/// Whether a word of letters and digits is long, and of as many classes (small, capital, digit).
fn looks_random(word: &str, classes: usize) -> bool {
    let found = [
        word.contains(|c: char| c.is_ascii_lowercase()),
        word.contains(|c: char| c.is_ascii_uppercase()),
        word.contains(|c: char| c.is_ascii_digit()),
    ];
    word.len() >= 10 && found.iter().filter(|found| **found).count() >= classes
}

fn email(rest: &[char]) -> Option<(Kind, usize)> {
    let mut local = 0;
    let at_sign = loop {
        let here = rest.get(local..)?;
        match *here.first()? {
            '%' if starts(here, "%40") => break 3,
            '@' => break 1,
            '&' if starts(here, "&#64;") => break 5,
            c if in_word(c) => local += 1,
            _ => return None,
        }
    };
    let domain = rest.get(local + at_sign..)?;
    let length = run(domain, |c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let name: String = domain.get(..length)?.iter().collect();
    let name = name.trim_end_matches(['.', '-']);
    let last = name.rsplit_once('.').map(|(_, last)| last)?;
    let picture = ["png", "jpg", "jpeg", "webp", "gif", "svg", "avif"].contains(&last);
    let named = last.len() >= 2 && last.chars().all(|c| c.is_ascii_alphabetic()) && !picture;
    (local > 0 && named).then(|| (Kind::Email, local + at_sign + name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_payment_providers_are_told_from_words() {
        for token in [
            "pi_3MtwBwLkdIwHu7ix28a3tqPa",
            "pi_3MtwBwLkdIwHu7ix28a3tqPa_secret_YrKJUKribcBjcG8HVhfZluoGH",
            "pi_3abc_secret_def",
            "src_1abc_client_secret_x9",
            "seti_1Mm8s8LkdIwHu7ix0OXBfTRG_secret_NXDICkPqPeiBTAFqWmkbff09lRmSVXe",
            "pm_1Q0PsIJvEtkwdCNYMSaVuRz6",
            "cus_4QFOF3xrvBT2nU",
            "tok_1N3T00LkdIwHu7ixt44h1F8k",
            "sk_live_51HqLyjWDarjtT1zdp7dc",
            "rk_test_51HqLyjWDarjtT1zdp7dc",
            "whsec_5f9dB3aLq0TzXw",
            "cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY",
            "tr_7UhSN1zuXS",
        ] {
            assert!(is_formed(token), "{token}");
            let inside: Vec<char> = format!("confirm%3A{token}:").chars().collect();
            assert_eq!(formed(&inside, 10), Some((Kind::Secret, token.len())), "{token}");
        }
        for word in [
            "src_set",
            "in_stock_2026",
            "pm_card_visa",
            "order_received",
            "order_2026summer",
            "pi_client_secret",
            "cs_secret_key",
            "card_20260101",
            "test_products_2026",
            "agent_token",
            "pay_for_order",
        ] {
            assert!(!is_formed(word), "{word}");
        }
        assert_eq!(formed(&"api_3MtwBwLkdIwHu7ix28a3tqPa".chars().collect::<Vec<_>>(), 1), None);
    }
}
