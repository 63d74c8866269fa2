use super::*;
use crate::store::woo::recorded::{Tape, anna, line, plan, rate, sam};

/// What we would have sent, with the token that the recording was made with.
fn would_send(view: &CartView, steps: &Steps) -> Value {
    assert_eq!(steps.refusals, []);
    serde_json::to_value(request(&view.handle, &steps.ops, true)).unwrap()
}

#[test]
fn a_plain_journey_sends_what_was_recorded() {
    let tape = Tape::open("38a-journey-plain");
    let created = CartPlan { customer: Some(anna(true)), ..plan(&[("19", 2), ("36", 1)]) };
    let view = tape.view(1);
    assert_eq!(would_send(&view, &fill(&created)), tape.sent(1));

    let updated = CartPlan {
        codes: vec!["PERCENT10".to_owned()],
        rates: vec![rate("0", "flat_rate:2")],
        ..created.clone()
    };
    assert_eq!(would_send(&view, &difference(&created, &view, &updated)), tape.sent(2));

    let view = tape.view(2);
    assert_eq!(difference(&updated, &view, &updated), Steps::default(), "nothing changed: a read");
    assert_eq!(would_send(&view, &again(&view, &updated)), tape.sent(4));
    // A rate that the shop chose is sent again as well.
    assert_eq!(would_send(&view, &again(&view, &CartPlan { rates: vec![], ..updated })), tape.sent(4));
}

#[test]
fn an_address_that_comes_late_sends_what_was_recorded() {
    let tape = Tape::open("39a-journey-decline-and-retry");
    let created = plan(&[("24", 1)]);
    assert_eq!(would_send(&tape.view(1), &fill(&created)), tape.sent(1));
    let addressed = CartPlan { customer: Some(sam()), ..created.clone() };
    assert_eq!(would_send(&tape.view(1), &difference(&created, &tape.view(1), &addressed)), tape.sent(2));
    let rated = CartPlan { rates: vec![rate("0", "flat_rate:5")], ..addressed.clone() };
    // The shop shows this rate as chosen; nobody has chosen it yet.
    assert_eq!(would_send(&tape.view(2), &difference(&addressed, &tape.view(2), &rated)), tape.sent(3));
    assert_eq!(difference(&rated, &tape.view(3), &rated), Steps::default());
    assert_eq!(would_send(&tape.view(3), &again(&tape.view(3), &rated)), tape.sent(4));
    // After a decline: the same again, with the token of the last look.
    assert_eq!(would_send(&tape.view(4), &again(&tape.view(4), &rated)), tape.sent(6));
}

#[test]
fn a_virtual_journey_sends_what_was_recorded() {
    let tape = Tape::open("39c-journey-virtual");
    let created = plan(&[("31", 1)]);
    assert_eq!(would_send(&tape.view(1), &fill(&created)), tape.sent(1));
    let addressed = CartPlan { customer: Some(anna(false)), ..created.clone() };
    assert_eq!(would_send(&tape.view(1), &difference(&created, &tape.view(1), &addressed)), tape.sent(2));
    assert_eq!(would_send(&tape.view(2), &again(&tape.view(2), &addressed)), tape.sent(3));
}

#[test]
fn a_variation_journey_sends_what_was_recorded() {
    let tape = Tape::open("39e-journey-variation");
    let created = plan(&[("27", 1)]);
    assert_eq!(would_send(&tape.view(1), &fill(&created)), tape.sent(1));
    let updated =
        CartPlan { customer: Some(anna(true)), rates: vec![rate("0", "flat_rate:1")], ..created.clone() };
    assert_eq!(would_send(&tape.view(1), &difference(&created, &tape.view(1), &updated)), tape.sent(2));
    assert_eq!(would_send(&tape.view(2), &again(&tape.view(2), &updated)), tape.sent(3));
}

#[test]
fn lines_are_added_and_changed_before_others_go() {
    let view = Tape::open("38a-journey-plain").view(2);
    let old = CartPlan {
        codes: vec!["PERCENT10".to_owned()],
        rates: vec![rate("0", "flat_rate:2")],
        customer: Some(anna(true)),
        ..plan(&[("19", 2), ("36", 1)])
    };
    let new = CartPlan { codes: vec!["fixed5".to_owned()], ..old.clone() };
    let new = CartPlan { lines: vec![line("36", 3), line("25", 1)], ..new };
    let ops = difference(&old, &view, &new).ops;
    let names: Vec<&str> = ops.iter().map(Op::path).collect();
    assert_eq!(
        names,
        ["update-item", "add-item", "remove-item", "remove-coupon", "apply-coupon", "select-shipping-rate"]
    );
    assert_eq!(ops[3], Op::Free { code: "PERCENT10".to_owned() });
}

#[test]
fn codes_are_compared_without_case_and_foreign_coupons_stay() {
    let view = Tape::open("38a-journey-plain").view(2);
    let old = CartPlan { customer: Some(anna(true)), ..plan(&[("19", 2), ("36", 1)]) };
    // `percent10` is in the cart, though nobody asked for it: neither applied nor taken off.
    let same = CartPlan { codes: vec!["Percent10".to_owned()], ..old.clone() };
    assert_eq!(difference(&old, &view, &same), Steps::default());
    assert_eq!(difference(&old, &view, &old), Steps::default());
    let twice = CartPlan { codes: vec!["NEW".to_owned(), "new".to_owned(), " ".to_owned()], ..old.clone() };
    let steps = difference(&old, &view, &twice);
    assert_eq!(steps.ops, [Op::Apply { code: "NEW".to_owned() }]);
    assert_eq!(
        steps.refusals,
        [
            Refusal::Code { code: "new".to_owned(), reason: CodeReason::AlreadyApplied },
            Refusal::Code { code: " ".to_owned(), reason: CodeReason::Invalid },
        ]
    );
}

#[test]
fn a_refused_address_is_sent_again_with_the_next_change() {
    let mut view = Tape::open("38a-journey-plain").view(2);
    let old = CartPlan { customer: Some(anna(true)), ..plan(&[("19", 2), ("36", 1)]) };
    view.refusals.push(Refusal::Address { field: None });
    assert_eq!(difference(&old, &view, &old).ops, [Op::Customer(Box::new(anna(true)))]);
}

#[test]
fn package_ids_go_back_as_they_came() {
    assert_eq!(package_id("0"), json!(0));
    assert_eq!(package_id("vendor_7"), json!("vendor_7"));
    assert_eq!(package_id("007"), json!("007"));
}

#[test]
fn a_product_that_is_no_number_is_refused_without_a_call() {
    let steps = fill(&plan(&[("42-blue", 1), ("42", 1)]));
    assert_eq!(steps.ops.len(), 1);
    assert_eq!(
        steps.refusals,
        [Refusal::Item { product: ProductId::new("42-blue"), reason: ItemReason::Unknown }]
    );
}

fn inner(status: u16, code: &str, data: &Value) -> Inner {
    let body = json!({ "code": code, "message": "Prosa", "data": data });
    serde_json::from_value(json!({ "status": status, "headers": [], "body": body })).unwrap()
}

#[test]
fn refused_items_are_told_by_code() {
    let add = Op::Add { product: ProductId::new("20"), id: 20, quantity: 2 };
    for (status, code, reason) in [
        (400, "woocommerce_rest_cart_invalid_product", ItemReason::Unknown),
        (400, "woocommerce_rest_product_out_of_stock", ItemReason::SoldOut),
        (400, "woocommerce_rest_product_partially_out_of_stock", ItemReason::FewerLeft(None)),
        (400, "woocommerce_rest_product_not_purchasable", ItemReason::NotForSale),
        (400, "woocommerce_rest_missing_attributes", ItemReason::ChooseVariant),
        (400, "woocommerce_rest_missing_variation_data", ItemReason::ChooseVariant),
        (400, "invalid_quantity", ItemReason::Quantity),
        (400, "readonly_quantity", ItemReason::Quantity),
        (409, "woocommerce_rest_cart_invalid_key", ItemReason::NotForSale),
        (400, "woocommerce_rest_add_to_cart_error", ItemReason::NotForSale),
        (400, "a_plugins_own", ItemReason::NotForSale),
    ] {
        let refusal = refusal(&add, &inner(status, code, &json!({ "status": status }))).unwrap();
        assert_eq!(refusal, Some(Refusal::Item { product: ProductId::new("20"), reason }), "{code}");
    }
}

/// Requirements: U-112.
#[test]
fn refused_codes_addresses_and_rates_are_told_apart() {
    let code = Op::Apply { code: "Spring".to_owned() };
    let told = |code_: &str| refusal(&code, &inner(400, code_, &Value::Null)).unwrap();
    let refused = |reason| Some(Refusal::Code { code: "Spring".to_owned(), reason });
    assert_eq!(told("woocommerce_rest_cart_coupon_error"), refused(CodeReason::Invalid));
    assert_eq!(told("woocommerce_rest_coupon_reserve_failed"), refused(CodeReason::UsageLimit));

    let customer = Op::Customer(Box::new(anna(true)));
    for (detail, field) in [
        ("invalid_country", Some(AddressField::Country)),
        ("invalid_state", Some(AddressField::Region)),
        ("invalid_postcode", Some(AddressField::PostalCode)),
        ("invalid_phone", Some(AddressField::Phone)),
        ("invalid_email", Some(AddressField::Email)),
        ("something_else", None),
    ] {
        let data =
            json!({ "status": 400, "details": { "shipping_address": { "code": detail, "data": null } } });
        let told = refusal(&customer, &inner(400, "rest_invalid_param", &data)).unwrap();
        assert_eq!(told, Some(Refusal::Address { field }), "{detail}");
    }

    let select = Op::Select(rate("0", "flat_rate:9"));
    let told = refusal(&select, &inner(404, "woocommerce_rest_shipping_disabled", &Value::Null)).unwrap();
    assert_eq!(told, Some(Refusal::Rate { rate: "flat_rate:9".to_owned() }));
    let gone = Op::Remove { key: "x".to_owned() };
    assert_eq!(refusal(&gone, &inner(409, "woocommerce_rest_cart_invalid_key", &Value::Null)).unwrap(), None);
}

#[test]
fn what_concerns_more_than_one_step_is_an_error() {
    let op = Op::Remove { key: "x".to_owned() };
    let error = |status, code| refusal(&op, &inner(status, code, &Value::Null)).unwrap_err();
    assert!(matches!(error(401, "woocommerce_rest_missing_nonce"), Error::CartGone));
    assert!(matches!(error(404, "rest_no_route"), Error::Refused { status: 404, .. }));
    assert!(matches!(error(500, "woocommerce_rest_cart_error"), Error::Failed { status: 500, .. }));
}

#[test]
fn what_the_shop_swallows_without_a_word_is_told() {
    let tape = Tape::open("38a-journey-plain");
    let cart = tape.wire_cart(2);
    let mut customer = anna(true);
    customer.email = Some("not an address".to_owned());
    let plan = CartPlan {
        codes: vec!["PERCENT10".to_owned(), "FIXED5".to_owned()],
        rates: vec![rate("0", "flat_rate:2"), rate("0", "flat_rate:9")],
        customer: Some(customer),
        ..plan(&[("19", 2)])
    };
    let mut steps = fill(&plan);
    silent(&mut steps, &plan, &cart);
    assert_eq!(
        steps.refusals,
        [
            Refusal::Code { code: "FIXED5".to_owned(), reason: CodeReason::Combination },
            Refusal::Address { field: Some(AddressField::Email) },
            Refusal::Rate { rate: "flat_rate:9".to_owned() },
        ]
    );
    // A coupon that was there and lapsed, while none was applied.
    let mut steps = again(&tape.view(2), &plan);
    silent(&mut steps, &plan, &cart);
    assert_eq!(steps.refusals[0], Refusal::Code { code: "FIXED5".to_owned(), reason: CodeReason::Invalid });
}
