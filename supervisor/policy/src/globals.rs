//! The globals that a row of kind `global` switches off. Globals that literals and syntax use can be switched off
//! too; `{}`, `[]` and `async` still work without the globals.

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

/// Parts of the language that the original calls modules: a module row for one of them switches the global.
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
