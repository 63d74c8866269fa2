//! What a platform profile must hold (`discovery/profile_schema.json`, `platform_profile`), and a full one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Error;

/// A platform profile, reduced to what negotiation reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The protocol version that the platform speaks.
    pub version: String,
    /// What it understands: several entries of a name are several versions.
    pub capabilities: BTreeMap<String, Vec<Capability>>,
    /// Payment instruments it restricts itself to, by handler name; a handler without an entry sets no
    /// restriction.
    pub instruments: BTreeMap<String, Vec<Value>>,
}

/// One version of a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// Its version.
    pub version: String,
    /// Its configuration (a webhook address and the like); `Null` when there is none.
    pub config: Value,
}

impl Profile {
    /// Reads and checks a document. Unknown members are ignored.
    ///
    /// # Errors
    /// [`Error::Malformed`], with the member that is wrong.
    pub fn read(document: &Value) -> Result<Self, Error> {
        let ucp = document
            .as_object()
            .and_then(|profile| profile.get("ucp"))
            .and_then(Value::as_object)
            .ok_or_else(|| wrong("`ucp` must be an object"))?;
        let version = ucp.get("version").and_then(Value::as_str).filter(|version| is_date(version));
        let version = version.ok_or_else(|| wrong("`ucp.version` must be a date"))?.to_owned();
        registry(ucp, "services")?.ok_or_else(|| wrong("`ucp.services` is missing"))?;
        let handlers =
            registry(ucp, "payment_handlers")?.ok_or_else(|| wrong("`ucp.payment_handlers` is missing"))?;
        let mut capabilities = BTreeMap::new();
        for (name, entries) in registry(ucp, "capabilities")?.unwrap_or_default() {
            let entries = entries.into_iter().map(capability).collect::<Result<Vec<_>, _>>()?;
            capabilities.insert(name.clone(), entries);
        }
        let mut instruments = BTreeMap::new();
        for (name, entries) in handlers {
            let lists: Option<Vec<&Vec<Value>>> = entries
                .iter()
                .map(|entry| entry.get("available_instruments").and_then(Value::as_array))
                .collect();
            if let Some(lists) = lists.filter(|lists| !lists.is_empty()) {
                instruments.insert(name.clone(), lists.into_iter().flatten().cloned().collect());
            }
        }
        Ok(Self { version, capabilities, instruments })
    }
}

type Registry<'a> = Vec<(&'a String, Vec<&'a Map<String, Value>>)>;

/// An object of lists of objects.
fn registry<'a>(ucp: &'a Map<String, Value>, name: &str) -> Result<Option<Registry<'a>>, Error> {
    let Some(value) = ucp.get(name) else { return Ok(None) };
    let complaint = || wrong(&format!("`ucp.{name}` must be an object of lists of objects"));
    let map = value.as_object().ok_or_else(complaint)?;
    map.iter()
        .map(|(key, list)| {
            let list = list.as_array().ok_or_else(complaint)?;
            let list = list.iter().map(|entry| entry.as_object().ok_or_else(complaint));
            Ok((key, list.collect::<Result<Vec<_>, _>>()?))
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

fn capability(entry: &Map<String, Value>) -> Result<Capability, Error> {
    let version = entry.get("version").and_then(Value::as_str).filter(|version| is_date(version));
    let version = version.ok_or_else(|| wrong("every capability needs `version`, a date"))?;
    for member in ["spec", "schema"] {
        if !entry.get(member).is_some_and(Value::is_string) {
            return Err(wrong("every capability needs `spec` and `schema`"));
        }
    }
    Ok(Capability {
        version: version.to_owned(),
        config: entry.get("config").cloned().unwrap_or(Value::Null),
    })
}

fn wrong(what: &str) -> Error {
    Error::Malformed(what.to_owned())
}

/// Whether the text is written as a date: `2026-04-08`.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// A platform profile that understands everything a shop may offer; for pins. `webhook_url` is where order
/// events go.
#[must_use]
pub fn full_profile(version: &str, webhook_url: Option<&str>) -> Value {
    let checkout = "dev.ucp.shopping.checkout";
    let cart = "dev.ucp.shopping.cart";
    let all = [
        (checkout, "checkout", "checkout", json!(null)),
        (cart, "cart", "cart", json!(null)),
        ("dev.ucp.shopping.catalog.search", "catalog/search", "catalog_search", json!(null)),
        ("dev.ucp.shopping.catalog.lookup", "catalog/lookup", "catalog_lookup", json!(null)),
        ("dev.ucp.shopping.order", "order", "order", json!(null)),
        ("dev.ucp.shopping.fulfillment", "fulfillment", "fulfillment", json!(checkout)),
        ("dev.ucp.shopping.discount", "discount", "discount", json!([checkout, cart])),
        ("dev.ucp.shopping.buyer_consent", "buyer-consent", "buyer_consent", json!(checkout)),
    ];
    let mut capabilities = Map::new();
    for (name, page, schema, extends) in all {
        let mut entry = json!({
            "version": version,
            "spec": format!("https://ucp.dev/{version}/specification/{page}"),
            "schema": format!("https://ucp.dev/{version}/schemas/shopping/{schema}.json"),
        });
        if let Some(entry) = entry.as_object_mut() {
            if !extends.is_null() {
                entry.insert("extends".into(), extends);
            }
            if let Some(url) = webhook_url.filter(|_| name == "dev.ucp.shopping.order") {
                entry.insert("config".into(), json!({ "webhook_url": url }));
            }
        }
        capabilities.insert(name.into(), json!([entry]));
    }
    json!({"ucp": {
        "version": version, "services": {}, "payment_handlers": {}, "capabilities": capabilities,
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_profile_is_a_profile() {
        let profile = Profile::read(&full_profile("2026-04-08", Some("https://a.example/hook"))).unwrap();
        assert_eq!(profile.version, "2026-04-08");
        assert_eq!(profile.capabilities.len(), 8);
        let order = &profile.capabilities["dev.ucp.shopping.order"][0];
        assert_eq!(order.config["webhook_url"], "https://a.example/hook");
    }

    #[test]
    fn required_members_are_asked_for_and_unknown_ones_ignored() {
        let good = json!({"more": 1, "ucp": {"version": "2026-04-08", "services": {}, "payment_handlers": {},
            "x": [], "capabilities": {"a.b": [{"version": "2026-04-08", "spec": "s", "schema": "s", "z": 0}]}}});
        assert!(Profile::read(&good).is_ok());
        let without = |pointer: &str, member: &str| {
            let mut bad = good.clone();
            bad.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(member);
            bad
        };
        let with = |pointer: &str, value: Value| {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            bad
        };
        for bad in [
            json!([]),
            json!({"ucp": []}),
            without("/ucp", "version"),
            without("/ucp", "services"),
            without("/ucp", "payment_handlers"),
            without("/ucp/capabilities/a.b/0", "spec"),
            without("/ucp/capabilities/a.b/0", "schema"),
            without("/ucp/capabilities/a.b/0", "version"),
            with("/ucp/version", json!("latest")),
            with("/ucp/version", json!(20_260_408)),
            with("/ucp/capabilities", json!([])),
            with("/ucp/capabilities/a.b", json!({})),
            with("/ucp/capabilities/a.b/0", json!("x")),
            with("/ucp/services", json!({"a.b": {}})),
        ] {
            assert!(matches!(Profile::read(&bad), Err(Error::Malformed(_))), "{bad}");
        }
    }

    #[test]
    fn instruments_restrict_only_when_every_entry_of_the_handler_names_them() {
        let mut document = full_profile("2026-04-08", None);
        document["ucp"]["payment_handlers"] = json!({
            "a.one": [{"id": "1", "version": "2026-04-08", "available_instruments": [{"type": "card"}]}],
            "a.two": [{"id": "2", "version": "2026-04-08"}],
        });
        let profile = Profile::read(&document).unwrap();
        assert_eq!(profile.instruments.keys().collect::<Vec<_>>(), ["a.one"]);
    }
}
