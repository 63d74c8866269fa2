//! Money: an amount in ISO 4217 minor units together with its currency.
//!
//! Unit: minor units of ISO 4217 (USD and EUR 2 digits, JPY 0, KWD 3), never the display decimals of a
//! shop. Arithmetic is checked; there are no floats. What can fail: [`Error`], on overflow, on two
//! currencies in one sum, and when rescaling would lose digits. A caller refuses the amount, never rounds it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest amount that every JSON reader takes exactly: 2^53 − 1 minor units.
pub const MAX_MINOR: i64 = 9_007_199_254_740_991;

/// Why an amount could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The three letters are not a currency of ISO 4217.
    #[error("`{0}` is not an ISO 4217 currency")]
    UnknownCurrency(String),
    /// The result does not fit into ±(2^53 − 1).
    #[error("the amount leaves the range of ±(2^53 − 1) minor units")]
    Overflow,
    /// Two currencies in one sum.
    #[error("cannot combine {0} with {1}")]
    CurrencyMismatch(Currency, Currency),
    /// The text is not an integer.
    #[error("`{0}` is not an integer amount")]
    NotAnInteger(String),
    /// The shop shows more decimals than ISO 4217 has, and one of them is not zero.
    #[error("{amount} with {shown} decimals cannot be told in {currency} without losing digits")]
    LosesDigits {
        /// The amount as the shop sent it.
        amount: i64,
        /// The shop's display decimals.
        shown: u32,
        /// The currency it is in.
        currency: Currency,
    },
}

/// A currency of ISO 4217.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// Reads a three-letter code in any case.
    ///
    /// # Errors
    /// [`Error::UnknownCurrency`] when ISO 4217 has no such code.
    pub fn parse(code: &str) -> Result<Self, Error> {
        iso_currency::Currency::from_code(&code.to_ascii_uppercase())
            .map(Self)
            .ok_or_else(|| Error::UnknownCurrency(code.to_owned()))
    }

    /// The code in upper case, as UCP and the shop write it.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// How many decimals ISO 4217 gives the minor unit (0 to 4).
    #[must_use]
    pub fn exponent(self) -> u32 {
        u32::from(self.0.exponent().unwrap_or(0))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::parse(&code).map_err(serde::de::Error::custom)
    }
}

/// An amount of one currency, in its minor units. May be negative (a discount, a correction).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Money {
    /// An amount in minor units.
    #[must_use]
    pub const fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Nothing, in that currency.
    #[must_use]
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// The amount in minor units of ISO 4217.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.minor
    }

    /// The currency.
    #[must_use]
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Whether the amount is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.minor == 0
    }

    /// Reads an integer amount counted in `shown` decimals (a WooCommerce display setting) and rescales it
    /// to the minor unit of ISO 4217: `"10"` with 0 decimals is 1000 in EUR, `"1250"` with 2 is 1250.
    ///
    /// # Errors
    /// [`Error::NotAnInteger`], [`Error::Overflow`], or [`Error::LosesDigits`] when the shop counts finer
    /// than ISO 4217 and the surplus digits are not zero.
    pub fn from_shown(text: &str, shown: u32, currency: Currency) -> Result<Self, Error> {
        let amount: i64 = text.trim().parse().map_err(|_| Error::NotAnInteger(text.to_owned()))?;
        let iso = currency.exponent();
        let minor = if iso >= shown {
            let factor = 10_i64.checked_pow(iso - shown).ok_or(Error::Overflow)?;
            amount.checked_mul(factor).ok_or(Error::Overflow)?
        } else {
            let factor = 10_i64.checked_pow(shown - iso).ok_or(Error::Overflow)?;
            if amount % factor != 0 {
                return Err(Error::LosesDigits { amount, shown, currency });
            }
            amount / factor
        };
        Self::new(minor, currency).in_range()
    }

    /// The same amount counted in `shown` decimals, as the shop wants `expected_total`; `None` when that
    /// would lose digits.
    #[must_use]
    pub fn to_shown(self, shown: u32) -> Option<i64> {
        let iso = self.currency.exponent();
        if shown >= iso {
            self.minor.checked_mul(10_i64.checked_pow(shown - iso)?)
        } else {
            let factor = 10_i64.checked_pow(iso - shown)?;
            (self.minor % factor == 0).then(|| self.minor / factor)
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// [`Error::CurrencyMismatch`] or [`Error::Overflow`].
    pub fn plus(self, other: Self) -> Result<Self, Error> {
        self.combine(other, i64::checked_add)
    }

    /// The difference.
    ///
    /// # Errors
    /// [`Error::CurrencyMismatch`] or [`Error::Overflow`].
    pub fn minus(self, other: Self) -> Result<Self, Error> {
        self.combine(other, i64::checked_sub)
    }

    /// The sum of many amounts of one currency.
    ///
    /// # Errors
    /// As [`Money::plus`].
    pub fn sum(currency: Currency, amounts: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        amounts.into_iter().try_fold(Self::zero(currency), Self::plus)
    }

    /// The amount with the other sign.
    #[must_use]
    pub const fn negated(self) -> Self {
        Self { minor: -self.minor, currency: self.currency }
    }

    /// Splits the amount by weights; the parts add up to the amount, and what does not divide goes to the
    /// first parts, one unit each. Weights that are all zero count as equal.
    #[must_use]
    pub fn split(self, weights: &[u64]) -> Vec<Self> {
        let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
        let count = u128::try_from(weights.len()).unwrap_or(u128::MAX);
        let sign = self.minor.signum();
        let whole = u128::from(self.minor.unsigned_abs());
        let mut parts: Vec<i64> = weights
            .iter()
            .map(|w| {
                let share = (whole * u128::from(*w)).checked_div(sum);
                i64::try_from(share.or_else(|| whole.checked_div(count)).unwrap_or(0)).unwrap_or(0)
            })
            .collect();
        let mut rest = self.minor.saturating_abs() - parts.iter().sum::<i64>();
        for part in &mut parts {
            if rest == 0 {
                break;
            }
            *part += 1;
            rest -= 1;
        }
        parts.into_iter().map(|part| Self::new(part * sign, self.currency)).collect()
    }

    fn combine(self, other: Self, op: fn(i64, i64) -> Option<i64>) -> Result<Self, Error> {
        if self.currency != other.currency {
            return Err(Error::CurrencyMismatch(self.currency, other.currency));
        }
        Self::new(op(self.minor, other.minor).ok_or(Error::Overflow)?, self.currency).in_range()
    }

    fn in_range(self) -> Result<Self, Error> {
        if self.minor.unsigned_abs() > MAX_MINOR.unsigned_abs() { Err(Error::Overflow) } else { Ok(self) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    fn eur(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").unwrap())
    }

    /// Requirements: U-079.
    #[test]
    fn display_decimals_are_not_minor_units() {
        let yen = Currency::parse("jpy").unwrap();
        let dinar = Currency::parse("KWD").unwrap();
        let euro = Currency::parse("EUR").unwrap();
        assert_eq!(Money::from_shown("10", 0, euro).unwrap().minor(), 1000);
        assert_eq!(
            Money::from_shown("1250", 2, yen).unwrap_err(),
            Error::LosesDigits { amount: 1250, shown: 2, currency: yen }
        );
        assert_eq!(Money::from_shown("1200", 2, yen).unwrap().minor(), 12);
        assert_eq!(Money::from_shown("1999", 2, dinar).unwrap().minor(), 19990);
        assert_eq!(Money::from_shown("1999", 3, dinar).unwrap().minor(), 1999);
        assert!(matches!(Money::from_shown("12.5", 2, euro), Err(Error::NotAnInteger(_))));
        assert_eq!(Money::from_shown("9007199254740992", 2, euro), Err(Error::Overflow));
    }

    #[test]
    fn two_currencies_never_add_up() {
        let usd = Money::new(1, Currency::parse("USD").unwrap());
        assert!(matches!(eur(1).plus(usd), Err(Error::CurrencyMismatch(..))));
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn any_amount_is_read_within_the_range_or_refused(
            text in prop_oneof![arbitrary::text(), "[+-]?[0-9]{0,22}", any::<i64>().prop_map(|n| n.to_string())],
            shown in prop_oneof![0_u32..6, any::<u32>()],
            code in prop_oneof![Just("EUR"), Just("JPY"), Just("KWD"), Just("CLF")],
        ) {
            let currency = Currency::parse(code).unwrap();
            if let Ok(money) = Money::from_shown(&text, shown, currency) {
                prop_assert!(money.minor().unsigned_abs() <= MAX_MINOR.unsigned_abs());
                prop_assert_eq!(money.to_shown(shown), text.trim().parse().ok());
            }
        }

        #[test]
        fn any_code_is_a_currency_or_none(code in prop_oneof![arbitrary::text(), "[A-Za-z]{3}"]) {
            if let Ok(currency) = Currency::parse(&code) {
                prop_assert_eq!(currency.code(), code.to_ascii_uppercase());
                prop_assert!(currency.exponent() <= 4);
            }
        }

        #[test]
        fn sums_stay_in_range_or_are_refused(
            amounts in proptest::collection::vec(-MAX_MINOR..=MAX_MINOR, 0..6),
            weights in proptest::collection::vec(any::<u64>(), 1..9),
        ) {
            let exact: i128 = amounts.iter().map(|amount| i128::from(*amount)).sum();
            let currency = eur(0).currency();
            if let Ok(sum) = Money::sum(currency, amounts.iter().map(|amount| eur(*amount))) {
                prop_assert_eq!(i128::from(sum.minor()), exact);
                let parts = sum.split(&weights);
                prop_assert_eq!(parts.iter().map(|part| part.minor()).sum::<i64>(), sum.minor());
            }
        }

        #[test]
        fn rescaling_round_trips(minor in -1_000_000_000_i64..1_000_000_000, shown in 0_u32..5) {
            if let Some(text) = eur(minor).to_shown(shown) {
                prop_assert_eq!(Money::from_shown(&text.to_string(), shown, eur(0).currency()).unwrap(), eur(minor));
            }
        }

        #[test]
        fn parts_add_up_to_the_whole(minor in -100_000_i64..100_000, weights in proptest::collection::vec(0_u64..50, 1..9)) {
            let parts = eur(minor).split(&weights);
            prop_assert_eq!(parts.iter().map(|p| p.minor()).sum::<i64>(), minor);
        }
    }
}
