//! Countries, states and postcodes: what the shop accepts as an address.
//!
//! The shop checks country codes, the states of a few countries and some postcode shapes; everything else
//! passes. Full state names become their codes, country codes upper case.

/// ISO 3166-1 alpha-2 codes, in the order in which the shop lists them.
const COUNTRIES: &str = "AF AX AL DZ AS AD AO AI AQ AG AR AM AW AU AT AZ BS BH BD BB BY PW BE BZ BJ BM BT BO BQ \
BA BW BV BR IO BN BG BF BI KH CM CA CV KY CF TD CL CN CX CC CO KM CG CD CK CR HR CU CW CY CZ DK DJ DM DO EC EG SV \
GQ ER EE SZ ET FK FO FJ FI FR GF PF TF GA GM GE DE GH GI GR GL GD GP GU GT GG GN GW GY HT HM HN HK HU IS IN ID IR \
IQ IE IM IL IT CI JM JP JE JO KZ KE KI XK KW KG LA LV LB LS LR LY LI LT LU MO MG MW MY MV ML MT MH MQ MR MU YT MX \
FM MD MC MN ME MS MA MZ MM NA NR NP NL NC NZ NI NE NG NU NF KP MK MP NO OM PK PS PA PG PY PE PH PN PL PT PR QA RE \
RO RU RW ST BL SH KN LC SX MF PM VC WS SM SA SN RS SC SL SG SK SI SB SO ZA GS KR SS ES LK SD SR SJ SE CH SY TW TJ \
TZ TH TL TG TK TO TT TN TR TM TC TV UG UA AE GB US UM UY UZ VU VA VE VN VG VI WF EH YE ZM ZW";

const US: &[(&str, &str)] = &[
    ("AL", "Alabama"),
    ("AK", "Alaska"),
    ("AZ", "Arizona"),
    ("AR", "Arkansas"),
    ("CA", "California"),
    ("CO", "Colorado"),
    ("CT", "Connecticut"),
    ("DE", "Delaware"),
    ("DC", "District of Columbia"),
    ("FL", "Florida"),
    ("GA", "Georgia"),
    ("HI", "Hawaii"),
    ("ID", "Idaho"),
    ("IL", "Illinois"),
    ("IN", "Indiana"),
    ("IA", "Iowa"),
    ("KS", "Kansas"),
    ("KY", "Kentucky"),
    ("LA", "Louisiana"),
    ("ME", "Maine"),
    ("MD", "Maryland"),
    ("MA", "Massachusetts"),
    ("MI", "Michigan"),
    ("MN", "Minnesota"),
    ("MS", "Mississippi"),
    ("MO", "Missouri"),
    ("MT", "Montana"),
    ("NE", "Nebraska"),
    ("NV", "Nevada"),
    ("NH", "New Hampshire"),
    ("NJ", "New Jersey"),
    ("NM", "New Mexico"),
    ("NY", "New York"),
    ("NC", "North Carolina"),
    ("ND", "North Dakota"),
    ("OH", "Ohio"),
    ("OK", "Oklahoma"),
    ("OR", "Oregon"),
    ("PA", "Pennsylvania"),
    ("RI", "Rhode Island"),
    ("SC", "South Carolina"),
    ("SD", "South Dakota"),
    ("TN", "Tennessee"),
    ("TX", "Texas"),
    ("UT", "Utah"),
    ("VT", "Vermont"),
    ("VA", "Virginia"),
    ("WA", "Washington"),
    ("WV", "West Virginia"),
    ("WI", "Wisconsin"),
    ("WY", "Wyoming"),
    ("AA", "Armed Forces (AA)"),
    ("AE", "Armed Forces (AE)"),
    ("AP", "Armed Forces (AP)"),
];

const CANADA: &[(&str, &str)] = &[
    ("AB", "Alberta"),
    ("BC", "British Columbia"),
    ("MB", "Manitoba"),
    ("NB", "New Brunswick"),
    ("NL", "Newfoundland and Labrador"),
    ("NT", "Northwest Territories"),
    ("NS", "Nova Scotia"),
    ("NU", "Nunavut"),
    ("ON", "Ontario"),
    ("PE", "Prince Edward Island"),
    ("QC", "Quebec"),
    ("SK", "Saskatchewan"),
    ("YT", "Yukon Territory"),
];

const AUSTRALIA: &[(&str, &str)] = &[
    ("ACT", "Australian Capital Territory"),
    ("NSW", "New South Wales"),
    ("NT", "Northern Territory"),
    ("QLD", "Queensland"),
    ("SA", "South Australia"),
    ("TAS", "Tasmania"),
    ("VIC", "Victoria"),
    ("WA", "Western Australia"),
];

const GERMANY: &[(&str, &str)] = &[
    ("DE-BW", "Baden-Württemberg"),
    ("DE-BY", "Bavaria"),
    ("DE-BE", "Berlin"),
    ("DE-BB", "Brandenburg"),
    ("DE-HB", "Bremen"),
    ("DE-HH", "Hamburg"),
    ("DE-HE", "Hesse"),
    ("DE-MV", "Mecklenburg-Vorpommern"),
    ("DE-NI", "Lower Saxony"),
    ("DE-NW", "North Rhine-Westphalia"),
    ("DE-RP", "Rhineland-Palatinate"),
    ("DE-SL", "Saarland"),
    ("DE-SN", "Saxony"),
    ("DE-ST", "Saxony-Anhalt"),
    ("DE-SH", "Schleswig-Holstein"),
    ("DE-TH", "Thuringia"),
];

pub(super) fn is_country(code: &str) -> bool {
    COUNTRIES.split(' ').any(|known| known == code)
}

/// All codes as the shop's error text lists them.
pub(super) fn countries_text() -> String {
    COUNTRIES.split(' ').collect::<Vec<_>>().join(", ")
}

/// The states of a country that has a list: code and name.
pub(super) fn states(country: &str) -> Option<&'static [(&'static str, &'static str)]> {
    match country {
        "US" => Some(US),
        "CA" => Some(CANADA),
        "AU" => Some(AUSTRALIA),
        "DE" => Some(GERMANY),
        _ => None,
    }
}

/// Turns a state's full name into its code; leaves anything else alone.
pub(super) fn state_code(country: &str, state: &str) -> String {
    let trimmed = state.trim();
    let upper = trimmed.to_uppercase();
    for (code, name) in states(country).unwrap_or_default() {
        if *code == upper || name.to_uppercase() == upper {
            return (*code).to_owned();
        }
    }
    trimmed.to_owned()
}

/// Whether the country's addresses must name a state.
pub(super) fn needs_state(country: &str) -> bool {
    matches!(country, "US" | "CA" | "AU")
}

/// Whether a postcode has the country's shape (`9` a digit, `A` a letter, anything else itself).
pub(super) fn is_postcode(country: &str, postcode: &str) -> bool {
    let shapes: &[&str] = match country {
        "US" => &["99999", "99999-9999"],
        "DE" | "FR" | "ES" | "IT" => &["99999"],
        "AT" | "CH" | "BE" | "DK" => &["9999"],
        "PL" => &["99-999"],
        "CA" => &["A9A 9A9", "A9A9A9"],
        _ => {
            return postcode.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ' || c == '-');
        }
    };
    shapes.iter().any(|shape| {
        shape.chars().count() == postcode.chars().count()
            && shape.chars().zip(postcode.chars()).all(|(want, got)| match want {
                '9' => got.is_ascii_digit(),
                'A' => got.is_ascii_alphabetic(),
                other => other == got,
            })
    })
}

/// Whether a telephone number has only the characters the shop allows.
pub(super) fn is_phone(phone: &str) -> bool {
    phone.chars().all(|c| c.is_ascii_digit() || " #_-+/().".contains(c))
}

/// Whether a text looks like an e-mail address to the shop.
pub(super) fn is_email(email: &str) -> bool {
    let Some((local, domain)) = email.split_once('@') else { return false };
    !local.is_empty()
        && !domain.contains('@')
        && domain.split('.').count() > 1
        && domain
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        && !email.contains(char::is_whitespace)
}
