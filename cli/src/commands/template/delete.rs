//! `template delete`

use super::Of;
use crate::context::Context;
use crate::error::{CliError, exit};
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context, args: Of) -> Result<u8, CliError> {
    let reply = context.call(Op::TemplateDelete { template: args.template.clone() }).await?;
    let id = match &reply {
        Reply::TemplateDeleted { template_id, .. } => template_id.to_string(),
        _ => args.template,
    };
    let result = serde_json::json!({ "status": "ok", "template_id": id });
    context.out.done(&result, &format!("Deleted template: {id}"), &id)?;
    Ok(exit::OK)
}
