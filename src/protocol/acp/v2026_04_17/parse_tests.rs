use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{arbitrary, checkout::ids::SessionId, protocol::acp::samples};

fn base() -> Value {
    json!({"line_items": [{"id": "4711"}], "currency": "EUR", "capabilities": {}})
}

fn with(name: &str, value: Value) -> Value {
    let mut body = base();
    body[name] = value;
    body
}

fn created(body: &Value) -> (Change, Value) {
    match parse(&samples::face(), Write::Create, Some(body)) {
        Ok((Command::Create(change), details)) => (*change, details),
        other => panic!("{other:?}"),
    }
}

fn updated(body: &Value) -> Change {
    match parse(&samples::face(), Write::Update(SessionId::new("chk_1")), Some(body)) {
        Ok((Command::Update(_, change), _)) => *change,
        other => panic!("{other:?}"),
    }
}

fn refused(write: Write, body: &Value) -> (&'static str, String) {
    let form = parse(&samples::face(), write, Some(body)).unwrap_err();
    (form.code, form.param)
}

#[test]
fn the_smallest_create() {
    let (change, details) = created(&base());
    let line = WantedLine { id: None, item: "4711".into(), quantity: 1, parent: None };
    assert_eq!(change.lines, Patch::Set(vec![line]));
    assert!(change.may_be_empty && !change.echo_merges);
    assert_eq!(change.unknown_items, UnknownItems::Refuse);
    assert_eq!((change.buyer, change.buyer_parts), (Patch::Keep, BuyerPatch::default()));
    assert_eq!(change.delivery, DeliveryPatch::default());
    assert_eq!(item_path(&details, 0), "$.line_items[0].id");
}

/// Requirements: D-16.
#[test]
fn items_come_in_three_spellings() {
    let mut body = base();
    body["line_items"] = json!([{"id": "li_1", "item": {"id": "4711"}, "quantity": 2.0}, {"id": "42-blue"}]);
    let (change, details) = created(&body);
    let want = |id: Option<&str>, item: &str, quantity| WantedLine {
        id: id.map(LineId::new),
        item: item.into(),
        quantity,
        parent: None,
    };
    assert_eq!(change.lines, Patch::Set(vec![want(Some("li_1"), "4711", 2), want(None, "42-blue", 1)]));
    assert_eq!(item_path(&details, 0), "$.line_items[0].item.id");

    let stale = json!({"items": [{"id": "a", "quantity": 3}], "currency": "eur", "capabilities": {}});
    let (change, details) = created(&stale);
    assert_eq!(change.lines, Patch::Set(vec![want(None, "a", 3)]));
    assert_eq!(item_path(&details, 0), "$.items[0].id");
    assert_eq!(item_path(&Value::Null, 7), "$.line_items[7].id");
}

/// Requirements, D-19, D-20.
#[test]
fn a_create_is_refused_with_its_place() {
    let attribution = |value: Value| with("affiliate_attribution", value);
    let address = |name: &str, value: Value| {
        let mut address = samples::address_json();
        address[name] = value;
        with("fulfillment_details", json!({ "address": address }))
    };
    for (body, code, param) in [
        (json!([]), "invalid", "$"),
        (json!({}), "missing_required_field", "$.line_items"),
        (with("line_items", json!(null)), "missing_required_field", "$.line_items"),
        (with("line_items", json!([])), "invalid", "$.line_items"),
        (with("line_items", json!({})), "invalid", "$.line_items"),
        (with("line_items", json!([{"id": "a"}, 5])), "invalid", "$.line_items[1]"),
        (with("line_items", json!([{"id": 42}])), "invalid", "$.line_items[0].id"),
        (with("line_items", json!([{}])), "missing_required_field", "$.line_items[0].id"),
        (with("line_items", json!([{"item": {}}])), "missing_required_field", "$.line_items[0].item.id"),
        (with("line_items", json!([{"id": "a", "quantity": 0}])), "invalid", "$.line_items[0].quantity"),
        (with("line_items", json!([{"id": "a", "quantity": 1.5}])), "invalid", "$.line_items[0].quantity"),
        (with("line_items", json!([{"id": "a", "quantity": 10_000}])), "invalid", "$.line_items[0].quantity"),
        (
            with("line_items", json!([{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}])),
            "invalid",
            "$.line_items",
        ),
        (with("currency", json!(978)), "invalid", "$.currency"),
        (with("currency", json!("XTS")), "unsupported_currency", "$.currency"),
        (with("currency", json!(null)), "missing_required_field", "$.currency"),
        (with("capabilities", json!(null)), "missing_required_field", "$.capabilities"),
        (with("capabilities", json!([])), "invalid", "$.capabilities"),
        (
            with("capabilities", json!({"interventions": {"supported": "3ds"}})),
            "invalid",
            "$.capabilities.interventions.supported",
        ),
        (with("capabilities", json!({"extensions": [5]})), "invalid", "$.capabilities.extensions[0]"),
        (with("buyer", json!("Ada")), "invalid", "$.buyer"),
        (with("buyer", json!({"email": "nobody"})), "invalid", "$.buyer.email"),
        (with("buyer", json!({"first_name": 5})), "invalid", "$.buyer.first_name"),
        (with("buyer", json!({"company": "X"})), "invalid", "$.buyer.company"),
        (with("fulfillment_details", json!([])), "invalid", "$.fulfillment_details"),
        (
            with("fulfillment_details", json!({"address": {}})),
            "missing_required_field",
            "$.fulfillment_details.address.name",
        ),
        (address("country", json!("Germany")), "invalid", "$.fulfillment_details.address.country"),
        (address("postal_code", json!(90210)), "invalid", "$.fulfillment_details.address.postal_code"),
        (with("discounts", json!({"codes": "TEN"})), "invalid", "$.discounts.codes"),
        (with("coupons", json!([1])), "invalid", "$.coupons[0]"),
        (with("order_notes", json!("n".repeat(5_001))), "invalid", "$.order_notes"),
        (with("metadata", json!([])), "invalid", "$.metadata"),
        (with("locale", json!(1)), "invalid", "$.locale"),
        (attribution(json!("x")), "invalid_type", "$.affiliate_attribution"),
        (attribution(json!({"token": "t"})), "missing_required_field", "$.affiliate_attribution.provider"),
        (attribution(json!({"provider": "p"})), "missing_required_field", "$.affiliate_attribution"),
        (
            attribution(json!({"provider": 5, "token": "t"})),
            "invalid_type",
            "$.affiliate_attribution.provider",
        ),
        (
            attribution(json!({"provider": "p", "token": "t", "metadata": {"a": {}}})),
            "invalid_type",
            "$.affiliate_attribution.metadata",
        ),
        (
            attribution(json!({"provider": "p", "token": "t", "metadata": {"a": "ada@example.org"}})),
            "pii_not_allowed",
            "$.affiliate_attribution.metadata",
        ),
    ] {
        assert_eq!(refused(Write::Create, &body), (code, param.to_owned()), "{body}");
    }
    let many: serde_json::Map<_, _> = (0..21).map(|n| (format!("k{n}"), json!(n))).collect();
    assert_eq!(
        refused(Write::Create, &with("metadata", Value::Object(many))),
        ("invalid", "$.metadata".to_owned())
    );
}

/// Requirements, D-19.
#[test]
fn what_is_unknown_is_ignored() {
    let mut body = with("surprise", json!({"deep": [1]}));
    body["capabilities"] = json!({
        "interventions": {"supported": ["foo", "3ds", "3ds", "biometric"], "display_context": "new"},
        "extensions": ["discount@2026-01-27", "other"], "payment": {}
    });
    body["metadata"] = json!({"a": {"b": 1}});
    body["locale"] = json!("de-DE");
    let (change, _) = created(&body);
    let (protocol, echo) = change.echo.unwrap();
    assert_eq!(protocol, "acp");
    let want = json!({
        "interventions": ["3ds"], "extensions": ["discount"], "locale": "de-DE", "metadata": {"a": {"b": 1}}
    });
    assert_eq!(echo, want);
}

/// Requirements: A-058, D-18.
#[test]
fn an_update_changes_only_what_it_names() {
    let change = updated(&samples::nothing());
    assert!(matches!(change.lines, Patch::Keep) && matches!(change.option, Patch::Keep));
    assert_eq!((change.codes, change.note, change.echo), (Patch::Keep, Patch::Keep, None));

    let change = updated(&json!({
        "line_items": [], "buyer": null, "fulfillment_details": null, "discounts": {"codes": []},
        "coupons": ["X"], "order_notes": null, "selected_fulfillment_options": []
    }));
    assert_eq!(change.lines, Patch::Set(Vec::new()));
    assert_eq!((change.buyer, change.buyer_parts), (Patch::Clear, BuyerPatch::default()));
    assert_eq!((change.delivery.address, change.delivery.phone), (Patch::Clear, Patch::Clear));
    assert_eq!((change.codes, change.note), (Patch::Set(Vec::new()), Patch::Clear));
    assert_eq!(change.option, Patch::Clear);

    let change = updated(&json!({"coupons": ["x"], "buyer": {"email": " a@b.c ", "phone_number": null}}));
    assert_eq!(change.codes, Patch::Set(vec!["x".to_owned()]));
    assert_eq!(change.buyer_parts.email, Patch::Set("a@b.c".into()));
    assert_eq!((change.buyer_parts.phone, change.buyer_parts.first_name), (Patch::Clear, Patch::Keep));
}

#[test]
fn names_are_split_at_the_last_word() {
    for (full, first, last) in
        [("Ada King Byron", "Ada King", "Byron"), ("Cher", "Cher", "Cher"), (" ", "", ""), ("A  B", "A", "B")]
    {
        assert_eq!(split_name(full), (first.to_owned(), last.to_owned()), "{full:?}");
    }
    let change =
        updated(&json!({"fulfillment_details": {"name": "X Y", "address": samples::address_json()}}));
    assert_eq!(change.delivery.address, Patch::Set(samples::address()));
    let mut nameless = samples::address_json();
    nameless["name"] = json!("");
    let change = updated(&json!({"fulfillment_details": {"name": "X Y", "address": nameless}}));
    let Patch::Set(address) = change.delivery.address else { panic!() };
    assert_eq!((address.first_name.as_str(), address.last_name.as_str()), ("X", "Y"));
    let change = updated(&json!({"buyer": {"full_name": "Ada Byron"}}));
    assert_eq!(change.buyer_parts.last_name, Patch::Set("Byron".into()));
}

/// Requirements: A-037.
#[test]
fn one_option_is_chosen() {
    let pick = |kind: &str, id: &str| json!({"type": kind, "option_id": id, "item_ids": ["li_1"]});
    let body = |picks: Value| json!({ "selected_fulfillment_options": picks });
    let change = updated(&body(json!([pick("shipping", "std"), pick("shipping", "std")])));
    assert_eq!(change.option, Patch::Set("std".into()));
    assert!(change.echo_merges);
    assert_eq!(change.echo.unwrap().1, json!({"item_ids": ["li_1", "li_1"]}));
    assert_eq!(updated(&body(json!([pick("digital", "digital")]))).option, Patch::Set("digital".into()));
    let write = || Write::Update(SessionId::new("chk_1"));
    for (picks, code, param) in [
        (
            json!([pick("shipping", "a"), pick("shipping", "b")]),
            "invalid_fulfillment_option",
            "[1].option_id",
        ),
        (json!([pick("pickup", "a")]), "invalid_fulfillment_option", "[0].option_id"),
        (json!([pick("shipping", "digital")]), "invalid_fulfillment_option", "[0].option_id"),
        (json!([{"type": "shipping", "item_ids": []}]), "missing_required_field", "[0].option_id"),
        (json!([{"type": "shipping", "option_id": "a"}]), "missing_required_field", "[0].item_ids"),
        (json!({}), "invalid", ""),
    ] {
        let want = (code, format!("$.selected_fulfillment_options{param}"));
        assert_eq!(refused(write(), &body(picks.clone())), want, "{picks}");
    }
}

#[test]
fn a_completion_brings_an_instrument() {
    let body = json!({
        "payment_data": {
            "handler_id": "mock_payment_handler",
            "instrument": {"type": "card", "credential": {"type": "spt", "token": "spt_test_ok"}}
        },
        "buyer": {"email": "a@b.c"}, "order_notes": "Ring", "marketing_consents": [{"channel": "email", "opted_in": false}]
    });
    let write = || Write::Complete(SessionId::new("chk_1"));
    let Ok((Command::Complete(_, completion), Value::Null)) = parse(&samples::face(), write(), Some(&body))
    else {
        panic!()
    };
    assert_eq!(completion.unknown_handler, UnknownOption::Refuse);
    assert_eq!(completion.note, Patch::Set("Ring".into()));
    assert_eq!(completion.buyer_parts.email, Patch::Set("a@b.c".into()));
    assert!(!format!("{completion:?}").contains("spt_test_ok"));
    assert_eq!(refused(write(), &json!({})), ("missing_required_field", "$.payment_data".to_owned()));
    let mut consent = body;
    consent["marketing_consents"] = json!([{"channel": "email", "opted_in": "no"}]);
    assert_eq!(refused(write(), &consent), ("invalid", "$.marketing_consents[0].opted_in".to_owned()));
}

/// Requirements.
#[test]
fn a_cancel_may_say_why() {
    let write = || Write::Cancel(SessionId::new("chk_1"));
    for body in
        [None, Some(json!({})), Some(json!({"intent_trace": {"reason_code": "foo", "metadata": {"a": 1}}}))]
    {
        assert!(parse(&samples::face(), write(), body.as_ref()).is_ok(), "{body:?}");
    }
    for (trace, param) in [
        (json!("x"), ""),
        (json!({}), ".reason_code"),
        (json!({"reason_code": 5}), ".reason_code"),
        (json!({"reason_code": "other", "trace_summary": "s".repeat(501)}), ".trace_summary"),
        (json!({"reason_code": "other", "metadata": {"a": []}}), ".metadata"),
    ] {
        let want = ("invalid_type", format!("$.intent_trace{param}"));
        assert_eq!(refused(write(), &json!({ "intent_trace": trace })), want);
    }
}

/// Everything that a body may say, of any operation.
fn everything() -> Value {
    let address = json!({"name": "Ada Byron", "line_one": "12 Main Street", "city": "Springfield", "state": "CA",
        "country": "US", "postal_code": "90210"});
    json!({
        "line_items": [{"id": "4711", "quantity": 2}, {"item": {"id": "12"}}], "currency": "EUR",
        "capabilities": {"interventions": {"supported": ["3ds"]}, "extensions": ["discount"]},
        "buyer": {"email": "ada@example.org", "first_name": "Ada", "last_name": "Byron", "phone_number": "+1202"},
        "fulfillment_details": {"name": "Ada", "email": "ada@example.org", "address": address},
        "selected_fulfillment_options": [{"type": "shipping", "option_id": "std", "item_ids": ["4711"]}],
        "discounts": {"codes": ["10OFF"]}, "order_notes": "ring\ntwice", "locale": "en-US", "metadata": {"a": {"b": [1]}},
        "payment_data": {"handler_id": "mock_payment_handler", "instrument": {"type": "card",
            "credential": {"type": "spt", "token": "hidden-token"}}, "billing_address": address},
        "intent_trace": {"reason_code": "price_sensitivity"},
        "affiliate_attribution": {"provider": "p", "token": "t"},
    })
}

proptest! {
    #![proptest_config(arbitrary::config(512))]

    #[test]
    fn any_body_is_read_within_the_limits_or_refused_in_place(
        body in prop_oneof![4 => arbitrary::bent(everything()), 1 => arbitrary::json()], which in 0..4,
    ) {
        let face = samples::face();
        let id = SessionId::new("chk_1");
        let write = match which {
            0 => Write::Create,
            1 => Write::Update(id),
            2 => Write::Complete(id),
            _ => Write::Cancel(id),
        };
        match parse(&face, write, Some(&body)) {
            Err(form) => {
                prop_assert!(form.param.starts_with('$') && arbitrary::is_short_and_plain(&form.param, 300), "{form:?}");
            }
            Ok((Command::Create(change) | Command::Update(_, change), details)) => {
                if let Patch::Set(lines) = &change.lines {
                    prop_assert!(lines.len() <= face.max_lines);
                    for line in lines {
                        prop_assert!((1..=face.max_quantity).contains(&line.quantity));
                        prop_assert!(!line.item.trim().is_empty() && !line.item.contains(char::is_control));
                    }
                    // Each item can be pointed at.
                    for at in 0..lines.len() {
                        let place = item_path(&details, at);
                        let pointer = place.trim_start_matches('$').replace('[', "/").replace(']', "").replace('.', "/");
                        prop_assert!(body.pointer(&pointer).is_some_and(Value::is_string), "{}", place);
                    }
                }
                prop_assert!(!format!("{change:?}").contains("hidden-token"), "a credential is kept");
            }
            Ok((Command::Complete(_, completion), _)) => {
                prop_assert!(completion.instrument.is_some());
            }
            Ok((Command::Cancel(_), _)) => prop_assert!(body.is_object()),
        }
    }
}
