use serde_json::{Value, json};

use super::*;

fn scrubber() -> Scrubber {
    Scrubber::new(&url::Url::parse("http://127.0.0.1:8789/").unwrap())
}

/// As an exchange is scrubbed: once to learn, once to write.
fn scrubbed(scrubber: &mut Scrubber, side: Side, body: &Value) -> Value {
    scrubber.json_text(&body.to_string(), side);
    serde_json::from_str(&scrubber.json_text(&body.to_string(), side)).unwrap()
}

fn token(user: &str, turn: u32) -> String {
    let part = data_encoding::BASE64URL_NOPAD;
    let (head, claims) = (part.encode(br#"{"alg":"HS256"}"#), json!({ "user_id": user, "iat": turn }));
    format!("{head}.{}.sig-{turn}", part.encode(claims.to_string().as_bytes()))
}

fn anna() -> Value {
    json!({ "first_name": "Ann", "last_name": "Musterfrau", "company": "Muster & Söhne", "address_1": "Musterweg 5",
        "address_2": "", "city": "Ulm", "state": "DE-BW", "postcode": "89073", "country": "DE",
        "phone": "+49 731 1234567", "email": "Ann@Example.com" })
}

#[test]
fn an_address_becomes_stand_ins_but_for_country_and_state() {
    let mut scrubber = scrubber();
    let body = json!({ "billing_address": anna(), "shipping_address": anna() });
    let address = json!({ "first_name": "first-name-1.scrubbed", "last_name": "last-name-1.scrubbed",
        "company": "company-1.scrubbed", "address_1": "street-1.scrubbed", "address_2": "", "city": "city-1.scrubbed",
        "state": "DE-BW", "postcode": "postcode-1.scrubbed", "country": "DE", "phone": "phone-1.scrubbed",
        "email": "buyer-1@scrubbed.invalid" });
    let found = scrubbed(&mut scrubber, Side::Request, &body);
    assert_eq!(found, json!({ "billing_address": address, "shipping_address": address }));
}

#[test]
fn a_value_that_comes_back_in_another_form_has_the_same_stand_in() {
    let mut scrubber = scrubber();
    scrubbed(&mut scrubber, Side::Request, &anna());
    let answer = json!({ "billing_address": { "last_name": "MUSTERFRAU ", "company": "Muster &amp; S\u{f6}hne",
        "postcode": "89 073", "phone": "+497311234567", "email": "ann@example.com", "city": "ULM" },
        "message": "Dear Ann Musterfrau of Muster &amp; Söhne in 89073: musterfrau",
        "page": "https://x.example/?mail=ann%40example.com&who=Muster+%26+S%C3%B6hne",
        "escaped": "Muster & S\\u00f6hne", "city_alone": "ulm", "call": "Call 497311234567 now" });
    let found = scrubbed(&mut scrubber, Side::Answer, &answer);
    let address = json!({ "last_name": "last-name-1.scrubbed", "company": "company-1.scrubbed",
        "postcode": "postcode-1.scrubbed", "phone": "phone-1.scrubbed", "email": "buyer-1@scrubbed.invalid",
        "city": "city-1.scrubbed" });
    assert_eq!(found["billing_address"], address);
    assert_eq!(
        found["message"],
        "Dear first-name-1.scrubbed last-name-1.scrubbed of company-1.scrubbed in postcode-1.scrubbed: \
         last-name-1.scrubbed"
    );
    assert_eq!(found["page"], "https://x.example/?mail=buyer-1@scrubbed.invalid&who=company-1.scrubbed");
    assert_eq!(found["escaped"], "company-1.scrubbed");
    assert_eq!(found["city_alone"], "city-1.scrubbed");
    assert_eq!(found["call"], "Call phone-1.scrubbed now");
}

#[test]
fn what_the_shop_says_of_its_own_stays() {
    let mut scrubber = scrubber();
    let buyer = json!({ "first_name": "Simple", "last_name": "Processing", "city": "Red", "postcode": "2300",
        "address_1": "10115", "company": "Summer Dress" });
    scrubbed(&mut scrubber, Side::Request, &buyer);
    let own = json!({ "status": "processing", "type": "simple", "items": [{ "id": 19, "name": "Summer dress",
        "sku": "summer dress", "description": "A Summer Dress", "prices": { "price": "2300" },
        "variation": [{ "raw_attribute": "colour", "attribute": "Colour", "value": "Blue" }] }],
        "totals": { "total_price": "10115", "currency_code": "EUR" }, "order_number": "10115", "order_id": 2300 });
    assert_eq!(scrubbed(&mut scrubber, Side::Answer, &own), own);
}

#[test]
fn a_text_that_holds_nothing_stays_as_it_was_written() {
    let text = "{\"b\": 1.50,\"a\":\"\\u00e4\"}";
    assert_eq!(scrubber().json_text(text, Side::Answer), text);
}

#[test]
fn tokens_of_one_cart_have_one_stand_in_wherever_they_stand() {
    let mut scrubber = scrubber();
    assert_eq!(scrubber.header("Cart-Token", &token("t_1", 1)), "cart-1.scrubbed");
    assert_eq!(scrubber.header("Cart-Token", &token("t_2", 1)), "cart-2.scrubbed");
    let batch = json!({ "requests": [{ "path": "/wc/store/v1/cart/add-item?_fields=errors",
        "headers": { "Cart-Token": token("t_1", 7), "Nonce": "a1f226c94c", "Authorization": "Basic abc" },
        "body": { "id": 19, "quantity": 1 } }] });
    let found = scrubbed(&mut scrubber, Side::Request, &batch);
    let headers = json!({ "Cart-Token": "cart-1.scrubbed", "Nonce": "nonce-1.scrubbed",
        "Authorization": "secret-1.scrubbed" });
    assert_eq!(found["requests"][0]["headers"], headers);
    assert_eq!(found["requests"][0]["body"], batch["requests"][0]["body"]);
    assert_eq!(found["requests"][0]["path"], batch["requests"][0]["path"]);
    let told = format!("token {} and nonce A1F226C94C", token("t_2", 9));
    assert_eq!(scrubber.text(&told, scan::Reach::Strong), "token cart-2.scrubbed and nonce nonce-1.scrubbed");
}

#[test]
fn credentials_are_hidden_in_headers_and_wherever_they_come_back() {
    let mut scrubber = scrubber();
    let basic = data_encoding::BASE64.encode(b"ck_readonly:cs_verysecret");
    assert_eq!(scrubber.header("Authorization", &format!("Basic {basic}")), "Basic scrubbed");
    assert_eq!(scrubber.header("Cookie", "a=1; session=t_0123456789abcdef"), "scrubbed");
    assert_eq!(scrubber.header("X-Some-Plugin", "anything"), "scrubbed");
    assert_eq!(scrubber.header("Content-Type", "application/json"), "application/json");
    let told = scrubber.text("no cs_verysecret, ck_readonly or t_0123456789abcdef here", scan::Reach::Strong);
    assert!(
        ["verysecret", "readonly", "0123456789abcdef"].iter().all(|secret| !told.contains(secret)),
        "{told}"
    );
    let found = scrubber.pairs("/wp-json/wc/v3/orders", "consumer_key=ck_abc&consumer_secret=cs_abc&page=2");
    let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
    assert!(
        values[0].ends_with(".scrubbed") && values[1].ends_with(".scrubbed") && values[2] == "2",
        "{found:?}"
    );
}

#[test]
fn payment_data_is_hidden_and_the_method_is_not() {
    let mut scrubber = scrubber();
    let body = json!({ "payment_method": "agent_token", "payment_data": [{ "key": "token", "value": "tok_ok" },
        { "key": "payment_method", "value": "agent_token" }, { "key": "number", "value": 4_242_424_242_424_242_u64 },
        { "key": "save", "value": false }], "customer_note": "Ring twice at Musterfrau's",
        "additional_fields": { "acme/vat": "DE123456789" },
        "extensions": { "acme": { "gift": "To my dear Bob" }, "woocommerce/order-attribution": {
            "utm_id": "corr_1", "utm_source": "agent", "user_agent": "Firefox", "referrer": "https://me.example" } } });
    let found = scrubbed(&mut scrubber, Side::Request, &body);
    assert_eq!(found["payment_method"], "agent_token");
    let data = json!([{ "key": "token", "value": "payment-1.scrubbed" },
        { "key": "payment_method", "value": "agent_token" }, { "key": "number", "value": "payment-2.scrubbed" },
        { "key": "save", "value": false }]);
    assert_eq!(found["payment_data"], data);
    assert_eq!(found["customer_note"], "note-1.scrubbed");
    assert_eq!(found["additional_fields"]["acme/vat"], "field-1.scrubbed");
    assert_eq!(found["extensions"]["acme"]["gift"], "field-2.scrubbed");
    let attribution = &found["extensions"]["woocommerce/order-attribution"];
    assert_eq!((&attribution["utm_id"], &attribution["utm_source"]), (&json!("corr_1"), &json!("agent")));
    assert!(attribution["user_agent"].as_str().unwrap().ends_with(".scrubbed"));
    assert!(attribution["referrer"].as_str().unwrap().ends_with(".scrubbed"));
    let answer = json!({ "payment_result": { "payment_status": "success", "payment_details": [
        { "key": "result", "value": "success" }, { "key": "intent", "value": "pi_3abc_secret_def" },
        { "key": "redirect", "value": "https://x.example/thanks/?key=wc_order_Ps1Ooje5VVg4W" }] },
        "order_key": "wc_order_Ps1Ooje5VVg4W" });
    let found = scrubbed(&mut scrubber, Side::Answer, &answer);
    let details = &found["payment_result"]["payment_details"];
    assert_eq!(details[0]["value"], "success");
    assert_eq!(details[1]["value"], "secret-1.scrubbed");
    assert_eq!(details[2]["value"], "https://x.example/thanks/?key=order-key-1.scrubbed");
    assert_eq!(found["order_key"], "order-key-1.scrubbed");
}

#[test]
fn meta_of_orders_is_hidden_unless_it_is_known_to_say_nothing() {
    let meta = json!([{ "id": 1, "meta_data": [
        { "id": 1, "key": "_wc_order_attribution_utm_id", "value": "corr_1" },
        { "id": 2, "key": "_wc_order_attribution_user_agent", "value": "Mozilla/5.0 (Linux)" },
        { "id": 3, "key": "_stripe_customer_id", "value": "cus_abcdef" },
        { "id": 4, "key": "_billing_address_index", "value": "Ann Musterfrau Ulm" },
        { "id": 5, "key": "is_vat_exempt", "value": "no" }, { "id": 6, "key": "_phase", "value": "evening" }],
        "answer": "no", "when": "evening", "who": "cus_abcdef" }]);
    let found = scrubbed(&mut scrubber(), Side::Answer, &meta);
    let value = |at: usize| found[0]["meta_data"][at]["value"].as_str().unwrap().to_owned();
    assert_eq!((value(0).as_str(), value(1).as_str()), ("corr_1", "value-1.scrubbed"));
    assert_eq!((value(2).as_str(), value(3).as_str()), ("value-2.scrubbed", "street-1.scrubbed"));
    assert_eq!(found[0]["meta_data"][3]["key"], "_billing_address_index");
    assert_eq!((value(4).as_str(), value(5).as_str()), ("no", "value-3.scrubbed"));
    // Common words stay elsewhere, what can only be meant once does not.
    assert_eq!((&found[0]["answer"], &found[0]["when"]), (&json!("no"), &json!("evening")));
    assert_eq!(found[0]["who"], "value-2.scrubbed");
}

#[test]
fn queries_forms_and_texts_are_scrubbed_by_their_names() {
    let mut scrubber = scrubber();
    let order =
        scrubber.pairs("/wp-json/wc/store/v1/order/7", "key=secretkey&billing_email=ann%40example.com");
    assert_eq!(order[0].1, "order-key-1.scrubbed");
    assert_eq!(order[1].1, "buyer-1@scrubbed.invalid");
    let form = scrubber.pairs("/", "billing_address%5Bfirst_name%5D=Ann&add-to-cart=19");
    assert_eq!((form[0].1.as_str(), form[1].1.as_str()), ("first-name-1.scrubbed", "19"));
    let page = "<b>Fatal</b> {\"email\" : \"bob@example.org\", \"last_name\":\"O\\\"Hara\"} \
                <a href=\"/x?billing_city=Neu+Ulm&amp;phone=123\">";
    let found = scrubber.text(page, scan::Reach::All);
    assert_eq!(
        found,
        "<b>Fatal</b> {\"email\" : \"buyer-2@scrubbed.invalid\", \"last_name\":\"last-name-1.scrubbed\"} \
         <a href=\"/x?billing_city=city-1.scrubbed&amp;phone=phone-1.scrubbed\">"
    );
    assert_eq!(
        scrubber.text("see http://127.0.0.1:8789/shop and http:\\/\\/127.0.0.1:8789", scan::Reach::Strong),
        format!("see {SHOP}/shop and {SHOP}")
    );
    assert_eq!(
        scrubber.text("http://127.0.0.1:87890/ logo@2x.png _wc_order_attribution_utm_id", scan::Reach::All),
        "http://127.0.0.1:87890/ logo@2x.png _wc_order_attribution_utm_id"
    );
}

#[test]
fn json_behind_noise_is_scrubbed_as_json() {
    let text = "<b>Notice</b>: {here} bob@example.org\n{\"first_name\":\"Zoe\",\"id\":1}";
    let found = scrubber().json_text(text, Side::Answer);
    assert_eq!(
        found,
        "<b>Notice</b>: {here} buyer-1@scrubbed.invalid\n{\"first_name\":\"first-name-1.scrubbed\",\"id\":1}"
    );
}

#[test]
fn an_exchange_lists_its_stand_ins_and_says_which_a_buyer_gives() {
    let mut scrubber = scrubber();
    scrubber.json_text(&anna().to_string(), Side::Request);
    scrubber.begin();
    scrubber.header("Cart-Token", &token("t_1", 1));
    scrubber.json_text("{\"email\":\"ann@example.com\",\"order_key\":\"wc_order_abcdefgh1\"}", Side::Answer);
    let used = scrubber.used();
    assert_eq!(used.all, ["buyer-1@scrubbed.invalid", "order-key-1.scrubbed"]);
    assert_eq!(used.personal, ["buyer-1@scrubbed.invalid"]);
}

/// Nothing of these stands in a scrubbed value.
#[track_caller]
fn assert_gone(found: &impl std::fmt::Debug, secrets: &[&str]) {
    let found = format!("{found:?}");
    for secret in secrets {
        assert!(!found.contains(secret), "{secret} in {found}");
    }
}

fn again(scrubber: &mut Scrubber, body: &Value) -> Value {
    scrubbed(scrubber, Side::Answer, body)
}

const INTENT: &str = "pi_3MtwBwLkdIwHu7ix28a3tqPa_secret_YrKJUKribcBjcG8HVhfZluoGH";

#[test]
fn the_page_to_go_to_keeps_its_words_and_none_of_its_secrets() {
    let mut scrubber = scrubber();
    for (link, scrubbed) in [
        (
            format!("#wc-stripe-confirm-pi:5447:{INTENT}:a1f226c94c"),
            "#wc-stripe-confirm-pi:5447:secret-1.scrubbed:secret-2.scrubbed",
        ),
        (format!("#wc-stripe-confirm-pi%3A5447%3A{INTENT}"), "#secret-3.scrubbed"),
        (
            format!(
                "http://127.0.0.1:8789/checkout/order-received/5448/?key=wc_order_Ps1Ooje5VVg4W&lang=de#pay={INTENT}"
            ),
            "https://shop.example.com/checkout/order-received/5448/?key=order-key-1.scrubbed&lang=de#pay=secret-1.scrubbed",
        ),
        (
            "https://hooks.psp.example/3d_secure_2/redirect/q7XbA9vLm2?who=Zx9&lang=en&status=Zx9aaaaaaaaa"
                .to_owned(),
            "https://hooks.psp.example/3d_secure_2/redirect/secret-4.scrubbed?who=told-1.scrubbed&lang=en\
             &status=secret-5.scrubbed",
        ),
        ("/3ds-challenge/?order=5119".to_owned(), "/3ds-challenge/?order=5119"),
        (String::new(), ""),
    ] {
        assert_eq!(scrubber.link(&link), scrubbed, "{link}");
        let body = json!({ "payment_result": { "payment_status": "pending", "redirect_url": link,
            "payment_details": [{ "key": "redirect", "value": link }] }, "redirect": link });
        let found = again(&mut scrubber, &body);
        assert_eq!(found["payment_result"]["redirect_url"], scrubbed);
        assert_eq!(found["payment_result"]["payment_details"][0]["value"], scrubbed);
        assert_eq!(
            (&found["redirect"], &found["payment_result"]["payment_status"]),
            (&json!(scrubbed), &json!("pending"))
        );
        assert_eq!(scrubber.header("Location", &link), scrubbed);
    }
    let told = scrubber.text("go to https://x.example/pay#client_secret=abcdefgh1", scan::Reach::All);
    assert_eq!(told, "go to https://x.example/pay#client_secret=secret-6.scrubbed");
}

#[test]
fn what_a_payment_method_tells_is_hidden_unless_it_says_how_it_went() {
    let body = json!({ "payment_result": { "payment_status": "success", "session": "evening", "intent": { "a": "Qx81" },
        "payment_details": [{ "key": "result", "value": "failure" }, { "key": "status", "value": "Zx81aa" },
            { "key": "iframe_url", "value": "https://x.example/f?s=Zx82aa" }, { "key": "errorMessage", "value": "Declined." },
            { "key": "redirectMessageToken", "value": "Zx83aa" }, { "key": "number", "value": 42_424_242 }] },
        "when": "evening" });
    let found = scrubbed(&mut scrubber(), Side::Answer, &body);
    assert_gone(&found["payment_result"], &["evening", "Qx81", "Zx8", "42424242"]);
    let details = &found["payment_result"]["payment_details"];
    assert_eq!((&details[0]["value"], &details[3]["value"]), (&json!("failure"), &json!("Declined.")));
    assert_eq!(found["when"], "evening");
    let object =
        json!({ "payment_details": { "result": "success", "client_secret": "Zx91", "more": ["Zx92"] } });
    let found = scrubbed(&mut scrubber(), Side::Answer, &object);
    assert_eq!(found["payment_details"]["result"], "success");
    assert_gone(&found, &["Zx9"]);
}

#[test]
fn a_checkout_form_keeps_the_method_and_the_country() {
    let mut scrubber = scrubber();
    let form = "payment_method=stripe&payment_data[0][key]=token&payment_data[0][value]=tok_abc\
        &payment_data[1][key]=payment_method&payment_data[1][value]=stripe&billing_address[demo/floor]=7th\
        &billing_country=DE&billing_floor=9th&wc-stripe-payment-method=pm_abc&stripe_source=src_abc&mystery=Zx1\
        &wc_order_attribution_utm_source=agent&extensions[acme][gift]=Bob&terms=on&security=a1f226c94c\
        &post_data=billing_first_name%3DFriedelinde%26payment_method%3Dstripe%26unknown%3DZx2";
    let found = scrubber.pairs("/checkout", form);
    assert_gone(
        &found,
        &["tok_abc", "7th", "9th", "pm_abc", "src_abc", "Zx1", "Bob", "a1f226c94c", "Friedelinde", "Zx2"],
    );
    let value =
        |name: &str| found.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap();
    assert_eq!(value("payment_method"), "stripe");
    assert_eq!((value("payment_data[0][key]"), value("payment_data[1][value]")), ("token", "stripe"));
    assert_eq!((value("billing_country"), value("terms")), ("DE", "on"));
    assert_eq!(value("wc_order_attribution_utm_source"), "agent");
    // A token is no method, whatever it stands under; and a list of orders is no checkout.
    assert_gone(&scrubber.pairs("/", "payment_method=pm_1Q0PsIJvEtkwdCNYMSaVuRz6"), &["pm_1Q"]);
    let list = scrubber.pairs("/wp-json/wc/v3/orders", "payment_method=stripe&dp=2&after=2026-01-01");
    assert_eq!(list[1..], [("dp".to_owned(), "2".to_owned()), ("after".to_owned(), "2026-01-01".to_owned())]);
    assert_gone(&scrubber.pairs("/", "wc-stripe-new-card=Zx3"), &["Zx3"]);
}

#[test]
fn fields_of_the_shops_own_are_hidden_in_addresses_and_checkouts() {
    let mut address = anna();
    address["demo/floor"] = "3rd floor".into();
    address["demo/door"] = 4711.into();
    let body = json!({ "billing_address": address, "payment_method": "stripe", "gift_for": "Bob", "nested": { "x": "Zx1" },
        "create_account": false });
    let mut scrubber = scrubber();
    let found = scrubbed(&mut scrubber, Side::Request, &body);
    assert_gone(&found, &["3rd floor", "4711", "Bob", "Zx1"]);
    let address = &found["billing_address"];
    assert_eq!(
        (&address["country"], &address["state"], &address["address_2"]),
        (&json!("DE"), &json!("DE-BW"), &json!(""))
    );
    assert_eq!((&found["payment_method"], &found["create_account"]), (&json!("stripe"), &json!(false)));
    let answer = json!({ "shipping_rates": [{ "destination": { "country": "DE", "state": "DE-BW", "acme/gate": "B" } }],
        "billing": { "first_name": "Zoe", "country": "DE", "gate": "C" } });
    let found = scrubbed(&mut scrubber, Side::Answer, &answer);
    assert_gone(&found, &["\"B\"", "\"C\"", "Zoe"]);
    // A description of the fields says nothing of anybody.
    let fields = json!({ "endpoints": [{ "methods": ["POST"], "args": { "payment_data": { "description": "Data.",
        "type": "array" }, "billing_address": { "type": "object", "properties": { "demo/floor": {
        "description": "Floor", "type": "string" } } } } }], "schema": { "properties": { "payment_result": {
        "description": "Result.", "type": "object" } } } });
    assert_eq!(scrubbed(&mut scrubber, Side::Answer, &fields), fields);
}

#[test]
fn reviewers_customers_and_users_are_hidden() {
    let hash = "https://secure.gravatar.example/avatar/0bc83cb571cd1c50ba6f3e8a78ef1346?s=96";
    let body = json!([
        { "id": 1, "product_id": 19, "product_name": "Mug", "status": "approved", "reviewer": "Friedelinde Q",
            "reviewer_email": "f@x.example", "review": "<p>My dog Bello likes it</p>", "rating": 5,
            "reviewer_avatar_urls": { "24": hash } },
        { "id": 7, "date_created": "2026-01-01", "email": "g@x.example", "username": "quastenberg", "role": "customer",
            "avatar_url": hash, "loyalty": "Gold member 81", "is_paying_customer": true,
            "billing": { "first_name": "Gerda", "country": "DE", "acme_gate": "Zx1" },
            "meta_data": [{ "id": 3, "key": "_billing_vat", "value": "DE123" }] },
        { "id": 8, "name": "Hans", "slug": "hans-dampf", "link": "https://x.example/author/hans-dampf/",
            "avatar_urls": { "24": hash }, "meta": { "birth": "1970" } },
        { "id": 9, "author": 8, "author_name": "Inge", "author_ip": "203.0.113.9", "content": { "rendered": "Bello" },
            "author_user_agent": "Zx2" },
        { "id": 10, "author": "system", "note": "Paid by Kunigunde", "order": 5 },
        { "id": 11, "reason": "Kunigunde moved", "amount": "1.00" },
        { "id": "api_secret", "type": "password", "value": "Zx3" },
        { "id": 12, "payment_method": "stripe", "payment_method_title": "Visa ending in 4242" },
    ]);
    let found = scrubbed(&mut scrubber(), Side::Answer, &body);
    assert_gone(
        &found,
        &[
            "Friedelinde",
            "f@x",
            "Bello",
            "0bc83cb571cd",
            "quastenberg",
            "Gold",
            "Gerda",
            "Zx",
            "DE123",
            "Hans",
            "hans-dampf",
            "1970",
            "Inge",
            "203.0.113.9",
            "Kunigunde",
            "4242",
        ],
    );
    assert_eq!((&found[0]["product_name"], &found[0]["rating"]), (&json!("Mug"), &json!(5)));
    assert_eq!((&found[1]["role"], &found[1]["id"]), (&json!("customer"), &json!(7)));
    assert_eq!(found[1]["billing"]["country"], "DE");
    assert_eq!((&found[3]["author"], &found[4]["author"]), (&json!(8), &json!("system")));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}", json in "[\\[\\]{}\":,a-z@.%&?=;\\\\ ]{0,60}") {
        let mut scrubber = scrubber();
        scrubber.json_text(&anna().to_string(), Side::Request);
        scrubber.json_text(&text, Side::Answer);
        scrubber.json_text(&json, Side::Request);
        scrubber.pairs("/x", &json);
        scrubber.header(&text, &json);
        scrubber.link(&text);
        scrubber.link(&json);
    }

    #[test]
    fn a_scrubbed_text_is_not_scrubbed_again(name in "[A-Z][a-z]{5,9}", around in "[a-z ]{0,9}") {
        let mut scrubber = scrubber();
        let body = json!({ "last_name": name, "text": format!("{around} {name}, {around}") });
        let once = scrubbed(&mut scrubber, Side::Request, &body);
        proptest::prop_assert!(!once.to_string().contains(&name));
        proptest::prop_assert_eq!(scrubbed(&mut scrubber, Side::Request, &once), once);
    }
}
