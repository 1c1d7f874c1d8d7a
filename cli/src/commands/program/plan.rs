//! `program plan`, and the plans that `program load --plan` loads.

use crate::commands::mcp::files::Files;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use std::path::Path;
use vm_system_api::mcp::FileRefusal;
use vm_system_ops::plans::{PLAN_BYTES, Plan, done_blocks, gather};
use vm_system_protocol::control::{CompiledPlan, PlanLoad};
use vm_system_protocol::model::Program;

/// File of the completed blocks, beside a plan.
const PROGRESS: &str = "uplan-progress.json";

/// Arguments of `program plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan: a Markdown file, or the index of several files in its folder
    #[arg(value_name = "FILE")]
    file: String,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let plan = compiled(context, &args.file).await?;
    context.out.list(&plan, "No blocks.", || {
        let mut rows = Rows::new(["BLOCK", "TYPE", "TITLE", "WHERE"]);
        for block in Plan::from_json(plan.plan.as_str()).into_iter().flat_map(|plan| plan.blocks) {
            let nature = if block.red_keys.is_empty() { "step" } else { "tddab" };
            rows.row([block.id, nature.to_owned(), block.title, block.plan_ref]);
        }
        rows
    })?;
    Ok(exit::OK)
}

/// Loads a plan, from Markdown or already compiled, with its completed blocks.
pub(super) async fn load(
    context: &Context,
    file: &str,
    done: Option<&Path>,
    name: String,
    key: Option<String>,
) -> Result<Program, CliError> {
    let path = Path::new(file);
    let plan = if path.extension().is_some_and(|extension| extension == "json") {
        read(path, path, 2 * PLAN_BYTES)?.ok_or_else(|| missing(file))?
    } else {
        compiled(context, file).await?.plan.as_str().to_owned()
    };
    let beside = path.with_file_name(PROGRESS);
    let done = match done {
        Some(done) => {
            Some(read(done, done, PLAN_BYTES)?.ok_or_else(|| missing(&done.display().to_string()))?)
        }
        None => read(&beside, &beside, PLAN_BYTES)?,
    };
    let done = done.map(|text| done_blocks(&text)).unwrap_or_default();
    context.call_once(PlanLoad { name, plan, done }, key).await
}

async fn compiled(context: &Context, file: &str) -> Result<CompiledPlan, CliError> {
    let path = Path::new(file);
    let text = gather(file, |file, most| read(path, file, most))?.ok_or_else(|| missing(file))?;
    context.call_once(text, None).await
}

/// The text of a file in the folder of `plan`; an untrusted plan cannot name other files.
fn read(plan: &Path, file: &Path, most: usize) -> Result<Option<String>, CliError> {
    let folder = plan.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Ok(None);
    }
    match Files::new(vec![folder.to_owned()])?.read(file, most) {
        Ok(text) => Ok(Some(text)),
        Err(FileRefusal::NotFound(_)) => Ok(None),
        Err(FileRefusal::Denied(_)) => Err(CliError::new(
            exit::NOT_PERMITTED,
            format!("{} cannot be read, or is outside of {}", file.display(), folder.display()),
        )
        .with_hint("the files of a plan must be in the folder of its index, or beneath it")),
        Err(FileRefusal::Unfit(why)) => Err(CliError::unfit(why)),
    }
}

fn missing(file: &str) -> CliError {
    CliError::file(file, &std::io::Error::from_raw_os_error(nix::libc::ENOENT))
}
