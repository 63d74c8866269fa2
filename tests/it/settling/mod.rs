//! Settling, step by step, at a shop whose every answer the test decides: what is looked for, when the cart is emptied
//! as a fence, what is decided and when (`exactly-once.md` §5), and orders that come late.
//!
//! Two gateways share one state where one of them sleeps: the other settles what the first has left.

mod desk;
mod drafts;
mod withdrawn;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use serde_json::{Value, json};
use tillgate::checkout::{
    ids::{SessionId, ShopId},
    points::{Point, Probe},
    service::{Finding, Resolution},
    session::{AttemptEnd, CaseReason},
    store::{FoundOrder, FoundState},
};
use tillgate::clock::Clock as _;
use tokio::sync::Notify;

use self::desk::{Answer, Desk, codes, ends, order};

#[tokio::test]
async fn an_order_that_is_there_is_found_by_the_first_look_and_nothing_is_emptied() {
    let desk = Desk::new().await;
    desk.lose().await;
    desk.makes(7, FoundState::Placed);
    assert!(desk.settles_within(0).await);
    assert_eq!(desk.with_shop(|inner| inner.asked.clone())[..3], ["check", "place", "find"]);
    // From the shop's own time of the last look, an hour before; and no second search.
    let since = desk.shop.time() - TimeDelta::hours(1);
    assert_eq!(desk.with_shop(|inner| inner.searches.clone()), [(since, false)]);
    let told = desk.complete("k").await;
    assert_eq!((&told["status"], desk.complete("k").await), (&json!("completed"), told.clone()));
    let seen = desk.seen().await;
    assert_eq!((seen.len(), seen[0].last.shop_order.as_str(), seen[0].last.adopted), (1, "7", true));
    assert_eq!(desk.count("place"), 1);
}

#[tokio::test]
async fn a_shop_that_cannot_be_asked_is_asked_again_for_ever_and_not_too_often() {
    let desk = Desk::new().await;
    desk.lose().await;
    desk.with_shop(|inner| inner.down = true);
    assert!(!desk.settles_within(3600).await);
    assert_eq!(desk.get().await["status"], "complete_in_progress");
    let looks = desk.count("find");
    assert!((400..=460).contains(&looks), "one every 8 s: {looks}");
    assert_eq!(desk.count("empty"), 0, "nothing is done on half an answer");
    desk.with_shop(|inner| inner.down = false);
    desk.makes(7, FoundState::Placed);
    assert!(desk.settles_within(10).await, "told within 10 s of the shop's answering");
    assert_eq!(desk.get().await["status"], "completed");
}

#[tokio::test]
async fn an_order_that_was_never_made_is_known_within_a_minute_and_its_key_is_free() {
    for dead in [false, true] {
        let desk = Desk::new().await;
        desk.lose().await;
        desk.gateway.service.tend().await;
        desk.with_shop(|inner| inner.dead = dead);
        assert!(!desk.settles_within(26).await, "a POST may still run");
        assert!(desk.settles_within(60 - 28).await);
        assert_eq!(ends(&desk.stored().await), [AttemptEnd::Fenced]);
        assert_eq!(desk.count("empty"), 1);
        let searches = desk.with_shop(|inner| inner.searches.clone());
        let thorough = searches.iter().filter(|(_, thorough)| *thorough).count();
        assert_eq!(
            (thorough, searches.last().map(|last| last.1)),
            (1, Some(true)),
            "only before it is believed"
        );
        desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(8)));
        assert_eq!(desk.complete("k").await["status"], "completed", "the same key runs again");
        let bought = desk.with_shop(|inner| inner.bought.clone());
        assert_ne!(bought[0], bought[1], "never with the old cart");
    }
}

#[tokio::test]
async fn a_post_that_has_arrived_is_not_fenced_and_its_unpaid_order_is_paid_again() {
    let desk = Desk::new().await;
    desk.lose().await;
    desk.makes(7, FoundState::Pending);
    assert!(!desk.settles_within(116).await, "a payment may still run");
    assert!(desk.settles_within(10).await);
    assert_eq!(desk.count("empty"), 0);
    let told = desk.complete("k").await;
    assert_eq!((&told["status"], codes(&told)), (&json!("ready_for_complete"), vec!["payment_failed"]));
    desk.clock.advance(Duration::from_secs(3));
    desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(7)));
    assert_eq!(desk.complete("next").await["status"], "completed");
    let bought = desk.with_shop(|inner| inner.bought.clone());
    assert_eq!(bought[0], bought[1], "the same cart pays the same order");
    let seen = desk.seen().await;
    assert_eq!(
        (seen.len(), seen[0].first.state, seen[0].last.state),
        (1, FoundState::Pending, FoundState::Placed)
    );
}

#[tokio::test]
async fn an_order_that_failed_is_a_decline_and_one_that_stayed_a_draft_a_refusal() {
    for (state, end) in [(FoundState::Failed, AttemptEnd::Declined), (FoundState::Draft, AttemptEnd::Refused)]
    {
        let desk = Desk::new().await;
        desk.lose().await;
        desk.makes(7, state);
        assert!(!desk.settles_within(26).await, "{state:?}");
        assert!(desk.settles_within(10).await, "{state:?}");
        assert_eq!((ends(&desk.stored().await), desk.count("empty")), (vec![end], 0), "{state:?}");
        let told = desk.complete("k").await;
        assert_eq!((desk.count("place"), codes(&told).len()), (1, 1), "{state:?} {told}");
    }
}

#[tokio::test]
async fn a_draft_that_lists_leave_out_is_asked_for_by_name_before_nothing_is_believed() {
    for (state, end) in [(FoundState::Draft, Some(AttemptEnd::Refused)), (FoundState::Gone, None)] {
        let desk = Desk::new().await;
        desk.lose().await;
        let hidden = order(7, state, desk.shop.time());
        desk.with_shop(|inner| inner.hidden.push(hidden));
        assert_eq!(desk.settles_within(50).await, end.is_some(), "{state:?}");
        let session = desk.stored().await;
        assert_eq!(ends(&session), end.into_iter().collect::<Vec<_>>(), "{state:?}");
        assert_eq!(session.wants_review(), end.is_none(), "thrown away: it may have been paid before");
    }
}

#[tokio::test]
async fn an_unpaid_order_with_traces_of_a_payment_waits_for_the_shop_and_then_for_a_person() {
    let desk = Desk::new().await;
    desk.lose().await;
    let traced = FoundOrder { traces: true, ..order(7, FoundState::Pending, desk.shop.time()) };
    desk.with_shop(|inner| inner.orders.push(traced));
    assert!(!desk.settles_within(59 * 60).await);
    assert!(!desk.stored().await.wants_review(), "the shop still keeps it");
    assert!(!desk.settles_within(2 * 60).await);
    assert!(desk.stored().await.wants_review());
    assert_eq!(desk.get().await["status"], "complete_in_progress");
    assert_eq!(desk.complete("k").await["status"], "complete_in_progress");
    // It neither ends by time nor is it swept; and the shop may still decide it.
    desk.clock.advance(Duration::from_hours(40 * 24));
    desk.gateway.state.sweep(desk.clock.now()).await.unwrap();
    desk.makes(7, FoundState::Placed);
    assert!(desk.settles_within(2).await);
    assert_eq!(desk.get().await["status"], "completed");
    assert!(!desk.stored().await.wants_review());
}

#[tokio::test]
async fn a_cart_that_is_filled_again_after_the_fence_is_a_post_that_ended_unpaid() {
    for (left, end) in [(Some(FoundState::Pending), AttemptEnd::Declined), (None, AttemptEnd::Refused)] {
        let desk = Desk::new().await;
        desk.lose().await;
        desk.gateway.service.tend().await;
        assert_eq!(desk.count("empty"), 1, "nothing had arrived");
        desk.with_shop(|inner| inner.refills = true);
        if let Some(state) = left {
            desk.makes(7, state);
        }
        assert!(desk.settles_within(8).await, "no need to wait any longer");
        assert_eq!(ends(&desk.stored().await), [end]);
        desk.clock.advance(Duration::from_secs(3));
        desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(7)));
        desk.complete("next").await;
        let bought = desk.with_shop(|inner| inner.bought.clone());
        assert_eq!(bought[0], bought[1], "cart and order are as the shop left them");
    }
}

#[tokio::test]
async fn only_what_changed_since_the_last_look_is_of_this_attempt() {
    for (touched, end) in [(false, AttemptEnd::Fenced), (true, AttemptEnd::Declined)] {
        let desk = Desk::new().await;
        desk.makes(7, FoundState::Pending);
        desk.with_shop(|inner| inner.answers.push_back(Answer::Declined));
        assert_eq!(codes(&desk.complete("first").await), ["payment_failed"]);
        desk.clock.advance(Duration::from_hours(3));
        desk.lose().await;
        if touched {
            desk.makes(7, FoundState::Pending);
        }
        assert!(desk.settles_within(130).await);
        assert_eq!(ends(&desk.stored().await), [AttemptEnd::Declined, end], "{touched}");
        assert_eq!(desk.count("empty"), usize::from(!touched), "{touched}");
        // The order of the first attempt is older than the second: it is still looked for.
        let first = desk.with_shop(|inner| inner.searches.first().copied().unwrap().0);
        assert!(desk.with_shop(|inner| inner.searches.iter().all(|(since, _)| *since == first)));
    }
}

#[tokio::test]
async fn of_several_orders_the_oldest_is_the_order_and_the_others_are_for_a_person() {
    let desk = Desk::new().await;
    desk.lose().await;
    for id in [12, 9, 10] {
        desk.makes(id, FoundState::Placed);
    }
    desk.makes(8, FoundState::Pending);
    assert!(desk.settles_within(0).await);
    let session = desk.stored().await;
    assert_eq!(session.order.as_ref().unwrap().shop_order, "9");
    let cases: Vec<_> = session.cases.iter().map(|case| (case.shop_order.as_str(), case.reason)).collect();
    assert_eq!(cases, [("10", CaseReason::SecondOrder), ("12", CaseReason::SecondOrder)]);
    let seen: Vec<_> =
        desk.seen().await.into_iter().map(|seen| (seen.last.shop_order, seen.last.adopted)).collect();
    let wanted = [("8", false), ("9", true), ("10", false), ("12", false)];
    assert_eq!(seen, wanted.map(|(id, adopted)| (id.to_owned(), adopted)));
    assert_eq!(desk.complete("k").await["status"], "completed");
    desk.clock.advance(Duration::from_hours(90 * 24));
    desk.gateway.state.sweep(desk.clock.now()).await.unwrap();
    assert!(desk.stored().await.wants_review(), "it stays until a person has looked");
}

#[tokio::test]
async fn who_asks_brings_the_next_look_forward() {
    let desk = Desk::new().await;
    desk.lose().await;
    desk.gateway.service.tend().await;
    let looks = || desk.count("find");
    assert_eq!(looks(), 1);
    desk.clock.advance(Duration::from_secs(2));
    desk.gateway.service.tend().await;
    assert_eq!(looks(), 1, "every 5 s by itself");
    desk.get().await;
    desk.gateway.service.tend().await;
    assert_eq!(looks(), 2);
    desk.complete("k").await;
    desk.gateway.service.tend().await;
    assert_eq!(looks(), 2, "at most one in 2 s");
    desk.clock.advance(Duration::from_secs(2));
    desk.gateway.service.tend().await;
    assert_eq!(looks(), 3);
}

#[tokio::test]
async fn without_a_way_to_look_a_person_has_to_and_nothing_is_touched() {
    let desk = Desk::with(false, None).await;
    desk.lose().await;
    assert!(!desk.settles_within(3600).await);
    assert!(desk.stored().await.wants_review());
    assert_eq!(desk.with_shop(|inner| inner.asked.clone()), ["check", "draft", "place"]);
    let again = desk.complete("k").await;
    assert_eq!(
        (&again["status"], codes(&again)),
        (&json!("complete_in_progress"), vec!["order_unconfirmed"])
    );
    assert_eq!(codes(&desk.get().await), ["order_unconfirmed"]);
    // Another key is told the same, and that nothing was done.
    assert_eq!(codes(&desk.complete("other").await), ["order_unconfirmed", "complete_in_progress"]);
    let story = desk.stored().await.story;
    assert!(story.iter().any(|event| event.what.contains("no key that reads orders")), "{story:?}");
}

#[tokio::test]
async fn a_person_decides_what_no_machine_can() {
    // An order: told under the key, byte for byte from then on.
    let desk = Desk::with(false, None).await;
    desk.lose().await;
    let id = SessionId::new(desk.session.trim_start_matches('/'));
    let decide = async |desk: &Desk, finding| {
        let id = SessionId::new(desk.session.trim_start_matches('/'));
        desk.gateway.service.resolve(&id, finding).await.unwrap()
    };
    assert!(
        matches!(decide(&desk, Finding::NotPlaced).await, Resolution::NothingToDecide),
        "not in review yet"
    );
    desk.gateway.service.tend().await;
    let nobody = desk.gateway.service.resolve(&SessionId::new("chk_no"), Finding::NotPlaced).await.unwrap();
    assert!(matches!(nobody, Resolution::NoSession));
    assert!(matches!(decide(&desk, Finding::Placed("7".into())).await, Resolution::Done(_)));
    let told = desk.complete("k").await;
    assert_eq!((&told["status"], desk.complete("k").await), (&json!("completed"), told.clone()));
    let session = desk.gateway.state.session(&ShopId::new("flower"), &id).await.unwrap().unwrap();
    assert_eq!(session.order.unwrap().shop_order, "7");
    assert!(desk.seen().await[0].last.adopted);

    // None: the key is free, the old cart is emptied and left behind.
    let desk = Desk::with(false, None).await;
    desk.lose().await;
    desk.gateway.service.tend().await;
    assert!(matches!(decide(&desk, Finding::NotPlaced).await, Resolution::Done(_)));
    assert_eq!(desk.count("empty"), 1);
    desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(8)));
    assert_eq!(desk.complete("k").await["status"], "completed");
    let bought = desk.with_shop(|inner| inner.bought.clone());
    assert_ne!(bought[0], bought[1]);

    // Where orders can be looked for, only one that the shop knows is taken; and a case is closed once.
    let desk = Desk::new().await;
    desk.lose().await;
    desk.makes(7, FoundState::Unclear);
    assert!(!desk.settles_within(40).await);
    assert!(desk.stored().await.wants_review());
    assert!(matches!(decide(&desk, Finding::Placed("9".into())).await, Resolution::NotItsOrder));
    assert!(desk.stored().await.wants_review(), "nothing is written");
    desk.makes(7, FoundState::Placed);
    desk.makes(9, FoundState::Placed);
    desk.clock.advance(Duration::from_mins(10));
    assert!(desk.settles_within(2).await, "the shop has decided");
    assert!(matches!(decide(&desk, Finding::Dealt("7".into())).await, Resolution::NoCase));
    assert!(matches!(decide(&desk, Finding::Dealt("9".into())).await, Resolution::Done(_)));
    assert!(!desk.stored().await.wants_review());
}

/// Time passes between *placing* and the `POST`, as in a process that was frozen.
struct Frozen;

impl Probe for Frozen {
    fn at(&self, point: Point, _: Option<&SessionId>) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(async move {
            if point == Point::AfterP {
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(3)).await;
                tokio::time::resume();
            }
        })
    }
}

#[tokio::test]
async fn a_post_that_was_held_back_too_long_is_not_sent_and_nothing_is_waited_for() {
    let desk = Desk::with(true, Some(Arc::new(Frozen))).await;
    assert_eq!(desk.complete("k").await["status"], "complete_in_progress");
    assert_eq!(desk.count("place"), 0);
    assert!(desk.settles_within(4).await, "what was never sent needs no waiting");
    assert_eq!((ends(&desk.stored().await), desk.count("empty")), (vec![AttemptEnd::Fenced], 1));
}

/// The first gateway sleeps in its `POST`; another one takes it for lost and settles. Then the shop answers. What was
/// settled meanwhile may have been told: the sleeper's caller has to ask again, and the session is told here.
async fn late(between: impl AsyncFnOnce(&Desk)) -> (Desk, Value) {
    let desk = Desk::new().await;
    let now = Arc::new(Notify::new());
    desk.with_shop(|inner| inner.answers.push_back(Answer::Late(now.clone(), 7)));
    let (status, _) = {
        let path = format!("{}/complete", desk.session);
        let paid = crate::support::clients::payment("success_token");
        let sleeper = desk.call("POST", &path, "k", &paid);
        let meanwhile = async {
            while desk.count("place") == 0 {
                tokio::task::yield_now().await;
            }
            let other = desk.colleague();
            while desk.stored().await.attempt.is_some() {
                other.service.tend().await;
                desk.clock.advance(Duration::from_secs(5));
            }
            between(&desk).await;
            now.notify_one();
        };
        tokio::join!(sleeper, meanwhile).0
    };
    assert_eq!(status, 503);
    let told = desk.get().await;
    (desk, told)
}

#[tokio::test]
async fn an_order_that_comes_late_is_the_order_of_a_session_that_has_none() {
    let (desk, told) = late(async |_: &Desk| {}).await;
    assert_eq!(told["status"], "completed");
    let session = desk.stored().await;
    assert_eq!((session.order.as_ref().unwrap().shop_order.as_str(), session.cases.len()), ("7", 0));
    assert_eq!(ends(&session), [AttemptEnd::Fenced], "what was decided stands");
    let seen = desk.seen().await;
    assert_eq!((seen.len(), seen[0].last.adopted), (1, true));
    assert_eq!(desk.count("place"), 1);
}

#[tokio::test]
async fn an_order_that_comes_late_is_for_a_person_once_the_session_has_another_or_has_ended() {
    let cancel = async |desk: &Desk| {
        let (status, _) = desk.call("POST", &format!("{}/cancel", desk.session), "c", &json!({})).await;
        assert_eq!(status, 200);
    };
    let (desk, told) = late(cancel).await;
    assert_eq!(told["status"], "canceled", "what was told stands");
    let cases = desk.stored().await.cases;
    assert_eq!((cases.len(), cases[0].reason), (1, CaseReason::LateOrder));

    let again = async |desk: &Desk| {
        desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(8)));
        assert_eq!(desk.complete("another").await["status"], "completed");
    };
    let (desk, told) = late(again).await;
    assert_eq!(told["status"], "completed");
    let session = desk.stored().await;
    assert_eq!(session.order.unwrap().shop_order, "8");
    assert_eq!((session.cases.len(), session.cases[0].reason), (1, CaseReason::SecondOrder));
    let seen: Vec<_> =
        desk.seen().await.into_iter().map(|seen| (seen.last.shop_order, seen.last.adopted)).collect();
    assert_eq!(seen, [("7".to_owned(), false), ("8".to_owned(), true)]);
}

#[tokio::test]
async fn what_was_given_up_is_looked_for_before_the_next_order() {
    let desk = Desk::new().await;
    desk.lose().await;
    assert!(desk.settles_within(60).await);
    assert_eq!(ends(&desk.stored().await), [AttemptEnd::Fenced]);
    // It had waited at the shop for longer than anybody here.
    desk.makes(7, FoundState::Placed);
    assert_eq!(desk.complete("k").await["status"], "completed");
    assert_eq!((desk.count("place"), desk.seen().await[0].last.adopted), (1, true));
}

#[tokio::test]
async fn a_settler_and_an_owner_that_find_the_same_order_tell_the_same() {
    let desk = Desk::new().await;
    let now = Arc::new(Notify::new());
    desk.with_shop(|inner| inner.answers.push_back(Answer::Late(now.clone(), 7)));
    let sleeper = desk.complete("k");
    let meanwhile = async {
        while desk.count("place") == 0 {
            tokio::task::yield_now().await;
        }
        desk.makes(7, FoundState::Placed);
        desk.colleague().service.tend().await;
        now.notify_one();
    };
    let told = tokio::join!(sleeper, meanwhile).0;
    assert_eq!(told["status"], "completed");
    assert_eq!(desk.complete("k").await, told, "the stored answer is the same");
    let session = desk.stored().await;
    assert_eq!((ends(&session), session.cases.len()), (vec![AttemptEnd::Placed], 0));
}
