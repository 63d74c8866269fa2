//! Which state is used: Redis where it is configured, the embedded one otherwise.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use secrecy::SecretString;

use crate::{
    checkout::{
        ids::ShopId,
        state::{Records, State},
    },
    clock::Clock,
    config::{self, Settings},
    state::{
        Redis, Retention, Sqlite,
        redis::{self, Place, SecretUrl},
        sqlite,
    },
};

/// The state, and the secret under which it wants fingerprints made.
pub(super) async fn open(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(Arc<dyn State>, Vec<u8>)> {
    let Some(table) = &settings.redis else {
        let sqlite = Sqlite::open(&settings.server.data, retention(settings), Arc::clone(clock))?;
        let secret = sqlite.secret().to_vec();
        return Ok((Arc::new(sqlite), secret));
    };
    let state = Redis::open(shared(settings, table)?, Arc::clone(clock))
        .await
        .context("the state in [redis] cannot be used")?;
    let secret = state.secret().to_vec();
    Ok((Arc::new(state), secret))
}

/// The same state, only read; the gateway may run meanwhile.
pub(super) fn records(settings: &Settings) -> anyhow::Result<Box<dyn Records>> {
    Ok(match &settings.redis {
        None => Box::new(sqlite::Archive::open(&settings.server.data)?),
        Some(table) => Box::new(redis::Archive::new(&shared(settings, table)?)?),
    })
}

fn retention(settings: &Settings) -> Retention {
    Retention {
        answers: chrono::Duration::hours(i64::from(settings.retention.answer_hours)),
        sessions: chrono::Duration::days(i64::from(settings.retention.session_days)),
    }
}

fn shared(settings: &Settings, table: &config::Redis) -> anyhow::Result<redis::Settings> {
    Ok(redis::Settings {
        place: place(table)?,
        prefix: table.prefix.clone(),
        replicas: table.replicas,
        quarantine: Duration::from_secs(table.quarantine_secs),
        shops: settings.shops.keys().map(ShopId::new).collect(),
        retention: retention(settings),
        admit_unsafe: settings.development.is_some(),
    })
}

fn place(table: &config::Redis) -> anyhow::Result<Place> {
    let addresses = |list: &[String]| -> Vec<SecretUrl> {
        list.iter().map(|address| SecretUrl(SecretString::from(address.as_str()))).collect()
    };
    if !table.cluster.is_empty() {
        return Ok(Place::Cluster(addresses(&table.cluster)));
    }
    if !table.sentinels.is_empty() {
        return Ok(Place::Sentinels {
            urls: addresses(&table.sentinels),
            master: table.master.clone().unwrap_or_default(),
            username: table.username.clone(),
            password: table.password().map_err(|message| anyhow::anyhow!("redis.password {message}"))?,
        });
    }
    Ok(Place::Server(SecretUrl(table.url().map_err(|message| anyhow::anyhow!("redis.url {message}"))?)))
}
