//! What a cart comes to: lines, discounts, shipping, tax, sum.
//!
//! [`price`] is run on every call of a cart or checkout route. It also does what `WooCommerce` does on loading a
//! cart: lines that can't be bought any more are left out, quantities are cut to what is there, coupons that
//! no longer apply are dropped, and a lost shipping choice falls back to the default. What it took away is
//! told as notices. All amounts are minor units, net of tax; each line is rounded on its own.

use chrono::{DateTime, Utc};
use md5::{Digest as _, Md5};

use super::catalog;
use super::coupons::{self, Discountable};
use super::model::{CouponLine, Session, TaxClass, TaxLine};
use super::money::{half_down, half_up, minor, unit};
use super::shipping::{self, Package, Rate};
use super::state::State;

/// Something the buyer should know: a code and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// A priced line.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) key: String,
    pub(super) product: u64,
    pub(super) quantity: i64,
    pub(super) subtotal: i64,
    pub(super) subtotal_tax: i64,
    pub(super) total: i64,
    pub(super) total_tax: i64,
    pub(super) tax_class: TaxClass,
}

/// A priced cart.
#[derive(Debug, Clone, Default)]
pub(super) struct Priced {
    pub(super) lines: Vec<Line>,
    pub(super) coupons: Vec<CouponLine>,
    pub(super) needs_shipping: bool,
    pub(super) packages: Vec<Package>,
    pub(super) taxes: Vec<TaxLine>,
    pub(super) items: i64,
    pub(super) items_tax: i64,
    pub(super) discount: i64,
    pub(super) discount_tax: i64,
    pub(super) shipping: i64,
    pub(super) shipping_tax: i64,
    pub(super) tax: i64,
    pub(super) total: i64,
    pub(super) notices: Vec<Notice>,
}

impl Priced {
    /// The chosen rate of each package that has one.
    pub(super) fn chosen_rates(&self) -> impl Iterator<Item = &Rate> {
        self.packages.iter().filter_map(Package::rate)
    }

    /// The fingerprint of contents and total; empty for an empty cart.
    pub(super) fn hash(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let mut digest = Md5::new();
        for line in &self.lines {
            digest.update(format!("{} {} {} {};", line.key, line.quantity, line.subtotal, line.total));
        }
        digest.update(format!("{}", self.total));
        data_encoding::HEXLOWER.encode(&digest.finalize())
    }
}

/// The lines as coupons see them.
pub(super) fn discountable(state: &State, session: &Session) -> Vec<Discountable> {
    session
        .lines
        .iter()
        .filter_map(|line| {
            let product = state.product(line.product)?;
            let country = session.shipping.country.as_str();
            let (price, taxed) = catalog::taxable(state, product.tax_class, country, product.price()?);
            Some(Discountable {
                product: product.id,
                parent: product.parent,
                quantity: line.quantity,
                price,
                taxed,
                subtotal: minor(state.settings(), price * line.quantity),
            })
        })
        .collect()
}

/// Leaves out what can't be bought and cuts quantities.
fn normalize(state: &State, session: &mut Session, now: DateTime<Utc>, notices: &mut Vec<Notice>) {
    session.lines.retain(|line| match state.product(line.product) {
        Some(product) if product.purchasable() && catalog::parent_public(state, product) => true,
        Some(product) => {
            notices.push(Notice {
                code: "woocommerce_rest_cart_item_error",
                message: format!(
                    "{} has been removed from your cart because it can no longer be purchased. Please contact us if \
                     you need assistance.",
                    catalog::full_name(state, product)
                ),
            });
            false
        }
        None => false,
    });
    let order = session.order;
    for line in &mut session.lines {
        if let Some(product) = state.product(line.product) {
            line.quantity = catalog::limits(state, product, order, now).clamp(line.quantity);
        }
    }
}

fn drop_coupons(state: &State, session: &mut Session, notices: &mut Vec<Notice>) {
    if session.lines.is_empty() {
        return;
    }
    let lines = discountable(state, session);
    session.coupons.retain(|code| {
        let reason = match state.coupon(code) {
            Some(coupon) => coupons::objection(state, coupon, &lines),
            None => Some(format!("Coupon &quot;{code}&quot; does not exist.")),
        };
        if let Some(reason) = reason {
            notices.push(Notice {
                code: "woocommerce_rest_cart_coupon_error",
                message: format!("The &quot;{code}&quot; coupon has been removed from your cart: {reason}"),
            });
            return false;
        }
        true
    });
}

/// Prices a cart and brings the session up to date with it.
pub(super) fn price(state: &State, session: &mut Session, now: DateTime<Utc>) -> Priced {
    let mut priced = Priced::default();
    normalize(state, session, now, &mut priced.notices);
    drop_coupons(state, session, &mut priced.notices);
    add_lines(state, session, &mut priced);
    priced.needs_shipping = priced
        .lines
        .iter()
        .any(|line| state.product(line.product).is_some_and(|product| !product.is_virtual));
    shipping::choose(state, session, &mut priced);
    add_taxes(state, session, &mut priced);
    priced
}

fn add_lines(state: &State, session: &Session, priced: &mut Priced) {
    let settings = state.settings();
    let one = i128::from(unit(settings));
    let country = session.shipping.country.as_str();
    let lines = discountable(state, session);
    let discounts = coupons::discounts(state, &session.coupons, &lines);
    let percents: Vec<i64> = session
        .lines
        .iter()
        .map(|line| {
            let class = state.product(line.product).map(|product| product.tax_class).unwrap_or_default();
            state.seed.tax(country, class).map_or(0, |rate| rate.percent)
        })
        .collect();
    for (index, (cart, line)) in session.lines.iter().zip(&lines).enumerate() {
        let percent = i128::from(percents.get(index).copied().unwrap_or_default());
        let off: i64 = discounts.iter().filter_map(|discount| discount.per_line.get(index)).sum();
        let before = i128::from(line.price) * i128::from(line.quantity);
        let after = (before - i128::from(off) * one).max(0);
        // Net and tax of an amount in micros, in minor units: tax is taken out of a price that holds it.
        let split = |amount: i128| {
            if line.taxed {
                let tax = half_down(amount * percent, (100 + percent) * one);
                (half_up(amount - i128::from(tax) * one, one), tax)
            } else {
                (half_up(amount, one), half_up(amount * percent, 100 * one))
            }
        };
        let (subtotal, subtotal_tax) = split(before);
        let (total, total_tax) = split(after);
        priced.lines.push(Line {
            key: cart.key.clone(),
            product: line.product,
            quantity: line.quantity,
            subtotal,
            subtotal_tax,
            total,
            total_tax,
            tax_class: state.product(line.product).map(|product| product.tax_class).unwrap_or_default(),
        });
    }
    let included = lines.first().is_some_and(|line| line.taxed);
    // In hundredths of a minor unit.
    let taxed = |discount: &[i64]| -> i128 {
        let each = discount.iter().zip(&percents).map(|(off, percent)| {
            let (off, percent) = (i128::from(*off), i128::from(*percent));
            if included { off * percent * 100 / (100 + percent) } else { off * percent }
        });
        each.sum()
    };
    let mut all = 0;
    for discount in &discounts {
        let Some(coupon) = state.coupon(&discount.code) else { continue };
        let hundredths = taxed(&discount.per_line);
        all += hundredths;
        let tax = half_down(hundredths, 100);
        let amount: i64 = discount.per_line.iter().sum::<i64>() - if included { tax } else { 0 };
        priced.discount += amount;
        priced.coupons.push(CouponLine {
            id: 0,
            code: coupon.code.clone(),
            kind: coupon.kind,
            amount: coupon.amount,
            free_shipping: coupon.free_shipping,
            discount: amount,
            tax,
        });
    }
    priced.discount_tax = half_up(all, 100);
    priced.items = priced.lines.iter().map(|line| line.subtotal).sum();
    priced.items_tax = priced.lines.iter().map(|line| line.subtotal_tax).sum();
}

/// The tax class of shipping: standard if anything in the cart is.
pub(super) fn shipping_class(lines: &[Line]) -> TaxClass {
    if lines.is_empty() || lines.iter().any(|line| line.tax_class == TaxClass::Standard) {
        TaxClass::Standard
    } else {
        TaxClass::Reduced
    }
}

fn add_taxes(state: &State, session: &Session, priced: &mut Priced) {
    let country = session.shipping.country.clone();
    let shipping =
        priced.chosen_rates().fold((0, 0), |(price, tax), rate| (price + rate.price, tax + rate.tax));
    (priced.shipping, priced.shipping_tax) = shipping;
    let shipping_class = shipping_class(&priced.lines);
    for class in [TaxClass::Standard, TaxClass::Reduced] {
        let Some(rate) = state.seed.tax(&country, class) else { continue };
        let items =
            priced.lines.iter().filter(|line| line.tax_class == class).map(|line| line.total_tax).sum();
        let shipping = if class == shipping_class { priced.shipping_tax } else { 0 };
        if items + shipping != 0 {
            priced.taxes.push(TaxLine {
                id: 0,
                rate_id: rate.id,
                country: country.clone(),
                name: rate.name.to_owned(),
                percent: rate.percent,
                items,
                shipping,
            });
        }
    }
    let lines: i64 = priced.lines.iter().map(|line| line.total).sum();
    priced.tax = priced.lines.iter().map(|line| line.total_tax).sum::<i64>() + priced.shipping_tax;
    priced.total = lines + priced.shipping + priced.tax;
}
