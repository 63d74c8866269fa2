//! Retry storms over two gateways on one Redis. `STORM=1000` is the full size.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{last_word, live, order_number};
use crate::support::{
    config::Config,
    process::{Agent, Process, Side, is_final, often},
    redis::Server,
};

/// Two gateways on one Redis, in front of one shop.
struct Pair {
    shop: Process,
    gateways: [Process; 2],
    _redis: Server,
    _folders: [tempfile::TempDir; 2],
}

impl Pair {
    async fn new() -> Option<Self> {
        let redis = Server::start(&[]).await?;
        let shop = Process::shop(&[]).await;
        let table = format!("url = \"{}\"", redis.url());
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let config = Config { shop: &shop.address, redis: Some(&table), ..Config::default() };
        let gateways = [
            Process::serve(&config.write(folders[0].path()), &[]).await,
            Process::serve(&config.write(folders[1].path()), &[]).await,
        ];
        Some(Self { shop, gateways, _redis: redis, _folders: folders })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_equal_completions_is_one_order_and_one_answer() {
    let Some(pair) = Pair::new().await else { return };
    let count = often("STORM", 200);
    for side in [Side::Ucp, Side::Acp] {
        let agent = Agent::new();
        let email = format!("storm-{side:?}@example.org").to_lowercase();
        let token = "tok_slow";
        let id = agent.ready(side, &pair.gateways[0].address, &email).await;
        let before = agent.places(&pair.shop.address).await;
        let begun = Instant::now();
        let calls = (0..count).map(|number| {
            let (agent, id) = (agent.clone(), id.clone());
            let base = pair.gateways[number % 2].address.clone();
            // Spread over a second, as if from many machines.
            let wait = Duration::from_micros(u64::try_from(number * 1_000_000 / count).unwrap());
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                let first = agent.complete(side, &base, &id, "storm", token).await.unwrap();
                let last = if is_final(&first) {
                    first.clone()
                } else {
                    last_word(&agent, side, &base, &id, "storm", token).await
                };
                (first, last)
            })
        });
        let told = futures::future::join_all(calls.collect::<Vec<_>>()).await;
        let took = begun.elapsed();
        let mut firsts = std::collections::BTreeMap::new();
        let mut bodies = BTreeSet::new();
        for told in told {
            let (first, last) = told.unwrap();
            *firsts.entry((first.status, is_final(&first))).or_insert(0_usize) += 1;
            assert!(first.status < 500 || first.header("retry-after").is_some(), "{}", first.json);
            bodies.insert((last.status, last.bytes));
        }
        let places = agent.places(&pair.shop.address).await - before;
        let orders = agent.orders(&pair.shop.address, &email).await;
        println!(
            "{side:?}: {count} equal completions over two processes: {places} POST /checkout, {} order(s), {} final answer(s), \
             all told within {:.1} s; first answers by (status, final): {firsts:?}",
            orders.len(),
            bodies.len(),
            took.as_secs_f32()
        );
        assert_eq!((places, orders.len(), bodies.len()), (1, 1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_completions_of_one_session_under_different_keys_are_one_order() {
    let Some(pair) = Pair::new().await else { return };
    for side in [Side::Ucp, Side::Acp] {
        let agent = Agent::new();
        let email = format!("twenty-{side:?}@example.org").to_lowercase();
        let id = agent.ready(side, &pair.gateways[0].address, &email).await;
        let calls = (0..20).map(|number| {
            let (agent, id) = (agent.clone(), id.clone());
            let base = pair.gateways[number % 2].address.clone();
            tokio::spawn(async move {
                last_word(&agent, side, &base, &id, &format!("key-{number}"), "tok_slow").await
            })
        });
        let told = futures::future::join_all(calls.collect::<Vec<_>>()).await;
        let mut bought = Vec::new();
        for reply in told {
            let reply = reply.unwrap();
            if reply.status == 200 {
                assert_eq!(reply.text("/status"), "completed", "{}", reply.json);
                bought.push(order_number(&reply).unwrap().to_owned());
            } else {
                let wanted = if side == Side::Ucp { 409 } else { 405 };
                assert_eq!(reply.status, wanted, "{}", reply.json);
            }
        }
        let orders = agent.orders(&pair.shop.address, &email).await;
        assert_eq!((orders.len(), live(&orders)), (1, 1), "{orders:?}");
        assert!(!bought.is_empty() && bought.iter().all(|number| *number == bought[0]), "{bought:?}");
    }
}
