//! Shipping: which rates an address gets, and which of them is chosen.
//!
//! There is one package, or two where a plugin parts food from other goods. The default is the first rate that is no local pickup, or free shipping when a coupon
//! grants it. A change of the set of rates resets the choice; so does a choice that is not on offer.

use super::model::{Parcels, Session};
use super::money::{from_cents, half_up};
use super::seed::Rule;
use super::state::State;
use super::totals::{Priced, shipping_class};

/// A rate on offer; price and tax in minor units.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "`rate_id` is its name on the wire")]
pub(super) struct Rate {
    pub(super) rate_id: String,
    pub(super) title: String,
    pub(super) price: i64,
    pub(super) tax: i64,
    /// Members of `meta_data` before the list of items.
    pub(super) meta: Vec<(&'static str, String)>,
}

impl Rate {
    /// `method:instance`, split; a rate id without a colon is its own method.
    pub(super) fn method(&self) -> (&str, u64) {
        split(&self.rate_id)
    }
}

/// Method and instance of a rate id.
pub(super) fn split(rate_id: &str) -> (&str, u64) {
    rate_id
        .split_once(':')
        .and_then(|(method, instance)| Some((method, instance.parse().ok()?)))
        .unwrap_or((rate_id, 0))
}

/// The rates for the session's address and cart.
fn rates(state: &State, session: &Session, priced: &Priced) -> Vec<Rate> {
    let country = session.shipping.country.as_str();
    let percent = state.seed.tax(country, shipping_class(&priced.lines)).map_or(0, |rate| rate.percent);
    let free_by_coupon = priced.coupons.iter().any(|coupon| coupon.free_shipping);
    let has = |sku: &str| {
        priced.lines.iter().filter_map(|line| state.product(line.product)).any(|product| product.sku == sku)
    };
    let mut rates: Vec<Rate> = state
        .seed
        .methods(country)
        .iter()
        .filter_map(|method| {
            let cents = |amount: i64| from_cents(state.settings(), amount);
            let (title, price) = match method.rule {
                Rule::FreeFrom(least) => {
                    if !free_by_coupon && priced.items - priced.discount < cents(least) {
                        return None;
                    }
                    (method.title, 0)
                }
                Rule::FreeOrWith(least, sku) if priced.items >= cents(least) || has(sku) => {
                    (method.free_title, 0)
                }
                Rule::Always | Rule::FreeOrWith(..) => (method.title, cents(method.price)),
            };
            Some(Rate {
                rate_id: method.rate_id.to_owned(),
                title: title.to_owned(),
                price,
                tax: half_up(i128::from(price) * i128::from(percent), 100),
                meta: Vec::new(),
            })
        })
        .collect();
    if let Some(name) = &state.settings().pickup_location {
        rates.push(Rate {
            rate_id: "pickup_location:0".to_owned(),
            title: format!("Pickup ({name})"),
            price: 0,
            tax: 0,
            meta: vec![
                ("pickup_location", name.clone()),
                ("pickup_address", "Beispielstr. 1, 10115 Berlin".to_owned()),
                ("pickup_details", "Mon-Fri 9-17".to_owned()),
            ],
        });
    }
    rates
}

/// One package of a cart, with what may be sent how.
#[derive(Debug, Clone)]
pub(super) struct Package {
    /// A number, or the name a plugin gives it.
    pub(super) id: String,
    pub(super) name: &'static str,
    /// Keys of the lines in it.
    pub(super) lines: Vec<String>,
    pub(super) rates: Vec<Rate>,
    /// Position of the chosen rate.
    pub(super) chosen: Option<usize>,
}

impl Package {
    pub(super) fn rate(&self) -> Option<&Rate> {
        self.rates.get(self.chosen?)
    }
}

/// What is sent, in one package, or food apart from other goods where a plugin wants it so.
fn parts(state: &State, priced: &Priced) -> Vec<Package> {
    let sent = priced.lines.iter().filter_map(|line| {
        let product = state.product(line.product).filter(|product| !product.is_virtual)?;
        Some((line.key.clone(), product.categories.iter().any(|term| term.slug == "food")))
    });
    let (food, goods): (Vec<_>, Vec<_>) = sent.partition(|(_, food)| *food);
    let package = |id: &str, name: &'static str, lines: Vec<(String, bool)>| Package {
        id: id.to_owned(),
        name,
        lines: lines.into_iter().map(|(key, _)| key).collect(),
        rates: Vec::new(),
        chosen: None,
    };
    let ids = match state.settings().parcels {
        Parcels::Numbered => Some(["0", "1"]),
        Parcels::Named => Some(["vendor_7", "vendor_9"]),
        Parcels::One => None,
    };
    match ids.filter(|_| !food.is_empty() && !goods.is_empty()) {
        Some([first, second]) => {
            vec![package(first, "Goods parcel", goods), package(second, "Food parcel", food)]
        }
        None => vec![package("0", "Shipment 1", goods.into_iter().chain(food).collect())],
    }
}

/// Fills in packages, rates and choices, and keeps the choices in the session.
pub(super) fn choose(state: &State, session: &mut Session, priced: &mut Priced) {
    if !priced.needs_shipping {
        session.packages.clear();
        session.choices.clear();
        return;
    }
    let rates = rates(state, session, priced);
    let mut packages = parts(state, priced);
    let pickup = |rate: &Rate| matches!(rate.method().0, "local_pickup" | "pickup_location");
    for package in &mut packages {
        package.rates.clone_from(&rates);
    }
    if packages.len() > 1 {
        // The plugin's food is not handed over in the shop; then nothing is.
        for package in &mut packages {
            package.rates.retain(|rate| rate.method().0 != "local_pickup");
        }
    }
    let offered: Vec<(String, Vec<String>)> = packages
        .iter()
        .map(|package| (package.id.clone(), package.rates.iter().map(|rate| rate.rate_id.clone()).collect()))
        .collect();
    let same = offered == session.packages;
    let by_coupon = priced.coupons.iter().any(|coupon| coupon.free_shipping);
    for package in &mut packages {
        let at = |wanted: &dyn Fn(&Rate) -> bool| package.rates.iter().position(wanted);
        let asked = session.choices.get(&package.id).filter(|_| same);
        let kept = asked.and_then(|asked| at(&|rate| rate.rate_id == *asked));
        let free = || if by_coupon { at(&|rate| rate.method().0 == "free_shipping") } else { None };
        let usual = || at(&|rate| !pickup(rate)).or_else(|| at(&|_| true));
        package.chosen = kept.or_else(free).or_else(usual);
    }
    session.choices = packages
        .iter()
        .filter_map(|package| Some((package.id.clone(), package.rate()?.rate_id.clone())))
        .collect();
    session.packages = offered;
    priced.packages = packages;
}
