//! What the two demo shops sell, to whom, and how they ship.
//!
//! [`Seed::Flower`] is a flower shop in US dollars without tax that ships everywhere; its SKUs are the ids
//! agents use. [`Seed::General`] is a German shop in euro with every product type, taxes, zones, coupons and
//! payment methods.

use chrono::{DateTime, TimeDelta, Utc};

use super::model::{
    Address, Attribute, Coupon, DiscountType, Kind, Parcels, Product, Settings, TaxClass, Term,
};

/// A long text with markup, as an editor makes it.
const LONG_DESCRIPTION: &str = include_str!("long-description.html");

/// Which shop to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// Flowers and pots, USD, no tax, ships everywhere.
    Flower,
    /// A bit of everything, EUR, German and Polish tax, ships to DE, PL and US.
    General,
}

/// A shipping method of a zone. Prices are hundredths of the major unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method {
    pub(super) rate_id: &'static str,
    pub(super) title: &'static str,
    pub(super) free_title: &'static str,
    pub(super) price: i64,
    pub(super) rule: Rule,
}

/// When a shipping method is offered, or costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Always,
    /// Only from this much (after discounts) or with a coupon for free shipping.
    FreeFrom(i64),
    /// Free from this subtotal, or when a product with this SKU is in the cart.
    FreeOrWith(i64, &'static str),
}

/// A tax rate of a country.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaxRate {
    pub(super) id: u64,
    pub(super) name: &'static str,
    pub(super) percent: i64,
}

const fn method(rate_id: &'static str, title: &'static str, price: i64) -> Method {
    Method { rate_id, title, free_title: title, price, rule: Rule::Always }
}

const STANDARD: Method = Method {
    rate_id: "std-ship",
    title: "Standard Shipping",
    free_title: "Standard Shipping (Free)",
    price: 500,
    rule: Rule::FreeOrWith(10_000, "bouquet_roses"),
};
const FLOWER_US: &[Method] = &[STANDARD, method("exp-ship-us", "Express Shipping (US)", 1500)];
const FLOWER_WORLD: &[Method] = &[STANDARD, method("exp-ship-intl", "International Express", 2500)];
const GENERAL_DE: &[Method] = &[
    method("flat_rate:1", "Standard", 500),
    method("flat_rate:2", "Express", 1500),
    Method { rule: Rule::FreeFrom(10_000), ..method("free_shipping:3", "Free shipping", 0) },
    method("local_pickup:4", "Local pickup", 0),
];
const GENERAL_US: &[Method] = &[method("flat_rate:5", "International", 2000)];

impl Seed {
    /// The shop's file in a folder that holds both.
    pub(super) const fn file_name(self) -> &'static str {
        match self {
            Self::Flower => "shop-flower.sqlite3",
            Self::General => "shop-general.sqlite3",
        }
    }

    /// The shop's own country and state: where an empty address lies.
    pub(super) fn base_address(self) -> Address {
        let (country, state) = match self {
            Self::Flower => ("US", "CA"),
            Self::General => ("DE", "DE-BE"),
        };
        Address { country: country.to_owned(), state: state.to_owned(), ..Address::default() }
    }

    /// The shipping methods of the zone a country lies in.
    pub(super) fn methods(self, country: &str) -> &'static [Method] {
        match (self, country) {
            (Self::Flower, "US") => FLOWER_US,
            (Self::Flower, _) => FLOWER_WORLD,
            (Self::General, "DE") => GENERAL_DE,
            (Self::General, "US") => GENERAL_US,
            (Self::General, _) => &[],
        }
    }

    /// The tax of a class in a country.
    pub(super) fn tax(self, country: &str, class: TaxClass) -> Option<TaxRate> {
        let (id, name, percent) = match (self, country, class) {
            (Self::General, "DE", TaxClass::Standard) => (1, "MwSt", 19),
            (Self::General, "DE", TaxClass::Reduced) => (2, "MwSt erm.", 7),
            (Self::General, "PL", TaxClass::Standard) => (3, "VAT", 23),
            (Self::General, "PL", TaxClass::Reduced) => (4, "VAT", 8),
            _ => return None,
        };
        Some(TaxRate { id, name, percent })
    }

    /// Countries the shop sells to; `None` for all.
    pub(super) const fn sells_to(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Flower => None,
            Self::General => Some(&["DE", "PL", "US", "AT", "GB"]),
        }
    }

    /// Countries the shop ships to; `None` for all.
    pub(super) const fn ships_to(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Flower => None,
            Self::General => Some(&["DE", "PL", "US"]),
        }
    }
}

/// What a shop opens with.
pub(super) struct Stock {
    pub(super) products: Vec<Product>,
    pub(super) coupons: Vec<Coupon>,
    pub(super) settings: Settings,
}

/// The shop as it is on its first day.
pub(super) fn stock(seed: Seed, now: DateTime<Utc>) -> Stock {
    let (mut products, coupons, currency) = match seed {
        Seed::Flower => (flower(), flower_coupons(), "USD"),
        Seed::General => (general(), general_coupons(), "EUR"),
    };
    let opened = now - TimeDelta::days(30);
    for product in &mut products {
        product.modified = opened;
        product.created = opened;
    }
    let settings = Settings {
        currency: currency.to_owned(),
        decimals: 2,
        guest_checkout: true,
        maintenance: false,
        plugin_off: false,
        session_seconds: 172_800,
        hold_minutes: 60,
        rate_limit: None,
        pickup_location: None,
        entered_with_tax: false,
        shown_with_tax: false,
        extra_fields: false,
        parcels: Parcels::One,
        no_stock_amount: 0,
        utc_offset_hours: 0,
        clock_offset_seconds: 0,
        secret: String::new(),
        next_order: 1000,
        next_item: 0,
        next_meta: 1,
        sequential: seed == Seed::Flower,
    };
    Stock { products, coupons, settings }
}

/// A simple product; `price` in micros.
fn simple(id: u64, sku: &str, name: &str, slug: &str, price: i64) -> Product {
    Product {
        id,
        sku: sku.to_owned(),
        name: name.to_owned(),
        slug: slug.to_owned(),
        regular: Some(price),
        image: "demo-product.png".to_owned(),
        ..Product::default()
    }
}

fn stocked(stock: i64, product: Product) -> Product {
    Product { manage_stock: true, stock, ..product }
}

fn term(id: u64, name: &str, slug: &str) -> Term {
    Term { id, name: name.to_owned(), slug: slug.to_owned() }
}

fn variation(parent: &Product, product: Product, options: &[(&str, &str)]) -> Product {
    Product {
        parent: parent.id,
        name: parent.name.clone(),
        kind: Kind::Variation,
        image: parent.image.clone(),
        options: options
            .iter()
            .map(|(taxonomy, slug)| ((*taxonomy).to_owned(), (*slug).to_owned()))
            .collect(),
        ..product
    }
}

fn attribute(id: u64, name: &str, taxonomy: &str, terms: Vec<Term>) -> Attribute {
    Attribute { id, name: name.to_owned(), taxonomy: taxonomy.to_owned(), terms }
}

fn flower() -> Vec<Product> {
    let picture = |name: &str, product: Product| Product { image: name.to_owned(), ..product };
    let mixed = picture(
        "mixed.jpg",
        Product {
            kind: Kind::Variable,
            attributes: vec![attribute(
                1,
                "Size",
                "pa_size",
                vec![term(21, "Large", "large"), term(22, "Medium", "medium"), term(23, "Small", "small")],
            )],
            regular: None,
            ..simple(107, "bouquet_mixed", "Mixed Seasonal Bouquet", "mixed-seasonal-bouquet", 0)
        },
    );
    let size = |id: u64, sku: &str, size: &str, price: i64, stock: i64| {
        let slug = format!("mixed-seasonal-bouquet-{size}");
        variation(&mixed, stocked(stock, simple(id, sku, "", &slug, price)), &[("pa_size", size)])
    };
    let variants = [
        size(108, "bouquet_mixed_small", "small", 20_000_000, 300),
        size(109, "bouquet_mixed_medium", "medium", 28_000_000, 300),
        size(110, "bouquet_mixed_large", "large", 36_000_000, 300),
    ];
    let mut products = vec![
        picture(
            "roses.jpg",
            stocked(
                1000,
                simple(101, "bouquet_roses", "Bouquet of Red Roses", "bouquet-of-red-roses", 35_000_000),
            ),
        ),
        picture(
            "pot.jpg",
            stocked(2000, simple(102, "pot_ceramic", "Ceramic Pot", "ceramic-pot", 15_000_000)),
        ),
        picture(
            "sunflowers.jpg",
            stocked(
                500,
                simple(103, "bouquet_sunflowers", "Sunflower Bundle", "sunflower-bundle", 25_000_000),
            ),
        ),
        picture(
            "tulips.jpg",
            stocked(1500, simple(104, "bouquet_tulips", "Spring Tulips", "spring-tulips", 30_000_000)),
        ),
        picture(
            "orchid.jpg",
            stocked(800, simple(105, "orchid_white", "White Orchid", "white-orchid", 45_000_000)),
        ),
        picture("gardenias.jpg", stocked(0, simple(106, "gardenias", "Gardenias", "gardenias", 20_000_000))),
        mixed,
    ];
    products.extend(variants);
    for (id, sku, name, slug, price) in [
        (111, "bouquet_peonies", "Bouquet of Pink Peonies", "bouquet-of-pink-peonies", 42_000_000),
        (112, "bouquet_lilies", "Bouquet of White Lilies", "bouquet-of-white-lilies", 38_000_000),
        (113, "bouquet_daisies", "Bouquet of Daisies", "bouquet-of-daisies", 18_000_000),
        (114, "bouquet_hydrangeas", "Bouquet of Blue Hydrangeas", "bouquet-of-blue-hydrangeas", 44_000_000),
        (115, "bouquet_wildflowers", "Wildflower Bouquet", "wildflower-bouquet", 22_000_000),
        (116, "bouquet_carnations", "Bouquet of Carnations", "bouquet-of-carnations", 19_000_000),
        (117, "bouquet_dried", "Dried Lavender Bouquet", "dried-lavender-bouquet", 24_000_000),
        (118, "bouquet_bridal", "Bridal Bouquet", "bridal-bouquet", 85_000_000),
    ] {
        products.push(stocked(400, simple(id, sku, name, slug, price)));
    }
    products
}

fn coupon(id: u64, code: &str, kind: DiscountType, amount: i64) -> Coupon {
    Coupon {
        id,
        code: code.to_owned(),
        kind,
        amount,
        free_shipping: false,
        individual_use: false,
        expired: false,
        minimum: None,
        uses_left: None,
        item_limit: None,
        products: Vec::new(),
    }
}

fn flower_coupons() -> Vec<Coupon> {
    vec![
        coupon(201, "10off", DiscountType::Percent, 10),
        coupon(202, "welcome20", DiscountType::Percent, 20),
        coupon(203, "fixed500", DiscountType::FixedCart, 500),
        Coupon {
            item_limit: Some(1),
            products: vec![102],
            ..coupon(204, "pot200", DiscountType::FixedProduct, 200)
        },
    ]
}

fn general_coupons() -> Vec<Coupon> {
    vec![
        coupon(10, "percent10", DiscountType::Percent, 10),
        coupon(11, "fixed5", DiscountType::FixedCart, 500),
        Coupon { free_shipping: true, ..coupon(12, "freeship", DiscountType::FixedCart, 0) },
        Coupon { expired: true, ..coupon(13, "expired", DiscountType::Percent, 50) },
        Coupon { minimum: Some(5000), ..coupon(14, "min50", DiscountType::FixedCart, 1000) },
        Coupon { uses_left: Some(1), ..coupon(15, "once", DiscountType::Percent, 20) },
        Coupon { individual_use: true, ..coupon(16, "solo", DiscountType::Percent, 30) },
        Coupon { products: vec![19], ..coupon(17, "mugonly", DiscountType::FixedProduct, 200) },
    ]
}

/// The tee's two attributes.
fn tee_attributes() -> Vec<Attribute> {
    vec![
        attribute(1, "Size", "pa_size", vec![term(21, "Large", "large"), term(20, "Small", "small")]),
        attribute(2, "Colour", "pa_colour", vec![term(23, "Blue", "blue"), term(22, "Red", "red")]),
    ]
}

fn tees() -> Vec<Product> {
    let tee = Product {
        kind: Kind::Variable,
        attributes: tee_attributes(),
        regular: None,
        categories: vec![term(17, "Clothing", "clothing")],
        ..simple(26, "TEE", "T-shirt", "t-shirt", 0)
    };
    let one = |id, sku, slug, price, size, colour| {
        variation(&tee, simple(id, sku, "", slug, price), &[("pa_size", size), ("pa_colour", colour)])
    };
    let variations = [
        stocked(10, one(27, "TEE-S-RED", "t-shirt-small-red", 20_000_000, "small", "red")),
        stocked(0, one(28, "TEE-S-BLUE", "t-shirt-small-blue", 20_000_000, "small", "blue")),
        stocked(
            3,
            Product {
                sale: Some(18_000_000),
                ..one(29, "TEE-L-RED", "t-shirt-large-red", 22_000_000, "large", "red")
            },
        ),
        one(30, "TEE-L-BLUE", "t-shirt-large-blue", 22_000_000, "large", "blue"),
    ];
    std::iter::once(tee).chain(variations).collect()
}

fn general() -> Vec<Product> {
    let mut products = vec![
        Product {
            short_description: "<p>A plain mug.</p>".to_owned(),
            description: "<p>A plain white mug.</p>".to_owned(),
            weight: 1_814_368,
            categories: vec![term(16, "Mugs", "mugs")],
            ..simple(19, "MUG-01", "Plain mug", "plain-mug", 12_500_000)
        },
        stocked(1, simple(20, "LAST-01", "Last one lamp", "last-one-lamp", 40_000_000)),
        Product {
            backorders: true,
            ..stocked(5, simple(21, "BACK-05", "Backorder chair", "backorder-chair", 99_000_000))
        },
        Product {
            out_of_stock: true,
            categories: vec![term(17, "Clothing", "clothing")],
            ..simple(22, "OOS-01", "Sold out scarf", "sold-out-scarf", 25_000_000)
        },
        Product {
            sale: Some(7_990_000),
            ..simple(23, "SALE-01", "Sale notebook", "sale-notebook", 10_000_000)
        },
        Product {
            low_stock: Some(2),
            ..stocked(5, simple(24, "STOCK-05", "Five in stock vase", "five-in-stock-vase", 30_000_000))
        },
        stocked(100_000, simple(25, "MANY-01", "Plenty pencil", "plenty-pencil", 1_990_000)),
    ];
    products.extend(tees());
    products.extend([
        Product {
            is_virtual: true,
            downloadable: true,
            categories: vec![term(18, "Downloads", "downloads")],
            ..simple(31, "EBOOK-01", "E-book (download)", "e-book-download", 9_000_000)
        },
        Product {
            sold_individually: true,
            ..simple(
                32,
                "SOLO-01",
                "Signed print (sold individually)",
                "signed-print-sold-individually",
                80_000_000,
            )
        },
        Product {
            minimum: Some(2),
            maximum: Some(6),
            multiple_of: Some(2),
            ..simple(33, "MINMAX-01", "Tiles (min 2, max 6, step 2)", "tiles-min-2-max-6-step-2", 4_000_000)
        },
        Product {
            kind: Kind::Grouped,
            regular: None,
            grouped: vec![19, 23],
            ..simple(34, "GROUP-01", "Desk set (grouped)", "desk-set-grouped", 0)
        },
        Product {
            kind: Kind::External,
            external: Some(("https://partner.example.com/p/1".to_owned(), "Buy at partner".to_owned())),
            ..simple(35, "EXT-01", "Partner product (external)", "partner-product-external", 49_000_000)
        },
        Product {
            tax_class: TaxClass::Reduced,
            categories: vec![term(19, "Food", "food")],
            ..simple(36, "FOOD-01", "Coffee beans (reduced tax)", "coffee-beans-reduced-tax", 8_000_000)
        },
        Product {
            short_description: "<p><em>Opis &amp; krótki</em></p>".to_owned(),
            description: LONG_DESCRIPTION.to_owned(),
            ..simple(
                37,
                "UNI-01",
                "Zażółć gęślą jaźń – “mug” &#038; Tee 🎁",
                "zazolc-gesla-jazn-mug-tee-%f0%9f%8e%81",
                15_000_000,
            )
        },
        simple(38, "FREE-01", "Free sticker", "free-sticker", 0),
        simple(39, "DEC-01", "Fraction bolt", "fraction-bolt", 10_005_000),
        Product { regular: None, ..simple(40, "NOPRICE-01", "No price item", "no-price-item", 0) },
        Product { draft: true, ..simple(41, "DRAFT-01", "Draft product", "", 5_000_000) },
    ]);
    products
}
