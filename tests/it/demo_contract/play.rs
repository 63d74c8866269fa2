//! Plays one recording, entry by entry, against a shop of its own.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tillgate::clock::{Clock as _, ManualClock};
use tillgate::store::demo::{DemoShop, Seed, router};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use super::compare::{compare, header, headers};
use super::names::{Names, identity};
use super::{ASIDE, FAULTS, MADE, SKIPS, Skip, TOLD, scope};

/// What came of one file.
#[derive(Default)]
pub struct Tally {
    pub matched: usize,
    pub total: usize,
    pub skipped: Vec<(usize, String)>,
    pub deviations: Vec<(usize, String)>,
}

/// A shop, and what the run so far has named.
pub struct Stage {
    general: DemoShop,
    shop: Router,
    clock: Arc<ManualClock>,
    /// Seconds that `wait` events have moved the shop's clock by.
    waited: i64,
    names: Names,
    /// Whether the recorded client encoded commas: it did from recording 28 on.
    encoded: bool,
    /// Requests under way: the entry, and until which entry they run beside the others.
    aside: Vec<(usize, usize, JoinHandle<Answer>)>,
}

/// One answer of the run.
struct Answer {
    status: u16,
    headers: axum::http::HeaderMap,
    body: String,
}

impl Answer {
    async fn of(response: Response<Body>) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        // A shop that hangs up leaves no body.
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        Self { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }
}

/// The shop's time at the first answer.
fn start_of(entries: &[Value]) -> DateTime<Utc> {
    let told = entries.iter().find_map(|entry| header(entry, "response", "Nonce-Timestamp"));
    DateTime::from_timestamp(told.map_or(1_796_056_000, |stamp| stamp.parse().unwrap()), 0).unwrap()
}

/// The shop's time at an entry, if the recording tells it: by its nonce, or by what a write changed.
fn time_of(entry: &Value) -> Option<DateTime<Utc>> {
    if let Some(stamp) = header(entry, "response", "Nonce-Timestamp") {
        return DateTime::from_timestamp(stamp.parse().unwrap(), 0);
    }
    if entry["request"]["method"] == "GET" {
        return None;
    }
    let body: Value = serde_json::from_str(entry["response"]["content"]["text"].as_str()?).ok()?;
    Some(body["date_modified_gmt"].as_str()?.parse::<NaiveDateTime>().ok()?.and_utc())
}

/// The recorder writes some characters of a query plainly that were sent encoded.
fn as_sent(url: &str, encoded: bool) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, value)) if name == "rest_route" => format!("{name}={}", value.replace('/', "%2F")),
        _ if encoded => part.replace(',', "%2C"),
        _ => part.to_owned(),
    });
    format!("{path}?{}", parts.collect::<Vec<_>>().join("&"))
}

/// What an answer's text says: JSON, JSON after some noise, or only what kind of text it is.
fn read(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    if let Some((noise, Ok(value))) =
        text.find("\n{").map(|at| (&text[..at], serde_json::from_str::<Value>(&text[at..])))
    {
        return json!({"noise": noise.contains("<b>Warning</b>"), "after it": value});
    }
    let page = text.trim_start().to_lowercase().starts_with("<!doctype html");
    json!(if page { "a page" } else { text })
}

impl Stage {
    pub fn open(file: &str, entries: &[Value]) -> Self {
        let encoded = file.as_bytes() >= b"28".as_slice();
        let clock = Arc::new(ManualClock::new(start_of(entries)));
        let general = DemoShop::open(Seed::General, None, clock.clone()).unwrap();
        let flower = DemoShop::open(Seed::Flower, None, clock.clone()).unwrap();
        let shop = router(flower, general.clone());
        Self { shop, general, clock, waited: 0, names: Names::default(), encoded, aside: Vec::new() }
    }

    /// Moves the shop's clock on to an entry's time; never back.
    fn set_clock(&mut self, entry: &Value) {
        for event in entry["_events"].as_array().into_iter().flatten() {
            if event["op"] == "wait" {
                self.waited += event["seconds"].as_i64().unwrap();
            }
        }
        let Some(time) = time_of(entry) else { return };
        let ahead = time - TimeDelta::seconds(self.waited) - self.clock.now();
        if ahead > TimeDelta::zero() {
            self.clock.advance(ahead.to_std().unwrap());
        }
    }

    /// The request of an entry as this run has to send it.
    fn request(&self, entry: &Value) -> Request<Body> {
        let recorded = &entry["request"];
        let url = as_sent(&self.names.request(recorded["url"].as_str().unwrap()), self.encoded);
        let plain = url.starts_with("http://");
        let target = url.split_once("shop.example.com").unwrap().1;
        let method = recorded["method"].as_str().unwrap();
        let mut request = Request::builder().method(method).uri(format!("/general{target}"));
        if plain {
            request = request.header("x-forwarded-proto", "http");
        }
        for header in recorded["headers"].as_array().unwrap() {
            let (name, value) = (header["name"].as_str().unwrap(), header["value"].as_str().unwrap());
            // Steers a fault of the recorded shop; `FAULTS` switches ours on.
            if !name.to_ascii_lowercase().starts_with("x-harness") {
                request = request.header(name, self.names.header(name, value));
            }
        }
        let body = recorded["postData"]["text"].as_str().unwrap_or_default();
        let body = if url.ends_with("/batch") {
            self.names.batch(body)
        } else if url.ends_with("/refunds") {
            self.names.refund(body)
        } else {
            self.names.request(body)
        };
        request.body(Body::from(body)).unwrap()
    }

    fn send(&self, entry: &Value) -> JoinHandle<Answer> {
        let (shop, request) = (self.shop.clone(), self.request(entry));
        tokio::spawn(async move { Answer::of(shop.oneshot(request).await.unwrap()).await })
    }

    /// A cart, with one of product 19 or empty: its newest token.
    async fn cart(&self, filled: bool) -> String {
        let cart = Request::builder().uri("/general/wp-json/wc/store/v1/cart").body(Body::empty()).unwrap();
        let answer = self.shop.clone().oneshot(cart).await.unwrap();
        let token = answer.headers()["cart-token"].to_str().unwrap().to_owned();
        if !filled {
            return token;
        }
        let add = Request::builder().method("POST").uri("/general/wp-json/wc/store/v1/cart/add-item?id=19");
        let add = add.header("cart-token", &token).body(Body::empty()).unwrap();
        assert_eq!(self.shop.clone().oneshot(add).await.unwrap().status(), 201);
        token
    }

    /// What the merchant did before an entry, and what a fault does to it.
    fn prepare(&self, file: &str, index: usize, entry: &Value) {
        self.general.act(entry.get("_events").unwrap_or(&json!([]))).unwrap();
        for (.., event) in TOLD.iter().filter(|(name, at, _)| *name == file && *at == index) {
            self.general.act(&serde_json::from_str(event).unwrap()).unwrap();
        }
        for (.., fault) in FAULTS.iter().filter(|(name, at, _)| *name == file && *at == index) {
            self.general.set_fault(fault).unwrap();
        }
    }

    /// Learns what the run calls things, and compares unless the entry is one to pass over.
    fn judge(&mut self, entry: &Value, answer: &Answer, tally: Option<(&mut Tally, usize)>) {
        let mut recorded = read(entry["response"]["content"]["text"].as_str().unwrap());
        let run = read(&answer.body);
        let told = |name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        if let (Some(recorded), Some(run)) = (header(entry, "response", "nonce"), told("nonce")) {
            self.names.nonces.insert(recorded.to_owned(), run);
        }
        let token = told("cart-token");
        if let (Some(recorded), Some(run)) = (header(entry, "response", "Cart-Token"), &token) {
            self.names.tokens.insert(identity(recorded), run.clone());
        }
        self.names.learn(&recorded, &run);
        let orders = entry["request"]["url"].as_str().unwrap().contains("/wc/v3/orders");
        if orders {
            self.names.learn_orders(&recorded, &run);
        }
        let Some((tally, index)) = tally else { return };
        self.names.answer(&mut recorded, orders);
        let mut differences = Vec::new();
        let wanted = entry["response"]["status"].as_u64().unwrap();
        if wanted != u64::from(answer.status) {
            differences.push(format!("status {}, not {wanted}", answer.status));
        }
        if header(entry, "response", "Cart-Token").is_some() && token.is_none() {
            differences.push("no Cart-Token".to_owned());
        }
        headers(entry, &answer.headers, &mut differences);
        compare("", &recorded, &run, &mut differences);
        tally.total += 1;
        if differences.is_empty() {
            tally.matched += 1;
        } else {
            differences.truncate(12);
            let comment = entry["comment"].as_str().unwrap_or_default();
            tally.deviations.push((index, format!("{comment}\n      {}", differences.join("\n      "))));
        }
    }

    /// An order that is first met by its number is the newest one.
    fn meet_order(&mut self, entry: &Value) {
        let url = entry["request"]["url"].as_str().unwrap();
        let Some(rest) = url.split("/wc/v3/orders/").nth(1) else { return };
        let id: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if !id.is_empty() && id != "999999" && !self.names.knows_order(&id) {
            let orders = self.general.orders();
            self.names.name_order(&id, &orders.as_array().unwrap().last().unwrap()["id"]);
        }
    }

    /// Starts what runs beside the entries from this one on.
    async fn start_aside(&mut self, file: &str, index: usize, entries: &[Value]) {
        for (_, entry, _, until) in ASIDE.iter().filter(|(name, _, from, _)| *name == file && *from == index)
        {
            if *entry != index {
                self.prepare(file, *entry, &entries[*entry]);
            }
            let sent = self.send(&entries[*entry]);
            self.aside.push((*entry, *until, sent));
            // So far that it waits for its payment, and no further.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Waits for what was to be answered before this entry.
    async fn end_aside(&mut self, index: usize, entries: &[Value], tally: &mut Tally) {
        for (entry, until, sent) in std::mem::take(&mut self.aside) {
            if until != index {
                self.aside.push((entry, until, sent));
                continue;
            }
            let answer = sent.await.unwrap();
            if entries[entry]["response"]["status"] == 0 {
                tally.skipped.push((entry, "sent; its client went away before the answer".to_owned()));
            } else {
                self.judge(&entries[entry], &answer, Some((&mut *tally, entry)));
            }
        }
    }
}

/// Plays a file.
pub async fn play(file: &str, entries: &[Value], stage: &mut Stage) -> Tally {
    let mut tally = Tally::default();
    for (index, entry) in entries.iter().enumerate() {
        stage.end_aside(index, entries, &mut tally).await;
        stage.set_clock(entry);
        let aside = ASIDE.iter().any(|(name, entry, ..)| *name == file && *entry == index);
        let skip = SKIPS.iter().find(|(name, entries, ..)| *name == file && entries.contains(&index));
        let skip = skip.map(|(_, _, skip, reason)| (*skip, *reason)).or_else(|| scope(file, entry));
        let skip = skip.filter(|_| !aside);
        if let Some((_, reason)) = skip {
            tally.skipped.push((index, reason.to_owned()));
        }
        stage.prepare(file, index, entry);
        stage.start_aside(file, index, entries).await;
        if aside || skip.is_some_and(|(skip, _)| skip == Skip::Omit) {
            continue;
        }
        let made = MADE.iter().find(|(name, _)| *name == file);
        if let Some((made, token)) = made.zip(header(entry, "request", "Cart-Token"))
            && !stage.names.tokens.contains_key(&identity(token))
        {
            let token_of_run = stage.cart(made.1).await;
            stage.names.tokens.insert(identity(token), token_of_run);
        }
        stage.meet_order(entry);
        let answer = stage.send(entry).await.unwrap();
        stage.judge(entry, &answer, skip.is_none().then_some((&mut tally, index)));
    }
    stage.end_aside(entries.len(), entries, &mut tally).await;
    tally
}
