//! From what the shop says to what the session shows: lines, options, problems, status. Pure.

use std::collections::HashSet;

use super::{
    cart::{AddressField, CartLine, CartView, ItemReason, Minor, Package, RateChoice, Refusal},
    problem::{Kind, Place, Problem, Weight},
    service::{PaymentHandler, Settings},
    session::{Line, Session, ShippingOption, ShownLine, Status},
};
use crate::money::Money;

/// The most combinations of rates that are offered when a cart ships in several packages.
const MOST_COMBINATIONS: usize = 24;

/// What of an earlier state still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// The cart was brought to a plan: its refusals say all.
    Changed,
    /// The cart was only read: refusals told earlier still stand.
    Read,
}

/// Shows a cart: lines, option table and problems follow it. Lines that the shop does not hold leave the
/// session, and a problem tells of them. Call [`settle_status`] afterwards.
pub(super) fn show(session: &mut Session, view: &CartView, basis: Basis) {
    let mut problems = match basis {
        Basis::Changed => Vec::new(),
        Basis::Read => told_earlier(session),
    };
    show_lines(session, view, &mut problems);
    session.fulfillment.options = options(&view.packages);
    show_codes(session, view, basis, &mut problems);
    for refusal in &view.refusals {
        if let Refusal::Address { field } = refusal {
            let told = Problem::new(Kind::AddressInvalid(*field), Place::Destination);
            if problems.iter().all(|other| other.kind != told.kind) {
                problems.push(told);
            }
        }
    }
    if !view.warnings.is_empty() {
        problems.push(Problem::new(Kind::CartRefused, Place::Session));
    }
    session.problems = problems;
}

/// What a read cannot tell again.
fn told_earlier(session: &Session) -> Vec<Problem> {
    session
        .problems
        .iter()
        .filter(|problem| {
            matches!(
                problem.kind,
                Kind::Item { .. }
                    | Kind::QuantityAdjusted { .. }
                    | Kind::AddressInvalid(_)
                    | Kind::ClaimNotAccepted { .. }
            )
        })
        .cloned()
        .collect()
}

fn show_lines(session: &mut Session, view: &CartView, problems: &mut Vec<Problem>) {
    let mut kept: Vec<Line> = Vec::with_capacity(session.lines.len());
    let mut gone = Vec::new();
    for (index, line) in std::mem::take(&mut session.lines).into_iter().enumerate() {
        if view.lines.iter().any(|cart| cart.product == line.product) {
            kept.push(line);
        } else {
            gone.push((index, line));
        }
    }
    for (index, line) in gone {
        let reason = refused(view, &line).unwrap_or(ItemReason::SoldOut);
        problems.push(Problem::new(Kind::Item { item: line.item, reason }, Place::RequestLine(index)));
    }
    for cart in by_product(&view.lines) {
        share(&mut kept, &cart, view, problems);
    }
    kept.retain(|line| line.quantity > 0);
    session.lines = kept;
}

fn refused(view: &CartView, line: &Line) -> Option<ItemReason> {
    view.refusals.iter().find_map(|refusal| match refusal {
        Refusal::Item { product, reason } if *product == line.product => Some(*reason),
        Refusal::Item { .. } | Refusal::Code { .. } | Refusal::Address { .. } | Refusal::Rate { .. } => None,
    })
}

/// The shop's lines with those of one product added up: plugins may split a product over several lines.
fn by_product(lines: &[CartLine]) -> Vec<CartLine> {
    let mut merged: Vec<CartLine> = Vec::with_capacity(lines.len());
    for line in lines {
        match merged.iter_mut().find(|other| other.product == line.product) {
            Some(other) => {
                other.quantity = other.quantity.saturating_add(line.quantity);
                other.subtotal += line.subtotal;
                other.subtotal_tax += line.subtotal_tax;
                other.total += line.total;
                other.total_tax += line.total_tax;
            }
            None => merged.push(line.clone()),
        }
    }
    merged
}

/// Splits one shop line over the session lines of that product, by quantity. When the shop holds fewer than
/// asked for, the last lines give way; when it holds more, the first takes the surplus.
fn share(lines: &mut [Line], cart: &CartLine, view: &CartView, problems: &mut Vec<Problem>) {
    let indexes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.product == cart.product)
        .map(|(index, _)| index)
        .collect();
    if indexes.is_empty() {
        // A line that nobody asked for (a gift of the shop's): it counts in the totals only.
        return;
    }
    let asked: u32 = indexes.iter().filter_map(|index| lines.get(*index)).map(|line| line.quantity).sum();
    if asked != cart.quantity {
        adjust(lines, &indexes, asked, cart, view, problems);
    }
    let weights: Vec<u64> =
        indexes.iter().filter_map(|index| lines.get(*index)).map(|line| u64::from(line.quantity)).collect();
    let split = |amount: Minor| -> Vec<Minor> {
        Money::new(amount, view.currency).split(&weights).into_iter().map(Money::minor).collect()
    };
    let amounts = [split(cart.subtotal), split(cart.subtotal_tax), split(cart.total), split(cart.total_tax)];
    for (position, index) in indexes.into_iter().enumerate() {
        let Some(line) = lines.get_mut(index) else { continue };
        let [subtotal, subtotal_tax, total, total_tax] =
            amounts.each_ref().map(|parts| parts.get(position).copied().unwrap_or_default());
        line.shown = ShownLine {
            title: cart.title.clone(),
            sku: cart.sku.clone(),
            image_url: cart.image_url.clone(),
            unit_price: cart.unit_price,
            subtotal,
            subtotal_tax,
            total,
            total_tax,
            maximum: Some(cart.limits.maximum),
            left: cart.left,
        };
    }
}

fn adjust(
    lines: &mut [Line],
    indexes: &[usize],
    asked: u32,
    cart: &CartLine,
    view: &CartView,
    problems: &mut Vec<Problem>,
) {
    let mut missing = asked.saturating_sub(cart.quantity);
    let surplus = cart.quantity.saturating_sub(asked);
    let mut touched = None;
    for index in indexes.iter().rev() {
        let Some(line) = lines.get_mut(*index) else { continue };
        let less = missing.min(line.quantity);
        if less > 0 {
            line.quantity -= less;
            missing -= less;
            touched = Some(line.clone());
        }
    }
    if let Some(line) = indexes.first().and_then(|index| lines.get_mut(*index))
        && surplus > 0
    {
        line.quantity = line.quantity.saturating_add(surplus);
        touched = Some(line.clone());
    }
    let Some(line) = touched else { return };
    let item = line.item.clone();
    let over = asked > cart.limits.maximum;
    let kind = match refused(view, &line) {
        Some(ItemReason::Quantity) if over => {
            Kind::Item { item, reason: ItemReason::FewerLeft(Some(cart.limits.maximum)) }
        }
        Some(reason) => Kind::Item { item, reason },
        None if cart.quantity >= cart.limits.maximum && asked > cart.quantity => {
            Kind::Item { item, reason: ItemReason::FewerLeft(Some(cart.quantity)) }
        }
        None => Kind::QuantityAdjusted { item },
    };
    problems.push(Problem::new(kind, Place::Line(line.id)));
}

fn show_codes(session: &Session, view: &CartView, basis: Basis, problems: &mut Vec<Problem>) {
    for (index, code) in session.codes.iter().enumerate() {
        if view.coupons.iter().any(|coupon| coupon.code.to_lowercase() == code.to_lowercase()) {
            continue;
        }
        let told = view.refusals.iter().find_map(|refusal| match refusal {
            Refusal::Code { code: refused, reason } if refused.to_lowercase() == code.to_lowercase() => {
                Some(*reason)
            }
            Refusal::Code { .. } | Refusal::Item { .. } | Refusal::Address { .. } | Refusal::Rate { .. } => {
                None
            }
        });
        let earlier = session.problems.iter().find(|problem| match &problem.kind {
            Kind::CodeRefused { code: refused, .. } | Kind::CodeDropped { code: refused } => refused == code,
            _ => false,
        });
        let kind = match (told, earlier, basis) {
            (Some(reason), _, _) => Kind::CodeRefused { code: code.clone(), reason },
            (None, Some(earlier), Basis::Read) => earlier.kind.clone(),
            (None, _, Basis::Read | Basis::Changed) => Kind::CodeDropped { code: code.clone() },
        };
        problems.push(Problem::new(kind, Place::Code(index)));
    }
}

/// The options on offer: the rates of the one package, or combinations of the packages' rates.
fn options(packages: &[Package]) -> Vec<ShippingOption> {
    if packages.iter().any(|package| package.rates.is_empty()) {
        return Vec::new();
    }
    let mut combined: Vec<ShippingOption> = Vec::new();
    for package in packages {
        let own = package.rates.iter().map(|rate| ShippingOption {
            id: if packages.len() == 1 { rate.id.clone() } else { format!("{}/{}", package.id, rate.id) },
            title: rate.title.clone(),
            description: rate.description.clone(),
            price: rate.price,
            tax: rate.tax,
            pickup: rate.pickup,
            selected: rate.selected,
            rates: vec![RateChoice { package: package.id.clone(), rate: rate.id.clone() }],
        });
        combined = if combined.is_empty() {
            own.collect()
        } else {
            let own: Vec<_> = own.collect();
            combined.iter().flat_map(|left| own.iter().map(move |right| joined(left, right))).collect()
        };
        if packages.len() > 1 && combined.len() > MOST_COMBINATIONS {
            // Cut after each package, or the combinations would grow without bound. What is in effect must
            // stay on offer; the cheapest others fill the list.
            combined.sort_by_key(|option| (!option.selected, option.price + option.tax));
            combined.truncate(MOST_COMBINATIONS);
        }
    }
    distinct(combined)
}

fn joined(left: &ShippingOption, right: &ShippingOption) -> ShippingOption {
    let both = |left: &str, right: &str, between: &str| match (left.is_empty(), right.is_empty()) {
        (_, true) => left.to_owned(),
        (true, false) => right.to_owned(),
        (false, false) if left == right => left.to_owned(),
        (false, false) => format!("{left}{between}{right}"),
    };
    ShippingOption {
        id: format!("{}+{}", left.id, right.id),
        title: both(&left.title, &right.title, " + "),
        description: both(&left.description, &right.description, "; "),
        price: left.price + right.price,
        tax: left.tax + right.tax,
        pickup: left.pickup && right.pickup,
        selected: left.selected && right.selected,
        rates: left.rates.iter().chain(&right.rates).cloned().collect(),
    }
}

/// A title sets an option apart from its siblings: equal ones carry their id.
fn distinct(mut options: Vec<ShippingOption>) -> Vec<ShippingOption> {
    let mut seen = HashSet::new();
    let doubled: HashSet<String> = options
        .iter()
        .filter(|option| !seen.insert(option.title.clone()))
        .map(|option| option.title.clone())
        .collect();
    for option in &mut options {
        if doubled.contains(&option.title) {
            option.title = format!("{} ({})", option.title, option.id);
        }
    }
    options
}

/// Adds what is missing for an order, and says where the session stands. A session that has ended, or whose
/// order may be in the making, is left alone.
pub(super) fn settle_status(session: &mut Session, settings: &Settings) {
    if session.status.is_final() || session.status == Status::Placing {
        return;
    }
    session.problems.retain(|problem| !is_about_readiness(&problem.kind));
    let missing = missing(session, settings);
    session.problems.extend(missing);
    session.status =
        if session.problems.iter().any(|problem| problem.kind.blocks() && problem.weight() == Weight::Caller)
        {
            Status::Incomplete
        } else if session.problems.iter().any(|problem| problem.weight() == Weight::Buyer) {
            Status::Escalated
        } else {
            Status::Ready
        };
}

/// What [`missing`] may find: told anew each time.
fn is_about_readiness(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::NoLines
            | Kind::MissingEmail
            | Kind::MissingAddress
            | Kind::MissingAddressPart(_)
            | Kind::Estimate
            | Kind::Undeliverable
            | Kind::OptionUnavailable { .. }
            | Kind::NoPaymentMethod
    )
}

fn missing(session: &Session, settings: &Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |kind, place| problems.push(Problem::new(kind, place));
    let Some(cart) = session.cart.as_ref().filter(|_| !session.lines.is_empty()) else {
        add(Kind::NoLines, Place::Lines);
        return problems;
    };
    if session.email().is_none() && settings.stand_ins.is_none() {
        add(Kind::MissingEmail, Place::Email);
    }
    if session.fulfillment.destination().is_none() {
        // The shop prices its own town until it knows better, also for what is not shipped.
        add(Kind::Estimate, Place::Session);
    }
    if cart.view.needs_shipping {
        match session.fulfillment.destination() {
            None => add(Kind::MissingAddress, Place::Destination),
            // Which other parts an address needs is for each country's rules in the shop to say.
            Some(to) if to.address.country.is_empty() && settings.stand_ins.is_none() => {
                add(Kind::MissingAddressPart(AddressField::Country), Place::Destination);
            }
            Some(_) if session.fulfillment.options.is_empty() => add(Kind::Undeliverable, Place::Destination),
            Some(_) => {}
        }
        let chosen = session.fulfillment.chosen_option.as_deref();
        if let Some(option) = chosen
            && !session.fulfillment.options.is_empty()
            && session.fulfillment.options.iter().all(|offered| offered.id != option)
        {
            add(Kind::OptionUnavailable { option: option.to_owned() }, Place::Option);
        }
    }
    if cart.view.needs_payment && !settings.handlers.iter().any(|handler| offered(handler, &cart.view)) {
        add(Kind::NoPaymentMethod, Place::Payment);
    }
    problems
}

/// Whether the shop takes a handler's payment method for the cart.
pub(super) fn offered(handler: &PaymentHandler, view: &CartView) -> bool {
    handler.always || view.payment_methods.contains(&handler.method)
}

/// What moved between two looks at a cart: the reasons why nothing is ordered.
pub(super) fn differences(session: &Session, shown: &CartView, now: &CartView) -> Vec<Problem> {
    let mut problems = Vec::new();
    let line =
        |view: &CartView| -> Vec<_> { view.lines.iter().map(|l| (l.product.clone(), l.quantity)).collect() };
    let coupons =
        |view: &CartView| -> HashSet<String> { view.coupons.iter().map(|c| c.code.to_lowercase()).collect() };
    let rates = |view: &CartView| -> Vec<_> {
        view.packages
            .iter()
            .flat_map(|package| {
                package
                    .rates
                    .iter()
                    .filter(|rate| rate.selected)
                    .map(|rate| (package.id.clone(), rate.id.clone()))
            })
            .collect()
    };
    if line(shown) != line(now) {
        for (index, wanted) in session.lines.iter().enumerate() {
            let before = shown.lines.iter().find(|l| l.product == wanted.product).map(|l| l.quantity);
            let after = now.lines.iter().find(|l| l.product == wanted.product).map(|l| l.quantity);
            let item = wanted.item.clone();
            match (before, after) {
                (before, after) if before == after => {}
                (_, None) => problems.push(Problem::new(
                    Kind::Item { item, reason: refused(now, wanted).unwrap_or(ItemReason::SoldOut) },
                    Place::RequestLine(index),
                )),
                (Some(before), Some(after)) if after < before => problems.push(Problem::new(
                    Kind::Item { item, reason: ItemReason::FewerLeft(Some(after)) },
                    Place::Line(wanted.id.clone()),
                )),
                (_, Some(_)) => {
                    problems
                        .push(Problem::new(Kind::QuantityAdjusted { item }, Place::Line(wanted.id.clone())));
                }
            }
        }
    }
    for (index, code) in session.codes.iter().enumerate() {
        let key = code.to_lowercase();
        if coupons(shown).contains(&key) && !coupons(now).contains(&key) {
            problems.push(Problem::new(Kind::CodeDropped { code: code.clone() }, Place::Code(index)));
        }
    }
    if rates(shown) != rates(now) {
        problems.push(Problem::new(Kind::OptionChanged, Place::Option));
    }
    if shown.totals.total != now.totals.total || shown.currency != now.currency {
        problems.push(Problem::new(Kind::PriceChanged, Place::Session));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::cart::Rate;

    /// Requirements: U-104, D-29.
    #[test]
    fn many_packages_offer_a_bounded_choice_that_holds_what_is_in_effect() {
        let rate = |id: i64| Rate {
            id: format!("flat:{id}"),
            title: format!("Way {id}"),
            description: String::new(),
            price: 100 * id,
            tax: 0,
            pickup: false,
            selected: id == 4,
        };
        let package = |id: usize| Package {
            id: id.to_string(),
            name: String::new(),
            line_keys: Vec::new(),
            rates: (0..5).map(rate).collect(),
        };
        let packages: Vec<Package> = (0..10).map(package).collect();
        let offered = options(&packages);
        assert_eq!(offered.len(), MOST_COMBINATIONS);
        let selected: Vec<_> = offered.iter().filter(|option| option.selected).collect();
        assert_eq!(selected.len(), 1);
        assert_eq!((selected[0].price, selected[0].rates.len()), (4000, 10));
    }
}
