//! The fault kit: what production does to a gateway, done to real processes over real sockets.
//!
//! Every test has a small size, which the whole suite runs, and a full one by an environment variable; the figures are
//! printed. `docs/reliability.md` names the commands.

mod away;
mod house;
mod interleavings;
mod kills;
mod lost;
mod movers;
mod stop;
mod storm;
mod withdrawn;

use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Reply,
    process::{Agent, Side, is_final},
};

/// Repeats a completion under its key until it is told the last word; bounded. Connections that break are tried again,
/// as an agent does.
async fn last_word(agent: &Agent, side: Side, base: &str, id: &str, key: &str, token: &str) -> Reply {
    let mut pause = tokio::time::interval(Duration::from_millis(100));
    let mut last = None;
    for _ in 0..900 {
        pause.tick().await;
        last = Some(agent.complete(side, base, id, key, token).await);
        if let Some(Ok(reply)) = &last
            && is_final(reply)
        {
            return reply.clone();
        }
    }
    panic!("the key {key} of {id} was never answered: {last:?}")
}

/// The order's number that an answer tells.
fn order_number(reply: &Reply) -> Option<&str> {
    let order = &reply.json["order"];
    order["label"].as_str().or_else(|| order["order_number"].as_str())
}

/// Asks again until there is an answer; bounded.
async fn until<T>(what: &str, most: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    let asked = async {
        loop {
            pause.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    tokio::time::timeout(most, asked).await.unwrap_or_else(|_| panic!("{what}: not within {most:?}"))
}

/// A refusal for a while, with the time after which to come again.
#[track_caller]
fn try_later(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.json);
    let after = reply.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(after.is_some_and(|after| (1..=3600).contains(&after)), "{:?}", reply.headers);
}

/// Orders that were taken up: paid, or accepted.
fn live(orders: &[Value]) -> usize {
    let taken = |status: &str| ["processing", "completed", "on-hold"].contains(&status);
    orders.iter().filter(|order| order["status"].as_str().is_some_and(taken)).count()
}
