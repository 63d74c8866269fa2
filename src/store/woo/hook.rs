//! What a shop delivers on its own (webhooks): told is only what to read again, never what it is now.
//!
//! A delivery carries no time and may come late, twice, in another order, or be an old one played again. So its
//! numbers and states are not used: it names a product or an order, and that is read again.
//!
//! A shop counts answers outside 200 to 302 and switches a webhook off after seven in a row. A receiver answers 200
//! to everything that is signed, and to the greeting.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use sha2::Sha256;

use super::resolve;
use crate::checkout::ids::ProductId;

/// The header that names the topic, such as `product.updated`.
pub const TOPIC: &str = "X-WC-Webhook-Topic";
/// The header with the signature.
pub const SIGNATURE: &str = "X-WC-Webhook-Signature";

/// A delivery as it came.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    /// [`TOPIC`].
    pub topic: Option<&'a str>,
    /// [`SIGNATURE`].
    pub signature: Option<&'a str>,
    /// The body, byte by byte: the signature is over these.
    pub body: &'a [u8],
}

impl fmt::Debug for Delivery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// What a delivery is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// The greeting of a new webhook. It is not signed: anybody can send it, and nothing follows from it.
    Greeting,
    /// The stock of these may be another: a product, or a variation and its product.
    Products(Vec<ProductId>),
    /// This order may be another.
    Order(String),
    /// Signed, but the shop tells nothing: whoever made the webhook may no longer see what it is about. Worth a
    /// warning to the merchant.
    Blind,
    /// Signed, and about something else.
    Other,
}

/// Why nothing is taken from a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No signature, or one that does not fit: not from this shop, or with another secret.
    #[error("the delivery is not signed with this shop's secret")]
    Signature,
    /// Signed, but no topic or no JSON object: not what a shop sends.
    #[error("the delivery cannot be understood")]
    Unintelligible,
}

/// Reads a delivery.
///
/// # Errors
/// [`Refused`].
pub fn read(delivery: &Delivery<'_>, secret: &SecretString) -> Result<Hook, Refused> {
    let Some(signature) = delivery.signature else {
        return if is_greeting(delivery) { Ok(Hook::Greeting) } else { Err(Refused::Signature) };
    };
    verify(delivery.body, signature, secret)?;
    let topic = delivery.topic.ok_or(Refused::Unintelligible)?;
    let about = topic.split_once('.').map_or(topic, |(about, _)| about);
    let body: Value = serde_json::from_slice(delivery.body).map_err(|_| Refused::Unintelligible)?;
    let body = body.as_object().ok_or(Refused::Unintelligible)?;
    if !matches!(about, "product" | "order") {
        return Ok(Hook::Other);
    }
    let Some(id) = body.get("id").and_then(id) else {
        return if body.contains_key("code") { Ok(Hook::Blind) } else { Err(Refused::Unintelligible) };
    };
    if about == "order" {
        return Ok(Hook::Order(id.as_str().to_owned()));
    }
    let parent = body.get("parent_id").and_then(self::id);
    Ok(Hook::Products([Some(id), parent].into_iter().flatten().collect()))
}

/// Whether this is a new webhook's first delivery: a form with its number, and none of the headers.
fn is_greeting(delivery: &Delivery<'_>) -> bool {
    let number = delivery.body.strip_prefix(b"webhook_id=");
    delivery.topic.is_none() && number.is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
}

fn verify(body: &[u8], signature: &str, secret: &SecretString) -> Result<(), Refused> {
    let signature =
        data_encoding::BASE64.decode(signature.trim().as_bytes()).map_err(|_| Refused::Signature)?;
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).map_err(|_| Refused::Signature)?;
    mac.update(body);
    // Takes as long whichever byte differs.
    mac.verify_slice(&signature).map_err(|_| Refused::Signature)
}

/// An id of the shop; `0` stands for none.
fn id(value: &Value) -> Option<ProductId> {
    match value {
        Value::Number(number) => resolve::number(&number.to_string()),
        Value::String(text) => resolve::number(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(secret: &str, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(body);
        data_encoding::BASE64.encode(&mac.finalize().into_bytes())
    }

    fn came(topic: Option<&str>, signature: Option<&str>, body: &str, secret: &str) -> Result<Hook, Refused> {
        read(&Delivery { topic, signature, body: body.as_bytes() }, &secret.to_owned().into())
    }

    fn told(topic: &str, body: &str) -> Result<Hook, Refused> {
        came(Some(topic), Some(&signed("s", body.as_bytes())), body, "s")
    }

    #[test]
    fn what_a_shop_has_signed_is_believed_and_nothing_else() {
        // As a shop signed them.
        let deleted = r#"{"id":5122}"#;
        let by_shop = Some("7XetdMUxJk6ZaVB0t27utUrOAFJUze3CsnD79XVUzF8=");
        let secret = "whsec-recorded-5b1f";
        let topic = Some("order.deleted");
        assert_eq!(came(topic, by_shop, deleted, secret), Ok(Hook::Order("5122".into())));
        let blind = r#"{"code":"woocommerce_rest_cannot_view","message":"Sorry, you cannot view this resource.","data":{"status":401}}"#;
        let by_shop_too = Some("TT32dvDV0l+W+9b0atcl/yp3losG4Ay+2V9KJYbPIHw=");
        assert_eq!(came(Some("product.updated"), by_shop_too, blind, "whsec-new"), Ok(Hook::Blind));
        // Another body, secret or signature, or none.
        for (signature, body, secret) in [
            (by_shop, r#"{"id":5123}"#, secret),
            (by_shop, deleted, "whsec-new"),
            (by_shop_too, deleted, secret),
            (Some("7Xet"), deleted, secret),
            (Some("not base64"), deleted, secret),
            (Some(""), deleted, secret),
            (None, deleted, secret),
        ] {
            assert_eq!(came(topic, signature, body, secret), Err(Refused::Signature), "{signature:?} {body}");
        }
    }

    #[test]
    fn a_greeting_is_a_form_without_any_header() {
        assert_eq!(came(None, None, "webhook_id=8", "s"), Ok(Hook::Greeting));
        for (topic, body) in [
            (Some("order.updated"), "webhook_id=8"),
            (None, "webhook_id="),
            (None, "webhook_id=8&id=24"),
            (None, r#"{"id":24}"#),
            (None, ""),
        ] {
            assert_eq!(came(topic, None, body, "s"), Err(Refused::Signature), "{body}");
        }
        // Signed it is no greeting.
        let body = "webhook_id=8";
        let refused = came(None, Some(&signed("s", body.as_bytes())), body, "s");
        assert_eq!(refused, Err(Refused::Unintelligible));
    }

    #[test]
    fn products_and_orders_are_named_and_nothing_of_them_is_taken() {
        let products = |ids: &[&str]| Ok(Hook::Products(ids.iter().map(|id| ProductId::new(*id)).collect()));
        let simple = r#"{"id":24,"permalink":"https:\/\/shop.example.com\/product\/vase\/","stock_quantity":7,"parent_id":0}"#;
        assert_eq!(told("product.updated", simple), products(&["24"]));
        let variation = r#"{"id":29,"type":"variation","parent_id":26,"stock_quantity":1}"#;
        assert_eq!(told("product.updated", variation), products(&["29", "26"]));
        assert_eq!(told("product.deleted", r#"{"id":24}"#), products(&["24"]));
        // An order's parent is another order.
        assert_eq!(told("order.updated", r#"{"id":5120,"parent_id":7}"#), Ok(Hook::Order("5120".into())));
        assert_eq!(told("coupon.updated", r#"{"id":3}"#), Ok(Hook::Other));
        for body in ["{}", "[]", "", "null", r#"{"id":"24-blue"}"#, r#"{"id":2.5}"#] {
            assert_eq!(told("product.updated", body), Err(Refused::Unintelligible), "{body}");
        }
    }
}
