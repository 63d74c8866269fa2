//! The shop's memory: everything it knows, and how it is kept.
//!
//! In memory it is plain maps behind the shop's one lock. With a path it is also a small `SQLite` file of
//! `(name, value)` rows, one JSON text per record; [`State::commit`] writes the records that changed in one
//! transaction before the answer leaves, so a killed process loses nothing it has answered. A record that
//! can't be written is an [`Error`]; the caller answers 500.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::Path;

use chrono::{DateTime, Duration, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use super::faults::Faults;
use super::fields;
use super::model::{Coupon, Hold, Order, Product, Session, Settings};
use super::seed::{self, Seed};

/// How many requests are kept by name.
const KEPT_CALLS: usize = 10_000;

/// Requests received: how many, and method and path of the newest.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) count: u64,
    pub(super) newest: VecDeque<(String, String)>,
}

impl Calls {
    pub(super) fn note(&mut self, method: &str, path: &str) {
        self.count += 1;
        self.newest.push_back((method.to_owned(), path.to_owned()));
        if self.newest.len() > KEPT_CALLS {
            self.newest.pop_front();
        }
    }
}

/// All of a shop.
#[derive(Debug)]
pub(super) struct State {
    pub(super) seed: Seed,
    /// Where the shop claims to live; for permalinks and pictures.
    pub(super) public_base: String,
    settings: Settings,
    products: BTreeMap<u64, Product>,
    /// The variations of each variable product, by id.
    variations: HashMap<u64, Vec<u64>>,
    by_sku: HashMap<String, Vec<u64>>,
    /// When a product was changed last.
    pub(super) newest: DateTime<Utc>,
    coupons: BTreeMap<String, Coupon>,
    sessions: HashMap<String, Session>,
    orders: BTreeMap<u64, Order>,
    holds: BTreeMap<u64, Vec<Hold>>,
    pub(super) faults: Faults,
    pub(super) calls: Calls,
    dirty: BTreeSet<String>,
    disk: Option<rusqlite::Connection>,
}

impl State {
    /// A fresh shop, or the one that the file remembers.
    pub(super) fn open(
        seed: Seed,
        data: Option<&Path>,
        now: DateTime<Utc>,
        secret: String,
    ) -> Result<Self, Error> {
        let stock = seed::stock(seed, now);
        let mut state = Self {
            seed,
            public_base: "https://shop.example.com".to_owned(),
            settings: Settings { secret, ..stock.settings },
            products: stock.products.into_iter().map(|product| (product.id, product)).collect(),
            variations: HashMap::new(),
            by_sku: HashMap::new(),
            newest: DateTime::UNIX_EPOCH,
            coupons: stock.coupons.into_iter().map(|coupon| (coupon.code.clone(), coupon)).collect(),
            sessions: HashMap::new(),
            orders: BTreeMap::new(),
            holds: BTreeMap::new(),
            faults: Faults::default(),
            calls: Calls::default(),
            dirty: BTreeSet::new(),
            disk: None,
        };
        if let Some(path) = data {
            let path = if path.is_dir() { path.join(seed.file_name()) } else { path.to_owned() };
            let disk = rusqlite::Connection::open(path)?;
            disk.pragma_update(None, "journal_mode", "WAL")?;
            disk.pragma_update(None, "synchronous", "NORMAL")?;
            disk.execute(
                "CREATE TABLE IF NOT EXISTS records (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
                [],
            )?;
            state.load(&disk)?;
            state.disk = Some(disk);
            state.dirty.insert("settings".to_owned());
            state.commit()?;
        }
        let ids: Vec<u64> = state.products.keys().copied().collect();
        state.index(&ids);
        Ok(state)
    }

    /// Adds products that are not there yet: what the file remembers of them stands. Parent, name and SKU of a
    /// product never change afterwards.
    pub(super) fn add_products(&mut self, products: impl Iterator<Item = Product>) {
        let mut added = Vec::new();
        for product in products {
            let id = product.id;
            if let std::collections::btree_map::Entry::Vacant(free) = self.products.entry(id) {
                free.insert(product);
                added.push(id);
            }
        }
        self.index(&added);
    }

    fn index(&mut self, ids: &[u64]) {
        for id in ids {
            let Some(product) = self.products.get_mut(id) else { continue };
            self.newest = self.newest.max(product.modified);
            product.search = format!("{}\n{}", product.name, product.sku).to_lowercase();
            self.by_sku.entry(product.sku.clone()).or_default().push(*id);
            if product.parent != 0 {
                self.variations.entry(product.parent).or_default().push(*id);
            }
        }
    }

    fn load(&mut self, disk: &rusqlite::Connection) -> Result<(), Error> {
        let mut rows = disk.prepare("SELECT name, value FROM records")?;
        let rows = rows.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (name, value) = row?;
            match name.split_once('/') {
                None if name == "settings" => self.settings = read(&value)?,
                None if name == "holds" => self.holds = read(&value)?,
                Some(("product", _)) => {
                    let product: Product = read(&value)?;
                    self.products.insert(product.id, product);
                }
                Some(("coupon", code)) => {
                    self.coupons.insert(code.to_owned(), read(&value)?);
                }
                Some(("session", id)) => {
                    self.sessions.insert(id.to_owned(), read(&value)?);
                }
                Some(("order", _)) => {
                    let mut order: Order = read(&value)?;
                    // A file of an older release does not say so.
                    order.counted |= order.status.takes_stock();
                    self.orders.insert(order.id, order);
                }
                _ => return Err(Error::Record(name)),
            }
        }
        Ok(())
    }

    /// Writes what changed since the last time.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        let dirty = std::mem::take(&mut self.dirty);
        let Some(mut disk) = self.disk.take() else { return Ok(()) };
        let outcome = self.write(&mut disk, &dirty);
        self.disk = Some(disk);
        outcome
    }

    fn write(&self, disk: &mut rusqlite::Connection, dirty: &BTreeSet<String>) -> Result<(), Error> {
        if dirty.is_empty() {
            return Ok(());
        }
        let transaction = disk.transaction()?;
        for name in dirty {
            let value = match name.split_once('/') {
                None if name == "settings" => Some(text(&self.settings)?),
                None => Some(text(&self.holds)?),
                Some(("product", id)) => record(self.products.get(&id.parse().unwrap_or_default()))?,
                Some(("coupon", code)) => record(self.coupons.get(code))?,
                Some(("session", id)) => record(self.sessions.get(id))?,
                Some(("order", id)) => record(self.orders.get(&id.parse().unwrap_or_default()))?,
                Some(_) => None,
            };
            match value {
                Some(value) => transaction.execute(
                    "INSERT OR REPLACE INTO records (name, value) VALUES (?1, ?2)",
                    [name, &value],
                )?,
                None => transaction.execute("DELETE FROM records WHERE name = ?1", [name])?,
            };
        }
        transaction.commit()?;
        Ok(())
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn settings_mut(&mut self) -> &mut Settings {
        self.dirty.insert("settings".to_owned());
        &mut self.settings
    }

    pub(super) fn product(&self, id: u64) -> Option<&Product> {
        self.products.get(&id)
    }

    pub(super) fn products(&self) -> impl DoubleEndedIterator<Item = &Product> {
        self.products.values()
    }

    /// The variations of a variable product, by id.
    pub(super) fn variations(&self, parent: u64) -> impl Iterator<Item = &Product> {
        self.variations.get(&parent).into_iter().flatten().filter_map(|id| self.products.get(id))
    }

    /// The products and variations with a SKU.
    pub(super) fn ids_of_sku(&self, sku: &str) -> &[u64] {
        self.by_sku.get(sku).map_or(&[], Vec::as_slice)
    }

    /// A product to be written to.
    pub(super) fn product_mut(&mut self, id: u64) -> Option<&mut Product> {
        self.dirty.insert(format!("product/{id}"));
        self.products.get_mut(&id)
    }

    /// Writes a product's stock, which also decides whether it counts as sold out; its parent shows the change.
    pub(super) fn write_stock(&mut self, id: u64, stock: i64, now: DateTime<Utc>) {
        let least = self.settings.no_stock_amount;
        let manager = self.manager(id);
        let Some(product) = self.product_mut(manager) else { return };
        product.stock = stock;
        product.below = least > 0 && stock <= least;
        self.share(manager);
        self.touch(id, now);
    }

    /// Which product manages the stock of a product or variation: mostly itself.
    pub(super) fn manager(&self, id: u64) -> u64 {
        self.products.get(&id).filter(|product| product.by_parent).map_or(id, |product| product.parent)
    }

    /// Shows a product's stock at those of its variations that do not manage their own.
    pub(super) fn share(&mut self, id: u64) {
        let Some(parent) = self.products.get(&id).cloned() else { return };
        let shared: Vec<u64> = self
            .variations(id)
            .filter(|child| child.by_parent || (parent.manage_stock && !child.manage_stock))
            .map(|child| child.id)
            .collect();
        for child in shared {
            let Some(child) = self.product_mut(child) else { continue };
            child.by_parent = parent.manage_stock;
            child.manage_stock = parent.manage_stock;
            child.stock = parent.stock;
            child.below = parent.below;
            child.backorders = parent.backorders;
            child.low_stock = parent.low_stock;
        }
    }

    /// Notes a change of a product, and of its parent.
    pub(super) fn touch(&mut self, id: u64, now: DateTime<Utc>) {
        let Some(product) = self.product_mut(id) else { return };
        product.modified = now;
        let parent = product.parent;
        self.newest = self.newest.max(now);
        if parent != 0
            && let Some(parent) = self.product_mut(parent)
        {
            parent.modified = now;
        }
    }

    pub(super) fn coupon(&self, code: &str) -> Option<&Coupon> {
        self.coupons.get(code)
    }

    pub(super) fn coupon_mut(&mut self, code: &str) -> Option<&mut Coupon> {
        self.dirty.insert(format!("coupon/{code}"));
        self.coupons.get_mut(code)
    }

    /// The session behind a token's identity; a new one starts in the shop's own town.
    pub(super) fn session(&self, id: &str) -> Session {
        let base = self.seed.base_address();
        let mut session = self.sessions.get(id).cloned().unwrap_or_else(|| Session {
            billing: base.clone(),
            shipping: base.clone(),
            ..Session::default()
        });
        // A billing state that was emptied comes back as the shop's own on the next load.
        if session.billing.state.is_empty() {
            session.billing.state = base.state;
        }
        for address in [&mut session.billing, &mut session.shipping] {
            let wanted = |id: &str| {
                self.settings.extra_fields && fields::ADDRESS.iter().any(|(known, ..)| *known == id)
            };
            address.extra.retain(|id, _| wanted(id));
            for (id, ..) in fields::ADDRESS.iter().filter(|(id, ..)| wanted(id)) {
                address.extra.entry((*id).to_owned()).or_default();
            }
        }
        session
    }

    pub(super) fn put_session(&mut self, id: &str, session: Session) {
        self.dirty.insert(format!("session/{id}"));
        self.sessions.insert(id.to_owned(), session);
    }

    pub(super) fn clear_sessions(&mut self) {
        for id in std::mem::take(&mut self.sessions).into_keys() {
            self.dirty.insert(format!("session/{id}"));
        }
    }

    pub(super) fn order(&self, id: u64) -> Option<&Order> {
        self.orders.get(&id)
    }

    /// Orders, oldest first.
    pub(super) fn orders(&self) -> impl DoubleEndedIterator<Item = &Order> {
        self.orders.values()
    }

    /// Whether an order with this correlation id was placed: paid, or accepted with the money to come.
    pub(super) fn has_placed(&self, utm_id: &str) -> bool {
        self.orders().any(|order| order.utm_id() == utm_id && order.status.takes_stock())
    }

    pub(super) fn order_mut(&mut self, id: u64) -> Option<&mut Order> {
        self.dirty.insert(format!("order/{id}"));
        self.orders.get_mut(&id)
    }

    pub(super) fn put_order(&mut self, order: Order) {
        self.dirty.insert(format!("order/{}", order.id));
        self.orders.insert(order.id, order);
    }

    pub(super) fn remove_order(&mut self, id: u64) {
        self.release(id);
        self.dirty.insert(format!("order/{id}"));
        self.orders.remove(&id);
    }

    pub(super) fn next_order_id(&mut self) -> u64 {
        let settings = self.settings_mut();
        settings.next_order += 1;
        settings.next_order
    }

    pub(super) fn next_item_id(&mut self) -> u64 {
        let settings = self.settings_mut();
        settings.next_item += 1;
        settings.next_item
    }

    /// Reserves a run of meta ids and tells the first.
    pub(super) fn next_meta_id(&mut self) -> u64 {
        let settings = self.settings_mut();
        let first = settings.next_meta;
        settings.next_meta += 40;
        first
    }

    /// How much of a product's stock other orders hold at this moment.
    pub(super) fn held(&self, product: u64, except: Option<u64>, now: DateTime<Utc>) -> i64 {
        let product = self.manager(product);
        self.holds
            .iter()
            .filter(|(order, _)| Some(**order) != except)
            .filter(|(order, _)| self.orders.get(*order).is_some_and(|order| order.status.holds()))
            .flat_map(|(_, holds)| holds)
            .filter(|hold| hold.product == product && hold.expires > now)
            .map(|hold| hold.quantity)
            .sum()
    }

    /// Keeps stock back for an order, of a product that manages its own; `false` when there is not enough of it.
    ///
    /// A hold that would not change anything (same quantity, same second) counts as a failure: the shop
    /// reads "no row changed" as "no stock". A shop whose hold is switched off neither keeps back nor checks.
    pub(super) fn hold(&mut self, order: u64, product: u64, quantity: i64, now: DateTime<Utc>) -> bool {
        if self.settings.hold_minutes <= 0 {
            return true;
        }
        let stock = self.products.get(&product).map_or(0, |product| product.stock);
        let expires = now + Duration::minutes(self.settings.hold_minutes);
        let same = self.holds.get(&order).into_iter().flatten().any(|hold| {
            hold.product == product && hold.quantity == quantity && hold.since.timestamp() == now.timestamp()
        });
        if same || stock - self.held(product, Some(order), now) < quantity {
            return false;
        }
        self.dirty.insert("holds".to_owned());
        self.holds.retain(|_, holds| {
            holds.retain(|hold| hold.expires > now);
            !holds.is_empty()
        });
        let holds = self.holds.entry(order).or_default();
        holds.retain(|hold| hold.product != product);
        holds.push(Hold { product, quantity, since: now, expires });
        true
    }

    /// Drops what an order holds.
    pub(super) fn release(&mut self, order: u64) {
        if self.holds.remove(&order).is_some() {
            self.dirty.insert("holds".to_owned());
        }
    }
}

fn read<T: DeserializeOwned>(value: &str) -> Result<T, Error> {
    Ok(serde_json::from_str(value)?)
}

fn text<T: Serialize>(value: &T) -> Result<String, Error> {
    Ok(serde_json::to_string(value)?)
}

fn record<T: Serialize>(value: Option<&T>) -> Result<Option<String>, Error> {
    value.map(text).transpose()
}
