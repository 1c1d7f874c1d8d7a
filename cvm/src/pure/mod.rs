//! Leaf functions of the language: text, numbers, dates, JSON, regular expressions and mathematics as pure functions.
//!
//! Nothing here knows the heap, values, the realm or the interpreter. Every function is deterministic, takes plain
//! data and gives plain data, allocates in proportion to its input or its stated result, and never recurses deeper
//! than a fixed limit on input it did not make. Each names the clause of ECMA-262 that it implements.

pub mod bigint_text;
pub mod case;
pub mod date;
pub mod escape;
pub mod json;
pub mod math;
pub mod number;
pub mod regexp;
pub mod search;
pub mod substitution;
pub mod units;
pub mod uri;
