//! Test help: the recorded exchanges in `fixtures/store`.

use serde_json::Value;
use url::Url;

use super::{
    token,
    translate::{self, Shop},
    wire,
};
use crate::checkout::{
    cart::{CartPlan, CartView, Customer, PlannedLine, RateChoice},
    ids::ProductId,
    session::Address,
};

pub(super) struct Tape(Value);

impl Tape {
    pub(super) fn open(name: &str) -> Self {
        let path = format!("{}/fixtures/store/{name}.har", env!("CARGO_MANIFEST_DIR"));
        Self(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    fn entry(&self, at: usize) -> &Value {
        &self.0["log"]["entries"][at]
    }

    /// The body that was sent.
    pub(super) fn sent(&self, at: usize) -> Value {
        serde_json::from_str(self.entry(at)["request"]["postData"]["text"].as_str().unwrap()).unwrap()
    }

    /// Status and body that came back.
    pub(super) fn came(&self, at: usize) -> (u16, String) {
        let response = &self.entry(at)["response"];
        let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
        (status, response["content"]["text"].as_str().unwrap().to_owned())
    }

    /// [`Tape::came`], as long as there are entries.
    pub(super) fn try_came(&self, at: usize) -> Option<(u16, String)> {
        let entries = self.0["log"]["entries"].as_array().unwrap();
        (at < entries.len()).then(|| self.came(at))
    }

    /// A header that came back.
    pub(super) fn header(&self, at: usize, name: &str) -> Option<String> {
        let headers = self.entry(at)["response"]["headers"].as_array().unwrap();
        let found = headers.iter().find(|header| header["name"].as_str() == Some(name))?;
        Some(found["value"].as_str().unwrap().to_owned())
    }

    /// The entries in which an order was placed from a cart, and that were answered.
    pub(super) fn checkouts(&self) -> Vec<usize> {
        let entries = self.0["log"]["entries"].as_array().unwrap();
        let is_checkout = |entry: &Value| {
            let url = entry["request"]["url"].as_str().unwrap();
            entry["request"]["method"] == "POST"
                && url.split('?').next().unwrap().ends_with("/checkout")
                && entry["response"]["status"] != 0
        };
        entries.iter().enumerate().filter(|(_, entry)| is_checkout(entry)).map(|(at, _)| at).collect()
    }

    /// The cart in the last inner answer of a batch.
    pub(super) fn wire_cart(&self, at: usize) -> wire::Cart {
        let answer: wire::BatchAnswer = serde_json::from_str(&self.came(at).1).unwrap();
        serde_json::from_value(answer.responses.last().unwrap().body.clone()).unwrap()
    }

    /// That cart, translated.
    pub(super) fn view(&self, at: usize) -> CartView {
        let answer: wire::BatchAnswer = serde_json::from_str(&self.came(at).1).unwrap();
        let handle = token::handle(answer.responses.last().unwrap().token().unwrap(), true).unwrap();
        translate::cart_view(&shop(), handle, self.wire_cart(at), Vec::new(), true).unwrap()
    }
}

pub(super) fn shop() -> Shop {
    Shop { base_url: Url::parse("https://shop.example.com").unwrap(), prices_with_tax: false }
}

pub(super) fn line(product: &str, quantity: u32) -> PlannedLine {
    PlannedLine { product: ProductId::new(product), quantity }
}

pub(super) fn rate(package: &str, rate: &str) -> RateChoice {
    RateChoice { package: package.to_owned(), rate: rate.to_owned() }
}

pub(super) fn plan(lines: &[(&str, u32)]) -> CartPlan {
    let lines = lines.iter().map(|(product, quantity)| line(product, *quantity)).collect();
    CartPlan { lines, ..CartPlan::default() }
}

pub(super) fn anna(shipped: bool) -> Customer {
    let address = Address {
        first_name: "Anna".to_owned(),
        last_name: "Muster".to_owned(),
        line_one: "Musterweg 5".to_owned(),
        city: "Berlin".to_owned(),
        region: "DE-BE".to_owned(),
        postal_code: "10115".to_owned(),
        country: "DE".to_owned(),
        phone: "+49301234567".to_owned(),
        ..Address::default()
    };
    Customer {
        shipping: shipped.then(|| address.clone()),
        billing: address,
        email: Some("anna@example.com".to_owned()),
    }
}

pub(super) fn sam() -> Customer {
    let address = Address {
        first_name: "Sam".to_owned(),
        last_name: "Sample".to_owned(),
        line_one: "1 Main St".to_owned(),
        line_two: "Apt 2".to_owned(),
        city: "Beverly Hills".to_owned(),
        region: "CA".to_owned(),
        postal_code: "90210".to_owned(),
        country: "US".to_owned(),
        phone: "3105550100".to_owned(),
        ..Address::default()
    };
    Customer { shipping: Some(address.clone()), billing: address, email: Some("sam@example.com".to_owned()) }
}
