//! QuickJS's C code with the patches of `patches/`, which no release has yet (docs/decisions/028). Linked instead of the same code of
//! `rquickjs-sys`, whose declarations stay valid: no patch changes a header. Has no Rust code, and must not get any.

// Named so that the linker gets this crate's code first: a crate comes before those that it uses.
use rquickjs_sys as _;
