//! Black-box tests: what a caller, a buyer or an operator sees.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    unreachable_pub,
    reason = "helpers of tests fail by panicking; a table of cases is long"
)]

mod architecture;
mod availability;
mod bad_input;
mod calls;
mod catalog;
mod demo_contract;
mod demo_experiments;
mod faults;
mod journeys;
mod known_faults;
mod letters;
mod negotiation;
mod program;
mod races;
mod record;
mod replay;
mod requirements;
mod requirements_acp;
mod requirements_ucp;
mod retries;
mod sessions;
mod settling;
mod shop_failures;
mod sim;
mod state_contract;
mod stock;
mod stock_model;
mod support;
mod tape;
mod ucp;
mod unpaid;
mod webhooks;
mod woo;
