//! States that no program makes: each is stored, and refused when it is loaded.

use super::{FormatError, Page};
use crate::heap::Cell;
use crate::heap::object::{Array, Kind, Object, Prop, attr};
use crate::program::Program;
use crate::state::{Back, Job, State, StateConfig};
use crate::value::{Id, Key, Value};

const SOURCE: &str = "const map = new Map([[1, 2]]); function* g() { yield 1; yield CC('inside'); } const one = g(), two = g(); one.next(); \
    two.next(); let list = []; for (let i = 0; i < 200; i++) list.push(i); const proxy = new Proxy({}, {}); \
    function main() { const again = g(); [...one, again, map, list, proxy, two]; }";

fn paused() -> (Program, State) {
    let program = crate::compile(SOURCE, &crate::CompileOptions::default()).expect("it compiles");
    let mut state = State::new(&program, &StateConfig::default());
    let outcome = crate::run(&program, &mut state, u64::MAX);
    assert!(matches!(outcome, crate::Outcome::Pause { .. }));
    (program, state)
}

fn load(program: &Program, state: &mut State) -> Result<State, FormatError> {
    let pages: Vec<Page> = state.pages_since(program, 0).pages;
    let limits = state.limits;
    State::restore(program, limits, pages.iter().map(|p| (p.number, p.bytes.as_slice())))
}

/// Ids of the objects for which `is` holds.
fn objects(state: &State, is: impl Fn(&Object) -> bool) -> Vec<Id> {
    let cells = state.heap.cells.iter().enumerate();
    cells.filter(|(_, c)| matches!(c, Cell::Obj(o) if is(o))).map(|(i, _)| Id(i as u32)).collect()
}

fn plain(state: &mut State) -> Id {
    state.heap.new_object(Id::NONE, Kind::Plain)
}

/// What is wrong, and how it gets so.
type Case = (&'static str, fn(&mut State));

const CASES: &[Case] = &[
    ("a free place below the base", |s| s.heap.cursor = 3),
    ("a free place behind the end", |s| s.heap.cursor = s.heap.cells.len() as u32 + 1),
    ("a heap that weighs nothing", |s| {
        let kind = Kind::Array(Array { dense: vec![Value::Null; 200_000], len: 200_000, len_writable: true });
        let id = s.heap.new_object(Id::NONE, kind);
        s.result = Value::Obj(id);
        s.heap.bytes = 0;
    }),
    ("a checkpoint that cannot be counted up", |s| s.checkpoint = u64::MAX - 2),
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
    ("a prototype behind the end", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).proto = Id(s.heap.cells.len() as u32 + 70);
    }),
    ("a wrapper of an object", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).kind = Kind::Primitive(Value::Obj(id));
    }),
    ("a proxy of a number", |s| {
        let id = objects(s, |o| matches!(o.kind, Kind::Proxy(_)))[0];
        s.heap.obj_mut(id).kind = Kind::Proxy(Box::new((Value::Int(1), Value::Int(2), true, true)));
    }),
    ("a regular expression of numbers", |s| {
        let id = plain(s);
        s.heap.obj_mut(id).kind = Kind::RegExp(Value::Int(1), Value::Int(2));
    }),
    ("entries that cannot be counted up", |s| {
        let id = objects(s, |o| matches!(o.kind, Kind::Map(_)))[0];
        if let Kind::Map(table) = &mut s.heap.obj_mut(id).kind {
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
        let id = objects(s, |o| matches!(&o.kind, Kind::Coroutine(c) if c.state == 1))[0];
        let frame = s.frames.iter_mut().find(|f| f.coroutine != Id::NONE).expect("a generator runs");
        frame.coroutine = id;
    }),
    ("a coroutine of another function", |s| {
        let frame = *s.frames.iter().find(|f| f.coroutine != Id::NONE).expect("a generator runs");
        if let Kind::Coroutine(c) = &mut s.heap.obj_mut(frame.coroutine).kind {
            c.template -= 1;
        }
    }),
    ("a suspended coroutine at no yield", |s| {
        let id = objects(s, |o| matches!(&o.kind, Kind::Coroutine(c) if c.state == 1))[0];
        if let Kind::Coroutine(c) = &mut s.heap.obj_mut(id).kind {
            c.pc += 1;
        }
    }),
    ("a suspended coroutine far behind the code", |s| {
        let id = objects(s, |o| matches!(&o.kind, Kind::Coroutine(c) if c.state == 1))[0];
        if let Kind::Coroutine(c) = &mut s.heap.obj_mut(id).kind {
            c.pc = u32::MAX;
        }
    }),
    ("a suspended coroutine without its operands", |s| {
        let id = objects(s, |o| matches!(&o.kind, Kind::Coroutine(c) if c.state == 1))[0];
        if let Kind::Coroutine(c) = &mut s.heap.obj_mut(id).kind {
            c.slots.pop();
        }
    }),
    ("a frame somewhere else", |s| s.frames[0].base += 1),
    ("a frame behind its function", |s| s.frames[0].pc += 10_000),
    ("a frame of no function", |s| s.frames[0].template = 4000),
    ("a result stored above the frame", |s| {
        s.wait_back = Back::Store(u32::MAX);
        s.sp += 1;
    }),
    ("operands too many", |s| s.sp += 1),
    ("operands too few", |s| s.sp -= 1),
    ("a job of the program's own", |s| {
        s.jobs.push_back(Job::Call(crate::program::USER_TEMPLATES, Vec::new()));
    }),
    ("a job with too many arguments", |s| s.jobs.push_back(Job::Call(1, vec![Value::Null; 17]))),
    ("a job for what is no coroutine", |s| {
        let id = plain(s);
        s.jobs.push_back(Job::Resume(id, 0, Value::Null));
    }),
    ("a job for nobody", |s| s.jobs.push_back(Job::Resume(Id(u32::MAX / 4), 0, Value::Null))),
    ("a registered symbol that is none", |s| s.registry.push((Id(300), Id(300)))),
    ("joining what is no object", |s| s.joining.push(Id(300))),
    ("a template object that is none", |s| {
        s.template_objects.insert(0, Id(300));
    }),
    ("a function that does not exist", |s| {
        let id = objects(s, |o| matches!(o.kind, Kind::Function(_)))[0];
        if let Kind::Function(f) = &mut s.heap.obj_mut(id).kind {
            f.code = crate::heap::object::Code::Native(1 << 20);
        }
    }),
];

#[test]
fn a_state_that_no_program_makes_is_refused() {
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
fn a_chunk_that_belongs_to_nobody_is_refused() {
    let (program, mut state) = paused();
    let mut pages = state.pages_since(&program, 0).pages;
    let chunk = pages.iter().find(|p| p.number >= 1 << 62).expect("the list has chunks").clone();
    let elsewhere = chunk.number + (1 << 30);
    let body = super::unframe(*b"CP", chunk.number, &chunk.bytes).expect("a page");
    pages.push(Page { number: elsewhere, bytes: super::frame(*b"CP", elsewhere, body) });
    let limits = state.limits;
    let loaded = State::restore(&program, limits, pages.iter().map(|p| (p.number, p.bytes.as_slice())));
    assert_eq!(loaded.err(), Some(FormatError::Invalid("chunk of nothing")));
}
