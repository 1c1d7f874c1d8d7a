//! Rules about `Cargo.toml` files: the permitted dependencies between crates.

use super::tree::{SourceFile, Tree};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// The crates of the workspace that each crate may name. A crate without a row is an error.
const ARROWS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("testkit", &[]),
    ("sandbox", &[]),
    ("inspect", &[]),
    ("web", &[]),
    ("intl", &[]),
    ("cvm", &["inspect", "web", "intl"]),
    ("quickjs", &[]),
    ("worker", &["protocol", "sandbox", "inspect", "web", "intl", "cvm", "quickjs"]),
    ("broker", &["protocol", "sandbox"]),
    ("egress", &["protocol", "sandbox"]),
    ("supervisor/record", &["protocol"]),
    ("supervisor/policy", &["protocol"]),
    ("supervisor/core", &["protocol", "record", "policy"]),
    ("supervisor/store", &["protocol", "record"]),
    ("supervisor/spawn", &["protocol", "sandbox", "policy"]),
    ("supervisor/runtime", &["protocol", "sandbox", "record", "policy", "core", "store", "spawn"]),
    ("supervisor/ops", &["protocol", "record", "policy", "core", "store", "spawn", "runtime"]),
    ("supervisor/api", &["protocol", "sandbox", "record", "store", "spawn", "runtime", "ops"]),
    (
        "supervisor/daemon",
        &["protocol", "sandbox", "record", "policy", "store", "spawn", "runtime", "ops", "api"],
    ),
    (
        "cli",
        &[
            "protocol", "sandbox", "cvm", "worker", "broker", "egress", "store", "spawn", "ops", "api",
            "daemon",
        ],
    ),
    (
        "tests",
        &[
            "protocol", "sandbox", "cvm", "worker", "broker", "record", "policy", "core", "store", "spawn",
            "runtime", "ops", "api", "cli", TESTKIT,
        ],
    ),
    ("tests/test262", &["cvm", "protocol", "worker"]),
    (
        "benches",
        &[
            "protocol", "sandbox", "cvm", "quickjs", "worker", "broker", "record", "store", "spawn",
            "runtime", "daemon", "cli", "tests",
        ],
    ),
    ("intl/datagen", &[]),
    ("fuzz", &["protocol", "cvm", "record", "policy", "core", "store", "spawn", "runtime", "ops", "api"]),
];

/// Which crates may name a library; Cargo refuses it in all others.
const LIBRARIES: &[(&str, &[&str])] = &[
    (concat!("rusq", "lite"), &["supervisor/store", "broker"]),
    ("axum", &["supervisor/api"]),
    // The command line sends one request: the upgrade to the control protocol (`cli/src/remote`).
    ("hyper", &["supervisor/api", "cli", "egress"]),
    ("tokio-rustls", &["cli", "egress"]),
    ("rustls-native-certs", &["cli", "egress"]),
    (concat!("rm", "cp"), &["supervisor/api"]),
    ("croner", &["supervisor/ops"]),
];
/// Pure crates: no async runtime.
const PURE: &[&str] = &[
    "protocol",
    "inspect",
    "web",
    "intl",
    "cvm",
    "supervisor/record",
    "supervisor/policy",
    "supervisor/core",
];

/// A crate that the tests of every crate may use, and nothing else.
const TESTKIT: &str = "testkit";

/// Libraries that must not be in the dependency tree of a jailed process.
const NOT_IN_A_JAIL: &[&str] =
    &["tokio", "clap", "axum", "hyper", concat!("rusq", "lite"), "libsqlite3-sys", "tracing", "mio"];
const JAILED: &[&str] = &["worker"];
/// A broker's database module may have SQLite.
const JAILED_WITH_FILES: &[&str] = &["broker"];
/// The egress process may have an event loop and HTTP, and nothing else of these.
const JAILED_WITH_NETWORK: &[&str] = &["egress"];
const OF_NETWORK: &[&str] = &["tokio", "hyper", "mio", "tracing"];

/// The manifests of crates, with the crate's folder.
fn crates(tree: &Tree) -> impl Iterator<Item = (&str, &SourceFile, Table)> {
    tree.files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        let table = file.text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path));
        Some((folder, file, table))
    })
}

fn names(table: &Table, sections: &[&str]) -> Vec<String> {
    let of = |table: &Table| -> Vec<String> {
        let listed = sections.iter().filter_map(|section| table.get(*section)?.as_table());
        listed.flat_map(|section| section.keys().cloned()).collect()
    };
    let targets = table.get("target").and_then(Value::as_table);
    let for_targets = targets.into_iter().flat_map(|targets| targets.values().filter_map(Value::as_table));
    of(table).into_iter().chain(for_targets.flat_map(of)).collect()
}

/// Dependencies that are not in the table, and crates without a row.
pub(crate) fn arrows(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, file, manifest) in crates(tree) {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
            found.push(format!("{}: no arrows are written down for {folder}", file.path));
            continue;
        };
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for name in names(&manifest, &[section]) {
                let Some(ours) = name.strip_prefix("vm-system-") else { continue };
                let is_testkit = ours == TESTKIT && section == "dev-dependencies";
                if !allowed.contains(&ours) && !is_testkit {
                    found.push(format!("{}: {folder} must not depend on {ours}", file.path));
                }
            }
        }
    }
    found
}

/// Libraries in crates that must not know them.
pub(crate) fn libraries(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, file, manifest) in crates(tree) {
        for name in names(&manifest, &["dependencies"]) {
            let allowed = LIBRARIES.iter().find(|(library, _)| *library == name);
            let refused = allowed.is_some_and(|(_, folders)| !folders.contains(&folder))
                || name == "tokio" && PURE.contains(&folder);
            if refused {
                found.push(format!("{}: {folder} must not depend on {name}", file.path));
            }
        }
    }
    found
}

/// Packages of the lock file with their dependencies (those of builds and other platforms included).
fn locked(tree: &Tree) -> BTreeMap<String, Vec<String>> {
    let Some(lock) = tree.files.iter().find(|file| file.path == "Cargo.lock") else { return BTreeMap::new() };
    let lock: Table = lock.text.parse().expect("Cargo.lock is TOML");
    let packages = lock.get("package").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut graph: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let name = package.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let dependencies = package.get("dependencies").and_then(Value::as_array).cloned().unwrap_or_default();
        let names =
            dependencies.iter().filter_map(|entry| entry.as_str()?.split(' ').next().map(str::to_owned));
        graph.entry(name).or_default().extend(names);
    }
    graph
}

/// Jailed crates with a forbidden library in their dependency tree.
pub(crate) fn jailed_trees(tree: &Tree) -> Vec<String> {
    let mut graph = locked(tree);
    // The lock file includes the dev-dependencies of members; their dependencies are read from the manifests instead.
    let mut manifests = BTreeMap::new();
    for (folder, _, manifest) in crates(tree) {
        let own = names(&manifest, &["dependencies", "build-dependencies"]);
        graph.insert(format!("vm-system-{folder}"), own.clone());
        manifests.insert(folder.to_owned(), own);
    }
    let mut found = Vec::new();
    let jailed = JAILED.iter().chain(JAILED_WITH_FILES).chain(JAILED_WITH_NETWORK);
    for folder in jailed.filter(|folder| manifests.contains_key(**folder)) {
        let mut seen = BTreeSet::new();
        let mut left = vec![format!("vm-system-{folder}")];
        while let Some(name) = left.pop() {
            if seen.insert(name.clone()) {
                left.extend(graph.get(&name).cloned().unwrap_or_default());
            }
        }
        let sqlite_allowed = JAILED_WITH_FILES.contains(folder);
        for name in NOT_IN_A_JAIL.iter().filter(|name| seen.contains(**name)) {
            let network_allowed = JAILED_WITH_NETWORK.contains(folder) && OF_NETWORK.contains(name);
            if !(sqlite_allowed && name.contains("sqlite") || network_allowed) {
                found.push(format!("{folder} has {name} in its dependency tree"));
            }
        }
    }
    found
}

/// Crates of tables that the blob of `intl/data` replaces, if the product has them in its tree: a feature of a dependency is enough.
pub(crate) fn tables_of_formatters(tree: &Tree) -> Vec<String> {
    const TABLES: &[&str] = &[
        "icu_datetime_data",
        "icu_decimal_data",
        "icu_experimental_data",
        "icu_list_data",
        "icu_plurals_data",
    ];
    let graph = locked(tree);
    let present = TABLES.iter().filter(|name| graph.contains_key(**name));
    present
        .map(|name| format!("Cargo.lock has {name}: more relocations and minutes of compilation"))
        .collect()
}

/// Crates without the workspace's lints.
pub(crate) fn lints(tree: &Tree) -> Vec<String> {
    let free = crates(tree).filter(|&(folder, _, ref manifest)| {
        let inherited =
            manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
        // A workspace of its own: the generator's tables are in no other build.
        inherited != Some(true) && folder != "intl/datagen"
    });
    free.map(|(folder, _, _)| format!("{folder}/Cargo.toml has no `lints.workspace = true`")).collect()
}

/// Libraries whose examples in comments would be compiled one by one: `cargo test` compiles each such library once more in order to
/// look for them. The comments have none, which [`rules`](super::rules) checks.
pub(crate) fn doctests(tree: &Tree) -> Vec<String> {
    let with_a_library = crates(tree).filter(|(folder, _, _)| {
        let library = format!("{folder}/src/lib.rs");
        tree.files.iter().any(|file| file.path == library)
    });
    let tested = with_a_library.filter(|(_, _, manifest)| {
        manifest.get("lib").and_then(|lib| lib.get("doctest")).and_then(Value::as_bool) != Some(false)
    });
    tested.map(|(folder, _, _)| format!("{folder}/Cargo.toml has no `lib.doctest = false`")).collect()
}
