//! Kept generations are valid, unchanged and complete, and the sources build the newest one.

use super::{KEPT, NEWEST, OPEN, get};
use crate::builtins::{natives, realm};
use crate::format::{checksum, read_generation, read_generation_natives, write_generation};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set to a generation number to keep the current sources as that generation: writes its file and prints the line for the list.
const KEEP: &str = "CVM_KEEP_GENERATION";

fn of_the_sources(number: u32) -> Vec<u8> {
    let (heap, prelude) = realm::build(number);
    write_generation(number, &natives::names(), &heap, &prelude)
}

#[test]
fn a_kept_generation_never_changes() {
    for (i, (bytes, pin)) in KEPT.iter().enumerate() {
        assert_eq!(checksum(i as u64 + 1, bytes), *pin, "generation {} was released and must stay", i + 1);
    }
}

#[test]
fn the_sources_are_the_newest_generation() {
    if let Ok(number) = std::env::var(KEEP) {
        let number: u32 = number.parse().expect("a number");
        let bytes = of_the_sources(number);
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/builtins/generations/{number}.bin"));
        std::fs::write(&file, &bytes).expect("the sources are writable");
        println!(
            "{}: put `(include_bytes!(\"{number}.bin\"), {:#010x})` into KEPT as entry {number} and lower OPEN",
            file.display(),
            checksum(u64::from(number), &bytes)
        );
        return;
    }
    if OPEN > 0 {
        return;
    }
    let kept = KEPT.last().map_or(&[][..], |k| k.0);
    assert!(
        of_the_sources(NEWEST) == kept,
        "the realm or the prelude differ from generation {NEWEST}. If it was released: raise OPEN in \
         generations/mod.rs, and states of the old one go on loading. If it was not: make it again as \
         tests/golden/README.md says."
    );
}

/// The generation before the one with items as it was when that was added: programs without items, and their states, are unchanged.
const WITHOUT_ITEMS: u32 = 0x1327_8bb3;

#[test]
fn what_a_later_open_generation_adds_does_not_change_the_one_before() {
    let (heap, prelude) = realm::build(2);
    assert_eq!(checksum(2, &write_generation(2, &[], &heap, &prelude)), WITHOUT_ITEMS);
    assert_eq!((super::for_new_programs(false).number, super::for_new_programs(true).number), (2, NEWEST));
}

#[test]
fn a_generation_survives_its_bytes() {
    let bytes = of_the_sources(7);
    let names = read_generation_natives(7, &bytes).expect("its names");
    let kept = read_generation(7, &bytes).expect("its own bytes");
    assert!(write_generation(7, &names, &kept.heap, &kept.prelude) == bytes);
}

/// Set to `write` to append opcodes that are new.
const GOLDEN: &str = "CVM_GOLDEN";

#[test]
fn opcodes_keep_their_bytes_and_effects() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/opcodes.txt");
    let rows: Vec<String> = crate::ops::TABLE
        .iter()
        .map(|r| {
            format!(
                "{} {} {:?} {:?} pops {} pushes {} fuel {}",
                r.op as u8, r.name, r.c, r.b, r.pops, r.pushes, r.fuel
            )
        })
        .collect();
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    for (kept, row) in kept.lines().zip(&rows) {
        assert_eq!(kept, row, "stored programs use this opcode as it was");
    }
    if std::env::var(GOLDEN).is_ok_and(|word| word == "write") {
        std::fs::write(&file, rows.join("\n") + "\n").expect("the test folder is writable");
    } else {
        assert_eq!(
            kept.lines().count(),
            rows.len(),
            "new opcodes: {GOLDEN}=write appends them to {}",
            file.display()
        );
    }
}

#[test]
fn every_native_of_a_kept_generation_still_exists() {
    for (i, (bytes, _)) in KEPT.iter().enumerate() {
        for name in read_generation_natives(i as u32 + 1, bytes).expect("its names") {
            assert!(natives::exists(&name), "generation {} calls {name}", i + 1);
        }
    }
    assert!(natives::names().iter().all(|name| natives::exists(name)));
}

#[test]
fn names_of_natives_are_unique() {
    let names = natives::names();
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), natives::table().len());
    assert!(!names.iter().any(String::is_empty));
}

fn rust_files(dir: &Path, list: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the sources are there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, list);
        } else if path.extension().is_some_and(|e| e == "rs") {
            list.push(path);
        }
    }
}

/// Functions of the prelude that Rust code names and older generations do not have, because only natives and opcodes that
/// came after them, and constructors of later realms, name these.
const LATER: &[&str] = &[
    "ArrayBuffer_",
    "BigInt64Array_",
    "BigUint64Array_",
    "Collator_",
    "DOMException_",
    "DataView_",
    "DateTimeFormat_",
    "DateToLocaleDateStringSlow",
    "DateToLocaleStringSlow",
    "DateToLocaleTimeStringSlow",
    "DisplayNames_",
    "Float16Array_",
    "Float32Array_",
    "Float64Array_",
    "Headers_",
    "Int16Array_",
    "Int32Array_",
    "Int8Array_",
    "ListFormat_",
    "Locale_",
    "NumberFormat_",
    "NumberSetup",
    "NumberToLocaleStringSlow",
    "PluralRules_",
    "PutElement",
    "RelativeTimeFormat_",
    "Request_",
    "Response_",
    "Segmenter_",
    "StringLocaleCompareSlow",
    "StringToLocaleLowerCaseSlow",
    "StringToLocaleUpperCaseSlow",
    "TextDecoder_",
    "TextEncoder_",
    "TopLevelResult",
    "TypedArray_",
    "URLSearchParams_",
    "URL_",
    "Uint16Array_",
    "Uint32Array_",
    "Uint8Array_",
    "Uint8ClampedArray_",
];

#[test]
fn what_the_engine_calls_in_the_prelude_is_in_every_generation() {
    let mut files = Vec::new();
    for part in ["vm", "builtins", "compiler"] {
        rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(part), &mut files);
    }
    let newest = get(NEWEST).expect("the newest generation");
    let mut called = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let words: Vec<&str> = text.split('"').collect();
        called.extend(
            words.into_iter().filter(|w| newest.prelude.functions.contains_key(*w)).map(str::to_owned),
        );
    }
    assert!(called.contains("PromiseReactionJob"), "the search finds what it should");
    for number in 1..=NEWEST {
        let generation = get(number).expect("a generation of the list");
        for name in called.iter().filter(|name| !LATER.contains(&name.as_str())) {
            assert!(generation.prelude.functions.contains_key(name), "generation {number} has no {name}");
        }
    }
}

/// The output of a script of this generation.
fn written(number: u32, source: &str) -> Vec<String> {
    let generation = get(number).expect("a generation of the list");
    let names = super::names_of(get(NEWEST).expect("the newest generation"));
    let options = crate::CompileOptions::default();
    let unit = crate::compiler::compile_unit(source, &[], &options, &generation.prelude.functions, names);
    let program = crate::program::CompiledProgram::compiled(generation, unit.expect("a script"));
    let mut state = crate::VmState::new(&program, &crate::StateConfig::default());
    let end = crate::run(&program, &mut state, u64::MAX);
    assert!(matches!(end, crate::RunOutcome::Done { .. }), "{end:?}");
    state.take_output().into_iter().map(|line| line.text).collect()
}

#[test]
fn programs_of_generation_1_refuse_locales_as_they_did() {
    let source = "const shown = (f) => { try { return f(); } catch (e) { return `${e}`; } };
        for (const f of [() => (1234.5).toLocaleString(), () => (1).toLocaleString('de'), () => (1).toLocaleString(undefined, {}), \
          () => (1n).toLocaleString('hi'), () => new Date(0).toLocaleString('en-GB'), () => new Date(0).toLocaleDateString(), \
          () => new Date(NaN).toLocaleTimeString('de'), () => 'i'.toLocaleUpperCase('tr'), () => 'I'.toLocaleLowerCase(['lt']), \
          () => 'z'.localeCompare('ö', 'sv'), () => 'a9'.localeCompare('a10', 'de', { numeric: true }), \
          () => 'a'.localeCompare('b', 'en', { caseFirst: 'upper' })]) console.log(shown(f));";
    assert_eq!(
        written(1, source),
        [
            "1,234.5",
            "RangeError: Number.prototype.toLocaleString: programs have the locale en-US only, not de",
            "RangeError: Number.prototype.toLocaleString: programs do not have its options",
            "RangeError: BigInt.prototype.toLocaleString: programs have the locale en-US only, not hi",
            "RangeError: Date.prototype.toLocaleString: programs have the locale en-US only, not en-GB",
            "1/1/1970",
            "RangeError: Date.prototype.toLocaleTimeString: programs have the locale en-US only, not de",
            "RangeError: String.prototype.toLocaleUpperCase: programs do not have the letters of tr",
            "RangeError: String.prototype.toLocaleLowerCase: programs do not have the letters of lt",
            "-1",
            "-1",
            "RangeError: String.prototype.localeCompare: programs do not have its option caseFirst: upper",
        ]
    );
    assert_eq!(written(NEWEST, source)[1], "1");
}
