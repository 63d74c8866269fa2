//! Card numbers in clear: neither taken as a token nor shown again (PCI DSS). Values pass through only.

use serde_json::Value;

/// The lengths that card numbers have.
const LENGTHS: std::ops::RangeInclusive<usize> = 13..=19;

/// Whether a value, or one somewhere inside it, is a card number and nothing else.
pub(super) fn holds_card_number(value: &Value) -> bool {
    if let Some(text) = value.as_str() {
        return is_card_number(text);
    }
    if let Some(number) = value.as_number() {
        return is_card_number(&number.to_string());
    }
    if let Some(list) = value.as_array() {
        return list.iter().any(holds_card_number);
    }
    value.as_object().is_some_and(|members| members.values().any(holds_card_number))
}

/// 13 to 19 digits with a right check digit (Luhn), blanks and dashes aside.
pub(super) fn is_card_number(text: &str) -> bool {
    let mut digits = Vec::new();
    for symbol in text.chars().filter(|symbol| !is_separator(*symbol)) {
        match symbol.to_digit(10) {
            Some(digit) if digits.len() < *LENGTHS.end() => digits.push(digit),
            Some(_) | None => return false,
        }
    }
    LENGTHS.contains(&digits.len()) && luhn(&digits)
}

/// Whether a card number stands anywhere in a text for people.
pub(super) fn mentions_card_number(text: &str) -> bool {
    let runs = text.split(|symbol: char| !(symbol.is_ascii_digit() || is_separator(symbol)));
    runs.into_iter().any(|run| {
        let digits: Vec<u32> = run.chars().filter_map(|symbol| symbol.to_digit(10)).collect();
        LENGTHS.rev().any(|length| digits.windows(length).any(luhn))
    })
}

const fn is_separator(symbol: char) -> bool {
    matches!(symbol, ' ' | '-')
}

fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_are_told_from_tokens() {
        for card in ["4242424242424242", "4242 4242 4242 4242", "4242-4242-4242-4242", "378282246310005"] {
            assert!(is_card_number(card), "{card}");
            assert!(mentions_card_number(&format!("Visa {card}, since 2020")), "{card}");
        }
        for token in
            ["", "spt_4242424242424242", "4242424242424241", "123456789012", "vt_1", "00000000000000000000"]
        {
            assert!(!is_card_number(token), "{token}");
        }
        for text in ["Visa 4242", "12/2030", "Visa .... 4242, 12/2030", ""] {
            assert!(!mentions_card_number(text), "{text}");
        }
    }
}
