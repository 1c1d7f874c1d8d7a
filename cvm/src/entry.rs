//! From source text to a program that is ready to run: the compiler's result, linked to the builtins of its generation.
//!
//! Owns: the choice of the generation. Must not: know what the compiler and the linker do.

use crate::builtins::generations;
use crate::compiler::{self, CompileErrors, CompileOptions, SourceFile};
use crate::heap::spare;
use crate::program::CompiledProgram;

/// Builds the realm and the prelude, which all programs that are compiled with this value of [`CompileOptions::items`] share: some
/// milliseconds, once per process, on first use otherwise.
pub fn warm_up(items: bool) {
    let generation = generations::for_new_programs(items);
    spare::prepare(generation.number, generation.base.len(), &generation.code);
}

/// Whether a text that compiles as TypeScript has any syntax that JavaScript does not have.
pub fn has_typescript(source: &str) -> bool {
    compiler::has_typescript(source)
}

/// Compiles source text to a program that is ready to run.
pub fn compile(source: &str, options: &CompileOptions) -> Result<CompiledProgram, CompileErrors> {
    compile_files(source, &[], options)
}

/// Compiles the file [`CompileOptions::filename`] with the text `source`, and those of `others` that it reaches by imports.
pub fn compile_files(
    source: &str,
    others: &[SourceFile],
    options: &CompileOptions,
) -> Result<CompiledProgram, CompileErrors> {
    let generation = generations::for_new_programs(options.items);
    let names = generations::names_of(generation);
    let unit = compiler::compile_unit(source, others, options, &generation.prelude.functions, names)?;
    Ok(CompiledProgram::compiled(generation, unit))
}
