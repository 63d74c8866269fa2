//! One demo shop as a server: takes a request, applies the faults that are on, runs the call, answers.
//!
//! The shop's one lock is held while a call runs, never while it waits. A request works on its own copy of
//! the session and writes it back whole at its end, so that two requests of one cart overwrite each other as
//! they do in `WooCommerce`.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, header::DATE};
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use super::checkout::{self, Step};
use super::events;
use super::http::{ApiError, Call, Reply, read_body, respond, trim};
use super::made;
use super::model::{Product, Session};
use super::paying;
use super::routes;
use super::state::State;
use super::token;
use super::totals;
use super::view;
use super::watch::{self, CallGuard, ClientGuard, Watch};
use super::wcv3;
use super::wcv3_order;
use super::weather::{HTML, Weather, exceeded, page, wants_json};
use super::workers::Workers;
use super::{Error, Seed};
use crate::clock::Clock;

/// A running demo shop; clones share one state.
#[derive(Debug, Clone)]
pub struct DemoShop {
    state: Arc<Mutex<State>>,
    watch: Arc<Mutex<Watch>>,
    workers: Arc<Workers>,
    clock: Arc<dyn Clock>,
}

/// Who sends a request: an identity from a good token, or a new one.
pub(super) struct Client {
    pub(super) identity: String,
    pub(super) known: bool,
    /// What speaks against a guarded call.
    pub(super) objection: Option<ApiError>,
}

impl DemoShop {
    /// Opens a shop: a fresh one, or with a path the one that the file there remembers. In a folder each shop
    /// has a file of its own.
    ///
    /// # Errors
    /// [`Error`] when the file can't be read or written.
    pub fn open(seed: Seed, data: Option<&Path>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let secret = data_encoding::HEXLOWER.encode(&crate::clock::Ids.secret());
        let mut state = State::open(seed, data, clock.now(), secret)?;
        let workers = Workers::default();
        state.faults.running = workers.running();
        let state = Arc::new(Mutex::new(state));
        Ok(Self { state, watch: Arc::default(), workers: Arc::new(workers), clock })
    }

    /// Sets the address that permalinks, pictures and redirects are built on.
    pub fn set_public_base(&self, base: &str) {
        base.trim_end_matches('/').clone_into(&mut self.lock().public_base);
    }

    /// Puts `count` made-up products beside what the shop sells; equal counts make equal shops.
    pub fn add_made_products(&self, count: usize) {
        let mut state = self.lock();
        let opened = self.now(&state) - TimeDelta::days(30);
        state.add_products(made::products(count).map(|product| Product {
            modified: opened,
            created: opened,
            ..product
        }));
    }

    /// Switches a fault on: `NAME[=VALUE][,count=N][,only=KIND]`, see [`faults`](super::faults).
    ///
    /// # Errors
    /// [`Error::Fault`] when there is no such fault.
    pub fn set_fault(&self, text: &str) -> Result<(), Error> {
        self.lock().faults.set_text(text)
    }

    /// Switches all faults off.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Acts on what a merchant does, see `POST /_demo/events`.
    ///
    /// # Errors
    /// [`Error::Event`] when the shop does not know the event.
    pub fn act(&self, events: &Value) -> Result<(), Error> {
        let mut state = self.lock();
        let now = self.now(&state);
        events::act(&mut state, events, now)?;
        state.commit()
    }

    /// The orders, as `GET /_demo/orders` lists them.
    #[must_use]
    pub fn orders(&self) -> Value {
        wcv3_order::summary(&self.lock())
    }

    /// What clients did that buys twice or loses a cart in a real shop, as `GET /_demo/violations` lists it:
    /// `{"count", "violations": […], "harmless": […]}`, each with its `rule` (`overlap` or `repeat`), the two
    /// calls and, of a repeat, the status it got; and the calls that are `running`.
    #[must_use]
    pub fn violations(&self) -> Value {
        self.watch().json()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request that arrives: a guard for its work, and one for the client that waits for it.
    pub(super) fn meet(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> (CallGuard, ClientGuard) {
        let (cart, placed) = {
            let state = self.lock();
            let token = headers.get("cart-token").and_then(|value| value.to_str().ok());
            let secret = &state.settings().secret;
            let cart = token.and_then(|token| token::verify(secret, token, self.now(&state)));
            let path = target.split('?').next().unwrap_or_default();
            let placed = watch::posted(method, path, body).filter(|utm_id| state.has_placed(utm_id));
            (cart, placed)
        };
        let number = self.watch().arrive(method, target, body, cart, placed.is_some());
        (CallGuard::new(&self.watch, number), ClientGuard::new(&self.watch, number))
    }

    /// The shop's time: the clock's, moved by the `wait` events.
    pub(super) fn now(&self, state: &State) -> DateTime<Utc> {
        self.clock.now() + TimeDelta::seconds(state.settings().clock_offset_seconds)
    }

    /// Answers one request; `target` is path and query without a leading slash.
    pub(super) async fn answer(
        self,
        method: Method,
        target: String,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response {
        let path = target.split('?').next().unwrap_or_default();
        if let Some(rest) = path.strip_prefix("_demo/") {
            return self.control(&method, rest, &body);
        }
        self.lock().calls.note(method.as_str(), path);
        let mut response =
            if let Some(api) = target.strip_prefix("wp-json").map(|rest| rest.trim_start_matches('/')) {
                self.api(&method, api, &headers, &body).await
            } else if let Some(api) = plain_route(&target) {
                // On this path the shop does not look for a Cart-Token.
                let mut headers = headers;
                headers.remove("cart-token");
                self.api(&method, &api, &headers, &body).await
            } else {
                return respond(404, HTML, page("Page not found"), &[]);
            };
        // The shop's own time, as a real one tells it: its orders are dated by the same clock.
        let date = self.now(&self.lock()).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        if let Ok(date) = HeaderValue::try_from(date) {
            response.headers_mut().insert(DATE, date);
        }
        response
    }

    async fn api(&self, method: &Method, target: &str, headers: &HeaderMap, body: &[u8]) -> Response {
        // A worker is busy until the answer is there, whether or not somebody waits for it.
        let wanted = self.lock().faults.take_for("workers", kind(method, target));
        let _worker = self.workers.enter(wanted).await;
        let weather = self.weather(method, target);
        pause(weather.delay).await;
        if let Some(response) = weather.refusal(self.now(&self.lock()), wants_json(headers)) {
            return response;
        }
        let mut headers = headers.clone();
        if weather.dead_token {
            headers.remove("cart-token");
        }
        let reply = self.reply(method, target, &headers, body, &weather).await;
        let reply = if *method == Method::HEAD { Reply { body: Value::Null, ..reply } } else { reply };
        weather.finish(reply).await
    }

    /// Draws the faults for a request.
    fn weather(&self, method: &Method, target: &str) -> Weather {
        let mut state = self.lock();
        let kind = kind(method, target);
        let mut take = |name: &str| state.faults.take_for(name, kind);
        let mut weather = Weather {
            delay: Duration::from_millis(take("delay_ms").unwrap_or_default()),
            maintenance: take("maintenance").is_some(),
            http_500: take("http_500").is_some(),
            limiter: take("limiter").is_some(),
            ..Weather::default()
        };
        if !(weather.maintenance || weather.http_500 || weather.limiter) {
            weather.timeout = Duration::from_millis(take("timeout_ms").unwrap_or_default());
            weather.slow = Duration::from_millis(take("slow_ms").unwrap_or_default());
            weather.html = take("html").is_some();
            weather.dead_token = take("dead_token").is_some();
            weather.noise = take("noise").is_some();
            weather.lost = take("lost_answer").is_some();
        }
        weather.maintenance |= state.settings().maintenance;
        weather
    }

    /// Runs a request of either API.
    async fn reply(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        body: &[u8],
        weather: &Weather,
    ) -> Reply {
        let body = match read_body(headers, body) {
            Ok(body) => body,
            Err(error) => {
                let call = Call::new(method.as_str(), target, Map::new());
                let route = routes::below(&call.path).and_then(|path| routes::find(&path));
                let reply = Reply::new(error.status, error.body(None));
                return match route {
                    Some(route) => reply.header("allow", route.methods),
                    None => reply,
                };
            }
        };
        let call = Call::new(if *method == Method::HEAD { "GET" } else { method.as_str() }, target, body);
        if let Some(rest) = call.path.strip_prefix("wc/v3") {
            let path: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
            return self.wcv3(&call, &path, headers);
        }
        if call.path.is_empty() {
            let namespaces = ["wc/store", "wc/store/v1", "wc/v3"];
            return Reply::new(200, json!({"name": "Demo shop", "namespaces": namespaces, "routes": {}}));
        }
        let Some(path) = routes::below(&call.path) else {
            let error = ApiError::no_route();
            return Reply::new(error.status, error.body(None));
        };
        if let Some(refused) = self.limit() {
            return refused;
        }
        let off = self.lock().settings().plugin_off;
        let Some(route) = routes::find(&path).filter(|_| !off) else {
            let error = ApiError::no_route();
            return Reply::new(error.status, error.body(None));
        };
        if path == ["batch"] {
            return self.batch(&call.params, headers, weather).await;
        }
        let client = self.client(headers, routes::guarded(&call, &path));
        let mut session = self.lock().session(&client.identity);
        let before = session.clone();
        let (reply, extra) = self.one(&call, &path, &mut session, &client, route.cart).await;
        if call.method == "GET" {
            keep_lines(&mut session, &before);
        }
        pause(weather.slow).await;
        let saved = self.save(&client, session, &before);
        let reply = if saved { reply } else { broken() };
        extra.into_iter().fold(reply.header("allow", route.methods), |reply, (name, value)| {
            reply.header(name, text_of(&value))
        })
    }

    fn wcv3(&self, call: &Call, path: &[&str], headers: &HeaderMap) -> Reply {
        let mut state = self.lock();
        let now = self.now(&state);
        let open = path.is_empty() && call.method == "GET";
        let allowed = wcv3::methods(path);
        let done = if open { Ok(()) } else { wcv3::authorize(call, headers) }
            .and_then(|()| wcv3::route(&mut state, call, path, now));
        let reply = match (done, state.commit()) {
            (_, Err(_)) => broken(),
            (Ok(reply), Ok(())) => reply,
            (Err(error), Ok(())) => Reply::new(error.status, error.body(None)),
        };
        match allowed.filter(|_| reply.status != 401) {
            Some(methods) => reply.header("allow", methods),
            None => reply,
        }
    }

    /// Reads token and nonce.
    pub(super) fn client(&self, headers: &HeaderMap, guarded: bool) -> Client {
        let state = self.lock();
        let now = self.now(&state);
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let secret = &state.settings().secret;
        if let Some(identity) = header("cart-token").and_then(|given| token::verify(secret, given, now)) {
            return Client { identity, known: true, objection: None };
        }
        let objection = match header("nonce") {
            Some(nonce) if token::is_nonce(secret, nonce, now) => None,
            Some(_) => Some(ApiError::new(403, "woocommerce_rest_invalid_nonce", "Nonce is invalid.")),
            None => Some(missing_nonce()),
        };
        Client { identity: token::identity(), known: false, objection: objection.filter(|_| guarded) }
    }

    /// Runs one call on a session: its trimmed answer, and the headers a cart route adds.
    pub(super) async fn one(
        &self,
        call: &Call,
        path: &[&str],
        session: &mut Session,
        client: &Client,
        cart: bool,
    ) -> (Reply, Map<String, Value>) {
        let done = match client.objection.clone() {
            Some(error) => Err(error),
            None => match routes::find(path) {
                Some(_) => self.run(call, path, session).await,
                None => Err(ApiError::no_route()),
            },
        };
        let state = self.lock();
        let now = self.now(&state);
        let reply = match done {
            Ok(reply) => {
                let body = trim(reply.body, call.params.get("_fields").and_then(Value::as_str));
                Reply { body, ..reply }
            }
            Err(error) => {
                let with_cart = error.with_cart.then(|| {
                    let mut priced = totals::price(&state, session, now);
                    priced.notices.extend(error.notices.iter().cloned());
                    view::cart(&state, session, &priced, now)
                });
                Reply::new(error.status, error.body(with_cart))
            }
        };
        let mut extra = Map::new();
        if cart {
            let settings = state.settings();
            let refused = client.objection.is_some();
            let hash =
                if refused { String::new() } else { totals::price(&state, &mut session.clone(), now).hash() };
            let token = token::mint(&settings.secret, &client.identity, now, settings.session_seconds);
            for (name, value) in [
                ("Nonce", json!(token::nonce(&settings.secret, now))),
                ("Nonce-Timestamp", json!(now.timestamp())),
                ("User-ID", json!(0)),
                ("Cart-Token", json!(token)),
                ("Cart-Hash", json!(hash)),
            ] {
                extra.insert(name.to_owned(), value);
            }
        }
        (reply, extra)
    }

    /// The call itself; a checkout waits between its parts.
    async fn run(&self, call: &Call, path: &[&str], session: &mut Session) -> Result<Reply, ApiError> {
        let step = self.part(|state, now| routes::run(state, session, call, path, now))??;
        let step = match step {
            Step::Hold(placing) => {
                pause(placing.wait).await;
                Step::Pay(self.part(|state, now| paying::hold(state, placing, now))??)
            }
            other => other,
        };
        let mut payment = match step {
            Step::Pay(payment) => payment,
            Step::Done(reply) => return Ok(reply),
            Step::Hold(_) => return Err(checkout::fatal()),
        };
        pause(payment.wait).await;
        pause(self.part(|state, now| paying::turn(state, &mut payment, now))?).await;
        self.part(|state, now| paying::finish(state, session, &payment, now))?
    }

    /// One part of a call, with the lock; what it changed is written, even if the part was refused.
    fn part<T>(&self, act: impl FnOnce(&mut State, DateTime<Utc>) -> T) -> Result<T, ApiError> {
        let mut state = self.lock();
        let now = self.now(&state);
        let done = act(&mut state, now);
        state.commit().map_err(|error| write_failed(&error))?;
        Ok(done)
    }

    /// Writes a session back if it changed; `false` if that failed.
    pub(super) fn save(&self, client: &Client, session: Session, before: &Session) -> bool {
        if session == *before {
            return true;
        }
        let mut state = self.lock();
        state.put_session(&client.identity, session);
        state.commit().is_ok()
    }

    /// The shop's own limiter, when a merchant has switched it on.
    fn limit(&self) -> Option<Reply> {
        let mut state = self.lock();
        let now = self.now(&state).timestamp();
        let mut limit = state.settings().rate_limit?;
        if now >= limit.window + limit.seconds {
            limit.window = now;
            limit.used = 0;
        }
        limit.used += 1;
        state.settings_mut().rate_limit = Some(limit);
        (limit.used > limit.limit).then(|| {
            let reset = limit.window + limit.seconds;
            exceeded(limit.limit, reset, reset - now)
        })
    }
}

/// What kind of call a request is, for faults that hit only some.
fn kind(method: &Method, target: &str) -> &'static str {
    let path = target.split('?').next().unwrap_or_default().trim_matches('/');
    match routes::below(path).as_deref() {
        Some(["checkout", ..]) if method == Method::POST => "checkout",
        Some(["cart", ..]) => "cart",
        Some(["batch"]) => "batch",
        None if path.starts_with("wc/v3") => "wcv3",
        _ => "",
    }
}

/// `?rest_route=/wc/store/v1/cart&…` as the path it stands for.
fn plain_route(target: &str) -> Option<String> {
    let query = target.strip_prefix('?').or_else(|| target.strip_prefix("index.php?"))?;
    let route = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "rest_route")?.1;
    Some(format!("{}?{query}", route.trim_matches('/')))
}

pub(super) async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

pub(super) fn missing_nonce() -> ApiError {
    let message = "Missing the Nonce header. This endpoint requires a valid nonce.";
    ApiError::new(401, "woocommerce_rest_missing_nonce", message)
}

/// A record could not be written.
pub(super) fn broken() -> Reply {
    let error = checkout::fatal();
    Reply::new(error.status, error.body(None))
}

fn write_failed(error: &Error) -> ApiError {
    tracing::error!(%error, "the demo shop could not write its records");
    checkout::fatal()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reading a cart does not throw lines out for good: they are only left out of the answer.
fn keep_lines(session: &mut Session, before: &Session) {
    let mut lines = before.lines.clone();
    for line in &mut lines {
        if let Some(now) = session.lines.iter().find(|now| now.key == line.key) {
            line.quantity = now.quantity;
        }
    }
    session.lines = lines;
}
