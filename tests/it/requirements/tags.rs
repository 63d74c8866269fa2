//! Finds the numbers that tests carry in their doc comments.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

const TAG: &str = "/// Requirements:";

/// What the doc comments of a source tree say.
#[derive(Debug, Default)]
pub struct Tags {
    /// Number to the tests that carry it, each as `module::name`.
    pub tests: BTreeMap<String, Vec<String>>,
    /// Tags that name nothing, or stand at something that is no test.
    pub faults: Vec<String>,
}

impl Tags {
    /// Reads all Rust files of these folders.
    pub fn of(root: &Path, folders: &[&str]) -> Self {
        let mut files = Vec::new();
        for folder in folders {
            collect(&root.join(folder), &mut files);
        }
        files.sort();
        let mut tags = Self::default();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            tags.read(&module(file.strip_prefix(root).unwrap()), &text);
        }
        tags
    }

    /// Reads one file.
    pub fn read(&mut self, module: &str, text: &str) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let mut at = 0;
        while at < lines.len() {
            let end = head(&lines, at);
            let numbers: Vec<&str> =
                lines[at..end].iter().filter_map(|line| line.strip_prefix(TAG)).flat_map(split).collect();
            if !numbers.is_empty() {
                self.take(module, &lines[at..end], lines.get(end).copied().unwrap_or_default(), &numbers);
            }
            at = end + 1;
        }
    }

    /// Takes the numbers of one item: its comments and attributes, and the line after them.
    fn take(&mut self, module: &str, head: &[&str], item: &str, numbers: &[&str]) {
        let is_test = head.iter().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"));
        let name = item.split_once("fn ").map(|(_, rest)| {
            rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        });
        let Some(name) = name.filter(|name| is_test && !name.is_empty()) else {
            self.faults.push(format!("a tag in {module} stands at something that is no test: `{item}`"));
            return;
        };
        let test = format!("{module}::{name}");
        for number in numbers {
            let (letter, digits) = number.split_once('-').unwrap_or_default();
            let right = matches!(letter, "U" | "A" | "D") && !digits.is_empty();
            if !right || !digits.chars().all(|c| c.is_ascii_digit()) {
                self.faults.push(format!("{test} carries `{number}`, which is no number"));
                continue;
            }
            let tests = self.tests.entry((*number).to_owned()).or_default();
            if tests.contains(&test) {
                self.faults.push(format!("{test} carries {number} twice"));
            } else {
                tests.push(test.clone());
            }
        }
    }
}

/// Where the comments and attributes that begin here end: the line of the item itself.
fn head(lines: &[&str], from: usize) -> usize {
    let mut at = from;
    let mut open = 0_i32;
    while let Some(line) = lines.get(at) {
        if open == 0 && !line.starts_with("///") && !line.starts_with("#[") {
            break;
        }
        if !line.starts_with("///") {
            // An attribute may take several lines.
            open += i32::try_from(line.matches('[').count()).unwrap();
            open -= i32::try_from(line.matches(']').count()).unwrap();
        }
        at += 1;
    }
    at
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.trim().trim_end_matches('.').split(',').map(str::trim).filter(|number| !number.is_empty())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// `src/protocol/ucp/errors.rs` → `protocol::ucp::errors`, `tests/it/ucp.rs` → `it::ucp`.
fn module(path: &Path) -> String {
    let parts: Vec<_> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let parts: Vec<_> = parts.into_iter().skip(1).filter(|part| part != "mod").collect();
    parts.join("::")
}

#[test]
fn requirements_are_read_from_comments_of_tests() {
    let text = format!(
        "{TAG} U-001, A-002.\n{TAG} D-3.\n#[tokio::test(\n    flavor = \"multi_thread\",\n)]\nasync fn one() {{}}\n\
         #[test]\n/// What it is.\n{TAG} U-001.\nfn two() {{}}\n\n{TAG} U-005.\nfn no_test() {{}}\n\
         {TAG} X-1, U-x.\n#[test]\nfn three() {{}}\n{TAG} U-009, U-009.\n#[test]\nfn four() {{}}\n"
    );
    let mut tags = Tags::default();
    tags.read("m", &text);
    let found: Vec<_> = tags.tests.iter().map(|(number, tests)| (number.as_str(), tests.join(" "))).collect();
    let want = [("A-002", "m::one"), ("D-3", "m::one"), ("U-001", "m::one m::two"), ("U-009", "m::four")];
    assert_eq!(found, want.map(|(number, tests)| (number, tests.to_owned())));
    for part in ["no_test", "`X-1`", "`U-x`", "U-009 twice"] {
        assert_eq!(tags.faults.iter().filter(|fault| fault.contains(part)).count(), 1, "{part}");
    }
    assert_eq!(tags.faults.len(), 4);
    assert_eq!(module(Path::new("src/protocol/ucp/mod.rs")), "protocol::ucp");
    assert_eq!(module(Path::new("tests/it/ucp.rs")), "it::ucp");
}
