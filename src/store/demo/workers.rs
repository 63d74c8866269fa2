//! The shop's workers: how many requests run at one time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A line for the workers there are, first come, first served; without a number everything runs at once.
#[derive(Debug, Default)]
pub(super) struct Workers {
    line: Mutex<Option<(u64, Arc<Semaphore>)>>,
    running: Arc<AtomicU64>,
}

/// A request that runs; when it is dropped, its worker is free.
#[derive(Debug)]
pub(super) struct Running {
    running: Arc<AtomicU64>,
    _worker: Option<OwnedSemaphorePermit>,
}

impl Workers {
    /// How many requests run; follows what happens.
    pub(super) fn running(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.running)
    }

    /// Waits for one of `wanted` workers. A new number makes a new line: who waits in the old one stays there.
    pub(super) async fn enter(&self, wanted: Option<u64>) -> Running {
        let line = wanted.filter(|wanted| *wanted > 0).map(|wanted| {
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            match line.as_ref() {
                Some((known, line)) if *known == wanted => Arc::clone(line),
                _ => {
                    let fresh = Arc::new(Semaphore::new(usize::try_from(wanted).unwrap_or(usize::MAX >> 3)));
                    *line = Some((wanted, Arc::clone(&fresh)));
                    fresh
                }
            }
        });
        let worker = match line {
            Some(line) => line.acquire_owned().await.ok(),
            None => None,
        };
        self.running.fetch_add(1, Ordering::Relaxed);
        Running { running: self.running(), _worker: worker }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}
