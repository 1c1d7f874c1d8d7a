//! The state verifier: every id is in range and of the kind that its use assumes, and every frame is at an instruction and has
//! the operands of that instruction.
//!
//! Owns: the checks that make a loaded state safe to run. The interpreter checks kinds again where it uses them, so that a
//! mistake here does not cause a panic.

use super::FormatError;
use super::references::references;
use super::scopes::{HeldScope, Scopes};
use super::verify_code::{UNREACHED, depths};
use crate::heap::object::{Code, Coroutine, Object, ObjectKind, attr};
use crate::heap::{Cell, StrCell};
use crate::liveness::DeadSlots;
use crate::ops::Opcode;
use crate::outcome::PendingRequest;
use crate::program::{CompiledProgram, USER_TEMPLATES};
use crate::state::{Back, PendingJob, RunPhase, STACK_START, VmState};
use crate::value::{Id, Key, Value};
use crate::vm::coroutine::state;
use std::collections::{HashMap, HashSet};

type Res = Result<(), FormatError>;

/// Bound of entry numbers, below 2^53, where floats stop being exact for whole numbers.
const MOST_ENTRIES: u64 = 1 << 52;

fn fail(what: &'static str) -> Res {
    Err(FormatError::Invalid(what))
}

/// The scope around one that has so many slots.
fn around(state: &VmState, scope: Value, slots: u32) -> Result<Value, FormatError> {
    match scope {
        Value::Cell(id) => match state.heap.cell(id) {
            Some(Cell::Scope(parent, own)) if own.len() >= slots as usize => Ok(*parent),
            _ => Err(FormatError::Invalid("scope slot")),
        },
        _ => Err(FormatError::Invalid("scope slot")),
    }
}

struct Verifier<'v> {
    program: &'v CompiledProgram,
    state: &'v VmState,
    depths: HashMap<u32, Vec<u16>>,
    /// By template, see `coroutine_begins`.
    begins: HashMap<u32, Option<u32>>,
    scopes: Scopes,
    dead_slots: DeadSlots,
}

/// Verifies a whole state.
pub(super) fn verify(program: &CompiledProgram, state: &VmState) -> Res {
    let heap = &state.heap;
    if heap.cursor < heap.base || heap.cursor as usize > heap.cells.len() {
        return fail("cursor");
    }
    let mut v = Verifier {
        program,
        state,
        depths: HashMap::new(),
        begins: HashMap::new(),
        scopes: Scopes::default(),
        dead_slots: DeadSlots::default(),
    };
    for (i, cell) in state.heap.cells.iter().enumerate() {
        // Cells of the base are trusted.
        if !state.heap.is_pristine(i) {
            v.cell(cell)?;
        }
    }
    v.phase()?;
    v.items()?;
    v.resumptions()?;
    v.prototypes()?;
    for value in state.roots() {
        if value != Value::Obj(Id::NONE) {
            v.value(value)?;
        }
    }
    v.frames()?;
    for job in &state.jobs {
        match job {
            PendingJob::Call(template, args) => {
                let t = program.template(*template);
                if *template >= USER_TEMPLATES || t.len == 0 || args.len() > 16 {
                    return fail("job");
                }
                v.closure(*template, Value::Undefined)?;
            }
            // See `resumptions`.
            PendingJob::Resume(..) => {}
        }
    }
    Ok(())
}

impl Verifier<'_> {
    /// The phase fits the request that waits, and an ended program has nothing left to run.
    fn phase(&self) -> Res {
        let s = self.state;
        let is_idle = s.frames.is_empty() && s.jobs.is_empty() && s.thrown.is_none();
        let fits = match (s.phase, &s.request) {
            (RunPhase::Paused, Some(PendingRequest::Task { .. }))
            | (RunPhase::Host, Some(PendingRequest::Host { .. })) => {
                !s.frames.is_empty() && s.thrown.is_none()
            }
            (RunPhase::Running, None) => true,
            (RunPhase::Wait, None) => is_idle && !s.items.is_empty(),
            (RunPhase::Start, None) => is_idle && s.items.is_empty(),
            (RunPhase::Done | RunPhase::Failed | RunPhase::Limited(_), None) => is_idle,
            _ => false,
        };
        if fits { Ok(()) } else { fail("phase") }
    }

    /// Each item names one pending promise, and the other way round; numbers of items are those that were given.
    fn items(&self) -> Res {
        let s = self.state;
        let mut found = 0;
        for (i, cell) in s.heap.cells.iter().enumerate() {
            if let Cell::Obj(o) = cell
                && let ObjectKind::Promise(p) = &o.kind
                && let Some(item) = p.item
            {
                let is_known = s.items.get(&item.number) == Some(&Id(i as u32));
                if p.state != 0 || !is_known || item.number == 0 || item.number >= s.next_item {
                    return fail("item");
                }
                found += 1;
            }
        }
        if found != s.items.len() || (found > 0 && !self.program.has_items()) {
            return fail("item");
        }
        Ok(())
    }

    /// Every coroutine that a job or a pending promise will resume waits in an `await`, and only one resumes it.
    fn resumptions(&self) -> Res {
        let mut known = HashSet::new();
        let mut resumes = |id: Id| match self.coroutine_at(id)? {
            c if c.state == state::SUSPENDED
                && self.suspended_at(c) == Some(Opcode::Await)
                && known.insert(id) =>
            {
                Ok(())
            }
            _ => fail("resumption"),
        };
        for job in &self.state.jobs {
            if let PendingJob::Resume(id, ..) = job {
                resumes(*id)?;
            }
        }
        for cell in &self.state.heap.cells {
            if let Cell::Obj(o) = cell
                && let ObjectKind::Promise(p) = &o.kind
            {
                for reaction in &p.reactions {
                    if let (Value::Obj(id), Value::Uninit, _) = reaction {
                        resumes(*id)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The instruction that suspended a coroutine.
    fn suspended_at(&self, c: &Coroutine) -> Option<Opcode> {
        let next = self.program.template(c.template).start.checked_add(c.pc)?;
        self.program.code.get(next.checked_sub(1)? as usize).map(|instruction| instruction.op)
    }

    /// The position of the instruction that turns a function's frame into a coroutine's; none of an ordinary function.
    fn coroutine_begins(&mut self, template: u32) -> Option<u32> {
        let program = self.program;
        // Found once: a long function may have thousands of frames.
        *self.begins.entry(template).or_insert_with(|| {
            let t = program.template(template);
            let code = program.code.get(t.start as usize..(t.start + t.len) as usize)?;
            code.iter()
                .position(|instruction| matches!(instruction.op, Opcode::InitialYield | Opcode::AsyncStart))
                .map(|position| position as u32)
        })
    }

    fn kind(&self, id: Id) -> Result<&Cell, FormatError> {
        self.state.heap.cell(id).ok_or(FormatError::Invalid("id"))
    }

    fn value(&self, value: Value) -> Res {
        let ok = match value {
            Value::Str(id) => matches!(self.kind(id)?, Cell::Str(_)),
            Value::Sym(id) => matches!(self.kind(id)?, Cell::Sym(_)),
            Value::Big(id) => matches!(self.kind(id)?, Cell::Big(_)),
            Value::Obj(id) => matches!(self.kind(id)?, Cell::Obj(_)),
            Value::Cell(id) => matches!(self.kind(id)?, Cell::Scope(..) | Cell::Pair(..) | Cell::Buf(_)),
            _ => true,
        };
        if ok { Ok(()) } else { fail("reference") }
    }

    fn key(&self, key: Key) -> Res {
        if key == Key::TOMB || key.as_index().is_some() {
            return Ok(());
        }
        match self.kind(Id(key.0))? {
            Cell::Str(StrCell::Narrow(_, true) | StrCell::Wide(_, true)) | Cell::Sym(_) => Ok(()),
            _ => fail("property key"),
        }
    }

    fn cell(&mut self, cell: &Cell) -> Res {
        let mut result = Ok(());
        references(cell, |v| {
            if result.is_ok() {
                result = self.value(v);
            }
        });
        result?;
        match cell {
            Cell::Str(StrCell::View(buf, len)) => match self.kind(*buf)? {
                Cell::Buf(b) if *len as usize <= b.len() => Ok(()),
                _ => fail("string view"),
            },
            Cell::Scope(parent, _) => match parent {
                Value::Undefined => Ok(()),
                Value::Cell(id) if matches!(self.kind(*id)?, Cell::Scope(..)) => Ok(()),
                _ => fail("scope"),
            },
            Cell::Obj(o) => self.object(o),
            _ => Ok(()),
        }
    }

    fn object(&mut self, o: &Object) -> Res {
        for p in o.props.iter() {
            self.key(p.key)?;
            let pair = match p.value {
                Value::Cell(id) => matches!(self.kind(id)?, Cell::Pair(..)),
                _ => false,
            };
            if pair != (p.flags & attr::ACCESSOR != 0) {
                return fail("accessor");
            }
        }
        match &o.kind {
            ObjectKind::Function(f) => match f.code {
                Code::Template(n) if self.program.template(n).len == 0 => fail("function"),
                Code::Template(n) => self.closure(n, f.env),
                Code::Native(n) if n as usize >= crate::builtins::natives::table().len() => fail("function"),
                Code::Native(_) => Ok(()),
            },
            ObjectKind::RegExp(Value::Str(_), Value::Str(_)) => Ok(()),
            ObjectKind::RegExp(..) => fail("regular expression"),
            ObjectKind::Primitive(Value::Obj(_) | Value::Cell(_) | Value::Hole | Value::Uninit) => {
                fail("wrapper")
            }
            ObjectKind::Proxy(p)
                if !matches!((p.0, p.1), (Value::Obj(_) | Value::Null, Value::Obj(_) | Value::Null)) =>
            {
                fail("proxy")
            }
            ObjectKind::Map(t) | ObjectKind::Set(t) | ObjectKind::Weak(t) if t.next > MOST_ENTRIES => {
                fail("entry numbers")
            }
            ObjectKind::View(view) => match self.kind(view.buffer)? {
                Cell::Obj(o) if matches!(o.kind, ObjectKind::Buffer(_)) => Ok(()),
                _ => fail("view"),
            },
            ObjectKind::Coroutine(c) => self.coroutine(c),
            ObjectKind::Promise(p) if p.state > 2 => fail("promise"),
            _ => Ok(()),
        }
    }

    /// Operand depth of a template's instruction.
    fn depth(&mut self, template: u32, pc: u32) -> Result<u16, FormatError> {
        let t = self.program.template(template);
        if t.len == 0 {
            return Err(FormatError::Invalid("template"));
        }
        if !self.depths.contains_key(&template) {
            let code = self
                .program
                .code
                .get(t.start as usize..(t.start + t.len) as usize)
                .ok_or(FormatError::Invalid("template"))?;
            self.depths.insert(template, depths(code, t, t.start)?);
        }
        match self.depths.get(&template).and_then(|d| d.get(pc as usize)) {
            Some(&d) if d != UNREACHED => Ok(d),
            _ => Err(FormatError::Invalid("position")),
        }
    }

    /// The scope and those around it have the slots that a function uses.
    fn closure(&mut self, template: u32, env: Value) -> Res {
        let (state, mut scope) = (self.state, env);
        for &slots in self.scopes.needs(self.program, template)? {
            scope = around(state, scope, slots)?;
        }
        Ok(())
    }

    /// A frame that continues at an instruction has the scopes that the code there uses. `frame` has its locals and operands.
    fn held(&mut self, template: u32, pc: u32, frame: &[Value], env: Value) -> Res {
        let analysed = self.scopes.scope_use(self.program, template)?;
        for (position, sizes) in analysed.held_at(self.program.template(template), pc) {
            let scope = *frame.get(usize::from(*position)).ok_or(FormatError::Invalid("scope"))?;
            let outermost = sizes.iter().try_fold(scope, |scope, &slots| around(self.state, scope, slots));
            // A collection clears the slots that the code reads no more.
            if outermost != Ok(env) && self.dead_slots.may_read(self.program, template, pc, *position) {
                return fail("scope");
            }
        }
        Ok(())
    }

    fn coroutine(&mut self, c: &Coroutine) -> Res {
        if c.state > state::DONE {
            return fail("coroutine");
        }
        if matches!(c.state, state::START | state::SUSPENDED) {
            // The value that resuming pushes is not on the stack yet.
            let pushed = match (self.suspended_at(c), c.state) {
                (Some(Opcode::Yield | Opcode::YieldStar), state::SUSPENDED) => 2,
                (Some(Opcode::Await), state::SUSPENDED) => 1,
                (Some(Opcode::InitialYield), state::START) => 0,
                _ => return fail("coroutine"),
            };
            let slots = self.program.template(c.template).slots as usize;
            let depth = self.depth(c.template, c.pc)? as usize;
            if c.slots.len() + pushed != slots + depth {
                return fail("coroutine");
            }
            self.closure(c.template, c.env)?;
            self.held(c.template, c.pc, &c.slots, c.env)?;
        }
        Ok(())
    }

    fn coroutine_at(&self, id: Id) -> Result<&Coroutine, FormatError> {
        match self.kind(id)? {
            Cell::Obj(o) => match &o.kind {
                ObjectKind::Coroutine(c) => Ok(c),
                _ => Err(FormatError::Invalid("coroutine")),
            },
            _ => Err(FormatError::Invalid("coroutine")),
        }
    }

    /// Every chain of prototypes ends; those of pristine cells do.
    fn prototypes(&self) -> Res {
        let heap = &self.state.heap;
        // 0: not visited, 1: on the current chain, 2: known to end.
        let mut seen = vec![0u8; heap.cells.len()];
        let mut way = Vec::new();
        for (start, cell) in heap.cells.iter().enumerate() {
            let (mut at, mut cell) = (start, cell);
            while let Cell::Obj(o) = cell {
                match seen[at] {
                    2 => break,
                    1 => return fail("prototype"),
                    _ => seen[at] = 1,
                }
                way.push(at);
                // Every walk along a chain stops at a proxy.
                if o.proto == Id::NONE || matches!(o.kind, ObjectKind::Proxy(_)) {
                    break;
                }
                at = o.proto.index();
                cell = heap.cells.get(at).ok_or(FormatError::Invalid("prototype"))?;
            }
            for at in way.drain(..) {
                seen[at] = 2;
            }
        }
        Ok(())
    }

    fn frames(&mut self) -> Res {
        let machine = self.state;
        let mut running = HashSet::new();
        let mut base = STACK_START;
        for (i, f) in machine.frames.iter().enumerate() {
            if f.base as usize != base {
                return fail("frame base");
            }
            if f.coroutine != Id::NONE {
                let c = self.coroutine_at(f.coroutine)?;
                if c.template != f.template || c.state != state::RUNNING || !running.insert(f.coroutine) {
                    return fail("coroutine");
                }
            }
            let t = self.program.template(f.template);
            let pc = f.pc.checked_sub(t.start).ok_or(FormatError::Invalid("position"))?;
            let is_coroutine = self.coroutine_begins(f.template).is_some_and(|begin| begin < pc);
            if is_coroutine != (f.coroutine != Id::NONE) {
                return fail("coroutine");
            }
            let depth = self.depth(f.template, pc)? as usize;
            let waits = matches!(machine.phase, RunPhase::Paused | RunPhase::Host);
            // The operand that the callee's return pushes, or the result of a pause or host call.
            let back = match machine.frames.get(i + 1) {
                Some(next) => Some(next.back),
                None => (waits || machine.thrown.is_some()).then_some(machine.wait_back),
            };
            let missing = usize::from(matches!(back, Some(Back::Push | Back::Construct)));
            base = (base + t.slots as usize + depth)
                .checked_sub(missing)
                .ok_or(FormatError::Invalid("frame"))?;
            self.closure(f.template, f.env)?;
            let own = machine.stack.get(f.base as usize..base).ok_or(FormatError::Invalid("frame"))?;
            self.held(f.template, pc, own, f.env)?;
            if let Some(Back::Store(slot)) = back {
                let analysed = self.scopes.scope_use(self.program, f.template)?;
                let position = (slot as usize).checked_sub(f.base as usize);
                let is_scope = |held: &HeldScope| Some(usize::from(held.0)) == position;
                if slot as usize >= base || position.is_none() || analysed.held_at(t, pc).any(is_scope) {
                    return fail("frame");
                }
            }
        }
        if machine.sp == base { Ok(()) } else { fail("stack height") }
    }
}

/// Extends the stack to the length that the frames may need.
pub(super) fn extend_stack(program: &CompiledProgram, state: &mut VmState) {
    let need = state.frames.iter().map(|f| {
        let t = program.template(f.template);
        f.base as usize + t.slots as usize + t.depth as usize
    });
    let most = need.max().unwrap_or(0).max(state.sp) + 1024;
    state.stack.resize(most, Value::Undefined);
}
