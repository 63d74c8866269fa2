//! What only the shared back end does: several processes, leases, changes of the master.

use std::{sync::Arc, time::Duration};

use tillgate::{
    checkout::{
        ids::ShopId,
        session::Session,
        state::{ClaimEnd, Error, Expect, OpenAttempt, Records, State},
    },
    clock::SystemClock,
    idempotency::{Claim, Decision},
    state::redis::{Archive, Place, Redis, SecretUrl, Settings},
};

use super::{Backend, claimed, commit, new_claim, placing, retention, session};
use crate::support::redis::Server;

/// A Redis server of the test's own.
pub(super) struct Shared {
    server: Server,
}

impl Shared {
    pub(super) async fn new() -> Option<Self> {
        Some(Self { server: Server::start(&[]).await? })
    }

    async fn process(&self) -> Redis {
        Redis::open(self.settings(), Arc::new(SystemClock)).await.unwrap()
    }

    fn settings(&self) -> Settings {
        Settings {
            place: Place::Server(SecretUrl(self.server.url().into())),
            prefix: "tillgate".into(),
            replicas: None,
            quarantine: Duration::from_secs(30),
            shops: vec![ShopId::new("flower")],
            retention: retention(),
            admit_unsafe: false,
        }
    }

    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await.unwrap()
    }
}

const OWNERS: &str = "tillgate:{flower}:owners";

impl Backend for Shared {
    async fn open(&self) -> Arc<dyn State> {
        Arc::new(self.process().await)
    }

    async fn bury(&self) {
        let owners: Vec<String> = self.ask(&["HKEYS", OWNERS]).await;
        for owner in owners {
            let _: i64 = self.ask(&["HSET", OWNERS, &owner, "0"]).await;
        }
    }

    fn records(&self) -> Box<dyn Records> {
        Box::new(Archive::new(&self.settings()).unwrap())
    }
}

#[tokio::test]
async fn what_a_process_that_is_gone_left_changes_hands() {
    let Some(shared) = Shared::new().await else { return };
    let old = shared.process().await;
    let one = session().await;
    commit(&old, Some((one.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let claim = claimed(&old, "k", Some(&one)).await;
    let turn = old.take_turn(&one.shop, &one.id).await.unwrap().unwrap();
    let new = shared.process().await;
    let again = async |state: &Redis| state.claim(new_claim("k", b"1", Some(&one))).await.unwrap();
    assert_eq!(again(&new).await, Decision::InFlight { placing: false }, "its process lives");
    assert_eq!(new.take_turn(&one.shop, &one.id).await.unwrap(), None);
    shared.bury().await;
    new.beat().await.unwrap();
    let Decision::Run(taken) = again(&new).await else { panic!("the claim is free") };
    assert!(taken.fence > claim.fence);
    assert!(new.take_turn(&one.shop, &one.id).await.unwrap().is_some());
    // The sleeper wakes: nothing that it knew counts any more.
    old.beat().await.unwrap();
    let late = commit(&old, Some((one.clone(), Expect::Version(1))), ClaimEnd::Keep).await;
    assert!(matches!(late, Err(Error::Moved)), "the session has moved on");
    let late = commit(&old, None, ClaimEnd::Release(claim)).await;
    assert!(matches!(late, Err(Error::ClaimLost)));
    old.end_turn(&one.shop, &one.id, turn).await.unwrap();
    assert_eq!(old.take_turn(&one.shop, &one.id).await.unwrap(), None, "the turn stays where it is");
    let stored = new.session(&one.shop, &one.id).await.unwrap().unwrap();
    assert!(!stored.cart.unwrap().usable, "a new owner never shares a cart with an old one");
}

#[tokio::test]
async fn a_fence_is_never_given_twice() {
    let Some(shared) = Shared::new().await else { return };
    let state = shared.process().await;
    let first = claimed(&state, "k", None).await;
    commit(&state, None, ClaimEnd::Release(first.clone())).await.unwrap();
    let second = claimed(&state, "k", None).await;
    assert!(second.fence > first.fence);
    assert!(matches!(commit(&state, None, ClaimEnd::Release(first)).await, Err(Error::ClaimLost)));
    commit(&state, None, ClaimEnd::Release(second)).await.unwrap();
}

#[tokio::test]
async fn an_attempt_is_left_to_its_process_while_that_lives() {
    let Some(shared) = Shared::new().await else { return };
    let (placer, other) = (shared.process().await, shared.process().await);
    let one = session().await;
    placed(&placer, &one).await.unwrap();
    let open = |elsewhere| vec![OpenAttempt { session: one.id.clone(), elsewhere }];
    assert_eq!(placer.open_attempts(&one.shop).await.unwrap(), open(false));
    assert_eq!(other.open_attempts(&one.shop).await.unwrap(), open(true));
    shared.bury().await;
    other.beat().await.unwrap();
    assert_eq!(other.open_attempts(&one.shop).await.unwrap(), open(false));
}

/// Stores a session and an open attempt of it.
async fn placed(state: &Redis, one: &Session) -> Result<Claim, Error> {
    commit(state, Some((one.clone(), Expect::New)), ClaimEnd::Keep).await?;
    let claim = claimed(state, one.id.as_str(), Some(one)).await;
    let attach = ClaimEnd::Attach(claim.clone(), 1);
    commit(state, Some((placing(one, 1, &claim), Expect::Version(1))), attach).await?;
    Ok(claim)
}

#[tokio::test]
async fn after_a_change_of_the_master_no_order_is_placed_for_a_while() {
    let Some(shared) = Shared::new().await else { return };
    let state = shared.process().await;
    let (old, paying) = (session().await, session().await);
    commit(&state, Some((old.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let stored = async |one: &Session| state.session(&one.shop, &one.id).await.unwrap().unwrap();
    assert!(!stored(&old).await.of_older_epoch);
    let _: String = shared.ask(&["SET", "tillgate:{flower}:replid", "another"]).await;
    let refused = placed(&state, &paying).await.unwrap_err();
    assert!(matches!(refused, Error::Quarantine { retry_after_secs: 1..=30 }), "{refused}");
    assert!(stored(&old).await.of_older_epoch, "its orders may be unknown here");
    let _: i64 = shared.ask(&["DEL", "tillgate:{flower}:quarantine"]).await;
    let later = session().await;
    placed(&state, &later).await.unwrap();
    assert!(!stored(&later).await.of_older_epoch);
}

/// The end of a claim, and a turn that was given back, may be among the writes that a failover loses: they must not stay
/// taken for as long as their process lives.
#[tokio::test]
async fn what_a_living_process_held_before_a_change_of_the_master_does_not_stay_taken() {
    let Some(shared) = Shared::new().await else { return };
    let (one, other) = (shared.process().await, shared.process().await);
    let checkout = session().await;
    commit(&one, Some((checkout.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    let claim = claimed(&one, "k", Some(&checkout)).await;
    one.take_turn(&checkout.shop, &checkout.id).await.unwrap().unwrap();
    let again = async |state: &Redis| state.claim(new_claim("k", b"1", Some(&checkout))).await.unwrap();
    assert_eq!(again(&other).await, Decision::InFlight { placing: false });
    let _: String = shared.ask(&["SET", "tillgate:{flower}:replid", "another"]).await;
    other.beat().await.unwrap();
    assert!(other.take_turn(&checkout.shop, &checkout.id).await.unwrap().is_some(), "the turn changes hands");
    let Decision::Run(taken) = again(&other).await else { panic!("the claim changes hands") };
    assert!(taken.fence > claim.fence);
    let late = commit(&one, Some((checkout.clone(), Expect::Version(1))), ClaimEnd::Keep).await;
    assert!(matches!(late, Err(Error::Moved)), "who held them works no more");
    assert_eq!(
        again(&one).await,
        Decision::InFlight { placing: false },
        "in the new epoch life counts again"
    );
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let Some(shared) = Shared::new().await else { return };
    let state = shared.process().await;
    claimed(&state, "a", None).await;
    let _: String = shared.ask(&["SCRIPT", "FLUSH"]).await;
    claimed(&state, "b", None).await;
}

#[tokio::test]
async fn a_restarted_server_is_used_again_and_has_kept_everything() {
    let Some(mut shared) = Shared::new().await else { return };
    let state = shared.process().await;
    let one = session().await;
    commit(&state, Some((one.clone(), Expect::New)), ClaimEnd::Keep).await.unwrap();
    shared.server.kill();
    assert!(matches!(state.session(&one.shop, &one.id).await, Err(Error::Unavailable(_))));
    assert!(matches!(state.ping().await, Err(Error::Unavailable(_))));
    shared.server.restart().await;
    let found = state.session(&one.shop, &one.id).await.unwrap().unwrap();
    assert_eq!(found.version, 1);
    state.beat().await.unwrap();
    let found = state.session(&one.shop, &one.id).await.unwrap().unwrap();
    assert!(found.of_older_epoch, "a restart may have lost the newest writes");
}
