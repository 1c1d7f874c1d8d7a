//! Methods that depend on a locale without locales and options, which have a path of their own: `intl.rs` has the others.

use crate::compared::compare;

/// 400 generated numbers with Node's texts.
#[test]
fn numbers_are_those_of_node() {
    let compared = compare(&[include_str!("../common/numbers.txt")], &[]);
    assert_eq!(compared, 1);
}
