//! JavaScript values as text, in the form of Node's `util.inspect` with its default options, and the methods of `console`, for
//! every engine that implements [`EngineValues`].
//!
//! No code of a script runs: own properties are read through their descriptors, and getters, proxies, `toString` and
//! replaced prototypes are never called. The work is bounded by the size of the text.
//!
//! Reading order: `values` (what an engine provides), `format` (the traversal), `members`, `error`, `layout`, `text`; then
//! `message` (`%` directives), `table` and `console`. Must not: use an engine, do I/O, read a clock.

#![forbid(unsafe_code)]

mod console;
mod error;
mod format;
mod layout;
mod members;
mod message;
mod table;
mod text;
mod values;

pub use console::{ConsoleMemory, ConsoleMethod, ConsoleOutput, METHODS, OutputLevel, call};
pub use error::error_header;
pub use layout::LineRules;
pub use message::format_message;
pub use text::{CUT_MARK, cut_to};
pub use values::{
    Boxed, EngineValues, FunctionKind, IteratorItems, IteratorRest, MapEntries, ObjectClass, OwnKey,
    Property, Settled, ShownField, ShownFields, Uninitialized, ValueType,
};

use format::Formatter;

/// Levels that are shown.
const DEPTH: usize = 2;
/// Levels that may be shown: each takes space on the stack.
const MOST_LEVELS: usize = 1_000;

/// A value as `util.inspect` shows it, cut to [`EngineValues::TEXT_BYTES`].
pub fn inspect<E: EngineValues>(engine: &E, value: &E::Value) -> String {
    inspect_to_depth(engine, value, DEPTH)
}

/// As [`inspect`], with another depth.
pub fn inspect_to_depth<E: EngineValues>(engine: &E, value: &E::Value, depth: usize) -> String {
    cut_to(Formatter::new(engine, depth).value(value, 0, false), E::TEXT_BYTES)
}

/// As [`inspect`], with other rules for lines, and not cut; a negative depth shows only what kind of object it is.
pub fn inspect_with<E: EngineValues>(engine: &E, value: &E::Value, depth: i32, rules: LineRules) -> String {
    let mut formatter = Formatter::new(engine, usize::try_from(depth).unwrap_or(0).min(MOST_LEVELS));
    formatter.rules = rules;
    formatter.value(value, usize::from(depth < 0), false)
}
