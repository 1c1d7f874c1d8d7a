//! What the tests of every crate share. Must depend on nothing, so that any crate can use it as a dev-dependency.

mod random;
mod skipping;

pub use random::SeededRandom;
pub use skipping::skip;
