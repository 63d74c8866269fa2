//! One run: a shop, a memory, processes over both, agents that speak to them in the real protocols, and what
//! everybody was told.

use std::{
    future::Future,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Method, Request},
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tillgate::{
    app,
    checkout::{
        ids::{SessionId, ShopId},
        outcome::{Outcome, RenderContext, Renderer},
        service::{self, Parts, Service},
        session::Session,
        state::{BEAT, State},
    },
    idempotency::Answer,
    lane::Lanes,
    money::Currency,
    platform::{Document, Pin, Platforms, full_profile},
    protocol::{
        ShopFace,
        acp::{self, Acp},
        shop::{Agent, Links},
        ucp::{self, Ucp},
    },
};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::{
    clock::ProcessClock,
    port::Client,
    schedule::{BEFORE_REPLY, Life, Listener, Phase, Scheduler, Who},
    shop::Shop,
    state::{Guards, Handle, Memory},
};
use crate::support::clients;
use crate::support::roses::empty_catalog;

pub const SHOP: &str = "flower";

/// What differs between runs.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one rule, switched on its own")]
pub struct Config {
    pub guards: Guards,
    pub swallows_fences: bool,
    /// Whether a *placing* that is too old is sent no more.
    pub fences_by_age: bool,
    /// Whether a process whose lease is short sends no more.
    pub fences_by_lease: bool,
    /// Whether a session that was read is given out again for a moment, whatever happened to it.
    pub stale_reads: bool,
    pub finds: bool,
    /// Whether processes look after lost attempts by themselves, as in production.
    pub tends: bool,
}

impl Config {
    pub const USUAL: Self = Self {
        guards: Guards::ALL,
        swallows_fences: false,
        fences_by_age: true,
        fences_by_lease: true,
        stale_reads: false,
        finds: true,
        tends: true,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Ucp,
    Acp,
}

impl Protocol {
    pub const BOTH: [Self; 2] = [Self::Ucp, Self::Acp];
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Create { item: &'static str, quantity: u32, code: bool },
    Get,
    Update { quantity: u32 },
    Complete { token: &'static str },
    Cancel,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub protocol: Protocol,
    /// Which of two agents.
    pub caller: usize,
    pub key: Option<String>,
    pub session: Option<String>,
    pub what: Asked,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Told {
    pub status: u16,
    pub bytes: Vec<u8>,
    pub json: Value,
}

impl Told {
    pub fn text(&self, name: &str) -> &str {
        self.json.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether a repeat must be told the same, byte for byte.
    pub fn is_final(&self) -> bool {
        let in_flight = self.status == 409 && self.text("code") == "idempotency_in_flight";
        self.status < 500 && self.status != 429 && !in_flight && self.text("status") != "complete_in_progress"
    }
}

/// One exchange: `told` is `None` when the process died first. Times are moments of the run.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub ask: Ask,
    pub sent: Instant,
    pub ended: Instant,
    pub told: Option<Told>,
}

/// A process.
pub struct Process {
    pub life: Arc<Life>,
    pub service: Arc<Service>,
    pub state: Arc<dyn State>,
    pub clock: Arc<ProcessClock>,
    ucp: Router,
    acp: Router,
}

pub struct World {
    pub config: Config,
    pub start: Instant,
    pub memory: Arc<Memory>,
    pub shop: Arc<Shop>,
    pub scheduler: Arc<Scheduler>,
    pub processes: Vec<Process>,
    pub history: Arc<Mutex<Vec<Exchange>>>,
}

static PLATFORMS: LazyLock<Arc<Platforms>> = LazyLock::new(|| {
    let pins = PROFILES.map(|url| Pin {
        url: url.to_owned(),
        version: ucp::CURRENT_VERSION.to_owned(),
        document: Document::Value(full_profile(ucp::CURRENT_VERSION, None)),
    });
    Arc::new(Platforms::new(&pins, true).unwrap())
});
const PROFILES: [&str; 2] = ["https://agent.example/profile", "https://spck.dev/agent"];
const TOKENS: [&str; 2] = ["token-of-the-first", "token-of-the-second"];

static FACE: LazyLock<(Arc<ShopFace>, service::Settings)> = LazyLock::new(|| {
    let settings = app::demo_settings("http://127.0.0.1:9", std::path::Path::new("/nowhere")).unwrap();
    let shop = &settings.shops[SHOP];
    let currency = Currency::parse("USD").unwrap();
    let digest = |token: &str| -> [u8; 32] { Sha256::digest(token.as_bytes()).into() };
    let agent = |at: usize| Agent { id: format!("agent-{at}"), token_digests: vec![digest(TOKENS[at])] };
    let https_base = "https://shop.example.com".to_owned();
    let face = ShopFace {
        id: ShopId::new(SHOP),
        title: "Shop".into(),
        public_url: "http://127.0.0.1:9".into(),
        https_base: https_base.clone(),
        home_url: "https://shop.example.com/".parse().unwrap(),
        currency,
        prices_with_tax: false,
        links: Links::default(),
        handlers: shop.handlers.iter().map(tillgate::config::Handler::face).collect(),
        agents: vec![agent(0), agent(1)],
        locales: Vec::new(),
        development: false,
        max_lines: 20,
        max_quantity: 100,
    };
    let settings = service::Settings {
        shop: ShopId::new(SHOP),
        currency,
        handlers: shop.handlers.iter().map(tillgate::config::Handler::mapping).collect(),
        https_base,
        session_life: Duration::from_hours(24),
        complete_wait: Duration::from_millis(25_013),
        snapshot_life: Duration::from_secs(30),
        settle_wait: Duration::from_secs(30),
        retry_hold: Duration::from_mins(10),
        stock_doubt: Duration::from_secs(5),
        self_fence: Duration::from_secs(2),
        stand_ins: None,
        cheapest_first: false,
    };
    (Arc::new(face), settings)
});

/// The real renderers.
struct Faces(Arc<ShopFace>);

impl Renderer for Faces {
    fn render(&self, context: &RenderContext, outcome: &Outcome) -> Answer {
        match context.protocol.as_str() {
            acp::PROTOCOL => acp::render(&self.0, context, outcome),
            _ => ucp::render(&self.0, context, outcome),
        }
    }
}

impl World {
    fn new(config: Config) -> Self {
        let (start, memory, scheduler) =
            (Instant::now(), Memory::new(config.guards), Arc::new(Scheduler::default()));
        let mut shop = Shop::new(Arc::clone(&memory), Arc::clone(&scheduler), start);
        shop.swallows_fences = config.swallows_fences;
        let history = Arc::default();
        Self { config, start, memory, shop: Arc::new(shop), scheduler, processes: Vec::new(), history }
    }

    /// Starts a process; its number.
    pub fn start(&mut self) -> usize {
        let number = self.processes.len();
        let (face, mut settings) = (Arc::clone(&FACE.0), FACE.1.clone());
        if !self.config.fences_by_age {
            settings.self_fence = Duration::MAX;
        }
        let life = Life::new();
        self.scheduler.add(Arc::clone(&life));
        let clock = Arc::new(ProcessClock::new(self.start));
        let known = (number, Arc::clone(&life), Arc::clone(&self.scheduler));
        let mut handle = Handle::open(&self.memory, Some(known), clock.clone());
        handle.stale_reads = self.config.stale_reads;
        handle.endless_lease = !self.config.fences_by_lease;
        let state: Arc<dyn State> = Arc::new(handle);
        let tasks = TaskTracker::new();
        let store = Client {
            shop: Arc::clone(&self.shop),
            process: number,
            life: Arc::clone(&life),
            finds: self.config.finds,
        };
        let parts = Parts {
            store: Arc::new(store),
            state: Arc::clone(&state),
            lanes: Lanes::new(16, Duration::from_secs(10)),
            secret: b"secret".to_vec(),
            clock: clock.clone(),
            renderer: Arc::new(Faces(Arc::clone(&face))),
            tasks,
            probe: Some(Arc::new(Listener { process: number, scheduler: Arc::clone(&self.scheduler) })),
        };
        let service = Arc::new(Service::new(settings, parts));
        let (ucp, acp) = (
            ucp::router(Arc::new(Ucp {
                face: Arc::clone(&face),
                service: Arc::clone(&service),
                catalog: empty_catalog(),
                platforms: Arc::clone(&PLATFORMS),
                json_depth: 32,
            })),
            acp::router(Arc::new(Acp { face, service: Arc::clone(&service), json_depth: 32 })),
        );
        tokio::spawn({
            let (life, state) = (Arc::clone(&life), Arc::clone(&state));
            async move {
                loop {
                    life.pass().await;
                    let _ = state.beat().await;
                    tokio::time::sleep(BEAT).await;
                }
            }
        });
        if self.config.tends {
            tokio::spawn({
                let (life, service, memory) =
                    (Arc::clone(&life), Arc::clone(&service), Arc::clone(&self.memory));
                async move {
                    for round in 0_u64.. {
                        life.pass().await;
                        // A round that finds nothing to do changes nothing: most of those are left out.
                        if round % 5 == 0 || !memory.is_quiet() {
                            service.tend().await;
                        }
                        tokio::time::sleep(Duration::from_secs(2)).await;
                    }
                }
            });
        }
        self.processes.push(Process { life, service, state, clock, ucp, acp });
        number
    }

    /// Sends a request to a process. `None`: the process died over it, or nothing came for ten minutes.
    pub fn send(&self, process: usize, ask: &Ask) -> JoinHandle<Option<Told>> {
        let of = &self.processes[process];
        let router = match ask.protocol {
            Protocol::Ucp => of.ucp.clone(),
            Protocol::Acp => of.acp.clone(),
        };
        let (request, ask, sent) = (request(ask), ask.clone(), Instant::now());
        let (life, scheduler, history) =
            (Arc::clone(&of.life), Arc::clone(&self.scheduler), Arc::clone(&self.history));
        tokio::spawn(async move {
            let answer = async {
                let (parts, body) = router.oneshot(request).await.unwrap().into_parts();
                let bytes = body.collect().await.unwrap().to_bytes().to_vec();
                scheduler.at(Who::Process(process), BEFORE_REPLY).await;
                let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                Told { status: parts.status.as_u16(), bytes, json }
            };
            let told = tokio::select! {
                biased;
                () = life.becomes(Phase::Dead) => None,
                told = answer => Some(told),
                () = tokio::time::sleep(Duration::from_mins(10)) => None,
            };
            scheduler.note(format!(
                "{process}: {:?} {:?} -> {}",
                ask.what,
                ask.key,
                told.as_ref().map_or("nothing".to_owned(), |told| format!(
                    "{} {}",
                    told.status,
                    told.text("status")
                ))
            ));
            let exchange = Exchange { ask, sent, ended: Instant::now(), told: told.clone() };
            history.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
            told
        })
    }

    /// Sends a request and waits for the answer.
    pub async fn ask(&self, process: usize, ask: &Ask) -> Option<Told> {
        self.send(process, ask).await.unwrap()
    }

    /// Sends a request until a final answer is there, as an agent does.
    pub async fn insist(&self, process: usize, ask: &Ask) -> Option<Told> {
        for pause in [1_u64, 2, 2, 4, 8, 15, 15, 30, 30, 60, 60, 120] {
            if let Some(told) = self.ask(process, ask).await.filter(Told::is_final) {
                return Some(told);
            }
            if self.processes[process].life.phase() == Phase::Dead {
                return None;
            }
            tokio::time::sleep(Duration::from_secs(pause)).await;
        }
        None
    }

    /// A session of that protocol that can be completed.
    pub async fn ready(&self, process: usize, protocol: Protocol, item: &'static str, code: bool) -> String {
        self.ready_for(process, protocol, 0, item, 2, code).await
    }

    pub async fn ready_for(
        &self,
        process: usize,
        protocol: Protocol,
        caller: usize,
        item: &'static str,
        quantity: u32,
        code: bool,
    ) -> String {
        let what = Asked::Create { item, quantity, code };
        let key = (protocol == Protocol::Acp).then(|| format!("create-{}", self.history().len()));
        let told = self.ask(process, &Ask { protocol, caller, key, session: None, what }).await.unwrap();
        assert_eq!(told.status, 201, "{}", told.json);
        let status = told.text("status");
        assert!(status.starts_with("ready_for"), "{}", told.json);
        told.text("id").to_owned()
    }

    pub fn history(&self) -> Vec<Exchange> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn sessions(&self) -> Vec<Session> {
        self.memory.sessions()
    }

    pub fn session(&self, id: &str) -> Session {
        let id = SessionId::new(id);
        self.sessions().into_iter().find(|session| session.id == id).unwrap()
    }

    /// Time passes.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

fn request(ask: &Ask) -> Request<Body> {
    let (method, tail, body) = match &ask.what {
        Asked::Create { item, quantity, code } => {
            (Method::POST, "", Some(create(ask, item, *quantity, *code)))
        }
        Asked::Get => (Method::GET, "", None),
        Asked::Update { quantity } => match ask.protocol {
            Protocol::Ucp => (Method::PUT, "", Some(create(ask, "rose", *quantity, false))),
            Protocol::Acp => {
                (Method::POST, "", Some(json!({"line_items": [{"id": "rose", "quantity": quantity}]})))
            }
        },
        Asked::Complete { token } => {
            let body = match ask.protocol {
                Protocol::Ucp => clients::payment(token),
                Protocol::Acp => clients::acp_payment(token),
            };
            (Method::POST, "/complete", Some(body))
        }
        Asked::Cancel => (Method::POST, "/cancel", None),
    };
    let root = match ask.protocol {
        Protocol::Ucp => "/checkout-sessions",
        Protocol::Acp => "/checkout_sessions",
    };
    let id = ask.session.as_ref().map(|id| format!("/{id}")).unwrap_or_default();
    let mut request =
        Request::builder().method(method).uri(format!("{root}{id}{tail}")).header("host", "127.0.0.1");
    request = match ask.protocol {
        Protocol::Ucp => request.header("ucp-agent", format!("profile=\"{}\"", PROFILES[ask.caller])),
        Protocol::Acp => request
            .header("authorization", format!("Bearer {}", TOKENS[ask.caller]))
            .header("api-version", "2026-04-17"),
    };
    if let Some(key) = &ask.key {
        request = request.header("idempotency-key", key);
    }
    let Some(body) = body else { return request.body(Body::empty()).unwrap() };
    request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
}

fn create(ask: &Ask, item: &str, quantity: u32, code: bool) -> Value {
    let codes = if code { json!({"codes": ["once"]}) } else { json!({"codes": []}) };
    match ask.protocol {
        Protocol::Ucp => {
            let mut body = clients::full(item, quantity);
            body["discounts"] = codes;
            body
        }
        Protocol::Acp => {
            let mut body = clients::acp_lines(item, quantity, "USD");
            body["buyer"] = clients::acp_buyer();
            body["fulfillment_details"] = json!({"address": clients::acp_address()});
            body["discounts"] = codes;
            body
        }
    }
}

/// Plays one run on a runtime of its own: one thread, time that moves only when everybody waits.
pub fn simulate<T, F: Future<Output = T>>(config: Config, play: impl FnOnce(World) -> F) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { play(World::new(config)).await })
}
