//! Who may go on at a named place, and when.
//!
//! Processes ask at every named point of a completion, at the writing of *placing* and of an outcome, and before
//! a reply; the shop asks at the stages of a `POST`. A [`Rule`] kills or freezes a process at a place. With
//! [`Scheduler::choose`] everybody waits until the test lets one go.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use tillgate::checkout::{
    ids::SessionId,
    points::{Point, Probe},
};
use tokio::sync::{oneshot, watch};

/// Who comes to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A process, by its number.
    Process(usize),
    /// The shop.
    Shop,
}

/// Places that are no [`Point`]: *placing* or an outcome is stored and nobody knows yet, the reply is on its way;
/// then the stages of a `POST` at the shop.
pub const P_WRITTEN: &str = "p_written";
pub const OUTCOME_WRITTEN: &str = "outcome_written";
pub const BEFORE_REPLY: &str = "before_reply";
pub const SHOP: [&str; 4] = ["shop_queued", "shop_loaded", "shop_paid", "shop_done"];

/// All places at which a process may be stopped.
pub fn places() -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Point::ALL.iter().map(|point| point.name()).collect();
    all.extend([P_WRITTEN, OUTCOME_WRITTEN, BEFORE_REPLY]);
    all.extend(SHOP);
    all
}

/// How a process fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Running,
    /// Stopped as by `SIGSTOP`: nothing of it moves until it is woken.
    Frozen,
    /// Gone: nothing of it ever moves again.
    Dead,
}

/// The life of a process. Its work passes [`Life::pass`] before and after everything that others could notice.
#[derive(Debug)]
pub struct Life(watch::Sender<Phase>);

impl Life {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(Phase::Running)))
    }

    /// The dead stay dead.
    pub fn turn(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let changed = *now != Phase::Dead && *now != phase;
            if changed {
                *now = phase;
            }
            changed
        });
    }

    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Goes on while the process runs: after its waking when it is frozen, never when it is dead.
    pub async fn pass(&self) {
        self.becomes(Phase::Running).await;
    }

    pub async fn becomes(&self, wanted: Phase) {
        let mut phases = self.0.subscribe();
        // The sender lives as long as `self`.
        drop(phases.wait_for(|phase| *phase == wanted).await);
    }
}

/// What happens to a process at a place.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub process: usize,
    pub place: &'static str,
    /// At the how-manieth visit, from 1.
    pub visit: usize,
    pub phase: Phase,
}

/// Somebody who waits to be let go.
struct Parked {
    who: Who,
    place: &'static str,
    /// The task, so that a choice can stay with it.
    task: Option<tokio::task::Id>,
    go: oneshot::Sender<()>,
}

#[derive(Default)]
struct Inner {
    trace: Vec<String>,
    visits: BTreeMap<&'static str, usize>,
    rule: Option<Rule>,
    struck: bool,
    choosing: bool,
    parked: Vec<Parked>,
    lives: Vec<Arc<Life>>,
}

/// The scheduler of one run.
#[derive(Default)]
pub struct Scheduler(Mutex<Inner>);

impl Scheduler {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, life: Arc<Life>) {
        self.inner().lives.push(life);
    }

    /// From now on this rule holds; visits are counted from here.
    pub fn arm(&self, rule: Rule) {
        let mut inner = self.inner();
        inner.visits.clear();
        inner.rule = Some(rule);
    }

    /// Whether the rule's moment has come.
    pub fn struck(&self) -> bool {
        self.inner().struck
    }

    /// From now on everybody waits at every place, or nobody does.
    pub fn choose(&self, choosing: bool) {
        let mut inner = self.inner();
        inner.choosing = choosing;
        if !choosing {
            for parked in std::mem::take(&mut inner.parked) {
                let _ = parked.go.send(());
            }
        }
    }

    /// Who waits, in order of arrival: those of a process that is frozen or dead do not count.
    pub fn waiting(&self) -> Vec<(Who, &'static str, Option<tokio::task::Id>)> {
        let mut inner = self.inner();
        let lives = inner.lives.clone();
        inner.parked.retain(|parked| match parked.who {
            Who::Process(number) => lives.get(number).is_none_or(|life| life.phase() != Phase::Dead),
            Who::Shop => true,
        });
        let runs = |parked: &&Parked| match parked.who {
            Who::Process(number) => lives.get(number).is_none_or(|life| life.phase() == Phase::Running),
            Who::Shop => true,
        };
        inner.parked.iter().filter(runs).map(|parked| (parked.who, parked.place, parked.task)).collect()
    }

    /// Lets one of [`Scheduler::waiting`] go.
    pub fn release(&self, (who, place, task): (Who, &'static str, Option<tokio::task::Id>)) {
        let mut inner = self.inner();
        let at = inner
            .parked
            .iter()
            .position(|parked| parked.who == who && parked.place == place && parked.task == task);
        if let Some(at) = at {
            let parked = inner.parked.remove(at);
            inner.trace.push(format!("  let go: {}", name(who, place)));
            let _ = parked.go.send(());
        }
    }

    /// Notes something in the trace.
    pub fn note(&self, text: impl Into<String>) {
        self.inner().trace.push(text.into());
    }

    pub fn trace(&self) -> String {
        self.inner().trace.join("\n    ")
    }

    /// Somebody has come to a place and goes on when this ends.
    pub async fn at(&self, who: Who, place: &'static str) {
        let wait = {
            let mut inner = self.inner();
            inner.trace.push(name(who, place));
            let concerns = |rule: &Rule| match who {
                Who::Process(number) => rule.process == number,
                Who::Shop => true,
            };
            let rule = inner.rule.filter(|rule| rule.place == place && concerns(rule));
            let visits = inner.visits.entry(place).or_default();
            if rule.is_some() {
                *visits += 1;
            }
            let visit = *visits;
            if let Some(rule) = rule.filter(|rule| rule.visit == visit && !inner.struck) {
                inner.struck = true;
                inner.trace.push(format!("  process {} is {:?}", rule.process, rule.phase));
                if let Some(life) = inner.lives.get(rule.process) {
                    life.turn(rule.phase);
                }
            }
            if inner.choosing {
                let (go, wait) = oneshot::channel();
                let task = tokio::task::try_id();
                inner.parked.push(Parked { who, place, task, go });
                Some(wait)
            } else {
                None
            }
        };
        if let Some(wait) = wait {
            // Dropped unsent: the process is dead and never passes again anyway.
            drop(wait.await);
        }
        let life = match who {
            Who::Process(number) => self.inner().lives.get(number).cloned(),
            Who::Shop => None,
        };
        if let Some(life) = life {
            life.pass().await;
        }
    }
}

fn name(who: Who, place: &str) -> String {
    match who {
        Who::Process(number) => format!("{number}: {place}"),
        Who::Shop => format!("s: {place}"),
    }
}

/// Listens at the points of one process.
pub struct Listener {
    pub process: usize,
    pub scheduler: Arc<Scheduler>,
}

impl Probe for Listener {
    fn at(&self, point: Point, _: Option<&SessionId>) -> BoxFuture<'static, ()> {
        let (scheduler, who) = (Arc::clone(&self.scheduler), Who::Process(self.process));
        Box::pin(async move { scheduler.at(who, point.name()).await })
    }
}
