//! `template get`

use super::{Of, detail};
use crate::context::Context;
use crate::error::{CliError, exit};

pub(crate) async fn run(context: &Context, args: Of) -> Result<u8, CliError> {
    let detail = detail(context, args.template).await?;
    context.out.details(&detail)?;
    Ok(exit::OK)
}
