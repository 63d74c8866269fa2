//! From the shop's cart to ours: money rescaled, texts made plain, ids made text.

use serde_json::Value;
use url::Url;

use super::{text, wire};
use crate::{
    checkout::{
        cart::{
            CartCoupon, CartHandle, CartLine, CartTotals, CartView, Fee, Limits, Minor, Package, Rate,
            Refusal,
        },
        ids::ProductId,
        store::Error,
    },
    money::{Currency, Money},
};

/// What translating needs to know of the shop.
#[derive(Debug, Clone)]
pub(super) struct Shop {
    pub(super) base_url: Url,
    pub(super) prices_with_tax: bool,
}

impl Shop {
    /// An address of a page or a picture; a shop may name it relative to itself.
    pub(super) fn address(&self, written: &str) -> Option<String> {
        let url = self.base_url.join(Some(written).filter(|text| !text.is_empty())?).ok()?;
        matches!(url.scheme(), "http" | "https").then(|| url.into())
    }
}

/// Reads amounts of one cart: all in its currency, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    currency: Currency,
    wrote: bool,
}

impl Reader {
    /// # Errors
    /// [`Error::Unintelligible`] when the currency is not one of ISO 4217.
    pub(super) fn new(unit: &wire::Unit, wrote: bool) -> Result<Self, Error> {
        let currency = Currency::parse(&unit.currency_code).map_err(|error| unclear(&error, wrote))?;
        Ok(Self { currency, wrote })
    }

    pub(super) const fn currency(self) -> Currency {
        self.currency
    }

    /// An amount in ISO 4217 minor units.
    ///
    /// # Errors
    /// [`Error::Unintelligible`] for another currency, for what is no integer, and for lost digits.
    pub(super) fn amount(self, text: &str, unit: &wire::Unit) -> Result<Minor, Error> {
        if !unit.currency_code.eq_ignore_ascii_case(self.currency.code()) {
            return Err(Error::Unintelligible {
                what: "two currencies in one cart".to_owned(),
                wrote: self.wrote,
            });
        }
        Money::from_shown(text, unit.currency_minor_unit, self.currency)
            .map(Money::minor)
            .map_err(|error| unclear(&error, self.wrote))
    }
}

fn unclear(error: &crate::money::Error, wrote: bool) -> Error {
    use crate::money::Error as Money;
    let what = match error {
        Money::UnknownCurrency(_) => "the currency is not one of ISO 4217",
        Money::Overflow => "an amount is out of range",
        Money::CurrencyMismatch(..) => "two currencies in one cart",
        Money::NotAnInteger(_) => "an amount is not an integer",
        Money::LosesDigits { .. } => {
            "an amount has more decimals than its currency: the shop shows too many decimals"
        }
    };
    Error::Unintelligible { what: what.to_owned(), wrote }
}

/// The cart as the domain sees it.
///
/// # Errors
/// [`Error::Unintelligible`], with `wrote` as given.
pub(super) fn cart_view(
    shop: &Shop,
    handle: CartHandle,
    cart: wire::Cart,
    refusals: Vec<Refusal>,
    wrote: bool,
) -> Result<CartView, Error> {
    let money = Reader::new(&cart.totals.unit, wrote)?;
    let totals = totals(money, &cart.totals)?;
    let lines = cart.items.into_iter().map(|item| line(shop, money, item)).collect::<Result<_, _>>()?;
    let coupons = cart.coupons.iter().map(|c| coupon(money, c)).collect::<Result<_, _>>()?;
    let fees = cart.fees.iter().map(|f| fee(money, f)).collect::<Result<_, _>>()?;
    // A cart without parcels can bring an empty package along.
    let packages = if cart.needs_shipping { cart.shipping_rates } else { Vec::new() };
    Ok(CartView {
        handle,
        currency: money.currency(),
        lines,
        coupons,
        fees,
        totals,
        packages: packages.into_iter().map(|p| package(money, p)).collect::<Result<_, _>>()?,
        needs_shipping: cart.needs_shipping,
        needs_payment: cart.needs_payment,
        payment_methods: cart.payment_methods,
        warnings: cart.errors.into_iter().map(|error| error.code).collect(),
        refusals,
    })
}

fn totals(money: Reader, totals: &wire::Totals) -> Result<CartTotals, Error> {
    let amount = |text: &str| money.amount(text, &totals.unit);
    Ok(CartTotals {
        shipping: totals.total_shipping.as_deref().map(amount).transpose()?,
        shipping_tax: totals.total_shipping_tax.as_deref().map(amount).transpose()?.unwrap_or(0),
        tax: amount(&totals.total_tax)?,
        total: amount(&totals.total_price)?,
    })
}

fn line(shop: &Shop, money: Reader, item: wire::Item) -> Result<CartLine, Error> {
    let amount = |text: &str| money.amount(text, &item.totals.unit);
    let values = text::in_order(item.variation.as_array().map(Vec::as_slice).unwrap_or_default());
    Ok(CartLine {
        title: text::title(&item.name, &values),
        sku: item.sku.map(|sku| text::decoded(&sku).into_owned()).filter(|sku| !sku.is_empty()),
        image_url: image(shop, &item.images),
        quantity: item.quantity,
        limits: Limits {
            minimum: item.quantity_limits.minimum,
            maximum: item.quantity_limits.maximum,
            step: item.quantity_limits.multiple_of,
        },
        left: wire::as_whole(&item.low_stock_remaining),
        unit_price: money.amount(&item.prices.price, &item.prices.unit)?,
        unit_price_with_tax: shop.prices_with_tax,
        subtotal: amount(&item.totals.line_subtotal)?,
        subtotal_tax: amount(&item.totals.line_subtotal_tax)?,
        total: amount(&item.totals.line_total)?,
        total_tax: amount(&item.totals.line_total_tax)?,
        product: ProductId::new(item.id),
        key: item.key,
    })
}

/// The first image.
fn image(shop: &Shop, images: &Value) -> Option<String> {
    shop.address(images.get(0)?.get("src")?.as_str()?)
}

fn coupon(money: Reader, coupon: &wire::Coupon) -> Result<CartCoupon, Error> {
    let amount = |text: &str| money.amount(text, &coupon.totals.unit);
    Ok(CartCoupon {
        code: text::decoded(&coupon.code).into_owned(),
        discount: amount(&coupon.totals.total_discount)?,
        discount_tax: amount(&coupon.totals.total_discount_tax)?,
        per_item: coupon.discount_type == "fixed_product",
    })
}

fn fee(money: Reader, fee: &wire::Fee) -> Result<Fee, Error> {
    Ok(Fee {
        name: text::plain(&fee.name),
        amount: money.amount(&fee.totals.total, &fee.totals.unit)?,
        tax: money.amount(&fee.totals.total_tax, &fee.totals.unit)?,
    })
}

fn package(money: Reader, package: wire::Package) -> Result<Package, Error> {
    Ok(Package {
        id: package.id,
        name: text::plain(&package.name),
        line_keys: package.items.into_iter().map(|item| item.key).collect(),
        rates: package.shipping_rates.into_iter().map(|r| rate(money, r)).collect::<Result<_, _>>()?,
    })
}

fn rate(money: Reader, rate: wire::Rate) -> Result<Rate, Error> {
    Ok(Rate {
        title: text::plain(&rate.name),
        description: text::plain(&rate.description),
        price: money.amount(&rate.price, &rate.unit)?,
        tax: money.amount(&rate.taxes, &rate.unit)?,
        pickup: matches!(rate.method_id.as_str(), "local_pickup" | "pickup_location"),
        selected: rate.selected,
        id: rate.id,
    })
}

/// An amount that `wc/v3` writes in major units (`"50.00"`), by moving the point: no floats.
///
/// # Errors
/// [`Error::Unintelligible`] for what is no decimal number (`"-"`), and for lost digits.
pub(super) fn major(text: &str, currency: Currency) -> Result<Minor, Error> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let decimals = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unclear(&crate::money::Error::NotAnInteger(String::new()), false));
    }
    Money::from_shown(&format!("{whole}{fraction}"), decimals, currency)
        .map(Money::minor)
        .map_err(|error| unclear(&error, false))
}

/// What the shop knows as the buyer's e-mail address.
pub(super) fn billing_email(cart: &wire::Cart) -> Option<String> {
    let email = cart.billing_address.get("email")?.as_str()?;
    Some(text::decoded(email).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(code: &str, decimals: u32) -> wire::Unit {
        wire::Unit { currency_code: code.to_owned(), currency_minor_unit: decimals }
    }

    /// Requirements: U-079, A-013.
    #[test]
    fn amounts_follow_iso_and_never_lose_digits() {
        let euro = Reader::new(&unit("EUR", 2), true).unwrap();
        assert_eq!(euro.amount("1250", &unit("EUR", 2)).unwrap(), 1250);
        assert_eq!(euro.amount("10", &unit("EUR", 0)).unwrap(), 1000);
        assert_eq!(euro.amount("-500", &unit("eur", 2)).unwrap(), -500);
        for (text, unit) in [("10005", unit("EUR", 3)), ("1", unit("USD", 2)), ("1.5", unit("EUR", 2))] {
            let error = euro.amount(text, &unit).unwrap_err();
            assert!(matches!(error, Error::Unintelligible { wrote: true, .. }), "{text}");
        }
        let yen = Reader::new(&unit("JPY", 2), false).unwrap();
        assert_eq!(yen.amount("120000", &unit("JPY", 2)).unwrap(), 1200);
        assert!(Reader::new(&unit("XQQ", 2), false).is_err());
    }

    #[test]
    fn decimal_texts_become_minor_units() {
        let euro = Currency::parse("EUR").unwrap();
        let dinar = Currency::parse("KWD").unwrap();
        let yen = Currency::parse("JPY").unwrap();
        assert_eq!(major("50.00", euro).unwrap(), 5000);
        assert_eq!(major("5.3", euro).unwrap(), 530);
        assert_eq!(major("-35.70", euro).unwrap(), -3570);
        assert_eq!(major("7", euro).unwrap(), 700);
        assert_eq!(major("12.345", dinar).unwrap(), 12345);
        assert_eq!(major("1200.00", yen).unwrap(), 1200);
        for bad in ["-", "", "1.2.3", "1,50", "10.005", "1.-5"] {
            assert!(major(bad, euro).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_recorded_cart_reads_as_the_shop_meant_it() {
        use crate::store::woo::recorded::Tape;

        let view = Tape::open("38a-journey-plain").view(2);
        assert_eq!(view.currency, Currency::parse("EUR").unwrap());
        assert_eq!(
            view.totals,
            CartTotals { shipping: Some(1500), shipping_tax: 285, tax: 763, total: 5233 }
        );
        assert_eq!(view.coupons[0].code, "percent10");
        assert_eq!((view.coupons[0].discount, view.coupons[0].discount_tax), (330, 53));
        let mug = &view.lines[0];
        assert_eq!((mug.product.as_str(), mug.sku.as_deref(), mug.quantity), ("19", Some("MUG-01"), 2));
        assert_eq!((mug.unit_price, mug.subtotal, mug.total, mug.total_tax), (1250, 2500, 2250, 428));
        assert_eq!(mug.limits, Limits { minimum: 1, maximum: 9999, step: 1 });
        let rates: Vec<_> =
            view.packages[0].rates.iter().map(|r| (r.id.as_str(), r.pickup, r.selected)).collect();
        assert_eq!(
            rates,
            [("flat_rate:1", false, false), ("flat_rate:2", false, true), ("local_pickup:4", true, false)]
        );
        let sum = view.lines.iter().map(|line| line.total + line.total_tax).sum::<i64>() + 1500 + 285;
        assert_eq!(sum, view.totals.total);

        let tee = &Tape::open("39e-journey-variation").view(1).lines[0];
        assert_eq!(tee.title, "T-shirt - Red, Small");
        let book = Tape::open("39c-journey-virtual").view(2);
        assert!(!book.needs_shipping && book.packages.is_empty());
        assert_eq!((book.totals.shipping, book.totals.total), (None, 1071));
    }
}
