//! T7 (`exactly-once.md` §9): the arithmetic of [`tillgate::stock`] at a model shop. Random sessions of several
//! processes buy scarce products; readings come at any moment from both sources; processes die; buyers of flesh and
//! blood come in between. After every step K1 to K6 are held against what is true in the model.
//!
//! `STOCK_CASES=10000` for the full run. What is found is shrunk to few steps.
//!
//! | guard | taken away by | caught by |
//! |---|---|---|
//! | units are pinned while a `POST` may run | `no_pin` | K3 |
//! | the gate | `no_gate` | K2 |
//! | membership: giving back twice changes nothing | `counted_release` | K3 |
//! | `maximum` never refuses | `maximum_as_upper` | K6 |

mod checks;
mod shop;
mod world;

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use self::world::{Case, Mutation, Step, World};

fn cases() -> u32 {
    std::env::var("STOCK_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

fn basket(products: usize) -> impl Strategy<Value = Vec<(usize, i64)>> {
    proptest::collection::btree_map(0..products, 1_i64..=2, 1..=products)
        .prop_map(|it| it.into_iter().collect())
}

fn any_case() -> impl Strategy<Value = Case> {
    let step = (any::<u8>(), any::<u8>(), 0_u16..120).prop_map(|(who, coin, wait)| Step { who, coin, wait });
    (1_usize..=3).prop_flat_map(move |products| {
        (
            any::<bool>(),
            proptest::bool::weighted(0.3),
            proptest::collection::vec(0_i64..=5, products),
            proptest::collection::vec(basket(products), 2..=6),
            proptest::collection::vec(step.clone(), 20..160),
        )
            .prop_map(|(hold, people, physical, baskets, steps)| Case {
                hold,
                people,
                physical,
                baskets,
                steps,
            })
    })
}

fn play(case: &Case, mutation: Mutation) -> Result<(), String> {
    let mut world = World::new(case, mutation);
    for step in &case.steps {
        world.step(*step)?;
    }
    world.drain()
}

/// Plays so many cases, the same ones every time; the first that goes wrong, shrunk.
fn first_wrong(cases: u32, mutation: Mutation) -> Option<String> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let run = runner.run(&any_case(), |case| play(&case, mutation).map_err(TestCaseError::fail));
    run.err().map(|error| error.to_string())
}

#[test]
#[expect(clippy::print_stdout, reason = "how much was played")]
fn t7_random_sessions_neither_oversell_nor_undersell() {
    let wrong = first_wrong(cases(), Mutation::default());
    println!("T7: {} cases", cases());
    assert_eq!(wrong, None, "{}", wrong.clone().unwrap_or_default());
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "what noticed the loss")]
fn noticed(guard: &str, letters: &[&str], mutation: Mutation) {
    let found = first_wrong(2_000, mutation).unwrap_or_default();
    println!("T7, without {guard}: {found}");
    let by = letters.iter().any(|letter| found.contains(&format!("{letter}: ")));
    assert!(by, "without {guard}, {letters:?} should be broken: {found}");
}

#[test]
fn t7_without_the_pin_another_gets_the_units_while_an_order_runs() {
    noticed("the pin", &["K3"], Mutation { no_pin: true, ..Mutation::default() });
}

#[test]
fn t7_without_the_gate_orders_race_at_the_shop() {
    noticed("the gate", &["K2"], Mutation { no_gate: true, ..Mutation::default() });
}

#[test]
fn t7_with_counters_a_doubled_release_takes_from_another() {
    noticed("membership", &["K3"], Mutation { counted_release: true, ..Mutation::default() });
}

#[test]
fn t7_with_maximum_as_what_is_left_a_refusal_is_untrue() {
    noticed("its own upper bound", &["K6"], Mutation { maximum_as_upper: true, ..Mutation::default() });
}
