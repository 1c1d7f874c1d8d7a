//! `ops doctor`: asks the daemon, or looks at this host itself if none answers.

use crate::args::SandboxArg;
use crate::backend::Backend;
use crate::commands::run::embedded;
use crate::context::{Context, expect_reply};
use crate::error::{CliError, exit};
use crate::output::Rows;
use vm_system_protocol::control::{Op, Reply, SandboxLayer};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let reply = match context.call(Op::Doctor).await {
        Err(error) if error.exit_code() == exit::NO_DAEMON => {
            context.out.note("no supervisor answers: this is what one of your own would find");
            let own = embedded::start(SandboxArg::Full).await?;
            let reply = Backend::Embedded(own.supervisor()).call(Op::Doctor, None).await;
            own.stop().await;
            reply?
        }
        answer => answer?,
    };
    let report = expect_reply!(reply, Reply::Doctor(report) => report);
    context.out.result(&report, || {
        let verdict = if report.ok { "ok" } else { "not ok: a wall that is required is missing" };
        format!("kernel {}: {verdict}\n\n{}", report.kernel, layers(&report.layers))
    })?;
    Ok(if report.ok { exit::OK } else { exit::FAILED })
}

/// The table of walls.
pub(super) fn layers(layers: &[SandboxLayer]) -> String {
    let mut rows = Rows::new(["WALL", "IN FORCE", "REQUIRED", "DETAIL"]);
    let word = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    for layer in layers {
        rows.row([layer.name.clone(), word(layer.in_force), word(layer.required), layer.detail.clone()]);
    }
    rows.finish("No walls.")
}
