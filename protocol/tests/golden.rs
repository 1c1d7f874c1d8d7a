//! The wire's bytes are a contract: a supervisor of one build adopts workers of another. Every variant of every enum has
//! its encoding in `golden.txt`; a change of bytes or a variant without a line fails.
//!
//! The messages of keepers and workers only grow: after a release no line of theirs changes, and a new variant has a row in
//! `protocol::since`. After an intended change: raise `hello::PROTOCOL` (or `control::CONTROL_PROTOCOL`), then
//! `VM_SYSTEM_BLESS=1 cargo test -p vm-system-protocol --test golden`, and review the difference.

mod samples;

use samples::{Sample, Source, Variants};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fmt::Write as _;
use vm_system_protocol::broker::*;
use vm_system_protocol::codec::{Decode, Encode, decode, encode};
use vm_system_protocol::control::*;
use vm_system_protocol::durable::*;
use vm_system_protocol::files_agent::*;
use vm_system_protocol::hello::Hello;
use vm_system_protocol::keeper::*;
use vm_system_protocol::model::*;
use vm_system_protocol::reason::{CloseReason, LimitKind};
use vm_system_protocol::worker::*;
use vm_system_protocol::zygote::*;

const GOLDEN: &str = include_str!("golden.txt");
const CAP: usize = 1 << 20;

type Table = BTreeMap<String, String>;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn committed() -> Table {
    let lines = GOLDEN.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(' ').expect("`name hex`")).map(|(n, h)| (n.into(), h.into())).collect()
}

fn check<T: Encode + Decode<()> + PartialEq + Debug>(name: String, value: &T, now: &mut Table) {
    let bytes = encode(value, CAP).expect("a sample fits");
    assert_eq!(&decode::<T>(&bytes).expect("own encoding"), value, "{name} does not survive the wire");
    if let Some(golden) = committed().get(&name) {
        let old = decode::<T>(&unhex(golden));
        assert!(
            std::env::var_os("VM_SYSTEM_BLESS").is_some() || old.as_ref() == Ok(value),
            "{name}: {old:?}"
        );
    }
    assert!(now.insert(name, hex(&bytes)).is_none(), "one line per name");
}

fn every_variant<T: Variants + Encode + Decode<()> + PartialEq + Debug>(name: &str, now: &mut Table) {
    for (variant, value) in T::variants(&mut Source::Counting(0)) {
        check(format!("{name}::{variant}"), &value, now);
    }
}

fn one<T: Sample + Encode + Decode<()> + PartialEq + Debug>(name: &str, now: &mut Table) {
    check(name.to_owned(), &T::sample(&mut Source::Counting(0)), now);
}

fn current() -> Table {
    let mut now = Table::new();
    macro_rules! enums { ($($name:ident),+ $(,)?) => { $(every_variant::<$name>(stringify!($name), &mut now);)+ } }
    macro_rules! structs { ($($name:ident),+ $(,)?) => { $(one::<$name>(stringify!($name), &mut now);)+ } }
    enums!(
        ToBroker,
        FromBroker,
        BrokerCall,
        BrokerReply,
        FsRequest,
        FsReply,
        DatabaseRequest,
        DatabaseReply,
        SqlParameters,
        SqlValue,
        FileKind,
        ToKeeper,
        FromKeeper,
        ExitedRole,
        ToZygote,
        FromZygote,
        ToFilesAgent,
        FilesProcess,
        FromFilesAgent,
        ReadTarget,
        ToWorker,
        FromWorker,
        SourceFormat,
        StdinReply,
        Outcome,
        HostRequest,
        HostReply,
        LimitKind,
        CloseReason,
        EventPayload,
        ClientFrame,
        ServerFrame,
        Op,
        Reply,
        ConsoleLevel,
        JsType,
        ExecutionKind,
        ExecutionStatus,
        SessionStatus,
        RestorationStatus,
        OnCrash,
        TypeCheck,
        Overlap,
        Engine,
        CapabilityKind,
        StartupMode,
        ErrorCode,
        ExecutionState,
        ImportedObject,
        GivenAnswer,
        ArchiveKind,
        ExportPlace,
        ToDurable,
        FromDurable,
        TaskAnswer,
        Cause,
        End,
        DurableLimit,
    );
    every_variant::<Result<BrokerReply, HostError>>("CallResult", &mut now);
    every_variant::<Result<Reply, Box<OpError>>>("OpResult", &mut now);
    structs!(ClientHello, ServerHello, WorkerRecord, Execution, TemplateDetail, StartupFile, Capability);
    now
}

#[test]
fn every_message_has_its_golden_bytes() {
    let now = current();
    if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
        let mut text = String::from("# One line per variant: name, encoding in hex. See golden.rs.\n");
        for (name, hex) in &now {
            let _ = writeln!(text, "{name} {hex}");
        }
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt"), text)
            .expect("write goldens");
        return;
    }
    let committed = committed();
    let missing: Vec<_> = now.keys().filter(|name| !committed.contains_key(*name)).collect();
    let gone: Vec<_> = committed.keys().filter(|name| !now.contains_key(*name)).collect();
    let changed: Vec<_> =
        now.iter().filter(|(n, h)| committed.get(*n).is_some_and(|old| old != *h)).collect();
    assert!(
        missing.is_empty() && gone.is_empty() && changed.is_empty(),
        "wire changed.\nwithout golden: {missing:?}\ngone: {gone:?}\nother bytes: {changed:#?}"
    );
}

#[test]
fn hello_packet_never_changes() {
    let hello = Hello { protocol: 0x0102_0304, build_id: *b"0123456789abcdef" };
    assert_eq!(hex(&hello.to_packet()), "564d53310403020130313233343536373839616263646566");
    assert_eq!(Hello::from_packet(&hello.to_packet()), Ok(hello));
}

#[test]
fn names_of_errors_statuses_and_codes_are_stable() {
    // Clients match on these texts and numbers.
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|c| (c.as_str(), c.http_status(), c.exit_code())).collect();
    let text = codes.iter().fold(String::new(), |mut text, (name, http, exit)| {
        let _ = writeln!(text, "{name} {http} {exit}");
        text
    });
    assert_eq!(text, include_str!("error_codes.txt"), "error_codes.txt is the published list");
}
