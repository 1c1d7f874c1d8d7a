//! Queries that select the elements of a list.

use super::envelope::RestError;
use super::pages;
use super::query::{Flag, IdText, PageCursor, Positive, query};
use vm_system_protocol::control::{
    ListPage, Period, ProgramList, RunList, ScheduleList, SessionList, TaskList,
};
use vm_system_protocol::model::{Engine, ExecutionStatus, SessionStatus, TaskState};
use vm_system_protocol::time::Timestamp;

query! {
    /// Templates.
    TemplateQuery {
        /// Include the built-in template, after all others.
        built_in: Flag<false>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

query! {
    /// Sessions.
    SessionQuery {
        /// Only sessions with this status.
        status: Option<SessionStatus>,
        /// Only sessions of this template.
        template_id: Option<IdText>,
        /// Only sessions of this workspace.
        workspace_id: Option<String>,
        /// `cvm`: the sessions of durable programs, which are otherwise left out unless `template_id` names a template of that engine.
        engine: Option<Engine>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

impl SessionQuery {
    pub(super) fn filter(self) -> SessionList {
        SessionList {
            status: self.status,
            template: self.template_id.map(|IdText(id)| id),
            workspace_id: self.workspace_id,
            engine: self.engine,
            page: pages::requested(self.limit, self.cursor, pages::MOST),
        }
    }
}

query! {
    /// Executions of a session or of programs.
    ExecutionQuery {
        /// Only executions of this session; required unless `kind` is given.
        session_id: Option<IdText>,
        /// `program`: executions of all programs, including deleted ones.
        #[schemars(extend("enum" = ["program"]))]
        kind: Option<String>,
        /// Only executions with this status.
        status: Option<ExecutionStatus>,
        /// Only executions of this program, by id or name; needs `kind`.
        program: Option<String>,
        /// Only executions with exactly this name; needs `kind`.
        name: Option<String>,
        /// Only executions that were started at or after this time.
        since: Option<Timestamp>,
        /// Only executions that were started before this time.
        until: Option<Timestamp>,
        /// Only what belongs to this owner, `uid:1000` or the name of a token; needs `kind`, and is for administrators.
        owner: Option<String>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 50, with `kind`
        /// 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

impl ExecutionQuery {
    /// As a query about executions of programs.
    pub(super) fn of_programs(self) -> RunList {
        RunList {
            status: self.status,
            program: self.program,
            name: self.name,
            period: Period { since: self.since, until: self.until },
            owner: self.owner,
            page: pages::requested(self.limit, self.cursor, pages::MOST),
        }
    }
}

query! {
    /// Executions of one program.
    RunQuery {
        /// Only executions with this status.
        status: Option<ExecutionStatus>,
        /// Only executions with exactly this name.
        name: Option<String>,
        /// Only executions that were started at or after this time.
        since: Option<Timestamp>,
        /// Only executions that were started before this time.
        until: Option<Timestamp>,
        /// Only what belongs to this owner, `uid:1000` or the name of a token; for administrators.
        owner: Option<String>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

impl RunQuery {
    pub(super) fn filter(self, program: String) -> RunList {
        RunList {
            status: self.status,
            program: Some(program),
            name: self.name,
            period: Period { since: self.since, until: self.until },
            owner: self.owner,
            page: pages::requested(self.limit, self.cursor, pages::MOST),
        }
    }
}

query! {
    /// Programs.
    ProgramQuery {
        /// Only programs with exactly this name.
        name: Option<String>,
        /// Only programs that were first loaded at or after this time.
        since: Option<Timestamp>,
        /// Only programs that were first loaded before this time.
        until: Option<Timestamp>,
        /// Only what belongs to this owner, `uid:1000` or the name of a token; for administrators.
        owner: Option<String>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

impl ProgramQuery {
    pub(super) fn filter(self) -> ProgramList {
        let period = Period { since: self.since, until: self.until };
        let page = pages::requested(self.limit, self.cursor, pages::MOST);
        ProgramList { name: self.name, period, owner: self.owner, page }
    }
}

query! {
    /// Schedules.
    ScheduleQuery {
        /// Only what belongs to this owner, `uid:1000` or the name of a token; for administrators.
        owner: Option<String>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

impl ScheduleQuery {
    pub(super) fn filter(self) -> ScheduleList {
        ScheduleList { owner: self.owner, page: pages::requested(self.limit, self.cursor, pages::MOST) }
    }
}

query! {
    /// Tasks.
    TaskQuery {
        /// Only tasks with this status; `all`: pending ones and those that have ended. Absent: `pending`.
        #[schemars(extend("enum" = task_states().collect::<Vec<_>>()))]
        status: Option<String>,
        /// Only tasks of this execution, by id or name, in the order in which it created them.
        execution_id: Option<String>,
        /// Only tasks of executions of this program, by id or name.
        program: Option<String>,
        /// Only tasks that were created at or after this time.
        since: Option<Timestamp>,
        /// Only tasks that were created before this time.
        until: Option<Timestamp>,
        /// Only what belongs to this owner, `uid:1000` or the name of a token; for administrators.
        owner: Option<String>,
        /// Elements of a page: at most 1000, also with a larger number; `X-Next-Cursor` continues behind them. Absent: 1000.
        limit: Option<Positive>,
        /// `X-Next-Cursor` of the part before.
        cursor: Option<PageCursor>,
    }
}

/// The names of the states of tasks, and `all`.
fn task_states() -> impl Iterator<Item = &'static str> {
    TaskState::ALL.iter().map(|state| state.as_str()).chain(["all"])
}

impl TaskQuery {
    pub(super) fn filter(self) -> Result<TaskList, RestError> {
        let invalid = || {
            let names = task_states().collect::<Vec<_>>().join(", ");
            RestError::invalid(format!("status must be one of {names}"))
        };
        let status = match self.status.as_deref() {
            Some("all") => None,
            None => Some(TaskState::Pending),
            Some(name) => Some(name.parse().map_err(|_| invalid())?),
        };
        Ok(TaskList {
            status,
            execution: self.execution_id,
            program: self.program,
            period: Period { since: self.since, until: self.until },
            owner: self.owner,
            page: pages::requested(self.limit, self.cursor, pages::MOST),
        })
    }
}

/// The page and the period of a query about executions of a session.
pub(super) fn of_session(query: ExecutionQuery, otherwise: u32) -> (Period, ListPage) {
    let period = Period { since: query.since, until: query.until };
    (period, pages::requested(query.limit, query.cursor, otherwise))
}
