//! The source format of a file (script, module, JSON), by its name.

use vm_system_protocol::worker::SourceFormat;

/// The format of a file that is run. `esm`: `.js` and `.ts` files are modules.
pub fn run_file_format(path: &str, esm: bool) -> SourceFormat {
    match extension(path) {
        "mjs" => SourceFormat::Module,
        "cjs" => SourceFormat::CommonJs,
        "json" => SourceFormat::Json,
        "mts" => SourceFormat::TypeScriptModule,
        "ts" if esm => SourceFormat::TypeScriptModule,
        "ts" | "cts" => SourceFormat::TypeScript,
        _ if esm => SourceFormat::Module,
        _ => SourceFormat::Script,
    }
}

/// The format of an imported file. As in Node, a `.js` file is `CommonJS` unless modules are the default (`esm`) and it is
/// imported.
pub fn module_format(path: &str, import: bool, esm: bool) -> SourceFormat {
    match extension(path) {
        "mjs" => SourceFormat::Module,
        "cjs" => SourceFormat::CommonJs,
        "json" => SourceFormat::Json,
        "mts" => SourceFormat::TypeScriptModule,
        "ts" if import => SourceFormat::TypeScriptModule,
        "cts" | "ts" => SourceFormat::TypeScript,
        _ if import && esm => SourceFormat::Module,
        _ => SourceFormat::CommonJs,
    }
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::run_file_format;
    use vm_system_protocol::worker::SourceFormat;

    #[test]
    fn formats_follow_names_and_the_esm_setting() {
        assert_eq!(run_file_format("a.js", false), SourceFormat::Script);
        assert_eq!(run_file_format("a.js", true), SourceFormat::Module);
        assert_eq!(run_file_format("a.mjs", false), SourceFormat::Module);
        assert_eq!(run_file_format("a.ts", false), SourceFormat::TypeScript);
        assert_eq!(run_file_format("dir.mjs/a", false), SourceFormat::Script);
    }
}
