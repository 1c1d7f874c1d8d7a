//! `run`: a script without set-up.

use crate::daemon::first_line;
use crate::environment::{Run, TestEnvironment, signal_child, wait};
use nix::sys::signal::Signal;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[test]
fn the_value_of_code_is_printed_as_node_would_and_that_of_a_file_is_not() {
    let env = TestEnvironment::new();
    assert_eq!(env.run(["run", "-e", "[1,2,3].map(x => x * 2)"]).ok(), "[ 2, 4, 6 ]\n");
    assert_eq!(env.run(["run", "-e", "var silent = 1"]).ok(), "");
    env.file("value.js", "1 + 1");
    assert_eq!(env.run(["run", "value.js"]).ok(), "");
}

#[test]
fn a_file_sees_its_arguments_its_folder_and_nothing_else() {
    let env = TestEnvironment::new();
    env.file("data.txt", "from the worktree");
    env.file("lib/twice.js", "module.exports = n => n * 2");
    env.file(
        "main.js",
        "const fs = require('fs'); const twice = require('./lib/twice');
         console.log(fs.readFileSync('data.txt', 'utf8'), twice(21), process.argv.slice(2).join());
         const path = require('path');
         console.log(fs.readFileSync(path.resolve('data.txt'), 'utf8'), require('/lib/twice')(1), fs.existsSync('/lib'),
             require(path.resolve(__dirname, 'lib', 'twice.js')) === twice, fs.realpathSync('lib/../data.txt'), process.cwd());
         try { fs.readFileSync('/etc/passwd') } catch (e) { console.log(e.code) }
         try { fs.readFileSync('../data.txt') } catch (e) { console.log(e.code) }
         console.log(typeof process.env.HOME, process.env.LANG)",
    );
    let printed = env.run(["run", "--allow-env", "LANG", "main.js", "a", "--b"]).ok();
    assert_eq!(
        printed,
        "from the worktree 42 a,--b\nfrom the worktree 2 true true /data.txt /\nENOENT\nEACCES\nundefined C.UTF-8\n"
    );
    let absolute = env.work().join("main.js");
    assert!(env.run(["run", absolute.to_str().unwrap()]).ok().contains("42"));
}

#[test]
fn a_path_of_the_host_beneath_the_folder_names_the_file_of_the_folder() {
    let env = TestEnvironment::new();
    let work = env.work().to_str().expect("a path of UTF-8").to_owned();
    env.file("data.txt", "from the worktree");
    env.file("lib/twice.js", "module.exports = n => n * 2");
    env.file("main.js", &format!("const fs = require('fs'), work = {work:?};
         console.log(fs.readFileSync(work + '/data.txt', 'utf8'), fs.readdirSync(work).join(), require(work + '/lib/twice')(21),
             require(work + '/lib/twice') === require('./lib/twice'), fs.realpathSync(work + '/data.txt'));
         for (const outside of [work + '/../x', work + 'x/data.txt', '/etc/passwd']) {{
             try {{ console.log(fs.readFileSync(outside)); }} catch (error) {{ console.log(error.code); }}
         }}"));
    let printed = "from the worktree data.txt,lib,main.js 42 true /data.txt\nEACCES\nENOENT\nENOENT\n";
    assert_eq!(env.run(["run", "main.js"]).ok(), printed);
}

#[test]
fn the_local_time_is_that_of_the_variable_tz() {
    let env = TestEnvironment::new();
    let code = "const time = new Date(0); \
                console.log(time.getHours(), time.toLocaleTimeString('en-US', { hourCycle: 'h23' }), process.env.TZ)";
    for (zone, printed) in [
        ("America/New_York", "19 19:00:00 undefined\n"),
        ("Asia/Kolkata", "5 05:30:00 undefined\n"),
        ("UTC", "0 00:00:00 undefined\n"),
    ] {
        let output = env.command(["run", "-e", code]).env("TZ", zone).output().expect("it runs");
        assert_eq!(Run::from_output(&output).ok(), printed, "{zone}");
    }
}

#[test]
fn a_character_that_is_cut_at_the_end_of_the_output_is_shown() {
    let env = TestEnvironment::new();
    let cut = "process.stdout.write(Buffer.from([97, 0xe2, 0x82])); undefined";
    assert_eq!(env.run(["run", "-e", cut]).ok(), "a\u{fffd}");
    let exit = "process.stdout.write(Buffer.from([0xe2, 0x82])); process.stdout.write(Buffer.from([0xac, 98, 0xf0])); process.exit(0)";
    assert_eq!(env.run(["run", "-e", exit]).ok(), "\u{20ac}b\u{fffd}");
}

#[test]
fn everything_behind_the_script_is_the_scripts() {
    let env = TestEnvironment::new();
    env.file("args.js", "console.log(process.argv.slice(2).join('|'))");
    let all = ["-e", "a", "--output", "json", "--memory", "0", "-q", "--no-color", "--help", "--", "-"];
    let own = all.join("|") + "\n";
    assert_eq!(env.run(["run", "--memory", "64", "args.js"].iter().chain(&all)).ok(), own);
    // One separator is dropped, for those who are used to it.
    assert_eq!(env.run(["run", "args.js", "--"].iter().chain(&all)).ok(), own);
    assert_eq!(env.run(["run", "--", "args.js", "-e"]).ok(), "-e\n");
    let code = "console.log(process.argv.slice(2).join('|'))";
    assert_eq!(env.run(["run", "-e", code, "--memory", "64", "a", "--memory", "0"]).ok(), "a|--memory|0\n");
    assert_eq!(env.run(["run", "-e", code, "--", "-x"]).ok(), "-x\n");
    assert_eq!(env.run_with_stdin(["run", "-", "-x", "--ts"], code).ok(), "-x|--ts\n");
    // Before the script, options are those of the command.
    env.run(["run", "--nope", "args.js"]).failed(2);
}

#[test]
fn a_typescript_file_with_imports_is_a_module_and_code_can_be_typescript() {
    let env = TestEnvironment::new();
    env.file("lib.ts", "export const twice = (n: number): number => 2 * n; export type N = number;");
    env.file(
        "main.ts",
        "import { twice, type N } from './lib.ts'; const n: N = 21; console.log(twice(n), await 1)",
    );
    assert_eq!(env.run(["run", "main.ts"]).ok(), "42 1\n");
    env.file("exports.ts", "export const x: number = 1; console.log(typeof this)");
    assert_eq!(env.run(["run", "exports.ts"]).ok(), "undefined\n");
    // Types alone make no module: a script has `require`.
    env.file(
        "types.ts",
        "import type { N } from './lib.ts'; export {}; const n: N = 1; console.log(typeof require)",
    );
    assert_eq!(env.run(["run", "types.ts"]).ok(), "function\n");
    assert_eq!(env.run(["run", "--ts", "-e", "const n: number = 41; n + 1"]).ok(), "42\n");
    let module = "import { twice } from './lib.ts'; console.log(twice(4))";
    assert_eq!(env.run_with_stdin(["run", "--ts", "-"], module).ok(), "8\n");
    let hint = env.run(["run", "-e", "const n: number = 41; n + 1"]).failed(1);
    assert!(hint.contains("give --ts"), "{hint}");
    let hint = env.run(["run", "-e", "import fs from 'fs'"]).failed(1);
    assert!(hint.contains("await import("), "{hint}");
    assert!(!env.run(["run", "-e", "1 +"]).failed(1).contains("hint"));
    assert!(env.run(["run", "--ts", "main.ts"]).failed(2).contains(".ts"));
}

#[test]
fn the_folder_of_a_script_can_be_given_and_a_failure_names_it() {
    let env = TestEnvironment::new();
    env.file("app/main.js", "console.log(require('./lib'))");
    env.file("app/lib.js", "module.exports = 'of the app'");
    std::fs::create_dir(env.work().join("elsewhere")).unwrap();
    let run = |args: &[&str]| {
        let mut command = env.command(args);
        Run::from_output(&command.current_dir(env.work().join("elsewhere")).output().unwrap())
    };
    let error = run(&["run", "../app/main.js"]).failed(1);
    assert!(error.contains("elsewhere only") && error.contains("--worktree ../app"), "{error}");
    assert_eq!(run(&["run", "--worktree", "../app", "../app/main.js"]).ok(), "of the app\n");
    // A file that is in the current folder and not in the given one.
    env.file("elsewhere/here.js", "console.log(require('./lib'))");
    assert_eq!(run(&["run", "--worktree", "../app", "here.js"]).ok(), "of the app\n");
    assert_eq!(run(&["run", "--worktree", "..", "../app/main.js"]).ok(), "of the app\n");
    assert_eq!(run(&["run", "--worktree", "../app", "-e", "require('./lib')"]).ok(), "'of the app'\n");
    let error = run(&["run", "-e", "require('fs').readFileSync('/etc/hostname')"]).failed(1);
    assert!(error.contains("--worktree DIR"), "{error}");
    assert!(run(&["run", "--worktree", "none", "-e", "1"]).failed(1).contains("cannot read none"));
}

#[test]
fn a_long_script_needs_a_higher_limit_which_the_error_names() {
    let env = TestEnvironment::new();
    env.file("long.js", &format!("console.log('end')//{}", " ".repeat(1_100_000)));
    assert!(env.run(["run", "long.js"]).failed(1).contains("--max-source-kb"));
    assert_eq!(env.run(["run", "--max-source-kb", "1100", "long.js"]).ok(), "end\n");
}

#[test]
fn much_output_needs_a_higher_limit_which_the_error_names() {
    let env = TestEnvironment::new();
    env.file("much.js", "for (let line = 0; line < 100; line++) console.log('x'.repeat(99))");
    let ended = env.run(["run", "--max-output-kb", "2", "much.js"]);
    assert!(ended.stdout.len() <= 2_048 && ended.stdout.len() > 1_900, "{}", ended.stdout.len());
    let error = ended.failed(1);
    assert!(error.contains("more than 2 KiB (max_output_kb)"), "{error}");
    assert!(error.contains("hint: raise it with --max-output-kb KIB"), "{error}");
    assert_eq!(env.run(["run", "--max-output-kb", "20", "much.js"]).ok().len(), 10_000);
    assert_eq!(env.run(["run", "much.js"]).ok().len(), 10_000);
}

#[test]
fn many_events_need_a_higher_limit_which_the_error_names() {
    let env = TestEnvironment::new();
    let prints = ["-e", "for (let line = 0; line < 100; line++) console.log(line); undefined"];
    let run = |events: &str| env.run(["run", "--max-events", events].into_iter().chain(prints));
    let error = run("50").failed(1);
    assert!(error.contains("more than 50 events (max_events)"), "{error}");
    assert!(error.contains("hint: raise it with --max-events N"), "{error}");
    assert_eq!(run("200").ok().lines().count(), 100);
    assert!(run("0").failed(2).contains("--max-events"));
}

#[test]
fn messages_of_many_megabytes_are_no_standstill() {
    let env = TestEnvironment::new();
    let write = "for (const name of 'abcdefgh') require('fs').writeFileSync(name, 'x'.repeat(1e6)); console.log('end')";
    assert_eq!(env.run(["run", "--allow-write", "--timeout", "60s", "-e", write]).ok(), "end\n");
    let length = 4_194_200;
    for printed in 0..4 {
        let code =
            format!("for (let i = 0; i < {printed}; i++) console.log('y'.repeat(1e4)); 'x'.repeat({length})");
        let ended = env.run(["run", "--max-output-kb", "8192", "--timeout", "60s", "-e", &code]);
        assert_eq!(ended.code, Some(0), "{printed}: {}", ended.stderr);
        assert!(ended.stdout.len() > 10_000 * (printed + 1), "{printed}: {} bytes", ended.stdout.len());
    }
}

#[test]
fn empty_code_succeeds_like_an_empty_file() {
    let env = TestEnvironment::new();
    env.file("empty.js", "");
    assert_eq!(env.run(["run", "empty.js"]).ok(), "");
    assert_eq!(env.run(["run", "-e", ""]).ok(), "");
    assert_eq!(env.run_with_stdin(["run", "-"], "").ok(), "");
}

#[test]
fn files_are_changed_only_with_allow_write_and_only_in_the_folder() {
    let env = TestEnvironment::new();
    std::fs::write(env.path("outside.txt"), "untouched").unwrap();
    let script = "const fs = require('fs');
        for (const file of ['made.txt', '../outside.txt', '/etc/made.txt']) {
            try { fs.writeFileSync(file, 'written'); console.log('ok') } catch (e) { console.log(e.code) }
        }";
    env.file("write.js", script);
    assert_eq!(env.run(["run", "write.js"]).stdout, "EACCES\nEACCES\nEACCES\n");
    assert!(!env.work().join("made.txt").exists());
    assert_eq!(env.run(["run", "--allow-write", "write.js"]).stdout, "ok\nEACCES\nENOENT\n");
    assert_eq!(std::fs::read_to_string(env.work().join("made.txt")).unwrap(), "written");
    assert_eq!(std::fs::read_to_string(env.path("outside.txt")).unwrap(), "untouched");
    let both = "require('fs').writeFileSync('lang.txt', process.env.LANG)";
    env.run(["run", "--allow-write", "--allow-env", "LANG", "-e", both]).ok();
    assert_eq!(std::fs::read_to_string(env.work().join("lang.txt")).unwrap(), "C.UTF-8");
    let error = env.run(["run", "--allow-write", "--session", "s", "write.js"]).failed(2);
    assert!(error.contains("--allow-write"), "{error}");
}

#[test]
fn a_file_outside_the_folder_is_read_by_the_client() {
    let env = TestEnvironment::new();
    std::fs::write(env.path("elsewhere.js"), "console.log('elsewhere')").unwrap();
    assert_eq!(env.run(["run", "../elsewhere.js"]).ok(), "elsewhere\n");
}

#[test]
fn typescript_and_stdin_are_scripts_too() {
    let env = TestEnvironment::new();
    env.file("typed.ts", "const n: number = 41; console.log((n as any) + 1)");
    assert_eq!(env.run(["run", "typed.ts"]).ok(), "42\n");
    assert_eq!(env.run_with_stdin(["run", "-"], "console.log('in'); 5").ok(), "in\n");
}

#[test]
fn levels_of_the_console_go_where_node_sends_them() {
    let env = TestEnvironment::new();
    let code =
        "console.log('l'); console.info('i'); console.debug('d'); console.warn('w'); console.error('e')";
    let run = env.run(["run", "-e", code]);
    assert_eq!(run, Run { code: Some(0), stdout: "l\ni\nd\n".into(), stderr: "w\ne\n".into() });
}

#[test]
fn an_exception_is_printed_with_file_and_line_and_ends_with_1() {
    let env = TestEnvironment::new();
    env.file("bad.js", "\nfunction f() { throw new TypeError('nope') }\nf()");
    let error = env.run(["run", "bad.js"]).failed(1);
    assert!(error.starts_with("Uncaught TypeError: nope\n") && error.contains("bad.js:2"), "{error}");
    let error = env.run(["run", "-e", "throw 42"]).failed(1);
    assert_eq!(error, "Uncaught 42\n");
    let error = env.run(["run", "-e", "1 +"]).failed(1);
    assert!(error.contains("SyntaxError"), "{error}");
}

#[test]
fn a_module_with_the_extension_of_a_script_gets_a_hint() {
    let env = TestEnvironment::new();
    env.file("m.mjs", "export const x = 1");
    env.file("plain.js", "import {x} from './m.mjs'; console.log(x)");
    assert!(env.run(["run", "plain.js"]).failed(1).contains("hint: `import`"));
    env.file("wrong.js", "const = 1");
    assert!(!env.run(["run", "wrong.js"]).failed(1).contains("hint"));
}

#[test]
fn process_exit_is_the_exit_code() {
    let env = TestEnvironment::new();
    let run = env.run(["run", "-e", "console.log('before'); process.exit(7); console.log('after')"]);
    assert_eq!(run, Run { code: Some(7), stdout: "before\n".into(), stderr: String::new() });
    assert_eq!(env.run(["run", "-e", "process.exit(0)"]).ok(), "");
}

#[test]
fn a_timeout_ends_with_124() {
    let env = TestEnvironment::new();
    env.run(["run", "--timeout", "200ms", "-e", "for (;;) {}"]).failed(124);
    env.run(["run", "--timeout", "200ms", "-e", "await new Promise(() => setTimeout(() => {}, 60000))"])
        .failed(124);
}

#[test]
fn too_much_memory_is_an_error_of_the_script() {
    let env = TestEnvironment::new();
    let run =
        env.run(["run", "--memory", "32", "-e", "const a = []; for (;;) a.push(new Array(1e5).fill(7))"]);
    assert_eq!(run.code, Some(1), "{run:?}");
}

#[test]
fn other_signals_end_it_with_their_own_numbers() {
    let env = TestEnvironment::new();
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let mut child = env.command(["run", "-e", "console.log('up'); for (;;) {}"]).spawn().unwrap();
        assert_eq!(first_line(&mut child), "up");
        signal_child(&child, signal);
        assert_eq!(wait(&mut child).code(), Some(code), "{signal}");
    }
}

#[test]
fn ctrl_c_ends_with_130_also_when_the_whole_group_gets_it() {
    let env = TestEnvironment::new();
    for whole_group in [false, true] {
        let mut command = env.command(["run", "-e", "console.log('up'); for (;;) {}"]);
        let mut child = command.process_group(0).spawn().unwrap();
        assert_eq!(first_line(&mut child), "up");
        if whole_group {
            let group = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
            nix::sys::signal::killpg(group, Signal::SIGINT).unwrap();
        } else {
            signal_child(&child, Signal::SIGINT);
        }
        assert_eq!(wait(&mut child).code(), Some(130), "whole group: {whole_group}");
    }
}

#[test]
fn a_long_report_is_printed_completely_and_in_order() {
    let env = TestEnvironment::new();
    let printed = env.run(["run", "-e", "for (let i = 0; i < 5000; i++) console.log(i)"]).ok();
    assert!(printed.lines().map(|line| line.parse::<u32>().unwrap()).eq(0..5_000));
}

#[test]
fn a_reader_that_closes_the_pipe_ends_the_run() {
    let env = TestEnvironment::new();
    let mut child = env
        .command(["run", "-e", "for (let i = 0; i < 100000; i++) console.log('x'.repeat(100))"])
        .spawn()
        .unwrap();
    first_line(&mut child);
    drop(child.stdout.take());
    let run = Run::from_output(&child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(141), ""));
}

/// As a pager in which nobody scrolls: the pipe is full.
#[test]
fn signals_and_the_timeout_end_a_run_whose_output_nobody_reads() {
    const ENDLESS: &str = "console.log('up'); for (;;) console.log('x'.repeat(100000))";
    let env = TestEnvironment::new();
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut child = env.command(["run", "--max-output-kb", "1000000", "-e", ENDLESS]).spawn().unwrap();
        assert_eq!(first_line(&mut child), "up");
        signal_child(&child, signal);
        assert_eq!(wait(&mut child).code(), Some(code), "{signal}");
    }
    let timed = ["run", "--timeout", "1s", "--max-output-kb", "1000000", "-e", ENDLESS];
    let mut child = env.command(timed).spawn().unwrap();
    assert_eq!(wait(&mut child).code(), Some(124));
}

#[test]
fn files_that_cannot_be_run_are_named() {
    let env = TestEnvironment::new();
    let error = env.run(["run", "missing.js"]).failed(1);
    assert!(error.starts_with("error: cannot read missing.js"), "{error}");
    std::fs::create_dir(env.work().join("folder.js")).unwrap();
    let error = env.run(["run", "folder.js"]).failed(1);
    assert!(error.contains("is a folder"), "{error}");
}

#[test]
fn results_and_writes_of_many_bytes_do_not_wait_for_each_other() {
    let env = TestEnvironment::new();
    let long = ["run", "--timeout", "20s", "--max-output-kb", "8192", "--output", "json", "-e"];
    for code in ["'x'.repeat(4_194_200)", "console.log('y'.repeat(100_000)); 'x'.repeat(4_000_000)"] {
        let record: serde_json::Value =
            serde_json::from_str(&env.run(long.into_iter().chain([code])).ok()).unwrap();
        assert_eq!((&record["status"], record["result"]["json"].is_string()), (&"ok".into(), true), "{code}");
    }
    let writes = "for (let n = 0; n < 12; n++) require('fs').appendFileSync('big', 'x'.repeat(1_000_000)); \
        require('fs').statSync('big').size";
    assert_eq!(env.run(["run", "--timeout", "20s", "--allow-write", "-e", writes]).ok(), "12000000\n");
    let small = "for (let n = 0; n < 300; n++) require('fs').appendFileSync('small', 'x'.repeat(60_000)); \
        require('fs').statSync('small').size";
    assert_eq!(env.run(["run", "--timeout", "20s", "--allow-write", "-e", small]).ok(), "18000000\n");
}

#[test]
fn an_error_that_was_cut_says_so_with_its_size() {
    let env = TestEnvironment::new();
    let code = "throw new Error('\u{e9}'.repeat(300_000))";
    let notice = "... [truncated: the message has 300000 characters]\n";
    let shown = env.run(["run", "-e", code]).failed(1);
    assert!(shown.contains(notice), "{}", &shown[shown.len() - 200..]);
    assert_eq!(shown.matches("[truncated: ").count(), 1, "one notice");
    let record = env.run(["run", "--output", "json", "-e", code]);
    assert_eq!(record.code, Some(1));
    let record: serde_json::Value = serde_json::from_str(&record.stdout).unwrap();
    for sized in [&record["error"], &record["events"][1]["payload"]] {
        assert_eq!((&sized["truncated"], &sized["full_bytes"]), (&true.into(), &600_007.into()));
    }
    assert!(!env.run(["run", "-e", "throw new Error('short')"]).failed(1).contains("truncated"));
}

#[test]
fn a_value_that_was_cut_says_so_with_the_option_that_applies() {
    let env = TestEnvironment::new();
    let shown = env.run(["run", "-e", "'x'.repeat(5e6)"]).stderr;
    assert!(shown.contains("its JSON, of 5000002 bytes, is not stored: at most 4 MiB are]"), "{shown}");
    let shown = env.run(["run", "--max-output-kb", "300", "-e", "'x'.repeat(3e6)"]).stderr;
    assert!(shown.contains("of 3000002 bytes, is not stored: raise --max-output-kb KIB"), "{shown}");
}

#[test]
fn hints_name_the_folder_and_the_kind_of_the_file() {
    let env = TestEnvironment::new();
    env.file("args.js", "module.exports = 1");
    env.file("sub/r.js", "require('../args.js')");
    let error = env.run(["run", "--worktree", "sub", "sub/r.js"]).failed(1);
    assert!(error.contains("outside the worktree") && error.contains("--worktree DIR"), "{error}");
    for (name, text) in [("im.txt", "import fs from 'fs'"), ("bare", "export const a = 1")] {
        env.file(name, text);
        let error = env.run(["run", name]).failed(1);
        assert!(error.contains("rename it to .mjs"), "{name}: {error}");
    }
}

#[test]
fn a_top_level_await_that_can_never_settle_is_exit_code_13() {
    let env = TestEnvironment::new();
    let never = "await new Promise(() => {})";
    for name in ["never.js", "never.mjs", "never.ts"] {
        env.file(name, never);
        let error = env.run(["run", name]).failed(13);
        assert!(
            error.contains("top-level await never settled: nothing is left that could resolve it"),
            "{error}"
        );
    }
    env.file("imports.mjs", "import './never.mjs'");
    assert!(env.run(["run", "imports.mjs"]).failed(13).contains("never settled"));
    assert!(env.run(["run", "-e", never]).failed(13).contains("never settled"));
    assert!(env.run_with_stdin(["run", "-"], never).failed(13).contains("never settled"));
    // A file's own exit code goes before it, as in Node, and nothing waits for the promise of a dynamic import.
    env.file("own.mjs", &format!("process.exitCode = 7; {never}"));
    assert_eq!(env.run(["run", "own.mjs"]).code, Some(7));
    env.file("dynamic.mjs", "import('./never.mjs').then(() => console.log('never')); console.log('end')");
    assert_eq!(env.run(["run", "dynamic.mjs"]).ok(), "end\n");
    assert_eq!(env.run(["run", "-e", "throw new Error('x')"]).code, Some(1));
    // The text alone is any error's.
    let same = "throw new Error('top-level await never settled: nothing is left that could resolve it')";
    assert_eq!(env.run(["run", "-e", same]).code, Some(1));
    assert_eq!(env.run(["run", "-e", "process.exit(13)"]).code, Some(13));
}

#[test]
fn an_exit_code_that_is_no_integer_is_an_error() {
    let env = TestEnvironment::new();
    for code in ["process.exit('a')", "process.exitCode = 'x'", "process.exit(true)"] {
        let error = env.run(["run", "-e", code]).failed(1);
        assert!(error.contains("TypeError: The \"code\" argument must be of type number"), "{code}: {error}");
    }
    assert!(env.run(["run", "-e", "process.exit(1.5)"]).failed(1).contains("RangeError"));
    assert_eq!(env.run(["run", "-e", "process.exit('3')"]).code, Some(3));
    env.file("text.js", "process.exitCode = '4'");
    assert_eq!(env.run(["run", "text.js"]).code, Some(4));
    env.file("none.js", "process.exitCode = 5; process.exitCode = undefined");
    assert_eq!(env.run(["run", "none.js"]).code, Some(0));
}

#[test]
fn other_formats_print_the_whole_record() {
    let env = TestEnvironment::new();
    let text = env.run(["run", "--output", "json", "-e", "console.log(1); ({a: 2})"]).ok();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&record["status"], &record["result"]),
        (&"ok".into(), &serde_json::json!({"type": "object", "preview": "{ a: 2 }", "json": {"a": 2}}))
    );
    assert_eq!(record["events"].as_array().unwrap().len(), 3);
}

#[test]
fn a_root_that_may_not_limit_workers_without_namespaces_gets_that_error() {
    let env = TestEnvironment::new();
    let run = env.run(["run", "--sandbox", "no-userns", "-e", "6 * 7"]);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    let may_limit = u64::from_str_radix(capabilities, 16).unwrap() & 1 << 24 != 0;
    if nix::unistd::geteuid().is_root() && !may_limit {
        let stderr = run.failed(77);
        assert!(stderr.contains("cannot set the resource limits"), "{stderr}");
        assert!(stderr.contains("hint:") && stderr.contains("CAP_SYS_RESOURCE"), "{stderr}");
        assert!(!stderr.contains("CAPACITY_EXCEEDED"), "{stderr}");
    } else {
        vm_system_testkit::skip(
            "limited-root",
            "the refusal without CAP_SYS_RESOURCE needs a root without it",
        );
        assert_eq!(run.ok(), "42\n");
    }
}

/// The files in a test's folder for temporary files.
fn left_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn records_of_a_run_are_private_and_deleted_at_its_end() {
    let env = TestEnvironment::new();
    let temporary = env.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let run = |code: &str| {
        let mut command = env.command(["run", "-e", code]);
        command.env("TMPDIR", &temporary);
        command
    };
    assert_eq!(Run::from_output(&run("6 * 7").output().unwrap()).ok(), "42\n");
    assert_eq!(left_in(&temporary), [] as [PathBuf; 0]);
    for (signal, is_left) in [(Signal::SIGINT, false), (Signal::SIGKILL, true)] {
        let mut child = run("console.log('up'); for (;;) {}").spawn().unwrap();
        assert_eq!(first_line(&mut child), "up");
        let [folder] = &left_in(&temporary)[..] else { panic!("not one folder") };
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        signal_child(&child, signal);
        wait(&mut child);
        assert_eq!(folder.exists(), is_left, "{signal}");
        if is_left {
            // As if it were old; the next run deletes it.
            let an_hour_ago = SystemTime::now() - Duration::from_hours(1);
            File::open(folder).unwrap().set_modified(an_hour_ago).unwrap();
        }
    }
    assert_eq!(Run::from_output(&run("6 * 7").output().unwrap()).ok(), "42\n");
    assert_eq!(left_in(&temporary), [] as [PathBuf; 0]);
}

#[test]
fn a_run_without_a_folder_for_temporary_files_fails_with_a_hint() {
    let env = TestEnvironment::new();
    let run =
        Run::from_output(&env.command(["run", "-e", "1"]).env("TMPDIR", env.path("none")).output().unwrap());
    let stderr = run.failed(2);
    assert!(stderr.contains("TMPDIR"), "{stderr}");
}
