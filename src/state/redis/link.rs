//! Connections: one server, the master that sentinels name, or a cluster.
//!
//! A connection that fails is dropped and made anew at the next call; nothing is repeated here. Every call has a
//! deadline.

use std::time::{Duration, Instant};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use tokio::sync::Mutex;

use super::{Place, Settings};

const CONNECT: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(3);

/// Where connections lead.
enum Target {
    Server(Client),
    Sentinels(Box<Mutex<SentinelClient>>),
    Cluster(Box<ClusterClient>),
}

/// A connection.
#[derive(Clone)]
pub(super) enum Wire {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Server(connection) => connection.req_packed_command(cmd),
            Self::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Server(connection) => connection.req_packed_commands(cmd, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(cmd, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Server(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

/// A way to the server, with one connection that is shared or made anew.
pub(super) struct Link {
    target: Target,
    current: Mutex<Current>,
}

/// The connection at hand, or how the last try to make one ended.
#[derive(Default)]
struct Current {
    wire: Option<Wire>,
    failed: Option<(Instant, String)>,
}

impl Link {
    pub(super) fn new(settings: &Settings) -> Result<Self, RedisError> {
        let target = match &settings.place {
            Place::Server(url) => Target::Server(Client::open(url.expose())?),
            Place::Cluster(urls) => {
                let nodes: Vec<&str> = urls.iter().map(super::SecretUrl::expose).collect();
                let client = ClusterClient::builder(nodes)
                    .connection_timeout(CONNECT)
                    .response_timeout(ANSWER)
                    .retries(3)
                    .build()?;
                Target::Cluster(Box::new(client))
            }
            Place::Sentinels { urls, master, username, password } => {
                let addresses = urls
                    .iter()
                    .map(|url| Ok(Client::open(url.expose())?.get_connection_info().addr().clone()))
                    .collect::<Result<Vec<_>, RedisError>>()?;
                let mut builder =
                    SentinelClientBuilder::new(addresses, master.clone(), SentinelServerType::Master)?;
                if let Some(name) = username {
                    builder = builder.set_client_to_redis_username(name);
                }
                if let Some(password) = password {
                    builder =
                        builder.set_client_to_redis_password(secrecy::ExposeSecret::expose_secret(password));
                }
                Target::Sentinels(Box::new(Mutex::new(builder.build()?)))
            }
        };
        Ok(Self { target, current: Mutex::default() })
    }

    /// A connection: the one at hand, or a new one. Who waited while another's try failed is told the same: a server
    /// that is away keeps a crowd waiting for one try, not for one each.
    pub(super) async fn wire(&self) -> Result<Wire, RedisError> {
        let asked = Instant::now();
        let mut current = self.current.lock().await;
        if let Some(wire) = &current.wire {
            return Ok(wire.clone());
        }
        if let Some((at, error)) = &current.failed
            && *at >= asked
        {
            return Err(std::io::Error::other(error.clone()).into());
        }
        let connecting = tokio::time::timeout(CONNECT * 3, self.connect()).await.unwrap_or_else(|_| {
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no connection in time").into())
        });
        match connecting {
            Ok(wire) => {
                current.wire = Some(wire.clone());
                Ok(wire)
            }
            Err(error) => {
                current.failed = Some((Instant::now(), error.to_string()));
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<Wire, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER));
        Ok(match &self.target {
            Target::Server(client) => {
                Wire::Server(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            Target::Sentinels(client) => {
                let mut client = client.lock().await;
                Wire::Server(client.get_async_connection_with_config(&config).await?)
            }
            Target::Cluster(client) => Wire::Cluster(client.get_async_connection().await?),
        })
    }

    /// Drops the connection at hand where an error says that it is of no use any more: broken, too slow, or to a
    /// server that takes no writes.
    pub(super) async fn judge(&self, error: &RedisError) {
        let useless = error.is_io_error()
            || error.is_connection_dropped()
            || error.is_timeout()
            || error.is_unrecoverable_error()
            || matches!(
                error.kind(),
                ErrorKind::Server(
                    ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
                )
            );
        if useless {
            self.current.lock().await.wire = None;
        }
    }
}
