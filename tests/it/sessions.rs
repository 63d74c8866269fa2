//! `tillgate sessions`: what a person is told of sessions, while the gateway runs and while it does not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    program::{ready_checkout, serve_config, until},
    support::{
        clients::{full, payment},
        program::{Program, run},
    },
};

/// What a command says, if it succeeds.
async fn said(arguments: &[&str]) -> String {
    let output = run(arguments).await;
    let (out, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{arguments:?}: {out} {error}");
    out
}

async fn told(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(arguments).await).unwrap()
}

#[tokio::test]
async fn a_session_is_told_from_its_beginning_without_what_nobody_needs_to_see() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0"]).await;
    let config = serve_config(folder.path(), &shop.address);
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let path = ready_checkout(&gateway).await;
    let id = path.trim_start_matches('/');
    gateway.ucp(Method::PUT, &path, "u", &full("bouquet_roses", 2)).await;
    gateway.ucp(Method::POST, &format!("{path}/complete"), "d", &payment("tok_declined_silent")).await;
    // It keeps its distance from the first attempt, longer than this configuration lets an agent wait.
    gateway.ucp(Method::POST, &format!("{path}/complete"), "k", &payment("success_token")).await;
    until("the order", async || {
        let (_, read) = gateway.ucp(Method::GET, &path, "", &Value::Null).await;
        (read["status"] == "completed").then_some(read)
    })
    .await;
    // The gateway runs, and goes on.
    let ask = ["sessions", "show", id, "--config", &config, "--json"];
    let session = told(&ask).await;
    assert_eq!(
        (&session["id"], &session["status"], &session["shop"]),
        (&json!(id), &json!("completed"), &json!("flower"))
    );
    let what: Vec<&str> =
        session["story"].as_array().unwrap().iter().map(|step| step["what"].as_str().unwrap()).collect();
    let order = session["order"]["shop_order"].as_str().unwrap();
    assert_eq!(
        what,
        [
            "created",
            "changed",
            "placing 1",
            "attempt 1: declined",
            "placing 2",
            "attempt 2: placed",
            &format!("adopted order {order}")
        ]
    );
    assert_eq!(session["closed_attempts"][0]["end"], "declined");
    let seen = &session["orders_seen"][0];
    assert_eq!((&seen["shop_order"], &seen["adopted"]), (&json!(order), &json!(true)), "{session}");
    assert_eq!(session["lines"][0]["quantity"], 2);
    let email = session["email"].as_str().unwrap();
    assert!(email.contains('…'), "{email}");
    let plain = said(&ask[..5]).await;
    for text in [session.to_string(), plain.clone()] {
        for secret in ["wc_order_", "success_token", "Main Street", "cs_demo", "eyJ"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    assert!(plain.contains("attempt 1: declined") && plain.contains(order), "{plain}");
    gateway.kill();
    assert_eq!(told(&ask).await["story"], session["story"], "it can be read while nobody works on it, too");
    let again = Program::start(&["serve", "--config", &config, "--after-restore"]).await;
    let (status, read) = again.ucp(Method::GET, &path, "", &Value::Null).await;
    assert_eq!((status, &read["status"]), (200, &json!("completed")));
    assert_eq!(told(&ask).await["looked_for_after_loss"], false);
}

#[tokio::test]
async fn sessions_are_listed_by_what_they_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    // Without a key to the orders, and with a shop that names none before it is placed, nobody can look: what is
    // lost waits for a person.
    let shop = Program::start(&["shop", "--listen", "127.0.0.1:0", "--fault", "late_draft"]).await;
    let config = serve_config(folder.path(), &shop.address);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("wc_v3 = { key = \"ck_demo\", secret = \"cs_demo\" }", "")).unwrap();
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let (one, two) = (ready_checkout(&gateway).await, {
        let (_, created) = gateway.ucp(Method::POST, "", "second", &full("pot_ceramic", 1)).await;
        format!("/{}", created["id"].as_str().unwrap())
    });
    let (status, lost) =
        gateway.ucp(Method::POST, &format!("{one}/complete"), "k", &payment("lost_answer_token")).await;
    assert_eq!((status, &lost["status"]), (200, &json!("complete_in_progress")), "{lost}");
    let listed = async |more: &[&str]| {
        let mut arguments = vec!["sessions", "list", "--config", &config, "--json"];
        arguments.extend(more);
        let found = told(&arguments).await;
        let mut ids: Vec<String> =
            found.as_array().unwrap().iter().map(|one| format!("/{}", one["id"].as_str().unwrap())).collect();
        ids.sort();
        ids
    };
    let review = until("a session in review", async || {
        let found = listed(&["--review"]).await;
        (!found.is_empty()).then(|| json!(found))
    })
    .await;
    assert_eq!(review, json!([one]));
    let codes = |told: &Value| {
        told["messages"].as_array().unwrap().iter().map(|m| m["code"].clone()).collect::<Vec<_>>()
    };
    let (_, read) = gateway.ucp(Method::GET, &one, "", &Value::Null).await;
    let (_, again) =
        gateway.ucp(Method::POST, &format!("{one}/complete"), "k", &payment("lost_answer_token")).await;
    assert_eq!(
        (codes(&read), codes(&again)),
        (vec![json!("order_unconfirmed")], vec![json!("order_unconfirmed")])
    );
    assert_eq!(listed(&["--open"]).await, std::slice::from_ref(&one));
    let mut both = vec![one.clone(), two];
    both.sort();
    assert_eq!(listed(&[]).await, both);
    assert_eq!(listed(&["--shop", "flower"]).await, both);
    assert_eq!(listed(&["--limit", "1"]).await.len(), 1);
    let plain = said(&["sessions", "list", "--config", &config, "--review"]).await;
    assert!(plain.contains("attempt 1: nobody but you can tell"), "{plain}");
    let shown = told(&["sessions", "show", one.trim_start_matches('/'), "--config", &config, "--json"]).await;
    let attempt = &shown["attempt"];
    assert_eq!(
        (&attempt["sent"], &attempt["key"]),
        (&json!("yes"), &json!("waits for the outcome")),
        "{shown}"
    );
    // A person decides, once the gateway has given the folder up.
    let id = one.trim_start_matches('/');
    let resolve = ["sessions", "resolve", id, "--config", &config, "--placed", "71"];
    let refused = run(&resolve).await;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("stop the gateway first"), "{why}");
    gateway.kill();
    assert!(said(&resolve).await.contains("completed"));
    assert!(!run(&resolve).await.status.success(), "decided once");
    let shown = told(&["sessions", "show", id, "--config", &config, "--json"]).await;
    assert_eq!(
        (&shown["order"]["shop_order"], &shown["orders_seen"][0]["last_seen"]["by"]),
        (&json!("71"), &json!("a person"))
    );
    let gateway = Program::start(&["serve", "--config", &config]).await;
    let (status, again) =
        gateway.ucp(Method::POST, &format!("{one}/complete"), "k", &payment("lost_answer_token")).await;
    assert_eq!((status, &again["status"]), (200, &json!("completed")), "its key is answered: {again}");
}

#[tokio::test]
async fn what_cannot_be_shown_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve_config(folder.path(), "http://127.0.0.1:9");
    let fails = async |arguments: &[&str], code: i32, text: &str| {
        let output = run(arguments).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {said}");
        assert!(said.contains(text), "{arguments:?} {said}");
    };
    fails(&["sessions", "list", "--config", &config], 1, "holds no state").await;
    assert!(!folder.path().join("state/state.sqlite").exists(), "looking makes nothing");
    let gateway = Program::start(&["serve", "--config", &config]).await;
    fails(&["sessions", "show", "chk_none", "--config", &config], 1, "there is no session `chk_none`").await;
    fails(&["sessions", "list", "--config", &config, "--shop", "books"], 1, "there is no shop `books`").await;
    fails(&["sessions", "list", "--config", "nowhere.toml"], 2, "nowhere.toml").await;
    fails(&["serve", "--config", &config, "--after-restore"], 1, "another process uses the data folder")
        .await;
    gateway.kill();
}
