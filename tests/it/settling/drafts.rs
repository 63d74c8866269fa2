//! Shops whose orders nobody can look for, but which name an order before it is placed: it is read by its key.

use serde_json::json;
use tillgate::checkout::{
    session::AttemptEnd,
    store::{Draft, FoundState},
};

use super::desk::{Answer, Desk, codes, ends};

/// A shop without a key to its orders that makes order 7 of the cart, and an answer that is lost.
async fn lost(fresh: bool) -> Desk {
    let desk = Desk::with(false, None).await;
    let draft = Draft { shop_order: "7".into(), key: "wc_order_7".into(), fresh };
    desk.with_shop(|inner| inner.draft = Some(draft));
    desk.makes(7, if fresh { FoundState::Draft } else { FoundState::Pending });
    desk.lose().await;
    desk
}

#[tokio::test]
async fn a_placed_order_is_found_by_the_key_that_it_was_named_with() {
    let desk = lost(true).await;
    desk.makes(7, FoundState::Placed);
    assert!(desk.settles_within(0).await);
    assert_eq!(desk.with_shop(|inner| inner.asked.clone())[..4], ["check", "draft", "place", "find by key"]);
    assert_eq!(desk.get().await["status"], "completed");
    assert_eq!(desk.stored().await.order.unwrap().shop_order, "7");
    assert_eq!((desk.complete("k").await["status"].clone(), desk.count("place")), (json!("completed"), 1));
}

#[tokio::test]
async fn a_draft_that_no_post_touched_is_no_order_and_the_key_is_free() {
    let desk = lost(true).await;
    desk.gateway.service.tend().await;
    assert_eq!(desk.count("empty"), 1, "our own naming of it is no sign of a POST");
    assert!(!desk.settles_within(26).await, "a POST may still run");
    assert!(desk.settles_within(60 - 28).await);
    assert_eq!(ends(&desk.stored().await), [AttemptEnd::Fenced]);
    desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(8)));
    assert_eq!(desk.complete("k").await["status"], "completed", "the same key runs again");
    let bought = desk.with_shop(|inner| inner.bought.clone());
    assert_ne!(bought[0], bought[1], "never with the old cart");
}

#[tokio::test]
async fn an_order_that_failed_is_a_decline() {
    let desk = lost(true).await;
    desk.makes(7, FoundState::Failed);
    assert!(desk.settles_within(40).await);
    assert_eq!((ends(&desk.stored().await), desk.count("empty")), (vec![AttemptEnd::Declined], 0));
    assert_eq!(codes(&desk.complete("k").await), ["payment_failed"]);
}

/// A shop tells nothing of a payment's traces by that key, and of an older order not whether this attempt touched it.
#[tokio::test]
async fn what_the_key_cannot_tell_is_for_a_person_after_two_minutes() {
    for (fresh, state) in [
        (true, Some(FoundState::Pending)),
        (false, Some(FoundState::Pending)),
        (true, Some(FoundState::Gone)),
        (true, Some(FoundState::Unclear)),
        (true, None),
    ] {
        let desk = lost(fresh).await;
        match state {
            Some(state) => desk.makes(7, state),
            None => desk.with_shop(|inner| inner.orders.clear()),
        }
        assert!(!desk.settles_within(130).await, "{fresh} {state:?}");
        assert!(desk.stored().await.wants_review(), "{fresh} {state:?}");
        assert_eq!(codes(&desk.get().await), ["order_unconfirmed"]);
        desk.makes(7, FoundState::Placed);
        assert!(desk.settles_within(700).await, "it is still looked at");
        assert_eq!(desk.get().await["status"], "completed");
        assert!(!desk.stored().await.wants_review());
    }
}

#[tokio::test]
async fn a_decline_is_looked_at_once_and_keeps_nobody_from_trying_again() {
    let desk = Desk::with(false, None).await;
    desk.with_shop(|inner| {
        inner.draft = Some(Draft { shop_order: "7".into(), key: "wc_order_7".into(), fresh: true });
    });
    desk.makes(7, FoundState::Pending);
    desk.with_shop(|inner| inner.answers.push_back(Answer::Declined));
    assert_eq!(codes(&desk.complete("a").await), ["payment_failed"]);
    desk.clock.advance(std::time::Duration::from_secs(3));
    desk.with_shop(|inner| inner.answers.push_back(Answer::Placed(7)));
    assert_eq!(desk.complete("b").await["status"], "completed");
    // The payment came through after all: no second one.
    let desk = Desk::with(false, None).await;
    desk.with_shop(|inner| {
        inner.draft = Some(Draft { shop_order: "7".into(), key: "wc_order_7".into(), fresh: true });
    });
    desk.makes(7, FoundState::Placed);
    desk.with_shop(|inner| inner.answers.push_back(Answer::Declined));
    assert_eq!(desk.complete("a").await["status"], "completed");
}
