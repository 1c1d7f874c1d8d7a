//! Leaf functions of the language: text, numbers, dates, JSON, regular expressions and mathematics as pure functions.
//!
//! Nothing here uses the heap, values, the realm or the interpreter. Every function is deterministic, has plain data as input
//! and output, allocates in proportion to its input or its documented result, and never recurses deeper than a fixed limit on
//! untrusted input. Each names the clause of ECMA-262 that it implements.

#![allow(
    dead_code,
    unused_imports,
    reason = "a complete set of leaf functions, not all of which are used yet"
)]

pub(crate) mod base64;
pub(crate) mod bigint_text;
pub(crate) mod case;
pub(crate) mod date;
pub(crate) mod elements;
pub(crate) mod english;
pub(crate) mod escape;
pub(crate) mod json;
pub(crate) mod math;
pub(crate) mod number;
pub(crate) mod regexp;
pub(crate) mod search;
pub(crate) mod substitution;
pub(crate) mod units;
pub(crate) mod uri;
