//! The same random steps on the pure functions of [`tillgate::stock`] and on a back end: the same answers, and the
//! same shelves after every step.
//!
//! `STOCK_SEQUENCES=200` for more than the usual number.

use tillgate::{
    checkout::{
        ids::SessionId,
        state::{Error, State, StockTurn},
    },
    clock::{Clock as _, SystemClock},
    stock::{
        self, Close, Moment, NotAdmitted, Reading, Reserve, Reserved, Shelves, Shortage, Source, StockId,
        Units, Upper,
    },
};

use super::{
    Backend,
    stock::{MINUTE, of_stock, shop},
};

/// Chance, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn units(&mut self) -> Vec<Units> {
        let first = self.below(4);
        let count = 1 + self.below(2);
        let id = |at| match (first + at) % 4 {
            3 => StockId::of_caller("agent"),
            id => StockId::new(id.to_string()),
        };
        let quantity = |chance: &mut Self| u32::try_from(1 + chance.below(3)).unwrap();
        (0..count).map(|at| Units { stock: id(at), quantity: quantity(self) }).collect()
    }

    fn readings(&mut self, sequence: u64) -> Vec<Reading> {
        let number = |chance: &mut Self| i64::try_from(chance.below(9)).unwrap() - 1;
        let reading = |chance: &mut Self, units: Units| Reading {
            stock: units.stock,
            upper: match chance.below(4) {
                0 => Upper::Untold,
                1 => Upper::Free(number(chance)),
                _ => Upper::Number(number(chance)),
            },
            lower: (chance.below(3) > 0).then(|| number(chance)),
            takes_off_pending: chance.below(2) == 0,
            source: if chance.below(2) == 0 { Source::WcV3 } else { Source::Shop },
            from: sequence - chance.below(4).min(sequence),
        };
        self.units().into_iter().map(|units| reading(self, units)).collect()
    }

    fn close(&mut self) -> Close {
        match self.below(5) {
            0 => Close::Sold,
            1 => Close::Kept,
            2 => Close::Released,
            _ => Close::Declined { hold_ms: self.hold(), shop_keeps: self.below(2) == 0 },
        }
    }

    fn hold(&mut self) -> i64 {
        if self.below(5) == 0 { 0 } else { 10 * MINUTE }
    }
}

/// Moments differ by what a step takes: they are left out.
fn told(reserved: Reserved) -> Reserved {
    match reserved {
        Reserved::Refused { stock, reason: Shortage::Held { retry_secs } } if retry_secs > 60 => {
            Reserved::Refused { stock, reason: Shortage::Held { retry_secs: 600 } }
        }
        other => other,
    }
}

fn without_moments(mut shelves: Shelves) -> Shelves {
    shelves.retain(|_, shelf| !shelf.is_empty());
    for shelf in shelves.values_mut() {
        shelf.upper.iter_mut().chain(&mut shelf.lower).for_each(|count| count.at = 0);
        for member in shelf.members.values_mut() {
            member.at = 0;
            member.owner = member.owner.as_ref().map(|_| String::new());
        }
    }
    shelves
}

/// One process, as the pure functions see it.
struct Pure {
    shelves: Shelves,
    sequence: u64,
    process: u32,
}

impl Pure {
    fn step<T>(&mut self, step: impl FnOnce(&mut Shelves, &mut Moment<'_>) -> T) -> T {
        let owner = self.process.to_string();
        let now = SystemClock.now().timestamp_millis();
        let lives = |name: &str| name == owner;
        let mut moment = Moment { now, owner: &owner, lives: &lives, sequence: &mut self.sequence };
        step(&mut self.shelves, &mut moment)
    }
}

/// Takes one random step on both; what it was, and whether both said the same.
async fn step(state: &dyn State, pure: &mut Pure, chance: &mut Chance) -> (String, bool) {
    let session = format!("s{}", chance.below(6));
    let units = chance.units();
    match chance.below(10) {
        0..=3 => {
            let (hold_ms, enter) = (chance.hold(), chance.below(5) > 0);
            let wish = Reserve { session, units, hold_ms, enter };
            let expected = pure.step(|shelves, moment| stock::reserve(shelves, &wish, moment));
            let text = format!("{wish:?} -> {expected:?}");
            let found = state.reserve(&shop(), wish).await.unwrap();
            (format!("{text}, {found:?}"), told(found) == told(expected))
        }
        4 | 5 => {
            let readings = chance.readings(pure.sequence);
            pure.step(|shelves, moment| stock::observe(shelves, &readings, moment));
            let text = format!("{readings:?}");
            (text, state.observe(&shop(), readings).await.unwrap() == pure.sequence)
        }
        6 => {
            pure.step(|shelves, _| stock::release(shelves, &session, &units));
            let text = format!("{session} gives back {units:?}");
            state.give_back(&shop(), &SessionId::new(session), units).await.unwrap();
            (text, true)
        }
        kind => {
            let (turn, expected) = match kind {
                7 | 8 => {
                    let readings =
                        if chance.below(2) == 0 { Vec::new() } else { chance.readings(pure.sequence) };
                    let mut shelves = pure.shelves.clone();
                    let units = of_admitted(pure, &session).unwrap_or_else(|| units.clone());
                    let pinned: Result<(), NotAdmitted> =
                        pure.step(|_, moment| stock::pin(&mut shelves, &session, &units, &readings, moment));
                    if pinned.is_ok() {
                        pure.shelves = shelves;
                    }
                    let commit = of_stock(&session, units, StockTurn::Pin(readings));
                    (commit, pinned.is_ok())
                }
                _ => {
                    let how = chance.close();
                    pure.step(|shelves, moment| stock::close(shelves, &session, &units, how, moment));
                    (of_stock(&session, units, StockTurn::Close(how)), true)
                }
            };
            let text = format!("{turn:?} -> {expected}");
            let found = match state.commit(turn).await {
                Ok(_) => true,
                Err(Error::NotAdmitted) => false,
                Err(other) => panic!("{text}: {other}"),
            };
            (text, found == expected)
        }
    }
}

/// What a session was admitted to, so that pins succeed often enough.
fn of_admitted(pure: &Pure, session: &str) -> Option<Vec<Units>> {
    let of = pure.shelves.iter().filter_map(|(stock, shelf)| {
        let member = shelf.members.get(session).filter(|it| it.stage == stock::Stage::Admitted)?;
        Some(Units { stock: stock.clone(), quantity: member.quantity })
    });
    let units: Vec<Units> = of.collect();
    (!units.is_empty()).then_some(units)
}

pub(super) async fn random_steps_say_and_leave_what_the_arithmetic_does(backend: &impl Backend) {
    let sequences: u64 =
        std::env::var("STOCK_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut pure = Pure { shelves: Shelves::new(), sequence: 0, process: 0 };
    for seed in 0..sequences {
        let mut chance = Chance(seed + 1);
        // Each part is another process: what the one before it was about to do is void.
        for part in 0..6 {
            let state = backend.open().await;
            pure.process += 1;
            for at in 0..40 {
                let (text, alike) = step(&*state, &mut pure, &mut chance).await;
                assert!(alike, "seed {seed}, part {part}, step {at}: {text}");
                let found = state.shelves(&shop(), None).await.unwrap();
                let (found, expected) = (without_moments(found), without_moments(pure.shelves.clone()));
                assert_eq!(found, expected, "seed {seed}, part {part}, step {at}: {text}");
            }
            drop(state);
            backend.bury().await;
        }
    }
}
