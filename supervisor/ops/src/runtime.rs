//! Verbs about the supervisor itself.

use super::errors::{invalid, stored};
use super::{Caller, LIST_ROWS, Ops, VerbCall, fitting, rows_of};
use vm_system_protocol::control::{
    AuditList, AuditRecord, DatabaseSize, Doctor, DoctorReport, ErrorCode, Health, HealthGet, MemoryOwner,
    OpError, RuntimeInfo, RuntimeInfoGet, RuntimeSummary, RuntimeSummaryGet, SandboxLayer, Shutdown,
    StuckExecution,
};
use vm_system_protocol::ids::SessionId;
use vm_system_record::StoreError;
use vm_system_runtime::StuckRun;
use vm_system_store::StoreStatus;

/// Stuck executions that a report lists.
const STUCK: usize = 100;

impl Ops {
    /// The health of the supervisor: if the store cannot write, every verb that writes fails; without a jail or a zygote that does
    /// its work, every verb that starts a worker.
    #[expect(clippy::unused_async, reason = "as all handlers of verbs")]
    pub(crate) async fn health(&self, call: &VerbCall<'_>, _: HealthGet) -> Result<Health, OpError> {
        let store = self.store.status();
        if let Some(error) = problem(&store) {
            return Err(error);
        }
        let condition = self.runtime.condition();
        match condition.problem {
            None if let Some(problem) = condition.helper_problem => Err(OpError::new(
                ErrorCode::SandboxUnavailable,
                format!("the spawn helper {}: worktrees cannot be opened", problem.as_str()),
            )
            .with_hint(problem.hint())),
            None => Ok(Health {
                status: "ok".to_owned(),
                memory: condition.memory.as_str().to_owned(),
                largest_owner: condition.largest_owner.filter(|_| call.caller.admin).map(|largest| {
                    MemoryOwner {
                        owner: largest.owner.as_str().to_owned(),
                        held_mb: largest.held_mb,
                        share_mb: largest.share_mb,
                    }
                }),
                database: call.caller.admin.then_some(DatabaseSize {
                    used_bytes: store.bytes_used,
                    free_bytes: store.bytes_free,
                    gives_back: store.gives_back,
                }),
                stuck: self
                    .runtime
                    .durables()
                    .filter(|_| call.caller.admin)
                    .map(|durables| durables.stuck_number()),
            }),
            Some(why) => Err(OpError::new(
                ErrorCode::SandboxUnavailable,
                format!("no worker can be started at this moment: {why}"),
            )
            .with_hint(
                "the supervisor is replacing it; if this lasts, see its log and `vm-system ops doctor`",
            )),
        }
    }

    /// The walls, and the store.
    pub(crate) async fn doctor(&self, call: &VerbCall<'_>, _: Doctor) -> Result<DoctorReport, OpError> {
        let mut report = self.runtime.doctor((!call.caller.admin).then_some(&call.caller.owner)).await;
        report.layers.extend(self.options.lowered.clone().map(|detail| SandboxLayer {
            name: "descriptors".to_owned(),
            in_force: false,
            required: false,
            detail,
        }));
        if let Some(error) = problem(&self.store.status()) {
            report.ok = false;
            let hint = error.hint.unwrap_or_default();
            report.problem.get_or_insert(format!("{}; {hint}", error.message));
        }
        if let Some(durables) = self.runtime.durables() {
            match durables.stuck().await {
                Ok(found) => report.stuck = shown_stuck(call.caller, found),
                // A store that cannot be read has most often been reported above.
                Err(error) => {
                    report.problem.get_or_insert(error.to_string());
                }
            }
            report.ok &= report.stuck.is_empty() && report.problem.is_none();
        }
        Ok(report)
    }

    /// Live workers, including those of programs, not rows; those of other owners only for administrators.
    pub(crate) async fn runtime_summary(
        &self,
        call: &VerbCall<'_>,
        _: RuntimeSummaryGet,
    ) -> Result<RuntimeSummary, OpError> {
        let mut ids = self.live_sessions_of(call);
        ids.extend(self.live_programs_of(call).await);
        ids.sort_unstable();
        Ok(RuntimeSummary { active_sessions: ids.len() as u64, active_session_ids: ids })
    }

    /// The live sessions that the caller may see.
    fn live_sessions_of(&self, call: &VerbCall<'_>) -> Vec<SessionId> {
        let mut ids = self.runtime.live_sessions();
        if !call.caller.admin {
            ids.retain(|id| self.runtime.session_owner(*id).is_some_and(|owner| call.caller.may_see(&owner)));
        }
        ids
    }

    /// The figures are the caller's own; those of all owners for administrators.
    #[expect(clippy::unused_async, reason = "as all handlers of verbs")]
    pub(crate) async fn runtime_info(
        &self,
        call: &VerbCall<'_>,
        _: RuntimeInfoGet,
    ) -> Result<RuntimeInfo, OpError> {
        let admin = call.caller.admin;
        let facts = self.runtime.facts((!admin).then_some(&call.caller.owner));
        let store = self.store.status();
        Ok(RuntimeInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            keeper_pid: facts.keeper_pid,
            sandbox: facts.sandbox,
            zygotes: facts.zygotes,
            active_sessions: self.live_sessions_of(call).len() as u64,
            sessions_created: facts.sessions_created,
            executions_started: facts.executions_started,
            durability: store.durability.to_owned(),
            store_queue: if admin { store.queued_batches } else { 0 },
            store_problem: problem(&store).map(|error| error.message),
        })
    }

    /// The caller's changes and refusals; those of all owners for administrators, who see the numbers of lines as they are.
    pub(crate) async fn audit_list(
        &self,
        call: &VerbCall<'_>,
        AuditList { before, limit }: AuditList,
    ) -> Result<Vec<AuditRecord>, OpError> {
        let limit = rows_of(limit, LIST_ROWS)?;
        let admin = call.caller.admin;
        let before = match before {
            Some(mark) if !admin => Some(self.audit_marks.number(mark).ok_or_else(|| {
                invalid("before: no line of the audit log has this number since the supervisor was started")
            })?),
            before => before,
        };
        self.count_refusals(call.caller).await;
        // Lines are queued without waiting: an empty batch waits for those before it. If the store cannot
        // write, the response is what it has.
        let _ = self.store.apply(Vec::new()).await;
        let rows = self.store.audit(&call.caller.scope(), before, limit).await.map_err(stored)?;
        let records = rows.into_iter().map(|(seq, entry)| AuditRecord {
            seq: if admin { seq } else { self.audit_marks.mark(seq) },
            at: entry.at,
            owner: entry.owner.as_str().to_owned(),
            api: entry.api,
            verb: entry.verb,
            subject: entry.subject,
            outcome: entry.outcome,
        });
        let weight = |record: &AuditRecord| 128 + record.verb.len() + record.subject.len();
        Ok(fitting(records, weight))
    }

    pub(crate) async fn shutdown(&self, call: &VerbCall<'_>, _: Shutdown) -> Result<(), OpError> {
        let result = if call.caller.admin {
            Ok(())
        } else {
            Err(OpError::new(ErrorCode::NotPermitted, "only an administrator may stop the supervisor")
                .with_hint("repeat the request as root, as the user that the daemon runs as, or with a token of role admin"))
        };
        self.audit(call, "", &result).await;
        result?;
        self.stop.cancel();
        Ok(())
    }
}

impl Ops {
    /// The error of a request to the store. What is wrong with the database file comes first: what helps against a full disk does not help
    /// against that.
    pub(super) fn stored(&self, error: StoreError) -> OpError {
        let status = self.store.status();
        match error {
            StoreError::Unavailable(_) if status.fault.is_some() => {
                problem(&status).unwrap_or_else(|| stored(error))
            }
            error => stored(error),
        }
    }
}

/// The stuck executions that a caller may see, with their owners for administrators.
fn shown_stuck(caller: &Caller, found: Vec<StuckRun>) -> Vec<StuckExecution> {
    let seen = found.into_iter().filter(|run| caller.may_see(&run.owner)).take(STUCK);
    let shown = seen.map(|StuckRun { execution, owner, why }| StuckExecution {
        execution_id: execution,
        owner: caller.shown_owner(&owner),
        why: why.to_owned(),
    });
    shown.collect()
}

/// Why the store is not well, the most serious reason first.
fn problem(store: &StoreStatus) -> Option<OpError> {
    let (message, hint) = if let Some(fault) = &store.fault {
        (fault.to_string(), fault.hint())
    } else if let Some(since) = store.stalled_since {
        (
            format!("the store has been waiting for its disk or for a lock: stalled since {since}"),
            "find out why the disk of the state directory does not respond, or end the process that locks the database",
        )
    } else if let Some(why) = &store.failing {
        (
            format!("the last write of the store failed: {why}"),
            "free some disk space or end the process that locks the database; the next write that succeeds heals it",
        )
    } else {
        let why = store.disk_problem.as_ref()?;
        (
            format!("the store can write little more, or nothing: {why}"),
            "free some disk space: what the store itself deletes is free only when its log can be copied back, and `quota_mb` keeps it \
             smaller than its disk",
        )
    };
    Some(OpError::new(ErrorCode::StorageUnavailable, message).with_hint(hint))
}
