//! A checkout's own unpaid order keeps units back, also from its own buyer (E7): cancelled with a key that may write,
//! told without one; and E9, an order that is cancelled and paid all the same.

use std::{sync::Arc, time::Duration};

use axum::http::Method;
use chrono::{TimeZone as _, Utc};
use serde_json::{Value, json};
use tillgate::{
    checkout::ids::{SessionId, ShopId},
    clock::ManualClock,
};

use super::{house::House, live};
use crate::support::process::{Side, purchase};

const EMAIL: &str = "own@example.org";

async fn shop(writes: bool) -> (House, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()));
    let house = House::open(clock.clone(), None, None, |settings| {
        for key in settings.shops.values_mut().filter_map(|shop| shop.wc_v3.as_mut()) {
            key.writes = writes;
        }
    })
    .await;
    (house, clock)
}

/// Whether somebody else could buy the rose.
async fn is_on_sale(house: &House, side: Side) -> bool {
    let body = purchase(side, "other@example.org");
    let told = house.call(0, side, Method::POST, "", &tillgate::clock::Ids.uuid(), Some(&body)).await;
    let ready = if side == Side::Ucp { "ready_for_complete" } else { "ready_for_payment" };
    told.status == 201 && told.json["status"] == ready
}

/// The last rose: its payment was declined without a word, and the shop keeps it back for that order.
async fn declined(house: &House, clock: &ManualClock, side: Side) -> String {
    house.shop.act(&json!([{"op": "stock", "product": "bouquet_roses", "quantity": 1}])).unwrap();
    let id = house.ready(0, side, EMAIL).await;
    let told = house.complete(0, side, &id, "first", "tok_declined_silent").await.expect(200);
    assert!(told.codes().iter().any(|code| code.starts_with("payment_")), "{}", told.json);
    clock.advance(Duration::from_secs(3));
    id
}

/// The buyer wants it sent faster: another total, so that the shop makes another order.
async fn faster(house: &House, side: Side, id: &str) -> crate::support::Reply {
    let body = match side {
        Side::Ucp => {
            let mut body = purchase(side, EMAIL);
            body["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": "exp-ship-us"}]);
            body
        }
        Side::Acp => json!({"selected_fulfillment_options":
            [{"type": "shipping", "option_id": "exp-ship-us", "item_ids": ["li_1"]}]}),
    };
    let method = if side == Side::Ucp { Method::PUT } else { Method::POST };
    house.call(0, side, method, &format!("/{id}"), "faster", Some(&body)).await.expect(200)
}

fn statuses(house: &House) -> Vec<Value> {
    house.orders(EMAIL).iter().map(|order| order["status"].clone()).collect()
}

#[tokio::test]
async fn the_last_unit_can_be_bought_by_the_buyer_whose_payment_was_declined() {
    for side in [Side::Ucp, Side::Acp] {
        let (house, clock) = shop(true).await;
        let id = declined(&house, &clock, side).await;
        faster(&house, side, &id).await;
        let paid = house.complete(0, side, &id, "second", "success_token").await.expect(200);
        assert_eq!(paid.text("/status"), "completed", "{}", paid.json);
        assert_eq!(live(&house.orders(EMAIL)), 1, "{:?}", statuses(&house));
        assert!(statuses(&house).contains(&json!("cancelled")), "{:?}", statuses(&house));
    }
}

#[tokio::test]
async fn without_a_key_that_writes_the_agent_is_told_what_keeps_the_unit_back() {
    for side in [Side::Ucp, Side::Acp] {
        let (house, clock) = shop(false).await;
        let id = declined(&house, &clock, side).await;
        let changed = faster(&house, side, &id).await;
        let paid = house.complete(0, side, &id, "second", "success_token").await.expect(200);
        assert_ne!(paid.text("/status"), "completed", "{}", paid.json);
        let code = if side == Side::Ucp { "unpaid_order_holds_items" } else { "limited_availability" };
        let told = [changed.codes(), paid.codes()].concat();
        assert!(told.iter().any(|told| told == code), "{told:?} {}", paid.json);
        assert_eq!(live(&house.orders(EMAIL)), 0);
    }
}

#[tokio::test]
async fn the_order_of_a_session_that_was_given_up_is_cancelled_and_one_that_is_paid_all_the_same_is_told() {
    for side in [Side::Ucp, Side::Acp] {
        let (house, clock) = shop(true).await;
        let id = declined(&house, &clock, side).await;
        assert!(!is_on_sale(&house, side).await, "it is kept back");
        house.call(0, side, Method::POST, &format!("/{id}/cancel"), "c", Some(&json!({}))).await.expect(200);
        house.apps[0].tend().await;
        assert_eq!(statuses(&house), [json!("cancelled")], "{side:?}");
        assert!(is_on_sale(&house, side).await, "the unit is free again");
        // E9: its payment was under way.
        house.shop.act(&json!([{"op": "order_status", "order": "last", "status": "processing"}])).unwrap();
        clock.advance(Duration::from_secs(31));
        house.apps[0].tend().await;
        let state = house.apps[0].state();
        let kept = state.session(&ShopId::new("flower"), &SessionId::new(&id)).await.unwrap().unwrap();
        assert!(kept.wants_review(), "a person has to look: {:?}", kept.story);
        assert_eq!(house.get(0, side, &id).await.text("/status"), "canceled");
    }
}
