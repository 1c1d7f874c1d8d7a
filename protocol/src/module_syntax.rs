//! Recognizes texts that are modules where a script was expected, for hints of clients. Not for decisions: it looks at lines, not at
//! syntax.

/// Whether a line of the text begins as an import or export of a module does.
pub fn has_module_syntax(text: &str) -> bool {
    const BEGINNINGS: &[&str] =
        &["import ", "import{", "import\"", "import'", "import*", "export ", "export{", "export*"];
    text.lines().map(str::trim_start).any(|line| BEGINNINGS.iter().any(|word| line.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::has_module_syntax;

    #[test]
    fn imports_and_exports_of_modules_are_recognized_and_calls_are_not() {
        for module in ["import fs from 'fs'", "let a;\n  import{a}from'a'", "import'./a'", "export default 1"]
        {
            assert!(has_module_syntax(module), "{module}");
        }
        for script in ["await import('fs')", "import('fs')", "exports.a = 1", "// it has no import\n1"] {
            assert!(!has_module_syntax(script), "{script}");
        }
    }
}
