//! A generation of realm and prelude as bytes: names of the natives, the prelude's templates and code, the realm's cells.
//!
//! These bytes are part of the engine and trusted; they are still read by the same total readers.

use super::cells::{self, Source};
use super::codec::Reader;
use super::unit::decode_unit;
use super::{FormatError, unframe};
use crate::builtins::prelude::Prelude;
use crate::heap::Heap;
use std::collections::BTreeMap;

const MAGIC: [u8; 2] = *b"CG";

type Res<T> = Result<T, FormatError>;

/// What a generation consists of.
pub(crate) struct Kept {
    /// The realm's cells
    pub heap: Heap,
    /// The prelude
    pub prelude: Prelude,
}

/// No cell of the realm is so long that it has chunks.
struct NoChunks;

impl Source for NoChunks {
    fn get(&self, _: u32) -> Res<&[u8]> {
        Err(FormatError::Invalid("chunk"))
    }
}

/// Counts chunks that there must not be.
#[cfg(test)]
struct Refused(usize);

#[cfg(test)]
impl cells::Chunks for Refused {
    fn wanted(&mut self, count: u32) -> Vec<u32> {
        self.0 += count as usize;
        Vec::new()
    }

    fn put(&mut self, _: u32, _: Vec<u8>) {}
}

/// Writes a generation, to be kept; none when the realm has a cell that is too long for it.
#[cfg(test)]
pub(crate) fn write_generation(
    number: u32,
    natives: &[String],
    heap: &Heap,
    prelude: &Prelude,
) -> Option<Vec<u8>> {
    let mut w = super::codec::Writer::default();
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
    let mut refused = Refused(0);
    for cell in &heap.cells {
        cells::write(&mut w, cell, None, &mut refused);
    }
    (refused.0 == 0).then(|| super::frame(MAGIC, u64::from(number), &w.out))
}

fn read_names(r: &mut Reader<'_>) -> Res<Vec<String>> {
    let n = r.count(1)?;
    (0..n).map(|_| r.text()).collect()
}

/// Names of the natives by number.
pub(crate) fn read_generation_natives(number: u32, bytes: &[u8]) -> Res<Vec<String>> {
    read_names(&mut Reader::new(unframe(MAGIC, u64::from(number), bytes)?))
}

/// Reads what `write_generation` wrote.
pub(crate) fn read_generation(number: u32, bytes: &[u8]) -> Res<Kept> {
    let mut r = Reader::new(unframe(MAGIC, u64::from(number), bytes)?);
    read_names(&mut r)?;
    let mut functions = BTreeMap::new();
    for _ in 0..r.count(2)? {
        functions.insert(r.text()?, r.u32()?);
    }
    let (stands_on, unit) = decode_unit(r.bytes()?)?;
    if stands_on != number {
        return Err(FormatError::Invalid("generation"));
    }
    let n = r.count(1)?;
    let cells = (0..n).map(|_| cells::read(&mut r, None, &NoChunks)).collect::<Res<_>>()?;
    r.end()?;
    Ok(Kept { heap: Heap::of_cells(cells), prelude: Prelude::new(unit, functions) })
}
