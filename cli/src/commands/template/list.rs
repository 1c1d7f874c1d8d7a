//! `template list`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::lists::ListArgs;
use crate::output::Rows;
use vm_system_protocol::control::{ListPage, TemplateList};
use vm_system_protocol::model::Template;

pub(crate) async fn run(context: &Context, list: ListArgs) -> Result<u8, CliError> {
    let part = async |last: Option<&Template>, limit| {
        let built_in = !context.out.quiet;
        let op = TemplateList { page: ListPage::after_last(last, limit), built_in };
        context.call(op).await
    };
    let templates = list.collect(part).await?;
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
