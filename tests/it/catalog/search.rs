//! Search: inputs, pages, filters, what is offered, and that it can be bought.

use axum::{
    Json, Router,
    body::Body,
    http::{Method, Request},
    routing::get,
};
use serde_json::{Value, json};
use tillgate::platform::full_profile;

use super::{contents, ids, of};
use crate::support::{
    TestApp, Ucp,
    clients::{PROFILE, full},
    listen,
};

/// Requirements: U-130.
#[tokio::test]
async fn a_search_without_an_input_is_refused() {
    let app = TestApp::new().await;
    for body in [
        json!({}),
        json!({"query": "  "}),
        json!({"filters": {}}),
        json!({"filters": {"categories": []}}),
        json!({"filters": {"x.unknown": true}}),
        json!({"context": {"currency": "USD"}, "pagination": {"limit": 5}}),
    ] {
        let reply = app.ucp().search(body.clone()).await.expect(400);
        assert_eq!(reply.text("/code"), "invalid_request", "{body}");
        assert_eq!(reply.text("/messages/0/content"), reply.text("/content"));
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
    for body in [
        json!({"query": "roses"}),
        json!({"filters": {"categories": ["mugs"]}}),
        json!({"filters": {"price": {"min": 1}}, "context": {"currency": "USD"}}),
    ] {
        app.ucp().search(body).await.expect(200);
    }
}

/// Requirements: U-130, U-132, U-042, U-043.
#[tokio::test]
async fn odd_bodies_are_the_callers_fault() {
    let app = TestApp::new().await;
    for body in [
        json!({"query": 5}),
        json!({"query": "x".repeat(501)}),
        json!({"query": "x", "filters": []}),
        json!({"query": "x", "filters": {"categories": "mugs"}}),
        json!({"query": "x", "filters": {"categories": [1]}}),
        json!({"query": "x", "filters": {"price": 5}}),
        json!({"query": "x", "filters": {"price": {"min": "5"}}}),
        json!({"query": "x", "filters": {"price": {"max": -1}}}),
        json!({"query": "x", "filters": {"price": {"max": 1.5}}}),
        json!({"query": "x", "context": "US"}),
        json!({"query": "x", "attribution": {"a": 1}}),
        json!({"query": "x", "pagination": {"limit": 0}}),
        json!({"query": "x", "pagination": {"limit": -3}}),
        json!({"query": "x", "pagination": {"limit": "10"}}),
        json!({"query": "x", "pagination": {"cursor": "nonsense"}}),
        json!({"query": "x", "pagination": {"cursor": 7}}),
        json!([]),
    ] {
        let reply = app.ucp().search(body.clone()).await;
        assert_eq!((reply.status, reply.text("/code")), (400, "invalid_request"), "{body}");
    }
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
}

/// Requirements: U-131, U-133.
#[tokio::test]
async fn pages_of_ten_follow_one_another_without_gaps() {
    let app = TestApp::new().await;
    let first = app.ucp().search(json!({"query": "bouquet"})).await.expect(200);
    assert_eq!(ids(&first.json["products"]).len(), 10);
    assert_eq!(first.json["pagination"]["has_next_page"], true);
    assert_eq!(first.json["pagination"]["total_count"], 12);
    let cursor = first.text("/pagination/cursor");
    let body = json!({"query": "bouquet", "pagination": {"cursor": cursor}});
    let second = app.ucp().search(body).await.expect(200);
    assert_eq!(second.json["pagination"], json!({"has_next_page": false, "total_count": 12}));
    let mut all = ids(&first.json["products"]);
    all.extend(ids(&second.json["products"]));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12, "{all:?}");
    // A public test client has the cursor beside the query.
    let beside = app.ucp().search(json!({"query": "bouquet", "cursor": cursor})).await.expect(200);
    assert_eq!(beside.bytes, second.bytes);
}

/// Requirements: U-131.
#[tokio::test]
async fn a_cursor_goes_on_with_its_own_question_only() {
    let app = TestApp::new().await;
    let first = app.ucp().search(json!({"query": "bouquet", "pagination": {"limit": 5}})).await.expect(200);
    let cursor = first.text("/pagination/cursor");
    for body in [
        json!({"query": "rose", "pagination": {"cursor": cursor}}),
        json!({"query": "*", "pagination": {"cursor": cursor}}),
        json!({"query": "bouquet", "filters": {"categories": ["mugs"]}, "pagination": {"cursor": cursor}}),
    ] {
        let reply = app.ucp().search(body).await.expect(400);
        assert_eq!(reply.text("/messages/0/path"), "$.pagination.cursor");
    }
    // The size of the pages is that of the first.
    let body = json!({"query": "bouquet", "pagination": {"cursor": cursor, "limit": 7}});
    let second = app.ucp().search(body).await.expect(200);
    assert_eq!(ids(&second.json["products"]).len(), 5);
}

/// Requirements: U-132.
#[tokio::test]
async fn a_page_larger_than_we_serve_is_the_largest() {
    let app = TestApp::with(|settings| settings.catalog.page_size = 11).await;
    for limit in [json!(1000), json!(12), json!(9_007_199_254_740_991_u64)] {
        let reply = app.ucp().search(json!({"query": "bouquet", "pagination": {"limit": limit}})).await;
        assert_eq!(ids(&reply.expect(200).json["products"]).len(), 11);
    }
    let reply = app.ucp().search(json!({"query": "bouquet", "pagination": {"limit": 3.0}})).await.expect(200);
    assert_eq!(ids(&reply.json["products"]).len(), 3);
}

/// Requirements: U-135.
#[tokio::test]
async fn nothing_found_is_an_empty_list_and_no_word_more() {
    let app = TestApp::new().await;
    let reply = app.ucp().search(json!({"query": "zzz_no_such_product_zzz"})).await.expect(200);
    assert_eq!(reply.json["products"], json!([]));
    assert_eq!(reply.json["pagination"], json!({"has_next_page": false, "total_count": 0}));
    assert!(reply.json.get("messages").is_none());
}

/// Requirements: U-034, U-035, U-028.
#[tokio::test]
async fn answers_list_their_own_capability_only() {
    let app = TestApp::new().await;
    for root in ["/ucp", "/2026-04-08"] {
        let ucp = app.ucp().at(root);
        let search = ucp.search(json!({"query": "roses"})).await.expect(200);
        let lookup = ucp.lookup(&["bouquet_roses"]).await.expect(200);
        let product = ucp.product(json!({"id": "bouquet_roses"})).await.expect(200);
        let missing = ucp.product(json!({"id": "nothing"})).await.expect(200);
        for (reply, name, status) in [
            (&search, "dev.ucp.shopping.catalog.search", "success"),
            (&lookup, "dev.ucp.shopping.catalog.lookup", "success"),
            (&product, "dev.ucp.shopping.catalog.lookup", "success"),
            (&missing, "dev.ucp.shopping.catalog.lookup", "error"),
        ] {
            let capabilities = json!({name: [{"version": "2026-04-08"}]});
            let ucp = json!({"version": "2026-04-08", "status": status, "capabilities": capabilities});
            assert_eq!(reply.json["ucp"], ucp);
        }
    }
    let profile = app.get("/.well-known/ucp").await.expect(200);
    for name in ["dev.ucp.shopping.catalog.search", "dev.ucp.shopping.catalog.lookup"] {
        assert!(profile.json["ucp"]["capabilities"][name].is_array(), "{name}");
    }
}

/// Requirements: U-033, U-148.
#[tokio::test]
async fn a_platform_without_the_capability_is_told_so() {
    let mut profile = full_profile("2026-04-08", None);
    profile["ucp"]["capabilities"].as_object_mut().unwrap().remove("dev.ucp.shopping.catalog.lookup");
    let platform = Router::new().route("/p", get(async move || Json(profile)));
    let app = TestApp::new().await;
    let narrow = app.ucp().profile(&format!("{}/p", listen(platform).await));
    narrow.search(json!({"query": "roses"})).await.expect(200);
    for reply in
        [narrow.lookup(&["bouquet_roses"]).await, narrow.product(json!({"id": "bouquet_roses"})).await]
    {
        assert_eq!(reply.clone().expect(200).codes(), ["capabilities_incompatible"]);
        assert_eq!(reply.json["ucp"]["status"], "error");
    }
    let full = app.ucp();
    full.lookup(&["bouquet_roses"]).await.expect(200);
    full.product(json!({"id": "bouquet_roses"})).await.expect(200);
}

/// Requirements: U-134, U-152.
#[tokio::test]
async fn a_product_shows_price_picture_and_state() {
    let app = TestApp::new().await;
    let reply = app.ucp().search(json!({"query": "roses"})).await.expect(200);
    let roses = &reply.json["products"][0];
    let price = json!({"amount": 3500, "currency": "USD"});
    assert_eq!(roses["id"], "bouquet_roses");
    assert_eq!(roses["title"], "Bouquet of Red Roses");
    assert_eq!(roses["price_range"], json!({"min": price, "max": price}));
    assert_eq!(roses["media"][0]["type"], "image");
    let variant = &roses["variants"][0];
    assert_eq!((&variant["id"], &variant["sku"]), (&json!("bouquet_roses"), &json!("bouquet_roses")));
    assert_eq!(variant["price"], price);
    assert_eq!(variant["availability"], json!({"available": true, "status": "in_stock"}));
    let sold_out = app.ucp().search(json!({"query": "gardenias"})).await.expect(200);
    let state = &sold_out.json["products"][0]["variants"][0]["availability"];
    assert_eq!(*state, json!({"available": false, "status": "out_of_stock"}));
}

/// Requirements: U-152.
#[tokio::test]
async fn the_featured_variant_comes_first_and_can_be_had() {
    let app = TestApp::new().await;
    let reply = app.general_ucp().search(json!({"query": "t-shirt"})).await.expect(200);
    let tee = &reply.json["products"][0];
    assert_eq!(tee["id"], "26");
    assert_eq!(ids(&tee["variants"]), ["27", "28", "29", "30"]);
    assert_eq!(tee["variants"][0]["title"], "T-shirt - Red, Small");
    let euro = |amount: i64| json!({"amount": amount, "currency": "EUR"});
    assert_eq!(tee["price_range"], json!({"min": euro(1800), "max": euro(2200)}));
    assert_eq!(tee["list_price_range"], json!({"min": euro(2000), "max": euro(2200)}));
    let large_red = of(&tee["variants"], "29");
    assert_eq!((&large_red["price"], &large_red["list_price"]), (&euro(1800), &euro(2200)));
    let options = json!([{"name": "Size", "id": "large", "label": "Large"},
        {"name": "Colour", "id": "red", "label": "Red"}]);
    assert_eq!(large_red["options"], options);
}

#[tokio::test]
async fn what_cannot_be_bought_here_is_not_shown() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    let reply = general.search(json!({"query": "*", "pagination": {"limit": 50}})).await.expect(200);
    let shown = ids(&reply.json["products"]);
    // Grouped, external, without a price, draft.
    for absent in ["34", "35", "40", "41"] {
        assert!(!shown.contains(&absent), "{absent} in {shown:?}");
        let lookup = general.lookup(&[absent]).await.expect(200);
        assert_eq!(lookup.json["products"], json!([]), "{absent}");
        let product = general.product(json!({"id": absent})).await.expect(200);
        assert_eq!(product.codes(), ["not_found"], "{absent}");
    }
    for present in ["19", "22", "26", "31", "38"] {
        assert!(shown.contains(&present), "{present} in {shown:?}");
    }
}

#[tokio::test]
async fn a_lone_star_finds_everything() {
    let app = TestApp::new().await;
    let star = app.ucp().search(json!({"query": " * ", "pagination": {"limit": 50}})).await.expect(200);
    assert_eq!(ids(&star.json["products"]).len(), 15, "{:?}", ids(&star.json["products"]));
}

/// Requirements: U-150.
#[tokio::test]
async fn a_price_filter_counts_in_the_shops_currency_only() {
    let app = TestApp::new().await;
    let search = async |filter: Value, currency: Option<&str>| {
        let mut body = json!({"query": "bouquet", "filters": {"price": filter}, "pagination": {"limit": 50}});
        if let Some(currency) = currency {
            body["context"] = json!({"currency": currency});
        }
        app.ucp().search(body).await.expect(200)
    };
    let dear = search(json!({"min": 4000}), Some("usd")).await;
    let mut shown = ids(&dear.json["products"]);
    shown.sort_unstable();
    assert_eq!(shown, ["bouquet_bridal", "bouquet_hydrangeas", "bouquet_peonies"]);
    assert!(dear.json.get("messages").is_none());
    // Of a product with variants those remain that fit.
    let cheap = search(json!({"min": 2000, "max": 2000}), Some("USD")).await;
    assert_eq!(ids(&cheap.json["products"]), ["bouquet_mixed"]);
    assert_eq!(ids(&cheap.json["products"][0]["variants"]), ["bouquet_mixed_small"]);
    for currency in [Some("EUR"), Some("nonsense"), None] {
        let all = search(json!({"min": 4000}), currency).await;
        assert_eq!(ids(&all.json["products"]).len(), 12, "{currency:?}");
        assert_eq!(all.codes(), ["price_filter_ignored"]);
        assert_eq!(all.json["messages"][0]["type"], "info");
        assert!(contents(&all.json)[0].contains("USD"));
    }
    // Alone it is an input, even where it is left out.
    let alone = app.ucp().search(json!({"filters": {"price": {"min": 1}}})).await.expect(200);
    assert_eq!(alone.codes(), ["price_filter_ignored"]);
}

#[tokio::test]
async fn categories_are_found_by_the_values_that_products_show() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    let mug = general.lookup(&["19"]).await.expect(200);
    let value = mug.text("/products/0/categories/0/value").to_owned();
    assert_eq!(value, "mugs");
    let search = async |categories: Value| {
        let reply = general.search(json!({"filters": {"categories": categories}})).await.expect(200);
        let mut found: Vec<String> = ids(&reply.json["products"]).iter().map(|id| (*id).to_owned()).collect();
        found.sort();
        found
    };
    assert_eq!(search(json!([value])).await, ["19"]);
    assert_eq!(search(json!(["mugs", "food"])).await, ["19", "36"]);
    assert_eq!(search(json!(["Clothing", " "])).await, ["22", "26"]);
    assert!(search(json!(["no-such-thing"])).await.is_empty());
}

/// Requirements: U-095, U-058.
#[tokio::test]
async fn attribution_and_hints_change_nothing() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let plain = ucp.search(json!({"query": "bouquet"})).await.expect(200);
    for more in [
        json!({"attribution": {"utm_source": "x", "campaign": "y"}}),
        json!({"signals": {"dev.ucp.buyer_ip": "192.0.2.1"}}),
        json!({"context": {"address_country": "DE", "intent": "cheap", "language": "de", "eligibility": ["a.b"]}}),
    ] {
        let mut body = json!({"query": "bouquet"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = ucp.search(body).await.expect(200);
        assert_eq!(reply.bytes, plain.bytes, "{more}");
    }
}

#[tokio::test]
async fn keys_are_not_looked_at_and_request_ids_come_back() {
    let app = TestApp::new().await;
    let send = async |key: &str, query: &str| {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/ucp/catalog/search")
            .header("host", "127.0.0.1")
            .header("ucp-agent", format!("profile=\"{PROFILE}\""))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .header("request-id", "look-1");
        app.send(request.body(Body::from(json!({"query": query}).to_string())).unwrap()).await.expect(200)
    };
    let roses = send("one", "roses").await;
    let tulips = send("one", "tulips").await;
    assert_ne!(roses.bytes, tulips.bytes);
    send("no key at all", "roses").await;
    assert_eq!(roses.header("request-id"), Some("look-1"));
}

/// Requirements: U-018, U-045.
#[tokio::test]
async fn the_catalogue_is_asked_with_post_by_known_platforms_below_the_roots() {
    let app = TestApp::new().await;
    let get = Request::builder().uri("/ucp/catalog/search").header("host", "127.0.0.1");
    app.send(get.body(Body::empty()).unwrap()).await.expect(405);
    let nobody =
        Request::builder().method(Method::POST).uri("/ucp/catalog/search").header("host", "127.0.0.1");
    let reply = app.send(nobody.body(Body::from("{}")).unwrap()).await.expect(400);
    assert_eq!(reply.text("/code"), "invalid_profile_url");
    app.ucp().at("").search(json!({"query": "roses"})).await.expect(404);
}

/// What was bought of a variant, as the checkout shows it.
async fn in_a_checkout(ucp: &Ucp<'_>, variant: &Value) -> Value {
    let id = variant["id"].as_str().unwrap();
    let quantity = variant["metadata"]["min_quantity"].as_u64().unwrap_or(1);
    let body = json!({"line_items": [{"item": {"id": id}, "quantity": quantity}]});
    let reply = ucp.create(body).await.expect(201);
    assert_eq!(reply.json["line_items"].as_array().unwrap().len(), 1, "{id}: {}", reply.json);
    let item = reply.json["line_items"][0]["item"].clone();
    let checkout = reply.id();
    ucp.cancel(&checkout).await.expect(200);
    item
}

/// Requirements: U-073, U-149.
#[tokio::test]
async fn every_variant_shown_can_be_bought_at_its_price_and_by_its_name() {
    let app = TestApp::new().await;
    for (ucp, products) in [(app.ucp(), 15), (app.general_ucp(), 15)] {
        let reply = ucp.search(json!({"query": "*", "pagination": {"limit": 50}})).await.expect(200);
        let found = reply.json["products"].as_array().unwrap();
        assert!(found.len() >= products, "{:?}", ids(&reply.json["products"]));
        for product in found {
            for variant in product["variants"].as_array().unwrap() {
                if variant["availability"]["available"] == false {
                    let body = json!({"line_items": [{"item": {"id": variant["id"]}, "quantity": 1}]});
                    let reply = ucp.create(body).await.expect(200);
                    assert_eq!(reply.codes()[0], "out_of_stock", "{variant}");
                    continue;
                }
                let item = in_a_checkout(&ucp, variant).await;
                assert_eq!(item["id"], variant["id"]);
                assert_eq!(item["title"], variant["title"]);
                assert_eq!(item["price"], variant["price"]["amount"], "{item} {variant}");
            }
        }
    }
}

/// Requirements: U-149.
#[tokio::test]
async fn what_a_search_found_goes_through_to_an_order() {
    let app = TestApp::new().await;
    let ucp = app.ucp();
    let reply = ucp.search(json!({"query": "mixed seasonal"})).await.expect(200);
    let small = of(&reply.json["products"][0]["variants"], "bouquet_mixed_small");
    let id = ucp.create(full(small["id"].as_str().unwrap(), 1)).await.expect(201).id();
    let bought = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(bought.text("/status"), "completed");
    assert_eq!(bought.total("subtotal"), small["price"]["amount"]);
}
