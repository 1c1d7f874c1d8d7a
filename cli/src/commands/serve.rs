//! `serve`: the daemon in the foreground, as systemd and people start it.

use crate::args::SandboxArg;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::on_demand::{self, LaunchError};
use crate::parse;
use crate::paths::DATABASE;
use crate::rights::FileAction;
use clap::ValueEnum;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vm_system_daemon::{
    Config, ConfigError, ConfigFile, ConfigSource, DaemonEnd, DaemonError, Durability, NetRule,
    PreparedDaemon, SecretsError, TokenError, check_command, operator_rule, read_secrets,
};
use vm_system_sandbox::heap;

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
--state-dir is where the database and the lock are [default: /var/lib/vm-system for root, else \
$XDG_STATE_HOME/vm-system].

--socket is where the daemon listens [default: /run/vm-system/control.sock for root, else \
$XDG_RUNTIME_DIR/vm-system/control.sock; control.sock in --state-dir if that is given].

SIGTERM and SIGINT stop the daemon: requests in progress are finished, sessions closed, and no process is left (but see \
--keep-sessions). SIGHUP reads the tokens and the file of --config again. `vm-system help operations` explains the file of --config.")]
pub struct Args {
    /// Settings of the operator, as TOML; flags override them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The HTTP API's socket [default: http.sock beside the control socket]
    #[arg(long, value_name = "PATH")]
    http_socket: Option<PathBuf>,
    /// A TCP address for HTTP, such as 127.0.0.1:3210; addresses other than loopback need --tokens (may be given several times)
    /// [default: none]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,
    /// The file of tokens (mode 0600), as TOML
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The folder of a web UI, served at /
    #[arg(long, value_name = "DIR")]
    ui_dir: Option<PathBuf>,
    /// What survives a power cut: `full`: everything acknowledged; `normal`: the last commits may be lost [default: full]
    #[arg(long, value_name = "MODE", value_enum)]
    durability: Option<DurabilityArg>,
    /// Start with a damaged write-ahead log: the records from the damage on are lost, and the log is kept beside the database
    #[arg(long)]
    accept_damage: bool,
    /// The sandbox walls to set up [default: full]
    #[arg(long, value_name = "MODE", value_enum)]
    sandbox: Option<SandboxArg>,
    /// A jail for each owner: a keeper, a user and a pid namespace of its own. More memory, and the first session is slower
    #[arg(long)]
    keeper_per_owner: bool,
    /// SIGTERM leaves live sessions to the next daemon, for a restart or an upgrade under systemd, which ends them if it stops the
    /// service; see `vm-system help operations`
    #[arg(long)]
    keep_sessions: bool,
    /// Started as root: the user that the daemon becomes, by name or number [default: vm-system]
    #[arg(long, value_name = "USER", env = "VM_SYSTEM_USER", hide_env_values = true)]
    user: Option<String>,
    /// Started as root: also use worktrees as root, without capabilities. Whoever takes the daemon over can then change root's files
    #[arg(long)]
    root_files: bool,
    /// Exit after this time without clients and executions [default: never]
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u32>,
    /// Run in the background: return when clients can connect; the log is daemon.log in the state directory
    #[arg(long)]
    detach: bool,
    /// With --detach: how long to wait until clients can connect: 500ms, 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse::duration, requires = "detach", num_args = 0..=1,
          default_value = "60s", default_missing_value = "60s")]
    wait_ready: Duration,
    /// This process is the one in the background: it leaves the terminal and the process group of its starter
    #[arg(long, hide = true)]
    background: bool,
    /// A program that templates may allow to the exec module, under a name that you choose
    #[arg(long, value_name = "NAME=/PATH")]
    allow_exec: Vec<String>,
    /// What templates may let scripts request over the network: `[SCHEME://]HOST[:PORT][/PREFIX]`, with names like *.example.com
    #[arg(long, value_name = "PATTERN")]
    allow_net: Vec<String>,
    /// The same for hosts with private addresses, such as localhost:3000. Servers of this machine take scripts for the user of the
    /// egress process; daemons of vm-system refuse them
    #[arg(long, value_name = "PATTERN")]
    allow_net_private: Vec<String>,
    /// The file of the secrets that may be put into header fields of requests
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
}

/// The writes that survive a power cut.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DurabilityArg {
    /// Everything acknowledged.
    Full,
    /// The last commits may be lost.
    Normal,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let (detach, background, wait_ready) = (args.detach, args.background, args.wait_ready);
    let config = config(context, args)?;
    let source = config.source.clone();
    let failed = |error: &DaemonError| failure_of_settings(error, source.as_ref());
    if detach {
        return in_background(context, &config, wait_ready);
    }
    if background {
        // Fails for a group leader, which is not in its starter's group anyway.
        let _ = nix::unistd::setsid();
        std::env::set_current_dir("/")
            .map_err(|error| CliError::internal(format!("cannot leave the current folder: {error}")))?;
    }
    // Before there is another thread.
    let daemon = PreparedDaemon::new(config).map_err(|error| failed(&error))?;
    let threads = reactor_threads();
    // One for each thread that is always there, and one for all that do blocking work.
    heap::limit_arenas(i32::try_from(threads + 1).unwrap_or(i32::MAX));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .thread_name("vm-system")
        .build()
        .map_err(|error| CliError::internal(format!("cannot start the runtime: {error}")))?;
    let served = runtime.block_on(vm_system_daemon::serve(daemon));
    if let Ok(DaemonEnd::Left) = served {
        // The next daemon does not wait for work that is still under way on blocking threads: it ends with this process.
        runtime.shutdown_background();
    }
    served.map_err(|error| failed(&error))?;
    Ok(exit::OK)
}

/// The arguments without `--detach` and `--wait-ready` with its value.
fn of_foreground(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.peekable();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--wait-ready" {
            arguments.next_if(|value| !value.to_string_lossy().starts_with('-'));
        } else if text != "--detach" && !text.starts_with("--wait-ready=") {
            kept.push(argument);
        }
    }
    kept
}

/// The last error of a log with the lines that follow it, and its hint.
fn last_error(log: &str) -> (Option<String>, Option<String>) {
    const ERROR: &str = "error: ";
    let begin =
        log.rfind(&format!("\n{ERROR}")).map(|at| at + 1).or_else(|| log.starts_with(ERROR).then_some(0));
    let Some(begin) = begin else { return (None, None) };
    let text = log[begin + ERROR.len()..].trim_end();
    match text.split_once("\nhint: ") {
        Some((error, hint)) => (Some(error.to_owned()), Some(hint.to_owned())),
        None => (Some(text.to_owned()), None),
    }
}

/// Starts this command again without a terminal, and returns when it serves clients or has failed.
fn in_background(context: &Context, config: &Config, wait_ready: Duration) -> Result<u8, CliError> {
    let state_dir = &config.state_dir;
    let cannot = |what: &Path, error: &std::io::Error| on_demand::not_started("the daemon", what, error);
    if !state_dir.is_dir() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(state_dir);
        made.map_err(|error| cannot(state_dir, &error))?;
    }
    let program = std::env::current_exe().map_err(|error| cannot(Path::new("vm-system"), &error))?;
    let mut serve = Command::new(program);
    serve.args(of_foreground(std::env::args_os().skip(1))).arg("--background");
    let log = on_demand::log_file(state_dir);
    let its_log = || format!("its log is {}", log.display());
    let pid =
        on_demand::launch(serve, state_dir, Instant::now() + wait_ready).map_err(|error| match error {
            LaunchError::Io(what, error) => cannot(&what, &error),
            LaunchError::Exited(status, written) => {
                let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL);
                let (error, hint) = last_error(&written);
                let message = error.unwrap_or_else(|| format!("the daemon exited ({status}): {written}"));
                CliError::new(code, message).with_hint(hint.unwrap_or_else(its_log))
            }
            LaunchError::Late => CliError::new(
                exit::BUSY,
                format!("the daemon is not ready after {wait_ready:?}; it continues to start"),
            )
            .with_hint(format!("{}; `vm-system ops health --wait-ready` waits for it", its_log())),
        })?;
    let shown = |path: &Path| path.display().to_string();
    let started = serde_json::json!({
        "pid": pid,
        "socket": shown(&config.socket),
        "http_socket": shown(&config.http.socket_beside(&config.socket)),
        "state_dir": shown(state_dir),
        "log": shown(&log),
    });
    let line = format!("Started daemon: {} (pid {pid}, log {})", shown(&config.socket), shown(&log));
    context.out.done(&started, &line, &pid.to_string())?;
    Ok(exit::OK)
}

/// Threads that relay between clients, workers and the store: a quarter of the processors. Their work is short and the workers
/// use the other processors; more threads would only wake each other and pass a session's messages around.
fn reactor_threads() -> usize {
    const MOST: usize = 8;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 4).clamp(1, MOST)
}

fn config(context: &Context, args: Args) -> Result<Config, CliError> {
    let (environment, global) = (&context.environment, &context.global);
    let no_home = || {
        CliError::usage("neither $HOME nor $XDG_STATE_HOME is set, so there is no state directory")
            .with_hint("give a folder with --state-dir")
    };
    let state_dir = global.state_dir.clone().or_else(|| environment.state_dir()).ok_or_else(no_home)?;
    let socket = environment
        .socket_to_serve(global.socket.as_deref(), global.state_dir.as_deref())
        .ok_or_else(no_home)?;
    let absolute = |path: PathBuf| {
        std::path::absolute(&path).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
    };
    let folder = socket.parent().filter(|folder| *folder != state_dir && folder.join(DATABASE).is_file());
    if let (None, Some(folder)) = (&global.state_dir, folder) {
        let folder = folder.display();
        return Err(CliError::usage(format!(
            "the socket would be in another state directory than the default one: {folder}"
        ))
        .with_hint(format!("`vm-system serve --state-dir {folder}` uses the records that are there")));
    }
    let mut config = Config::new(absolute(state_dir)?, absolute(socket)?);
    let mut secrets_of_file = None;
    if let Some(file) = args.config {
        let file = ConfigFile::read(&file).map_err(|error| match error {
            ConfigError::Io { path, source } => CliError::file(path.display(), &source),
            ConfigError::Invalid { .. } => CliError::usage(error.to_string()),
        })?;
        secrets_of_file.clone_from(&file.secrets);
        config = config.with_file(file);
    }
    if let Some(db) = global.db.clone() {
        config.database = Some(absolute(db)?);
    }
    let mut overridden: Vec<&'static [&'static str]> = Vec::new();
    if !args.listen.is_empty() {
        config.http.listen = args.listen;
        overridden.push(&["http", "listen"]);
    }
    let paths: [(_, _, &'static [&'static str]); 3] = [
        (&mut config.http.socket, args.http_socket, &["http", "socket"]),
        (&mut config.http.tokens, args.tokens, &["http", "tokens"]),
        (&mut config.http.ui_dir, args.ui_dir, &["http", "ui_dir"]),
    ];
    for (place, path, setting) in paths {
        if let Some(path) = path {
            *place = Some(absolute(path)?);
            overridden.push(setting);
        }
    }
    if args.secrets.is_some() {
        overridden.push(&["secrets"]);
    }
    if let Some(source) = &mut config.source {
        for setting in overridden {
            source.override_setting(setting);
        }
    }
    let place_of = |setting: &[&str]| config.source.as_ref().and_then(|source| source.place_of(setting));
    if let Some(folder) = &config.http.ui_dir {
        let shown = folder.display();
        std::fs::metadata(folder).map_err(|error| {
            let unreadable = CliError::unreadable(format!("the folder of --ui-dir, {shown}"), folder, &error);
            unreadable.at_place(place_of(&["http", "ui_dir"]))
        })?;
    }
    match args.durability {
        Some(DurabilityArg::Full) => config.durability = Durability::Full,
        Some(DurabilityArg::Normal) => config.durability = Durability::Normal,
        None => {}
    }
    config.accepts_damage = args.accept_damage;
    for command in &args.allow_exec {
        let (name, path) = command.split_once('=').ok_or_else(|| {
            CliError::usage(format!("--allow-exec {command}: not NAME=/PATH"))
                .with_hint("for example --allow-exec wc=/usr/bin/wc")
        })?;
        if let (true, Err(error)) = (Path::new(path).is_absolute(), std::fs::metadata(path)) {
            return Err(CliError::file(path, &error));
        }
        check_command(name, path.as_ref()).map_err(CliError::usage)?;
        config.operator.commands.insert(name.to_owned(), PathBuf::from(path));
    }
    for (option, patterns, private) in
        [("--allow-net", args.allow_net, false), ("--allow-net-private", args.allow_net_private, true)]
    {
        config.operator.net.extend(net_rule(option, &patterns, private)?);
    }
    if let Some(secrets) = args.secrets.map(absolute).transpose()?.or(secrets_of_file) {
        config.operator.secrets = read_secrets(&secrets).map_err(|error| match error {
            SecretsError::Io { path, source } => {
                let what = format!("the secrets in {}", path.display());
                let unreadable = CliError::unreadable(what, &path, &source);
                unreadable.at_place(place_of(&["secrets"]))
            }
            SecretsError::Invalid(why) => CliError::usage(why),
        })?;
    }
    config.keep_sessions = args.keep_sessions;
    config.idle_exit = args.idle_exit.map(|seconds| Duration::from_secs(u64::from(seconds)));
    // The variable may be set for daemons of root.
    let names_user =
        args.user.as_ref().is_some_and(|user| std::env::var("VM_SYSTEM_USER").as_ref() != Ok(user));
    if (names_user || args.root_files) && !nix::unistd::geteuid().is_root() && !args.background {
        context
            .out
            .note("note: --user and --root-files have no effect: they are for a daemon that root starts");
    }
    config.users.user = args.user.or(config.users.user);
    config.users.root_files |= args.root_files;
    config.keeper_per_owner |= args.keeper_per_owner;
    if let Some(sandbox) = args.sandbox {
        config.sandbox = sandbox.into();
    }
    Ok(config)
}

/// The rule of the operator for patterns of an option; none without any.
pub(crate) fn net_rule(
    option: &str,
    patterns: &[String],
    private: bool,
) -> Result<Option<NetRule>, CliError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let rule = operator_rule(patterns, private).map_err(|why| {
        CliError::usage(format!("{option}: {why}"))
            .with_hint("for example api.example.com, https://*.example.com:8443/v1 or localhost:3000")
    })?;
    Ok(Some(rule))
}

/// The error of a daemon that did not start. One about a value of the operator's file names its place.
fn failure_of_settings(error: &DaemonError, source: Option<&ConfigSource>) -> CliError {
    failure(error).at_place(error.setting().and_then(|setting| source?.place_of(&setting)))
}

/// The error of a supervisor that did not start, as a daemon or inside a command.
pub(crate) fn failure(error: &DaemonError) -> CliError {
    let code = match error {
        _ if error.is_in_use() => exit::BUSY,
        _ if error.is_not_permitted() => exit::NOT_PERMITTED,
        _ if error.is_unusable_path() => exit::FAILED,
        _ if error.is_a_mistake() => exit::USAGE,
        _ => exit::INTERNAL,
    };
    let failed = CliError::new(code, error.to_string());
    if let DaemonError::Tokens(TokenError::Io { path, source }) = error {
        return failed.with_right(path, FileAction::Read, source);
    }
    match error.hint() {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::last_error;

    #[test]
    fn the_last_error_of_a_log_has_all_its_lines() {
        let log = "error: an older one\nhint: older\n2026-11-26T12:00:00Z WARN slow\nerror: the database is damaged:\n  page 3\n  page 9\nhint: `ops check`\nlists more\n";
        let (error, hint) = last_error(log);
        assert_eq!(error.as_deref(), Some("the database is damaged:\n  page 3\n  page 9"));
        assert_eq!(hint.as_deref(), Some("`ops check`\nlists more"));
        assert_eq!(last_error("error: alone\n"), (Some("alone".to_owned()), None));
        assert_eq!(last_error("WARN no error: here\n"), (None, None));
    }
}
