//! A shop and a session made by hand, for the tests of this room.

use std::path::PathBuf;

use chrono::{TimeZone as _, Utc};
use serde_json::{Value, json};

use super::negotiation::{BUYER_CONSENT, CHECKOUT, DISCOUNT, FULFILLMENT, Negotiated};
use crate::{
    checkout::{
        cart::{CartCoupon, CartHandle, CartPlan, CartTotals, CartView, Package, RateChoice},
        ids::{CallerId, LineId, ProductId, SessionId, ShopId},
        outcome::{Operation, RenderContext},
        session::{
            Address, Buyer, Cart, Destination, FORMAT, Fulfillment, Line, Session, ShippingOption, ShownLine,
            Status,
        },
    },
    money::Currency,
    protocol::{
        ShopFace,
        shop::{HandlerFace, Links, UcpHandler},
    },
};

pub(crate) fn face() -> ShopFace {
    let handler = |id: &str, method: &str, name: &str, kinds: &[&str]| HandlerFace {
        id: id.into(),
        method: method.into(),
        always: false,
        ucp: Some(UcpHandler {
            name: name.into(),
            version: "2026-04-08".into(),
            spec: None,
            schema: None,
            instrument_types: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            config: json!({"environment": "test"}).as_object().unwrap().clone(),
        }),
        acp: None,
    };
    ShopFace {
        id: ShopId::new("flower"),
        title: "Flowers".into(),
        public_url: "https://shop.example/agents".into(),
        https_base: "https://pay.shop.example".into(),
        home_url: "https://shop.example/".parse().unwrap(),
        currency: Currency::parse("EUR").unwrap(),
        prices_with_tax: true,
        links: Links {
            terms: Some("https://shop.example/terms".parse().unwrap()),
            privacy: Some("https://shop.example/privacy".parse().unwrap()),
            ..Links::default()
        },
        handlers: vec![
            handler("mock_payment_handler", "agent_token", "dev.tillgate.mock", &["card"]),
            handler("cards", "stripe", "com.example.cards", &["card", "wallet"]),
        ],
        agents: Vec::new(),
        locales: Vec::new(),
        development: false,
        max_lines: 100,
        max_quantity: 9_999,
    }
}

pub(crate) fn negotiated() -> Negotiated {
    let names = [CHECKOUT, FULFILLMENT, DISCOUNT, BUYER_CONSENT];
    Negotiated {
        capabilities: names.iter().map(|name| ((*name).to_owned(), "2026-04-08".to_owned())).collect(),
        ..Negotiated::default()
    }
}

pub(crate) fn context(operation: Operation) -> RenderContext {
    RenderContext {
        protocol: "ucp".into(),
        version: "2026-04-08".into(),
        operation,
        details: serde_json::to_value(negotiated()).unwrap(),
    }
}

fn line(id: &str, item: &str, quantity: u32, subtotal: i64, discount: i64) -> Line {
    Line {
        id: LineId::new(id),
        item: item.into(),
        product: ProductId::new(item),
        quantity,
        parent: None,
        shown: ShownLine {
            title: item.to_uppercase(),
            image_url: Some(format!("https://shop.example/{item}.jpg")),
            unit_price: subtotal / i64::from(quantity),
            subtotal,
            subtotal_tax: subtotal / 5,
            total: subtotal - discount,
            total_tax: (subtotal - discount) / 5,
            ..ShownLine::default()
        },
    }
}

/// Two lines (one of them 2 units), a coupon of 10 %, shipping chosen, 20 % tax; ready.
pub(crate) fn session() -> Session {
    let currency = Currency::parse("EUR").unwrap();
    let option = |id: &str, title: &str, price: i64, selected| ShippingOption {
        id: id.into(),
        title: title.into(),
        description: "2 to 4 working days".into(),
        price,
        tax: price / 5,
        pickup: false,
        selected,
        rates: vec![RateChoice { package: "0".into(), rate: id.into() }],
    };
    let view = CartView {
        handle: CartHandle { token: "t".into(), identity: "i".into() },
        currency,
        lines: Vec::new(),
        coupons: vec![CartCoupon { code: "ten".into(), discount: 850, discount_tax: 170, per_item: false }],
        fees: Vec::new(),
        totals: CartTotals { shipping: Some(500), shipping_tax: 100, tax: 1630, total: 9780 },
        packages: vec![Package { id: "0".into(), name: String::new(), line_keys: vec![], rates: vec![] }],
        needs_shipping: true,
        needs_payment: true,
        payment_methods: vec!["agent_token".into()],
        warnings: Vec::new(),
        refusals: Vec::new(),
    };
    let at = Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap();
    Session {
        format: FORMAT,
        id: SessionId::new("chk_abc"),
        shop: ShopId::new("flower"),
        caller: CallerId::new("ucp:https://agent.example/p"),
        version: 1,
        status: Status::Ready,
        currency,
        lines: vec![line("li_1", "roses", 2, 7000, 700), line("li_2", "pot", 1, 1500, 150)],
        lines_made: 2,
        buyer: Some(Buyer {
            first_name: Some("Ada".into()),
            email: Some("ada@example.org".into()),
            consent: [("marketing".to_owned(), false)].into(),
            ..Buyer::default()
        }),
        fulfillment: Fulfillment {
            contact: crate::checkout::session::Contact::default(),
            destinations: vec![Destination {
                id: "home".into(),
                address: Address {
                    line_one: "Lindenallee 4".into(),
                    city: "Graz".into(),
                    postal_code: "8010".into(),
                    country: "AT".into(),
                    ..Address::default()
                },
            }],
            selected_destination: Some("home".into()),
            options: vec![option("std", "Parcel post", 500, true), option("exp", "Courier", 1500, false)],
            chosen_option: Some("std".into()),
        },
        codes: vec!["Ten".into(), "old".into()],
        note: None,
        problems: Vec::new(),
        cart: Some(Cart { plan: CartPlan::default(), view, read_at: at, usable: true }),
        generation: 1,
        correlation_id: "c".into(),
        attempt: None,
        closed_attempts: Vec::new(),
        held: Vec::new(),
        order: None,
        pay_url: None,
        continue_token: "secret".into(),
        echoes: std::collections::BTreeMap::new(),
        created_at: at,
        updated_at: at,
        expires_at: at,
        of_older_epoch: false,
        first_checked_at: None,
        cases: Vec::new(),
        withdrawals: Vec::new(),
        story: Vec::new(),
        watch: None,
    }
}

/// Writes a document where another checker can read it, when `UCP_SAMPLES` names a folder.
pub(crate) fn save(kind: &str, document: &Value) {
    if let Some(folder) = std::env::var_os("UCP_SAMPLES") {
        let text = serde_json::to_string_pretty(document).unwrap();
        let name = format!("{kind}-{:x}.json", crc(&text));
        std::fs::write(PathBuf::from(folder).join(name), text).unwrap();
    }
}

fn crc(text: &str) -> u64 {
    text.bytes().fold(5381, |hash: u64, byte| hash.wrapping_mul(33) ^ u64::from(byte))
}
