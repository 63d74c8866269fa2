//! What a plan asks of a cart, as inner calls of `POST /batch`, and what their answers mean.
//!
//! All inner calls run in one PHP process, one after another, and none stops the next. Their order matters:
//! lines first, added and changed before removed (a cart that is empty in between forgets the chosen rate),
//! then coupons, freed before applied (some suffer no other), then the customer, and rates last, because
//! whatever changes the set of rates forgets the choice. An e-mail-bound coupon that comes together with its
//! e-mail is therefore refused the first time, and taken when the plan is sent again.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::wire::{ApiError, Cart, Inner, WireCustomer};
use crate::checkout::{
    cart::{
        AddressField, CartHandle, CartPlan, CartView, CodeReason, Customer, ItemReason, PlannedLine,
        RateChoice, Refusal,
    },
    ids::ProductId,
    store::Error,
};

/// The most inner calls that a shop takes at once.
pub(super) const MOST: usize = 25;
/// What the last inner call and a read answer.
pub(super) const CART_FIELDS: &str = "items,items_count,coupons,fees,totals,shipping_rates,billing_address,\
                                      shipping_address,needs_payment,needs_shipping,payment_methods,errors";
/// What all other inner calls answer: almost nothing.
const NO_FIELDS: &str = "errors";

/// One inner call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// Puts a product in that is not there yet.
    Add { product: ProductId, id: u64, quantity: u32 },
    /// Sets the quantity of a line.
    Set { product: ProductId, key: String, quantity: u32 },
    /// Takes a line out.
    Remove { key: String },
    /// Takes a coupon off.
    Free { code: String },
    /// Puts a coupon on.
    Apply { code: String },
    /// Says who buys and where it goes.
    Customer(Box<Customer>),
    /// Chooses a rate.
    Select(RateChoice),
}

impl Op {
    fn path(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add-item",
            Self::Set { .. } => "update-item",
            Self::Remove { .. } => "remove-item",
            Self::Free { .. } => "remove-coupon",
            Self::Apply { .. } => "apply-coupon",
            Self::Customer(_) => "update-customer",
            Self::Select(_) => "select-shipping-rate",
        }
    }

    fn body(&self) -> Value {
        match self {
            Self::Add { id, quantity, .. } => json!({ "id": id, "quantity": quantity }),
            Self::Set { key, quantity, .. } => json!({ "key": key, "quantity": quantity }),
            Self::Remove { key } => json!({ "key": key }),
            Self::Free { code } | Self::Apply { code } => json!({ "code": code }),
            Self::Customer(customer) => {
                let WireCustomer { billing_address, shipping_address } =
                    WireCustomer::from(customer.as_ref());
                match shipping_address {
                    Some(shipping) => {
                        json!({ "billing_address": billing_address, "shipping_address": shipping })
                    }
                    None => json!({ "billing_address": billing_address }),
                }
            }
            Self::Select(choice) => {
                json!({ "package_id": package_id(&choice.package), "rate_id": choice.rate })
            }
        }
    }
}

/// A package id as the shop wrote it: a number as a number (the text `"0"` passes too, but a number for a
/// named package does nothing), anything else as text.
fn package_id(id: &str) -> Value {
    match id.parse::<i64>() {
        Ok(number) if number.to_string() == id => json!(number),
        _ => json!(id),
    }
}

/// The body of `POST /batch`.
#[derive(Debug, Serialize)]
pub(super) struct Request {
    requests: Vec<InnerRequest>,
}

#[derive(Debug, Serialize)]
struct InnerRequest {
    method: &'static str,
    path: String,
    headers: InnerHeaders,
    body: Value,
}

#[derive(Debug, Serialize)]
struct InnerHeaders {
    /// Once more, beside the outer header: a shop reads the session there and waives the nonce here.
    #[serde(rename = "Cart-Token")]
    cart_token: String,
}

/// One batch. Only the last inner call of the last batch answers the cart.
pub(super) fn request(cart: &CartHandle, ops: &[Op], answers_cart: bool) -> Request {
    let last = ops.len().saturating_sub(1);
    let inner = |(at, op): (usize, &Op)| {
        let fields = if answers_cart && at == last { CART_FIELDS } else { NO_FIELDS };
        InnerRequest {
            method: "POST",
            path: format!("/wc/store/v1/cart/{}?_fields={fields}", op.path()),
            headers: InnerHeaders { cart_token: cart.token.clone() },
            body: op.body(),
        }
    };
    Request { requests: ops.iter().enumerate().map(inner).collect() }
}

/// What is known without asking the shop, and what has to be asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) ops: Vec<Op>,
    pub(super) refusals: Vec<Refusal>,
}

/// Everything that a plan holds, for a new cart.
pub(super) fn fill(plan: &CartPlan) -> Steps {
    let mut steps = Steps::default();
    for line in &plan.lines {
        steps.add(line);
    }
    steps.apply(&plan.codes, &BTreeSet::new());
    steps.ops.extend(plan.customer.iter().cloned().map(Box::new).map(Op::Customer));
    steps.ops.extend(plan.rates.iter().cloned().map(Op::Select));
    steps
}

/// The difference between a cart and a plan. Lines, coupons and rates are compared with what the shop said;
/// the customer with what we sent, unless it was refused: the shop rewrites addresses.
pub(super) fn difference(old: &CartPlan, view: &CartView, plan: &CartPlan) -> Steps {
    let mut steps = Steps::default();
    steps.lines(view, plan);

    let wanted: BTreeSet<String> = plan.codes.iter().map(|code| folded(code)).collect();
    let asked: BTreeSet<String> = old.codes.iter().map(|code| folded(code)).collect();
    let there: BTreeSet<String> = view.coupons.iter().map(|coupon| folded(&coupon.code)).collect();
    // A coupon that nobody asked for is the shop's own doing and stays. Codes go as the caller wrote them.
    for code in &old.codes {
        let folded = folded(code);
        if there.contains(&folded) && asked.contains(&folded) && !wanted.contains(&folded) {
            steps.ops.push(Op::Free { code: code.clone() });
        }
    }
    steps.apply(&plan.codes, &there);

    let refused = view.refusals.iter().any(|refusal| matches!(refusal, Refusal::Address { .. }));
    if refused || old.customer != plan.customer {
        steps.ops.extend(plan.customer.iter().cloned().map(Box::new).map(Op::Customer));
    }

    if steps.ops.is_empty() {
        // A choice that was never sent is sent although the shop happens to show it: only then it is a choice.
        let open = plan.rates.iter().filter(|choice| !old.rates.contains(choice) || !selected(view, choice));
        steps.ops.extend(open.cloned().map(Op::Select));
    } else {
        steps.ops.extend(plan.rates.iter().cloned().map(Op::Select));
    }
    steps
}

/// The last look before an order: the customer and every package's rate once more, needed or not.
pub(super) fn again(view: &CartView, plan: &CartPlan) -> Steps {
    let mut ops: Vec<Op> = plan.customer.iter().cloned().map(Box::new).map(Op::Customer).collect();
    if view.needs_shipping {
        ops.extend(view.packages.iter().filter_map(|package| {
            let chosen = plan.rates.iter().find(|choice| choice.package == package.id);
            let current = package.rates.iter().find(|rate| rate.selected);
            let rate = chosen.map(|choice| &choice.rate).or_else(|| current.map(|rate| &rate.id))?;
            Some(Op::Select(RateChoice { package: package.id.clone(), rate: rate.clone() }))
        }));
    }
    // A code that is still not in effect keeps the reason that was given for it.
    let refusals = view.refusals.iter().filter(|refusal| match refusal {
        Refusal::Code { code, .. } => plan.codes.contains(code),
        Refusal::Item { .. } | Refusal::Address { .. } | Refusal::Rate { .. } => false,
    });
    Steps { ops, refusals: refusals.cloned().collect() }
}

fn selected(view: &CartView, choice: &RateChoice) -> bool {
    let package = view.packages.iter().find(|package| package.id == choice.package);
    package.is_some_and(|package| package.rates.iter().any(|rate| rate.selected && rate.id == choice.rate))
}

fn folded(code: &str) -> String {
    code.trim().to_lowercase()
}

impl Steps {
    fn add(&mut self, line: &PlannedLine) {
        let product = line.product.clone();
        match product.as_str().parse() {
            Ok(id) => self.ops.push(Op::Add { product, id, quantity: line.quantity }),
            Err(_) => self.refusals.push(Refusal::Item { product, reason: ItemReason::Unknown }),
        }
    }

    fn lines(&mut self, view: &CartView, plan: &CartPlan) {
        let wanted: BTreeMap<&ProductId, u32> = plan.lines.iter().map(|l| (&l.product, l.quantity)).collect();
        let mut kept: BTreeSet<&ProductId> = BTreeSet::new();
        let mut gone = Vec::new();
        for line in &view.lines {
            match wanted.get(&line.product) {
                // The first line of a product carries it; more of them are one too many.
                Some(quantity) if kept.insert(&line.product) => {
                    if line.quantity != *quantity {
                        let (product, key) = (line.product.clone(), line.key.clone());
                        self.ops.push(Op::Set { product, key, quantity: *quantity });
                    }
                }
                _ => gone.push(Op::Remove { key: line.key.clone() }),
            }
        }
        for line in plan.lines.iter().filter(|line| !kept.contains(&line.product)) {
            self.add(line);
        }
        self.ops.extend(gone);
    }

    /// Applies the codes that are not there yet. A code written twice counts once.
    fn apply(&mut self, codes: &[String], there: &BTreeSet<String>) {
        let mut seen = BTreeSet::new();
        for code in codes {
            let folded = folded(code);
            // The shop takes an empty code for one that is applied already.
            if folded.is_empty() {
                self.refusals.push(Refusal::Code { code: code.clone(), reason: CodeReason::Invalid });
            } else if !seen.insert(folded.clone()) {
                self.refusals.push(Refusal::Code { code: code.clone(), reason: CodeReason::AlreadyApplied });
            } else if !there.contains(&folded) {
                self.ops.push(Op::Apply { code: code.clone() });
            }
        }
    }
}

/// What the shop refused of one inner call; `None` when it did it, or when it does not matter.
///
/// # Errors
/// What concerns more than this call: the cart is gone, the shop fails, the address is wrong.
pub(super) fn refusal(op: &Op, inner: &Inner) -> Result<Option<Refusal>, Error> {
    let status = inner.status;
    if (200..300).contains(&status) {
        return Ok(None);
    }
    let error: Option<ApiError> = ApiError::of(&inner.body);
    let code = error.as_ref().map_or("", |error| error.code.as_str());
    match (status, code) {
        (401, _) | (403, "woocommerce_rest_invalid_nonce") => return Err(Error::CartGone),
        (404, "rest_no_route" | "woocommerce_rest_invalid_endpoint") => {
            return Err(Error::Refused { status, code: Some(code.to_owned()) });
        }
        // Not of this call's making: what the others did is in doubt with it.
        (429, _) | (_, "rate_limit_exceeded") => {
            return Err(Error::Failed { status, code: Some(code.to_owned()) });
        }
        (400..500, _) => {}
        _ => return Err(Error::Failed { status, code: error.map(|error| error.code) }),
    }
    Ok(match op {
        Op::Add { product, .. } | Op::Set { product, .. } => {
            Some(Refusal::Item { product: product.clone(), reason: item_reason(code) })
        }
        Op::Apply { code: asked } => Some(Refusal::Code { code: asked.clone(), reason: code_reason(code) }),
        Op::Customer(_) => Some(Refusal::Address { field: error.as_ref().and_then(address_field) }),
        Op::Select(choice) => Some(Refusal::Rate { rate: choice.rate.clone() }),
        // What should go is gone already.
        Op::Remove { .. } | Op::Free { .. } => None,
    })
}

fn item_reason(code: &str) -> ItemReason {
    match code {
        "woocommerce_rest_cart_invalid_product" | "woocommerce_rest_cart_invalid_parent_product" => {
            ItemReason::Unknown
        }
        "woocommerce_rest_product_out_of_stock" => ItemReason::SoldOut,
        "woocommerce_rest_product_partially_out_of_stock" => ItemReason::FewerLeft(None),
        "woocommerce_rest_missing_attributes"
        | "woocommerce_rest_variation_id_from_variation_data"
        | "woocommerce_rest_missing_variation_data"
        | "woocommerce_rest_invalid_variation_data" => ItemReason::ChooseVariant,
        "woocommerce_rest_product_invalid_quantity"
        | "invalid_quantity"
        | "readonly_quantity"
        | "woocommerce_rest_product_too_many_in_cart"
        | "rest_invalid_param" => ItemReason::Quantity,
        // Drafts, external and grouped products, no price, a plugin's own rule, a line that vanished.
        _ => ItemReason::NotForSale,
    }
}

/// The shop has one code for almost every coupon fault and says the rest in translated prose: expired, below
/// the minimum, used up and unknown cannot be told apart by code.
fn code_reason(code: &str) -> CodeReason {
    match code {
        "woocommerce_rest_coupon_reserve_failed" => CodeReason::UsageLimit,
        _ => CodeReason::Invalid,
    }
}

/// The part of an address that `data.details` names by code, in either address.
fn address_field(error: &ApiError) -> Option<AddressField> {
    let details = error.data.get("details")?.as_object()?;
    let found = details.iter().filter(|(name, _)| name.ends_with("_address"));
    let mut codes = found.filter_map(|(_, detail)| detail.get("code").and_then(Value::as_str));
    codes.find_map(|code| match code {
        "invalid_country" => Some(AddressField::Country),
        "invalid_state" => Some(AddressField::Region),
        "invalid_postcode" => Some(AddressField::PostalCode),
        "invalid_phone" => Some(AddressField::Phone),
        "invalid_email" => Some(AddressField::Email),
        _ => None,
    })
}

impl ApiError {
    fn of(body: &Value) -> Option<Self> {
        serde_json::from_value(body.clone()).ok()
    }
}

/// The cart that an inner answer holds: a trimmed one, or the whole one that comes with a conflict.
pub(super) fn cart_in(inner: &Inner) -> Option<&Value> {
    match inner.status {
        200..300 => Some(&inner.body),
        409 => inner.body.get("data")?.get("cart"),
        _ => None,
    }
}

/// Adds what the shop did not do although it said nothing: unknown rates, dropped coupons and invalid e-mails
/// all answer 200. Also fills in how many are left, where the cart tells it.
pub(super) fn silent(steps: &mut Steps, plan: &CartPlan, cart: &Cart) {
    let (ops, refusals) = (&steps.ops, &mut steps.refusals);
    for refusal in refusals.iter_mut() {
        if let Refusal::Item { product, reason } = refusal
            && let Some(line) = cart.items.iter().find(|item| item.id == product.as_str())
        {
            let (left, most) =
                (super::wire::as_whole(&line.low_stock_remaining), line.quantity_limits.maximum);
            match reason {
                ItemReason::FewerLeft(None) => *reason = ItemReason::FewerLeft(Some(most)),
                // The limit is the stock, not a rule.
                ItemReason::Quantity if left == Some(most) => *reason = ItemReason::FewerLeft(left),
                _ => {}
            }
        }
    }

    let there: BTreeSet<String> =
        cart.coupons.iter().map(|c| folded(&super::text::decoded(&c.code))).collect();
    let applied: BTreeSet<String> = ops
        .iter()
        .filter_map(|op| if let Op::Apply { code } = op { Some(folded(code)) } else { None })
        .collect();
    for code in &plan.codes {
        let told =
            refusals.iter().any(|r| matches!(r, Refusal::Code { code: c, .. } if folded(c) == folded(code)));
        if told || there.contains(&folded(code)) {
            continue;
        }
        // One that suffers no other throws the others out without a word.
        let ousted = applied.iter().any(|other| *other != folded(code) && there.contains(other));
        let reason = if ousted { CodeReason::Combination } else { CodeReason::Invalid };
        refusals.push(Refusal::Code { code: code.clone(), reason });
    }

    let sent = ops.iter().find_map(|op| if let Op::Customer(customer) = op { Some(customer) } else { None });
    let address_told = refusals.iter().any(|refusal| matches!(refusal, Refusal::Address { .. }));
    if let Some(email) = sent.and_then(|customer| customer.email.as_deref()).filter(|email| !email.is_empty())
        && !address_told
        && let Some(stored) = super::translate::billing_email(cart)
        && !stored.eq_ignore_ascii_case(email.trim())
    {
        refusals.push(Refusal::Address { field: Some(AddressField::Email) });
    }

    if cart.needs_shipping {
        for choice in &plan.rates {
            let told = refusals.iter().any(|r| matches!(r, Refusal::Rate { rate } if *rate == choice.rate));
            let package = cart.shipping_rates.iter().find(|package| package.id == choice.package);
            let taken = package.is_some_and(|package| {
                package.shipping_rates.iter().any(|rate| rate.selected && rate.id == choice.rate)
            });
            if !told && !taken {
                refusals.push(Refusal::Rate { rate: choice.rate.clone() });
            }
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
