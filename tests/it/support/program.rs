//! The program as people start it, with a client that speaks to it; and its commands, run to their end.

use std::{
    process::{Command, ExitStatus, Output},
    time::Duration,
};

use reqwest::Method;
use serde_json::Value;

use super::{clients::PROFILE, process::Process};

/// A running program, and who asks it.
pub struct Program {
    process: Process,
    /// Where it is ready.
    pub address: String,
    client: reqwest::Client,
}

impl Program {
    /// Starts it and waits until it says that it is ready.
    pub async fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, "info").await
    }

    /// The same, and everything that can be logged is.
    pub async fn start_logged(arguments: &[&str]) -> Self {
        Self::start_with(arguments, "trace").await
    }

    async fn start_with(arguments: &[&str], filter: &str) -> Self {
        let process = Process::start(arguments, &[("TILLGATE__LOG__FILTER", filter)]).await;
        let address = process.address.clone();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { process, address, client }
    }

    /// `kill -9`.
    pub fn kill(self) {
        self.process.kill();
    }

    /// The same; all that it has said, to its last line.
    pub async fn kill_and_hear(self) -> Vec<String> {
        self.process.kill_and_hear().await
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    pub async fn terminated(mut self) -> ExitStatus {
        self.process.signal("TERM");
        self.process.ends_within(Duration::from_secs(30)).await
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

/// Runs it to its end.
pub async fn run(arguments: &[&str]) -> Output {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let run = move || Command::new(env!("CARGO_BIN_EXE_tillgate")).args(arguments).output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}
