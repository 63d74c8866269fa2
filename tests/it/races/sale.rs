//! A flash sale: many agents, few units, two processes on one Redis. `SALE=1000` is the full size.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};

use super::{
    gateway::Gateways,
    lines::{Goods, Payment},
    rounds::Buyers as _,
    shop::{SCARCE, Shop},
};
use crate::support::{Reply, process::often};

const UNITS: usize = 10;

/// Checkouts that are ready before the sale begins.
async fn ready(gateways: &Gateways, count: usize) -> Vec<super::gateway::Ready> {
    let goods: Goods = vec![(SCARCE, 1)];
    let goods = &goods;
    stream::iter(0..count)
        .map(|number| async move { gateways.fill(number, goods).await })
        .buffered(16)
        .collect()
        .await
}

fn is_bought(reply: &Reply) -> bool {
    reply.status == 200 && reply.text("/status") == "completed"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flash_sale_sells_what_there_is_and_costs_the_shop_little_more() {
    let count = often("SALE", 150);
    let shop = Shop::open(true).await;
    let Some(gateways) = Gateways::open_with(&shop, "").await else { return };
    shop.restock(&vec![(SCARCE, i64::try_from(UNITS).unwrap())]).await;
    let carts = ready(&gateways, count).await;
    shop.forget_calls().await;
    let before = shop.placed().await;
    let begun = Instant::now();
    let sale = carts.iter().enumerate().map(|(number, cart)| {
        let gateways = &gateways;
        // Within a second, as if from many machines.
        let wait = Duration::from_micros(u64::try_from(number * 1_000_000 / count).unwrap());
        async move {
            tokio::time::sleep(wait).await;
            let asked = Instant::now();
            let reply = gateways.complete(cart, Payment::Card).await;
            (reply, asked.elapsed())
        }
    });
    let told = futures::future::join_all(sale).await;
    let took = begun.elapsed();
    let calls = shop.calls().await;
    let placed: BTreeSet<u64> = shop.placed().await.difference(&before).copied().collect();
    let bought = told.iter().filter(|(reply, _)| is_bought(reply)).count();
    let mut refused: Vec<Duration> =
        told.iter().filter(|(reply, _)| !is_bought(reply)).map(|(_, took)| *took).collect();
    refused.sort_unstable();
    let at = |share: usize| refused.get(refused.len() * share / 100).copied().unwrap_or_default();
    // Each order costs its check, its POST and its look; readings of the stock are for all.
    let asked = calls.iter().filter(|path| path.ends_with("/batch")).count().saturating_sub(UNITS);
    let losers = count - bought;
    println!(
        "{count} completions over two processes in {:.1} s: {bought} orders of {UNITS} units; {asked} of {losers} losers cost the \
         shop a call ({} calls in all); a refusal took p50 {:.1} ms, p99 {:.1} ms",
        took.as_secs_f32(),
        calls.len(),
        at(50).as_secs_f64() * 1e3,
        at(99).as_secs_f64() * 1e3,
    );
    for (reply, _) in told.iter().filter(|(reply, _)| !is_bought(reply)) {
        assert!(reply.codes().iter().any(|code| code == "out_of_stock"), "{} {}", reply.status, reply.json);
    }
    assert_eq!((bought, placed.len()), (UNITS, UNITS));
    assert_eq!(shop.left(&vec![(SCARCE, 0)]).await, vec![(SCARCE, 0)]);
    assert!(asked * 20 <= losers, "{asked} of {losers} losers asked the shop: {calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_in_a_sale_loses_no_unit_and_sells_none_twice() {
    let count = often("SALE", 150).min(60);
    let shop = Shop::open(true).await;
    let Some(mut gateways) = Gateways::open_with(&shop, "").await else { return };
    shop.restock(&vec![(SCARCE, i64::try_from(UNITS).unwrap())]).await;
    let carts = ready(&gateways, count).await;
    let before = shop.placed().await;
    // The first wave is cut off in its middle.
    let wave = carts.iter().map(|cart| gateways.try_complete(cart, "first"));
    let cut = tokio::time::timeout(Duration::from_millis(400), futures::future::join_all(wave)).await;
    gateways.kill_second();
    println!("killed {} the first wave was over", if cut.is_ok() { "after" } else { "before" });
    gateways.start_second_again().await;
    // Everybody asks again, first with the same key, then anew for as long as others hold what is wanted.
    let asks = carts.iter().map(|cart| async {
        let mut reply = gateways.insist(cart, "first").await;
        for number in 0..200 {
            if is_bought(&reply) || reply.header("retry-after").is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            reply = gateways.insist(cart, &format!("again-{number}")).await;
        }
        reply
    });
    let told = futures::future::join_all(asks).await;
    let bought = told.iter().filter(|reply| is_bought(reply)).count();
    let placed: BTreeSet<u64> = shop.placed().await.difference(&before).copied().collect();
    println!("{count} agents, a process killed in the sale: {bought} orders of {UNITS} units");
    assert_eq!((bought, placed.len()), (UNITS, UNITS));
    assert_eq!(shop.left(&vec![(SCARCE, 0)]).await, vec![(SCARCE, 0)]);
    let pinned = gateways.pinned().await;
    assert!(pinned.is_empty(), "pins without an attempt: {pinned:?}");
}
