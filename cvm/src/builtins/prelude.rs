//! The prelude: builtins written in JavaScript, compiled once per process.
//!
//! Owns: [`Prelude`]. Its template numbers and code are part of the format: a changed function is appended under a new
//! name, so that a state paused inside the old one still finds it.

use crate::compiler::PreludeNames;
use crate::program::{Template, Unit};
use std::collections::HashMap;

/// The compiled prelude.
#[derive(Debug)]
pub(crate) struct Prelude {
    pub unit: Unit,
    pub templates: Vec<Template>,
    pub functions: HashMap<String, u32>,
    pub methods: HashMap<String, Vec<(String, u8, u32)>>,
    /// Template of `ToPrimitive`
    pub to_primitive: u32,
    /// What a wrong template number names
    pub nothing: Template,
}

/// Compiles all modules' sources as one.
///
/// # Panics
/// When the prelude does not compile, which a test excludes.
pub(crate) fn compile() -> Prelude {
    let source: String = super::natives::MODULES.iter().map(|m| m.source).collect::<Vec<_>>().join("\n");
    match crate::compiler::compile_prelude(&source) {
        Ok((unit, PreludeNames { functions, methods })) => {
            let to_primitive = functions.get("ToPrimitive").copied().unwrap_or(0);
            let templates = unit.templates.clone();
            Prelude { unit, templates, functions, methods, to_primitive, nothing: Template::default() }
        }
        Err(errors) => panic!("the prelude does not compile: {errors}"),
    }
}
