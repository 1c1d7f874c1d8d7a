//! Programs as bytes: source, constants, templates, code, and the number of the generation for which the program was compiled.
//! The realm and the prelude are not part of the bytes.

use super::codec::{ByteReader, ByteWriter};
use super::{FormatError, checksum, frame, scopes, unframe, verify_code};
use crate::builtins::generations::{self, Generation};
use crate::ops::{Instruction, Opcode, Operand};
use crate::program::{
    Binding, CompiledProgram, Const, ExceptionHandler, FunctionTemplate, SourceFileStart, Unit,
};

const MAGIC: [u8; 2] = *b"CU";

type Res<T> = Result<T, FormatError>;

impl CompiledProgram {
    /// The program as bytes for [`CompiledProgram::decode`].
    pub fn encode(&self) -> Vec<u8> {
        frame(MAGIC, 0, &encode_unit(&self.unit, self.generation))
    }

    /// Reads, verifies and links a stored program.
    pub fn decode(bytes: &[u8]) -> Res<CompiledProgram> {
        let body = unframe(MAGIC, 0, bytes)?;
        let (number, unit) = decode_unit(body)?;
        let generation = generations::get(number).ok_or(FormatError::Generation(number))?;
        verify_code::verify(&unit, generation.prelude.templates.len())?;
        let program = crate::link::link(generation, unit, fingerprint(body));
        scopes::verify(&program)?;
        Ok(program)
    }

    /// Links a unit that was just compiled for this generation.
    pub(crate) fn compiled(generation: &Generation, unit: Unit) -> CompiledProgram {
        let fingerprint = fingerprint(&encode_unit(&unit, generation.number));
        crate::link::link(generation, unit, fingerprint)
    }

    /// Verifies the bytecode again; a program that was compiled or decoded here always passes.
    pub fn verify(&self) -> Res<()> {
        verify_code::verify(&self.unit, self.prelude.templates.len())?;
        scopes::verify(self)
    }
}

/// Identifies a program in its states; a hash of the stored bytes, so that it does not change with the encoder.
fn fingerprint(body: &[u8]) -> u32 {
    checksum(1, body)
}

/// The bytes of a unit without the header.
pub(super) fn encode_unit(unit: &Unit, generation: u32) -> Vec<u8> {
    let mut w = ByteWriter::default();
    w.num(u64::from(generation));
    w.bytes(unit.filename.as_bytes());
    w.bytes(unit.source.as_bytes());
    w.count(unit.consts.len());
    for c in &unit.consts {
        match c {
            Const::Num(n) => {
                w.u8(0);
                w.float(*n);
            }
            Const::Str(units) => {
                w.u8(1);
                w.units(units);
            }
            Const::Big(text) => {
                w.u8(2);
                w.bytes(text.as_bytes());
            }
            Const::Template(strings) => {
                w.u8(3);
                w.count(strings.len());
                for (cooked, raw) in strings {
                    w.u8(u8::from(cooked.is_some()));
                    if let Some(c) = cooked {
                        w.units(c);
                    }
                    w.units(raw);
                }
            }
        }
    }
    w.count(unit.templates.len());
    for t in &unit.templates {
        encode_template(&mut w, t);
    }
    w.count(unit.code.len());
    for ins in &unit.code {
        let row = ins.op.row();
        w.u8(ins.op as u8);
        match row.c {
            Operand::None => {}
            Operand::Imm => w.signed(i64::from(ins.c as i32)),
            _ => w.num(u64::from(ins.c)),
        }
        if row.b != Operand::None {
            w.num(u64::from(ins.b));
        }
    }
    // A unit of one file ends here.
    if !unit.files.is_empty() {
        w.count(unit.files.len());
        for file in &unit.files {
            w.bytes(file.name.as_bytes());
            w.num(u64::from(file.start));
        }
    }
    w.out
}

fn encode_template(w: &mut ByteWriter, t: &FunctionTemplate) {
    w.num(u64::from(t.name.wrapping_add(1)));
    for n in [t.flags, t.params, t.length, t.slots, t.depth] {
        w.num(u64::from(n));
    }
    for n in [t.start, t.len, t.span.0, t.span.1] {
        w.num(u64::from(n));
    }
    w.count(t.handlers.len());
    for h in &t.handlers {
        for n in [h.start, h.end, h.target, u32::from(h.depth)] {
            w.num(u64::from(n));
        }
    }
    w.count(t.positions.len());
    let mut last = (0u32, 0u32);
    for &(pc, offset) in &t.positions {
        w.num(u64::from(pc.wrapping_sub(last.0)));
        w.signed(i64::from(offset) - i64::from(last.1));
        last = (pc, offset);
    }
    w.count(t.bindings.len());
    for b in &t.bindings {
        w.bytes(b.name.as_bytes());
        w.num(u64::from(b.local));
        w.num(b.slot.map_or(0, |s| u64::from(s) + 1));
        w.num(u64::from(b.range.0));
        w.num(u64::from(b.range.1));
    }
}

/// A unit with the number of its generation.
pub(super) fn decode_unit(body: &[u8]) -> Res<(u32, Unit)> {
    let mut r = ByteReader::new(body);
    let generation = r.u32()?;
    let mut unit = Unit { filename: r.text()?, source: r.text()?, ..Unit::default() };
    for _ in 0..r.count(2)? {
        unit.consts.push(match r.u8()? {
            0 => Const::Num(r.float()?),
            1 => Const::Str(r.units()?),
            2 => {
                let text = r.text()?;
                if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(FormatError::Invalid("bigint"));
                }
                Const::Big(text)
            }
            3 => {
                let mut strings = Vec::new();
                for _ in 0..r.count(2)? {
                    let cooked = if r.bool()? { Some(r.units()?) } else { None };
                    strings.push((cooked, r.units()?));
                }
                Const::Template(strings)
            }
            _ => return Err(FormatError::Invalid("constant")),
        });
    }
    for _ in 0..r.count(10)? {
        unit.templates.push(decode_template(&mut r, unit.source.len())?);
    }
    for _ in 0..r.count(1)? {
        let op = Opcode::from_byte(r.u8()?).ok_or(FormatError::Invalid("opcode"))?;
        let row = op.row();
        let c = match row.c {
            Operand::None => 0,
            Operand::Imm => i32::try_from(r.signed()?).map_err(|_| FormatError::Invalid("operand"))? as u32,
            _ => r.u32()?,
        };
        let b = if row.b == Operand::None { 0 } else { r.u16()? };
        unit.code.push(Instruction::new(op, c, b));
    }
    if !r.is_at_end() {
        unit.files = decode_files(&mut r, &unit.source)?;
    }
    r.end()?;
    Ok((generation, unit))
}

/// The files of a unit with several.
fn decode_files(r: &mut ByteReader<'_>, source: &str) -> Res<Vec<SourceFileStart>> {
    let mut files: Vec<SourceFileStart> = Vec::new();
    for _ in 0..r.count(2)? {
        let (name, start) = (r.text()?, r.u32()?);
        let expected = files.last().map_or(start == 0, |last| last.start <= start);
        if !expected || !source.is_char_boundary(start as usize) {
            return Err(FormatError::Invalid("files"));
        }
        files.push(SourceFileStart { name, start });
    }
    if files.len() < 2 {
        return Err(FormatError::Invalid("files"));
    }
    Ok(files)
}

fn decode_template(r: &mut ByteReader<'_>, source: usize) -> Res<FunctionTemplate> {
    let mut t = FunctionTemplate { name: r.u32()?.wrapping_sub(1), ..FunctionTemplate::default() };
    t.flags = r.u16()?;
    t.params = r.u16()?;
    t.length = r.u16()?;
    t.slots = r.u16()?;
    t.depth = r.u16()?;
    t.start = r.u32()?;
    t.len = r.u32()?;
    t.span = (r.u32()?, r.u32()?);
    if t.span.0 as usize > source || t.span.1 as usize > source {
        return Err(FormatError::Invalid("source range"));
    }
    for _ in 0..r.count(4)? {
        t.handlers.push(ExceptionHandler {
            start: r.u32()?,
            end: r.u32()?,
            target: r.u32()?,
            depth: r.u16()?,
        });
    }
    let mut last = (0u32, 0i64);
    for _ in 0..r.count(2)? {
        let pc = last.0.checked_add(r.u32()?).ok_or(FormatError::Invalid("position"))?;
        let offset = last.1.saturating_add(r.signed()?);
        let position = u32::try_from(offset).map_err(|_| FormatError::Invalid("position"))?;
        t.positions.push((pc, position));
        last = (pc, offset);
    }
    for _ in 0..r.count(5)? {
        t.bindings.push(Binding {
            name: r.text()?,
            local: r.u16()?,
            slot: r.u16()?.checked_sub(1),
            range: (r.u32()?, r.u32()?),
        });
    }
    Ok(t)
}
