//! State as numbered pages: the frame page, and packs of the records that changed.
//!
//! Owns: the records that changed since a checkpoint, and restoring a state from pages. Page 0 holds everything outside the heap
//! and is written each time. Record `1 + n` holds the cells `64 n …` that differ from the base; a chunk of cell `id` has
//! the number `CHUNK_BIT | id << 24 | chunk`; a chunk of text has a number that follows from its content. An empty page is to be removed.

use super::cells::{self, ChunkSink, ChunkSource};
use super::codec::{ByteReader, ByteWriter};
use super::frame_page::read_frame_page;
use super::packs::{ChangedRecords, MAGIC, PACK_BIT, Packs, StoredPack, hash};
use super::texts::{TEXT_BIT, Texts, chunk_of};
use super::{FormatError, frame, unframe, verify_state};
use crate::heap::object::ObjectKind;
use crate::heap::text::Text;
use crate::heap::{Cell, Heap, PAGE_CELLS, PART_ITEMS, PART_TEXT, StrCell};
use crate::program::CompiledProgram;
use crate::state::{VmLimits, VmState};
use crate::value::Id;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Set in the numbers of chunks.
const CHUNK_BIT: u64 = 1 << 62;
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

/// The stored state as of the last checkpoint; derived, never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    packs: Packs,
    texts: Texts,
}

/// Collects the chunks of a cell that may have changed.
struct ChunkCollector<'v> {
    id: Id,
    /// Parts that changed since the last checkpoint; `None`: unknown, collect all parts
    parts: Option<Vec<u32>>,
    packs: &'v Packs,
    texts: &'v mut Texts,
    fresh: &'v mut ChangedRecords,
    count: u32,
    /// The cell has text in chunks; how many of the first ones are as before
    same_text: Option<usize>,
}

impl ChunkSink for ChunkCollector<'_> {
    fn to_write(&mut self, count: u32) -> Vec<u32> {
        self.count = count;
        if let Some(same) = self.same_text {
            return ((same / PART_ITEMS) as u32..count).collect();
        }
        let Some(parts) = &self.parts else { return (0..count).collect() };
        let mut to_write: Vec<u32> = parts.iter().copied().filter(|&n| n < count).collect();
        // Contents that were stored in the cell until now have no chunks yet.
        if self.packs.hash_of(chunk_key(self.id, 0)).is_none() {
            to_write.push(0);
        }
        to_write.sort_unstable();
        to_write.dedup();
        to_write
    }

    fn put(&mut self, n: u32, bytes: Vec<u8>) {
        let key = chunk_key(self.id, n);
        if self.packs.hash_of(key) != Some(hash(&bytes)) {
            self.fresh.insert(key, Some(bytes));
        }
    }

    fn text(&mut self, text: Text<'_>) -> Option<Vec<u64>> {
        let changed = self.parts.as_ref().and_then(|parts| parts.iter().min().copied()).unwrap_or(0);
        let same = self.texts.note(self.id.0, text, changed as usize * PART_TEXT, self.packs, self.fresh);
        self.same_text = Some(same);
        Some(self.texts.chunks_of(self.id.0).collect())
    }
}

/// Collects one chunk of a cell.
struct SingleChunk<'v> {
    id: u32,
    texts: &'v Texts,
    number: u32,
    bytes: Vec<u8>,
}

impl ChunkSink for SingleChunk<'_> {
    fn to_write(&mut self, count: u32) -> Vec<u32> {
        if self.number < count { vec![self.number] } else { Vec::new() }
    }

    fn put(&mut self, _: u32, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    fn text(&mut self, _: Text<'_>) -> Option<Vec<u64>> {
        stored_text(self.texts, self.id)
    }
}

/// Numbers of the chunks of a text; none for a text that was stored as bytes and has not changed since.
fn stored_text(texts: &Texts, id: u32) -> Option<Vec<u64>> {
    let numbers = texts.chunks_of(id);
    (numbers.len() > 0).then(|| numbers.collect())
}

fn chunk_key(id: Id, n: u32) -> u64 {
    CHUNK_BIT | u64::from(id.0) << 24 | u64::from(n)
}

/// Collects no chunks, because they are collected separately.
struct CellsOnly<'v> {
    id: u32,
    texts: &'v Texts,
}

impl ChunkSink for CellsOnly<'_> {
    fn to_write(&mut self, _: u32) -> Vec<u32> {
        Vec::new()
    }

    fn put(&mut self, _: u32, _: Vec<u8>) {}

    fn text(&mut self, _: Text<'_>) -> Option<Vec<u64>> {
        stored_text(self.texts, self.id)
    }
}

impl VmState {
    /// Makes a checkpoint and returns the pages that changed after checkpoint `since`, which is the last one, or that of the state
    /// that was loaded: the cost is proportional to the changes. With any other number all pages are returned, and those
    /// that were stored before and are not among them are to be removed.
    pub fn pages_since(&mut self, program: &CompiledProgram, since: u64) -> CheckpointPages {
        let is_next = since != 0 && since == self.checkpoint;
        self.checkpoint += 1;
        let mut versions = std::mem::take(&mut self.versions);
        let mut pages = BTreeMap::new();
        if !is_next {
            if since != 0 {
                pages.extend(versions.packs.stored().map(|page| (page, Vec::new())));
            }
            versions = Versions::default();
            self.heap.all_dirty();
        }
        let mut fresh = ChangedRecords::new();
        self.note_changes(program, &mut versions, &mut fresh);
        let Versions { packs, texts } = &mut versions;
        pages.extend(packs.commit(fresh, |numbers| self.contents(program, texts, numbers)));
        pages.insert(0, frame(MAGIC, 0, &self.write_frame_page(program)));
        self.versions = versions;
        let pages = pages.into_iter().map(|(number, bytes)| VmPage { number, bytes }).collect();
        CheckpointPages { number: self.checkpoint, pages }
    }

    /// Adds the records that changed since the last checkpoint to `fresh`.
    fn note_changes(
        &mut self,
        program: &CompiledProgram,
        versions: &mut Versions,
        fresh: &mut ChangedRecords,
    ) {
        let mut parts: HashMap<u32, Vec<u32>> = HashMap::new();
        for (id, part) in std::mem::take(&mut self.heap.parts) {
            parts.entry(id).or_default().push(part);
        }
        for page in 0..self.heap.dirty.len() {
            let whole = std::mem::take(&mut self.heap.dirty[page]);
            let partly = std::mem::take(&mut self.heap.partly[page]);
            let mask = whole | partly;
            if mask == 0 {
                continue;
            }
            for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
                let id = Id((page * PAGE_CELLS + bit) as u32);
                let parts = if whole & (1 << bit) == 0 { parts.remove(&id.0) } else { None };
                self.note_chunks(program, id, parts, versions, fresh);
            }
            let (number, body) = (page as u64 + 1, self.write_heap_page(program, &versions.texts, page));
            match versions.packs.hash_of(number) {
                Some(_) if body.is_empty() => drop(fresh.insert(number, None)),
                None if body.is_empty() => {}
                known if known == Some(hash(&body)) => {}
                _ => drop(fresh.insert(number, Some(body))),
            }
        }
    }

    /// Encodes the chunks of a changed cell and removes those that it no longer has.
    fn note_chunks(
        &self,
        program: &CompiledProgram,
        id: Id,
        parts: Option<Vec<u32>>,
        versions: &mut Versions,
        fresh: &mut ChangedRecords,
    ) {
        let cell = self.heap.cells.get(id.index()).unwrap_or(&Cell::Free);
        let parts = parts.filter(|_| !cells::has_two_lists(cell));
        let Versions { packs, texts } = versions;
        let mut collect = ChunkCollector { id, parts, packs, texts, fresh, count: 0, same_text: None };
        cells::write(&mut ByteWriter::default(), cell, program.base.get(id.index()), &mut collect);
        let count = collect.count;
        if collect.same_text.is_none() {
            texts.forget(id.0, fresh);
        }
        for key in packs.numbers(chunk_key(id, count), chunk_key(id, (MAX_CHUNKS - 1) as u32)) {
            fresh.insert(key, None);
        }
    }

    /// The contents of records that did not change.
    fn contents(&self, program: &CompiledProgram, texts: &Texts, numbers: &[u64]) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new(); numbers.len()];
        let mut wanted = HashMap::new();
        for (index, &number) in numbers.iter().enumerate() {
            if number < TEXT_BIT {
                all[index] = self.write_heap_page(program, texts, number as usize - 1);
            } else if number < PACK_BIT {
                wanted.insert(number, index);
            } else {
                all[index] = self.chunk_again(program, texts, number);
            }
        }
        if !wanted.is_empty() {
            for (index, id, from, bytes) in texts.places(wanted) {
                all[index] = match self.heap.cells.get(id as usize) {
                    Some(Cell::Buf(buffer)) => chunk_of(buffer.prefix(buffer.len()), from, bytes),
                    _ => chunk_of(self.heap.str(Id(id)), from, bytes),
                };
            }
        }
        all
    }

    fn chunk_again(&self, program: &CompiledProgram, texts: &Texts, key: u64) -> Vec<u8> {
        let id = Id(((key & !CHUNK_BIT) >> 24) as u32);
        let number = (key & (MAX_CHUNKS - 1)) as u32;
        let mut one = SingleChunk { id: id.0, texts, number, bytes: Vec::new() };
        if let Some(cell) = self.heap.cells.get(id.index()) {
            cells::write(&mut ByteWriter::default(), cell, program.base.get(id.index()), &mut one);
        }
        one.bytes
    }

    /// The content of a heap page; nothing if it has no cells to store.
    fn write_heap_page(&self, program: &CompiledProgram, texts: &Texts, page: usize) -> Vec<u8> {
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
            let id = (first + bit) as u32;
            cells::write(&mut w, cell, base, &mut CellsOnly { id, texts });
        }
        w.out
    }

    /// Restores a state from its pages: the newest of each number, in any order. Everything is verified.
    pub fn restore<'b>(
        program: &CompiledProgram,
        limits: VmLimits,
        pages: impl IntoIterator<Item = (u64, &'b [u8])>,
    ) -> Result<VmState, FormatError> {
        let mut stored: BTreeMap<u64, &[u8]> = BTreeMap::new();
        for (number, bytes) in pages {
            if !bytes.is_empty() {
                stored.insert(number, unframe(MAGIC, number, bytes)?);
            }
        }
        let mut state = VmState::new(program, &crate::state::StateConfig { limits, ..Default::default() });
        let head = stored.remove(&0).ok_or(FormatError::Invalid("missing frame page"))?;
        let cells = read_frame_page(&mut state, program, head)?;
        let mut versions = Versions::default();
        let bodies = records(&stored, &mut versions.packs)?;
        load_heap(&mut state, program, &bodies, cells, &mut versions.texts)?;
        state.versions = versions;
        state.items = items_of(&state.heap)?;
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

/// The records that count. Pages of single records, as states had them before there were packs, are older than all packs.
fn records<'b>(
    stored: &BTreeMap<u64, &'b [u8]>,
    packs: &mut Packs,
) -> Result<BTreeMap<u64, &'b [u8]>, FormatError> {
    let mut bodies = BTreeMap::new();
    for (&number, body) in stored {
        match number {
            1..TEXT_BIT | CHUNK_BIT.. => {
                packs.add_single(number, body);
                bodies.insert(number, *body);
            }
            PACK_BIT..CHUNK_BIT => {}
            _ => return Err(FormatError::Invalid("page number")),
        }
    }
    let mut log = BTreeMap::new();
    for (&page, body) in stored.range(PACK_BIT..CHUNK_BIT) {
        let pack = StoredPack::new(page, body)?;
        if log.insert(pack.position, pack).is_some() {
            return Err(FormatError::Invalid("position of a pack"));
        }
    }
    for pack in log.values() {
        packs.add_pack(pack, |number, content| {
            match content {
                Some(content) => bodies.insert(number, content),
                None => bodies.remove(&number),
            };
        })?;
    }
    Ok(bodies)
}

/// Promises of pending items by number, from their cells.
fn items_of(heap: &Heap) -> Result<BTreeMap<u64, Id>, FormatError> {
    let mut items = BTreeMap::new();
    for (i, cell) in heap.cells.iter().enumerate() {
        if let Cell::Obj(object) = cell
            && let ObjectKind::Promise(promise) = &object.kind
            && let Some(item) = promise.item
            && items.insert(item.number, Id(i as u32)).is_some()
        {
            return Err(FormatError::Invalid("item"));
        }
    }
    Ok(items)
}

struct StoredChunks<'b> {
    id: Id,
    bodies: &'b BTreeMap<u64, &'b [u8]>,
    /// Numbers of the chunks that cells have read
    taken: &'b std::cell::Cell<usize>,
    /// Bytes of text that may still be read
    left: &'b std::cell::Cell<u64>,
    /// The chunks of this cell's text
    texts: RefCell<Vec<(u64, u32)>>,
}

impl ChunkSource for StoredChunks<'_> {
    fn get(&self, n: u32) -> Result<&[u8], FormatError> {
        if u64::from(n) >= MAX_CHUNKS {
            return Err(FormatError::Invalid("chunk"));
        }
        self.taken.set(self.taken.get() + 1);
        self.bodies.get(&chunk_key(self.id, n)).copied().ok_or(FormatError::Invalid("missing chunk"))
    }

    fn text(&self, number: u64) -> Result<&[u8], FormatError> {
        let is_text = (TEXT_BIT..PACK_BIT).contains(&number);
        let chunk =
            self.bodies.get(&number).filter(|_| is_text).ok_or(FormatError::Invalid("missing chunk"))?;
        let left = self.left.get().checked_sub(chunk.len() as u64 + 1).ok_or(FormatError::Invalid("text"))?;
        self.left.set(left);
        self.texts.borrow_mut().push((number, chunk.len() as u32));
        Ok(chunk)
    }
}

fn load_heap(
    state: &mut VmState,
    program: &CompiledProgram,
    bodies: &BTreeMap<u64, &[u8]>,
    cells: usize,
    texts: &mut Texts,
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
    // Chunks of text may be used many times: together they are not longer than cells can be.
    let left = std::cell::Cell::new(state.heap.limit.saturating_mul(2).saturating_add(1 << 20));
    for (&number, body) in bodies.range(1..TEXT_BIT) {
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
            let source = StoredChunks { id, bodies, taken: &taken, left: &left, texts: RefCell::default() };
            let cell = cells::read(&mut r, old, &source)?;
            let chunks = source.texts.into_inner();
            if !chunks.is_empty() {
                texts.loaded(id.0, chunks);
            }
            let slot = state.heap.cells.get_mut(at).ok_or(FormatError::Invalid("cell number"))?;
            *slot = cell;
            if in_base {
                state.heap.changed[page] |= 1 << bit;
            }
        }
        r.end()?;
    }
    let has_all_texts = texts.count() == bodies.range(TEXT_BIT..PACK_BIT).count();
    if taken.get() != bodies.range(CHUNK_BIT..).count() || !has_all_texts {
        return Err(FormatError::Invalid("chunk of nothing"));
    }
    // Between two collections the accounted bytes are an estimate, but cells never have more than twice the charged bytes.
    let weight = state.heap.cells.iter().map(Heap::weight).sum::<u64>() + state.bytes_beside_cells();
    if weight / 2 > state.heap.bytes.saturating_add(1 << 16) {
        return Err(FormatError::Invalid("accounted bytes"));
    }
    // A native function may pass the limit before it is noticed: it stops at twice the limit, after at most one more text or list.
    if state.heap.bytes > state.heap.limit.saturating_mul(4).saturating_add(1 << 20) {
        return Err(FormatError::Invalid("accounted bytes"));
    }
    state.heap.intern_loaded();
    Ok(())
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
