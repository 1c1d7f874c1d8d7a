//! `libs list`, and `template list-available-libraries`

use super::catalog;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::Rows;

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let libraries = catalog(context).await?;
    let is_fitted = context.out.fit().is_some();
    let hash_chars = if is_fitted { 12 } else { usize::MAX };
    context.out.list(&libraries, "No libraries.", || {
        let mut rows = Rows::new(["LIBRARY", "GLOBAL", "INSTALLED", "BYTES", "SHA256"]);
        for library in &libraries {
            rows.row([
                library.name.clone(),
                library.global.clone().unwrap_or_default(),
                if library.installed { "yes" } else { "no" }.to_owned(),
                library.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                library
                    .sha256
                    .as_ref()
                    .map(|hash| hash.chars().take(hash_chars).collect())
                    .unwrap_or_default(),
            ]);
        }
        rows
    })?;
    Ok(exit::OK)
}
