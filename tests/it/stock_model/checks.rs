//! The invariants, each by its letter, held against what is true in the model.

use tillgate::stock::{Member, Reserved, Shelf, Shortage, Stage};

use super::{
    shop::{Order, stock_id},
    world::{Phase, World, name},
};

/// What is wrong: the letter in front.
pub(super) type Checked = Result<(), String>;

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// All that must hold after every step.
pub(super) fn after_every_step(world: &World) -> Checked {
    for product in 0..world.shop.physical.len() {
        k1_a_unit_is_counted_once(world, product)?;
        k2_what_runs_is_covered_or_alone(world, product)?;
        k3_pins_are_the_open_attempts(world, product)?;
        k5_nothing_is_oversold(world, product)?;
    }
    Ok(())
}

/// Whether a shelf takes a session's units off its upper, and off its lower bound.
fn taken(shelf: &Shelf, session: usize, now: i64) -> (bool, bool) {
    let mut without = shelf.clone();
    without.members.remove(&name(session));
    let upper = shelf.upper_bound("") != without.upper_bound("");
    (upper, shelf.lower_bound("", now) != without.lower_bound("", now))
}

/// K1: nothing that an upper count is without is taken off it again, and whatever was or may be bought is taken off a
/// lower count, or that is without it.
fn k1_a_unit_is_counted_once(world: &World, product: usize) -> Checked {
    let Some(shelf) = world.shelves.get(&stock_id(product)) else { return Ok(()) };
    for (session, order) in world.shop.orders.iter().enumerate() {
        let Some((order, units)) = order else { continue };
        if units.iter().all(|(of, _)| *of != product) {
            continue;
        }
        let (off_upper, off_lower) = taken(shelf, session, world.now);
        if let Some(off) = shelf.upper.and_then(|count| world.off(product, &count, true)) {
            let of = &world.sessions[session];
            let unnoticed = of.forgotten || of.phase == Phase::Kept && *order == Order::Placed;
            ensure(!(off_upper && off.0.contains(&session)) || unnoticed, || {
                format!("K1: product {product} takes session {session} off twice: {shelf:?}")
            })?;
        }
        let takes = match order {
            Order::Turned { .. } | Order::Placed => true,
            Order::Pending => world.is_open(session),
            Order::Failed => false,
        };
        let lower = shelf.lower.filter(|count| world.now - count.at <= tillgate::stock::FRESH_MS);
        if let Some(off) = lower.and_then(|count| world.off(product, &count, false)) {
            ensure(!takes || off_lower || off.0.contains(&session), || {
                format!("K1: product {product} misses session {session} below: {shelf:?}")
            })?;
        }
    }
    Ok(())
}

/// K2: of one product either one attempt is open, or all that are find their units.
fn k2_what_runs_is_covered_or_alone(world: &World, product: usize) -> Checked {
    let may_take = |session: &usize| {
        world.is_open(*session) && !matches!(world.shop.order(*session), Some(Order::Placed | Order::Failed))
    };
    let of = (0..world.sessions.len()).filter(may_take).map(|session| world.wants(session, product));
    let wants: Vec<i64> = of.filter(|units| *units > 0).collect();
    ensure(
        wants.len() <= 1 || world.people || wants.iter().sum::<i64>() <= world.shop.physical[product],
        || format!("K2: {wants:?} run at once for {} of product {product}", world.shop.physical[product]),
    )
}

/// K2, at the moment of an admission: covered, or nothing else is open or admitted; and nobody is overtaken.
pub(super) fn k2_at_an_admission(world: &World, before: &World, session: usize) -> Checked {
    for (product, units) in &world.sessions[session].basket {
        let Some(shelf) = before.shelves.get(&stock_id(*product)) else { continue };
        let name = name(session);
        let lives = |member: &Member| {
            let owner = member.owner.as_deref().is_none_or(|owner| before.lives(owner));
            owner && (member.at > world.now || member.stage == Stage::Open)
        };
        let others = || shelf.members.iter().filter(|(of, it)| **of != name && lives(it)).map(|(_, it)| it);
        let busy = others().any(|member| matches!(member.stage, Stage::Admitted | Stage::Open));
        let least = shelf.lower_bound(&name, world.now);
        // What lapsed just now is still taken off here, so this is the more careful figure: it may only be too small.
        let lapsed: i64 = shelf
            .members
            .iter()
            .filter(|(of, it)| **of != name && !lives(it))
            .map(|(_, it)| i64::from(it.quantity))
            .sum();
        ensure(!busy || least.is_some_and(|least| least + lapsed >= *units), || {
            format!("K2: session {session} was admitted beside others, with {least:?} of product {product}")
        })?;
        let own = shelf.members.get(&name);
        let through = own.is_some_and(|member| member.stage == Stage::Admitted);
        let ticket = own.and_then(|member| member.ticket);
        let overtaken = others().any(|member| {
            member.stage == Stage::Soft
                && member.ticket.is_some_and(|other| ticket.is_none_or(|ticket| other < ticket))
        });
        ensure(!overtaken || through, || {
            format!("fairness: session {session} overtook on product {product}")
        })?;
    }
    Ok(())
}

/// K3: the pins are the open attempts, with their units; and who was let through still holds what it was let through
/// with.
fn k3_pins_are_the_open_attempts(world: &World, product: usize) -> Checked {
    let shelf = world.shelves.get(&stock_id(product)).cloned().unwrap_or_default();
    for session in 0..world.sessions.len() {
        let member = shelf.members.get(&name(session));
        let is = |stage| member.filter(|member| member.stage == stage).map_or(0, |it| i64::from(it.quantity));
        let wants = world.wants(session, product);
        let open = if world.is_open(session) { wants } else { 0 };
        ensure(is(Stage::Open) == open, || {
            format!("K3: session {session} has {open} of product {product} open, but {member:?} stands")
        })?;
        let holds = matches!(world.sessions[session].phase, Phase::Admitted { .. } | Phase::Checked { .. });
        ensure(!holds || world.sessions[session].until <= world.now || is(Stage::Admitted) == wants, || {
            format!(
                "K3: session {session} was admitted to {wants} of product {product}, but {member:?} stands"
            )
        })?;
    }
    Ok(())
}

/// K4: at rest both bounds say what the shop shows, without what is held.
pub(super) fn k4_at_rest_both_bounds_agree(world: &World, product: usize) -> Checked {
    let shelf = world.shelves.get(&stock_id(product)).cloned().unwrap_or_default();
    let held = |member: &&Member| member.stage != Stage::Sold;
    let held: i64 = shelf.members.values().filter(held).map(|member| i64::from(member.quantity)).sum();
    let expected = Some(world.shop.physical[product] - held);
    let bounds = (shelf.upper_bound(""), shelf.lower_bound("", world.now));
    ensure(bounds == (expected, expected), || {
        format!("K4: product {product} at rest: {bounds:?}, not {expected:?}: {shelf:?}")
    })
}

/// K5: no more is sold than there was.
fn k5_nothing_is_oversold(world: &World, product: usize) -> Checked {
    let left = world.shop.physical[product] - world.shop.in_gap(product);
    ensure(left >= 0 || world.people, || format!("K5: product {product} is oversold: {left}"))
}

/// K6: what a refusal says was true, and it was right to refuse.
pub(super) fn k6_a_refusal_is_true(
    world: &World,
    before: &World,
    session: usize,
    told: &Reserved,
) -> Checked {
    let Reserved::Refused { stock, reason } = told else { return Ok(()) };
    let product: usize = stock.as_str().parse().unwrap();
    let Some(shelf) = before.shelves.get(stock) else { return Err("K6: refused by nothing".into()) };
    let asked = world.wants(session, product);
    let Some(off) = shelf.upper.and_then(|count| world.off(product, &count, true)) else {
        return Err(format!("K6: session {session} was refused without a count"));
    };
    if world.shop.raised_at[product] >= off.1 {
        return Ok(());
    }
    let others: Vec<(usize, &Member)> = (0..world.sessions.len())
        .filter(|other| *other != session)
        .filter_map(|other| Some((other, shelf.members.get(&name(other))?)))
        .collect();
    let there = world.shop.physical[product] - world.shop.in_gap(product);
    // The shop keeps them for orders whose hold here is over: they are there, but not to be had.
    let kept_alone = if world.shop.hold {
        let has_member = |of: usize| of == session || others.iter().any(|(other, _)| *other == of);
        world.shop.units(product, |of, order| order == Order::Pending && !has_member(of))
    } else {
        0
    };
    // Not ours any more, but off the count as if it were: until the next reading.
    let stale: i64 = off
        .0
        .iter()
        .filter(|of| match world.shop.order(**of) {
            Some(Order::Failed) => !others.iter().any(|(other, _)| other == *of),
            Some(Order::Placed) => world.sessions[**of].phase == Phase::Kept,
            Some(Order::Pending) => world.sessions[**of].forgotten,
            _ => false,
        })
        .map(|of| world.wants(*of, product))
        .sum();
    let all_taken: i64 = others
        .iter()
        .filter(|(other, member)| {
            let over = matches!(world.shop.order(*other), Some(Order::Placed | Order::Turned { .. }));
            let kept = world.shop.hold && world.shop.order(*other) == Some(Order::Pending);
            let lives = member.at > world.now || !matches!(member.stage, Stage::Soft | Stage::Admitted);
            !over && !kept && member.stage != Stage::Sold && lives
        })
        .map(|(_, member)| i64::from(member.quantity))
        .sum();
    let kept = world.shop.units(product, |of, order| order == Order::Pending && of != session);
    let free = there - if world.shop.hold { kept } else { 0 } - all_taken;
    ensure(free - stale < asked, || {
        format!(
            "K6: session {session} was refused {asked} of product {product}, but {free} are free: {shelf:?}"
        )
    })?;
    let most = there - stale - kept_alone;
    let true_reason = match reason {
        Shortage::SoldOut => most <= 0,
        Shortage::Left(left) => i64::from(*left) < asked && most <= i64::from(*left),
        Shortage::Held { retry_secs } => {
            *retry_secs >= 1 && others.iter().any(|(_, it)| it.stage != Stage::Sold)
        }
    };
    ensure(true_reason, || {
        format!("K6: {reason:?} is not true of product {product}: {there} are there: {shelf:?}")
    })
}
