//! The callers' interface: a clonable handle with a method for each query. Owns no state.

use super::{Lane, SessionWatch, Store, StoreStatus, Urgency};
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use vm_system_protocol::control::CheckReport;
use vm_system_protocol::ids::{ExecutionId, ProgramId, SessionId, TaskId, TemplateId};
use vm_system_protocol::model::{Event, SessionEvent};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{
    Applied, AuditEntry, Batch, CheckpointRow, DueTask, ExecutionQuery, ExecutionRow, IdKind, KeyRow,
    LibraryRow, LiveSessionRow, Owner, Page, PageVersion, PolicySnapshot, ProgramCode, ProgramQuery,
    ProgramRow, PromptBeginning, Query, QueryResult, RunHead, RunQuery, RunRow, Scope, SessionQuery,
    SessionRow, StoreError, TaskQuery, TaskRow, TemplateRow, VersionRow,
};

/// A queued batch. Resolves when it is committed or has failed; dropping the ticket does not cancel the batch.
#[derive(Debug)]
pub struct Ticket(pub(super) oneshot::Receiver<Result<Applied, StoreError>>);

impl Ticket {
    /// The ticket of a batch that was not queued.
    pub(super) fn failed(error: StoreError) -> Self {
        let (sender, ticket) = oneshot::channel();
        // Cannot fail: the receiver exists.
        let _ = sender.send(Err(error));
        Self(ticket)
    }
}

impl Future for Ticket {
    type Output = Result<Applied, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|result| result.unwrap_or(Err(StoreError::Closed)))
    }
}

/// A clonable handle of a store; its batches and queries go into one lane.
#[derive(Clone)]
pub struct StoreHandle {
    store: Arc<dyn Store>,
    lane: Lane,
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreHandle").field(&self.status()).finish()
    }
}

/// Runs a query and unpacks its result.
macro_rules! query {
    ($self:ident, $query:expr, $result:ident) => {
        match $self.read($query).await? {
            QueryResult::$result(value) => Ok(value),
            other => Err(StoreError::Corrupt(format!("a result of the wrong kind: {other:?}"))),
        }
    };
}

impl StoreHandle {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, lane: Lane::System }
    }

    /// The same store, for what is written and read for an owner.
    #[must_use]
    pub fn of(&self, owner: &Owner) -> Self {
        self.in_lane(Lane::Owner(owner.clone()))
    }

    pub(super) fn in_lane(&self, lane: Lane) -> Self {
        Self { store: Arc::clone(&self.store), lane }
    }

    /// Queues a batch for the next commit; waits only while the queue is full.
    pub async fn submit(&self, batch: impl Into<Batch>) -> Result<Ticket, StoreError> {
        self.submit_with(batch.into(), Urgency::Now).await
    }

    /// Queues a batch that may wait for the next urgent one ([`LAZY_MS`](super::LAZY_MS)).
    pub async fn submit_lazy(&self, batch: impl Into<Batch>) -> Result<Ticket, StoreError> {
        self.submit_with(batch.into(), Urgency::Lazy).await
    }

    pub(super) async fn submit_with(&self, batch: Batch, urgency: Urgency) -> Result<Ticket, StoreError> {
        self.store.submit(self.lane.clone(), batch, urgency).await
    }

    /// Queues a batch and waits until it is committed.
    pub async fn apply(&self, batch: impl Into<Batch>) -> Result<Applied, StoreError> {
        self.submit(batch).await?.await
    }

    /// Runs any query, in the turn of this handle's owner, else of the owner whose rows it returns.
    pub async fn read(&self, query: Query) -> Result<QueryResult, StoreError> {
        let lane = match (&self.lane, query.owner()) {
            (Lane::System, Some(owner)) => Lane::Owner(owner.clone()),
            (lane, _) => lane.clone(),
        };
        self.store.read(lane, query).await
    }

    /// Health and size of the store.
    pub fn status(&self) -> StoreStatus {
        self.store.status()
    }

    /// Whether an owner stores more than its quota.
    pub fn is_full(&self, owner: &Owner) -> bool {
        self.store.is_full(owner)
    }

    /// Events of a session after a number.
    pub async fn session_events(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        query!(self, Query::SessionEvents { session, after, limit }, SessionEvents)
    }

    /// Wakes its caller after commits about a session.
    pub fn watch_session(&self, session: SessionId) -> SessionWatch {
        self.store.watch_session(session)
    }

    /// A copy of everything that is committed, in a file without a name.
    pub async fn backup(&self) -> Result<File, StoreError> {
        self.store.backup().await
    }

    /// Examines everything that is stored.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        self.store.check().await
    }

    /// Commits the queued batches and closes.
    pub async fn shutdown(&self) {
        self.store.shutdown().await;
    }

    /// An active template.
    pub async fn template(
        &self,
        scope: &Scope,
        id: TemplateId,
    ) -> Result<Option<Box<TemplateRow>>, StoreError> {
        query!(self, Query::Template(scope.clone(), id), Template)
    }

    /// An active template by its name.
    pub async fn template_by_name(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<Box<TemplateRow>>, StoreError> {
        query!(self, Query::TemplateByName(scope.clone(), name.to_owned()), Template)
    }

    /// Active templates, newest first.
    pub async fn templates(&self, scope: &Scope, page: Page) -> Result<Vec<TemplateRow>, StoreError> {
        query!(self, Query::Templates(scope.clone(), page), Templates)
    }

    /// Installed libraries by name.
    pub async fn libraries(&self) -> Result<Vec<LibraryRow>, StoreError> {
        query!(self, Query::Libraries, Libraries)
    }

    /// A session.
    pub async fn session(&self, scope: &Scope, id: SessionId) -> Result<Option<Box<SessionRow>>, StoreError> {
        query!(self, Query::Session(scope.clone(), id), Session)
    }

    /// The policy that a session was created with.
    pub async fn session_policy(&self, id: SessionId) -> Result<Option<Arc<PolicySnapshot>>, StoreError> {
        query!(self, Query::SessionPolicy(id), Policy)
    }

    /// Sessions, newest first.
    pub async fn sessions(
        &self,
        scope: &Scope,
        filter: SessionQuery,
        page: Page,
    ) -> Result<Vec<SessionRow>, StoreError> {
        query!(self, Query::Sessions(scope.clone(), filter, page), Sessions)
    }

    /// All starting and ready sessions with workers of their own.
    pub async fn live_sessions(&self) -> Result<Vec<LiveSessionRow>, StoreError> {
        query!(self, Query::LiveSessions, LiveSessions)
    }

    /// An execution, without its events.
    pub async fn execution(
        &self,
        scope: &Scope,
        id: ExecutionId,
    ) -> Result<Option<Box<ExecutionRow>>, StoreError> {
        query!(self, Query::Execution(scope.clone(), id), Execution)
    }

    /// An execution by its name: the unfinished one, else the newest.
    pub async fn execution_by_name(
        &self,
        owner: &Owner,
        name: &str,
    ) -> Result<Option<Box<ExecutionRow>>, StoreError> {
        query!(self, Query::ExecutionByName(owner.clone(), name.to_owned()), Execution)
    }

    /// Executions of a session, newest first, without their events.
    pub async fn executions(
        &self,
        scope: &Scope,
        session: SessionId,
        filter: ExecutionQuery,
        page: Page,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        query!(self, Query::Executions(scope.clone(), session, filter, page), Executions)
    }

    /// Events of an execution in order; `limit` 0 = all.
    pub async fn events(
        &self,
        execution: ExecutionId,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        query!(self, Query::Events(execution, after_seq, limit), Events)
    }

    /// At most so many events of an execution in order, until their content reaches `bytes`; at least one.
    pub async fn some_events(
        &self,
        execution: ExecutionId,
        after_seq: u64,
        limit: u32,
        bytes: usize,
    ) -> Result<Vec<Event>, StoreError> {
        query!(self, Query::SomeEvents { execution, after_seq, limit, bytes }, Events)
    }

    /// Ids between two bounds (inclusive), ascending.
    pub async fn ids(
        &self,
        scope: &Scope,
        kind: IdKind,
        from: [u8; 16],
        to: [u8; 16],
        limit: u32,
    ) -> Result<Vec<[u8; 16]>, StoreError> {
        query!(self, Query::Ids { scope: scope.clone(), kind, from, to, limit }, Ids)
    }

    /// The newest version of an active program.
    pub async fn program(&self, scope: &Scope, id: ProgramId) -> Result<Option<Box<ProgramRow>>, StoreError> {
        query!(self, Query::Program(scope.clone(), id), Program)
    }

    /// The newest version of an active program by its name.
    pub async fn program_by_name(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<Box<ProgramRow>>, StoreError> {
        query!(self, Query::ProgramByName(scope.clone(), name.to_owned()), Program)
    }

    /// Active programs, newest first.
    pub async fn programs(
        &self,
        scope: &Scope,
        filter: ProgramQuery,
        page: Page,
    ) -> Result<Vec<ProgramRow>, StoreError> {
        query!(self, Query::Programs(scope.clone(), filter, page), Programs)
    }

    /// Source and code of a version.
    pub async fn program_code(
        &self,
        id: ProgramId,
        version: u32,
    ) -> Result<Option<Box<ProgramCode>>, StoreError> {
        query!(self, Query::ProgramCode(id, version), Code)
    }

    /// Versions of a program, newest first, below a number.
    pub async fn program_versions(
        &self,
        program: ProgramId,
        below: Option<u32>,
        limit: u32,
    ) -> Result<Vec<VersionRow>, StoreError> {
        query!(self, Query::ProgramVersions { program, below, limit }, Versions)
    }

    /// Program and version that an execution runs.
    pub async fn program_run(&self, execution: ExecutionId) -> Result<Option<(ProgramId, u32)>, StoreError> {
        query!(self, Query::ProgramRun(execution), Run)
    }

    /// The current execution of an owner's client: the default of its requests.
    pub async fn current(&self, owner: &Owner, client: &str) -> Result<Option<ExecutionId>, StoreError> {
        query!(self, Query::Current(owner.clone(), client.to_owned()), Current)
    }

    /// A task.
    pub async fn task(&self, scope: &Scope, id: TaskId) -> Result<Option<Box<TaskRow>>, StoreError> {
        query!(self, Query::Task(scope.clone(), id), Task)
    }

    /// The pending task of an execution.
    pub async fn pending_task(&self, execution: ExecutionId) -> Result<Option<Box<TaskRow>>, StoreError> {
        query!(self, Query::PendingTask(execution), Task)
    }

    /// Tasks, in the order of [`Query::Tasks`].
    pub async fn tasks(
        &self,
        scope: &Scope,
        filter: TaskQuery,
        page: Page,
    ) -> Result<Vec<TaskRow>, StoreError> {
        query!(self, Query::Tasks(scope.clone(), filter, page), Tasks)
    }

    /// The beginnings of the pending prompts of these executions.
    pub async fn prompts(
        &self,
        scope: &Scope,
        executions: Vec<ExecutionId>,
        bytes: u32,
    ) -> Result<Vec<PromptBeginning>, StoreError> {
        query!(self, Query::Prompts { scope: scope.clone(), executions, bytes }, Prompts)
    }

    /// Number of active programs, and of executions of programs.
    pub async fn program_counts(&self, scope: &Scope) -> Result<(u64, u64), StoreError> {
        query!(self, Query::ProgramCounts(scope.clone()), Counts)
    }

    /// The last task of an execution as of a checkpoint, or now.
    pub async fn task_of(
        &self,
        execution: ExecutionId,
        checkpoint: Option<u64>,
    ) -> Result<Option<Box<TaskRow>>, StoreError> {
        query!(self, Query::TaskOf(execution, checkpoint), Task)
    }

    /// Pending tasks with a deadline up to a point in time, earliest first, after a cursor.
    pub async fn due_tasks(
        &self,
        until: Timestamp,
        after: Option<(Timestamp, TaskId)>,
        limit: u32,
    ) -> Result<Vec<DueTask>, StoreError> {
        query!(self, Query::DueTasks { until, after, limit }, Due)
    }

    /// Running executions of programs, by id, after a cursor.
    pub async fn running_programs(
        &self,
        after: ExecutionId,
        limit: u32,
    ) -> Result<Vec<[u8; 16]>, StoreError> {
        query!(self, Query::RunningPrograms { after, limit }, Ids)
    }

    /// Executions of programs, newest first.
    pub async fn runs(&self, scope: &Scope, filter: RunQuery, page: Page) -> Result<Vec<RunRow>, StoreError> {
        query!(self, Query::Runs(scope.clone(), filter, page), Runs)
    }

    /// An execution of a program; at most one.
    pub async fn run_by_id(&self, scope: &Scope, id: ExecutionId) -> Result<Vec<RunRow>, StoreError> {
        query!(self, Query::RunById(scope.clone(), id), Runs)
    }

    /// An execution of a program by its name: the unfinished one, else the newest; at most one.
    pub async fn run_by_name(&self, owner: &Owner, name: &str) -> Result<Vec<RunRow>, StoreError> {
        query!(self, Query::RunByName(owner.clone(), name.to_owned()), Runs)
    }

    /// Everything that is needed to resume an execution of a program, from one snapshot.
    pub async fn run_head(&self, execution: ExecutionId) -> Result<Option<Box<RunHead>>, StoreError> {
        query!(self, Query::RunHead(execution), RunHead)
    }

    /// The newest checkpoint of an execution; at most one.
    pub async fn last_checkpoint(&self, execution: ExecutionId) -> Result<Vec<CheckpointRow>, StoreError> {
        query!(self, Query::LastCheckpoint(execution), Checkpoints)
    }

    /// Checkpoints of an execution in order.
    pub async fn checkpoints(&self, execution: ExecutionId) -> Result<Vec<CheckpointRow>, StoreError> {
        query!(self, Query::Checkpoints(execution), Checkpoints)
    }

    /// The pages of a state as of a checkpoint, by number.
    pub async fn state(
        &self,
        execution: ExecutionId,
        checkpoint: u64,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.state_part(execution, checkpoint, None, usize::MAX).await
    }

    /// A part of a state: pages after a cursor, up to this many bytes. Fewer bytes: they are the last pages.
    pub async fn state_part(
        &self,
        execution: ExecutionId,
        checkpoint: u64,
        behind: Option<u64>,
        bytes: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        query!(self, Query::State { execution, checkpoint, behind, bytes }, Pages)
    }

    /// Tasks of an execution after a checkpoint, oldest first.
    pub async fn tasks_of_run(
        &self,
        execution: ExecutionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<TaskRow>, StoreError> {
        query!(self, Query::TasksOfRun { execution, after, limit }, Tasks)
    }

    /// Versions of an execution's pages after a cursor, by page and checkpoint, up to this many bytes.
    pub async fn page_versions(
        &self,
        execution: ExecutionId,
        after: Option<(u64, u64)>,
        bytes: usize,
    ) -> Result<Vec<PageVersion>, StoreError> {
        query!(self, Query::PageVersions { execution, after, bytes }, PageVersions)
    }

    /// Versions of a program with this source, newest first.
    pub async fn versions_of_source(
        &self,
        program: ProgramId,
        source_hash: [u8; 32],
        limit: u32,
    ) -> Result<Vec<VersionRow>, StoreError> {
        query!(self, Query::VersionsOfSource { program, source_hash, limit }, Versions)
    }

    /// An idempotency key.
    pub async fn key(&self, owner: &Owner, key: &str) -> Result<Option<KeyRow>, StoreError> {
        query!(self, Query::Key(owner.clone(), key.to_owned()), Key)
    }

    /// Audit entries with their numbers, newest first.
    pub async fn audit(
        &self,
        scope: &Scope,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditEntry)>, StoreError> {
        query!(self, Query::Audit { scope: scope.clone(), before, limit }, Audit)
    }

    /// A meta value of the store.
    pub async fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        query!(self, Query::Meta(key.to_owned()), Meta)
    }
}
