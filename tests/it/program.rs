//! The program from outside: its commands, and what survives `kill -9`.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    clients::{acp_address, acp_buyer, acp_lines, acp_payment, full, payment},
    config::Config,
    program::{Program, run},
};

/// A gateway in front of a demo shop that runs on its own, so that one can be killed without the other.
pub(crate) fn serve_config(folder: &std::path::Path, shop: &str) -> String {
    let config = Config { shop, checkout: "complete_wait_secs = 1", ..Config::default() };
    config.write(folder).to_str().unwrap().to_owned()
}

pub(crate) async fn ready_checkout(gateway: &Program) -> String {
    let (status, created) = gateway.ucp(Method::POST, "", "create", &full("bouquet_roses", 1)).await;
    assert_eq!((status, &created["status"]), (201, &json!("ready_for_complete")), "{created}");
    format!("/{}", created["id"].as_str().unwrap())
}

/// Asks again until the answer is as wanted; bounded.
pub(crate) async fn until(what: &str, mut ask: impl AsyncFnMut() -> Option<Value>) -> Value {
    let mut pause = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..200 {
        pause.tick().await;
        if let Some(answer) = ask().await {
            return answer;
        }
    }
    panic!("{what}: not within 20 s")
}

/// Requirements: U-049.
#[tokio::test]
async fn a_stored_answer_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0"]).await;
    let config = serve_config(folder.path(), &shop.address);
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let path = ready_checkout(&gateway).await;
    let complete = format!("{path}/complete");
    let first = gateway.ucp(Method::POST, &complete, "k", &payment("success_token")).await;
    assert_eq!(first.1["status"], "completed", "{}", first.1);
    gateway.kill();
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let again = gateway.ucp(Method::POST, &complete, "k", &payment("success_token")).await;
    assert_eq!(again, first);
    assert_eq!(shop.get("/_demo/orders").await.as_array().unwrap().len(), 1);
}

/// Requirements: U-050, A-032.
#[tokio::test]
async fn an_order_in_the_making_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0"]).await;
    let config = serve_config(folder.path(), &shop.address);
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let path = ready_checkout(&gateway).await;
    let complete = format!("{path}/complete");
    // The gateway stops waiting after a second, the shop takes a second to pay: killed while nobody knows.
    let body = payment("tok_slow");
    let waiting = gateway.ucp(Method::POST, &complete, "k", &body);
    tokio::select! {
        _ = waiting => {}
        _ = until("an order", async || {
            let orders = shop.get("/_demo/orders").await;
            orders.as_array().is_some_and(|orders| !orders.is_empty()).then_some(orders)
        }) => {}
    }
    gateway.kill();
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let told = until("the order is found", async || {
        let (_, session) = gateway.ucp(Method::GET, &path, "", &Value::Null).await;
        (session["status"] == "completed").then_some(session)
    })
    .await;
    let (status, again) = gateway.ucp(Method::POST, &complete, "k", &body).await;
    assert_eq!(
        (status, &again["order"]),
        (200, &told["order"]),
        "the repeated key is answered with what was found"
    );
    assert_eq!(shop.get("/_demo/orders").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_state_put_back_from_a_copy_looks_for_orders_before_it_places_any() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0"]).await;
    let config = serve_config(folder.path(), &shop.address);
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let path = ready_checkout(&gateway).await;
    gateway.kill();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let copied = |from: &std::path::Path, to: &std::path::Path| {
        let _ = std::fs::remove_dir_all(to);
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    copied(&state, &copy);
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let complete = format!("{path}/complete");
    let (_, done) = gateway.ucp(Method::POST, &complete, "k", &payment("success_token")).await;
    assert_eq!(done["status"], "completed", "{done}");
    gateway.kill();
    copied(&copy, &state);
    let gateway = Program::start(&["serve", "--config", &config, "--after-restore"]).await;
    let (_, read) = gateway.ucp(Method::GET, &path, "", &Value::Null).await;
    assert_eq!(read["status"], "ready_for_complete", "the copy knows of no order");
    let before = calls(&shop).await.len();
    let (_, again) = gateway.ucp(Method::POST, &complete, "k", &payment("success_token")).await;
    assert_eq!(again["status"], "completed", "{again}");
    assert_eq!(shop.get("/_demo/orders").await.as_array().unwrap().len(), 1);
    let after = calls(&shop).await;
    let asked: Vec<&str> =
        after[before..].iter().filter_map(|call| call["path"].as_str()?.rsplit('/').next()).collect();
    assert!(asked.iter().any(|call| call.starts_with("orders")), "{asked:?}");
    assert!(
        !asked.contains(&"batch") && !asked.contains(&"checkout"),
        "looked before anything else: {asked:?}"
    );
}

async fn calls(shop: &Program) -> Vec<Value> {
    shop.get("/_demo/calls").await["calls"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn the_demo_keeps_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let start = async || {
        Program::start(&[
            "demo",
            "--listen",
            "127.0.0.1:0",
            "--shop-listen",
            "127.0.0.1:0",
            "--ops-listen",
            "127.0.0.1:0",
            "--data",
            data,
        ])
        .await
    };
    let demo = start().await;
    let path = ready_checkout(&demo).await;
    demo.kill();
    let demo = start().await;
    let (_, done) = demo.ucp(Method::POST, &format!("{path}/complete"), "k", &payment("success_token")).await;
    assert_eq!(done["status"], "completed", "{done}");
}

#[tokio::test]
async fn a_folder_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve_config(folder.path(), "http://127.0.0.1:9");
    let _first = Program::start(&["serve", "--config", &config]).await;
    let second = run(&["serve", "--config", &config]).await;
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("another process uses the data folder"), "{said}");
}

#[tokio::test]
async fn check_config_prints_what_is_in_force_or_everything_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve_config(folder.path(), "http://127.0.0.1:9");
    let right = run(&["check-config", "--config", &config]).await;
    let said = String::from_utf8_lossy(&right.stdout).into_owned();
    assert!(right.status.success() && said.contains("secret = \"[redacted]\""), "{said}");
    assert!(!said.contains("cs_demo"), "{said}");
    let text = std::fs::read_to_string(&config).unwrap();
    let text =
        text.replace("http://127.0.0.1:8787", "https://gw.example.com").replace("\"USD\"", "\"DOLLAR\"");
    std::fs::write(&config, text).unwrap();
    let wrong = run(&["check-config", "--config", &config]).await;
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2));
    for key in ["development", "shops.flower.currency"] {
        assert!(said.contains(key), "{key} in {said}");
    }
    let missing = run(&["check-config", "--config", "nowhere.toml"]).await;
    assert_eq!(missing.status.code(), Some(2));
}

#[tokio::test]
async fn help_names_the_commands_that_are_built_and_no_other() {
    let help = run(&["--help"]).await;
    let said = String::from_utf8_lossy(&help.stdout).into_owned();
    for command in ["demo", "shop", "serve", "check-config", "record", "sessions", "stock", "replay"] {
        assert!(said.contains(&format!("  {command}")), "{command} in {said}");
    }
    for command in ["doctor", "jobs", "feed", "keys"] {
        assert!(!said.contains(&format!("  {command} ")), "{command} in {said}");
    }
    let shop = run(&["shop", "--help"]).await;
    assert!(String::from_utf8_lossy(&shop.stdout).contains("lost_answer"), "the faults are listed");
}

/// Whatever is logged: no token, no credential, no card number, nothing of the buyer.
/// Requirements, U-089, U-092.
#[tokio::test]
async fn the_log_holds_no_secret_and_nothing_of_the_buyer() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0"]).await;
    let config = serve_config(folder.path(), &shop.address);
    let gateway = Program::start_logged(&["serve", "--config", &config]).await;
    let path = ready_checkout(&gateway).await;
    let complete = format!("{path}/complete");
    for (key, token) in [("k1", "4242424242424242"), ("k2", "fail_token"), ("k3", "lost_answer_token")] {
        gateway.ucp(Method::POST, &complete, key, &payment(token)).await;
    }
    gateway.ucp(Method::PUT, &path, "k4", &json!({"buyer": {"email": 5}})).await;
    let mut body = acp_lines("bouquet_roses", 1, "usd");
    body["buyer"] = acp_buyer();
    body["fulfillment_details"] = json!({"address": acp_address()});
    body["affiliate_attribution"] = json!({"provider": "p", "token": "secret-attribution"});
    let (status, made) = gateway.acp("", "a1", &body).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/{}", made["id"].as_str().unwrap());
    for (key, token) in [("a2", "4242424242424242"), ("a3", "spt_test_declined"), ("a4", "spt_test_ok")] {
        gateway.acp(&format!("{path}/complete"), key, &acp_payment(token)).await;
    }
    let why = json!({"intent_trace": {"reason_code": "other", "trace_summary": "secret-summary"}});
    gateway.acp(&format!("{path}/cancel"), "a5", &why).await;
    let logged = gateway.kill_and_hear().await;
    assert!(logged.iter().any(|line| line.contains("TRACE")) && logged.len() > 100, "everything is logged");
    for secret in [
        "test-token",
        "fail_token",
        "lost_answer_token",
        "spt_test",
        "4242424242424242",
        "cs_demo",
        "secret-attribution",
        "secret-summary",
        "ada@example.org",
        "Byron",
        "12 Main Street",
        "90210",
        "12025550143",
    ] {
        let line = logged.iter().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is logged");
    }
}
