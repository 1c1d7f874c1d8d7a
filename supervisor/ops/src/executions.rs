//! Verbs about executions. Order of checks for a start: body, id, session row, path, live session, busy, file; a check that
//! fails leaves no row.

use super::errors::{invalid, stored};
use super::sessions::not_ready;
use super::{Caller, LARGE_READ_BYTES, Ops, REPLY_BYTES, VerbCall, fitting, page, redact};
use serde_json::Value;
use std::collections::HashSet;
use std::pin::pin;
use vm_system_core::{ExecuteRequest, Source};
use vm_system_policy::from_host;
use vm_system_protocol::control::{
    ErrorCode, ExecCancel, ExecEvents, ExecGet, ExecList, ExecStart, ExecWait, ExecutionState,
    INTERACTIVE_INPUT, OpError, RunGet, TYPESCRIPT_INPUT,
};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::input::json_for_script;
use vm_system_protocol::model::{
    Engine, Event, EventPayload, Execution, ExecutionKind, ExecutionStatus, ResultValue,
};
use vm_system_protocol::worker::SourceFormat;
use vm_system_record::{ExecutionQuery, INCOMPLETE, PAGE_BYTES, Write, is_last_page};
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::worktree::clean_relative;
use vm_system_runtime::{FOLLOWED_BYTES, FOLLOWED_EVENTS, Follower, RuntimeError};

/// Largest `args`, `env` and `argv` (bytes each).
const ARGS_BYTES: usize = 1 << 20;
/// Most variables and most arguments.
const ARGS_COUNT: usize = 10_000;
/// Longest name of a text that the client sends (bytes).
const NAME_BYTES: usize = 4_096;
/// Most rows of a list.
const LIST_MAX: u32 = 1_000;
/// Events read from the store at a time.
const EVENTS_PAGE: u32 = 2_000;

impl Ops {
    pub(crate) async fn exec_start(
        &self,
        call: &VerbCall<'_>,
        mut new: ExecStart,
    ) -> Result<ExecutionState, OpError> {
        let parsed_args = check_body(&new)?;
        let (session, source) = self.runnable(call, &mut new).await?;
        self.check_quota(call)?;
        let template = self.policies.of_session(session).await?;
        let follower = call.follower.clone().filter(|_| new.follow);
        let request = Box::new(ExecuteRequest {
            id: ExecutionId::from_uuid(call.subject),
            kind: new.kind,
            source,
            recorded_args: redact::args(&new.args, &parsed_args),
            recorded_env: redact::env(&new.env),
            args: new.args,
            env: new.env,
            argv: new.argv,
            wait: new.wait,
            collect_events: new.wait && follower.is_none(),
            stored_first: call.key.is_some(),
        });
        let id = ExecutionId::from_uuid(call.subject);
        let running = self.runtime.execute(session, request, template, follower);
        let run = if new.wait {
            Box::pin(self.unless_abandoned((call.caller, &call.presence), id, running)).await
        } else {
            running.await
        };
        let execution = match run {
            Ok(execution) => execution,
            Err(RuntimeError::NotLive) => return Err(Box::pin(self.not_live(call, session)).await),
            Err(error) => return Err(refused(error, session)),
        };
        if execution.status == ExecutionStatus::Waiting {
            return Box::pin(self.live(call, execution)).await.map(ExecutionState::Run);
        }
        finished(execution)
    }

    /// The session, if the caller may run the code in it, and the source.
    async fn runnable(
        &self,
        call: &VerbCall<'_>,
        new: &mut ExecStart,
    ) -> Result<(SessionId, Source), OpError> {
        let id = match new.session.parse::<SessionId>() {
            Ok(id) => id,
            Err(_) => Box::pin(self.session_id(call, &new.session)).await?,
        };
        if new.input.is_none()
            && let Some(path) = &new.path
            && path.starts_with('/')
        {
            let worktree = Box::pin(self.session(call, &id.to_string())).await?.session.worktree_path;
            new.path = from_host(path, &worktree)
                .map(|seen| seen.trim_start_matches('/').to_owned())
                .or_else(|| new.path.take());
        }
        match self.runtime.session_owner(id) {
            Some(owner) if call.caller.may_see(&owner) => source(new).map(|source| (id, source)),
            // A live session of another owner as well: the time reveals nothing.
            _ => Err(Box::pin(self.unrunnable(call, id, source(new).map(drop))).await),
        }
    }

    /// Why code cannot run in a session without a worker.
    async fn unrunnable(&self, call: &VerbCall<'_>, id: SessionId, path: Result<(), OpError>) -> OpError {
        let looked = async {
            let row = self.session(call, &id.to_string()).await?;
            path?;
            let policy = self.reads_of(call.caller).session_policy(id).await.map_err(stored)?;
            if policy.is_some_and(|policy| policy.engine == Engine::Cvm) {
                return Err(OpError::new(
                    ErrorCode::EngineUnsupported,
                    "a cvm session runs only its program",
                ));
            }
            Ok(not_ready(&row))
        };
        looked.await.unwrap_or_else(|error| error)
    }

    pub(crate) async fn exec_list(
        &self,
        call: &VerbCall<'_>,
        filter: ExecList,
    ) -> Result<Vec<Execution>, OpError> {
        let page = page(filter.page, LIST_MAX)?;
        let id = self.visible(call, &filter.session).await?;
        let ExecList { status, period, .. } = filter;
        let query = ExecutionQuery { status, period };
        let rows = self.store.executions(&call.caller.scope(), id, query, page).await.map_err(stored)?;
        let executions = rows.into_iter().map(|row| {
            let owner = call.caller.shown_owner(&row.owner);
            let degraded = self.runtime.degraded(row.execution.id).map(|record| (*record).clone());
            Execution { owner, ..degraded.unwrap_or(row.execution) }
        });
        // The store has another status of an execution whose end could not be stored.
        let executions =
            executions.filter(|execution| status.is_none_or(|status| execution.status == status));
        Ok(fitting(executions, weight))
    }

    pub(crate) async fn exec_get(
        &self,
        call: &VerbCall<'_>,
        ExecGet { execution }: ExecGet,
    ) -> Result<Execution, OpError> {
        let row = self.execution(call, &execution).await?;
        let owner = call.caller.shown_owner(&row.owner);
        Ok(Execution { owner, ..row.execution })
    }

    pub(crate) async fn exec_events(
        &self,
        call: &VerbCall<'_>,
        ExecEvents { execution, after_seq, limit, follow }: ExecEvents,
    ) -> Result<Vec<Event>, OpError> {
        let found = self.execution(call, &execution).await?.execution;
        let id = found.id;
        match &call.follower {
            Some(follower) if follow => {
                let following = self.runtime.follow(id, after_seq, follower.clone());
                let followed = match found.kind {
                    ExecutionKind::Program => following.await,
                    _ => Box::pin(self.unless_abandoned((call.caller, &call.presence), id, following)).await,
                };
                if followed.is_none() {
                    self.stored_events(call.caller, id, after_seq, follower).await?;
                }
                Ok(Vec::new())
            }
            _ => self.some_events(call, id, after_seq, limit).await,
        }
    }

    /// The requested events as far as they fit a response; a caller gets more with the number of the last one.
    async fn some_events(
        &self,
        call: &VerbCall<'_>,
        id: ExecutionId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, OpError> {
        let store = self.reads_of(call.caller);
        let wanted = if limit == 0 { usize::MAX } else { limit as usize };
        let mut events: Vec<Event> = Vec::new();
        let mut left = REPLY_BYTES;
        loop {
            let page = u32::try_from(wanted - events.len()).unwrap_or(u32::MAX).min(EVENTS_PAGE);
            let from = events.last().map_or(after_seq, |event| event.seq);
            let read = store.events(id, from, page).await.map_err(stored)?;
            let complete = is_last_page(&read, page, PAGE_BYTES);
            for event in read {
                let bytes = 64 + event.payload.output_bytes() as usize;
                if bytes > left && !events.is_empty() {
                    return Ok(events);
                }
                left = left.saturating_sub(bytes);
                events.push(event);
            }
            if complete || events.len() >= wanted {
                return Ok(events);
            }
        }
    }

    /// Sends all stored events, page by page, until the receiver is closed.
    pub(super) async fn stored_events(
        &self,
        caller: &Caller,
        id: ExecutionId,
        after_seq: u64,
        follower: &Follower,
    ) -> Result<(), OpError> {
        let store = self.reads_of(caller);
        let mut from = after_seq;
        loop {
            let Ok(page) = follower.page().await else { return Ok(()) };
            let events =
                store.some_events(id, from, FOLLOWED_EVENTS, FOLLOWED_BYTES).await.map_err(stored)?;
            let complete = is_last_page(&events, FOLLOWED_EVENTS, FOLLOWED_BYTES);
            match events.last() {
                Some(last) => from = last.seq,
                None => return Ok(()),
            }
            if follower.send_page(events, page).await.is_err() || complete {
                return Ok(());
            }
        }
    }

    /// An execution once it does not run.
    pub(super) async fn until_stopped(
        &self,
        call: &VerbCall<'_>,
        mut now: Execution,
    ) -> Result<Execution, OpError> {
        let (id, mut seen) = (now.id, 0);
        while now.status == ExecutionStatus::Running {
            let may_wait = self.follow_to_a_stop(id, &mut seen).await;
            now = self.execution(call, &id.to_string()).await?.execution;
            if !may_wait {
                break;
            }
        }
        Ok(now)
    }

    /// Replies once an execution does not run.
    pub(crate) async fn exec_wait(
        &self,
        call: &VerbCall<'_>,
        ExecWait { execution }: ExecWait,
    ) -> Result<ExecutionState, OpError> {
        let found = self.execution(call, &execution).await?.execution;
        let (id, kind) = (found.id, found.kind);
        let stopping = self.until_stopped(call, found);
        let mut now = match kind {
            ExecutionKind::Program => stopping.await?,
            _ => Box::pin(self.unless_abandoned((call.caller, &call.presence), id, stopping)).await?,
        };
        match (now.status, now.kind) {
            (ExecutionStatus::Waiting, ExecutionKind::Program) => {
                let get = RunGet { execution: id.to_string() };
                Box::pin(self.run_get(call, get)).await.map(ExecutionState::Run)
            }
            (status, _) => {
                call.memory.reserve(LARGE_READ_BYTES).await?;
                now.events = Some(Box::pin(self.some_events(call, id, 0, 0)).await?);
                if status == ExecutionStatus::Waiting {
                    return Box::pin(self.live(call, now)).await.map(ExecutionState::Run);
                }
                Ok(ExecutionState::Execution(now))
            }
        }
    }

    /// Follows an execution from the given event until it waits for a task (true), or to its end.
    async fn follow_to_a_stop(&self, id: ExecutionId, seen: &mut u64) -> bool {
        let (follower, mut batches) = vm_system_runtime::follower(1, ReplyMemory::default());
        let mut following = pin!(self.runtime.follow(id, *seen, follower));
        loop {
            tokio::select! {
                biased;
                Some(batch) = batches.recv() => {
                    *seen = batch.events.last().map_or(*seen, |last| last.seq);
                    // The event is published after its commit: a reader now finds the task, or its end.
                    if batch.events.iter().any(|event| matches!(event.payload, EventPayload::Task { .. })) {
                        return true;
                    }
                }
                _ = &mut following => return false,
            }
        }
    }

    pub(crate) async fn exec_cancel(
        &self,
        call: &VerbCall<'_>,
        ExecCancel { execution }: ExecCancel,
    ) -> Result<(), OpError> {
        let execution = self.execution(call, &execution).await?.execution;
        let id = execution.id;
        let result = match execution.kind {
            // The execution's state is being written, which ends with its row.
            ExecutionKind::Program if execution.error.is_some_and(|error| error.code == INCOMPLETE) => {
                self.store_of(call).apply(Write::RunDelete { id }).await.map(|_| ()).map_err(stored)
            }
            ExecutionKind::Program => self.cancel_program(id).await,
            _ => self.runtime.cancel_execution(id).await.map_err(OpError::from),
        };
        self.audit(call, id, &result).await;
        result
    }
}

/// Checks that need no row and no file; returns the parsed `args`.
fn check_body(new: &ExecStart) -> Result<Value, OpError> {
    match new.kind {
        ExecutionKind::Repl => {
            if new.input.as_deref().is_none_or(str::is_empty) {
                return Err(invalid("input is missing"));
            }
            if !matches!(new.path.as_deref(), None | Some(INTERACTIVE_INPUT | TYPESCRIPT_INPUT)) {
                return Err(invalid(format!(
                    "the path of a repl execution can only be {INTERACTIVE_INPUT} or {TYPESCRIPT_INPUT}"
                )));
            }
        }
        ExecutionKind::RunFile => {
            let Some(path) = &new.path else { return Err(invalid("path is missing")) };
            if new.input.is_some()
                && (path.trim().is_empty() || path.len() > NAME_BYTES || path.contains('\0'))
            {
                return Err(invalid("path does not name the input"));
            }
        }
        ExecutionKind::Startup | ExecutionKind::Program => {
            return Err(invalid(format!("an execution of kind {} cannot be started like this", new.kind)));
        }
    }
    if new.args.as_str().len() > ARGS_BYTES {
        return Err(invalid(format!("args has more than {ARGS_BYTES} bytes")));
    }
    let args = json_for_script(new.args.as_str()).map_err(|why| invalid(format!("args: {why}")))?;
    if !args.is_object() {
        return Err(invalid("args is not an object"));
    }
    check_env(&new.env)?;
    check_argv(&new.argv)?;
    Ok(args)
}

/// The source of a body that was checked.
fn source(new: &mut ExecStart) -> Result<Source, OpError> {
    match (new.input.take(), new.path.take()) {
        (Some(text), Some(file_name)) if new.kind == ExecutionKind::Repl => {
            let is_typescript = file_name == TYPESCRIPT_INPUT;
            let format = if is_typescript { SourceFormat::TypeScript } else { SourceFormat::Script };
            Ok(Source::Text { text, file_name, format: Some(format) })
        }
        // If the client sends a text, the path is only its name.
        (Some(text), Some(file_name)) => Ok(Source::Text { text, file_name, format: None }),
        (Some(text), None) => {
            Ok(Source::Text { text, file_name: "repl".to_owned(), format: Some(SourceFormat::Script) })
        }
        (None, path) => match clean_relative(&path.unwrap_or_default()) {
            Ok(path) => Ok(Source::File { path, format: None }),
            Err(error) => Err(OpError::new(ErrorCode::InvalidPath, error.to_string())),
        },
    }
}

/// Checks what a repeated input gets.
pub(super) fn check_inputs(
    args: &vm_system_protocol::json::JsonText,
    env: &[(String, String)],
    argv: &[String],
) -> Result<(), OpError> {
    if args.as_str().len() > ARGS_BYTES {
        return Err(invalid(format!("args has more than {ARGS_BYTES} bytes")));
    }
    check_env(env)?;
    check_argv(argv)
}

fn check_argv(argv: &[String]) -> Result<(), OpError> {
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.len() > ARGS_COUNT || bytes > ARGS_BYTES {
        return Err(invalid("argv is too long"));
    }
    Ok(())
}

/// Checks the start parameters of a program.
pub(super) fn check_program_inputs(args: &[String], env: &[(String, String)]) -> Result<(), OpError> {
    let bytes: usize = args.iter().map(String::len).sum();
    if args.len() > ARGS_COUNT || bytes > ARGS_BYTES {
        return Err(invalid("args is too long"));
    }
    check_env(env)
}

fn check_env(env: &[(String, String)]) -> Result<(), OpError> {
    let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    if env.len() > ARGS_COUNT || bytes > ARGS_BYTES {
        return Err(invalid("env is too large"));
    }
    let mut names = HashSet::with_capacity(env.len());
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(invalid(format!("env: {name:?} is not a valid variable name")));
        }
        if !names.insert(name) {
            return Err(invalid(format!("env: {name:?} is given twice")));
        }
    }
    Ok(())
}

fn refused(error: RuntimeError, session: SessionId) -> OpError {
    let error = OpError::from(error);
    if error.code != ErrorCode::SessionBusy {
        return error;
    }
    error
        .with_details(&serde_json::json!({ "session_id": session }))
        .with_hint("wait for the running execution or cancel it")
}

/// An execution with too much output is an error of the verb too; its record has the same code.
fn finished(execution: Execution) -> Result<ExecutionState, OpError> {
    match &execution.error {
        Some(error) if error.code == ErrorCode::OutputLimitExceeded.as_str() => {
            Err(OpError::new(ErrorCode::OutputLimitExceeded, error.message.clone())
                .with_details(&serde_json::json!({ "execution_id": execution.id })))
        }
        _ => Ok(ExecutionState::Execution(execution)),
    }
}

/// Approximate size of an execution in a response (bytes).
fn weight(execution: &Execution) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    512 + text(&execution.input)
        + text(&execution.path)
        + execution.args.as_str().len()
        + execution.env.as_str().len()
        + execution.result.as_ref().map_or(0, ResultValue::bytes)
        + execution.error.as_ref().map_or(0, |error| error.message.len())
}
