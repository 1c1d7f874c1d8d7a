//! One capability row: the meaning of its name and its config. Unknown names, unknown keys and numbers out of range are
//! refused when a row is added; an invalid stored row grants nothing.

use super::forms::{ADDRESS, PATH};
use super::globals;
use super::net::{
    MAX_NET_METHODS, MAX_NET_PATTERNS, MAX_NET_SECRETS, NetLimits, NetPattern, NetRule, SECRET_NAME_BYTES,
};
use super::paths::{MAX_PATTERNS, PathRules, Pattern};
use super::rights::{DatabaseRights, ExecRights, FsRights};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use vm_system_protocol::input::read_json;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::limits::HTTP_METHOD_BYTES;
use vm_system_protocol::model::CapabilityKind;

/// Host modules that templates may name.
pub const MODULES: &[&str] = &["fs", "database", "exec"];
/// Why neither the module `http` nor a row for it can be added.
pub const NO_HTTP: &str = "every session has it; what it may reach is granted by capabilities of kind net";
/// Longest value of a variable (bytes).
const VALUE_BYTES: usize = 32 * 1024;
/// Longest config of a row (bytes).
const CONFIG_BYTES: usize = 256 * 1024;
/// Longest name of a variable or command (bytes).
const NAME_CHARS: usize = 200;
/// Longest time of one call of `database`: below the deadline at which its broker is killed (milliseconds).
const MAX_SQL_MS: u32 = 8_000;
/// Longest time of one command (milliseconds): below the deadline of a host call.
const MAX_EXEC_MS: u32 = 50_000;

/// Longest time of one request (milliseconds).
const MAX_NET_MS: u32 = 3_600_000;

/// The meaning of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapabilityRow {
    /// Narrows the `fs` module.
    Fs(FsRights),
    /// Narrows the `database` module.
    Database(DatabaseRights),
    /// Names the commands of the `exec` module.
    Exec(ExecRights),
    /// Files that may be read (kind `fs`).
    Read(PathRules),
    /// Files that may be changed (kind `fs`).
    Write(PathRules),
    /// A global, by its JavaScript name.
    Global(&'static str),
    /// A variable, and its value if the row has one.
    Env(Option<String>),
    /// Requests over the network.
    Net(NetRule),
    /// Grants nothing: a stored row for the module `http`, which cannot be added any more.
    Nothing,
}

/// An invalid row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RowError {
    pub message: String,
    /// The valid values.
    pub hint: String,
}

fn wrong<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, RowError> {
    Err(RowError { message: message.into(), hint: hint.into() })
}

/// Parses a row, whether it is enabled or not.
pub fn read_row(kind: CapabilityKind, name: &str, config: &JsonText) -> Result<CapabilityRow, RowError> {
    if config.as_str().len() > CONFIG_BYTES {
        return wrong(format!("config has more than {CONFIG_BYTES} bytes"), "shorten it");
    }
    match kind {
        CapabilityKind::Module => module(name, config),
        CapabilityKind::Fs => {
            let FilesConfig { paths } = parse(config, "paths")?;
            let rules = paths.map_or(Ok(PathRules::everything()), |paths| rules("paths", &paths))?;
            match name {
                "read" => Ok(CapabilityRow::Read(rules)),
                "write" => Ok(CapabilityRow::Write(rules)),
                _ => wrong(format!("there is no fs capability {name:?}"), "fs capabilities: read, write"),
            }
        }
        CapabilityKind::Global => {
            let NoConfig {} = parse(config, "none")?;
            match globals::SWITCHABLE.iter().find(|known| **known == name) {
                Some(name) => Ok(CapabilityRow::Global(name)),
                None => wrong(
                    format!("{name:?} is not a global that can be switched off"),
                    format!("globals: {}", globals::SWITCHABLE.join(", ")),
                ),
            }
        }
        CapabilityKind::Env => {
            let VariableConfig { value } = parse(config, "value")?;
            let sane = |text: &str| !text.contains('\0');
            let is_name = |char: char| !(char == '=' || char.is_whitespace() || char.is_control());
            if name.is_empty() || name.chars().count() > NAME_CHARS || !name.chars().all(is_name) {
                return wrong(
                    format!("{name:?} is not the name of a variable"),
                    "a name contains no = and no space",
                );
            }
            if value.as_ref().is_some_and(|value| value.len() > VALUE_BYTES || !sane(value)) {
                return wrong(
                    "config.value is not the value of a variable",
                    format!("at most {VALUE_BYTES} bytes without NUL"),
                );
            }
            Ok(CapabilityRow::Env(value))
        }
        CapabilityKind::Net => {
            if name.is_empty() || name.chars().count() > NAME_CHARS {
                return wrong("a capability of kind net has a name", "any, for example that of the service");
            }
            net_config(config).map(CapabilityRow::Net)
        }
    }
}

fn module(name: &str, config: &JsonText) -> Result<CapabilityRow, RowError> {
    match name {
        "fs" => fs_config(config).map(CapabilityRow::Fs),
        "database" => database_config(config).map(CapabilityRow::Database),
        "exec" => exec_config(config).map(CapabilityRow::Exec),
        "http" => parse::<NoConfig>(config, "none").map(|NoConfig {}| CapabilityRow::Nothing),
        _ => match globals::of_built_in(name) {
            Some(global) => {
                parse::<NoConfig>(config, "none").map(|NoConfig {}| CapabilityRow::Global(global))
            }
            None => wrong(
                format!("there is no module {name:?}"),
                format!("modules: {}; built in: {}", MODULES.join(", "), globals::built_ins().join(", ")),
            ),
        },
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoConfig {}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilesConfig {
    /// Patterns of paths beneath the worktree; absent: all.
    #[schemars(length(max = MAX_PATTERNS), inner(length(min = 1, max = 1024), regex(pattern = PATH)))]
    paths: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct VariableConfig {
    /// The value of the variable; absent: that of the client.
    #[schemars(length(max = VALUE_BYTES), regex(pattern = r"^[^\u0000]*$"))]
    value: Option<String>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FsConfig {
    /// Patterns of paths beneath the worktree; absent: all.
    #[schemars(length(max = MAX_PATTERNS), inner(length(min = 1, max = 1024), regex(pattern = PATH)))]
    read: Option<Vec<String>>,
    /// Patterns of paths beneath the worktree; absent: all.
    #[schemars(length(max = MAX_PATTERNS), inner(length(min = 1, max = 1024), regex(pattern = PATH)))]
    write: Option<Vec<String>>,
    #[schemars(range(min = 1, max = u32::MAX))]
    max_calls: Option<u32>,
    #[schemars(range(min = 1, max = u32::MAX))]
    max_total_kb: Option<u32>,
    #[schemars(range(min = 1, max = 65_536))]
    max_file_kb: Option<u32>,
    #[schemars(range(min = 1, max = 100_000))]
    max_entries: Option<u32>,
    #[schemars(range(min = 1, max = u32::MAX))]
    write_quota_kb: Option<u32>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DatabaseConfig {
    read_only: bool,
    #[schemars(range(min = 1, max = u32::MAX))]
    max_calls: Option<u32>,
    #[schemars(range(min = 1, max = 1_000_000))]
    max_rows: Option<u32>,
    #[schemars(range(min = 1, max = 32_768))]
    max_result_kb: Option<u32>,
    #[schemars(range(min = 1, max = 1_073_741_824))]
    max_database_kb: Option<u32>,
    #[schemars(range(min = 1, max = MAX_SQL_MS))]
    timeout_ms: Option<u32>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExecConfig {
    #[schemars(inner(length(min = 1, max = NAME_CHARS), regex(pattern = "^[A-Za-z0-9._+-]+$")))]
    commands: Vec<String>,
    #[schemars(range(min = 1, max = u32::MAX))]
    max_calls: Option<u32>,
    #[schemars(range(min = 1, max = MAX_EXEC_MS))]
    timeout_ms: Option<u32>,
    #[schemars(range(min = 1, max = 16_384))]
    max_output_kb: Option<u32>,
    #[schemars(range(min = 1, max = 1_048_576))]
    memory_mb: Option<u32>,
    #[schemars(range(min = 1, max = 4_096))]
    processes: Option<u32>,
}

fn parse<T: DeserializeOwned>(config: &JsonText, keys: &str) -> Result<T, RowError> {
    if !config.as_str().trim_start().starts_with('{') {
        return wrong("config is not an object", format!("keys: {keys}"));
    }
    read_json("the config", config.as_str().as_bytes()).map_err(|why| RowError {
        message: format!("config: {why}"),
        hint: if keys == "none" {
            "this capability has no config".to_owned()
        } else {
            format!("keys: {keys}")
        },
    })
}

/// A number from 1 to `most`; `usual` if absent.
fn number(key: &str, value: Option<u32>, usual: u64, most: u64) -> Result<u64, RowError> {
    let Some(value) = value.map(u64::from) else { return Ok(usual) };
    if (1..=most).contains(&value) {
        Ok(value)
    } else {
        wrong(format!("config.{key} = {value} is out of range"), format!("{key} is 1 to {most}"))
    }
}

fn kibibytes(key: &str, value: Option<u32>, usual: u64, most: u64) -> Result<u64, RowError> {
    Ok(number(key, value, usual / 1024, most / 1024)? * 1024)
}

fn small(key: &str, value: Option<u32>, usual: u32, most: u32) -> Result<u32, RowError> {
    Ok(number(key, value, u64::from(usual), u64::from(most))? as u32)
}

fn rules(key: &str, patterns: &[String]) -> Result<PathRules, RowError> {
    if patterns.len() > MAX_PATTERNS {
        return wrong(
            format!("config.{key} has more than {MAX_PATTERNS} patterns"),
            "use ** for whole folders",
        );
    }
    let parsed = patterns.iter().map(|text| Pattern::parse(text)).collect::<Result<Vec<_>, _>>();
    match parsed {
        Ok(patterns) => Ok(PathRules::one(patterns)),
        Err(what) => wrong(format!("config.{key}: {what}"), "patterns are like \"data/**\" and \"*.csv\""),
    }
}

fn fs_config(config: &JsonText) -> Result<FsRights, RowError> {
    let keys = "read, write, max_calls, max_total_kb, max_file_kb, max_entries, write_quota_kb";
    let given: FsConfig = parse(config, keys)?;
    let usual = FsRights::default();
    let list = |key: &str, patterns: Option<Vec<String>>| {
        patterns.map_or(Ok(PathRules::everything()), |patterns| rules(key, &patterns)).map(Some)
    };
    Ok(FsRights {
        read: list("read", given.read)?,
        write: list("write", given.write)?,
        max_calls: small("max_calls", given.max_calls, usual.max_calls, u32::MAX)?,
        max_total_bytes: kibibytes("max_total_kb", given.max_total_kb, usual.max_total_bytes, u64::MAX)?,
        max_file_bytes: kibibytes(
            "max_file_kb",
            given.max_file_kb,
            usual.max_file_bytes,
            usual.max_file_bytes,
        )?,
        max_entries: small("max_entries", given.max_entries, usual.max_entries, usual.max_entries)?,
        write_quota_bytes: kibibytes(
            "write_quota_kb",
            given.write_quota_kb,
            usual.write_quota_bytes,
            u64::MAX,
        )?,
    })
}

fn database_config(config: &JsonText) -> Result<DatabaseRights, RowError> {
    let keys = "read_only, max_calls, max_rows, max_result_kb, max_database_kb, timeout_ms";
    let given: DatabaseConfig = parse(config, keys)?;
    let usual = DatabaseRights::default();
    Ok(DatabaseRights {
        read_only: given.read_only,
        max_calls: small("max_calls", given.max_calls, usual.max_calls, u32::MAX)?,
        max_rows: small("max_rows", given.max_rows, usual.max_rows, 1_000_000)?,
        max_result_bytes: kibibytes("max_result_kb", given.max_result_kb, usual.max_result_bytes, 32 << 20)?,
        max_database_bytes: kibibytes(
            "max_database_kb",
            given.max_database_kb,
            usual.max_database_bytes,
            1 << 40,
        )?,
        timeout_ms: small("timeout_ms", given.timeout_ms, usual.timeout_ms, MAX_SQL_MS)?,
    })
}

fn exec_config(config: &JsonText) -> Result<ExecRights, RowError> {
    let keys = "commands, max_calls, timeout_ms, max_output_kb, memory_mb, processes";
    let given: ExecConfig = parse(config, keys)?;
    let usual = ExecRights::default();
    if let Some(strange) = given.commands.iter().find(|name| !is_command_name(name)) {
        return wrong(
            format!("config.commands: {strange:?} is not the name of a command"),
            "commands are named as the operator named them with --allow-exec NAME=/PATH",
        );
    }
    Ok(ExecRights {
        commands: BTreeSet::from_iter(given.commands),
        max_calls: small("max_calls", given.max_calls, usual.max_calls, u32::MAX)?,
        timeout_ms: small("timeout_ms", given.timeout_ms, usual.timeout_ms, MAX_EXEC_MS)?,
        max_output_bytes: kibibytes("max_output_kb", given.max_output_kb, usual.max_output_bytes, 16 << 20)?,
        memory_bytes: number("memory_mb", given.memory_mb, usual.memory_bytes >> 20, 1 << 20)? << 20,
        processes: small("processes", given.processes, usual.processes, 4_096)?,
    })
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetConfig {
    /// `[SCHEME://]HOST[:PORT][/PREFIX]`, with `*.NAME`, or `*` for all hosts and for all ports.
    #[schemars(length(max = MAX_NET_PATTERNS), inner(length(min = 1, max = 2048), regex(pattern = ADDRESS)))]
    allow: Vec<String>,
    #[schemars(length(max = MAX_NET_METHODS), inner(length(max = HTTP_METHOD_BYTES), regex(pattern = "^[A-Z]*$")))]
    methods: Vec<String>,
    private: bool,
    #[schemars(length(max = MAX_NET_SECRETS), inner(length(max = SECRET_NAME_BYTES)))]
    secrets: Vec<String>,
    #[schemars(range(min = 1, max = 1_000_000))]
    max_requests: Option<u32>,
    #[schemars(range(min = 1, max = 256))]
    concurrency: Option<u32>,
    #[schemars(range(min = 1, max = 1_073_741_824))]
    max_request_kb: Option<u32>,
    #[schemars(range(min = 1, max = 1_073_741_824))]
    max_response_kb: Option<u32>,
    #[schemars(range(min = 1, max = u32::MAX))]
    max_total_kb: Option<u32>,
    #[schemars(range(min = 1, max = MAX_NET_MS))]
    headers_ms: Option<u32>,
    #[schemars(range(min = 1, max = MAX_NET_MS))]
    timeout_ms: Option<u32>,
}

fn net_config(config: &JsonText) -> Result<NetRule, RowError> {
    let keys = "allow, methods, private, secrets, max_requests, concurrency, max_request_kb, max_response_kb, \
                max_total_kb, headers_ms, timeout_ms";
    let given: NetConfig = parse(config, keys)?;
    let usual = NetLimits::default();
    if given.allow.len() > MAX_NET_PATTERNS {
        return wrong(format!("config.allow has more than {MAX_NET_PATTERNS} patterns"), "use *.NAME");
    }
    let patterns = given.allow.iter().map(|text| NetPattern::parse(text)).collect::<Result<Vec<_>, _>>();
    let patterns = patterns.map_err(|what| RowError {
        message: format!("config.allow: {what}"),
        hint: "patterns are like \"https://api.example.com/v1\", \"*.example.com\" and \"localhost:3000\""
            .to_owned(),
    })?;
    if let Some(strange) =
        given.methods.iter().find(|method| !method.bytes().all(|byte| byte.is_ascii_uppercase()))
    {
        return wrong(
            format!("config.methods: {strange:?} is not a method"),
            "methods are like \"GET\"; none: all of them",
        );
    }
    if given.methods.len() > MAX_NET_METHODS
        || given.methods.iter().any(|method| method.len() > HTTP_METHOD_BYTES)
    {
        return wrong(
            format!(
                "config.methods has more than {MAX_NET_METHODS} methods, or one of more than {HTTP_METHOD_BYTES} bytes"
            ),
            "none: all methods",
        );
    }
    if given.secrets.len() > MAX_NET_SECRETS
        || given.secrets.iter().any(|name| name.len() > SECRET_NAME_BYTES)
    {
        return wrong(
            format!(
                "config.secrets has more than {MAX_NET_SECRETS} names, or one of more than {SECRET_NAME_BYTES} bytes"
            ),
            "use another capability for further secrets",
        );
    }
    let limits = NetLimits {
        max_requests: small("max_requests", given.max_requests, usual.max_requests, 1_000_000)?,
        concurrency: small("concurrency", given.concurrency, usual.concurrency, usual.concurrency)?,
        max_request_bytes: kibibytes(
            "max_request_kb",
            given.max_request_kb,
            usual.max_request_bytes,
            1 << 40,
        )?,
        max_response_bytes: kibibytes(
            "max_response_kb",
            given.max_response_kb,
            usual.max_response_bytes,
            1 << 40,
        )?,
        max_total_bytes: kibibytes("max_total_kb", given.max_total_kb, usual.max_total_bytes, 1 << 42)?,
        headers_ms: small("headers_ms", given.headers_ms, usual.headers_ms, MAX_NET_MS)?,
        timeout_ms: small("timeout_ms", given.timeout_ms, usual.timeout_ms, MAX_NET_MS)?,
    };
    Ok(NetRule {
        patterns,
        methods: BTreeSet::from_iter(given.methods),
        private: given.private,
        secrets: Some(BTreeSet::from_iter(given.secrets)),
        limits,
    })
}

/// Whether a text can name a command: letters, digits, `.`, `_`, `+` and `-`.
pub fn is_command_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_CHARS
        && name.chars().all(|char| char.is_ascii_alphanumeric() || "._+-".contains(char))
}
