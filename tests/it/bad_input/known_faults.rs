//! Faults that others in this field had, by the row of our list.

use super::*;

/// Requirements: U-080.
#[tokio::test]
async fn bad_input_a3_a_foreign_currency_is_never_taken_over() {
    let app = TestApp::new().await;
    for currency in ["XTS", "eur", "EUR"] {
        let mut body = full("bouquet_roses", 1);
        body["currency"] = json!(currency);
        body["context"] = json!({"currency": currency});
        let reply = app.ucp().create(body).await.expect(201);
        assert_eq!(reply.text("/currency"), "USD");
        assert!(!reply.json.to_string().contains(&format!("\"{currency}\"")), "{}", reply.json);
    }
    let mut body = full("bouquet_roses", 1);
    body["currency"] = json!(978);
    app.ucp().create(body).await.expect(201);
}

/// Requirements: U-046, A-105.
#[tokio::test]
async fn bad_input_a8_outcomes_of_business_are_no_http_errors() {
    let app = TestApp::new().await;
    let sold_out = app.ucp().create(lines("gardenias", 1)).await.expect(200);
    assert!(sold_out.codes().contains(&"out_of_stock".to_owned()));
    let sold_out = app.acp().create(acp_lines("gardenias", 1, "usd")).await;
    assert!(sold_out.status == 201 || sold_out.status == 422, "{}", sold_out.json);
}

/// Requirements: U-018.
#[tokio::test]
async fn bad_input_a11_a_profile_is_found_behind_odd_spacing() {
    let app = TestApp::new().await;
    for line in [
        format!("  profile=\"{PROFILE}\"  "),
        format!("a=1 ,\tprofile=\"{PROFILE}\";v=2 , b"),
        format!("profile=\"{PROFILE}\", x=?1"),
    ] {
        let headers = other(Ucp, "ucp-agent", &[line.as_bytes()]);
        send(&app, Method::POST, Ucp.root(), &headers, Ucp.good().to_string()).await.expect(201);
    }
}

#[tokio::test]
async fn bad_input_a27_a_number_is_never_cut_out_of_a_text() {
    let app = TestApp::new().await;
    for item in ["19-blue", "19 ", " 19", "19.0", "019", "+19", "1e1", "19\u{a0}", "１９"] {
        let reply = app.general_ucp().create(lines(item, 1)).await.expect(200);
        assert_eq!(reply.text("/ucp/status"), "error", "{item}: {}", reply.json);
    }
    app.general_ucp().create(lines("19", 1)).await.expect(201);
    let by_sku = app.general_ucp().create(lines("MUG-01", 1)).await.expect(201);
    assert_eq!(by_sku.text("/line_items/0/item/id"), "MUG-01");
}

#[tokio::test]
async fn bad_input_a30_a_repeated_create_is_one_session() {
    let app = TestApp::new().await;
    for (one, two) in [
        (
            app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201).id(),
            app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201).id(),
        ),
        (
            app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201).id(),
            app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201).id(),
        ),
    ] {
        assert_eq!(one, two);
    }
    assert_eq!(app.sessions_made(), 2);
}

/// Requirements: A-030.
#[tokio::test]
async fn bad_input_a31_a_new_key_buys_nothing_twice() {
    let app = TestApp::new().await;
    let (ucp, acp) = (Ucp.ready(&app).await, Acp.ready(&app).await);
    app.ucp().key("k1").complete(&ucp, "success_token").await.expect(200);
    let refused = app.ucp().key("k2").complete(&ucp, "success_token").await.expect(409);
    assert_eq!(refused.text("/code"), "invalid_state");
    app.acp().key("k1").complete(&acp, "spt_test_ok").await.expect(200);
    let refused = app.acp().key("k2").complete(&acp, "spt_test_ok").await.expect(405);
    assert_eq!(refused.text("/code"), "session_completed");
    assert!(app.ucp().get(&ucp).await.json["order"]["id"].is_string());
    assert_eq!(app.flower().orders().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn bad_input_c10_quotes_belong_to_the_key() {
    let app = TestApp::new().await;
    for side in BOTH {
        let bare = other(side, "idempotency-key", &[b"abc"]);
        let quoted = other(side, "idempotency-key", &[b"\"abc\""]);
        let longest = other(side, "idempotency-key", &["k".repeat(255).as_bytes()]);
        let body = side.good().to_string();
        let one = send(&app, Method::POST, side.root(), &bare, body.clone()).await.expect(201);
        let two = send(&app, Method::POST, side.root(), &quoted, body.clone()).await.expect(201);
        let three = send(&app, Method::POST, side.root(), &longest, body.clone()).await.expect(201);
        assert!(one.id() != two.id() && two.id() != three.id());
    }
}

// Whatever comes: never a 5xx, always the protocol's own JSON.
