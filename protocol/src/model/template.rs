//! Templates and their sub-resources.

use super::{Settings, text_enum};
use crate::codec::{Decode, Encode};
use crate::ids::{CapabilityId, StartupFileId, TemplateId};
use crate::json::JsonText;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

text_enum! {
    /// The engine of a template. `goja` is the original's name of `quickjs` and is returned as it was sent.
    Engine {
        /// QuickJS, for live sessions.
        Quickjs = "quickjs",
        /// Alias of `quickjs`.
        Goja = "goja",
        /// The durable bytecode VM.
        Cvm = "cvm",
    }
}

text_enum! {
    /// The kind of a capability row.
    CapabilityKind {
        Module = "module",
        /// A JavaScript intrinsic.
        Global = "global",
        Fs = "fs",
        /// Network.
        Net = "net",
        /// Environment variables.
        Env = "env",
    }
}

text_enum! {
    /// How a startup file is evaluated.
    StartupMode {
        /// As a script.
        Eval = "eval",
        /// As a module; needs `runtime.esm`.
        Import = "import",
    }
}

/// A profile from which sessions are created.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    pub id: TemplateId,
    /// Unique among the owner's templates.
    pub name: String,
    pub engine: Engine,
    /// False once deleted.
    pub is_active: bool,
    /// Names of host modules that sessions may require.
    pub exposed_modules: Vec<String>,
    /// `id-version` of libraries that sessions get.
    pub libraries: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// True for the built-in template, which all users see and nobody can change; otherwise absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
}

/// A template with everything that its sessions inherit.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct TemplateDetail {
    pub template: Template,
    pub settings: Settings,
    /// The template's capability rows.
    pub capabilities: Vec<Capability>,
    /// The template's startup files in order.
    pub startup_files: Vec<StartupFile>,
}

/// A right that a template grants, narrows or withdraws.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    pub id: CapabilityId,
    /// The template; the field has its name in the original system.
    pub vm_id: TemplateId,
    pub kind: CapabilityKind,
    /// The name of the module, global, …
    pub name: String,
    /// Whether the row grants (true) or withdraws (false) the right.
    pub enabled: bool,
    /// An object that narrows the right.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub config: JsonText,
}

/// A file that every new session runs.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize, JsonSchema)]
pub struct StartupFile {
    pub id: StartupFileId,
    /// The template; the field has its name in the original system.
    pub vm_id: TemplateId,
    /// Relative to the session's worktree.
    pub path: String,
    /// Lower runs first.
    pub order_index: i64,
    /// Script or module.
    pub mode: StartupMode,
}
