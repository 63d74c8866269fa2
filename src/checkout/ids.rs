//! Identifiers of the domain, one type each, so that none is taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as the identifier, unchanged.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// One configured shop (`flower`, `general`): the first part of every key.
    ShopId
}
id! {
    /// A checkout session: `chk_…`, public and unguessable.
    SessionId
}
id! {
    /// Who calls: `ucp:` + profile URL, or `acp:` + the agent's id from configuration.
    CallerId
}
id! {
    /// A line of a session: ours, stable over the session's life.
    LineId
}
id! {
    /// What the shop calls the thing to buy: a product or variation id.
    ProductId
}
