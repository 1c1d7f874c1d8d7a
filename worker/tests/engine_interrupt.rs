//! The interrupt flag. A separate process, because there is one flag for the whole process, as a worker has one session.

#[path = "engine/harness.rs"]
mod harness;

use harness::Engine;
use std::sync::{Mutex, PoisonError};
use vm_system_protocol::egress::HttpReply;
use vm_system_protocol::model::Limits;
use vm_system_protocol::worker::{HostReply, Outcome};

/// Held by a test while it uses the flag.
static FLAG: Mutex<()> = Mutex::new(());

#[test]
fn an_interrupt_ends_the_run_and_not_the_next_one() {
    let _flag = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    let mut engine = Engine::new();
    engine.value("var before = 41");
    for source in [
        "for (;;);",
        "try { for (;;); } finally { globalThis.after = 1 }",
        "setTimeout(() => { globalThis.after = 1 }, 50000)",
        "(function f() { Promise.resolve().then(f) })()",
        "await new Promise((done) => setInterval(() => {}, 5))",
    ] {
        engine.memory.interrupt_after = Some(3);
        assert_eq!(engine.repl(source).outcome, Outcome::Interrupted, "{source}");
        engine.memory.interrupt_after = None;
        assert_eq!(engine.value("before + 1"), "42", "{source}");
        assert_eq!(engine.value("await Promise.resolve(globalThis.after)"), "undefined", "{source}");
    }
}

/// A promise that waits for a response goes with the execution that has made the request.
#[test]
fn memory_of_what_waited_for_a_request_is_free_after_an_interrupt() {
    let mut engine =
        Engine::with_limits(Limits { cpu_ms: 60_000, wall_ms: 60_000, mem_mb: 128, ..Limits::default() });
    for _ in 0..6 {
        let nothing = || HostReply::Http(HttpReply::Progress(Vec::new()));
        engine.memory.replies = std::iter::repeat_with(nothing).take(1_000).collect();
        engine.memory.replies.push_front(HostReply::Http(HttpReply::Done));
        engine.memory.interrupt_after = Some(3);
        let source = "(async () => { const kept = new ArrayBuffer(30 * 2 ** 20); await fetch('http://host/'); return kept.byteLength })()";
        assert_eq!(engine.repl(source).outcome, Outcome::Interrupted);
        engine.memory.interrupt_after = None;
    }
    assert_eq!(engine.value("new ArrayBuffer(100 * 2 ** 20).byteLength"), (100 << 20).to_string());
}
