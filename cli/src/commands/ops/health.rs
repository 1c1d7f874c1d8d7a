//! `ops health`

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let health = expect_reply!(context.call(Op::Health).await?, Reply::Health(health) => health);
    context.out.details(&health)?;
    Ok(exit::OK)
}
