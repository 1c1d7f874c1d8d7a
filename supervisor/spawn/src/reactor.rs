//! Descriptors and the runtime's reactor: what is watched, and for what. Knows no protocol.
//!
//! Reading order: [`sys`] (registering), [`stream`] (a byte stream that is watched for reading alone).

mod stream;
mod sys;

pub use stream::{StreamReader, StreamWriter, split};
pub(crate) use sys::watch;
