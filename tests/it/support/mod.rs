//! A whole gateway in a test: the real application over the demo shop (or a tape) on loopback, embedded
//! state in a temporary folder, a clock that the test moves.
//!
//! Every answer is also written to a file of the test run, so that all of them can be held against the
//! official schemas afterwards (`scripts/check-responses`).

pub mod chaos;
pub mod clients;
pub mod config;
pub mod process;
pub mod program;
pub mod record;
pub mod redis;
pub mod roses;
pub mod sides;

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Method, Request},
};
use chrono::{TimeZone as _, Utc};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tempfile::TempDir;
use tillgate::{
    app::{self, App, Environment},
    clock::{Clock, ManualClock},
    config::Settings,
    store::{
        demo::{self, DemoShop, Seed},
        tape::{self, Tape},
    },
};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

pub use clients::{Acp, Ucp};

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: axum::http::HeaderMap,
    pub bytes: Vec<u8>,
    pub json: Value,
}

impl Reply {
    /// The answer, if it has this status; else a failure that shows it.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.json);
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        let found = self.json.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("no text at {pointer} in {}", self.json))
    }

    #[track_caller]
    pub fn id(&self) -> String {
        self.text("/id").to_owned()
    }

    /// The amount of the one total of that type.
    #[track_caller]
    pub fn total(&self, kind: &str) -> i64 {
        let entry = self.json["totals"].as_array().and_then(|list| list.iter().find(|t| t["type"] == kind));
        entry.and_then(|t| t["amount"].as_i64()).unwrap_or_else(|| panic!("no total {kind} in {}", self.json))
    }

    /// The codes of the messages.
    pub fn codes(&self) -> Vec<String> {
        let messages = self.json["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().map(|m| m["code"].as_str().unwrap_or("-").to_owned()).collect()
    }
}

/// What stands behind the gateway.
enum Behind {
    Shops { flower: DemoShop, general: DemoShop },
    Tape,
}

/// A gateway under test.
pub struct TestApp {
    pub app: App,
    router: Router,
    behind: Behind,
    pub clock: Arc<ManualClock>,
    pub shop_url: String,
    folder: Arc<TempDir>,
    /// What the test wants other than the demo's settings; also after a restart.
    tune: Tune,
    /// Asks the shop what it was asked.
    probe: reqwest::Client,
}

/// A change of the demo's settings.
pub type Tune = fn(&mut Settings);

fn probe() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn start_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()))
}

impl TestApp {
    /// The demo: flower shop on `127.0.0.1`, general shop on `general.localhost`.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The demo with other settings (deadlines and the like).
    pub async fn with(tune: Tune) -> Self {
        Self::over_shops(start_clock(), Arc::new(tempfile::tempdir().unwrap()), None, tune).await
    }

    /// The same gateway after a restart: same folder, same shop, same time.
    pub async fn restarted(self) -> Self {
        let Self { app, router, clock, folder, behind, tune, .. } = self;
        let Behind::Shops { flower, general } = behind else { panic!("only a gateway over shops restarts") };
        drop((app, router));
        Self::over_shops(clock, folder, Some((flower, general)), tune).await
    }

    async fn over_shops(
        clock: Arc<ManualClock>,
        folder: Arc<TempDir>,
        shops: Option<(DemoShop, DemoShop)>,
        tune: Tune,
    ) -> Self {
        let shop_clock: Arc<dyn Clock> = clock.clone();
        let (flower, general) = shops.unwrap_or_else(|| {
            let open = |seed| DemoShop::open(seed, None, Arc::clone(&shop_clock)).unwrap();
            (open(Seed::Flower), open(Seed::General))
        });
        let shop_url = listen(demo::router(flower.clone(), general.clone())).await;
        let mut settings = app::demo_settings(&shop_url, &folder.path().join("gateway")).unwrap();
        tune(&mut settings);
        let environment = Environment { clock: clock.clone(), pins: app::demo_pins(), probe: None };
        let app = App::build(&settings, environment).await.unwrap();
        let behind = Behind::Shops { flower, general };
        Self { router: app.router(), app, behind, clock, shop_url, folder, tune, probe: probe() }
    }

    /// The demo with something in front of its shops: `between` is told where they are, and says where the
    /// gateway shall look for them.
    pub async fn behind(between: impl AsyncFnOnce(String) -> String) -> Self {
        let app = Self::new().await;
        let address = between(app.shop_url.clone()).await;
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let settings = app::demo_settings(&address, &folder.path().join("gateway")).unwrap();
        let environment = Environment { clock: app.clock.clone(), pins: app::demo_pins(), probe: None };
        let gateway = App::build(&settings, environment).await.unwrap();
        Self { router: gateway.router(), app: gateway, folder, ..app }
    }

    /// A gateway over recordings: a file of `fixtures/store`, or any other by its whole path.
    pub async fn replay(fixture: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/store").join(fixture);
        let shop_url = listen(tape::router(Arc::new(Tape::load(&path).unwrap()))).await;
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let clock = start_clock();
        let settings = app::replay_settings(&shop_url, folder.path()).unwrap();
        let environment = Environment { clock: clock.clone(), pins: app::demo_pins(), probe: None };
        let app = App::build(&settings, environment).await.unwrap();
        let router = app.router();
        Self { router, app, behind: Behind::Tape, clock, shop_url, folder, tune: |_| {}, probe: probe() }
    }

    /// UCP at the flower shop.
    pub fn ucp(&self) -> Ucp<'_> {
        Ucp::new(self, "127.0.0.1", "/ucp")
    }

    /// ACP at the flower shop.
    pub fn acp(&self) -> Acp<'_> {
        Acp::new(self, "127.0.0.1")
    }

    /// UCP at the general shop.
    pub fn general_ucp(&self) -> Ucp<'_> {
        Ucp::new(self, "general.localhost", "/ucp")
    }

    /// ACP at the general shop.
    pub fn general_acp(&self) -> Acp<'_> {
        Acp::new(self, "general.localhost")
    }

    /// Moves time on, for gateway and shop.
    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub fn flower(&self) -> &DemoShop {
        match &self.behind {
            Behind::Shops { flower, .. } => flower,
            Behind::Tape => panic!("a tape has no shop"),
        }
    }

    pub fn general(&self) -> &DemoShop {
        match &self.behind {
            Behind::Shops { general, .. } => general,
            Behind::Tape => panic!("a tape has no shop"),
        }
    }

    /// Sends a request as it is; the answer is recorded.
    pub async fn send(&self, request: Request<Body>) -> Reply {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let reply = Reply { status: parts.status.as_u16(), headers: parts.headers, bytes, json };
        record::record(&method, &path, &reply);
        reply
    }

    /// How many sessions the gateway has ever made.
    pub fn sessions_made(&self) -> i64 {
        self.state(|state| state.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap())
    }

    /// The gateway's memory cannot be used any more: its claims are gone.
    pub fn break_state(&self) {
        self.state(|state| state.execute("ALTER TABLE claims RENAME TO claims_away", []).unwrap());
    }

    /// Undoes [`Self::break_state`].
    pub fn mend_state(&self) {
        self.state(|state| state.execute("ALTER TABLE claims_away RENAME TO claims", []).unwrap());
    }

    /// Looks into the file of the state, or bends it.
    pub fn state<T>(&self, act: impl FnOnce(&rusqlite::Connection) -> T) -> T {
        let mut files = self.state_files().into_iter();
        let file = files.find(|path| path.extension().is_some_and(|end| end == "sqlite")).unwrap();
        act(&rusqlite::Connection::open(file).unwrap())
    }

    /// All that the gateway has written to its folder.
    pub fn stored_bytes(&self) -> Vec<u8> {
        self.state_files().into_iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
    }

    fn state_files(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.folder.path().join("gateway")).unwrap();
        folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
    }

    pub async fn get(&self, path: &str) -> Reply {
        let request = Request::builder().method(Method::GET).uri(path).header("host", "127.0.0.1");
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// What the shops were asked, as `METHOD path` without query, since the last time.
    pub async fn shop_calls(&self) -> Vec<String> {
        let client = &self.probe;
        let mut calls = Vec::new();
        for base in ["", "/general"] {
            let url = format!("{}{base}/_demo/calls", self.shop_url);
            let answer: Value = client.get(&url).send().await.unwrap().json().await.unwrap();
            let list = answer["calls"].as_array().cloned().unwrap_or_default();
            calls.extend(list.iter().map(|call| {
                let path = call["path"].as_str().unwrap_or_default();
                format!(
                    "{} {}",
                    call["method"].as_str().unwrap_or_default(),
                    path.split('?').next().unwrap_or_default()
                )
            }));
            client.delete(&url).send().await.unwrap();
        }
        calls
    }
}

/// Serves a router on a free port of loopback and returns its address.
pub async fn listen(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    format!("http://{address}")
}
