//! `template list-available-modules`

use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{Op, Reply};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let modules = expect_reply!(context.call(Op::ModuleCatalog).await?, Reply::Modules(list) => list);
    context.out.result(&modules, || {
        let mut rows = Rows::new(["MODULE", "DESCRIPTION"]);
        for module in &modules {
            rows.row([module.name.clone(), module.description.clone()]);
        }
        rows.finish("No modules.")
    })?;
    Ok(exit::OK)
}
