//! What must be true after every run (`exactly-once.md` §9): (a) to (g); of the stock, (f), that no
//! more is sold than was there (K5).

use std::{collections::BTreeMap, time::Duration};

use chrono::TimeDelta;
use tillgate::{
    checkout::{
        problem::Kind,
        session::{Session, Status},
        store::FoundState,
    },
    clock::Clock as _,
};

use super::{
    schedule::Phase,
    shop::Order,
    world::{Ask, Asked, Exchange, Protocol, World},
};

/// Gives settling its time, looks at every session once more as its agent would, then judges.
pub async fn finish(world: &mut World) -> Vec<String> {
    world.scheduler.choose(false);
    for process in &world.processes {
        process.life.turn(Phase::Running);
    }
    let alive = |world: &World| world.processes.iter().position(|p| p.life.phase() == Phase::Running);
    let last = match alive(world) {
        Some(last) => last,
        None => world.start(),
    };
    for _ in 0..300 {
        if !world.sessions().iter().any(is_open) {
            break;
        }
        if !world.config.tends {
            world.processes[last].service.tend().await;
        }
        world.pass(2).await;
    }
    // Leases lapse, used carts are emptied.
    world.pass(45).await;
    for session in world.sessions() {
        let (protocol, caller) = of(&session);
        let ask =
            Ask { protocol, caller, key: None, session: Some(session.id.to_string()), what: Asked::Get };
        world.ask(last, &ask).await;
    }
    world.pass(30).await;
    // A clock that was set is believed after a while; nothing ends by time before.
    while !world.processes[last].clock.is_settled() {
        world.pass(30).await;
    }
    // An order that was told as declined and was paid since is found at the session's end, at the latest.
    let clock = &world.processes[last].clock;
    let ends = world.sessions().iter().filter_map(Session::due_at).max();
    let rest = ends.map_or(TimeDelta::zero(), |end| end - clock.now());
    clock.age(rest.max(TimeDelta::hours(24)) + TimeDelta::hours(1));
    world.processes[last].service.tend().await;
    world.pass(30).await;
    judge(world)
}

/// Whether an attempt is open that no person has to judge.
pub fn is_open(session: &Session) -> bool {
    session.attempt.as_ref().is_some_and(|attempt| !attempt.review)
}

fn in_review(session: &Session) -> bool {
    session.wants_review()
}

/// Protocol and agent of a session's caller.
pub fn of(session: &Session) -> (Protocol, usize) {
    match session.caller.as_str() {
        "acp:agent-0" => (Protocol::Acp, 0),
        "acp:agent-1" => (Protocol::Acp, 1),
        text if text.contains("spck.dev") => (Protocol::Ucp, 1),
        _ => (Protocol::Ucp, 0),
    }
}

/// All that is wrong.
pub fn judge(world: &World) -> Vec<String> {
    let mut wrong = world.shop.violations();
    let (sessions, orders, history) = (world.sessions(), world.shop.orders(), world.history());
    wrong.extend(oversold(world));
    wrong.extend(orders_and_sessions(&sessions, &orders));
    wrong.extend(completions(&sessions, &orders, &history));
    wrong.extend(rest(world, &sessions));
    wrong.extend(answers(world, &history));
    wrong.extend(the_key_that_paid(&sessions, &history));
    wrong.extend(strangers(&sessions, &history));
    wrong
}

/// (f), K5: nothing is sold that is not there, while all buy through us.
fn oversold(world: &World) -> Vec<String> {
    let books = world.shop.books();
    if books.sold_elsewhere {
        return Vec::new();
    }
    let below = books.stock.iter().filter(|(_, left)| **left < 0);
    below.map(|(product, left)| format!("(f) {left} of product {product} are left")).collect()
}

/// (a) and (c).
fn orders_and_sessions(sessions: &[Session], orders: &[Order]) -> Vec<String> {
    let mut wrong = Vec::new();
    let live: Vec<&Order> = orders.iter().filter(|order| order.state == FoundState::Placed).collect();
    let mut by_corr: BTreeMap<&str, usize> = BTreeMap::new();
    for order in &live {
        *by_corr.entry(order.corr.as_str()).or_default() += 1;
        let id = order.id.to_string();
        let holders =
            sessions.iter().filter(|s| s.order.as_ref().is_some_and(|o| o.shop_order == id)).count();
        let reviewed = sessions.iter().any(|s| s.correlation_id == order.corr && in_review(s));
        if holders != 1 && !reviewed {
            wrong.push(format!("(c) order {id} is in {holders} sessions"));
        }
    }
    for (corr, count) in by_corr {
        let reviewed = sessions.iter().any(|s| s.correlation_id == corr && in_review(s));
        if count > 1 && !reviewed {
            wrong.push(format!("(a) {count} live orders of one session"));
        }
    }
    for session in sessions {
        if is_open(session) {
            wrong.push(format!("(c) an attempt is still open: {:?}", session.attempt));
        }
        if let Some(order) = &session.order
            && !live.iter().any(|live| live.id.to_string() == order.shop_order)
        {
            wrong.push(format!("(b) a session has order {}, which does not count", order.shop_order));
        }
        if session.order.is_some() != (session.status == Status::Completed) {
            wrong.push(format!("(b) status {:?} with order {:?}", session.status, session.order));
        }
    }
    wrong
}

/// (b): an answer that says *completed* has an order with these lines and this total.
fn completions(sessions: &[Session], orders: &[Order], history: &[Exchange]) -> Vec<String> {
    let mut wrong = Vec::new();
    for exchange in history {
        let Some(told) = exchange.told.as_ref().filter(|told| told.text("status") == "completed") else {
            continue;
        };
        let session = sessions.iter().find(|session| session.id.as_str() == told.text("id"));
        let Some(session) = session else {
            wrong.push(format!("(b) completed, and no session: {}", told.text("id")));
            continue;
        };
        let order = session
            .order
            .as_ref()
            .and_then(|held| orders.iter().find(|order| order.id.to_string() == held.shop_order));
        let Some(order) = order else {
            wrong.push("(b) an answer said completed without an order".into());
            continue;
        };
        let public = session.order.as_ref().map(|order| order.id.as_str()).unwrap_or_default();
        if !told.json.to_string().contains(public) {
            wrong.push(format!("(b) an answer names another order than {public}: {}", told.json["order"]));
        }
        let units: u32 = session.lines.iter().map(|line| line.quantity).sum();
        let differs = session.problems.iter().any(|problem| problem.kind == Kind::OrderDiffers);
        let total = session.order.as_ref().map(|order| order.total);
        if (units != order.units() && !differs) || total != Some(order.total) {
            let held = (order.units(), order.total);
            wrong.push(format!("(b) told {units} units for {total:?}, the order has {held:?}"));
        }
    }
    wrong
}

/// (d): at rest nothing is held.
fn rest(world: &World, sessions: &[Session]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (scope, attempt, lives) in world.memory.running_claims() {
        let waits = sessions.iter().any(|session| {
            session.attempt.as_ref().is_some_and(|open| open.claim.as_deref() == Some(scope.as_str()))
        });
        match attempt {
            Some(number) if !waits => {
                wrong.push(format!("(d) a claim waits for attempt {number}, which is over"));
            }
            None if lives => wrong.push("(d) a claim of a living process has no end".into()),
            Some(_) | None => {}
        }
    }
    if world.memory.turns_held() > 0 {
        wrong.push("(d) a turn of a living process has no end".into());
    }
    wrong
}

/// (e): after the first final answer of a key every answer equals it; nothing else is kept.
fn answers(world: &World, history: &[Exchange]) -> Vec<String> {
    let mut wrong = Vec::new();
    for kept in world.memory.answers() {
        let text = String::from_utf8_lossy(&kept.body);
        if kept.status >= 500 || text.contains("complete_in_progress") {
            wrong.push(format!("(e) kept as an answer: {} {text}", kept.status));
        }
    }
    let mut keys: Vec<(&Ask, Vec<&Exchange>)> = Vec::new();
    for exchange in history.iter().filter(|exchange| exchange.ask.key.is_some()) {
        match keys.iter_mut().find(|(ask, _)| **ask == exchange.ask) {
            Some((_, list)) => list.push(exchange),
            None => keys.push((&exchange.ask, vec![exchange])),
        }
    }
    for (ask, exchanges) in keys {
        let is_final = |e: &&&Exchange| e.told.as_ref().is_some_and(super::world::Told::is_final);
        let Some(first) = exchanges.iter().find(is_final) else { continue };
        for later in exchanges.iter().filter(|later| later.ended >= first.ended) {
            let (Some(told), Some(first_told)) = (&later.told, &first.told) else { continue };
            let asked_after = later.sent >= first.ended;
            // A kept answer lives 25 h; asked again after that it runs anew.
            let old = later.sent - first.ended > Duration::from_hours(24);
            if old || (!told.is_final() && (!asked_after || told.status >= 500)) {
                continue;
            }
            if (told.status, &told.bytes) != (first_told.status, &first_told.bytes) {
                wrong.push(format!(
                    "(e) {ask:?}: first {} {}, later {} {}",
                    first_told.status, first_told.json, told.status, told.json
                ));
            }
        }
    }
    wrong
}

/// (e), too: where one key alone was used to pay a session, it is told what came of it, not that the session has ended.
fn the_key_that_paid(sessions: &[Session], history: &[Exchange]) -> Vec<String> {
    let mut wrong = Vec::new();
    for session in sessions.iter().filter(|session| session.status == Status::Completed) {
        let pays = |exchange: &&Exchange| {
            exchange.ask.session.as_deref() == Some(session.id.as_str())
                && matches!(exchange.ask.what, Asked::Complete { .. })
        };
        let of_it: Vec<&Exchange> = history.iter().filter(pays).collect();
        let one_key = of_it.iter().all(|exchange| exchange.ask == of_it[0].ask);
        let told = of_it.iter().filter_map(|exchange| exchange.told.as_ref());
        let ended = |told: &&super::world::Told| told.text("code") == "invalid_state" || told.status == 405;
        if one_key && let Some(told) = told.into_iter().find(ended) {
            wrong.push(format!("(e) the key that paid is told {} {}", told.status, told.json));
        }
    }
    wrong
}

/// (g): nobody saw a body made for another caller.
fn strangers(sessions: &[Session], history: &[Exchange]) -> Vec<String> {
    let seen = history.iter().filter_map(|exchange| Some((&exchange.ask, exchange.told.as_ref()?)));
    let stranger = |ask: &Ask, text: &str| {
        sessions
            .iter()
            .filter(|session| of(session) != (ask.protocol, ask.caller))
            .any(|session| text.contains(session.continue_token.as_str()))
    };
    seen.filter(|(ask, told)| stranger(ask, &String::from_utf8_lossy(&told.bytes)))
        .map(|(ask, _)| format!("(g) {ask:?} was told of another's session"))
        .collect()
}

/// Counts the cases of a test and keeps what went wrong.
pub struct Tally {
    test: &'static str,
    pub cases: usize,
    failed: Vec<String>,
}

impl Tally {
    pub const fn new(test: &'static str) -> Self {
        Self { test, cases: 0, failed: Vec::new() }
    }

    /// One case: what it was, what was wrong, how it went.
    pub fn add(&mut self, case: impl Into<String>, (wrong, trace): (Vec<String>, String)) {
        self.cases += 1;
        if !wrong.is_empty() {
            let text = format!("{}:\n  {}\n  trace:\n    {trace}", case.into(), wrong.join("\n  "));
            self.failed.push(text);
        }
    }

    /// Prints the figures; fails when any case went wrong.
    #[expect(clippy::print_stdout, reason = "the figures of the run")]
    pub fn end(self) {
        println!("{}: {} cases, {} violations", self.test, self.cases, self.failed.len());
        let shown: Vec<&String> = self.failed.iter().take(3).collect();
        let heads: Vec<&str> =
            self.failed.iter().take(40).filter_map(|text| text.split(":\n  trace").next()).collect();
        assert!(
            self.failed.is_empty(),
            "{} of {} cases went wrong\n{}\n\n{}",
            self.failed.len(),
            self.cases,
            heads.join("\n"),
            shown.into_iter().cloned().collect::<Vec<_>>().join("\n\n")
        );
    }
}
