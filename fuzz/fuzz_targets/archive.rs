//! Any file at the import of programs and executions, in parts of any size. First byte: the size of the parts; bit 7: the chain of
//! hashes is made to fit, so that the content is judged.
#![cfg_attr(fuzzing, no_main)]

use sha2::{Digest as _, Sha256};
use std::cell::OnceCell;
use std::fmt::Write as _;
use vm_system_fuzz::verbs;
use vm_system_ops::Ops;
use vm_system_protocol::control::{ImportBegin, ImportEnd, ImportPart};

thread_local! {
    static SUPERVISOR: OnceCell<(tokio::runtime::Runtime, Ops)> = const { OnceCell::new() };
}

/// The records of a file with a valid end (docs/durable-state.md).
fn sealed(data: &[u8]) -> Vec<u8> {
    let (mut chain, mut records, mut file) = ([0_u8; 32], 0_u64, b"[\n".to_vec());
    for line in data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        let line = line.strip_suffix(b",").unwrap_or(line);
        if line.is_empty() || line == b"[" || line == b"]" || line.starts_with(b"{\"end\"") {
            continue;
        }
        let mut hash = Sha256::new_with_prefix(chain);
        hash.update(line);
        chain = hash.finalize().into();
        records += 1;
        file.extend_from_slice(line);
        file.extend_from_slice(b",\n");
    }
    let mut hex = String::new();
    for byte in chain {
        let _ = write!(hex, "{byte:02x}");
    }
    file.extend_from_slice(
        format!("{{\"end\":{{\"records\":{records},\"sha256\":\"{hex}\"}}}}\n]\n").as_bytes(),
    );
    file
}

async fn import(ops: &Ops, file: &[u8], part: usize) {
    let Ok(import) = verbs::call(ops, ImportBegin::default()).await else { return };
    let mut at = 0;
    for bytes in file.chunks(part) {
        let (import, bytes) = (import.clone(), bytes.to_vec());
        let len = bytes.len() as u64;
        if verbs::call(ops, ImportPart { import, at, bytes }).await.is_err() {
            return;
        }
        at += len;
    }
    let _ = verbs::call(ops, ImportEnd { import }).await;
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let part = [1, 7, 64, 4_096][usize::from(first) % 4];
    let file = if first < 128 { sealed(data) } else { data.to_vec() };
    SUPERVISOR.with(|supervisor| {
        let (runtime, ops) = supervisor.get_or_init(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            (runtime.expect("a runtime"), verbs::ops())
        });
        runtime.block_on(import(ops, &file, part));
    });
});
