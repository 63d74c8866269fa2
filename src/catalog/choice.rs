//! Options: which variants are meant, and what else could be chosen.

use std::sync::Arc;

use super::{Axis, AxisValue, Filter, Found, OptionValue, Product, Variant, VariantsShown};

/// What a caller has chosen of a product.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Wish {
    /// Values, one for an axis; the last one counts.
    pub selected: Vec<Choice>,
    /// Names of axes, the dearest first: the last is given up first.
    pub preferences: Vec<String>,
}

/// A value as a caller names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The axis.
    pub name: String,
    /// The value's id; decides where it is given.
    pub id: Option<String>,
    /// The value's label.
    pub label: String,
}

/// A product looked at closely.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// The product.
    pub product: Arc<Product>,
    /// The variants that are meant, the one to show first.
    pub variants: Vec<Arc<Variant>>,
    /// The choice that the rest is told by.
    pub selected: Vec<OptionValue>,
    /// What can be chosen beside it.
    pub axes: Vec<AxisSignals>,
}

/// An axis, and what each value would lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisSignals {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<(AxisValue, Signals)>,
}

/// What a value would lead to if the rest of the choice stays; `None`: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signals {
    /// Whether there is such a variant.
    pub exists: Option<bool>,
    /// Whether it can be bought.
    pub available: Option<bool>,
}

impl Choice {
    /// The value of the axis that is meant.
    fn of(&self, axis: &Axis) -> Option<AxisValue> {
        let by_id = self.id.as_ref().map(|id| axis.values.iter().find(|value| value.id == *id));
        let by_label = || axis.values.iter().find(|value| same(&value.label, &self.label));
        by_id.flatten().or_else(by_label).cloned()
    }
}

impl Wish {
    /// How many of the wishes these options fit, counted from the one that is given up last to the first that they
    /// do not fit: of two sets, the one that fits more of them stays longer in the choice.
    #[must_use]
    pub fn fits(&self, axes: &[Axis], options: &[OptionValue]) -> usize {
        let mut wanted = wanted(axes, self);
        let mut order = Vec::with_capacity(wanted.len());
        while !wanted.is_empty() {
            order.push(wanted.remove(self.given_up_first(&wanted)));
        }
        order.iter().rev().take_while(|(name, value)| has(options, name, value.as_ref())).count()
    }

    /// Which wish goes first.
    fn given_up_first(&self, wanted: &[Wanted]) -> usize {
        let preferred = self.preferences.iter().rev();
        let mut places = preferred.filter_map(|name| wanted.iter().position(|(axis, _)| same(axis, name)));
        places.next().unwrap_or(wanted.len().saturating_sub(1))
    }

    /// About how many bytes it takes to keep.
    #[must_use]
    pub(super) fn weight(&self) -> usize {
        let text = |text: &String| size_of::<String>() + text.len();
        let choice = |choice: &Choice| {
            text(&choice.name) + text(&choice.label) + choice.id.as_ref().map_or(size_of::<String>(), text)
        };
        let selected = self.selected.iter().map(choice).sum::<usize>();
        selected + self.preferences.iter().map(text).sum::<usize>()
    }
}

/// Whether a variant that is not at hand may fit the wish better than those that are.
pub(super) fn may_be_further_on(found: &Found, wish: &Wish, filter: &Filter) -> bool {
    let product = &found.product;
    let wanted = wanted(&product.axes, wish);
    let mut offered = product.variants.iter().filter(|variant| filter.takes_variant(variant));
    matches!(product.shown, VariantsShown::Most { .. })
        && found.variant.is_none()
        && !wanted.is_empty()
        && !offered.any(|variant| fit_all(variant, &wanted))
}

fn same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

/// A choice on the way to variants: an axis, and the value if the axis has it.
type Wanted = (String, Option<AxisValue>);

fn has(options: &[OptionValue], name: &str, value: Option<&AxisValue>) -> bool {
    options.iter().any(|option| option.name == name && Some(&option.value) == value)
}

fn fits(variant: &Variant, name: &str, value: Option<&AxisValue>) -> bool {
    has(&variant.options, name, value)
}

fn fit_all<'a>(variant: &Variant, wanted: impl IntoIterator<Item = &'a Wanted>) -> bool {
    wanted.into_iter().all(|(name, value)| fits(variant, name, value.as_ref()))
}

/// The product closely, as the wish has it; `None` when the filter leaves nothing of it.
///
/// An id of a variant outweighs the options wished for. Where nothing fits, wishes are given up: from the end of the
/// preferences first, then those without a preference, the last first.
pub(super) fn detail(found: &Found, wish: &Wish, filter: &Filter) -> Option<Detail> {
    let product = &found.product;
    if !filter.takes(product) {
        return None;
    }
    let offered: Vec<&Arc<Variant>> = product.variants.iter().filter(|v| filter.takes_variant(v)).collect();
    let named = match &found.variant {
        Some(id) => Some(*offered.iter().find(|variant| variant.id == *id)?),
        None => None,
    };
    let wanted = match named {
        Some(variant) => exactly(variant),
        None => relaxed(wanted(&product.axes, wish), wish, &offered),
    };
    let mut variants: Vec<Arc<Variant>> = match named {
        // Without options the variant is the product.
        Some(variant) => vec![Arc::clone(variant)],
        None => offered.iter().filter(|v| fit_all(v, &wanted)).map(|v| Arc::clone(v)).collect(),
    };
    if let Some(at) = variants.iter().position(|variant| variant.availability.available()) {
        let featured = variants.remove(at);
        variants.insert(0, featured);
    }
    let featured = variants.first()?;
    let wanted = if wanted.is_empty() { exactly(featured) } else { wanted };
    let selected = wanted
        .iter()
        .filter_map(|(name, value)| Some(OptionValue { name: name.clone(), value: value.clone()? }))
        .collect();
    let axes = product.axes.iter().map(|axis| signals(product, &offered, axis, &wanted)).collect();
    Some(Detail { product: Arc::clone(product), variants, selected, axes })
}

fn exactly(variant: &Variant) -> Vec<Wanted> {
    variant.options.iter().map(|option| (option.name.clone(), Some(option.value.clone()))).collect()
}

/// The wishes about axes that a product has, in its order.
fn wanted(axes: &[Axis], wish: &Wish) -> Vec<Wanted> {
    let of_axis = |axis: &Axis| {
        let choice = wish.selected.iter().rev().find(|choice| same(&choice.name, &axis.name))?;
        Some((axis.name.clone(), choice.of(axis)))
    };
    axes.iter().filter_map(of_axis).collect()
}

/// Gives up wishes until a variant fits.
fn relaxed(mut wanted: Vec<Wanted>, wish: &Wish, offered: &[&Arc<Variant>]) -> Vec<Wanted> {
    while !wanted.is_empty() && !offered.iter().any(|variant| fit_all(variant, &wanted)) {
        wanted.remove(wish.given_up_first(&wanted));
    }
    wanted
}

fn signals(product: &Product, offered: &[&Arc<Variant>], axis: &Axis, wanted: &[Wanted]) -> AxisSignals {
    let all = product.shown == VariantsShown::All;
    let others: Vec<&Wanted> = wanted.iter().filter(|(name, _)| *name != axis.name).collect();
    let signals = |value: &AxisValue| {
        let matching: Vec<_> = offered
            .iter()
            .filter(|variant| fits(variant, &axis.name, Some(value)))
            .filter(|variant| fit_all(variant, others.iter().copied()))
            .collect();
        let exists = !matching.is_empty();
        let available = matching.iter().any(|variant| variant.availability.available());
        // What is not at hand may exist.
        Signals {
            exists: (all || exists).then_some(exists),
            available: (all || available).then_some(available),
        }
    };
    let values = axis.values.iter().map(|value| (value.clone(), signals(value))).collect();
    AxisSignals { name: axis.name.clone(), values }
}
