//! Lines and totals, net with the tax apart, so that every formula of `acp.md` §4.3 and §4.4 holds exactly.
//!
//! The shop's total is the truth. What its own rounding leaves over goes into the tax; what is too much for
//! rounding (a charge or a deduction that the shop tells in the total only) is shown as such.

use super::{
    delivery::Delivery,
    wire::{Total, TotalType},
};
use crate::checkout::{
    cart::Minor,
    session::{Session, ShownLine},
};

/// The sums of one line. All are at least 0, and `base - discount + tax = total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineSums {
    /// Before discounts.
    pub(super) base: Minor,
    /// What is taken off.
    pub(super) discount: Minor,
    /// The tax on what is left.
    pub(super) tax: Minor,
}

impl LineSums {
    /// The sums of a line. A price that a discount raised counts as the base.
    pub(super) fn of(shown: &ShownLine) -> Self {
        let net = shown.total.max(0);
        let base = shown.subtotal.max(net);
        Self { base, discount: base - net, tax: shown.total_tax.max(0) }
    }

    /// The price of one, when the base is a multiple of it.
    pub(super) fn unit(self, quantity: u32) -> Option<Minor> {
        let quantity = Minor::from(quantity);
        (self.base.checked_rem(quantity)? == 0).then(|| self.base / quantity)
    }

    /// As entries.
    pub(super) fn totals(self) -> Vec<Total> {
        let net = self.base - self.discount;
        let mut totals = vec![Total::new(TotalType::ItemsBaseAmount, "Price", self.base)];
        if self.discount > 0 {
            totals.push(Total::new(TotalType::ItemsDiscount, "Discount", self.discount));
        }
        totals.push(Total::new(TotalType::Subtotal, "Subtotal", net));
        totals.push(Total::new(TotalType::Tax, "Tax", self.tax));
        totals.push(Total::new(TotalType::Total, "Total", net + self.tax));
        totals
    }
}

/// The totals of a session.
pub(super) fn totals(session: &Session, delivery: &Delivery, prices_with_tax: bool) -> Vec<Total> {
    let lines: Vec<LineSums> = session.lines.iter().map(|line| LineSums::of(&line.shown)).collect();
    let base: Minor = lines.iter().map(|line| line.base).sum();
    let items_discount: Minor = lines.iter().map(|line| line.discount).sum();
    let subtotal = base - items_discount;

    let view = session.cart.as_ref().map(|cart| &cart.view);
    let fees = view.map(|view| view.fees.as_slice()).unwrap_or_default();
    let mut discount: Minor = fees.iter().map(|fee| (-fee.amount).max(0)).sum();
    let mut charges: Vec<(String, Minor)> =
        fees.iter().filter(|fee| fee.amount > 0).map(|fee| (named(&fee.name), fee.amount)).collect();
    let sum_of_fees: Minor = charges.iter().map(|(_, amount)| amount).sum();
    let net = subtotal - discount + delivery.charge.unwrap_or(0) + sum_of_fees;

    let told_tax = view.map_or_else(
        || lines.iter().map(|line| line.tax).sum::<Minor>() + delivery.tax,
        |view| view.totals.tax.max(0),
    );
    let ordered = session.order.as_ref().map(|order| order.total);
    let total = ordered.or(view.map(|view| view.totals.total)).unwrap_or(net + told_tax).max(0);

    let parts = session.lines.len() + fees.len() + 2;
    let by_rounding = (total - net - told_tax).unsigned_abs() <= u64::try_from(parts).unwrap_or(u64::MAX);
    let tax = if by_rounding { (total - net).max(0) } else { told_tax };
    let rest = total - net - tax;
    if rest > 0 {
        charges.push(("Other charges".to_owned(), rest));
    } else {
        discount -= rest;
    }

    let mut totals = vec![Total::new(TotalType::ItemsBaseAmount, "Items", base)];
    if items_discount > 0 {
        totals.push(Total::new(TotalType::ItemsDiscount, "Item discounts", items_discount));
    }
    totals.push(Total::new(TotalType::Subtotal, "Subtotal", subtotal));
    if discount > 0 {
        totals.push(Total::new(TotalType::Discount, "Discount", discount));
    }
    if let Some(charge) = delivery.charge {
        totals.push(Total::new(TotalType::Fulfillment, "Shipping", charge));
    }
    totals.extend(charges.into_iter().map(|(name, amount)| Total::new(TotalType::Fee, name, amount)));
    let told = prices_with_tax.then_some("The prices that the shop itself displays include this tax.");
    totals.push(Total { description: told, ..Total::new(TotalType::Tax, "Tax", tax) });
    totals.push(Total::new(TotalType::Total, "Total", total));
    totals
}

fn named(name: &str) -> String {
    if name.trim().is_empty() { "Fee".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
#[path = "sums_tests.rs"]
mod tests;
