//! The one writer: a thread that takes all steps that wait and commits them together.
//!
//! Each step runs in a savepoint of its own inside the group's transaction, so that one that fails leaves no
//! trace in the others. Replies go out after the group's commit.

use std::sync::{Arc, mpsc};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

use super::{
    super::Retention,
    steps,
    stock::{self, Desk},
    unavailable,
};
use crate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::{Commit, Error, NewClaim},
    },
    clock::{Clock, Ids},
    idempotency::Decision,
    stock::{Reading, Reserve, Reserved, Units},
};

/// Most steps in one group: bounds how long the first of them waits.
const MOST_IN_GROUP: usize = 256;

/// What every step works with.
struct Desktop {
    retention: Retention,
    clock: Arc<dyn Clock>,
    /// This start of the program.
    boot: String,
}

impl Desktop {
    fn of<'a>(&'a self, shop: &'a ShopId) -> Desk<'a> {
        Desk { shop, now: self.clock.now(), boot: &self.boot }
    }
}

/// A step: runs inside the group's transaction.
type Step = Box<dyn FnOnce(&mut Transaction<'_>, &Desktop) -> Reply + Send>;

/// Sends a step's result to whoever waits; told whether the group was committed.
type Reply = Box<dyn FnOnce(bool) + Send>;

/// The way to the writer thread. Dropping it ends the thread after what waits.
pub(super) struct Writer {
    queue: mpsc::SyncSender<Step>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        retention: Retention,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let (queue, steps) = mpsc::sync_channel(1024);
        let desktop = Desktop { retention, clock, boot: Ids.uuid() };
        std::thread::Builder::new()
            .name("state-writer".into())
            .spawn(move || write(connection, &desktop, &steps))?;
        Ok(Self { queue })
    }

    pub(super) async fn claim(&self, new: NewClaim) -> Result<Decision, Error> {
        self.ask(move |connection, desktop| steps::claim(connection, &new, desktop.clock.now())).await
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<u64, Error> {
        self.ask(move |connection, desktop| {
            let now = desktop.clock.now();
            steps::commit(connection, commit, desktop.retention, (now, &desktop.boot))
        })
        .await
    }

    pub(super) async fn reserve(&self, shop: ShopId, wish: Reserve) -> Result<Reserved, Error> {
        self.ask(move |connection, desktop| stock::reserve(connection, desktop.of(&shop), &wish)).await
    }

    pub(super) async fn observe(&self, shop: ShopId, readings: Vec<Reading>) -> Result<u64, Error> {
        self.ask(move |connection, desktop| stock::observe(connection, desktop.of(&shop), &readings)).await
    }

    pub(super) async fn give_back(
        &self,
        shop: ShopId,
        session: SessionId,
        units: Vec<Units>,
    ) -> Result<(), Error> {
        self.ask(move |connection, desktop| {
            stock::give_back(connection, desktop.of(&shop), session.as_str(), &units)
        })
        .await
    }

    pub(super) async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error> {
        self.ask(move |connection, desktop| steps::sweep(connection, desktop.retention, now)).await
    }

    /// Nothing but a commit: shows that the thread lives and the disk takes writes.
    pub(super) async fn ping(&self) -> Result<(), Error> {
        self.ask(|connection, _| steps::touch(connection)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Connection, &Desktop) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let step: Step = Box::new(move |transaction, desktop| {
            let result = alone(transaction, |connection| step(connection, desktop));
            Box::new(move |committed| {
                // The group's commit failed: nothing of it stands.
                let gone = || Error::Unavailable("the group of steps could not be committed".into());
                // Whoever asked may be gone; the step stands all the same.
                drop(reply.send(if committed { result } else { Err(gone()) }));
            })
        });
        // A full queue means that the disk cannot follow: refuse rather than pile up.
        self.queue.try_send(step).map_err(|_| Error::Unavailable("the state writer is behind".into()))?;
        answer.await.map_err(|_| Error::Unavailable("the state writer has ended".into()))?
    }
}

fn write(mut connection: Connection, desktop: &Desktop, steps: &mpsc::Receiver<Step>) {
    while let Ok(first) = steps.recv() {
        let group = std::iter::once(first).chain(steps.try_iter().take(MOST_IN_GROUP - 1));
        let mut replies = Vec::new();
        let committed = commit_group(&mut connection, desktop, group, &mut replies);
        if let Err(error) = &committed {
            tracing::error!(%error, "a group of state steps could not be committed");
        }
        for reply in replies {
            reply(committed.is_ok());
        }
    }
}

fn commit_group(
    connection: &mut Connection,
    desktop: &Desktop,
    group: impl Iterator<Item = Step>,
    replies: &mut Vec<Reply>,
) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in group {
        replies.push(step(&mut transaction, desktop));
    }
    transaction.commit()
}

fn alone<T>(
    transaction: &mut Transaction<'_>,
    step: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let savepoint = transaction.savepoint().map_err(unavailable)?;
    let result = step(&savepoint)?;
    savepoint.commit().map_err(unavailable)?;
    Ok(result)
}
