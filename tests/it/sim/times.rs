//! T6: what time does to sessions and keys, and what a key covers.

use chrono::TimeDelta;
use tillgate::{checkout::session::Status, clock::Clock as _};

use super::{
    kills::complete,
    oracle::{Tally, finish},
    schedule::{Phase, Rule, places},
    shop::Fate,
    world::{Ask, Asked, Config, Protocol, World, simulate},
};

/// How a clock is set wrong, or right and late.
const JUMPS: [(&str, i64); 4] =
    [("a day on", 86_400), ("a day back", -86_400), ("ten minutes on", 600), ("ten minutes back", -600)];

/// Whose clock is set: the machines' of the two processes, the state's.
const CLOCKS: [&str; 3] = ["of the sleeper", "of the other", "of the state"];

/// A process stands still at a place; meanwhile a clock is set, for good, and the other process sweeps and looks after
/// what is past its time.
async fn set_at(
    mut world: World,
    place: &'static str,
    protocol: Protocol,
    fate: Fate,
    (clock, secs): (usize, i64),
) -> Option<(Vec<String>, String)> {
    world.start();
    world.start();
    let session = world.ready(0, protocol, "rose", false).await;
    world.shop.fates(&[fate]);
    world.scheduler.arm(Rule { process: 0, place, visit: 1, phase: Phase::Frozen });
    let sleeping = world.send(0, &complete(protocol, &session, "k1"));
    for _ in 0..60 {
        if world.scheduler.struck() || sleeping.is_finished() {
            break;
        }
        world.pass(1).await;
    }
    if !world.scheduler.struck() {
        return None;
    }
    let by = TimeDelta::seconds(secs);
    world.processes.get(clock).map_or(&world.memory.clock, |process| &process.clock.machine).jump(by);
    let other = &world.processes[1];
    other.state.sweep(other.clock.now()).await.unwrap();
    other.service.tend().await;
    world.pass(1).await;
    world.processes[0].life.turn(Phase::Running);
    drop(sleeping.await);
    drop(world.ask(1, &complete(protocol, &session, "k1")).await);
    let wrong = finish(&mut world).await;
    Some((wrong, world.scheduler.trace()))
}

#[test]
fn t6_clocks_that_are_set_at_any_place() {
    let mut tally = Tally::new("T6, clocks");
    for fate in [Fate::Paid, Fate::AnswerLost] {
        for (number, place) in places().into_iter().enumerate() {
            for (at, (name, secs)) in JUMPS.into_iter().enumerate() {
                for (clock, whose) in CLOCKS.iter().enumerate() {
                    let protocol = Protocol::BOTH[(number + at) % 2];
                    let case =
                        simulate(Config::USUAL, |world| set_at(world, place, protocol, fate, (clock, secs)));
                    if let Some(case) = case {
                        tally.add(format!("{place}, {fate:?}, the clock {whose} {name}"), case);
                    }
                }
            }
        }
    }
    tally.end();
}

#[test]
fn t6_a_late_retry_of_a_completion_never_buys_again() {
    let mut tally = Tally::new("T6, late retries");
    for protocol in Protocol::BOTH {
        for hours in [1, 24, 26, 24 * 8, 24 * 31] {
            let case = simulate(Config::USUAL, |mut world| async move {
                world.start();
                let session = world.ready(0, protocol, "rose", false).await;
                let ask = complete(protocol, &session, "k1");
                world.insist(0, &ask).await;
                world.processes[0].life.turn(Phase::Dead);
                world.pass(hours * 3600).await;
                let process = world.start();
                let now = world.processes[process].clock.now();
                world.processes[process].state.sweep(now).await.unwrap();
                world.ask(process, &ask).await;
                world.ask(process, &complete(protocol, &session, "k2")).await;
                let mut wrong = world.shop.violations();
                let orders = world.shop.orders().len();
                if orders != 1 {
                    wrong.push(format!("{orders} orders"));
                }
                // After its retention the session is gone, and with it what there was to say.
                if hours < 24 * 30 {
                    wrong.extend(finish(&mut world).await);
                }
                (wrong, world.scheduler.trace())
            });
            tally.add(format!("{protocol:?} after {hours} h"), case);
        }
    }
    tally.end();
}

#[test]
fn t6_sessions_end_by_time_but_never_with_an_open_attempt() {
    let mut tally = Tally::new("T6, expiry");
    for fate in [Fate::Paid, Fate::AnswerLost, Fate::RequestLost, Fate::Slow, Fate::Challenge] {
        for protocol in Protocol::BOTH {
            let case = simulate(Config::USUAL, |mut world| async move {
                world.start();
                world.start();
                let session = world.ready(0, protocol, "rose", false).await;
                world.shop.fates(&[fate]);
                world.scheduler.arm(Rule {
                    process: 0,
                    place: "before_send",
                    visit: 1,
                    phase: Phase::Frozen,
                });
                let sleeping = world.send(0, &complete(protocol, &session, "k1"));
                world.pass(2).await;
                // Its time is over in the middle of the attempt.
                world.processes[1].clock.age(TimeDelta::hours(25));
                world.processes[1].service.tend().await;
                world.processes[1].clock.age(TimeDelta::hours(-25));
                let mut wrong = Vec::new();
                if world.session(&session).status != Status::Placing {
                    wrong.push(format!("{:?} while its order is placed", world.session(&session).status));
                }
                world.processes[0].life.turn(Phase::Running);
                drop(sleeping.await);
                wrong.extend(finish(&mut world).await);
                (wrong, world.scheduler.trace())
            });
            tally.add(format!("{fate:?}, {protocol:?}"), case);
        }
    }
    tally.end();
}

#[test]
fn t6_a_key_covers_one_caller_one_operation_and_one_session() {
    let mut tally = Tally::new("T6, scopes");
    for protocol in Protocol::BOTH {
        let case = simulate(Config::USUAL, |mut world| async move {
            world.start();
            let (ours, ours_too) = (
                world.ready(0, protocol, "rose", false).await,
                world.ready(0, protocol, "rose", false).await,
            );
            let theirs = world.ready_for(0, protocol, 1, "rose", 2, false).await;
            let ask = |caller, session: &String, what| Ask {
                protocol,
                caller,
                key: Some("the-same".into()),
                session: Some(session.clone()),
                what,
            };
            let pay = || Asked::Complete { token: "tok" };
            // The first is answered; whatever differs in one field runs on its own.
            world.insist(0, &ask(0, &ours, pay())).await;
            world.insist(0, &ask(0, &ours_too, pay())).await;
            world.insist(0, &ask(1, &theirs, pay())).await;
            let mut wrong = Vec::new();
            let orders = world.shop.orders().len();
            if orders != 3 {
                wrong.push(format!("{orders} orders for three sessions"));
            }
            for (caller, session, what) in
                [(1, &ours, pay()), (0, &theirs, pay()), (1, &ours, Asked::Cancel), (0, &ours, Asked::Cancel)]
            {
                let told = world.ask(0, &ask(caller, session, what.clone())).await.unwrap();
                let strange = caller == 1 && session == &ours || caller == 0 && session == &theirs;
                let text = told.json.to_string();
                if strange && text.contains(session.as_str()) || !strange && told.status == 200 {
                    wrong.push(format!("{caller} {what:?}: {} {}", told.status, told.json));
                }
            }
            // The same key with another body is told apart.
            let other = Ask { what: Asked::Complete { token: "other" }, ..ask(0, &ours, pay()) };
            let told = world.ask(0, &other).await.unwrap();
            if !(told.status == 409 || told.status == 422) {
                wrong.push(format!("another body: {} {}", told.status, told.json));
            }
            wrong.extend(finish(&mut world).await);
            (wrong, world.scheduler.trace())
        });
        tally.add(format!("{protocol:?}"), case);
    }
    tally.end();
}

/// Found at random: an order that was told as declined is paid after the state's clock was set. Nothing ends by time
/// until that clock is believed; then the session ends, and the order is found.
#[test]
fn t6_an_order_paid_while_a_clock_is_set_is_found_when_the_clock_is_believed() {
    let mut tally = Tally::new("T6, paid while a clock is set");
    for protocol in Protocol::BOTH {
        for (name, secs) in JUMPS {
            let (early, late, case) = simulate(Config::USUAL, |mut world| async move {
                world.start();
                let session = world.ready(0, protocol, "rose", false).await;
                world.shop.fates(&[Fate::DeclinedSilently]);
                world.ask(0, &complete(protocol, &session, "k1")).await;
                world.pass(3).await;
                world.memory.clock.jump(TimeDelta::seconds(secs));
                assert!(world.shop.buyer_pays(), "nothing to pay");
                world.pass(10).await;
                world.processes[0].clock.age(TimeDelta::hours(25));
                world.pass(30).await;
                let early = world.session(&session).status;
                world.processes[0].clock.age(TimeDelta::hours(-25));
                let wrong = finish(&mut world).await;
                (early, world.session(&session).status, (wrong, world.scheduler.trace()))
            });
            assert_eq!((early, late), (Status::Ready, Status::Completed), "{protocol:?}, {name}");
            tally.add(format!("{protocol:?}, {name}"), case);
        }
    }
    tally.end();
}
