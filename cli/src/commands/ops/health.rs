//! `ops health`

use crate::context::Context;
use crate::error::{CliError, exit};
use crate::parse;
use std::time::{Duration, Instant};
use vm_system_protocol::control::HealthGet;

/// Interval between attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `ops health`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Wait until the daemon responds, if it is starting: 500ms, 10s, 2m [without a value: 60s]
    #[arg(long, value_name = "TIME", value_parser = parse::duration, num_args = 0..=1,
          default_missing_value = "60s")]
    wait_ready: Option<Duration>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<u8, CliError> {
    let until = args.wait_ready.map(|time| Instant::now() + time);
    let reply = loop {
        match context.call(HealthGet).await {
            Err(error)
                if matches!(error.exit_code(), exit::NO_DAEMON | exit::BUSY)
                    && until.is_some_and(|until| Instant::now() < until) =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            reply => break reply?,
        }
    };
    let health = reply;
    context.out.details(&health)?;
    Ok(exit::OK)
}
