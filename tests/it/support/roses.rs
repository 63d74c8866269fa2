//! A whole gateway (UCP) over a made-up shop in memory: for tests of the protocol, and for benchmarks, where the
//! shop must cost nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::Router;
use chrono::{DateTime, Utc};
use tillgate::{
    catalog::{Branch, Catalog, Found, Page, Query, Shelf, Wish},
    checkout::{
        cart::{CartHandle, CartLine, CartPlan, CartTotals, CartView, Limits, Package, Rate},
        ids::{ProductId, ShopId},
        outcome::{Outcome, RenderContext, Renderer},
        points::Probe,
        service::{Parts, PaymentHandler, Service, Settings},
        session::Cart,
        state::State,
        store::{
            Abilities, BookedStock, Checked, Draft, Error, FoundOrder, OrderSearch, OrderSighting, OrderView,
            PlaceOrder, PlacedOrder, Placement, ProductStock, Resolved, StockChanges, Store,
        },
    },
    clock::Clock,
    idempotency::Answer,
    lane::Lanes,
    money::Currency,
    platform::{Document, Pin, Platforms, full_profile},
    protocol::{
        ShopFace,
        shop::{HandlerFace, Links, UcpHandler},
        ucp::{self, Ucp},
    },
};

/// A shop that sells roses at 35.00 and ships them for 5.00 or 15.00; other items are unknown to it.
#[derive(Debug, Default)]
pub struct Roses {
    /// Questions about carts.
    pub calls: AtomicUsize,
    orders: AtomicUsize,
}

impl Roses {
    fn view(&self, plan: &CartPlan) -> CartView {
        self.calls.fetch_add(1, Ordering::SeqCst);
        cart_of_roses(plan)
    }
}

/// What that shop's cart says of a plan.
pub fn cart_of_roses(plan: &CartPlan) -> CartView {
    let currency = Currency::parse("USD").unwrap();
    let known = plan.customer.as_ref().is_some_and(|customer| customer.shipping.is_some());
    let fast = plan.rates.iter().any(|choice| choice.rate == "exp");
    let rate = |id: &str, price, selected| Rate {
        id: id.into(),
        title: format!("Rate {id}"),
        description: String::new(),
        price,
        tax: 0,
        pickup: false,
        selected,
    };
    let lines: Vec<CartLine> = plan
        .lines
        .iter()
        .map(|line| {
            let amount = 3500 * i64::from(line.quantity);
            CartLine {
                key: line.product.as_str().into(),
                product: line.product.clone(),
                sku: None,
                title: "Roses".into(),
                image_url: None,
                quantity: line.quantity,
                limits: Limits { minimum: 1, maximum: 99, step: 1 },
                left: None,
                unit_price: 3500,
                unit_price_with_tax: false,
                subtotal: amount,
                subtotal_tax: 0,
                total: amount,
                total_tax: 0,
            }
        })
        .collect();
    let shipping = if fast { 1500 } else { 500 };
    let goods: i64 = lines.iter().map(|line| line.total).sum();
    CartView {
        handle: CartHandle { token: "t".into(), identity: "i".into() },
        currency,
        packages: vec![Package {
            id: "0".into(),
            name: String::new(),
            line_keys: lines.iter().map(|line| line.key.clone()).collect(),
            rates: if known { vec![rate("std", 500, !fast), rate("exp", 1500, fast)] } else { vec![] },
        }],
        lines,
        coupons: vec![],
        fees: vec![],
        totals: CartTotals {
            shipping: known.then_some(shipping),
            shipping_tax: 0,
            tax: 0,
            total: goods + if known { shipping } else { 0 },
        },
        needs_shipping: true,
        needs_payment: true,
        payment_methods: vec!["agent_token".into()],
        warnings: vec![],
        refusals: vec![],
    }
}

#[async_trait]
impl Store for Roses {
    fn abilities(&self) -> Abilities {
        Abilities { finds_orders: false, cancels_orders: false, opens_books: false }
    }
    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, Error> {
        let known = |item: &String| match item.as_str() {
            "roses" => Resolved::Product(ProductId::new("roses")),
            _ => Resolved::Unknown,
        };
        Ok(items.iter().map(known).collect())
    }
    async fn open(&self, plan: &CartPlan) -> Result<CartView, Error> {
        Ok(self.view(plan))
    }
    async fn change(&self, _: &Cart, plan: &CartPlan) -> Result<CartView, Error> {
        Ok(self.view(plan))
    }
    async fn check(&self, _: &Cart, plan: &CartPlan) -> Result<Checked, Error> {
        Ok(Checked { view: self.view(plan), shop_time: None })
    }
    async fn read(&self, cart: &Cart) -> Result<CartView, Error> {
        Ok(self.view(&cart.plan))
    }
    async fn place(&self, _: &Cart, order: &PlaceOrder) -> Result<Placement, Error> {
        if order.payment_data.iter().any(|(_, value)| value == "tok_declined") {
            return Ok(Placement::Declined { shop_order: None });
        }
        let order = 17 + self.orders.fetch_add(1, Ordering::SeqCst);
        Ok(Placement::Placed(PlacedOrder {
            shop_order: order.to_string(),
            number: "1207".into(),
            key: "secret".into(),
            paid: true,
            cart_filled: false,
            permalink_url: Some("https://shop.example/order/17".into()),
        }))
    }
    async fn read_order(&self, _: &PlacedOrder, _: &str) -> Result<OrderView, Error> {
        Ok(OrderView { currency: Currency::parse("USD").unwrap(), total: 8500, units: 2 })
    }
    async fn find_orders(&self, _: &OrderSearch<'_>) -> Result<Vec<FoundOrder>, Error> {
        Ok(vec![])
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
        Ok(None)
    }
    async fn find_draft(&self, _: &Draft, _: &str) -> Result<Option<FoundOrder>, Error> {
        Ok(None)
    }
    async fn cancel_order(&self, _: &str) -> Result<FoundOrder, Error> {
        Err(Error::Refused { status: 401, code: None })
    }
    async fn empty(&self, _: &CartHandle) -> Result<(), Error> {
        Ok(())
    }
}

/// Nothing is on the shelves.
struct Empty;

#[async_trait]
impl Shelf for Empty {
    fn takes_its_own_call(&self, _: &str) -> bool {
        false
    }

    async fn categories(&self) -> Result<Vec<Branch>, Error> {
        Ok(Vec::new())
    }

    async fn closely(&self, _: &str, _: &Wish) -> Result<Option<Found>, Error> {
        Ok(None)
    }

    async fn search(&self, _: &Query, _: &[String]) -> Result<Page, Error> {
        Ok(Page { products: vec![], total: Some(0), more: false })
    }
    async fn find(&self, ids: &[String]) -> Result<Vec<Option<Found>>, Error> {
        Ok(vec![None; ids.len()])
    }
}

/// A catalogue of nothing.
pub fn empty_catalog() -> Arc<Catalog> {
    let ttl = Duration::from_mins(1);
    let settings = tillgate::catalog::Settings {
        ttl,
        cache_bytes: 1 << 20,
        page_size: 50,
        ids: 50,
        calls: 3,
        wait: ttl,
    };
    Arc::new(Catalog::new(Arc::new(Empty), settings))
}

struct Render(Arc<ShopFace>);

impl Renderer for Render {
    fn render(&self, context: &RenderContext, outcome: &Outcome) -> Answer {
        ucp::render(&self.0, context, outcome)
    }
}

/// A gateway over a shop of the test's own.
pub struct Gateway {
    pub router: Router,
    pub service: Arc<Service>,
    pub state: Arc<dyn State>,
    pub data: Arc<tempfile::TempDir>,
}

/// Puts a gateway together over a shop and a state, which others may share.
pub fn gateway(
    store: Arc<dyn Store>,
    state: Arc<dyn State>,
    secret: Vec<u8>,
    data: Arc<tempfile::TempDir>,
    clock: Arc<dyn Clock>,
    probe: Option<Arc<dyn Probe>>,
) -> Gateway {
    let face = Arc::new(ShopFace {
        id: ShopId::new("flower"),
        title: "Flowers".into(),
        public_url: "https://shop.example".into(),
        https_base: "https://shop.example".into(),
        home_url: "https://shop.example/".parse().unwrap(),
        currency: Currency::parse("USD").unwrap(),
        prices_with_tax: false,
        links: Links::default(),
        handlers: vec![HandlerFace {
            always: false,
            id: "mock_payment_handler".into(),
            method: "agent_token".into(),
            ucp: Some(UcpHandler {
                name: "dev.tillgate.mock".into(),
                version: "2026-04-08".into(),
                spec: None,
                schema: None,
                instrument_types: vec![],
                config: serde_json::Map::new(),
            }),
            acp: None,
        }],
        agents: vec![],
        locales: vec![],
        development: false,
        max_lines: 100,
        max_quantity: 9_999,
    });
    let settings = Settings {
        shop: face.id.clone(),
        currency: face.currency,
        handlers: vec![PaymentHandler {
            id: "mock_payment_handler".into(),
            method: "agent_token".into(),
            data: vec![("token".into(), "{credential.token}".into())],
            always: false,
        }],
        https_base: face.https_base.clone(),
        session_life: Duration::from_hours(24),
        complete_wait: Duration::from_secs(4),
        snapshot_life: Duration::from_secs(30),
        retry_hold: Duration::from_mins(10),
        stock_doubt: Duration::from_secs(5),
        settle_wait: Duration::from_secs(30),
        self_fence: Duration::from_secs(2),
        stand_ins: None,
        cheapest_first: false,
    };
    let parts = Parts {
        store,
        secret,
        state: state.clone(),
        lanes: Lanes::new(4, Duration::from_secs(10)),
        probe,
        clock,
        renderer: Arc::new(Render(face.clone())),
        tasks: tokio_util::task::TaskTracker::new(),
    };
    let pins = ["https://agent.example/p", "https://other.example/p"].map(|url| Pin {
        url: url.into(),
        version: "2026-04-08".into(),
        document: Document::Value(full_profile("2026-04-08", None)),
    });
    let platforms = Arc::new(Platforms::new(&pins, false).unwrap());
    let service = Arc::new(Service::new(settings, parts));
    let ucp = Ucp { face, service: service.clone(), catalog: empty_catalog(), platforms, json_depth: 32 };
    Gateway { router: ucp::router(Arc::new(ucp)), service, state, data }
}
