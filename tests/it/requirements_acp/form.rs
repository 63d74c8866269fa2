//! Headers, keys, versions, the form of refusals.

use axum::http::Method;
use serde_json::{Value, json};

use super::{changed, headers, raw};
use crate::support::{
    TestApp,
    clients::{acp_lines, acp_payment, lines},
};

const SESSIONS: &str = "/acp/checkout_sessions";

/// Every refusal is flat JSON and repeats request id and key.
/// Requirements, D-7, D-9.
#[tokio::test]
async fn refusals_are_flat_and_repeat_their_request() {
    let app = TestApp::new().await;
    let good = acp_lines("bouquet_roses", 1, "usd");
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body.to_string()
    };
    let canceled = app.acp().ready("bouquet_roses", 1, "usd").await;
    app.acp().cancel(&canceled).await.expect(200);
    let cancel = format!("{SESSIONS}/{canceled}/cancel");
    app.acp().key("used").create(good.clone()).await.expect(201);
    for (path, headers, body, status, code, param) in [
        (SESSIONS, changed("k", "authorization", None), good.to_string(), 401, "unauthorized", None),
        (SESSIONS, changed("k", "api-version", None), good.to_string(), 400, "missing_api_version", None),
        (SESSIONS, changed("k", "content-type", None), good.to_string(), 415, "unsupported_media_type", None),
        (SESSIONS, headers("k k"), good.to_string(), 400, "invalid_idempotency_key", None),
        (SESSIONS, headers("k"), "{".into(), 400, "invalid_json", None),
        (SESSIONS, headers("used"), with("currency", json!("eur")), 422, "idempotency_conflict", None),
        (
            SESSIONS,
            headers("k1"),
            with("currency", json!("eur")),
            400,
            "unsupported_currency",
            Some("$.currency"),
        ),
        (SESSIONS, headers("k2"), with("buyer", json!(5)), 400, "invalid", Some("$.buyer")),
        (
            SESSIONS,
            headers("k3"),
            with("line_items", json!([{"id": "nothing_like_it"}])),
            400,
            "invalid_item_id",
            Some("$.line_items[0].id"),
        ),
        (
            "/acp/checkout_sessions/chk_none/cancel",
            headers("k4"),
            "{}".into(),
            404,
            "session_not_found",
            None,
        ),
        (&cancel, headers("k5"), "{}".into(), 405, "session_canceled", None),
        // Form goes before the session and its state.
        (
            "/acp/checkout_sessions/chk_none/complete",
            headers("k7"),
            "{}".into(),
            400,
            "missing_required_field",
            Some("$.payment_data"),
        ),
        ("/acp/checkout_sessions/x/pay", headers("k6"), "{}".into(), 404, "not_found", None),
    ] {
        let mut headers = headers;
        headers.push(("request-id", "r-7".to_owned()));
        let key = headers.iter().find(|(name, _)| *name == "idempotency-key").map(|(_, key)| key.clone());
        let reply = raw(&app, Method::POST, path, &headers, &body).await;
        assert_eq!((reply.status, reply.text("/code")), (status, code), "{}", reply.json);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{code}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{code}");
        assert_eq!(reply.header("request-id"), Some("r-7"), "{code}");
        assert_eq!(reply.header("idempotency-key"), key.as_deref(), "{code}");
        assert!(
            reply.json["type"].is_string()
                && reply.json["message"].is_string()
                && reply.json.get("error").is_none()
        );
        assert_eq!(reply.json["param"].as_str(), param, "{code}");
        assert!(param.is_none_or(|param| param.starts_with('$')));
    }
}

/// Requirements.
#[tokio::test]
async fn versions_that_are_not_spoken_are_refused() {
    let app = TestApp::new().await;
    let body = acp_lines("bouquet_roses", 1, "usd").to_string();
    for (version, code) in [
        (None, "missing_api_version"),
        (Some("1999-01-01"), "unsupported_api_version"),
        (Some("2026-01-30"), "unsupported_api_version"),
        (Some("latest"), "unsupported_api_version"),
    ] {
        let reply = raw(&app, Method::POST, SESSIONS, &changed("k", "api-version", version), &body).await;
        assert_eq!(reply.status, 400, "{version:?}");
        assert_eq!((reply.text("/code"), &reply.json["supported_versions"]), (code, &json!(["2026-04-17"])));
    }
    assert_eq!(app.sessions_made(), 0);
}

/// Requirements, D-10, D-13.
#[tokio::test]
async fn every_post_needs_a_key_of_bounded_length() {
    let app = TestApp::new().await;
    let id = app.acp().ready("bouquet_roses", 1, "usd").await;
    let long = "k".repeat(256);
    for (path, body) in [
        (SESSIONS.to_owned(), acp_lines("bouquet_roses", 1, "usd")),
        (format!("{SESSIONS}/{id}"), json!({"order_notes": "x"})),
        (format!("{SESSIONS}/{id}/complete"), acp_payment("spt_test_ok")),
        (format!("{SESSIONS}/{id}/cancel"), json!({})),
    ] {
        for (key, code) in [
            (None, "idempotency_key_required"),
            (Some(""), "invalid_idempotency_key"),
            (Some(long.as_str()), "invalid_idempotency_key"),
        ] {
            let headers = changed("k", "idempotency-key", key);
            let reply = raw(&app, Method::POST, &path, &headers, &body.to_string()).await.expect(400);
            assert_eq!(reply.text("/code"), code, "{path} {key:?}");
        }
    }
    let read = app.acp().get(&id).await.expect(200);
    assert_eq!(read.text("/status"), "ready_for_payment", "nothing ran");
    // A refusal before the key was read leaves it free.
    let wrong = changed("free", "api-version", Some("1999-01-01"));
    raw(&app, Method::POST, SESSIONS, &wrong, "{}").await.expect(400);
    raw(&app, Method::POST, SESSIONS, &headers("free"), "{").await.expect(400);
    app.acp().key("free").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
}

/// Requirements, D-2.
#[tokio::test]
async fn a_key_is_one_agents_at_one_address() {
    let app = TestApp::with(|settings| {
        let second = json!({"id": "second", "token": "second-token"});
        let agents = &mut settings.shops.get_mut("flower").unwrap().agents;
        agents.push(serde_json::from_value(second).unwrap());
    })
    .await;
    let mut body = acp_lines("bouquet_roses", 1, "usd");
    let first = app.acp().key("k").create(body.clone()).await.expect(201);
    let second = changed("k", "authorization", Some("Bearer second-token"));
    let theirs = raw(&app, Method::POST, SESSIONS, &second, &body.to_string()).await.expect(201);
    assert_ne!(theirs.id(), first.id(), "another agent's key is another key");
    assert_eq!(theirs.header("idempotent-replayed"), None);
    let path = format!("{SESSIONS}/{}", first.id());
    let foreign = raw(&app, Method::GET, &path, &second, "").await.expect(404);
    assert_eq!(foreign.text("/code"), "session_not_found");
    let updated = app.acp().key("k").update(&first.id(), json!({"order_notes": "ring"})).await.expect(200);
    assert_eq!(updated.header("idempotent-replayed"), None, "another address is another key");
    body["discounts"] = json!({"codes": ["10OFF"]});
    let other = app.acp().key("k").create(body).await.expect(422);
    assert_eq!(other.text("/code"), "idempotency_conflict", "extensions count");
}

/// Requirements, D-12.
#[tokio::test]
async fn a_cancel_may_say_why_or_nothing() {
    let app = TestApp::new().await;
    let acp = app.acp();
    for body in [
        None,
        Some(json!({})),
        Some(json!({"intent_trace": {"reason_code": "shipping_cost", "metadata": {"most": 300}}})),
        Some(json!({"intent_trace": {"reason_code": "no_such_reason", "trace_summary": "too dear"}})),
    ] {
        let id = acp.ready("bouquet_roses", 1, "usd").await;
        let path = format!("/checkout_sessions/{id}/cancel");
        let reply = acp.key("k").call(Method::POST, &path, body.as_ref()).await.expect(200);
        assert_eq!(reply.text("/status"), "canceled");
        let again = acp.key("k").call(Method::POST, &path, body.as_ref()).await.expect(200);
        assert_eq!(again.bytes, reply.bytes);
        let read = acp.get(&id).await.expect(200);
        assert!(read.json.get("intent_trace").is_none() && reply.json.get("intent_trace").is_none());
        if body.is_none() {
            let empty = acp.key("k").call(Method::POST, &path, Some(&json!({}))).await.expect(200);
            assert_eq!(empty.header("idempotent-replayed"), Some("true"), "no body equals an empty one");
        }
    }
    let id = acp.ready("bouquet_roses", 1, "usd").await;
    let nested = json!({"intent_trace": {"reason_code": "other", "metadata": {"a": {"b": 1}}}});
    let path = format!("/checkout_sessions/{id}/cancel");
    let refused = acp.call(Method::POST, &path, Some(&nested)).await.expect(400);
    assert_eq!((refused.text("/code"), refused.text("/param")), ("invalid_type", "$.intent_trace.metadata"));
    assert_eq!(acp.get(&id).await.text("/status"), "ready_for_payment");
}

/// Requirements: A-011, D-3.
#[tokio::test]
async fn every_write_at_the_end_is_405() {
    let app = TestApp::new().await;
    let acp = app.acp();
    let canceled = acp.ready("bouquet_roses", 1, "usd").await;
    acp.cancel(&canceled).await.expect(200);
    let completed = acp.ready("bouquet_roses", 1, "usd").await;
    acp.complete(&completed, "spt_test_ok").await.expect(200);
    let expired = acp.ready("bouquet_roses", 1, "usd").await;
    app.pass(25 * 3600);
    for (id, code, status) in [
        (canceled, "session_canceled", "canceled"),
        (completed, "session_completed", "completed"),
        (expired, "session_expired", "expired"),
    ] {
        for reply in [
            acp.update(&id, json!({"order_notes": "x"})).await,
            acp.complete(&id, "spt_test_ok").await,
            acp.cancel(&id).await,
        ] {
            let reply = reply.expect(405);
            assert_eq!((reply.text("/code"), reply.header("allow")), (code, Some("GET")));
        }
        assert_eq!(acp.get(&id).await.expect(200).text("/status"), status);
    }
}

/// Requirements.
#[tokio::test]
async fn discovery_is_for_everybody_and_tells_no_secret() {
    let app = TestApp::new().await;
    let reply = app.get("/.well-known/acp.json").await.expect(200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("public, max-age=3600"));
    let protocol = &reply.json["protocol"];
    let versions: Vec<&str> =
        protocol["supported_versions"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    assert!(versions.is_sorted(), "{versions:?}");
    assert_eq!(
        (protocol["name"].as_str(), protocol["version"].as_str()),
        (Some("acp"), versions.last().copied())
    );
    assert_eq!(reply.json["transports"], json!(["rest"]));
    assert_eq!(reply.json["capabilities"]["services"], json!(["checkout"]));
    assert_eq!(reply.json["capabilities"]["supported_currencies"], json!(["usd"]));
    let text = String::from_utf8_lossy(&reply.bytes).into_owned();
    for secret in ["merchant", "handler", "mock", "token", "psp", "agents"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

/// Requirements: A-003, D-1.
#[tokio::test]
async fn no_operation_runs_without_a_token() {
    let app = TestApp::new().await;
    let id = app.acp().ready("bouquet_roses", 1, "usd").await;
    let before = app.acp().get(&id).await.expect(200);
    app.shop_calls().await;
    for token in [None, Some("Bearer wrong"), Some("Basic test-token")] {
        for (method, path, body) in [
            (Method::POST, SESSIONS.to_owned(), acp_lines("bouquet_roses", 1, "usd")),
            (Method::GET, format!("{SESSIONS}/{id}"), Value::Null),
            (Method::POST, format!("{SESSIONS}/{id}"), json!({"line_items": []})),
            (Method::POST, format!("{SESSIONS}/{id}/complete"), acp_payment("spt_test_ok")),
            (Method::POST, format!("{SESSIONS}/{id}/cancel"), json!({})),
        ] {
            let headers = changed("k", "authorization", token);
            let reply = raw(&app, method, &path, &headers, &body.to_string()).await.expect(401);
            assert_eq!(
                (reply.text("/code"), reply.header("www-authenticate")),
                ("unauthorized", Some("Bearer"))
            );
        }
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
    assert_eq!((app.acp().get(&id).await.json, app.sessions_made()), (before.json, 1));
    raw(&app, Method::GET, "/.well-known/acp.json", &[], "").await.expect(200);
}

/// One of two equal requests runs, the other is told to come again.
/// Requirements: A-025, U-050.
#[tokio::test]
async fn a_key_at_work_is_409() {
    let app = TestApp::new().await;
    app.flower().set_fault("delay_ms=1000").unwrap();
    let (acp, ucp) = (app.acp().key("k"), app.ucp().key("k"));
    let body = acp_lines("bouquet_roses", 1, "usd");
    let (one, two) = tokio::join!(acp.create(body.clone()), acp.create(body.clone()));
    let (three, four) =
        tokio::join!(ucp.create(lines("bouquet_roses", 1)), ucp.create(lines("bouquet_roses", 1)));
    for (one, two) in [(one, two), (three, four)] {
        let (made, told) = if one.status == 201 { (one, two) } else { (two, one) };
        assert_eq!((made.status, told.status), (201, 409), "{}", told.json);
        assert_eq!((told.text("/code"), told.header("retry-after")), ("idempotency_in_flight", Some("2")));
    }
    app.flower().clear_faults();
    let again = acp.create(body).await.expect(201);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(app.sessions_made(), 2);
}
