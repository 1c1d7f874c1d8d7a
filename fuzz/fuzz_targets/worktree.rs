//! Any path or list of a module's candidates on a worktree with links that leave it: no file outside of it is ever read, and none that
//! may not be loaded. First byte: the call; then the path, or the candidates, one a line.
#![cfg_attr(fuzzing, no_main)]

use std::os::unix::fs::symlink;
use std::sync::OnceLock;
use vm_system_policy::paths::{PathRules, Pattern};
use vm_system_runtime::worktree::{Wanted, Worktree, clean_relative, first_existing};

/// The content of all files that no call may return.
const SECRET: &str = "secret";
/// Largest file that is read (bytes).
const CAP: u64 = 4_096;

fn worktree() -> &'static (tempfile::TempDir, Worktree) {
    static WORKTREE: OnceLock<(tempfile::TempDir, Worktree)> = OnceLock::new();
    WORKTREE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["outside/deep", "tree/a/b", "tree/hidden", "tree/node_modules/m"] {
            std::fs::create_dir_all(path(name)).expect("folders");
        }
        for name in ["secret.js", "outside/secret.js", "outside/deep/index.js", "tree/hidden/secret.js"] {
            std::fs::write(path(name), SECRET).expect("a file");
        }
        for name in ["tree/a.js", "tree/a/b/c.mjs", "tree/a/index.js", "tree/node_modules/m/index.js"] {
            std::fs::write(path(name), "open").expect("a file");
        }
        for (link, to) in [
            ("tree/up", ".."),
            ("tree/a/up", "../.."),
            ("tree/out", "../outside"),
            ("tree/file.js", "../secret.js"),
            ("tree/absolute", "/"),
            ("tree/loop", "loop"),
            ("tree/a/inside", "../hidden"),
        ] {
            symlink(to, path(link)).expect("a link");
        }
        let tree = Worktree::of_operator(&path("tree")).expect("a worktree");
        (folder, tree)
    })
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let Some((&which, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (_folder, tree) = worktree();
    match which % 3 {
        0 => {
            if let Ok(clean) = clean_relative(text) {
                assert!(
                    !clean.starts_with('/') && clean.split('/').all(|name| !["", ".", ".."].contains(&name))
                );
                // `hidden` is inside and may be read this way.
                if let Ok(content) = tree.read_text(&clean, CAP) {
                    assert!(
                        content != SECRET || clean.contains("hidden") || clean.contains("inside"),
                        "{clean}"
                    );
                }
            }
        }
        1 => {
            if let Ok((content, _)) = tree.read_bytes(text, CAP) {
                let inside = text.contains("hidden") || text.contains("inside");
                assert!(content != SECRET.as_bytes() || inside, "{text}");
            }
        }
        _ => {
            let candidates: Vec<String> = text.lines().map(str::to_owned).collect();
            let rules = PathRules::one(
                ["a/**", "*.js", "node_modules/**"]
                    .map(|rule| Pattern::parse(rule).expect("a pattern"))
                    .to_vec(),
            );
            let wanted = Wanted {
                candidates: &candidates,
                import: which & 4 == 0,
                package: which & 16 == 0,
                esm: which & 8 == 0,
                cap: CAP,
                load: Some(&rules),
            };
            if let Ok(found) = first_existing(tree, wanted) {
                assert_ne!(found.source, SECRET, "{found:?}");
            }
        }
    }
});
