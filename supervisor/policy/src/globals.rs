//! The globals that a row of kind `global` switches off. Names of the language that literals and syntax lean on can go
//! as globals too; `{}`, `[]` and `async` go on working without their names.

/// By their JavaScript names.
pub const SWITCHABLE: &[&str] = &[
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "Atomics",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "Buffer",
    "CC",
    "DataView",
    "Date",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "Object",
    "Promise",
    "Proxy",
    "Reflect",
    "RegExp",
    "Set",
    "SharedArrayBuffer",
    "String",
    "Symbol",
    "TextDecoder",
    "TextEncoder",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "atob",
    "btoa",
    "clearImmediate",
    "clearInterval",
    "clearTimeout",
    "console",
    "escape",
    "eval",
    "performance",
    "process",
    "queueMicrotask",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "unescape",
];

/// What the original called modules and what is part of the language: such a row switches the global.
const BUILT_IN: &[(&str, &str)] = &[
    ("array", "Array"),
    ("console", "console"),
    ("date", "Date"),
    ("json", "JSON"),
    ("math", "Math"),
    ("object", "Object"),
    ("promise", "Promise"),
    ("string", "String"),
];

/// The global of a built-in module's name.
pub(super) fn of_built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(module, _)| *module == name).map(|(_, global)| *global)
}

/// Names of built-in modules.
pub(super) fn built_ins() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(module, _)| *module).collect()
}
