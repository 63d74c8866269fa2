//! Bytes on the wire, where the small clients cannot go: odd framing, targets, hosts and chunks, over a real listener.
//! What is no HTTP is refused by the server itself, without a body; everything else has the protocol's form.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;
use crate::support::listen;

/// An answer as it came.
#[derive(Debug)]
struct Came {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Came {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// A refusal in the form of the protocol.
    #[track_caller]
    fn refusal(&self, side: Side, status: u16, what: &str) {
        assert_eq!(self.status, status, "{side:?} {what}: {self:?}");
        let body = self.json();
        assert!(body["code"].is_string(), "{side:?} {what}: {body}");
        match side {
            Ucp => assert_eq!(body["messages"][0]["code"], body["code"], "{what}"),
            Acp => assert!(body["message"].is_string() && body["type"].is_string(), "{what}"),
        }
    }
}

/// A gateway that listens.
struct Wire {
    app: TestApp,
    address: String,
}

impl Wire {
    async fn new() -> Self {
        let app = TestApp::new().await;
        let address = listen(app.app.router()).await.trim_start_matches("http://").to_owned();
        Self { app, address }
    }

    /// Sends bytes and reads until the other side closes; the last request has to ask for that.
    async fn send(&self, bytes: &[u8]) -> Vec<Came> {
        self.talk(bytes, false).await
    }

    async fn talk(&self, bytes: &[u8], hangs_up: bool) -> Vec<Came> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let mut got = Vec::new();
        let talk = async {
            // The other side may refuse and close before all is sent.
            let _ = stream.write_all(bytes).await;
            if hangs_up {
                let _ = stream.shutdown().await;
            }
            let _ = stream.read_to_end(&mut got).await;
        };
        tokio::time::timeout(Duration::from_secs(20), talk).await.unwrap();
        answers(&got)
    }

    /// One request, the last one of its connection.
    async fn one(&self, bytes: &[u8]) -> Came {
        let bytes = &closing(bytes);
        let shown = String::from_utf8_lossy(bytes.get(..60).unwrap_or(bytes)).into_owned();
        let mut came = self.send(bytes).await;
        assert_eq!(came.len(), 1, "{shown}: {came:?}");
        came.remove(0)
    }
}

/// The request with the wish to close the connection behind it.
fn closing(bytes: &[u8]) -> Vec<u8> {
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return bytes.to_vec() };
    [&bytes[..end], b"\r\nConnection: close", &bytes[end..]].concat()
}

/// Splits what was read into answers, by their lengths.
fn answers(mut bytes: &[u8]) -> Vec<Came> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        let length = if status < 200 { 0 } else { length.unwrap_or(bytes.len() - end - 4) };
        all.push(Came { status, head, body: bytes[end + 4..end + 4 + length].to_vec() });
        bytes = &bytes[end + 4 + length..];
    }
    all
}

/// The head of a write up to its framing headers, which the caller adds.
fn head(side: Side, target: &str) -> String {
    let mut head = format!("POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    for (name, value) in side.headers() {
        let _ = write!(head, "{name}: {}\r\n", String::from_utf8_lossy(&value));
    }
    head
}

/// A create that is fine, with its length.
fn create(side: Side, target: &str) -> String {
    let body = side.good().to_string();
    format!("{}Content-Length: {}\r\n\r\n{body}", head(side, target), body.len())
}

fn chunked(side: Side, chunks: &str) -> String {
    format!("{}Transfer-Encoding: chunked\r\n\r\n{chunks}", head(side, side.root()))
}

/// Requirements: U-043, U-047.
#[tokio::test]
async fn bad_input_of_framing() {
    let wire = Wire::new().await;
    for side in BOTH {
        let good = side.good().to_string();
        let (size, text) = (good.len(), good.as_str());
        let (first, rest) = text.split_at(5);
        let fine = [
            chunked(side, &format!("{size:x}\r\n{text}\r\n0\r\n\r\n")),
            chunked(
                side,
                &format!("5;x=\"y\"\r\n{first}\r\n{:X}\r\n{rest}\r\n0\r\nX-Trailer: 1\r\n\r\n", size - 5),
            ),
            create(side, side.root()).replace("Host:", "X-Odd: \u{fc}\r\nHost:"),
            create(side, &format!("http://127.0.0.1{}", side.root())),
            create(side, &format!("{}?a=%ff&&=", side.root())),
        ];
        for request in &fine {
            let came = wire.one(request.as_bytes()).await;
            assert_eq!(came.status, 201, "{side:?} {request}: {came:?}");
        }
        let made = wire.app.sessions_made();
        wire.app.shop_calls().await;
        // A body that breaks off: whoever hangs up reads no answer, and nothing runs.
        for request in [
            create(side, side.root()).replace(text, &text[..9]),
            chunked(side, "ff\r\n{}"),
            chunked(side, &format!("{size:x}\r\n{text}\r\n")),
        ] {
            for came in wire.talk(request.as_bytes(), true).await {
                came.refusal(side, 400, "broken off");
            }
        }
        for (what, request) in [
            ("no chunk", chunked(side, "zz\r\n{}\r\n0\r\n\r\n")),
            ("a chunk of another size", chunked(side, "1\r\n{}\r\n0\r\n\r\n")),
            ("a chunk beyond counting", chunked(side, "fffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
            ("no length", format!("{}\r\n", head(side, side.root()))),
        ] {
            wire.one(request.as_bytes()).await.refusal(side, 400, what);
        }
        let large = format!("40001\r\n{}\r\n0\r\n\r\n", "x".repeat(0x4_0001));
        wire.one(chunked(side, &large).as_bytes()).await.refusal(side, 413, "large in one chunk");
        let many = format!("1000\r\n{}\r\n", "y".repeat(0x1000)).repeat(65) + "0\r\n\r\n";
        wire.one(chunked(side, &many).as_bytes()).await.refusal(side, 413, "large in many chunks");
        assert_eq!(wire.app.sessions_made(), made);
        assert_eq!(wire.app.shop_calls().await, Vec::<String>::new());
    }
}

/// What two servers in a row would read differently is refused by the first look at it.
#[tokio::test]
async fn bad_input_that_is_no_http() {
    let wire = Wire::new().await;
    let good = Ucp.good().to_string();
    let framed = |lines: &str| format!("{}{lines}\r\n\r\n{good}", head(Ucp, Ucp.root())).into_bytes();
    let mut raw: Vec<Vec<u8>> = vec![
        framed("Content-Length: 5\r\nContent-Length: 6"),
        framed("Content-Length: x"),
        framed("Content-Length: -1"),
        framed("Content-Length: 99999999999999999999999"),
        framed("Transfer-Encoding: gzip"),
        framed("Bad Header: 1"),
        framed("X: a\u{0}b"),
        b"GET /ucp/a b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        b"GET /ucp/\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        b"GET /ucp/\0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        b"GET /ucp HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        b"hello\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        framed(&(0..200).map(|at| format!("X-{at}: 1")).collect::<Vec<_>>().join("\r\n")),
        framed(&format!("X: {}", "x".repeat(1 << 20))),
    ];
    // Two hosts, or none: nobody can tell which shop is meant.
    raw.push(
        create(Ucp, Ucp.root())
            .replace("Host: 127.0.0.1", "Host: 127.0.0.1\r\nHost: general.localhost")
            .into_bytes(),
    );
    raw.push(create(Ucp, Ucp.root()).replace("Host: 127.0.0.1\r\n", "").into_bytes());
    for bytes in raw {
        let came = wire.one(&bytes).await;
        let shown = String::from_utf8_lossy(bytes.get(..80).unwrap_or(&bytes)).into_owned();
        assert!((400..500).contains(&came.status), "{shown}: {came:?}");
    }
    assert_eq!(wire.app.sessions_made(), 0);
    assert_eq!(wire.one(create(Ucp, Ucp.root()).as_bytes()).await.status, 201, "it still serves");
}

#[tokio::test]
async fn bad_input_of_targets_and_methods() {
    let wire = Wire::new().await;
    let agent = format!("UCP-Agent: profile=\"{PROFILE}\"\r\n");
    let ask = |line: &str| format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{agent}\r\n");
    for (line, side, status) in [
        ("BREW /ucp/checkout-sessions", Ucp, 405),
        ("post /ucp/checkout-sessions", Ucp, 405),
        ("TRACE /ucp/checkout-sessions/chk_1", Ucp, 405),
        ("OPTIONS /ucp/checkout-sessions", Ucp, 405),
        ("BREW /acp/checkout_sessions", Acp, 405),
        ("GET /ucp//checkout-sessions", Ucp, 404),
        ("GET /ucp/../acp/checkout_sessions", Ucp, 404),
        ("GET /ucp/%63heckout-sessions/chk_1", Ucp, 404),
        ("GET /acp/%63heckout_sessions/chk_1", Acp, 404),
        ("GET /ucp/checkout-sessions/%2F/complete/x", Ucp, 404),
    ] {
        wire.one(ask(line).as_bytes()).await.refusal(side, status, line);
    }
    for line in ["OPTIONS *", "CONNECT 127.0.0.1:80", "GET http://evil.example/ucp", "GET http:///ucp"] {
        let came = wire.one(ask(line).as_bytes()).await;
        assert!((400..500).contains(&came.status), "{line}: {came:?}");
    }
    for id in ["%00", "%2F", "%ff", "%C3%28", "%zz", "%", "%u0041", "chk_1%0d%0aX:1", &"%41".repeat(3000)] {
        let came = wire.one(ask(&format!("GET /ucp/checkout-sessions/{id}")).as_bytes()).await;
        assert!(came.status == 200 || came.status == 404, "{id}: {came:?}");
        assert!(came.json()["messages"][0]["code"] == "not_found", "{id}: {came:?}");
        let page = wire.one(ask(&format!("GET /go/{id}")).as_bytes()).await;
        assert_eq!(page.status, 404, "{id}: {page:?}");
        assert!(page.head.contains("text/html"), "{id}: {page:?}");
    }
    // The host of an absolute target counts, whatever `Host` says.
    let body = json!({"line_items": [{"item": {"id": "19"}, "quantity": 1}]}).to_string();
    let target = format!("http://general.localhost{}", Ucp.root());
    let general = format!("{}Content-Length: {}\r\n\r\n{body}", head(Ucp, &target), body.len());
    let came = wire.one(general.as_bytes()).await;
    assert_eq!((came.status, &came.json()["currency"]), (201, &json!("EUR")), "{came:?}");
}

#[tokio::test]
async fn bad_input_beside_good_input_on_one_connection() {
    let wire = Wire::new().await;
    for side in BOTH {
        let looked = format!("GET {}/none HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n", side.root());
        let mut headers = String::new();
        for (name, value) in side.headers() {
            let _ = write!(headers, "{name}: {}\r\n", String::from_utf8_lossy(&value));
        }
        let looked = format!("{looked}{headers}\r\nhello");
        let wrong = create(side, side.root()).replace("bouquet_roses", "bouquet\u{0}roses");
        let last = closing(create(side, side.root()).as_bytes());
        let sent = [create(side, side.root()), looked, wrong].concat();
        let came = wire.send(&[sent.as_bytes(), &last].concat()).await;
        let statuses: Vec<u16> = came.iter().map(|came| came.status).collect();
        let none = if side == Ucp { 200 } else { 404 };
        assert_eq!(statuses, [201, none, 400, 201], "{side:?}: {came:?}");
    }
    let waits = create(Ucp, Ucp.root()).replace("Content-Length", "Expect: 100-continue\r\nContent-Length");
    let came = wire.send(&closing(waits.as_bytes())).await;
    assert_eq!(came.last().unwrap().status, 201, "{came:?}");
    let old = create(Ucp, Ucp.root()).replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(wire.one(old.as_bytes()).await.status, 201);
    let upgrade = create(Ucp, Ucp.root()).replace("Host:", "Upgrade: h2c\r\nHost:");
    assert_eq!(wire.one(upgrade.as_bytes()).await.status, 201);
}
