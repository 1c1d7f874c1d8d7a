//! Owns the host call for a file, and the errors that scripts see.

use super::{LoadedFile, LoadedText};
use crate::engine::source::scan::words;
use crate::engine::source::{SourceError, guarded, typescript};
use crate::engine::state::SharedState;
use rquickjs::{Ctx, Error, Exception, Result, Value};
use std::collections::HashSet;
use vm_system_protocol::worker::{HostReply, HostRequest, SourceFormat};

/// Throws an `Error` with a `code`.
pub(in crate::engine) fn coded_error(ctx: &Ctx<'_>, code: &str, message: &str) -> Error {
    let created = Exception::from_message(ctx.clone(), message).and_then(|error| {
        error.as_object().set("code", code)?;
        Ok(error)
    });
    match created {
        Ok(error) => error.throw(),
        Err(error) => error,
    }
}

/// A `SyntaxError` with its position.
pub(in crate::engine) fn syntax_error<'js>(
    ctx: &Ctx<'js>,
    error: &SourceError,
    file_name: &str,
) -> Value<'js> {
    let make = || -> Result<Value<'js>> {
        let _ = Exception::throw_syntax(ctx, &error.message);
        let value = ctx.catch();
        if let Some(object) = value.as_object() {
            let stack =
                format!("SyntaxError: {}\n    at {file_name}:{}:{}", error.message, error.line, error.column);
            object.prop("stack", rquickjs::object::Property::from(stack).writable().configurable())?;
        }
        Ok(value)
    };
    make().unwrap_or_else(|_| {
        drop(ctx.catch());
        Value::new_null(ctx.clone())
    })
}

/// Requests the first of these files that exists from the host.
pub(super) fn request_file(
    ctx: &Ctx<'_>,
    state: &SharedState,
    candidates: Vec<String>,
    import: bool,
    package: bool,
) -> Result<HostReply> {
    state.call(ctx, HostRequest::LoadModule { candidates, import, package })
}

/// Removes the types of TypeScript; the result is JavaScript of the given kind.
pub(super) fn javascript(
    ctx: &Ctx<'_>,
    state: &SharedState,
    file: LoadedFile,
    module: bool,
) -> Result<LoadedFile> {
    let format = match file.format {
        SourceFormat::TypeScript if module => SourceFormat::Module,
        SourceFormat::TypeScript => SourceFormat::CommonJs,
        SourceFormat::TypeScriptModule => SourceFormat::Module,
        _ => return Ok(file),
    };
    match typescript::strip(&file.source, &file.path, true) {
        Ok(stripped) => {
            super::keep_map(state, &file.path, stripped.map);
            Ok(LoadedFile { path: file.path, source: LoadedText::Received(stripped.text), format })
        }
        Err(error) => Err(ctx.throw(syntax_error(ctx, &error, &file.path))),
    }
}

/// Whether a text uses the syntax of ES modules.
pub(super) fn has_module_syntax(source: &str) -> bool {
    let words = words(source, &HashSet::from(["import".to_owned(), "export".to_owned()]));
    if !words.names || words.deep {
        return false;
    }
    guarded(|| {
        let allocator = oxc_allocator::Allocator::default();
        let parsed = oxc_parser::Parser::new(&allocator, source, oxc_span::SourceType::unambiguous()).parse();
        Ok(!parsed.panicked && parsed.module_record.has_module_syntax)
    })
    .unwrap_or(false)
}
