//! What is kept, how long, and what is never kept.

use axum::http::Method;
use serde_json::{Value, json};
use tillgate::idempotency::Answer;

use crate::support::{
    TestApp,
    clients::{acp_lines, acp_payment, full, lines, payment},
};

const HOUR: u64 = 3600;

/// Requirements: U-049, U-050, A-021, A-029, D-14.
#[tokio::test]
async fn answers_are_kept_for_a_day_and_more() {
    let app = TestApp::new().await;
    let ucp = app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201);
    let acp = app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
    for hours in [12, 12] {
        app.pass(hours * HOUR + 60);
        app.app.tend().await;
        app.shop_calls().await;
        let again = app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201);
        assert_eq!(again.bytes, ucp.bytes);
        let again = app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
        assert_eq!(again.bytes, acp.bytes);
        assert_eq!(app.shop_calls().await, Vec::<String>::new());
    }
    assert_eq!(app.sessions_made(), 2);
}

/// A memory that cannot be asked protects from nothing: nothing runs.
/// Requirements: U-052, U-041, A-028.
#[tokio::test]
async fn without_a_memory_nothing_runs() {
    let app = TestApp::new().await;
    app.shop_calls().await;
    app.state(|state| state.execute_batch("ALTER TABLE claims RENAME TO claims_away").unwrap());
    for (reply, code) in [
        (app.ucp().key("k").create(lines("bouquet_roses", 1)).await, "service_unavailable"),
        (app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await, "state_unavailable"),
    ] {
        let reply = reply.expect(503);
        assert_eq!(reply.text("/code"), code);
        assert!(reply.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
    app.state(|state| state.execute_batch("ALTER TABLE claims_away RENAME TO claims").unwrap());
    app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201);
    app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
}

/// What only passes through leaves no trace: neither in answers nor in the files of the state.
/// Requirements: U-089, U-092, U-093, A-055, A-066, A-070, D-35.
#[tokio::test]
async fn what_only_passes_through_is_not_kept() {
    let app = TestApp::new().await;
    let (ucp, acp) = (app.ucp(), app.acp());
    let mut sent: Vec<Value> = Vec::new();
    let mut body = full("bouquet_roses", 1);
    body["signals"] = json!({"dev.ucp.buyer_ip": "203.0.113.77", "dev.ucp.user_agent": "SecretBrowser"});
    body["attribution"] = json!({"campaign": "secret-campaign"});
    body["payment"] = json!({"instruments": [{"id": "pi_1", "handler_id": "mock_payment_handler", "type": "card",
        "credential": {"type": "token", "token": "secret-credential"}}]});
    let id = ucp.create(body).await.expect(201);
    sent.push(id.json.clone());
    let mut pay = payment("success_token");
    pay["signals"] = json!({"dev.ucp.buyer_ip": "203.0.113.77"});
    let path = format!("/checkout-sessions/{}/complete", id.id());
    sent.push(ucp.call(Method::POST, &path, Some(&pay)).await.expect(200).json);

    let attribution = json!({"provider": "secret-provider", "token": "secret-attribution"});
    let mut body = acp_lines("bouquet_roses", 1, "usd");
    body["affiliate_attribution"] = attribution.clone();
    let open = acp.create(body).await.expect(201);
    sent.push(open.json.clone());
    let mut pay = acp_payment("spt_test_declined");
    pay["affiliate_attribution"] = attribution;
    pay["risk_signals"] = json!({"ip_address": "203.0.113.77", "user_agent": "SecretBrowser"});
    let path = format!("/checkout_sessions/{}", open.id());
    sent.push(acp.call(Method::POST, &format!("{path}/complete"), Some(&pay)).await.json);
    let why = json!({"intent_trace": {"reason_code": "other", "trace_summary": "secret-summary"}});
    sent.push(acp.call(Method::POST, &format!("{path}/cancel"), Some(&why)).await.expect(200).json);
    sent.push(acp.get(&open.id()).await.expect(200).json);

    let mut kept = app.stored_bytes();
    // Answers lie there as lists of numbers.
    let answers: Vec<String> = app.state(|state| {
        let mut all = state.prepare("SELECT answer FROM claims WHERE answer IS NOT NULL").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    });
    for answer in answers {
        let answer: Answer = serde_json::from_str(&answer).unwrap();
        kept.extend(answer.body);
    }
    for seen in ["bouquet_roses", "line_items"] {
        let there = kept.windows(seen.len()).any(|part| part == seen.as_bytes());
        assert!(there, "sessions and answers are stored as they are read here: no {seen}");
    }
    for secret in [
        "203.0.113.77",
        "SecretBrowser",
        "secret-campaign",
        "secret-credential",
        "success_token",
        "secret-provider",
        "secret-attribution",
        "spt_test_declined",
        "secret-summary",
        "test-token",
    ] {
        assert!(!kept.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret} is stored");
        assert!(sent.iter().all(|body| !body.to_string().contains(secret)), "{secret} is shown");
    }
}
