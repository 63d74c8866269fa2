//! The composition root: the only place that names back ends and puts the parts together.
//!
//! [`App::build`] makes everything from settings; [`App::run`] serves until it is told to stop, then lets
//! running work end. The commands of the program stand in `commands`.

mod availability;
mod commands;
mod demo;
mod sessions;
mod state;
mod stock;
#[cfg(debug_assertions)]
mod stops;
mod webhooks;

use std::{sync::Arc, time::Duration};

use axum::Router;
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

pub use commands::{DemoOptions, RecordOptions, demo, faults_help, record, replay, serve, shop};
pub use demo::{demo_pins, demo_settings, replay_settings};
pub use sessions::{ListOptions, Place, list_sessions, resolve_session, show_session};
pub use stock::{StockOptions, audit_stock, show_stock, sync_stock};

use crate::{
    catalog::{self, Catalog},
    checkout::{
        self,
        ids::{SessionId, ShopId},
        outcome::{Outcome, RenderContext, Renderer},
        points::Probe,
        service::{self, Finding, Parts, Reconciled, Resolution, Service, StandIns},
        session::Address,
        state::{BEAT, State},
    },
    clock::{Clock, SteadyClock},
    config::{self, Settings},
    http,
    idempotency::Answer,
    lane::Lanes,
    money::Currency,
    platform::{Document, Pin, Platforms},
    protocol::{
        ShopFace,
        acp::{self, Acp},
        shop::{Agent, Links},
        ucp::{self, Ucp},
    },
    store::woo::{self, WooStore},
};

/// Seconds between two rounds over attempts to settle and sessions to expire.
const TEND_SECS: u64 = 2;
/// How long somebody may read nothing of an answer before the connection is closed.
const WRITE_WAIT: Duration = Duration::from_mins(1);
/// A *placing* that is older than this is left to the settler; far less than any lease lives.
const SELF_FENCE: Duration = Duration::from_secs(2);
/// Rounds between two sweeps of what is past its retention.
const ROUNDS_PER_SWEEP: u64 = 300;

/// The whole gateway, ready to serve.
pub struct App {
    public: Router,
    ops: Router,
    services: Vec<Arc<Service>>,
    state: Arc<dyn State>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    stop_wait: Duration,
    /// Between two reconciliations with the shops.
    poll: Duration,
    /// Ends all streams.
    ending: CancellationToken,
}

/// What tests put in the place of the real things.
pub struct Environment {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Profiles answered without a fetch, beside the configured ones.
    pub pins: Vec<Pin>,
    /// Who listens at the named points of a completion.
    pub probe: Option<Arc<dyn Probe>>,
}

impl Default for Environment {
    fn default() -> Self {
        Self { clock: Arc::new(SteadyClock::default()), pins: Vec::new(), probe: None }
    }
}

impl App {
    /// Puts the gateway together. Calls nobody but a shared state.
    ///
    /// # Errors
    /// What keeps it from starting, for people.
    pub async fn build(settings: &Settings, environment: Environment) -> anyhow::Result<Self> {
        let Environment { clock, mut pins, probe } = environment;
        let development = settings.development.is_some();
        let (state, secret) = state::open(settings, &clock).await?;
        pins.extend(settings.profiles.iter().map(|profile| Pin {
            url: profile.url.to_string(),
            version: profile.version.clone(),
            document: Document::File(profile.file.clone()),
        }));
        let platforms = Arc::new(Platforms::new(&pins, development)?);
        let tasks = TaskTracker::new();
        let streams = availability::streams(settings);
        let mut services = Vec::new();
        let mut routes = Vec::new();
        for (name, shop) in &settings.shops {
            if shop.wc_v3.is_none() {
                tracing::warn!(shop = %name, "no wc_v3 key: an order whose answer is lost can wait for a person");
            }
            let face = Arc::new(face(name, shop, settings)?);
            let store = Arc::new(store(shop)?);
            let catalog = Arc::new(Catalog::new(store.clone(), catalog_settings(settings)));
            let board = settings.availability.enabled.then(|| {
                let parts = availability::Parts {
                    face: &face,
                    catalog: Arc::clone(&catalog),
                    store: store.clone(),
                    state: Arc::clone(&state),
                    clock: Arc::clone(&clock),
                    tasks: tasks.clone(),
                    streams: streams.clone(),
                };
                availability::board(settings, parts)
            });
            let service = Arc::new(Service::new(
                service_settings(name, shop, settings)?,
                Parts {
                    store,
                    state: Arc::clone(&state),
                    lanes: Lanes::new(
                        settings.checkout.queue,
                        Duration::from_secs(settings.checkout.queue_wait_secs),
                    ),
                    secret: secret.clone(),
                    clock: Arc::clone(&clock),
                    renderer: Arc::new(Faces(Arc::clone(&face))),
                    tasks: tasks.clone(),
                    probe: probe.clone(),
                },
            ));
            let secret = shop.webhook_secret();
            let secret = secret.map_err(|message| anyhow::anyhow!("webhook_secret of `{name}` {message}"))?;
            let deliveries =
                secret.map_or_else(Router::new, |secret| webhooks::router(Arc::clone(&service), secret));
            services.push(Arc::clone(&service));
            let json_depth = settings.limits.json_depth;
            routes.push(http::ShopRoutes {
                hosts: shop.hosts.clone(),
                face: Arc::clone(&face),
                service: Arc::clone(&service),
                ucp: Arc::new(Ucp {
                    face: Arc::clone(&face),
                    service: Arc::clone(&service),
                    catalog,
                    platforms: Arc::clone(&platforms),
                    json_depth,
                }),
                acp: Arc::new(Acp { face, service, json_depth }),
                availability: board,
                deliveries,
            });
        }
        Ok(Self {
            public: http::router(routes, settings.limits.body_bytes, &tasks),
            ops: http::ops(Arc::clone(&state)),
            services,
            state,
            clock,
            tasks,
            stop_wait: Duration::from_secs(settings.server.stop_wait_secs),
            poll: Duration::from_secs(settings.stock.poll_secs),
            ending: streams.ending,
        })
    }

    /// The public router; for tests that need no listener.
    pub fn router(&self) -> Router {
        self.public.clone()
    }

    /// One round over attempts to settle and sessions to expire.
    pub async fn tend(&self) {
        // Side by side: a shop that hangs holds up its own sessions only.
        futures::future::join_all(self.services.iter().map(|service| Box::pin(service.tend()))).await;
    }

    /// One reconciliation with each shop, or with one of them: what is known of its stock is held against it. One that
    /// fails is in the log too.
    pub async fn reconcile(
        &self,
        only: Option<&ShopId>,
    ) -> Vec<(ShopId, Result<Reconciled, checkout::Error>)> {
        let services = self.services.iter().filter(|service| only.is_none_or(|only| service.shop() == only));
        let each = services.map(async |service| {
            let shop = service.shop().clone();
            let told = Box::pin(service.reconcile()).await;
            if let Err(error) = &told {
                tracing::warn!(%shop, %error, "the shop's stock could not be reconciled yet");
            }
            (shop, told)
        });
        futures::future::join_all(each).await
    }

    /// Our memory; for tests that look into it.
    #[must_use]
    pub fn state(&self) -> Arc<dyn State> {
        Arc::clone(&self.state)
    }

    /// Takes a person's decision about a session, at whichever shop it is.
    ///
    /// # Errors
    /// When the state or the shop cannot be used; nothing is written then.
    pub async fn resolve(&self, id: &SessionId, finding: Finding) -> anyhow::Result<Resolution> {
        for service in &self.services {
            match Box::pin(service.resolve(id, finding.clone())).await? {
                Resolution::NoSession => {}
                resolution => return Ok(resolution),
            }
        }
        Ok(Resolution::NoSession)
    }

    /// Waits until the work of all requests has ended.
    pub async fn rest(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Serves until `stop` is cancelled, then lets what runs end, within the configured wait.
    ///
    /// # Errors
    /// When a listener fails.
    pub async fn run(
        self,
        public: TcpListener,
        ops: TcpListener,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        tokio::select! {
            served = self.serve(public, ops, stop) => served,
            () = self.beat() => Ok(()),
        }
    }

    async fn serve(
        &self,
        public: TcpListener,
        ops: TcpListener,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let rounds =
            async { tokio::join!(self.tend_until(stop.clone()), self.reconcile_until(stop.clone())) };
        let public = axum::serve(http::Patient::new(public, WRITE_WAIT), self.public.clone())
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        let ops = axum::serve(ops, self.ops.clone()).with_graceful_shutdown(stop.clone().cancelled_owned());
        let serve = async { tokio::try_join!(public.into_future(), ops.into_future()) };
        let bounded = async {
            stop.cancelled().await;
            self.ending.cancel();
            tokio::time::sleep(self.stop_wait).await;
        };
        tokio::select! {
            served = async { tokio::join!(serve, rounds).0 } => { served?; }
            () = bounded => tracing::warn!("some connections did not end in time"),
        }
        self.tasks.close();
        if tokio::time::timeout(self.stop_wait, self.tasks.wait()).await.is_err() {
            tracing::warn!("some work did not end in time; the next start settles it");
        }
        Ok(())
    }

    /// Shows that this process lives, for ever: other processes keep off its work meanwhile.
    async fn beat(&self) {
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            if let Err(error) = self.state.beat().await {
                tracing::warn!(%error, "this process could not show that it lives");
            }
        }
    }

    async fn reconcile_until(&self, stop: CancellationToken) {
        let mut rounds = tokio::time::interval(self.poll);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = rounds.tick() => {}
            }
            // A shop that hangs does not hold up the end.
            tokio::select! {
                () = stop.cancelled() => return,
                _ = Box::pin(self.reconcile(None)) => {}
            }
        }
    }

    async fn tend_until(&self, stop: CancellationToken) {
        let mut rounds = tokio::time::interval(Duration::from_secs(TEND_SECS));
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for round in 0_u64.. {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = rounds.tick() => {}
            }
            self.tend().await;
            if round % ROUNDS_PER_SWEEP == 0
                && self.clock.is_settled()
                && let Err(error) = self.state.sweep(self.clock.now()).await
            {
                tracing::warn!(%error, "what is past its retention could not be removed");
            }
        }
    }
}

/// Renders for both protocols, with or without a request that waits.
struct Faces(Arc<ShopFace>);

impl Renderer for Faces {
    fn render(&self, context: &RenderContext, outcome: &Outcome) -> Answer {
        if context.protocol == acp::PROTOCOL {
            acp::render(&self.0, context, outcome)
        } else {
            ucp::render(&self.0, context, outcome)
        }
    }
}

fn store(shop: &config::Shop) -> anyhow::Result<WooStore> {
    let wc_v3 = match &shop.wc_v3 {
        Some(wc_v3) => Some(woo::WcV3 {
            key: wc_v3.key.clone(),
            secret: wc_v3.secret().map_err(|message| anyhow::anyhow!("wc_v3.secret {message}"))?,
            writes: wc_v3.writes,
        }),
        None => None,
    };
    Ok(WooStore::new(woo::Settings {
        item_ids: match shop.item_ids {
            config::ItemIds::Id => woo::ItemIds::Id,
            config::ItemIds::Sku => woo::ItemIds::Sku,
        },
        prices_with_tax: shop.prices_with_tax,
        deadlines: woo::Deadlines {
            read: Duration::from_secs(shop.deadlines.read_secs),
            write: Duration::from_secs(shop.deadlines.write_secs),
            place: Duration::from_secs(shop.deadlines.place_secs),
        },
        wc_v3,
        ..woo::Settings::new(shop.store_url.clone(), Currency::parse(&shop.currency)?)
    })?)
}

fn catalog_settings(settings: &Settings) -> catalog::Settings {
    catalog::Settings {
        ttl: Duration::from_secs(settings.catalog.cache_secs),
        cache_bytes: settings.catalog.cache_bytes,
        page_size: settings.catalog.page_size,
        ids: settings.catalog.ids,
        calls: settings.catalog.calls,
        wait: Duration::from_secs(settings.catalog.wait_secs),
    }
}

fn service_settings(
    name: &str,
    shop: &config::Shop,
    settings: &Settings,
) -> anyhow::Result<service::Settings> {
    let checkout = &settings.checkout;
    Ok(service::Settings {
        shop: ShopId::new(name),
        currency: Currency::parse(&shop.currency)?,
        handlers: shop.handlers.iter().map(config::Handler::mapping).collect(),
        https_base: bare(shop.https_base.as_ref().unwrap_or(&shop.public_url)),
        session_life: Duration::from_secs(u64::from(checkout.session_hours) * 3600),
        complete_wait: Duration::from_secs(checkout.complete_wait_secs),
        snapshot_life: Duration::from_secs(checkout.snapshot_secs),
        settle_wait: Duration::from_secs(checkout.settle_wait_secs),
        retry_hold: Duration::from_secs(checkout.retry_hold_secs),
        stock_doubt: Duration::from_secs(checkout.stock_doubt_secs),
        self_fence: SELF_FENCE,
        stand_ins: settings.development.as_ref().map(|development| StandIns {
            email: development.email.clone(),
            address: Address {
                first_name: development.first_name.clone(),
                last_name: development.last_name.clone(),
                line_one: development.line_one.clone(),
                city: development.city.clone(),
                region: development.region.clone(),
                postal_code: development.postal_code.clone(),
                country: development.country.clone(),
                ..Address::default()
            },
        }),
        cheapest_first: settings.development.is_some(),
    })
}

fn face(name: &str, shop: &config::Shop, settings: &Settings) -> anyhow::Result<ShopFace> {
    let mut agents: Vec<Agent> = Vec::new();
    for entry in &shop.agents {
        let token = entry
            .token()
            .map_err(|message| anyhow::anyhow!("the token of agent `{}` {message}", entry.id))?;
        let digest: [u8; 32] = Sha256::digest(token.expose_secret().as_bytes()).into();
        match agents.iter_mut().find(|agent| agent.id == entry.id) {
            Some(agent) => agent.token_digests.push(digest),
            None => agents.push(Agent { id: entry.id.clone(), token_digests: vec![digest] }),
        }
    }
    Ok(ShopFace {
        id: ShopId::new(name),
        title: shop.title.clone().unwrap_or_else(|| name.to_owned()),
        public_url: bare(&shop.public_url),
        https_base: bare(shop.https_base.as_ref().unwrap_or(&shop.public_url)),
        home_url: shop.home_url.clone().unwrap_or_else(|| shop.store_url.clone()),
        currency: Currency::parse(&shop.currency)?,
        prices_with_tax: shop.prices_with_tax,
        links: Links {
            terms: shop.links.terms.clone(),
            privacy: shop.links.privacy.clone(),
            refunds: shop.links.refunds.clone(),
            shipping: shop.links.shipping.clone(),
            contact: shop.links.contact.clone(),
        },
        handlers: shop.handlers.iter().map(config::Handler::face).collect(),
        agents,
        locales: shop.locales.clone(),
        development: settings.development.is_some(),
        max_lines: settings.limits.lines,
        max_quantity: settings.limits.quantity,
    })
}

/// An address without a trailing slash: paths are appended to it.
fn bare(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}
