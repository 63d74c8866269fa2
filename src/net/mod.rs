//! Outbound HTTP: the only place that builds clients.
//!
//! One client per purpose. No client follows redirects or repeats a request on its own: whoever asks decides
//! what a failure means. Answers are read with a cap on their size.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

/// Why a call out failed, told by moment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A client could not be built (no usable TLS roots and the like).
    #[error("no HTTP client could be built")]
    Build(#[source] reqwest::Error),
    /// No connection: nothing was sent.
    #[error("no connection could be made")]
    Connect(#[source] reqwest::Error),
    /// The deadline passed.
    #[error("no answer in time")]
    TimedOut(#[source] reqwest::Error),
    /// The connection broke after the request was sent.
    #[error("the connection broke")]
    Broken(#[source] reqwest::Error),
    /// The answer is larger than allowed.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        if error.is_builder() {
            Self::Build(error)
        } else if error.is_connect() {
            Self::Connect(error)
        } else if error.is_timeout() {
            Self::TimedOut(error)
        } else {
            Self::Broken(error)
        }
    }
}

/// What a client is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reads and cart writes at a shop: connections are kept.
    Shop,
    /// The one `POST` that places an order: a fresh connection each time, HTTP/1.1, so that no idle
    /// connection that the shop has closed can swallow it.
    PlaceOrder,
    /// Platform profiles.
    Profile,
    /// Calls that a recorder passes on: as [`Purpose::PlaceOrder`], since any of them may be the one that buys.
    Record,
}

/// Builds the client for a purpose, with a deadline for connecting; the deadline of the whole call is set
/// per request.
///
/// # Errors
/// [`Error::Build`].
pub fn client(purpose: Purpose) -> Result<Client, Error> {
    let builder = Client::builder()
        .user_agent(concat!("tillgate/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(Duration::from_secs(5))
        .no_proxy()
        .referer(false)
        .retry(reqwest::retry::never());
    let builder = match purpose {
        Purpose::Shop => builder.pool_idle_timeout(Duration::from_secs(4)),
        Purpose::PlaceOrder | Purpose::Record => builder.pool_max_idle_per_host(0).http1_only(),
        Purpose::Profile => builder.pool_max_idle_per_host(1),
    };
    builder.build().map_err(Error::Build)
}

/// Reads a body of at most `cap` bytes.
///
/// # Errors
/// [`Error::TooLarge`], or what broke the connection.
pub async fn read_capped(mut response: reqwest::Response, cap: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > cap {
            return Err(Error::TooLarge(cap));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
