//! The port to the model shop, as one process uses it: every call is work of the shop's own, and reaches its
//! caller only while that lives.

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tillgate::{
    checkout::{
        cart::{
            CartCoupon, CartHandle, CartLine, CartPlan, CartTotals, CartView, CodeReason, ItemReason, Limits,
            Package, Rate, Refusal,
        },
        ids::ProductId,
        session::Cart,
        store::{
            Abilities, BookedStock, Checked, Draft, Error, FoundOrder, OrderSearch, OrderSighting, OrderView,
            PlaceOrder, PlacedOrder, Placement, ProductStock, Resolved, StockChanges, Store,
        },
    },
    money::Currency,
    stock::{Reading, Source, StockId, Upper},
};
use tokio::time::Instant;

use super::{
    schedule::Life,
    shop::{Kind, ONCE, PRICES, RATES, Row, Shop, price, total},
};

/// What a call takes, at the shop.
const WORK: Duration = Duration::from_millis(60);
/// What the caller waits for a read or a write, and for a `POST`.
const DEADLINES: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(90));

/// The shop as one process reaches it.
pub struct Client {
    pub shop: Arc<Shop>,
    pub process: usize,
    pub life: Arc<Life>,
    /// Whether orders can be looked for.
    pub finds: bool,
}

impl Client {
    /// Sends a call: the shop works on it whatever becomes of the caller.
    async fn call<T: Send + 'static>(
        &self,
        deadline: Duration,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.life.pass().await;
        let work = tokio::spawn(work);
        let answer = match tokio::time::timeout(deadline, work).await {
            Ok(answer) => answer.unwrap_or(Err(Error::TimedOut)),
            Err(_) => Err(Error::TimedOut),
        };
        self.life.pass().await;
        answer
    }

    /// A call on a cart: loads the row, works, writes the row, answers the cart.
    async fn on_cart(
        &self,
        cart: &str,
        kind: Kind,
        change: impl FnOnce(&Shop, &mut Row) -> Vec<Refusal> + Send + 'static,
    ) -> Result<CartView, Error> {
        let (shop, cart, process) = (Arc::clone(&self.shop), cart.to_owned(), self.process);
        self.call(DEADLINES.0, async move {
            shop.begin(&cart, kind, process);
            let row = shop.books().carts.get(&cart).map(|known| known.row.clone());
            let Some(mut row) = row else { return Err(Error::CartGone) };
            let refusals = change(&shop, &mut row);
            tokio::time::sleep(WORK).await;
            if kind != Kind::Read {
                shop.write(&cart, row.clone());
            }
            shop.end(&cart, kind);
            Ok(view(&shop, &cart, &row, refusals))
        })
        .await
    }
}

#[async_trait]
impl Store for Client {
    fn abilities(&self) -> Abilities {
        Abilities { finds_orders: self.finds, cancels_orders: false, opens_books: self.finds }
    }

    async fn resolve(&self, items: &[String]) -> Result<Vec<Resolved>, Error> {
        self.life.pass().await;
        let known = |item: &String| PRICES.iter().find(|(name, ..)| name == item);
        let resolve =
            |item| known(item).map_or(Resolved::Unknown, |(_, id, _)| Resolved::Product(ProductId::new(*id)));
        Ok(items.iter().map(resolve).collect())
    }

    async fn open(&self, plan: &CartPlan) -> Result<CartView, Error> {
        self.life.pass().await;
        let cart = self.shop.books().new_cart();
        let plan = plan.clone();
        self.on_cart(&cart, Kind::Open, move |shop, row| brought(shop, row, &plan)).await
    }

    async fn change(&self, cart: &Cart, plan: &CartPlan) -> Result<CartView, Error> {
        let plan = plan.clone();
        let change = move |shop: &Shop, row: &mut Row| {
            if row.lines.is_empty() { Vec::new() } else { brought(shop, row, &plan) }
        };
        self.on_cart(&cart.view.handle.identity, Kind::Change, change).await
    }

    async fn check(&self, cart: &Cart, plan: &CartPlan) -> Result<Checked, Error> {
        let plan = plan.clone();
        let change = move |_: &Shop, row: &mut Row| {
            chosen(row, &plan);
            Vec::new()
        };
        let shop_time = self.shop.time();
        let view = self.on_cart(&cart.view.handle.identity, Kind::Check, change).await?;
        Ok(Checked { view, shop_time: Some(shop_time) })
    }

    async fn read(&self, cart: &Cart) -> Result<CartView, Error> {
        self.on_cart(&cart.view.handle.identity, Kind::Read, |_, _| Vec::new()).await
    }

    async fn place(&self, cart: &Cart, order: &PlaceOrder) -> Result<Placement, Error> {
        let email =
            cart.plan.customer.as_ref().and_then(|customer| customer.email.clone()).unwrap_or_default();
        let (identity, order) = (cart.view.handle.identity.clone(), order.clone());
        let place = Arc::clone(&self.shop).place(identity, email, order, self.process);
        self.call(DEADLINES.1, place).await
    }

    async fn read_order(&self, order: &PlacedOrder, _: &str) -> Result<OrderView, Error> {
        let (shop, id) = (Arc::clone(&self.shop), order.shop_order.parse::<u64>().unwrap_or_default());
        self.call(DEADLINES.0, async move {
            tokio::time::sleep(WORK).await;
            let books = shop.books();
            let order = books.orders.get(&id);
            order
                .map(|order| OrderView {
                    currency: Currency::parse("USD").unwrap(),
                    total: order.total,
                    units: order.units(),
                })
                .ok_or(Error::Failed { status: 404, code: None })
        })
        .await
    }

    async fn find_orders(&self, search: &OrderSearch<'_>) -> Result<Vec<FoundOrder>, Error> {
        let (shop, thorough) = (Arc::clone(&self.shop), search.thorough);
        let (corr, email) = (search.correlation_id.to_owned(), search.email.to_owned());
        self.call(DEADLINES.0, async move {
            tokio::time::sleep(WORK).await;
            Ok(shop.find(&corr, &email, thorough))
        })
        .await
    }

    async fn stock(&self, products: &[ProductId], from: u64) -> Result<Vec<ProductStock>, Error> {
        let (shop, products) = (Arc::clone(&self.shop), products.to_vec());
        self.call(DEADLINES.0, async move {
            tokio::time::sleep(WORK).await;
            let books = shop.books();
            let of = |product: ProductId| {
                let number = books.stock.get(product.as_str()).copied();
                let reading = |number| Reading {
                    stock: StockId::new(product.as_str()),
                    upper: Upper::Number(number),
                    lower: Some(number),
                    takes_off_pending: false,
                    source: Source::WcV3,
                    from,
                };
                ProductStock { counted: number.map(reading).into_iter().collect(), product }
            };
            Ok(products.into_iter().map(of).collect())
        })
        .await
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
    async fn stock_changes(&self, _: DateTime<Utc>) -> Result<StockChanges, Error> {
        let shop = Arc::clone(&self.shop);
        self.call(DEADLINES.0, async move {
            let until = shop.time();
            tokio::time::sleep(WORK).await;
            // Whatever there is may have changed.
            let products = shop.books().stock.keys().map(ProductId::new).collect();
            Ok(StockChanges { products, until })
        })
        .await
    }

    async fn booked_stock(&self) -> Result<Vec<BookedStock>, Error> {
        let shop = Arc::clone(&self.shop);
        self.call(DEADLINES.0, async move {
            tokio::time::sleep(WORK).await;
            let books = shop.books();
            let of = |(id, number): (&String, &i64)| BookedStock {
                stock: StockId::new(id),
                number: Some(*number),
                ordered_back: false,
            };
            Ok(books.stock.iter().map(of).collect())
        })
        .await
    }

    async fn orders_since(&self, since: DateTime<Utc>) -> Result<Vec<OrderSighting>, Error> {
        let shop = Arc::clone(&self.shop);
        self.call(DEADLINES.0, async move {
            tokio::time::sleep(WORK).await;
            Ok(shop.sightings(since))
        })
        .await
    }

    async fn empty(&self, cart: &CartHandle) -> Result<(), Error> {
        let (shop, cart, process) = (Arc::clone(&self.shop), cart.identity.clone(), self.process);
        self.call(DEADLINES.0, async move {
            shop.begin(&cart, Kind::Empty, process);
            tokio::time::sleep(WORK).await;
            if let Some(known) = shop.books().carts.get_mut(&cart) {
                if !shop.swallows_fences {
                    known.row = Row::default();
                }
                known.emptied = Some(Instant::now());
            }
            shop.end(&cart, Kind::Empty);
            Ok(())
        })
        .await
    }
}

/// Customer and rate.
fn chosen(row: &mut Row, plan: &CartPlan) {
    row.ships = row.ships || plan.customer.as_ref().is_some_and(|customer| customer.shipping.is_some());
    if let Some(choice) = plan.rates.first() {
        row.rate = Some(choice.rate.clone());
    }
}

/// The row after a plan; what of it is refused.
fn brought(shop: &Shop, row: &mut Row, plan: &CartPlan) -> Vec<Refusal> {
    let books = shop.books();
    let mut refusals = Vec::new();
    row.lines.clear();
    for line in &plan.lines {
        let product = line.product.as_str().to_owned();
        let free = books.free(&product, row.awaiting).max(0);
        let quantity = line.quantity.min(u32::try_from(free).unwrap_or_default());
        if quantity < line.quantity {
            let reason =
                if quantity == 0 { ItemReason::SoldOut } else { ItemReason::FewerLeft(Some(quantity)) };
            refusals.push(Refusal::Item { product: line.product.clone(), reason });
        }
        if quantity > 0 {
            row.lines.push((product, quantity));
        }
    }
    row.codes.clear();
    for code in &plan.codes {
        if code == ONCE && !books.coupons_used.contains(ONCE) {
            row.codes.push(code.clone());
        } else {
            refusals.push(Refusal::Code { code: code.clone(), reason: CodeReason::UsageLimit });
        }
    }
    chosen(row, plan);
    refusals
}

fn view(shop: &Shop, cart: &str, row: &Row, refusals: Vec<Refusal>) -> CartView {
    let mut books = shop.books();
    let answers = books.carts.get_mut(cart).map_or(0, |known| {
        known.answers += 1;
        known.answers
    });
    let off = if row.codes.is_empty() { 0 } else { 300 };
    let lines: Vec<CartLine> = row
        .lines
        .iter()
        .enumerate()
        .map(|(number, (product, quantity))| {
            let subtotal = price(product) * i64::from(*quantity);
            let maximum = u32::try_from(books.free(product, row.awaiting).max(0)).unwrap_or_default();
            CartLine {
                key: format!("k{product}"),
                product: ProductId::new(product.clone()),
                sku: None,
                title: format!("Product {product}"),
                image_url: None,
                quantity: *quantity,
                limits: Limits { minimum: 1, maximum, step: 1 },
                left: None,
                unit_price: price(product),
                unit_price_with_tax: false,
                subtotal,
                subtotal_tax: 0,
                total: if number == 0 { subtotal - off } else { subtotal },
                total_tax: 0,
            }
        })
        .collect();
    let total = total(&row.lines, &row.codes, row.rate.as_deref());
    let free = total == 0;
    let selected = row.rate.clone().unwrap_or_else(|| RATES[0].0.to_owned());
    let rates = RATES.iter().map(|(id, price)| Rate {
        id: (*id).to_owned(),
        title: (*id).to_owned(),
        description: String::new(),
        price: if free { 0 } else { *price },
        tax: 0,
        pickup: false,
        selected: selected == *id,
    });
    let shipping = RATES.iter().find(|(id, _)| *id == selected).map_or(0, |(_, price)| *price);
    CartView {
        handle: CartHandle { token: format!("{cart}.{answers}"), identity: cart.to_owned() },
        currency: Currency::parse("USD").unwrap(),
        packages: if row.ships && !lines.is_empty() {
            vec![Package {
                id: "0".into(),
                name: "Parcel".into(),
                line_keys: lines.iter().map(|line| line.key.clone()).collect(),
                rates: rates.collect(),
            }]
        } else {
            Vec::new()
        },
        lines,
        coupons: row
            .codes
            .iter()
            .map(|code| CartCoupon { code: code.clone(), discount: 300, discount_tax: 0, per_item: false })
            .collect(),
        fees: Vec::new(),
        totals: CartTotals {
            shipping: Some(if free { 0 } else { shipping }),
            shipping_tax: 0,
            tax: 0,
            total,
        },
        needs_shipping: true,
        needs_payment: !free,
        payment_methods: vec!["agent_token".into()],
        warnings: Vec::new(),
        refusals,
    }
}
