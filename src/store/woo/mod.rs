//! A WooCommerce shop through its public Store API (`wc/store/v1`), and its orders through `wc/v3`.
//!
//! In: the port's [`CartPlan`], [`Cart`] and [`PlaceOrder`]. Out: [`CartView`], [`Placement`] and friends, amounts in
//! ISO 4217 minor units, texts plain. The shop's decimals, HTML, tokens and codes stay in here.
//!
//! | file | owns |
//! |---|---|
//! | `client` | HTTP, deadlines, what a failure means |
//! | `wire` | the shapes that come and go |
//! | `token` | `Cart-Token` and whose cart it opens |
//! | `batch` | a plan as inner calls, what the shop refused of it |
//! | `translate`, `text` | cart to [`CartView`], money, HTML |
//! | `place` | `POST /checkout` |
//! | `orders` | orders read back and looked for |
//! | `stock` | what is left of products |
//! | `books` | what `wc/v3` lists: changes, stocks, orders |
//! | `hook` | what a shop delivers on its own |
//! | `resolve` | item ids |
//! | `catalog` | products, for the catalogue's port |
//!
//! Calls at the shop: `open` 2, `change`, `check`, `draft`, `read`, `place`, `read_order`, `find_draft`, `cancel_order`
//! and `empty` 1 each; one more read where the last inner call of a batch was refused, one more batch for every 25 inner
//! calls; `resolve` 0 or 1; `stock` 1 or 2.
//!
//! Nothing is repeated in here, and nothing but `place` carries payment data. The caller makes the calls on one
//! cart one after another: a shop loses writes that overlap. What can fail is [`Error`]; [`Error::effect`] says what
//! it may have done.

mod batch;
mod books;
mod catalog;
mod client;
pub mod hook;
mod orders;
mod place;
#[cfg(test)]
mod recorded;
mod resolve;
mod stock;
mod text;
mod token;
mod translate;
mod wire;

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::Method;
use secrecy::SecretString;
use serde_json::json;
use url::Url;

pub use self::resolve::ItemIds;
use self::{
    batch::Steps,
    client::{AdminApi, Call, NO_BODY, StoreApi},
    resolve::Resolver,
    translate::Shop,
};
use crate::{
    checkout::{
        cart::{CartHandle, CartPlan, CartView},
        ids::ProductId,
        session::Cart,
        store::{
            Abilities, BookedStock, Checked, Draft, Effect, Error, FoundOrder, OrderSearch, OrderSighting,
            OrderView, PlaceOrder, PlacedOrder, Placement, ProductStock, RefusedOrder, Resolved,
            StockChanges, Store,
        },
    },
    money::Currency,
    net,
};

/// What has to be known of a shop.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The shop's address, in front of `/wp-json`.
    pub base_url: Url,
    /// The currency of its orders.
    pub currency: Currency,
    /// Which ids agents use.
    pub item_ids: ItemIds,
    /// Whether the shop displays cart prices with tax.
    pub prices_with_tax: bool,
    /// Whether orders also carry who sold them (`utm_source`).
    pub attribution_source: bool,
    /// How long calls may take.
    pub deadlines: Deadlines,
    /// How long an article number that was found is remembered.
    pub sku_ttl: Duration,
    /// How long an article number that was not found is remembered.
    pub unknown_sku_ttl: Duration,
    /// The merchant's key to `wc/v3`: lets orders be looked for. Only over TLS does a shop honour it.
    pub wc_v3: Option<WcV3>,
}

impl Settings {
    /// Settings with all defaults: ids, prices without tax, no key.
    #[must_use]
    pub fn new(base_url: Url, currency: Currency) -> Self {
        Self {
            base_url,
            currency,
            item_ids: ItemIds::default(),
            prices_with_tax: false,
            attribution_source: false,
            deadlines: Deadlines::default(),
            sku_ttl: Duration::from_mins(5),
            unknown_sku_ttl: Duration::from_secs(30),
            wc_v3: None,
        }
    }
}

/// How long calls may take, from connecting to the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Reads.
    pub read: Duration,
    /// Cart writes.
    pub write: Duration,
    /// Placing an order: payment, mails and webhooks run inside it.
    pub place: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { read: Duration::from_secs(15), write: Duration::from_secs(30), place: Duration::from_secs(90) }
    }
}

/// A key to `wc/v3`; reading is enough to find lost orders.
#[derive(Debug, Clone)]
pub struct WcV3 {
    /// Consumer key.
    pub key: String,
    /// Consumer secret.
    pub secret: SecretString,
    /// Whether it may write, and unpaid orders may be cancelled with it.
    pub writes: bool,
}

/// A WooCommerce shop.
#[derive(Debug)]
pub struct WooStore {
    api: StoreApi,
    admin: Option<AdminApi>,
    cancels_orders: bool,
    /// Whether the shop is known to make no order before the `POST`.
    drafts_late: AtomicBool,
    resolver: Resolver,
    catalog: catalog::Memory,
    stock: stock::Memory,
    shop: Shop,
    currency: Currency,
    attribution_source: bool,
    deadlines: Deadlines,
    /// How many decimals the shop counts in, as its last cart said; [`UNSEEN`] before the first.
    decimals: AtomicU32,
}

const UNSEEN: u32 = u32::MAX;

/// When an answer was made, by the shop's own clock, where it says so.
type ShopTime = Option<DateTime<Utc>>;

impl WooStore {
    /// Makes the clients; calls nobody.
    ///
    /// # Errors
    /// [`net::Error::Build`].
    pub fn new(settings: Settings) -> Result<Self, net::Error> {
        let cancels_orders = settings.wc_v3.as_ref().is_some_and(|key| key.writes);
        let admin = match settings.wc_v3 {
            Some(WcV3 { key, secret, writes: _ }) => Some(AdminApi::new(&settings.base_url, key, secret)?),
            None => None,
        };
        Ok(Self {
            api: StoreApi::new(&settings.base_url)?,
            admin,
            cancels_orders,
            drafts_late: AtomicBool::new(false),
            resolver: Resolver::new(settings.item_ids, settings.sku_ttl, settings.unknown_sku_ttl),
            catalog: catalog::Memory::new(),
            stock: stock::Memory::default(),
            currency: settings.currency,
            attribution_source: settings.attribution_source,
            deadlines: settings.deadlines,
            shop: Shop { base_url: settings.base_url, prices_with_tax: settings.prices_with_tax },
            decimals: AtomicU32::new(UNSEEN),
        })
    }

    /// The shop's books.
    fn admin(&self) -> Result<&AdminApi, Error> {
        self.admin.as_ref().ok_or_else(|| Error::Unintelligible {
            what: "the shop's books are closed without a wc/v3 key".to_owned(),
            wrote: false,
        })
    }

    const fn reads(&self) -> Call {
        Call { deadline: self.deadlines.read, writes: false }
    }

    const fn writes(&self) -> Call {
        Call { deadline: self.deadlines.write, writes: true }
    }

    /// A token of a cart that does not exist yet: the shop stores nothing for it.
    async fn new_cart(&self) -> Result<CartHandle, Error> {
        let call = self.reads();
        let query = [("_fields", "items_count")];
        let answer = self.api.call(call, Method::GET, "/cart", &query, None, NO_BODY).await?;
        let _: serde_json::Map<String, serde_json::Value> = answer.read(call)?;
        let token = answer.token().ok_or_else(|| Error::Unintelligible {
            what: "the shop hands out no cart token".to_owned(),
            wrote: false,
        })?;
        token::handle(token, false)
    }

    async fn get_cart(&self, cart: &CartHandle) -> Result<(CartHandle, wire::Cart, ShopTime), Error> {
        let call = self.reads();
        let query = [("_fields", batch::CART_FIELDS)];
        let answer = self.api.call(call, Method::GET, "/cart", &query, Some(cart), NO_BODY).await?;
        let body = answer.read(call)?;
        Ok((token::renewed(cart, answer.token(), false)?, body, answer.shop_time()))
    }

    /// Sends the steps and reads what has become of the cart.
    async fn bring(&self, cart: &CartHandle, plan: &CartPlan, mut steps: Steps) -> Result<Checked, Error> {
        let mut handle = cart.clone();
        let mut shop_time = None;
        let mut body = None;
        let batches = steps.ops.len().div_ceil(batch::MOST);
        for (at, ops) in steps.ops.chunks(batch::MOST).enumerate() {
            let last = at + 1 == batches;
            let answer = self.send(&handle, ops, last).await;
            let (answer, told) = if at == 0 { answer? } else { answer.map_err(after_a_write)? };
            shop_time = told;
            for (op, inner) in ops.iter().zip(&answer.responses) {
                steps.refusals.extend(batch::refusal(op, inner)?);
                if let Some(token) = inner.token() {
                    handle = token::renewed(&handle, Some(token), true)?;
                }
            }
            if last {
                body = answer.responses.last().and_then(|inner| cart_of(inner).transpose()).transpose()?;
            }
        }
        let wrote = batches > 0;
        let body = if let Some(body) = body {
            body
        } else {
            let read = self.get_cart(&handle).await;
            let (newest, body, told) = if wrote { read.map_err(after_a_write)? } else { read? };
            (handle, shop_time) = (newest, told);
            body
        };
        batch::silent(&mut steps, plan, &body);
        Ok(Checked { view: self.view(handle, body, steps.refusals, wrote)?, shop_time })
    }

    async fn send(
        &self,
        cart: &CartHandle,
        ops: &[batch::Op],
        last: bool,
    ) -> Result<(wire::BatchAnswer, ShopTime), Error> {
        let call = self.writes();
        let request = batch::request(cart, ops, last);
        let answer = self.api.call(call, Method::POST, "/batch", &[], Some(cart), Some(&request)).await?;
        let shop_time = answer.shop_time();
        let answer: wire::BatchAnswer = answer.read(call)?;
        if answer.responses.len() == ops.len() {
            Ok((answer, shop_time))
        } else {
            Err(Error::Unintelligible { what: "a batch with answers missing".to_owned(), wrote: true })
        }
    }

    fn view(
        &self,
        handle: CartHandle,
        cart: wire::Cart,
        refusals: Vec<crate::checkout::cart::Refusal>,
        wrote: bool,
    ) -> Result<CartView, Error> {
        let decimals = cart.totals.unit.currency_minor_unit;
        let view = translate::cart_view(&self.shop, handle, cart, refusals, wrote)?;
        self.decimals.store(decimals, Ordering::Relaxed);
        Ok(view)
    }

    /// How the shop counts. Every order is placed after a look at its cart, so this has been seen.
    fn decimals(&self, currency: Currency) -> u32 {
        match self.decimals.load(Ordering::Relaxed) {
            UNSEEN => currency.exponent(),
            decimals => decimals,
        }
    }
}

/// The cart in an inner answer. A success that is no cart is an error; a conflict's cart is only a windfall.
fn cart_of(inner: &wire::Inner) -> Result<Option<wire::Cart>, Error> {
    let Some(cart) = batch::cart_in(inner) else { return Ok(None) };
    match serde_path_to_error::deserialize(cart) {
        Ok(cart) => Ok(Some(cart)),
        Err(_) if inner.status >= 300 => Ok(None),
        Err(error) => Err(Error::Unintelligible {
            what: format!("`{}` of the cart is not as expected", error.path()),
            wrote: true,
        }),
    }
}

/// A failure behind a write that went through: "nothing was done" is no longer true of the whole.
fn after_a_write(error: Error) -> Error {
    match error.effect() {
        Effect::Unknown => error,
        Effect::Definite if matches!(error, Error::CartGone) => error,
        Effect::NotSent | Effect::Definite => {
            Error::Unintelligible { what: format!("the cart was changed, but then: {error}"), wrote: true }
        }
    }
}

#[async_trait]
impl Store for WooStore {
    fn abilities(&self) -> Abilities {
        let opens_books = self.admin.is_some();
        Abilities { finds_orders: opens_books, cancels_orders: self.cancels_orders, opens_books }
    }

    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, Error> {
        self.resolver.resolve(&self.api, self.reads(), items).await
    }

    async fn open(&self, plan: &CartPlan) -> Result<CartView, Error> {
        let cart = self.new_cart().await?;
        Ok(self.bring(&cart, plan, batch::fill(plan)).await?.view)
    }

    async fn change(&self, cart: &Cart, plan: &CartPlan) -> Result<CartView, Error> {
        let steps = batch::difference(&cart.plan, &cart.view, plan);
        Ok(self.bring(&cart.view.handle, plan, steps).await?.view)
    }

    async fn check(&self, cart: &Cart, plan: &CartPlan) -> Result<Checked, Error> {
        self.bring(&cart.view.handle, plan, batch::again(&cart.view, plan)).await
    }

    async fn read(&self, cart: &Cart) -> Result<CartView, Error> {
        let (handle, body, _) = self.get_cart(&cart.view.handle).await?;
        // A look takes nothing back that was refused of the plan.
        self.view(handle, body, cart.view.refusals.clone(), false)
    }

    async fn place(&self, cart: &Cart, order: &PlaceOrder) -> Result<Placement, Error> {
        let Some(customer) = &cart.plan.customer else {
            return Ok(Placement::Refused(RefusedOrder::Address));
        };
        let currency = cart.view.currency;
        let body = place::body(order, customer, currency, self.decimals(currency), self.attribution_source);
        let answer = self.api.place(self.deadlines.place, &cart.view.handle, &body).await?;
        place::outcome(&answer)
    }

    async fn read_order(&self, order: &PlacedOrder, email: &str) -> Result<OrderView, Error> {
        orders::read(&self.api, self.reads(), order, email).await
    }

    async fn find_orders(&self, search: &OrderSearch<'_>) -> Result<Vec<FoundOrder>, Error> {
        let admin = self.admin()?;
        orders::find(admin, self.reads(), self.currency, search).await
    }

    async fn stock(&self, products: &[ProductId], from: u64) -> Result<Vec<ProductStock>, Error> {
        self.read_stock(products, from).await
    }

    async fn stock_changes(&self, since: DateTime<Utc>) -> Result<StockChanges, Error> {
        self.changed(since).await
    }

    async fn booked_stock(&self) -> Result<Vec<BookedStock>, Error> {
        self.all_booked().await
    }

    async fn orders_since(&self, since: DateTime<Utc>) -> Result<Vec<OrderSighting>, Error> {
        self.sightings(since).await
    }

    async fn draft(&self, cart: &Cart, method: Option<&str>) -> Result<Option<Draft>, Error> {
        if self.drafts_late.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let call = self.writes();
        let body = method.map_or_else(|| json!({}), |method| json!({ "payment_method": method }));
        let handle = &cart.view.handle;
        let answer = self.api.call(call, Method::PUT, "/checkout", &[], Some(handle), Some(&body)).await?;
        let order: wire::Checkout = match answer.read(call) {
            Ok(order) => order,
            // Releases before 9.8 have no such route. Other refusals are the order's own, and come again with it.
            Err(Error::Refused { status, code }) => {
                self.drafts_late.store(matches!(status, 404 | 405), Ordering::Relaxed);
                tracing::warn!(status, ?code, "the shop made no draft of an order");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        token::renewed(handle, answer.token(), true)?;
        if order.order_id == "0" || order.order_key.is_empty() {
            self.drafts_late.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let fresh = order.status == "checkout-draft";
        Ok(Some(Draft { shop_order: order.order_id, key: order.order_key, fresh }))
    }

    async fn find_draft(&self, draft: &Draft, email: &str) -> Result<Option<FoundOrder>, Error> {
        orders::find_draft(&self.api, self.reads(), draft, email).await
    }

    async fn cancel_order(&self, shop_order: &str) -> Result<FoundOrder, Error> {
        let Some(admin) = self.admin.as_ref().filter(|_| self.cancels_orders) else {
            return Err(Error::Unintelligible {
                what: "orders cannot be cancelled without a wc/v3 key that writes".to_owned(),
                wrote: false,
            });
        };
        orders::cancel(admin, self.writes(), self.currency, shop_order).await
    }

    async fn empty(&self, cart: &CartHandle) -> Result<(), Error> {
        let call = self.writes();
        let answer = self.api.call(call, Method::DELETE, "/cart/items", &[], Some(cart), NO_BODY).await?;
        let _: Vec<serde_json::Value> = answer.read(call)?;
        // Another identity: the shop did not know the token and emptied nothing of ours.
        token::renewed(cart, answer.token(), true).map(|_| ())
    }
}
