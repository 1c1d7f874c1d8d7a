//! Invalid states that no program can reach: each is stored, and must be refused when it is loaded.

use super::{FormatError, VmPage};
use crate::heap::Cell;
use crate::heap::object::{
    Array, ByteBuffer, ByteView, Object, ObjectKind, Promise, PromiseItem, Prop, attr,
};
use crate::outcome::{ItemKind, PendingRequest};
use crate::program::CompiledProgram;
use crate::state::{Back, PendingJob, RunPhase, StateConfig, VmState};
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
    ("a heap that weighs more than its limit lets it", |s| s.heap.bytes = s.heap.limit * 5),
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

const ITEMS: &str = "const held = [CC.async('a'), sleep(5), waitFor('e')]; const settled = Promise.resolve(1); \
    async function main() { for (const one of held) await one; }";

/// A program that waits for items, of which none was made anew since they were taken.
fn waiting(source: &str, items: bool) -> (CompiledProgram, VmState) {
    let options = crate::CompileOptions { items, ..crate::CompileOptions::default() };
    let program = crate::compile(source, &options).expect("it compiles");
    let mut state = VmState::new(&program, &StateConfig::default());
    let outcome = crate::run(&program, &mut state, u64::MAX);
    assert!(
        matches!(outcome, crate::RunOutcome::Wait { .. } | crate::RunOutcome::Pause { .. }),
        "{outcome:?}"
    );
    (program, state)
}

fn item_mut(state: &mut VmState, number: u64) -> &mut Promise {
    let id = state.items[&number];
    match &mut state.heap.obj_mut(id).kind {
        ObjectKind::Promise(promise) => promise,
        other => panic!("{other:?}"),
    }
}

const ITEM_CASES: &[Case] = &[
    ("a number twice", |s| item_mut(s, 2).item = Some(PromiseItem { number: 1, kind: ItemKind::Timer })),
    ("number 0", |s| item_mut(s, 2).item = Some(PromiseItem { number: 0, kind: ItemKind::Timer })),
    ("a number that was not given yet", |s| s.next_item = 3),
    ("numbers that cannot be counted up", |s| s.next_item = u64::MAX - 1),
    ("no next number", |s| s.next_item = 0),
    ("an item of a settled promise", |s| item_mut(s, 1).state = 1),
    ("a rejected promise's item", |s| item_mut(s, 3).state = 2),
    ("a wait without items", |s| (1..=3).for_each(|number| item_mut(s, number).item = None)),
    ("a wait with a job", |s| s.enqueue(PendingJob::Call(1, Vec::new()))),
    ("a wait with an exception", |s| s.thrown = Some(Value::Null)),
    ("a wait with a request", |s| {
        s.request = Some(PendingRequest::Task { prompt: "q".to_owned(), options: None });
    }),
    ("a start with items", |s| s.phase = RunPhase::Start),
    ("a pause without a frame", |s| s.phase = RunPhase::Paused),
    ("the wait of a broken program", |s| s.phase = RunPhase::Broken),
];

#[test]
fn invalid_items_are_refused() {
    let (program, mut state) = waiting(ITEMS, true);
    let open = state.open_items();
    assert_eq!(load(&program, &mut state).expect("as it was").open_items(), open);
    for (what, change) in ITEM_CASES {
        let (program, mut state) = waiting(ITEMS, true);
        change(&mut state);
        let loaded = load(&program, &mut state);
        assert!(matches!(loaded, Err(FormatError::Invalid(_))), "{what}: {:?}", loaded.err());
    }
}

#[test]
fn a_wait_with_a_frame_and_items_of_a_program_that_has_none_are_refused() {
    let (program, mut state) = waiting("sleep(1); CC('q');", true);
    state.phase = RunPhase::Wait;
    state.request = None;
    assert_eq!(load(&program, &mut state).map(drop), Err(FormatError::Invalid("phase")));
    for (items, expected) in [(true, Ok(())), (false, Err(FormatError::Invalid("item")))] {
        let (program, mut state) = waiting("const held = new Promise(() => {}); CC('q');", items);
        let promise = objects(&state, |o| matches!(o.kind, ObjectKind::Promise(_)))[0];
        state.items.insert(1, promise);
        state.next_item = 2;
        item_mut(&mut state, 1).item = Some(PromiseItem { number: 1, kind: ItemKind::Event });
        assert_eq!(load(&program, &mut state).map(drop), expected);
    }
}

#[test]
fn the_index_of_items_is_the_promises() {
    let (program, mut state) = waiting(ITEMS, true);
    let promise = state.items[&2];
    state.items.insert(4, promise);
    state.next_item = 5;
    assert_eq!(state.verify(&program), Err(FormatError::Invalid("item")));
    state.items.retain(|number, _| *number < 2);
    assert_eq!(state.verify(&program), Err(FormatError::Invalid("item")));
}

/// The first pack of a state as it is stored.
const FIRST_PACK: u64 = 1 << 61;

type Records = Vec<(u64, Option<Vec<u8>>)>;

fn records_of(program: &CompiledProgram, state: &mut VmState) -> (Vec<u8>, Records) {
    let pages = state.pages_since(program, 0).pages;
    assert_eq!(pages.len(), 2, "a frame page and a pack");
    let body = super::unframe(*b"CP", pages[1].number, &pages[1].bytes).expect("a pack");
    let (mut packs, mut records) = (super::packs::Packs::default(), Records::new());
    let each = |number, content: Option<&[u8]>| records.push((number, content.map(<[u8]>::to_vec)));
    let stored = super::packs::StoredPack::new(FIRST_PACK, body).expect("a pack");
    packs.add_pack(&stored, each).expect("its records");
    (pages[0].bytes.clone(), records)
}

fn pack(number: u64, position: u64, records: &Records) -> Vec<u8> {
    let mut w = super::codec::ByteWriter::default();
    w.num(position);
    for (record, content) in records {
        w.num(*record);
        w.count(content.as_ref().map_or(0, |bytes| bytes.len() + 1));
        w.out.extend_from_slice(content.as_deref().unwrap_or_default());
    }
    super::frame(*b"CP", number, &w.out)
}

/// The error of loading a state after its records were changed.
fn load_changed(change: impl FnOnce(&mut Records)) -> Result<(), FormatError> {
    let source = "const list = []; for (let i = 0; i < 200; i++) list.push(i); const text = 'text '.repeat(1000) + 'x'; CC('q');";
    let program = crate::compile(source, &crate::CompileOptions::default()).expect("it compiles");
    let mut state = VmState::new(&program, &StateConfig::default());
    assert!(matches!(crate::run(&program, &mut state, u64::MAX), crate::RunOutcome::Pause { .. }));
    let (frame, mut records) = records_of(&program, &mut state);
    change(&mut records);
    let pack = pack(FIRST_PACK, 0, &records);
    let pages = [(0, frame.as_slice()), (FIRST_PACK, pack.as_slice())];
    VmState::restore(&program, state.limits, pages).map(drop)
}

fn is_text(record: &(u64, Option<Vec<u8>>)) -> bool {
    (1 << 60..1 << 61).contains(&record.0)
}

fn is_part(record: &(u64, Option<Vec<u8>>)) -> bool {
    record.0 >= 1 << 62
}

#[test]
fn records_that_do_not_fit_each_other_are_refused() {
    assert_eq!(load_changed(|_| ()), Ok(()));
    let invalid = |what| Err(FormatError::Invalid(what));
    let part = |records: &Records| records.iter().find(|r| is_part(r)).expect("the list has parts").clone();
    let text = |records: &Records| records.iter().find(|r| is_text(r)).expect("the text has chunks").clone();
    let elsewhere = |records: &mut Records| {
        let (number, content) = part(records);
        records.push((number + (1 << 30), content));
    };
    assert_eq!(load_changed(elsewhere), invalid("chunk of nothing"));
    let unused = |records: &mut Records| records.push((text(records).0 ^ 1, Some(vec![1])));
    assert_eq!(load_changed(unused), invalid("chunk of nothing"));
    assert_eq!(load_changed(|records| records.retain(|r| !is_text(r))), invalid("missing chunk"));
    assert_eq!(load_changed(|records| records.retain(|r| !is_part(r))), invalid("missing chunk"));
    let gone = |records: &mut Records| records.push((text(records).0, None));
    assert_eq!(load_changed(gone), invalid("missing chunk"));
    let longer = |records: &mut Records| {
        let (number, content) = text(records);
        records.push((number, content.map(|content| [content, vec![0]].concat())));
    };
    assert_eq!(load_changed(longer), invalid("text"));
    // Much text of few bytes: a chunk is used more than once.
    let many = |records: &mut Records| {
        for record in records.iter_mut().filter(|r| is_text(r)) {
            record.1 = Some(vec![0; 40 << 20]);
        }
    };
    assert_eq!(load_changed(many), invalid("text"));
    for number in [0, FIRST_PACK, FIRST_PACK + 5, 1 << 63] {
        assert_eq!(
            load_changed(|records| records.push((number, Some(vec![1])))),
            invalid("record"),
            "{number}"
        );
    }
    assert_eq!(load_changed(|records| records.push((1 << 27, Some(vec![1])))), invalid("page number"));
    // A mark of a number that no pack has is meaningless and harmless.
    assert_eq!(load_changed(|records| records.push((1 << 27, None))), Ok(()));
}

#[test]
fn impossible_numbers_of_pages_are_refused() {
    let (program, mut state) = paused();
    let (frame, records) = records_of(&program, &mut state);
    for number in [1 << 60, FIRST_PACK + (1 << 40)] {
        let page = pack(number, 0, &records);
        let pages = [(0, frame.as_slice()), (number, page.as_slice())];
        let loaded = VmState::restore(&program, state.limits, pages).map(drop);
        assert_eq!(loaded, Err(FormatError::Invalid("page number")));
    }
}

#[test]
fn packs_without_an_order_are_refused() {
    let (program, mut state) = paused();
    let (frame, records) = records_of(&program, &mut state);
    let load = |first: u64, second: u64| {
        let packs = [pack(FIRST_PACK, first, &records), pack(FIRST_PACK + 1, second, &records)];
        let pages = [(0, frame.as_slice()), (FIRST_PACK, &packs[0]), (FIRST_PACK + 1, &packs[1])];
        VmState::restore(&program, state.limits, pages).map(drop)
    };
    assert_eq!(load(7, 3), Ok(()));
    assert_eq!(load(7, 7), Err(FormatError::Invalid("position of a pack")));
    assert_eq!(load(1 << 60, 3), Err(FormatError::Invalid("position of a pack")));
}
