//! Debug builds only: a process that stops at a named point, so that a test can kill it there or wake it later.
//!
//! `TILLGATE_STOP_AT=POINT[:N]` stops the work that comes to the point as the N-th (the first if not given), for
//! ever; `TILLGATE_FREEZE_AT=POINT[:N]` stops the whole process there, as `SIGSTOP` does, until it is sent `SIGCONT`.
//! Both say `at POINT` on standard error before. A release build has no such variables.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use futures::future::BoxFuture;

use crate::checkout::{
    ids::SessionId,
    points::{Point, Probe},
};

struct Stop {
    at: Point,
    left: AtomicU32,
    freezes: bool,
}

impl Probe for Stop {
    fn at(&self, point: Point, _: Option<&SessionId>) -> BoxFuture<'static, ()> {
        let met = point == self.at && self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        let freezes = self.freezes;
        Box::pin(async move {
            if !met {
                return;
            }
            eprintln!("at {point}");
            if freezes {
                freeze();
            } else {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// Stops this process, every thread of it, until somebody sends `SIGCONT`.
fn freeze() {
    let stop = format!("kill -STOP {}", std::process::id());
    if let Err(error) = std::process::Command::new("sh").args(["-c", &stop]).status() {
        eprintln!("this process cannot be frozen: {error}");
    }
}

/// The probe that the environment asks for.
pub(super) fn probe() -> anyhow::Result<Option<Arc<dyn Probe>>> {
    for (name, freezes) in [("TILLGATE_STOP_AT", false), ("TILLGATE_FREEZE_AT", true)] {
        let Ok(text) = std::env::var(name) else { continue };
        let (point, times) = text.split_once(':').unwrap_or((&text, "1"));
        let at = Point::ALL.iter().find(|known| known.name() == point);
        let (Some(at), Ok(times)) = (at, times.parse()) else {
            anyhow::bail!("{name}={text}: want POINT or POINT:N");
        };
        return Ok(Some(Arc::new(Stop { at: *at, left: AtomicU32::new(times), freezes })));
    }
    Ok(None)
}
