//! Answers of search, lookup and product (`product.json`, `variant.json`).

use serde_json::{Map, Number, Value, json};

use super::{
    super::{
        super::{
            catalog::{Asked, ByIds, Closely},
            messages::Message,
            negotiation::Negotiated,
        },
        render::{envelope, nothing},
    },
    cursor,
};
use crate::{
    catalog::{
        Availability, AxisSignals, Detail, Input, Limits, Listing, Looked, LookedProduct, Media, OptionValue,
        PriceRange, Product, Query, Rating, Results, Stock, Variant, VariantsShown,
    },
    idempotency::Answer,
    money::Money,
    protocol::ShopFace,
};

/// How much of a description a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Short,
    Full,
}

/// The answer to a search.
pub(crate) fn search(
    face: &ShopFace,
    negotiated: &Negotiated,
    asked: &Asked<Query>,
    found: &Results,
) -> Answer {
    let products: Vec<Value> = found
        .listings
        .iter()
        .map(|Listing { product, variants }| {
            let variants = variants.iter().map(|found| Value::Object(variant(found, product))).collect();
            Value::Object(body(product, Length::Short, variants))
        })
        .collect();
    let mut pagination = Map::new();
    pagination.insert("has_next_page".into(), json!(found.more));
    if found.more {
        pagination.insert("cursor".into(), json!(cursor::next(&asked.what)));
    }
    if let Some(total) = found.total {
        pagination.insert("total_count".into(), json!(total));
    }
    let mut answer = open(negotiated);
    answer.insert("products".into(), Value::Array(products));
    answer.insert("pagination".into(), Value::Object(pagination));
    close(answer, asked.price_ignored.then(|| price_ignored(face)).into_iter().collect())
}

/// The answer to a look-up.
pub(crate) fn lookup(
    face: &ShopFace,
    negotiated: &Negotiated,
    asked: &Asked<ByIds>,
    found: &Looked,
) -> Answer {
    let matched = |input: &Input| if input.exact { "exact" } else { "featured" };
    let shown = |looked: &LookedProduct| {
        let variants = looked.variants.iter().map(|found| {
            let mut variant = variant(&found.variant, &looked.product);
            let inputs = found.inputs.iter().map(|input| json!({"id": input.id, "match": matched(input)}));
            variant.insert("inputs".into(), inputs.collect());
            Value::Object(variant)
        });
        Value::Object(body(&looked.product, Length::Short, variants.collect()))
    };
    let mut answer = open(negotiated);
    answer.insert("products".into(), found.products.iter().map(shown).collect());
    let unknown = found.unknown.iter().map(|id| Message::info("not_found", id.clone()));
    close(answer, asked.price_ignored.then(|| price_ignored(face)).into_iter().chain(unknown).collect())
}

/// The answer to a close look.
pub(crate) fn product(
    face: &ShopFace,
    negotiated: &Negotiated,
    asked: &Asked<Closely>,
    found: Option<&Detail>,
) -> Answer {
    let Some(Detail { product, variants, selected, axes }) = found else {
        let text = "There is no such product here, or nothing of it fits the filters.";
        return nothing(face, negotiated, vec![Message::error("not_found", text, "unrecoverable", None)]);
    };
    let variants = variants.iter().map(|found| Value::Object(variant(found, product))).collect();
    let mut shown = body(product, Length::Full, variants);
    if !axes.is_empty() {
        shown.insert("options".into(), axes.iter().map(signals).collect());
        shown.insert("selected".into(), selected.iter().map(option).collect());
    }
    let mut answer = open(negotiated);
    answer.insert("product".into(), Value::Object(shown));
    close(answer, asked.price_ignored.then(|| price_ignored(face)).into_iter().collect())
}

fn open(negotiated: &Negotiated) -> Map<String, Value> {
    let ucp = serde_json::to_value(envelope(negotiated, "success", None)).unwrap_or_default();
    [("ucp".to_owned(), ucp)].into_iter().collect()
}

fn close(mut answer: Map<String, Value>, messages: Vec<Message>) -> Answer {
    if !messages.is_empty() {
        answer.insert("messages".into(), serde_json::to_value(messages).unwrap_or_default());
    }
    Answer::json(200, &answer)
}

fn price_ignored(face: &ShopFace) -> Message {
    let text = format!(
        "The price filter was left out: prices here are in {code}. Send context.currency {code} with amounts in {code}.",
        code = face.currency.code()
    );
    Message::info("price_filter_ignored", text)
}

fn body(product: &Product, length: Length, variants: Vec<Value>) -> Map<String, Value> {
    let text = match length {
        Length::Short => &product.summary,
        Length::Full => &product.description,
    };
    let mut shown = Map::new();
    let mut set = |name: &str, value: Value| {
        shown.insert(name.to_owned(), value);
    };
    set("id", json!(product.id));
    set("title", json!(product.title));
    set("description", description(text, &product.title));
    set("price_range", range(product.prices));
    set("variants", Value::Array(variants));
    if !product.handle.is_empty() {
        set("handle", json!(product.handle));
    }
    if let Some(url) = &product.url {
        set("url", json!(url));
    }
    if let Some(prices) = product.list_prices {
        set("list_price_range", range(prices));
    }
    if !product.categories.is_empty() {
        let categories = product.categories.iter();
        set("categories", categories.map(|c| json!({"value": c.value, "taxonomy": "merchant"})).collect());
    }
    if !product.media.is_empty() {
        set("media", media(&product.media));
    }
    if !product.axes.is_empty() {
        let axis = |axis: &crate::catalog::Axis| {
            let values = axis.values.iter().map(|value| json!({"id": value.id, "label": value.label}));
            json!({"name": axis.name, "values": values.collect::<Value>()})
        };
        set("options", product.axes.iter().map(axis).collect());
    }
    if let Some(rating) = product.rating {
        set("rating", stars(rating));
    }
    if !product.tags.is_empty() {
        set("tags", json!(product.tags));
    }
    match product.shown {
        VariantsShown::All => {}
        // Else nobody could tell that there are more.
        VariantsShown::Most { of } | VariantsShown::Some { of } => {
            set("metadata", json!({"variant_count": of}));
        }
    }
    shown
}

fn variant(variant: &Variant, product: &Product) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut set = |name: &str, value: Value| {
        shown.insert(name.to_owned(), value);
    };
    set("id", json!(variant.id));
    set("title", json!(variant.title));
    let text = if variant.description.is_empty() { &product.summary } else { &variant.description };
    set("description", description(text, &variant.title));
    set("price", price(variant.price));
    set("availability", availability(variant.availability));
    if let Some(sku) = &variant.sku {
        set("sku", json!(sku));
    }
    if let Some(url) = &variant.url {
        set("url", json!(url));
    }
    if let Some(list_price) = variant.list_price {
        set("list_price", price(list_price));
    }
    if !variant.options.is_empty() {
        set("options", variant.options.iter().map(option).collect());
    }
    if !variant.media.is_empty() {
        set("media", media(&variant.media));
    }
    let Limits { minimum, maximum, step } = variant.limits;
    let known = [
        ("min_quantity", (minimum > 1).then_some(minimum)),
        ("max_quantity", maximum),
        ("quantity_step", (step > 1).then_some(step)),
        ("stock_left", variant.availability.left),
    ];
    let metadata: Map<String, Value> =
        known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
    if !metadata.is_empty() {
        set("metadata", Value::Object(metadata));
    }
    shown
}

/// A text that must not be missing: without one the title stands in.
fn description(text: &str, title: &str) -> Value {
    json!({"plain": if text.is_empty() { title } else { text }})
}

fn price(money: Money) -> Value {
    json!({"amount": money.minor(), "currency": money.currency().code()})
}

fn range(range: PriceRange) -> Value {
    json!({"min": price(range.min), "max": price(range.max)})
}

fn availability(availability: Availability) -> Value {
    let status = match availability.stock {
        Stock::In => "in_stock",
        Stock::Backorder => "backorder",
        Stock::Out => "out_of_stock",
    };
    json!({"available": availability.available(), "status": status})
}

fn option(option: &OptionValue) -> Value {
    json!({"name": option.name, "id": option.value.id, "label": option.value.label})
}

fn signals(axis: &AxisSignals) -> Value {
    let value = |(value, signals): &(crate::catalog::AxisValue, crate::catalog::Signals)| {
        let mut shown = json!({"id": value.id, "label": value.label});
        let known = [("exists", signals.exists), ("available", signals.available)];
        if let Value::Object(shown) = &mut shown {
            shown.extend(known.into_iter().filter_map(|(name, is)| Some((name.to_owned(), json!(is?)))));
        }
        shown
    };
    json!({"name": axis.name, "values": axis.values.iter().map(value).collect::<Value>()})
}

fn media(media: &[Media]) -> Value {
    let shown = |media: &Media| {
        let mut shown = json!({"type": "image", "url": media.url});
        if let Value::Object(shown) = &mut shown
            && !media.alt.is_empty()
        {
            shown.insert("alt_text".into(), json!(media.alt));
        }
        shown
    };
    media.iter().map(shown).collect()
}

/// Stars from 1 to 5. The mean is written digit by digit: no arithmetic of doubles.
fn stars(rating: Rating) -> Value {
    let text = format!("{}.{:02}", rating.hundredths / 100, rating.hundredths % 100);
    let value = text.parse::<Number>().map_or(Value::Null, Value::Number);
    json!({"value": value, "scale_min": 1, "scale_max": 5, "count": rating.count})
}
