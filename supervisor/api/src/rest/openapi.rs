//! The description of the REST API (OpenAPI 3.1): `docs/openapi.json`, served unchanged. `generate`, a part of the tests alone, makes it
//! from the table of routes and the types of their handlers; a test compares, and every request and response of the contract
//! (`tests/tests/system/rest/contract.rs`) is checked against it.

#[cfg(test)]
mod generate;
#[cfg(test)]
mod schemas;
#[cfg(test)]
pub(super) use generate::DescribedOperation;

/// The description as text.
pub const TEXT: &str = include_str!("../../../../docs/openapi.json");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::routes;
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn the_description_is_that_of_the_code() {
        let current = generate::document();
        if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
            std::fs::write(path, current).expect("written");
            return;
        }
        assert!(TEXT == current, "docs/openapi.json is out of date: VM_SYSTEM_BLESS=1 writes it");
    }

    #[test]
    fn the_upgrade_has_the_version_of_the_control_protocol() {
        use vm_system_protocol::control::{UPGRADE_NAME, UPGRADE_PROTOCOL};
        assert_eq!(TEXT.matches(&format!("{UPGRADE_NAME}/")).count(), TEXT.matches(UPGRADE_PROTOCOL).count());
        assert!(TEXT.contains(UPGRADE_PROTOCOL));
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
        assert_eq!((named.len(), ids.len()), (ids.len(), routes::rows().len()));
    }
}
