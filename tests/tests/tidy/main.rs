//! The rules of the modules (`docs/ARCHITECTURE.md`, Invariants), as text searches over the tree. A new module or rule gets a
//! row in [`rules`]; each row has examples that violate it and examples that do not.

mod decisions;
mod habits;
mod language;
mod manifests;
mod rules;
mod tree;
mod vocabulary;

use rules::RULES;
use tree::Tree;

#[test]
fn the_tree_obeys_every_rule() {
    let tree = Tree::of_the_repository();
    assert!(tree.files.len() > 100, "only {} files: not the repository", tree.files.len());
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend((rule.check)(&tree).into_iter().map(|finding| format!("{}: {finding}", rule.name)));
    }
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn every_rule_finds_its_violations_and_nothing_else() {
    for rule in RULES {
        for (path, text) in rule.bad {
            let found = (rule.check)(&Tree::of_files(&[(path, text)]));
            assert_eq!(found.len(), 1, "{} on {path}: {found:?}", rule.name);
        }
        for (path, text) in rule.good {
            let found = (rule.check)(&Tree::of_files(&[(path, text)]));
            assert!(found.is_empty(), "{} on {path}: {found:?}", rule.name);
        }
        assert!(!rule.bad.is_empty(), "{} was never seen to fail", rule.name);
    }
}
