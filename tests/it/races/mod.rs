//! Races for scarce goods: the rounds that were recorded at a real shop, run again at the demo shop over TCP.
//!
//! `ROUNDS=50` is the full size, which takes a few minutes. Everything runs in real time, with the real second of a slow
//! card: what is shown is a race of real requests, and each is drawn out as it was at the recorded shop.

mod direct;
mod gateway;
mod lines;
mod people;
mod rounds;
mod sale;
mod shop;
mod verdict;

use futures::{StreamExt as _, stream};
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use self::{
    direct::Direct,
    gateway::Gateways,
    lines::{Arrival, Goods, Payment, Race, TABLE},
    rounds::{Round, run},
    shop::{SCARCE, Shop, THREE},
    verdict::{Count, faults, miscounted},
};
use crate::support::process::often;

/// Lines that are raced beside each other, each at a shop of its own: more would slow each other down.
const AT_ONCE: usize = 6;

fn rounds() -> u32 {
    u32::try_from(often("ROUNDS", 4)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shop_alone_oversells_as_the_recorded_one_did() {
    let race = |(number, line): (u64, &'static lines::Line)| async move {
        let shop = Shop::open(line.hold).await;
        (line, run(&shop, &Direct(&shop), &line.race(), rounds(), number).await)
    };
    let raced: Vec<_> = stream::iter((0..).zip(&TABLE)).map(race).buffered(AT_ONCE).collect().await;
    println!("{}", Count::heading());
    let mut wrong = Vec::new();
    for (line, rounds) in raced {
        println!("{} {}", line.name(), Count::of(line, &rounds).columns(line));
        wrong.extend(faults(line, &rounds).into_iter().map(|fault| format!("{}: {fault}", line.name())));
    }
    assert!(wrong.is_empty(), "not as recorded:\n{}", wrong.join("\n"));
}

/// What the gateway makes of the same races: in no round more is sold than there is, and in none less. What agents are
/// told is what the shop has, to the order and to the unit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_at_two_gateways_buy_what_there_is_and_no_more() {
    let rounds = u32::try_from(often("ROUNDS", 1)).unwrap();
    let race = |(number, line): (u64, &'static lines::Line)| async move {
        let shop = Shop::open(line.hold).await;
        let gateways = Gateways::open(&shop).await?;
        Some((line, run(&shop, &gateways, &line.race(), rounds, number).await))
    };
    let raced: Vec<_> = stream::iter((0..).zip(&TABLE)).map(race).buffered(AT_ONCE / 2).collect().await;
    println!("through two gateways on one Redis\n{}", Count::heading());
    for (line, rounds) in raced.into_iter().flatten() {
        let count = Count::of(line, &rounds);
        println!("{} {}", line.name(), count.columns(line));
        assert_eq!(miscounted(line, &rounds), Vec::<String>::new(), "{}", line.name());
        assert_eq!((count.oversold, count.undersold), (0, 0), "{}: {rounds:?}", line.name());
    }
}

/// Three scarce products in baskets, each named in another order: never more than there is, no two that wait for each
/// other, and nothing left that somebody still wants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn baskets_of_scarce_goods_are_sold_as_far_as_they_go() {
    let rounds = u32::try_from(often("ROUNDS", 1)).unwrap();
    let mut chance = StdRng::seed_from_u64(12);
    let mut shuffled = |products: &[u64]| {
        let mut basket: Goods = products.iter().map(|product| (*product, 1)).collect();
        basket.shuffle(&mut chance);
        basket
    };
    let [first, second, third] = THREE;
    let threes: Vec<Goods> = (0..10).map(|_| shuffled(&THREE)).collect();
    let pairs = [[first, second], [second, third], [third, first]];
    let twos: Vec<Goods> = (0..12).map(|at| shuffled(&pairs[at % 3])).collect();
    let race = |carts, stock: [i64; 3]| Race {
        carts,
        stock: THREE.into_iter().zip(stock).collect(),
        payment: Payment::Card,
        arrival: Arrival::Together,
    };
    let shop = Shop::open(true).await;
    let Some(gateways) = Gateways::open(&shop).await else { return };
    let of_three = run(&shop, &gateways, &race(threes, [4, 5, 6]), rounds, 13).await;
    println!("10 baskets of three, stock 4, 5, 6: {of_three:?}");
    let left = vec![(first, 0), (second, 1), (third, 2)];
    assert!(of_three.iter().all(|round| *round == Round { accepted: 4, left: left.clone() }), "{of_three:?}");
    let of_two = run(&shop, &gateways, &race(twos, [3, 3, 3]), rounds, 14).await;
    println!("12 baskets of two of three, stock 3 each: {of_two:?}");
    for round in &of_two {
        let left: Vec<i64> = round.left.iter().map(|(_, left)| *left).collect();
        assert!(left.iter().all(|left| *left >= 0), "{round:?}");
        // Four want each pair and three of each are there: if two products were left, so was one who wanted both.
        assert!(left.iter().filter(|left| **left > 0).count() <= 1, "{round:?}");
        assert_eq!(i64::from(round.accepted) * 2 + left.iter().sum::<i64>(), 9, "{round:?}");
    }
}

/// As many buyers as there is of everything, all at once.
fn enough_for_all(carts: Vec<Goods>) -> Race {
    let stock = carts[0].iter().map(|(product, _)| (*product, 8)).collect();
    Race { carts, stock, payment: Payment::Card, arrival: Arrival::Together }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_buyers_as_units_all_get_theirs() {
    let mut chance = StdRng::seed_from_u64(11);
    let baskets = (0..8).map(|_| {
        let mut basket = THREE.map(|product| (product, 1));
        basket.shuffle(&mut chance);
        basket.to_vec()
    });
    for (what, carts) in
        [("one product", vec![vec![(SCARCE, 1)]; 8]), ("baskets of three", baskets.collect())]
    {
        let race = enough_for_all(carts);
        let shop = Shop::open(true).await;
        let ended = run(&shop, &Direct(&shop), &race, rounds().min(15), 11).await;
        let accepted: u32 = ended.iter().map(|round| round.accepted).sum();
        println!("8 carts at once, 8 units, {what}: {accepted} of {} accepted", ended.len() * 8);
        let left = race.stock.iter().map(|(product, _)| (*product, 0)).collect();
        let all = Round { accepted: 8, left };
        assert!(ended.iter().all(|round| *round == all), "{ended:?}");
    }
}
