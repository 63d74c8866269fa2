//! The simulator's model of the memory: it must do what the real back ends do.

use std::sync::Arc;

use tillgate::{
    checkout::state::{Records, State},
    clock::SystemClock,
};

use super::Backend;
use crate::sim::state::{Guards, Handle, Memory, Reader};

/// A memory.
pub(super) struct Modelled(Arc<Memory>);

impl Modelled {
    pub(super) fn new() -> Self {
        Self(Memory::new(Guards::ALL))
    }
}

impl Backend for Modelled {
    async fn open(&self) -> Arc<dyn State> {
        Arc::new(Handle::open(&self.0, None, Arc::new(SystemClock)))
    }

    async fn bury(&self) {
        self.0.bury();
    }

    fn records(&self) -> Box<dyn Records> {
        Box::new(Reader(Arc::clone(&self.0)))
    }
}
