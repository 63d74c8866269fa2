//! HTTP with the shop: one call, its deadline, and what a failure means.
//!
//! Two clients live here: one for the Store API and one for `wc/v3`. The key of the latter never travels with
//! the former: it would log the merchant in and open the merchant's own cart.
//!
//! Nothing is repeated here. Logged are method, path without query, status and time; never a token, a body or
//! an address.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use reqwest::{
    Method, Request, StatusCode,
    header::{ACCEPT, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use url::Url;

use super::{token, wire::ApiError};
use crate::{
    checkout::{cart::CartHandle, store::Error},
    net,
};

/// The largest answer that is read: a batch of 25 untrimmed answers stays far below.
const BODY_CAP: usize = 8 * 1024 * 1024;
/// How far into an answer JSON may begin when a plugin has printed something before it.
const NOISE_STARTS: usize = 64;

/// The Store API of one shop.
#[derive(Debug)]
pub(super) struct StoreApi {
    shop: reqwest::Client,
    place: reqwest::Client,
    root: String,
}

/// What a call is, apart from its address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// How long it may take, answer included.
    pub(super) deadline: Duration,
    /// Whether it may change something at the shop.
    pub(super) writes: bool,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl StoreApi {
    pub(super) fn new(base: &Url) -> Result<Self, net::Error> {
        Ok(Self {
            shop: net::client(net::Purpose::Shop)?,
            place: net::client(net::Purpose::PlaceOrder)?,
            root: root(base, "wc/store/v1"),
        })
    }

    /// A read or a cart write over a kept connection.
    pub(super) async fn call(
        &self,
        call: Call,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        cart: Option<&CartHandle>,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<Answer, Error> {
        let request = request(&self.shop, &self.root, method, path, query);
        let request = with_cart(request, cart)?;
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        send(&self.shop, request.timeout(call.deadline), path, call.writes).await
    }

    /// The one call that may buy: its own client, a fresh connection, no second try by anybody.
    pub(super) async fn place(
        &self,
        deadline: Duration,
        cart: &CartHandle,
        body: &(impl Serialize + Sync),
    ) -> Result<Answer, Error> {
        let request = request(&self.place, &self.root, Method::POST, "/checkout", &[]);
        let request = with_cart(request, Some(cart))?.json(body).timeout(deadline);
        send(&self.place, request, "/checkout", true).await
    }
}

/// `wc/v3`, with the merchant's key.
#[derive(Debug)]
pub(super) struct AdminApi {
    http: reqwest::Client,
    root: String,
    key: String,
    secret: SecretString,
}

impl AdminApi {
    pub(super) fn new(base: &Url, key: String, secret: SecretString) -> Result<Self, net::Error> {
        Ok(Self { http: net::client(net::Purpose::Shop)?, root: root(base, "wc/v3"), key, secret })
    }

    /// A read.
    pub(super) async fn get(
        &self,
        deadline: Duration,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Answer, Error> {
        let request = request(&self.http, &self.root, Method::GET, path, query)
            .basic_auth(&self.key, Some(self.secret.expose_secret()))
            .timeout(deadline);
        send(&self.http, request, path, false).await
    }

    /// A write.
    pub(super) async fn put(
        &self,
        deadline: Duration,
        path: &str,
        query: &[(&str, &str)],
        body: &(impl Serialize + Sync),
    ) -> Result<Answer, Error> {
        let request = request(&self.http, &self.root, Method::PUT, path, query)
            .basic_auth(&self.key, Some(self.secret.expose_secret()))
            .json(body)
            .timeout(deadline);
        send(&self.http, request, path, true).await
    }
}

fn root(base: &Url, namespace: &str) -> String {
    let mut base = base.clone();
    base.set_query(None);
    base.set_fragment(None);
    format!("{}/wp-json/{namespace}", base.as_str().trim_end_matches('/'))
}

fn request(
    http: &reqwest::Client,
    root: &str,
    method: Method,
    path: &str,
    query: &[(&str, &str)],
) -> reqwest::RequestBuilder {
    let request = http.request(method, format!("{root}{path}")).header(ACCEPT, "application/json");
    if query.is_empty() { request } else { request.query(query) }
}

/// Sets the cart's token.
///
/// A token that cannot stand in a header was not made by a shop: the cart is gone.
fn with_cart(
    request: reqwest::RequestBuilder,
    cart: Option<&CartHandle>,
) -> Result<reqwest::RequestBuilder, Error> {
    let Some(cart) = cart else { return Ok(request) };
    let mut value = HeaderValue::from_str(&cart.token).map_err(|_| Error::CartGone)?;
    value.set_sensitive(true);
    Ok(request.header(token::HEADER, value))
}

async fn send(
    http: &reqwest::Client,
    request: reqwest::RequestBuilder,
    path: &str,
    writes: bool,
) -> Result<Answer, Error> {
    let request = request.build().map_err(|error| failed(error.into(), writes))?;
    let method = request.method().clone();
    let started = Instant::now();
    let answer = exchange(http, request).await.map_err(|error| failed(error, writes));
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match &answer {
        Ok(answer) => tracing::debug!(%method, path, status = answer.status.as_u16(), ms, "shop answered"),
        Err(error) => tracing::debug!(%method, path, %error, ms, "shop call failed"),
    }
    answer
}

async fn exchange(http: &reqwest::Client, request: Request) -> Result<Answer, net::Error> {
    // The address holds order keys and e-mails in its query: it goes into no error.
    let response = http.execute(request).await.map_err(|error| net::Error::from(error.without_url()))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = net::read_capped(response, BODY_CAP).await?;
    Ok(Answer { status, headers, body })
}

/// A call without a whole answer, told by moment.
fn failed(error: net::Error, writes: bool) -> Error {
    match error {
        net::Error::Connect(_) | net::Error::Build(_) => Error::Unreachable(Box::new(error)),
        net::Error::TimedOut(_) => Error::TimedOut,
        net::Error::Broken(_) => Error::Broken(Box::new(error)),
        net::Error::TooLarge(cap) => {
            Error::Unintelligible { what: format!("the answer is larger than {cap} bytes"), wrote: writes }
        }
    }
}

impl Answer {
    /// The token that the answer brings.
    pub(super) fn token(&self) -> Option<&str> {
        self.header(token::HEADER)
    }

    /// The shop's own time, in whole seconds.
    pub(super) fn shop_time(&self) -> Option<DateTime<Utc>> {
        DateTime::parse_from_rfc2822(self.header(DATE.as_str())?).ok().map(|time| time.to_utc())
    }

    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The error body, if this is one.
    pub(super) fn api_error(&self) -> Option<ApiError> {
        serde_json::from_value(json(&self.body)?).ok()
    }

    /// Reads what a successful read or cart write answers; noise before the JSON is passed over.
    ///
    /// # Errors
    /// What the status and code mean ([`Answer::failure`]), or [`Error::Unintelligible`].
    pub(super) fn read<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        if !self.status.is_success() {
            return Err(self.failure(call.writes));
        }
        let unintelligible = |what: &str| Error::Unintelligible { what: what.to_owned(), wrote: call.writes };
        let value = json(&self.body).ok_or_else(|| unintelligible("not JSON"))?;
        serde_path_to_error::deserialize(value).map_err(|error| {
            // The path and the kind of fault, never the value that was found there.
            unintelligible(&format!("`{}` is not as expected", error.path()))
        })
    }

    /// What an answer means that is none of the successes, for everything but placing an order.
    pub(super) fn failure(&self, writes: bool) -> Error {
        let status = self.status.as_u16();
        let code = self.api_error().map(|error| error.code);
        match (status, code.as_deref()) {
            (429, _) | (400, Some("rate_limit_exceeded")) => self.limited(),
            (401, Some("woocommerce_rest_missing_nonce")) | (403, Some("woocommerce_rest_invalid_nonce")) => {
                Error::CartGone
            }
            (503, _) => Error::Maintenance { status, retry_after_secs: self.retry_after_secs() },
            (500.., _) => Error::Failed { status, code },
            (300..=499, _) => Error::Refused { status, code },
            _ => Error::Unintelligible { what: format!("HTTP {status} is not expected"), wrote: writes },
        }
    }

    /// The shop's limiter, with the waiting time that it names.
    pub(super) fn limited(&self) -> Error {
        Error::Limited { retry_after_secs: self.retry_after_secs() }
    }

    /// Whether the refusal is a limiter's and nothing ran. A bare 429 could come from a payment provider
    /// behind the shop; with the limiter's own headers or code it does not.
    pub(super) fn is_limiter(&self) -> bool {
        let code = self.api_error().is_some_and(|error| error.code == "rate_limit_exceeded");
        let status = self.status.as_u16();
        (status == 400 || status == 429)
            && (code || (status == 429 && self.headers.contains_key("RateLimit-Limit")))
    }

    /// Seconds to wait: the Store API has its own header, everybody else the standard one.
    pub(super) fn retry_after_secs(&self) -> Option<u64> {
        let own = self.header("RateLimit-Retry-After");
        own.or_else(|| self.header(RETRY_AFTER.as_str()))?.trim().parse().ok()
    }
}

/// The JSON of an answer. Where a plugin has printed a notice before it, the JSON is what goes from some
/// bracket to the very end; at most one bracket fits, since a bracket inside leaves the outer one's end over.
pub(super) fn json(body: &[u8]) -> Option<Value> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if let Ok(value) = serde_json::from_slice(body) {
        return Some(value);
    }
    let starts = body.iter().enumerate().filter(|(_, byte)| matches!(byte, b'{' | b'['));
    starts.take(NOISE_STARTS).find_map(|(at, _)| serde_json::from_slice(body.get(at..)?).ok())
}

/// No body, for [`StoreApi::call`].
pub(super) const NO_BODY: Option<&Value> = None;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::store::Effect;

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (name.to_ascii_lowercase().parse().unwrap(), HeaderValue::from_static(value))
            })
            .collect();
        Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn json_is_found_behind_noise_and_only_there() {
        let whole = json(b"{\"a\":{\"b\":[1]}}").unwrap();
        assert_eq!(json(b"<br />\n<b>Warning</b>: x [here]\n{\"a\":{\"b\":[1]}}\n").unwrap(), whole);
        assert_eq!(json(b"\xef\xbb\xbf{\"a\":{\"b\":[1]}}").unwrap(), whole);
        assert!(json(b"{\"a\":{\"b\":[1]}} trailing").is_none());
        assert!(json(b"<html><script>var x = {\"a\":1};</script></html>").is_none());
        assert!(json(b"").is_none());
    }

    #[test]
    fn status_and_code_say_what_happened() {
        type Check = fn(&Error) -> bool;
        let table: [(u16, &str, Check); 9] = [
            (400, r#"{"code":"rate_limit_exceeded","data":{"status":400}}"#, |e| {
                matches!(e, Error::Limited { retry_after_secs: Some(4) })
            }),
            (401, r#"{"code":"woocommerce_rest_missing_nonce"}"#, |e| matches!(e, Error::CartGone)),
            (403, r#"{"code":"woocommerce_rest_invalid_nonce"}"#, |e| matches!(e, Error::CartGone)),
            (404, r#"{"code":"rest_no_route","data":{"status":404}}"#, |e| {
                matches!(e, Error::Refused { status: 404, code: Some(_) })
            }),
            (403, "<html>firewall</html>", |e| matches!(e, Error::Refused { status: 403, code: None })),
            (503, "<html>Maintenance</html>", |e| {
                matches!(e, Error::Maintenance { retry_after_secs: Some(4), .. })
                    && e.effect() == Effect::Unknown
            }),
            (500, r#"{"code":"internal_server_error","data":{"status":500}}"#, |e| {
                matches!(e, Error::Failed { status: 500, code: Some(_) })
            }),
            (502, "<html>bad gateway</html>", |e| matches!(e, Error::Failed { status: 502, code: None })),
            (301, "", |e| matches!(e, Error::Refused { status: 301, .. })),
        ];
        for (status, body, check) in table {
            let error = answer(status, &[("RateLimit-Retry-After", "4")], body).failure(true);
            assert!(check(&error), "{status} {body}: {error:?}");
        }
    }

    #[test]
    fn addresses_of_shops_in_a_directory() {
        let base = |text| root(&Url::parse(text).unwrap(), "wc/store/v1");
        assert_eq!(base("https://shop.example"), "https://shop.example/wp-json/wc/store/v1");
        assert_eq!(base("https://shop.example/sub/?x=1"), "https://shop.example/sub/wp-json/wc/store/v1");
    }
}
