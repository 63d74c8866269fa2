//! Look-ups: what ids stand for, and what is said of each.

use axum::http::Method;
use serde_json::{Value, json};

use super::{contents, ids, of};
use crate::support::TestApp;

/// Requirements: U-136, U-138.
#[tokio::test]
async fn ids_of_products_and_variants_and_article_numbers_all_work() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    let reply = general.lookup(&["19", "26", "29", "TEE-L-BLUE", "SALE-01"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["19", "26", "23"]);
    assert!(reply.json.get("messages").is_none());
    let tee = of(&reply.json["products"], "26");
    assert_eq!(ids(&tee["variants"]), ["27", "29", "30"]);
    let inputs: Vec<&Value> = tee["variants"].as_array().unwrap().iter().map(|v| &v["inputs"]).collect();
    assert_eq!(*inputs[0], json!([{"id": "26", "match": "featured"}]));
    assert_eq!(*inputs[1], json!([{"id": "29", "match": "exact"}]));
    assert_eq!(*inputs[2], json!([{"id": "TEE-L-BLUE", "match": "exact"}]));
    let notebook = &of(&reply.json["products"], "23")["variants"][0];
    assert_eq!(notebook["inputs"], json!([{"id": "SALE-01", "match": "exact"}]));
}

/// Requirements: U-136.
#[tokio::test]
async fn where_article_numbers_are_the_ids_numbers_work_too() {
    let app = TestApp::new().await;
    let reply = app.ucp().lookup(&["101", "bouquet_mixed", "109", "bouquet_mixed_large"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["bouquet_roses", "bouquet_mixed"]);
    let mixed = of(&reply.json["products"], "bouquet_mixed");
    let variants = ["bouquet_mixed_small", "bouquet_mixed_medium", "bouquet_mixed_large"];
    assert_eq!(ids(&mixed["variants"]), variants);
    assert_eq!(mixed["variants"][1]["inputs"], json!([{"id": "109", "match": "exact"}]));
}

/// Requirements: U-137.
#[tokio::test]
async fn repeated_ids_and_ids_of_one_product_give_it_once() {
    let app = TestApp::new().await;
    let reply = app.general_ucp().lookup(&["26", "26", "27", "TEE-S-RED", "27"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["26"]);
    let variants = reply.json["products"][0]["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 1);
    let inputs = json!([{"id": "26", "match": "featured"}, {"id": "27", "match": "exact"},
        {"id": "TEE-S-RED", "match": "exact"}]);
    assert_eq!(variants[0]["inputs"], inputs);
}

/// Requirements: U-138.
#[tokio::test]
async fn variants_that_nobody_asked_for_do_not_appear() {
    let app = TestApp::new().await;
    let reply = app.general_ucp().lookup(&["28"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["26"]);
    assert_eq!(ids(&reply.json["products"][0]["variants"]), ["28"]);
    assert_eq!(reply.json["products"][0]["variants"][0]["availability"]["status"], "out_of_stock");
}

/// Requirements: U-141, U-139.
#[tokio::test]
async fn unknown_ids_shorten_the_list_and_are_named() {
    let app = TestApp::new().await;
    let asked = ["19", "nothing", "999999", "42-blue", "plain-mug", "MUG", "019", "20", "21", "22"];
    let reply = app.general_ucp().lookup(&asked).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["19", "20", "21", "22"]);
    assert_eq!(contents(&reply.json), ["nothing", "999999", "42-blue", "plain-mug", "MUG", "019"]);
    for message in reply.json["messages"].as_array().unwrap() {
        assert_eq!((&message["type"], &message["code"]), (&json!("info"), &json!("not_found")));
    }
    let none = app.general_ucp().lookup(&["nothing"]).await.expect(200);
    assert_eq!((&none.json["products"], none.text("/ucp/status")), (&json!([]), "success"));
}

/// Requirements: U-139, U-140.
#[tokio::test]
async fn ten_ids_are_fine_and_too_many_are_refused() {
    let app = TestApp::with(|settings| settings.catalog.ids = 12).await;
    let ids: Vec<String> = (0..13).map(|n| format!("id-{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    app.ucp().lookup(&ids[..12]).await.expect(200);
    app.shop_calls().await;
    let reply = app.ucp().lookup(&ids).await.expect(400);
    assert_eq!((reply.text("/code"), reply.codes()), ("request_too_large", vec!["request_too_large".into()]));
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
}

#[tokio::test]
async fn of_ids_with_commas_one_is_looked_for_and_the_others_may_be_asked_again() {
    let app = TestApp::new().await;
    let reply = app.ucp().lookup(&["a,b", "bouquet_roses", "c,d", "e,f"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["bouquet_roses"]);
    assert_eq!(contents(&reply.json), ["a,b", "c,d", "e,f"]);
    app.shop_calls().await;
    app.ucp().lookup(&["c,d"]).await.expect(200);
    assert_eq!(app.shop_calls().await.len(), 1, "it was not held unknown");
}

#[tokio::test]
async fn categories_mean_the_same_in_searches_and_look_ups() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    for (value, found) in [("clothing", vec!["22", "26"]), ("17", vec![]), ("nothing", vec![])] {
        let filters = json!({"categories": [value]});
        let searched = general.search(json!({"filters": filters})).await.expect(200);
        let mut shown = ids(&searched.json["products"]);
        shown.sort_unstable();
        assert_eq!(shown, found, "{value}");
        let body = json!({"ids": ["19", "22", "26"], "filters": filters});
        let looked = general.call(Method::POST, "/catalog/lookup", Some(&body)).await.expect(200);
        assert_eq!(ids(&looked.json["products"]), found, "{value}");
    }
}

/// Requirements: U-142.
#[tokio::test]
async fn filters_take_away_from_what_was_found() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    let lookup = async |ids: Value, filters: Value| {
        let body = json!({"ids": ids, "filters": filters, "context": {"currency": "EUR"}});
        general.call(Method::POST, "/catalog/lookup", Some(&body)).await.expect(200).json
    };
    let cheap = lookup(json!(["19", "20"]), json!({"price": {"max": 2000}})).await;
    assert_eq!(ids(&cheap["products"]), ["19"]);
    assert!(cheap.get("messages").is_none(), "what was found is not unknown: {cheap}");
    let clothes = lookup(json!(["19", "22", "26"]), json!({"categories": ["Clothing ", "x"]})).await;
    assert_eq!(ids(&clothes["products"]), ["22", "26"]);
    // The featured variant is the first that fits.
    let dear = lookup(json!(["26", "27"]), json!({"price": {"min": 2100}, "x.y": 1})).await;
    assert_eq!(ids(&dear["products"][0]["variants"]), ["30"]);
    assert_eq!(dear["products"][0]["variants"][0]["inputs"], json!([{"id": "26", "match": "featured"}]));
}

#[tokio::test]
async fn odd_look_ups_are_the_callers_fault() {
    let app = TestApp::new().await;
    for body in [
        json!({}),
        json!({"ids": []}),
        json!({"ids": "19"}),
        json!({"ids": [19]}),
        json!({"ids": ["19", ""]}),
        json!({"ids": [null]}),
        json!({"ids": ["19"], "filters": 1}),
    ] {
        let reply = app.ucp().call(Method::POST, "/catalog/lookup", Some(&body)).await;
        assert_eq!((reply.status, reply.text("/code")), (400, "invalid_request"), "{body}");
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
}
