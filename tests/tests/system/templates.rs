//! Settings and startup files of templates: every field has its effect, through the daemon.

use vm_system_protocol::control::{
    ErrorCode, ExecList, ListPage, NewStartupFile, SessionGet, SessionKill, TemplateAddStartup,
    TemplateChange, TemplateDelete, TemplateUpdate,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Execution, ExecutionKind, ExecutionStatus, OnCrash, Session, SessionStatus, Settings,
};
use vm_system_tests::as_both;
use vm_system_tests::client::{Client, value};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::Scene;

as_both!(startup_files_run_in_order_and_are_recorded, a_failing_startup_file_is_named_with_its_line);

fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

fn session(scene: &mut Scene, settings: Settings) -> Session {
    let template = scene.client.template(settings, &[]);
    scene.client.session(&template, &scene.daemon.place.worktree()).expect("ready")
}

fn eval(client: &mut Client, session: &Session, code: &str) -> String {
    let execution = client.eval(session, code).expect("it runs");
    match (&execution.error, execution.events.as_deref().and_then(value)) {
        (Some(error), _) => error.message.clone(),
        (None, value) => value.expect("a value").to_owned(),
    }
}

fn add_startup(client: &mut Client, template: &str, path: &str, order_index: i64, mode: &str) {
    let file = NewStartupFile { path: path.to_owned(), order_index, mode: mode.to_owned() };
    client.op(TemplateAddStartup { template: template.to_owned(), file }).expect("added");
}

fn executions(client: &mut Client, session: &str) -> Vec<Execution> {
    client.op(ExecList::all(session.to_owned(), ListPage::first(50))).expect("listed")
}

fn change(client: &mut Client, template: &str, patch: &str) {
    let settings = Some(JsonText::from_untrusted(patch.to_owned()));
    let change = TemplateChange { name: None, settings };
    client.op(TemplateUpdate { template: template.to_owned(), change }).expect("changed");
}

#[test]
fn resolver_settings_decide_where_files_are_found() {
    let mut scene = Scene::new(User::AsStarted);
    let place = &scene.daemon.place;
    place.write("top.js", "exports.where = 'top'");
    place.write("lib/inner.js", "exports.where = 'lib'");
    place.write("lib/both.txt.js", "exports.where = 'lib'");
    place.write("data.es", "exports.where = 'es'");
    let plain = session(&mut scene, Settings::default());
    let where_is = |client: &mut Client, session: &Session, name: &str| {
        eval(client, session, &format!("try {{ require({name:?}).where }} catch (error) {{ error.code }}"))
    };
    assert_eq!(where_is(&mut scene.client, &plain, "./top"), "'top'");
    assert_eq!(where_is(&mut scene.client, &plain, "inner"), "'MODULE_NOT_FOUND'");
    assert_eq!(where_is(&mut scene.client, &plain, "./data"), "'MODULE_NOT_FOUND'");
    let absolute = where_is(&mut scene.client, &plain, "/top.js");
    assert!(absolute.starts_with("'MODULE_NOT"), "{absolute}");
    // The worktree's own path on the host is no path from its root.
    let place = &scene.daemon.place;
    place.write("pack/package.json", r#"{"main": "./main.js"}"#);
    place.write("pack/main.js", "exports.where = 'pack'");
    place.write("module.mjs", "export const where = 'module'");
    let worktree = place.worktree().display().to_string();
    for (path, right) in [("top.js", "top"), ("top", "top"), ("pack", "pack"), ("lib/inner", "lib")] {
        let found = where_is(&mut scene.client, &plain, &format!("{worktree}/{path}"));
        assert_eq!(found, format!("'{right}'"), "{path}");
    }
    for start in ["", "file://"] {
        let source = format!("(await import({:?})).where", format!("{start}{worktree}/module.mjs"));
        assert_eq!(eval(&mut scene.client, &plain, &source), "'module'");
    }
    let absent = where_is(&mut scene.client, &plain, &format!("{worktree}/absent"));
    assert!(absent.starts_with("'MODULE_NOT"), "{absent}");
    let other = session(
        &mut scene,
        settings(|settings| {
            settings.resolver.roots = vec!["lib".to_owned()];
            settings.resolver.extensions = vec![".es".to_owned(), ".js".to_owned()];
            settings.resolver.allow_absolute_repo_imports = true;
        }),
    );
    assert_eq!(where_is(&mut scene.client, &other, "inner"), "'lib'");
    assert_eq!(where_is(&mut scene.client, &other, "both.txt"), "'lib'");
    assert_eq!(where_is(&mut scene.client, &other, "/top.js"), "'top'");
    assert_eq!(where_is(&mut scene.client, &other, "/data"), "'es'");
    scene.end(&[]);
}

#[test]
fn esm_makes_files_modules() {
    let mut scene = Scene::new(User::AsStarted);
    scene.daemon.place.write("main.js", "import { x } from './x.js'; console.log(x, this === undefined);");
    scene.daemon.place.write("x.js", "export const x = 1;");
    let esm = session(&mut scene, settings(|settings| settings.runtime.esm = true));
    let ran = scene.client.run_file(&esm, "main.js").expect("it runs");
    assert_eq!(ran.status, ExecutionStatus::Ok, "{ran:?}");
    let plain = session(&mut scene, Settings::default());
    let ran = scene.client.run_file(&plain, "main.js").expect("it runs");
    assert_eq!(ran.error.expect("no module").code, "SYNTAX_ERROR");
    scene.end(&[]);
}

#[test]
fn strict_and_console_are_as_they_are_set() {
    let mut scene = Scene::new(User::AsStarted);
    scene.daemon.place.write("sloppy.js", "undeclared = 1");
    let strict = session(
        &mut scene,
        settings(|settings| {
            settings.runtime.strict = true;
            settings.runtime.console = false;
        }),
    );
    let undeclared = eval(&mut scene.client, &strict, "undeclared = 1");
    assert!(undeclared.contains("ReferenceError"), "{undeclared}");
    let ran = scene.client.run_file(&strict, "sloppy.js").expect("it runs");
    assert_eq!(ran.status, ExecutionStatus::Error, "{ran:?}");
    assert_eq!(eval(&mut scene.client, &strict, "typeof console"), "'undefined'");
    let plain = session(&mut scene, Settings::default());
    assert_eq!(eval(&mut scene.client, &plain, "undeclared = 1"), "1");
    assert_eq!(eval(&mut scene.client, &plain, "typeof console.log"), "'function'");
    scene.end(&[]);
}

#[test]
fn sources_over_max_source_kb_are_refused_before_they_run() {
    let mut scene = Scene::new(User::AsStarted);
    let long = format!("globalThis.ran = true; /*{}*/", "x".repeat(1024));
    scene.daemon.place.write("long.js", &long);
    let small = session(&mut scene, settings(|settings| settings.limits.max_source_kb = 1));
    let error = scene.client.eval(&small, &long).expect_err("too long");
    assert_eq!(error.code, ErrorCode::ValidationError);
    assert!(error.message.contains("max_source_kb"), "{}", error.message);
    let error = scene.client.run_file(&small, "long.js").expect_err("too long");
    assert!(error.message.contains("max_source_kb"), "{}", error.message);
    assert_eq!(eval(&mut scene.client, &small, "typeof ran"), "'undefined'");
    assert_eq!(executions(&mut scene.client, &small.id.to_string()).len(), 1);
    scene.end(&[]);
}

#[test]
fn sessions_end_by_their_age_and_when_idle() {
    let mut scene = Scene::new(User::AsStarted);
    let old = session(&mut scene, settings(|settings| settings.runtime.ttl_s = 1));
    let idle = session(&mut scene, settings(|settings| settings.runtime.idle_timeout_s = 1));
    for (session, reason) in [(&old, "expired"), (&idle, "idle")] {
        let record = scene.client.wait_for(session, SessionStatus::Closed);
        assert_eq!(record.close_reason.as_deref(), Some(reason));
    }
    let error = scene.client.eval(&old, "1").expect_err("it has ended");
    assert_eq!(error.code, ErrorCode::SessionNotReady);
    scene.end(&[]);
}

#[test]
fn session_is_crashed_after_the_exit_of_its_worker_and_stays_so() {
    let mut scene = Scene::new(User::AsStarted);
    let session = session(&mut scene, settings(|settings| settings.runtime.on_crash = OnCrash::Close));
    scene.client.op(SessionKill { session: session.id.to_string(), signal: 9 }).expect("killed");
    let record = scene.client.wait_for(&session, SessionStatus::Crashed);
    assert_eq!(record.close_reason.as_deref(), Some("killed(operator)"));
    scene.end(&[]);
}

#[test]
fn narrower_limits_apply_at_the_next_execution_and_wider_ones_to_new_sessions() {
    let mut scene = Scene::new(User::AsStarted);
    let template = scene.client.template(settings(|settings| settings.limits.max_events = 10), &[]);
    let worktree = scene.daemon.place.worktree();
    let old = scene.client.session(&template, &worktree).expect("ready");
    let chatter = "for (let i = 0; i < 5; i++) console.log(i)";
    let ran = scene.client.eval(&old, chatter).expect("it runs");
    assert_eq!(ran.status, ExecutionStatus::Ok, "{ran:?}");
    change(&mut scene.client, &template, r#"{"limits":{"max_events":3}}"#);
    let ran = scene.client.eval(&old, chatter).expect("it runs");
    assert_eq!(ran.error.expect("over the limit").code, "OUTPUT_LIMIT_EXCEEDED");
    change(&mut scene.client, &template, r#"{"limits":{"max_events":1000}}"#);
    let many = "for (let i = 0; i < 15; i++) console.log(i)";
    let ran = scene.client.eval(&old, many).expect("it runs");
    assert_eq!(ran.status, ExecutionStatus::Error, "wider only for new ones: {ran:?}");
    let new = scene.client.session(&template, &worktree).expect("ready");
    let ran = scene.client.eval(&new, many).expect("it runs");
    assert_eq!(ran.status, ExecutionStatus::Ok, "{ran:?}");
    scene.end(&[]);
}

#[test]
fn a_deleted_template_is_gone_and_its_sessions_continue() {
    let mut scene = Scene::new(User::AsStarted);
    let template = scene.client.template(Settings::default(), &[]);
    let worktree = scene.daemon.place.worktree();
    let session = scene.client.session(&template, &worktree).expect("ready");
    scene.client.op(TemplateDelete { template: template.clone() }).expect("deleted");
    assert_eq!(eval(&mut scene.client, &session, "1 + 1"), "2");
    let error = scene.client.session(&template, &worktree).expect_err("gone");
    assert_eq!(error.code, ErrorCode::TemplateNotFound);
    scene.end(&[]);
}

#[test]
fn the_operators_ceilings_hold_for_new_and_for_old_templates() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let generous = client.template(settings(|settings| settings.limits.max_events = 500), &[]);
    let place = daemon.stop();
    let config = "[ceilings]\nmax_events = 4\n".to_owned();
    let daemon = Daemon::start_with(place, &DaemonOptions { config, ..DaemonOptions::default() });
    let mut client = daemon.client();
    let patch = Some(JsonText::from_untrusted(r#"{"limits":{"max_events":5}}"#.to_owned()));
    let update =
        TemplateUpdate { template: generous.clone(), change: TemplateChange { name: None, settings: patch } };
    let error = client.op(update).expect_err("above the ceiling");
    assert_eq!(error.code, ErrorCode::LimitNotAllowed);
    assert!(
        error.message.contains("limits.max_events = 5") && error.message.contains("ceiling of 4"),
        "{error:?}"
    );
    let session = client.session(&generous, &daemon.place.worktree()).expect("ready");
    let ran = client.eval(&session, "for (let i = 0; i < 9; i++) console.log(i)").expect("it runs");
    assert_eq!(ran.error.expect("over the ceiling").code, "OUTPUT_LIMIT_EXCEEDED");
    daemon.stop();
}

#[test]
fn startup_files_may_be_modules_where_files_are() {
    let mut scene = Scene::new(User::AsStarted);
    scene.daemon.place.write("setup.js", "import { x } from './x.js'; globalThis.imported = x;");
    scene.daemon.place.write("x.js", "export const x = 7;");
    scene.daemon.place.write("plain.js", "var plain = this === globalThis;");
    let template = scene.client.template(settings(|settings| settings.runtime.esm = true), &[]);
    add_startup(&mut scene.client, &template, "setup.js", 0, "import");
    add_startup(&mut scene.client, &template, "plain.js", 1, "eval");
    let session = scene.client.session(&template, &scene.daemon.place.worktree()).expect("ready");
    assert_eq!(eval(&mut scene.client, &session, "[imported, plain]"), "[ 7, true ]");
    scene.end(&[]);
}

fn with_startup(user: User, files: &[(&str, &str, i64)]) -> (Daemon, Client, String) {
    let daemon = Daemon::start_with(TestDir::new(user), &DaemonOptions::default());
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &["fs"]);
    for (path, content, order_index) in files {
        if !content.is_empty() {
            daemon.place.write(path, content);
        }
        add_startup(&mut client, &template, path, *order_index, "eval");
    }
    (daemon, client, template)
}

mod cases {
    use super::*;

    pub(super) fn startup_files_run_in_order_and_are_recorded(user: User) {
        let files = [
            ("second.js", "order.push('second'); const { sep } = { sep: '/' };", 20),
            ("first.js", "var order = ['first']; console.log('up')", 10),
            ("third/a.ts", "order.push('third' as string);", 20),
        ];
        let (daemon, mut client, template) = with_startup(user, &files);
        let session = client.session(&template, &daemon.place.worktree()).expect("ready");
        assert_eq!(eval(&mut client, &session, "order.join() + sep"), "'first,second,third/'");
        let mut ran = executions(&mut client, &session.id.to_string());
        ran.reverse();
        let kinds: Vec<_> = ran.iter().map(|execution| (execution.kind, execution.path.as_deref())).collect();
        assert_eq!(
            kinds,
            [
                (ExecutionKind::Startup, Some("first.js")),
                (ExecutionKind::Startup, Some("second.js")),
                (ExecutionKind::Startup, Some("third/a.ts")),
                (ExecutionKind::Repl, None),
            ]
        );
        assert!(ran.iter().all(|execution| execution.status == ExecutionStatus::Ok));
        let events = client.events(&ran[0].id.to_string());
        assert_eq!(events.len(), 2, "a line and the value: {events:?}");
        daemon.stop();
    }

    pub(super) fn a_failing_startup_file_is_named_with_its_line(user: User) {
        for (source, expected) in [
            ("\n\nthrow new Error('no database')", "startup failed: setup.js:3: Error: no database"),
            ("const x = 1;\n(() => { null.x })()", "setup.js:2: TypeError"),
            ("const x = ;", "setup.js:1: SyntaxError"),
            ("for (;;) {}", "setup.js: "),
            ("", "setup.js"),
        ] {
            let (daemon, mut client, template) =
                with_startup(user, &[("setup.js", source, 0), ("never.js", "1", 1)]);
            change(&mut client, &template, r#"{"limits":{"cpu_ms":300,"wall_ms":2000}}"#);
            let error = client.session(&template, &daemon.place.worktree()).expect_err("it fails");
            assert_eq!(error.code, ErrorCode::StartupFailed, "{error:?}");
            assert!(error.message.contains(expected), "{source:?}: {}", error.message);
            let details = error.details.and_then(|details| details.to_value()).expect("details");
            let id = details["session_id"].as_str().expect("the session").to_owned();
            let left = client.op(SessionGet { session: id.clone() }).expect("its row");
            assert_eq!(left.status, SessionStatus::Crashed);
            assert!(left.last_error.expect("why").contains(expected));
            let ran = executions(&mut client, &id);
            assert_eq!(ran.len(), usize::from(!source.is_empty()), "{ran:?}");
            daemon.stop();
        }
    }
}
