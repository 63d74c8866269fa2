//! What `wc/v3` lists: changed products, managed stocks, orders of a time.
//!
//! Lists are read page by page, the oldest first, so that what is added meanwhile comes last; what moves between two
//! pages may come twice and is counted once.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    ShopTime, WooStore,
    orders::{self, CORRELATION},
    stock::Booked,
    wire::text,
};
use crate::{
    checkout::{
        ids::ProductId,
        store::{BookedStock, Error, OrderSighting, StockChanges},
    },
    stock::StockId,
};

/// As many rows as one page holds.
const PAGE: usize = 100;
/// Pages after which a list has gone astray.
const MOST_PAGES: usize = 2_000;
/// The shop's list of changes counts in whole seconds, and a change may show a moment late.
const OVERLAP: TimeDelta = TimeDelta::seconds(2);
/// As many calls as run at the same time.
const ABREAST: usize = 4;

/// An order, as far as it is told whose it is.
#[derive(Debug, Deserialize)]
struct Sighted {
    #[serde(deserialize_with = "text")]
    id: String,
    status: String,
    date_created_gmt: String,
    #[serde(default)]
    meta_data: Value,
}

impl Sighted {
    fn correlation_id(&self) -> Option<&str> {
        let rows = self.meta_data.as_array()?;
        let row = rows.iter().find(|row| row.get("key").and_then(Value::as_str) == Some(CORRELATION))?;
        row.get("value")?.as_str().filter(|id| !id.is_empty())
    }
}

/// A product in a list, as far as it is told what kind it is.
#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    row: Booked,
}

impl WooStore {
    /// Everything that a list holds, and the shop's time when it began.
    async fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(Vec<T>, ShopTime), Error> {
        let (admin, call) = (self.admin()?, self.reads());
        let (mut all, mut began) = (Vec::new(), None);
        for page in 1..=MOST_PAGES {
            let page_text = page.to_string();
            let mut query = query.to_vec();
            query.extend([("per_page", "100"), ("orderby", "id"), ("order", "asc")]);
            if page > 1 {
                query.push(("page", &page_text));
            }
            let answer = admin.get(call.deadline, path, &query).await?;
            let rows: Vec<T> = answer.read(call)?;
            began = began.or_else(|| answer.shop_time());
            let pages = answer.header("X-WP-TotalPages").and_then(|pages| pages.trim().parse::<usize>().ok());
            let more = pages.map_or(rows.len() >= PAGE, |pages| page < pages);
            all.extend(rows);
            if !more {
                return Ok((all, began));
            }
        }
        // A list that was not read to its end proves nothing about what is not in it.
        Err(Error::Unintelligible { what: "a list without an end".to_owned(), wrote: false })
    }

    /// All products and then all variations that a query finds.
    async fn booked_all(&self, query: &[(&str, &str)]) -> Result<(Vec<Booked>, ShopTime), Error> {
        const FIELDS: &str = "id,type,parent_id,manage_stock,stock_quantity,backorders";
        let mut query = query.to_vec();
        query.push(("_fields", FIELDS));
        let (products, began) = self.pages::<Listed>("/products", &query).await?;
        let mut below = None;
        if self.lists_variations() {
            match self.pages::<Booked>("/variations", &query).await {
                Err(Error::Refused { status: 404, .. }) => self.lists_no_variations(),
                read => below = Some(read?.0),
            }
        }
        let below = match below {
            Some(below) => below,
            None => self.booked_below(&products, &query).await?,
        };
        Ok((products.into_iter().map(|product| product.row).chain(below).collect(), began))
    }

    /// At an older shop: the variations of each product that was found; a variation's change shows its product.
    async fn booked_below(&self, products: &[Listed], query: &[(&str, &str)]) -> Result<Vec<Booked>, Error> {
        let variable = products.iter().filter(|product| product.kind.starts_with("variable"));
        let parents: BTreeSet<String> = variable.map(|product| product.row.id.clone()).collect();
        let lists = stream::iter(parents).map(|parent| async move {
            let path = format!("/products/{parent}/variations");
            Ok::<_, Error>(self.pages::<Booked>(&path, query).await?.0)
        });
        let lists: Vec<Vec<Booked>> = lists.buffer_unordered(ABREAST).try_collect().await?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// See [`crate::checkout::store::Store::stock_changes`].
    pub(super) async fn changed(&self, since: DateTime<Utc>) -> Result<StockChanges, Error> {
        // With a zone: without one the shop takes it for its own time.
        let after = (since - OVERLAP).to_rfc3339_opts(SecondsFormat::Secs, true);
        let (rows, began) = self.booked_all(&[("modified_after", &after)]).await?;
        let ids: BTreeSet<String> = rows.into_iter().map(|row| row.id).collect();
        Ok(StockChanges {
            products: ids.into_iter().map(ProductId::new).collect(),
            // A shop that does not tell its time is asked for the same again.
            until: began.unwrap_or(since).max(since),
        })
    }

    /// See [`crate::checkout::store::Store::booked_stock`].
    pub(super) async fn all_booked(&self) -> Result<Vec<BookedStock>, Error> {
        let (rows, _) = self.booked_all(&[]).await?;
        let own = rows.iter().filter(|row| row.managed_by() == Some(&row.id));
        let stocks: BTreeMap<&str, BookedStock> = own
            .map(|row| {
                let (number, ordered_back) = (row.number(), row.may_be_ordered_back());
                (row.id.as_str(), BookedStock { stock: StockId::new(&row.id), number, ordered_back })
            })
            .collect();
        Ok(stocks.into_values().collect())
    }

    /// See [`crate::checkout::store::Store::orders_since`].
    pub(super) async fn sightings(&self, since: DateTime<Utc>) -> Result<Vec<OrderSighting>, Error> {
        let after = (since - OVERLAP).to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut found = BTreeMap::new();
        // Some shops leave drafts, and all leave thrown away orders, out of every list that does not name them.
        for status in [None, Some("checkout-draft,trash")] {
            let mut query = vec![
                ("created_via", "store-api"),
                ("after", after.as_str()),
                ("_fields", "id,status,date_created_gmt,meta_data"),
            ];
            query.extend(status.map(|status| ("status", status)));
            for order in self.pages::<Sighted>("/orders", &query).await?.0 {
                let Some(correlation_id) = order.correlation_id() else { continue };
                let created_at =
                    orders::time(&order.date_created_gmt).ok_or_else(|| Error::Unintelligible {
                        what: "`date_created_gmt` of an order is no time".to_owned(),
                        wrote: false,
                    })?;
                let sighting = OrderSighting {
                    shop_order: order.id.clone(),
                    correlation_id: correlation_id.to_owned(),
                    state: orders::state_of(&order.status),
                    created_at,
                };
                found.insert(order.id, sighting);
            }
        }
        Ok(found.into_values().collect())
    }
}
