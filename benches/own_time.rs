//! What the gateway itself costs: time per request and group-commit throughput, on both back ends, with a shop that
//! costs nothing.
//!
//! ```sh
//! cargo bench --bench own_time            # OWN_TIME_ROUNDS=2000 for more
//! ```
//!
//! Everything is measured in one run and printed; what counts are the ratios (SQLite against Redis, one session
//! against many), not the numbers of one machine. Redis is measured where there is a `redis-server`.
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
#[path = "../tests/it/support/roses.rs"]
mod roses;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
};
use serde_json::{Value, json};
use tillgate::{
    checkout::{ids::ShopId, state::State},
    clock::{Ids, SystemClock},
    state::{
        Retention, Sqlite,
        redis::{Place, Redis, SecretUrl, Settings},
    },
};
use tower::ServiceExt as _;

/// How long a throughput is measured.
const THROUGHPUT: Duration = Duration::from_secs(3);
const SESSIONS: [usize; 3] = [1, 16, 64];

fn retention() -> Retention {
    Retention { answers: chrono::Duration::hours(25), sessions: chrono::Duration::days(30) }
}

async fn call(router: &Router, method: &str, path: &str, key: &str, body: Option<&Value>) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("ucp-agent", "profile=\"https://agent.example/p\"")
        .header("idempotency-key", key)
        .header("content-type", "application/json");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

fn body(quantity: usize) -> Value {
    json!({
        "line_items": [{"item": {"id": "roses"}, "quantity": quantity}],
        "buyer": {"first_name": "Ada", "last_name": "Byron", "email": "ada@example.org"},
        "fulfillment": {"methods": [{"type": "shipping", "selected_destination_id": "home",
            "destinations": [{"id": "home", "street_address": "12 Main Street", "address_locality": "Springfield",
                "address_region": "CA", "postal_code": "90210", "address_country": "US"}],
            "groups": [{"id": "group_1", "selected_option_id": "std"}]}]}
    })
}

fn payment() -> Value {
    json!({"payment": {"instruments": [{"id": "pi_1", "handler_id": "mock_payment_handler", "type": "card",
        "selected": true, "credential": {"type": "token", "token": "tok_ok"}}]}})
}

/// Times of one operation, in the order measured.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    async fn of<T>(&mut self, work: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let result = work.await;
        self.0.push(begun.elapsed());
        result
    }

    fn at(&mut self, part: f64) -> f64 {
        self.0.sort_unstable();
        let index = ((self.0.len() - 1) as f64 * part).round() as usize;
        self.0[index].as_secs_f64() * 1000.0
    }
}

const OPERATIONS: [&str; 5] = ["create", "update", "get", "complete", "replay"];

/// p50 and p99 of each operation, ms.
async fn latencies(router: &Router, rounds: usize) -> Vec<(f64, f64)> {
    let mut times: [Times; 5] = Default::default();
    for _ in 0..rounds {
        let (key, first) = (Ids.uuid(), body(1));
        let create = call(router, "POST", "/ucp/checkout-sessions", &key, Some(&first));
        let (status, made) = times[0].of(create).await;
        assert_eq!(status, 201, "{made}");
        let path = format!("/ucp/checkout-sessions/{}", made["id"].as_str().unwrap());
        let (status, changed) = times[1].of(call(router, "PUT", &path, &Ids.uuid(), Some(&body(2)))).await;
        assert_eq!((status, &changed["status"]), (200, &json!("ready_for_complete")), "{changed}");
        times[2].of(call(router, "GET", &path, "", None)).await;
        let (complete, key, paid) = (format!("{path}/complete"), Ids.uuid(), payment());
        let (status, done) = times[3].of(call(router, "POST", &complete, &key, Some(&paid))).await;
        assert_eq!((status, &done["status"]), (200, &json!("completed")), "{done}");
        let (_, again) = times[4].of(call(router, "POST", &complete, &key, Some(&paid))).await;
        assert_eq!(again, done);
    }
    times.iter_mut().map(|times| (times.at(0.5), times.at(0.99))).collect()
}

/// Updates a second, by so many sessions at once.
async fn throughput(router: &Router, sessions: usize) -> f64 {
    let end = Instant::now() + THROUGHPUT;
    let work = (0..sessions).map(|_| {
        let router = router.clone();
        tokio::spawn(async move {
            let (_, made) =
                call(&router, "POST", "/ucp/checkout-sessions", &Ids.uuid(), Some(&body(1))).await;
            let path = format!("/ucp/checkout-sessions/{}", made["id"].as_str().unwrap());
            let mut done = 0_usize;
            while Instant::now() < end {
                let update = body(1 + done % 3);
                let (status, changed) = call(&router, "PUT", &path, &Ids.uuid(), Some(&update)).await;
                assert_eq!(status, 200, "{changed}");
                done += 1;
            }
            done
        })
    });
    let done: usize = futures::future::join_all(work).await.into_iter().map(Result::unwrap).sum();
    done as f64 / THROUGHPUT.as_secs_f64()
}

struct Figures {
    name: &'static str,
    latencies: Vec<(f64, f64)>,
    throughput: Vec<f64>,
}

async fn measure(name: &'static str, state: Arc<dyn State>, secret: Vec<u8>, rounds: usize) -> Figures {
    let data = Arc::new(tempfile::tempdir().unwrap());
    let shop = Arc::new(roses::Roses::default());
    let gateway = roses::gateway(shop, state, secret, data, Arc::new(SystemClock), None);
    latencies(&gateway.router, rounds / 10 + 1).await;
    let latencies = latencies(&gateway.router, rounds).await;
    let mut figures = Vec::new();
    for sessions in SESSIONS {
        figures.push(throughput(&gateway.router, sessions).await);
    }
    Figures { name, latencies, throughput: figures }
}

fn print(all: &[Figures]) {
    let first = &all[0];
    println!("own time per request, ms (p50 / p99), shop at 0 ms, one request at a time");
    for (at, operation) in OPERATIONS.iter().enumerate() {
        print!("{operation:<10}");
        for figures in all {
            let (p50, p99) = figures.latencies[at];
            print!("  {} {p50:7.3} / {p99:7.3} (x{:.2})", figures.name, p50 / first.latencies[at].0);
        }
        println!();
    }
    println!(
        "updates a second, by sessions at once (each is two durable steps: claim, and session with answer)"
    );
    for (at, sessions) in SESSIONS.iter().enumerate() {
        print!("{sessions:<10}");
        for figures in all {
            let (rate, one) = (figures.throughput[at], figures.throughput[0]);
            print!("  {} {rate:8.0}/s (x{:.1} of one session)", figures.name, rate / one);
        }
        println!();
    }
}

#[tokio::main]
async fn main() {
    let rounds = std::env::var("OWN_TIME_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let sqlite = Sqlite::open(folder.path(), retention(), clock.clone()).unwrap();
    let secret = sqlite.secret().to_vec();
    let mut all = vec![measure("SQLite", Arc::new(sqlite), secret, rounds).await];
    if let Some(server) = redis_server::Server::start(&[]).await {
        let settings = Settings {
            place: Place::Server(SecretUrl(server.url().into())),
            prefix: "tillgate".into(),
            replicas: None,
            quarantine: Duration::from_secs(30),
            shops: vec![ShopId::new("flower")],
            retention: retention(),
            admit_unsafe: false,
        };
        let redis = Redis::open(settings, clock).await.unwrap();
        let secret = redis.secret().to_vec();
        let redis: Arc<dyn State> = Arc::new(redis);
        let beating = Arc::clone(&redis);
        let beats = tokio::spawn(async move {
            loop {
                tokio::time::sleep(tillgate::checkout::state::BEAT).await;
                beating.beat().await.unwrap();
            }
        });
        all.push(measure("Redis", redis, secret, rounds).await);
        beats.abort();
    }
    print(&all);
}
