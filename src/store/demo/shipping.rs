//! Shipping: which rates an address gets, and which of them is chosen.
//!
//! There is one package. The default is the first rate that is no local pickup, or free shipping when a coupon
//! grants it. A change of the set of rates resets the choice; so does a choice that is not on offer.

use super::model::Session;
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

/// Fills in rates and choice, and keeps both in the session.
pub(super) fn choose(state: &State, session: &mut Session, priced: &mut Priced) {
    if !priced.needs_shipping {
        session.offered.clear();
        session.chosen = None;
        return;
    }
    priced.rates = rates(state, session, priced);
    let offered: Vec<String> = priced.rates.iter().map(|rate| rate.rate_id.clone()).collect();
    let kept = session.chosen.as_ref().filter(|_| offered == session.offered);
    let kept = kept.and_then(|chosen| offered.iter().position(|rate| rate == chosen));
    let pickup = |rate: &str| matches!(split(rate).0, "local_pickup" | "pickup_location");
    let by_coupon = priced
        .coupons
        .iter()
        .any(|coupon| coupon.free_shipping)
        .then(|| offered.iter().position(|rate| split(rate).0 == "free_shipping"))
        .flatten();
    let usual =
        || offered.iter().position(|rate| !pickup(rate)).or(if offered.is_empty() { None } else { Some(0) });
    priced.chosen = kept.or(by_coupon).or_else(usual);
    session.chosen = priced.chosen_rate().map(|rate| rate.rate_id.clone());
    session.offered = offered;
}
