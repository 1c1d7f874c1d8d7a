//! The model of sessions: which requests were acknowledged, which may have been carried out, and what was killed meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::{OnCrash, Session};
use vm_system_tests::killer::Strike;

/// All strikes so far, in order. The last one may be under way.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    begun: Mutex<Vec<Strike>>,
    ended: AtomicUsize,
}

/// How the reason begins with which a session ends that could not be stored.
const NOT_STORED: [&str; 3] = [
    "spawn_failed(its record could not be stored",
    "spawn_failed(the end of its rollback could not be stored",
    "spawn_failed(it could not continue from its frozen copy: its new generation could not be stored",
];
/// How the reason begins with which a session ends whose frozen copy was killed.
const NO_COPY: &str = "spawn_failed(it could not continue from its frozen copy";

impl Strikes {
    /// Carries one out.
    pub(crate) fn during(&self, strike: Strike, action: impl FnOnce()) {
        // Before it: a driver may see its effect at once.
        self.begun().push(strike);
        action();
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// How many are over.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether there was one of these after so many were over.
    pub(crate) fn any_since(&self, ended: usize, of: &[Strike]) -> bool {
        self.begun()[ended..].iter().any(|strike| of.contains(strike))
    }

    fn begun(&self) -> MutexGuard<'_, Vec<Strike>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a worker may have ended with this reason in a session that was created when so many strikes were over.
    pub(crate) fn explain(&self, created_after: usize, reason: &str) -> bool {
        let strikes = self.begun();
        let since = &strikes[created_after..];
        since.iter().any(|strike| match strike {
            Strike::Worker => reason == "signal(SIGKILL)" || reason.starts_with(NO_COPY),
            Strike::Keeper => reason == "keeper_lost" || reason.starts_with(NO_COPY),
            Strike::Everything => {
                ["host_restart", "keeper_lost", "signal(SIGKILL)"].contains(&reason)
                    || reason.starts_with(NO_COPY)
            }
            // The keeper ended, and the supervisor before it had stored that.
            Strike::Supervisor => reason == "host_restart" && since.contains(&Strike::Keeper),
            Strike::FullDisk => NOT_STORED.iter().any(|text| reason.starts_with(text)),
            Strike::Zygote | Strike::Broker | Strike::Stop | Strike::Nothing => false,
        })
    }

    /// The same of a restart: also the attempt to start the next worker may have failed.
    pub(crate) fn explain_restart(&self, created_after: usize, reason: &str) -> bool {
        let of_zygotes = [Strike::Zygote, Strike::Keeper, Strike::Everything, Strike::Worker];
        let failed_start = reason.starts_with("spawn_failed(") && self.any_since(created_after, &of_zygotes);
        failed_start || self.explain(created_after, reason)
    }
}

/// The sums of a driver's steps.
#[derive(Debug, Default, Clone)]
pub(crate) struct Totals {
    pub(crate) sessions: u32,
    pub(crate) forks: u32,
    pub(crate) acknowledged: u32,
    pub(crate) unknown: u32,
    pub(crate) checkpoints: u32,
    pub(crate) rollbacks: u32,
    /// Rollbacks and restarts after the end of a worker.
    pub(crate) recoveries: u32,
    /// Followers that read everything late.
    pub(crate) followed: u32,
    /// Requests that were refused because the disk was full.
    pub(crate) unstored: u32,
    pub(crate) alive: u32,
    pub(crate) ended: u32,
}

/// The acknowledgement of one piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepReply {
    /// It ran to its end.
    Acknowledged(ExecutionId),
    /// The connection failed, or it could not be stored: it ran once or not at all.
    Unknown,
}

/// One piece of code: it appends its token to the state of the session.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) token: String,
    pub(crate) code: String,
    /// The text that it prints in each of `lines` lines, before the number of the line.
    pub(crate) printed: String,
    pub(crate) lines: u64,
    pub(crate) reply: StepReply,
    /// It appends its token to the file first.
    pub(crate) to_file: bool,
}

/// A checkpoint whose creation was acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) number: u64,
    /// How many strikes were over before its creation.
    pub(crate) after: usize,
}

/// Requests about copies of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct CopyRequests {
    /// The checkpoints that may still be there.
    pub(crate) present: Vec<Made>,
    pub(crate) made: Vec<u64>,
    pub(crate) made_unknown: usize,
    /// Acknowledged rollbacks to these checkpoints.
    pub(crate) rolled_back: Vec<u64>,
    /// The rollbacks without an acknowledgement.
    pub(crate) rolled_back_unknown: Vec<u64>,
}

/// A session, as far as its driver knows.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) session: Session,
    pub(crate) on_crash: OnCrash,
    /// How many strikes were over before its creation.
    pub(crate) created_after: usize,
    /// The state with which it began: that of its parent.
    pub(crate) base: Vec<String>,
    /// The tokens that its parent may have had besides.
    pub(crate) base_unknown: BTreeSet<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) copies: CopyRequests,
    /// The session's end was requested; the connection failed.
    pub(crate) is_closing: bool,
}

impl Known {
    pub(crate) fn step_of(&self, code: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.code == code)
    }

    /// Whether its worker ended so because it had received its order to exit, and the supervisor was killed.
    pub(crate) fn closes_with(&self, reason: &str) -> bool {
        self.is_closing && reason == "exited(0)"
    }

    /// Compares the lines of a file, to which this session and others wrote, with the steps.
    #[track_caller]
    pub(crate) fn compare_file(&self, text: &str) {
        for step in self.steps.iter().filter(|step| step.to_file) {
            let count = text.lines().filter(|line| *line == step.token).count();
            let is_certain = matches!(step.reply, StepReply::Acknowledged(_));
            assert!(
                count <= 1 && (count == 1 || !is_certain),
                "{} is there {count} times: {text:?}",
                step.token
            );
        }
    }
}
