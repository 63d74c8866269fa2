//! Random interleavings through the HTTP router with the real back ends and the demo shop over TCP (T3, T4).
//!
//! Two to four operations on one session are held at every named point, and let go in a random order, one at a time,
//! when nothing else moves. `INTERLEAVINGS=10000` runs that many on each back end; a failure names its seed
//! (`INTERLEAVING_SEED=…` starts there).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::http::Method;
use futures::{StreamExt as _, future::BoxFuture};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};
use tillgate::{
    checkout::{
        ids::SessionId,
        points::{Point, Probe},
    },
    clock::SystemClock,
};
use tokio::sync::{Notify, oneshot};

use super::{house::House, live, order_number};
use crate::support::{
    Reply,
    chaos::Act,
    process::{Side, is_final, often, purchase},
    redis::Server,
};

/// Nothing has moved for so long: it is quiet.
const QUIET: Duration = Duration::from_millis(4);
/// Cases of one world: then shop and state are made anew.
const CASES_PER_WORLD: usize = 1000;
/// Cases at a time.
const AT_A_TIME: usize = 48;

/// Who holds work at the points, by session.
#[derive(Default)]
struct Board(Mutex<HashMap<SessionId, Arc<Case>>>);

/// What is held of one session. `None`: it is open, nothing is held any more.
struct Case {
    held: Mutex<Option<Vec<oneshot::Sender<()>>>>,
    moved: Notify,
}

impl Case {
    /// Holds somebody until it is let go.
    fn hold(&self) -> Option<oneshot::Receiver<()>> {
        let mut held = self.held.lock().unwrap();
        let (go, gone) = oneshot::channel();
        held.as_mut()?.push(go);
        self.moved.notify_one();
        Some(gone)
    }

    fn count(&self) -> usize {
        self.held.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    fn let_one_go(&self, rng: &mut StdRng) {
        if let Some(held) = self.held.lock().unwrap().as_mut()
            && !held.is_empty()
        {
            let at = rng.random_range(0..held.len());
            // Who was held may have been given up.
            let _ = held.swap_remove(at).send(());
        }
    }
}

impl Probe for Board {
    fn at(&self, _: Point, session: Option<&SessionId>) -> BoxFuture<'static, ()> {
        let case = session.and_then(|id| self.0.lock().unwrap().get(id).cloned());
        Box::pin(async move {
            if let Some(gone) = case.and_then(|case| case.hold()) {
                let _ = gone.await;
            }
        })
    }
}

/// What an agent or the gateway does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Complete(&'static str),
    Update,
    Cancel,
    Get,
    Tend,
}

const OPERATIONS: [Operation; 8] = [
    Operation::Complete("one"),
    Operation::Complete("one"),
    Operation::Complete("one"),
    Operation::Complete("two"),
    Operation::Update,
    Operation::Cancel,
    Operation::Get,
    Operation::Tend,
];

/// What the payments come to; most succeed.
const TOKENS: [&str; 8] = [
    "success_token",
    "success_token",
    "success_token",
    "success_token",
    "lost_answer_token",
    "lost_answer_token",
    "fail_token",
    "tok_declined_silent",
];

/// What a case has shown: who bought, and every answer under each key, in order of their arrival.
struct Shown {
    seed: u64,
    email: String,
    operations: Vec<Operation>,
    token: &'static str,
    side: Side,
    answers: BTreeMap<&'static str, Vec<Reply>>,
    others: Vec<Reply>,
    last: Reply,
}

/// Runs one case.
async fn case(house: &Arc<House>, board: &Arc<Board>, seed: u64) -> Shown {
    let mut rng = StdRng::seed_from_u64(seed);
    let side = if rng.random_bool(0.5) { Side::Ucp } else { Side::Acp };
    let token = *TOKENS.choose(&mut rng).unwrap();
    let mut operations = vec![Operation::Complete("one")];
    for _ in 0..rng.random_range(1..=3) {
        operations.push(*OPERATIONS.choose(&mut rng).unwrap());
    }
    let email = format!("case-{seed}@example.org");
    // Some connections break: whose POST it is, is left to chance, but for one that pays. (A decline whose answer is
    // lost is told after two minutes; `lost` has those.)
    if rng.random_bool(0.15) {
        let act = *[Act::CutBefore, Act::CutInside, Act::CutAfter, Act::CutAnswer].choose(&mut rng).unwrap();
        drop(house.proxy.next("success_token", act));
    }
    let id = house.ready(rng.random_range(0..2), side, &email).await;
    let case = Arc::new(Case { held: Mutex::new(Some(Vec::new())), moved: Notify::new() });
    board.0.lock().unwrap().insert(SessionId::new(id.clone()), Arc::clone(&case));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    for operation in operations.clone() {
        let (house, case, id, email) = (Arc::clone(house), Arc::clone(&case), id.clone(), email.clone());
        let (at, tell) = (rng.random_range(0..2_usize), tell.clone());
        let start = case.hold();
        tokio::spawn(async move {
            if let Some(start) = start {
                let _ = start.await;
            }
            let key = tillgate::clock::Ids.uuid();
            let reply = match operation {
                Operation::Complete(key) => Some(house.complete(at, side, &id, key, token).await),
                Operation::Update => {
                    let mut body = purchase(side, &email);
                    body["line_items"][0]["quantity"] = json!(2);
                    let method = if side == Side::Ucp { Method::PUT } else { Method::POST };
                    Some(house.call(at, side, method, &format!("/{id}"), &key, Some(&body)).await)
                }
                Operation::Cancel => {
                    Some(house.call(at, side, Method::POST, &format!("/{id}/cancel"), &key, None).await)
                }
                Operation::Get => Some(house.get(at, side, &id).await),
                Operation::Tend => {
                    house.apps[at % house.apps.len()].tend().await;
                    None
                }
            };
            drop(tell.send((operation, reply)));
            case.moved.notify_one();
        });
    }
    drop(tell);
    let mut answers: BTreeMap<&'static str, Vec<Reply>> = BTreeMap::new();
    let mut others = Vec::new();
    let mut running = operations.len();
    let begun = Instant::now();
    while running > 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "seed {seed}: {operations:?} never ended");
        while let Ok((operation, reply)) = told.try_recv() {
            running -= 1;
            match (operation, reply) {
                (Operation::Complete(key), Some(reply)) => answers.entry(key).or_default().push(reply),
                (_, Some(reply)) => others.push(reply),
                (_, None) => {}
            }
        }
        // Quiet when all that runs is held, or nothing has moved for a while.
        let quiet =
            case.count() >= running || tokio::time::timeout(QUIET, case.moved.notified()).await.is_err();
        if quiet {
            case.let_one_go(&mut rng);
            tokio::task::yield_now().await;
        }
    }
    // Open: what else comes to a point goes on.
    case.held.lock().unwrap().take();
    for key in ["one", "two"] {
        if !answers.contains_key(key) {
            continue;
        }
        let mut last = 0;
        // The last word, and the same once more.
        while last < 2 {
            let stuck = begun.elapsed() > Duration::from_secs(90);
            assert!(!stuck, "seed {seed}: the key {key} is stuck, {token}: {:?}", answers[key].last());
            let reply = house.complete(rng.random_range(0..2), side, &id, key, token).await;
            last += usize::from(is_final(&reply));
            answers.entry(key).or_default().push(reply);
            if last == 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    let last = house.get(0, side, &id).await;
    board.0.lock().unwrap().remove(&SessionId::new(id));
    Shown { seed, email, operations, token, side, answers, others, last }
}

/// What is wrong with a case.
fn judge(shown: &Shown, orders: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let alive = live(orders);
    if alive > 1 {
        wrong.push(format!("{alive} live orders"));
    }
    for (key, replies) in &shown.answers {
        let finals: Vec<&Reply> = replies.iter().filter(|reply| is_final(reply)).collect();
        if finals.iter().any(|reply| (reply.status, &reply.bytes) != (finals[0].status, &finals[0].bytes)) {
            let told: Vec<String> =
                finals.iter().map(|reply| format!("{} {}", reply.status, reply.json)).collect();
            wrong.push(format!("the key {key} has several last words: {told:#?}"));
        }
    }
    let all = shown.answers.values().flatten().chain(&shown.others).chain([&shown.last]);
    for reply in all {
        let known = [200, 405, 409, 503].contains(&reply.status);
        if !known || (reply.status == 503 && reply.header("retry-after").is_none()) {
            wrong.push(format!("an answer nobody expects: {} {}", reply.status, reply.json));
        }
        let number = order_number(reply);
        let has =
            orders.iter().any(|order| order["id"].as_u64().map(|id| id.to_string()).as_deref() == number);
        if reply.json["status"] == "completed" && reply.status == 200 && !has {
            wrong.push(format!("completed without its order: {}", reply.json));
        }
    }
    let completed = shown.last.json["status"] == "completed";
    if completed != (alive == 1) {
        wrong.push(format!(
            "the session says {}, the shop has {alive} live orders",
            shown.last.json["status"]
        ));
    }
    wrong
}

async fn run(name: &str, redis: Option<&Server>, small: usize) {
    let count = often("INTERLEAVINGS", small);
    let first: u64 = std::env::var("INTERLEAVING_SEED").map_or(1, |text| text.parse().unwrap());
    let begun = Instant::now();
    let mut wrong = Vec::new();
    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    let mut done = 0;
    while done < count {
        let cases = CASES_PER_WORLD.min(count - done);
        let board = Arc::new(Board::default());
        let probe: Arc<dyn Probe> = board.clone();
        let mut house = House::open(Arc::new(SystemClock), Some(probe), redis, |settings| {
            settings.checkout.settle_wait_secs = 1;
            settings.checkout.complete_wait_secs = 1;
        })
        .await;
        // The files of a full run would be huge; the first cases show every kind of answer.
        house.recording = done == 0 && count <= 1000;
        let house = Arc::new(house);
        let tending = tokio::spawn({
            let house = Arc::clone(&house);
            async move {
                loop {
                    for app in &house.apps {
                        app.tend().await;
                    }
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            }
        });
        let seeds = (0..cases).map(|at| first + u64::try_from(done + at).unwrap());
        let shown: Vec<Shown> = futures::stream::iter(seeds)
            .map(|seed| {
                let (house, board) = (Arc::clone(&house), Arc::clone(&board));
                async move { tokio::spawn(async move { case(&house, &board, seed).await }).await.unwrap() }
            })
            .buffer_unordered(AT_A_TIME)
            .collect()
            .await;
        tending.abort();
        let mut orders: HashMap<String, Vec<Value>> = HashMap::new();
        for order in house.shop.orders().as_array().cloned().unwrap_or_default() {
            orders.entry(order["email"].as_str().unwrap_or_default().to_owned()).or_default().push(order);
        }
        for shown in &shown {
            let said = shown.last.json["status"].as_str().unwrap_or("-").to_owned();
            *tally.entry(said).or_default() += 1;
            let found = judge(shown, orders.get(&shown.email).map_or(&[], Vec::as_slice));
            if !found.is_empty() {
                let Shown { seed, operations, token, side, .. } = shown;
                wrong.push(format!("seed {seed}, {side:?}, {operations:?}, {token}: {}", found.join("; ")));
            }
        }
        done += cases;
    }
    println!(
        "{done} interleavings, state {name}: {} violations, {:.0} s; sessions ended as {tally:?}",
        wrong.len(),
        begun.elapsed().as_secs_f32()
    );
    assert!(wrong.is_empty(), "{}", wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_doubles_or_loses_an_order_with_the_embedded_state() {
    run("embedded", None, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_doubles_or_loses_an_order_over_two_processes_on_redis() {
    let Some(redis) = Server::start(&["--appendfsync", "no"]).await else { return };
    run("Redis, two processes", Some(&redis), 200).await;
}
