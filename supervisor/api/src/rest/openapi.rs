//! The description of the REST API (OpenAPI 3.1): `docs/openapi.json`, written by hand and served unchanged. Tests compare it with
//! the routes, and with every request and response of the contract (`tests/tests/rest/contract.rs`).

/// The description as text.
pub const TEXT: &str = include_str!("../../../../docs/openapi.json");

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
    fn every_reference_leads_somewhere() {
        let document: serde_json::Value = serde_json::from_str(TEXT).expect("json");
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for reference in TEXT.split("\"$ref\": \"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
    }

    #[test]
    fn every_operation_has_an_id_of_its_own() {
        let ids: Vec<&str> = TEXT.split("\"operationId\": \"").skip(1).collect();
        let named: BTreeSet<&str> = ids.iter().filter_map(|text| text.split('"').next()).collect();
        assert_eq!((named.len(), ids.len()), (ids.len(), routes::table().listed.len()));
    }
}
