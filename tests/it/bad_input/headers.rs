//! Headers and addresses.

use super::*;

/// Requirements: U-018, U-042, A-003, A-004, A-020, D-1, D-4, D-10.
#[tokio::test]
async fn bad_input_of_headers() {
    let app = TestApp::new().await;
    let long = "k".repeat(256);
    let endless = "k".repeat(15_000);
    let profile = format!("profile=\"{PROFILE}\"");
    let far = format!("profile=\"https://{}.example/p\"", "a".repeat(10_000));
    let cases: Vec<(Side, Headers, u16)> = vec![
        (Ucp, without(Ucp, "ucp-agent"), 400),
        (Ucp, other(Ucp, "ucp-agent", &[b""]), 400),
        (Ucp, other(Ucp, "ucp-agent", &[b"profile=https://agent.example/profile"]), 400),
        (Ucp, other(Ucp, "ucp-agent", &[profile.as_bytes(), b"profile=token"]), 400),
        (Ucp, other(Ucp, "ucp-agent", &["profile=\"https://ü.example/\"".as_bytes()]), 400),
        (Ucp, other(Ucp, "ucp-agent", &[b"profile=\"\xff\""]), 400),
        (Ucp, other(Ucp, "ucp-agent", &[b"profile=\"not a url\""]), 400),
        (Ucp, other(Ucp, "ucp-agent", &[b"profile=\"file:///etc/passwd\""]), 400),
        (Ucp, other(Ucp, "ucp-agent", &[far.as_bytes()]), 400),
        (Ucp, other(Ucp, "idempotency-key", &[b"k", b"k"]), 400),
        (Ucp, other(Ucp, "idempotency-key", &[b""]), 400),
        (Ucp, other(Ucp, "idempotency-key", &[b"a b"]), 400),
        (Ucp, other(Ucp, "idempotency-key", &[b"a\xe9"]), 400),
        (Ucp, other(Ucp, "idempotency-key", &[long.as_bytes()]), 400),
        (Ucp, other(Ucp, "idempotency-key", &[endless.as_bytes()]), 400),
        (Ucp, other(Ucp, "content-type", &[b"text/plain"]), 415),
        (Ucp, other(Ucp, "content-type", &[b"application/x-www-form-urlencoded"]), 415),
        (Ucp, other(Ucp, "content-type", &[b"application/json", b"text/plain"]), 415),
        (Ucp, other(Ucp, "content-type", &[b"\xff"]), 415),
        (Ucp, other(Ucp, "content-type", &[endless.as_bytes()]), 415),
        (Acp, without(Acp, "authorization"), 401),
        (Acp, other(Acp, "authorization", &[b"Bearer wrong"]), 401),
        (Acp, other(Acp, "authorization", &[b"Bearer test-token", b"Bearer test-token"]), 401),
        (Acp, other(Acp, "authorization", &[b"Bearer test-token\xff"]), 401),
        (Acp, other(Acp, "authorization", &[endless.as_bytes()]), 401),
        (Acp, without(Acp, "api-version"), 400),
        (Acp, other(Acp, "api-version", &[b"2026-04-17", b"2026-04-17"]), 400),
        (Acp, other(Acp, "api-version", &[b"2026-13-45"]), 400),
        (Acp, other(Acp, "api-version", &[b"\xff"]), 400),
        (Acp, other(Acp, "api-version", &[endless.as_bytes()]), 400),
        (Acp, without(Acp, "idempotency-key"), 400),
        (Acp, other(Acp, "idempotency-key", &[b"k", b"k"]), 400),
        (Acp, other(Acp, "idempotency-key", &[b""]), 400),
        (Acp, other(Acp, "idempotency-key", &[b"a b"]), 400),
        (Acp, other(Acp, "idempotency-key", &[b"a\xe9"]), 400),
        (Acp, other(Acp, "idempotency-key", &[long.as_bytes()]), 400),
        (Acp, without(Acp, "content-type"), 415),
        (Acp, other(Acp, "content-type", &[b"text/plain"]), 415),
        (Acp, other(Acp, "content-type", &[b"application/json", b"application/json"]), 415),
        (Acp, other(Acp, "content-type", &[b"\xff"]), 415),
    ];
    for (side, headers, status) in cases {
        let what = format!(
            "{:?}",
            headers
                .iter()
                .map(|(name, value)| (name, String::from_utf8_lossy(value.get(..60).unwrap_or(value))))
                .collect::<Vec<_>>()
        );
        let reply = send(&app, Method::POST, side.root(), &headers, side.good().to_string()).await;
        side.refusal(&reply, &what);
        assert_eq!(reply.status, status, "{side:?} {what}: {}", reply.json);
    }
    nothing_ran(&app, 0, "headers").await;
    for side in BOTH {
        // What only names a request is never a reason to refuse it, and never comes back bent.
        for id in [&b"\xff"[..], b"", endless.as_bytes(), b"a b"] {
            let reply = send(
                &app,
                Method::GET,
                &format!("{}/none", side.root()),
                &other(side, "request-id", &[id]),
                "",
            )
            .await;
            assert!(reply.status == 200 || reply.status == 404, "{side:?} {}", reply.status);
            assert!(reply.header("request-id").is_some_and(|id| (1..=1024).contains(&id.len())), "{side:?}");
        }
    }
}

/// Requirements: U-055, A-010, D-2.
#[tokio::test]
async fn bad_input_of_addresses() {
    let app = TestApp::new().await;
    for side in BOTH {
        let (own, foreign) = (side.root(), if side == Ucp { Acp } else { Ucp });
        let theirs = foreign.ready(&app).await;
        let known = app.sessions_made();
        app.shop_calls().await;
        let at_root = own.rsplit_once('/').map(|(_, name)| format!("/{name}")).unwrap();
        let endless = "a".repeat(10_000);
        let good = side.good().to_string();
        let pay = side.pay().to_string();
        for root in [own, &at_root] {
            for id in [
                "chk_none",
                "..",
                ".",
                "%00",
                "%2e%2e",
                "%ff",
                "%2F",
                "%20",
                "a%0d%0ab",
                "null",
                "%F0%9F%8C%B9",
                &endless,
                &theirs,
            ] {
                let shown = id.get(..20).unwrap_or(id);
                for (method, rest, body) in [
                    (Method::GET, "", ""),
                    (side.update(), "", good.as_str()),
                    (Method::POST, "/complete", pay.as_str()),
                    (Method::POST, "/cancel", ""),
                ] {
                    let reply = send(
                        &app,
                        method.clone(),
                        &format!("{root}/{id}{rest}"),
                        &side.headers(),
                        body.to_owned(),
                    )
                    .await;
                    let what = format!("{method} {shown}{rest}");
                    let code = match side {
                        // UCP: that there is no such checkout is an outcome.
                        Ucp if reply.status == 200 => reply.text("/messages/0/code"),
                        _ => {
                            side.refusal(&reply, &what);
                            reply.text("/code")
                        }
                    };
                    assert!(code == "not_found" || code == "session_not_found", "{what}: {}", reply.json);
                    assert!(reply.json.get("id").is_none());
                }
            }
            for (method, path, status) in [
                (Method::DELETE, "", 405),
                (Method::GET, "", 405),
                (Method::PATCH, "/chk_1", 405),
                (Method::DELETE, "/chk_1", 405),
                (Method::GET, "/chk_1/complete", 405),
                (Method::PUT, "/chk_1/cancel", 405),
                (Method::GET, "/", 404),
                (Method::POST, "/chk_1/pay", 404),
                (Method::POST, "/chk_1/complete/now", 404),
                (Method::POST, "/chk_1/", 404),
            ] {
                let reply = send(&app, method.clone(), &format!("{root}{path}"), &side.headers(), "{}").await;
                let what = format!("{method} {root}{path}");
                side.refusal(&reply, &what);
                assert_eq!(reply.status, status, "{side:?} {what}");
                assert_eq!(reply.header("allow").is_some(), status == 405, "{side:?} {what}");
            }
        }
        nothing_ran(&app, known, "addresses").await;
    }
    for (path, side) in [
        ("/ucp", Ucp),
        ("/ucp/", Ucp),
        ("/2026-04-08/", Ucp),
        ("/ucp/x/y", Ucp),
        ("/2026-04-08/x", Ucp),
        ("/acp", Acp),
        ("/acp/", Acp),
        ("/acp/x/y", Acp),
    ] {
        let reply = send(&app, Method::GET, path, &side.headers(), "").await;
        side.refusal(&reply, path);
        assert_eq!(reply.status, 404, "{path}");
    }
}
