//! Templates, their parts, installed libraries.

use super::rejected;
use crate::StoreHandle;
use crate::tests::fixture::{
    detail, id, mine, owner, policy, running, session, session_id, session_record, template, template_id,
};
use std::sync::Arc;
use vm_system_protocol::ids::{CapabilityId, StartupFileId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Capability, CapabilityKind, SessionStatus, StartupFile, StartupMode};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Batch, Entity, LibraryRow, Page, Rejection, Scope, SessionQuery, Write};

pub(super) async fn template_is_read_with_all_its_parts_in_order(store: StoreHandle) {
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
}

pub(super) async fn template_name_is_unique_among_an_owners_active_ones(store: StoreHandle) {
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
    assert_eq!((found.detail.template.id, found.detail.template.updated_at), (template_id(4), Timestamp(9)));
}

pub(super) async fn deleted_template_is_hidden_and_its_sessions_continue(store: StoreHandle) {
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
}

pub(super) async fn modules_and_libraries_are_added_and_removed_once(store: StoreHandle) {
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
    let row = LibraryRow {
        name: "a-1".to_owned(),
        id: "a".to_owned(),
        version: "1".to_owned(),
        global: None,
        hash,
        bytes: 9,
        installed_at: at,
    };
    let install = |row: &LibraryRow| Write::LibraryInstall(Box::new(row.clone()));
    store.apply(install(&row)).await.expect("new");
    assert_eq!(store.libraries().await, Ok(vec![row.clone()]));
    let again = LibraryRow { global: Some("A".to_owned()), hash: [8; 32], ..row };
    store.apply(install(&again)).await.expect("replaced");
    assert_eq!(store.libraries().await, Ok(vec![again]));
    let uninstall = Write::LibraryUninstall { name: "a-1".to_owned() };
    store.apply(uninstall.clone()).await.expect("there");
    assert_eq!(store.apply(uninstall).await, rejected(Rejection::Missing(Entity::Library)));
}

pub(super) async fn capability_and_startup_file_are_unique_in_their_template(store: StoreHandle) {
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
    let remove =
        |n| Write::CapabilityRemove { template: template_id(1), id: CapabilityId::from_bytes([n; 16]), at };
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
}

pub(super) async fn sessions_are_found_by_status_template_and_workspace(store: StoreHandle) {
    store.apply(Batch(vec![template(1, "t"), template(2, "u")])).await.expect("new");
    let mut other = session_record(3, 2);
    other.workspace_id = "v".to_owned();
    let other =
        Write::SessionInsert { owner: owner(2), session: Arc::new(other), policy: policy(), worktree: None };
    let ready = Write::SessionReady { id: session_id(2) };
    store.apply(Batch(vec![session(1, 1), session(2, 1), other, ready])).await.expect("new");
    for scope in [Scope::All, mine()] {
        for status in
            [None, Some(SessionStatus::Starting), Some(SessionStatus::Ready), Some(SessionStatus::Closed)]
        {
            for template in [None, Some(template_id(1)), Some(template_id(2))] {
                for workspace in [None, Some("w"), Some("v")] {
                    let filter = SessionQuery {
                        status,
                        template,
                        workspace_id: workspace.map(str::to_owned),
                        name: None,
                        ..SessionQuery::default()
                    };
                    let found = store.sessions(&scope, &filter, Page::ALL).await.expect("readable");
                    let numbers: Vec<u8> = found.iter().map(|row| row.session.id.as_bytes()[15]).collect();
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
}
