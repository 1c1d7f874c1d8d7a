//! `libs verify`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::LibraryVerify;

/// Arguments of `libs verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this library
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let op = LibraryVerify { name: args.name };
    let checks = context.call(op).await?;
    context.out.list(&checks, "No libraries.", || {
        let mut rows = Rows::new(["LIBRARY", "OK", "PROBLEM"]);
        for check in &checks {
            let ok = if check.ok { "yes" } else { "no" };
            rows.row([check.name.clone(), ok.to_owned(), check.problem.clone().unwrap_or_default()]);
        }
        rows
    })?;
    Ok(if checks.iter().all(|check| check.ok) { exit::OK } else { exit::FAILED })
}
