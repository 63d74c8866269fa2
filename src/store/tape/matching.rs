//! When a live call is the recorded one.
//!
//! Both are brought into one form, [`Call`], and compared member by member: method, path, query (in any
//! order) and body (JSON as values, anything else as text). Host and headers are not compared,
//! `Authorization` among them: the tape is the shop, and what a header may say is the client's own affair.
//! Beyond that, this is all that may differ, each with its reason:
//!
//! | may differ | reason |
//! |---|---|
//! | value of a `Cart-Token`, outer or inner (not its presence on a write) | the tape issues its own |
//! | `extensions["woocommerce/order-attribution"].utm_id` | the gateway makes a correlation id per session; the first use binds it, later uses must agree |
//! | a `customer_note` that the live checkout lacks | protocols without a note are played from recordings with one |
//! | a single call and a batch of one, either way round | the same effect; the answer is wrapped again |
//! | `_fields`, at any call | it trims answers and changes nothing; see [`super::answer`] |
//! | `after` of `GET /wc/v3/orders` | a moment before the order was sent, so another one on every day |
//! | when orders are looked for (`GET /wc/v3/orders`) | a gateway looks when it is in doubt, a recording has fewer looks; answered from what was played, see [`super::orders`] |
//! | strings in `log._tillgate.stand_ins` | the recorder scrubbed what stood there; the first use binds it, later uses must agree |
//!
//! A stand-in is a whole value (a JSON string, a query value), never a part of one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What recorded strings stand for in this playing: recorded text to live text.
pub(super) type Bindings = BTreeMap<String, String>;

/// A call to the shop, recorded or live, in the form that is compared.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// Whether `requests` came as a batch.
    pub(super) batch: bool,
    /// The outer `Cart-Token`, or where there is none the first inner one.
    pub(super) token: Option<String>,
    /// The single call, or those inside the batch.
    pub(super) requests: Vec<Request>,
    /// Members of a batch beside `requests` (`validation`).
    options: Map<String, Value>,
    outer_token: bool,
}

/// One call, inside a batch or alone.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    /// Below `/wp-json`, without a slash at the end: `/wc/store/v1/cart`.
    pub(super) path: String,
    /// Sorted, without `_fields`.
    query: Vec<(String, String)>,
    /// The top-level members that `_fields` asks for.
    pub(super) fields: Option<Vec<String>>,
    body: Body,
    inner_token: bool,
}

#[derive(Debug, Clone)]
enum Body {
    Json(Value),
    Text(String),
}

/// What a checkout says of its sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) email: &'a str,
    pub(super) correlation: Option<&'a str>,
}

/// The first thing in which two calls differ.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(super) struct Difference {
    /// Where: a path into the call, `$.requests[0].body.id`.
    pub(super) path: String,
    /// What was recorded.
    pub(super) wanted: Value,
    /// What came.
    pub(super) got: Value,
}

/// What a comparison found.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// In order; empty if the calls match.
    pub(super) differences: Vec<Difference>,
    /// What a match would bind.
    pub(super) bound: Bindings,
    /// How far apart the calls are: another path counts for more than another value.
    pub(super) distance: usize,
}

impl Comparison {
    pub(super) fn matches(&self) -> bool {
        self.differences.is_empty()
    }
}

impl Call {
    /// Brings a call into the form that is compared.
    pub(super) fn new(method: &str, path: &str, query: &str, token: Option<&str>, body: &[u8]) -> Self {
        let outer = Request::new(method, path, query, body, token.is_some());
        let Some((options, items)) = batch(&outer) else {
            return Self {
                batch: false,
                token: token.map(str::to_owned),
                requests: vec![outer],
                options: Map::new(),
                outer_token: token.is_some(),
            };
        };
        let inner_token = items.iter().find_map(inner_token).map(str::to_owned);
        Self {
            batch: true,
            token: token.map(str::to_owned).or(inner_token),
            requests: items.iter().map(Request::inner).collect(),
            options,
            outer_token: token.is_some(),
        }
    }

    /// The call as a shop takes it that does not know the token: one without.
    pub(super) fn without_token(mut self) -> Self {
        self.token = None;
        self.outer_token = false;
        for request in &mut self.requests {
            request.inner_token = false;
        }
        self
    }

    /// Whether the call may change something at the shop.
    pub(super) fn is_write(&self) -> bool {
        self.batch
            || self
                .first()
                .is_none_or(|request| !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS"))
    }

    /// The single call; of a batch its first.
    pub(super) fn first(&self) -> Option<&Request> {
        self.requests.first()
    }

    /// Whether this is a look at the cart.
    pub(super) fn is_cart_read(&self) -> bool {
        !self.is_write() && self.first().is_some_and(|request| request.store_path() == Some("cart"))
    }

    /// Whether the answer depends on whose token the call carries.
    pub(super) fn is_personal(&self) -> bool {
        self.first().and_then(Request::store_path).is_some_and(|path| {
            let room = path.split('/').next();
            room == Some("cart") || room == Some("checkout")
        })
    }

    /// Whether the call looks for orders with the merchant's key.
    pub(super) fn is_orders_look(&self) -> bool {
        !self.batch && self.first().is_some_and(|request| request.method == "GET" && request.path == ORDERS)
    }

    /// Whose orders the call looks for, when it is the plain look for one buyer's orders.
    pub(super) fn looks_for_orders_of(&self) -> Option<&str> {
        let request = self.first().filter(|_| self.is_orders_look())?;
        let mut email = None;
        for (name, value) in &request.query {
            match name.as_str() {
                "search" => email = Some(value.as_str()),
                "created_via" if value == "store-api" => {}
                "after" => {}
                _ => return None,
            }
        }
        email
    }

    /// Who sent a checkout, if this is one.
    pub(super) fn sent_checkout(&self) -> Option<Sent<'_>> {
        let request = self.first().filter(|request| {
            !self.batch && request.method == "POST" && request.store_path() == Some("checkout")
        })?;
        let Body::Json(body) = &request.body else { return None };
        let text = |pointer| body.pointer(pointer).and_then(Value::as_str);
        Some(Sent {
            email: text("/billing_address/email").unwrap_or_default(),
            correlation: text("/extensions/woocommerce~1order-attribution/utm_id"),
        })
    }

    /// The order that the call names in its path.
    pub(super) fn order_id(&self) -> Option<&str> {
        let path = &self.first()?.path;
        let rest =
            ["/wc/store/v1/order/", "/wc/v3/orders/"].iter().find_map(|start| path.strip_prefix(start))?;
        rest.split('/').next()
    }
}

/// The members of a batch: what stands beside `requests`, and those.
fn batch(outer: &Request) -> Option<(Map<String, Value>, Vec<Value>)> {
    if outer.method != "POST" || outer.store_path() != Some("batch") {
        return None;
    }
    let Body::Json(Value::Object(members)) = &outer.body else { return None };
    let mut options = members.clone();
    let Some(Value::Array(items)) = options.remove("requests") else { return None };
    if options.get("validation").and_then(Value::as_str) == Some("normal") {
        options.remove("validation"); // the default
    }
    Some((options, items))
}

fn inner_token(item: &Value) -> Option<&str> {
    let headers = item.get("headers")?.as_object()?;
    headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("cart-token"))
        .and_then(|(_, value)| value.as_str())
}

impl Request {
    fn new(method: &str, path: &str, query: &str, body: &[u8], inner_token: bool) -> Self {
        let body = serde_json::from_slice(body)
            .map_or_else(|_| Body::Text(String::from_utf8_lossy(body).into_owned()), Body::Json);
        Self::with_body(method, path, query, body, inner_token)
    }

    fn with_body(method: &str, path: &str, query: &str, body: Body, inner_token: bool) -> Self {
        let mut path = path.split_once("/wp-json").map_or(path, |(_, below)| below).to_owned();
        let mut fields = None;
        let mut pairs = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                // A name with dots keeps its whole top-level member, as the Store API does.
                "_fields" => {
                    fields = Some(
                        value
                            .split(',')
                            .map(|name| name.split('.').next().unwrap_or(name).trim().to_owned())
                            .filter(|name| !name.is_empty())
                            .collect(),
                    );
                }
                "rest_route" => path = value.into_owned(),
                _ => pairs.push((name.into_owned(), value.into_owned())),
            }
        }
        pairs.sort();
        path.truncate(path.trim_end_matches('/').len());
        Self { method: method.to_ascii_uppercase(), path, query: pairs, fields, body, inner_token }
    }

    fn inner(item: &Value) -> Self {
        let text = |name| item.get(name).and_then(Value::as_str);
        let address = text("path").unwrap_or_default();
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let body = item.get("body").cloned().map_or_else(|| Body::Text(String::new()), Body::Json);
        Self::with_body(text("method").unwrap_or("POST"), path, query, body, inner_token(item).is_some())
    }

    /// The path below the Store API's root (`cart/add-item`).
    pub(super) fn store_path(&self) -> Option<&str> {
        self.path.strip_prefix("/wc/store/v1/").or_else(|| self.path.strip_prefix("/wc/store/"))
    }
}

/// The merchant's list of orders.
const ORDERS: &str = "/wc/v3/orders";

/// The weight of another method or path.
const ANOTHER_CALL: usize = 1_000;
/// The weight of a call more or less in a batch: one that has a call too few is nearer than another route.
const ANOTHER_LENGTH: usize = 100;

/// Compares a live call with a recorded one.
///
/// `stand_ins` are those of the recording, `bindings` what is bound so far.
pub(super) fn compare(recorded: &Call, live: &Call, stand_ins: &[String], bindings: &Bindings) -> Comparison {
    let mut comparer = Comparer { stand_ins, bindings, found: Comparison::default() };
    let write = recorded.is_write();
    if write && recorded.outer_token != live.outer_token {
        comparer.differ(
            "$.headers[\"Cart-Token\"]",
            presence(recorded.outer_token),
            presence(live.outer_token),
        );
    }
    if recorded.requests.len() != live.requests.len() {
        comparer.found.distance += recorded.requests.len().abs_diff(live.requests.len()) * ANOTHER_LENGTH;
        comparer.differ("$.requests.length", recorded.requests.len().into(), live.requests.len().into());
    }
    for (index, (recorded_request, live_request)) in recorded.requests.iter().zip(&live.requests).enumerate()
    {
        let at = if recorded.batch { format!("$.requests[{index}]") } else { "$".to_owned() };
        comparer.request(&at, recorded_request, live_request, write);
    }
    comparer.value(
        "$",
        &Value::Object(recorded.options.clone()),
        &Value::Object(live.options.clone()),
        Place::Other,
    );
    comparer.found
}

fn presence(there: bool) -> Value {
    Value::from(if there { "a token" } else { "no token of this tape" })
}

/// What the comparison must know of where it stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The body of a checkout.
    Checkout,
    /// The value is the correlation id.
    Correlation,
    Other,
}

struct Comparer<'a> {
    stand_ins: &'a [String],
    bindings: &'a Bindings,
    found: Comparison,
}

impl Comparer<'_> {
    fn differ(&mut self, path: &str, wanted: Value, got: Value) {
        self.found.distance += 1;
        self.found.differences.push(Difference { path: path.to_owned(), wanted, got });
    }

    fn request(&mut self, at: &str, recorded: &Request, live: &Request, write: bool) {
        for (member, wanted, got) in
            [("method", &recorded.method, &live.method), ("path", &recorded.path, &live.path)]
        {
            if wanted != got {
                self.found.distance += ANOTHER_CALL;
                self.differ(&format!("{at}.{member}"), wanted.as_str().into(), got.as_str().into());
            }
        }
        if write && recorded.inner_token != live.inner_token {
            let path = format!("{at}.headers[\"Cart-Token\"]");
            self.differ(&path, presence(recorded.inner_token), presence(live.inner_token));
        }
        self.query(at, recorded, live);
        let place = match recorded.store_path() {
            Some(path) if path.starts_with("checkout") => Place::Checkout,
            _ => Place::Other,
        };
        match (&recorded.body, &live.body) {
            (Body::Json(wanted), Body::Json(got)) => self.value(&format!("{at}.body"), wanted, got, place),
            (Body::Text(wanted), Body::Text(got)) if wanted == got => {}
            (wanted, got) => self.differ(&format!("{at}.body"), wanted.to_value(), got.to_value()),
        }
    }

    fn query(&mut self, at: &str, recorded: &Request, live: &Request) {
        let mut wanted = recorded.query.iter().peekable();
        let mut got = live.query.iter().peekable();
        loop {
            let (left, right) = (wanted.peek().copied(), got.peek().copied());
            match (left, right) {
                (Some((name, value)), Some((other, live_value))) if name == other => {
                    let time_varying = name == "after" && recorded.method == "GET" && recorded.path == ORDERS;
                    if !time_varying && !self.same_text(value, live_value, Place::Other) {
                        self.differ(
                            &format!("{at}.query.{name}"),
                            value.as_str().into(),
                            live_value.as_str().into(),
                        );
                    }
                    wanted.next();
                    got.next();
                }
                (Some((name, value)), right) if right.is_none_or(|(other, _)| name < other) => {
                    self.differ(&format!("{at}.query.{name}"), value.as_str().into(), Value::Null);
                    wanted.next();
                }
                (_, Some((name, value))) => {
                    self.differ(&format!("{at}.query.{name}"), Value::Null, value.as_str().into());
                    got.next();
                }
                (_, None) => return,
            }
        }
    }

    fn value(&mut self, at: &str, recorded: &Value, live: &Value, place: Place) {
        match (recorded, live) {
            (Value::Object(wanted), Value::Object(got)) => self.object(at, wanted, got, place),
            (Value::Array(wanted), Value::Array(got)) => {
                for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                    self.value(&format!("{at}[{index}]"), wanted, got, Place::Other);
                }
                if wanted.len() != got.len() {
                    self.differ(&format!("{at}.length"), wanted.len().into(), got.len().into());
                }
            }
            (Value::String(wanted), Value::String(got)) if self.same_text(wanted, got, place) => {}
            // A number that was scrubbed became a text.
            (Value::String(wanted), Value::Number(got))
                if self.stand_ins.contains(wanted) && self.same_text(wanted, &got.to_string(), place) => {}
            (Value::Number(wanted), Value::Number(got)) if same_number(wanted, got) => {}
            (wanted, got) if wanted == got && !wanted.is_string() => {}
            (wanted, got) => self.differ(at, wanted.clone(), got.clone()),
        }
    }

    fn object(&mut self, at: &str, recorded: &Map<String, Value>, live: &Map<String, Value>, place: Place) {
        let checkout = place == Place::Checkout;
        for (name, wanted) in recorded {
            let path = member(at, name);
            let below = if path.ends_with(CORRELATION) { Place::Correlation } else { Place::Other };
            match live.get(name) {
                Some(got) => self.value(&path, wanted, got, below),
                None if checkout && name == "customer_note" => {}
                None => self.differ(&path, wanted.clone(), Value::Null),
            }
        }
        for (name, got) in live.iter().filter(|(name, _)| !recorded.contains_key(*name)) {
            self.differ(&member(at, name), Value::Null, got.clone());
        }
    }

    /// Whether two strings agree; binds a correlation id or stand-in that is met for the first time.
    fn same_text(&mut self, recorded: &str, live: &str, place: Place) -> bool {
        if let Some(bound) = self.bindings.get(recorded).or_else(|| self.found.bound.get(recorded)) {
            return bound == live;
        }
        if place == Place::Correlation || self.stand_ins.iter().any(|text| text == recorded) {
            self.found.bound.insert(recorded.to_owned(), live.to_owned());
            return true;
        }
        recorded == live
    }
}

/// Where the correlation id stands in the body of a checkout.
const CORRELATION: &str = ".body.extensions[\"woocommerce/order-attribution\"].utm_id";

impl Body {
    fn to_value(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Text(text) if text.is_empty() => Value::Null,
            Self::Text(text) => text.as_str().into(),
        }
    }
}

fn member(at: &str, name: &str) -> String {
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        format!("{at}.{name}")
    } else {
        format!("{at}[{}]", Value::from(name))
    }
}

/// `1` and `1.0` are the same number.
fn same_number(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    one == other || one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
