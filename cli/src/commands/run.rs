//! `run`: a script without set-up, in a supervisor inside this process.
//!
//! One session with the current folder, which the script may read through `fs`; prints the output as it arrives and returns the
//! script's exit code.

pub(crate) mod embedded;
pub(crate) mod source;
mod stdin;

use super::exec::start::CodeRunner;
use super::serve::net_rule;
use crate::args::SandboxArg;
use crate::backend::Backend;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use crate::script_output::ScriptOutput;
use crate::signals::Interrupts;
use embedded::EmbeddedRun;
use source::Script;
use std::path::PathBuf;
use std::time::Duration;
use vm_system_daemon::Operator;
use vm_system_protocol::control::{
    ExecStart, NewCapability, SessionCreate, TemplateAddCapability, TemplateCreate,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, Engine, Limits, Settings};

/// The engine ends a script that computes, with its own message. What a script waits for takes none of the engine's time.
const LATER_THAN_ENGINE: Duration = Duration::from_millis(100);

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "vm-system run [OPTIONS] FILE [ARGS]...\n       vm-system run [OPTIONS] -e CODE [ARGS]...",
    after_help = "Options of `run` are given before FILE: everything behind it belongs to the script (a `--` directly behind \
        it is dropped). A .mjs or .mts file is a module, and so is a .ts file that imports or exports.\n\n\
        The script reads stdin as in Node (process.stdin, fs.readFileSync(0)), except with - and with --session.\n\n\
        Exit status: the script's: 0, 1 after an exception, 13 if its top-level await can never settle, 124 after --timeout, 130 after \
        Ctrl-C.\n\n\
        Example: vm-system run --allow-write --allow-env LANG report.js --title January"
)]
pub struct Args {
    /// The script (JavaScript, or TypeScript as `.ts`; `-` reads it from stdin), and its `process.argv` after the first two
    /// entries
    #[arg(value_names = ["FILE", "ARGS"], num_args = 1.., trailing_var_arg = true, required_unless_present = "eval")]
    script: Vec<String>,
    /// Code instead of a file; the value of its last expression is printed
    #[arg(long, short, value_name = "CODE", allow_hyphen_values = true)]
    eval: Option<String>,
    /// The code of -e, or the script on stdin, is TypeScript
    #[arg(long)]
    ts: bool,
    /// The folder whose files the script may read [default: the current folder]
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    /// A variable of your environment that the script may read (may be given several times)
    #[arg(long = "allow-env", value_name = "NAME", value_parser = parse::variable_name)]
    allow_env: Vec<String>,
    /// Let the script also write files in the folder
    #[arg(long)]
    allow_write: bool,
    /// A host that the script may send requests to: `[SCHEME://]HOST[:PORT][/PREFIX]`, with names like *.example.com (may be given
    /// several times)
    #[arg(long = "net", value_name = "PATTERN")]
    net: Vec<String>,
    /// The same for hosts with private addresses, such as localhost:3000. To a server of this machine the script is you: what
    /// you may do there without a password, the script may do, too. Daemons of vm-system refuse it
    #[arg(long = "net-private", value_name = "PATTERN")]
    net_private: Vec<String>,
    /// Show the script's requests when they have ended, and the figures of the execution
    #[arg(long)]
    verbose: bool,
    /// Time limit of the script, waits included: 500ms, 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "30s")]
    timeout: Duration,
    /// Memory limit (MiB)
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
    /// Longest source text, of the script and of each module (KiB)
    #[arg(long, value_name = "KIB", default_value_t = Limits::default().max_source_kb, value_parser = parse::source_kb())]
    max_source_kb: u32,
    /// Output of the script, and the JSON of its value (KiB)
    #[arg(long, value_name = "KIB", default_value_t = embedded::MAX_OUTPUT_KB, value_parser = clap::value_parser!(u32).range(1..))]
    max_output_kb: u32,
    /// Events that the script may record; every text that it prints is one
    #[arg(long, value_name = "N", default_value_t = embedded::MAX_EVENTS, value_parser = clap::value_parser!(u32).range(1..))]
    max_events: u32,
    /// The sandbox walls to set up
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    sandbox: SandboxArg,
    /// Run in this session of the daemon
    #[arg(long, value_name = "SESSION", 
          conflicts_with_all = ["timeout", "memory", "max_source_kb", "max_output_kb", "max_events", "sandbox", "allow_write", "worktree",
                                "net", "net_private"])]
    session: Option<String>,
}

impl Args {
    /// Whether it runs in a session of a daemon.
    pub(crate) fn is_in_session(&self) -> bool {
        self.session.is_some()
    }
}

pub(crate) fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let script = Script::from_args(args.eval.clone(), &args.script, args.ts)?;
    if args.session.is_some() {
        context.block_on(in_session(context, args, script))
    } else {
        context.block_on_embedded(in_embedded(context, args, script))
    }
}

async fn in_session(context: &Context, args: Args, script: Script) -> Result<u8, CliError> {
    let interrupts = Interrupts::listen()?;
    let session = args.session.clone().unwrap_or_default();
    let output = ScriptOutput::new(context.out.style, script.show_values()).verbose(args.verbose);
    let sent = script.clone().for_session()?;
    let new = execution(session, sent, &args.allow_env);
    let runner = CodeRunner { context, backend: context.daemon(), interrupts: &interrupts };
    let code = runner.run_to_end(new, None, &output).await?;
    if output.has_syntax_error()
        && let Some(hint) = script.syntax_hint()
    {
        context.out.note(hint);
    }
    Ok(code)
}

async fn in_embedded(context: &Context, args: Args, script: Script) -> Result<u8, CliError> {
    // First, so that Ctrl-C at any time still cleans up.
    let interrupts = Interrupts::listen()?;
    let folder = match &args.worktree {
        Some(folder) => embedded::existing_folder(folder)?,
        None => embedded::current_folder()?,
    };
    let mut settings = embedded::settings(args.timeout, args.memory);
    settings.limits.max_source_kb = args.max_source_kb;
    settings.limits.max_output_kb = args.max_output_kb;
    settings.limits.max_events = args.max_events;
    // As `fs` takes paths from the worktree's root.
    settings.resolver.allow_absolute_repo_imports = true;
    let sent = script.clone().for_folder(&folder)?;
    for name in args.allow_env.iter().filter(|name| std::env::var_os(name).is_none()) {
        context.out.note(&format!("warning: --allow-env {name}: your environment has no such variable"));
    }
    let grants = Grants::from_args(&args)?;
    let stdin = if script.is_stdin() { None } else { Some(stdin::of_this_process()?) };
    let own = tokio::select! {
        own = embedded::start(args.sandbox, grants.operator.clone(), stdin) => own?,
        () = interrupts.next() => return Err(CliError::silent(interrupts.exit_code())),
    };
    let result = async {
        let session = tokio::select! {
            session = session(&own, settings, folder.clone(), &grants) => session?,
            () = interrupts.next() => return Err(CliError::silent(interrupts.exit_code())),
        };
        let output = ScriptOutput::new(context.out.style, script.show_values())
            .verbose(args.verbose)
            .limited_by("--max-output-kb KIB");
        let is_outside = script.file().is_some() && sent.input.is_some();
        let new = execution(session, sent, &args.allow_env);
        interrupts.interrupt_after(args.timeout + LATER_THAN_ENGINE);
        let runner = CodeRunner { context, backend: own.backend(), interrupts: &interrupts };
        let ended = runner.run_to_end(new, None, &output).await;
        if interrupts.time_is_over() {
            context.out.note(&format!("the script took longer than {:?} (--timeout)", args.timeout));
        }
        let code = ended.map_err(|error| {
            error
                .with_flag("max_source_kb", "--max-source-kb KIB")
                .with_flag("max_output_kb", "--max-output-kb KIB")
                .with_flag("max_events", "--max-events N")
        })?;
        if interrupts.time_is_over() {
            return Ok(code);
        }
        if output.has_syntax_error()
            && let Some(hint) = script.syntax_hint()
        {
            context.out.note(hint);
        } else if code == exit::FAILED && output.has_refused_write() {
            context.out.note(&format!("hint: `--allow-write` lets the script change files in {folder}"));
        } else if code == exit::FAILED && output.has_missing_file() {
            context.out.note(&source::folder_hint(&folder, script.file().filter(|_| is_outside)));
        } else if code != exit::OK
            && let Some(hint) = output.other_hint()
        {
            context.out.note(hint);
        }
        Ok(code)
    }
    .await;
    own.stop().await;
    result
}

/// The rights of the script besides reading the folder.
#[derive(Default)]
pub(crate) struct Grants {
    rows: Vec<NewCapability>,
    /// The user is the operator: permits what the rows allow.
    pub(crate) operator: Operator,
}

impl Grants {
    fn from_args(args: &Args) -> Result<Self, CliError> {
        let mut grants = Self::default();
        let row =
            |kind, name: &str, config| NewCapability { kind, name: name.to_owned(), enabled: true, config };
        if args.allow_write {
            grants.rows.push(row(CapabilityKind::Fs, "write", JsonText::empty_object()));
        }
        for (option, patterns, private) in
            [("--net", &args.net, false), ("--net-private", &args.net_private, true)]
        {
            let Some(rule) = net_rule(option, patterns, private)? else { continue };
            grants.operator.net.push(rule);
            // Whoever runs the script bounds it by its time.
            let config = serde_json::json!({
                "allow": patterns, "private": private, "max_requests": 1_000_000, "max_total_kb": u32::MAX,
            });
            grants.rows.push(row(
                CapabilityKind::Net,
                option.trim_start_matches('-'),
                JsonText::from_value(&config),
            ));
        }
        Ok(grants)
    }
}

/// A session of the embedded supervisor with a folder and `fs` granted, for reading or also for writing; returns its id.
pub(crate) async fn session(
    own: &EmbeddedRun,
    settings: Settings,
    folder: String,
    grants: &Grants,
) -> Result<String, CliError> {
    let backend: &Backend = own.backend();
    let template = TemplateCreate {
        name: "run".to_owned(),
        engine: Engine::Quickjs,
        settings,
        modules: vec!["fs".to_owned()],
    };
    let template = backend.call(template, None).await?;
    for capability in &grants.rows {
        let template = template.id.to_string();
        let grant = TemplateAddCapability { template, capability: capability.clone() };
        backend.call(grant, None).await?;
    }
    let session = SessionCreate {
        template: template.id.to_string(),
        workspace_id: "run".to_owned(),
        base_commit_oid: "none".to_owned(),
        worktree_path: folder,
        as_user: None,
        name: None,
        ttl_s: None,
        idle_timeout_s: None,
    };
    let session = backend.call(session, None).await?;
    Ok(session.id.to_string())
}

fn execution(session: String, script: source::Sent, allow_env: &[String]) -> ExecStart {
    let granted = |name: &String| std::env::var(name).ok().map(|value| (name.clone(), value));
    ExecStart {
        input: script.input,
        path: script.path,
        env: allow_env.iter().filter_map(granted).collect(),
        argv: script.argv,
        follow: true,
        ..ExecStart::new(session, script.kind)
    }
}
