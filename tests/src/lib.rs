//! Whole-system tests: real processes, driven through the real binary. The library is what the tests share.
