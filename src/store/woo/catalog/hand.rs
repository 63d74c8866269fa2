//! What has come from the shop for one question.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    translate::{axes, options},
    wire::{Item, VariationRef},
};
use crate::catalog::Wish;

/// Products and variations, by the shop's ids.
#[derive(Default)]
pub(super) struct Hand {
    pub(super) products: BTreeMap<String, Item>,
    pub(super) variations: BTreeMap<String, Item>,
    /// Ids that the shop was asked for as products.
    pub(super) asked: BTreeSet<String>,
    /// Ids that the shop was asked for as variations: what has not come is not to be seen.
    pub(super) asked_variations: BTreeSet<String>,
}

impl Hand {
    pub(super) fn take(&mut self, items: Vec<Item>) {
        for item in items {
            if item.is_variation() {
                self.asked_variations.insert(item.id.clone());
                self.variations.insert(item.id.clone(), item);
            } else {
                self.products.insert(item.id.clone(), item);
            }
        }
    }

    pub(super) fn holds(&self, id: &str) -> bool {
        self.products.contains_key(id) || self.variations.contains_key(id)
    }

    /// The products that are meant by their own ids; with `families` those of variations, too.
    pub(super) fn named<'a>(&'a self, meant: &'a [Option<String>], families: bool) -> Vec<&'a str> {
        let product = |id: &'a String| match self.variations.get(id) {
            Some(variation) => families.then_some(variation.parent.as_str()),
            None => Some(id.as_str()),
        };
        let mut seen = BTreeSet::new();
        meant.iter().flatten().filter_map(product).filter(|id| seen.insert(*id)).collect()
    }

    /// The variable products among these whose variations are not all asked for.
    fn open<'a>(&'a self, products: &'a [&str]) -> impl Iterator<Item = &'a Item> {
        let products = products.iter().filter_map(|id| self.products.get(*id));
        products.filter(|product| product.is_variable() && product.is_offered())
    }

    /// Variations to ask for, in turns: the first of every product, the second of every product, … With a wish,
    /// those come first that fit it best.
    pub(super) fn deal(&self, products: &[&str], room: usize, wish: Option<&Wish>) -> Vec<String> {
        let lists: Vec<Vec<&VariationRef>> =
            self.open(products).map(|product| ordered(product, wish)).collect();
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn)))
            .filter(|listed| !self.asked_variations.contains(&listed.id))
            .take(room)
            .map(|listed| listed.id.clone())
            .collect()
    }

    /// The variable products among these.
    pub(super) fn variable(&self, products: &[&str]) -> Vec<String> {
        self.open(products).map(|product| product.id.clone()).collect()
    }
}

/// The variations of a product, in the merchant's order or as they fit a wish.
fn ordered<'a>(product: &'a Item, wish: Option<&Wish>) -> Vec<&'a VariationRef> {
    let mut listed: Vec<&VariationRef> = product.variations.iter().collect();
    if let Some(wish) = wish {
        let axes = axes(&product.attributes);
        let fits = |listed: &&VariationRef| options(listed, &axes).map_or(0, |own| wish.fits(&axes, &own));
        listed.sort_by_cached_key(|listed| std::cmp::Reverse(fits(listed)));
    }
    listed
}
