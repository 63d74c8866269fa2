//! `kill -9` and `SIGSTOP` of real gateways in every window of a completion (`exactly-once.md` §8, W1 to W10, W14, W40).
//!
//! `KILLS=20` kills at least that many in each window; `FREEZE_AT=after_p` freezes there only.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::StreamExt as _;

use super::{last_word, live, order_number};
use crate::support::{
    chaos::{Act, Proxy},
    config::Config,
    process::{Agent, Process, Side, often},
    redis::Server,
};

const PLACE: &str = "POST /wp-json/wc/store/v1/checkout";

/// Where a gateway dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Window {
    /// At a named point of its own.
    At(&'static str),
    /// The `POST` has left, the shop is at work (for a second).
    Sent,
    /// The shop is done, its answer has not arrived.
    Done,
}

/// In the order in which a completion meets them. The first claim is the create's.
const WINDOWS: [Window; 11] = [
    Window::At("claimed:2"),
    Window::At("reread"),
    Window::At("before_p"),
    Window::At("after_p"),
    Window::At("before_send"),
    Window::Sent,
    Window::Done,
    Window::At("answered"),
    Window::At("verified"),
    Window::At("before_q"),
    Window::At("after_q"),
];

impl Window {
    fn name(self) -> &'static str {
        match self {
            Self::At(point) => point.split(':').next().unwrap_or(point),
            Self::Sent => "sent",
            Self::Done => "shop done",
        }
    }
}

/// What stands around the gateways that die.
struct World {
    shop: Process,
    agent: Agent,
    /// One Redis, and the gateway on it that lives on; without: each has its embedded state and is started again.
    shared: Option<(String, Process)>,
}

impl World {
    /// One death: how long the key's last word took after it.
    async fn die(&self, window: Window, side: Side, number: usize) -> Duration {
        let folder = tempfile::tempdir().unwrap();
        let proxy = Proxy::before_url(&self.shop.address).await;
        let redis = self.shared.as_ref().map(|(table, _)| table.as_str());
        let config = Config { shop: &proxy.http(), redis, ..Config::default() }.write(folder.path());
        let stop = if let Window::At(point) = window { vec![("TILLGATE_STOP_AT", point)] } else { vec![] };
        let mut gateway = Process::serve(&config, &stop).await;
        let email = format!("{}-{number}@example.org", window.name().replace(' ', "-"));
        let token = match (window, side) {
            (Window::Sent, _) => "tok_slow",
            (_, Side::Ucp) => "success_token",
            (_, Side::Acp) => "spt_test_ok",
        };
        let id = self.agent.ready(side, &gateway.address, &email).await;
        let key = format!("kill-{}", tillgate::clock::Ids.uuid());
        let mut placing =
            proxy.next(PLACE, if window == Window::Done { Act::Hold } else { Act::Delay(Duration::ZERO) });
        let base = gateway.address.clone();
        let waiting = self.agent.complete(side, &base, &id, &key, token);
        tokio::select! {
            reply = waiting => panic!("{window:?}: answered before the window: {:?}", reply.map(|reply| reply.json)),
            () = async {
                match window {
                    Window::At(_) => gateway.reached(window.name()).await,
                    Window::Sent => placing.sent().await,
                    Window::Done => placing.answered().await,
                }
            } => {}
        }
        gateway.kill();
        let died = Instant::now();
        placing.let_go();
        let (reply, again) = if let Some((_, other)) = &self.shared {
            let told = last_word(&self.agent, side, &other.address, &id, &key, token).await;
            (told, self.agent.complete(side, &other.address, &id, &key, token).await.unwrap())
        } else {
            let gateway = Process::serve(&config, &[]).await;
            let told = last_word(&self.agent, side, &gateway.address, &id, &key, token).await;
            (told, self.agent.complete(side, &gateway.address, &id, &key, token).await.unwrap())
        };
        let took = died.elapsed();
        assert_eq!(
            (reply.status, reply.text("/status")),
            (200, "completed"),
            "{window:?} {side:?}: {}",
            reply.json
        );
        assert_eq!((again.status, &again.bytes), (reply.status, &reply.bytes), "{window:?} {side:?}");
        let orders = self.agent.orders(&self.shop.address, &email).await;
        assert_eq!(live(&orders), 1, "{window:?} {side:?}: {orders:?}");
        assert_eq!(
            order_number(&reply),
            orders[0]["id"].as_u64().map(|id| id.to_string()).as_deref(),
            "{}",
            reply.json
        );
        took
    }
}

/// Kills in every window, in both protocols, some at a time; prints how long the keys took.
async fn kill_everywhere(name: &str, world: World, at_a_time: usize, small: usize) {
    let each = often("KILLS", small);
    let deaths = WINDOWS.iter().flat_map(|window| {
        (0..each).map(move |number| {
            let by_name = WINDOWS.iter().position(|other| other == window).unwrap_or_default();
            (*window, if (number + by_name).is_multiple_of(2) { Side::Ucp } else { Side::Acp }, number)
        })
    });
    let world = &world;
    let told: Vec<(Window, Duration)> = futures::stream::iter(deaths)
        .map(|(window, side, number)| async move { (window, world.die(window, side, number).await) })
        .buffer_unordered(at_a_time)
        .collect()
        .await;
    let mut by_window: BTreeMap<Window, Vec<Duration>> = BTreeMap::new();
    for (window, took) in told {
        by_window.entry(window).or_default().push(took);
    }
    println!("kill -9, state {name}: seconds until the repeated key was answered with the one order");
    println!(
        "{:<12} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "window", "kills", "<1", "<3", "<6", "<15", "more"
    );
    for window in WINDOWS {
        let times = by_window.remove(&window).unwrap_or_default();
        let mut counts = [0_usize; 5];
        for took in &times {
            let bucket = [1, 3, 6, 15].iter().position(|most| took.as_secs() < *most).unwrap_or(4);
            counts[bucket] += 1;
        }
        print!("{:<12} {:>6}", window.name(), times.len());
        for count in counts {
            print!(" {count:>6}");
        }
        println!();
        assert_eq!(times.len(), each);
    }
}

#[tokio::test]
async fn a_gateway_killed_in_any_window_loses_and_doubles_nothing_with_the_embedded_state() {
    let world = World { shop: Process::shop(&[]).await, agent: Agent::new(), shared: None };
    kill_everywhere("embedded", world, 8, 1).await;
}

#[tokio::test]
async fn a_gateway_killed_in_any_window_loses_and_doubles_nothing_on_a_shared_redis() {
    let Some(redis) = Server::start(&[]).await else { return };
    let shop = Process::shop(&[]).await;
    let table = format!("url = \"{}\"", redis.url());
    let folder = tempfile::tempdir().unwrap();
    let config =
        Config { shop: &shop.address, redis: Some(&table), ..Config::default() }.write(folder.path());
    let other = Process::serve(&config, &[]).await;
    let world = World { shop, agent: Agent::new(), shared: Some((table, other)) };
    kill_everywhere("Redis", world, 22, 1).await;
}

/// A gateway is frozen where it stands; another on the same Redis finishes; the first wakes up and does no harm.
async fn freeze(window: Window, side: Side, redis: &str, shop: &Process) -> String {
    let agent = Agent::new();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let proxy = Proxy::before_url(&shop.address).await;
    let table = format!("url = \"{redis}\"");
    let config = Config { shop: &proxy.http(), redis: Some(&table), ..Config::default() };
    let point = if let Window::At(point) = window { vec![("TILLGATE_FREEZE_AT", point)] } else { vec![] };
    let mut sleeper = Process::serve(&config.write(one.path()), &point).await;
    let other = Process::serve(&Config { shop: &shop.address, ..config }.write(two.path()), &[]).await;
    let email = format!("frozen-{}-{side:?}@example.org", window.name());
    let token = if window == Window::Sent { "tok_slow" } else { "success_token" };
    let id = agent.ready(side, &sleeper.address, &email).await;
    let mut placing = proxy.next(PLACE, Act::Delay(Duration::ZERO));
    let base = sleeper.address.clone();
    let sleeping = tokio::spawn({
        let (agent, id) = (agent.clone(), id.clone());
        async move { agent.complete(side, &base, &id, "k", token).await }
    });
    if window == Window::Sent {
        placing.sent().await;
        sleeper.signal("STOP");
    } else {
        sleeper.reached(window.name()).await;
    }
    let frozen = Instant::now();
    let told = last_word(&agent, side, &other.address, &id, "k", token).await;
    let took = frozen.elapsed();
    sleeper.signal("CONT");
    let woken = sleeping.await.unwrap();
    let again = last_word(&agent, side, &sleeper.address, &id, "k", token).await;
    assert_eq!(told.text("/status"), "completed", "{window:?}: {}", told.json);
    assert_eq!(again.bytes, told.bytes, "{window:?}: both processes repeat the same");
    let orders = agent.orders(&shop.address, &email).await;
    assert_eq!((orders.len(), live(&orders)), (1, 1), "{window:?}: {orders:?}");
    if let Ok(woken) = woken
        && woken.json["status"] == "completed"
    {
        assert_eq!(order_number(&woken), order_number(&told), "{window:?}: one order, one number");
    }
    format!(
        "frozen at {:<10} {side:?}: another process answered after {:.1} s; one order",
        window.name(),
        took.as_secs_f32()
    )
}

#[tokio::test]
async fn a_frozen_gateway_that_wakes_up_after_another_took_over_does_no_harm() {
    let Some(redis) = Server::start(&[]).await else { return };
    let shop = Process::shop(&[]).await;
    let windows = [
        (Window::At("claimed:2"), Side::Acp),
        (Window::At("before_p"), Side::Ucp),
        (Window::At("after_p"), Side::Ucp),
        (Window::At("after_p"), Side::Acp),
        (Window::Sent, Side::Ucp),
        (Window::At("answered"), Side::Ucp),
        (Window::At("before_q"), Side::Acp),
    ];
    let url = redis.url();
    let only = std::env::var("FREEZE_AT").unwrap_or_default();
    let windows = windows.into_iter().filter(|(window, _)| only.is_empty() || window.name() == only);
    let told =
        futures::future::join_all(windows.map(|(window, side)| freeze(window, side, &url, &shop))).await;
    println!("{}", told.join("\n"));
}
