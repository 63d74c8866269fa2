//! A gateway over a shop whose every answer the test decides.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use axum::{body::Body, http::Request};
use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tillgate::{
    checkout::{
        cart::{CartHandle, CartPlan, CartView},
        ids::{ProductId, SessionId, ShopId},
        points::Probe,
        session::{AttemptEnd, Cart, Session},
        state::{Records as _, SeenOrder},
        store::{
            Abilities, BookedStock, Checked, Draft, Error, FoundOrder, FoundState, OrderSearch,
            OrderSighting, OrderView, PlaceOrder, PlacedOrder, Placement, ProductStock, Resolved,
            StockChanges, Store,
        },
    },
    clock::{Clock, ManualClock},
    money::Currency,
    state::{
        Retention,
        sqlite::{Archive, Sqlite},
    },
};
use tokio::sync::Notify;
use tower::ServiceExt as _;

use crate::{
    support::clients::{full, payment},
    support::roses::{Gateway, cart_of_roses, gateway},
};

/// What the shop answers to the next `POST`.
pub enum Answer {
    Lost,
    Declined,
    Placed(u32),
    /// The answer comes when the test lets it.
    Late(Arc<Notify>, u32),
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "what can be wrong is independent")]
pub struct Inner {
    pub answers: VecDeque<Answer>,
    /// Orders that every list shows.
    pub orders: Vec<FoundOrder>,
    /// Orders that are shown only when they are named.
    pub hidden: Vec<FoundOrder>,
    /// What happens to the cart some time after it was emptied: it is filled again.
    pub refills: bool,
    pub emptied: bool,
    /// The cart is not known any more.
    pub dead: bool,
    /// Nothing is answered.
    pub down: bool,
    /// What was asked, except the making of carts.
    pub asked: Vec<&'static str>,
    pub searches: Vec<(DateTime<Utc>, bool)>,
    /// Which cart each `POST` bought.
    pub bought: Vec<String>,
    pub carts: u32,
    /// What the shop names an order before it is placed.
    pub draft: Option<Draft>,
    /// Orders that are paid in the moment in which they are cancelled.
    pub paid_meanwhile: bool,
}

pub struct Shop {
    pub clock: Arc<ManualClock>,
    pub finds: bool,
    pub inner: Mutex<Inner>,
}

/// The shop's clock is two hours behind ours.
pub const BEHIND: TimeDelta = TimeDelta::hours(2);

impl Shop {
    pub fn time(&self) -> DateTime<Utc> {
        self.clock.now() - BEHIND
    }

    fn ask<T>(&self, what: &'static str, answer: impl FnOnce(&mut Inner) -> T) -> Result<T, Error> {
        let mut inner = self.inner.lock().unwrap();
        inner.asked.push(what);
        if inner.down {
            return Err(Error::TimedOut);
        }
        Ok(answer(&mut inner))
    }

    fn view(plan: &CartPlan, identity: &str) -> CartView {
        let handle = CartHandle { token: identity.to_owned(), identity: identity.to_owned() };
        CartView { handle, ..cart_of_roses(plan) }
    }
}

#[async_trait]
impl Store for Shop {
    fn abilities(&self) -> Abilities {
        Abilities { finds_orders: self.finds, cancels_orders: self.finds, opens_books: false }
    }
    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, Error> {
        Ok(items.iter().map(|item| Resolved::Product(ProductId::new(item))).collect())
    }
    async fn open(&self, plan: &CartPlan) -> Result<CartView, Error> {
        let number = {
            let mut inner = self.inner.lock().unwrap();
            inner.carts += 1;
            (inner.emptied, inner.dead) = (false, false);
            inner.carts
        };
        Ok(Self::view(plan, &format!("cart {number}")))
    }
    async fn change(&self, cart: &Cart, plan: &CartPlan) -> Result<CartView, Error> {
        Ok(Self::view(plan, &cart.view.handle.identity))
    }
    async fn check(&self, cart: &Cart, plan: &CartPlan) -> Result<Checked, Error> {
        self.ask("check", |_| ())?;
        let view = Self::view(plan, &cart.view.handle.identity);
        Ok(Checked { view, shop_time: Some(self.time()) })
    }
    async fn read(&self, cart: &Cart) -> Result<CartView, Error> {
        let (dead, filled) = self.ask("read", |inner| (inner.dead, !inner.emptied || inner.refills))?;
        if dead {
            return Err(Error::CartGone);
        }
        let plan = if filled { cart.plan.clone() } else { CartPlan::default() };
        Ok(Self::view(&plan, &cart.view.handle.identity))
    }
    async fn place(&self, cart: &Cart, _: &PlaceOrder) -> Result<Placement, Error> {
        let answer = {
            let mut inner = self.inner.lock().unwrap();
            inner.asked.push("place");
            inner.bought.push(cart.view.handle.identity.clone());
            inner.answers.pop_front().unwrap()
        };
        let id = match answer {
            Answer::Lost => return Err(Error::TimedOut),
            Answer::Declined => return Ok(Placement::Declined { shop_order: None }),
            Answer::Placed(id) => id,
            Answer::Late(now, id) => {
                now.notified().await;
                id
            }
        };
        Ok(Placement::Placed(order(id, FoundState::Placed, self.time()).order))
    }
    async fn read_order(&self, _: &PlacedOrder, _: &str) -> Result<OrderView, Error> {
        Ok(OrderView { currency: Currency::parse("USD").unwrap(), total: TOTAL, units: 1 })
    }
    async fn find_orders(&self, search: &OrderSearch<'_>) -> Result<Vec<FoundOrder>, Error> {
        let (since, thorough) = (search.since, search.thorough);
        self.ask("find", |inner| {
            inner.searches.push((since, thorough));
            let hidden = inner.hidden.iter().filter(|_| thorough);
            inner.orders.iter().chain(hidden).cloned().collect()
        })
    }
    async fn stock(&self, products: &[ProductId], _from: u64) -> Result<Vec<ProductStock>, Error> {
        // Nothing limits it.
        Ok(products.iter().map(|id| ProductStock { product: id.clone(), counted: Vec::new() }).collect())
    }
    async fn stock_changes(&self, since: DateTime<Utc>) -> Result<StockChanges, Error> {
        Ok(StockChanges { products: Vec::new(), until: since })
    }
    async fn booked_stock(&self) -> Result<Vec<BookedStock>, Error> {
        Ok(Vec::new())
    }
    async fn orders_since(&self, _: DateTime<Utc>) -> Result<Vec<OrderSighting>, Error> {
        Ok(Vec::new())
    }

    async fn draft(&self, _: &Cart, _: Option<&str>) -> Result<Option<Draft>, Error> {
        self.ask("draft", |inner| inner.draft.clone())
    }
    async fn find_draft(&self, draft: &Draft, _: &str) -> Result<Option<FoundOrder>, Error> {
        let told = self.ask("find by key", |inner| inner.orders.clone())?;
        Ok(told.into_iter().find(|order| order.order.shop_order == draft.shop_order))
    }
    async fn cancel_order(&self, shop_order: &str) -> Result<FoundOrder, Error> {
        let time = self.time();
        let found = self.ask("cancel", |inner| {
            let paid = inner.paid_meanwhile;
            let order = inner.orders.iter_mut().find(|order| order.order.shop_order == shop_order)?;
            (order.state, order.traces, order.modified_at) = (FoundState::Gone, paid, Some(time));
            Some(order.clone())
        })?;
        found.ok_or(Error::Refused { status: 404, code: None })
    }
    async fn empty(&self, _: &CartHandle) -> Result<(), Error> {
        self.ask("empty", |inner| inner.emptied = true)
    }
}

/// One bunch of roses with the cheap way to ship.
pub const TOTAL: i64 = 4000;

pub fn order(id: u32, state: FoundState, modified_at: DateTime<Utc>) -> FoundOrder {
    FoundOrder {
        order: PlacedOrder {
            shop_order: id.to_string(),
            number: id.to_string(),
            key: "key".into(),
            paid: state == FoundState::Placed,
            cart_filled: false,
            permalink_url: None,
        },
        state,
        total: TOTAL,
        traces: false,
        modified_at: Some(modified_at),
        stock_taken: false,
    }
}

/// A gateway over such a shop, with one session that is ready.
pub struct Desk {
    pub shop: Arc<Shop>,
    pub clock: Arc<ManualClock>,
    pub state: Arc<Sqlite>,
    pub gateway: Gateway,
    pub session: String,
}

impl Desk {
    pub async fn new() -> Self {
        Self::with(true, None).await
    }

    pub async fn with(finds: bool, probe: Option<Arc<dyn Probe>>) -> Self {
        let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()));
        let shop = Arc::new(Shop { clock: clock.clone(), finds, inner: Mutex::default() });
        let data = Arc::new(tempfile::tempdir().unwrap());
        let kept = TimeDelta::days(2);
        let retention = Retention { answers: kept, sessions: kept };
        let state = Arc::new(Sqlite::open(data.path(), retention, clock.clone()).unwrap());
        let gateway =
            gateway(shop.clone(), state.clone(), state.secret().to_vec(), data, clock.clone(), probe);
        let mut desk = Self { shop, clock, state, gateway, session: String::new() };
        let (status, created) = desk.call("POST", "", "create", &full("roses", 1)).await;
        assert_eq!(status, 201, "{created}");
        desk.session = format!("/{}", created["id"].as_str().unwrap());
        let mut chosen = full("roses", 1);
        chosen["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "std"}]);
        let (status, ready) = desk.call("PUT", &desk.session.clone(), "choose", &chosen).await;
        assert_eq!((status, &ready["status"]), (200, &json!("ready_for_complete")), "{ready}");
        desk.with_shop(|inner| inner.asked.clear());
        desk
    }

    /// Another process over the same state and shop.
    pub fn colleague(&self) -> Gateway {
        gateway(
            self.shop.clone(),
            self.state.clone(),
            self.state.secret().to_vec(),
            self.gateway.data.clone(),
            self.clock.clone(),
            None,
        )
    }

    pub fn with_shop<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.shop.inner.lock().unwrap())
    }

    pub async fn call(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(format!("/ucp/checkout-sessions{path}"))
            .header("ucp-agent", "profile=\"https://agent.example/p\"")
            .header("idempotency-key", key)
            .header("content-type", "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let (parts, body) = self.gateway.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub async fn complete(&self, key: &str) -> Value {
        let path = format!("{}/complete", self.session);
        let (status, told) = self.call("POST", &path, key, &payment("success_token")).await;
        assert_eq!(status, 200, "{told}");
        told
    }

    pub async fn get(&self) -> Value {
        self.call("GET", &self.session, "", &Value::Null).await.1
    }

    /// Places an order whose answer is lost.
    pub async fn lose(&self) {
        self.with_shop(|inner| inner.answers.push_back(Answer::Lost));
        assert_eq!(self.complete("k").await["status"], "complete_in_progress");
    }

    /// A round of the settler every two seconds, for so long; `true` as soon as no attempt is open any more.
    pub async fn settles_within(&self, seconds: u64) -> bool {
        for _ in 0..=seconds / 2 {
            self.gateway.service.tend().await;
            if self.stored().await.attempt.is_none() {
                return true;
            }
            self.clock.advance(Duration::from_secs(2));
        }
        false
    }

    pub async fn stored(&self) -> Session {
        let id = SessionId::new(self.session.trim_start_matches('/'));
        self.gateway.state.session(&ShopId::new("flower"), &id).await.unwrap().unwrap()
    }

    pub async fn seen(&self) -> Vec<SeenOrder> {
        let session = self.stored().await;
        let records = Archive::open(self.gateway.data.path()).unwrap();
        records.sightings(&session.shop, &session.id).await.unwrap()
    }

    pub fn count(&self, what: &str) -> usize {
        self.with_shop(|inner| inner.asked.iter().filter(|asked| **asked == what).count())
    }

    /// An order that the open attempt has made, in the state that it is in now.
    pub fn makes(&self, id: u32, state: FoundState) {
        let order = order(id, state, self.shop.time());
        self.with_shop(|inner| {
            inner.orders.retain(|known| known.order.shop_order != order.order.shop_order);
            inner.orders.push(order);
        });
    }
}

pub fn ends(session: &Session) -> Vec<AttemptEnd> {
    session.closed_attempts.iter().map(|closed| closed.end).collect()
}

pub fn codes(told: &Value) -> Vec<&str> {
    told["messages"].as_array().into_iter().flatten().filter_map(|message| message["code"].as_str()).collect()
}
