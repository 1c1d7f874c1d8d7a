//! Generations of the realm and the prelude, on which stored programs and states depend.
//!
//! A program is compiled for one generation and stores its number. Its states are differences from that generation's cells, and
//! their frames refer to that generation's functions. A released generation is therefore kept as bytes and never changes. The
//! newest ones are built from this engine's sources; new programs are compiled for them.
//!
//! Owns: the list of generations, their loading and linking. Must not: know what builtins do.
//! `cvm/tests/golden/README.md` describes how a generation is released.

#[cfg(test)]
mod tests;

use super::prelude::Prelude;
use super::{ids, realm};
use crate::heap::Heap;
use crate::heap::base::Base;
use crate::ops::Instruction;
use crate::value::{Id, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// The generations that are kept as bytes, each with its checksum; the index is the number less one. Append only.
const KEPT: &[(&[u8], u32)] = &[(include_bytes!("1.bin"), 0x65bf_5058)];

/// Generations after the last kept one, which are built from the sources: they may still change, and so may their states. They differ in
/// the modules that a later one has (`Module::since`).
const OPEN: u32 = 2;

/// Number of the newest generation.
const NEWEST: u32 = KEPT.len() as u32 + OPEN;

/// The first generation whose programs can make items ([`crate::CompileOptions::items`]).
pub(crate) const FIRST_WITH_ITEMS: u32 = 3;

/// Realm and prelude, linked.
#[derive(Debug)]
pub(crate) struct Generation {
    /// The generation's number, from 1
    pub number: u32,
    /// Cells of the realm and of the prelude's constants
    pub base: Arc<Base>,
    /// Templates and names
    pub prelude: Arc<Prelude>,
    /// The prelude's code with absolute targets and property keys
    pub code: Vec<Instruction>,
    /// Values of the prelude's constants
    pub consts: Vec<Value>,
}

/// Names that a program may use without declaring them.
#[derive(Debug)]
pub(crate) struct GlobalNames {
    /// Global variables
    pub globals: HashSet<String>,
    /// Methods of the objects that are the host's, by the object's name
    pub of_host: [(&'static str, HashSet<String>); 3],
    /// Members of the other global objects and constructors (`Math`, `Array`), own and inherited, by the object's name
    pub of_builtins: HashMap<String, HashSet<String>>,
}

/// The names of a generation.
pub(crate) fn names_of(generation: &Generation) -> &'static GlobalNames {
    static NAMES: [OnceLock<GlobalNames>; NEWEST as usize] = [const { OnceLock::new() }; NEWEST as usize];
    NAMES[generation.number as usize - 1].get_or_init(|| {
        let heap = Heap::on_base(&generation.base, u64::MAX);
        let names = |object| -> HashSet<String> {
            let keys = heap.obj(object).props.iter().filter(|p| !heap.key_is_symbol(p.key));
            keys.filter_map(|p| p.key.as_cell()).map(|text| heap.str(text).to_utf8()).collect()
        };
        let with_inherited = |object: Id| {
            let chain = std::iter::successors(Some(object), |object| heap.obj(*object).proto.some());
            chain.flat_map(names).collect()
        };
        let of_host =
            [("console", names(ids::CONSOLE)), ("fs", names(ids::FS)), ("crypto", names(ids::CRYPTO))];
        let of_builtins = heap.obj(ids::GLOBAL).props.iter().filter_map(|p| {
            let name = heap.str(p.key.as_cell()?).to_utf8();
            let is_builtin = name.starts_with(|first: char| first.is_ascii_uppercase());
            match p.value {
                Value::Obj(object) if is_builtin => Some((name, with_inherited(object))),
                _ => None,
            }
        });
        GlobalNames { globals: names(ids::GLOBAL), of_host, of_builtins: of_builtins.collect() }
    })
}

/// The generation that new programs are compiled for: the newest one, or the newest one without items.
pub(crate) fn for_new_programs(items: bool) -> &'static Generation {
    match get(if items { NEWEST } else { FIRST_WITH_ITEMS - 1 }) {
        Some(generation) => generation,
        None => unreachable!("both are there, as their test shows"),
    }
}

/// A generation by number; `None` if this engine does not have it.
pub(crate) fn get(number: u32) -> Option<&'static Generation> {
    static LOADED: [OnceLock<Generation>; NEWEST as usize] = [const { OnceLock::new() }; NEWEST as usize];
    let index = (number as usize).checked_sub(1)?;
    let cell = LOADED.get(index)?;
    Some(cell.get_or_init(|| {
        let (heap, prelude) = match KEPT.get(index) {
            Some((bytes, _)) => kept(number, bytes),
            None => realm::build(number),
        };
        crate::link::link_prelude(number, heap, prelude)
    }))
}

/// Reads a generation that is kept as bytes.
///
/// # Panics
/// When the bytes are damaged; they are part of the engine, and a test excludes it.
fn kept(number: u32, bytes: &[u8]) -> (Heap, Prelude) {
    match crate::format::read_generation(number, bytes) {
        Ok(kept) => (kept.heap, kept.prelude),
        Err(error) => panic!("generation {number} is damaged: {error}"),
    }
}

/// Names of the natives of the newest kept generation, in numeric order.
pub(crate) fn released_natives() -> Vec<String> {
    let Some((bytes, _)) = KEPT.last() else { return Vec::new() };
    match crate::format::read_generation_natives(KEPT.len() as u32, bytes) {
        Ok(names) => names,
        Err(error) => panic!("generation {} is damaged: {error}", KEPT.len()),
    }
}
