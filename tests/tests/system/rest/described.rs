//! Checks responses against the OpenAPI description: as much of JSON Schema as it uses, and strictly (fields that are not
//! described are errors).

use super::pattern::{is_time, is_uuid};
use serde_json::Value;
use std::collections::BTreeSet;

/// The description.
#[derive(Debug)]
pub(super) struct Description(Value);

/// A route of the description.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) method: String,
    /// The path with the server's prefix: `/api/v1/templates/{template_id}`.
    pub(super) path: String,
}

impl Description {
    pub(super) fn read(document: &Value) -> Self {
        Self(document.clone())
    }

    /// All routes.
    pub(super) fn routes(&self) -> Vec<Route> {
        let prefix = self.0["servers"][0]["url"].as_str().expect("a server");
        let paths = self.0["paths"].as_object().expect("paths");
        let routes = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("operations").keys();
            methods
                .map(move |method| Route { method: method.to_uppercase(), path: format!("{prefix}{path}") })
        });
        routes.collect()
    }

    /// The description of a route. `path` may have `<name>` for parameters.
    fn operation(&self, method: &str, path: &str) -> Result<&Value, String> {
        let path = path.split('?').next().unwrap_or_default();
        let fits = |template: &str| {
            let (given, template): (Vec<_>, Vec<_>) =
                (path.split('/').collect(), template.split('/').collect());
            given.len() == template.len()
                && given
                    .iter()
                    .zip(&template)
                    .all(|(given, template)| template.starts_with('{') || given == template)
        };
        let paths = self.0["paths"].as_object().expect("paths");
        // A path without parameters is preferred.
        let mut fitting: Vec<_> = paths.keys().filter(|template| fits(template)).collect();
        fitting.sort_by_key(|template| template.matches('{').count());
        let operation = fitting.iter().find_map(|template| paths[*template].get(method.to_lowercase()));
        operation.ok_or_else(|| format!("{method} {path} is not described"))
    }

    /// Checks that the body of a request has the shape that its route describes.
    pub(super) fn judge_request(&self, method: &str, path: &str, body: &Value) -> Result<(), String> {
        let operation = self.operation(method, path)?;
        match operation["requestBody"]["content"]["application/json"].get("schema") {
            Some(schema) => self.holds(schema, body),
            None => Err(format!("{method} {path} is described without a body")),
        }
    }

    /// The schema of a request's body, if it has a name: the fields of all these are sent by some line of the contract.
    pub(super) fn request_schema(&self, method: &str, path: &str) -> Option<&str> {
        named(&self.operation(method, path).ok()?["requestBody"]["content"]["application/json"]["schema"])
    }

    /// The fields of all request bodies: `TemplateBody.name`.
    pub(super) fn request_fields(&self) -> BTreeSet<String> {
        let paths = self.0["paths"].as_object().expect("paths");
        let operations = paths.values().flat_map(|item| item.as_object().expect("operations").values());
        let schemas = operations.filter_map(|operation| {
            named(&operation["requestBody"]["content"]["application/json"]["schema"])
        });
        let fields = schemas.flat_map(|name| {
            let fields = self.fields_of(&self.0["components"]["schemas"][name]);
            fields.into_iter().map(move |field| format!("{name}.{field}"))
        });
        fields.collect()
    }

    /// The fields of an object; of one that has several forms, those of all.
    fn fields_of<'a>(&'a self, schema: &'a Value) -> BTreeSet<&'a str> {
        let own = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
        let forms = schema["oneOf"].as_array().into_iter().flatten().filter_map(referred);
        let of_forms = forms.flat_map(|name| self.fields_of(&self.0["components"]["schemas"][name]));
        own.map(String::as_str).chain(of_forms).collect()
    }

    /// Checks that a response has the shape that its route describes.
    pub(super) fn judge(&self, method: &str, path: &str, status: u16, body: &Value) -> Result<(), String> {
        let response = &self.operation(method, path)?["responses"][status.to_string()];
        if response.is_null() {
            return Err(format!("status {status} of {method} {path} is not described"));
        }
        match response["content"]["application/json"].get("schema") {
            Some(schema) => self.holds(schema, body),
            None => Ok(()),
        }
    }

    /// Checks that the body is the envelope of an error.
    pub(super) fn refusal(&self, body: &Value) -> Result<(), String> {
        self.holds(&serde_json::json!({ "$ref": "#/components/schemas/Envelope" }), body)
    }

    fn holds(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return self.holds(&self.0["components"]["schemas"][name], value);
        }
        for choice in ["oneOf", "anyOf"] {
            // Beside properties, the choice is which of them are required.
            let schemas = schema.get(choice).filter(|_| schema.get("properties").is_none());
            if let Some(schemas) = schemas.and_then(Value::as_array) {
                let fitting = schemas.iter().filter(|schema| self.holds(schema, value).is_ok()).count();
                return match (fitting, choice) {
                    (0, _) => Err(format!("{value} matches no schema of {choice}")),
                    (2.., "oneOf") => Err(format!("{value} matches {fitting} schemas of oneOf")),
                    _ => Ok(()),
                };
            }
        }
        if let Some(members) = schema.get("enum").and_then(Value::as_array) {
            return if members.contains(value) {
                Ok(())
            } else {
                Err(format!("{value} is not one of {members:?}"))
            };
        }
        if schema.get("const").is_some_and(|only| only != value) {
            return Err(format!("{value} is not {}", schema["const"]));
        }
        Self::is_of_type(schema, value)?;
        Self::is_in_bounds(schema, value)?;
        match value {
            Value::Object(object) if schema.get("properties").is_some() => self.object(schema, object),
            Value::Object(object) if schema.get("additionalProperties").is_some_and(Value::is_object) => {
                let schema = &schema["additionalProperties"];
                object.iter().try_for_each(|(name, value)| {
                    self.holds(schema, value).map_err(|why| format!("{name}: {why}"))
                })
            }
            Value::Array(array) => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                array
                    .iter()
                    .try_for_each(|value| if items.is_null() { Ok(()) } else { self.holds(items, value) })
            }
            Value::String(text) => match schema.get("format").and_then(Value::as_str) {
                Some("uuid") if !is_uuid(text) => Err(format!("{text} is no UUID")),
                Some("date-time") if !is_time(text) => Err(format!("{text} is no time")),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn object(&self, schema: &Value, object: &serde_json::Map<String, Value>) -> Result<(), String> {
        let properties = schema["properties"].as_object().expect("properties");
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().expect("a name");
            if !object.contains_key(name) {
                return Err(format!("{name} is required"));
            }
        }
        for (name, value) in object {
            let schema = match properties.get(name) {
                Some(schema) => schema,
                None if schema.get("additionalProperties") == Some(&Value::Bool(true)) => continue,
                None => return Err(format!("{name} is not described")),
            };
            self.holds(schema, value).map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }

    fn is_in_bounds(schema: &Value, value: &Value) -> Result<(), String> {
        let (least, most, size) = match value {
            Value::Number(number) => ("minimum", "maximum", number.as_f64()),
            Value::String(text) => ("minLength", "maxLength", Some(text.chars().count() as f64)),
            Value::Array(array) => ("minItems", "maxItems", Some(array.len() as f64)),
            Value::Object(object) => ("minProperties", "maxProperties", Some(object.len() as f64)),
            _ => return Ok(()),
        };
        let size = size.ok_or_else(|| format!("{value} is out of range"))?;
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        if bound(least).is_some_and(|least| size < least) || bound(most).is_some_and(|most| size > most) {
            return Err(format!("{value} is not within {least} and {most} of {schema}"));
        }
        Ok(())
    }

    fn is_of_type(schema: &Value, value: &Value) -> Result<(), String> {
        let is = |kind: &str| match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            // JSON Schema counts `1.0` as an integer.
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "null" => value.is_null(),
            _ => false,
        };
        let fits = match schema.get("type") {
            None => true,
            Some(Value::String(kind)) => is(kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(is),
            Some(_) => false,
        };
        if fits { Ok(()) } else { Err(format!("{value} is not of type {}", schema["type"])) }
    }
}

/// The component that a schema refers to, also where the value may be `null`.
fn named(schema: &Value) -> Option<&str> {
    referred(schema).or_else(|| schema["oneOf"].as_array()?.iter().find_map(referred))
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}
