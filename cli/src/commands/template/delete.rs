//! `template delete`

use super::Of;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::TemplateDelete;

pub(crate) async fn run(context: &Context, args: Of) -> Result<u8, CliError> {
    let deleted = context.call(TemplateDelete { template: args.template }).await?;
    let id = deleted.template_id.to_string();
    let result = serde_json::json!({ "status": "ok", "template_id": id });
    context.out.done(&result, &format!("Deleted template: {id}"), &id)?;
    Ok(exit::OK)
}
