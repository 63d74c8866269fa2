//! How often the shop is called, operation by operation: a call costs a merchant's server a PHP process, and
//! an agent a second. `docs/architecture.md` has the same table.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{
    Reply, TestApp,
    clients::{Acp, Ucp, acp_address, acp_buyer, acp_lines, full},
};

/// One column of the table.
struct Column {
    name: &'static str,
    agent: fn(&TestApp) -> Agent<'_>,
    /// An item that ships.
    item: &'static str,
    /// A code that the shop takes.
    code: &'static str,
    currency: &'static str,
    /// A dearer option than the one that the shop takes by itself.
    option: &'static str,
    /// What the first create costs more: article numbers are looked up.
    look_up: usize,
}

const COLUMNS: [Column; 4] = [
    Column {
        name: "UCP, ids",
        agent: |app| Agent::Ucp(app.general_ucp()),
        item: "19",
        code: "PERCENT10",
        currency: "eur",
        option: "flat_rate:5",
        look_up: 0,
    },
    Column {
        name: "ACP, ids",
        agent: |app| Agent::Acp(app.general_acp()),
        item: "19",
        code: "PERCENT10",
        currency: "eur",
        option: "flat_rate:5",
        look_up: 0,
    },
    Column {
        name: "UCP, SKUs",
        agent: |app| Agent::Ucp(app.ucp()),
        item: "bouquet_roses",
        code: "10OFF",
        currency: "usd",
        option: "exp-ship-us",
        look_up: 1,
    },
    Column {
        name: "ACP, SKUs",
        agent: |app| Agent::Acp(app.acp()),
        item: "bouquet_roses",
        code: "10OFF",
        currency: "usd",
        option: "exp-ship-us",
        look_up: 1,
    },
];

/// An agent of either protocol.
enum Agent<'a> {
    Ucp(Ucp<'a>),
    Acp(Acp<'a>),
}

impl Agent<'_> {
    async fn create(&self, column: &Column) -> Reply {
        match self {
            Self::Ucp(ucp) => ucp.create(full(column.item, 2)).await,
            Self::Acp(acp) => {
                let mut body = acp_lines(column.item, 2, column.currency);
                body["buyer"] = acp_buyer();
                body["fulfillment_details"] = json!({"address": acp_address()});
                acp.create(body).await
            }
        }
        .expect(201)
    }

    /// Another quantity, a code and an option, in one update.
    async fn update(&self, id: &str, column: &Column) -> Reply {
        match self {
            Self::Ucp(ucp) => {
                let mut body = full(column.item, 3);
                body["discounts"] = json!({"codes": [column.code]});
                body["fulfillment"]["methods"][0]["groups"] = json!([{"selected_option_id": column.option}]);
                ucp.update(id, body).await
            }
            Self::Acp(acp) => {
                let option =
                    json!({"type": "shipping", "option_id": column.option, "item_ids": [column.item]});
                let body = json!({"line_items": [{"id": column.item, "quantity": 3}],
                    "discounts": {"codes": [column.code]}, "selected_fulfillment_options": [option]});
                acp.update(id, body).await
            }
        }
        .expect(200)
    }

    async fn get(&self, id: &str) -> Reply {
        match self {
            Self::Ucp(ucp) => ucp.get(id).await,
            Self::Acp(acp) => acp.get(id).await,
        }
        .expect(200)
    }

    async fn complete(&self, id: &str, token: &str, key: &str) -> Reply {
        match self {
            Self::Ucp(ucp) => ucp.key(key).complete(id, token).await,
            Self::Acp(acp) => acp.key(key).complete(id, token).await,
        }
        .expect(200)
    }

    async fn cancel(&self, id: &str) -> Reply {
        match self {
            Self::Ucp(ucp) => ucp.cancel(id).await,
            Self::Acp(acp) => acp.cancel(id).await,
        }
        .expect(200)
    }
}

/// The operations, and what each may cost.
const PROMISED: [(&str, usize); 12] = [
    ("create, article numbers unknown", 3),
    ("create", 2),
    ("update", 1),
    ("get within 30 s", 0),
    ("get later", 1),
    ("complete, its stock not read yet", 5),
    ("complete", 3),
    ("complete, declined", 3),
    ("complete after a decline", 4),
    ("the same key again", 0),
    ("get of a finished session", 0),
    ("cancel", 0),
];

/// Plays every operation once; what each cost, in the order of [`PROMISED`].
async fn measure(column: &Column) -> Vec<Vec<String>> {
    let app = TestApp::new().await;
    let agent = (column.agent)(&app);
    let mut measured = Vec::new();
    let cold = agent.create(column).await;
    measured.push(app.shop_calls().await);
    agent.cancel(&cold.id()).await;
    app.shop_calls().await;

    let id = agent.create(column).await.id();
    measured.push(app.shop_calls().await);
    let updated = agent.update(&id, column).await;
    measured.push(app.shop_calls().await);
    assert!(updated.codes().is_empty(), "{}: {}", column.name, updated.json);
    agent.get(&id).await;
    measured.push(app.shop_calls().await);
    app.pass(31);
    agent.get(&id).await;
    measured.push(app.shop_calls().await);
    for key in ["cold", "first"] {
        let id = if key == "cold" { id.clone() } else { agent.create(column).await.id() };
        if key != "cold" {
            app.shop_calls().await;
        }
        let bought = agent.complete(&id, "success_token", key).await;
        app.app.rest().await;
        measured.push(app.shop_calls().await);
        assert_eq!(bought.text("/status"), "completed", "{}", bought.json);
    }

    let id = agent.create(column).await.id();
    app.shop_calls().await;
    agent.complete(&id, "fail_token", "second").await;
    measured.push(app.shop_calls().await);
    app.pass(3);
    let paid = agent.complete(&id, "success_token", "third").await;
    app.app.rest().await;
    measured.push(app.shop_calls().await);
    assert_eq!(paid.text("/status"), "completed", "{}", paid.json);
    let again = agent.complete(&id, "success_token", "third").await;
    measured.push(app.shop_calls().await);
    assert_eq!(again.bytes, paid.bytes);
    agent.get(&id).await;
    measured.push(app.shop_calls().await);

    let id = agent.create(column).await.id();
    app.shop_calls().await;
    agent.cancel(&id).await;
    measured.push(app.shop_calls().await);
    measured
}

#[tokio::test]
async fn no_operation_calls_the_shop_more_often_than_promised() {
    let mut table = format!("{:<34}{:>9}", "operation", "promised");
    let mut columns = Vec::new();
    for column in &COLUMNS {
        write!(table, "{:>11}", column.name).unwrap();
        columns.push(measure(column).await);
    }
    for (row, (operation, promised)) in PROMISED.iter().enumerate() {
        write!(table, "\n{operation:<34}{promised:>9}").unwrap();
        for measured in &columns {
            write!(table, "{:>11}", measured[row].len()).unwrap();
        }
    }
    println!("{table}");
    for (column, measured) in COLUMNS.iter().zip(&columns) {
        for ((operation, promised), calls) in PROMISED.iter().zip(measured) {
            let promised = if operation.ends_with("unknown") { 2 + column.look_up } else { *promised };
            assert_eq!(calls.len(), promised, "{}, {operation}: {calls:#?}\n{table}", column.name);
        }
    }
}

#[tokio::test]
async fn what_the_shop_does_by_itself_is_not_asked_for() {
    // The demo takes the cheapest way to ship; where the shop has chosen it already, that costs no call.
    let app = TestApp::new().await;
    for address in [json!(null), json!({"address": acp_address()})] {
        let mut body = acp_lines("19", 1, "eur");
        body["fulfillment_details"] = address;
        app.general_acp().create(body).await.expect(201);
        let calls = app.shop_calls().await;
        assert_eq!(calls.len(), 2, "{calls:#?}");
    }
}

#[tokio::test]
async fn a_change_that_changes_nothing_asks_for_one_look_at_most() {
    let app = TestApp::new().await;
    let ucp = app.general_ucp();
    let id = ucp.ready("19", 1).await;
    app.shop_calls().await;
    ucp.update(&id, full("19", 1)).await.expect(200);
    let calls = app.shop_calls().await;
    assert!(calls.len() <= 1, "{calls:#?}");
    let other: Value = full("19", 1);
    ucp.update(&id, other).await.expect(200);
    assert!(app.shop_calls().await.len() <= 1);
}

#[tokio::test]
async fn many_lines_cost_no_more_than_one() {
    let app = TestApp::new().await;
    let acp = app.general_acp();
    let mut body = acp_lines("19", 1, "eur");
    let ids = ["19", "24", "27", "31", "36"];
    body["line_items"] = ids.iter().map(|id| json!({"id": id, "quantity": 1})).collect();
    let reply = acp.create(body).await.expect(201);
    assert_eq!(reply.json["line_items"].as_array().unwrap().len(), ids.len(), "{}", reply.json);
    assert_eq!(app.shop_calls().await.len(), 2);
}
