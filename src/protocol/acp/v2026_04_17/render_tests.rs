use serde_json::{Value, json};

use super::*;
use crate::{
    checkout::{
        cart::{CodeReason, ItemReason},
        outcome::{Operation, Outcome, RenderContext},
        problem::{Place, Problem},
        session::Fulfillment,
    },
    protocol::acp::{render, samples},
};

fn shown(now: &Session) -> Value {
    serde_json::to_value(session(&samples::face(), now)).unwrap()
}

fn with_problem(kind: Kind, place: Place) -> Session {
    Session { problems: vec![Problem::new(kind, place)], ..samples::session() }
}

/// Requirements: D-30, D-31.
#[test]
fn every_status_has_its_word() {
    for (status, word) in [
        (Status::Incomplete, "not_ready_for_payment"),
        (Status::Ready, "ready_for_payment"),
        (Status::Escalated, "requires_escalation"),
        (Status::Placing, "complete_in_progress"),
        (Status::Completed, "completed"),
        (Status::Canceled, "canceled"),
        (Status::Expired, "expired"),
    ] {
        let session = Session { status, order: Some(samples::order()), ..samples::session() };
        let body = shown(&session);
        assert_eq!(body["status"], word);
        assert_eq!(body.get("order").is_some(), status == Status::Completed, "{word}");
        assert_eq!(body.get("continue_url").is_some(), !status.is_final(), "{word}");
    }
    let empty = Session { status: Status::Incomplete, lines: Vec::new(), ..samples::session() };
    assert_eq!(shown(&empty)["status"], "incomplete");
}

#[test]
fn a_refused_item_is_acknowledged_before_the_session_is_ready() {
    let kind = Kind::Item { item: "x".into(), reason: ItemReason::SoldOut };
    let body = shown(&with_problem(kind, Place::RequestLine(1)));
    assert_eq!(body["status"], "not_ready_for_payment");
    assert_eq!(body["messages"][0]["code"], "out_of_stock");
    assert_eq!(body["messages"][0]["param"], "$.line_items");
    let body = shown(&with_problem(Kind::PaymentDeclined, Place::Payment));
    assert_eq!(body["status"], "ready_for_payment");
    assert_eq!(body["messages"][0]["code"], "payment_declined");
}

/// Requirements.
#[test]
fn a_ready_session_says_all_an_agent_needs() {
    let body = shown(&samples::session());
    assert_eq!(body["id"], "chk_1");
    assert_eq!(body["currency"], "eur");
    assert_eq!(body["protocol"], json!({"version": "2026-04-17"}));
    assert_eq!(body["continue_url"], "https://gate.example/go/secret");
    assert_eq!(body["created_at"], "2026-05-01T12:00:00Z");
    assert_eq!(
        body["capabilities"]["interventions"],
        json!({"supported": ["3ds"], "required": [], "enforcement": "conditional"})
    );
    assert_eq!(body["capabilities"]["extensions"][0]["name"], "discount");
    let handlers = body["capabilities"]["payment"]["handlers"].as_array().unwrap();
    assert_eq!(handlers.len(), 1);
    assert_eq!(handlers[0]["id"], "mock_payment_handler");
    assert_eq!(
        body["selected_fulfillment_options"],
        json!([{"type": "shipping", "option_id": "std-ship", "item_ids": ["li_1", "li_2"]}])
    );
    assert_eq!(body["fulfillment_details"]["name"], "Ada King Byron");
    assert_eq!(body["fulfillment_details"]["address"]["state"], "CA");
    assert_eq!(body["metadata"], json!({"client_reference_id": "ref-1"}));
    assert_eq!(
        body["discounts"]["applied"],
        json!([{
            "id": "discount_ten", "code": "TEN", "coupon": {"id": "ten", "name": "TEN"}, "amount": 300,
            "method": "across",
            "allocations": [{"path": "$.line_items[0]", "amount": 200}, {"path": "$.line_items[1]", "amount": 100}]
        }])
    );
    assert_eq!(body["links"].as_array().unwrap().len(), 2);
    let text = body.to_string();
    for secret in ["wc_order", "correlation", "null"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[test]
fn handlers_follow_the_cart() {
    let mut session = samples::session();
    session.cart.as_mut().unwrap().view.payment_methods = vec!["bacs".into()];
    assert_eq!(shown(&session)["capabilities"]["payment"]["handlers"], json!([]));
    session.cart = None;
    assert_eq!(shown(&session)["capabilities"]["payment"]["handlers"][0]["id"], "mock_payment_handler");
}

/// Requirements.
#[test]
fn extensions_and_discounts_show_when_asked_for() {
    let mut session = samples::session();
    session.echoes.clear();
    session.codes.clear();
    let body = shown(&session);
    assert_eq!(body["capabilities"].get("extensions"), None);
    assert_eq!(body.get("discounts"), None);
    session.codes = vec!["OLD".into()];
    let kind = Kind::CodeRefused { code: "OLD".into(), reason: CodeReason::Expired };
    session.problems = vec![Problem::new(kind, Place::Code(0))];
    let body = shown(&session);
    assert_eq!(body["discounts"]["rejected"][0]["reason"], "discount_code_expired");
    assert_eq!(body["discounts"]["applied"][0]["automatic"], true);
    assert_eq!(body["messages"][0]["type"], "warning");
    assert_eq!(body["messages"][0]["param"], "$.discounts.codes[0]");
}

/// Requirements: A-038.
#[test]
fn options_wait_for_an_address() {
    let mut session = samples::session();
    session.fulfillment = Fulfillment { options: session.fulfillment.options, ..Fulfillment::default() };
    let body = shown(&session);
    assert_eq!(body["fulfillment_options"], json!([]));
    assert_eq!(body.get("selected_fulfillment_options"), None);
    assert_eq!(body.get("fulfillment_details"), None);
}

/// Requirements: D-28.
#[test]
fn goods_without_weight_have_one_digital_option() {
    let mut session = samples::session();
    session.cart.as_mut().unwrap().view.needs_shipping = false;
    let body = shown(&session);
    assert_eq!(body["fulfillment_options"].as_array().unwrap().len(), 1);
    assert_eq!(body["fulfillment_options"][0]["type"], "digital");
    assert_eq!(body["selected_fulfillment_options"][0]["option_id"], "digital");
}

/// Requirements: D-26.
#[test]
fn item_ids_are_repeated_while_they_hold() {
    let mut session = samples::session();
    session.echoes.insert("acp".into(), json!({"item_ids": ["item_1", "li_2"]}));
    assert_eq!(shown(&session)["selected_fulfillment_options"][0]["item_ids"], json!(["item_1", "li_2"]));
    session.lines.pop();
    assert_eq!(shown(&session)["selected_fulfillment_options"][0]["item_ids"], json!(["li_1"]));
}

/// Requirements: A-033, D-39.
#[test]
fn a_completed_session_carries_its_order() {
    let session = Session { status: Status::Completed, order: Some(samples::order()), ..samples::session() };
    assert_eq!(
        shown(&session)["order"],
        json!({
            "type": "order", "id": "ord_1", "checkout_session_id": "chk_1", "order_number": "1042",
            "client_reference_id": "ref-1", "permalink_url": "https://shop.example/order-received/1042",
            "status": "confirmed", "confirmation": {"confirmation_number": "1042", "order_notes": "Ring twice"}
        })
    );
}

/// Requirements, D-32, D-33.
#[test]
fn outcomes_have_their_status() {
    let session = || Box::new(samples::session());
    let mut ended = session();
    ended.status = Status::Canceled;
    for (outcome, status, code) in [
        (Outcome::Created(session()), 201, None),
        (Outcome::Session(session()), 200, None),
        (Outcome::InProgress(session()), 200, None),
        (Outcome::Finished(ended), 405, Some("session_canceled")),
        (Outcome::NotFound, 404, Some("session_not_found")),
        (Outcome::UnknownItem { index: 0, item: "x".into() }, 400, Some("invalid_item_id")),
        (Outcome::UnknownOption { option: "x".into() }, 400, Some("invalid_fulfillment_option")),
        (Outcome::UnknownHandler { handler: "x".into() }, 400, Some("invalid_handler")),
        (Outcome::NothingAvailable(Vec::new()), 422, Some("out_of_stock")),
    ] {
        let context = RenderContext {
            protocol: "acp".into(),
            version: "2026-04-17".into(),
            operation: Operation::Update,
            details: json!({"item_paths": ["$.items[0].id"]}),
        };
        let answer = render(&samples::face(), &context, &outcome);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, body["code"].as_str()), (status, code), "{outcome:?}");
        if status == 400 && code == Some("invalid_item_id") {
            assert_eq!(body["param"], "$.items[0].id");
        }
        let allow = answer.headers.iter().any(|(name, value)| name == "allow" && value == "GET");
        assert_eq!(allow, status == 405);
    }
}
