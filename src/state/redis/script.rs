//! The scripts, and how one is run: by its digest, and by its text where the server does not know it yet.

use std::sync::LazyLock;

use super::stock;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value, aio::ConnectionLike};

/// A script with its prelude and digest.
pub(super) struct Script {
    text: String,
    digest: String,
}

impl Script {
    fn new(body: &str) -> Self {
        let shelves = if body.contains("load_shelves(") {
            format!("{}{}\n", stock::figures(), include_str!("lua/stock.lua"))
        } else {
            String::new()
        };
        let text = format!("{}\n{shelves}{body}", include_str!("lua/prelude.lua"));
        let digest = redis::Script::new(&text).get_hash().to_owned();
        Self { text, digest }
    }

    /// Runs it. `NOSCRIPT` means that it did not run: the text is sent.
    pub(super) async fn run(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Value, RedisError> {
        match command("EVALSHA", &self.digest, keys, arguments).query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                command("EVAL", &self.text, keys, arguments).query_async(connection).await
            }
            result => result,
        }
    }
}

fn command(name: &str, script: &str, keys: &[String], arguments: &[Vec<u8>]) -> redis::Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}

macro_rules! scripts {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!($file)));)+
    };
}

scripts! {
    CLAIM = "lua/claim.lua",
    COMMIT = "lua/commit.lua",
    TAKE_TURN = "lua/take_turn.lua",
    END_TURN = "lua/end_turn.lua",
    BEAT = "lua/beat.lua",
    SWEEP = "lua/sweep.lua",
    RESERVE = "lua/reserve.lua",
    SHELVE = "lua/shelve.lua",
}
