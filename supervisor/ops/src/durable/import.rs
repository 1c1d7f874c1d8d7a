//! Import: a file that arrives in parts. The file is hostile: every record is checked as it arrives, in bounded memory; the
//! content is validated as a whole at the end, and a state is only accepted after a worker has restored it.

mod bounds;
mod budget;

use super::archive::{
    ArchiveEnd, ArchiveRecord, Chain, CheckpointPart, ExecutionPart, FORMAT, MailPart, PagePart, TaskPart,
    VersionPart,
};
use crate::errors::invalid;
use crate::{Caller, Ops, VerbCall};
pub(super) use bounds::VERSIONS;
use budget::{ImportBudget, ImportReservation};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use uuid::Uuid;
use vm_system_protocol::codec;
use vm_system_protocol::control::{
    ArchiveKind, ErrorCode, ImportBegin, ImportDrop, ImportEnd, ImportPart, ImportedObject, OpError,
    PART_BYTES,
};
use vm_system_protocol::durable::CODE_BYTES;
use vm_system_protocol::input::read_json;
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::Event;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemOutcome, Owner, is_rest};
use vm_system_spawn::libraries::hex;

/// Longest line (bytes): a version with its source and code.
const LINE_BYTES: usize = 16 << 20;
/// A file without further parts is dropped after this time.
const IDLE: Duration = Duration::from_mins(1);
/// Approximate memory of a record besides its content (bytes).
const RECORD_BYTES: usize = 256;

/// Files that are being received.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    staged: Mutex<HashMap<Uuid, Place>>,
    budget: ImportBudget,
}

/// One file in the table.
#[derive(Debug)]
struct Place {
    owner: Owner,
    /// None while a request uses the file.
    staged: Option<Staged>,
}

/// The place in the table of a file that a request uses. Unless the file is put back, it is removed from the table.
struct InUse<'a> {
    imports: &'a Imports,
    id: Uuid,
}

impl InUse<'_> {
    /// The file is continued by a later request, if it was not given up meanwhile.
    fn put_back(self, staged: Staged) {
        if let Some(place) = self.imports.lock().get_mut(&self.id) {
            place.staged = Some(staged);
        }
        std::mem::forget(self);
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        drop(self.imports.lock().remove(&self.id));
    }
}

/// A file that is being received.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) new: ImportBegin,
    pub(super) reader: Reader,
    came: u64,
    touched: Instant,
    reservation: ImportReservation,
}

impl Imports {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Place>> {
        // Nothing under this lock can panic half-way through a change.
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a file out of the table: no other request can continue it meanwhile.
    fn take(&self, caller: &Caller, import: &str) -> Result<(InUse<'_>, Staged), OpError> {
        let missing = || {
            OpError::new(ErrorCode::NotFound, "there is no such import under way")
                .with_hint("files without further parts for a minute are dropped: start again")
        };
        let id = Uuid::try_parse(import).map_err(|_| missing())?;
        let mut all = self.lock();
        let place = all.get_mut(&id).filter(|place| place.owner == caller.owner).ok_or_else(missing)?;
        let staged = place.staged.take().ok_or_else(missing)?;
        Ok((InUse { imports: self, id }, staged))
    }

    /// Identifies repeated imports: a hash of the file and of the import's options.
    pub(crate) fn fingerprint(&self, caller: &Caller, import: &str) -> Result<[u8; 32], OpError> {
        let (in_use, staged) = self.take(caller, import)?;
        let new = codec::encode(&staged.new, CONTROL_FRAME_BYTES).map_err(|error| invalid(error.to_string()));
        let mut hash = Sha256::new_with_prefix(b"import");
        hash.update(staged.reader.chain.hash);
        in_use.put_back(staged);
        hash.update(new?);
        Ok(hash.finalize().into())
    }

    /// Drops a file, if it is still there.
    pub(crate) fn forget(&self, caller: &Caller, import: &str) {
        let Ok(id) = Uuid::try_parse(import) else { return };
        let mut all = self.lock();
        if all.get(&id).is_some_and(|place| place.owner == caller.owner) {
            all.remove(&id);
        }
    }

    /// Drops idle files; returns how many are left.
    fn forget_idle(&self) -> usize {
        let mut staged = self.lock();
        let is_idle = |staged: &Staged| staged.touched.elapsed() >= IDLE;
        staged.retain(|_, place| !place.staged.as_ref().is_some_and(is_idle));
        staged.len()
    }
}

impl Ops {
    #[expect(clippy::unused_async, reason = "as all handlers of verbs")]
    pub(crate) async fn import_begin(
        &self,
        call: &VerbCall<'_>,
        new: ImportBegin,
    ) -> Result<String, OpError> {
        self.check_quota(call)?;
        self.imports.forget_idle();
        let staged = Staged {
            new,
            reader: Reader::new(self.options.ceilings.max_source_kb as usize * 1024, self.store.now()),
            came: 0,
            touched: Instant::now(),
            reservation: self.imports.budget.reserve(&call.caller.owner)?,
        };
        let alone = {
            let mut all = self.imports.lock();
            all.insert(call.subject, Place { owner: call.caller.owner.clone(), staged: Some(staged) });
            all.len() == 1
        };
        if alone {
            tokio::spawn(watch(Arc::downgrade(&self.imports)));
        }
        Ok(call.subject.to_string())
    }

    /// An invalid part ends the import.
    pub(crate) async fn import_part(
        &self,
        call: &VerbCall<'_>,
        ImportPart { import, at, bytes }: ImportPart,
    ) -> Result<String, OpError> {
        let (in_use, mut staged) = self.imports.take(call.caller, &import)?;
        if staged.came != at || bytes.len() > PART_BYTES {
            return Err(invalid(format!("parts of at most {PART_BYTES} bytes must come in order")));
        }
        staged.came += bytes.len() as u64;
        // Not on a thread of the runtime: decoding lines of megabytes takes long, and each record is checked.
        let feed = move || staged.reader.feed(&bytes).map(|()| staged);
        let mut staged = self.checks.blocking(&call.caller.holder(), feed).await??;
        staged.touched = Instant::now();
        staged.reservation.resize(staged.reader.decoded_bytes + staged.reader.rest.capacity())?;
        in_use.put_back(staged);
        Ok(import)
    }

    /// Returns the memory of a file that nobody continues; a part that is being read is the last one.
    #[expect(clippy::unused_async, reason = "as all handlers of verbs")]
    pub(crate) async fn import_drop(
        &self,
        call: &VerbCall<'_>,
        ImportDrop { import }: ImportDrop,
    ) -> Result<String, OpError> {
        self.imports.forget(call.caller, &import);
        Ok(import)
    }

    pub(crate) async fn import_end(
        &self,
        call: &VerbCall<'_>,
        ImportEnd { import }: ImportEnd,
    ) -> Result<ImportedObject, OpError> {
        let (in_use, staged) = self.imports.take(call.caller, &import)?;
        // No other request continues it.
        drop(in_use);
        // The file counts until it is stored.
        let Staged { new, reader, reservation: _reservation, .. } = staged;
        let file = self.checks.blocking(&call.caller.holder(), move || reader.whole()).await??;
        if new.kind.is_some_and(|kind| kind != file.kind) {
            return Err(match file.kind {
                ArchiveKind::Program => invalid("the file contains a program, not an execution"),
                ArchiveKind::Execution => invalid("the file contains an execution, not a program"),
            });
        }
        let result = match file.kind {
            ArchiveKind::Program => self.import_program(call, &new, file).await.map(ImportedObject::Program),
            ArchiveKind::Execution => self.import_run(call, &new, file).await.map(ImportedObject::Run),
        };
        self.audit(call, call.subject, &result).await;
        result
    }
}

/// Drops idle files, as long as there are files.
async fn watch(imports: Weak<Imports>) {
    loop {
        tokio::time::sleep(IDLE).await;
        if imports.upgrade().is_none_or(|imports| imports.forget_idle() == 0) {
            return;
        }
    }
}

/// The content of a file, checked record by record.
#[derive(Debug)]
pub(super) struct ImportFile {
    pub(super) kind: ArchiveKind,
    pub(super) program: String,
    pub(super) versions: Vec<VersionPart>,
    pub(super) execution: Option<ExecutionPart>,
    pub(super) checkpoints: Vec<CheckpointPart>,
    pub(super) tasks: Vec<TaskPart>,
    pub(super) mail: Vec<MailPart>,
    pub(super) events: Vec<Event>,
    /// By page and checkpoint.
    pub(super) pages: BTreeMap<(u64, u64), Option<Vec<u8>>>,
}

/// Reads a file as it arrives.
#[derive(Debug)]
pub(super) struct Reader {
    max_source: usize,
    clock: bounds::ImportTime,
    /// The beginning of a line.
    rest: Vec<u8>,
    line: u64,
    chain: Chain,
    /// Position in the file; see [`rank`].
    rank: u8,
    file: ImportFile,
    begun: bool,
    ended: bool,
    closed: bool,
    /// Approximate memory of the content (bytes).
    decoded_bytes: usize,
}

impl Reader {
    fn new(max_source: usize, now: Timestamp) -> Self {
        Self {
            max_source,
            clock: bounds::ImportTime(now),
            rest: Vec::new(),
            line: 0,
            chain: Chain::default(),
            rank: 0,
            file: ImportFile {
                kind: ArchiveKind::Program,
                program: String::new(),
                versions: Vec::new(),
                execution: None,
                checkpoints: Vec::new(),
                tasks: Vec::new(),
                mail: Vec::new(),
                events: Vec::new(),
                pages: BTreeMap::new(),
            },
            begun: false,
            ended: false,
            closed: false,
            decoded_bytes: 0,
        }
    }

    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), OpError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (part, behind) = bytes.split_at(end);
            bytes = &behind[1..];
            let mut line = std::mem::take(&mut self.rest);
            line.extend_from_slice(part);
            self.take(&line)?;
        }
        self.rest.extend_from_slice(bytes);
        if self.rest.len() > LINE_BYTES {
            return Err(self.wrong("it is too long"));
        }
        Ok(())
    }

    fn wrong(&self, why: &str) -> OpError {
        invalid(format!("line {} of the file: {why}", self.line + 1))
            .with_hint("the file is read line by line: a reformatted file cannot be imported")
    }

    fn take(&mut self, line: &[u8]) -> Result<(), OpError> {
        let line = line.trim_ascii();
        let result = match line {
            b"" => Ok(()),
            _ if self.closed => Err("there is content after the end".to_owned()),
            b"[" if !self.begun => {
                self.begun = true;
                Ok(())
            }
            b"]" if self.ended => {
                self.closed = true;
                Ok(())
            }
            _ if !self.begun => Err("it is not an exported file".to_owned()),
            _ if self.ended => Err("there is content after the end".to_owned()),
            _ => self.record(line.strip_suffix(b",").unwrap_or(line)),
        };
        result.map_err(|why| self.wrong(&why))?;
        self.line += 1;
        Ok(())
    }

    fn record(&mut self, line: &[u8]) -> Result<(), String> {
        let record: ArchiveRecord = read_json("the record", line)?;
        let (rank, once) = rank(&record);
        if rank < self.rank
            || (once && rank == self.rank && rank > 0)
            || (self.chain.records == 0) != (rank == 0)
        {
            return Err("records are out of order".to_owned());
        }
        self.rank = rank;
        if let ArchiveRecord::End(end) = record {
            self.ended = true;
            return self.judge(&end);
        }
        self.chain.add(line);
        // Base64 is a third longer than the bytes that it encodes.
        self.decoded_bytes += RECORD_BYTES + line.len();
        self.keep(record)
    }

    fn judge(&self, end: &ArchiveEnd) -> Result<(), String> {
        if end.records == self.chain.records && end.sha256 == hex(&self.chain.hash) {
            return Ok(());
        }
        Err("the file is damaged: its hash differs from the recorded one".to_owned())
    }

    fn keep(&mut self, record: ArchiveRecord) -> Result<(), String> {
        match record {
            ArchiveRecord::Header(header) => {
                if header.format != FORMAT {
                    return Err(format!(
                        "its format is {}, and only {FORMAT} is supported: a newer vm-system wrote it",
                        header.format
                    ));
                }
                self.file.kind = match header.kind.as_str() {
                    "program" => ArchiveKind::Program,
                    "execution" => ArchiveKind::Execution,
                    other => return Err(format!("{other:?} is not a known kind of file")),
                };
            }
            ArchiveRecord::Program(program) => self.file.program = program.name,
            ArchiveRecord::Version(version) => self.version(version)?,
            ArchiveRecord::Execution(execution) => {
                bounds::execution(self.clock, &execution)?;
                self.file.execution = Some(execution);
            }
            ArchiveRecord::Checkpoint(checkpoint) => {
                bounds::checkpoint(self.clock, &checkpoint)?;
                let last = self.file.checkpoints.last().map_or(0, |last| last.seq);
                if checkpoint.seq <= last {
                    return Err("checkpoints are out of order".to_owned());
                }
                let known =
                    ["start", "effect", "response", "steps", "end"].contains(&checkpoint.cause.as_str());
                if !known && !is_rest(&checkpoint.cause) {
                    return Err(format!("{:?} is not a cause of a checkpoint", checkpoint.cause));
                }
                self.file.checkpoints.push(checkpoint);
            }
            ArchiveRecord::Task(task) => self.task(task)?,
            ArchiveRecord::Mail(mail) => {
                bounds::mail(self.clock, &mail, &self.file.mail)?;
                self.file.mail.push(mail);
            }
            ArchiveRecord::Event(event) => {
                if event.seq != self.file.events.len() as u64 + 1 {
                    return Err("there is a gap in the output".to_owned());
                }
                bounds::event(self.clock, &event)?;
                self.file.events.push(event);
            }
            ArchiveRecord::Page(page) => self.page(page)?,
            ArchiveRecord::End(_) => {}
        }
        Ok(())
    }

    fn version(&mut self, version: VersionPart) -> Result<(), String> {
        if version.source.len() > self.max_source {
            return Err(format!("the source has more than {} bytes", self.max_source));
        }
        bounds::version(self.clock, &version)?;
        if self.file.versions.len() >= bounds::VERSIONS {
            return Err(format!("a program has at most {} versions", bounds::VERSIONS));
        }
        let hash: [u8; 32] = Sha256::digest(version.source.as_bytes()).into();
        if hex(&hash) != version.source_hash {
            return Err("the source does not match its hash".to_owned());
        }
        let is_run = self.file.kind == ArchiveKind::Execution;
        let fits = if is_run {
            let code = version.code.as_ref().map_or(0, |code| code.0.len());
            self.file.versions.is_empty() && (1..=CODE_BYTES).contains(&code)
        } else {
            // Old versions may have been deleted before the export.
            let last = self.file.versions.last().map_or(0, |last| last.version);
            version.code.is_none() && version.version > last
        };
        if !fits {
            return Err("the version is out of order".to_owned());
        }
        self.file.versions.push(version);
        Ok(())
    }

    fn task(&mut self, task: TaskPart) -> Result<(), String> {
        let is_behind = |last: &TaskPart| match (&last.item, &task.item) {
            (None, None) => last.checkpoint < task.checkpoint && last.ended_at.is_some(),
            (Some(before), Some(item)) => before.number < item.number,
            // Pauses come first.
            (last, _) => last.is_none(),
        };
        if !self.file.tasks.last().is_none_or(is_behind) {
            return Err("tasks are out of order".to_owned());
        }
        let outcome = task.outcome.as_deref().map(ItemOutcome::from_text);
        let known = outcome.is_none_or(|outcome| outcome.is_some());
        if !known || task.ended_at.is_some() != outcome.is_some() {
            return Err("it is not a task of this execution".to_owned());
        }
        bounds::task(self.clock, &task)?;
        self.file.tasks.push(task);
        Ok(())
    }

    fn page(&mut self, page: PagePart) -> Result<(), String> {
        let newest = self.file.checkpoints.last().map_or(0, |last| last.seq);
        let version = (page.page, page.checkpoint);
        let behind = self.file.pages.last_key_value().is_none_or(|(last, _)| *last < version);
        if !behind || page.page >= bounds::PAGE_END || !(1..=newest).contains(&page.checkpoint) {
            return Err("pages are out of order, or belong to no checkpoint".to_owned());
        }
        let bytes = page.bytes.map(|bytes| bytes.0);
        if bytes.as_ref().is_some_and(Vec::is_empty) {
            return Err("a page is empty".to_owned());
        }
        self.file.pages.insert(version, bytes);
        Ok(())
    }

    /// The file, if it is complete.
    fn whole(mut self) -> Result<ImportFile, OpError> {
        let rest = std::mem::take(&mut self.rest);
        self.take(&rest)?;
        if !self.closed {
            return Err(invalid("the file is incomplete: its end is missing"));
        }
        Ok(self.file)
    }
}

/// The position of a kind of record in a file, and whether it occurs once.
fn rank(record: &ArchiveRecord) -> (u8, bool) {
    match record {
        ArchiveRecord::Header(_) => (0, true),
        ArchiveRecord::Program(_) => (1, true),
        ArchiveRecord::Version(_) => (2, false),
        ArchiveRecord::Execution(_) => (3, true),
        ArchiveRecord::Checkpoint(_) => (4, false),
        ArchiveRecord::Task(_) => (5, false),
        ArchiveRecord::Mail(_) => (6, false),
        ArchiveRecord::Event(_) => (7, false),
        ArchiveRecord::Page(_) => (8, false),
        ArchiveRecord::End(_) => (9, true),
    }
}

#[cfg(test)]
mod tests;
