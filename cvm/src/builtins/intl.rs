//! The formatters of `Intl`: natives on `vm-system-intl`; `intl.js` and `intl_text.js` have the rest.
//!
//! A formatter's text (the tag, then a line for each option) is what a program stores. Natives make the formatter of it, and keep
//! some for the next call: this cache is no part of the state, and no result depends on it.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::{ObjectKind, attr};
use crate::heap::text::Text;
use crate::pure::number;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use vm_system_intl::{
    DateFormat, FormatOptions, IntlError, Keyword, ListTexts, LocaleNames, NumberFormat, PluralFormat,
    RelativeFormat, TextCollator, TextPart, TimeZoneRules, plain_decimal, resolve,
};

/// Formatters that a thread keeps.
const MOST_FORMATTERS: usize = 64;
/// Price of a call of a formatter, in instructions: the same whether it is kept or made again, so that a program's steps do not
/// depend on what else ran.
const CALL_PRICE: usize = 200;
/// UTF-16 units that are compared, joined or mapped for the price of one instruction.
const UNITS_PER_INSTRUCTION: usize = 4;
/// Most bits of a `BigInt` whose digits a formatter can have: it has 32 767.
const MOST_BITS: u64 = 108_850;
/// Most units of a tag, a code or a name: the work on a tag's variants is not linear.
pub(super) const MOST_TAG_UNITS: usize = 256;
/// Most combining marks in a row of a text that is compared; a comparison sorts them.
const MOST_MARKS: usize = 2_048;

#[derive(Clone)]
enum Formatter {
    Number(Rc<NumberFormat>),
    Plural(Rc<PluralFormat>),
    Date(Rc<DateFormat>),
    Collator(Rc<TextCollator>),
    List(Rc<ListTexts>),
    Relative(Rc<RelativeFormat>),
    Names(Rc<LocaleNames>),
}

thread_local! {
    /// By the kind of the formatter and its text.
    static FORMATTERS: RefCell<HashMap<(&'static str, String), Formatter>> = RefCell::new(HashMap::new());
}

const fn ctor(id: Id, name: &'static str, code: &'static str, length: u16, proto: Id) -> Ctor {
    let (parent, above) = (ids::FUNCTION_PROTO, ids::OBJECT_PROTO);
    Ctor {
        id,
        name,
        length,
        code: CtorCode::Prelude(code),
        proto,
        parent,
        proto_parent: above,
        global: false,
    }
}

/// The constructors of `Intl` with their prototypes, in the order in which they are its properties.
const CLASSES: [(&str, Id, Id); 9] = [
    ("Collator", ids::COLLATOR, ids::COLLATOR_PROTO),
    ("DateTimeFormat", ids::DATE_TIME_FORMAT, ids::DATE_TIME_FORMAT_PROTO),
    ("DisplayNames", ids::DISPLAY_NAMES, ids::DISPLAY_NAMES_PROTO),
    ("ListFormat", ids::LIST_FORMAT, ids::LIST_FORMAT_PROTO),
    ("Locale", ids::LOCALE, ids::LOCALE_PROTO),
    ("NumberFormat", ids::NUMBER_FORMAT, ids::NUMBER_FORMAT_PROTO),
    ("PluralRules", ids::PLURAL_RULES, ids::PLURAL_RULES_PROTO),
    ("RelativeTimeFormat", ids::RELATIVE_TIME_FORMAT, ids::RELATIVE_TIME_FORMAT_PROTO),
    ("Segmenter", ids::SEGMENTER, ids::SEGMENTER_PROTO),
];

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("intlNumber", intl_number),
        ("intlPlural", intl_plural),
        ("intlPluralCategories", plural_categories),
        ("intlDate", intl_date),
        ("intlDateFacts", date_facts),
        ("intlCompare", intl_compare),
        ("intlList", intl_list),
        ("intlListLiterals", list_literals),
        ("intlRelative", intl_relative),
        ("intlAmount", |vm, c| Ok(Value::num(three_digits(vm.arg_number(&c, 0)?).abs()).into())),
        ("intlName", intl_name),
        ("intlThis", intl_this),
        ("intlNow", |vm, _| Ok(Value::num(crate::pure::date::time_clip(vm.st.now)).into())),
    ],
    ctors: &[
        ctor(ids::COLLATOR, "Collator", "Collator_", 0, ids::COLLATOR_PROTO),
        ctor(ids::DATE_TIME_FORMAT, "DateTimeFormat", "DateTimeFormat_", 0, ids::DATE_TIME_FORMAT_PROTO),
        ctor(ids::DISPLAY_NAMES, "DisplayNames", "DisplayNames_", 2, ids::DISPLAY_NAMES_PROTO),
        ctor(ids::LIST_FORMAT, "ListFormat", "ListFormat_", 0, ids::LIST_FORMAT_PROTO),
        ctor(ids::LOCALE, "Locale", "Locale_", 1, ids::LOCALE_PROTO),
        ctor(ids::NUMBER_FORMAT, "NumberFormat", "NumberFormat_", 0, ids::NUMBER_FORMAT_PROTO),
        ctor(ids::PLURAL_RULES, "PluralRules", "PluralRules_", 0, ids::PLURAL_RULES_PROTO),
        ctor(
            ids::RELATIVE_TIME_FORMAT,
            "RelativeTimeFormat",
            "RelativeTimeFormat_",
            0,
            ids::RELATIVE_TIME_FORMAT_PROTO,
        ),
        ctor(ids::SEGMENTER, "Segmenter", "Segmenter_", 0, ids::SEGMENTER_PROTO),
    ],
    lists: &[
        (ids::NUMBER_FORMAT_PROTO, "NumberFormatPrototype"),
        (ids::PLURAL_RULES_PROTO, "PluralRulesPrototype"),
        (ids::DATE_TIME_FORMAT_PROTO, "DateTimeFormatPrototype"),
        (ids::COLLATOR, "IntlStatics"),
        (ids::DATE_TIME_FORMAT, "IntlStatics"),
        (ids::DISPLAY_NAMES, "IntlStatics"),
        (ids::LIST_FORMAT, "IntlStatics"),
        (ids::NUMBER_FORMAT, "IntlStatics"),
        (ids::PLURAL_RULES, "IntlStatics"),
        (ids::RELATIVE_TIME_FORMAT, "IntlStatics"),
        (ids::SEGMENTER, "IntlStatics"),
    ],
    source: include_str!("intl.js"),
    extra: |r| {
        for (name, class, proto) in CLASSES {
            r.put(ids::INTL, name, Value::Obj(class), attr::HIDDEN);
            r.tag(proto, &format!("Intl.{name}"));
        }
        r.list(ids::INTL, "IntlFunctions");
        r.tag(ids::INTL, "Intl");
        r.global("Intl", Value::Obj(ids::INTL));
    },
    ..EMPTY
};

impl Vm<'_> {
    fn intl_error(&mut self, error: &IntlError) -> Raise {
        self.range_error(&error.to_string())
    }

    /// Whether the program's generation has `Intl`, to which its locale methods then leave locales and options.
    pub(super) fn has_intl(&self) -> bool {
        self.p.prelude.functions.contains_key("NumberSetup")
    }

    /// Charges the work on this many units of text.
    pub(super) fn charge_units(&mut self, units: usize) {
        self.charge_work(units / UNITS_PER_INSTRUCTION);
    }
}

/// The formatter of the text in the first argument; `extra` completes the key of those that depend on more.
fn formatter<T>(
    vm: &mut Vm<'_>,
    c: &NativeCall,
    (kind, extra): (&'static str, &str),
    make: impl FnOnce(&str, &FormatOptions) -> Result<T, IntlError>,
    wrap: fn(Rc<T>) -> Formatter,
    known: fn(&Formatter) -> Option<Rc<T>>,
) -> Res<Rc<T>> {
    let text = format!("{}{extra}", vm.arg_text(c, 0));
    formatter_of(vm, (kind, &text), make, wrap, known)
}

/// The formatter of this kind and text.
fn formatter_of<T>(
    vm: &mut Vm<'_>,
    (kind, text): (&'static str, &str),
    make: impl FnOnce(&str, &FormatOptions) -> Result<T, IntlError>,
    wrap: fn(Rc<T>) -> Formatter,
    known: fn(&Formatter) -> Option<Rc<T>>,
) -> Res<Rc<T>> {
    vm.charge_work(CALL_PRICE);
    let key = (kind, text.to_owned());
    if let Some(found) = FORMATTERS.with_borrow(|all| all.get(&key).and_then(known)) {
        return Ok(found);
    }
    let (tag, lines) = key.1.split_once('\n').unwrap_or((&key.1, ""));
    let made = make(tag, &FormatOptions::parse(lines)).map_err(|error| vm.intl_error(&error))?;
    let made = Rc::new(made);
    FORMATTERS.with_borrow_mut(|all| {
        if all.len() >= MOST_FORMATTERS {
            all.clear();
        }
        all.insert(key, wrap(Rc::clone(&made)));
    });
    Ok(made)
}

macro_rules! formatter {
    ($vm:expr, $c:expr, $kind:literal, $extra:expr, $variant:ident, $make:expr) => {
        formatter($vm, $c, ($kind, $extra), $make, Formatter::$variant, |all| match all {
            Formatter::$variant(known) => Some(Rc::clone(known)),
            _ => None,
        })
    };
}

/// Types and values in turn, or the whole text.
fn parts_or_text(vm: &mut Vm<'_>, parts: &[TextPart], as_parts: bool) -> Ret {
    vm.charge_units(parts.iter().map(|part| part.1.len()).sum());
    if as_parts {
        let texts = parts.iter().flat_map(|(kind, value)| [*kind, value.as_str()]);
        let list: Vec<Value> = texts.map(|text| vm.st.heap.str_value(text)).collect();
        return vm.new_array(list).into();
    }
    let text: String = parts.iter().map(|part| part.1.as_str()).collect();
    vm.st.heap.str_value(&text).into()
}

/// The decimal digits of a number, of a `BigInt`, or of a string, whose digits are kept if it has no exponent.
fn decimal_text(vm: &mut Vm<'_>, value: Value) -> Res<String> {
    let of_number = |n: f64| {
        if n == 0.0 && n.is_sign_negative() { "-0".to_owned() } else { plain_decimal(&number::to_string(n)) }
    };
    match value {
        Value::Big(id) if vm.st.heap.big(id).bits() > MOST_BITS => Err(vm.intl_error(&IntlError::Digits)),
        Value::Big(_) => Ok(vm.plain_text(value)),
        Value::Str(id) => {
            let text = vm.st.heap.str(id);
            vm.st.debt = vm.st.debt.saturating_add((text.len() / UNITS_PER_INSTRUCTION) as u64);
            let digits = text.to_utf8();
            let digits = digits.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let digits = digits.strip_prefix('+').unwrap_or(digits);
            let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
            if is_digits(whole.strip_prefix('-').unwrap_or(whole)) && is_digits(fraction) {
                return Ok(digits.to_owned());
            }
            Ok(of_number(number::string_to_number(&text)))
        }
        other => Ok(of_number(other.as_num().unwrap_or(f64::NAN))),
    }
}

/// `$intlNumber(format, value, parts)`: of a number, a `BigInt` or a string.
fn intl_number(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let format = formatter!(vm, &c, "number", "", Number, NumberFormat::new)?;
    let text = decimal_text(vm, vm.arg(&c, 1))?;
    let parts = format.format(&text).map_err(|error| vm.intl_error(&error))?;
    Ok(parts_or_text(vm, &parts, vm.arg(&c, 2) == Value::Bool(true)))
}

fn plural(vm: &mut Vm<'_>, c: &NativeCall) -> Res<Rc<PluralFormat>> {
    formatter!(vm, c, "plural", "", Plural, |tag, options| {
        PluralFormat::new(tag, options.text("type") == "ordinal", options)
    })
}

/// `$intlPlural(format, number)`
fn intl_plural(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let rules = plural(vm, &c)?;
    let value = vm.arg_number(&c, 1)?;
    let text = if value == 0.0 { "0".to_owned() } else { plain_decimal(&number::to_string(value)) };
    Ok(vm.st.heap.str_value(rules.select(&text)).into())
}

/// `$intlPluralCategories(format)`: in the order in which Node has them.
fn plural_categories(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let known = plural(vm, &c)?.categories();
    let order = ["few", "many", "one", "two", "zero", "other"];
    let names = order.iter().filter(|name| known.contains(name));
    let list: Vec<Value> = names.map(|name| vm.st.heap.str_value(name)).collect();
    Ok(vm.new_array(list).into())
}

fn date_format(vm: &mut Vm<'_>, c: &NativeCall) -> Res<Rc<DateFormat>> {
    formatter!(vm, c, "date", "", Date, |tag, options| {
        let zone = TimeZoneRules::named(options.text("timeZone"));
        DateFormat::new(tag, options, zone.ok_or(IntlError::Value)?)
    })
}

/// `$intlDate(format, time, parts)`: a number of milliseconds since 1970.
fn intl_date(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let format = date_format(vm, &c)?;
    let time = crate::pure::date::time_clip(vm.arg_number(&c, 1)?);
    if time.is_nan() {
        return Err(vm.range_error("Invalid time value"));
    }
    let parts = format.format(time).map_err(|error| vm.intl_error(&error))?;
    Ok(parts_or_text(vm, &parts, vm.arg(&c, 2) == Value::Bool(true)))
}

/// `$intlDateFacts(format)`: the hour cycle, or undefined, and the fields of the pattern.
fn date_facts(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let format = date_format(vm, &c)?;
    let cycle = format.hour_cycle().map_or(Value::Undefined, |cycle| vm.st.heap.str_value(cycle));
    let pattern = vm.st.heap.str_value(format.pattern());
    Ok(vm.new_array(vec![cycle, pattern]).into())
}

/// Whether a text has more combining marks in a row than a comparison takes in time that is linear in the text.
fn has_long_marks(text: Text<'_>) -> bool {
    let Text::Wide(units) = text else { return false };
    let is_mark = |letter| unicode_normalization::char::canonical_combining_class(letter) != 0;
    let mut marks = 0;
    for decoded in char::decode_utf16(units.iter().copied()) {
        marks = if decoded.is_ok_and(is_mark) { marks + 1 } else { 0 };
        if marks > MOST_MARKS {
            return true;
        }
    }
    false
}

/// `$intlCompare(format, one, other)`: -1, 0 or 1.
fn intl_compare(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let collator = formatter!(vm, &c, "collator", "", Collator, |tag, options| {
        TextCollator::new(tag, options.text("sensitivity"), options.text("ignorePunctuation") == "true")
    })?;
    compare(vm, &collator, (vm.arg(&c, 1), vm.arg(&c, 2)))
}

/// `localeCompare` with a locale that is a string, and no options: a sort calls it for each two texts.
pub(super) fn compare_in(vm: &mut Vm<'_>, locale: Id, texts: (Value, Value)) -> Res<Ret> {
    let tag = vm.st.heap.str(locale).slice(0, MOST_TAG_UNITS + 1).to_utf8();
    let key = ("collator of a locale", tag.as_str());
    let collator = formatter_of(
        vm,
        key,
        |tag, _| {
            let canonical = Some(tag).filter(|tag| tag.len() <= MOST_TAG_UNITS);
            let canonical = canonical.and_then(vm_system_intl::canonical);
            let canonical = canonical.ok_or_else(|| IntlError::Tag(tag.chars().take(40).collect()))?;
            let keywords = ["co", "kf", "kn"].map(Keyword::parse);
            TextCollator::new(&resolve(&[canonical], &keywords).tag, "variant", false)
        },
        Formatter::Collator,
        |known| match known {
            Formatter::Collator(known) => Some(Rc::clone(known)),
            _ => None,
        },
    )?;
    compare(vm, &collator, texts)
}

fn compare(vm: &mut Vm<'_>, collator: &TextCollator, texts: (Value, Value)) -> Res<Ret> {
    let text = |value| match value {
        Value::Str(id) => vm.st.heap.str(id),
        _ => Text::Narrow(&[]),
    };
    let (one, other) = (text(texts.0), text(texts.1));
    let units = one.len() + other.len();
    let order = (!has_long_marks(one) && !has_long_marks(other))
        .then(|| collator.compare(&one.to_wide(), &other.to_wide()));
    vm.charge_units(units);
    order.map(|order| Value::Int(order as i32).into()).ok_or_else(|| {
        let what = format!("a text with more than {MOST_MARKS} combining marks in a row");
        vm.range_error(&format!("Intl: {what} cannot be compared"))
    })
}

fn list_texts(vm: &mut Vm<'_>, c: &NativeCall) -> Res<Rc<ListTexts>> {
    formatter!(vm, c, "list", "", List, |tag, options| {
        ListTexts::new(tag, options.text("type"), options.text("style"))
    })
}

/// `$intlList(format, list)`: of strings.
fn intl_list(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let format = list_texts(vm, &c)?;
    let items = vm.dense(vm.arg(&c, 1)).map(|list| list.dense.clone()).unwrap_or_default();
    let units = |item: Value| match item {
        Value::Str(id) => vm.st.heap.str(id).to_wide(),
        _ => Vec::new(),
    };
    let items: Vec<Vec<u16>> = items.into_iter().map(units).collect();
    let text = format.join_units(&items);
    vm.charge_units(text.len() + items.len() * UNITS_PER_INSTRUCTION);
    Ok(Value::Str(vm.st.heap.new_wide(&text)).into())
}

/// `$intlListLiterals(format, count)`: the texts around so many elements.
fn list_literals(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    /// In no text: it shows where the elements are.
    const MARK: &str = "\u{fdd0}";
    let format = list_texts(vm, &c)?;
    // The prelude has a list of so many elements.
    let count = vm.arg_number(&c, 1)?.clamp(0.0, 1e8) as usize;
    vm.charge_work(count);
    let text = format.join(&vec![MARK.to_owned(); count]);
    let literals: Vec<Value> = text.split(MARK).map(|text| vm.st.heap.str_value(text)).collect();
    Ok(vm.new_array(literals).into())
}

/// A number with at most three digits of a fraction.
fn three_digits(value: f64) -> f64 {
    if value.abs() < 1e21 { number::to_fixed(value, 3).parse().unwrap_or(value) } else { value }
}

/// `$intlRelative(format, number, unit)`
fn intl_relative(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let value = vm.arg_number(&c, 1)?;
    if !value.is_finite() {
        return Err(vm.range_error("Invalid value for Intl.RelativeTimeFormat.prototype.format()"));
    }
    let unit = vm.arg_text(&c, 2);
    let extra = format!("unit={unit}\n");
    let format = formatter!(vm, &c, "relative", &extra, Relative, |tag, options| {
        RelativeFormat::new(
            tag,
            options.text("style"),
            options.text("numeric") == "auto",
            options.text("unit"),
        )
    })?;
    let text = if value == 0.0 && value.is_sign_negative() {
        "-0".to_owned()
    } else {
        // A fraction that is rounded to zero keeps its sign.
        let rounded = three_digits(value);
        let sign = if rounded == 0.0 && rounded.is_sign_negative() { "-" } else { "" };
        format!("{sign}{}", plain_decimal(&number::to_string(rounded)))
    };
    let text = format.format(&text).map_err(|error| vm.intl_error(&error))?;
    Ok(vm.st.heap.str_value(&text).into())
}

/// `$intlName(format, type, code)`: the canonical code, and its name or undefined; undefined if the code is not well formed.
fn intl_name(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (kind, code) = (vm.arg_text(&c, 1), super::intl_tags::short_text(vm, &c, 2));
    let Some(code) = code.and_then(|code| vm_system_intl::canonical_code(&kind, &code)) else {
        return Ok(Value::Undefined.into());
    };
    let names = formatter!(vm, &c, "names", "", Names, |tag, options| {
        let is_standard = options.text("languageDisplay") == "standard";
        LocaleNames::new(tag, options.text("type"), options.text("style"), is_standard)
    })?;
    let name = names.name_of(&code).map_or(Value::Undefined, |name| vm.st.heap.str_value(&name));
    let code = vm.st.heap.str_value(&code);
    Ok(vm.new_array(vec![code, name]).into())
}

/// `$intlThis(value)`: the number or `BigInt` of a wrapper, the time of a date, or the primitive itself.
fn intl_this(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let value = vm.arg(&c, 0);
    let Value::Obj(id) = value else { return Ok(value.into()) };
    Ok(match vm.st.heap.obj(id).kind {
        ObjectKind::Primitive(value) => value,
        ObjectKind::Date(time) => Value::num(time),
        _ => Value::Undefined,
    }
    .into())
}
