//! Verbs of programs: sources that were compiled and stored.

use super::checked_name;
use crate::errors::{invalid, stored};
use crate::{Caller, LIST_ROWS, Ops, VerbCall, fitting, idempotency, page};
use sha2::{Digest as _, Sha256};
use vm_system_protocol::control::{
    ErrorCode, OpError, ProgramDelete, ProgramGet, ProgramList, ProgramLoad, ProgramVersions,
};
use vm_system_protocol::ids::ProgramId;
use vm_system_protocol::model::{Diagnostic, Program, ProgramVersion};
use vm_system_protocol::program_source;
use vm_system_record::{NewProgramVersion, Owner, ProgramQuery, ProgramRow, Scope, Write};
use vm_system_runtime::CompiledSource;
use vm_system_spawn::libraries::hex;

/// The recorded format of compiled code; the code itself contains its version.
const CODE_FORMAT: u32 = 1;
/// The recorded format of the built-in program that walks through a plan: callers can recognize it without its source.
pub(super) const WALK_FORMAT: u32 = 2;

/// Whether a name is that of a file with TypeScript (true) or JavaScript (false).
fn language_of(name: &str) -> Option<bool> {
    match name.rsplit_once('.')?.1 {
        "ts" | "mts" | "cts" => Some(true),
        "js" | "mjs" | "cjs" => Some(false),
        _ => None,
    }
}

/// The name of the source's file, if the client names none: the last part of the program's name.
fn file_of(program: &str) -> String {
    let last = program.rsplit('/').next().unwrap_or_default();
    let last = if matches!(last, "" | "." | "..") { "program" } else { last };
    last.to_owned()
}

/// The recorded format for a source.
pub(super) fn format_of(source: &str) -> u32 {
    if crate::plans::walks(source) { WALK_FORMAT } else { CODE_FORMAT }
}

/// Most digits of the number of a version in an error.
const SHOWN_DIGITS: usize = 40;

impl Ops {
    pub(crate) async fn program_load(
        &self,
        call: &VerbCall<'_>,
        text: ProgramLoad,
    ) -> Result<Program, OpError> {
        let name = checked_name("program", &text.name)?.to_owned();
        // A source in a named file may import itself.
        let has_files = text.file.is_some() || !text.files.is_empty();
        let file = text.file.unwrap_or_else(|| file_of(&name));
        let typescript = text.typescript.or_else(|| language_of(&file));
        let source = if has_files {
            let joined = program_source::joined(&file, &text.source, text.files);
            joined.map_err(|error| invalid(error.to_string()))?
        } else {
            text.source
        };
        let most = self.options.ceilings.max_source_kb as usize * 1024;
        if source.len() > most {
            return Err(invalid(format!(
                "the source has {} bytes, at most {most} are allowed",
                source.len()
            )));
        }
        self.check_quota(call)?;
        let owner = call.caller.owner.clone();
        let compiled = self.durables()?.compile(source.clone(), name.clone(), typescript, &owner).await?;
        let CompiledSource { code, typescript } =
            compiled.map_err(|diagnostics| compile_error(&name, &diagnostics))?;
        let format = format_of(&source);
        let version = NewProgramVersion {
            owner: owner.clone(),
            id: ProgramId::from_uuid(call.subject),
            name: name.clone(),
            source_hash: Sha256::digest(source.as_bytes()).into(),
            source,
            format,
            code,
            at: self.store.now(),
        };
        let result =
            self.store_of(call).apply(Write::ProgramVersion(Box::new(version))).await.map_err(stored);
        self.audit(call, &name, &result).await;
        result?;
        let row = self.store.program_by_name(&Scope::Owner(owner), &name).await.map_err(stored)?;
        let row =
            row.ok_or_else(|| OpError::new(ErrorCode::Conflict, "the program was deleted in the meantime"))?;
        let program = Program { typescript: Some(typescript), ..shown(call.caller, *row, None) };
        Ok(program)
    }

    /// Compiles the source of an export, which does not say its language.
    pub(super) async fn compile_exported(
        &self,
        source: &str,
        name: &str,
        owner: &Owner,
    ) -> Result<Vec<u8>, OpError> {
        let compile = |typescript| async move {
            self.durables()?
                .compile(source.to_owned(), name.to_owned(), typescript, owner)
                .await
                .map_err(OpError::from)
        };
        let diagnostics = match compile(None).await? {
            Ok(compiled) => return Ok(compiled.code),
            Err(diagnostics) => diagnostics,
        };
        let typescript = compile(Some(true)).await?;
        typescript.map(|compiled| compiled.code).map_err(|_| compile_error(name, &diagnostics))
    }

    pub(crate) async fn program_list(
        &self,
        call: &VerbCall<'_>,
        filter: ProgramList,
    ) -> Result<Vec<Program>, OpError> {
        let page = page(filter.page, LIST_ROWS)?;
        let scope = call.caller.scope_of(filter.owner.as_deref())?;
        let name = filter.name.map(|name| name.trim().to_owned());
        let query = ProgramQuery { name, period: filter.period };
        let rows = self.store.programs(&scope, &query, page).await.map_err(stored)?;
        let programs = rows.into_iter().map(|row| shown(call.caller, row, None));
        Ok(fitting(programs, |program| 256 + program.name.len()))
    }

    pub(crate) async fn program_get(
        &self,
        call: &VerbCall<'_>,
        ProgramGet { program: reference, version }: ProgramGet,
    ) -> Result<Program, OpError> {
        let row = self.program(call, &reference).await?;
        let wanted = version.unwrap_or(row.version);
        let code = self.reads_of(call.caller).program_code(row.id, wanted).await.map_err(stored)?;
        let code = code.ok_or_else(|| no_version(&row.name, wanted))?;
        let mut program = shown(call.caller, row, Some(code.source));
        if wanted != program.version {
            let below = wanted.saturating_add(1);
            let rows = self
                .reads_of(call.caller)
                .program_versions(program.id, Some(below), 1)
                .await
                .map_err(stored)?;
            let found = rows.first().ok_or_else(|| no_version(&program.name, wanted))?;
            program.version = found.version;
            program.source_hash = hex(&found.source_hash);
            program.format = found.format;
            program.modified_at = found.created_at;
        }
        Ok(program)
    }

    /// The version of a program that `NAME@VERSION` means, as a row; without a version the newest one. A program with exactly this name
    /// is meant first.
    pub(super) async fn program_at(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<ProgramRow, OpError> {
        let named = reference.trim().rsplit_once('@').and_then(|(program, version)| {
            let digits = !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit());
            digits.then_some((program, version))
        });
        let Some((program, version)) = named else { return self.program(call, reference).await };
        // As everywhere, a whole id comes before a name.
        if program.parse::<ProgramId>().is_err() {
            match self.program(call, reference).await {
                Err(error) if error.code == ErrorCode::ProgramNotFound => {}
                found => return found,
            }
        }
        let newest = self.program(call, program).await?;
        // No version has a number beyond.
        let Ok(version) = version.parse::<u32>() else {
            let shown: String = version.chars().take(SHOWN_DIGITS).collect();
            return Err(no_version(&newest.name, shown));
        };
        let below = version.saturating_add(1);
        let rows =
            self.reads_of(call.caller).program_versions(newest.id, Some(below), 1).await.map_err(stored)?;
        let found = rows.into_iter().find(|row| row.version == version);
        let row = found.ok_or_else(|| no_version(&newest.name, version))?;
        Ok(ProgramRow { version, source_hash: row.source_hash, format: row.format, ..newest })
    }

    /// A version's position in the list is its number: loading adds before the first one.
    pub(crate) async fn program_versions(
        &self,
        call: &VerbCall<'_>,
        ProgramVersions { program: reference, page: list }: ProgramVersions,
    ) -> Result<Vec<ProgramVersion>, OpError> {
        let page = page(list, LIST_ROWS)?;
        let below = page.after.map(|place| u32::try_from(u128::from_be_bytes(place.id)).unwrap_or(u32::MAX));
        let program = self.program(call, &reference).await?.id;
        let rows =
            self.reads_of(call.caller).program_versions(program, below, page.limit).await.map_err(stored)?;
        let shown = rows.into_iter().map(|row| ProgramVersion {
            version: row.version,
            source_hash: hex(&row.source_hash),
            format: row.format,
            created_at: row.created_at,
        });
        Ok(shown.collect())
    }

    pub(crate) async fn program_delete(
        &self,
        call: &VerbCall<'_>,
        ProgramDelete { program: reference }: ProgramDelete,
    ) -> Result<Program, OpError> {
        let row = self.program(call, &reference).await?;
        let id = row.id;
        let reply = shown(call.caller, row, None);
        let response = idempotency::response::<ProgramDelete>(call, &reply);
        let batch: Vec<Write> =
            [Write::ProgramDelete { id, at: self.store.now() }].into_iter().chain(response).collect();
        let result = self.store_of(call).apply(batch).await.map_err(stored);
        self.audit(call, id, &result).await;
        result?;
        self.durables()?.program_deleted(id);
        Ok(reply)
    }
}

fn no_version(name: &str, version: impl std::fmt::Display) -> OpError {
    OpError::new(ErrorCode::ProgramNotFound, format!("program {name:?} has no version {version}"))
        .with_hint("`vm-system program versions` lists the existing versions")
}

fn shown(caller: &Caller, row: ProgramRow, source: Option<String>) -> Program {
    Program {
        id: row.id,
        name: row.name,
        version: row.version,
        source_hash: hex(&row.source_hash),
        format: row.format,
        created_at: row.created_at,
        modified_at: row.modified_at,
        source,
        typescript: None,
        owner: caller.shown_owner(&row.owner),
    }
}

pub(super) fn compile_error(name: &str, diagnostics: &[Diagnostic]) -> OpError {
    let first = diagnostics.first();
    let place = first.map_or_else(
        || format!("{name} cannot be compiled"),
        |first| {
            let file = first.file.as_deref().unwrap_or(name);
            format!("{file}:{}:{}: {}", first.line, first.column, first.message)
        },
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
