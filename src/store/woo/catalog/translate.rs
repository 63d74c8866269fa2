//! Products of the shop as the catalogue has them: amounts in ISO 4217 minor units, texts plain, ids as agents use
//! them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    super::{
        resolve::{self, ItemIds},
        text,
        translate::{Reader, Shop},
        wire::as_whole,
    },
    wire::{Attribute, Image, Item, VariationRef},
};
use crate::{
    catalog::{
        Availability, Axis, AxisValue, Category, Limits, Media, OptionValue, PriceRange, Product, Rating,
        Stock, Variant, VariantsShown,
    },
    checkout::store::Error,
    money::{Currency, Money},
};

/// How much of a text is kept.
const MAX_TEXT: usize = 10_000;
/// How many pictures of a thing are shown.
const MAX_MEDIA: usize = 10;
/// What a shop says where any number can be bought.
const UNBOUNDED: u32 = 9_999;

/// What translating needs to know beside the product.
pub(super) struct Context<'a> {
    pub(super) shop: &'a Shop,
    pub(super) ids: ItemIds,
    pub(super) currency: Currency,
    /// Article numbers that more than one thing has: they name nothing.
    pub(super) shared: BTreeSet<String>,
    /// The shop's ids that are no article numbers ([`ItemIds::Sku`]): where a thing has none of its own, only such
    /// an id leads back to it, and what has neither is left out.
    pub(super) free: BTreeSet<String>,
    /// The variations that the shop was asked for.
    pub(super) asked: &'a BTreeSet<String>,
    /// As many variations as are ever looked at.
    pub(super) most: usize,
}

/// Article numbers that stand on more than one of these things. A variation without one shows its product's.
pub(super) fn shared_skus<'a>(items: impl Iterator<Item = &'a Item>) -> BTreeSet<String> {
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for item in items {
        if let Some(sku) = item.sku.as_deref().filter(|sku| !sku.is_empty()) {
            owners.entry(sku).or_default().insert(&item.id);
        }
    }
    owners.into_iter().filter(|(_, ids)| ids.len() > 1).map(|(sku, _)| sku.to_owned()).collect()
}

impl Context<'_> {
    /// Reads amounts, which have to be in the one currency that is configured: else they would be told wrongly.
    fn reader(&self, item: &Item) -> Result<Reader, Error> {
        let money = Reader::new(&item.prices.unit, false)?;
        if money.currency() == self.currency {
            return Ok(money);
        }
        let what = format!("the shop's prices are in {}, configured is {}", money.currency(), self.currency);
        Err(Error::Unintelligible { what, wrote: false })
    }

    /// The article number, where it names this thing alone.
    pub(super) fn sku(&self, item: &Item) -> Option<String> {
        let usable = |sku: &&str| {
            let decoded = text::decoded(sku);
            !self.shared.contains(*sku)
                && decoded.len() <= resolve::LONGEST
                && !decoded.is_empty()
                && decoded.trim() == decoded
                && !decoded.chars().any(char::is_control)
        };
        item.sku.as_deref().filter(usable).map(|sku| text::decoded(sku).into_owned())
    }

    /// The id that agents use; `None` when none leads back to this thing.
    pub(super) fn id(&self, item: &Item) -> Option<String> {
        match self.ids {
            ItemIds::Id => Some(item.id.clone()),
            ItemIds::Sku => self.sku(item).or_else(|| self.free.get(&item.id).cloned()),
        }
    }

    /// A product with those of its variations that are at hand; `None` when nothing of it is offered.
    ///
    /// # Errors
    /// [`Error::Unintelligible`].
    pub(super) fn product(
        &self,
        item: &Item,
        variations: &BTreeMap<String, Item>,
    ) -> Result<Option<Product>, Error> {
        if !item.is_offered() || item.is_variation() {
            return Ok(None);
        }
        let Some(id) = self.id(item) else { return Ok(None) };
        let money = self.reader(item)?;
        let axes = if item.is_variable() { axes(&item.attributes) } else { Vec::new() };
        let (variants, shown) = if item.is_variable() {
            self.variants(item, &axes, variations)
        } else {
            (vec![Arc::new(self.variant(id.clone(), item, item, Vec::new())?)], VariantsShown::All)
        };
        let Some(own) = PriceRange::of(variants.iter().map(|variant| variant.price)) else { return Ok(None) };
        let amount = |text: &str| -> Result<Money, Error> {
            Ok(Money::new(money.amount(text, &item.prices.unit)?, money.currency()))
        };
        let prices = match (&item.prices.price_range, shown) {
            (Some(range), VariantsShown::Most { .. } | VariantsShown::Some { .. }) => {
                PriceRange { min: amount(&range.min_amount)?, max: amount(&range.max_amount)? }
            }
            _ => own,
        };
        // Of a share nobody can tell: the dearest may be among the others.
        let reduced =
            shown == VariantsShown::All && variants.iter().any(|variant| variant.list_price.is_some());
        let list_prices = PriceRange::of(variants.iter().map(|v| v.list_price.unwrap_or(v.price)));
        Ok(Some(Product {
            id,
            handle: item.slug.clone(),
            title: text::plain(&item.name),
            summary: long_text(first_filled(&item.short_description, &item.description)),
            description: long_text(first_filled(&item.description, &item.short_description)),
            url: self.shop.address(&item.permalink),
            categories: item
                .categories
                .iter()
                .filter(|category| !category.slug.is_empty())
                .map(|category| Category { value: category.slug.clone() })
                .collect(),
            prices,
            list_prices: list_prices.filter(|_| reduced),
            media: self.media(&item.images),
            axes,
            variants,
            shown,
            rating: rating(item),
            tags: item.tags.iter().map(|tag| text::plain(&tag.name)).filter(|tag| !tag.is_empty()).collect(),
        }))
    }

    /// What can be bought of a variable product, the featured one first, then in the merchant's order.
    fn variants(
        &self,
        item: &Item,
        axes: &[Axis],
        variations: &BTreeMap<String, Item>,
    ) -> (Vec<Arc<Variant>>, VariantsShown) {
        let mut variants = Vec::new();
        let asked = item.variations.iter().filter(|listed| self.asked.contains(&listed.id)).count();
        for listed in &item.variations {
            // What was asked for and has not come is hidden, or no longer sold.
            let Some(variation) = variations.get(&listed.id) else { continue };
            let Some(options) = options(listed, axes).filter(|_| variation.is_offered()) else { continue };
            let Some(id) = self.id(variation) else { continue };
            match self.variant(id, variation, item, options) {
                Ok(variant) => variants.push(Arc::new(variant)),
                Err(error) => tracing::warn!(variation = %listed.id, %error, "a variation cannot be shown"),
            }
        }
        let unasked = item.variations.len() - asked;
        let of = variants.len() + unasked;
        let beforehand = |variant: &Arc<Variant>| {
            let chosen = |option: &OptionValue| is_default(&item.attributes, option);
            !variant.options.is_empty() && variant.options.iter().all(chosen)
        };
        let available = |variant: &Arc<Variant>| variant.availability.available();
        let featured = variants
            .iter()
            .position(|variant| beforehand(variant) && available(variant))
            .or_else(|| variants.iter().position(available));
        if let Some(featured) = featured {
            let featured = variants.remove(featured);
            variants.insert(0, featured);
        }
        let shown = match asked {
            _ if unasked == 0 => VariantsShown::All,
            asked if asked >= self.most => VariantsShown::Most { of },
            _ => VariantsShown::Some { of },
        };
        (variants, shown)
    }

    fn variant(
        &self,
        id: String,
        item: &Item,
        parent: &Item,
        options: Vec<OptionValue>,
    ) -> Result<Variant, Error> {
        let money = self.reader(item)?;
        let amount = |text: &str| -> Result<Money, Error> {
            Ok(Money::new(money.amount(text, &item.prices.unit)?, money.currency()))
        };
        let (price, regular) = (amount(&item.prices.price)?, amount(&item.prices.regular_price)?);
        let mut labels: Vec<&OptionValue> = options.iter().collect();
        labels.sort_by_cached_key(|option| option.name.to_lowercase());
        let labels: Vec<&str> = labels.iter().map(|option| option.value.label.as_str()).collect();
        let about = first_filled(&item.description, &item.short_description);
        let told = |name: &str| item.add_to_cart.get(name).and_then(as_whole);
        let limit = |name: &str| told(name).unwrap_or(1).max(1);
        Ok(Variant {
            id,
            sku: item
                .sku
                .as_deref()
                .filter(|sku| !sku.is_empty() && (!item.is_variation() || parent.sku.as_deref() != Some(sku)))
                .map(|sku| text::decoded(sku).into_owned()),
            title: text::title_of(&text::plain(&item.name), &labels),
            description: long_text(about),
            url: self.shop.address(&item.permalink),
            price,
            list_price: (regular.minor() > price.minor()).then_some(regular),
            availability: availability(item),
            limits: Limits {
                minimum: limit("minimum"),
                maximum: told("maximum").filter(|maximum| (1..UNBOUNDED).contains(maximum)),
                step: limit("multiple_of"),
            },
            options,
            media: self.media(&item.images),
        })
    }

    fn media(&self, images: &[Image]) -> Vec<Media> {
        let media =
            |image: &Image| Some(Media { url: self.shop.address(&image.src)?, alt: text::plain(&image.alt) });
        images.iter().filter_map(media).take(MAX_MEDIA).collect()
    }
}

fn first_filled<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.trim().is_empty() { second } else { first }
}

/// A text without HTML, cut at a word when it is very long.
fn long_text(html: &str) -> String {
    let mut plain = text::plain(html);
    if let Some((end, _)) = plain.char_indices().nth(MAX_TEXT) {
        let end = plain.get(..end).and_then(|kept| kept.rfind(' ')).unwrap_or(end);
        plain.truncate(end);
        plain.push('…');
    }
    plain
}

fn availability(item: &Item) -> Availability {
    let stock = match (item.is_in_stock, item.is_on_backorder) {
        (false, _) => Stock::Out,
        (true, true) => Stock::Backorder,
        (true, false) => Stock::In,
    };
    let left = as_whole(&item.low_stock_remaining).filter(|left| *left > 0 && stock == Stock::In);
    Availability { stock, left }
}

/// The mean of all reviews, in hundredths; it comes as a text (`"4.67"`).
fn rating(item: &Item) -> Option<Rating> {
    let count = as_whole(&item.review_count).filter(|count| *count > 0)?;
    let (whole, fraction) = item.average_rating.split_once('.').unwrap_or((&item.average_rating, ""));
    let digits: String = format!("{fraction}00").chars().take(2).collect();
    let hundredths = whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(digits.parse().ok()?)?;
    (100..=500).contains(&hundredths).then_some(Rating { hundredths, count })
}

/// What can be chosen of a product. The id of a value is the shop's own name of it.
pub(super) fn axes(attributes: &[Attribute]) -> Vec<Axis> {
    let axis = |attribute: &Attribute| Axis {
        name: text::plain(&attribute.name),
        values: attribute
            .terms
            .iter()
            .map(|term| AxisValue {
                id: first_filled(&term.slug, &term.name).to_owned(),
                label: text::plain(&term.name),
            })
            .collect(),
    };
    let of_variations = attributes.iter().filter(|attribute| attribute.has_variations);
    of_variations.map(axis).filter(|axis| !axis.name.is_empty() && !axis.values.is_empty()).collect()
}

/// The options of a variation; `None` when one is left to the buyer: its id alone does not say what is bought.
pub(super) fn options(listed: &VariationRef, axes: &[Axis]) -> Option<Vec<OptionValue>> {
    let mut options = Vec::new();
    for chosen in &listed.attributes {
        let written = chosen.value.as_deref().filter(|value| !value.is_empty())?;
        let name = text::plain(&chosen.name);
        let values = axes.iter().filter(|axis| axis.name == name).flat_map(|axis| &axis.values);
        let label = text::plain(written);
        let known = values.into_iter().find(|value| value.id == written || value.label == label);
        let value = known.cloned().unwrap_or_else(|| AxisValue { id: written.to_owned(), label });
        options.push(OptionValue { name, value });
    }
    let place = |option: &OptionValue| axes.iter().position(|axis| axis.name == option.name);
    options.sort_by_key(|option| place(option).unwrap_or(usize::MAX));
    Some(options)
}

/// Whether the merchant has this value chosen beforehand.
fn is_default(attributes: &[Attribute], option: &OptionValue) -> bool {
    let attribute = attributes.iter().find(|attribute| text::plain(&attribute.name) == option.name);
    attribute.is_some_and(|attribute| {
        let term = |id: &str| attribute.terms.iter().find(|term| first_filled(&term.slug, &term.name) == id);
        term(&option.value.id).is_some_and(|term| term.default)
    })
}
