//! From a session to what the shop's cart shall hold. Pure.

use super::{
    cart::{CartPlan, Customer, PlannedLine},
    service::StandIns,
    session::{Address, Buyer, Line, Session},
};

/// Why a plan is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// To show prices.
    Show,
    /// To place the order; with the bill's address when the caller named one.
    Complete(Option<&'a Address>),
}

/// The plan of a session.
pub(super) fn plan(session: &Session, purpose: Purpose<'_>, stand_ins: Option<&StandIns>) -> CartPlan {
    let needs_shipping = session.cart.as_ref().is_none_or(|cart| cart.view.needs_shipping);
    let chosen = session.fulfillment.chosen_option.as_deref();
    let rates = session
        .fulfillment
        .options
        .iter()
        .find(|option| Some(option.id.as_str()) == chosen)
        .map(|option| option.rates.clone())
        .unwrap_or_default();
    CartPlan {
        lines: merged(&session.lines),
        codes: session.codes.clone(),
        customer: customer(session, purpose, stand_ins, needs_shipping),
        rates,
    }
}

/// One entry a product, in the order of first mention.
fn merged(lines: &[Line]) -> Vec<PlannedLine> {
    let mut merged: Vec<PlannedLine> = Vec::new();
    for line in lines {
        match merged.iter_mut().find(|planned| planned.product == line.product) {
            Some(planned) => planned.quantity = planned.quantity.saturating_add(line.quantity),
            None => merged.push(PlannedLine { product: line.product.clone(), quantity: line.quantity }),
        }
    }
    merged
}

fn customer(
    session: &Session,
    purpose: Purpose<'_>,
    stand_ins: Option<&StandIns>,
    needs_shipping: bool,
) -> Option<Customer> {
    let (completing, billing) = match purpose {
        Purpose::Show => (false, None),
        Purpose::Complete(billing) => (true, billing),
    };
    let buyer = session.buyer.clone().unwrap_or_default();
    let complete = |address: &Address| stood_in(named(address.clone(), &buyer), stand_ins);
    let destination = session.fulfillment.destination().map(|destination| complete(&destination.address));
    // Development rules only, and only to place the order: where nobody named an address, a stand-in is used.
    let stand_in = stand_ins.filter(|_| completing).map(|stand_ins| complete(&stand_ins.address));
    let destination = destination.or_else(|| stand_in.clone().filter(|_| needs_shipping));
    let billing = billing.map(&complete).or_else(|| destination.clone()).or(stand_in)?;
    let email =
        session.email().map(str::to_owned).or_else(|| stand_ins.map(|stand_ins| stand_ins.email.clone()));
    Some(Customer { shipping: if needs_shipping { destination } else { None }, billing, email })
}

/// The buyer's name and phone number fill what an address leaves out.
fn named(mut address: Address, buyer: &Buyer) -> Address {
    for (part, value) in [
        (&mut address.first_name, &buyer.first_name),
        (&mut address.last_name, &buyer.last_name),
        (&mut address.phone, &buyer.phone),
    ] {
        if let (true, Some(value)) = (part.is_empty(), value) {
            part.clone_from(value);
        }
    }
    address
}

/// Development rules only: the configured address fills what is still missing; its region and postcode
/// only in its own country.
fn stood_in(mut address: Address, stand_ins: Option<&StandIns>) -> Address {
    let Some(StandIns { address: stand_in, .. }) = stand_ins else { return address };
    if address.country.is_empty() {
        address.country.clone_from(&stand_in.country);
    }
    let at_home = address.country == stand_in.country;
    for (part, value, anywhere) in [
        (&mut address.first_name, &stand_in.first_name, true),
        (&mut address.last_name, &stand_in.last_name, true),
        (&mut address.line_one, &stand_in.line_one, true),
        (&mut address.city, &stand_in.city, true),
        (&mut address.region, &stand_in.region, at_home),
        (&mut address.postal_code, &stand_in.postal_code, at_home),
    ] {
        if part.is_empty() && anywhere {
            part.clone_from(value);
        }
    }
    address
}
