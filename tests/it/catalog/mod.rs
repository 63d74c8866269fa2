//! The catalogue from outside: what agents find, and that they can buy it.

mod costs;
mod lookup;
mod product;
mod search;

use serde_json::Value;

/// The ids of the products in an answer.
fn ids(products: &Value) -> Vec<&str> {
    let list = products.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|product| product["id"].as_str().unwrap()).collect()
}

/// The product with that id.
#[track_caller]
fn of<'a>(products: &'a Value, id: &str) -> &'a Value {
    let found = products.as_array().unwrap().iter().find(|product| product["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {products}"))
}

/// The texts of the messages.
fn contents(reply: &Value) -> Vec<&str> {
    let list = reply["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|message| message["content"].as_str().unwrap()).collect()
}
