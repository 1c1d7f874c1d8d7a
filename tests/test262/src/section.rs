//! The parts of the suite that are run, each with one engine and expectations of its own.

use crate::engine::Engine;
use crate::metadata::Metadata;
use crate::protocol::TestMode;
use crate::suite::{Set, TestFile, is_other_memory, mentions_eval};
use crate::{cvm, quickjs};
use std::path::{Path, PathBuf};

/// An engine of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// Of programs.
    Cvm,
    /// Of sessions.
    QuickJs,
}

impl EngineName {
    /// The engine's name on the command line of a child.
    pub fn as_str(self) -> &'static str {
        match self {
            EngineName::Cvm => "cvm",
            EngineName::QuickJs => "quickjs",
        }
    }

    /// The engine with this name.
    pub fn engine(name: &str) -> Option<&'static dyn Engine> {
        match name {
            "cvm" => Some(&cvm::Cvm),
            "quickjs" => Some(&quickjs::QuickJs),
            _ => None,
        }
    }

    /// How a test is run (test262's `INTERPRETING.md`).
    pub fn modes(self, metadata: &Metadata) -> Vec<TestMode> {
        let has = |flag| metadata.has_flag(flag);
        match self {
            _ if has("module") => vec![TestMode::Module],
            EngineName::Cvm => vec![TestMode::Script],
            EngineName::QuickJs if has("onlyStrict") => vec![TestMode::StrictScript],
            EngineName::QuickJs if has("noStrict") || has("raw") => vec![TestMode::Script],
            EngineName::QuickJs => vec![TestMode::Script, TestMode::StrictScript],
        }
    }
}

/// A part of the suite.
#[derive(Clone, Copy, Debug)]
pub struct SuiteSection {
    /// The section's name on the command line, and of its file of expectations.
    pub name: &'static str,
    /// The engine.
    pub engine: EngineName,
    contains: fn(&TestFile) -> bool,
}

/// Set A, which the page for readers is about.
pub const CVM: SuiteSection = SuiteSection {
    name: "cvm",
    engine: EngineName::Cvm,
    contains: |test| test.set != Set::Outside && !test.is_intl(),
};

/// All sections; those of one engine have no test in common.
pub const SECTIONS: [SuiteSection; 7] = [
    CVM,
    SuiteSection {
        name: "cvm-intl402",
        engine: EngineName::Cvm,
        contains: |test| test.set != Set::Outside && test.is_intl(),
    },
    SuiteSection {
        name: "cvm-modules",
        engine: EngineName::Cvm,
        contains: |test| {
            is_of_sessions(test) && test.metadata.has_flag("module") && is_known_when_loaded(test)
        },
    },
    SuiteSection {
        name: "quickjs",
        engine: EngineName::QuickJs,
        contains: |test| {
            is_of_sessions(test) && !test.is_intl() && !is_about_modules(test) && !is_about_buffers(test)
        },
    },
    SuiteSection {
        name: "quickjs-modules",
        engine: EngineName::QuickJs,
        contains: |test| is_of_sessions(test) && !test.is_intl() && is_about_modules(test),
    },
    SuiteSection {
        name: "quickjs-typed-arrays",
        engine: EngineName::QuickJs,
        contains: |test| is_of_sessions(test) && is_about_buffers(test) && !is_about_modules(test),
    },
    SuiteSection {
        name: "quickjs-intl402",
        engine: EngineName::QuickJs,
        contains: |test| is_of_sessions(test) && test.is_intl(),
    },
];

impl SuiteSection {
    /// The section with this name.
    pub fn named(name: &str) -> Option<SuiteSection> {
        SECTIONS.into_iter().find(|section| section.name == name)
    }

    /// Whether a test belongs to it.
    pub fn contains(&self, test: &TestFile) -> bool {
        (self.contains)(test)
    }

    /// The file of its expectations.
    pub fn expectations(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expectations/{}.txt", self.name))
    }
}

/// Whether a test is about what sessions have: one realm and one thread, and no proposal that the engine omits.
fn is_of_sessions(test: &TestFile) -> bool {
    let omitted = [
        "Temporal",
        "ShadowRealm",
        "decorators",
        "cross-realm",
        "tail-call-optimization",
        "source-phase-imports",
        "source-phase-imports-module-source",
        "import-defer",
        "import-bytes",
        "import-text",
    ];
    !omitted.iter().any(|feature| test.metadata.has_feature(feature))
        && !test.metadata.features.iter().any(|feature| is_other_memory(feature))
        && !["CanBlockIsFalse", "CanBlockIsTrue"].iter().any(|flag| test.metadata.has_flag(flag))
        && !["/Temporal/", "/ShadowRealm/", "/Atomics/", "/SharedArrayBuffer/"]
            .iter()
            .any(|folder| test.path.contains(folder))
        && !test.source.contains("createRealm")
}

fn is_about_modules(test: &TestFile) -> bool {
    let features = ["dynamic-import", "import-attributes", "import.meta", "json-modules", "top-level-await"];
    test.metadata.has_flag("module") || features.iter().any(|feature| test.metadata.has_feature(feature))
}

/// Whether all code of a module is known before it runs, as that of programs is.
fn is_known_when_loaded(test: &TestFile) -> bool {
    let features = ["dynamic-import", "import.meta"];
    !features.iter().any(|feature| test.metadata.has_feature(feature)) && !mentions_eval(&test.source)
}

fn is_about_buffers(test: &TestFile) -> bool {
    let rest = test.path.strip_prefix("built-ins/").unwrap_or_default();
    let folder = rest.split('/').next().unwrap_or_default();
    ["ArrayBuffer", "DataView", "Uint8Array"].contains(&folder) || folder.starts_with("TypedArray")
}

#[cfg(test)]
mod tests {
    use super::{EngineName, SECTIONS};
    use crate::metadata::Metadata;
    use crate::protocol::TestMode;
    use crate::suite::{Set, TestFile};

    fn sections(path: &str, front_matter: &str, set: Set) -> Vec<&'static str> {
        let source = format!("/*---\n{front_matter}\n---*/");
        let test = TestFile { path: path.to_owned(), metadata: Metadata::parse(&source), source, set };
        SECTIONS.iter().filter(|section| section.contains(&test)).map(|section| section.name).collect()
    }

    #[test]
    fn a_test_is_in_one_section_of_each_engine_that_has_it() {
        assert_eq!(sections("language/a.js", "", Set::B), ["cvm", "quickjs"]);
        assert_eq!(sections("language/a.js", "flags: [noStrict]", Set::Outside), ["quickjs"]);
        assert_eq!(
            sections("language/a.js", "flags: [module]", Set::Outside),
            ["cvm-modules", "quickjs-modules"]
        );
        assert_eq!(sections("built-ins/TypedArray/a.js", "", Set::A), ["cvm", "quickjs-typed-arrays"]);
        assert_eq!(sections("intl402/Collator/a.js", "", Set::A), ["cvm-intl402", "quickjs-intl402"]);
        assert!(sections("built-ins/Temporal/a.js", "", Set::Outside).is_empty());
    }

    #[test]
    fn flags_choose_the_modes() {
        let modes = |flags: &str| {
            EngineName::QuickJs.modes(&Metadata::parse(&format!("/*---\nflags: [{flags}]\n---*/")))
        };
        assert_eq!(modes(""), [TestMode::Script, TestMode::StrictScript]);
        assert_eq!(modes("onlyStrict"), [TestMode::StrictScript]);
        assert_eq!(modes("noStrict, async"), [TestMode::Script]);
        assert_eq!(modes("raw"), [TestMode::Script]);
        assert_eq!(modes("module"), [TestMode::Module]);
        assert_eq!(EngineName::Cvm.modes(&Metadata::default()), [TestMode::Script]);
    }
}
