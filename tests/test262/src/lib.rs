//! Runs the ECMAScript conformance suite test262 (not vendored; its path is in `VM_SYSTEM_TEST262`) against cvm.
//!
//! Reading order: [`suite`] finds the tests and says which set each is in, [`metadata`] reads what a test says about itself,
//! [`pool`] hands tests to children over [`protocol`], [`child`] runs one with the [`engine`], [`expectations`] compares
//! with the committed list of failures, [`report`] counts, [`page`] writes the page for readers. [`cli`] is what the binary and the test target call.
//! Must not: know more of cvm than its public functions, and that only in [`engine`].

pub mod child;
pub mod cli;
pub mod engine;
pub mod expectations;
pub mod metadata;
pub mod page;
pub mod pool;
pub mod protocol;
pub mod report;
pub mod suite;
