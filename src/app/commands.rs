//! The commands of the program.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{App, Environment, demo as settings};
use crate::{
    checkout::points::Probe,
    clock::{Clock, SystemClock},
    config::{Log, LogFormat, Settings},
    state::Sqlite,
    store::{
        demo::{DemoShop, Seed, faults, router},
        tape::{self, Tape, record::Recorder},
    },
    telemetry,
};

/// Where the demo listens, and what it keeps.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// For agents.
    pub listen: SocketAddr,
    /// For the demo shop.
    pub shop_listen: SocketAddr,
    /// For operators.
    pub ops_listen: SocketAddr,
    /// A folder to keep everything in.
    pub data: Option<PathBuf>,
    /// How many made-up products the flower shop sells as well.
    pub products: usize,
}

/// `tillgate demo`: gateway and demo shop in one process.
///
/// # Errors
/// What keeps it from starting, for people.
pub async fn demo(options: DemoOptions, log: Option<String>) -> anyhow::Result<()> {
    start_log(log)?;
    let (kept_in, _temporary) = folder(options.data.as_deref())?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let shop_listener = bind(options.shop_listen, "--shop-listen").await?;
    let shop_url = format!("http://{}", shop_listener.local_addr()?);
    let (flower, general) = demo_shops(Some(&kept_in), &clock)?;
    flower.add_made_products(options.products);
    let listener = bind(options.listen, "--listen").await?;
    let ops_listener = bind(options.ops_listen, "--ops-listen").await?;
    let (public, ops) = (listener.local_addr()?, ops_listener.local_addr()?);
    let settings = settings::settings(public, ops, &kept_in.join("gateway"), &settings::shops(&shop_url))?;
    let app =
        App::build(&settings, Environment { pins: settings::demo_pins(), ..Environment::default() }).await?;
    tracing::warn!(
        "development rules are on: stand-in buyer data, plain-http profiles from loopback, test payments"
    );
    let stop = stop_signal();
    let shop_server = axum::serve(shop_listener, router(flower, general))
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    println!("shop {shop_url}");
    println!("ops http://{ops}");
    println!("{}", greeting(public));
    let serve = announced(Box::pin(app.run(listener, ops_listener, stop.clone())), public);
    tokio::try_join!(serve, async { Ok(shop_server.await?) })?;
    Ok(())
}

/// `tillgate shop`: the demo shop alone.
///
/// # Errors
/// What keeps it from starting, for people.
pub async fn shop(
    listen: SocketAddr,
    data: Option<PathBuf>,
    products: usize,
    faults: &[String],
    log: Option<String>,
) -> anyhow::Result<()> {
    start_log(log)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (flower, general) = demo_shops(data.as_deref(), &clock)?;
    flower.add_made_products(products);
    for fault in faults {
        flower.set_fault(fault)?;
        general.set_fault(fault)?;
    }
    let listener = bind(listen, "--listen").await?;
    let stop = stop_signal();
    let address = listener.local_addr()?;
    let server =
        axum::serve(listener, router(flower, general)).with_graceful_shutdown(stop.cancelled_owned());
    println!("ready http://{address}");
    Ok(server.await?)
}

/// `tillgate serve`: production. `after_restore` says that the embedded state was put back from a copy.
///
/// # Errors
/// What keeps it from starting, for people.
pub async fn serve(settings: Settings, after_restore: bool) -> anyhow::Result<()> {
    telemetry::start(&settings.log)?;
    if after_restore {
        anyhow::ensure!(
            settings.redis.is_none(),
            "--after-restore is for the embedded state: a change of a Redis master is noticed without it"
        );
        Sqlite::note_restore(&settings.server.data)?;
        tracing::warn!(
            "the state was put back from a copy: sessions of before are looked up at the shop first"
        );
    }
    let app = App::build(&settings, Environment { probe: probe()?, ..Environment::default() }).await?;
    if settings.development.is_some() {
        tracing::warn!("[development] is on: stand-in buyer data, plain-http profiles from loopback");
    }
    let listener = bind(settings.server.listen, "server.listen").await?;
    let ops_listener = bind(settings.server.ops_listen, "server.ops_listen").await?;
    println!("ops http://{}", ops_listener.local_addr()?);
    let public = listener.local_addr()?;
    announced(Box::pin(app.run(listener, ops_listener, stop_signal())), public).await
}

/// `tillgate replay`: the gateway over recordings.
///
/// # Errors
/// What keeps it from starting, for people.
pub async fn replay(
    fixtures: &Path,
    settings: Option<Settings>,
    listen: SocketAddr,
    log: Option<String>,
) -> anyhow::Result<()> {
    start_log(log)?;
    let tape = Arc::new(Tape::load(fixtures)?);
    let shop_listener = bind(SocketAddr::from(([127, 0, 0, 1], 0)), "the tape").await?;
    let tape_url = format!("http://{}", shop_listener.local_addr()?);
    let listener = bind(listen, "--listen").await?;
    let public = listener.local_addr()?;
    let (kept_in, _temporary) = folder(None)?;
    let settings = settings_of_replay(settings, &tape_url, public, &kept_in)?;
    let app =
        App::build(&settings, Environment { pins: settings::demo_pins(), ..Environment::default() }).await?;
    let ops_listener = bind(settings.server.ops_listen, "server.ops_listen").await?;
    let stop = stop_signal();
    let tape_server = axum::serve(shop_listener, tape::router(Arc::clone(&tape)))
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    println!("tape {} recorded calls from {}", tape.entries(), fixtures.display());
    let serve = announced(Box::pin(app.run(listener, ops_listener, stop)), public);
    tokio::try_join!(serve, async { Ok(tape_server.await?) })?;
    Ok(())
}

/// What `tillgate record` needs to know.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The shop.
    pub store: url::Url,
    /// Where the recorder stands in for it.
    pub listen: SocketAddr,
    /// The file to make.
    pub out: PathBuf,
    /// Whether an existing file is written over.
    pub force: bool,
}

/// How long running calls may take when a recording ends.
const LAST_CALLS: Duration = Duration::from_secs(30);

/// `tillgate record`: a proxy in front of a shop that writes a HAR file.
///
/// # Errors
/// What keeps it from starting, or what is missing in the file at the end, for people.
pub async fn record(options: RecordOptions, log: Option<String>) -> anyhow::Result<()> {
    start_log(log)?;
    let RecordOptions { store, listen, out, force } = options;
    let listener = bind(listen, "--listen").await?;
    let address = listener.local_addr()?;
    let calls = TaskTracker::new();
    let recorder = Recorder::start(&store, &out, force, Arc::new(SystemClock), calls.clone())?;
    tracing::warn!(
        "meant for test shops: known secrets and personal data are scrubbed, but read {} before you share it",
        out.display()
    );
    if !address.ip().is_loopback() {
        tracing::warn!("{address} is open to others: whoever reaches it speaks to the shop through it");
    }
    let stop = stop_signal();
    println!("recording {store} to {}", out.display());
    let server =
        axum::serve(listener, recorder.router()).with_graceful_shutdown(stop.clone().cancelled_owned());
    println!("ready http://{address}");
    let calls_end = async {
        server.await?;
        calls.close();
        calls.wait().await;
        anyhow::Ok(())
    };
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(LAST_CALLS).await;
    };
    tokio::select! {
        ended = calls_end => ended?,
        () = too_late => tracing::warn!("calls that still run are not recorded"),
    }
    let entries = recorder.finish()?;
    tracing::info!("{entries} exchanges recorded in {}", out.display());
    Ok(())
}

/// A replay's settings: the configuration's, with the tape in the shop's place, or the demo's.
fn settings_of_replay(
    settings: Option<Settings>,
    shop: &str,
    public: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Settings> {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let Some(mut settings) = settings else {
        return Ok(settings::settings(public, any_port, folder, &[settings::tape(shop)])?);
    };
    anyhow::ensure!(settings.shops.len() == 1, "a replay needs a configuration with exactly one shop");
    for table in settings.shops.values_mut() {
        table.store_url = shop.parse()?;
    }
    folder.clone_into(&mut settings.server.data);
    settings.server.ops_listen = any_port;
    settings.redis = None;
    Ok(settings)
}

/// Where a test wants the process to stop; only in debug builds.
fn probe() -> anyhow::Result<Option<Arc<dyn Probe>>> {
    #[cfg(debug_assertions)]
    return super::stops::probe();
    #[cfg(not(debug_assertions))]
    Ok(None)
}

/// What `tillgate shop --help` says of faults.
#[must_use]
pub fn faults_help() -> String {
    let mut text =
        String::from("Faults (--fault NAME[=VALUE][,count=N][,only=checkout], or PUT /_demo/faults):\n");
    for row in faults::TABLE {
        let name =
            if row.value.is_empty() { row.name.to_owned() } else { format!("{}=<{}>", row.name, row.value) };
        let _ = writeln!(text, "  {name:<28} {}", row.what);
    }
    text
}

/// The demo's two shops; in a folder they survive the process.
fn demo_shops(folder: Option<&Path>, clock: &Arc<dyn Clock>) -> anyhow::Result<(DemoShop, DemoShop)> {
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    let open = |seed, name: &str| -> anyhow::Result<DemoShop> {
        let file = folder.map(|folder| folder.join(name));
        let shop = DemoShop::open(seed, file.as_deref(), Arc::clone(clock))?;
        shop.set_public_base(settings::HTTPS_BASE);
        Ok(shop)
    };
    Ok((open(Seed::Flower, "flower-shop.sqlite")?, open(Seed::General, "general-shop.sqlite")?))
}

/// The folder asked for, or a temporary one that goes with the guard.
fn folder(asked: Option<&Path>) -> anyhow::Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(folder) = asked {
        return Ok((folder.to_owned(), None));
    }
    let temporary = tempfile::tempdir().context("no temporary folder can be made; name one with --data")?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

fn start_log(filter: Option<String>) -> anyhow::Result<()> {
    let filter = filter.unwrap_or_else(|| "info".to_owned());
    telemetry::start(&Log { format: LogFormat::Text, filter })?;
    Ok(())
}

/// Listens; `setting` is what to change when the address cannot be had.
async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("{address} cannot be listened on: set {setting} to another address, or port 0 for a free one")
    })
}

/// Says `ready` once requests are taken, then goes on serving.
async fn announced(
    serve: impl Future<Output = anyhow::Result<()>>,
    address: SocketAddr,
) -> anyhow::Result<()> {
    // The listener is bound: connections are queued from now on, whoever accepts them.
    println!("ready http://{address}");
    serve.await
}

/// Cancelled by Ctrl-C and by SIGTERM. The second of them ends the process at once: what it leaves is what a kill
/// leaves, and the next start, or another process, settles it.
fn stop_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        told_to_stop(terminated.as_mut()).await;
        tracing::info!("stopping");
        stopped.cancel();
        told_to_stop(terminated.as_mut()).await;
        tracing::warn!("told twice: stopping at once");
        std::process::exit(1);
    });
    stop
}

async fn told_to_stop(terminated: Option<&mut tokio::signal::unix::Signal>) {
    let interrupted = tokio::signal::ctrl_c();
    match terminated {
        Some(terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        None => drop(interrupted.await),
    }
}

/// Lines to paste: a purchase in each protocol's first step.
fn greeting(public: SocketAddr) -> String {
    format!(
        r#"
Try it (UCP, then ACP):

  curl -s http://{public}/.well-known/ucp
  curl -s http://{public}/checkout-sessions -H 'Content-Type: application/json' \
    -H 'UCP-Agent: profile="https://agent.example/profile"' \
    -d '{{"line_items":[{{"item":{{"id":"bouquet_roses"}},"quantity":1}}]}}'

  curl -s http://{public}/acp/checkout_sessions -H 'Content-Type: application/json' \
    -H 'Authorization: Bearer test-token' -H 'API-Version: 2026-04-17' -H 'Idempotency-Key: try-1' \
    -d '{{"line_items":[{{"id":"bouquet_roses","quantity":1}}],"currency":"usd","capabilities":{{}}}}'

The README goes on to the orders. The general shop answers on http://general.localhost:{port}
"#,
        port = public.port()
    )
}
