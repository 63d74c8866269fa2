//! A little shop on loopback: it says what it was told to say, in order, and keeps what it was asked.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, Response, StatusCode},
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

/// A recorded exchange of `fixtures/store`.
pub(super) fn recorded(name: &str) -> Vec<Value> {
    let path = format!("{}/fixtures/store/{name}.har", env!("CARGO_MANIFEST_DIR"));
    let har: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    har["log"]["entries"].as_array().unwrap().clone()
}

/// What the shop says next.
#[derive(Clone)]
pub(super) struct Say {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    pub(super) delay: Duration,
}

impl Say {
    pub(super) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), delay: Duration::ZERO }
    }

    pub(super) fn code(status: u16, code: &str) -> Self {
        Self::new(
            status,
            json!({ "code": code, "message": "Prosa", "data": { "status": status } }).to_string(),
        )
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn entry(entry: &Value) -> Self {
        let response = &entry["response"];
        let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
        let mut say = Self::new(status, response["content"]["text"].as_str().unwrap());
        for header in response["headers"].as_array().unwrap() {
            let name = header["name"].as_str().unwrap();
            if ["Cart-Token", "Cart-Hash", "Retry-After"].contains(&name) {
                say = say.header(name, header["value"].as_str().unwrap());
            }
        }
        say
    }
}

/// What was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Asked {
    /// Like a recorded request: method, path, query whatever its escapes, body.
    pub(super) fn same(&self, entry: &Value) {
        let request = &entry["request"];
        let url = Url::parse(request["url"].as_str().unwrap()).unwrap();
        assert_eq!(self.method.as_str(), request["method"].as_str().unwrap());
        assert_eq!(self.path, url.path());
        let free = |(name, _): &(String, String)| {
            name != "after" && !(name == "_fields" && url.path().contains("v3"))
        };
        let query: Vec<_> = url.query_pairs().into_owned().filter(free).collect();
        assert_eq!(self.query.iter().filter(|pair| free(pair)).cloned().collect::<Vec<_>>(), query);
        let body = request["postData"]["text"]
            .as_str()
            .map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        assert_eq!(without_tokens(self.body.clone()), without_tokens(body));
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The newest token is sent, whichever was recorded: both open the same cart.
pub(super) fn without_tokens(mut body: Value) -> Value {
    if let Some(requests) = body.get_mut("requests").and_then(Value::as_array_mut) {
        for request in requests {
            assert!(request["headers"]["Cart-Token"].as_str().unwrap().starts_with("ey"));
            request["headers"] = Value::Null;
        }
    }
    body
}

#[derive(Clone, Default)]
pub(super) struct Stub {
    says: Arc<Mutex<VecDeque<Say>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    pub(super) async fn start(says: impl IntoIterator<Item = Say>) -> (Self, Url) {
        let stub = Self::default();
        stub.says.lock().unwrap().extend(says);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = url_of(listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(stub.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (stub, base)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        assert!(self.says.lock().unwrap().is_empty(), "the shop was asked less than expected");
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(State(stub): State<Stub>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let url = Url::parse("http://shop").unwrap().join(&parts.uri.to_string()).unwrap();
    stub.asked.lock().unwrap().push(Asked {
        method: parts.method,
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    });
    let say = stub.says.lock().unwrap().pop_front();
    let say = say.unwrap_or_else(|| Say::new(418, "one call too many"));
    tokio::time::sleep(say.delay).await;
    let mut response = Response::builder().status(StatusCode::from_u16(say.status).unwrap());
    for (name, value) in say.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(say.body)).unwrap()
}

pub(super) fn url_of(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}")).unwrap()
}

/// A listener that reads `reads` bytes at least, writes `says`, and hangs up.
pub(super) async fn hangs_up(reads: usize, says: &'static [u8]) -> Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = url_of(listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut got = 0;
            let mut buffer = [0_u8; 4096];
            while got < reads {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => got += count,
                }
            }
            stream.write_all(says).await.unwrap();
            drop(stream);
        }
    });
    base
}
