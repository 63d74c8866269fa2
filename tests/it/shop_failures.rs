//! A shop that misbehaves: told as such, survived, and never two orders for one purchase.

use crate::support::{
    TestApp,
    sides::{Acp, BOTH, Ucp, basket, calm, orders, settled},
};

/// Faults of one call each, and whether the shop then fails a request; noise is read through.
const FAULTS: [(&str, bool); 7] = [
    ("http_500", true),
    ("html", true),
    ("maintenance", true),
    ("limiter", true),
    ("lost_answer", true),
    ("noise", false),
    ("dead_token", false),
];

/// Requirements: U-041, A-028.
#[tokio::test]
async fn c2_a_create_on_a_failing_shop_succeeds_under_the_same_key_later() {
    let app = TestApp::new().await;
    for side in BOTH {
        for (fault, fails) in FAULTS {
            for only in ["", ",only=batch"] {
                let key = format!("{fault}{only}");
                app.flower().set_fault(&format!("{fault}{only}")).unwrap();
                let made = app.sessions_made();
                let reply = side.create(&app, &key).await;
                if fails {
                    side.unavailable(&reply, &key);
                    assert_eq!(app.sessions_made(), made, "{key}");
                } else if reply.status != 201 {
                    side.unavailable(&reply, &key);
                }
                calm(&app);
                let reply = side.create(&app, &key).await.expect(201);
                assert_eq!(basket(&reply), [("bouquet_roses".to_owned(), 1)], "{side:?} {key}");
                assert_eq!(reply.text("/status"), side.ready_status(), "{side:?} {key}");
                assert_eq!(app.sessions_made(), made + 1, "{side:?} {key}");
            }
        }
    }
}

#[tokio::test]
async fn an_update_on_a_failing_shop_is_done_once_it_is_back() {
    let app = TestApp::new().await;
    let mut bought = 0;
    for side in BOTH {
        for (fault, fails) in FAULTS {
            let id = side.ready(&app).await;
            let before = side.get(&app, &id).await;
            app.flower().set_fault(fault).unwrap();
            let reply = side.update(&app, fault, &id).await;
            if fails || reply.status != 200 {
                side.unavailable(&reply, fault);
                let read = side.get(&app, &id).await.expect(200);
                assert_eq!(basket(&read), basket(&before), "{side:?} {fault}");
                assert_eq!(read.json["totals"], before.json["totals"], "{side:?} {fault}");
            }
            calm(&app);
            let reply = side.update(&app, fault, &id).await.expect(200);
            let wanted = [("bouquet_roses".to_owned(), 2), ("pot_ceramic".to_owned(), 1)];
            assert_eq!(basket(&reply), wanted, "{side:?} {fault}");
            assert_eq!(reply.total("subtotal"), 2 * 3500 + 1500, "{side:?} {fault}");
            let done = side.complete(&app, &format!("{fault}-done"), &id).await.expect(200);
            assert_eq!(done.text("/status"), "completed", "{side:?} {fault}: {}", done.json);
            bought += 1;
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
        }
    }
}

#[tokio::test]
async fn a_read_on_a_failing_shop_shows_what_was_known() {
    let app = TestApp::new().await;
    for side in BOTH {
        for (fault, _) in FAULTS {
            let id = side.ready(&app).await;
            let before = side.get(&app, &id).await;
            app.pass(60);
            app.flower().set_fault(fault).unwrap();
            let read = side.get(&app, &id).await.expect(200);
            assert_eq!(basket(&read), basket(&before), "{side:?} {fault}");
            assert_eq!(read.text("/status"), side.ready_status(), "{side:?} {fault}");
            calm(&app);
            app.pass(60);
            let read = side.get(&app, &id).await.expect(200);
            assert_eq!(read.json["totals"], before.json["totals"], "{side:?} {fault}");
        }
    }
}

/// The look before the order fails: nothing was sent, the key is free, the next try buys.
#[tokio::test]
async fn a_completion_that_cannot_look_first_places_nothing() {
    let app = TestApp::new().await;
    let mut bought = 0;
    for side in BOTH {
        for (fault, fails) in FAULTS {
            let id = side.ready(&app).await;
            app.flower().set_fault(&format!("{fault},only=batch")).unwrap();
            let reply = side.complete(&app, fault, &id).await;
            if fails {
                side.unavailable(&reply, fault);
                assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
                assert_eq!(side.get(&app, &id).await.text("/status"), side.ready_status(), "{fault}");
            }
            calm(&app);
            if reply.status != 200 || reply.text("/status") != "completed" {
                let reply = side.complete(&app, fault, &id).await.expect(200);
                assert_eq!(reply.text("/status"), "completed", "{side:?} {fault}: {}", reply.json);
            }
            bought += 1;
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
        }
    }
}

#[tokio::test]
async fn an_order_that_was_never_made_is_made_after_settling() {
    let app = TestApp::new().await;
    let mut bought = 0;
    for side in BOTH {
        for fault in ["http_500", "maintenance"] {
            let id = side.ready(&app).await;
            app.flower().set_fault(&format!("{fault},count=1,only=checkout")).unwrap();
            let waiting = side.complete(&app, fault, &id).await.expect(200);
            assert_eq!(waiting.text("/status"), "complete_in_progress", "{side:?} {fault}");
            app.app.tend().await;
            assert_eq!(
                side.get(&app, &id).await.text("/status"),
                "complete_in_progress",
                "not settled at once"
            );
            settled(&app, side, &id, side.ready_status()).await;
            assert_eq!(orders(&app).len(), bought);
            let done = side.complete(&app, fault, &id).await.expect(200);
            assert_eq!(done.text("/status"), "completed", "{side:?} {fault}: {}", done.json);
            bought += 1;
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
        }
    }
}

/// Requirements: A-032.
#[tokio::test]
async fn an_open_attempt_is_settled_after_a_restart() {
    let mut app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        let id = side.ready(&app).await;
        app.flower().set_fault("lost_answer,count=1,only=checkout").unwrap();
        side.complete(&app, "k", &id).await.expect(200);
        app.app.rest().await;
        app = app.restarted().await;
        assert_eq!(side.get(&app, &id).await.text("/status"), "complete_in_progress");
        settled(&app, side, &id, "completed").await;
        let last = side.complete(&app, "k", &id).await.expect(200);
        assert_eq!(last.text("/status"), "completed");
        assert_eq!(orders(&app).len(), bought + 1);
    }
}

/// The settler itself meets a failing shop: it comes again, and decides nothing meanwhile.
#[tokio::test]
async fn settling_waits_for_a_shop_that_fails() {
    let app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        let id = side.ready(&app).await;
        app.flower().set_fault("lost_answer,count=1,only=checkout").unwrap();
        side.complete(&app, "k", &id).await.expect(200);
        for fault in ["http_500", "html", "maintenance", "limiter", "lost_answer"] {
            app.flower().set_fault(fault).unwrap();
            for _ in 0..3 {
                app.app.tend().await;
                app.pass(120);
            }
            assert_eq!(side.get(&app, &id).await.text("/status"), "complete_in_progress", "{fault}");
            calm(&app);
        }
        settled(&app, side, &id, "completed").await;
        assert_eq!(orders(&app).len(), bought + 1);
    }
}

/// Deadlines: a cart write that takes too long may have happened; the order that takes too long is looked for.
#[tokio::test]
async fn a_shop_that_is_too_slow_is_not_waited_for() {
    let app = TestApp::with(|settings| {
        for shop in settings.shops.values_mut() {
            (shop.deadlines.read_secs, shop.deadlines.write_secs, shop.deadlines.place_secs) = (1, 1, 1);
        }
    })
    .await;
    let ids = [Ucp.ready(&app).await, Acp.ready(&app).await];
    app.flower().set_fault("timeout_ms=1500,count=2,only=batch").unwrap();
    let [one, two] = &ids;
    let (ucp, acp) = tokio::join!(Ucp.update(&app, "k", one), Acp.update(&app, "k", two));
    Ucp.unavailable(&ucp, "slow");
    Acp.unavailable(&acp, "slow");
    calm(&app);
    app.flower().set_fault("timeout_ms=1500,count=2,only=checkout").unwrap();
    for (side, id) in BOTH.into_iter().zip(&ids) {
        let reply = side.update(&app, "k", id).await.expect(200);
        assert_eq!(reply.total("subtotal"), 2 * 3500 + 1500);
    }
    let (ucp, acp) = tokio::join!(Ucp.complete(&app, "c", one), Acp.complete(&app, "c", two));
    for (side, id, reply) in [(Ucp, one, ucp), (Acp, two, acp)] {
        assert_eq!(reply.expect(200).text("/status"), "complete_in_progress");
        settled(&app, side, id, "completed").await;
    }
    assert_eq!(orders(&app).len(), 2);
}
