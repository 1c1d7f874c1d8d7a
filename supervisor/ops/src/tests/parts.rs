//! Capabilities, startup files and libraries of templates.

use super::fake::{OpsBench, bob, new_session};
use vm_system_protocol::control::{
    ErrorCode, LibraryCatalog, LibraryInfo, LibraryInstall, LibraryRemove, LibraryVerify, NewCapability,
    NewStartupFile, Op, OpError, SessionCreate, TemplateAddCapability, TemplateAddLibrary,
    TemplateAddStartup, TemplateChange, TemplateCreate, TemplateGet, TemplateName, TemplateRemoveCapability,
    TemplateRemoveLibrary, TemplateRemoveStartup, TemplateUpdate,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, Engine, Settings, StartupMode, TemplateDetail};
use vm_system_runtime::Libraries;

fn json(text: &str) -> JsonText {
    JsonText::from_untrusted(text.to_owned())
}

fn capability(template: &str, kind: CapabilityKind, name: &str, config: &str) -> TemplateAddCapability {
    let capability = NewCapability { kind, name: name.to_owned(), enabled: true, config: json(config) };
    TemplateAddCapability { template: template.to_owned(), capability }
}

fn startup(template: &str, path: &str, mode: &str) -> TemplateAddStartup {
    let file = NewStartupFile { path: path.to_owned(), order_index: 0, mode: mode.to_owned() };
    TemplateAddStartup { template: template.to_owned(), file }
}

fn add_library(template: &str, name: &str) -> TemplateAddLibrary {
    TemplateAddLibrary { template: template.to_owned(), name: name.to_owned() }
}

fn library(id: &str, version: &str, source: &str) -> LibraryInstall {
    let (id, version, source) = (id.to_owned(), version.to_owned(), source.to_owned());
    LibraryInstall { id, version, global: None, source, unchecked: false }
}

async fn get(bench: &OpsBench, template: &str) -> TemplateDetail {
    match bench.request(TemplateGet { template: template.to_owned() }).await {
        Ok(detail) => detail,
        other => panic!("another reply: {other:?}"),
    }
}

async fn catalog(bench: &OpsBench) -> Vec<LibraryInfo> {
    match bench.request(LibraryCatalog).await {
        Ok(all) => all,
        other => panic!("another reply: {other:?}"),
    }
}

#[tokio::test]
async fn a_row_for_the_module_http_is_refused_with_the_kind_that_has_an_effect() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    for name in ["http", " HTTP "] {
        let refused = bench.request(capability(&id, CapabilityKind::Module, name, "{}")).await;
        let error = refused.expect_err("it has no effect");
        assert_eq!(error.code, ErrorCode::ValidationError, "{name}");
        assert!(error.message.contains("\"http\" has no effect"), "{}", error.message);
        assert!(error.hint.is_some_and(|hint| hint.contains("kind net")), "{name}");
    }
    let net = capability(&id, CapabilityKind::Net, "api", r#"{"allow":["https://api.example.com"]}"#);
    bench.request(net).await.expect("a row of kind net");
}

#[tokio::test]
async fn capability_is_stored_unchanged_and_removed_by_its_id() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let added =
        bench.request(capability(&id, CapabilityKind::Module, " FS ", r#" { "read": ["*"] } "#)).await;
    let Ok(row) = added else { panic!("another reply: {added:?}") };
    assert_eq!((row.name.as_str(), row.config.as_str()), ("fs", r#"{"read":["*"]}"#));
    assert_eq!(get(&bench, &id).await.capabilities, std::slice::from_ref(&row));
    let again = capability(&id, CapabilityKind::Module, "fs", "{}");
    assert_eq!(bench.refused(again).await, ErrorCode::Conflict);
    let remove = |capability: String| TemplateRemoveCapability { template: id.clone(), capability };
    for (reference, code) in [("", ErrorCode::ValidationError), ("zz", ErrorCode::ValidationError)] {
        assert_eq!(bench.refused(remove(reference.to_owned())).await, code, "{reference}");
    }
    assert_eq!(bench.refused(remove("ffffffff".to_owned())).await, ErrorCode::NotFound);
    let gone = bench.request(remove(row.id.to_string()[..13].to_uppercase())).await;
    assert_eq!(gone, Ok(row.clone()));
    assert_eq!(bench.refused(remove(row.id.to_string())).await, ErrorCode::NotFound);
}

#[tokio::test]
async fn capability_that_is_not_well_formed_is_refused() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    for (name, config) in
        [("", "{}"), ("a\nb", "{}"), (&"x".repeat(501), "{}"), ("a", "[]"), ("a", "{"), ("a", "1")]
    {
        let refused = bench.refused(capability(&id, CapabilityKind::Global, name, config)).await;
        assert_eq!(refused, ErrorCode::ValidationError, "{name:?} {config}");
    }
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(64 * 1024));
    for config in [deep, long] {
        let refused = bench.refused(capability(&id, CapabilityKind::Global, "a", &config)).await;
        assert_eq!(refused, ErrorCode::ValidationError);
    }
    let other = capability("nobody", CapabilityKind::Global, "eval", "{}");
    assert_eq!(bench.refused(other).await, ErrorCode::TemplateNotFound);
}

#[tokio::test]
async fn parts_of_others_do_not_exist() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    for op in [
        Op::from(capability(&id, CapabilityKind::Env, "A", "{}")),
        startup(&id, "a.js", "").into(),
        add_library(&id, "lodash").into(),
    ] {
        let error = bench.ops.any(&bob(), op, None, None).await.expect_err("not Bob's");
        assert_eq!(error.code, ErrorCode::TemplateNotFound);
    }
}

#[tokio::test]
async fn startup_files_are_cleaned_ordered_and_removed_by_id_or_path() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let added = bench.request(startup(&id, "./lib//setup.js", " Eval ")).await;
    let Ok(row) = added else { panic!("another reply: {added:?}") };
    assert_eq!((row.path.as_str(), row.mode), ("lib/setup.js", StartupMode::Eval));
    assert_eq!(bench.refused(startup(&id, "lib/setup.js", "eval")).await, ErrorCode::Conflict);
    bench.request(startup(&id, "a.js", "")).await.expect("new");
    let paths: Vec<_> = get(&bench, &id).await.startup_files.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["a.js", "lib/setup.js"]);
    let remove = |file: &str| TemplateRemoveStartup { template: id.clone(), file: file.to_owned() };
    bench.request(remove(&row.id.to_string())).await.expect("there");
    bench.request(remove("./a.js")).await.expect("there");
    assert_eq!(bench.refused(remove("a.js")).await, ErrorCode::ValidationError);
    assert_eq!(bench.refused(remove(&row.id.to_string())).await, ErrorCode::FileNotFound);
    for path in ["", "/etc/passwd", "../x.js", "a/../../x.js", "a\0b"] {
        assert_eq!(bench.refused(startup(&id, path, "eval")).await, ErrorCode::InvalidPath, "{path:?}");
    }
}

#[tokio::test]
async fn import_needs_a_template_whose_files_are_modules() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    for mode in ["import", "require", "EVIL"] {
        let error = bench.request(startup(&id, "a.js", mode)).await.expect_err("not supported");
        assert_eq!(error.code, ErrorCode::StartupModeUnsupported, "{mode}");
        let details = error.details.and_then(|details| details.to_value()).expect("an object");
        assert_eq!(details["requested_mode"], mode.to_lowercase());
        assert_eq!(
            (&details["template_id"], &details["supported_modes"]),
            (&id.as_str().into(), &["eval"][..].into())
        );
    }
    let esm = |on: &str| {
        let settings = Some(json(&format!(r#"{{"runtime":{{"esm":{on}}}}}"#)));
        TemplateUpdate { template: id.clone(), change: TemplateChange { name: None, settings } }
    };
    bench.request(esm("true")).await.expect("there");
    bench.request(startup(&id, "a.js", "import")).await.expect("a module");
    assert_eq!(bench.refused(esm("false")).await, ErrorCode::ValidationError);
    assert_eq!(bench.refused(esm("null")).await, ErrorCode::ValidationError);
    bench
        .request(TemplateRemoveStartup { template: id.clone(), file: "a.js".to_owned() })
        .await
        .expect("there");
    bench.request(esm("false")).await.expect("nothing needs it");
}

#[tokio::test]
async fn cvm_templates_have_neither_startup_files_nor_libraries() {
    let bench = OpsBench::new();
    let create = TemplateCreate {
        name: "c".to_owned(),
        engine: Engine::Cvm,
        settings: Settings::default(),
        modules: Vec::new(),
    };
    bench.request(create).await.expect("new");
    for op in [Op::from(startup("c", "a.js", "")), add_library("c", "lodash").into()] {
        assert_eq!(bench.refused(op).await, ErrorCode::EngineUnsupported);
    }
    bench.request(capability("c", CapabilityKind::Env, "A", "{}")).await.expect("every engine has rights");
}

#[tokio::test]
async fn template_names_libraries_of_the_catalog_and_installed_ones() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let added = |reply: Result<TemplateName, OpError>| match reply {
        Ok(added) => added.name,
        other => panic!("another reply: {other:?}"),
    };
    // The original's clients look for the name that they sent.
    assert_eq!(added(bench.request(add_library(&id, " lodash ")).await), "lodash");
    assert_eq!(added(bench.request(add_library(&id, "lodash-4.17.21")).await), "lodash");
    assert_eq!(added(bench.request(add_library(&id, "axios-1.6.0")).await), "axios-1.6.0");
    assert_eq!(added(bench.request(add_library(&id, "axios")).await), "axios-1.6.0");
    let error = bench.request(add_library(&id, "left-pad-1.3.0")).await.expect_err("not installed");
    assert_eq!(error.code, ErrorCode::LibraryNotFound);
    assert!(error.hint.expect("what to do").contains("libs install left-pad@1.3.0"));
    bench.as_admin(library("left-pad", "1.3.0", "1")).await.expect("installed");
    assert_eq!(added(bench.request(add_library(&id, "left-pad")).await), "left-pad-1.3.0");
    bench.as_admin(library("left-pad", "2.0.0", "2")).await.expect("installed");
    assert_eq!(bench.refused(add_library(&id, "left-pad")).await, ErrorCode::ValidationError);
    assert_eq!(bench.refused(add_library(&id, "left-pad-2.0.0")).await, ErrorCode::Conflict);
    assert_eq!(get(&bench, &id).await.template.libraries, ["axios-1.6.0", "left-pad-1.3.0", "lodash"]);
    let remove = |name: &str| TemplateRemoveLibrary { template: id.clone(), name: name.to_owned() };
    assert_eq!(added(bench.request(remove("lodash-4.17.21")).await), "lodash");
    assert_eq!(added(bench.request(remove("axios")).await), "axios-1.6.0");
    assert_eq!(added(bench.request(remove("left-pad-1.3.0")).await), "left-pad-1.3.0");
    assert!(get(&bench, &id).await.template.libraries.is_empty());
}

#[tokio::test]
async fn an_id_of_the_catalog_means_its_version_there_or_the_only_installed_one() {
    let bench = OpsBench::new();
    let session = async |version: Option<&str>| {
        if let Some(version) = version {
            bench.as_admin(library("lodash", version, "1")).await.expect("installed");
        }
        match bench.ops.libraries_of(&["lodash".to_owned()]).await.expect("libraries") {
            Libraries::Installed(set) => set.names(),
            Libraries::Missing(name) => vec![format!("no {name}")],
        }
    };
    assert_eq!(session(None).await, ["no lodash-4.17.21"]);
    assert_eq!(session(Some("4.17.20")).await, ["lodash-4.17.20"]);
    assert_eq!(session(Some("4.17.19")).await, ["no lodash-4.17.21"]);
    assert_eq!(session(Some("4.17.21")).await, ["lodash-4.17.21"]);
}

#[tokio::test]
async fn only_administrators_install_and_remove() {
    let bench = OpsBench::new();
    assert_eq!(bench.refused(library("a", "1.0.0", "1")).await, ErrorCode::NotPermitted);
    bench.as_admin(library("a", "1.0.0", "1")).await.expect("installed");
    let remove = LibraryRemove { name: "a".to_owned() };
    assert_eq!(bench.refused(remove.clone()).await, ErrorCode::NotPermitted);
    bench.as_admin(remove.clone()).await.expect("removed");
    let error = bench.as_admin(remove).await.expect_err("gone");
    assert_eq!(error.code, ErrorCode::LibraryNotFound);
}

#[tokio::test]
async fn a_library_that_does_not_load_is_not_installed_unless_that_is_wanted() {
    let bench = OpsBench::new();
    let error = bench.as_admin(library("broken", "1.0.0", "throw 1")).await.expect_err("it does not load");
    assert_eq!(error.code, ErrorCode::StartupFailed);
    assert!(error.message.contains("broken-1.0.0") && error.message.contains("it throws"), "{error:?}");
    assert!(error.hint.expect("what to do").contains("--unchecked"));
    assert!(!catalog(&bench).await.iter().any(|library| library.id == "broken"));
    let nevertheless = LibraryInstall { unchecked: true, ..library("broken", "1.0.0", "throw 1") };
    bench.as_admin(nevertheless).await.expect("installed");
    assert!(catalog(&bench).await.iter().any(|library| library.id == "broken"));
}

#[tokio::test]
async fn catalog_shows_what_is_installed_and_what_could_be() {
    let bench = OpsBench::new();
    assert_eq!(catalog(&bench).await.len(), 6);
    assert!(catalog(&bench).await.iter().all(|library| !library.installed));
    bench.as_admin(library("lodash", "4.17.21", "module.exports = {}")).await.expect("installed");
    bench.as_admin(library("a", "1.0.0", "1")).await.expect("installed");
    let all = catalog(&bench).await;
    let names: Vec<_> = all.iter().map(|library| library.name.as_str()).collect();
    assert_eq!(names[..2], ["a-1.0.0", "axios-1.6.0"]);
    let lodash = all.iter().find(|library| library.id == "lodash").expect("there");
    assert_eq!((lodash.installed, lodash.global.as_deref(), lodash.bytes), (true, Some("_"), Some(19)));
    let checks = bench.request(LibraryVerify { name: None }).await;
    assert!(matches!(checks, Ok(checks) if checks.len() == 2 && checks.iter().all(|c| c.ok)));
    let missing = LibraryVerify { name: Some("axios".to_owned()) };
    assert_eq!(bench.refused(missing).await, ErrorCode::LibraryNotFound);
}

#[tokio::test]
async fn invalid_libraries_are_refused() {
    let bench = OpsBench::new();
    let huge = "x".repeat(vm_system_protocol::limits::LIBRARY_BYTES + 1);
    for (id, version, source) in
        [("../x", "1.0.0", "1"), ("a", "latest", "1"), ("a", "1.0.0", " "), ("a", "1.0.0", huge.as_str())]
    {
        let error = bench.as_admin(library(id, version, source)).await.expect_err("refused");
        assert_eq!(error.code, ErrorCode::ValidationError, "{id} {version}");
    }
    let with_global = LibraryInstall {
        unchecked: false,
        id: "a".to_owned(),
        version: "1.0.0".to_owned(),
        global: Some("a b".to_owned()),
        source: "1".to_owned(),
    };
    let error = bench.as_admin(with_global).await.expect_err("refused");
    assert_eq!(error.code, ErrorCode::ValidationError);
}

#[tokio::test]
async fn session_may_request_less_time_than_its_template_permits() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let settings = Some(json(r#"{"runtime":{"ttl_s":100}}"#));
    let change = TemplateChange { name: None, settings };
    bench.request(TemplateUpdate { template: id, change }).await.expect("there");
    let session = |ttl_s, idle_timeout_s| SessionCreate { ttl_s, idle_timeout_s, ..new_session("t") };
    bench.request(session(Some(100), Some(5))).await.expect("not longer");
    for ttl in [0, 101] {
        assert_eq!(bench.refused(session(Some(ttl), None)).await, ErrorCode::LimitNotAllowed, "{ttl}");
    }
}

#[tokio::test]
async fn a_template_with_all_its_rows_has_a_largest_size() {
    let bench = OpsBench::new();
    let id = bench.template("t").await;
    let value = "x".repeat(32_000);
    let config = format!("{{\"value\":\"{value}\"}}");
    let mut rows = 0;
    let refused = loop {
        match bench.request(capability(&id, CapabilityKind::Env, &format!("NAME_{rows}"), &config)).await {
            Ok(_) => rows += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(rows, 8, "of 256 KiB");
    assert_eq!(refused.code, ErrorCode::ValidationError);
    assert!(refused.message.contains("at most 262144 bytes"), "{}", refused.message);
    bench.request(startup(&id, "small.js", "eval")).await.expect("small parts still fit");
    let other = bench.template("other").await;
    bench.request(capability(&other, CapabilityKind::Env, "NAME", &config)).await.expect("another template");
}
