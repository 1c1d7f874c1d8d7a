//! `Intl` without formatters: tags of locales, words and lists of options, case, and segments of texts.

use super::ids;
use super::intl::MOST_TAG_UNITS;
use super::natives::{EMPTY, Module};
use crate::heap::text::Text;
use crate::pure::case;
use crate::value::Value;
use crate::vm::{NativeCall, Res, Ret, Vm};
use vm_system_intl::{Granularity, Keyword, TimeZoneRules, resolve, segments_from};

/// Price of parsing a tag, in instructions.
const TAG_PRICE: usize = 20;
/// Units that are searched at once for the segment with an index.
const SEARCH_UNITS: usize = 8_192;

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("intlCanonical", |vm, c| map(vm, &c, vm_system_intl::canonical)),
        ("intlLikely", |vm, c| {
            let more = vm.arg(&c, 1) == Value::Bool(true);
            map(vm, &c, |text| vm_system_intl::likely(text, more))
        }),
        ("intlSupported", |vm, c| Ok(Value::Bool(vm_system_intl::is_supported(&vm.arg_text(&c, 0))).into())),
        ("intlResolve", intl_resolve),
        ("intlIsWord", |vm, c| {
            let word = short_text(vm, &c, 0);
            let words = vm.arg_text(&c, 1);
            Ok(Value::Bool(word.is_some_and(|word| words.split('|').any(|one| one == word))).into())
        }),
        ("intlType", |vm, c| map(vm, &c, keyword_type)),
        ("intlHas", |vm, c| {
            let (key, word) = (vm.arg_text(&c, 0), short_text(vm, &c, 1).unwrap_or_default());
            let has = if key == "unit" {
                vm_system_intl::is_unit(&word)
            } else {
                vm_system_intl::NUMBERING_SYSTEMS.contains(&word.as_str())
            };
            Ok(Value::Bool(has).into())
        }),
        ("intlCurrency", |vm, c| {
            map(vm, &c, |text| {
                let is_code = text.len() == 3 && text.bytes().all(|letter| letter.is_ascii_alphabetic());
                is_code.then(|| text.to_ascii_uppercase())
            })
        }),
        ("intlMinorDigits", |vm, c| {
            Ok(Value::Int(i32::from(vm_system_intl::currency_digits(&vm.arg_text(&c, 0)))).into())
        }),
        ("intlZone", |vm, c| {
            map(vm, &c, |text| TimeZoneRules::named(text).map(|zone| zone.name().to_owned()))
        }),
        ("intlTimeUnit", |vm, c| {
            map(vm, &c, |text| {
                let units = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
                let unit = text.strip_suffix('s').unwrap_or(text);
                units.contains(&unit).then(|| unit.to_owned())
            })
        }),
        ("intlValues", intl_values),
        ("intlLocale", intl_locale),
        ("intlLocalePart", |vm, c| {
            let part = vm.arg_text(&c, 1);
            map(vm, &c, |text| vm_system_intl::locale_part(text, &part))
        }),
        ("intlCase", intl_case),
        ("intlSegment", intl_segment),
        ("intlSegmentAt", segment_at),
    ],
    lists: &[
        (ids::COLLATOR_PROTO, "CollatorPrototype"),
        (ids::LIST_FORMAT_PROTO, "ListFormatPrototype"),
        (ids::RELATIVE_TIME_FORMAT_PROTO, "RelativeTimeFormatPrototype"),
        (ids::SEGMENTER_PROTO, "SegmenterPrototype"),
        (ids::SEGMENTS_PROTO, "SegmentsPrototype"),
        (ids::SEGMENT_ITERATOR_PROTO, "SegmentIteratorPrototype"),
        (ids::DISPLAY_NAMES_PROTO, "DisplayNamesPrototype"),
        (ids::LOCALE_PROTO, "LocalePrototype"),
    ],
    source: include_str!("intl_text.js"),
    extra: |r| {
        r.heap.obj_mut(ids::SEGMENT_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        r.tag(ids::SEGMENT_ITERATOR_PROTO, "Segmenter String Iterator");
    },
    ..EMPTY
};

/// The text of a string argument that is no longer than a tag, a code or a name can be.
pub(super) fn short_text(vm: &mut Vm<'_>, c: &NativeCall, i: usize) -> Option<String> {
    vm.charge_work(TAG_PRICE);
    match vm.arg(c, i) {
        Value::Str(id) if vm.st.heap.str(id).len() <= MOST_TAG_UNITS => Some(vm.st.heap.str(id).to_utf8()),
        _ => None,
    }
}

/// The result of a function of a short text; undefined for none.
fn map(vm: &mut Vm<'_>, c: &NativeCall, f: impl Fn(&str) -> Option<String>) -> Res<Ret> {
    let found = short_text(vm, c, 0).and_then(|text| f(&text));
    Ok(optional(vm, found.as_deref()).into())
}

fn optional(vm: &mut Vm<'_>, text: Option<&str>) -> Value {
    text.map_or(Value::Undefined, |text| vm.st.heap.str_value(text))
}

/// Subtags of three to eight letters or digits, in lower case.
fn keyword_type(text: &str) -> Option<String> {
    let is_subtag =
        |part: &str| (3..=8).contains(&part.len()) && part.bytes().all(|one| one.is_ascii_alphanumeric());
    text.split('-').all(is_subtag).then(|| text.to_ascii_lowercase())
}

/// `$intlResolve(tags, keywords)`: the locale, the formatter's tag, and a value or undefined for each line of keywords.
fn intl_resolve(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let tags = vm.dense(vm.arg(&c, 0)).map(|list| list.dense.clone()).unwrap_or_default();
    vm.charge_work(TAG_PRICE + tags.len());
    let tags: Vec<String> = tags.into_iter().map(|tag| vm.plain_text(tag)).collect();
    let keywords: Vec<Keyword> = vm.arg_text(&c, 1).lines().map(Keyword::parse).collect();
    let found = resolve(&tags, &keywords);
    let mut list = vec![vm.st.heap.str_value(&found.locale), vm.st.heap.str_value(&found.tag)];
    for keyword in &keywords {
        let value = found.values.iter().find(|(key, _)| *key == keyword.key);
        list.push(optional(vm, value.map(|(_, value)| value.as_str())));
    }
    Ok(vm.new_array(list).into())
}

/// `$intlValues(key)`: of `Intl.supportedValuesOf`, or undefined.
fn intl_values(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let values = match short_text(vm, &c, 0).unwrap_or_default().as_str() {
        "calendar" => vm_system_intl::CALENDARS,
        "collation" => vm_system_intl::COLLATIONS,
        "currency" => vm_system_intl::CURRENCIES,
        "numberingSystem" => vm_system_intl::NUMBERING_SYSTEMS,
        "unit" => vm_system_intl::UNITS,
        "timeZone" => {
            let names = vm_system_intl::zone_names();
            vm.charge_work(names.len());
            let list: Vec<Value> = names.iter().map(|name| vm.st.heap.str_value(name)).collect();
            return Ok(vm.new_array(list).into());
        }
        _ => return Ok(Value::Undefined.into()),
    };
    let list: Vec<Value> = values.iter().map(|name| vm.st.heap.str_value(name)).collect();
    Ok(vm.new_array(list).into())
}

/// `$intlLocale(tag, language, script, region, ca, co, hc, kf, kn, nu)`: the tag with what is not undefined; undefined if it is
/// not well formed.
fn intl_locale(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let mut given = Vec::new();
    for i in 0..10 {
        let text = short_text(vm, &c, i);
        if text.is_none() && vm.arg(&c, i) != Value::Undefined {
            return Ok(Value::Undefined.into());
        }
        given.push(text);
    }
    let at = |i: usize| given.get(i).and_then(Option::as_deref);
    let keys = ["ca", "co", "hc", "kf", "kn", "nu"];
    let changed: Vec<(&str, &str)> =
        keys.iter().enumerate().filter_map(|(i, key)| Some((*key, at(4 + i)?))).collect();
    let made = vm_system_intl::locale_with(at(0).unwrap_or_default(), [at(1), at(2), at(3)], &changed);
    Ok(optional(vm, made.as_deref()).into())
}

/// `$intlCase(tag, upper, text)`
fn intl_case(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (tag, upper) = (vm.arg_text(&c, 0), vm.arg(&c, 1) == Value::Bool(true));
    let Value::Str(id) = vm.arg(&c, 2) else { return Ok(Value::Undefined.into()) };
    let text = vm.st.heap.str(id);
    let units = text.len();
    // No character becomes longer than three.
    if (units * 6) as u64 > vm.st.heap.limit {
        return Err(crate::vm::Raise::Limit(crate::state::VmLimitKind::Heap));
    }
    let wide = text.to_wide();
    // The other languages have the rules of all.
    let mapped = if vm_system_intl::has_own_case(&tag) {
        vm_system_intl::change_case(&tag, upper, &wide)
    } else if upper {
        case::to_upper_case(&wide)
    } else {
        case::to_lower_case(&wide)
    };
    vm.charge_units(units + mapped.len());
    Ok(Value::Str(vm.st.heap.new_wide(&mapped)).into())
}

/// The text of the natives of segments.
fn segmented<'v>(vm: &'v Vm<'_>, c: &NativeCall) -> Text<'v> {
    match vm.arg(c, 1) {
        Value::Str(id) => vm.st.heap.str(id),
        _ => Text::Narrow(&[]),
    }
}

/// `$intlSegment(granularity, text, start)`: where the segment that starts there ends, and whether it is like a word.
fn intl_segment(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let granularity = Granularity::named(&vm.arg_text(&c, 0));
    let from = vm.arg_number(&c, 2)?.max(0.0) as usize;
    let least = match granularity {
        Granularity::Grapheme => 16,
        Granularity::Word => 64,
        Granularity::Sentence => 256,
    };
    let text = segmented(vm, &c);
    let length = text.len();
    let (list, units) =
        segments_from(granularity, from, length, least, |from, to| text.slice(from, to).to_wide());
    vm.charge_work(units);
    let found = list.first().copied();
    let end = found.map_or(length, |segment| segment.end);
    let is_word = found.is_some_and(|segment| segment.is_word_like);
    Ok(vm.new_array(vec![Value::count(end), Value::Bool(is_word)]).into())
}

/// `$intlSegmentAt(granularity, text, start, index)`: start and end of the segment with this index, and whether it is like a word; a
/// later boundary alone if the segment is not among those that are found at once.
fn segment_at(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let granularity = Granularity::named(&vm.arg_text(&c, 0));
    let mut start = vm.arg_number(&c, 2)?.max(0.0) as usize;
    let index = vm.arg_number(&c, 3)?.max(0.0) as usize;
    let text = segmented(vm, &c);
    let (list, units) = segments_from(granularity, start, text.len(), SEARCH_UNITS, |from, to| {
        text.slice(from, to).to_wide()
    });
    vm.charge_work(units);
    for segment in list {
        if segment.end > index {
            let is_word = Value::Bool(segment.is_word_like);
            return Ok(vm.new_array(vec![Value::count(start), Value::count(segment.end), is_word]).into());
        }
        start = segment.end;
    }
    Ok(vm.new_array(vec![Value::count(start)]).into())
}
