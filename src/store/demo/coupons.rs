//! Coupons: whether one applies, and what it takes off which line.
//!
//! Discounts are whole minor units. Per cent discounts are rounded down per line and the rest is given out
//! unit by unit; a fixed cart discount is split evenly over all units. Lines take part in the order of their
//! unit price, dearest first.

use super::http::ApiError;
use super::model::{Coupon, DiscountType};
use super::money::{from_cents, half_down};
use super::state::State;

/// A line as coupons see it.
#[derive(Debug, Clone)]
pub(super) struct Discountable {
    pub(super) product: u64,
    pub(super) parent: u64,
    pub(super) quantity: i64,
    /// Micros for one unit, as they were entered if `taxed`, else without tax.
    pub(super) price: i64,
    /// Whether tax is in the price.
    pub(super) taxed: bool,
    /// Minor units for the whole line before discounts.
    pub(super) subtotal: i64,
}

/// What one coupon takes off each line, in the order of the cart.
#[derive(Debug, Clone)]
pub(super) struct Discount {
    pub(super) code: String,
    pub(super) per_line: Vec<i64>,
}

/// Why a coupon does not apply to these lines; `None` if it does.
pub(super) fn objection(state: &State, coupon: &Coupon, lines: &[Discountable]) -> Option<String> {
    let code = html_escape::encode_text(&coupon.code);
    if coupon.uses_left.is_some_and(|left| left <= 0) {
        return Some(format!(
            "Usage limit for coupon &quot;{code}&quot; has been reached. Please try again after some time, or contact us \
             for help."
        ));
    }
    if coupon.expired {
        return Some(format!("Coupon &quot;{code}&quot; has expired."));
    }
    let subtotal: i64 = lines.iter().map(|line| line.subtotal).sum();
    if let Some(minimum) = coupon.minimum.map(|minimum| from_cents(state.settings(), minimum))
        && subtotal < minimum
    {
        let minimum = super::money::html(state.settings(), minimum);
        return Some(format!("The minimum spend for coupon &quot;{code}&quot; is {minimum}."));
    }
    if !coupon.products.is_empty() && !lines.is_empty() && !lines.iter().any(|line| is_for(coupon, line)) {
        return Some(format!("Sorry, coupon &quot;{code}&quot; is not applicable to selected products."));
    }
    None
}

fn is_for(coupon: &Coupon, line: &Discountable) -> bool {
    coupon.products.is_empty()
        || coupon.products.contains(&line.product)
        || coupon.products.contains(&line.parent)
}

/// Puts a coupon beside those already on a cart, or says why not.
pub(super) fn apply(
    state: &State,
    applied: &mut Vec<String>,
    code: &str,
    lines: &[Discountable],
) -> Result<(), ApiError> {
    let refuse = |message: String| ApiError::new(400, "woocommerce_rest_cart_coupon_error", message);
    let code = code.trim().to_lowercase();
    let shown = html_escape::encode_text(&code);
    if code.is_empty() || applied.contains(&code) {
        return Err(refuse(format!("Coupon code &quot;{shown}&quot; has already been applied.")));
    }
    let Some(coupon) = state.coupon(&code) else {
        return Err(refuse(format!(
            "Coupon &quot;{shown}&quot; cannot be applied because it does not exist."
        )));
    };
    if let Some(reason) = objection(state, coupon, lines) {
        return Err(refuse(reason));
    }
    let alone = applied.iter().find(|code| state.coupon(code).is_some_and(|coupon| coupon.individual_use));
    if let Some(alone) = alone {
        return Err(refuse(format!(
            "&quot;{alone}&quot; has already been applied and cannot be used in conjunction with other coupons."
        )));
    }
    if coupon.individual_use {
        applied.clear();
    }
    applied.push(code);
    Ok(())
}

/// Takes a coupon off a cart, or says why not.
pub(super) fn remove(state: &State, applied: &mut Vec<String>, code: &str) -> Result<(), ApiError> {
    let code = code.trim().to_lowercase();
    if applied.contains(&code) {
        applied.retain(|known| *known != code);
        return Ok(());
    }
    match state.coupon(&code) {
        Some(coupon) if !coupon.expired => Err(ApiError::new(
            409,
            "woocommerce_rest_cart_coupon_invalid_code",
            "Coupon cannot be removed because it is not already applied to the cart.",
        )),
        _ => Err(ApiError::new(400, "woocommerce_rest_cart_coupon_error", "Invalid coupon code.")),
    }
}

/// What the applied coupons take off, in the order in which they were applied.
pub(super) fn discounts(state: &State, applied: &[String], lines: &[Discountable]) -> Vec<Discount> {
    let mut found: Vec<&Coupon> = applied.iter().filter_map(|code| state.coupon(code)).collect();
    found.sort_by_key(|coupon| (coupon.kind.rank(), coupon.id));
    let settings = state.settings();
    let mut left = Left::new(lines, settings.sequential);
    let mut taken: Vec<Discount> = found
        .into_iter()
        .map(|coupon| {
            left.taken = vec![0; lines.len()];
            left.take(coupon, from_cents(settings, coupon.amount));
            Discount { code: coupon.code.clone(), per_line: left.taken.clone() }
        })
        .collect();
    taken.sort_by_key(|discount| applied.iter().position(|code| *code == discount.code));
    taken
}

/// How much of each line is left to discount.
struct Left<'a> {
    lines: &'a [Discountable],
    rest: Vec<i64>,
    taken: Vec<i64>,
    /// Positions of the lines, dearest unit first.
    order: Vec<usize>,
    sequential: bool,
}

impl<'a> Left<'a> {
    fn new(lines: &'a [Discountable], sequential: bool) -> Self {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(lines.get(*index).map_or(0, |line| line.price)));
        let rest = lines.iter().map(|line| line.subtotal).collect();
        Self { lines, rest, taken: vec![0; lines.len()], order, sequential }
    }

    fn line(&self, index: usize) -> Option<&'a Discountable> {
        self.lines.get(index)
    }

    fn left(&self, index: usize) -> i64 {
        self.rest.get(index).copied().unwrap_or_default()
    }

    /// Takes up to `amount` off a line and tells how much it was.
    fn off(&mut self, index: usize, amount: i64) -> i64 {
        let amount = amount.min(self.left(index)).max(0);
        if let (Some(left), Some(taken)) = (self.rest.get_mut(index), self.taken.get_mut(index)) {
            *left -= amount;
            *taken += amount;
        }
        amount
    }

    /// Takes a coupon off; `amount` is its amount in minor units, if it is fixed.
    fn take(&mut self, coupon: &Coupon, amount: i64) {
        let lines: Vec<usize> = self
            .order
            .iter()
            .copied()
            .filter(|index| self.line(*index).is_some_and(|line| is_for(coupon, line)))
            .collect();
        match coupon.kind {
            DiscountType::Percent => self.percent(coupon, &lines),
            DiscountType::FixedProduct => {
                self.each(amount, coupon.item_limit, &lines);
            }
            DiscountType::FixedCart => self.whole(amount, &lines),
        }
    }

    fn percent(&mut self, coupon: &Coupon, lines: &[usize]) {
        let mut units = coupon.item_limit.unwrap_or(i64::MAX);
        let (mut base, mut total) = (0, 0);
        for index in lines.iter().copied() {
            let Some(line) = self.line(index) else { continue };
            let whole = if self.sequential { self.left(index) } else { line.subtotal };
            let quantity = line.quantity.min(units).max(0);
            units -= quantity;
            let price = if line.quantity == 0 { 0 } else { whole * quantity / line.quantity };
            base += price;
            total += self.off(index, price * coupon.amount / 100);
        }
        let wanted = half_down(i128::from(base) * i128::from(coupon.amount), 100);
        self.give_out(wanted - total, lines);
    }

    /// Takes `amount` off each unit.
    fn each(&mut self, amount: i64, limit: Option<i64>, lines: &[usize]) -> i64 {
        let mut units = limit.unwrap_or(i64::MAX);
        let mut total = 0;
        for index in lines.iter().copied() {
            let quantity = self.line(index).map_or(0, |line| line.quantity).min(units).max(0);
            units -= quantity;
            total += self.off(index, amount * quantity);
        }
        total
    }

    /// Splits `amount` over all units.
    fn whole(&mut self, amount: i64, lines: &[usize]) {
        let mut amount = amount;
        loop {
            let lines: Vec<usize> = lines.iter().copied().filter(|index| self.left(*index) > 0).collect();
            let units: i64 =
                lines.iter().filter_map(|index| self.line(*index)).map(|line| line.quantity).sum();
            if units == 0 || amount <= 0 {
                return;
            }
            let share = amount / units;
            if share == 0 {
                self.give_out(amount, &lines);
                return;
            }
            let taken = self.each(share, None, &lines);
            if taken == 0 {
                return;
            }
            amount -= taken;
        }
    }

    /// Gives out what rounding left over, one minor unit per unit of goods.
    fn give_out(&mut self, amount: i64, lines: &[usize]) {
        let mut amount = amount;
        for index in lines.iter().copied() {
            for _ in 0..self.line(index).map_or(0, |line| line.quantity) {
                if amount <= 0 {
                    return;
                }
                amount -= self.off(index, 1);
            }
        }
    }
}
