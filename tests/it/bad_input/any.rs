//! Any body at all.

use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_map(|number| serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let name =
            prop_oneof!["[a-z_]{1,12}", any::<String>(), Just("id".to_owned()), Just("item".to_owned())];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map(name, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A good body with something else somewhere in it, or anything at all.
fn any_body(good: Value) -> impl Strategy<Value = Value> {
    let mut found = Vec::new();
    places(&good, "", "$", &mut found);
    let bent = (any_json(), any::<prop::sample::Index>()).prop_map(move |(other, at)| {
        let mut body = good.clone();
        let (pointer, _) = at.get(&found);
        *body.pointer_mut(pointer).unwrap() = other;
        body
    });
    prop_oneof![3 => bent, 1 => any_json()]
}

#[test]
fn bad_input_of_any_kind_is_answered_in_the_protocols_form() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let app = runtime.block_on(TestApp::new());
    let sessions = runtime.block_on(async { [Ucp.ready(&app).await, Acp.ready(&app).await] });
    for (side, session) in BOTH.into_iter().zip(sessions) {
        let base = format!("{}/{session}", side.root());
        for (method, path, good, cases) in [
            (Method::POST, side.root().to_owned(), everything(side), 64),
            (side.update(), base.clone(), everything(side), 64),
            (Method::POST, format!("{base}/complete"), side.pay(), 64),
            (
                Method::POST,
                format!("{}/none/cancel", side.root()),
                json!({"intent_trace": {"reason_code": "other"}}),
                16,
            ),
        ] {
            let config = Config { cases, failure_persistence: None, ..Config::default() };
            // The same cases every time: a gate must not depend on chance.
            let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            let ran = TestRunner::new_with_rng(config, chance).run(&any_body(good), |body| {
                let reply =
                    runtime.block_on(send(&app, method.clone(), &path, &side.headers(), body.to_string()));
                prop_assert!(reply.status < 500, "{} {} for {}", reply.status, reply.json, body);
                prop_assert!(reply.json.is_object(), "{} for {}", reply.status, body);
                if reply.status >= 400 {
                    side.refusal(&reply, &path);
                }
                Ok(())
            });
            ran.unwrap_or_else(|failure| panic!("{method} {path}: {failure}"));
        }
    }
    runtime.block_on(async move { app.app.rest().await });
}

#[test]
fn bad_input_of_tokens_leads_to_a_page_that_knows_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let app = runtime.block_on(TestApp::new());
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let bytes = proptest::collection::vec(any::<u8>(), 1..60);
    let ran = TestRunner::new_with_rng(config, chance).run(&bytes, |bytes| {
        let mut path = "/go/".to_owned();
        for byte in bytes {
            let _ = write!(path, "%{byte:02X}");
        }
        let page = runtime.block_on(app.get(&path));
        prop_assert_eq!(page.status, 404);
        prop_assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        let known = runtime.block_on(app.get("/go/none"));
        prop_assert_eq!(page.bytes, known.bytes, "what was asked for is not repeated");
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
}
