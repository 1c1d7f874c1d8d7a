//! The prelude: builtins written in JavaScript.
//!
//! Owns: [`Prelude`] and its compilation from the modules' sources. Template numbers and code are part of the stored format;
//! `generations` keeps them stable.

use crate::compiler::PreludeNames;
use crate::program::{FunctionTemplate, Unit};
use std::collections::{BTreeMap, HashMap};

/// The compiled prelude of a generation.
#[derive(Debug)]
pub(crate) struct Prelude {
    /// The compiler's constants and code; without source
    pub unit: Unit,
    /// Templates of its functions
    pub templates: Vec<FunctionTemplate>,
    /// Templates by name
    pub functions: HashMap<String, u32>,
    /// Template of `ToPrimitive`
    pub to_primitive: u32,
    /// The template of an invalid template number
    pub nothing: FunctionTemplate,
}

/// Method lists of the prelude by name: key, kind (0 method 1 getter 2 setter), template.
pub(crate) type Methods = HashMap<String, Vec<(String, u8, u32)>>;

impl Prelude {
    /// Builds a prelude from its parts.
    pub(crate) fn new(unit: Unit, functions: BTreeMap<String, u32>) -> Prelude {
        let to_primitive = functions.get("ToPrimitive").copied().unwrap_or(0);
        let templates = unit.templates.clone();
        let functions = functions.into_iter().collect();
        Prelude { unit, templates, functions, to_primitive, nothing: FunctionTemplate::default() }
    }
}

/// Compiles the sources of a generation's modules as one.
///
/// # Panics
/// If the prelude does not compile; a test excludes this.
pub(crate) fn compile(generation: u32) -> (Prelude, Methods) {
    let source: String =
        super::natives::modules_of(generation).map(|m| m.source).collect::<Vec<_>>().join("\n");
    match crate::compiler::compile_prelude(&source) {
        Ok((mut unit, PreludeNames { functions, methods })) => {
            // Source positions of the prelude are never shown, so they are not part of a generation.
            unit.source = String::new();
            for t in &mut unit.templates {
                t.positions.clear();
                t.bindings.clear();
                t.span = (0, 0);
            }
            (Prelude::new(unit, functions.into_iter().collect()), methods)
        }
        Err(errors) => panic!("the prelude does not compile: {errors}"),
    }
}
