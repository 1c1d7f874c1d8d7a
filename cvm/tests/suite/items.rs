//! `CC.async`, `sleep`, `waitFor`: their functions and arguments, when a program waits and ends, what its host sees.

use crate::hosted::{Hosted, Storing, transcript};
use vm_system_cvm::{
    CompileOptions, CompiledProgram, ItemAnswer, ItemKind, ItemRequest, MOST_REJECTIONS, NewItem, OpenItem,
    PauseAnswer, RunOutcome, RunPhase, SourceFile, StateConfig, VmLimits, VmState, compile, compile_files,
    frames, resume_item, resume_pause, run, set_variable,
};

fn program_of(source: &str) -> CompiledProgram {
    let options = CompileOptions { items: true, ..CompileOptions::default() };
    compile(source, &options).unwrap_or_else(|why| panic!("{source}: {why}"))
}

/// The transcript of a run in which the oldest item is answered first, without stacks.
fn lines(source: &str) -> Vec<String> {
    let program = program_of(source);
    let warm = transcript(&program, Storing::Warm, &mut |_| 0);
    assert_eq!(transcript(&program, Storing::AtStops, &mut |_| 0), warm, "{source}");
    warm.iter().map(|line| line.split("\n    ").next().unwrap_or_default().to_owned()).collect()
}

/// The last lines: the end, and what is abandoned.
fn end(source: &str) -> String {
    let lines = lines(source);
    let from = lines.iter().rposition(|line| line.starts_with("=> ") || line.starts_with("threw "));
    lines[from.unwrap_or(0)..].join(" ")
}

#[test]
fn the_functions_are_builtins_like_others() {
    let source = "const shown = (holder, name) => { const { value, ...rest } = Object.getOwnPropertyDescriptor(holder, name); \
        return [value.name, value.length, typeof value, 'prototype' in value, Object.values(rest), Object.keys(value)]; }; \
        const constructed = (f) => { try { new f(1); return 'made'; } catch (error) { return error.name; } }; \
        console.log(JSON.stringify([shown(CC, 'async'), shown(globalThis, 'sleep'), shown(globalThis, 'waitFor'), shown(globalThis, 'CC')])); \
        console.log([CC.async, sleep, waitFor].map(constructed).join(), Object.getOwnPropertyNames(CC).join(), CC.async('q') instanceof Promise); \
        const { async } = CC; console.log(async('detached').constructor === Promise);";
    assert_eq!(
        lines(source)[..3],
        [
            "[[\"async\",1,\"function\",false,[true,false,true],[]],[\"sleep\",1,\"function\",false,[true,false,true],[]],\
             [\"waitFor\",1,\"function\",false,[true,false,true],[]],[\"CC\",1,\"function\",false,[true,false,true],[]]]",
            "TypeError,TypeError,TypeError length,name,async true",
            "true",
        ]
    );
}

#[test]
fn programs_without_items_do_not_have_the_functions() {
    let without = |source: &str| match compile(source, &CompileOptions::default()) {
        Ok(program) => {
            let mut state = VmState::new(&program, &StateConfig::default());
            format!("{:?}", run(&program, &mut state, u64::MAX))
        }
        Err(errors) => errors.0[0].message.clone(),
    };
    assert_eq!(without("sleep(1);"), "`sleep` is not defined");
    assert_eq!(without("waitFor('a');"), "`waitFor` is not defined");
    assert_eq!(without("CC.async('a');"), "`CC.async` is not defined");
    let types = without(
        "function main() { return [typeof globalThis.sleep, typeof globalThis.waitFor, typeof CC.async]; }",
    );
    assert!(types.contains(r#"text: "[ 'undefined', 'undefined', 'undefined' ]""#), "{types}");
    assert!(without("setTimeout(f, 1);").contains("programs have no timers"));
    let options = CompileOptions { items: true, ..CompileOptions::default() };
    let refused = |source: &str| compile(source, &options).expect_err("it is refused").0[0].message.clone();
    assert_eq!(refused("setTimeout(f, 1);"), "`setTimeout` is not supported: use `await sleep(ms)`");
    assert_eq!(
        refused("CC.async('q', { retry: 1 });"),
        "`CC.async(…, { retry })` is not supported: the options of `CC` are schema, timeout_ms, default and retries"
    );
    assert_eq!(refused("CC.later('q');"), "`CC.later` is not defined");
    // A program's own functions of these names are used instead.
    assert_eq!(end("function sleep(ms) { return ms; } function main() { return sleep(5); }"), "=> 5");
}

#[test]
fn arguments_that_are_wrong_throw_at_the_call_and_make_no_item() {
    let source = "const shown = (f) => { try { f(); return 'made'; } catch (error) { return `${error.name}: ${error.message}`; } };\n\
        const no = () => undefined, later = CC.async, proxy = new Proxy({}, {});\n\
        for (const f of [() => later(), () => later({}), () => later('q', 5), () => later('q', { timeout_ms: NaN }), () => later('q', Object.create({ retries: 1 })),\n\
          () => sleep(), () => sleep('5'), () => sleep(5n), () => sleep(NaN), () => sleep(-1), () => sleep(Infinity), () => sleep(3162240000001),\n\
          () => waitFor(), () => waitFor(5), () => waitFor(''), () => waitFor('e'.repeat(257)), () => waitFor('ä'.repeat(129)), () => waitFor('e', 5), () => waitFor('e', no),\n\
          () => waitFor('e', { timeout: 5 }), () => waitFor('e', { timeout_ms: '5' }), () => waitFor('e', { timeout_ms: -1 }), () => waitFor('e', { default: NaN }),\n\
          () => waitFor('e', { default: no }), () => waitFor('e', { get default() { return 1; } }), () => waitFor('e', proxy)]) console.log(shown(f));";
    let lines = lines(source);
    assert_eq!(
        lines,
        [
            "TypeError: CC.async needs a prompt as its first argument",
            "TypeError: The first argument of CC.async must be a string, not an object",
            "TypeError: The second argument of CC.async must be an object, not a number",
            "RangeError: The option timeout_ms of CC.async must be a finite number, not NaN",
            "TypeError: The option retries of CC.async is inherited: it must be the object's own property",
            "TypeError: The first argument of sleep must be a number of milliseconds, not undefined",
            "TypeError: The first argument of sleep must be a number of milliseconds, not a string",
            "TypeError: The first argument of sleep must be a number of milliseconds, not a bigint",
            "RangeError: The first argument of sleep must be milliseconds from 0 to 3162240000000 (a hundred years), not NaN",
            "RangeError: The first argument of sleep must be milliseconds from 0 to 3162240000000 (a hundred years), not -1",
            "RangeError: The first argument of sleep must be milliseconds from 0 to 3162240000000 (a hundred years), not Infinity",
            "RangeError: The first argument of sleep must be milliseconds from 0 to 3162240000000 (a hundred years), not 3162240000001",
            "TypeError: The first argument of waitFor must be the name of an event, not undefined",
            "TypeError: The first argument of waitFor must be the name of an event, not a number",
            "RangeError: The name of an event must have 1 to 256 bytes",
            "RangeError: The name of an event must have 1 to 256 bytes",
            "RangeError: The name of an event must have 1 to 256 bytes",
            "TypeError: The second argument of waitFor must be an object, not a number",
            "TypeError: The second argument of waitFor must be an object, not a function",
            "TypeError: waitFor has no option timeout: it has timeout_ms and default",
            "TypeError: The option timeout_ms of waitFor must be a number of milliseconds, not a string",
            "RangeError: The option timeout_ms of waitFor must be milliseconds from 0 to 3162240000000 (a hundred years), not -1",
            "RangeError: The option default of waitFor must be a finite number, not NaN",
            "TypeError: The option default of waitFor must be a value that JSON can hold, not a function",
            "TypeError: The option default of waitFor is an accessor or not enumerable: it must be a plain property",
            "TypeError: The second argument of waitFor is or contains a Proxy, which has no data of its own: use a copy, such as `{ ...proxy }`",
            "=> null",
        ]
    );
}

#[test]
fn requests_leave_the_engine_once_with_ascending_numbers() {
    let program = program_of(
        "CC.async('one', { timeout_ms: 5, default: [1] }); sleep(-0.0); sleep(1.25); CC('pause'); \
         waitFor('e', { timeout_ms: 0.5, default: null }); waitFor('f', { default: undefined, timeout_ms: null }); CC.async(5);",
    );
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    let item = |number, request| NewItem { number, request };
    let question = |prompt: &str, options: Option<&str>| ItemRequest::Question {
        prompt: prompt.to_owned(),
        options: options.map(str::to_owned),
    };
    assert_eq!(
        state.take_new_items(),
        [
            item(1, question("one", Some("{\"timeout_ms\":5,\"default\":[1]}"))),
            item(2, ItemRequest::Timer { duration_ms: 0 }),
            item(3, ItemRequest::Timer { duration_ms: 2 }),
        ]
    );
    assert_eq!(state.take_new_items(), []);
    assert!(resume_pause(&program, &mut state, &PauseAnswer::Text(String::new())));
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Done { .. }));
    let event = |name: &str, timeout_ms, default: Option<&str>| ItemRequest::Event {
        name: name.to_owned(),
        timeout_ms,
        default: default.map(str::to_owned),
    };
    assert_eq!(
        state.take_new_items(),
        [
            item(4, event("e", Some(1), Some("null"))),
            item(5, event("f", None, None)),
            item(6, question("5", None))
        ]
    );
    let open: Vec<u64> = state.open_items().iter().map(|item| item.number).collect();
    assert_eq!(open, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_item_takes_an_answer_that_fits_in_the_wait_only() {
    let program = program_of(
        "CC.async('q').then((text) => { CC(text); }); const done = sleep(1).then(() => CC('slept'));",
    );
    let mut state = VmState::new(&program, &StateConfig::default());
    let text = || ItemAnswer::Answer(PauseAnswer::Text("t".to_owned()));
    assert!(!resume_item(&program, &mut state, 1, &text()), "before it exists");
    assert_eq!(run(&program, &mut state, 3), RunOutcome::OutOfFuel);
    assert_eq!(run(&program, &mut state, u64::MAX), RunOutcome::Wait { rejections: Vec::new() });
    assert_eq!(
        run(&program, &mut state, u64::MAX),
        RunOutcome::Wait { rejections: Vec::new() },
        "until it is resumed"
    );
    assert!(!resume_item(&program, &mut state, 3, &text()), "no such item");
    assert!(!resume_item(&program, &mut state, 1, &ItemAnswer::Elapsed), "no timer");
    assert!(!resume_item(&program, &mut state, 2, &text()), "a timer has no answer");
    assert!(!resume_pause(&program, &mut state, &PauseAnswer::Text(String::new())), "no pause");
    assert_eq!(state.phase(), RunPhase::Wait);
    assert!(resume_item(&program, &mut state, 1, &text()));
    assert!(
        !resume_item(&program, &mut state, 2, &ItemAnswer::Elapsed),
        "the jobs of the first answer have not run"
    );
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    assert!(!resume_item(&program, &mut state, 2, &ItemAnswer::Elapsed), "no jobs run while `CC` pauses");
    assert_eq!(state.open_items(), [OpenItem { number: 2, kind: ItemKind::Timer }]);
    assert!(resume_pause(&program, &mut state, &PauseAnswer::Text(String::new())));
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Wait { .. }));
    assert!(resume_item(&program, &mut state, 2, &ItemAnswer::Elapsed));
    assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Pause { .. }));
    assert!(state.open_items().is_empty());
}

#[test]
fn answers_of_each_kind_settle_each_kind() {
    let source = "const make = [() => CC.async('q'), () => sleep(1), () => waitFor('e')]; const shown = async (promise) => { try { return ['value', await promise]; } \
        catch (error) { return [error.name, error.message, error instanceof CCError, error.stack.split('\\n').length]; } }; \
        async function main() { return JSON.stringify(await shown(make[args[0]]())); }";
    let program = program_of(source);
    let settled = |kind: usize, answer: ItemAnswer| {
        let args = vec![kind.to_string()];
        let mut state = VmState::new(&program, &StateConfig { args, ..StateConfig::default() });
        assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Wait { .. }));
        if !resume_item(&program, &mut state, 1, &answer) {
            return "refused".to_owned();
        }
        match run(&program, &mut state, u64::MAX) {
            RunOutcome::Done { json, .. } => json.replace('\\', ""),
            other => format!("{other:?}"),
        }
    };
    let text = || "why".to_owned();
    let answers = [
        ItemAnswer::Elapsed,
        ItemAnswer::Answer(PauseAnswer::Text(text())),
        ItemAnswer::Answer(PauseAnswer::Json("{\"then\":{\"a\":[1]}}".to_owned())),
        ItemAnswer::Answer(PauseAnswer::Timeout(text())),
        ItemAnswer::Answer(PauseAnswer::Error(text())),
        ItemAnswer::Answer(PauseAnswer::Wrong(text())),
    ];
    let (json, late) = (r#""["value",{"then":{"a":[1]}}]""#, r#""["CCTimeoutError","why",true,1]""#);
    let (failed, wrong) = (r#""["CCError","why",true,1]""#, r#""["TypeError","why",false,1]""#);
    let plain = r#""["value","why"]""#;
    for (kind, expected) in [
        ["refused", plain, json, late, failed, wrong],
        [r#""["value",null]""#, "refused", "refused", "refused", failed, wrong],
        ["refused", plain, json, late, failed, wrong],
    ]
    .into_iter()
    .enumerate()
    {
        for (answer, expected) in answers.iter().zip(expected) {
            assert_eq!(settled(kind, answer.clone()), expected, "kind {kind}: {answer:?}");
        }
    }
}

#[test]
fn a_program_ends_with_the_promise_of_main_or_with_its_last_reaction() {
    for (source, expected) in [
        // The promise of main
        ("async function main() { await sleep(1); return 5; }", "=> 5"),
        (
            "async function main() { CC.async('q').then(() => console.log('no')); return 5; }",
            "=> 5 abandoned 1",
        ),
        (
            "async function main() { return Promise.race([sleep(1), CC.async('q')]).then(() => 'r'); }",
            "=> \"r\" abandoned 2",
        ),
        (
            "async function main() { waitFor('e').then(() => 1); await sleep(1); throw new Error('x'); }",
            "threw Error: x",
        ),
        ("const main = () => waitFor('e');", "=> \"<e>\""),
        ("async function main() { await sleep(1); return 6; }\nmain();", "=> 6"),
        ("async function main() { await sleep(1); return 7; }\n(async () => { await main(); })();", "=> 7"),
        (
            "async function main() { await sleep(1); return 8; }\nsleep(9).then(() => 1); await main();",
            "=> 8",
        ),
        // A top level that awaits
        ("await sleep(1); CC.async('q').then(() => 1);", "=> null abandoned 2"),
        ("await Promise.race([sleep(1), CC.async('q')]);", "=> null abandoned 2"),
        ("await sleep(1); function main() { sleep(2).then(() => 1); return 9; }", "=> 9 abandoned 2"),
        ("await sleep(1); async function main() { await sleep(2); return 10; }", "=> 10"),
        // No promise: reactions count
        ("sleep(1000);", "=> null abandoned 1"),
        (
            "function main() { sleep(1); CC.async('q').then(() => sleep(2)).then(() => sleep(3)); return 11; }",
            "=> 11",
        ),
        (
            "let list = 0; function main() { for (const ms of [1, 2]) sleep(ms).then(() => list++); return { get list() { return 5; } }; }",
            "=> {}",
        ),
        (
            "function main() { const p = CC.async('q'); (async () => { await p; })(); sleep(5); }",
            "=> null abandoned 2",
        ),
        ("sleep(1).finally(() => { throw new Error('late'); });", "threw Error: late"),
        (
            "function start() { main(); }\nfunction main() { sleep(5).then(() => console.log('held')); return 12; }\nstart();",
            "=> 12",
        ),
        // Nothing can settle it
        (
            "await new Promise(() => {});",
            "threw Error: the program waits for a promise that nothing can settle any more",
        ),
        (
            "async function main() { sleep(1); await new Promise(() => {}); }",
            "threw Error: the program waits for a promise that nothing can settle any more",
        ),
    ] {
        let ends = end(source);
        let first = ends.split(" abandoned").next().unwrap_or_default();
        assert!(ends == expected || (expected.starts_with("threw") && first == expected), "{source}: {ends}");
    }
    assert_eq!(
        end(
            "async function main() { const slept = sleep(1); waitFor('e'); await slept; throw new Error('x'); }"
        ),
        "threw Error: x abandoned 2"
    );
}

#[test]
fn a_module_that_awaits_ends_with_its_code() {
    let files = |name: &str, text: &str| SourceFile { name: name.to_owned(), text: text.to_owned() };
    let entry =
        "import { first } from './a.js'; sleep(9).then(() => 1); export function main() { return first; }";
    let options = CompileOptions { items: true, ..CompileOptions::default() };
    for (other, expected) in [
        ("export const first = await CC.async('in a');", ["=> \"<in a>\"", "abandoned 2"]),
        ("export const first = 5;", ["= 1", "=> 5"]),
    ] {
        let program = compile_files(entry, &[files("a.js", other)], &options).expect("it compiles");
        let lines = transcript(&program, Storing::AtStops, &mut |_| 0);
        assert_eq!(lines[lines.len() - 2..], expected, "{other}");
    }
}

#[test]
fn every_end_lists_the_items_that_are_open() {
    let limits = VmLimits { steps: 5_000, heap_bytes: 1 << 20, ..VmLimits::default() };
    for (source, phase) in [
        (
            "waitFor('e'); sleep(1); CC.async('q'); for (;;);",
            RunPhase::Limited(vm_system_cvm::VmLimitKind::Steps),
        ),
        ("waitFor('e'); sleep(1); CC.async('q'); throw 1;", RunPhase::Failed),
        ("waitFor('e'); sleep(1); CC.async('q');", RunPhase::Done),
    ] {
        let program = program_of(source);
        let mut state = VmState::new(&program, &StateConfig { limits, ..StateConfig::default() });
        run(&program, &mut state, u64::MAX);
        assert_eq!(state.phase(), phase);
        let kinds = [ItemKind::Event, ItemKind::Timer, ItemKind::Question];
        let open: Vec<OpenItem> = (1..).zip(kinds).map(|(number, kind)| OpenItem { number, kind }).collect();
        assert_eq!(state.open_items(), open, "{source}");
        let stored = state.pages_since(&program, 0).pages;
        let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
        let restored = VmState::restore(&program, limits, pages).expect("its own pages");
        assert_eq!(restored.open_items(), open, "{source}");
    }
}

#[test]
fn rejections_are_reported_once_and_end_a_program_when_nothing_is_pending() {
    let source = "async function main() { const p = CC.async('fail p'), q = sleep(1), r = Promise.reject(new Error('never')); \
        r.then(() => 1).catch(() => 0); const s = Promise.reject(new Error('handled later')); await q; console.log('slept'); \
        try { await p; } catch (error) { console.log(error.message); } await waitFor('e'); try { await s; } catch (error) { console.log(error.message); } return 'fine'; }";
    assert_eq!(
        lines(source),
        [
            "+ 1 question fail p -",
            "+ 2 timer 1",
            "rejected Error: handled later",
            "wait 1,2",
            "= 1",
            "rejected CCError: fail p",
            "wait 2",
            "= 2",
            "slept",
            "fail p",
            "+ 3 event e - -",
            "wait 3",
            "= 3",
            "handled later",
            "=> \"fine\"",
        ]
    );
    assert_eq!(
        lines("Promise.reject(new Error('first')); sleep(1).then(() => { throw new Error('second'); });"),
        ["+ 1 timer 1", "rejected Error: first", "wait 1", "= 1", "threw Error: first"]
    );
    // Many at once: the rest follows with the next wait.
    let many = format!(
        "for (let i = 0; i < {}; i++) Promise.reject(i); sleep(1).then(() => sleep(2)).then(() => 1);",
        MOST_REJECTIONS + 3
    );
    let rejected: Vec<String> =
        lines(&many).into_iter().filter(|line| line.starts_with("rejected ")).collect();
    assert_eq!(rejected, (0..MOST_REJECTIONS + 3).map(|i| format!("rejected {i}")).collect::<Vec<_>>());
}

#[test]
fn at_the_limit_the_new_item_is_refused_and_nothing_else_changes() {
    let program = program_of(
        "const made = []; async function main() { const attempt = (f) => { try { made.push(f()); return 'made'; } catch (error) { return `${error.name}: ${error.message}`; } }; \
         console.log(attempt(() => sleep(1)), attempt(() => CC.async('q'))); console.log(attempt(() => waitFor('e'))); console.log(attempt(() => CC.async('r'))); \
         await made[0]; console.log(attempt(() => waitFor('e'))); console.log(attempt(() => sleep(2))); return Promise.all(made); }",
    );
    let limits = VmLimits { pending_items: 2, ..VmLimits::default() };
    let (lines, _) = Hosted::new(&program, limits).finish(Storing::AtStops, &mut |_| 0);
    let refused = |function: &str| {
        format!(
            "RangeError: {function} cannot wait for more: 2 questions, timers and events are pending, which is the limit pending_items"
        )
    };
    assert_eq!(
        lines,
        [
            "made made".to_owned(),
            refused("waitFor"),
            refused("CC.async"),
            "+ 1 timer 1".to_owned(),
            "+ 2 question q -".to_owned(),
            "wait 1,2".to_owned(),
            "= 1".to_owned(),
            "made".to_owned(),
            refused("sleep"),
            "+ 3 event e - -".to_owned(),
            "wait 2,3".to_owned(),
            "= 2".to_owned(),
            "wait 3".to_owned(),
            "= 3".to_owned(),
            "=> [null,\"<q>\",\"<e>\"]".to_owned(),
        ]
    );
}

#[test]
fn pending_items_count_as_memory_and_their_texts_as_work() {
    let program =
        program_of("const text = 'x'.repeat(80000); CC.async('warm'); CC.async(text); CC.async('short');");
    let steps = |size: &str| {
        let program = program_of(&format!("const text = 'x'.repeat({size}); CC.async(text);"));
        let mut state = VmState::new(&program, &StateConfig::default());
        assert!(matches!(run(&program, &mut state, u64::MAX), RunOutcome::Done { .. }));
        state.steps()
    };
    assert_eq!(steps("80800") - steps("80000"), 100);
    // A slice of fuel ends behind the item whose text used it up.
    let mut state = VmState::new(&program, &StateConfig::default());
    assert_eq!(run(&program, &mut state, 5_000), RunOutcome::OutOfFuel);
    assert_eq!(state.take_new_items().len(), 2);
    let bytes = |source: &str| {
        let program = program_of(source);
        let mut state = VmState::new(&program, &StateConfig::default());
        run(&program, &mut state, u64::MAX);
        state.heap_bytes()
    };
    let ten = "for (let i = 0; i < 10; i++) sleep(1);";
    let more = bytes(&ten.replace("10;", "110;")) - bytes(ten);
    assert!((100 * 160..100 * 400).contains(&more), "{more} bytes for 100 items");
    let limits = VmLimits { heap_bytes: 1 << 20, pending_items: u32::MAX, ..VmLimits::default() };
    let endless = program_of("for (;;) sleep(1);");
    let mut state = VmState::new(&endless, &StateConfig { limits, ..StateConfig::default() });
    assert_eq!(run(&endless, &mut state, u64::MAX), RunOutcome::Limit(vm_system_cvm::VmLimitKind::Heap));
}

#[test]
fn an_item_to_which_nothing_refers_survives_collections_until_it_is_settled() {
    let program = program_of(
        "const waste = () => { for (let i = 0; i < 20000; i++) new Array(20).fill([i]); }; sleep(1); CC.async('q').then((text) => { waste(); return text; }); \
         waste(); const all = []; for (let i = 0; i < 300; i++) all.push(new Promise(() => {})); await waitFor('e'); waste(); await sleep(2);",
    );
    let mut host = Hosted::new(&program, VmLimits::default());
    assert!(matches!(host.slice(u64::MAX), RunOutcome::Wait { .. }));
    let allocated = 20_000 * 20 * 16;
    assert!(host.state.heap_bytes() < allocated, "garbage was collected");
    host.store();
    host.restore();
    let (lines, _) = host.finish(Storing::AtStops, &mut |_| 0);
    let stops: Vec<&String> = lines.iter().filter(|line| line.starts_with("wait ")).collect();
    assert_eq!(stops, ["wait 1,2,3", "wait 2,3", "wait 3", "wait 4"]);
    assert_eq!(lines.last().map(String::as_str), Some("=> null"));
}

/// Names of the functions that are shown with their items.
fn shown(source: &str) -> Vec<String> {
    let program = program_of(source);
    let mut host = Hosted::new(&program, VmLimits::default());
    assert!(matches!(host.slice(u64::MAX), RunOutcome::Wait { .. }));
    host.store();
    host.restore();
    let (views, more) = frames(&program, &mut host.state, 20);
    assert_eq!(more, 0);
    views.into_iter().map(|view| format!("{} {:?}", view.function, view.items)).collect()
}

#[test]
fn suspended_functions_are_shown_by_the_items_for_which_they_wait() {
    let functions = "async function one(p) { return await p; } async function two(p) { await one(p); } const item = (n) => CC.async('q' + n);\n";
    for (main, expected) in [
        (
            "two(item(1)); two(item(2)); await one(sleep(3));",
            &["one [1]", "two [1]", "one [2]", "two [2]", "one [3]", "main [3]"][..],
        ),
        (
            "await Promise.all([one(item(1)), item(2), sleep(3).then((x) => x)]);",
            &["one [1]", "main [1, 2, 3]"],
        ),
        (
            "await Promise.race([item(1), Promise.any([two(item(2))]).finally(() => 5)]);",
            &["main [1, 2]", "one [2]", "two [2]"],
        ),
        (
            "const p = item(1); one(p); two(p); await new Promise((resolve) => p.then(resolve));",
            &["one [1]", "one [1]", "two [1]", "main [1]"],
        ),
        ("await Promise.resolve({ then(resolve) { item(1).then((x) => resolve(x)); } });", &["main []"]),
        ("for await (const x of [item(1), item(2)]) x;", &["main [1]"]),
        (
            "async function* each() { yield await item(1); } for await (const x of each()) x;",
            &["each [1]", "main [1]"],
        ),
        ("const p = one(item(1)); await Promise.allSettled([p, p]);", &["one [1]", "main [1]"]),
        ("function* plain() { yield 1; } const it = plain(); it.next(); await item(1);", &["main [1]"]),
    ] {
        assert_eq!(shown(&format!("{functions}async function main() {{ {main} }}")), expected, "{main}");
    }
    assert_eq!(shown("const a = 1; await sleep(a);"), [" [1]"]);
}

#[test]
fn variables_of_suspended_functions_are_shown_and_set() {
    let program = program_of(
        "async function review(name) {\n  let seen = 1;\n  const read = () => seen;\n  const answer = await CC.async(name);\n  return [name, answer, read()];\n}\n\
         async function main() { let own = 'x'; const both = await Promise.all([review('a'), review('b')]); return { both, own }; }",
    );
    let mut host = Hosted::new(&program, VmLimits::default());
    assert!(matches!(host.slice(u64::MAX), RunOutcome::Wait { .. }));
    let (views, more) = frames(&program, &mut host.state, 2);
    assert_eq!(more, 1);
    let places: Vec<_> =
        views.iter().map(|view| (view.function.as_str(), view.line, &view.items[..])).collect();
    assert_eq!(places, [("review", 4, &[1][..]), ("main", 7, &[1, 2])]);
    assert_eq!(views[0].source_line, "  const answer = await CC.async(name);");
    let variables = |view: &vm_system_cvm::FrameView| {
        view.variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(variables(&views[0]), "seen=1 name='a' read=[Function: read]");
    let set =
        |state: &mut VmState, frame, name: &str, json: &str| set_variable(&program, state, frame, name, json);
    // In a slot of the function, in a scope that a closure shares, and in another function.
    assert!(set(&mut host.state, 0, "name", "\"changed\""));
    assert!(set(&mut host.state, 2, "seen", "[7]"));
    assert!(set(&mut host.state, 1, "own", "{\"y\":1}"));
    assert!(!set(&mut host.state, 0, "own", "1"));
    assert!(!set(&mut host.state, 3, "name", "1"));
    host.store();
    host.restore();
    let (lines, _) = host.finish(Storing::AtStops, &mut |open| open.len() - 1);
    let end = lines.last().expect("its end");
    assert_eq!(end, r#"=> {"both":[["changed","<a>",1],["b","<b>",[7]]],"own":{"y":1}}"#);
}

#[test]
fn many_suspended_functions_are_shown_in_bounded_time() {
    // Each item has a chain of 100 functions behind it.
    let program = program_of(
        "const chain = async (p, n) => (n > 0 ? await chain(p, n - 1) : await p); \
         async function main() { for (let i = 0; i < 3000; i++) chain(sleep(i), 100); await sleep(1); }",
    );
    let limits = VmLimits { heap_bytes: 1 << 30, ..VmLimits::default() };
    let mut host = Hosted::new(&program, limits);
    assert!(matches!(host.slice(u64::MAX), RunOutcome::Wait { .. }));
    let (views, more) = frames(&program, &mut host.state, 202);
    assert_eq!(views.len() as u64 + more, 3000 * 101 + 1);
    assert_eq!((&views[0].items[..], &views[201].items[..]), (&[1][..], &[2][..]));
}
