//! The durable engine of vm-system: a JavaScript and TypeScript compiler and a bytecode machine whose whole state is
//! data. No I/O, no clock, no processes: what a program wants from outside is an [`Outcome`], what it gets comes back
//! through [`resume_pause`] and [`resume_host`].
//!
//! | module | owns |
//! |---|---|
//! | `compiler` | source text to bytecode; the only place that knows the parser |
//! | `ops`, `program`, `link` | the opcode table, compiled code, its place behind the prelude's |
//! | `value`, `heap` | values, cells by stable id, strings, collection, dirty pages |
//! | `state`, `outcome` | everything a run is, and what it comes to |
//! | `vm` | the interpreter; how every step can be suspended |
//! | `builtins` | the objects of the language: natives (`.rs`) and the prelude (`.js`) |
//! | `format` | stored bytes: programs and pages, verified before use |
//! | `pure` | leaf algorithms without engine knowledge |

#![forbid(unsafe_code)]
#![allow(clippy::many_single_char_names, reason = "operands are a and b, properties p, frames f throughout")]
#![allow(clippy::single_match_else, reason = "a match keeps the two cases side by side")]
#![allow(clippy::match_same_arms, reason = "arms follow the specification's tables, one line a case")]
#![allow(clippy::format_push_string, reason = "messages and stacks are made on the error path")]

mod builtins;
mod compiler;
mod format;
mod heap;
mod link;
mod ops;
mod outcome;
mod program;
mod pure;
mod state;
mod value;
mod vm;

pub use compiler::{CompileError, CompileErrors, CompileOptions};
pub use format::{Checkpoint, FormatError, Page};
pub use outcome::{Answer, HostResult, Level, Line, Outcome};
pub use program::Program;
pub use state::{LimitKind, Limits, Phase, State, StateConfig};
pub use vm::driver::{UNHANDLED_REJECTION, resume_host, resume_pause, run};
pub use vm::inspect::{FrameView, frames, globals, set_variable};

/// Builds what all programs share, some milliseconds once per process; [`compile`] does it too when it was not done.
pub fn warm_up() {
    let generation = builtins::generations::newest();
    heap::spare::prepare(generation.number, generation.base.len(), &generation.code);
}

/// Compiles source text to a program that is ready to run.
pub fn compile(source: &str, options: &CompileOptions) -> Result<Program, CompileErrors> {
    let generation = builtins::generations::newest();
    let unit = compiler::compile_unit(source, options, &generation.prelude.functions)?;
    Ok(Program::compiled(generation, unit))
}
