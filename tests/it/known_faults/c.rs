//! C: idempotency layers elsewhere.

use std::sync::Arc;

use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::NewClaim,
    },
    idempotency::{Decision, Fingerprint, Scope},
};

use super::requests::create_with;
use crate::support::{
    Reply, TestApp,
    clients::{PROFILE, full, lines},
    sides::{Acp, BOTH, Ucp, basket, orders},
};

/// Requirements: U-050.
#[tokio::test]
async fn c1_many_equal_completions_place_one_order() {
    let app = Arc::new(TestApp::new().await);
    let id = app.ucp().ready("bouquet_roses", 1).await;
    app.shop_calls().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (app, id) = (Arc::clone(&app), id.clone());
        tasks.spawn(async move { app.ucp().key("k").complete(&id, "tok_slow").await });
    }
    let mut finished = Vec::new();
    while let Some(reply) = tasks.join_next().await {
        let reply = reply.unwrap();
        match reply.status {
            409 => assert_eq!(
                (reply.text("/code"), reply.header("retry-after")),
                ("idempotency_in_flight", Some("2"))
            ),
            _ if reply.text("/status") == "complete_in_progress" => {}
            _ => finished.push(reply),
        }
    }
    let last = app.ucp().key("k").complete(&id, "tok_slow").await.expect(200);
    assert_eq!(last.text("/status"), "completed");
    assert!(!finished.is_empty() && finished.iter().all(|reply| reply.bytes == last.bytes));
    let posts = app.shop_calls().await.iter().filter(|call| call.ends_with("/checkout")).count();
    assert_eq!(posts, 1, "one POST /checkout");
}

/// A request dies between its claim and its end. The next start frees the key and leaves the cart, which
/// may hold half a change.
#[tokio::test]
async fn c5_a_claim_of_a_dead_process_is_freed_by_the_next_start() {
    let app = TestApp::new().await;
    let id = Ucp.ready(&app).await;
    let session = SessionId::new(id.clone());
    let caller = format!("ucp:{PROFILE}");
    let claim = |fingerprint: &str| NewClaim {
        keyed: true,
        shop: ShopId::new("flower"),
        scope: Scope::of("flower", &caller, "update", &id, "k"),
        fingerprint: Fingerprint::stored(fingerprint.to_owned()),
        session: Some(session.clone()),
    };
    let claimed = app.app.state().claim(claim("x")).await.unwrap();
    assert!(matches!(claimed, Decision::Run(_)));
    let stuck = app.app.state().claim(claim("x")).await.unwrap();
    assert!(matches!(stuck, Decision::InFlight { placing: false }));
    app.ucp().key("k").update(&id, lines("pot_ceramic", 1)).await.expect(409);
    let app = app.restarted().await;
    let left = app.app.state().session(&ShopId::new("flower"), &session).await.unwrap().unwrap();
    assert!(!left.cart.unwrap().usable, "the cart may hold half a change");
    let reply = app.ucp().key("k").update(&id, full("bouquet_roses", 2)).await.expect(200);
    assert_eq!(basket(&reply), [("bouquet_roses".to_owned(), 2)]);
    let done = app.ucp().complete(&id, "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
    assert_eq!(orders(&app).len(), 1);
}

/// Over UCP a repeat is the same to the byte, and nothing more is said of it.
/// Requirements: U-050.
#[tokio::test]
async fn c6_a_repeat_is_marked_where_the_protocol_has_a_mark() {
    let app = TestApp::new().await;
    for side in BOTH {
        let id = side.ready(&app).await;
        let first = side.complete(&app, "k-6", &id).await.expect(200);
        let again = side.complete(&app, "k-6", &id).await.expect(200);
        assert_eq!(again.bytes, first.bytes, "{side:?}");
        let (marks, keys) = (
            [&first, &again].map(|reply| reply.header("idempotent-replayed")),
            [&first, &again].map(|reply| reply.header("idempotency-key")),
        );
        match side {
            Acp => assert_eq!((marks, keys), ([None, Some("true")], [Some("k-6"), Some("k-6")])),
            Ucp => assert_eq!((marks, keys), ([None, None], [None, None])),
        }
    }
    assert_eq!(orders(&app).len(), 2);
}

/// Quotes belong to a key; what is no key is refused and nothing runs.
#[tokio::test]
async fn c10_a_key_is_taken_as_it_is_sent() {
    let app = TestApp::new().await;
    let (longest, longer) = ("k".repeat(255), "k".repeat(256));
    for (made, side) in BOTH.into_iter().enumerate() {
        let mut ids = std::collections::BTreeSet::new();
        for key in ["abc", "\"abc\"", "'abc'", longest.as_str()] {
            let header = create_with(&app, side, "idempotency-key", &[key]).await.expect(201);
            ids.insert(header.id());
        }
        assert_eq!(ids.len(), 4, "{side:?}");
        for lines in
            [&[""][..], &[" "], &["a b"], &[longer.as_str()], &["abc", "abc"], &["abc", "def"], &["ä"]]
        {
            create_with(&app, side, "idempotency-key", lines).await.expect(400);
        }
        assert_eq!(app.sessions_made(), 4 * (i64::try_from(made).unwrap() + 1));
    }
}

/// Without its memory the gateway does nothing that needs protection.
/// Requirements: U-052.
#[tokio::test]
async fn c11_without_its_state_it_refuses_and_the_shop_hears_nothing() {
    let app = TestApp::new().await;
    let ids = [Ucp.ready(&app).await, Acp.ready(&app).await];
    app.shop_calls().await;
    app.break_state();
    for (side, id) in BOTH.into_iter().zip(&ids) {
        for reply in [
            side.complete(&app, "k", id).await,
            side.update(&app, "k", id).await,
            side.create(&app, "k").await,
        ] {
            let refused = reply.expect(503);
            assert!(refused.header("retry-after").is_some(), "{side:?}");
        }
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
    for path in ["/.well-known/ucp", "/2026-04-08/.well-known/ucp", "/.well-known/acp.json"] {
        app.get(path).await.expect(200);
    }
    app.mend_state();
    for (side, id) in BOTH.into_iter().zip(&ids) {
        let done = side.complete(&app, "k", id).await.expect(200);
        assert_eq!(done.text("/status"), "completed", "the key was not used up: {}", done.json);
    }
    assert_eq!(orders(&app).len(), 2);
}

/// Who waits for the turn reads again once it is won.
#[tokio::test]
async fn c13_a_waiter_reads_what_the_first_has_left() {
    let app = TestApp::new().await;
    let id = Ucp.ready(&app).await;
    app.flower().set_fault("delay_ms=300,count=1,only=batch").unwrap();
    let ucp = app.ucp();
    let (one, two) = (ucp.key("a"), ucp.key("b"));
    let (first, second) =
        tokio::join!(one.complete(&id, "success_token"), two.complete(&id, "success_token"));
    let done = |reply: &Reply| reply.status == 200 && reply.text("/status") == "completed";
    assert!(done(&first) != done(&second), "{} {}", first.json, second.json);
    assert_eq!(orders(&app).len(), 1);
    assert_eq!(app.shop_calls().await.iter().filter(|call| call.ends_with("/checkout")).count(), 1);
}
