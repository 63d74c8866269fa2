//! The instrument of a completion (`acp.md` §9, D-35, D-36). Its values pass through memory only.

use super::parse::address;
use crate::{
    checkout::command::Instrument,
    protocol::{
        ShopFace,
        acp::read::{Form, Node},
        cards::holds_card_number,
    },
};

/// Tokens are opaque and may be long.
const MAX_TOKEN: usize = 10_000;

/// Reads `payment_data`.
pub(super) fn instrument(face: &ShopFace, node: &Node<'_>) -> Result<Instrument, Form> {
    let data = node.object()?;
    if let Some(number) = data.get("purchase_order_number") {
        return Err(number.refuse("unsupported", "The shop does not sell on invoice."));
    }
    let named = data.need("handler_id")?;
    let handler = named.text()?;
    let hidden = |handler: &str| face.handlers.iter().any(|one| one.id == handler && one.acp.is_none());
    if hidden(handler) {
        return Err(unknown_handler(&named));
    }
    let instrument = data.need("instrument")?.object()?;
    if let Some(again) = instrument.get("handler_id")
        && again.text()? != handler
    {
        return Err(unknown_handler(&again));
    }
    let kind = instrument.need("type")?.filled()?;
    let credential = instrument.need("credential")?;
    let members = credential.object()?;
    members.need("type")?.filled()?;
    let token = members.need("token")?;
    if token.text_up_to(MAX_TOKEN)?.is_empty() {
        return Err(token.invalid("This must not be empty."));
    }
    for place in [&token, &credential] {
        if holds_card_number(place.value()) {
            return Err(place.invalid("Card numbers are not accepted: send a token."));
        }
    }
    let billing = data.get("billing_address").map(|node| address(&node)).transpose()?;
    Ok(Instrument {
        handler: handler.to_owned(),
        kind: kind.to_owned(),
        credential: credential.value().clone(),
        billing,
    })
}

fn unknown_handler(node: &Node<'_>) -> Form {
    node.refuse("invalid_handler", "This payment handler is not offered in this session.")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::acp::samples;

    fn refusal(data: &Value) -> (&'static str, String) {
        let form = instrument(&samples::face(), &Node::root(data)).unwrap_err();
        (form.code, form.param)
    }

    #[test]
    fn an_instrument_is_read() {
        let data = json!({
            "handler_id": "mock_payment_handler",
            "instrument": {
                "type": "card", "handler_id": "mock_payment_handler", "last4": "4242",
                "credential": {"type": "spt", "token": "spt_test_ok"}
            },
            "billing_address": samples::address_json(),
        });
        let read = instrument(&samples::face(), &Node::root(&data)).unwrap();
        assert_eq!((read.handler.as_str(), read.kind.as_str()), ("mock_payment_handler", "card"));
        assert_eq!(read.credential["token"], "spt_test_ok");
        assert_eq!(read.billing.unwrap().last_name, "Byron");
    }

    /// Requirements, D-36.
    #[test]
    fn what_cannot_be_charged_is_refused_with_its_place() {
        let with =
            |instrument: Value| json!({"handler_id": "mock_payment_handler", "instrument": instrument});
        for (data, code, param) in [
            (json!({}), "missing_required_field", "$.handler_id"),
            (json!({"purchase_order_number": "PO1"}), "unsupported", "$.purchase_order_number"),
            (json!({"handler_id": "hidden", "instrument": {}}), "invalid_handler", "$.handler_id"),
            (json!({"handler_id": "x"}), "missing_required_field", "$.instrument"),
            (with(json!({"type": "card"})), "missing_required_field", "$.instrument.credential"),
            (with(json!({"type": "card", "handler_id": "b"})), "invalid_handler", "$.instrument.handler_id"),
            (
                with(json!({"type": "card", "credential": {"type": "spt", "token": "4242424242424242"}})),
                "invalid",
                "$.instrument.credential.token",
            ),
            (
                with(
                    json!({"type": "card", "credential": {"type": "spt", "token": "t", "number": 4_242_424_242_424_242_i64}}),
                ),
                "invalid",
                "$.instrument.credential",
            ),
            (
                with(json!({"type": "card", "credential": {"type": "spt", "token": 5}})),
                "invalid",
                "$.instrument.credential.token",
            ),
        ] {
            assert_eq!(refusal(&data), (code, param.to_owned()), "{data}");
        }
    }
}
