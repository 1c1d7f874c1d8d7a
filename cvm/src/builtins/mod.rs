//! The builtins of the language: one file per object. Natives are in Rust (`x.rs`); functions that call user code are in
//! JavaScript (`x.js`, the prelude).
//!
//! A native never calls JavaScript: it reads its arguments, may request conversions (they suspend, see `vm`), and changes
//! nothing before the last of them. Code that gets, sets or calls properties of unknown objects is written in the prelude,
//! where every step can suspend by itself. Reading order: `ids`, `natives`, `prelude`, `realm`, `generations`.

#![allow(clippy::unnecessary_wraps, reason = "natives share one signature, and many cannot fail")]
#![allow(clippy::needless_update, reason = "modules name the parts they have and leave the rest to `EMPTY`")]

mod adjust;
mod array;
mod array_buffer;
mod array_dense;
mod array_methods;
mod bigint;
mod boolean;
pub(crate) mod collections;
mod console;
mod core;
mod data_view;
mod date;
mod date_set;
mod dispose;
mod elements;
mod encoding;
mod error;
mod fetch;
mod function;
pub(crate) mod generations;
mod generator;
mod global;
pub(crate) mod host;
pub(crate) mod ids;
mod intl;
mod intl_tags;
mod items;
mod iterator;
mod iterator_helpers;
mod json;
mod json_plain;
mod locale;
mod math;
pub(crate) mod natives;
mod number;
mod object;
mod outside;
pub(crate) mod prelude;
mod promise;
mod proxy;
pub(crate) mod realm;
mod regexp;
mod string;
mod string_make;
mod symbol;
mod table;
mod typed_array;
mod uri;
mod web;

pub use items::{MOST_EVENT_NAME_BYTES, MOST_TIMER_MS};
pub(crate) use regexp::RegExpCache;
