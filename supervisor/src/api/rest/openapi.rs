//! The description of this door (OpenAPI 3.1), generated from the handlers. `docs/openapi.json` is a copy that a test
//! compares.

use super::{PREFIX, archives, durable, executions, parts, programs, runtime, schema, sessions, templates};
use std::sync::LazyLock;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Ref, RefOr, Response, path::PathItem};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "vm-system",
        description = "Untrusted JavaScript in sandboxed worker processes. Every error has the same envelope; `error.code` \
                       is what programs match on. Every answer has X-Request-Id. Every POST takes Idempotency-Key: the \
                       same key from the same owner gives the first answer again for 24 hours. Lists take `limit` and \
                       `cursor`; X-Next-Cursor says where the next part begins. Unknown fields of bodies are refused.",
        license(name = "MIT OR Apache-2.0")
    ),
    paths(
        runtime::health, runtime::summary, runtime::info, runtime::modules, runtime::libraries, runtime::description,
        templates::list, templates::create, templates::get, templates::update, templates::delete,
        parts::capabilities, parts::add_capability, parts::remove_capability,
        parts::startup_files, parts::add_startup_file, parts::remove_startup_file,
        parts::modules, parts::add_module, parts::remove_module,
        parts::libraries, parts::add_library, parts::remove_library,
        sessions::list, sessions::create, sessions::get, sessions::close, sessions::delete, sessions::inspect,
        sessions::kill, sessions::fork,
        executions::repl, executions::run_file, executions::list, executions::get, executions::cancel,
        executions::events,
        programs::list, programs::load, programs::get, programs::versions, programs::delete, programs::executions,
        programs::check_plan,
        archives::export_program, archives::export_execution, archives::import_program, archives::import_execution,
        durable::start, durable::forget, durable::current, durable::set_current, durable::task, durable::submit, durable::tasks, durable::state, durable::set,
        durable::checkpoints, durable::rewind, durable::branch_off,
    ),
    components(schemas(schema::Envelope)),
    modifiers(&Common)
)]
struct Description;

/// What all operations have in common.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        document.servers = Some(vec![utoipa::openapi::Server::new(PREFIX)]);
        let components = document.components.get_or_insert_default();
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("bearer", bearer);
        // On the Unix socket and on loopback the kernel says who asks.
        let nobody = SecurityRequirement::default();
        document.security = Some(vec![nobody, SecurityRequirement::new("bearer", [] as [&str; 0])]);
        for (path, item) in &mut document.paths.paths {
            for (method, operation) in operations(item) {
                operation.operation_id = Some(operation_id(method, path));
                let refused = Response::builder()
                    .description("refused; see error.code")
                    .content(
                        "application/json",
                        utoipa::openapi::ContentBuilder::new()
                            .schema(Some(RefOr::Ref(Ref::from_schema_name("Envelope"))))
                            .build(),
                    )
                    .build();
                operation.responses.responses.insert("default".to_owned(), RefOr::T(refused));
            }
        }
    }
}

fn operations(
    item: &mut PathItem,
) -> impl Iterator<Item = (&'static str, &mut utoipa::openapi::path::Operation)> {
    let all = [
        ("get", &mut item.get),
        ("post", &mut item.post),
        ("put", &mut item.put),
        ("patch", &mut item.patch),
        ("delete", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// `get_templates_template_id_modules`: unique, as the specification asks, since method and path are.
fn operation_id(method: &str, path: &str) -> String {
    let names = path.split(|char: char| !char.is_ascii_alphanumeric()).filter(|name| !name.is_empty());
    names.fold(method.to_owned(), |id, name| id + "_" + name)
}

/// The description as text.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        // Nothing in a description can fail to be written.
        Description::openapi().to_pretty_json().map(|text| text + "\n").unwrap_or_default()
    });
    &TEXT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::rest::routes;
    use std::collections::BTreeSet;

    #[test]
    fn the_description_has_every_route_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(text()).expect("json");
        let mut described = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in item.as_object().expect("operations").keys() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let served: BTreeSet<String> = routes::table().listed.into_iter().collect();
        assert_eq!(described, served);
        assert_eq!(document["openapi"], "3.1.0");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document: serde_json::Value = serde_json::from_str(text()).expect("json");
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for reference in text().split("\"$ref\": \"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
    }

    #[test]
    fn every_operation_has_an_id_of_its_own() {
        let ids: Vec<&str> = text().split("\"operationId\": \"").skip(1).collect();
        let named: BTreeSet<&str> = ids.iter().filter_map(|text| text.split('"').next()).collect();
        assert_eq!((named.len(), ids.len()), (ids.len(), routes::table().listed.len()));
    }

    /// `VM_SYSTEM_BLESS=1` writes the copy anew; review the difference.
    #[test]
    fn the_copy_in_the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
        if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
            std::fs::write(path, text()).expect("written");
        }
        let copy = std::fs::read_to_string(path).expect("docs/openapi.json");
        assert!(
            copy == text(),
            "docs/openapi.json is not what the handlers say: VM_SYSTEM_BLESS=1 writes it anew"
        );
    }
}
