//! The own profile.

use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::Value;

use crate::support::TestApp;

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).collect::<Vec<_>>() == [4, 2, 2]
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_digit()))
}

/// Labels in lower case, joined by dots, at least two.
fn is_reverse_domain(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    labels.len() > 1
        && labels.iter().all(|label| {
            label.starts_with(|c: char| c.is_ascii_lowercase())
                && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
}

/// Requirements: U-001, U-003, U-004, U-005, U-006, U-007, U-013.
#[tokio::test]
async fn the_profile_is_served_as_it_must_be() {
    let app = TestApp::new().await;
    for path in ["/.well-known/ucp", "/2026-04-08/.well-known/ucp"] {
        let reply = app.get(path).await.expect(200);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let caching = reply.header("cache-control").unwrap().to_lowercase();
        let directives: Vec<&str> = caching.split(',').map(str::trim).collect();
        assert!(directives.contains(&"public"), "{caching}");
        let age = directives.iter().find_map(|directive| directive.strip_prefix("max-age=")).unwrap();
        assert!(age.parse::<u32>().unwrap() >= 60, "{caching}");
        for forbidden in ["private", "no-store", "no-cache"] {
            assert!(!directives.contains(&forbidden), "{caching}");
        }
        let ucp = &reply.json["ucp"];
        assert!(is_date(ucp["version"].as_str().unwrap()));
        assert!(ucp["services"].is_object() && ucp["payment_handlers"].is_object());
        let older = ucp.get("supported_versions").and_then(Value::as_object);
        assert!(older.is_none_or(|older| older.keys().all(|version| is_date(version))));
        assert!(older.is_none() || path == "/.well-known/ucp", "a version's own profile lists no others");
        assert_eq!(app.get(path).await.bytes, reply.bytes, "it is the same for everybody");
    }
}

/// Requirements: U-010, U-011.
#[tokio::test]
async fn names_of_the_profile_have_owners() {
    let app = TestApp::new().await;
    let ucp = app.get("/.well-known/ucp").await.expect(200).json["ucp"].clone();
    for registry in ["services", "capabilities", "payment_handlers"] {
        for (name, entries) in ucp[registry].as_object().unwrap() {
            assert!(is_reverse_domain(name), "{name}");
            let ours = registry == "payment_handlers";
            assert_eq!(name.starts_with("dev.ucp."), !ours, "{name}");
            assert!(!ours || name.starts_with("dev.tillgate."), "{name}");
            for entry in entries.as_array().unwrap() {
                assert!(is_date(entry["version"].as_str().unwrap()), "{name}");
                if registry == "capabilities" {
                    for link in ["spec", "schema"] {
                        assert!(
                            entry[link].as_str().unwrap().starts_with("https://ucp.dev/"),
                            "{name}: {entry}"
                        );
                    }
                }
            }
        }
    }
}

/// Requirements: U-008, U-009.
#[tokio::test]
async fn an_endpoint_is_https_and_paths_are_appended_to_it() {
    let app = TestApp::with(|settings| {
        settings.shops.get_mut("flower").unwrap().public_url = "https://gate.example/shop/".parse().unwrap();
    })
    .await;
    for (path, root) in [("/.well-known/ucp", "/ucp"), ("/2026-04-08/.well-known/ucp", "/2026-04-08")] {
        let profile = app.get(path).await.expect(200);
        let rest = profile.json["ucp"]["services"]["dev.ucp.shopping"].as_array().unwrap();
        let rest: Vec<&Value> = rest.iter().filter(|entry| entry["transport"] == "rest").collect();
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0]["endpoint"], format!("https://gate.example/shop{root}"));
        let request = Request::builder().method(Method::POST).uri(format!("{root}/checkout-sessions"));
        let reply = app.send(request.header("host", "127.0.0.1").body(Body::from("{}")).unwrap()).await;
        assert_eq!(reply.expect(400).text("/code"), "invalid_profile_url", "somebody is there");
    }
    let acp = app.get("/.well-known/acp.json").await.expect(200);
    assert_eq!(acp.text("/api_base_url"), "https://gate.example/shop/acp");
}
