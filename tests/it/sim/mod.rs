//! The simulator of exactly-once (`exactly-once.md` §9): several processes over one memory and one shop, in one
//! thread, under virtual time, killed, frozen and interleaved at every named place.
//!
//! The processes run the real domain and the real protocols; shop and memory are models. The model of the memory
//! passes the contract of the real ones (`state_contract`); those have threads and sockets of their own, in real
//! time, so the enumerations run on the model alone.
//!
//! | file | what it is |
//! |---|---|
//! | `clock`, `schedule` | virtual time; who goes on at a place, dies or freezes there |
//! | `state`, `shop`, `port` | the models |
//! | `world`, `oracle` | one run; what must be true after it |
//! | `kills` (T1), `freezes` (T2), `orders` (T3), `times` (T6) | the runs; T4 is part of the oracle |
//! | `mutations` (T12) | each guard taken away: some run must go wrong |

mod clock;
mod freezes;
mod kills;
mod mutations;
mod oracle;
mod orders;
mod port;
mod schedule;
mod shop;
pub mod state;
mod times;
mod world;
