//! Export: the file of a program or an execution in parts; each part begins where the previous one ended. No state is
//! kept between requests.

use super::archive::{
    ArchiveRecord, Bytes, Chain, CheckpointPart, ExecutionPart, FORMAT, Header, ItemPart, MailPart, PagePart,
    ProgramPart, Sheet, TaskPart, VersionPart,
};
use super::import::VERSIONS;
use crate::errors::{invalid, not_found, stored};
use crate::{Ops, VerbCall, now};
use vm_system_protocol::control::{
    ArchiveExport, ArchiveKind, ErrorCode, ExportCursor, ExportPart, ExportPlace, OpError, PART_BYTES,
};
use vm_system_protocol::ids::{ExecutionId, ProgramId};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::ExecutionStatus;
use vm_system_record::{Entity, ITEMS_FROM, ItemOutcome, ItemRow, RunRow, Scope};
use vm_system_spawn::libraries::hex;

/// Tasks or events per query.
const ROWS: u32 = 256;

/// Where the next part begins; none at the end.
type Next = Option<ExportPlace>;

impl Ops {
    pub(crate) async fn archive_export(
        &self,
        call: &VerbCall<'_>,
        ArchiveExport { kind, reference, after }: ArchiveExport,
    ) -> Result<ExportPart, OpError> {
        // The name may belong to another one by now.
        let known = after.as_ref().map(|after| match kind {
            ArchiveKind::Program => ProgramId::from_bytes(after.id).to_string(),
            ArchiveKind::Execution => ExecutionId::from_bytes(after.id).to_string(),
        });
        let reference = known.as_deref().unwrap_or(&reference);
        let mut sheet = Sheet::default();
        let mut checkpoint = 0;
        let mut place = None;
        if let Some(after) = after {
            sheet.chain = Chain { hash: after.chain, records: after.records };
            (checkpoint, place) = (after.checkpoint, Some(after.place));
        }
        let (id, next) = match kind {
            ArchiveKind::Program => self.export_program(call, reference, place, &mut sheet).await?,
            ArchiveKind::Execution => {
                let run = self.run(call, reference).await?;
                let next = match place {
                    None => self.export_begin(call, &run, &mut checkpoint, &mut sheet).await?,
                    Some(place) => self.export_more(call, &run, checkpoint, place, &mut sheet).await?,
                };
                (*run.row.execution.id.as_bytes(), next)
            }
        };
        if next.is_none() {
            sheet.end().map_err(|error| unwritable(&error))?;
        }
        let (chain, records) = (sheet.chain.hash, sheet.chain.records);
        let next = next.map(|place| ExportCursor { id, checkpoint, chain, records, place });
        Ok(ExportPart { text: sheet.text, next })
    }

    async fn export_program(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        place: Option<ExportPlace>,
        sheet: &mut Sheet,
    ) -> Result<([u8; 16], Next), OpError> {
        let program = self.program(call, reference).await?;
        let mut version = 0;
        if let Some(ExportPlace::Versions(last)) = place {
            version = last;
        } else {
            put(sheet, &header("program"))?;
            put(sheet, &ArchiveRecord::Program(ProgramPart { name: program.name.clone() }))?;
        }
        // Old versions may have been deleted, even since the previous part; an import accepts a bounded number, the newest ones.
        let kept = self
            .reads_of(call.caller)
            .program_versions(program.id, None, VERSIONS as u32)
            .await
            .map_err(stored)?;
        let mut more = false;
        for row in kept.into_iter().rev() {
            if row.version <= version {
                continue;
            }
            more = sheet.text.len() >= PART_BYTES;
            if more {
                break;
            }
            version = row.version;
            if let Some(mut part) = self.version_part(call, program.id, version).await? {
                part.code = None;
                put(sheet, &ArchiveRecord::Version(part))?;
            }
        }
        Ok((*program.id.as_bytes(), more.then_some(ExportPlace::Versions(version))))
    }

    async fn version_part(
        &self,
        call: &VerbCall<'_>,
        program: ProgramId,
        version: u32,
    ) -> Result<Option<VersionPart>, OpError> {
        let code = self.reads_of(call.caller).program_code(program, version).await.map_err(stored)?;
        let below = version.saturating_add(1);
        let rows =
            self.reads_of(call.caller).program_versions(program, Some(below), 1).await.map_err(stored)?;
        let row = rows.first().filter(|row| row.version == version);
        let (Some(code), Some(row)) = (code, row) else { return Ok(None) };
        Ok(Some(VersionPart {
            version,
            source: code.source,
            source_hash: hex(&row.source_hash),
            created_at: row.created_at,
            format: code.format,
            code: Some(Bytes(code.code)),
        }))
    }

    /// The single records: the program, the execution, the list of its checkpoints.
    async fn export_begin(
        &self,
        call: &VerbCall<'_>,
        run: &RunRow,
        last: &mut u64,
        sheet: &mut Sheet,
    ) -> Result<Next, OpError> {
        let execution = &run.row.execution;
        if execution.status == ExecutionStatus::Running {
            let message = "the execution runs: its state can be exported when it waits or has ended";
            return Err(OpError::new(ErrorCode::SessionBusy, message).with_hint("try again later"));
        }
        let checkpoints = self.reads_of(call.caller).checkpoints(execution.id).await.map_err(stored)?;
        let numbers: Vec<u64> = checkpoints.iter().map(|row| row.seq).collect();
        // An import restores each of them: a file with one that no worker can restore would be of no use.
        self.durables()?.verify_all_stored(execution.id, &numbers).await?.map_err(|(seq, why)| {
            invalid(format!(
                "the stored state of checkpoint {seq} is damaged, and a file with it cannot be imported: {why}"
            ))
            .with_hint(
                "a branch at a sound checkpoint can be exported: `vm-system program fork … --checkpoint N`",
            )
        })?;
        put(sheet, &header("execution"))?;
        let name = run.program_name.clone().unwrap_or_else(|| run.program.to_string());
        put(sheet, &ArchiveRecord::Program(ProgramPart { name }))?;
        let version = self.version_part(call, run.program, run.version).await?;
        let version = version.ok_or_else(|| not_found(Entity::Program, &run.program.to_string()))?;
        put(sheet, &ArchiveRecord::Version(version))?;
        put(
            sheet,
            &ArchiveRecord::Execution(ExecutionPart {
                id: execution.id.to_string(),
                name: run.row.name.clone(),
                status: execution.status,
                args: execution.args.clone(),
                env: execution.env.clone(),
                started_at: execution.started_at,
                ended_at: execution.ended_at,
                result: execution.result.as_ref().and_then(|result| result.json.clone()),
                error: execution.error.clone(),
                metrics: execution.metrics,
            }),
        )?;
        for row in checkpoints {
            *last = row.seq;
            put(
                sheet,
                &ArchiveRecord::Checkpoint(CheckpointPart { seq: row.seq, at: row.at, cause: row.cause }),
            )?;
        }
        Ok(Some(ExportPlace::Tasks(0)))
    }

    async fn export_more(
        &self,
        call: &VerbCall<'_>,
        run: &RunRow,
        last: u64,
        place: ExportPlace,
        sheet: &mut Sheet,
    ) -> Result<Next, OpError> {
        let id = run.row.execution.id;
        match place {
            ExportPlace::Versions(_) | ExportPlace::Tasks(_) => {
                let after = if let ExportPlace::Tasks(after) = place { after } else { 0 };
                let rows = self.reads_of(call.caller).items_of_run(id, after, ROWS).await.map_err(stored)?;
                let mut next = ExportPlace::Events(0);
                for row in rows {
                    if sheet.text.len() >= PART_BYTES {
                        return Ok(Some(next));
                    }
                    next = ExportPlace::Tasks(row.item);
                    put(sheet, &ArchiveRecord::Task(task_part(row)))?;
                }
                if matches!(next, ExportPlace::Events(_)) {
                    // At most 1 000, of 1 MiB together.
                    for mail in self.reads_of(call.caller).mailbox(id).await.map_err(stored)? {
                        let event = JsonText::from_untrusted(mail.event);
                        put(sheet, &ArchiveRecord::Mail(MailPart { name: mail.name, event, at: mail.at }))?;
                    }
                }
                Ok(Some(next))
            }
            ExportPlace::Events(after) => {
                let events = self.reads_of(call.caller).events(id, after, ROWS).await.map_err(stored)?;
                let mut next = ExportPlace::Pages(0, 0);
                for event in events {
                    if sheet.text.len() >= PART_BYTES {
                        return Ok(Some(next));
                    }
                    next = ExportPlace::Events(event.seq);
                    put(sheet, &ArchiveRecord::Event(event))?;
                }
                Ok(Some(next))
            }
            ExportPlace::Pages(page, checkpoint) => {
                // Checkpoints count from 1.
                let after = Some((page, checkpoint));
                let rows = self
                    .reads_of(call.caller)
                    .page_versions(id, after, PART_BYTES / 4 * 3)
                    .await
                    .map_err(stored)?;
                let next = rows.last().map(|(page, checkpoint, _)| ExportPlace::Pages(*page, *checkpoint));
                for (page, checkpoint, bytes) in rows.into_iter().filter(|row| row.1 <= last) {
                    let bytes = bytes.map(Bytes);
                    put(sheet, &ArchiveRecord::Page(PagePart { page, checkpoint, bytes }))?;
                }
                if next.is_none() {
                    self.is_unchanged(call, run, last).await?;
                }
                Ok(next)
            }
        }
    }

    /// Pages are deleted only with their checkpoints: a checkpoint that still exists was complete all the time.
    async fn is_unchanged(&self, call: &VerbCall<'_>, run: &RunRow, last: u64) -> Result<(), OpError> {
        let newest =
            self.reads_of(call.caller).last_checkpoint(run.row.execution.id).await.map_err(stored)?;
        // An answer that is stored alone adds no checkpoint.
        let row =
            self.reads_of(call.caller).execution(&Scope::All, run.row.execution.id).await.map_err(stored)?;
        // It is being deleted: the pages were read after some of them were gone.
        let row = row.ok_or_else(|| not_found(Entity::Execution, &run.row.execution.id.to_string()))?;
        let runs = row.execution.status == ExecutionStatus::Running;
        if !runs && newest.first().map_or(0, |row| row.seq) == last {
            return Ok(());
        }
        let message = "the execution continued while it was exported: the file is incomplete";
        Err(OpError::new(ErrorCode::SessionBusy, message).with_hint("try again"))
    }
}

fn header(kind: &str) -> ArchiveRecord {
    ArchiveRecord::Header(Header {
        kind: kind.to_owned(),
        format: FORMAT,
        writer: format!("vm-system {}", env!("CARGO_PKG_VERSION")),
        exported_at: now(),
    })
}

fn task_part(row: ItemRow) -> TaskPart {
    TaskPart {
        item: (!row.is_pause()).then(|| ItemPart {
            number: row.item - ITEMS_FROM,
            kind: row.kind.as_str().to_owned(),
            name: row.name,
            answer_seq: row.answer_seq,
            taken_at: row.taken_at,
        }),
        prompt: row.prompt,
        schema: row.schema.map(JsonText::from_untrusted),
        attempts: row.attempts,
        created_at: row.created_at,
        deadline: row.deadline,
        ended_at: row.ended_at,
        outcome: row.outcome.map(|outcome| ItemOutcome::as_str(outcome).to_owned()),
        answer: row.answer,
        checkpoint: row.checkpoint,
        retries: row.retries,
        fallback: row.fallback.map(JsonText::from_untrusted),
        first_attempt_at: row.first_attempt_at,
        last_attempt_at: row.last_attempt_at,
    }
}

fn put(sheet: &mut Sheet, record: &ArchiveRecord) -> Result<(), OpError> {
    sheet.put(record).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> OpError {
    tracing::error!(%error, "a stored document cannot be written");
    OpError::new(ErrorCode::Internal, "a stored document cannot be written")
}
