//! What a checkout of this version looks like, from hand-made sessions.

use serde_json::json;

use super::{super::super::samples, *};
use crate::checkout::{
    cart::{CartCoupon, CartLine, CodeReason, ItemReason, Limits},
    ids::ProductId,
    outcome::Operation,
    session::Order,
};

fn body(answer: &Answer) -> Value {
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    let kind = match (value.get("ucp"), value.get("id")) {
        (Some(_), Some(_)) => "checkout",
        (Some(_), None) => "error",
        (None, _) => "transport_error",
    };
    samples::save(kind, &value);
    value
}

fn shown(session: Session) -> Value {
    shown_by(&samples::face(), session)
}

fn shown_by(face: &ShopFace, session: Session) -> Value {
    body(&render(face, &samples::context(Operation::Get), &Outcome::Session(Box::new(session))))
}

fn completed() -> Session {
    let mut session = samples::session();
    session.status = Status::Completed;
    session.order = Some(Order {
        id: "ord_1".into(),
        shop_order: "17".into(),
        number: "1207".into(),
        key: "wc_secret".into(),
        permalink_url: "https://shop.example/order/17".into(),
        paid: true,
        total: 9780,
    });
    session
}

fn with(status: Status, problems: &[(Kind, Place)]) -> Session {
    let mut session = samples::session();
    session.status = status;
    session.problems =
        problems.iter().map(|(kind, place)| Problem::new(kind.clone(), place.clone())).collect();
    session
}

/// Requirements: U-034, U-056, U-057, U-081, U-105, U-112.
#[test]
fn a_checkout_has_every_part() {
    let mut session = samples::session();
    session.echoes.insert(
        "ucp".into(),
        json!({"context": {"language": "de"}, "instruments": [{"id": "p", "handler_id": "h", "type": "card"}]}),
    );
    session.problems = vec![Problem::new(
        Kind::CodeRefused { code: "old".into(), reason: CodeReason::Expired },
        Place::Code(1),
    )];
    let answer =
        render(&samples::face(), &samples::context(Operation::Create), &Outcome::Created(Box::new(session)));
    assert_eq!(answer.status, 201);
    assert_eq!(
        body(&answer),
        json!({
            "ucp": {"version": "2026-04-08", "status": "success",
                "capabilities": {
                    "dev.ucp.shopping.buyer_consent": [{"version": "2026-04-08"}],
                    "dev.ucp.shopping.checkout": [{"version": "2026-04-08"}],
                    "dev.ucp.shopping.discount": [{"version": "2026-04-08"}],
                    "dev.ucp.shopping.fulfillment": [{"version": "2026-04-08"}]},
                "payment_handlers": {"dev.tillgate.mock": [{"id": "mock_payment_handler", "version": "2026-04-08",
                    "available_instruments": [{"type": "card"}], "config": {"environment": "test"}}]}},
            "id": "chk_abc", "status": "ready_for_complete", "currency": "EUR",
            "line_items": [
                {"id": "li_1", "item": {"id": "roses", "title": "ROSES", "price": 4200, "image_url": "https://shop.example/roses.jpg"},
                    "quantity": 2, "totals": [{"type": "subtotal", "amount": 8400}, {"type": "total", "amount": 8400}]},
                {"id": "li_2", "item": {"id": "pot", "title": "POT", "price": 1800, "image_url": "https://shop.example/pot.jpg"},
                    "quantity": 1, "totals": [{"type": "subtotal", "amount": 1800}, {"type": "total", "amount": 1800}]}],
            "buyer": {"first_name": "Ada", "email": "ada@example.org", "consent": {"marketing": false}},
            "context": {"language": "de"},
            "discounts": {"codes": ["Ten", "old"], "applied": [{"code": "Ten", "title": "Ten", "amount": 1020}]},
            "fulfillment": {"methods": [{"id": "shipping", "type": "shipping", "line_item_ids": ["li_1", "li_2"],
                "destinations": [{"id": "home", "street_address": "Lindenallee 4", "address_locality": "Graz", "postal_code": "8010", "address_country": "AT"}],
                "selected_destination_id": "home",
                "groups": [{"id": "group_1", "line_item_ids": ["li_1", "li_2"], "selected_option_id": "std", "options": [
                    {"id": "std", "title": "Parcel post", "description": "2 to 4 working days", "totals": [{"type": "total", "amount": 600}]},
                    {"id": "exp", "title": "Courier", "description": "2 to 4 working days", "totals": [{"type": "total", "amount": 1800}]}]}]}]},
            "totals": [{"type": "subtotal", "amount": 10200}, {"type": "discount", "display_text": "Ten", "amount": -1020},
                {"type": "fulfillment", "display_text": "Parcel post", "amount": 600}, {"type": "total", "amount": 9780}],
            "messages": [{"type": "warning", "code": "discount_code_expired", "content": "Code old has expired.", "path": "$.discounts.codes[1]"}],
            "links": [{"type": "terms_of_service", "url": "https://shop.example/terms"}, {"type": "privacy_policy", "url": "https://shop.example/privacy"}],
            "payment": {"instruments": [{"id": "p", "handler_id": "h", "type": "card"}]},
            "expires_at": "2026-11-30T12:00:00Z",
            "continue_url": "https://pay.shop.example/go/secret",
        })
    );
}

#[test]
fn an_items_coupon_is_told_by_line_and_one_of_the_cart_in_all() {
    let mut session = samples::session();
    session.codes.push("POT".into());
    session.lines[1].shown.total -= 200;
    let view = &mut session.cart.as_mut().unwrap().view;
    view.totals.total -= 200;
    view.coupons.push(CartCoupon { code: "pot".into(), discount: 200, discount_tax: 0, per_item: true });
    let shown = shown_by(&samples::face(), session);
    assert_eq!(
        shown["discounts"]["applied"],
        json!([
            {"code": "Ten", "title": "Ten", "amount": 1020},
            {"code": "POT", "title": "POT", "amount": 200, "method": "each", "allocations": [{"path": "$.line_items[1]", "amount": 200}]},
        ])
    );
    let items = json!({"type": "items_discount", "amount": -200});
    assert_eq!(shown["line_items"][1]["totals"][1], items);
    assert_eq!(shown["totals"][1], items);
    assert_eq!(shown["totals"][2], json!({"type": "discount", "display_text": "Ten", "amount": -1020}));
}

#[test]
fn net_prices_show_tax_as_an_entry() {
    let mut face = samples::face();
    face.prices_with_tax = false;
    let shown = shown_by(&face, samples::session());
    assert_eq!(shown["totals"][3], json!({"type": "tax", "amount": 1630}));
    assert_eq!(shown["line_items"][0]["item"]["price"], 3500);
    let option = &shown["fulfillment"]["methods"][0]["groups"][0]["options"][0];
    assert_eq!(option["totals"][0]["amount"], 500);
}

/// Requirements: U-029, U-035.
#[test]
fn extension_fields_appear_only_when_negotiated() {
    let mut context = samples::context(Operation::Get);
    context.details = json!({"capabilities": {"dev.ucp.shopping.checkout": "2026-04-08"}});
    let mut session = with(
        Status::Incomplete,
        &[
            (Kind::MissingAddress, Place::Destination),
            (Kind::CodeRefused { code: "x".into(), reason: CodeReason::Invalid }, Place::Code(0)),
        ],
    );
    session.fulfillment.selected_destination = None;
    let shown = body(&render(&samples::face(), &context, &Outcome::Session(Box::new(session))));
    assert!(shown.get("fulfillment").is_none() && shown.get("discounts").is_none());
    assert!(shown["buyer"].get("consent").is_none());
    assert_eq!(shown["ucp"]["capabilities"].as_object().unwrap().len(), 1);
    assert!(shown["messages"].as_array().unwrap().iter().all(|message| message.get("path").is_none()));
    assert_eq!(shown["totals"][1]["type"], "discount");
    // A platform without words for an address cannot send one: the buyer has to.
    assert_eq!(shown["status"], "requires_escalation");
    assert_eq!(shown["messages"][0]["severity"], "requires_buyer_input");
}

/// Requirements: U-059, U-060, U-061.
#[test]
fn every_status_has_its_word_its_messages_and_its_way_on() {
    let sold_out = Kind::Item { item: "x".into(), reason: ItemReason::SoldOut };
    for (session, status, codes, continues) in vec![
        (
            with(Status::Incomplete, &[(Kind::MissingEmail, Place::Email)]),
            "incomplete",
            &["missing"][..],
            true,
        ),
        (
            with(Status::Incomplete, &[(Kind::NoPaymentMethod, Place::Payment)]),
            "requires_escalation",
            &["payment_required"],
            true,
        ),
        (
            with(
                Status::Incomplete,
                &[(Kind::NoPaymentMethod, Place::Payment), (Kind::MissingAddress, Place::Destination)],
            ),
            "incomplete",
            &["missing"],
            true,
        ),
        (
            with(Status::Ready, &[(sold_out, Place::RequestLine(1))]),
            "ready_for_complete",
            &["out_of_stock"],
            true,
        ),
        (
            with(Status::Escalated, &[(Kind::ChallengeNeeded, Place::Payment)]),
            "requires_escalation",
            &["requires_3ds"],
            true,
        ),
        (with(Status::Escalated, &[]), "requires_escalation", &["payment_required"], true),
        (with(Status::Placing, &[]), "complete_in_progress", &[], true),
        (with(Status::Canceled, &[]), "canceled", &[], false),
        (with(Status::Expired, &[]), "canceled", &["expired"], false),
        (completed(), "completed", &[], false),
    ] {
        let shown = shown(session);
        assert_eq!(shown["status"], status);
        let found = shown.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let found: Vec<_> = found.iter().map(|message| message["code"].as_str().unwrap()).collect();
        assert_eq!(found, codes, "{status}");
        assert_eq!(shown.get("continue_url").is_some(), continues, "{status}");
    }
}

/// Requirements: U-072, U-089.
#[test]
fn a_completed_checkout_names_its_order_and_no_secret() {
    let shown = shown(completed());
    assert_eq!(
        shown["order"],
        json!({"id": "ord_1", "label": "1207", "permalink_url": "https://shop.example/order/17"})
    );
    assert!(!shown.to_string().contains("wc_secret"));
}

/// Requirements: U-068.
#[test]
fn problems_point_at_their_field() {
    use crate::checkout::cart::AddressField;
    for (kind, place, path) in [
        (
            Kind::MissingAddressPart(AddressField::PostalCode),
            Place::Destination,
            "$.fulfillment.methods[0].destinations[0].postal_code",
        ),
        (Kind::Undeliverable, Place::Destination, "$.fulfillment.methods[0].destinations[0]"),
        (
            Kind::OptionUnavailable { option: "x".into() },
            Place::Option,
            "$.fulfillment.methods[0].groups[0].selected_option_id",
        ),
        (
            Kind::QuantityAdjusted { item: "x".into() },
            Place::Line(samples::session().lines[1].id.clone()),
            "$.line_items[1]",
        ),
        (Kind::ClaimNotAccepted { index: 2 }, Place::Claims, "$.context.eligibility[2]"),
        (Kind::PaymentDeclined, Place::Payment, "$.payment.instruments"),
    ] {
        let shown = shown(with(Status::Ready, &[(kind, place)]));
        assert_eq!(shown["messages"][0]["path"], path);
    }
    let mut session = with(Status::Incomplete, &[(Kind::MissingAddress, Place::Destination)]);
    session.fulfillment = crate::checkout::session::Fulfillment::default();
    let shown = shown(session);
    assert_eq!(shown["messages"][0]["path"], "$.fulfillment.methods[0].selected_destination_id");
    assert_eq!(shown["fulfillment"]["methods"][0]["selected_destination_id"], Value::Null);
}

/// Requirements: U-054, U-055, U-071.
#[test]
fn outcomes_without_a_session_have_the_error_shape_and_late_writes_are_refused() {
    let said = |outcome: &Outcome| {
        let answer = render(&samples::face(), &samples::context(Operation::Update), outcome);
        (answer.status, body(&answer))
    };
    let nothing = vec![Problem::new(
        Kind::Item { item: "gone".into(), reason: ItemReason::SoldOut },
        Place::RequestLine(0),
    )];
    for (outcome, code) in [
        (Outcome::NotFound, "not_found"),
        (Outcome::NothingAvailable(nothing), "out_of_stock"),
        (Outcome::NothingAvailable(vec![]), "item_unavailable"),
        (Outcome::UnknownItem { index: 0, item: "x".into() }, "not_found"),
    ] {
        let (status, shown) = said(&outcome);
        assert_eq!(status, 200);
        assert_eq!(shown["ucp"]["status"], "error");
        assert_eq!(shown["messages"][0]["code"], code);
        assert_eq!(shown["messages"][0]["severity"], "unrecoverable");
        assert_eq!(shown.as_object().unwrap().len(), 3);
    }
    let (status, shown) = said(&Outcome::Finished(Box::new(completed())));
    assert_eq!((status, &shown["code"]), (409, &json!("invalid_state")));
    let (status, shown) = said(&Outcome::InProgress(Box::new(with(Status::Placing, &[]))));
    assert_eq!((status, &shown["status"]), (200, &json!("complete_in_progress")));
    assert_eq!(shown["messages"][0]["severity"], "recoverable");
}

/// Requirements: U-090, U-091.
#[test]
fn handlers_are_those_the_cart_takes_and_instruments_those_both_sides_take() {
    let handlers = |face: &ShopFace, instruments: Value, methods: Option<&[&str]>| {
        let mut context = samples::context(Operation::Get);
        context.details["instruments"] = instruments;
        let mut session = samples::session();
        match methods {
            Some(methods) => {
                let view = &mut session.cart.as_mut().unwrap().view;
                view.payment_methods = methods.iter().map(|method| (*method).to_owned()).collect();
            }
            None => session.cart = None,
        }
        let shown = body(&render(face, &context, &Outcome::Session(Box::new(session))));
        shown["ucp"]["payment_handlers"].clone()
    };
    let names = |handlers: &Value| handlers.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut face = samples::face();
    let all = handlers(&face, json!({}), None);
    assert_eq!(names(&all), ["com.example.cards", "dev.tillgate.mock"]);
    assert_eq!(handlers(&face, json!({}), Some(&[])), json!({}));
    let visa = json!([{"type": "card", "constraints": {"brands": ["visa"]}}, {"type": "crypto"}]);
    let some = handlers(&face, json!({"com.example.cards": visa}), Some(&["stripe"]));
    assert_eq!(
        some["com.example.cards"][0]["available_instruments"],
        json!([{"type": "card", "constraints": {"brands": ["visa"]}}])
    );
    let crypto =
        json!({"com.example.cards": [{"type": "crypto"}], "dev.tillgate.mock": [{"type": "crypto"}]});
    assert_eq!(handlers(&face, crypto.clone(), None), json!({}));
    face.development = true;
    for handler in &mut face.handlers {
        handler.always = handler.ucp.as_ref().is_some_and(|ucp| ucp.name == "dev.tillgate.mock");
    }
    assert_eq!(names(&handlers(&face, crypto, Some(&[]))), ["dev.tillgate.mock"]);
}

/// Requirements: U-106.
#[test]
fn only_lines_in_packages_ship_and_a_digital_cart_has_no_fulfillment() {
    let mut session = samples::session();
    let view = &mut session.cart.as_mut().unwrap().view;
    view.lines = vec![CartLine {
        key: "k1".into(),
        product: ProductId::new("roses"),
        sku: None,
        title: String::new(),
        image_url: None,
        quantity: 2,
        limits: Limits { minimum: 1, maximum: 99, step: 1 },
        left: None,
        unit_price: 0,
        unit_price_with_tax: false,
        subtotal: 0,
        subtotal_tax: 0,
        total: 0,
        total_tax: 0,
    }];
    view.packages[0].line_keys = vec!["k1".into()];
    assert_eq!(shown(session.clone())["fulfillment"]["methods"][0]["line_item_ids"], json!(["li_1"]));
    session.cart.as_mut().unwrap().view.needs_shipping = false;
    assert!(shown(session).get("fulfillment").is_none());
}

/// Requirements: U-101.
#[test]
fn a_description_repeats_neither_title_nor_price() {
    let mut session = samples::session();
    for (description, repeats) in [
        ("Parcel post, insured", true),
        ("By parcel post", true),
        ("For 6.00 only", true),
        ("6,00 € a parcel", true),
        ("Up to 16.00 kg in 6 days", false),
        ("2 to 4 working days", false),
    ] {
        session.fulfillment.options[0].description = description.into();
        let shown = shown(session.clone());
        let option = &shown["fulfillment"]["methods"][0]["groups"][0]["options"][0];
        assert_eq!(option.get("description").is_none(), repeats, "{description}");
    }
    for (text, price, currency) in [("600 yen", 600, "JPY"), ("0.005", 5, "KWD"), ("0,05", 5, "EUR")] {
        assert!(mentions_price(text, price, Currency::parse(currency).unwrap()), "{text}");
    }
}

/// What the shop takes off by a rule of its own has no code and says that it is automatic.
/// Requirements: U-115, U-111.
#[test]
fn a_discount_without_a_code_is_automatic() {
    let mut session = samples::session();
    session.codes.clear();
    session.cart.as_mut().unwrap().view.coupons.clear();
    let shown = shown(session);
    let applied = &shown["discounts"]["applied"][0];
    assert_eq!((applied["automatic"].as_bool(), applied.get("code")), (Some(true), None));
    assert_eq!(shown["discounts"]["codes"], json!([]));
}
