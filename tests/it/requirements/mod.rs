//! Every numbered requirement has a test that carries its number, or a reason why not.
//!
//! The numbers stand in `docs/requirements.toml`; a test names those that it shows in its doc comment:
//! `/// Requirements: U-017, U-018, A-004.` From both comes the table at the end of `docs/conformance.md`. By
//! default the table there is compared; with `TILLGATE_WRITE=1` it is written.

mod tags;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use figment::{
    Figment,
    providers::{Format as _, Toml},
};
use serde::Deserialize;

use tags::Tags;

const BEGIN: &str = "<!-- requirements: begin, made by tests/it/requirements -->\n";
const END: &str = "<!-- requirements: end -->\n";
const HOW: &str = "run `TILLGATE_WRITE=1 cargo nextest run -E 'test(requirements)'`";

/// `docs/requirements.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    reasons: BTreeMap<String, String>,
    ucp: BTreeMap<String, Row>,
    acp: BTreeMap<String, Row>,
    decisions: BTreeMap<String, Row>,
}

/// A requirement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    level: String,
    what: String,
    /// Why no test shows it: a name of the reasons.
    because: Option<String>,
    /// The same in its own words.
    reason: Option<String>,
    /// What is missing although tests show the rest.
    partly: Option<String>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn listed() -> Listed {
    Figment::from(Toml::file(root().join("docs/requirements.toml"))).extract().unwrap()
}

/// `U-017` sorts before `U-110`, `D-2` before `D-10`.
fn order(number: &str) -> (&str, u32) {
    let (letter, digits) = number.split_once('-').unwrap_or((number, ""));
    (letter, digits.parse().unwrap_or(u32::MAX))
}

fn sorted<T>(rows: &BTreeMap<String, T>) -> Vec<(&String, &T)> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|(number, _)| order(number));
    rows
}

/// What is wrong between the list and the tests.
fn faults(listed: &Listed, tags: &Tags) -> Vec<String> {
    let mut faults = tags.faults.clone();
    let all: Vec<_> = [&listed.ucp, &listed.acp, &listed.decisions].into_iter().flatten().collect();
    for (number, row) in &all {
        let reasons = [&row.because, &row.reason, &row.partly].into_iter().flatten().count();
        let tested = tags.tests.get(*number).is_some_and(|tests| !tests.is_empty());
        match (reasons, tested) {
            (0, false) => faults.push(format!("{number} has neither a test nor a reason")),
            (1, true) if row.partly.is_none() => {
                faults.push(format!(
                    "{number} has a reason for having no test, and tests: drop one, or say `partly`"
                ));
            }
            (1, false) if row.partly.is_some() => {
                faults.push(format!("{number} is said to be met in part, but no test shows the part"));
            }
            (0 | 1, _) => {}
            _ => faults.push(format!("{number} has more than one of `because`, `reason` and `partly`")),
        }
        if row.because.as_ref().is_some_and(|name| !listed.reasons.contains_key(name)) {
            faults.push(format!("{number} names a reason that is not there"));
        }
        if row.what.is_empty() || row.level.is_empty() {
            faults.push(format!("{number} does not say what it asks"));
        }
    }
    for name in listed.reasons.keys() {
        if !all.iter().any(|(_, row)| row.because.as_ref() == Some(name)) {
            faults.push(format!("nothing needs the reason `{name}` any more"));
        }
    }
    for (number, tests) in &tags.tests {
        if !all.iter().any(|(known, _)| *known == number) {
            faults.push(format!("{number}, named by {}, is no known number", tests.join(", ")));
        }
    }
    faults
}

fn table(listed: &Listed, tags: &Tags) -> String {
    let mut text = BEGIN.to_owned();
    for (title, rows) in [
        ("UCP 2026-04-08", &listed.ucp),
        ("ACP (2026-04-17 is spoken)", &listed.acp),
        ("Our decisions for ACP", &listed.decisions),
    ] {
        let shown = rows.keys().filter(|number| tags.tests.contains_key(*number)).count();
        let _ = writeln!(
            text,
            "\n### {title}\n\n{} numbers: {shown} with tests, {} with a reason.\n\n\
             | number | level | what | shown by, or why not |\n|---|---|---|---|",
            rows.len(),
            rows.len() - shown,
        );
        for (number, row) in sorted(rows) {
            let mut cells: Vec<String> =
                tags.tests.get(number).into_iter().flatten().map(|test| format!("`{test}`")).collect();
            let why = row.because.as_ref().and_then(|name| listed.reasons.get(name)).or(row.reason.as_ref());
            cells.extend(why.map(|why| format!("not: {why}")));
            cells.extend(row.partly.as_ref().map(|part| format!("in part: {part}")));
            let _ = writeln!(text, "| {number} | {} | {} | {} |", row.level, row.what, cells.join("<br>"));
        }
    }
    text.push('\n');
    text.push_str(END);
    text
}

#[test]
fn requirements_have_tests_or_reasons_and_the_table_says_so() {
    let listed = listed();
    let tags = Tags::of(&root(), &["src", "tests"]);
    let faults = faults(&listed, &tags);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));

    let page = root().join("docs/conformance.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("docs/conformance.md has lost the begin of its table");
    let (_, after) = rest.split_once(END).expect("docs/conformance.md has lost the end of its table");
    let made = format!("{before}{}{after}", table(&listed, &tags));
    if std::env::var_os("TILLGATE_WRITE").is_some() {
        std::fs::write(&page, made).unwrap();
    } else {
        assert!(made == text, "the table of docs/conformance.md is stale: {HOW}");
    }
}

/// The numbers that a table of a reference page starts its rows with, or that a text mentions.
fn numbers(text: &str, letter: char) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices(letter) {
        let word_before = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let digits: String = text[at..].chars().skip(2).take_while(char::is_ascii_digit).collect();
        if !word_before && text[at..].chars().nth(1) == Some('-') && !digits.is_empty() {
            found.insert(format!("{letter}-{digits}"));
        }
    }
    found
}

/// The pages that the numbers come from are not part of the project: where they are, nothing may be missing.
#[test]
fn requirements_are_those_of_the_reference_pages() {
    let specs = std::env::var_os("SPECS_DIR").map_or_else(|| root().join("../shared/specs"), PathBuf::from);
    let docs = specs.join("../docs");
    let read = |name: &str| std::fs::read_to_string(Path::new(&docs).join(name));
    let (Ok(ucp), Ok(acp)) = (read("ucp.md"), read("acp.md")) else {
        println!(
            "skipped: the numbers are not compared: there are no pages in {} (set SPECS_DIR)",
            docs.display()
        );
        assert!(std::env::var_os("CI").is_none(), "with CI set the reference pages must be there");
        return;
    };
    let listed = listed();
    let keys = |rows: &BTreeMap<String, Row>| rows.keys().cloned().collect::<BTreeSet<_>>();
    let rows = |page: &str, letter: char| {
        let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        rows.flat_map(|first| numbers(first, letter)).collect::<BTreeSet<_>>()
    };
    assert_eq!(keys(&listed.ucp), rows(&ucp, 'U'));
    assert_eq!(keys(&listed.acp), rows(&acp, 'A'));
    assert_eq!(keys(&listed.decisions), numbers(&acp, 'D'));
}

#[test]
fn requirements_are_held_against_tests_as_they_say() {
    let row = |reason: Option<&str>, partly: Option<&str>| Row {
        level: "MUST".into(),
        what: "x".into(),
        because: None,
        reason: reason.map(str::to_owned),
        partly: partly.map(str::to_owned),
    };
    let tested = ["U-001", "U-003", "U-005", "U-999"];
    let tags = Tags {
        tests: tested.into_iter().map(|number| (number.to_owned(), vec!["a::b".to_owned()])).collect(),
        faults: vec!["from the tags".to_owned()],
    };
    let listed = Listed {
        reasons: [("nobody".to_owned(), "x".to_owned())].into(),
        ucp: [
            ("U-001", row(None, None)),
            ("U-002", row(Some("r"), None)),
            ("U-003", row(Some("r"), None)),
            ("U-004", row(None, None)),
            ("U-005", row(None, Some("p"))),
            ("U-006", row(None, Some("p"))),
            ("U-007", row(Some("r"), Some("p"))),
            ("U-008", Row { because: Some("gone".into()), ..row(None, None) }),
        ]
        .into_iter()
        .map(|(number, row)| (number.to_owned(), row))
        .collect(),
        acp: BTreeMap::new(),
        decisions: BTreeMap::new(),
    };
    let found = faults(&listed, &tags);
    let about = |number: &str| found.iter().filter(|fault| fault.contains(number)).count();
    for (number, count) in [
        ("from the tags", 1),
        ("U-001", 0),
        ("U-002", 0),
        ("U-003", 1),
        ("U-004", 1),
        ("U-005", 0),
        ("U-006", 1),
        ("U-007", 1),
        ("U-008", 1),
        ("U-999", 1),
        ("nobody", 1),
    ] {
        assert_eq!(about(number), count, "{number}: {found:#?}");
    }
    let text = table(&listed, &tags);
    assert!(text.contains("| U-005 | MUST | x | `a::b`<br>in part: p |"), "{text}");
    assert!(text.contains("| U-002 | MUST | x | not: r |"), "{text}");
}
