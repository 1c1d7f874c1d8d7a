//! The durable engine of vm-system: a JavaScript and TypeScript compiler, and a bytecode interpreter with its whole state as
//! data. No I/O, no clock, no processes: a program's request to the host is returned as a [`RunOutcome`], and the result is
//! passed in with [`resume_pause`] or [`resume_host`]. Requests for which a program has promises are [`VmState::take_new_items`], and
//! each is settled with [`resume_item`]; `outcome` has the rules.
//!
//! | module | owns |
//! |---|---|
//! | `entry`, `compiler` | source text to a program; `compiler` is the only module that uses the parser |
//! | `ops`, `program`, `link` | the opcode table, compiled code, and how it is appended to the prelude's |
//! | `value`, `heap`, `liveness` | values, cells by stable id, strings, dirty pages, collection; slots of a frame that its code reads no more |
//! | `state`, `outcome` | the state of a run, and how a run returns |
//! | `vm` | the interpreter; how every step can be suspended |
//! | `builtins` | the objects of the language: natives (`.rs`) and the prelude (`.js`) |
//! | `format` | stored bytes: programs and pages, verified before use |
//! | `pure` | leaf algorithms that do not depend on the engine |

#![forbid(unsafe_code)]
#![allow(clippy::many_single_char_names, reason = "operands are a and b, properties p, frames f throughout")]
#![allow(clippy::single_match_else, reason = "a match keeps the two cases side by side")]
#![allow(clippy::match_same_arms, reason = "arms follow the specification's tables, one line a case")]
#![allow(clippy::format_push_string, reason = "messages and stacks are made on the error path")]

mod builtins;
mod compiler;
mod entry;
mod format;
mod heap;
mod link;
mod liveness;
mod ops;
mod outcome;
mod program;
mod pure;
mod state;
mod value;
mod vm;

pub use builtins::{MOST_EVENT_NAME_BYTES, MOST_TIMER_MS};
pub use compiler::{
    CompileError, CompileErrorKind, CompileErrors, CompileOptions, FileImport, SourceFile, candidates,
    imports,
};
pub use entry::{compile, compile_files, has_typescript, warm_up};
pub use format::{CheckpointPages, FormatError, VmPage};
pub use outcome::{
    ConsoleLine, DroppedOutput, FETCH, HostResponse, HostResult, ItemAnswer, ItemKind, ItemRequest, Level,
    NewItem, OpenItem, PauseAnswer, RunOutcome,
};
pub use program::{CompiledProgram, SourcePosition};
pub use state::{RunPhase, StateConfig, VmLimitKind, VmLimits, VmState};
pub use vm::driver::{UNHANDLED_REJECTION, resume_host, resume_pause, run};
pub use vm::inspect::{FrameView, frames, globals, set_variable};
pub use vm::items::{MOST_REJECTIONS, resume_item};
