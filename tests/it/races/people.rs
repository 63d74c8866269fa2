//! Buyers who try again after a decline, and buyers who do not come through the gateway.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::future::join_all;

use super::{
    direct::Direct,
    gateway::{Gateways, Ready},
    lines::{Goods, Payment},
    rounds::{Buyers as _, Told},
    shop::{SCARCE, Shop},
};
use crate::support::{Reply, process::often};

fn one() -> Goods {
    vec![(SCARCE, 1)]
}

fn is_bought(reply: &Reply) -> bool {
    reply.status == 200 && reply.text("/status") == "completed"
}

/// A gateway where declined units are held for two seconds, and the last unit.
async fn last_unit() -> Option<(Shop, Gateways, Vec<Ready>)> {
    let shop = Shop::open(true).await;
    let gateways = Gateways::open_with(&shop, "retry_hold_secs = 4\nstock_doubt_secs = 1").await?;
    shop.restock(&one()).await;
    // Of each protocol one who is declined and one who waits.
    let mut buyers = Vec::new();
    for number in 0..4 {
        buyers.push(gateways.fill(number, &one()).await);
    }
    Some((shop, gateways, buyers))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declined_buyer_can_pay_the_last_unit_and_nobody_takes_it_meanwhile() {
    for token in ["tok_declined", "tok_declined_silent"] {
        let Some((shop, gateways, buyers)) = last_unit().await else { return };
        let (declined, rival) = (&buyers[0], &buyers[1]);
        let told = gateways.complete_with(declined, token).await;
        assert!(!is_bought(&told), "{}", told.json);
        let refused = gateways.complete_with(rival, "tok_ok").await;
        assert!(!is_bought(&refused), "{token}: {}", refused.json);
        assert!(refused.codes().iter().any(|code| code == "out_of_stock"), "{token}: {}", refused.json);
        assert!(refused.header("retry-after").is_some(), "{token}: it is held, not sold");
        let paid = gateways.complete_with(declined, "tok_ok").await;
        assert!(is_bought(&paid), "{token}: {}", paid.json);
        assert_eq!(shop.left(&one()).await, vec![(SCARCE, 0)], "{token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_hold_of_a_declined_buyer_is_over_somebody_else_can_buy() {
    let Some((shop, gateways, buyers)) = last_unit().await else { return };
    let told = gateways.complete_with(&buyers[0], "tok_declined").await;
    assert!(!is_bought(&told), "{}", told.json);
    let begun = Instant::now();
    let mut reply = gateways.complete_with(&buyers[1], "tok_ok").await;
    while !is_bought(&reply) {
        assert!(begun.elapsed() < Duration::from_secs(20), "never free: {}", reply.json);
        tokio::time::sleep(Duration::from_millis(200)).await;
        reply = gateways.complete_with(&buyers[1], "tok_ok").await;
    }
    let after = begun.elapsed();
    println!("free {:.1} s after the decline, held for 4 s", after.as_secs_f32());
    assert!(after > Duration::from_secs(3), "{after:?}");
    assert_eq!(shop.left(&one()).await, vec![(SCARCE, 0)]);
    let late = gateways.complete_with(&buyers[0], "tok_ok").await;
    assert!(!is_bought(&late), "{}", late.json);
}

/// People buy in the shop itself at the same moment: that race is the shop's. What agents are told is true all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_beside_people_are_refused_late_but_never_told_of_an_order_that_is_not_there() {
    let rounds = often("ROUNDS", 3);
    let shop = Shop::open(true).await;
    let Some(gateways) = Gateways::open(&shop).await else { return };
    let people = Direct(&shop);
    let (mut by_agents, mut by_people, mut oversold) = (0, 0, 0);
    for _ in 0..rounds {
        shop.restock(&vec![(SCARCE, 4)]).await;
        let before = shop.placed().await;
        let wanted = one();
        let agents = join_all((0..6).map(|number| gateways.fill(number, &wanted))).await;
        let carts = join_all((0..4).map(|number| people.fill(number, &wanted))).await;
        let agents = join_all(agents.into_iter().map(|cart| gateways.buy(cart, Payment::Card)));
        let bought = join_all(carts.into_iter().map(|cart| people.buy(cart, Payment::Card)));
        let (agents, bought) = futures::future::join(agents, bought).await;
        let orders = |told: &[Told]| -> BTreeSet<u64> {
            told.iter()
                .filter_map(|told| if let Told::Bought(order) = told { Some(*order) } else { None })
                .collect()
        };
        let placed: BTreeSet<u64> = shop.placed().await.difference(&before).copied().collect();
        let (ours, theirs) = (orders(&agents), orders(&bought));
        assert!(ours.is_disjoint(&theirs), "one order for each");
        assert_eq!(&ours | &theirs, placed, "all that were told are there, and no others");
        by_agents += ours.len();
        by_people += theirs.len();
        oversold += placed.len().saturating_sub(4);
    }
    println!(
        "{rounds} rounds of 4 units, 6 agents and 4 people: {by_agents} and {by_people} orders, {oversold} oversold beside people"
    );
}
