//! A: protocol behaviour.

use serde_json::{Value, json};
use tillgate::protocol::ucp::CURRENT_VERSION;

use super::requests::{create_with, knows, platform};
use crate::support::{
    Reply, TestApp,
    clients::{PROFILE, acp_address, acp_lines, full, lines, us_address},
    sides::{Acp, BOTH, Ucp, orders, settled},
};

const CHECKOUT: &str = "dev.ucp.shopping.checkout";

/// Requirements: U-080.
#[tokio::test]
async fn a3_a_foreign_currency_is_never_taken_over() {
    let app = TestApp::new().await;
    for currency in ["XTS", "eur", "EUR"] {
        let mut body = full("bouquet_roses", 1);
        body["currency"] = json!(currency);
        body["context"] = json!({"currency": currency});
        let reply = app.ucp().create(body).await.expect(201);
        assert_eq!(reply.text("/currency"), "USD");
        assert!(!reply.json.to_string().contains(&format!("\"{currency}\"")), "{}", reply.json);
    }
    let mut body = full("bouquet_roses", 1);
    body["currency"] = json!(978);
    app.ucp().create(body).await.expect(201);
    for currency in [json!("XTS"), json!("eur"), json!(978)] {
        let mut body = acp_lines("bouquet_roses", 1, "usd");
        body["currency"] = currency;
        let refused = app.acp().create(body).await.expect(400);
        assert_eq!(refused.text("/param"), "$.currency");
    }
    let number = json!({"line_items": [{"item": {"id": 42}, "quantity": 1}]});
    let refused = app.ucp().create(number).await.expect(400);
    assert_eq!(refused.text("/messages/0/path"), "$.line_items[0].item.id");
    let mut number = acp_lines("bouquet_roses", 1, "usd");
    number["line_items"][0]["id"] = json!(42);
    let refused = app.acp().create(number).await.expect(400);
    assert_eq!(refused.text("/param"), "$.line_items[0].id");
}

/// Requirements: U-024, U-027, A-004, A-005.
#[tokio::test]
async fn a4_an_unknown_version_is_told_the_same_everywhere() {
    let app = TestApp::new().await;
    let ucp = app.ucp().profile(&platform(knows("2099-01-01", &[CHECKOUT])).await);
    for root in ["/ucp", "/2026-04-08", ""] {
        let ucp = ucp.at(root);
        for reply in [
            ucp.create(lines("bouquet_roses", 1)).await,
            ucp.get("chk_1").await,
            ucp.update("chk_1", lines("bouquet_roses", 1)).await,
            ucp.complete("chk_1", "success_token").await,
            ucp.cancel("chk_1").await,
        ] {
            let refused = reply.expect(422);
            assert_eq!(refused.text("/code"), "version_unsupported", "{root}");
            assert!(refused.text("/content").contains(CURRENT_VERSION), "{}", refused.json);
        }
    }
    for values in [&["2099-01-01"][..], &["latest"], &[]] {
        let refused = create_with(&app, Acp, "api-version", values).await.expect(400);
        assert_eq!(refused.json["supported_versions"], json!(["2026-04-17"]), "{values:?}");
    }
    assert_eq!((app.sessions_made(), app.shop_calls().await.len()), (0, 0));
}

/// Requirements: U-004, U-005, U-057.
#[tokio::test]
async fn a5_profiles_are_cached_handlers_shown_and_messages_have_codes() {
    let app = TestApp::new().await;
    for path in ["/.well-known/ucp", "/2026-04-08/.well-known/ucp"] {
        let profile = app.get(path).await.expect(200);
        let cached = profile.header("cache-control").unwrap();
        let seconds: u32 = cached.split("max-age=").nth(1).unwrap().parse().unwrap();
        assert!(cached.starts_with("public") && seconds >= 60, "{cached}");
        assert!(!profile.json["ucp"]["payment_handlers"].as_object().unwrap().is_empty());
    }
    let body = json!({"line_items": [{"item": {"id": "gardenias"}, "quantity": 1}, {"item": {"id": "nothing"}, "quantity": 1},
        {"item": {"id": "bouquet_roses"}, "quantity": 1}], "discounts": {"codes": ["NO-SUCH-CODE"]}});
    let ucp = app.ucp().create(body).await.expect(201);
    assert!(!ucp.json["ucp"]["payment_handlers"].as_object().unwrap().is_empty());
    let mut body = acp_lines("bouquet_roses", 1, "usd");
    body["discounts"] = json!({"codes": ["NO-SUCH-CODE"]});
    let acp = app.acp().create(body).await.expect(201);
    assert!(!acp.json["capabilities"]["payment"]["handlers"].as_array().unwrap().is_empty());
    let nothing = app.ucp().create(lines("nothing", 1)).await.expect(200);
    let refused = app.ucp().create(json!({"line_items": []})).await.expect(400);
    for reply in [ucp, acp, nothing, refused] {
        let messages = reply.json["messages"].as_array().unwrap();
        assert!(!messages.is_empty());
        for message in messages.iter().filter(|message| message["type"] != "info") {
            assert!(message["code"].as_str().is_some_and(|code| !code.is_empty()), "{message}");
        }
    }
}

/// Requirements: U-033, U-046.
#[tokio::test]
async fn a8_outcomes_of_business_are_no_http_errors() {
    let app = TestApp::new().await;
    let sold_out = app.ucp().create(lines("gardenias", 1)).await.expect(200);
    assert!(sold_out.codes().contains(&"out_of_stock".to_owned()), "{}", sold_out.json);
    let sold_out = app.acp().create(acp_lines("gardenias", 1, "usd")).await.expect(201);
    assert!(sold_out.codes().contains(&"out_of_stock".to_owned()), "{}", sold_out.json);
    let strangers = app.ucp().profile(&platform(knows(CURRENT_VERSION, &["org.example.other"])).await);
    for reply in [strangers.create(lines("bouquet_roses", 1)).await, strangers.get("chk_1").await] {
        let told = reply.expect(200);
        assert_eq!(
            (told.text("/ucp/status"), told.codes()),
            ("error", vec!["capabilities_incompatible".to_owned()])
        );
    }
    // Faults of protocol are 4xx.
    app.ucp().create(json!({})).await.expect(400);
    app.acp().create(json!({})).await.expect(400);
}

#[tokio::test]
async fn a9_two_changes_at_once_end_as_if_one_came_after_the_other() {
    let app = TestApp::new().await;
    for _ in 0..5 {
        // UCP replaces: what is left is one of the two, whole.
        let ucp = app.ucp();
        let id = ucp.create(lines("bouquet_roses", 1)).await.expect(201).id();
        let mut coded = lines("pot_ceramic", 2);
        coded["discounts"] = json!({"codes": ["10OFF"]});
        let (one, two) = tokio::join!(ucp.update(&id, full("bouquet_roses", 3)), ucp.update(&id, coded));
        let (one, two) = (one.expect(200), two.expect(200));
        let left = ucp.get(&id).await.expect(200);
        let part = |reply: &Reply| {
            ["line_items", "totals", "discounts", "fulfillment", "buyer"].map(|name| reply.json[name].clone())
        };
        assert!(part(&left) == part(&one) || part(&left) == part(&two), "{}", left.json);
        // ACP changes in parts: both are there, whichever came first.
        let acp = app.acp();
        let id = acp.create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201).id();
        let (one, two) = tokio::join!(
            acp.update(&id, json!({"fulfillment_details": {"address": acp_address()}})),
            acp.update(&id, json!({"discounts": {"codes": ["10OFF"]}})),
        );
        one.expect(200);
        two.expect(200);
        let left = acp.get(&id).await.expect(200);
        assert_eq!(left.text("/fulfillment_details/address/postal_code"), "90210");
        assert_eq!((left.text("/discounts/codes/0"), left.total("items_discount")), ("10OFF", 350));
    }
}

/// Requirements: U-018.
#[tokio::test]
async fn a11_a_profile_is_found_behind_odd_spacing() {
    let app = TestApp::new().await;
    for line in [
        format!("  profile=\"{PROFILE}\"  "),
        format!("a=1 ,\tprofile=\"{PROFILE}\";v=2 , b"),
        format!("profile=\"{PROFILE}\", x=?1"),
    ] {
        create_with(&app, Ucp, "ucp-agent", &[&line]).await.expect(201);
    }
}

/// Requirements: U-029, U-035.
#[tokio::test]
async fn a11_a_profile_of_any_kind_is_negotiated_with() {
    let app = TestApp::new().await;
    let one = app.ucp().profile(&platform(knows(CURRENT_VERSION, &[CHECKOUT])).await);
    let mut body = full("bouquet_roses", 1);
    body["discounts"] = json!({"codes": ["10OFF"]});
    let reply = one.create(body).await.expect(201);
    let common: Vec<&String> = reply.json["ucp"]["capabilities"].as_object().unwrap().keys().collect();
    assert_eq!(common, [CHECKOUT]);
    assert!(reply.json.get("discounts").is_none(), "an extension that was not agreed on: {}", reply.json);
    let mut odd = knows(CURRENT_VERSION, &[CHECKOUT, "dev.ucp.shopping.discount", "org.example.unheard_of"]);
    odd["more"] = json!([1, {"a": null}]);
    odd["ucp"]["more"] = json!("x");
    odd["ucp"]["capabilities"][CHECKOUT][0]["more"] = json!({});
    let old = json!({"version": "2025-01-01", "spec": "https://ucp.dev/", "schema": "https://ucp.dev/"});
    odd["ucp"]["capabilities"][CHECKOUT].as_array_mut().unwrap().insert(0, old);
    let odd = app.ucp().profile(&platform(odd).await);
    let reply = odd.create(lines("bouquet_roses", 1)).await.expect(201);
    let common: Vec<&String> = reply.json["ucp"]["capabilities"].as_object().unwrap().keys().collect();
    assert_eq!(common, [CHECKOUT, "dev.ucp.shopping.discount"]);
}

/// A16: the order is made and its answer is lost. It is found, told, and never made again.
/// Requirements: A-032.
#[tokio::test]
async fn a16_a_lost_answer_is_found_again() {
    let app = TestApp::new().await;
    let mut bought = 0;
    for side in BOTH {
        for fault in ["lost_answer", "html", "500_after_payment"] {
            let id = side.ready(&app).await;
            app.flower().set_fault(&format!("{fault},count=1,only=checkout")).unwrap();
            let waiting = side.complete(&app, fault, &id).await.expect(200);
            assert_eq!(waiting.text("/status"), "complete_in_progress", "{side:?} {fault}");
            bought += 1;
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
            let again = side.complete(&app, fault, &id).await;
            match side {
                Ucp => assert_eq!(again.expect(200).text("/status"), "complete_in_progress"),
                Acp => assert_eq!(again.expect(409).text("/code"), "idempotency_in_flight"),
            }
            let update = side.update(&app, "meanwhile", &id).await.expect(200);
            assert_eq!(update.text("/status"), "complete_in_progress", "{side:?} {fault}");
            settled(&app, side, &id, "completed").await;
            let last = side.complete(&app, fault, &id).await.expect(200);
            assert_eq!(last.text("/status"), "completed", "{side:?} {fault}");
            assert_eq!(side.complete(&app, fault, &id).await.bytes, last.bytes, "{side:?} {fault}");
            assert_eq!(orders(&app).len(), bought, "{side:?} {fault}");
        }
    }
}

/// What the shop shows with 2, 0 or 3 decimals is the same amount of the currency's own minor unit.
/// Requirements: U-079.
#[tokio::test]
async fn a17_amounts_follow_the_minor_unit_and_are_scaled_once() {
    for (code, decimals, unit) in [
        ("EUR", 2, 2000),
        ("EUR", 0, 2000),
        ("JPY", 0, 20),
        ("JPY", 2, 20),
        ("KWD", 3, 20_000),
        ("KWD", 2, 20_000),
    ] {
        let app = TestApp::with(match code {
            "JPY" => |settings| settings.shops.get_mut("general").unwrap().currency = "JPY".into(),
            "KWD" => |settings| settings.shops.get_mut("general").unwrap().currency = "KWD".into(),
            _ => |_| {},
        })
        .await;
        app.general().act(&json!([{"op": "currency", "code": code, "decimals": decimals}])).unwrap();
        let ucp = app.general_ucp();
        let created = ucp.create(full("27", 2)).await.expect(201);
        assert_eq!(created.text("/currency"), code);
        assert_eq!(
            created.json["line_items"][0]["item"]["price"], unit,
            "{code} {decimals}: {}",
            created.json
        );
        assert_eq!(created.total("subtotal"), 2 * unit, "{code} {decimals}");
        let mut body = acp_lines("27", 2, &code.to_lowercase());
        body["fulfillment_details"] = json!({"address": acp_address()});
        let acp = app.general_acp().create(body).await.expect(201);
        assert_eq!(acp.json["line_items"][0]["unit_amount"], unit, "{code} {decimals}");
        let done = ucp.complete(&created.id(), "success_token").await.expect(200);
        assert_eq!(done.text("/status"), "completed", "{code} {decimals}: {}", done.json);
        // The shop counts in the decimals that it shows.
        let order = app.general().orders()[0]["total_minor"].as_i64().unwrap();
        let exponent = match code {
            "JPY" => 0,
            "KWD" => 3,
            _ => 2,
        };
        let scale = |digits: u32| 10_i64.pow(digits);
        assert_eq!(order * scale(exponent), done.total("total") * scale(decimals), "{code} {decimals}");
    }
}

/// Requirements: U-028.
#[tokio::test]
async fn a20_the_version_is_the_same_wherever_it_is_told() {
    let app = TestApp::new().await;
    let created = app.ucp().create(lines("bouquet_roses", 1)).await.expect(201);
    assert_eq!(created.text("/ucp/version"), CURRENT_VERSION);
    for path in ["/.well-known/ucp".to_owned(), format!("/{CURRENT_VERSION}/.well-known/ucp")] {
        let profile = app.get(&path).await.expect(200);
        assert_eq!(profile.text("/ucp/version"), CURRENT_VERSION);
        for (name, entries) in profile.json["ucp"]["capabilities"].as_object().unwrap() {
            assert_eq!(entries[0]["version"], CURRENT_VERSION, "{name}");
        }
        assert_eq!(profile.text("/ucp/services/dev.ucp.shopping/0/version"), CURRENT_VERSION);
    }
    for version in created.json["ucp"]["capabilities"].as_object().unwrap().values() {
        assert_eq!(version[0]["version"], CURRENT_VERSION);
    }
    let discovery = app.get("/.well-known/acp.json").await.expect(200);
    let created = app.acp().create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201);
    assert_eq!(created.text("/protocol/version"), discovery.text("/protocol/version"));
    let spoken = discovery.text("/protocol/version");
    create_with(&app, Acp, "api-version", &[spoken]).await.expect(201);
}

/// Requirements: U-072.
#[tokio::test]
async fn a21_the_address_reaches_the_shop_and_the_order_has_an_absolute_link() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let mut body = lines("bouquet_roses", 1);
    body["buyer"] = json!({"email": "ada@example.org"});
    body["fulfillment"] = json!({"methods": [{"type": "shipping", "destinations": [us_address()]}]});
    let created = ucp.create(body).await.expect(201);
    assert_eq!(created.text("/currency"), "USD", "the shop's");
    let done = ucp.complete(&created.id(), "success_token").await.expect(200);
    assert!(done.text("/order/permalink_url").starts_with("https://"), "{}", done.json);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let asked =
        client.get(format!("{}/wp-json/wc/v3/orders", app.shop_url)).basic_auth("ck_demo", Some("cs_demo"));
    let found: Value = asked.send().await.unwrap().json().await.unwrap();
    let shipping = &found[0]["shipping"];
    let told = ["first_name", "address_1", "city", "state", "postcode", "country"]
        .map(|name| shipping[name].clone());
    assert_eq!(
        json!(told),
        json!(["Ada", "12 Main Street", "Springfield", "CA", "90210", "US"]),
        "{}",
        found[0]
    );
    assert_eq!(found[0]["currency"], "USD");
}

#[tokio::test]
async fn a23_the_selected_instrument_is_charged() {
    let app = TestApp::new().await;
    let instrument = |id: &str, token: &str, selected: bool| {
        json!({"id": id, "handler_id": "mock_payment_handler", "type": "card", "selected": selected,
            "credential": {"type": "token", "token": token}})
    };
    for at in 0..2 {
        let id = app.ucp().ready("bouquet_roses", 1).await;
        let mut both = [instrument("a", "fail_token", false), instrument("b", "fail_token", false)];
        both[at] = instrument("c", "success_token", true);
        let body = json!({"payment": {"instruments": both}});
        let path = format!("/checkout-sessions/{id}/complete");
        let paid = app.ucp().call(axum::http::Method::POST, &path, Some(&body)).await.expect(200);
        assert_eq!(paid.text("/status"), "completed", "{}", paid.json);
    }
}

/// Requirements: U-023.
#[tokio::test]
async fn a23_a_profile_that_cannot_be_had_is_told_as_such() {
    let app = TestApp::new().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let there = platform(json!({})).await;
    for url in [format!("http://{nobody}/profile"), format!("{there}/not-here")] {
        let refused = app.ucp().profile(&url).create(lines("bouquet_roses", 1)).await.expect(424);
        assert_eq!(refused.text("/code"), "profile_unreachable");
        assert!(!refused.text("/content").contains("127.0.0.1"), "{}", refused.json);
    }
    assert_eq!(app.sessions_made(), 0);
}

#[tokio::test]
async fn a27_a_number_is_never_cut_out_of_a_text() {
    let app = TestApp::new().await;
    for item in ["19-blue", "19 ", " 19", "19.0", "019", "+19", "1e1", "19\u{a0}", "１９"] {
        let reply = app.general_ucp().create(lines(item, 1)).await.expect(200);
        assert_eq!(reply.text("/ucp/status"), "error", "{item}: {}", reply.json);
    }
    app.general_ucp().create(lines("19", 1)).await.expect(201);
    let by_sku = app.general_ucp().create(lines("MUG-01", 1)).await.expect(201);
    assert_eq!(by_sku.text("/line_items/0/item/id"), "MUG-01");
}

#[tokio::test]
async fn a30_a_repeated_create_is_one_session() {
    let app = TestApp::new().await;
    for (one, two) in [
        (
            app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201).id(),
            app.ucp().key("k").create(lines("bouquet_roses", 1)).await.expect(201).id(),
        ),
        (
            app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201).id(),
            app.acp().key("k").create(acp_lines("bouquet_roses", 1, "usd")).await.expect(201).id(),
        ),
    ] {
        assert_eq!(one, two);
    }
    assert_eq!(app.sessions_made(), 2);
}

/// Requirements: A-030.
#[tokio::test]
async fn a31_a_new_key_buys_nothing_twice() {
    let app = TestApp::new().await;
    let (ucp, acp) =
        (app.ucp().ready("bouquet_roses", 1).await, app.acp().ready("bouquet_roses", 1, "usd").await);
    app.ucp().key("k1").complete(&ucp, "success_token").await.expect(200);
    let refused = app.ucp().key("k2").complete(&ucp, "success_token").await.expect(409);
    assert_eq!(refused.text("/code"), "invalid_state");
    app.acp().key("k1").complete(&acp, "spt_test_ok").await.expect(200);
    let refused = app.acp().key("k2").complete(&acp, "spt_test_ok").await.expect(405);
    assert_eq!(refused.text("/code"), "session_completed");
    assert!(app.ucp().get(&ucp).await.json["order"]["id"].is_string());
    assert_eq!(app.flower().orders().as_array().unwrap().len(), 2);
}
