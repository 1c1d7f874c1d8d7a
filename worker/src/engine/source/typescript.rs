//! Owns the removal of TypeScript's types, with the map to the lines of the original. Types are not checked.

use super::scan::words;
use super::{SourceError, guarded, place};
use crate::engine::position::FileMap;
use oxc_allocator::Allocator;
use oxc_ast::ast::{Decorator, Program, Statement};
use oxc_ast_visit::Visit;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// JavaScript text and its map to the original.
#[derive(Debug)]
pub(in crate::engine) struct Stripped {
    pub(in crate::engine) text: String,
    pub(in crate::engine) map: FileMap,
    /// Imports or exports something besides types.
    pub(in crate::engine) is_module: bool,
}

/// Removes the types of a script or module.
pub(in crate::engine) fn strip(text: &str, file_name: &str, module: bool) -> Result<Stripped, SourceError> {
    if words(text, &HashSet::new()).deep {
        let message = "the text is nested too deeply to remove its types".to_owned();
        return Err(SourceError { message, line: 1, column: 1 });
    }
    guarded(|| strip_unguarded(text, file_name, module))
}

fn strip_unguarded(text: &str, file_name: &str, module: bool) -> Result<Stripped, SourceError> {
    let allocator = Allocator::default();
    // Parsed as a module even if it runs as a script: only modules may await at top level.
    let source_type = SourceType::ts().with_module(true);
    let parsed = Parser::new(&allocator, text, source_type).parse();
    if let Some(error) = SourceError::first(parsed.diagnostics.errors(), text) {
        return Err(error);
    }
    let mut program = parsed.program;
    refuse_decorators(&program, text)?;
    let built =
        SemanticBuilder::new_compiler().with_enum_eval(true).with_check_syntax_error(true).build(&program);
    if let Some(error) = SourceError::first(built.diagnostics.errors(), text) {
        return Err(error);
    }
    let scoping = built.semantic.into_scoping();
    let mut options = TransformOptions::default();
    // A script's unused imports may be types; everything else must stay.
    options.typescript.only_remove_type_imports = false;
    let transformed = Transformer::new(&allocator, Path::new(file_name), &options)
        .build_with_scoping(scoping, &mut program);
    if let Some(error) = SourceError::first(transformed.diagnostics.errors(), text) {
        return Err(error);
    }
    let is_module = program.body.iter().any(|statement| match statement {
        // `export {}`, which TypeScript uses to mark a script as a module.
        Statement::ExportNamedDeclaration(export) => !export.specifiers.is_empty(),
        statement => statement.is_module_declaration(),
    });
    let generated = Codegen::new()
        .with_options(CodegenOptions {
            source_map_path: Some(PathBuf::from(file_name)),
            ..CodegenOptions::default()
        })
        .build(&program);
    let mut map = FileMap::default();
    if let Some(source_map) = &generated.map {
        map.tokens = source_map
            .get_tokens()
            .map(|token| {
                (
                    (token.get_dst_line() + 1, token.get_dst_col() + 1),
                    (token.get_src_line() + 1, token.get_src_col() + 1),
                )
            })
            .collect();
    }
    let mut text = generated.code;
    if !module {
        text = text.replace("export {};", "");
    }
    Ok(Stripped { text, map, is_module })
}

/// Decorators would need a runtime library; they are refused by name rather than dropped.
fn refuse_decorators(program: &Program<'_>, source: &str) -> Result<(), SourceError> {
    struct DecoratorFinder(Option<u32>);
    impl<'a> Visit<'a> for DecoratorFinder {
        fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
            self.0.get_or_insert(decorator.span.start);
        }
    }
    let mut finder = DecoratorFinder(None);
    finder.visit_program(program);
    finder.0.map_or(Ok(()), |offset| {
        let (line, column) = place(source, offset as usize);
        Err(SourceError { message: "decorators are not supported".to_owned(), line, column })
    })
}
