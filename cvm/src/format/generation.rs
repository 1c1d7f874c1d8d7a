//! A generation of realm and prelude as bytes: names of the natives, the prelude's templates and code, the realm's cells.
//!
//! These bytes are part of the engine and trusted; they are read by the same checking reader all the same.

use super::cells::{self, ChunkSource};
use super::codec::ByteReader;
use super::unit::decode_unit;
use super::{FormatError, unframe};
use crate::builtins::prelude::Prelude;
use crate::heap::{Cell, Heap};
use std::collections::BTreeMap;

const MAGIC: [u8; 2] = *b"CG";

type Res<T> = Result<T, FormatError>;

/// The parts of a generation.
pub(crate) struct GenerationParts {
    /// The realm's cells
    pub heap: Heap,
    /// The prelude
    pub prelude: Prelude,
}

/// The chunks of one cell.
struct CellChunks<T>(Vec<T>);

impl ChunkSource for CellChunks<&[u8]> {
    fn get(&self, n: u32) -> Res<&[u8]> {
        self.0.get(n as usize).copied().ok_or(FormatError::Invalid("missing chunk"))
    }

    fn text(&self, _: u64) -> Res<&[u8]> {
        Err(FormatError::Invalid("missing chunk"))
    }
}

#[cfg(test)]
impl cells::ChunkSink for CellChunks<Vec<u8>> {
    fn to_write(&mut self, count: u32) -> Vec<u32> {
        (0..count).collect()
    }

    fn put(&mut self, _: u32, bytes: Vec<u8>) {
        self.0.push(bytes);
    }

    fn text(&mut self, _: crate::heap::text::Text<'_>) -> Option<Vec<u64>> {
        None
    }
}

/// The bytes of a generation, to be stored.
#[cfg(test)]
pub(crate) fn write_generation(number: u32, natives: &[String], heap: &Heap, prelude: &Prelude) -> Vec<u8> {
    let mut w = super::codec::ByteWriter::default();
    w.count(natives.len());
    for name in natives {
        w.bytes(name.as_bytes());
    }
    let functions: BTreeMap<&String, u32> = prelude.functions.iter().map(|(name, &n)| (name, n)).collect();
    w.count(functions.len());
    for (name, template) in functions {
        w.bytes(name.as_bytes());
        w.num(u64::from(template));
    }
    w.bytes(&super::unit::encode_unit(&prelude.unit, number));
    w.count(heap.cells.len());
    for cell in &heap.cells {
        let mut inner = super::codec::ByteWriter::default();
        let mut chunks = CellChunks(Vec::new());
        cells::write(&mut inner, cell, None, &mut chunks);
        w.count(chunks.0.len());
        chunks.0.iter().for_each(|chunk| w.bytes(chunk));
        w.out.extend_from_slice(&inner.out);
    }
    super::frame(MAGIC, u64::from(number), &w.out)
}

fn read_names(r: &mut ByteReader<'_>) -> Res<Vec<String>> {
    let n = r.count(1)?;
    (0..n).map(|_| r.text()).collect()
}

/// Names of the natives by number.
pub(crate) fn read_generation_natives(number: u32, bytes: &[u8]) -> Res<Vec<String>> {
    read_names(&mut ByteReader::new(unframe(MAGIC, u64::from(number), bytes)?))
}

/// Reads the bytes of `write_generation`.
pub(crate) fn read_generation(number: u32, bytes: &[u8]) -> Res<GenerationParts> {
    let mut r = ByteReader::new(unframe(MAGIC, u64::from(number), bytes)?);
    read_names(&mut r)?;
    let mut functions = BTreeMap::new();
    for _ in 0..r.count(2)? {
        functions.insert(r.text()?, r.u32()?);
    }
    let (base, unit) = decode_unit(r.bytes()?)?;
    if base != number {
        return Err(FormatError::Invalid("generation"));
    }
    let n = r.count(1)?;
    let cells = (0..n).map(|_| read_cell(&mut r)).collect::<Res<_>>()?;
    r.end()?;
    Ok(GenerationParts { heap: Heap::of_cells(cells), prelude: Prelude::new(unit, functions) })
}

fn read_cell(r: &mut ByteReader<'_>) -> Res<Cell> {
    let chunks: Vec<&[u8]> = (0..r.count(1)?).map(|_| r.bytes()).collect::<Res<_>>()?;
    cells::read(r, None, &CellChunks(chunks))
}
