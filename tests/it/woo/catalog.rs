//! The catalogue of a shop: what is asked of it, and what is made of odd answers.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tillgate::{
    catalog::{Bounds, Branch, Catalog, Choice, Filter, Query, Shelf as _, VariantsShown, Wish},
    checkout::{
        ids::ProductId,
        store::{Effect, Error, Resolved, Store as _},
    },
    money::Currency,
    store::woo::{ItemIds, Settings, WooStore},
};

use super::stub::{Asked, Say, Stub};

fn product(id: u64, kind: &str) -> Value {
    json!({
        "id": id, "name": format!("Thing {id}"), "slug": format!("thing-{id}"), "parent": 0, "type": kind,
        "permalink": format!("https://shop.example/thing-{id}/"), "sku": format!("T-{id}"),
        "short_description": "", "description": "", "images": [], "categories": [], "tags": [],
        "prices": prices(1000, 2), "average_rating": "0", "review_count": 0, "attributes": [], "variations": [],
        "is_purchasable": true, "is_in_stock": true, "is_on_backorder": false, "low_stock_remaining": null,
    })
}

fn prices(price: i64, decimals: u32) -> Value {
    let price = price.to_string();
    json!({"price": price, "regular_price": price, "sale_price": price, "price_range": null,
        "currency_code": "EUR", "currency_minor_unit": decimals})
}

/// A product with so many variations, numbered from `first`.
fn variable(id: u64, first: u64, count: u64) -> Value {
    let mut product = product(id, "variable");
    let terms = (0..count).map(|n| json!({"id": n, "name": format!("No {n}"), "slug": format!("no-{n}")}));
    product["attributes"] = json!([{"id": 1, "name": "Kind", "taxonomy": "pa_kind", "has_variations": true,
        "terms": terms.collect::<Value>()}]);
    product["variations"] = (0..count)
        .map(|n| json!({"id": first + n, "attributes": [{"name": "Kind", "value": format!("no-{n}")}]}))
        .collect();
    product
}

fn variation(id: u64, parent: u64) -> Value {
    let mut variation = product(id, "variation");
    variation["parent"] = json!(parent);
    variation
}

fn list(products: &[Value]) -> Say {
    Say::new(200, Value::from(products).to_string())
        .header("X-WP-Total", &products.len().to_string())
        .header("X-WP-TotalPages", "1")
}

fn query() -> Query {
    Query { text: Some("thing".into()), filter: Filter::default(), page: 1, limit: 20 }
}

fn priced(min: Option<i64>, max: Option<i64>) -> Query {
    Query { filter: Filter { price: Bounds { min, max }, ..Filter::default() }, ..query() }
}

async fn shop(ids: ItemIds, says: impl IntoIterator<Item = Say>) -> (Stub, WooStore) {
    let (stub, base) = Stub::start(says).await;
    let settings = Settings { item_ids: ids, ..Settings::new(base, Currency::parse("EUR").unwrap()) };
    (stub, WooStore::new(settings).unwrap())
}

fn texts(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn included(asked: &Asked) -> Vec<&str> {
    asked.get("include").unwrap().split(',').collect()
}

#[tokio::test]
async fn a_hundred_variations_are_dealt_out_in_turns() {
    let products =
        [variable(1, 1000, 250), variable(2, 2000, 3), product(3, "simple"), variable(4, 4000, 60)];
    // The shop brings what it is asked for: 250 + 3 + 60 variations share a hundred places.
    let wanted = (0..49).map(|n| variation(1000 + n, 1));
    let wanted = wanted.chain((0..3).map(|n| variation(2000 + n, 2)));
    let wanted: Vec<Value> = wanted.chain((0..48).map(|n| variation(4000 + n, 4))).collect();
    let (stub, shop) = shop(ItemIds::Id, [list(&products), list(&wanted)]).await;
    let page = shop.search(&query(), &[]).await.unwrap();
    let asked = stub.asked();
    assert_eq!((asked[1].get("type"), asked[1].get("per_page")), (Some("variation"), Some("100")));
    let ids = included(&asked[1]);
    assert_eq!(ids.len(), 100);
    assert_eq!(ids[..6], ["1000", "2000", "4000", "1001", "2001", "4001"]);
    let shown: Vec<_> = page.products.iter().map(|p| (p.id.as_str(), p.variants.len(), p.shown)).collect();
    assert_eq!(
        shown,
        [
            ("1", 49, VariantsShown::Some { of: 250 }),
            ("2", 3, VariantsShown::All),
            ("3", 1, VariantsShown::All),
            ("4", 48, VariantsShown::Some { of: 60 }),
        ]
    );
}

#[tokio::test]
async fn a_product_asked_for_alone_brings_as_many_as_one_list_holds() {
    let hundred: Vec<Value> = (0..100).map(|n| variation(1000 + n, 1)).collect();
    let one = Say::new(200, variable(1, 1000, 250).to_string());
    let (stub, shop) = shop(ItemIds::Id, [one, list(&hundred)]).await;
    let found = shop.find(&texts(&["1"])).await.unwrap();
    assert_eq!(stub.asked()[0].path, "/wp-json/wc/store/v1/products/1");
    let product = &found[0].as_ref().unwrap().product;
    assert_eq!((product.variants.len(), product.shown), (100, VariantsShown::Most { of: 250 }));
}

#[tokio::test]
async fn bounds_are_sent_in_the_decimals_that_the_shop_counts_in() {
    // Whole euros: the shop is asked for the wider range.
    let mut whole = product(1, "simple");
    whole["prices"] = prices(10, 0);
    let (stub, shop_) = shop(ItemIds::Id, [list(&[whole.clone()]), list(&[whole.clone()]), list(&[])]).await;
    let page = shop_.search(&priced(Some(950), Some(1050)), &[]).await.unwrap();
    assert_eq!(page.products[0].prices.min.minor(), 1000);
    shop_.search(&priced(Some(1000), None), &[]).await.unwrap();
    let asked = stub.asked();
    assert_eq!((asked[0].get("min_price"), asked[0].get("max_price")), (Some("950"), Some("1050")));
    assert_eq!((asked[1].get("min_price"), asked[1].get("max_price")), (Some("9"), Some("11")));
    assert_eq!((asked[2].get("min_price"), asked[2].get("max_price")), (Some("10"), None));
    // Nothing fits and nothing was seen before: one more look tells how the shop counts.
    let (stub, shop_) = shop(ItemIds::Id, [list(&[]), list(&[whole.clone()]), list(&[whole])]).await;
    let page = shop_.search(&priced(Some(1000), None), &[]).await.unwrap();
    assert_eq!((page.products.len(), stub.asked()[2].get("min_price")), (1, Some("10")));
}

#[tokio::test]
async fn words_find_what_may_be_found_and_lists_show_what_may_be_listed() {
    let (stub, shop) = shop(ItemIds::Id, [list(&[]), list(&[])]).await;
    shop.search(&query(), &[]).await.unwrap();
    let filter = Filter { categories: texts(&["cut-flowers", "pots"]), ..Filter::default() };
    let of_categories = Query { text: None, filter, page: 3, limit: 7 };
    shop.search(&of_categories, &texts(&["16", "21"])).await.unwrap();
    let asked = stub.asked();
    assert_eq!((asked[0].get("search"), asked[0].get("catalog_visibility")), (Some("thing"), Some("search")));
    assert_eq!((asked[1].get("search"), asked[1].get("catalog_visibility")), (None, Some("catalog")));
    assert_eq!(asked[1].get("category"), Some("16,21"));
    assert_eq!((asked[1].get("page"), asked[1].get("per_page")), (Some("3"), Some("7")));
    assert!(
        asked.iter().all(|asked| asked.get("_fields").is_some_and(|fields| !fields.contains("extensions")))
    );
}

#[tokio::test]
async fn one_odd_product_does_not_hide_the_others() {
    let mut odd = product(1, "simple");
    odd["prices"] = json!("none");
    let mut lossy = product(2, "simple");
    lossy["prices"] = prices(10_005, 3);
    let fine = product(3, "simple");
    let (_stub, shop_) = shop(ItemIds::Id, [list(&[odd.clone(), lossy, fine])]).await;
    let page = shop_.search(&query(), &[]).await.unwrap();
    assert_eq!(page.products.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["3"]);
    assert_eq!((page.total, page.more), (Some(3), false));
    let (_stub, shop_) = shop(ItemIds::Id, [list(&[odd])]).await;
    let error = shop_.search(&query(), &[]).await.unwrap_err();
    assert!(
        matches!(error, Error::Unintelligible { wrote: false, .. }) && error.effect() == Effect::Definite
    );
}

#[tokio::test]
async fn a_number_with_two_owners_names_nothing() {
    let twins = [json!({"sku": "SAME"}), json!({"sku": "SAME"})];
    let twins: Vec<Value> = twins
        .into_iter()
        .zip([1, 2])
        .map(|(sku, id)| {
            let mut product = product(id, "simple");
            product["sku"] = sku["sku"].clone();
            product
        })
        .collect();
    let (_stub, shop_) = shop(ItemIds::Sku, [list(&twins)]).await;
    assert_eq!(shop_.find(&texts(&["SAME"])).await.unwrap(), [None]);
    let (_stub, shop_) = shop(ItemIds::Sku, [list(&twins), list(&[])]).await;
    let page = shop_.search(&query(), &[]).await.unwrap();
    assert_eq!(page.products.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
}

#[tokio::test]
async fn only_not_found_means_not_found() {
    let gone = Say::new(404, r#"{"code":"woocommerce_rest_product_invalid_id","data":{"status":404}}"#);
    let (_stub, shop_) = shop(ItemIds::Id, [gone]).await;
    assert_eq!(shop_.find(&texts(&["7"])).await.unwrap(), [None]);
    for (status, body) in [
        (404, r#"{"code":"rest_no_route","data":{"status":404}}"#),
        (404, "<html>no such page</html>"),
        (403, "<html>firewall</html>"),
        (500, r#"{"code":"internal_server_error"}"#),
    ] {
        let (_stub, shop_) = shop(ItemIds::Id, [Say::new(status, body)]).await;
        assert!(shop_.find(&texts(&["7"])).await.is_err(), "{status} {body}");
    }
}

#[tokio::test]
async fn more_pages_are_told_with_and_without_counting_headers() {
    let two = [product(1, "simple"), product(2, "simple")];
    let counted = Say::new(200, Value::from(&two[..]).to_string())
        .header("X-WP-Total", "5")
        .header("X-WP-TotalPages", "3");
    let bare = Say::new(200, Value::from(&two[..]).to_string());
    let (_stub, shop) = shop(ItemIds::Id, [counted.clone(), counted, bare.clone(), bare]).await;
    let asked = |page, limit| Query { page, limit, ..query() };
    let first = shop.search(&asked(1, 2), &[]).await.unwrap();
    assert_eq!((first.total, first.more), (Some(5), true));
    assert!(!shop.search(&asked(3, 2), &[]).await.unwrap().more);
    let full = shop.search(&asked(1, 2), &[]).await.unwrap();
    assert_eq!((full.total, full.more), (None, true));
    assert!(!shop.search(&asked(1, 3), &[]).await.unwrap().more);
}

/// A product with this article number.
fn with_sku(id: u64, kind: &str, sku: &str) -> Value {
    let mut product = product(id, kind);
    product["sku"] = json!(sku);
    product
}

fn shown(page: &tillgate::catalog::Page) -> Vec<&str> {
    page.products.iter().map(|product| product.id.as_str()).collect()
}

#[tokio::test]
async fn a_number_that_is_another_products_article_number_is_not_offered() {
    let page = [with_sku(1001, "simple", ""), with_sku(1002, "simple", ""), with_sku(3, "simple", "T-3")];
    let other = with_sku(7, "simple", "1001");
    let (stub, shop) = shop(ItemIds::Sku, [list(&page), list(&[other])]).await;
    assert_eq!(shown(&shop.search(&query(), &[]).await.unwrap()), ["1002", "T-3"]);
    assert_eq!(stub.asked()[1].get("sku"), Some("1001,1002"));
}

#[tokio::test]
async fn that_a_number_is_free_is_remembered() {
    let page = [with_sku(1002, "simple", "")];
    let says = [list(&page), list(&[]), list(&page)];
    let (stub, shop) = shop(ItemIds::Sku, says).await;
    for _ in 0..2 {
        assert_eq!(shown(&shop.search(&query(), &[]).await.unwrap()), ["1002"]);
    }
    assert_eq!(stub.asked().len(), 3);
}

#[tokio::test]
async fn an_article_number_that_another_page_has_shown_too_is_no_id() {
    let (first, second) = ([with_sku(1, "simple", "SAME")], [with_sku(2, "simple", "SAME")]);
    let says = [list(&first), list(&second), list(&[]), list(&first), list(&[])];
    let (stub, shop) = shop(ItemIds::Sku, says).await;
    assert_eq!(shown(&shop.search(&query(), &[]).await.unwrap()), ["SAME"]);
    assert_eq!(shown(&shop.search(&Query { page: 2, ..query() }, &[]).await.unwrap()), ["2"]);
    assert_eq!(shown(&shop.search(&query(), &[]).await.unwrap()), ["1"]);
    assert_eq!(stub.asked()[2].get("sku"), Some("2"));
}

#[tokio::test]
async fn a_number_that_two_products_have_as_article_number_is_none_of_them_nor_a_third() {
    let twins = [with_sku(1, "simple", "1001"), with_sku(2, "simple", "1001")];
    let (_stub, shop_) = shop(ItemIds::Sku, [list(&twins)]).await;
    assert_eq!(shop_.resolve(&texts(&["1001"])).await.unwrap(), [Resolved::Unknown]);
    assert_eq!(shop_.find(&texts(&["1001"])).await.unwrap(), [None], "as it is remembered");
    let (_stub, shop_) = shop(ItemIds::Sku, [list(&twins)]).await;
    assert_eq!(shop_.find(&texts(&["1001"])).await.unwrap(), [None]);
    assert_eq!(shop_.resolve(&texts(&["1001"])).await.unwrap(), [Resolved::Unknown]);
    // No such article number: then it is the product's own.
    let (_stub, shop_) = shop(ItemIds::Sku, [list(&[])]).await;
    let own = Resolved::Product(ProductId::new("1001"));
    assert_eq!(shop_.resolve(&texts(&["1001"])).await.unwrap(), [own]);
}

#[tokio::test]
async fn of_many_variations_those_are_asked_for_that_cost_what_they_may() {
    let products = [variable(1, 1000, 250), variable(2, 2000, 3), variable(3, 3000, 2)];
    let mut fitting = variation(1200, 1);
    fitting["prices"] = prices(5000, 2);
    let mut other = variation(2001, 2);
    other["prices"] = prices(5001, 2);
    let (stub, shop_) = shop(ItemIds::Id, [list(&products), list(&[fitting, other])]).await;
    let page = shop_.search(&priced(Some(4000), Some(6000)), &[]).await.unwrap();
    let asked = stub.asked();
    assert_eq!((asked[1].get("type"), asked[1].get("parent")), (Some("variation"), Some("1,2,3")));
    assert_eq!((asked[1].get("min_price"), asked[1].get("max_price")), (Some("4000"), Some("6000")));
    assert_eq!(asked[1].get("include"), None);
    let shown: Vec<_> =
        page.products.iter().map(|p| (p.id.as_str(), p.variants[0].id.as_str(), p.shown)).collect();
    let expected =
        [("1", "1200", VariantsShown::Some { of: 250 }), ("2", "2001", VariantsShown::Some { of: 3 })];
    assert_eq!(shown, expected);
    // Few variations are asked for one by one: then all of each product are at hand.
    let few = [variable(2, 2000, 3)];
    let all: Vec<Value> = (0..3).map(|n| variation(2000 + n, 2)).collect();
    let (stub, shop_) = shop(ItemIds::Id, [list(&few), list(&all)]).await;
    let page = shop_.search(&priced(Some(4000), None), &[]).await.unwrap();
    assert_eq!(page.products[0].shown, VariantsShown::All);
    assert_eq!(stub.asked()[1].get("include"), Some("2000,2001,2002"));
}

#[tokio::test]
async fn a_choice_beyond_the_first_hundred_is_found() {
    let one = || Say::new(200, variable(1, 1000, 250).to_string());
    let hundred: Vec<Value> = (0..100).map(|n| variation(1000 + n, 1)).collect();
    let mut best: Vec<Value> = (0..99).map(|n| variation(1000 + n, 1)).collect();
    best.push(variation(1233, 1));
    let (stub, shop) = shop(ItemIds::Id, [one(), list(&hundred), one(), list(&best)]).await;
    let settings = tillgate::catalog::Settings {
        ttl: Duration::from_mins(1),
        cache_bytes: 8_000_000,
        page_size: 50,
        ids: 50,
        calls: 2,
        wait: Duration::from_secs(5),
    };
    let catalog = Catalog::new(Arc::new(shop), settings);
    let kind = |label: &str| Wish {
        selected: vec![Choice { name: "Kind".to_owned(), id: None, label: label.to_owned() }],
        preferences: Vec::new(),
    };
    let at_hand = catalog.product("1", &kind("No 3"), &Filter::default()).await.unwrap().unwrap();
    assert_eq!(at_hand.variants[0].id, "1003");
    for _ in 0..2 {
        let far = catalog.product("1", &kind("No 233"), &Filter::default()).await.unwrap().unwrap();
        let ids: Vec<_> = far.variants.iter().map(|variant| variant.id.as_str()).collect();
        assert_eq!(ids, ["1233"]);
        assert_eq!(far.selected[0].value.label, "No 233");
    }
    let asked = stub.asked();
    assert_eq!(included(&asked[3])[..3], ["1233", "1000", "1001"], "those that fit come first");
}

#[tokio::test]
async fn odd_variations_take_nothing_else_with_them() {
    let odd = || {
        let mut odd = variation(2000, 2);
        odd["prices"] = json!("none");
        odd
    };
    let products = [variable(2, 2000, 1), product(3, "simple")];
    let (_stub, shop_) = shop(ItemIds::Id, [list(&products), list(&[odd()])]).await;
    assert_eq!(shown(&shop_.search(&query(), &[]).await.unwrap()), ["3"]);
    let both = [odd(), variation(2001, 2)];
    let (_stub, shop_) = shop(ItemIds::Id, [list(&[variable(2, 2000, 2)]), list(&both)]).await;
    let page = shop_.search(&query(), &[]).await.unwrap();
    assert_eq!((page.products[0].variants.len(), page.products[0].shown), (1, VariantsShown::All));
}

#[tokio::test]
async fn categories_are_read_as_far_as_they_can_be() {
    let said = json!([{"id": 16, "name": "Mugs", "slug": "mugs", "parent": 17}, {"id": 17, "slug": "home",
        "parent": 0}, {"id": 18, "slug": null}, "odd"]);
    let (stub, shop) = shop(ItemIds::Id, [Say::new(200, said.to_string())]).await;
    let branch = |key: &str, value: &str, parent: Option<&str>| Branch {
        key: key.to_owned(),
        value: value.to_owned(),
        parent: parent.map(str::to_owned),
    };
    let expected = [branch("16", "mugs", Some("17")), branch("17", "home", None)];
    assert_eq!(shop.categories().await.unwrap(), expected);
    assert_eq!(stub.asked()[0].path, "/wp-json/wc/store/v1/products/categories");
}
