//! The one writer: a thread that takes all steps that wait and commits them together.
//!
//! Each step runs in a savepoint of its own inside the group's transaction, so that one that fails leaves no
//! trace in the others. Replies go out after the group's commit.

use std::sync::{Arc, mpsc};

use chrono::{DateTime, Utc};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{super::Retention, steps, unavailable};
use crate::{
    checkout::state::{Commit, Error, NewClaim},
    clock::Clock,
    idempotency::Decision,
};

/// Most steps in one group: bounds how long the first of them waits.
const MOST_IN_GROUP: usize = 256;

type Reply<T> = oneshot::Sender<Result<T, Error>>;

enum Step {
    Claim(Box<NewClaim>, Reply<Decision>),
    Commit(Box<Commit>, Reply<u64>),
    Sweep(DateTime<Utc>, Reply<()>),
    /// Nothing but a commit: shows that the thread lives and the disk takes writes.
    Ping(Reply<()>),
}

/// A step's result on its way to whoever waits, sent after the group's commit.
enum Done {
    Claim(Result<Decision, Error>, Reply<Decision>),
    Commit(Result<u64, Error>, Reply<u64>),
    Nothing(Result<(), Error>, Reply<()>),
}

impl Done {
    fn send(self) {
        // Whoever asked may be gone; the step stands all the same.
        match self {
            Self::Claim(result, reply) => drop(reply.send(result)),
            Self::Commit(result, reply) => drop(reply.send(result)),
            Self::Nothing(result, reply) => drop(reply.send(result)),
        }
    }

    /// The group's commit failed: nothing of it stands.
    fn fail(self) {
        let gone = || Error::Unavailable("the group of steps could not be committed".into());
        match self {
            Self::Claim(_, reply) => drop(reply.send(Err(gone()))),
            Self::Commit(_, reply) => drop(reply.send(Err(gone()))),
            Self::Nothing(_, reply) => drop(reply.send(Err(gone()))),
        }
    }
}

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
        std::thread::Builder::new()
            .name("state-writer".into())
            .spawn(move || write(connection, retention, &*clock, &steps))?;
        Ok(Self { queue })
    }

    pub(super) async fn claim(&self, new: NewClaim) -> Result<Decision, Error> {
        self.ask(|reply| Step::Claim(Box::new(new), reply)).await
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<u64, Error> {
        self.ask(|reply| Step::Commit(Box::new(commit), reply)).await
    }

    pub(super) async fn sweep(&self, now: DateTime<Utc>) -> Result<(), Error> {
        self.ask(|reply| Step::Sweep(now, reply)).await
    }

    pub(super) async fn ping(&self) -> Result<(), Error> {
        self.ask(Step::Ping).await
    }

    async fn ask<T>(&self, step: impl FnOnce(Reply<T>) -> Step) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        // A full queue means that the disk cannot follow: refuse rather than pile up.
        self.queue
            .try_send(step(reply))
            .map_err(|_| Error::Unavailable("the state writer is behind".into()))?;
        answer.await.map_err(|_| Error::Unavailable("the state writer has ended".into()))?
    }
}

fn write(mut connection: Connection, retention: Retention, clock: &dyn Clock, steps: &mpsc::Receiver<Step>) {
    while let Ok(first) = steps.recv() {
        let group = std::iter::once(first).chain(steps.try_iter().take(MOST_IN_GROUP - 1));
        let mut done = Vec::new();
        let committed = commit_group(&mut connection, retention, clock, group, &mut done);
        if let Err(error) = &committed {
            tracing::error!(%error, "a group of state steps could not be committed");
        }
        for step in done {
            if committed.is_ok() { step.send() } else { step.fail() }
        }
    }
}

fn commit_group(
    connection: &mut Connection,
    retention: Retention,
    clock: &dyn Clock,
    group: impl Iterator<Item = Step>,
    done: &mut Vec<Done>,
) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in group {
        done.push(match step {
            Step::Claim(new, reply) => {
                Done::Claim(alone(&mut transaction, |c| steps::claim(c, &new, clock.now())), reply)
            }
            Step::Commit(commit, reply) => Done::Commit(
                alone(&mut transaction, |c| steps::commit(c, *commit, retention, clock.now())),
                reply,
            ),
            Step::Sweep(now, reply) => {
                Done::Nothing(alone(&mut transaction, |c| steps::sweep(c, retention, now)), reply)
            }
            Step::Ping(reply) => Done::Nothing(alone(&mut transaction, steps::touch), reply),
        });
    }
    transaction.commit()
}

fn alone<T>(
    transaction: &mut rusqlite::Transaction<'_>,
    step: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let savepoint = transaction.savepoint().map_err(unavailable)?;
    let result = step(&savepoint)?;
    savepoint.commit().map_err(unavailable)?;
    Ok(result)
}
