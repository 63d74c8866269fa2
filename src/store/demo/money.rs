//! Rounding and the shop's way of writing amounts.

use serde_json::{Map, Value, json};

use super::model::Settings;

/// `numerator / denominator`, halves away from zero.
pub(super) fn half_up(numerator: i128, denominator: i128) -> i64 {
    let (sign, numerator) = if numerator < 0 { (-1, -numerator) } else { (1, numerator) };
    narrow(sign * ((2 * numerator + denominator) / (2 * denominator)))
}

/// `numerator / denominator`, halves towards zero.
pub(super) fn half_down(numerator: i128, denominator: i128) -> i64 {
    let (sign, numerator) = if numerator < 0 { (-1, -numerator) } else { (1, numerator) };
    narrow(sign * ((2 * numerator + denominator - 1) / (2 * denominator)))
}

fn narrow(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// How many micros one minor unit of the shop is.
pub(super) fn unit(settings: &Settings) -> i64 {
    10_i64.pow(6_u32.saturating_sub(settings.decimals))
}

/// Micros in minor units.
pub(super) fn minor(settings: &Settings, micros: i64) -> i64 {
    half_up(i128::from(micros), i128::from(unit(settings)))
}

/// Hundredths of the major unit, as seeds write amounts, in minor units.
pub(super) fn from_cents(settings: &Settings, cents: i64) -> i64 {
    minor(settings, cents.saturating_mul(10_000))
}

/// An amount as a decimal text with `decimals` places; `scale` is what the amount counts.
pub(super) fn decimal(amount: i64, scale: u32) -> String {
    let sign = if amount < 0 { "-" } else { "" };
    let one = 10_u64.pow(scale);
    let amount = amount.unsigned_abs();
    if scale == 0 {
        return format!("{sign}{amount}");
    }
    let width = usize::try_from(scale).unwrap_or_default();
    format!("{sign}{}.{:0width$}", amount / one, amount % one)
}

/// Minor units as wc/v3 writes them: `"73.75"`.
pub(super) fn major(settings: &Settings, amount: i64) -> String {
    decimal(amount, settings.decimals)
}

/// The same without trailing zeros: `"5.3"`.
pub(super) fn major_short(settings: &Settings, amount: i64) -> String {
    short(&major(settings, amount))
}

fn short(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

/// A decimal text as a JSON number.
pub(super) fn number(text: &str) -> Value {
    let text = short(text);
    match text.parse::<i64>() {
        Ok(whole) => json!(whole),
        Err(_) => text.parse::<f64>().map_or(Value::Null, |number| json!(number)),
    }
}

/// `numerator / denominator` as a JSON number with up to four places.
pub(super) fn ratio(numerator: i64, denominator: i64, scale: u32) -> Value {
    if denominator == 0 {
        return json!(0);
    }
    let more = half_up(i128::from(numerator) * 10_000, i128::from(denominator));
    number(&decimal(more, scale + 4))
}

/// Ten-thousandths as a JSON number.
pub(super) fn ten_thousandths(amount: i64) -> Value {
    number(&decimal(amount, 4))
}

/// Micros as a wc/v3 price text.
pub(super) fn price_text(settings: &Settings, micros: i64) -> String {
    let exact = short(&decimal(micros, 6));
    let rounded = major(settings, minor(settings, micros));
    if exact.len() > rounded.len() { exact } else { rounded }
}

/// Micros from a price text like `13.50`.
pub(super) fn parse_micros(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: String = part.chars().chain(std::iter::repeat('0')).take(6).collect();
    let whole: i64 = whole.parse().ok()?;
    let part: i64 = part.parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

fn symbol(code: &str) -> (&'static str, &'static str) {
    match code {
        "EUR" => ("€", "&euro;"),
        "GBP" => ("£", "&pound;"),
        "JPY" => ("¥", "&yen;"),
        "KWD" => ("د.ك", "&#x62f;.&#x643;"),
        "PLN" => ("zł", "&#122;&#322;"),
        _ => ("$", "&#36;"),
    }
}

/// The currency's sign.
pub(super) fn sign(settings: &Settings) -> &'static str {
    symbol(&settings.currency).0
}

/// An amount as the shop's pages show it: entity and text.
pub(super) fn html(settings: &Settings, amount: i64) -> String {
    format!("{}{}", symbol(&settings.currency).1, major(settings, amount))
}

/// The same as the markup of a price.
pub(super) fn markup(settings: &Settings, amount: i64) -> String {
    format!(
        "<span class=\"woocommerce-Price-amount amount\"><span class=\"woocommerce-Price-currencySymbol\">{}</span>{}</span>",
        symbol(&settings.currency).1,
        major(settings, amount)
    )
}

/// Adds the currency members that every object with amounts carries.
pub(super) fn with_currency(settings: &Settings, amounts: Value) -> Value {
    let mut members = match amounts {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in [
        ("currency_code", json!(settings.currency)),
        ("currency_symbol", json!(sign(settings))),
        ("currency_minor_unit", json!(settings.decimals)),
        ("currency_decimal_separator", json!(".")),
        ("currency_thousand_separator", json!(",")),
        ("currency_prefix", json!(sign(settings))),
        ("currency_suffix", json!("")),
    ] {
        members.insert(name.to_owned(), value);
    }
    Value::Object(members)
}
