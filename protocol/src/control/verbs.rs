//! The verbs: one request type for each, and the table from which everything else about a verb follows
//! ([`for_each_verb`](crate::for_each_verb)). A new verb is a struct in one of the files of this folder, a row of the table, and its
//! handler in the supervisor.
//!
//! References to templates, sessions, executions and programs are text: a whole id, a unique prefix of one, or a name if there is
//! one; the supervisor resolves them among the objects that the caller may see.

mod archives;
mod events;
mod executions;
mod libraries;
mod programs;
mod runs;
mod runtime;
mod schedules;
mod sessions;
mod tasks;
mod templates;

pub use archives::*;
pub use events::*;
pub use executions::*;
pub use libraries::*;
pub use programs::*;
pub use runs::*;
pub use runtime::*;
pub use schedules::*;
pub use sessions::*;
pub use tasks::*;
pub use templates::*;

use super::{
    AuditRecord, BackupInfo, CheckReport, CompiledPlan, DoctorReport, EmittedEvent, ErrorCode,
    ExecutionState, ExportPart, Health, ImportedObject, LibraryCheck, LibraryInfo, ModuleInfo, OpError,
    PendingPrompt, ProgramCounts, RuntimeInfo, RuntimeSummary, SessionEventPage, TemplateDeleted,
    TemplateName, UpgradeReport,
};
use crate::codec::{Decode, Encode};
use crate::model::{
    Capability, CheckpointInfo, Event, Execution, ListedTask, Program, ProgramState, ProgramVersion, Run,
    Schedule, Session, SessionCheckpoint, SessionInspection, SessionRestoration, StartupFile, TaskStatus,
    Template, TemplateDetail,
};
use serde::Serialize;

/// The effects of a verb beyond its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// None: a repetition does no harm. The reply is small, streams its events, or waits first and reserves its memory then.
    Reads,
    /// None, and the reply may be large and is read at once: memory is reserved for it first.
    ReadsMuch,
    /// Runs once for each idempotency key; its refusals are in the audit log.
    Changes,
    /// As `Changes`, of a durable program: work that was accepted continues after a failure, and a repetition finds it.
    ChangesProgram,
}

impl Effect {
    pub const fn changes(self) -> bool {
        matches!(self, Self::Changes | Self::ChangesProgram)
    }
}

/// A request, with the type of its reply.
pub trait Verb: Into<Op> + Send + 'static {
    /// The result of the verb if it succeeds.
    type Reply: Serialize + Clone + Send + 'static;
    /// Name in the audit log; some verbs share one.
    const NAME: &'static str;
    const EFFECT: Effect;

    /// The object of the request, as the client wrote it.
    fn subject(&self) -> &str;

    /// The reply to this verb as one to any verb.
    fn any_reply(reply: Self::Reply) -> Reply;

    /// The reply to this verb from one to any verb.
    fn reply_from(reply: Reply) -> Result<Self::Reply, OtherReply>;
}

/// A reply that belongs to another verb: the other end of the channel broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reply belongs to another verb than {0:?}")]
pub struct OtherReply(pub &'static str);

impl From<OtherReply> for OpError {
    fn from(other: OtherReply) -> Self {
        Self::new(ErrorCode::Internal, other.to_string())
    }
}

/// Properties of one request that do not depend on its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerbFacts<'a> {
    /// [`Verb::NAME`].
    pub name: &'static str,
    pub effect: Effect,
    /// [`Verb::subject`].
    pub subject: &'a str,
}

/// Calls a macro with the table of verbs: request type, name of the handler, name in the audit log, effect, subject, type of the
/// reply. On the wire the place in the table is the number of the verb.
#[macro_export]
macro_rules! for_each_verb {
    ($then:ident) => {
        $then! {
            TemplateCreate, template_create, "template create", Changes, |it| &it.name => Template;
            TemplateList, template_list, "template list", ReadsMuch, |_| "" => Vec<Template>;
            TemplateGet, template_get, "template get", ReadsMuch, |it| &it.template => TemplateDetail;
            TemplateUpdate, template_update, "template update", Changes, |it| &it.template => TemplateDetail;
            TemplateDelete, template_delete, "template delete", Changes, |it| &it.template => TemplateDeleted;
            TemplateAddModule, template_add_module, "template add-module", Changes, |it| &it.template => TemplateName;
            TemplateRemoveModule, template_remove_module, "template remove-module", Changes, |it| &it.template => TemplateName;
            TemplateAddCapability, template_add_capability, "template add-capability", Changes, |it| &it.template => Capability;
            TemplateRemoveCapability, template_remove_capability, "template remove-capability", Changes, |it| &it.template => Capability;
            TemplateAddStartup, template_add_startup, "template add-startup", Changes, |it| &it.template => StartupFile;
            TemplateRemoveStartup, template_remove_startup, "template remove-startup", Changes, |it| &it.template => StartupFile;
            TemplateAddLibrary, template_add_library, "template add-library", Changes, |it| &it.template => TemplateName;
            TemplateRemoveLibrary, template_remove_library, "template remove-library", Changes, |it| &it.template => TemplateName;
            ModuleCatalog, module_catalog, "template list-available-modules", Reads, |_| "" => Vec<ModuleInfo>;
            LibraryCatalog, library_catalog, "libs list", Reads, |_| "" => Vec<LibraryInfo>;
            LibraryInstall, library_install, "libs install", Changes, |it| &it.id => LibraryInfo;
            LibraryRemove, library_remove, "libs remove", Changes, |it| &it.name => LibraryInfo;
            LibraryVerify, library_verify, "libs verify", Reads, |it| it.name.as_deref().unwrap_or_default() => Vec<LibraryCheck>;
            SessionCreate, session_create, "session create", Changes, |it| &it.template => Session;
            SessionList, session_list, "session list", ReadsMuch, |_| "" => Vec<Session>;
            SessionGet, session_get, "session get", Reads, |it| &it.session => Session;
            SessionRename, session_rename, "session rename", Changes, |it| &it.session => Session;
            SessionClose, session_close, "session close", Changes, |it| &it.session => Session;
            SessionInspect, session_inspect, "session inspect", Reads, |it| &it.session => SessionInspection;
            SessionKill, session_kill, "session kill", Changes, |it| &it.session => ();
            SessionFork, session_fork, "session fork", Changes, |it| &it.session => Vec<Session>;
            SessionAddCheckpoint, session_checkpoint, "session checkpoint", Changes, |it| &it.session => SessionCheckpoint;
            SessionCheckpoints, session_checkpoints, "session checkpoints", Reads, |it| &it.session => Vec<SessionCheckpoint>;
            SessionDeleteCheckpoint, session_delete_checkpoint, "session delete-checkpoint", Changes, |it| &it.session => ();
            SessionRollback, session_rollback, "session rollback", Changes, |it| &it.session => Session;
            SessionEvents, session_events, "session events", Reads, |it| &it.session => SessionEventPage;
            SessionSuspend, session_suspend, "session suspend", Changes, |it| &it.session => Session;
            SessionResume, session_resume, "session resume", Changes, |it| &it.session => Session;
            SessionRestore, session_restore, "session restore", Changes, |it| &it.session => SessionRestoration;
            RestorationGet, session_restoration, "session restoration", Reads, |it| &it.session => SessionRestoration;
            ExecStart, exec_start, "exec start", Changes, |it| &it.session => ExecutionState;
            ExecList, exec_list, "exec list", ReadsMuch, |it| &it.session => Vec<Execution>;
            ExecGet, exec_get, "exec get", ReadsMuch, |it| &it.execution => Execution;
            ExecEvents, exec_events, "exec events", ReadsMuch, |it| &it.execution => Vec<Event>;
            ExecWait, exec_wait, "exec wait", Reads, |it| &it.execution => ExecutionState;
            ExecCancel, exec_cancel, "exec cancel", Changes, |it| &it.execution => ();
            ProgramLoad, program_load, "program load", ChangesProgram, |it| &it.name => Program;
            ProgramList, program_list, "program list", ReadsMuch, |_| "" => Vec<Program>;
            ProgramGet, program_get, "program get", ReadsMuch, |it| &it.program => Program;
            ProgramVersions, program_versions, "program versions", ReadsMuch, |it| &it.program => Vec<ProgramVersion>;
            ProgramDelete, program_delete, "program delete", ChangesProgram, |it| &it.program => Program;
            ProgramStart, program_start, "program start", ChangesProgram, |it| &it.program => Run;
            ProgramTotals, program_totals, "program list", Reads, |_| "" => ProgramCounts;
            PlanCheck, plan_check, "plan check", ReadsMuch, |it| &it.file => CompiledPlan;
            PlanLoad, plan_load, "program load", ChangesProgram, |it| &it.name => Program;
            RunGet, run_get, "program status", ReadsMuch, |it| &it.execution => Run;
            RunList, run_list, "program status", ReadsMuch, |it| it.program.as_deref().unwrap_or_default() => Vec<Run>;
            RunDelete, run_delete, "program forget", ChangesProgram, |it| &it.execution => Run;
            RunRewind, run_rewind, "program rewind", ChangesProgram, |it| &it.execution => Run;
            RunFork, run_fork, "program fork", ChangesProgram, |it| &it.execution => Run;
            RunRerun, run_rerun, "program rerun", ChangesProgram, |it| &it.execution => Run;
            StateGet, state_get, "program state", ReadsMuch, |it| &it.execution => ProgramState;
            StateSet, state_set, "program set", ChangesProgram, |it| &it.execution => Run;
            CheckpointList, checkpoint_list, "program checkpoints", Reads, |it| &it.execution => Vec<CheckpointInfo>;
            CurrentGet, current_get, "program current", Reads, |it| &it.client => Option<Run>;
            CurrentSet, current_set, "program set-current", ChangesProgram, |it| &it.execution => Run;
            TaskList, task_list, "task list", ReadsMuch, |_| "" => Vec<ListedTask>;
            TaskGet, task_get, "task get", ReadsMuch, |it| &it.execution => TaskStatus;
            TaskSubmit, task_submit, "task submit", ChangesProgram, |it| &it.execution => Run;
            TaskPrompts, task_prompts, "task list", ReadsMuch, |_| "" => Vec<PendingPrompt>;
            EventEmit, event_emit, "event emit", ChangesProgram, |it| it.execution.as_deref().unwrap_or(&it.name) => EmittedEvent;
            ArchiveExport, archive_export, "program export", ReadsMuch, |it| &it.reference => ExportPart;
            // An import stores nothing before its end.
            ImportBegin, import_begin, "program import", Reads, |_| "" => String;
            ImportPart, import_part, "program import", Reads, |it| &it.import => String;
            ImportEnd, import_end, "program import", ChangesProgram, |it| &it.import => ImportedObject;
            ImportDrop, import_drop, "program import", Reads, |it| &it.import => String;
            HealthGet, health, "health", Reads, |_| "" => Health;
            RuntimeSummaryGet, runtime_summary, "runtime-summary", Reads, |_| "" => RuntimeSummary;
            RuntimeInfoGet, runtime_info, "runtime", Reads, |_| "" => RuntimeInfo;
            Doctor, doctor, "doctor", Reads, |_| "" => DoctorReport;
            Shutdown, shutdown, "shutdown", Changes, |_| "" => ();
            AuditList, audit_list, "audit", ReadsMuch, |_| "" => Vec<AuditRecord>;
            BackupBegin, backup_begin, "ops backup", Reads, |_| "" => BackupInfo;
            // Bytes of the copy, at most `PART_BYTES`; none at its end.
            BackupPart, backup_part, "ops backup", Reads, |it| &it.backup => Vec<u8>;
            BackupEnd, backup_end, "ops backup", Reads, |it| &it.backup => ();
            DatabaseCheck, database_check, "ops check", Reads, |_| "" => CheckReport;
            Upgrade, upgrade, "ops upgrade", Reads, |_| "" => UpgradeReport;
            UpgradeDrain, upgrade_drain, "ops upgrade", Changes, |_| "" => UpgradeReport;
            ScheduleAdd, schedule_add, "program schedule add", ChangesProgram, |it| &it.name => Schedule;
            ScheduleList, schedule_list, "program schedule list", ReadsMuch, |_| "" => Vec<Schedule>;
            ScheduleGet, schedule_get, "program schedule get", ReadsMuch, |it| &it.schedule => Schedule;
            SchedulePause, schedule_pause, "program schedule pause", ChangesProgram, |it| &it.schedule => Schedule;
            ScheduleResume, schedule_resume, "program schedule resume", ChangesProgram, |it| &it.schedule => Schedule;
            ScheduleRun, schedule_run, "program schedule run", ChangesProgram, |it| &it.schedule => Run;
            ScheduleDelete, schedule_delete, "program schedule delete", ChangesProgram, |it| &it.schedule => Schedule;
        }
    };
}

macro_rules! define {
    ($($verb:ident, $handler:ident, $name:literal, $effect:ident, $subject:expr => $reply:ty;)+) => {
        /// Any verb with its arguments.
        #[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
        pub enum Op {
            $($verb(Box<$verb>),)+
        }

        /// The reply to any verb that succeeded.
        #[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
        pub enum Reply {
            $($verb(Box<$reply>),)+
        }

        impl Op {
            pub fn facts(&self) -> VerbFacts<'_> {
                match self {
                    $(Self::$verb(it) => {
                        VerbFacts { name: $verb::NAME, effect: $verb::EFFECT, subject: it.subject() }
                    })+
                }
            }
        }

        $(impl From<$verb> for Op {
            fn from(verb: $verb) -> Self {
                Self::$verb(Box::new(verb))
            }
        }

        impl Verb for $verb {
            type Reply = $reply;
            const NAME: &'static str = $name;
            const EFFECT: Effect = Effect::$effect;

            fn subject(&self) -> &str {
                let subject: fn(&Self) -> &str = $subject;
                subject(self)
            }

            fn any_reply(reply: $reply) -> Reply {
                Reply::$verb(Box::new(reply))
            }

            fn reply_from(reply: Reply) -> Result<$reply, OtherReply> {
                match reply {
                    Reply::$verb(reply) => Ok(*reply),
                    _ => Err(OtherReply($name)),
                }
            }
        })+
    };
}

for_each_verb!(define);

impl Op {
    /// Whether the verb streams events before its reply.
    pub fn follows(&self) -> bool {
        match self {
            Self::ExecStart(new) => new.follow,
            Self::ExecEvents(events) => events.follow,
            _ => false,
        }
    }
}
