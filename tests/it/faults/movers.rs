//! The master of Redis changes during load: sentinels promote a replica that was frozen and lags behind, a cluster moves
//! the shop's slot from node to node (T10, W38). No order is doubled, errors are 503 with `Retry-After`, and what was
//! lost is told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{live, order_number, until};
use crate::support::{
    Reply,
    config::Config,
    process::{Agent, Process, Side, is_final, signal},
    redis::{Server, free_port},
};

/// Agents that buy at a time.
const AGENTS: usize = 6;

/// One purchase, as its agent saw it.
struct Purchase {
    email: String,
    side: Side,
    id: String,
    key: String,
    /// The last word under the key, and when it came.
    last: Reply,
    at: Instant,
}

/// Agents that buy all the time, each purchase a session and a key of its own, until they are told to stop.
struct Load {
    agents: Vec<tokio::task::JoinHandle<Vec<Purchase>>>,
    stop: Arc<AtomicBool>,
    /// Answers that were not final, by status.
    refusals: Arc<Mutex<BTreeMap<u16, usize>>>,
}

impl Load {
    fn start(gateways: &[String]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let refusals: Arc<Mutex<BTreeMap<u16, usize>>> = Arc::default();
        let agents = (0..AGENTS).map(|agent| {
            let (stop, refusals) = (Arc::clone(&stop), Arc::clone(&refusals));
            let bases =
                [gateways[agent % gateways.len()].clone(), gateways[(agent + 1) % gateways.len()].clone()];
            tokio::spawn(async move { shop_on(agent, &bases, &stop, &refusals).await })
        });
        Self { agents: agents.collect(), stop, refusals }
    }

    /// Lets all purchases end, and gives what was bought and told.
    async fn end(self) -> (Vec<Purchase>, BTreeMap<u16, usize>) {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for agent in self.agents {
            all.extend(agent.await.unwrap());
        }
        let refusals = self.refusals.lock().unwrap().clone();
        (all, refusals)
    }
}

async fn shop_on(
    number: usize,
    bases: &[String; 2],
    stop: &AtomicBool,
    refusals: &Mutex<BTreeMap<u16, usize>>,
) -> Vec<Purchase> {
    let agent = Agent::new();
    let side = if number.is_multiple_of(2) { Side::Ucp } else { Side::Acp };
    let mut bought = Vec::new();
    let refused = |reply: &Reply| {
        *refusals.lock().unwrap().entry(reply.status).or_default() += 1;
        if reply.status >= 500 {
            super::try_later(reply);
        }
    };
    while !stop.load(Ordering::SeqCst) {
        let email = format!("mover-{number}-{}@example.org", bought.len());
        let key = tillgate::clock::Ids.uuid();
        let body = crate::support::process::purchase(side, &email);
        let begun = Instant::now();
        let mut id: Option<String> = None;
        let mut tries = 0;
        let last = loop {
            assert!(begun.elapsed() < Duration::from_secs(90), "{email} was never told the last word");
            tries += 1;
            let reply = match &id {
                None => agent.call(side, &bases[0], reqwest::Method::POST, "", &key, Some(&body)).await,
                Some(id) => agent.complete(side, &bases[tries % 2], id, &key, "success_token").await,
            }
            .unwrap();
            match (&id, is_final(&reply)) {
                (None, true) => id = Some(reply.expect(201).id()),
                (Some(_), true) => break reply,
                (_, false) => {
                    refused(&reply);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        };
        bought.push(Purchase { email, side, id: id.unwrap_or_default(), key, last, at: Instant::now() });
    }
    bought
}

/// A session that is not known (any more), as each protocol says it.
fn is_unknown(reply: &Reply) -> bool {
    reply.status == 404 || reply.codes().iter().any(|code| code == "not_found")
}

/// What came of it: no order twice, no order told that is not there; what was lost is counted and was told.
async fn judge(
    what: &str,
    shop: &Process,
    base: &str,
    all: &[Purchase],
    refusals: &BTreeMap<u16, usize>,
    broken: Instant,
) {
    let agent = Agent::new();
    let orders = agent.look(&format!("{}/_demo/orders", shop.address)).await.1;
    let mut by_email: BTreeMap<String, Vec<serde_json::Value>> = BTreeMap::new();
    for order in orders.as_array().cloned().unwrap_or_default() {
        by_email.entry(order["email"].as_str().unwrap_or_default().to_owned()).or_default().push(order);
    }
    let (mut completed, mut unknown, mut again_other, mut gone) = (0, 0, 0, 0);
    for purchase in all {
        let orders = by_email.get(&purchase.email).map_or(&[][..], Vec::as_slice);
        assert!(live(orders) <= 1, "{what}: {} has {orders:?}", purchase.email);
        match (purchase.last.status, purchase.last.json["status"].as_str()) {
            (200, Some("completed")) => {
                completed += 1;
                let number = order_number(&purchase.last);
                assert!(
                    orders
                        .iter()
                        .any(|order| order["id"].as_u64().map(|id| id.to_string()).as_deref() == number),
                    "{what}: told {number:?}, the shop has {orders:?}"
                );
            }
            // The session is not known any more: its agent is told so.
            _ if is_unknown(&purchase.last) => unknown += 1,
            (status, _) => panic!("{what}: {status} {}", purchase.last.json),
        }
        // A replay may have been lost with the newest writes; an order never is bought again for it.
        let Purchase { side, id, key, last, .. } = purchase;
        let again = super::last_word(&agent, *side, base, id, key, "success_token").await;
        gone += usize::from(is_unknown(&again) && !is_unknown(last));
        again_other += usize::from(!is_unknown(&again) && again.bytes != last.bytes);
    }
    let after = agent.look(&format!("{}/_demo/orders", shop.address)).await.1;
    assert_eq!(after, orders, "{what}: repeating every key bought nothing");
    let back = all
        .iter()
        .filter(|one| one.at > broken && one.last.json["status"] == "completed")
        .map(|one| one.at)
        .min();
    let back = back.map_or("never".to_owned(), |at| format!("{:.1} s", (at - broken).as_secs_f32()));
    println!(
        "{what}: {} purchases, {completed} completed, 0 orders doubled; refusals by status {refusals:?}; next order {back} \
         after; lost and told: {} sessions unknown, {again_other} replays not the first bytes",
        all.len(),
        unknown + gone,
    );
    assert_ne!(back, "never", "{what}");
}

/// Three sentinels, a master, two replicas. One replica is frozen under load and lags; then the master dies and the other
/// replica freezes, so that the one that lags is promoted: what only the others had is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_promote_a_replica_that_lags() {
    let Some(mut master) = Server::start(&[]).await else { return };
    let port = master.port().to_string();
    let follow = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
    let (laggard, up_to_date) =
        (Server::start(&follow).await.unwrap(), Server::start(&follow).await.unwrap());
    until("two replicas", Duration::from_secs(20), async || {
        let info: String = master.ask(&["INFO", "replication"]).await.ok()?;
        (info.matches("state=online").count() == 2).then_some(())
    })
    .await;
    let sentinels = [
        Server::sentinel(master.port()).await,
        Server::sentinel(master.port()).await,
        Server::sentinel(master.port()).await,
    ];
    for sentinel in &sentinels {
        until("a quorum that knows both replicas", Duration::from_secs(40), async || {
            let _: String = sentinel.ask(&["SENTINEL", "CKQUORUM", "tillgate"]).await.ok()?;
            let replicas: redis::Value = sentinel.ask(&["SENTINEL", "REPLICAS", "tillgate"]).await.ok()?;
            matches!(replicas, redis::Value::Array(list) if list.len() == 2).then_some(())
        })
        .await;
    }
    let shop = Process::shop(&[]).await;
    let list: Vec<String> = sentinels.iter().map(|one| format!("\"{}\"", one.url())).collect();
    let table = format!(
        "sentinels = [{}]\nmaster = \"tillgate\"\nreplicas = 1\nquarantine_secs = 2",
        list.join(", ")
    );
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let config = Config { shop: &shop.address, redis: Some(&table), ..Config::default() };
    let gateways = [
        Process::serve(&config.write(folders[0].path()), &[]).await,
        Process::serve(&config.write(folders[1].path()), &[]).await,
    ];
    let bases: Vec<String> = gateways.iter().map(|gateway| gateway.address.clone()).collect();
    let load = Load::start(&bases);
    tokio::time::sleep(Duration::from_secs(2)).await;
    signal(laggard.process(), "STOP");
    // From here on only the other replica has what is written.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let broken = Instant::now();
    signal(up_to_date.process(), "STOP");
    master.kill();
    signal(laggard.process(), "CONT");
    until("the laggard is the master", Duration::from_secs(40), async || {
        let role: redis::Value = laggard.ask(&["ROLE"]).await.ok()?;
        let redis::Value::Array(list) = role else { return None };
        let role: String = redis::from_redis_value(list.into_iter().next()?).ok()?;
        (role == "master").then_some(())
    })
    .await;
    println!("the laggard is the master {:.1} s after", broken.elapsed().as_secs_f32());
    signal(up_to_date.process(), "CONT");
    tokio::time::sleep(Duration::from_secs(8)).await;
    let (all, refusals) = load.end().await;
    judge("sentinel failover", &shop, &bases[0], &all, &refusals, broken).await;
}

/// Three masters; the slot in which the shop's keys lie moves on, key by key, while agents buy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_moves_the_shops_slot() {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let bus = free_port().to_string();
        let more = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", "5000"];
        let Some(node) = Server::start(&more).await else { return };
        nodes.push((node, bus));
    }
    let bounds = ["0", "5461", "10922", "16384"];
    for (at, (node, _)) in nodes.iter().enumerate() {
        let last = (bounds[at + 1].parse::<u32>().unwrap() - 1).to_string();
        let _: String = node.ask(&["CLUSTER", "ADDSLOTSRANGE", bounds[at], &last]).await.unwrap();
        let (first, (port, bus)) = (&nodes[0].0, (node.port().to_string(), &nodes[at].1));
        if at > 0 {
            let _: String = first.ask(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]).await.unwrap();
        }
    }
    for (node, _) in &nodes {
        until("the cluster is one", Duration::from_secs(30), async || {
            let info: String = node.ask(&["CLUSTER", "INFO"]).await.ok()?;
            (info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")).then_some(())
        })
        .await;
    }
    let shop = Process::shop(&[]).await;
    let list: Vec<String> = nodes.iter().map(|(one, _)| format!("\"{}\"", one.url())).collect();
    let table = format!("cluster = [{}]\nquarantine_secs = 1", list.join(", "));
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let config = Config { shop: &shop.address, redis: Some(&table), ..Config::default() };
    let gateways = [
        Process::serve(&config.write(folders[0].path()), &[]).await,
        Process::serve(&config.write(folders[1].path()), &[]).await,
    ];
    let bases: Vec<String> = gateways.iter().map(|gateway| gateway.address.clone()).collect();
    let load = Load::start(&bases);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let broken = Instant::now();
    let slot: i64 = nodes[0].0.ask(&["CLUSTER", "KEYSLOT", "{flower}"]).await.unwrap();
    let mut holder = usize::try_from(slot * 3 / 16384).unwrap();
    let mut moved = 0;
    for _ in 0..2 {
        let next = (holder + 1) % 3;
        moved += move_slot(&nodes[holder].0, &nodes[next].0, slot, &nodes).await;
        holder = next;
    }
    let took = broken.elapsed();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (all, refusals) = load.end().await;
    println!("slot {slot} moved twice, {moved} keys, in {:.1} s", took.as_secs_f32());
    judge("cluster resharding", &shop, &bases[0], &all, &refusals, broken).await;
}

/// Moves a slot as `redis-cli --cluster reshard` does, a few keys at a time.
async fn move_slot(from: &Server, to: &Server, slot: i64, nodes: &[(Server, String)]) -> usize {
    let name = async |server: &Server| server.ask::<String>(&["CLUSTER", "MYID"]).await.unwrap();
    let (from_name, to_name, slot) = (name(from).await, name(to).await, slot.to_string());
    let _: String = to.ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_name]).await.unwrap();
    let _: String = from.ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_name]).await.unwrap();
    let port = to.port().to_string();
    let mut moved = 0;
    loop {
        let keys: Vec<String> = from.ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "20"]).await.unwrap();
        if keys.is_empty() {
            break;
        }
        let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        command.extend(keys.iter().map(String::as_str));
        let _: String = from.ask(&command).await.unwrap();
        moved += keys.len();
    }
    for node in [to, from].into_iter().chain(nodes.iter().map(|(node, _)| node)) {
        let _: String = node.ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_name]).await.unwrap();
    }
    moved
}
