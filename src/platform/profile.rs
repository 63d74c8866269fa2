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
        let profile = document.as_object().ok_or_else(|| wrong("it must be an object"))?;
        let ucp = profile.get("ucp").and_then(Value::as_object);
        let ucp = ucp.ok_or_else(|| wrong("`ucp` must be an object"))?;
        let version = ucp.get("version").and_then(Value::as_str).filter(|version| is_date(version));
        let version = version.ok_or_else(|| wrong("`ucp.version` must be a date"))?.to_owned();
        if !ucp.get("status").is_none_or(|status| status == "success" || status == "error") {
            return Err(wrong("`ucp.status` must be `success` or `error`"));
        }
        for (_, entries) in registry(ucp, "services")?.ok_or_else(|| wrong("`ucp.services` is missing"))? {
            entries.into_iter().try_for_each(service)?;
        }
        let handlers =
            registry(ucp, "payment_handlers")?.ok_or_else(|| wrong("`ucp.payment_handlers` is missing"))?;
        let mut capabilities = BTreeMap::new();
        for (name, entries) in registry(ucp, "capabilities")?.unwrap_or_default() {
            let entries = entries.into_iter().map(capability).collect::<Result<Vec<_>, _>>()?;
            capabilities.insert(name.clone(), entries);
        }
        let mut instruments = BTreeMap::new();
        for (name, entries) in handlers {
            let lists = entries.into_iter().map(handler).collect::<Result<Option<Vec<_>>, _>>()?;
            if let Some(lists) = lists.filter(|lists| !lists.is_empty()) {
                instruments.insert(name.clone(), lists.into_iter().flatten().cloned().collect());
            }
        }
        keys(profile)?;
        Ok(Self { version, capabilities, instruments })
    }
}

type Entry = Map<String, Value>;
type Registry<'a> = Vec<(&'a String, Vec<&'a Entry>)>;

/// An object of lists of objects, under reverse-domain names.
fn registry<'a>(ucp: &'a Entry, name: &str) -> Result<Option<Registry<'a>>, Error> {
    let Some(value) = ucp.get(name) else { return Ok(None) };
    let complaint = || wrong(&format!("`ucp.{name}` must be an object of lists of objects"));
    let map = value.as_object().ok_or_else(complaint)?;
    map.iter()
        .map(|(key, list)| {
            if !is_name(key) {
                return Err(wrong(&format!("the names in `ucp.{name}` must be reverse-domain names")));
            }
            let list = list.as_array().ok_or_else(complaint)?;
            let list = list.iter().map(|entry| entry.as_object().ok_or_else(complaint));
            Ok((key, list.collect::<Result<Vec<_>, _>>()?))
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

/// What every entry holds, and what a platform's has to say beyond it: the texts in `needs`.
fn entity(entry: &Entry, what: &str, needs: &[&str]) -> Result<String, Error> {
    let version = entry.get("version").and_then(Value::as_str).filter(|version| is_date(version));
    let version = version.ok_or_else(|| wrong(&format!("every {what} needs `version`, a date")))?;
    if let Some(missing) = needs.iter().find(|member| !entry.contains_key(**member)) {
        return Err(wrong(&format!("every {what} needs `{missing}`")));
    }
    let texts = ["spec", "schema", "id", "endpoint"];
    if let Some(bad) = texts.iter().find(|member| !entry.get(**member).is_none_or(Value::is_string)) {
        return Err(wrong(&format!("`{bad}` of a {what} must be a text")));
    }
    if !entry.get("config").is_none_or(Value::is_object) {
        return Err(wrong(&format!("`config` of a {what} must be an object")));
    }
    Ok(version.to_owned())
}

fn service(entry: &Entry) -> Result<(), Error> {
    let needs: &[&str] = match entry.get("transport").and_then(Value::as_str) {
        Some("rest" | "mcp" | "embedded") => &["spec", "schema"],
        Some("a2a") => &["spec"],
        Some(_) | None => return Err(wrong("every service needs `transport`: rest, mcp, a2a or embedded")),
    };
    entity(entry, "service", needs).map(|_| ())
}

fn capability(entry: &Entry) -> Result<Capability, Error> {
    let version = entity(entry, "capability", &["spec", "schema"])?;
    let named = |parent: &Value| parent.as_str().is_some_and(is_name);
    let extends = match entry.get("extends") {
        None => true,
        Some(Value::Array(parents)) => !parents.is_empty() && parents.iter().all(named),
        Some(parent) => named(parent),
    };
    if !extends {
        return Err(wrong("`extends` must be a reverse-domain name or a list of them"));
    }
    Ok(Capability { version, config: entry.get("config").cloned().unwrap_or(Value::Null) })
}

/// The instruments that a handler's entry restricts itself to.
fn handler(entry: &Entry) -> Result<Option<&Vec<Value>>, Error> {
    entity(entry, "payment handler", &["id", "spec", "schema"])?;
    let Some(list) = entry.get("available_instruments") else { return Ok(None) };
    let list = list.as_array().filter(|list| {
        let typed = |one: &Value| {
            one.get("type").is_some_and(Value::is_string)
                && one.get("constraints").is_none_or(Value::is_object)
        };
        !list.is_empty() && list.iter().all(typed)
    });
    list.map(Some).ok_or_else(|| wrong("`available_instruments` must be a list of `{type, constraints}`"))
}

/// The keys are not used yet, but a profile with broken ones is broken.
fn keys(profile: &Entry) -> Result<(), Error> {
    let Some(keys) = profile.get("signing_keys") else { return Ok(()) };
    let usable =
        |key: &Value| ["kid", "kty"].iter().all(|member| key.get(member).is_some_and(Value::is_string));
    let usable = keys.as_array().is_some_and(|keys| keys.iter().all(usable));
    if usable { Ok(()) } else { Err(wrong("`signing_keys` must be a list of keys with `kid` and `kty`")) }
}

fn wrong(what: &str) -> Error {
    Error::Malformed(what.to_owned())
}

/// Whether the text is a reverse-domain name: `dev.ucp.shopping.checkout`.
fn is_name(text: &str) -> bool {
    let mut labels = text.split('.');
    let word = |label: &str, underscore: bool| {
        label.starts_with(|c: char| c.is_ascii_lowercase())
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || (underscore && b == b'_'))
    };
    let first = labels.next().is_some_and(|label| word(label, false));
    let mut others = labels.peekable();
    first && others.peek().is_some() && others.all(|label| word(label, true))
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
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    #[test]
    fn the_full_profile_is_a_profile() {
        let profile = Profile::read(&full_profile("2026-04-08", Some("https://a.example/hook"))).unwrap();
        assert_eq!(profile.version, "2026-04-08");
        assert_eq!(profile.capabilities.len(), 8);
        let order = &profile.capabilities["dev.ucp.shopping.order"][0];
        assert_eq!(order.config["webhook_url"], "https://a.example/hook");
    }

    /// Requirements: U-016, U-023.
    #[test]
    fn required_members_are_asked_for_and_unknown_ones_ignored() {
        let good = json!({"more": 1, "signing_keys": [{"kid": "k", "kty": "EC"}], "ucp": {
            "version": "2026-04-08", "x": [],
            "services": {"a.b": [{"version": "2026-04-08", "transport": "rest", "spec": "s", "schema": "s"}]},
            "payment_handlers": {"a.b": [{"id": "h", "version": "2026-04-08", "spec": "s", "schema": "s",
                "available_instruments": [{"type": "card", "constraints": {}}]}]},
            "capabilities": {"a.b_c": [{"version": "2026-04-08", "spec": "s", "schema": "s", "z": 0,
                "extends": ["a.b"], "config": {}}]}}});
        Profile::read(&good).unwrap();
        for pointer in [
            "/ucp",
            "/ucp/version",
            "/ucp/services",
            "/ucp/services/a.b/0/version",
            "/ucp/services/a.b/0/transport",
            "/ucp/services/a.b/0/spec",
            "/ucp/services/a.b/0/schema",
            "/ucp/payment_handlers",
            "/ucp/payment_handlers/a.b/0/id",
            "/ucp/payment_handlers/a.b/0/version",
            "/ucp/payment_handlers/a.b/0/spec",
            "/ucp/payment_handlers/a.b/0/schema",
            "/ucp/payment_handlers/a.b/0/available_instruments/0/type",
            "/ucp/capabilities/a.b_c/0/version",
            "/ucp/capabilities/a.b_c/0/spec",
            "/ucp/capabilities/a.b_c/0/schema",
            "/signing_keys/0/kid",
        ] {
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            let mut bad = good.clone();
            bad.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member).unwrap();
            assert!(matches!(Profile::read(&bad), Err(Error::Malformed(_))), "without {pointer}");
        }
        for (pointer, value) in [
            ("", json!([])),
            ("/ucp", json!([])),
            ("/ucp/version", json!("latest")),
            ("/ucp/version", json!(20_260_408)),
            ("/ucp/capabilities", json!([])),
            ("/ucp/capabilities/a.b_c", json!({})),
            ("/ucp/capabilities/a.b_c/0", json!("x")),
            ("/ucp/capabilities/a.b_c/0/extends", json!([])),
            ("/ucp/capabilities/a.b_c/0/extends", json!("Upper.case")),
            ("/ucp/capabilities/a.b_c/0/config", json!("x")),
            ("/ucp/services", json!({"a.b": {}})),
            ("/ucp/services", json!({"alone": []})),
            ("/ucp/services/a.b/0/transport", json!("pigeon")),
            ("/ucp/payment_handlers/a.b/0/available_instruments", json!([])),
            ("/ucp/payment_handlers/a.b/0/id", json!(1)),
            ("/signing_keys", json!({})),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert!(matches!(Profile::read(&bad), Err(Error::Malformed(_))), "{pointer}: {bad}");
        }
    }

    #[test]
    fn names_are_reverse_domains() {
        for (text, fits) in [
            ("dev.ucp.shopping.buyer_consent", true),
            ("a.b", true),
            ("a1.b2_c", true),
            ("a", false),
            ("a.", false),
            (".a", false),
            ("a..b", false),
            ("a_b.c", false),
            ("a.B", false),
            ("a.b-c", false),
            ("1a.b", false),
            ("", false),
        ] {
            assert_eq!(is_name(text), fits, "{text}");
        }
    }

    #[test]
    fn instruments_restrict_only_when_every_entry_of_the_handler_names_them() {
        let mut document = full_profile("2026-04-08", None);
        document["ucp"]["payment_handlers"] = json!({
            "a.one": [{"id": "1", "version": "2026-04-08", "spec": "s", "schema": "s",
                "available_instruments": [{"type": "card"}]}],
            "a.two": [{"id": "2", "version": "2026-04-08", "spec": "s", "schema": "s"}],
        });
        let profile = Profile::read(&document).unwrap();
        assert_eq!(profile.instruments.keys().collect::<Vec<_>>(), ["a.one"]);
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn any_document_is_a_profile_or_refused(
            document in prop_oneof![
                4 => arbitrary::bent(full_profile("2026-04-08", Some("https://a.example/hook"))),
                1 => arbitrary::json(),
            ],
        ) {
            match Profile::read(&document) {
                Ok(profile) => {
                    prop_assert!(is_date(&profile.version));
                    let versions = profile.capabilities.values().flatten().map(|entry| entry.version.as_str());
                    prop_assert!(versions.into_iter().all(is_date));
                }
                Err(Error::Malformed(what)) => prop_assert!(arbitrary::is_short_and_plain(&what, 120), "{}", what),
                Err(other) => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
