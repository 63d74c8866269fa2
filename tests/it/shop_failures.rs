//! A shop that misbehaves: told as such, survived, and never two orders for one purchase.

use axum::http::Method;
use serde_json::{Value, json};
use tillgate::{
    checkout::{
        ids::{SessionId, ShopId},
        state::NewClaim,
    },
    idempotency::{Decision, Fingerprint, Scope},
};

use crate::support::{
    Reply, TestApp,
    clients::{acp_address, acp_buyer, acp_lines, acp_payment, full, lines, payment},
};

/// A protocol, and what its agent sends for the same purchase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ucp,
    Acp,
}

use Side::{Acp, Ucp};

const BOTH: [Side; 2] = [Ucp, Acp];

impl Side {
    async fn call(self, app: &TestApp, key: &str, method: Method, path: &str, body: Option<&Value>) -> Reply {
        match self {
            Self::Ucp => app.ucp().key(key).call(method, &format!("/checkout-sessions{path}"), body).await,
            Self::Acp => app.acp().key(key).call(method, &format!("/checkout_sessions{path}"), body).await,
        }
    }

    /// A create of something that can be paid at once.
    async fn create(self, app: &TestApp, key: &str) -> Reply {
        let body = match self {
            Self::Ucp => full("bouquet_roses", 1),
            Self::Acp => {
                let mut body = acp_lines("bouquet_roses", 1, "usd");
                body["buyer"] = acp_buyer();
                body["fulfillment_details"] = json!({"address": acp_address()});
                body
            }
        };
        self.call(app, key, Method::POST, "", Some(&body)).await
    }

    /// Two roses and a pot instead.
    async fn update(self, app: &TestApp, key: &str, id: &str) -> Reply {
        let (method, body) = match self {
            Self::Ucp => {
                let mut body = full("bouquet_roses", 2);
                body["line_items"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"item": {"id": "pot_ceramic"}, "quantity": 1}));
                (Method::PUT, body)
            }
            Self::Acp => (
                Method::POST,
                json!({"line_items": [{"id": "bouquet_roses", "quantity": 2}, {"id": "pot_ceramic", "quantity": 1}]}),
            ),
        };
        self.call(app, key, method, &format!("/{id}"), Some(&body)).await
    }

    async fn complete(self, app: &TestApp, key: &str, id: &str) -> Reply {
        let body = match self {
            Self::Ucp => payment("success_token"),
            Self::Acp => acp_payment("spt_test_ok"),
        };
        self.call(app, key, Method::POST, &format!("/{id}/complete"), Some(&body)).await
    }

    async fn get(self, app: &TestApp, id: &str) -> Reply {
        self.call(app, "", Method::GET, &format!("/{id}"), None).await
    }

    async fn ready(self, app: &TestApp) -> String {
        let reply = self.create(app, &tillgate::clock::Ids.uuid()).await.expect(201);
        assert_eq!(reply.text("/status"), self.ready_status(), "{}", reply.json);
        reply.id()
    }

    const fn ready_status(self) -> &'static str {
        match self {
            Self::Ucp => "ready_for_complete",
            Self::Acp => "ready_for_payment",
        }
    }

    /// The answer says that the shop cannot be asked, and when to come again.
    #[track_caller]
    fn unavailable(self, reply: &Reply, what: &str) {
        assert_eq!(reply.status, 503, "{self:?} {what}: {}", reply.json);
        let after: u64 = reply.header("retry-after").unwrap_or_default().parse().unwrap();
        assert!((1..=3600).contains(&after), "{self:?} {what}: {after}");
        match self {
            Self::Ucp => assert_eq!(reply.text("/code"), "service_unavailable", "{what}"),
            Self::Acp => assert_eq!(
                (reply.text("/type"), reply.text("/code")),
                ("service_unavailable", "upstream_unavailable"),
                "{what}"
            ),
        }
    }
}

fn orders(app: &TestApp) -> Vec<Value> {
    app.flower().orders().as_array().cloned().unwrap_or_default()
}

/// Item and quantity of each line.
fn basket(reply: &Reply) -> Vec<(String, i64)> {
    let lines = reply.json["line_items"].as_array().cloned().unwrap_or_default();
    let line =
        |line: &Value| (line["item"]["id"].as_str().unwrap().to_owned(), line["quantity"].as_i64().unwrap());
    lines.iter().map(line).collect()
}

fn calm(app: &TestApp) {
    app.flower().clear_faults();
}

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
async fn a_create_on_a_failing_shop_succeeds_under_the_same_key_later() {
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

/// A16: the order is made and its answer is lost. It is found, told, and never made again.
/// Requirements: A-032.
#[tokio::test]
async fn a16_a_lost_answer_is_found_again() {
    let app = TestApp::new().await;
    let mut bought = 0;
    for side in BOTH {
        for fault in ["lost_answer", "html", "500_after_payment"] {
            let id = side.ready(&app).await;
            app.flower().set_fault(&format!("{fault},count=1,only=checkout")).unwrap();
            let waiting = side.complete(&app, fault, &id).await.expect(200);
            assert_eq!(waiting.text("/status"), "complete_in_progress", "{side:?} {fault}");
            bought += 1;
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
            let again = side.complete(&app, fault, &id).await;
            match side {
                Ucp => assert_eq!(again.expect(200).text("/status"), "complete_in_progress"),
                Acp => assert_eq!(again.expect(409).text("/code"), "idempotency_in_flight"),
            }
            let update = side.update(&app, "meanwhile", &id).await.expect(200);
            assert_eq!(update.text("/status"), "complete_in_progress", "{side:?} {fault}");
            settled(&app, side, &id, "completed").await;
            let last = side.complete(&app, fault, &id).await.expect(200);
            assert_eq!(last.text("/status"), "completed", "{side:?} {fault}");
            assert_eq!(side.complete(&app, fault, &id).await.bytes, last.bytes, "{side:?} {fault}");
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
        }
    }
}

/// Rounds of the settler until the session has this status; time passes in between.
async fn settled(app: &TestApp, side: Side, id: &str, status: &str) {
    for _ in 0..30 {
        app.app.tend().await;
        if side.get(app, id).await.text("/status") == status {
            return;
        }
        app.pass(5);
    }
    panic!("{side:?}: not {status}: {}", side.get(app, id).await.json);
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

/// B22: the shop's limiter never counts as a decline, and nothing was made.
#[tokio::test]
async fn b22_a_limited_order_frees_the_key_at_once() {
    let app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        let id = side.ready(&app).await;
        app.flower().set_fault("limiter,count=1,only=checkout").unwrap();
        let refused = side.complete(&app, "k", &id).await;
        side.unavailable(&refused, "limiter");
        let read = side.get(&app, &id).await.expect(200);
        assert_eq!((read.text("/status"), read.codes()), (side.ready_status(), Vec::new()));
        app.pass(3);
        let done = side.complete(&app, "k", &id).await.expect(200);
        assert_eq!(done.text("/status"), "completed", "{}", done.json);
        assert_eq!(orders(&app).len(), bought + 1);
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

/// B1, B2: the shop forgets the cart; it is made anew with the same lines.
#[tokio::test]
async fn b1_b2_a_forgotten_cart_is_made_anew() {
    let app = TestApp::new().await;
    for (bought, side) in BOTH.into_iter().enumerate() {
        let id = side.ready(&app).await;
        app.flower().act(&json!([{"op": "clear_sessions"}])).unwrap();
        let reply = side.update(&app, "u", &id).await.expect(200);
        assert_eq!(basket(&reply), [("bouquet_roses".to_owned(), 2), ("pot_ceramic".to_owned(), 1)]);
        app.flower().act(&json!([{"op": "wait", "seconds": 49 * 3600}])).unwrap();
        let reply = side.complete(&app, "c", &id).await.expect(200);
        let reply =
            if reply.text("/status") == "completed" { reply } else { side.complete(&app, "c2", &id).await };
        assert_eq!(reply.text("/status"), "completed", "{side:?} {}", reply.json);
        assert_eq!(orders(&app).len(), bought + 1);
    }
}

/// B5, B9: a decline and the next try are one order, and the last unit blocks nobody's own retry.
#[tokio::test]
async fn b5_b9_a_buyers_own_retry_is_not_in_the_way() {
    let app = TestApp::new().await;
    let mut body = full("20", 1);
    body["fulfillment"]["methods"][0]["destinations"][0]["address_country"] = json!("US");
    let ucp = app.general_ucp();
    let id = ucp.create(body).await.expect(201).id();
    let declined = ucp.complete(&id, "fail_token").await.expect(200);
    assert!(declined.codes().contains(&"payment_failed".to_owned()), "{}", declined.json);
    app.pass(3);
    let paid = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(paid.text("/status"), "completed", "{}", paid.json);
    assert_eq!(app.general().orders().as_array().unwrap().len(), 1);
}

/// B11, B15: totals are the shop's own to the unit, names are decoded once.
#[tokio::test]
async fn b11_b15_sums_are_the_shops_and_names_are_read_once() {
    let app = TestApp::new().await;
    let german = json!({"id": "d", "first_name": "Anna", "last_name": "Muster", "street_address": "Musterweg 5",
        "address_locality": "Berlin", "address_region": "DE-BE", "postal_code": "10115", "address_country": "DE"});
    for codes in [json!([]), json!(["PERCENT10"])] {
        let body = json!({
            "line_items": [{"item": {"id": "39"}, "quantity": 3}, {"item": {"id": "25"}, "quantity": 7}, {"item": {"id": "37"}, "quantity": 1}],
            "buyer": {"email": "anna@example.com"}, "discounts": {"codes": codes},
            "fulfillment": {"methods": [{"type": "shipping", "destinations": [german]}]}
        });
        let reply = app.general_ucp().create(body).await.expect(201);
        let sum: i64 = reply.json["totals"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|total| total["type"] != "total")
            .map(|total| total["amount"].as_i64().unwrap())
            .sum();
        assert_eq!(sum, reply.total("total"), "{}", reply.json["totals"]);
        assert_eq!(reply.text("/line_items/2/item/title"), "Zażółć gęślą jaźń – “mug” & Tee 🎁");
        app.general_ucp().complete(&reply.id(), "success_token").await.expect(200);
        let order = app.general().orders().as_array().unwrap().last().cloned().unwrap();
        let total = order["total"].as_str().unwrap().replace('.', "");
        assert_eq!(total.parse::<i64>().unwrap(), reply.total("total"), "{order}");
    }
}

/// B18: a rate that is not offered any more is not kept.
#[tokio::test]
async fn b18_a_rate_of_the_old_address_is_not_kept() {
    let app = TestApp::new().await;
    let mut body = full("bouquet_roses", 1);
    body["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "exp-ship-us"}]);
    let created = app.ucp().create(body.clone()).await.expect(201);
    assert_eq!(created.text("/fulfillment/methods/0/groups/0/selected_option_id"), "exp-ship-us");
    let address = &mut body["fulfillment"]["methods"][0]["destinations"][0];
    (address["address_country"], address["address_region"], address["postal_code"]) =
        (json!("DE"), json!("DE-BE"), json!("10115"));
    let moved = app.ucp().update(&created.id(), body).await.expect(200);
    assert_ne!(
        moved.json.pointer("/fulfillment/methods/0/groups/0/selected_option_id"),
        Some(&json!("exp-ship-us"))
    );
    assert!(!moved.codes().is_empty(), "the agent is told: {}", moved.json);
    let refused = app.ucp().complete(&created.id(), "success_token").await.expect(200);
    assert_ne!(refused.text("/status"), "completed");
    assert_eq!(orders(&app).len(), 0);
}

/// B19: quick changes are taken one after another.
#[tokio::test]
async fn b19_quick_changes_lose_nothing() {
    let app = TestApp::new().await;
    let id = Ucp.ready(&app).await;
    let (ucp, quantities) = (app.ucp(), [2_u32, 3, 4, 5, 6]);
    let replies = futures::future::join_all(
        quantities.map(|quantity| ucp.update(&id, full("bouquet_roses", quantity))),
    )
    .await;
    for (reply, quantity) in replies.into_iter().zip(quantities) {
        assert_eq!(basket(&reply.expect(200)), [("bouquet_roses".to_owned(), i64::from(quantity))]);
    }
    let last = basket(&ucp.get(&id).await);
    assert!(last.len() == 1 && last[0].1 >= 2, "{last:?}");
    ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(
        orders(&app)[0]["total"].as_str().unwrap().split('.').next(),
        Some((35 * last[0].1).to_string().as_str())
    );
}

/// C2, C13: a failure is not kept; who waits for the turn reads again once it is won.
#[tokio::test]
async fn c2_c13_a_waiter_reads_what_the_first_has_left() {
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

/// C5, Q: a request dies between its claim and its end. The next start frees the key and leaves the cart, which
/// may hold half a change.
#[tokio::test]
async fn c5_a_claim_of_a_dead_process_is_freed_by_the_next_start() {
    let app = TestApp::new().await;
    let id = Ucp.ready(&app).await;
    let session = SessionId::new(id.clone());
    let caller = format!("ucp:{}", crate::support::clients::PROFILE);
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
