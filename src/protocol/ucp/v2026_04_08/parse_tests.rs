use proptest::prelude::*;

use super::{super::super::samples, *};
use crate::arbitrary;

fn change(operation: Operation, body: &Value) -> Result<Change, Refusal> {
    parse_change(&samples::face(), &samples::negotiated(), operation, body)
}

fn line() -> Value {
    json!([{"item": {"id": "roses"}, "quantity": 1}])
}

/// Requirements: U-043, U-068, U-107.
#[test]
fn a_refusal_names_the_field_and_its_path() {
    let method = |method: Value| json!({"line_items": line(), "fulfillment": {"methods": [method]}});
    let buyer = |buyer: Value| json!({"line_items": line(), "buyer": buyer});
    for (body, path) in [
        (json!([]), "$"),
        (json!({}), "$.line_items"),
        (json!({"line_items": null}), "$.line_items"),
        (json!({"line_items": []}), "$.line_items"),
        (json!({"line_items": {}}), "$.line_items"),
        (json!({"line_items": [1]}), "$.line_items[0]"),
        (json!({"line_items": [{"quantity": 1}]}), "$.line_items[0].item"),
        (json!({"line_items": [{"item": "roses", "quantity": 1}]}), "$.line_items[0].item"),
        (json!({"line_items": [{"item": {"id": 42}, "quantity": 1}]}), "$.line_items[0].item.id"),
        (json!({"line_items": [{"item": {"id": ""}, "quantity": 1}]}), "$.line_items[0].item.id"),
        (
            json!({"line_items": [{"item": {"id": "x".repeat(256)}, "quantity": 1}]}),
            "$.line_items[0].item.id",
        ),
        (json!({"line_items": [{"item": {"id": "a"}}]}), "$.line_items[0].quantity"),
        (json!({"line_items": [{"item": {"id": "a"}, "quantity": 0}]}), "$.line_items[0].quantity"),
        (json!({"line_items": [{"item": {"id": "a"}, "quantity": 10_000}]}), "$.line_items[0].quantity"),
        (json!({"line_items": [{"item": {"id": "a"}, "quantity": 1.5}]}), "$.line_items[0].quantity"),
        (json!({"line_items": [{"item": {"id": "a"}, "quantity": "1"}]}), "$.line_items[0].quantity"),
        (buyer(json!("Ada")), "$.buyer"),
        (buyer(json!({"email": 1})), "$.buyer.email"),
        (buyer(json!({"email": "a\n@b"})), "$.buyer.email"),
        (buyer(json!({"first_name": "x".repeat(201)})), "$.buyer.first_name"),
        (buyer(json!({"consent": {"marketing": "yes"}})), "$.buyer.consent.marketing"),
        (json!({"line_items": line(), "fulfillment": []}), "$.fulfillment"),
        (method(json!({"type": "drone"})), "$.fulfillment.methods[0].type"),
        (method(json!({"type": "shipping", "destinations": {}})), "$.fulfillment.methods[0].destinations"),
        (
            method(json!({"type": "shipping", "destinations": [{"postal_code": 8010}]})),
            "$.fulfillment.methods[0].destinations[0].postal_code",
        ),
        (
            method(
                json!({"type": "shipping", "destinations": [{"id": "a", "postal_code": "1"}, {"id": "a"}]}),
            ),
            "$.fulfillment.methods[0].destinations[1]",
        ),
        (
            method(json!({"type": "shipping", "selected_destination_id": 1})),
            "$.fulfillment.methods[0].selected_destination_id",
        ),
        (method(json!({"type": "shipping", "line_item_ids": "a"})), "$.fulfillment.methods[0].line_item_ids"),
        (
            method(json!({"type": "shipping", "groups": [{"selected_option_id": 1}]})),
            "$.fulfillment.methods[0].groups[0].selected_option_id",
        ),
        (
            json!({"line_items": line(), "fulfillment": {"methods": [{"type": "shipping"}, {"type": "shipping"}]}}),
            "$.fulfillment.methods[1]",
        ),
        (json!({"line_items": line(), "discounts": {"codes": "TEN"}}), "$.discounts.codes"),
        (json!({"line_items": line(), "discounts": {"codes": [""]}}), "$.discounts.codes[0]"),
        (json!({"line_items": line(), "discounts": {"codes": vec!["a"; 21]}}), "$.discounts.codes"),
        (json!({"line_items": line(), "context": {"language": 1}}), "$.context.language"),
        (json!({"line_items": line(), "context": {"eligibility": [1]}}), "$.context.eligibility[0]"),
        (json!({"line_items": line(), "signals": []}), "$.signals"),
        (json!({"line_items": line(), "attribution": {"a.b": 1}}), "$.attribution['a.b']"),
        (
            json!({"line_items": line(), "payment": {"instruments": [{"id": "p"}]}}),
            "$.payment.instruments[0].handler_id",
        ),
    ] {
        let refusal = change(Operation::Create, &body).unwrap_err();
        assert_eq!(refusal.path, path, "{body}");
        let field = path.strip_prefix("$.").unwrap_or("the body");
        assert!(refusal.message.starts_with(field), "{}", refusal.message);
    }
}

#[test]
fn what_a_create_must_not_say_is_not_looked_at() {
    let body = json!({"id": 1, "status": [], "totals": 7, "ucp": 0, "links": "x", "currency": 978,
        "line_items": [{"id": 42, "parent_id": 1, "totals": 0, "quantity": 2.0,
            "item": {"id": "roses", "title": 1, "price": "free"}}],
        "discounts": {"codes": [], "applied": "x"}, "payment": {"handlers": 1}});
    let change = change(Operation::Create, &body).unwrap();
    let wanted = WantedLine { id: None, item: "roses".into(), quantity: 2, parent: None };
    assert_eq!(change.lines, Patch::Set(vec![wanted]));
    assert_eq!(change.codes, Patch::Set(vec![]));
    assert_eq!(change.buyer, Patch::Clear);
}

/// Requirements: U-069.
#[test]
fn an_update_replaces_everything_it_may_say() {
    let change = change(Operation::Update, &json!({"line_items": []})).unwrap();
    assert_eq!(change.lines, Patch::Set(vec![]));
    assert_eq!(change.buyer, Patch::Clear);
    assert_eq!(change.destinations, Patch::Clear);
    assert_eq!(change.option, Patch::Clear);
    assert_eq!(change.codes, Patch::Clear);
    assert_eq!(change.echo, Some(("ucp".to_owned(), json!({}))));
}

#[test]
fn an_update_names_lines_destinations_and_options() {
    let body = json!({
        "line_items": [{"id": "li_1", "parent_id": "li_0", "item": {"id": "roses"}, "quantity": 2}],
        "buyer": {"email": "ada@example.org", "consent": {"marketing": false, "other": 1}},
        "fulfillment": {"methods": [{"type": "pickup"}, {"id": "shipping", "selected_destination_id": null,
            "destinations": [{"street_address": "Lindenallee 4", "address_country": "at"}],
            "groups": [{"selected_option_id": null}, {"selected_option_id": "std"}]}]},
        "discounts": {"codes": ["Ten"]},
        "context": {"currency": "USD", "language": "de", "eligibility": ["org.example.gold"]},
        "payment": {"instruments": [{"id": "p", "handler_id": "h", "type": "card", "selected": true,
            "credential": {"type": "token", "token": "secret"},
            "display": {"brand": "visa", "pan": "4242", "expiry_year": 2030},
            "billing_address": {"postal_code": "8010", "x": 1}}]},
    });
    let change = change(Operation::Update, &body).unwrap();
    let Patch::Set(lines) = change.lines else { panic!("no lines") };
    assert_eq!(lines[0].id, Some(LineId::new("li_1")));
    assert_eq!(lines[0].parent, Some(LineId::new("li_0")));
    let Patch::Set(destinations) = change.destinations else { panic!("no destinations") };
    assert!(destinations.list[0].id.starts_with("dest_"));
    assert_eq!(destinations.list[0].address.country, "AT");
    assert_eq!(destinations.selected, None);
    assert_eq!(change.option, Patch::Set("std".into()));
    assert_eq!(change.claims, [0]);
    let Patch::Set(buyer) = change.buyer else { panic!("no buyer") };
    assert_eq!(buyer.consent, [("marketing".to_owned(), false)].into());
    assert_eq!(
        change.echo.unwrap().1,
        json!({"context": {"language": "de", "eligibility": ["org.example.gold"]},
            "instruments": [{"id": "p", "handler_id": "h", "type": "card", "selected": true,
                "display": {"brand": "visa", "expiry_year": 2030}, "billing_address": {"postal_code": "8010"}}]})
    );
}

#[test]
fn the_same_address_keeps_its_id_and_another_gets_its_own() {
    let id = |street: &str| {
        destination_id(&Address { line_one: street.into(), country: "AT".into(), ..Address::default() })
    };
    assert_eq!(id("A 1"), id("A 1"));
    assert_ne!(id("A 1"), id("A 2"));
}

#[test]
fn codes_and_consent_that_were_not_negotiated_are_not_looked_at() {
    let body = json!({"line_items": line(), "discounts": 1, "buyer": {"consent": {"marketing": 3}}});
    let change = parse_change(&samples::face(), &Negotiated::default(), Operation::Create, &body).unwrap();
    assert_eq!(change.codes, Patch::Clear);
    assert_eq!(change.buyer, Patch::Set(Buyer::default()));
}

#[test]
fn the_selected_instrument_is_charged_or_the_only_one() {
    let instrument = |id: &str, selected: Option<bool>| {
        let mut value = json!({"id": id, "handler_id": id, "type": "card", "credential": {"type": "token", "token": "t"}});
        if let Some(selected) = selected {
            value["selected"] = json!(selected);
        }
        value
    };
    for (instruments, handler) in [
        (json!([instrument("a", None)]), Some("a")),
        (json!([instrument("a", Some(false))]), Some("a")),
        (json!([instrument("a", None), instrument("b", Some(true))]), Some("b")),
        (json!([instrument("a", None), instrument("b", None)]), None),
        (json!([instrument("a", Some(true)), instrument("b", Some(true))]), None),
        (json!([]), None),
    ] {
        let body = json!({"payment": {"instruments": instruments}});
        let completion = parse_completion(&samples::face(), &body).unwrap();
        assert_eq!(completion.instrument.map(|i| i.handler).as_deref(), handler, "{body}");
    }
}

#[test]
fn an_instrument_without_a_usable_credential_is_none() {
    let mut face = samples::face();
    let body = |kind: &str, credential: Value| json!({"payment": {"instruments": [{"id": "p", "handler_id": "mock_payment_handler", "type": kind, "credential": credential}]}});
    let usable = |face: &ShopFace, kind: &str, credential: Value| {
        parse_completion(face, &body(kind, credential)).map(|found| found.instrument.is_some())
    };
    let token = json!({"type": "token", "token": "t"});
    let card = json!({"type": "card", "number": "4242"});
    assert_eq!(usable(&face, "card", token.clone()), Ok(true));
    assert_eq!(usable(&face, "card", Value::Null), Ok(false));
    assert_eq!(usable(&face, "gift_card", token), Ok(false));
    assert_eq!(usable(&face, "card", card.clone()), Ok(false));
    face.development = true;
    assert_eq!(usable(&face, "card", card), Ok(true));
    for (bad, path) in [
        (json!("tok"), "$.payment.instruments[0].credential"),
        (json!({"token": "t"}), "$.payment.instruments[0].credential.type"),
    ] {
        assert_eq!(usable(&face, "card", bad).unwrap_err().path, path);
    }
    assert_eq!(parse_completion(&face, &json!({})).unwrap_err().path, "$.payment");
    assert!(parse_completion(&face, &json!({"payment": {}})).unwrap().instrument.is_none());
}

#[test]
fn only_what_an_answer_may_show_is_repeated() {
    for (text, fits) in [
        ("org.example.member_benefit", true),
        ("a.b", true),
        ("member", false),
        ("org.Example", false),
        ("org..x", false),
        ("1.x", false),
        ("?\u{b2}", false),
        ("", false),
    ] {
        assert_eq!(is_reverse_domain(text), fits, "{text}");
    }
    let body = json!({
        "line_items": [{"item": {"id": "x"}, "quantity": 1}],
        "context": {"eligibility": ["no claim", "org.example.member"]},
        "payment": {"instruments": [{"id": "p", "handler_id": "h", "type": "card", "display": {
            "brand": "visa", "expiry_month": "12", "expiry_year": 2030, "card_art": "no address"}}]}
    });
    let change = change(Operation::Create, &body).unwrap();
    let echo = change.echo.unwrap().1;
    assert_eq!(change.claims, [0]);
    assert_eq!(echo.pointer("/context/eligibility"), Some(&json!(["org.example.member"])));
    let display = echo.to_string();
    assert!(display.contains("visa") && display.contains("2030"), "{display}");
    assert!(!display.contains("\"12\"") && !display.contains("no address"), "{display}");
}

/// Requirements: U-084.
#[test]
fn a_claim_counts_once_and_only_what_may_be_a_claim_is_repeated() {
    let claims = json!(["org.example.gold", "gold", "org.example.gold", "org.example.silver"]);
    let body = json!({"line_items": line(), "context": {"eligibility": claims}});
    let change = change(Operation::Create, &body).unwrap();
    assert_eq!(change.claims, [0, 1]);
    let (_, echo) = change.echo.unwrap();
    assert_eq!(echo["context"]["eligibility"], json!(["org.example.gold", "org.example.silver"]));
}

#[test]
fn a_refusal_repeats_no_long_or_unprintable_name() {
    for name in ["x".repeat(5_000), "a\u{0}b".to_owned(), "'\\".to_owned(), "utm_source".to_owned()] {
        let refusal =
            change(Operation::Create, &json!({"line_items": line(), "attribution": {&name: 5}})).unwrap_err();
        assert!(refusal.path.starts_with("$.attribution"), "{}", refusal.path);
        assert!(arbitrary::is_short_and_plain(&refusal.message, 200), "{}", refusal.message);
        assert!(arbitrary::is_short_and_plain(&refusal.path, 200), "{}", refusal.path);
    }
}

/// Everything that a body may say.
fn everything() -> Value {
    json!({
        "line_items": [{"id": "li_1", "item": {"id": "roses"}, "quantity": 2, "parent_id": "li_2"}],
        "buyer": {"first_name": "Ada", "last_name": "Byron", "email": "ada@example.org", "phone_number": "+1202",
            "consent": {"marketing": true, "analytics": false}},
        "fulfillment": {"methods": [{"type": "shipping", "line_item_ids": ["li_1"], "selected_destination_id": "home",
            "destinations": [{"id": "home", "street_address": "12 Main Street", "address_locality": "Springfield",
                "address_region": "CA", "postal_code": "90210", "address_country": "us"}],
            "groups": [{"selected_option_id": "std"}]}]},
        "discounts": {"codes": ["10OFF", "A"]},
        "context": {"address_country": "US", "intent": "a gift", "language": "en", "currency": "EUR",
            "eligibility": ["org.example.gold"]},
        "payment": {"instruments": [{"id": "pi_1", "handler_id": "mock_payment_handler", "type": "card", "selected": true,
            "display": {"brand": "visa", "last_digits": "4242", "expiry_year": 2030},
            "credential": {"type": "token", "token": "hidden-token"}, "billing_address": {"postal_code": "1"}}]},
        "signals": {"dev.ucp.buyer_ip": "1.2.3.4"}, "attribution": {"utm_source": "x"},
    })
}

fn is_told_well(refusal: &Refusal) -> bool {
    refusal.path.starts_with('$')
        && arbitrary::is_short_and_plain(&refusal.path, 300)
        && arbitrary::is_short_and_plain(&refusal.message, 400)
}

proptest! {
    #![proptest_config(arbitrary::config(512))]

    #[test]
    fn any_change_is_read_within_the_limits_or_refused_in_place(
        body in prop_oneof![4 => arbitrary::bent(everything()), 1 => arbitrary::json()], creates: bool,
    ) {
        let face = samples::face();
        let operation = if creates { Operation::Create } else { Operation::Update };
        match change(operation, &body) {
            Err(refusal) => prop_assert!(is_told_well(&refusal), "{refusal:?}"),
            Ok(read) => {
                let Patch::Set(lines) = &read.lines else { panic!("{body}") };
                prop_assert!(lines.len() <= face.max_lines && !(creates && lines.is_empty()));
                for line in lines {
                    prop_assert!((1..=face.max_quantity).contains(&line.quantity));
                    prop_assert!(arbitrary::is_short_and_plain(&line.item, 255) && !line.item.trim().is_empty());
                }
                if let Patch::Set(codes) = &read.codes {
                    prop_assert!(codes.len() <= MAX_CODES);
                    prop_assert!(codes.iter().all(|code| arbitrary::is_short_and_plain(code, MAX_CODE)));
                }
                if let Patch::Set(list) = &read.destinations {
                    let ids: std::collections::BTreeSet<_> = list.list.iter().map(|place| &place.id).collect();
                    prop_assert!(list.list.len() <= MAX_DESTINATIONS && ids.len() == list.list.len());
                }
                prop_assert!(!format!("{read:?}").contains("hidden-token"), "a credential is kept");
                // Reading it again gives the same.
                prop_assert_eq!(format!("{:?}", change(operation, &body).unwrap()), format!("{read:?}"));
            }
        }
    }

    #[test]
    fn any_completion_is_read_or_refused_in_place(
        body in prop_oneof![4 => arbitrary::bent(everything()), 1 => arbitrary::json()],
    ) {
        match parse_completion(&samples::face(), &body) {
            Err(refusal) => prop_assert!(is_told_well(&refusal), "{refusal:?}"),
            Ok(read) => {
                let instruments = body.pointer("/payment/instruments").and_then(Value::as_array);
                if let Some(instrument) = read.instrument {
                    let sent = instruments.into_iter().flatten().any(|sent| sent["credential"] == instrument.credential);
                    prop_assert!(sent && instrument.credential["type"].is_string(), "{instrument:?}");
                }
            }
        }
    }
}
