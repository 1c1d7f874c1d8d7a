//! Registers descriptors with the runtime's reactor. Knows no protocol.
//!
//! Reading order: [`sys`] (registering), [`stream`] (a byte stream that is watched for reading only).

mod stream;
mod sys;

pub use stream::{StreamReader, StreamWriter, split};
pub(crate) use sys::{WatchedFd, watch};
