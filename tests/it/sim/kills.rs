//! T1: a process is killed at every place, for every fate of its `POST`, and then somebody goes on or nobody.

use super::{
    oracle::{Tally, finish, is_open},
    schedule::{Phase, Rule, places},
    shop::Fate,
    world::{Ask, Asked, Config, Protocol, World, simulate},
};

/// What happens after the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The same request at the restarted process.
    SameKey,
    /// A new key there.
    NewKey,
    /// The same request, at once, at a process that runs beside it.
    OtherProcess,
    Nothing,
}

const THEN: [Then; 4] = [Then::SameKey, Then::NewKey, Then::OtherProcess, Then::Nothing];

pub fn complete(protocol: Protocol, session: &str, key: &str) -> Ask {
    Ask {
        protocol,
        caller: 0,
        key: Some(key.to_owned()),
        session: Some(session.to_owned()),
        what: Asked::Complete { token: "tok" },
    }
}

/// `None`: the place is never reached.
async fn killed(
    mut world: World,
    (place, visit): (&'static str, usize),
    protocol: Protocol,
    fate: Fate,
    then: Then,
) -> Option<(Vec<String>, String)> {
    world.start();
    if then == Then::OtherProcess {
        world.start();
    }
    let session = world.ready(0, protocol, "rose", fate == Fate::CouponGone).await;
    world.shop.fates(&[fate]);
    world.scheduler.arm(Rule { process: 0, place, visit, phase: Phase::Dead });
    let first = complete(protocol, &session, "k1");
    world.ask(0, &first).await;
    while !world.scheduler.struck() && is_open(&world.session(&session)) {
        world.pass(1).await;
    }
    if !world.scheduler.struck() {
        return None;
    }
    let ask = if then == Then::NewKey { complete(protocol, &session, "k2") } else { first };
    let mut stuck = false;
    if then != Then::Nothing {
        let process = if then == Then::OtherProcess { 1 } else { world.start() };
        stuck = world.insist(process, &ask).await.is_none();
    }
    let mut wrong = finish(&mut world).await;
    if stuck && world.session(&session).attempt.is_none() {
        wrong.push("no final answer for a quarter of an hour".into());
    }
    Some((wrong, world.scheduler.trace()))
}

fn kill_everywhere(test: &'static str, fates: &[Fate], by_turns: bool) {
    let mut tally = Tally::new(test);
    for fate in fates {
        for place in places() {
            for protocol in Protocol::BOTH {
                for (at, then) in THEN.into_iter().enumerate() {
                    // Where the shop is late a case takes long: each in one protocol, by turns.
                    if by_turns && Protocol::BOTH[at % 2] != protocol {
                        continue;
                    }
                    // A settler comes by more than once.
                    for visit in 1..=(if place.starts_with("settle") { 2 } else { 1 }) {
                        let case = simulate(Config::USUAL, |world| {
                            killed(world, (place, visit), protocol, *fate, then)
                        });
                        let Some(case) = case else { break };
                        tally.add(format!("{place} ({visit}), {fate:?}, {protocol:?}, {then:?}"), case);
                    }
                }
            }
        }
    }
    tally.end();
}

#[test]
fn t1_killed_anywhere_while_the_shop_decides_at_once() {
    kill_everywhere("T1, decided at once", &Fate::ALL[..5], false);
}

#[test]
fn t1_killed_anywhere_while_the_shop_refuses_or_loses_the_answer() {
    kill_everywhere("T1, refused or lost", &Fate::ALL[5..10], false);
}

#[test]
fn t1_killed_anywhere_while_the_shop_is_late() {
    kill_everywhere("T1, late", &Fate::ALL[10..], true);
}
