//! The web platform's parsers and serializers, for both engines: URLs, forms, base64, text encodings.
//!
//! Owns: pure functions on text and bytes. Must not: use an engine, do I/O, keep state.

#![forbid(unsafe_code)]

mod base64_text;
mod encoding;
mod url_parts;

pub use base64_text::{from_base64, to_base64};
pub use encoding::{DecodeError, decode, encoding_of};
pub use url::Url;
pub use url_parts::{parse, part, read_form, set_part, write_form};
