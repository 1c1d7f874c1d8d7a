//! Errors of texts that clients and operators write: the field and what it must be, without a word of the serde libraries.

use serde::Deserialize;
use serde_json::Value;
use vm_system_protocol::input::{NotForScript, json_for_script, parse_for_script, read_json, read_value};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Full,
    NoUserns,
    None,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    most: Option<u32>,
    #[serde(default)]
    on: bool,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    share: f64,
    name: String,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    env: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    pair: Option<(u8, u8)>,
}

fn why(text: &str) -> String {
    let text_error = read_json::<Document>("the body", text.as_bytes()).map(drop).expect_err(text);
    // A value that was parsed before has the same errors.
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && !text.contains("\"name\":\"a\",\"name\"")
    {
        let value_error = read_value::<Document>("the body", value).map(drop).expect_err(text);
        assert_eq!(text_error, value_error);
    }
    text_error
}

#[test]
fn errors_name_the_field_and_what_it_must_be() {
    let cases = [
        (
            "{\"rules\":[{\"name\":\"a\",\"paths\":\"x\"}]}",
            "`rules[0].paths` must be a list, not the text \"x\"",
        ),
        ("{\"rules\":{}}", "`rules` must be a list, not an object"),
        ("{\"rules\":[1]}", "`rules[0]` must be an object, not 1"),
        ("{\"rules\":[{\"name\":null}]}", "`rules[0].name` must be a text, not null"),
        ("{\"rules\":[{\"name\":[]}]}", "`rules[0].name` must be a text, not a list"),
        (
            "{\"rules\":[{\"name\":\"a\",\"most\":-1}]}",
            "`rules[0].most` must be a whole number from 0 to 4294967295, not -1",
        ),
        (
            "{\"rules\":[{\"name\":\"a\",\"most\":1.5}]}",
            "`rules[0].most` must be a whole number from 0 to 4294967295, not 1.5",
        ),
        (
            "{\"rules\":[{\"name\":\"a\",\"on\":\"yes\"}]}",
            "`rules[0].on` must be true or false, not the text \"yes\"",
        ),
        ("{\"rules\":[{\"name\":\"a\",\"share\":true}]}", "`rules[0].share` must be a number, not true"),
        (
            "{\"rules\":[{\"name\":\"a\",\"mode\":\"part\"}]}",
            "`rules[0].mode` must be `full`, `no-userns` or `none`, not `part`",
        ),
        ("{\"rules\":[{}]}", "`rules[0].name` is missing"),
        ("{\"rule\":[]}", "there is no field `rule`; a field is `rules`, `env` or `pair`"),
        (
            "{\"rules\":[{\"nam\":1}]}",
            "there is no field `rules[0].nam`; a field is `paths`, `most`, `on`, `mode`, `share` or `name`",
        ),
        ("{\"rules\":[{\"name\":\"a\",\"name\":\"b\"}]}", "`rules[0].name` is given twice"),
        ("{\"env\":{\"A\":1}}", "`env.A` must be a text, not 1"),
        ("{\"env\":{\"A\":{\"expected\":\", expected x\"}}}", "`env.A` must be a text, not an object"),
    ];
    for (text, expected) in cases {
        assert_eq!(why(text), expected, "{text}");
    }
}

#[test]
fn texts_that_are_not_json_say_where() {
    let cases = [
        (
            "{\"rules\":",
            "the body is not JSON: it ends too early (is a bracket, a brace or a quotation mark missing?) (line 1, column 9)",
        ),
        (
            "{rules:[]}",
            "the body is not JSON: a name in double quotation marks was expected here (line 1, column 2)",
        ),
        (
            "{\"rules\":[],}",
            "the body is not JSON: there is a comma after the last element (line 1, column 13)",
        ),
        (
            "{\"rules\":x}",
            "the body is not JSON: a value was expected here; texts need double quotation marks (line 1, column 10)",
        ),
        ("{} {}", "the body is not JSON: there is more text after its end (line 1, column 4)"),
    ];
    for (text, expected) in cases {
        assert_eq!(why(text), expected, "{text}");
    }
}

#[test]
fn no_word_of_the_libraries_is_left() {
    let texts = [
        "{\"rules\":[{\"name\":\"a\",\"paths\":3}]}",
        "{\"pair\":[1]}",
        "{\"pair\":7}",
        "[1]",
        "3",
        "\"\\x\"",
        "nul",
    ];
    for text in texts {
        let why = why(text);
        for word in ["sequence", "variant", "map", "EOF", "struct", "invalid type", "string", "tuple", "u32"]
        {
            assert!(!why.contains(word), "{text}: {why}");
        }
    }
}

#[test]
fn long_values_are_cut() {
    let long = format!("{{\"rules\":\"{}\"}}", "é".repeat(500));
    assert!(why(&long).chars().count() < 140, "{}", why(&long));
}

#[test]
fn integers_that_javascript_would_round_are_refused() {
    for exact in [
        "9007199254740992",
        "-9007199254740994",
        "18446744073709551616",
        "123456789012345",
        "[1e300,0.1234567890123456789]",
        "\"9007199254740993\"",
        "{\"9007199254740993\\\"\":1}",
        "9007199254740992.0",
        "9007199254740992e0",
        "0.00000000000000000000000001e3",
        "9007199254740991.5",
        "1e23",
        "1.1805916207174113e+21",
        "1.0000000000000000000",
        "0.0000000000000000000e999",
        "123456789012345678e-17",
        "1e308",
    ] {
        assert!(json_for_script(exact).is_ok(), "{exact}: {:?}", json_for_script(exact));
    }
    for rounded in [
        "9007199254740993.0",
        "9007199254740993e0",
        "-9007199254740993.00E+0",
        "9.007199254740993e15",
        "90071992547409930e-1",
        "{\"a\":12345678901234567891.0}",
        "9007199254740993",
        "{\"a\":[-123456789012345678901]}",
        "[1,10000000000000000000000001]",
    ] {
        let why = json_for_script(rounded).expect_err(rounded);
        assert!(why.contains("send it as a string"), "{why}");
    }
    for (text, shown) in [
        ("-9007199254740993", "the integer -9007199254740993 has"),
        ("[1,-9007199254740993.0]", "the integer -9007199254740993.0 has"),
        ("[1,9007199254740993]", "the integer 9007199254740993 has"),
    ] {
        let why = json_for_script(text).expect_err(text);
        assert!(why.contains(shown), "{text}: {why}");
    }
    for (text, reason) in [
        ("1e400", "out of range"),
        (&"[".repeat(130), "nested too deeply"),
        ("\"\\ud800\"", "surrogate pair"),
    ] {
        let why = json_for_script(text).expect_err(text);
        assert!(why.contains(reason), "{text}: {why}");
    }
}

#[test]
fn json_that_no_script_can_hold_is_distinguished_from_text_that_is_not_json() {
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    for (text, reason) in [
        ("1e400", "it has a number that is out of range (line 1, column 5)"),
        ("{\"a\":1e400}", "it has a number that is out of range"),
        (deep.as_str(), "it has lists or objects that are nested too deeply"),
        ("\"\\ud800\"", "it has a text with half of a surrogate pair, which is no character"),
        ("[\"\\udc00\"]", "half of a surrogate pair"),
        ("\"\\ud800\\u0041\"", "half of a surrogate pair"),
        ("9007199254740993", "send it as a string"),
        ("{\"a\":9007199254740993}", "send it as a string"),
    ] {
        match parse_for_script(text) {
            Err(NotForScript::Unsupported(why)) => assert!(why.contains(reason), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["", "1e400 apples", "[[[", "hello", "\"\\ud800", "{\"a\":9007199254740993", "1,000", "0x10"]
    {
        assert!(matches!(parse_for_script(text), Err(NotForScript::NotJson(_))), "{text}");
    }
}
