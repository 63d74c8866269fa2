//! What a value is, told by the name it stands under.

use crate::store::tape::thread::identity;

/// A kind of secret or of personal data; each has its own stand-ins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    FirstName,
    LastName,
    Person,
    Company,
    Street,
    City,
    Postcode,
    Phone,
    Email,
    Note,
    Ip,
    Agent,
    /// A value of `payment_data`.
    Payment,
    /// What a buyer filled into a field of the shop's own.
    Field,
    /// A value of `meta_data` that nobody can judge.
    Value,
    OrderKey,
    Cart,
    Nonce,
    Secret,
    /// What a payment method told, and may be a common word.
    Told,
}

impl Kind {
    /// Whether the buyer gives it: another buyer gives another. The rest is given out by the shop.
    pub(super) const fn is_personal(self) -> bool {
        !matches!(self, Self::OrderKey | Self::Cart | Self::Nonce | Self::Secret | Self::Told)
    }

    /// Whether it is a secret or told by its form alone: then it is looked for everywhere, in names of products too.
    pub(super) const fn is_strong(self) -> bool {
        matches!(
            self,
            Self::Email
                | Self::Ip
                | Self::Payment
                | Self::OrderKey
                | Self::Cart
                | Self::Nonce
                | Self::Secret
                | Self::Told
        )
    }

    /// Whether the value may be anything, a common word too.
    pub(super) const fn is_anything(self) -> bool {
        matches!(self, Self::Payment | Self::Field | Self::Value | Self::Told)
    }

    /// The kind that shares its stand-ins: a buyer may send what the shop gave out.
    pub(super) const fn twin(self) -> Option<Self> {
        match self {
            Self::Payment => Some(Self::Secret),
            Self::Secret => Some(Self::Payment),
            _ => None,
        }
    }

    /// The stand-in with a number. None of them is a part of another.
    pub(super) fn stand_in(self, number: usize) -> String {
        let label = match self {
            Self::Email => return format!("buyer-{number}@scrubbed.invalid"),
            Self::FirstName => "first-name",
            Self::LastName => "last-name",
            Self::Person => "person",
            Self::Company => "company",
            Self::Street => "street",
            Self::City => "city",
            Self::Postcode => "postcode",
            Self::Phone => "phone",
            Self::Note => "note",
            Self::Ip => "ip",
            Self::Agent => "browser",
            Self::Payment => "payment",
            Self::Field => "field",
            Self::Value => "value",
            Self::OrderKey => "order-key",
            Self::Cart => "cart",
            Self::Nonce => "nonce",
            Self::Secret => "secret",
            Self::Told => "told",
        };
        format!("{label}-{number}.scrubbed")
    }

    /// The form in which two values of this kind are one: shops write names in their own case, and postcodes
    /// and phone numbers with their own spaces.
    pub(super) fn canonical(self, value: &str) -> String {
        let value = value.trim();
        match self {
            Self::Cart => identity(value),
            Self::Payment | Self::OrderKey | Self::Nonce | Self::Secret | Self::Told => value.to_owned(),
            Self::Phone if value.chars().filter(char::is_ascii_digit).count() >= 3 => {
                value.chars().filter(char::is_ascii_digit).collect()
            }
            Self::Postcode => {
                value.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
            }
            _ => html_escape::decode_html_entities(value).trim().to_lowercase(),
        }
    }
}

/// The last part of a name, in one spelling: `billing_address[first_name]`, `_billing_first_name` and
/// `firstName` are `first_name`.
pub(super) fn plain(name: &str) -> String {
    let last = name.trim_end_matches(']').rsplit(['[', '.', '/']).next().unwrap_or(name);
    let mut plain = String::new();
    let mut before = ' ';
    for c in last.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            plain.push('_');
        }
        plain.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
        before = c;
    }
    plain.trim_start_matches('_').to_owned()
}

/// What stands under a name, in JSON, forms and queries; `None` for what is not ours to hide.
pub(super) fn of_name(name: &str) -> Option<Kind> {
    let plain = plain(name);
    let whole = match plain.as_str() {
        "customer_note"
        | "customer_notes"
        | "order_note"
        | "order_notes"
        | "order_comments"
        | "note"
        | "delivery_instructions" => Kind::Note,
        "user_agent" | "customer_user_agent" | "author_user_agent" => Kind::Agent,
        "address" | "s_address" => Kind::Street,
        "cart_token" => Kind::Cart,
        "order_key" => Kind::OrderKey,
        _ => return of_stripped(&plain),
    };
    Some(whole)
}

fn of_stripped(plain: &str) -> Option<Kind> {
    let prefixes = ["billing_", "shipping_", "customer_", "user_", "buyer_", "s_"];
    let stripped = prefixes.iter().find_map(|prefix| plain.strip_prefix(prefix));
    Some(match stripped.unwrap_or(plain) {
        "first_name" | "given_name" => Kind::FirstName,
        "last_name" | "family_name" | "surname" => Kind::LastName,
        "full_name" | "display_name" | "username" | "nickname" | "nicename" | "login" | "recipient"
        | "reviewer" | "author" | "author_name" | "cardholder_name" | "name_on_card" | "account_name"
        | "account_holder" => Kind::Person,
        "name" if stripped.is_some() => Kind::Person,
        "company" => Kind::Company,
        "address_1" | "address_2" | "address_line_1" | "address_line_2" | "line1" | "line2" | "line_one"
        | "line_two" | "street" | "street_address" | "extended_address" | "address_index" => Kind::Street,
        "city" | "town" | "address_locality" => Kind::City,
        "postcode" | "postal_code" | "zip" | "zip_code" => Kind::Postcode,
        "phone" | "phone_number" | "mobile" | "fax" => Kind::Phone,
        "ip" | "ip_address" | "ip_addr" => Kind::Ip,
        "birthday"
        | "birth_date"
        | "date_of_birth"
        | "vat_number"
        | "vat_id"
        | "tax_id"
        | "avatar_url"
        | "avatar_urls"
        | "reviewer_avatar_urls"
        | "author_avatar_urls"
        | "author_url"
        | "gravatar" => Kind::Field,
        "nonce" | "security" => Kind::Nonce,
        "payment_intent" | "setup_intent" | "payment_method_id" | "stripe_source" | "card_expiry"
        | "exp_month" | "exp_year" | "expiry_month" | "expiry_year" | "last4" | "sort_code" => Kind::Payment,
        "token" | "secret" | "password" | "pass" | "pwd" | "authorization" | "cookie" | "set_cookie"
        | "api_key" | "secret_key" | "private_key" | "consumer_key" | "card_number" | "cvc" | "cvv"
        | "iban" | "bic" | "account_number" | "transaction_id" | "signature" | "session_id" => Kind::Secret,
        other if other == "email" || other.ends_with("_email") => Kind::Email,
        other if other.ends_with("_phone") => Kind::Phone,
        other if other.ends_with("_ip") => Kind::Ip,
        other if other.ends_with("nonce") => Kind::Nonce,
        other
            if [
                "_token",
                "_secret",
                "_secret_key",
                "_password",
                "_signature",
                "_api_key",
                "_cvc",
                "_cvv",
                "_iban",
                "card_number",
            ]
            .iter()
            .any(|end| other.ends_with(end)) =>
        {
            Kind::Secret
        }
        _ => return None,
    })
}

/// Whether a text under this name is the shop's own word: a state, an amount, a product. A buyer whose name
/// is the same word does not change it.
pub(super) fn is_the_shops(name: &str) -> bool {
    let plain = plain(name);
    matches!(
        plain.as_str(),
        "id" | "key"
            | "name"
            | "type"
            | "status"
            | "code"
            | "country"
            | "state"
            | "method"
            | "method_id"
            | "rate_id"
            | "package_id"
            | "payment_method"
            | "payment_method_title"
            | "payment_status"
            | "slug"
            | "sku"
            | "taxonomy"
            | "attribute"
            | "raw_attribute"
            | "created_via"
            | "version"
            | "description"
            | "short_description"
            | "thumbnail"
            | "src"
            | "srcset"
            | "alt"
            | "permalink"
    ) || ["currency", "total", "price", "date", "utm_"].iter().any(|start| plain.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_in_every_spelling() {
        for (name, kind) in [
            ("first_name", Some(Kind::FirstName)),
            ("billing_address[first_name]", Some(Kind::FirstName)),
            ("_shipping_last_name", Some(Kind::LastName)),
            ("firstName", Some(Kind::FirstName)),
            ("billing_email", Some(Kind::Email)),
            ("customer_ip_address", Some(Kind::Ip)),
            ("customer_user_agent", Some(Kind::Agent)),
            ("customer_note", Some(Kind::Note)),
            ("Cart-Token", Some(Kind::Cart)),
            ("X-WC-Store-API-Nonce", Some(Kind::Nonce)),
            ("_wpnonce", Some(Kind::Nonce)),
            ("consumer_secret", Some(Kind::Secret)),
            ("consumer_key", Some(Kind::Secret)),
            ("order_key", Some(Kind::OrderKey)),
            ("name", None),
            ("billing_address", None),
            ("payment_method", None),
            ("customer_id", None),
            ("number", None),
            ("nonce_timestamp", None),
        ] {
            assert_eq!(of_name(name), kind, "{name}");
        }
    }

    #[test]
    fn one_value_in_two_spellings_is_one() {
        for (kind, one, other) in [
            (Kind::Postcode, "sw1a1aa", "SW1A 1AA"),
            (Kind::Phone, "+49 (30) 123-45", "+493012345"),
            (Kind::LastName, " O'Neill", "O&#039;NEILL"),
            (Kind::Email, "Anna@Example.com", "anna@example.com"),
        ] {
            assert_eq!(kind.canonical(one), kind.canonical(other));
        }
        assert_ne!(Kind::Payment.canonical("tok_A"), Kind::Payment.canonical("tok_a"));
    }
}
