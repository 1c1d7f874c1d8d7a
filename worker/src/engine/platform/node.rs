//! Owns the modules of Node that need no right: their names, the parts that define them, and native functions that these share. What
//! a module needs beside these is a file of its own.

use super::super::inspect::{Boxed, Inspector, LineRules, ObjectClass};
use super::super::own_scripts::own_text;
use super::super::state::SharedState;
use super::super::{console, sys};
use super::{Part, node_async, node_crypto, node_zlib, part};
use rquickjs::{Array, Ctx, Function, Object, Result, Value};

/// A module: its name, the part that defines it, and the name of its exports in what the part returns.
struct NodeModule(&'static str, &'static str, &'static str);

const MODULES: &[NodeModule] = &[
    NodeModule("assert", "node_assert", "assert"),
    NodeModule("assert/strict", "node_assert", "strict"),
    NodeModule("async_hooks", "node_async", "asyncHooks"),
    NodeModule("buffer", "node_index", "buffer"),
    NodeModule("child_process", "node_refused", "child_process"),
    NodeModule("cluster", "node_refused", "cluster"),
    NodeModule("console", "node_index", "console"),
    NodeModule("constants", "node_small", "constants"),
    NodeModule("crypto", "node_crypto", "crypto"),
    NodeModule("diagnostics_channel", "node_small", "diagnosticsChannel"),
    NodeModule("dns", "node_refused", "dns"),
    NodeModule("events", "node_events", "events"),
    NodeModule("http", "node_http", "http"),
    NodeModule("https", "node_http", "https"),
    NodeModule("module", "node_index", "module"),
    NodeModule("net", "node_refused", "net"),
    NodeModule("os", "node_small", "os"),
    NodeModule("path", "node_path", "path"),
    NodeModule("path/posix", "node_path", "path"),
    NodeModule("path/win32", "node_path", "win32"),
    NodeModule("perf_hooks", "node_small", "perfHooks"),
    NodeModule("process", "node_index", "process"),
    NodeModule("punycode", "node_index", "punycode"),
    NodeModule("querystring", "node_querystring", "querystring"),
    NodeModule("readline", "node_more", "readline"),
    NodeModule("readline/promises", "node_more", "readlinePromises"),
    NodeModule("stream", "node_stream", "stream"),
    NodeModule("stream/consumers", "node_more", "consumers"),
    NodeModule("stream/promises", "node_stream", "promises"),
    NodeModule("stream/web", "node_more", "web"),
    NodeModule("string_decoder", "node_small", "string_decoder"),
    NodeModule("sys", "node_util", "util"),
    NodeModule("timers", "node_small", "timers"),
    NodeModule("timers/promises", "node_small", "timersPromises"),
    NodeModule("tls", "node_refused", "tls"),
    NodeModule("tty", "node_small", "tty"),
    NodeModule("url", "node_url", "url"),
    NodeModule("util", "node_util", "util"),
    NodeModule("util/types", "node_types", ""),
    NodeModule("v8", "node_refused", "v8"),
    NodeModule("vm", "node_refused", "vm"),
    NodeModule("worker_threads", "node_refused", "worker_threads"),
    NodeModule("zlib", "node_zlib", "zlib"),
];

/// Modules of Node that no session gets, and why.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["dgram", "dns/promises", "http2", "_http_agent", "_http_client", "_tls_wrap"],
        "sessions have no sockets; `fetch`, `http` and `https` make requests",
    ),
    (&["inspector", "inspector/promises", "trace_events"], "it is about the engine of Node"),
    (&["repl"], "sessions have no terminal"),
    (&["sqlite"], "the module of sessions for SQLite is `database`"),
    (&["domain", "wasi", "sea", "test", "test/reporters"], "it is not implemented"),
];

pub(super) const PARTS: &[Part] = &[
    part("node_errors", "node:errors", own_text!("node/errors.js"), &[]),
    part("node_errno", "node:errno", own_text!("node/errno.js"), &[]),
    part("node_types", "node:types", own_text!("node/types.js"), &[]),
    part("node_compare", "node:compare", own_text!("node/compare.js"), &[]),
    part("node_path", "node:path", own_text!("node/path.js"), &[]),
    part("node_path_win32", "node:path_win32", own_text!("node/path_win32.js"), &[]),
    part("node_events", "node:events", own_text!("node/events.js"), &[]),
    part("node_util", "node:util", own_text!("node/util.js"), &[]),
    part("node_parse_args", "node:parse_args", own_text!("node/parse_args.js"), &[]),
    part("node_querystring", "node:querystring", own_text!("node/querystring.js"), &[]),
    part("node_url", "node:url", own_text!("node/url.js"), &[]),
    part("node_assert", "node:assert", own_text!("node/assert.js"), &[]),
    part("node_small", "node:small", own_text!("node/small.js"), &[]),
    part("node_process", "node:process", own_text!("node/process.js"), &[]),
    part("node_readable", "node:readable", own_text!("node/readable.js"), &[]),
    part("node_stream", "node:stream", own_text!("node/stream.js"), &[]),
    part("node_stdin", "node:stdin", own_text!("node/stdin.js"), &[]),
    part("node_stream_tools", "node:stream_tools", own_text!("node/stream_tools.js"), &[]),
    part("node_more", "node:more", own_text!("node/more.js"), &[]),
    Part {
        natives: node_async::install,
        ..part("node_async", "node:async", own_text!("node/async.js"), &[])
    },
    part("node_ciphers", "node:ciphers", own_text!("node/ciphers.js"), &[]),
    part("node_files", "node:files", own_text!("node/files.js"), &[]),
    Part {
        natives: node_crypto::install,
        ..part("node_crypto", "node:crypto", own_text!("node/crypto.js"), &[])
    },
    Part { natives: node_zlib::install, ..part("node_zlib", "node:zlib", own_text!("node/zlib.js"), &[]) },
    part("node_http", "node:http", own_text!("node/http.js"), &[]),
    part("node_refused", "node:refused", own_text!("node/refused.js"), &[]),
    part("node_index", "node:index", own_text!("node/index.js"), &[]),
];

/// The name of a module of Node that sessions have, or refuse, without `node:`.
pub(in crate::engine) fn module_name(name: &str) -> Option<&'static str> {
    let module = MODULES.iter().map(|module| module.0).find(|known| *known == name);
    module.or_else(|| REFUSED.iter().flat_map(|(names, _)| *names).copied().find(|known| *known == name))
}

/// Whether sessions have this module without a grant.
pub(in crate::engine) fn is_available(name: &str) -> bool {
    MODULES.iter().any(|module| module.0 == name)
}

/// Why sessions do not have this module.
pub(in crate::engine) fn refusal(name: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(names, _)| names.contains(&name)).map(|(_, why)| *why)
}

/// The names of all modules that sessions have without a grant.
fn names() -> Vec<&'static str> {
    MODULES.iter().map(|module| module.0).collect()
}

/// The exports of a module that sessions have.
pub(in crate::engine) fn exports<'js>(ctx: &Ctx<'js>, state: &SharedState, name: &str) -> Result<Value<'js>> {
    let module = MODULES.iter().find(|module| module.0 == name);
    let NodeModule(_, part, key) = module.ok_or(rquickjs::Error::Unknown)?;
    let part: Object = state.captured_function(ctx, "part")?.call((*part,))?;
    if key.is_empty() { Ok(part.into_value()) } else { part.get(*key) }
}

/// `inspect(value, depth, breakLength, compact)`, `format(values)`, `kindOf(value)`, `nodeModules()`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let inspect = move |ctx: Ctx<'js>,
                        value: Value<'js>,
                        depth: i32,
                        break_length: rquickjs::function::Opt<f64>,
                        compact: rquickjs::function::Opt<f64>| {
        let usual = LineRules::default();
        let rules = LineRules {
            break_length: break_length.0.map_or(usual.break_length, |length| length as usize),
            compact: compact.0.map_or(usual.compact, |levels| levels as usize),
            ..usual
        };
        vm_system_inspect::inspect_with(&Inspector::new(&ctx, &shared), &value, depth, rules)
    };
    natives.set("inspect", Function::new(ctx.clone(), inspect)?)?;
    let shared = state.clone();
    let format = move |ctx: Ctx<'js>, values: Array<'js>| -> Result<String> {
        let values = values.iter::<Value>().collect::<Result<Vec<_>>>()?;
        let inspector = Inspector::new(&ctx, &shared);
        Ok(vm_system_inspect::format_message(&inspector, &values, console::text_limit(&shared)))
    };
    natives.set("format", Function::new(ctx.clone(), format)?)?;
    let shared = state.clone();
    natives.set(
        "kindOf",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, value: Value<'js>| kind_of(&ctx, &shared, &value))?,
    )?;
    natives.set("nodeModules", Function::new(ctx.clone(), names)?)
}

/// Kind of a value by QuickJS's class: a name of `captured.samples`, `proxy`, `namespace`, or nothing for functions and objects of
/// other classes.
fn kind_of<'js>(ctx: &Ctx<'js>, state: &SharedState, value: &Value<'js>) -> &'static str {
    let Some(object) = value.as_object() else { return "" };
    let classes = Inspector::new(ctx, state).classes;
    match classes.kind(object) {
        ObjectClass::Proxy => "proxy",
        ObjectClass::Error => "error",
        ObjectClass::DomException => "dom_exception",
        ObjectClass::Promise => "promise",
        ObjectClass::Date => "date",
        ObjectClass::RegExp => "regexp",
        ObjectClass::Map => "map",
        ObjectClass::Set => "set",
        ObjectClass::ArrayBuffer => "array_buffer",
        ObjectClass::SharedArrayBuffer => "shared_array_buffer",
        ObjectClass::DataView => "data_view",
        ObjectClass::WeakMap => "weak_map",
        ObjectClass::WeakSet => "weak_set",
        ObjectClass::WeakRef => "weak_ref",
        ObjectClass::Boxed(Boxed::Number) => "number",
        ObjectClass::Boxed(Boxed::String) => "string",
        ObjectClass::Boxed(Boxed::Boolean) => "boolean",
        ObjectClass::Boxed(Boxed::Symbol) => "symbol",
        ObjectClass::Boxed(Boxed::Bigint) => "bigint",
        ObjectClass::Arguments => "arguments",
        ObjectClass::Generator => "generator",
        ObjectClass::AsyncGenerator => "async_generator",
        ObjectClass::MapIterator => "map_iterator",
        ObjectClass::SetIterator => "set_iterator",
        ObjectClass::Namespace => "namespace",
        ObjectClass::Plain if classes.is_ordinary(object) => "plain",
        ObjectClass::Function => {
            let class = sys::class_id(object);
            if class == classes.generator_function {
                "generator_function"
            } else if class == classes.async_function {
                "async_function"
            } else if class == classes.async_generator_function {
                "async_generator_function"
            } else {
                ""
            }
        }
        ObjectClass::Array | ObjectClass::TypedArray(_) | ObjectClass::Pairs | ObjectClass::Plain => "",
    }
}
