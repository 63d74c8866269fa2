//! Recorded products of a real shop (10.5), as the catalogue shows them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    super::{
        recorded::{Tape, shop},
        resolve::ItemIds,
    },
    translate::{Context, shared_skus},
    wire::Item,
};
use crate::{
    catalog::{Availability, Product, Rating, Stock, Variant, VariantsShown},
    money::Currency,
};

fn items(values: Vec<Value>) -> BTreeMap<String, Item> {
    let items = values.into_iter().map(|value| serde_json::from_value::<Item>(value).unwrap());
    items.map(|item| (item.id.clone(), item)).collect()
}

/// The variations of the recorded shirt.
fn variations() -> Vec<Value> {
    let tape = Tape::open("01-products-list");
    let lists =
        (0..).map_while(|at| tape.try_came(at)).filter_map(|(_, text)| serde_json::from_str(&text).ok());
    let mut lists = lists.filter_map(|value: Value| value.as_array().cloned());
    lists.find(|list| list.len() == 4 && list[0]["parent"] == 26).unwrap()
}

/// The recorded product with that id.
fn recorded(id: u64) -> Value {
    let tape = Tape::open("02-product-single");
    let all =
        (0..).map_while(|at| tape.try_came(at)).filter_map(|(_, text)| serde_json::from_str(&text).ok());
    all.into_iter().find(|value: &Value| value["id"] == id).unwrap()
}

/// As the shop shows it to somebody who asked for these variations and got those.
fn shown_of(
    ids: ItemIds,
    product: Value,
    variations: Vec<Value>,
    asked: &[&str],
    free: &[&str],
) -> Option<Product> {
    let product: Item = serde_json::from_value(product).unwrap();
    let variations = items(variations);
    let texts = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    let asked: BTreeSet<String> = texts(asked);
    let shop = shop();
    let context = Context {
        shop: &shop,
        ids,
        currency: currency("EUR"),
        shared: shared_skus(std::iter::once(&product).chain(variations.values())),
        free: texts(free),
        asked: &asked,
        most: 100,
    };
    context.product(&product, &variations).unwrap()
}

fn shown_as(ids: ItemIds, product: Value, variations: Vec<Value>) -> Option<Product> {
    let brought: Vec<String> = variations.iter().map(|variation| variation["id"].to_string()).collect();
    let brought: Vec<&str> = brought.iter().map(String::as_str).collect();
    let free = ["19", "26", "27", "28", "29", "30"];
    shown_of(ids, product, variations, &brought, &free)
}

fn shown(product: Value) -> Option<Product> {
    shown_as(ItemIds::Id, product, variations())
}

fn currency(code: &str) -> Currency {
    Currency::parse(code).unwrap()
}

fn variant<'a>(product: &'a Product, id: &str) -> &'a Variant {
    product.variant(id).unwrap()
}

#[test]
fn a_simple_product_is_its_own_variant() {
    let mug = shown(recorded(19)).unwrap();
    assert_eq!((mug.id.as_str(), mug.handle.as_str(), mug.title.as_str()), ("19", "plain-mug", "Plain mug"));
    assert_eq!((mug.summary.as_str(), mug.description.as_str()), ("A plain mug.", "A plain white mug."));
    assert_eq!(mug.url.as_deref(), Some("https://shop.example.com/product/plain-mug/"));
    assert_eq!(mug.categories[0].value, "mugs");
    assert_eq!((mug.prices.min.minor(), mug.prices.max.minor(), mug.list_prices), (1250, 1250, None));
    assert_eq!(mug.media[0].alt, "A yellow disc on blue");
    assert_eq!((mug.axes.len(), mug.variants.len(), mug.rating), (0, 1, None));
    let only = variant(&mug, "19");
    assert_eq!((only.title.as_str(), only.sku.as_deref()), ("Plain mug", Some("MUG-01")));
    assert_eq!((only.price.minor(), only.price.currency().code()), (1250, "EUR"));
    let by_sku = shown_as(ItemIds::Sku, recorded(19), vec![]).unwrap();
    assert_eq!((by_sku.id.as_str(), by_sku.variants[0].id.as_str()), ("MUG-01", "MUG-01"));
}

#[test]
fn a_variable_product_brings_its_variations_in_the_merchants_order() {
    let tee = shown(recorded(26)).unwrap();
    let ids: Vec<&str> = tee.variants.iter().map(|variant| variant.id.as_str()).collect();
    assert_eq!((ids, tee.shown), (vec!["27", "28", "29", "30"], VariantsShown::All));
    assert_eq!((tee.prices.min.minor(), tee.prices.max.minor()), (1800, 2200));
    let list_prices = tee.list_prices.unwrap();
    assert_eq!((list_prices.min.minor(), list_prices.max.minor()), (2000, 2200));
    assert_eq!(variant(&tee, "27").title, "T-shirt - Red, Small", "as carts name it");
    let large_red = variant(&tee, "29");
    assert_eq!((large_red.price.minor(), large_red.list_price.unwrap().minor()), (1800, 2200));
    let axes: Vec<_> = tee.axes.iter().map(|axis| (axis.name.as_str(), axis.values.len())).collect();
    assert_eq!(axes, [("Size", 2), ("Colour", 2)]);
    let options: Vec<_> = large_red
        .options
        .iter()
        .map(|o| (o.name.as_str(), o.value.id.as_str(), o.value.label.as_str()))
        .collect();
    assert_eq!(options, [("Size", "large", "Large"), ("Colour", "red", "Red")]);
}

#[test]
fn the_merchants_default_is_featured_while_it_can_be_had() {
    let mut tee = recorded(26);
    tee["attributes"][0]["terms"][0]["default"] = json!(true);
    tee["attributes"][1]["terms"][0]["default"] = json!(true);
    assert_eq!(shown(tee.clone()).unwrap().variants[0].id, "30");
    let mut sold_out = variations();
    let large_blue = sold_out.iter_mut().find(|variation| variation["id"] == 30).unwrap();
    large_blue["is_in_stock"] = json!(false);
    assert_eq!(shown_as(ItemIds::Id, tee, sold_out).unwrap().variants[0].id, "27");
}

#[test]
fn stock_is_told_as_the_shop_tells_it() {
    let state = |id| shown(recorded(id)).unwrap().variants[0].availability;
    assert_eq!(state(19), Availability { stock: Stock::In, left: None });
    assert_eq!(state(20), Availability { stock: Stock::In, left: Some(1) });
    assert_eq!(state(22), Availability { stock: Stock::Out, left: None });
    let mut waited_for = recorded(21);
    assert_eq!(shown(waited_for.clone()).unwrap().variants[0].availability.stock, Stock::In);
    waited_for["is_on_backorder"] = json!(true);
    let state = shown(waited_for).unwrap().variants[0].availability;
    assert!(state.available() && state.stock == Stock::Backorder);
    let small_blue = variant(&shown(recorded(26)).unwrap(), "28").availability;
    assert_eq!(small_blue, Availability { stock: Stock::Out, left: None });
}

#[test]
fn what_cannot_be_bought_through_a_checkout_is_not_offered() {
    // Grouped, external, a draft (which the shop shows by id), without a price.
    for id in [34, 35, 41, 40] {
        assert_eq!(shown(recorded(id)), None, "{id}");
    }
    assert!(shown(recorded(38)).is_some(), "what costs nothing has a price");
}

#[test]
fn a_variation_that_leaves_a_choice_open_is_not_offered() {
    let mut tee = recorded(26);
    tee["variations"][0]["attributes"][1]["value"] = Value::Null;
    let tee = shown(tee).unwrap();
    assert_eq!(tee.variant("27"), None);
    assert_eq!(tee.variants.len(), 3);
}

#[test]
fn ids_lead_back_to_what_they_were_shown_for() {
    let tee = shown_as(ItemIds::Sku, recorded(26), variations()).unwrap();
    assert_eq!((tee.id.as_str(), tee.variants[0].id.as_str()), ("TEE", "TEE-S-RED"));
    // A variation without an article number shows its product's; two with one number have none.
    let mut odd = variations();
    odd[0]["sku"] = json!("TEE");
    odd[1]["sku"] = json!("SAME");
    odd[2]["sku"] = json!("SAME");
    odd[3]["sku"] = json!("A&amp;B");
    let tee = shown_as(ItemIds::Sku, recorded(26), odd).unwrap();
    assert_eq!(tee.id, "26");
    let mut ids: Vec<&str> = tee.variants.iter().map(|variant| variant.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["28", "29", "30", "A&B"]);
    assert_eq!(variant(&tee, "30").sku, None, "it has none of its own");
}

#[test]
fn a_share_of_the_variations_says_how_many_there_are() {
    let mut three = variations();
    three.remove(0);
    let tee = shown_as(ItemIds::Id, recorded(26), three).unwrap();
    assert_eq!(tee.shown, VariantsShown::Some { of: 4 });
    assert_eq!((tee.prices.min.minor(), tee.prices.max.minor()), (1800, 2200), "the shop's own range");
    assert_eq!(tee.list_prices, None, "the fourth may have been dearer");
}

#[test]
fn what_was_asked_for_and_has_not_come_is_not_counted() {
    let mut three = variations();
    three.remove(0);
    let all = ["27", "28", "29", "30"];
    let tee = shown_of(ItemIds::Id, recorded(26), three.clone(), &all, &[]).unwrap();
    assert_eq!((tee.shown, tee.variants.len()), (VariantsShown::All, 3));
    assert!(tee.list_prices.is_some());
    // One is hidden, and one was not asked for.
    three.remove(0);
    let tee = shown_of(ItemIds::Id, recorded(26), three, &all[..3], &[]).unwrap();
    assert_eq!((tee.shown, tee.variants.len()), (VariantsShown::Some { of: 3 }, 2));
}

#[test]
fn a_number_that_another_thing_has_as_its_article_number_is_no_id() {
    let mut bare = recorded(19);
    bare["sku"] = json!("");
    assert_eq!(shown_of(ItemIds::Sku, bare.clone(), vec![], &[], &["19"]).unwrap().id, "19");
    assert_eq!(shown_of(ItemIds::Sku, bare.clone(), vec![], &[], &[]), None);
    assert!(shown_of(ItemIds::Id, bare, vec![], &[], &[]).is_some(), "numbers are the ids");
    // Of variations only the one is left out.
    let mut odd = variations();
    odd[0]["sku"] = json!("");
    let all = ["27", "28", "29", "30"];
    let tee = shown_of(ItemIds::Sku, recorded(26), odd, &all, &[]).unwrap();
    assert_eq!((tee.id.as_str(), tee.variants.len(), tee.shown), ("TEE", 3, VariantsShown::All));
}

#[test]
fn one_odd_variation_does_not_hide_the_product() {
    let mut odd = variations();
    odd[1]["prices"]["price"] = json!("cheap");
    let tee = shown_as(ItemIds::Id, recorded(26), odd).unwrap();
    assert_eq!((tee.variants.len(), tee.shown), (3, VariantsShown::All));
}

#[test]
fn how_many_can_be_bought_is_told_where_it_is_bounded() {
    let maximum = |change: &dyn Fn(&mut Value)| {
        let mut mug = recorded(19);
        change(&mut mug);
        shown(mug).unwrap().variants[0].limits.maximum
    };
    assert_eq!(maximum(&|_| {}), None);
    assert_eq!(maximum(&|mug| mug["add_to_cart"]["maximum"] = json!(6)), Some(6));
    assert_eq!(maximum(&|mug| mug["add_to_cart"]["maximum"] = json!(0)), None);
    let sold_one_by_one = recorded(32);
    assert_eq!(sold_one_by_one["sold_individually"], true);
    assert_eq!(shown(sold_one_by_one).unwrap().variants[0].limits.maximum, Some(1));
}

#[test]
fn texts_are_plain_and_bounded() {
    let mug = shown(recorded(37)).unwrap();
    assert_eq!(mug.title, "Zażółć gęślą jaźń – “mug” & Tee 🎁");
    assert_eq!(mug.summary, "Opis & krótki");
    assert!(mug.description.starts_with("Long description Hand-made in small batches & fired twice."));
    assert!(mug.description.contains("5 < 6") && !mug.description.contains("<a"));
    let mut long = recorded(19);
    long["description"] = json!("wörd ".repeat(5_000));
    let text = shown(long).unwrap().description;
    assert!(text.chars().count() <= 10_001 && text.ends_with("wörd…"), "{}", text.len());
}

#[test]
fn stars_are_read_digit_by_digit() {
    for (average, count, expected) in [
        ("4.67", json!(3), Some(Rating { hundredths: 467, count: 3 })),
        ("5", json!("1"), Some(Rating { hundredths: 500, count: 1 })),
        ("3.5", json!(2), Some(Rating { hundredths: 350, count: 2 })),
        ("0", json!(0), None),
        ("4.2", json!(0), None),
        ("no", json!(2), None),
    ] {
        let mut mug = recorded(19);
        mug["average_rating"] = json!(average);
        mug["review_count"] = count;
        assert_eq!(shown(mug).unwrap().rating, expected, "{average}");
    }
}

#[test]
fn amounts_that_would_lose_digits_or_are_in_another_currency_are_refused() {
    let mut fine = recorded(19);
    fine["prices"]["price"] = json!("12505");
    fine["prices"]["currency_minor_unit"] = json!(3);
    let plain = recorded(19);
    for (item, configured) in [(fine, "EUR"), (plain, "USD")] {
        let item: Item = serde_json::from_value(item).unwrap();
        let (shop, asked) = (shop(), BTreeSet::new());
        let context = Context {
            shop: &shop,
            ids: ItemIds::Id,
            currency: currency(configured),
            shared: BTreeSet::new(),
            free: BTreeSet::new(),
            asked: &asked,
            most: 100,
        };
        assert!(context.product(&item, &BTreeMap::new()).is_err(), "{configured}");
    }
}
