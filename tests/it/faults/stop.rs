//! Overload and stop: what waits is bounded, a shop that is away is told soon, SIGTERM lets work end (W12, W40).

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::{last_word, live, order_number, try_later};
use crate::support::{
    chaos::{Act, Proxy},
    config::Config,
    process::{Agent, Process, Side, purchase},
};

const PLACE: &str = "POST /wp-json/wc/store/v1/checkout";

/// A gateway with embedded state before a shop behind a proxy.
struct Place {
    shop: Process,
    line: Proxy,
    gateway: Process,
    agent: Agent,
    config: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl Place {
    async fn new(server: &str) -> Self {
        let shop = Process::shop(&[]).await;
        let line = Proxy::before_url(&shop.address).await;
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            shop: &line.http(),
            server,
            more: "deadlines = { read_secs = 1, write_secs = 1, place_secs = 30 }",
            ..Config::default()
        }
        .write(folder.path());
        let gateway = Process::serve(&config, &[]).await;
        Self { shop, line, gateway, agent: Agent::new(), config, _folder: folder }
    }

    /// A completion whose `POST` is at the shop.
    async fn under_way(
        &self,
        side: Side,
        email: &str,
    ) -> (
        String,
        crate::support::chaos::Ticket,
        tokio::task::JoinHandle<Result<crate::support::Reply, reqwest::Error>>,
    ) {
        let id = self.agent.ready(side, &self.gateway.address, email).await;
        let mut placing = self.line.next(PLACE, Act::Hold);
        let running = tokio::spawn({
            let (agent, base, id) = (self.agent.clone(), self.gateway.address.clone(), id.clone());
            async move { agent.complete(side, &base, &id, "k", "success_token").await }
        });
        placing.answered().await;
        (id, placing, running)
    }
}

#[tokio::test]
async fn a_stop_lets_a_completion_end_and_answers_it() {
    for side in [Side::Ucp, Side::Acp] {
        let mut place = Place::new("").await;
        let (_, placing, running) = place.under_way(side, "stop@example.org").await;
        place.gateway.signal("TERM");
        // New work is not taken any more, whether its connection is refused or cut off.
        let refused = super::until("new work is refused", Duration::from_secs(5), async || {
            let fresh = Agent::new();
            let body = purchase(side, "late@example.org");
            fresh.call(side, &place.gateway.address, Method::POST, "", "late", Some(&body)).await.err()
        })
        .await;
        assert!(refused.is_connect() || refused.is_request(), "{refused}");
        placing.let_go();
        let reply = running.await.unwrap().unwrap().expect(200);
        assert_eq!(reply.text("/status"), "completed", "{}", reply.json);
        let status = place.gateway.ends_within(Duration::from_secs(10)).await;
        assert!(status.success(), "{status}");
        assert_eq!(live(&place.agent.orders(&place.shop.address, "stop@example.org").await), 1);
    }
}

#[tokio::test]
async fn a_stop_is_bounded_and_what_it_leaves_is_settled_by_the_next_start() {
    let mut place = Place::new("stop_wait_secs = 1").await;
    let (id, placing, running) = place.under_way(Side::Ucp, "bounded@example.org").await;
    let told = Instant::now();
    place.gateway.signal("TERM");
    place.gateway.ends_within(Duration::from_secs(6)).await;
    println!(
        "told to stop with a completion that does not end: gone after {:.1} s",
        told.elapsed().as_secs_f32()
    );
    drop(running.await);
    placing.let_go();
    let next = Process::serve(&place.config, &[]).await;
    let reply = last_word(&place.agent, Side::Ucp, &next.address, &id, "k", "success_token").await;
    let orders = place.agent.orders(&place.shop.address, "bounded@example.org").await;
    assert_eq!((reply.text("/status"), orders.len()), ("completed", 1), "{}", reply.json);
    assert_eq!(order_number(&reply), orders[0]["id"].as_u64().map(|id| id.to_string()).as_deref());
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let mut place = Place::new("stop_wait_secs = 30").await;
    let (_, _placing, running) = place.under_way(Side::Acp, "twice@example.org").await;
    place.gateway.signal("TERM");
    super::until("it has heard the first", Duration::from_secs(5), async || {
        let address = place.gateway.address.trim_start_matches("http://").to_owned();
        tokio::net::TcpStream::connect(address).await.err()
    })
    .await;
    let told = Instant::now();
    place.gateway.signal("TERM");
    place.gateway.ends_within(Duration::from_secs(3)).await;
    println!("told twice: gone after {:.1} s", told.elapsed().as_secs_f32());
    drop(running.await);
}

#[tokio::test]
async fn a_shop_that_is_away_is_told_soon_to_all_and_is_used_again_by_itself() {
    let place = Place::new("").await;
    let base = &place.gateway.address;
    let id = place.agent.ready(Side::Ucp, base, "before@example.org").await;
    for what in ["frozen", "down"] {
        if what == "frozen" {
            place.line.freeze();
        } else {
            place.line.refuse(true);
        }
        let begun = Instant::now();
        let crowd = (0..40).map(|number| {
            let side = if number % 2 == 0 { Side::Ucp } else { Side::Acp };
            let (agent, key) = (&place.agent, format!("{what}-{number}"));
            async move {
                let body = purchase(side, "crowd@example.org");
                agent.call(side, base, Method::POST, "", &key, Some(&body)).await.unwrap()
            }
        });
        let refused = futures::future::join_all(crowd).await;
        let took = begun.elapsed();
        refused.iter().for_each(try_later);
        assert!(took < Duration::from_secs(8), "{what}: {took:?}");
        let read = place.agent.get(Side::Ucp, base, &id).await.unwrap().expect(200);
        assert_eq!(read.text("/status"), "ready_for_complete", "what is known is still told");
        if what == "frozen" {
            place.line.thaw();
        } else {
            place.line.refuse(false);
        }
        let body = purchase(Side::Ucp, "after@example.org");
        let again =
            place.agent.call(Side::Ucp, base, Method::POST, "", &format!("{what}-0"), Some(&body)).await;
        assert!(again.unwrap().status < 500, "the key is free and the shop is used again");
        println!("shop {what}: 40 requests at once were told 503 within {:.1} s", took.as_secs_f32());
    }
}

#[tokio::test]
async fn a_queue_before_one_session_is_bounded() {
    let place = Place::new("").await;
    let base = &place.gateway.address;
    for side in [Side::Ucp, Side::Acp] {
        let id = place.agent.ready(side, base, "queue@example.org").await;
        place.agent.faults(&place.shop.address, &json!({"delay_ms": {"value": 400, "count": 3}})).await;
        let crowd = (0..16).map(|number| {
            let (agent, key, path) = (&place.agent, format!("{side:?}-{number}"), format!("/{id}"));
            async move {
                let mut body = purchase(side, "queue@example.org");
                body["line_items"][0]["quantity"] = json!(number % 3 + 1);
                let method = if side == Side::Ucp { Method::PUT } else { Method::POST };
                let begun = Instant::now();
                (agent.call(side, base, method, &path, &key, Some(&body)).await.unwrap(), begun.elapsed())
            }
        });
        let told = futures::future::join_all(crowd).await;
        let (refused, done): (Vec<_>, Vec<_>) = told.into_iter().partition(|(reply, _)| reply.status == 503);
        assert!(done.len() >= 5 && refused.len() >= 8, "{side:?}: {} done", done.len());
        for (reply, took) in &refused {
            try_later(reply);
            assert!(*took < Duration::from_secs(1), "{side:?}: refused after {took:?}");
        }
        assert!(done.iter().all(|(reply, _)| reply.status == 200), "{side:?}");
        println!(
            "{side:?}: 16 writes on one session at once: {} done in turn, {} told 503",
            done.len(),
            refused.len()
        );
    }
}
