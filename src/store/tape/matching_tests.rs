use serde_json::json;

use super::*;

const CHECKOUT: &str = "/wp-json/wc/store/v1/checkout";

fn post(path: &str, body: &Value) -> Call {
    Call::new("POST", path, "", Some("t"), body.to_string().as_bytes())
}

fn get(path: &str, query: &str) -> Call {
    Call::new("GET", path, query, None, b"")
}

fn batch_of(requests: &Value) -> Call {
    post("/wp-json/wc/store/v1/batch", &json!({ "requests": requests }))
}

fn first_difference(recorded: &Call, live: &Call) -> Option<Difference> {
    compare(recorded, live, &[], &Bindings::new()).differences.into_iter().next()
}

#[test]
fn json_is_compared_as_values_and_the_first_difference_is_named() {
    let recorded = post(CHECKOUT, &json!({"a": [1, {"b c": "x"}], "d": null}));
    let again =
        Call::new("POST", CHECKOUT, "_fields=status", Some("other"), br#"{"d":null,"a":[1.0,{"b c":"x"}]}"#);
    assert_eq!(first_difference(&recorded, &again), None);
    let other = post(CHECKOUT, &json!({"a": [1, {"b c": "y"}]}));
    let found = first_difference(&recorded, &other).unwrap();
    assert_eq!(
        found,
        Difference { path: "$.body.a[1][\"b c\"]".into(), wanted: "x".into(), got: "y".into() }
    );
}

#[test]
fn the_order_of_a_query_does_not_matter_but_its_values_do() {
    let recorded = get("/wp-json/wc/store/v1/order/7", "key=k&billing_email=a%40example.com");
    assert_eq!(
        first_difference(
            &recorded,
            &get("/shop/wp-json/wc/store/v1/order/7/", "billing_email=a@example.com&key=k")
        ),
        None
    );
    let found = first_difference(&recorded, &get("/wp-json/wc/store/v1/order/7", "key=k")).unwrap();
    assert_eq!((found.path.as_str(), found.got), ("$.query.billing_email", Value::Null));
    let found = first_difference(
        &recorded,
        &get("/wp-json/wc/store/v1/order/7", "billing_email=a@example.com&key=k&x=1"),
    );
    assert_eq!(found.unwrap().path, "$.query.x");
}

#[test]
fn after_may_differ_only_where_orders_are_listed() {
    let [one, two] = ["after=2026-01-01", "after=2027-01-01"];
    assert_eq!(
        first_difference(&get("/wp-json/wc/v3/orders", one), &get("/wp-json/wc/v3/orders", two)),
        None
    );
    assert!(
        first_difference(&get("/wp-json/wc/v3/orders", one), &get("/wp-json/wc/v3/orders", "")).is_some()
    );
    assert!(
        first_difference(&get("/wp-json/wc/v3/coupons", one), &get("/wp-json/wc/v3/coupons", two)).is_some()
    );
}

#[test]
fn a_missing_note_is_allowed_another_one_is_not() {
    let recorded = post(CHECKOUT, &json!({"customer_note": "ring"}));
    assert_eq!(first_difference(&recorded, &post(CHECKOUT, &json!({}))), None);
    assert!(first_difference(&recorded, &post(CHECKOUT, &json!({"customer_note": "knock"}))).is_some());
    assert!(first_difference(&post(CHECKOUT, &json!({})), &recorded).is_some());
    let elsewhere = post("/wp-json/wc/store/v1/cart/add-item", &json!({"customer_note": "ring"}));
    assert!(first_difference(&elsewhere, &post("/wp-json/wc/store/v1/cart/add-item", &json!({}))).is_some());
}

#[test]
fn a_single_call_is_a_batch_of_one_either_way_round() {
    let single = post("/wp-json/wc/store/v1/cart/add-item", &json!({"id": 19}));
    let inner = json!({"path": "/wc/store/v1/cart/add-item?_fields=items", "headers": {"cart-token": "x"},
        "body": {"id": 19}});
    let batch = batch_of(&json!([inner]));
    assert_eq!(first_difference(&single, &batch), None);
    assert_eq!(first_difference(&batch, &single), None);
    let two = batch_of(&json!([inner, inner]));
    assert_eq!(first_difference(&single, &two).unwrap().path, "$.requests.length");
}

#[test]
fn an_inner_call_without_its_token_is_another_call() {
    let inner = |headers: &Value| {
        batch_of(&json!([{"path": "/wc/store/v1/cart/add-item", "headers": headers, "body": {"id": 1}}]))
    };
    let found = first_difference(&inner(&json!({"Cart-Token": "x"})), &inner(&json!({}))).unwrap();
    assert_eq!(found.path, "$.requests[0].headers[\"Cart-Token\"]");
}

#[test]
fn a_write_without_a_token_is_another_call_and_a_read_is_not() {
    let call = |method: &str, token| Call::new(method, CHECKOUT, "", token, b"{}");
    assert_eq!(first_difference(&call("POST", Some("a")), &call("POST", Some("b"))), None);
    let found = first_difference(&call("POST", Some("a")), &call("POST", None)).unwrap();
    assert_eq!((found.path.as_str(), found.wanted), ("$.headers[\"Cart-Token\"]", "a token".into()));
    assert_eq!(first_difference(&call("GET", Some("a")), &call("GET", None)), None);
}

#[test]
fn the_validation_of_a_batch_counts_unless_it_is_the_default() {
    let call = |validation: &str| {
        let body =
            json!({ "validation": validation, "requests": [{ "path": "/wc/store/v1/cart/add-item" }] });
        post("/wp-json/wc/store/v1/batch", &body)
    };
    let plain = batch_of(&json!([{ "path": "/wc/store/v1/cart/add-item" }]));
    assert_eq!(first_difference(&plain, &call("normal")), None);
    assert_eq!(first_difference(&plain, &call("require-all-validate")).unwrap().path, "$.validation");
}

#[test]
fn a_correlation_id_binds_at_first_use_and_must_agree_later() {
    let call =
        |id: &str| post(CHECKOUT, &json!({"extensions": {"woocommerce/order-attribution": {"utm_id": id}}}));
    let first = compare(&call("recorded"), &call("mine"), &[], &Bindings::new());
    assert!(first.matches());
    assert_eq!(first.bound, Bindings::from([("recorded".into(), "mine".into())]));
    assert!(compare(&call("recorded"), &call("mine"), &[], &first.bound).matches());
    assert!(!compare(&call("recorded"), &call("yours"), &[], &first.bound).matches());
}

#[test]
fn a_stand_in_agrees_with_itself_within_one_call() {
    let stand_ins = ["buyer-1@scrubbed.invalid".to_owned()];
    let call = |one: &str, two: &str| post(CHECKOUT, &json!({"email": one, "again": [two]}));
    let recorded = call("buyer-1@scrubbed.invalid", "buyer-1@scrubbed.invalid");
    assert!(compare(&recorded, &call("a@x", "a@x"), &stand_ins, &Bindings::new()).matches());
    assert!(!compare(&recorded, &call("a@x", "b@x"), &stand_ins, &Bindings::new()).matches());
    assert!(!compare(&recorded, &call("a@x", "a@x"), &[], &Bindings::new()).matches());
}

#[test]
fn broken_bodies_are_compared_as_text() {
    let call = |body: &[u8]| Call::new("POST", CHECKOUT, "", None, body);
    assert_eq!(first_difference(&call(b"{oops"), &call(b"{oops")), None);
    assert!(first_difference(&call(b"{oops"), &call(b"{}")).is_some());
}
