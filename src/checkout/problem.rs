//! Problems: what stands in the way of an order, and what the caller should know.
//!
//! A problem is a result, not an error: the session lives on with it. Protocols render it with constant
//! texts (two equal requests give equal answers) and their own codes.

use serde::{Deserialize, Serialize};

use super::{
    cart::{AddressField, CodeReason, ItemReason},
    ids::LineId,
};
use crate::stock::Shortage;

/// A problem and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub place: Place,
}

impl Problem {
    /// A problem of that kind at that place.
    #[must_use]
    pub const fn new(kind: Kind, place: Place) -> Self {
        Self { kind, place }
    }

    /// Who has to act before an order can be placed.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        self.kind.weight()
    }
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The caller, by changing its input.
    Caller,
    /// The buyer, at the shop.
    Buyer,
    /// Nobody, but the caller should show it.
    Warning,
    /// Nobody.
    Info,
}

/// What a problem is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// No line is left that can be bought.
    NoLines,
    /// An item was refused; it is not in the session, or in another number.
    Item {
        /// The item as the caller sent it.
        item: String,
        /// Why.
        reason: ItemReason,
    },
    /// Too little of an item is left, or free; the shop was not asked for it. Asking again later may help.
    Short {
        /// The item as the caller sent it.
        item: String,
        /// Why.
        reason: Shortage,
    },
    /// The shop changed the quantity by its own rules; the line shows the new one.
    QuantityAdjusted {
        /// The item as the caller sent it.
        item: String,
    },
    /// The buyer's e-mail address is missing.
    MissingEmail,
    /// The address is missing.
    MissingAddress,
    /// A part of the address is missing without which nobody can deliver.
    MissingAddressPart(AddressField),
    /// The shop does not take the address.
    AddressInvalid(Option<AddressField>),
    /// Nothing ships there.
    Undeliverable,
    /// The chosen option is not on offer; another is in effect.
    OptionUnavailable {
        /// The option asked for.
        option: String,
    },
    /// A coupon was refused.
    CodeRefused {
        /// As the caller spelled it.
        code: String,
        /// Why.
        reason: CodeReason,
    },
    /// A coupon that was in effect is not any more.
    CodeDropped {
        /// As the caller spelled it.
        code: String,
    },
    /// A price moved since the caller last saw it. The new one is shown; nothing was ordered.
    PriceChanged,
    /// The chosen option moved since the caller last saw it. Nothing was ordered.
    OptionChanged,
    /// Totals are an estimate until the buyer's address is known.
    Estimate,
    /// The payment was declined.
    PaymentDeclined,
    /// The payment instrument is missing or its handler is not offered here.
    InstrumentUnusable,
    /// The shop has no payment method for this cart that can be charged by API.
    NoPaymentMethod,
    /// The buyer's bank wants to see the buyer.
    ChallengeNeeded,
    /// The order stands in the shop and waits for its payment there.
    PaymentAtShop,
    /// An order may be in the making; nothing was changed.
    InProgress,
    /// Nobody here can tell whether there is an order: the merchant is asked. Nothing may be bought again.
    OrderUnconfirmed,
    /// An order of this session that was left unpaid may be what keeps the item or the code from it.
    OwnOrderHolds,
    /// The shop's order differs from what was agreed (lines or total).
    OrderDiffers,
    /// The session ran out of time.
    Expired,
    /// A claim of the buyer's (membership and the like) is not accepted here.
    ClaimNotAccepted {
        /// Its number in the list that was sent.
        index: usize,
    },
    /// The shop refused the order by a rule of its own.
    ShopRefused,
    /// The shop would refuse this cart by a rule of its own.
    CartRefused,
}

impl Kind {
    /// Who has to act.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        match self {
            Self::NoLines
            | Self::Item { .. }
            | Self::Short { .. }
            | Self::MissingEmail
            | Self::MissingAddress
            | Self::MissingAddressPart(_)
            | Self::AddressInvalid(_)
            | Self::Undeliverable
            | Self::OptionUnavailable { .. }
            | Self::PaymentDeclined
            | Self::InstrumentUnusable
            | Self::InProgress
            | Self::ShopRefused
            | Self::CartRefused => Weight::Caller,
            Self::NoPaymentMethod | Self::ChallengeNeeded | Self::PaymentAtShop => Weight::Buyer,
            Self::QuantityAdjusted { .. }
            | Self::CodeRefused { .. }
            | Self::CodeDropped { .. }
            | Self::PriceChanged
            | Self::OptionChanged
            | Self::OrderUnconfirmed
            | Self::OwnOrderHolds
            | Self::OrderDiffers
            | Self::ClaimNotAccepted { .. } => Weight::Warning,
            Self::Estimate | Self::Expired => Weight::Info,
        }
    }

    /// Whether it keeps an order from being placed. A refused item does, although other lines stand: the
    /// caller has to see that it gets less than it asked for, and to ask again. A declined payment does not
    /// keep the next try from running.
    #[must_use]
    pub const fn blocks(&self) -> bool {
        match self {
            Self::NoLines
            | Self::Item { .. }
            | Self::Short { .. }
            | Self::MissingEmail
            | Self::MissingAddress
            | Self::MissingAddressPart(_)
            | Self::AddressInvalid(_)
            | Self::Undeliverable
            | Self::OptionUnavailable { .. }
            | Self::NoPaymentMethod
            | Self::CartRefused => true,
            Self::QuantityAdjusted { .. }
            | Self::CodeRefused { .. }
            | Self::CodeDropped { .. }
            | Self::PriceChanged
            | Self::OptionChanged
            | Self::Estimate
            | Self::PaymentDeclined
            | Self::InstrumentUnusable
            | Self::ChallengeNeeded
            | Self::PaymentAtShop
            | Self::InProgress
            | Self::OrderUnconfirmed
            | Self::OwnOrderHolds
            | Self::OrderDiffers
            | Self::Expired
            | Self::ClaimNotAccepted { .. }
            | Self::ShopRefused => false,
        }
    }
}

/// Where a problem is; protocols turn it into a JSONPath.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// The session as a whole.
    Session,
    /// The lines.
    Lines,
    /// One line of the session.
    Line(LineId),
    /// A line of the request that is not in the session, by its number.
    RequestLine(usize),
    /// The buyer's e-mail address.
    Email,
    /// The destination.
    Destination,
    /// The bill's address.
    Billing,
    /// The choice of an option.
    Option,
    /// One of the coupon codes, by its number.
    Code(usize),
    /// The payment instruments.
    Payment,
    /// The buyer's claims (context).
    Claims,
}
