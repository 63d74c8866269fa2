//! The player: which recorded exchange answers a live call, and what that changes.
//!
//! Each thread has one owner at most, the live token that made its first write; its writes are played in
//! their order, each once. A read is answered from those recorded after the last write that was played and
//! before the next one; within them it moves on, so that a repeated look sees what the recorded one saw, and
//! the last stays. A read without token (an order, a list of orders) is looked for in the thread that was
//! played last, then in the others: buyers at the same time who look for orders by the same e-mail address
//! cannot be told apart. A look for orders that no recorded one answers at this point is answered from what
//! was played (`orders.rs`).
//!
//! Two recordings may begin alike. Then the first write takes the first of them, and where a later write fits
//! only another one, the owner moves there (or two owners change places), provided that every write made so
//! far matches that one as well and was answered alike.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::answer::{Reply, render};
use super::har::{Error, read};
use super::matching::{Bindings, Call, Comparison, Difference, Request, compare};
use super::orders;
use super::thread::{Body, Exchange, Thread, split};
use crate::clock::Ids;

/// Recorded exchanges with a shop, ready to be played.
#[derive(Debug)]
pub struct Tape {
    threads: Vec<Thread>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// One for each thread.
    progress: Vec<Progress>,
    /// The tokens that the tape issued, and the thread that each owns.
    tokens: HashMap<String, Option<usize>>,
    turn: u64,
}

/// How far a thread was played, and for whom.
#[derive(Debug, Default, Clone)]
struct Progress {
    owner: Option<String>,
    /// The live writes, in order; as many recorded ones were played.
    history: Vec<Call>,
    /// The position after the last read that was played.
    cursor: usize,
    bindings: Bindings,
    /// When it was last played, in turns; 0 if never.
    last: u64,
}

impl Progress {
    const fn played(&self) -> usize {
        self.history.len()
    }
}

/// Who calls.
#[derive(Clone, Copy)]
enum Caller<'a> {
    /// No token, or one that the tape did not issue, which a shop ignores.
    Nobody,
    /// A token of the tape that owns no thread yet.
    Unbound(&'a str),
    /// A token that owns a thread.
    Owner(usize),
}

/// An exchange's place: thread, position in it.
type Place = (usize, usize);

impl Tape {
    /// Loads a HAR file, or every `*.har` of a folder in the order of their names.
    ///
    /// # Errors
    /// If a file cannot be read, is no HAR 1.2, or nothing is recorded in it.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let mut threads = Vec::new();
        for recording in read(path)? {
            let first = threads.len();
            threads.extend(split(recording, first));
        }
        let tape = Self { threads, state: Mutex::default() };
        if tape.entries() == 0 {
            return Err(Error::Empty { path: path.to_owned() });
        }
        tape.rewind();
        Ok(tape)
    }

    /// How many exchanges can be played.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.threads.iter().map(|thread| thread.exchanges.len()).sum()
    }

    /// Starts all over: every thread is unused again, and the tokens issued so far are forgotten.
    pub fn rewind(&self) {
        *self.lock() = State { progress: vec![Progress::default(); self.threads.len()], ..State::default() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a call.
    pub(super) fn play(&self, live: Call) -> Reply {
        let mut state = self.lock();
        let known = live.token.as_ref().is_some_and(|token| state.tokens.contains_key(token));
        let live = &if known { live } else { live.without_token() };
        let caller = match live.token.as_deref().map(|token| (token, state.tokens.get(token))) {
            Some((_, Some(&Some(thread)))) => Caller::Owner(thread),
            Some((token, Some(None))) => Caller::Unbound(token),
            Some((_, None)) | None => Caller::Nobody,
        };
        if live.is_write() {
            self.write(&mut state, caller, live)
        } else {
            self.read(&mut state, caller, live)
        }
    }

    fn write(&self, state: &mut State, caller: Caller<'_>, live: &Call) -> Reply {
        let candidates: Vec<usize> = match caller {
            Caller::Owner(thread) => vec![thread],
            Caller::Unbound(_) => (0..self.threads.len()).filter(|thread| state.is_free(*thread)).collect(),
            Caller::Nobody => state.latest_first(),
        };
        let mut found = candidates.into_iter().find_map(|thread| {
            let progress = state.progress.get(thread)?;
            let next = self.threads.get(thread)?.write(progress.played())?;
            self.fits(thread, next, live, &progress.bindings).map(|bound| (thread, bound))
        });
        if let (None, Caller::Owner(thread)) = (&found, caller) {
            found = self.change_thread(state, thread, live);
        }
        let Some((thread, bound)) = found else { return self.unmatched(state, caller, live) };
        if let Caller::Unbound(token) = caller {
            state.bind(token, thread);
        }
        let Some((recorded, progress)) = self.threads.get(thread).zip(state.progress.get_mut(thread)) else {
            return self.unmatched(state, caller, live);
        };
        let Some(exchange) = recorded.write(progress.played()) else {
            return self.unmatched(state, caller, live);
        };
        progress.bindings.extend(bound);
        progress.history.push(live.clone());
        answer(state, thread, exchange, live, None)
    }

    /// Whether a live call matches an exchange, and what that binds.
    fn fits(&self, thread: usize, exchange: &Exchange, live: &Call, bindings: &Bindings) -> Option<Bindings> {
        let comparison = self.compare(thread, exchange, live, bindings);
        comparison.matches().then_some(comparison.bound)
    }

    fn compare(&self, thread: usize, exchange: &Exchange, live: &Call, bindings: &Bindings) -> Comparison {
        let stand_ins = self.threads.get(thread).map_or(&[][..], |thread| &thread.stand_ins);
        compare(&exchange.call, live, stand_ins, bindings)
    }

    /// Looks for another recording that fits all that the owner of a thread did so far, and this write too.
    fn change_thread(&self, state: &mut State, from: usize, live: &Call) -> Option<(usize, Bindings)> {
        let mine = state.progress.get(from)?.clone();
        (0..self.threads.len()).filter(|other| *other != from).find_map(|other| {
            let theirs = state.progress.get(other)?.clone();
            let bindings = self.retrace(from, other, &mine.history)?;
            let next = self.threads.get(other)?.write(mine.played())?;
            let bound = self.fits(other, next, live, &bindings)?;
            let theirs_moved = if theirs.last == 0 && theirs.owner.is_none() {
                Progress::default()
            } else {
                let bindings = self.retrace(other, from, &theirs.history)?;
                Progress { cursor: 0, bindings, ..theirs }
            };
            for (thread, progress) in
                [(other, Progress { cursor: 0, bindings, ..mine.clone() }), (from, theirs_moved)]
            {
                if let Some(token) = &progress.owner {
                    state.tokens.insert(token.clone(), Some(thread));
                }
                *state.progress.get_mut(thread)? = progress;
            }
            Some((other, bound))
        })
    }

    /// Plays a history again on another thread: what it binds there, if it matches and was answered alike.
    fn retrace(&self, from: usize, to: usize, history: &[Call]) -> Option<Bindings> {
        let mut bindings = Bindings::new();
        for (turn, call) in history.iter().enumerate() {
            let given = self.threads.get(from)?.write(turn)?;
            let other = self.threads.get(to)?.write(turn)?;
            bindings.extend(self.fits(to, other, call, &bindings)?);
            if given.answer.status != other.answer.status || essence(given) != essence(other) {
                return None;
            }
        }
        Some(bindings)
    }

    fn read(&self, state: &mut State, caller: Caller<'_>, live: &Call) -> Reply {
        if live.is_cart_read() && !matches!(caller, Caller::Owner(_)) {
            return self.fresh_cart(state, caller, live);
        }
        let personal = live.is_personal();
        let mut threads = state.latest_first();
        // What depends on the cart is read from one's own thread, all else (a catalogue) from any that is
        // free too.
        threads.retain(|thread| match caller {
            Caller::Owner(own) if *thread == own => true,
            Caller::Owner(_) => !personal && state.is_free(*thread),
            Caller::Unbound(_) => !personal || state.is_free(*thread),
            Caller::Nobody => true,
        });
        threads.sort_by_key(|thread| !matches!(caller, Caller::Owner(own) if own == *thread));
        let nobody = matches!(caller, Caller::Nobody);
        let found = threads.into_iter().find_map(|thread| {
            let progress = state.progress.get(thread)?;
            let position = self.find_read(thread, progress, live, |exchange| {
                !nobody || !personal || exchange.call.token.is_none()
            })?;
            Some((thread, position))
        });
        let Some(((thread, position), exchange)) = found.and_then(|place| Some((place, self.at(place)?)))
        else {
            return self.played_orders(state, live).unwrap_or_else(|| self.unmatched(state, caller, live));
        };
        if let Some(progress) = state.progress.get_mut(thread) {
            progress.bindings.extend(self.compare(thread, exchange, live, &progress.bindings).bound);
            progress.cursor = progress.cursor.max(position + 1);
        }
        let fresh = match caller {
            Caller::Unbound(token) if personal => Some(token),
            Caller::Unbound(_) | Caller::Owner(_) | Caller::Nobody => None,
        };
        answer(state, thread, exchange, live, fresh)
    }

    /// The orders that were made so far, for a look that was not recorded at this point.
    fn played_orders(&self, state: &State, live: &Call) -> Option<Reply> {
        let email = live.looks_for_orders_of()?;
        if state.progress.iter().all(|progress| progress.played() == 0) {
            return None;
        }
        let mut found = Vec::new();
        for (number, (thread, progress)) in self.threads.iter().zip(&state.progress).enumerate() {
            let sent = progress.history.iter().filter_map(Call::sent_checkout);
            if sent.into_iter().all(|sent| !sent.email.eq_ignore_ascii_case(email)) {
                continue;
            }
            // Recorded looks say how this shop was asked.
            let mut looks = thread.exchanges.iter().filter(|exchange| exchange.call.is_orders_look());
            if looks.clone().next().is_some()
                && !looks.any(|look| self.fits(number, look, live, &progress.bindings).is_some())
            {
                return None;
            }
            found.extend(orders::listed(thread, &progress.history, email)?);
        }
        Some(orders::reply(live, found))
    }

    /// The read that answers a call in a thread's present state: preferably one that has all the members
    /// asked for, the first after those already played, else the last one.
    fn find_read(
        &self,
        thread: usize,
        progress: &Progress,
        live: &Call,
        admit: impl Fn(&Exchange) -> bool,
    ) -> Option<usize> {
        let window = self.threads.get(thread)?.window(progress.played());
        let matching = window.filter(|(_, exchange)| {
            !exchange.call.is_write()
                && admit(exchange)
                && self.fits(thread, exchange, live, &progress.bindings).is_some()
        });
        let matching: Vec<(usize, &Exchange)> = matching.collect();
        let wanted = live.first().and_then(|request| request.fields.as_deref());
        let full = matching.iter().any(|(_, exchange)| covers(&exchange.call, wanted));
        let mut fitting = matching.iter().filter(|(_, exchange)| !full || covers(&exchange.call, wanted));
        let later = fitting.clone().find(|(position, _)| *position >= progress.cursor);
        later.or_else(|| fitting.next_back()).map(|(position, _)| *position)
    }

    /// A look at the cart before anything is in it: also the way to a token.
    fn fresh_cart(&self, state: &mut State, caller: Caller<'_>, live: &Call) -> Reply {
        let threads = state.unused_first();
        let find = |with_token: bool| {
            threads.iter().find_map(|thread| {
                let position = self.find_read(*thread, &Progress::default(), live, |exchange| {
                    exchange.call.token.is_some() == with_token
                })?;
                Some((*thread, position))
            })
        };
        // A cart that was read with a token may have been filled before the recording began.
        let found = find(false).or_else(|| matches!(caller, Caller::Unbound(_)).then(|| find(true))?);
        let fields = live.first().and_then(|request: &Request| request.fields.as_deref());
        let only_count = fields.is_some_and(|fields| fields == ["items_count"]);
        if found.is_none() && !only_count {
            return self.unmatched(state, caller, live);
        }
        let token = match caller {
            Caller::Unbound(token) => token.to_owned(),
            Caller::Nobody | Caller::Owner(_) => state.issue(None),
        };
        match found.and_then(|place| Some((place.0, self.at(place)?))) {
            Some((thread, exchange)) => answer(state, thread, exchange, live, Some(&token)),
            None => Reply::json(200, Some(&token), &json!({ "items_count": 0 })),
        }
    }

    fn at(&self, (thread, position): Place) -> Option<&Exchange> {
        self.threads.get(thread)?.exchanges.get(position)
    }

    /// The answer to a call that was never recorded, or not at this point.
    fn unmatched(&self, state: &State, caller: Caller<'_>, live: &Call) -> Reply {
        let mut nearest: Option<(usize, usize, Place, Vec<Difference>)> = None;
        for (thread, (recorded, progress)) in self.threads.iter().zip(&state.progress).enumerate() {
            if matches!(caller, Caller::Owner(own) if own != thread) {
                continue;
            }
            let next = recorded.writes.get(progress.played()).copied();
            for (position, exchange) in recorded.exchanges.iter().enumerate() {
                let Comparison { differences, distance, .. } =
                    self.compare(thread, exchange, live, &progress.bindings);
                // Of two that are equally far, the one whose turn it is.
                let rank = usize::from(Some(position) != next);
                if nearest.as_ref().is_none_or(|(least, other, ..)| (distance, rank) < (*least, *other)) {
                    nearest = Some((distance, rank, (thread, position), differences));
                }
            }
        }
        let Some(((thread, position), differences)) = nearest.map(|(_, _, place, found)| (place, found))
        else {
            return refuse("Nothing is recorded for this buyer.", &Value::Null);
        };
        let difference = differences.into_iter().next();
        let message = match (&difference, caller) {
            (Some(_), _) => "No recorded call matches this one.",
            (None, Caller::Owner(_)) => "This call was recorded, but not at this point: it is out of order.",
            (None, _) if self.used_up(state, thread) => {
                "This call was recorded, but its thread was used up: each is played once, for one buyer."
            }
            (None, _) => "This call was recorded, but not at this point, or for a buyer with a token.",
        };
        let difference = difference.unwrap_or_else(|| self.out_of_turn(state, thread, position));
        let named = self.at((thread, position)).zip(self.threads.get(thread)).map(|(exchange, recorded)| {
            json!({
                "file": recorded.file,
                "entry": exchange.number,
                "comment": exchange.comment,
                "difference": difference,
            })
        });
        refuse(message, &named.unwrap_or_default())
    }

    fn used_up(&self, state: &State, thread: usize) -> bool {
        !state.is_free(thread) && self.threads.get(thread).is_some_and(|recorded| !recorded.writes.is_empty())
    }

    /// The difference between an equal call and the one whose turn it is.
    fn out_of_turn(&self, state: &State, thread: usize, position: usize) -> Difference {
        let name =
            |exchange: &Exchange| Value::from(format!("entry {} ({})", exchange.number, exchange.comment));
        let played = state.progress.get(thread).map_or(0, Progress::played);
        let next = self.threads.get(thread).and_then(|recorded| recorded.write(played));
        Difference {
            path: "order".to_owned(),
            wanted: next.map_or_else(|| "no write any more: all were played".into(), name),
            got: self.at((thread, position)).map_or(Value::Null, name),
        }
    }
}

/// Renders an answer; `fresh` is the token of a caller that owns no thread.
fn answer(state: &mut State, thread: usize, exchange: &Exchange, live: &Call, fresh: Option<&str>) -> Reply {
    let mut replace: Vec<(String, String)> = Vec::new();
    for (recorded, owner) in &exchange.tokens {
        let token = fresh.map_or_else(|| state.token_of(*owner), str::to_owned);
        replace.push((recorded.clone(), token));
    }
    if fresh.is_none()
        && let Some(progress) = state.progress.get_mut(thread)
    {
        // What the caller has seen of a stand-in is what it will send.
        for text in &exchange.stand_ins {
            progress.bindings.entry(text.clone()).or_insert_with(|| text.clone());
        }
        replace.extend(progress.bindings.clone());
        state.turn += 1;
        progress.last = state.turn;
    }
    render(&exchange.call, &exchange.answer, live, &replace)
}

fn refuse(message: &str, nearest: &Value) -> Reply {
    tracing::error!(%nearest, "tape: {message}");
    let body = json!({ "code": "tape_no_match", "message": message, "nearest": nearest });
    Reply::json(501, None, &body)
}

impl State {
    /// All threads, those in use first, the latest before the others.
    fn latest_first(&self) -> Vec<usize> {
        let mut threads: Vec<(std::cmp::Reverse<u64>, usize)> = self
            .progress
            .iter()
            .enumerate()
            .map(|(at, progress)| (std::cmp::Reverse(progress.last), at))
            .collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, thread)| thread).collect()
    }

    /// All threads, those without an owner first.
    fn unused_first(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = (0..self.progress.len()).collect();
        threads.sort_by_key(|thread| {
            self.progress.get(*thread).is_some_and(|progress| progress.owner.is_some())
        });
        threads
    }

    fn bind(&mut self, token: &str, thread: usize) {
        self.tokens.insert(token.to_owned(), Some(thread));
        if let Some(progress) = self.progress.get_mut(thread) {
            progress.owner = Some(token.to_owned());
        }
    }

    /// Whether no buyer owns a thread.
    fn is_free(&self, thread: usize) -> bool {
        self.progress.get(thread).is_some_and(|progress| progress.owner.is_none())
    }

    /// The live token of a thread; a thread without an owner gets one.
    fn token_of(&mut self, thread: usize) -> String {
        match self.progress.get(thread).and_then(|progress| progress.owner.clone()) {
            Some(token) => token,
            None => self.issue(Some(thread)),
        }
    }

    fn issue(&mut self, thread: Option<usize>) -> String {
        let part = |value: Value| data_encoding::BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let head = part(json!({ "alg": "none", "typ": "JWT" }));
        let claims = json!({ "user_id": Ids.public("t"), "exp": NEVER, "iss": "tillgate-tape" });
        let token = format!("{head}.{}.unsigned", part(claims));
        match thread {
            Some(thread) => self.bind(&token, thread),
            None => {
                self.tokens.insert(token.clone(), None);
            }
        }
        token
    }
}

/// When tokens of the tape expire (seconds, the year 2100): waiting is not replayed.
const NEVER: u64 = 4_102_444_800;

/// Whether the recorded call asked for every member that is wanted.
fn covers(recorded: &Call, wanted: Option<&[String]>) -> bool {
    match (recorded.first().and_then(|request| request.fields.as_deref()), wanted) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(fields), Some(wanted)) => wanted.iter().all(|name| fields.contains(name)),
    }
}

/// What an answer says, without the headers inside a batch (tokens and nonces).
fn essence(exchange: &Exchange) -> Body {
    let mut body = exchange.answer.body.clone();
    if let (true, Body::Json(value)) = (exchange.call.batch, &mut body) {
        for inner in value.get_mut("responses").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(members) = inner {
                members.remove("headers");
            }
        }
    }
    body
}
