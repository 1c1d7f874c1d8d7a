//! `ops runtime-summary`

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let summary =
        expect_reply!(context.call(Op::RuntimeSummary).await?, Reply::RuntimeSummary(summary) => summary);
    context.out.details(&summary)?;
    Ok(exit::OK)
}
