//! `ops shutdown`

use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::Op;

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    context.call(Op::Shutdown).await?;
    let result = serde_json::json!({ "status": "ok" });
    context.out.done(&result, "The supervisor is stopping.", "ok")?;
    Ok(exit::OK)
}
