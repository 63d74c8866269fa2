//! T12: each rule taken away. Some run must go wrong then, or the simulator would not notice its loss.
//!
//! | guard | taken away by | caught by |
//! |---|---|---|
//! | a key runs once | `claims: false` | two owners of one key |
//! | a living owner keeps its claim and its turn | `owners`, `turns: false` | two owners of one key, of one turn |
//! | a takeover moves the version on and leaves the cart (R3) | `takeover: false` | a sleeper's call on the new owner's cart |
//! | the session is read again in the turn (W11) | `versions: false` with it: the stale read is written | a second `POST`, or a lost order |
//! | a session is written only over what was read | `versions: false` | a placing that is overwritten |
//! | an outcome matches its attempt (W7, W10) | `attempts: false` | an order that no session has |
//! | an owner whose claim was taken over cannot end it (W9) | `fences: false` | two owners of one key |
//! | the claim of an attempt stays until that is settled (W15) | `attached: false` | a key that is answered twice |
//! | the fence at the shop (S3) | `swallows_fences` | a `POST` of before the fence makes an order |
//! | the self-fence (step 8) | `fences_by_age`, `fences_by_lease: false`, at a shop that swallows the other fence | an order of an attempt that was settled as lost |
//! | *placing* pins its units (W25) | `pins: false` | a product that is oversold |
//!
//! Claims, their owners and fences, and turns are told by the state alone: no run goes wrong without one of them, since
//! versions and attempts still stop the second one. They keep work and answers apart; they guard no order (R1).

use std::time::Duration;

use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::{ClaimEnd, Commit, NewClaim},
    },
    idempotency::{Decision, Fingerprint, Scope},
};

use super::{
    freezes::{Until, frozen},
    oracle::finish,
    schedule::{Phase, Rule, places},
    shop::Fate,
    state::Guards,
    world::{Ask, Config, Protocol, SHOP, World, simulate},
};

/// Whether any of these runs goes wrong; the first that does.
fn first_wrong(runs: impl Iterator<Item = (String, Option<(Vec<String>, String)>)>) -> Option<String> {
    let wrong = runs.filter_map(|(name, case)| Some((name, case?)));
    wrong
        .filter(|(_, (wrong, _))| !wrong.is_empty())
        .map(|(name, (wrong, _))| format!("{name}: {wrong:?}"))
        .next()
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "what noticed the loss")]
fn noticed(guard: &str, runs: impl Iterator<Item = (String, Option<(Vec<String>, String)>)>) {
    let found = first_wrong(runs);
    println!("T12, without {guard}: {}", found.as_deref().unwrap_or("nothing noticed"));
    assert!(found.is_some(), "without {guard} every run was right: nothing would notice its loss");
}

/// Freezes at every place.
fn freezes(
    config: Config,
    fates: &'static [Fate],
) -> impl Iterator<Item = (String, Option<(Vec<String>, String)>)> {
    let untils = [Until::OtherPlaces, Until::SameKey, Until::NewKey, Until::Settled, Until::SettledAndBought];
    let cases = fates.iter().flat_map(move |fate| {
        places().into_iter().flat_map(move |place| untils.map(|until| (*fate, place, until)))
    });
    cases.map(move |(fate, place, until)| {
        let case = simulate(config, |world| frozen(world, (place, 1), Protocol::Ucp, fate, until));
        (format!("{place}, {fate:?}, {until:?}"), case)
    })
}

const fn without(guards: Guards) -> Config {
    Config { guards, ..Config::USUAL }
}

/// How many of two living processes are told at the same time that a key, and that a session's turn, is theirs.
async fn owners_at_once(mut world: World) -> (usize, usize) {
    world.start();
    world.start();
    let (mut keys, mut turns) = (0, 0);
    let (shop, id) = (ShopId::new(SHOP), SessionId::new("session"));
    for process in &world.processes {
        let new = a_claim(&shop);
        keys += usize::from(matches!(process.state.claim(new).await.unwrap(), Decision::Run(_)));
        turns += usize::from(process.state.take_turn(&shop, &id).await.unwrap().is_some());
    }
    (keys, turns)
}

fn a_claim(shop: &ShopId) -> NewClaim {
    NewClaim {
        shop: shop.clone(),
        scope: Scope::of(SHOP, "caller", "complete", "session", "key"),
        fingerprint: Fingerprint::of(b"secret", b"{}"),
        session: None,
        keyed: true,
    }
}

#[test]
fn t12_without_the_claim_or_its_owner_check_a_key_runs_twice() {
    assert_eq!(simulate(Config::USUAL, owners_at_once), (1, 1));
    assert_eq!(simulate(without(Guards { claims: false, ..Guards::ALL }), owners_at_once), (2, 1));
    assert_eq!(simulate(without(Guards { owners: false, ..Guards::ALL }), owners_at_once), (2, 1));
}

#[test]
fn t12_without_the_owner_check_of_turns_two_work_on_one_session() {
    assert_eq!(simulate(without(Guards { turns: false, ..Guards::ALL }), owners_at_once), (1, 2));
}

#[test]
fn t12_without_the_bump_at_a_takeover_a_sleeper_goes_on() {
    noticed(
        "the bump at a takeover",
        freezes(without(Guards { takeover: false, ..Guards::ALL }), &[Fate::Paid, Fate::DeclinedNoisily]),
    );
}

#[test]
fn t12_without_the_version_a_sleeper_overwrites() {
    noticed(
        "the version",
        // Nor the pin, which by itself keeps a second order of the session back.
        freezes(
            without(Guards { versions: false, pins: false, ..Guards::ALL }),
            &[Fate::Paid, Fate::AnswerLost],
        ),
    );
}

#[test]
fn t12_without_the_attempt_match_a_sleeper_undoes_what_was_settled() {
    let config = without(Guards { attempts: false, ..Guards::ALL });
    noticed("the attempt match", freezes(config, &[Fate::DeclinedNoisily, Fate::Paid]));
}

/// How many are told at the same time that a key is theirs: its owner freezes, another takes it over, the first one
/// wakes and gives it back, a third one asks.
async fn owners_of_one_key(mut world: World) -> usize {
    for _ in 0..3 {
        world.start();
    }
    let shop = ShopId::new(SHOP);
    let claim = async |process: usize| {
        let new = a_claim(&shop);
        match world.processes[process].state.claim(new).await.unwrap() {
            Decision::Run(claim) => Some(claim),
            _ => None,
        }
    };
    let first = claim(0).await.unwrap();
    world.processes[0].life.turn(Phase::Frozen);
    world.pass(13).await;
    let second = claim(1).await;
    world.processes[0].life.turn(Phase::Running);
    let (shop, operation, claim_end) = (shop.clone(), "late".to_owned(), ClaimEnd::Release(first));
    let late =
        Commit { shop, operation, session: None, claim: claim_end, sightings: Vec::new(), stock: None };
    drop(world.processes[0].state.commit(late).await);
    usize::from(second.is_some()) + usize::from(claim(2).await.is_some())
}

#[test]
fn t12_without_the_claims_fence_a_sleeper_frees_anothers_key() {
    assert_eq!(simulate(Config::USUAL, owners_of_one_key), 1);
    assert_eq!(simulate(without(Guards { fences: false, ..Guards::ALL }), owners_of_one_key), 2);
}

#[test]
fn t12_without_the_tie_to_its_attempt_a_key_starts_anew() {
    noticed(
        "the tie to the attempt",
        freezes(without(Guards { attached: false, ..Guards::ALL }), &[Fate::Paid, Fate::AnswerLost]),
    );
}

#[test]
fn t12_without_the_fence_at_the_shop_a_late_post_buys() {
    let config = Config { swallows_fences: true, ..Config::USUAL };
    noticed("the fence at the shop", freezes(config, &[Fate::Paid, Fate::Queued]));
}

/// The reread: the session that a process got before it had the turn is given to it once more afterwards.
#[test]
fn t12_without_the_reread_a_second_key_works_on_a_session_that_is_placing() {
    // Without the pin, which by itself keeps a second order of the session back.
    let config = Config { stale_reads: true, ..without(Guards { pins: false, ..Guards::ALL }) };
    let cases = Protocol::BOTH
        .into_iter()
        .flat_map(|protocol| ["claimed", "turn", "checked", "before_p"].map(|place| (protocol, place)));
    noticed(
        "the reread",
        cases.map(|(protocol, place)| {
            let case = simulate(config, |world| queued_behind(world, protocol, place));
            (format!("{protocol:?}, {place}"), Some(case))
        }),
    );
}

/// Two completions in one process: the second waits for the turn while the first one is held at a place.
async fn queued_behind(mut world: World, protocol: Protocol, place: &'static str) -> (Vec<String>, String) {
    world.start();
    let session = world.ready(0, protocol, "rose", false).await;
    let (first, second) =
        (super::kills::complete(protocol, &session, "k1"), super::kills::complete(protocol, &session, "k2"));
    world.scheduler.arm(Rule { process: 0, place, visit: 1, phase: Phase::Frozen });
    let first = world.send(0, &first);
    world.pass(1).await;
    let second = world.send(0, &second);
    world.pass(1).await;
    world.processes[0].life.turn(Phase::Running);
    drop((first.await, second.await));
    let wrong = finish(&mut world).await;
    (wrong, world.scheduler.trace())
}

/// With every guard in place the same runs are right: what is noticed above is the guard, not the run.
#[test]
fn t12_with_every_guard_the_same_runs_are_right() {
    let runs = freezes(Config::USUAL, &[Fate::Paid, Fate::DeclinedNoisily]).chain(
        Protocol::BOTH.into_iter().flat_map(|protocol| {
            ["claimed", "turn", "checked", "before_p"].map(|place| {
                (
                    place.to_owned(),
                    Some(simulate(Config::USUAL, |world| queued_behind(world, protocol, place))),
                )
            })
        }),
    );
    assert_eq!(first_wrong(runs), None);
}

/// A sleeper between *placing* and its `POST`, at a shop whose cart nobody could empty meanwhile.
fn sleepers(config: Config) -> impl Iterator<Item = (String, Option<(Vec<String>, String)>)> {
    let untils =
        [Until::LeaseOver, Until::Settled, Until::NewKey, Until::OtherPlaces, Until::SettledAndBought];
    let cases =
        ["p_written", "after_p"].into_iter().flat_map(move |place| untils.map(|until| (place, until)));
    let cases = cases.flat_map(|case| Protocol::BOTH.map(|protocol| (case, protocol)));
    cases.map(move |((place, until), protocol)| {
        let case = simulate(config, |world| frozen(world, (place, 1), protocol, Fate::Paid, until));
        (format!("{place}, {protocol:?}, {until:?}"), case)
    })
}

#[test]
fn t12_without_the_self_fence_a_sleeper_sends_what_was_settled_as_lost() {
    let with = Config { swallows_fences: true, ..Config::USUAL };
    assert_eq!(first_wrong(sleepers(with)), None, "the self-fence alone stops the sleeper");
    // The age alone does, too; a lease alone does not: it is renewed before the sleeper looks at it.
    let by_age = Config { fences_by_lease: false, ..with };
    assert_eq!(first_wrong(sleepers(by_age)), None);
    noticed("the age of the self-fence", sleepers(Config { fences_by_age: false, ..with }));
    let neither = Config { fences_by_age: false, ..by_age };
    noticed("the self-fence", sleepers(neither));
}

/// Two agents and the last unit. The payment of the first one takes longer than units are held without an attempt;
/// the second one asks so long after it, near its end, when the shop has it paid and not counted down yet.
async fn last_unit(mut world: World, after: Duration) -> (Vec<String>, String) {
    world.start();
    world.start();
    world.shop.books().stock.insert("11".into(), 1);
    let first = world.ready_for(0, Protocol::Acp, 0, "rose", 1, false).await;
    let second = world.ready_for(1, Protocol::Acp, 1, "rose", 1, false).await;
    world.shop.fates(&[Fate::Slow]);
    let first = world.send(0, &super::kills::complete(Protocol::Acp, &first, "k1"));
    tokio::time::sleep(after).await;
    let ask = super::kills::complete(Protocol::Acp, &second, "k2");
    let second = world.send(1, &Ask { caller: 1, ..ask });
    drop((first.await, second.await));
    let wrong = finish(&mut world).await;
    (wrong, world.scheduler.trace())
}

fn last_units(config: Config) -> impl Iterator<Item = (String, Option<(Vec<String>, String)>)> {
    (0..100_u64).map(move |step| {
        let after = Duration::from_millis(99_000 + 20 * step);
        (format!("{after:?}"), Some(simulate(config, |world| last_unit(world, after))))
    })
}

#[test]
fn t12_without_the_pin_the_last_unit_is_sold_twice() {
    assert_eq!(first_wrong(last_units(Config::USUAL)), None);
    noticed("the pin", last_units(without(Guards { pins: false, ..Guards::ALL })));
}
