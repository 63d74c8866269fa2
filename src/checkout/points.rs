//! The named points of a completion and of its settling (`exactly-once.md` §4, §5).
//!
//! Between two of them nothing else of the design happens. Tests stop, delay or kill a process at one; in
//! production nobody listens and a point costs a comparison.

use std::fmt;

use futures::future::BoxFuture;

use super::ids::SessionId;

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// A named point.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Point {
            $($(#[$doc])* $name),+
        }

        impl Point {
            /// All of them, in the order in which a completion meets them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// As written in tests and in the environment.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text),+
                }
            }
        }
    };
}

points! {
    /// The key is claimed.
    Claimed = "claimed",
    /// The session's turn is won.
    Turn = "turn",
    /// The session was read again within the turn.
    Reread = "reread",
    /// The gate is passed: units are held, and the order may go beside those that run.
    Gate = "gate",
    /// The shop was asked once more, and nothing had changed.
    Checked = "checked",
    /// Before *placing* is stored.
    BeforeP = "before_p",
    /// *placing* is stored.
    AfterP = "after_p",
    /// The self-fence has let the `POST` through.
    BeforeSend = "before_send",
    /// The shop's answer to the `POST` is here.
    Answered = "answered",
    /// The order was read back.
    Verified = "verified",
    /// Before the outcome is stored.
    BeforeQ = "before_q",
    /// The outcome is stored.
    AfterQ = "after_q",
    /// A settler has the session's turn.
    SettleTurn = "settle_turn",
    /// A settler has looked for orders.
    SettleLooked = "settle_looked",
    /// A settler has emptied the cart.
    SettleFenced = "settle_fenced",
    /// A settler is about to store what it decided.
    SettleDecided = "settle_decided",
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who listens at the points.
pub trait Probe: Send + Sync {
    /// Work has come to a point and goes on when this ends. `session` is unknown before a create.
    fn at(&self, point: Point, session: Option<&SessionId>) -> BoxFuture<'static, ()>;
}
