//! The shop's amounts as UCP shows them: net or gross, by line and in all, and who took off how much.
//!
//! Nothing is priced here: amounts are moved, joined with their tax, and made to add up. What the lines and
//! entries leave over or lack against the shop's own total becomes an entry of its own, so that the entries
//! always add up to exactly what is charged. Minor units, signed as 2026-04-08 wants them.

use crate::checkout::{
    cart::{CartCoupon, CartView, Minor},
    session::{Line, Session},
};

/// The amounts of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// One for each line, in order.
    pub lines: Vec<LineAmounts>,
    /// The entries in order; the last is the total.
    pub entries: Vec<Entry>,
    /// Discounts in effect.
    pub applied: Vec<Applied>,
}

/// The amounts of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineAmounts {
    /// Of one unit.
    pub price: Minor,
    /// Before discounts.
    pub subtotal: Minor,
    /// What is taken off this item, positive; not what is taken off the cart as a whole.
    pub discount: Minor,
}

impl LineAmounts {
    /// After discounts.
    pub(crate) const fn total(self) -> Minor {
        self.subtotal - self.discount
    }
}

/// What an entry of the totals is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// All lines before discounts.
    Subtotal,
    /// What is taken off lines; negative.
    ItemsDiscount,
    /// What is taken off the cart as a whole; negative.
    Discount,
    /// Shipping.
    Fulfillment,
    /// A fee; positive.
    Fee,
    /// Tax; positive.
    Tax,
    /// What is charged.
    Total,
}

/// An entry of the totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Signed.
    pub amount: Minor,
    /// For people, when the kind does not say enough.
    pub text: Option<String>,
}

/// A discount in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The code as the caller spelled it; `None` for a discount of the shop's own.
    pub code: Option<String>,
    /// For people.
    pub title: String,
    /// What it takes off, positive.
    pub amount: Minor,
    /// How much of it off which line (by number); empty when it is not taken off lines.
    pub allocations: Vec<(usize, Minor)>,
}

/// The title of a discount of the shop's own.
const SHOP_DISCOUNT: &str = "Discount of the shop";

impl Amounts {
    /// Of a session; `gross` joins every amount with its tax.
    pub(crate) fn of(session: &Session, gross: bool) -> Self {
        let mut lines: Vec<LineAmounts> =
            session.lines.iter().map(|line| line_amounts(line, gross)).collect();
        let view = session.cart.as_ref().map(|cart| &cart.view);
        let mut entries = Vec::new();
        let mut push = |kind, amount, text| entries.push(Entry { kind, amount, text });
        push(EntryKind::Subtotal, lines.iter().map(|line| line.subtotal).sum(), None);
        let coupons = view.map(|view| view.coupons.as_slice()).unwrap_or_default();
        let mut applied = applied(&session.codes, coupons, &mut lines, gross);
        let off_items: Minor = lines.iter().map(|line| line.discount).sum();
        if off_items > 0 {
            push(EntryKind::ItemsDiscount, -off_items, None);
        }
        for discount in applied.iter().filter(|applied| applied.allocations.is_empty() && applied.amount > 0)
        {
            push(EntryKind::Discount, -discount.amount, Some(discount.title.clone()));
        }
        if let Some(view) = view {
            for fee in &view.fees {
                let amount = with_tax(fee.amount, fee.tax, gross);
                signed(&mut push, amount, &fee.name);
                if amount < 0 {
                    let title = fee.name.clone();
                    applied.push(Applied { code: None, title, amount: -amount, allocations: Vec::new() });
                }
            }
            if let Some((amount, text)) = shipping(session, view, gross) {
                if amount < 0 {
                    push(EntryKind::Discount, amount, text);
                } else {
                    push(EntryKind::Fulfillment, amount, text);
                }
            }
            if !gross && view.totals.tax > 0 {
                push(EntryKind::Tax, view.totals.tax, None);
            }
        }
        let sum: Minor = entries.iter().map(|entry| entry.amount).sum();
        let ordered = session.order.as_ref().map(|order| order.total);
        let total = ordered.or_else(|| view.map(|view| view.totals.total)).unwrap_or(sum);
        let rest = total - sum;
        let rounding = Minor::try_from(lines.len()).unwrap_or(0) + 2;
        let text = if rest.abs() <= rounding { "Rounding" } else { "Adjustment by the shop" };
        signed(&mut |kind, amount, text| entries.push(Entry { kind, amount, text }), rest, text);
        // Discounts stand before charges, as people read them; the sort keeps the order within a kind.
        entries.sort_by_key(|entry| entry.kind.rank());
        entries.push(Entry { kind: EntryKind::Total, amount: total, text: None });
        Self { lines, entries, applied }
    }
}

impl EntryKind {
    const fn rank(self) -> u8 {
        match self {
            Self::Subtotal => 0,
            Self::ItemsDiscount => 1,
            Self::Discount => 2,
            Self::Fulfillment => 3,
            Self::Fee => 4,
            Self::Tax => 5,
            Self::Total => 6,
        }
    }
}

/// A fee, or a discount when it is negative, or nothing.
fn signed(push: &mut impl FnMut(EntryKind, Minor, Option<String>), amount: Minor, text: &str) {
    match amount.signum() {
        1 => push(EntryKind::Fee, amount, Some(text.to_owned())),
        -1 => push(EntryKind::Discount, amount, Some(text.to_owned())),
        _ => {}
    }
}

/// An amount with or without its tax.
pub(crate) const fn with_tax(net: Minor, tax: Minor, gross: bool) -> Minor {
    if gross { net + tax } else { net }
}

fn line_amounts(line: &Line, gross: bool) -> LineAmounts {
    let shown = &line.shown;
    let total = with_tax(shown.total, shown.total_tax, gross).max(0);
    // A line that costs more after discounts than before is shown at the price that is charged.
    let subtotal = with_tax(shown.subtotal, shown.subtotal_tax, gross).max(total);
    let quantity = Minor::from(line.quantity.max(1));
    let price = if subtotal % quantity == 0 { subtotal / quantity } else { shown.unit_price.max(0) };
    LineAmounts { price, subtotal, discount: subtotal - total }
}

/// What shipping costs, once something ships and the shop has worked it out.
fn shipping(session: &Session, view: &CartView, gross: bool) -> Option<(Minor, Option<String>)> {
    let amount = with_tax(view.totals.shipping?, view.totals.shipping_tax, gross);
    let option = session.fulfillment.selected_option();
    let shown = amount != 0 || (view.needs_shipping && option.is_some());
    shown.then(|| (amount, option.map(|option| option.title.clone())))
}

/// The discounts in effect, and what each line loses to those that are an item's: the shop tells what each coupon
/// takes off in all and what each line loses in all. Coupons of the whole cart have no allocations, and leave
/// the lines as they were; what no coupon explains is the shop's own way with single items.
fn applied(codes: &[String], coupons: &[CartCoupon], lines: &mut [LineAmounts], gross: bool) -> Vec<Applied> {
    let mut per_item: Vec<bool> = coupons.iter().map(|coupon| coupon.per_item).collect();
    let mut found: Vec<Applied> = coupons
        .iter()
        .map(|coupon| {
            let spelled = codes.iter().find(|code| code.to_lowercase() == coupon.code.to_lowercase());
            let amount = with_tax(coupon.discount, coupon.discount_tax, gross).max(0);
            let title = spelled.unwrap_or(&coupon.code).clone();
            Applied { code: spelled.cloned(), title, amount, allocations: Vec::new() }
        })
        .collect();
    meet(&mut found, lines.iter().map(|line| line.discount).sum(), lines.len());
    per_item.resize(found.len(), true);
    let amounts: Vec<Minor> =
        found.iter().zip(&per_item).map(|(applied, own)| if *own { applied.amount } else { 0 }).collect();
    let off_items = level(lines, amounts.iter().sum());
    for (applied, row) in found.iter_mut().zip(spread(&amounts, &off_items)) {
        applied.allocations = row.into_iter().enumerate().filter(|(_, part)| *part > 0).collect();
    }
    for (line, off) in lines.iter_mut().zip(off_items) {
        line.discount = off;
    }
    found
}

/// Which part of each line's discount is the items' own, `amount` in all: what stays after it lies as evenly on
/// the lines, by their prices, as can be, because that is how a coupon of the whole cart lies on them.
/// `amount` is not more than the discounts in all.
fn level(lines: &[LineAmounts], amount: Minor) -> Vec<Minor> {
    let product = |a: Minor, b: Minor| i128::from(a) * i128::from(b);
    let mut by_rate: Vec<(usize, &LineAmounts)> =
        lines.iter().enumerate().filter(|(_, line)| line.discount > 0).collect();
    // The highest rate first, compared without division.
    by_rate.sort_by(|(_, a), (_, b)| product(b.discount, a.subtotal).cmp(&product(a.discount, b.subtotal)));
    // The fewest lines that can give the amount without falling below the rate of the next.
    let (mut stays, mut price, mut giving) = (-amount, 0, 0);
    for (at, (_, line)) in by_rate.iter().enumerate() {
        stays += line.discount;
        price += line.subtotal;
        giving = at + 1;
        let next = by_rate.get(giving);
        let above = |(_, next): &(usize, &LineAmounts)| {
            product(stays, next.subtotal) >= product(next.discount, price)
        };
        if stays >= 0 && next.is_none_or(above) {
            break;
        }
    }
    let mut parts = vec![0; lines.len()];
    let mut rest = amount;
    // The second round places what rounding left over.
    for round in [true, false] {
        for (at, line) in by_rate.iter().take(giving) {
            let Some(part) = parts.get_mut(*at) else { continue };
            let kept = if round { product(stays, line.subtotal) / i128::from(price.max(1)) } else { 0 };
            let more = (line.discount - *part - Minor::try_from(kept).unwrap_or(0)).clamp(0, rest);
            *part += more;
            rest -= more;
        }
    }
    parts
}

/// Makes the amounts add up to `target`, what the lines show: a few units of rounding go to the largest, a
/// larger rest is a discount of the shop's own, and too much is taken from the largest.
fn meet(found: &mut Vec<Applied>, target: Minor, lines: usize) {
    let mut rest = target - found.iter().map(|applied| applied.amount).sum::<Minor>();
    let rounding = Minor::try_from(lines * found.len()).unwrap_or(0);
    while rest < 0 || (1..=rounding).contains(&rest) {
        let largest = found.iter_mut().max_by_key(|applied| applied.amount);
        let Some(largest) = largest.filter(|largest| largest.amount > 0) else { break };
        let step = rest.max(-largest.amount);
        largest.amount += step;
        rest -= step;
    }
    if rest > 0 {
        let title = SHOP_DISCOUNT.to_owned();
        found.push(Applied { code: None, title, amount: rest, allocations: Vec::new() });
    }
}

/// Spreads amounts over columns in proportion to what is left of each column: every row adds up to its
/// amount and, when both sides have the same sum, every column to its own. All numbers are ≥ 0, and the
/// amounts are not more than the columns in all.
fn spread(amounts: &[Minor], columns: &[Minor]) -> Vec<Vec<Minor>> {
    let mut left = columns.to_vec();
    let mut rows = Vec::with_capacity(amounts.len());
    for amount in amounts {
        let sum: i128 = left.iter().map(|room| i128::from(*room)).sum();
        let mut row: Vec<Minor> = left
            .iter()
            .map(|room| {
                let share = (i128::from(*amount) * i128::from(*room)).checked_div(sum).unwrap_or(0);
                Minor::try_from(share).unwrap_or(0)
            })
            .collect();
        let mut rest = amount - row.iter().sum::<Minor>();
        for (part, room) in row.iter_mut().zip(&left) {
            let more = rest.min(room - *part).min(1);
            *part += more;
            rest -= more;
        }
        for (room, part) in left.iter_mut().zip(&row) {
            *room -= part;
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::samples, *};
    use crate::checkout::cart::Fee;

    /// A coupon for single items.
    fn coupon(code: &str, discount: Minor) -> CartCoupon {
        CartCoupon { code: code.into(), discount, discount_tax: discount / 5, per_item: true }
    }

    fn kinds(amounts: &Amounts) -> Vec<(EntryKind, Minor)> {
        amounts.entries.iter().map(|entry| (entry.kind, entry.amount)).collect()
    }

    #[test]
    fn net_shows_tax_apart_and_gross_holds_it() {
        let session = samples::session();
        let net = Amounts::of(&session, false);
        assert_eq!(
            kinds(&net),
            [
                (EntryKind::Subtotal, 8500),
                (EntryKind::Discount, -850),
                (EntryKind::Fulfillment, 500),
                (EntryKind::Tax, 1630),
                (EntryKind::Total, 9780)
            ]
        );
        let gross = Amounts::of(&session, true);
        assert_eq!(
            kinds(&gross),
            [
                (EntryKind::Subtotal, 10200),
                (EntryKind::Discount, -1020),
                (EntryKind::Fulfillment, 600),
                (EntryKind::Total, 9780)
            ]
        );
        assert_eq!(gross.lines[0], LineAmounts { price: 4200, subtotal: 8400, discount: 0 });
    }

    #[test]
    fn a_price_that_does_not_divide_is_the_shops_own() {
        let mut session = samples::session();
        session.lines[0].quantity = 3;
        session.lines[0].shown.subtotal = 1000;
        session.lines[0].shown.total = 900;
        session.lines[0].shown.unit_price = 334;
        let amounts = Amounts::of(&session, false);
        assert_eq!((amounts.lines[0].price, amounts.lines[0].subtotal), (334, 1000));
    }

    #[test]
    fn fees_keep_their_sign_and_what_is_left_over_has_an_entry() {
        let mut session = samples::session();
        let view = &mut session.cart.as_mut().unwrap().view;
        view.fees = vec![
            Fee { name: "Gift wrap".into(), amount: 300, tax: 0 },
            Fee { name: "Regulars".into(), amount: -200, tax: 0 },
            Fee { name: "Nothing".into(), amount: 0, tax: 0 },
        ];
        view.totals.total += 101;
        let amounts = Amounts::of(&session, false);
        let entries: Vec<_> = amounts.entries.iter().map(|e| (e.kind, e.amount, e.text.as_deref())).collect();
        assert!(entries.contains(&(EntryKind::Fee, 300, Some("Gift wrap"))));
        assert!(entries.contains(&(EntryKind::Discount, -200, Some("Regulars"))));
        assert!(entries.contains(&(EntryKind::Fee, 1, Some("Rounding"))));
        assert!(amounts.applied.iter().any(|a| a.title == "Regulars" && a.amount == 200 && a.code.is_none()));
    }

    /// Requirements: U-075.
    #[test]
    fn free_shipping_is_an_entry_of_nothing_and_no_shipping_is_no_entry() {
        let mut session = samples::session();
        session.cart.as_mut().unwrap().view.totals.shipping = Some(0);
        session.cart.as_mut().unwrap().view.totals.shipping_tax = 0;
        let fulfillment = |session: &Session| {
            let amounts = Amounts::of(session, true);
            amounts.entries.iter().find(|e| e.kind == EntryKind::Fulfillment).map(|e| e.amount)
        };
        assert_eq!(fulfillment(&session), Some(0));
        session.cart.as_mut().unwrap().view.needs_shipping = false;
        assert_eq!(fulfillment(&session), None);
    }

    /// Code, amount, allocations.
    type Told = (Option<String>, Minor, Vec<(usize, Minor)>);

    fn told(session: &Session) -> Vec<Told> {
        let applied = Amounts::of(session, false).applied;
        applied.into_iter().map(|a| (a.code, a.amount, a.allocations)).collect()
    }

    #[test]
    fn a_coupon_of_the_whole_cart_leaves_the_lines_alone() {
        let mut session = samples::session();
        assert_eq!(told(&session), [(Some("Ten".into()), 850, vec![])]);
        assert!(Amounts::of(&session, false).lines.iter().all(|line| line.discount == 0));
        // A unit of rounding goes to the coupon.
        session.cart.as_mut().unwrap().view.coupons[0].discount = 849;
        assert_eq!(told(&session), [(Some("Ten".into()), 850, vec![])]);
    }

    #[test]
    fn coupons_of_items_are_told_by_line_and_meet_the_lines() {
        let mut session = samples::session();
        session.cart.as_mut().unwrap().view.coupons = vec![coupon("ten", 850)];
        assert_eq!(told(&session), [(Some("Ten".into()), 850, vec![(0, 700), (1, 150)])]);
        // What no coupon explains is the shop's own.
        session.cart.as_mut().unwrap().view.coupons = vec![];
        assert_eq!(told(&session), [(None, 850, vec![(0, 700), (1, 150)])]);
        // A coupon that takes nothing off lines (free shipping) is still in effect.
        session.cart.as_mut().unwrap().view.coupons = vec![coupon("ten", 850), coupon("shipfree", 0)];
        assert_eq!(told(&session)[1], (None, 0, vec![]));
        // Coupons that say more than the lines show are cut to it.
        session.cart.as_mut().unwrap().view.coupons = vec![coupon("ten", 800), coupon("b", 600)];
        let amounts: Vec<_> = told(&session).iter().map(|(_, amount, _)| *amount).collect();
        assert_eq!(amounts, [250, 600]);
    }

    #[test]
    fn an_items_coupon_is_found_below_one_of_the_whole_cart() {
        // 10 % off everything, and 200 off the second line.
        let mut session = samples::session();
        session.lines[1].shown.total -= 200;
        let cart = CartCoupon { per_item: false, ..coupon("ten", 850) };
        session.cart.as_mut().unwrap().view.coupons = vec![cart, coupon("pot200", 200)];
        session.cart.as_mut().unwrap().view.totals.total -= 200;
        let amounts = Amounts::of(&session, false);
        assert_eq!(
            kinds(&amounts)[..3],
            [(EntryKind::Subtotal, 8500), (EntryKind::ItemsDiscount, -200), (EntryKind::Discount, -850)]
        );
        assert_eq!(told(&session), [(Some("Ten".into()), 850, vec![]), (None, 200, vec![(1, 200)])]);
        assert_eq!(amounts.lines.iter().map(|line| line.discount).collect::<Vec<_>>(), [0, 200]);
    }

    #[test]
    fn the_items_part_is_taken_from_the_highest_rates() {
        let line = |subtotal, discount| LineAmounts { price: 0, subtotal, discount };
        for (lines, amount, parts) in [
            (&[line(1000, 300), line(2999, 300)][..], 200, &[200, 0][..]),
            (&[line(2999, 300), line(1000, 300)], 200, &[0, 200]),
            (&[line(1000, 100), line(1000, 100)], 0, &[0, 0]),
            (&[line(1000, 100), line(1000, 100)], 200, &[100, 100]),
            (&[line(1000, 500), line(1000, 400), line(1000, 100)], 700, &[400, 300, 0]),
            (&[line(0, 0), line(500, 500)], 500, &[0, 500]),
            (&[], 0, &[]),
        ] {
            assert_eq!(level(lines, amount), parts, "{lines:?} {amount}");
        }
    }

    proptest! {
        /// Requirements: U-113.
        #[test]
        fn rows_and_columns_of_discounts_add_up(
            columns in proptest::collection::vec(0_i64..10_000, 1..8),
            cuts in proptest::collection::vec(0_i64..100, 1..6),
        ) {
            let sum: i64 = columns.iter().sum();
            let mut left = sum;
            let mut amounts: Vec<i64> = cuts.iter().map(|cut| { let part = left * cut / 100; left -= part; part }).collect();
            amounts.push(left);
            let rows = spread(&amounts, &columns);
            for (row, amount) in rows.iter().zip(&amounts) {
                prop_assert_eq!(row.iter().sum::<i64>(), *amount);
                prop_assert!(row.iter().all(|part| *part >= 0));
            }
            for (at, column) in columns.iter().enumerate() {
                prop_assert_eq!(rows.iter().map(|row| row[at]).sum::<i64>(), *column);
            }
        }

        /// Requirements: U-074, U-075, U-076, U-077, U-113, U-114.
        #[test]
        fn entries_add_up_to_the_total_with_the_right_signs(
            lines in proptest::collection::vec((1_u32..5, 0_i64..50_000, 0_i64..12_000, -100_i64..30_000, -10_i64..9_000), 0..6),
            fees in proptest::collection::vec((-2_000_i64..2_000, -300_i64..300), 0..3),
            coupons in proptest::collection::vec((0_i64..9_000, any::<bool>()), 0..4),
            shipping in proptest::option::of(-100_i64..3_000),
            tax in -5_i64..20_000,
            total in 0_i64..400_000,
            gross: bool,
        ) {
            let mut session = samples::session();
            let sample = session.lines[0].clone();
            session.lines = lines.iter().map(|(quantity, subtotal, subtotal_tax, off, off_tax)| {
                let mut line = sample.clone();
                line.quantity = *quantity;
                line.shown.subtotal = *subtotal;
                line.shown.subtotal_tax = *subtotal_tax;
                line.shown.total = subtotal - off;
                line.shown.total_tax = subtotal_tax - off_tax;
                line
            }).collect();
            let view = &mut session.cart.as_mut().unwrap().view;
            view.fees = fees.iter().map(|(amount, tax)| Fee { name: "Fee".into(), amount: *amount, tax: *tax }).collect();
            view.coupons = coupons.iter().enumerate().map(|(at, (amount, per_item))| CartCoupon { per_item: *per_item, ..coupon(&format!("c{at}"), *amount) }).collect();
            view.totals.shipping = shipping;
            view.totals.tax = tax;
            view.totals.total = total;
            let amounts = Amounts::of(&session, gross);
            let (last, entries) = amounts.entries.split_last().unwrap();
            prop_assert_eq!((last.kind, last.amount), (EntryKind::Total, total));
            prop_assert_eq!(entries.iter().map(|entry| entry.amount).sum::<i64>(), total);
            prop_assert_eq!(entries.iter().filter(|entry| entry.kind == EntryKind::Subtotal).count(), 1);
            for entry in entries {
                match entry.kind {
                    EntryKind::ItemsDiscount | EntryKind::Discount => prop_assert!(entry.amount < 0),
                    EntryKind::Subtotal | EntryKind::Fulfillment | EntryKind::Fee | EntryKind::Tax | EntryKind::Total => {
                        prop_assert!(entry.amount >= 0);
                    }
                }
            }
            let items: i64 = entries.iter().filter(|entry| entry.kind == EntryKind::ItemsDiscount).map(|entry| entry.amount).sum();
            prop_assert_eq!(items, -amounts.lines.iter().map(|line| line.discount).sum::<i64>());
            let plain: i64 = entries.iter().filter(|entry| entry.kind == EntryKind::Discount).map(|entry| entry.amount).sum();
            let unallocated: i64 = amounts.applied.iter().filter(|a| a.allocations.is_empty()).map(|a| a.amount).sum();
            prop_assert!(-plain >= unallocated, "a discount without allocations is an entry of its own");
            let mut by_line = vec![0; amounts.lines.len()];
            for applied in &amounts.applied {
                prop_assert!(applied.amount >= 0);
                if !applied.allocations.is_empty() {
                    prop_assert_eq!(applied.allocations.iter().map(|(_, part)| part).sum::<i64>(), applied.amount);
                }
                for (at, part) in &applied.allocations {
                    by_line[*at] += part;
                }
            }
            for (line, allocated) in amounts.lines.iter().zip(by_line) {
                prop_assert!(line.discount >= 0 && line.price >= 0 && line.total() >= 0);
                prop_assert_eq!(line.discount, allocated);
            }
        }
    }
}
