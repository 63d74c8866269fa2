//! What a server has to be like, so that what is acknowledged stays: checked at start.

use redis::RedisError;

use super::link::Wire;

/// The oldest version with everything that the scripts use.
const OLDEST: (u32, u32) = (6, 2);

/// Why the server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be reached, or refuses us.
    #[error("Redis cannot be used: check its address, user and password")]
    Redis(#[from] RedisError),
    /// It answers, but cannot be written to.
    #[error("Redis cannot be used: {0}")]
    Unusable(String),
    /// It is too old.
    #[error("Redis {found} is too old: 6.2 or newer is needed")]
    TooOld {
        /// Its version.
        found: String,
    },
    /// It may throw keys away.
    #[error("Redis may evict keys (maxmemory-policy {policy}): set maxmemory-policy noeviction")]
    Evicts {
        /// Its policy.
        policy: String,
    },
    /// It forgets everything at a restart.
    #[error("Redis keeps no append-only file: set appendonly yes (and best appendfsync always)")]
    NoAppendOnlyFile,
}

/// What was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    /// Replicas that are connected.
    pub replicas: u32,
}

/// Looks what the server is like.
pub(super) async fn server(wire: &mut Wire, admit_unsafe: bool) -> Result<Server, OpenError> {
    let info = match wire {
        Wire::Server(connection) => redis::cmd("INFO").query_async::<String>(connection).await?,
        Wire::Cluster(connection) => {
            // Any node: a cluster's nodes are set up alike.
            use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
            let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
            let value = connection.route_command(redis::cmd("INFO"), route).await?;
            redis::from_redis_value(value).map_err(RedisError::from)?
        }
    };
    judged(&info, admit_unsafe)
}

fn judged(info: &str, admit_unsafe: bool) -> Result<Server, OpenError> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map_or("", str::trim)
    };
    let found = field("redis_version");
    let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    if (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) < OLDEST {
        return Err(OpenError::TooOld { found: found.to_owned() });
    }
    let policy = field("maxmemory_policy");
    if !admit_unsafe && policy != "noeviction" {
        return Err(OpenError::Evicts { policy: policy.to_owned() });
    }
    if !admit_unsafe && field("aof_enabled") != "1" {
        return Err(OpenError::NoAppendOnlyFile);
    }
    Ok(Server { replicas: field("connected_slaves").parse().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, policy: &str, append_only: &str) -> String {
        format!(
            "# Server\r\nredis_version:{version}\r\nmaxmemory_policy:{policy}\r\naof_enabled:{append_only}\r\nconnected_slaves:2\r\n"
        )
    }

    #[test]
    fn a_server_that_forgets_is_refused_with_what_to_set() {
        assert_eq!(judged(&info("7.0.15", "noeviction", "1"), false).unwrap().replicas, 2);
        for (info, word) in [
            (info("6.0.9", "noeviction", "1"), "6.2"),
            (info("7.0.15", "allkeys-lru", "1"), "noeviction"),
            (info("7.0.15", "noeviction", "0"), "appendonly yes"),
        ] {
            assert!(judged(&info, false).unwrap_err().to_string().contains(word), "{info}");
        }
        assert!(judged(&info("7.0.15", "allkeys-lru", "0"), true).is_ok());
    }
}
