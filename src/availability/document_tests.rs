use proptest::prelude::*;

use super::*;
use crate::{
    catalog::{Availability, Limits, PriceRange, Stock},
    money::Currency,
};

pub(crate) fn variant(id: &str, title: &str, price: i64) -> Variant {
    Variant {
        id: id.to_owned(),
        sku: Some(format!("sku-{id}")),
        title: title.to_owned(),
        description: String::new(),
        url: Some(format!("https://shop.example.com/{id}")),
        price: Money::new(price, Currency::parse("EUR").unwrap()),
        list_price: None,
        availability: Availability { stock: Stock::In, left: None },
        limits: Limits { minimum: 1, maximum: None, step: 1 },
        options: Vec::new(),
        media: Vec::new(),
    }
}

fn product(variants: Vec<Variant>, shown: VariantsShown) -> Product {
    Product {
        id: "tee".to_owned(),
        handle: "tee".to_owned(),
        title: "Tee".to_owned(),
        summary: String::new(),
        description: String::new(),
        url: None,
        categories: Vec::new(),
        prices: PriceRange::of(variants.iter().map(|variant| variant.price)).unwrap(),
        list_prices: None,
        media: Vec::new(),
        axes: Vec::new(),
        variants: variants.into_iter().map(Arc::new).collect(),
        shown,
        rating: None,
        tags: Vec::new(),
    }
}

fn seller() -> Seller {
    Seller { name: "Shop".to_owned(), url: "https://shop.example.com/".to_owned() }
}

fn of_one(variant: Variant, level: Level) -> Document {
    render(&Subject::One(Arc::new(variant)), &seller(), |_| level)
}

fn of_choice(levels: &[(&str, Level)], shown: VariantsShown) -> Value {
    let variants = levels.iter().map(|(id, _)| variant(id, id, 100)).collect();
    let level = |it: &Variant| levels.iter().find(|(id, _)| *id == it.id).unwrap().1;
    let document = render(&Subject::Choice(Arc::new(product(variants, shown))), &seller(), level);
    serde_json::from_str(&document.text).unwrap()
}

#[test]
fn amounts_have_the_decimals_of_their_currency() {
    for (minor, code, text) in [
        (1999, "EUR", "19.99"),
        (5, "EUR", "0.05"),
        (0, "EUR", "0.00"),
        (-250, "EUR", "-2.50"),
        (1999, "JPY", "1999"),
        (1999, "KWD", "1.999"),
        (i64::MIN, "JPY", "-9223372036854775808"),
    ] {
        assert_eq!(decimal(Money::new(minor, Currency::parse(code).unwrap())), text);
    }
}

#[test]
fn a_number_is_told_only_of_what_is_limited() {
    let json =
        |level| -> Value { serde_json::from_str(&of_one(variant("1", "Mug", 990), level).text).unwrap() };
    assert_eq!(json(Level::Limited(3))["inventoryLevel"], json!({"@type": "QuantitativeValue", "value": 3}));
    for level in [Level::InStock, Level::OutOfStock, Level::BackOrder] {
        assert_eq!(json(level)["inventoryLevel"], Value::Null);
    }
}

#[test]
fn a_choice_is_as_available_as_the_best_of_its_variants() {
    let named = |levels: &[(&str, Level)], shown| of_choice(levels, shown)["availability"].clone();
    let all = VariantsShown::All;
    let (out, back, few, many) = (Level::OutOfStock, Level::BackOrder, Level::Limited(2), Level::InStock);
    assert_eq!(named(&[("a", out), ("b", many), ("c", few)], all), many.schema());
    assert_eq!(named(&[("a", out), ("b", few), ("c", back)], all), few.schema());
    assert_eq!(named(&[("a", out), ("b", back)], all), back.schema());
    assert_eq!(named(&[("a", out), ("b", out)], all), out.schema());
    // The other ninety-eight may be there.
    assert_eq!(named(&[("a", out), ("b", out)], VariantsShown::Most { of: 100 }), many.schema());
}

#[test]
fn a_choice_lists_its_offers() {
    let json = of_choice(&[("a", Level::Limited(2)), ("b", Level::OutOfStock)], VariantsShown::All);
    assert_eq!(json["@type"], "AggregateOffer");
    assert_eq!((&json["offerCount"], &json["inventoryLevel"]), (&json!(2), &Value::Null));
    assert_eq!(json["offers"][0]["inventoryLevel"]["value"], 2);
    assert_eq!(json["offers"][1]["availability"], "https://schema.org/OutOfStock");
    assert_eq!(json["offers"][1]["@context"], Value::Null);
}

#[test]
fn the_tag_follows_the_content() {
    let one = of_one(variant("1", "Mug", 990), Level::InStock);
    assert_eq!(one, of_one(variant("1", "Mug", 990), Level::InStock));
    assert_ne!(one.tag, of_one(variant("1", "Mug", 990), Level::Limited(4)).tag);
    assert_ne!(one.tag, of_one(variant("1", "Mug", 991), Level::InStock).tag);
}

/// Texts that try to leave the script, between any others.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("</script>".to_owned()),
        Just("</SCRIPT ><script>alert(1)//".to_owned()),
        Just("<!--<script>".to_owned()),
        Just("-->".to_owned()),
        Just("]]>".to_owned()),
        Just("&lt;/script&gt;".to_owned()),
        Just("\u{2028}\u{2029}".to_owned()),
        Just("\"\\\r\n\0".to_owned()),
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_leaves_the_script_that_holds_it(title in nasty(), sku in nasty(), url in nasty(), name in nasty()) {
        let mut one = variant("1", &title, 990);
        (one.sku, one.url) = (Some(sku.clone()), Some(url.clone()));
        let seller = Seller { name: name.clone(), url: url.clone() };
        let document = render(&Subject::One(Arc::new(one)), &seller, |_| Level::InStock);
        let leaves = ['<', '>', '&', '\u{2028}', '\u{2029}', '\n', '\r'];
        prop_assert!(!document.text.contains(leaves));
        let json: Value = serde_json::from_str(&document.text).unwrap();
        prop_assert_eq!(&json["itemOffered"]["name"], &json!(title));
        prop_assert_eq!(&json["sku"], &json!(sku));
        prop_assert_eq!(&json["url"], &json!(url));
        prop_assert_eq!(&json["seller"]["name"], &json!(name));
    }
}
