//! The command line of Tillgate.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use tillgate::{
    app::{self, DemoOptions, RecordOptions},
    config::Settings,
};

/// A gateway that lets AI shopping agents (UCP, ACP) buy from an ordinary WooCommerce shop.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What is logged: a level, or a list such as `info,tillgate::store=debug`.
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Start the gateway with an embedded demo shop and embedded state: nothing else is needed.
    Demo {
        /// Where agents reach the gateway; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:8787", value_name = "ADDR")]
        listen: SocketAddr,
        /// Where the demo shop listens.
        #[arg(long, default_value = "127.0.0.1:8789", value_name = "ADDR")]
        shop_listen: SocketAddr,
        /// Where health is told.
        #[arg(long, default_value = "127.0.0.1:8788", value_name = "ADDR")]
        ops_listen: SocketAddr,
        /// Keep sessions and orders in this folder; a temporary one if not given.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Sell this many made-up products as well, in the flower shop: SKUs from made-00001, every tenth in
        /// three sizes. For trying a large catalogue.
        #[arg(long, default_value_t = 0, value_name = "N")]
        products: usize,
    },
    /// Start the demo shop alone: a shop that speaks the WooCommerce Store API on loopback.
    #[command(after_help = app::faults_help())]
    Shop {
        /// Where it listens; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:8789", value_name = "ADDR")]
        listen: SocketAddr,
        /// Keep carts, stock and orders in this folder; in memory if not given.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Sell this many made-up products as well, in the flower shop: SKUs from made-00001, every tenth in
        /// three sizes. For trying a large catalogue.
        #[arg(long, default_value_t = 0, value_name = "N")]
        products: usize,
        /// Misbehave: NAME or NAME=VALUE, several times if need be; also by PUT /_demo/faults.
        #[arg(long = "fault", value_name = "NAME[=VALUE]")]
        faults: Vec<String>,
    },
    /// Start the gateway for real shops.
    Serve {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Check a configuration: prints what is in force, or every problem (exit code 2).
    CheckConfig {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Record a shop: a proxy in front of it that writes what passes to a HAR 1.2 file, for `replay`.
    #[command(after_help = RECORD_HELP)]
    Record {
        /// The shop's address, as in a configuration's `store_url`.
        #[arg(long, value_name = "URL")]
        store: url::Url,
        /// Where it stands in for the shop; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:8790", value_name = "ADDR")]
        listen: SocketAddr,
        /// The file to make.
        #[arg(long, value_name = "FILE.har")]
        out: PathBuf,
        /// Write over a file that exists.
        #[arg(long)]
        force: bool,
    },
    /// Start the gateway over recordings (HAR 1.2) instead of a shop.
    Replay {
        /// A HAR file, or a folder of them.
        #[arg(long, value_name = "PATH")]
        fixtures: PathBuf,
        /// A configuration with one shop; the demo's rules if not given.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Where agents reach the gateway; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:8787", value_name = "ADDR")]
        listen: SocketAddr,
    },
}

/// What a recording keeps to itself.
const RECORD_HELP: &str = "\
Scrubbed while recording, in requests and answers: cart tokens, nonces, cookies, credentials, API keys, order
keys, payment data, tokens of payment providers, e-mail addresses, names, companies, streets, towns, postcodes,
phone numbers, IP addresses, notes, reviews and who wrote them. In addresses and customers, payment data, results
and details, checkout forms, order meta, and the pages that a buyer is sent to, what no list knows as harmless is
scrubbed too. The same value becomes the same stand-in, so that flows join up.

Not scrubbed: countries and states, order and customer numbers, what is bought and when, and what a plugin puts
elsewhere under names of its own: data of cart items (an engraving), objects of its own API. Record a test shop,
and read the file before you share it.

It listens on loopback unless told otherwise: whoever reaches it speaks to the shop through it. Ctrl-C ends the
recording; the file is whole after every exchange, even after kill -9.";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("tillgate: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(cli)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tillgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let log = cli.log;
    match cli.command {
        Command::Demo { listen, shop_listen, ops_listen, data, products } => {
            app::demo(DemoOptions { listen, shop_listen, ops_listen, data, products }, log).await?;
        }
        Command::Shop { listen, data, products, faults } => {
            app::shop(listen, data, products, &faults, log).await?;
        }
        Command::Serve { config } => {
            let Some(settings) = checked(&config, log) else { return Ok(ExitCode::from(2)) };
            app::serve(settings).await?;
        }
        Command::CheckConfig { config } => {
            let Some(settings) = checked(&config, log) else { return Ok(ExitCode::from(2)) };
            println!("{}", settings.effective());
            eprintln!("{} is in order", config.display());
        }
        Command::Record { store, listen, out, force } => {
            app::record(RecordOptions { store, listen, out, force }, log).await?;
        }
        Command::Replay { fixtures, config, listen } => {
            let settings = match config {
                None => None,
                Some(config) => match checked(&config, log.clone()) {
                    None => return Ok(ExitCode::from(2)),
                    settings => settings,
                },
            };
            app::replay(&fixtures, settings, listen, log).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a configuration; prints every problem and gives `None` when it cannot be used.
fn checked(file: &std::path::Path, log: Option<String>) -> Option<Settings> {
    let mut settings = match Settings::load(Some(file)) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return None;
        }
    };
    if let Some(filter) = log {
        settings.log.filter = filter;
    }
    let problems = settings.problems();
    for problem in &problems {
        eprintln!("{}: {}: {}", file.display(), problem.key, problem.message);
    }
    problems.is_empty().then_some(settings)
}
