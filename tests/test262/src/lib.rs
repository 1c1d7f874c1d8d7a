//! Runs the ECMAScript conformance suite test262 (not vendored; its path is in `VM_SYSTEM_TEST262`) against the engines of sessions and of programs.
//!
//! Reading order: [`suite`] finds the tests and assigns each to a set, [`metadata`] reads their front matter, [`section`] has the parts
//! that are run, each with one engine, [`pool`] sends tests to children over [`protocol`], [`child`] runs one with its [`engine`],
//! [`expectations`] compares with the committed list of failures, [`report`] counts, [`page`] writes the page for readers. The binary
//! and the test target call [`cli`].
//! Must not: use more of an engine than its public functions, and those only in [`cvm`] and [`quickjs`].

pub mod child;
pub mod cli;
pub mod cvm;
pub mod engine;
pub mod expectations;
pub mod metadata;
pub mod page;
pub mod pool;
pub mod protocol;
pub mod quickjs;
pub mod report;
pub mod section;
pub mod suite;
