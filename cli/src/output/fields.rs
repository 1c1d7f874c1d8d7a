//! The columns of CSV output: a table has all columns, also those without a value in any row, so that scripts can count them.
//! Names and meanings are those of the REST API, the order is the model's; a test compares with the REST description.

use serde::Serialize;
use vm_system_protocol::control::{
    AuditRecord, CheckReport, CompiledPlan, DoctorReport, EmittedEvent, Health, LibraryCheck, LibraryInfo,
    ModuleInfo, RuntimeInfo, RuntimeSummary, TemplateName, UpgradeReport,
};
use vm_system_protocol::model::{
    Capability, CheckpointInfo, Event, Execution, ListedTask, Program, ProgramState, ProgramVersion, Run,
    Schedule, Session, SessionCheckpoint, SessionEvent, SessionInspection, SessionRestoration, StartupFile,
    TaskStatus, Template, TemplateDetail,
};

/// Types that can be printed as rows.
pub(crate) trait Columns: Serialize {
    /// The columns; empty if every value of the type has the same fields, which are then the columns.
    const FIELDS: &'static [&'static str];
}

impl<T: Columns> Columns for Vec<T> {
    const FIELDS: &'static [&'static str] = T::FIELDS;
}

impl<T: Columns> Columns for [T] {
    const FIELDS: &'static [&'static str] = T::FIELDS;
}

impl<T: Columns> Columns for Box<T> {
    const FIELDS: &'static [&'static str] = T::FIELDS;
}

/// Names: one column.
impl Columns for String {
    const FIELDS: &'static [&'static str] = &["value"];
}

/// The reply about a removed object.
impl Columns for serde_json::Value {
    const FIELDS: &'static [&'static str] = &[];
}

macro_rules! records {
    ($($name:ident: $($field:ident)+;)+) => {
        $(impl Columns for $name {
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];
        })+

        /// Every object with its columns.
        #[cfg(test)]
        const ALL: &[(&str, &[&str])] = &[$((stringify!($name), $name::FIELDS)),+];
    };
}

records! {
    Template: id name engine is_active exposed_modules libraries created_at updated_at built_in;
    TemplateDetail: template settings capabilities startup_files;
    TemplateName: template_id name;
    Capability: id vm_id kind name enabled config;
    StartupFile: id vm_id path order_index mode;
    ModuleInfo: name description;
    LibraryInfo: name id version global installed sha256 bytes installed_at;
    LibraryCheck: name ok problem;
    Session: id name template_id vm_id workspace_id base_commit_oid worktree_path status created_at closed_at last_error
        close_reason runtime_meta engine execution_id owner;
    SessionInspection: session_id status pid cpu_ms rss_kib pss_kib uss_kib js_heap_bytes fds seccomp_mode no_new_privs
        cap_eff namespaces rlimits running_execution heartbeat_age_ms adopted generation
        next_cull_at;
    Execution: id session_id kind input path args env status started_at ended_at result error metrics degraded events owner;
    Event: execution_id seq ts type payload;
    SessionEvent: session_id seq at type execution_id other_session_id detail;
    Run: id session_id kind input path args env status started_at ended_at result error metrics degraded events owner name
        program_id program program_version task waiting_for activity abandoned;
    Program: id name version source_hash format created_at modified_at source typescript owner;
    ProgramVersion: version source_hash format created_at;
    Schedule: id name program cron every_ms time_zone overlap jitter_ms execution_name args env template_id worktree_path
        as_user created_at paused next_at queued_for last skipped last_error owner;
    ProgramState: frames more_frames globals;
    SessionCheckpoint: number name created_at heap_bytes;
    SessionRestoration: session restored_from status inputs repeated not_repeated different differences error;
    CheckpointInfo: seq at cause bytes;
    ListedTask: id execution_id prompt schema attempts created_at deadline first_attempt_at last_attempt_at status ended_at
        answer owner;
    EmittedEvent: received receivers;
    TaskStatus: execution_id name status task more_tasks waiting_for result error;
    AuditRecord: seq at owner api verb subject outcome;
    Health: status memory largest_owner database stuck;
    RuntimeSummary: active_sessions active_session_ids;
    RuntimeInfo: version pid uptime_ms keeper_pid sandbox zygotes active_sessions sessions_created executions_started
        durability store_queue store_problem;
    UpgradeReport: drain_at builds unreached;
    DoctorReport: kernel ok problem layers host stuck;
    CheckReport: ok schema bytes newest_record findings more;
    CompiledPlan: valid blocks block_ids plan;
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::collections::BTreeSet;

    #[test]
    fn columns_are_the_fields_of_the_rest_api() {
        let description: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("a description");
        // Objects with another name in REST, and those that only the CLI has.
        let called = |name| match name {
            "Run" => "ProgramExecution",
            "CheckpointInfo" => "Checkpoint",
            other => other,
        };
        // The fields of an `Execution` are among those of a `Run`, which is how REST describes it.
        let own = ["AuditRecord", "LibraryCheck", "DoctorReport", "CheckReport", "Execution"];
        let schemas = &description["components"]["schemas"];
        for (name, fields) in ALL {
            let schema = &schemas[called(name)];
            let forms = schema["oneOf"].as_array().into_iter().flatten().filter_map(|form| {
                let named = form["$ref"].as_str()?.rsplit('/').next()?;
                Some(&schemas[named])
            });
            let properties = forms.chain([schema]).filter_map(|form| form["properties"].as_object());
            let rest: BTreeSet<&str> =
                properties.flat_map(|fields| fields.keys()).map(String::as_str).collect();
            if rest.is_empty() {
                assert!(own.contains(name), "{name} is not an object of the REST API");
                continue;
            }
            assert_eq!(fields.iter().copied().collect::<BTreeSet<_>>(), rest, "{name}");
        }
    }
}
