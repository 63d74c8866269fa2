//! Create and update: bring the shop's cart to what the caller wants, and show what came of it.

use chrono::{DateTime, Utc};

use super::{Call, Service, Verdict, unpaid::Unpaid};
use crate::{
    checkout::{
        Error,
        audit::CORRELATION,
        cart::{CartPlan, CartView, ItemReason, Refusal},
        command::{Change, Patch, UnknownItems, UnknownOption, WantedLine},
        ids::{LineId, ProductId, SessionId},
        outcome::Outcome,
        planning::{Purpose, plan},
        problem::{Kind, Place, Problem},
        session::{Cart, FORMAT, Fulfillment, Line, Session, ShownLine, Status},
        showing::{Basis, settle_status, show},
        state::Expect,
        store::{Effect, Error as StoreError, Resolved},
    },
    clock::Ids,
};

/// An open session lives at most this long, however often it is changed.
const LONGEST_LIFE_DAYS: i64 = 7;

impl Service {
    pub(super) async fn create_session(&self, call: &Call, change: Change) -> Result<Verdict, Error> {
        let mut session = self.blank(call);
        let policy = Policy::of(&change);
        let nothing_ships_option = change.nothing_ships_option.clone();
        let unavailable = match self.take(&mut session, change).await? {
            Taken::Refused(outcome) => return Ok(Verdict::only(outcome)),
            Taken::Changed { unavailable } => unavailable,
        };
        if let Some(refusal) = self.reach(&mut session, policy, nothing_ships_option.as_deref()).await? {
            return Ok(Verdict::only(refusal));
        }
        self.present(&mut session, unavailable);
        if session.lines.is_empty() && !policy.may_be_empty {
            return Ok(Verdict::only(Outcome::NothingAvailable(session.problems)));
        }
        session.tell(session.created_at, "created");
        Ok(Verdict::write(session, Expect::New))
    }

    pub(super) async fn update_session(&self, before: Session, change: Change) -> Result<Verdict, Error> {
        let mut before = if before.waits_at_the_shop() {
            match Box::pin(self.unpaid(before)).await? {
                Unpaid::Paid(session) => return Ok(Verdict::only(Outcome::Finished(session))),
                Unpaid::Waiting(session) => return Ok(Verdict::only(Outcome::Session(session))),
                Unpaid::Clear(session) => *session,
            }
        } else {
            before
        };
        let mut session = before.clone();
        let policy = Policy::of(&change);
        let nothing_ships_option = change.nothing_ships_option.clone();
        let unavailable = match self.take(&mut session, change).await? {
            Taken::Refused(outcome) => return Ok(Verdict::only(outcome)),
            Taken::Changed { unavailable } => unavailable,
        };
        if self.changes_cart(&before, &session) {
            // A pending order keeps units and coupons back, from its own buyer too (E7, E8).
            before = Box::pin(self.withdraw_now(before)).await?;
            if before.status.is_final() {
                return Ok(Verdict::only(Outcome::Finished(Box::new(before))));
            }
            session.withdrawals.clone_from(&before.withdrawals);
            session.cases.clone_from(&before.cases);
            session.story.clone_from(&before.story);
        }
        match Box::pin(self.reach(&mut session, policy, nothing_ships_option.as_deref())).await {
            Ok(None) => {}
            Ok(Some(refusal)) => {
                // The cart holds part of what was refused: it is left behind, the session stays as it was.
                let mut before = before;
                before.leave_cart();
                let expect = Expect::Version(before.version);
                return Ok(Verdict { outcome: refusal, write: Some((before, expect)) });
            }
            Err(error) => {
                let touched = session.cart != before.cart || error.effect() != Effect::NotSent;
                if touched && before.cart.is_some() {
                    let mut before = before;
                    before.leave_cart();
                    self.store(before).await?;
                }
                return Err(error.into());
            }
        }
        self.present(&mut session, unavailable);
        session.tell_own_order();
        let now = self.parts.clock.now();
        session.updated_at = now;
        session.tell(now, "changed");
        session.expires_at = self.expiry(session.created_at, now);
        Ok(Verdict::write(session, Expect::Version(before.version)))
    }

    /// Whether the shop's cart is to become another one.
    fn changes_cart(&self, before: &Session, wanted: &Session) -> bool {
        let wanted = plan(wanted, Purpose::Show, self.settings.stand_ins.as_ref());
        before.cart.as_ref().is_some_and(|cart| cart.plan != wanted)
    }

    fn blank(&self, call: &Call) -> Session {
        let now = self.parts.clock.now();
        Session {
            format: FORMAT,
            id: SessionId::new(Ids.public("chk")),
            shop: self.settings.shop.clone(),
            caller: call.caller.clone(),
            version: 0,
            status: Status::Incomplete,
            currency: self.settings.currency,
            lines: Vec::new(),
            lines_made: 0,
            buyer: None,
            fulfillment: Fulfillment::default(),
            codes: Vec::new(),
            note: None,
            problems: Vec::new(),
            cart: None,
            generation: 0,
            correlation_id: Ids.public(CORRELATION),
            attempt: None,
            closed_attempts: Vec::new(),
            held: Vec::new(),
            order: None,
            pay_url: None,
            continue_token: Ids.public("go"),
            echoes: std::collections::BTreeMap::new(),
            created_at: now,
            updated_at: now,
            expires_at: self.expiry(now, now),
            of_older_epoch: false,
            first_checked_at: None,
            cases: Vec::new(),
            withdrawals: Vec::new(),
            story: Vec::new(),
            watch: None,
        }
    }

    fn expiry(&self, created_at: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
        let longest = created_at + chrono::Duration::days(LONGEST_LIFE_DAYS);
        (now + self.settings.session_life).min(longest)
    }

    /// Takes what the caller wants into the session. No cart is touched.
    async fn take(&self, session: &mut Session, mut change: Change) -> Result<Taken, Error> {
        let mut unavailable = Vec::new();
        if let Patch::Set(wanted) = &change.lines {
            match self.lines(session, wanted, change.unknown_items).await? {
                Ok((lines, problems)) => (session.lines, unavailable) = (lines, problems),
                Err(refusal) => return Ok(Taken::Refused(refusal)),
            }
        } else if change.lines == Patch::Clear {
            session.lines.clear();
        }
        change.keep_echo(&mut session.echoes);
        session.buyer = change.buyer_parts.apply(change.buyer.apply(session.buyer.take()));
        match change.destinations {
            Patch::Keep => {}
            Patch::Clear => {
                session.fulfillment.destinations.clear();
                session.fulfillment.selected_destination = None;
            }
            Patch::Set(destinations) => {
                let only = destinations.list.first().filter(|_| destinations.list.len() == 1);
                let selected = destinations.selected.or_else(|| only.map(|only| only.id.clone()));
                session.fulfillment.selected_destination = selected;
                // A choice alone is made among the addresses that are known.
                if !destinations.list.is_empty() {
                    session.fulfillment.destinations = destinations.list;
                }
            }
        }
        change.delivery.apply(&mut session.fulfillment);
        session.fulfillment.chosen_option = change.option.apply(session.fulfillment.chosen_option.take());
        session.codes = change.codes.apply(Some(std::mem::take(&mut session.codes))).unwrap_or_default();
        session.note = change.note.apply(session.note.take());
        unavailable.extend(
            change
                .claims
                .into_iter()
                .map(|index| Problem::new(Kind::ClaimNotAccepted { index }, Place::Claims)),
        );
        Ok(Taken::Changed { unavailable })
    }

    /// The lines wanted, with the ids of the lines they replace. Items that the shop does not know are left
    /// out with a problem, or refuse the request.
    async fn lines(
        &self,
        session: &mut Session,
        wanted: &[WantedLine],
        unknown: UnknownItems,
    ) -> Result<Result<(Vec<Line>, Vec<Problem>), Outcome>, Error> {
        let items: Vec<String> = wanted.iter().map(|line| line.item.clone()).collect();
        let resolved = self.parts.store.resolve(&items).await?;
        let mut old: Vec<Line> = std::mem::take(&mut session.lines);
        let mut lines = Vec::with_capacity(wanted.len());
        let mut named = Vec::with_capacity(wanted.len());
        let mut problems = Vec::new();
        for (index, (wanted, resolved)) in wanted.iter().zip(resolved).enumerate() {
            let product: ProductId = match resolved {
                Resolved::Product(product) => product,
                Resolved::Unknown if unknown == UnknownItems::Refuse => {
                    return Ok(Err(Outcome::UnknownItem { index, item: wanted.item.clone() }));
                }
                Resolved::Unknown => {
                    let kind = Kind::Item { item: wanted.item.clone(), reason: ItemReason::Unknown };
                    problems.push(Problem::new(kind, Place::RequestLine(index)));
                    continue;
                }
            };
            lines.push(Line {
                id: LineId::new(""),
                item: wanted.item.clone(),
                product,
                quantity: wanted.quantity,
                parent: wanted.parent.clone(),
                shown: ShownLine::default(),
            });
            named.push(wanted.id.clone());
        }
        // Lines that the caller names keep their ids before others take the ids of lines with the same item.
        let mut take = |line: &Line, id: Option<&LineId>| {
            let same = |old: &Line| old.item == line.item && id.is_none_or(|id| old.id == *id);
            old.iter().position(same).map(|at| old.remove(at).id)
        };
        let by_name: Vec<_> = lines
            .iter()
            .zip(&named)
            .map(|(line, id)| id.as_ref().and_then(|id| take(line, Some(id))))
            .collect();
        for (line, id) in lines.iter_mut().zip(by_name) {
            line.id = id.or_else(|| take(line, None)).unwrap_or_else(|| {
                session.lines_made += 1;
                LineId::new(format!("li_{}", session.lines_made))
            });
        }
        // A parent that is not there is no parent.
        let ids: Vec<LineId> = lines.iter().map(|line| line.id.clone()).collect();
        for line in &mut lines {
            line.parent = line.parent.take().filter(|parent| ids.contains(parent) && *parent != line.id);
        }
        Ok(Ok((lines, problems)))
    }

    /// Brings the shop's cart to the session, and the session to what the shop says. `Some` is a refusal of
    /// the whole request.
    async fn reach(
        &self,
        session: &mut Session,
        policy: Policy,
        nothing_ships_option: Option<&str>,
    ) -> Result<Option<Outcome>, StoreError> {
        if session.lines.is_empty() {
            session.cart = None;
            session.fulfillment.options.clear();
            session.problems.clear();
            return Ok(None);
        }
        let before = session.fulfillment.selected_option().map(|option| option.id.clone());
        let asked: Vec<(ProductId, String)> =
            session.lines.iter().map(|line| (line.product.clone(), line.item.clone())).collect();
        let wanted = plan(session, Purpose::Show, self.settings.stand_ins.as_ref());
        self.bring(session, wanted).await?;
        if policy.unknown_items == UnknownItems::Refuse
            && let Some(refusal) = unknown_item(session, &asked)
        {
            return Ok(Some(refusal));
        }
        let ships = session.cart.as_ref().is_some_and(|cart| cart.view.needs_shipping);
        if !ships
            && nothing_ships_option.is_some()
            && session.fulfillment.chosen_option.as_deref() == nothing_ships_option
        {
            session.fulfillment.chosen_option = None;
        }
        if let Some(option) = self.option_to_choose(session) {
            session.fulfillment.chosen_option = Some(option);
            let wanted = plan(session, Purpose::Show, self.settings.stand_ins.as_ref());
            self.bring(session, wanted).await?;
        }
        let fulfillment = &session.fulfillment;
        let chosen = fulfillment.chosen_option.as_ref();
        if policy.unknown_option == UnknownOption::Refuse
            && policy.names_option
            && let Some(option) =
                chosen.filter(|id| fulfillment.options.iter().all(|offered| offered.id != **id))
        {
            return Ok(Some(Outcome::UnknownOption { option: option.clone() }));
        }
        if !policy.decides_option {
            Self::keep_option(session, before.as_deref());
        }
        Ok(None)
    }

    /// What becomes of the option in effect when the request said nothing of it: a choice that fell away is
    /// forgotten, and a change of the option is told.
    fn keep_option(session: &mut Session, before: Option<&str>) {
        let fulfillment = &mut session.fulfillment;
        if let Some(chosen) = &fulfillment.chosen_option
            && fulfillment.options.iter().all(|option| option.id != *chosen)
        {
            fulfillment.chosen_option = None;
        }
        let now = fulfillment.selected_option().map(|option| option.id.as_str());
        if before.is_some() && now.is_some() && before != now {
            session.problems.push(Problem::new(Kind::OptionChanged, Place::Option));
        }
    }

    /// An option that must still be chosen: the caller's, when the first look brought it on offer; the
    /// cheapest, under development rules.
    fn option_to_choose(&self, session: &Session) -> Option<String> {
        let options = &session.fulfillment.options;
        if let Some(chosen) = &session.fulfillment.chosen_option {
            let offered = options.iter().find(|option| option.id == *chosen);
            return offered.filter(|option| !option.selected).map(|option| option.id.clone());
        }
        // Nobody has asked to fetch the goods: a pickup is never taken unasked, though it costs nothing.
        let shipped = options.iter().filter(|option| !option.pickup);
        let cheapest = shipped.min_by_key(|option| option.price + option.tax)?;
        let selected = session.fulfillment.selected_option()?;
        (self.settings.cheapest_first && cheapest.price + cheapest.tax < selected.price + selected.tax)
            .then(|| cheapest.id.clone())
    }

    /// Brings the cart to a plan and shows what came of it. A cart that is gone, or that holds what the plan
    /// does not, is left behind for a new one.
    pub(super) async fn bring(&self, session: &mut Session, wanted: CartPlan) -> Result<(), StoreError> {
        let usable = session.cart.as_ref().filter(|cart| cart.usable && !takes_something_back(cart, &wanted));
        let changed = match usable {
            Some(cart) => match self.parts.store.change(cart, &wanted).await {
                Ok(view) if is_ours(&view, &cart.view, &wanted) => Some(view),
                Ok(_) | Err(StoreError::CartGone) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let view = if let Some(view) = changed {
            view
        } else {
            session.generation += 1;
            self.parts.store.open(&wanted).await?
        };
        self.in_our_currency(&view)?;
        self.hold(session, wanted, view, Basis::Changed);
        Ok(())
    }

    /// Refuses a cart in another currency than the configured one: amounts would be told wrongly.
    pub(super) fn in_our_currency(&self, view: &CartView) -> Result<(), StoreError> {
        if view.currency == self.settings.currency {
            return Ok(());
        }
        let what = format!("the shop sells in {}, configured is {}", view.currency, self.settings.currency);
        Err(StoreError::Unintelligible { what, wrote: false })
    }

    /// Keeps what the shop said of the cart.
    pub(super) fn hold(&self, session: &mut Session, wanted: CartPlan, mut view: CartView, basis: Basis) {
        show(session, &view, basis);
        // Items and codes that are not there are asked for again by themselves; an address that was refused only
        // if the refusal is remembered.
        view.refusals.retain(|refusal| matches!(refusal, Refusal::Address { .. }));
        let read_at = self.parts.clock.now();
        session.cart =
            (!session.lines.is_empty()).then_some(Cart { plan: wanted, view, read_at, usable: true });
    }

    /// The session as the caller will see it.
    fn present(&self, session: &mut Session, mut unavailable: Vec<Problem>) {
        unavailable.append(&mut session.problems);
        session.problems = unavailable;
        session.pay_url = None;
        settle_status(session, &self.settings);
    }
}

/// What the caller wants done about things that are not there.
#[derive(Clone, Copy)]
struct Policy {
    unknown_items: UnknownItems,
    unknown_option: UnknownOption,
    /// Whether this very request names an option.
    names_option: bool,
    /// Whether it decides about the option at all: names one, or takes the choice back.
    decides_option: bool,
    may_be_empty: bool,
}

impl Policy {
    const fn of(change: &Change) -> Self {
        Self {
            unknown_items: change.unknown_items,
            unknown_option: change.unknown_option,
            names_option: matches!(change.option, Patch::Set(_)),
            decides_option: !matches!(change.option, Patch::Keep),
            may_be_empty: change.may_be_empty,
        }
    }
}

enum Taken {
    Changed { unavailable: Vec<Problem> },
    Refused(Outcome),
}

/// Neither a customer nor a chosen rate can be taken out of a cart again: such a change needs a new one.
fn takes_something_back(cart: &Cart, wanted: &CartPlan) -> bool {
    let customer = wanted.customer.is_none() && cart.plan.customer.is_some();
    customer || (wanted.rates.is_empty() && !cart.plan.rates.is_empty())
}

/// Whether the cart is what the plan makes of the one we knew: no other product, none in a greater number, and
/// none missing without a word. Else somebody changed it, a change before this one went through unseen, or the
/// shop has forgotten what was in it: a product that was in it and is gone says nothing by its refusal, as the
/// shop then only misses the line. A new cart tells.
fn is_ours(view: &CartView, before: &CartView, wanted: &CartPlan) -> bool {
    let is_planned = |product: &ProductId| wanted.lines.iter().any(|planned| planned.product == *product);
    let is_refused = |wanted: &ProductId| {
        let refusals = view.refusals.iter();
        refusals
            .into_iter()
            .any(|refusal| matches!(refusal, Refusal::Item { product, .. } if product == wanted))
    };
    view.lines.iter().all(|line| is_planned(&line.product))
        && wanted.lines.iter().all(|planned| {
            let mut there = view.lines.iter().filter(|line| line.product == planned.product).peekable();
            if there.peek().is_none() {
                let was_there = before.lines.iter().any(|line| line.product == planned.product);
                return is_refused(&planned.product) && !was_there;
            }
            there.map(|line| line.quantity).sum::<u32>() <= planned.quantity || is_refused(&planned.product)
        })
}

fn unknown_item(session: &Session, asked: &[(ProductId, String)]) -> Option<Outcome> {
    session.problems.iter().find_map(|problem| match &problem.kind {
        Kind::Item { item, reason: ItemReason::Unknown } => {
            let index = asked.iter().position(|(_, asked)| asked == item)?;
            Some(Outcome::UnknownItem { index, item: item.clone() })
        }
        _ => None,
    })
}
