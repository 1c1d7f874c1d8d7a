//! State as numbered pages: the frame page, pages of heap cells, chunks of long contents.
//!
//! Owns: the pages that changed since a checkpoint, and restoring a state from pages. Page 0 holds everything outside the heap
//! and is written each time; page `1 + n` holds the cells `64 n …` that differ from the base; a chunk of cell `id` has
//! the number `CHUNK_BIT | id << 24 | chunk`. An empty page is to be removed.

use super::cells::{self, ChunkSink, ChunkSource};
use super::codec::{ByteReader, ByteWriter};
use super::{FormatError, frame, unframe, verify_state};
use crate::heap::{Cell, Heap, PAGE_CELLS, StrCell};
use crate::outcome::PendingRequest;
use crate::program::CompiledProgram;
use crate::state::{Back, Frame, PendingJob, RunPhase, VmLimitKind, VmLimits, VmState};
use crate::value::{Id, Value};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Magic of a page.
const MAGIC: [u8; 2] = *b"CP";
/// Set in the numbers of chunks.
const CHUNK_BIT: u64 = 1 << 62;
/// Larger checkpoint numbers are refused.
const MOST_CHECKPOINTS: u64 = 1 << 60;
/// Chunks of one cell.
const MAX_CHUNKS: u64 = 1 << 24;

/// A page: its number and its bytes; empty bytes mean that the page is to be removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VmPage {
    /// Number
    pub number: u64,
    /// Opaque bytes
    pub bytes: Vec<u8>,
}

/// The pages that one checkpoint writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointPages {
    /// The checkpoint's number, for the next [`VmState::pages_since`]
    pub number: u64,
    /// Pages that changed since the requested checkpoint
    pub pages: Vec<VmPage>,
}

/// The checkpoint at which each page changed last; derived, never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    /// Per heap page
    heap: Vec<u64>,
    /// Per chunk: hash of its bytes, checkpoint; `None` if it is to be removed
    chunks: BTreeMap<u64, (Option<u64>, u64)>,
}

/// Collects the chunks of a cell that may have changed.
struct ChunkCollector<'v> {
    id: Id,
    number: u64,
    /// Parts that changed since the last checkpoint; `None`: unknown, collect all parts
    parts: Option<Vec<u32>>,
    versions: &'v mut Versions,
    fresh: &'v mut BTreeMap<u64, Vec<u8>>,
    count: u32,
}

impl ChunkSink for ChunkCollector<'_> {
    fn to_write(&mut self, count: u32) -> Vec<u32> {
        self.count = count;
        let Some(parts) = &self.parts else { return (0..count).collect() };
        let mut to_write: Vec<u32> = parts.iter().copied().filter(|&n| n < count).collect();
        // Contents that were stored in the cell until now have no chunks yet.
        if self.versions.chunks.get(&chunk_key(self.id, 0)).is_none_or(|(hash, _)| hash.is_none()) {
            to_write.push(0);
        }
        to_write.sort_unstable();
        to_write.dedup();
        to_write
    }

    fn put(&mut self, n: u32, bytes: Vec<u8>) {
        let key = chunk_key(self.id, n);
        let hash = hash(&bytes);
        if self.versions.chunks.get(&key).is_none_or(|(old, _)| *old != Some(hash)) {
            self.versions.chunks.insert(key, (Some(hash), self.number));
            self.fresh.insert(key, bytes);
        }
    }
}

/// Collects one chunk of a cell.
struct SingleChunk(u32, Vec<u8>);

impl ChunkSink for SingleChunk {
    fn to_write(&mut self, count: u32) -> Vec<u32> {
        if self.0 < count { vec![self.0] } else { Vec::new() }
    }

    fn put(&mut self, _: u32, bytes: Vec<u8>) {
        self.1 = bytes;
    }
}

fn chunk_key(id: Id, n: u32) -> u64 {
    CHUNK_BIT | u64::from(id.0) << 24 | u64::from(n)
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut h = foldhash::quality::FixedState::default().build_hasher();
    h.write(bytes);
    h.finish()
}

/// Collects no chunks, because they are collected separately.
struct CellsOnly;

impl ChunkSink for CellsOnly {
    fn to_write(&mut self, _: u32) -> Vec<u32> {
        Vec::new()
    }

    fn put(&mut self, _: u32, _: Vec<u8>) {}
}

impl VmState {
    /// Makes a checkpoint and returns the pages that changed after checkpoint `since` (0: all pages). With the last checkpoint
    /// as `since`, the cost is proportional to the changes.
    pub fn pages_since(&mut self, program: &CompiledProgram, since: u64) -> CheckpointPages {
        let last = self.checkpoint;
        self.checkpoint += 1;
        let number = self.checkpoint;
        let mut versions = std::mem::take(&mut self.versions);
        let mut fresh = BTreeMap::new();
        let written = self.note_changes(program, number, &mut versions, &mut fresh);
        let mut pages = vec![VmPage { number: 0, bytes: frame(MAGIC, 0, &self.write_frame_page(program)) }];
        if since == last && since != 0 {
            pages.extend(written.into_iter().map(|page| self.heap_page(program, page)));
            pages.extend(fresh.into_iter().map(|(number, bytes)| VmPage {
                number,
                bytes: if bytes.is_empty() { bytes } else { frame(MAGIC, number, &bytes) },
            }));
        } else {
            let changed = (0..versions.heap.len()).filter(|&page| versions.heap[page] > since);
            pages.extend(changed.map(|page| self.heap_page(program, page)));
            for (&key, (hash, _)) in versions.chunks.iter().filter(|(_, (_, v))| *v > since) {
                let bytes = match (hash, fresh.remove(&key)) {
                    (None, _) => Vec::new(),
                    (Some(_), Some(bytes)) => frame(MAGIC, key, &bytes),
                    (Some(_), None) => frame(MAGIC, key, &self.chunk_again(program, key)),
                };
                pages.push(VmPage { number: key, bytes });
            }
        }
        self.versions = versions;
        CheckpointPages { number, pages }
    }

    /// Records the changes since the last checkpoint: returns the heap pages, and adds the chunks to `fresh`, empty for a chunk
    /// to remove.
    fn note_changes(
        &mut self,
        program: &CompiledProgram,
        number: u64,
        versions: &mut Versions,
        fresh: &mut BTreeMap<u64, Vec<u8>>,
    ) -> Vec<usize> {
        let mut parts: HashMap<u32, Vec<u32>> = HashMap::new();
        for (id, part) in std::mem::take(&mut self.heap.parts) {
            parts.entry(id).or_default().push(part);
        }
        versions.heap.resize(self.heap.dirty.len(), 0);
        let mut written = Vec::new();
        for page in 0..self.heap.dirty.len() {
            let whole = std::mem::take(&mut self.heap.dirty[page]);
            let partly = std::mem::take(&mut self.heap.partly[page]);
            let mask = whole | partly;
            if mask == 0 {
                continue;
            }
            versions.heap[page] = number;
            written.push(page);
            for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
                let id = Id((page * PAGE_CELLS + bit) as u32);
                let parts = if whole & (1 << bit) == 0 { parts.remove(&id.0) } else { None };
                self.note_chunks(program, id, number, parts, versions, fresh);
            }
        }
        written
    }

    /// Encodes the chunks of a changed cell and removes those that it no longer has.
    fn note_chunks(
        &self,
        program: &CompiledProgram,
        id: Id,
        number: u64,
        parts: Option<Vec<u32>>,
        versions: &mut Versions,
        fresh: &mut BTreeMap<u64, Vec<u8>>,
    ) {
        let cell = self.heap.cells.get(id.index()).unwrap_or(&Cell::Free);
        let parts = parts.filter(|_| !cells::has_two_lists(cell));
        let mut collect = ChunkCollector { id, number, parts, versions, fresh, count: 0 };
        cells::write(&mut ByteWriter::default(), cell, program.base.get(id.index()), &mut collect);
        let count = collect.count;
        let range = chunk_key(id, count)..=chunk_key(id, (MAX_CHUNKS - 1) as u32);
        for (&key, entry) in versions.chunks.range_mut(range) {
            if entry.0.is_some() {
                *entry = (None, number);
                fresh.insert(key, Vec::new());
            }
        }
    }

    fn chunk_again(&self, program: &CompiledProgram, key: u64) -> Vec<u8> {
        let id = Id(((key & !CHUNK_BIT) >> 24) as u32);
        let mut one = SingleChunk((key & (MAX_CHUNKS - 1)) as u32, Vec::new());
        if let Some(cell) = self.heap.cells.get(id.index()) {
            cells::write(&mut ByteWriter::default(), cell, program.base.get(id.index()), &mut one);
        }
        one.1
    }

    fn heap_page(&self, program: &CompiledProgram, page: usize) -> VmPage {
        let number = page as u64 + 1;
        let body = self.write_heap_page(program, page);
        let bytes = if body.is_empty() { Vec::new() } else { frame(MAGIC, number, &body) };
        VmPage { number, bytes }
    }

    fn write_heap_page(&self, program: &CompiledProgram, page: usize) -> Vec<u8> {
        let first = page * PAGE_CELLS;
        let in_base = first < self.heap.base as usize;
        let mut mask = 0u64;
        for bit in 0..PAGE_CELLS {
            let stored = match self.heap.cells.get(first + bit) {
                None | Some(Cell::Free) if !in_base => false,
                _ if in_base => self.heap.changed.get(page).is_some_and(|m| m & (1 << bit) != 0),
                _ => true,
            };
            mask |= u64::from(stored) << bit;
        }
        if mask == 0 {
            return Vec::new();
        }
        let mut w = ByteWriter::default();
        w.num(mask);
        for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
            let cell = &self.heap.cells[first + bit];
            let base = program.base.get(first + bit).filter(|_| in_base);
            cells::write(&mut w, cell, base, &mut CellsOnly);
        }
        w.out
    }

    fn write_frame_page(&self, program: &CompiledProgram) -> Vec<u8> {
        let mut w = ByteWriter::default();
        w.num(u64::from(fingerprint(program)));
        w.u8(match self.phase {
            RunPhase::Start => 0,
            RunPhase::Running => 1,
            RunPhase::Paused => 2,
            RunPhase::Host => 3,
            RunPhase::Done => 4,
            RunPhase::Failed => 5,
            RunPhase::Limited(VmLimitKind::Heap) => 6,
            RunPhase::Limited(VmLimitKind::Stack) => 7,
            RunPhase::Limited(VmLimitKind::Steps) => 8,
            RunPhase::Limited(VmLimitKind::Text) => 9,
            RunPhase::Limited(VmLimitKind::Output) => 10,
            RunPhase::Broken => 11,
        });
        w.num(self.debt);
        w.num(self.printed);
        for n in [self.checkpoint, self.steps, self.rng, self.heap.bytes, self.heap.gc_at] {
            w.num(n);
        }
        w.num(u64::from(self.heap.cursor));
        w.count(self.heap.cells.len());
        w.u8(u8::from(self.heap.attention) | u8::from(self.heap.too_long) << 1);
        match self.wait_back {
            Back::Push => w.num(0),
            Back::Construct => w.num(1),
            Back::Discard => w.num(2),
            Back::Result => w.num(3),
            Back::Store(slot) => w.num(4 + u64::from(slot)),
        }
        w.float(self.now);
        w.value(self.result);
        w.value(self.thrown.unwrap_or(Value::Hole));
        w.values(&self.stack[crate::state::STACK_START.min(self.sp)..self.sp]);
        w.count(self.frames.len());
        for f in &self.frames {
            w.num(u64::from(f.template));
            w.num(u64::from(f.pc.saturating_sub(program.template(f.template).start)));
            w.num(u64::from(f.base));
            w.value(f.env);
            w.value(f.new_target);
            w.id(f.coroutine);
            match f.back {
                Back::Push => w.u8(0),
                Back::Construct => w.u8(1),
                Back::Discard => w.u8(2),
                Back::Result => w.u8(3),
                Back::Store(slot) => {
                    w.u8(4);
                    w.num(u64::from(slot));
                }
            }
        }
        w.count(self.jobs.len());
        for j in &self.jobs {
            match j {
                PendingJob::Call(template, args) => {
                    w.u8(0);
                    w.num(u64::from(*template));
                    w.values(args);
                }
                PendingJob::Resume(id, mode, value) => {
                    w.u8(1 + mode);
                    w.id(*id);
                    w.value(*value);
                }
            }
        }
        w.count(self.template_objects.len());
        for (c, id) in &self.template_objects {
            w.num(u64::from(*c));
            w.id(*id);
        }
        w.count(self.registry.len());
        for (k, s) in &self.registry {
            w.id(*k);
            w.id(*s);
        }
        w.count(self.joining.len());
        for id in &self.joining {
            w.id(*id);
        }
        match &self.request {
            None => w.u8(0),
            Some(PendingRequest::Task { prompt, options }) => {
                w.u8(if options.is_some() { 2 } else { 1 });
                w.bytes(prompt.as_bytes());
                if let Some(o) = options {
                    w.bytes(o.as_bytes());
                }
            }
            Some(PendingRequest::Host { name, args }) => {
                w.u8(3);
                w.bytes(name.as_bytes());
                w.bytes(args.as_bytes());
            }
        }
        w.bytes(self.failure.as_deref().unwrap_or("").as_bytes());
        w.out
    }

    /// Restores a state from its pages: the newest of each number, in any order. Everything is verified.
    pub fn restore<'b>(
        program: &CompiledProgram,
        limits: VmLimits,
        pages: impl IntoIterator<Item = (u64, &'b [u8])>,
    ) -> Result<VmState, FormatError> {
        let mut bodies: BTreeMap<u64, &[u8]> = BTreeMap::new();
        for (number, bytes) in pages {
            if !bytes.is_empty() {
                bodies.insert(number, unframe(MAGIC, number, bytes)?);
            }
        }
        let mut state = VmState::new(program, &crate::state::StateConfig { limits, ..Default::default() });
        let head = bodies.remove(&0).ok_or(FormatError::Invalid("missing frame page"))?;
        let cells = read_frame_page(&mut state, program, head)?;
        load_heap(&mut state, program, &bodies, cells)?;
        state.versions.heap = vec![state.checkpoint; state.heap.dirty.len()];
        for (&key, body) in bodies.range(CHUNK_BIT..) {
            state.versions.chunks.insert(key, (Some(hash(body)), state.checkpoint));
        }
        verify_state::verify(program, &state)?;
        verify_state::extend_stack(program, &mut state);
        Ok(state)
    }

    /// Checks that this state can run with this program: every id in range and of the right kind, every frame at an
    /// instruction where its operands fit.
    pub fn verify(&self, program: &CompiledProgram) -> Result<(), FormatError> {
        verify_state::verify(program, self)
    }
}

/// Identifies program and realm.
pub(crate) fn fingerprint(program: &CompiledProgram) -> u32 {
    program.fingerprint
}

struct StoredChunks<'b> {
    id: Id,
    bodies: &'b BTreeMap<u64, &'b [u8]>,
    /// Numbers of the chunks that cells have read
    taken: &'b std::cell::Cell<usize>,
}

impl ChunkSource for StoredChunks<'_> {
    fn get(&self, n: u32) -> Result<&[u8], FormatError> {
        if u64::from(n) >= MAX_CHUNKS {
            return Err(FormatError::Invalid("chunk"));
        }
        self.taken.set(self.taken.get() + 1);
        self.bodies.get(&chunk_key(self.id, n)).copied().ok_or(FormatError::Invalid("missing chunk"))
    }
}

fn load_heap(
    state: &mut VmState,
    program: &CompiledProgram,
    bodies: &BTreeMap<u64, &[u8]>,
    cells: usize,
) -> Result<(), FormatError> {
    let base = state.heap.base as usize;
    // A cell is accounted with at least 32 bytes, so a state within the limit never has more cells than this.
    let most = state.heap.limit / 16 + (1 << 16);
    if cells < base || (cells - base) as u64 > most {
        return Err(FormatError::Invalid("number of cells"));
    }
    state.heap.cells.resize(cells, Cell::Free);
    let pages = cells.div_ceil(PAGE_CELLS);
    state.heap.dirty = vec![0; pages];
    state.heap.partly = vec![0; pages];
    let taken = std::cell::Cell::new(0);
    for (&number, body) in bodies.range(1..CHUNK_BIT) {
        let page = number as usize - 1;
        if page >= pages {
            return Err(FormatError::Invalid("page number"));
        }
        let mut r = ByteReader::new(body);
        let mask = r.num()?;
        for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
            let at = page * PAGE_CELLS + bit;
            let id = Id(at as u32);
            let in_base = at < base;
            let old = program.base.get(at).filter(|_| in_base);
            let cell = cells::read(&mut r, old, &StoredChunks { id, bodies, taken: &taken })?;
            let slot = state.heap.cells.get_mut(at).ok_or(FormatError::Invalid("cell number"))?;
            *slot = cell;
            if in_base {
                state.heap.changed[page] |= 1 << bit;
            }
        }
        r.end()?;
    }
    if taken.get() != bodies.range(CHUNK_BIT..).count() {
        return Err(FormatError::Invalid("chunk of nothing"));
    }
    // Between two collections the accounted bytes are an estimate, but cells never have more than twice the charged bytes.
    let weight = state.heap.cells.iter().map(Heap::weight).sum::<u64>() + state.bytes_beside_cells();
    if weight / 2 > state.heap.bytes.saturating_add(1 << 16) {
        return Err(FormatError::Invalid("accounted bytes"));
    }
    state.heap.intern_loaded();
    Ok(())
}

fn read_frame_page(
    state: &mut VmState,
    program: &CompiledProgram,
    head: &[u8],
) -> Result<usize, FormatError> {
    let mut r = ByteReader::new(head);
    if r.num()? != u64::from(fingerprint(program)) {
        return Err(FormatError::Program);
    }
    state.phase = match r.u8()? {
        0 => RunPhase::Start,
        1 => RunPhase::Running,
        2 => RunPhase::Paused,
        3 => RunPhase::Host,
        4 => RunPhase::Done,
        5 => RunPhase::Failed,
        6 => RunPhase::Limited(VmLimitKind::Heap),
        7 => RunPhase::Limited(VmLimitKind::Stack),
        8 => RunPhase::Limited(VmLimitKind::Steps),
        9 => RunPhase::Limited(VmLimitKind::Text),
        10 => RunPhase::Limited(VmLimitKind::Output),
        11 => RunPhase::Broken,
        _ => return Err(FormatError::Invalid("phase")),
    };
    state.debt = r.num()?;
    state.printed = r.num()?;
    state.checkpoint = r.num()?;
    if state.checkpoint > MOST_CHECKPOINTS {
        return Err(FormatError::Invalid("checkpoint"));
    }
    state.steps = r.num()?;
    state.rng = r.num()?;
    state.heap.bytes = r.num()?;
    state.heap.gc_at = r.num()?;
    state.heap.cursor = r.u32()?;
    let cells = r.num()? as usize;
    let urgent = r.u8()?;
    if urgent > 3 {
        return Err(FormatError::Invalid("flag"));
    }
    state.heap.attention = urgent & 1 != 0;
    state.heap.too_long = urgent & 2 != 0;
    state.wait_back = match r.num()? {
        0 => Back::Push,
        1 => Back::Construct,
        2 => Back::Discard,
        3 => Back::Result,
        n => Back::Store(u32::try_from(n - 4).map_err(|_| FormatError::Invalid("frame"))?),
    };
    state.now = r.float()?;
    state.result = r.value()?;
    state.thrown = Some(r.value()?).filter(|v| *v != Value::Hole);
    let operands = r.values()?;
    state.stack.truncate(crate::state::STACK_START);
    state.stack.extend(operands);
    state.sp = state.stack.len();
    let n = r.count(6)?;
    for _ in 0..n {
        state.frames.push(read_frame(&mut r, program)?);
    }
    let n = r.count(3)?;
    let mut jobs = VecDeque::new();
    for _ in 0..n {
        jobs.push_back(match r.u8()? {
            0 => PendingJob::Call(r.u32()?, r.values()?),
            mode @ 1..=3 => PendingJob::Resume(r.id()?, mode - 1, r.value()?),
            _ => return Err(FormatError::Invalid("job")),
        });
    }
    state.jobs = jobs;
    for _ in 0..r.count(2)? {
        let (c, id) = (r.u32()?, r.id()?);
        state.template_objects.insert(c, id);
    }
    for _ in 0..r.count(2)? {
        state.registry.push((r.id()?, r.id()?));
    }
    for _ in 0..r.count(1)? {
        state.joining.push(r.id()?);
    }
    state.request = match r.u8()? {
        0 => None,
        1 => Some(PendingRequest::Task { prompt: r.text()?, options: None }),
        2 => Some(PendingRequest::Task { prompt: r.text()?, options: Some(r.text()?) }),
        3 => Some(PendingRequest::Host { name: r.text()?, args: r.text()? }),
        _ => return Err(FormatError::Invalid("request")),
    };
    let failure = r.text()?;
    state.failure = (!failure.is_empty()).then_some(failure);
    r.end()?;
    Ok(cells)
}

fn read_frame(r: &mut ByteReader<'_>, program: &CompiledProgram) -> Result<Frame, FormatError> {
    let template = r.u32()?;
    let pc = r.u32()?;
    let start = program.template(template).start;
    Ok(Frame {
        template,
        pc: start.checked_add(pc).ok_or(FormatError::Invalid("position"))?,
        base: r.u32()?,
        env: r.value()?,
        new_target: r.value()?,
        coroutine: r.id()?,
        back: match r.u8()? {
            0 => Back::Push,
            1 => Back::Construct,
            2 => Back::Discard,
            3 => Back::Result,
            4 => Back::Store(r.u32()?),
            _ => return Err(FormatError::Invalid("frame")),
        },
    })
}

impl Heap {
    /// Finds canonical strings after a load.
    fn intern_loaded(&mut self) {
        for i in 0..self.cells.len() {
            if let Cell::Str(StrCell::Narrow(_, true) | StrCell::Wide(_, true)) = self.cells[i] {
                self.adopt_interned(Id(i as u32));
            }
        }
    }
}
