//! What every back end of the state has to do: the same cases on the embedded one, on a real Redis server and on
//! the model that the simulator runs on. What only one of them can do stands in a file of its own.

mod embedded;
mod modelled;
mod shared;
mod stock;
mod stock_alike;

use std::sync::Arc;

use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::{Attempt, Case, CaseReason, Sent, Session, Status, Watch},
        state::{
            ClaimEnd, ClaimState, Commit, Error, Expect, NewClaim, OpenAttempt, Records, SeenBy, Sighting,
            State, Which,
        },
        store::FoundState,
    },
    clock::{Clock as _, Ids, SystemClock},
    idempotency::{Answer, Claim, Decision, Fingerprint, Scope},
    state::Retention,
};

use self::{
    stock::{
        a_commit_that_fails_changes_no_shelf, a_hold_is_its_sessions_own_and_ends,
        a_limit_of_a_caller_has_no_gate, a_lost_reply_of_a_stock_step_is_read_back, a_pin_needs_an_admission,
        a_queue_is_bounded, a_refusal_says_why, a_sale_counts_until_a_clean_reading_knows_of_it,
        all_lines_are_held_or_none, an_admission_is_kept_by_who_asks_again,
        an_attempt_is_closed_in_each_way_and_once, an_open_attempt_is_not_reserved_away,
        giving_back_twice_frees_nothing_of_others, only_what_never_lies_low_refuses,
        orders_run_in_parallel_while_they_are_covered, those_that_wait_go_in_the_order_of_their_tickets,
        what_a_dead_process_was_about_to_do_is_void, what_the_shop_took_off_is_not_taken_off_again,
    },
    stock_alike::random_steps_say_and_leave_what_the_arithmetic_does,
};
use crate::support::TestApp;

/// A back end under test.
trait Backend {
    /// A process that works on it.
    async fn open(&self) -> Arc<dyn State>;
    /// What time does to a process that is gone. Whoever holds one must have dropped it.
    async fn bury(&self);
    /// What people read it with.
    fn records(&self) -> Box<dyn Records>;
}

fn retention() -> Retention {
    Retention { answers: chrono::Duration::hours(25), sessions: chrono::Duration::days(30) }
}

macro_rules! contract {
    ($($case:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&super::embedded::Embedded::new()).await;
            })+
        }

        mod on_the_model {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&super::modelled::Modelled::new()).await;
            })+
        }

        mod on_redis {
            $(#[tokio::test]
            async fn $case() {
                let Some(backend) = super::shared::Shared::new().await else { return };
                super::$case(&backend).await;
            })+
        }
    };
}

contract!(
    a_key_is_claimed_once_and_repeats_its_answer,
    a_session_is_written_only_over_what_was_read,
    one_step_is_taken_as_a_whole_and_once,
    an_attempt_is_closed_once_whatever_the_version,
    a_new_start_frees_what_ran_and_keeps_what_may_be_an_order,
    ended_sessions_go_when_their_time_is_over,
    overdue_sessions_are_listed_until_they_end,
    orders_that_were_seen_are_kept_once_each,
    an_order_belongs_to_one_session_and_a_session_to_one_order,
    what_a_person_has_to_look_at_is_listed_and_stays,
    all_lines_are_held_or_none,
    a_hold_is_its_sessions_own_and_ends,
    giving_back_twice_frees_nothing_of_others,
    a_refusal_says_why,
    only_what_never_lies_low_refuses,
    orders_run_in_parallel_while_they_are_covered,
    those_that_wait_go_in_the_order_of_their_tickets,
    a_queue_is_bounded,
    what_a_dead_process_was_about_to_do_is_void,
    a_pin_needs_an_admission,
    a_commit_that_fails_changes_no_shelf,
    an_attempt_is_closed_in_each_way_and_once,
    a_sale_counts_until_a_clean_reading_knows_of_it,
    a_lost_reply_of_a_stock_step_is_read_back,
    an_admission_is_kept_by_who_asks_again,
    an_open_attempt_is_not_reserved_away,
    what_the_shop_took_off_is_not_taken_off_again,
    a_limit_of_a_caller_has_no_gate,
    random_steps_say_and_leave_what_the_arithmetic_does,
);

fn scope(key: &str) -> Scope {
    Scope::of("flower", "ucp:x", "create", "", key)
}

fn new_claim(key: &str, body: &[u8], session: Option<&Session>) -> NewClaim {
    NewClaim {
        shop: ShopId::new("flower"),
        scope: scope(key),
        fingerprint: Fingerprint::of(b"secret", body),
        session: session.map(|session| session.id.clone()),
        keyed: true,
    }
}

async fn claimed(state: &dyn State, key: &str, session: Option<&Session>) -> Claim {
    match state.claim(new_claim(key, b"1", session)).await.unwrap() {
        Decision::Run(claim) => claim,
        other => panic!("{other:?}"),
    }
}

async fn commit(
    state: &dyn State,
    session: Option<(Session, Expect)>,
    claim: ClaimEnd,
) -> Result<u64, Error> {
    let (shop, operation) = (ShopId::new("flower"), Ids.uuid());
    state.commit(Commit { shop, operation, session, claim, sightings: Vec::new(), stock: None }).await
}

fn answer(text: &str) -> Answer {
    Answer { status: 201, headers: vec![("x".into(), "y".into())], body: text.as_bytes().to_vec() }
}

/// A session as a checkout makes it, under an id of its own.
async fn session() -> Session {
    let app = TestApp::new().await;
    let id = SessionId::new(app.ucp().ready("bouquet_roses", 1).await);
    let found = app.app.state().session(&ShopId::new("flower"), &id).await.unwrap().unwrap();
    let continue_token = Ids.public("go");
    let now = SystemClock.now();
    let expires_at = now + chrono::Duration::hours(24);
    Session { id: SessionId::new(Ids.public("chk")), continue_token, updated_at: now, expires_at, ..found }
}

fn placing(session: &Session, number: u32, claim: &Claim) -> Session {
    let attempt = Attempt {
        number,
        claim: Some(claim.scope.as_str().to_owned()),
        render: serde_json::Value::Null,
        total: 1,
        email: "a@example.com".into(),
        method: "m".into(),
        placing_at: SystemClock.now(),
        settling: false,
        fenced_at: None,
        review: false,
        keyed: true,
        checked_at: None,
        sent: Sent::Unknown,
        baseline: None,
        generation: 1,
        units: Vec::new(),
        is_over: false,
        draft: None,
    };
    Session { status: Status::Placing, attempt: Some(attempt), ..session.clone() }
}

async fn a_key_is_claimed_once_and_repeats_its_answer(backend: &impl Backend) {
    let state = &*backend.open().await;
    let claim = claimed(state, "k", None).await;
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::InFlight { placing: false });
    assert_eq!(state.claim(new_claim("k", b"2", None)).await.unwrap(), Decision::Conflict);
    commit(state, None, ClaimEnd::Finish(claim.clone(), answer("first"))).await.unwrap();
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::Replay(answer("first")));
    let twice = commit(state, None, ClaimEnd::Finish(claim, answer("second"))).await;
    assert!(matches!(twice, Err(Error::ClaimLost)), "the first answer stands");
    let freed = claimed(state, "k2", None).await;
    commit(state, None, ClaimEnd::Release(freed)).await.unwrap();
    claimed(state, "k2", None).await;
}

async fn a_session_is_written_only_over_what_was_read(backend: &impl Backend) {
    let state = &*backend.open().await;
    let session = session().await;
    let write = async |expect| commit(state, Some((session.clone(), expect)), ClaimEnd::Keep).await;
    assert_eq!(write(Expect::New).await.unwrap(), 1);
    assert!(matches!(write(Expect::New).await, Err(Error::Moved)));
    assert_eq!(write(Expect::Version(1)).await.unwrap(), 2);
    assert!(matches!(write(Expect::Version(1)).await, Err(Error::Moved)));
    assert!(matches!(write(Expect::Attempt(1)).await, Err(Error::AttemptClosed)));
    let stored = state.session(&session.shop, &session.id).await.unwrap().unwrap();
    assert_eq!(stored, Session { version: 2, ..session.clone() });
    let by_token = state.session_by_token(&session.shop, &session.continue_token).await.unwrap();
    assert_eq!(by_token.map(|found| found.id), Some(session.id.clone()));
    assert_eq!(state.session_by_token(&ShopId::new("general"), &session.continue_token).await.unwrap(), None);
}

async fn one_step_is_taken_as_a_whole_and_once(backend: &impl Backend) {
    let state = &*backend.open().await;
    let session = session().await;
    let gone = Claim { scope: scope("nobody"), fence: 1, keyed: true };
    let half = commit(state, Some((session.clone(), Expect::New)), ClaimEnd::Finish(gone, answer("a"))).await;
    assert!(matches!(half, Err(Error::ClaimLost)));
    assert_eq!(state.session(&session.shop, &session.id).await.unwrap(), None, "nothing of it stands");
    let step = Commit {
        shop: ShopId::new("flower"),
        operation: "one".into(),
        session: Some((session.clone(), Expect::New)),
        claim: ClaimEnd::Keep,
        sightings: Vec::new(),
        stock: None,
    };
    assert_eq!(state.commit(step.clone()).await.unwrap(), 1);
    assert_eq!(state.commit(step).await.unwrap(), 1, "a lost reply is read back, not taken twice");
}

async fn an_attempt_is_closed_once_whatever_the_version(backend: &impl Backend) {
    let state = &*backend.open().await;
    let session = session().await;
    commit(state, Some((session.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let claim = claimed(state, "k", Some(&session)).await;
    let open_one = placing(&session, 1, &claim);
    let attach = ClaimEnd::Attach(claim.clone(), 1);
    commit(state, Some((open_one, Expect::Version(1))), attach).await.unwrap();
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::InFlight { placing: true });
    let open = OpenAttempt { session: session.id.clone(), elsewhere: false };
    assert_eq!(state.open_attempts(&session.shop).await.unwrap(), vec![open]);
    let freed = commit(state, None, ClaimEnd::Release(claim.clone())).await;
    assert!(matches!(freed, Err(Error::ClaimLost)), "only the end of the attempt ends its claim");
    let close = async |text: &str| {
        let end = ClaimEnd::FinishScope(claim.scope.clone(), answer(text));
        commit(state, Some((session.clone(), Expect::Attempt(1))), end).await
    };
    assert_eq!(close("found").await.unwrap(), 3);
    assert!(matches!(close("late").await, Err(Error::AttemptClosed)));
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::Replay(answer("found")));
    assert_eq!(state.open_attempts(&session.shop).await.unwrap(), vec![]);
}

async fn a_new_start_frees_what_ran_and_keeps_what_may_be_an_order(backend: &impl Backend) {
    let first = backend.open().await;
    let state = &*first;
    let (changing, paying) = (session().await, session().await);
    for one in [&changing, &paying] {
        commit(state, Some((one.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    }
    claimed(state, "change", Some(&changing)).await;
    let claim = claimed(state, "pay", Some(&paying)).await;
    let attach = ClaimEnd::Attach(claim.clone(), 1);
    commit(state, Some((placing(&paying, 1, &claim), Expect::Version(1))), attach).await.unwrap();
    drop(first);
    backend.bury().await;
    let state = &*backend.open().await;
    claimed(state, "change", Some(&changing)).await;
    let changed = state.session(&changing.shop, &changing.id).await.unwrap().unwrap();
    assert!(!changed.cart.unwrap().usable, "the cart may hold half a change");
    assert_eq!(
        state.claim(new_claim("pay", b"1", None)).await.unwrap(),
        Decision::InFlight { placing: true }
    );
}

async fn ended_sessions_go_when_their_time_is_over(backend: &impl Backend) {
    let state = &*backend.open().await;
    let session = session().await;
    let ended = Session { status: Status::Canceled, ..session.clone() };
    commit(state, Some((ended, Expect::New)), ClaimEnd::Keep).await.unwrap();
    state.sweep(SystemClock.now() + chrono::Duration::days(29)).await.unwrap();
    assert!(state.session(&session.shop, &session.id).await.unwrap().is_some());
    state.sweep(SystemClock.now() + chrono::Duration::days(31)).await.unwrap();
    assert_eq!(state.session(&session.shop, &session.id).await.unwrap(), None);
    assert_eq!(state.session_by_token(&session.shop, &session.continue_token).await.unwrap(), None);
}

async fn overdue_sessions_are_listed_until_they_end(backend: &impl Backend) {
    let state = &*backend.open().await;
    let session = session().await;
    commit(state, Some((session.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let (shop, later) = (&session.shop, session.expires_at);
    assert_eq!(state.overdue(shop, later - chrono::Duration::seconds(1)).await.unwrap(), vec![]);
    assert_eq!(state.overdue(shop, later).await.unwrap(), vec![session.id.clone()]);
    let ended = Session { status: Status::Expired, ..session.clone() };
    commit(state, Some((ended.clone(), Expect::Version(1))), ClaimEnd::Keep).await.unwrap();
    assert_eq!(state.overdue(shop, later).await.unwrap(), vec![]);
    // One whose orders are to be looked at again is due then.
    let look = later + chrono::Duration::hours(1);
    let watched = |next| Watch { since: later, next, told: Vec::new() };
    let looks = Session { watch: Some(watched(Some(look))), ..ended.clone() };
    commit(state, Some((looks, Expect::Version(2))), ClaimEnd::Keep).await.unwrap();
    assert_eq!(state.overdue(shop, later).await.unwrap(), vec![]);
    assert_eq!(state.overdue(shop, look).await.unwrap(), vec![session.id.clone()]);
    let over = Session { watch: Some(watched(None)), ..ended };
    commit(state, Some((over, Expect::Version(3))), ClaimEnd::Keep).await.unwrap();
    assert_eq!(state.overdue(shop, look).await.unwrap(), vec![]);
}

fn seen(session: &Session, shop_order: &str, adopted: bool) -> Sighting {
    Sighting {
        shop_order: shop_order.into(),
        session: session.id.clone(),
        attempt: Some(1),
        seen_by: SeenBy::Look,
        state: FoundState::Pending,
        total: Some(1),
        stock_taken: false,
        adopted,
        at: SystemClock.now(),
    }
}

/// Writes orders that were seen, and the session if it is named.
async fn see(
    state: &dyn State,
    session: Option<(&Session, Expect)>,
    sightings: Vec<Sighting>,
) -> Result<u64, Error> {
    let (shop, operation) = (ShopId::new("flower"), Ids.uuid());
    let session = session.map(|(session, expect)| (session.clone(), expect));
    state.commit(Commit { shop, operation, session, claim: ClaimEnd::Keep, sightings, stock: None }).await
}

async fn orders_that_were_seen_are_kept_once_each(backend: &impl Backend) {
    let state = &*backend.open().await;
    let one = session().await;
    see(state, Some((&one, Expect::New)), vec![seen(&one, "9", false), seen(&one, "10", false)])
        .await
        .unwrap();
    let again = Sighting { state: FoundState::Placed, seen_by: SeenBy::Answer, ..seen(&one, "9", true) };
    see(state, None, vec![again.clone()]).await.unwrap();
    // Seen once more without being adopted anew: it stays the session's order.
    let last = Sighting { state: FoundState::Gone, ..seen(&one, "9", false) };
    see(state, None, vec![last]).await.unwrap();
    let records = backend.records();
    let kept = records.sightings(&one.shop, &one.id).await.unwrap();
    let told: Vec<_> = kept
        .iter()
        .map(|seen| (seen.last.shop_order.as_str(), seen.first.state, seen.last.state, seen.last.adopted))
        .collect();
    assert_eq!(
        told,
        [
            ("9", FoundState::Pending, FoundState::Gone, true),
            ("10", FoundState::Pending, FoundState::Pending, false)
        ]
    );
    assert_eq!(records.session_of_order(&one.shop, "10").await.unwrap(), Some(one.id.clone()));
    assert_eq!(records.session_of_order(&ShopId::new("general"), "10").await.unwrap(), None);
    // They go with their session.
    let ended = Session { status: Status::Canceled, ..one.clone() };
    commit(state, Some((ended, Expect::Version(1))), ClaimEnd::Keep).await.unwrap();
    state.sweep(SystemClock.now() + chrono::Duration::days(31)).await.unwrap();
    assert_eq!(records.sightings(&one.shop, &one.id).await.unwrap(), vec![]);
    assert_eq!(records.session_of_order(&one.shop, "10").await.unwrap(), None);
}

async fn an_order_belongs_to_one_session_and_a_session_to_one_order(backend: &impl Backend) {
    let state = &*backend.open().await;
    let (one, two) = (session().await, session().await);
    see(state, Some((&one, Expect::New)), vec![seen(&one, "1", true)]).await.unwrap();
    let stolen = see(state, Some((&two, Expect::New)), vec![seen(&two, "1", true)]).await;
    assert!(matches!(stolen, Err(Error::OrderTaken { shop_order }) if shop_order == "1"));
    assert_eq!(state.session(&two.shop, &two.id).await.unwrap(), None, "nothing of it stands");
    let second = see(state, Some((&one, Expect::Version(1))), vec![seen(&one, "2", true)]).await;
    assert!(matches!(second, Err(Error::OrderTaken { shop_order }) if shop_order == "2"));
    assert_eq!(state.session(&one.shop, &one.id).await.unwrap().unwrap().version, 1);
    // Only seen, not adopted: written, and the first session's it stays.
    see(state, Some((&two, Expect::New)), vec![seen(&two, "1", false)]).await.unwrap();
    assert_eq!(backend.records().session_of_order(&one.shop, "1").await.unwrap(), Some(one.id.clone()));
    see(state, Some((&one, Expect::Version(1))), vec![seen(&one, "1", true)]).await.unwrap();
}

async fn what_a_person_has_to_look_at_is_listed_and_stays(backend: &impl Backend) {
    let state = &*backend.open().await;
    let (plain, wanted, open) = (session().await, session().await, session().await);
    commit(state, Some((plain.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let case = Case { at: SystemClock.now(), shop_order: "7".into(), reason: CaseReason::SecondOrder };
    let ended = Session { status: Status::Completed, cases: vec![case], ..wanted.clone() };
    commit(state, Some((ended, Expect::New)), ClaimEnd::Keep).await.unwrap();
    commit(state, Some((open.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let claim = claimed(state, "k", Some(&open)).await;
    let mut placing = placing(&open, 1, &claim);
    placing.attempt.as_mut().unwrap().review = true;
    commit(state, Some((placing, Expect::Version(1))), ClaimEnd::Attach(claim.clone(), 1)).await.unwrap();
    let records = backend.records();
    let listed = async |which, most| {
        let mut ids: Vec<_> =
            records.list(&plain.shop, which, most).await.unwrap().into_iter().map(|one| one.id).collect();
        ids.sort_by_key(ToString::to_string);
        ids
    };
    let sorted = |sessions: &[&Session]| {
        let mut ids: Vec<_> = sessions.iter().map(|one| one.id.clone()).collect();
        ids.sort_by_key(ToString::to_string);
        ids
    };
    assert_eq!(listed(Which::Review, 10).await, sorted(&[&wanted, &open]));
    assert_eq!(listed(Which::Open, 10).await, sorted(&[&open]));
    assert_eq!(listed(Which::All, 10).await, sorted(&[&plain, &wanted, &open]));
    assert_eq!(listed(Which::All, 2).await.len(), 2);
    assert_eq!(records.claim_state(&open.shop, &claim.scope).await.unwrap(), Some(ClaimState::Open));
    assert_eq!(records.claim_state(&open.shop, &scope("no")).await.unwrap(), None);
    // Nothing ends or removes them.
    let much_later = SystemClock.now() + chrono::Duration::days(400);
    assert_eq!(state.overdue(&plain.shop, much_later).await.unwrap(), sorted(&[&plain]));
    state.sweep(much_later).await.unwrap();
    assert_eq!(listed(Which::Review, 10).await, sorted(&[&wanted, &open]));
    // Done with: gone from the list, and removed in its time.
    let settled = Session { status: Status::Completed, cases: Vec::new(), ..wanted.clone() };
    commit(state, Some((settled, Expect::Version(1))), ClaimEnd::Keep).await.unwrap();
    assert_eq!(listed(Which::Review, 10).await, sorted(&[&open]));
    state.sweep(much_later).await.unwrap();
    assert_eq!(records.find(&wanted.shop, &wanted.id).await.unwrap(), None);
    let finished = ClaimEnd::FinishScope(claim.scope.clone(), answer("a"));
    commit(state, Some((open.clone(), Expect::Attempt(1))), finished).await.unwrap();
    assert_eq!(records.claim_state(&open.shop, &claim.scope).await.unwrap(), Some(ClaimState::Answered));
}
