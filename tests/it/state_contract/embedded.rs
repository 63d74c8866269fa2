//! What only the embedded back end does.

use std::{path::Path, sync::Arc};

use tillgate::{
    checkout::{
        session::{Session, Status},
        state::{ClaimEnd, Expect, Records, State},
    },
    clock::{Clock as _, SystemClock},
    idempotency::Decision,
    state::sqlite::{Archive, OpenError, Sqlite},
};

use super::{Backend, answer, claimed, commit, new_claim, retention};

/// A data folder.
pub(super) struct Embedded {
    folder: tempfile::TempDir,
}

impl Embedded {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
}

impl Backend for Embedded {
    async fn open(&self) -> Arc<dyn State> {
        Arc::new(open(self.folder.path()).unwrap())
    }

    async fn bury(&self) {}

    fn records(&self) -> Box<dyn Records> {
        Box::new(Archive::open(self.folder.path()).unwrap())
    }
}

fn open(folder: &Path) -> Result<Sqlite, OpenError> {
    Sqlite::open(folder, retention(), Arc::new(SystemClock))
}

#[tokio::test]
async fn answers_and_ended_sessions_go_when_their_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path()).unwrap();
    let session: Session = super::session().await;
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

#[tokio::test]
async fn a_state_that_was_put_back_from_a_copy_says_so_until_a_look() {
    let folder = tempfile::tempdir().unwrap();
    let one = super::session().await;
    let state = open(folder.path()).unwrap();
    commit(&state, Some((one.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    drop(state);
    Sqlite::note_restore(folder.path()).unwrap();
    let state = open(folder.path()).unwrap();
    let stored = async |state: &Sqlite| state.session(&one.shop, &one.id).await.unwrap().unwrap();
    let found = stored(&state).await;
    assert!(found.of_older_epoch, "its orders may be unknown here");
    commit(&state, Some((found, Expect::Version(1))), ClaimEnd::Keep).await.unwrap();
    assert!(stored(&state).await.of_older_epoch, "writing it is no look");
    drop(state);
    let state = open(folder.path()).unwrap();
    let found = stored(&state).await;
    assert!(found.of_older_epoch);
    let looked = Session { of_older_epoch: false, ..found };
    commit(&state, Some((looked, Expect::Version(2))), ClaimEnd::Keep).await.unwrap();
    assert!(!stored(&state).await.of_older_epoch);
}

#[tokio::test]
async fn a_folder_without_a_state_and_one_of_an_older_program_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let error = Archive::open(folder.path()).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::Missing(_)), "{error}");
    drop(open(folder.path()).unwrap());
    let file = folder.path().join("state.sqlite");
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 1).unwrap();
    let error = Archive::open(folder.path()).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::Older { found: 1, .. }), "{error}");
}
