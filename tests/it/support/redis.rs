//! A Redis server of a test's own: a real process, which ends with the test.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

/// A running server on a free port of loopback.
pub struct Server {
    folder: TempDir,
    port: u16,
    more: Vec<String>,
    process: Child,
}

impl Server {
    /// Starts one; `None`, with a printed reason, where there is no `redis-server`. With `CI` set that is a failure.
    pub async fn start(more: &[&str]) -> Option<Self> {
        if Command::new("redis-server").arg("--version").output().is_err() {
            println!("skipped: there is no redis-server on this machine");
            assert!(std::env::var_os("CI").is_none(), "with CI set nothing is skipped");
            return None;
        }
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        Some(Self::start_on(free_port(), more, None).await)
    }

    /// Starts a sentinel that watches `master` under the name `tillgate`.
    pub async fn sentinel(master: u16) -> Self {
        let port = free_port();
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor tillgate 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds tillgate 1000\nsentinel failover-timeout tillgate 6000\n"
        );
        Self::start_on(port, Vec::new(), Some(text)).await
    }

    async fn start_on(port: u16, more: Vec<String>, sentinel: Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = match sentinel {
            Some(text) => {
                let file = folder.path().join("sentinel.conf");
                std::fs::write(&file, text).unwrap();
                Command::new("redis-server")
                    .arg(&file)
                    .arg("--sentinel")
                    .current_dir(folder.path())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            }
            None => spawn(folder.path(), port, &more),
        };
        let server = Self { folder, port, more, process };
        server.answers().await;
        server
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its process, for signals.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Asks it something.
    pub async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await
    }

    /// Ends it without a word, as a crash does.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, with what it has on disk.
    pub async fn restart(&mut self) {
        self.process = spawn(self.folder.path(), self.port, &self.more);
        self.answers().await;
    }

    async fn answers(&self) {
        let client = redis::Client::open(self.url()).unwrap();
        for _ in 0..500 {
            if let Ok(mut connection) = client.get_multiplexed_async_connection().await
                && redis::cmd("PING").exec_async(&mut connection).await.is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("redis-server does not answer on port {}", self.port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn spawn(folder: &Path, port: u16, more: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"])
        .arg(folder)
        .args(["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning"])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
