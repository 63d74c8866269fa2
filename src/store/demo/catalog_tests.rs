//! The catalogue of the flower shop, and what is made up for a large one.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use chrono::{TimeZone as _, Utc};
use serde_json::Value;
use tower::ServiceExt as _;

use super::{DemoShop, Seed, router};
use crate::clock::ManualClock;

fn shop(made: usize) -> Router {
    let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()));
    let flower = DemoShop::open(Seed::Flower, None, clock.clone()).unwrap();
    flower.add_made_products(made);
    router(flower, DemoShop::open(Seed::General, None, clock).unwrap())
}

/// A list below `products`: its total and its items.
async fn list(shop: &Router, query: &str) -> (usize, Vec<Value>) {
    let request = Request::builder().uri(format!("/wp-json/wc/store/v1/products?{query}"));
    let answer = shop.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200, "{query}");
    let total = answer.headers()["x-wp-total"].to_str().unwrap().parse().unwrap();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (total, serde_json::from_slice(&body).unwrap())
}

async fn refused(shop: &Router, query: &str) -> String {
    let request = Request::builder().uri(format!("/wp-json/wc/store/v1/products?{query}"));
    let answer = shop.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 400, "{query}");
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["code"], "rest_invalid_param");
    body["message"].as_str().unwrap().to_owned()
}

fn texts(items: &[Value], name: &str) -> Vec<String> {
    items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn made_products_stand_beside_the_flowers_and_are_the_same_each_time() {
    let (plain, full, again) = (shop(0), shop(200), shop(200));
    let (flowers, _) = list(&plain, "per_page=1").await;
    assert_eq!(list(&full, "per_page=1").await.0, flowers + 200);
    assert_eq!(list(&full, "search=bouquet").await.0, 12, "the flower shop's own");
    let (_, page) = list(&full, "search=made-&per_page=100&orderby=id&order=asc").await;
    assert_eq!(page, list(&again, "search=made-&per_page=100&orderby=id&order=asc").await.1);
    let mut skus = texts(&list(&full, "per_page=0").await.1, "sku");
    skus.extend(texts(&list(&full, "type=variation&per_page=0").await.1, "sku"));
    assert_eq!(skus.len(), flowers + 200 + 3 + 60);
    assert_eq!(skus.iter().collect::<BTreeSet<_>>().len(), skus.len(), "every SKU once");
}

#[tokio::test]
async fn a_made_product_with_sizes_can_be_read_like_any_other() {
    let shop = shop(20);
    let (_, found) = list(&shop, "sku=made-00010").await;
    assert_eq!(found[0]["type"], "variable");
    let (total, sizes) = list(&shop, &format!("type=variation&parent={}", found[0]["id"])).await;
    assert_eq!(total, 3);
    assert_eq!(texts(&sizes, "sku"), ["made-00010-l", "made-00010-m", "made-00010-s"]);
    assert_eq!(found[0]["prices"]["price_range"]["min_amount"], sizes[2]["prices"]["price"]);
}

#[tokio::test]
async fn filters_narrow_a_list_down_and_add_up() {
    let shop = shop(200);
    let (all, _) = list(&shop, "category=tools").await;
    assert!(all > 0 && all < 200);
    let (cheap, items) =
        list(&shop, "category=tools&max_price=5000&per_page=100&orderby=price&order=asc").await;
    let prices: Vec<u64> =
        items.iter().map(|item| item["prices"]["price"].as_str().unwrap().parse().unwrap()).collect();
    assert!(prices.is_sorted() && prices.iter().all(|price| *price <= 5000), "{prices:?}");
    let (dear, _) = list(&shop, "category=tools&min_price=5001").await;
    // A product in sizes may lie on both sides.
    assert!(cheap + dear >= all, "{cheap} + {dear} of {all}");
    let (others, _) = list(&shop, "category=tools&category_operator=not_in").await;
    let (whole, _) = list(&shop, "per_page=1").await;
    assert_eq!(all + others, whole);
    let (out, items) = list(&shop, "stock_status[]=outofstock&per_page=100&_fields=is_in_stock").await;
    assert!(out > 0 && items.iter().all(|item| item["is_in_stock"] == false));
    let (small, _) = list(&shop, "attributes[0][attribute]=pa_size&attributes[0][slug]=small").await;
    assert_eq!(small, 21, "twenty made ones and the mixed bouquet");
}

#[tokio::test]
async fn pages_cover_a_list_without_gaps() {
    let shop = shop(45);
    let (total, all) = list(&shop, "per_page=100&_fields=id").await;
    let mut paged = Vec::new();
    for page in 1..=total.div_ceil(7) {
        paged.extend(list(&shop, &format!("per_page=7&page={page}&_fields=id")).await.1);
    }
    assert_eq!(paged, all);
}

#[tokio::test]
async fn a_wrong_parameter_is_named() {
    let shop = shop(0);
    for (query, name) in [
        ("type=flower", "type"),
        ("stock_status[]=gone", "stock_status"),
        ("order=up", "order"),
        ("include=one", "include"),
        ("on_sale=perhaps", "on_sale"),
        ("per_page=many", "per_page"),
        ("after=yesterday", "after"),
    ] {
        assert_eq!(refused(&shop, query).await, format!("Invalid parameter(s): {name}"));
    }
}
