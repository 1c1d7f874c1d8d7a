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
    assert!(env.run(["help", "docs/cli-reference.md"]).ok().starts_with("# Command reference"));
    insta::assert_snapshot!("help-topics", index);
    for line in index.lines().filter(|line| line.starts_with("  ")) {
        let topic = line.split_whitespace().next().unwrap();
        let text = env.run(["help", topic]).ok();
        assert!(text.starts_with("# "), "{topic}");
        // Tables, code and generated pages may have longer lines.
        let is_text =
            |line: &&str| !line.starts_with('|') && !line.starts_with("- **") && !line.starts_with('{');
        let long = |line: &&str| is_text(line) && line.chars().count() > 132;
        let is_generated = text.contains("\nGenerated from the code");
        let line = text.lines().find(long).filter(|_| !is_generated);
        assert_eq!(line, None, "{topic} has long lines");
    }
    let error = env.run(["help", "qqqqqq"]).failed(2);
    assert!(error.contains("qqqqqq") && error.contains("lists the topics"), "{error}");
}

#[test]
fn what_a_text_refers_to_is_a_topic_and_a_wrong_name_gets_a_suggestion() {
    let env = TestEnvironment::new();
    for (name, title) in [
        ("plans", "# Plans"),
        ("javascript", "# JavaScript in sessions"),
        ("rights", "# Rights"),
        ("docs/rights.md", "# Rights"),
        ("threat-model.md", "# Threat model"),
    ] {
        assert!(env.run(["help", name]).ok().starts_with(title), "{name}");
    }
    // Every page that another page of the same folder links to, except decisions and what is only for readers of the source.
    let index = env.run(["help"]).ok();
    for topic in index.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()) {
        let text = env.run(["help", topic]).ok();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let is_page =
            |link: &&str| link.rsplit_once('.').is_some_and(|(name, end)| end == "md" && !name.contains('/'));
        for page in links.filter(is_page) {
            assert!(env.run(["help", page]).ok().starts_with("# "), "{topic} refers to {page}");
        }
    }
    for (wrong, right) in [("getting-startd", "getting-started"), ("sesion", "session"), ("pans", "plans")] {
        let error = env.run(["help", wrong]).failed(2);
        assert!(error.contains(&format!("did you mean `vm-system help {right}`")), "{error}");
    }
    let error = env.run(["help", "session", "creat"]).failed(2);
    assert!(error.contains("`vm-system help session create`"), "{error}");
}

#[test]
fn ids_and_names_are_completed_from_the_daemon() {
    let env = TestEnvironment::new();
    let complete = |words: &[&str]| {
        let mut command = env.command(["--", "vm-system"].iter().chain(words));
        let place = (words.len()).to_string();
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", place).env("_CLAP_IFS", "\n");
        crate::environment::Run::from_output(&command.output().unwrap()).ok()
    };
    assert_eq!(complete(&["sess"]).trim(), "session");
    assert_eq!(complete(&["help", "getting"]).trim(), "getting-started");
    // Without a daemon there are no candidates, and no error.
    assert_eq!(complete(&["session", "get", "a"]), "");
    let _daemon = env.serve();
    env.run(["template", "create", "--name", "nightly"]).ok();
    assert_eq!(complete(&["template", "get", "night"]).trim(), "nightly");
    assert_eq!(complete(&["template", "add-module", "nightly", "--name", "data"]).trim(), "database");
    assert_eq!(complete(&["template", "add-library", "nightly", "--name", "lod"]).trim(), "lodash-4.17.21");
    let state = env.path("state");
    let elsewhere = ["--state-dir", state.to_str().unwrap(), "template", "get", "night"];
    assert_eq!(complete(&elsewhere).trim(), "nightly");
    let url = format!("unix:{}", state.join("http.sock").display());
    assert_eq!(complete(&["--server-url", &url, "template", "get", "night"]).trim(), "nightly");
    // Names come before ids; what belongs to another object is looked up in that.
    let all = complete(&["template", "get", ""]);
    let place = |text: &str| all.lines().position(|line| line == text).unwrap_or_else(|| panic!("{all}"));
    let id = env.run(["template", "list", "--output", "csv"]).ok();
    let id =
        id.lines().find(|line| line.contains("nightly")).and_then(|line| line.split(',').next()).unwrap();
    assert!(place("nightly") < place(id), "{all}");
    env.run(["template", "add-startup", "nightly", "--path", "init.js"]).ok();
    assert_eq!(complete(&["template", "remove-startup", "nightly", "in"]).trim(), "init.js");
    let session = env.session();
    env.run(["session", "checkpoint", &session, "--name", "clean"]).ok();
    for command in ["rollback", "delete-checkpoint"] {
        assert_eq!(complete(&["session", command, &session, "cl"]).trim(), "clean");
    }
    env.file("ask.js", "function main() { return args.length > 0 ? CC('?') : 1 }");
    env.run(["program", "load", "ask.js", "--name", "ask"]).ok();
    env.run(["program", "start", "ask", "--name", "asks-open", "--", "yes"]).ok();
    env.run(["program", "start", "ask", "--name", "asks-ended"]).ok();
    assert_eq!(complete(&["task", "submit", "asks"]).trim(), "asks-open");
    assert_eq!(complete(&["program", "rewind", "asks-open", "1"]).lines().next(), Some("1"));
    let programs = complete(&["program", "start", "as"]);
    assert_eq!(programs.split_whitespace().collect::<Vec<_>>(), ["ask", "ask.js"]);
    assert_eq!(complete(&["mcp", "--toolsets", "bra"]).trim(), "branch");
    assert_eq!(complete(&["help", "exec", "run"]).trim(), "run-file");
    // Nobody listens there, although a daemon listens on the socket.
    assert_eq!(complete(&["--server-url", "http://127.0.0.1:1", "template", "get", "night"]), "");
}

#[test]
fn topics_have_no_links_to_decisions() {
    let env = TestEnvironment::new();
    let topics = env.run(["help"]).ok();
    let names: Vec<&str> =
        topics.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(names.contains(&"threat-model"), "{topics}");
    for name in names {
        let page = env.run(["help", name]).ok();
        assert!(!page.contains("](decisions/") && !page.contains("](docs/decisions/"), "{name}");
    }
    let page = env.run(["help", "threat-model"]).ok();
    assert!(page.contains("group of their own (decision 007 of the source tree)."), "{page}");
}

#[test]
fn wrong_values_are_explained_in_our_words() {
    let env = TestEnvironment::new();
    let error = env.run(["template", "create", "--name", "x", "--mem-mb", "abc"]).failed(2);
    assert!(error.contains("--mem-mb") && error.contains("a whole number is expected"), "{error}");
    assert!(!error.contains("invalid digit"), "{error}");
    let error = env.run(["exec", "list", "s", "--limit", "99999999999999999999999"]).failed(2);
    assert!(error.contains("too large") || error.contains("is not in"), "{error}");
    let state = env.path("state");
    let file = env.file("page.html", "");
    let ui = ["serve", "--ui-dir", file.to_str().unwrap(), "--state-dir", state.to_str().unwrap()];
    let error = env.run(ui).failed(2);
    assert!(error.contains("--ui-dir") && error.contains("page.html"), "{error}");
    assert!(!error.contains("worktree"), "{error}");
}

#[test]
fn completions_and_man_pages_are_generated() {
    let env = TestEnvironment::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(env.run(["completions", shell]).ok().contains("COMPLETE"), "{shell}");
    }
    for (shell, files) in [
        ("bash", "-o default "),
        ("zsh", "else\n        _files\n    fi\n}"),
        ("fish", "--keep-order --command"),
    ] {
        let script = env.run(["completions", shell]).ok();
        assert!(script.contains(files), "{shell} completes no files: {script}");
    }
    let help = env.run(["completions", "--help"]).ok();
    assert!(help.contains("bash-completion/completions/vm-system"), "{help}");
    assert!(env.run(["man"]).ok().contains(".TH vm-system 1"));
    let dir = env.path("man");
    env.run(["man", dir.to_str().unwrap()]).ok();
    assert!(dir.join("vm-system-exec-repl.1").is_file());
}

#[test]
fn bash_completes_files_where_no_option_begins() {
    if !std::path::Path::new("/bin/bash").exists() {
        vm_system_testkit::skip("bash", "completion needs bash");
        return;
    }
    let env = TestEnvironment::new();
    let script = format!(
        "{}\ncomplete_words() {{ COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9; \
         _clap_complete_vm_system vm-system \"${{!#}}\" x 2>&1; echo \"${{#COMPREPLY[@]}} ${{COMPREPLY[*]}}\"; }}\n\
         complete_words vm-system exec run-file s ''\ncomplete_words vm-system exec run-file s --ar\n",
        env.run(["completions", "bash"]).ok()
    );
    let output = env.program("/bin/bash").args(["-c", &script]).output().unwrap();
    let run = crate::environment::Run::from_output(&output);
    let counts: Vec<&str> = run.stdout.lines().map(str::trim).collect();
    assert!(counts[0] == "0" && counts[1].starts_with("1 --args"), "{run:?}");
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
