//! Native functions that take a size count what they allocate for the session's limit.

use crate::harness::{Engine, limits};

/// Under 64 MiB each of these throws, and the session goes on; none of them may allocate first.
#[test]
fn native_functions_that_take_a_size_throw_beyond_the_limit() {
    let mut engine = Engine::with_limits(limits(|limits| {
        (limits.mem_mb, limits.cpu_ms, limits.wall_ms) = (64, 60_000, 60_000);
    }));
    engine.repl("const crypto_ = require('node:crypto'), zlib = require('node:zlib'); var before = 41");
    for source in [
        "crypto_.scryptSync('p', 's', 32, { N: 2 ** 18, r: 8, p: 1, maxmem: 2 ** 30 })",
        "crypto_.randomBytes(60 * 1024 * 1024)",
        "crypto_.pbkdf2Sync('p', 's', 1, 60 * 1024 * 1024, 'sha512')",
        "new TextEncoder().encode('\\u20AC'.repeat(16 * 1024 * 1024))",
        "Buffer.from('\\u20AC'.repeat(16 * 1024 * 1024))",
        "new TextDecoder().decode(new Uint8Array(30 * 1024 * 1024))",
        "Buffer.alloc(30 * 1024 * 1024).toString('hex')",
        "zlib.gzipSync(Buffer.alloc(40 * 1024 * 1024))",
        "zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(12 * 1024 * 1024)), { maxOutputLength: 2 ** 30 }) && zlib.inflateSync(globalThis.packed ??= zlib.deflateSync(Buffer.alloc(20 * 1024 * 1024)))",
        "(() => { const all = []; for (;;) all.push(new CompressionStream('gzip').writable.getWriter()); })()",
    ] {
        let what = engine.value(&format!(
            "try {{ {source}; 'no error' }} catch (error) {{ `${{error.name}}: ${{error.message}}` }}"
        ));
        assert!(what.contains("out of memory") || what.contains("too large"), "{source}: {what}");
        assert_eq!(engine.value("before + 1"), "42", "{source}");
    }
}

/// These failed without an error: a script caught a value that is none.
#[test]
fn natives_without_memory_throw_an_error() {
    let mut engine = Engine::with_limits(limits(|limits| {
        (limits.mem_mb, limits.cpu_ms, limits.wall_ms) = (64, 60_000, 60_000);
    }));
    for source in [
        "'a\\u0301'.repeat(5 * 1024 * 1024).normalize('NFC')",
        "'x'.repeat(12 * 1024 * 1024).localeCompare('x'.repeat(12 * 1024 * 1024) + 'y')",
        "new Intl.Segmenter('en').segment('x'.repeat(12 * 1024 * 1024)).containing(1e6)",
        "'x'.repeat(12 * 1024 * 1024).toLocaleUpperCase('tr')",
        "new URL('http://x/' + '\\u20ac'.repeat(5 * 1024 * 1024))",
        "new URLSearchParams('a=' + '\\u20ac'.repeat(5 * 1024 * 1024)).toString()",
    ] {
        let what = engine.value(&format!(
            "try {{ {source}; 'no error' }} catch (error) {{ `${{error instanceof Error}} ${{error.message}}` }}"
        ));
        assert_eq!(what, "'true out of memory'", "{source}");
        assert_eq!(engine.value("1 + 1"), "2", "{source}");
    }
}

/// The usual uses of these functions work under the same limit.
#[test]
fn usual_sizes_fit_the_limit() {
    let mut engine = Engine::with_limits(limits(|limits| {
        (limits.mem_mb, limits.cpu_ms, limits.wall_ms) = (64, 60_000, 60_000);
    }));
    engine.repl("const crypto_ = require('node:crypto'), zlib = require('node:zlib')");
    for (source, value) in [
        ("crypto_.scryptSync('p', 's', 32).length", "32"),
        ("new TextEncoder().encode('\\u20AC'.repeat(1024 * 1024)).length", "3145728"),
        ("zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(4 * 1024 * 1024))).length", "4194304"),
        ("Buffer.alloc(2 * 1024 * 1024).toString('hex').length", "4194304"),
        ("crypto_.randomBytes(1024 * 1024).length", "1048576"),
    ] {
        assert_eq!(engine.value(source), value, "{source}");
    }
}
