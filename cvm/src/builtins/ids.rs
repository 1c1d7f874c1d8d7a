//! Fixed heap ids: single-unit strings, names the engine uses, well-known symbols, objects of the realm.
//!
//! Owns: the first part of the realm's layout. Ids are stored: entries are only appended to a list, into the ids that are
//! reserved after it. An entry that was appended after the release of a generation is not in that generation: code that can run
//! for its programs must not use such an id (see `generations`).

#![allow(dead_code, reason = "the prelude names most of these at run time")]
#![allow(clippy::doc_markdown, reason = "the documentation is the object's name in the specification")]

use crate::value::{Id, Key};

macro_rules! ids {
    ($list:ident, $order:ident, $first:expr, $($name:ident $text:literal)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u32)]
        enum $order { $($name),* }
        $(
            #[doc = $text]
            pub(crate) const $name: Id = Id($first + $order::$name as u32);
        )*
        /// Name and text of each, in order of their ids.
        pub(crate) const $list: &[(&str, &str)] = &[$((stringify!($name), $text)),*];
    };
}

/// The empty string; the ids below are the strings of one Latin-1 unit.
pub(crate) const EMPTY: Id = Id(256);

/// First id of each list; the unused ids of a list are reserved for later names.
const FIRST_ATOM: u32 = 257;
const FIRST_SYMBOL: u32 = 512;
const FIRST_OBJECT: u32 = 544;

ids! { ATOMS, Atom, FIRST_ATOM,
    LENGTH "length" NAME "name" PROTOTYPE "prototype" CONSTRUCTOR "constructor" MESSAGE "message" STACK "stack"
    CAUSE "cause" VALUE "value" DONE "done" NEXT "next" GET "get" SET "set" TO_STRING "toString" VALUE_OF "valueOf"
    UNDEFINED "undefined" NULL "null" TRUE "true" FALSE "false" NAN "NaN" INFINITY "Infinity" MINUS_INFINITY "-Infinity"
    OBJECT_T "object" FUNCTION_T "function" NUMBER_T "number" STRING_T "string" BOOLEAN_T "boolean" SYMBOL_T "symbol"
    BIGINT_T "bigint" DEFAULT "default" RETURN "return" THROW "throw" INDEX "index" INPUT "input" GROUPS "groups"
    RAW "raw" LAST_INDEX "lastIndex" ERRORS "errors" TO_JSON "toJSON" INDICES "indices" MAIN "main" THEN "then"
    ENUMERABLE "enumerable" CONFIGURABLE "configurable" WRITABLE "writable" CALLEE "callee" PROTO "__proto__"
}

ids! { SYMBOLS, Symbol, FIRST_SYMBOL,
    SYM_ITERATOR "Symbol.iterator" SYM_ASYNC_ITERATOR "Symbol.asyncIterator" SYM_HAS_INSTANCE "Symbol.hasInstance"
    SYM_TO_PRIMITIVE "Symbol.toPrimitive" SYM_TO_STRING_TAG "Symbol.toStringTag" SYM_SPECIES "Symbol.species"
    SYM_IS_CONCAT_SPREADABLE "Symbol.isConcatSpreadable" SYM_UNSCOPABLES "Symbol.unscopables" SYM_MATCH "Symbol.match"
    SYM_MATCH_ALL "Symbol.matchAll" SYM_REPLACE "Symbol.replace" SYM_SEARCH "Symbol.search" SYM_SPLIT "Symbol.split"
    SYM_DISPOSE "Symbol.dispose" SYM_ASYNC_DISPOSE "Symbol.asyncDispose"
    ERROR_DATA "`[[ErrorData]]`: the stack of an error, a key that no program can name"
}

ids! { OBJECTS, Object, FIRST_OBJECT,
    OBJECT_PROTO "%Object.prototype%" FUNCTION_PROTO "%Function.prototype%" ARRAY_PROTO "%Array.prototype%"
    STRING_PROTO "%String.prototype%" NUMBER_PROTO "%Number.prototype%" BOOLEAN_PROTO "%Boolean.prototype%"
    SYMBOL_PROTO "%Symbol.prototype%" BIGINT_PROTO "%BigInt.prototype%" ERROR_PROTO "%Error.prototype%"
    TYPE_ERROR_PROTO "%TypeError.prototype%" RANGE_ERROR_PROTO "%RangeError.prototype%"
    REFERENCE_ERROR_PROTO "%ReferenceError.prototype%" SYNTAX_ERROR_PROTO "%SyntaxError.prototype%"
    EVAL_ERROR_PROTO "%EvalError.prototype%" URI_ERROR_PROTO "%URIError.prototype%"
    AGGREGATE_ERROR_PROTO "%AggregateError.prototype%" CC_ERROR_PROTO "%CCError.prototype%"
    CC_TIMEOUT_ERROR_PROTO "%CCTimeoutError.prototype%" ITERATOR_PROTO "%Iterator.prototype%"
    ARRAY_ITERATOR_PROTO "%ArrayIteratorPrototype%" STRING_ITERATOR_PROTO "%StringIteratorPrototype%"
    MAP_ITERATOR_PROTO "%MapIteratorPrototype%" SET_ITERATOR_PROTO "%SetIteratorPrototype%"
    REGEXP_STRING_ITERATOR_PROTO "%RegExpStringIteratorPrototype%" GENERATOR_FUNCTION_PROTO "%GeneratorFunction.prototype%"
    GENERATOR_PROTO "%GeneratorPrototype%" ASYNC_FUNCTION_PROTO "%AsyncFunction.prototype%"
    ASYNC_GENERATOR_FUNCTION_PROTO "%AsyncGeneratorFunction.prototype%" ASYNC_GENERATOR_PROTO "%AsyncGeneratorPrototype%"
    ASYNC_ITERATOR_PROTO "%AsyncIteratorPrototype%" ASYNC_FROM_SYNC_PROTO "%AsyncFromSyncIteratorPrototype%"
    PROMISE_PROTO "%Promise.prototype%" MAP_PROTO "%Map.prototype%" SET_PROTO "%Set.prototype%"
    WEAK_MAP_PROTO "%WeakMap.prototype%" WEAK_SET_PROTO "%WeakSet.prototype%" WEAK_REF_PROTO "%WeakRef.prototype%"
    FINALIZATION_REGISTRY_PROTO "%FinalizationRegistry.prototype%" DATE_PROTO "%Date.prototype%"
    REGEXP_PROTO "%RegExp.prototype%" ITERATOR_HELPER_PROTO "%IteratorHelperPrototype%"
    WRAP_ITERATOR_PROTO "%WrapForValidIteratorPrototype%" GLOBAL "globalThis" OBJECT "%Object%" FUNCTION "%Function%"
    ARRAY "%Array%" STRING "%String%" NUMBER "%Number%" BOOLEAN "%Boolean%" SYMBOL "%Symbol%" BIGINT "%BigInt%"
    ERROR "%Error%" TYPE_ERROR "%TypeError%" RANGE_ERROR "%RangeError%" REFERENCE_ERROR "%ReferenceError%"
    SYNTAX_ERROR "%SyntaxError%" EVAL_ERROR "%EvalError%" URI_ERROR "%URIError%" AGGREGATE_ERROR "%AggregateError%"
    CC_ERROR "%CCError%" CC_TIMEOUT_ERROR "%CCTimeoutError%" ITERATOR "%Iterator%" PROMISE "%Promise%" MAP "%Map%"
    SET_CTOR "%Set%" WEAK_MAP "%WeakMap%" WEAK_SET "%WeakSet%" WEAK_REF "%WeakRef%"
    FINALIZATION_REGISTRY "%FinalizationRegistry%" DATE "%Date%" REGEXP "%RegExp%" PROXY "%Proxy%" REFLECT "%Reflect%"
    MATH "%Math%" JSON "%JSON%" CONSOLE "%console%" FS "%fs%" GENERATOR_FUNCTION "%GeneratorFunction%"
    ASYNC_FUNCTION "%AsyncFunction%" ASYNC_GENERATOR_FUNCTION "%AsyncGeneratorFunction%" ARRAY_VALUES "%Array.prototype.values%"
    ARRAY_ITERATOR_NEXT "%ArrayIteratorPrototype%.next" REGEXP_EXEC "%RegExp.prototype.exec%" MAP_SET "%Map.prototype.set%"
    SET_ADD "%Set.prototype.add%" PROMISE_THEN "%Promise.prototype.then%" PROMISE_RESOLVE "%Promise.resolve%"
    THROW_TYPE_ERROR "%ThrowTypeError%" ARRAY_TO_STRING "%Array.prototype.toString%" OBJECT_TO_STRING "%Object.prototype.toString%"
    FUNCTION_HAS_INSTANCE "%Function.prototype[Symbol.hasInstance]%" OBJECT_VALUE_OF "%Object.prototype.valueOf%"
    DISPOSABLE_STACK "%DisposableStack%" DISPOSABLE_STACK_PROTO "%DisposableStack.prototype%"
    ASYNC_DISPOSABLE_STACK "%AsyncDisposableStack%" ASYNC_DISPOSABLE_STACK_PROTO "%AsyncDisposableStack.prototype%"
    SUPPRESSED_ERROR "%SuppressedError%" SUPPRESSED_ERROR_PROTO "%SuppressedError.prototype%"
    REJECTIONS "rejected promises that nothing handles yet, oldest first: a map that no program can reach"
    CONSOLE_STATE "groups, counters and timers of `console`: an object that no program can reach"
    URL "%URL%" URL_PROTO "%URL.prototype%" URL_SEARCH_PARAMS "%URLSearchParams%"
    URL_SEARCH_PARAMS_PROTO "%URLSearchParams.prototype%" URL_SEARCH_PARAMS_ITERATOR_PROTO "%URLSearchParamsIteratorPrototype%"
    DOM_EXCEPTION "%DOMException%" DOM_EXCEPTION_PROTO "%DOMException.prototype%" CRYPTO "%crypto%"
    ARRAY_BUFFER "%ArrayBuffer%" ARRAY_BUFFER_PROTO "%ArrayBuffer.prototype%" DATA_VIEW "%DataView%"
    DATA_VIEW_PROTO "%DataView.prototype%" TYPED_ARRAY "%TypedArray%" TYPED_ARRAY_PROTO "%TypedArray.prototype%"
    INT8_ARRAY "%Int8Array%" INT8_ARRAY_PROTO "%Int8Array.prototype%"
    UINT8_ARRAY "%Uint8Array%" UINT8_ARRAY_PROTO "%Uint8Array.prototype%"
    UINT8_CLAMPED_ARRAY "%Uint8ClampedArray%" UINT8_CLAMPED_ARRAY_PROTO "%Uint8ClampedArray.prototype%"
    INT16_ARRAY "%Int16Array%" INT16_ARRAY_PROTO "%Int16Array.prototype%"
    UINT16_ARRAY "%Uint16Array%" UINT16_ARRAY_PROTO "%Uint16Array.prototype%"
    INT32_ARRAY "%Int32Array%" INT32_ARRAY_PROTO "%Int32Array.prototype%"
    UINT32_ARRAY "%Uint32Array%" UINT32_ARRAY_PROTO "%Uint32Array.prototype%"
    BIG_INT64_ARRAY "%BigInt64Array%" BIG_INT64_ARRAY_PROTO "%BigInt64Array.prototype%"
    BIG_UINT64_ARRAY "%BigUint64Array%" BIG_UINT64_ARRAY_PROTO "%BigUint64Array.prototype%"
    FLOAT16_ARRAY "%Float16Array%" FLOAT16_ARRAY_PROTO "%Float16Array.prototype%"
    FLOAT32_ARRAY "%Float32Array%" FLOAT32_ARRAY_PROTO "%Float32Array.prototype%"
    FLOAT64_ARRAY "%Float64Array%" FLOAT64_ARRAY_PROTO "%Float64Array.prototype%"
    TEXT_ENCODER "%TextEncoder%" TEXT_ENCODER_PROTO "%TextEncoder.prototype%" TEXT_DECODER "%TextDecoder%"
    TEXT_DECODER_PROTO "%TextDecoder.prototype%"
    HEADERS "%Headers%" HEADERS_PROTO "%Headers.prototype%" HEADERS_ITERATOR_PROTO "%HeadersIteratorPrototype%"
    REQUEST "%Request%" REQUEST_PROTO "%Request.prototype%" RESPONSE "%Response%" RESPONSE_PROTO "%Response.prototype%"
    INTL "%Intl%" COLLATOR "%Intl.Collator%" COLLATOR_PROTO "%Intl.Collator.prototype%"
    DATE_TIME_FORMAT "%Intl.DateTimeFormat%" DATE_TIME_FORMAT_PROTO "%Intl.DateTimeFormat.prototype%"
    DISPLAY_NAMES "%Intl.DisplayNames%" DISPLAY_NAMES_PROTO "%Intl.DisplayNames.prototype%"
    LIST_FORMAT "%Intl.ListFormat%" LIST_FORMAT_PROTO "%Intl.ListFormat.prototype%"
    LOCALE "%Intl.Locale%" LOCALE_PROTO "%Intl.Locale.prototype%"
    NUMBER_FORMAT "%Intl.NumberFormat%" NUMBER_FORMAT_PROTO "%Intl.NumberFormat.prototype%"
    PLURAL_RULES "%Intl.PluralRules%" PLURAL_RULES_PROTO "%Intl.PluralRules.prototype%"
    RELATIVE_TIME_FORMAT "%Intl.RelativeTimeFormat%" RELATIVE_TIME_FORMAT_PROTO "%Intl.RelativeTimeFormat.prototype%"
    SEGMENTER "%Intl.Segmenter%" SEGMENTER_PROTO "%Intl.Segmenter.prototype%"
    SEGMENTS_PROTO "%IntlSegmentsPrototype%" SEGMENT_ITERATOR_PROTO "%IntlSegmentIteratorPrototype%"
}

/// First cell after the fixed ones.
pub(crate) const FIRST_FREE: u32 = 1024;

const _: () = assert!(FIRST_ATOM + ATOMS.len() as u32 <= FIRST_SYMBOL);
const _: () = assert!(FIRST_SYMBOL + SYMBOLS.len() as u32 <= FIRST_OBJECT);
const _: () = assert!(FIRST_OBJECT + OBJECTS.len() as u32 <= FIRST_FREE);

/// All fixed cells after the single units, each with its text: names, symbols, objects.
pub(crate) fn fixed() -> [(Id, &'static [(&'static str, &'static str)]); 3] {
    [(Id(FIRST_ATOM), ATOMS), (Id(FIRST_SYMBOL), SYMBOLS), (Id(FIRST_OBJECT), OBJECTS)]
}

/// Fixed object or symbol by the name the prelude uses after `$$`.
pub(crate) fn realm_id(name: &str) -> Option<Id> {
    let at = |list: &[(&str, &str)], first: u32| {
        list.iter().position(|(n, _)| *n == name).map(|i| Id(first + i as u32))
    };
    at(SYMBOLS, FIRST_SYMBOL).or_else(|| at(OBJECTS, FIRST_OBJECT))
}

/// `[Symbol.iterator]` for `$$SYM_ITERATOR`: the form of a symbol in a function's name.
pub(crate) fn symbol_shown(name: &str) -> String {
    let name = name.strip_prefix("$$").unwrap_or(name);
    SYMBOLS.iter().find(|(n, _)| *n == name).map_or_else(String::new, |(_, text)| format!("[{text}]"))
}

/// The name of a fixed object: `%Array.prototype%`.
pub(crate) fn object_shown(id: Id) -> &'static str {
    let at = id.0.wrapping_sub(FIRST_OBJECT) as usize;
    OBJECTS.get(at).map_or("", |(_, text)| text)
}

/// The key of a fixed name or symbol.
pub(crate) const fn key(id: Id) -> Key {
    Key(id.0)
}
