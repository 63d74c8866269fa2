//! From an HTTP request to a call of the shop, and back: parameters, answers, errors.
//!
//! A *call* is one request to one route, or one item of a batch. Its parameters are the query, overlaid by
//! the JSON or form body. A refusal is an [`ApiError`] and is rendered as `WooCommerce` does:
//! `{code, message, data: {status, …}}`.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value, json};

/// One call: method, path below the API's root, parameters.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: String,
    /// Path below `/wp-json/`, without slashes at the ends.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) params: Map<String, Value>,
    /// The path and query as they were sent.
    pub(super) target: String,
}

impl Call {
    /// Splits a target like `wc/store/v1/cart?_fields=items` and lays the body over its query.
    pub(super) fn new(method: &str, target: &str, body: Map<String, Value>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let mut params: Map<String, Value> =
            query.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        params.extend(body);
        Self {
            method: method.to_owned(),
            path: path.trim_matches('/').to_owned(),
            query,
            params,
            target: target.to_owned(),
        }
    }

    /// A parameter as text; empty if it is absent.
    pub(super) fn text(&self, name: &str) -> String {
        match self.params.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(true)) => "1".to_owned(),
            _ => String::new(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.params.contains_key(name)
    }

    /// All values of a query parameter that may be a list (`name=a,b` or `name[]=a&name[]=b`).
    pub(super) fn list(&self, name: &str) -> Option<Vec<String>> {
        let indexed = format!("{name}[");
        let mut found = false;
        let mut values = Vec::new();
        for (key, value) in &self.query {
            if key == name || key.starts_with(&indexed) {
                found = true;
                values.extend(
                    value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned),
                );
            }
        }
        found.then_some(values)
    }
}

/// Reads a request's body as an object.
pub(super) fn read_body(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/x-www-form-urlencoded") {
        return Ok(url::form_urlencoded::parse(body)
            .map(|(name, value)| (name.into_owned(), json!(value)))
            .collect());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(_) => Err(ApiError::new(400, "rest_invalid_json", "Invalid JSON body passed.")
            .with("json_error_code", json!(4))
            .with("json_error_message", json!("Syntax error"))),
    }
}

/// A refusal.
#[derive(Debug, Clone)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
    /// Members of `data` beside `status`; `None` answers `data: null`.
    data: Option<Map<String, Value>>,
    /// Whether the whole cart goes along in `data.cart`.
    pub(super) with_cart: bool,
    pub(super) additional: Box<[super::totals::Notice]>,
    /// What pricing had to say; shown in the cart that goes along.
    pub(super) notices: Box<[super::totals::Notice]>,
}

impl ApiError {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            data: Some(Map::new()),
            with_cart: status == 409,
            additional: Box::default(),
            notices: Box::default(),
        }
    }

    /// Adds a member to `data`.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        if let Some(data) = &mut self.data {
            data.insert(name.to_owned(), value);
        }
        self
    }

    pub(super) fn without_data(mut self) -> Self {
        self.data = None;
        self
    }

    /// `rest_invalid_param` for parameters: name, code and text of each.
    pub(super) fn invalid_params(params: &[(&'static str, String, String)]) -> Self {
        let names = params.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        let texts: Map<String, Value> =
            params.iter().map(|(name, _, text)| ((*name).to_owned(), json!(text))).collect();
        let details: Map<String, Value> = params
            .iter()
            .map(|(name, code, text)| {
                let data = if code == "rest_invalid_type" { json!({"param": name}) } else { Value::Null };
                ((*name).to_owned(), json!({"code": code, "message": text, "data": data}))
            })
            .collect();
        Self::new(400, "rest_invalid_param", format!("Invalid parameter(s): {names}"))
            .with("params", Value::Object(texts))
            .with("details", Value::Object(details))
    }

    /// `rest_invalid_param` for one parameter.
    pub(super) fn invalid(name: &'static str, code: &str, text: impl Into<String>) -> Self {
        Self::invalid_params(&[(name, code.to_owned(), text.into())])
    }

    pub(super) fn missing(name: &str) -> Self {
        Self::new(400, "rest_missing_callback_param", format!("Missing parameter(s): {name}"))
            .with("params", json!([name]))
    }

    pub(super) fn no_route() -> Self {
        Self::new(404, "rest_no_route", "No route was found matching the URL and request method.")
    }

    pub(super) fn body(&self, cart: Option<Value>) -> Value {
        let data = self.data.as_ref().map(|data| {
            let mut data = data.clone();
            data.insert("status".to_owned(), json!(self.status));
            if let Some(cart) = cart {
                data.insert("cart".to_owned(), cart);
            }
            data
        });
        let mut body = json!({"code": self.code, "message": self.message, "data": data});
        // What `WordPress` itself says when it breaks down carries the list even when it is empty.
        let broken = matches!(self.code, "internal_server_error" | "wp_die");
        if (broken || !self.additional.is_empty())
            && let Some(members) = body.as_object_mut()
        {
            let more = self
                .additional
                .iter()
                .map(|notice| json!({"code": notice.code, "message": notice.message, "data": null}));
            members.insert("additional_errors".to_owned(), more.collect());
        }
        body
    }
}

/// What a call came to.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) headers: Vec<(String, String)>,
    /// The connection ends here, without an answer.
    pub(super) lost: bool,
}

impl Reply {
    pub(super) const fn new(status: u16, body: Value) -> Self {
        Self { status, body, headers: Vec::new(), lost: false }
    }

    pub(super) fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Keeps the top-level members that `_fields` names; members of a list's items can't be named.
pub(super) fn trim(body: Value, fields: Option<&str>) -> Value {
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return body };
    match body {
        Value::Array(items) => items.into_iter().map(|item| trim(item, Some(fields))).collect(),
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, value) in members {
                let whole = fields.split(',').any(|field| field.trim() == name);
                let below = fields
                    .split(',')
                    .any(|field| field.trim().split_once('.').is_some_and(|(parent, _)| parent == name));
                if whole {
                    kept.insert(name, value);
                } else if below {
                    let value = if value.is_array() { json!([]) } else { value };
                    kept.insert(name, value);
                }
            }
            Value::Object(kept)
        }
        other => other,
    }
}

/// An answer of bytes.
pub(super) fn respond(
    status: u16,
    kind: &str,
    body: impl Into<Body>,
    headers: &[(String, String)],
) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let out = response.headers_mut();
    if let Ok(kind) = HeaderValue::from_str(kind) {
        out.insert("content-type", kind);
    }
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            out.insert(name, value);
        }
    }
    response
}

pub(super) const JSON: &str = "application/json; charset=UTF-8";

/// An answer that never comes: the connection is closed before the first byte.
pub(super) fn hang_up() -> Response {
    let broken =
        futures::stream::once(async { Err::<Vec<u8>, _>(std::io::Error::other("the shop hung up")) });
    Response::new(Body::from_stream(broken))
}
