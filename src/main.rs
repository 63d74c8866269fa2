//! The command line of Tillgate.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use tillgate::{
    app::{self, DemoOptions, RecordOptions},
    checkout::{service::Finding, state::Which},
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
        /// The embedded state was put back from a copy: look sessions of before up at the shop before their next
        /// order. Once, at the first start after it.
        #[arg(long)]
        after_restore: bool,
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
    /// Look at sessions: which of them a person has to look at, what happened to one; and decide about one.
    Sessions {
        #[command(subcommand)]
        command: Sessions,
    },
    /// Look at the stock: who holds what, whether it is as the shop has it, and whether orders and sessions match.
    Stock {
        #[command(subcommand)]
        command: Stock,
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

#[derive(Subcommand)]
enum Sessions {
    /// List sessions, the last changed first.
    List {
        #[command(flatten)]
        place: PlaceArguments,
        /// Only this shop's.
        #[arg(long, value_name = "NAME")]
        shop: Option<String>,
        /// Only those that a person has to look at.
        #[arg(long)]
        review: bool,
        /// Only those with an attempt whose outcome is not known yet.
        #[arg(long, conflicts_with = "review")]
        open: bool,
        /// At most so many of each shop.
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: usize,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a session: its lines, its attempts, the orders that were seen, what happened.
    Show {
        /// The session's id (`chk_…`).
        id: String,
        #[command(flatten)]
        place: PlaceArguments,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Decide what no machine can judge. With embedded state, stop the gateway first.
    Resolve {
        /// The session's id (`chk_…`).
        id: String,
        #[command(flatten)]
        finding: FindingArguments,
        /// The configuration file of the gateway.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

#[derive(Subcommand)]
enum Stock {
    /// Show what is known of each stock id: bounds on what is left, where they come from, who holds units. Only reads,
    /// also while the gateway runs.
    Show {
        #[command(flatten)]
        which: StockArguments,
    },
    /// Hold what is known against the shop, now; the gateway does it by itself every `[stock] poll_secs` seconds. With
    /// embedded state only while the gateway is stopped. Writes nothing to the shop.
    Sync {
        #[command(flatten)]
        which: StockArguments,
    },
    /// Find what does not match: orders without a session, several orders of one session, sessions without their order,
    /// negative stock, pins without an attempt and the reverse. Only reads, also while the gateway runs. Exit code 1
    /// when something is found. Needs a `wc_v3` key.
    Audit {
        #[command(flatten)]
        which: StockArguments,
        /// How far back orders are looked at.
        #[arg(long, default_value_t = 24, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=2160))]
        hours: u32,
    },
}

#[derive(clap::Args)]
struct StockArguments {
    /// The configuration file of the gateway.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only this shop's.
    #[arg(long, value_name = "NAME")]
    shop: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct FindingArguments {
    /// The attempt in review has made this order of the shop, and it counts.
    #[arg(long, value_name = "ORDER")]
    placed: Option<String>,
    /// The attempt in review has made no order: its cart is emptied, and its key is free again.
    #[arg(long)]
    not_placed: bool,
    /// The case of this order of the shop is dealt with (refunded, or the buyer knows).
    #[arg(long, value_name = "ORDER")]
    dealt_with: Option<String>,
}

impl From<FindingArguments> for Finding {
    fn from(arguments: FindingArguments) -> Self {
        match (arguments.placed, arguments.dealt_with) {
            (Some(order), _) => Self::Placed(order),
            (_, Some(order)) => Self::Dealt(order),
            (None, None) => Self::NotPlaced,
        }
    }
}

#[derive(clap::Args)]
struct PlaceArguments {
    /// The configuration file of the gateway; the defaults and the environment if not given.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder that `tillgate demo --data` was given, instead of a configuration.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data: Option<PathBuf>,
}

impl PlaceArguments {
    /// Where the sessions are; `None` when the configuration cannot be used.
    fn place(self) -> Option<app::Place> {
        match self.data {
            Some(folder) => Some(app::Place::Demo(folder)),
            None => checked(self.config.as_deref(), None)
                .map(|settings| app::Place::Configured(Box::new(settings))),
        }
    }
}

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
        Command::Serve { config, after_restore } => {
            let Some(settings) = checked(Some(&config), log) else { return Ok(ExitCode::from(2)) };
            app::serve(settings, after_restore).await?;
        }
        Command::Sessions { command } => return sessions(command).await,
        Command::Stock { command } => return stock(command).await,
        Command::CheckConfig { config } => {
            let Some(settings) = checked(Some(&config), log) else { return Ok(ExitCode::from(2)) };
            println!("{}", settings.effective());
            eprintln!("{} is in order", config.display());
        }
        Command::Record { store, listen, out, force } => {
            app::record(RecordOptions { store, listen, out, force }, log).await?;
        }
        Command::Replay { fixtures, config, listen } => {
            let settings = match config {
                None => None,
                Some(config) => match checked(Some(&config), log.clone()) {
                    None => return Ok(ExitCode::from(2)),
                    settings => settings,
                },
            };
            app::replay(&fixtures, settings, listen, log).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn sessions(command: Sessions) -> anyhow::Result<ExitCode> {
    match command {
        Sessions::List { place, shop, review, open, limit, json } => {
            let Some(place) = place.place() else { return Ok(ExitCode::from(2)) };
            let which = match (review, open) {
                (true, _) => Which::Review,
                (_, true) => Which::Open,
                _ => Which::All,
            };
            app::list_sessions(&place, &app::ListOptions { shop, which, most: limit, json }).await?;
        }
        Sessions::Show { id, place, json } => {
            let Some(place) = place.place() else { return Ok(ExitCode::from(2)) };
            app::show_session(&place, &id, json).await?;
        }
        Sessions::Resolve { id, finding, config } => {
            let Some(settings) = checked(Some(&config), None) else { return Ok(ExitCode::from(2)) };
            app::resolve_session(&settings, &id, finding.into()).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn stock(command: Stock) -> anyhow::Result<ExitCode> {
    let which = match &command {
        Stock::Show { which } | Stock::Sync { which } | Stock::Audit { which, .. } => which,
    };
    let Some(settings) = checked(Some(&which.config), None) else { return Ok(ExitCode::from(2)) };
    let options = app::StockOptions { shop: which.shop.clone(), json: which.json };
    match command {
        Stock::Show { .. } => app::show_stock(&settings, &options).await?,
        Stock::Sync { .. } => app::sync_stock(&settings, &options).await?,
        Stock::Audit { hours, .. } => {
            if !app::audit_stock(&settings, &options, hours).await? {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a configuration; prints every problem and gives `None` when it cannot be used.
fn checked(file: Option<&std::path::Path>, log: Option<String>) -> Option<Settings> {
    let name =
        file.map_or_else(|| "the defaults and the environment".into(), |file| file.display().to_string());
    let mut settings = match Settings::load(file) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("{name}: {error}");
            return None;
        }
    };
    if let Some(filter) = log {
        settings.log.filter = filter;
    }
    let problems = settings.problems();
    for problem in &problems {
        eprintln!("{name}: {}: {}", problem.key, problem.message);
    }
    problems.is_empty().then_some(settings)
}
