//! A network that misbehaves: a TCP proxy in front of the shop or of Redis.
//!
//! A test says what happens to the next request that holds some text ([`Proxy::next`]), or to everything at once
//! ([`Proxy::freeze`], [`Proxy::refuse`]). Bounded: a request is read up to [`MOST`] bytes, nothing is held for
//! longer than [`LONGEST`], and everything ends with the proxy.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// The most that is read of one request.
const MOST: usize = 1 << 20;
/// The longest that anything is held.
const LONGEST: Duration = Duration::from_mins(2);

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It never leaves: the connection is cut before its first byte.
    CutBefore,
    /// Half of it leaves, then the connection is cut on both sides.
    CutInside,
    /// It is done; the connection is cut before the first byte of the answer.
    CutAfter,
    /// It is done; the connection is cut in the middle of the answer.
    CutAnswer,
    /// It waits before it leaves.
    Delay(Duration),
    /// It is sent twice, at the same time; the first answer counts.
    Twice,
    /// It is done; the answer waits until the test lets it go.
    Hold,
    /// Nothing passes any more, and nobody is told.
    HalfOpen,
    /// Its sender is cut off at once; it arrives all the same, that much later.
    Late(Duration),
}

/// How far a request has come that a test asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Awaited,
    Sent,
    Answered,
}

/// A request that a test asked for.
#[derive(Debug, Clone)]
pub struct Ticket {
    stage: watch::Receiver<Stage>,
    let_go: CancellationToken,
}

impl Ticket {
    /// It is on its way to the server (or was dropped).
    pub async fn sent(&mut self) {
        self.until(Stage::Sent).await;
    }

    /// The server has begun to answer it.
    pub async fn answered(&mut self) {
        self.until(Stage::Answered).await;
    }

    /// An answer that is held goes on.
    pub fn let_go(&self) {
        self.let_go.cancel();
    }

    async fn until(&mut self, wanted: Stage) {
        let waiting = self.stage.wait_for(|stage| *stage >= wanted);
        tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
    }
}

struct Rule {
    needle: String,
    act: Act,
    stage: watch::Sender<Stage>,
    let_go: CancellationToken,
}

struct Shared {
    target: SocketAddr,
    rules: Mutex<VecDeque<Rule>>,
    frozen: watch::Sender<bool>,
    refusing: watch::Sender<bool>,
}

/// The proxy. Ends, with its connections, when it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _running: JoinSet<()>,
}

impl Proxy {
    /// In front of `target`, on a free port of loopback.
    pub async fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target,
            rules: Mutex::default(),
            frozen: watch::Sender::new(false),
            refusing: watch::Sender::new(false),
        });
        let mut running = JoinSet::new();
        running.spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, _running: running }
    }

    /// In front of an address such as `http://127.0.0.1:8789`.
    pub async fn before_url(url: &str) -> Self {
        let address = url.split("://").last().unwrap_or(url).trim_end_matches('/');
        Self::before(address.parse().unwrap()).await
    }

    pub fn http(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Says what happens to the next request that holds `needle` (in its first bytes, as sent).
    pub fn next(&self, needle: &str, act: Act) -> Ticket {
        let (stage, seen) = watch::channel(Stage::Awaited);
        let let_go = CancellationToken::new();
        let ticket = Ticket { stage: seen, let_go: let_go.clone() };
        let rule = Rule { needle: needle.to_owned(), act, stage, let_go };
        self.shared.rules.lock().unwrap().push_back(rule);
        ticket
    }

    /// Nothing passes, in either direction, and nobody is told; until it thaws.
    pub fn freeze(&self) {
        self.shared.frozen.send_replace(true);
    }

    pub fn thaw(&self) {
        self.shared.frozen.send_replace(false);
    }

    /// Open connections are cut, new ones are closed at once; until it is told otherwise.
    pub fn refuse(&self, refuse: bool) {
        self.shared.refusing.send_replace(refuse);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                if *shared.refusing.borrow() {
                    continue;
                }
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let mut refusing = shared.refusing.subscribe();
                    tokio::select! {
                        _ = pass(client, &shared) => {}
                        _ = refusing.wait_for(|refuse| *refuse) => {}
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Shared {
    async fn thawed(&self) {
        let mut frozen = self.frozen.subscribe();
        // The sender lives as long as `self`.
        let _ = frozen.wait_for(|frozen| !frozen).await;
    }

    fn rule(&self, bytes: &[u8]) -> Option<Rule> {
        let mut rules = self.rules.lock().unwrap();
        let at = rules.iter().position(|rule| holds(bytes, rule.needle.as_bytes()))?;
        rules.remove(at)
    }
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len().max(1)).any(|part| part == needle)
}

/// Passes one connection's bytes on.
async fn pass(client: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(shared.target).await?.into_split();
    let mut answering: Option<Rule> = None;
    let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = from_client.read(&mut up) => {
                let read = read?;
                shared.thawed().await;
                if read == 0 {
                    return Ok(());
                }
                let Some(rule) = shared.rule(&up[..read]) else {
                    to_server.write_all(&up[..read]).await?;
                    continue;
                };
                let request = whole(up[..read].to_vec(), &mut from_client).await?;
                let half = request.len() / 2;
                match rule.act {
                    Act::CutBefore => {
                        rule.stage.send_replace(Stage::Sent);
                        return Ok(());
                    }
                    Act::CutInside => {
                        to_server.write_all(&request[..half]).await?;
                        to_server.flush().await?;
                        rule.stage.send_replace(Stage::Sent);
                        return Ok(());
                    }
                    Act::HalfOpen => {
                        rule.stage.send_replace(Stage::Sent);
                        tokio::time::sleep(LONGEST).await;
                        return Ok(());
                    }
                    Act::Late(after) => {
                        drop((from_client, to_client));
                        rule.stage.send_replace(Stage::Sent);
                        tokio::time::sleep(after).await;
                        to_server.write_all(&request).await?;
                        let _ = from_server.read(&mut down).await?;
                        rule.stage.send_replace(Stage::Answered);
                        return Ok(());
                    }
                    Act::Twice => {
                        let twin = request.clone();
                        let target = shared.target;
                        tokio::spawn(async move {
                            let mut twin_connection = TcpStream::connect(target).await?;
                            twin_connection.write_all(&twin).await?;
                            let mut answer = vec![0; 64 * 1024];
                            tokio::time::timeout(LONGEST, twin_connection.read(&mut answer)).await??;
                            std::io::Result::Ok(())
                        });
                    }
                    Act::Delay(wait) => tokio::time::sleep(wait).await,
                    Act::CutAfter | Act::CutAnswer | Act::Hold => {}
                }
                to_server.write_all(&request).await?;
                rule.stage.send_replace(Stage::Sent);
                answering = Some(rule);
            }
            read = from_server.read(&mut down) => {
                let read = read?;
                shared.thawed().await;
                if read == 0 {
                    return Ok(());
                }
                if let Some(rule) = answering.take() {
                    rule.stage.send_replace(Stage::Answered);
                    match rule.act {
                        Act::CutAfter => return Ok(()),
                        Act::CutAnswer => {
                            to_client.write_all(&down[..read / 2]).await?;
                            return to_client.flush().await;
                        }
                        Act::Hold => {
                            // Nobody waits for ever: a test that fails lets go at its end.
                            let _ = tokio::time::timeout(LONGEST, rule.let_go.cancelled()).await;
                        }
                        _ => {}
                    }
                }
                to_client.write_all(&down[..read]).await?;
            }
        }
    }
}

/// The rest of an HTTP request whose head says how long it is; anything else is whole as it is.
async fn whole(mut bytes: Vec<u8>, from: &mut tokio::net::tcp::OwnedReadHalf) -> std::io::Result<Vec<u8>> {
    let mut more = vec![0; 64 * 1024];
    while bytes.len() < MOST {
        let Some(head) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { break };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if bytes.len() >= head + 4 + length.unwrap_or(0_usize) {
            break;
        }
        let read = from.read(&mut more).await?;
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&more[..read]);
    }
    Ok(bytes)
}
