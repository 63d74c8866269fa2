//! Which call does what, in the Store API.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::cart;
use super::catalog;
use super::checkout::{self, Step};
use super::coupons;
use super::fields;
use super::http::{ApiError, Call, Reply};
use super::listing;
use super::model::Session;
use super::orders;
use super::paying;
use super::state::State;
use super::terms;
use super::totals;
use super::view;

/// What stands behind a path: methods it takes, and whether it is about a cart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) methods: &'static str,
    pub(super) cart: bool,
}

/// Whether a call must prove that it comes from a client: a Cart-Token or a nonce.
pub(super) fn guarded(call: &Call, path: &[&str]) -> bool {
    match path {
        _ if call.method == "OPTIONS" => false,
        ["checkout", ..] => true,
        ["cart", ..] => call.method != "GET",
        _ => false,
    }
}

/// The path below `wc/store/v1`, in parts; `None` if the path is not of the Store API.
pub(super) fn below(path: &str) -> Option<Vec<&str>> {
    let rest = path.strip_prefix("wc/store/v1").or_else(|| path.strip_prefix("wc/store"))?;
    Some(rest.split('/').filter(|part| !part.is_empty()).collect())
}

/// The methods a path takes, or `None` if there is no such path.
pub(super) fn find(path: &[&str]) -> Option<Route> {
    let (methods, cart) = match path {
        []
        | ["products"]
        | ["products" | "order", _]
        | ["products", "attributes" | "categories" | "brands", _]
        | ["products", "attributes", _, "terms"] => ("GET", false),
        ["batch"] => ("POST", false),
        ["cart"] => ("GET", true),
        ["cart", "items" | "coupons"] => ("GET, POST, DELETE", true),
        ["cart", "items", _] => ("GET, POST, PUT, PATCH, DELETE", true),
        ["cart", "coupons", _] => ("GET, DELETE", true),
        ["cart" | "checkout", _] => ("POST", true),
        ["checkout"] => ("GET, POST, PUT, PATCH", true),
        _ => return None,
    };
    Some(Route { methods, cart })
}

/// Runs a call that is not a batch.
pub(super) fn run(
    state: &mut State,
    session: &mut Session,
    call: &Call,
    path: &[&str],
    now: DateTime<Utc>,
) -> Result<Step, ApiError> {
    let reply = match (call.method.as_str(), path) {
        ("GET", []) => Reply::new(200, index(state)),
        ("GET", ["products"]) => listing::list(state, call, now)?,
        (
            "GET",
            ["products", "collection-data" | "attributes" | "categories" | "tags" | "brands" | "reviews", ..],
        ) => terms::route(state, call, path.get(1..).unwrap_or_default())?,
        ("GET", ["products", name]) => catalog::one(state, call, name, now)?,
        ("GET", ["order", id]) => orders::read(state, id, call)?,
        ("GET" | "PUT" | "PATCH", ["checkout"]) => checkout::draft(state, session, call, now)?,
        ("POST", ["checkout"]) => return checkout::place(state, session, call, now),
        ("POST", ["checkout", id]) => return paying::pay_for_order(state, id, call, now),
        ("OPTIONS", ["checkout"]) => Reply::new(200, checkout_options(state)),
        ("OPTIONS", path) => {
            let methods: Vec<&str> =
                find(path).map(|route| route.methods.split(", ").collect()).unwrap_or_default();
            Reply::new(200, json!({"namespace": "wc/store/v1", "methods": methods}))
        }
        (method, ["cart", rest @ ..]) => cart_route(state, session, call, method, rest, now)?,
        _ => return Err(ApiError::no_route()),
    };
    Ok(Step::Done(reply))
}

fn cart_route(
    state: &State,
    session: &mut Session,
    call: &Call,
    method: &str,
    path: &[&str],
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    let key = || call.text("key");
    let mut status = 200;
    match (method, path) {
        ("GET", [] | ["items" | "coupons", ..]) => {}
        ("POST", ["add-item"]) => {
            cart::add(state, session, call, now)?;
            status = 201;
        }
        ("POST", ["items"]) => {
            let key = cart::add(state, session, call, now)?;
            return one_item(state, session, &key, 201, now);
        }
        ("POST", ["update-item"]) => cart::update(state, session, &key(), call, now)?,
        ("PUT" | "PATCH" | "POST", ["items", key]) => {
            cart::update(state, session, key, call, now)?;
            return one_item(state, session, key, 200, now);
        }
        ("POST", ["remove-item"]) => cart::remove(session, &key())?,
        ("DELETE", ["items", key]) => {
            cart::remove(session, key)?;
            return Ok(Reply::new(204, Value::Null));
        }
        ("DELETE", ["items"]) => {
            cart::empty(session);
            return Ok(Reply::new(200, json!([])));
        }
        ("POST", ["apply-coupon"]) => cart::apply_coupon(state, session, call)?,
        ("POST", ["coupons"]) => {
            cart::apply_coupon(state, session, call)?;
            return one_coupon(state, session, &call.text("code"), 201, now);
        }
        ("POST", ["remove-coupon"]) => coupons::remove(state, &mut session.coupons, &call.text("code"))?,
        ("DELETE", ["coupons", code]) => {
            coupons::remove(state, &mut session.coupons, code)?;
            return Ok(Reply::new(204, Value::Null));
        }
        ("DELETE", ["coupons"]) => {
            session.coupons.clear();
            return Ok(Reply::new(200, json!([])));
        }
        ("POST", ["update-customer"]) => cart::update_customer(state, session, call)?,
        ("POST", ["select-shipping-rate"]) => cart::select_rate(session, call)?,
        _ => return Err(ApiError::no_route()),
    }
    match (method, path) {
        ("GET", ["items", key]) => one_item(state, session, key, 200, now),
        ("GET", ["coupons", code]) => one_coupon(state, session, code, 200, now),
        ("GET", ["items"]) => Ok(Reply::new(200, items(state, session, now))),
        ("GET", ["coupons"]) => Ok(Reply::new(200, coupon_list(state, session, now))),
        _ => {
            let priced = totals::price(state, session, now);
            Ok(Reply::new(status, view::cart(state, session, &priced, now)))
        }
    }
}

fn link(state: &State, rest: &str) -> String {
    format!("{}/wp-json/wc/store/v1/cart/{rest}", state.public_base)
}

fn items(state: &State, session: &mut Session, now: DateTime<Utc>) -> Value {
    let priced = totals::price(state, session, now);
    priced
        .lines
        .iter()
        .filter_map(|line| {
            let allow = ["GET", "POST", "PUT", "PATCH", "DELETE"];
            let links = json!({
                "self": [{
                    "href": link(state, &format!("items/{}", line.key)),
                    "targetHints": {"allow": allow},
                }],
                "collection": [{"href": link(state, "items")}],
            });
            Some(view::merged(view::item(state, session, line, now)?, json!({"_links": links})))
        })
        .collect()
}

fn one_item(
    state: &State,
    session: &mut Session,
    key: &str,
    status: u16,
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    let priced = totals::price(state, session, now);
    let line = priced.lines.iter().find(|line| line.key == key);
    let item = line.and_then(|line| view::item(state, session, line, now));
    let Some(item) = item else {
        return Err(ApiError::new(409, "woocommerce_rest_cart_invalid_key", "Cart item does not exist."));
    };
    // The route's own pattern stands in these links, as it does in the shop's.
    let route = link(state, "items/(?P<key>[\\w-]{32})");
    let links = json!({"self": [{"href": format!("{route}/{key}")}], "collection": [{"href": route}]});
    Ok(Reply::new(status, view::merged(item, json!({"_links": links}))))
}

fn coupon_list(state: &State, session: &mut Session, now: DateTime<Utc>) -> Value {
    let priced = totals::price(state, session, now);
    priced
        .coupons
        .iter()
        .map(|line| {
            let links = json!({
                "self": [{
                    "href": link(state, &format!("coupons/{}", line.code)),
                    "targetHints": {"allow": ["GET", "DELETE"]},
                }],
                "collection": [{"href": link(state, "coupons")}],
            });
            view::merged(view::coupon(state, line), json!({"_links": links}))
        })
        .collect()
}

fn one_coupon(
    state: &State,
    session: &mut Session,
    code: &str,
    status: u16,
    now: DateTime<Utc>,
) -> Result<Reply, ApiError> {
    let code = code.trim().to_lowercase();
    let priced = totals::price(state, session, now);
    let line = priced.coupons.iter().find(|line| line.code == code).ok_or_else(|| {
        let message = "Coupon does not exist in the cart.";
        ApiError::new(404, "woocommerce_rest_cart_coupon_invalid_code", message)
    })?;
    Ok(Reply::new(status, view::coupon(state, line)))
}

/// Every path of the API with its methods, as `GET wc/store/v1` lists them. What each call takes is not told.
fn index(state: &State) -> Value {
    const ROUTES: &[(&str, &[&str])] = &[
        ("", &[]),
        ("/batch", &["batch"]),
        ("/cart", &["cart"]),
        ("/cart/add-item", &["cart", "add-item"]),
        ("/cart/apply-coupon", &["cart", "apply-coupon"]),
        ("/cart/coupons", &["cart", "coupons"]),
        ("/cart/coupons/(?P<code>[\\w-]+)", &["cart", "coupons", "x"]),
        ("/cart/extensions", &["cart", "extensions"]),
        ("/cart/items", &["cart", "items"]),
        ("/cart/items/(?P<key>[\\w-]{32})", &["cart", "items", "x"]),
        ("/cart/remove-coupon", &["cart", "remove-coupon"]),
        ("/cart/remove-item", &["cart", "remove-item"]),
        ("/cart/select-shipping-rate", &["cart", "select-shipping-rate"]),
        ("/cart/update-item", &["cart", "update-item"]),
        ("/cart/update-customer", &["cart", "update-customer"]),
        ("/checkout", &["checkout"]),
        ("/checkout/(?P<id>[\\d]+)", &["checkout", "1"]),
        ("/order/(?P<id>[\\d]+)", &["order", "1"]),
        ("/products/attributes", &["products", "attributes"]),
        ("/products/attributes/(?P<id>[\\d]+)", &["products", "attributes", "1"]),
        ("/products/attributes/(?P<attribute_id>[\\d]+)/terms", &["products", "attributes", "1", "terms"]),
        ("/products/categories", &["products", "categories"]),
        ("/products/categories/(?P<id>[\\d]+)", &["products", "categories", "1"]),
        ("/products/brands", &["products", "brands"]),
        ("/products/brands/(?P<identifier>[\\w-]+)", &["products", "brands", "x"]),
        ("/products/collection-data", &["products", "collection-data"]),
        ("/products/reviews", &["products", "reviews"]),
        ("/products/tags", &["products", "tags"]),
        ("/products", &["products"]),
        ("/products/(?P<id>[\\d]+)", &["products", "1"]),
        ("/products/(?P<slug>[\\S]+)", &["products", "x"]),
    ];
    let base = format!("{}/wp-json", state.public_base);
    let mut routes = serde_json::Map::new();
    for (name, path) in ROUTES {
        let Some(route) = find(path) else { continue };
        let methods: Vec<&str> = route.methods.split(", ").collect();
        let mut entry = json!({
            "namespace": "wc/store/v1",
            "methods": methods,
            "endpoints": [{"methods": methods, "args": {}}],
        });
        if !name.contains('(') {
            let links = json!({"_links": {"self": [{"href": format!("{base}/wc/store/v1{name}")}]}});
            entry = view::merged(entry, links);
        }
        routes.insert(format!("/wc/store/v1{name}"), entry);
    }
    json!({
        "namespace": "wc/store/v1",
        "routes": routes,
        "_links": {"up": [{"href": format!("{base}/")}]},
    })
}

/// `OPTIONS checkout`: the methods and the arguments that tell one release from another.
fn checkout_options(state: &State) -> Value {
    let post = json!({
        "billing_address": {"required": true, "type": "object"},
        "shipping_address": {"required": false, "type": "object"},
        "payment_method": {"required": false, "type": "string", "enum": ["", "bacs", "cheque", "cod", "agent_token"]},
        "payment_data": {"required": false, "type": "array"},
        "customer_note": {"required": false, "type": "string"},
        "create_account": {"required": false, "type": "boolean"},
        "additional_fields": fields::schema(state.settings().extra_fields),
        "extensions": {"required": false, "type": "object"},
    });
    json!({
        "namespace": "wc/store/v1",
        "methods": ["GET", "POST", "PUT", "PATCH"],
        "endpoints": [
            {"methods": ["GET"], "args": {}},
            {"methods": ["POST"], "args": post},
            {"methods": ["PUT", "PATCH"], "args": {"payment_method": {"required": false, "type": "string"}}},
        ],
        "schema": {"title": "checkout", "type": "object"},
    })
}
