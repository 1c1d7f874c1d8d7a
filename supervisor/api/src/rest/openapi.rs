//! The description of the REST API (OpenAPI 3.1): `docs/openapi.json`, written by hand and served unchanged. Tests compare it with
//! the routes, and with every request and response of the contract (`tests/tests/system/rest/contract.rs`).

use axum::http::Method;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The description as text.
pub const TEXT: &str = include_str!("../../../../docs/openapi.json");

/// Names of the query parameters of each route that has any (`GET /sessions`).
static QUERY_PARAMETERS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(TEXT).unwrap_or_default();
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    });
    let named = |parameter: &Value| {
        let parameter = match parameter["$ref"].as_str().and_then(|to| to.strip_prefix('#')) {
            Some(to) => document.pointer(to).unwrap_or(&Value::Null),
            None => parameter,
        };
        let name = parameter["name"].as_str().filter(|_| parameter["in"] == "query");
        name.map(str::to_owned)
    };
    let names = |operation: &Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.filter_map(named).collect()
    };
    operations.map(|(route, operation)| (route, names(operation))).collect()
});

/// Names of the query parameters of a route.
pub(super) fn query_parameters(method: &Method, path: &str) -> Vec<&'static str> {
    let names = QUERY_PARAMETERS.get(&format!("{method} {path}")).into_iter().flatten();
    names.map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::{PREFIX, routes};
    use std::collections::BTreeSet;

    #[test]
    fn the_description_has_every_route_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(TEXT).expect("json");
        let mut described = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in item.as_object().expect("operations").keys() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let served: BTreeSet<String> = routes::table().listed.into_iter().collect();
        assert_eq!(described, served);
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(document["servers"][0]["url"], PREFIX);
    }

    #[test]
    fn the_upgrade_has_the_version_of_the_control_protocol() {
        use vm_system_protocol::control::{UPGRADE_NAME, UPGRADE_PROTOCOL};
        assert_eq!(TEXT.matches(&format!("{UPGRADE_NAME}/")).count(), TEXT.matches(UPGRADE_PROTOCOL).count());
        assert!(TEXT.contains(UPGRADE_PROTOCOL));
    }

    #[test]
    fn parameters_of_a_route_are_those_of_its_query() {
        assert_eq!(query_parameters(&Method::GET, "/programs/{program}"), ["version"]);
        assert_eq!(query_parameters(&Method::GET, "/templates"), ["built_in", "limit", "cursor"]);
        assert!(query_parameters(&Method::GET, "/health").is_empty());
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document: serde_json::Value = serde_json::from_str(TEXT).expect("json");
        for reference in TEXT.split("\"$ref\": \"#/components/").skip(1) {
            let place = reference.split('"').next().unwrap_or_default();
            assert!(document.pointer(&format!("/components/{place}")).is_some(), "{place}");
        }
    }

    #[test]
    fn formats_are_those_that_openapi_and_json_schema_have() {
        let formats: BTreeSet<&str> =
            TEXT.split("\"format\": \"").skip(1).filter_map(|text| text.split('"').next()).collect();
        assert_eq!(formats, BTreeSet::from(["date-time", "int32", "int64", "uuid"]));
    }

    /// Generators take an object without fields for one that has none.
    #[test]
    fn objects_say_what_members_they_may_have() {
        fn look(schema: &Value, place: &str) {
            let is_object = |kind: &Value| kind == "object";
            let kind = &schema["type"];
            if is_object(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_object)) {
                let said = ["properties", "additionalProperties"];
                assert!(said.iter().any(|key| schema.get(key).is_some()), "{place}");
            }
            match schema {
                Value::Object(parts) => {
                    parts.iter().for_each(|(name, part)| look(part, &format!("{place}/{name}")));
                }
                Value::Array(parts) => parts.iter().for_each(|part| look(part, place)),
                _ => {}
            }
        }
        let document: Value = serde_json::from_str(TEXT).expect("json");
        look(&document, "");
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for (name, schema) in schemas {
            // A field beside forms is of no form.
            let choices = schema["oneOf"].as_array().into_iter().flatten();
            let with_fields = choices.filter(|choice| choice["$ref"].is_string()).count();
            assert!(with_fields == 0 || schema.get("properties").is_none(), "{name}");
        }
    }

    #[test]
    fn every_operation_has_an_id_of_its_own() {
        let ids: Vec<&str> = TEXT.split("\"operationId\": \"").skip(1).collect();
        let named: BTreeSet<&str> = ids.iter().filter_map(|text| text.split('"').next()).collect();
        assert_eq!((named.len(), ids.len()), (ids.len(), routes::table().listed.len()));
    }
}
