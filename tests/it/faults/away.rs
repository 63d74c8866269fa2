//! Redis goes away: killed, frozen, or reachable in one direction only. 503 with `Retry-After`, soon; nothing runs
//! without protection; it recovers by itself (`product.md` §3, §9).

use std::time::{Duration, Instant};

use reqwest::Method;

use super::{last_word, live, try_later, until};
use crate::support::{
    chaos::{Act, Proxy},
    config::Config,
    process::{Agent, Process, Side, is_final, purchase, signal},
    redis::Server,
};

/// The longest that anybody waits for a refusal.
const SOON: Duration = Duration::from_secs(9);

/// A gateway on Redis behind a proxy.
struct Place {
    redis: Server,
    between: Proxy,
    shop: Process,
    gateway: Process,
    agent: Agent,
    _folder: tempfile::TempDir,
}

impl Place {
    async fn new() -> Option<Self> {
        let redis = Server::start(&[]).await?;
        let between = Proxy::before(([127, 0, 0, 1], redis.port()).into()).await;
        let shop = Process::shop(&[]).await;
        let folder = tempfile::tempdir().unwrap();
        let table = format!("url = \"redis://{}/\"\nquarantine_secs = 1", between.address);
        let config = Config { shop: &shop.address, redis: Some(&table), ..Config::default() };
        let gateway = Process::serve(&config.write(folder.path()), &[]).await;
        Some(Self { redis, between, shop, gateway, agent: Agent::new(), _folder: folder })
    }

    fn base(&self) -> &str {
        &self.gateway.address
    }

    async fn calls(&self) -> u64 {
        self.agent.look(&format!("{}/_demo/calls", self.shop.address)).await.1["count"].as_u64().unwrap()
    }

    /// While Redis is away: a crowd is refused soon, the shop is not asked, the profile goes on.
    async fn away(&self, what: &str, ids: &[(Side, String)]) {
        let before = self.calls().await;
        let begun = Instant::now();
        let crowd = (0..24).map(|number| {
            let (side, id) = &ids[number % ids.len()];
            async move {
                let key = format!("away-{}-{number}", what.replace(' ', "-"));
                if number % 3 == 0 {
                    let body = purchase(*side, "away@example.org");
                    self.agent.call(*side, self.base(), Method::POST, "", &key, Some(&body)).await.unwrap()
                } else {
                    self.agent.complete(*side, self.base(), id, &key, "success_token").await.unwrap()
                }
            }
        });
        let profile = async {
            let begun = Instant::now();
            let (status, _) = self.agent.look(&format!("{}/.well-known/ucp", self.base())).await;
            assert_eq!(status, 200, "{what}: the profile goes on");
            assert!(begun.elapsed() < Duration::from_secs(2), "{what}: the profile does not wait");
        };
        let (refused, ()) = tokio::join!(futures::future::join_all(crowd), profile);
        let took = begun.elapsed();
        refused.iter().for_each(try_later);
        assert!(took < SOON, "{what}: refused only after {took:?}");
        assert_eq!(self.calls().await, before, "{what}: nothing runs without protection");
        println!(
            "{what}: {} requests at once were told 503 within {:.1} s",
            refused.len(),
            took.as_secs_f32()
        );
    }

    /// It is back: sessions of before are bought, once.
    async fn back(&self, what: &str, ids: &[(Side, String)], email: &str) {
        let begun = Instant::now();
        for (side, id) in ids {
            until(&format!("{what}: an order"), Duration::from_secs(30), async || {
                let key = tillgate::clock::Ids.uuid();
                let reply = last_word(&self.agent, *side, self.base(), id, &key, "success_token").await;
                (reply.status == 200 && reply.json["status"] == "completed").then_some(())
            })
            .await;
        }
        println!("{what}: back after {:.1} s", begun.elapsed().as_secs_f32());
        let orders = self.agent.orders(&self.shop.address, email).await;
        assert_eq!((orders.len(), live(&orders)), (ids.len(), ids.len()), "{what}: {orders:?}");
    }

    async fn ready(&self, email: &str) -> Vec<(Side, String)> {
        let mut ids = Vec::new();
        for side in [Side::Ucp, Side::Acp] {
            ids.push((side, self.agent.ready(side, self.base(), email).await));
        }
        ids
    }
}

#[tokio::test]
async fn a_redis_that_is_killed_and_started_again() {
    let Some(mut place) = Place::new().await else { return };
    let ids = place.ready("killed@example.org").await;
    place.redis.kill();
    place.away("killed", &ids).await;
    let (ready, _) = place.agent.look(&format!("{}/readyz", place.gateway.ops)).await;
    assert_eq!(ready, 503, "operators see it");
    place.redis.restart().await;
    place.back("killed", &ids, "killed@example.org").await;
}

#[tokio::test]
async fn a_redis_that_is_frozen_and_wakes_up() {
    let Some(place) = Place::new().await else { return };
    let ids = place.ready("frozen@example.org").await;
    signal(place.redis.process(), "STOP");
    place.away("frozen", &ids).await;
    signal(place.redis.process(), "CONT");
    place.back("frozen", &ids, "frozen@example.org").await;
}

#[tokio::test]
async fn a_redis_behind_a_line_that_is_half_open_or_down() {
    let Some(place) = Place::new().await else { return };
    let ids = place.ready("line@example.org").await;
    place.between.freeze();
    place.away("half open", &ids).await;
    place.between.thaw();
    place.back("half open", &ids, "line@example.org").await;
    let ids = place.ready("down@example.org").await;
    place.between.refuse(true);
    place.away("down", &ids).await;
    place.between.refuse(false);
    place.back("down", &ids, "down@example.org").await;
}

/// A reply of Redis is lost, at each of the calls of a completion in turn: one order, and the key is answered.
#[tokio::test]
async fn a_reply_of_redis_that_is_lost_loses_and_doubles_nothing() {
    let Some(place) = Place::new().await else { return };
    let mut told = 0;
    for act in [Act::CutBefore, Act::CutAfter, Act::HalfOpen] {
        for at in 0..if act == Act::HalfOpen { 3 } else { 8 } {
            let side = if at % 2 == 0 { Side::Ucp } else { Side::Acp };
            let email = format!("{act:?}-{at}@example.org").to_lowercase();
            let id = place.agent.ready(side, place.base(), &email).await;
            // The calls before it pass.
            for _ in 0..at {
                drop(place.between.next("EVALSHA", Act::Delay(Duration::ZERO)));
            }
            drop(place.between.next("EVALSHA", act));
            let key = format!("{act:?}-{at}");
            let first = place.agent.complete(side, place.base(), &id, &key, "success_token").await.unwrap();
            if !is_final(&first) && first.status >= 500 {
                try_later(&first);
            }
            let last = last_word(&place.agent, side, place.base(), &id, &key, "success_token").await;
            assert_eq!(
                (last.status, last.text("/status")),
                (200, "completed"),
                "{act:?} {at}: {}",
                last.json
            );
            let orders = place.agent.orders(&place.shop.address, &email).await;
            assert_eq!((orders.len(), live(&orders)), (1, 1), "{act:?} {at}: {orders:?}");
            told += 1;
        }
    }
    println!("{told} completions with a lost call or reply of Redis: one order each");
}
