//! `ops audit`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::ListArgs;
use crate::output::Rows;
use vm_system_protocol::control::{AuditList, AuditRecord};

/// Arguments of `ops audit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only entries before the one with this number, for the next page
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
    #[command(flatten)]
    list: ListArgs,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let part = async |last: Option<&AuditRecord>, limit| {
        let before = last.map_or(args.before, |last| Some(last.seq));
        context.call(AuditList { before, limit }).await
    };
    let records = args.list.collect(part).await?;
    context.out.list(&records, "The audit log is empty.", || {
        let mut rows = Rows::new(["SEQ", "AT", "OWNER", "API", "VERB", "SUBJECT", "OUTCOME"]);
        for record in &records {
            rows.row([
                record.seq.to_string(),
                record.at.to_string(),
                record.owner.clone(),
                record.api.clone(),
                record.verb.clone(),
                record.subject.clone(),
                record.outcome.clone(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
