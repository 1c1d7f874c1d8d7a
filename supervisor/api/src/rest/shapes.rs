//! Shapes of values that requests have as texts and that their handlers check: the schemas of fields whose Rust type says less. A shape
//! has no values; the derived description of the API alone reads it.

use nix::sys::signal::Signal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Declares shapes with the keywords of their schemas.
macro_rules! shapes {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)+) => {
        $(
            $(#[doc = $doc])+
            pub(super) enum $name {}

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $schema
                }
            }
        )+
    };
}

shapes! {
    /// An id, in upper or lower case.
    Uuid = json_schema!({ "type": "string", "format": "uuid" });
    /// The name of a template, a program, a session or an execution: 1 to 200 printable characters, around which white space is dropped.
    Name = json_schema!({
        "type": "string",
        "minLength": 1,
        "pattern": r"^(?:[^\S\u001c-\u001f\ufeff]|\u0085)*[^\s\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069](?:[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]{0,198}[^\s\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])?(?:[^\S\u001c-\u001f\ufeff]|\u0085)*$",
    });
    /// The name of a checkpoint: 1 to 64 printable characters, no number, no `/`.
    CheckpointName = json_schema!({
        "type": "string",
        "minLength": 1,
        "pattern": r"^(?:[^\S\u001c-\u001f\ufeff]|\u0085)*(?![0-9]+(?:[^\S\u001c-\u001f\ufeff]|\u0085)*$)[^\s/\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069](?:[^/\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]{0,62}[^\s/\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])?(?:[^\S\u001c-\u001f\ufeff]|\u0085)*$",
    });
    /// An id or a name.
    Reference = json_schema!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": r"[^\s\u0085]" });
    /// The name of an event.
    EventName = json_schema!({ "type": "string", "minLength": 1, "maxLength": 256 });
    /// A text with anything but white space.
    NotBlank = json_schema!({ "type": "string", "minLength": 1, "pattern": r"[^\s\u0085]" });
    /// A text with anything.
    NotEmpty = json_schema!({ "type": "string", "minLength": 1 });
    /// A label that is only recorded.
    Label = json_schema!({ "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"[^\s\u0085]" });
    /// The name of a library.
    LibraryName = json_schema!({ "type": "string", "minLength": 1, "maxLength": 100, "pattern": r"[^\s\u0085]" });
    /// The name of a host module, in upper or lower case: an enum would have one member only.
    ModuleName = json_schema!({
        "type": "string",
        "pattern": r"^\s*([dD][aA][tT][aA][bB][aA][sS][eE]|[eE][xX][eE][cC]|[fF][sS])\s*$",
        "examples": ["database", "exec", "fs"],
    });
    /// The mode of a startup file, in upper or lower case.
    StartupModeName = json_schema!({
        "type": "string",
        "pattern": r"^\s*([eE][vV][aA][lL]|[iI][mM][pP][oO][rR][tT])?\s*$",
        "examples": ["eval", "import"],
    });
    /// The absolute path of a folder.
    FolderPath = json_schema!({ "type": "string", "maxLength": 1024, "pattern": r"^/[^\u0000]*$" });
    /// A path beneath the worktree.
    RelativePath = json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": r"^(?!/)(?!(?:[^\u0000]*/)?\.\.(?:/|$))(?!\.?(?:/+\.?)*$)(?![\s\u0085]*$)[^\u0000]+$",
    });
    /// A path beneath the worktree, or the absolute path of a file in it.
    WorktreePath = json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": r"^(?!(?:[^\u0000]*/)?\.\.(?:/|$))(?!\.?(?:/+\.?)*$)(?![\s\u0085]*$)[^\u0000]+$",
    });
    /// The name of a source's file.
    SourceName = json_schema!({ "type": "string", "minLength": 1, "maxLength": 1000, "pattern": SOURCE_NAME });
    /// Texts of files by their names.
    SourceFiles = json_schema!({
        "type": "object",
        "propertyNames": { "minLength": 1, "maxLength": 1000, "pattern": SOURCE_NAME },
        "additionalProperties": { "type": "string" },
        "maxProperties": 999,
    });
    /// The id of a block of a plan.
    BlockId = json_schema!({ "type": "string", "maxLength": 100, "pattern": "^[0-9]{2}(-[a-z0-9]+)+$" });
    /// Variables of an environment: numbers and booleans become texts.
    Variables = json_schema!({
        "type": "object",
        "propertyNames": { "minLength": 1, "pattern": r"^[^=\u0000]+$" },
        "additionalProperties": { "type": ["string", "number", "boolean"], "pattern": r"^[^\u0000]*$" },
    });
    /// Any object.
    Object = json_schema!({ "type": "object", "additionalProperties": true });
    /// A file with an exported program or execution.
    ArchiveLines = json_schema!({ "type": "array", "items": {} });
    /// The number or the name of a checkpoint, or none.
    CheckpointReference = json_schema!({
        "oneOf": [
            { "type": "null" },
            { "type": "integer", "format": "int64", "minimum": 0, "maximum": 9_007_199_254_740_991_u64 },
            { "type": "string", "minLength": 1 },
        ],
    });
    /// The name or the number of a signal, or none.
    SignalReference = json_schema!({
        "oneOf": [
            { "type": "null" },
            { "type": "integer", "minimum": 1, "maximum": 31 },
            { "type": "string", "enum": signal_names() },
        ],
    });
}

/// The pattern of a source's file name: no part of it is empty, `.` or `..`.
const SOURCE_NAME: &str =
    r"^(?:[^/\u0000-\u001f\u007f-\u009f]+/)*(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f]+$";

/// The names of all signals, with and without `SIG`.
fn signal_names() -> Vec<String> {
    let names = || Signal::iterator().map(|signal| signal.as_str().to_owned());
    names().map(|name| name.trim_start_matches("SIG").to_owned()).chain(names()).collect()
}

/// A part of a template's settings with the fields that a request changes: any of them, `null` for its default.
pub(super) struct Patch<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Patch", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let fields = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
        for field in fields.into_iter().flat_map(serde_json::Map::values_mut) {
            match field["type"].as_str() {
                Some(kind) => field["type"] = serde_json::json!([kind, "null"]),
                None => *field = serde_json::json!({ "anyOf": [field.take(), { "type": "null" }] }),
            }
        }
        schema.insert(
            "description".to_owned(),
            format!("Any fields of `{}`; `null` resets a field to its default.", T::schema_name()).into(),
        );
        schema
    }
}
