//! The cases about stock (`exactly-once.md` §7): holds, bounds, the gate, pins and closings.

use std::sync::Arc;

use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::{ClaimEnd, Commit, Error, Expect, State, StockStep, StockTurn},
    },
    clock::Ids,
    idempotency::Claim,
    stock::{
        Close, MOST_WAITING, Reading, Reserve, Reserved, Shelf, Shortage, Source, Stage, StockId, Units,
        Upper,
    },
};

use super::{Backend, scope, session};

pub(super) const MINUTE: i64 = 60_000;
const DECLINED: Close = Close::Declined { hold_ms: 10 * MINUTE, shop_keeps: false };

pub(super) fn shop() -> ShopId {
    ShopId::new("flower")
}

pub(super) fn units(of: &[(&str, u32)]) -> Vec<Units> {
    of.iter().map(|(stock, quantity)| Units { stock: StockId::new(*stock), quantity: *quantity }).collect()
}

/// A number of wc/v3, for both bounds.
fn books(stock: &str, number: i64, from: u64) -> Reading {
    Reading {
        stock: StockId::new(stock),
        upper: Upper::Number(number),
        lower: Some(number),
        takes_off_pending: false,
        source: Source::WcV3,
        from,
    }
}

/// What the Store API tells: `maximum`, and what is left when that is little.
fn window(stock: &str, left: Option<i64>, maximum: i64, from: u64) -> Reading {
    Reading {
        stock: StockId::new(stock),
        upper: left.map_or(Upper::Untold, Upper::Number),
        lower: Some(maximum),
        takes_off_pending: true,
        source: Source::Shop,
        from,
    }
}

/// Tells what is there at most, and nothing of the least.
async fn at_most(state: &dyn State, stock: &str, number: i64) {
    let from = mark(state).await;
    observe(state, Reading { lower: None, ..books(stock, number, from) }).await;
}

async fn mark(state: &dyn State) -> u64 {
    state.observe(&shop(), Vec::new()).await.unwrap()
}

async fn observe(state: &dyn State, reading: Reading) -> u64 {
    state.observe(&shop(), vec![reading]).await.unwrap()
}

async fn ask(state: &dyn State, session: &str, of: &[(&str, u32)], hold_ms: i64, enter: bool) -> Reserved {
    let wish = Reserve { session: session.into(), units: units(of), hold_ms, enter };
    state.reserve(&shop(), wish).await.unwrap()
}

async fn hold(state: &dyn State, session: &str, of: &[(&str, u32)]) -> Reserved {
    ask(state, session, of, MINUTE, false).await
}

async fn enter(state: &dyn State, session: &str, of: &[(&str, u32)]) -> Reserved {
    ask(state, session, of, MINUTE, true).await
}

async fn give_back(state: &dyn State, session: &str, of: &[(&str, u32)]) {
    state.give_back(&shop(), &SessionId::new(session), units(of)).await.unwrap();
}

pub(super) fn of_stock(session: &str, units: Vec<Units>, turn: StockTurn) -> Commit {
    Commit {
        shop: shop(),
        operation: Ids.uuid(),
        session: None,
        claim: ClaimEnd::Keep,
        sightings: Vec::new(),
        stock: Some(StockStep { session: SessionId::new(session), units, turn }),
    }
}

async fn turn(state: &dyn State, session: &str, of: &[(&str, u32)], turn: StockTurn) -> Result<u64, Error> {
    state.commit(of_stock(session, units(of), turn)).await
}

async fn pin(state: &dyn State, session: &str, of: &[(&str, u32)]) -> Result<u64, Error> {
    turn(state, session, of, StockTurn::Pin(Vec::new())).await
}

async fn close(state: &dyn State, session: &str, of: &[(&str, u32)], how: Close) {
    turn(state, session, of, StockTurn::Close(how)).await.unwrap();
}

/// Opens an attempt.
async fn open(state: &dyn State, session: &str, of: &[(&str, u32)]) {
    assert!(is_in(&enter(state, session, of).await));
    pin(state, session, of).await.unwrap();
}

async fn shelf(state: &dyn State, stock: &str) -> Shelf {
    let id = StockId::new(stock);
    state.shelves(&shop(), Some(std::slice::from_ref(&id))).await.unwrap().remove(&id).unwrap_or_default()
}

async fn stage(state: &dyn State, stock: &str, session: &str) -> Option<Stage> {
    shelf(state, stock).await.members.get(session).map(|member| member.stage)
}

const fn is_in(told: &Reserved) -> bool {
    matches!(told, Reserved::Admitted { .. })
}

fn refused(stock: &str, reason: Shortage) -> Reserved {
    Reserved::Refused { stock: StockId::new(stock), reason }
}

pub(super) async fn all_lines_are_held_or_none(backend: &impl Backend) {
    let state = &*backend.open().await;
    at_most(state, "a", 5).await;
    at_most(state, "b", 0).await;
    let told = hold(state, "one", &[("a", 2), ("b", 1)]).await;
    assert_eq!(told, refused("b", Shortage::SoldOut));
    assert_eq!(stage(state, "a", "one").await, None, "nothing of it is held");
    at_most(state, "b", 1).await;
    assert!(is_in(&hold(state, "one", &[("a", 2), ("b", 1)]).await));
    assert_eq!(shelf(state, "a").await.upper_bound("two"), Some(3));
    // A later refusal gives back what was held.
    assert_eq!(hold(state, "one", &[("a", 2), ("b", 2)]).await, refused("b", Shortage::Left(1)));
    assert_eq!(stage(state, "a", "one").await, None);
    let known: Vec<StockId> = state.shelves(&shop(), None).await.unwrap().into_keys().collect();
    assert_eq!(known, [StockId::new("a"), StockId::new("b")]);
}

pub(super) async fn a_hold_is_its_sessions_own_and_ends(backend: &impl Backend) {
    let state = &*backend.open().await;
    at_most(state, "a", 1).await;
    assert!(is_in(&hold(state, "one", &[("a", 1)]).await));
    let until = shelf(state, "a").await.members["one"].at;
    assert!(
        is_in(&ask(state, "one", &[("a", 1)], 9 * MINUTE, false).await),
        "its own never counts against it"
    );
    let later = shelf(state, "a").await.members["one"].at;
    assert!(later >= until + 8 * MINUTE, "the same hold, for longer");
    assert!(is_in(&hold(state, "one", &[("a", 1)]).await));
    assert_eq!(shelf(state, "a").await.members["one"].at, later, "and never for shorter");
    let told = hold(state, "two", &[("a", 1)]).await;
    assert!(
        matches!(told, Reserved::Refused { reason: Shortage::Held { retry_secs: 530..=540 }, .. }),
        "{told:?}"
    );
    give_back(state, "one", &[("a", 1)]).await;
    assert!(is_in(&ask(state, "two", &[("a", 1)], 0, false).await));
    assert!(is_in(&hold(state, "three", &[("a", 1)]).await), "a hold lapses");
}

/// D6: with a second live hold on the item, so that no floor at zero hides it.
pub(super) async fn giving_back_twice_frees_nothing_of_others(backend: &impl Backend) {
    let state = backend.open().await;
    at_most(&*state, "a", 10).await;
    let many = (0..100).map(|session| {
        let state = Arc::clone(&state);
        async move { hold(&*state, &format!("s{session}"), &[("a", 1)]).await }
    });
    let told = futures::future::join_all(many).await;
    assert_eq!(told.iter().filter(|told| is_in(told)).count(), 10, "no more than there are");
    let state = &*state;
    let holder = shelf(state, "a").await.members.keys().next().unwrap().clone();
    for _ in 0..2 {
        give_back(state, &holder, &[("a", 1)]).await;
        turn(state, &holder, &[("a", 1)], StockTurn::Release).await.unwrap();
    }
    assert_eq!(shelf(state, "a").await.members.len(), 9);
    assert_eq!(shelf(state, "a").await.upper_bound(""), Some(1));
}

pub(super) async fn a_refusal_says_why(backend: &impl Backend) {
    let state = &*backend.open().await;
    at_most(state, "a", 3).await;
    assert_eq!(hold(state, "one", &[("a", 4)]).await, refused("a", Shortage::Left(3)));
    open(state, "one", &[("a", 2)]).await;
    let paying = Shortage::Held { retry_secs: 5 };
    assert_eq!(hold(state, "two", &[("a", 3)]).await, refused("a", paying), "it is being paid for");
    close(state, "one", &[("a", 2)], Close::Kept).await;
    let unpaid = Shortage::Held { retry_secs: 60 };
    assert_eq!(hold(state, "two", &[("a", 2)]).await, refused("a", unpaid), "it waits to be paid");
    close(state, "one", &[("a", 2)], Close::Sold).await;
    assert_eq!(hold(state, "two", &[("a", 2)]).await, refused("a", Shortage::Left(1)), "sold");
    assert!(is_in(&hold(state, "two", &[("a", 1)]).await));
    at_most(state, "a", 0).await;
    assert_eq!(hold(state, "three", &[("a", 1)]).await, refused("a", Shortage::SoldOut));
}

pub(super) async fn only_what_never_lies_low_refuses(backend: &impl Backend) {
    let state = &*backend.open().await;
    assert!(is_in(&hold(state, "one", &[("a", 1000)]).await), "nothing is known: nothing is refused");
    observe(state, window("b", None, 6, 0)).await;
    assert!(is_in(&hold(state, "one", &[("b", 7)]).await), "a limit for each order is no stock of so many");
    observe(state, window("c", Some(0), 0, 0)).await;
    assert_eq!(hold(state, "one", &[("c", 1)]).await, refused("c", Shortage::SoldOut));
    observe(state, window("c", None, 6, 0)).await;
    assert!(is_in(&hold(state, "one", &[("c", 1)]).await), "what a source tells no more holds no more");
    observe(state, books("d", 0, 0)).await;
    observe(state, window("d", None, 6, 0)).await;
    assert_eq!(
        hold(state, "one", &[("d", 1)]).await,
        refused("d", Shortage::SoldOut),
        "the other source's stays"
    );
}

pub(super) async fn orders_run_in_parallel_while_they_are_covered(backend: &impl Backend) {
    let state = &*backend.open().await;
    observe(state, books("a", 3, 0)).await;
    for session in ["one", "two", "three"] {
        assert!(is_in(&enter(state, session, &[("a", 1)]).await), "{session} is covered");
    }
    for session in ["one", "two", "three"] {
        pin(state, session, &[("a", 1)]).await.unwrap();
    }
    // Unknown below: one at a time.
    assert!(is_in(&enter(state, "one", &[("b", 1)]).await));
    assert_eq!(enter(state, "two", &[("b", 1)]).await, Reserved::Waiting { ahead: 0 });
    pin(state, "one", &[("b", 1)]).await.unwrap();
    assert_eq!(enter(state, "two", &[("b", 1)]).await, Reserved::Waiting { ahead: 0 }, "a payment runs");
    close(state, "one", &[("b", 1)], Close::Kept).await;
    assert!(is_in(&enter(state, "two", &[("b", 1)]).await), "no `POST` runs any more");
}

pub(super) async fn those_that_wait_go_in_the_order_of_their_tickets(backend: &impl Backend) {
    let state = &*backend.open().await;
    open(state, "runs", &[("a", 1)]).await;
    let both = [("a", 1), ("b", 1)];
    assert_eq!(enter(state, "basket", &both).await, Reserved::Waiting { ahead: 0 });
    assert_eq!(
        enter(state, "late", &[("b", 1)]).await,
        Reserved::Waiting { ahead: 1 },
        "nobody overtakes a basket"
    );
    assert_eq!(enter(state, "later", &[("b", 1), ("a", 1)]).await, Reserved::Waiting { ahead: 2 });
    // Enough for all of `b` comes: still in turn.
    observe(state, books("b", 9, 0)).await;
    assert_eq!(enter(state, "late", &[("b", 1)]).await, Reserved::Waiting { ahead: 1 });
    close(state, "runs", &[("a", 1)], DECLINED).await;
    assert_eq!(enter(state, "later", &[("b", 1), ("a", 1)]).await, Reserved::Waiting { ahead: 2 });
    assert!(is_in(&enter(state, "basket", &both).await));
    assert!(is_in(&enter(state, "late", &[("b", 1)]).await), "first now, and covered");
    assert_eq!(enter(state, "later", &[("b", 1), ("a", 1)]).await, Reserved::Waiting { ahead: 0 });
    give_back(state, "basket", &both).await;
    assert!(is_in(&enter(state, "later", &[("b", 1), ("a", 1)]).await));
}

pub(super) async fn a_queue_is_bounded(backend: &impl Backend) {
    let state = &*backend.open().await;
    open(state, "runs", &[("a", 1)]).await;
    for ahead in 0..MOST_WAITING {
        let told = enter(state, &format!("s{ahead}"), &[("a", 1)]).await;
        assert_eq!(told, Reserved::Waiting { ahead });
    }
    assert_eq!(enter(state, "late", &[("a", 1)]).await, Reserved::Full);
    assert_eq!(stage(state, "a", "late").await, None, "it holds nothing");
    assert_eq!(
        enter(state, "s3", &[("a", 1)]).await,
        Reserved::Waiting { ahead: 3 },
        "who waits keeps its place"
    );
}

pub(super) async fn what_a_dead_process_was_about_to_do_is_void(backend: &impl Backend) {
    let state = backend.open().await;
    open(&*state, "pays", &[("b", 1)]).await;
    assert!(is_in(&enter(&*state, "admitted", &[("a", 1)]).await));
    assert!(matches!(enter(&*state, "waits", &[("a", 1)]).await, Reserved::Waiting { .. }));
    drop(state);
    backend.bury().await;
    let state = &*backend.open().await;
    assert!(is_in(&enter(state, "next", &[("a", 1)]).await), "neither is in its way");
    assert!(matches!(pin(state, "admitted", &[("a", 1)]).await, Err(Error::NotAdmitted)));
    assert_eq!(enter(state, "other", &[("b", 1)]).await, Reserved::Waiting { ahead: 0 }, "a payment may run");
    assert_eq!(stage(state, "b", "pays").await, Some(Stage::Open));
}

pub(super) async fn a_pin_needs_an_admission(backend: &impl Backend) {
    let state = &*backend.open().await;
    let pinned = |told: Result<u64, Error>| match told {
        Ok(_) => true,
        Err(Error::NotAdmitted) => false,
        Err(other) => panic!("{other}"),
    };
    observe(state, books("a", 2, 0)).await;
    assert!(!pinned(pin(state, "one", &[("a", 1)]).await), "it never asked");
    assert!(is_in(&hold(state, "one", &[("a", 1)]).await));
    assert!(!pinned(pin(state, "one", &[("a", 1)]).await), "it only holds");
    assert!(is_in(&enter(state, "one", &[("a", 1)]).await));
    assert!(!pinned(pin(state, "one", &[("a", 2)]).await), "not to so many");
    assert!(is_in(&enter(state, "two", &[("a", 1)]).await));
    pin(state, "one", &[("a", 1)]).await.unwrap();
    // The look before the order says: too little for both.
    let before = state.shelves(&shop(), None).await.unwrap();
    let from = mark(state).await;
    let look = vec![Reading { lower: Some(0), ..window("a", Some(0), 0, from) }];
    assert!(!pinned(turn(state, "two", &[("a", 1)], StockTurn::Pin(look)).await));
    assert_eq!(state.shelves(&shop(), None).await.unwrap(), before, "nothing of it stands");
    let told = ask(state, "gone", &[("b", 1)], 0, true).await;
    assert!(is_in(&told));
    assert!(!pinned(pin(state, "gone", &[("b", 1)]).await), "an admission ends with its time");
}

pub(super) async fn a_commit_that_fails_changes_no_shelf(backend: &impl Backend) {
    let state = &*backend.open().await;
    let one = session().await;
    assert!(is_in(&enter(state, "one", &[("a", 1)]).await));
    let before = state.shelves(&shop(), None).await.unwrap();
    let pins = || of_stock("one", units(&[("a", 1)]), StockTurn::Pin(vec![books("a", 7, 0)]));
    let moved = Commit { session: Some((one, Expect::Version(7))), ..pins() };
    assert!(matches!(state.commit(moved).await, Err(Error::Moved)));
    let gone = Claim { scope: scope("nobody"), fence: 1, keyed: true };
    let lost = Commit { claim: ClaimEnd::Release(gone), ..pins() };
    assert!(matches!(state.commit(lost).await, Err(Error::ClaimLost)));
    assert_eq!(state.shelves(&shop(), None).await.unwrap(), before);
    assert_eq!(mark(state).await, 0, "nor the sequence");
    state.commit(pins()).await.unwrap();
    assert_eq!(stage(state, "a", "one").await, Some(Stage::Open));
}

pub(super) async fn an_attempt_is_closed_in_each_way_and_once(backend: &impl Backend) {
    let state = &*backend.open().await;
    observe(state, books("a", 9, 0)).await;
    let one = [("a", 1)];
    let silently = Close::Declined { hold_ms: 10 * MINUTE, shop_keeps: true };
    let ways = [
        ("sold", Close::Sold, Some(Stage::Sold)),
        ("kept", Close::Kept, Some(Stage::Kept)),
        ("noisily", DECLINED, Some(Stage::Soft)),
        ("silently", silently, Some(Stage::Soft)),
        ("released", Close::Released, None),
    ];
    for (session, how, after) in ways {
        open(state, session, &one).await;
        close(state, session, &one, how).await;
        assert_eq!(stage(state, "a", session).await, after, "{session}");
        let closed = (shelf(state, "a").await.members, mark(state).await);
        close(state, session, &one, how).await;
        assert_eq!((shelf(state, "a").await.members, mark(state).await), closed, "{session}, twice");
        give_back(state, "other", &one).await;
    }
    assert_eq!(shelf(state, "a").await.upper_bound(""), Some(5), "sold, kept and two held");
    assert!(is_in(&enter(state, "noisily", &one).await), "the same buyer may pay at once");
    close(state, "kept", &one, Close::Sold).await;
    close(state, "late", &one, Close::Sold).await;
    assert_eq!(stage(state, "a", "late").await, Some(Stage::Sold), "an order that was found late");
    close(state, "sold", &one, Close::Released).await;
    assert_eq!(stage(state, "a", "sold").await, Some(Stage::Sold), "what is sold stays sold");
}

pub(super) async fn a_sale_counts_until_a_clean_reading_knows_of_it(backend: &impl Backend) {
    let state = &*backend.open().await;
    observe(state, books("a", 5, 0)).await;
    let begun = mark(state).await;
    open(state, "one", &[("a", 2)]).await;
    let bounds = async || {
        let shelf = shelf(state, "a").await;
        (
            shelf.upper_bound("").unwrap(),
            shelf.lower.map(|count| shelf.lower_bound("", count.at).unwrap()).unwrap(),
        )
    };
    assert_eq!(bounds().await, (3, 3));
    // During the order, with or without it: the lower bound may not rise, nor the upper.
    observe(state, books("a", 5, begun)).await;
    assert_eq!(bounds().await, (3, 3), "a dirty reading never raises");
    let during = mark(state).await;
    close(state, "one", &[("a", 2)], Close::Sold).await;
    observe(state, books("a", 5, during)).await;
    assert_eq!(bounds().await, (3, 3), "begun before the sale was over");
    observe(state, books("a", 3, during)).await;
    assert_eq!(bounds().await, (3, 3));
    let clean = mark(state).await;
    observe(state, books("a", 3, clean)).await;
    assert_eq!(bounds().await, (3, 3), "the same, by the new count alone");
    assert_eq!(shelf(state, "a").await.upper.unwrap().number, 3);
    observe(state, books("a", 8, clean)).await;
    assert_eq!(bounds().await.0, 8, "a restock");
    open(state, "two", &[("a", 1)]).await;
    observe(state, books("a", 4, clean)).await;
    assert_eq!(bounds().await.0, 4, "a dirty one may lower");
}

pub(super) async fn a_lost_reply_of_a_stock_step_is_read_back(backend: &impl Backend) {
    let state = &*backend.open().await;
    assert!(is_in(&enter(state, "one", &[("a", 1)]).await));
    let pins = of_stock("one", units(&[("a", 1)]), StockTurn::Pin(Vec::new()));
    state.commit(pins.clone()).await.unwrap();
    state.commit(pins).await.unwrap();
    let sold = of_stock("late", units(&[("a", 1)]), StockTurn::Close(Close::Sold));
    state.commit(sold.clone()).await.unwrap();
    let after = (state.shelves(&shop(), None).await.unwrap(), mark(state).await);
    state.commit(sold).await.unwrap();
    assert_eq!((state.shelves(&shop(), None).await.unwrap(), mark(state).await), after, "not taken twice");
}

/// The reply to an admission may be lost, and a pin refused: who asks again is not sent to the end of the queue.
pub(super) async fn an_admission_is_kept_by_who_asks_again(backend: &impl Backend) {
    let state = &*backend.open().await;
    assert!(is_in(&enter(state, "one", &[("a", 1)]).await));
    assert_eq!(enter(state, "two", &[("a", 1)]).await, Reserved::Waiting { ahead: 0 });
    assert!(is_in(&enter(state, "one", &[("a", 1)]).await), "it is through already");
    give_back(state, "one", &[("a", 1)]).await;
    assert!(is_in(&enter(state, "two", &[("a", 1)]).await));
    assert_eq!(enter(state, "three", &[("a", 1)]).await, Reserved::Waiting { ahead: 0 });
    assert!(is_in(&enter(state, "two", &[("a", 1)]).await), "so is one that had a ticket");
    pin(state, "two", &[("a", 1)]).await.unwrap();
}

pub(super) async fn an_open_attempt_is_not_reserved_away(backend: &impl Backend) {
    let state = &*backend.open().await;
    observe(state, books("a", 5, 0)).await;
    open(state, "one", &[("a", 2)]).await;
    for (how, stays) in
        [(None, Stage::Open), (Some(Close::Kept), Stage::Kept), (Some(Close::Sold), Stage::Sold)]
    {
        if let Some(how) = how {
            close(state, "one", &[("a", 2)], how).await;
        }
        let before = shelf(state, "a").await;
        assert_eq!(enter(state, "one", &[("a", 1)]).await, Reserved::Waiting { ahead: 0 });
        assert_eq!(shelf(state, "a").await, before, "{stays:?} stays as it is");
    }
}

/// What the shop keeps for an unpaid order is off its own numbers already.
pub(super) async fn what_the_shop_took_off_is_not_taken_off_again(backend: &impl Backend) {
    let state = &*backend.open().await;
    observe(state, books("a", 2, 0)).await;
    open(state, "one", &[("a", 1)]).await;
    close(state, "one", &[("a", 1)], Close::Declined { hold_ms: 10 * MINUTE, shop_keeps: true }).await;
    let from = mark(state).await;
    observe(state, Reading { upper: Upper::Free(1), ..window("a", None, 1, from) }).await;
    let shown = shelf(state, "a").await;
    let lower = shown.lower.unwrap();
    assert_eq!((shown.upper_bound(""), shown.lower_bound("", lower.at)), (Some(1), Some(1)));
    assert!(is_in(&hold(state, "two", &[("a", 1)]).await), "one is free");
    let told = hold(state, "three", &[("a", 1)]).await;
    assert!(
        matches!(told, Reserved::Refused { reason: Shortage::Held { .. }, .. }),
        "both are held, none is sold: {told:?}"
    );
    open(state, "one", &[("a", 1)]).await;
    assert_eq!(shelf(state, "a").await.upper_bound("three"), Some(0), "paid for again: the same unit");
    close(state, "one", &[("a", 1)], Close::Sold).await;
    assert_eq!(shelf(state, "a").await.upper_bound("three"), Some(0), "and sold: the same unit");
}

pub(super) async fn a_limit_of_a_caller_has_no_gate(backend: &impl Backend) {
    let state = &*backend.open().await;
    let limit = StockId::of_caller("agent");
    let of = |stock| [(stock, 1), (limit.as_str(), 1)];
    at_most(state, limit.as_str(), 2).await;
    assert!(is_in(&enter(state, "one", &of("a")).await));
    assert!(is_in(&enter(state, "two", &of("b")).await), "a caller's orders do not wait for each other");
    let told = enter(state, "three", &of("c")).await;
    let Reserved::Refused { stock, reason: Shortage::Held { .. } } = told else { panic!("{told:?}") };
    assert_eq!(stock, limit);
}
