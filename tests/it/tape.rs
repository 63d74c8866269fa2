//! The tape plays recorded shops: threads, order, what may differ, and what is refused.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use tillgate::store::tape::{self, Tape};
use tower::ServiceExt as _;

const BATCH: &str = "/wp-json/wc/store/v1/batch";
const CHECKOUT: &str = "/wp-json/wc/store/v1/checkout";
const TOKEN_CALL: &str = "/wp-json/wc/store/v1/cart?_fields=items_count";
const FIELDS: &str = "items,items_count,coupons,fees,totals,shipping_rates,billing_address,shipping_address,\
    needs_payment,needs_shipping,payment_methods,errors";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store")
}

/// A shop made of the named files, and a copy of what they say.
struct Shop {
    router: Router,
    tape: Arc<Tape>,
    entries: Vec<Value>,
}

/// What the shop answered.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
    text: String,
}

impl Answer {
    fn ok(self) -> Self {
        assert!(self.status < 300, "{}", self.text);
        self
    }

    fn token(&self) -> String {
        self.headers["cart-token"].to_str().unwrap().to_owned()
    }
}

impl Shop {
    fn of(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::copy(fixtures().join(file), folder.path().join(file)).unwrap();
        }
        Self::load(folder.path())
    }

    /// A shop from entries written here.
    fn of_entries(own: &Value, entries: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let har = json!({ "log": { "version": "1.2", "_tillgate": own, "entries": entries } });
        std::fs::write(folder.path().join("hand-made.har"), har.to_string()).unwrap();
        Self::load(folder.path())
    }

    fn load(folder: &Path) -> Self {
        let tape = Arc::new(Tape::load(folder).unwrap());
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let entries = files.iter().flat_map(|file| {
            let har: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            har["log"]["entries"].as_array().unwrap().clone()
        });
        Self { router: tape::router(Arc::clone(&tape)), entries: entries.collect(), tape }
    }

    async fn call(&self, method: &str, address: &str, token: Option<&str>, body: Option<&Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(address);
        if let Some(token) = token {
            request = request.header("Cart-Token", token);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let answer = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body, text }
    }

    async fn token(&self) -> String {
        self.call("GET", TOKEN_CALL, None, None).await.ok().token()
    }

    /// Makes the call of a recorded entry with another token, and with its body changed by `alter`.
    async fn again(&self, entry: usize, token: &str, alter: impl Fn(&mut Value)) -> Answer {
        let request = &self.entries[entry]["request"];
        let url = request["url"].as_str().unwrap().strip_prefix("https://shop.example.com").unwrap();
        let carries =
            request["headers"].as_array().unwrap().iter().any(|header| header["name"] == "Cart-Token");
        let body = request["postData"]["text"].as_str().map(|text| {
            let mut body: Value = serde_json::from_str(text).unwrap();
            for inner in body.get_mut("requests").and_then(Value::as_array_mut).into_iter().flatten() {
                inner["headers"]["Cart-Token"] = token.into();
            }
            alter(&mut body);
            body
        });
        let method = request["method"].as_str().unwrap();
        self.call(method, url, carries.then_some(token), body.as_ref()).await
    }

    async fn play(&self, entry: usize, token: &str) -> Answer {
        self.again(entry, token, |_| {}).await
    }

    fn recorded(&self, entry: usize) -> Value {
        serde_json::from_str(self.entries[entry]["response"]["content"]["text"].as_str().unwrap()).unwrap()
    }

    fn recorded_tokens(&self) -> BTreeSet<String> {
        let text = Value::from(self.entries.clone()).to_string();
        let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        parts.filter(|part| part.starts_with("eyJ")).map(str::to_owned).collect()
    }
}

fn inner(token: &str, call: &str, body: &Value) -> Value {
    json!({ "method": "POST", "path": format!("/wc/store/v1/cart/{call}"), "headers": { "Cart-Token": token },
        "body": body })
}

fn add(token: &str, id: u64) -> Value {
    json!({ "requests": [inner(token, &format!("add-item?_fields={FIELDS}"), &json!({ "id": id, "quantity": 1 }))] })
}

/// An entry as a recorder writes it.
fn entry(method: &str, path: &str, token: Option<&str>, body: Option<&Value>, answer: &Value) -> Value {
    let headers = |token: Option<&str>| match token {
        Some(token) => json!([{ "name": "Cart-Token", "value": token }]),
        None => json!([]),
    };
    json!({
        "comment": format!("{method} {path}"),
        "request": { "method": method, "url": format!("https://shop.example.com{path}"), "headers": headers(token),
            "postData": body.map(|body| json!({ "text": body.to_string() })) },
        "response": { "status": 200, "headers": headers(Some("recorded-token")),
            "content": { "text": answer.to_string() } },
    })
}

const CART: &str = "/wp-json/wc/store/v1/cart";
const ADD: &str = "/wp-json/wc/store/v1/cart/add-item";
const RECORDED: Option<&str> = Some("recorded-token");

#[tokio::test]
async fn a_whole_purchase_is_played_with_tokens_of_the_tape() {
    let shop = Shop::of(&["38a-journey-plain.har"]);
    assert_eq!(shop.tape.entries(), 8);
    let token = shop.token().await;
    for entry in 1..8 {
        let answer = shop.play(entry, &token).await.ok();
        let recorded = shop.recorded(entry);
        match answer.body.get("responses") {
            Some(inner) => assert_eq!(inner[1]["body"], recorded["responses"][1]["body"], "entry {entry}"),
            None => assert_eq!(answer.body, recorded, "entry {entry}"),
        }
    }
}

#[tokio::test]
async fn a_declined_purchase_is_paid_at_the_second_attempt() {
    let shop = Shop::of(&["39a-journey-decline-and-retry.har"]);
    let token = shop.token().await;
    for entry in 1..11 {
        let answer = shop.play(entry, &token).await;
        assert_eq!(shop.entries[entry]["response"]["status"], answer.status, "{}", answer.text);
    }
}

#[tokio::test]
async fn tokens_of_the_recording_never_reach_the_caller() {
    for file in ["38a-journey-plain.har", "39a-journey-decline-and-retry.har", "39e-journey-variation.har"] {
        let shop = Shop::of(&[file]);
        let recorded = shop.recorded_tokens();
        assert!(!recorded.is_empty());
        let token = shop.token().await;
        for entry in 0..shop.entries.len() {
            let answer = shop.play(entry, &token).await;
            let seen = format!("{:?} {}", answer.headers, answer.text);
            assert!(recorded.iter().all(|token| !seen.contains(token)), "{file}, entry {entry}");
            if answer.body.get("responses").is_some() {
                assert_eq!(
                    answer.body["responses"][0]["headers"]["Cart-Token"], token,
                    "{file}, entry {entry}"
                );
            }
        }
    }
}

#[tokio::test]
async fn the_third_read_returns_one_item() {
    let body = json!({ "id": 19, "quantity": 1 });
    let shop = Shop::of_entries(
        &json!({}),
        &[
            entry("GET", CART, None, None, &json!({ "items": [] })),
            entry("POST", ADD, RECORDED, Some(&body), &json!({ "items": [1] })),
            entry("GET", CART, RECORDED, None, &json!({ "items": [1] })),
        ],
    );
    let first = shop.call("GET", CART, None, None).await.ok();
    assert_eq!(first.body, json!({ "items": [] }));
    let token = first.token();
    // Reads may be repeated: the state is the same until the write.
    assert_eq!(shop.call("GET", CART, Some(&token), None).await.ok().body, json!({ "items": [] }));
    shop.call("POST", ADD, Some(&token), Some(&body)).await.ok();
    for _ in 0..2 {
        assert_eq!(shop.call("GET", CART, Some(&token), None).await.ok().body, json!({ "items": [1] }));
    }
}

#[tokio::test]
async fn a_read_that_was_recorded_in_another_state_is_unmatched() {
    let shop = Shop::of(&["38a-journey-plain.har"]);
    let token = shop.token().await;
    shop.play(1, &token).await.ok();
    let early = shop.play(3, &token).await;
    assert_eq!((early.status, &early.body["nearest"]["difference"]["path"]), (501, &json!("order")));
    shop.play(2, &token).await.ok();
    shop.play(3, &token).await.ok();
}

#[tokio::test]
async fn reads_may_be_skipped_and_the_same_look_moves_on() {
    let look =
        |answer: &str| entry("GET", "/wp-json/wc/v3/orders?after=2026-01-01", None, None, &json!(answer));
    let body = json!({ "id": 1 });
    let shop = Shop::of_entries(
        &json!({}),
        &[
            entry("POST", ADD, RECORDED, Some(&body), &json!({})),
            entry("GET", CART, RECORDED, None, &json!({})),
            look("pending"),
            look("processing"),
        ],
    );
    let token = shop.token().await;
    shop.call("POST", ADD, Some(&token), Some(&body)).await.ok();
    for expected in ["pending", "processing", "processing"] {
        let answer = shop.call("GET", "/wp-json/wc/v3/orders?after=2031-12-31", None, None).await.ok();
        assert_eq!(answer.body, expected);
    }
}

#[tokio::test]
async fn a_retry_of_a_write_out_of_order_is_unmatched_and_names_its_nearest_candidate() {
    let shop = Shop::of(&["38a-journey-plain.har"]);
    let token = shop.token().await;
    for entry in [1, 2] {
        shop.play(entry, &token).await.ok();
    }
    let again = shop.play(2, &token).await;
    assert_eq!(again.status, 501);
    assert_eq!(again.body["code"], "tape_no_match");
    assert!(again.body["message"].as_str().unwrap().contains("out of order"), "{}", again.text);
    let nearest = json!({ "file": "38a-journey-plain.har", "entry": 2, "comment": "update: coupon and rate",
        "difference": { "path": "order", "wanted": "entry 4 (complete 1: check)",
            "got": "entry 2 (update: coupon and rate)" } });
    assert_eq!(again.body["nearest"], nearest);
    // Nothing was lost by it.
    shop.play(4, &token).await.ok();
}

#[tokio::test]
async fn an_unmatched_call_names_the_first_difference() {
    let shop = Shop::of(&["38a-journey-plain.har"]);
    let token = shop.token().await;
    for entry in [1, 2, 4] {
        shop.play(entry, &token).await.ok();
    }
    let other = shop.again(5, &token, |body| body["expected_total"] = "5234".into()).await;
    assert_eq!(other.status, 501);
    assert_eq!(other.body["nearest"]["comment"], "complete 2: place");
    let difference = json!({ "path": "$.body.expected_total", "wanted": "5233", "got": "5234" });
    assert_eq!(other.body["nearest"]["difference"], difference);
}

#[tokio::test]
async fn a_single_call_matches_a_batch_of_one() {
    let shop = Shop::of(&["39c-journey-virtual.har"]);
    let token = shop.token().await;
    let address = format!("{ADD}?_fields=items_count,totals");
    let single = shop.call("POST", &address, Some(&token), Some(&json!({ "quantity": 1, "id": 31 }))).await;
    assert_eq!((single.status, single.token()), (201, token));
    let recorded = &shop.recorded(1)["responses"][0]["body"];
    let trimmed = json!({ "items_count": recorded["items_count"], "totals": recorded["totals"] });
    assert_eq!(single.body, trimmed);
}

#[tokio::test]
async fn a_batch_of_one_matches_a_single_call() {
    let body = json!({ "id": 31, "quantity": 1 });
    let answer = json!({ "items": [1], "totals": {} });
    let shop = Shop::of_entries(&json!({}), &[entry("POST", ADD, RECORDED, Some(&body), &answer)]);
    let token = shop.token().await;
    let batch = json!({ "requests": [inner(&token, "add-item?_fields=items", &body)] });
    let answer = shop.call("POST", BATCH, Some(&token), Some(&batch)).await;
    assert_eq!(answer.status, 207);
    let expected = json!([{ "body": { "items": [1] }, "status": 200, "headers": { "Cart-Token": token } }]);
    assert_eq!(answer.body["responses"], expected);
    assert!(!answer.headers.contains_key("cart-token"));
}

#[tokio::test]
async fn a_correlation_id_binds_at_first_use() {
    let shop = Shop::of(&["39a-journey-decline-and-retry.har"]);
    let token = shop.token().await;
    let with = |id: &'static str| {
        move |body: &mut Value| {
            if let Some(attribution) = body.pointer_mut("/extensions/woocommerce~1order-attribution") {
                attribution["utm_id"] = id.into();
                body.as_object_mut().unwrap().remove("customer_note");
            }
        }
    };
    for entry in 1..7 {
        shop.again(entry, &token, with("corr_mine")).await;
    }
    let other = shop.again(7, &token, with("corr_other")).await;
    assert_eq!(other.status, 501, "{}", other.text);
    shop.again(7, &token, with("corr_mine")).await.ok();
    // The shop echoes it, and so does the tape.
    let orders = shop.play(9, &token).await.ok();
    assert!(orders.text.contains("corr_mine"), "{}", orders.text);
    assert!(!orders.text.contains("corr_0000000000000011"));
}

#[tokio::test]
async fn stand_ins_bind_at_first_use_and_come_back_as_the_live_value() {
    let stand_in = "buyer-1@scrubbed.invalid";
    let order = format!("/wp-json/wc/store/v1/order/7?key=k-scrubbed-1&billing_email={stand_in}");
    let shop = Shop::of_entries(
        &json!({ "stand_ins": [stand_in, "k-scrubbed-1"] }),
        &[
            entry(
                "POST",
                CHECKOUT,
                RECORDED,
                Some(&json!({ "email": stand_in })),
                &json!({ "order_id": 7, "order_key": "k-scrubbed-1", "to": format!("mailto:{stand_in}") }),
            ),
            entry("GET", &order, None, None, &json!({ "email": stand_in })),
        ],
    );
    let token = shop.token().await;
    let body = json!({ "email": "anna@example.com" });
    let placed = shop.call("POST", CHECKOUT, Some(&token), Some(&body)).await.ok();
    assert_eq!(placed.body["to"], "mailto:anna@example.com");
    let look =
        |key: &str, email: &str| format!("/wp-json/wc/store/v1/order/7?billing_email={email}&key={key}");
    // The key was seen in an answer: it means itself from then on.
    for wrong in [look("other", "anna@example.com"), look("k-scrubbed-1", stand_in)] {
        assert_eq!(shop.call("GET", &wrong, None, None).await.status, 501);
    }
    let read = shop.call("GET", &look("k-scrubbed-1", "anna@example.com"), None, None).await.ok();
    assert_eq!(read.body["email"], "anna@example.com");
}

#[tokio::test]
async fn what_a_buyer_gives_is_not_bound_by_an_answer_that_shows_it_first() {
    let mut cart = entry("GET", CART, RECORDED, None, &json!({ "city": "city-1.scrubbed" }));
    let body = json!({ "city": "city-1.scrubbed", "card": "payment-1.scrubbed" });
    let answer = json!({ "order_key": "order-key-1.scrubbed", "city": "city-1.scrubbed" });
    let mut placed = entry("POST", CHECKOUT, RECORDED, Some(&body), &answer);
    cart["_tillgate"] = json!({ "stand_ins": ["city-1.scrubbed"], "personal": ["city-1.scrubbed"] });
    let personal = ["city-1.scrubbed", "payment-1.scrubbed"];
    let all = [&personal[..], &["order-key-1.scrubbed"]].concat();
    placed["_tillgate"] = json!({ "stand_ins": all, "personal": personal });
    let order = "/wp-json/wc/store/v1/order/7?key=order-key-1.scrubbed";
    let order = entry("GET", order, None, None, &json!({}));
    let shop = Shop::of_entries(&json!({}), &[cart, placed, order]);
    let token = shop.token().await;
    let shown = shop.call("GET", CART, Some(&token), None).await.ok();
    assert_eq!(shown.body["city"], "city-1.scrubbed");
    // A number that was scrubbed is a text in the recording.
    let body = json!({ "city": "Ulm", "card": 4_242_424_242_u64 });
    let placed = shop.call("POST", CHECKOUT, Some(&token), Some(&body)).await.ok();
    assert_eq!(placed.body["city"], "Ulm");
    // The order's key is the shop's to give: seen once, it means itself.
    let key = |key: &str| format!("/wp-json/wc/store/v1/order/7?key={key}");
    assert_eq!(shop.call("GET", &key("another"), None, None).await.status, 501);
    shop.call("GET", &key("order-key-1.scrubbed"), None, None).await.ok();
}

#[tokio::test]
async fn two_buyers_never_share_a_thread() {
    let shop = Shop::of(&["39c-journey-virtual.har"]);
    let (one, two) = (shop.token().await, shop.token().await);
    assert_ne!(one, two);
    shop.play(1, &one).await.ok();
    let late = shop.play(1, &two).await;
    assert_eq!(late.status, 501);
    assert!(late.body["message"].as_str().unwrap().contains("used up"), "{}", late.text);
    // Neither can the second go on where the first is, nor read its cart.
    assert_eq!(shop.play(2, &two).await.status, 501);
    for entry in 2..5 {
        shop.play(entry, &one).await.ok();
    }
    assert_eq!(shop.play(6, &one).await.ok().token(), one);
    // After a rewind the tokens of before are worth nothing.
    shop.tape.rewind();
    assert_eq!(shop.play(1, &one).await.status, 501);
    let three = shop.token().await;
    shop.play(1, &three).await.ok();
}

#[tokio::test]
async fn recordings_that_begin_alike_part_where_the_buyers_do() {
    let shop = Shop::of(&["39c-journey-virtual.har", "39d-journey-virtual-us.har"]);
    let (german, american) = (0, 7); // where the entries of each file begin
    let (one, two) = (shop.token().await, shop.token().await);
    // The first file goes to the American, who is known as such only by the address.
    for (token, buyer) in [(&one, american), (&two, german)] {
        assert_eq!(shop.call("POST", BATCH, Some(token), Some(&add(token, 31))).await.ok().status, 207);
        assert_eq!(shop.recorded(buyer + 1)["responses"][0]["status"], 201);
    }
    for entry in 2..7 {
        let answer = shop.play(american + entry, &one).await.ok();
        assert!(answer.headers.get("cart-token").is_none_or(|token| *token == *one));
        shop.play(german + entry, &two).await.ok();
    }
}

#[tokio::test]
async fn a_buyer_who_was_told_something_else_does_not_change_the_thread() {
    let other = Some("other-token");
    let (body, note) = (json!({ "id": 1 }), json!({ "note": "second" }));
    for (price, status) in [(1, 200), (2, 501)] {
        let shop = Shop::of_entries(
            &json!({}),
            &[
                entry("POST", ADD, RECORDED, Some(&body), &json!({ "price": 1 })),
                entry("POST", CHECKOUT, RECORDED, Some(&json!({ "note": "first" })), &json!({})),
                entry("POST", ADD, other, Some(&body), &json!({ "price": price })),
                entry("POST", CHECKOUT, other, Some(&note), &json!({})),
            ],
        );
        let token = shop.token().await;
        shop.call("POST", ADD, Some(&token), Some(&body)).await.ok();
        assert_eq!(shop.call("POST", CHECKOUT, Some(&token), Some(&note)).await.status, status);
    }
}

#[tokio::test]
async fn a_look_is_answered_by_one_that_asked_for_as_much_if_there_is_any() {
    let narrow = format!("{CART}?_fields=items_count");
    let wide = format!("{CART}?_fields=items_count,items,totals");
    let body = json!({ "id": 1 });
    let shop = Shop::of_entries(
        &json!({}),
        &[
            entry("POST", ADD, RECORDED, Some(&body), &json!({})),
            entry("GET", &narrow, RECORDED, None, &json!({ "items_count": 1 })),
            entry("GET", &wide, RECORDED, None, &json!({ "items_count": 1, "items": [1], "totals": {} })),
            entry("POST", CHECKOUT, RECORDED, Some(&body), &json!({})),
            entry("GET", &narrow, RECORDED, None, &json!({ "items_count": 0 })),
        ],
    );
    let token = shop.token().await;
    let address = format!("{CART}?_fields=items,items_count");
    for (write, expected) in
        [(ADD, json!({ "items_count": 1, "items": [1] })), (CHECKOUT, json!({ "items_count": 0 }))]
    {
        shop.call("POST", write, Some(&token), Some(&body)).await.ok();
        assert_eq!(shop.call("GET", &address, Some(&token), None).await.ok().body, expected);
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_lost_again() {
    let mut lost = entry("POST", CHECKOUT, RECORDED, Some(&json!({})), &json!(null));
    lost["response"]["status"] = 0.into();
    let shop =
        Shop::of_entries(&json!({}), &[lost, entry("GET", "/wp-json/wc/v3/orders", None, None, &json!([7]))]);
    let token = shop.token().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(axum::serve(listener, shop.router.clone()).into_future());
    let heard = tokio::task::spawn_blocking(move || {
        let mut connection = std::net::TcpStream::connect(address).unwrap();
        let start = format!("POST {CHECKOUT} HTTP/1.1\r\nHost: shop\r\nCart-Token: {token}\r\n");
        connection.write_all(format!("{start}Content-Length: 2\r\n\r\n{{}}").as_bytes()).unwrap();
        let mut heard = Vec::new();
        // Whether the connection ends or is reset, what counts is what came before.
        let _ = connection.read_to_end(&mut heard);
        String::from_utf8(heard).unwrap()
    });
    let heard = heard.await.unwrap();
    server.abort();
    assert!(heard.is_empty() || heard.ends_with("\r\n\r\n"), "an answer arrived: {heard}");
    // The write happened all the same.
    assert_eq!(shop.call("GET", "/wp-json/wc/v3/orders", None, None).await.ok().body, json!([7]));
}

#[tokio::test]
async fn a_token_is_to_be_had_even_if_none_was_recorded() {
    let shop = Shop::of_entries(&json!({}), &[entry("GET", "/wp-json/", None, None, &json!({}))]);
    let answer = shop.call("GET", TOKEN_CALL, None, None).await.ok();
    assert_eq!(answer.body, json!({ "items_count": 0 }));
    assert_eq!(answer.token().split('.').count(), 3);
    assert_eq!(shop.call("GET", CART, None, None).await.status, 501);
}

#[tokio::test]
async fn a_new_buyer_is_never_offered_a_filled_cart() {
    let shop =
        Shop::of_entries(&json!({}), &[entry("GET", CART, RECORDED, None, &json!({ "items_count": 3 }))]);
    let answer = shop.call("GET", TOKEN_CALL, None, None).await.ok();
    assert_eq!(answer.body, json!({ "items_count": 0 }));
}

#[test]
fn every_recording_of_the_project_loads() {
    assert!(Tape::load(&fixtures()).unwrap().entries() >= 40);
    let missing = Tape::load(&fixtures().join("absent.har")).unwrap_err();
    assert!(missing.to_string().contains("absent.har"), "{missing}");
}

const LOOK: &str =
    "/wp-json/wc/v3/orders?created_via=store-api&search=anna%40example.com&after=2026-01-01T00:00:00Z";

/// A checkout of Anna's, and what the shop answered.
fn checkout(status: u16, answer: &Value) -> (Value, Value) {
    let body = json!({ "billing_address": { "email": "anna@example.com" },
        "extensions": { "woocommerce/order-attribution": { "utm_id": "corr_recorded" } } });
    let mut made = entry("POST", CHECKOUT, RECORDED, Some(&body), answer);
    made["response"]["status"] = status.into();
    let date = json!({ "name": "Date", "value": "Mon, 30 Nov 2026 17:37:44 GMT" });
    made["response"]["headers"].as_array_mut().unwrap().push(date);
    (body, made)
}

#[tokio::test]
async fn a_look_for_orders_that_was_not_recorded_finds_what_was_made() {
    let order = json!({ "order_id": 7, "status": "pending", "order_key": "k7", "order_number": "1007" });
    let (body, declined) =
        checkout(400, &json!({ "code": "woocommerce_rest_checkout_process_payment_error" }));
    let (_, made) = checkout(202, &order);
    let cart = json!({ "totals": { "total_price": "5233", "currency_minor_unit": 2 } });
    let shop = Shop::of_entries(
        &json!({}),
        &[entry("POST", ADD, RECORDED, Some(&json!({})), &cart), declined, made],
    );
    assert_eq!(shop.call("GET", LOOK, None, None).await.status, 501, "nothing was played yet");
    let token = shop.token().await;
    shop.call("POST", ADD, Some(&token), Some(&json!({}))).await.ok();
    assert_eq!(shop.call("GET", LOOK, None, None).await.ok().body, json!([]));
    let mut live = body;
    live["extensions"]["woocommerce/order-attribution"]["utm_id"] = "corr_mine".into();
    assert_eq!(shop.call("POST", CHECKOUT, Some(&token), Some(&live)).await.status, 400);
    assert_eq!(shop.call("GET", LOOK, None, None).await.ok().body, json!([]));
    shop.call("POST", CHECKOUT, Some(&token), Some(&live)).await.ok();
    let row = json!({ "id": 7, "number": "1007", "status": "pending", "order_key": "k7", "total": "52.33",
        "date_modified_gmt": "2026-11-30T17:37:44", "transaction_id": "",
        "meta_data": [{ "key": "_wc_order_attribution_utm_id", "value": "corr_mine" }] });
    assert_eq!(shop.call("GET", LOOK, None, None).await.ok().body, json!([row]));
    let trimmed = format!("{LOOK}&_fields=id,status");
    let trimmed = shop.call("GET", &trimmed, None, None).await.ok().body;
    assert_eq!(trimmed, json!([{ "id": 7, "status": "pending" }]));
    let other = LOOK.replace("anna", "sam");
    assert_eq!(shop.call("GET", &other, None, None).await.ok().body, json!([]));
    // Nothing but the plain look.
    for address in
        [format!("{LOOK}&page=2"), format!("{LOOK}&status=trash"), LOOK.replace("orders", "refunds")]
    {
        assert_eq!(shop.call("GET", &address, None, None).await.status, 501, "{address}");
    }
}

#[tokio::test]
async fn a_look_for_orders_is_not_answered_where_the_recording_speaks_against_it() {
    let (body, mut lost) = checkout(200, &json!(null));
    lost["response"]["status"] = 0.into();
    let (_, made) = checkout(200, &json!({ "order_id": 7, "status": "processing" }));
    let other_look =
        "/wp-json/wc/v3/orders?created_via=store-api&search=anna%40example.com&after=2026-01-01&status=any";
    let added = entry("POST", ADD, RECORDED, Some(&json!({})), &json!({}));
    let asked_otherwise = entry("GET", other_look, None, None, &json!([]));
    for entries in [vec![lost], vec![made, added, asked_otherwise]] {
        let shop = Shop::of_entries(&json!({}), &entries);
        let token = shop.token().await;
        let address = crate::support::listen(shop.router.clone()).await;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let place = client.post(format!("{address}{CHECKOUT}")).header("cart-token", token).json(&body);
        // Whether its answer comes or is lost, it was made.
        drop(place.send().await.map(|answer| answer.status()));
        assert_eq!(shop.call("GET", LOOK, None, None).await.status, 501);
    }
}
