//! `template list`

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{ListPage, Op, Reply};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let reply =
        context.call(Op::TemplateList { page: ListPage::default(), built_in: !context.out.quiet }).await?;
    let templates = expect_reply!(reply, Reply::Templates(list) => list);
    context.out.list(&templates, "No templates.", || {
        let mut rows = Rows::new(["ID", "NAME", "ENGINE", "MODULES", "LIBRARIES", "CREATED"]);
        for template in &templates {
            rows.row([
                template.id.to_string(),
                if template.built_in { template.name.clone() + " (built in)" } else { template.name.clone() },
                template.engine.to_string(),
                template.exposed_modules.join(","),
                template.libraries.join(","),
                if template.built_in { "-".to_owned() } else { template.created_at.to_string() },
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
