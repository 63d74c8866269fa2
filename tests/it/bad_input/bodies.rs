//! Bodies: members, types, numbers, texts, JSON, size.

use super::*;

/// Requirements: U-068, A-016, D-19.
#[tokio::test]
async fn bad_input_of_every_known_member_has_its_place_named() {
    let app = TestApp::new().await;
    let sorts = [json!(5), json!("x"), json!(true), json!([]), json!({})];
    for side in BOTH {
        let body = everything(side);
        create(&app, side, body.to_string()).await.expect(201);
        let (known, _) = (app.sessions_made(), app.shop_calls().await);
        let mut found = Vec::new();
        places(&body, "", "$", &mut found);
        assert!(found.len() > 40, "{side:?}: {found:?}");
        for (pointer, path) in found {
            let right = body.pointer(&pointer).unwrap().clone();
            for wrong in sorts.iter().filter(|wrong| !same_type(wrong, &right)) {
                let mut body = body.clone();
                *body.pointer_mut(&pointer).unwrap() = wrong.clone();
                let reply = create(&app, side, body.to_string()).await;
                let what = format!("{pointer} as {wrong}");
                assert_eq!(side.refusal(&reply, &what).as_ref(), Some(&path), "{side:?} {what}");
                assert_eq!(reply.status, 400, "{side:?} {what}");
            }
        }
        nothing_ran(&app, known, "wrong types").await;
    }
}

#[tokio::test]
async fn bad_input_of_quantities_and_ids() {
    let app = TestApp::new().await;
    for side in BOTH {
        let quantity = "/line_items/0/quantity".to_owned();
        let id = side.item_id().to_owned();
        let long = "x".repeat(5_000);
        let mut cases: Vec<(String, String)> = Vec::new();
        for number in
            ["-1", "0", "-0", "0.5", "1.5", "1e308", "1e400", "9007199254740993", "10000", "1e4", "-1e308"]
        {
            cases.push((quantity.clone(), number.to_owned()));
        }
        for text in [
            "\"\"",
            "\" \"",
            "42",
            "\"a\\u0000b\"",
            "\"a\\nb\"",
            "\"\\u001b[31m\"",
            "\"\\u007f\"",
            "\"\\ud800\"",
            "\"\\udc00\\ud800\"",
            "null",
        ] {
            cases.push((id.clone(), text.to_owned()));
        }
        cases.push((id.clone(), format!("\"{long}\"")));
        for (pointer, raw) in cases {
            let mut body = side.good();
            *body.pointer_mut(&pointer).unwrap() = json!("@@");
            let body = body.to_string().replace("\"@@\"", &raw);
            let reply = create(&app, side, body).await;
            let shown = raw.get(..30).unwrap_or(&raw);
            side.refusal(&reply, shown);
            assert_eq!(reply.status, 400, "{side:?} {shown}");
        }
        nothing_ran(&app, 0, "quantities and ids").await;
    }
}

/// Requirements: A-044.
#[tokio::test]
async fn bad_input_of_lists() {
    let app = TestApp::new().await;
    for side in BOTH {
        let good = side.good();
        let line = good["line_items"][0].clone();
        let many = |count: usize| json!(vec![line.clone(); count]);
        let with = |name: &str, value: Value| {
            let mut body = good.clone();
            body[name] = value;
            body
        };
        let codes: Vec<String> = (0..1000).map(|number| format!("CODE{number}")).collect();
        let cases = [
            (with("line_items", json!([])), "$.line_items"),
            (with("line_items", json!(null)), "$.line_items"),
            (with("line_items", many(101)), "$.line_items"),
            (with("discounts", json!({"codes": codes})), "$.discounts.codes"),
            (with("discounts", json!({"codes": ["x".repeat(101)]})), "$.discounts.codes[0]"),
        ];
        for (body, path) in cases {
            let reply = create(&app, side, body.to_string()).await;
            assert_eq!(side.refusal(&reply, path).as_deref(), Some(path));
        }
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove("line_items");
        assert_eq!(
            side.refusal(&create(&app, side, without.to_string()).await, "none").as_deref(),
            Some("$.line_items")
        );
        nothing_ran(&app, 0, "lists").await;
    }
    let acp = |name: &str, value: Value| {
        let mut body = Acp.good();
        body[name] = value;
        body.to_string()
    };
    let members: Map<String, Value> = (0..21).map(|number| (format!("m{number}"), json!(1))).collect();
    for (body, path) in [
        (acp("metadata", Value::Object(members)), "$.metadata"),
        (acp("metadata", json!({"a": "x".repeat(100_000)})), "$.metadata"),
        (acp("metadata", json!({"a": {"b": vec!["x".repeat(1_000); 40]}})), "$.metadata"),
        (acp("currency", json!("XTS")), "$.currency"),
        (acp("currency", json!("eur")), "$.currency"),
        (acp("currency", json!(978)), "$.currency"),
        (acp("currency", json!("usd\u{0}")), "$.currency"),
        (acp("currency", Value::Null), "$.currency"),
        (acp("order_notes", json!("x".repeat(5_001))), "$.order_notes"),
        (acp("order_notes", json!("a\u{0}b")), "$.order_notes"),
    ] {
        let reply = create(&app, Acp, body).await;
        assert_eq!(Acp.refusal(&reply, path).as_deref(), Some(path));
    }
    nothing_ran(&app, 0, "ACP's own").await;
}

/// Control characters have no place in any text of a buyer; a note may have lines.
#[tokio::test]
async fn bad_input_of_texts_with_control_characters() {
    let app = TestApp::new().await;
    for side in BOTH {
        let body = everything(side);
        let mut found = Vec::new();
        places(&body, "", "$", &mut found);
        for (pointer, path) in found {
            let Some(text) = body.pointer(&pointer).unwrap().as_str() else { continue };
            let mut body = body.clone();
            *body.pointer_mut(&pointer).unwrap() = json!(format!("{text}\u{0}"));
            let reply = create(&app, side, body.to_string()).await;
            assert_eq!(side.refusal(&reply, &pointer), Some(path), "{side:?}");
        }
        nothing_ran(&app, 0, "control characters").await;
    }
    let mut body = everything(Acp);
    body["order_notes"] = json!("ring twice\nthen wait\tplease\r\n");
    create(&app, Acp, body.to_string()).await.expect(201);
}

/// Requirements: U-043, A-002.
#[tokio::test]
async fn bad_input_that_is_no_json() {
    let app = TestApp::new().await;
    let nested = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let raw: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"{\"line_items\": [}".to_vec(),
        b"{} {}".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"\"text\"".to_vec(),
        b"5".to_vec(),
        b"NaN".to_vec(),
        b"{'a': 1}".to_vec(),
        b"{\"a\": 1,}".to_vec(),
        b"{\"a\": 01}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"\xff\xfe{\0}\0".to_vec(),
        b"{\"buyer\": {\"first_name\": \"\xc3\x28\"}}".to_vec(),
        b"{\"buyer\": {\"first_name\": \"\\ud800\"}}".to_vec(),
        b"{\"a\":1,\"a\":2}".to_vec(),
        b"{\"a\":{\"b\":1,\"b\":1}}".to_vec(),
        b"{\"a\":[{\"b\":1,\"\\u0062\":1}]}".to_vec(),
        b"{\"a\":\"tab\tinside\"}".to_vec(),
        nested(33).into_bytes(),
        nested(1000).into_bytes(),
        nested(100_000).into_bytes(),
        "{\"a\":".repeat(20_000).into_bytes(),
    ];
    for side in BOTH {
        let id = side.ready(&app).await;
        let known = app.sessions_made();
        app.shop_calls().await;
        for body in &raw {
            let what = String::from_utf8_lossy(body.get(..40).unwrap_or(body)).into_owned();
            for (method, path) in [
                (Method::POST, side.root().to_owned()),
                (side.update(), format!("{}/{id}", side.root())),
                (Method::POST, format!("{}/{id}/complete", side.root())),
            ] {
                let reply = send(&app, method, &path, &side.headers(), body.clone()).await;
                side.refusal(&reply, &what);
                assert_eq!(reply.status, 400, "{side:?} {what}");
            }
        }
        // Deep enough to be refused, shallow enough to be read: 32 levels are.
        let mut deep = side.good().to_string();
        deep.pop();
        let _ = write!(deep, ",\"x\":{}{}}}", "[".repeat(31), "]".repeat(31));
        nothing_ran(&app, known, "no JSON").await;
        create(&app, side, deep).await.expect(201);
        // A completion or an update that is refused changes nothing.
        let read = send(&app, Method::GET, &format!("{}/{id}", side.root()), &side.headers(), "").await;
        assert!(read.text("/status").starts_with("ready_for"), "{}", read.json);
    }
    assert_eq!(app.flower().orders(), json!([]));
}

#[tokio::test]
async fn bad_input_that_is_too_large() {
    let app = TestApp::new().await;
    for side in BOTH {
        let mut body = side.good();
        body["x"] = json!("x".repeat(256 * 1024));
        let body = body.to_string();
        let mut announced = side.headers();
        announced.push(("content-length", body.len().to_string().into_bytes()));
        let stream = |body: &str| {
            let chunks: Vec<Result<Vec<u8>, std::io::Error>> =
                body.as_bytes().chunks(8192).map(|chunk| Ok(chunk.to_vec())).collect();
            Body::from_stream(futures::stream::iter(chunks))
        };
        let unknown = format!("{}/chk_x", side.root());
        for (path, headers, body) in [
            (side.root(), &side.headers(), Body::from(body.clone())),
            (side.root(), &announced, Body::from(body.clone())),
            (side.root(), &side.headers(), stream(&body)),
            (&unknown, &side.headers(), stream(&body)),
        ] {
            let reply = send(&app, Method::POST, path, headers, body).await;
            side.refusal(&reply, "too large");
            assert_eq!(reply.status, 413, "{side:?}");
        }
        let mut lies = side.headers();
        lies.push(("content-length", b"99999999999999999999999".to_vec()));
        side.refusal(&send(&app, Method::POST, side.root(), &lies, "{}").await, "a lie");
    }
    nothing_ran(&app, 0, "too large").await;
}
