//! `template add-startup`, `list-startup` and `remove-startup`: files that every new session runs at its start.

use super::{Of, detail};
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use crate::parse;
use vm_system_protocol::control::{NewStartupFile, TemplateAddStartup, TemplateRemoveStartup};

/// Arguments of `template add-startup`.
#[derive(Debug, clap::Args)]
pub struct AddStartup {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// The file, relative to the worktree of the session
    #[arg(long, value_name = "PATH")]
    path: String,
    /// Lower runs first; equal ones by path
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    order: i64,
    /// `eval` runs it as a script, `import` as a module (needs `--esm`)
    #[arg(long, value_name = "MODE", default_value = "eval", value_parser = parse::startup_mode())]
    mode: String,
}

/// Arguments of `template remove-startup`.
#[derive(Debug, clap::Args)]
pub struct RemoveStartup {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// Path or id of the startup file, or a unique beginning of the id
    #[arg(value_name = "FILE")]
    file: String,
}

pub(super) async fn add(context: &Context, args: AddStartup) -> Result<u8, CliError> {
    let AddStartup { template, path, order, mode } = args;
    let file = NewStartupFile { path, order_index: order, mode };
    let file = context.call(TemplateAddStartup { template, file }).await?;
    let line = format!(
        "Added startup file: {} (ID: {}, order {}, {})",
        file.path, file.id, file.order_index, file.mode
    );
    context.out.done(&file, &line, &file.id.to_string())?;
    Ok(exit::OK)
}

pub(super) async fn list(context: &Context, args: Of) -> Result<u8, CliError> {
    let files = detail(context, args.template).await?.startup_files;
    context.out.list(&files, "No startup files.", || {
        let mut rows = Rows::new(["ID", "ORDER", "MODE", "PATH"]);
        for file in &files {
            rows.row([
                file.id.to_string(),
                file.order_index.to_string(),
                file.mode.to_string(),
                file.path.clone(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}

pub(super) async fn remove(context: &Context, args: RemoveStartup) -> Result<u8, CliError> {
    let RemoveStartup { template, file } = args;
    let file = context.call(TemplateRemoveStartup { template, file }).await?;
    let line = format!("Removed startup file: {} (ID: {})", file.path, file.id);
    context.out.done(&file, &line, &file.id.to_string())?;
    Ok(exit::OK)
}
