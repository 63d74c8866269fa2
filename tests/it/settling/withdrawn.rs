//! Unpaid orders of checkouts that are over, or whose cart has to change: cancelled at the shop, and read once more.

use std::time::Duration;

use serde_json::json;
use tillgate::checkout::{
    session::{AttemptEnd, CaseReason},
    store::FoundState,
};

use super::desk::{Answer, Desk, codes, ends};
use crate::support::clients::full;

/// A session whose payment was declined; order 7 is left unpaid.
async fn declined() -> Desk {
    let desk = Desk::new().await;
    desk.makes(7, FoundState::Pending);
    desk.with_shop(|inner| inner.answers.push_back(Answer::Declined));
    assert_eq!(codes(&desk.complete("first").await), ["payment_failed"]);
    desk.clock.advance(Duration::from_secs(3));
    desk
}

async fn cancel(desk: &Desk) {
    let (status, told) = desk.call("POST", &format!("{}/cancel", desk.session), "c", &json!({})).await;
    assert_eq!((status, &told["status"]), (200, &json!("canceled")), "{told}");
}

/// Rounds for so many seconds.
async fn rounds(desk: &Desk, seconds: u64) {
    for _ in 0..seconds / 2 {
        desk.gateway.service.tend().await;
        desk.clock.advance(Duration::from_secs(2));
    }
}

#[tokio::test]
async fn the_order_of_a_session_that_was_given_up_or_has_run_out_of_time_is_cancelled_once() {
    for expires in [false, true] {
        let desk = declined().await;
        if expires {
            desk.clock.advance(Duration::from_hours(25));
            desk.gateway.service.tend().await;
        } else {
            cancel(&desk).await;
        }
        assert_eq!(desk.count("cancel"), 0, "the wish is stored first");
        assert_eq!(desk.stored().await.withdrawals.len(), 1);
        // The process has died: another one takes the wish up.
        let other = desk.colleague();
        other.service.tend().await;
        assert_eq!(desk.count("cancel"), 1, "{expires}");
        rounds(&desk, 40).await;
        assert_eq!(desk.count("cancel"), 1, "once");
        let session = desk.stored().await;
        assert_eq!(
            (session.withdrawals.len(), session.wants_review()),
            (0, false),
            "read once more, and done"
        );
        // It may be paid all the same: it is looked at more and more seldom, for a day.
        for _ in 0..5 {
            desk.clock.advance(Duration::from_hours(6));
            desk.gateway.service.tend().await;
        }
        let looks = desk.count("find");
        desk.clock.advance(Duration::from_hours(6));
        rounds(&desk, 60).await;
        assert_eq!((desk.count("find"), desk.count("cancel")), (looks, 1), "it rests");
    }
}

#[tokio::test]
async fn a_session_with_an_order_to_cancel_is_not_swept() {
    let desk = declined().await;
    cancel(&desk).await;
    desk.with_shop(|inner| inner.down = true);
    rounds(&desk, 10).await;
    desk.clock.advance(Duration::from_hours(40 * 24));
    desk.gateway.state.sweep(tillgate::clock::Clock::now(&*desk.clock)).await.unwrap();
    desk.with_shop(|inner| inner.down = false);
    desk.gateway.service.tend().await;
    assert_eq!(desk.count("cancel"), 1, "a shop that cannot be asked is asked later");
}

/// E9: cancelling is no fence.
#[tokio::test]
async fn an_order_that_comes_back_as_paid_is_for_a_person() {
    let desk = declined().await;
    cancel(&desk).await;
    desk.gateway.service.tend().await;
    desk.makes(7, FoundState::Placed);
    rounds(&desk, 40).await;
    let session = desk.stored().await;
    let cases: Vec<_> = session.cases.iter().map(|case| (case.shop_order.as_str(), case.reason)).collect();
    assert_eq!(cases, [("7", CaseReason::LateOrder)]);
    assert_eq!(desk.seen().await[0].last.state, FoundState::Placed);
    assert_eq!(desk.get().await["status"], "canceled", "what was told stands");
}

#[tokio::test]
async fn an_order_that_was_paid_as_it_was_cancelled_is_for_a_person() {
    let desk = declined().await;
    cancel(&desk).await;
    desk.with_shop(|inner| inner.paid_meanwhile = true);
    desk.gateway.service.tend().await;
    let cases = desk.stored().await.cases;
    assert_eq!((cases.len(), cases[0].reason), (1, CaseReason::PaidWhileCancelled));
}

#[tokio::test]
async fn an_order_that_was_paid_before_or_may_be_is_not_cancelled() {
    // Paid in time.
    let desk = declined().await;
    cancel(&desk).await;
    desk.makes(7, FoundState::Placed);
    rounds(&desk, 40).await;
    assert_eq!(desk.count("cancel"), 0);
    assert_eq!(desk.stored().await.cases.len(), 1);
    // With traces of a payment.
    let desk = declined().await;
    cancel(&desk).await;
    desk.with_shop(|inner| inner.orders[0].traces = true);
    rounds(&desk, 40).await;
    assert_eq!(desk.count("cancel"), 0);
    assert!(desk.stored().await.withdrawals.is_empty());
}

/// E7, E8: a pending order keeps units and coupons back, from its own buyer too.
#[tokio::test]
async fn an_unpaid_order_is_cancelled_before_its_cart_changes_and_only_then() {
    let desk = declined().await;
    let mut same = full("roses", 1);
    same["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "std"}]);
    let (status, told) = desk.call("PUT", &desk.session.clone(), "same", &same).await;
    assert_eq!((status, desk.count("cancel")), (200, 0), "the same cart pays the same order: {told}");
    let mut two = full("roses", 2);
    two["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "std"}]);
    let (status, told) = desk.call("PUT", &desk.session.clone(), "two", &two).await;
    assert_eq!(
        (status, &told["status"], desk.count("cancel")),
        (200, &json!("ready_for_complete"), 1),
        "{told}"
    );
    desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(8)));
    assert_eq!(desk.complete("second").await["status"], "completed");
    // It comes back as paid after the other one was placed.
    desk.makes(8, FoundState::Placed);
    desk.makes(7, FoundState::Placed);
    rounds(&desk, 40).await;
    let session = desk.stored().await;
    assert_eq!(session.order.as_ref().unwrap().shop_order, "8");
    assert_eq!((session.cases.len(), session.cases[0].reason), (1, CaseReason::SecondOrder));
}

#[tokio::test]
async fn an_order_that_was_paid_meanwhile_is_adopted_instead_of_changing_its_cart() {
    let desk = declined().await;
    desk.makes(7, FoundState::Placed);
    let (status, _) = desk.call("PUT", &desk.session.clone(), "two", &full("roses", 2)).await;
    assert_eq!((status, desk.count("cancel")), (409, 0));
    assert_eq!(desk.get().await["status"], "completed");
}

#[tokio::test]
async fn a_fenced_attempt_takes_the_old_unpaid_order_with_it() {
    let desk = declined().await;
    desk.clock.advance(Duration::from_hours(1));
    desk.lose().await;
    assert!(!desk.settles_within(20).await);
    assert_eq!(desk.count("cancel"), 0, "never while an attempt is open");
    assert!(desk.settles_within(40).await);
    assert_eq!(ends(&desk.stored().await), [AttemptEnd::Declined, AttemptEnd::Fenced]);
    desk.gateway.service.tend().await;
    assert_eq!(desk.count("cancel"), 1);
}
