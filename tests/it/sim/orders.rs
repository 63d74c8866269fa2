//! T3: several operations in every order of their points. Exhaustive with a bound on how often a task is left
//! although it could go on; then at random, with kills, freezes, lost replies, clocks that are set and a shop of any
//! mood.

use std::time::Duration;

use chrono::TimeDelta;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tillgate::checkout::store::FoundState;

use super::{
    oracle::{Tally, finish},
    schedule::{Phase, Rule},
    shop::Fate,
    world::{Ask, Asked, Config, Protocol, World, simulate},
};

/// What is done at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// A request: at which process, with which key.
    Ask(usize, &'static str, Kind),
    /// A process looks after lost attempts and sessions past their time.
    Tend(usize),
    /// A process sweeps.
    Sweep(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Complete,
    Update,
    Cancel,
    Get,
    /// By another agent, who must not see anything.
    StrangerGets,
}

fn ask(protocol: Protocol, session: &str, key: &str, kind: Kind) -> Ask {
    let what = match kind {
        Kind::Complete => Asked::Complete { token: "tok" },
        Kind::Update => Asked::Update { quantity: 3 },
        Kind::Cancel => Asked::Cancel,
        Kind::Get | Kind::StrangerGets => Asked::Get,
    };
    let key = (!matches!(kind, Kind::Get | Kind::StrangerGets)).then(|| key.to_owned());
    Ask {
        protocol,
        caller: usize::from(kind == Kind::StrangerGets),
        key,
        session: Some(session.to_owned()),
        what,
    }
}

/// A decision that was made: how many could go, which one went, and whether the task before could have gone on.
#[derive(Debug, Clone, Copy)]
struct Choice {
    among: usize,
    chosen: usize,
    could_stay: bool,
}

impl Choice {
    /// Leaving a task that could go on is what is bounded.
    const fn cost(&self, chosen: usize) -> usize {
        if self.could_stay && chosen > 0 { 1 } else { 0 }
    }
}

/// Lets the operations run, one step at a time, as `choose` says: among so many; 0 stays with the last task.
async fn drive(
    world: &World,
    protocol: Protocol,
    session: &str,
    doings: &[Doing],
    mut choose: impl FnMut(&World, usize) -> usize,
) -> Vec<Choice> {
    world.scheduler.choose(true);
    let mut running = Vec::new();
    for doing in doings {
        match *doing {
            Doing::Ask(process, key, kind) => {
                let asked = world.send(process, &ask(protocol, session, key, kind));
                running.push(tokio::spawn(async move { drop(asked.await) }));
            }
            Doing::Tend(process) => {
                let (service, life) = {
                    let process = &world.processes[process];
                    (process.service.clone(), process.life.clone())
                };
                running.push(tokio::spawn(async move {
                    tokio::select! {
                        () = life.becomes(Phase::Dead) => {}
                        () = service.tend() => {}
                    }
                }));
            }
            Doing::Sweep(process) => {
                let process = &world.processes[process];
                let (state, now) = (process.state.clone(), tillgate::clock::Clock::now(&*process.clock));
                let life = process.life.clone();
                running.push(tokio::spawn(async move {
                    tokio::select! {
                        () = life.becomes(Phase::Dead) => {}
                        _ = state.sweep(now) => {}
                    }
                }));
            }
        }
    }
    let mut choices = Vec::new();
    let mut last = None;
    let mut idle = 0;
    while running.iter().any(|task| !task.is_finished()) && idle < 3000 {
        // Until everybody waits: for us, for a turn, or for time to pass.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut waiting = world.scheduler.waiting();
        if waiting.is_empty() {
            idle += 1;
            tokio::time::sleep(Duration::from_millis(if idle < 50 { 20 } else { 100 })).await;
            continue;
        }
        idle = 0;
        let stays = waiting.iter().position(|(who, _, task)| Some((*who, *task)) == last);
        if let Some(at) = stays {
            let stay = waiting.remove(at);
            waiting.insert(0, stay);
        }
        let among = waiting.len();
        let chosen = if among == 1 { 0 } else { choose(world, among).min(among - 1) };
        if among > 1 {
            choices.push(Choice { among, chosen, could_stay: stays.is_some() });
        }
        let go = waiting[chosen];
        last = Some((go.0, go.2));
        world.scheduler.release(go);
    }
    world.scheduler.choose(false);
    for process in &world.processes {
        process.life.turn(Phase::Running);
    }
    for task in running {
        drop(task.await);
    }
    choices
}

/// Nobody looks after lost attempts but those who are told to.
pub const QUIET: Config = Config { tends: false, ..Config::USUAL };

/// Plays one order of things.
fn play(
    protocol: Protocol,
    fate: Fate,
    doings: &[Doing],
    prefix: &[usize],
) -> (Vec<Choice>, (Vec<String>, String)) {
    simulate(QUIET, |mut world| async move {
        world.start();
        world.start();
        let session = world.ready(0, protocol, "rose", false).await;
        world.shop.fates(&[fate]);
        let mut at = 0;
        let choices = drive(&world, protocol, &session, doings, |_, _| {
            at += 1;
            prefix.get(at - 1).copied().unwrap_or_default()
        })
        .await;
        let wrong = finish(&mut world).await;
        (choices, (wrong, world.scheduler.trace()))
    })
}

/// Every order of things with at most `bound` needless changes of task, but no more than `most` of them.
fn explore(
    tally: &mut Tally,
    protocol: Protocol,
    fate: Fate,
    doings: &[Doing],
    (bound, most): (usize, usize),
) {
    let mut prefix: Vec<usize> = Vec::new();
    for _ in 0..most {
        let (choices, case) = play(protocol, fate, doings, &prefix);
        tally.add(format!("{doings:?}, {fate:?}, {protocol:?}, choices {prefix:?}"), case);
        let mut costs = Vec::with_capacity(choices.len());
        let mut cost = 0;
        for choice in &choices {
            costs.push(cost);
            cost += choice.cost(choice.chosen);
        }
        let next = choices.iter().enumerate().rev().find(|(at, choice)| {
            choice.chosen + 1 < choice.among && costs[*at] + choice.cost(choice.chosen + 1) <= bound
        });
        let Some((at, choice)) = next else { return };
        prefix = choices[..at].iter().map(|choice| choice.chosen).collect();
        prefix.push(choice.chosen + 1);
    }
}

use Doing::{Ask as A, Sweep, Tend};
use Kind::{Cancel, Complete, Get, StrangerGets, Update};

#[test]
fn t3_two_operations_in_every_order() {
    let mut tally = Tally::new("T3, two operations");
    for doings in [
        [A(0, "k1", Complete), A(0, "k2", Complete)],
        [A(0, "k1", Complete), A(1, "k1", Complete)],
        [A(0, "k1", Complete), A(1, "k2", Complete)],
        [A(0, "k1", Complete), A(0, "u", Update)],
        [A(0, "k1", Complete), A(1, "u", Update)],
        [A(0, "k1", Complete), A(0, "c", Cancel)],
        [A(0, "k1", Complete), A(1, "c", Cancel)],
        [A(0, "k1", Complete), A(1, "", Get)],
        [A(0, "k1", Complete), A(1, "", StrangerGets)],
        [A(0, "k1", Complete), Tend(0)],
        [A(0, "k1", Complete), Tend(1)],
        [A(0, "u", Update), A(1, "c", Cancel)],
    ] {
        for (protocol, fate) in [(Protocol::Ucp, Fate::Paid), (Protocol::Acp, Fate::AnswerLost)] {
            explore(&mut tally, protocol, fate, &doings, (2, 60));
        }
    }
    tally.end();
}

#[test]
fn t3_three_and_four_operations_in_many_orders() {
    let mut tally = Tally::new("T3, three and four operations");
    for doings in [
        &[A(0, "k1", Complete), A(1, "k2", Complete), Tend(1)][..],
        &[A(0, "k1", Complete), A(1, "k1", Complete), A(0, "c", Cancel)],
        &[A(0, "k1", Complete), A(1, "u", Update), A(0, "c", Cancel)],
        &[A(0, "k1", Complete), A(1, "k2", Complete), A(0, "u", Update), Tend(1)],
        &[A(0, "k1", Complete), Tend(0), Tend(1), Sweep(1)],
    ] {
        for (protocol, fate) in [(Protocol::Acp, Fate::Paid), (Protocol::Ucp, Fate::DeclinedSilently)] {
            explore(&mut tally, protocol, fate, doings, (1, 60));
        }
    }
    tally.end();
}

/// A run that chance makes; the same for the same seed.
pub fn random(config: Config, seed: u64) -> (Vec<String>, String) {
    simulate(config, |mut world| async move {
        let mut chance = StdRng::seed_from_u64(seed);
        world.start();
        world.start();
        let protocol = Protocol::BOTH[chance.random_range(0..2)];
        let item = ["rose", "rose", "rose", "sample"][chance.random_range(0..4)];
        let code = item == "rose" && chance.random_bool(0.3);
        let session = world.ready(0, protocol, item, code).await;
        let fates: Vec<Fate> = (0..3).map(|_| Fate::ALL[chance.random_range(0..Fate::ALL.len())]).collect();
        world.shop.fates(&fates);
        let mut struck = false;
        for _ in 0..chance.random_range(1..4) {
            let doings: Vec<Doing> = (0..chance.random_range(2..5)).map(|_| any(&mut chance)).collect();
            world.scheduler.note(format!("  {doings:?}, {fates:?}"));
            let mischief = chance.random_bool(0.5);
            let mut own = StdRng::seed_from_u64(chance.random());
            drive(&world, protocol, &session, &doings, |world, among| {
                if mischief && own.random_bool(0.05) {
                    mischievous(world, &mut own, &mut struck);
                }
                own.random_range(0..among)
            })
            .await;
            world.pass(chance.random_range(0..20)).await;
            // Even when the session has another order already.
            if chance.random_bool(0.1) {
                world.shop.buyer_pays();
                world.scheduler.note("  the buyer pays at the shop");
            }
            if chance.random_bool(0.05) {
                world.shop.merchant_cancels();
            }
            if chance.random_bool(0.05) {
                world.memory.change_master(Duration::from_secs(30));
            }
            if world.processes.iter().take(2).any(|process| process.life.phase() == Phase::Dead) {
                break;
            }
        }
        let wrong = finish(&mut world).await;
        (wrong, world.scheduler.trace())
    })
}

fn any(chance: &mut StdRng) -> Doing {
    let process = chance.random_range(0..2);
    let key = ["k1", "k2", "k3"][chance.random_range(0..3)];
    match chance.random_range(0..12) {
        0..5 => A(process, key, Complete),
        5 => A(process, "u", Update),
        6 => A(process, "c", Cancel),
        7 => A(process, "", Get),
        8 => A(process, "", StrangerGets),
        9 => Sweep(process),
        _ => Tend(process),
    }
}

/// A process dies, is stopped or wakes, or the reply to a commit is lost.
fn mischievous(world: &World, chance: &mut StdRng, struck: &mut bool) {
    let process = chance.random_range(0..2);
    let life = &world.processes[process].life;
    match chance.random_range(0..7) {
        0 if !*struck => {
            *struck = true;
            world.scheduler.note(format!("  process {process} dies"));
            life.turn(Phase::Dead);
        }
        1 | 2 if life.phase() == Phase::Running => {
            world.scheduler.note(format!("  process {process} freezes"));
            life.turn(Phase::Frozen);
            // It wakes by itself, some time.
            let (life, secs) = (life.clone(), [1, 10, 14, 40, 100][chance.random_range(0..5)]);
            let scheduler = world.scheduler.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(secs)).await;
                scheduler.note(format!("  process {process} wakes"));
                life.turn(Phase::Running);
            });
        }
        3 => world.memory.lose_replies(1),
        4 => {
            let by = TimeDelta::minutes([10, -10, 25 * 60, -25 * 60][chance.random_range(0..4)]);
            let (whose, clock) = match chance.random_range(0..3) {
                2 => ("the state's".to_owned(), &world.memory.clock),
                at => (format!("that of process {at}"), &*world.processes[at].clock.machine),
            };
            world.scheduler.note(format!("  a clock is set by {by}: {whose}"));
            clock.jump(by);
        }
        _ => {}
    }
}

/// A declined order waits at the shop; the next key's `POST` is about to leave, or its payment runs, when the buyer
/// pays there. What is wrong, and how many orders are paid.
fn paid_meanwhile(protocol: Protocol, second: Fate, in_front: bool) -> ((Vec<String>, String), usize) {
    simulate(Config::USUAL, |mut world| async move {
        world.start();
        let session = world.ready(0, protocol, "rose", false).await;
        world.shop.fates(&[Fate::DeclinedSilently, second]);
        world.ask(0, &ask(protocol, &session, "k1", Kind::Complete)).await;
        world.pass(3).await;
        if in_front {
            let rule = Rule { process: 0, place: "before_send", visit: 1, phase: Phase::Frozen };
            world.scheduler.arm(rule);
        }
        let asked = world.send(0, &ask(protocol, &session, "k2", Kind::Complete));
        for _ in 0..100 {
            let posts = world.shop.books().posts;
            if posts == 2 || in_front && world.scheduler.struck() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(world.shop.buyer_pays(), "nothing to pay");
        world.scheduler.note("  the buyer pays at the shop");
        world.processes[0].life.turn(Phase::Running);
        drop(asked.await);
        let wrong = finish(&mut world).await;
        let paid = world.shop.orders().iter().filter(|order| order.state == FoundState::Placed).count();
        ((wrong, world.scheduler.trace()), paid)
    })
}

/// Found at random: the session had the new order, and nobody was told of the old one.
#[test]
fn t3_a_payment_between_the_look_and_the_new_order_is_told() {
    let mut tally = Tally::new("T3, paid in front of the new order");
    for protocol in Protocol::BOTH {
        let (case, paid) = paid_meanwhile(protocol, Fate::Paid, true);
        assert_eq!(paid, 2, "the buyer's and the agent's: {}", case.1);
        tally.add(format!("{protocol:?}"), case);
    }
    tally.end();
}

/// The `POST` takes up the order that the buyer pays: its decline undoes nothing.
#[test]
fn t3_a_payment_while_the_same_order_is_declined_counts() {
    let mut tally = Tally::new("T3, paid while it is declined");
    for protocol in Protocol::BOTH {
        for fate in [Fate::DeclinedNoisily, Fate::DeclinedSilently, Fate::DeclinedLate, Fate::Slow] {
            let (case, paid) = paid_meanwhile(protocol, fate, false);
            assert_eq!(paid, 1, "one order, paid: {}", case.1);
            tally.add(format!("{protocol:?}, {fate:?}"), case);
        }
    }
    tally.end();
}

/// `SIM_CASES=10000` runs more of them, with `SIM_FROM=5000` from that seed on (several processes can share a long
/// run); `SIM_SEED=7` one alone, with its trace.
#[test]
#[expect(clippy::print_stdout, reason = "the trace of a run that was asked for")]
fn t3_random_orders() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut tally = Tally::new("T3, at random");
    if let Some(seed) = number("SIM_SEED") {
        let (wrong, trace) = random(QUIET, seed);
        println!("seed {seed}:\n    {trace}");
        tally.add(format!("SIM_SEED={seed}"), (wrong, trace));
        return tally.end();
    }
    let from = number("SIM_FROM").unwrap_or_default();
    for seed in from..from + number("SIM_CASES").unwrap_or(300) {
        tally.add(format!("SIM_SEED={seed}"), random(QUIET, seed));
    }
    tally.end();
}
