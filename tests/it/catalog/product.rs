//! One product closely: its options, and what a choice leads to.

use serde_json::{Value, json};

use super::ids;
use crate::support::TestApp;

async fn tee(app: &TestApp, more: Value) -> Value {
    let mut body = json!({"id": "26"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    app.general_ucp().product(body).await.expect(200).json["product"].clone()
}

fn choice(name: &str, label: &str) -> Value {
    json!({"name": name, "label": label})
}

/// `exists` and `available` of a value.
#[track_caller]
fn signals(product: &Value, axis: &str, label: &str) -> (bool, bool) {
    let axis = product["options"].as_array().unwrap().iter().find(|option| option["name"] == axis).unwrap();
    let value = axis["values"].as_array().unwrap().iter().find(|value| value["label"] == label).unwrap();
    (value["exists"].as_bool().unwrap(), value["available"].as_bool().unwrap())
}

fn labels(product: &Value) -> Vec<(&str, &str)> {
    let selected = product["selected"].as_array().unwrap();
    selected.iter().map(|s| (s["name"].as_str().unwrap(), s["label"].as_str().unwrap())).collect()
}

/// Requirements: U-144, U-152.
#[tokio::test]
async fn without_a_choice_the_featured_variant_is_the_choice() {
    let app = TestApp::new().await;
    let product = tee(&app, json!({})).await;
    assert_eq!(ids(&product["variants"]), ["27", "28", "29", "30"]);
    assert_eq!(labels(&product), [("Size", "Small"), ("Colour", "Red")]);
    assert_eq!(signals(&product, "Colour", "Blue"), (true, false), "small and blue is sold out");
    assert_eq!(signals(&product, "Size", "Large"), (true, true));
}

/// Requirements: U-145, U-144.
#[tokio::test]
async fn a_choice_narrows_and_every_other_value_says_what_it_would_lead_to() {
    let app = TestApp::new().await;
    let product = tee(&app, json!({"selected": [choice("colour", "blue")]})).await;
    assert_eq!(labels(&product), [("Colour", "Blue")]);
    assert_eq!(ids(&product["variants"]), ["30", "28"], "what can be had comes first");
    assert_eq!(signals(&product, "Size", "Small"), (true, false));
    assert_eq!(signals(&product, "Size", "Large"), (true, true));
    assert_eq!(signals(&product, "Colour", "Red"), (true, true));
    let both = tee(&app, json!({"selected": [choice("Colour", "Red"), choice("Size", "Large")]})).await;
    assert_eq!(ids(&both["variants"]), ["29"]);
    assert_eq!(labels(&both), [("Size", "Large"), ("Colour", "Red")]);
}

/// Requirements: U-146.
#[tokio::test]
async fn an_impossible_choice_is_relaxed_from_the_end_of_the_preferences() {
    let app = TestApp::new().await;
    let green = [choice("Size", "Large"), choice("Colour", "Green")];
    for (preferences, kept) in [
        (json!(["Size", "Colour"]), vec![("Size", "Large")]),
        // Size goes first, but green is still nowhere.
        (json!(["Colour", "Size"]), vec![("Size", "Small"), ("Colour", "Red")]),
        (json!([]), vec![("Size", "Large")]),
    ] {
        let product = tee(&app, json!({"selected": green, "preferences": preferences})).await;
        assert_eq!(labels(&product), kept, "{preferences}");
    }
    let dear = json!({"selected": [choice("Colour", "Red"), choice("Size", "Large")], "preferences": ["Colour", "Size"],
        "filters": {"price": {"min": 1900}}, "context": {"currency": "EUR"}});
    let product = tee(&app, dear).await;
    assert_eq!(labels(&product), [("Colour", "Red")], "large and red costs 18.00");
    assert_eq!(ids(&product["variants"]), ["27"]);
}

/// Requirements: U-143.
#[tokio::test]
async fn the_id_of_a_variant_outweighs_the_options() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    for id in ["28", "TEE-S-BLUE"] {
        let body = json!({"id": id, "selected": [choice("Colour", "Red"), choice("Size", "Large")]});
        let product = general.product(body).await.expect(200).json["product"].clone();
        assert_eq!(product["id"], "26");
        assert_eq!(product["variants"][0]["id"], "28");
        assert_eq!(labels(&product), [("Size", "Small"), ("Colour", "Blue")]);
        assert_eq!(signals(&product, "Size", "Large"), (true, true));
    }
    let roses = app.ucp().product(json!({"id": "bouquet_roses"})).await.expect(200);
    assert_eq!(ids(&roses.json["product"]["variants"]), ["bouquet_roses"]);
    assert!(roses.json["product"].get("selected").is_none(), "nothing can be chosen");
}

/// Requirements: U-153.
#[tokio::test]
async fn a_value_is_known_by_its_id_whatever_its_label() {
    let app = TestApp::new().await;
    let odd = json!({"name": "Colour", "id": "blue", "label": "Midnight"});
    let product = tee(&app, json!({"selected": [odd]})).await;
    assert_eq!(product["selected"], json!([{"name": "Colour", "id": "blue", "label": "Blue"}]));
    let crossed = json!({"name": "Colour", "id": "red", "label": "Blue"});
    let product = tee(&app, json!({"selected": [crossed]})).await;
    assert_eq!(labels(&product), [("Colour", "Red")]);
}

/// Requirements: U-147.
#[tokio::test]
async fn an_unknown_id_is_an_outcome() {
    let app = TestApp::new().await;
    for id in ["nothing", "999999", "42-blue"] {
        let reply = app.general_ucp().product(json!({ "id": id })).await.expect(200);
        assert_eq!(reply.text("/ucp/status"), "error");
        assert_eq!(
            (reply.codes(), reply.text("/messages/0/severity")),
            (vec!["not_found".into()], "unrecoverable")
        );
        assert!(reply.json.get("product").is_none());
    }
}

#[tokio::test]
async fn texts_are_plain() {
    let app = TestApp::new().await;
    let reply = app.general_ucp().product(json!({"id": "37"})).await.expect(200);
    let product = &reply.json["product"];
    assert_eq!(product["title"], "Zażółć gęślą jaźń – “mug” & Tee 🎁");
    let text = product["description"]["plain"].as_str().unwrap();
    assert!(text.starts_with("Long description ") && text.contains("5 < 6"), "{text}");
    assert!(!text.contains("<p>") && !text.contains("&amp;") && !text.contains("&nbsp;"), "{text}");
    let listed = app.general_ucp().lookup(&["37"]).await.expect(200);
    assert_eq!(listed.text("/products/0/description/plain"), "Opis & krótki", "lists show the short text");
}

#[tokio::test]
async fn odd_questions_are_the_callers_fault() {
    let app = TestApp::new().await;
    for body in [
        json!({}),
        json!({"id": 26}),
        json!({"id": ""}),
        json!({"id": "26", "selected": {}}),
        json!({"id": "26", "selected": [{"name": "Size"}]}),
        json!({"id": "26", "selected": [{"label": "Large"}]}),
        json!({"id": "26", "preferences": ["Size", 1]}),
    ] {
        let reply = app.general_ucp().product(body.clone()).await;
        assert_eq!((reply.status, reply.text("/code")), (400, "invalid_request"), "{body}");
    }
}
