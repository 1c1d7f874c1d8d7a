//! `ops runtime`

use super::doctor;
use crate::context::Context;
use crate::error::{CliError, exit};
use crate::output::{Fit, Rows};
use vm_system_protocol::control::{RuntimeInfo, RuntimeInfoGet};

pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let info = context.call(RuntimeInfoGet).await?;
    context.out.result(&info, || table(&info, context.out.fit()))?;
    Ok(exit::OK)
}

fn table(info: &RuntimeInfo, fit: Option<Fit>) -> String {
    let mut facts = Rows::new(["FACT", "VALUE"]);
    let keeper = info.keeper_pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    for (name, value) in [
        ("version", info.version.clone()),
        ("pid", info.pid.to_string()),
        ("uptime_ms", info.uptime_ms.to_string()),
        ("keeper_pid", keeper),
        ("active_sessions", info.active_sessions.to_string()),
        ("sessions_created", info.sessions_created.to_string()),
        ("executions_started", info.executions_started.to_string()),
        ("durability", info.durability.clone()),
        ("store_queue", info.store_queue.to_string()),
        ("store_problem", info.store_problem.clone().unwrap_or_else(|| "-".to_owned())),
    ] {
        facts.row([name.to_owned(), value]);
    }
    let mut zygotes = Rows::new(["ZYGOTE", "PID", "FORKS", "MODULES", "LIBRARIES"]);
    for zygote in &info.zygotes {
        zygotes.row([
            zygote.engine.clone(),
            zygote.pid.to_string(),
            zygote.forks.to_string(),
            zygote.modules.to_string(),
            zygote.libraries.join(","),
        ]);
    }
    [facts.wrapped("", fit), doctor::layers(&info.sandbox, fit), zygotes.wrapped("No zygotes.", fit)]
        .join("\n\n")
}
