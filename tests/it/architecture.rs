//! The rooms keep to themselves: who may use whom, and which words belong where (`docs/architecture.md`).
//!
//! Plain text search over `src`, without comments and without tests. A failure names file and line.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A source file, without comments and tests: lines keep their numbers.
struct Source {
    /// Below `src`, with slashes.
    path: String,
    lines: Vec<String>,
}

impl Source {
    /// The room: the module under `src`, of `protocol` and `store` the one below it.
    fn room(&self) -> String {
        let parts: Vec<&str> = self.path.trim_end_matches(".rs").split('/').collect();
        match parts.as_slice() {
            [outer @ ("protocol" | "store"), inner, ..]
                if !matches!(*inner, "mod" | "cards" | "json" | "shop") =>
            {
                format!("{outer}::{inner}")
            }
            [outer, ..] => (*outer).to_owned(),
            [] => String::new(),
        }
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path == *place || self.path.starts_with(&format!("{place}/")))
    }

    /// Where a word stands.
    fn mentions(&self, words: &[&str]) -> Vec<String> {
        let found = self.lines.iter().enumerate().filter_map(|(at, line)| {
            let word = words.iter().find(|word| has_word(line, word))?;
            Some(format!("src/{}:{}: `{word}` in `{}`", self.path, at + 1, line.trim()))
        });
        found.collect()
    }

    /// The rooms that it names by `crate::…`.
    fn uses(&self) -> Vec<(usize, String)> {
        let text = self.lines.join("\n");
        let mut found = Vec::new();
        for (at, _) in text.match_indices("crate::") {
            let line = text[..at].matches('\n').count() + 1;
            found.extend(first_names(&text[at + "crate::".len()..]).into_iter().map(|name| (line, name)));
        }
        found
    }
}

/// Whether a line holds a word with nothing of a name on either side of it.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts = !word.starts_with(part_of_name) || !before.is_some_and(part_of_name);
        starts && (!word.ends_with(part_of_name) || !after.is_some_and(part_of_name))
    })
}

/// The first names of a path, or of each path in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(inner) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut names, mut start) = (1, Vec::new(), 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            names.push(name(&inner[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let sources: Vec<Source> = files
        .iter()
        .map(|file| Source {
            path: file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"),
            lines: product_lines(&fs::read_to_string(file).unwrap()),
        })
        .filter(|source| !is_test_file(&source.path))
        .collect();
    assert!(sources.len() > 80, "only {} files found", sources.len());
    sources
}

/// Files that exist for unit tests only.
fn is_test_file(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("/samples.rs") || path.ends_with("/recorded.rs")
}

/// The lines, comments emptied, up to the module of unit tests.
fn product_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("mod tests {") {
            break;
        }
        let comment = line.trim_start().starts_with("//");
        lines.push(if comment {
            String::new()
        } else {
            line.split(" // ").next().unwrap_or(line).to_owned()
        });
    }
    lines
}

/// Fails with every place that breaks a rule.
#[track_caller]
fn assert_none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}\n  {}\n", found.join("\n  "));
}

/// No file outside `places` holds one of the words.
#[track_caller]
fn only_in(places: &[&str], words: &[&str], rule: &str) {
    let outside = sources().into_iter().filter(|source| !source.is_in(places));
    let found: Vec<String> = outside.flat_map(|source| source.mentions(words)).collect();
    assert_none(rule, &found);
}

/// Who may use whom. A room may always use itself.
const ROOMS: [(&str, &[&str]); 21] = [
    ("money", &[]),
    ("clock", &[]),
    ("idempotency", &["clock"]),
    ("lane", &["clock"]),
    ("stock", &[]),
    // `lane` stands beside the checkout: it gives turns and knows nothing of what they are for.
    ("checkout", &["money", "clock", "idempotency", "lane", "stock"]),
    // Of the checkout it knows only how a shop fails.
    ("catalog", &["checkout", "money"]),
    ("availability", &["catalog", "checkout", "clock", "money", "stock"]),
    ("net", &[]),
    ("platform", &["net", "clock"]),
    ("protocol", &["checkout", "money"]),
    (
        "protocol::ucp",
        &["catalog", "checkout", "money", "clock", "idempotency", "platform", "protocol", "stock"],
    ),
    ("protocol::acp", &["checkout", "money", "clock", "idempotency", "protocol", "stock"]),
    ("state", &["checkout", "idempotency", "clock", "stock"]),
    ("store", &["checkout"]),
    ("store::woo", &["catalog", "checkout", "money", "net", "clock", "stock"]),
    ("store::demo", &["clock"]),
    ("store::tape", &["clock", "net"]),
    // Settings become the faces and mappings of payment handlers right where they are read.
    ("config", &["money", "checkout", "protocol"]),
    ("telemetry", &["config"]),
    ("http", &["availability", "checkout", "clock", "protocol"]),
];

/// They put the rooms together and may use all of them.
const ROOTS: [&str; 3] = ["app", "main", "lib"];

#[test]
fn a_room_uses_only_the_rooms_it_may() {
    let mut found = Vec::new();
    for source in sources() {
        let room = source.room();
        if ROOTS.contains(&room.as_str()) {
            continue;
        }
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            found.push(format!("src/{}: the room `{room}` is not in the table", source.path));
            continue;
        };
        let own = room.split("::").next().unwrap_or_default();
        for (line, used) in source.uses() {
            if used != own && !allowed.contains(&used.as_str()) {
                found.push(format!("src/{}:{line}: `{room}` uses `{used}`", source.path));
            }
        }
    }
    assert_none("a room is used by one that must not know it", &found);
}

#[test]
fn every_room_in_the_table_exists() {
    let rooms: BTreeSet<String> = sources().iter().map(Source::room).collect();
    for (room, _) in ROOMS {
        assert!(rooms.contains(room), "there is no room `{room}`");
    }
}

#[test]
fn the_domain_knows_no_transport_no_database_and_no_kind_of_shop() {
    let words = [
        "axum",
        "http",
        "hyper",
        "reqwest",
        "tower",
        "rusqlite",
        "sqlite",
        "woo",
        "WooCommerce",
        "woocommerce",
        "wc/store",
        "wc/v3",
        "Cart-Token",
        "CartToken",
        "Nonce",
        "nonce",
        "ucp",
        "UCP",
        "acp",
        "ACP",
    ];
    let rooms = sources()
        .into_iter()
        .filter(|source| source.is_in(&["catalog", "checkout", "lane", "idempotency/mod.rs"]));
    let found: Vec<String> = rooms
        .flat_map(|source| source.mentions(&words))
        // Addresses are data: `https://…` and `http://…` in a text are no transport.
        .filter(|place| !place.contains("`http` in") || place.contains("http::"))
        .collect();
    assert_none("the domain names something of the outside", &found);
}

#[test]
fn the_protocols_never_mention_each_other() {
    let mut found = Vec::new();
    for (room, other) in [("protocol/ucp", "acp"), ("protocol/acp", "ucp")] {
        for source in sources().into_iter().filter(|source| source.is_in(&[room])) {
            let lower = Source {
                lines: source.lines.iter().map(|line| line.to_lowercase()).collect(),
                path: source.path,
            };
            found.extend(lower.mentions(&[other]));
        }
    }
    assert_none("a protocol mentions the other", &found);
}

#[test]
fn only_the_store_knows_the_routes_of_a_shop() {
    only_in(
        &["store"],
        &["wc/store", "wp-json", "Cart-Token", "cart-token", "wc/v3"],
        "a route or header of the shop outside `store`",
    );
}

#[test]
fn only_the_state_speaks_sql() {
    // The demo shop keeps its own orders, as a shop does: that is not our memory.
    only_in(&["state", "store/demo"], &["rusqlite"], "SQL outside `state`");
}

#[test]
fn only_the_clock_reads_time_and_chance() {
    only_in(
        &["clock/mod.rs"],
        &["Utc::now", "Local::now", "SystemTime", "rand", "Uuid", "uuid::Uuid"],
        "time or chance that a test cannot set",
    );
}

#[test]
fn only_net_builds_http_clients() {
    only_in(
        &["net"],
        &["Client::builder", "Client::new", "ClientBuilder", "reqwest::get"],
        "an HTTP client without the rules of `net`",
    );
}

#[test]
fn only_the_app_names_back_ends() {
    for (name, own) in
        [("Sqlite", "state"), ("WooStore", "store/woo"), ("DemoShop", "store/demo"), ("Tape", "store/tape")]
    {
        // What a room has, its parent may re-export.
        only_in(&["app", own], &[name], &format!("`{name}` outside its room and `app`"));
    }
}

#[test]
fn tasks_are_spawned_where_somebody_waits_for_them() {
    // `app` waits for its own; a request of the demo shop goes on when its caller hangs up, as PHP does.
    only_in(&["app", "store/demo/mod.rs"], &["tokio::spawn"], "a task that nobody waits for");
}

#[test]
fn the_rules_see_what_they_look_for() {
    assert!(has_word("use rusqlite::Connection;", "rusqlite"));
    assert!(!has_word("let brand = 1;", "rand"));
    assert!(has_word("x(\"/wp-json/wc/store/v1\")", "wc/store"));
    let names = |text| first_names(text);
    assert_eq!(names("money::Currency;"), ["money"]);
    assert_eq!(names("{\n    checkout::{a, b::{c}},\n    clock::Ids,\n};"), ["checkout", "clock"]);
    let text = "// wc/store\nlet a = 1; // Utc::now\n#[cfg(test)]\nmod tests {\n    use rusqlite;\n";
    assert_eq!(product_lines(text), ["", "let a = 1;", "#[cfg(test)]"]);
    assert!(
        sources()
            .iter()
            .any(|source| source.is_in(&["store/woo"]) && !source.mentions(&["Cart-Token"]).is_empty())
    );
}
