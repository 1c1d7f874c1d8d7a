//! What may enter the dependency tree, as `deny.toml` says it: licences, banned crates, sources. The gate judges it here because
//! `cargo deny` takes longer to build than all of its checks are worth; that tool reads the same file and adds the advisories.

use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::process::Command;
use toml::{Table, Value};

/// The parts of `deny.toml` that are judged here.
struct Terms {
    licences: BTreeSet<String>,
    banned: BTreeSet<String>,
    targets: Vec<String>,
}

fn strings(list: Option<&Value>, of: fn(&Value) -> Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| of(item)?.as_str().map(str::to_owned)).collect()
}

impl Terms {
    fn of(text: &str) -> Self {
        let table: Table = text.parse().expect("deny.toml is TOML");
        let part = |section: &str, key: &str| table.get(section)?.get(key);
        Self {
            licences: strings(part("licenses", "allow"), |item| Some(item)).into_iter().collect(),
            banned: strings(part("bans", "deny"), |item| item.get("crate")).into_iter().collect(),
            targets: strings(part("graph", "targets"), |item| Some(item)),
        }
    }

    /// What is wrong with one package of `cargo metadata`.
    fn judge(&self, package: &Json) -> Vec<String> {
        let text = |key: &str| package.get(key).and_then(Json::as_str);
        let name = text("name").unwrap_or_default();
        let mut found = Vec::new();
        if !text("license").is_some_and(|expression| self.accepts(expression)) {
            found.push(format!("{name}: licence {:?}", text("license")));
        }
        if self.banned.contains(name) {
            found.push(format!("{name} is banned"));
        }
        match text("source") {
            // Ours.
            None if name.starts_with("vm-system-") => {}
            Some(source) if source.starts_with("registry+https://github.com/rust-lang/") => {}
            source => found.push(format!("{name}: source {source:?}")),
        }
        let requirements = package.get("dependencies").and_then(Json::as_array).into_iter().flatten();
        let open =
            requirements.filter(|one| one.get("req") == Some(&"*".into()) && one.get("path").is_none());
        if text("source").is_none() {
            found.extend(open.map(|one| format!("{name}: any version of {}", one["name"])));
        }
        found
    }

    /// Whether the licences allow a package under this SPDX expression (`/` is an old `OR`).
    fn accepts(&self, expression: &str) -> bool {
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace().peekable();
        self.any(&mut words) && words.next().is_none()
    }

    /// `a OR b …`, where `a` and `b` may be `c AND d …`: `AND` binds more tightly.
    fn any<'a>(&self, words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> bool {
        let (mut any, mut all) = (false, true);
        loop {
            all &= match words.next() {
                Some("(") => {
                    let inner = self.any(words);
                    inner && words.next() == Some(")")
                }
                Some(name) => {
                    let exception = words.next_if(|word| *word == "WITH").and_then(|_| words.next());
                    let whole = exception.map_or(name.to_owned(), |with| format!("{name} WITH {with}"));
                    self.licences.contains(&whole)
                }
                None => return false,
            };
            match words.peek().copied() {
                Some("AND") => {}
                Some("OR") => (any, all) = (any | all, true),
                _ => return any | all,
            }
            words.next();
        }
    }
}

#[test]
fn every_dependency_is_one_that_deny_toml_allows() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let terms = Terms::of(&std::fs::read_to_string(format!("{root}/deny.toml")).expect("deny.toml"));
    let mut found = BTreeSet::new();
    for target in &terms.targets {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--all-features",
            "--filter-platform",
            target,
        ]);
        let output = cargo.current_dir(root).output().expect("cargo");
        let metadata: Json = serde_json::from_slice(&output.stdout).expect("cargo's metadata is JSON");
        let nodes = metadata["resolve"]["nodes"].as_array().expect("a graph");
        let ids: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
        assert!(ids.len() > 100, "only {} packages", ids.len());
        let packages = metadata["packages"].as_array().expect("packages");
        let used =
            packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| ids.contains(id)));
        found.extend(used.flat_map(|package| terms.judge(package)));
    }
    assert!(!terms.targets.is_empty() && found.is_empty(), "{found:#?}");
}

#[test]
fn licences_bans_and_sources_are_judged() {
    let terms = Terms::of(
        "[licenses]\nallow = [\"MIT\", \"Zlib\", \"A WITH E\"]\n[bans]\ndeny = [{ crate = \"v8\" }]\n[graph]\ntargets = []\n",
    );
    for good in
        ["MIT", "MIT/X", "X OR MIT", "(X OR MIT) AND Zlib", "X AND Y OR MIT", "A WITH E OR X", "MIT AND Zlib"]
    {
        assert!(terms.accepts(good), "{good}");
    }
    for bad in ["X", "", "MIT AND X", "A", "(X OR Y) AND MIT", "MIT OR", "(MIT"] {
        assert!(!terms.accepts(bad), "{bad}");
    }
    let package = |name: &str, source: &str| {
        let text = format!(r#"{{"name":"{name}","license":"MIT","source":"{source}","dependencies":[]}}"#);
        terms.judge(&serde_json::from_str(&text).expect("JSON"))
    };
    let registry = "registry+https://github.com/rust-lang/x";
    assert!(package("serde", registry).is_empty());
    assert_eq!(package("v8", registry).len(), 1);
    assert_eq!(package("serde", "git+https://example.org/serde").len(), 1);
}
