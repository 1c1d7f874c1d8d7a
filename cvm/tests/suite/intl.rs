//! `Intl` of programs: Node's results as far as sessions have them, pauses and forks, and the limits of its work.

use crate::compared::{lines, texts};
use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, StateConfig, VmLimitKind, VmLimits, VmState,
    compile, resume_pause, run,
};

/// One case a line: an expression, a tab, and its JSON in Node 20; sessions run them, too.
const CASES: &str = include_str!("../../../intl/tests/cases.txt");
/// The expressions whose results differ, in both engines.
const KNOWN: &str = include_str!("../../../intl/tests/differences.txt");

fn program(source: &str) -> CompiledProgram {
    match compile(source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{source}\n{errors}"),
    }
}

fn answer(program: &CompiledProgram, state: &mut VmState, text: &str) {
    assert!(resume_pause(program, state, &PauseAnswer::Text(text.to_owned())));
}

fn restored(program: &CompiledProgram, state: &VmState) -> VmState {
    let mut state = state.clone();
    let stored = state.pages_since(program, 0).pages;
    let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
    VmState::restore(program, VmLimits::default(), pages).expect("its own pages")
}

#[test]
fn results_are_those_of_node_with_the_differences_of_sessions() {
    let cases: Vec<(&str, &str)> = CASES.lines().filter_map(|line| line.split_once('\t')).collect();
    let (mut unexpected, mut fixed) = (Vec::new(), Vec::new());
    for cases in cases.chunks(500) {
        let calls: Vec<String> =
            cases.iter().map(|(case, _)| format!("console.log(run(() => ({case})));\n")).collect();
        let source = format!(
            "const d = new Date(1767625445678), e = new Date(-62135596800000 + 1), f = new Date(1719878400000);\n\
             const run = (f) => {{ try {{ return JSON.stringify(f()); }} catch (error) {{ return error.name; }} }};\n{}",
            calls.concat()
        );
        let (found, end) = lines(&source, &[]);
        assert_eq!(found.len(), cases.len(), "{end}");
        for ((case, expected), (_, found)) in cases.iter().zip(&found) {
            let known = KNOWN.lines().any(|line| line == *case);
            if found != expected && !known {
                unexpected.push(format!("{case}\t{expected}\t{found}"));
            }
            if found == expected && known {
                fixed.push(*case);
            }
        }
    }
    assert!(cases.len() > 4_900, "{} cases", cases.len());
    assert!(unexpected.is_empty(), "{} differ:\n{}", unexpected.len(), unexpected.join("\n"));
    assert!(fixed.is_empty(), "{} differences are none any more:\n{}", fixed.len(), fixed.join("\n"));
}

/// Objects of all constructors, made before a pause and used after it.
const KEPT: &str = "
const n = new Intl.NumberFormat('de', { style: 'currency', currency: 'EUR' }), format = n.format;
const d = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'Asia/Tokyo' });
const c = new Intl.Collator('sv'), p = new Intl.PluralRules('ru'), l = new Intl.ListFormat('en', { type: 'disjunction' });
const r = new Intl.RelativeTimeFormat('fr', { numeric: 'auto' }), o = new Intl.Locale('zh-TW', { numeric: true });
const names = new Intl.DisplayNames('ja', { type: 'region' });
const words = new Intl.Segmenter('th', { granularity: 'word' }).segment('สวัสดีครับ hello');
const it = words[Symbol.iterator]();
it.next();
const by = CC('a number');
console.log(n.format === format, format(by), n.resolvedOptions().currency);
console.log(d.format(86400000 * by), d.resolvedOptions().timeZone, c.compare('z', 'ö'), p.select(+by), l.format(['a', by]));
console.log(r.format(-1, 'day'), o.maximize().toString(), o.numeric, names.of('DE'));
console.log([...it].map((s) => s.segment).join('|'), words.containing(12).segment);
";

#[test]
fn objects_survive_a_pause_and_a_fork() {
    let program = program(KEPT);
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    let text_after = |number: &str| {
        // On a thread of its own: without the formatters that were made before the pause.
        let (program, mut state) = (program.clone(), restored(&program, &state));
        let number = number.to_owned();
        std::thread::spawn(move || {
            answer(&program, &mut state, &number);
            let end = run(&program, &mut state, u64::MAX);
            assert!(matches!(end, RunOutcome::Done { .. }), "{end:?}");
            state.take_output().into_iter().map(|line| line.text).collect::<Vec<_>>()
        })
        .join()
        .expect("it ran")
    };
    assert_eq!(
        text_after("3"),
        [
            "true 3,00\u{a0}€ EUR",
            "4 January 1970 Asia/Tokyo -1 few a or 3",
            "hier zh-Hant-TW-u-kn true ドイツ",
            "ครับ| |hello hello",
        ]
    );
    assert_eq!(
        text_after("11")[..2],
        ["true 11,00\u{a0}€ EUR", "12 January 1970 Asia/Tokyo -1 many a or 11"]
    );
}

#[test]
fn conversions_of_options_and_values_may_pause() {
    let written = texts(
        "const ask = (text) => (CC('?'), text);
         const n = new Intl.NumberFormat([{ toString: () => ask('de') }], { get style() { return ask('unit'); }, \
           unit: { toString: () => ask('liter') }, get minimumFractionDigits() { return { valueOf: () => ask(2) }; } });
         console.log(n.format({ valueOf: () => ask(1.5) }), n.resolvedOptions().minimumFractionDigits);
         console.log(new Date(0).toLocaleDateString('en', { get month() { return ask('long'); } }));
         console.log('a'.localeCompare({ toString: () => ask('b') }, { get length() { return ask(1); }, get 0() { return ask('sv'); } }));
         console.log((5).toLocaleString('en', { get minimumIntegerDigits() { return ask(3); } }));
         console.log(new Intl.ListFormat('en').format(function* () { yield ask('x'); yield ask('y'); }()));
         console.log([{ toLocaleString: (...given) => ask(given.join(' ')) }].toLocaleString('fr', 7));",
    );
    assert_eq!(written, ["1,50 l 2", "January", "-1", "005", "x and y", "fr 7"]);
}

#[test]
fn a_comparison_in_a_language_is_that_of_its_collator() {
    let written = texts(
        "const words = ['z', 'ä', 'a', 'Z', 'ö', 'a10', 'a9', '-', 'ß', 'ss'];
         for (const tag of ['de', 'sv', 'de-u-kn', 'DA-u-kf-upper', 'xx', 'de-u-co-phonebk']) {
           const one = [...words].sort((a, b) => a.localeCompare(b, tag)).join(), other = [...words].sort(new Intl.Collator(tag).compare).join();
           console.log(tag, one === other, one === [...words].sort((a, b) => a.localeCompare(b, [tag], {})).join());
         }
         const thrown = (f) => { try { f(); return 'none'; } catch (e) { return `${e}`; } };
         console.log(thrown(() => 'a'.localeCompare('b', 'x-y z')), thrown(() => 'a'.localeCompare('b', 'a'.repeat(300)).length));",
    );
    let equal = ["de", "sv", "de-u-kn", "DA-u-kf-upper", "xx", "de-u-co-phonebk"]
        .map(|tag| format!("{tag} true true"));
    assert_eq!(written[..6], equal);
    let refused = "RangeError: Incorrect locale information provided: ";
    assert_eq!(written[6], format!("{refused}x-y z {refused}{}", "a".repeat(40)));
}

#[test]
fn objects_have_the_form_of_ecma_402() {
    let written = texts(
        "const all = Object.getOwnPropertyNames(Intl);
         console.log(all.join(' '), Object.prototype.toString.call(Intl), Object.getOwnPropertyDescriptor(globalThis, 'Intl').enumerable);
         for (const name of all.filter((name) => /^[A-Z]/.test(name))) {
           const C = Intl[name], tag = Object.getOwnPropertyDescriptor(C.prototype, Symbol.toStringTag);
           console.log(name, C.name, C.length, tag.value, tag.writable, Object.getOwnPropertyDescriptor(C, 'prototype').writable, \
             C.supportedLocalesOf?.(['de', 'xx', 'en-gb']), C.supportedLocalesOf?.length);
         }
         const f = Object.getOwnPropertyDescriptor(Intl.NumberFormat.prototype, 'format').get;
         console.log(f.name, new Intl.NumberFormat().format.name === '', new Intl.NumberFormat().format.length, Intl.NumberFormat().constructor === Intl.NumberFormat);
         class Own extends Intl.Collator {}
         console.log(new Own() instanceof Own, new Own('de').compare('a', 'b'));
         const thrown = (f) => { try { f(); return 'none'; } catch (e) { return e.name; } };
         console.log([() => Intl.ListFormat(), () => Intl.NumberFormat.prototype.resolvedOptions(), () => new Intl.NumberFormat('x-y z'), \
           () => new Intl.NumberFormat('de', null), () => new Intl.Locale(), () => Intl.supportedValuesOf('x'), () => new Intl.DisplayNames('de'), \
           () => new Intl.DateTimeFormat('de', { timeZone: 'Nowhere' }), () => new Intl.NumberFormat('de', { style: 'currency' }), \
           () => new Intl.NumberFormat([5])].map(thrown).join(' '));",
    );
    assert_eq!(
        written,
        [
            "Collator DateTimeFormat DisplayNames ListFormat Locale NumberFormat PluralRules RelativeTimeFormat Segmenter \
             getCanonicalLocales supportedValuesOf [object Intl] false",
            "Collator Collator 0 Intl.Collator false false [ 'de', 'en-GB' ] 1",
            "DateTimeFormat DateTimeFormat 0 Intl.DateTimeFormat false false [ 'de', 'en-GB' ] 1",
            "DisplayNames DisplayNames 2 Intl.DisplayNames false false [ 'de', 'en-GB' ] 1",
            "ListFormat ListFormat 0 Intl.ListFormat false false [ 'de', 'en-GB' ] 1",
            "Locale Locale 1 Intl.Locale false false undefined undefined",
            "NumberFormat NumberFormat 0 Intl.NumberFormat false false [ 'de', 'en-GB' ] 1",
            "PluralRules PluralRules 0 Intl.PluralRules false false [ 'de', 'en-GB' ] 1",
            "RelativeTimeFormat RelativeTimeFormat 0 Intl.RelativeTimeFormat false false [ 'de', 'en-GB' ] 1",
            "Segmenter Segmenter 0 Intl.Segmenter false false [ 'de', 'en-GB' ] 1",
            "get format true 1 true",
            "true -1",
            "TypeError TypeError RangeError TypeError TypeError RangeError TypeError RangeError TypeError TypeError",
        ]
    );
}

#[test]
fn what_is_not_there_is_refused_at_load_by_name() {
    let (_, end) = lines("new Intl.DurationFormat('de');", &[]);
    assert!(end.contains("`Intl.DurationFormat` is not defined"), "{end}");
}

#[test]
fn work_on_long_texts_costs_steps_and_ends_at_their_limit() {
    for (source, least) in [
        ("const t = 'x'.repeat(1 << 20); new Intl.Collator('de').compare(t, t);", 1 << 19),
        ("const t = 'x'.repeat(1 << 20); t.localeCompare(t);", 1 << 19),
        ("'ß'.repeat(1 << 18).toLocaleUpperCase('tr');", 3 << 16),
        ("for (const s of new Intl.Segmenter('en').segment('ab '.repeat(1 << 15))) ;", 3 << 15),
        (
            "new Intl.Segmenter('en', { granularity: 'word' }).segment('ab '.repeat(1 << 19)).containing(3 << 18);",
            3 << 18,
        ),
        (
            "new Intl.Segmenter('th', { granularity: 'sentence' }).segment('ก'.repeat(1 << 19)).containing(5);",
            1 << 19,
        ),
        ("new Intl.ListFormat('en').format(Array(1 << 16).fill('x'));", 1 << 17),
        ("new Intl.NumberFormat('en').format('1'.repeat(30000));", 14_000),
    ] {
        let program = program(source);
        let mut state = VmState::new(&program, &StateConfig::default());
        let end = run(&program, &mut state, u64::MAX);
        assert!(matches!(end, RunOutcome::Done { .. }), "{source}: {end:?}");
        assert!(state.steps() >= least, "{source}: {} steps", state.steps());
        let limits = VmLimits { steps: least / 2, ..VmLimits::default() };
        let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
        let end = run(&program, &mut state, u64::MAX);
        assert!(matches!(end, RunOutcome::Limit(VmLimitKind::Steps)), "{source}: {end:?}");
    }
}

#[test]
fn texts_beyond_the_bounds_are_range_errors() {
    let written = texts(
        "const thrown = (f) => { try { return String(f()).length; } catch (e) { return `${e.name}: ${e.message}`; } };
         const marks = '\\u0315\\u0300'.repeat(2000);
         console.log(thrown(() => marks.localeCompare('a', 'de')));
         console.log(thrown(() => marks.localeCompare('a')));
         console.log(thrown(() => (10n ** 40000n).toLocaleString('de')));
         console.log(thrown(() => new Intl.NumberFormat('de').format('1'.repeat(40000))));
         console.log(thrown(() => new Intl.Locale('en-' + 'abcde-'.repeat(100000) + 'x')));
         console.log(thrown(() => (10n ** 30000n).toLocaleString('de')));",
    );
    assert_eq!(
        written,
        [
            "RangeError: Intl: a text with more than 2048 combining marks in a row cannot be compared",
            "RangeError: Intl: a text with more than 2048 combining marks in a row cannot be compared",
            "RangeError: Intl: a number of too many digits",
            "RangeError: Intl: a number of too many digits",
            "RangeError: Incorrect locale information provided: en-abcde-abcde-abcde-abcde-abcde-abcde-a…",
            "40001",
        ]
    );
}

#[test]
fn the_steps_of_a_program_do_not_depend_on_kept_formatters() {
    let source = "for (const tag of ['de', 'fr', 'de']) new Intl.NumberFormat(tag).format(1);
                  for (let i = 0; i < 30; i++) (1).toLocaleString('de', { minimumFractionDigits: i });";
    let steps = || {
        let program = program(source);
        let mut state = VmState::new(&program, &StateConfig::default());
        assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Done { .. }));
        state.steps()
    };
    let first = steps();
    assert_eq!(first, steps());
    assert_eq!(first, std::thread::spawn(steps).join().expect("it ran"));
}

#[test]
fn a_program_without_intl_stores_nothing_of_it() {
    let program = program("CC('a');");
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    let stored = state.pages_since(&program, 0).pages;
    let bytes: usize = stored.iter().map(|page| page.bytes.len()).sum();
    // As many as before programs had `Intl`.
    assert_eq!((stored.len(), bytes), (1, 65));
}

/// Halves of surrogate pairs stay as they are.
#[test]
fn texts_that_are_not_well_formed_are_kept() {
    let source = r"
const units = (text) => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i).toString(16)).join(' ');
const print = (text) => console.log(units(text));
print(new Intl.ListFormat('en').format(['\uD800', 'a']));
print(new Intl.ListFormat('en').format(['\uDC00b', '\uD83D\uDE00', '\uD800']));
print(new Intl.ListFormat('es').format(['\uD800', 'i']));
print('i\ud800'.toLocaleUpperCase('tr'));
print('\udc00I\ud800I'.toLocaleLowerCase('tr'));
print('\u00cc\ud800'.toLocaleLowerCase('lt'));";
    let (found, end) = lines(source, &[]);
    let found: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
    let expected = [
        "d800 20 61 6e 64 20 61",
        "dc00 62 2c 20 d83d de00 2c 20 61 6e 64 20 d800",
        "d800 20 65 20 69",
        "130 d800",
        "dc00 131 d800 131",
        "69 307 300 d800",
    ];
    assert_eq!(found, expected, "{end}");
}
