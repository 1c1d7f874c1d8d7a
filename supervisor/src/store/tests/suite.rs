//! Behaviour that both stores owe their callers.

use super::fixture::{
    both, console, detail, ended, events, execution_id, execution_record, id, mine, owner, policy, running,
    session, session_id, session_record, started, template, template_id,
};
use crate::store::{
    AuditEntry, Batch, Checkpoint, Cursor, Entity, IdKind, KeyClaim, NewProgramVersion, Page, PolicySnapshot,
    Rejection, Scope, SessionQuery, StoreError, TaskRow, Write,
};
use std::sync::Arc;
use vm_system_protocol::ids::{CapabilityId, ProgramId, StartupFileId, TaskId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    Capability, CapabilityKind, ConsoleLevel, Engine, Event, EventPayload, ExecutionError, ExecutionStatus,
    JsType, SessionStatus, Settings, StartupFile, StartupMode,
};
use vm_system_protocol::reason::CloseReason;
use vm_system_protocol::time::Timestamp;

fn rejected<T>(rejection: Rejection) -> Result<T, StoreError> {
    Err(StoreError::Rejected(rejection))
}

#[tokio::test]
async fn template_comes_back_with_all_its_parts_in_order() {
    both(|store| async move {
        let mut made = detail(1, "t");
        made.template.exposed_modules = vec!["fs".to_owned(), "database".to_owned()];
        made.template.libraries = vec!["lodash-4.17.21".to_owned()];
        made.settings.limits.cpu_ms = 77;
        made.settings.resolver.roots = vec!["src".to_owned()];
        let capability = |n, kind, name: &str| Capability {
            id: CapabilityId::from_bytes(id(5, n)),
            vm_id: template_id(1),
            kind,
            name: name.to_owned(),
            enabled: n % 2 == 0,
            config: JsonText::from_untrusted(r#"{"b":1,"a":[2]}"#.to_owned()),
        };
        made.capabilities = vec![
            capability(1, CapabilityKind::Net, "x"),
            capability(2, CapabilityKind::Env, "y"),
            capability(3, CapabilityKind::Env, "a"),
        ];
        let file = |n, path: &str, order_index| StartupFile {
            id: StartupFileId::from_bytes(id(6, n)),
            vm_id: template_id(1),
            path: path.to_owned(),
            order_index,
            mode: StartupMode::Eval,
        };
        made.startup_files = vec![file(1, "z.js", 2), file(2, "b.js", 1), file(3, "a.js", 1)];
        let write = Write::TemplateInsert { owner: owner(1), detail: Box::new(made.clone()) };
        store.apply(write).await.expect("the template is new");
        let read = store.template(&mine(), template_id(1)).await.expect("readable").expect("there").detail;
        assert_eq!(read.template.exposed_modules, ["database", "fs"]);
        assert_eq!(read.settings, made.settings);
        let names: Vec<_> = read.capabilities.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a", "y", "x"]);
        assert_eq!(read.capabilities[0].config, made.capabilities[2].config);
        let paths: Vec<_> = read.startup_files.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(paths, ["a.js", "b.js", "z.js"]);
    })
    .await;
}

#[tokio::test]
async fn template_name_is_unique_among_an_owners_active_ones() {
    both(|store| async move {
        store.apply(template(1, "t")).await.expect("new");
        assert_eq!(store.apply(template(2, "t")).await, rejected(Rejection::Conflict(Entity::Template)));
        let other = Write::TemplateInsert { owner: owner(2), detail: Box::new(detail(3, "t")) };
        store.apply(other).await.expect("another owner's names are its own");
        store.apply(template(4, "u")).await.expect("new");
        let rename = |name: &str| Write::TemplateUpdate {
            id: template_id(4),
            name: Some(name.to_owned()),
            settings: None,
            at: Timestamp(9),
        };
        assert_eq!(store.apply(rename("t")).await, rejected(Rejection::Conflict(Entity::Template)));
        store.apply(rename("u")).await.expect("its own name");
        store.apply(Write::TemplateDelete { id: template_id(1), at: Timestamp(10) }).await.expect("there");
        store.apply(rename("t")).await.expect("the name is free again");
        let found = store.template_by_name(&mine(), "t").await.expect("readable").expect("there");
        assert_eq!(
            (found.detail.template.id, found.detail.template.updated_at),
            (template_id(4), Timestamp(9))
        );
    })
    .await;
}

#[tokio::test]
async fn deleted_template_is_hidden_and_its_sessions_go_on() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        let delete = Write::TemplateDelete { id: template_id(1), at: Timestamp(10) };
        store.apply(delete.clone()).await.expect("there");
        assert_eq!(store.apply(delete).await, rejected(Rejection::Missing(Entity::Template)));
        assert_eq!(store.template(&Scope::All, template_id(1)).await, Ok(None));
        assert_eq!(store.templates(&mine(), Page::ALL).await, Ok(Vec::new()));
        assert!(store.session(&mine(), session_id(1)).await.expect("readable").is_some());
        assert_eq!(store.session_policy(session_id(1)).await, Ok(Some(policy())));
        let add = Write::ModuleAdd { template: template_id(1), name: "fs".to_owned(), at: Timestamp(1) };
        assert_eq!(store.apply(add).await, rejected(Rejection::Missing(Entity::Template)));
    })
    .await;
}

#[tokio::test]
async fn modules_and_libraries_are_added_and_removed_once() {
    both(|store| async move {
        store.apply(template(1, "t")).await.expect("new");
        let at = Timestamp(50);
        let add = Write::ModuleAdd { template: template_id(1), name: "fs".to_owned(), at };
        assert_eq!(store.apply(add.clone()).await.map(|applied| applied.rows), Ok(1));
        assert_eq!(store.apply(add).await.map(|applied| applied.rows), Ok(0));
        let name = "lodash-4.17.21".to_owned();
        let add = Write::LibraryAdd { template: template_id(1), name: name.clone(), at };
        store.apply(add).await.expect("there");
        let row = store.template(&mine(), template_id(1)).await.expect("readable").expect("there");
        assert_eq!(row.detail.template.exposed_modules, ["fs"]);
        assert_eq!(row.detail.template.libraries, ["lodash-4.17.21"]);
        assert_eq!(row.detail.template.updated_at, at);
        let remove = Write::LibraryRemove { template: template_id(1), name, at };
        assert_eq!(store.apply(remove.clone()).await.map(|applied| applied.rows), Ok(1));
        assert_eq!(store.apply(remove).await.map(|applied| applied.rows), Ok(0));
        let hash = [7; 32];
        let install = Write::LibraryInstall { name: "a-1".to_owned(), hash, bytes: 9, at };
        store.apply(install).await.expect("new");
        assert_eq!(store.libraries().await.expect("readable")[0].hash, hash);
        let uninstall = Write::LibraryUninstall { name: "a-1".to_owned() };
        store.apply(uninstall.clone()).await.expect("there");
        assert_eq!(store.apply(uninstall).await, rejected(Rejection::Missing(Entity::Library)));
    })
    .await;
}

#[tokio::test]
async fn capability_and_startup_file_are_unique_in_their_template() {
    both(|store| async move {
        store.apply(Batch(vec![template(1, "t"), template(2, "u")])).await.expect("new");
        let at = Timestamp(1);
        let capability = |n, template| Capability {
            id: CapabilityId::from_bytes([n; 16]),
            vm_id: template_id(template),
            kind: CapabilityKind::Fs,
            name: "read".to_owned(),
            enabled: true,
            config: JsonText::empty_object(),
        };
        let add = |n, template| Write::CapabilityAdd { capability: capability(n, template), at };
        store.apply(add(1, 1)).await.expect("new");
        assert_eq!(store.apply(add(2, 1)).await, rejected(Rejection::Conflict(Entity::Capability)));
        store.apply(add(3, 2)).await.expect("another template");
        assert_eq!(store.apply(add(4, 9)).await, rejected(Rejection::Missing(Entity::Template)));
        let remove = |n| Write::CapabilityRemove {
            template: template_id(1),
            id: CapabilityId::from_bytes([n; 16]),
            at,
        };
        assert_eq!(store.apply(remove(3)).await, rejected(Rejection::Missing(Entity::Capability)));
        store.apply(remove(1)).await.expect("there");
        let file = |n| StartupFile {
            id: StartupFileId::from_bytes([n; 16]),
            vm_id: template_id(1),
            path: "a.js".to_owned(),
            order_index: 0,
            mode: StartupMode::Eval,
        };
        store.apply(Write::StartupFileAdd { file: file(1), at }).await.expect("new");
        let again = store.apply(Write::StartupFileAdd { file: file(2), at }).await;
        assert_eq!(again, rejected(Rejection::Conflict(Entity::StartupFile)));
    })
    .await;
}

#[tokio::test]
async fn batch_is_all_or_nothing() {
    both(|store| async move {
        let batch = Batch(vec![template(1, "t"), session(1, 1), session(1, 1)]);
        assert_eq!(store.apply(batch).await, rejected(Rejection::Conflict(Entity::Session)));
        assert_eq!(store.template(&Scope::All, template_id(1)).await, Ok(None));
        assert_eq!(store.session(&Scope::All, session_id(1)).await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn refused_batch_does_not_harm_its_neighbours() {
    both(|store| async move {
        let mut tickets = Vec::new();
        for n in 1..=20 {
            // Every third name is taken; all of them queue up for the same turns.
            let name = if n % 3 == 0 { "taken".to_owned() } else { format!("t{n}") };
            tickets.push(store.submit_lazy(template(n, &name)).await.expect("open"));
        }
        for (n, ticket) in (1_u8..=20).zip(tickets) {
            let expected = if n % 3 == 0 && n > 3 {
                rejected(Rejection::Conflict(Entity::Template))
            } else {
                Ok(crate::store::Applied { rows: 1 })
            };
            assert_eq!(ticket.await, expected, "batch {n}");
        }
        assert_eq!(store.templates(&mine(), Page::ALL).await.expect("readable").len(), 15);
    })
    .await;
}

#[tokio::test]
async fn session_needs_a_template_and_keeps_its_snapshot() {
    both(|store| async move {
        assert_eq!(store.apply(session(1, 1)).await, rejected(Rejection::Missing(Entity::Template)));
        store.apply(Batch(vec![template(1, "t"), session(1, 1)])).await.expect("new");
        let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
        assert_eq!(row.session, session_record(1, 1));
        assert_eq!(store.session(&Scope::Owner(owner(2)), session_id(1)).await, Ok(None));
        let mut settings = Settings::default();
        settings.limits.mem_mb = 1;
        let update = Write::TemplateUpdate {
            id: template_id(1),
            name: None,
            settings: Some(Box::new(settings)),
            at: Timestamp(1),
        };
        store.apply(update).await.expect("there");
        assert_eq!(store.session_policy(session_id(1)).await, Ok(Some(policy())));
    })
    .await;
}

#[tokio::test]
async fn ended_session_never_changes() {
    both(|store| async move {
        store.apply(Batch(vec![template(1, "t"), session(1, 1)])).await.expect("new");
        let end = |status, reason| Write::SessionEnd {
            id: session_id(1),
            status,
            at: Timestamp(9_000),
            reason,
            last_error: Some("boom".to_owned()),
        };
        let reason = CloseReason::Signal("SIGSEGV".to_owned());
        store.apply(end(SessionStatus::Crashed, reason)).await.expect("live");
        let row = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
        assert_eq!(row.session.close_reason.as_deref(), Some("signal(SIGSEGV)"));
        assert_eq!(row.session.last_error.as_deref(), Some("boom"));
        let finished = rejected(Rejection::Finished(Entity::Session));
        assert_eq!(store.apply(end(SessionStatus::Closed, CloseReason::Exited)).await, finished);
        assert_eq!(store.apply(Write::SessionReady { id: session_id(1) }).await, finished);
        let missing = rejected(Rejection::Missing(Entity::Session));
        assert_eq!(store.apply(Write::SessionReady { id: session_id(2) }).await, missing);
    })
    .await;
}

#[tokio::test]
async fn execution_runs_to_its_end_once() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        let seq = Write::WorkerSeq { session: session_id(1), seq: 5 };
        store.apply(Batch(vec![events(1, 1..=3), ended(1, 1), seq])).await.expect("running");
        let row = store.execution(&mine(), execution_id(1)).await.expect("readable").expect("there");
        assert_eq!(row.execution.status, ExecutionStatus::Ok);
        assert_eq!(row.execution.result, Some(JsonText::from_untrusted("3".to_owned())));
        assert_eq!(row.execution.metrics.duration_ms, 7);
        assert_eq!(row.owner, owner(1));
        let session = store.session(&mine(), session_id(1)).await.expect("readable").expect("there");
        assert_eq!(session.worker_seq, 5);
        assert_eq!(store.apply(ended(1, 1)).await, rejected(Rejection::Finished(Entity::Execution)));
        assert_eq!(store.apply(ended(2, 1)).await, rejected(Rejection::Missing(Entity::Execution)));
        assert_eq!(store.apply(started(2, 2)).await, rejected(Rejection::Missing(Entity::Session)));
        assert_eq!(store.apply(started(1, 1)).await, rejected(Rejection::Conflict(Entity::Execution)));
    })
    .await;
}

#[tokio::test]
async fn events_of_every_kind_come_back_as_they_were() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        let text = "päge\0\u{1F600}".to_owned();
        let payloads = [
            EventPayload::InputEcho { text: text.clone() },
            EventPayload::Console { level: ConsoleLevel::Debug, text: String::new() },
            EventPayload::Value { kind: JsType::Bigint, preview: "1n".to_owned(), json: None },
            EventPayload::Value {
                kind: JsType::Object,
                preview: text.clone(),
                json: Some(JsonText::from_untrusted(r#"{"z":1.0,"a":1e400}"#.to_owned())),
            },
            EventPayload::Exception { message: "m".to_owned(), stack: String::new() },
            EventPayload::System { message: "m".to_owned(), level: ConsoleLevel::Warn },
            EventPayload::Stdout { text: text.clone() },
            EventPayload::Stderr { text: text.clone() },
            EventPayload::Task { task_id: TaskId::from_bytes(id(1, 1)), prompt: text },
        ];
        let written: Vec<Event> =
            (1..).zip(payloads).map(|(seq, payload)| Event { payload, ..console(1, seq) }).collect();
        store.apply(Write::Events(written.clone().into())).await.expect("new");
        assert_eq!(store.events(execution_id(1), 0, 0).await, Ok(written.clone()));
        assert_eq!(store.events(execution_id(1), 2, 3).await, Ok(written[2..5].to_vec()));
        assert_eq!(store.events(execution_id(1), 9, 0).await, Ok(Vec::new()));
        assert_eq!(store.apply(events(1, [9])).await, rejected(Rejection::Conflict(Entity::Event)));
        assert_eq!(store.apply(events(2, [1])).await, rejected(Rejection::Missing(Entity::Execution)));
    })
    .await;
}

#[tokio::test]
async fn execution_name_is_unique_among_the_owners_unfinished_ones() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        let named = |n| Write::ExecutionStarted {
            name: Some("job".to_owned()),
            execution: Arc::new(execution_record(n, 1)),
        };
        store.apply(named(2)).await.expect("the name is free");
        assert_eq!(store.apply(named(3)).await, rejected(Rejection::Conflict(Entity::Execution)));
        store.apply(ended(2, 1)).await.expect("running");
        store.apply(named(3)).await.expect("the name is free again");
        store.apply(ended(3, 1)).await.expect("running");
        store.apply(named(4)).await.expect("the name is free again");
        let by_name = || async {
            store.execution_by_name(&mine(), "job").await.expect("readable").map(|row| row.execution.id)
        };
        assert_eq!(by_name().await, Some(execution_id(4)));
        store.apply(ended(4, 1)).await.expect("running");
        assert_eq!(by_name().await, Some(execution_id(4)), "the newest when none is unfinished");
        assert_eq!(store.execution_by_name(&Scope::Owner(owner(2)), "job").await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn lists_are_newest_first_and_pages_join_without_gap_or_double() {
    both(|store| async move {
        store.apply(template(1, "t")).await.expect("new");
        let mut batch = Vec::new();
        for n in 1..=9 {
            // Three share a moment: the id breaks the tie.
            let mut record = session_record(n, 1);
            record.created_at = Timestamp(i64::from(n / 3));
            batch.push(Write::SessionInsert {
                owner: owner(1 + n % 2),
                name: None,
                session: Arc::new(record),
                policy: policy(),
            });
        }
        store.apply(batch).await.expect("new");
        let all = store.sessions(&Scope::All, SessionQuery::default(), Page::ALL).await.expect("readable");
        let numbers: Vec<u8> = all.iter().map(|row| row.session.id.as_bytes()[15]).collect();
        assert_eq!(numbers, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        let mut paged = Vec::new();
        let mut page = Page::first(2);
        loop {
            let part = store.sessions(&Scope::All, SessionQuery::default(), page).await.expect("readable");
            let Some(last) = part.last() else { break };
            page.after = Some(Cursor { at: last.session.created_at, id: *last.session.id.as_bytes() });
            paged.extend(part);
        }
        assert_eq!(paged, all);
        let theirs = store.sessions(&Scope::Owner(owner(2)), SessionQuery::default(), Page::ALL).await;
        assert_eq!(theirs.expect("readable").len(), 5);
    })
    .await;
}

#[tokio::test]
async fn sessions_are_found_by_status_template_and_workspace() {
    both(|store| async move {
        store.apply(Batch(vec![template(1, "t"), template(2, "u")])).await.expect("new");
        let mut other = session_record(3, 2);
        other.workspace_id = "v".to_owned();
        let other =
            Write::SessionInsert { owner: owner(2), name: None, session: Arc::new(other), policy: policy() };
        let ready = Write::SessionReady { id: session_id(2) };
        store.apply(Batch(vec![session(1, 1), session(2, 1), other, ready])).await.expect("new");
        for scope in [Scope::All, mine()] {
            for status in
                [None, Some(SessionStatus::Starting), Some(SessionStatus::Ready), Some(SessionStatus::Closed)]
            {
                for template in [None, Some(template_id(1)), Some(template_id(2))] {
                    for workspace in [None, Some("w"), Some("v")] {
                        let filter =
                            SessionQuery { status, template, workspace_id: workspace.map(str::to_owned) };
                        let found = store.sessions(&scope, filter, Page::ALL).await.expect("readable");
                        let numbers: Vec<u8> =
                            found.iter().map(|row| row.session.id.as_bytes()[15]).collect();
                        let expected: Vec<u8> =
                            [(3_u8, 2, "v", 2, false), (2, 1, "w", 1, true), (1, 1, "w", 1, false)]
                                .into_iter()
                                .filter(|(_, t, w, o, ready)| {
                                    template.is_none_or(|template| template == template_id(*t))
                                        && workspace.is_none_or(|workspace| workspace == *w)
                                        && scope.sees(&owner(*o))
                                        && match status {
                                            None => true,
                                            Some(SessionStatus::Ready) => *ready,
                                            Some(SessionStatus::Starting) => !*ready,
                                            Some(_) => false,
                                        }
                                })
                                .map(|(n, ..)| n)
                                .collect();
                        assert_eq!(numbers, expected, "{scope:?} {status:?} {template:?} {workspace:?}");
                    }
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ids_are_found_by_their_bounds() {
    both(|store| async move {
        store
            .apply(Batch(vec![template(1, "t"), template(2, "u"), session(1, 1), session(2, 1)]))
            .await
            .expect("new");
        let all = ([0; 16], [255; 16]);
        for (kind, expected) in [(IdKind::Template, 2), (IdKind::Session, 2), (IdKind::Execution, 0)] {
            let found = store.ids(&mine(), kind, all.0, all.1, 10).await.expect("readable");
            assert_eq!(found.len(), expected, "{kind:?}");
        }
        let one = *session_id(2).as_bytes();
        assert_eq!(store.ids(&mine(), IdKind::Session, one, one, 10).await, Ok(vec![one]));
        assert_eq!(
            store.ids(&Scope::Owner(owner(2)), IdKind::Session, all.0, all.1, 10).await,
            Ok(Vec::new())
        );
        assert_eq!(store.ids(&mine(), IdKind::Session, all.0, all.1, 1).await.expect("readable").len(), 1);
    })
    .await;
}

#[tokio::test]
async fn restart_of_the_host_ends_what_has_no_worker_any_more() {
    both(|store| async move {
        let durable = Arc::new(PolicySnapshot { engine: Engine::Cvm, ..(*policy()).clone() });
        let cvm = Write::SessionInsert {
            owner: owner(1),
            name: None,
            session: Arc::new(session_record(3, 1)),
            policy: durable,
        };
        store.apply(running()).await.expect("new");
        let more = vec![session(2, 1), cvm, started(2, 2), started(3, 3), started(4, 1)];
        store.apply(Batch(more)).await.expect("new");
        let wait = Write::ExecutionStatus { id: execution_id(4), status: ExecutionStatus::Waiting };
        store.apply(wait).await.expect("running");
        let restart = || Write::HostRestart { at: Timestamp(9_000), alive: vec![session_id(2)] };
        assert_eq!(store.apply(restart()).await.map(|applied| applied.rows), Ok(3));
        assert_eq!(store.apply(restart()).await.map(|applied| applied.rows), Ok(0));
        let session = store.session(&mine(), session_id(1)).await.expect("readable").expect("there").session;
        assert_eq!(session.status, SessionStatus::Crashed);
        assert_eq!(session.close_reason.as_deref(), Some("host_restart"));
        let status = |n| {
            let store = store.clone();
            async move {
                store.execution(&mine(), execution_id(n)).await.expect("readable").expect("there").execution
            }
        };
        let died = status(1).await;
        let expected = ExecutionError {
            code: "WORKER_DIED".to_owned(),
            message: "the worker was gone when the supervisor started".to_owned(),
            reason: Some("host_restart".to_owned()),
        };
        assert_eq!((died.status, died.error), (ExecutionStatus::Error, Some(expected)));
        assert_eq!(status(4).await.status, ExecutionStatus::Error);
        assert_eq!(status(2).await.status, ExecutionStatus::Running, "its worker was taken over");
        assert_eq!(status(3).await.status, ExecutionStatus::Running, "durable executions resume");
    })
    .await;
}

#[tokio::test]
async fn program_gets_a_version_each_time_it_is_loaded() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        let load = |n: u8, source: &str| {
            Write::ProgramVersion(Box::new(NewProgramVersion {
                owner: owner(1),
                id: ProgramId::from_bytes([n; 16]),
                name: "p".to_owned(),
                source: source.to_owned(),
                source_hash: [n; 32],
                format: 1,
                code: vec![n],
                at: Timestamp(i64::from(n)),
            }))
        };
        store.apply(load(1, "a")).await.expect("new");
        store.apply(load(2, "b")).await.expect("a new version");
        let row = store.program_by_name(&mine(), "p").await.expect("readable").expect("there");
        assert_eq!((row.id, row.version), (ProgramId::from_bytes([1; 16]), 2));
        assert_eq!((row.created_at, row.modified_at), (Timestamp(1), Timestamp(2)));
        let run = |version| Write::ProgramRun { execution: execution_id(1), program: row.id, version };
        assert_eq!(store.apply(run(3)).await, rejected(Rejection::Missing(Entity::Program)));
        store.apply(run(1)).await.expect("there");
        store.apply(Write::ProgramDelete { id: row.id, at: Timestamp(3) }).await.expect("there");
        assert_eq!(store.program(&mine(), row.id).await, Ok(None));
        assert_eq!(store.program_run(execution_id(1)).await, Ok(Some((row.id, 1))));
        let code = store.program_code(row.id, 1).await.expect("readable").expect("executions keep it");
        assert_eq!(code.source, "a");
        store.apply(load(3, "c")).await.expect("the name is free again");
        assert_eq!(store.programs(&mine(), Page::ALL).await.expect("readable").len(), 1);
    })
    .await;
}

#[tokio::test]
async fn execution_has_at_most_one_pending_task() {
    both(|store| async move {
        store.apply(Batch::from(vec![])).await.expect("nothing to do");
        store.apply(running()).await.expect("new");
        let task = |n: u8, execution| TaskRow {
            id: TaskId::from_bytes([n; 16]),
            owner: owner(1),
            execution: execution_id(execution),
            prompt: "why?".to_owned(),
            schema: None,
            attempts: 0,
            created_at: Timestamp(i64::from(n)),
            deadline: Some(Timestamp(99)),
            ended_at: None,
            answer: None,
        };
        let insert = |n, execution| Write::TaskInsert(Box::new(task(n, execution)));
        let id = TaskId::from_bytes([1; 16]);
        assert_eq!(store.apply(insert(1, 9)).await, rejected(Rejection::Missing(Entity::Execution)));
        store.apply(insert(1, 1)).await.expect("new");
        assert_eq!(store.apply(insert(2, 1)).await, rejected(Rejection::Conflict(Entity::Task)));
        store.apply(Write::TaskAttempt { id }).await.expect("pending");
        assert_eq!(store.pending_tasks(&mine(), Page::ALL).await.expect("readable")[0].attempts, 1);
        let end = Write::TaskEnd { id, answer: Some("so".to_owned()), at: Timestamp(5) };
        store.apply(end.clone()).await.expect("pending");
        assert_eq!(store.apply(end).await, rejected(Rejection::Finished(Entity::Task)));
        assert_eq!(store.pending_task(execution_id(1)).await, Ok(None));
        let read = store.task(&mine(), id).await.expect("readable").expect("there");
        assert_eq!(read.answer.as_deref(), Some("so"));
        store.apply(insert(2, 1)).await.expect("the first one is answered");
    })
    .await;
}

#[tokio::test]
async fn state_is_the_newest_version_of_each_page_and_compaction_keeps_it() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        let execution = execution_id(1);
        let point = |seq, pages: &[(u64, Option<&[u8]>)]| {
            let pages = pages.iter().map(|(page, bytes)| (*page, bytes.map(<[u8]>::to_vec))).collect();
            let cause = "pause".to_owned();
            Write::Checkpoint(Box::new(Checkpoint { execution, seq, at: Timestamp(1), cause, pages }))
        };
        store.apply(point(1, &[(0, Some(b"a1")), (1, Some(b"b1")), (2, Some(b"c1"))])).await.expect("new");
        store.apply(point(2, &[(0, Some(b"a2"))])).await.expect("new");
        store.apply(point(3, &[(1, None)])).await.expect("new");
        assert_eq!(store.apply(point(3, &[])).await, rejected(Rejection::Conflict(Entity::Checkpoint)));
        let state = |seq| {
            let store = store.clone();
            async move { store.state(execution, seq).await.expect("readable") }
        };
        let page = |n, bytes: &[u8]| (n, bytes.to_vec());
        assert_eq!(state(1).await, [page(0, b"a1"), page(1, b"b1"), page(2, b"c1")]);
        assert_eq!(state(2).await, [page(0, b"a2"), page(1, b"b1"), page(2, b"c1")]);
        assert_eq!(state(3).await, [page(0, b"a2"), page(2, b"c1")]);
        let compact = Write::CheckpointCompact { execution, keep_from: 3 };
        assert_eq!(store.apply(compact).await.map(|applied| applied.rows), Ok(4));
        assert_eq!(state(3).await, [page(0, b"a2"), page(2, b"c1")]);
        assert_eq!(store.checkpoints(execution).await.expect("readable").len(), 1);
    })
    .await;
}

#[tokio::test]
async fn idempotency_key_is_held_until_it_expires_or_is_given_back() {
    both(|store| async move {
        let claim = |at, expired_before| {
            Write::KeyClaim(Box::new(KeyClaim {
                owner: owner(1),
                key: "k".to_owned(),
                request_hash: [1; 32],
                subject: [2; 16],
                at: Timestamp(at),
                expired_before: Timestamp(expired_before),
                reply: None,
            }))
        };
        store.apply(claim(100, 0)).await.expect("free");
        assert_eq!(store.apply(claim(101, 1)).await, rejected(Rejection::Conflict(Entity::Key)));
        let answer = Write::KeyAnswer { owner: owner(1), key: "k".to_owned(), reply: vec![9] };
        store.apply(answer).await.expect("held");
        let row = store.key(&owner(1), "k").await.expect("readable").expect("held");
        assert_eq!((row.reply, row.subject), (Some(vec![9]), [2; 16]));
        assert_eq!(store.key(&owner(2), "k").await, Ok(None));
        store.apply(claim(200, 101)).await.expect("expired");
        assert_eq!(store.key(&owner(1), "k").await.expect("readable").expect("held").reply, None);
        let release = Write::KeyRelease { owner: owner(1), key: "k".to_owned() };
        store.apply(release).await.expect("always");
        assert_eq!(store.key(&owner(1), "k").await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn audit_log_and_meta_values_are_kept() {
    both(|store| async move {
        let entry = |n: u8| AuditEntry {
            at: Timestamp(i64::from(n)),
            owner: owner(n % 2),
            verb: "template create".to_owned(),
            subject: format!("t{n}"),
            outcome: "ok".to_owned(),
        };
        for n in 1..=4 {
            store.apply(Write::Audit(Box::new(entry(n)))).await.expect("always");
        }
        let page = store.audit(&Scope::All, None, 2).await.expect("readable");
        assert_eq!(page, [(4, entry(4)), (3, entry(3))]);
        assert_eq!(store.audit(&mine(), Some(3), 9).await, Ok(vec![(1, entry(1))]));
        let set =
            |value: Option<&[u8]>| Write::MetaSet { key: "k".to_owned(), value: value.map(<[u8]>::to_vec) };
        store.apply(set(Some(b"1"))).await.expect("always");
        store.apply(set(Some(b"2"))).await.expect("always");
        assert_eq!(store.meta("k").await, Ok(Some(b"2".to_vec())));
        store.apply(set(None)).await.expect("always");
        assert_eq!(store.meta("k").await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn pruning_forgets_whole_executions_oldest_first_within_its_bound() {
    both(|store| async move {
        store.apply(running()).await.expect("new");
        for n in 2..=5 {
            store.apply(Batch(vec![started(n, 1), events(n, 1..=10), ended(n, 1)])).await.expect("new");
        }
        let prune =
            |max_rows| Write::Prune { before: Timestamp(10_000), keys_before: Timestamp(0), max_rows };
        assert_eq!(store.apply(prune(5)).await.map(|applied| applied.rows), Ok(11), "one whole execution");
        assert_eq!(store.execution(&mine(), execution_id(2)).await, Ok(None));
        assert_eq!(store.events(execution_id(2), 0, 0).await, Ok(Vec::new()));
        assert_eq!(store.events(execution_id(3), 0, 0).await.expect("readable").len(), 10);
        assert_eq!(store.apply(prune(1_000)).await.map(|applied| applied.rows), Ok(33));
        assert!(store.execution(&mine(), execution_id(1)).await.expect("readable").is_some(), "it runs");
        assert!(store.session(&mine(), session_id(1)).await.expect("readable").is_some(), "it lives");
        let end = Write::SessionEnd {
            id: session_id(1),
            status: SessionStatus::Closed,
            at: Timestamp(9_999),
            reason: CloseReason::Exited,
            last_error: None,
        };
        let delete = Write::TemplateDelete { id: template_id(1), at: Timestamp(1) };
        store.apply(Batch(vec![ended(1, 1), end, delete])).await.expect("live");
        assert_eq!(store.apply(prune(1_000)).await.map(|applied| applied.rows), Ok(2));
        assert_eq!(store.session(&mine(), session_id(1)).await, Ok(None));
        assert_eq!(store.apply(prune(1_000)).await.map(|applied| applied.rows), Ok(0));
    })
    .await;
}

#[tokio::test]
async fn closed_store_refuses_by_name() {
    both(|store| async move {
        let ticket = store.submit_lazy(template(1, "t")).await.expect("open");
        store.shutdown().await;
        ticket.await.expect("what was queued is committed");
        assert_eq!(store.apply(template(2, "u")).await, Err(StoreError::Closed));
        assert_eq!(store.template(&mine(), template_id(1)).await, Err(StoreError::Closed));
    })
    .await;
}
