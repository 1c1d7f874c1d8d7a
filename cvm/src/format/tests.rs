//! Invalid states that no program can reach: each is stored, and must be refused when it is loaded.

use super::{FormatError, VmPage};
use crate::heap::Cell;
use crate::heap::object::{Array, ByteBuffer, ByteView, Object, ObjectKind, Prop, attr};
use crate::program::CompiledProgram;
use crate::state::{Back, PendingJob, StateConfig, VmState};
use crate::value::{Id, Key, Value};

const SOURCE: &str = "const map = new Map([[1, 2]]); function* g() { yield 1; yield CC('inside'); } const one = g(), two = g(); one.next(); \
    two.next(); let list = []; for (let i = 0; i < 200; i++) list.push(i); const proxy = new Proxy({}, {}); \
    function main() { const again = g(); [...one, again, map, list, proxy, two]; }";

fn paused() -> (CompiledProgram, VmState) {
    let program = crate::compile(SOURCE, &crate::CompileOptions::default()).expect("it compiles");
    let mut state = VmState::new(&program, &StateConfig::default());
    let outcome = crate::run(&program, &mut state, u64::MAX);
    assert!(matches!(outcome, crate::RunOutcome::Pause { .. }));
    (program, state)
}

fn load(program: &CompiledProgram, state: &mut VmState) -> Result<VmState, FormatError> {
    let pages: Vec<VmPage> = state.pages_since(program, 0).pages;
    let limits = state.limits;
    VmState::restore(program, limits, pages.iter().map(|p| (p.number, p.bytes.as_slice())))
}

/// Ids of the objects for which `is` holds.
fn objects(state: &VmState, is: impl Fn(&Object) -> bool) -> Vec<Id> {
    let cells = state.heap.cells.iter().enumerate();
    cells.filter(|(_, c)| matches!(c, Cell::Obj(o) if is(o))).map(|(i, _)| Id(i as u32)).collect()
}

fn plain(state: &mut VmState) -> Id {
    state.heap.new_object(Id::NONE, ObjectKind::Plain)
}

/// A defect of the state, and a function that introduces it.
type Case = (&'static str, fn(&mut VmState));

const CASES: &[Case] = &[
    ("a free id below the base", |s| s.heap.cursor = 3),
    ("a free id past the end", |s| s.heap.cursor = s.heap.cells.len() as u32 + 1),
    ("a heap that weighs nothing", |s| {
        let kind =
            ObjectKind::Array(Array { dense: vec![Value::Null; 200_000], len: 200_000, len_writable: true });
        let id = s.heap.new_object(Id::NONE, kind);
        s.result = Value::Obj(id);
        s.heap.bytes = 0;
    }),
    ("a checkpoint that cannot be counted up", |s| s.checkpoint = u64::MAX - 2),
    ("a view of an object that is no buffer", |s| {
        let buffer = plain(s);
        let view = ByteView { element: None, buffer, offset: 0, length: Some(1) };
        s.result = Value::Obj(s.heap.new_object(Id::NONE, ObjectKind::View(Box::new(view))));
    }),
    ("a buffer that is longer than its limit", |s| {
        let buffer = ByteBuffer { bytes: vec![1; 9], max: Some(8), detached: false };
        s.result = Value::Obj(s.heap.new_object(Id::NONE, ObjectKind::Buffer(Box::new(buffer))));
    }),
    ("a detached buffer with bytes", |s| {
        let buffer = ByteBuffer { bytes: vec![1], max: None, detached: true };
        s.result = Value::Obj(s.heap.new_object(Id::NONE, ObjectKind::Buffer(Box::new(buffer))));
    }),
    ("its own prototype", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).proto = id;
    }),
    ("prototypes in a circle", |s| {
        let (a, b) = (plain(s), plain(s));
        s.heap.obj_mut(a).proto = b;
        s.heap.obj_mut(b).proto = a;
    }),
    ("a prototype that is no object", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).proto = Id(0);
    }),
    ("a prototype past the end", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).proto = Id(s.heap.cells.len() as u32 + 70);
    }),
    ("a wrapper of an object", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).kind = ObjectKind::Primitive(Value::Obj(id));
    }),
    ("a proxy of a number", |s| {
        let id = objects(s, |o| matches!(o.kind, ObjectKind::Proxy(_)))[0];
        s.heap.obj_mut(id).kind = ObjectKind::Proxy(Box::new((Value::Int(1), Value::Int(2), true, true)));
    }),
    ("a regular expression of numbers", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).kind = ObjectKind::RegExp(Value::Int(1), Value::Int(2));
    }),
    ("entries that cannot be counted up", |s| {
        let id = objects(s, |o| matches!(o.kind, ObjectKind::Map(_)))[0];
        if let ObjectKind::Map(table) = &mut s.heap.obj_mut(id).kind {
            table.next = u64::MAX;
        }
    }),
    ("an accessor without a pair", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).props.push(Prop { key: Key::index(1), flags: attr::ACCESSOR, value: Value::Null });
    }),
    ("a key that is an object", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).props.push(Prop { key: Key::cell(id), flags: attr::ALL, value: Value::Null });
    }),
    ("a string that is an object", |s| {
        let id = plain(s);
        s.result = Value::Str(id);
    }),
    ("a coroutine that another frame runs", |s| {
        let id = objects(s, |o| matches!(&o.kind, ObjectKind::Coroutine(c) if c.state == 1))[0];
        let frame = s.frames.iter_mut().find(|f| f.coroutine != Id::NONE).expect("a generator runs");
        frame.coroutine = id;
    }),
    ("a coroutine of another function", |s| {
        let frame = *s.frames.iter().find(|f| f.coroutine != Id::NONE).expect("a generator runs");
        if let ObjectKind::Coroutine(c) = &mut s.heap.obj_mut(frame.coroutine).kind {
            c.template -= 1;
        }
    }),
    ("a suspended coroutine at no yield", |s| {
        let id = objects(s, |o| matches!(&o.kind, ObjectKind::Coroutine(c) if c.state == 1))[0];
        if let ObjectKind::Coroutine(c) = &mut s.heap.obj_mut(id).kind {
            c.pc += 1;
        }
    }),
    ("a suspended coroutine far past the code", |s| {
        let id = objects(s, |o| matches!(&o.kind, ObjectKind::Coroutine(c) if c.state == 1))[0];
        if let ObjectKind::Coroutine(c) = &mut s.heap.obj_mut(id).kind {
            c.pc = u32::MAX;
        }
    }),
    ("a suspended coroutine without its operands", |s| {
        let id = objects(s, |o| matches!(&o.kind, ObjectKind::Coroutine(c) if c.state == 1))[0];
        if let ObjectKind::Coroutine(c) = &mut s.heap.obj_mut(id).kind {
            c.slots.pop();
        }
    }),
    ("a frame somewhere else", |s| s.frames[0].base += 1),
    ("a frame past its function", |s| s.frames[0].pc += 10_000),
    ("a frame of no function", |s| s.frames[0].template = 4000),
    ("a result stored above the frame", |s| {
        s.wait_back = Back::Store(u32::MAX);
        s.sp += 1;
    }),
    ("operands too many", |s| s.sp += 1),
    ("operands too few", |s| s.sp -= 1),
    ("a job of the program's own", |s| {
        s.jobs.push_back(PendingJob::Call(crate::program::USER_TEMPLATES, Vec::new()));
    }),
    ("a job with too many arguments", |s| s.jobs.push_back(PendingJob::Call(1, vec![Value::Null; 17]))),
    ("a job for an object that is not a coroutine", |s| {
        let id = plain(s);
        s.jobs.push_back(PendingJob::Resume(id, 0, Value::Null));
    }),
    ("a job without a function", |s| s.jobs.push_back(PendingJob::Resume(Id(u32::MAX / 4), 0, Value::Null))),
    ("a registered symbol that is not a symbol", |s| s.registry.push((Id(300), Id(300)))),
    ("joining a cell that is not an object", |s| s.joining.push(Id(300))),
    ("a template object that is not an object", |s| {
        s.template_objects.insert(0, Id(300));
    }),
    ("a function that does not exist", |s| {
        let id = objects(s, |o| matches!(o.kind, ObjectKind::Function(_)))[0];
        if let ObjectKind::Function(f) = &mut s.heap.obj_mut(id).kind {
            f.code = crate::heap::object::Code::Native(1 << 20);
        }
    }),
];

#[test]
fn an_invalid_state_is_refused() {
    let (program, mut state) = paused();
    load(&program, &mut state).expect("as it was");
    for (what, change) in CASES {
        let (program, mut state) = paused();
        change(&mut state);
        let loaded = load(&program, &mut state);
        assert!(matches!(loaded, Err(FormatError::Invalid(_))), "{what}: {:?}", loaded.err());
    }
}

#[test]
fn a_chunk_without_a_cell_is_refused() {
    let (program, mut state) = paused();
    let mut pages = state.pages_since(&program, 0).pages;
    let chunk = pages.iter().find(|p| p.number >= 1 << 62).expect("the list has chunks").clone();
    let elsewhere = chunk.number + (1 << 30);
    let body = super::unframe(*b"CP", chunk.number, &chunk.bytes).expect("a page");
    pages.push(VmPage { number: elsewhere, bytes: super::frame(*b"CP", elsewhere, body) });
    let limits = state.limits;
    let loaded = VmState::restore(&program, limits, pages.iter().map(|p| (p.number, p.bytes.as_slice())));
    assert_eq!(loaded.err(), Some(FormatError::Invalid("chunk of nothing")));
}
