//! Who may call, in which version, and what both sides understand (UCP, "Negotiation Protocol"): with profiles
//! that a platform of the test hosts on loopback.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use serde_json::{Value, json};
use tillgate::platform::full_profile;

use crate::support::{
    Reply, TestApp,
    clients::{full, lines},
    listen,
};

const NOW: &str = "2026-04-08";
const CHECKOUT: &str = "dev.ucp.shopping.checkout";
const DISCOUNT: &str = "dev.ucp.shopping.discount";

/// A platform: profiles by name, and how often each was fetched.
#[derive(Clone, Default)]
struct Platform {
    url: String,
    profiles: Arc<BTreeMap<&'static str, Value>>,
    fetched: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Platform {
    async fn host(profiles: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let platform = Self { profiles: Arc::new(profiles.into_iter().collect()), ..Self::default() };
        let router = Router::new()
            .route("/{name}", get(async |state, path| Self::answer(state, path)))
            .with_state(platform.clone());
        Self { url: listen(router).await, ..platform }
    }

    fn answer(State(platform): State<Self>, Path(name): Path<String>) -> Response {
        *platform.fetched.lock().unwrap().entry(name.clone()).or_default() += 1;
        let uncached = [(header::CACHE_CONTROL, "no-store, max-age=0")];
        match (platform.profiles.get(name.as_str()), name.as_str()) {
            (Some(profile), _) => (uncached, Json(profile.clone())).into_response(),
            (None, "away") => Redirect::temporary("/full").into_response(),
            (None, "broken") => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            (None, "text") => "hello".into_response(),
            (None, _) => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    fn fetches(&self, name: &str) -> usize {
        self.fetched.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

/// A profile that lists these capabilities, each in these versions.
fn listing(capabilities: &[(&str, &[&str])]) -> Value {
    let mut profile = full_profile(NOW, None);
    let entries = capabilities.iter().map(|(name, versions)| {
        let entry = |version: &&str| json!({"version": version, "spec": "https://x.example/", "schema": "https://x.example/"});
        ((*name).to_owned(), versions.iter().map(entry).collect::<Value>())
    });
    profile["ucp"]["capabilities"] = Value::Object(entries.collect());
    profile
}

fn of_version(version: &str) -> Value {
    full_profile(version, None)
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str, what: &str) {
    assert_eq!((reply.status, reply.codes()), (status, vec![code.to_owned()]), "{what}: {}", reply.json);
    assert!(reply.text("/continue_url").starts_with("https://"), "{what}");
    if status == 200 {
        assert_eq!(reply.json["ucp"]["status"], "error", "{what}");
        assert_eq!(reply.json["ucp"]["version"], NOW, "{what}");
        assert_eq!(reply.json["messages"][0]["severity"], "unrecoverable", "{what}");
    } else {
        assert_eq!(reply.json["code"], code, "{what}");
        assert!(reply.json.get("ucp").is_none(), "{what}");
    }
}

/// Requirements: U-016, U-017, U-019, U-023, U-024, U-027, U-033, U-038.
#[tokio::test]
async fn each_failure_has_its_code_and_status_at_every_operation() {
    let mut malformed = full_profile(NOW, None);
    malformed["ucp"].as_object_mut().unwrap().remove("services");
    let platform = Platform::host([
        ("full", full_profile(NOW, None)),
        ("list", json!([])),
        ("malformed", malformed),
        ("future", of_version("2099-01-01")),
        ("past", of_version("2025-01-01")),
        ("catalog", listing(&[("dev.ucp.shopping.catalog.search", &[NOW])])),
        ("none", listing(&[])),
    ])
    .await;
    let app = TestApp::new().await;
    let id = app.ucp().create(lines("bouquet_roses", 1)).await.expect(201).id();
    app.shop_calls().await;
    let http = "http://spck.dev/agent".to_owned();
    for (url, status, code) in [
        (http, 400, "invalid_profile_url"),
        ("ftp://agent.example/".to_owned(), 400, "invalid_profile_url"),
        ("https://user:secret@agent.example/".to_owned(), 400, "invalid_profile_url"),
        (platform.at("missing"), 424, "profile_unreachable"),
        (platform.at("broken"), 424, "profile_unreachable"),
        (platform.at("away"), 424, "profile_unreachable"),
        ("http://127.0.0.1:1/closed".to_owned(), 424, "profile_unreachable"),
        (platform.at("text"), 422, "profile_malformed"),
        (platform.at("list"), 422, "profile_malformed"),
        (platform.at("malformed"), 422, "profile_malformed"),
        (platform.at("future"), 422, "version_unsupported"),
        (platform.at("past"), 422, "version_unsupported"),
        (platform.at("catalog"), 200, "capabilities_incompatible"),
        (platform.at("none"), 200, "capabilities_incompatible"),
    ] {
        for root in ["/ucp", "/2026-04-08", ""] {
            let ucp = app.ucp().profile(&url).at(root);
            let one = format!("/checkout-sessions/{id}");
            for (method, path, body) in [
                (Method::POST, "/checkout-sessions", Some(lines("bouquet_roses", 1))),
                (Method::GET, one.as_str(), None),
                (Method::PUT, one.as_str(), Some(lines("bouquet_roses", 2))),
                (Method::POST, &format!("{one}/cancel"), None),
            ] {
                let reply = ucp.call(method.clone(), path, body.as_ref()).await;
                refused(&reply, status, code, &format!("{method} {root}{path} by {url}"));
            }
        }
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new(), "nothing ran");
    assert_eq!(platform.fetches("full"), 0, "a redirect is not followed");
    assert_eq!(app.ucp().get(&id).await.expect(200).text("/status"), "incomplete");
    let reply = app.ucp().profile(&platform.at("future")).create(lines("bouquet_roses", 1)).await;
    assert!(reply.text("/content").contains(NOW), "the versions served are told: {}", reply.json);
}

/// Requirements: U-016, U-021.
#[tokio::test]
async fn a_profile_is_fetched_once_within_the_shortest_life() {
    let platform = Platform::host([("full", full_profile(NOW, None))]).await;
    let app = TestApp::new().await;
    let ucp = app.ucp().profile(&platform.at("full"));
    let id = ucp.create(lines("bouquet_roses", 1)).await.expect(201).id();
    ucp.get(&id).await.expect(200);
    ucp.update(&id, lines("bouquet_roses", 2)).await.expect(200);
    assert_eq!(platform.fetches("full"), 1, "whatever the origin says about caching");
}

/// Requirements: U-028, U-029, U-030, U-031, U-034, U-035.
#[tokio::test]
async fn only_what_both_sides_list_is_active_and_told() {
    let vendor = "com.example.gift_wrap";
    let platform = Platform::host([
        ("plain", listing(&[(CHECKOUT, &[NOW])])),
        ("discounts", listing(&[(CHECKOUT, &[NOW]), (DISCOUNT, &[NOW])])),
        ("two", listing(&[(CHECKOUT, &["2026-01-23", NOW, "2027-01-01"]), (DISCOUNT, &["2026-01-23"])])),
        ("vendor", listing(&[(CHECKOUT, &[NOW]), (vendor, &[NOW])])),
        ("orphan", listing(&[("dev.ucp.shopping.cart", &[NOW]), (DISCOUNT, &[NOW])])),
        ("older", listing(&[(CHECKOUT, &["2026-01-23"])])),
    ])
    .await;
    let app = TestApp::new().await;
    let mut body = full("bouquet_roses", 1);
    body["discounts"] = json!({"codes": ["10OFF"]});
    for (name, capabilities) in [
        ("plain", &[CHECKOUT][..]),
        ("discounts", &[CHECKOUT, DISCOUNT]),
        ("two", &[CHECKOUT]),
        ("vendor", &[CHECKOUT]),
    ] {
        let ucp = app.ucp().profile(&platform.at(name));
        let created = ucp.create(body.clone()).await.expect(201);
        let read = ucp.get(&created.id()).await.expect(200);
        let cancelled = ucp.cancel(&created.id()).await.expect(200);
        for reply in [created, read, cancelled] {
            assert_eq!(reply.json["ucp"]["version"], NOW, "{name}");
            let told = reply.json["ucp"]["capabilities"].as_object().unwrap();
            assert_eq!(told.keys().collect::<Vec<_>>(), capabilities, "{name}");
            assert!(told.values().all(|entries| *entries == json!([{"version": NOW}])), "{name}: {told:?}");
            assert_eq!(reply.json.get("discounts").is_some(), capabilities.contains(&DISCOUNT), "{name}");
            assert!(reply.json.get("fulfillment").is_none(), "{name}");
        }
    }
    for name in ["orphan", "older"] {
        let reply = app.ucp().profile(&platform.at(name)).create(body.clone()).await;
        refused(&reply, 200, "capabilities_incompatible", name);
    }
}

/// Requirements: U-018.
#[tokio::test]
async fn a11_the_header_is_a_dictionary_however_it_is_spaced() {
    let mut odd = full_profile(NOW, None);
    odd["more"] = json!({"unknown": [1, 2]});
    odd["ucp"]["capabilities"]["com.example.new"] =
        json!([{"version": NOW, "spec": "https://x.example/", "schema": "https://x.example/", "future": {}}]);
    let platform = Platform::host([("odd", odd)]).await;
    let url = platform.at("odd");
    let app = TestApp::new().await;
    for (lines, status) in [
        (vec![format!("profile=\"{url}\"")], 201),
        (vec![format!("  client=\"x\" ,\tprofile=\"{url}\";v=1 ,  z")], 201),
        (vec!["a=1".to_owned(), format!("profile=\"{url}\"")], 201),
        (vec![format!("profile=\"https://old.example/\", profile=\"{url}\"")], 201),
        (vec![format!("profile={url}")], 400),
        (vec![format!("profile=(\"{url}\")")], 400),
        (vec!["profile=token".to_owned()], 400),
        (vec!["foo=1".to_owned()], 400),
        (vec![], 400),
    ] {
        let mut request = axum::http::Request::post("/ucp/checkout-sessions").header("host", "127.0.0.1");
        for line in &lines {
            request = request.header("ucp-agent", line);
        }
        let body = axum::body::Body::from(
            json!({"line_items": [{"item": {"id": "bouquet_roses"}, "quantity": 1}]}).to_string(),
        );
        let reply = app.send(request.header("content-type", "application/json").body(body).unwrap()).await;
        assert_eq!(reply.status, status, "{lines:?}: {}", reply.json);
        if status == 400 {
            refused(&reply, 400, "invalid_profile_url", &format!("{lines:?}"));
        }
    }
}

/// Requirements: U-001, U-003, U-004, U-005, U-006, U-007, U-008, U-009, U-010, U-011, U-013.
#[tokio::test]
async fn a5_a20_our_own_profile_is_cacheable_and_says_what_is_served() {
    let app = TestApp::new().await;
    for (path, root) in [("/.well-known/ucp", "/ucp"), ("/2026-04-08/.well-known/ucp", "/2026-04-08")] {
        // 200 at once, not by way of a redirect.
        let reply = app.get(path).await.expect(200);
        let cache = reply.header("cache-control").unwrap().to_owned();
        let max_age = cache.split("max-age=").nth(1).and_then(|rest| rest.parse::<u64>().ok());
        assert!(cache.contains("public") && max_age.is_some_and(|secs| secs >= 60), "{cache}");
        assert!(!["private", "no-store", "no-cache"].iter().any(|word| cache.contains(word)), "{cache}");
        let ucp = &reply.json["ucp"];
        assert_eq!(ucp["version"], NOW);
        assert!(ucp.get("supported_versions").is_none(), "only one version is served");
        assert!(reply.json.get("signing_keys").is_none(), "nothing is signed yet");
        assert!(ucp["payment_handlers"].is_object());
        let endpoint = ucp["services"]["dev.ucp.shopping"][0]["endpoint"].as_str().unwrap();
        assert!(endpoint.ends_with(root), "{endpoint}");
        for (name, entries) in ucp["capabilities"].as_object().unwrap() {
            assert!(name.starts_with("dev.ucp."), "{name}");
            for entry in entries.as_array().unwrap() {
                assert_eq!(entry["version"], NOW);
                for member in ["spec", "schema"] {
                    assert!(
                        entry[member].as_str().unwrap().starts_with("https://ucp.dev/"),
                        "{name} {member}"
                    );
                }
            }
        }
        assert_eq!(reply.json, app.get(path).await.json, "it does not vary");
    }
    let reply = app.ucp().create(lines("bouquet_roses", 1)).await.expect(201);
    assert_eq!(reply.json["ucp"]["version"], NOW, "one constant: profile, header, body");
    assert!(reply.json["ucp"]["payment_handlers"].is_object());
}
