//! Methods that depend on a locale: `lang/locale.js` has what is right; here is what programs refuse instead of a wrong text.

#[path = "common/compared.rs"]
mod compared;

use compared::{compare, texts};

fn thrown(expression: &str) -> String {
    texts(&format!("try {{ console.log({expression}); }} catch (e) {{ console.log(`${{e}}`); }}")).join("\n")
}

#[test]
fn another_locale_and_options_are_refused_by_name() {
    for (expression, message) in [
        (
            "(1).toLocaleString('de')",
            "Number.prototype.toLocaleString: programs have the locale en-US only, not de",
        ),
        (
            "(1).toLocaleString(undefined, {})",
            "Number.prototype.toLocaleString: programs do not have its options",
        ),
        (
            "(1n).toLocaleString('hi')",
            "BigInt.prototype.toLocaleString: programs have the locale en-US only, not hi",
        ),
        (
            "[1].toLocaleString('de')",
            "Number.prototype.toLocaleString: programs have the locale en-US only, not de",
        ),
        (
            "new Date(0).toLocaleString('en-GB')",
            "Date.prototype.toLocaleString: programs have the locale en-US only, not en-GB",
        ),
        (
            "new Date(0).toLocaleDateString([], { dateStyle: 'full' })",
            "Date.prototype.toLocaleDateString: programs do not have its options",
        ),
        ("new Date(0).toLocaleTimeString('x-y z')", "Incorrect locale information provided: x-y z"),
        (
            "'i'.toLocaleUpperCase('tr')",
            "String.prototype.toLocaleUpperCase: programs do not have the letters of tr",
        ),
        (
            "'I'.toLocaleLowerCase(['lt'])",
            "String.prototype.toLocaleLowerCase: programs do not have the letters of lt",
        ),
        (
            "'a'.localeCompare('b', 'en', { caseFirst: 'upper' })",
            "String.prototype.localeCompare: programs do not have its option caseFirst: upper",
        ),
        (
            "'a'.localeCompare('b', 'en', { get numeric() { return true } })",
            "String.prototype.localeCompare: programs do not have its option numeric",
        ),
        ("'a'.localeCompare('b', '*')", "Incorrect locale information provided: *"),
        (
            "[[new Date(0)]].toLocaleString('fr')",
            "Date.prototype.toLocaleString: programs have the locale en-US only, not fr",
        ),
    ] {
        assert_eq!(thrown(expression), format!("RangeError: {message}"), "{expression}");
    }
    assert_eq!(thrown("(1).toLocaleString(5)"), "TypeError: Incorrect locale information provided");
    assert_eq!(
        thrown("'a'.localeCompare('b', 'en', new Map())"),
        "TypeError: String.prototype.localeCompare: its options must be a plain object"
    );
}

/// 400 generated numbers with Node's texts.
#[test]
fn numbers_are_those_of_node() {
    let compared = compare(&[include_str!("common/numbers.txt")], &[]);
    assert_eq!(compared, 1);
}
