//! `tillgate sessions`: what a person is told of sessions, while the gateway runs and while it does not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    program::{ready_checkout, serve_config, until},
    support::{
        chaos::{Act, Proxy},
        clients::{full, payment},
        config::Config,
        process::{Agent, Process, Side, is_final},
        program::{Program, run},
        redis::Server,
    },
};

const PLACE: &str = "POST /wp-json/wc/store/v1/checkout";

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

/// The same over Redis, where a person decides while the gateway works on.
#[tokio::test]
async fn on_redis_a_person_decides_while_the_gateway_runs_and_the_repeated_key_is_answered() {
    let Some(redis) = Server::start(&[]).await else { return };
    let folder = tempfile::tempdir().unwrap();
    // A shop that names no order before the payment, and no key to its orders: nobody can look, and what is lost waits
    // for a person.
    let shop = Process::shop(&["--fault", "late_draft"]).await;
    let table = format!("url = \"{}\"", redis.url());
    let checkout = "complete_wait_secs = 1\nsettle_wait_secs = 1";
    let proxy = Proxy::before_url(&shop.address).await;
    let address = proxy.http();
    let config = Config { shop: &address, redis: Some(&table), checkout, wc_v3: false, ..Config::default() };
    let file = config.write(folder.path());
    let config = file.to_str().unwrap();
    let gateway = Process::serve(&file, &[]).await;
    let (agent, side) = (Agent::new(), Side::Ucp);
    let mut lost = Vec::new();
    // One order is made and its answer lost; of the other the shop never hears. The gateway cannot tell them apart.
    for (email, act) in [("placed@example.org", Act::CutAfter), ("given-up@example.org", Act::CutBefore)] {
        let id = agent.ready(side, &gateway.address, email).await;
        drop(proxy.next(PLACE, act));
        let reply = agent.complete(side, &gateway.address, &id, "k", "success_token").await.unwrap();
        assert_eq!(reply.text("/status"), "complete_in_progress", "{}", reply.json);
        lost.push(id);
    }
    let listed = async |which: &str| {
        let found = told(&["sessions", "list", "--config", config, "--json", which]).await;
        let ids = found.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    };
    let mut both = lost.clone();
    both.sort();
    until("both in review", async || (listed("--review").await == both).then_some(Value::Null)).await;
    assert_eq!(listed("--open").await, both);
    let (placed, given_up) = (lost[0].as_str(), lost[1].as_str());
    let look = async |id: &str| told(&["sessions", "show", id, "--config", config, "--json"]).await;
    let shown = look(placed).await;
    assert_eq!(
        (&shown["attempt"]["sent"], &shown["attempt"]["key"]),
        (&json!("yes"), &json!("waits for the outcome")),
        "{shown}"
    );
    let order = agent.orders(&shop.address, "placed@example.org").await[0]["id"].to_string();
    let resolve = ["sessions", "resolve", placed, "--config", config, "--placed", &order];
    assert!(said(&resolve).await.contains("completed"));
    assert!(!run(&resolve).await.status.success(), "decided once");
    assert_eq!(listed("--review").await, [given_up]);
    said(&["sessions", "resolve", given_up, "--config", config, "--not-placed"]).await;
    assert!(listed("--review").await.is_empty() && listed("--open").await.is_empty());
    let shown = look(placed).await;
    assert_eq!(
        (&shown["status"], &shown["order"]["shop_order"], &shown["orders_seen"][0]["last_seen"]["by"]),
        (&json!("completed"), &json!(order), &json!("a person"))
    );
    let story = look(given_up).await["story"].to_string();
    assert!(story.contains("a person: there is no order"), "{story}");
    // The gateway that ran all the while answers both keys: the one tells its order, the other is free and buys.
    for (id, email) in [(placed, "placed@example.org"), (given_up, "given-up@example.org")] {
        // It is told that the order is in the making when the shop takes longer than the second that it waits.
        let ask = async || {
            for _ in 0..100 {
                let reply = agent.complete(side, &gateway.address, id, "k", "success_token").await.unwrap();
                if is_final(&reply) {
                    return reply;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            panic!("never answered for good: {id}")
        };
        let (first, again) = (ask().await, ask().await);
        assert_eq!((first.status, first.text("/status")), (200, "completed"), "{}", first.json);
        assert_eq!(first.bytes, again.bytes);
        assert_eq!(agent.orders(&shop.address, email).await.len(), 1, "{email}");
    }
    assert_eq!(agent.places(&shop.address).await, 2, "what a person decided buys nothing by itself");
}

/// W21: something on the way sends the POST twice, and both are paid at one time. A shop empties the cart only when
/// the payment is done, so both are orders; with a payment that takes no time the second finds the cart empty.
#[tokio::test]
async fn of_two_orders_of_one_purchase_the_oldest_counts_and_the_other_waits_for_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Process::shop(&[]).await;
    let proxy = Proxy::before_url(&shop.address).await;
    let address = proxy.http();
    let checkout = "complete_wait_secs = 1\nsettle_wait_secs = 1";
    let more = "deadlines = { place_secs = 1 }";
    let file = Config { shop: &address, checkout, more, ..Config::default() }.write(folder.path());
    let config = file.to_str().unwrap();
    let gateway = Process::serve(&file, &[]).await;
    let (agent, side, email) = (Agent::new(), Side::Ucp, "twice@example.org");
    let id = agent.ready(side, &gateway.address, email).await;
    // Longer than the gateway waits for the shop's answer: it has to look for what came of it.
    agent.faults(&shop.address, &json!({"payment_ms": {"value": 2000, "count": 2}})).await;
    drop(proxy.next(PLACE, Act::Twice));
    agent.complete(side, &gateway.address, &id, "k", "success_token").await.unwrap();
    let review = ["sessions", "list", "--config", config, "--review", "--json"];
    let waiting = until("a second order", async || {
        let found = told(&review).await;
        (!found.as_array().unwrap().is_empty()).then_some(found)
    })
    .await;
    let orders = agent.orders(&shop.address, email).await;
    let mut numbers: Vec<u64> = orders.iter().map(|order| order["id"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    let [oldest, second] = numbers[..] else { panic!("two overlapping POSTs, and {orders:?}") };
    assert_eq!((waiting.as_array().unwrap().len(), &waiting[0]["id"]), (1, &json!(id)), "{waiting}");
    let why = waiting[0]["review"].to_string();
    assert!(why.contains(&format!("order {second} is a second one for this purchase")), "{waiting}");
    let shown = told(&["sessions", "show", &id, "--config", config, "--json"]).await;
    assert_eq!(
        (&shown["status"], &shown["order"]["shop_order"]),
        (&json!("completed"), &json!(oldest.to_string())),
        "{shown}"
    );
    let seen = shown["orders_seen"].as_array().unwrap().iter();
    let seen: Vec<Value> = seen.map(|seen| json!([seen["shop_order"], seen["adopted"]])).collect();
    assert_eq!(seen, [json!([oldest.to_string(), true]), json!([second.to_string(), false])]);
    let again = agent.complete(side, &gateway.address, &id, "k", "success_token").await.unwrap();
    assert_eq!((again.status, again.text("/status")), (200, "completed"), "{}", again.json);
    assert_eq!(agent.orders(&shop.address, email).await.len(), 2, "the repeated key buys nothing");
}

/// An order that is refused for a while is told once in the log, and not as a fault of ours.
#[tokio::test]
async fn an_order_refused_after_a_change_of_the_master_is_one_warning() {
    let Some(redis) = Server::start(&[]).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let shop = Process::shop(&[]).await;
    let table = format!("url = \"{}\"", redis.url());
    let config = Config { shop: &shop.address, redis: Some(&table), ..Config::default() };
    let gateway = Process::serve(&config.write(folder.path()), &[]).await;
    let agent = Agent::new();
    for (side, word) in [(Side::Ucp, "ucp"), (Side::Acp, "acp")] {
        let id = agent.ready(side, &gateway.address, &format!("{word}@example.org")).await;
        let _: String = redis.ask(&["SET", "tillgate:{flower}:replid", "another"]).await.unwrap();
        let before = gateway.said().len();
        let refused = agent.complete(side, &gateway.address, &id, "k", "success_token").await.unwrap();
        assert_eq!(refused.status, 503, "{}", refused.json);
        assert!(refused.header("retry-after").is_some());
        let mut lines = Vec::new();
        until("a line in the log", async || {
            lines = gateway.said().split_off(before);
            (!lines.is_empty()).then_some(Value::Null)
        })
        .await;
        assert!(lines.len() == 1 && lines[0].contains("WARN"), "{lines:#?}");
        assert!(lines[0].contains("after a change of the state's master"), "{lines:#?}");
    }
    assert_eq!(agent.places(&shop.address).await, 0);
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
