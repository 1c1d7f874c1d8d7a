//! Programs: sources that were compiled and kept.

use super::checked_name;
use crate::ops::errors::{invalid, stored};
use crate::ops::{Call, LIST_ROWS, Ops, fitting, now};
use crate::store::{NewProgramVersion, Page, ProgramRow, Scope, Write};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use vm_system_protocol::control::{DurableReply, ErrorCode, OpError};
use vm_system_protocol::ids::ProgramId;
use vm_system_protocol::model::{Diagnostic, Program};

/// Format of compiled code as it is recorded; the code itself says which version of it it has.
const CODE_FORMAT: u32 = 1;
/// The same, of the built-in program that walks through a plan: whoever starts one need not read its source to know.
pub(super) const WALK_FORMAT: u32 = 2;

impl Ops {
    pub(super) async fn program_load(
        &self,
        call: &Call<'_>,
        name: &str,
        source: String,
        typescript: Option<bool>,
    ) -> Result<DurableReply, OpError> {
        let name = checked_name("program", name)?.to_owned();
        let most = self.options.ceilings.max_source_kb as usize * 1024;
        if source.len() > most {
            return Err(invalid(format!(
                "the source has {} bytes, at most {most} are allowed",
                source.len()
            )));
        }
        self.has_room()?;
        let compiled = self.durables()?.compile(source.clone(), name.clone(), typescript).await?;
        let code = compiled.map_err(|diagnostics| compile_error(&name, &diagnostics))?;
        let owner = call.caller.owner.clone();
        let format = if crate::plans::walks(&source) { WALK_FORMAT } else { CODE_FORMAT };
        let version = NewProgramVersion {
            owner: owner.clone(),
            id: ProgramId::from_uuid(call.subject),
            name: name.clone(),
            source_hash: Sha256::digest(source.as_bytes()).into(),
            source,
            format,
            code,
            at: now(),
        };
        let result = self.store.apply(Write::ProgramVersion(Box::new(version))).await.map_err(stored);
        self.audit(call, "program load", &name, &result).await;
        result?;
        let row = self.store.program_by_name(&Scope::Owner(owner), &name).await.map_err(stored)?;
        let row =
            row.ok_or_else(|| OpError::new(ErrorCode::Conflict, "the program was deleted meanwhile"))?;
        Ok(DurableReply::Program(Box::new(shown(*row, None))))
    }

    pub(super) async fn program_list(&self, call: &Call<'_>) -> Result<DurableReply, OpError> {
        let rows = self.store.programs(&call.caller.scope(), Page::first(LIST_ROWS)).await.map_err(stored)?;
        let programs = rows.into_iter().map(|row| shown(row, None));
        Ok(DurableReply::Programs(fitting(programs, |program| 256 + program.name.len())))
    }

    pub(super) async fn program_get(
        &self,
        call: &Call<'_>,
        reference: &str,
    ) -> Result<DurableReply, OpError> {
        let row = self.program(call, reference).await?;
        let code = self.store.program_code(row.id, row.version).await.map_err(stored)?;
        Ok(DurableReply::Program(Box::new(shown(row, code.map(|code| code.source)))))
    }

    pub(super) async fn program_delete(
        &self,
        call: &Call<'_>,
        reference: &str,
    ) -> Result<DurableReply, OpError> {
        let row = self.program(call, reference).await?;
        let result = self.store.apply(Write::ProgramDelete { id: row.id, at: now() }).await.map_err(stored);
        self.durables()?.program_deleted(row.id);
        self.audit(call, "program delete", row.id, &result).await;
        result?;
        Ok(DurableReply::Program(Box::new(shown(row, None))))
    }
}

fn shown(row: ProgramRow, source: Option<String>) -> Program {
    let mut source_hash = String::with_capacity(64);
    for byte in row.source_hash {
        let _ = write!(source_hash, "{byte:02x}");
    }
    Program {
        id: row.id,
        name: row.name,
        version: row.version,
        source_hash,
        format: row.format,
        created_at: row.created_at,
        modified_at: row.modified_at,
        source,
    }
}

fn compile_error(name: &str, diagnostics: &[Diagnostic]) -> OpError {
    let first = diagnostics.first();
    let place = first.map_or_else(
        || format!("{name} cannot be compiled"),
        |first| format!("{name}:{}:{}: {}", first.line, first.column, first.message),
    );
    let error = OpError::new(ErrorCode::CompileError, place).with_details(&serde_json::json!({
        "diagnostics": diagnostics,
        "line": first.map(|first| first.line),
        "column": first.map(|first| first.column),
        "snippet": first.map(|first| first.snippet.as_str()),
    }));
    match first.filter(|first| !first.snippet.is_empty()) {
        Some(first) => {
            let caret = " ".repeat(first.column.saturating_sub(1).min(200) as usize);
            error.with_hint(format!("\n  {}\n  {caret}^", first.snippet.trim_end()))
        }
        None => error,
    }
}
