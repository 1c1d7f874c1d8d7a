//! Each patch is still needed: `rquickjs`, linked here without the patches, has the defect. When one of these tests fails after an
//! update of `rquickjs`, its patch can go (docs/decisions/028).

use rquickjs::{Context, Runtime};
use std::collections::BTreeSet;

/// A patch, and a script that sets `seen` while the engine has its defect.
const DEFECTS: &[(&str, &str)] = &[
    (
        "1-async-generator-queue",
        "globalThis.seen = 2; const queue = (async function* () {})();
         for (const one of [queue.return(), queue.next()]) one.then(() => seen--);",
    ),
    (
        "2-for-await-failed-next",
        "const failing = { [Symbol.asyncIterator]: () => failing, next: () => Promise.reject(1), return() { seen = 1; return {}; } };
         globalThis.seen = 0; (async () => { for await (const none of failing); })().catch(() => {});",
    ),
    (
        "3-out-of-memory",
        "globalThis.seen = 0; (() => { const all = []; try { for (let i = 0; ; i++) all.push({ i }); } catch (error) { seen = error === null; } })();",
    ),
    ("4-shortest-digits", "globalThis.seen = String(2 ** -1017) !== '7.120236347223045e-307';"),
    (
        "6-async-callers",
        "globalThis.seen = 1; Error.prepareStackTrace = (_, sites) => { if (sites.length > 1) seen = 0; return ''; };
         const called = async () => { await null; throw new Error(); }; (async () => { await called(); })().catch(() => {});",
    ),
    ("5-date-parse", "globalThis.seen = Date.parse('Jan 2, 2024 GMT+1') !== Date.UTC(2024, 0, 1, 23);"),
    (
        "7-for-await-closes-after-throw",
        "let open = true; const closes = { [Symbol.asyncIterator]: () => closes, next: () => ({}), return: async () => { await null; open = false; return {}; } };
         globalThis.seen = 0; (async () => { try { for await (const one of closes) throw 1; } catch { seen = open; } })();",
    ),
    (
        "8-yield-star-return",
        "globalThis.seen = 1; const inner = async function* () { try { yield 1; } finally { seen = 0; } };
         const outer = (async function* () { yield* inner(); })(); outer.next().then(() => outer.return(Promise.reject(1))).catch(() => {});",
    ),
    (
        "9-variables-of-turns",
        "const f = []; for (let i = 0; i < 2; i++) { f.push(() => i); continue; }
         for (let i = 0; i < 2; i++) try { const x = i; f.push(() => x); throw 1; } catch {}
         globalThis.seen = f[0]() !== 0 || f[2]() !== 0;",
    ),
    (
        "10-date-setters",
        "const date = new Date(0); date.setHours(NaN); globalThis.seen = date.getTime() === 0 || !Date.UTC(275761, 0, -200);",
    ),
];

#[test]
fn released_engine_has_the_defect_of_every_patch() {
    for (patch, script) in DEFECTS {
        let runtime = Runtime::new().expect("memory");
        let context = Context::full(&runtime).expect("memory");
        runtime.set_memory_limit(8 * 1024 * 1024);
        context.with(|ctx| {
            ctx.eval::<(), _>(*script).expect("the script runs");
            while ctx.execute_pending_job() {}
            let seen: bool = ctx.eval("Boolean(seen)").expect("an expression");
            assert!(
                seen,
                "the release does not have the defect any more: delete quickjs/patches/{patch}.patch"
            );
        });
    }
}

#[test]
fn every_patch_has_a_script() {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/patches")).expect("a folder");
    let patches: BTreeSet<String> = folder
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    let tested: BTreeSet<String> = DEFECTS.iter().map(|(patch, _)| (*patch).to_owned()).collect();
    assert_eq!(patches, tested);
}
