//! `program schedule add`

use super::change::next;
use crate::args::IdempotencyArgs;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use std::path::PathBuf;
use std::time::Duration;
use vm_system_protocol::control::{ProgramStart, ScheduleAdd};
use vm_system_protocol::model::{Overlap, ScheduleRule};

/// Arguments of `program schedule add`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("rule").required(true).args(["cron", "every"])))]
pub struct Args {
    /// A name for the schedule, unique among yours
    #[arg(value_name = "NAME")]
    name: String,
    /// The program's `args`
    #[arg(value_name = "ARGS", last = true)]
    inputs: Vec<String>,
    /// When: minute, hour, day, month and weekday, such as '0 3 * * MON-FRI', or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// The time between two starts, from now on, such as 10m
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    every: Option<Duration>,
    /// The program: name, id, or with @VERSION an older version [default: the one that is called as the schedule]
    #[arg(long, value_name = "PROGRAM")]
    program: Option<String>,
    /// The time zone of the expression, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// The rule for a time at which the last execution has not ended: that time is skipped, or waits, or that execution is cancelled
    #[arg(long, value_name = "RULE", value_parser = parse::overlap(), default_value = "skip")]
    overlap: Overlap,
    /// Start later by up to this much, always by the same for the same time, so that not all schedules start at once
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    jitter: Option<Duration>,
    /// A name for each execution, unique among your executions that have not ended
    #[arg(long, value_name = "NAME")]
    execution_name: Option<String>,
    /// The program's `env`: a JSON object of strings
    #[arg(long, value_name = "JSON", value_parser = parse::variables)]
    env: Option<parse::Variables>,
    /// The template with its limits [default: the built-in one]
    #[arg(long, value_name = "TEMPLATE")]
    template_id: Option<String>,
    /// The folder whose files the program may use [default: no files]
    #[arg(long, value_name = "PATH")]
    worktree_path: Option<PathBuf>,
    /// For administrators: use the folder with the rights of this user (name or number) instead of your own
    #[arg(long, value_name = "USER", requires = "worktree_path")]
    as_user: Option<String>,
    #[command(flatten)]
    idempotency: IdempotencyArgs,
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let worktree_path = args.worktree_path.as_deref();
    let worktree_path =
        worktree_path.map(|folder| crate::paths::worktree(folder, &context.target)).transpose()?;
    let rule = ScheduleRule {
        cron: args.cron,
        every_ms: args.every.map(milliseconds),
        time_zone: args.tz,
        overlap: args.overlap,
        jitter_ms: args.jitter.map_or(0, milliseconds),
    };
    let start = ProgramStart {
        program: args.program.unwrap_or_else(|| args.name.clone()),
        name: args.execution_name,
        args: args.inputs,
        env: args.env.unwrap_or_default().0,
        template: args.template_id,
        worktree_path,
        as_user: args.as_user,
        wait: false,
    };
    let new = ScheduleAdd { name: args.name, rule, start };
    let made = context.call_once(new, args.idempotency.idempotency_key).await?;
    let line = format!("Added schedule: {} (ID: {}); {}", made.name, made.id, next(&made));
    context.out.done(&made, &line, &made.id.to_string())?;
    Ok(exit::OK)
}
