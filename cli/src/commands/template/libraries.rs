//! `template add-library`, `remove-library` and `list-libraries`: libraries that a template's sessions can use.

use super::{Of, detail};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{TemplateAddLibrary, TemplateRemoveLibrary};

/// Arguments of `template add-library` and `template remove-library`.
#[derive(Debug, clap::Args)]
pub struct LibraryChange {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// The library with its version (`lodash-4.17.21`), or only its name if one version is installed
    #[arg(long, value_name = "NAME")]
    name: String,
}

pub(super) async fn add(context: &Context, args: LibraryChange) -> Result<u8, CliError> {
    let LibraryChange { template, name } = args;
    let added = context.call(TemplateAddLibrary { template, name }).await?;
    context.out.done(&added, &format!("Added library: {}", added.name), &added.name)?;
    Ok(exit::OK)
}

pub(super) async fn remove(context: &Context, args: LibraryChange) -> Result<u8, CliError> {
    let LibraryChange { template, name } = args;
    let before = detail(context, template.clone()).await?.template.libraries;
    let removed = context.call(TemplateRemoveLibrary { template, name }).await?;
    let line = if before.contains(&removed.name) {
        format!("Removed library: {}", removed.name)
    } else {
        format!("Not among the template's libraries: {}", removed.name)
    };
    context.out.done(&removed, &line, &removed.name)?;
    Ok(exit::OK)
}

pub(super) async fn list(context: &Context, args: Of) -> Result<u8, CliError> {
    let libraries = detail(context, args.template).await?.template.libraries;
    context.out.list(&libraries, "No libraries.", || {
        let mut rows = Rows::new(["LIBRARY"]);
        for name in &libraries {
            rows.row([name.clone()]);
        }
        rows
    })?;
    Ok(exit::OK)
}
