//! The names of keys. All keys of a shop carry its hash tag, so that a cluster keeps them on one node and one
//! script may touch them all.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `…:s:ID` | hash | a session: `version`, `body`, `ended`, `epoch`; `attempt` and `owner` while an attempt is open; `left` when its cart was left behind by a takeover |
//! | `…:t:TOKEN` | text | the id of the session that a `continue_url` leads to |
//! | `…:c:SCOPE` | hash | a claim: `fingerprint`, `owner`, `call`, `fence`; `attempt` it belongs to; `answer`, from then on with an end of life |
//! | `…:o:ID` | text | the version that an operation wrote, for an hour |
//! | `…:turn:ID` | hash | who has a session's turn: `owner`, `number` |
//! | `…:owners` | hash | when each process last showed that it lives, by the server's clock |
//! | `…:open`, `…:due`, `…:all` | sorted set | sessions with an open attempt, by time of *placing*; those to be looked after by when that is due; all by last change |
//! | `…:review` | sorted set | sessions that a person has to look at, by last change |
//! | `…:seen:ORDER` | text | the session that an order of the shop was seen with |
//! | `…:seen_of:ID` | hash | the orders seen of a session: `first:ORDER` and `last:ORDER`; `adopted` names its own |
//! | `…:k:STOCK` | JSON | a shelf of the stock: who holds and buys, counts ([`crate::stock::Shelf`]) |
//! | `…:shelves` | set | the stock ids that have a shelf |
//! | `…:stock` | number | the sequence of what happens to the stock |
//! | `…:fences`, `…:turns` | number | the last fence, the last turn |
//! | `…:epoch`, `…:replid`, `…:quarantine` | number, text, number | how often newest writes may have been lost; the server written to; until when no order is placed |

use crate::{
    checkout::ids::{SessionId, ShopId},
    idempotency::Scope,
};

/// The names of one shop's keys.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// `prefix:{shop}`
    root: String,
}

impl Keys {
    pub(super) fn new(prefix: &str, shop: &ShopId) -> Self {
        Self { root: format!("{prefix}:{{{}}}", shop.as_str()) }
    }

    fn name(&self, rest: &str) -> String {
        format!("{}:{rest}", self.root)
    }

    pub(super) fn session(&self, id: &SessionId) -> String {
        self.name(&format!("s:{id}"))
    }

    pub(super) fn token(&self, token: &str) -> String {
        self.name(&format!("t:{token}"))
    }

    pub(super) fn claim(&self, scope: &Scope) -> String {
        self.name(&format!("c:{}", scope.as_str()))
    }

    pub(super) fn operation(&self, id: &str) -> String {
        self.name(&format!("o:{id}"))
    }

    pub(super) fn turn(&self, id: &SessionId) -> String {
        self.name(&format!("turn:{id}"))
    }

    /// A key that nothing is stored under, where a script wants one that this call does not have.
    pub(super) fn none(&self) -> String {
        self.name("none")
    }

    pub(super) fn owners(&self) -> String {
        self.name("owners")
    }

    pub(super) fn open(&self) -> String {
        self.name("open")
    }

    pub(super) fn due(&self) -> String {
        self.name("due")
    }

    pub(super) fn all(&self) -> String {
        self.name("all")
    }

    pub(super) fn review(&self) -> String {
        self.name("review")
    }

    pub(super) fn seen(&self, order: &str) -> String {
        self.name(&format!("seen:{order}"))
    }

    pub(super) fn seen_of(&self, id: &SessionId) -> String {
        self.name(&format!("seen_of:{id}"))
    }

    pub(super) fn shelf(&self, stock: &str) -> String {
        self.name(&format!("k:{stock}"))
    }

    pub(super) fn shelves(&self) -> String {
        self.name("shelves")
    }

    pub(super) fn stock_sequence(&self) -> String {
        self.name("stock")
    }

    pub(super) fn fences(&self) -> String {
        self.name("fences")
    }

    pub(super) fn turns(&self) -> String {
        self.name("turns")
    }

    pub(super) fn epoch(&self) -> String {
        self.name("epoch")
    }

    pub(super) fn replid(&self) -> String {
        self.name("replid")
    }

    pub(super) fn quarantine(&self) -> String {
        self.name("quarantine")
    }
}

/// The slot of a key in a cluster, by its hash tag.
pub(super) fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16::State::<crc16::XMODEM>::calculate(hashed.as_bytes()) % 16_384
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_shop_lie_in_one_slot() {
        let keys = Keys::new("tillgate", &ShopId::new("flower"));
        let slots =
            [keys.session(&SessionId::new("chk_1")), keys.owners(), keys.none()].map(|key| slot(&key));
        assert_eq!(slots, [slot("flower"); 3]);
        // As the cluster specification gives it.
        assert_eq!(slot("123456789"), 0x31C3);
    }
}
