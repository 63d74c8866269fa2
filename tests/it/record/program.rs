//! The program: recorded, killed with `kill -9`, and replayed without the shop.

use std::{path::Path, sync::Arc};

use axum::{Router, extract::RawQuery};
use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{ANN, FRIEDELINDE, Person, SAM, assert_absent, entries};
use crate::support::{
    clients::{acp_lines, acp_payment, lines, payment},
    config::{Config, Seller},
    listen,
    program::{Program, run},
};

/// A gateway over the general shop, found at `shop`.
fn config(folder: &Path, shop: &str) -> String {
    let config = Config { shop, seller: Seller::General, checkout: "", ..Config::default() };
    config.write(folder).to_str().unwrap().to_owned()
}

async fn ucp(gateway: &Program, who: Person) -> Value {
    let call = async |method: Method, path: &str, key: &str, body: &Value| {
        let (status, answer) = gateway.ucp(method, path, key, body).await;
        assert!((200..300).contains(&status), "{status} {answer}");
        answer
    };
    let created = call(Method::POST, "", "create", &lines("19", 2)).await;
    let path = format!("/{}", created["id"].as_str().unwrap());
    let ready = call(Method::PUT, &path, "update", &who.ucp(Some("flat_rate:2"))).await;
    assert_eq!(ready["status"], "ready_for_complete", "{ready}");
    let paid = payment(who.tokens[0]);
    let done = call(Method::POST, &format!("{path}/complete"), "complete", &paid).await;
    assert_eq!(done["status"], "completed", "{done}");
    json!([ready["totals"], done["totals"], done["order"]["label"]])
}

async fn acp(gateway: &Program, who: Person) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let call = async |path: &str, key: &str, body: &Value| -> Value {
        let call = client.post(format!("{}/acp/checkout_sessions{path}", gateway.address));
        let call = call.bearer_auth("test-token").header("api-version", "2026-04-17");
        let answer = call.header("idempotency-key", key).json(body).send().await.unwrap();
        let status = answer.status();
        let answer: Value = answer.json().await.unwrap();
        assert!(status.is_success(), "{answer}");
        answer
    };
    let created = call("", "acp-create", &acp_lines("24", 1, "eur")).await;
    let path = format!("/{}", created["id"].as_str().unwrap());
    let ready = call(&path, "acp-update", &who.acp()).await;
    let done = call(&format!("{path}/complete"), "acp-complete", &acp_payment(who.tokens[1])).await;
    assert_eq!(done["status"], "completed", "{done}");
    json!([created["totals"], ready["totals"], done["totals"], done["order"]["order_number"]])
}

#[tokio::test]
async fn a_shop_is_recorded_killed_and_replayed_over_both_protocols() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("general.har");
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0"]).await;
    let store = format!("{}/general", shop.address);
    let out_text = out.to_str().unwrap();
    let recorder =
        Program::start(&["record", "--store", &store, "--listen", "127.0.0.1:0", "--out", out_text]).await;
    let gateway = Program::start(&["serve", "--config", &config(folder.path(), &recorder.address)]).await;
    let bought = [ucp(&gateway, FRIEDELINDE).await, acp(&gateway, ANN).await];
    // In the middle of the traffic of others.
    let others = format!("{}/wp-json/wc/store/v1/products?per_page=20", recorder.address);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let calls = (0..40).map(|_| async { client.get(&others).send().await?.bytes().await });
    let mut calls = Box::pin(futures::stream::iter(calls).buffer_unordered(8));
    for _ in 0..5 {
        calls.next().await.unwrap().unwrap();
    }
    recorder.kill();
    drop(calls);
    shop.kill();
    gateway.kill();
    let found = entries(&out).len();
    let mut values = [FRIEDELINDE.values(), ANN.values()].concat();
    values.extend(["eyJ", "ck_demo", "cs_demo", "wc_order_"]);
    let words = [FRIEDELINDE.words(), ANN.words()].concat();
    // The comments name no value; the meta key of a correlation id is no order key.
    let text = std::fs::read_to_string(&out).unwrap().replace("_wc_order_attribution", "");
    std::fs::write(folder.path().join("looked-through.har"), text).unwrap();
    assert_absent(&folder.path().join("looked-through.har"), &values, &words);

    for buyers in [[FRIEDELINDE, ANN], [SAM, FRIEDELINDE]] {
        let replay = Program::start(&["replay", "--listen", "127.0.0.1:0", "--fixtures", out_text]).await;
        assert_eq!([ucp(&replay, buyers[0]).await, acp(&replay, buyers[1]).await], bought, "{found} entries");
    }
}

#[tokio::test]
async fn a_recorder_killed_while_it_writes_leaves_a_whole_file() {
    // Long answers, so that there is always one in the making.
    let answer = async |RawQuery(query): RawQuery| -> axum::Json<Value> {
        let items: Vec<Value> =
            (0..1_500).map(|item| json!({ "item": item, "text": "x".repeat(60) })).collect();
        axum::Json(json!({ "query": query, "items": items }))
    };
    let shop = listen(Router::new().fallback(answer)).await;
    let folder = tempfile::tempdir().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for round in 1..=6_usize {
        let out = folder.path().join(format!("{round}.har"));
        let out_text = out.to_str().unwrap();
        let recorder =
            Program::start(&["record", "--store", &shop, "--listen", "127.0.0.1:0", "--out", out_text]).await;
        let address = recorder.address.clone();
        let calls = (0..40).map(|call| {
            let call = client.get(format!("{address}/wp-json/?n={call}"));
            async { call.send().await?.bytes().await }
        });
        let mut calls = Box::pin(futures::stream::iter(calls).buffer_unordered(6));
        let mut whole = 0;
        while whole < round {
            calls.next().await.unwrap().unwrap();
            whole += 1;
        }
        recorder.kill();
        while let Some(call) = calls.next().await {
            whole += usize::from(call.is_ok());
        }
        let found = entries(&out);
        assert!(found.len() >= whole, "{whole} answers came to their end, {} are recorded", found.len());
        assert!(tillgate::store::tape::Tape::load(&out).is_ok());
        // The same name again, over what is there.
        let refused = run(&["record", "--store", &shop, "--listen", "127.0.0.1:0", "--out", out_text]).await;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("--force"), "{said}");
        assert_eq!(entries(&out).len(), found.len());
    }
    let again = folder.path().join("1.har");
    let again =
        ["record", "--store", &shop, "--listen", "127.0.0.1:0", "--force", "--out", again.to_str().unwrap()];
    let recorder = Program::start(&again).await;
    assert!(entries(&folder.path().join("1.har")).is_empty());
    recorder.kill();
}

#[tokio::test]
async fn a_recorder_that_is_told_to_stop_lets_the_last_call_end() {
    let (asked, answered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (seen, go) = (Arc::clone(&asked), Arc::clone(&answered));
    let shop = Router::new().fallback(async move || {
        seen.notify_one();
        go.notified().await;
        "{\"order_id\":7}"
    });
    let shop = listen(shop).await;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("last.har");
    let recorder = Program::start(&[
        "record",
        "--store",
        &shop,
        "--listen",
        "127.0.0.1:0",
        "--out",
        out.to_str().unwrap(),
    ])
    .await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = recorder.address.clone();
    let last = tokio::spawn(client.post(format!("{address}/wp-json/wc/store/v1/checkout")).body("{}").send());
    asked.notified().await;
    let ended = tokio::spawn(recorder.terminated());
    // New calls are not taken any more, the running one goes on.
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(20));
    let host = address.trim_start_matches("http://").to_owned();
    for round in 0.. {
        pause.tick().await;
        if tokio::net::TcpStream::connect(&host).await.is_err() {
            break;
        }
        assert!(round < 500, "it still listens");
    }
    answered.notify_one();
    assert_eq!(last.await.unwrap().unwrap().text().await.unwrap(), "{\"order_id\":7}");
    assert!(ended.await.unwrap().success());
    assert_eq!(entries(&out)[0]["response"]["content"]["text"], "{\"order_id\":7}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn help_says_what_is_scrubbed_and_a_wrong_address_is_refused() {
    let help = run(&["record", "--help"]).await;
    let said = String::from_utf8_lossy(&help.stdout).into_owned();
    for part in ["payment data", "Not scrubbed", "loopback", "--force", "kill -9"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.har");
    let store = "https://user:secret@shop.example";
    let refused =
        run(&["record", "--store", store, "--listen", "127.0.0.1:0", "--out", out.to_str().unwrap()]).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("must not hold a user"), "{said}");
    assert!(!said.contains("secret") && !out.exists(), "{said}");
}
