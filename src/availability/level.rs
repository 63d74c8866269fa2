//! What is said of how much is left.

use crate::catalog::{Availability, Stock};

/// How much of something is left, as far as it is told. The least comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// None; said only where that is right.
    OutOfStock,
    /// Sold now, delivered when it is there again.
    BackOrder,
    /// So few that the number is told.
    Limited(u32),
    /// Enough, or nobody knows how many.
    InStock,
}

impl Level {
    /// The level by what the catalogue tells and by the most that can be there (`None`: nobody knows). The smaller
    /// number counts; one below the threshold is told.
    #[must_use]
    pub fn of(told: Availability, most: Option<i64>, threshold: u32) -> Self {
        match told.stock {
            Stock::Out => return Self::OutOfStock,
            Stock::Backorder => return Self::BackOrder,
            Stock::In => {}
        }
        let Some(left) = told.left.map(i64::from).into_iter().chain(most).min() else { return Self::InStock };
        match u32::try_from(left) {
            _ if left <= 0 => Self::OutOfStock,
            Ok(left) if left < threshold => Self::Limited(left),
            Ok(_) | Err(_) => Self::InStock,
        }
    }

    /// schema.org's name of it.
    #[must_use]
    pub const fn schema(self) -> &'static str {
        match self {
            Self::OutOfStock => "https://schema.org/OutOfStock",
            Self::BackOrder => "https://schema.org/BackOrder",
            Self::Limited(_) => "https://schema.org/LimitedAvailability",
            Self::InStock => "https://schema.org/InStock",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn told(stock: Stock, left: Option<u32>) -> Availability {
        Availability { stock, left }
    }

    #[test]
    fn the_smaller_number_counts_and_is_told_only_below_the_threshold() {
        for (left, most, level) in [
            (None, None, Level::InStock),
            (None, Some(5), Level::InStock),
            (None, Some(4), Level::Limited(4)),
            (Some(4), Some(9), Level::Limited(4)),
            (Some(9), Some(1), Level::Limited(1)),
            (Some(9), Some(7), Level::InStock),
            (Some(2), Some(0), Level::OutOfStock),
            (Some(2), Some(-3), Level::OutOfStock),
            (Some(0), None, Level::OutOfStock),
            (None, Some(i64::MAX), Level::InStock),
            (None, Some(i64::MIN), Level::OutOfStock),
        ] {
            assert_eq!(Level::of(told(Stock::In, left), most, 5), level, "{left:?} {most:?}");
        }
    }

    #[test]
    fn what_the_catalogue_says_of_a_whole_product_counts_before_any_number() {
        assert_eq!(Level::of(told(Stock::Out, None), Some(9), 5), Level::OutOfStock);
        assert_eq!(Level::of(told(Stock::Backorder, None), Some(-2), 5), Level::BackOrder);
    }

    #[test]
    fn without_a_threshold_no_number_is_told() {
        assert_eq!(Level::of(told(Stock::In, Some(1)), None, 0), Level::InStock);
    }
}
