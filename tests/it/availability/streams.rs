//! Streams of changes.

use std::{collections::VecDeque, time::Duration};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{Place, QUICK, header, level};
use crate::support::{
    config::{Config, Seller},
    listen,
    process::Process,
};

/// An event, or a comment (without a kind).
#[derive(Debug, Clone, Default, PartialEq)]
struct Event {
    kind: String,
    id: String,
    data: Value,
    retry: String,
    comment: bool,
}

impl Event {
    fn read(text: &str) -> Self {
        let mut event = Self::default();
        for line in text.lines() {
            match line.split_once(':').map(|(name, value)| (name, value.trim_start())) {
                Some(("", _)) => event.comment = true,
                Some(("event", kind)) => kind.clone_into(&mut event.kind),
                Some(("id", id)) => id.clone_into(&mut event.id),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                Some(("retry", retry)) => retry.clone_into(&mut event.retry),
                other => panic!("{other:?} in {text}"),
            }
        }
        event
    }

    fn product(&self) -> &str {
        let data = &self.data;
        data["itemOffered"]["productID"].as_str().or(data["productID"].as_str()).unwrap()
    }
}

/// Reads a stream.
struct Reader {
    response: Response,
    rest: String,
    ready: VecDeque<Event>,
}

impl Reader {
    async fn open(place: &Place, query: &str, last: Option<&str>) -> Self {
        let headers: Vec<_> = last.map(|id| ("last-event-id", id)).into_iter().collect();
        Self::of(place.ask(Method::GET, &format!("stream?{query}"), &headers).await)
    }

    #[track_caller]
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "content-type"), "text/event-stream");
        Self { response, rest: String::new(), ready: VecDeque::new() }
    }

    /// The next event or comment; `None` at the end.
    async fn any(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let chunk = tokio::time::timeout(Duration::from_secs(30), self.response.chunk()).await;
            let Ok(chunk) = chunk else { panic!("nothing for 30 s") };
            let chunk = chunk.unwrap()?;
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some(end) = self.rest.find("\n\n") {
                let rest = self.rest.split_off(end + 2);
                let event = std::mem::replace(&mut self.rest, rest);
                self.ready.push_back(Event::read(event.trim_end()));
            }
        }
    }

    /// The next event with data.
    async fn next(&mut self) -> Event {
        loop {
            let Some(event) = self.any().await else { panic!("the stream ended") };
            if !event.kind.is_empty() {
                return event;
            }
        }
    }

    /// Whether the next thing of interest is a heartbeat.
    async fn is_silent(&mut self) -> bool {
        loop {
            let Some(event) = self.any().await else { panic!("the stream ended") };
            if event.retry.is_empty() {
                return event.comment;
            }
        }
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_state_of_each_product() {
    let place = Place::new(|_| {}).await;
    let response = place.ask(Method::GET, "stream?products=20%2C26,nothing&product=22", &[]).await;
    for (name, value) in
        [("access-control-allow-origin", "*"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert_eq!(header(&response, name), value, "{name}");
    }
    let mut reader = Reader::of(response);
    assert_eq!(reader.any().await.unwrap().retry, "3000");
    let mut ids = Vec::new();
    for (product, kind) in
        [("20", "availability"), ("26", "availability"), ("nothing", "gone"), ("22", "availability")]
    {
        let event = reader.next().await;
        assert_eq!((event.product(), event.kind.as_str()), (product, kind));
        if kind == "availability" {
            assert_eq!(event.data, place.document(product).await);
        }
        assert!(!event.id.is_empty() && !ids.contains(&event.id));
        ids.push(event.id);
    }
}

#[tokio::test]
async fn a_change_at_the_shop_is_told_once() {
    let place = Place::new(QUICK).await;
    let mut reader = Reader::open(&place, "products=24,20", None).await;
    assert_eq!(level(&reader.next().await.data), ("InStock", None));
    assert_eq!(reader.next().await.product(), "20");
    place.stock(24, 2);
    let event = reader.next().await;
    assert_eq!((event.product(), level(&event.data)), ("24", ("LimitedAvailability", Some(2))));
    place.stock(24, 0);
    let event = reader.next().await;
    assert_eq!((event.product(), level(&event.data)), ("24", ("OutOfStock", None)));
    assert!(reader.is_silent().await, "nothing else changed");
}

#[tokio::test]
async fn a_purchase_through_the_gateway_is_told() {
    let place = Place::new(QUICK).await;
    place.app.flower().act(&json!({"op": "stock", "product": "orchid_white", "quantity": 2})).unwrap();
    let path = "stream?products=orchid_white";
    let mut reader = Reader::of(place.ask_at("127.0.0.1", Method::GET, path, &[]).await);
    assert_eq!(level(&reader.next().await.data), ("LimitedAvailability", Some(2)));
    let ucp = place.app.ucp();
    let checkout = ucp.ready("orchid_white", 2).await;
    let done = ucp.complete(&checkout, "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed");
    // While it was being placed, fewer may have been told.
    while level(&reader.next().await.data).0 != "OutOfStock" {}
}

#[tokio::test]
async fn a_stream_goes_on_where_the_last_one_ended() {
    let place = Place::new(QUICK).await;
    let products = "products=20,24,25";
    let mut reader = Reader::open(&place, products, None).await;
    let first = reader.next().await.id;
    let (_, last) = (reader.next().await, reader.next().await.id);
    drop(reader);

    // Only the first had been read.
    let mut resumed = Reader::open(&place, products, Some(&first)).await;
    assert_eq!((resumed.next().await.product(), resumed.next().await.product()), ("24", "25"));
    assert!(resumed.is_silent().await);
    drop(resumed);

    // All had been; one has changed since. Another process knows it, too.
    place.stock(24, 1);
    let other = Place {
        address: other_gateway(&place).await,
        client: place.client.clone(),
        ..Place::new(QUICK).await
    };
    let mut resumed = Reader::open(&other, products, Some(&last)).await;
    let event = resumed.next().await;
    assert_eq!((event.product(), level(&event.data)), ("24", ("LimitedAvailability", Some(1))));
    assert!(resumed.is_silent().await);
    assert_ne!(event.id, last);
    drop(resumed);

    // What is not understood, or was of other products, is nothing.
    for (products, last) in [(products, "1"), (products, "a.b.c"), ("products=22,23,21", last.as_str())] {
        let mut reader = Reader::open(&place, products, Some(last)).await;
        for product in products.trim_start_matches("products=").split(',') {
            assert_eq!(reader.next().await.product(), product, "{last}");
        }
    }
}

/// Another gateway over the same shops.
async fn other_gateway(place: &Place) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tillgate::app::demo_settings(&place.app.shop_url, folder.path()).unwrap();
    QUICK(&mut settings);
    let environment = tillgate::app::Environment::default();
    let app = tillgate::app::App::build(&settings, environment).await.unwrap();
    listen(app.router()).await
}

#[tokio::test]
async fn silence_is_broken_by_comments_and_a_stream_ends_in_its_time() {
    let place = Place::new(|settings| {
        settings.availability.heartbeat_secs = 1;
        settings.availability.stream_secs = 3;
    })
    .await;
    let mut reader = Reader::open(&place, "products=20", None).await;
    reader.next().await;
    let mut comments = 0;
    while let Some(event) = reader.any().await {
        assert!(event.comment, "{event:?}");
        comments += 1;
    }
    assert!((1..=4).contains(&comments), "{comments}");
}

#[tokio::test]
async fn there_are_so_many_streams_and_no_more() {
    let place = Place::new(|settings| {
        settings.availability.max_clients = 2;
        settings.availability.heartbeat_secs = 1;
        settings.availability.poll_secs = 1;
    })
    .await;
    assert_eq!(place.ask(Method::HEAD, "stream?products=20", &[]).await.status(), 200);
    let first = Reader::open(&place, "products=20", None).await;
    // Both shops share the limit.
    let second = Reader::of(place.ask_at("127.0.0.1", Method::GET, "stream?products=gardenias", &[]).await);
    let refused = place.ask(Method::GET, "stream?products=20", &[]).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "retry-after")), (503, "30"));
    assert_eq!(header(&refused, "content-type"), "application/problem+json");
    drop(first);
    crate::program::until("a free place", async || {
        let response = place.ask(Method::GET, "stream?products=20", &[]).await;
        (response.status() == 200).then_some(Value::Null)
    })
    .await;
    drop(second);
    // With the last reader the looking ends.
    let rest = tokio::time::timeout(Duration::from_secs(20), place.app.app.rest()).await;
    assert!(rest.is_ok(), "something still runs");
}

#[tokio::test]
async fn a_stream_is_of_one_to_fifty_products() {
    let place = Place::new(|_| {}).await;
    let many = |count| (0..count).map(|n| format!("p{n}")).collect::<Vec<_>>().join(",");
    for query in ["", "products=", "products=,", "other=20", &format!("products={}", many(51))] {
        let response = place.ask(Method::GET, &format!("stream?{query}"), &[]).await;
        assert_eq!(response.status(), 400, "{query}");
        assert_eq!(header(&response, "content-type"), "application/problem+json");
    }
    let mut reader = Reader::open(&place, &format!("products={}", many(50)), None).await;
    for n in 0..50 {
        assert_eq!(reader.next().await.product(), format!("p{n}"));
    }
}

#[tokio::test]
async fn many_streams_cost_the_shop_what_one_costs() {
    let place = Place::new(QUICK).await;
    let mut readers = Vec::new();
    for _ in 0..30 {
        let mut reader = Reader::open(&place, "products=20,24", None).await;
        reader.next().await;
        reader.next().await;
        readers.push(reader);
    }
    place.app.shop_calls().await;
    let start = std::time::Instant::now();
    for _ in 0..3 {
        assert!(readers[0].is_silent().await);
    }
    let calls = place.app.shop_calls().await.len();
    // Five calls a round at most: what the products are (three), article numbers, stock.
    let rounds = usize::try_from(start.elapsed().as_secs()).unwrap() + 2;
    assert!((1..=5 * rounds).contains(&calls), "{calls} in {rounds} rounds");
}

#[tokio::test]
async fn an_open_stream_does_not_hold_up_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Process::shop(&[]).await;
    let config = Config { shop: &shop.address, seller: Seller::Flower, ..Config::default() };
    let mut gateway = Process::serve(&config.write(folder.path()), &[]).await;
    let url = format!("{}/availability/stream?products=gardenias", gateway.address);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut reader = Reader::of(client.get(url).send().await.unwrap());
    assert_eq!(level(&reader.next().await.data), ("OutOfStock", None));
    gateway.signal("TERM");
    assert_eq!(reader.any().await, None, "the stream ends whole");
    // Less than the wait of a stop (30 s), at whose end connections are cut.
    assert!(gateway.ends_within(Duration::from_secs(10)).await.success());
}
