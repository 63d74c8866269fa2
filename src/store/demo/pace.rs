//! How long things take in the shop: what a fault's value is drawn from, and the times of the recorded shop.
//!
//! As text: `5`, `10-88` or `10-88~40` (least, most, mean), and `ALONE/CROWD` with one of these on either side:
//! the first as long as no more than two requests run, the second from eight on, in proportion in between. Two
//! cores that are shared by eight workers make a shop so.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Error;

/// The fault that stands for the times of the recorded shop: two cores, eight workers.
///
/// The gap was measured there, alone and with eight clients, and so was a checkout as a whole (223 ms alone). How
/// the rest falls to the parts before, between and after is chosen so that the shop oversells as often as that
/// one did.
pub(super) const MEASURED: &[&str] = &[
    "workers=8",
    "delay_ms=42-75~53/138-206~170,only=checkout",
    "prepare_ms=50-75~58/178-232~200",
    "payment_ms=21-54~37/66-190~132",
    "gap_ms=10-42~15/16-88~53",
    "timeout_ms=50-80~60/150-300~210,only=checkout",
];

/// Up to so many running requests do not slow each other down.
const ALONE: u64 = 2;
/// With so many the shop is as slow as it gets.
const CROWD: u64 = 8;

/// What a value is drawn from: one range, or one for a shop at rest and one for a crowded shop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pace {
    alone: Range,
    crowd: Option<Range>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Range {
    least: u64,
    most: u64,
    mean: Option<u64>,
}

pub(super) fn number(text: &str) -> Result<u64, Error> {
    text.trim().parse().map_err(|_| Error::Fault(format!("`{text}` is no number")))
}

impl Pace {
    /// Reads the text form.
    ///
    /// # Errors
    /// [`Error::Fault`] when it is none.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let (alone, crowd) = match text.split_once('/') {
            Some((alone, crowd)) => (alone, Some(Range::read(crowd)?)),
            None => (text, None),
        };
        Ok(Self { alone: Range::read(alone)?, crowd })
    }

    /// Reads a JSON number or the text form.
    ///
    /// # Errors
    /// [`Error::Fault`] when it is neither.
    pub(super) fn read_json(value: &Value) -> Result<Self, Error> {
        match value {
            Value::Number(number) => Self::read(&number.to_string()),
            Value::String(text) => Self::read(text),
            _ => Err(Error::Fault("a value is a number or a text like 10-88~40".to_owned())),
        }
    }

    /// A value for a request that is one of `running`.
    pub(super) fn draw(self, running: u64, chance: &mut Chance) -> u64 {
        let alone = self.alone.draw(chance);
        let Some(crowd) = self.crowd else { return alone };
        let crowd = crowd.draw(chance);
        let more = running.clamp(ALONE, CROWD) - ALONE;
        let steps = CROWD - ALONE;
        let sum = u128::from(alone) * u128::from(steps - more) + u128::from(crowd) * u128::from(more);
        u64::try_from(sum / u128::from(steps)).unwrap_or(u64::MAX)
    }
}

impl Serialize for Pace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.crowd {
            Some(crowd) => serializer.collect_str(&format_args!("{}/{}", self.alone.text(), crowd.text())),
            None if self.alone.least == self.alone.most => serializer.serialize_u64(self.alone.least),
            None => serializer.collect_str(&self.alone.text()),
        }
    }
}

impl Range {
    /// Reads `5`, `10-88` or `10-88~40`.
    fn read(text: &str) -> Result<Self, Error> {
        let (range, mean) = match text.split_once('~') {
            Some((range, mean)) => (range, Some(number(mean)?)),
            None => (text, None),
        };
        let (least, most) = match range.split_once('-') {
            Some((least, most)) => (number(least)?, number(most)?),
            None => (number(range)?, number(range)?),
        };
        if least > most || mean.is_some_and(|mean| mean < least || mean > most) {
            let text = format!("`{text}` is no range: MIN-MAX~MEAN with MIN ≤ MEAN ≤ MAX is wanted");
            return Err(Error::Fault(text));
        }
        Ok(Self { least, most, mean })
    }

    fn text(self) -> String {
        let Self { least, most, mean } = self;
        match mean {
            _ if least == most => least.to_string(),
            None => format!("{least}-{most}"),
            Some(mean) => format!("{least}-{most}~{mean}"),
        }
    }

    /// Evenly from both sides of the mean, so often from each that the average is the mean.
    fn draw(self, chance: &mut Chance) -> u64 {
        if self.least == self.most {
            return self.least;
        }
        let Some(mean) = self.mean else { return chance.between(self.least, self.most) };
        let low = chance.below(self.most - self.least) < self.most - mean;
        if low { chance.between(self.least, mean) } else { chance.between(mean, self.most) }
    }
}

/// Numbers that look like chance and are the same in every run (`SplitMix64`).
#[derive(Debug, Default)]
pub(super) struct Chance(u64);

impl Chance {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, but not including, `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or_default()
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below((most - least).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Least, most and average of many draws.
    fn drawn(text: &str, running: u64) -> (u64, u64, u64) {
        let (pace, mut chance) = (Pace::read(text).unwrap(), Chance::default());
        let drawn: Vec<u64> = (0..20_000).map(|_| pace.draw(running, &mut chance)).collect();
        let sum: u128 = drawn.iter().map(|drawn| u128::from(*drawn)).sum();
        let mean = u64::try_from(sum / 20_000).unwrap();
        (*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap(), mean)
    }

    #[test]
    fn a_crowded_shop_is_slower_in_proportion_to_what_runs() {
        let gap = "10-42~15/16-88~53";
        for running in [0, 1, 2] {
            let (least, most, mean) = drawn(gap, running);
            assert_eq!((least, most), (10, 42), "{running}");
            assert!(mean.abs_diff(15) <= 1, "{running}: {mean}");
        }
        for running in [8, 9, 500] {
            let (least, most, mean) = drawn(gap, running);
            assert_eq!((least, most), (16, 88), "{running}");
            assert!(mean.abs_diff(53) <= 1, "{running}: {mean}");
        }
        let (least, most, mean) = drawn(gap, 5);
        assert!(least >= 13 && most <= 65 && mean.abs_diff(34) <= 1, "{least} {most} {mean}");
        assert_eq!(drawn("3/18446744073709551615", 8).0, u64::MAX);
        assert_eq!(drawn("9/3", 5), (6, 6, 6), "a crowd may also be quicker");
    }

    #[test]
    fn a_pace_is_told_as_it_was_set_and_nonsense_is_refused() {
        for text in ["10-42~15/16-88~53", "5/9", "1-2/7", "4-6"] {
            assert_eq!(serde_json::to_value(Pace::read(text).unwrap()).unwrap(), text);
        }
        for text in ["/", "5/", "/5", "1/2/3", "9-5/1", "1/9-5", "a"] {
            assert!(Pace::read(text).is_err(), "{text}");
        }
    }
}
