//! `program schedule pause`, `resume` and `delete`

use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::{ScheduleDelete, SchedulePause, ScheduleResume};
use vm_system_protocol::model::Schedule;

/// A schedule.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name, id, or unique beginning of an id
    #[arg(value_name = "SCHEDULE")]
    pub(super) schedule: String,
}

/// The next time of a schedule, for people.
pub(super) fn next(schedule: &Schedule) -> String {
    schedule.next_at.map_or_else(|| "it is paused".to_owned(), |at| format!("next: {at}"))
}

fn done(context: &Context, schedule: &Schedule, what: &str) -> Result<u8, CliError> {
    let id = schedule.id.to_string();
    context.out.done(schedule, &format!("{what}: {} (ID: {id})", schedule.name), &id)?;
    Ok(exit::OK)
}

pub(crate) async fn pause(context: &Context, args: Args) -> Result<u8, CliError> {
    let paused = context.call_once(SchedulePause { schedule: args.schedule }, None).await?;
    done(context, &paused, "Paused schedule")
}

pub(crate) async fn resume(context: &Context, args: Args) -> Result<u8, CliError> {
    let resumed = context.call_once(ScheduleResume { schedule: args.schedule }, None).await?;
    done(context, &resumed, &format!("Resumed schedule ({})", next(&resumed)))
}

pub(crate) async fn delete(context: &Context, args: Args) -> Result<u8, CliError> {
    let deleted = context.call_once(ScheduleDelete { schedule: args.schedule }, None).await?;
    done(context, &deleted, "Deleted schedule")
}
