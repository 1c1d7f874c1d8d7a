//! JSON text: a scanner that turns it into events, and quoting of strings.
//!
//! Owns: the grammar of ECMA-404 as ECMA-262 25.5.1 uses it, and 25.5.2.3 `QuoteJSONString`. Must not: build values; the
//! caller keeps its own stack of containers, so nothing recurses however deep the text is.

mod quote;
mod scan;

pub(crate) use quote::{quote, quote_readably};
pub(crate) use scan::{JsonError, JsonErrorKind, JsonEvent, JsonScanner, JsonToken, is_raw_primitive};
