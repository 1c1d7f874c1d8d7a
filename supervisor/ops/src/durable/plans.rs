//! Verbs of plans: compiling one, and the built-in program that walks through one. `crate::plans` owns the grammar; here are
//! permissions, bounds, and which blocks earlier walks have finished.

use crate::errors::{invalid, stored};
use crate::plans::{self, Plan};
use crate::{Ops, VerbCall};
use std::collections::{BTreeSet, HashMap};
use vm_system_protocol::control::{CompiledPlan, ErrorCode, OpError, PlanCheck, PlanLoad, ProgramLoad};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{EventPayload, Program};
use vm_system_record::{Page, ProgramRow, RunQuery, RunRow};

/// Earlier walks to look at.
const WALKS: u32 = 20;
/// Events to read of each walk.
const EVENTS: usize = 10_000;
/// Events per query.
const EVENTS_AT_A_TIME: u32 = 200;
/// The environment variable with the finished blocks.
const PLAN_DONE: &str = "PLAN_DONE";

impl Ops {
    /// Compiles a plan; stores nothing.
    pub(crate) async fn plan_check(
        &self,
        call: &VerbCall<'_>,
        text: PlanCheck,
    ) -> Result<CompiledPlan, OpError> {
        let parts = text.parts.iter().map(|(name, text)| name.len() + text.len()).sum::<usize>();
        let bytes = text.file.len() + text.text.len() + parts;
        if bytes > plans::PLAN_BYTES || text.parts.len() > plans::MOST_FILES {
            return Err(invalid(format!(
                "a plan has at most {} files and {} bytes in all",
                plans::MOST_FILES,
                plans::PLAN_BYTES
            )));
        }
        if text
            .parts
            .iter()
            .map(|(name, _)| name)
            .chain([&text.file])
            .any(|name| name.len() > plans::FILE_NAME_BYTES)
        {
            return Err(invalid(format!(
                "the name of a file of a plan has at most {} bytes",
                plans::FILE_NAME_BYTES
            )));
        }
        let compile = move || {
            let mut parts: HashMap<String, String> = text.parts.into_iter().collect();
            let plan = plans::compile(&text.file, &text.text, |name| parts.remove(name))
                .map_err(|wrong| OpError::new(ErrorCode::PlanInvalid, wrong.to_string()))?;
            let value = serde_json::to_value(&plan).map_err(|error| {
                OpError::new(ErrorCode::Internal, format!("the plan has no JSON form: {error}"))
            })?;
            let json = JsonText::from_value(&value);
            if json.as_str().len() > plans::COMPILED_BYTES {
                return Err(OpError::new(ErrorCode::PlanInvalid, plans::too_large()));
            }
            Ok(CompiledPlan {
                valid: true,
                blocks: u32::try_from(plan.blocks.len()).unwrap_or(u32::MAX),
                block_ids: plan.blocks.into_iter().map(|block| block.id).collect(),
                plan: json,
            })
        };
        let compiled = self.checks.blocking(&call.caller.holder(), compile).await??;
        Ok(compiled)
    }

    pub(crate) async fn plan_load(
        &self,
        call: &VerbCall<'_>,
        PlanLoad { name, plan, done }: PlanLoad,
    ) -> Result<Program, OpError> {
        if plan.len() > plans::COMPILED_BYTES {
            return Err(invalid(format!("a compiled plan has at most {} bytes", plans::COMPILED_BYTES)));
        }
        if let Some(id) = done.iter().find(|id| !plans::is_block_id(id)) {
            return Err(invalid(format!("{id:?} is not the id of a block")));
        }
        let source = move || {
            let plan = Plan::from_json(&plan).filter(|plan| !plan.blocks.is_empty())?;
            Some(plans::executor(&plan, &done))
        };
        let source = self.checks.blocking(&call.caller.holder(), source).await?.ok_or_else(|| {
            OpError::new(ErrorCode::PlanInvalid, "this is not a compiled plan")
                .with_hint("compile one: parsePlan, or `vm-system program plan FILE`")
        })?;
        let text = ProgramLoad { name, source, typescript: Some(false), ..ProgramLoad::default() };
        self.program_load(call, text).await
    }

    /// Sets which blocks are finished: those that were when its program was loaded, and those that earlier walks through
    /// a plan of the same mission have logged as done. A value from the caller is kept.
    pub(super) async fn remember_done(
        &self,
        call: &VerbCall<'_>,
        program: &ProgramRow,
        env: &mut Vec<(String, String)>,
    ) -> Result<(), OpError> {
        if env.iter().any(|(name, _)| name == PLAN_DONE) {
            return Ok(());
        }
        let Some((plan, done)) = self.walked(call, program, program.version).await? else { return Ok(()) };
        let mut done: BTreeSet<String> = done.into_iter().collect();
        let walks = self
            .store
            .runs(
                &call.caller.scope(),
                &RunQuery { program: Some(program.id), ..RunQuery::default() },
                Page::first(WALKS),
            )
            .await;
        let mut same = HashMap::from([(program.version, true)]);
        for RunRow { row, version, .. } in walks.map_err(stored)? {
            let counts = if let Some(counts) = same.get(&version) {
                *counts
            } else {
                let other = self.walked(call, program, version).await?;
                let counts = other.is_some_and(|(other, _)| other.mission == plan.mission);
                same.insert(version, counts);
                counts
            };
            if counts {
                self.logged_done(call, row.execution.id, &mut done).await?;
            }
        }
        let known: BTreeSet<&str> = plan.blocks.iter().map(|block| block.id.as_str()).collect();
        done.retain(|id| known.contains(id.as_str()));
        if !done.is_empty() {
            env.push((PLAN_DONE.to_owned(), serde_json::json!(done).to_string()));
        }
        Ok(())
    }

    /// Adds the blocks that a walk has logged as done.
    async fn logged_done(
        &self,
        call: &VerbCall<'_>,
        walk: ExecutionId,
        done: &mut BTreeSet<String>,
    ) -> Result<(), OpError> {
        let (mut last, mut seen) = (0, 0);
        while seen < EVENTS {
            let events =
                self.reads_of(call.caller).events(walk, last, EVENTS_AT_A_TIME).await.map_err(stored)?;
            let Some(newest) = events.last() else { break };
            last = newest.seq;
            seen += events.len();
            done.extend(events.iter().filter_map(|event| match &event.payload {
                EventPayload::Console { text, .. } => plans::done_in(text).map(str::to_owned),
                _ => None,
            }));
        }
        Ok(())
    }

    /// The plan of a version of a program, and the blocks that were finished when it was loaded.
    async fn walked(
        &self,
        call: &VerbCall<'_>,
        program: &ProgramRow,
        version: u32,
    ) -> Result<Option<(Plan, Vec<String>)>, OpError> {
        let code = self.reads_of(call.caller).program_code(program.id, version).await.map_err(stored)?;
        let Some(code) = code.filter(|code| plans::walks(&code.source)) else { return Ok(None) };
        self.checks.blocking(&call.caller.holder(), move || plans::walked(&code.source)).await
    }
}
