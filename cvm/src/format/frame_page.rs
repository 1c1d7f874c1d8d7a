//! Page 0: everything outside the heap. Written whole at every checkpoint.

use super::FormatError;
use super::codec::{ByteReader, ByteWriter};
use crate::outcome::PendingRequest;
use crate::program::CompiledProgram;
use crate::state::{Back, Frame, PendingJob, RunPhase, VmLimitKind, VmState};
use crate::value::Value;
use std::collections::VecDeque;

/// Larger checkpoint numbers are refused.
const MOST_CHECKPOINTS: u64 = 1 << 60;
/// Larger numbers of items are refused, so that counting never overflows.
const MOST_ITEMS: u64 = 1 << 60;

impl VmState {
    /// The content of page 0.
    pub(super) fn write_frame_page(&self, program: &CompiledProgram) -> Vec<u8> {
        let mut w = ByteWriter::default();
        w.num(u64::from(program.fingerprint));
        w.u8(match self.phase {
            RunPhase::Start => 0,
            RunPhase::Running => 1,
            RunPhase::Paused => 2,
            RunPhase::Host => 3,
            RunPhase::Done => 4,
            RunPhase::Failed => 5,
            RunPhase::Limited(VmLimitKind::Heap) => 6,
            RunPhase::Limited(VmLimitKind::Stack) => 7,
            RunPhase::Limited(VmLimitKind::Steps) => 8,
            RunPhase::Limited(VmLimitKind::Text) => 9,
            RunPhase::Limited(VmLimitKind::Output) => 10,
            RunPhase::Broken => 11,
            RunPhase::Wait => 12,
        });
        w.num(self.debt);
        w.num(self.printed);
        for n in [self.checkpoint, self.steps, self.rng, self.heap.bytes, self.heap.gc_at] {
            w.num(n);
        }
        w.num(u64::from(self.heap.cursor));
        w.count(self.heap.cells.len());
        w.u8(u8::from(self.heap.attention) | u8::from(self.heap.too_long) << 1);
        match self.wait_back {
            Back::Push => w.num(0),
            Back::Construct => w.num(1),
            Back::Discard => w.num(2),
            Back::Result => w.num(3),
            Back::Store(slot) => w.num(4 + u64::from(slot)),
        }
        w.float(self.now);
        w.value(self.result);
        w.value(self.thrown.unwrap_or(Value::Hole));
        w.values(&self.stack[crate::state::STACK_START.min(self.sp)..self.sp]);
        w.count(self.frames.len());
        for f in &self.frames {
            w.num(u64::from(f.template));
            w.num(u64::from(f.pc.saturating_sub(program.template(f.template).start)));
            w.num(u64::from(f.base));
            w.value(f.env);
            w.value(f.new_target);
            w.id(f.coroutine);
            match f.back {
                Back::Push => w.u8(0),
                Back::Construct => w.u8(1),
                Back::Discard => w.u8(2),
                Back::Result => w.u8(3),
                Back::Store(slot) => {
                    w.u8(4);
                    w.num(u64::from(slot));
                }
            }
        }
        w.count(self.jobs.len());
        for j in &self.jobs {
            match j {
                PendingJob::Call(template, args) => {
                    w.u8(0);
                    w.num(u64::from(*template));
                    w.values(args);
                }
                PendingJob::Resume(id, mode, value) => {
                    w.u8(1 + mode);
                    w.id(*id);
                    w.value(*value);
                }
            }
        }
        w.count(self.template_objects.len());
        for (c, id) in &self.template_objects {
            w.num(u64::from(*c));
            w.id(*id);
        }
        w.count(self.registry.len());
        for (k, s) in &self.registry {
            w.id(*k);
            w.id(*s);
        }
        w.count(self.joining.len());
        for id in &self.joining {
            w.id(*id);
        }
        match &self.request {
            None => w.u8(0),
            Some(PendingRequest::Task { prompt, options }) => {
                w.u8(if options.is_some() { 2 } else { 1 });
                w.bytes(prompt.as_bytes());
                if let Some(o) = options {
                    w.bytes(o.as_bytes());
                }
            }
            Some(PendingRequest::Host { name, args }) => {
                w.u8(3);
                w.bytes(name.as_bytes());
                w.bytes(args.as_bytes());
            }
        }
        w.bytes(self.failure.as_deref().unwrap_or("").as_bytes());
        if program.has_items() {
            w.num(self.next_item);
        }
        w.out
    }
}

/// Reads page 0 into a new state; returns the number of cells.
pub(super) fn read_frame_page(
    state: &mut VmState,
    program: &CompiledProgram,
    head: &[u8],
) -> Result<usize, FormatError> {
    let mut r = ByteReader::new(head);
    if r.num()? != u64::from(program.fingerprint) {
        return Err(FormatError::Program);
    }
    state.phase = match r.u8()? {
        0 => RunPhase::Start,
        1 => RunPhase::Running,
        2 => RunPhase::Paused,
        3 => RunPhase::Host,
        4 => RunPhase::Done,
        5 => RunPhase::Failed,
        6 => RunPhase::Limited(VmLimitKind::Heap),
        7 => RunPhase::Limited(VmLimitKind::Stack),
        8 => RunPhase::Limited(VmLimitKind::Steps),
        9 => RunPhase::Limited(VmLimitKind::Text),
        10 => RunPhase::Limited(VmLimitKind::Output),
        11 => RunPhase::Broken,
        12 => RunPhase::Wait,
        _ => return Err(FormatError::Invalid("phase")),
    };
    state.debt = r.num()?;
    state.printed = r.num()?;
    state.checkpoint = r.num()?;
    if state.checkpoint > MOST_CHECKPOINTS {
        return Err(FormatError::Invalid("checkpoint"));
    }
    state.steps = r.num()?;
    state.rng = r.num()?;
    state.heap.bytes = r.num()?;
    state.heap.gc_at = r.num()?;
    state.heap.cursor = r.u32()?;
    let cells = r.num()? as usize;
    let urgent = r.u8()?;
    if urgent > 3 {
        return Err(FormatError::Invalid("flag"));
    }
    state.heap.attention = urgent & 1 != 0;
    state.heap.too_long = urgent & 2 != 0;
    state.wait_back = match r.num()? {
        0 => Back::Push,
        1 => Back::Construct,
        2 => Back::Discard,
        3 => Back::Result,
        n => Back::Store(u32::try_from(n - 4).map_err(|_| FormatError::Invalid("frame"))?),
    };
    state.now = r.float()?;
    state.result = r.value()?;
    state.thrown = Some(r.value()?).filter(|v| *v != Value::Hole);
    let operands = r.values()?;
    state.stack.truncate(crate::state::STACK_START);
    state.stack.extend(operands);
    state.sp = state.stack.len();
    let n = r.count(6)?;
    for _ in 0..n {
        state.frames.push(read_frame(&mut r, program)?);
    }
    let n = r.count(3)?;
    let mut jobs = VecDeque::new();
    for _ in 0..n {
        jobs.push_back(match r.u8()? {
            0 => PendingJob::Call(r.u32()?, r.values()?),
            mode @ 1..=3 => PendingJob::Resume(r.id()?, mode - 1, r.value()?),
            _ => return Err(FormatError::Invalid("job")),
        });
    }
    state.jobs = jobs;
    for _ in 0..r.count(2)? {
        let (c, id) = (r.u32()?, r.id()?);
        state.template_objects.insert(c, id);
    }
    for _ in 0..r.count(2)? {
        state.registry.push((r.id()?, r.id()?));
    }
    for _ in 0..r.count(1)? {
        state.joining.push(r.id()?);
    }
    state.request = match r.u8()? {
        0 => None,
        1 => Some(PendingRequest::Task { prompt: r.text()?, options: None }),
        2 => Some(PendingRequest::Task { prompt: r.text()?, options: Some(r.text()?) }),
        3 => Some(PendingRequest::Host { name: r.text()?, args: r.text()? }),
        _ => return Err(FormatError::Invalid("request")),
    };
    let failure = r.text()?;
    state.failure = (!failure.is_empty()).then_some(failure);
    if program.has_items() {
        state.next_item = r.num()?;
        if !(1..=MOST_ITEMS).contains(&state.next_item) {
            return Err(FormatError::Invalid("item"));
        }
    }
    r.end()?;
    Ok(cells)
}

fn read_frame(r: &mut ByteReader<'_>, program: &CompiledProgram) -> Result<Frame, FormatError> {
    let template = r.u32()?;
    let pc = r.u32()?;
    let start = program.template(template).start;
    Ok(Frame {
        template,
        pc: start.checked_add(pc).ok_or(FormatError::Invalid("position"))?,
        base: r.u32()?,
        env: r.value()?,
        new_target: r.value()?,
        coroutine: r.id()?,
        back: match r.u8()? {
            0 => Back::Push,
            1 => Back::Construct,
            2 => Back::Discard,
            3 => Back::Result,
            4 => Back::Store(r.u32()?),
            _ => return Err(FormatError::Invalid("frame")),
        },
    })
}
