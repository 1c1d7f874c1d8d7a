//! Brings derived schemas into the form of the description: what the types of Rust do not say, and what generators of clients need.

use serde_json::{Map, Value, json};

/// The part of a message that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessagePart {
    Request,
    Response,
    /// A parameter is absent or has a value, never null.
    Parameter,
}

/// A schema in the form of the description.
pub(super) fn finished(schema: Value, direction: MessagePart) -> Value {
    let Value::Object(mut schema) = schema else { return json!({}) };
    for noise in ["default", "title", "$schema"] {
        schema.remove(noise);
    }
    if let Some(Value::String(about)) = schema.get_mut("description") {
        *about = plain(about);
    }
    bounds(&mut schema, direction);
    if direction == MessagePart::Response && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        // Later versions have more fields, which clients ignore.
        schema.remove("additionalProperties");
    }
    if direction == MessagePart::Parameter {
        never_null(&mut schema);
    }
    nullable(&mut schema);
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (keyword, part) in &mut schema {
        match (keyword.as_str(), part) {
            ("properties", Value::Object(fields)) => {
                for (name, field) in fields {
                    // A field of a response that may be absent is absent and not null.
                    if direction == MessagePart::Response && !required.iter().any(|known| known == name) {
                        field.as_object_mut().into_iter().for_each(never_null);
                    }
                    *field = finished(field.take(), direction);
                }
            }
            ("items" | "additionalProperties", part) if !part.is_boolean() => {
                *part = finished(part.take(), direction);
            }
            ("oneOf" | "anyOf" | "allOf", Value::Array(choices)) => {
                for choice in choices {
                    *choice = finished(choice.take(), direction);
                }
            }
            _ => {}
        }
    }
    Value::Object(schema)
}

/// Removes null from the values of a schema.
fn never_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = &kinds[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            schema.remove("anyOf");
            // The comment of the field is about this value, that of its type about all of them.
            for (keyword, value) in only {
                schema.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Exactly one of null and a type.
fn nullable(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf")
        && choices.len() == 2
        && choices[1]["type"] == "null"
    {
        choices.reverse();
        let choices = schema.remove("anyOf");
        schema.insert("oneOf".to_owned(), choices.unwrap_or_default());
    }
    let of_null =
        schema.get("type").and_then(Value::as_array).is_some_and(|kinds| kinds.contains(&json!("null")));
    if let Some(Value::Array(names)) = schema.get_mut("enum")
        && of_null
        && !names.contains(&Value::Null)
    {
        names.push(Value::Null);
    }
}

/// An integer has a format that OpenAPI knows and all of whose values are in it, and its bounds.
fn bounds(schema: &mut Map<String, Value>, direction: MessagePart) {
    let (format, least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16") => ("int32", Some(json!(0)), Some(json!(u16::MAX))),
        Some("int32") => ("int32", None, None),
        Some("uint32") => ("int64", Some(json!(0)), Some(json!(u32::MAX))),
        Some("uint" | "uint64") if direction == MessagePart::Response => ("int64", Some(json!(0)), None),
        Some("uint" | "uint64") => ("int64", Some(json!(0)), Some(json!(i64::MAX))),
        Some("int64") if direction == MessagePart::Request => {
            ("int64", Some(json!(i64::MIN)), Some(json!(i64::MAX)))
        }
        _ => return,
    };
    schema.insert("format".to_owned(), format.into());
    for (keyword, bound) in [("minimum", least), ("maximum", most)] {
        if let Some(bound) = bound {
            schema.entry(keyword).or_insert(bound);
        }
    }
}

/// A comment as text for readers of the description: lines are joined, and links to items are their names.
fn plain(comment: &str) -> String {
    let mut text = comment.replace('\n', " ");
    while let Some(begin) = text.find("[`") {
        let Some(length) = text[begin..].find("`]") else { break };
        let end = begin + length + 2;
        let target =
            text[end..].strip_prefix('(').and_then(|rest| rest.find(')')).map_or(0, |close| close + 2);
        let name = text[begin + 1..end - 1].to_owned();
        text.replace_range(begin..end + target, &name);
    }
    text
}

/// The schemas of requests and of responses under their names, in one object.
pub(super) fn merged(requests: Map<String, Value>, responses: Map<String, Value>) -> Value {
    let mut all = Map::new();
    for (schemas, direction) in [(requests, MessagePart::Request), (responses, MessagePart::Response)] {
        for (name, schema) in schemas {
            let schema = finished(schema, direction);
            if let Some(other) = all.get(&name) {
                assert_eq!(*other, schema, "{name} is one schema in requests and another one in responses");
            }
            all.insert(name, schema);
        }
    }
    for (name, forms) in
        all.clone().into_iter().filter_map(|(name, schema)| Some((name, schema.get(FORMS)?.clone())))
    {
        divide(&name, &forms, &mut all);
    }
    let unions: Vec<String> =
        all.iter().filter(|(_, schema)| is_union(schema)).map(|(name, _)| name.clone()).collect();
    for name in unions {
        split(&name, &mut all);
    }
    Value::Object(all)
}

/// The keyword with which a type of several forms names them: the fields that each of them requires, and those that it does not have.
const FORMS: &str = "x-forms";

/// A schema for each form of a request, in place of one with all of their fields: generators of clients make a type of each.
fn divide(name: &str, forms: &Value, all: &mut Map<String, Value>) {
    let mut whole = all[name].take();
    whole.as_object_mut().expect("an object").remove(FORMS);
    let mut references = Vec::new();
    for (form_name, about) in forms.as_object().expect("forms by their names") {
        let names = |keyword: &str| about[keyword].as_array().expect("names of fields").clone();
        let mut form = whole.clone();
        let fields = form["properties"].as_object_mut().expect("fields");
        for absent in names("without") {
            fields.remove(absent.as_str().expect("the name of a field")).expect("a field of the whole");
        }
        for required in names("required") {
            let field = &mut form["properties"][required.as_str().expect("the name of a field")];
            never_null(field.as_object_mut().expect("a field of the whole"));
            let form = form.as_object_mut().expect("an object");
            let list = form.entry("required").or_insert_with(|| json!([]));
            list.as_array_mut().expect("names of fields").push(required);
        }
        references.push(json!({ "$ref": format!("#/components/schemas/{form_name}") }));
        all.insert(form_name.clone(), form);
    }
    all.insert(name.to_owned(), json!({ "description": whole["description"], "oneOf": references }));
}

/// Whether a schema has fields, and further ones that depend on a tag.
fn is_union(schema: &Value) -> bool {
    schema.get("properties").is_some()
        && schema["oneOf"].as_array().is_some_and(|all| all.iter().all(|one| tag(one).is_some()))
}

/// The field of a choice with its only value, and that value.
fn tag(choice: &Value) -> Option<(&str, &str)> {
    let fields = choice["properties"].as_object()?;
    fields.iter().find_map(|(name, field)| Some((name.as_str(), field["const"].as_str()?)))
}

/// `input_echo` as a part of a type's name: `InputEcho`.
fn capitalised(name: &str) -> String {
    let parts = name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]);
    parts.collect()
}

/// A tagged union as generators need it: a schema with a name for each choice, with all of its fields, and one for each of its objects.
fn split(name: &str, all: &mut Map<String, Value>) {
    let mut union = all[name].take();
    let (mut mapping, mut forms, mut by) = (Map::new(), Vec::new(), String::new());
    for choice in union["oneOf"].take().as_array().into_iter().flatten() {
        let (field, value) = tag(choice).expect("a choice with a tag");
        field.clone_into(&mut by);
        let mut form = union.clone();
        form.as_object_mut().expect("an object").remove("oneOf");
        if let Some(about) = choice.get("description") {
            form["description"] = about.clone();
        }
        for (field, schema) in choice["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            if schema["type"] == "object" {
                let named = capitalised(value) + &capitalised(field);
                if let Some(about) = choice.get("description") {
                    schema["description"] = about.clone();
                }
                let reference = json!({ "$ref": format!("#/components/schemas/{named}") });
                all.insert(named, std::mem::replace(&mut schema, reference));
            }
            form["properties"][field] = schema;
        }
        let required = form["required"].as_array_mut().expect("fields that are always there");
        required.extend(choice["required"].as_array().into_iter().flatten().cloned());
        let named = capitalised(value) + name;
        let reference = format!("#/components/schemas/{named}");
        mapping.insert(value.to_owned(), reference.clone().into());
        forms.push(json!({ "$ref": reference }));
        all.insert(named, form);
    }
    let mut whole = json!({ "oneOf": forms, "discriminator": { "propertyName": by, "mapping": mapping } });
    if let Some(about) = union.get("description") {
        whole["description"] = about.clone();
    }
    all.insert(name.to_owned(), whole);
}
