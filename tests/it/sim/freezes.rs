//! T2: a process is stopped at every place, as by `SIGSTOP`, another goes on, and then it wakes.

use std::time::Duration;

use super::{
    kills::complete,
    oracle::{Tally, finish, is_open},
    schedule::{Phase, Rule, places},
    shop::Fate,
    world::{Config, Protocol, World, simulate},
};

/// When it wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Before anybody takes it for dead.
    Briefly,
    /// Its lease is over; nobody has looked yet but the settler.
    LeaseOver,
    /// Another process has answered the same request.
    SameKey,
    /// Another process has answered a request with a new key.
    NewKey,
    /// Another process has just sent its `POST`, with a new key.
    OtherPlaces,
    /// Its attempt is settled.
    Settled,
    /// Another process has settled it and then placed an order with a new key.
    SettledAndBought,
}

const UNTIL: [Until; 7] = [
    Until::Briefly,
    Until::LeaseOver,
    Until::SameKey,
    Until::NewKey,
    Until::OtherPlaces,
    Until::Settled,
    Until::SettledAndBought,
];

/// `None`: the place is never reached.
pub async fn frozen(
    mut world: World,
    (place, visit): (&'static str, usize),
    protocol: Protocol,
    fate: Fate,
    until: Until,
) -> Option<(Vec<String>, String)> {
    world.start();
    world.start();
    let session = world.ready(0, protocol, "rose", fate == Fate::CouponGone).await;
    world.shop.fates(&[fate]);
    world.scheduler.arm(Rule { process: 0, place, visit, phase: Phase::Frozen });
    let first = complete(protocol, &session, "k1");
    let sleeping = world.send(0, &first);
    for _ in 0..150 {
        if world.scheduler.struck() || (sleeping.is_finished() && !is_open(&world.session(&session))) {
            break;
        }
        world.pass(1).await;
    }
    if !world.scheduler.struck() {
        return None;
    }
    let settled = async || {
        world.pass(13).await;
        for _ in 0..150 {
            if !is_open(&world.session(&session)) {
                break;
            }
            world.pass(1).await;
        }
    };
    match until {
        Until::Briefly => world.pass(3).await,
        Until::LeaseOver => world.pass(13).await,
        Until::SameKey => drop(world.insist(1, &first).await),
        Until::NewKey => drop(world.insist(1, &complete(protocol, &session, "k2")).await),
        Until::OtherPlaces => {
            world.pass(13).await;
            let posts = world.shop.books().posts;
            drop(world.send(1, &complete(protocol, &session, "k2")));
            for _ in 0..100 {
                if world.shop.books().posts > posts {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Until::Settled => settled().await,
        Until::SettledAndBought => {
            settled().await;
            drop(world.insist(1, &complete(protocol, &session, "k2")).await);
        }
    }
    world.scheduler.note("  it wakes");
    world.processes[0].life.turn(Phase::Running);
    drop(sleeping.await);
    // Whoever is told nothing final asks again.
    let stuck = world.insist(0, &first).await.is_none();
    let mut wrong = finish(&mut world).await;
    if stuck && world.session(&session).attempt.is_none() {
        wrong.push("no final answer for a quarter of an hour".into());
    }
    Some((wrong, world.scheduler.trace()))
}

fn freeze_everywhere(test: &'static str, fates: &[Fate], untils: &[Until]) {
    let mut tally = Tally::new(test);
    for fate in fates {
        for (number, place) in places().into_iter().enumerate() {
            for (at, until) in untils.iter().copied().enumerate() {
                // The protocols share all of this: each case in one of them, by turns.
                let protocol = Protocol::BOTH[(number + at) % 2];
                let case = simulate(Config::USUAL, |world| frozen(world, (place, 1), protocol, *fate, until));
                if let Some(case) = case {
                    tally.add(format!("{place}, {fate:?}, {protocol:?}, {until:?}"), case);
                }
            }
        }
    }
    tally.end();
}

#[test]
fn t2_frozen_anywhere_while_the_shop_decides_at_once() {
    freeze_everywhere("T2, decided at once", &Fate::ALL[..5], &UNTIL);
}

#[test]
fn t2_frozen_anywhere_while_the_shop_refuses_or_loses_the_answer() {
    freeze_everywhere("T2, refused or lost", &Fate::ALL[5..10], &UNTIL);
}

#[test]
fn t2_frozen_anywhere_while_the_shop_is_late() {
    let untils = [Until::LeaseOver, Until::SameKey, Until::OtherPlaces, Until::SettledAndBought];
    freeze_everywhere("T2, late", &Fate::ALL[10..], &untils);
}

/// Found by T2: it said what the session was by then, and the same key, free again, was told something else later.
#[test]
fn t2_a_sleeper_whose_key_is_free_again_says_nothing_final() {
    let mut tally = Tally::new("T2, the key is free again");
    for place in ["after_p", "before_send"] {
        for until in [Until::NewKey, Until::Settled, Until::SettledAndBought] {
            for protocol in Protocol::BOTH {
                let case =
                    simulate(Config::USUAL, |world| frozen(world, (place, 1), protocol, Fate::Paid, until));
                tally.add(format!("{place}, {protocol:?}, {until:?}"), case.unwrap());
            }
        }
    }
    tally.end();
}

/// It closed the attempt of the other one, which had the same number, and a paid order was nobody's.
#[test]
fn t2_who_could_not_store_placing_takes_back_nothing_of_anothers() {
    let mut tally = Tally::new("T2, another's attempt");
    for place in ["reread", "checked", "before_p"] {
        for protocol in Protocol::BOTH {
            let case = simulate(Config::USUAL, |world| {
                frozen(world, (place, 1), protocol, Fate::Paid, Until::OtherPlaces)
            });
            tally.add(format!("{place}, {protocol:?}"), case.unwrap());
        }
    }
    tally.end();
}

/// *placing* stands, but its process was told so by nobody and sends nothing: it takes the attempt back at once, and
/// the same key buys without waiting for the settler.
#[test]
fn t2_placing_that_stands_without_a_reply_is_taken_back() {
    for protocol in Protocol::BOTH {
        let (told, open, posts, again, wrong) = simulate(Config::USUAL, |mut world| async move {
            world.start();
            let session = world.ready(0, protocol, "rose", false).await;
            let first = complete(protocol, &session, "k1");
            let rule = Rule { process: 0, place: "before_p", visit: 1, phase: Phase::Frozen };
            world.scheduler.arm(rule);
            let asked = world.send(0, &first);
            world.pass(1).await;
            assert!(world.scheduler.struck());
            // The commit's own, and the one of reading it back.
            world.memory.lose_replies(2);
            world.processes[0].life.turn(Phase::Running);
            let told = asked.await.unwrap().map(|told| told.status);
            let open = world.session(&session).attempt.is_some();
            let posts = world.shop.books().posts;
            let again = world.ask(0, &first).await;
            let again = again.map(|told| (told.status, told.text("status").to_owned()));
            (told, open, posts, again, finish(&mut world).await)
        });
        assert_eq!((told, posts), (Some(503), 0), "{protocol:?}");
        assert!(!open, "{protocol:?}: the attempt is left to the settler");
        assert_eq!(again.map(|(_, status)| status).as_deref(), Some("completed"), "{protocol:?}");
        assert_eq!(wrong, Vec::<String>::new(), "{protocol:?}");
    }
}
