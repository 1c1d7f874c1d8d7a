//! An execution's use of its limits is kept as long as it counts, across exits of all processes: here no worker and no owner
//! task survives a pause.

use super::{cold, cold_daemon, ended, prompt};
use vm_system_protocol::control::{NewCapability, ProgramStart, TemplateAddCapability};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    CapabilityKind, ConsoleLevel, EventPayload, ExecutionStatus, Limits, Settings,
};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::programs::{id, result};

/// A template with `config` as the limits of the `fs` module.
fn template(client: &mut Client, config: &str) -> String {
    let template = client.program_template(Settings::default());
    for (kind, name, config) in [(CapabilityKind::Module, "fs", config), (CapabilityKind::Fs, "write", "{}")]
    {
        let config = JsonText::from_untrusted(config.to_owned());
        let capability = NewCapability { kind, name: name.to_owned(), enabled: true, config };
        client.op(TemplateAddCapability { template: template.clone(), capability }).expect("a row");
    }
    template
}

fn start(client: &mut Client, daemon: &Daemon, config: &str, source: &str) -> String {
    client.load(source);
    let worktree_path = Some(daemon.place.worktree().to_string_lossy().into_owned());
    let template = Some(template(client, config));
    let new = ProgramStart { template, worktree_path, ..ProgramStart::default() };
    id(&client.start_program(new).expect("started"))
}

/// A task that times out, late enough for worker and owner task to have ended.
const WAITS: &str = "const waits = () => CC('', { timeout_ms: 300, default: null });";

#[test]
fn bytes_that_a_program_wrote_count_for_the_whole_execution() {
    let source = format!(
        "{WAITS}
        const write = n => fs.writeFile('out' + n, 'x'.repeat(3000));
        const done = [write(0)];
        waits();
        done.push(CC('restarted?') && write(1));
        waits();
        done.push(write(2));
        CC('another answer?');
        done.push(write(3));
        function main() {{ return done; }}"
    );
    let daemon = cold_daemon();
    let mut client = daemon.client();
    let run = start(&mut client, &daemon, "{\"write_quota_kb\": 8}", &source);
    super::until_task(&mut client, &run, "restarted?");
    drop(client);
    let (place, family) = daemon.kill();
    let daemon = Daemon::start_with(place, &cold());
    vm_system_tests::observe::all_end(&family);
    let mut client = daemon.client();
    client.submit(&run, "yes").expect("taken");
    super::until_task(&mut client, &run, "another answer?");
    let run = client.submit(&run, "yes").expect("taken");
    assert_eq!(result(&run), "[true,true,false,false]");
    daemon.stop();
}

#[test]
fn limits_of_files_are_reset_by_answers_of_clients_only() {
    let source = format!(
        "{WAITS}
        const read = () => (fs.readFile('text') ?? '').length;
        const round = () => [read(), waits() ?? read(), waits() ?? read(), waits() ?? read()];
        const rounds = [round(), CC('more?') && round()];
        function main() {{ return rounds; }}"
    );
    let daemon = cold_daemon();
    let mut client = daemon.client();
    daemon.place.write("text", "x".repeat(3000));
    for (config, expected) in [
        ("{\"max_total_kb\": 5}", "[[3000,3000,0,0],[3000,3000,0,0]]"),
        ("{\"max_calls\": 3}", "[[3000,3000,3000,0],[3000,3000,3000,0]]"),
    ] {
        let run = start(&mut client, &daemon, config, &source);
        super::until_task(&mut client, &run, "more?");
        client.submit(&run, "yes").expect("taken");
        let run = ended(&mut client, &run);
        assert_eq!(result(&run), expected, "{config}");
    }
    drop(client);
    daemon.stop();
}

/// The console lines of an execution, and the marks of what was dropped.
fn lines_and_marks(client: &mut Client, run: &str) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut marks) = (Vec::new(), Vec::new());
    for event in client.events(run) {
        match event.payload {
            EventPayload::Console { text, .. } => lines.push(text),
            EventPayload::System { message, level: ConsoleLevel::Warn, .. } => marks.push(message),
            _ => {}
        }
    }
    (lines, marks)
}

#[test]
fn output_limit_counts_across_timed_out_tasks_between_which_no_worker_runs() {
    let source = format!(
        "{WAITS}
        for (let n = 0; n < 12; n++) {{ console.log('x'.repeat(1000)); waits(); }}
        function main() {{ return 'on'; }}"
    );
    let daemon = cold_daemon();
    let mut client = daemon.client();
    let limits = Limits { max_output_kb: 4, ..Limits::default() };
    let template = Some(client.program_template(Settings { limits, ..Settings::default() }));
    client.load(&source);
    let run = client.start_program(ProgramStart { template, ..ProgramStart::default() }).expect("started");
    assert_eq!(prompt(&run), "");
    let run = ended(&mut client, &id(&run));
    assert_eq!(result(&run), "\"on\"");
    let (lines, marks) = lines_and_marks(&mut client, &id(&run));
    assert!((4..12).contains(&lines.len()), "{}", lines.len());
    assert_eq!(lines.len() + marks.len(), 12, "{marks:?}");
    daemon.stop();
}

#[test]
fn lines_beyond_the_limit_are_dropped_and_counted_and_the_program_goes_on() {
    let source = "function main() {
            for (let n = 0; n < 5000; n++) console.log(`line ${n}`);
            const answer = CC('more?');
            console.log('after');
            for (let n = 0; n < 5000; n++) console.log('x'.repeat(1000));
            return answer;
        }";
    let daemon = cold_daemon();
    let mut client = daemon.client();
    client.load(source);
    let run = client.start_program(ProgramStart::default()).expect("started");
    assert_eq!(prompt(&run), "more?");
    let run = client.submit(&id(&run), "yes").expect("taken");
    assert_eq!(result(&run), "\"yes\"");
    let (lines, marks) = lines_and_marks(&mut client, &id(&run));
    assert_eq!(
        (lines[0].as_str(), lines[999].as_str(), lines[1000].as_str()),
        ("line 0", "line 999", "after")
    );
    let dropped = |lines: usize, bytes: usize| {
        format!(
            "{lines} lines of output ({bytes} bytes) were dropped: more than max_events and max_output_kb permit between two answers"
        )
    };
    let bytes = (1000..5000).map(|n| format!("line {n}").len()).sum();
    let long = lines.len() - 1001;
    assert_eq!(marks, [dropped(4000, bytes), dropped(5000 - long, (5000 - long) * 1000)]);
    assert_eq!(long, (usize::try_from(Limits::default().max_output_kb).expect("small") * 1024 - 5) / 1000);
    daemon.stop();
}

#[test]
fn program_that_polls_with_a_timeout_goes_on() {
    let source = "function main() {
            let polls = 0;
            while (polls < 1100) { CC('anything?', { timeout_ms: 1, default: null }); polls++; }
            console.log('polled');
            return polls;
        }";
    let daemon = Daemon::start(vm_system_tests::place::User::AsStarted);
    let mut client = daemon.client();
    client.load(source);
    let run = client.start_program(ProgramStart::default()).expect("started");
    let run = ended(&mut client, &id(&run));
    assert_eq!(result(&run), "1100");
    assert_eq!(lines_and_marks(&mut client, &id(&run)), (vec!["polled".to_owned()], Vec::new()));
    daemon.stop();
}

#[test]
fn programs_of_an_owner_that_stores_too_much_end_with_the_name_of_the_limit() {
    let grows = "const kept = []; for (;;) kept.push('x'.repeat(990) + kept.length); function main() {}";
    for (setting, said) in [
        ("owner_quota_mb = 4", "owner_quota_mb"),
        ("owner_write_mb_per_min = 4", "owner_write_mb_per_min"),
        ("quota_mb = 6\nowner_quota_mb = 100", "quota_mb"),
    ] {
        let config = format!("[durable]\ncheckpoint_steps = 5000\n[retention]\n{setting}\n");
        let options = DaemonOptions { config, ..DaemonOptions::default() };
        let place = vm_system_tests::place::TestDir::new(vm_system_tests::place::User::AsStarted);
        let daemon = Daemon::start_with(place, &options);
        let mut client = daemon.client();
        let waits = client.begin("const a = CC('how?'); function main() { return a; }", "waits");
        let run = client.begin(grows, "grows");
        let run = ended(&mut client, &id(&run));
        let error = run.execution.error.as_ref().expect("an error");
        assert_eq!((run.execution.status, error.code.as_str()), (ExecutionStatus::Error, "STORAGE_LIMIT"));
        assert_eq!(error.reason, Some(format!("limit({said})")), "{setting}");
        assert_eq!(client.checkpoints(&id(&run)).len(), 0, "what it stored is given back");
        // Programs that store little are not concerned, and the end of every program is stored.
        if said != "owner_write_mb_per_min" {
            assert_eq!(result(&client.submit(&id(&waits), "so").expect("taken")), "\"so\"");
        }
        drop(client);
        daemon.stop();
    }
}
