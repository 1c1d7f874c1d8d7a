//! Schedules through the real daemon: each time starts one execution, also over kills; late times, overlaps, pauses, failures.

use serde_json::json;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use vm_system_protocol::control::{
    ErrorCode, ListPage, OpError, ProgramDelete, ProgramLoad, ProgramStart, RunList, ScheduleAdd,
    ScheduleDelete, ScheduleGet, ScheduleList, SchedulePause, ScheduleResume, ScheduleRun,
};
use vm_system_protocol::model::{ExecutionStatus, Overlap, Run, Schedule, ScheduleRule};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::mcp::{Agent, OnDemand};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::programs::{NAME, code, ended, id};
use vm_system_tests::watch::{Watch, moment, wait_until};

/// The name of the schedule.
const SCHEDULE: &str = "nightly";
/// A program that ends at once, with the variables that the schedule sets.
const REPORTS: &str = "function main() {
    return [env.VM_SYSTEM_SCHEDULE, env.VM_SYSTEM_SCHEDULED_FOR, env.VM_SYSTEM_LATE_MS, env.KEY ?? null, ...args];
}";
const WAITS: &str = "function main() { return CC('go on?'); }";
/// No time of this comes while a test runs.
const RARELY: &str = "0 0 29 2 *";

fn every(ms: u64, overlap: Overlap) -> ScheduleRule {
    ScheduleRule { cron: None, every_ms: Some(ms), time_zone: "UTC".to_owned(), overlap, jitter_ms: 0 }
}

fn cron(expression: &str) -> ScheduleRule {
    ScheduleRule { cron: Some(expression.to_owned()), every_ms: None, ..every(0, Overlap::Skip) }
}

fn add(client: &mut Client, rule: ScheduleRule) -> Result<Schedule, OpError> {
    let start = ProgramStart { program: NAME.to_owned(), wait: false, ..ProgramStart::default() };
    client.op(ScheduleAdd { name: SCHEDULE.to_owned(), rule, start })
}

fn schedule(client: &mut Client) -> Schedule {
    client.op(ScheduleGet { schedule: SCHEDULE.to_owned() }).expect("it is there")
}

/// The executions, oldest first.
fn runs(client: &mut Client) -> Vec<Run> {
    let list = RunList { page: ListPage::first(1_000), ..RunList::default() };
    let mut runs = client.op(list).expect("a list");
    runs.reverse();
    runs
}

/// Waits until the schedule is as wanted.
fn until_schedule(client: &mut Client, what: &str, wanted: impl Fn(&Schedule) -> bool) -> Schedule {
    let mut watch = Watch::begin();
    loop {
        let now = schedule(client);
        if wanted(&now) {
            return now;
        }
        watch.pause(|| format!("{what}: {now:?}"));
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

/// The time for which an execution was started: from its variables, as the program and clients see it.
fn scheduled_for(run: &Run) -> String {
    let env = run.execution.env.to_value().expect("an object");
    env["VM_SYSTEM_SCHEDULED_FOR"].as_str().expect("a time").to_owned()
}

/// Checks that no time has started two executions, and that each is one of the schedule's.
fn each_time_once(schedule: &Schedule, runs: &[Run]) {
    let times: Vec<String> = runs.iter().map(scheduled_for).collect();
    let different: BTreeSet<&String> = times.iter().collect();
    assert_eq!(different.len(), times.len(), "a time has started two executions: {times:?}");
    for time in times {
        let at: vm_system_protocol::time::Timestamp = time.parse().expect("a time");
        let since = at.0 - schedule.created_at.0;
        let every = i64::try_from(schedule.every_ms.expect("an interval")).expect("it is short");
        assert!(since > 0 && since % every == 0, "{time} is no time of {schedule:?}");
    }
}

#[test]
fn a_schedule_starts_its_program_at_each_of_its_times() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(REPORTS);
    let start = ProgramStart {
        program: NAME.to_owned(),
        name: Some("report".to_owned()),
        args: vec!["a".to_owned()],
        env: vec![("KEY".to_owned(), "value".to_owned()), ("SECRET".to_owned(), "hidden".to_owned())],
        ..ProgramStart::default()
    };
    let rule = ScheduleRule { jitter_ms: 50, ..every(1_000, Overlap::Skip) };
    let new = ScheduleAdd { name: SCHEDULE.to_owned(), rule, start };
    let added = client.op(new.clone()).expect("a schedule");
    assert_eq!(added.next_at.map(|at| at.0), Some(added.created_at.0 + 1_000));
    assert_eq!(
        (added.env.to_value().expect("an object")["SECRET"].as_str(), added.paused),
        (Some("[redacted]"), false)
    );
    assert_eq!(code(client.op(new)), ErrorCode::Conflict, "the name is taken");
    let mut watch = Watch::begin();
    let three = loop {
        let runs = runs(&mut client);
        if runs.len() >= 3 {
            break runs;
        }
        watch.pause(|| format!("{} executions", runs.len()));
    };
    for run in &three {
        let run = ended(&mut client, &id(run));
        let result: serde_json::Value =
            serde_json::from_str(run.execution.result_json().expect("it returned")).expect("JSON");
        result[2].as_str().expect("a text").parse::<u64>().expect("milliseconds");
        assert_eq!(
            (&result[0], &result[1], &result[3], &result[4]),
            (&json!(SCHEDULE), &json!(scheduled_for(&run)), &json!("value"), &json!("a"))
        );
        assert_eq!(run.name.as_deref(), Some("report"));
    }
    let now = schedule(&mut client);
    each_time_once(&now, &runs(&mut client));
    assert!(now.last.is_some() && now.last_error.is_none(), "{now:?}");
    let log = daemon.cli(&["ops", "audit", "--output", "json"]).ok();
    assert!(log.contains("\"api\": \"schedule\"") && log.contains("program schedule add"), "{log}");
    client.op(ScheduleDelete { schedule: added.id.to_string() }).expect("it is there");
    let gone = client.op(ScheduleGet { schedule: SCHEDULE.to_owned() });
    assert_eq!(code(gone), ErrorCode::NotFound);
    daemon.stop();
}

#[test]
fn a_time_starts_one_execution_although_the_daemon_is_killed_around_it() {
    let mut daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(REPORTS);
    let added = add(&mut client, every(1_000, Overlap::Skip)).expect("a schedule");
    // Before the time, at it, while its start is stored, and behind it.
    for offset in [-3, 0, 2, 4, 7, 12, 25, 60] {
        let next = until_schedule(&mut client, "it is ahead", |now| {
            now.next_at.is_some_and(|at| at.0 > now_ms() + 100)
        });
        let kill_at = next.next_at.expect("it is not paused").0 + offset;
        while now_ms() < kill_at {
            moment();
        }
        let (place, _) = daemon.kill();
        daemon = Daemon::start_with(place, &DaemonOptions::default());
        client = daemon.client();
    }
    let behind = added.created_at.0 + 9_000;
    until_schedule(&mut client, "it goes on", |now| {
        now.last.as_ref().is_some_and(|last| last.scheduled_for.0 >= behind)
    });
    client.op(SchedulePause { schedule: SCHEDULE.to_owned() }).expect("it is there");
    let all = runs(&mut client);
    assert!(all.len() >= 8, "{} executions", all.len());
    each_time_once(&added, &all);
    for run in &all {
        assert_eq!(ended(&mut client, &id(run)).execution.status, ExecutionStatus::Ok);
    }
    assert!(daemon.cli(&["ops", "check"]).ok().starts_with("ok"));
    daemon.stop();
}

#[test]
fn times_that_passed_while_the_daemon_was_down_start_one_execution_which_is_late() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(REPORTS);
    let added = add(&mut client, every(2_000, Overlap::Skip)).expect("a schedule");
    let place = daemon.stop();
    let first = added.created_at.0 + 2_000;
    wait_until(|| now_ms() > first + 2_500, || "the time has not come".to_owned());
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    let now = until_schedule(&mut client, "it was missed", |now| now.last.is_some());
    let last = now.last.clone().expect("it was started");
    assert_eq!(last.scheduled_for.0, first, "the first time that was missed");
    assert!(last.late_ms >= 2_500, "{last:?}");
    assert!(now.next_at.is_some_and(|next| next.0 > first + 2_500), "{now:?}");
    let run = ended(&mut client, &last.execution_id.to_string());
    assert_eq!(scheduled_for(&run), last.scheduled_for.to_string());
    let next = now.next_at.expect("it goes on");
    until_schedule(&mut client, "it goes on", |now| {
        now.last.as_ref().is_some_and(|last| last.scheduled_for >= next)
    });
    each_time_once(&added, &runs(&mut client));
    let list = daemon.cli(&["program", "schedule", "list"]).ok();
    assert!(list.contains(SCHEDULE) && list.contains("every 2 s"), "{list}");
    daemon.stop();
}

#[test]
fn a_time_at_which_the_last_execution_runs_is_skipped_by_default() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(WAITS);
    add(&mut client, every(1_000, Overlap::Skip)).expect("a schedule");
    let skipped = until_schedule(&mut client, "a time is skipped", |now| now.skipped.is_some());
    let first = skipped.last.expect("the first time").execution_id.to_string();
    assert!(skipped.skipped.expect("a time").reason.contains(&first));
    assert_eq!(runs(&mut client).len(), 1);
    let busy = client.op(ScheduleRun { schedule: SCHEDULE.to_owned() });
    assert_eq!(code(busy), ErrorCode::Conflict);
    client.submit(&first, "yes").expect("it waits");
    until_schedule(&mut client, "the next one starts", |now| {
        now.last.as_ref().is_some_and(|last| last.execution_id.to_string() != first)
    });
    daemon.stop();
}

#[test]
fn a_queued_time_starts_its_execution_when_the_last_one_has_ended() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(WAITS);
    add(&mut client, every(1_000, Overlap::Queue)).expect("a schedule");
    let waits = until_schedule(&mut client, "one waits, and the next is skipped", |now| {
        now.queued_for.is_some() && now.skipped.is_some()
    });
    let queued = waits.queued_for.expect("it waits");
    let first = waits.last.expect("the first time");
    assert!(queued < waits.skipped.expect("a later time").scheduled_for);
    assert_eq!(runs(&mut client).len(), 1);
    // It waits in the store.
    let (place, _) = daemon.kill();
    let daemon = Daemon::start_with(place, &DaemonOptions::default());
    let mut client = daemon.client();
    assert_eq!(schedule(&mut client).queued_for, Some(queued));
    client.submit(&first.execution_id.to_string(), "yes").expect("it waits");
    let next = until_schedule(&mut client, "the queued one starts", |now| now.last != Some(first.clone()));
    let last = next.last.expect("it was started");
    assert_eq!(last.scheduled_for, queued);
    assert!(last.late_ms > 0, "{last:?}");
    daemon.stop();
}

#[test]
fn the_last_execution_is_cancelled_where_the_schedule_says_so() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(WAITS);
    add(&mut client, every(1_000, Overlap::Cancel)).expect("a schedule");
    let mut watch = Watch::begin();
    let three = loop {
        let runs = runs(&mut client);
        if runs.len() >= 3 {
            break runs;
        }
        watch.pause(|| format!("{} executions", runs.len()));
    };
    for run in &three[..2] {
        assert_eq!(ended(&mut client, &id(run)).execution.status, ExecutionStatus::Cancelled);
    }
    let run = client.op(ScheduleRun { schedule: SCHEDULE.to_owned() }).expect("the last one is cancelled");
    assert_eq!(schedule(&mut client).last.expect("it counts").execution_id, run.execution.id);
    daemon.stop();
}

#[test]
fn a_paused_schedule_starts_nothing_and_does_not_make_up_for_that() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(REPORTS);
    let added = add(&mut client, every(1_000, Overlap::Skip)).expect("a schedule");
    until_schedule(&mut client, "it runs", |now| now.last.is_some());
    let pause = SchedulePause { schedule: SCHEDULE.to_owned() };
    let paused = client.op(pause.clone()).expect("it is there");
    assert_eq!((paused.paused, paused.next_at), (true, None));
    assert_eq!(client.op(pause).expect("nothing is to be done"), paused);
    // Another schedule shows that its times pass.
    let start = ProgramStart { program: NAME.to_owned(), ..ProgramStart::default() };
    let other = ScheduleAdd { name: "other".to_owned(), rule: every(1_000, Overlap::Skip), start };
    let other = client.op(other).expect("a schedule").id.to_string();
    let behind = added.created_at.0 + 4_000;
    let passed = |client: &mut Client| {
        let other = client.op(ScheduleGet { schedule: other.clone() }).expect("it is there");
        other.last.is_some_and(|last| last.scheduled_for.0 > behind)
    };
    wait_until(|| passed(&mut client), || "the other one does not run".to_owned());
    assert_eq!(schedule(&mut client), paused);
    client.op(ScheduleRun { schedule: SCHEDULE.to_owned() }).expect("it is paused, not gone");
    let resumed = client.op(ScheduleResume { schedule: SCHEDULE.to_owned() }).expect("it is there");
    let next = resumed.next_at.expect("it goes on");
    assert!(next.0 > behind, "{resumed:?}");
    until_schedule(&mut client, "it goes on", |now| {
        now.last.as_ref().is_some_and(|last| last.scheduled_for >= next)
    });
    daemon.stop();
}

#[test]
fn a_failed_start_is_shown_and_the_schedule_goes_on() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(REPORTS);
    add(&mut client, every(1_000, Overlap::Skip)).expect("a schedule");
    client.op(ProgramDelete { program: NAME.to_owned() }).expect("it is there");
    let failed = until_schedule(&mut client, "its program is gone", |now| now.last_error.is_some());
    let error = failed.last_error.expect("it failed");
    assert_eq!(error.code, "PROGRAM_NOT_FOUND", "{error:?}");
    let list = daemon.cli(&["program", "schedule", "list"]).ok();
    assert!(list.contains("failed: there is no program"), "{list}");
    until_schedule(&mut client, "it is tried at the next time", |now| {
        now.last_error.as_ref().is_some_and(|next| next.scheduled_for > error.scheduled_for)
    });
    let source = REPORTS.to_owned();
    client.op(ProgramLoad { name: NAME.to_owned(), source, ..ProgramLoad::default() }).expect("it compiles");
    until_schedule(&mut client, "a program of this name is there again", |now| {
        now.last_error.is_none()
            && now.last.as_ref().is_some_and(|last| last.scheduled_for > error.scheduled_for)
    });
    daemon.stop();
}

#[test]
fn what_no_time_could_start_is_refused_when_it_is_added() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(REPORTS);
    for (rule, why) in [
        (cron("0 0 30 2 *"), "no time at all"),
        (cron("61 * * * *"), "out of bounds"),
        (ScheduleRule { time_zone: "Europe/Atlantis".to_owned(), ..cron("@daily") }, "Atlantis"),
        (every(10, Overlap::Skip), "at least one second"),
        (ScheduleRule { every_ms: Some(5_000), ..cron("@daily") }, "not both"),
    ] {
        let error = add(&mut client, rule).expect_err("it has no meaning");
        assert_eq!(error.code, ErrorCode::ValidationError);
        assert!(error.message.contains(why), "{error:?}");
    }
    let start = |new: ProgramStart| ScheduleAdd { name: SCHEDULE.to_owned(), rule: cron(RARELY), start: new };
    let of = |program: &str| ProgramStart { program: program.to_owned(), ..ProgramStart::default() };
    for (new, expected) in [
        (of("nothing"), ErrorCode::ProgramNotFound),
        (of(&format!("{NAME}@2")), ErrorCode::ProgramNotFound),
        (ProgramStart { template: Some("nothing".to_owned()), ..of(NAME) }, ErrorCode::TemplateNotFound),
        (ProgramStart { worktree_path: Some("relative".to_owned()), ..of(NAME) }, ErrorCode::ValidationError),
        (
            ProgramStart { env: vec![("VM_SYSTEM_LATE_MS".to_owned(), "1".to_owned())], ..of(NAME) },
            ErrorCode::ValidationError,
        ),
    ] {
        assert_eq!(code(client.op(start(new.clone()))), expected, "{new:?}");
    }
    assert!(client.op(ScheduleList::default()).expect("a list").is_empty());
    // A program that is named by a prefix of its id keeps the whole id.
    let program =
        client.start_program(ProgramStart::default()).expect("it runs").program_id.expect("it has one");
    let prefix = program.to_string()[..13].to_owned();
    let added = client.op(start(of(&format!("{prefix}@1")))).expect("a schedule");
    assert_eq!(added.program, format!("{program}@1"));
    daemon.stop();
}

#[test]
fn a_request_with_a_key_adds_or_starts_once() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    client.load(WAITS);
    let start = ProgramStart { program: NAME.to_owned(), ..ProgramStart::default() };
    let new = ScheduleAdd { name: SCHEDULE.to_owned(), rule: cron(RARELY), start };
    let mut once = |key: &str| {
        let id = client.send_with_key(new.clone(), Some(key));
        client.reply::<ScheduleAdd>(id)
    };
    assert_eq!(once("add").expect("new").id, once("add").expect("the same").id);
    assert_eq!(code(once("another")), ErrorCode::Conflict);
    let mut run = || {
        let id = client.send_with_key(ScheduleRun { schedule: SCHEDULE.to_owned() }, Some("run"));
        client.reply::<ScheduleRun>(id).expect("started").execution.id
    };
    assert_eq!(run(), run());
    assert_eq!(runs(&mut client).len(), 1);
    daemon.stop();
}

#[test]
fn schedules_are_driven_from_the_command_line_in_every_format() {
    let daemon = Daemon::start(User::AsStarted);
    daemon.place.write("report.js", REPORTS);
    let file = daemon.place.worktree().join("report.js").to_string_lossy().into_owned();
    daemon.cli(&["program", "load", &file, "--name", "report"]).ok();
    let add = ["program", "schedule", "add", "report", "--cron", "30 2 * * *", "--tz", "europe/berlin"];
    let added = daemon.cli(&[&add[..], &["--overlap", "queue", "--jitter", "5m", "--", "a"]].concat()).ok();
    assert!(added.starts_with("Added schedule: report (ID: ") && added.contains("; next: 20"), "{added}");
    let list = daemon.cli(&["program", "schedule", "list", "--output", "json"]).ok();
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let expected = [
        ("program", json!("report")),
        ("time_zone", json!("Europe/Berlin")),
        ("jitter_ms", json!(300_000)),
        ("overlap", json!("queue")),
        ("args", json!(["a"])),
    ];
    for (field, value) in expected {
        assert_eq!(list[0][field], value, "{field}");
    }
    let shown = daemon.cli(&["program", "schedule", "list"]).ok();
    assert!(shown.contains("30 2 * * * (Europe/Berlin)"), "{shown}");
    let paused = daemon.cli(&["program", "schedule", "pause", "report"]).ok();
    assert!(paused.starts_with("Paused schedule: report"), "{paused}");
    assert!(daemon.cli(&["program", "schedule", "list"]).ok().contains("paused"));
    let resumed = daemon.cli(&["program", "schedule", "resume", "report"]).ok();
    assert!(resumed.contains("next: 20"), "{resumed}");
    let run = daemon.cli(&["-q", "program", "schedule", "run", "report"]).ok();
    let mut client = daemon.client();
    assert_eq!(ended(&mut client, run.trim()).execution.status, ExecutionStatus::Ok);
    assert!(daemon.cli(&["program", "schedule", "get", "report"]).ok().contains("Europe/Berlin"));
    let deleted = daemon.cli(&["program", "schedule", "delete", "report"]).ok();
    assert!(deleted.starts_with("Deleted schedule: report"), "{deleted}");
    let again = daemon.cli(&["program", "schedule", "delete", "report"]).fails(1);
    assert!(again.contains("there is no schedule \"report\""), "{again}");
    let neither = daemon.cli(&["program", "schedule", "add", "report"]).fails(2);
    assert!(neither.contains("--cron") && neither.contains("--every"), "{neither}");
    daemon.stop();
}

#[test]
fn an_agent_schedules_a_program_and_runs_it_now() {
    let home = OnDemand::new(TestDir::new(User::AsStarted));
    let mut agent = Agent::start(&home.place, &[]);
    agent.text("load", json!({ "programId": "report", "source": REPORTS }));
    assert_eq!(agent.text("list_schedules", json!({})), "No schedules");
    let new =
        json!({ "name": "daily", "programId": "report", "cron": "@daily", "timeZone": "Europe/Berlin" });
    let added = agent.data("add_schedule", new);
    assert_eq!((&added["times"], &added["paused"]), (&json!("@daily (Europe/Berlin)"), &json!(false)));
    let wrong =
        agent.fails("add_schedule", json!({ "name": "x", "programId": "report", "cron": "0 0 30 2 *" }));
    assert!(wrong.contains("no time at all"), "{wrong}");
    let change = |action: &str| json!({ "schedule": "daily", "action": action });
    let run = agent.data("change_schedule", change("run"));
    assert!(run["executionId"].is_string(), "{run}");
    agent.text("change_schedule", change("pause"));
    let listed = agent.data("list_schedules", json!({}));
    let first = &listed["schedules"][0];
    assert_eq!((&first["paused"], &first["lastExecutionId"]), (&json!(true), &run["executionId"]));
    assert!(agent.data("change_schedule", change("resume"))["nextAt"].is_string());
    agent.text("change_schedule", change("delete"));
    assert!(agent.fails("change_schedule", change("run")).contains("no schedule"));
    agent.close();
}
