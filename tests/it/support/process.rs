//! Gateways and shops as processes of their own: killed, frozen, told to stop, and asked over real sockets.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    Reply,
    clients::{PROFILE, acp_address, acp_buyer, acp_lines, acp_payment, full, payment},
    record,
};

/// A running program; ends with the test.
pub struct Process {
    child: Child,
    said: watch::Receiver<Vec<String>>,
    pub address: String,
    /// Where health is told; empty for a shop.
    pub ops: String,
}

impl Process {
    /// Starts it and waits until it is ready. `environment` names points at which it stops.
    pub async fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tillgate"))
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (say, mut said) = watch::channel(Vec::new());
        listen_to(child.stdout.take().unwrap(), say.clone());
        listen_to(child.stderr.take().unwrap(), say);
        let ready = said.wait_for(|lines| lines.iter().any(|line| line.starts_with("ready ")));
        let ready = tokio::time::timeout(Duration::from_secs(30), ready).await.is_ok_and(|seen| seen.is_ok());
        let lines = said.borrow().clone();
        assert!(ready, "it did not get ready: {lines:#?}");
        let word = |word: &str| lines.iter().find_map(|line| line.strip_prefix(word)).unwrap_or_default();
        let (address, ops) = (word("ready ").to_owned(), word("ops ").to_owned());
        Self { child, said, address, ops }
    }

    /// The demo shop.
    pub async fn shop(more: &[&str]) -> Self {
        let mut arguments = vec!["shop", "--listen", "127.0.0.1:0", "--log", "warn"];
        arguments.extend(more);
        Self::start(&arguments, &[]).await
    }

    /// A gateway with that configuration.
    pub async fn serve(config: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start(&["serve", "--config", config.to_str().unwrap()], environment).await
    }

    /// Work has come to the point at which it was told to stop.
    pub async fn reached(&mut self, point: &str) {
        let line = format!("at {point}");
        let reached = self.said.wait_for(|lines| lines.contains(&line));
        let reached = tokio::time::timeout(Duration::from_secs(30), reached).await;
        assert!(reached.is_ok_and(|seen| seen.is_ok()), "never at {point}: {:#?}", self.said.borrow());
    }

    /// What it has said so far, line by line: on standard output, and in its log.
    pub fn said(&self) -> Vec<String> {
        self.said.borrow().clone()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same; all that it has said, to its last line.
    pub async fn kill_and_hear(self) -> Vec<String> {
        let mut said = self.said.clone();
        self.kill();
        // Until both who listen have come to the end of what it said.
        while said.changed().await.is_ok() {}
        said.borrow().clone()
    }

    /// Sends a signal by name: `STOP`, `CONT`, `TERM`.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for its end, bounded.
    pub async fn ends_within(&mut self, most: Duration) -> ExitStatus {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        let waiting = async {
            loop {
                look.tick().await;
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
            }
        };
        let status = tokio::time::timeout(most, waiting).await;
        status.unwrap_or_else(|_| panic!("it did not end within {most:?}: {:#?}", self.said.borrow()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.said.borrow();
            println!("{} said last: {:#?}", self.address, &said[said.len().saturating_sub(30)..]);
        }
        // Ends only what this test started; also when it is frozen. It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process that the test has started.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status().unwrap();
    assert!(sent.success(), "SIG{name} to {process}");
}

fn listen_to(pipe: impl std::io::Read + Send + 'static, say: watch::Sender<Vec<String>>) {
    // Ends with the process: its end of the pipe is closed then.
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            say.send_modify(|lines| lines.push(line));
        }
    });
}

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ucp,
    Acp,
}

/// An agent over real sockets.
#[derive(Clone)]
pub struct Agent {
    client: reqwest::Client,
}

impl Agent {
    pub fn new() -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
        Self { client }
    }

    /// A call; an error when the connection broke. The answer is recorded.
    pub async fn call(
        &self,
        side: Side,
        base: &str,
        method: Method,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Result<Reply, reqwest::Error> {
        let path = match side {
            Side::Ucp => format!("/ucp/checkout-sessions{path}"),
            Side::Acp => format!("/acp/checkout_sessions{path}"),
        };
        let mut request = self.client.request(method.clone(), format!("{base}{path}"));
        request = match side {
            Side::Ucp => request.header("ucp-agent", format!("profile=\"{PROFILE}\"")),
            Side::Acp => {
                request.header("authorization", "Bearer test-token").header("api-version", "2026-04-17")
            }
        };
        if method != Method::GET {
            request = request.header("idempotency-key", key);
        }
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let bytes = answer.bytes().await?.to_vec();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let reply = Reply { status, headers, bytes, json };
        record::record(&method, &path, &reply);
        Ok(reply)
    }

    /// Makes a checkout of one rose that can be completed, for a buyer of that address.
    pub async fn ready(&self, side: Side, base: &str, email: &str) -> String {
        let key = tillgate::clock::Ids.uuid();
        let reply = self.call(side, base, Method::POST, "", &key, Some(&purchase(side, email))).await;
        let reply = reply.unwrap().expect(201);
        let wanted = if side == Side::Ucp { "ready_for_complete" } else { "ready_for_payment" };
        assert_eq!(reply.text("/status"), wanted, "{}", reply.json);
        reply.id()
    }

    pub async fn complete(
        &self,
        side: Side,
        base: &str,
        id: &str,
        key: &str,
        token: &str,
    ) -> Result<Reply, reqwest::Error> {
        let body = if side == Side::Ucp { payment(token) } else { acp_payment(token) };
        self.call(side, base, Method::POST, &format!("/{id}/complete"), key, Some(&body)).await
    }

    pub async fn get(&self, side: Side, base: &str, id: &str) -> Result<Reply, reqwest::Error> {
        self.call(side, base, Method::GET, &format!("/{id}"), "", None).await
    }

    /// What an address answers: status, and body as JSON.
    pub async fn look(&self, url: &str) -> (u16, Value) {
        let answer = self.client.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// Orders at the demo shop of a buyer.
    pub async fn orders(&self, shop: &str, email: &str) -> Vec<Value> {
        let orders = self.look(&format!("{shop}/_demo/orders")).await.1;
        let orders = orders.as_array().cloned().unwrap_or_default();
        orders.into_iter().filter(|order| order["email"] == email).collect()
    }

    /// Calls at the demo shop that tried to place an order, and that came through as far as it.
    pub async fn places(&self, shop: &str) -> usize {
        let calls = self.look(&format!("{shop}/_demo/calls")).await.1;
        let placing = |call: &&Value| {
            call["method"] == "POST" && call["path"].as_str().is_some_and(|path| path.ends_with("/checkout"))
        };
        calls["calls"].as_array().map_or(0, |calls| calls.iter().filter(placing).count())
    }

    /// Sets faults at the demo shop.
    pub async fn faults(&self, shop: &str, faults: &Value) {
        let answer = self.client.put(format!("{shop}/_demo/faults")).json(faults).send().await.unwrap();
        assert!(answer.status().is_success(), "{faults}");
    }
}

/// A create of one rose that can be paid at once.
pub fn purchase(side: Side, email: &str) -> Value {
    match side {
        Side::Ucp => {
            let mut body = full("bouquet_roses", 1);
            body["buyer"]["email"] = json!(email);
            body
        }
        Side::Acp => {
            let mut body = acp_lines("bouquet_roses", 1, "usd");
            body["buyer"] = acp_buyer();
            body["buyer"]["email"] = json!(email);
            body["fulfillment_details"] = json!({"address": acp_address()});
            body
        }
    }
}

/// Whether an answer is the last word under its key: not in the making, not in flight, no failure of ours.
pub fn is_final(reply: &Reply) -> bool {
    let in_flight = reply.status == 409
        && ["/code", "/messages/0/code"]
            .iter()
            .any(|at| reply.json.pointer(at).is_some_and(|code| code == "idempotency_in_flight"));
    reply.status < 500 && reply.status != 429 && !in_flight && reply.json["status"] != "complete_in_progress"
}

/// How often something is done: the number that the environment names, or a small one.
pub fn often(name: &str, small: usize) -> usize {
    std::env::var(name).ok().map_or(small, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}
