//! The interrupt flag. A separate process, because there is one flag for the whole process, as a worker has one session.

#[path = "engine/harness.rs"]
mod harness;

use harness::Engine;
use vm_system_protocol::worker::Outcome;

#[test]
fn an_interrupt_ends_the_run_and_not_the_next_one() {
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
