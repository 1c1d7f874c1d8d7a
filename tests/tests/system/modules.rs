//! Host modules and rights through the real daemon: exactly what a template grants is available, a change of the template is in
//! force at the next execution, and every use and denial is in the record.

use std::os::unix::fs::symlink;
use vm_system_protocol::control::{ErrorCode, TemplateAddModule, TemplateDelete, TemplateRemoveModule};
use vm_system_protocol::model::{CapabilityKind, Settings};
use vm_system_tests::as_both;
use vm_system_tests::client::value;
use vm_system_tests::daemon::DaemonOptions;
use vm_system_tests::place::User;
use vm_system_tests::rights::Bench;

as_both!(
    files_are_changed_only_where_a_row_grants_it,
    patterns_hold_against_links_and_dots,
    a_change_of_the_template_is_in_force_at_the_next_execution,
    denials_and_uses_are_in_the_record,
    databases_belong_to_the_workspace,
    an_execution_that_leaves_a_transaction_open_loses_it,
    statements_without_end_are_ended,
    sql_reaches_nothing_but_its_database,
    variables_come_from_the_operator_and_the_template,
    globals_are_switched_off_and_on,
    rows_without_meaning_are_refused,
    limits_of_calls_and_bytes_end_the_call_and_not_the_session,
    examples_of_the_rights_page_run
);

mod cases {
    use super::*;

    pub(super) fn files_are_changed_only_where_a_row_grants_it(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        bench.daemon.place.write("in.txt", "in");
        let reader = bench.session();
        let write = "require('fs').writeFileSync('out/a.txt', 'x')";
        assert_eq!(bench.code(&reader, write), "'EACCES'");
        bench.row(CapabilityKind::Fs, "write", r#"{"paths":["out/**"]}"#);
        assert_eq!(bench.code(&reader, write), "'EACCES'", "an old session gains nothing");
        let writer = bench.session();
        let all = "const fs = require('fs'); fs.mkdirSync('out/deep/er', { recursive: true }); \
            fs.writeFileSync('out/a.txt', 'one'); fs.appendFileSync('out/a.txt', ' two'); \
            fs.copyFileSync('in.txt', 'out/b.txt'); fs.renameSync('out/b.txt', 'out/c.txt'); \
            fs.writeFileSync('out/deep/er/big', Buffer.alloc(3_000_000, 7)); \
            const dir = fs.mkdtempSync('out/tmp-'); fs.rmdirSync(dir); fs.unlinkSync('out/c.txt'); \
            const size = fs.statSync('out/deep/er/big').size; fs.rmSync('out/deep', { recursive: true }); \
            [fs.readFileSync('out/a.txt', 'utf8'), size, fs.readdirSync('out').join()].join('|')";
        assert_eq!(bench.eval(&writer, all), "'one two|3000000|a.txt'");
        let real = std::fs::read_to_string(bench.daemon.place.worktree().join("out/a.txt")).expect("written");
        assert_eq!(real, "one two");
        for call in [
            "fs.writeFileSync('other.txt', '')",
            "fs.writeFileSync('out/../other.txt', '')",
            "fs.unlinkSync('in.txt')",
            "fs.renameSync('out/a.txt', 'a.txt')",
            "fs.renameSync('in.txt', 'out/in.txt')",
            "fs.rmSync('.', { recursive: true })",
            "fs.mkdirSync('new')",
            "fs.copyFileSync('out/a.txt', 'b.txt')",
            "await fs.promises.writeFile('x', '')",
        ] {
            assert_eq!(bench.code(&writer, call), "'EACCES'", "{call}");
        }
        assert!(bench.daemon.place.worktree().join("in.txt").exists());
        bench.end();
    }

    pub(super) fn patterns_hold_against_links_and_dots(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        let place = &bench.daemon.place;
        place.write("public/a.txt", "a");
        place.write("private/b.txt", "b");
        std::fs::write(place.path("secret"), "outside").expect("secret");
        symlink("../private", place.worktree().join("public/link")).expect("link");
        symlink("../../secret", place.worktree().join("public/up")).expect("link");
        bench.row(CapabilityKind::Fs, "read", r#"{"paths":["public/**"]}"#);
        bench.row(CapabilityKind::Fs, "write", r#"{"paths":["public/*"]}"#);
        let session = bench.session();
        assert_eq!(
            bench.eval(&session, "const fs = require('fs'); fs.readFileSync('./public/x/../a.txt', 'utf8')"),
            "'a'"
        );
        for path in [
            "private/b.txt",
            "public/../private/b.txt",
            "public/link/b.txt",
            "public/up",
            "public/link",
            "../secret",
            "/etc/passwd",
            "/proc/self/root/etc/passwd",
            "public/../../secret",
        ] {
            let call = format!("fs.readFileSync('{path}')");
            assert_eq!(bench.code(&session, &call), "'EACCES'", "{path}");
            let call = format!("fs.writeFileSync('{path}', 'x')");
            assert_eq!(bench.code(&session, &call), "'EACCES'", "{path}");
        }
        assert_eq!(bench.code(&session, "fs.readFileSync('public/a.txt\\0')"), "'ERR_INVALID_ARG_VALUE'");
        // Modules may be loaded from paths that may be read, and from no other.
        bench.daemon.place.write("public/m.js", "module.exports = 'm'");
        bench.daemon.place.write("private/k.json", "{}");
        assert_eq!(bench.eval(&session, "require('./public/m.js')"), "'m'");
        for name in ["./private/k.json", "./public/link/k.json", "./private/none.js"] {
            assert_eq!(bench.code(&session, &format!("require('{name}')")), "'MODULE_NOT_ALLOWED'", "{name}");
        }
        // The folders' names are permitted, the paths beneath them are not.
        bench.daemon.place.write("public/folder/file", "f");
        assert_eq!(bench.code(&session, "fs.rmSync('public/folder', { recursive: true })"), "'EACCES'");
        assert_eq!(bench.code(&session, "fs.renameSync('public/folder', 'public/other')"), "'EACCES'");
        assert!(bench.daemon.place.worktree().join("public/folder/file").exists());
        assert_eq!(std::fs::read_to_string(bench.daemon.place.path("secret")).expect("secret"), "outside");
        bench.end();
    }

    pub(super) fn a_change_of_the_template_is_in_force_at_the_next_execution(user: User) {
        let mut bench = Bench::new(user, &["fs", "database"]);
        bench.daemon.place.write("a.txt", "a");
        let session = bench.session();
        let read = "require('fs').readFileSync('a.txt', 'utf8')";
        assert_eq!(bench.eval(&session, read), "'a'");
        let row = bench.row(CapabilityKind::Module, "fs", r#"{"read":["none/**"]}"#);
        assert_eq!(bench.code(&session, read), "'EACCES'", "narrowed");
        bench.remove_row(row);
        assert_eq!(bench.eval(&session, read), "'a'", "the session gets its grant back");
        let row = bench.try_row(CapabilityKind::Module, "fs", false, "{}").expect("a row");
        assert_eq!(bench.code(&session, read), "'MODULE_NOT_ALLOWED'", "withdrawn");
        bench.remove_row(row);
        assert_eq!(bench.eval(&session, read), "'a'");
        let template = bench.template.clone();
        let remove = TemplateRemoveModule { template: template.clone(), name: "fs".to_owned() };
        bench.client.op(remove).expect("removed");
        assert_eq!(bench.code(&session, read), "'MODULE_NOT_ALLOWED'", "removed");
        assert_eq!(
            bench.code(&session, "kept.readFileSync('a.txt')"),
            "'ReferenceError: kept is not defined'"
        );
        bench.client.op(TemplateAddModule { template, name: "fs".to_owned() }).expect("added");
        // A kept reference to the module is subject to the policy of the execution that calls.
        assert_eq!(
            bench.eval(&session, "var kept = require('fs'); kept.readFileSync('a.txt', 'utf8')"),
            "'a'"
        );
        let row = bench.try_row(CapabilityKind::Module, "fs", false, "{}").expect("a row");
        assert_eq!(bench.code(&session, "kept.readFileSync('a.txt')"), "'MODULE_NOT_ALLOWED'");
        bench.remove_row(row);
        bench.client.op(TemplateDelete { template: bench.template.clone() }).expect("deleted");
        assert_eq!(bench.eval(&session, read), "'a'", "sessions of a deleted template continue");
        bench.end();
    }

    pub(super) fn denials_and_uses_are_in_the_record(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        bench.daemon.place.write("a.txt", "12345");
        let session = bench.session();
        let lines = bench.console_lines(
            &session,
            "const fs = require('fs'); fs.readFileSync('a.txt'); fs.existsSync('b'); \
             try { fs.writeFileSync('a.txt', 'x') } catch {} try { fs.readFileSync('../x') } catch {}",
        );
        assert!(
            lines[0].starts_with("denied: fs.writeFile: EACCES: ") && lines[0].ends_with(", open 'a.txt'"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("denied: fs: EACCES: permission denied (the path leaves"), "{lines:?}");
        assert_eq!(
            lines[2],
            "module fs: 3 calls (exists 1, readFile 2), 5 bytes read, 0 bytes written, 1 failed, 1 denied (writeFile 1), 1 refused"
        );
        let lines = bench.console_lines(
            &session,
            "for (let i = 0; i < 500; i++) { try { fs.writeFileSync('a.txt', 'x') } catch {} } 0",
        );
        assert_eq!(lines.len(), 17, "bounded: {lines:?}");
        assert!(lines[16].contains("500 denied"), "{lines:?}");
        let ungranted = bench.client.template(Settings::default(), &[]);
        let ungranted = bench.client.session(&ungranted, &bench.daemon.place.worktree()).expect("session");
        for module in ["fs", "database", "exec"] {
            assert_eq!(
                bench.code(&ungranted, &format!("require('{module}')")),
                "'MODULE_NOT_ALLOWED'",
                "{module}"
            );
        }
        let why = "await fetch('http://a.test/').catch((error) => error.cause.code)";
        assert_eq!(bench.eval(&ungranted, why), "'ERR_NET_DENIED'");
        bench.end();
    }

    pub(super) fn databases_belong_to_the_workspace(user: User) {
        let mut bench = Bench::new(user, &["database"]);
        let (one, two) = (bench.session(), bench.session());
        let made = "const db = require('database'); db.configure('sqlite3', 'app.db'); \
            db.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, data BLOB, big INTEGER, real REAL)'); \
            const r = db.exec('INSERT INTO t (name, data, big, real) VALUES (?, ?, ?, ?)', 'ä', \
              new Uint8Array([1, 2]), 9007199254740993n, 1.5); \
            db.exec('INSERT INTO t (name) VALUES (:name)', { name: null }); JSON.stringify(r)";
        assert_eq!(bench.eval(&one, made), r#"'{"success":true,"rowsAffected":1,"lastInsertId":1}'"#);
        let seen = "const db = require('database'); db.configure('sqlite3', 'app.db'); \
            const row = db.query('SELECT * FROM t WHERE id = $id', { $id: 1 })[0]; \
            [row.name, Buffer.isBuffer(row.data) && row.data[1], typeof row.big, row.big, row.real, \
             db.query('SELECT count(*) AS n FROM t')[0].n].join()";
        assert_eq!(bench.eval(&two, seen), "'ä,2,bigint,9007199254740993,1.5,2'", "the same workspace");
        for (call, code) in [
            ("db.query('SELECT nothing')", "'SQLITE_ERROR'"),
            ("db.exec('INSERT INTO t (id) VALUES (1)')", "'SQLITE_CONSTRAINT_PRIMARYKEY'"),
            ("db.query('SELECT ?', 1, 2)", "'SQLITE_RANGE'"),
            ("db.query('SELECT :a', { b: 1 })", "'SQLITE_RANGE'"),
            ("db.query('SELECT 1; SELECT 2')", "'SQLITE_MISUSE'"),
            ("db.query('SELECT ?', 1n << 64n)", "'ERR_OUT_OF_RANGE'"),
            ("db.query('SELECT ?', Symbol())", "'ERR_INVALID_ARG_TYPE'"),
            ("db.configure('postgres')", "'ERR_INVALID_ARG_VALUE'"),
            ("db.configure('sqlite3', '../x')", "'ERR_INVALID_ARG_VALUE'"),
            ("db.configure('sqlite3', '/etc/passwd')", "'ERR_INVALID_ARG_VALUE'"),
            ("db.query('SELECT 1' + '\\0')", "'ERR_INVALID_ARG_VALUE'"),
        ] {
            assert_eq!(bench.code(&two, call), code, "{call}");
        }
        let memory =
            "db.configure('sqlite3', ':memory:'); db.exec('CREATE TABLE m (a)'); db.close(); 'closed'";
        assert_eq!(bench.eval(&two, memory), "'closed'");
        assert_eq!(
            bench.code(&two, "db.query('SELECT * FROM m')"),
            "'SQLITE_ERROR'",
            "gone with its connection"
        );
        bench.end();
    }

    pub(super) fn an_execution_that_leaves_a_transaction_open_loses_it(user: User) {
        let mut bench = Bench::new(user, &["database"]);
        let (one, two) = (bench.session(), bench.session());
        bench.eval(&one, "const db = require('database'); db.exec('CREATE TABLE t (a)'); 0");
        bench.eval(&one, "db.exec('BEGIN IMMEDIATE'); db.exec('INSERT INTO t VALUES (1)'); 0");
        // The other session's write waits for the lock, which must have been released.
        let write = "const db = require('database'); db.exec('INSERT INTO t VALUES (2)'); 0";
        assert_eq!(bench.eval(&two, write), "0");
        assert_eq!(bench.eval(&one, "db.query('SELECT a FROM t').map((row) => row.a).join()"), "'2'");
        bench.end();
    }

    pub(super) fn statements_without_end_are_ended(user: User) {
        let mut bench = Bench::new(user, &["database"]);
        bench.row(
            CapabilityKind::Module,
            "database",
            r#"{"timeout_ms":300,"max_rows":50,"max_result_kb":64}"#,
        );
        let session = bench.session();
        bench.eval(&session, "const db = require('database'); db.exec('CREATE TABLE t (a)'); 0");
        let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000)";
        bench.eval(&session, &format!("db.exec('INSERT INTO t {many} SELECT i FROM n').rowsAffected"));
        for (sql, code) in [
            ("SELECT count(*) FROM t a, t b, t c, t d, t e", "'ETIMEDOUT'"),
            (
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
                "'ETIMEDOUT'",
            ),
            ("SELECT a FROM t", "'ERR_RESULT_LIMIT'"),
            ("SELECT zeroblob(100000)", "'ERR_RESULT_LIMIT'"),
            ("SELECT zeroblob(1000000000)", "'SQLITE_TOOBIG'"),
            ("SELECT hex(zeroblob(900000000))", "'SQLITE_TOOBIG'"),
        ] {
            assert_eq!(bench.code(&session, &format!("db.query('{sql}')")), code, "{sql}");
        }
        let deep = "db.query('SELECT ' + '('.repeat(5000) + '1' + ')'.repeat(5000))";
        assert_eq!(bench.code(&session, deep), "'SQLITE_ERROR'");
        assert_eq!(
            bench.eval(&session, "db.query('SELECT count(*) AS n FROM t')[0].n"),
            "2000",
            "it continues"
        );
        bench.end();
    }

    pub(super) fn sql_reaches_nothing_but_its_database(user: User) {
        let mut bench = Bench::new(user, &["database"]);
        let session = bench.session();
        bench.eval(&session, "const db = require('database'); db.exec('CREATE TABLE t (a)'); 0");
        for sql in [
            "ATTACH '/etc/passwd' AS x",
            "ATTACH ':memory:' AS x",
            "DETACH main",
            "VACUUM INTO '/tmp/copy'",
            "PRAGMA journal_mode = OFF",
            "PRAGMA max_page_count = 1000000000",
            "PRAGMA writable_schema = ON",
            "PRAGMA hard_heap_limit = 0",
            "PRAGMA temp_store_directory = '/tmp'",
            "PRAGMA trusted_schema = ON",
            "SELECT load_extension('/lib/x.so')",
            "SELECT fts3_tokenizer('simple')",
            "CREATE VIRTUAL TABLE v USING dbstat",
            "SELECT * FROM dbstat",
            "SELECT count(*) FROM main.dbstat",
            "SELECT name FROM pragma_database_list",
            "SELECT * FROM pragma_module_list",
            "SELECT * FROM pragma_compile_options",
            "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')",
        ] {
            let code = bench.code(&session, &format!("db.exec(\"{sql}\")"));
            assert!(["'SQLITE_AUTH'", "'SQLITE_ERROR'"].contains(&code.as_str()), "{sql}: {code}");
        }
        assert_eq!(bench.code(&session, "db.exec(\"UPDATE sqlite_schema SET sql = 'x'\")"), "'SQLITE_ERROR'");
        assert_eq!(
            bench.eval(&session, "db.query('PRAGMA table_info(t)')[0].name"),
            "'a'",
            "tasks are answered"
        );
        let row = bench.row(CapabilityKind::Module, "database", r#"{"read_only":true}"#);
        assert_eq!(bench.code(&session, "db.exec('INSERT INTO t VALUES (1)')"), "'SQLITE_READONLY'");
        assert_eq!(bench.eval(&session, "db.query('SELECT count(*) AS n FROM t')[0].n"), "0");
        bench.remove_row(row);
        let small = r#"{"max_database_kb":64}"#;
        bench.row(CapabilityKind::Module, "database", small);
        let fill = "db.exec('INSERT INTO t VALUES (randomblob(200000))')";
        assert_eq!(bench.code(&session, fill), "'SQLITE_FULL'");
        bench.end();
    }

    pub(super) fn variables_come_from_the_operator_and_the_template(user: User) {
        let config = "[env]\nREGION = \"here\"\nSECRET = \"operator's\"\n".to_owned();
        let mut bench = Bench::with_modules(user, &[], &DaemonOptions { config, ..DaemonOptions::default() });
        let session = bench.session();
        assert_eq!(bench.eval(&session, "Object.keys(process.env).length"), "0", "off without a row");
        bench.row(CapabilityKind::Env, "REGION", "{}");
        bench.row(CapabilityKind::Env, "MODE", r#"{"value":"test"}"#);
        bench.row(CapabilityKind::Env, "ABSENT", "{}");
        let session = bench.session();
        assert_eq!(
            bench.eval(&session, "JSON.stringify(process.env)"),
            r#"'{"MODE":"test","REGION":"here"}'"#
        );
        let op = vm_system_protocol::control::ExecStart {
            env: vec![("MODE".to_owned(), "given".to_owned()), ("X".to_owned(), "1".to_owned())],
            ..vm_system_tests::client::repl(&session, "JSON.stringify(process.env)", true)
        };
        let Ok(state) = bench.client.op(op) else { panic!("not run") };
        let execution = state.execution();
        let events = bench.client.events(&execution.id.to_string());
        assert_eq!(
            value(&events),
            Some(r#"'{"MODE":"given","REGION":"here","X":"1"}'"#),
            "the client's come last"
        );
        assert!(!execution.env.as_str().contains("here"), "only what the client gave is recorded");
        bench.end();
    }

    pub(super) fn globals_are_switched_off_and_on(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        bench.daemon.place.write("a.txt", "a");
        let session = bench.session();
        for name in vm_system_policy::globals::SWITCHABLE {
            assert_eq!(
                bench.eval(&session, &format!("typeof {name} !== 'undefined'")),
                "true",
                "{name} is there"
            );
            let row = bench.try_row(CapabilityKind::Global, name, false, "{}").expect("a row");
            let used = format!(
                "[typeof {name}, `${{1 + 2}}`, require('fs').readFileSync('a.txt', 'utf8'), \
                 await (async () => 4)()].join()"
            );
            assert_eq!(bench.eval(&session, &used), "'undefined,3,a,4'", "{name}");
            bench.remove_row(row);
        }
        assert_eq!(bench.eval(&session, "eval('1 + 1') + new Function('return 1')()"), "3", "and on again");
        bench.try_row(CapabilityKind::Global, "eval", false, "{}").expect("a row");
        bench.try_row(CapabilityKind::Global, "Function", false, "{}").expect("a row");
        for code in
            ["eval('1')", "(0, eval)('1')", "(() => {}).constructor('return 1')()", "new Function('1')"]
        {
            let thrown = bench.code(&session, code);
            assert!(thrown.contains("Error"), "{code}: {thrown}");
        }
        bench.end();
    }

    pub(super) fn rows_without_meaning_are_refused(user: User) {
        let mut bench = Bench::new(user, &[]);
        for (kind, name, config) in [
            (CapabilityKind::Module, "nothing", "{}"),
            (CapabilityKind::Module, "fs", r#"{"reed":[]}"#),
            (CapabilityKind::Module, "fs", r#"{"read":"a"}"#),
            (CapabilityKind::Module, "fs", r#"{"read":["/etc/**"]}"#),
            (CapabilityKind::Module, "fs", r#"{"read":["../x"]}"#),
            (CapabilityKind::Module, "fs", r#"{"max_file_kb":0}"#),
            (CapabilityKind::Module, "fs", r#"{"max_file_kb":99999999}"#),
            (CapabilityKind::Module, "database", r#"{"timeout_ms":-1}"#),
            (CapabilityKind::Module, "exec", r#"{"commands":["/bin/sh"]}"#),
            (CapabilityKind::Fs, "delete", "{}"),
            (CapabilityKind::Fs, "read", r#"{"paths":["a[b]"]}"#),
            (CapabilityKind::Global, "globalThis", "{}"),
            (CapabilityKind::Global, "eval", r#"{"x":1}"#),
            (CapabilityKind::Net, "a", r#"{"allow":["ftp://a"]}"#),
            (CapabilityKind::Net, "a", r#"{"hosts":["a"]}"#),
            (CapabilityKind::Net, "a", r#"{"methods":["get"]}"#),
            (CapabilityKind::Net, "a", r#"{"timeout_ms":0}"#),
            (CapabilityKind::Env, "A=B", "{}"),
            (CapabilityKind::Env, "A", r#"{"value":1}"#),
        ] {
            let error = bench.try_row(kind, name, true, config).expect_err(config);
            assert_eq!(error.code, ErrorCode::ValidationError, "{kind} {name} {config}: {error:?}");
            assert!(error.hint.is_some(), "{kind} {name} {config}: {error:?}");
        }
        let add = |name: &str| TemplateAddModule { template: bench.template.clone(), name: name.to_owned() };
        let (http, exec) = (add("http"), add("exec"));
        let error = bench.client.op(http).expect_err("every session has it");
        let says_why = error.message.contains("capabilities of kind net");
        assert!(error.code == ErrorCode::ModuleNotAllowed && says_why, "{error:?}");
        let error = bench.client.op(exec).expect_err("no commands");
        assert!(error.message.contains("--allow-exec"), "{error:?}");
        bench.end();
    }

    pub(super) fn limits_of_calls_and_bytes_end_the_call_and_not_the_session(user: User) {
        let mut bench = Bench::new(user, &["fs"]);
        bench.daemon.place.write("two", vec![0; 2048]);
        let limits =
            r#"{"max_calls":20,"max_total_kb":8,"max_file_kb":4,"write_quota_kb":6,"max_entries":5}"#;
        bench.row(CapabilityKind::Module, "fs", limits);
        bench.row(CapabilityKind::Fs, "write", "{}");
        let session = bench.session();
        let code =
            "var fs = require('fs'); for (let i = 0; i < 100; i++) fs.existsSync('two'); fs.statSync('two')";
        assert_eq!(bench.code(&session, code), "'ERR_CALL_LIMIT'");
        let code = "for (let i = 0; i < 100; i++) fs.readFileSync('two')";
        assert_eq!(bench.code(&session, code), "'EDQUOT'");
        assert_eq!(bench.code(&session, "fs.writeFileSync('large', Buffer.alloc(5000))"), "'EFBIG'");
        assert_eq!(bench.code(&session, "fs.writeFileSync('a', Buffer.alloc(1024))"), "'nothing'");
        assert_eq!(
            bench.code(&session, "fs.writeFileSync('b', Buffer.alloc(1024))"),
            "'EDQUOT'",
            "the session's quota"
        );
        for name in ["1", "2", "3", "4", "5", "6"] {
            bench.daemon.place.write(&format!("many/{name}"), "");
        }
        assert_eq!(bench.code(&session, "fs.readdirSync('many')"), "'EFBIG'");
        assert_eq!(bench.eval(&session, "fs.existsSync('two')"), "true");
        bench.end();
    }

    /// The documented capability rows are valid, and the documented scripts run with them.
    pub(super) fn examples_of_the_rights_page_run(user: User) {
        let page = include_str!("../../../docs/rights.md");
        let blocks = |language: &str| {
            let fence = format!("```{language}\n");
            let parts = page.split(fence.as_str()).skip(1);
            parts.map(|part| part.split("```").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        let mut bench = Bench::new(user, &["fs", "database"]);
        for text in blocks("json") {
            let row: serde_json::Value = serde_json::from_str(&text).expect("a row");
            let kind = CapabilityKind::ALL.iter().find(|kind| row["kind"] == kind.as_str()).expect("a kind");
            let (name, enabled) = (row["name"].as_str().expect("a name"), row["enabled"] == true);
            bench.try_row(*kind, name, enabled, &row["config"].to_string()).expect(&text);
        }
        let session = bench.session();
        for (script, shown) in blocks("js").iter().zip(["'report,report/summary.txt'", "'first'"]) {
            assert_eq!(bench.eval(&session, script), shown, "{script}");
        }
        for name in vm_system_policy::globals::SWITCHABLE {
            assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
        }
        bench.end();
    }
}
