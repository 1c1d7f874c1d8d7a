//! Owns numbers as text: rounding, signs, and the affixes of percents, currencies, units and compact forms.

use super::data::FormatData;
use super::{FormatOptions, IntlError, TextPart, parsed};
use fixed_decimal::{Decimal, Sign, SignDisplay, SignedRoundingMode, UnsignedRoundingMode};
use icu_decimal::options::{CompactDecimalFormatterOptions, DecimalFormatterOptions, GroupingStrategy};
use icu_decimal::{CompactDecimalFormatter, DecimalFormatter};
use icu_experimental::dimension::currency::CurrencyCode;
use icu_experimental::dimension::currency::formatter::CurrencyFormatter;
use icu_experimental::dimension::currency::long_formatter::LongCurrencyFormatter;
use icu_experimental::dimension::currency::options::Width as CurrencyWidth;
use icu_experimental::dimension::percent::formatter::PercentFormatter;
use icu_experimental::dimension::percent::options::{Display, PercentFormatterOptions};
use icu_experimental::dimension::units::formatter::UnitsFormatter;
use icu_experimental::dimension::units::options::{UnitsFormatterOptions, Width as UnitWidth};
use icu_plurals::{PluralCategory, PluralRuleType, PluralRules, PluralRulesOptions};
use std::fmt::{self, Write};
use writeable::{Part, PartsWrite, Writeable};

/// How many digits are shown.
struct Digits {
    integer: i16,
    /// Least and most digits of the fraction.
    fraction: (i16, i16),
    /// Least and most significant digits; they replace those of the fraction.
    significant: Option<(i16, i16)>,
    mode: SignedRoundingMode,
    /// No fraction if it is zero.
    strip: bool,
}

impl Digits {
    fn read(options: &FormatOptions) -> Self {
        let least = options.digits("minimumSignificantDigits");
        let most = options.digits("maximumSignificantDigits");
        let significant = most.map(|most| (least.unwrap_or(1).max(1), most.max(1)));
        let mode = match options.text("roundingMode") {
            "ceil" => SignedRoundingMode::Ceil,
            "floor" => SignedRoundingMode::Floor,
            "expand" => SignedRoundingMode::Unsigned(UnsignedRoundingMode::Expand),
            "trunc" => SignedRoundingMode::Unsigned(UnsignedRoundingMode::Trunc),
            "halfCeil" => SignedRoundingMode::HalfCeil,
            "halfFloor" => SignedRoundingMode::HalfFloor,
            "halfTrunc" => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfTrunc),
            "halfEven" => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfEven),
            _ => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfExpand),
        };
        Self {
            integer: options.digits("minimumIntegerDigits").unwrap_or(1),
            fraction: (
                options.digits("minimumFractionDigits").unwrap_or(0),
                options.digits("maximumFractionDigits").unwrap_or(3),
            ),
            significant,
            mode,
            strip: options.text("trailingZeroDisplay") == "stripIfInteger",
        }
    }

    fn round(&self, value: &mut Decimal) {
        if let Some((least, most)) = self.significant {
            round_significant(value, least, most, self.mode);
        } else {
            value.round_with_mode(-self.fraction.1, self.mode);
            value.absolute.trim_end();
            value.absolute.pad_end(-self.fraction.0);
        }
        if self.strip {
            value.absolute.trim_end_if_integer();
        }
        value.absolute.trim_start();
        value.absolute.pad_start(self.integer);
    }
}

fn round_significant(value: &mut Decimal, least: i16, most: i16, mode: SignedRoundingMode) {
    if !value.absolute.is_zero() {
        value.round_with_mode(value.absolute.nonzero_magnitude_start() - most + 1, mode);
    }
    value.absolute.trim_end();
    let start = if value.absolute.is_zero() { 0 } else { value.absolute.nonzero_magnitude_start() };
    value.absolute.pad_end((start - least + 1).min(0));
}

/// The two formatters of a compact form's digits and affixes.
struct Compact {
    formatter: CompactDecimalFormatter,
    /// The rule of a script that sets no digits: two significant ones, or all of the integer.
    usual_digits: bool,
}

enum NumberStyle {
    Decimal,
    Percent(Box<[PercentFormatter<DecimalFormatter>; 2]>),
    /// The code replaces the symbol if it is to be shown.
    Currency(Box<CurrencyFormatter>, CurrencyCode, bool),
    CurrencyName(Box<LongCurrencyFormatter>),
    Unit(Box<UnitsFormatter>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Standard,
    Scientific,
    Engineering,
}

/// Writes numbers by the rules of a locale.
pub struct NumberFormat {
    digits: Digits,
    sign: SignDisplay,
    style: NumberStyle,
    notation: Notation,
    compact: Option<Compact>,
    /// The sign of an amount of money is beside its digits.
    inner_sign: bool,
    /// Formats with the grouping that the script chose.
    decimal: DecimalFormatter,
    /// Formats with the grouping of the formatters of `style` and `compact`, to find the number in their texts.
    usual: DecimalFormatter,
}

/// Collects text with the types of its parts.
#[derive(Default)]
struct Collector {
    parts: Vec<TextPart>,
    current: Option<&'static str>,
}

impl Write for Collector {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kind = match self.current.unwrap_or("literal") {
            "minus_sign" => "minusSign",
            "plus_sign" => "plusSign",
            kind => kind,
        };
        match self.parts.last_mut() {
            Some((last, value)) if *last == kind => value.push_str(text),
            _ => self.parts.push((kind, text.to_owned())),
        }
        Ok(())
    }
}

impl PartsWrite for Collector {
    type SubPartsWrite = Self;

    fn with_part(&mut self, part: Part, mut write: impl FnMut(&mut Self) -> fmt::Result) -> fmt::Result {
        let outer = self.current.replace(part.value);
        let result = write(self);
        self.current = outer;
        result
    }
}

fn parts_of(text: &impl Writeable) -> Vec<TextPart> {
    let mut collector = Collector::default();
    // A collector does not fail.
    let _ = text.write_to_parts(&mut collector);
    collector.parts
}

/// Text before or after a number: signs, spaces, and what the number is a number of.
fn affix(text: &str, sign: &TextPart, kind: &'static str, parts: &mut Vec<TextPart>) {
    if !sign.1.is_empty()
        && let Some(at) = text.find(&sign.1)
    {
        affix(&text[..at], &("", String::new()), kind, parts);
        parts.push(sign.clone());
        affix(&text[at + sign.1.len()..], &("", String::new()), kind, parts);
        return;
    }
    let inner = text.trim();
    let (before, after) = match text.find(inner) {
        Some(at) if !inner.is_empty() => (&text[..at], &text[at + inner.len()..]),
        _ => (text, ""),
    };
    for (kind, text) in [("literal", before), (kind, inner), ("literal", after)] {
        if !text.is_empty() {
            parts.push((kind, text.to_owned()));
        }
    }
}

impl NumberFormat {
    /// `options`: `style`, `currency`, `currencyDisplay`, `unit`, `unitDisplay`, `notation`, `compactDisplay`, `useGrouping`,
    /// `signDisplay`, the digits of ECMA-402, `roundingMode`, `trailingZeroDisplay`; `usualDigits` is `true` for a compact form
    /// whose digits the script did not set.
    pub fn new(tag: &str, options: &FormatOptions) -> Result<Self, IntlError> {
        let locale = &parsed(tag)?;
        let error = |error: icu_provider::DataError| IntlError::data(error);
        let notation = options.text("notation");
        let grouping = match options.text("useGrouping") {
            "false" => GroupingStrategy::Never,
            "min2" => GroupingStrategy::Min2,
            _ => GroupingStrategy::Auto,
        };
        let compact = if notation == "compact" {
            let form = CompactDecimalFormatterOptions::default();
            let formatter = if options.text("compactDisplay") == "long" {
                CompactDecimalFormatter::try_new_long_unstable(&FormatData, locale.into(), form)
            } else {
                CompactDecimalFormatter::try_new_short_unstable(&FormatData, locale.into(), form)
            };
            let usual_digits = options.text("usualDigits") == "true";
            Some(Compact { formatter: formatter.map_err(error)?, usual_digits })
        } else {
            None
        };
        let style = match options.text("style") {
            "percent" => {
                let make = |display| {
                    PercentFormatter::try_new_unstable(
                        &FormatData,
                        locale.into(),
                        PercentFormatterOptions::from(display),
                    )
                    .map_err(error)
                };
                NumberStyle::Percent(Box::new([make(Display::Standard)?, make(Display::ExplicitSign)?]))
            }
            "currency" => {
                let code = CurrencyCode(options.text("currency").parse().map_err(IntlError::data)?);
                match options.text("currencyDisplay") {
                    "name" => NumberStyle::CurrencyName(Box::new(
                        LongCurrencyFormatter::try_new_unstable(&FormatData, locale.into(), &code)
                            .map_err(error)?,
                    )),
                    display => {
                        let width = if display == "narrowSymbol" {
                            CurrencyWidth::Narrow
                        } else {
                            CurrencyWidth::Short
                        };
                        let formatter =
                            CurrencyFormatter::try_new_unstable(&FormatData, locale.into(), width.into())
                                .map_err(error)?;
                        NumberStyle::Currency(Box::new(formatter), code, display == "code")
                    }
                }
            }
            "unit" => {
                let width = match options.text("unitDisplay") {
                    "long" => UnitWidth::Long,
                    "narrow" => UnitWidth::Narrow,
                    _ => UnitWidth::Short,
                };
                let mut form = UnitsFormatterOptions::default();
                form.width = width;
                NumberStyle::Unit(Box::new(
                    UnitsFormatter::try_new_unstable(&FormatData, locale.into(), options.text("unit"), form)
                        .map_err(error)?,
                ))
            }
            _ => NumberStyle::Decimal,
        };
        let usual = if compact.is_some() { GroupingStrategy::Min2 } else { GroupingStrategy::Auto };
        let decimal = |grouping: GroupingStrategy| {
            DecimalFormatter::try_new_unstable(
                &FormatData,
                locale.into(),
                DecimalFormatterOptions::from(grouping),
            )
            .map_err(error)
        };
        Ok(Self {
            digits: Digits::read(options),
            inner_sign: locale.id.language.as_str() == "nl",
            sign: match options.text("signDisplay") {
                "always" => SignDisplay::Always,
                "never" => SignDisplay::Never,
                "exceptZero" => SignDisplay::ExceptZero,
                "negative" => SignDisplay::Negative,
                _ => SignDisplay::Auto,
            },
            style,
            notation: match notation {
                "scientific" => Notation::Scientific,
                "engineering" => Notation::Engineering,
                _ => Notation::Standard,
            },
            compact,
            decimal: decimal(grouping)?,
            usual: decimal(usual)?,
        })
    }

    /// The parts of a number: its decimal digits with an optional sign and point, `NaN`, `Infinity` or `-Infinity`.
    pub fn format(&self, text: &str) -> Result<Vec<TextPart>, IntlError> {
        let (sign, word) = match text {
            "NaN" => (Sign::None, Some(("nan", "NaN"))),
            "Infinity" => (Sign::None, Some(("infinity", "∞"))),
            "-Infinity" => (Sign::Negative, Some(("infinity", "∞"))),
            _ => (Sign::None, None),
        };
        let mut value: Decimal = if word.is_some() {
            Decimal::from(0_u8).with_sign(sign)
        } else {
            text.parse().map_err(|_| IntlError::Digits)?
        };
        if matches!(self.style, NumberStyle::Percent(_)) {
            value.multiply_pow10(2);
        }
        let exponent = if word.is_some() { 0 } else { self.scale(&mut value) };
        // An infinity is not zero.
        let sign_of = if word.is_some_and(|word| word.0 == "infinity") {
            Decimal::from(1_u8).with_sign(sign)
        } else {
            value.clone()
        };
        value.sign = sign_of.with_sign_display(self.sign).sign;
        let mut number = match word {
            Some((kind, text)) => vec![(kind, text.to_owned())],
            None => parts_of(&self.decimal.format_unsigned(icu_decimal::Cow::Borrowed(&value.absolute))),
        };
        if self.notation != Notation::Standard && word.is_none() {
            number.push(("exponentSeparator", "E".to_owned()));
            if exponent < 0 {
                number.push(("exponentMinusSign", "-".to_owned()));
            }
            number.push(("exponentInteger", exponent.unsigned_abs().to_string()));
        }
        Ok(self.with_affixes(&value, exponent, number))
    }

    /// Divides by the power of ten that the notation shows apart, and rounds.
    fn scale(&self, value: &mut Decimal) -> i16 {
        let magnitude = |value: &Decimal| {
            if value.absolute.is_zero() { 0 } else { value.absolute.nonzero_magnitude_start() }
        };
        let exponent_of = |magnitude: i16| match (&self.compact, self.notation) {
            (Some(compact), _) => i16::from(compact.formatter.compact_exponent_for_magnitude(magnitude)),
            (None, Notation::Scientific) => magnitude,
            (None, Notation::Engineering) => magnitude.div_euclid(3) * 3,
            (None, Notation::Standard) => 0,
        };
        let mut exponent = exponent_of(magnitude(value));
        // Rounding may give the number one digit more, and so another power.
        loop {
            let mut scaled = value.clone();
            scaled.multiply_pow10(-exponent);
            match &self.compact {
                Some(compact) if compact.usual_digits => {
                    let most = (magnitude(&scaled) + 1).max(2);
                    round_significant(&mut scaled, 1, most, self.digits.mode);
                    scaled.absolute.trim_start();
                    scaled.absolute.pad_start(self.digits.integer);
                }
                _ => self.digits.round(&mut scaled),
            }
            let next = exponent_of(magnitude(&scaled) + exponent);
            if next == exponent {
                *value = scaled;
                return exponent;
            }
            exponent = next;
        }
    }

    fn with_affixes(&self, value: &Decimal, exponent: i16, number: Vec<TextPart>) -> Vec<TextPart> {
        let sign_text = self.decimal.format_sign(value.sign, "").write_to_string().into_owned();
        let sign = (if value.sign == Sign::Negative { "minusSign" } else { "plusSign" }, sign_text);
        let (whole, kind) = match (&self.style, &self.compact) {
            (NumberStyle::Decimal, None) => {
                let mut parts = Vec::new();
                if !sign.1.is_empty() {
                    parts.push(sign);
                }
                parts.extend(number);
                return parts;
            }
            (NumberStyle::Decimal, Some(compact)) => {
                let text = compact
                    .formatter
                    .format_with_exponent(value, u8::try_from(exponent).unwrap_or(0))
                    .map_or_else(
                        |_| self.usual.format(value).write_to_string().into_owned(),
                        |text| text.write_to_string().into_owned(),
                    );
                (text, "compact")
            }
            (NumberStyle::Percent(formatters), _) => {
                let formatter = &formatters[usize::from(value.sign == Sign::Positive)];
                (formatter.format(value).write_to_string().into_owned(), "percentSign")
            }
            (NumberStyle::Currency(formatter, code, as_code), _) => {
                let text = formatter.format_fixed_decimal(value, code).write_to_string().into_owned();
                (if *as_code { with_code(&text, code.0.as_str(), &sign.1) } else { text }, "currency")
            }
            (NumberStyle::CurrencyName(formatter), _) => {
                (formatter.format_fixed_decimal(value).write_to_string().into_owned(), "currency")
            }
            (NumberStyle::Unit(formatter), _) => {
                (formatter.format_fixed_decimal(value).write_to_string().into_owned(), "unit")
            }
        };
        let shown = self
            .usual
            .format_unsigned(icu_decimal::Cow::Borrowed(&value.absolute))
            .write_to_string()
            .into_owned();
        let mut parts = Vec::new();
        // Where the sign is beside the digits; the formatter knows it before the symbol only.
        let whole = match (&self.style, whole.strip_prefix(&sign.1)) {
            (NumberStyle::Currency(..), Some(rest)) if self.inner_sign && !sign.1.is_empty() => {
                rest.replacen(&shown, &format!("{}{shown}", sign.1), 1)
            }
            _ => whole,
        };
        match whole.find(&*shown) {
            Some(at) => {
                affix(&whole[..at], &sign, kind, &mut parts);
                parts.extend(number);
                affix(&whole[at + shown.len()..], &sign, kind, &mut parts);
            }
            // Some languages have a word for one of something.
            None => parts.push(("literal", whole)),
        }
        parts
    }
}

/// The currency's code in place of its symbol, with a space beside the digits.
fn with_code(text: &str, code: &str, sign: &str) -> String {
    let is_symbol = |part: char| {
        !part.is_numeric()
            && !part.is_whitespace()
            && !".,'’٫٬\u{200e}\u{200f}\u{61c}".contains(part)
            && !sign.contains(part)
    };
    let Some(start) = text.find(is_symbol) else { return text.to_owned() };
    let end =
        text.rfind(is_symbol).map_or(start, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    let (before, after) = (&text[..start], &text[end..]);
    let gap = |near: Option<char>| if near.is_some_and(char::is_numeric) { "\u{a0}" } else { "" };
    let (left, right) = (gap(before.chars().last()), gap(after.chars().next()));
    format!("{before}{left}{code}{right}{after}")
}

/// The plural category of numbers in a locale.
pub struct PluralFormat {
    rules: PluralRules,
    digits: Digits,
}

fn category_name(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}

impl PluralFormat {
    /// `options`: the digits of ECMA-402, as of [`NumberFormat`].
    pub fn new(tag: &str, ordinal: bool, options: &FormatOptions) -> Result<Self, IntlError> {
        let kind = if ordinal { PluralRuleType::Ordinal } else { PluralRuleType::Cardinal };
        let rules = PluralRules::try_new_unstable(
            &FormatData,
            (&parsed(tag)?).into(),
            PluralRulesOptions::default().with_type(kind),
        )
        .map_err(IntlError::data)?;
        Ok(Self { rules, digits: Digits::read(options) })
    }

    /// The categories that the locale has.
    pub fn categories(&self) -> Vec<&'static str> {
        self.rules.categories().map(category_name).collect()
    }

    /// The category of a number's decimal digits; what is no finite number is `other`.
    pub fn select(&self, text: &str) -> &'static str {
        match text.parse::<Decimal>() {
            Ok(mut value) => {
                self.digits.round(&mut value);
                category_name(self.rules.category_for(&value))
            }
            Err(_) => "other",
        }
    }
}

/// The text of a number as ECMA-262 writes it (`1e21`, `-1.5e-7`), without an exponent.
pub fn plain_decimal(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = |count: i32| "0".repeat(usize::try_from(count.clamp(0, 400)).unwrap_or(0));
    if exponent < 0 {
        format!("{sign}0.{}{whole}{fraction}", zeros(-exponent - 1))
    } else {
        format!("{sign}{whole}{fraction}{}", zeros(exponent - fraction.len() as i32))
    }
}
