//! Turns: requests that can change one session run one after another, in order of arrival.
//!
//! One FIFO per session inside the process. Bounded in length and in time: who finds the queue full, or
//! waits too long, is told [`Full`] and nothing has run (`product.md` §4). A turn ends when it is dropped.
//! Turns between processes are a matter of the state store and of its session versions.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Too many wait already, or the wait took too long; nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no turn came free in time")]
pub struct Full;

/// The lanes of one shop, by session.
#[derive(Debug)]
pub struct Lanes<K: Eq + Hash + Clone> {
    sessions: Arc<Mutex<HashMap<K, Lane>>>,
    most_waiting: usize,
    longest_wait: Duration,
}

#[derive(Debug)]
struct Lane {
    gate: Arc<Semaphore>,
    /// Who runs and who waits.
    present: usize,
}

/// The right to work on one session. Dropping it lets the next one in.
#[derive(Debug)]
pub struct Turn<K: Eq + Hash + Clone> {
    /// Given back before the place is.
    permit: Option<OwnedSemaphorePermit>,
    _place: Place<K>,
}

/// A place in a lane, running or waiting; the last one to leave removes the lane.
#[derive(Debug)]
struct Place<K: Eq + Hash + Clone> {
    lanes: Arc<Mutex<HashMap<K, Lane>>>,
    key: K,
}

impl<K: Eq + Hash + Clone> Lanes<K> {
    /// Lanes in which at most `most_waiting` wait behind the one that runs, each for `longest_wait`.
    #[must_use]
    pub fn new(most_waiting: usize, longest_wait: Duration) -> Self {
        Self { sessions: Arc::default(), most_waiting, longest_wait }
    }

    /// How long one waits at most.
    #[must_use]
    pub const fn longest_wait(&self) -> Duration {
        self.longest_wait
    }

    /// Waits for the turn.
    ///
    /// # Errors
    /// [`Full`]: answer 503 with `Retry-After: 1`; the caller may send the same request again.
    pub async fn enter(&self, key: K) -> Result<Turn<K>, Full> {
        let (gate, place) = self.queue(key)?;
        match tokio::time::timeout(self.longest_wait, gate.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Turn { permit: Some(permit), _place: place }),
            // The gate is never closed; treating it as full is the safe reading.
            Ok(Err(_)) | Err(_) => Err(Full),
        }
    }

    fn queue(&self, key: K) -> Result<(Arc<Semaphore>, Place<K>), Full> {
        let mut lanes = locked(&self.sessions);
        let lane = lanes
            .entry(key.clone())
            .or_insert_with(|| Lane { gate: Arc::new(Semaphore::new(1)), present: 0 });
        if lane.present > self.most_waiting {
            return Err(Full);
        }
        lane.present += 1;
        Ok((Arc::clone(&lane.gate), Place { lanes: Arc::clone(&self.sessions), key }))
    }

    /// How many sessions are being worked on: none at rest.
    #[must_use]
    pub fn busy(&self) -> usize {
        locked(&self.sessions).len()
    }
}

impl<K: Eq + Hash + Clone> Drop for Turn<K> {
    fn drop(&mut self) {
        drop(self.permit.take());
    }
}

impl<K: Eq + Hash + Clone> Drop for Place<K> {
    fn drop(&mut self) {
        let mut lanes = locked(&self.lanes);
        if let Some(lane) = lanes.get_mut(&self.key) {
            lane.present -= 1;
            if lane.present == 0 {
                lanes.remove(&self.key);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(most_waiting: usize) -> Arc<Lanes<&'static str>> {
        Arc::new(Lanes::new(most_waiting, Duration::from_secs(10)))
    }

    /// Requirements: D-15.
    #[tokio::test(start_paused = true)]
    async fn turns_come_in_order_of_arrival() {
        let lanes = lanes(8);
        let first = lanes.enter("a").await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..5 {
            let (lanes, order) = (Arc::clone(&lanes), Arc::clone(&order));
            waiting.push(tokio::task::spawn(async move {
                let _turn = lanes.enter("a").await.unwrap();
                locked(&order).push(number);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*locked(&order), [0, 1, 2, 3, 4]);
        assert_eq!(lanes.busy(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded_in_length_and_in_time() {
        let lanes = lanes(1);
        let running = lanes.enter("a").await.unwrap();
        let second = tokio::task::spawn({
            let lanes = Arc::clone(&lanes);
            async move { lanes.enter("a").await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(lanes.enter("a").await.map(drop), Err(Full), "a third finds the queue full at once");
        assert_eq!(second.await.unwrap(), Err(Full), "the second waits no longer than allowed");
        assert!(lanes.enter("b").await.is_ok(), "another session is not concerned");
        drop(running);
        assert_eq!(lanes.busy(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_waiting_leaves_no_trace() {
        let lanes = lanes(4);
        let running = lanes.enter("a").await.unwrap();
        let waiting = tokio::task::spawn({
            let lanes = Arc::clone(&lanes);
            async move { lanes.enter("a").await.map(drop) }
        });
        tokio::task::yield_now().await;
        waiting.abort();
        assert!(waiting.await.is_err());
        drop(running);
        assert_eq!(lanes.busy(), 0);
        assert!(lanes.enter("a").await.is_ok());
    }
}
