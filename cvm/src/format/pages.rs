//! State as numbered pages: the frame page, pages of heap cells, chunks of long contents.
//!
//! Owns: what changed since a checkpoint, and a state made of pages again. Page 0 holds everything outside the heap
//! and is written each time; page `1 + n` holds the cells `64 n …` that differ from the base; a chunk of cell `id` has
//! the number `CHUNK_BIT | id << 24 | chunk`. An empty page means: forget it.

use super::cells::{self, Chunks, Source};
use super::codec::{Reader, Writer};
use super::{FormatError, frame, unframe, verify_state};
use crate::heap::{Cell, Heap, PAGE_CELLS, StrCell};
use crate::outcome::Request;
use crate::program::Program;
use crate::state::{Back, Frame, Job, LimitKind, Limits, Phase, State};
use crate::value::{Id, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Magic of a page.
const MAGIC: [u8; 2] = *b"CP";
/// Set in the numbers of chunks.
const CHUNK_BIT: u64 = 1 << 62;
/// Chunks of one cell.
const MAX_CHUNKS: u64 = 1 << 24;

/// A page: its number and its bytes, empty for one to forget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// Number
    pub number: u64,
    /// Opaque bytes
    pub bytes: Vec<u8>,
}

/// What one checkpoint writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Its number; give it to the next [`State::pages_since`]
    pub number: u64,
    /// Pages that changed since the one asked for
    pub pages: Vec<Page>,
}

/// When each page changed last; derived, kept beside the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    /// Per heap page
    heap: Vec<u64>,
    /// Per chunk: hash of its bytes, checkpoint; none when it is to be forgotten
    chunks: BTreeMap<u64, (Option<u64>, u64)>,
}

struct Collect<'v> {
    id: Id,
    number: u64,
    versions: &'v mut Versions,
    fresh: &'v mut HashMap<u64, Vec<u8>>,
    seen: BTreeSet<u64>,
}

impl Chunks for Collect<'_> {
    fn put(&mut self, n: u32, bytes: Vec<u8>) {
        let key = chunk_key(self.id, n);
        self.seen.insert(key);
        let hash = hash(&bytes);
        if self.versions.chunks.get(&key).is_none_or(|(old, _)| *old != Some(hash)) {
            self.versions.chunks.insert(key, (Some(hash), self.number));
        }
        self.fresh.insert(key, bytes);
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

/// Ignores chunks: they were looked at before.
struct Drop0;
impl Chunks for Drop0 {
    fn put(&mut self, _: u32, _: Vec<u8>) {}
}

impl State {
    /// Seals the state as a checkpoint and gives the pages that changed after checkpoint `since` (0: all of them).
    pub fn pages_since(&mut self, program: &Program, since: u64) -> Checkpoint {
        self.checkpoint += 1;
        let number = self.checkpoint;
        let mut versions = std::mem::take(&mut self.versions);
        let mut fresh = HashMap::new();
        versions.heap.resize(self.heap.dirty.len(), 0);
        for page in 0..self.heap.dirty.len() {
            let mask = std::mem::take(&mut self.heap.dirty[page]);
            if mask == 0 {
                continue;
            }
            versions.heap[page] = number;
            for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
                let id = Id((page * PAGE_CELLS + bit) as u32);
                self.note_chunks(program, id, number, &mut versions, &mut fresh);
            }
        }
        let mut pages = vec![Page { number: 0, bytes: frame(MAGIC, 0, &self.write_frame_page(program)) }];
        for page in (0..versions.heap.len()).filter(|&p| versions.heap[p] > since) {
            let number = page as u64 + 1;
            let body = self.write_heap_page(program, page);
            pages.push(Page {
                number,
                bytes: if body.is_empty() { Vec::new() } else { frame(MAGIC, number, &body) },
            });
        }
        for (&key, (hash, _)) in versions.chunks.iter().filter(|(_, (_, v))| *v > since) {
            let bytes = match hash {
                None => Vec::new(),
                Some(_) => match fresh.remove(&key) {
                    Some(bytes) => frame(MAGIC, key, &bytes),
                    None => frame(MAGIC, key, &self.chunk_again(program, key)),
                },
            };
            pages.push(Page { number: key, bytes });
        }
        self.versions = versions;
        Checkpoint { number, pages }
    }

    /// Encodes the chunks of a changed cell and forgets those it no longer has.
    fn note_chunks(
        &self,
        program: &Program,
        id: Id,
        number: u64,
        versions: &mut Versions,
        fresh: &mut HashMap<u64, Vec<u8>>,
    ) {
        let Some(cell) = self.heap.cells.get(id.index()) else { return };
        let mut collect = Collect { id, number, versions, fresh, seen: BTreeSet::new() };
        let base = program.base.get(id.index());
        cells::write(&mut Writer::default(), cell, base, &mut collect);
        let seen = collect.seen;
        let range = chunk_key(id, 0)..=chunk_key(id, (MAX_CHUNKS - 1) as u32);
        for (key, entry) in versions.chunks.range_mut(range) {
            if entry.0.is_some() && !seen.contains(key) {
                *entry = (None, number);
            }
        }
    }

    fn chunk_again(&self, program: &Program, key: u64) -> Vec<u8> {
        let id = Id(((key & !CHUNK_BIT) >> 24) as u32);
        let mut versions = Versions::default();
        let mut fresh = HashMap::new();
        self.note_chunks(program, id, 0, &mut versions, &mut fresh);
        fresh.remove(&key).unwrap_or_default()
    }

    fn write_heap_page(&self, program: &Program, page: usize) -> Vec<u8> {
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
        let mut w = Writer::default();
        w.num(mask);
        for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
            let cell = &self.heap.cells[first + bit];
            let base = program.base.get(first + bit).filter(|_| in_base);
            cells::write(&mut w, cell, base, &mut Drop0);
        }
        w.out
    }

    fn write_frame_page(&self, program: &Program) -> Vec<u8> {
        let mut w = Writer::default();
        w.num(u64::from(fingerprint(program)));
        w.u8(match self.phase {
            Phase::Start => 0,
            Phase::Running => 1,
            Phase::Paused => 2,
            Phase::Host => 3,
            Phase::Done => 4,
            Phase::Failed => 5,
            Phase::Limited => 6,
        });
        for n in [self.checkpoint, self.steps, self.rng, self.heap.bytes, self.heap.gc_at] {
            w.num(n);
        }
        w.num(u64::from(self.heap.cursor));
        w.count(self.heap.cells.len());
        w.u8(u8::from(self.heap.attention));
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
                Job::Call(template, args) => {
                    w.u8(0);
                    w.num(u64::from(*template));
                    w.values(args);
                }
                Job::Resume(id, mode, value) => {
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
            Some(Request::Task { prompt, options }) => {
                w.u8(if options.is_some() { 2 } else { 1 });
                w.bytes(prompt.as_bytes());
                if let Some(o) = options {
                    w.bytes(o.as_bytes());
                }
            }
            Some(Request::Host { name, args }) => {
                w.u8(3);
                w.bytes(name.as_bytes());
                w.bytes(args.as_bytes());
            }
        }
        w.bytes(self.failure.as_deref().unwrap_or("").as_bytes());
        w.out
    }

    /// Makes a state of its pages: the newest of each number, in any order. Everything is verified.
    pub fn restore<'b>(
        program: &Program,
        limits: Limits,
        pages: impl IntoIterator<Item = (u64, &'b [u8])>,
    ) -> Result<State, FormatError> {
        let mut bodies: BTreeMap<u64, &[u8]> = BTreeMap::new();
        for (number, bytes) in pages {
            if !bytes.is_empty() {
                bodies.insert(number, unframe(MAGIC, number, bytes)?);
            }
        }
        let mut state = State::new(program, &crate::state::StateConfig { limits, ..Default::default() });
        let head = bodies.remove(&0).ok_or(FormatError::Invalid("missing frame page"))?;
        let cells = read_frame_page(&mut state, program, head, &bodies)?;
        load_heap(&mut state, program, &bodies, cells)?;
        state.versions.heap = vec![state.checkpoint; state.heap.dirty.len()];
        for (&key, body) in bodies.range(CHUNK_BIT..) {
            state.versions.chunks.insert(key, (Some(hash(body)), state.checkpoint));
        }
        verify_state::verify(program, &state)?;
        verify_state::make_room(program, &mut state);
        Ok(state)
    }

    /// Checks that this state can run with this program: every id in range and of the right kind, every frame at an
    /// instruction where its operands fit.
    pub fn verify(&self, program: &Program) -> Result<(), FormatError> {
        verify_state::verify(program, self)
    }
}

/// Tells programs and realms apart.
pub(crate) fn fingerprint(program: &Program) -> u32 {
    program.fingerprint
}

struct Stored<'b> {
    id: Id,
    bodies: &'b BTreeMap<u64, &'b [u8]>,
}

impl Source for Stored<'_> {
    fn get(&self, n: u32) -> Result<&[u8], FormatError> {
        if u64::from(n) >= MAX_CHUNKS {
            return Err(FormatError::Invalid("chunk"));
        }
        self.bodies.get(&chunk_key(self.id, n)).copied().ok_or(FormatError::Invalid("missing chunk"))
    }
}

fn load_heap(
    state: &mut State,
    program: &Program,
    bodies: &BTreeMap<u64, &[u8]>,
    cells: usize,
) -> Result<(), FormatError> {
    let base = state.heap.base as usize;
    // A cell is accounted with 32 bytes at least, so more than the limit allows never existed.
    let most = state.heap.limit / 16 + (1 << 20);
    if cells < base || (cells - base) as u64 > most {
        return Err(FormatError::Invalid("number of cells"));
    }
    state.heap.cells.resize(cells, Cell::Free);
    let pages = cells.div_ceil(PAGE_CELLS);
    state.heap.dirty = vec![0; pages];
    for (&number, body) in bodies.range(1..CHUNK_BIT) {
        let page = number as usize - 1;
        if page >= pages {
            return Err(FormatError::Invalid("page number"));
        }
        let mut r = Reader::new(body);
        let mask = r.num()?;
        for bit in (0..PAGE_CELLS).filter(|b| mask & (1 << b) != 0) {
            let at = page * PAGE_CELLS + bit;
            let id = Id(at as u32);
            let in_base = at < base;
            let old = program.base.get(at).filter(|_| in_base);
            let cell = cells::read(&mut r, old, &Stored { id, bodies })?;
            let place = state.heap.cells.get_mut(at).ok_or(FormatError::Invalid("cell number"))?;
            *place = cell;
            if in_base {
                state.heap.changed[page] |= 1 << bit;
            }
        }
        r.end()?;
    }
    state.heap.intern_loaded();
    Ok(())
}

fn read_frame_page(
    state: &mut State,
    program: &Program,
    head: &[u8],
    _bodies: &BTreeMap<u64, &[u8]>,
) -> Result<usize, FormatError> {
    let mut r = Reader::new(head);
    if r.num()? != u64::from(fingerprint(program)) {
        return Err(FormatError::Program);
    }
    state.phase = match r.u8()? {
        0 => Phase::Start,
        1 => Phase::Running,
        2 => Phase::Paused,
        3 => Phase::Host,
        4 => Phase::Done,
        5 => Phase::Failed,
        6 => Phase::Limited,
        _ => return Err(FormatError::Invalid("phase")),
    };
    state.checkpoint = r.num()?;
    state.steps = r.num()?;
    state.rng = r.num()?;
    state.heap.bytes = r.num()?;
    state.heap.gc_at = r.num()?;
    state.heap.cursor = r.u32()?;
    let cells = r.num()? as usize;
    state.heap.attention = r.bool()?;
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
            0 => Job::Call(r.u32()?, r.values()?),
            mode @ 1..=3 => Job::Resume(r.id()?, mode - 1, r.value()?),
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
        1 => Some(Request::Task { prompt: r.text()?, options: None }),
        2 => Some(Request::Task { prompt: r.text()?, options: Some(r.text()?) }),
        3 => Some(Request::Host { name: r.text()?, args: r.text()? }),
        _ => return Err(FormatError::Invalid("request")),
    };
    let failure = r.text()?;
    state.failure = (!failure.is_empty()).then_some(failure);
    r.end()?;
    Ok(cells)
}

fn read_frame(r: &mut Reader<'_>, program: &Program) -> Result<Frame, FormatError> {
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

/// The kind of limit that ended a stored state is not kept; steps stand for all.
pub(crate) const ENDED_BY: LimitKind = LimitKind::Steps;

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
