//! The shop's workers: how many requests run at one time.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A line for the workers there are, first come, first served; without a number everything runs at once.
#[derive(Debug, Default)]
pub(super) struct Workers(Mutex<Option<(u64, Arc<Semaphore>)>>);

impl Workers {
    /// Waits for one of `wanted` workers; it is free again when the permit is dropped. A new number makes a new
    /// line: who waits in the old one stays there.
    pub(super) async fn enter(&self, wanted: Option<u64>) -> Option<OwnedSemaphorePermit> {
        let wanted = wanted.filter(|wanted| *wanted > 0)?;
        let line = {
            let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match line.as_ref() {
                Some((known, line)) if *known == wanted => Arc::clone(line),
                _ => {
                    let fresh = Arc::new(Semaphore::new(usize::try_from(wanted).unwrap_or(usize::MAX >> 3)));
                    *line = Some((wanted, Arc::clone(&fresh)));
                    fresh
                }
            }
        };
        line.acquire_owned().await.ok()
    }
}
