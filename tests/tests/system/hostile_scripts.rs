//! Scripts that are wrong, endless or greedy: the right status and reason at the caller and in the record, the session
//! continues where the limit is a soft one, and other sessions are not affected.

use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::model::{EventPayload, ExecutionStatus, Limits, Settings};
use vm_system_tests::as_both;
use vm_system_tests::client::value;
use vm_system_tests::place::User;
use vm_system_tests::scene::Scene;

as_both!(
    syntax_errors_and_thrown_values_are_reported,
    huge_and_cyclic_values_have_a_preview,
    a_console_flood_ends_at_the_output_limit,
    endless_code_ends_at_its_cpu_limit_and_the_session_continues,
    a_script_that_waits_ends_at_its_wall_limit_and_the_session_continues,
    memory_bombs_end_at_the_memory_limit,
    memory_outside_of_the_engine_ends_at_the_memory_limit,
    deep_recursion_is_a_range_error,
    natives_that_never_poll_are_killed_at_the_wall_limit,
    natives_that_never_poll_are_killed_at_the_cpu_limit,
    too_much_source_is_refused_before_it_runs,
    cancel_ends_an_endless_loop_and_nothing_else,
);

mod cases {
    use super::*;

    pub(super) fn syntax_errors_and_thrown_values_are_reported(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        scene.fails(&session, "let = = 1", "SYNTAX_ERROR");
        for (code, shown) in [
            ("throw 42", "42"),
            ("throw 'text'", "text"),
            ("throw null", "null"),
            ("throw undefined", "undefined"),
            ("throw { a: 1 }", "a"),
            ("throw Symbol('s')", "Symbol(s)"),
            ("null.x", "TypeError"),
            ("throw { toString() { throw 1 }, get message() { throw 2 } }", ""),
            ("throw new Proxy({}, { get() { throw 1 } })", ""),
            ("Promise.reject(new Error('late'))", "late"),
        ] {
            let execution = scene.fails(&session, code, "EXCEPTION");
            let events = scene.client.events(&execution.id.to_string());
            let exception = events.iter().find_map(|event| match &event.payload {
                EventPayload::Exception { message, .. } => Some(message.clone()),
                _ => None,
            });
            let message = exception.unwrap_or_else(|| panic!("{code}: no exception among {events:?}"));
            assert!(message.contains(shown), "{code}: {message}");
        }
        scene.assert_usable(&session);
        scene.end(&[&session]);
    }

    pub(super) fn huge_and_cyclic_values_have_a_preview(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        for (code, begins) in [
            ("var a = { name: 'a' }; a.self = a; a", "<ref *1> { name: 'a', self: [Circular *1] }"),
            ("Array(1e6).fill(7)", "[\n"),
            ("'x'.repeat(2e6)", "'xxxx"),
            ("({ get boom() { throw 1 } })", "{ boom: [Getter] }"),
            ("new Proxy({}, { ownKeys() { throw 1 }, get() { throw 2 } })", ""),
            ("var deep = {}; var at = deep; for (let i = 0; i < 1e4; i++) at = at.next = {}; deep", "{"),
        ] {
            let execution = scene.run(&session, code);
            assert_eq!(execution.status, ExecutionStatus::Ok, "{code}: {:?}", execution.error);
            let events = scene.client.events(&execution.id.to_string());
            let preview = value(&events).unwrap_or_else(|| panic!("{code}: no value among {events:?}"));
            assert!(preview.starts_with(begins), "{code}: {}", &preview[..preview.len().min(100)]);
            assert!(preview.len() <= 300 * 1024, "{code}: {} bytes", preview.len());
        }
        scene.assert_usable(&session);
        scene.end(&[&session]);
    }

    pub(super) fn a_console_flood_ends_at_the_output_limit(user: User) {
        let limits = Limits { max_events: 100_000, wall_ms: 30_000, cpu_ms: 30_000, ..Limits::default() };
        let mut scene = Scene::with_settings(user, Settings { limits, ..Settings::default() });
        let session = scene.session();
        for code in [
            // 100 MB in large and in small pieces.
            "for (let i = 0; i < 1000; i++) console.log('x'.repeat(100_000))",
            "for (let i = 0; i < 1e7; i++) console.log('0123456789')",
        ] {
            let execution = scene.fails(&session, code, "OUTPUT_LIMIT_EXCEEDED");
            assert!(execution.metrics.output_bytes <= 1_100 * 1024, "{:?}", execution.metrics);
            let stored = scene.client.events(&execution.id.to_string());
            assert_eq!(stored.len() as u64, execution.metrics.events, "record and events agree");
            let numbers: Vec<u64> = stored.iter().map(|event| event.seq).collect();
            assert!(numbers.iter().copied().eq(1..=stored.len() as u64), "a gap in the sequence");
        }
        scene.assert_usable(&session);
        scene.end(&[&session]);
    }

    /// Only one of the two time limits can be reached, also on a busy machine.
    fn cpu_only() -> Settings {
        let limits = Limits { cpu_ms: 700, wall_ms: 60_000, mem_mb: 48, ..Limits::default() };
        Settings { limits, ..Settings::default() }
    }

    fn wall_only() -> Settings {
        let limits = Limits { cpu_ms: 60_000, wall_ms: 1_000, mem_mb: 256, ..Limits::default() };
        Settings { limits, ..Settings::default() }
    }

    pub(super) fn endless_code_ends_at_its_cpu_limit_and_the_session_continues(user: User) {
        let mut scene = Scene::with_settings(user, cpu_only());
        let session = scene.session();
        for code in [
            "for (;;) {}",
            "while (true) { try { for (;;) {} } catch {} }",
            "(function f() { Promise.resolve().then(f) })()",
            "async function g() { for (;;) await null } g()",
            "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        ] {
            let execution = scene.fails(&session, code, "CPU_LIMIT");
            assert_eq!(execution.status, ExecutionStatus::Timeout, "{code}");
            scene.assert_usable(&session);
            scene.sibling_is_unharmed();
        }
        // A promise that cannot settle uses no time: an error at once, and no limit.
        let stuck = scene.fails(&session, "await new Promise(() => {})", "NEVER_SETTLED");
        assert_eq!(stuck.status, ExecutionStatus::Error);
        scene.end(&[&session]);
    }

    pub(super) fn a_script_that_waits_ends_at_its_wall_limit_and_the_session_continues(user: User) {
        let mut scene = Scene::with_settings(user, wall_only());
        let session = scene.session();
        for code in ["await new Promise(resolve => setTimeout(resolve, 1e9))", "for (;;) {}"] {
            let execution = scene.fails(&session, code, "WALL_LIMIT");
            assert_eq!(execution.status, ExecutionStatus::Timeout, "{code}");
            scene.assert_usable(&session);
        }
        scene.end(&[&session]);
    }

    pub(super) fn memory_bombs_end_at_the_memory_limit(user: User) {
        let mut scene = Scene::with_settings(user, cpu_only());
        let session = scene.session();
        for (code, with) in [
            ("var all = []; for (;;) all.push(new Array(1e5).fill(1))", "MEMORY_LIMIT"),
            ("var all = []; for (;;) all.push(new ArrayBuffer(1 << 20))", "MEMORY_LIMIT"),
            ("var all = []; for (;;) all.push(new Uint8Array(1 << 22).fill(1))", "MEMORY_LIMIT"),
            ("Array.from({ length: 1e9 }, (_, i) => i * 2)", "MEMORY_LIMIT"),
            // Values beyond the language's maximum length are errors of every engine.
            ("var s = 'x'; for (;;) s += s", "EXCEPTION"),
            ("new ArrayBuffer(1e12)", "EXCEPTION"),
            ("'x'.repeat(2 ** 30)", "EXCEPTION"),
        ] {
            let execution = scene.fails(&session, code, with);
            assert_eq!(execution.status, ExecutionStatus::Error, "{code}");
            scene.run(&session, "all = s = undefined");
            scene.assert_usable(&session);
            scene.sibling_is_unharmed();
        }
        scene.end(&[&session]);
    }

    /// Compressors have memory of their own, beside the engine's heap, which counts for the same limit: the session goes on.
    pub(super) fn memory_outside_of_the_engine_ends_at_the_memory_limit(user: User) {
        let mut scene = Scene::with_settings(user, cpu_only());
        let session = scene.session();
        for code in [
            "var all = []; for (;;) all.push(new CompressionStream('deflate').writable.getWriter().write(new Uint8Array(9)))",
            "var all = []; for (;;) { all.push(new CompressionStream('gzip')); await 0 }",
        ] {
            let execution = scene.fails(&session, code, "MEMORY_LIMIT");
            assert_eq!(execution.status, ExecutionStatus::Error, "{code}");
            scene.run(&session, "all = undefined");
            scene.assert_usable(&session);
            scene.sibling_is_unharmed();
        }
        scene.end(&[&session]);
    }

    pub(super) fn deep_recursion_is_a_range_error(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        for code in [
            "(function f() { f() })()",
            "var o = {}; o.toString = () => `${o}`; `${o}`",
            "JSON.parse('['.repeat(1e6))",
            "JSON.stringify((() => { let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o })())",
        ] {
            let execution = scene.fails(&session, code, "EXCEPTION");
            assert_eq!(execution.status, ExecutionStatus::Error, "{code}");
            scene.assert_usable(&session);
        }
        scene.end(&[&session]);
    }

    const NEVER_POLL: [&str; 3] = [
        "var a = []; a.length = 2 ** 32 - 1; a.join('')",
        "var o = { length: 2 ** 53 - 1 }; Array.prototype.reverse.call(o)",
        "var t = [1]; for (let i = 0; i < 40; i++) t = [t, t]; JSON.stringify(t)",
    ];

    fn killed(mut scene: Scene, with: &str, reason: &str) {
        for code in NEVER_POLL {
            let session = scene.session();
            let execution = scene.fails(&session, code, with);
            assert_eq!(execution.status, ExecutionStatus::Timeout, "{code}");
            scene.crashed(&session, reason);
            scene.sibling_is_unharmed();
        }
        scene.end(&[]);
    }

    pub(super) fn natives_that_never_poll_are_killed_at_the_wall_limit(user: User) {
        killed(Scene::with_settings(user, wall_only()), "WALL_LIMIT", "limit(wall)");
    }

    pub(super) fn natives_that_never_poll_are_killed_at_the_cpu_limit(user: User) {
        let limits = Limits { mem_mb: 256, ..cpu_only().limits };
        let settings = Settings { limits, ..Settings::default() };
        killed(Scene::with_settings(user, settings), "CPU_LIMIT", "limit(cpu)");
    }

    pub(super) fn too_much_source_is_refused_before_it_runs(user: User) {
        let limits = Limits { max_source_kb: 10, ..Limits::default() };
        let mut scene = Scene::with_settings(user, Settings { limits, ..Settings::default() });
        let session = scene.session();
        let long = format!("globalThis.ran = true; // {}", "x".repeat(11 * 1024));
        let error = scene.client.eval(&session, &long).expect_err("refused");
        assert_eq!(error.code, ErrorCode::ValidationError, "{error:?}");
        scene.daemon.place.write("long.js", &long);
        let error = scene.client.run_file(&session, "long.js").expect_err("refused");
        assert_eq!(error.code, ErrorCode::ValidationError, "{error:?}");
        let execution = scene.run(&session, "typeof ran");
        let events = scene.client.events(&execution.id.to_string());
        assert_eq!(value(&events), Some("'undefined'"));
        scene.end(&[&session]);
    }

    pub(super) fn cancel_ends_an_endless_loop_and_nothing_else(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        scene.run(&session, "var before = 1");
        let execution = scene.client.start(&session, "for (;;) {}");
        let busy = scene.client.eval(&session, "1").expect_err("busy");
        assert_eq!(busy.code, ErrorCode::SessionBusy);
        let op = vm_system_protocol::control::ExecCancel { execution: execution.id.to_string() };
        scene.client.op(op.clone()).expect("cancel");
        let ended = scene.client.until_final(&execution);
        assert_eq!(ended.status, ExecutionStatus::Cancelled);
        scene.client.op(op).expect("again is fine");
        let execution = scene.run(&session, "before");
        let events = scene.client.events(&execution.id.to_string());
        assert_eq!(value(&events), Some("1"), "its variables are there");
        scene.end(&[&session]);
    }
}
