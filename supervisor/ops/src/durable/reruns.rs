//! The verb that continues an execution from a checkpoint with other answers and other values of variables.
//!
//! The branch is stored in one batch, with its answers and the changed state: it is there as a whole or not at all, also after a crash,
//! and whatever is refused is refused before it.

use super::states::{BranchPoint, EditedState, anew, branch_refused};
use super::{checked_name, refused};
use crate::errors::{invalid, stored};
use crate::{Ops, VerbCall};
use std::collections::HashSet;
use vm_system_core::durable::DurableRefusal;
use vm_system_protocol::control::{ErrorCode, GivenAnswer, OpError, OtherAnswer, OtherValue, RunRerun};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_protocol::input::json_for_script;
use vm_system_protocol::model::Run;
use vm_system_record::{ItemRow, WaitKind, Write, is_rest};

/// Most answers, and most variables.
const CHANGES: usize = 1_000;
/// Largest content of all answers together, and of all values (bytes).
const ANSWERS_BYTES: usize = 8 << 20;
const VALUES_BYTES: usize = 1 << 20;
/// Open tasks that an error names.
const NAMED: usize = 20;

impl Ops {
    pub(crate) async fn run_rerun(&self, call: &VerbCall<'_>, new: RunRerun) -> Result<Run, OpError> {
        let RunRerun { execution: reference, checkpoint, answers, variables, name, end_old } = new;
        bounded(&answers, &variables)?;
        let name =
            name.as_deref().map(|name| checked_name("execution", name)).transpose()?.map(str::to_owned);
        self.is_no_id(call, name.as_deref()).await?;
        let old = self.run(call, &reference).await?;
        self.check_quota(call)?;
        self.durables()?.admit(&call.caller.owner)?;
        let old_id = old.row.execution.id;
        let (seq, cause) = self.sound_checkpoint(call, old_id, Some(checkpoint)).await?;
        let items = self.items_of_checkpoint(call, old_id, (seq, &cause)).await?;
        let answers = self.answers_of(call, &items, answers).await?;
        let edited = self.edited(call, old_id, (seq, &cause), &variables).await?;
        let mut writes = Vec::new();
        let takes_name = end_old && (name.is_none() || name == old.row.name);
        if takes_name {
            writes.push(Write::ExecutionUnname { id: old_id });
        }
        let name = name.or_else(|| old.row.name.clone().filter(|_| end_old));
        let point = BranchPoint { seq, cause, answers, edited };
        let (id, rests) = self.branch(call, &old, name, point, &mut writes).await?;
        let store = self.store_of(call);
        let result = if end_old {
            self.end_old(old_id, store, writes).await
        } else {
            store.apply(writes).await.map(|_| ()).map_err(branch_refused(id))
        };
        self.audit(call, old_id, &result).await;
        result?;
        self.begin_branch(call, id, rests).await
    }

    /// The answers as they are stored, by the ids of the tasks.
    async fn answers_of(
        &self,
        call: &VerbCall<'_>,
        items: &[ItemRow],
        answers: Vec<OtherAnswer>,
    ) -> Result<Vec<(TaskId, String)>, OpError> {
        let (mut checked, mut seen) = (Vec::with_capacity(answers.len()), HashSet::new());
        for OtherAnswer { task, result } in answers {
            let row = open_task(items, &task)?;
            if !seen.insert(row.id) {
                return Err(invalid(format!("the request has two answers to the task {}", row.id)));
            }
            let (holder, schema) = (call.caller.holder(), row.schema.as_deref());
            let given = self.checks.answer(&holder, &row.owner, row.id, schema, result).await?;
            match given.for_task(row) {
                Some(Ok(answer)) => checked.push((row.id, answer)),
                unfit => {
                    let why = unfit.and_then(Result::err).unwrap_or_default();
                    let schema = row.schema.clone().unwrap_or_default();
                    let error = DurableRefusal::Unfit { why, attempts: 0, left: None, schema };
                    return Err(refused(&error, row.execution).with_details(
                        &serde_json::json!({ "execution_id": row.execution, "task_id": row.id }),
                    ));
                }
            }
        }
        Ok(checked)
    }

    /// The state of a checkpoint with other values of variables.
    async fn edited(
        &self,
        call: &VerbCall<'_>,
        id: ExecutionId,
        (seq, cause): (u64, &str),
        variables: &[OtherValue],
    ) -> Result<Option<EditedState>, OpError> {
        if variables.is_empty() {
            return Ok(None);
        }
        if !is_rest(cause) {
            return Err(invalid(
                "variables can only be changed at a checkpoint at which the execution waits",
            )
            .with_hint(
                "`vm-system program checkpoints` shows the cause of each: pause, wait or an edit of these",
            ));
        }
        let pages = self.durables()?.edit(id, seq, variables).await?.map_err(|name| {
            let error = refused(&DurableRefusal::NoVariable, id);
            OpError { message: format!("there is no variable {name:?} that can be set there"), ..error }
        })?;
        let kept = self.reads_of(call.caller).checkpoints(id).await.map_err(stored)?;
        let written = kept.iter().find(|row| row.seq == seq).map_or(0, |row| row.written);
        Ok(Some(EditedState { pages, written }))
    }
}

fn bounded(answers: &[OtherAnswer], variables: &[OtherValue]) -> Result<(), OpError> {
    let bytes_of = |answer: &OtherAnswer| match &answer.result {
        GivenAnswer::Typed(text) => text.len(),
        GivenAnswer::Json(json) => json.as_str().len(),
    };
    if answers.len() > CHANGES || variables.len() > CHANGES {
        return Err(invalid(format!("the request has more than {CHANGES} answers or variables")));
    }
    if answers.iter().map(bytes_of).sum::<usize>() > ANSWERS_BYTES {
        return Err(invalid(format!("the answers have more than {ANSWERS_BYTES} bytes")));
    }
    if variables.iter().map(|variable| variable.value.as_str().len()).sum::<usize>() > VALUES_BYTES {
        return Err(invalid(format!("the values have more than {VALUES_BYTES} bytes"))
            .with_hint("set larger ones afterwards, with `vm-system program set`"));
    }
    for variable in variables {
        json_for_script(variable.value.as_str()).map_err(|why| {
            invalid(format!("the value of {:?} cannot be set: {why}", variable.name))
                .with_hint("a value is JSON; a string needs quotes: '\"like this\"'")
        })?;
    }
    Ok(())
}

/// The question that is open in a branch at the checkpoint of these items, by its id or a beginning of it.
fn open_task<'a>(items: &'a [ItemRow], reference: &str) -> Result<&'a ItemRow, OpError> {
    let wanted = reference.trim().to_lowercase();
    let is_open = |row: &&ItemRow| {
        row.kind == WaitKind::Question
            && anew((*row).clone(), row.execution, row.created_at).ended_at.is_none()
    };
    let open: Vec<&ItemRow> = items.iter().filter(is_open).collect();
    let mut fits = open.iter().filter(|row| !wanted.is_empty() && row.id.to_string().starts_with(&wanted));
    if let (Some(row), None) = (fits.next(), fits.next()) {
        return Ok(row);
    }
    let ids: Vec<String> = open.iter().take(NAMED).map(|row| row.id.to_string()).collect();
    let shown: String = wanted.chars().take(100).collect();
    let hint = match ids.len() {
        0 => "no task is open at this checkpoint".to_owned(),
        _ => format!("open at this checkpoint are {}", ids.join(", ")),
    };
    Err(OpError::new(
        ErrorCode::TaskNotFound,
        format!("{shown:?} is not the beginning of exactly one open task"),
    )
    .with_details(&serde_json::json!({ "task_ids": ids }))
    .with_hint(hint))
}
