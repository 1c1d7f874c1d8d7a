//! The forms of capability rows as clients write them, by kind and name: descriptions of APIs are derived from these types. The configs
//! are those that [`read_row`](super::read_row) reads.

use super::globals;
use super::row::{DatabaseConfig, ExecConfig, FilesConfig, FsConfig, NetConfig, NoConfig, VariableConfig};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The pattern of a path in a config.
pub(super) const PATH: &str =
    r"^(?!/)(?!(.*/)?\.\.(/|$))(?!.*\*\*[^/])(?!.*[^/]\*\*)[^\[\]{}!\\\u0000-\u001f\u007f-\u009f]+$";
/// The pattern of an address in a config.
pub(super) const ADDRESS: &str = r"^(?:https?://|(?![^\u0000]*://))(?:\*|\[(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:|(?:[0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,5}(?::[0-9A-Fa-f]{1,4}){1,2}|(?:[0-9A-Fa-f]{1,4}:){1,4}(?::[0-9A-Fa-f]{1,4}){1,3}|(?:[0-9A-Fa-f]{1,4}:){1,3}(?::[0-9A-Fa-f]{1,4}){1,4}|(?:[0-9A-Fa-f]{1,4}:){1,2}(?::[0-9A-Fa-f]{1,4}){1,5}|[0-9A-Fa-f]{1,4}:(?::[0-9A-Fa-f]{1,4}){1,6}|:(?:(?::[0-9A-Fa-f]{1,4}){1,7}|:))\]|(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}|(?!(?:[^/]*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?(?::[^/:]*)?(?:/|$))(?:\*\.)?[^\u0000-\u0020#%*/:<>?@\[\\\]^|\u007f]+)(?::(?:\*|0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])))?(?:/[^?#*]*)?$";
/// The pattern of the name of a variable.
const VARIABLE: &str = r"^(?:[^\S\u001c-\u001f\ufeff]|\u0085)*[^=\s\u0000-\u001f\u007f-\u009f]{1,200}(?:[^\S\u001c-\u001f\ufeff]|\u0085)*$";
/// The pattern of a name that says nothing.
const ANY_NAME: &str = r"^(?:[^\S\u001c-\u001f\ufeff]|\u0085)*[^\s\u0000-\u001f\u007f-\u009f](?:[^\u0000-\u001f\u007f-\u009f]{0,198}[^\s\u0000-\u001f\u007f-\u009f])?(?:[^\S\u001c-\u001f\ufeff]|\u0085)*$";

/// A new row of any kind.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema alone is used")]
enum CapabilityForms {
    FsModule(FsModuleCapability),
    DatabaseModule(DatabaseModuleCapability),
    ExecModule(ExecModuleCapability),
    PlainModule(PlainModuleCapability),
    Global(GlobalCapability),
    Files(FilesCapability),
    Variable(VariableCapability),
    Network(NetworkCapability),
}

/// Declares the forms: kind, schema of the name, type of the config.
macro_rules! forms {
    ($($(#[doc = $doc:literal])+ $form:ident = $kind:literal, $name:expr, $config:ty;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(JsonSchema)]
            #[serde(deny_unknown_fields)]
            #[expect(dead_code, reason = "its schema alone is used")]
            struct $form {
                #[schemars(extend("const" = $kind))]
                kind: String,
                #[schemars(transform = |schema: &mut Schema| schema.ensure_object().append($name.ensure_object()))]
                name: String,
                /// Whether it grants (true) or withdraws (false, the default).
                enabled: Option<bool>,
                /// Absent: `{}`.
                config: Option<$config>,
            }
        )+
    };
}

forms! {
    /// Bounds of the module `fs`.
    FsModuleCapability = "module", json_schema!({ "const": "fs" }), FsConfig;
    /// Bounds of the module `database`.
    DatabaseModuleCapability = "module", json_schema!({ "const": "database" }), DatabaseConfig;
    /// Commands and bounds of the module `exec`.
    ExecModuleCapability = "module", json_schema!({ "const": "exec" }), ExecConfig;
    /// A part of the language, under the name of a module.
    PlainModuleCapability = "module", json_schema!({ "enum": globals::built_ins() }), NoConfig;
    /// A global. Some names differ in their case alone, which the enums of many languages cannot have: the name is a text.
    GlobalCapability = "global", json_schema!({
        "pattern": format!("^(?:{})$", globals::SWITCHABLE.join("|")),
        "examples": globals::SWITCHABLE,
    }), NoConfig;
    /// Files of the worktree that may be read, or also changed.
    FilesCapability = "fs", json_schema!({ "enum": ["read", "write"] }), FilesConfig;
    /// A variable of `process.env`.
    VariableCapability = "env", json_schema!({ "minLength": 1, "pattern": VARIABLE }), VariableConfig;
    /// Requests over the network.
    NetworkCapability = "net", json_schema!({ "minLength": 1, "pattern": ANY_NAME }), NetConfig;
}

/// The schema of a new row, whatever its kind.
pub struct AnyCapability;

impl JsonSchema for AnyCapability {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyCapability".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = CapabilityForms::json_schema(generator);
        // Kind and name select one of them.
        if let Some(forms) = schema.remove("anyOf") {
            schema.insert("oneOf".to_owned(), forms);
        }
        schema
    }
}
