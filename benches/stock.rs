//! What holding, pinning and closing units costs under contention, on both back ends: 64 tasks on one product, and on a
//! thousand.
//!
//! ```sh
//! cargo bench --bench stock              # STOCK_SECS=10 for longer
//! ```
//!
//! What counts are the ratios (one product against a thousand, SQLite against Redis), not the numbers of one machine.
//! Redis is measured where there is a `redis-server`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    dead_code,
    reason = "a program that prints; it shares helpers with the tests"
)]

#[path = "../tests/it/support/redis.rs"]
mod redis_server;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::{ClaimEnd, Commit, State, StockStep, StockTurn},
    },
    clock::{Ids, SystemClock},
    state::{
        Retention, Sqlite,
        redis::{Place, Redis, SecretUrl, Settings},
    },
    stock::{Close, Reading, Reserve, Reserved, Source, StockId, Units, Upper},
};

/// Tasks at once.
const TASKS: usize = 64;
const PRODUCTS: [usize; 2] = [1, 1000];

fn shop() -> ShopId {
    ShopId::new("flower")
}

fn retention() -> Retention {
    Retention { answers: chrono::Duration::hours(25), sessions: chrono::Duration::days(30) }
}

fn units(product: usize) -> Vec<Units> {
    vec![Units { stock: StockId::new(product.to_string()), quantity: 1 }]
}

/// What is done again and again.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// A hold, given back.
    Hold,
    /// An order: admitted, pinned, closed.
    Order,
}

const WORKS: [(Work, &str); 2] =
    [(Work::Hold, "reserve + give back"), (Work::Order, "reserve + pin + close")];

/// There is enough: so orders run in parallel.
async fn refill(state: &dyn State, products: usize) {
    let from = state.observe(&shop(), Vec::new()).await.unwrap();
    let reading = |product: usize| Reading {
        stock: StockId::new(product.to_string()),
        upper: Upper::Number(1_000_000),
        lower: Some(1_000_000),
        takes_off_pending: false,
        source: Source::WcV3,
        from,
    };
    state.observe(&shop(), (0..products).map(reading).collect()).await.unwrap();
}

async fn turn(state: &dyn State, session: &str, units: Vec<Units>, turn: StockTurn) {
    let stock = Some(StockStep { session: SessionId::new(session), units, turn });
    let (operation, claim, sightings) = (Ids.uuid(), ClaimEnd::Keep, Vec::new());
    state.commit(Commit { shop: shop(), operation, session: None, claim, sightings, stock }).await.unwrap();
}

async fn once(state: &dyn State, work: Work, session: &str, product: usize) {
    let enter = matches!(work, Work::Order);
    let wish = Reserve { session: session.into(), units: units(product), hold_ms: 60_000, enter };
    // Asked again until it is let through: the gate opens when what runs is covered.
    loop {
        match state.reserve(&shop(), wish.clone()).await.unwrap() {
            Reserved::Admitted { .. } => break,
            Reserved::Waiting { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    if enter {
        turn(state, session, units(product), StockTurn::Pin(Vec::new())).await;
        turn(state, session, units(product), StockTurn::Close(Close::Released)).await;
    } else {
        state.give_back(&shop(), &SessionId::new(session), units(product)).await.unwrap();
    }
}

/// How often a second, and how long one takes: p50 and p99, ms.
struct Figures {
    rate: f64,
    p50: f64,
    p99: f64,
}

async fn measure(state: &Arc<dyn State>, work: Work, products: usize, length: Duration) -> Figures {
    refill(&**state, products).await;
    let end = Instant::now() + length;
    let refilling = {
        let state = Arc::clone(state);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                refill(&*state, products).await;
            }
        })
    };
    let tasks = (0..TASKS).map(|task| {
        let state = Arc::clone(state);
        tokio::spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < end {
                let begun = Instant::now();
                let product = (task + times.len() * TASKS) % products;
                once(&*state, work, &format!("s{task}"), product).await;
                times.push(begun.elapsed());
            }
            times
        })
    });
    let all = futures::future::join_all(tasks).await;
    refilling.abort();
    let mut times: Vec<Duration> = all.into_iter().flat_map(Result::unwrap).collect();
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1000.0;
    Figures { rate: times.len() as f64 / length.as_secs_f64(), p50: at(0.5), p99: at(0.99) }
}

async fn measured(name: &str, state: Arc<dyn State>, length: Duration) -> Vec<Figures> {
    let mut all = Vec::new();
    for (work, title) in WORKS {
        for products in PRODUCTS {
            let figures = measure(&state, work, products, length).await;
            let Figures { rate, p50, p99 } = &figures;
            println!(
                "{name:<7} {title:<22} {products:>5} products: {rate:8.0}/s, p50 {p50:7.2} ms, p99 {p99:7.2} ms"
            );
            all.push(figures);
        }
    }
    for (at, (_, title)) in WORKS.iter().enumerate() {
        let ratio = all[2 * at].rate / all[2 * at + 1].rate;
        println!("{name:<7} {title:<22} one product against a thousand: x{ratio:.2}");
    }
    all
}

#[tokio::main]
async fn main() {
    let secs = std::env::var("STOCK_SECS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let length = Duration::from_secs(secs);
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    println!("{TASKS} tasks at once, {secs} s each");
    let sqlite: Arc<dyn State> = Arc::new(Sqlite::open(folder.path(), retention(), clock.clone()).unwrap());
    let sqlite = measured("SQLite", sqlite, length).await;
    let Some(server) = redis_server::Server::start(&[]).await else { return };
    let settings = Settings {
        place: Place::Server(SecretUrl(server.url().into())),
        prefix: "tillgate".into(),
        replicas: None,
        quarantine: Duration::from_secs(30),
        shops: vec![shop()],
        retention: retention(),
        admit_unsafe: false,
    };
    let redis: Arc<dyn State> = Arc::new(Redis::open(settings, clock).await.unwrap());
    let beating = Arc::clone(&redis);
    let beats = tokio::spawn(async move {
        loop {
            tokio::time::sleep(tillgate::checkout::state::BEAT).await;
            beating.beat().await.unwrap();
        }
    });
    let redis = measured("Redis", redis, length).await;
    beats.abort();
    for (at, (ours, theirs)) in redis.iter().zip(&sqlite).enumerate() {
        let (title, products) = (WORKS[at / 2].1, PRODUCTS[at % 2]);
        println!("Redis against SQLite: {title:<22} {products:>5} products: x{:.2}", ours.rate / theirs.rate);
    }
}
