//! The state read by people, while the gateway runs or while it does not.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{OpenError, SESSION, load, schema, sessions, stock, unavailable};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{ClaimState, Error, Records, SeenOrder, Sighting, Which},
    },
    idempotency::Scope,
    stock::Shelves,
};

/// A state file that is only read. The folder's lock stays with the gateway.
pub struct Archive(Arc<Mutex<Connection>>);

impl Archive {
    /// Opens the state in a folder.
    ///
    /// # Errors
    /// [`OpenError`]: also when there is no state, or one of an older format.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join("state.sqlite");
        if !path.is_file() {
            return Err(OpenError::Missing(folder.to_owned()));
        }
        Ok(Self(Arc::new(Mutex::new(schema::connect_to_read(&path)?))))
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let reader = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || query(&reader.lock().unwrap_or_else(PoisonError::into_inner)))
            .await
            .map_err(|error| Error::Unavailable(Box::new(error)))?
    }
}

#[async_trait]
impl Records for Archive {
    async fn list(&self, shop: &ShopId, which: Which, most: usize) -> Result<Vec<Session>, Error> {
        let shop = shop.clone();
        let only = match which {
            Which::All => "",
            Which::Review => "AND review = 1",
            Which::Open => "AND attempt IS NOT NULL",
        };
        let sql = format!("{SESSION} WHERE shop = ?1 {only} ORDER BY updated_at DESC, id LIMIT ?2");
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(move |connection| sessions(connection, &sql, params![shop.as_str(), most])).await
    }

    async fn find(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        let (shop, id) = (shop.clone(), id.clone());
        self.read(move |connection| load(connection, &shop, &id)).await
    }

    async fn sightings(&self, shop: &ShopId, id: &SessionId) -> Result<Vec<SeenOrder>, Error> {
        let (shop, id) = (shop.clone(), id.clone());
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached(
                    "SELECT first, last, adopted FROM sightings WHERE shop = ?1 AND session = ?2
                     ORDER BY length(shop_order), shop_order",
                )
                .map_err(unavailable)?;
            let rows = statement
                .query_map(params![shop.as_str(), id.as_str()], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?))
                })
                .map_err(unavailable)?;
            rows.map(|row| {
                let (first, last, adopted) = row.map_err(unavailable)?;
                let sight = |text: &str| -> Result<Sighting, Error> {
                    serde_json::from_str(text)
                        .map_err(|error| Error::Unreadable(format!("a sighting: {error}")))
                };
                Ok(SeenOrder {
                    first: Sighting { adopted: false, ..sight(&first)? },
                    last: Sighting { adopted, ..sight(&last)? },
                })
            })
            .collect()
        })
        .await
    }

    async fn session_of_order(&self, shop: &ShopId, shop_order: &str) -> Result<Option<SessionId>, Error> {
        let (shop, shop_order) = (shop.clone(), shop_order.to_owned());
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT session FROM sightings WHERE shop = ?1 AND shop_order = ?2")
                .and_then(|mut statement| {
                    let values = params![shop.as_str(), shop_order];
                    statement.query_row(values, |row| row.get::<_, String>(0)).optional()
                })
                .map(|found| found.map(SessionId::new))
                .map_err(unavailable)
        })
        .await
    }

    async fn shelves(&self, shop: &ShopId) -> Result<Shelves, Error> {
        let shop = shop.clone();
        self.read(move |connection| stock::read(connection, &shop, None)).await
    }

    async fn claim_state(&self, _: &ShopId, scope: &Scope) -> Result<Option<ClaimState>, Error> {
        let scope = scope.clone();
        self.read(move |connection| {
            let answered: Option<bool> = connection
                .prepare_cached("SELECT answer IS NOT NULL FROM claims WHERE scope = ?1")
                .and_then(|mut statement| {
                    statement.query_row(params![scope.as_str()], |row| row.get(0)).optional()
                })
                .map_err(unavailable)?;
            Ok(answered.map(|answered| if answered { ClaimState::Answered } else { ClaimState::Open }))
        })
        .await
    }
}
