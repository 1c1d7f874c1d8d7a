//! Owns the parts of the web platform that are evaluated when a session first uses one of their globals: their sources, the
//! globals that they define, and their native functions. A session that uses none of them pays nothing. Must not reach outside of
//! the process.

mod brotli;
mod compression;
mod crypto;
mod encoding;
pub(super) mod http;
mod intl;
pub(super) mod node;
mod node_async;
mod node_crypto;
mod node_zlib;
pub(super) mod sys;
mod text;
mod url;

pub(crate) use compression::expand;

use super::compiled::sys::CompiledScript;
use super::own_scripts::{OwnScript, own_text};
use super::preload::function_of;
use super::state::SharedState;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};
use std::collections::HashMap;

/// A part of the platform. Its script is a function of its own natives, the natives of all, and what the prelude captured; it
/// returns an object with the part's globals, and whatever other parts use of it.
struct Part {
    name: &'static str,
    script: OwnScript,
    globals: &'static [&'static str],
    natives: for<'js> fn(&Ctx<'js>, &SharedState, &Object<'js>) -> Result<()>,
}

const fn part(
    name: &'static str,
    file: &'static str,
    text: &'static str,
    globals: &'static [&'static str],
) -> Part {
    Part { name, script: OwnScript { name: file, text }, globals, natives: |_, _, _| Ok(()) }
}

const PARTS: &[Part] = &[
    Part { natives: url::install, ..part("url", "vm:url", own_text!("url.js"), &["URL", "URLSearchParams"]) },
    part(
        "event",
        "vm:event",
        own_text!("event.js"),
        &["Event", "CustomEvent", "EventTarget", "AbortController", "AbortSignal"],
    ),
    part(
        "message",
        "vm:message",
        own_text!("message.js"),
        &["BroadcastChannel", "MessageChannel", "MessagePort", "MessageEvent"],
    ),
    part("classes", "vm:classes", own_text!("classes.js"), &[]),
    part("blob", "vm:blob", own_text!("blob.js"), &["Blob", "File", "FormData"]),
    Part { natives: http::install, ..part("exchange", "vm:exchange", own_text!("exchange.js"), &[]) },
    part("fetch", "vm:fetch", own_text!("fetch.js"), &["fetch"]),
    part("http", "vm:http", own_text!("http.js"), &["Headers", "Request", "Response"]),
    part(
        "readable",
        "vm:readable",
        own_text!("readable.js"),
        &[
            "ReadableStream",
            "ReadableStreamDefaultReader",
            "ReadableStreamDefaultController",
            "ReadableByteStreamController",
            "ByteLengthQueuingStrategy",
            "CountQueuingStrategy",
        ],
    ),
    Part {
        natives: compression::install,
        ..part(
            "writable",
            "vm:writable",
            own_text!("writable.js"),
            &[
                "WritableStream",
                "WritableStreamDefaultWriter",
                "WritableStreamDefaultController",
                "TransformStream",
                "TransformStreamDefaultController",
                "TextEncoderStream",
                "TextDecoderStream",
                "CompressionStream",
                "DecompressionStream",
            ],
        )
    },
    Part {
        natives: crypto::install,
        ..part(
            "crypto",
            "vm:crypto",
            own_text!("crypto.js"),
            &["crypto", "Crypto", "CryptoKey", "SubtleCrypto"],
        )
    },
    part(
        "performance",
        "vm:performance",
        own_text!("performance.js"),
        &["PerformanceEntry", "PerformanceMark", "PerformanceMeasure"],
    ),
    Part { natives: intl::install, ..part("intl_base", "vm:intl_base", own_text!("intl_base.js"), &[]) },
    part("intl_number", "vm:intl_number", own_text!("intl_number.js"), &[]),
    part("intl_date", "vm:intl_date", own_text!("intl_date.js"), &[]),
    part("intl_text", "vm:intl_text", own_text!("intl_text.js"), &[]),
    part("intl", "vm:intl", own_text!("intl.js"), &["Intl"]),
];

/// Adds the function by which the prelude loads a part.
pub(super) fn install_natives<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    intl::learn_local_time_zone();
    encoding::install(ctx, natives)?;
    node::install(ctx, state, natives)?;
    let state = state.clone();
    let load = move |ctx: Ctx<'js>, name: String| -> Result<Array<'js>> {
        let part = PARTS.iter().chain(node::PARTS).find(|part| part.name == name);
        let part = part.ok_or_else(|| Exception::throw_reference(&ctx, &name))?;
        let make = match state.compiled.borrow().part(part.name) {
            Some(script) => script.evaluate(&ctx)?,
            None => function_of(&ctx, &part.script)?,
        };
        let own = Object::new(ctx.clone())?;
        (part.natives)(&ctx, &state, &own)?;
        let loaded = Array::new(ctx)?;
        loaded.set(0, make)?;
        loaded.set(1, own)?;
        Ok(loaded)
    };
    natives.set("platformPart", Function::new(ctx.clone(), load)?)
}

/// Parts that every zygote compiles: a collection in a session writes to the pages of what is compiled, so these are few.
pub(super) const COMMON_PARTS: &[&str] = &["node_path"];

/// The names of all parts.
pub(super) fn part_names() -> Vec<&'static str> {
    PARTS.iter().chain(node::PARTS).map(|part| part.name).collect()
}

/// The scripts of all parts.
#[cfg(test)]
pub(super) fn scripts() -> impl Iterator<Item = OwnScript> {
    PARTS.iter().chain(node::PARTS).map(|part| part.script)
}

/// Loads the scripts of parts, by their names.
pub(super) fn load_parts(ctx: &Ctx<'_>, names: &[&str]) -> HashMap<&'static str, CompiledScript> {
    let chosen = |part: &&Part| names.contains(&part.name);
    let compile = |part: &Part| Some((part.name, CompiledScript::of_ours(ctx, &part.script)?));
    PARTS.iter().chain(node::PARTS).filter(chosen).filter_map(compile).collect()
}

/// Defines the globals of all parts.
pub(super) fn install(captured: &Object<'_>) -> Result<()> {
    let capture: Function = captured.get("captureGlobals")?;
    let _: Value = capture.call(())?;
    let define: Function = captured.get("onFirstUse")?;
    for part in PARTS.iter().filter(|part| !part.globals.is_empty()) {
        let _: Value = define.call((part.name, part.globals.to_vec()))?;
    }
    Ok(())
}
