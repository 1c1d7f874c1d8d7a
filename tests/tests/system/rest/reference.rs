//! docs/api-reference.md has every route and every error code of the code. `VM_SYSTEM_BLESS=1` writes the generated parts;
//! review the difference.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::model::EXECUTION_CODES;

/// Codes that only the REST API has.
const OF_REST: &[(u16, &str, &str)] = &[
    (405, "METHOD_NOT_ALLOWED", "The route has no such method; the field `Allow` lists those that it has."),
    (408, "INVALID_REQUEST", "The body was not complete in time."),
    (413, "INVALID_REQUEST", "The body is too large."),
    (415, "INVALID_REQUEST", "The request has a body, and no `Content-Type: application/json`."),
    (426, "INVALID_REQUEST", "Another version of the control protocol."),
    (431, "INVALID_REQUEST", "The target and the fields of the request are too long."),
    (401, "UNAUTHORIZED", "A token is missing or not one of the daemon's."),
];

fn docs(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).join(name)
}

fn name_of(schema: &Value) -> String {
    let referred = |schema: &Value| {
        schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).map(str::to_owned)
    };
    if let Some(name) = referred(schema) {
        return name;
    }
    if schema["type"] == "array" {
        return format!("[{}]", referred(&schema["items"]).unwrap_or_else(|| "text".to_owned()));
    }
    schema["oneOf"].as_array().into_iter().flatten().find_map(referred).unwrap_or_else(|| "-".to_owned())
}

/// The table of routes.
fn routes(document: &Value) -> String {
    let mut out = String::from("| route | body | success | what it does |\n|---|---|---|---|\n");
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let body = match &operation["requestBody"]["content"]["application/json"]["schema"] {
                Value::Null => "-".to_owned(),
                schema => name_of(schema),
            };
            let successes = operation["responses"].as_object().expect("responses").iter();
            let successes: Vec<String> = successes
                .filter(|(status, _)| status.starts_with('2') || *status == "101")
                .map(|(status, response)| match &response["content"]["application/json"]["schema"] {
                    Value::Null => status.clone(),
                    schema => format!("{status} {}", name_of(schema)),
                })
                .collect();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let query: Vec<&str> = parameters
                .filter(|parameter| parameter["in"] == "query")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
            let what = operation["summary"].as_str().unwrap_or_default();
            let _ = writeln!(
                out,
                "| `{} {path}{query}` | {body} | {} | {what} |",
                method.to_uppercase(),
                successes.join(", ")
            );
        }
    }
    out
}

/// The fields of the bodies of requests and responses.
fn objects(document: &Value) -> String {
    let mut out = String::new();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        if let Some(members) = schema["enum"].as_array() {
            let members: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
            let _ = writeln!(out, "- **{name}**: `{}`", members.join("`, `"));
        } else if let Some(fields) = schema["properties"].as_object() {
            let required = schema["required"].as_array();
            let shown = |field: &String| {
                let needed = required.is_some_and(|names| names.iter().any(|name| name == field));
                if needed { format!("`{field}`") } else { format!("`{field}`?") }
            };
            let _ =
                writeln!(out, "- **{name}**: {}", fields.keys().map(shown).collect::<Vec<_>>().join(", "));
        } else if let Some(forms) = schema["oneOf"].as_array() {
            let forms: Vec<String> = forms.iter().map(name_of).collect();
            let _ = writeln!(out, "- **{name}**: one of {}", forms.join(", "));
        }
    }
    out
}

/// The table of the codes of refused requests.
fn codes() -> String {
    let known = |code: &ErrorCode| (code.http_status(), code.as_str(), code.meaning().trim());
    let mut all: Vec<(u16, &str, &str)> = ErrorCode::ALL.iter().map(known).collect();
    all.extend_from_slice(OF_REST);
    all.sort_unstable();
    let head = "| status | code | meaning |\n|---|---|---|\n".to_owned();
    all.iter()
        .fold(head, |out, (status, code, meaning)| out + &format!("| {status} | `{code}` | {meaning} |\n"))
}

/// The table of the codes of executions.
fn execution_codes() -> String {
    let head = "| code | meaning |\n|---|---|\n".to_owned();
    EXECUTION_CODES.iter().fold(head, |out, (code, meaning)| out + &format!("| `{code}` | {meaning} |\n"))
}

/// Replaces the text between the two marks of a part.
fn with_part(text: &str, part: &str, content: &str) -> String {
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- end of {part} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no part {part}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no end of {part}"));
    format!("{before}{begin}{content}{end}{after}")
}

#[test]
fn the_reference_has_every_route_every_object_and_every_code() {
    let document = std::fs::read_to_string(docs("openapi.json")).expect("docs/openapi.json");
    let document = serde_json::from_str(&document).expect("json");
    let path = docs("api-reference.md");
    let text = std::fs::read_to_string(&path).expect("docs/api-reference.md");
    let current = with_part(&text, "routes", &routes(&document));
    let current = with_part(&current, "objects", &objects(&document));
    let current = with_part(&current, "codes", &codes());
    let current = with_part(&current, "execution codes", &execution_codes());
    if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
        std::fs::write(&path, &current).expect("written");
        return;
    }
    assert!(text == current, "docs/api-reference.md is out of date: VM_SYSTEM_BLESS=1 writes it");
}
