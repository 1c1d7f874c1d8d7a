//! Behaviour of regular expressions: examples, corner cases of the specification, and a comparison with `QuickJS`.

use super::*;
use vm_system_testkit::SeededRandom;

fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn compile(pattern: &str, flags: &str) -> Result<Regex, RegExpError> {
    Regex::compile(&utf16(pattern), Flags::parse(flags.as_bytes()).unwrap_or_default())
}

/// The groups of the first match as text, `-` for groups that did not participate; `none` without a match; or the error.
fn first(pattern: &str, flags: &str, text: &str) -> String {
    let regex = match compile(pattern, flags) {
        Ok(regex) => regex,
        Err(error) => return error.to_string(),
    };
    let units = utf16(text);
    let mut steps = 1_000_000;
    match regex.exec(units.as_slice(), 0, &mut steps) {
        Ok(None) => "none".to_owned(),
        Err(error) => error.to_string(),
        Ok(Some(groups)) => {
            let show = |group: &Option<std::ops::Range<usize>>| match group {
                Some(range) => String::from_utf16_lossy(&units[range.clone()]),
                None => "-".to_owned(),
            };
            groups.iter().map(show).collect::<Vec<_>>().join(",")
        }
    }
}

#[test]
fn examples_of_the_specification_and_others() {
    for (pattern, flags, text, expected) in [
        ("a|ab", "", "abc", "a"),
        ("((a)|(ab))((c)|(bc))", "", "abc", "abc,a,a,-,bc,-,bc"),
        ("a[a-z]{2,4}", "", "abcdefghi", "abcde"),
        ("a[a-z]{2,4}?", "", "abcdefghi", "abc"),
        ("(aa|aabaac|ba|b|c)*", "", "aabaac", "aaba,ba"),
        ("(z)((a+)?(b+)?(c))*", "", "zaacbbbcac", "zaacbbbcac,z,ac,a,-,c"),
        ("(a*)*", "", "b", ",-"),
        ("(a*)b\\1+", "", "baaaac", "b,"),
        ("(?=(a+))", "", "baaabac", ",aaa"),
        ("(?=(a+))a*b\\1", "", "baaabac", "aba,a"),
        ("(.*?)a(?!(a+)b\\2c)\\2(.*)", "", "baaabaac", "baaabaac,ba,-,abaac"),
        ("(?<=\\$)\\d+(\\.\\d*)?", "", "$10.53", "10.53,.53"),
        ("(?<!\\$)\\b\\d+", "", "$10 20", "20"),
        ("(?<=(\\d+)(\\d+))$", "", "1053", ",1,053"),
        ("(?<=\\1(.))b", "", "aab", "b,a"),
        ("(?:)", "", "x", ""),
        ("", "", "x", ""),
        ("[]", "", "x", "none"),
        ("[^]", "", "x", "x"),
        ("^b", "m", "a\nb", "b"),
        ("a$", "", "a\n", "none"),
        ("a.b", "", "a\u{2028}b", "none"),
        ("a.b", "s", "a\nb", "a\nb"),
        (".", "", "😀", "\u{fffd}"),
        ("^.$", "u", "😀", "😀"),
        ("\\u{1F600}", "u", "😀", "😀"),
        ("😀{2}", "u", "😀😀", "😀😀"),
        ("[^x]", "u", "😀", "😀"),
        ("\\bfoo\\b", "", "a foo b", "foo"),
        ("\\w", "iu", "\u{17F}", "\u{17F}"),
        ("\\W", "iu", "\u{17F}", "none"),
        ("[^\\W]", "iu", "\u{212A}", "\u{212A}"),
        ("(?<year>\\d{4})-(?<m>\\d\\d)", "", "2022-05", "2022-05,2022,05"),
        ("(?<a>x)|(?<a>y)", "", "y", "y,-,y"),
        ("(?:(?<a>x)|(?<a>y))\\k<a>", "", "yy", "yy,-,y"),
        ("(?i:a)b", "", "Ab", "Ab"),
        ("(?i:a)b", "", "AB", "none"),
        ("(?-i:a)b", "i", "aB", "aB"),
        ("[a-z]+", "i", "ABC", "ABC"),
        ("(a)\\1", "i", "aA", "aA,a"),
        ("\\p{Lu}", "u", "aB", "B"),
        ("\\P{Lu}", "u", "Ba", "a"),
        ("\\p{Lu}", "iu", "a", "a"),
        ("[\\p{L}--[a-z]]+", "v", "aBc", "B"),
        ("[[a-z]&&[aeiou]]+", "v", "xae", "ae"),
        ("[\\q{abc|a|}]", "v", "abcd", "abc"),
        ("^[\\q{abc|a|}]$", "v", "", ""),
        ("^\\p{Emoji_Keycap_Sequence}$", "v", "1\u{FE0F}\u{20E3}", "1\u{FE0F}\u{20E3}"),
        ("[^a]", "vi", "A", "none"),
        ("\\P{Ll}", "vi", "a", "none"),
        ("(?:a*?)*?b", "", "aab", "aab"),
        ("(?:a?){3}b", "", "aab", "aab"),
        ("(a){0}b", "", "b", "b,-"),
        ("(?:(a)|b){2}", "", "ab", "ab,-"),
        ("x{0,2147483648}y", "", "xxy", "xxy"),
        ("b{9007199254740991}", "", "b", "none"),
        ("\\0", "", "\u{0}", "\u{0}"),
        ("\\1(a)", "", "a", "a,a"),
        ("(?!(a))b|c", "", "c", "c,-"),
        ("(?=(?!(a)))", "", "b", ",-"),
        ("\\c", "", "\\c", "\\c"),
        ("{", "", "{", "{"),
        ("\\x4g", "", "x4g", "x4g"),
        ("^(?:.+)+$", "", "ab", "ab"),
    ] {
        assert_eq!(first(pattern, flags, text), expected, "/{pattern}/{flags} on {text:?}");
    }
}

#[test]
fn syntax_errors_are_reported() {
    for (pattern, flags) in [
        ("(", ""),
        (")", ""),
        ("*", ""),
        ("a**", ""),
        ("[b-a]", ""),
        ("\\", ""),
        ("{1}", "u"),
        ("\\u{110000}", "u"),
        ("\\-", "u"),
        ("(?<a>.)(?<a>.)", ""),
        ("\\k<a>", "u"),
        ("(?<a", ""),
        ("a{2,1}", ""),
        ("\\p{Nope}", "u"),
        ("[^\\p{Emoji_Keycap_Sequence}]", "v"),
        ("(?ii:a)", ""),
        ("(?<=a)*", ""),
    ] {
        assert!(matches!(compile(pattern, flags), Err(RegExpError::Syntax(_))), "/{pattern}/{flags}");
    }
}

#[test]
fn exponential_backtracking_stops_after_the_budget_of_steps() {
    let text = utf16(&"a".repeat(40));
    for pattern in ["(a+)+b", "(a|a)*b", "(?:a|aa)+$b", "(.*)*x", "(?:(?:a*)*)*b", "(?=(a+)+b)c|(a*)*b"] {
        let Ok(regex) = compile(pattern, "") else { panic!("{pattern}") };
        let mut steps = 200_000;
        assert_eq!(regex.exec(text.as_slice(), 0, &mut steps), Err(MatchError::OutOfSteps), "{pattern}");
        assert_eq!(steps, 0);
    }
}

#[test]
fn steps_are_the_same_for_the_same_work() {
    let Ok(regex) = compile("(a+)+b|c", "") else { panic!("compiles") };
    let text = utf16("aaaaaaaac");
    let count = || {
        let mut steps = 1_000_000;
        let result = regex.exec(text.as_slice(), 0, &mut steps);
        (result, steps)
    };
    assert_eq!(count(), count());
    let latin = regex.exec(b"aaaaaaaac".as_slice(), 0, &mut 1_000_000);
    assert_eq!(latin, count().0);
}

#[test]
fn open_alternatives_are_bounded() {
    let text = vec![u16::from(b'a'); 3_000_000];
    let Ok(regex) = compile("(?:a|b)*", "") else { panic!("compiles") };
    assert_eq!(regex.exec(text.as_slice(), 0, &mut u64::MAX.clone()), Err(MatchError::OutOfStack));
    let Ok(run) = compile("a*b", "y") else { panic!("compiles") };
    assert_eq!(run.exec(text.as_slice(), 0, &mut 20_000_000), Ok(None));
}

#[test]
fn deep_patterns_are_refused_before_the_parser_recurses() {
    for open in ["(", "(?:", "(?=", "(?<=", "[", "(?<a>"] {
        let pattern = open.repeat(100_000);
        assert!(compile(&pattern, "v").is_err());
    }
    let nested = format!("{}a{}", "(?:".repeat(MAX_NESTING), ")".repeat(MAX_NESTING));
    assert_eq!(first(&nested, "", "a"), "a");
    let starred = format!("{}a{}", "(?:".repeat(MAX_NESTING), ")*".repeat(MAX_NESTING));
    assert!(compile(&starred, "").is_ok());
}

#[test]
fn large_classes_cannot_fill_the_memory() {
    assert_eq!(compile(&"\\p{Basic_Emoji}".repeat(3000), "v").err(), Some(RegExpError::TooLarge));
    assert_eq!(compile(&"[\\p{L}a]".repeat(100_000), "u").err(), Some(RegExpError::TooLarge));
    assert_eq!(compile(&"[a-z]".repeat(100_000), "i").err(), Some(RegExpError::TooLarge));
    assert!(compile(&"[a-z]".repeat(100_000), "").is_ok());
}

#[test]
fn sticky_and_start_positions() {
    let Ok(sticky) = compile("b", "y") else { panic!("compiles") };
    let text = utf16("abb");
    assert_eq!(sticky.exec(text.as_slice(), 0, &mut 100), Ok(None));
    assert!(sticky.exec(text.as_slice(), 2, &mut 100).is_ok_and(|found| found.is_some()));
    assert_eq!(sticky.exec(text.as_slice(), 4, &mut 100), Ok(None));
    let Ok(unicode) = compile("\u{1F600}", "uy") else { panic!("compiles") };
    let found = unicode.exec(utf16("😀").as_slice(), 1, &mut 100);
    assert_eq!(found, Ok(Some(vec![Some(0..2)])), "an index inside a pair means the pair");
}

#[test]
fn names_list_their_groups_in_order() {
    let Ok(regex) = compile("(?<b>x)(?:(?<a>y)|(?<a>z))", "") else { panic!("compiles") };
    assert_eq!(regex.names(), [("b".to_owned(), vec![1]), ("a".to_owned(), vec![2, 3])]);
    assert_eq!(regex.captures(), 3);
}

/// The groups that `QuickJS` finds, `None` without a match; an error if it refuses the pattern or stops matching.
fn quickjs(
    context: &rquickjs::Ctx<'_>,
    pattern: &str,
    flags: &str,
    text: &str,
) -> Result<Option<Groups>, rquickjs::Error> {
    let source = format!(
        "(() => {{ const m = new RegExp({pattern:?}, {flags:?}).exec({text:?}); \
         return m ? m.indices.map(p => p ? p.join('-') : '').join(',') : 'none'; }})()"
    );
    let found: String = context.eval(source)?;
    if found == "none" {
        return Ok(None);
    }
    let group = |pair: &str| {
        let (start, end) = pair.split_once('-')?;
        Some(start.parse().ok()?..end.parse().ok()?)
    };
    Ok(Some(found.split(',').map(group).collect()))
}

/// Random patterns from a small grammar match the same groups here and in `QuickJS`.
#[test]
fn random_patterns_agree_with_quickjs() {
    let Ok(runtime) = rquickjs::Runtime::new() else { panic!("QuickJS starts") };
    let Ok(context) = rquickjs::Context::full(&runtime) else { panic!("QuickJS starts") };
    let mut random = SeededRandom::new(1);
    let mut compared = 0;
    for round in 0..3000 {
        let mut pattern = (0..=random.below(3)).map(|_| random_pattern(&mut random, 2)).collect::<String>();
        if pattern.contains('(') && random.below(4) == 0 {
            pattern.push_str("\\1");
        }
        let flags = ["d", "di", "du", "dm", "ds"][round % 5];
        let length = random.below(9);
        let text: String = (0..length).map(|_| ['a', 'b', 'c', 'A', '\n'][random.index(5)]).collect();
        let Ok(ours) = compile(&pattern, flags) else { continue };
        // A pattern with exponential backtracking has it in QuickJS too.
        let Ok(found) = ours.exec(utf16(&text).as_slice(), 0, &mut 20_000) else { continue };
        let Ok(expected) = context.with(|context| quickjs(&context, &pattern, flags, &text)) else {
            continue;
        };
        assert_eq!(found, expected, "/{pattern}/{flags} on {text:?}");
        compared += 1;
    }
    assert!(compared > 2500, "only {compared} patterns were compared");
}

fn random_pattern(random: &mut SeededRandom, depth: u32) -> String {
    let atom = match random.below(if depth == 0 { 7 } else { 14 }) {
        0..=2 => char::from(b'a' + random.below(3) as u8).to_string(),
        3 => ".".to_owned(),
        4 => "[ab]".to_owned(),
        5 => "[^a]".to_owned(),
        6 => ["^", "$", "\\b", "\\B"][random.index(4)].to_owned(),
        7 | 8 => format!("({})", random_pattern(random, depth - 1)),
        9 => format!("(?:{}|{})", random_pattern(random, depth - 1), random_pattern(random, depth - 1)),
        10 => format!("(?={})", random_pattern(random, depth - 1)),
        11 => format!("(?!{})", random_pattern(random, depth - 1)),
        12 => format!("(?<={})", random_pattern(random, depth - 1)),
        _ => format!("{}{}", random_pattern(random, depth - 1), random_pattern(random, depth - 1)),
    };
    let quantifiable = !matches!(atom.as_str(), "^" | "$" | "\\b" | "\\B") && !atom.starts_with("(?<");
    let tail = if quantifiable && random.below(3) == 0 {
        ["*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{0,2}?"][random.index(8)]
    } else {
        ""
    };
    format!("(?:{atom}){tail}").replace("(?:)", "")
}
