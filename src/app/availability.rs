//! Puts together what is published of a shop's availability.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    availability::{self, Board, Seller, Streams},
    catalog::Catalog,
    checkout::{state::State, store::Store},
    clock::Clock,
    config::Settings,
    protocol::ShopFace,
};

/// What a board takes of its shop.
pub(super) struct Parts<'a> {
    pub(super) face: &'a ShopFace,
    pub(super) catalog: Arc<Catalog>,
    pub(super) store: Arc<dyn Store>,
    pub(super) state: Arc<dyn State>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: TaskTracker,
    pub(super) streams: Streams,
}

/// What all streams of the process share.
pub(super) fn streams(settings: &Settings) -> Streams {
    let table = &settings.availability;
    Streams {
        clients: Arc::new(Semaphore::new(table.max_clients)),
        ending: CancellationToken::new(),
        heartbeat: Duration::from_secs(table.heartbeat_secs),
        life: Duration::from_secs(table.stream_secs),
    }
}

/// What is published of one shop.
pub(super) fn board(settings: &Settings, parts: Parts<'_>) -> Arc<Board> {
    let Parts { face, catalog, store, state, clock, tasks, streams } = parts;
    let table = &settings.availability;
    let how = availability::Settings {
        threshold: table.threshold,
        poll: Duration::from_secs(table.poll_secs),
        reading: Duration::from_secs(table.reading_secs),
    };
    let parts = availability::Parts {
        shop: face.id.clone(),
        seller: Seller { name: face.title.clone(), url: face.home_url.to_string() },
        catalog,
        store,
        state,
        clock,
        tasks,
        streams,
    };
    Arc::new(Board::new(how, parts))
}
