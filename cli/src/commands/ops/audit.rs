//! `ops audit`

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{Op, Reply};

/// Arguments of `ops audit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only entries with a smaller sequence number, for the next page
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let reply = context.call(Op::AuditList { before: args.before, limit: args.limit }).await?;
    let records = expect_reply!(reply, Reply::Audit(records) => records);
    context.out.list(&records, "The audit log is empty.", || {
        let mut rows = Rows::new(["SEQ", "AT", "OWNER", "API", "VERB", "SUBJECT", "OUTCOME"]);
        for record in &records {
            rows.row([
                record.seq.to_string(),
                record.at.to_string(),
                record.owner.clone(),
                record.door.clone(),
                record.verb.clone(),
                record.subject.clone(),
                record.outcome.clone(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
