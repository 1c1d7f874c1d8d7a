//! `program list`

use super::call;
use crate::context::{Context, unexpected};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{DurableOp, DurableReply, Reply};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let programs = match call(context, DurableOp::ProgramList, None).await? {
        DurableReply::Programs(programs) => programs,
        other => return Err(unexpected(&Reply::Durable(other))),
    };
    context.out.result(&programs, || {
        let mut rows = Rows::new(["ID", "NAME", "VERSION", "MODIFIED"]);
        for program in &programs {
            rows.row([
                program.id.to_string(),
                program.name.clone(),
                program.version.to_string(),
                program.modified_at.to_string(),
            ]);
        }
        rows.finish("No programs.")
    })?;
    Ok(exit::OK)
}
