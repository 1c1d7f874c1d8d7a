//! Owns the lists of what the formatters have: units, currencies, numbering systems, calendars, collations.

pub const CALENDARS: &[&str] = &["gregory", "iso8601"];

pub const COLLATIONS: &[&str] = &["emoji", "eor", "phonebk", "pinyin", "stroke", "trad", "zhuyin"];

pub const NUMBERING_SYSTEMS: &[&str] = &[
    "arab", "arabext", "beng", "deva", "fullwide", "gujr", "guru", "khmr", "knda", "laoo", "latn", "mlym",
    "mymr", "orya", "tamldec", "telu", "thai", "tibt",
];

/// The currencies that `Intl.supportedValuesOf` lists; the formatter has those of ISO 4217.
pub const CURRENCIES: &[&str] = &[
    "AED", "ARS", "AUD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP", "EUR", "GBP", "HKD",
    "HUF", "IDR", "ILS", "INR", "JPY", "KRW", "MAD", "MXN", "MYR", "NGN", "NOK", "NZD", "PEN", "PHP", "PLN",
    "RON", "RUB", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "ZAR",
];

/// The simple units of ECMA-402.
pub const UNITS: &[&str] = &[
    "acre",
    "bit",
    "byte",
    "celsius",
    "centimeter",
    "day",
    "degree",
    "fahrenheit",
    "fluid-ounce",
    "foot",
    "gallon",
    "gigabit",
    "gigabyte",
    "gram",
    "hectare",
    "hour",
    "inch",
    "kilobit",
    "kilobyte",
    "kilogram",
    "kilometer",
    "liter",
    "megabit",
    "megabyte",
    "meter",
    "microsecond",
    "mile",
    "mile-scandinavian",
    "milliliter",
    "millimeter",
    "millisecond",
    "minute",
    "month",
    "nanosecond",
    "ounce",
    "percent",
    "petabyte",
    "pound",
    "second",
    "stone",
    "terabit",
    "terabyte",
    "week",
    "yard",
    "year",
];

/// A simple unit, or two with `-per-` between them.
pub fn is_unit(name: &str) -> bool {
    let simple = |name: &str| UNITS.contains(&name);
    simple(name) || name.split_once("-per-").is_some_and(|(one, other)| simple(one) && simple(other))
}

/// Digits of a currency's minor unit (ISO 4217, as far as it is not 2).
pub fn currency_digits(code: &str) -> u8 {
    match code {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI"
        | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    }
}
