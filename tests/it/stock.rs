//! Stock as people look after it: reconciliation with the shop, and `tillgate stock`.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tillgate::{
    checkout::{
        cart::{CartPlan, Customer, PlannedLine, RateChoice},
        ids::{ProductId, SessionId, ShopId},
        service::{Drift, Reconciled},
        session::{Address, Cart},
        state::{ClaimEnd, Commit, StockStep, StockTurn},
        store::{PlaceOrder, Placement, Store as _},
    },
    clock::Ids,
    money::Currency,
    stock::{Reserve, Reserved, Stage, StockId, Units},
    store::woo::{Settings, WooStore},
};

use crate::{
    program::until,
    support::{
        TestApp,
        clients::full,
        config::Config,
        process::{Agent, Process, Side},
        program::run,
        redis::Server,
    },
};

/// What a command says as JSON, and its exit code.
async fn told(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = run(arguments).await;
    let out = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {out} {error}"));
    (value, output.status.code())
}

async fn act(shop: &str, event: &Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.post(format!("{shop}/_demo/events")).json(event).send().await.unwrap();
    assert!(answer.status().is_success(), "{event}");
}

/// Places an order of a pot at the flower shop, past every gateway, that carries this correlation id.
async fn order_with(shop: &str, correlation_id: &str) -> String {
    let settings = Settings::new(shop.parse().unwrap(), Currency::parse("USD").unwrap());
    let store = WooStore::new(settings).unwrap();
    let address = Address {
        first_name: "Sam".into(),
        last_name: "Sample".into(),
        line_one: "1 Main St".into(),
        city: "Beverly Hills".into(),
        region: "CA".into(),
        postal_code: "90210".into(),
        country: "US".into(),
        phone: "3105550100".into(),
        ..Address::default()
    };
    let email = Some("sam@example.com".to_owned());
    let customer = Customer { shipping: Some(address.clone()), billing: address, email };
    let lines = vec![PlannedLine { product: ProductId::new("102"), quantity: 1 }];
    let plan = CartPlan { lines, customer: Some(customer), ..CartPlan::default() };
    let kept = |plan: &CartPlan, view| Cart {
        plan: plan.clone(),
        view,
        read_at: chrono::DateTime::UNIX_EPOCH,
        usable: true,
    };
    let opened = store.open(&plan).await.unwrap();
    let package = opened.packages[0].clone();
    let rates = vec![RateChoice { package: package.id, rate: package.rates[0].id.clone() }];
    let chosen = CartPlan { rates, ..plan.clone() };
    let view = store.check(&kept(&plan, opened), &chosen).await.unwrap().view;
    let order = PlaceOrder {
        method: Some("agent_token".into()),
        payment_data: vec![("token".into(), "success_token".into())],
        note: None,
        correlation_id: correlation_id.into(),
        source: "agent.example".into(),
        expected_total: view.totals.total,
    };
    match store.place(&kept(&chosen, view), &order).await.unwrap() {
        Placement::Placed(placed) => placed.shop_order,
        other => panic!("{other:?}"),
    }
}

/// Makes a purchase; the session's id and the shop's id of the order.
async fn bought(agent: &Agent, gateway: &Process, shop: &str, email: &str) -> (String, String) {
    let id = agent.ready(Side::Ucp, &gateway.address, email).await;
    let done = agent.complete(Side::Ucp, &gateway.address, &id, email, "success_token").await.unwrap();
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
    let orders = agent.orders(shop, email).await;
    (id, orders[0]["id"].to_string())
}

fn list(audit: &Value, name: &str) -> Vec<Value> {
    audit["flower"][name].as_array().cloned().unwrap_or_default()
}

/// T9: every seeded fault is found, and nothing else.
async fn audit_finds_what_was_seeded(redis: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let shop = Process::shop(&[]).await;
    let config = Config { shop: &shop.address, redis, ..Config::default() }.write(folder.path());
    let gateway = Process::serve(&config, &[]).await;
    let agent = Agent::new();
    let (twice, first) = bought(&agent, &gateway, &shop.address, "twice@example.com").await;
    let (cancelled, order_cancelled) = bought(&agent, &gateway, &shop.address, "cancelled@example.com").await;
    let (deleted, order_deleted) = bought(&agent, &gateway, &shop.address, "deleted@example.com").await;
    bought(&agent, &gateway, &shop.address, "fine@example.com").await;
    let config = config.to_str().unwrap();
    let audit = ["stock", "audit", "--config", config, "--json"];
    let (before, code) = told(&audit).await;
    assert_eq!((code, &before["flower"]["clean"]), (Some(0), &json!(true)), "{before}");
    assert_eq!(before["flower"]["orders"], 4);

    let session = told(&["sessions", "show", &twice, "--config", config, "--json"]).await.0;
    let second = order_with(&shop.address, session["correlation_id"].as_str().unwrap()).await;
    let stray = order_with(&shop.address, "tg_of_nobody").await;
    // Another program's mark is none of ours.
    order_with(&shop.address, "newsletter").await;
    let order: u64 = order_cancelled.parse().unwrap();
    act(&shop.address, &json!({"op": "order_status", "order": order, "status": "cancelled"})).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let gone = client
        .delete(format!("{}/wp-json/wc/v3/orders/{order_deleted}?force=true", shop.address))
        .basic_auth("ck_demo", Some("cs_demo"));
    assert!(gone.send().await.unwrap().status().is_success());
    act(&shop.address, &json!({"op": "stock", "product": 104, "quantity": -2})).await;

    let (found, code) = told(&audit).await;
    assert_eq!(code, Some(1), "{found}");
    assert_eq!(found["flower"]["clean"], false);
    let of = |name: &str, field: &str| -> Vec<Value> {
        list(&found, name).iter().map(|entry| entry[field].clone()).collect()
    };
    assert_eq!(of("orders_without_session", "shop_order"), [json!(stray)], "{found}");
    assert_eq!(of("several_orders", "session"), [json!(twice)], "{found}");
    let mut both = [first, second];
    both.sort();
    assert_eq!(of("several_orders", "shop_orders"), [json!(both)], "{found}");
    let mut missing = list(&found, "sessions_without_order");
    missing.sort_by_key(|entry| entry["shop_order"].to_string());
    let missing: Vec<_> = missing.iter().map(|entry| (&entry["session"], &entry["state"])).collect();
    let gone = json!("cancelled, refunded or thrown away");
    let unknown = json!("unknown to the shop");
    let (cancelled, deleted) = (json!(cancelled), json!(deleted));
    assert_eq!(missing, [(&cancelled, &gone), (&deleted, &unknown)], "{found}");
    assert_eq!(list(&found, "negative_stock"), [json!({"stock": "104", "number": -2})], "{found}");
    assert!(
        list(&found, "pins_without_attempt").is_empty() && list(&found, "attempts_without_pin").is_empty()
    );
    println!("audit finds {}", serde_json::to_string(&found["flower"]).unwrap());
    // People are told the same in words.
    let plain = run(&audit[..4]).await;
    let said = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(plain.status.code() == Some(1) && said.contains("tg_of_nobody"), "{said}");
    assert!(!said.contains("everything matches"), "{said}");
}

#[tokio::test]
async fn audit_finds_every_seeded_fault() {
    audit_finds_what_was_seeded(None).await;
}

#[tokio::test]
async fn audit_finds_every_seeded_fault_in_a_shared_state() {
    let Some(server) = Server::start(&[]).await else { return };
    let table = format!("url = \"{}\"", server.url());
    audit_finds_what_was_seeded(Some(&table)).await;
}

#[tokio::test]
async fn audit_says_that_it_needs_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Process::shop(&[]).await;
    let config = Config { shop: &shop.address, wc_v3: false, ..Config::default() }.write(folder.path());
    let _gateway = Process::serve(&config, &[]).await;
    let output = run(&["stock", "audit", "--config", config.to_str().unwrap()]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("wc_v3"), "{said}");
}

#[tokio::test]
async fn a_changed_stock_is_known_within_the_poll_interval() {
    for redis in [false, true] {
        let server = if redis { Server::start(&[]).await } else { None };
        if redis && server.is_none() {
            return;
        }
        let table = server.as_ref().map(|server| format!("url = \"{}\"", server.url()));
        let folder = tempfile::tempdir().unwrap();
        let shop = Process::shop(&[]).await;
        let config = Config {
            shop: &shop.address,
            redis: table.as_deref(),
            server: "[stock]\npoll_secs = 1",
            ..Config::default()
        };
        let config = config.write(folder.path());
        let gateway = Process::serve(&config, &[]).await;
        let agent = Agent::new();
        let (id, _) = bought(&agent, &gateway, &shop.address, "a@example.com").await;
        let config = config.to_str().unwrap();
        let ask = ["stock", "show", "--config", config, "--json"];
        let (shelves, code) = told(&ask).await;
        let (stock, shelf) = shelves["flower"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(code, Some(0));
        let held = &shelf["held"][0];
        assert_eq!(
            (&held["session"], &held["stage"], &held["quantity"]),
            (&json!(id), &json!("sold"), &json!(1)),
            "{shelves}"
        );
        assert_eq!(shelf["upper"]["source"], "the shop's books");
        let product: u64 = stock.parse().unwrap();
        let begun = Instant::now();
        act(&shop.address, &json!({"op": "stock", "product": product, "quantity": 7})).await;
        until("the new number", async || {
            let shelves = told(&ask).await.0;
            (shelves["flower"][stock]["upper"]["number"] == 7).then_some(shelves)
        })
        .await;
        let took = begun.elapsed();
        let line = gateway.said().into_iter().find(|line| line.contains("not what our sales explain"));
        let line = line.expect("a change by others is in the log");
        assert!(line.contains("WARN") && line.contains("found=7"), "{line}");
        println!(
            "{}: a change at the shop is known after {took:?} with a poll every second",
            if redis { "Redis" } else { "SQLite" }
        );
        assert!(took < Duration::from_secs(5), "{took:?}");
        // A sync wants the state for itself where it is embedded, and works beside the gateway where it is shared.
        let sync = run(&["stock", "sync", "--config", config, "--json"]).await;
        let said = String::from_utf8_lossy(&sync.stderr).into_owned();
        assert_eq!(sync.status.success(), redis, "{said}");
        assert!(redis || said.contains("every 1 s"), "{said}");
        gateway.kill();
        act(&shop.address, &json!({"op": "stock", "product": product, "quantity": 3})).await;
        let (synced, code) = told(&["stock", "sync", "--config", config, "--json"]).await;
        let drift = json!([{"stock": stock, "expected": [7, 7], "found": 3}]);
        assert_eq!((code, &synced["flower"]["drift"]), (Some(0), &drift), "{synced}");
        let plain = run(&["stock", "show", "--config", config, "--shop", "flower"]).await;
        let said = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(said.contains(&format!("flower  {stock}: at most 3")), "{said}");
    }
}

const FLOWER: &str = "flower";

fn shop() -> ShopId {
    ShopId::new(FLOWER)
}

async fn reconciled(app: &TestApp) -> Reconciled {
    let mut all = app.app.reconcile(Some(&shop())).await;
    all.remove(0).1.unwrap()
}

/// Buys some, and says what they count under.
async fn sold(app: &TestApp, quantity: u32) -> StockId {
    let ucp = app.ucp();
    let id = ucp.create(full("bouquet_roses", quantity)).await.expect(201).id();
    let done = ucp.complete(&id, "success_token").await.expect(200);
    assert_eq!(done.text("/status"), "completed", "{}", done.json);
    let shelves = app.app.state().shelves(&shop(), None).await.unwrap();
    shelves.into_keys().next().unwrap()
}

fn set(app: &TestApp, stock: &StockId, quantity: i64) {
    let product: u64 = stock.as_str().parse().unwrap();
    app.flower().act(&json!({"op": "stock", "product": product, "quantity": quantity})).unwrap();
}

#[tokio::test]
async fn our_own_sales_are_no_drift_and_others_are() {
    let app = TestApp::new().await;
    let stock = sold(&app, 1).await;
    let first = reconciled(&app).await;
    assert_eq!((first.read, first.drift), (1, vec![]), "what was sold before");
    let number = app.app.state().shelves(&shop(), None).await.unwrap()[&stock].upper.unwrap().number;
    sold(&app, 3).await;
    app.pass(5);
    let second = reconciled(&app).await;
    assert_eq!(second.drift, [], "three of ours explain {number} less three");
    let shelf = app.app.state().shelves(&shop(), None).await.unwrap()[&stock].clone();
    assert_eq!(shelf.upper.unwrap().number, number - 3);
    // Somebody buys two at the shop's own till.
    set(&app, &stock, number - 5);
    app.pass(5);
    let third = reconciled(&app).await;
    let drift = Drift { stock: stock.clone(), least: number - 3, most: number - 3, found: number - 5 };
    assert_eq!(third.drift, [drift]);
    // Told once: it is as the shop says now (K4).
    app.pass(5);
    assert_eq!(reconciled(&app).await.drift, []);
    let shelf = app.app.state().shelves(&shop(), None).await.unwrap()[&stock].clone();
    assert_eq!(shelf.upper_bound(""), Some(number - 5));
}

#[tokio::test]
async fn units_of_sessions_that_are_over_are_given_back_and_no_others() {
    let app = TestApp::new().await;
    let stock = sold(&app, 1).await;
    let state = app.app.state();
    let ucp = app.ucp();
    let open = ucp.create(full("bouquet_roses", 1)).await.expect(201).id();
    let over = ucp.create(full("bouquet_roses", 1)).await.expect(201).id();
    ucp.cancel(&over).await.expect(200);
    let units = |quantity| Units { stock: stock.clone(), quantity };
    for (session, quantity) in [(open.as_str(), 2), (over.as_str(), 3), ("chk_gone", 4)] {
        let wish =
            Reserve { session: session.into(), units: vec![units(quantity)], hold_ms: 600_000, enter: false };
        let held = state.reserve(&shop(), wish).await.unwrap();
        assert!(matches!(held, Reserved::Admitted { .. }), "{held:?}");
    }
    let mut given: Vec<_> = reconciled(&app).await.given_back;
    given.sort_by_key(|(_, units)| units.quantity);
    assert_eq!(given, [(SessionId::new(&over), units(3)), (SessionId::new("chk_gone"), units(4))]);
    let members = state.shelves(&shop(), None).await.unwrap()[&stock].members.clone();
    assert!(members.contains_key(&open) && !members.contains_key(&over), "{members:?}");
    assert_eq!(reconciled(&app).await.given_back, []);
}

#[tokio::test]
async fn a_pin_without_an_attempt_is_closed_and_one_of_an_open_attempt_stays() {
    let app = TestApp::new().await;
    let stock = sold(&app, 1).await;
    let state = app.app.state();
    // An attempt whose outcome nobody knows.
    let ucp = app.ucp();
    let lost = ucp.create(full("bouquet_roses", 1)).await.expect(201).id();
    app.flower().set_fault("lost_answer,count=1,only=checkout").unwrap();
    let told = ucp.complete(&lost, "success_token").await;
    assert_eq!(told.json["status"], "complete_in_progress", "{}", told.json);
    // A pin of a session that nobody knows.
    let units = vec![Units { stock: stock.clone(), quantity: 2 }];
    let wish = Reserve { session: "chk_gone".into(), units: units.clone(), hold_ms: 60_000, enter: true };
    state.reserve(&shop(), wish.clone()).await.unwrap();
    let pin = |turn| Commit {
        shop: shop(),
        operation: Ids.uuid(),
        session: None,
        claim: ClaimEnd::Keep,
        sightings: vec![],
        stock: Some(StockStep { session: SessionId::new("chk_gone"), units: units.clone(), turn }),
    };
    // What covers it beside the one that runs.
    let from = state.observe(&shop(), vec![]).await.unwrap();
    let found = tillgate::stock::Reading {
        stock: stock.clone(),
        upper: tillgate::stock::Upper::Untold,
        lower: Some(50),
        takes_off_pending: false,
        source: tillgate::stock::Source::Shop,
        from,
    };
    state.observe(&shop(), vec![found]).await.unwrap();
    state.reserve(&shop(), wish).await.unwrap();
    state.commit(pin(StockTurn::Pin(vec![]))).await.unwrap();
    let told = reconciled(&app).await;
    assert_eq!(told.closed_pins, [(SessionId::new("chk_gone"), stock.clone())]);
    assert_eq!(told.unpinned, []);
    let members = state.shelves(&shop(), None).await.unwrap()[&stock].members.clone();
    assert!(members.get("chk_gone").is_none_or(|member| member.stage == Stage::Soft), "{members:?}");
    assert_eq!(members[&lost].stage, Stage::Open, "it is nobody's to touch but the settler's");
    let again = reconciled(&app).await;
    assert_eq!(again.closed_pins, []);
    // Somebody takes the pin of the open attempt away: that is told, and nothing is made of it.
    app.state(|file| file.execute("DELETE FROM shelves", []).unwrap());
    assert_eq!(reconciled(&app).await.unpinned, [(SessionId::new(&lost), stock)]);
    let read = ucp.call(Method::GET, &format!("/checkout-sessions/{lost}"), None).await;
    assert_eq!(read.status, 200);
}
