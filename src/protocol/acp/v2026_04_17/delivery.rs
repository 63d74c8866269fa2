//! What can be chosen to bring the goods to the buyer, what is chosen, and what it costs (`acp.md` §4.5, D-26,
//! D-28, D-29).

use super::{
    DIGITAL_OPTION, Echo,
    wire::{FulfillmentOption, FulfillmentType, SelectedOption, Total, TotalType},
};
use crate::checkout::{
    cart::Minor,
    session::{Session, ShippingOption},
};

/// The delivery of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    /// What can be chosen.
    pub(super) options: Vec<FulfillmentOption>,
    /// What is chosen.
    pub(super) selected: Vec<SelectedOption>,
    /// What the session's total holds for it, net; `None` while the shop has not worked it out.
    pub(super) charge: Option<Minor>,
    /// Its tax.
    pub(super) tax: Minor,
}

/// The delivery of a session. Options show as soon as an address is known.
pub(super) fn of(session: &Session, echo: &Echo) -> Delivery {
    let view = session.cart.as_ref().map(|cart| &cart.view);
    if view.is_some_and(|view| !view.needs_shipping) && !session.lines.is_empty() {
        return Delivery {
            options: vec![digital()],
            selected: vec![SelectedOption {
                r#type: FulfillmentType::Digital,
                option_id: DIGITAL_OPTION.to_owned(),
                item_ids: item_ids(session, echo),
            }],
            charge: Some(0),
            tax: 0,
        };
    }
    if session.fulfillment.destination().is_some() && !session.lines.is_empty() {
        let options = &session.fulfillment.options;
        let selected = session.fulfillment.selected_option();
        return Delivery {
            options: options.iter().map(shown).collect(),
            selected: selected
                .map(|option| SelectedOption {
                    r#type: FulfillmentType::Shipping,
                    option_id: option.id.clone(),
                    item_ids: item_ids(session, echo),
                })
                .into_iter()
                .collect(),
            charge: selected.map(|option| option.price.max(0)),
            tax: selected.map_or(0, |option| option.tax.max(0)),
        };
    }
    // The shop prices its own town until it knows the buyer's; that is in its total, so it shows.
    Delivery {
        options: Vec::new(),
        selected: Vec::new(),
        charge: view.and_then(|view| view.totals.shipping).map(|charge| charge.max(0)),
        tax: view.map_or(0, |view| view.totals.shipping_tax.max(0)),
    }
}

/// The items named with the choice while they are all in the session; else every line.
fn item_ids(session: &Session, echo: &Echo) -> Vec<String> {
    let in_session =
        |id: &String| session.lines.iter().any(|line| line.id.as_str() == id || line.item == *id);
    match &echo.item_ids {
        Some(ids) if !ids.is_empty() && ids.iter().all(in_session) => ids.clone(),
        Some(_) | None => {
            session.shipped_lines().into_iter().map(|line| line.id.as_str().to_owned()).collect()
        }
    }
}

fn digital() -> FulfillmentOption {
    FulfillmentOption {
        r#type: FulfillmentType::Digital,
        id: DIGITAL_OPTION.to_owned(),
        title: "Digital delivery".to_owned(),
        description: String::new(),
        totals: costs("Delivery", 0, 0),
    }
}

/// A pickup option would have to name a place, which the shop does not tell: it shows as shipping.
fn shown(option: &ShippingOption) -> FulfillmentOption {
    FulfillmentOption {
        r#type: FulfillmentType::Shipping,
        id: option.id.clone(),
        title: option.title.clone(),
        description: option.description.clone(),
        totals: costs("Shipping", option.price.max(0), option.tax.max(0)),
    }
}

fn costs(name: &str, net: Minor, tax: Minor) -> Vec<Total> {
    vec![
        Total::new(TotalType::Subtotal, name, net),
        Total::new(TotalType::Tax, "Tax", tax),
        Total::new(TotalType::Total, "Total", net + tax),
    ]
}
