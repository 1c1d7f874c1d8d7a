//! The parts that the fuzz targets share. Decides nothing about the product.
//!
//! - [`pieces`]: an input as a list of steps
//! - [`verbs`]: the verbs on a store in a temporary folder and a runtime without processes; a handler that refuses every verb

pub mod pieces;
pub mod verbs;
