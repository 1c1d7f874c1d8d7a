//! Compiles the C sources of `rquickjs-sys` after it has applied the patches to a copy. A patch that does not fit ends the build: it
//! is applied by its text, never by line numbers, and its text must be there exactly once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The C files, which `rquickjs-sys` compiles, too.
const SOURCES: &[&str] = &["libregexp.c", "libunicode.c", "quickjs.c", "dtoa.c"];

fn main() {
    let ours = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("quickjs");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=patches");

    fs::create_dir_all(&copy).expect("the folder for build results is writable");
    for entry in fs::read_dir(sources(&ours)).expect("rquickjs-sys has a folder `quickjs`").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "c" || extension == "h") {
            fs::write(copy.join(entry.file_name()), fs::read(entry.path()).expect("a readable source"))
                .expect("the folder for build results is writable");
        }
    }
    let mut patches: Vec<PathBuf> =
        fs::read_dir(ours.join("patches")).expect("patches").flatten().map(|entry| entry.path()).collect();
    patches.sort();
    for patch in patches {
        apply(&patch, &copy);
    }
    cc::Build::new()
        .warnings(false)
        .flag_if_supported("-Wno-implicit-const-int-float-conversion")
        .define("_GNU_SOURCE", None)
        .files(SOURCES.iter().map(|source| copy.join(source)))
        .cargo_metadata(false)
        .compile("vmquickjs");
    let archive = copy.parent().expect("it has one");
    println!("cargo:rustc-link-search=native={}", archive.display());
    // All of it, before any symbol is looked for in the archive of `rquickjs-sys`, so that nothing of that one is linked.
    println!("cargo:rustc-link-lib=static:+whole-archive=vmquickjs");
}

/// The folder with the C sources of the `rquickjs-sys` that Cargo has chosen.
fn sources(ours: &Path) -> PathBuf {
    let run = |more: &[&str]| {
        Command::new(env::var_os("CARGO").expect("cargo sets it"))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
            .arg(env::var("TARGET").expect("cargo sets it"))
            .arg("--manifest-path")
            .arg(ours.join("Cargo.toml"))
            .args(more)
            .output()
            .expect("cargo starts")
    };
    // Without the network unless a package that only other crates of the workspace need was never downloaded.
    let mut output = run(&["--offline"]);
    if !output.status.success() {
        output = run(&[]);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let package = text.split_once(r#""name":"rquickjs-sys","version":"#);
    let manifest = package.and_then(|(_, rest)| rest.split_once(r#""manifest_path":""#));
    let manifest = manifest.and_then(|(_, rest)| rest.split_once('"'));
    let Some((manifest, _)) = manifest else {
        panic!("cargo metadata does not name rquickjs-sys: {}", String::from_utf8_lossy(&output.stderr));
    };
    Path::new(manifest).with_file_name("quickjs")
}

/// Applies a patch in the format of `diff -u` to the copied sources.
fn apply(patch: &Path, copy: &Path) {
    let text = fs::read_to_string(patch).expect("a readable patch");
    let mut file = None;
    let mut hunks: Vec<(PathBuf, String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = Some(copy.join(name));
        } else if line.starts_with("@@") {
            let file = file.clone().expect("a hunk is behind the name of its file");
            hunks.push((file, String::new(), String::new()));
        } else if let Some((_, before, after)) = hunks.last_mut()
            && !line.starts_with("--- ")
        {
            let (kind, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            for (text, unchanged_or) in [(before, "-"), (after, "+")] {
                if kind == " " || kind == unchanged_or {
                    text.push_str(rest);
                    text.push('\n');
                }
            }
        }
    }
    assert!(!hunks.is_empty(), "{}: no hunk", patch.display());
    for (file, before, after) in hunks {
        let source = fs::read_to_string(&file).expect("a source of rquickjs-sys");
        let found = source.matches(&before).count();
        assert!(
            found == 1,
            "{}: the text that it changes is {found} times in {}{}. See docs/decisions/028.\n{before}",
            patch.display(),
            file.display(),
            if source.contains(&after) { ", which has its result already: delete the patch" } else { "" },
        );
        fs::write(&file, source.replacen(&before, &after, 1)).expect("the copy is writable");
    }
}
