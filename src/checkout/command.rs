//! What a caller asks for, parsed and checked for form by a protocol.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    ids::LineId,
    session::{Address, Buyer, Destination, Fulfillment},
};

/// An item and how many of it, as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLine {
    /// The line meant, when the caller names one.
    pub id: Option<LineId>,
    /// The item id as sent.
    pub item: String,
    /// How many: 1 to 9 999.
    pub quantity: u32,
    /// The line it belongs to.
    pub parent: Option<LineId>,
}

/// What an absent, a null and a given member mean to a partial change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// Absent: as it was.
    #[default]
    Keep,
    /// Null: cleared.
    Clear,
    /// Given.
    Set(T),
}

impl<T> Patch<T> {
    /// The value after the change.
    pub fn apply(self, old: Option<T>) -> Option<T> {
        match self {
            Self::Keep => old,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// A full replacement: absent and null both clear.
    #[must_use]
    pub fn replace(value: Option<T>) -> Self {
        value.map_or(Self::Clear, Self::Set)
    }
}

/// What a create or an update wants. UCP replaces (every part is `Set` or `Clear`), ACP patches.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The lines.
    pub lines: Patch<Vec<WantedLine>>,
    /// The buyer as a whole.
    pub buyer: Patch<Buyer>,
    /// Parts of the buyer; they fall on what is left after [`Change::buyer`].
    pub buyer_parts: BuyerPatch,
    /// The destinations on offer and the chosen one.
    pub destinations: Patch<Destinations>,
    /// Parts of the delivery, for callers that know one destination only.
    pub delivery: DeliveryPatch,
    /// The option wanted.
    pub option: Patch<String>,
    /// Coupon codes.
    pub codes: Patch<Vec<String>>,
    /// The note to the merchant.
    pub note: Patch<String>,
    /// Claims that nobody here accepts, by their number in the list that was sent.
    pub claims: Vec<usize>,
    /// What the protocol must echo.
    pub echo: Option<(String, Value)>,
    /// Whether [`Change::echo`] falls on what is stored (JSON merge patch, RFC 7396) or replaces it.
    pub echo_merges: bool,
    /// The option id by which the protocol shows that nothing has to be shipped. Asking for it is right
    /// then, and counts as no choice; otherwise it is an option like any other that is not on offer.
    pub nothing_ships_option: Option<String>,
    /// What to do about an item that the shop does not know.
    pub unknown_items: UnknownItems,
    /// What to do about an option that is not on offer.
    pub unknown_option: UnknownOption,
    /// Whether a session without a single line may be made.
    pub may_be_empty: bool,
}

impl Change {
    /// Brings what a protocol must echo up to date.
    pub fn keep_echo(&mut self, echoes: &mut BTreeMap<String, Value>) {
        let Some((protocol, new)) = self.echo.take() else { return };
        if self.echo_merges {
            merge(echoes.entry(protocol).or_insert(Value::Null), new);
        } else {
            echoes.insert(protocol, new);
        }
    }
}

fn merge(old: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *old = patch;
        return;
    };
    if !old.is_object() {
        *old = Value::Object(serde_json::Map::new());
    }
    if let Some(map) = old.as_object_mut() {
        for (name, value) in members {
            if value.is_null() {
                map.remove(&name);
            } else {
                merge(map.entry(name).or_insert(Value::Null), value);
            }
        }
    }
}

/// A change of the buyer, part by part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuyerPatch {
    /// Given name.
    pub first_name: Patch<String>,
    /// Family name.
    pub last_name: Patch<String>,
    /// E-mail address.
    pub email: Patch<String>,
    /// Phone number.
    pub phone: Patch<String>,
}

impl BuyerPatch {
    /// The buyer after the change; nobody stays nobody when no part is given.
    #[must_use]
    pub fn apply(self, old: Option<Buyer>) -> Option<Buyer> {
        if self == Self::default() {
            return old;
        }
        let old = old.unwrap_or_default();
        Some(Buyer {
            first_name: self.first_name.apply(old.first_name),
            last_name: self.last_name.apply(old.last_name),
            email: self.email.apply(old.email),
            phone: self.phone.apply(old.phone),
            consent: old.consent,
        })
    }
}

/// A change of the one destination and of the person there. The address is one piece: it is replaced or
/// cleared as a whole, and its phone number is the person's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryPatch {
    /// Who receives it, beside the name in the address.
    pub name: Patch<String>,
    /// The phone number there.
    pub phone: Patch<String>,
    /// The e-mail address there.
    pub email: Patch<String>,
    /// The address.
    pub address: Patch<Address>,
}

impl DeliveryPatch {
    /// The id of the destination that it makes.
    pub const DESTINATION: &str = "address";

    /// Applies the change. Without one, the destinations stay as they are.
    pub fn apply(self, fulfillment: &mut Fulfillment) {
        if self == Self::default() {
            return;
        }
        let contact = &mut fulfillment.contact;
        contact.name = self.name.apply(contact.name.take());
        contact.phone = self.phone.apply(contact.phone.take());
        contact.email = self.email.apply(contact.email.take());
        match self.address {
            Patch::Keep => {}
            Patch::Clear => {
                fulfillment.destinations.clear();
                fulfillment.selected_destination = None;
            }
            Patch::Set(address) => {
                let id = Self::DESTINATION.to_owned();
                fulfillment.destinations = vec![Destination { id: id.clone(), address }];
                fulfillment.selected_destination = Some(id);
            }
        }
        if let [destination] = fulfillment.destinations.as_mut_slice() {
            destination.address.phone = fulfillment.contact.phone.clone().unwrap_or_default();
        }
    }
}

/// Addresses and the choice among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destinations {
    /// The addresses.
    pub list: Vec<Destination>,
    /// The id of the chosen one; `None` takes the only one.
    pub selected: Option<String>,
}

/// What to do about an item that the shop does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownItems {
    /// Leave it out and say so.
    #[default]
    LeaveOut,
    /// Refuse the whole request; nothing changes.
    Refuse,
}

/// What to do about an option that is not on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownOption {
    /// Keep the shop's choice and say so.
    #[default]
    Report,
    /// Refuse the whole request; nothing changes.
    Refuse,
}

/// How the caller pays. Passes through memory only: no `Serialize`, no value in `Debug`.
#[derive(Clone)]
pub struct Instrument {
    /// The configured handler it was made for.
    pub handler: String,
    /// Its type (`card`, …).
    pub kind: String,
    /// The credential as sent.
    pub credential: Value,
    /// The bill's address, when it came along.
    pub billing: Option<Address>,
}

impl std::fmt::Debug for Instrument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instrument")
            .field("handler", &self.handler)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// What a completion brings.
#[derive(Debug, Clone, Default)]
pub struct Completion {
    /// The instrument to charge; `None` for an order without a price.
    pub instrument: Option<Instrument>,
    /// A buyer that comes with the completion (ACP).
    pub buyer: Patch<Buyer>,
    /// Parts of the buyer; they fall on what is left after [`Completion::buyer`].
    pub buyer_parts: BuyerPatch,
    /// A note that comes with the completion (ACP).
    pub note: Patch<String>,
    /// What to do about a handler that is not offered.
    pub unknown_handler: UnknownOption,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_the_buyer_fall_on_what_is_there() {
        let first = BuyerPatch { email: Patch::Set("a@b.c".into()), ..BuyerPatch::default() };
        let buyer = first.apply(None);
        let then = BuyerPatch {
            first_name: Patch::Set("Ada".into()),
            email: Patch::Keep,
            phone: Patch::Clear,
            ..BuyerPatch::default()
        };
        let buyer = then.apply(buyer).unwrap();
        assert_eq!(buyer.email.as_deref(), Some("a@b.c"));
        assert_eq!(buyer.first_name.as_deref(), Some("Ada"));
        assert_eq!(BuyerPatch::default().apply(None), None);
    }

    #[test]
    fn a_phone_number_reaches_an_address_that_comes_later() {
        let mut fulfillment = Fulfillment::default();
        DeliveryPatch { phone: Patch::Set("1".into()), ..DeliveryPatch::default() }.apply(&mut fulfillment);
        assert_eq!(fulfillment.destination(), None);
        let address = Address { city: "Ulm".into(), ..Address::default() };
        DeliveryPatch { address: Patch::Set(address), ..DeliveryPatch::default() }.apply(&mut fulfillment);
        assert_eq!(fulfillment.destination().unwrap().address.phone, "1");
        DeliveryPatch { address: Patch::Clear, ..DeliveryPatch::default() }.apply(&mut fulfillment);
        assert_eq!(fulfillment.destination(), None);
    }

    #[test]
    fn echoes_are_replaced_or_merged() {
        let mut echoes = BTreeMap::new();
        let echo = |value| Some(("p".to_owned(), value));
        let mut change = Change { echo: echo(json!({"a": {"x": 1}, "b": 2})), ..Change::default() };
        change.keep_echo(&mut echoes);
        let patch = echo(json!({"a": {"y": 3}, "b": null}));
        Change { echo: patch, echo_merges: true, ..Change::default() }.keep_echo(&mut echoes);
        assert_eq!(echoes["p"], json!({"a": {"x": 1, "y": 3}}));
        Change::default().keep_echo(&mut echoes);
        assert_eq!(echoes["p"], json!({"a": {"x": 1, "y": 3}}));
    }
}
