//! What a client does that buys twice or loses a cart in a real shop; for tests that want to see none of it.
//!
//! - `overlap`: two calls on one Cart-Token ran at one time.
//! - `repeat`: `POST checkout` with the correlation id (`utm_id`) of another one that still runs, or of an order
//!   that is placed already.
//!
//! Some of this does no harm, and is how an unknown outcome is found out: emptying a cart (the fence), or reading
//! it after that, while a checkout runs whose client has gone or which may never be told; a repeat that the
//! shop refused before any payment. It is listed apart. Calls are counted from their arrival to the end of their
//! work, in line for a worker too.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use serde_json::{Value, json};

/// How many findings of each kind are kept; all are counted.
const KEPT: usize = 1000;

/// A call under way.
#[derive(Debug)]
struct Running {
    number: u64,
    method: String,
    path: String,
    cart: Option<String>,
    /// The correlation id of a `POST checkout`.
    utm_id: Option<String>,
    /// Its client does not wait any more.
    gone: bool,
    /// Its cart was emptied since it arrived.
    fenced: bool,
    /// What it repeats: a call that runs, or a placed order.
    repeats: Option<Value>,
}

impl Running {
    fn json(&self) -> Value {
        json!({"method": self.method, "path": self.path, "client_gone": self.gone})
    }
}

/// The calls under way and what was found.
#[derive(Debug, Default)]
pub(super) struct Watch {
    last: u64,
    running: Vec<Running>,
    count: u64,
    violations: Vec<Value>,
    harmless: Vec<Value>,
}

/// The correlation id of a `POST checkout`, also of one inside a batch; `path` begins with `wp-json`.
pub(super) fn posted(method: &Method, path: &str, body: &[u8]) -> Option<String> {
    if method != Method::POST {
        return None;
    }
    let body = || serde_json::from_slice::<Value>(body).ok();
    match below(path)? {
        "checkout" => utm_id(&body()?),
        "batch" => body()?.get("requests")?.as_array()?.iter().find_map(|item| {
            let path = item.get("path")?.as_str()?.trim_end_matches('/');
            if path.ends_with("/checkout") { utm_id(item.get("body")?) } else { None }
        }),
        _ => None,
    }
}

fn utm_id(body: &Value) -> Option<String> {
    let id = body.get("extensions")?.get("woocommerce/order-attribution")?.get("utm_id")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// The path below the Store API's root.
fn below(path: &str) -> Option<&str> {
    let path = path.strip_prefix("wp-json")?.trim_matches('/');
    path.strip_prefix("wc/store/v1/").or_else(|| path.strip_prefix("wc/store/"))
}

impl Watch {
    /// Notes a call that arrives, with the identity of its cart and whether an order of its correlation id is
    /// placed already; tells its number.
    pub(super) fn arrive(
        &mut self,
        method: &Method,
        target: &str,
        body: &[u8],
        cart: Option<String>,
        placed: bool,
    ) -> u64 {
        self.last += 1;
        let path = target.split('?').next().unwrap_or_default().trim_end_matches('/');
        let place = below(path).unwrap_or_default();
        let about_cart = place == "batch" || place.starts_with("cart") || place.starts_with("checkout");
        let utm_id = posted(method, path, body);
        let mut call = Running {
            number: self.last,
            method: method.to_string(),
            path: path.to_owned(),
            cart: cart.filter(|_| about_cart && method != Method::OPTIONS),
            utm_id,
            gone: false,
            fenced: false,
            repeats: placed.then(|| json!("a placed order")),
        };
        let empties = method == Method::DELETE && place == "cart/items";
        let reads = method == Method::GET && place == "cart";
        let mut found = Vec::new();
        for other in &mut self.running {
            if call.utm_id.is_some() && other.utm_id == call.utm_id {
                call.repeats = Some(other.json());
            }
            if call.cart.is_none() || other.cart != call.cart {
                continue;
            }
            let buys = other.method == "POST" && other.path.ends_with("/checkout");
            let settles = (empties && (buys || other.gone)) || (reads && (other.gone || other.fenced));
            found.push((settles, other.json()));
            other.fenced |= empties;
        }
        for (settles, first) in found {
            let found = json!({"rule": "overlap", "cart": call.cart, "first": first, "second": call.json()});
            self.note(settles, found);
        }
        self.running.push(call);
        self.last
    }

    fn note(&mut self, harmless: bool, found: Value) {
        let list = if harmless { &mut self.harmless } else { &mut self.violations };
        if list.len() < KEPT {
            list.push(found);
        }
        self.count += u64::from(!harmless);
    }

    /// A call's work is done; `None` if it broke down.
    fn end(&mut self, number: u64, status: Option<u16>) {
        let Some(at) = self.running.iter().position(|call| call.number == number) else { return };
        let call = self.running.swap_remove(at);
        if let Some(first) = &call.repeats {
            let refused = matches!(status, Some(401 | 403 | 409));
            let found = json!({
                "rule": "repeat",
                "utm_id": call.utm_id,
                "first": first,
                "second": call.json(),
                "status": status,
            });
            self.note(refused, found);
        }
    }

    pub(super) fn json(&self) -> Value {
        let api = self.running.iter().filter(|call| call.path.starts_with("wp-json"));
        let running: Vec<Value> = api.map(Running::json).collect();
        json!({
            "count": self.count,
            "violations": self.violations,
            "harmless": self.harmless,
            "running": running,
        })
    }

    /// Forgets what was found; calls under way stay.
    pub(super) fn forget(&mut self) {
        self.count = 0;
        self.violations.clear();
        self.harmless.clear();
    }
}

fn locked(watch: &Mutex<Watch>) -> std::sync::MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call's work; when it is dropped, the call has ended.
#[derive(Debug)]
pub(super) struct CallGuard {
    watch: Arc<Mutex<Watch>>,
    number: u64,
}

impl CallGuard {
    pub(super) fn new(watch: &Arc<Mutex<Watch>>, number: u64) -> Self {
        Self { watch: Arc::clone(watch), number }
    }

    /// Ends the call with an answer.
    pub(super) fn end(self, status: u16) {
        locked(&self.watch).end(self.number, Some(status));
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        locked(&self.watch).end(self.number, None);
    }
}

/// A client that waits; dropped before its call has ended, the client has gone.
#[derive(Debug)]
pub(super) struct ClientGuard {
    watch: Arc<Mutex<Watch>>,
    number: u64,
}

impl ClientGuard {
    pub(super) fn new(watch: &Arc<Mutex<Watch>>, number: u64) -> Self {
        Self { watch: Arc::clone(watch), number }
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        // A call that has ended is not found any more.
        let mut watch = locked(&self.watch);
        if let Some(call) = watch.running.iter_mut().find(|call| call.number == self.number) {
            call.gone = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(method: &Method, path: &str, body: &Value) -> Option<String> {
        posted(method, path, body.to_string().as_bytes())
    }

    #[test]
    fn the_correlation_id_of_a_checkout_is_read_alone_and_in_a_batch() {
        let checkout = json!({"extensions": {"woocommerce/order-attribution": {"utm_id": "corr-1"}}});
        let found = Some("corr-1".to_owned());
        assert_eq!(told(&Method::POST, "wp-json/wc/store/v1/checkout", &checkout), found);
        assert_eq!(told(&Method::POST, "wp-json/wc/store/checkout/", &checkout), found);
        assert_eq!(told(&Method::PUT, "wp-json/wc/store/v1/checkout", &checkout), None);
        assert_eq!(told(&Method::POST, "wp-json/wc/store/v1/checkout/7", &checkout), None);
        let batch = json!({"requests": [
            {"path": "/wc/store/v1/cart/add-item", "body": {"id": 1}},
            {"path": "/wc/store/v1/checkout", "body": checkout},
        ]});
        assert_eq!(told(&Method::POST, "wp-json/wc/store/v1/batch", &batch), found);
        let unnamed = json!({"extensions": {"woocommerce/order-attribution": {"utm_id": ""}}});
        assert_eq!(told(&Method::POST, "wp-json/wc/store/v1/checkout", &unnamed), None);
        assert_eq!(posted(&Method::POST, "wp-json/wc/store/v1/checkout", b"no json"), None);
    }
}
