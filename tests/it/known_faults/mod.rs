//! Faults that others in this field had, by the row of our list (`known-faults.md` of the reference folder): public
//! reports about UCP and ACP servers, Store API clients, idempotency layers, limiters and stock counters, each as a
//! case for Tillgate. A row is a kind of fault: its test is named by it (`a3_…`, `c13_…`), here or where its
//! neighbours are.
//!
//! | rows | where |
//! |---|---|
//! | A1 | MCP, with its issue |
//! | A12 | webhooks, with their issue |
//! | A13 | two versions of UCP, with the second one |
//! | A26, D1, D2, D5 | rate limits, with their issue |
//! | B22 | `b22_…`: a limited order; that other sessions of the shop back off as well comes with the budgets towards the shop |
//! | D6 | stock holds, with their issue |
//! | D9 | `d9_…`, and beside `platform::fetch`; names that resolve to private addresses come with the guard for profiles |
//! | D11, D13 | the recorder: `record/` |
//! | A17, A27, B1, B2, D8 | also `woo.rs` and `woo/`, at the shop's client alone |
//! | C11 | embedded state here; Redis with its issue |
//!
//! [`ELSEWHERE`] is the same for the check below: every row has a test or stands there with its reason.

mod a;
mod b;
mod c;
mod d;
mod requests;

use std::{collections::BTreeSet, path::Path};

/// Every row of the list.
const ROWS: [&str; 44] = [
    "a1", "a3", "a4", "a5", "a8", "a9", "a11", "a12", "a13", "a16", "a17", "a20", "a21", "a23", "a26", "a27",
    "a30", "a31", "b1", "b2", "b5", "b6", "b9", "b11", "b12", "b15", "b18", "b19", "b22", "c1", "c2", "c5",
    "c6", "c10", "c11", "c13", "d1", "d2", "d5", "d6", "d8", "d9", "d11", "d13",
];

/// Rows without a test of their name, and why.
const ELSEWHERE: [(&str, &str); 8] = [
    ("a1", "there is no MCP yet"),
    ("a12", "there are no webhooks yet"),
    ("a13", "one version of UCP is served"),
    ("a26", "there are no limits yet"),
    ("d1", "there are no limits yet"),
    ("d2", "there are no limits yet"),
    ("d5", "there are no limits yet"),
    ("d6", "there are no stock holds yet"),
];

/// The rows that tests are named by: `a3_…`, `b5_b9_…`.
fn tested() -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines = text.lines();
            while let Some(line) = lines.next() {
                if !(line.starts_with("#[tokio::test") || line == "#[test]") {
                    continue;
                }
                let name = lines.next().unwrap_or_default();
                let name = name.trim_start_matches("async ").trim_start_matches("fn ");
                rows.extend(name.split('_').take_while(|part| is_row(part)).map(str::to_owned));
            }
        }
    }
    rows
}

fn is_row(part: &str) -> bool {
    part.starts_with(['a', 'b', 'c', 'd'])
        && part.len() > 1
        && part.chars().skip(1).all(|digit| digit.is_ascii_digit())
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let tested = tested();
    let known: BTreeSet<&str> = ROWS.into_iter().collect();
    assert_eq!(known.len(), ROWS.len(), "a row stands twice in the list");
    for row in ROWS {
        let elsewhere = ELSEWHERE.iter().any(|(other, reason)| *other == row && !reason.is_empty());
        assert!(elsewhere || tested.contains(row), "row {row} has neither a test nor a reason");
    }
    for row in tested.iter().map(String::as_str).chain(ELSEWHERE.map(|(row, _)| row)) {
        assert!(known.contains(row), "there is no row {row}");
    }
}

#[test]
fn the_list_is_the_one_of_the_reference_folder() {
    let specs = std::env::var("SPECS_DIR").unwrap_or_else(|_| "../shared/specs".to_owned());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(specs).join("../docs/known-faults.md");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: there is no {}", file.display());
        assert!(std::env::var_os("CI").is_none(), "with CI set nothing is skipped");
        return;
    };
    let listed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next().map(str::to_lowercase))
        .filter(|row| is_row(row))
        .collect();
    assert_eq!(listed, ROWS.iter().map(|row| (*row).to_owned()).collect());
}
