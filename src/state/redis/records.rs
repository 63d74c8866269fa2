//! The state read by people: no process of its own, nothing is written.

use std::collections::HashMap;

use async_trait::async_trait;
use redis::RedisError;

use super::{
    Settings, judged,
    keys::Keys,
    link::Link,
    load,
    stock::{asking_for, shelves_of},
    unavailable,
};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::Session,
        state::{ClaimState, Error, Records, SeenOrder, Sighting, Which},
    },
    idempotency::Scope,
    stock::{Shelves, StockId},
};

/// A state that is only read.
pub struct Archive {
    link: Link,
    prefix: String,
}

impl Archive {
    /// Calls nobody yet.
    ///
    /// # Errors
    /// [`super::OpenError::Redis`] when an address is none.
    pub fn new(settings: &Settings) -> Result<Self, super::OpenError> {
        Ok(Self { link: Link::new(settings)?, prefix: settings.prefix.clone() })
    }

    fn keys(&self, shop: &ShopId) -> Keys {
        Keys::new(&self.prefix, shop)
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, Error> {
        let mut wire = self.link.wire().await.map_err(unavailable)?;
        let result: Result<T, RedisError> = command.query_async(&mut wire).await;
        judged(&self.link, result).await
    }
}

#[async_trait]
impl Records for Archive {
    async fn list(&self, shop: &ShopId, which: Which, most: usize) -> Result<Vec<Session>, Error> {
        let keys = self.keys(shop);
        let key = match which {
            Which::All => keys.all(),
            Which::Review => keys.review(),
            Which::Open => keys.open(),
        };
        if most == 0 {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = self.ask(redis::cmd("ZREVRANGE").arg(key).arg(0).arg(most - 1)).await?;
        let mut sessions = Vec::with_capacity(ids.len());
        for id in ids {
            sessions.extend(load(&self.link, &keys, &SessionId::new(id)).await?);
        }
        Ok(sessions)
    }

    async fn find(&self, shop: &ShopId, id: &SessionId) -> Result<Option<Session>, Error> {
        load(&self.link, &self.keys(shop), id).await
    }

    async fn sightings(&self, shop: &ShopId, id: &SessionId) -> Result<Vec<SeenOrder>, Error> {
        let kept: HashMap<String, String> =
            self.ask(redis::cmd("HGETALL").arg(self.keys(shop).seen_of(id))).await?;
        let adopted = kept.get("adopted");
        let sight = |kind: &str, order: &str| -> Result<Sighting, Error> {
            let text = kept.get(&format!("{kind}:{order}")).map(String::as_str).unwrap_or_default();
            let seen: Sighting = serde_json::from_str(text)
                .map_err(|error| Error::Unreadable(format!("a sighting: {error}")))?;
            Ok(Sighting { adopted: adopted.is_some_and(|adopted| adopted == order), ..seen })
        };
        let mut orders: Vec<&str> = kept.keys().filter_map(|field| field.strip_prefix("last:")).collect();
        orders.sort_by_key(|order| (order.len(), *order));
        orders
            .into_iter()
            .map(|order| {
                let first = sight("first", order)?;
                Ok(SeenOrder { first: Sighting { adopted: false, ..first }, last: sight("last", order)? })
            })
            .collect()
    }

    async fn session_of_order(&self, shop: &ShopId, shop_order: &str) -> Result<Option<SessionId>, Error> {
        let id: Option<String> = self.ask(redis::cmd("GET").arg(self.keys(shop).seen(shop_order))).await?;
        Ok(id.map(SessionId::new))
    }

    async fn shelves(&self, shop: &ShopId) -> Result<Shelves, Error> {
        let keys = self.keys(shop);
        let all: Vec<String> = self.ask(redis::cmd("SMEMBERS").arg(keys.shelves())).await?;
        if all.is_empty() {
            return Ok(Shelves::new());
        }
        let ids: Vec<StockId> = all.into_iter().map(StockId::new).collect();
        let found = self.ask(&asking_for(&keys, &ids)).await?;
        shelves_of(ids, found)
    }

    async fn claim_state(&self, shop: &ShopId, scope: &Scope) -> Result<Option<ClaimState>, Error> {
        let key = self.keys(shop).claim(scope);
        let (known, answered): (Option<u64>, bool) = {
            let mut both = redis::pipe();
            both.cmd("HGET").arg(&key).arg("fence").cmd("HEXISTS").arg(&key).arg("answer");
            let mut wire = self.link.wire().await.map_err(unavailable)?;
            let result = both.query_async(&mut wire).await;
            judged(&self.link, result).await?
        };
        Ok(known.map(|_| if answered { ClaimState::Answered } else { ClaimState::Open }))
    }
}
