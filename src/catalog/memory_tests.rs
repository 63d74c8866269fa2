use super::*;
use crate::{
    catalog::{Availability, Filter, Limits, PriceRange, Stock, Variant},
    money::{Currency, Money},
};

const BYTES: u64 = 400_000;

/// A product with variants, and about so many bytes of text.
fn product(number: usize, variants: usize, text: usize) -> Arc<Product> {
    let price = Money::new(100, Currency::parse("EUR").unwrap());
    let variant = |n| {
        Arc::new(Variant {
            id: format!("{number}-{n}"),
            sku: None,
            title: String::new(),
            description: String::new(),
            url: None,
            price,
            list_price: None,
            availability: Availability { stock: Stock::In, left: None },
            limits: Limits { minimum: 1, maximum: None, step: 1 },
            options: Vec::new(),
            media: Vec::new(),
        })
    };
    Arc::new(Product {
        id: number.to_string(),
        handle: String::new(),
        title: String::new(),
        summary: String::new(),
        description: "x".repeat(text),
        url: None,
        categories: Vec::new(),
        prices: PriceRange { min: price, max: price },
        list_prices: None,
        media: Vec::new(),
        axes: Vec::new(),
        variants: (0..variants).map(variant).collect(),
        shown: VariantsShown::All,
        rating: None,
        tags: Vec::new(),
    })
}

fn query(text: String) -> Query {
    Query { text: Some(text), filter: Filter::default(), page: 1, limit: 10 }
}

fn found(product: &Arc<Product>, variant: &str) -> Found {
    Found { product: Arc::clone(product), variant: Some(variant.to_owned()) }
}

#[tokio::test]
async fn all_that_is_kept_stays_within_the_bytes() {
    let memory = Memory::new(BYTES, Duration::from_mins(1));
    for number in 0..300 {
        let product = product(number, 1 + number % 7, 10_000);
        memory
            .remember(
                &query("words".to_owned()),
                &Page { products: vec![Arc::clone(&product)], total: None, more: false },
            )
            .await;
        // Long ids and long questions weigh, too.
        memory.keep(std::iter::once(("i".repeat(200) + &number.to_string(), None))).await;
        memory
            .pages
            .insert(
                query("q".repeat(500) + &number.to_string()),
                Arc::new(Page { products: vec![product], total: None, more: false }),
            )
            .await;
    }
    memory.pages.run_pending_tasks().await;
    memory.looks.run_pending_tasks().await;
    memory.ways.run_pending_tasks().await;
    // Counted anew, each kept product once, whatever the caches say.
    let pages: usize =
        memory.pages.iter().map(|(query, page)| query.weight() + page.products[0].weight()).sum();
    let looks: usize = memory.looks.iter().map(|(_, product)| product.weight()).sum();
    let ways: usize = memory.ways.iter().map(|(id, _)| id.len()).sum();
    let bytes = usize::try_from(BYTES).unwrap();
    assert!(looks > 10_000 && pages > 10_000 && ways > 200, "something is kept: {looks} {pages} {ways}");
    assert!(pages + looks + ways <= bytes, "{pages} + {looks} + {ways} of {bytes}");
}

#[tokio::test]
async fn ids_of_one_product_share_it_and_end_with_it() {
    let memory = Memory::new(BYTES, Duration::from_mins(1));
    let large = product(1, 60, 20_000);
    let ids = large.variants.iter().map(|v| (v.id.clone(), Some(found(&large, &v.id))));
    memory.keep(ids.collect::<Vec<_>>().into_iter()).await;
    memory.looks.run_pending_tasks().await;
    assert_eq!(memory.looks.entry_count(), 1, "weighed once");
    assert_eq!(memory.known("1-7").await, Some(Some(found(&large, "1-7"))));
    memory.looks.invalidate_all();
    assert_eq!(memory.known("1-7").await, None);
    memory.keep(std::iter::once(("nothing".to_owned(), None))).await;
    assert_eq!(memory.known("nothing").await, Some(None));
}

#[test]
fn every_text_weighs() {
    let plain = product(1, 1, 0).weight();
    let mut heavy = (*product(1, 1, 0)).clone();
    heavy.tags = vec!["t".repeat(1000)];
    heavy.handle = "h".repeat(1000);
    heavy.url = Some("u".repeat(1000));
    assert!(heavy.weight() >= plain + 3000);
}
