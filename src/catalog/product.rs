//! Products and their variants.

use std::sync::Arc;

use crate::money::Money;

/// A product. It has at least one variant; the first is the one to show when only one is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// Its id on the wire. A product without options has the id of its only variant.
    pub id: String,
    /// The name in the address of its page.
    pub handle: String,
    /// Its name.
    pub title: String,
    /// A few words about it; may be empty.
    pub summary: String,
    /// All that is said about it; may be empty.
    pub description: String,
    /// Its page.
    pub url: Option<String>,
    /// Where it is sorted in.
    pub categories: Vec<Category>,
    /// What its variants cost.
    pub prices: PriceRange,
    /// What they cost before reductions, if any is reduced; told only of products whose variants are all at hand.
    pub list_prices: Option<PriceRange>,
    /// Pictures, the main one first.
    pub media: Vec<Media>,
    /// What can be chosen.
    pub axes: Vec<Axis>,
    /// What can be bought, the featured one first.
    pub variants: Vec<Arc<Variant>>,
    /// Whether these are all of them.
    pub shown: VariantsShown,
    /// What buyers think of it.
    pub rating: Option<Rating>,
    /// Key words.
    pub tags: Vec<String>,
}

/// How many of a product's variants are at hand. Those that the shop lists but does not offer do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariantsShown {
    /// All.
    All,
    /// As many as are ever looked at.
    Most {
        /// How many the shop has.
        of: usize,
    },
    /// A share, since other products were looked at together with it.
    Some {
        /// How many the shop has.
        of: usize,
    },
}

/// Something that can be bought.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its id on the wire: what a checkout takes.
    pub id: String,
    /// The merchant's article number.
    pub sku: Option<String>,
    /// Its name, with its options.
    pub title: String,
    /// What is said about it; may be empty.
    pub description: String,
    /// Its page.
    pub url: Option<String>,
    /// What it costs now.
    pub price: Money,
    /// What it cost before it was reduced.
    pub list_price: Option<Money>,
    /// Whether it can be had.
    pub availability: Availability,
    /// How many can be bought at once.
    pub limits: Limits,
    /// The options that it stands for.
    pub options: Vec<OptionValue>,
    /// Pictures, the main one first.
    pub media: Vec<Media>,
}

/// Whether something can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Availability {
    /// Why, or why not.
    pub stock: Stock,
    /// How many are left, once there are so few that the shop says so.
    pub left: Option<u32>,
}

impl Availability {
    /// Whether it can be bought.
    #[must_use]
    pub const fn available(self) -> bool {
        match self.stock {
            Stock::In | Stock::Backorder => true,
            Stock::Out => false,
        }
    }
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// In the shop's store.
    In,
    /// Sold now, delivered when it is there again.
    Backorder,
    /// Sold out.
    Out,
}

/// How many of something one order may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The fewest.
    pub minimum: u32,
    /// The most, if there is such a bound.
    pub maximum: Option<u32>,
    /// In steps of.
    pub step: u32,
}

/// The lowest and the highest price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceRange {
    /// The lowest.
    pub min: Money,
    /// The highest.
    pub max: Money,
}

impl PriceRange {
    /// The range of some amounts of one currency; `None` of none.
    #[must_use]
    pub fn of(amounts: impl IntoIterator<Item = Money>) -> Option<Self> {
        amounts.into_iter().fold(None, |range, amount| {
            Some(match range {
                None => Self { min: amount, max: amount },
                Some(Self { min, max }) => Self {
                    min: if amount.minor() < min.minor() { amount } else { min },
                    max: if amount.minor() > max.minor() { amount } else { max },
                },
            })
        })
    }
}

/// A place in the shop's order of things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Category {
    /// What a filter names it by.
    pub value: String,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Its address.
    pub url: String,
    /// What it shows, in words; may be empty.
    pub alt: String,
}

/// Something that can be chosen: a size, a colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// What it can be.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisValue {
    /// The shop's own name of it: does not change with the label.
    pub id: String,
    /// For people.
    pub label: String,
}

/// A value chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue {
    /// The name of the axis.
    pub name: String,
    /// The value.
    pub value: AxisValue,
}

/// What buyers think, from 1 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rating {
    /// The mean in hundredths.
    pub hundredths: u32,
    /// How many said so.
    pub count: u32,
}

impl Product {
    /// The variant with that id.
    #[must_use]
    pub fn variant(&self, id: &str) -> Option<&Arc<Variant>> {
        self.variants.iter().find(|variant| variant.id == id)
    }

    /// About how many bytes it takes to keep: all texts, and the room of what holds them.
    #[must_use]
    pub fn weight(&self) -> usize {
        let media = |media: &[Media]| {
            media.iter().map(|m| size_of::<Media>() + m.url.len() + m.alt.len()).sum::<usize>()
        };
        let value = |value: &AxisValue| size_of::<AxisValue>() + value.id.len() + value.label.len();
        let option = |option: &OptionValue| size_of::<String>() + option.name.len() + value(&option.value);
        let texts = [&self.id, &self.handle, &self.title, &self.summary, &self.description];
        let texts = texts.into_iter().chain(&self.url).chain(&self.tags);
        let categories = self.categories.iter().map(|category| &category.value);
        let texts = texts.chain(categories).map(|text| size_of::<String>() + text.len());
        let axes = self
            .axes
            .iter()
            .map(|axis| size_of::<Axis>() + axis.name.len() + axis.values.iter().map(value).sum::<usize>());
        let variants = self.variants.iter().map(|variant| {
            let texts = [&variant.id, &variant.title, &variant.description];
            let texts = texts.into_iter().chain(&variant.url).chain(&variant.sku).map(String::len);
            size_of::<Variant>()
                + texts.sum::<usize>()
                + variant.options.iter().map(option).sum::<usize>()
                + media(&variant.media)
        });
        size_of::<Self>()
            + media(&self.media)
            + texts.sum::<usize>()
            + axes.sum::<usize>()
            + variants.sum::<usize>()
    }
}
