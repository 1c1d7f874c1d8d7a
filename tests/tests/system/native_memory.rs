//! Native functions that take a size, in workers with a small limit of memory: each throws or succeeds within the limit, as the peak of the
//! worker's resident memory shows, and the session goes on.

use std::collections::BTreeMap;
use vm_system_protocol::model::{Limits, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;

/// `mem_mb` of the sessions.
const LIMIT_MB: u64 = 64;
/// Most resident memory of a worker above the limit (MiB): pages that it shared with its zygote until it wrote them, the engine's reserve for
/// errors, what its allocators keep, and messages to the supervisor.
const OVERHEAD_MB: u64 = 24;

/// Each needs more than the limit permits, and throws.
const TOO_MUCH: &[&str] = &[
    "Buffer.alloc(70 * M)",
    "Buffer.alloc(30 * M, 1).toString('hex')",
    "Buffer.alloc(30 * M, 1).toString('base64')",
    "Buffer.alloc(30 * M, 97).toString('latin1')",
    "Buffer.alloc(30 * M, 97).toString('utf8')",
    "Buffer.alloc(30 * M, 97).toString('utf16le')",
    "Buffer.from('ab'.repeat(14 * M), 'hex')",
    "Buffer.from('QUJD'.repeat(7 * M), 'base64')",
    "Buffer.from('\\u20ac'.repeat(8 * M))",
    "Buffer.concat([Buffer.alloc(25 * M, 1), Buffer.alloc(25 * M, 1)])",
    "'a\\u0301'.repeat(5 * M).normalize('NFC')",
    "'x'.repeat(12 * M).localeCompare('x'.repeat(12 * M) + 'y')",
    "new Intl.Segmenter('en').segment('x'.repeat(12 * M)).containing(M)",
    "'x'.repeat(12 * M).toLocaleUpperCase('tr')",
    "new URL('http://x/' + '\\u20ac'.repeat(5 * M))",
    "new URLSearchParams('a=' + '\\u20ac'.repeat(5 * M)).toString()",
    "crypto_.randomBytes(60 * M)",
    "crypto_.randomFillSync(Buffer.alloc(40 * M))",
    "crypto_.scryptSync('p', 's', 32, { N: 2 ** 16, r: 8, p: 1, maxmem: 2 ** 30 })",
    "crypto_.scryptSync('p', 's', 50 * M)",
    "crypto_.pbkdf2Sync('p', 's', 1, 50 * M, 'sha512')",
    "crypto_.createHash('sha256').update(Buffer.alloc(40 * M, 1)).digest('hex')",
    "crypto_.createHmac('sha256', Buffer.alloc(40 * M, 1)).update('x').digest()",
    "crypto_.createCipheriv('aes-256-cbc', Buffer.alloc(32), Buffer.alloc(16)).update(Buffer.alloc(24 * M, 1))",
    "crypto_.createCipheriv('aes-256-gcm', Buffer.alloc(32), Buffer.alloc(12)).update(Buffer.alloc(24 * M, 1))",
    "crypto_.createCipheriv('aes-256-ctr', Buffer.alloc(32), Buffer.alloc(16)).update('x'.repeat(24 * M), 'utf8', 'hex')",
    "crypto.subtle.digest('SHA-256', new Uint8Array(40 * M).fill(1))",
    "crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt']).then(key => \
        crypto.subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, key, new Uint8Array(30 * M).fill(1)))",
    "zlib.gzipSync(Buffer.alloc(40 * M, 1))",
    "zlib.inflateSync(zlib.deflateSync(Buffer.alloc(20 * M)), { chunkSize: 32 * M, maxOutputLength: 2 ** 30 })",
    "zlib.deflateRawSync(crypto_.randomBytes(16 * M), { memLevel: 9, level: 9 })",
    "(() => { const all = []; for (;;) all.push(zlib.createDeflate()); })()",
    "(() => { const all = []; for (;;) all.push(new CompressionStream('gzip').writable.getWriter()); })()",
    "(() => { const all = []; for (;;) all.push(crypto_.createHash('sha256')); })()",
    "new TextEncoder().encode('\\u20ac'.repeat(12 * M))",
    "new TextDecoder().decode(new Uint8Array(30 * M).fill(97))",
    "new TextDecoder('utf-16le').decode(new Uint8Array(20 * M).fill(97))",
    "new TextDecoder('windows-1252').decode(new Uint8Array(20 * M).fill(200))",
    "structuredClone(new Uint8Array(40 * M).fill(1))",
    "new Uint8Array(new SharedArrayBuffer(70 * M)).fill(1)",
    "new ArrayBuffer(40 * M).transfer(70 * M)",
    "JSON.stringify('\\u20ac'.repeat(24 * M))",
    "JSON.parse('[' + '1,'.repeat(10 * M) + '1]')",
    "(() => { const all = []; for (;;) all.push(fs.readFileSync('/big')); })()",
    "(async () => { const all = []; for (;;) all.push(await fs.promises.readFile('/big', 'utf8')); })()",
    "new Blob([new Uint8Array(30 * M).fill(1), new Uint8Array(30 * M).fill(1)])",
    "(async () => { const all = []; const endless = { pull(to) { to.enqueue(new Uint8Array(M).fill(1)); } }; \
        for await (const one of new ReadableStream(endless)) all.push(one); })()",
    "(() => { const all = []; for (;;) all.push(new Intl.NumberFormat('de')); })()",
];

/// Each is used within the limit, or throws in another way; the peak is what counts.
const WITHIN: &[&str] = &[
    "crypto.subtle.importKey('raw', new Uint8Array(24 * M).fill(1), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])",
    "Buffer.allocUnsafe(60 * M).fill(1).length",
    "crypto_.hkdfSync('sha512', 'k', 's', 'i', 16320).byteLength",
    "zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(12 * M)), { maxOutputLength: 2 ** 30 }).length",
    "zlib.createGzip({ chunkSize: 60 * M }).end('x') && 1",
    "new TextDecoder('shift_jis').decode(new Uint8Array(8 * M).fill(0x41)).length",
    "'x'.repeat(60 * M).length",
    "Array(20 * M).join('xy').length",
    "'x'.repeat(6 * M).toLocaleUpperCase('tr').length",
    "'a\\u0301'.repeat(M).normalize('NFC').length",
    "'x'.repeat(8 * M).localeCompare('x'.repeat(8 * M) + 'y')",
    "[...new Intl.Segmenter('en', { granularity: 'word' }).segment('ab '.repeat(20_000))].length",
    "new Intl.ListFormat('en').format(Array(M / 4).fill('ab')).length",
    "new URL('http://x/' + '\\u20ac'.repeat(M)).href.length",
    "new URLSearchParams('a=' + '\\u20ac'.repeat(M)).toString().length",
    "new Response(new Uint8Array(8 * M).fill(97)).text().then(text => text.length)",
    "fs.readFileSync('/big').length",
    "fs.readSync(fs.openSync('/big'), Buffer.alloc(16 * M), 0, 16 * M, 0)",
    "(async () => { let all = 0; for await (const one of fs.createReadStream('/big', { highWaterMark: 16 * M })) all += one.length; return all; })()",
    "fs.existsSync('x'.repeat(25 * M))",
    "fs.writeFileSync('/new', 'x'.repeat(10 * M))",
    "util.inspect('x'.repeat(8 * M)).length",
    "util.inspect(Array(M / 2).fill(1), { maxArrayLength: null }).length",
    "console.log('x'.repeat(20 * M))",
    "process.stdout.write('x'.repeat(20 * M))",
    "new Error('x'.repeat(20 * M)).stack.length",
    "eval('\"' + 'x'.repeat(8 * M) + '\"').length",
];

/// Peaks of the resident memory of all processes of a daemon (KiB).
fn peaks(daemon: &Daemon) -> BTreeMap<u32, u64> {
    let peak = |pid: u32| -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    let pids = daemon.family().into_iter().filter_map(|process| process.pid().ok());
    pids.filter_map(|pid| Some((pid, peak(pid)?))).collect()
}

/// Runs a source in a session of its own; the result as text, once the peak is within the limit and the session goes on.
fn run_within(daemon: &Daemon, client: &mut Client, template: &str, source: &str) -> String {
    let session = client.session(template, &daemon.place.worktree()).expect("a session");
    client.preview_of(
        &session,
        "const crypto_ = require('node:crypto'), zlib = require('node:zlib'), util = require('node:util'), fs = require('fs'), M = 1024 * 1024; \
         var before = 41",
    );
    let at_first = peaks(daemon);
    let code = format!(
        "await (async () => {{ try {{ return 'ok ' + typeof await ({source}); }} \
         catch (error) {{ return `${{error.name}}: ${{error.message}}`; }} }})()"
    );
    let execution = client.eval(&session, &code).expect("an execution");
    let events = client.events(&execution.id.to_string());
    let result = vm_system_tests::client::value(&events).map(str::to_owned);
    let result = result.unwrap_or_else(|| execution.error.map_or_else(String::new, |error| error.code));
    for (pid, peak) in peaks(daemon) {
        let Some(first) = at_first.get(&pid) else { continue };
        let grown = peak.saturating_sub(*first) / 1024;
        assert!(grown <= LIMIT_MB + OVERHEAD_MB, "{source}: a process took {grown} MiB: {result}");
    }
    assert_eq!(client.preview_of(&session, "before + 1"), "42", "{source}: {result}");
    client.close(&session);
    result
}

#[test]
fn native_functions_that_take_a_size_stay_within_the_limit_and_the_session_goes_on() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    std::fs::write(daemon.place.worktree().join("big"), vec![b'x'; 16 << 20]).expect("a file");
    let limits = Limits {
        mem_mb: u32::try_from(LIMIT_MB).expect("it fits"),
        cpu_ms: 120_000,
        wall_ms: 120_000,
        ..Limits::default()
    };
    let template = client.template(Settings { limits, ..Settings::default() }, &["fs"]);
    for source in TOO_MUCH {
        let result = run_within(&daemon, &mut client, &template, source);
        let is_refused =
            ["out of memory", "too large", "ERR_OUT_OF_RANGE"].iter().any(|text| result.contains(text));
        assert!(is_refused, "{source}: {result}");
    }
    for source in WITHIN {
        let result = run_within(&daemon, &mut client, &template, source);
        assert!(!result.is_empty(), "{source}");
    }
    daemon.stop();
}

/// Heaps that grow in blocks of all sizes, beside what Rust code holds: the limit is reached in another place for each size.
#[test]
fn a_script_catches_that_its_heap_is_full() {
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    for mem_mb in [64, 100, 128] {
        let limits = Limits { mem_mb, cpu_ms: 120_000, wall_ms: 120_000, ..Limits::default() };
        let template = client.template(Settings { limits, ..Settings::default() }, &[]);
        for grow in [
            "const all = {}; for (let i = 0; ; i++) all['k' + i] = i;",
            "const all = []; for (;;) all.push(() => all);",
            "const all = []; for (;;) { const one = { all }; all.push(one); }",
            "const all = new Map(); for (let i = 0; ; i++) all.set(i, { i });",
        ] {
            let session = client.session(&template, &daemon.place.worktree()).expect("a session");
            let code = format!(
                "(() => {{ try {{ (() => {{ {grow} }})(); }} catch (error) {{ console.log('caught', error.message); return String(error); }} }})()"
            );
            let execution = client.eval(&session, &code).expect("an execution");
            let events = client.events(&execution.id.to_string());
            let value = vm_system_tests::client::value(&events);
            assert_eq!(value, Some("'InternalError: out of memory'"), "{mem_mb} {grow} {events:?}");
            assert!(format!("{events:?}").contains("caught out of memory"), "{mem_mb} {grow} {events:?}");
            client.close(&session);
        }
    }
    daemon.stop();
}
