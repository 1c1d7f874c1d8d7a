//! `program list`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::{ListArgs, OwnerArgs, PeriodArgs};
use crate::output::{Rows, with_owners};
use vm_system_protocol::control::{ListPage, ProgramList};
use vm_system_protocol::model::Program;

/// Arguments of `program list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the program with exactly this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&Program>, limit| {
        let filter = ProgramList {
            name: args.name.clone(),
            period: args.period.period(),
            owner: args.owner.owner.clone(),
            page: ListPage::after_last(last, limit),
        };
        context.call_once(filter, None).await
    };
    let programs = args.list.collect(part).await?;
    context.out.list(&programs, "No programs.", || {
        let mut rows = Rows::new(["ID", "NAME", "VERSION", "MODIFIED"]);
        for program in &programs {
            rows.row([
                program.id.to_string(),
                program.name.clone(),
                program.version.to_string(),
                program.modified_at.to_string(),
            ]);
        }
        with_owners(context, rows, programs.iter().map(|program| program.owner.as_deref()))
    })?;
    Ok(exit::OK)
}
