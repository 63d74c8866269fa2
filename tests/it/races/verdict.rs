//! Whether a shop oversold as the recorded one did.

use super::{
    lines::{self, Line, RECORDED_ROUNDS},
    rounds::Round,
};

/// All rounds of a line, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub rounds: u32,
    pub oversold: u32,
    pub undersold: u32,
    pub accepted: u32,
    /// Orders accepted above the stock, and the most accepted in one round.
    pub beyond: u32,
    pub most: u32,
}

impl Count {
    pub fn of(line: &Line, rounds: &[Round]) -> Self {
        let mut count = Self::default();
        for round in rounds {
            let accepted = round.accepted;
            count.rounds += 1;
            count.oversold += u32::from(accepted > line.stock);
            count.undersold += u32::from(accepted < line.stock.min(line.carts));
            count.accepted += accepted;
            count.beyond += accepted.saturating_sub(line.stock);
            count.most = count.most.max(accepted);
        }
        count
    }

    /// The columns after a line's name: each as seen here, and as recorded.
    pub fn columns(&self, line: &Line) -> String {
        let Self { rounds, oversold, undersold, accepted, beyond, most } = self;
        let (stock, recorded) = (line.stock * rounds, line.stock * RECORDED_ROUNDS);
        columns([
            &format!("{oversold} of {rounds} / {} of {RECORDED_ROUNDS}", line.oversold),
            &format!("{accepted} of {stock} / {} of {recorded}", line.accepted),
            &format!("{beyond} / {}", line.accepted - recorded),
            &format!("{most} / {}", line.most),
            &undersold.to_string(),
        ])
    }

    pub fn heading() -> String {
        let names = columns(["rounds oversold", "accepted of stock", "beyond stock", "most", "undersold"]);
        format!("{} {names}   (here / recorded)", lines::heading())
    }
}

fn columns([oversold, accepted, beyond, most, undersold]: [&str; 5]) -> String {
    format!("{oversold:>19} {accepted:>23} {beyond:>12} {most:>6} {undersold:>9}")
}

/// What is wrong with the rounds of a line; empty if they are as recorded.
pub fn faults(line: &Line, rounds: &[Round]) -> Vec<String> {
    let count = Count::of(line, rounds);
    let mut found = Vec::new();
    if count.undersold > 0 {
        found.push(format!("less was sold than there was and people wanted: {} rounds", count.undersold));
    }
    found.extend(miscounted(line, rounds));
    if !alike(line.oversold, count.oversold, count.rounds) {
        found.push(format!("oversold in {} rounds of {}", count.oversold, count.rounds));
    }
    // Where every round is oversold, by how much is no matter of chance: the workers that run at once decide.
    let (seen, recorded) = (count.accepted * RECORDED_ROUNDS, line.accepted * count.rounds);
    if line.oversold == RECORDED_ROUNDS && seen.abs_diff(recorded) * 10 > recorded {
        found.push(format!("{} orders in {} rounds", count.accepted, count.rounds));
    }
    found
}

/// Rounds after which stock and orders do not add up.
pub fn miscounted(line: &Line, rounds: &[Round]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        for (product, left) in &round.left {
            let wanted = i64::from(line.stock) - i64::from(round.accepted);
            if *left != wanted {
                found.push(format!("round {number}: {left} left of product {product}, {wanted} wanted"));
            }
        }
    }
    found
}

/// Whether `seen` rounds of `rounds` may have the same cause as `recorded` of the recorded ones. None and all are
/// taken at their word; between them chance decides, and only what it does less often than once in 200 on either
/// side is held against the shop (the exact test of two shares).
fn alike(recorded: u32, seen: u32, rounds: u32) -> bool {
    assert!(rounds <= 70, "numbers of more than 70 rounds do not fit");
    if recorded == 0 || recorded == RECORDED_ROUNDS {
        return seen * RECORDED_ROUNDS == recorded * rounds;
    }
    let both = recorded + seen;
    let ways = |seen: u32| {
        both.checked_sub(seen).map_or(0, |recorded| choose(rounds, seen) * choose(RECORDED_ROUNDS, recorded))
    };
    let all = choose(RECORDED_ROUNDS + rounds, both);
    let fewer: u128 = (0..=seen).map(ways).sum();
    let more: u128 = (seen..=rounds).map(ways).sum();
    fewer * 200 >= all && more * 200 >= all
}

/// In how many ways `some` of `all` can be chosen.
fn choose(all: u32, some: u32) -> u128 {
    if some > all {
        return 0;
    }
    (0..some).fold(1, |ways, taken| ways * u128::from(all - taken) / u128::from(taken + 1))
}

/// The fewest and the most oversold rounds that pass.
fn band(recorded: u32, rounds: u32) -> (u32, u32) {
    let pass: Vec<u32> = (0..=rounds).filter(|seen| alike(recorded, *seen, rounds)).collect();
    (*pass.first().unwrap(), *pass.last().unwrap())
}

#[test]
fn a_share_passes_only_near_the_recorded_one() {
    assert_eq!(choose(100, 50), 100_891_344_545_564_193_334_812_497_256);
    assert_eq!((band(0, 50), band(50, 50), band(50, 4)), ((0, 0), (50, 50), (4, 4)));
    assert_eq!((band(24, 50), band(39, 50), band(19, 50)), ((11, 37), (26, 48), (7, 32)));
    assert_eq!((band(5, 50), band(2, 50)), ((0, 16), (0, 11)));
    assert_eq!((band(24, 4), band(39, 4)), ((0, 4), (1, 4)), "few rounds prove little");
}

#[test]
fn a_shop_that_loses_a_unit_or_keeps_one_is_told() {
    let line = &lines::TABLE[13];
    let round = |accepted, left| Round { accepted, left: vec![(super::shop::SCARCE, left)] };
    assert_eq!(faults(line, &[round(5, 0)]), Vec::<String>::new());
    assert_eq!(faults(line, &[round(5, 0), round(4, 1)]).len(), 1, "undersold");
    assert_eq!(faults(line, &[round(5, 1)]).len(), 1, "a unit that was sold is still there");
    assert_eq!(faults(line, &[round(6, -1)]).len(), 1, "oversold");
    let line = &lines::TABLE[2];
    assert_eq!(faults(line, &[round(8, -7)]), Vec::<String>::new());
    assert_eq!(faults(line, &[round(6, -5)]).len(), 1, "fewer at once than eight workers let through");
}
