//! Shared code of the tests of every crate. Must not depend on anything, so that any crate can use it as a dev-dependency.

mod random;
mod skipping;

pub use random::SeededRandom;
pub use skipping::skip;
