//! Cart-Tokens and nonces.
//!
//! A Cart-Token is a JWT (HS256) with the claims `user_id` (`t_` and 30 hex digits for a guest), `exp`,
//! `iss` and `iat`. Times are seconds since 1970. A token that is garbage, tampered with or expired is simply
//! no token.

use chrono::{DateTime, Utc};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// Half a day, after which the nonce changes.
const NONCE_TICK: i64 = 43_200;

/// A new guest identity.
pub(super) fn identity() -> String {
    let bytes = crate::clock::Ids.secret();
    format!("t_{}", HEXLOWER.encode(bytes.get(..15).unwrap_or_default()))
}

fn sign(secret: &str, text: &str) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(text.as_bytes());
    Some(mac.finalize().into_bytes().to_vec())
}

/// A token for an identity, good for `seconds`.
pub(super) fn mint(secret: &str, user_id: &str, now: DateTime<Utc>, seconds: i64) -> String {
    let header = BASE64URL_NOPAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
    let iat = now.timestamp();
    let claims = json!({"user_id": user_id, "exp": iat + seconds, "iss": "store-api", "iat": iat});
    let text = format!("{header}.{}", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()));
    let signature = sign(secret, &text).unwrap_or_default();
    format!("{text}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// The identity a token stands for, if it is good.
pub(super) fn verify(secret: &str, token: &str, now: DateTime<Utc>) -> Option<String> {
    let (text, signature) = token.rsplit_once('.')?;
    let (_, claims) = text.split_once('.')?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(text.as_bytes());
    mac.verify_slice(&BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?).ok()?;
    let claims: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(claims.as_bytes()).ok()?).ok()?;
    if claims.get("exp")?.as_i64()? < now.timestamp() {
        return None;
    }
    claims.get("user_id")?.as_str().map(str::to_owned)
}

/// The nonce of this half day, the same for every guest.
pub(super) fn nonce(secret: &str, now: DateTime<Utc>) -> String {
    nonce_of(secret, now.timestamp().div_euclid(NONCE_TICK))
}

/// Whether a nonce is of this half day or the one before.
pub(super) fn is_nonce(secret: &str, nonce: &str, now: DateTime<Utc>) -> bool {
    let tick = now.timestamp().div_euclid(NONCE_TICK);
    nonce == nonce_of(secret, tick) || nonce == nonce_of(secret, tick - 1)
}

fn nonce_of(secret: &str, tick: i64) -> String {
    let digest = sign(secret, &format!("nonce {tick}")).unwrap_or_default();
    HEXLOWER.encode(digest.get(..5).unwrap_or_default())
}
