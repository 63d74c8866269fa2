//! What every back end of the state has to do. The embedded one runs it now; others join the list.

use std::{path::Path, sync::Arc};

use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        session::{Attempt, Session, Status},
        state::{ClaimEnd, Commit, Error, Expect, NewClaim, State},
    },
    clock::{Clock as _, Ids, SystemClock},
    idempotency::{Answer, Claim, Decision, Fingerprint, Scope},
    state::sqlite::{OpenError, Retention, Sqlite},
};

use crate::support::TestApp;

fn open(folder: &Path) -> Result<Sqlite, OpenError> {
    let retention = Retention { answers: chrono::Duration::hours(25), sessions: chrono::Duration::days(30) };
    Sqlite::open(folder, retention, Arc::new(SystemClock))
}

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
    state.commit(Commit { operation: Ids.uuid(), session, claim }).await
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
    };
    Session { status: Status::Placing, attempt: Some(attempt), ..session.clone() }
}

#[tokio::test]
async fn a_key_is_claimed_once_and_repeats_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let claim = claimed(&state, "k", None).await;
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::InFlight { placing: false });
    assert_eq!(state.claim(new_claim("k", b"2", None)).await.unwrap(), Decision::Conflict);
    commit(&state, None, ClaimEnd::Finish(claim.clone(), answer("first"))).await.unwrap();
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::Replay(answer("first")));
    let twice = commit(&state, None, ClaimEnd::Finish(claim, answer("second"))).await;
    assert!(matches!(twice, Err(Error::ClaimLost)), "the first answer stands");
    let freed = claimed(&state, "k2", None).await;
    commit(&state, None, ClaimEnd::Release(freed)).await.unwrap();
    claimed(&state, "k2", None).await;
}

#[tokio::test]
async fn a_session_is_written_only_over_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let session = session().await;
    let write = async |expect| commit(&state, Some((session.clone(), expect)), ClaimEnd::Keep).await;
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

#[tokio::test]
async fn one_step_is_taken_as_a_whole_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let session = session().await;
    let gone = Claim { scope: scope("nobody"), fence: 1, keyed: true };
    let half =
        commit(&state, Some((session.clone(), Expect::New)), ClaimEnd::Finish(gone, answer("a"))).await;
    assert!(matches!(half, Err(Error::ClaimLost)));
    assert_eq!(state.session(&session.shop, &session.id).await.unwrap(), None, "nothing of it stands");
    let step = Commit {
        operation: "one".into(),
        session: Some((session.clone(), Expect::New)),
        claim: ClaimEnd::Keep,
    };
    assert_eq!(state.commit(step.clone()).await.unwrap(), 1);
    assert_eq!(state.commit(step).await.unwrap(), 1, "a lost reply is read back, not taken twice");
}

#[tokio::test]
async fn an_attempt_is_closed_once_whatever_the_version() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let session = session().await;
    commit(&state, Some((session.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let claim = claimed(&state, "k", Some(&session)).await;
    let open_one = placing(&session, 1, &claim);
    let attach = ClaimEnd::Attach(claim.clone(), 1);
    commit(&state, Some((open_one, Expect::Version(1))), attach).await.unwrap();
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::InFlight { placing: true });
    assert_eq!(state.open_attempts(&session.shop).await.unwrap(), vec![session.id.clone()]);
    let freed = commit(&state, None, ClaimEnd::Release(claim.clone())).await;
    assert!(matches!(freed, Err(Error::ClaimLost)), "only the end of the attempt ends its claim");
    let close = async |text: &str| {
        let end = ClaimEnd::FinishScope(claim.scope.clone(), answer(text));
        commit(&state, Some((session.clone(), Expect::Attempt(1))), end).await
    };
    assert_eq!(close("found").await.unwrap(), 3);
    assert!(matches!(close("late").await, Err(Error::AttemptClosed)));
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::Replay(answer("found")));
    assert_eq!(state.open_attempts(&session.shop).await.unwrap(), vec![]);
}

#[tokio::test]
async fn a_new_start_frees_what_ran_and_keeps_what_may_be_an_order() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let (changing, paying) = (session().await, session().await);
    for one in [&changing, &paying] {
        commit(&state, Some((one.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    }
    claimed(&state, "change", Some(&changing)).await;
    let claim = claimed(&state, "pay", Some(&paying)).await;
    let attach = ClaimEnd::Attach(claim.clone(), 1);
    commit(&state, Some((placing(&paying, 1, &claim), Expect::Version(1))), attach).await.unwrap();
    drop(state);
    let state = open(folder.path()).unwrap();
    claimed(&state, "change", Some(&changing)).await;
    let changed = state.session(&changing.shop, &changing.id).await.unwrap().unwrap();
    assert!(!changed.cart.unwrap().usable, "the cart may hold half a change");
    assert_eq!(
        state.claim(new_claim("pay", b"1", None)).await.unwrap(),
        Decision::InFlight { placing: true }
    );
}

#[tokio::test]
async fn answers_and_ended_sessions_go_when_their_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let session = session().await;
    let ended = Session { status: Status::Canceled, ..session.clone() };
    commit(&state, Some((ended, Expect::New)), ClaimEnd::Keep).await.unwrap();
    let claim = claimed(&state, "k", None).await;
    commit(&state, None, ClaimEnd::Finish(claim, answer("a"))).await.unwrap();
    let running = claimed(&state, "running", None).await;
    let now = SystemClock.now();
    state.sweep(now + chrono::Duration::hours(24)).await.unwrap();
    assert_eq!(state.claim(new_claim("k", b"1", None)).await.unwrap(), Decision::Replay(answer("a")));
    state.sweep(now + chrono::Duration::hours(26)).await.unwrap();
    claimed(&state, "k", None).await;
    state.sweep(now + chrono::Duration::days(31)).await.unwrap();
    assert_eq!(state.session(&session.shop, &session.id).await.unwrap(), None);
    commit(&state, None, ClaimEnd::Release(running)).await.unwrap();
}

#[tokio::test]
async fn a_folder_is_opened_by_one_and_a_newer_one_by_none() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(OpenError::Locked(_))));
    drop(state);
    let file = folder.path().join("state.sqlite");
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = open(folder.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("state format 99"), "{error}");
}
