//! Which profile addresses may be fetched, how one is fetched, and how long the result counts.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{Client, header};
use url::{Host, Url};

use super::{Error, Profile};
use crate::net;

/// Longest profile URL.
const MAX_URL: usize = 2048;
/// Largest profile.
const MAX_BODY: usize = 256 * 1024;
/// The whole fetch.
const DEADLINE: Duration = Duration::from_secs(3);
const SHORTEST: u64 = 60;
const LONGEST: u64 = 3600;
const UNSAID: u64 = 300;

/// A fetched profile, or why there is none, and how long that counts.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    result: Result<Arc<Profile>, Error>,
    life: Duration,
    size: usize,
}

impl Entry {
    pub(super) fn profile(&self) -> Result<Arc<Profile>, Error> {
        self.result.clone()
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }
}

/// Each entry says itself how long it counts.
#[derive(Debug)]
pub(super) struct Lifetime;

impl moka::Expiry<String, Entry> for Lifetime {
    fn expire_after_create(&self, _url: &String, entry: &Entry, _at: Instant) -> Option<Duration> {
        Some(entry.life)
    }
}

/// Checks an address before anything is sent: https, no credentials, no address of a private network.
/// Under development rules loopback may be asked, over plain http too.
pub(super) fn target(text: &str, development: bool) -> Result<Url, Error> {
    if text.len() > MAX_URL {
        return Err(Error::InvalidUrl("is too long"));
    }
    let url = Url::parse(text).map_err(|_| Error::InvalidUrl("is not an absolute URL"))?;
    let host = url.host().ok_or(Error::InvalidUrl("names no host"))?;
    let loopback = is_loopback(&host);
    match url.scheme() {
        "https" => {}
        "http" if development && loopback => {}
        _ => return Err(Error::InvalidUrl("must be https")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::InvalidUrl("must not hold credentials"));
    }
    if is_private(&host) && !(development && loopback) {
        return Err(Error::Unreachable(None));
    }
    Ok(url)
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

fn is_private(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
        }
        Host::Ipv4(address) => is_private_address(IpAddr::V4(*address)),
        Host::Ipv6(address) => is_private_address(IpAddr::V6(*address)),
    }
}

fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    let [first, second, ..] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 198 && (second == 18 || second == 19))
}

fn is_private_v6(v6: Ipv6Addr) -> bool {
    let segments = v6.segments();
    let embedded = match segments {
        // v4-mapped, v4-compatible and NAT64 forms stand for a v4 address.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    };
    v6.is_loopback()
        || v6.is_unspecified()
        || v6.is_multicast()
        || v6.is_unique_local()
        || v6.is_unicast_link_local()
        || embedded.is_some_and(is_private_v4)
}

/// Fetches and reads a profile; never fails, so that a failure can be kept like a success.
pub(super) async fn fetch(client: &Client, url: Url, failure_life: Duration) -> Entry {
    match ask(client, url).await {
        Ok((profile, life, size)) => Entry { result: Ok(Arc::new(profile)), life, size },
        Err(error) => {
            let cause: &(dyn std::error::Error + 'static) = &error;
            tracing::info!(cause, "a platform profile was not usable");
            Entry { result: Err(error), life: failure_life, size: 256 }
        }
    }
}

async fn ask(client: &Client, url: Url) -> Result<(Profile, Duration, usize), Error> {
    let unreachable = |error: net::Error| Error::Unreachable(Some(Arc::new(error)));
    let response = client
        .get(url)
        .timeout(DEADLINE)
        .header(header::ACCEPT, "application/json")
        .send()
        .await
        .map_err(|error| unreachable(error.into()))?;
    if !response.status().is_success() {
        return Err(Error::Unreachable(None));
    }
    let life = life(response.headers());
    let body = net::read_capped(response, MAX_BODY).await.map_err(unreachable)?;
    let document =
        serde_json::from_slice(&body).map_err(|_| Error::Malformed("it is not JSON".to_owned()))?;
    Ok((Profile::read(&document)?, life, body.len()))
}

/// How long an answer counts: `max-age` within bounds, whatever else is said.
fn life(headers: &header::HeaderMap) -> Duration {
    let said = headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|directive| directive.trim().split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("max-age"))
        .and_then(|(_, seconds)| seconds.trim().trim_matches('"').parse::<u64>().ok());
    Duration::from_secs(said.map_or(UNSAID, |seconds| seconds.clamp(SHORTEST, LONGEST)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{Router, http::StatusCode, response::IntoResponse as _, routing::get};

    use super::{super::Platforms, *};

    /// Requirements: U-017.
    #[test]
    fn only_https_and_loopback_under_development_rules() {
        let verdict = |url: &str, development| match target(url, development) {
            Ok(_) => "ok",
            Err(Error::InvalidUrl(_)) => "invalid",
            Err(Error::Unreachable(_)) => "unreachable",
            Err(Error::Malformed(_)) => "malformed",
        };
        for (url, production, development) in [
            ("https://agent.example/p.json", "ok", "ok"),
            ("http://agent.example/p.json", "invalid", "invalid"),
            ("http://127.0.0.1:9/p", "invalid", "ok"),
            ("http://127.8.9.1/p", "invalid", "ok"),
            ("http://localhost:80/p", "invalid", "ok"),
            ("http://[::1]:80/p", "invalid", "ok"),
            ("https://localhost/p", "unreachable", "ok"),
            ("https://a.localhost/p", "unreachable", "unreachable"),
            ("https://10.0.0.1/p", "unreachable", "unreachable"),
            ("https://169.254.169.254/latest", "unreachable", "unreachable"),
            ("https://[::ffff:10.0.0.1]/", "unreachable", "unreachable"),
            ("https://[64:ff9b::a00:1]/", "unreachable", "unreachable"),
            ("https://0x7f.1/", "unreachable", "ok"),
            ("https://[fd00::1]/", "unreachable", "unreachable"),
            ("https://user:pw@agent.example/", "invalid", "invalid"),
            ("ftp://agent.example/", "invalid", "invalid"),
            ("agent.example", "invalid", "invalid"),
            ("...", "invalid", "invalid"),
            ("", "invalid", "invalid"),
        ] {
            assert_eq!(verdict(url, false), production, "{url} in production");
            assert_eq!(verdict(url, true), development, "{url} in development");
        }
        assert_eq!(verdict(&format!("https://a.example/{}", "x".repeat(MAX_URL)), false), "invalid");
    }

    /// Requirements: U-021.
    #[test]
    fn max_age_counts_within_bounds() {
        for (header, seconds) in [
            (None, 300),
            (Some("no-store"), 300),
            (Some("max-age=0"), 60),
            (Some("public, max-age=120"), 120),
            (Some("public, Max-Age = 99999"), 3600),
        ] {
            let mut headers = header::HeaderMap::new();
            if let Some(text) = header {
                headers.insert(header::CACHE_CONTROL, text.parse().unwrap());
            }
            assert_eq!(life(&headers).as_secs(), seconds, "{header:?}");
        }
    }

    async fn serve(router: Router) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    /// Requirements: U-016, U-019, U-023, U-025.
    #[tokio::test]
    async fn a_profile_is_fetched_once_and_every_failure_is_told_apart() {
        let hits: &'static AtomicUsize = Box::leak(Box::default());
        let router = Router::new()
            .route(
                "/good",
                get(|| async {
                    hits.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    (
                        [("cache-control", "max-age=0")],
                        axum::Json(super::super::full_profile("2026-04-08", None)),
                    )
                }),
            )
            .route("/list", get(|| async { "[]" }))
            .route("/text", get(|| async { "hello" }))
            .route("/big", get(|| async { " ".repeat(MAX_BODY + 1) }))
            .route("/away", get(|| async { axum::response::Redirect::temporary("/good").into_response() }))
            .route("/fails", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }));
        let base = serve(router).await;
        let platforms = Platforms::new(&[], true).unwrap();
        let good = format!("{base}/good");
        let many = (0..8).map(|_| platforms.profile(&good, None));
        assert!(futures::future::join_all(many).await.iter().all(Result::is_ok));
        assert_eq!(hits.load(Ordering::SeqCst), 1);
        for (path, code) in [
            ("list", "malformed"),
            ("text", "malformed"),
            ("big", "unreachable"),
            ("away", "unreachable"),
            ("fails", "unreachable"),
            ("none", "unreachable"),
        ] {
            let found = match platforms.profile(&format!("{base}/{path}"), None).await {
                Err(Error::Malformed(_)) => "malformed",
                Err(Error::Unreachable(_)) => "unreachable",
                Err(Error::InvalidUrl(_)) | Ok(_) => "other",
            };
            assert_eq!(found, code, "{path}");
        }
        assert!(matches!(
            platforms.profile("http://127.0.0.1:1/closed", None).await,
            Err(Error::Unreachable(Some(_)))
        ));
    }
    /// Requirements: U-020.
    #[tokio::test(start_paused = true)]
    async fn a_platform_that_does_not_answer_is_given_up() {
        let router = Router::new().route("/", get(std::future::pending::<()>));
        let platforms = Platforms::new(&[], true).unwrap();
        let url = format!("{}/", serve(router).await);
        let started = tokio::time::Instant::now();
        assert!(matches!(platforms.profile(&url, None).await, Err(Error::Unreachable(Some(_)))));
        assert!(started.elapsed() <= DEADLINE + Duration::from_secs(1), "{:?}", started.elapsed());
    }
}
