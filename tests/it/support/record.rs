//! Writes every answer of a test run to a file, one JSON object a line, for `scripts/check-responses`.

use std::{fs::OpenOptions, io::Write as _, path::Path};

use axum::http::Method;
use serde_json::json;

use super::Reply;

pub fn record(method: &Method, path: &str, reply: &Reply) {
    let Some((protocol, operation)) = operation(method, path) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("responses");
    std::fs::create_dir_all(&folder).unwrap();
    let line = json!({
        "protocol": protocol,
        "operation": operation,
        "status": reply.status,
        "body": reply.json,
        "json": !reply.json.is_null(),
        "test": std::thread::current().name(),
    });
    // One file a process: tests run beside each other.
    let file = folder.join(format!("{}.jsonl", std::process::id()));
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Which operation of which protocol an address is; `None` for what belongs to neither.
fn operation(method: &Method, path: &str) -> Option<(&'static str, &'static str)> {
    if path == "/.well-known/acp.json" {
        return Some(("acp", "discovery"));
    }
    if path.ends_with("/.well-known/ucp") {
        return Some(("ucp", "profile"));
    }
    // At the root there is no catalogue.
    if let Some((_, operation)) = path.split_once("/catalog/").filter(|(root, _)| !root.is_empty()) {
        let known = ["search", "lookup", "product"].into_iter().find(|known| *known == operation)?;
        return Some(("ucp", known));
    }
    let (protocol, rest) =
        match (path.split_once("/checkout_sessions"), path.split_once("/checkout-sessions")) {
            (Some((_, rest)), _) => ("acp", rest),
            (None, Some((_, rest))) => ("ucp", rest),
            (None, None) => return None,
        };
    let operation = match (method.as_str(), rest.matches('/').count()) {
        ("GET", _) => "get",
        (_, 0) => "create",
        (_, 1) => "update",
        (_, 2) if rest.ends_with("/complete") => "complete",
        (_, 2) if rest.ends_with("/cancel") => "cancel",
        _ => return None,
    };
    Some((protocol, operation))
}
