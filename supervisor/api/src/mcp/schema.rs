//! JSON Schemas of the tools, derived from their input and output types.

use rmcp::model::JsonObject;
use rmcp::schemars::Schema;
use rmcp::schemars::generate::SchemaSettings;
use rmcp::schemars::transform::RecursiveTransform;
pub(super) use rmcp::schemars::{self, JsonSchema};
use serde_json::{Value, json};

/// Schema of a tool's arguments.
pub(super) fn input<T: JsonSchema>() -> JsonObject {
    generate::<T>(SchemaSettings::draft2020_12())
}

/// Schema of a tool's result.
pub(super) fn output<T: JsonSchema>() -> JsonObject {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    // Agents read schemas as text: no references, no metadata.
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let settings = settings
        .with_transform(RecursiveTransform(absent_not_null))
        .with_transform(RecursiveTransform(bounds_not_formats));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name and the comment of the Rust type.
    schema.remove("title");
    schema.remove("description");
    let Value::Object(mut object) = schema.to_value() else { return JsonObject::new() };
    for (name, empty) in [("properties", json!({})), ("required", json!([]))] {
        object.entry(name).or_insert(empty);
    }
    object
}

/// An optional field is absent, never null.
fn absent_not_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("title");
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    if let Some(Value::Array(names)) = object.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    let of_null = |choice: &Value| choice["type"] == "null";
    if let Some(Value::Array(choices)) = object.get("anyOf")
        && let [Value::Object(some), null] = &choices[..]
        && of_null(null)
    {
        let mut some = some.clone();
        object.remove("anyOf");
        // The comment of the field overrides the comment of its type.
        some.append(object);
        *object = some;
    }
}

/// Largest integer that every JSON number keeps exactly (RFC 8259, 6).
const MOST_EXACT: u64 = (1 << 53) - 1;

/// An integer has bounds in place of the format of its Rust type, which JSON Schema does not know: clients warn of such a format, or
/// refuse the schema. Formats of texts are for parsers: an agent reads the texts.
fn bounds_not_formats(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let bounds = match object.get("format").and_then(Value::as_str) {
        Some("uint8") => (json!(0), json!(u8::MAX)),
        Some("uint16") => (json!(0), json!(u16::MAX)),
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("uint" | "uint64") => (json!(0), json!(MOST_EXACT)),
        Some("int8") => (json!(i8::MIN), json!(i8::MAX)),
        Some("int16") => (json!(i16::MIN), json!(i16::MAX)),
        Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
        Some("int" | "int64") => (json!(-MOST_EXACT.cast_signed()), json!(MOST_EXACT)),
        Some("float" | "double" | "uuid" | "date-time") => {
            object.remove("format");
            return;
        }
        _ => return,
    };
    object.remove("format");
    object.insert("minimum".to_owned(), bounds.0);
    object.insert("maximum".to_owned(), bounds.1);
}

/// The schema without descriptions: an agent reads all schemas at once, and names of results speak for themselves. The docs have
/// the descriptions.
pub(super) fn undescribed(mut schema: JsonObject) -> JsonObject {
    schema.remove("description");
    for (name, part) in &mut schema {
        match part {
            // Here the keys are names of fields.
            Value::Object(fields) if name == "properties" => {
                for field in fields.values_mut() {
                    strip(field);
                }
            }
            part => strip(part),
        }
    }
    schema
}

fn strip(part: &mut Value) {
    match part {
        Value::Object(object) => *object = undescribed(std::mem::take(object)),
        Value::Array(parts) => parts.iter_mut().for_each(strip),
        _ => {}
    }
}
