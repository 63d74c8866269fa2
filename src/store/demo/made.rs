//! Made-up products, for trying a shop with a large catalogue.
//!
//! Every product follows from its number alone, so that two shops with equally many are alike. SKUs run from
//! `made-00001`; each tenth product is variable with three sizes (`made-00010-s`, `-m`, `-l`). Four
//! categories, prices from 2.00 to 200.99. No name holds the word *bouquet*.

use super::model::{Attribute, Kind, Product, Term};

/// The id of the first; each product has room for three variations.
const FIRST_ID: u64 = 100_000;

const COLOURS: [&str; 8] = ["Amber", "Blue", "Copper", "Green", "Ivory", "Plum", "Rust", "White"];
const THINGS: [(&str, usize); 10] = [
    ("Vase", 0),
    ("Bowl", 0),
    ("Planter", 0),
    ("Ribbon", 1),
    ("Gift Box", 1),
    ("Seed Mix", 2),
    ("Bulb Set", 2),
    ("Watering Can", 3),
    ("Trowel", 3),
    ("Secateurs", 3),
];
const CATEGORIES: [(u64, &str, &str); 4] = [
    (31, "Vessels", "vessels"),
    (32, "Wrapping", "wrapping"),
    (33, "Seeds and Bulbs", "seeds-and-bulbs"),
    (34, "Tools", "tools"),
];
const SIZES: [(u64, &str, &str, i64); 3] =
    [(23, "Small", "small", 0), (22, "Medium", "medium", 5_000_000), (21, "Large", "large", 10_000_000)];

fn pick<T: Copy>(all: &[T], number: usize) -> Option<T> {
    all.get(number % all.len().max(1)).copied()
}

/// The products with the numbers 1 to `count`, variations beside their parents.
pub(super) fn products(count: usize) -> impl Iterator<Item = Product> {
    (1..=count).flat_map(one)
}

fn one(number: usize) -> Vec<Product> {
    let id = FIRST_ID + u64::try_from(number).unwrap_or_default().saturating_mul(4);
    let (thing, category) = pick(&THINGS, number).unwrap_or_default();
    let colour = pick(&COLOURS, number / THINGS.len()).unwrap_or_default();
    let categories = pick(&CATEGORIES, category).map(|(id, name, slug)| Term {
        id,
        name: name.to_owned(),
        slug: slug.to_owned(),
    });
    let cents = 200 + i64::try_from(number.wrapping_mul(7919) % 19_900).unwrap_or_default();
    let name = format!("{colour} {thing} No. {number}");
    let product = Product {
        id,
        sku: format!("made-{number:05}"),
        slug: name.to_lowercase().replace(". ", "-").replace(' ', "-"),
        short_description: format!("<p>A {} {}.</p>", colour.to_lowercase(), thing.to_lowercase()),
        name,
        regular: Some(cents * 10_000),
        manage_stock: true,
        stock: i64::try_from(number % 49).unwrap_or_default() * 20,
        categories: categories.into_iter().collect(),
        image: "demo-product.png".to_owned(),
        ..Product::default()
    };
    if number.is_multiple_of(10) { sized(product) } else { vec![product] }
}

/// The product in three sizes.
fn sized(product: Product) -> Vec<Product> {
    let base = product.regular.unwrap_or_default();
    let mut terms: Vec<Term> = SIZES
        .iter()
        .map(|(id, name, slug, _)| Term { id: *id, name: (*name).to_owned(), slug: (*slug).to_owned() })
        .collect();
    terms.reverse();
    let size = |step: u64, slug: &str, more: i64| Product {
        id: product.id + step,
        parent: product.id,
        kind: Kind::Variation,
        sku: format!("{}-{}", product.sku, slug.get(..1).unwrap_or_default()),
        slug: format!("{}-{slug}", product.slug),
        options: vec![("pa_size".to_owned(), slug.to_owned())],
        regular: Some(base + more),
        stock: 100,
        short_description: String::new(),
        categories: Vec::new(),
        ..product.clone()
    };
    let variations: Vec<Product> =
        SIZES.iter().zip(1..).map(|((_, _, slug, more), step)| size(step, slug, *more)).collect();
    let attribute = Attribute { id: 1, name: "Size".to_owned(), taxonomy: "pa_size".to_owned(), terms };
    let parent = Product {
        kind: Kind::Variable,
        attributes: vec![attribute],
        regular: None,
        manage_stock: false,
        stock: 0,
        ..product
    };
    std::iter::once(parent).chain(variations).collect()
}
