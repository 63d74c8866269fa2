//! What passes, and what stands in the file of it: every kind of answer, and every way in which one ends.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Redirect, Response},
    routing::{any, get},
};
use serde_json::{Value, json};
use tillgate::{
    clock::SystemClock,
    store::tape::record::{Error, Recorder},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Notify,
};
use tokio_util::task::TaskTracker;

use super::{API, Bench};

#[tokio::test]
async fn the_file_is_whole_after_every_answer() {
    let bench = Bench::of_demo().await;
    assert!(bench.entries().is_empty(), "an empty recording is a HAR too");
    for number in 1..=12 {
        let answer = bench.get(&format!("{API}/products?per_page=5&page={number}")).send().await.unwrap();
        let body = answer.text().await.unwrap();
        // Whoever has the answer to its end finds it in the file.
        let entries = bench.entries();
        assert_eq!(entries.len(), number);
        let last = &entries[number - 1];
        assert_eq!(last["response"]["content"]["size"], body.len());
        let recorded: Value =
            serde_json::from_str(last["response"]["content"]["text"].as_str().unwrap()).unwrap();
        let given: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(recorded.as_array().unwrap().len(), given.as_array().unwrap().len());
    }
    assert_eq!(bench.recorder.finish().unwrap(), 12);
    assert_eq!(bench.recorder.entries(), 12);
}

#[tokio::test]
async fn an_entry_has_what_har_demands() {
    let bench = Bench::of(Router::new().fallback(async || {
        ([("X-Robots-Tag", "noindex"), ("Set-Cookie", "session=t_0123456789abcdef; path=/")], "{\"a\": 1}")
    }))
    .await;
    let call =
        bench.post("/wp-json/x?b=2&a=%20").header("Content-Type", "application/json").body("{\"c\":3}");
    let answer = call.header("Cookie", "login=admin%7C12345678").send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "{\"a\": 1}");
    let entries = bench.entries();
    let entry = &entries[0];
    assert!(chrono::DateTime::parse_from_rfc3339(entry["startedDateTime"].as_str().unwrap()).is_ok());
    let timings = &entry["timings"];
    let sum = ["send", "wait", "receive"].iter().map(|part| timings[part].as_u64().unwrap()).sum::<u64>();
    assert_eq!(entry["time"], sum);
    assert_eq!(entry["cache"], json!({}));
    let request = &entry["request"];
    assert_eq!(request["method"], "POST");
    assert_eq!(request["url"], "https://shop.example.com/wp-json/x?b=2&a=+");
    assert_eq!(request["httpVersion"], "HTTP/1.1");
    assert_eq!(request["queryString"], json!([{ "name": "b", "value": "2" }, { "name": "a", "value": " " }]));
    assert_eq!(request["postData"], json!({ "mimeType": "application/json", "text": "{\"c\":3}" }));
    assert_eq!((&request["cookies"], &request["headersSize"]), (&json!([]), &json!(-1)));
    assert_eq!(request["bodySize"], 7);
    let response = &entry["response"];
    assert_eq!((&response["status"], &response["statusText"]), (&json!(200), &json!("OK")));
    assert_eq!((&response["redirectURL"], &response["cookies"]), (&json!(""), &json!([])));
    assert_eq!(response["content"]["text"], "{\"a\": 1}");
    let header = |message: &Value, name: &str| {
        let lines = message["headers"].as_array().unwrap();
        let line = lines.iter().find(|line| line["name"].as_str().unwrap().eq_ignore_ascii_case(name));
        line.map(|line| line["value"].as_str().unwrap().to_owned())
    };
    assert_eq!(header(response, "x-robots-tag").unwrap(), "noindex");
    assert_eq!(header(response, "set-cookie").unwrap(), "scrubbed");
    assert_eq!(header(request, "cookie").unwrap(), "scrubbed");
    assert_eq!(header(request, "host"), None);
}

#[tokio::test]
async fn calls_pass_as_they_came_and_no_redirect_is_followed() {
    let told = async |request: Request| -> Response {
        let (parts, body) = request.into_parts();
        if parts.uri.path() == "/away" {
            return Redirect::to("/wp-json/there?key=wc_order_abcdefghijk").into_response();
        }
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let seen = json!({ "method": parts.method.as_str(), "uri": parts.uri.to_string(),
            "body": String::from_utf8_lossy(&body), "accept-encoding": header("accept-encoding"),
            "host": header("host"), "x-own": header("x-own"), "te": header("te"), "auth": header("authorization"),
            "length": header("content-length") });
        (
            StatusCode::IM_A_TEAPOT,
            [("X-Answer", "yes"), ("Connection", "X-Hop"), ("X-Hop", "1")],
            axum::Json(seen),
        )
            .into_response()
    };
    let bench = Bench::of(Router::new().fallback(told)).await;
    let url = format!("{}/wp-json/a%2Fb/c?x=%41&y", bench.address);
    let call =
        bench.client.request(reqwest::Method::PATCH, url).header("X-Own", "1").header("TE", "trailers");
    let call = call.header("Accept-Encoding", "gzip").basic_auth("ck_1", Some("cs_1")).body("abc");
    let answer = call.send().await.unwrap();
    assert_eq!(answer.status(), 418);
    assert_eq!(answer.headers()["x-answer"], "yes");
    assert!(!answer.headers().contains_key("x-hop"));
    let seen: Value = answer.json().await.unwrap();
    assert_eq!(seen["method"], "PATCH");
    assert_eq!(seen["uri"], "/wp-json/a%2Fb/c?x=%41&y");
    assert_eq!((&seen["body"], &seen["length"]), (&json!("abc"), &json!("3")));
    assert_eq!((&seen["accept-encoding"], &seen["te"]), (&json!("identity"), &Value::Null));
    assert_eq!((&seen["x-own"], &seen["auth"]), (&json!("1"), &json!("Basic Y2tfMTpjc18x")));
    assert!(!bench.address.ends_with(seen["host"].as_str().unwrap()), "the host is the shop's");
    let away = bench.get("/away").send().await.unwrap();
    assert_eq!(
        (away.status().as_u16(), &away.headers()["location"]),
        (303, &"/wp-json/there?key=wc_order_abcdefghijk".parse().unwrap())
    );
    let entries = bench.ended().await;
    assert_eq!(entries[1]["response"]["redirectURL"], "/wp-json/there?key=order-key-1.scrubbed");
    let head = bench.client.head(format!("{}/wp-json/", bench.address)).send().await.unwrap();
    assert_eq!(head.status(), 418);
}

#[tokio::test]
async fn large_bodies_pass_and_are_left_out() {
    let size = 9 << 20;
    let echo = async |body: Body| ([("content-type", "text/plain")], body);
    let bench = Bench::of(Router::new().fallback(any(echo))).await;
    let sent: Vec<u8> = (0..size).map(|at: usize| b'a' + u8::try_from(at % 23).unwrap()).collect();
    let answer = bench.post("/wp-json/").body(sent.clone()).send().await.unwrap();
    assert!(answer.bytes().await.unwrap() == sent, "the body came back whole");
    let entries = bench.ended().await;
    let (request, content) = (&entries[0]["request"], &entries[0]["response"]["content"]);
    assert_eq!((&request["bodySize"], &content["size"]), (&json!(size), &json!(size)));
    assert_eq!((&request["postData"]["text"], &content["text"]), (&json!(""), &Value::Null));
    assert!(content["comment"].as_str().unwrap().contains("longer than 8 MiB"), "{content}");
    assert!(entries[0]["comment"].as_str().unwrap().contains("longer than 8 MiB"));
}

#[tokio::test]
async fn what_cannot_be_scrubbed_is_left_out_and_pictures_and_failures_are_kept() {
    const PICTURE: [u8; 6] = [0x89, b'P', b'N', b'G', 0, 0xff];
    let shop = Router::new()
        .route("/picture", get(async || ([("content-type", "image/png")], Bytes::from_static(&PICTURE))))
        .route(
            "/invoice",
            get(async || ([("content-type", "application/pdf")], Bytes::from_static(&PICTURE))),
        )
        .route(
            "/zipped",
            get(async || ([("content-encoding", "gzip")], Bytes::from_static(&[0x1f, 0x8b, 8]))),
        )
        .route("/account", get(async || axum::response::Html("Hello Friedelinde")))
        .route(
            "/wp-json/fatal",
            get(async || {
                let page = "<html><b>Critical error</b> for anna@example.com</html>";
                (StatusCode::INTERNAL_SERVER_ERROR, axum::response::Html(page))
            }),
        );
    let bench = Bench::of(shop).await;
    for path in ["/picture", "/invoice", "/zipped", "/account", "/wp-json/fatal"] {
        bench.get(path).send().await.unwrap().bytes().await.unwrap();
    }
    let entries = bench.ended().await;
    let content = |at: usize| entries[at]["response"]["content"].clone();
    assert_eq!((&content(0)["text"], &content(0)["encoding"]), (&json!("iVBORwD/"), &json!("base64")));
    for (at, why) in [(1, "neither text nor a picture"), (2, "compressed"), (3, "page for people")] {
        assert_eq!(content(at)["text"], Value::Null);
        assert!(content(at)["comment"].as_str().unwrap().contains(why), "{}", content(at));
    }
    assert_eq!(entries[4]["response"]["status"], 500);
    let page = "<html><b>Critical error</b> for buyer-1@scrubbed.invalid</html>";
    assert_eq!(content(4)["text"], page);
}

#[tokio::test]
async fn a_shop_that_cannot_be_reached_is_told_and_not_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let bench = Bench::before(&nobody).await;
    let answer = bench.get("/wp-json/").send().await.unwrap();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "record_shop_unreachable");
    assert!(bench.ended().await.is_empty());
}

/// A shop that says these bytes to every call, and hangs up.
async fn says(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut call, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(call.read_u8().await.unwrap());
            }
            call.write_all(bytes).await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn an_answer_that_breaks_off_has_status_0() {
    let bench = Bench::before(&says(b"").await).await;
    let answer = bench.get("/wp-json/").send().await.unwrap();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "record_shop_broke_off");
    assert_eq!(bench.ended().await[0]["response"]["status"], 0);

    let half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"half\":";
    let bench = Bench::before(&says(half).await).await;
    let answer = bench.get("/wp-json/").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err(), "it breaks off for the client as well");
    let entries = bench.ended().await;
    assert_eq!(entries[0]["response"]["status"], 0);
    assert_eq!(entries[0]["response"]["content"]["text"], Value::Null);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_undo_the_exchange() {
    let (asked, answered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (seen, go) = (Arc::clone(&asked), Arc::clone(&answered));
    let shop = Router::new().fallback(async move || {
        seen.notify_one();
        go.notified().await;
        "{\"order_id\":7}"
    });
    let bench = Bench::of(shop).await;
    let call = bench.post("/wp-json/wc/store/v1/checkout").body("{}").send();
    tokio::select! {
        _ = call => panic!("the shop has not answered yet"),
        () = asked.notified() => {}
    }
    answered.notify_one();
    let entries = bench.ended().await;
    assert_eq!(entries[0]["response"]["content"]["text"], "{\"order_id\":7}");
}

/// A shop that echoes in inner headers, as a batch does.
async fn batch(headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let responses =
        body["requests"].as_array().unwrap().iter().map(
            |inner| json!({ "status": 200, "body": { "you": inner["body"] }, "headers": inner["headers"] }),
        );
    let token = headers["cart-token"].clone();
    ([("cart-token", token)], axum::Json(json!({ "responses": responses.collect::<Vec<_>>() })))
        .into_response()
}

#[tokio::test]
async fn calls_at_once_are_all_recorded_and_join_up() {
    let bench = Bench::of(Router::new().fallback(any(batch))).await;
    let call = async |cart: usize, turn: usize| {
        let claims = json!({ "user_id": format!("t_cart{cart:04}x"), "iat": turn }).to_string();
        let claims = data_encoding::BASE64URL_NOPAD.encode(claims.as_bytes());
        let token = format!("eyJhbGciOiJIUzI1NiJ9.{claims}.c2ln");
        let inner = json!({ "path": "/wc/store/v1/cart/update-customer", "headers": { "Cart-Token": token,
            "Nonce": format!("n0nce{cart:05}") }, "body": { "email": format!("buyer{cart}@people.example") } });
        let call = bench.post(&format!("{API}/batch")).header("cart-token", &token);
        let answer = call.json(&json!({ "requests": [inner] })).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
    };
    let carts = (0..20).map(|cart| async move {
        for turn in 0..3 {
            call(cart, turn).await;
        }
    });
    futures::future::join_all(carts).await;
    let entries = bench.ended().await;
    assert_eq!(entries.len(), 60);
    let text = Value::from(entries.clone()).to_string();
    assert!(!text.contains("eyJ") && !text.contains("n0nce") && !text.contains("people.example"), "{text}");
    let mut seen = std::collections::BTreeMap::new();
    for entry in &entries {
        let find = |message: &str| {
            let lines = entry[message]["headers"].as_array().unwrap();
            lines.iter().find(|line| line["name"] == "cart-token").unwrap()["value"].clone()
        };
        let token = find("request");
        assert_eq!(token, find("response"));
        let asked: Value =
            serde_json::from_str(entry["request"]["postData"]["text"].as_str().unwrap()).unwrap();
        let told: Value =
            serde_json::from_str(entry["response"]["content"]["text"].as_str().unwrap()).unwrap();
        assert_eq!(asked["requests"][0]["headers"]["Cart-Token"], token);
        assert_eq!(told["responses"][0]["headers"], asked["requests"][0]["headers"]);
        assert_eq!(told["responses"][0]["body"]["you"], asked["requests"][0]["body"]);
        let joined = json!([asked["requests"][0]["body"]["email"], asked["requests"][0]["headers"]["Nonce"]]);
        let before = seen.entry(token.as_str().unwrap().to_owned()).or_insert_with(|| joined.clone());
        assert_eq!(*before, joined, "one cart, one buyer");
    }
    assert_eq!(seen.len(), 20);
    let mut moments: Vec<&str> =
        entries.iter().map(|entry| entry["startedDateTime"].as_str().unwrap()).collect();
    moments.sort_unstable();
    moments.dedup();
    assert_eq!(moments.len(), 60, "no two begin at the same moment");
}

#[test]
fn a_recording_is_not_begun_on_a_wrong_address_or_over_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("shop.har");
    let start = |store: &str, force| {
        Recorder::start(&store.parse().unwrap(), &out, force, Arc::new(SystemClock), TaskTracker::new())
    };
    for store in ["ftp://shop.example", "https://user:secret@shop.example", "https://shop.example/?a=1"] {
        assert!(matches!(start(store, false), Err(Error::Store(_))), "{store}");
        assert!(!out.exists());
    }
    drop(start("https://shop.example", false).unwrap());
    let refused = start("https://shop.example", false).unwrap_err();
    assert!(refused.to_string().contains("--force"), "{refused}");
    start("https://shop.example", true).unwrap();
}
