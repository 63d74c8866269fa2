//! Turns: one writer at a time on a session, within this process and among all that share the state.

use std::{sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use super::{Service, pause::Pause};
use crate::{
    checkout::{
        Error,
        ids::{SessionId, ShopId},
        state::{SharedTurn, State},
    },
    lane,
};

/// How often another process's turn is asked after, at first and at most.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// How long between two tries to give a turn back, at first and at most.
const GIVE_BACK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How often giving a turn back is tried; then it waits for the end of this process.
const GIVE_BACK_TRIES: u32 = 12;

/// The right to work on one session. Ends when it is dropped.
pub(super) struct Turn {
    shared: Option<Shared>,
    /// Given back last: who waits in this process asks for the shared turn next.
    _lane: lane::Turn<SessionId>,
}

struct Shared {
    state: Arc<dyn State>,
    tasks: TaskTracker,
    shop: ShopId,
    id: SessionId,
    turn: SharedTurn,
}

impl Service {
    /// Waits for the session's turn: in order of arrival among this process's requests, then against other
    /// processes, all within the lane's longest wait.
    pub(super) async fn turn(&self, id: &SessionId) -> Result<Turn, Error> {
        let lanes = &self.parts.lanes;
        let deadline = tokio::time::Instant::now() + lanes.longest_wait();
        let lane = lanes.enter(id.clone()).await.map_err(|_| Error::Busy)?;
        let state = &self.parts.state;
        // Alone: the lane is the whole turn.
        if state.lease().is_none() {
            return Ok(Turn { shared: None, _lane: lane });
        }
        let mut pause = Pause::new(ASK_AGAIN.0, ASK_AGAIN.1);
        loop {
            if let Some(turn) = state.take_turn(&self.settings.shop, id).await? {
                let shared = Shared {
                    state: Arc::clone(state),
                    tasks: self.parts.tasks.clone(),
                    shop: self.settings.shop.clone(),
                    id: id.clone(),
                    turn,
                };
                return Ok(Turn { shared: Some(shared), _lane: lane });
            }
            if tokio::time::Instant::now() + pause.next() >= deadline {
                return Err(Error::Busy);
            }
            pause.pass().await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(Shared { state, tasks, shop, id, turn }) = self.shared.take() else { return };
        // A turn of this process that is asked for anew before this ends has another number and stays.
        tasks.spawn(async move {
            let mut pause = Pause::new(GIVE_BACK_AGAIN.0, GIVE_BACK_AGAIN.1);
            for _ in 0..GIVE_BACK_TRIES {
                match state.end_turn(&shop, &id, turn).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, session = %id, "a turn could not be given back yet"),
                }
                pause.pass().await;
            }
        });
    }
}
