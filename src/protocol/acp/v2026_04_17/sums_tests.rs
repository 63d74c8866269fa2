use proptest::prelude::*;

use super::*;
use crate::{
    checkout::{
        cart::{CartTotals, Fee},
        session::{Fulfillment, Line},
    },
    protocol::acp::{
        samples,
        v2026_04_17::{Echo, delivery},
    },
};

fn amount(totals: &[Total], r#type: TotalType) -> i64 {
    totals.iter().filter(|total| total.r#type == r#type).map(|total| total.amount).sum()
}

/// The formulas of `acp.md` §4.3 and §4.4.
fn check(session: &Session) -> Result<(), TestCaseError> {
    let delivery = delivery::of(session, &Echo::default());
    let all = totals(session, &delivery, false);
    let get = |r#type| amount(&all, r#type);
    let (mut bases, mut discounts) = (0, 0);
    for line in &session.lines {
        let sums = LineSums::of(&line.shown);
        let own = sums.totals();
        let of = |r#type| amount(&own, r#type);
        prop_assert!(own.iter().all(|total| total.amount >= 0));
        prop_assert_eq!(
            of(TotalType::Subtotal),
            of(TotalType::ItemsBaseAmount) - of(TotalType::ItemsDiscount)
        );
        prop_assert_eq!(of(TotalType::Total), of(TotalType::Subtotal) + of(TotalType::Tax));
        if let Some(unit) = sums.unit(line.quantity) {
            prop_assert_eq!(unit * i64::from(line.quantity), of(TotalType::ItemsBaseAmount));
        }
        bases += of(TotalType::ItemsBaseAmount);
        discounts += of(TotalType::ItemsDiscount);
    }
    prop_assert!(all.iter().all(|total| total.amount >= 0), "{:?}", all);
    prop_assert_eq!(get(TotalType::ItemsBaseAmount), bases);
    prop_assert_eq!(get(TotalType::ItemsDiscount), discounts);
    prop_assert_eq!(get(TotalType::Subtotal), bases - discounts);
    prop_assert_eq!(
        get(TotalType::Total),
        get(TotalType::Subtotal) - get(TotalType::Discount)
            + get(TotalType::Fulfillment)
            + get(TotalType::Tax)
            + get(TotalType::Fee)
    );
    for once in [
        TotalType::ItemsBaseAmount,
        TotalType::Subtotal,
        TotalType::Discount,
        TotalType::Fulfillment,
        TotalType::Total,
    ] {
        prop_assert!(all.iter().filter(|total| total.r#type == once).count() <= 1);
    }
    if let Some(chosen) = delivery.selected.first() {
        let option = delivery.options.iter().find(|option| option.id == chosen.option_id).unwrap();
        prop_assert_eq!(amount(&option.totals, TotalType::Subtotal), get(TotalType::Fulfillment));
        prop_assert_eq!(
            amount(&option.totals, TotalType::Total),
            amount(&option.totals, TotalType::Subtotal) + amount(&option.totals, TotalType::Tax)
        );
    }
    let truth = session.order.as_ref().map(|order| order.total);
    let truth = truth.or(session.cart.as_ref().map(|cart| cart.view.totals.total));
    if let Some(truth) = truth {
        prop_assert_eq!(get(TotalType::Total), truth.max(0));
    }
    Ok(())
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (1_u32..5, -5_i64..10_000, -5_i64..10_000, -5_i64..2_000);
    proptest::collection::vec(line, 0..5).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(number, (quantity, subtotal, total, tax))| {
                samples::line(number, quantity, [subtotal, total, tax])
            })
            .collect()
    })
}

proptest! {
    /// Requirements, D-21, D-23, D-24, D-25.
    #[test]
    fn every_formula_holds_and_the_shop_has_the_last_word(
        lines in lines(),
        fees in proptest::collection::vec(-500_i64..500, 0..3),
        shown in (proptest::option::of(0_i64..2_000), 0_i64..400, -100_i64..4_000, -100_i64..60_000),
        flags in proptest::array::uniform5(any::<bool>()),
    ) {
        let (shipping, shipping_tax, tax, total) = shown;
        let [needs_shipping, addressed, with_cart, ordered, chosen] = flags;
        let mut session = samples::session();
        session.lines = lines;
        let view = &mut session.cart.as_mut().unwrap().view;
        view.totals = CartTotals { shipping, shipping_tax, tax, total };
        view.fees = fees.into_iter().map(|amount| Fee { name: String::new(), amount, tax: 0 }).collect();
        view.needs_shipping = needs_shipping;
        if !addressed {
            session.fulfillment = Fulfillment::default();
        }
        if !chosen {
            session.fulfillment.options.iter_mut().for_each(|option| option.selected = false);
        }
        if !with_cart {
            session.cart = None;
        }
        session.order = ordered.then(samples::order);
        check(&session)?;
    }
}

fn told(session: &Session) -> (i64, i64, i64) {
    let all = totals(session, &delivery::of(session, &Echo::default()), false);
    (amount(&all, TotalType::Tax), amount(&all, TotalType::Fee), amount(&all, TotalType::Discount))
}

#[test]
fn what_rounding_leaves_over_goes_into_the_tax() {
    let mut session = samples::session();
    assert_eq!(told(&session), (608, 0, 0));
    session.cart.as_mut().unwrap().view.totals.total += 1;
    assert_eq!(told(&session), (609, 0, 0));
    session.cart.as_mut().unwrap().view.totals.total -= 3;
    assert_eq!(told(&session), (606, 0, 0));
}

#[test]
fn a_charge_that_is_no_rounding_is_not_called_tax() {
    let mut session = samples::session();
    session.cart.as_mut().unwrap().view.totals.total += 250;
    assert_eq!(told(&session), (608, 250, 0));
    session.cart.as_mut().unwrap().view.totals.total -= 1_000;
    assert_eq!(told(&session), (608, 0, 750));
}

/// Requirements: A-042.
#[test]
fn a_negative_fee_is_a_positive_discount() {
    let mut session = samples::session();
    let view = &mut session.cart.as_mut().unwrap().view;
    view.fees = vec![
        Fee { name: "Packing".into(), amount: 100, tax: 0 },
        Fee { name: "Loyal".into(), amount: -40, tax: 0 },
    ];
    view.totals.total += 60;
    assert_eq!(told(&session), (608, 100, 40));
}

#[test]
fn the_unit_price_shows_only_where_it_divides() {
    let session = samples::session();
    let units: Vec<_> =
        session.lines.iter().map(|line| LineSums::of(&line.shown).unit(line.quantity)).collect();
    assert_eq!(units, [Some(1_000), None]);
}
