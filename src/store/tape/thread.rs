//! Threads: the exchanges of a recording that belong to one cart.
//!
//! An exchange belongs to the identity of its `Cart-Token`: the claim `user_id`, since the shop hands out a
//! new token for the same cart at every turn (a token that is no JWT is its own identity). An exchange whose
//! call carries none belongs by the token in its answer; a call that names an order, to the thread whose
//! checkout made that order; a look for one buyer's orders, to the thread of that buyer's last checkout; any other, to the thread that was being played when it was recorded. What stands
//! in a file without any token is a thread of its own, which no buyer owns.

use std::collections::BTreeMap;

use serde_json::Value;

use super::har::{Entry, Header, Recording, header};
use super::matching::Call;

/// One recorded exchange, ready to be compared and played.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Position in `log.entries` of its file.
    pub(super) number: usize,
    pub(super) comment: String,
    pub(super) call: Call,
    pub(super) answer: Answer,
    /// Recorded tokens that stand somewhere in the answer, and the thread of each.
    pub(super) tokens: Vec<(String, usize)>,
    /// Stand-ins that stand somewhere in the answer, but for those that a buyer gives.
    pub(super) stand_ins: Vec<String>,
}

/// A recorded answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// 0: the client went away before it.
    pub(super) status: u16,
    pub(super) headers: Vec<Header>,
    pub(super) body: Body,
}

/// The body of a recorded answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    Json(Value),
    Other(Vec<u8>),
}

/// The exchanges of one cart, in their order.
#[derive(Debug)]
pub(super) struct Thread {
    /// The file's name.
    pub(super) file: String,
    pub(super) stand_ins: Vec<String>,
    pub(super) exchanges: Vec<Exchange>,
    /// Positions in `exchanges` of those that write.
    pub(super) writes: Vec<usize>,
}

impl Thread {
    /// The write that comes after `played` ones.
    pub(super) fn write(&self, played: usize) -> Option<&Exchange> {
        self.exchanges.get(*self.writes.get(played)?)
    }

    /// The reads, with their positions, that fit the shop's state after `played` writes.
    pub(super) fn window(
        &self,
        played: usize,
    ) -> impl DoubleEndedIterator<Item = (usize, &Exchange)> + Clone {
        let before = played.checked_sub(1).and_then(|last| self.writes.get(last));
        let start = before.map_or(0, |write| write + 1);
        let end = self.writes.get(played).copied().unwrap_or(self.exchanges.len());
        self.exchanges.iter().enumerate().take(end).skip(start)
    }
}

/// The identity behind a `Cart-Token`; the signature is not looked at.
pub(super) fn identity(token: &str) -> String {
    let claim = || {
        let payload = token.split('.').nth(1)?.trim_end_matches('=');
        let payload = data_encoding::BASE64URL_NOPAD.decode(payload.as_bytes()).ok()?;
        let claims: Value = serde_json::from_slice(&payload).ok()?;
        Some(claims.get("user_id")?.as_str()?.to_owned())
    };
    claim().unwrap_or_else(|| token.to_owned())
}

/// Splits a file into its threads; `first` is the number that the first of them will have.
pub(super) fn split(recording: Recording, first: usize) -> Vec<Thread> {
    let Recording { name, stand_ins, personal, mut entries } = recording;
    let given_out: Vec<String> = stand_ins.iter().filter(|text| !personal.contains(text)).cloned().collect();
    // Calls that the shop itself made (webhooks) have another host: they are nothing to answer.
    let host = entries.first().map(|entry| entry.url.host_str().map(str::to_owned));
    entries.retain(|entry| host.as_ref().is_some_and(|host| host.as_deref() == entry.url.host_str()));

    let mut files = Sorter::default();
    let placed: Vec<(Option<usize>, Entry, Call)> = entries
        .into_iter()
        .map(|entry| {
            let token = header(&entry.request_headers, "cart-token");
            let url = &entry.url;
            let call = Call::new(
                &entry.method,
                url.path(),
                url.query().unwrap_or_default(),
                token,
                entry.request_body.as_bytes(),
            );
            (files.place(&entry, &call), entry, call)
        })
        .collect();

    let empty =
        || Thread { file: name.clone(), stand_ins: stand_ins.clone(), exchanges: vec![], writes: vec![] };
    let mut threads: Vec<Thread> = (0..files.identities.len().max(1)).map(|_| empty()).collect();
    let mut current = 0; // what stands before the first token belongs to the first thread
    for (place, entry, call) in placed {
        current = place.unwrap_or(current);
        let Some(thread) = threads.get_mut(current) else { continue };
        if call.is_write() {
            thread.writes.push(thread.exchanges.len());
        }
        thread.exchanges.push(exchange(entry, call, &files.tokens, first, &given_out));
    }
    threads
}

fn exchange(
    entry: Entry,
    call: Call,
    tokens: &BTreeMap<String, usize>,
    first: usize,
    stand_ins: &[String],
) -> Exchange {
    let stands_in = |text: &str| {
        entry.headers.iter().any(|header| header.value.contains(text))
            || String::from_utf8_lossy(&entry.body).contains(text)
    };
    let tokens = tokens.iter().filter(|(token, _)| stands_in(token));
    let tokens = tokens.map(|(token, thread)| (token.clone(), first + thread)).collect();
    let stand_ins = stand_ins.iter().filter(|text| stands_in(text)).cloned().collect();
    let body = serde_json::from_slice(&entry.body).map_or_else(|_| Body::Other(entry.body), Body::Json);
    Exchange {
        number: entry.number,
        comment: entry.comment,
        call,
        answer: Answer { status: entry.status, headers: entry.headers, body },
        tokens,
        stand_ins,
    }
}

/// Finds the thread of each entry, in the order of the file.
#[derive(Default)]
struct Sorter {
    identities: BTreeMap<String, usize>,
    tokens: BTreeMap<String, usize>,
    orders: BTreeMap<String, usize>,
    buyers: BTreeMap<String, usize>,
}

impl Sorter {
    fn place(&mut self, entry: &Entry, call: &Call) -> Option<usize> {
        let answer: Option<Value> = serde_json::from_slice(&entry.body).ok();
        let mut answered = header(&entry.headers, "cart-token").map(str::to_owned).into_iter().collect();
        if let Some(answer) = &answer {
            inner_tokens(answer, &mut answered);
        }
        let thread = call.token.iter().chain(&answered).map(|token| self.thread_of(token)).next();
        for token in &answered {
            self.thread_of(token); // every recorded token is known, so that none leaves the tape
        }
        if let Some(id) = call.order_id() {
            return self.orders.get(id).copied().or(thread);
        }
        if let Some(email) = call.looks_for_orders_of() {
            return self.buyers.get(&email.to_lowercase()).copied().or(thread);
        }
        if let (Some(sent), Some(thread)) = (call.sent_checkout(), thread) {
            self.buyers.insert(sent.email.to_lowercase(), thread);
        }
        let made = answer.as_ref().and_then(|value| value.get("order_id")).and_then(Value::as_u64);
        if let (Some(order), Some(thread)) = (made, thread) {
            self.orders.insert(order.to_string(), thread);
        }
        thread
    }

    fn thread_of(&mut self, token: &str) -> usize {
        let next = self.identities.len();
        let thread = *self.identities.entry(identity(token)).or_insert(next);
        self.tokens.insert(token.to_owned(), thread);
        thread
    }
}

/// The tokens in the inner headers of a batch's answer.
fn inner_tokens(answer: &Value, into: &mut Vec<String>) {
    let responses = answer.get("responses").and_then(Value::as_array);
    for headers in responses.into_iter().flatten().filter_map(|inner| inner.get("headers")?.as_object()) {
        let token = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("cart-token"));
        into.extend(token.and_then(|(_, value)| value.as_str()).map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::har::parse;
    use super::*;

    fn token(user: &str, turn: u32) -> String {
        let part = data_encoding::BASE64URL_NOPAD
            .encode(json!({ "user_id": user, "iat": turn }).to_string().as_bytes());
        format!("h.{part}.s")
    }

    fn entry(url: &str, asked: Option<&str>, answered: Option<&str>, body: &Value) -> Value {
        let headers = |token: Option<&str>| {
            token.map_or(json!([]), |token| json!([{ "name": "Cart-Token", "value": token }]))
        };
        json!({
            "request": { "method": if url.contains("checkout") { "POST" } else { "GET" }, "url": url,
                "headers": headers(asked) },
            "response": { "status": 200, "headers": headers(answered), "content": { "text": body.to_string() } },
        })
    }

    fn threads(entries: &[Value]) -> Vec<Vec<usize>> {
        let file = json!({ "log": { "entries": entries } }).to_string();
        let threads = split(parse(Path::new("x.har"), file.as_bytes()).unwrap(), 0);
        threads
            .iter()
            .map(|thread| thread.exchanges.iter().map(|exchange| exchange.number).collect())
            .collect()
    }

    #[test]
    fn tokens_of_one_user_are_one_thread_and_order_reads_follow_the_order() {
        let shop = |path: &str| format!("https://shop.example.com/wp-json/wc/{path}");
        let cart = shop("store/v1/cart");
        let checkout = shop("store/v1/checkout");
        let found = threads(&[
            entry(&cart, None, Some(&token("a", 1)), &json!({})),
            entry(&checkout, Some(&token("a", 2)), None, &json!({ "order_id": 7 })),
            entry(&cart, None, Some(&token("b", 1)), &json!({})),
            entry(&shop("store/v1/order/7"), None, None, &json!({})),
            entry(&shop("v3/orders"), None, None, &json!([])),
            entry("https://gateway.example.com/hook", None, None, &json!({})),
            entry(&checkout, Some(&token("b", 5)), None, &json!({})),
        ]);
        // The list of orders was read while the thread of order 7 was at hand.
        assert_eq!(found, [vec![0, 1, 3, 4], vec![2, 6]]);
    }

    #[test]
    fn a_file_without_tokens_is_one_thread() {
        let url = "https://shop.example.com/wp-json/wc/store/v1/products";
        assert_eq!(
            threads(&[entry(url, None, None, &json!([])), entry(url, None, None, &json!([]))]),
            [[0, 1]]
        );
    }

    #[test]
    fn a_token_that_is_no_jwt_is_its_own_identity() {
        assert_eq!(identity("cart-token-1"), "cart-token-1");
        assert_eq!(identity(&token("t_1", 3)), "t_1");
    }
}
