//! Templates.

use super::fake::{OpsBench, admin, alice, bob, new_session, template, with_settings};
use std::sync::Arc;
use vm_system_protocol::control::{
    ErrorCode, ListPage, ModuleCatalog, OpError, TemplateAddModule, TemplateChange, TemplateCreate,
    TemplateDelete, TemplateGet, TemplateList, TemplateRemoveModule, TemplateUpdate,
};
use vm_system_protocol::for_each_limit;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Engine, Settings, Template, TemplateDetail, ZeroLimit};

fn detail(reply: Result<TemplateDetail, OpError>) -> TemplateDetail {
    reply.expect("the verb succeeds")
}

fn with_modules(engine: Engine, modules: &[&str]) -> TemplateCreate {
    TemplateCreate {
        name: "t".to_owned(),
        engine,
        settings: Settings::default(),
        modules: modules.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[tokio::test]
async fn created_template_has_the_defaults_of_the_contract() {
    let bench = OpsBench::new();
    let id = bench.template("  my template ").await;
    let made = detail(bench.request(TemplateGet { template: id }).await);
    assert_eq!(made.template.name, "my template");
    assert_eq!(made.settings, Settings::default());
    assert!(made.template.is_active && made.template.exposed_modules.is_empty());
}

#[tokio::test]
async fn engine_alias_is_echoed_as_it_was_sent() {
    let bench = OpsBench::new();
    let made = bench.request(with_modules(Engine::Goja, &[])).await;
    assert!(matches!(made, Ok(template) if template.engine == Engine::Goja));
}

#[tokio::test]
async fn malformed_names_are_refused() {
    let bench = OpsBench::new();
    for name in ["", " \t ", "a\nb", "a\0b", &"x".repeat(201)] {
        assert_eq!(bench.refused(template(name)).await, ErrorCode::ValidationError, "{name:?}");
    }
    bench.template(&"ü".repeat(200)).await;
}

#[tokio::test]
async fn taken_name_is_a_conflict_until_its_template_is_deleted() {
    let bench = OpsBench::new();
    let first = bench.template("t").await;
    assert_eq!(bench.refused(template("t")).await, ErrorCode::Conflict);
    let deleted = bench.request(TemplateDelete { template: first.clone() }).await;
    assert!(matches!(deleted, Ok(deleted)
        if deleted.status == "ok" && deleted.template_id.to_string() == first));
    bench.template("t").await;
    let again = bench.refused(TemplateDelete { template: first.clone() }).await;
    assert_eq!(again, ErrorCode::TemplateNotFound);
    assert_eq!(bench.refused(TemplateGet { template: first }).await, ErrorCode::TemplateNotFound);
}

#[tokio::test]
async fn list_is_newest_first_and_shows_only_the_callers_own() {
    let bench = OpsBench::new();
    assert_eq!(
        bench.request(TemplateList { page: ListPage::default(), built_in: false }).await,
        Ok(Vec::new())
    );
    let names = ["a", "b", "c"];
    for name in names {
        bench.template(name).await;
    }
    let listed = |reply: Result<Vec<Template>, OpError>| match reply {
        Ok(templates) => templates.into_iter().map(|template| template.name).collect::<Vec<_>>(),
        other => panic!("another reply: {other:?}"),
    };
    assert_eq!(
        listed(bench.request(TemplateList { page: ListPage::default(), built_in: false }).await),
        ["c", "b", "a"]
    );
    assert!(
        listed(
            bench
                .ops
                .call(&bob(), TemplateList { page: ListPage::default(), built_in: false }, None, None)
                .await
        )
        .is_empty()
    );
    assert_eq!(
        listed(
            bench
                .ops
                .call(&admin(), TemplateList { page: ListPage::default(), built_in: false }, None, None)
                .await
        )
        .len(),
        3
    );
}

fn change(template: &str, name: Option<&str>, settings: Option<&str>) -> TemplateUpdate {
    let settings = settings.map(|patch| JsonText::from_untrusted(patch.to_owned()));
    let change = TemplateChange { name: name.map(str::to_owned), settings };
    TemplateUpdate { template: template.to_owned(), change }
}

#[tokio::test]
async fn change_replaces_what_it_names_and_keeps_the_rest() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let patch = r#"{"limits":{"cpu_ms":9},"resolver":{"roots":["lib"]},"runtime":{"esm":true}}"#;
    let changed = detail(bench.request(change(&id, None, Some(patch))).await);
    let mut settings = Settings::default();
    settings.limits.cpu_ms = 9;
    settings.resolver.roots = vec!["lib".to_owned()];
    settings.runtime.esm = true;
    assert_eq!((changed.template.name.as_str(), &changed.settings), ("t", &settings));
    let changed = detail(bench.request(change(&id, Some("u"), None)).await);
    assert_eq!((changed.template.name.as_str(), &changed.settings), ("u", &settings));
    let changed = detail(bench.request(change(&id, None, Some(r#"{"limits":{"wall_ms":7}}"#))).await);
    settings.limits.wall_ms = 7;
    assert_eq!(changed.settings, settings);
    bench.template("taken").await;
    assert_eq!(bench.refused(change(&id, Some("taken"), None)).await, ErrorCode::Conflict);
}

#[tokio::test]
async fn null_resets_a_setting_or_a_whole_group() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let patch = r#"{"limits":{"cpu_ms":9,"wall_ms":8},"resolver":{"extensions":[".x"]}}"#;
    bench.request(change(&id, None, Some(patch))).await.expect("fits");
    let patch = r#"{"limits":{"cpu_ms":null},"resolver":null}"#;
    let changed = detail(bench.request(change(&id, None, Some(patch))).await).settings;
    assert_eq!((changed.limits.cpu_ms, changed.limits.wall_ms), (5_000, 8));
    assert_eq!(changed.resolver, Settings::default().resolver);
}

#[tokio::test]
async fn change_of_an_unknown_setting_is_refused_with_its_position() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    for (patch, place) in [
        ("[]", "object"),
        ("{", "object"),
        (r#"{"limit":{}}"#, "limit"),
        (r#"{"limits":7}"#, "limits"),
        (r#"{"limits":{"cpu":7}}"#, "limits.cpu"),
        (r#"{"limits":{"cpu":null}}"#, "limits.cpu"),
        (r#"{"limits":{"cpu_ms":"7"}}"#, "limits"),
        (r#"{"limits":{"cpu_ms":-1}}"#, "limits"),
        (r#"{"runtime":{"on_crash":"explode"}}"#, "runtime"),
    ] {
        let error = bench.request(change(&id, None, Some(patch))).await.expect_err("refused");
        assert_eq!(error.code, ErrorCode::InvalidRequest, "{patch}");
        assert!(error.message.contains(place), "{patch}: {}", error.message);
    }
    let over = change(&id, None, Some(r#"{"limits":{"mem_mb":4294967295}}"#));
    let error = bench.request(over).await.expect_err("above the ceiling");
    assert_eq!(error.code, ErrorCode::LimitNotAllowed);
    assert!(error.message.contains("mem_mb") && error.message.contains("4096"), "{}", error.message);
    assert_eq!(detail(bench.request(TemplateGet { template: id }).await).settings, Settings::default());
}

/// One limit at both ends of its type.
struct LimitExtremes {
    name: &'static str,
    zero: ZeroLimit,
    set_zero: fn(&mut Settings),
    set_largest: fn(&mut Settings),
}

macro_rules! extremes {
    ($($name:ident: $type:ident = $_default:literal, $_ceiling:literal, $zero:ident, $_unit:literal, $_text:literal;)+) => {
        const EXTREMES: &[LimitExtremes] = &[$(LimitExtremes {
            name: stringify!($name),
            zero: ZeroLimit::$zero,
            set_zero: |settings| settings.limits.$name = 0,
            set_largest: |settings| settings.limits.$name = $type::MAX,
        },)+];
    };
}
for_each_limit!(extremes);

#[tokio::test]
async fn settings_outside_their_ranges_are_refused() {
    let bench = OpsBench::new();
    let mut cases: Vec<fn(&mut Settings)> = vec![
        |s| s.resolver.roots = vec!["../x".to_owned()],
        |s| s.resolver.roots = vec!["/x".to_owned()],
        |s| s.resolver.roots = vec![" ".to_owned()],
        |s| s.resolver.roots = vec!["x".to_owned(); 65],
        |s| s.resolver.extensions = vec!["js".to_owned()],
        |s| s.resolver.extensions = vec![".".to_owned()],
        |s| s.resolver.extensions = vec!["./x".to_owned()],
        |s| s.resolver.extensions = vec![format!(".{}", "x".repeat(40))],
        |s| s.limits.max_steps = u64::MAX,
    ];
    let refused = EXTREMES.iter().filter(|limit| limit.zero == ZeroLimit::Refused);
    cases.extend(refused.map(|limit| limit.set_zero));
    for (number, case) in cases.into_iter().enumerate() {
        assert_eq!(bench.refused(with_settings(case)).await, ErrorCode::ValidationError, "case {number}");
    }
}

#[tokio::test]
async fn settings_above_the_operators_ceilings_are_refused_with_the_field() {
    let bench = OpsBench::new();
    for LimitExtremes { name: field, set_largest, .. } in EXTREMES {
        if *field == "max_steps" {
            // By default there is no ceiling.
            continue;
        }
        let error = bench.request(with_settings(*set_largest)).await.expect_err("above the ceiling");
        assert_eq!(error.code, ErrorCode::LimitNotAllowed, "{field}");
        let details = error.details.and_then(|details| details.to_value()).expect("details are an object");
        assert_eq!(details["field"], *field);
    }
    let roots = |s: &mut Settings| s.resolver.roots = vec!["src/./lib".to_owned(), ".".to_owned()];
    bench.request(with_settings(roots)).await.expect("folders of the worktree");
}

#[tokio::test]
async fn modules_are_checked_against_the_catalog() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let add = |name: &str| TemplateAddModule { template: id.clone(), name: name.to_owned() };
    let built_in = ["console", "math", "JSON", "date", "array", "string", "object", "promise"];
    for name in ["exec", "http", "left-pad"].iter().chain(&built_in) {
        let error = bench.request(add(name)).await.expect_err("not allowed");
        assert_eq!(error.code, ErrorCode::ModuleNotAllowed, "{name}");
        assert!(error.message.contains(&name.to_lowercase()), "{}", error.message);
    }
    assert_eq!(bench.refused(add(" ")).await, ErrorCode::ValidationError);
    assert_eq!(bench.refused(with_modules(Engine::Quickjs, &["nope"])).await, ErrorCode::ModuleNotAllowed);
    let modules = || async {
        detail(bench.request(TemplateGet { template: id.clone() }).await).template.exposed_modules
    };
    for _ in 0..2 {
        let added = bench.request(add(" FS ")).await;
        assert!(matches!(added, Ok(added) if added.name == "fs"));
        assert_eq!(modules().await, ["fs"]);
    }
    let remove = TemplateRemoveModule { template: id.clone(), name: "fs".to_owned() };
    for _ in 0..2 {
        bench.request(remove.clone()).await.expect("removed or gone");
        assert!(modules().await.is_empty());
    }
    let missing = TemplateAddModule { template: "nobody".to_owned(), name: "fs".to_owned() };
    assert_eq!(bench.refused(missing).await, ErrorCode::TemplateNotFound);
    let catalog = bench.request(ModuleCatalog).await;
    assert!(matches!(catalog, Ok(modules) if modules.len() == 3 && modules[2].name == "fs"));
}

#[tokio::test]
async fn cvm_templates_have_no_modules_and_no_sessions_of_their_own() {
    let bench = OpsBench::new();
    assert_eq!(bench.refused(with_modules(Engine::Cvm, &["fs"])).await, ErrorCode::EngineUnsupported);
    bench.request(with_modules(Engine::Cvm, &[])).await.expect("a cvm template");
    let add = TemplateAddModule { template: "t".to_owned(), name: "fs".to_owned() };
    assert_eq!(bench.refused(add).await, ErrorCode::EngineUnsupported);
    let create = new_session("t");
    assert_eq!(bench.refused(create).await, ErrorCode::EngineUnsupported);
}

#[tokio::test]
async fn store_that_cannot_write_is_reported_and_changes_nothing() {
    let bench = OpsBench::new();
    bench.faults.set(Some("the disk is full"));
    let error = bench.request(template("t")).await.expect_err("the disk is full");
    assert_eq!(error.code, ErrorCode::StorageUnavailable);
    assert!(error.message.contains("full"), "{}", error.message);
    bench.faults.set(None);
    assert_eq!(
        bench.request(TemplateList { page: ListPage::default(), built_in: false }).await,
        Ok(Vec::new())
    );
    bench.faults.set_over_quota(true);
    assert_eq!(bench.refused(template("t")).await, ErrorCode::StorageUnavailable);
}

#[tokio::test]
async fn changes_are_in_the_audit_log_with_their_outcome() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let _ = bench.request(template("t")).await;
    // The line of the first request is committed with the next urgent batch at the latest; the line of this one may come later.
    bench.template("u").await;
    let log = bench.store.audit(&vm_system_record::Scope::All, None, 10).await.expect("readable");
    let lines: Vec<_> = log
        .iter()
        .map(|(_, entry)| (entry.owner.as_str(), entry.verb.as_str(), entry.outcome.as_str()))
        .collect();
    let outcomes = ["CONFLICT", "ok"].map(|outcome| ("alice", "template create", outcome));
    assert!(lines.ends_with(&outcomes), "{lines:?}");
    assert_eq!(log.last().expect("two lines").1.subject, id);
}

#[tokio::test]
async fn slow_commit_of_an_owner_does_not_block_template_changes_of_another_one() {
    let bench = OpsBench::new();
    let of_alice = bench.template("first").await;
    let of_bob =
        bench.ops.call(&bob(), template("first"), None, None).await.expect("his first").id.to_string();
    let rename = |template: String| change(&template, Some("second"), None);
    bench.faults.set_full_for(&alice().owner);
    let (ops, slow) = (Arc::clone(&bench.ops), rename(of_alice));
    let slow = tokio::spawn(async move { ops.call(&alice(), slow, None, None).await });
    bench.faults.until_a_batch_waits().await;
    let changed = detail(bench.ops.call(&bob(), rename(of_bob), None, None).await);
    assert_eq!(changed.template.name, "second");
    assert!(!slow.is_finished());
    bench.faults.set_full(false);
    assert_eq!(detail(slow.await.expect("it ends")).template.name, "second");
}
