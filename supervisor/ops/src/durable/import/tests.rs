//! Files that are damaged, truncated, forged or reformatted.

use super::super::archive::{Bytes, Header, ItemPart, ProgramPart, Sheet};
use super::super::imported::consistent;
use super::*;
use crate::durable::tasks::ANSWER_BYTES;
use vm_system_protocol::durable::{EVENT_NAME_BYTES, PROMPT_BYTES};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, ExecutionStatus, Metrics};
use vm_system_protocol::time::Timestamp;

const SOURCE: &str = "CC('why?')";

fn header(format: u32) -> ArchiveRecord {
    let (kind, writer) = ("execution".to_owned(), "test".to_owned());
    ArchiveRecord::Header(Header { kind, format, writer, exported_at: Timestamp(0) })
}

fn version() -> VersionPart {
    VersionPart {
        version: 3,
        source: SOURCE.to_owned(),
        source_hash: hex(&Sha256::digest(SOURCE).into()),
        created_at: Timestamp(0),
        format: 1,
        code: Some(Bytes(vec![1, 2, 3])),
    }
}

fn task(checkpoint: u64, ended: bool) -> TaskPart {
    TaskPart {
        item: None,
        prompt: "why?".to_owned(),
        schema: None,
        attempts: 0,
        created_at: Timestamp(0),
        deadline: None,
        ended_at: ended.then_some(Timestamp(1)),
        outcome: ended.then(|| "answered".to_owned()),
        answer: None,
        checkpoint,
        retries: None,
        fallback: None,
        first_attempt_at: None,
        last_attempt_at: None,
    }
}

fn event(seq: u64) -> ArchiveRecord {
    let payload = EventPayload::console(ConsoleLevel::Log, "a\nb".to_owned());
    ArchiveRecord::Event(Event {
        execution_id: ExecutionId::from_bytes([1; 16]),
        seq,
        ts: Timestamp(0),
        payload,
    })
}

fn page(page: u64, checkpoint: u64) -> ArchiveRecord {
    ArchiveRecord::Page(PagePart { page, checkpoint, bytes: Some(Bytes(vec![7; 300])) })
}

fn checkpoint(seq: u64) -> ArchiveRecord {
    ArchiveRecord::Checkpoint(CheckpointPart { seq, at: Timestamp(0), cause: "pause".to_owned() })
}

fn records() -> Vec<ArchiveRecord> {
    vec![
        header(FORMAT),
        ArchiveRecord::Program(ProgramPart { name: "p".to_owned() }),
        ArchiveRecord::Version(version()),
        ArchiveRecord::Execution(ExecutionPart {
            id: "there".to_owned(),
            name: None,
            status: ExecutionStatus::Waiting,
            args: JsonText::from_untrusted("[]".to_owned()),
            env: JsonText::empty_object(),
            started_at: Timestamp(0),
            ended_at: None,
            result: None,
            error: None,
            metrics: Metrics::default(),
        }),
        checkpoint(4),
        checkpoint(6),
        ArchiveRecord::Task(task(4, true)),
        ArchiveRecord::Task(task(6, false)),
        event(1),
        event(2),
        page(0, 2),
        page(0, 6),
        page(1, 4),
    ]
}

/// A file with a valid hash.
fn sealed(records: &[ArchiveRecord]) -> String {
    let mut sheet = Sheet::default();
    for record in records {
        sheet.put(record).expect("plain data");
    }
    sheet.end().expect("plain data");
    sheet.text
}

fn read(text: &[u8], part: usize) -> Result<ImportFile, OpError> {
    let mut reader = Reader::new(1 << 20, Timestamp(1 << 41));
    for bytes in text.chunks(part) {
        reader.feed(bytes)?;
    }
    reader.whole()
}

#[track_caller]
fn refused(text: &str) -> String {
    let error = read(text.as_bytes(), 4_096).expect_err("it is not such a file");
    assert_eq!(error.code, ErrorCode::ValidationError, "{error:?}");
    error.message
}

#[test]
fn a_file_is_read_in_parts_of_any_size() {
    let text = sealed(&records());
    for part in [1, 7, 100, usize::MAX] {
        let file = read(text.as_bytes(), part).expect("as it was written");
        assert_eq!((file.kind, file.program.as_str()), (ArchiveKind::Execution, "p"));
        assert_eq!((file.versions.len(), file.tasks.len(), file.events.len()), (1, 2, 2));
        assert_eq!(file.pages.keys().collect::<Vec<_>>(), [&(0, 2), &(0, 6), &(1, 4)]);
    }
    let document: serde_json::Value = serde_json::from_str(&text).expect("one JSON document");
    assert_eq!(document.as_array().map(Vec::len), Some(records().len() + 1));
}

#[test]
fn file_that_is_truncated_anywhere_is_refused() {
    let text = sealed(&records());
    let end = text.trim_end().len();
    for at in 0..end {
        refused(&text[..at]);
    }
    refused(&format!("{text}[]"));
    refused(&format!("{text}{text}"));
}

#[test]
fn a_file_that_was_changed_anywhere_is_refused() {
    let text = sealed(&records());
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        // White space around records is ignored; any other change is found.
        if let Ok(file) = read(&bytes, usize::MAX) {
            assert!(text.as_bytes()[at] == b',' || text.as_bytes()[at].is_ascii_whitespace(), "byte {at}");
            assert_eq!(file.pages.len(), 3);
        }
    }
}

#[test]
fn records_that_do_not_belong_together_are_refused_even_with_the_right_hash() {
    let with = |at: usize, record: ArchiveRecord| {
        let mut forged = records();
        forged[at] = record;
        sealed(&forged)
    };
    let newer = refused(&with(0, header(FORMAT + 1)));
    assert!(newer.contains("a newer vm-system wrote it"), "{newer}");
    let lie = VersionPart { source: "other".to_owned(), ..version() };
    assert!(refused(&with(2, ArchiveRecord::Version(lie))).contains("its hash"));
    let too_much = VersionPart { code: Some(Bytes(vec![0; CODE_BYTES + 1])), ..version() };
    refused(&with(2, ArchiveRecord::Version(too_much)));
    refused(&with(2, ArchiveRecord::Version(VersionPart { code: None, ..version() })));
    refused(&with(5, checkpoint(4)));
    refused(&with(5, checkpoint(u64::MAX)));
    refused(&with(6, ArchiveRecord::Task(task(4, false))));
    refused(&with(7, ArchiveRecord::Task(task(4, true))));
    let unknown = TaskPart { outcome: Some("unknown".to_owned()), ..task(6, true) };
    refused(&with(7, ArchiveRecord::Task(unknown)));
    let schema = Some(JsonText::from_untrusted("{\"type\":\"nothing\"}".to_owned()));
    refused(&with(7, ArchiveRecord::Task(TaskPart { schema, ..task(6, false) })));
    refused(&with(9, event(3)));
    refused(&with(11, page(0, 2)));
    refused(&with(12, page(1, 7)));
    refused(&with(12, page(u64::MAX, 6)));
    refused(&with(
        12,
        ArchiveRecord::Page(PagePart { page: 1, checkpoint: 4, bytes: Some(Bytes(Vec::new())) }),
    ));
    for at in 0..records().len() - 1 {
        let mut swapped = records();
        swapped.swap(at, at + 1);
        refused(&sealed(&swapped));
    }
}

#[test]
fn lines_without_an_end_and_other_files_are_refused_early() {
    let mut reader = Reader::new(1 << 20, Timestamp(1 << 41));
    reader.feed(b"[\n").expect("a beginning");
    let part = vec![b'x'; PART_BYTES];
    let fed = (0..=LINE_BYTES / PART_BYTES).find_map(|_| reader.feed(&part).err());
    assert!(fed.is_some_and(|error| error.message.contains("too long")));
    for other in ["{\"a\":1}\n", "PK\u{3}\u{4}\n", "[1,2]\n", "\u{0}\n", "[\n[[[[\n"] {
        refused(other);
    }
    let deep = format!("[\n{}\n", "[".repeat(100_000));
    refused(&deep);
}

#[test]
fn impossible_numbers_and_times_are_refused() {
    let with = |at: usize, record: ArchiveRecord| {
        let mut forged = records();
        forged[at] = record;
        refused(&sealed(&forged))
    };
    let execution = |change: &dyn Fn(&mut ExecutionPart)| {
        let ArchiveRecord::Execution(mut part) = records().swap_remove(3) else {
            panic!("the fourth record")
        };
        change(&mut part);
        with(3, ArchiveRecord::Execution(part))
    };
    let refused_task = |change: &dyn Fn(&mut TaskPart)| {
        let mut part = task(6, false);
        change(&mut part);
        with(7, ArchiveRecord::Task(part))
    };
    let json = |text: String| JsonText::from_untrusted(text);
    let (late, early) = (Timestamp(i64::MAX), Timestamp(-1));
    let long = || "x".repeat(PROMPT_BYTES + 1);
    refused_task(&|part| part.attempts = u32::MAX);
    refused_task(&|part| part.created_at = late);
    refused_task(&|part| part.created_at = early);
    refused_task(&|part| part.deadline = Some(late));
    refused_task(&|part| part.last_attempt_at = Some(late));
    refused_task(&|part| part.prompt = long());
    refused_task(&|part| part.fallback = Some(json(format!("{:?}", long().repeat(2)))));
    let answered = TaskPart { answer: Some("x".repeat(ANSWER_BYTES + 1)), ..task(4, true) };
    with(6, ArchiveRecord::Task(answered));
    execution(&|part| part.started_at = late);
    execution(&|part| part.ended_at = Some(late));
    execution(&|part| part.metrics.output_bytes = i64::MAX as u64);
    execution(&|part| part.metrics.cpu_ms = u64::MAX);
    execution(&|part| part.args = json("[1]".to_owned()));
    execution(&|part| part.args = json(format!("[{:?}]", long())));
    execution(&|part| part.env = json("{\"a=b\":\"\"}".to_owned()));
    execution(&|part| part.result = Some(json(format!("{:?}", long().repeat(4)))));
    with(2, ArchiveRecord::Version(VersionPart { created_at: late, ..version() }));
    with(5, checkpoint(i64::MAX as u64));
    with(5, ArchiveRecord::Checkpoint(CheckpointPart { seq: 6, at: late, cause: "pause".to_owned() }));
    with(12, page(i64::MAX as u64, 6));
    let refused_event = |text: String, ts: Timestamp| {
        let payload = EventPayload::console(ConsoleLevel::Log, text);
        with(
            9,
            ArchiveRecord::Event(Event {
                execution_id: ExecutionId::from_bytes([1; 16]),
                seq: 2,
                ts,
                payload,
            }),
        )
    };
    refused_event(String::new(), late);
    refused_event(long(), Timestamp(0));
}

#[test]
fn pages_of_large_texts_have_large_numbers() {
    let mut all = records();
    let end =
        all.iter().rposition(|record| matches!(record, ArchiveRecord::Page(_))).expect("there are pages");
    all.insert(end + 1, page((1 << 62) + 7, 6));
    read(sealed(&all).as_bytes(), 4_096).expect("as a worker writes it");
}

#[test]
fn values_that_are_null_are_kept() {
    let null = || Some(JsonText::from_untrusted("null".to_owned()));
    let execution = ExecutionPart {
        id: "there".to_owned(),
        name: None,
        status: ExecutionStatus::Ok,
        args: JsonText::from_untrusted("[]".to_owned()),
        env: JsonText::from_untrusted("{}".to_owned()),
        started_at: Timestamp(0),
        ended_at: Some(Timestamp(1)),
        result: null(),
        error: None,
        metrics: Metrics::default(),
    };
    let written = serde_json::to_string(&execution).expect("JSON");
    let read: ExecutionPart = serde_json::from_str(&written).expect("as written");
    assert_eq!(read.result, null());
    let written = serde_json::to_string(&TaskPart { fallback: null(), ..task(1, true) }).expect("JSON");
    let read: TaskPart = serde_json::from_str(&written).expect("as written");
    assert_eq!((read.fallback, read.schema), (null(), None));
}

fn timer(number: u64) -> TaskPart {
    let item = ItemPart { number, kind: "timer".to_owned(), name: None, answer_seq: None, taken_at: None };
    TaskPart { item: Some(item), prompt: String::new(), deadline: Some(Timestamp(1 << 41)), ..task(6, false) }
}

fn awaited(number: u64, name: &str) -> TaskPart {
    let mut part = TaskPart { deadline: None, ..timer(number) };
    part.item =
        part.item.map(|item| ItemPart { kind: "event".to_owned(), name: Some(name.to_owned()), ..item });
    part
}

fn mail(name: &str, event: &str) -> ArchiveRecord {
    let event = JsonText::from_untrusted(event.to_owned());
    ArchiveRecord::Mail(MailPart { name: name.to_owned(), event, at: Timestamp(0) })
}

/// A file whose execution has these items and events, besides its pauses.
fn with_items(items: Vec<TaskPart>, kept: Vec<ArchiveRecord>) -> String {
    let mut all = records();
    let more = items.into_iter().map(ArchiveRecord::Task).chain(kept);
    all.splice(8..8, more);
    sealed(&all)
}

#[test]
fn items_and_events_are_read_and_those_that_no_program_can_have_are_refused() {
    let (items, kept) = (vec![timer(1), awaited(2, "paid")], vec![mail("paid", "1"), mail("e", "null")]);
    let file = read(with_items(items, kept).as_bytes(), 4_096).expect("as it was written");
    assert_eq!((file.tasks.len(), file.mail.len()), (4, 2));
    let item = |change: &dyn Fn(&mut TaskPart)| {
        let mut part = awaited(3, "paid");
        change(&mut part);
        refused(&with_items(vec![part], Vec::new()));
    };
    let of_item =
        |change: &dyn Fn(&mut ItemPart)| item(&|part| part.item.as_mut().into_iter().for_each(change));
    of_item(&|item| item.kind = "wish".to_owned());
    of_item(&|item| item.number = 0);
    of_item(&|item| item.number = 1 << 40);
    of_item(&|item| item.answer_seq = Some(u64::MAX));
    of_item(&|item| item.taken_at = Some(u64::MAX));
    of_item(&|item| item.taken_at = Some(6));
    of_item(&|item| item.name = None);
    of_item(&|item| item.name = Some("x".repeat(EVENT_NAME_BYTES + 1)));
    of_item(&|item| item.kind = "timer".to_owned());
    item(&|part| part.prompt = "why?".to_owned());
    item(&|part| part.schema = Some(JsonText::from_untrusted("{}".to_owned())));
    item(&|part| {
        (part.ended_at, part.outcome) = (Some(Timestamp(1)), Some("answered".to_owned()));
        part.answer = Some("no JSON".to_owned());
    });
    let endless = TaskPart { deadline: None, ..timer(1) };
    refused(&with_items(vec![endless], Vec::new()));
    let answered = TaskPart { answer: Some("1".to_owned()), ..timer(1) };
    refused(&with_items(vec![answered], Vec::new()));
    refused(&with_items(vec![timer(2), timer(1)], Vec::new()));
    refused(&with_items(vec![timer(1), timer(1)], Vec::new()));

    refused(&with_items(Vec::new(), vec![mail("", "1")]));
    refused(&with_items(Vec::new(), vec![mail(&"x".repeat(EVENT_NAME_BYTES + 1), "1")]));
    let one = format!("{:?}", "x".repeat(600 << 10));
    refused(&with_items(Vec::new(), vec![mail("e", &one), mail("e", &one)]));
    let many = |number: usize| with_items(Vec::new(), (0..number).map(|_| mail("e", "1")).collect());
    read(many(1_000).as_bytes(), 4_096).expect("as many as an execution keeps");
    refused(&many(1_001));
    let late = MailPart { at: Timestamp(i64::MAX), name: "e".to_owned(), event: JsonText::empty_object() };
    refused(&with_items(Vec::new(), vec![ArchiveRecord::Mail(late)]));
    // The events that are kept follow the items.
    let mut swapped = records();
    swapped.insert(6, mail("e", "1"));
    refused(&sealed(&swapped));
}

#[test]
fn an_execution_waits_for_as_many_items_as_a_program_may_have() {
    let ArchiveRecord::Execution(part) = records().swap_remove(3) else { panic!("the fourth record") };
    let waits = vec![CheckpointPart { seq: 6, at: Timestamp(0), cause: "wait".to_owned() }];
    let fits = |tasks: &[TaskPart]| consistent(&part, &waits, tasks).is_ok();
    let timers = |count: u64| (1..=count).map(timer).collect::<Vec<_>>();
    assert!(fits(&timers(1)) && fits(&timers(1_000)));
    assert!(!fits(&timers(1_001)) && !fits(&[]), "too many, and nothing to wait for");
    assert!(!fits(&[task(6, false)]), "a question of a pause, where none is");
    assert!(fits(&[task(5, true), timer(1)]), "an earlier pause");
    let mut unused = timers(2);
    (unused[0].ended_at, unused[0].outcome) = (Some(Timestamp(1)), Some("expired".to_owned()));
    assert!(!fits(&unused), "it would have gone on with that");
    unused[0].item = unused[0].item.take().map(|item| ItemPart { taken_at: Some(6), ..item });
    assert!(fits(&unused));
    let question = |number: u64| {
        let mut part = timer(number);
        part.item = part.item.map(|item| ItemPart { kind: "question".to_owned(), ..item });
        TaskPart { prompt: "x".repeat(PROMPT_BYTES), ..part }
    };
    assert!(!fits(&(1..=40).map(question).collect::<Vec<_>>()), "more text than permitted");
}
