//! Answers that are lost, late or doubled: one order or none, found out without a person where the orders can be read
//! (W2, W3, W18 to W21, W42; E1, E5), within the times of `product.md` §5.
//!
//! Time is the gateway's and the shop's own, moved by the test; as long as the shop is at work it passes as on the wall.

use std::{sync::Arc, time::Duration};

use chrono::{TimeZone as _, Utc};
use tillgate::{
    checkout::ids::{SessionId, ShopId},
    clock::ManualClock,
};

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
    /// Nobody here can tell: a person has to, and everybody who asks is told so.
    Person(u64),
}

use Comes::{Decline, Nothing, Order, Person};

/// What the gateway has to look with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// A key that reads the shop's orders.
    Key,
    /// The same, at a shop that makes no order before the `POST`.
    KeyLate,
    /// No key, but the shop makes the order before: it is read by its own key.
    Draft,
    /// Neither.
    Blind,
}

impl Sight {
    const ALL: [Self; 4] = [Self::Key, Self::KeyLate, Self::Draft, Self::Blind];

    /// What comes of a case that a key to the orders would settle so.
    const fn comes(self, with_key: Comes) -> Comes {
        match (self, with_key) {
            (Self::Blind, _) => Person(10),
            // By an order's own key a shop does not tell whether an unpaid one was charged.
            (Self::Draft, Decline(_)) => Person(150),
            (Self::Key | Self::KeyLate | Self::Draft, comes) => comes,
        }
    }
}

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
    async fn new(sight: Sight) -> Self {
        let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()));
        let house = House::open(clock.clone(), None, None, |settings| {
            for shop in settings.shops.values_mut() {
                shop.deadlines.place_secs = 1;
                if matches!(sight, Sight::Draft | Sight::Blind) {
                    shop.wc_v3 = None;
                }
            }
        })
        .await;
        if matches!(sight, Sight::KeyLate | Sight::Blind) {
            house.shop.set_fault("late_draft").unwrap();
        }
        Self { house, clock }
    }

    /// Lets the gateway settle until GET tells an end: the answer, and the seconds that passed. At first as on the wall.
    async fn settled(&self, side: Side, id: &str, most: u64) -> (Reply, u64) {
        let mut passed = Duration::ZERO;
        let step = |passed: Duration| if passed < Duration::from_secs(4) { (100, 100) } else { (5, 500) };
        loop {
            self.house.apps[0].tend().await;
            let told = self.house.get(0, side, id).await.expect(200);
            let ended = told.text("/status") != "complete_in_progress" || wants_a_person(side, &told);
            if ended || passed.as_secs() > most {
                return (told, passed.as_secs());
            }
            let (wall, moved) = step(passed);
            tokio::time::sleep(Duration::from_millis(wall)).await;
            self.clock.advance(Duration::from_millis(moved));
            passed += Duration::from_millis(moved);
        }
    }
}

/// Whether an answer says that a person has to find out.
fn wants_a_person(side: Side, told: &Reply) -> bool {
    let code = if side == Side::Ucp { "order_unconfirmed" } else { "intervention_required" };
    told.codes().iter().any(|told| told == code)
}

async fn lose(sight: Sight, side: Side, (name, wrong, token, comes): (&str, Wrong, &str, Comes)) -> String {
    let comes = sight.comes(comes);
    let place = Place::new(sight).await;
    let email = "lost@example.org";
    let id = place.house.ready(0, side, email).await;
    match wrong {
        Wrong::Line(act) => drop(place.house.proxy.next(PLACE, act)),
        Wrong::Shop(fault) => place.house.shop.set_fault(fault).unwrap(),
    }
    let first = place.house.complete(0, side, &id, "k", token).await;
    assert!(!is_final(&first), "{name}: nobody knows yet: {}", first.json);
    let (Order(most) | Nothing(most) | Decline(most) | Person(most)) = comes;
    let (told, passed) = place.settled(side, &id, most).await;
    assert!(passed <= most, "{name}, {side:?}, {sight:?}: still {} after {passed} s", told.json["status"]);
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
        Person(_) => {
            assert!(wants_a_person(side, &told), "{name}, {sight:?}: {}", told.json);
            assert_eq!(told.text("/status"), "complete_in_progress", "{name}, {sight:?}");
            told_to_wait(side, &again, name);
            let other = place.house.complete(0, side, &id, "k2", "success_token").await;
            assert!(wants_a_person(side, &other), "{name}: nothing is bought on doubt: {}", other.json);
            let state = place.house.apps[0].state();
            let kept = state.session(&ShopId::new("flower"), &SessionId::new(&id)).await.unwrap().unwrap();
            assert!(kept.wants_review(), "{name}: a person finds it in the list");
            assert_eq!(place.house.orders(email).len(), orders.len(), "{name}: {orders:?}");
            assert!(live(&orders) <= 1, "{name}: {orders:?}");
        }
    }
    let outcome = match comes {
        Order(_) => "the order",
        Nothing(_) => "no order, the key is free",
        Decline(_) => "declined",
        Person(_) => "a person, and it is said",
    };
    format!("{:<8}{:<5}{name:<48}{outcome:<28}{passed:>4} s", format!("{sight:?}"), format!("{side:?}"))
}

/// What a repeat is told of an order that a person has to find out about: in progress, with the reason.
fn told_to_wait(side: Side, again: &Reply, name: &str) {
    match side {
        Side::Ucp => {
            assert_eq!((again.status, again.text("/status")), (200, "complete_in_progress"), "{name}");
            assert!(wants_a_person(side, again), "{name}: {}", again.json);
        }
        Side::Acp => {
            assert_eq!((again.status, again.text("/code")), (409, "idempotency_in_flight"), "{name}");
            assert!(again.text("/message").contains("Do not order again"), "{name}: {}", again.json);
            assert_eq!(again.header("retry-after"), Some("60"), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_settled_by_itself_in_time() {
    for sight in Sight::ALL {
        let sides = [Side::Ucp, Side::Acp].into_iter();
        let cases = sides.flat_map(|side| CASES.iter().map(move |case| lose(sight, side, *case)));
        println!("{}", futures::future::join_all(cases).await.join("\n"));
    }
}

/// W21: a balancer repeats the POST. Both run; what the gateway calls the order is one of them, and the same for all.
#[tokio::test]
async fn a_post_that_a_balancer_repeats_is_one_order_for_the_agent() {
    for side in [Side::Ucp, Side::Acp] {
        let place = Place::new(Sight::Key).await;
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
