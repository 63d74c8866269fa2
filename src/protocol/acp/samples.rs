//! A shop and sessions for the tests of this room.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    checkout::{
        cart::{CartCoupon, CartHandle, CartPlan, CartTotals, CartView},
        ids::{CallerId, LineId, ProductId, SessionId, ShopId},
        session::{
            Address, Buyer, Cart, Destination, FORMAT, Fulfillment, Line, Order, Session, ShippingOption,
            ShownLine, Status,
        },
    },
    money::Currency,
    protocol::shop::{AcpHandler, Agent, HandlerFace, Links, ShopFace},
};

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A shop with two agents, a handler that is shown and one that is hidden here.
pub(super) fn face() -> ShopFace {
    let config = json!({"merchant_id": "acct_1", "psp": "mock"}).as_object().cloned().unwrap_or_default();
    let acp = AcpHandler {
        name: "dev.tillgate.mock".into(),
        version: "2026-04-17".into(),
        spec: "https://gate.example/spec".into(),
        display_name: Some("Mock".into()),
        psp: "mock".into(),
        requires_delegate_payment: true,
        requires_pci_compliance: false,
        config_schema: "https://gate.example/config.json".into(),
        instrument_schemas: vec!["https://gate.example/instrument.json".into()],
        config,
    };
    let handler = |id: &str, acp| HandlerFace {
        id: id.into(),
        method: "agent_token".into(),
        always: false,
        ucp: None,
        acp,
    };
    ShopFace {
        id: ShopId::new("flower"),
        title: "Flowers".into(),
        public_url: "https://gate.example".into(),
        https_base: "https://gate.example".into(),
        home_url: "https://shop.example/".parse().unwrap(),
        currency: Currency::parse("EUR").unwrap(),
        prices_with_tax: true,
        links: Links {
            terms: Some("https://shop.example/terms".parse().unwrap()),
            privacy: Some("https://shop.example/privacy".parse().unwrap()),
            ..Links::default()
        },
        handlers: vec![handler("mock_payment_handler", Some(acp)), handler("hidden", None)],
        agents: vec![
            Agent { id: "demo".into(), token_digests: vec![digest("older-token"), digest("test-token")] },
            Agent { id: "other".into(), token_digests: vec![digest("other-token")] },
        ],
        locales: vec!["de-DE".into()],
        development: false,
        max_lines: 3,
        max_quantity: 9_999,
    }
}

/// An address as an agent sends it.
pub(super) fn address_json() -> Value {
    json!({
        "name": "Ada King Byron", "line_one": "12 Main Street", "city": "Springfield", "state": "CA",
        "country": "us", "postal_code": "90210"
    })
}

/// The same address in the domain.
pub(super) fn address() -> Address {
    Address {
        first_name: "Ada King".into(),
        last_name: "Byron".into(),
        line_one: "12 Main Street".into(),
        city: "Springfield".into(),
        region: "CA".into(),
        postal_code: "90210".into(),
        country: "US".into(),
        ..Address::default()
    }
}

/// A line with net amounts and a title.
pub(super) fn line(number: usize, quantity: u32, amounts: [i64; 3]) -> Line {
    let [subtotal, total, total_tax] = amounts;
    Line {
        id: LineId::new(format!("li_{number}")),
        item: format!("item_{number}"),
        product: ProductId::new(number.to_string()),
        quantity,
        parent: None,
        shown: ShownLine {
            title: "Tom & Jerry – 2 €".into(),
            subtotal,
            total,
            total_tax,
            maximum: Some(10),
            ..ShownLine::default()
        },
    }
}

/// A way to ship.
pub(super) fn option(id: &str, price: i64, tax: i64, selected: bool) -> ShippingOption {
    ShippingOption {
        id: id.into(),
        title: id.into(),
        description: String::new(),
        price,
        tax,
        pickup: false,
        selected,
        rates: Vec::new(),
    }
}

/// A session that is ready: two lines, a coupon, an address and two ways to ship.
pub(super) fn session() -> Session {
    let made: DateTime<Utc> = "2026-05-01T12:00:00.123Z".parse().unwrap();
    let echo = json!({
        "interventions": ["3ds"], "extensions": ["discount"], "locale": "de-DE", "timezone": "Europe/Berlin",
        "quote_id": "q1", "metadata": {"client_reference_id": "ref-1"}
    });
    Session {
        format: FORMAT,
        id: SessionId::new("chk_1"),
        shop: ShopId::new("flower"),
        caller: CallerId::new("acp:demo"),
        version: 1,
        status: Status::Ready,
        currency: Currency::parse("EUR").unwrap(),
        lines: vec![line(1, 2, [2_000, 1_800, 342]), line(2, 3, [1_000, 900, 171])],
        lines_made: 2,
        buyer: Some(Buyer {
            first_name: Some("Ada".into()),
            last_name: Some("Byron".into()),
            email: Some("ada@example.org".into()),
            phone: None,
            consent: BTreeMap::new(),
        }),
        fulfillment: Fulfillment {
            destinations: vec![Destination { id: "address".into(), address: address() }],
            selected_destination: Some("address".into()),
            options: vec![option("std-ship", 500, 95, true), option("exp-ship", 1_500, 285, false)],
            ..Fulfillment::default()
        },
        codes: vec!["TEN".into()],
        note: Some("Ring twice".into()),
        problems: Vec::new(),
        cart: Some(Cart {
            usable: true,
            plan: CartPlan::default(),
            view: CartView {
                handle: CartHandle { token: "t".into(), identity: "i".into() },
                currency: Currency::parse("EUR").unwrap(),
                lines: Vec::new(),
                coupons: vec![CartCoupon {
                    code: "ten".into(),
                    discount: 300,
                    discount_tax: 57,
                    per_item: false,
                }],
                fees: Vec::new(),
                totals: CartTotals { shipping: Some(500), shipping_tax: 95, tax: 608, total: 3_808 },
                packages: Vec::new(),
                needs_shipping: true,
                needs_payment: true,
                payment_methods: vec!["agent_token".into()],
                warnings: Vec::new(),
                refusals: Vec::new(),
            },
            read_at: made,
        }),
        generation: 1,
        correlation_id: "c".into(),
        attempt: None,
        closed_attempts: Vec::new(),
        held: Vec::new(),
        order: None,
        pay_url: None,
        continue_token: "secret".into(),
        echoes: BTreeMap::from([("acp".to_owned(), echo)]),
        created_at: made,
        updated_at: made,
        expires_at: made,
        of_older_epoch: false,
        first_checked_at: None,
        cases: Vec::new(),
        withdrawals: Vec::new(),
        story: Vec::new(),
        watch: None,
    }
}

/// The order of that session.
pub(super) fn order() -> Order {
    Order {
        id: "ord_1".into(),
        shop_order: "1042".into(),
        number: "1042".into(),
        key: "wc_order_secret".into(),
        permalink_url: "https://shop.example/order-received/1042".into(),
        paid: true,
        total: 3_808,
    }
}

/// An empty object.
pub(super) fn nothing() -> Value {
    Value::Object(Map::new())
}
