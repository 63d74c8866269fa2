//! Payments, unknown things, markup.

use super::*;

/// Requirements: U-092, A-054, A-055.
#[tokio::test]
async fn bad_input_of_payments_places_no_order() {
    let app = TestApp::new().await;
    let (ucp, acp) = (Ucp.ready(&app).await, Acp.ready(&app).await);
    let known = app.sessions_made();
    app.shop_calls().await;
    let instrument = payment("success_token")["payment"]["instruments"][0].clone();
    let with = |name: &str, value: Value| {
        let mut one = instrument.clone();
        one[name] = value;
        json!({"payment": {"instruments": [one]}})
    };
    // UCP: what is no form of payment is refused, what cannot be charged is told in the session.
    for (body, path) in [
        (json!({}), "$.payment"),
        (json!({"payment": 5}), "$.payment"),
        (json!({"payment": {"instruments": {}}}), "$.payment.instruments"),
        (json!({"payment": {"instruments": [5]}}), "$.payment.instruments[0]"),
        (json!({"payment": {"instruments": vec![instrument.clone(); 21]}}), "$.payment.instruments"),
        (with("handler_id", json!(7)), "$.payment.instruments[0].handler_id"),
        (with("type", json!("")), "$.payment.instruments[0].type"),
        (with("selected", json!("yes")), "$.payment.instruments[0].selected"),
        (with("credential", json!("x")), "$.payment.instruments[0].credential"),
        (with("credential", json!({"token": "x"})), "$.payment.instruments[0].credential.type"),
        (with("billing_address", json!([])), "$.payment.instruments[0].billing_address"),
        (
            with("billing_address", json!({"postal_code": 5})),
            "$.payment.instruments[0].billing_address.postal_code",
        ),
    ] {
        let reply = send(
            &app,
            Method::POST,
            &format!("{}/{ucp}/complete", Ucp.root()),
            &Ucp.headers(),
            body.to_string(),
        )
        .await;
        assert_eq!(Ucp.refusal(&reply, path).as_deref(), Some(path));
    }
    for body in [
        json!({"payment": {"instruments": []}}),
        json!({"payment": {"instruments": [instrument, instrument]}}),
        with("handler_id", json!("nobody")),
        with("credential", Value::Null),
        with("credential", json!({"type": "token"})),
        with("credential", json!({"type": "token", "token": {"a": 1}})),
        with("credential", json!({"type": "token", "token": PAN})),
        with("credential", json!({"type": "token", "token": "4242 4242 4242 4242"})),
    ] {
        let reply = send(
            &app,
            Method::POST,
            &format!("{}/{ucp}/complete", Ucp.root()),
            &Ucp.headers(),
            body.to_string(),
        )
        .await;
        let reply = reply.expect(200);
        assert_eq!(reply.text("/status"), "ready_for_complete", "{body} {}", reply.json);
        assert!(!reply.codes().is_empty(), "{body}");
        assert!(!String::from_utf8_lossy(&reply.bytes).contains(PAN));
    }
    let data = |pointer: &str, value: Value| {
        let mut body = acp_payment("spt_test_ok");
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    for (body, path, code) in [
        (json!({}), "$.payment_data", "missing_required_field"),
        (data("/payment_data", json!([])), "$.payment_data", "invalid"),
        (data("/payment_data/handler_id", json!("nobody")), "$.payment_data.handler_id", "invalid_handler"),
        (data("/payment_data/handler_id", json!(1)), "$.payment_data.handler_id", "invalid"),
        (data("/payment_data/instrument", json!(["a"])), "$.payment_data.instrument", "invalid"),
        (
            data("/payment_data/instrument/credential/token", json!("")),
            "$.payment_data.instrument.credential.token",
            "invalid",
        ),
        (
            data("/payment_data/instrument/credential/token", json!(PAN)),
            "$.payment_data.instrument.credential.token",
            "invalid",
        ),
        (
            data("/payment_data/instrument/credential/token", json!("a\u{0}")),
            "$.payment_data.instrument.credential.token",
            "invalid",
        ),
        (
            data("/payment_data/instrument/credential", json!({"type": "card", "token": "t", "number": PAN})),
            "$.payment_data.instrument.credential",
            "invalid",
        ),
    ] {
        let reply = send(
            &app,
            Method::POST,
            &format!("{}/{acp}/complete", Acp.root()),
            &Acp.headers(),
            body.to_string(),
        )
        .await;
        assert_eq!(Acp.refusal(&reply, path).as_deref(), Some(path));
        assert_eq!(reply.text("/code"), code, "{body}");
        assert!(!String::from_utf8_lossy(&reply.bytes).contains(PAN));
    }
    nothing_ran(&app, known, "payments").await;
    assert_eq!(app.flower().orders(), json!([]));
}

/// A card number has no place in what is shown of an instrument either.
/// Requirements: U-089, A-055.
#[tokio::test]
async fn bad_input_of_a_card_number_is_never_shown_again() {
    let app = TestApp::new().await;
    let mut body = everything(Ucp);
    body["payment"]["instruments"][0]["display"] =
        json!({"brand": "visa", "last_digits": PAN, "description": "Visa 4242 4242 4242 4242"});
    body["payment"]["instruments"][0]["credential"] = json!({"type": "token", "token": PAN});
    let reply = create(&app, Ucp, body.to_string()).await;
    assert!(reply.status == 201 || reply.status == 400, "{}", reply.json);
    let text = String::from_utf8_lossy(&reply.bytes).into_owned();
    assert!(!text.contains(PAN) && !text.contains("4242 4242 4242 4242"), "{text}");
}

/// Requirements: A-037.
#[tokio::test]
async fn bad_input_of_unknown_things_is_told_or_refused() {
    let app = TestApp::new().await;
    let ucp = Ucp.ready(&app).await;
    let mut body = full("bouquet_roses", 1);
    body["fulfillment"]["methods"][0]["groups"] = json!([{"id": "g", "selected_option_id": "by-pigeon"}]);
    let reply = app.ucp().update(&ucp, body).await.expect(200);
    assert!(!reply.codes().is_empty() && !reply.json.to_string().contains("by-pigeon"), "{}", reply.json);
    for item in [
        "pink_wumpus",
        "0",
        "-1",
        "999999999",
        "18446744073709551616",
        "bouquet_rose",
        "bouquet_roses ",
        "../1",
        "' OR 1=1 --",
        "🌹",
    ] {
        let reply = app.ucp().create(lines(item, 1)).await.expect(200);
        assert_eq!(reply.text("/ucp/status"), "error", "{item}");
        let reply = app.acp().create(acp_lines(item, 1, "usd")).await.expect(400);
        assert_eq!(
            (reply.text("/code"), reply.text("/param")),
            ("invalid_item_id", "$.line_items[0].id"),
            "{item}"
        );
    }
    let acp = Acp.ready(&app).await;
    let before = app.acp().get(&acp).await;
    let wrong = json!({"selected_fulfillment_options": [{"type": "shipping", "option_id": "by-pigeon", "item_ids": []}]});
    let reply = app.acp().update(&acp, wrong).await.expect(400);
    assert_eq!(Acp.refusal(&reply, "option").as_deref(), Some("$.selected_fulfillment_options[0].option_id"));
    assert_eq!(app.acp().get(&acp).await.json["line_items"], before.json["line_items"]);
    let done = app.acp().complete(&acp, "spt_test_ok").await.expect(200);
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
}

/// Requirements: A-056.
#[tokio::test]
async fn bad_input_of_markup_stays_text() {
    let app = TestApp::new().await;
    let script = "<script>alert(1)</script>";
    let mut body = full("bouquet_roses", 1);
    body["buyer"]["first_name"] = json!(script);
    body["buyer"]["last_name"] = json!("O'Hara & \"Söhne\" <b>");
    let ucp = app.ucp().create(body).await.expect(201);
    let mut body = acp_lines("bouquet_roses", 1, "usd");
    body["buyer"] = acp_buyer();
    body["buyer"]["first_name"] = json!(script);
    body["order_notes"] = json!(script);
    body["fulfillment_details"] = json!({"address": acp_address()});
    let acp = app.acp().create(body).await.expect(201);
    for reply in [ucp, acp] {
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let token = reply.text("/continue_url").split_once("/go/").unwrap().1.to_owned();
        let page = app.get(&format!("/go/{token}")).await.expect(200);
        assert!(!String::from_utf8_lossy(&page.bytes).contains(script));
    }
}
