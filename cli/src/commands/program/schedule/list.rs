//! `program schedule list`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::{ListArgs, OwnerArgs};
use crate::output::{Rows, with_owners};
use vm_system_protocol::control::{ListPage, ScheduleList};
use vm_system_protocol::model::Schedule;

/// A start that was later than this is called late (milliseconds).
const LATE_MS: u64 = 1_000;

/// Arguments of `program schedule list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&Schedule>, limit| {
        let page = ListPage::after_last(last, limit);
        context.call_once(ScheduleList { owner: args.owner.owner.clone(), page }, None).await
    };
    let schedules = args.list.collect(part).await?;
    context.out.list(&schedules, "No schedules.", || {
        let mut rows = Rows::new(["ID", "NAME", "PROGRAM", "TIMES", "NEXT", "LAST"]);
        for schedule in &schedules {
            let next = schedule.next_at.map_or_else(|| "paused".to_owned(), |at| at.to_string());
            rows.row([
                schedule.id.to_string(),
                schedule.name.clone(),
                schedule.program.clone(),
                times(schedule),
                next,
                last(schedule),
            ]);
        }
        with_owners(context, rows, schedules.iter().map(|schedule| schedule.owner.as_deref()))
    })?;
    Ok(exit::OK)
}

fn times(schedule: &Schedule) -> String {
    match (&schedule.cron, schedule.every_ms) {
        (Some(cron), _) if schedule.time_zone == "UTC" => cron.clone(),
        (Some(cron), _) => format!("{cron} ({})", schedule.time_zone),
        (None, Some(every)) if every % 1_000 == 0 => format!("every {} s", every / 1_000),
        (None, every) => format!("every {} ms", every.unwrap_or_default()),
    }
}

/// The newest of: the last start, the last skipped time, the last failure.
fn last(schedule: &Schedule) -> String {
    let failed = schedule.last_error.as_ref().map(|error| {
        (error.scheduled_for, format!("{} failed: {} ({})", error.scheduled_for, error.message, error.code))
    });
    let skipped = schedule.skipped.as_ref().map(|skipped| {
        (skipped.scheduled_for, format!("{} skipped: {}", skipped.scheduled_for, skipped.reason))
    });
    let started = schedule.last.as_ref().map(|last| {
        let late = last.late_ms >= LATE_MS;
        let late = if late { format!(", {} s late", last.late_ms / 1_000) } else { String::new() };
        (last.scheduled_for, format!("{}{late}", last.scheduled_for))
    });
    let all = [started, skipped, failed].into_iter().flatten();
    all.max_by_key(|(at, _)| *at).map_or_else(|| "-".to_owned(), |(_, text)| text)
}
