//! `Cart-Token`: a JWT that opens one cart.
//!
//! The signature is the shop's business. We only look at the claim `user_id`: it names the cart and stays the
//! same over all tokens that the shop hands out for it, so a token with another one means another cart.

use crate::checkout::{cart::CartHandle, store::Error};

/// The header that carries the token, both ways.
pub(super) const HEADER: &str = "Cart-Token";

/// Reads the cart's identity from a token, without verifying it.
pub(super) fn identity(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let claims = claims.trim_end_matches('=');
    let bytes = data_encoding::BASE64URL_NOPAD.decode(claims.as_bytes()).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    match claims.get("user_id")? {
        serde_json::Value::String(id) if !id.is_empty() => Some(id.clone()),
        serde_json::Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Makes a handle of a token that an answer brought.
///
/// # Errors
/// [`Error::Unintelligible`] when it is not a token.
pub(super) fn handle(token: &str, wrote: bool) -> Result<CartHandle, Error> {
    let identity = identity(token)
        .ok_or_else(|| Error::Unintelligible { what: "the cart token cannot be read".to_owned(), wrote })?;
    Ok(CartHandle { token: token.to_owned(), identity })
}

/// The newest handle of the cart that was asked for.
///
/// # Errors
/// [`Error::CartGone`] when the answer is about another cart, [`Error::Unintelligible`] when it carries no
/// token that can be read: without one nobody can tell whose cart it shows.
pub(super) fn renewed(asked: &CartHandle, token: Option<&str>, wrote: bool) -> Result<CartHandle, Error> {
    let token = token.ok_or_else(|| Error::Unintelligible {
        what: "the answer carries no cart token".to_owned(),
        wrote,
    })?;
    let handle = handle(token, wrote)?;
    if handle.identity == asked.identity { Ok(handle) } else { Err(Error::CartGone) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;

    const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VyX2lkIjoidF8yYjBiMDhjMjFhOGZiMWUyNGE3ZTkwZTJlYmU2NjMiLCJleHAiOjE3OTYyMzM4ODUsImlzcyI6InN0b3JlLWFwaSIsImlhdCI6MTc5NjA2MTA4NX0.qPUtM4s_Q73_RP1QDMdeZSrahttFs8y9ZsBwriNxH5Y";

    #[test]
    fn the_claim_names_the_cart() {
        assert_eq!(identity(TOKEN).unwrap(), "t_2b0b08c21a8fb1e24a7e90e2ebe663");
        for bad in ["", "a.b", "a.b.c", "a.b.c.d", "x.e30.y"] {
            assert_eq!(identity(bad), None, "{bad}");
        }
    }

    #[test]
    fn another_cart_is_a_cart_that_is_gone() {
        let mine =
            CartHandle { token: "old".to_owned(), identity: "t_2b0b08c21a8fb1e24a7e90e2ebe663".to_owned() };
        assert_eq!(renewed(&mine, Some(TOKEN), false).unwrap().token, TOKEN);
        let other = CartHandle { identity: "t_other".to_owned(), ..mine.clone() };
        assert!(matches!(renewed(&other, Some(TOKEN), true), Err(Error::CartGone)));
        assert!(matches!(renewed(&mine, None, true), Err(Error::Unintelligible { wrote: true, .. })));
    }

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn any_text_is_a_token_or_none(
            text in prop_oneof![arbitrary::text(), "[A-Za-z0-9_=-]{0,20}(\\.[A-Za-z0-9_=-]{0,40}){0,4}"],
        ) {
            if let Some(id) = identity(&text) {
                prop_assert!(!id.is_empty());
            }
        }

        #[test]
        fn the_identity_is_the_claim_whatever_stands_beside_it(
            id in "\\PC{1,20}", claims in arbitrary::json(), padded: bool, head in "[A-Za-z0-9_-]{0,9}",
        ) {
            let claims = serde_json::json!({"exp": 1, "other": claims, "user_id": id}).to_string();
            let encoding = if padded { data_encoding::BASE64URL } else { data_encoding::BASE64URL_NOPAD };
            let token = format!("{head}.{}.c2ln", encoding.encode(claims.as_bytes()));
            prop_assert_eq!(identity(&token), Some(id));
        }
    }
}
