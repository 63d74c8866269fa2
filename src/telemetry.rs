//! Logging: lines on standard error, as text or JSON. Tokens, credentials, bodies and personal data are never
//! given to it.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Why logging could not be started.
#[derive(Debug, thiserror::Error)]
#[error(
    "log.filter `{0}` is not a tracing filter: use a level, or a list such as `info,tillgate::store=debug`"
)]
pub struct BadFilter(String);

/// Starts logging for the whole process; a second call changes nothing.
///
/// # Errors
/// [`BadFilter`].
pub fn start(log: &Log) -> Result<(), BadFilter> {
    let filter = EnvFilter::try_new(&log.filter).map_err(|_| BadFilter(log.filter.clone()))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Only the first start counts: tests start many applications in one process.
    let _ = match log.format {
        LogFormat::Text => lines.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    Ok(())
}
