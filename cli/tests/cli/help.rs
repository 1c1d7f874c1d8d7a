//! `--help` of every command is reviewed text.

use crate::environment::TestEnvironment;
use clap::CommandFactory as _;
use vm_system_cli::args::Cli;

fn commands(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
    all.push(path.to_vec());
    for sub in command.get_subcommands() {
        let mut path = path.to_vec();
        path.push(sub.get_name().to_owned());
        commands(sub, &path, all);
    }
}

#[test]
fn every_command_explains_itself() {
    let env = TestEnvironment::new();
    let mut all = Vec::new();
    commands(&Cli::command(), &[], &mut all);
    assert!(all.len() > 30, "{all:?}");
    for path in all {
        let mut args = path.clone();
        args.push("--help".to_owned());
        let text = env.run(&args).ok();
        insta::assert_snapshot!(format!("help-{}", path.join("-")), text);
    }
}

#[test]
fn help_option_and_help_command_print_the_same() {
    let env = TestEnvironment::new();
    let long = env.run(["exec", "repl", "--help"]).ok();
    assert_eq!(env.run(["help", "exec", "repl"]).ok(), long);
    assert!(env.run(["exec", "repl", "-h"]).ok().contains("Usage: vm-system exec repl"));
}

#[test]
fn the_topics_are_listed_and_shown() {
    let env = TestEnvironment::new();
    let index = env.run(["help"]).ok();
    insta::assert_snapshot!("help-topics", index);
    for line in index.lines().filter(|line| line.starts_with("  ")) {
        let topic = line.split_whitespace().next().unwrap();
        let text = env.run(["help", topic]).ok();
        assert!(text.starts_with("# "), "{topic}");
        // Tables and generated lists of fields may have longer lines.
        let is_text = |line: &&str| !line.starts_with('|') && !line.starts_with("- **");
        let long = |line: &&str| is_text(line) && line.chars().count() > 132;
        assert_eq!(text.lines().find(long), None, "{topic} has long lines");
    }
    let error = env.run(["help", "nonsense"]).failed(2);
    assert!(error.contains("nonsense") && error.contains("hint:"), "{error}");
}

#[test]
fn completions_and_man_pages_are_generated() {
    let env = TestEnvironment::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(env.run(["completions", shell]).ok().contains("run-file"), "{shell}");
    }
    assert!(env.run(["man"]).ok().contains(".TH vm-system 1"));
    let dir = env.path("man");
    env.run(["man", dir.to_str().unwrap()]).ok();
    assert!(dir.join("vm-system-exec-repl.1").is_file());
}

#[test]
fn the_version_is_printed() {
    let env = TestEnvironment::new();
    assert_eq!(env.run(["--version"]).ok(), format!("vm-system {}\n", env!("CARGO_PKG_VERSION")));
}

/// `VM_SYSTEM_BLESS=1` writes the file again.
#[test]
fn the_reference_in_the_docs_is_the_programs_own() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli-reference.md");
    let now = TestEnvironment::new().run(["help", "--reference"]).ok();
    if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), now, "see VM_SYSTEM_BLESS");
}

#[test]
fn the_contract_names_every_command_and_the_tree_of_the_topic_too() {
    let env = TestEnvironment::new();
    let contract: serde_json::Value = serde_json::from_str(&env.run(["help", "--json"]).ok()).unwrap();
    let page = env.run(["help", "cli-command-reference"]).ok();
    let commands = contract["commands"].as_array().unwrap();
    assert!(commands.len() > 40, "{}", commands.len());
    for command in commands {
        let name = command["command"].as_str().unwrap();
        let verb = name.rsplit(' ').next().unwrap();
        assert!(page.contains(verb), "`{name}` is not in the tree of commands");
        assert!(!command["about"].as_str().unwrap().is_empty(), "{name}");
    }
    let add = commands.iter().find(|one| one["command"] == "template add-startup").unwrap();
    let order = add["arguments"].as_array().unwrap().iter().find(|one| one["name"] == "--order").unwrap();
    assert_eq!((&order["default"], &order["required"]), (&"0".into(), &false.into()));
    assert!(contract["global"].as_array().unwrap().iter().any(|one| one["name"] == "--output"));
}
