//! The program as people start it, in a process of its own that ends with the test.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use reqwest::Method;
use serde_json::Value;

use super::clients::PROFILE;

/// A running program.
pub struct Program {
    child: Child,
    /// What it says is kept open: a closed pipe would end it.
    _said: BufReader<ChildStdout>,
    /// Where it is ready.
    pub address: String,
    client: reqwest::Client,
}

impl Program {
    /// Starts it and waits until it says that it is ready.
    pub async fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, None).await
    }

    /// The same, with everything that can be logged in this file.
    pub async fn start_logged(arguments: &[&str], log: &Path) -> Self {
        Self::start_with(arguments, Some(File::create(log).unwrap())).await
    }

    async fn start_with(arguments: &[&str], log: Option<File>) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let filter = if log.is_some() { "trace" } else { "info" };
        let (child, said, address) = tokio::task::spawn_blocking(move || {
            let mut child = Command::new(env!("CARGO_BIN_EXE_tillgate"))
                .args(arguments)
                .stdout(Stdio::piped())
                .stderr(log.map_or_else(Stdio::null, Stdio::from))
                .env("TILLGATE__LOG__FILTER", filter)
                .spawn()
                .unwrap();
            let mut said = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            while said.read_line(&mut line).unwrap() > 0 && !line.starts_with("ready ") {
                line.clear();
            }
            let address = line.trim().trim_start_matches("ready ").to_owned();
            (child, said, address)
        })
        .await
        .unwrap();
        assert!(address.starts_with("http://"), "it ended before it was ready");
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { child, _said: said, address, client }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    pub async fn terminated(mut self) -> ExitStatus {
        let end = move || {
            let pid = self.child.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
            self.child.wait().unwrap()
        };
        tokio::task::spawn_blocking(end).await.unwrap()
    }

    /// A UCP call; the answer's status and body.
    pub async fn ucp(&self, method: Method, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let request = self
            .client
            .request(method.clone(), format!("{}/checkout-sessions{path}", self.address))
            .header("ucp-agent", format!("profile=\"{PROFILE}\""));
        let request =
            if method == Method::GET { request } else { request.header("idempotency-key", key).json(body) };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// An ACP call; the answer's status and body.
    pub async fn acp(&self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let request = self.client.post(format!("{}/acp/checkout_sessions{path}", self.address));
        let request = request
            .header("authorization", "Bearer test-token")
            .header("api-version", "2026-04-17")
            .header("idempotency-key", key);
        let answer = request.json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// What an address answers, as JSON.
    pub async fn get(&self, path: &str) -> Value {
        self.client.get(format!("{}{path}", self.address)).send().await.unwrap().json().await.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Ends only what this test started; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it to its end.
pub async fn run(arguments: &[&str]) -> Output {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let run = move || Command::new(env!("CARGO_BIN_EXE_tillgate")).args(arguments).output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}
