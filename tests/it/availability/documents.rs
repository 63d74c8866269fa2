//! One document for each product.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Place, QUICK, header, level};

#[tokio::test]
async fn a_document_is_an_offer_of_schema_org() {
    let place = Place::new(|_| {}).await;
    let response = place.ask(Method::GET, "20", &[]).await;
    assert_eq!(response.status(), 200);
    for (name, value) in [
        ("content-type", "application/ld+json"),
        ("cache-control", "public, max-age=10"),
        ("access-control-allow-origin", "*"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(header(&response, name), value, "{name}");
    }
    let document: Value = response.json().await.unwrap();
    let url = document["url"].as_str().unwrap().to_owned();
    assert!(url.contains("last-one-lamp"), "{url}");
    assert_eq!(
        document,
        json!({
            "@context": "https://schema.org",
            "@type": "Offer",
            "availability": "https://schema.org/LimitedAvailability",
            "inventoryLevel": {"@type": "QuantitativeValue", "value": 1},
            "itemOffered": {"@type": "Product", "name": "Last one lamp", "productID": "20", "sku": "LAST-01", "url": url},
            "price": "40.00",
            "priceCurrency": "EUR",
            "seller": {"@type": "Organization", "name": document["seller"]["name"], "url": "https://shop.example.com/"},
            "sku": "LAST-01",
            "url": url,
        })
    );
}

#[tokio::test]
async fn every_level_is_told_and_a_number_only_below_the_threshold() {
    let place = Place::new(|_| {}).await;
    place.stock(21, 0);
    for (id, told) in [
        ("19", ("InStock", None)),
        ("20", ("LimitedAvailability", Some(1))),
        ("21", ("BackOrder", None)),
        ("22", ("OutOfStock", None)),
        ("25", ("InStock", None)),
        ("27", ("InStock", None)),
        ("28", ("OutOfStock", None)),
    ] {
        assert_eq!(level(&place.document(id).await), told, "{id}");
    }
    let small = Place::new(|settings| settings.availability.threshold = 1).await;
    assert_eq!(level(&small.document("20").await), ("InStock", None));
}

#[tokio::test]
async fn a_product_with_variants_is_a_bundle_of_offers() {
    let place = Place::new(|_| {}).await;
    let tee = place.document("26").await;
    assert_eq!((&tee["@type"], &tee["offerCount"]), (&json!("AggregateOffer"), &json!(4)));
    assert_eq!((&tee["lowPrice"], &tee["highPrice"]), (&json!("18.00"), &json!("22.00")));
    assert_eq!(level(&tee).0, "InStock");
    let mut offers: Vec<_> = tee["offers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| (offer["itemOffered"]["productID"].as_str().unwrap(), level(offer).0))
        .collect();
    offers.sort_unstable();
    // Of 29 three are left.
    assert_eq!(
        offers,
        [("27", "InStock"), ("28", "OutOfStock"), ("29", "LimitedAvailability"), ("30", "InStock")]
    );
}

#[tokio::test]
async fn ids_are_those_of_a_checkout() {
    let place = Place::new(|_| {}).await;
    let by_number = place.document("20").await;
    assert_eq!(place.document("LAST-01").await, by_number);
    assert_eq!(place.document("LAST%2D01").await, by_number);
    let flower = place.ask_at("127.0.0.1", Method::GET, "gardenias", &[]).await;
    assert_eq!(level(&flower.json::<Value>().await.unwrap()), ("OutOfStock", None));
}

#[tokio::test]
async fn what_is_not_sold_here_is_a_problem_that_repeats_nothing() {
    let place = Place::new(|_| {}).await;
    let long = "9".repeat(300);
    // A group, a draft, a thing without a price, what is no text, a name that the stream has.
    for id in ["nothing", "34", "41", "40", "%FF", "a%00b", "%3Cscript%3E", "20x", "%73tream", &long] {
        let response = place.ask(Method::GET, id, &[]).await;
        assert_eq!(response.status(), 404, "{id}");
        assert_eq!(header(&response, "content-type"), "application/problem+json");
        assert_eq!(header(&response, "access-control-allow-origin"), "*");
        let problem: Value = response.json().await.unwrap();
        let told = json!({"title": "Not Found", "status": 404, "detail": "No such product is sold here."});
        assert_eq!(problem, told, "{id}");
    }
}

#[tokio::test]
async fn a_tag_saves_the_body_until_something_changes() {
    let place = Place::new(QUICK).await;
    let first = place.ask(Method::GET, "24", &[]).await;
    let tag = header(&first, "etag").to_owned();
    assert!(tag.starts_with('"') && tag.len() > 20, "{tag}");
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let same = place.ask(Method::GET, "24", &[("if-none-match", &known)]).await;
        assert_eq!((same.status().as_u16(), header(&same, "etag")), (304, tag.as_str()), "{known}");
        assert_eq!(header(&same, "access-control-allow-origin"), "*");
        assert_eq!(same.bytes().await.unwrap().len(), 0);
    }
    place.stock(24, 1);
    let changed = crate::program::until("a new tag", async || {
        let response = place.ask(Method::GET, "24", &[("if-none-match", &tag)]).await;
        (response.status() == 200).then_some(response.json().await.unwrap_or_default())
    });
    assert_eq!(level(&changed.await), ("LimitedAvailability", Some(1)));
}

#[tokio::test]
async fn head_tells_the_same_without_a_body() {
    let place = Place::new(|_| {}).await;
    let whole = place.ask(Method::GET, "20", &[]).await;
    let head = place.ask(Method::HEAD, "20", &[]).await;
    assert_eq!(head.status(), 200);
    for name in ["etag", "content-type", "cache-control", "content-length"] {
        assert_eq!(header(&head, name), header(&whole, name), "{name}");
    }
    assert_eq!(head.bytes().await.unwrap().len(), 0);
    assert_eq!(place.ask(Method::HEAD, "nothing", &[]).await.status(), 404);
    assert_eq!(place.ask(Method::POST, "20", &[]).await.status(), 405);
}

#[tokio::test]
async fn no_text_of_a_shop_leaves_the_script_around_it() {
    let name = "</script><script>alert('&')</script>\u{2028}";
    let place = Place::new(|settings| {
        settings.shops.get_mut("general").unwrap().title =
            Some("</script><script>alert('&')</script>\u{2028}".to_owned());
    })
    .await;
    let text = place.ask(Method::GET, "37", &[]).await.text().await.unwrap();
    assert!(!text.contains(['<', '>', '&', '\u{2028}', '\n']), "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["seller"]["name"], name);
    let title = document["itemOffered"]["name"].as_str().unwrap();
    assert!(title.contains("& Tee"), "{title}");
}

#[tokio::test]
async fn a_hammered_address_costs_the_shop_what_one_look_costs() {
    let place = Place::new(|settings| {
        settings.availability.poll_secs = 1;
        settings.availability.reading_secs = 300;
    })
    .await;
    place.app.shop_calls().await;
    let ask = || async { place.ask(Method::GET, "20", &[]).await.text().await.unwrap() };
    let first = futures::future::join_all((0..100).map(|_| ask())).await;
    assert!(first.iter().all(|text| *text == first[0]));
    let calls = place.app.shop_calls().await;
    // What the product is, and its stock: as many as one who asks alone.
    assert!((1..=3).contains(&calls.len()), "{calls:#?}");
    // Its document is made anew meanwhile, from what is known of the shop.
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < 1_500 {
        futures::future::join_all((0..20).map(|_| ask())).await;
    }
    assert_eq!(place.app.shop_calls().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_shop_that_cannot_be_asked_is_said_to_be_away() {
    let place = Place::new(|_| {}).await;
    place.app.general().act(&json!({"op": "maintenance", "value": true})).unwrap();
    for path in ["20", "stream?products=20"] {
        let response = place.ask(Method::GET, path, &[]).await;
        assert_eq!(response.status(), 503, "{path}");
        assert!(header(&response, "retry-after").parse::<u64>().unwrap() >= 1);
        assert_eq!(header(&response, "content-type"), "application/problem+json");
    }
    place.app.general().act(&json!({"op": "maintenance", "value": false})).unwrap();
    assert_eq!(place.ask(Method::GET, "20", &[]).await.status(), 200);
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let place = Place::new(|settings| settings.availability.enabled = false).await;
    for path in ["20", "stream?products=20"] {
        let response = place.ask(Method::GET, path, &[]).await;
        assert_eq!(response.status(), 404);
        assert!(response.text().await.unwrap().starts_with("Nothing is here."));
    }
}
