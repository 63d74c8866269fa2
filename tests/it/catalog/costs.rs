//! What looking around costs the shop, and what happens when the shop cannot be asked.

use std::fmt::Write as _;

use axum::http::Method;
use serde_json::{Value, json};

use super::ids;
use crate::support::{Reply, TestApp, Ucp};

/// A shop, its agent, and the questions asked of it.
struct Column {
    name: &'static str,
    agent: fn(&TestApp) -> Ucp<'_>,
    /// Products, variants, article numbers of both, and something unknown.
    mixed: [&'static str; 10],
    variable: &'static str,
    /// A variant, by its id or article number.
    variant: &'static str,
}

const COLUMNS: [Column; 2] = [
    Column {
        name: "ids",
        agent: TestApp::general_ucp,
        mixed: ["19", "26", "29", "30", "MUG-01", "TEE", "TEE-L-RED", "SALE-01", "nothing", "22"],
        variable: "26",
        variant: "29",
    },
    Column {
        name: "SKUs",
        agent: TestApp::ucp,
        mixed: [
            "bouquet_roses",
            "bouquet_mixed",
            "bouquet_mixed_small",
            "107",
            "109",
            "101",
            "pot_ceramic",
            "gardenias",
            "nothing",
            "bouquet_lilies",
        ],
        variable: "bouquet_mixed",
        variant: "bouquet_mixed_large",
    },
];

/// What is asked, and how many calls each may take: cold, and asked again. Of ids with commas one more is asked for each time.
const PROMISED: [(&str, usize, usize); 7] = [
    ("search, 20 products", 2, 0),
    ("look-up of 10 mixed ids", 3, 0),
    ("product with variants", 2, 0),
    ("product by a variant seen before", 0, 0),
    ("product by a variant never seen", 3, 0),
    ("look-up of 10 mixed ids, 2 with commas", 4, 1),
    ("look-up of 50 ids with commas", 1, 1),
];

async fn ask(ucp: &Ucp<'_>, column: &Column, row: usize) -> Reply {
    match row {
        0 => ucp.search(json!({"query": "*", "pagination": {"limit": 20}})).await,
        1 => ucp.lookup(&column.mixed).await,
        2 => ucp.product(json!({"id": column.variable})).await,
        5 => {
            let mut ids = column.mixed;
            (ids[0], ids[9]) = ("one, two", "three,four");
            ucp.lookup(&ids).await
        }
        6 => {
            let ids: Vec<String> = (0..50).map(|n| format!("a,{n}")).collect();
            ucp.lookup(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await
        }
        _ => ucp.product(json!({"id": column.variant})).await,
    }
    .expect(200)
}

#[tokio::test]
async fn looking_around_calls_the_shop_no_more_often_than_promised() {
    let mut table = format!("{:<36}{:>9}{:>6}", "question", "promised", "again");
    for column in &COLUMNS {
        write!(table, "{:>8}{:>6}", column.name, "again").unwrap();
    }
    let mut broken = Vec::new();
    for (row, (question, cold, warm)) in PROMISED.into_iter().enumerate() {
        write!(table, "\n{question:<36}{cold:>9}{warm:>6}").unwrap();
        for column in &COLUMNS {
            let app = TestApp::new().await;
            let ucp = (column.agent)(&app);
            if row == 3 {
                ask(&ucp, column, 0).await;
            }
            app.shop_calls().await;
            let first = ask(&ucp, column, row).await;
            let calls = app.shop_calls().await;
            let second = ask(&ucp, column, row).await;
            let again = app.shop_calls().await;
            assert_eq!(first.bytes, second.bytes, "{question}");
            write!(table, "{:>8}{:>6}", calls.len(), again.len()).unwrap();
            if calls.len() > cold || again.len() > warm {
                broken.push(format!("{question}, {}: {calls:#?}, again {again:#?}", column.name));
            }
        }
    }
    println!("{table}");
    assert!(broken.is_empty(), "{broken:#?}\n{table}");
}

#[tokio::test]
async fn ten_thousand_products_cost_no_more_than_twenty() {
    let app = TestApp::new().await;
    app.flower().add_made_products(10_000);
    let ucp = app.ucp();
    let mut table = format!("{:<44}{:>6}{:>7}", "10 000 products", "calls", "again");
    for (question, path, body, most) in [
        ("search by words, 20 of 1 000", "search", json!({"query": "vase", "pagination": {"limit": 20}}), 2),
        ("everything, 50", "search", json!({"query": "*", "pagination": {"limit": 50}}), 2),
        (
            "a category, 50",
            "search",
            json!({"filters": {"categories": ["tools"]}, "pagination": {"limit": 50}}),
            3,
        ),
        (
            "a category, 50, categories known",
            "search",
            json!({"filters": {"categories": ["vessels"]}, "pagination": {"limit": 50}}),
            2,
        ),
        (
            "a price, 20",
            "search",
            json!({"filters": {"price": {"max": 900}}, "context": {"currency": "USD"}, "pagination": {"limit": 20}}),
            2,
        ),
        (
            "10 ids",
            "lookup",
            json!({"ids": ["made-00010", "made-00010-m", "made-09990", "made-09990-l", "made-00001", "made-05000",
                "100040", "bouquet_roses", "107", "made-99999"]}),
            3,
        ),
        ("one product with variants", "product", json!({"id": "made-07770"}), 2),
    ] {
        let path = format!("/catalog/{path}");
        let first = ucp.call(Method::POST, &path, Some(&body)).await.expect(200);
        let calls = app.shop_calls().await;
        let second = ucp.call(Method::POST, &path, Some(&body)).await.expect(200);
        let again = app.shop_calls().await;
        write!(table, "\n{question:<44}{:>6}{:>7}", calls.len(), again.len()).unwrap();
        assert!(calls.len() <= most && again.is_empty(), "{question}: {calls:#?}, again {again:#?}");
        assert_eq!(first.bytes, second.bytes);
        if let Some(limit) = body["pagination"]["limit"].as_u64() {
            assert_eq!(json!(ids(&first.json["products"]).len()), json!(limit), "{question}");
            assert_eq!(first.json["pagination"]["has_next_page"], true, "{question}");
        }
    }
    println!("{table}");
}

#[tokio::test]
async fn a_search_makes_its_products_known_by_id() {
    let app = TestApp::new().await;
    let general = app.general_ucp();
    general.search(json!({"query": "*", "pagination": {"limit": 50}})).await.expect(200);
    app.shop_calls().await;
    let reply = general.lookup(&["19", "26", "29"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["19", "26"]);
    general.product(json!({"id": "30"})).await.expect(200);
    assert_eq!(app.shop_calls().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_variation_whose_product_nobody_has_seen_costs_one_call_more() {
    let app = TestApp::new().await;
    let reply = app.general_ucp().lookup(&["19", "TEE-S-RED", "29", "nothing"]).await.expect(200);
    assert_eq!(ids(&reply.json["products"]), ["19", "26"]);
    assert_eq!(app.shop_calls().await.len(), 3, "the article number leads to the product");
    let app = TestApp::new().await;
    app.general_ucp().lookup(&["19", "MUG-01", "29"]).await.expect(200);
    assert_eq!(app.shop_calls().await.len(), 4, "nothing leads to it");
}

#[tokio::test]
async fn kept_answers_can_be_switched_off() {
    let app = TestApp::with(|settings| settings.catalog.cache_secs = 0).await;
    for _ in 0..2 {
        app.ucp().search(json!({"query": "roses"})).await.expect(200);
        assert_eq!(app.shop_calls().await.len(), 1);
        app.ucp().lookup(&["bouquet_roses"]).await.expect(200);
        assert!(!app.shop_calls().await.is_empty());
    }
}

#[tokio::test]
async fn fifty_who_ask_the_same_at_once_are_one_to_the_shop() {
    let app = TestApp::new().await;
    app.flower().set_fault("delay_ms=150").unwrap();
    let ucp = app.ucp();
    for (path, body, most) in [
        ("/catalog/search", json!({"query": "bouquet"}), 2),
        ("/catalog/lookup", json!({"ids": ["orchid_white", "102"]}), 2),
        ("/catalog/product", json!({"id": "gardenias"}), 1),
    ] {
        let all = (0..50).map(|_| ucp.call(Method::POST, path, Some(&body)));
        let replies = futures::future::join_all(all).await;
        let first = &replies[0].bytes;
        assert!(replies.iter().all(|reply| reply.status == 200 && reply.bytes == *first));
        let calls = app.shop_calls().await;
        assert!(calls.len() <= most, "{path}: {calls:#?}");
    }
}

/// Requirements: U-041.
#[tokio::test]
async fn a_shop_that_cannot_be_asked_is_a_503_and_not_remembered() {
    let app = TestApp::new().await;
    for fault in ["http_500", "maintenance", "limiter", "html"] {
        app.flower().set_fault(fault).unwrap();
        for (path, body) in questions() {
            let reply = app.ucp().call(Method::POST, path, Some(&body)).await.expect(503);
            assert_eq!(reply.text("/code"), "service_unavailable", "{fault} {path}");
            let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=3600).contains(&wait));
        }
        app.flower().clear_faults();
    }
    for (path, body) in questions() {
        app.ucp().call(Method::POST, path, Some(&body)).await.expect(200);
    }
}

fn questions() -> [(&'static str, Value); 3] {
    [
        ("/catalog/search", json!({"query": "bouquet"})),
        ("/catalog/lookup", json!({"ids": ["bouquet_roses", "107"]})),
        ("/catalog/product", json!({"id": "107"})),
    ]
}

/// Requirements: U-041.
#[tokio::test]
async fn who_waits_too_long_for_a_busy_shop_is_told_to_come_again() {
    let app = TestApp::with(|settings| {
        settings.catalog.calls = 1;
        settings.catalog.wait_secs = 1;
    })
    .await;
    app.flower().set_fault("delay_ms=800").unwrap();
    let ucp = app.ucp();
    let ucp = &ucp;
    let all = ["rose", "lily", "tulip", "pot"].map(|query| {
        let body = json!({"query": query});
        async move { ucp.call(Method::POST, "/catalog/search", Some(&body)).await }
    });
    let replies = futures::future::join_all(all).await;
    let busy: Vec<&Reply> = replies.iter().filter(|reply| reply.status != 200).collect();
    assert!((1..4).contains(&busy.len()), "one after another, a second's wait: {}", busy.len());
    for reply in busy {
        assert_eq!((reply.status, reply.text("/code")), (503, "service_unavailable"));
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
}

#[tokio::test]
async fn what_one_shop_sells_is_not_found_in_another() {
    let app = TestApp::new().await;
    app.general_ucp().lookup(&["MUG-01"]).await.expect(200);
    let reply = app.ucp().lookup(&["MUG-01"]).await.expect(200);
    assert_eq!(reply.json["products"], json!([]));
    let reply = app.ucp().search(json!({"query": "mug"})).await.expect(200);
    assert_eq!(reply.json["products"], json!([]));
}
