//! Answers that are lost, late or doubled: one order or none, found out without a person where the orders can be read
//! (W2, W3, W18 to W21, W42; E1, E5), within the times of `product.md` §5.
//!
//! Time is the gateway's and the shop's own, moved by the test; as long as the shop is at work it passes as on the wall.

use std::{sync::Arc, time::Duration};

use chrono::{TimeZone as _, Utc};
use tillgate::clock::ManualClock;

use super::{house::House, live, order_number};
use crate::support::{
    Reply,
    chaos::Act,
    process::{Side, is_final},
};

const PLACE: &str = "POST /wp-json/wc/store/v1/checkout";

/// What goes wrong with the one `POST`.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    /// On its way.
    Line(Act),
    /// At the shop: a fault of it.
    Shop(&'static str),
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// The order, in so many seconds.
    Order(u64),
    /// No order; the key is free, so that the repeated request buys.
    Nothing(u64),
    /// An unpaid order; the key is answered with the decline.
    Decline(u64),
}

use Comes::{Decline, Nothing, Order};

const CASES: &[(&str, Wrong, &str, Comes)] = &[
    ("cut before it was sent", Wrong::Line(Act::CutBefore), "success_token", Nothing(60)),
    ("cut in its middle", Wrong::Line(Act::CutInside), "success_token", Nothing(60)),
    ("cut after it was sent", Wrong::Line(Act::CutAfter), "success_token", Order(10)),
    ("cut in the answer", Wrong::Line(Act::CutAnswer), "success_token", Order(10)),
    (
        "executed seconds after its sender was cut off",
        Wrong::Line(Act::Late(Duration::from_secs(2))),
        "success_token",
        Nothing(60),
    ),
    ("no answer in time", Wrong::Shop("timeout_ms=1500,count=1,only=checkout"), "success_token", Order(10)),
    (
        "waits at the shop, its sender gone",
        Wrong::Shop("delay_ms=2500,count=1,only=checkout"),
        "success_token",
        Nothing(60),
    ),
    ("answered 500 after the payment", Wrong::Shop("500_after_payment,count=1"), "success_token", Order(10)),
    ("answered with a page", Wrong::Shop("html,count=1,only=checkout"), "success_token", Order(10)),
    ("noisy decline, cut off", Wrong::Line(Act::CutAfter), "fail_token", Decline(150)),
    ("silent decline, cut off", Wrong::Line(Act::CutAfter), "tok_declined_silent", Decline(150)),
    (
        "slow decline that fills the emptied cart again",
        Wrong::Shop("timeout_ms=1,count=1,only=checkout"),
        "tok_slow_declined",
        Decline(150),
    ),
];

/// A gateway, its shop, and their time.
struct Place {
    house: House,
    clock: Arc<ManualClock>,
}

impl Place {
    async fn new(wc_v3: bool) -> Self {
        let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()));
        let house = House::open(clock.clone(), None, None, |settings| {
            for shop in settings.shops.values_mut() {
                shop.deadlines.place_secs = 1;
                if !wc_v3 {
                    shop.wc_v3 = None;
                }
            }
        })
        .await;
        Self { house, clock }
    }

    /// Lets the gateway settle until GET tells an end: the answer, and the seconds that passed. At first as on the wall.
    async fn settled(&self, side: Side, id: &str, most: u64) -> (Reply, u64) {
        let mut passed = Duration::ZERO;
        let step = |passed: Duration| if passed < Duration::from_secs(4) { (100, 100) } else { (5, 500) };
        loop {
            self.house.apps[0].tend().await;
            let told = self.house.get(0, side, id).await.expect(200);
            if told.text("/status") != "complete_in_progress" || passed.as_secs() > most {
                return (told, passed.as_secs());
            }
            let (wall, moved) = step(passed);
            tokio::time::sleep(Duration::from_millis(wall)).await;
            self.clock.advance(Duration::from_millis(moved));
            passed += Duration::from_millis(moved);
        }
    }
}

async fn lose(side: Side, (name, wrong, token, comes): (&str, Wrong, &str, Comes)) -> String {
    let place = Place::new(true).await;
    let email = "lost@example.org";
    let id = place.house.ready(0, side, email).await;
    match wrong {
        Wrong::Line(act) => drop(place.house.proxy.next(PLACE, act)),
        Wrong::Shop(fault) => place.house.shop.set_fault(fault).unwrap(),
    }
    let first = place.house.complete(0, side, &id, "k", token).await;
    assert!(!is_final(&first), "{name}: nobody knows yet: {}", first.json);
    let (Order(most) | Nothing(most) | Decline(most)) = comes;
    let (told, passed) = place.settled(side, &id, most).await;
    assert!(passed <= most, "{name}, {side:?}: still {} after {passed} s", told.json["status"]);
    let again = place.house.complete(0, side, &id, "k", token).await;
    let twice = place.house.complete(0, side, &id, "k", token).await;
    assert_eq!((twice.status, &twice.bytes), (again.status, &again.bytes), "{name}");
    let orders = place.house.orders(email);
    match comes {
        Order(_) => {
            assert_eq!(told.text("/status"), "completed", "{name}: {}", told.json);
            assert_eq!(order_number(&again), order_number(&told), "{name}: the key tells what GET tells");
            assert_eq!((orders.len(), live(&orders)), (1, 1), "{name}: {orders:?}");
        }
        Nothing(_) => {
            assert_eq!(again.text("/status"), "completed", "{name}: {}", again.json);
            assert_eq!(live(&orders), 1, "{name}: {orders:?}");
        }
        Decline(_) => {
            assert!(again.codes().iter().any(|code| code.contains("payment")), "{name}: {}", again.json);
            assert_eq!(live(&orders), 0, "{name}: {orders:?}");
            place.clock.advance(Duration::from_secs(3));
            let paid = place.house.complete(0, side, &id, "k2", "success_token").await.expect(200);
            assert_eq!(paid.text("/status"), "completed", "{name}: {}", paid.json);
            assert_eq!(live(&place.house.orders(email)), 1, "{name}");
        }
    }
    format!("{side:?}: {name}: {comes:?}, settled after {passed} s")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_settled_by_itself_in_time() {
    let cases =
        [Side::Ucp, Side::Acp].into_iter().flat_map(|side| CASES.iter().map(move |case| lose(side, *case)));
    let told = futures::future::join_all(cases).await;
    println!("{}", told.join("\n"));
}

/// W21: a balancer repeats the POST. Both run; what the gateway calls the order is one of them, and the same for all.
#[tokio::test]
async fn a_post_that_a_balancer_repeats_is_one_order_for_the_agent() {
    for side in [Side::Ucp, Side::Acp] {
        let place = Place::new(true).await;
        let id = place.house.ready(0, side, "twice@example.org").await;
        drop(place.house.proxy.next(PLACE, Act::Twice));
        let first = place.house.complete(0, side, &id, "k", "success_token").await;
        if !is_final(&first) {
            place.settled(side, &id, 60).await;
        }
        let told = place.house.complete(0, side, &id, "k", "success_token").await.expect(200);
        assert_eq!(told.text("/status"), "completed", "{}", told.json);
        let orders = place.house.orders("twice@example.org");
        let ours = orders
            .iter()
            .find(|order| order["id"].as_u64().map(|id| id.to_string()).as_deref() == order_number(&told));
        assert!(ours.is_some(), "{orders:?}");
        println!("{side:?}: the shop got the POST twice and has {} order(s)", orders.len());
    }
}

/// Without a key that reads orders nothing tells a placed order from a lost one: a person has to, and it is said.
#[tokio::test]
async fn without_a_way_to_look_a_lost_answer_waits_for_a_person_and_says_so() {
    for side in [Side::Ucp, Side::Acp] {
        let place = Place::new(false).await;
        let id = place.house.ready(0, side, "blind@example.org").await;
        drop(place.house.proxy.next(PLACE, Act::CutAfter));
        let first = place.house.complete(0, side, &id, "k", "success_token").await;
        assert!(!is_final(&first), "{}", first.json);
        let (told, _) = place.settled(side, &id, 300).await;
        assert_eq!(told.text("/status"), "complete_in_progress", "{}", told.json);
        let again = place.house.complete(0, side, &id, "k", "success_token").await;
        assert!(!is_final(&again), "nothing is made up: {}", again.json);
        let other = place.house.complete(0, side, &id, "k2", "success_token").await;
        assert!(!is_final(&other), "nothing is bought on doubt: {}", other.json);
        assert_eq!(live(&place.house.orders("blind@example.org")), 1);
        println!("{side:?}: without a read key: {} {:?}", told.json["status"], told.codes());
    }
}
